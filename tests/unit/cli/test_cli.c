/* The parts of the command line that need no controller: options to JSON, .gitignore,
 * trees, the table. */
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/guess.h"
#include "cli/help.h"
#include "cli/ignore.h"
#include "cli/special.h"
#include "cli/tree.h"
#include "cli/words.h"
#include "os/fd.h"
#include "os/file.h"
#include "unit/test.h"
#include "unit/test_dir.h"
#include "wire/spec_json.h"

/* ---- options --------------------------------------------------------------------------------- */

static const struct cli_command *command(const char *noun, const char *verb)
{
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        bool is_noun = noun == NULL ? (*row)->noun == NULL
                                    : (*row)->noun != NULL && strcmp((*row)->noun, noun) == 0;
        if (is_noun && strcmp((*row)->verb, verb) == 0)
            return *row;
    }
    test_fail(verb, "is in the table", __FILE__, __LINE__);
}

static const struct {
    const char *noun, *verb, *option, *text;
    const char *wanted; /* JSON; NULL: refused */
} option_cases[] = {
    { NULL, "submit", "gpus", "0.5", "{\"gpu_milli\":500}" },
    { NULL, "submit", "gpus", "2", "{\"gpu_milli\":2000}" },
    { NULL, "submit", "gpus", "0.0005", NULL },
    { NULL, "submit", "gpus", "-1", NULL },
    { NULL, "submit", "gpus", "", NULL },
    { NULL, "submit", "memory", "2G", "{\"memory_mib\":2048}" },
    { NULL, "submit", "memory", "512M", "{\"memory_mib\":512}" },
    { NULL, "submit", "memory", "many", NULL },
    { NULL, "submit", "time-limit", "1h30m", "{\"time_limit_s\":5400}" },
    { NULL, "submit", "time-limit", "30m1h", NULL },
    { NULL, "submit", "devices", "2x0.5", "{\"devices\":2,\"share_milli\":500}" },
    { NULL, "submit", "devices", "2", NULL },
    { NULL, "submit", "env", "A=b=c", "{\"env\":{\"A\":\"b=c\"}}" },
    { NULL, "submit", "env", "=b", NULL },
    { NULL, "submit", "env", "A", NULL },
    { NULL, "submit", "class", "a,b,,c", "{\"classes\":[\"a\",\"b\",\"c\"]}" },
    { NULL, "submit", "mount", "data:/mnt:ro",
      "{\"mounts\":[{\"volume\":\"data\",\"path\":\"/mnt\",\"is_read_only\":true}]}" },
    { NULL, "submit", "mount", "data:mnt", NULL },
    { NULL, "submit", "mount", "data:/mnt:rx", NULL },
    { NULL, "submit", "after", "failed:wl_1",
      "{\"depends_on\":[{\"workload\":\"wl_1\",\"when\":\"failed\"}]}" },
    { "tenant", "create", "quota", "h100=1.5",
      "{\"quotas\":[{\"class\":\"h100\",\"quota_milli\":1500}]}" },
    { "tenant", "create", "limit", "h100=none",
      "{\"quotas\":[{\"class\":\"h100\",\"limit_milli\":-1}]}" },
    { "tenant", "create", "weight", "h100=none", NULL },
    { "tenant", "create", "quota", "=1", NULL },
    { "tenant", "create", "quota", "h100", NULL },
};

static void test_options(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, option_cases) {
        static struct cli cli;
        struct error e = { 0 };
        AUTO(json) json_t *body = json_object();
        cli = (struct cli){ .command = command(c->noun, c->verb), .value_count = 1 };
        for (size_t i = 0; i < cli.command->option_count; i++) {
            if (strcmp(cli.command->options[i].name, c->option) == 0)
                cli.values[0] = (struct cli_value){ &cli.command->options[i], c->text };
        }
        CHECK(c->option, cli.values[0].option != NULL);
        enum err rc = cli_body(&cli, body, &e);
        CHECK(c->text, (rc == ERR_OK) == (c->wanted != NULL));
        if (c->wanted == NULL) {
            CHECK("names the option", strstr(e.text, c->option) != NULL);
            continue;
        }
        AUTO(json) json_t *wanted = json_loads(c->wanted, 0, NULL);
        CHECK(c->text, json_equal(body, wanted));
    }
}

