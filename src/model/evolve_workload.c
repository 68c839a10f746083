/* Workloads: the list of all, arrays, and one step of the transition table at a time. */
#include <assert.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"
#include "model/transition.h"

/*
 * Elements of an array hang on the first by index. They are submitted in that order and follow each
 * other in the list of all workloads, so the neighbour there is nearly always the place: without
 * this, an array of ten thousand would take a hundred million steps to submit and to forget.
 */
static void array_link(struct state *state, struct workload *workload)
{
    struct workload *first = state_array(state, workload->r.array);
    struct workload *after = workload->prev;
    int64_t index = workload->r.array_index;

    if (first == NULL || first->r.array_index > index) {
        workload->array_next = first;
        id_map_put(&state->arrays, workload->r.array, workload);
        return;
    }
    if (after == NULL || !id_eq(after->r.array, workload->r.array) || after->r.array_index > index)
        after = first;
    while (after->array_next != NULL && after->array_next->r.array_index < index)
        after = after->array_next;
    workload->array_next = after->array_next;
    after->array_next = workload;
}

static void array_unlink(struct state *state, struct workload *workload)
{
    struct workload *before = state_array(state, workload->r.array);
    if (before == workload) {
        if (workload->array_next != NULL)
            id_map_put(&state->arrays, workload->r.array, workload->array_next);
        else
            (void)id_map_remove(&state->arrays, workload->r.array);
        return;
    }
    if (workload->prev != NULL && workload->prev->array_next == workload)
        before = workload->prev;
    while (before->array_next != workload)
        before = before->array_next;
    before->array_next = workload->array_next;
}

void evolve_workload_submitted(struct state *state, const struct event *event, enum history from)
{
    const struct workload_record *given = &event->workload_submitted;
    assert(state_workload(state, given->id) == NULL);
    struct workload *workload = pool_new(&state->pool, sizeof(*workload));
    struct workload_record *r = &workload->r;
    *r = *given;
    const struct workload *before = state->last_workload;
    workload_keep(&state->pool, r, before != NULL ? &before->r : NULL);
    if (from == LIVE) {
        assert(r->state == WL_HELD || r->state == WL_QUEUED);
        r->submitted_sequence = event->sequence;
        r->submitted = event->wall;
        r->state_since = event->at;
        r->version = event->sequence;
        mix_see(&state->mix, &r->request, (uint64_t)MAX_OF(r->members, INT64_C(1)));
    }
    workload->project = state_project(state, r->project);
    assert(workload->project != NULL);

    LIST_APPEND(state->first_workload, state->last_workload, workload, next, prev);
    state->workload_count++;
    id_map_put(&state->workloads, r->id, workload);
    if (!id_is_none(r->array))
        array_link(state, workload);
    if (workload_state_is_final(r->state)) {
        workload->ended_at = r->state_since;
        state->ended_count++;
    } else {
        workload->project->live_workloads++;
    }
}

static void workload_enter(struct state *state, struct workload *workload, enum workload_state next,
                           const struct event *event)
{
    struct workload_record *r = &workload->r;
    assert(workload_may_become(r->state, next));
    r->state = next;
    r->state_since = event->at;
    if (next != WL_RUNNING)
        gang_drop(state, r->id);
    if (next == WL_RUNNING)
        r->started = event->wall;
    if (workload_state_is_final(next)) {
        r->ended = event->wall;
        workload->ended_at = event->at;
        workload->project->live_workloads--;
        state->ended_count++;
    }
}

void evolve_workload_changed(struct state *state, const struct event *event, enum history from)
{
    const struct workload_changed *given = &event->workload_changed;
    struct workload *workload = state_workload(state, given->workload);
    (void)from;
    assert(workload != NULL);
    assert(!workload_state_is_final(workload->r.state));
    struct workload_record *r = &workload->r;
    if (r->state != given->state)
        workload_enter(state, workload, given->state, event);

    struct str detail = given->detail;
    str_keep(&state->pool, &detail);
    str_drop(&state->pool, &r->detail);
    r->detail = detail;
    r->after_stop = given->after_stop;
    r->cause = given->cause;
    r->attempt = given->attempt;
    r->failures = given->failures;
    r->evictions = given->evictions;
    r->node_losses = given->node_losses;
    r->not_before = given->not_before;
    r->exit = given->exit;
    r->version = event->sequence;
}

void workload_forget(struct state *state, struct workload *workload)
{
    assert(workload_state_is_final(workload->r.state));
    assert(workload->first_allocation == NULL);

    if (!id_is_none(workload->r.array))
        array_unlink(state, workload);
    LIST_REMOVE(state->first_workload, state->last_workload, workload, next, prev);
    (void)id_map_remove(&state->workloads, workload->r.id);
    state->workload_count--;
    state->ended_count--;
    workload_drop(&state->pool, &workload->r);
    pool_free(&state->pool, workload, sizeof(*workload));
}

void evolve_workload_forgotten(struct state *state, const struct event *event, enum history from)
{
    struct workload *workload = state_workload(state, event->removed.id);
    (void)from;
    assert(workload != NULL);
    workload_forget(state, workload);
}

void evolve_workload_untied(struct state *state, const struct event *event, enum history from)
{
    static const struct id none = { 0 };
    struct workload *workload = state_workload(state, event->removed.id);
    (void)from;
    assert(workload != NULL && !id_is_none(workload->r.reservation));
    workload->r.reservation = none;
    workload->r.is_on_demand = true;
    workload->r.version = event->sequence;
}
