/* The five seams of the engine, over the real machine. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "controller/berthd.h"
#include "controller/checker.h"
#include "controller/judge.h"
#include "controller/server.h"
#include "controller/set_aside.h"
#include "controller/snapshotter.h"
#include "controller/state_load.h"
#include "controller/zones.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"
#include "os/random.h"
#include "os/sd_notify.h"

enum {
    TURN_BUDGET = 2000, /* workloads looked at before the loop serves others again */
    /* Pages that are written again and again are copied once: the longer the log, the less there is
     * to copy, and the longer the batch waits that comes upon it. */
    LOG_PAGES_MAX = 16384,
    COPY_EVERY_COMMITS = 64, /* at most: a reader may keep the log long */
    LOG_PAGES_IDLE = 1000,
    HOUSEWORK_S = 60,
    TRIM_EVERY_COMMITS = 16, /* a step of retention with every so many, while others wait */
    BLOB_AGE_S = 3600,
    EXIT_UNKNOWN_OUTCOME = 75,
    /* A turn is due every ten seconds at least. */
    JUDGE_TICK_MS = 1000,
    JUDGE_LATE_TICKS = 30,
    JUDGE_END_TICKS = 120,
};

const char *berthd_path(struct berthd *berthd, const char *name)
{
    return arena_format(&berthd->arena, "%.*s/%s", STR_ARG(berthd->config.state_dir), name);
}

void berthd_wake(struct berthd *berthd)
{
    loop_task_queue(berthd->loop, &berthd->turn);
}

/* ---- seams --------------------------------------------------------------------------------- */

static struct mono seam_mono_now(void *arg)
{
    return ledger_clock_now(&((struct berthd *)arg)->clock);
}

static struct wall seam_wall_now(void *arg)
{
    (void)arg;
    return clock_wall();
}

static void seam_machine_clock(void *arg, struct store_clock *out)
{
    *out = ledger_clock_position(&((struct berthd *)arg)->clock);
}

static void seam_entropy(void *arg, void *bytes, size_t size)
{
    (void)arg;
    random_bytes(bytes, size);
}

/* On a worker: one small step of what retention no longer keeps. */
static void trim_step(struct berthd *berthd)
{
    struct error e = { 0 };
    struct store *store = berthd->store;
    berthd->trim_more = false;
    if (store->vtable->trim(store, clock_wall(), &berthd->trim_more, &e) != ERR_OK)
        log_warning("what retention no longer keeps was not removed", LOG_ERR(&e));
}

/* On a worker: one transaction, then whatever else the store needs while nobody else uses it. */
static void commit_run(void *arg)
{
    struct berthd *berthd = arg;
    struct store *store = berthd->store;
    const struct store_batch *batch = berthd->committing;
    berthd->commit_error = (struct error){ 0 };
    berthd->commit_rc = store->vtable->append(store, batch, &berthd->commit_error);
    if (berthd->commit_rc != ERR_OK)
        return;

    struct error e = { 0 };
    uint64_t durable =
        batch->event_count > 0 ? batch->events[batch->event_count - 1].event->sequence : 0;
    if (snapshotter_store(berthd->snapshotter, store, durable, &e) != ERR_OK)
        log_warning("a snapshot was not stored", LOG_ERR(&e));
    if (berthd->is_copy_rest && store->vtable->maintain(store, 1, &e) != ERR_OK)
        log_warning("the store's maintenance failed", LOG_ERR(&e));
    if (berthd->is_trim_step)
        trim_step(berthd);
}

/* On a worker, when there was nothing to commit. */
static void upkeep_run(void *arg)
{
    struct berthd *berthd = arg;
    struct error e = { 0 };
    if (berthd->store->vtable->maintain(berthd->store, LOG_PAGES_IDLE, &e) != ERR_OK)
        log_warning("the store's maintenance failed", LOG_ERR(&e));
    trim_step(berthd);
}

/* On another worker, beside the commits. */
static void copy_run(void *arg)
{
    struct berthd *berthd = arg;
    struct error e = { 0 };
    berthd->copy_rc = berthd->store->vtable->copy_log(berthd->store, &e);
    if (berthd->copy_rc != ERR_OK)
        log_warning("the store's log was not copied back", LOG_ERR(&e));
}