static void test_quota_rows_are_one_a_class(void **state)
{
    (void)state;
    static struct cli cli;
    static const char *const given[][2] = { { "quota", "h100=8" },
                                            { "limit", "h100=16" },
                                            { "quota", "l40s=2" } };
    struct error e = { 0 };
    AUTO(json) json_t *body = json_object();
    cli = (struct cli){ .command = command("tenant", "create") };
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        for (size_t k = 0; k < cli.command->option_count; k++) {
            if (strcmp(cli.command->options[k].name, given[i][0]) == 0)
                cli.values[cli.value_count++] =
                    (struct cli_value){ &cli.command->options[k], given[i][1] };
        }
    }
    CHECK_OK("body", cli_body(&cli, body, &e), &e);
    const json_t *rows = json_object_get(body, "quotas");
    CHECK("two rows", json_array_size(rows) == 2);
    CHECK("both of one class", json_object_size(json_array_get(rows, 0)) == 3);
}

/* Every row of the table can be shown and completed: what help and completion rest on.
 * NOLINTNEXTLINE(readability-function-size): CHECK is a macro that nests */
static void test_table(void **state)
{
    (void)state;
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        const struct cli_command *c = *row;
        CHECK(c->verb, c->summary != NULL && c->summary[0] != '\0');
        CHECK(c->verb, c->examples != NULL && strncmp(c->examples, "  ", 2) == 0);
        CHECK(c->verb, c->noun == NULL || help_noun_summary(c->noun) != NULL);
        CHECK(c->verb, c->run != NULL || (c->method != NULL && c->path != NULL));
        CHECK(c->verb, (c->arguments == NULL) == (c->arguments_max == 0));
        CHECK(c->verb, c->arguments_min <= c->arguments_max);
        for (size_t i = 0; i < c->option_count; i++) {
            const struct cli_option *option = &c->options[i];
            CHECK(option->name, option->help != NULL);
            CHECK(option->name, (option->kind == OPTION_FLAG) == (option->metavar == NULL));
            for (size_t k = i + 1; k < c->option_count; k++) {
                CHECK(option->name, strcmp(option->name, c->options[k].name) != 0);
                CHECK(option->name, option->letter == 0 || option->letter != c->options[k].letter);
            }
        }
        for (const struct cli_command *const *other = row + 1; *other != NULL; other++) {
            bool is_same_noun =
                c->noun == (*other)->noun ||
                (c->noun != NULL && (*other)->noun != NULL && strcmp(c->noun, (*other)->noun) == 0);
            CHECK(c->verb, !is_same_noun || strcmp(c->verb, (*other)->verb) != 0);
        }
    }
}

static bool has_option_of(const struct cli_command *c, const char *field)
{
    for (size_t i = 0; i < c->option_count; i++) {
        const struct cli_option *option = &c->options[i];
        if (strcmp(option->field != NULL ? option->field : option->name, field) == 0)
            return true;
    }
    return false;
}

static void test_settings(void **state)
{
    (void)state;
    const struct cli_command *set = command("settings", "set");
    for (size_t i = 0; i < settings_spec_schema.count; i++) {
        const char *field = settings_spec_schema.fields[i].name;
        CHECK(field, has_option_of(set, field));
    }
}

/* What settings have, a policy sets; each is in the object `settings` there. */
static void test_policies(void **state)
{
    (void)state;
    const struct cli_command *set = command("policy", "set");
    for (size_t i = 0; i < settings_spec_schema.count; i++) {
        char field[64];
        (void)snprintf(field, sizeof(field), "settings.%s", settings_spec_schema.fields[i].name);
        CHECK(field, has_option_of(set, field));
    }
}

static bool destroys(const struct cli_command *c)
{
    static const char *const verbs[] = { "remove", "drain",  "requeue", "confirm-lost",
                                         "cancel", "revoke", "revert" };
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (strcmp(c->verb, verbs[i]) == 0)
            return true;
    }
    /* Work is released from a hold, a reservation for good. */
    if (c->noun != NULL && strcmp(c->noun, "reservation") == 0 && strcmp(c->verb, "release") == 0)
        return true;
    return c->method != NULL && strcmp(c->method, "DELETE") == 0;
}

