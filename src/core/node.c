/*
 * node.c - nodes: joining, what they are made of, and what operators do to them. What happens to
 * the work on a node that is lost or back is contact.c; what it reports to run is observed.c.
 */
#include <string.h>

#include "core/lifecycle.h"

static const struct id no_tenant;

/* Where a node is until its inventory tells of which class it is. */
static const struct str joining_pool = { "joining", 7 };

enum err find_node(const struct decision *d, struct node **out, struct error *e)
{
    const struct target *target = &d->command->target;
    struct node *node = state_node(d->state, target->id);
    if (node == NULL && target->name.size > 0)
        node = state_node_by_name(d->state, target->name);
    char text[ID_TEXT_MAX];
    struct str name = target->name;
    if (name.size == 0)
        name = str_of(id_text(ID_NODE, target->id, text));
    if (node == NULL)
        return not_found(e, "node", name);
    *out = node;
    return ERR_OK;
}

enum err find_own_node(const struct decision *d, struct id id, struct node **out, struct error *e)
{
    struct node *node = state_node(d->state, id);
    char text[ID_TEXT_MAX];
    bool is_own = d->actor.role != ROLE_NODE || id_eq(d->actor.node, id);
    if (node == NULL || !is_own)
        return not_found(e, "node", str_of(id_text(ID_NODE, id, text)));
    *out = node;
    return ERR_OK;
}

/* ---- joining ------------------------------------------------------------------------------- */

static const struct token *join_token(const struct decision *d, const struct digest *secret)
{
    const struct token *token = d->state->first_token;
    while (token != NULL && (token->r.role != ROLE_NODE_JOIN ||
                             memcmp(&token->r.secret, secret, sizeof(*secret)) != 0))
        token = token->next;
    if (token == NULL || token->r.is_revoked)
        return NULL;
    bool is_expired = token->r.expires.ns != 0 && token->r.expires.ns <= d->wall.ns;
    return is_expired ? NULL : token;
}

/* Makes the pool for joining nodes where it is missing; every pool is of some class. */
static struct id pool_for_joining(struct decision *d)
{
    const struct pool_object *pool = state_pool_by_name(d->state, joining_pool);
    if (pool != NULL)
        return pool->r.id;
    if (d->state->classes.count == 0) {
        struct class_record *class = &decide_add(d, EV_CLASS_SET, no_tenant)->class_set;
        class->id = decide_id(d, 1);
        class->name = STR("cpu");
        class->kind = CLASS_CPU;
    }
    struct pool_record *made = &decide_add(d, EV_POOL_SET, no_tenant)->pool_set;
    *made = (struct pool_record){ .id = decide_id(d, 2), .name = joining_pool };
    return made->id;
}

static struct wall certified_last(const struct node_record *r)
{
    return (struct wall){ MAX_OF(r->certified.ns, r->next_certified.ns) };
}

/* Of two certificates of a node the newer is known by its time, also when our clock was
 * set back. */
static struct wall certified_now(const struct decision *d, const struct node_record *r)
{
    int64_t now_ns = d->wall.ns - d->wall.ns % NS_PER_S;
    return (struct wall){ MAX_OF(now_ns, certified_last(r).ns + NS_PER_S) };
}

/* A token lets a new machine in, or a known one that was set up anew while it was away. */
enum err decide_node_join(struct decision *d, struct error *e)
{
    const struct node_join *join = &d->command->node_join;
    enum err rc = check_name(join->name, "name", e);
    if (rc != ERR_OK)
        return rc;
    const struct token *token = join_token(d, &join->join_secret);
    if (token == NULL)
        return err_cause(e, ERR_UNAUTHENTICATED, CAUSE_UNAUTHENTICATED,
                         "the join token is unknown, used or expired; create another one");
    const struct node *known = state_node_by_name(d->state, join->name);
    if (known != NULL && known->r.contact == CONTACT_OK)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT,
                         "a node called %.*s is in contact; remove it first, or use another name",
                         STR_ARG(join->name));

    struct node_record next = { .id = d->command->new_id, .name = join->name };
    const struct pool_object *pool = state_pool_by_name(d->state, token->r.pool);
    if (known != NULL) {
        next = known->r;
        next.agent_version = (struct str){ 0 }; /* another machine, perhaps: see node_is_usable */
    }
    if (pool != NULL)
        next.pool = pool->r.id;
    else if (known == NULL)
        next.pool = pool_for_joining(d);
    next.certified = certified_now(d, &next);
    next.fingerprint = join->fingerprint;
    next.next_fingerprint = (struct digest){ { 0 } };
    next.next_certified = (struct wall){ 0 };
    decide_add(d, EV_TOKEN_REMOVED, no_tenant)->removed.id = token->r.id;
    decide_add(d, EV_NODE_SET, no_tenant)->node_set = next;
    return ERR_OK;
}

