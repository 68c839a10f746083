/*
 * capacity.c - what nodes and devices have left.
 *
 * Every change of a node is: take its contribution out of the sums of its classes, change it, put
 * it in again. A node has at most a few dozen devices, so that costs little and cannot drift.
 */
#include <assert.h>
#include <string.h>

#include "sched/internal.h"

struct snode *snode_of(const struct sched *sched, const struct node *node)
{
    return id_map_get(&sched->nodes, node->r.id);
}

struct spart *snode_part(struct snode *node, int64_t class_number)
{
    for (size_t i = 0; i < node->part_count; i++) {
        if (node->parts[i].class_number == class_number)
            return &node->parts[i];
    }
    return NULL;
}

struct sdevice *snode_device(struct snode *node, int64_t index)
{
    for (size_t i = 0; i < node->device_count; i++) {
        if (node->devices[i].index == index)
            return &node->devices[i];
    }
    return NULL;
}

/* ---- sums of a class ----------------------------------------------------------------------- */

int64_t device_open_milli(const struct sdevice *device)
{
    if (!device->is_usable || device->whole > 0)
        return 0;
    if (device->is_partitioned) {
        int64_t used = 0;
        for (size_t i = 0; i < MIG_MEMORY_SLICES; i++)
            used += device->slices[i] > 0;
        return 1000 - used * 1000 / MIG_MEMORY_SLICES;
    }
    return MAX_OF(1000 - device->milli, INT64_C(0));
}

/* Adds (sign 1) or takes out (sign -1) what a usable node contributes. */
static void node_count_in(struct sched *sched, struct snode *node, int sign)
{
    if (!node->is_usable)
        return;
    struct sclass *cores = &sched->classes[node->cpu_class];
    touch(sched, cores, offsetof(struct sclass, nodes_by_free));
    cores->capacity_milli += sign * node->cpu_milli;
    cores->free_milli += sign * MAX_OF(node->cpu_free, INT64_C(0));
    cores->is_fair = cores->is_fair && sched->is_shadow;
    cores->promise.is_fresh = cores->promise.is_fresh && sched->is_shadow;
    for (size_t i = 0; i < node->part_count; i++) {
        const struct spart *part = &node->parts[i];
        struct sclass *class = &sched->classes[part->class_number];
        size_t *nodes = &class->nodes_by_free[part->free_devices];
        touch(sched, nodes, sizeof(*nodes));
        *nodes = sign > 0 ? *nodes + 1 : *nodes - 1;
    }
    for (size_t i = 0; i < node->device_count; i++) {
        const struct sdevice *device = &node->devices[i];
        struct sclass *class = &sched->classes[device->class_number];
        if (!device->is_usable)
            continue;
        touch(sched, class, offsetof(struct sclass, nodes_by_free));
        class->capacity_milli += sign * 1000;
        class->free_milli += sign * device_open_milli(device);
        class->is_fair = class->is_fair && sched->is_shadow;
        class->promise.is_fresh = class->promise.is_fresh && sched->is_shadow;
    }
}

static void parts_refresh(struct snode *node)
{
    for (size_t i = 0; i < node->part_count; i++) {
        node->parts[i].free_devices = 0;
        node->parts[i].open_milli = 0;
    }
    for (size_t i = 0; i < node->device_count; i++) {
        const struct sdevice *device = &node->devices[i];
        struct spart *part = snode_part(node, device->class_number);
        int64_t open = device_open_milli(device);
        if (part == NULL)
            continue;
        part->free_devices += device->is_usable && device->whole == 0 && device->sharers == 0;
        part->open_milli = MAX_OF(part->open_milli, open);
    }
}

void capacity_gained(struct sched *sched, const struct snode *node)
{
    sched->clock++;
    sched->classes[node->cpu_class].gained = sched->clock;
    for (size_t i = 0; i < node->part_count; i++)
        sched->classes[node->parts[i].class_number].gained = sched->clock;
}

/* ---- bookings ------------------------------------------------------------------------------ */

static void device_book(struct sdevice *device, const struct device_share *share,
                        const struct project *tenant)
{
    device->milli += share->milli;
    device->mib += share->memory_mib;
    if (share->milli >= 1000) {
        device->whole++;
        return;
    }
    device->sharers++;
    slices_book(device, share, 1);
    if (device->is_isolated)
        return;
    if (device->tenant != NULL && device->tenant != tenant)
        device->is_mixed = true;
    device->tenant = tenant;
}

static void device_unbook(struct sdevice *device, const struct device_share *share)
{
    device->milli -= share->milli;
    device->mib -= share->memory_mib;
    if (share->milli >= 1000) {
        assert(device->whole > 0);
        device->whole--;
        return;
    }
    assert(device->sharers > 0);
    device->sharers--;
    slices_book(device, share, -1);
    if (device->sharers > 0)
        return;
    device->tenant = NULL;
    device->is_mixed = false;
}