/* What destroys something can be tried first; what takes --dry-run says what it would do. */
static void test_dry_runs(void **state)
{
    (void)state;
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        const struct cli_command *c = *row;
        bool is_offered = false;
        for (size_t i = 0; i < c->option_count; i++)
            is_offered = is_offered || strcmp(c->options[i].name, "dry-run") == 0;
        CHECK(c->verb, destroys(c) == (c->look != NULL));
        CHECK(c->verb, (c->look != NULL) == (c->would != NULL));
        CHECK(c->verb, c->look == NULL || strstr(c->look, "{}") != NULL);
        CHECK(c->verb, is_offered == (c->look != NULL || c->run == run_apply ||
                                      c->run == run_import || c->run == run_change));
    }
}

static void test_encoding(void **state)
{
    (void)state;
    AUTO(buf) struct buf out = { 0 };
    cli_encode(&out, STR("amber/vision x&y=\xc3\xa9"));
    CHECK("encoded", str_is(buf_str(&out), "amber%2Fvision%20x%26y%3D%C3%A9"));
}

/* ---- guesses --------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    const char *candidates[4];
    const char *best; /* NULL: none is near */
} guess_cases[] = {
    { "submt", { "submit", "list" }, "submit" },
    { "sbumit", { "submit", "list" }, "submit" },
    { "lst", { "list", "last" }, "list" },
    { "prj", { "project", "pool" }, NULL },
    { "proj", { "project", "pool" }, "project" },
    { "debian12", { "debian-12", "busybox" }, "debian-12" },
    { "busybox", { "debian-12" }, NULL },
    { "x", { "y", "xyz" }, NULL },
    { "", { "list" }, NULL },
    { "nosuch", { "status", "cancel" }, NULL },
};

static void test_guesses(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, guess_cases) {
        struct guess guess = { .word = c->word };
        for (size_t i = 0; i < COUNT_OF(c->candidates) && c->candidates[i] != NULL; i++)
            guess_try(&guess, c->candidates[i]);
        CHECK(c->word, (guess.best == NULL) == (c->best == NULL));
        CHECK(c->word, c->best == NULL || strcmp(guess.best, c->best) == 0);
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

enum { WORDS_MAX = 10 };

static const struct {
    const char *name;
    const char *words[WORDS_MAX];
    const char *noun, *verb; /* NULL verb: no command */
    const char *option;      /* "name" or "name=value" of one that was read */
    int arguments;           /* -1: refused */
} word_cases[] = {
    { "a verb of its own", { "list" }, NULL, "list", NULL, 0 },
    { "a noun and its verb", { "tenant", "show", "amber" }, "tenant", "show", NULL, 1 },
    { "options after the command", { "list", "-o", "json" }, NULL, "list", "output=json", 0 },
    { "before it", { "-o", "json", "list" }, NULL, "list", "output=json", 0 },
    { "attached to the letter", { "-ojson", "list" }, NULL, "list", "output=json", 0 },
    { "with an equals sign", { "--server=unix:/s", "list" }, NULL, "list", "server=unix:/s", 0 },
    { "between noun and verb", { "tenant", "-q", "list" }, "tenant", "list", "quiet", 0 },
    { "a value that looks like a command",
      { "-s", "list", "show", "wl_1" },
      NULL,
      "show",
      "server=list",
      1 },
    { "of a command, before it", { "--project", "amber", "submit" }, NULL, NULL, NULL, -1 },
    { "that no command has", { "--frob", "list" }, NULL, NULL, NULL, -1 },
    { "without its value", { "list", "-s" }, NULL, "list", NULL, -1 },
    { "with a value too many", { "--quiet=yes", "list" }, NULL, NULL, NULL, -1 },
    { "a command that is not there", { "frob", "-x" }, NULL, NULL, NULL, 0 },
    { "a verb that is not there", { "tenant", "frob", "-x" }, NULL, NULL, NULL, 0 },
    { "help in words", { "help", "tenant", "show" }, "tenant", "show", "help", 0 },
    { "help before", { "-h", "submit" }, NULL, "submit", "help", 0 },
    { "what follows -- is arguments", { "submit", "--", "-o", "json" }, NULL, "submit", NULL, 2 },
    { "-- once", { "submit", "--", "a", "--" }, NULL, "submit", NULL, 2 },
    { "options of a command that is run", { "exec", "wl_1", "ls", "-q" }, NULL, "exec", NULL, 3 },
    { "its options", { "submit", "-g", "0.1", "ls", "-g", "1" }, NULL, "submit", "gpus=0.1", 3 },
    { "one of ours", { "submit", "python3", "--version" }, NULL, "submit", NULL, 2 },
    { "options before that", { "exec", "-T", "wl_1", "ls" }, NULL, "exec", "no-tty", 2 },
    { "a dash alone is an argument", { "apply", "-f", "-" }, NULL, "apply", "file=-", 0 },
};

static bool was_read(const struct cli *cli, const char *option)
{
    struct str value = str_of(option);
    struct str name = str_cut(&value, '=');
    for (size_t i = 0; i < cli->value_count; i++) {
        const struct cli_value *read = &cli->values[i];
        if (str_eq(str_of(read->option->name), name) && str_eq(str_of(read->text), value))
            return true;
    }
    return false;
}

static void test_words(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, word_cases) {
        static struct cli cli;
        char *argv[WORDS_MAX + 2] = { (char *)(uintptr_t) "berth" };
        int argc = 1;
        for (; c->words[argc - 1] != NULL; argc++)
            argv[argc] = (char *)(uintptr_t)c->words[argc - 1];
        cli = (struct cli){ .argv = argv };
        CHECK(c->name, words_read(&cli, argc) == (c->arguments >= 0));
        const struct cli_command *wanted = c->verb != NULL ? command(c->noun, c->verb) : NULL;
        CHECK(c->name, cli.command == wanted);
        CHECK(c->name, c->arguments < 0 || cli.argument_count == c->arguments);
        CHECK(c->name, c->option == NULL || was_read(&cli, c->option));
        arena_done(&cli.arena);
    }
}