enum node_certificate node_certificate(const struct node_record *node,
                                       const struct digest *fingerprint, struct wall issued)
{
    if (memcmp(fingerprint, &node->fingerprint, sizeof(*fingerprint)) == 0)
        return NODE_CERTIFICATE_PRESENT;
    return issued.ns > node->certified.ns ? NODE_CERTIFICATE_NEWER : NODE_CERTIFICATE_OLD;
}

/* Asked for: the present one counts on, since the answer may be lost. Shown: nothing
 * older counts. */
enum err decide_node_renew(struct decision *d, struct error *e)
{
    const struct node_renew *renew = &d->command->node_renew;
    struct node *node = NULL;
    enum err rc = find_own_node(d, d->actor.node, &node, e);
    if (rc != ERR_OK)
        return rc;
    struct node_record next = node->r;
    if (renew->issued.ns == 0) {
        if (certified_last(&next).ns > d->wall.ns) /* or a node could push the time ahead */
            return err_cause(e, ERR_UNAVAILABLE, CAUSE_UNAVAILABLE,
                             "a certificate was made just now, or the clock was set back: later");
        next.next_fingerprint = renew->fingerprint;
        next.next_certified = certified_now(d, &next);
    } else if (node_certificate(&next, &renew->fingerprint, renew->issued) ==
               NODE_CERTIFICATE_NEWER) {
        next.fingerprint = renew->fingerprint;
        next.certified = renew->issued;
        if (memcmp(&next.next_fingerprint, &next.fingerprint, sizeof(next.fingerprint)) == 0)
            next.next_fingerprint = (struct digest){ { 0 } };
    } else {
        return ERR_OK;
    }
    decide_add(d, EV_NODE_SET, no_tenant)->node_set = next;
    return ERR_OK;
}

/* ---- inventory ----------------------------------------------------------------------------- */

/* Classes that this inventory made known; their numbers follow the present ones. */
struct discovery {
    struct decision *d;
    struct str made[CLASSES_MAX];
    size_t count;
};

static int64_t discover_class(struct discovery *discovery, const struct class_record *found)
{
    struct decision *d = discovery->d;
    const struct class_object *class = state_class_by_name(d->state, found->name);
    if (class != NULL)
        return class->r.number;
    int64_t first = (int64_t)d->state->classes.count;
    for (size_t i = 0; i < discovery->count; i++) {
        if (str_eq(discovery->made[i], found->name))
            return first + (int64_t)i;
    }
    struct class_record *made = &decide_add(d, EV_CLASS_SET, no_tenant)->class_set;
    *made = *found;
    made->number = first + (int64_t)discovery->count;
    made->id = decide_id(d, 1 + (uint64_t)discovery->count);
    discovery->made[discovery->count++] = found->name;
    return made->number;
}