static void copy_done(void *arg)
{
    struct berthd *berthd = arg;
    berthd->is_copying = false;
    berthd->commits_since_copy = 0;
    berthd->is_log_copied = berthd->copy_rc == ERR_OK;
}

/* Loop, between two commits. */
static void copy_consider(struct berthd *berthd)
{
    bool is_long = berthd->store->vtable->log_pages(berthd->store) >= LOG_PAGES_MAX;
    if (!is_long || berthd->is_copying || berthd->is_stopping ||
        ++berthd->commits_since_copy < COPY_EVERY_COMMITS)
        return;
    berthd->is_copying = true;
    loop_work(berthd->loop, copy_run, copy_done, berthd);
}

static void commit_start(struct berthd *berthd);
static void upkeep_start(struct berthd *berthd);
static void claim_start(struct berthd *berthd);

/* Loop: the store is free again. A batch that came meanwhile goes first. */
static void store_is_free(struct berthd *berthd)
{
    berthd->is_upkeep = false;
    if (berthd->committing != NULL)
        commit_start(berthd);
    else if (berthd->claim_due != 0)
        claim_start(berthd);
    else
        upkeep_start(berthd);
}

static void upkeep_done(void *arg)
{
    struct berthd *berthd = arg;
    berthd->is_trim_due = berthd->trim_more;
    store_is_free(berthd);
}

/* On a worker. */
static void claim_run(void *arg)
{
    struct berthd *berthd = arg;
    struct error e = { 0 };
    berthd->claim_rc =
        berthd->store->vtable->claim(berthd->store, berthd->claim_due, &berthd->claimed, &e);
    if (berthd->claim_rc != ERR_OK)
        log_error("no higher epoch can be claimed", LOG_ERR(&e));
}

static void claim_done(void *arg)
{
    struct berthd *berthd = arg;
    berthd->claim_due = 0;
    if (berthd->claim_rc == ERR_OK) {
        log_warning("nodes know a higher epoch than the restored store: theirs is overtaken",
                    LOG_INT("epoch", berthd->claimed));
        engine_raise_epoch(berthd->engine, berthd->claimed, str_of(BERTH_VERSION));
        berthd_wake(berthd);
    }
    store_is_free(berthd);
}

static void claim_start(struct berthd *berthd)
{
    if (berthd->is_upkeep || berthd->committing != NULL || berthd->is_stopping)
        return;
    berthd->is_upkeep = true;
    loop_work(berthd->loop, claim_run, claim_done, berthd);
}

/* It is refused for now, and comes again. */
static bool on_newer_epoch(void *arg, uint64_t obeyed)
{
    struct berthd *berthd = arg;
    if (berthd->claim_due != 0)
        return true;
    berthd->claim_due = epoch_above(&berthd->claims, obeyed);
    if (berthd->claim_due == 0)
        return false;
    claim_start(berthd);
    return true;
}

static void upkeep_start(struct berthd *berthd)
{
    if (!berthd->is_trim_due || berthd->is_upkeep || berthd->is_stopping ||
        berthd->committing != NULL)
        return;
    berthd->is_upkeep = true;
    loop_work(berthd->loop, upkeep_run, upkeep_done, berthd);
}

static void commit_done(void *arg)
{
    struct berthd *berthd = arg;
    enum err rc = berthd->commit_rc;
    berthd->committing = NULL;
    copy_consider(berthd);
    if (berthd->is_trim_step)
        berthd->is_trim_due = rc != ERR_OK || berthd->trim_more;
    if (rc != ERR_OK && rc != ERR_UNAVAILABLE) {
        /* Whether the batch is stored is not known. Nobody was told anything; the next start reads
         * what is, and Idempotency-Keys settle it for clients. */
        log_error("the outcome of a commit is unknown: ending to recover at the next start",
                  LOG_ERR(&berthd->commit_error));
        _exit(EXIT_UNKNOWN_OUTCOME);
    }
    if (rc == ERR_UNAVAILABLE)
        log_error("the store refuses changes", LOG_ERR(&berthd->commit_error));
    if (berthd->claim_due != 0)
        claim_start(berthd); /* before the next batch */
    engine_committed(berthd->engine, rc, &berthd->commit_error);
    berthd_wake(berthd);
}

