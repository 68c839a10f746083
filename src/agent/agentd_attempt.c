#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "agent/logspool.h"
#include "model/cause.h"
#include "os/fd.h"
#include "os/log.h"
#include "os/process.h"

enum {
    SHIM_FD_COUNT = 6, /* see shim.h */
    SIGN_MAX_S = 10,   /* until a shim has signed for its attempt */
    STOP_MAX_S = 10,   /* until it has begun to stop it */
    CLEAN_MAX_S =
        10 * 60, /* until what cleans up has ended: the runtime has two minutes for a step */
};

struct attempt *attempts_find(const struct agentd *agentd, struct id allocation, uint32_t attempt)
{
    struct attempt *found = id_map_get(&agentd->attempt_of, attempt_key(allocation, attempt));
    bool is_it = found != NULL && found->grant.attempt == attempt &&
                 id_eq(found->grant.allocation, allocation);
    return is_it ? found : NULL;
}

static struct attempt *attempt_add(struct agentd *agentd, const struct grant *grant)
{
    struct attempt *attempt = mem_new(1, sizeof(*attempt));
    attempt->grant = *grant;
    attempt->shim.fd = -1;
    attempt->status.exit_code = -1;
    attempt->is_changed = true;
    (void)attempt_name(grant->allocation, grant->attempt, attempt->name);
    vec_push(&agentd->attempts, attempt);
    id_map_put(&agentd->attempt_of, attempt_key(grant->allocation, grant->attempt), attempt);
    return attempt;
}

static void attempt_drop(struct agentd *agentd, size_t index)
{
    struct attempt *attempt = agentd->attempts.items[index];
    agentd_unwatch(agentd, &attempt->shim);
    (void)id_map_remove(&agentd->attempt_of,
                        attempt_key(attempt->grant.allocation, attempt->grant.attempt));
    agentd->attempts.items[index] = agentd->attempts.items[--agentd->attempts.count];
    mem_free(attempt);
}

/* Its directories are gone, and so is it; `attempt` is freed. */
static void attempt_vanish(struct agentd *agentd, struct attempt *attempt)
{
    struct key key = { attempt->grant.allocation, attempt->grant.workload, attempt->grant.attempt };
    vec_push(&agentd->gone, key);
    for (size_t i = 0; i < agentd->attempts.count; i++)
        if (agentd->attempts.items[i] == attempt) {
            attempt_drop(agentd, i);
            return;
        }
}

bool attempt_open(const struct agentd *agentd, const char *name, struct attempt_dirs *out)
{
    struct attempt_paths paths;
    config_paths(agentd, name, &paths);
    return attempt_dirs_open(paths.disk, paths.run, out, NULL) == ERR_OK;
}

static void set_state(struct agentd *agentd, struct attempt *attempt, enum rec_state state)
{
    if (attempt->state == state && state != REC_EXITED)
        return;
    if (state == REC_STOPPING)
        attempt->stopping_at = clock_monotonic();
    attempt->state = state;
    attempt->is_changed = true;
    agentd->is_dirty = true;
}