static enum err inventory_check(const struct decision *d, const struct node_inventory *inventory,
                                struct error *e)
{
    const struct found_device_list *devices = &inventory->devices;
    const struct range ranges[] = {
        { "cpu_milli", inventory->cpu_milli, 0, 4096 * 1000 },
        { "memory_mib", inventory->memory_mib, 0, INT64_C(1) << 32 },
    };
    enum err rc = check_ranges(ranges, COUNT_OF(ranges), e);
    if (rc == ERR_OK)
        rc = check_name(inventory->cpu_class_name, "cpu_class_name", e);
    if (rc == ERR_OK && inventory->rack.size > 0)
        rc = check_name(inventory->rack, "rack", e);
    if (rc == ERR_OK && inventory->block.size > 0)
        rc = check_name(inventory->block, "block", e);
    if (rc == ERR_OK && devices->count > NODE_DEVICES_MAX)
        rc = err_field(e, "devices", "devices: more than %d", NODE_DEVICES_MAX);
    if (rc == ERR_OK && d->state->classes.count + devices->count + 1 > CLASSES_MAX)
        rc = err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT, "there are nearly %d classes already",
                       CLASSES_MAX);
    for (size_t i = 0; i < devices->count && rc == ERR_OK; i++) {
        const struct found_device *device = &devices->items[i];
        const struct range of_device[] = {
            { "devices.index", device->index, i > 0 ? devices->items[i - 1].index + 1 : 0, 65535 },
            { "devices.memory_mib", device->memory_mib, 0, INT64_C(1) << 32 },
            { "devices.health", device->health, 0, DEVICE_HEALTH_COUNT - 1 },
        };
        rc = check_name(device->class_name, "devices.class_name", e);
        if (rc == ERR_OK)
            rc = check_text(device->health_reason, DEVICE_REASON_MAX, "devices.health_reason", e);
        if (rc == ERR_OK)
            rc = check_ranges(of_device, COUNT_OF(of_device), e);
    }
    return rc;
}

static const struct device_record *device_of(const struct device_list *list, int64_t index)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].index == index)
            return &list->items[i];
    }
    return NULL;
}

static struct device_record device_found(struct discovery *discovery,
                                         const struct found_device *found,
                                         const struct device_record *known)
{
    const struct class_record class = { .name = found->class_name,
                                        .kind = CLASS_GPU,
                                        .vendor = found->vendor,
                                        .memory_mib = found->memory_mib };
    struct device_record next = {
        .index = found->index,
        .class_number = discover_class(discovery, &class),
        .uuid = found->uuid,
        .model = found->model,
        .memory_mib = found->memory_mib,
        .numa_node = found->numa_node,
        .health = (enum device_health)found->health,
        .health_reason = found->health_reason,
        .is_simulated = found->is_simulated,
    };
    if (known != NULL && str_eq(known->uuid, found->uuid)) {
        next.is_held = known->is_held;
        next.hold_reason = known->hold_reason;
    }
    return next;
}

/* Devices found now, and those known before that are gone: work may still be booked on them. */
static struct device_list devices_merge(struct discovery *discovery, const struct node *node)
{
    struct decision *d = discovery->d;
    const struct found_device_list *found = &d->command->inventory.devices;
    const struct device_list *known = &node->r.devices;
    struct device_list merged = { 0 };
    merged.items = arena_new(d->arena, found->count + known->count, sizeof(*merged.items));
    size_t next_known = 0;
    for (size_t i = 0; i <= found->count; i++) {
        int64_t until = i < found->count ? found->items[i].index : INT64_MAX;
        for (; next_known < known->count && known->items[next_known].index < until; next_known++) {
            merged.items[merged.count] = known->items[next_known];
            merged.items[merged.count].health_reason = (struct str){ 0 };
            merged.items[merged.count++].health = DEVICE_GONE;
        }
        if (i == found->count)
            break;
        merged.items[merged.count++] =
            device_found(discovery, &found->items[i], device_of(known, until));
        if (next_known < known->count && known->items[next_known].index == until)
            next_known++;
    }
    return merged;
}

static bool device_differs(const struct device_record *a, const struct device_record *b)
{
    return a->index != b->index || a->class_number != b->class_number ||
           a->memory_mib != b->memory_mib || a->numa_node != b->numa_node ||
           a->health != b->health || a->is_simulated != b->is_simulated ||
           a->is_held != b->is_held || !str_eq(a->uuid, b->uuid) || !str_eq(a->model, b->model) ||
           !str_eq(a->health_reason, b->health_reason);
}

static bool inventory_differs(const struct node_record *a, const struct node_record *b)
{
    if (a->cpu_milli != b->cpu_milli || a->memory_mib != b->memory_mib ||
        a->cpu_class_number != b->cpu_class_number || a->devices.count != b->devices.count ||
        a->contact != b->contact || !id_eq(a->pool, b->pool) || !str_eq(a->boot_id, b->boot_id) ||
        !str_eq(a->agent_version, b->agent_version) || !str_eq(a->kernel, b->kernel) ||
        !str_eq(a->driver, b->driver) || !str_eq(a->runtime, b->runtime) ||
        !str_eq(a->problems, b->problems) || !str_eq(a->rack, b->rack) ||
        !str_eq(a->block, b->block))
        return true;
    for (size_t i = 0; i < a->devices.count; i++) {
        if (device_differs(&a->devices.items[i], &b->devices.items[i]))
            return true;
    }
    return false;
}

