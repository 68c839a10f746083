/*
 * cgroup.c against directories that look like v1, hybrid and v2 machines. Where this is
 * root, the trees of v2 are real ones: they can be mounted anywhere, and have no
 * controllers on a hybrid machine.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agent/runtime/cgroup.h"
#include "os/fd.h"
#include "os/file.h"
#include "unit/test_dir.h"

static const char cgroup[] = "/berth/alc_x.1";

static void put(const struct test_dir *root, const char *name, const char *text)
{
    struct error e;
    char path[256];
    test_dir_path(root, name, path);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    CHECK_OK(name, file_make_dirs(path, 0700, &e), &e);
    *slash = '/';
    CHECK_OK(name, file_write_atomic(path, str_of(text), 0600, &e), &e);
}

static bool is_there(const struct test_dir *root, const char *name)
{
    char path[256];
    return access(test_dir_path(root, name, path), F_OK) == 0;
}

static void has_text(const struct test_dir *root, const char *name, const char *text)
{
    struct error e;
    char path[256];
    AUTO(buf) struct buf found = { 0 };
    CHECK_OK(name, file_read(test_dir_path(root, name, path), 100, &found, &e), &e);
    CHECK(name, str_is(buf_str(&found), text));
}

/* A process that waits until it is killed. */
static pid_t sleeper(void)
{
    pid_t pid = fork();
    CHECK("fork", pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
        for (;;)
            (void)pause();
    }
    return pid;
}

/* Blocks until it has ended: a kill that does not work is told by the test's limit of time. */
static bool was_killed(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void the_cpu_is_limited_in_the_words_of_each_version(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum cgroup_mode mode;
        uint32_t milli;
        const char *dir;
        const char *files[3][2];
    } cases[] = {
        { "v1",
          CGROUP_MODE_V1,
          1500,
          "cpu/berth/alc_x.1/",
          { { "cpu.shares", "1536" },
            { "cpu.cfs_period_us", "100000" },
            { "cpu.cfs_quota_us", "150000" } } },
        { "hybrid, the least there is",
          CGROUP_MODE_HYBRID,
          10,
          "cpu/berth/alc_x.1/",
          { { "cpu.shares", "10" },
            { "cpu.cfs_period_us", "100000" },
            { "cpu.cfs_quota_us", "1000" } } },
        { "v2",
          CGROUP_MODE_V2,
          1500,
          "berth/alc_x.1/",
          { { "cpu.weight", "59" }, { "cpu.max", "150000 100000" } } },
        { "v2, the least there is",
          CGROUP_MODE_V2,
          1,
          "berth/alc_x.1/",
          { { "cpu.weight", "1" }, { "cpu.max", "100 100000" } } },
        { "v2, many cores",
          CGROUP_MODE_V2,
          256000,
          "berth/alc_x.1/",
          { { "cpu.weight", "10000" }, { "cpu.max", "25600000 100000" } } },
    };
    FOR_EACH_CASE (c, cases) {
        AUTO(test_dir) struct test_dir root = test_dir_new();
        char path[256];
        struct error e = { 0 };
        CHECK("no such cgroup",
              cgroup_limit_cpu(root.path, c->mode, cgroup, c->milli, NULL) == ERR_IO);
        for (size_t i = 0; i < 3 && c->files[i][0] != NULL; i++) {
            (void)snprintf(path, sizeof(path), "%s%s", c->dir, c->files[i][0]);
            put(&root, path, "");
        }
        CHECK_OK(c->name, cgroup_limit_cpu(root.path, c->mode, cgroup, c->milli, &e), &e);
        for (size_t i = 0; i < 3 && c->files[i][0] != NULL; i++) {
            (void)snprintf(path, sizeof(path), "%s%s", c->dir, c->files[i][0]);
            has_text(&root, path, c->files[i][1]);
        }
    }
}

static void kills_for_memory_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum cgroup_mode mode;
        const char *file, *text;
        int64_t kills;
    } cases[] = {
        { "v1", CGROUP_MODE_V1, "memory/berth/alc_x.1/memory.oom_control",
          "oom_kill_disable 0\nunder_oom 1\noom_kill 3\n", 3 },
        { "hybrid", CGROUP_MODE_HYBRID, "memory/berth/alc_x.1/memory.oom_control",
          "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1 },
        { "v2", CGROUP_MODE_V2, "berth/alc_x.1/memory.events",
          "low 0\nhigh 0\nmax 9\noom 5\noom_kill 4\noom_group_kill 6\n", 4 },
        { "v2, none", CGROUP_MODE_V2, "berth/alc_x.1/memory.events", "oom 5\noom_kill 0\n", 0 },
        { "no file", CGROUP_MODE_V2, "berth/other/memory.events", "oom_kill 4\n", 0 },
        { "an old kernel", CGROUP_MODE_V1, "memory/berth/alc_x.1/memory.oom_control",
          "oom_kill_disable 0\nunder_oom 1\n", 0 },
        { "no number", CGROUP_MODE_V2, "berth/alc_x.1/memory.events", "oom_kill x\noom_kill\n", 0 },
    };
    FOR_EACH_CASE (c, cases) {
        AUTO(test_dir) struct test_dir root = test_dir_new();
        put(&root, c->file, c->text);
        CHECK(c->name, cgroup_oom_kills(root.path, c->mode, cgroup) == c->kills);
    }
}