/* The words of an example up to what is the shell's; quoted ones are one word. Returns
 * their count. */
static int example_words(char *line, char **words)
{
    int count = 0;
    for (char *at = line; *at != '\0' && strchr("|<>&$", *at) == NULL;) {
        bool is_quoted = *at == '\'';
        char *end = is_quoted ? strchr(++at, '\'') : at + strcspn(at, " ");
        char *next = *end != '\0' ? end + 1 : end;
        *end = '\0';
        words[count++] = at;
        at = next + strspn(next, " ");
    }
    words[count] = NULL;
    return count;
}

/* What help tells people to type is understood: `berth` begins each, also behind an assignment. */
static void test_examples(void **state)
{
    (void)state;
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        struct str rest = str_of((*row)->examples);
        while (rest.size > 0) {
            static struct cli cli;
            char line[256] = "";
            char *words[64];
            struct str text = str_cut(&rest, '\n');
            CHECK((*row)->verb, text.size < sizeof(line));
            memcpy(line, text.data, text.size);
            char *start = strstr(line, "berth ");
            CHECK(line, start != NULL);
            start[strcspn(start, ")")] = '\0'; /* of $(...) */
            cli = (struct cli){ .argv = words };
            CHECK(line, words_read(&cli, example_words(start, words)));
            CHECK(line, cli.command == *row);
            arena_done(&cli.arena);
        }
    }
}

/* ---- .gitignore ------------------------------------------------------------------------------ */

static const struct {
    const char *lines, *path;
    bool is_dir, is_ignored;
} ignore_cases[] = {
    { "*.o", "a.o", false, true },
    { "*.o", "deep/er/a.o", false, true },
    { "*.o", "a.c", false, false },
    { "build/", "build", true, true },
    { "build/", "build", false, false },
    { "build/", "src/build", true, true },
    { "/build", "build", true, true },
    { "/build", "src/build", true, false },
    { "src/*.log", "src/a.log", false, true },
    { "src/*.log", "src/deep/a.log", false, false },
    { "**/cache", "cache", true, true },
    { "**/cache", "a/b/cache", true, true },
    { "*.log\n!keep.log", "keep.log", false, false },
    { "*.log\n!keep.log", "other.log", false, true },
    { "# comment\n\n", "# comment", false, false },
    { "name  ", "name", false, true },
    { "a\r\nb\r\n", "b", false, true },
};

