#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/process.h"
#include "unit/test.h"
#include "unit/test_dir.h"

enum { LONG_MS = 20000, OUTPUT_MAX = 64 * 1024 };

/* tests/unit/os/child.c; its path comes from meson. */
static const char *child_path(void)
{
    const char *path = getenv("TEST_OS_CHILD");
    CHECK("run by meson", path != NULL);
    return path;
}

static struct process_run run_of(const char *const *argv)
{
    return (struct process_run){ .spec = { .argv = argv },
                                 .output_max = OUTPUT_MAX,
                                 .timeout_ms = LONG_MS };
}

static struct mono in_ms(int64_t ms)
{
    return (struct mono){ clock_monotonic().ns + ms * NS_PER_MS };
}

static void expect_output(const struct process_run *run, const char *output)
{
    struct error e = { 0 };
    AUTO(process_result) struct process_result result = { 0 };
    CHECK_OK(run->spec.argv[1], process_check(run, &result, &e), &e);
    buf_add_char(&result.output, '|');
    buf_add_char(&result.output, '\0');
    char wanted[256];
    (void)snprintf(wanted, sizeof(wanted), "%s|", output);
    assert_string_equal(result.output.data, wanted);
}

static void test_arguments_reach_it_as_they_are(void **state)
{
    (void)state;
    const char *argv[] = { child_path(), "arguments", "a b", "", "$HOME `id` ; rm *", "\"", NULL };
    struct process_run run = run_of(argv);
    expect_output(&run, "[a b][][$HOME `id` ; rm *][\"]");
}

static void test_environment_is_exact(void **state)
{
    (void)state;
    const char *argv[] = { child_path(), "environment", NULL };
    const char *env[] = { "A=1", "B=x y", NULL };
    const char *nothing[] = { NULL };
    struct process_run run = run_of(argv);
    run.spec.env = env;
    expect_output(&run, "A=1\nB=x y\n");
    run.spec.env = nothing;
    expect_output(&run, "");

    struct error e = { 0 };
    AUTO(process_result) struct process_result result = { 0 };
    run.spec.env = NULL;
    CHECK_OK("ours", process_check(&run, &result, &e), &e);
    CHECK("ours", strstr(result.output.data, "TEST_OS_CHILD=") != NULL);
}

static void test_nothing_else_is_open(void **state)
{
    (void)state;
    /* Descriptors of ours that a careless library forgot to mark. */
    AUTO(fd) int leak = open("/dev/null", O_RDONLY);
    AUTO(fd) int high = fcntl(leak, F_DUPFD, 50);
    CHECK("open", leak >= 0 && high >= 50);
    const char *argv[] = { child_path(), "descriptors", NULL };
    struct process_run run = run_of(argv);
    expect_output(&run, "0 1 2 ");
}

static void test_state_is_clean(void **state)
{
    (void)state;
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &blocked, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    const char *argv[] = { child_path(), "state", NULL };
    struct process_run run = run_of(argv);
    expect_output(&run, "blocked=0 ignored=0 death=0 leader=1");
    run.spec.dies_with_us = true;
    expect_output(&run, "blocked=0 ignored=0 death=9 leader=1");
    (void)sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
}

static void test_expendable(void **state)
{
    (void)state;
    const char *argv[] = { "cat", "/proc/self/oom_score_adj", NULL };
    struct process_run run = run_of(argv);
    run.spec.is_expendable = true;
    expect_output(&run, "500\n");
}

static void test_directory(void **state)
{
    (void)state;
    const char *argv[] = { child_path(), "directory", NULL };
    struct process_run run = run_of(argv);
    run.spec.dir = "/proc";
    expect_output(&run, "/proc\n");
    struct error e = { 0 };
    AUTO(process_result) struct process_result result = { 0 };
    run.spec.dir = "/nonexistent";
    CHECK("absent", process_run(&run, &result, &e) == ERR_NOT_FOUND);
    CHECK(e.text, strstr(e.text, "enter the directory") != NULL);
}

static void test_input(void **state)
{
    (void)state;
    struct error e = { 0 };
    const char *argv[] = { child_path(), "copy", NULL };
    struct process_run run = run_of(argv);
    expect_output(&run, "");
    AUTO(buf) struct buf input = { 0 };
    for (int i = 0; i < 60000; i++)
        buf_format(&input, "%d\n", i); /* far more than a pipe holds */
    run.input = buf_str(&input);
    run.output_max = input.size;
    AUTO(process_result) struct process_result result = { 0 };
    CHECK_OK("large", process_check(&run, &result, &e), &e);
    CHECK("same", str_eq(buf_str(&result.output), buf_str(&input)));

    AUTO(process_result) struct process_result unread = { 0 };
    const char *silent[] = { child_path(), "exit", "0", NULL };
    run.spec.argv = silent;
    CHECK_OK("not read", process_check(&run, &unread, &e), &e);
}

