#include <dirent.h>
#include <string.h>

#include "os/file.h"
#include "unit/test.h"
#include "unit/test_dir.h"

static size_t entries_in(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    CHECK(path, dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    (void)closedir(dir);
    return count - 2; /* . and .. */
}

static void test_write_and_read(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(buf) struct buf content = { 0 };
    struct error e = { 0 };
    struct stat found;
    char path[256];
    (void)test_dir_path(&dir, "file", path);

    CHECK_OK("new", file_write_atomic(path, STR("old\0bytes"), 0640, &e), &e);
    CHECK_OK("again", file_write_atomic(path, STR("new bytes"), 0604, &e), &e);
    CHECK_OK("read", file_read(path, 100, &content, &e), &e);
    CHECK("content", str_is(buf_str(&content), "new bytes"));
    CHECK("mode", stat(path, &found) == 0 && (found.st_mode & 0777) == 0604);
    CHECK("nothing left behind", entries_in(dir.path) == 1);

    CHECK_OK("appends", file_read(path, 9, &content, &e), &e);
    CHECK("content", str_is(buf_str(&content), "new bytesnew bytes"));
    CHECK_OK("empty", file_write_atomic(path, STR(""), 0600, &e), &e);
    buf_clear(&content);
    CHECK_OK("read", file_read(path, 0, &content, &e), &e);
    CHECK("nothing in it", content.size == 0);
}

static void test_large_file(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(buf) struct buf written = { 0 };
    AUTO(buf) struct buf content = { 0 };
    struct error e = { 0 };
    char path[256];
    (void)test_dir_path(&dir, "large", path);
    for (int i = 0; i < 30000; i++)
        buf_format(&written, "%d,", i);
    CHECK_OK("write", file_write_atomic(path, buf_str(&written), 0600, &e), &e);
    CHECK_OK("exactly the limit", file_read(path, written.size, &content, &e), &e);
    CHECK("same", str_eq(buf_str(&content), buf_str(&written)));
    CHECK("one less", file_read(path, written.size - 1, &content, &e) == ERR_LIMIT);
    CHECK("unchanged", str_eq(buf_str(&content), buf_str(&written)));
    CHECK("says which", strstr(e.text, path) != NULL);
}

static void test_refusals(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(buf) struct buf content = { 0 };
    struct error e = { 0 };
    char path[256];
    char below[256];
    (void)test_dir_path(&dir, "file", path);
    (void)test_dir_path(&dir, "file/below", below);

    CHECK("absent", file_read(path, 10, &content, &e) == ERR_NOT_FOUND);
    CHECK("a directory", file_read(dir.path, 10, &content, &e) == ERR_INVALID);
    CHECK_OK("write", file_write_atomic(path, STR("x"), 0600, &e), &e);
    CHECK("below a file", file_read(below, 10, &content, &e) == ERR_NOT_FOUND);
    CHECK("below a file", file_write_atomic(below, STR("x"), 0600, &e) == ERR_IO);
    CHECK("over a directory", file_write_atomic(dir.path, STR("x"), 0600, &e) == ERR_IO);
    CHECK("nothing left behind", entries_in(dir.path) == 1);
    CHECK("nothing read", content.size == 0);

    char long_path[5000];
    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    CHECK("too long", file_write_atomic(long_path, STR("x"), 0600, &e) == ERR_LIMIT);
    CHECK("too long", file_make_dirs(long_path, 0700, &e) == ERR_LIMIT);
}

static void test_make_dirs(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    struct error e = { 0 };
    struct stat found;
    char path[256];
    char file[256];
    (void)test_dir_path(&dir, "a/b//c/", path);
    CHECK_OK("makes all", file_make_dirs(path, 0750, &e), &e);
    CHECK("there", stat(path, &found) == 0 && S_ISDIR(found.st_mode));
    CHECK("mode", (found.st_mode & 0777) == 0750);
    CHECK_OK("again", file_make_dirs(path, 0750, &e), &e);

    (void)test_dir_path(&dir, "a/file", file);
    CHECK_OK("write", file_write_atomic(file, STR("x"), 0600, &e), &e);
    CHECK("a file has the name", file_make_dirs(file, 0750, &e) == ERR_CONFLICT);
    (void)test_dir_path(&dir, "a/file/x", path);
    CHECK("a file is in the way", file_make_dirs(path, 0750, &e) == ERR_CONFLICT);
    CHECK("an empty path", file_make_dirs("", 0750, &e) == ERR_LIMIT);
}

static void test_sync_parent(void **state)
{
    (void)state;
    struct error e = { 0 };
    CHECK_OK("no slash", file_sync_parent("x", &e), &e);
    CHECK_OK("the root", file_sync_parent("/x", &e), &e);
    CHECK("absent", file_sync_parent("/nonexistent/x", &e) == ERR_IO);
}

int main(void)
{
    (void)umask(022);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_and_read), cmocka_unit_test(test_large_file),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_make_dirs),
        cmocka_unit_test(test_sync_parent),
    };
    return cmocka_run_group_tests_name("os/file", tests, NULL, NULL);
}
