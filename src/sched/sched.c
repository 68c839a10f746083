/* sched.c - building the indices from the state, and keeping them: one event at a time. */
#include "sched/internal.h"

static void sched_fill(struct sched *sched)
{
    const struct state *state = sched->state;
    sched->class_count = state->classes.count;
    sched->classes = mem_new(sched->class_count, sizeof(*sched->classes));
    sched->root.uses = mem_new(sched->class_count, sizeof(*sched->root.uses));
    for (struct project *p = state->first_tenant; p != NULL; p = project_next(p))
        quota_add_project(sched, p);
    quota_refresh(sched);
    index_open(sched);
    for (struct node *n = state->first_node; n != NULL; n = n->next)
        capacity_add_node(sched, n);
    sched->wall_ahead_ns = state->wall.ns - state->now.ns;
    for (struct reservation *r = state->first_reservation; r != NULL; r = r->next)
        window_add(sched, r);
    due_changes(sched);
    for (struct workload *w = state->first_workload; w != NULL; w = w->next)
        queue_add_work(sched, w);
    for (const struct node *n = state->first_node; n != NULL; n = n->next) {
        for (struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node)
            allocation_add(sched, a);
    }
    for (const struct gang *g = state->first_gang; g != NULL; g = g->next)
        gang_note(sched, swork_of(sched, g->r.workload));
    for (struct workload *w = state->first_workload; w != NULL; w = w->next)
        due_work(sched, swork_of(sched, w->r.id));
}

static void sched_clear(struct sched *sched)
{
    for (struct sproject *p = sched->first_project; p != NULL; p = p->next) {
        mem_free(p->uses);
        mem_free(p->active);
        mem_free(p->waits);
        str_map_done(&p->shapes);
    }
    for (struct snode *n = sched->first_node; n != NULL; n = n->next)
        mem_free(n->devices);
    index_close(sched);
    mem_free(sched->root.uses);
    mem_free(sched->classes);
    for (size_t i = 0; i < DOMAIN_KINDS; i++)
        id_map_done(&sched->domain_of[i]);
    id_map_done(&sched->nodes);
    id_map_done(&sched->projects);
    id_map_done(&sched->works);
    id_map_done(&sched->allocations);
    id_map_done(&sched->awaited);
    id_map_done(&sched->reservations);
    vec_done(&sched->picks);
    vec_done(&sched->undo);
    buf_done(&sched->undo_bytes);
    vec_done(&sched->pins);
    vec_done(&sched->visited);
    vec_done(&sched->parties);
    vec_done(&sched->undivided);
    pool_done(&sched->pool);
}

struct sched *sched_new(const struct state *state)
{
    struct sched *sched = mem_new(1, sizeof(*sched));
    sched->state = state;
    sched->now = state->now;
    sched_fill(sched);
    return sched;
}

void sched_free(struct sched *sched)
{
    if (sched == NULL)
        return;
    sched_clear(sched);
    mem_free(sched);
}

/* Changes of the catalogue touch everything, and are rare. */
static void sched_rebuild(struct sched *sched)
{
    const struct state *state = sched->state;
    uint64_t clock = sched->clock;
    struct mono now = sched->now;
    sched_clear(sched);
    *sched = (struct sched){ .state = state, .clock = clock, .now = now };
    sched_fill(sched);
}

/* ---- events -------------------------------------------------------------------------------- */

typedef void note_fn(struct sched *sched, const struct event *event);

static void note_start(struct sched *sched, const struct event *event)
{
    (void)event;
    due_restart(sched);
}

static void note_catalogue(struct sched *sched, const struct event *event)
{
    (void)event;
    sched_rebuild(sched);
}

static void note_project(struct sched *sched, const struct event *event)
{
    struct id id = event->project_set.id;
    if (id_map_get(&sched->projects, id) == NULL)
        quota_add_project(sched, state_project(sched->state, id));
    quota_refresh(sched);
}

static void note_project_removed(struct sched *sched, const struct event *event)
{
    quota_remove_project(sched, event->removed.id);
    quota_refresh(sched);
    due_changes(sched);
}

/* Of the events that change one. */
static struct id node_of(const struct event *event)
{
    return event->type == EV_NODE_SET       ? event->node_set.id
           : event->type == EV_NODE_CONTACT ? event->node_contact.node
           : event->type == EV_NODE_HOLDS   ? event->node_holds.node
                                            : event->device_changed.node;
}

static void note_node(struct sched *sched, const struct event *event)
{
    struct id id = node_of(event);
    struct snode *known = id_map_get(&sched->nodes, id);
    if (known != NULL)
        capacity_change_node(sched, known);
    else
        capacity_add_node(sched, state_node(sched->state, id));
}

static void note_node_removed(struct sched *sched, const struct event *event)
{
    struct snode *node = id_map_remove(&sched->nodes, event->removed.id);
    queue_claims_leave_node(sched, node->node);
    capacity_remove_node(sched, node);
}

static void note_submitted(struct sched *sched, const struct event *event)
{
    queue_add_work(sched, state_workload(sched->state, event->workload_submitted.id));
    index_learn(sched);
}

