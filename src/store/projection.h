/*
 * projection.h - what an event means for the tables that queries read: one place, used by every
 * store when it appends and when it makes its projections again.
 *
 * project_event() takes an event apart into row operations and hands them to a sink. A projection
 * depends on nothing but the events before it, so a rebuild gives the same rows.
 */
#ifndef STORE_PROJECTION_H
#define STORE_PROJECTION_H

#include "store/query.h"

struct project_row {
    struct id id, parent, tenant;
    struct str path;
};

/* A new workload is an ended_workload (query.h) whose `ended` is 0; the sink fills project_path
 * from the project's row. */

struct workload_step {
    struct id id;
    enum workload_state state;
    enum cause cause;
    struct str detail;
    int64_t attempt, evictions, failures, node_losses;
    struct wall started; /* 0: stays as it is; else set if the state is new */
    struct wall ended;   /* 0: it has not ended */
    struct exit_status exit;
};

struct allocation_row {
    uint64_t key; /* sequence of the grant */
    struct id id, workload, project, tenant, node;
    int64_t attempt, rank, class_number, charge_milli;
    enum allocation_state state;
    enum cause stop_cause;
    struct id evictor;
    struct wall granted;
    struct wall started; /* 0: never ran */
    struct wall ended;   /* when it was charged no more; 0: it still is */
    struct exit_status exit;
};

struct allocation_step {
    struct id id;
    enum allocation_state state;
    enum cause stop_cause;
    struct id evictor;
    struct wall started; /* 0: stays as it is; else set if the state is new */
    struct wall ended;   /* 0: stays as it is; else set if it was 0 */
    struct exit_status exit;
};

/* The ledger grows by a segment: one row a project and class. */
struct ledger_row {
    struct id project;
    int64_t class_number;
    struct id tenant;
    int64_t milli_ms, amount_micros, segments;
};

struct audit_entry {
    const struct store_event *event;
    struct id project;    /* none: not about one */
    struct id workload;   /* none: not about one, unless `allocation` says which */
    struct id allocation; /* the sink finds the workload (and its project) through it */
};

/* Workloads are found by id as long as they are kept, allocations until their state is "ended". */
struct projection_sink {
    enum err (*project_set)(void *to, const struct project_row *row, struct error *e);
    enum err (*workload_add)(void *to, const struct ended_workload *row, struct error *e);
    enum err (*workload_change)(void *to, const struct workload_step *step, struct error *e);
    enum err (*allocation_add)(void *to, const struct allocation_row *row, struct error *e);
    enum err (*allocation_change)(void *to, const struct allocation_step *step, struct error *e);
    /* ERR_CONFLICT: the allocation was billed before. */
    enum err (*usage_add)(void *to, const struct usage_row *row, struct wall recorded,
                          struct error *e);
    enum err (*ledger_grow)(void *to, const struct ledger_row *by, struct error *e);
    enum err (*audit_add)(void *to, const struct audit_entry *entry, struct error *e);
};

MUST_CHECK enum err project_event(const struct projection_sink *sink, void *to,
                                  const struct store_event *event, struct error *e);

#endif
