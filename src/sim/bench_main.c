/* berth-sim bench, and replay of recorded jobs: options in, figures out. */
#include <stdio.h>
#include <string.h>

#include "os/file.h"
#include "sim/bench.h"
#include "sim/load.h"
#include "sim/main.h"

enum { JOBS_BYTES_MAX = 512 * 1024 * 1024 };

static int failed(const struct error *e)
{
    (void)fprintf(stderr, "berth-sim: %s\n", e->text);
    return EXIT_WRONG;
}

/* ---- made-up clusters ---------------------------------------------------------------------- */

static void print_bench(const struct bench_result *r, bool is_json)
{
    (void)printf(is_json ? "{\"first_pass_s\":%.3f,\"event_us_p50\":%.1f,\"event_us_p99\":%.1f,"
                           "\"event_us_max\":%.1f,\"placements_per_s\":%.0f,\"resident_mib\":%.1f,"
                           "\"cpu_s\":%.3f,\"completed\":%zu}\n"
                         : "first pass    %.3f s\n"
                           "an event p50  %.1f us\n"
                           "         p99  %.1f us\n"
                           "         max  %.1f us\n"
                           "placements    %.0f a second\n"
                           "resident      %.1f MiB\n"
                           "CPU           %.3f s\n"
                           "completed     %zu\n",
                 r->first_pass_s, r->event_us_p50, r->event_us_p99, r->event_us_max,
                 r->placements_per_s, r->resident_mib, r->cpu_s, r->completed);
}

static int bench_synthetic(const struct words *given)
{
    AUTO(arena) struct arena arena = { 0 };
    struct error e = { 0 };
    struct bench_result result;
    struct bench_options options = { 0 };
    const struct {
        const char *text, *name;
        int64_t min, max, standard;
        int64_t *out;
    } numbers[] = {
        { given->nodes, "--nodes", 1, 100000, 12500, &options.nodes },
        { given->gpus, "--gpus", 8, 64, 8, &options.gpus },
        { given->projects, "--projects", 1, 100000, 1000, &options.projects },
        { given->workloads, "--workloads", 0, 10000000, 1000000, &options.workloads },
        { given->events, "--events", 0, 10000000, 20000, &options.events },
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        *numbers[i].out = numbers[i].standard;
        if (numbers[i].text != NULL &&
            !str_to_i64(str_of(numbers[i].text), numbers[i].min, numbers[i].max, numbers[i].out)) {
            (void)err_set(&e, ERR_INVALID, "%s: a number from %lld to %lld", numbers[i].name,
                          (long long)numbers[i].min, (long long)numbers[i].max);
            return failed(&e);
        }
    }
    if (bench_run(&options, &arena, &result, &e) != ERR_OK)
        return failed(&e);
    print_bench(&result, given->is_json);
    return EXIT_HELD;
}

static int bench_preset(const struct words *given)
{
    AUTO(arena) struct arena arena = { 0 };
    struct error e = { 0 };
    struct load load;
    struct load_result r;
    if (preset_load(given->preset, &arena, &load, &e) != ERR_OK ||
        load_run(&load, &arena, &r, &e) != ERR_OK)
        return failed(&e);
    (void)printf(given->is_json ? "{\"virtual_s\":%.3f,\"usage_pct\":%.1f,\"evictions\":%lld,"
                                  "\"cpu_s\":%.3f,\"completed\":%zu}\n"
                                : "finished   %.3f s of virtual time\n"
                                  "in use     %.1f %%\n"
                                  "evictions  %lld\n"
                                  "CPU        %.3f s\n"
                                  "completed  %zu\n",
                 (double)r.end_s / PRESET_STEPS_PER_S, 100.0 * r.used, (long long)r.evictions,
                 r.cpu_s, r.completed);
    return EXIT_HELD;
}

int bench_main(int argc, char **argv)
{
    struct words given = { 0 };
    if (!words_read(argc, argv, &given) || words_has_trace(&given))
        return wrong_use("an option of bench is not known, or has no value");
    return given.preset != NULL ? bench_preset(&given) : bench_synthetic(&given);
}

/* ---- recorded jobs ------------------------------------------------------------------------- */

static void print_delays(const struct load_delays *d, bool is_json, const char *end)
{
    (void)printf(is_json ? "{\"project\":\"%.*s\",\"jobs\":%zu,\"delay_mean_s\":%.1f,"
                           "\"delay_p95_s\":%.0f}%s"
                         : "%-16.*s %7zu jobs  delay mean %10.1f s  p95 %10.0f s%s",
                 STR_ARG(d->project), d->count, d->mean_s, d->p95_s, end);
}

static void print_philly(const struct load_result *r, bool is_json)
{
    if (!is_json) {
        (void)printf("finished after %lld s, %.1f %% in use, %lld evictions, CPU %.3f s\n",
                     (long long)r->end_s, 100.0 * r->used, (long long)r->evictions, r->cpu_s);
        for (size_t i = 0; i < r->tenant_count; i++)
            print_delays(&r->tenants[i], false, "\n");
        print_delays(&r->all, false, "\n");
        return;
    }
    (void)printf("{\"virtual_s\":%lld,\"usage_pct\":%.1f,\"evictions\":%lld,\"completed\":%zu,"
                 "\"cpu_s\":%.3f,\"all\":",
                 (long long)r->end_s, 100.0 * r->used, (long long)r->evictions, r->completed,
                 r->cpu_s);
    print_delays(&r->all, true, ",\"tenants\":[");
    for (size_t i = 0; i < r->tenant_count; i++)
        print_delays(&r->tenants[i], true, i + 1 < r->tenant_count ? "," : "]}\n");
}

int philly_main(const struct words *given)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf text = { 0 };
    struct error e = { 0 };
    struct load load;
    struct load_result result;
    struct philly_options options = { .nodes = 96, .gpus = 8 };
    if (given->policy != NULL && strcmp(given->policy, "static") != 0 &&
        strcmp(given->policy, "borrow") != 0)
        return wrong_use("--policy: static or borrow");
    options.is_static = given->policy != NULL && strcmp(given->policy, "static") == 0;
    if ((given->nodes != NULL && !str_to_i64(str_of(given->nodes), 1, 100000, &options.nodes)) ||
        (given->gpus != NULL && !str_to_i64(str_of(given->gpus), 1, 64, &options.gpus)))
        return wrong_use("--nodes and --gpus are numbers here");
    if (file_read(given->philly, JOBS_BYTES_MAX, &text, &e) != ERR_OK ||
        philly_load(buf_str(&text), &options, &arena, &load, &e) != ERR_OK ||
        load_run(&load, &arena, &result, &e) != ERR_OK)
        return failed(&e);
    print_philly(&result, given->is_json);
    return EXIT_HELD;
}
