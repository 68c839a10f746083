/* Random histories. Each step picks a kind of event and an object for which that event is legal. */
#include <assert.h>
#include <string.h>

#include "model/policy.h"
#include "model/transition.h"
#include "unit/model/world.h"
#include "unit/test.h"

enum { ELEMENTS_MOST = 5, WORKLOADS_MOST = 60, NODES_MOST = 12, PROJECTS_MOST = 25, FEW = 6 };

static size_t below(struct world *world, size_t bound)
{
    return test_below(&world->random, bound);
}

static const char *fresh_name(struct world *world, const char *kind)
{
    return arena_format(&world->arena, "%s-%llu", kind, (unsigned long long)++world->next_id);
}

/* A uniformly random member of a list, NULL when it is empty. */
#define PICK(world, out, first, next_of)                                                           \
    do {                                                                                           \
        size_t seen_ = 0;                                                                          \
        (out) = NULL;                                                                              \
        for (__typeof__(out) at_ = (first); at_ != NULL; at_ = (next_of)) {                        \
            if (below(world, ++seen_) == 0)                                                        \
                (out) = at_;                                                                       \
        }                                                                                          \
    } while (0)

static struct project *any_project(struct world *world)
{
    struct project *found = NULL;
    PICK(world, found, world->state->first_tenant, project_next(at_));
    return found;
}

static struct id any_tenant(struct world *world)
{
    struct project *found = any_project(world);
    return found != NULL ? found->tenant->r.id : (struct id){ 0 };
}

static struct node *any_node(struct world *world)
{
    struct node *found = NULL;
    PICK(world, found, world->state->first_node, at_->next);
    return found;
}

static struct workload *any_workload(struct world *world)
{
    struct workload *found = NULL;
    PICK(world, found, world->state->first_workload, at_->next);
    return found;
}

static struct pool_object *any_pool(struct world *world)
{
    size_t count = world->state->pools.count;
    return count > 0 ? world->state->pools.items[below(world, count)] : NULL;
}

/* ---- catalog ------------------------------------------------------------------------------- */

static void step_class(struct world *world)
{
    size_t count = world->state->classes.count;
    if (count < FEW) {
        (void)world_class(world, fresh_name(world, "class"));
        return;
    }
    struct class_record r = world->state->classes.items[below(world, count)]->r;
    if (below(world, 3) == 0) {
        world_remove(world, EV_CLASS_REMOVED, r.id);
        return;
    }
    r.name = world_copy(world, fresh_name(world, "class"));
    r.vendor = world_text(world, 9);
    r.price_micros_per_hour++;
    world_apply(world, (struct event){ .type = EV_CLASS_SET, .class_set = r });
}

static void step_pool(struct world *world)
{
    struct pool_object *pool = any_pool(world);
    if (world->state->classes.count == 0)
        return;
    if (world->state->pools.count < FEW) {
        (void)world_pool(world, fresh_name(world, "pool"), 0);
    } else if (pool->node_count == 0) {
        world_remove(world, EV_POOL_REMOVED, pool->r.id);
    } else {
        struct pool_record r = pool->r;
        r.name = world_copy(world, fresh_name(world, "pool"));
        world_apply(world, (struct event){ .type = EV_POOL_SET, .pool_set = r });
    }
}

static void step_profile(struct world *world)
{
    size_t count = world->state->profiles.count;
    struct profile_record r = { .id = world_id(world) };
    if (count > FEW)
        r.id = world->state->profiles.items[below(world, count)]->r.id;
    if (count > FEW && below(world, 2) == 0) {
        world_remove(world, EV_PROFILE_REMOVED, r.id);
        return;
    }
    r.name = world_text(world, 9);
    r.description = world_text(world, 90);
    r.request.gpu_milli = (int64_t)below(world, 8000);
    r.pools.count = below(world, 4);
    r.pools.items = arena_new(&world->arena, r.pools.count, sizeof(*r.pools.items));
    for (size_t i = 0; i < r.pools.count; i++)
        r.pools.items[i] = world_text(world, 12);
    world_apply(world, (struct event){ .type = EV_PROFILE_SET, .profile_set = r });
}

static void step_settings(struct world *world)
{
    struct settings_record r = world->state->settings;
    r.grace_s = (int64_t)below(world, 600);
    world_apply(world, (struct event){ .type = EV_SETTINGS_CHANGED, .settings = r });
}

/* ---- projects and what tenants have -------------------------------------------------------- */

