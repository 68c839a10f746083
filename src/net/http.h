/*
 * http.h - an HTTP/1.1 server: strict in what it reads, answers when the owner is ready.
 *
 * A connection carries one request at a time; pipelined ones wait their turn. A request
 * goes through
 *
 *     on_header  - the head is complete and well-formed. The owner may answer at once (no such route,
 *                  not permitted, too large), set the body's cap, or take the body as a stream.
 *     on_request - the whole body has come. The owner answers now or later.
 *
 * To answer later keep its struct http_ref: http_find gives NULL once the client has gone or the
 * request was answered, so a late answer is always safe. Everything a request shows is
 * borrowed until it ends. What breaks the grammar, a cap or a deadline is answered here
 * and never reaches the owner.
 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include "base/str.h"
#include "net/conn.h"

struct http_server;
struct http_request;

enum http_method {
    HTTP_METHOD_GET,
    HTTP_METHOD_HEAD,
    HTTP_METHOD_POST,
    HTTP_METHOD_PUT,
    HTTP_METHOD_PATCH,
    HTTP_METHOD_DELETE,
    HTTP_METHOD_OPTIONS,
    HTTP_METHOD_COUNT
};
const char *http_method_name(enum http_method method); /* "GET" */

struct http_handler {
    void (*on_header)(struct http_request *request, void *arg); /* may be NULL */
    void (*on_request)(struct http_request *request, void *arg);
    /* Writes the body of an answer made here (400, 408, 413, 431, ...). NULL: plain text. */
    void (*on_refuse)(unsigned status, const char *detail, struct buf *body,
                      struct str *content_type, void *arg);
};

/* Zero takes the default. */
struct http_server_options {
    size_t header_bytes_max;   /* 16 KiB: request line and fields; beyond: 431 */
    size_t header_count_max;   /* 64 fields; beyond: 431 */
    uint64_t body_bytes_max;   /* 1 MiB, unless on_header says otherwise; beyond: 413 */
    size_t queue_bytes_max;    /* 256 KiB unsent bytes of one streamed answer */
    int64_t header_timeout_ms; /* 10 s from the first byte to the end of the head */
    int64_t body_timeout_ms;   /* 30 s from the head to the end of the body */
    int64_t write_timeout_ms;  /* 30 s for each 64 KiB of an answer */
    int64_t idle_timeout_ms;   /* 60 s between requests */
    int64_t feed_ping_ms;      /* 15 s of silence on a feed, then a comment */
    struct str common_fields;  /* raw "Name: value\r\n" lines of every answer; copied */
};

MUST_CHECK enum err http_server_new(struct loop *loop, const struct http_server_options *options,
                                    const struct http_handler *handler, void *arg,
                                    struct http_server **out, struct error *e);
/* Serves an accepted connection from now on: call it from listener_options.on_accept. */
void http_server_take(struct http_server *server, struct conn *conn);
/* No more keep-alive: idle connections close now, the others after their answer. Feeds end. */
void http_server_drain(struct http_server *server);
size_t http_server_conn_count(const struct http_server *server); /* for tests */
/*
 * Cuts what is left; requests end at once. Not from one of its own callbacks. Its connections are
 * gone after one more round of the loop.
 */
void http_server_free(struct http_server *server);
DEFINE_CLEANUP(http_server, struct http_server *, http_server_free)

struct http_stats {
    uint64_t request_count; /* that reached on_header */
    uint64_t refusal_count; /* answered here: grammar, caps, deadlines */
    uint64_t feed_drop_count;
    size_t conn_count;
    size_t feed_count;
};
struct http_stats http_server_stats(const struct http_server *server);

/* --- What a request says. --- */

struct http_pair {
    struct str name;
    struct str value;
};