/* A node that named no pool goes to the one that has the name of its class. */
static struct id pool_of_class(struct decision *d, struct str name, int64_t class_number)
{
    const struct pool_object *pool = state_pool_by_name(d->state, name);
    if (pool != NULL)
        return pool->r.id;
    struct pool_record *made = &decide_add(d, EV_POOL_SET, no_tenant)->pool_set;
    *made = (struct pool_record){ .id = decide_id(d, CLASSES_MAX + 1),
                                  .name = name,
                                  .class_number = class_number };
    return made->id;
}

/* The device of an allocation that was good and is not any more; NULL: all of them are as
 * they were. */
static const struct device_record *device_lost(const struct allocation *a,
                                               const struct device_list *before,
                                               const struct device_list *after)
{
    for (size_t i = 0; i < a->r.shares.count; i++) {
        const struct device_record *was = device_of(before, a->r.shares.items[i].device);
        const struct device_record *is = device_of(after, a->r.shares.items[i].device);
        if (was != NULL && was->health == DEVICE_OK && (is == NULL || is->health != DEVICE_OK))
            return was;
    }
    return NULL;
}

/* Work on a device that has failed goes elsewhere: nobody's fault, and nobody's retry. */
static void devices_lost(struct decision *d, struct node *node, const struct device_list *after)
{
    for (struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        const struct device_record *device = device_lost(a, &node->r.devices, after);
        enum allocation_state state = allocation_image(d, a)->state;
        if (device == NULL || (state != AL_STARTING && state != AL_RUNNING))
            continue;
        struct workload_image *image = workload_image(d, a->workload);
        if (image->next.state == WL_STOPPING)
            continue;
        const struct stop stop = {
            .after = WL_QUEUED,
            .cause = CAUSE_DEVICE_FAILURE,
            .detail = str_of(arena_format(d->arena, "device %lld of node %.*s failed",
                                          (long long)device->index, STR_ARG(node->r.name))),
        };
        image->next.node_losses++;
        workload_stop(d, image, &stop);
    }
}

enum err decide_node_inventory(struct decision *d, struct error *e)
{
    const struct node_inventory *inventory = &d->command->inventory;
    struct node *node = NULL;
    enum err rc = find_own_node(d, inventory->node, &node, e);
    if (rc == ERR_OK)
        rc = inventory_check(d, inventory, e);
    if (rc != ERR_OK)
        return rc;
    bool is_rebooted = node->r.boot_id.size > 0 && inventory->boot_id.size > 0 &&
                       !str_eq(node->r.boot_id, inventory->boot_id);

    struct discovery *discovery = arena_new(d->arena, 1, sizeof(*discovery));
    discovery->d = d;
    struct node_record next = node->r;
    const struct class_record cpu_class = { .name = inventory->cpu_class_name, .kind = CLASS_CPU };
    next.cpu_class_number = discover_class(discovery, &cpu_class);
    next.devices = devices_merge(discovery, node);
    next.cpu_milli = inventory->cpu_milli;
    next.memory_mib = inventory->memory_mib;
    next.agent_version =
        inventory->agent_version.size > 0 ? inventory->agent_version : STR("unknown");
    next.kernel = inventory->kernel;
    next.driver = inventory->driver;
    next.runtime = inventory->runtime;
    next.problems = inventory->problems;
    if (inventory->rack.size > 0)
        next.rack = inventory->rack;
    if (inventory->block.size > 0)
        next.block = inventory->block;
    next.contact = CONTACT_OK;
    if (inventory->boot_id.size > 0)
        next.boot_id = inventory->boot_id;
    if (str_eq(node->pool->r.name, joining_pool)) {
        bool has_devices = inventory->devices.count > 0;
        struct str name =
            has_devices ? inventory->devices.items[0].class_name : inventory->cpu_class_name;
        next.pool = pool_of_class(
            d, name, has_devices ? next.devices.items[0].class_number : next.cpu_class_number);
    }
    if (inventory_differs(&node->r, &next))
        decide_add(d, EV_NODE_SET, no_tenant)->node_set = next;
    if (is_rebooted)
        node_rebooted(d, node);
    else
        devices_lost(d, node, &next.devices);
    lifecycle_settle(d);
    return ERR_OK;
}

