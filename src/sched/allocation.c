/* allocation.c - what is held: bookings on nodes, use of projects, who can be evicted. */
#include <assert.h>
#include <string.h>

#include "sched/internal.h"

/* ---- who can be evicted -------------------------------------------------------------------- */

static bool is_above_quota_somewhere(const struct sproject *project, int64_t class_number)
{
    for (const struct sproject *p = project; p->parent != NULL; p = p->parent) {
        const struct suse *use = &p->uses[class_number];
        if (use->charged - use->leaving > use->quota ||
            use->own_charged - use->own_leaving > use->own_quota)
            return true;
    }
    return false;
}

/* Cores may be what work of any class lacks. */
static void became_evictable(struct sched *sched, int64_t class_number)
{
    bool is_cores = state_class(sched->state, class_number)->r.kind == CLASS_CPU;
    sched->clock++;
    sched->classes[class_number].evictable = sched->clock;
    for (size_t c = 0; c < sched->class_count && is_cores; c++)
        sched->classes[c].evictable = sched->clock;
}

/* Lowest priority first, then youngest by submission. */
static struct skip_key active_key(const struct swork *work)
{
    return (struct skip_key){ .major = work->active_priority,
                              .minor = UINT64_MAX - work->workload->r.submitted_sequence };
}

void work_refresh(struct sched *sched, struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    bool is_on = r->state == WL_STARTING || r->state == WL_RUNNING;
    bool is_active =
        is_on && r->preemptible == PREEMPTIBLE_ALWAYS && work->charged > 0 && work->tied == NULL;
    work->is_leaving = r->state == WL_STOPPING;
    promise_note_end(sched, work);
    if (is_active == work->is_active)
        return;
    work->is_active = is_active;
    sched->moves++;
    if (!is_active) {
        sched->classes[work->active_class].active_count--;
        skip_remove(&work->project->active[work->active_class], &sched->pool, active_key(work));
        return;
    }
    const struct sallocation *a = work->first;
    while (!allocation_is_charged(a->state))
        a = a->next_of_work; /* of an attempt that was lost */
    work->active_class = a->class_number;
    work->active_priority = r->priority;
    sched->classes[work->active_class].active_count++;
    skip_insert(&work->project->active[work->active_class], &sched->pool, active_key(work), work);
}

/* ---- what a state counts as ---------------------------------------------------------------- */

static struct skip_key order_key(const struct sallocation *a)
{
    return (struct skip_key){ .minor = a->order };
}

static void count_victim(struct sched *sched, const struct sallocation *a, bool is_added)
{
    struct swork *claimant = id_is_none(a->evictor) ? NULL : swork_of(sched, a->evictor);
    if (claimant == NULL)
        return;
    claimant->victims = is_added ? claimant->victims + 1 : claimant->victims - 1;
    if (is_added)
        queue_claim(sched, claimant, a->allocation->r.stopping);
}

static void contribute(struct sched *sched, struct sallocation *a, bool is_added)
{
    int64_t milli = is_added ? a->charge_milli : -a->charge_milli;
    if (allocation_is_charged(a->state)) {
        use_add(sched, a->project, a->class_number, a->is_reserved ? USE_RESERVED : USE_CHARGED,
                milli);
        if (a->is_fixed && !a->is_reserved)
            use_add(sched, a->project, a->class_number, USE_FIXED, milli);
        a->work->charged = is_added ? a->work->charged + 1 : a->work->charged - 1;
    }
    if (allocation_is_charged(a->state) && a->is_reserved)
        window_count(sched, a, is_added);
    if (a->state == AL_STOPPING && !a->is_reserved)
        use_add(sched, a->project, a->class_number, USE_LEAVING, milli);
    if (a->state == AL_STARTING || a->state == AL_RUNNING)
        a->node->live = is_added ? a->node->live + 1 : a->node->live - 1;
    if (a->state != AL_STOPPING && a->state != AL_CLEANING)
        return;
    if (is_added)
        skip_insert(&sched->stopping, &sched->pool, order_key(a), a);
    else
        skip_remove(&sched->stopping, &sched->pool, order_key(a));
    count_victim(sched, a, is_added);
}

/* ---- adding and removing ------------------------------------------------------------------- */

static struct booking booking_of(const struct sallocation *a)
{
    return (struct booking){ a->node, &a->shares, a->cpu_milli, a->memory_mib,
                             a->project->project->tenant };
}