static uint64_t log_size(int dir_fd)
{
    struct stat st;
    return fstatat(dir_fd, "log", &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

static void note_ended(struct agentd *agentd, struct attempt *attempt, int disk_fd)
{
    bool is_this_boot =
        strncmp(attempt->status.boot_id, agentd->boot_id, sizeof(attempt->status.boot_id)) == 0;
    attempt->ended_at = is_this_boot ? (struct mono){ attempt->status.ended_ns } : clock_boottime();
    /* Stored to its last byte is not enough: that it ends there must be told, or readers wait. */
    attempt->is_log_stored = log_size(disk_fd) == 0;
    set_state(agentd, attempt, REC_EXITED);
}

/* Of checkpoints the next full set will do; that it ends later must be known in time. */
static void refresh_said(struct agentd *agentd, struct attempt *attempt,
                         const struct attempt_dirs *dirs)
{
    struct attempt_said said;
    if (attempt_read_said(dirs, &said, NULL) != ERR_OK)
        return; /* it has said nothing, or what it said last is known */
    if (said.extended_s != attempt->said.extended_s) {
        attempt->is_changed = true;
        agentd->is_dirty = true;
    }
    attempt->said = said;
}

/* Takes over what the shim has published. Not OK: nothing yet, or it cannot be read. */
static enum err refresh(struct agentd *agentd, struct attempt *attempt, struct error *e)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_paths paths;
    struct attempt_status status = { 0 };
    if (attempt->state == REC_EXITED)
        return ERR_OK;
    config_paths(agentd, attempt->name, &paths);
    enum err rc = attempt_dirs_open(paths.disk, paths.run, &dirs, e);
    if (rc == ERR_OK)
        rc = attempt_read_status(&dirs, &status, e);
    if (rc != ERR_OK)
        return rc;
    attempt->status = status;
    attempt->is_begun = true;
    refresh_said(agentd, attempt, &dirs);
    attempt->has_log = attempt->has_log || faccessat(dirs.disk, "log", F_OK, 0) == 0;
    if (status.state == ATTEMPT_EXITED)
        note_ended(agentd, attempt, dirs.disk);
    else if (status.state == ATTEMPT_STOPPING || attempt->state == REC_STOPPING)
        set_state(agentd, attempt, REC_STOPPING);
    else
        set_state(agentd, attempt, REC_RUNNING);
    return ERR_OK;
}

/* Written in the name of a shim that cannot say it any more. False: it cannot be written now. */
static bool write_lost(struct agentd *agentd, struct attempt *attempt, const char *reason)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_paths paths;
    struct attempt_status *status = &attempt->status;
    struct error e = { 0 };
    status->state = ATTEMPT_EXITED;
    status->end = IPC_END_LOST;
    status->exit_code = -1;
    status->signal = SIGKILL;
    status->ended_ns = clock_boottime().ns;
    memcpy(status->boot_id, agentd->boot_id, sizeof(agentd->boot_id));
    ipc_text_set(status->reason, reason);
    config_paths(agentd, attempt->name, &paths);
    enum err rc = attempt_dirs_open(paths.disk, paths.run, &dirs, &e);
    if (rc == ERR_OK)
        rc = attempt_write_status(&dirs, status, &e);
    if (rc != ERR_OK) {
        log_error("the end of a lost attempt could not be written",
                  LOG_STR("attempt", attempt->name), LOG_ERR(&e));
        return false;
    }
    attempt->is_lost = false;
    note_ended(agentd, attempt, dirs.disk);
    return true;
}

static void shim_ended(struct agentd *agentd, void *self, uint32_t events);

/* Spawns "berth-shim VERB DISK RUN", with the attempt's lock or -1 for none. */
static enum err spawn_shim(struct agentd *agentd, struct attempt *attempt, const char *verb,
                           int lock_fd, struct error *e)
{
    struct attempt_paths paths;
    config_paths(agentd, attempt->name, &paths);
    const char *const argv[] = { agentd->options.shim, verb, paths.disk, paths.run, NULL };
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    sealed_program_refresh(&agentd->runtime, agentd->options.crun);
    attempt->shim = (struct watch){ -1, shim_ended, attempt };
    attempt->shim_at = clock_monotonic();
    int pidfd = -1;
    if (lock_fd >= 0 && spare_take(agentd, &paths, lock_fd, &pidfd))
        return agentd_watch_child(agentd, &attempt->shim, pidfd, e);
    const int fds[SHIM_FD_COUNT] = { -1, -1, STDERR_FILENO, lock_fd, -1, agentd->runtime.fd };
    const struct process_spec spec = {
        .argv = argv,
        .env = env,
        .fds = fds,
        .fd_count = COUNT_OF(fds),
        .is_group_leader = true,
        .dies_with_us = true, /* until it has signed for its attempt */
    };
    struct process process = PROCESS_NONE;
    enum err rc = process_spawn(&spec, &process, e);
    return rc == ERR_OK ? agentd_watch_child(agentd, &attempt->shim, process.pidfd, e) : rc;
}

/* A shim was killed, or the node went down: end what it may have left before saying that
 * it is over. */
