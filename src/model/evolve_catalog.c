/* Classes, pools and profiles: what the installation offers. Few, so they live in arrays. */
#include <assert.h>
#include <string.h>

#include "model/evolve.h"
#include "model/keep.h"

void evolve_class_set(struct state *state, const struct event *event, enum history from)
{
    struct class_record r = event->class_set;
    struct class_object *class = state_class(state, r.number);
    r.version = version_of(event, from, r.version);
    class_keep(&state->pool, &r);
    if (class == NULL) {
        assert(r.number == (int64_t)state->classes.count && r.number < CLASSES_MAX);
        class = pool_new(&state->pool, sizeof(*class));
        vec_push(&state->classes, class);
    } else {
        assert(id_eq(class->r.id, r.id)); /* numbers are never used again */
        class_drop(&state->pool, &class->r);
    }
    if (from == LIVE)
        r.capacity = class->r.capacity;
    else
        r.capacity.level = 0; /* the nodes follow */
    class->r = r;
    class->is_removed = false;
}

static struct class_object *class_of_id(const struct state *state, struct id id)
{
    for (size_t i = 0; i < state->classes.count; i++) {
        if (id_eq(state->classes.items[i]->r.id, id))
            return state->classes.items[i];
    }
    return NULL;
}

/* The object stays: old allocations and bills go on naming its number. */
void evolve_class_removed(struct state *state, const struct event *event, enum history from)
{
    struct class_object *class = class_of_id(state, event->removed.id);
    assert(class != NULL);
    class->is_removed = true;
    class->r.version = version_of(event, from, class->r.version);
}

void evolve_pool_set(struct state *state, const struct event *event, enum history from)
{
    struct pool_record r = event->pool_set;
    struct pool_object *object = state_pool(state, r.id);
    assert(state_class(state, r.class_number) != NULL);
    r.version = version_of(event, from, r.version);
    str_keep(&state->pool, &r.name);
    if (object == NULL) {
        object = pool_new(&state->pool, sizeof(*object));
        vec_push(&state->pools, object);
    } else {
        str_drop(&state->pool, &object->r.name);
    }
    object->r = r;
}

void evolve_pool_removed(struct state *state, const struct event *event, enum history from)
{
    struct pool_object *object = state_pool(state, event->removed.id);
    (void)from;
    assert(object != NULL);
    assert(object->node_count == 0);
    size_t at = 0;
    while (state->pools.items[at] != object)
        at++;
    memmove(&state->pools.items[at], &state->pools.items[at + 1],
            (state->pools.count - at - 1) * sizeof(state->pools.items[0]));
    state->pools.count--;
    str_drop(&state->pool, &object->r.name);
    pool_free(&state->pool, object, sizeof(*object));
}

/* Index of the profile, or the count when there is none. */
static size_t profile_at(const struct state *state, struct id id)
{
    size_t at = 0;
    while (at < state->profiles.count && !id_eq(state->profiles.items[at]->r.id, id))
        at++;
    return at;
}

void evolve_profile_set(struct state *state, const struct event *event, enum history from)
{
    struct profile_record r = event->profile_set;
    size_t at = profile_at(state, r.id);
    r.version = version_of(event, from, r.version);
    profile_keep(&state->pool, &r);
    if (at == state->profiles.count) {
        struct profile_object *object = pool_new(&state->pool, sizeof(*object));
        vec_push(&state->profiles, object);
    } else {
        profile_drop(&state->pool, &state->profiles.items[at]->r);
    }
    state->profiles.items[at]->r = r;
}

void evolve_profile_removed(struct state *state, const struct event *event, enum history from)
{
    size_t at = profile_at(state, event->removed.id);
    (void)from;
    assert(at < state->profiles.count);
    struct profile_object *object = state->profiles.items[at];
    memmove(&state->profiles.items[at], &state->profiles.items[at + 1],
            (state->profiles.count - at - 1) * sizeof(state->profiles.items[0]));
    state->profiles.count--;
    profile_drop(&state->pool, &object->r);
    pool_free(&state->pool, object, sizeof(*object));
}

bool profile_is_for(const struct profile_record *profile, const struct project *project)
{
    bool is_for = profile->projects.count == 0;
    for (const struct project *p = project; p != NULL && !is_for; p = p->parent)
        is_for = str_list_has(&profile->projects, p->r.path);
    return is_for;
}
