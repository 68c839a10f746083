#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "agent/logspool.h"
#include "os/fd.h"
#include "os/log.h"

enum {
    OUTGOING_MAX = 256,
    FULL_EVERY_S = 5,
    BLOCKED_MAX_S = 30,
    MESSAGES_PER_EVENT = 64,
};

static bool has_peer(const struct agentd *agentd)
{
    return agentd->peer.fd >= 0 && !agentd->is_dropping;
}

static void outgoing_clear(struct agentd *agentd)
{
    for (size_t i = 0; i < agentd->outgoing.count; i++) {
        mem_free(agentd->outgoing.items[i].message);
        fd_pass_done(&agentd->outgoing.items[i].fds);
    }
    agentd->outgoing.count = 0;
}

void peer_drop(struct agentd *agentd, const char *why)
{
    if (agentd->peer.fd < 0 || agentd->is_dropping)
        return;
    agentd->is_dropping = true;
    log_info("network half disconnected", LOG_STR("why", why));
}

void peer_reap(struct agentd *agentd)
{
    if (!agentd->is_dropping)
        return;
    agentd->is_dropping = false;
    agentd_unwatch(agentd, &agentd->peer);
    outgoing_clear(agentd);
    streams_disconnect(agentd);
    buf_done(&agentd->incoming);
    agentd->incoming_all_bytes = 0;
    agentd->gone.count = 0; /* absent from the next full set */
}

/* ERR_UNAVAILABLE: no room now; ERR_LIMIT: not with descriptors. Any other failure has
 * dropped the peer. */
static enum err put(struct agentd *agentd, enum ipc_tag tag, void *message,
                    const struct fd_pass *fds)
{
    if (!has_peer(agentd))
        return ERR_IO;
    struct error e = { 0 };
    enum err rc = ipc_send(agentd->peer.fd, tag, message, fds != NULL ? fds->fds : NULL,
                           fds != NULL ? fds->count : 0, &e);
    if (rc == ERR_LIMIT)
        return rc; /* the next flush is in a second at the latest */
    if (rc == ERR_OK) {
        agentd->blocked_at = (struct mono){ 0 };
        return rc;
    }
    if (rc == ERR_UNAVAILABLE) {
        if (agentd->blocked_at.ns == 0)
            agentd->blocked_at = clock_monotonic();
        struct epoll_event event = { EPOLLIN | EPOLLOUT, { .ptr = &agentd->peer } };
        (void)epoll_ctl(agentd->epoll_fd, EPOLL_CTL_MOD, agentd->peer.fd, &event);
        return rc;
    }
    peer_drop(agentd, e.text);
    return rc;
}

void peer_send(struct agentd *agentd, enum ipc_tag tag, void *message, struct fd_pass *fds)
{
    AUTO(fd_pass) struct fd_pass owned = { 0 };
    if (fds != NULL) {
        owned = *fds;
        fds->count = 0;
    }
    if (!has_peer(agentd))
        return;
    enum err rc = agentd->outgoing.count == 0 ? put(agentd, tag, message, &owned) : ERR_UNAVAILABLE;
    if (rc != ERR_UNAVAILABLE && rc != ERR_LIMIT)
        return;
    if (agentd->outgoing.count >= OUTGOING_MAX) {
        peer_drop(agentd, "it asks more than it reads");
        return;
    }
    struct outgoing item = { .tag = tag, .message = mem_new(1, ipc_size((uint32_t)tag)) };
    memcpy(item.message, message, ipc_size((uint32_t)tag));
    item.fds = owned;
    owned.count = 0;
    vec_push(&agentd->outgoing, item);
}

static bool flush_queue(struct agentd *agentd)
{
    size_t sent = 0;
    while (sent < agentd->outgoing.count) {
        struct outgoing *item = &agentd->outgoing.items[sent];
        enum err rc = put(agentd, item->tag, item->message, &item->fds);
        if (rc != ERR_OK)
            break;
        mem_free(item->message);
        fd_pass_done(&item->fds);
        sent++;
    }
    agentd->outgoing.count -= sent;
    if (sent > 0) /* an empty queue may have no memory at all */
        memmove(agentd->outgoing.items, agentd->outgoing.items + sent,
                agentd->outgoing.count * sizeof(struct outgoing));
    return agentd->outgoing.count == 0;
}

