/*
 * exchange.h - one HTTP request on its way through the controller. Only the server's files include
 * this: server.c (listeners, heads, commands), server_body.c (uploads), server_feed.c (change
 * feeds), server_log.c (output of workloads, blobs).
 */
#ifndef CONTROLLER_EXCHANGE_H
#define CONTROLLER_EXCHANGE_H

#include "api/api.h"
#include "controller/server.h"

enum { SEGMENTS_MAX = 16, QUERIES_MAX = API_QUERY_MAX };

struct exchange {
    struct engine_waiter waiter; /* first: settled() gets its address */
    struct server *server;
    struct http_ref ref;
    struct arena arena;
    struct actor actor;
    struct api_request request;
    struct http_pair query[QUERIES_MAX];
    struct api_result result;
    struct api_answer answer;
    struct api_stored stored;

    bool has_key; /* an Idempotency-Key was sent */
    struct digest key, body_hash;

    struct blob_writer *writer; /* owned; while a body is being stored */
    enum err body_rc;
    struct error body_error;

    bool is_gone;          /* the client has gone or was answered: `ref` is dead */
    bool is_waiting;       /* the engine or a worker still holds it */
    struct exchange *next; /* queue of list queries */
    enum err query_rc;
    struct error query_error;
};

struct feed_subscriber;
struct log_reader;
struct cli_streams;
struct terminal;
struct resolution;
struct errand;

struct rate_bucket {
    struct id token;
    int64_t tokens_milli; /* thousandths of a request */
    struct mono filled;
    struct rate_bucket *next;
};

struct server {
    struct berthd *berthd; /* borrowed */
    struct listener *local, *secure;
    struct tls_context *tls;
    struct http_server *http;
    struct api_ops ops;
    struct buf openapi;                         /* the document, made once */
    struct id_map buckets;                      /* token -> struct rate_bucket */
    struct rate_bucket *first_bucket;           /* owned */
    struct exchange *first_query, **last_query; /* waiting for the list connection */
    bool is_querying;
    struct resolution *first_resolution, **last_resolution; /* owned; the first one is under way */
    size_t resolution_count;
    struct feed_subscriber *feeds; /* owned */
    uint64_t published;            /* sequence of the newest event given to feeds */
    struct log_reader *readers;    /* owned */
    struct errand *errands;        /* owned; in order of arrival */
    struct cli_streams *streams;   /* owned */
    struct terminal *terminals;    /* each owned by its socket */
    bool is_draining;
};

/* Sends exchange->answer once all that it may reflect is durable. */
void exchange_answer(struct exchange *exchange);
/* The same for an error. */
void exchange_refuse(struct exchange *exchange, const struct error *e);
/* Runs exchange->result.command and answers. False: it was refused. The exchange may be
 * gone then. */
bool exchange_command(struct exchange *exchange);
/* The live request, or NULL. */
struct http_request *exchange_http(const struct exchange *exchange);
/* Frees it when nobody holds it any more. */
void exchange_release(struct exchange *exchange);
struct api_context exchange_context(struct exchange *exchange);

/* server_body.c */
void body_start(struct exchange *exchange, struct http_request *request);
void body_finish(struct exchange *exchange);

/* server_resolve.c */
void resolve_start(struct exchange *exchange);

/* errand.c: what a forked copy of the process finds out */
/* Is there room for a question of the tenant (none: of operators)? To be asked before any work. */
enum err errand_check(const struct server *server, struct id tenant, struct error *e) MUST_CHECK;
void errand_start(struct exchange *exchange);
void errands_end(struct server *server);

/* server_feed.c */
void feed_start(struct exchange *exchange);
void feeds_publish(struct server *server, const struct event *event);
void feeds_end(struct server *server);

/* server_log.c */
void log_start(struct exchange *exchange);
void blob_start(struct exchange *exchange);
void logs_end(struct server *server);

#endif