/* The worker looks at nothing that the loop may change meanwhile. */
static void commit_start(struct berthd *berthd)
{
    berthd->is_trim_step =
        berthd->is_trim_due && ++berthd->commits_since_trim >= TRIM_EVERY_COMMITS;
    if (berthd->is_trim_step)
        berthd->commits_since_trim = 0;
    berthd->is_copy_rest = berthd->is_log_copied;
    berthd->is_log_copied = false;
    loop_work(berthd->loop, commit_run, commit_done, berthd);
}

static void seam_commit(void *arg, const struct store_batch *batch)
{
    struct berthd *berthd = arg;
    berthd->committing = batch;
    if (!berthd->is_upkeep)
        commit_start(berthd);
}

static bool seam_check(void *arg, const struct state *state, const struct sched *sched)
{
    return checker_start(((struct berthd *)arg)->checker, state, sched);
}

static void on_checked(void *arg, unsigned found, const struct error *e)
{
    engine_checked(((struct berthd *)arg)->engine, found, e);
}

static void seam_handing_over(void *arg, const struct state *state)
{
    struct berthd *berthd = arg;
    snapshotter_consider(berthd->snapshotter, berthd->store, state);
}

static enum err seam_reload(void *arg, struct state **out, struct error *e)
{
    return state_load(((struct berthd *)arg)->store, out, e);
}

static void seam_desired_build(void *arg, const struct state *state, const struct node *node,
                               struct buf *out)
{
    struct berthd *berthd = arg;
    struct error e = { 0 };
    if (desired_build(berthd->desired, state, node, out, &e) != ERR_OK)
        log_error("a grant could not be made", LOG_SLICE("node", node->r.name), LOG_ERR(&e));
}

static void seam_desired_send(void *arg, struct id node, struct str bytes)
{
    nodes_send_desired(((struct berthd *)arg)->nodes, node, bytes);
}

static void expect_output(struct berthd *berthd, const struct allocation_record *r)
{
    const struct log_key key = { r->project, r->workload, r->id, r->attempt, r->rank };
    if (!logstore_is_final(berthd->logs, &key))
        logstore_expect(berthd->logs, &key, r->node);
}

/* A process that was killed between a grant's commit and its publication expected nothing. */
static void expect_all_output(struct berthd *berthd, const struct state *state)
{
    for (const struct node *n = state->first_node; n != NULL; n = n->next) {
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node)
            expect_output(berthd, &a->r);
    }
}

static void seam_publish(void *arg, const struct event *event, struct str body)
{
    struct berthd *berthd = arg;
    if (event->type == EV_ALLOCATION_GRANTED)
        expect_output(berthd, &event->allocation_granted);
    if (event->type == EV_NODE_REMOVED)
        nodes_removed(berthd->nodes, event->removed.id);
    server_publish(berthd->server, event, body);
    herald_publish(berthd->herald, event);
}

static void seam_report(void *arg, const char *what, const struct error *e)
{
    (void)arg;
    log_error("a fault of the controller itself", LOG_STR("where", what), LOG_ERR(e));
}

/* ---- turns --------------------------------------------------------------------------------- */

static void on_wake(void *arg)
{
    berthd_wake(arg);
}

static void on_turn(void *arg)
{
    struct berthd *berthd = arg;
    judge_sign(berthd->judge);
    bool more = engine_turn(berthd->engine, TURN_BUDGET);
    pulse_turned(&berthd->pulse, loop_now(berthd->loop), more);
    if (more) {
        /* More to decide: in the next round, after whoever waits for the loop. */
        loop_timer_set(berthd->loop, &berthd->wake, loop_now(berthd->loop));
        return;
    }
    int64_t wait_ns = engine_wake_at(berthd->engine).ns - seam_mono_now(berthd).ns;
    wait_ns = MIN_OF(MAX_OF(wait_ns, INT64_C(1000000)), INT64_C(10) * NS_PER_S);
    loop_timer_set(berthd->loop, &berthd->wake,
                   (struct mono){ loop_now(berthd->loop).ns + wait_ns });
}

static void on_decided(void *arg)
{
    berthd_wake(arg);
}

struct blob_users {
    const struct state *state;
};