/* Observed sets */

static uint32_t state_of(const struct attempt *attempt)
{
    static const enum ipc_state states[] = {
        [REC_PREPARING] = IPC_PREPARING,
        [REC_RUNNING] = IPC_RUNNING,
        [REC_STOPPING] = IPC_STOPPING,
        [REC_EXITED] = IPC_EXITED,
    };
    return (uint32_t)states[attempt->state];
}

static void fill_attempt(const struct agentd *agentd, const struct attempt *attempt,
                         struct ipc_observed_entry *out)
{
    const struct attempt_status *status = &attempt->status;
    bool is_ended = attempt->state == REC_EXITED;
    struct stat st = { 0 };
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    *out = (struct ipc_observed_entry){
        .allocation = attempt->grant.allocation,
        .workload = attempt->grant.workload,
        .attempt = attempt->grant.attempt,
        .state = state_of(attempt),
        .end = is_ended ? status->end : IPC_END_NONE,
        .exit_code = is_ended ? status->exit_code : -1,
        .signal = is_ended ? status->signal : 0,
        .is_oom = status->is_oom,
        .started_ns = status->started_ns,
        .ended_ns = status->ended_ns,
        .checkpointed_ns = attempt->said.checkpointed_ns,
        .checkpoints = attempt->said.checkpoints,
        .extended_s = attempt->said.extended_s,
    };
    if (attempt->has_log && attempt_open(agentd, attempt->name, &dirs) &&
        fstatat(dirs.disk, "log", &st, AT_SYMLINK_NOFOLLOW) == 0)
        out->log_bytes = (uint64_t)st.st_size;
    ipc_text_set(out->reason, status->reason);
}

static void fill_wanted(const struct agentd *agentd, uint32_t index, struct ipc_observed_entry *out)
{
    const struct grant *grant = &agentd->set.grants[index];
    const struct wanted *wanted = &agentd->wanted[index];
    bool is_over = wanted->noted != REC_WAIT;
    *out = (struct ipc_observed_entry){
        .allocation = grant->allocation,
        .workload = grant->workload,
        .attempt = grant->attempt,
        .state = is_over ? IPC_EXITED : IPC_WAITING,
        .exit_code = -1,
    };
    if (is_over)
        out->end = wanted->noted == REC_REFUSE ? IPC_END_START_FAILED : IPC_END_STOPPED;
    ipc_text_set(out->reason, wanted->reason != NULL ? wanted->reason : "");
}

/* Collects entries and sends a message whenever one is full. */
struct report {
    struct agentd *agentd;
    struct ipc_observed message;
    bool is_stuck; /* no room: what is left stays marked */
};

static void report_init(struct report *report, struct agentd *agentd, bool is_full, uint32_t total)
{
    *report = (struct report){ .agentd = agentd };
    report->message.is_full = is_full ? 1 : 0;
    report->message.total = total;
    report->message.epoch = agentd->stamp.epoch;
    report->message.generation = agentd->stamp.generation;
    report->message.now_ns = clock_boottime().ns;
}

static void report_send(struct report *report)
{
    if (put(report->agentd, IPC_OBSERVED, &report->message, NULL) != ERR_OK) {
        report->is_stuck = true;
        return;
    }
    if (report->message.is_full == 1)
        report->message.first += report->message.count;
    report->message.count = 0;
}

/* Where the next entry goes; NULL: no room. */
static struct ipc_observed_entry *report_next(struct report *report)
{
    if (report->message.count == IPC_OBSERVED_MAX)
        report_send(report);
    return report->is_stuck ? NULL : &report->message.entries[report->message.count++];
}

static bool is_wanted_shown(const struct agentd *agentd, uint32_t index)
{
    const struct grant *grant = &agentd->set.grants[index];
    return agentd->wanted[index].noted != REC_KIND_COUNT &&
           attempts_find(agentd, grant->allocation, grant->attempt) == NULL;
}

