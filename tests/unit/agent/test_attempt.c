#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/attempt.h"
#include "os/fd.h"
#include "unit/test.h"
#include "unit/test_dir.h"

struct fixture {
    struct test_dir dir;
    struct test_dir memory;
    struct attempt_dirs dirs;
};

static struct fixture fixture_new(void)
{
    struct fixture f = { .dir = test_dir_new(), .memory = test_dir_new() };
    struct error e = { 0 };
    CHECK_OK("open", attempt_dirs_open(f.dir.path, f.memory.path, &f.dirs, &e), &e);
    return f;
}

static void fixture_done(struct fixture *f)
{
    attempt_dirs_done(&f->dirs);
    test_dir_remove(&f->dir);
    test_dir_remove(&f->memory);
}
DEFINE_CLEANUP_AT(fixture, struct fixture, fixture_done)

static void names_come_back(void **state)
{
    (void)state;
    char name[ATTEMPT_NAME_MAX];
    struct id id = { 0x0123456789abcdef, 0xfedcba9876543210 };
    struct id found;
    uint32_t attempt = 0;
    CHECK("parse", attempt_parse(attempt_name(id, UINT32_MAX, name), &found, &attempt) &&
                       id_eq(id, found) && attempt == UINT32_MAX);
    static const char *const wrong[] = { "",
                                         ".",
                                         "..",
                                         "alc_",
                                         "alc_00000000000000000000000000",
                                         "alc_00000000000000000000000000.0",
                                         "alc_00000000000000000000000000.x",
                                         "wl_00000000000000000000000000.1",
                                         "alc_00000000000000000000000000.4294967296" };
    FOR_EACH_CASE (c, wrong)
        CHECK(*c, !attempt_parse(*c, &found, &attempt));
}