static bool blob_is_used(void *arg, const struct digest *digest)
{
    const struct blob_users *users = arg;
    const struct state *state = users->state;
    char hex[2 * DIGEST_BYTES + 1];
    hex_encode(digest->bytes, DIGEST_BYTES, hex);
    for (const struct image *i = state->first_image; i != NULL; i = i->next) {
        struct str source = i->r.source;
        struct str prefix = STR(IMAGE_BLOB_PREFIX);
        if (str_starts(source, prefix) &&
            str_is((struct str){ source.data + prefix.size, source.size - prefix.size }, hex))
            return true;
    }
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        if (!workload_state_is_final(w->r.state) &&
            memcmp(&w->r.upload, digest, sizeof(*digest)) == 0)
            return true;
    }
    return false;
}

/* Once all nodes are back under our epoch, no node is believed any more that tells of a
 * higher one. */
static void restore_settle(struct berthd *berthd)
{
    if (!berthd->claims.is_restored ||
        nodes_connected(berthd->nodes) < engine_state(berthd->engine)->node_count)
        return;
    berthd->claims.is_restored = false;
    epoch_unmark(&berthd->config);
}

static bool allocation_is_live(void *arg, struct id allocation)
{
    const struct berthd *berthd = arg;
    return state_allocation(engine_state(berthd->engine), allocation) != NULL;
}

/* A controller that runs for a year still has a certificate that is good. */
static void keys_renew(struct berthd *berthd)
{
    bool is_new = false;
    struct error e = { 0 };
    enum err rc = keys_refresh(&berthd->config, berthd->keys, clock_wall(), &is_new, &e);
    if (rc == ERR_OK && is_new)
        rc = server_rekey(berthd->server, &e);
    if (rc != ERR_OK)
        log_warning("keys could not be renewed; those in use stay", LOG_ERR(&e));
}

static void on_housework(void *arg)
{
    struct berthd *berthd = arg;
    struct blob_users users = { engine_state(berthd->engine) };
    desired_forget(berthd->desired, users.state);
    restore_settle(berthd);
    berthd->is_trim_due = true;
    keys_renew(berthd);
    upkeep_start(berthd);
    (void)logstore_expire(berthd->logs, clock_wall(), allocation_is_live, berthd);
    (void)blobs_collect(berthd->blobs, clock_wall().ns / NS_PER_S, BLOB_AGE_S, blob_is_used,
                        &users);
    loop_timer_set(berthd->loop, &berthd->housework,
                   mono_add_s(loop_now(berthd->loop), HOUSEWORK_S));
}

/* ---- start and stop ------------------------------------------------------------------------ */

static enum err open_store(struct berthd *berthd, struct error *e)
{
    const struct store_retention retention = {
        .workload_days = berthd->config.workload_days,
        .usage_days = berthd->config.usage_days,
        .audit_days = berthd->config.audit_days,
        .journal_days = berthd->config.journal_days,
    };
    const char *path = berthd->store_path = berthd_path(berthd, "berth.db");
    enum err rc = store_sqlite_open(path, &retention, &berthd->store, e);
    if (rc == ERR_OK)
        rc = query_open_sqlite(path, &berthd->query, e);
    if (rc == ERR_OK)
        rc = query_open_sqlite(path, &berthd->lists, e);
    if (rc != ERR_OK)
        return rc;
    struct store_clock last;
    rc = berthd->store->vtable->read_clock(berthd->store, &last, &berthd->arena, e);
    if (rc != ERR_OK && rc != ERR_NOT_FOUND)
        return rc;
    return ledger_clock_init(&berthd->clock, rc == ERR_OK ? &last : NULL, e);
}

/* As the project says, or the nearest above it that does; else as the configuration. */
static struct logstore_limits log_limits_of(void *arg, struct id project)
{
    const struct berthd *berthd = arg;
    const struct project *found = state_project(engine_state(berthd->engine), project);
    struct log_limits own = { 0 };
    if (found != NULL)
        own = project_log_limits(found);
    int64_t days = own.days > 0 ? own.days : berthd->config.log_days;
    return (struct logstore_limits){
        .quota_mib = own.quota_mib > 0 ? own.quota_mib : berthd->config.log_quota_mib,
        .age_s = days * 86400,
    };
}

