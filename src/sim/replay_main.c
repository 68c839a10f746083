/* berth-sim replay: files in, figures out. */
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "os/file.h"
#include "sim/main.h"
#include "sim/replay.h"

enum { TRACE_BYTES_MAX = 512 * 1024 * 1024 };

static bool policy_named(const char *name, enum placement *out)
{
    unsigned value = 0;
    if (!enum_parse(&placement_names, str_of(name), &value))
        return false;
    *out = (enum placement)value;
    return true;
}

/* The texts of a trace, which it borrows. */
struct texts {
    struct buf nodes, pods, order;
};

static void texts_done(struct texts *texts)
{
    buf_done(&texts->nodes);
    buf_done(&texts->pods);
    buf_done(&texts->order);
}
DEFINE_CLEANUP_AT(texts, struct texts, texts_done)

static enum err read_order(const struct words *given, const struct trace *trace,
                           struct texts *texts, struct arena *arena, struct replay_options *options,
                           struct error *e)
{
    const struct str order = str_of(given->order != NULL ? given->order : "trace");
    int64_t inflate_pct = 0;
    int64_t seed = 0;
    if (given->inflate != NULL && !str_to_i64(str_of(given->inflate), 1, 1000, &inflate_pct))
        return err_set(e, ERR_INVALID, "--inflate: a percentage up to 1000");
    if (str_starts(order, STR("file:"))) {
        enum err rc = file_read(given->order + 5, TRACE_BYTES_MAX, &texts->order, e);
        return rc != ERR_OK ? rc : replay_order(buf_str(&texts->order), trace, arena, options, e);
    }
    bool is_shuffled = str_starts(order, STR("shuffle:"));
    const struct str number = { order.data + 8, is_shuffled ? order.size - 8 : 0 };
    if (is_shuffled ? !str_to_i64(number, 0, INT64_MAX, &seed) : !str_is(order, "trace"))
        return err_set(e, ERR_INVALID, "--order: trace, shuffle:SEED or file:FILE");
    options->arrivals = replay_arrivals(trace, is_shuffled, (uint64_t)seed, inflate_pct, arena,
                                        &options->arrival_count);
    return ERR_OK;
}

static void print_json(const struct replay_result *r, double decisions_per_s, double cpu_s)
{
    (void)printf("{\"arrived_pct\":%.2f,\"allocation_pct_100\":%.2f,\"allocation_pct_end\":%.2f,"
                 "\"unallocated_gpus\":%.2f,\"fragmentation_pct\":%.2f,\"failed\":%zu,"
                 "\"decisions_per_s\":%.0f,\"cpu_s\":%.3f}\n",
                 r->arrived_pct, r->allocation_pct_100, r->allocation_pct_end, r->unallocated,
                 r->fragmentation_pct, r->failed, decisions_per_s, cpu_s);
}

static void print_text(const struct replay_result *r, double decisions_per_s, double cpu_s)
{
    (void)printf("arrived           %.2f %% of all devices\n"
                 "allocated at 100  %.2f %%\n"
                 "allocated at end  %.2f %%\n"
                 "unallocated       %.2f devices\n"
                 "fragmentation     %.2f %%\n"
                 "failed            %zu pods\n"
                 "decisions         %.0f a second\n"
                 "CPU               %.3f s\n",
                 r->arrived_pct, r->allocation_pct_100, r->allocation_pct_end, r->unallocated,
                 r->fragmentation_pct, r->failed, decisions_per_s, cpu_s);
}

static enum err replay_files(const struct words *given, struct replay_options *options,
                             struct error *e)
{
    AUTO(texts) struct texts texts = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf placements = { 0 };
    struct trace trace;
    struct replay_result result;
    enum err rc = file_read(given->nodes, TRACE_BYTES_MAX, &texts.nodes, e);
    if (rc == ERR_OK)
        rc = file_read(given->pods, TRACE_BYTES_MAX, &texts.pods, e);
    if (rc == ERR_OK)
        rc = trace_read(buf_str(&texts.nodes), buf_str(&texts.pods), &arena, &trace, e);
    if (rc == ERR_OK)
        rc = read_order(given, &trace, &texts, &arena, options, e);
    if (rc != ERR_OK)
        return rc;
    options->placements = given->placements != NULL ? &placements : NULL;
    int64_t began_ns = clock_cpu_ns();
    replay_run(&trace, options, &arena, &result);
    double cpu_s = (double)(clock_cpu_ns() - began_ns) / (double)NS_PER_S;
    (given->is_json ? print_json : print_text)(
        &result, (double)options->arrival_count / MAX_OF(cpu_s, 1e-9), cpu_s);
    return given->placements == NULL
               ? ERR_OK
               : file_write_atomic(given->placements, buf_str(&placements), 0644, e);
}

int replay_main(int argc, char **argv)
{
    struct words given = { 0 };
    struct replay_options options = { .policy = PLACE_ADAPTIVE };
    struct error e = { 0 };
    if (!words_read(argc, argv, &given) || words_has_bench(&given))
        return wrong_use("an option of replay is not known, or has no value");
    if (given.philly != NULL)
        return philly_main(&given);
    if (given.nodes == NULL || given.pods == NULL)
        return wrong_use("replay needs --nodes and --pods");
    if (given.placement != NULL && !policy_named(given.placement, &options.policy))
        return wrong_use("--placement: first_fit, best_fit, pack, spread, fgd or adaptive");
    if (replay_files(&given, &options, &e) == ERR_OK)
        return EXIT_HELD;
    (void)fprintf(stderr, "berth-sim: %s\n", e.text);
    return EXIT_WRONG;
}
