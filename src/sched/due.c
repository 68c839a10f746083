/*
 * due.c - deadlines of what is under way.
 *
 * Nothing on a node is due while it is out of contact, nor for lost_after_s after it is back or the
 * controller started: what happened there meanwhile has time to be reported first. A controller
 * that was away for an hour must not stop work that started well.
 */
#include "sched/internal.h"

static const struct mono never = { INT64_MAX };

void due_drop(struct sched *sched, bool *has_due, struct skip_key key)
{
    if (*has_due)
        skip_remove(&sched->due, &sched->pool, key);
    *has_due = false;
}

static void due_set(struct sched *sched, struct skip_key key, void *item)
{
    skip_insert(&sched->due, &sched->pool, key, item);
}

static struct mono allocation_deadline(const struct sched *sched, const struct sallocation *a)
{
    const struct settings_record *settings = &sched->state->settings;
    if (!a->node->is_in_contact)
        return never;
    struct mono at = never;
    if (a->state == AL_STARTING)
        at = mono_add_s(a->allocation->r.granted, settings->start_timeout_s);
    else if (a->state == AL_STOPPING)
        at = mono_add_s(a->allocation->r.stopping,
                        grace_of(&a->allocation->r) + settings->kill_confirm_s);
    else if (a->state == AL_CLEANING)
        at = mono_add_s(a->allocation->r.gone, settings->kill_confirm_s);
    struct mono reported = mono_add_s(a->node->seen_at, settings->lost_after_s);
    return mono_before(at, reported) ? reported : at;
}

void due_allocation(struct sched *sched, struct sallocation *a)
{
    due_drop(sched, &a->has_due, a->due);
    struct mono at = allocation_deadline(sched, a);
    if (at.ns == never.ns)
        return;
    enum due_kind kind = a->state == AL_STARTING ? DUE_START : DUE_STOP;
    a->due = (struct skip_key){ at.ns, kind, a->order };
    a->has_due = true;
    due_set(sched, a->due, a);
}

void due_node(struct sched *sched, struct snode *node)
{
    const struct node_record *r = &node->node->r;
    due_drop(sched, &node->has_due, node->due);
    if (r->drain_deadline.ns == 0 || node->live == 0)
        return;
    node->due = (struct skip_key){ r->drain_deadline.ns, DUE_DRAIN, r->created_sequence };
    node->has_due = true;
    due_set(sched, node->due, node);
}

static void due_forget(struct sched *sched, struct swork *work)
{
    const struct workload *w = work->workload;
    if (work->has_due)
        skip_remove(&sched->forgettable, &sched->pool, work->due);
    work->has_due = work->first == NULL && !sched_is_awaited(sched, w);
    if (!work->has_due)
        return;
    struct mono at = mono_add_s(w->ended_at, sched->state->settings.ended_keep_s);
    work->due = (struct skip_key){ at.ns, DUE_FORGET, w->r.submitted_sequence };
    skip_insert(&sched->forgettable, &sched->pool, work->due, work);
}

void due_work(struct sched *sched, struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    if (work->where == WORK_ENDED) {
        due_forget(sched, work);
        return;
    }
    due_drop(sched, &work->has_due, work->due);
    bool has_limit = r->state == WL_RUNNING && r->time_limit_s != 0;
    struct mono stale = gang_stale_at(sched, work);
    if (!has_limit && r->state != WL_PROVISIONING && stale.ns == never.ns)
        return;
    int64_t within_s = has_limit ? r->time_limit_s : sched->state->settings.start_timeout_s;
    enum due_kind kind = has_limit ? DUE_TIME_LIMIT : DUE_PROVISION;
    struct mono at = mono_add_s(r->state_since, within_s);
    if (stale.ns != never.ns && (!has_limit || mono_before(stale, at))) {
        kind = DUE_GANG;
        at = stale;
    }
    work->due = (struct skip_key){ at.ns, kind, r->submitted_sequence };
    work->has_due = true;
    due_set(sched, work->due, work);
}

void due_restart(struct sched *sched)
{
    for (struct snode *node = sched->first_node; node != NULL; node = node->next) {
        node->seen_at = sched->state->now;
        for (struct sallocation *a = node->allocations; a != NULL; a = a->next_on_node)
            due_allocation(sched, a);
    }
}