/* Work that keeps devices although it ended keeps its project, too. */
static bool is_removable(const struct state *state, const struct project *project)
{
    if (project->first_child != NULL || project->live_workloads > 0)
        return false;
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        if (w->project == project && w->first_allocation != NULL)
            return false;
    }
    return true;
}

static void step_project(struct world *world)
{
    struct project *project = any_project(world);
    size_t choice = below(world, 4);
    if (project == NULL || (choice < 2 && world->state->project_count < PROJECTS_MOST)) {
        bool is_tenant = project == NULL || below(world, 4) == 0;
        (void)world_project(world, is_tenant ? (struct id){ 0 } : project->r.id,
                            fresh_name(world, "project"));
    } else if (choice == 2 && is_removable(world->state, project)) {
        world_remove(world, EV_PROJECT_REMOVED, project->r.id);
    } else {
        struct project_record r = project->r;
        struct quota quota = { 0, (int64_t)below(world, 5000), UNBOUNDED, UNBOUNDED, 100 };
        r.path = str_copy(&world->arena, r.path);
        r.name = str_copy(&world->arena, r.name);
        r.priority = (int64_t)below(world, 1000);
        r.usage = (struct usage_list){ 0 }; /* of no consequence */
        r.quotas = (struct quota_list){ arena_new(&world->arena, 1, sizeof(quota)), 1 };
        r.quotas.items[0] = quota;
        world_apply(world, (struct event){ .type = EV_PROJECT_SET,
                                           .tenant = project->tenant->r.id,
                                           .project_set = r });
    }
}

static void step_token(struct world *world)
{
    struct token *token = NULL;
    PICK(world, token, world->state->first_token, at_->next);
    struct token_record r = { .id = world_id(world), .tenant = any_tenant(world) };
    size_t choice = below(world, 3);
    if (token != NULL && choice == 0) {
        world_remove(world, EV_TOKEN_REMOVED, token->r.id);
        return;
    }
    if (token != NULL && choice == 1)
        r = (struct token_record){ .id = token->r.id,
                                   .tenant = token->r.tenant,
                                   .is_revoked = true };
    r.name = world_text(world, 20);
    r.user = world_text(world, 20);
    r.pool = world_text(world, 20);
    world_apply(world, (struct event){ .type = EV_TOKEN_SET, .token_set = r });
}

static void step_volume(struct world *world)
{
    struct volume *volume = NULL;
    PICK(world, volume, world->state->first_volume, at_->next);
    struct volume_record r = { .id = world_id(world), .tenant = any_tenant(world) };
    size_t choice = below(world, 3);
    if (id_is_none(r.tenant))
        return;
    if (volume != NULL && choice == 0) {
        world_remove(world, EV_VOLUME_REMOVED, volume->r.id);
        return;
    }
    if (volume != NULL && choice == 1)
        r = volume->r;
    r.name = world_text(world, 20);
    r.quota_mib++;
    world_apply(world, (struct event){ .type = EV_VOLUME_SET, .volume_set = r });
}

static void step_reservation(struct world *world)
{
    struct reservation *reservation = NULL;
    PICK(world, reservation, world->state->first_reservation, at_->next);
    const struct project *project = state_project(world->state, any_tenant(world));
    enum reservation_state to = (enum reservation_state)(1 + below(world, RSV_STATE_COUNT - 1));
    struct reservation_record r = { .id = world_id(world),
                                    .name = world_text(world, 20),
                                    .user = world_text(world, 20),
                                    .zone = world_text(world, 20),
                                    .zone_rule = STR("UTC0"),
                                    .gpu_milli = 1000,
                                    .state = RSV_CONFIRMED,
                                    .end_s = 60 };
    if (project == NULL)
        return;
    r.project = project->r.id;
    if (reservation != NULL && reservation_state_is_final(reservation->r.state)) {
        world_remove(world, EV_RESERVATION_REMOVED, reservation->r.id);
        return;
    }
    if (reservation != NULL && reservation_may_become(reservation->r.state, to)) {
        r = reservation->r;
        r.name = world_text(world, 20);
        r.user = world_text(world, 20);
        r.zone = world_text(world, 20);
        r.zone_rule = STR("UTC0");
        r.state = to;
        r.detail = world_text(world, 20);
    }
    world_apply(world, (struct event){ .type = EV_RESERVATION_SET, .reservation_set = r });
}