static void note_workload(struct sched *sched, const struct event *event)
{
    struct swork *work = swork_of(sched, event->workload_changed.workload);
    due_drop(sched, &work->has_due, work->due);
    queue_change_work(sched, work);
    work_refresh(sched, work);
    gang_note(sched, work);
    consolidate_note(sched, work);
    due_work(sched, work);
}

static void note_gang(struct sched *sched, const struct event *event)
{
    struct swork *work = swork_of(sched, event->gang_changed.workload);
    due_drop(sched, &work->has_due, work->due);
    gang_note(sched, work);
    due_work(sched, work);
}

static void note_forgotten(struct sched *sched, const struct event *event)
{
    queue_forget_work(sched, event->removed.id);
}

static void note_untied(struct sched *sched, const struct event *event)
{
    window_untie(sched, swork_of(sched, event->removed.id));
}

static void note_granted(struct sched *sched, const struct event *event)
{
    allocation_add(sched, state_allocation(sched->state, event->allocation_granted.id));
}

static void note_allocation(struct sched *sched, const struct event *event)
{
    allocation_change(sched, &event->allocation_changed);
}

static void note_said(struct sched *sched, const struct event *event)
{
    allocation_note(sched, event->allocation_noted.allocation);
}

static void note_volume(struct sched *sched, const struct event *event)
{
    (void)event;
    sched->all_gained = ++sched->clock;
}

static void note_reservation(struct sched *sched, const struct event *event)
{
    window_note(sched, event->reservation_set.id);
}

static void note_reservation_removed(struct sched *sched, const struct event *event)
{
    window_remove(sched, event->removed.id);
}

static void note_change(struct sched *sched, const struct event *event)
{
    (void)event;
    due_changes(sched);
}

/* The others change nothing that work is placed by. */
static note_fn *const notes[EV_TYPE_COUNT] = {
    [EV_CONTROLLER_STARTED] = note_start,
    [EV_SETTINGS_CHANGED] = note_catalogue,
    [EV_CLASS_SET] = note_catalogue,
    [EV_CLASS_REMOVED] = note_catalogue,
    [EV_PROJECT_SET] = note_project,
    [EV_PROJECT_REMOVED] = note_project_removed,
    [EV_NODE_SET] = note_node,
    [EV_NODE_CONTACT] = note_node,
    [EV_NODE_HOLDS] = note_node,
    [EV_DEVICE_CHANGED] = note_node,
    [EV_NODE_REMOVED] = note_node_removed,
    [EV_WORKLOAD_SUBMITTED] = note_submitted,
    [EV_WORKLOAD_CHANGED] = note_workload,
    [EV_GANG_CHANGED] = note_gang,
    [EV_WORKLOAD_FORGOTTEN] = note_forgotten,
    [EV_WORKLOAD_UNTIED] = note_untied,
    [EV_ALLOCATION_GRANTED] = note_granted,
    [EV_ALLOCATION_CHANGED] = note_allocation,
    [EV_ALLOCATION_NOTED] = note_said,
    [EV_VOLUME_SET] = note_volume,
    [EV_VOLUME_REMOVED] = note_volume,
    [EV_RESERVATION_SET] = note_reservation,
    [EV_RESERVATION_REMOVED] = note_reservation_removed,
    [EV_CHANGE_SET] = note_change,
    [EV_CHANGE_REMOVED] = note_change,
};

static void note_time(struct sched *sched)
{
    queue_promote(sched, sched->state->now);
    sched->takeovers = 0;
    sched->wall_ahead_ns = sched->state->wall.ns - sched->state->now.ns;
}

void sched_note(struct sched *sched, const struct event *event)
{
    note_time(sched);
    if (notes[event->type] != NULL)
        notes[event->type](sched, event);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static bool is_class(const struct sched *sched, int64_t class_number)
{
    return class_number >= 0 && (size_t)class_number < sched->class_count;
}

struct class_use sched_use(const struct sched *sched, const struct project *project,
                           int64_t class_number)
{
    struct class_use out = { 0 };
    if (!is_class(sched, class_number))
        return out;
    const struct suse *use = &sproject_of(sched, project)->uses[class_number];
    out.allocated_milli = use->charged + use->reserved;
    out.borrowed_milli = MAX_OF(use->charged - use->quota, INT64_C(0));
    out.pending_milli = use->pending;
    out.quota_milli = use->quota;
    out.limit_milli = use->limit;
    out.fair_milli = use->fair;
    return out;
}

int64_t sched_quota(const struct sched *sched, const struct project *project, int64_t class_number)
{
    return is_class(sched, class_number) ? sproject_of(sched, project)->uses[class_number].quota
                                         : 0;
}

struct class_capacity sched_capacity(const struct sched *sched, int64_t class_number)
{
    struct class_capacity out = { 0 };
    if (!is_class(sched, class_number))
        return out;
    out.capacity_milli = sched->classes[class_number].capacity_milli;
    out.free_milli = sched->classes[class_number].free_milli;
    return out;
}