static void a_record_is_read_whole_or_not_at_all(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new();
    struct attempt_status status = { .state = ATTEMPT_EXITED, .exit_code = 7, .ended_ns = 9 };
    struct attempt_status found = { 0 };
    struct error e = { 0 };
    char path[128];
    char bytes[sizeof(status)];
    (void)snprintf(path, sizeof(path), "%s/status", f.dir.path);
    CHECK("absent", attempt_read_status(&f.dirs, &found, NULL) == ERR_NOT_FOUND);
    CHECK_OK("write", attempt_write_status(&f.dirs, &status, &e), &e);
    CHECK_OK("read", attempt_read_status(&f.dirs, &found, &e), &e);
    CHECK("the same", found.exit_code == 7 && found.ended_ns == 9);
    AUTO(fd) int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK("open", pread(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
    for (size_t at = 0; at < sizeof(bytes); at++) {
        char flipped = (char)(bytes[at] ^ 1);
        CHECK("flip", pwrite(fd, &flipped, 1, (off_t)at) == 1);
        CHECK("found", attempt_read_status(&f.dirs, &found, NULL) == ERR_CORRUPT);
        CHECK("back", pwrite(fd, &bytes[at], 1, (off_t)at) == 1);
    }
    CHECK("cut", ftruncate(fd, (off_t)sizeof(bytes) - 1) == 0 &&
                     attempt_read_status(&f.dirs, &found, NULL) == ERR_CORRUPT);
}

static void an_end_counts_before_its_rename(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new();
    struct attempt_status running = { .state = ATTEMPT_RUNNING };
    struct attempt_status ended = { .state = ATTEMPT_EXITED, .exit_code = 3 };
    struct attempt_status found = { 0 };
    struct error e = { 0 };
    CHECK_OK("ended", attempt_write_status(&f.dirs, &ended, &e), &e);
    CHECK_OK("running", attempt_write_status(&f.dirs, &running, &e), &e);
    CHECK_OK("read", attempt_read_status(&f.dirs, &found, &e), &e);
    CHECK("the end wins", found.state == ATTEMPT_EXITED && found.exit_code == 3);
    CHECK("as a power cut leaves it",
          renameat(f.dirs.disk, "status", f.dirs.disk, "status.new") == 0);
    CHECK_OK("read", attempt_read_status(&f.dirs, &found, &e), &e);
    CHECK("still", found.state == ATTEMPT_EXITED);
    CHECK("never ended", unlinkat(f.dirs.disk, "status.new", 0) == 0);
    CHECK_OK("read", attempt_read_status(&f.dirs, &found, &e), &e);
    CHECK("running", found.state == ATTEMPT_RUNNING);
}

static void a_spec_carries_its_payload(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new();
    AUTO(buf) struct buf payload = { 0 };
    struct attempt_spec spec = { .attempt = 4, .log_quota_bytes = 5 };
    struct attempt_spec found;
    struct error e = { 0 };
    CHECK_OK("write", attempt_write_spec(&f.dirs, &spec, STR("a payload"), &e), &e);
    CHECK("once", attempt_write_spec(&f.dirs, &spec, STR("b"), NULL) == ERR_IO);
    CHECK_OK("read", attempt_read_spec(&f.dirs, &found, &e), &e);
    CHECK("spec", found.attempt == 4 && found.log_quota_bytes == 5);
    CHECK_OK("payload", attempt_read_payload(&f.dirs, &payload, &e), &e);
    CHECK("payload", str_is(buf_str(&payload), "a payload"));
}

static void words_of_both_sides_are_kept(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new();
    struct attempt_reason reason = { .cause = "drained" };
    struct attempt_said said = { .checkpoints = 3, .extended_s = 60, .checkpointed_ns = 5 };
    struct attempt_reason why;
    struct attempt_said heard;
    struct error e = { 0 };
    CHECK("nobody has said why", attempt_read_reason(&f.dirs, &why, NULL) == ERR_NOT_FOUND);
    CHECK("nor anything", attempt_read_said(&f.dirs, &heard, NULL) == ERR_NOT_FOUND);
    CHECK_OK("write", attempt_write_reason(&f.dirs, &reason, &e), &e);
    CHECK_OK("write", attempt_write_said(&f.dirs, &said, &e), &e);
    said.checkpoints = 4;
    CHECK_OK("again", attempt_write_said(&f.dirs, &said, &e), &e);
    CHECK_OK("read", attempt_read_reason(&f.dirs, &why, &e), &e);
    CHECK_OK("read", attempt_read_said(&f.dirs, &heard, &e), &e);
    CHECK("why", strcmp(why.cause, "drained") == 0);
    CHECK("the last words", heard.checkpoints == 4 && heard.extended_s == 60);
}

static void the_end_has_its_room_from_the_beginning(void **state)
{
    (void)state;
    AUTO(fixture) struct fixture f = fixture_new();
    struct attempt_status status = { .state = ATTEMPT_EXITED, .exit_code = 7 };
    struct attempt_status found;
    struct attempt_stop order = { .end = IPC_END_STOPPED, .grace_s = 5 };
    struct attempt_stop stop;
    struct error e = { 0 };
    CHECK_OK("reserve", attempt_reserve(&f.dirs, &e), &e);
    CHECK("room is no end", attempt_read_status(&f.dirs, &found, NULL) == ERR_NOT_FOUND);
    CHECK("nor an order", attempt_read_stop(&f.dirs, &stop, NULL) == ERR_NOT_FOUND);
    /* No file may grow beyond what is there, as on a disk that is full. */
    struct rlimit before;
    struct rlimit full;
    CHECK("limit", getrlimit(RLIMIT_FSIZE, &before) == 0);
    full = (struct rlimit){ MAX_OF(sizeof(status), sizeof(stop)), before.rlim_max };
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK("limit", setrlimit(RLIMIT_FSIZE, &full) == 0);
    CHECK_OK("end", attempt_write_status(&f.dirs, &status, &e), &e);
    CHECK_OK("order", attempt_write_stop(&f.dirs, &order, &e), &e);
    full.rlim_cur = 0;
    CHECK("limit", setrlimit(RLIMIT_FSIZE, &full) == 0);
    CHECK("no room", attempt_write_status(&f.dirs, &status, NULL) == ERR_IO);
    CHECK("limit", setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK_OK("read", attempt_read_status(&f.dirs, &found, &e), &e);
    CHECK("the end", found.state == ATTEMPT_EXITED && found.exit_code == 7);
    CHECK_OK("read", attempt_read_stop(&f.dirs, &stop, &e), &e);
    CHECK("the order", stop.grace_s == 5);
}

static void memory_may_be_gone(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_stop stop = { .grace_s = 1 };
    struct attempt_status status;
    struct error e = { 0 };
    enum attempt_holder holder = ATTEMPT_HELD;
    int pidfd = -1;
    CHECK("nothing",
          attempt_dirs_open("/nonexistent/a", "/nonexistent/b", &dirs, NULL) == ERR_NOT_FOUND);
    CHECK_OK("open", attempt_dirs_open(dir.path, "/nonexistent/b", &dirs, &e), &e);
    CHECK("status", attempt_read_status(&dirs, &status, NULL) == ERR_NOT_FOUND);
    CHECK("stop", attempt_read_stop(&dirs, &stop, NULL) == ERR_NOT_FOUND);
    CHECK("order", attempt_write_stop(&dirs, &stop, NULL) == ERR_NOT_FOUND);
    CHECK_OK("holder", attempt_holder(&dirs, &holder, &pidfd, &e), &e);
    CHECK("nobody", holder == ATTEMPT_NEVER_RAN);
}

/* Plays a shim: holds the lock it was given, says so, and lives until the pipe closes. */
static pid_t play_shim(int lock_fd, bool signs, int ready_fd, int wait_fd)
{
    pid_t pid = fork();
    if (pid == 0) {
        char byte = 0;
        if (signs)
            (void)!attempt_lock_sign(lock_fd, getpid(), NULL);
        (void)!write(ready_fd, &byte, 1);
        (void)!read(wait_fd, &byte, 1);
        _exit(0);
    }
    return pid;
}

static void hold_and_release(bool signs, enum attempt_holder while_held, enum attempt_holder after)
{
    AUTO(fixture) struct fixture f = fixture_new();
    struct error e = { 0 };
    enum attempt_holder holder = ATTEMPT_LEFT;
    int pidfd = -1;
    int lock_fd = -1;
    int ends[2];
    CHECK_OK("pipe", fd_pipe(ends, &e), &e);
    CHECK_OK("nobody", attempt_holder(&f.dirs, &holder, &pidfd, &e), &e);
    CHECK("nobody", holder == ATTEMPT_NEVER_RAN && pidfd == -1);
    CHECK_OK("lock", attempt_lock(&f.dirs, &lock_fd, &e), &e);
    int second = -1;
    CHECK("only once", attempt_lock(&f.dirs, &second, NULL) == ERR_IO && second == -1);

    fd_close(fd_take(&ends[1]));
    CHECK_OK("pipe", (fd_close(ends[0]), fd_pipe(ends, &e)), &e);
    int keep_open = ends[1];
    (void)fcntl(keep_open, F_SETFD, FD_CLOEXEC);
    int ready[2];
    char byte = 1;
    CHECK_OK("pipe", fd_pipe(ready, &e), &e);
    pid_t pid = play_shim(lock_fd, signs, ready[1], ends[0]);
    CHECK("fork", pid > 0);
    fd_close(lock_fd);
    fd_close(ready[1]);
    CHECK("ready", read(ready[0], &byte, 1) == 1);
    fd_close(ready[0]);
    CHECK_OK("held", attempt_holder(&f.dirs, &holder, &pidfd, &e), &e);
    CHECK("held", holder == while_held && (pidfd >= 0) == (while_held == ATTEMPT_HELD));
    fd_close(pidfd);
    CHECK("end", kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    fd_close(ends[0]);
    fd_close(keep_open);
    CHECK_OK("after", attempt_holder(&f.dirs, &holder, &pidfd, &e), &e);
    CHECK("after", holder == after && pidfd == -1);
}

static void the_lock_tells_who_lives(void **state)
{
    (void)state;
    hold_and_release(true, ATTEMPT_HELD, ATTEMPT_LEFT);
    hold_and_release(false, ATTEMPT_STARTING, ATTEMPT_NEVER_RAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_back),
        cmocka_unit_test(a_record_is_read_whole_or_not_at_all),
        cmocka_unit_test(an_end_counts_before_its_rename),
        cmocka_unit_test(a_spec_carries_its_payload),
        cmocka_unit_test(words_of_both_sides_are_kept),
        cmocka_unit_test(the_end_has_its_room_from_the_beginning),
        cmocka_unit_test(memory_may_be_gone),
        cmocka_unit_test(the_lock_tells_who_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
