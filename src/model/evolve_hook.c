/* Hooks: where it is told what becomes of work. */
#include <assert.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"

void evolve_hook_set(struct state *state, const struct event *event, enum history from)
{
    struct hook_record r = event->hook_set;
    struct hook *hook = state_hook(state, r.id);
    r.version = version_of(event, from, r.version);
    hook_keep(&state->pool, &r);
    if (hook == NULL) {
        if (from == LIVE) {
            r.created_sequence = event->sequence;
            r.created = event->wall;
        }
        hook = pool_new(&state->pool, sizeof(*hook));
        LIST_APPEND(state->first_hook, state->last_hook, hook, next, prev);
        id_map_put(&state->hooks, r.id, hook);
    } else {
        assert(id_eq(hook->r.tenant, r.tenant));
        r.created_sequence = hook->r.created_sequence;
        r.created = hook->r.created;
        hook_drop(&state->pool, &hook->r);
    }
    hook->r = r;
}

static void hook_remove(struct state *state, struct hook *hook)
{
    LIST_REMOVE(state->first_hook, state->last_hook, hook, next, prev);
    (void)id_map_remove(&state->hooks, hook->r.id);
    hook_drop(&state->pool, &hook->r);
    pool_free(&state->pool, hook, sizeof(*hook));
}

void evolve_hook_removed(struct state *state, const struct event *event, enum history from)
{
    struct hook *hook = state_hook(state, event->removed.id);
    (void)from;
    assert(hook != NULL);
    hook_remove(state, hook);
}

void evolve_hook_tested(struct state *state, const struct event *event, enum history from)
{
    (void)from;
    assert(state_hook(state, event->removed.id) != NULL);
}

void hooks_drop(struct state *state, struct id project)
{
    struct hook *after = NULL;
    for (struct hook *hook = state->first_hook; hook != NULL; hook = after) {
        after = hook->next;
        if (id_eq(hook->r.project, project) || id_eq(hook->r.tenant, project))
            hook_remove(state, hook);
    }
}