static void test_ignore(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, ignore_cases) {
        AUTO(ignore) struct ignore ignore = { 0 };
        ignore_add(&ignore, STR(""), str_of(c->lines));
        CHECK(c->path, ignore_matches(&ignore, str_of(c->path), c->is_dir) == c->is_ignored);
    }
    AUTO(ignore) struct ignore nested = { 0 };
    ignore_add(&nested, STR(""), STR("*.txt"));
    ignore_add(&nested, STR("docs"), STR("!*.txt\n/local"));
    CHECK("deeper wins", !ignore_matches(&nested, STR("docs/a.txt"), false));
    CHECK("only there", ignore_matches(&nested, STR("src/a.txt"), false));
    CHECK("anchored there", ignore_matches(&nested, STR("docs/local"), false));
    CHECK("not elsewhere", !ignore_matches(&nested, STR("local"), false));
}

/* ---- trees ----------------------------------------------------------------------------------- */

static void put(const char *dir, const char *name, const char *text)
{
    char path[512];
    struct error e = { 0 };
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    CHECK_OK(name, file_write_atomic(path, str_of(text), 0644, &e), &e);
}

static bool is_there(const char *dir, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void tree_make(const struct test_dir *dir)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/sub", dir->path);
    CHECK("sub", mkdir(path, 0755) == 0);
    put(dir->path, "a.c", "int a;\n");
    put(dir->path, "sub/b.log", "noise\n");
    put(dir->path, "sub/c.c", "int c;\n");
    put(dir->path, ".gitignore", "*.log\n");
}

static void digest_of(int fd, struct buf *out)
{
    char block[4096];
    CHECK("start", lseek(fd, 0, SEEK_SET) == 0);
    for (ssize_t got = 1; got > 0;) {
        got = read(fd, block, sizeof(block));
        CHECK("read", got >= 0);
        buf_add(out, block, (size_t)got);
    }
}

static void test_equal_trees_give_equal_bytes(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir first = test_dir_new();
    AUTO(test_dir) struct test_dir second = test_dir_new();
    AUTO(buf) struct buf one = { 0 };
    AUTO(buf) struct buf two = { 0 };
    struct error e = { 0 };
    AUTO(fd) int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    AUTO(fd) int other = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    tree_make(&first);
    tree_make(&second);
    CHECK_OK("write", tree_write(fd, first.path, "", TREE_GITIGNORE, &e), &e);
    CHECK_OK("write", tree_write(other, second.path, "", TREE_GITIGNORE, &e), &e);
    digest_of(fd, &one);
    digest_of(other, &two);
    CHECK("equal", str_eq(buf_str(&one), buf_str(&two)));
    CHECK("without the log", memmem(one.data, one.size, "noise", 5) == NULL);
    CHECK("with the code", memmem(one.data, one.size, "int c;", 6) != NULL);
}

static void test_tree_there_and_back(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir from = test_dir_new();
    AUTO(test_dir) struct test_dir to = test_dir_new();
    struct tree_child writer;
    struct tree_child reader;
    struct error e = { 0 };
    char block[4096];
    tree_make(&from);
    CHECK_OK("writer", tree_spawn_write(from.path, "copy", &writer, &e), &e);
    CHECK_OK("reader", tree_spawn_read(to.path, TREE_BRIEF, &reader, &e), &e);
    for (ssize_t got = 1; got > 0;) {
        got = read(writer.fd, block, sizeof(block));
        CHECK("read", got >= 0);
        CHECK_OK("write", fd_write_full(reader.fd, block, (size_t)got, &e), &e);
    }
    CHECK_OK("written", tree_wait(&writer, &e), &e);
    CHECK_OK("read", tree_wait(&reader, &e), &e);
    CHECK("named", is_there(to.path, "copy/a.c") && is_there(to.path, "copy/sub/b.log"));
}

/* An archive's end is a mark in it; what comes after that is taken too, however late and much. */
static void test_tree_with_padding(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir from = test_dir_new();
    AUTO(test_dir) struct test_dir to = test_dir_new();
    AUTO(buf) struct buf bytes = { 0 };
    static const char zeros[256 * 1024]; /* more than a pipe and a reader hold together */
    struct tree_child reader;
    struct error e = { 0 };
    AUTO(fd) int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    tree_make(&from);
    CHECK_OK("write", tree_write(fd, from.path, "copy", TREE_ALL, &e), &e);
    digest_of(fd, &bytes);
    (void)signal(SIGPIPE, SIG_IGN);
    CHECK_OK("reader", tree_spawn_read(to.path, TREE_BRIEF, &reader, &e), &e);
    CHECK_OK("the archive", fd_write_full(reader.fd, bytes.data, bytes.size, &e), &e);
    CHECK_OK("what follows", fd_write_full(reader.fd, zeros, sizeof(zeros), &e), &e);
    CHECK_OK("read", tree_wait(&reader, &e), &e);
    CHECK("all is there", is_there(to.path, "copy/a.c") && is_there(to.path, "copy/sub/c.c"));
}