static void begin_clean(struct agentd *agentd, struct attempt *attempt)
{
    struct error e = { 0 };
    attempt->is_lost = attempt->state != REC_EXITED;
    if (attempt->is_lost)
        set_state(agentd, attempt, REC_STOPPING);
    attempt->is_cleaning = true;
    attempt->is_unclean = spawn_shim(agentd, attempt, "clean", -1, &e) != ERR_OK;
    if (attempt->is_unclean)
        log_error("cannot clean up after an attempt", LOG_STR("attempt", attempt->name),
                  LOG_ERR(&e));
}

/* Why a shim that has begun nothing gave up. */
static void read_why(const struct attempt_dirs *dirs, char out[IPC_TEXT_MAX])
{
    AUTO(buf) struct buf text = { 0 };
    bool has_text = dirs->run >= 0 && attempt_read_file(dirs->run, ATTEMPT_WHY_NAME,
                                                        IPC_TEXT_MAX - 1, &text, NULL) == ERR_OK;
    ipc_text_set(out, has_text && text.size > 0 ? text.data : "its shim ended before it began");
}

/* Nothing has run for it: it is as if it had never been tried, and is tried again in a while. */
static void begin_again(struct agentd *agentd, struct attempt *attempt)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    AUTO(buf) struct buf payload = { 0 };
    char why[IPC_TEXT_MAX];
    if (!attempt_open(agentd, attempt->name, &dirs)) {
        attempt->is_unread = true;
        return;
    }
    read_why(&dirs, why);
    if (attempt_read_payload(&dirs, &payload, NULL) == ERR_OK)
        desired_keep_payload(agentd, buf_str(&payload)); /* nobody sends it again */
    if (!config_remove(agentd, attempt->name)) {
        begin_clean(agentd, attempt);
        return;
    }
    log_warning("a start has come to nothing", LOG_STR("attempt", attempt->name),
                LOG_STR("why", why));
    struct wanted *wanted =
        desired_wanted(agentd, attempt->grant.allocation, attempt->grant.attempt);
    if (wanted != NULL)
        desired_put_off(agentd, wanted, why);
    attempt_vanish(agentd, attempt);
    desired_refresh(agentd); /* images may have been collected while it needed none */
}

/* Whether it was never signed for. In doubt it was: then something may have run. */
static bool is_unbegun(const struct agentd *agentd, const struct attempt *attempt)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    AUTO(fd) int pidfd = -1;
    enum attempt_holder holder = ATTEMPT_LEFT;
    return !attempt->is_begun && attempt_open(agentd, attempt->name, &dirs) &&
           attempt_holder(&dirs, &holder, &pidfd, NULL) == ERR_OK &&
           (holder == ATTEMPT_NEVER_RAN || holder == ATTEMPT_STARTING);
}

/* After its shim: what that has said, or that it cannot say it any more. */
static void settle(struct agentd *agentd, struct attempt *attempt)
{
    struct error e = { 0 };
    enum err rc = refresh(agentd, attempt, &e);
    attempt->is_unread = rc != ERR_OK && err_is_shortage(&e);
    if (attempt->is_unread) {
        log_warning("an end cannot be read now", LOG_STR("attempt", attempt->name), LOG_ERR(&e));
        return;
    }
    if (attempt->state == REC_EXITED)
        return;
    if (is_unbegun(agentd, attempt)) {
        begin_again(agentd, attempt);
        return;
    }
    log_warning("a shim ended without a word", LOG_STR("attempt", attempt->name));
    begin_clean(agentd, attempt);
}

static void shim_ended(struct agentd *agentd, void *self, uint32_t events)
{
    (void)events;
    struct attempt *attempt = self;
    /* Ours are reaped; one that an earlier agentd started belongs to init. */
    siginfo_t info = { 0 };
    (void)waitid(P_PIDFD, (id_t)attempt->shim.fd, &info, WEXITED | WNOHANG);
    agentd_unwatch(agentd, &attempt->shim);
    agentd->is_dirty = true;
    if (attempt->is_cleaning && (info.si_code != CLD_EXITED || info.si_status != 0)) {
        attempt->is_unclean = true;
        log_error("an attempt does not end", LOG_STR("attempt", attempt->name));
        return;
    }
    attempt->was_cleaned = attempt->was_cleaned || attempt->is_cleaning;
    attempt->is_cleaning = false;
    if (attempt->is_lost)
        attempt->is_unclean = !write_lost(agentd, attempt, "its shim was killed");
    else
        settle(agentd, attempt);
}

