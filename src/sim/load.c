#include "sim/load.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "sim/world.h"

enum err load_read(struct str text, struct arena *arena, struct load *out, struct error *e)
{
    struct doc *docs = NULL;
    size_t count = 0;
    *out = (struct load){ 0 };
    enum err rc = doc_read(text, arena, &docs, &count, e);
    return rc == ERR_OK ? scenario_read(&docs[0], arena, &out->scenario, e) : rc;
}

static int arrival_order(const void *left, const void *right)
{
    const struct arrival *a = left;
    const struct arrival *b = right;
    if (a->at_s != b->at_s)
        return a->at_s < b->at_s ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

void load_sort(struct load *load)
{
    qsort(load->arrivals, load->count, sizeof(*load->arrivals), arrival_order);
}

/* ---- what became of it --------------------------------------------------------------------- */

struct delays {
    struct str project;
    VEC(int64_t) each;
};

static int delay_order(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static struct load_delays delays_sum(struct delays *delays)
{
    struct load_delays sum = { .project = delays->project, .count = delays->each.count };
    if (sum.count == 0)
        return sum;
    qsort(delays->each.items, sum.count, sizeof(int64_t), delay_order);
    double total = 0.0;
    for (size_t i = 0; i < sum.count; i++)
        total += (double)delays->each.items[i];
    sum.mean_s = total / (double)sum.count;
    size_t near_last = (sum.count * 95 - 1) / 100;
    sum.p95_s = (double)delays->each.items[near_last];
    return sum;
}

static struct str tenant_of(struct str path)
{
    return str_cut(&path, '/');
}

struct tally {
    VEC(struct delays) tenants;
    struct delays all;
};

static void tally_add(struct tally *tally, struct str tenant, int64_t delay_s)
{
    struct delays *of = NULL;
    for (size_t i = 0; i < tally->tenants.count; i++) {
        if (str_eq(tally->tenants.items[i].project, tenant))
            of = &tally->tenants.items[i];
    }
    if (of == NULL) {
        const struct delays fresh = { .project = tenant };
        vec_push(&tally->tenants, fresh);
        of = &tally->tenants.items[tally->tenants.count - 1];
    }
    vec_push(&of->each, delay_s);
    vec_push(&tally->all.each, delay_s);
}

static enum err sum_up(const struct world *world, struct arena *arena, struct load_result *out,
                       struct error *e)
{
    struct tally tally = { 0 };
    enum err rc = ERR_OK;
    for (size_t i = 0; i < world->jobs.count && rc == ERR_OK; i++) {
        const struct job *job = world->jobs.items[i];
        const struct workload_record *r = &world_workload(world, job)->r;
        if (r->state != WL_SUCCEEDED) {
            rc = err_set(e, ERR_INVALID, "a job of %.*s never ends: it is %s",
                         STR_ARG(job->spec->project),
                         enum_name(&workload_state_names, (unsigned)r->state));
            break;
        }
        int64_t delay_s = (r->ended.ns - r->submitted.ns) / NS_PER_S - job->spec->duration_s;
        tally_add(&tally, tenant_of(job->spec->project), delay_s);
        out->evictions += r->evictions;
        out->completed++;
    }
    out->all = delays_sum(&tally.all);
    out->tenant_count = tally.tenants.count;
    out->tenants = arena_new(arena, tally.tenants.count, sizeof(*out->tenants));
    for (size_t i = 0; i < tally.tenants.count; i++) {
        out->tenants[i] = delays_sum(&tally.tenants.items[i]);
        vec_done(&tally.tenants.items[i].each);
    }
    vec_done(&tally.all.each);
    vec_done(&tally.tenants);
    return rc;
}

/* ---- its course ---------------------------------------------------------------------------- */

static double used_now(const struct world *world)
{
    const struct class_capacity capacity =
        sched_capacity(engine_sched(world->engine), world_class(world));
    if (capacity.capacity_milli == 0)
        return 0.0;
    return (double)(capacity.capacity_milli - capacity.free_milli) /
           (double)capacity.capacity_milli;
}

static enum err submit_due(struct world *world, const struct load *load, size_t *next,
                           struct error *e)
{
    int64_t t = world_t(world);
    for (; *next < load->count && load->arrivals[*next].at_s * NS_PER_S <= t; (*next)++) {
        enum err rc = world_submit(world, load->arrivals[*next].job, e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

static enum err to_the_end(struct world *world, const struct load *load, struct load_result *out,
                           struct error *e)
{
    size_t next_arrival = 0;
    double used_ns = 0.0;
    for (;;) {
        enum err rc = submit_due(world, load, &next_arrival, e);
        if (rc != ERR_OK)
            return rc;
        world_settle(world);
        int64_t t = world_t(world);
        int64_t next = world_next(world);
        if (next_arrival < load->count)
            next = MIN_OF(next, load->arrivals[next_arrival].at_s * NS_PER_S);
        if (next == INT64_MAX || (next_arrival == load->count && world->alarms.count == 0))
            break;
        used_ns += used_now(world) * (double)(next - t);
        world_advance(world, next);
    }
    out->end_s = world_t(world) / NS_PER_S;
    out->used = used_ns / (double)MAX_OF(world_t(world), INT64_C(1));
    return ERR_OK;
}

enum err load_run(const struct load *load, struct arena *arena, struct load_result *out,
                  struct error *e)
{
    struct world world;
    *out = (struct load_result){ 0 };
    enum err rc = world_start(&world, &load->scenario, arena, NULL, e);
    world.is_unchecked = true; /* tests do that; here it is time that counts */
    int64_t began_ns = clock_cpu_ns();
    if (rc == ERR_OK)
        rc = to_the_end(&world, load, out, e);
    out->cpu_s = (double)(clock_cpu_ns() - began_ns) / (double)NS_PER_S;
    if (rc == ERR_OK)
        rc = sum_up(&world, arena, out, e);
    world_end(&world);
    return rc;
}
