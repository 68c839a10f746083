/*
 * Output of workloads: spools read by descriptor, shipped as they grow, byte for byte. The
 * controller says what it has stored (LOG_WANTED); that is passed down (LOG_ACK), which
 * frees the space. A stream is open while there is something to ship; everything starts anew
 * from the acknowledged offset.
 */
#include <string.h>
#include <unistd.h>

#include "agent/network.h"
#include "os/fd.h"
#include "os/log.h"

enum { LOOK_MS = 200, OFFER_MS = 1000, OFFER_SOON_MS = 20, CHUNK = 32 * 1024, OFFER_MAX = 512 };

struct net_log {
    struct net_logs *logs;
    struct id allocation;
    uint32_t attempt;
    int fd;           /* owned; -1: it was lost on its way, and is asked for again */
    uint64_t size;    /* known to be there */
    uint64_t shipped; /* written into the stream */
    uint64_t acked;   /* stored by the controller */
    bool is_complete;
    bool is_offer_due;
    struct link_stream *stream; /* NULL: none */
    struct net_log *next;
};

struct net_logs {
    struct network *network; /* borrowed */
    struct net_log *first;   /* owned */
    struct loop_timer look, offer;
    bool is_offer_soon;
};

static struct net_log *log_find(struct net_logs *logs, struct id allocation, int64_t attempt)
{
    for (struct net_log *l = logs->first; l != NULL; l = l->next) {
        if (id_eq(l->allocation, allocation) && l->attempt == attempt)
            return l;
    }
    return NULL;
}

static void timer_in_ms(struct net_logs *logs, struct loop_timer *timer, int64_t ms)
{
    loop_timer_set(logs->network->loop, timer,
                   (struct mono){ loop_now(logs->network->loop).ns + ms * NS_PER_MS });
}

/* Readers wait for the end of what has ended; what ends while an offer is near shares it. */
static void offer_soon(struct net_logs *logs)
{
    if (logs->is_offer_soon)
        return;
    logs->is_offer_soon = true;
    timer_in_ms(logs, &logs->offer, OFFER_SOON_MS);
}

static void log_remove(struct net_log *log)
{
    struct net_log **link = &log->logs->first;
    while (*link != log)
        link = &(*link)->next;
    *link = log->next;
    if (log->stream != NULL)
        link_stream_close(log->stream, LINK_CODE_OK, (struct str){ 0 });
    fd_close(log->fd);
    mem_free(log);
}

static void log_push(struct net_log *log);

static void ship_on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    (void)arg;
    link_stream_credit(stream, bytes.size); /* nothing is expected */
}

static void ship_on_room(struct link_stream *stream, void *arg)
{
    (void)stream;
    log_push(arg);
}

static void ship_on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    struct net_log *log = arg;
    (void)stream;
    (void)text;
    log->stream = NULL;
    if (code != LINK_CODE_OK)
        log->shipped = log->acked; /* from what is certain */
    log->is_offer_due = true;
    if (log->is_complete && code == LINK_CODE_OK)
        offer_soon(log->logs);
}

static const struct link_stream_events ship_events = {
    .on_data = ship_on_data,
    .on_room = ship_on_room,
    .on_close = ship_on_close,
};

static bool log_open_stream(struct net_log *log)
{
    struct network *network = log->logs->network;
    if (network->link == NULL || !network->is_welcome)
        return false;
    const struct stream_header header = { .kind = STREAM_LOG,
                                          .allocation = log->allocation,
                                          .attempt = log->attempt,
                                          .offset = log->shipped };
    AUTO(buf) struct buf bytes = { 0 };
    struct error e = { 0 };
    if (stream_header_encode(&header, &bytes, &e) != ERR_OK)
        return false; /* cannot be: the header is small */
    log->stream = link_stream_open(network->link, buf_str(&bytes), &ship_events, log);
    return log->stream != NULL;
}

/* Ships what there is and room for; ends the stream of a complete one. */
static void log_push(struct net_log *log)
{
    static char chunk[CHUNK]; /* one thread */
    if (log->fd < 0 || (log->shipped >= log->size && log->stream == NULL))
        return;
    if (log->stream == NULL && !log_open_stream(log))
        return;
    while (log->shipped < log->size && link_stream_room(log->stream) > 0) {
        uint64_t left = log->size - log->shipped;
        size_t want =
            (size_t)MIN_OF(left, (uint64_t)MIN_OF(link_stream_room(log->stream), (size_t)CHUNK));
        ssize_t got = pread(log->fd, chunk, want, (off_t)log->shipped);
        if (got <= 0)
            break;
        log->shipped += link_stream_write(log->stream, (struct str){ chunk, (size_t)got });
        log->is_offer_due = true;
    }
    if (log->shipped < log->size) {
        link_stream_want_room(log->stream);
    } else if (log->is_complete) {
        link_stream_end(log->stream); /* the other side closes it; then it is offered as final */
        log->is_offer_due = true;
    }
}

static void log_grow(struct net_log *log)
{
    off_t end = log->is_complete ? (off_t)log->size : lseek(log->fd, 0, SEEK_END);
    if (end > 0 && (uint64_t)end > log->size)
        log->size = (uint64_t)end;
    log_push(log);
}

static void on_look(void *arg)
{
    struct net_logs *logs = arg;
    bool is_growing = false;
    for (struct net_log *l = logs->first; l != NULL; l = l->next) {
        if (!l->is_complete)
            log_grow(l);
        is_growing = is_growing || !l->is_complete;
    }
    if (is_growing)
        timer_in_ms(logs, &logs->look, LOOK_MS);
}

