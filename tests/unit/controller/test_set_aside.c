/* A workload at which the scheduler fails: the process dies, the next one goes on without it. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/set_aside.h"
#include "unit/sched/lab.h"
#include "unit/test.h"
#include "unit/test_dir.h"

enum { POISONED, WELL, WORKS };

struct world {
    struct engine *engine;
    struct mono now;
    struct wall wall;
    struct id works[WORKS];
    uint64_t entropy;
    unsigned reported;
};

/* ---- seams: a store that takes everything at once ------------------------------------------ */

static struct mono seam_mono(void *arg)
{
    return ((struct world *)arg)->now;
}

static struct wall seam_wall(void *arg)
{
    return ((struct world *)arg)->wall;
}

static void seam_clock(void *arg, struct store_clock *out)
{
    *out = (struct store_clock){ .mono = seam_mono(arg) };
}

static void seam_entropy(void *arg, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)test_random(&((struct world *)arg)->entropy);
}

static void seam_commit(void *arg, const struct store_batch *batch)
{
    (void)batch;
    engine_committed(((struct world *)arg)->engine, ERR_OK, NULL);
}

static void seam_build(void *arg, const struct state *state, const struct node *node,
                       struct buf *out)
{
    (void)arg;
    (void)state;
    (void)node;
    (void)out;
}

static void seam_send(void *arg, struct id node, struct str bytes)
{
    (void)arg;
    (void)node;
    (void)bytes;
}

static void seam_publish(void *arg, const struct event *event, struct str body)
{
    (void)arg;
    (void)event;
    (void)body;
}

static void seam_report(void *arg, const char *what, const struct error *e)
{
    print_message("# reported: %s: %s\n", what, e->text);
    ((struct world *)arg)->reported++;
}

/* An engine with two workloads that wait and room for both. */
static void world_start(struct world *world)
{
    const struct engine_seams seams = { .arg = world,
                                        .mono_now = seam_mono,
                                        .wall_now = seam_wall,
                                        .machine_clock = seam_clock,
                                        .entropy = seam_entropy,
                                        .commit = seam_commit,
                                        .desired_build = seam_build,
                                        .desired_send = seam_send,
                                        .publish = seam_publish,
                                        .report = seam_report };
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab.is_paused = true;
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    *world = (struct world){ .now = lab.now, .wall = lab.wall, .entropy = 3 };
    for (size_t i = 0; i < WORKS; i++)
        world->works[i] =
            lab_submit(&lab, (struct lab_job){ .project = "amber", .gpu_milli = 1000 });
    sched_free(lab.sched);
    lab.sched = NULL;
    world->engine = engine_new(&seams, lab.state);
    lab.state = NULL; /* the engine's */
    engine_start(world->engine, engine_state(world->engine)->epoch + 1, STR("test"));
}

static void world_end(struct world *world)
{
    engine_free(world->engine);
}
DEFINE_CLEANUP_AT(world, struct world, world_end)

static struct workload *work(const struct world *world, size_t i)
{
    return state_workload(engine_state(world->engine), world->works[i]);
}

/* A record that no command could have made: its volumes are nowhere. */
static void poison(const struct world *world)
{
    work(world, POISONED)->r.volumes = (struct id_list){ (void *)(uintptr_t)4096, 1 };
}

static void cure(const struct world *world)
{
    work(world, POISONED)->r.volumes = (struct id_list){ 0 };
}

static struct id looked_at(void *arg)
{
    return sched_looked_at(engine_sched(((struct world *)arg)->engine));
}

/* What a berthd would do; ends by a signal, or by itself. */
static void turn_and_exit(struct world *world)
{
    while (engine_turn(world->engine, 100))
        continue;
    _exit(0);
}

static void watch_or_exit(struct world *world, const char *path)
{
    struct error e = { 0 };
    static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        (void)signal(signals[i], SIG_DFL); /* instead of cmocka's, which goes on */
    if (freopen("/dev/null", "w", stderr) == NULL ||
        set_aside_watch(path, looked_at, world, &e) != ERR_OK)
        _exit(3);
}

