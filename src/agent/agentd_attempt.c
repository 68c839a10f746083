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
#include "os/fd.h"
#include "os/log.h"
#include "os/process.h"

enum { SHIM_FD_COUNT = 5 }; /* see shim.h */

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
    attempt->is_log_stored = logspool_acked(disk_fd) >= log_size(disk_fd);
    set_state(agentd, attempt, REC_EXITED);
}

/* Takes over what the shim has published. */
static void refresh(struct agentd *agentd, struct attempt *attempt)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_status status;
    if (attempt->state == REC_EXITED || !attempt_open(agentd, attempt->name, &dirs) ||
        attempt_read_status(&dirs, &status, NULL) != ERR_OK)
        return;
    attempt->status = status;
    attempt->has_log = attempt->has_log || faccessat(dirs.disk, "log", F_OK, 0) == 0;
    if (status.state == ATTEMPT_EXITED)
        note_ended(agentd, attempt, dirs.disk);
    else if (status.state == ATTEMPT_STOPPING || attempt->state == REC_STOPPING)
        set_state(agentd, attempt, REC_STOPPING);
    else
        set_state(agentd, attempt, REC_RUNNING);
}

/* Written in the name of a shim that cannot say it any more. */
static void write_lost(struct agentd *agentd, struct attempt *attempt, const char *reason)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_status *status = &attempt->status;
    struct error e = { 0 };
    attempt->is_lost = false;
    status->state = ATTEMPT_EXITED;
    status->end = IPC_END_LOST;
    status->exit_code = -1;
    status->signal = SIGKILL;
    status->ended_ns = clock_boottime().ns;
    memcpy(status->boot_id, agentd->boot_id, sizeof(agentd->boot_id));
    ipc_text_set(status->reason, reason);
    if (!attempt_open(agentd, attempt->name, &dirs) ||
        attempt_write_status(&dirs, status, &e) != ERR_OK)
        log_error("the end of a lost attempt could not be written",
                  LOG_STR("attempt", attempt->name), LOG_ERR(&e));
    note_ended(agentd, attempt, dirs.disk);
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
    int pidfd = -1;
    if (lock_fd >= 0 && spare_take(agentd, &paths, lock_fd, &pidfd))
        return agentd_watch(agentd, &attempt->shim, pidfd, e);
    const int fds[SHIM_FD_COUNT] = { -1, -1, STDERR_FILENO, lock_fd, agentd->runtime.fd };
    const struct process_spec spec = {
        .argv = argv,
        .env = env,
        .fds = fds,
        .fd_count = COUNT_OF(fds),
        .is_group_leader = true,
    };
    struct process process = PROCESS_NONE;
    enum err rc = process_spawn(&spec, &process, e);
    return rc == ERR_OK ? agentd_watch(agentd, &attempt->shim, process.pidfd, e) : rc;
}

/* A shim was killed, or the node went down: end what it may have left before saying that it is over. */
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
    if (attempt->is_lost) {
        write_lost(agentd, attempt, "its shim was killed");
        return;
    }
    refresh(agentd, attempt);
    if (attempt->state != REC_EXITED) {
        log_warning("a shim ended without a word", LOG_STR("attempt", attempt->name));
        begin_clean(agentd, attempt);
    }
}

static void hold_shim(struct agentd *agentd, struct attempt *attempt, int pidfd)
{
    struct error e = { 0 };
    attempt->shim = (struct watch){ -1, shim_ended, attempt };
    if (agentd_watch(agentd, &attempt->shim, pidfd, &e) != ERR_OK)
        log_error("cannot watch a shim", LOG_STR("attempt", attempt->name), LOG_ERR(&e));
}

