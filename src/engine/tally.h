/*
 * tally.h - what the scheduler did since the start, counted for metrics: cycles and how long they
 * took, starts and whether promises of them were kept, evictions by tenant and cause.
 *
 * Counted as events are applied; nothing is decided by it, and a restart begins at zero.
 */
#ifndef ENGINE_TALLY_H
#define ENGINE_TALLY_H

#include "base/map.h"
#include "core/core.h"

enum { TALLY_BUCKETS = 6 };
extern const int64_t tally_bucket_ns[TALLY_BUCKETS]; /* upper bounds of cycle times */

struct sched_tally {
    uint64_t cycles, cycle_ns, cycle_ns_max;
    uint64_t cycle_counts[TALLY_BUCKETS]; /* of each bucket alone; longer ones are in none */
    struct wall last_cycle;               /* its end; 0: none yet */
    struct mono cycle_from;               /* of the one under way; 0: none */
    uint64_t starts, promised_starts, late_starts, late_ns;
    struct id_map tenants; /* by id; owned by the list */
    struct tenant_tally *first_tenant;
};

/* Of one that had work evicted. */
struct tenant_tally {
    struct id tenant;
    struct tenant_tally *next;
    uint64_t evictions[CAUSE_COUNT];
};

void tally_done(struct sched_tally *tally);
/* Before the event changes the state. */
void tally_event(struct sched_tally *tally, const struct state *state, const struct sched *sched,
                 const struct event *event);
/* A step of a cycle is about to begin, and has ended with `more` to do or without. */
void tally_cycle_begin(struct sched_tally *tally, struct mono now);
void tally_cycle_end(struct sched_tally *tally, struct mono now, struct wall wall, bool more);
/* Evictions of a tenant's work for one cause. */
uint64_t tally_evictions(const struct sched_tally *tally, struct id tenant, enum cause cause);

#endif
