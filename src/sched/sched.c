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

static void note_node(struct sched *sched, struct id id)
{
    struct snode *known = id_map_get(&sched->nodes, id);
    if (known != NULL)
        capacity_change_node(sched, known);
    else
        capacity_add_node(sched, state_node(sched->state, id));
}

static void note_node_removed(struct sched *sched, struct id id)
{
    struct snode *node = id_map_remove(&sched->nodes, id);
    queue_claims_leave_node(sched, node->node);
    capacity_remove_node(sched, node);
}

static void note_project(struct sched *sched, struct id id)
{
    if (id_map_get(&sched->projects, id) == NULL)
        quota_add_project(sched, state_project(sched->state, id));
    quota_refresh(sched);
}

static void note_workload(struct sched *sched, struct id id)
{
    struct swork *work = swork_of(sched, id);
    due_drop(sched, &work->has_due, work->due);
    queue_change_work(sched, work);
    work_refresh(sched, work);
    gang_note(sched, work);
    consolidate_note(sched, work);
    due_work(sched, work);
}

static void note_gang(struct sched *sched, struct id id)
{
    struct swork *work = swork_of(sched, id);
    due_drop(sched, &work->has_due, work->due);
    gang_note(sched, work);
    due_work(sched, work);
}

static void note_time(struct sched *sched)
{
    queue_promote(sched, sched->state->now);
    sched->takeovers = 0;
    sched->wall_ahead_ns = sched->state->wall.ns - sched->state->now.ns;
}

static void note_project_removed(struct sched *sched, struct id id)
{
    quota_remove_project(sched, id);
    quota_refresh(sched);
}

static void note_submitted(struct sched *sched, struct id id)
{
    queue_add_work(sched, state_workload(sched->state, id));
    index_learn(sched);
}

static void note_reservation(struct sched *sched, const struct event *event)
{
    if (event->type == EV_RESERVATION_SET)
        window_note(sched, event->reservation_set.id);
    else
        window_remove(sched, event->removed.id);
}

/* Of the events that change one. */
static struct id node_of(const struct event *event)
{
    return event->type == EV_NODE_SET       ? event->node_set.id
           : event->type == EV_NODE_CONTACT ? event->node_contact.node
           : event->type == EV_NODE_HOLDS   ? event->node_holds.node
                                            : event->device_changed.node;
}

void sched_note(struct sched *sched, const struct event *event)
{
    note_time(sched);
    switch (event->type) {
    case EV_CONTROLLER_STARTED:
        due_restart(sched);
        break;
    case EV_SETTINGS_CHANGED:
    case EV_CLASS_SET:
    case EV_CLASS_REMOVED:
        sched_rebuild(sched);
        break;
    case EV_PROJECT_SET:
        note_project(sched, event->project_set.id);
        break;
    case EV_PROJECT_REMOVED:
        note_project_removed(sched, event->removed.id);
        due_changes(sched);
        break;
    case EV_NODE_SET:
    case EV_NODE_CONTACT:
    case EV_NODE_HOLDS:
    case EV_DEVICE_CHANGED:
        note_node(sched, node_of(event));
        break;
    case EV_NODE_REMOVED:
        note_node_removed(sched, event->removed.id);
        break;
    case EV_WORKLOAD_SUBMITTED:
        note_submitted(sched, event->workload_submitted.id);
        break;
    case EV_WORKLOAD_CHANGED:
        note_workload(sched, event->workload_changed.workload);
        break;
    case EV_GANG_CHANGED:
        note_gang(sched, event->gang_changed.workload);
        break;
    case EV_WORKLOAD_FORGOTTEN:
        queue_forget_work(sched, event->removed.id);
        break;
    case EV_WORKLOAD_UNTIED:
        window_untie(sched, swork_of(sched, event->removed.id));
        break;
    case EV_RESERVATION_SET:
    case EV_RESERVATION_REMOVED:
        note_reservation(sched, event);
        break;
    case EV_CHANGE_SET:
    case EV_CHANGE_REMOVED:
        due_changes(sched);
        break;
    case EV_ALLOCATION_GRANTED:
        allocation_add(sched, state_allocation(sched->state, event->allocation_granted.id));
        break;
    case EV_ALLOCATION_CHANGED:
        allocation_change(sched, &event->allocation_changed);
        break;
    case EV_VOLUME_SET:
    case EV_VOLUME_REMOVED:
        sched->all_gained = ++sched->clock;
        break;
    case EV_NONE:
    case EV_POOL_SET:
    case EV_POOL_REMOVED:
    case EV_PROFILE_SET:
    case EV_PROFILE_REMOVED:
    case EV_TOKEN_SET:
    case EV_TOKEN_REMOVED:
    case EV_IMAGE_SET:
    case EV_IMAGE_REMOVED:
    case EV_CREDENTIAL_SET:
    case EV_CREDENTIAL_REMOVED:
    case EV_UPLOAD_STORED:
    case EV_TYPE_COUNT:
        break;
    }
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
