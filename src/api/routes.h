/*
 * routes.h - the one table of routes: paths, permissions, bodies and answers. The OpenAPI document,
 * the matcher and the tests are made from it.
 */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "access/access.h"
#include "api/api.h"

/* What a handler works on: one request. */
struct call {
    const struct api_request *request;
    const struct api_context *context;
    struct api_result *result;       /* of handlers; NULL in finishers */
    const struct api_result *before; /* of finishers: what the handler asked for */
    struct api_answer *answer;
};
typedef enum err call_fn(struct call *c, struct error *e);
typedef enum err stored_fn(struct call *c, const struct api_stored *stored, struct error *e);

enum route_flag {
    ROUTE_OPEN = 1 << 0,       /* needs no credential */
    ROUTE_IDEMPOTENT = 1 << 1, /* takes an Idempotency-Key */
    ROUTE_SECRET = 1 << 2,     /* the answer holds a secret: never kept */
    ROUTE_STORES = 1 << 3,     /* the body is bytes for the blob store */
    ROUTE_IF_MATCH = 1 << 4,
    ROUTE_OWN = 1 << 5 /* whoever has a credential, about himself */
};

enum answer_shape {
    SHAPE_ONE,   /* an object of `answer` */
    SHAPE_LIST,  /* {"items": [...], "next": "..."} */
    SHAPE_NONE,  /* 204 */
    SHAPE_TEXT,  /* text/plain */
    SHAPE_JSON,  /* application/json of no table */
    SHAPE_FEED,  /* text/event-stream */
    SHAPE_BYTES, /* application/octet-stream */
    SHAPE_SOCKET /* 101: a WebSocket, which the server keeps; no handler */
};

struct param {
    const char *name; /* NULL ends a list */
    const char *doc;
    bool is_integer;
};

struct route {
    enum http_method method;
    const char *pattern; /* "/v1/workloads/{id}" */
    enum permission permission;
    unsigned flags;
    call_fn *handle;
    call_fn *finish;              /* of routes that make a command */
    stored_fn *stored;            /* of ROUTE_STORES */
    const struct schema *request; /* of the body; NULL: none */
    const struct schema *answer;
    enum answer_shape shape;
    unsigned status;            /* of success */
    const struct param *params; /* of the query; NULL: none */
    uint64_t body_max;          /* 0: 64 KiB */
    const char *tag;
    const char *summary;
};

extern const struct route routes[];
extern const size_t route_count;

#endif
