/* memory_store.h - what the parts of the memory store share; nobody else includes it. */
#ifndef STORE_MEMORY_STORE_H
#define STORE_MEMORY_STORE_H

#include "base/map.h"
#include "store/projection.h"

struct memory_workload {
    struct ended_workload row;
};

struct memory_allocation {
    struct allocation_row row;
};

struct memory_usage {
    struct usage_row row;
    struct wall recorded;
};

struct memory_audit {
    struct audit_row row; /* the body is in the journal as long as that keeps it */
    enum event_type type;
    uint64_t tenant_sequence;
    struct id project, workload;
};

struct memory_snapshot {
    uint64_t sequence;
    struct str bytes;
};

/* All tables are in order of their keys; all strings are owned. */
struct memory_store {
    struct store base; /* first: the vtable's functions cast back */
    uint64_t epoch;    /* as stored; base.epoch is what this holder claimed */
    uint64_t sequence; /* of the last event */
    uint64_t dropped;  /* events up to here fell to retention */
    uint64_t archive_to;
    struct store_retention retention;
    bool has_clock;
    struct store_clock clock;
    VEC(struct store_row *) journal; /* from dropped + 1 */
    VEC(struct memory_snapshot) snapshots;
    VEC(struct store_answer *) answers;
    VEC(struct project_row *) projects;
    VEC(struct memory_workload *) workloads;
    VEC(struct memory_allocation *) allocations;
    VEC(struct memory_usage *) usage;
    VEC(struct ledger_row *) ledger; /* by project, then class */
    VEC(struct memory_audit *) audit;
    struct id_map projects_by_id, workloads_by_id;
    struct id_map allocations_by_id; /* live ones */
    struct id_map answers_by_key;
    struct id_map billed; /* use_key -> its usage */
};

static inline struct memory_store *memory_of(struct store *store)
{
    return (struct memory_store *)(void *)store;
}

/* Makes a borrowed text an owned one, and gives it back. */
void memory_keep(struct str *text);
void memory_drop(struct str *text);

/* memory.c; NULL: none is kept. */
struct store_answer *memory_answer(const struct memory_store *store, const struct digest *key);

/* memory_project.c; `to` is the store. */
extern const struct projection_sink memory_sink;
void memory_clear_projections(struct memory_store *store);
void memory_drop_workload(struct memory_store *store, struct memory_workload *workload);
void memory_drop_allocation(struct memory_store *store, struct memory_allocation *allocation);
void memory_drop_usage(struct memory_store *store, struct memory_usage *usage);
void memory_drop_audit(struct memory_audit *audit);

/* One use of an allocation: work on a node that was lost and came back begins another one. */
static inline struct id use_key(const struct segment *segment)
{
    return (struct id){ segment->allocation.hi,
                        segment->allocation.lo ^ (uint64_t)segment->start.ns };
}

#endif
