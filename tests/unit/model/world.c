#include "unit/model/world.h"

#include <string.h>

#include "unit/test.h"

void world_init(struct world *world, uint64_t seed)
{
    *world = (struct world){ .state = state_new(), .random = seed };
    world_apply(world, (struct event){ .type = EV_CONTROLLER_STARTED,
                                       .controller_started = { 1, { 1, 2, 3 }, STR("1.0") } });
}

void world_done(struct world *world)
{
    state_free(world->state);
    vec_done(&world->history);
    arena_done(&world->arena);
}

void world_apply(struct world *world, struct event event)
{
    const struct state *state = world->state;
    event.version = 1;
    event.sequence = state->sequence + 1;
    event.at.ns = state->now.ns + 1 + (int64_t)test_below(&world->random, 1000000000);
    event.wall.ns = 1700000000 * NS_PER_S + event.at.ns;
    evolve(world->state, &event);
    vec_push(&world->history, event);
}

struct state *world_replay(const struct world *world)
{
    struct state *state = state_new();
    for (size_t i = 0; i < world->history.count; i++)
        evolve(state, &world->history.items[i]);
    return state;
}

struct id world_id(struct world *world)
{
    return (struct id){ ++world->next_id, test_random(&world->random) };
}

struct str world_text(struct world *world, size_t most)
{
    size_t size = test_below(&world->random, most + 1);
    char *text = arena_new(&world->arena, size + 1, 1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + test_below(&world->random, 26));
    return (struct str){ text, size };
}

struct str world_copy(struct world *world, const char *text)
{
    return str_copy(&world->arena, str_of(text));
}

static int64_t number(struct world *world, size_t below)
{
    return (int64_t)test_below(&world->random, below);
}

static struct digest digest(struct world *world)
{
    struct digest d = { 0 };
    for (size_t i = 0; i < sizeof(d.bytes); i++)
        d.bytes[i] = (uint8_t)number(world, 256);
    return d;
}

/* ---- one object each ----------------------------------------------------------------------- */

static struct id class_set(struct world *world, struct id id, const char *name, int64_t class)
{
    world_apply(world, (struct event){ .type = EV_CLASS_SET,
                                       .class_set = { .id = id,
                                                      .name = world_copy(world, name),
                                                      .number = class,
                                                      .vendor = world_text(world, 8),
                                                      .memory_mib = 81920,
                                                      .price_micros_per_hour = 2000000 } });
    return id;
}

struct id world_class(struct world *world, const char *name)
{
    return class_set(world, world_id(world), name, (int64_t)world->state->classes.count);
}

static struct id pool_set(struct world *world, struct id id, const char *name, int64_t class)
{
    world_apply(world, (struct event){ .type = EV_POOL_SET,
                                       .pool_set = { .id = id,
                                                     .name = world_copy(world, name),
                                                     .class_number = class,
                                                     .site = SITE_SIM } });
    return id;
}

struct id world_pool(struct world *world, const char *name, int64_t class_number)
{
    return pool_set(world, world_id(world), name, class_number);
}

static struct quota_list quotas(struct world *world)
{
    size_t classes = world->state->classes.count;
    struct quota_list list = { arena_new(&world->arena, classes, sizeof(struct quota)), 0 };
    for (size_t class = 0; class < classes; class ++) {
        if (number(world, 2) == 0)
            list.items[list.count++] = (struct quota){ (int64_t) class, number(world, 9000),
                                                       UNBOUNDED, number(world, 9000), 100 };
    }
    return list;
}

struct id world_project(struct world *world, struct id parent, const char *name)
{
    const struct project *above = state_project(world->state, parent);
    struct project_record r = {
        .id = world_id(world),
        .parent = parent,
        .name = world_copy(world, name),
        .path = world_copy(world, name),
        .number = above == NULL ? world->state->next_tenant_number : 0,
        .priority = 50,
        .log_quota_mib = number(world, 3),
        .log_days = number(world, 3),
        .quotas = quotas(world),
    };
    if (above != NULL)
        r.path = str_of(arena_format(&world->arena, "%.*s/%s", STR_ARG(above->r.path), name));
    struct id tenant = above != NULL ? above->tenant->r.id : r.id;
    world_apply(world,
                (struct event){ .type = EV_PROJECT_SET, .tenant = tenant, .project_set = r });
    return r.id;
}

static struct device_list devices(struct world *world, size_t count)
{
    struct device_list list = { arena_new(&world->arena, count, sizeof(struct device_record)),
                                count };
    for (size_t i = 0; i < count; i++)
        list.items[i] = (struct device_record){ .index = (int64_t)i,
                                                .uuid = world_text(world, 40),
                                                .model = world_text(world, 20),
                                                .memory_mib = 81920 };
    return list;
}

static struct hold_list holds(struct world *world)
{
    size_t count = test_below(&world->random, 3);
    struct hold_list list = { arena_new(&world->arena, count, sizeof(struct hold)), count };
    for (size_t i = 0; i < count; i++)
        list.items[i] = (struct hold){ (enum hold_kind)number(world, HOLD_KIND_COUNT),
                                       world_text(world, 9),
                                       world_text(world, 30),
                                       { number(world, 1000) } };
    return list;
}