static void test_places_descriptors(void **state)
{
    (void)state;
    struct error e = { 0 };
    int ends[2];
    CHECK_OK("pipe", fd_pipe(ends, &e), &e);
    AUTO(fd) int from = ends[0];
    AUTO(fd) int to = ends[1];
    AUTO(fd) int low = fcntl(to, F_DUPFD_CLOEXEC, 3);
    const char *argv[] = { child_path(), "descriptors", NULL };
    /* Sources that are targets of others, one twice, a gap. */
    const int fds[] = { -1, low, -1, to, low, -1, 0 };
    AUTO(process) struct process process = PROCESS_NONE;
    struct process_spec spec = { .argv = argv, .fds = fds, .fd_count = COUNT_OF(fds) };
    CHECK_OK("spawn", process_spawn(&spec, &process, &e), &e);
    struct process_exit exit;
    CHECK_OK("wait", process_wait(&process, in_ms(LONG_MS), &exit, &e), &e);
    CHECK("exit", exit.code == 0 && exit.signal == 0);
    fd_close(fd_take(&to));
    fd_close(fd_take(&low));
    char text[64] = { 0 };
    size_t got = 0;
    CHECK_OK("read", fd_read_full(from, text, sizeof(text) - 1, &got, &e), &e);
    assert_string_equal(text, "0 1 2 3 4 5 6 ");
}

static void test_exits_are_told_apart(void **state)
{
    (void)state;
    struct error e = { 0 };
    const char *seven[] = { child_path(), "exit", "7", NULL };
    const char *die[] = { child_path(), "die", NULL };
    AUTO(process_result) struct process_result result = { 0 };
    struct process_run run = run_of(seven);
    CHECK_OK("seven", process_run(&run, &result, &e), &e);
    CHECK("seven", result.exit.code == 7 && result.exit.signal == 0);
    process_result_done(&result);
    run = run_of(die);
    CHECK_OK("killed", process_run(&run, &result, &e), &e);
    CHECK("killed", result.exit.code == 137 && result.exit.signal == SIGKILL);
}

static void test_check_tells_the_last_complaint(void **state)
{
    (void)state;
    struct error e = { 0 };
    AUTO(process_result) struct process_result result = { 0 };
    const char *argv[] = { child_path(), "complain", NULL };
    struct process_run run = run_of(argv);
    CHECK("fails", process_check(&run, &result, &e) == ERR_IO);
    CHECK(e.text, strstr(e.text, "ended with status 3: the disk is on fire") != NULL);
    CHECK("no result", result.output.data == NULL && result.errors.data == NULL);
}

static void test_programs_are_found_in_path_only(void **state)
{
    (void)state;
    struct error e = { 0 };
    AUTO(process) struct process process = PROCESS_NONE;
    const char *absent[] = { "berth-no-such-program", NULL };
    struct process_spec spec = { .argv = absent };
    CHECK("absent", process_spawn(&spec, &process, &e) == ERR_NOT_FOUND);
    const char *absent_path[] = { "/nonexistent/program", NULL };
    spec.argv = absent_path;
    CHECK("absent path", process_spawn(&spec, &process, &e) == ERR_NOT_FOUND);
    const char *not_executable[] = { "/etc/hostname", NULL };
    spec.argv = not_executable;
    CHECK("not executable", process_spawn(&spec, &process, &e) == ERR_IO);
    const char *other_name[] = { "true", NULL };
    spec.argv = other_name;
    spec.program = "/nonexistent/program";
    CHECK("not by its name", process_spawn(&spec, &process, &e) == ERR_NOT_FOUND);
    CHECK("no process", process.pidfd == -1);
    CHECK("no zombie", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);

    AUTO(process_result) struct process_result result = { 0 };
    const char *found[] = { "true", NULL };
    struct process_run run = run_of(found);
    CHECK_OK("found", process_check(&run, &result, &e), &e);
}

