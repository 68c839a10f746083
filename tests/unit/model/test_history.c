/*
 * Random histories: after every event all counts and links are right; at random moments the state
 * is replaced by what its snapshot gives back, and history goes on; replaying all of it gives the
 * same state; and when everything is removed, no byte is left behind.
 */
#include "unit/model/dump.h"
#include "unit/model/world.h"
#include "unit/test.h"

enum { HISTORIES = 8, STEPS = 2500 };

static void check(const char *name, const struct state *state)
{
    struct error e = { 0 };
    if (!state_check(state, &e))
        test_fail(name, e.text, __FILE__, __LINE__);
}

/* The copy has what can be reached, and no more; equal bytes mean that nothing has leaked. */
static void check_snapshot(struct world *world)
{
    struct state *copy = restore_copy(world->state);
    check("a restored state", copy);
    CHECK("a snapshot gives back the same state", dump_is_equal(world->state, copy));
    state_free(world->state);
    world->state = copy;
}

static void check_replay(const struct world *world)
{
    AUTO(state) struct state *replayed = world_replay(world);
    CHECK("a replay gives the same state", dump_is_equal(world->state, replayed));
}

static void run_history(uint64_t seed)
{
    AUTO(world) struct world world;
    world_init(&world, seed);
    for (size_t i = 0; i < STEPS; i++) {
        world_step(&world);
        check("after a step", world.state);
        if (test_below(&world.random, 100) == 0)
            check_snapshot(&world);
    }
    check_replay(&world);
    world_clear(&world);
    check("after the end", world.state);
    check_replay(&world);
    check_snapshot(&world);
    CHECK("no project is left", world.state->project_count == 0);
    CHECK("no workload is left", world.state->workload_count == 0);
    CHECK("no allocation is left", world.state->allocation_count == 0);
    CHECK("no node is left", world.state->node_count == 0);
}

static void test_histories(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (uint64_t i = 0; i < HISTORIES; i++)
        run_history(seed + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_histories) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