/* ---- labels -------------------------------------------------------------------------------- */

static enum err label_merge(struct str given, const char *field, struct str *label, struct error *e)
{
    if (given.size == 0)
        return ERR_OK;
    enum err rc = check_name(given, field, e);
    if (rc == ERR_OK)
        *label = str_is(given, "none") ? (struct str){ 0 } : given;
    return rc;
}

/* Where it stands, as an operator says. What its agent is configured to say comes with its next
 * inventory. */
enum err decide_node_set(struct decision *d, struct error *e)
{
    struct node *node = NULL;
    enum err rc = find_node(d, &node, e);
    if (rc == ERR_OK)
        rc = decide_match(d, node->r.version, e);
    if (rc != ERR_OK)
        return rc;
    struct node_record next = node->r;
    rc = label_merge(d->command->node_set.rack, "rack", &next.rack, e);
    if (rc == ERR_OK)
        rc = label_merge(d->command->node_set.block, "block", &next.block, e);
    if (rc == ERR_OK && inventory_differs(&node->r, &next))
        decide_add(d, EV_NODE_SET, no_tenant)->node_set = next;
    return rc;
}

/* ---- holds --------------------------------------------------------------------------------- */

/* The node's holds without those of one kind, with room for one more. */
static struct hold_list holds_without(struct decision *d, const struct node *node,
                                      enum hold_kind kind)
{
    struct hold_list list = { 0 };
    list.items = arena_new(d->arena, node->r.holds.count + 1, sizeof(*list.items));
    for (size_t i = 0; i < node->r.holds.count; i++) {
        if (node->r.holds.items[i].kind != kind)
            list.items[list.count++] = node->r.holds.items[i];
    }
    return list;
}

static void holds_set(struct decision *d, const struct node *node, struct hold_list holds,
                      struct mono drain_deadline)
{
    decide_add(d, EV_NODE_HOLDS, no_tenant)->node_holds =
        (struct node_holds){ node->r.id, holds, drain_deadline };
}

static enum err hold_add(struct decision *d, enum hold_kind kind, struct mono deadline,
                         struct error *e)
{
    struct node *node = NULL;
    enum err rc = find_node(d, &node, e);
    if (rc == ERR_OK)
        rc = check_text(d->command->target.reason, 1024, "reason", e);
    if (rc != ERR_OK)
        return rc;
    struct hold_list holds = holds_without(d, node, kind);
    bool is_new = holds.count == node->r.holds.count;
    if (!is_new && node->r.drain_deadline.ns == deadline.ns)
        return ERR_OK;
    holds.items[holds.count++] = (struct hold){
        .kind = kind, .by = d->actor.name, .reason = d->command->target.reason, .since = d->wall
    };
    holds_set(d, node, holds, kind == HOLD_DRAIN ? deadline : node->r.drain_deadline);
    return ERR_OK;
}

static enum err hold_remove(struct decision *d, enum hold_kind kind, struct error *e)
{
    struct node *node = NULL;
    enum err rc = find_node(d, &node, e);
    if (rc != ERR_OK)
        return rc;
    struct hold_list holds = holds_without(d, node, kind);
    const struct mono no_deadline = { 0 };
    if (holds.count != node->r.holds.count)
        holds_set(d, node, holds, kind == HOLD_DRAIN ? no_deadline : node->r.drain_deadline);
    return ERR_OK;
}

enum err decide_node_cordon(struct decision *d, struct error *e)
{
    struct node *node = NULL;
    enum err rc = find_node(d, &node, e);
    if (rc != ERR_OK)
        return rc;
    return hold_add(d, HOLD_PERSON, node->r.drain_deadline, e);
}

enum err decide_node_uncordon(struct decision *d, struct error *e)
{
    return hold_remove(d, HOLD_PERSON, e);
}

