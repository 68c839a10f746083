/* Nodes and their devices. */
#include <assert.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"

static void texts_keep(struct pool *pool, struct node_record *r)
{
    str_keep(pool, &r->boot_id);
    str_keep(pool, &r->agent_version);
    str_keep(pool, &r->kernel);
    str_keep(pool, &r->driver);
    str_keep(pool, &r->runtime);
    str_keep(pool, &r->problems);
    str_keep(pool, &r->rack);
    str_keep(pool, &r->block);
}

static void texts_drop(struct pool *pool, struct node_record *r)
{
    str_drop(pool, &r->boot_id);
    str_drop(pool, &r->agent_version);
    str_drop(pool, &r->kernel);
    str_drop(pool, &r->driver);
    str_drop(pool, &r->runtime);
    str_drop(pool, &r->problems);
    str_drop(pool, &r->rack);
    str_drop(pool, &r->block);
}

static void node_join(struct state *state, const struct event *event, enum history from)
{
    struct node *node = pool_new(&state->pool, sizeof(*node));
    node->r = event->node_set;
    if (from == LIVE) {
        node->r.created_sequence = event->sequence;
        node->r.contact_since = event->wall;
        node->r.version = event->sequence;
    }
    str_keep(&state->pool, &node->r.name);
    texts_keep(&state->pool, &node->r);
    devices_keep(&state->pool, &node->r.devices);
    holds_keep(&state->pool, &node->r.holds);
    node->pool = state_pool(state, node->r.pool);
    assert(node->pool != NULL);
    assert(state_node_by_name(state, node->r.name) == NULL);

    node->pool->node_count++;
    LIST_APPEND(state->first_node, state->last_node, node, next, prev);
    state->node_count++;
    id_map_put(&state->nodes, node->r.id, node);
    str_map_put(&state->node_names, node->r.name, node);
}

static void node_move(struct state *state, struct node *node, struct id pool)
{
    struct pool_object *to = state_pool(state, pool);
    assert(to != NULL);
    node->pool->node_count--;
    node->pool = to;
    node->pool->node_count++;
}

static void node_update(struct state *state, struct node *node, const struct event *event)
{
    struct node_record r = event->node_set;
    assert(str_eq(node->r.name, r.name));
    if (!id_eq(node->r.pool, r.pool))
        node_move(state, node, r.pool);

    texts_keep(&state->pool, &r);
    devices_keep(&state->pool, &r.devices);
    holds_keep(&state->pool, &r.holds);
    texts_drop(&state->pool, &node->r);
    devices_drop(&state->pool, &node->r.devices);
    holds_drop(&state->pool, &node->r.holds);

    r.name = node->r.name; /* the key in the map */
    r.contact_since = r.contact == node->r.contact ? node->r.contact_since : event->wall;
    r.generation = MAX_OF(r.generation, node->r.generation);
    r.created_sequence = node->r.created_sequence;
    r.version = event->sequence;
    node->r = r;
}

void evolve_node_set(struct state *state, const struct event *event, enum history from)
{
    struct node *node = state_node(state, event->node_set.id);
    if (node == NULL)
        node_join(state, event, from);
    else
        node_update(state, node, event);
}

void evolve_node_contact(struct state *state, const struct event *event, enum history from)
{
    const struct node_contact_event *given = &event->node_contact;
    struct node *node = state_node(state, given->node);
    (void)from;
    assert(node != NULL);
    if (node->r.contact != given->contact)
        node->r.contact_since = event->wall;
    node->r.contact = given->contact;
    if (given->boot_id.size > 0) {
        struct str boot_id = given->boot_id;
        str_keep(&state->pool, &boot_id);
        str_drop(&state->pool, &node->r.boot_id);
        node->r.boot_id = boot_id;
    }
    node->r.version = event->sequence;
}

void evolve_node_holds(struct state *state, const struct event *event, enum history from)
{
    struct node *node = state_node(state, event->node_holds.node);
    (void)from;
    assert(node != NULL);
    struct hold_list holds = event->node_holds.holds;
    holds_keep(&state->pool, &holds);
    holds_drop(&state->pool, &node->r.holds);
    node->r.holds = holds;
    node->r.drain_deadline = event->node_holds.drain_deadline;
    node->r.version = event->sequence;
}

void evolve_node_removed(struct state *state, const struct event *event, enum history from)
{
    struct node *node = state_node(state, event->removed.id);
    (void)from;
    assert(node != NULL);
    assert(node->first_allocation == NULL);

    node->pool->node_count--;
    LIST_REMOVE(state->first_node, state->last_node, node, next, prev);
    state->node_count--;
    (void)id_map_remove(&state->nodes, node->r.id);
    (void)str_map_remove(&state->node_names, node->r.name);
    str_drop(&state->pool, &node->r.name);
    texts_drop(&state->pool, &node->r);
    devices_drop(&state->pool, &node->r.devices);
    holds_drop(&state->pool, &node->r.holds);
    pool_free(&state->pool, node, sizeof(*node));
}

static struct device_record *device_at(struct node *node, int64_t index)
{
    for (size_t i = 0; i < node->r.devices.count; i++) {
        if (node->r.devices.items[i].index == index)
            return &node->r.devices.items[i];
    }
    return NULL;
}

void evolve_device_changed(struct state *state, const struct event *event, enum history from)
{
    const struct device_changed *given = &event->device_changed;
    struct node *node = state_node(state, given->node);
    (void)from;
    assert(node != NULL);
    struct device_record *device = device_at(node, given->index);
    assert(device != NULL);
    struct str reason = given->reason;
    str_keep(&state->pool, &reason);
    str_drop(&state->pool, &device->hold_reason);
    device->hold_reason = reason;
    device->health = given->health;
    device->is_held = given->is_held;
    node->r.version = event->sequence;
}
