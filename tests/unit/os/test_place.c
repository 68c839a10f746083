/* Where the files of a stream go: what `cp -r` would do, and what is refused. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"
#include "os/place.h"
#include "unit/test.h"
#include "unit/test_dir.h"

/* In a directory with a directory "dir" and a file "file". */
static void enter(const struct test_dir *dir)
{
    struct error e = { 0 };
    CHECK("enter", chdir(dir->path) == 0 && mkdir("dir", 0700) == 0);
    CHECK_OK("a file", file_write_atomic("file", STR("x"), 0600, &e), &e);
}

static void check_below(const struct test_dir *dir, const char *name, const char *want)
{
    char cwd[256];
    CHECK(name, getcwd(cwd, sizeof(cwd)) != NULL);
    CHECK(name, strcmp(cwd + strlen(dir->path), want) == 0);
}

static void test_places(void **state)
{
    static const struct {
        const char *name, *path, *given;
        bool is_dir;
        const char *cwd, *want; /* NULL: as given */
    } cases[] = {
        { "a name into a directory that is there", "dir", "tree/a", false, "/dir", NULL },
        { "the same with slashes and dots", "./dir/././/", "tree", true, "/dir", NULL },
        { "a directory under a new name", "new", "tree", true, "", "new" },
        { "what is in it, too", "new", "tree/a/b", false, "", "new/a/b" },
        { "a slash at the end of what is new", "dir/new/", "tree", true, "/dir", "new" },
        { "a file over a file", "file", "a", false, "", "file" },
        { "what is inside, into what is there", "dir", "./a", false, "/dir", NULL },
        { "what is inside, into what is new", "dir/new", ".", true, "/dir/new", NULL },
        { "dots that lead nowhere", "new", "a..b/..c/d..", false, "", "new/..c/d.." },
    };
    (void)state;
    FOR_EACH_CASE (c, cases) {
        AUTO(test_dir) struct test_dir dir = test_dir_new();
        enter(&dir);
        struct error e = { 0 };
        struct place place;
        const char *name = NULL;
        CHECK_OK(c->name, place_find(c->path, &place, &e), &e);
        CHECK_OK(c->name, place_name(&place, c->given, c->is_dir, &name, &e), &e);
        check_below(&dir, c->name, c->cwd);
        CHECK(c->name, strcmp(name, c->want != NULL ? c->want : c->given) == 0);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *name, *path, *given;
        bool is_dir;
        enum err want;
    } cases[] = {
        { "no name", "dir", "", false, ERR_INVALID },
        { "a name from the root", "dir", "/a", false, ERR_INVALID },
        { "a name from the root under a new name", "new", "/a", false, ERR_INVALID },
        { "one that climbs", "dir", "../a", false, ERR_INVALID },
        { "one that climbs under a new name", "new", "../a", false, ERR_INVALID },
        { "one that only climbs", "new", "..", true, ERR_INVALID },
        { "one that climbs later", "new", "a/b/..", true, ERR_INVALID },
        { "a directory over a file", "file", "tree", true, ERR_CONFLICT },
        { "what is inside over a file", "file", ".", true, ERR_CONFLICT },
        { "a file where a directory is wanted", "new/", "a", false, ERR_CONFLICT },
        { "the same with a dot", "new/.", "a", false, ERR_CONFLICT },
    };
    (void)state;
    FOR_EACH_CASE (c, cases) {
        AUTO(test_dir) struct test_dir dir = test_dir_new();
        enter(&dir);
        struct error e = { 0 };
        struct place place;
        const char *name = "untouched";
        CHECK_OK(c->name, place_find(c->path, &place, &e), &e);
        CHECK(c->name, place_name(&place, c->given, c->is_dir, &name, &e) == c->want);
        CHECK(c->name, strcmp(name, "untouched") == 0 && e.text[0] != '\0');
    }
}

static void test_lengths(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    enter(&dir);
    AUTO(buf) struct buf text = { 0 };
    struct place place;
    const char *name = NULL;
    for (int i = 0; i < PATH_MAX / 2; i++)
        buf_add_text(&text, "x/");
    CHECK("a path is not cut", place_find(text.data, &place, NULL) == ERR_INVALID);
    CHECK("nothing is none", place_find("", &place, NULL) == ERR_INVALID);
    text.data[text.size - 2] = '\0';
    CHECK("one that fits", place_find("a-longer-name", &place, NULL) == ERR_OK);
    CHECK("a name is not cut", place_name(&place, text.data, true, &name, NULL) == ERR_LIMIT);
    CHECK("no parent", place_find("none/a", &place, NULL) != ERR_OK);
    CHECK("the root", place_trim("/") == 1 && place_trim("//./") == 1 && place_trim(".") == 1);
}

static void test_mode(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    enter(&dir);
    struct place place;
    struct stat info;
    const char *name = NULL;
    mode_t before = umask(0);
    CHECK("new", place_find("new", &place, NULL) == ERR_OK);
    CHECK("made", place_name(&place, ".", true, &name, NULL) == ERR_OK);
    (void)umask(before);
    CHECK("nobody else writes there", stat(".", &info) == 0 && (info.st_mode & 0777) == 0755);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
