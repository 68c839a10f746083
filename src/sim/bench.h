/*
 * bench.h - a large made-up cluster with a long queue: what the core takes to decide.
 *
 * Projects stand in three levels and share the capacity as guarantees; most work asks for one
 * device, some for two, four or eight, some for a part of one, some is a gang. Decisions are those
 * of the whole core: from the command to the plan's events in the journal's form. What the nodes
 * do about it is not counted. All numbers come from a fixed seed.
 */
#ifndef SIM_BENCH_H
#define SIM_BENCH_H

#include "base/error.h"
#include "base/mem.h"

struct bench_options {
    int64_t nodes, gpus; /* of each */
    int64_t projects, workloads;
    int64_t events; /* submissions, ends and losses of nodes, one after the other */
};

/* CPU time throughout: the machine may have other work. */
struct bench_result {
    double first_pass_s;
    double event_us_p50, event_us_p99, event_us_max;
    double placements_per_s; /* in the first pass */
    double resident_mib;
    double cpu_s;
    size_t completed; /* workloads that ended */
};

enum err bench_run(const struct bench_options *options, struct arena *arena,
                   struct bench_result *out, struct error *e) MUST_CHECK;

#endif