static enum err open_parts(struct berthd *berthd, struct error *e)
{
    const struct config *config = &berthd->config;
    const char *image_dir = berthd_path(berthd, "images");
    enum err rc = keys_load(config, &berthd->keys, e);
    if (rc == ERR_OK)
        rc = open_store(berthd, e);
    if (rc == ERR_OK)
        rc = blobs_open(berthd_path(berthd, "blobs"), config->blob_quota_mib, &berthd->blobs, e);
    if (rc == ERR_OK)
        rc = logstore_open(berthd_path(berthd, "logs"), log_limits_of, berthd, &berthd->logs, e);
    if (rc == ERR_OK)
        rc = file_make_dirs(image_dir, 0700, e);
    if (rc == ERR_OK)
        rc = loop_new(&berthd->loop, e);
    if (rc != ERR_OK)
        return rc;
    berthd->images = images_new(image_dir);
    berthd->desired = desired_new(berthd->keys, berthd->images);
    return ERR_OK;
}

static enum err recall_answer(void *arg, const struct store_answer *answer, struct error *e)
{
    (void)e;
    engine_recall(((struct berthd *)arg)->engine, answer);
    return ERR_OK;
}

static enum err start_engine(struct berthd *berthd, struct error *e)
{
    const struct engine_seams seams = {
        .arg = berthd,
        .mono_now = seam_mono_now,
        .wall_now = seam_wall_now,
        .machine_clock = seam_machine_clock,
        .entropy = seam_entropy,
        .commit = seam_commit,
        .handing_over = seam_handing_over,
        .reload = seam_reload,
        .desired_build = seam_desired_build,
        .desired_send = seam_desired_send,
        .publish = seam_publish,
        .check = seam_check,
        .report = seam_report,
    };
    struct state *state = NULL;
    uint64_t epoch = 0;
    enum err rc = state_load(berthd->store, &state, e);
    if (rc != ERR_OK)
        return rc;
    rc = berthd->store->vtable->claim(berthd->store, state->epoch + 1, &epoch, e);
    if (rc != ERR_OK) {
        state_free(state);
        return rc;
    }
    berthd->snapshotter = snapshotter_new(berthd_path(berthd, "snapshot.tmp"),
                                          berthd->config.snapshot_events, state->sequence);
    berthd->checker = checker_new(berthd->loop, on_checked, berthd);
    expect_all_output(berthd, state);
    berthd->engine = engine_new(&seams, state);
    rc = berthd->store->vtable->read_answers(berthd->store, recall_answer, berthd, e);
    if (rc != ERR_OK)
        return rc;
    const struct nodes_options nodes = {
        .loop = berthd->loop,
        .engine = berthd->engine,
        .keys = berthd->keys,
        .desired = berthd->desired,
        .blobs = berthd->blobs,
        .logs = berthd->logs,
        .version = BERTH_VERSION,
        .registries = { &berthd->config.registries, &berthd->config.plain_http_registries },
        .strangers = { .patience_s = berthd->config.hello_s,
                       .max = berthd->config.strangers,
                       .max_per_address = berthd->config.strangers_per_address },
        .on_decided = on_decided,
        .on_newer_epoch = on_newer_epoch,
        .arg = berthd,
    };
    berthd->nodes = nodes_new(&nodes);
    const struct herald_options herald = {
        .loop = berthd->loop,
        .engine = berthd->engine,
        .keys = berthd->keys,
        .config = &berthd->config,
        .store_path = berthd->store_path,
        .cursor_path = berthd_path(berthd, "hooks.told"),
        .on_decided = on_decided,
        .arg = berthd,
    };
    berthd->herald = herald_new(&herald);
    herald_start(berthd->herald);
    berthd->claims =
        (struct epoch_claims){ .is_restored = epoch_is_restored(&berthd->config), .first = epoch };
    engine_start(berthd->engine, epoch, str_of(BERTH_VERSION));
    set_aside_apply(berthd->engine, berthd_path(berthd, "looked_at"));
    zones_refresh(berthd->engine, clock_wall());
    return ERR_OK;
}

static void on_signal(struct loop_watch *watch, uint32_t events)
{
    struct berthd *berthd = watch->arg;
    struct signalfd_siginfo info;
    (void)events;
    if (read(watch->fd, &info, sizeof(info)) == sizeof(info)) {
        log_info("stopping", LOG_INT("signal", info.ssi_signo));
        loop_stop(berthd->loop);
    }
}

static enum err watch_signals(struct berthd *berthd, struct loop_watch *watch, struct error *e)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return err_errno(e, "sigprocmask");
    (void)signal(SIGPIPE, SIG_IGN); /* writes say EPIPE */
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_errno(e, "signalfd");
    *watch =
        (struct loop_watch){ .fd = fd, .events = EPOLLIN, .on_ready = on_signal, .arg = berthd };
    return loop_watch_add(berthd->loop, watch, e);
}