static struct policy_patch any_patch(struct world *world)
{
    struct policy_patch patch = policy_nothing();
    struct quota *rows = arena_new(&world->arena, 2, sizeof(*rows));
    patch.quotas.items = rows;
    for (int64_t i = 0; i < 2 && i < (int64_t)world->state->classes.count; i++)
        rows[patch.quotas.count++] =
            (struct quota){ i, (int64_t)below(world, 9000), UNSET, 8000, UNSET };
    patch.priority = (int64_t)below(world, 1000);
    patch.settings.placement = PLACE_PACK;
    return patch;
}

static void step_change(struct world *world)
{
    struct change *change = NULL;
    PICK(world, change, world->state->first_change, at_->next);
    const struct project *project = state_project(world->state, any_tenant(world));
    enum change_state to = (enum change_state)(1 + below(world, CHG_STATE_COUNT - 1));
    struct change_record r = { .id = world_id(world),
                               .zone_rule = STR("UTC0"),
                               .state = CHG_SCHEDULED,
                               .former = policy_nothing() };
    if (project != NULL && below(world, 3) > 0)
        r.project = project->r.id;
    if (change != NULL && change_state_is_final(change->r.state)) {
        world_remove(world, EV_CHANGE_REMOVED, change->r.id);
        return;
    }
    if (change != NULL && change_may_become(change->r.state, to)) {
        r = change->r;
        r.state = to;
        r.zone_rule = STR("UTC0");
        r.former = any_patch(world);
    }
    r.name = world_text(world, 20);
    r.user = world_text(world, 20);
    r.reason = world_text(world, 20);
    r.detail = world_text(world, 20);
    r.zone = world_text(world, 20);
    r.to = any_patch(world);
    world_apply(world, (struct event){ .type = EV_CHANGE_SET, .change_set = r });
}

static void step_image(struct world *world)
{
    struct image *image = NULL;
    PICK(world, image, world->state->first_image, at_->next);
    struct image_record r = { .id = world_id(world) };
    size_t choice = below(world, 3);
    if (below(world, 2) == 0)
        r.tenant = any_tenant(world);
    if (image != NULL && choice == 0) {
        world_remove(world, EV_IMAGE_REMOVED, image->r.id);
        return;
    }
    if (image != NULL && choice == 1)
        r = image->r;
    r.name = world_text(world, 20);
    r.source = world_text(world, 80);
    world_apply(world, (struct event){ .type = EV_IMAGE_SET, .image_set = r });
}

static void step_credential(struct world *world)
{
    struct credential *credential = NULL;
    PICK(world, credential, world->state->first_credential, at_->next);
    struct credential_record r = { .id = world_id(world), .tenant = any_tenant(world) };
    size_t choice = below(world, 3);
    if (credential != NULL && choice == 0) {
        world_remove(world, EV_CREDENTIAL_REMOVED, credential->r.id);
        return;
    }
    if (credential != NULL && choice == 1)
        r = credential->r;
    r.registry = world_text(world, 40);
    r.username = world_text(world, 20);
    r.sealed = world_text(world, 200);
    world_apply(world, (struct event){ .type = EV_CREDENTIAL_SET, .credential_set = r });
}

static void step_hook(struct world *world)
{
    struct hook *hook = NULL;
    const struct project *project = any_project(world);
    PICK(world, hook, world->state->first_hook, at_->next);
    size_t choice = below(world, 4);
    if (hook != NULL && choice <= 1) {
        world_remove(world, choice == 0 ? EV_HOOK_REMOVED : EV_HOOK_TESTED, hook->r.id);
        return;
    }
    if (project == NULL)
        return;
    struct hook_record r = { .id = world_id(world),
                             .tenant = project->tenant->r.id,
                             .project = project->r.id };
    if (hook != NULL && choice == 2)
        r = hook->r;
    r.name = world_text(world, 20);
    r.url = world_text(world, 100);
    r.sealed = world_text(world, 200);
    r.fault = world_text(world, 40);
    world_apply(world, (struct event){ .type = EV_HOOK_SET, .hook_set = r });
}