static void swap_is_limited_where_the_kernel_can(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir root = test_dir_new();
    CHECK("v1 without", !cgroup_has_swap_limit(root.path, CGROUP_MODE_V1));
    CHECK("hybrid without", !cgroup_has_swap_limit(root.path, CGROUP_MODE_HYBRID));
    CHECK("v2", cgroup_has_swap_limit(root.path, CGROUP_MODE_V2));
    put(&root, "memory/memory.memsw.limit_in_bytes", "0\n");
    CHECK("v1 with", cgroup_has_swap_limit(root.path, CGROUP_MODE_V1));
    CHECK("hybrid with", cgroup_has_swap_limit(root.path, CGROUP_MODE_HYBRID));
}

static void kills_at_once_where_the_kernel_can(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum cgroup_mode mode;
        const char *file;
    } cases[] = {
        { "hybrid", CGROUP_MODE_HYBRID, "unified/berth/alc_x.1/cgroup.kill" },
        { "v2", CGROUP_MODE_V2, "berth/alc_x.1/cgroup.kill" },
    };
    FOR_EACH_CASE (c, cases) {
        AUTO(test_dir) struct test_dir root = test_dir_new();
        put(&root, c->file, "");
        cgroup_kill(root.path, c->mode, cgroup);
        has_text(&root, c->file, "1");
    }
}

static void kills_one_by_one_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum cgroup_mode mode;
        const char *file;
    } cases[] = {
        { "v1", CGROUP_MODE_V1, "pids/berth/alc_x.1/cgroup.procs" },
        { "hybrid, an old kernel", CGROUP_MODE_HYBRID, "pids/berth/alc_x.1/cgroup.procs" },
        { "v2, an old kernel", CGROUP_MODE_V2, "berth/alc_x.1/cgroup.procs" },
    };
    FOR_EACH_CASE (c, cases) {
        char text[100];
        AUTO(test_dir) struct test_dir root = test_dir_new();
        pid_t pids[] = { sleeper(), sleeper() };
        /* 0 is a process of another pid namespace, 1 and -1 are nobody's to kill. */
        (void)snprintf(text, sizeof(text), "0\n%d\n1\n-1\nx\n%d\n", pids[0], pids[1]);
        put(&root, c->file, text);
        cgroup_kill(root.path, c->mode, cgroup);
        CHECK(c->name, was_killed(pids[0]) && was_killed(pids[1]));
    }
}

static void nothing_there_is_nothing_to_kill(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir root = test_dir_new();
    put(&root, "pids/berth/alc_x.1/cgroup.procs", "");
    for (int mode = CGROUP_MODE_NONE; mode < CGROUP_MODE_COUNT; mode++)
        cgroup_kill(root.path, (enum cgroup_mode)mode, cgroup);
    CHECK("no file is made", !is_there(&root, "unified") && !is_there(&root, "berth"));
}

static void make_cgroup(const struct test_dir *root, const char *tree)
{
    struct error e;
    char name[128];
    char path[256];
    (void)snprintf(name, sizeof(name), "%s%s", tree, cgroup);
    CHECK_OK(tree, file_make_dirs(test_dir_path(root, name, path), 0700, &e), &e);
}

static void is_removed_from_every_tree(void **state)
{
    (void)state;
    static const char *const trees[] = { "memory", "cpu,cpuacct", "pids", "unified" };
    AUTO(test_dir) struct test_dir root = test_dir_new();
    char path[256];
    for (size_t i = 0; i < COUNT_OF(trees); i++)
        make_cgroup(&root, trees[i]);
    CHECK("link", symlink("cpu,cpuacct", test_dir_path(&root, "cpu", path)) == 0);
    put(&root, "freezer/other/x", ""); /* a tree that does not have it */
    CHECK("removed", cgroup_remove(root.path, CGROUP_MODE_HYBRID, cgroup));
    CHECK("again", cgroup_remove(root.path, CGROUP_MODE_V1, cgroup));
    for (size_t i = 0; i < COUNT_OF(trees); i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "%s%s", trees[i], cgroup);
        CHECK(trees[i], !is_there(&root, name));
        (void)snprintf(name, sizeof(name), "%s/berth", trees[i]);
        CHECK("nothing above it", is_there(&root, name));
    }
    put(&root, "pids/berth/alc_x.1/child/x", ""); /* as one that is in use */
    make_cgroup(&root, "memory");
    CHECK("one is busy", !cgroup_remove(root.path, CGROUP_MODE_V1, cgroup));
    CHECK("the others go", !is_there(&root, "memory/berth/alc_x.1"));
    CHECK("no such root", !cgroup_remove("/nothing/here", CGROUP_MODE_V1, cgroup));
}

