/*
 * Sending: messages wait in a list of their own and enter the connection's queue a fragment
 * at a time, while it is less than half full, so that streams get their share beside a
 * large message. Streams hold nothing: their owners write what window and queue take, and
 * are asked for more in turn.
 *
 * Receiving: a frame is looked at when it is complete. A callback may close its stream, or the
 * link, so each step finds the stream by its number again.
 */
#include "net/link.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

enum {
    FRAME_HEADER = 12,
    MESSAGE_HEADER = 6, /* u16 type, u32 size of the whole message */
    CLOSE_HEADER = 4,
    QUEUE_HIGH = 256 * 1024,
    QUEUE_MESSAGES = QUEUE_HIGH / 2,
    QUEUE_HARD = 1024 * 1024, /* answers to a peer that only asks and never reads */
    CREDIT_STEP = LINK_WINDOW / 4,
    MESSAGE_DEFAULT = 1024 * 1024,
    STREAMS_DEFAULT = 1024,
    KEEPALIVE_DEFAULT_MS = 15000,
    KEEPALIVE_TRIES = 3
};

enum frame_type {
    FRAME_MESSAGE = 1,
    FRAME_OPEN,
    FRAME_DATA,
    FRAME_CREDIT,
    FRAME_CLOSE, /* stream 0: of the link itself */
    FRAME_PING,
    FRAME_PONG,
    FRAME_TYPE_END
};
enum { FLAG_FIRST = 1 /* of MESSAGE */, FLAG_END = 1 /* of DATA */ };

struct frame {
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    struct str payload;
};

struct message {
    struct message *next;
    uint16_t type;
    size_t size;
    size_t sent;
    bool has_begun;
    char bytes[];
};

struct link_stream {
    struct link *link;
    struct link_stream *next;
    struct link_stream *prev;
    const struct link_stream_events *events; /* borrowed */
    void *arg;
    uint32_t number;
    uint32_t send_window; /* bytes we may still send */
    uint32_t recv_window; /* bytes the peer may still send */
    uint32_t credit;      /* bytes used up and not yet told to the peer */
    bool has_ended;       /* we send no more */
    bool has_peer_ended;
    bool wants_room;
};

struct link {
    struct loop *loop;
    struct conn *conn;
    const struct link_events *events; /* borrowed */
    void *arg;
    struct link_options options;
    bool is_dialler;
    bool is_up;
    bool is_down; /* nothing more is sent or told, but on_close and on_down */
    bool wants_room;
    char *why; /* owned; our reason for the end */

    struct id_map by_number;
    struct link_stream ring; /* sentinel of all streams */
    uint32_t next_number;    /* of our next stream */
    uint32_t peer_last;      /* highest number the peer has opened */
    size_t peer_count;       /* streams open that the peer opened */

    struct message *out_head; /* owned */
    struct message *out_tail;
    size_t out_bytes;

    bool is_receiving; /* a message whose first fragment has come */
    uint16_t in_type;
    size_t in_size;
    struct buf in;

    struct loop_timer timer;
    struct mono last_received;
};

/* --- Bytes of a frame. --- */

static void put_u16(char *out, uint32_t value)
{
    out[0] = (char)(value >> 8 & 0xff);
    out[1] = (char)(value & 0xff);
}

static void put_u32(char *out, uint32_t value)
{
    put_u16(out, value >> 16);
    put_u16(out + 2, value);
}