static uint32_t count_shown(const struct agentd *agentd)
{
    uint32_t total = (uint32_t)agentd->attempts.count;
    for (uint32_t i = 0; i < agentd->set.count; i++)
        total += is_wanted_shown(agentd, i) ? 1U : 0U;
    return total;
}

static void report_attempts(struct report *report, bool is_full)
{
    struct agentd *agentd = report->agentd;
    for (size_t i = 0; i < agentd->attempts.count; i++) {
        struct attempt *attempt = agentd->attempts.items[i];
        if (!is_full && !attempt->is_changed)
            continue;
        struct ipc_observed_entry *entry = report_next(report);
        if (entry == NULL)
            return;
        fill_attempt(agentd, attempt, entry);
        attempt->is_changed = false;
        if (attempt->state == REC_EXITED && !attempt->is_end_told) {
            attempt->is_end_told = true;
            agentd->is_dirty = true; /* it may be forgotten now */
        }
    }
}

static void report_wanted(struct report *report, bool is_full)
{
    struct agentd *agentd = report->agentd;
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        if (!is_wanted_shown(agentd, i) || (!is_full && !agentd->wanted[i].is_changed))
            continue;
        struct ipc_observed_entry *entry = report_next(report);
        if (entry == NULL)
            return;
        fill_wanted(agentd, i, entry);
        agentd->wanted[i].is_changed = false;
    }
}

static void report_gone(struct report *report)
{
    struct agentd *agentd = report->agentd;
    while (agentd->gone.count > 0) {
        struct ipc_observed_entry *entry = report_next(report);
        if (entry == NULL)
            return;
        const struct key *key = &agentd->gone.items[--agentd->gone.count];
        *entry = (struct ipc_observed_entry){ .allocation = key->allocation,
                                              .workload = key->workload,
                                              .attempt = key->attempt,
                                              .state = IPC_GONE,
                                              .exit_code = -1 };
    }
}

/*
 * A set that found no room half-way, or changes lost with a message that was not sent: the marks
 * are gone, so the next thing sent is a full set.
 */
static bool flush_observed(struct agentd *agentd)
{
    struct mono now = clock_monotonic();
    bool is_full = !mono_before(now, agentd->full_at);
    static struct report report; /* 13 KiB: not for the stack of every flush */
    report_init(&report, agentd, is_full, is_full ? count_shown(agentd) : 0);
    if (!is_full)
        report_gone(&report);
    report_attempts(&report, is_full);
    report_wanted(&report, is_full);
    bool must_send = report.message.count > 0 || (is_full && report.message.total == 0);
    if (!report.is_stuck && must_send)
        report_send(&report);
    if (report.is_stuck)
        agentd->full_at = (struct mono){ 0 };
    else if (is_full)
        agentd->full_at = mono_add_s(now, FULL_EVERY_S);
    return !report.is_stuck;
}

/* Logs */

static bool offer_log(struct agentd *agentd, struct attempt *attempt)
{
    bool is_complete = attempt->state == REC_EXITED;
    if (!attempt->has_log || attempt->is_log_stored ||
        (attempt->is_log_offered && (!is_complete || attempt->is_log_complete)))
        return true;
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    AUTO(fd_pass) struct fd_pass fds = { .fds = { -1 }, .count = 0 };
    struct stat st = { 0 };
    if (attempt_open(agentd, attempt->name, &dirs))
        fds.fds[0] = openat(dirs.disk, "log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fds.fds[0] < 0 || fstat(fds.fds[0], &st) != 0) {
        attempt->has_log =
            dirs.disk < 0 || errno != ENOENT; /* what is short now may be had later */
        return true;
    }
    struct ipc_log_ready ready = {
        .allocation = attempt->grant.allocation,
        .attempt = attempt->grant.attempt,
        .is_complete = is_complete ? 1 : 0,
        .size = (uint64_t)st.st_size,
        .acked = logspool_acked(dirs.disk),
    };
    fds.count = 1;
    bool has_descriptor = !attempt->is_log_offered;
    if (put(agentd, IPC_LOG_READY, &ready, has_descriptor ? &fds : NULL) != ERR_OK)
        return false;
    attempt->is_log_offered = true;
    attempt->is_log_complete = is_complete;
    return true;
}

