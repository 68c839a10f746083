/*
 * berth-init - the first process of a container: starts the workload's program, hands signals on to
 * it, reaps orphans, and ends when it ends.
 *
 * The kernel gives the first process of a pid namespace no default actions: without this a
 * program that does not handle TERM itself would sit out every grace. It runs with the workload's
 * rights and limits and is started with every workload. So it is without a C library: the start
 * of one takes longer, and more pages, than all that is done here. Nothing but what the compiler
 * itself brings may be used.
 */
#include <asm/errno.h>
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/init.h"
#include "agent/init_notice.h"
#include "agent/init_start.h"

enum { STATUS_USAGE = 2, STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127, STATUS_SIGNAL = 128 };
enum { PATH_TEXT_MAX = 4096, CHILD_STACK = 16384, STDERR = 2 };
enum { SIGNAL_INFO_SIZE = 128 }; /* of a signal as a descriptor tells it; its number comes first */

/* A set of signals as the kernel has it: bit n - 1 is signal n. */
#define SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))

/* These are faults of our own, and never arrive from outside at a first process. */
static const uint64_t own_faults = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGFPE) |
                                   SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGABRT) |
                                   SIGNAL_BIT(SIGSYS);

/* What the compiler may call by itself. */
void *memset(void *target, int byte, size_t size);
void *memcpy(void *restrict target, const void *restrict source, size_t size);

void *memset(void *target, int byte, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((volatile unsigned char *)target)[i] = (unsigned char)byte;
    return target;
}

void *memcpy(void *restrict target, const void *restrict source, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((volatile unsigned char *)target)[i] = ((const unsigned char *)source)[i];
    return target;
}

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

static void report(enum init_kind kind, int value, const char *text)
{
    struct init_report record = { .kind = (uint32_t)kind, .value = value };
    for (size_t i = 0; i < sizeof(record.text) - 1 && text[i] != '\0'; i++)
        record.text[i] = text[i];
    /* Nobody listens when it is started by hand. */
    (void)system_call(__NR_write, INIT_REPORT_FD, (long)&record, sizeof(record), 0);
}

/* What the child runs, and what it says when it cannot; it shares our memory, and we
 * sleep meanwhile. */
struct launch {
    char **argv;
    char **environment;
    uint64_t mask;
    volatile long failure; /* errno; 0: the program runs */
};

static long execute(const char *path, const struct launch *launch)
{
    return -system_call(__NR_execve, (long)path, (long)launch->argv, (long)launch->environment, 0);
}

static const char *search_path(char **environment)
{
    static const char name[] = "PATH=";
    for (; *environment != NULL; environment++) {
        size_t i = 0;
        while (name[i] != '\0' && (*environment)[i] == name[i])
            i++;
        if (name[i] == '\0')
            return *environment + i;
    }
    return "";
}

/* As execvp, but never through a shell: a file that is no program is an error. */
static long execute_from_path(const struct launch *launch)
{
    const char *rest = search_path(launch->environment);
    size_t name_size = length_of(launch->argv[0]) + 1;
    long failure = ENOENT;
    while (*rest != '\0') {
        char path[PATH_TEXT_MAX];
        const char *directory = rest;
        size_t length = 0;
        while (rest[length] != ':' && rest[length] != '\0')
            length++;
        rest += length + (rest[length] == ':' ? 1 : 0);
        if (length == 0 || length + name_size + 1 > sizeof(path))
            continue;
        (void)memcpy(path, directory, length);
        path[length] = '/';
        (void)memcpy(path + length + 1, launch->argv[0], name_size);
        long rc = execute(path, launch);
        if (rc != ENOENT && rc != ENOTDIR && rc != EACCES)
            return rc;
        if (rc == EACCES)
            failure = EACCES;
    }
    return failure;
}

static bool has_slash(const char *text)
{
    while (*text != '\0' && *text != '/')
        text++;
    return *text == '/';
}