static void book(struct sched *sched, const struct booking *booking, int sign)
{
    struct snode *node = booking->node;
    node_count_in(sched, node, -1);
    touch(sched, node, sizeof(*node));
    node->cpu_free -= sign * booking->cpu_milli;
    node->memory_free -= sign * booking->memory_mib;
    node->slots_free -= sign;
    for (size_t i = 0; i < booking->shares->count; i++) {
        const struct device_share *share = &booking->shares->items[i];
        struct sdevice *device = snode_device(node, share->device);
        if (device == NULL)
            continue; /* taken out of the machine meanwhile */
        touch(sched, device, sizeof(*device));
        if (sign > 0)
            device_book(device, share, booking->tenant);
        else
            device_unbook(device, share);
    }
    parts_refresh(node);
    node_count_in(sched, node, 1);
    index_note(sched, node);
}

void capacity_book(struct sched *sched, const struct booking *booking)
{
    book(sched, booking, 1);
}

void capacity_unbook(struct sched *sched, const struct booking *booking)
{
    book(sched, booking, -1);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void devices_load(const struct sched *sched, struct snode *node)
{
    const struct device_list *list = &node->node->r.devices;
    node->devices = mem_new(list->count, sizeof(*node->devices));
    node->device_count = list->count;
    node->part_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct device_record *r = &list->items[i];
        const struct class_object *class = state_class(sched->state, r->class_number);
        bool is_partitioned = mig_table_of(&class->r) != NULL;
        node->devices[i] = (struct sdevice){
            .index = r->index,
            .class_number = r->class_number,
            .usable_mib = is_partitioned ? r->memory_mib : usable_mib(sched->state, r->memory_mib),
            .is_isolated = class->r.slicing == SLICING_MIG,
            .is_partitioned = is_partitioned,
            .is_usable = device_is_usable(r),
        };
        if (snode_part(node, r->class_number) != NULL)
            continue;
        if (node->part_count < NODE_PARTS_MAX)
            node->parts[node->part_count++].class_number = r->class_number;
        else
            node->devices[i].is_usable = false;
    }
}

/* Takes over the facts of the node, and books what is held on it again. */
static void node_load(struct sched *sched, struct snode *node)
{
    const struct node_record *r = &node->node->r;
    mem_free(node->devices);
    devices_load(sched, node);
    node->is_usable = node_is_usable(node->node);
    node->is_in_contact = r->contact == CONTACT_OK;
    node->cpu_class = r->cpu_class_number;
    node->cpu_milli = r->cpu_milli;
    node->memory_mib = r->memory_mib;
    node->cpu_free = r->cpu_milli;
    node->slots_free = NODE_MEMBERS_MAX;
    node->memory_free = r->memory_mib;
    parts_refresh(node);
    node_count_in(sched, node, 1);
    domain_enter(sched, node);
    index_add_node(sched, node);
    for (const struct sallocation *a = node->allocations; a != NULL; a = a->next_on_node) {
        const struct booking booking = { node, &a->shares, a->cpu_milli, a->memory_mib,
                                         a->project->project->tenant };
        capacity_book(sched, &booking);
    }
    due_node(sched, node);
}

void capacity_add_node(struct sched *sched, struct node *node)
{
    struct snode *added = pool_new(&sched->pool, sizeof(*added));
    added->node = node;
    added->seen_at = sched->state->now;
    added->prev = sched->last_node;
    if (added->prev != NULL)
        added->prev->next = added;
    else
        sched->first_node = added;
    sched->last_node = added;
    id_map_put(&sched->nodes, node->r.id, added);
    node_load(sched, added);
    capacity_gained(sched, added);
}

void capacity_change_node(struct sched *sched, struct snode *node)
{
    bool was_in_contact = node->is_in_contact;
    node_count_in(sched, node, -1);
    node_load(sched, node);
    if (node->is_in_contact && !was_in_contact)
        node->seen_at = sched->state->now;
    for (struct sallocation *a = node->allocations; a != NULL; a = a->next_on_node)
        due_allocation(sched, a);
    capacity_gained(sched, node);
}

void capacity_remove_node(struct sched *sched, struct snode *node)
{
    assert(node->allocations == NULL);
    node_count_in(sched, node, -1);
    index_remove_node(sched, node);
    domain_leave(sched, node);
    due_drop(sched, &node->has_due, node->due);
    if (node->prev != NULL)
        node->prev->next = node->next;
    else
        sched->first_node = node->next;
    if (node->next != NULL)
        node->next->prev = node->prev;
    else
        sched->last_node = node->prev;
    mem_free(node->devices);
    pool_free(&sched->pool, node, sizeof(*node));
}
