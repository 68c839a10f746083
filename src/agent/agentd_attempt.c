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

enum { SHIM_LOCK_FD = 3 };

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

int attempt_open(const struct agentd *agentd, const struct attempt *attempt)
{
    char path[ATTEMPT_PATH_MAX + ATTEMPT_NAME_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", agentd->alloc_dir, attempt->name);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
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

static void note_ended(struct agentd *agentd, struct attempt *attempt, int dir_fd)
{
    bool is_this_boot =
        strncmp(attempt->status.boot_id, agentd->boot_id, sizeof(attempt->status.boot_id)) == 0;
    attempt->ended_at = is_this_boot ? (struct mono){ attempt->status.ended_ns } : clock_boottime();
    attempt->is_log_stored = logspool_acked(dir_fd) >= log_size(dir_fd);
    set_state(agentd, attempt, REC_EXITED);
}

/* Takes over what the shim has published. */
static void refresh(struct agentd *agentd, struct attempt *attempt)
{
    AUTO(fd) int dir_fd = attempt_open(agentd, attempt);
    struct attempt_status status;
    if (attempt->state == REC_EXITED || dir_fd < 0 ||
        attempt_read_status(dir_fd, &status, NULL) != ERR_OK)
        return;
    attempt->status = status;
    if (status.state == ATTEMPT_EXITED)
        note_ended(agentd, attempt, dir_fd);
    else if (status.state == ATTEMPT_STOPPING || attempt->state == REC_STOPPING)
        set_state(agentd, attempt, REC_STOPPING);
    else
        set_state(agentd, attempt, REC_RUNNING);
}

/* Written in the name of a shim that cannot say it any more. */
static void write_lost(struct agentd *agentd, struct attempt *attempt, const char *reason)
{
    AUTO(fd) int dir_fd = attempt_open(agentd, attempt);
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
    if (dir_fd < 0 || attempt_write_status(dir_fd, status, ATTEMPT_DURABLE, &e) != ERR_OK)
        log_error("the end of a lost attempt could not be written",
                  LOG_STR("attempt", attempt->name), LOG_ERR(&e));
    note_ended(agentd, attempt, dir_fd);
}

static void shim_ended(struct agentd *agentd, void *self, uint32_t events);

/* Spawns "berth-shim VERB DIR"; `lock_fd` becomes descriptor 3 of it, -1 for none. */
static enum err spawn_shim(struct agentd *agentd, struct attempt *attempt, const char *verb,
                           int lock_fd, struct error *e)
{
    char dir[ATTEMPT_PATH_MAX + ATTEMPT_NAME_MAX];
    (void)snprintf(dir, sizeof(dir), "%s/%s", agentd->alloc_dir, attempt->name);
    const char *const argv[] = { agentd->options.shim, verb, dir, NULL };
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    const int fds[] = { -1, -1, STDERR_FILENO, lock_fd };
    const struct process_spec spec = {
        .argv = argv,
        .env = env,
        .fds = fds,
        .fd_count = lock_fd >= 0 ? SHIM_LOCK_FD + 1 : SHIM_LOCK_FD,
        .is_group_leader = true,
    };
    struct process process = PROCESS_NONE;
    enum err rc = process_spawn(&spec, &process, e);
    if (rc != ERR_OK)
        return rc;
    attempt->shim = (struct watch){ -1, shim_ended, attempt };
    return agentd_watch(agentd, &attempt->shim, process.pidfd, e);
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

/* Finds out whose an attempt's directory is after a restart of ours. */
static void adopt(struct agentd *agentd, struct attempt *attempt, int dir_fd)
{
    struct error e = { 0 };
    enum attempt_holder holder = ATTEMPT_LEFT;
    int pidfd = -1;
    if (attempt_holder(dir_fd, &holder, &pidfd, &e) != ERR_OK)
        log_warning("cannot tell whose an attempt is", LOG_STR("attempt", attempt->name),
                    LOG_ERR(&e));
    attempt->is_unsigned = holder == ATTEMPT_STARTING;
    if (holder == ATTEMPT_HELD)
        hold_shim(agentd, attempt, pidfd);
    /* Its status may have been written between the two looks, so it is read after the lock. */
    refresh(agentd, attempt);
    struct attempt_stop stop;
    if (attempt->state != REC_EXITED && attempt_read_stop(dir_fd, &stop, NULL) == ERR_OK) {
        attempt->stop_grace_s = stop.grace_s;
        set_state(agentd, attempt, REC_STOPPING);
    }
    if (holder == ATTEMPT_LEFT && attempt->state != REC_EXITED)
        begin_clean(agentd, attempt);
}

static void scan_one(struct agentd *agentd, const char *name)
{
    struct id allocation;
    uint32_t number = 0;
    char path[ATTEMPT_PATH_MAX + ATTEMPT_NAME_MAX];
    if (strlen(name) >= ATTEMPT_NAME_MAX || !attempt_parse(name, &allocation, &number)) {
        log_warning("not an attempt's directory", LOG_STR("name", name));
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/%s", agentd->alloc_dir, name);
    AUTO(fd) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    AUTO(buf) struct buf bytes = { 0 };
    struct grant grant;
    struct error e = { 0 };
    enum attempt_holder holder = ATTEMPT_NEVER_RAN;
    AUTO(fd) int pidfd = -1;
    enum err rc =
        dir_fd < 0 ? err_errno(&e, "open %s", path) : attempt_holder(dir_fd, &holder, &pidfd, &e);
    if (rc == ERR_OK && holder == ATTEMPT_NEVER_RAN) {
        (void)config_remove(agentd, name); /* killed while preparing it: nothing ever ran there */
        return;
    }
    if (rc == ERR_OK)
        rc = attempt_read_file(dir_fd, "grant", GRANT_SIZE, &bytes, &e);
    if (rc == ERR_OK && bytes.size != GRANT_SIZE)
        rc = err_set(&e, ERR_CORRUPT, "grant is too short");
    if (rc == ERR_OK)
        rc = grant_decode((const uint8_t *)bytes.data, &grant, &e);
    if (rc != ERR_OK) {
        log_error("an attempt cannot be read", LOG_STR("attempt", name), LOG_ERR(&e));
        return;
    }
    adopt(agentd, attempt_add(agentd, &grant), dir_fd);
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
    AUTO(fd) int dir_fd = -1;
    AUTO(fd) int lock_fd = -1;
    if (payload == NULL) {
        wanted->ready.has_payload = false;
        return;
    }
    enum err rc = config_prepare(agentd, grant, wanted, &dir_fd, &e);
    if (rc == ERR_OK) {
        rc = attempt_lock(dir_fd, &lock_fd, &e);
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
    AUTO(fd) int dir_fd = attempt_open(agentd, attempt);
    struct attempt_stop order = { .end = (uint32_t)end, .grace_s = grace_s };
    struct error e = { 0 };
    if (dir_fd < 0 || attempt_write_stop(dir_fd, &order, &e) != ERR_OK) {
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
        .is_log_stored = attempt->is_log_stored,
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
            AUTO(fd) int dir_fd = attempt_open(agentd, attempt);
            if (dir_fd >= 0)
                adopt(agentd, attempt, dir_fd);
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
    AUTO(fd) int dir_fd = attempt != NULL ? attempt_open(agentd, attempt) : -1;
    if (dir_fd < 0)
        return;
    struct error e = { 0 };
    if (logspool_ack(dir_fd, ack->offset, &e) != ERR_OK)
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