static void step_upload(struct world *world)
{
    struct upload_stored r = { .tenant = any_tenant(world), .name = world_text(world, 20) };
    if (id_is_none(r.tenant))
        return;
    r.digest.bytes[0] = (uint8_t)below(world, 5);
    r.size_bytes = (int64_t)below(world, 100000);
    world_apply(world, (struct event){ .type = EV_UPLOAD_STORED, .upload_stored = r });
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void node_inventory(struct world *world, const struct node *node)
{
    const struct node *other = any_node(world);
    struct node_record r = node->r;
    r.name = str_copy(&world->arena, r.name);
    r.pool = other->r.pool;
    r.boot_id = world_text(world, 36);
    r.agent_version = world_text(world, 10);
    r.kernel = world_text(world, 10);
    r.driver = world_text(world, 10);
    r.runtime = world_text(world, 10);
    r.problems = world_text(world, 40);
    r.rack = world_text(world, 9);
    r.block = world_text(world, 9);
    r.contact = (enum node_contact)below(world, NODE_CONTACT_COUNT);
    r.generation = 0; /* of no consequence */
    r.holds = (struct hold_list){ 0 };
    r.devices.items = arena_new(&world->arena, r.devices.count, sizeof(*r.devices.items));
    for (size_t i = 0; i < r.devices.count; i++)
        r.devices.items[i] = (struct device_record){ .index = (int64_t)i,
                                                     .uuid = world_text(world, 40),
                                                     .health_reason = world_text(world, 20) };
    world_apply(world, (struct event){ .type = EV_NODE_SET, .node_set = r });
}

static void step_node(struct world *world)
{
    struct node *node = any_node(world);
    struct pool_object *pool = any_pool(world);
    struct event event = { 0 };
    if (pool == NULL)
        return;
    if (node == NULL || (world->state->node_count < NODES_MOST && below(world, 2) == 0)) {
        (void)world_node(world, fresh_name(world, "node"), pool->r.id);
        return;
    }
    switch (below(world, 5)) {
    case 0:
        if (node->first_allocation == NULL)
            world_remove(world, EV_NODE_REMOVED, node->r.id);
        return;
    case 1:
        node_inventory(world, node);
        return;
    case 2:
        event.type = EV_NODE_CONTACT;
        event.node_contact.node = node->r.id;
        event.node_contact.contact = (enum node_contact)below(world, NODE_CONTACT_COUNT);
        event.node_contact.boot_id = world_text(world, 36);
        break;
    case 3:
        event.type = EV_NODE_HOLDS;
        event.node_holds.node = node->r.id;
        event.node_holds.holds.count = below(world, 3);
        event.node_holds.holds.items =
            arena_new(&world->arena, event.node_holds.holds.count, sizeof(struct hold));
        for (size_t i = 0; i < event.node_holds.holds.count; i++)
            event.node_holds.holds.items[i].reason = world_text(world, 30);
        event.node_holds.drain_deadline.ns = (int64_t)below(world, 100);
        break;
    default:
        event.type = EV_DEVICE_CHANGED;
        event.device_changed = (struct device_changed){
            .node = node->r.id,
            .index = node->r.devices.items[below(world, node->r.devices.count)].index,
            .health = (enum device_health)below(world, DEVICE_HEALTH_COUNT),
            .is_held = below(world, 2) == 0,
            .reason = world_text(world, 30),
        };
    }
    world_apply(world, event);
}

/* ---- work ---------------------------------------------------------------------------------- */

static void step_submit(struct world *world)
{
    struct project *project = any_project(world);
    if (project == NULL || world->state->workload_count >= WORKLOADS_MOST)
        return;
    if (below(world, 3) > 0) {
        (void)world_submit(world, project->r.id);
        return;
    }
    struct id array = world_id(world);
    size_t count = 1 + below(world, ELEMENTS_MOST);
    for (size_t i = 0; i < count; i++)
        (void)world_submit_element(world, project->r.id, array, (int64_t)i);
}

static void step_workload(struct world *world)
{
    const struct workload *workload = any_workload(world);
    if (workload == NULL)
        return;
    enum workload_state from = workload->r.state;
    enum workload_state to = (enum workload_state)(1 + below(world, WL_STATE_COUNT - 1));
    if (workload_state_is_final(from)) {
        if (workload->first_allocation == NULL)
            world_remove(world, EV_WORKLOAD_FORGOTTEN, workload->r.id);
    } else if (from == to || workload_may_become(from, to)) {
        world_workload(world, workload->r.id, to);
    }
}

static void step_grant(struct world *world)
{
    const struct workload *workload = any_workload(world);
    const struct node *node = any_node(world);
    if (workload != NULL && node != NULL && !workload_state_is_final(workload->r.state) &&
        world->state->classes.count > 0)
        (void)world_grant(world, workload->r.id, node->r.id, (int64_t)below(world, 4));
}

static void step_allocation(struct world *world)
{
    const struct node *node = any_node(world);
    const struct allocation *allocation = NULL;
    if (node != NULL)
        PICK(world, allocation, node->first_allocation, at_->next_on_node);
    enum allocation_state to = (enum allocation_state)(1 + below(world, AL_STATE_COUNT - 1));
    if (allocation != NULL &&
        (allocation->r.state == to || allocation_may_become(allocation->r.state, to)))
        world_allocation(world, allocation->r.id, to);
}

/* What its workload says. */
static void step_note(struct world *world)
{
    const struct node *node = any_node(world);
    const struct allocation *allocation = NULL;
    if (node != NULL)
        PICK(world, allocation, node->first_allocation, at_->next_on_node);
    if (allocation == NULL)
        return;
    const struct allocation_noted noted = { .allocation = allocation->r.id,
                                            .checkpointed = world->state->now,
                                            .checkpoints = allocation->r.checkpoints + 1,
                                            .extended_s = (int64_t)below(world, 900) };
    world_apply(world, (struct event){ .type = EV_ALLOCATION_NOTED, .allocation_noted = noted });
}

/* Some of its members are missing, or none any more. */
static void step_gang(struct world *world)
{
    struct workload *workload = NULL;
    PICK(world, workload, world->state->first_workload, at_->next);
    if (workload == NULL || (workload->r.state != WL_STARTING && workload->r.state != WL_RUNNING))
        return;
    struct gang_record r = { .workload = workload->r.id };
    r.missing.items =
        arena_new(&world->arena, (size_t)workload->r.members, sizeof(*r.missing.items));
    for (int64_t rank = 0; rank < workload->r.members; rank++) {
        if (below(world, 2) == 0)
            r.missing.items[r.missing.count++].rank = rank;
    }
    r.short_since = world->state->now;
    r.grow_after.ns = (int64_t)below(world, 1000);
    world_apply(world, (struct event){ .type = EV_GANG_CHANGED, .gang_changed = r });
}

void world_step(struct world *world)
{
    static const struct {
        void (*step)(struct world *world);
        size_t weight;
    } steps[] = {
        { step_class, 2 },       { step_pool, 2 },   { step_profile, 1 },   { step_settings, 1 },
        { step_project, 6 },     { step_token, 2 },  { step_volume, 2 },    { step_image, 2 },
        { step_credential, 2 },  { step_upload, 2 }, { step_node, 8 },      { step_submit, 12 },
        { step_reservation, 4 }, { step_change, 4 }, { step_workload, 30 }, { step_grant, 15 },
        { step_allocation, 30 }, { step_gang, 8 },   { step_note, 8 },      { step_hook, 4 },
    };
    size_t total = 0;
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        total += steps[i].weight;
    size_t at = below(world, total);
    size_t i = 0;
    while (at >= steps[i].weight)
        at -= steps[i++].weight;
    steps[i].step(world);
}

/* ---- the end of the world ------------------------------------------------------------------ */

static void clear_work(struct world *world)
{
    const struct state *state = world->state;
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        while (node->first_allocation != NULL) {
            const struct allocation_record *r = &node->first_allocation->r;
            world_allocation(world, r->id, AL_ENDED);
        }
    }
    while (state->first_workload != NULL) {
        const struct workload_record *r = &state->first_workload->r;
        if (!workload_state_is_final(r->state))
            world_workload(world, r->id, WL_CANCELLED);
        world_remove(world, EV_WORKLOAD_FORGOTTEN, r->id);
    }
}

