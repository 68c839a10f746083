/* Gangs that are not whole: which members the present attempt goes on without. */
#include <assert.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"

static struct gang *gang_add(struct state *state, struct id workload)
{
    struct gang *gang = pool_new(&state->pool, sizeof(*gang));
    gang->r.workload = workload;
    LIST_APPEND(state->first_gang, state->last_gang, gang, next, prev);
    id_map_put(&state->gangs, workload, gang);
    return gang;
}

void gang_drop(struct state *state, struct id workload)
{
    struct gang *gang = id_map_remove(&state->gangs, workload);
    if (gang == NULL)
        return;
    LIST_REMOVE(state->first_gang, state->last_gang, gang, next, prev);
    gaps_drop(&state->pool, &gang->r.missing);
    pool_free(&state->pool, gang, sizeof(*gang));
}

void evolve_gang_changed(struct state *state, const struct event *event, enum history from)
{
    struct gang_record next = event->gang_changed;
    const struct workload *workload = state_workload(state, next.workload);
    (void)from;
    assert(workload != NULL);
    assert(workload->r.state == WL_STARTING || workload->r.state == WL_RUNNING);
    if (next.missing.count == 0) {
        gang_drop(state, next.workload);
        return;
    }
    gaps_keep(&state->pool, &next.missing);
    struct gang *gang = state_gang(state, next.workload);
    if (gang == NULL)
        gang = gang_add(state, next.workload);
    gaps_drop(&state->pool, &gang->r.missing);
    gang->r = next;
}

/* ---- reading ------------------------------------------------------------------------------- */

struct gang *state_gang(const struct state *state, struct id workload)
{
    return id_map_get(&state->gangs, workload);
}

bool gang_lacks(const struct gang_record *r, int64_t rank)
{
    for (size_t i = 0; i < r->missing.count; i++) {
        if (r->missing.items[i].rank == rank)
            return true;
    }
    return false;
}
