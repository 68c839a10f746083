/*
 * errand.c - questions that take as long as the state is large: a forked copy of the process has
 * the state to itself, changes it as it likes, and writes what it found into a pipe. The loop pays
 * the fork. Few run at once, each for a bounded time; the others stand in line. Of one tenant one
 * runs and one waits: whoever floods us with questions is last in a line of two, not of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/berthd.h"
#include "controller/exchange.h"
#include "core/whatif.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/log.h"
#include "wire/snapshot.h"

enum { RUNNING_MAX = 2, OF_TENANT_MAX = 2, LINE_MAX = 32 };
enum { RUN_S = 10, CHILD_S = 60, LINE_S = 60, NICENESS = 10, READ_BYTES = 256 * 1024 };

static const size_t answer_bytes_max = (size_t)1 << 30;

struct errand {
    struct exchange *exchange;
    struct loop_watch watch;   /* of the pipe's end */
    struct loop_timer overdue; /* a child that never ends, or a turn that never comes */
    pid_t child;               /* 0: it stands in line */
    struct error why;          /* it has no child and will not get one */
    struct buf bytes;
    struct errand *next; /* later ones */
};

/* ---- in the child --------------------------------------------------------------------------- */

/* What comes first: a refusal, or that the answer follows. */
struct head {
    enum err rc;
    struct error error;
};

/* A row as the second child tells the first; the name follows. */
struct told {
    struct id workload, project;
    struct mono started;
    size_t evictions, name_size;
    enum cause cause;
};

struct told_head {
    size_t count, waiting;
    bool is_cut;
};

struct budget {
    struct mono until;
};

static bool may_go_on(void *arg)
{
    return mono_before(clock_monotonic(), ((struct budget *)arg)->until);
}

/* This copy is ours: nobody else sees what we do to it. */
static enum err run(const struct api_context *context, const struct api_whatif *whatif,
                    struct whatif_run *out, struct error *e)
{
    struct budget budget = { mono_add_s(clock_monotonic(), RUN_S) };
    struct command *commands =
        arena_new(context->arena, API_WHATIF_COMMANDS_MAX, sizeof(*commands));
    struct whatif_ask ask = { .commands = commands,
                              .count = whatif->count,
                              .lost = whatif->lost,
                              .horizon_s = whatif->horizon_s,
                              .now = context->now,
                              .wall = context->wall,
                              .may_go_on = may_go_on,
                              .arg = &budget };
    memcpy(commands, whatif->commands, sizeof(whatif->commands));
    return core_whatif((struct state *)(uintptr_t)context->state,
                       (struct sched *)(uintptr_t)context->sched, &ask, out, e);
}

/* In the child's child: as things are. */
static _Noreturn void tell_before(int fd, const struct api_context *context,
                                  const struct api_whatif *whatif)
{
    AUTO(whatif_run) struct whatif_run before = { 0 };
    AUTO(buf) struct buf bytes = { 0 };
    struct api_whatif nothing = { .count = 0, .horizon_s = whatif->horizon_s };
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (run(context, &nothing, &before, NULL) != ERR_OK)
        _exit(1);
    const struct told_head head = { before.rows.count, before.waiting, before.is_cut };
    buf_add(&bytes, (const char *)&head, sizeof(head));
    for (size_t i = 0; i < before.rows.count; i++) {
        const struct whatif_row *row = &before.rows.items[i];
        const struct told told = { row->workload,  row->project,   row->started,
                                   row->evictions, row->name.size, row->cause };
        buf_add(&bytes, (const char *)&told, sizeof(told));
        buf_add_str(&bytes, row->name);
    }
    _exit(fd_write_full(fd, bytes.data, bytes.size, NULL) == ERR_OK ? 0 : 1);
}

static enum err hear(int fd, void *out, size_t size, struct error *e)
{
    size_t got = 0;
    enum err rc = fd_read_full(fd, out, size, &got, e);
    if (rc == ERR_OK && got != size)
        rc = err_set(e, ERR_IO, "the other run came to no end");
    return rc;
}

static enum err hear_before(int fd, struct whatif_run *out, struct error *e)
{
    AUTO(buf) struct buf name = { 0 };
    struct told_head head = { 0 };
    enum err rc = hear(fd, &head, sizeof(head), e);
    out->waiting = head.waiting;
    out->is_cut = head.is_cut;
    for (size_t i = 0; i < head.count && rc == ERR_OK; i++) {
        struct told told = { .cause = CAUSE_NONE };
        rc = hear(fd, &told, sizeof(told), e);
        buf_clear(&name);
        buf_reserve(&name, told.name_size);
        if (rc == ERR_OK)
            rc = hear(fd, name.data, told.name_size, e);
        const struct whatif_row row = { .workload = told.workload,
                                        .project = told.project,
                                        .name = { name.data, told.name_size },
                                        .started = told.started,
                                        .evictions = told.evictions,
                                        .cause = told.cause };
        if (rc == ERR_OK)
            whatif_run_add(out, &row);
    }
    return rc;
}

