/* Allocations: what nodes give to members, and what of it is billed. */
#include <assert.h>
#include <string.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"
#include "model/transition.h"

/* By attempt, then rank: the tail is nearly always the place. */
static void workload_link(struct workload *workload, struct allocation *allocation)
{
    const struct allocation_record *r = &allocation->r;
    struct allocation *after = workload->last_allocation;
    while (after != NULL && (after->r.attempt > r->attempt ||
                             (after->r.attempt == r->attempt && after->r.rank > r->rank)))
        after = after->prev_in_workload;
    LIST_INSERT(workload->first_allocation, workload->last_allocation, after, allocation,
                next_in_workload, prev_in_workload);
}

/* By sequence of the grant: a snapshot gives them back workload by workload. */
static void node_link(struct node *node, struct allocation *allocation)
{
    struct allocation *after = node->last_allocation;
    while (after != NULL && after->r.created_sequence > allocation->r.created_sequence)
        after = after->prev_on_node;
    LIST_INSERT(node->first_allocation, node->last_allocation, after, allocation, next_on_node,
                prev_on_node);
}

static bool is_of_attempt(const struct allocation *allocation, int64_t attempt)
{
    return allocation != NULL && allocation->r.attempt == attempt;
}

/* Where the work is: the allocations go when it ends, and people ask afterwards. */
static void workload_place(struct state *state, struct workload *workload,
                           const struct allocation *allocation)
{
    const struct allocation_record *r = &allocation->r;
    struct id_list *nodes = &workload->r.nodes;
    bool is_first = !is_of_attempt(allocation->prev_in_workload, r->attempt) &&
                    !is_of_attempt(allocation->next_in_workload, r->attempt);
    if (is_first || nodes->count == 0) {
        nodes_drop(&state->pool, nodes);
        nodes->count = (size_t)workload->r.members;
        nodes->items = pool_new(&state->pool, nodes->count * sizeof(*nodes->items));
    }
    if (r->rank >= 0 && (size_t)r->rank < nodes->count)
        nodes->items[r->rank] = r->node;
}

static void note_use(struct state *state, const struct allocation *allocation, int64_t milli,
                     enum history from)
{
    struct project *project = allocation->workload->project;
    past_note_use(state, project, allocation->r.class_number, milli, from);
    past_note_user(state, allocation, milli, from);
}

void evolve_allocation_granted(struct state *state, const struct event *event, enum history from)
{
    const struct allocation_record *given = &event->allocation_granted;
    assert(state_allocation(state, given->id) == NULL);
    struct allocation *allocation = pool_new(&state->pool, sizeof(*allocation));
    struct allocation_record *r = &allocation->r;
    *r = *given;
    allocation_keep(&state->pool, r);
    allocation->workload = state_workload(state, r->workload);
    allocation->node = state_node(state, r->node);
    assert(allocation->workload != NULL);
    assert(allocation->node != NULL);
    assert(id_eq(allocation->workload->r.project, r->project));
    assert(allocation_is_held(r->state));
    if (from == LIVE) {
        assert(r->state == AL_STARTING);
        assert(!workload_state_is_final(allocation->workload->r.state));
        r->granted = event->at;
        r->created_sequence = event->sequence;
        allocation->node->r.generation++;
    }

    if (allocation_is_charged(r->state))
        note_use(state, allocation, r->charge_milli, from);
    workload_link(allocation->workload, allocation);
    if (from == LIVE)
        workload_place(state, allocation->workload, allocation);
    node_link(allocation->node, allocation);
    id_map_put(&state->allocations, r->id, allocation);
    state->allocation_count++;
}

static void allocation_remove(struct state *state, struct allocation *allocation)
{
    struct workload *workload = allocation->workload;
    struct node *node = allocation->node;
    LIST_REMOVE(workload->first_allocation, workload->last_allocation, allocation, next_in_workload,
                prev_in_workload);
    LIST_REMOVE(node->first_allocation, node->last_allocation, allocation, next_on_node,
                prev_on_node);
    (void)id_map_remove(&state->allocations, allocation->r.id);
    state->allocation_count--;
    allocation_drop(&state->pool, &allocation->r);
    pool_free(&state->pool, allocation, sizeof(*allocation));
}

