/*
 * What decide() has to prevent: evolve() asserts it, and ends the process rather than writing a
 * state that contradicts itself. Each row runs in a child that must die of SIGABRT.
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/transition.h"
#include "unit/model/world.h"
#include "unit/test.h"

static const struct id none;

struct cast {
    struct id class, pool, node, tenant, project, workload, allocation;
};

static struct cast cast_of(struct world *world)
{
    struct cast cast = { .class = world_class(world, "h100-80g") };
    cast.pool = world_pool(world, "main", 0);
    cast.node = world_node(world, "node-1", cast.pool);
    cast.tenant = world_project(world, none, "amber");
    cast.project = world_project(world, cast.tenant, "vision");
    cast.workload = world_submit(world, cast.project);
    cast.allocation = world_grant(world, cast.workload, cast.node, 0);
    return cast;
}

static bool is_aborted(void (*act)(struct world *world, const struct cast *cast))
{
    pid_t pid = fork();
    if (pid == 0) {
        AUTO(world) struct world world;
        struct rlimit no_core = { 0 };
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(2);
        world_init(&world, 5);
        struct cast cast = cast_of(&world);
        act(&world, &cast);
        _exit(0);
    }
    int status = 0;
    CHECK("a child", pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void gap_in_sequence(struct world *world, const struct cast *cast)
{
    (void)cast;
    world->state->sequence++;
    struct event event = { .type = EV_SETTINGS_CHANGED, .sequence = world->state->sequence };
    evolve(world->state, &event);
}

static void no_event_type(struct world *world, const struct cast *cast)
{
    (void)cast;
    world_apply(world, (struct event){ .type = (enum event_type)3 });
}

static void restore_of_a_step(struct world *world, const struct cast *cast)
{
    struct event event = { .type = EV_NODE_CONTACT, .node_contact = { .node = cast->node } };
    evolve_restored(world->state, &event);
}

static void class_number_with_gap(struct world *world, const struct cast *cast)
{
    (void)cast;
    world_apply(world, (struct event){ .type = EV_CLASS_SET, .class_set = { .number = 5 } });
}

static void class_number_of_another(struct world *world, const struct cast *cast)
{
    (void)cast;
    world_apply(world, (struct event){ .type = EV_CLASS_SET, .class_set = { .id = { 8, 8 } } });
}

static void pool_of_no_class(struct world *world, const struct cast *cast)
{
    (void)cast;
    world_apply(world, (struct event){ .type = EV_POOL_SET, .pool_set = { .class_number = 7 } });
}

static void pool_with_nodes(struct world *world, const struct cast *cast)
{
    world_remove(world, EV_POOL_REMOVED, cast->pool);
}

static void project_without_parent(struct world *world, const struct cast *cast)
{
    (void)cast;
    world_apply(
        world,
        (struct event){ .type = EV_PROJECT_SET,
                        .project_set = { .id = { 8, 8 }, .parent = { 9, 9 }, .path = STR("x") } });
}

static void project_path_twice(struct world *world, const struct cast *cast)
{
    (void)cast;
    (void)world_project(world, none, "amber");
}

static void project_renamed(struct world *world, const struct cast *cast)
{
    world_apply(world,
                (struct event){ .type = EV_PROJECT_SET,
                                .project_set = { .id = cast->tenant, .path = STR("birch") } });
}

static void project_with_children(struct world *world, const struct cast *cast)
{
    world_remove(world, EV_PROJECT_REMOVED, cast->tenant);
}

static void project_with_live_work(struct world *world, const struct cast *cast)
{
    world_remove(world, EV_PROJECT_REMOVED, cast->project);
}

static void project_with_held_devices(struct world *world, const struct cast *cast)
{
    world_workload(world, cast->workload, WL_CANCELLED);
    world_remove(world, EV_PROJECT_REMOVED, cast->project);
}

static void node_in_no_pool(struct world *world, const struct cast *cast)
{
    (void)cast;
    (void)world_node(world, "node-2", none);
}

static void node_name_twice(struct world *world, const struct cast *cast)
{
    (void)world_node(world, "node-1", cast->pool);
}

static void node_with_allocations(struct world *world, const struct cast *cast)
{
    world_remove(world, EV_NODE_REMOVED, cast->node);
}

static void device_that_is_not_there(struct world *world, const struct cast *cast)
{
    world_apply(world, (struct event){ .type = EV_DEVICE_CHANGED,
                                       .device_changed = { .node = cast->node, .index = 63 } });
}

static void submitted_twice(struct world *world, const struct cast *cast)
{
    struct workload_record r = { .id = cast->workload,
                                 .project = cast->project,
                                 .state = WL_QUEUED };
    world_apply(world, (struct event){ .type = EV_WORKLOAD_SUBMITTED, .workload_submitted = r });
}

static void submitted_running(struct world *world, const struct cast *cast)
{
    struct workload_record r = { .id = { 8, 8 }, .project = cast->project, .state = WL_RUNNING };
    world_apply(world, (struct event){ .type = EV_WORKLOAD_SUBMITTED, .workload_submitted = r });
}

static void submitted_to_no_project(struct world *world, const struct cast *cast)
{
    (void)cast;
    struct workload_record r = { .id = { 8, 8 }, .state = WL_QUEUED };
    world_apply(world, (struct event){ .type = EV_WORKLOAD_SUBMITTED, .workload_submitted = r });
}

static void changed_after_the_end(struct world *world, const struct cast *cast)
{
    world_workload(world, cast->workload, WL_CANCELLED);
    world_workload(world, cast->workload, WL_CANCELLED);
}

static void forgotten_while_live(struct world *world, const struct cast *cast)
{
    world_remove(world, EV_WORKLOAD_FORGOTTEN, cast->workload);
}

static void forgotten_with_allocations(struct world *world, const struct cast *cast)
{
    world_workload(world, cast->workload, WL_CANCELLED);
    world_remove(world, EV_WORKLOAD_FORGOTTEN, cast->workload);
}

static void granted_to_ended_work(struct world *world, const struct cast *cast)
{
    world_workload(world, cast->workload, WL_CANCELLED);
    (void)world_grant(world, cast->workload, cast->node, 0);
}

static void granted_on_no_node(struct world *world, const struct cast *cast)
{
    (void)world_grant(world, cast->workload, none, 0);
}

static void bill_below_zero(struct world *world, const struct cast *cast)
{
    struct allocation_changed changed = { .allocation = cast->allocation,
                                          .state = AL_ENDED,
                                          .has_segment = true,
                                          .segment = { .duration_ms = -1 } };
    world_apply(world,
                (struct event){ .type = EV_ALLOCATION_CHANGED, .allocation_changed = changed });
}

static void changed_absent(struct world *world, enum event_type type)
{
    /* The id is the first member of every payload here, so one row a type is enough. */
    world_apply(world, (struct event){ .type = type, .removed = { { 77, 77 } } });
}

