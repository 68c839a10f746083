/* query_backend.h - what a kind of store implements for query.h. */
#ifndef STORE_QUERY_BACKEND_H
#define STORE_QUERY_BACKEND_H

#include "store/query.h"

struct query_vtable {
    enum err (*ended_workloads)(struct query *query, const struct query_page *page,
                                ended_workload_fn *each, void *arg, struct error *e);
    enum err (*workload)(struct query *query, struct id id, ended_workload_fn *each, void *arg,
                         struct error *e);
    enum err (*usage)(struct query *query, const struct query_page *page, usage_row_fn *each,
                      void *arg, struct error *e);
    enum err (*audit)(struct query *query, const struct query_page *page, audit_row_fn *each,
                      void *arg, struct error *e);
    enum err (*events)(struct query *query, const struct query_page *page, store_row_fn *each,
                       void *arg, struct error *e);
    enum err (*answer)(struct query *query, const struct answer_lookup *lookup, struct arena *arena,
                       struct store_answer *out, struct error *e);
    void (*free)(struct query *query);
};

struct query {
    const struct query_vtable *vtable;
};

enum { QUERY_LIMIT_MAX = 1000 };

#endif