static void hold_shim(struct agentd *agentd, struct attempt *attempt, int pidfd)
{
    struct error e = { 0 };
    if (attempt->shim.fd >= 0) {
        fd_close(pidfd); /* looked at a second time */
        return;
    }
    attempt->shim = (struct watch){ -1, shim_ended, attempt };
    attempt->is_begun = true;
    if (agentd_watch(agentd, &attempt->shim, pidfd, &e) != ERR_OK)
        log_error("cannot watch a shim", LOG_STR("attempt", attempt->name), LOG_ERR(&e));
}

/* Finds out whose an attempt is after a restart of ours. */
static void adopt(struct agentd *agentd, struct attempt *attempt, const struct attempt_dirs *dirs)
{
    struct error e = { 0 };
    enum attempt_holder holder = ATTEMPT_STARTING; /* where it cannot be told: looked at again */
    int pidfd = -1;
    if (attempt_holder(dirs, &holder, &pidfd, &e) != ERR_OK)
        log_warning("cannot tell whose an attempt is", LOG_STR("attempt", attempt->name),
                    LOG_ERR(&e));
    attempt->is_unsigned = holder == ATTEMPT_STARTING;
    if (holder == ATTEMPT_HELD)
        hold_shim(agentd, attempt, pidfd);
    /* Its status may have been written between the two looks, so it is read after the lock. */
    enum err rc = refresh(agentd, attempt, &e);
    attempt->is_unsigned = attempt->is_unsigned || (rc != ERR_OK && err_is_shortage(&e));
    struct attempt_stop stop;
    if (attempt->state != REC_EXITED && attempt_read_stop(dirs, &stop, NULL) == ERR_OK) {
        attempt->stop_grace_s = stop.grace_s;
        attempt->stop_at = clock_monotonic();
        set_state(agentd, attempt, REC_STOPPING);
    }
    if (attempt->state == REC_EXITED || attempt->is_unsigned)
        return;
    if (holder == ATTEMPT_NEVER_RAN)
        begin_again(agentd, attempt);
    else if (holder == ATTEMPT_LEFT)
        begin_clean(agentd, attempt);
}

/* True when agentd was killed while preparing it: nothing ever ran there, so it may start yet. */
static bool never_ran(const struct agentd *agentd, const struct attempt_dirs *dirs,
                      const struct attempt_spec *spec)
{
    enum attempt_holder holder = ATTEMPT_LEFT;
    struct attempt_status status;
    AUTO(fd) int pidfd = -1;
    return strncmp(spec->boot_id, agentd->boot_id, sizeof(spec->boot_id)) == 0 &&
           attempt_holder(dirs, &holder, &pidfd, NULL) == ERR_OK && holder == ATTEMPT_NEVER_RAN &&
           attempt_read_status(dirs, &status, NULL) != ERR_OK;
}

/* What only cannot be read now must not count as nothing: its work may run. */
static enum err scan_one(struct agentd *agentd, const char *name, struct error *e)
{
    struct id allocation;
    uint32_t number = 0;
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_paths paths;
    struct attempt_spec spec;
    struct grant grant;
    if (strlen(name) >= ATTEMPT_NAME_MAX || !attempt_parse(name, &allocation, &number)) {
        log_warning("not an attempt's directory", LOG_STR("name", name));
        return ERR_OK;
    }
    config_paths(agentd, name, &paths);
    enum err rc = attempt_dirs_open(paths.disk, paths.run, &dirs, e);
    if (rc == ERR_OK)
        rc = attempt_read_spec(&dirs, &spec, e);
    if (rc != ERR_OK && err_is_shortage(e))
        return err_wrap(e, rc, "attempt %s", name);
    if (rc == ERR_OK)
        rc = grant_decode(spec.grant, &grant, e);
    if (rc != ERR_OK || never_ran(agentd, &dirs, &spec)) {
        if (rc != ERR_OK)
            log_warning("an attempt that was never complete is removed", LOG_STR("attempt", name),
                        LOG_ERR(e));
        (void)config_remove(agentd, name); /* what resists is found again at the next start */
        return ERR_OK;
    }
    adopt(agentd, attempt_add(agentd, &grant), &dirs);
    return ERR_OK;
}