static int run_in_child(struct world *world, const char *path)
{
    int status = 0;
    pid_t child = fork();
    CHECK("fork", child >= 0);
    if (child == 0) {
        watch_or_exit(world, path);
        turn_and_exit(world);
    }
    CHECK("it ended", waitpid(child, &status, 0) == child);
    return status;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_the_others_go_on(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(world) struct world world;
    char path[256];
    (void)test_dir_path(&dir, "looked_at", path);
    world_start(&world);
    poison(&world);
    int status = run_in_child(&world, path);
    CHECK("it dies at it", !WIFEXITED(status) || WEXITSTATUS(status) != 0);
    CHECK("and what it died at is known", id_eq(set_aside_noted(path), world.works[POISONED]));

    set_aside_apply(world.engine, path);
    while (engine_turn(world.engine, 100))
        continue;
    CHECK("the other one starts", work(&world, WELL)->r.state == WL_STARTING);
    CHECK("this one waits for a person", work(&world, POISONED)->r.state == WL_HELD);
    CHECK("with a cause", work(&world, POISONED)->r.cause == CAUSE_MISCONFIGURED);
    CHECK("and a text", work(&world, POISONED)->r.detail.size > 0);
    CHECK("which is durable: it is forgotten", id_is_none(set_aside_noted(path)));
    CHECK("nothing was reported", world.reported == 0);
    cure(&world);
}

static void test_nothing_to_set_aside(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(world) struct world world;
    char path[256];
    (void)test_dir_path(&dir, "looked_at", path);
    world_start(&world);
    CHECK("no file", id_is_none(set_aside_noted(path)));
    set_aside_apply(world.engine, path);
    int status = run_in_child(&world, path);
    CHECK("it does not die", WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK("nothing was noted", id_is_none(set_aside_noted(path)));
    set_aside_apply(world.engine, path);
    while (engine_turn(world.engine, 100))
        continue;
    for (size_t i = 0; i < WORKS; i++)
        CHECK("all start", work(&world, i)->r.state == WL_STARTING);
}

/* Its owner cancelled it in another way, or retention took it: the start goes on. */
static void test_what_is_gone_is_forgotten(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(world) struct world world;
    char path[256];
    const struct id unknown = { 5, 6 };
    (void)test_dir_path(&dir, "looked_at", path);
    FILE *file = fopen(path, "w");
    CHECK("noted",
          file != NULL && fwrite(&unknown, sizeof(unknown), 1, file) == 1 && fclose(file) == 0);
    world_start(&world);
    CHECK("read", id_eq(set_aside_noted(path), unknown));
    set_aside_apply(world.engine, path);
    while (engine_turn(world.engine, 100))
        continue;
    CHECK("forgotten", id_is_none(set_aside_noted(path)));
    CHECK("a file that is too long has nothing",
          truncate(path, 100) == 0 && id_is_none(set_aside_noted(path)));
}

/* A fork that works on a copy of the state says nothing about it. */
static void test_children_note_nothing(void **state)
{
    (void)state;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(world) struct world world;
    char path[256];
    int status = 0;
    (void)test_dir_path(&dir, "looked_at", path);
    world_start(&world);
    poison(&world);
    pid_t watched = fork();
    CHECK("fork", watched >= 0);
    if (watched == 0) {
        watch_or_exit(&world, path);
        if (fork() == 0)
            turn_and_exit(&world);
        _exit(wait(&status) > 0 && status != 0 ? 0 : 4);
    }
    CHECK("the child of it died", waitpid(watched, &status, 0) == watched && status == 0);
    CHECK("without a word", id_is_none(set_aside_noted(path)));
    cure(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_others_go_on),
        cmocka_unit_test(test_nothing_to_set_aside),
        cmocka_unit_test(test_what_is_gone_is_forgotten),
        cmocka_unit_test(test_children_note_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