/* Deepest first: a leaf is always the last of its parent's children. */
static void clear_projects(struct world *world)
{
    while (world->state->last_tenant != NULL) {
        const struct project *leaf = world->state->last_tenant;
        while (leaf->last_child != NULL)
            leaf = leaf->last_child;
        world_remove(world, EV_PROJECT_REMOVED, leaf->r.id);
    }
}

void world_clear(struct world *world)
{
    const struct state *state = world->state;
    clear_work(world);
    clear_projects(world);
    while (state->first_node != NULL)
        world_remove(world, EV_NODE_REMOVED, state->first_node->r.id);
    while (state->pools.count > 0)
        world_remove(world, EV_POOL_REMOVED, state->pools.items[0]->r.id);
    while (state->profiles.count > 0)
        world_remove(world, EV_PROFILE_REMOVED, state->profiles.items[0]->r.id);
    while (state->first_token != NULL)
        world_remove(world, EV_TOKEN_REMOVED, state->first_token->r.id);
    while (state->first_image != NULL)
        world_remove(world, EV_IMAGE_REMOVED, state->first_image->r.id);
    while (state->first_credential != NULL)
        world_remove(world, EV_CREDENTIAL_REMOVED, state->first_credential->r.id);
    assert(state->first_hook == NULL); /* they went with their projects */
}
