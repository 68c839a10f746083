/* The self-check in a forked child: what it finds comes back, what it looks at does not change. */
#include "controller/checker.h"
#include "unit/sched/lab.h"
#include "unit/test.h"

enum { MANY = 5000, FEW = 10, TURNS_MAX = 3000, TURN_MS = 20 };

struct world {
    struct lab lab;
    struct loop *loop;
    struct checker *checker;
    unsigned answers;
    unsigned found;
    char text[256];
};

static void on_done(void *arg, unsigned found, const struct error *e)
{
    struct world *world = arg;
    world->answers++;
    world->found = found;
    (void)snprintf(world->text, sizeof(world->text), "%.255s", e->text);
}

static void world_init(struct world *world, int64_t workloads)
{
    struct error e = { 0 };
    *world = (struct world){ .loop = NULL };
    lab_init(&world->lab);
    world->lab.is_unchecked = true;
    world->lab.is_paused = true;
    lab_add_node(&world->lab, (struct lab_node){ .name = "n1" });
    lab_project(&world->lab, "amber", (struct lab_quota){ 0 });
    CHECK("work is there",
          !id_is_none(
              lab_submit(&world->lab, (struct lab_job){ .project = "amber", .count = workloads })));
    CHECK_OK("loop", loop_new(&world->loop, &e), &e);
    world->checker = checker_new(world->loop, on_done, world);
}

static void world_done(struct world *world)
{
    checker_free(world->checker);
    loop_free(world->loop);
    lab_done(&world->lab);
}
DEFINE_CLEANUP_AT(world, struct world, world_done)

static bool start(struct world *world)
{
    return checker_start(world->checker, world->lab.state, world->lab.sched);
}

static void wait_for_answer(struct world *world)
{
    struct error e = { 0 };
    unsigned before = world->answers;
    for (int i = 0; i < TURNS_MAX && world->answers == before; i++)
        CHECK_OK("turn", loop_turn(world->loop, TURN_MS, &e), &e);
    CHECK("it comes to an end", world->answers == before + 1);
}

static void test_sound_state(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, MANY);
    CHECK("it starts", start(&world));
    CHECK("the next one is not started beside it", start(&world));
    wait_for_answer(&world);
    CHECK("and finds nothing", world.found == 0);
    CHECK("one child, one answer", world.answers == 1);
    CHECK("another can follow", start(&world));
    wait_for_answer(&world);
}

static void test_drift_is_found(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, MANY);
    struct node *node = state_node_by_name(world.lab.state, STR("n1"));
    node->pool->node_count++; /* as a fold gone wrong would leave it */
    CHECK("it starts", start(&world));
    node->pool->node_count--; /* the child has the state as it was */
    wait_for_answer(&world);
    CHECK("and finds it", world.found == ENGINE_DRIFT_STATE);
    CHECK("and says what", world.text[0] != '\0');
    CHECK("it looks again", start(&world));
    wait_for_answer(&world);
    CHECK("at what is sound now", world.found == 0);
}

static void test_small_states_are_for_the_engine(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, FEW);
    CHECK("not worth a child", !start(&world) && world.answers == 0);
}

static void test_can_be_given_up(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, MANY);
    CHECK("it starts", start(&world));
    checker_free(world.checker);
    world.checker = NULL;
    struct error e = { 0 };
    CHECK_OK("turn", loop_turn(world.loop, 0, &e), &e);
    CHECK("nothing comes of it", world.answers == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_state),
        cmocka_unit_test(test_drift_is_found),
        cmocka_unit_test(test_small_states_are_for_the_engine),
        cmocka_unit_test(test_can_be_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