#define ABSENT(function, type)                                                                     \
    static void function(struct world *world, const struct cast *cast)                             \
    {                                                                                              \
        (void)cast;                                                                                \
        changed_absent(world, type);                                                               \
    }
ABSENT(no_such_class, EV_CLASS_REMOVED)
ABSENT(no_such_pool, EV_POOL_REMOVED)
ABSENT(no_such_profile, EV_PROFILE_REMOVED)
ABSENT(no_such_project, EV_PROJECT_REMOVED)
ABSENT(no_such_token, EV_TOKEN_REMOVED)
ABSENT(no_such_volume, EV_VOLUME_REMOVED)
ABSENT(no_such_reservation, EV_RESERVATION_REMOVED)
ABSENT(no_such_change, EV_CHANGE_REMOVED)
ABSENT(no_work_to_untie, EV_WORKLOAD_UNTIED)
ABSENT(no_such_image, EV_IMAGE_REMOVED)
ABSENT(no_such_credential, EV_CREDENTIAL_REMOVED)
ABSENT(no_such_hook, EV_HOOK_REMOVED)
ABSENT(no_hook_to_test, EV_HOOK_TESTED)
ABSENT(no_such_node, EV_NODE_REMOVED)
ABSENT(no_contact, EV_NODE_CONTACT)
ABSENT(no_holds, EV_NODE_HOLDS)
ABSENT(no_device, EV_DEVICE_CHANGED)
ABSENT(no_workload, EV_WORKLOAD_CHANGED)
ABSENT(no_memory_of_it, EV_WORKLOAD_FORGOTTEN)
ABSENT(no_gang, EV_GANG_CHANGED)
ABSENT(no_allocation, EV_ALLOCATION_CHANGED)
ABSENT(nobody_who_says_it, EV_ALLOCATION_NOTED)