static void link(struct sallocation *a)
{
    a->next_on_node = a->node->allocations;
    if (a->next_on_node != NULL)
        a->next_on_node->prev_on_node = a;
    a->node->allocations = a;
    a->next_of_work = a->work->first;
    if (a->next_of_work != NULL)
        a->next_of_work->prev_of_work = a;
    a->work->first = a;
}

static void unlink_from(struct sallocation *a)
{
    if (a->prev_on_node != NULL)
        a->prev_on_node->next_on_node = a->next_on_node;
    else
        a->node->allocations = a->next_on_node;
    if (a->next_on_node != NULL)
        a->next_on_node->prev_on_node = a->prev_on_node;
    if (a->prev_of_work != NULL)
        a->prev_of_work->next_of_work = a->next_of_work;
    else
        a->work->first = a->next_of_work;
    if (a->next_of_work != NULL)
        a->next_of_work->prev_of_work = a->prev_of_work;
}

/* Whether it was granted at another time than the others of its workload. */
static void note_joining(const struct sallocation *a)
{
    const struct sallocation *other = a->next_of_work;
    while (other != NULL && !allocation_is_charged(other->state))
        other = other->next_of_work;
    if (other != NULL && other->allocation->r.granted.ns != a->allocation->r.granted.ns)
        a->work->has_joined = true;
}

void allocation_add(struct sched *sched, struct allocation *allocation)
{
    const struct allocation_record *r = &allocation->r;
    struct sallocation *a = pool_new(&sched->pool, sizeof(*a));
    *a = (struct sallocation){
        .id = r->id,
        .allocation = allocation,
        .node = snode_of(sched, allocation->node),
        .work = swork_of(sched, r->workload),
        .state = r->state,
        .class_number = r->class_number,
        .charge_milli = r->charge_milli,
        .cpu_milli = r->cpu_milli,
        .memory_mib = r->memory_mib,
        .is_fixed = allocation->workload->r.preemptible == PREEMPTIBLE_NEVER,
        .evictor = r->evictor,
        .order = r->created_sequence,
    };
    a->project = a->work->project;
    a->is_reserved = a->work->tied != NULL;
    size_t size = r->shares.count * sizeof(*r->shares.items);
    a->shares.count = r->shares.count;
    a->shares.items = size > 0 ? pool_dup(&sched->pool, r->shares.items, size) : NULL;
    id_map_put(&sched->allocations, a->id, a);
    link(a);
    const struct booking booking = booking_of(a);
    capacity_book(sched, &booking);
    contribute(sched, a, true);
    note_joining(a);
    work_refresh(sched, a->work);
    if (is_above_quota_somewhere(a->project, a->class_number))
        became_evictable(sched, a->class_number);
    due_allocation(sched, a);
    due_node(sched, a->node);
    queue_claim_met(sched, a->work, r);
}

static void allocation_remove(struct sched *sched, struct sallocation *a)
{
    const struct booking booking = booking_of(a);
    struct swork *work = a->work;
    capacity_unbook(sched, &booking);
    due_drop(sched, &a->has_due, a->due);
    unlink_from(a);
    (void)id_map_remove(&sched->allocations, a->id);
    pool_free(&sched->pool, a->shares.items, a->shares.count * sizeof(*a->shares.items));
    pool_free(&sched->pool, a, sizeof(*a));
    if (work->where == WORK_ENDED)
        due_work(sched, work);
}

void allocation_change(struct sched *sched, const struct allocation_changed *change)
{
    struct sallocation *a = id_map_get(&sched->allocations, change->allocation);
    struct snode *node = a->node;
    struct swork *work = a->work;
    bool was_charged = allocation_is_charged(a->state);
    contribute(sched, a, false);
    a->state = change->state;
    a->evictor = change->evictor;
    contribute(sched, a, true);
    bool is_gone = a->state == AL_ENDED;
    bool frees = is_gone || (was_charged && !allocation_is_charged(a->state));
    work_refresh(sched, work);
    if (is_gone)
        allocation_remove(sched, a);
    else
        due_allocation(sched, a);
    due_node(sched, node);
    promise_spoil_on(sched, node);
    if (frees)
        capacity_gained(sched, node);
}

void allocation_note(struct sched *sched, struct id id)
{
    struct sallocation *a = id_map_get(&sched->allocations, id);
    if (a->state != AL_STOPPING)
        return; /* what is lost with running work is looked up when it matters */
    due_allocation(sched, a);
    promise_spoil_on(sched, a->node);
}

void allocation_untie(struct sched *sched, struct swork *work)
{
    for (struct sallocation *a = work->first; a != NULL; a = a->next_of_work)
        contribute(sched, a, false);
    for (struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        a->is_reserved = false;
        contribute(sched, a, true);
    }
}
