/* Changes of quotas and settings: one list of all, in order of creation, and their steps. What a
 * change does to a project or to the settings is an event of those. */
#include <assert.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"
#include "model/transition.h"

static struct change *change_add(struct state *state, const struct change_record *r)
{
    struct change *change = pool_new(&state->pool, sizeof(*change));
    change->project = id_is_none(r->project) ? NULL : state_project(state, r->project);
    assert(change->project != NULL || id_is_none(r->project));
    LIST_APPEND(state->first_change, state->last_change, change, next, prev);
    id_map_put(&state->changes, r->id, change);
    return change;
}

void evolve_change_set(struct state *state, const struct event *event, enum history from)
{
    struct change_record r = event->change_set;
    struct change *change = state_change(state, r.id);
    r.version = version_of(event, from, r.version);
    if (from == LIVE) {
        const struct change_record *old = change != NULL ? &change->r : NULL;
        bool was_active = old != NULL && old->state == CHG_ACTIVE;
        r.created_sequence = old != NULL ? old->created_sequence : event->sequence;
        r.created = old != NULL ? old->created : event->wall;
        r.ended_at = change_state_is_final(r.state) ? event->at : (struct mono){ 0 };
        if (r.state == CHG_ACTIVE)
            r.active_sequence = was_active ? old->active_sequence : event->sequence;
    }
    change_keep(&state->pool, &r);
    if (change == NULL) {
        assert(from == RESTORED || !change_state_is_final(r.state));
        change = change_add(state, &r);
    } else {
        assert(change->r.state == r.state || change_may_become(change->r.state, r.state));
        change_drop(&state->pool, &change->r);
    }
    change->r = r;
}

static void change_remove(struct state *state, struct change *change)
{
    LIST_REMOVE(state->first_change, state->last_change, change, next, prev);
    (void)id_map_remove(&state->changes, change->r.id);
    change_drop(&state->pool, &change->r);
    pool_free(&state->pool, change, sizeof(*change));
}

void evolve_change_removed(struct state *state, const struct event *event, enum history from)
{
    struct change *change = state_change(state, event->removed.id);
    (void)from;
    assert(change != NULL && change_state_is_final(change->r.state));
    change_remove(state, change);
}

void changes_drop(struct state *state, struct id project)
{
    struct change *next = NULL;
    for (struct change *c = state->first_change; c != NULL; c = next) {
        next = c->next;
        if (id_eq(c->r.project, project))
            change_remove(state, c);
    }
}

/* ---- reading ------------------------------------------------------------------------------- */

struct change *state_change(const struct state *state, struct id id)
{
    return id_map_get(&state->changes, id);
}

struct change *state_change_by_name(const struct state *state, struct str name)
{
    struct change *found = NULL;
    for (struct change *c = state->last_change; c != NULL && name.size > 0; c = c->prev) {
        if (!str_eq(c->r.name, name))
            continue;
        if (!change_state_is_final(c->r.state))
            return c;
        found = found != NULL ? found : c;
    }
    return found;
}

struct calendar change_calendar(const struct change_record *r)
{
    struct calendar calendar = { .start = { r->start_s },
                                 .end = { r->end_s },
                                 .repeat = r->repeat,
                                 .interval = r->interval,
                                 .until = { r->until_s } };
    enum err rc = zone_parse(r->zone_rule, &calendar.zone, NULL);
    assert(rc == ERR_OK);
    (void)rc;
    return calendar;
}
