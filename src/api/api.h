/*
 * api.h - what each request means: match a route, say what is to be done, render what came of it.
 *
 * Nothing here blocks, keeps anything or talks to the network. The server (controller/) does, in
 * this order:
 *
 *     api_match()   at the head of a request: 404, 405 with Allow, or the route with its body cap,
 *                   permission and whether its body is a stream to be stored
 *     authenticate, api_permit(), rate limits, Idempotency-Key (route->is_idempotent)
 *     api_handle()  when the body is there (at once for API_STORE_BODY routes); it gives one of
 *         API_ANSWER      `answer` is ready
 *         API_COMMAND     run `command` through the engine, then api_finish() renders its answer out of
 *                         the state as it is after it
 *         API_QUERY       run api_query_run() on a worker with a read-only connection
 *         API_STORE_BODY  store the body in the blob store, then api_stored(): it gives API_COMMAND
 *         API_RESOLVE     ask the registry what `resolve` means, then api_resolved(): it gives API_COMMAND
 *         API_FEED        a change feed (SSE) from `feed`
 *         API_LOG         bytes of a log from `log`
 *         API_BLOB        bytes of a stored blob
 *         API_WHATIF      run `whatif` on two copies of the state, then api_whatif_answer()
 *         API_SNAPSHOT    the bare snapshot of the state
 *     anything that fails: api_problem()
 *
 * Every answer waits for durability as engine/ says; that is the server's part.
 */
#ifndef API_API_H
#define API_API_H

#include "api/decision.h"
#include "api/filter.h"
#include "core/core.h"
#include "net/http.h"
#include "store/query.h"
#include "wire/feed.h"
#include "wire/link.h"
#include "wire/schema.h"

struct route; /* routes.h; the fields the server needs are below, through functions */

enum { API_PARAMS_MAX = 3, API_QUERY_MAX = 32, API_PAGE_MAX = 1000, API_PAGE_DEFAULT = 100 };

/* ---- what comes in ------------------------------------------------------------------------- */

struct api_request {
    const struct route *route;         /* from api_match */
    struct str params[API_PARAMS_MAX]; /* of the path, in order; from api_match */
    const struct http_pair *query;     /* decoded; names not in the route's list are refused */
    size_t query_count;
    struct str body;          /* empty for API_STORE_BODY routes */
    struct str if_match;      /* the header's value, empty: none */
    struct str last_event_id; /* the header's value: where a feed resumes; empty: none */
    struct id request;        /* of this request, for the audit; none: the engine makes one */
};

/* What only the controller can do for a handler; `arg` is passed to each. */
struct api_ops {
    void *arg;
    struct id (*new_id)(void *arg);
    /* Seals a registry password with the controller's key: hexadecimal, in the arena. */
    struct str (*seal)(void *arg, struct arena *arena, struct str secret);
    /* A blob of the store, by digest: its size, or -1. */
    int64_t (*blob_size)(void *arg, struct id tenant, const struct digest *digest);
    /* Is the loop alive, can commands be taken? NULL: yes; else why not. */
    const char *(*health)(void *arg);
    const char *(*readiness)(void *arg);
    /* Adds the controller's own metrics in Prometheus text, each name once. */
    void (*metrics)(void *arg, struct buf *out);
    /* A node's clock minus ours; UNSET: it is not connected. May be NULL. */
    int64_t (*clock_skew_ms)(void *arg, struct id node);
    /* How far a node is with an image that work there waits for; false: not known. May be NULL. */
    bool (*image_progress)(void *arg, struct id node, const struct digest *manifest,
                           struct image_progress_message *out);
    /* The rule of a time zone, in the arena; ERR_NOT_FOUND: there is none of that name. */
    enum err (*zone_rule)(void *arg, struct str name, struct arena *arena, struct str *out,
                          struct error *e);
    /* May one who acts for the tenant (none: for the operator) ask the copy of the state something
     * now? Asked before any work is done for it. May be NULL. */
    enum err (*may_ask)(void *arg, struct id tenant, struct error *e);
    /* What an image runs by itself, entry point and command; false: not known. May be NULL. */
    bool (*image_command)(void *arg, const struct digest *manifest, struct arena *arena,
                          struct str_list *out);
};

struct api_context {
    const struct state *state;
    const struct sched *sched;
    struct actor actor; /* from the credential alone */
    struct mono now;
    struct wall wall;
    struct arena *arena; /* of the request: lives until it is answered */
    struct str version;  /* of the program */
    struct str openapi;  /* what api_openapi says: the same for all, so the server keeps it */
    const struct api_ops *ops;
};

/* ---- what comes out ------------------------------------------------------------------------ */

struct api_answer {
    unsigned status;
    const char *content_type; /* static; NULL: no body */
    struct buf body;          /* yours to buf_done: api_answer_done */
    uint64_t version;         /* for the ETag; 0: none */
    char location[96];        /* "" : none */
    int64_t retry_after_s;    /* 0: none */
};
void api_answer_done(struct api_answer *answer);
DEFINE_CLEANUP_AT(api_answer, struct api_answer, api_answer_done)

enum api_outcome {
    API_ANSWER,
    API_COMMAND,
    API_QUERY,
    API_STORE_BODY,
    API_RESOLVE,
    API_FEED,
    API_LOG,
    API_BLOB,
    API_WHATIF,
    API_SNAPSHOT
};

enum api_query_kind {
    API_QUERY_WORKLOAD,
    API_QUERY_WORKLOADS,
    API_QUERY_USAGE,
    API_QUERY_AUDIT,
    API_QUERY_DECISIONS
};

