/* Reports: ended and running use of a subtree, by class; and that nothing is lost between them. */
#include "ledger/ledger.h"
#include "unit/model/world.h"
#include "unit/test.h"

static const struct id none;

struct cast {
    struct id node, amber, vision, train, birch;
};

static struct cast cast_of(struct world *world)
{
    struct cast cast = { 0 };
    (void)world_class(world, "h100-80g");
    (void)world_class(world, "cpu-x86");
    struct id pool = world_pool(world, "main", 0);
    cast.node = world_node(world, "node-1", pool);
    cast.amber = world_project(world, none, "amber");
    cast.vision = world_project(world, cast.amber, "vision");
    cast.train = world_project(world, cast.vision, "train");
    cast.birch = world_project(world, none, "birch");
    return cast;
}

/* A running allocation of that class and charge, whose use begins at that moment. */
static struct allocation *run(struct world *world, const struct cast *cast, struct id project,
                              int64_t class_number, int64_t milli)
{
    struct id workload = world_submit(world, project);
    struct id id = world_grant_of(world, workload, cast->node, 0, class_number, milli);
    struct allocation *a = state_allocation(world->state, id);
    world_allocation(world, a->r.id, AL_RUNNING);
    return a;
}

/* Ends it as the core does: with the segment that the ledger makes. */
static void end(struct world *world, struct allocation *a)
{
    struct event event = { .type = EV_ALLOCATION_CHANGED };
    struct allocation_changed *changed = &event.allocation_changed;
    struct segment_end end = { .tenant = a->workload->project->tenant->r.id,
                               .price_micros_per_hour = 2000000,
                               .at = world->state->now };
    *changed = (struct allocation_changed){ .allocation = a->r.id, .state = AL_ENDED };
    changed->has_segment = ledger_segment(&a->r, &end, &changed->segment);
    world_apply(world, event);
}

static struct mono later(const struct world *world, int64_t ms)
{
    return (struct mono){ world->state->now.ns + ms * NS_PER_MS };
}

/* An absent line has no project and no use. */
static const struct usage_line *line_of(const struct usage_report *report, struct id project,
                                        int64_t class_number)
{
    static const struct usage_line absent;
    for (size_t i = 0; i < report->count; i++) {
        if (id_eq(report->lines[i].project->r.id, project) &&
            report->lines[i].class_number == class_number)
            return &report->lines[i];
    }
    return &absent;
}

static void test_nothing(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct usage_report report = { 0 };
    ledger_report(world.state, NULL, world.state->now, &world.arena, &report);
    CHECK("no projects, no lines", report.count == 0);
    struct cast cast = cast_of(&world);
    (void)world_grant(&world, world_submit(&world, cast.train), cast.node, 0);
    ledger_report(world.state, NULL, later(&world, 1000), &world.arena, &report);
    CHECK("what only starts is not used", report.count == 0);
}

static void test_running(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    const struct allocation *a = run(&world, &cast, cast.train, 0, 500);
    struct mono at = { a->r.started.ns + 3600000 * NS_PER_MS };
    struct usage_report report = { 0 };
    ledger_report(world.state, NULL, at, &world.arena, &report);
    CHECK("a line for each project above", report.count == 3);
    struct id up[] = { cast.amber, cast.vision, cast.train };
    for (size_t i = 0; i < COUNT_OF(up); i++) {
        const struct usage_line *line = &report.lines[i];
        CHECK("parents first", id_eq(line->project->r.id, up[i]));
        CHECK("half a device for an hour", line->milli_ms == INT64_C(500) * 3600000);
        CHECK("at the present price", line->amount_micros == 1000000);
        CHECK("all of it is running", line->running_milli_ms == line->milli_ms &&
                                          line->running_amount_micros == line->amount_micros &&
                                          line->segments == 0);
    }
    world_allocation(&world, a->r.id, AL_CLEANING);
    at.ns += 1000 * NS_PER_S;
    ledger_report(world.state, NULL, at, &world.arena, &report);
    CHECK("hand-over is not billed",
          line_of(&report, cast.train, 0)->running_milli_ms == 0 && report.lines[0].segments == 1);
}