enum err attempts_scan(struct agentd *agentd, struct error *e)
{
    enum err rc = ERR_OK;
    DIR *dir = opendir(agentd->alloc_dir);
    if (dir == NULL)
        return err_errno(e, "open %s", agentd->alloc_dir);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    for (struct dirent *entry = readdir(dir); entry != NULL && rc == ERR_OK; entry = readdir(dir))
        if (entry->d_name[0] != '.')
            rc = scan_one(agentd, entry->d_name, e);
    (void)closedir(dir);
    return rc;
}

static void start(struct agentd *agentd, uint32_t index)
{
    const struct grant *grant = &agentd->set.grants[index];
    struct wanted *wanted = &agentd->wanted[index];
    const struct payload_entry *payload = desired_payload(agentd, &grant->payload);
    struct error e = { 0 };
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    AUTO(fd) int lock_fd = -1;
    if (payload == NULL) {
        wanted->ready.has_payload = false;
        return;
    }
    enum err rc = config_prepare(agentd, grant, wanted, &dirs, &e);
    if (rc == ERR_OK) {
        rc = attempt_lock(&dirs, &lock_fd, &e);
        struct attempt *attempt = attempt_add(agentd, grant);
        attempt->state = REC_PREPARING;
        if (rc == ERR_OK)
            rc = spawn_shim(agentd, attempt, "run", lock_fd, &e);
        if (rc == ERR_OK)
            return;
        (void)config_remove(agentd, attempt->name);
        attempt_drop(agentd, agentd->attempts.count - 1);
    }
    log_warning("an attempt cannot be started", LOG_ERR(&e));
    if (err_is_shortage(&e))
        desired_put_off(agentd, wanted, e.text);
    else
        desired_refuse(agentd, wanted, e.text);
}

/* What the workload is told; without it, it is told by when all the same. */
static void write_reason(const struct agentd *agentd, const struct attempt *attempt,
                         const struct attempt_dirs *dirs)
{
    struct attempt_reason reason;
    struct error e = { 0 };
    unsigned cause = desired_stop_cause(agentd, &attempt->grant);
    const char *name = cause_name((enum cause)cause);
    if (cause == CAUSE_NONE || name == NULL)
        return;
    memset(&reason, 0, sizeof(reason)); /* the record is written whole, and checked whole */
    (void)snprintf(reason.cause, sizeof(reason.cause), "%s", name);
    if (attempt_write_reason(dirs, &reason, &e) != ERR_OK)
        log_warning("a workload cannot be told why it stops", LOG_STR("attempt", attempt->name),
                    LOG_ERR(&e));
}

static void stop(struct agentd *agentd, struct attempt *attempt, enum ipc_end end, uint32_t grace_s)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_stop order = { .end = (uint32_t)end, .grace_s = grace_s };
    struct error e = { 0 };
    bool is_open = attempt_open(agentd, attempt->name, &dirs);
    if (is_open && end == IPC_END_STOPPED)
        write_reason(agentd, attempt, &dirs);
    if (!is_open || attempt_write_stop(&dirs, &order, &e) != ERR_OK) {
        log_error("an attempt cannot be told to stop", LOG_STR("attempt", attempt->name),
                  LOG_ERR(&e));
        return; /* still there and unwanted: asked again at the next look */
    }
    attempt->stop_grace_s = grace_s;
    attempt->stop_at = clock_monotonic();
    set_state(agentd, attempt, REC_STOPPING);
    if (attempt->shim.fd >= 0)
        (void)pidfd_send_signal(attempt->shim.fd, SIGURG, NULL, 0); /* it may have ended */
}

