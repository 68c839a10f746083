/*
 * model_bench.c - how fast the fold is: submissions, grants, replay, snapshot, self-check.
 *
 * CPU time of this process, so that what else runs matters little.
 *
 *   ninja -C BUILD bench/model_bench && BUILD/bench/model_bench
 */
#include <string.h>
#include <time.h>

#include "unit/model/dump.h"
#include "unit/model/world.h"
#include "unit/test.h"

enum { WORKLOADS = 200000, MEMBERS = 100000, STEPS = 200000 };

static double cpu_s(void)
{
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void report(const char *what, size_t count, double start)
{
    double spent = cpu_s() - start;
    print_message("%-44s %9.0f/s  (%zu in %.3f s)\n", what, (double)count / spent, count, spent);
}

static void applied(struct state *state, struct event *event)
{
    event->sequence = state->sequence + 1;
    event->at.ns = state->now.ns + 1;
    evolve(state, event);
}

static struct id id_of(uint64_t number)
{
    static const uint8_t key[16];
    return id_derive(key, number, 1);
}

static void submit_all(struct world *world, struct id project)
{
    char spec[301];
    double start = cpu_s();
    for (uint64_t i = 0; i < WORKLOADS; i++) {
        struct event event = { .type = EV_WORKLOAD_SUBMITTED };
        struct workload_record *r = &event.workload_submitted;
        (void)snprintf(spec, sizeof(spec), "%0300llu", (unsigned long long)i);
        *r = (struct workload_record){ .id = id_of(i),
                                       .project = project,
                                       .name = STR("train-resnet"),
                                       .user = STR("ada"),
                                       .spec_json = { spec, 300 },
                                       .state = WL_QUEUED };
        applied(world->state, &event);
    }
    report("workload_submitted, own spec of 300 bytes", WORKLOADS, start);
}

static void run_and_end(struct world *world, struct id node)
{
    double start = cpu_s();
    for (uint64_t i = 0; i < MEMBERS; i++) {
        struct event granted = { .type = EV_ALLOCATION_GRANTED };
        granted.allocation_granted =
            (struct allocation_record){ .id = id_of(WORKLOADS + i),
                                        .workload = id_of(i),
                                        .project = world->state->first_tenant->r.id,
                                        .node = node,
                                        .charge_milli = 1000,
                                        .state = AL_STARTING };
        applied(world->state, &granted);
        struct event ended = { .type = EV_ALLOCATION_CHANGED };
        ended.allocation_changed = (struct allocation_changed){
            .allocation = id_of(WORKLOADS + i),
            .state = AL_ENDED,
            .has_segment = true,
            .segment = { .charge_milli = 1000, .duration_ms = 5, .amount_micros = 7 }
        };
        applied(world->state, &ended);
    }
    report("allocation_granted and its end", MEMBERS, start);
}

static void check_and_restore(struct world *world)
{
    struct error e = { 0 };
    double start = cpu_s();
    bool is_right = state_check(world->state, &e);
    report(is_right ? "self-check, per workload" : e.text, WORKLOADS, start);
    start = cpu_s();
    AUTO(state) struct state *copy = restore_copy(world->state);
    report("walk and restore, per workload", copy->workload_count, start);
}

static void cancel_and_forget(struct world *world)
{
    double start = cpu_s();
    for (uint64_t i = 0; i < WORKLOADS; i++) {
        struct event cancelled = { .type = EV_WORKLOAD_CHANGED };
        cancelled.workload_changed =
            (struct workload_changed){ .workload = id_of(i), .state = WL_CANCELLED };
        applied(world->state, &cancelled);
        struct event forgotten = { .type = EV_WORKLOAD_FORGOTTEN, .removed = { id_of(i) } };
        applied(world->state, &forgotten);
    }
    report("workload_changed and workload_forgotten", WORKLOADS, start);
}

static void replay(void)
{
    AUTO(world) struct world world;
    world_init(&world, 42);
    for (size_t i = 0; i < STEPS; i++)
        world_step(&world);
    double start = cpu_s();
    AUTO(state) struct state *replayed = world_replay(&world);
    report("replay of a random history, events", (size_t)replayed->sequence, start);
}

int main(void)
{
    const struct id none = { 0 };
    AUTO(world) struct world world;
    world_init(&world, 42);
    (void)world_class(&world, "h100-80g");
    struct id pool = world_pool(&world, "main", 0);
    struct id node = world_node(&world, "node-1", pool);
    struct id tenant = world_project(&world, none, "amber");
    submit_all(&world, tenant);
    run_and_end(&world, node);
    check_and_restore(&world);
    cancel_and_forget(&world);
    replay();
    return 0;
}
