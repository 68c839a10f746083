/*
 * A child for the process tests. What it does is its first argument; it says what it finds, so that
 * the tests need no shell and no tool of the machine.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int say_arguments(int count, char **args)
{
    for (int i = 2; i < count; i++)
        (void)printf("[%s]", args[i]);
    return 0;
}

static int say_environment(void)
{
    for (char **at = environ; *at != NULL; at++)
        (void)printf("%s\n", *at);
    return 0;
}

/* "0 1 2 ": the open descriptors. */
static int say_descriptors(void)
{
    bool is_open[64] = { false };
    for (int fd = 0; fd < 64; fd++)
        is_open[fd] = fcntl(fd, F_GETFD) >= 0;
    for (int fd = 0; fd < 64; fd++) {
        if (is_open[fd])
            (void)printf("%d ", fd);
    }
    return 0;
}

/* Blocked and ignored signals, death signal, whether it leads its session. */
static int say_state(void)
{
    sigset_t blocked;
    int blocked_count = 0;
    int ignored_count = 0;
    (void)sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        blocked_count += sigismember(&blocked, number) == 1;
        ignored_count += sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    }
    int death_signal = 0;
    (void)prctl(PR_GET_PDEATHSIG, &death_signal);
    (void)printf("blocked=%d ignored=%d death=%d leader=%d", blocked_count, ignored_count,
                 death_signal, getsid(0) == getpid());
    return 0;
}

static int copy_input(void)
{
    char bytes[4096];
    ssize_t got;
    while ((got = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0) {
        if (write(STDOUT_FILENO, bytes, (size_t)got) != got)
            return 1;
    }
    return 0;
}

static int flood(int fd)
{
    char bytes[4096];
    memset(bytes, 'x', sizeof(bytes));
    for (;;) {
        if (write(fd, bytes, sizeof(bytes)) < 0)
            return 1;
    }
}

/* Writes its number, then waits for ever, as does a child of its own; TERM is ignored on demand. */
static void __attribute__((noreturn)) wait_for_ever(bool has_child, bool ignores_term)
{
    if (ignores_term)
        (void)signal(SIGTERM, SIG_IGN);
    pid_t child = has_child ? fork() : 0;
    if (has_child && child == 0) {
        for (;;)
            pause();
    }
    (void)printf("%d\n", (int)child);
    (void)fflush(stdout);
    for (;;)
        pause();
}

/* Ends at once, leaves a child behind that keeps stdout open, and says its number. */
static int leave_a_daemon(void)
{
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    (void)printf("%d\n", (int)child);
    return child < 0;
}

int main(int count, char **args)
{
    const char *what = count > 1 ? args[1] : "";
    if (strcmp(what, "arguments") == 0)
        return say_arguments(count, args);
    if (strcmp(what, "environment") == 0)
        return say_environment();
    if (strcmp(what, "descriptors") == 0)
        return say_descriptors();
    if (strcmp(what, "state") == 0)
        return say_state();
    if (strcmp(what, "directory") == 0)
        return puts(getcwd((char[4096]){ 0 }, 4096)) < 0;
    if (strcmp(what, "copy") == 0)
        return copy_input();
    if (strcmp(what, "flood") == 0)
        return flood(STDOUT_FILENO);
    if (strcmp(what, "flood-errors") == 0)
        return flood(STDERR_FILENO);
    if (strcmp(what, "wait") == 0)
        wait_for_ever(false, false);
    if (strcmp(what, "wait-stubborn") == 0)
        wait_for_ever(true, true);
    if (strcmp(what, "leave-a-daemon") == 0)
        return leave_a_daemon();
    if (strcmp(what, "die") == 0)
        return raise(SIGKILL);
    if (strcmp(what, "complain") == 0) {
        (void)fprintf(stderr, "first\nthe disk is on fire\n\n");
        return 3;
    }
    return count > 2 && strcmp(what, "exit") == 0 ? (int)strtol(args[2], NULL, 10) : 99;
}