enum err decide_node_drain(struct decision *d, struct error *e)
{
    const struct target *target = &d->command->target;
    const struct range range = { "deadline_s", target->deadline_s, 0, 366 * 24 * 3600 };
    enum err rc = check_ranges(&range, 1, e);
    if (rc != ERR_OK)
        return rc;
    struct mono deadline = { 0 };
    if (target->is_forced)
        deadline = d->now;
    else if (target->deadline_s != UNSET)
        deadline = mono_add_s(d->now, target->deadline_s);
    return hold_add(d, HOLD_DRAIN, deadline, e);
}

enum err decide_node_undrain(struct decision *d, struct error *e)
{
    return hold_remove(d, HOLD_DRAIN, e);
}

/* A volume without its node is empty again wherever it is used next: nobody should learn
 * that afterwards. */
static enum err check_no_volumes(const struct decision *d, const struct node *node, struct error *e)
{
    const struct volume *first = NULL;
    size_t count = 0;
    for (const struct volume *v = d->state->first_volume; v != NULL; v = v->next) {
        if (!id_eq(v->r.node, node->r.id))
            continue;
        first = first != NULL ? first : v;
        count++;
    }
    if (count == 0)
        return ERR_OK;
    return err_cause(
        e, ERR_CONFLICT, CAUSE_CONFLICT,
        "node %.*s has the bytes of %zu volumes, %.*s among them; copy them out with `berth"
        " volume get` first, or use --force: then they begin empty elsewhere",
        STR_ARG(node->r.name), count, STR_ARG(first->r.name));
}

enum err decide_node_remove(struct decision *d, struct error *e)
{
    struct node *node = NULL;
    enum err rc = find_node(d, &node, e);
    if (rc == ERR_OK)
        rc = decide_match(d, node->r.version, e);
    if (rc != ERR_OK)
        return rc;
    if (node->first_allocation != NULL && !d->command->target.is_forced)
        return err_cause(
            e, ERR_CONFLICT, CAUSE_CONFLICT,
            "node %.*s still has work; drain it first, or use --force if the machine is"
            " gone for good",
            STR_ARG(node->r.name));
    if (!d->command->target.is_forced)
        rc = check_no_volumes(d, node, e);
    if (rc != ERR_OK)
        return rc;
    node_gone(d, node);
    lifecycle_settle(d);
    decide_add(d, EV_NODE_REMOVED, no_tenant)->removed.id = node->r.id;
    return ERR_OK;
}

/* ---- devices ------------------------------------------------------------------------------- */

static enum err device_hold_set(struct decision *d, bool is_held, struct error *e)
{
    struct node *node = NULL;
    enum err rc = find_node(d, &node, e);
    if (rc == ERR_OK)
        rc = check_text(d->command->target.reason, 1024, "reason", e);
    if (rc != ERR_OK)
        return rc;
    const struct device_record *device = device_of(&node->r.devices, d->command->target.index);
    if (device == NULL)
        return err_cause(e, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "node %.*s has no device %lld",
                         STR_ARG(node->r.name), (long long)d->command->target.index);
    if (device->is_held == is_held)
        return ERR_OK;
    struct str reason = { 0 };
    if (is_held)
        reason = d->command->target.reason;
    decide_add(d, EV_DEVICE_CHANGED, no_tenant)->device_changed =
        (struct device_changed){ node->r.id, device->index, device->health, is_held, reason };
    return ERR_OK;
}

enum err decide_device_hold(struct decision *d, struct error *e)
{
    return device_hold_set(d, true, e);
}

static bool is_on_device(const struct allocation *a, int64_t index)
{
    for (size_t i = 0; i < a->r.shares.count; i++) {
        if (a->r.shares.items[i].device == index)
            return true;
    }
    return index < 0 && a->r.shares.count == 0;
}

/* A quarantined allocation on the device is over as well: a person says that it is clean. Without
 * an index, that no process of work without devices is left on the node. */
enum err decide_device_release(struct decision *d, struct error *e)
{
    int64_t index = d->command->target.index;
    struct node *node = NULL;
    enum err rc = find_node(d, &node, e);
    if (rc == ERR_OK && index >= 0)
        rc = device_hold_set(d, false, e);
    if (rc != ERR_OK)
        return rc;
    for (struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        if (is_on_device(a, index) && a->r.state == AL_QUARANTINED)
            allocation_step(d, a, AL_ENDED);
    }
    lifecycle_settle(d);
    return ERR_OK;
}