static void is_removed_from_the_one_tree_of_v2(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir root = test_dir_new();
    make_cgroup(&root, "");
    make_cgroup(&root, "/memory"); /* no tree here, but somebody's cgroup */
    CHECK("removed", cgroup_remove(root.path, CGROUP_MODE_V2, cgroup));
    CHECK("gone", !is_there(&root, "berth/alc_x.1"));
    CHECK("and nothing else", is_there(&root, "memory/berth/alc_x.1"));
    CHECK("again", cgroup_remove(root.path, CGROUP_MODE_V2, cgroup));
    put(&root, "berth/alc_x.1/child/x", "");
    CHECK("busy", !cgroup_remove(root.path, CGROUP_MODE_V2, cgroup));
}

/* In a mount namespace of this test: false where that is not allowed. */
static bool mount_at(const char *path, const char *type)
{
    static bool is_private;
    if (!is_private)
        is_private =
            unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return is_private && mount("none", path, type, 0, NULL) == 0;
}

static void tells_the_kinds_of_machine_apart(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir root = test_dir_new();
    char v1[256];
    char unified[256];
    test_dir_path(&root, "v1", v1);
    test_dir_path(&root, "v1/unified", unified);
    CHECK("nothing", cgroup_detect("/nothing/here") == CGROUP_MODE_NONE);
    CHECK("no cgroups", cgroup_detect("/proc") == CGROUP_MODE_NONE);
    CHECK("directory", mkdir(v1, 0700) == 0);
    if (!mount_at(v1, "tmpfs"))
        SKIP_UNLESS_ROOT("to mount a file system");
    CHECK("v1", cgroup_detect(v1) == CGROUP_MODE_V1);
    CHECK("directory", mkdir(unified, 0700) == 0);
    CHECK("still v1", cgroup_detect(v1) == CGROUP_MODE_V1);
    if (mount_at(unified, "cgroup2")) {
        CHECK("hybrid", cgroup_detect(v1) == CGROUP_MODE_HYBRID);
        CHECK("v2", cgroup_detect(unified) == CGROUP_MODE_V2);
        (void)umount(unified);
    }
    (void)umount(v1);
}

/* Beside the cgroup that this process is in, if it may make one there. */
static bool make_real(const char *root, char path[256])
{
    char full[512];
    (void)snprintf(path, 256, "/berth-test-%d", (int)getpid());
    (void)snprintf(full, sizeof(full), "%s%s", root, path);
    return mkdir(full, 0700) == 0;
}

static void a_real_tree_of_v2_kills_and_is_removed(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir root = test_dir_new();
    char path[256];
    char file[600];
    char text[16];
    if (!mount_at(root.path, "cgroup2"))
        SKIP_UNLESS_ROOT("to mount cgroups");
    if (!make_real(root.path, path)) {
        (void)umount(root.path);
        SKIP_UNLESS_ROOT("to make a cgroup");
    }
    pid_t pid = sleeper();
    (void)snprintf(file, sizeof(file), "%s%s/cgroup.procs", root.path, path);
    (void)snprintf(text, sizeof(text), "%d", pid);
    AUTO(fd) int fd = open(file, O_WRONLY | O_CLOEXEC);
    bool is_in = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    bool is_kept = !cgroup_remove(root.path, CGROUP_MODE_V2, path);
    cgroup_kill(root.path, CGROUP_MODE_V2, path);
    bool is_killed = is_in && was_killed(pid);
    bool is_removed = cgroup_remove(root.path, CGROUP_MODE_V2, path);
    (void)umount(root.path);
    CHECK("a process is in it", is_in);
    CHECK("it is not removed before it is empty", is_kept);
    CHECK("it is killed", is_killed);
    CHECK("it is removed", is_removed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_is_limited_in_the_words_of_each_version),
        cmocka_unit_test(kills_for_memory_are_counted),
        cmocka_unit_test(swap_is_limited_where_the_kernel_can),
        cmocka_unit_test(kills_at_once_where_the_kernel_can),
        cmocka_unit_test(kills_one_by_one_elsewhere),
        cmocka_unit_test(nothing_there_is_nothing_to_kill),
        cmocka_unit_test(is_removed_from_every_tree),
        cmocka_unit_test(is_removed_from_the_one_tree_of_v2),
        cmocka_unit_test(tells_the_kinds_of_machine_apart),
        cmocka_unit_test(a_real_tree_of_v2_kills_and_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