/* All that a worker needs: it may not look at the state. */
struct api_query {
    enum api_query_kind kind;
    struct query_page page;
    struct workload_filter filter; /* API_QUERY_WORKLOADS; its texts live as long as the request */
    struct decision_filter decisions; /* API_QUERY_DECISIONS; likewise */
    struct id workload;               /* API_QUERY_WORKLOAD */
    struct id tenant;                 /* it must be of; none: any */
    struct wire_names names;          /* a copy, in the arena of the request */
    struct arena *arena;
};

/* Where a streamed body goes. */
enum api_body { API_BODY_UPLOAD, API_BODY_IMAGE };
struct api_store_body {
    enum api_body kind;
    struct id tenant;       /* none: the operator's (images for all) */
    struct digest expected; /* refuse other content; zero: any */
    struct str name;
    uint64_t bytes_max;
};
struct api_stored {
    struct digest digest; /* of the bytes */
    int64_t size_bytes;
    struct digest manifest; /* API_BODY_IMAGE: of the image inside */
};

/* An image of a registry whose digest is not known yet. */
struct api_resolve {
    struct id tenant;     /* whose login is used; none: the operator's image for all */
    struct str reference; /* as it was given */
};
struct api_resolved {
    struct digest manifest;
    int64_t size_bytes;
};

struct api_feed {
    enum feed_view view;
    struct id tenant;   /* none: all */
    struct id workload; /* none: any */
    bool has_after;
    uint64_t after; /* resume behind this sequence; without: from now on */
};

struct api_log {
    struct id workload, project, tenant;
    int64_t attempt; /* 0: the latest */
    int64_t member;
    enum log_stream stream;
    bool has_both; /* both streams, in order of time */
    uint64_t offset;
    int64_t tail_bytes; /* only the last so many; 0: from `offset` on */
    bool is_follow;
};

struct api_blob {
    struct id tenant;
    struct digest digest;
};

/* To be asked of a copy of the state: core/whatif.h. */
enum { API_WHATIF_COMMANDS_MAX = 2 };
struct api_whatif {
    struct command commands[API_WHATIF_COMMANDS_MAX];
    size_t count;
    struct id lost;
    int64_t horizon_s;
};

struct api_result {
    enum api_outcome outcome;
    struct api_answer answer;
    struct command command; /* `actor`, `request` and, where one is created, `new_id` are set */
    struct str secret;      /* a token's text for api_finish; in the arena, to be wiped with it */
    struct api_query query;
    struct api_store_body store_body;
    struct api_resolve resolve;
    struct api_feed feed;
    struct api_log log;
    struct api_blob blob;
    struct api_whatif whatif;
};

/* ---- the calls ----------------------------------------------------------------------------- */

/*
 * The route for a method and a decoded path ("v1", "workloads", "wl_..."): fills `route` and
 * `params`. ERR_NOT_FOUND: no such path. ERR_CONFLICT: there is one, but not for this method; then
 * `allow` (64 bytes) has "GET, POST". HEAD matches GET routes.
 */
enum err api_match(enum http_method method, const struct str *segments, size_t count,
                   struct api_request *out, char allow[64], struct error *e) MUST_CHECK;

uint64_t route_body_max(const struct route *route);
bool route_is_open(const struct route *route);       /* needs no credential: health, OpenAPI */
bool route_is_idempotent(const struct route *route); /* Idempotency-Key applies */
bool route_has_secret(const struct route *route);    /* its answer must not be kept */
bool route_stores_body(const struct route *route);   /* API_STORE_BODY: handle at the head */
bool route_is_socket(const struct route *route); /* a WebSocket: no handler, no credential yet */

/* May this actor use the route at all? What it may do to an object is decided with the object. */
enum err api_permit(const struct route *route, const struct actor *actor, struct error *e)
    MUST_CHECK;

/* On failure nothing is to be done: api_problem(). `result` starts zeroed. */
enum err api_handle(const struct api_request *request, const struct api_context *context,
                    struct api_result *result, struct error *e) MUST_CHECK;

/* After engine_command() took `result->command`: the answer, from the state after it. */
enum err api_finish(const struct api_request *request, const struct api_context *context,
                    const struct api_result *result, struct api_answer *answer, struct error *e)
    MUST_CHECK;

/* After the body was stored: the command that makes it known. */
enum err api_stored(const struct api_request *request, const struct api_context *context,
                    const struct api_stored *stored, struct api_result *result, struct error *e)
    MUST_CHECK;

/* After the registry answered: completes the command of API_RESOLVE. */
void api_resolved(const struct api_resolved *resolved, struct api_result *result);

/* Of both runs: without and with what is supposed; `context` has a state after either. */
struct whatif_run;
void api_whatif_answer(const struct api_request *request, const struct api_context *context,
                       const struct whatif_run *before, const struct whatif_run *after,
                       struct api_answer *answer);

/* On a worker. */
enum err api_query_run(const struct api_query *query, struct query *connection,
                       struct api_answer *answer, struct error *e) MUST_CHECK;

/* RFC 9457 for any error. Replaces what the answer held. */
void api_problem(const struct error *e, struct api_answer *answer);
/* The same form for what HTTP itself refuses: 405, 413, ... */
void api_protocol_problem(unsigned status, const char *title, const char *detail,
                          struct api_answer *answer);

/* The OpenAPI 3.1 document of all routes, made from the tables; the same bytes every time. It takes
 * some milliseconds: for a program's start. */
void api_openapi(struct str version, struct buf *out);

#endif