static bool ask_image(struct agentd *agentd, const struct grant *grant,
                      const struct grant_digest *digest, enum ipc_image_kind kind)
{
    struct ipc_need_image need = { .digest = *digest, .kind = kind, .tenant = grant->tenant };
    return put(agentd, IPC_NEED_IMAGE, &need, NULL) == ERR_OK;
}

static bool ask_images(struct agentd *agentd)
{
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        const struct grant *grant = &agentd->set.grants[i];
        struct wanted *wanted = &agentd->wanted[i];
        if (!is_wanted_shown(agentd, i) || wanted->noted != REC_WAIT ||
            mono_before(clock_boottime(), wanted->ready.again_at))
            continue;
        if (!wanted->ready.has_image && !wanted->is_image_asked &&
            !grant_digest_is_none(&grant->image)) {
            if (!ask_image(agentd, grant, &grant->image, IPC_IMAGE))
                return false;
            wanted->is_image_asked = true;
        }
        if (!wanted->ready.has_upload && !wanted->is_upload_asked) {
            if (!ask_image(agentd, grant, &grant->upload, IPC_UPLOAD))
                return false;
            wanted->is_upload_asked = true;
        }
    }
    return true;
}

void peer_flush(struct agentd *agentd)
{
    if (!has_peer(agentd))
        return;
    struct mono now = clock_monotonic();
    if (agentd->blocked_at.ns != 0) {
        if (mono_before(mono_add_s(agentd->blocked_at, BLOCKED_MAX_S), now))
            peer_drop(agentd, "it has read nothing for 30 s");
        return; /* EPOLLOUT brings us back */
    }
    struct ipc_challenge challenge;
    if (contact_next(agentd, &challenge))
        peer_send(agentd, IPC_CHALLENGE, &challenge, NULL);
    if (!flush_queue(agentd) || !flush_observed(agentd))
        return;
    for (size_t i = 0; i < agentd->attempts.count; i++)
        if (!offer_log(agentd, agentd->attempts.items[i]))
            return;
    (void)ask_images(agentd); /* what found no room is asked with the next flush */
}

/* Messages */

void peer_hello(struct agentd *agentd)
{
    struct ipc_hello hello = {
        .node = agentd->identity.node,
        .epoch = agentd->stamp.epoch,
        .generation = agentd->stamp.generation,
        .run = agentd->run,
    };
    (void)snprintf(hello.boot_id, sizeof(hello.boot_id), "%s", agentd->boot_id);
    (void)snprintf(hello.build, sizeof(hello.build), "%s", BERTH_VERSION);
    peer_send(agentd, IPC_HELLO, &hello, NULL);
}

static enum err take(struct agentd *agentd, const union ipc_message *m, struct error *e)
{
    switch ((enum ipc_tag)m->header.tag) {
    case IPC_DESIRED_BEGIN:
        return desired_begin(agentd, &m->desired_begin, e);
    case IPC_DESIRED_CHUNK:
        return desired_chunk(agentd, &m->desired_chunk, e);
    case IPC_DESIRED_END:
        desired_end(agentd);
        return ERR_OK;
    case IPC_CONTACT:
        contact_take(agentd, &m->contact);
        return ERR_OK;
    case IPC_LOG_ACK:
        attempts_log_ack(agentd, &m->log_ack);
        return ERR_OK;
    case IPC_LOG_AGAIN:
        attempts_log_again(agentd, &m->log_again);
        return ERR_OK;
    case IPC_IMAGE_READY:
        import_start(agentd, &m->image_ready);
        return ERR_OK;
    case IPC_INVENTORY_GET:
        devices_send(agentd);
        return ERR_OK;
    case IPC_EXEC_OPEN:
        stream_exec_open(agentd, &m->exec_open);
        return ERR_OK;
    case IPC_EXEC_RESIZE:
        stream_resize(agentd, &m->exec_resize);
        return ERR_OK;
    case IPC_EXEC_CLOSE:
        stream_close(agentd, m->exec_close.stream);
        return ERR_OK;
    case IPC_TREE_OPEN:
        stream_tree_open(agentd, &m->tree_open);
        return ERR_OK;
    case IPC_HELLO:
    case IPC_DESIRED_RESULT:
    case IPC_OBSERVED:
    case IPC_NEED_IMAGE:
    case IPC_LOG_READY:
    case IPC_INVENTORY:
    case IPC_EXEC_OPENED:
    case IPC_EXEC_EXITED:
    case IPC_TREE_OPENED:
    case IPC_TREE_DONE:
    case IPC_CHALLENGE:
    case IPC_TAG_END:
        break;
    }
    return err_set(e, ERR_INVALID, "a message for the other side"); /* ipc_check lets none by */
}

