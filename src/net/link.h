/*
 * link.h - berth-link/1: messages and flow-controlled streams over one connection, both ways.
 *
 *     frame   = u32 length of payload | u8 type | u8 flags | u16 0 | u32 stream | payload <= 64 KiB
 *     MESSAGE   stream 0, fragments of one opaque message with a u16 type, bounded by message_bytes_max
 *     OPEN      a stream, with an opaque header <= 4 KiB; DATA; CREDIT u32; CLOSE u32 code, text
 *     PING PONG u64
 *
 * Numbers are big-endian. A sender may have at most LINK_WINDOW bytes of a stream out that the
 * receiver has not credited, so a stream that stalls costs its receiver a bounded amount and slows
 * no other. Whatever breaks the rules ends the link. The link holds no stream data itself: bytes
 * received are the owner's at once, who credits them when they are used up.
 */
#ifndef NET_LINK_H
#define NET_LINK_H

#include "net/conn.h"

struct link;
struct link_stream;

enum {
    LINK_FRAME_MAX = 64 * 1024,
    LINK_WINDOW = 256 * 1024,
    LINK_HEADER_MAX = 4 * 1024,
    LINK_CLOSE_TEXT_MAX = 256,
    LINK_MESSAGE_MAX = 16 * 1024 * 1024
};

struct link_events {
    /* A dialled link is usable. Not called for accepted ones. */
    void (*on_up)(struct link *link, void *arg);
    /* Stays valid during the call. */
    void (*on_message)(struct link *link, uint16_t type, struct str payload, void *arg);
    /* Queued messages fell to a quarter after link_send had found no room. May be NULL. */
    void (*on_room)(struct link *link, void *arg);
    /* The peer opened a stream: set its events, or close it. NULL: all are refused. */
    void (*on_stream)(struct link *link, struct link_stream *stream, struct str header, void *arg);
    /* The end, once, after on_close of every stream. It is freed when this returns. */
    void (*on_down)(struct link *link, const char *why, void *arg);
};

struct link_options {
    size_t
        message_bytes_max;  /* hard bound of one message received; 0: 1 MiB; <= LINK_MESSAGE_MAX */
    size_t queue_bytes_max; /* of messages unsent; 0: twice LINK_MESSAGE_MAX */
    uint32_t stream_max;    /* open at once, opened by the peer; 0: 1024 */
    int64_t keepalive_ms; /* silence before a ping; 0: 15 s; three times without an answer: down */
};

/* Takes an open connection: from a listener by ALPN, or upgraded from HTTP on a unix socket. */
struct link *link_accept(struct conn *conn, const struct link_options *options,
                         const struct link_events *events, void *arg);
/* The dialling side of the same, over a connection that is open already: upgraded by a client. */
struct link *link_take(struct conn *conn, const struct link_options *options,
                       const struct link_events *events, void *arg);
/* on_up or on_down follows. Dialling again, with back-off, is for the owner. */
struct link *link_dial(struct loop *loop, const struct conn_dial_options *dial,
                       const struct link_options *options, const struct link_events *events,
                       void *arg);
const struct conn_peer *link_peer(const struct link *link);

/* Queues a copy. ERR_LIMIT: no room now, or larger than LINK_MESSAGE_MAX. ERR_UNAVAILABLE: down. */
MUST_CHECK enum err link_send(struct link *link, uint16_t type, struct str payload);
/* Another bound for messages received from now on; <= LINK_MESSAGE_MAX. */
void link_set_message_max(struct link *link, size_t bytes);
size_t link_queued(const struct link *link);       /* bytes of messages unsent */
size_t link_stream_count(const struct link *link); /* open ones that the peer opened */
/* Sends what is queued, then ends; on_down follows. */
void link_close(struct link *link, const char *why);
/* Ends now; on_down follows at the end of the round. */
void link_abort(struct link *link, const char *why);

struct link_stream_events {
    /* The owner's from now on: call link_stream_credit when they are used up, now or later. */
    void (*on_data)(struct link_stream *stream, struct str bytes, void *arg);
    /* link_stream_write takes more again. May be NULL. */
    void (*on_room)(struct link_stream *stream, void *arg);
    /* The peer sends no more on it. May be NULL. */
    void (*on_end)(struct link_stream *stream, void *arg);
    /* Closed by the peer, or the link went down (LINK_CODE_DOWN). Freed when this returns. */
    void (*on_close)(struct link_stream *stream, uint32_t code, struct str text, void *arg);
};

/* Codes below 100 are ours; the owners' begin there. */
enum { LINK_CODE_OK = 0, LINK_CODE_REFUSED = 1, LINK_CODE_DOWN = 2, LINK_CODE_LIMIT = 3 };

/* Opens one towards the peer; usable at once. NULL: the link is down. */
struct link_stream *link_stream_open(struct link *link, struct str header,
                                     const struct link_stream_events *events, void *arg);
void link_stream_set_events(struct link_stream *stream, const struct link_stream_events *events,
                            void *arg);
/* Takes as much as window and queue allow, and says how much; on_room follows when it was
 * not all. */
size_t link_stream_write(struct link_stream *stream, struct str bytes);
size_t link_stream_room(const struct link_stream *stream);
/* For who writes only what there is room for: on_room comes when there is more than now. */
void link_stream_want_room(struct link_stream *stream);
void link_stream_credit(struct link_stream *stream, size_t bytes);
/* We send no more on it; what comes is still received. */
void link_stream_end(struct link_stream *stream);
/* Frees it at once; on_close is not called. The peer gets code and text, after what was written. */
void link_stream_close(struct link_stream *stream, uint32_t code, struct str text);

#endif
