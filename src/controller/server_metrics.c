#include "controller/server_metrics.h"

#include <inttypes.h>

static void family(struct buf *out, const char *name, const char *kind, const char *help)
{
    buf_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
    family(out, name, "counter", help);
    buf_format(out, "%s %" PRIu64 "\n", name, value);
}

/* Nanoseconds as seconds, without the roundings of floating point. */
static void add_seconds(struct buf *out, uint64_t ns)
{
    buf_format(out, "%" PRIu64 ".%09" PRIu64, ns / (uint64_t)NS_PER_S, ns % (uint64_t)NS_PER_S);
}

static void seconds(struct buf *out, const char *name, const char *kind, const char *help,
                    uint64_t ns)
{
    family(out, name, kind, help);
    buf_format(out, "%s ", name);
    add_seconds(out, ns);
    buf_add_char(out, '\n');
}

static void put_cycles(const struct sched_tally *tally, struct buf *out)
{
    static const char name[] = "berth_scheduler_cycle_seconds";
    uint64_t count = 0;
    family(out, name, "histogram", "From something to decide until nothing was left.");
    for (size_t i = 0; i < TALLY_BUCKETS; i++) {
        count += tally->cycle_counts[i];
        buf_format(out, "%s_bucket{le=\"", name);
        add_seconds(out, (uint64_t)tally_bucket_ns[i]);
        buf_format(out, "\"} %" PRIu64 "\n", count);
    }
    buf_format(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", name, tally->cycles, name);
    add_seconds(out, tally->cycle_ns);
    buf_format(out, "\n%s_count %" PRIu64 "\n", name, tally->cycles);
    seconds(out, "berth_scheduler_cycle_max_seconds", "gauge", "The longest since the start.",
            tally->cycle_ns_max);
    seconds(out, "berth_scheduler_last_cycle_timestamp_seconds", "gauge",
            "When one last came to its end.", (uint64_t)tally->last_cycle.ns);
}

static void put_evictions(const struct engine *engine, struct buf *out)
{
    static const char name[] = "berth_evictions_total";
    family(out, name, "counter", "Evictions of work of a tenant, by cause.");
    for (const struct project *p = engine_state(engine)->first_tenant; p != NULL;
         p = p->next_sibling) {
        for (unsigned cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++) {
            uint64_t count = tally_evictions(engine_tally(engine), p->r.id, (enum cause)cause);
            if (count > 0)
                buf_format(out, "%s{tenant=\"%.*s\",cause=\"%s\"} %" PRIu64 "\n", name,
                           STR_ARG(p->r.path), cause_name((enum cause)cause), count);
        }
    }
}

void server_metrics_of_engine(const struct engine *engine, struct buf *out)
{
    const struct sched_tally *tally = engine_tally(engine);
    put_cycles(tally, out);
    put_evictions(engine, out);
    counter(out, "berth_starts_total", "Starts of work, each attempt.", tally->starts);
    counter(out, "berth_promised_starts_total", "Of them, those that a start was promised to.",
            tally->promised_starts);
    counter(out, "berth_late_starts_total", "Of those, the ones later than promised.",
            tally->late_starts);
    seconds(out, "berth_late_start_seconds_total", "counter", "By how much, together.",
            tally->late_ns);
}