static void test_too_much_output(void **state)
{
    (void)state;
    struct error e = { 0 };
    AUTO(process_result) struct process_result result = { 0 };
    const char *argv[] = { child_path(), "flood", NULL };
    struct process_run run = run_of(argv);
    CHECK("stdout", process_run(&run, &result, &e) == ERR_LIMIT);
    const char *errors[] = { child_path(), "flood-errors", NULL };
    run = run_of(errors);
    run.timeout_ms = 100;
    CHECK("stderr is cut, and time runs out", process_run(&run, &result, &e) == ERR_UNAVAILABLE);
    CHECK("no zombie", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void test_timeout(void **state)
{
    (void)state;
    struct error e = { 0 };
    AUTO(process_result) struct process_result result = { 0 };
    const char *argv[] = { child_path(), "wait", NULL };
    struct process_run run = run_of(argv);
    run.timeout_ms = 50;
    CHECK("run", process_run(&run, &result, &e) == ERR_UNAVAILABLE);
    CHECK(e.text, strstr(e.text, "took longer than 50 ms") != NULL);

    AUTO(process) struct process process = PROCESS_NONE;
    struct process_spec spec = { .argv = argv };
    struct process_exit exit;
    CHECK_OK("spawn", process_spawn(&spec, &process, &e), &e);
    CHECK("wait", process_wait(&process, in_ms(20), &exit, &e) == ERR_UNAVAILABLE);
    CHECK("still ours", process.pidfd >= 0);
    process_signal(&process, SIGTERM);
    CHECK_OK("ends", process_wait(&process, in_ms(LONG_MS), &exit, &e), &e);
    CHECK("by the signal", exit.signal == SIGTERM && exit.code == 128 + SIGTERM);
    process_signal(&process, SIGKILL); /* a no-op by now */
}

/* Gone, or a zombie whose parent has not looked yet. */
static bool has_ended(pid_t pid)
{
    AUTO(fd) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return true;
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    return poll(&poll_fd, 1, LONG_MS) == 1;
}

static pid_t read_number(int fd)
{
    char text[32] = { 0 };
    size_t used = 0;
    while (used < sizeof(text) - 1 && read(fd, text + used, 1) == 1 && text[used] != '\n')
        used++;
    return (pid_t)strtol(text, NULL, 10);
}

static void test_done_ends_the_whole_group(void **state)
{
    (void)state;
    struct error e = { 0 };
    int ends[2];
    CHECK_OK("pipe", fd_pipe(ends, &e), &e);
    AUTO(fd) int from = ends[0];
    AUTO(fd) int to = ends[1];
    const char *argv[] = { child_path(), "wait-stubborn", NULL };
    const int fds[] = { -1, to };
    struct process process = PROCESS_NONE;
    struct process_spec spec = {
        .argv = argv, .fds = fds, .fd_count = COUNT_OF(fds), .is_group_leader = true
    };
    CHECK_OK("spawn", process_spawn(&spec, &process, &e), &e);
    pid_t grandchild = read_number(from);
    CHECK("has a child", grandchild > 1);
    process_done(&process);
    CHECK("grandchild ended", has_ended(grandchild));
    CHECK("released", process.pidfd == -1 && process.pid == -1);
    process_done(&process);
}

static void test_a_daemon_does_not_hold_us(void **state)
{
    (void)state;
    struct error e = { 0 };
    AUTO(process_result) struct process_result result = { 0 };
    const char *argv[] = { child_path(), "leave-a-daemon", NULL };
    struct process_run run = run_of(argv);
    CHECK_OK("returns", process_check(&run, &result, &e), &e);
    pid_t daemon_pid = (pid_t)strtol(result.output.data, NULL, 10);
    CHECK("left one", daemon_pid > 1);
    CHECK("which still runs", kill(daemon_pid, SIGKILL) == 0);
    CHECK("and ends", has_ended(daemon_pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments_reach_it_as_they_are),
        cmocka_unit_test(test_environment_is_exact),
        cmocka_unit_test(test_nothing_else_is_open),
        cmocka_unit_test(test_state_is_clean),
        cmocka_unit_test(test_expendable),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_places_descriptors),
        cmocka_unit_test(test_exits_are_told_apart),
        cmocka_unit_test(test_check_tells_the_last_complaint),
        cmocka_unit_test(test_programs_are_found_in_path_only),
        cmocka_unit_test(test_too_much_output),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_done_ends_the_whole_group),
        cmocka_unit_test(test_a_daemon_does_not_hold_us),
    };
    return cmocka_run_group_tests_name("os/process", tests, NULL, NULL);
}