/* ---- where they go --------------------------------------------------------------------------- */

/* What `cp -r` would make of it: "tree" has the file "a", "file" is one; "dir" and "old"
 * are there. */
static const struct {
    const char *name, *from, *as, *to;
    const char *found; /* afterwards; NULL: refused */
} place_cases[] = {
    { "a directory into one that is there", "tree", "tree", "dir", "dir/tree/a" },
    { "a directory under a new name", "tree", "tree", "new", "new/a" },
    { "with a slash", "tree", "tree", "new/", "new/a" },
    { "what is inside, into one that is there", "tree", ".", "dir", "dir/a" },
    { "what is inside, under a new name", "tree", ".", "new", "new/a" },
    { "a file into a directory", "file", "file", "dir", "dir/file" },
    { "a file under a new name", "file", "file", "new", "new" },
    { "a file in place of another", "file", "file", "old", "old" },
    { "a file where a directory is wanted", "file", "file", "new/", NULL },
    { "a directory in place of a file", "tree", "tree", "old", NULL },
    { "what is inside, in place of a file", "tree", ".", "old", NULL },
    { "below what is not there", "tree", "tree", "no/new", NULL },
};

static void test_places(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, place_cases) {
        AUTO(arena) struct arena arena = { 0 };
        AUTO(test_dir) struct test_dir dir = test_dir_new();
        struct tree_child reader;
        struct error e = { 0 };
        AUTO(buf) struct buf bytes = { 0 };
        AUTO(fd) int tar = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        CHECK("dirs", mkdir(arena_format(&arena, "%s/tree", dir.path), 0755) == 0 &&
                          mkdir(arena_format(&arena, "%s/dir", dir.path), 0755) == 0);
        put(dir.path, "tree/a", "a");
        put(dir.path, "file", "file");
        put(dir.path, "old", "old");
        const char *from = arena_format(&arena, "%s/%s", dir.path, c->from);
        CHECK_OK(c->name, tree_write(tar, from, c->as, TREE_ALL, &e), &e);
        digest_of(tar, &bytes);
        const char *to = arena_format(&arena, "%s/%s", dir.path, c->to);
        CHECK_OK(c->name, tree_spawn_read(to, TREE_QUIET, &reader, &e), &e);
        (void)signal(SIGPIPE, SIG_IGN);
        enum err rc = fd_write_full(reader.fd, bytes.data, bytes.size, &e);
        CHECK(c->name, rc == ERR_OK || c->found == NULL); /* it may have ended by then */
        CHECK(c->name, (tree_wait(&reader, &e) == ERR_OK) == (c->found != NULL));
        CHECK(c->name, c->found == NULL || is_there(dir.path, c->found));
        CHECK(c->name, c->found != NULL || !is_there(dir.path, "new"));
    }
}

/* ---- trees of others ------------------------------------------------------------------------- */

struct hostile {
    const char *name; /* of the case */
    const char *path, *link, *hardlink;
    mode_t type;
    bool is_refused; /* else it is skipped, and the file after it arrives */
};

static const struct hostile hostile_cases[] = {
    { "a link to a file of ours", "out", "../outside/secret", NULL, AE_IFLNK, false },
    { "an absolute link", "out", "/etc", NULL, AE_IFLNK, false },
    { "a link that stays inside", "out", "after", NULL, AE_IFLNK, false },
    { "a hard link to a file of ours", "out", NULL, "../outside/secret", AE_IFREG, false },
    { "a pipe", "out", NULL, NULL, AE_IFIFO, false },
    { "a device", "out", NULL, NULL, AE_IFCHR, false },
    { "a name that leaves", "../outside/secret", NULL, NULL, AE_IFREG, true },
    { "a name that leaves later", "sub/../../outside/secret", NULL, NULL, AE_IFREG, true },
    { "an absolute name", "/tmp/berth-test-absolute", NULL, NULL, AE_IFREG, true },
    { "a name through a link that is there", "there/secret", NULL, NULL, AE_IFREG, true },
};