struct id world_node(struct world *world, const char *name, struct id pool)
{
    struct node_record r = {
        .id = world_id(world),
        .name = world_copy(world, name),
        .pool = pool,
        .fingerprint = digest(world),
        .certified = { 1700000000 * NS_PER_S },
        .boot_id = world_text(world, 36),
        .agent_version = world_text(world, 5),
        .kernel = world_text(world, 9),
        .problems = world_text(world, 20),
        .rack = world_text(world, 9),
        .block = world_text(world, 9),
        .cpu_milli = 64000,
        .memory_mib = 512000,
        .cpu_class_number = number(world, world->state->classes.count),
        .devices = devices(world, 1 + test_below(&world->random, 8)),
        .holds = holds(world),
    };
    world_apply(world, (struct event){ .type = EV_NODE_SET, .node_set = r });
    return r.id;
}

struct id world_submit_element(struct world *world, struct id project, struct id array,
                               int64_t index)
{
    if (number(world, 3) == 0)
        world->spec = world_text(world, 400);
    struct workload_record r = {
        .id = world_id(world),
        .array = array,
        .array_index = index,
        .project = project,
        .name = world_text(world, 12),
        .user = world_text(world, 12),
        .spec_json = world->spec,
        .image = digest(world),
        .request = { .gpu_milli = 1000, .class_numbers = { 0 }, .class_count = 1 },
        .members = 1 + number(world, 3),
        .members_min = 1,
        .state = number(world, 4) == 0 ? WL_HELD : WL_QUEUED,
        .detail = world_text(world, 20),
    };
    r.depends_on.count = test_below(&world->random, 3);
    r.depends_on.items = arena_new(&world->arena, r.depends_on.count, sizeof(*r.depends_on.items));
    for (size_t i = 0; i < r.depends_on.count; i++)
        r.depends_on.items[i] = (struct dependency){ world_id(world), AFTER_ANY };
    r.volumes.count = test_below(&world->random, 3);
    r.volumes.items = arena_new(&world->arena, r.volumes.count, sizeof(*r.volumes.items));
    for (size_t i = 0; i < r.volumes.count; i++)
        r.volumes.items[i] = world_id(world);
    world_apply(world, (struct event){ .type = EV_WORKLOAD_SUBMITTED,
                                       .tenant = state_project(world->state, project)->tenant->r.id,
                                       .workload_submitted = r });
    return r.id;
}

struct id world_submit(struct world *world, struct id project)
{
    return world_submit_element(world, project, (struct id){ 0 }, 0);
}

struct id world_grant(struct world *world, struct id workload, struct id node, int64_t rank)
{
    size_t classes = world->state->classes.count;
    int64_t class_number = number(world, classes > 0 ? classes : 1);
    return world_grant_of(world, workload, node, rank, class_number, 1000 * (1 + number(world, 8)));
}

struct id world_grant_of(struct world *world, struct id workload, struct id node, int64_t rank,
                         int64_t class_number, int64_t charge_milli)
{
    const struct workload *of = state_workload(world->state, workload);
    struct allocation_record r = {
        .id = world_id(world),
        .workload = workload,
        .project = of->r.project,
        .node = node,
        .attempt = of->r.attempt,
        .rank = rank,
        .class_number = class_number,
        .charge_milli = charge_milli,
        .state = AL_STARTING,
        .grace_s = 60,
    };
    r.shares.count = test_below(&world->random, 4);
    r.shares.items = arena_new(&world->arena, r.shares.count, sizeof(*r.shares.items));
    for (size_t i = 0; i < r.shares.count; i++)
        r.shares.items[i] =
            (struct device_share){ .device = (int64_t)i, .milli = 1000, .memory_mib = 81920 };
    world_apply(world, (struct event){ .type = EV_ALLOCATION_GRANTED,
                                       .tenant = of->project->tenant->r.id,
                                       .allocation_granted = r });
    return r.id;
}

void world_remove(struct world *world, enum event_type type, struct id id)
{
    world_apply(world, (struct event){ .type = type, .removed = { id } });
}

void world_workload(struct world *world, struct id workload, enum workload_state state)
{
    const struct workload *of = state_workload(world->state, workload);
    const struct workload_record *r = &of->r;
    struct workload_changed changed = {
        .workload = workload,
        .state = state,
        .after_stop = state == WL_STOPPING ? WL_QUEUED : WL_NONE,
        .cause = (enum cause)number(world, CAUSE_COUNT),
        .detail = world_text(world, 40),
        .attempt = r->attempt + (state == WL_STARTING),
        .failures = r->failures,
        .evictions = r->evictions + (state == WL_STOPPING),
        .node_losses = r->node_losses,
        .exit = { .is_known = state == WL_SUCCEEDED },
    };
    world_apply(world, (struct event){ .type = EV_WORKLOAD_CHANGED,
                                       .tenant = of->project->tenant->r.id,
                                       .workload_changed = changed });
}

void world_allocation(struct world *world, struct id allocation, enum allocation_state state)
{
    const struct allocation *of = state_allocation(world->state, allocation);
    const struct allocation_record *r = &of->r;
    struct allocation_changed changed = {
        .allocation = allocation,
        .state = state,
        .stop_cause = state == AL_STOPPING ? CAUSE_USER_CANCELLED : r->stop_cause,
        .evictor = r->evictor,
        .exit = { .is_known = state == AL_CLEANING, .code = 3 },
        .has_segment =
            r->started.ns != 0 && allocation_is_charged(r->state) && !allocation_is_charged(state),
    };
    if (changed.has_segment)
        changed.segment = (struct segment){ .allocation = allocation,
                                            .project = r->project,
                                            .class_number = r->class_number,
                                            .charge_milli = r->charge_milli,
                                            .duration_ms = number(world, 100000),
                                            .amount_micros = number(world, 100000) };
    world_apply(world, (struct event){ .type = EV_ALLOCATION_CHANGED,
                                       .tenant = of->workload->project->tenant->r.id,
                                       .allocation_changed = changed });
}