enum http_method http_request_method(const struct http_request *request);
/* The path cut at '/', each part decoded once: "/v1/a%20b" is "v1", "a b". No part is empty. */
size_t http_request_segment_count(const struct http_request *request);
struct str http_request_segment(const struct http_request *request, size_t index);
bool http_request_has_final_slash(const struct http_request *request); /* "/a/" yes, "/" no */
size_t http_request_query_count(const struct http_request *request);
struct http_pair http_request_query(const struct http_request *request, size_t index);
struct str http_request_target(const struct http_request *request); /* raw, as it came */
/* Names are lower-case. Those that may not repeat (RFC 9110, ours: authorization) did not. */
/* The first of that lower-case name; data NULL: absent. */
struct str http_request_field(const struct http_request *request, const char *name);
struct str http_request_body(const struct http_request *request); /* empty until on_request */
const struct conn_peer *http_request_peer(const struct http_request *request);

/* --- Its life. --- */

struct http_ref {
    uint32_t slot;
    uint32_t generation; /* 0: none */
};
struct http_ref http_request_ref(const struct http_request *request);
/* NULL: answered, or the client has gone. */
struct http_request *http_find(struct http_server *server, struct http_ref ref);

/* Something of the owner's that lives with the request; `on_end` is called exactly once. */
enum http_end { HTTP_END_ANSWERED, HTTP_END_GONE };
void http_request_set_user(struct http_request *request, void *user,
                           void (*on_end)(void *user, enum http_end end));
void *http_request_user(const struct http_request *request);

/* --- Its body; from on_header only. --- */

void http_request_set_body_max(struct http_request *request, uint64_t bytes);
void http_request_set_body_timeout(struct http_request *request, int64_t timeout_ms);

/* Chunks as they come; then on_request, with an empty body. */
struct http_body_sink {
    void (*on_chunk)(struct http_request *request, struct str bytes, void *arg);
    void *arg; /* borrowed */
};
/* Also without body timeout: instead, every 64 KiB must come within it. */
void http_request_stream_body(struct http_request *request, const struct http_body_sink *sink);

/* --- Its answer. One of http_respond, http_stream_start, http_feed_start, http_upgrade. --- */

struct http_response {
    unsigned status;
    struct str content_type; /* empty: none */
    struct str body;
    const struct http_pair *fields; /* more header fields; control characters become spaces */
    size_t field_count;
    bool must_close; /* close the connection afterwards */
};
/* Copies everything. Before the body has come, the rest of it is refused and the
 * connection closed. */
void http_respond(struct http_request *request, const struct http_response *response);

/*
 * An answer in pieces. `length` -1: chunked. `response->body` is ignored. After the start:
 * http_stream_write takes all or nothing (ERR_LIMIT: wait for on_room), http_stream_end completes,
 * and http_stream_cut breaks the connection so that the client notices the missing rest.
 */
void http_stream_start(struct http_request *request, const struct http_response *response,
                       int64_t length);
void http_stream_on_room(struct http_request *request,
                         void (*fn)(struct http_request *request, void *arg), void *arg);
MUST_CHECK enum err http_stream_write(struct http_request *request, struct str bytes);
size_t http_stream_room(const struct http_request *request);
/* Asks for on_room, for who writes only as much as there is room. */
void http_stream_want_room(struct http_request *request);
void http_stream_end(struct http_request *request);
void http_stream_cut(struct http_request *request);

/*
 * A change feed (text/event-stream). Its queue is bounded by `queue_bytes`: a client too slow for
 * it gets what is queued, a last "event: overflow" whose id is that of the last event sent, and is
 * closed, so that it can resume there (Last-Event-ID). From then on http_feed_send answers
 * ERR_LIMIT and the request ends as HTTP_END_GONE.
 */
void http_feed_start(struct http_request *request, const struct http_response *response,
                     size_t queue_bytes);
/* One event, formatted once for many feeds. `id` may be empty. Line breaks in `data` are
 * handled. */
void http_event_format(struct buf *out, struct str id, struct str event, struct str data);
MUST_CHECK enum err http_feed_send(struct http_request *request, struct str formatted,
                                   struct str id);
void http_feed_end(struct http_request *request);

/* Answers 101 and gives the connection away, with what the client has sent after the head. */
struct conn *http_upgrade(struct http_request *request, const struct http_pair *fields,
                          size_t field_count);

#endif