static void tar_add(struct archive *archive, const char *path, mode_t type, const char *link,
                    const char *hardlink)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, path);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 04755);
    if (link != NULL)
        archive_entry_set_symlink(entry, link);
    if (hardlink != NULL)
        archive_entry_set_hardlink(entry, hardlink);
    bool has_bytes = type == AE_IFREG && hardlink == NULL;
    archive_entry_set_size(entry, has_bytes ? 4 : 0);
    CHECK(path, archive_write_header(archive, entry) == ARCHIVE_OK);
    CHECK(path, !has_bytes || archive_write_data(archive, "evil", 4) == 4);
    archive_entry_free(entry);
}

static int hostile_tar(const struct hostile *c)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct archive *archive = archive_write_new();
    (void)archive_write_set_format_pax(archive);
    CHECK("open", archive_write_open_fd(archive, fd) == ARCHIVE_OK);
    tar_add(archive, c->path, c->type, c->link, c->hardlink);
    if (c->link != NULL) /* and through it */
        tar_add(archive, "after", AE_IFREG, NULL, NULL);
    else
        tar_add(archive, "sub/after", AE_IFREG, NULL, NULL);
    CHECK("close", archive_write_close(archive) == ARCHIVE_OK);
    (void)archive_write_free(archive);
    return fd;
}

/* `to` has a link of its own that leads out: ../outside. */
static void hostile_unpack(const struct hostile *c, const char *to)
{
    AUTO(fd) int tar = hostile_tar(c);
    AUTO(buf) struct buf bytes = { 0 };
    struct tree_child reader;
    struct error e = { 0 };
    digest_of(tar, &bytes);
    CHECK_OK(c->name, tree_spawn_read(to, TREE_BRIEF, &reader, &e), &e);
    (void)signal(SIGPIPE, SIG_IGN);
    enum err rc = fd_write_full(reader.fd, bytes.data, bytes.size, &e);
    CHECK(c->name, rc == ERR_OK || c->is_refused); /* it may have ended by then */
    CHECK(c->name, (tree_wait(&reader, &e) != ERR_OK) == c->is_refused);
}

static void test_trees_of_others(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, hostile_cases) {
        AUTO(arena) struct arena arena = { 0 };
        AUTO(test_dir) struct test_dir dir = test_dir_new();
        AUTO(buf) struct buf text = { 0 };
        struct error e = { 0 };
        struct stat info;
        const char *outside = arena_format(&arena, "%s/outside", dir.path);
        const char *secret = arena_format(&arena, "%s/secret", outside);
        const char *to = arena_format(&arena, "%s/to", dir.path);
        const char *after =
            arena_format(&arena, "%s/%s", to, c->link != NULL ? "after" : "sub/after");
        CHECK("make", mkdir(outside, 0755) == 0 && mkdir(to, 0755) == 0);
        CHECK("link", symlink("../outside", arena_format(&arena, "%s/there", to)) == 0);
        put(outside, "secret", "ours");
        hostile_unpack(c, to);

        CHECK_OK(c->name, file_read(secret, 64, &text, &e), &e);
        CHECK(c->name, str_is(buf_str(&text), "ours"));
        CHECK(c->name, stat(secret, &info) == 0 && info.st_nlink == 1);
        CHECK(c->name, lstat(arena_format(&arena, "%s/out", to), &info) != 0);
        CHECK(c->name, (lstat(after, &info) == 0) == !c->is_refused);
        CHECK("no set-user-id", c->is_refused || (info.st_mode & 07000) == 0);
        CHECK(c->name, access("/tmp/berth-test-absolute", F_OK) != 0);
    }
}

static void test_refuses_what_is_absent(void **state)
{
    (void)state;
    struct error e = { 0 };
    AUTO(fd) int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    CHECK("absent", tree_write(fd, "/nonexistent", "", TREE_ALL, &e) == ERR_IO);
    CHECK("named", strstr(e.text, "/nonexistent") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_quota_rows_are_one_a_class),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_dry_runs),
        cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_ignore),
        cmocka_unit_test(test_equal_trees_give_equal_bytes),
        cmocka_unit_test(test_tree_there_and_back),
        cmocka_unit_test(test_tree_with_padding),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_trees_of_others),
        cmocka_unit_test(test_refuses_what_is_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