/* ---- when the loop fails ------------------------------------------------------------------- */

static struct id looked_at(void *arg)
{
    const struct berthd *berthd = arg;
    return sched_looked_at(engine_sched(berthd->engine));
}

/* On the judge's thread. What the loop is stuck at is noted on the way out. */
static void on_stuck(void *arg)
{
    (void)arg;
    abort();
}

/* Without either of them work goes on as well. */
static void watch_over(struct berthd *berthd)
{
    struct error e = { 0 };
    const struct judge_options options = {
        .listener = server_local_fd(berthd->server),
        .secure = server_secure_fd(berthd->server),
        .tick_ms = JUDGE_TICK_MS,
        .late_ticks = JUDGE_LATE_TICKS,
        .end_ticks = JUDGE_END_TICKS,
        .end = on_stuck,
    };
    if (judge_start(&options, &berthd->judge, &e) != ERR_OK)
        log_warning("nobody watches whether the loop turns", LOG_ERR(&e));
    if (set_aside_watch(berthd_path(berthd, "looked_at"), looked_at, berthd, &e) != ERR_OK)
        log_warning("what the scheduler fails at will not be known", LOG_ERR(&e));
}

/* Serves until told to stop; what was decided by then becomes durable. */
static enum err serve(struct berthd *berthd, struct error *e)
{
    berthd->pulse = pulse_start(loop_now(berthd->loop));
    berthd->turn = (struct loop_task){ .fn = on_turn, .arg = berthd };
    berthd->wake = (struct loop_timer){ .fn = on_wake, .arg = berthd };
    berthd->housework = (struct loop_timer){ .fn = on_housework, .arg = berthd };
    loop_timer_set(berthd->loop, &berthd->housework,
                   mono_add_s(loop_now(berthd->loop), HOUSEWORK_S));
    berthd_wake(berthd);
    enum err rc = server_open(berthd, &berthd->server, e);
    if (rc != ERR_OK)
        return rc;
    if (sd_notify_send("READY=1", e) != ERR_OK)
        log_warning("the service manager could not be told", LOG_ERR(e));
    log_info("ready", LOG_INT("epoch", engine_state(berthd->engine)->epoch),
             LOG_INT("sequence", engine_state(berthd->engine)->sequence),
             LOG_INT("port", server_port(berthd->server)),
             LOG_SLICE("socket", berthd->config.socket));
    watch_over(berthd);
    rc = loop_run(berthd->loop, e);
    judge_stop(berthd->judge);
    berthd->judge = NULL;

    berthd->is_stopping = true;
    server_drain(berthd->server);
    nodes_abort(berthd->nodes, "the controller stops");
    herald_stop(berthd->herald);
    loop_drain(berthd->loop); /* the commit under way, if any, and what it lets go */
    return rc;
}

static void berthd_close(struct berthd *berthd)
{
    if (berthd->loop != NULL)
        loop_drain(berthd->loop);
    server_close(berthd->server);
    nodes_free(berthd->nodes);
    herald_free(berthd->herald);
    checker_free(berthd->checker);
    engine_free(berthd->engine);
    snapshotter_free(berthd->snapshotter);
    desired_free(berthd->desired);
    images_free(berthd->images);
    loop_free(berthd->loop);
    logstore_free(berthd->logs);
    blobs_free(berthd->blobs);
    query_free(berthd->lists);
    query_free(berthd->query);
    store_free(berthd->store);
    keys_free(berthd->keys);
    arena_done(&berthd->arena);
}

int berthd_run(const struct config *config, struct arena arena)
{
    struct berthd berthd = { .config = *config, .arena = arena };
    struct loop_watch signals = { .fd = -1 };
    struct error e = { 0 };
    enum err rc = open_parts(&berthd, &e);
    if (rc == ERR_OK)
        rc = watch_signals(&berthd, &signals, &e);
    if (rc == ERR_OK)
        rc = start_engine(&berthd, &e);
    if (rc == ERR_OK)
        rc = serve(&berthd, &e);
    if (rc != ERR_OK)
        log_error("berthd cannot go on", LOG_ERR(&e));
    berthd_close(&berthd);
    fd_close(signals.fd);
    return rc == ERR_OK ? 0 : 1;
}
