#include "sim/bench.h"

#include <stdlib.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/file.h"
#include "sim/agents.h"
#include "sim/load.h"

enum { SLICE = 1000, EVENT_EVERY_MS = 10, LEVELS = 3 };

/* What is asked for, and how much of all work asks for it, in percent. */
struct shape_part {
    const char *fields;
    int64_t percent;
};

static const struct shape_part shape_parts[] = {
    { "gpus: 1", 60 }, { "gpus: 2", 10 },  { "gpus: 4", 10 },
    { "gpus: 8", 8 },  { "gpus: 0.5", 8 }, { "gpus: 8, members: 2", 4 },
};

struct bench {
    const struct bench_options *options;
    struct world world;
    struct load load;
    struct sim_job *jobs; /* by project, then by shape */
    uint64_t seed;
    VEC(int64_t) event_ns;
};

/* SplitMix64 again: the world's own numbers are ids. */
static uint64_t number_below(struct bench *bench, uint64_t bound)
{
    bench->seed = bench->seed * 6364136223846793005u + 1442695040888963407u;
    return (bench->seed >> 33) % bound;
}

static int64_t fan_of(int64_t projects)
{
    int64_t fan = 1;
    while (fan * fan * fan < projects)
        fan++;
    return fan;
}

static const char *path_of(const struct bench *bench, int64_t i, struct arena *arena)
{
    int64_t fan = fan_of(bench->options->projects);
    return arena_format(arena, "t%lld/d%lld/p%lld", (long long)(i / fan / fan),
                        (long long)(i / fan % fan), (long long)(i % fan));
}

static enum err bench_load(struct bench *bench, struct arena *arena, struct error *e)
{
    const struct bench_options *o = bench->options;
    int64_t capacity = o->nodes * o->gpus;
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text,
               "name: bench\n"
               "pools: [{name: n, class: gpu, nodes: %lld, gpus: %lld}]\n"
               "tenants:\n",
               (long long)o->nodes, (long long)o->gpus);
    for (int64_t i = 0; i < o->projects; i++)
        buf_format(&text, "  - {path: %s, quota: {gpu: %lld}}\n", path_of(bench, i, arena),
                   (long long)(capacity * (i + 1) / o->projects - capacity * i / o->projects));
    buf_format(&text, "events:\n");
    for (size_t i = 0; i < COUNT_OF(shape_parts); i++)
        buf_format(&text, "  - {at: 0s, submit: {name: j, project: x, class: gpu, %s}}\n",
                   shape_parts[i].fields);
    buf_format(&text, "expect: []\n");
    enum err rc = load_read(str_copy(arena, buf_str(&text)), arena, &bench->load, e);
    if (rc != ERR_OK)
        return rc;
    bench->jobs =
        arena_new(arena, (size_t)o->projects * COUNT_OF(shape_parts), sizeof(*bench->jobs));
    for (int64_t i = 0; i < o->projects; i++) {
        for (size_t k = 0; k < COUNT_OF(shape_parts); k++) {
            struct sim_job *job = &bench->jobs[(size_t)i * COUNT_OF(shape_parts) + k];
            *job = bench->load.scenario.events[k].job;
            job->project = str_of(path_of(bench, i, arena));
            job->duration_s = SIM_NEVER; /* ended one by one, as events */
        }
    }
    return ERR_OK;
}

static enum err submit_one(struct bench *bench, struct error *e)
{
    int64_t part = (int64_t)number_below(bench, 100);
    size_t shape = 0;
    for (; part >= shape_parts[shape].percent; shape++)
        part -= shape_parts[shape].percent;
    size_t project = (size_t)number_below(bench, (uint64_t)bench->options->projects);
    return world_submit(&bench->world, &bench->jobs[project * COUNT_OF(shape_parts) + shape], e);
}

static void decide_all(struct bench *bench)
{
    while (engine_turn(bench->world.engine, SLICE))
        continue;
}

/* ---- the first pass ------------------------------------------------------------------------ */

static enum err first_pass(struct bench *bench, struct bench_result *out, struct error *e)
{
    for (int64_t i = 0; i < bench->options->workloads; i++) {
        enum err rc = submit_one(bench, e);
        if (rc != ERR_OK)
            return rc;
        if (i % SLICE == 0)
            world_flush(&bench->world);
    }
    world_flush(&bench->world);
    int64_t began_ns = clock_cpu_ns();
    decide_all(bench);
    out->first_pass_s = (double)(clock_cpu_ns() - began_ns) / (double)NS_PER_S;
    size_t placed = engine_state(bench->world.engine)->allocation_count;
    out->placements_per_s = (double)placed / MAX_OF(out->first_pass_s, 1e-9);
    world_settle(&bench->world);
    return ERR_OK;
}