/* Finds out whose an attempt is after a restart of ours. */
static void adopt(struct agentd *agentd, struct attempt *attempt, const struct attempt_dirs *dirs)
{
    struct error e = { 0 };
    enum attempt_holder holder = ATTEMPT_LEFT;
    int pidfd = -1;
    if (attempt_holder(dirs, &holder, &pidfd, &e) != ERR_OK)
        log_warning("cannot tell whose an attempt is", LOG_STR("attempt", attempt->name),
                    LOG_ERR(&e));
    attempt->is_unsigned = holder == ATTEMPT_STARTING;
    if (holder == ATTEMPT_HELD)
        hold_shim(agentd, attempt, pidfd);
    /* Its status may have been written between the two looks, so it is read after the lock. */
    refresh(agentd, attempt);
    struct attempt_stop stop;
    if (attempt->state != REC_EXITED && attempt_read_stop(dirs, &stop, NULL) == ERR_OK) {
        attempt->stop_grace_s = stop.grace_s;
        set_state(agentd, attempt, REC_STOPPING);
    }
    bool is_left = holder == ATTEMPT_LEFT || holder == ATTEMPT_NEVER_RAN;
    if (is_left && attempt->state != REC_EXITED)
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

static void scan_one(struct agentd *agentd, const char *name)
{
    struct id allocation;
    uint32_t number = 0;
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_spec spec;
    struct grant grant;
    struct error e = { 0 };
    if (strlen(name) >= ATTEMPT_NAME_MAX || !attempt_parse(name, &allocation, &number) ||
        !attempt_open(agentd, name, &dirs)) {
        log_warning("not an attempt's directory", LOG_STR("name", name));
        return;
    }
    enum err rc = attempt_read_spec(&dirs, &spec, &e);
    if (rc == ERR_OK)
        rc = grant_decode(spec.grant, &grant, &e);
    if (rc != ERR_OK || never_ran(agentd, &dirs, &spec)) {
        if (rc != ERR_OK)
            log_warning("an attempt that was never complete is removed", LOG_STR("attempt", name),
                        LOG_ERR(&e));
        (void)config_remove(agentd, name); /* what resists is found again at the next start */
        return;
    }
    adopt(agentd, attempt_add(agentd, &grant), &dirs);
}

enum err attempts_scan(struct agentd *agentd, struct error *e)
{
    DIR *dir = opendir(agentd->alloc_dir);
    if (dir == NULL)
        return err_errno(e, "open %s", agentd->alloc_dir);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        if (entry->d_name[0] != '.')
            scan_one(agentd, entry->d_name);
    (void)closedir(dir);
    return ERR_OK;
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
    wanted->ready.is_hopeless = true;
    ipc_text_set(wanted->why, e.text);
    agentd->is_dirty = true;
    log_warning("an attempt cannot be started", LOG_ERR(&e));
}

static void stop(struct agentd *agentd, struct attempt *attempt, enum ipc_end end, uint32_t grace_s)
{
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    struct attempt_stop order = { .end = (uint32_t)end, .grace_s = grace_s };
    struct error e = { 0 };
    if (!attempt_open(agentd, attempt->name, &dirs) ||
        attempt_write_stop(&dirs, &order, &e) != ERR_OK) {
        log_error("an attempt cannot be told to stop", LOG_STR("attempt", attempt->name),
                  LOG_ERR(&e));
        return; /* still there and unwanted: asked again at the next look */
    }
    attempt->stop_grace_s = grace_s;
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
    struct key key = { attempt->grant.allocation, attempt->grant.workload, attempt->grant.attempt };
    vec_push(&agentd->gone, key);
    for (size_t i = 0; i < agentd->attempts.count; i++)
        if (agentd->attempts.items[i] == attempt) {
            attempt_drop(agentd, i);
            return;
        }
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

static struct rec_observed observe(const struct attempt *attempt)
{
    return (struct rec_observed){
        .grant = &attempt->grant,
        .state = attempt->state,
        .stop_grace_s = attempt->stop_grace_s,
        .is_log_stored = attempt->is_log_stored && attempt->is_end_told,
        .is_busy = attempt->shim.fd >= 0 || attempt->is_unsigned || attempt->is_unclean,
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
            refresh(agentd, attempt);
    }
}

void attempts_look(struct agentd *agentd)
{
    for (size_t i = 0; i < agentd->attempts.count; i++) {
        struct attempt *attempt = agentd->attempts.items[i];
        if (attempt->is_unsigned) {
            AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
            if (attempt_open(agentd, attempt->name, &dirs))
                adopt(agentd, attempt, &dirs);
        } else if (attempt->is_unclean) {
            begin_clean(agentd, attempt);
        } else if (attempt->state != REC_EXITED) {
            refresh(agentd, attempt);
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

void attempts_done(struct agentd *agentd)
{
    while (agentd->attempts.count > 0)
        attempt_drop(agentd, agentd->attempts.count - 1);
    vec_done(&agentd->attempts);
    id_map_done(&agentd->attempt_of);
    vec_done(&agentd->gone);
}