/* The row of the class, made where it is missing; rows are in order of class number. */
static struct usage_total *usage_row(struct pool *pool, struct usage_list *list, int64_t class)
{
    size_t at = 0;
    while (at < list->count && list->items[at].class_number < class)
        at++;
    if (at < list->count && list->items[at].class_number == class)
        return &list->items[at];

    struct usage_list grown = { .count = list->count + 1 };
    grown.items = pool_new(pool, grown.count * sizeof(*grown.items));
    if (at > 0)
        memcpy(grown.items, list->items, at * sizeof(*grown.items));
    if (at < list->count)
        memcpy(&grown.items[at + 1], &list->items[at], (list->count - at) * sizeof(*grown.items));
    grown.items[at] = (struct usage_total){ .class_number = class };
    usage_drop(pool, list);
    *list = grown;
    return &list->items[at];
}

/* A total that stops at the top is wrong; one that wraps is a lie. The segments stay exact. */
static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void usage_add(struct state *state, struct project *project, const struct segment *segment)
{
    int64_t milli_ms = 0;
    assert(segment->duration_ms >= 0);
    assert(segment->charge_milli >= 0);
    assert(segment->amount_micros >= 0);
    if (__builtin_mul_overflow(segment->charge_milli, segment->duration_ms, &milli_ms))
        milli_ms = INT64_MAX;
    for (; project != NULL; project = project->parent) {
        struct usage_total *total =
            usage_row(&state->pool, &project->r.usage, segment->class_number);
        total->milli_ms = add_capped(total->milli_ms, milli_ms);
        total->amount_micros = add_capped(total->amount_micros, segment->amount_micros);
        total->segments++;
    }
}

/* What an allocation remembers of the moments at which it entered its states. */
static void allocation_stamp(struct allocation_record *r, const struct event *event)
{
    switch (r->state) {
    case AL_RUNNING:
        r->started = event->at;
        r->started_wall = event->wall;
        break;
    case AL_STOPPING:
        r->stopping = event->at;
        break;
    case AL_CLEANING:
        r->gone = event->at;
        break;
    case AL_NONE:
    case AL_STARTING:
    case AL_QUARANTINED:
    case AL_LOST:
    case AL_ENDED:
    case AL_STATE_COUNT:
        break;
    }
}

/* Does the node have to be told? Everything but "your start succeeded" changes what it
 * should run. */
static bool changes_desired_set(enum allocation_state from, enum allocation_state to)
{
    return from != to && !(from == AL_STARTING && to == AL_RUNNING);
}

void evolve_allocation_changed(struct state *state, const struct event *event, enum history from)
{
    const struct allocation_changed *given = &event->allocation_changed;
    struct allocation *allocation = state_allocation(state, given->allocation);
    (void)from;
    assert(allocation != NULL);
    struct allocation_record *r = &allocation->r;
    enum allocation_state before = r->state;
    assert(before == given->state || allocation_may_become(before, given->state));

    if (changes_desired_set(before, given->state))
        allocation->node->r.generation++;
    r->state = given->state;
    r->stop_cause = given->stop_cause;
    r->evictor = given->evictor;
    r->exit = given->exit;
    if (before != given->state)
        allocation_stamp(r, event);
    if (given->has_segment)
        usage_add(state, allocation->workload->project, &given->segment);
    int64_t change = allocation_is_charged(given->state) - allocation_is_charged(before);
    if (change != 0)
        note_use(state, allocation, change * r->charge_milli, from);
    if (given->state == AL_ENDED)
        allocation_remove(state, allocation);
}

void evolve_allocation_noted(struct state *state, const struct event *event, enum history from)
{
    const struct allocation_noted *given = &event->allocation_noted;
    struct allocation *allocation = state_allocation(state, given->allocation);
    (void)from;
    assert(allocation != NULL);
    allocation->r.checkpointed = given->checkpointed;
    allocation->r.checkpoints = given->checkpoints;
    allocation->r.extended_s = given->extended_s;
}