/* When a change begins or ends; INT64_MAX: by time alone it never does. */
static struct wall change_at(const struct change *change)
{
    const struct change_record *r = &change->r;
    const struct wall never_at = { INT64_MAX };
    if (r->state == CHG_SCHEDULED)
        return r->window_start;
    return r->state == CHG_ACTIVE && r->end_s != 0 ? r->window_end : never_at;
}

/* What ends at an instant ends before something begins then. */
static bool is_before(const struct change *a, const struct change *b)
{
    int64_t left = change_at(a).ns;
    int64_t right = change_at(b).ns;
    if (left != right)
        return left < right;
    return a->r.state == CHG_ACTIVE && b->r.state == CHG_SCHEDULED;
}

void due_changes(struct sched *sched)
{
    sched->next_change = NULL;
    sched->old_change = NULL;
    for (const struct change *c = sched->state->first_change; c != NULL; c = c->next) {
        if (change_state_is_final(c->r.state)) {
            if (sched->old_change == NULL ||
                mono_before(c->r.ended_at, sched->old_change->r.ended_at))
                sched->old_change = c;
        } else if (change_at(c).ns != INT64_MAX &&
                   (sched->next_change == NULL || is_before(c, sched->next_change))) {
            sched->next_change = c;
        }
    }
}

static struct mono next_change_at(const struct sched *sched)
{
    if (sched->next_change == NULL)
        return never;
    return (struct mono){ change_at(sched->next_change).ns - sched->wall_ahead_ns };
}

static struct mono old_change_at(const struct sched *sched)
{
    if (sched->old_change == NULL)
        return never;
    return mono_add_s(sched->old_change->r.ended_at, sched->state->settings.ended_keep_s);
}

/* One at a time: what it does has to be known when the next is decided. */
static size_t change_due(const struct sched *sched, struct mono now, struct due *out, size_t max)
{
    const struct change *change = NULL;
    if (!mono_before(now, next_change_at(sched)))
        change = sched->next_change;
    else if (!mono_before(now, old_change_at(sched)))
        change = sched->old_change;
    if (change == NULL || max == 0)
        return 0;
    *out = (struct due){ .kind = DUE_CHANGE, .change = change };
    return 1;
}

/* ---- asking -------------------------------------------------------------------------------- */

static struct due due_of(const struct skip_node *entry)
{
    struct due due = { .kind = (enum due_kind)entry->key.minor };
    switch (due.kind) {
    case DUE_START:
    case DUE_STOP:
        due.allocation = ((struct sallocation *)entry->item)->allocation;
        break;
    case DUE_GANG:
    case DUE_TIME_LIMIT:
    case DUE_PROVISION:
    case DUE_FORGET:
        due.workload = ((struct swork *)entry->item)->workload;
        break;
    case DUE_RESERVATION: /* kept elsewhere */
    case DUE_CHANGE:
        break;
    case DUE_DRAIN:
        due.node = ((struct snode *)entry->item)->node;
        break;
    }
    return due;
}

/* How many have ended beyond what may stay in memory. */
static size_t too_many(const struct sched *sched)
{
    size_t keep = (size_t)sched->state->settings.ended_keep_count;
    return sched->forgettable.count > keep ? sched->forgettable.count - keep : 0;
}

size_t sched_due(const struct sched *sched, struct mono now, struct due *out, size_t max)
{
    size_t count = 0;
    for (const struct skip_node *n = skip_first(&sched->due);
         n != NULL && n->key.major <= now.ns && count < max; n = skip_next(n))
        out[count++] = due_of(n);
    count += window_due(sched, now, out + count, max - count);
    count += change_due(sched, now, out + count, max - count);
    size_t beyond = too_many(sched);
    size_t forgotten = 0;
    for (const struct skip_node *n = skip_first(&sched->forgettable);
         n != NULL && count < max && (n->key.major <= now.ns || forgotten < beyond);
         n = skip_next(n)) {
        out[count++] = due_of(n);
        forgotten++;
    }
    return count;
}

struct mono sched_next_due(const struct sched *sched)
{
    struct mono at = never;
    const struct skip_node *first = skip_first(&sched->due);
    const struct skip_node *ended = skip_first(&sched->forgettable);
    if (first != NULL)
        at.ns = first->key.major;
    if (ended != NULL)
        at.ns = MIN_OF(at.ns, ended->key.major);
    at.ns = MIN_OF(at.ns, window_next_due(sched).ns);
    at.ns = MIN_OF(at.ns, MIN_OF(next_change_at(sched).ns, old_change_at(sched).ns));
    return too_many(sched) > 0 ? sched->state->now : at;
}