static void test_subtrees(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    end(&world, run(&world, &cast, cast.vision, 1, 4000));
    (void)run(&world, &cast, cast.train, 0, 1000);
    (void)run(&world, &cast, cast.vision, 0, 2000);
    (void)run(&world, &cast, cast.birch, 0, 8000);
    struct mono at = later(&world, 60000);
    struct usage_report report = { 0 };

    ledger_report(world.state, NULL, at, &world.arena, &report);
    CHECK("all tenants", report.count == 6);
    int64_t below = line_of(&report, cast.train, 0)->milli_ms;
    CHECK("a parent has what its child has, and its own",
          line_of(&report, cast.vision, 0)->milli_ms > 2 * below);
    CHECK("classes apart", line_of(&report, cast.train, 1)->project == NULL &&
                               line_of(&report, cast.amber, 1)->segments == 1);

    struct project *vision = state_project(world.state, cast.vision);
    struct usage_report part = { 0 };
    ledger_report(world.state, vision, at, &world.arena, &part);
    CHECK("only the subtree", part.count == 3 && line_of(&part, cast.amber, 0)->project == NULL &&
                                  line_of(&part, cast.birch, 0)->project == NULL);
    CHECK("with the same figures", line_of(&part, cast.vision, 0)->amount_micros ==
                                       line_of(&report, cast.vision, 0)->amount_micros);

    ledger_report(world.state, state_project(world.state, cast.birch), at, &world.arena, &part);
    CHECK("the last tenant ends the report", part.count == 1);
    CHECK("before it began", line_of(&part, cast.birch, 0)->running_milli_ms > 0);
    ledger_report(world.state, state_project(world.state, cast.birch), (struct mono){ 1 },
                  &world.arena, &part);
    CHECK("a moment before the start has no use", part.count == 0);
}

/* What was running becomes what has ended, and nothing appears or disappears with it. */
static void test_conservation(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, test_seed());
    struct cast cast = cast_of(&world);
    struct id projects[] = { cast.amber, cast.vision, cast.train, cast.birch };
    for (size_t round = 0; round < 60; round++) {
        struct id project = projects[test_below(&world.random, COUNT_OF(projects))];
        struct allocation *a =
            run(&world, &cast, project, 0, 1 + (int64_t)test_below(&world.random, 16000));
        for (size_t i = 0; i < 3; i++)
            world_apply(&world, (struct event){ .type = EV_SETTINGS_CHANGED }); /* time goes on */
        struct mono at = world.state->now;
        struct usage_report before = { 0 };
        struct usage_report after = { 0 };
        ledger_report(world.state, NULL, at, &world.arena, &before);
        end(&world, a);
        ledger_report(world.state, NULL, at, &world.arena, &after);
        CHECK("the same lines", before.count == after.count);
        for (size_t i = 0; i < before.count; i++) {
            CHECK("the same use", before.lines[i].milli_ms == after.lines[i].milli_ms);
            CHECK("the same amount", before.lines[i].amount_micros == after.lines[i].amount_micros);
            CHECK("nothing runs", after.lines[i].running_milli_ms == 0);
        }
    }
}

static void test_totals_stop(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    (void)run(&world, &cast, cast.birch, 0, INT64_MAX / 4);
    (void)run(&world, &cast, cast.birch, 0, INT64_MAX / 4);
    struct usage_report report = { 0 };
    ledger_report(world.state, NULL, later(&world, 3600000), &world.arena, &report);
    CHECK("use stops at the top", report.lines[0].milli_ms == INT64_MAX);
    CHECK("amounts as well", report.lines[0].amount_micros == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),     cmocka_unit_test(test_running),
        cmocka_unit_test(test_subtrees),    cmocka_unit_test(test_conservation),
        cmocka_unit_test(test_totals_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