/* ---- events -------------------------------------------------------------------------------- */

/* A node with something on it; NULL: none was found. */
static struct agent *busy_agent(struct bench *bench)
{
    for (size_t tries = 0; tries < 1000; tries++) {
        struct agent *agent = &bench->world.agents[number_below(bench, bench->world.agent_count)];
        if (agent->is_up && agent->processes.count > 0)
            return agent;
    }
    return NULL;
}

static enum err one_event(struct bench *bench, struct error *e)
{
    uint64_t kind = number_below(bench, 1000);
    struct agent *agent = kind < 400 ? NULL : busy_agent(bench);
    if (agent == NULL)
        return submit_one(bench, e);
    if (kind >= 998) {
        const struct sim_event loss = { .type = SIM_FAIL_NODE, .name = agent->name };
        return world_apply(&bench->world, &loss, e);
    }
    struct process *process = &agent->processes.items[number_below(bench, agent->processes.count)];
    process->ends_at = bench->world.now;
    agent_stir(&bench->world, agent);
    agents_end_work(&bench->world);
    return ERR_OK;
}

static int ns_order(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static enum err events(struct bench *bench, struct bench_result *out, struct error *e)
{
    for (int64_t i = 0; i < bench->options->events; i++) {
        world_advance(&bench->world, world_t(&bench->world) + EVENT_EVERY_MS * NS_PER_MS);
        int64_t began_ns = clock_cpu_ns();
        enum err rc = one_event(bench, e);
        if (rc != ERR_OK)
            return rc;
        decide_all(bench);
        vec_push(&bench->event_ns, clock_cpu_ns() - began_ns);
        world_settle(&bench->world);
    }
    size_t count = bench->event_ns.count;
    if (count == 0)
        return ERR_OK;
    qsort(bench->event_ns.items, count, sizeof(int64_t), ns_order);
    size_t middle = (count - 1) / 2;
    size_t near_last = (count * 99 - 1) / 100;
    out->event_us_p50 = (double)bench->event_ns.items[middle] / 1000.0;
    out->event_us_p99 = (double)bench->event_ns.items[near_last] / 1000.0;
    out->event_us_max = (double)bench->event_ns.items[count - 1] / 1000.0;
    return ERR_OK;
}

/* The second number of statm is what is resident, in pages. */
static enum err resident_mib(double *out, struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    enum err rc = file_read("/proc/self/statm", 4096, &text, e);
    if (rc != ERR_OK)
        return rc;
    struct str rest = buf_str(&text);
    int64_t pages = 0;
    (void)str_cut(&rest, ' ');
    if (!str_to_i64(str_cut(&rest, ' '), 0, INT64_MAX / 65536, &pages))
        return err_set(e, ERR_CORRUPT, "/proc/self/statm has no second number");
    *out = (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
    return ERR_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static size_t ended_count(const struct world *world)
{
    size_t count = 0;
    for (size_t i = 0; i < world->jobs.count; i++)
        count += world_workload(world, world->jobs.items[i])->r.state == WL_SUCCEEDED;
    return count;
}

enum err bench_run(const struct bench_options *options, struct arena *arena,
                   struct bench_result *out, struct error *e)
{
    struct bench bench = { .options = options };
    *out = (struct bench_result){ 0 };
    int64_t began_ns = clock_cpu_ns();
    enum err rc = bench_load(&bench, arena, e);
    if (rc != ERR_OK)
        return rc;
    rc = world_start(&bench.world, &bench.load.scenario, arena, NULL, e);
    bench.world.is_unchecked = true;
    if (rc == ERR_OK)
        rc = first_pass(&bench, out, e);
    if (rc == ERR_OK)
        rc = resident_mib(&out->resident_mib, e);
    if (rc == ERR_OK)
        rc = events(&bench, out, e);
    if (rc == ERR_OK)
        out->completed = ended_count(&bench.world);
    vec_done(&bench.event_ns);
    world_end(&bench.world);
    out->cpu_s = (double)(clock_cpu_ns() - began_ns) / (double)NS_PER_S;
    return rc;
}