/* There was no descriptor left for them. */
static void ask_again(struct net_logs *logs)
{
    for (struct net_log *l = logs->first; l != NULL; l = l->next) {
        struct ipc_log_again again = { .allocation = l->allocation, .attempt = l->attempt };
        if (l->fd < 0 && !network_send_down(logs->network, IPC_LOG_AGAIN, &again))
            return; /* in a second, as all of them */
    }
}

static void on_offer(void *arg)
{
    struct net_logs *logs = arg;
    static struct log_position positions[OFFER_MAX]; /* one thread */
    struct log_message offer = { .logs = { positions, 0 } };
    logs->is_offer_soon = false;
    ask_again(logs);
    for (struct net_log *l = logs->first; l != NULL && offer.logs.count < OFFER_MAX; l = l->next) {
        bool is_shipped = l->shipped >= l->size && l->stream == NULL;
        if (!l->is_offer_due && !(l->is_complete && is_shipped))
            continue;
        positions[offer.logs.count++] = (struct log_position){
            .allocation = l->allocation,
            .attempt = l->attempt,
            .offset = l->shipped,
            .is_final = l->is_complete && is_shipped,
        };
        l->is_offer_due = false;
    }
    if (offer.logs.count > 0)
        (void)network_send_up(logs->network, MESSAGE_LOG_OFFER, &offer); /* offered again later */
    if (logs->first != NULL)
        timer_in_ms(logs, &logs->offer, OFFER_MS);
}

void net_logs_ready(struct net_logs *logs, const struct ipc_log_ready *ready, struct fd_pass *fds)
{
    struct net_log *log = log_find(logs, ready->allocation, ready->attempt);
    int fd = fds->count > 0 ? fd_take(&fds->fds[0]) : -1;
    if (log == NULL && fd < 0 && !fds->is_cut)
        return; /* stored whole already: its final acknowledgement is on its way */
    if (log == NULL) {
        log = mem_new(1, sizeof(*log));
        *log = (struct net_log){ .logs = logs,
                                 .allocation = ready->allocation,
                                 .attempt = ready->attempt,
                                 .fd = -1,
                                 .shipped = ready->acked,
                                 .acked = ready->acked,
                                 .next = logs->first };
        logs->first = log;
    }
    if (fd >= 0) {
        fd_close(log->fd);
        log->fd = fd;
    }
    log->size = MAX_OF(log->size, ready->size);
    log->is_complete = ready->is_complete != 0;
    log_grow(log);
    if (logs->look.slot == 0)
        timer_in_ms(logs, &logs->look, LOOK_MS);
    if (log->is_complete)
        offer_soon(logs);
    else if (logs->offer.slot == 0)
        timer_in_ms(logs, &logs->offer, OFFER_MS);
}

void net_logs_wanted(struct net_logs *logs, const struct log_message *wanted)
{
    for (size_t i = 0; i < wanted->logs.count; i++) {
        const struct log_position *position = &wanted->logs.items[i];
        struct net_log *log = log_find(logs, position->allocation, position->attempt);
        if (log == NULL)
            continue;
        log->acked = MIN_OF(MAX_OF(log->acked, position->offset), log->size);
        struct ipc_log_ack ack = { .allocation = log->allocation,
                                   .attempt = log->attempt,
                                   .is_final = position->is_final && log->is_complete,
                                   .offset = log->acked };
        bool is_sent = network_send_down(logs->network, IPC_LOG_ACK, &ack);
        if (is_sent && ack.is_final) {
            log_remove(log);
            continue;
        }
        if (position->offset < log->shipped && log->stream == NULL) {
            log->shipped = MAX_OF(position->offset, log->acked); /* bytes were lost on the way */
            log_push(log);
        }
    }
}

void net_logs_silent(struct net_logs *logs, const struct ipc_observed_entry *entries, size_t count)
{
    static struct log_position positions[OFFER_MAX]; /* one thread */
    struct log_message offer = { .logs = { positions, 0 } };
    for (size_t i = 0; i < count; i++) {
        if (entries[i].state == IPC_EXITED && entries[i].log_bytes == 0)
            positions[offer.logs.count++] = (struct log_position){
                .allocation = entries[i].allocation,
                .attempt = entries[i].attempt,
                .is_final = true,
            };
        if (offer.logs.count == OFFER_MAX || (i + 1 == count && offer.logs.count > 0)) {
            (void)network_send_up(logs->network, MESSAGE_LOG_OFFER,
                                  &offer); /* told again with all */
            offer.logs.count = 0;
        }
    }
}

void net_logs_up(struct net_logs *logs)
{
    for (struct net_log *l = logs->first; l != NULL; l = l->next)
        log_grow(l);
    if (logs->first != NULL)
        offer_soon(logs);
}

void net_logs_down(struct net_logs *logs)
{
    for (struct net_log *l = logs->first; l != NULL; l = l->next)
        l->shipped = l->acked; /* their streams were closed before */
}

void net_logs_agentd_gone(struct net_logs *logs)
{
    (void)
        logs; /* spools are read by descriptor; the other half offers them again when it is back */
}

struct net_logs *net_logs_new(struct network *network)
{
    struct net_logs *logs = mem_new(1, sizeof(*logs));
    logs->network = network;
    logs->look = (struct loop_timer){ .fn = on_look, .arg = logs };
    logs->offer = (struct loop_timer){ .fn = on_offer, .arg = logs };
    return logs;
}

void net_logs_free(struct net_logs *logs)
{
    if (logs == NULL)
        return;
    loop_timer_stop(logs->network->loop, &logs->look);
    loop_timer_stop(logs->network->loop, &logs->offer);
    while (logs->first != NULL)
        log_remove(logs->first);
    mem_free(logs);
}