static void test_asserted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*act)(struct world *world, const struct cast *cast);
    } cases[] = {
        { "a gap in the sequence", gap_in_sequence },
        { "a number that is no event type", no_event_type },
        { "a step in a snapshot", restore_of_a_step },
        { "a class number that leaves a gap", class_number_with_gap },
        { "a class number of another class", class_number_of_another },
        { "a pool of no class", pool_of_no_class },
        { "removing a pool with nodes", pool_with_nodes },
        { "a project without its parent", project_without_parent },
        { "a path that is taken", project_path_twice },
        { "a new path of a project", project_renamed },
        { "removing a project with children", project_with_children },
        { "removing a project with live work", project_with_live_work },
        { "removing a project whose work holds devices", project_with_held_devices },
        { "a node in no pool", node_in_no_pool },
        { "a node name that is taken", node_name_twice },
        { "removing a node with allocations", node_with_allocations },
        { "a device that is not there", device_that_is_not_there },
        { "a workload that exists", submitted_twice },
        { "a workload that begins in the middle", submitted_running },
        { "a workload of no project", submitted_to_no_project },
        { "a change after the end", changed_after_the_end },
        { "forgetting live work", forgotten_while_live },
        { "forgetting work that holds devices", forgotten_with_allocations },
        { "a grant to ended work", granted_to_ended_work },
        { "a grant on no node", granted_on_no_node },
        { "a use of negative length", bill_below_zero },
        { "removing a class that is not there", no_such_class },
        { "removing a pool that is not there", no_such_pool },
        { "removing a profile that is not there", no_such_profile },
        { "removing a project that is not there", no_such_project },
        { "removing a token that is not there", no_such_token },
        { "removing a volume that is not there", no_such_volume },
        { "removing a reservation that is not there", no_such_reservation },
        { "removing a change that is not there", no_such_change },
        { "untying work that is not there", no_work_to_untie },
        { "removing an image that is not there", no_such_image },
        { "removing a credential that is not there", no_such_credential },
        { "removing a hook that is not there", no_such_hook },
        { "testing a hook that is not there", no_hook_to_test },
        { "removing a node that is not there", no_such_node },
        { "contact of a node that is not there", no_contact },
        { "holds of a node that is not there", no_holds },
        { "a device of a node that is not there", no_device },
        { "a change of work that is not there", no_workload },
        { "forgetting work that is not there", no_memory_of_it },
        { "gaps of work that is not there", no_gang },
        { "a change of an allocation that is not there", no_allocation },
        { "a word of an allocation that is not there", nobody_who_says_it },
    };
    FOR_EACH_CASE (c, cases)
        CHECK(c->name, is_aborted(c->act));
}

/* Shared by the two tests below: the step that the child takes. */
static unsigned step_from, step_to;

static void workload_step(struct world *world, const struct cast *cast)
{
    struct workload *workload = state_workload(world->state, cast->workload);
    workload->r.state = (enum workload_state)step_from;
    world_workload(world, cast->workload, (enum workload_state)step_to);
}

static void allocation_step(struct world *world, const struct cast *cast)
{
    state_allocation(world->state, cast->allocation)->r.state = (enum allocation_state)step_from;
    world_allocation(world, cast->allocation, (enum allocation_state)step_to);
}

static void test_workload_steps(void **state)
{
    (void)state;
    for (step_from = WL_HELD; step_from < WL_STATE_COUNT; step_from++) {
        for (step_to = WL_HELD; step_to < WL_STATE_COUNT; step_to++) {
            bool is_final = workload_state_is_final((enum workload_state)step_from);
            bool is_legal =
                workload_may_become((enum workload_state)step_from, (enum workload_state)step_to) ||
                (step_from == step_to && !is_final);
            CHECK(enum_name(&workload_state_names, step_from),
                  is_aborted(workload_step) == !is_legal);
        }
    }
}

static void test_allocation_steps(void **state)
{
    (void)state;
    for (step_from = AL_STARTING; step_from < AL_ENDED; step_from++) {
        for (step_to = AL_STARTING; step_to < AL_STATE_COUNT; step_to++) {
            bool is_legal =
                step_from == step_to || allocation_may_become((enum allocation_state)step_from,
                                                              (enum allocation_state)step_to);
            CHECK(enum_name(&allocation_state_names, step_from),
                  is_aborted(allocation_step) == !is_legal);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asserted),
        cmocka_unit_test(test_workload_steps),
        cmocka_unit_test(test_allocation_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
