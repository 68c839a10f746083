/*
 * berth-init - the first process of a container: starts the workload's program, hands signals on to it,
 * reaps orphans, and ends when it ends.
 *
 * The kernel gives the first process of a pid namespace no default actions: without this a program that
 * does not handle TERM itself would sit out every grace. It runs with the workload's rights and limits,
 * links nothing but the C library, statically, and is started with every workload: keep it small.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/init.h"

enum { STATUS_USAGE = 2, STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127, STATUS_SIGNAL = 128 };
enum { PATH_TEXT_MAX = 4096 };

/* These are faults of our own, and never arrive from outside at a first process. */
static const int own_faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };

static void report(enum init_kind kind, int value, const char *text)
{
    struct init_report record;
    memset(&record, 0, sizeof(record));
    record.kind = (uint32_t)kind;
    record.value = value;
    memcpy(record.text, text, strnlen(text, sizeof(record.text) - 1));
    /* Nobody listens when it is started by hand. */
    (void)!write(INIT_REPORT_FD, &record, sizeof(record));
}

static int spawn(const char *path, char **argv, const sigset_t *mask, pid_t *out)
{
    posix_spawnattr_t attributes;
    int rc = posix_spawnattr_init(&attributes);
    if (rc != 0)
        return rc;
    rc = posix_spawnattr_setsigmask(&attributes, mask);
    if (rc == 0)
        rc = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (rc == 0)
        rc = posix_spawn(out, path, NULL, &attributes, argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    return rc;
}

/* As execvp, but never through a shell: a file that is no program is an error. */
static int spawn_from_path(char **argv, const sigset_t *mask, pid_t *out)
{
    const char *rest = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): one thread */
    size_t name_size = strlen(argv[0]) + 1;
    int failure = ENOENT;
    while (rest != NULL && *rest != '\0') {
        char path[PATH_TEXT_MAX];
        const char *directory = rest;
        size_t length = strcspn(rest, ":");
        rest += length + (rest[length] == ':' ? 1 : 0);
        if (length == 0 || length + name_size + 1 > sizeof(path))
            continue;
        memcpy(path, directory, length);
        path[length] = '/';
        memcpy(path + length + 1, argv[0], name_size);
        int rc = spawn(path, argv, mask, out);
        if (rc == 0 || (rc != ENOENT && rc != ENOTDIR && rc != EACCES))
            return rc;
        if (rc == EACCES)
            failure = EACCES;
    }
    return failure;
}

/* Reaps whoever has ended. True: the workload is among them, with *status. */
static bool reap(pid_t workload, int *status)
{
    int found = 0;
    for (pid_t pid = waitpid(-1, &found, WNOHANG); pid > 0; pid = waitpid(-1, &found, WNOHANG))
        if (pid == workload) {
            *status = found;
            return true;
        }
    return false;
}

static int serve(pid_t workload, const sigset_t *signals)
{
    int status = 0;
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number == SIGCHLD && reap(workload, &status))
            break;
        if (number > 0 && number != SIGCHLD)
            (void)kill(workload, number); /* it may have ended: then SIGCHLD is next */
    }
    if (WIFSIGNALED(status)) {
        report(INIT_KILLED, WTERMSIG(status), "");
        return STATUS_SIGNAL + WTERMSIG(status);
    }
    report(INIT_EXITED, WEXITSTATUS(status), "");
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        static const char usage[] = "usage: berth-init PROGRAM [ARGUMENT]...\n";
        (void)!write(STDERR_FILENO, usage, sizeof(usage) - 1);
        return STATUS_USAGE;
    }
    sigset_t signals;
    sigset_t before;
    (void)sigfillset(&signals);
    for (size_t i = 0; i < sizeof(own_faults) / sizeof(own_faults[0]); i++)
        (void)sigdelset(&signals, own_faults[i]);
    /* Blocked before the start, so that none is lost; a blocked signal is kept even for a first
     * process. */
    (void)pthread_sigmask(SIG_BLOCK, &signals, &before);
    (void)fcntl(INIT_REPORT_FD, F_SETFD, FD_CLOEXEC);

    pid_t workload = -1;
    int rc = strchr(argv[1], '/') != NULL ? spawn(argv[1], argv + 1, &before, &workload)
                                          : spawn_from_path(argv + 1, &before, &workload);
    if (rc != 0) {
        report(INIT_FAILED, rc, argv[1]);
        return rc == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
    }
    report(INIT_STARTED, 0, "");
    return serve(workload, &signals);
}