static void forget(struct agentd *agentd, struct attempt *attempt)
{
    if (!config_remove(agentd, attempt->name)) {
        if (attempt->was_cleaned)
            attempt->is_unclean = true; /* that did not help: not more than once a second */
        else
            begin_clean(agentd, attempt); /* and it is asked again when that has ended */
        return;
    }
    attempt_vanish(agentd, attempt);
}

static void note(struct agentd *agentd, const struct rec_action *action)
{
    struct wanted *wanted = &agentd->wanted[action->index];
    if (wanted->noted == action->kind && wanted->reason == action->reason)
        return;
    wanted->noted = action->kind;
    wanted->reason = action->reason;
    wanted->is_changed = true;
}

static void carry_out(struct agentd *agentd, const struct rec_action *action,
                      struct attempt *attempt)
{
    switch (action->kind) {
    case REC_STOP_NOT_GRANTED:
        stop(agentd, attempt, IPC_END_NOT_GRANTED, action->grace_s);
        break;
    case REC_STOP:
        stop(agentd, attempt, IPC_END_STOPPED, action->grace_s);
        break;
    case REC_REMOVE:
        forget(agentd, attempt);
        break;
    case REC_START:
        start(agentd, action->index);
        break;
    case REC_WAIT:
    case REC_REFUSE:
    case REC_NEVER_STARTED:
        note(agentd, action);
        break;
    case REC_KIND_COUNT:
        break;
    }
}

static bool is_past(struct mono since, int64_t seconds)
{
    return since.ns != 0 && !mono_before(clock_monotonic(), mono_add_s(since, seconds));
}

static struct rec_observed observe(const struct attempt *attempt)
{
    return (struct rec_observed){
        .grant = &attempt->grant,
        .state = attempt->state,
        .stop_grace_s = attempt->stop_grace_s,
        .is_stop_overdue = is_past(attempt->stopping_at, RECONCILE_OLD_WORK_WAIT_S),
        .is_log_stored = attempt->is_log_stored && attempt->is_end_told,
        .is_busy = attempt->shim.fd >= 0 || attempt->is_unsigned || attempt->is_unclean ||
                   attempt->is_unread,
        .ended_at = attempt->ended_at,
    };
}

static bool is_observed_kind(enum rec_kind kind)
{
    return kind == REC_STOP_NOT_GRANTED || kind == REC_STOP || kind == REC_REMOVE;
}

void attempts_reconcile(struct agentd *agentd)
{
    agentd->is_dirty = false;
    AUTO(arena) struct arena arena = { 0 };
    size_t count = agentd->attempts.count;
    struct attempt **attempts = arena_new(&arena, count + 1, sizeof(struct attempt *));
    struct rec_observed *observed = arena_new(&arena, count + 1, sizeof(*observed));
    struct rec_ready *ready = arena_new(&arena, (size_t)agentd->set.count + 1, sizeof(*ready));
    for (size_t i = 0; i < count; i++) {
        attempts[i] = agentd->attempts.items[i];
        observed[i] = observe(attempts[i]);
    }
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        ready[i] = agentd->wanted[i].ready;
        ready[i].why = agentd->wanted[i].why;
    }
    const struct rec_input input = {
        .has_set = agentd->has_set,
        .desired = agentd->set.grants,
        .ready = ready,
        .desired_count = agentd->set.count,
        .observed = observed,
        .observed_count = count,
        .now = clock_boottime(),
        .lease = agentd->lease,
        .starting_max = agentd->options.starting_max,
    };
    struct rec_plan plan;
    reconcile(&input, &arena, &plan);
    for (size_t i = 0; i < plan.count; i++) {
        const struct rec_action *action = &plan.actions[i];
        carry_out(agentd, action, is_observed_kind(action->kind) ? attempts[action->index] : NULL);
    }
}