static void peer_ready(struct agentd *agentd, void *self, uint32_t events)
{
    (void)self;
    static union ipc_message message; /* larger than a stack frame should be */
    if ((events & EPOLLOUT) != 0) {
        agentd->blocked_at = (struct mono){ 0 };
        struct epoll_event event = { EPOLLIN, { .ptr = &agentd->peer } };
        (void)epoll_ctl(agentd->epoll_fd, EPOLL_CTL_MOD, agentd->peer.fd, &event);
    }
    for (int i = 0; i < MESSAGES_PER_EVENT && has_peer(agentd); i++) {
        struct error e = { 0 };
        AUTO(fd_pass) struct fd_pass fds = { 0 };
        enum err rc = ipc_receive(agentd->peer.fd, IPC_DOWN, &message, &fds, &e);
        if (rc == ERR_UNAVAILABLE)
            return;
        if (rc == ERR_OK)
            rc = take(agentd, &message, &e);
        if (rc != ERR_OK)
            peer_drop(agentd, e.text);
    }
}

static void forget_what_was_told(struct agentd *agentd)
{
    for (size_t i = 0; i < agentd->attempts.count; i++) {
        agentd->attempts.items[i]->is_log_offered = false;
        agentd->attempts.items[i]->is_log_complete = false;
    }
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        agentd->wanted[i].is_image_asked = false;
        agentd->wanted[i].is_upload_asked = false;
    }
    agentd->full_at = (struct mono){ 0 };
    agentd->blocked_at = (struct mono){ 0 };
}

static void listen_for(struct agentd *agentd, uint32_t events)
{
    struct epoll_event event = { events, { .ptr = &agentd->listener } };
    (void)epoll_ctl(agentd->epoll_fd, EPOLL_CTL_MOD, agentd->listener.fd, &event); /* it is there */
    agentd->is_deaf = events == 0;
}

void peer_look(struct agentd *agentd)
{
    if (agentd->is_deaf)
        listen_for(agentd, EPOLLIN);
}

static void listener_ready(struct agentd *agentd, void *self, uint32_t events)
{
    (void)self;
    (void)events;
    struct error e = { 0 };
    int fd = -1;
    enum err rc = ipc_accept(agentd->listener.fd, agentd->options.peer_uid, &fd, &e);
    if (rc != ERR_OK) {
        if (rc != ERR_UNAVAILABLE)
            log_warning("a connection was refused", LOG_ERR(&e));
        if (err_is_shortage(&e))
            listen_for(agentd, 0); /* it waits there, and would wake us again and again */
        return;
    }
    peer_drop(agentd, "a new connection takes its place");
    peer_reap(agentd);
    agentd->peer = (struct watch){ -1, peer_ready, agentd };
    rc = agentd_watch(agentd, &agentd->peer, fd, &e);
    if (rc != ERR_OK) {
        log_error("a connection cannot be watched", LOG_ERR(&e));
        return;
    }
    forget_what_was_told(agentd);
    peer_hello(agentd);
    log_info("network half connected");
}

enum err peer_listen(struct agentd *agentd, struct error *e)
{
    int fd = -1;
    enum err rc = ipc_listen(agentd->options.socket, agentd->options.peer_uid, &fd, e);
    if (rc != ERR_OK)
        return rc;
    agentd->listener = (struct watch){ -1, listener_ready, agentd };
    return agentd_watch(agentd, &agentd->listener, fd, e);
}
