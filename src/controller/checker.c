#include "controller/checker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/log.h"

enum { WORKLOADS_IN_PLACE = 5000, CHILD_S = 120 };

/* What the child writes: fits a pipe, so that one read has all of it. */
struct report {
    unsigned found;
    char text[sizeof(((struct error *)0)->text)];
};

struct checker {
    struct loop *loop;
    void (*on_done)(void *arg, unsigned found, const struct error *e);
    void *arg;
    struct loop_watch watch;   /* of the pipe's end; fd -1: no child */
    struct loop_timer overdue; /* a child that never ends */
    pid_t child;
};

static void checker_reap(struct checker *checker)
{
    loop_timer_stop(checker->loop, &checker->overdue);
    loop_watch_remove(checker->loop, &checker->watch);
    fd_close(checker->watch.fd);
    checker->watch.fd = -1;
    (void)kill(checker->child, SIGKILL); /* it has said all, or never will */
    (void)waitpid(checker->child, NULL, 0);
    checker->child = 0;
}

static void on_report(struct loop_watch *watch, uint32_t events)
{
    struct checker *checker = watch->arg;
    struct report report = { 0 };
    struct error e = { 0 };
    (void)events;
    ssize_t got = read(watch->fd, &report, sizeof(report));
    checker_reap(checker);
    if (got != (ssize_t)sizeof(report)) {
        log_warning("a self-check came to no end");
        return;
    }
    report.text[sizeof(report.text) - 1] = '\0';
    (void)err_set(&e, ERR_CORRUPT, "%s", report.text);
    checker->on_done(checker->arg, report.found, &e);
}

static void on_overdue(void *arg)
{
    log_warning("a self-check takes too long and is stopped");
    checker_reap(arg);
}

/* Memory as it was, and no thread but this one. */
static _Noreturn void child_check(int fd, const struct state *state, const struct sched *sched)
{
    struct report report = { 0 };
    struct error e = { 0 };
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the store's lock must not outlive the controller */
    report.found = engine_check(state, sched, &e);
    (void)snprintf(report.text, sizeof(report.text), "%s", e.text);
    _exit(write(fd, &report, sizeof(report)) == (ssize_t)sizeof(report) ? 0 : 1);
}

bool checker_start(struct checker *checker, const struct state *state, const struct sched *sched)
{
    int ends[2];
    if (state->workload_count < WORKLOADS_IN_PLACE)
        return false;
    if (checker->child > 0)
        return true; /* the last one is not done yet */
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        log_warning("no self-check: no pipe", LOG_INT("errno", errno));
        return true;
    }
    pid_t child = fork();
    if (child == 0)
        child_check(ends[1], state, sched);
    fd_close(ends[1]);
    struct error e = { 0 };
    checker->watch.fd = ends[0];
    if (child < 0 || loop_watch_add(checker->loop, &checker->watch, &e) != ERR_OK) {
        log_warning("no self-check: fork or watch failed", LOG_INT("errno", errno));
        fd_close(ends[0]);
        checker->watch.fd = -1;
        if (child > 0) {
            (void)kill(child, SIGKILL);
            (void)waitpid(child, NULL, 0);
        }
        return true;
    }
    checker->child = child;
    loop_timer_set(checker->loop, &checker->overdue, mono_add_s(loop_now(checker->loop), CHILD_S));
    return true;
}

struct checker *checker_new(struct loop *loop,
                            void (*on_done)(void *arg, unsigned found, const struct error *e),
                            void *arg)
{
    struct checker *checker = mem_new(1, sizeof(*checker));
    *checker = (struct checker){ .loop = loop, .on_done = on_done, .arg = arg };
    checker->watch =
        (struct loop_watch){ .fd = -1, .events = EPOLLIN, .on_ready = on_report, .arg = checker };
    checker->overdue = (struct loop_timer){ .fn = on_overdue, .arg = checker };
    return checker;
}

void checker_free(struct checker *checker)
{
    if (checker == NULL)
        return;
    if (checker->child > 0)
        checker_reap(checker);
    mem_free(checker);
}