static enum err compare(struct exchange *exchange, struct api_answer *answer, struct error *e)
{
    struct api_context context = exchange_context(exchange);
    const struct api_whatif *whatif = &exchange->result.whatif;
    AUTO(whatif_run) struct whatif_run before = { 0 };
    AUTO(whatif_run) struct whatif_run after = { 0 };
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    pid_t other = fork();
    if (other == 0)
        tell_before(ends[1], &context, whatif);
    fd_close(ends[1]);
    if (other < 0)
        rc = err_errno(e, "fork");
    if (rc == ERR_OK)
        rc = run(&context, whatif, &after, e);
    if (rc == ERR_OK)
        rc = hear_before(ends[0], &before, e);
    fd_close(ends[0]);
    if (rc == ERR_OK)
        api_whatif_answer(&exchange->request, &context, &before, &after, answer);
    return rc;
}

/* Behind the loop: for a processor, and when memory is short. */
static void be_humble(void)
{
    static const char worst[] = "1000";
    AUTO(fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    enum err rc = fd < 0 ? ERR_IO : fd_write_full(fd, worst, sizeof(worst) - 1, NULL);
    (void)rc; /* where the kernel does not take it, it has its own order */
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
}

/* Memory as it was, and no thread but this one. */
static _Noreturn void child_run(int fd, struct exchange *exchange)
{
    AUTO(api_answer) struct api_answer answer = { 0 };
    struct head head = { .rc = ERR_OK };
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the store's lock must not outlive the controller */
    be_humble();
    if (exchange->result.outcome == API_SNAPSHOT)
        snapshot_write_bare(exchange_context(exchange).state, &answer.body);
    else
        head.rc = compare(exchange, &answer, &head.error);
    bool is_good = fd_write_full(fd, &head, sizeof(head), NULL) == ERR_OK &&
                   fd_write_full(fd, answer.body.data, answer.body.size, NULL) == ERR_OK;
    _exit(is_good ? 0 : 1);
}

/* ---- in the controller ----------------------------------------------------------------------- */

static void errand_free(struct errand *errand)
{
    struct server *server = errand->exchange->server;
    struct loop *loop = server->berthd->loop;
    struct errand **link = &server->errands;
    while (*link != errand)
        link = &(*link)->next;
    *link = errand->next;
    loop_timer_stop(loop, &errand->overdue);
    if (errand->child > 0) {
        loop_watch_remove(loop, &errand->watch);
        fd_close(errand->watch.fd);
        (void)kill(errand->child, SIGKILL); /* it has said all, or never will */
        (void)waitpid(errand->child, NULL, 0);
    }
    buf_done(&errand->bytes);
    mem_free(errand);
}

static void line_move(struct server *server);

/* The answer, or why there is none; the errand is over. */
static void errand_settle(struct errand *errand, enum err rc, struct error *e)
{
    struct exchange *exchange = errand->exchange;
    struct server *server = exchange->server;
    struct head head = { .rc = ERR_OK };
    exchange->is_waiting = false;
    if (rc == ERR_OK && errand->bytes.size < sizeof(head))
        rc = err_cause(e, ERR_UNAVAILABLE, CAUSE_UNAVAILABLE, "the copy came to no end");
    if (rc == ERR_OK)
        memcpy(&head, errand->bytes.data, sizeof(head));
    if (rc == ERR_OK && head.rc == ERR_OK && !exchange->is_gone)
        buf_add(&exchange->answer.body, errand->bytes.data + sizeof(head),
                errand->bytes.size - sizeof(head));
    errand_free(errand);
    if (exchange->is_gone) {
        exchange_release(exchange);
    } else if (rc != ERR_OK || head.rc != ERR_OK) {
        exchange_refuse(exchange, rc != ERR_OK ? e : &head.error);
    } else {
        exchange->answer.status = 200;
        exchange->answer.content_type = exchange->result.outcome == API_SNAPSHOT
                                            ? "application/octet-stream"
                                            : "application/json";
        exchange_answer(exchange);
    }
    line_move(server);
}

static void on_bytes(struct loop_watch *watch, uint32_t events)
{
    struct errand *errand = watch->arg;
    struct error e = { 0 };
    (void)events;
    buf_reserve(&errand->bytes, READ_BYTES);
    ssize_t got = read(watch->fd, errand->bytes.data + errand->bytes.size, READ_BYTES);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        errand->bytes.size += (size_t)got;
        if (errand->bytes.size <= answer_bytes_max)
            return;
        errand_settle(errand, err_set(&e, ERR_LIMIT, "the answer is larger than a GiB"), &e);
        return;
    }
    errand_settle(errand, ERR_OK, &e);
}

