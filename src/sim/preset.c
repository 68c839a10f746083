/*
 * preset.c - the quota workload of the performance test of Kueue (kubernetes-sigs/kueue,
 * test/performance/scheduler; its figures only): cohorts of queues, each with a guarantee of 20
 * units and up to 100 borrowed; small, medium and large work that arrives at a fixed rate. One unit
 * is a core of a large node, because nodes play no part in it.
 */
#include <string.h>

#include "sim/load.h"

enum { QUEUE_QUOTA = 20, QUEUE_LIMIT = 120, SIZES = 3 };

/* Of every queue: so many jobs, one every interval, each running so long; milliseconds. */
struct stream {
    int64_t units, priority;
    int64_t count, interval_ms, run_ms;
};

struct preset {
    const char *name;
    int64_t cohorts, queues;
    struct stream streams[SIZES];
};

static const struct preset presets[] = {
    { "quota-baseline",
      5,
      6,
      { { 1, 50, 350, 100, 200 }, { 5, 100, 100, 500, 500 }, { 20, 200, 50, 1200, 1000 } } },
    { "quota-large",
      10,
      100,
      { { 1, 50, 35, 60, 150 }, { 5, 100, 11, 300, 350 }, { 20, 200, 4, 700, 700 } } },
};

static const struct preset *preset_of(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(presets); i++) {
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    }
    return NULL;
}

/* A scenario whose events are one job of each stream. */
static void preset_text(const struct preset *preset, struct buf *out)
{
    int64_t units = preset->cohorts * preset->queues * QUEUE_QUOTA;
    enum { UNITS_PER_NODE = 1000 };
    buf_format(out,
               "name: %s\n"
               "settings: {min_runtime_s: 0, grace_s: 0}\n"
               "pools:\n",
               preset->name);
    for (int64_t left = units, i = 0; left > 0; left -= UNITS_PER_NODE, i++)
        buf_format(out, "  - {name: p%lld, class: unit, nodes: 1, gpus: 0, cpus: %lld}\n",
                   (long long)i, (long long)MIN_OF(left, (int64_t)UNITS_PER_NODE));
    buf_format(out, "tenants:\n");
    for (int64_t cohort = 0; cohort < preset->cohorts; cohort++) {
        int64_t quota = preset->queues * QUEUE_QUOTA;
        buf_format(out, "  - {path: c%lld, quota: {unit: %lld}, limit: {unit: %lld}}\n",
                   (long long)cohort, (long long)quota, (long long)quota);
        for (int64_t queue = 0; queue < preset->queues; queue++)
            buf_format(out, "  - {path: c%lld/q%lld, quota: {unit: %d}, limit: {unit: %d}}\n",
                       (long long)cohort, (long long)queue, QUEUE_QUOTA, QUEUE_LIMIT);
    }
    buf_format(out, "events:\n");
    for (size_t i = 0; i < SIZES; i++) {
        const struct stream *s = &preset->streams[i];
        buf_format(out,
                   "  - {at: 0s, submit: {name: s%zu, project: c0/q0, class: unit, cpus: %lld,"
                   " priority: %lld, duration: %llds}}\n",
                   i, (long long)s->units, (long long)s->priority, (long long)s->run_ms);
    }
    buf_format(out, "expect: []\n");
}

static void streams_arrive(const struct preset *preset, struct arena *arena, struct load *load)
{
    int64_t queues = preset->cohorts * preset->queues;
    size_t most = 0;
    for (size_t i = 0; i < SIZES; i++)
        most += (size_t)(queues * preset->streams[i].count);
    load->arrivals = arena_new(arena, most, sizeof(*load->arrivals));
    struct sim_job *jobs = arena_new(arena, (size_t)queues * SIZES, sizeof(*jobs));
    for (int64_t queue = 0; queue < queues; queue++) {
        for (size_t i = 0; i < SIZES; i++) {
            const struct stream *s = &preset->streams[i];
            struct sim_job *job = &jobs[(size_t)queue * SIZES + i];
            *job = load->scenario.events[i].job;
            job->project =
                str_of(arena_format(arena, "c%lld/q%lld", (long long)(queue / preset->queues),
                                    (long long)(queue % preset->queues)));
            for (int64_t n = 0; n < s->count; n++)
                load->arrivals[load->count++] = (struct arrival){ n * s->interval_ms, job };
        }
    }
    load_sort(load);
}

enum err preset_load(const char *name, struct arena *arena, struct load *out, struct error *e)
{
    const struct preset *preset = preset_of(name);
    struct buf text = { 0 };
    if (preset == NULL)
        return err_set(e, ERR_NOT_FOUND, "there is no preset \"%s\"", name);
    preset_text(preset, &text);
    enum err rc = load_read(str_copy(arena, buf_str(&text)), arena, out, e);
    buf_done(&text);
    if (rc == ERR_OK)
        streams_arrive(preset, arena, out);
    return rc;
}
