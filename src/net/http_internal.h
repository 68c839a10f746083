/* http_internal.h - what http.c (reading) and http_answer.c (writing) share. Not for
 * other files. */
#ifndef NET_HTTP_INTERNAL_H
#define NET_HTTP_INTERNAL_H

#include "net/http.h"
#include "net/http_chunk.h"
#include "net/http_head.h"

/* One connection. Between requests it is all that an idle client costs beside its struct conn. */
enum channel_phase {
    CHANNEL_IDLE, /* no byte of the next request has come */
    CHANNEL_HEAD,
    CHANNEL_BODY,
    CHANNEL_ANSWER, /* the owner has the request */
    CHANNEL_CLOSED  /* finished, cut or given away */
};

struct channel {
    struct http_server *server;   /* borrowed; NULL: it has been freed */
    struct conn *conn;            /* borrowed; NULL: given away by an upgrade */
    struct http_request *request; /* owned; NULL while idle or in the head */
    struct channel *next;
    struct channel *prev;
    enum channel_phase phase;
    bool is_inside; /* on_data is on the stack */
    bool is_last;   /* close after this answer */
    bool has_ended; /* the client sends no more */
    bool has_more;  /* requests were left for the next round */
    struct http_scan scan;
};

enum answer_kind { ANSWER_NONE, ANSWER_STREAM, ANSWER_FEED };

struct http_request {
    struct channel *channel; /* borrowed */
    struct http_ref ref;
    struct http_head head;
    struct buf body;
    struct http_chunk chunk;
    uint64_t body_max;
    uint64_t body_seen;
    uint64_t body_mark; /* body_seen when a streamed body's deadline was last moved */
    int64_t body_timeout_ms;
    struct http_body_sink sink; /* on_chunk NULL: gathered in `body` */
    bool is_body_complete;

    void *user;
    void (*on_end)(void *user, enum http_end end);

    enum answer_kind kind;
    bool is_chunked;
    uint64_t stream_left; /* of a stream with a length */
    void (*on_room)(struct http_request *request, void *arg);
    void *room_arg;

    struct http_request *feed_next; /* ring of the server's feeds */
    struct http_request *feed_prev;
    struct mono feed_last; /* when something was last sent */
    struct buf feed_id;    /* of the last event sent */
};

struct slot {
    struct http_request *request; /* NULL: free */
    uint32_t generation;
    uint32_t next_free; /* index + 1; 0: none */
};

struct http_server {
    struct loop *loop; /* borrowed */
    struct http_server_options options;
    struct buf common_fields;
    struct http_handler handler;
    void *arg;
    struct channel channels;   /* sentinel of a ring */
    struct http_request feeds; /* sentinel of a ring; only its links are used */
    struct loop_timer feed_timer;
    VEC(struct slot) slots;
    uint32_t free_slot; /* index + 1; 0: none */
    bool is_draining;
    struct http_stats stats;
    struct buf text; /* where heads of answers are put together */
    int64_t date_s;  /* the second that `date` shows */
    char date[40];
};

/* The answer is in the queue: ends the request, then the connection goes on or closes. */
void http_finish(struct http_request *request);
/* An answer of our own; the connection closes. */
void http_refuse(struct channel *channel, struct http_refusal refusal);
struct http_request *http_request_new(struct channel *channel);
/* on_end, and the memory. */
void http_request_free(struct http_request *request, enum http_end end);

/* Writes a whole answer, for a request that exists or not. */
struct answer {
    const struct http_response *response;
    int64_t length; /* -1: none is said */
    bool is_chunked;
    bool closes;
    bool has_body; /* false: HEAD, or a status without one */
};
void http_send_answer(struct channel *channel, const struct answer *answer);
void http_on_room(struct channel *channel);
void http_feeds_init(struct http_server *server);

#endif
