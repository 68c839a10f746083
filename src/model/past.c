/* past.c - how much projects used of each class lately, and how much there was to use. */
#include <assert.h>
#include <string.h>

#include "base/wide.h"
#include "model/evolve.h"
#include "model/keep.h"

static void change(struct state *state, struct decay *decay, int64_t milli, enum history from)
{
    /* A snapshot says the average as of its own time, at which the level was what is there now. */
    if (from == LIVE)
        decay_to(decay, state->now, state->settings.history_half_life_s);
    decay->level += milli;
    assert(decay->level >= 0);
}

/* ---- capacity ------------------------------------------------------------------------------ */

static void add(struct state *state, int64_t class_number, int64_t milli, enum history from)
{
    struct class_object *class = state_class(state, class_number);
    if (class != NULL && milli != 0)
        change(state, &class->r.capacity, milli, from);
}

static void note(struct state *state, const struct node *node, int64_t sign, enum history from)
{
    const struct device_list *devices = &node->r.devices;
    if (!node_is_usable(node))
        return;
    add(state, node->r.cpu_class_number, sign * node->r.cpu_milli, from);
    for (size_t i = 0; i < devices->count; i++) {
        if (device_is_usable(&devices->items[i]))
            add(state, devices->items[i].class_number, sign * 1000, from);
    }
}

void past_note_node(struct state *state, const struct event *event, enum history from,
                    enum moment moment)
{
    struct id id = event->type == EV_NODE_SET         ? event->node_set.id
                   : event->type == EV_NODE_CONTACT   ? event->node_contact.node
                   : event->type == EV_NODE_HOLDS     ? event->node_holds.node
                   : event->type == EV_DEVICE_CHANGED ? event->device_changed.node
                   : event->type == EV_NODE_REMOVED   ? event->removed.id
                                                      : (struct id){ 0 };
    const struct node *node = id_is_none(id) ? NULL : state_node(state, id);
    if (node != NULL)
        note(state, node, moment == BEFORE ? -1 : 1, from);
}

/* ---- use ----------------------------------------------------------------------------------- */

static struct past_use *find(const struct past_list *list, int64_t class_number)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].class_number == class_number)
            return &list->items[i];
    }
    return NULL;
}

/* Rows are in the order in which the project first used the classes. */
static struct past_use *row(struct state *state, struct past_list *list, int64_t class_number)
{
    struct past_use *found = find(list, class_number);
    if (found != NULL)
        return found;
    size_t size = list->count * sizeof(*list->items);
    struct past_use *items = pool_new(&state->pool, size + sizeof(*items));
    if (size > 0)
        memcpy(items, list->items, size);
    pool_free(&state->pool, list->items, size);
    list->items = items;
    items[list->count] =
        (struct past_use){ .class_number = class_number, .decay = { .as_of = state->now } };
    return &items[list->count++];
}

void past_note_use(struct state *state, struct project *project, int64_t class_number,
                   int64_t milli, enum history from)
{
    for (struct project *p = project; p != NULL; p = p->parent)
        change(state, &row(state, &p->r.past, class_number)->decay, milli, from);
}

static bool is_gone(const struct state *state, const struct decay *decay)
{
    int64_t half_life_s = state->settings.history_half_life_s;
    return decay->level == 0 && decay_at(decay, state->now, half_life_s) == 0;
}

const struct user_past *project_user_past(const struct project *project, struct str user)
{
    for (size_t i = 0; i < project->r.users.count; i++) {
        if (str_eq(project->r.users.items[i].user, user))
            return &project->r.users.items[i];
    }
    return NULL;
}

/* A row more; those of which nothing is left make room: so there are never more than people. */
static struct user_past *user_add(struct state *state, struct user_past_list *list, struct str user,
                                  enum history from)
{
    size_t most = (list->count + 1) * sizeof(*list->items);
    struct user_past_list kept = { .items = pool_new(&state->pool, most) };
    for (size_t i = 0; i < list->count; i++) {
        struct user_past *one = &list->items[i];
        if (from == RESTORED || !is_gone(state, &one->devices) || !is_gone(state, &one->cores))
            kept.items[kept.count++] = *one;
        else
            str_drop(&state->pool, &one->user);
    }
    struct user_past *added = &kept.items[kept.count++];
    *added = (struct user_past){ .user = user,
                                 .devices = { .as_of = state->now },
                                 .cores = { .as_of = state->now } };
    str_keep(&state->pool, &added->user);
    pool_free(&state->pool, list->items, list->count * sizeof(*list->items));
    list->count = kept.count;
    list->items = pool_new(&state->pool, kept.count * sizeof(*kept.items));
    memcpy(list->items, kept.items, kept.count * sizeof(*kept.items));
    pool_free(&state->pool, kept.items, most);
    return &list->items[list->count - 1];
}

void past_note_user(struct state *state, const struct allocation *allocation, int64_t milli,
                    enum history from)
{
    struct project *project = allocation->workload->project;
    struct str user = allocation->workload->r.user;
    const struct class_object *class = state_class(state, allocation->r.class_number);
    const struct user_past *found = project_user_past(project, user);
    struct user_past *theirs = found == NULL
                                   ? user_add(state, &project->r.users, user, from)
                                   : &project->r.users.items[found - project->r.users.items];
    bool is_cores = class != NULL && class->r.kind == CLASS_CPU;
    change(state, is_cores ? &theirs->cores : &theirs->devices, milli, from);
}

void past_bring_to_now(struct state *state)
{
    int64_t half_life_s = state->settings.history_half_life_s;
    for (size_t i = 0; i < state->classes.count; i++)
        decay_to(&state->classes.items[i]->r.capacity, state->now, half_life_s);
    for (struct project *p = state->first_tenant; p != NULL; p = project_next(p)) {
        for (size_t i = 0; i < p->r.past.count; i++)
            decay_to(&p->r.past.items[i].decay, state->now, half_life_s);
        for (size_t i = 0; i < p->r.users.count; i++) {
            decay_to(&p->r.users.items[i].devices, state->now, half_life_s);
            decay_to(&p->r.users.items[i].cores, state->now, half_life_s);
        }
    }
}

int64_t project_past_ppm(const struct state *state, const struct project *project,
                         int64_t class_number, struct mono at)
{
    int64_t half_life_s = state->settings.history_half_life_s;
    const struct past_use *used = find(&project->r.past, class_number);
    const struct class_object *class = state_class(state, class_number);
    int64_t there = class != NULL ? decay_at(&class->r.capacity, at, half_life_s) : 0;
    if (used == NULL || there <= 0)
        return 0;
    return (int64_t)((wide)decay_at(&used->decay, at, half_life_s) * 1000000 / there);
}