static void child(void *argument)
{
    struct launch *launch = argument;
    (void)system_call(__NR_rt_sigprocmask, SIG_SETMASK, (long)&launch->mask, 0,
                      sizeof(launch->mask));
    launch->failure =
        has_slash(launch->argv[0]) ? execute(launch->argv[0], launch) : execute_from_path(launch);
    (void)system_call(__NR_exit_group, STATUS_CANNOT_RUN, 0, 0, 0);
}

/* Negative: minus errno. */
static long spawn(struct launch *launch)
{
    static _Alignas(16) char stack[CHILD_STACK];
    long pid = start_child(CLONE_VM | CLONE_VFORK | SIGCHLD, stack + sizeof(stack), child, launch);
    return launch->failure != 0 ? -launch->failure : pid;
}

/* Reaps whoever has ended. True: the workload is among them, with *status. */
static bool reap(long workload, int *status)
{
    int found = 0;
    for (;;) {
        enum { NO_HANG = 1 };
        long pid = system_call(__NR_wait4, -1, (long)&found, NO_HANG, 0);
        if (pid <= 0)
            return false;
        if (pid == workload) {
            *status = found;
            return true;
        }
    }
}

/* The next signal; meanwhile the workload is listened to. Without a descriptor for signals it is
 * not. Negative: none yet. */
static long next_signal(int fd, const uint64_t *signals, struct notice *notice)
{
    if (fd < 0)
        return system_call(__NR_rt_sigtimedwait, (long)signals, 0, 0, sizeof(*signals));
    struct notice_poll polls[1 + NOTICE_POLLS] = { { fd, 1, 0 } };
    notice_wait_for(notice, polls + 1);
    if (system_call(__NR_ppoll, (long)polls, 1 + NOTICE_POLLS, 0, 0) <= 0)
        return -1;
    if (polls[0].seen == 0) {
        notice_serve(notice, polls + 1);
        return -1;
    }
    _Alignas(8) char info[SIGNAL_INFO_SIZE]; /* signals go first, whoever else wants something */
    uint32_t number = 0;
    if (system_call(__NR_read, fd, (long)info, sizeof(info), 0) != (long)sizeof(info))
        return -1;
    (void)memcpy(&number, info, sizeof(number));
    return number;
}

static int serve(long workload, uint64_t signals)
{
    int status = 0;
    struct notice notice;
    notice_begin(&notice);
    long fd = system_call(__NR_signalfd4, -1, (long)&signals, sizeof(signals), O_CLOEXEC);
    for (;;) {
        long number = next_signal((int)fd, &signals, &notice);
        if (number == SIGCHLD && reap(workload, &status))
            break;
        if (number > 0 && number != SIGCHLD) /* it may have ended: then SIGCHLD is next */
            (void)system_call(__NR_kill, workload, number, 0, 0);
    }
    int signal = status & 0x7f; /* as the kernel packs them */
    int code = (status >> 8) & 0xff;
    report(signal != 0 ? INIT_KILLED : INIT_EXITED, signal != 0 ? signal : code, "");
    return signal != 0 ? STATUS_SIGNAL + signal : code;
}

int init_main(long argc, char **argv, char **environment)
{
    if (argc < 2) {
        static const char usage[] = "usage: berth-init PROGRAM [ARGUMENT]...\n";
        (void)system_call(__NR_write, STDERR, (long)usage, sizeof(usage) - 1, 0);
        return STATUS_USAGE;
    }
    struct launch launch = { .argv = argv + 1, .environment = environment };
    uint64_t signals = ~own_faults;
    /* Blocked before the start, so that none is lost; a blocked signal is kept even for a first
     * process. */
    (void)system_call(__NR_rt_sigprocmask, SIG_BLOCK, (long)&signals, (long)&launch.mask,
                      sizeof(signals));
    (void)system_call(__NR_fcntl, INIT_REPORT_FD, F_SETFD, FD_CLOEXEC, 0);
    (void)system_call(__NR_fcntl, INIT_NOTICE_FD, F_SETFD, FD_CLOEXEC, 0);

    long workload = spawn(&launch);
    if (workload < 0) {
        report(INIT_FAILED, (int)-workload, argv[1]);
        return workload == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
    }
    report(INIT_STARTED, 0, "");
    return serve(workload, signals);
}