void attempts_hint(struct agentd *agentd)
{
    char name[ATTEMPT_NAME_MAX];
    for (;;) {
        ssize_t got = recv(agentd->hints.fd, name, sizeof(name) - 1, MSG_DONTWAIT);
        if (got <= 0)
            return;
        name[got] = '\0';
        struct id allocation;
        uint32_t number = 0;
        struct attempt *attempt = attempt_parse(name, &allocation, &number)
                                      ? attempts_find(agentd, allocation, number)
                                      : NULL;
        if (attempt != NULL)
            (void)refresh(agentd, attempt, NULL); /* or at the next look */
    }
}

/*
 * Whoever waits for a shim waits for a process, which may be stopped, traced or lost in the kernel.
 * One that has not even signed for its attempt is replaced: nothing of it has run. One that does
 * not begin to stop is killed, and what it left is cleaned up.
 */
static void look_at_shim(struct agentd *agentd, struct attempt *attempt)
{
    const char *why = NULL;
    bool is_running = attempt->status.state == ATTEMPT_RUNNING;
    bool is_slow =
        !attempt->is_cleaning && !attempt->is_begun && is_past(attempt->shim_at, SIGN_MAX_S);
    if (attempt->shim.fd < 0)
        return;
    if (attempt->is_begun)
        (void)pidfd_send_signal(attempt->shim.fd, SIGCONT, NULL,
                                0); /* stopped, it keeps no deadline */
    if (is_slow && is_unbegun(agentd, attempt))
        why = "it has not begun";
    else if (attempt->is_cleaning && is_past(attempt->shim_at, CLEAN_MAX_S))
        why = "it does not finish cleaning up";
    else if (!attempt->is_cleaning && attempt->state == REC_STOPPING &&
             attempt->status.state != ATTEMPT_STOPPING &&
             is_past(attempt->stop_at, is_running ? STOP_MAX_S : CLEAN_MAX_S))
        why = "it does not begin to stop";
    attempt->is_begun = attempt->is_begun || (is_slow && why == NULL);
    if (why == NULL)
        return;
    log_error("a shim does not answer and is killed", LOG_STR("attempt", attempt->name),
              LOG_STR("why", why));
    (void)pidfd_send_signal(attempt->shim.fd, SIGKILL, NULL,
                            0);                              /* its end is an event like others */
    attempt->stop_at = attempt->shim_at = clock_monotonic(); /* once in such a time */
}

void attempts_look(struct agentd *agentd)
{
    /* From the last to the first: one that is dropped gives its place to the last. */
    for (size_t i = agentd->attempts.count; i-- > 0;) {
        struct attempt *attempt = agentd->attempts.items[i];
        if (attempt->is_unsigned) {
            AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
            if (attempt_open(agentd, attempt->name, &dirs))
                adopt(agentd, attempt, &dirs);
        } else if (attempt->is_unread) {
            settle(agentd, attempt);
        } else if (attempt->is_unclean) {
            begin_clean(agentd, attempt);
        } else {
            (void)refresh(agentd, attempt, NULL); /* again in a second */
            look_at_shim(agentd, attempt);
        }
    }
    agentd->is_dirty = true;
}

void attempts_log_ack(struct agentd *agentd, const struct ipc_log_ack *ack)
{
    struct attempt *attempt = attempts_find(agentd, ack->allocation, ack->attempt);
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    if (attempt == NULL || !attempt_open(agentd, attempt->name, &dirs))
        return;
    struct error e = { 0 };
    if (logspool_ack(dirs.disk, ack->offset, &e) != ERR_OK)
        log_warning("a log cannot be acknowledged", LOG_STR("attempt", attempt->name), LOG_ERR(&e));
    if (ack->is_final == 1 && attempt->state == REC_EXITED) {
        attempt->is_log_stored = true;
        agentd->is_dirty = true;
    }
}

void attempts_log_again(struct agentd *agentd, const struct ipc_log_again *again)
{
    struct attempt *attempt = attempts_find(agentd, again->allocation, again->attempt);
    if (attempt != NULL)
        attempt->is_log_offered = attempt->is_log_complete = false;
}

void attempts_done(struct agentd *agentd)
{
    while (agentd->attempts.count > 0)
        attempt_drop(agentd, agentd->attempts.count - 1);
    vec_done(&agentd->attempts);
    id_map_done(&agentd->attempt_of);
    vec_done(&agentd->gone);
}
