#include "engine/tally.h"

#include "base/mem.h"

const int64_t tally_bucket_ns[TALLY_BUCKETS] = { 100000,    1000000,    10000000,
                                                 100000000, 1000000000, 10000000000 };

/* A promise is given in whole seconds: what comes within one of it is in time. */
enum { IN_TIME_S = 1 };

void tally_done(struct sched_tally *tally)
{
    while (tally->first_tenant != NULL) {
        struct tenant_tally *next = tally->first_tenant->next;
        mem_free(tally->first_tenant);
        tally->first_tenant = next;
    }
    id_map_done(&tally->tenants);
}

static void count_eviction(struct sched_tally *tally, struct id tenant, enum cause cause)
{
    struct tenant_tally *found = id_map_get(&tally->tenants, tenant);
    if (found == NULL) {
        found = mem_new(1, sizeof(*found));
        *found = (struct tenant_tally){ .tenant = tenant, .next = tally->first_tenant };
        tally->first_tenant = found;
        id_map_put(&tally->tenants, tenant, found);
    }
    found->evictions[cause]++;
}

static void count_start(struct sched_tally *tally, const struct sched *sched,
                        const struct workload *workload, struct mono now)
{
    struct mono promised = sched_promised(sched, workload);
    tally->starts++;
    if (promised.ns == INT64_MAX)
        return;
    tally->promised_starts++;
    if (!mono_before(mono_add_s(promised, IN_TIME_S), now))
        return;
    tally->late_starts++;
    tally->late_ns += (uint64_t)(now.ns - promised.ns);
}

static void forget_tenant(struct sched_tally *tally, struct id tenant)
{
    struct tenant_tally *gone = id_map_remove(&tally->tenants, tenant);
    struct tenant_tally **at = &tally->first_tenant;
    if (gone == NULL)
        return;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    mem_free(gone);
}

void tally_event(struct sched_tally *tally, const struct state *state, const struct sched *sched,
                 const struct event *event)
{
    if (event->type == EV_PROJECT_REMOVED)
        forget_tenant(tally, event->removed.id);
    if (event->type != EV_WORKLOAD_CHANGED)
        return;
    const struct workload_changed *step = &event->workload_changed;
    const struct workload *workload = state_workload(state, step->workload);
    if (step->state == WL_STARTING)
        count_start(tally, sched, workload, event->at);
    if (step->evictions > workload->r.evictions)
        count_eviction(tally, event->tenant, step->cause);
}

void tally_cycle_begin(struct sched_tally *tally, struct mono now)
{
    if (tally->cycle_from.ns == 0)
        tally->cycle_from = now;
}

void tally_cycle_end(struct sched_tally *tally, struct mono now, struct wall wall, bool more)
{
    if (more)
        return;
    int64_t took_ns = now.ns - tally->cycle_from.ns;
    tally->cycle_from = (struct mono){ 0 };
    tally->last_cycle = wall;
    tally->cycles++;
    tally->cycle_ns += (uint64_t)took_ns;
    tally->cycle_ns_max = MAX_OF(tally->cycle_ns_max, (uint64_t)took_ns);
    for (size_t i = 0; i < TALLY_BUCKETS; i++) {
        if (took_ns <= tally_bucket_ns[i]) {
            tally->cycle_counts[i]++;
            return;
        }
    }
}

uint64_t tally_evictions(const struct sched_tally *tally, struct id tenant, enum cause cause)
{
    const struct tenant_tally *found = id_map_get(&tally->tenants, tenant);
    return found != NULL ? found->evictions[cause] : 0;
}