/* Its turn that never came, or its child that never ended. */
static void on_overdue(void *arg)
{
    struct errand *errand = arg;
    struct error e = errand->why;
    if (e.code == ERR_OK && errand->child == 0)
        (void)err_cause(&e, ERR_RATE, CAUSE_RATE_LIMITED,
                        "too many such questions of others come first; try again");
    if (e.code == ERR_OK) {
        (void)err_cause(&e, ERR_UNAVAILABLE, CAUSE_UNAVAILABLE,
                        "this takes longer than a minute here; ask for less");
        log_warning("an errand takes too long and is stopped");
    }
    errand_settle(errand, e.code, &e);
}

static enum err errand_fork(struct errand *errand, struct error *e)
{
    struct loop *loop = errand->exchange->server->berthd->loop;
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    pid_t child = fork();
    if (child == 0)
        child_run(ends[1], errand->exchange);
    fd_close(ends[1]);
    errand->watch.fd = ends[0];
    if (child < 0)
        rc = err_errno(e, "fork");
    else if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
        rc = err_errno(e, "fcntl");
    else
        rc = loop_watch_add(loop, &errand->watch, e);
    if (rc == ERR_OK) {
        errand->child = child;
        return ERR_OK;
    }
    fd_close(ends[0]);
    if (child > 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    return rc;
}

/* ---- the line -------------------------------------------------------------------------------- */

/* Operators are a tenant of their own here. */
static struct id tenant_of(const struct errand *errand)
{
    return errand->exchange->actor.tenant;
}

static size_t running(const struct server *server)
{
    size_t count = 0;
    for (const struct errand *at = server->errands; at != NULL; at = at->next)
        count += at->child > 0;
    return count;
}

static bool has_running(const struct server *server, struct id tenant)
{
    for (const struct errand *at = server->errands; at != NULL; at = at->next) {
        if (at->child > 0 && id_eq(tenant_of(at), tenant))
            return true;
    }
    return false;
}

/* The first in line of whose tenant none runs. */
static struct errand *first_in_line(const struct server *server)
{
    for (struct errand *at = server->errands; at != NULL; at = at->next) {
        if (at->child == 0 && at->why.code == ERR_OK && !has_running(server, tenant_of(at)))
            return at;
    }
    return NULL;
}

/* Those whose turn it is begin. What ends here does so by its timer: not under our feet. */
static void line_move(struct server *server)
{
    struct loop *loop = server->berthd->loop;
    while (!server->is_draining && running(server) < RUNNING_MAX) {
        struct errand *errand = first_in_line(server);
        int64_t within_s = CHILD_S;
        if (errand == NULL)
            return;
        if (errand->exchange->is_gone)
            (void)err_cause(&errand->why, ERR_UNAVAILABLE, CAUSE_UNAVAILABLE, "nobody waits");
        else
            (void)errand_fork(errand, &errand->why);
        if (errand->child == 0)
            within_s = 0;
        loop_timer_set(loop, &errand->overdue, mono_add_s(loop_now(loop), within_s));
    }
}

enum err errand_check(const struct server *server, struct id tenant, struct error *e)
{
    size_t all = 0;
    size_t theirs = 0;
    for (const struct errand *at = server->errands; at != NULL; at = at->next) {
        all++;
        theirs += id_eq(tenant_of(at), tenant);
    }
    if (theirs >= OF_TENANT_MAX)
        return err_cause(e, ERR_RATE, CAUSE_RATE_LIMITED,
                         "%d such questions of yours are being answered already; try again",
                         OF_TENANT_MAX);
    if (all >= LINE_MAX)
        return err_cause(e, ERR_RATE, CAUSE_RATE_LIMITED,
                         "%d such questions are being answered already; try again", LINE_MAX);
    return ERR_OK;
}

void errand_start(struct exchange *exchange)
{
    struct server *server = exchange->server;
    struct loop *loop = server->berthd->loop;
    struct errand **last = &server->errands;
    struct error e = { 0 };
    if (errand_check(server, exchange->actor.tenant, &e) != ERR_OK) {
        exchange_refuse(exchange, &e);
        return;
    }
    struct errand *errand = mem_new(1, sizeof(*errand));
    errand->exchange = exchange;
    errand->watch = (struct loop_watch){ .events = EPOLLIN, .on_ready = on_bytes, .arg = errand };
    errand->overdue = (struct loop_timer){ .fn = on_overdue, .arg = errand };
    exchange->is_waiting = true;
    while (*last != NULL)
        last = &(*last)->next;
    *last = errand;
    loop_timer_set(loop, &errand->overdue, mono_add_s(loop_now(loop), LINE_S));
    line_move(server);
}

void errands_end(struct server *server)
{
    while (server->errands != NULL) {
        struct error e = { 0 };
        enum err rc = err_cause(&e, ERR_UNAVAILABLE, CAUSE_UNAVAILABLE, "the controller stops");
        errand_settle(server->errands, rc, &e);
    }
}
