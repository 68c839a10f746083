/*
 * A runtime that runs nothing, for tests of the agent without root or crun and for simulated load.
 * Its "container" is a forked child that plays one of a few words of the payload's arguments: true
 * | false | exit N | sleep SECONDS | echo TEXT | stubborn (ignores TERM).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "agent/runtime/runtime.h"
#include "os/fd.h"

static void sleep_for(int64_t seconds)
{
    struct timespec left = { .tv_sec = seconds };
    while (nanosleep(&left, &left) != 0)
        continue; /* the signals that end us end us */
}

static int play(const struct grant_payload *payload)
{
    struct str word = payload->args[0];
    struct str argument = payload->arg_count > 1 ? payload->args[1] : STR("0");
    int64_t number = 0;
    if (!str_to_i64(argument, 0, 1000000, &number))
        number = 0;
    if (str_is(word, "echo"))
        (void)!write(STDOUT_FILENO, argument.data, argument.size);
    if (str_is(word, "stubborn"))
        (void)signal(SIGTERM, SIG_IGN);
    if (str_is(word, "stubborn") || str_is(word, "sleep"))
        sleep_for(number);
    if (str_is(word, "exit"))
        return (int)(number & 0xff);
    return str_is(word, "false") ? 1 : 0;
}

static void __attribute__((noreturn))
child(const struct grant_payload *payload, const int fds[RUNTIME_FD_COUNT], pid_t parent)
{
    (void)signal(SIGTERM, SIG_DFL);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    for (int i = RUNTIME_STDIN; i <= RUNTIME_STDERR; i++)
        if (fds[i] >= 0)
            (void)dup2(fds[i], i);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    (void)close_range(3, ~0U, 0);
    _exit(play(payload));
}

static enum err fake_start(const struct runtime_work *work, const int fds[RUNTIME_FD_COUNT],
                           struct process *starter, struct error *e)
{
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    struct grant_payload payload;
    enum err rc = attempt_read_payload(work->dirs, &bytes, e);
    if (rc == ERR_OK)
        rc = grant_payload_decode(buf_str(&bytes), &arena, &payload, e);
    if (rc != ERR_OK)
        return rc;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return err_errno(e, "fork");
    if (pid == 0)
        child(&payload, fds, parent);
    *starter = (struct process){ pid, pidfd_open(pid, 0), false };
    return starter->pidfd >= 0 ? ERR_OK : err_errno(e, "hold the work");
}

/* What starts it is what it is: it goes on, and is the caller's to reap. */
static enum err fake_started(const struct runtime_work *work, struct process *starter, pid_t *init,
                             struct error *e)
{
    (void)work;
    (void)e;
    *init = starter->pid;
    fd_close(fd_take(&starter->pidfd));
    return ERR_OK;
}

static enum err fake_limit_cpu(const struct runtime_work *work, uint32_t cpu_milli, struct error *e)
{
    (void)work;
    (void)cpu_milli;
    (void)e;
    return ERR_OK;
}

static enum err fake_exec(const struct runtime_work *work, const struct runtime_exec *exec,
                          pid_t *pid, struct error *e)
{
    (void)work;
    (void)exec;
    (void)pid;
    return err_set(e, ERR_UNAVAILABLE, "simulated work has nothing to run a command in");
}

static int64_t fake_oom_kills(const struct runtime_work *work)
{
    (void)work;
    return 0;
}

/* The child dies with its shim, and while the shim lives it kills the child itself. */
static void fake_kill(const struct runtime_work *work)
{
    (void)work;
}

static bool fake_remove(const struct runtime_work *work)
{
    (void)work;
    return true;
}

const struct runtime runtime_fake = {
    .name = "fake",
    .start = fake_start,
    .started = fake_started,
    .limit_cpu = fake_limit_cpu,
    .exec = fake_exec,
    .oom_kills = fake_oom_kills,
    .kill = fake_kill,
    .remove = fake_remove,
};