static uint32_t get_u32(const char *bytes)
{
    const unsigned char *u = (const unsigned char *)bytes;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static uint16_t get_u16(const char *bytes)
{
    const unsigned char *u = (const unsigned char *)bytes;
    return (uint16_t)(u[0] << 8 | u[1]);
}

/* `prefix` is the beginning of the payload, for callers whose payload is in two places. */
static void send_parts(struct link *link, const struct frame *frame, struct str prefix)
{
    char header[FRAME_HEADER] = { 0 };
    size_t size = prefix.size + frame->payload.size;
    assert(size <= LINK_FRAME_MAX);
    put_u32(header, (uint32_t)size);
    header[4] = (char)frame->type;
    header[5] = (char)frame->flags;
    put_u32(header + 8, frame->stream);
    conn_send_always(link->conn, header, sizeof(header));
    conn_send_always(link->conn, prefix.data, prefix.size);
    conn_send_always(link->conn, frame->payload.data, frame->payload.size);
}

static void send_frame(struct link *link, const struct frame *frame)
{
    send_parts(link, frame, (struct str){ 0 });
}

static void send_close(struct link *link, uint32_t number, uint32_t code, struct str text)
{
    char bytes[CLOSE_HEADER + LINK_CLOSE_TEXT_MAX];
    size_t size = MIN_OF(text.size, (size_t)LINK_CLOSE_TEXT_MAX);
    put_u32(bytes, code);
    if (size > 0)
        memcpy(bytes + CLOSE_HEADER, text.data, size);
    send_frame(link, &(struct frame){ FRAME_CLOSE, 0, number, { bytes, CLOSE_HEADER + size } });
}

/* --- The end of a link. --- */

static void take_down(struct link *link, const char *why)
{
    link->is_down = true;
    if (link->why == NULL)
        link->why = mem_strdup(why);
    loop_timer_stop(link->loop, &link->timer);
}

/* The peer broke the rules: it is told which, and let go. */
static bool violate(struct link *link, const char *why)
{
    if (link->is_down)
        return false;
    take_down(link, why);
    send_close(link, 0, LINK_CODE_REFUSED, str_of(why));
    conn_finish(link->conn);
    return false;
}

void link_abort(struct link *link, const char *why)
{
    if (link->is_down)
        return;
    take_down(link, why);
    conn_abort(link->conn, why);
}

static void emit_fragment(struct link *link);

void link_close(struct link *link, const char *why)
{
    if (link->is_down)
        return;
    if (!link->is_up) {
        link_abort(link, why);
        return;
    }
    while (link->out_head != NULL)
        emit_fragment(link);
    take_down(link, why);
    send_close(link, 0, LINK_CODE_OK, str_of(why));
    conn_finish(link->conn);
}

/* --- Messages out. --- */

static void emit_fragment(struct link *link)
{
    char head[MESSAGE_HEADER];
    struct message *message = link->out_head;
    struct str prefix = { head, message->has_begun ? 0 : sizeof(head) };
    put_u16(head, message->type);
    put_u32(head + 2, (uint32_t)message->size);
    size_t size = MIN_OF(message->size - message->sent, LINK_FRAME_MAX - prefix.size);
    struct frame frame = {
        .type = FRAME_MESSAGE,
        .flags = message->has_begun ? 0 : FLAG_FIRST,
        .payload = { message->bytes + message->sent, size },
    };
    send_parts(link, &frame, prefix);
    message->has_begun = true;
    message->sent += size;
    link->out_bytes -= size;
    if (message->sent < message->size)
        return;
    link->out_head = message->next;
    if (link->out_head == NULL)
        link->out_tail = NULL;
    mem_free(message);
}

static void pump_messages(struct link *link)
{
    while (link->out_head != NULL && conn_queued(link->conn) < QUEUE_MESSAGES)
        emit_fragment(link);
    if (link->out_head != NULL)
        conn_want_room(link->conn);
}

enum err link_send(struct link *link, uint16_t type, struct str payload)
{
    if (link->is_down)
        return ERR_UNAVAILABLE;
    if (payload.size > LINK_MESSAGE_MAX)
        return ERR_LIMIT;
    if (link->out_bytes > 0 && link->out_bytes + payload.size > link->options.queue_bytes_max) {
        link->wants_room = true;
        return ERR_LIMIT;
    }
    struct message *message = mem_new(1, sizeof(*message) + payload.size);
    message->type = type;
    message->size = payload.size;
    if (payload.size > 0)
        memcpy(message->bytes, payload.data, payload.size);
    if (link->out_tail == NULL)
        link->out_head = message;
    else
        link->out_tail->next = message;
    link->out_tail = message;
    link->out_bytes += payload.size;
    if (link->is_up)
        pump_messages(link);
    return ERR_OK;
}

void link_set_message_max(struct link *link, size_t bytes)
{
    assert(bytes > 0 && bytes <= LINK_MESSAGE_MAX);
    link->options.message_bytes_max = bytes;
}

size_t link_queued(const struct link *link)
{
    return link->out_bytes;
}

size_t link_stream_count(const struct link *link)
{
    return link->peer_count;
}

/* --- Streams. --- */

static struct id number_key(uint32_t number)
{
    return (struct id){ 0, number };
}

static bool is_ours(const struct link *link, uint32_t number)
{
    return (number % 2 == 1) == link->is_dialler;
}

static struct link_stream *find_stream(const struct link *link, uint32_t number)
{
    return id_map_get(&link->by_number, number_key(number));
}

static struct link_stream *stream_new(struct link *link, uint32_t number)
{
    struct link_stream *stream = mem_new(1, sizeof(*stream));
    stream->link = link;
    stream->number = number;
    stream->send_window = LINK_WINDOW;
    stream->recv_window = LINK_WINDOW;
    stream->next = &link->ring;
    stream->prev = link->ring.prev;
    stream->prev->next = stream;
    link->ring.prev = stream;
    id_map_put(&link->by_number, number_key(number), stream);
    if (!is_ours(link, number))
        link->peer_count++;
    return stream;
}

static void stream_unlink(struct link_stream *stream)
{
    stream->next->prev = stream->prev;
    stream->prev->next = stream->next;
}

/* Out of the tables; the memory is still the caller's to free. */
static void stream_remove(struct link_stream *stream)
{
    struct link *link = stream->link;
    stream_unlink(stream);
    (void)id_map_remove(&link->by_number, number_key(stream->number));
    if (!is_ours(link, stream->number))
        link->peer_count--;
}

struct link_stream *link_stream_open(struct link *link, struct str header,
                                     const struct link_stream_events *events, void *arg)
{
    assert(header.size <= LINK_HEADER_MAX);
    if (link->is_down || !link->is_up || link->next_number > UINT32_MAX - 2)
        return NULL;
    struct link_stream *stream = stream_new(link, link->next_number);
    link->next_number += 2;
    stream->events = events;
    stream->arg = arg;
    send_frame(link, &(struct frame){ FRAME_OPEN, 0, stream->number, header });
    return stream;
}

void link_stream_set_events(struct link_stream *stream, const struct link_stream_events *events,
                            void *arg)
{
    stream->events = events;
    stream->arg = arg;
}

size_t link_stream_room(const struct link_stream *stream)
{
    size_t room = conn_room(stream->link->conn);
    if (stream->has_ended || stream->link->is_down || room <= FRAME_HEADER)
        return 0;
    return MIN_OF(room - FRAME_HEADER, (size_t)stream->send_window);
}

size_t link_stream_write(struct link_stream *stream, struct str bytes)
{
    assert(!stream->has_ended);
    size_t taken = 0;
    while (taken < bytes.size) {
        size_t size = MIN_OF(bytes.size - taken, link_stream_room(stream));
        size = MIN_OF(size, (size_t)LINK_FRAME_MAX);
        if (size == 0)
            break;
        struct str payload = { bytes.data + taken, size };
        send_frame(stream->link, &(struct frame){ FRAME_DATA, 0, stream->number, payload });
        stream->send_window -= (uint32_t)size;
        taken += size;
    }
    if (taken < bytes.size) {
        stream->wants_room = true;
        if (stream->send_window > 0 && !stream->link->is_down)
            conn_want_room(stream->link->conn);
    }
    return taken;
}

void link_stream_want_room(struct link_stream *stream)
{
    size_t room = conn_room(stream->link->conn);
    stream->wants_room = true;
    /* When it is the window that is short, the peer's credit wakes us. */
    if (room < (size_t)stream->send_window + FRAME_HEADER && !stream->link->is_down)
        conn_want_room(stream->link->conn);
}

void link_stream_credit(struct link_stream *stream, size_t bytes)
{
    assert(bytes <= LINK_WINDOW - stream->recv_window - stream->credit);
    stream->credit += (uint32_t)bytes;
    /* In steps: three quarters of the window are always out. */
    if (stream->credit < CREDIT_STEP || stream->has_peer_ended || stream->link->is_down)
        return;
    char payload[4];
    put_u32(payload, stream->credit);
    stream->recv_window += stream->credit;
    stream->credit = 0;
    send_frame(stream->link,
               &(struct frame){ FRAME_CREDIT, 0, stream->number, { payload, sizeof(payload) } });
}

void link_stream_end(struct link_stream *stream)
{
    if (stream->has_ended)
        return;
    stream->has_ended = true;
    stream->wants_room = false;
    if (!stream->link->is_down)
        send_frame(
            stream->link,
            &(struct frame){ .type = FRAME_DATA, .flags = FLAG_END, .stream = stream->number });
}

void link_stream_close(struct link_stream *stream, uint32_t code, struct str text)
{
    if (!stream->link->is_down)
        send_close(stream->link, stream->number, code, text);
    stream_remove(stream);
    mem_free(stream);
}

/* --- Frames in. Each returns whether the link goes on. --- */

static bool on_message(struct link *link, const struct frame *frame)
{
    struct str bytes = frame->payload;
    if ((frame->flags & FLAG_FIRST) != 0) {
        if (link->is_receiving || bytes.size < MESSAGE_HEADER)
            return violate(link, "a message begins inside another");
        link->in_type = get_u16(bytes.data);
        link->in_size = get_u32(bytes.data + 2);
        link->is_receiving = true;
        bytes = (struct str){ bytes.data + MESSAGE_HEADER, bytes.size - MESSAGE_HEADER };
        if (link->in_size > link->options.message_bytes_max)
            return violate(link, "a message is larger than is taken here");
    } else if (!link->is_receiving || bytes.size == 0) {
        return violate(link, "a part of no message");
    }
    if (bytes.size > link->in_size - link->in.size)
        return violate(link, "a message is longer than it said");
    /* It grows with what has come, not with what was promised. */
    if (link->in.size + bytes.size < link->in_size) {
        buf_add_str(&link->in, bytes);
        return true;
    }
    struct buf whole = link->in;
    link->in = (struct buf){ 0 };
    link->is_receiving = false;
    if (whole.size > 0) {
        buf_add_str(&whole, bytes);
        bytes = buf_str(&whole);
    }
    link->events->on_message(link, link->in_type, bytes, link->arg);
    buf_done(&whole);
    return !link->is_down;
}

static bool on_open(struct link *link, const struct frame *frame)
{
    uint32_t number = frame->stream;
    if (is_ours(link, number) || number <= link->peer_last)
        return violate(link, "a stream is opened under a number that is not free");
    link->peer_last = number;
    if (link->peer_count >= link->options.stream_max) {
        send_close(link, number, LINK_CODE_LIMIT, STR("too many streams"));
        return true;
    }
    if (link->events->on_stream == NULL) {
        send_close(link, number, LINK_CODE_REFUSED, STR("no streams are taken here"));
        return true;
    }
    struct link_stream *stream = stream_new(link, number);
    link->events->on_stream(link, stream, frame->payload, link->arg);
    if (link->is_down)
        return false;
    stream = find_stream(link, number);
    if (stream != NULL && stream->events == NULL)
        link_stream_close(stream, LINK_CODE_REFUSED, STR("nobody takes this stream"));
    return true;
}

/* A stream that we have closed still gets what was under way; one that never was breaks
 * the rules. */
static bool has_existed(const struct link *link, uint32_t number)
{
    return is_ours(link, number) ? number < link->next_number : number <= link->peer_last;
}

static bool on_stream_data(struct link *link, const struct frame *frame)
{
    struct link_stream *stream = find_stream(link, frame->stream);
    bool is_end = (frame->flags & FLAG_END) != 0;
    if (stream == NULL)
        return has_existed(link, frame->stream) || violate(link, "data of a stream never opened");
    if (stream->has_peer_ended || (frame->payload.size == 0 && !is_end))
        return violate(link, "data after the end of a stream, or none at all");
    if (frame->payload.size > stream->recv_window)
        return violate(link, "more data than was credited");
    stream->recv_window -= (uint32_t)frame->payload.size;
    stream->has_peer_ended = is_end;
    if (frame->payload.size > 0)
        stream->events->on_data(stream, frame->payload, stream->arg);
    stream = link->is_down || !is_end ? NULL : find_stream(link, frame->stream);
    if (stream != NULL && stream->events->on_end != NULL)
        stream->events->on_end(stream, stream->arg);
    return !link->is_down;
}

static bool on_credit(struct link *link, const struct frame *frame)
{
    struct link_stream *stream = find_stream(link, frame->stream);
    uint32_t bytes = get_u32(frame->payload.data);
    if (stream == NULL)
        return has_existed(link, frame->stream) || violate(link, "credit for no stream");
    if (bytes == 0 || bytes > LINK_WINDOW - stream->send_window)
        return violate(link, "more credit than was used");
    stream->send_window += bytes;
    if (stream->wants_room && conn_room(link->conn) > FRAME_HEADER) {
        stream->wants_room = false;
        if (stream->events->on_room != NULL)
            stream->events->on_room(stream, stream->arg);
    }
    return !link->is_down;
}

static bool on_close_frame(struct link *link, const struct frame *frame)
{
    uint32_t code = get_u32(frame->payload.data);
    struct str text = { frame->payload.data + CLOSE_HEADER, frame->payload.size - CLOSE_HEADER };
    if (frame->stream == 0) {
        AUTO(buf) struct buf why = { 0 };
        buf_format(&why, "closed by the peer: %.*s", STR_ARG(text));
        take_down(link, why.data);
        conn_finish(link->conn);
        return false;
    }
    struct link_stream *stream = find_stream(link, frame->stream);
    if (stream == NULL)
        return has_existed(link, frame->stream) ||
               violate(link, "the end of a stream never opened");
    stream_remove(stream);
    stream->events->on_close(stream, code, text, stream->arg);
    mem_free(stream);
    return !link->is_down;
}

static bool on_ping(struct link *link, const struct frame *frame)
{
    if (conn_queued(link->conn) > QUEUE_HARD) {
        link_abort(link, "asks more than it reads"); /* nor would it read the reason */
        return false;
    }
    send_frame(link, &(struct frame){ FRAME_PONG, 0, 0, frame->payload });
    return true;
}

static bool on_pong(struct link *link, const struct frame *frame)
{
    (void)frame;
    return !link->is_down; /* that something came is all there is to it */
}

enum scope { SCOPE_LINK, SCOPE_STREAM, SCOPE_EITHER };

static const struct {
    bool (*take)(struct link *link, const struct frame *frame);
    uint32_t size_min;
    uint32_t size_max;
    enum scope scope;
    uint8_t flags; /* that may be set */
} rules[FRAME_TYPE_END] = {
    [FRAME_MESSAGE] = { on_message, 0, LINK_FRAME_MAX, SCOPE_LINK, FLAG_FIRST },
    [FRAME_OPEN] = { on_open, 0, LINK_HEADER_MAX, SCOPE_STREAM, 0 },
    [FRAME_DATA] = { on_stream_data, 0, LINK_FRAME_MAX, SCOPE_STREAM, FLAG_END },
    [FRAME_CREDIT] = { on_credit, 4, 4, SCOPE_STREAM, 0 },
    [FRAME_CLOSE] = { on_close_frame, CLOSE_HEADER, CLOSE_HEADER + LINK_CLOSE_TEXT_MAX,
                      SCOPE_EITHER, 0 },
    [FRAME_PING] = { on_ping, 8, 8, SCOPE_LINK, 0 },
    [FRAME_PONG] = { on_pong, 8, 8, SCOPE_LINK, 0 },
};

static bool is_lawful(const struct frame *frame, uint32_t size, uint16_t reserved)
{
    if (frame->type >= FRAME_TYPE_END || rules[frame->type].take == NULL || reserved != 0)
        return false;
    enum scope scope = rules[frame->type].scope;
    bool is_in_scope = scope == SCOPE_EITHER || (frame->stream == 0) == (scope == SCOPE_LINK);
    return is_in_scope && size >= rules[frame->type].size_min &&
           size <= rules[frame->type].size_max && (frame->flags & ~rules[frame->type].flags) == 0;
}

static size_t on_data(struct conn *conn, struct str data, void *arg)
{
    (void)conn;
    struct link *link = arg;
    size_t used = 0;
    link->last_received = loop_now(link->loop);
    while (!link->is_down && data.size - used >= FRAME_HEADER) {
        const char *at = data.data + used;
        uint32_t size = get_u32(at);
        struct frame frame = {
            .type = (uint8_t)at[4],
            .flags = (uint8_t)at[5],
            .stream = get_u32(at + 8),
        };
        /* Judged by its header, before its payload is waited for. */
        if (!is_lawful(&frame, size, get_u16(at + 6))) {
            (void)violate(link, "a frame that berth-link/1 does not have");
            break;
        }
        if (data.size - used - FRAME_HEADER < size)
            break;
        frame.payload = (struct str){ at + FRAME_HEADER, size };
        used += FRAME_HEADER + size;
        if (!rules[frame.type].take(link, &frame))
            break;
    }
    return link->is_down ? data.size : used;
}

/* --- Events of the connection. --- */

static void offer_room_to_streams(struct link *link)
{
    size_t count = 0;
    for (struct link_stream *stream = link->ring.next; stream != &link->ring; stream = stream->next)
        count++;
    /* In turn: who was served goes to the back, so that the next round begins with another. */
    for (; count > 0 && link->ring.next != &link->ring && !link->is_down; count--) {
        struct link_stream *stream = link->ring.next;
        if (conn_room(link->conn) <= FRAME_HEADER)
            break;
        stream_unlink(stream);
        stream->next = &link->ring;
        stream->prev = link->ring.prev;
        stream->prev->next = stream;
        link->ring.prev = stream;
        if (!stream->wants_room || stream->send_window == 0)
            continue;
        stream->wants_room = false;
        if (stream->events->on_room != NULL)
            stream->events->on_room(stream, stream->arg);
    }
    bool is_waiting = false;
    for (struct link_stream *stream = link->ring.next; stream != &link->ring; stream = stream->next)
        is_waiting = is_waiting || (stream->wants_room && stream->send_window > 0);
    if (is_waiting && !link->is_down)
        conn_want_room(link->conn);
}

static void on_conn_room(struct conn *conn, void *arg)
{
    (void)conn;
    struct link *link = arg;
    if (link->is_down)
        return;
    pump_messages(link);
    if (link->wants_room && link->out_bytes <= link->options.queue_bytes_max / 4) {
        link->wants_room = false;
        if (link->events->on_room != NULL)
            link->events->on_room(link, link->arg);
    }
    if (!link->is_down)
        offer_room_to_streams(link);
}

static void on_timer(void *arg)
{
    static const char payload[8] = { 0 };
    struct link *link = arg;
    int64_t interval_ms = link->options.keepalive_ms;
    int64_t silence_ms = (loop_now(link->loop).ns - link->last_received.ns) / NS_PER_MS;
    if (silence_ms >= interval_ms * KEEPALIVE_TRIES) {
        link_abort(link, "no sign of life from the peer");
        return;
    }
    if (silence_ms >= interval_ms)
        send_frame(link, &(struct frame){ FRAME_PING, 0, 0, { payload, sizeof(payload) } });
    struct mono next = { loop_now(link->loop).ns + interval_ms * NS_PER_MS };
    loop_timer_set(link->loop, &link->timer, next);
}

static void come_up(struct link *link)
{
    link->is_up = true;
    link->last_received = loop_now(link->loop);
    conn_set_deadline(link->conn, (struct mono){ 0 });
    conn_set_queue(link->conn, QUEUE_HIGH);
    loop_timer_set(
        link->loop, &link->timer,
        (struct mono){ link->last_received.ns + link->options.keepalive_ms * NS_PER_MS });
    pump_messages(link);
}

static void on_conn_open(struct conn *conn, void *arg)
{
    (void)conn;
    struct link *link = arg;
    come_up(link);
    if (link->events->on_up != NULL)
        link->events->on_up(link, link->arg);
}

static void link_free(struct link *link)
{
    while (link->out_head != NULL) {
        struct message *next = link->out_head->next;
        mem_free(link->out_head);
        link->out_head = next;
    }
    id_map_done(&link->by_number);
    buf_done(&link->in);
    mem_free(link->why);
    mem_free(link);
}

static void on_conn_close(struct conn *conn, const char *why, void *arg)
{
    (void)conn;
    struct link *link = arg;
    take_down(link, why);
    while (link->ring.next != &link->ring) {
        struct link_stream *stream = link->ring.next;
        stream_remove(stream);
        stream->events->on_close(stream, LINK_CODE_DOWN, str_of(link->why), stream->arg);
        mem_free(stream);
    }
    link->events->on_down(link, link->why, link->arg);
    link_free(link);
}

static const struct conn_events conn_events = {
    .on_open = on_conn_open,
    .on_data = on_data,
    .on_room = on_conn_room,
    .on_close = on_conn_close,
};

/* --- Links. --- */

static struct link *link_new(struct loop *loop, const struct link_options *options,
                             const struct link_events *events, void *arg)
{
    struct link *link = mem_new(1, sizeof(*link));
    link->loop = loop;
    link->events = events;
    link->arg = arg;
    link->options = *options;
    if (link->options.message_bytes_max == 0)
        link->options.message_bytes_max = MESSAGE_DEFAULT;
    if (link->options.queue_bytes_max == 0)
        link->options.queue_bytes_max = 2 * (size_t)LINK_MESSAGE_MAX;
    if (link->options.stream_max == 0)
        link->options.stream_max = STREAMS_DEFAULT;
    if (link->options.keepalive_ms == 0)
        link->options.keepalive_ms = KEEPALIVE_DEFAULT_MS;
    assert(link->options.message_bytes_max <= LINK_MESSAGE_MAX);
    link->ring.next = &link->ring;
    link->ring.prev = &link->ring;
    link->timer.fn = on_timer;
    link->timer.arg = link;
    return link;
}

/* Takes an open connection; the two sides number their streams so that they never meet. */
static struct link *link_over(struct conn *conn, bool is_dialler,
                              const struct link_options *options, const struct link_events *events,
                              void *arg)
{
    struct link *link = link_new(conn_loop(conn), options, events, arg);
    link->conn = conn;
    link->is_dialler = is_dialler;
    link->next_number = is_dialler ? 1 : 2;
    conn_set_events(conn, &conn_events, link);
    come_up(link);
    conn_resume(conn);
    return link;
}

struct link *link_accept(struct conn *conn, const struct link_options *options,
                         const struct link_events *events, void *arg)
{
    return link_over(conn, false, options, events, arg);
}

struct link *link_take(struct conn *conn, const struct link_options *options,
                       const struct link_events *events, void *arg)
{
    return link_over(conn, true, options, events, arg);
}

struct link *link_dial(struct loop *loop, const struct conn_dial_options *dial,
                       const struct link_options *options, const struct link_events *events,
                       void *arg)
{
    struct link *link = link_new(loop, options, events, arg);
    link->is_dialler = true;
    link->next_number = 1;
    link->conn = conn_dial(loop, dial, &conn_events, link);
    return link;
}

const struct conn_peer *link_peer(const struct link *link)
{
    return conn_peer(link->conn);
}
