/* What metrics say of the scheduler: counted from events, bounded by the tenants there are. */
#include "engine/tally.h"
#include "unit/sched/lab.h"
#include "unit/test.h"

DEFINE_CLEANUP_AT(tally, struct sched_tally, tally_done)

struct world {
    struct lab lab;
    struct sched_tally tally;
    struct id amber, work;
};

static void world_init(struct world *world)
{
    *world = (struct world){ .tally = { 0 } };
    lab_init(&world->lab);
    lab_add_node(&world->lab,
                 (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    world->amber = lab_project(&world->lab, "amber", (struct lab_quota){ 0 });
    world->work =
        lab_submit(&world->lab, (struct lab_job){ .project = "amber", .gpu_milli = 1000 });
}

static void world_done(struct world *world)
{
    tally_done(&world->tally);
    lab_done(&world->lab);
}
DEFINE_CLEANUP_AT(world, struct world, world_done)

/* A step of the workload as the journal would say it. */
static void step(struct world *world, enum workload_state to, enum cause cause, int64_t evictions)
{
    const struct event event = {
        .type = EV_WORKLOAD_CHANGED,
        .at = world->lab.now,
        .tenant = world->amber,
        .workload_changed = { .workload = world->work,
                              .state = to,
                              .cause = cause,
                              .evictions = evictions },
    };
    tally_event(&world->tally, world->lab.state, world->lab.sched, &event);
}

static void test_evictions_by_tenant_and_cause(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world);
    step(&world, WL_STOPPING, CAUSE_RECLAIMED_FOR_QUOTA, 1);
    step(&world, WL_STOPPING, CAUSE_RECLAIMED_FOR_QUOTA, 1);
    step(&world, WL_STOPPING, CAUSE_DRAINED, 1);
    step(&world, WL_STOPPING, CAUSE_USER_CANCELLED, 0);
    const struct sched_tally *tally = &world.tally;
    CHECK("reclaimed", tally_evictions(tally, world.amber, CAUSE_RECLAIMED_FOR_QUOTA) == 2);
    CHECK("drained", tally_evictions(tally, world.amber, CAUSE_DRAINED) == 1);
    CHECK("a cancellation is none", tally_evictions(tally, world.amber, CAUSE_USER_CANCELLED) == 0);
    CHECK("of others", tally_evictions(tally, world.work, CAUSE_DRAINED) == 0);

    const struct event removed = { .type = EV_PROJECT_REMOVED, .removed = { world.amber } };
    tally_event(&world.tally, world.lab.state, world.lab.sched, &removed);
    CHECK("gone with the tenant",
          tally->first_tenant == NULL && tally_evictions(tally, world.amber, CAUSE_DRAINED) == 0);
}

static void test_starts(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world);
    step(&world, WL_STARTING, CAUSE_GRANTED, 0);
    CHECK("a start", world.tally.starts == 1);
    CHECK("that nobody promised", world.tally.promised_starts == 0 && world.tally.late_starts == 0);
}

/* The device is taken for 100 s; who waits for it is promised the end of that. */
static void test_promises(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world);
    CHECK("cancelled", lab_act(&world.lab, CMD_WORKLOAD_CANCEL, world.work) == ERR_OK);
    lab_settle(&world.lab);
    (void)lab_submit(
        &world.lab, (struct lab_job){ .project = "amber", .gpu_milli = 1000, .time_limit_s = 100 });
    lab_settle(&world.lab);
    world.work = lab_submit(
        &world.lab, (struct lab_job){ .project = "amber", .gpu_milli = 1000, .time_limit_s = 100 });
    lab_settle(&world.lab);
    struct mono promised =
        sched_promised(world.lab.sched, state_workload(world.lab.state, world.work));
    CHECK("there is a promise", promised.ns != INT64_MAX);
    world.lab.now = promised;
    step(&world, WL_STARTING, CAUSE_GRANTED, 0);
    CHECK("kept", world.tally.promised_starts == 1 && world.tally.late_starts == 0);
    world.lab.now = mono_add_s(promised, 5);
    step(&world, WL_STARTING, CAUSE_GRANTED, 0);
    CHECK("late", world.tally.promised_starts == 2 && world.tally.late_starts == 1);
    CHECK("by so much", world.tally.late_ns == 5 * (uint64_t)NS_PER_S);
}

static void test_cycles(void **state)
{
    (void)state;
    AUTO(tally) struct sched_tally tally = { 0 };
    tally_cycle_begin(&tally, (struct mono){ NS_PER_S });
    tally_cycle_end(&tally, (struct mono){ 2 * NS_PER_S }, (struct wall){ 1 }, true);
    CHECK("one that goes on is none yet", tally.cycles == 0 && tally.last_cycle.ns == 0);
    tally_cycle_begin(&tally, (struct mono){ 3 * NS_PER_S });
    tally_cycle_end(&tally, (struct mono){ 4 * NS_PER_S }, (struct wall){ 7 }, false);
    CHECK("from its first step", tally.cycles == 1 && tally.cycle_ns == 3 * (uint64_t)NS_PER_S &&
                                     tally.cycle_ns_max == tally.cycle_ns);
    CHECK("ended then", tally.last_cycle.ns == 7);
    CHECK("between 1 and 10 s", tally.cycle_counts[TALLY_BUCKETS - 1] == 1);
    tally_cycle_begin(&tally, (struct mono){ 5 * NS_PER_S });
    tally_cycle_end(&tally, (struct mono){ 5 * NS_PER_S + 1 }, (struct wall){ 8 }, false);
    CHECK("the next is its own", tally.cycles == 2 && tally.cycle_counts[0] == 1);
    tally_cycle_begin(&tally, (struct mono){ 6 * NS_PER_S });
    tally_cycle_end(&tally, (struct mono){ 60 * NS_PER_S }, (struct wall){ 9 }, false);
    uint64_t counted = 0;
    for (size_t i = 0; i < TALLY_BUCKETS; i++)
        counted += tally.cycle_counts[i];
    CHECK("longer than all bounds", tally.cycles == 3 && counted == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evictions_by_tenant_and_cause),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_cycles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
