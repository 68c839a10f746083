/*
 * load.h - many jobs on one cluster, without expectations: how long they wait, what it costs.
 *
 * A load is a scenario whose jobs are made rather than written: what its file says of `submit` is
 * a template. Virtual time has whole seconds in a scenario; a load may count in finer steps, since
 * nothing in it depends on how long a second is (no protection, no grace, no limits).
 */
#ifndef SIM_LOAD_H
#define SIM_LOAD_H

#include "sim/scenario.h"

struct arrival {
    int64_t at_s;
    const struct sim_job *job;
};

struct load {
    struct scenario scenario;
    struct arrival *arrivals; /* by time */
    size_t count;
};

/* Out of the text of a scenario, whose events become templates: scenario.events. ERR_INVALID. */
enum err load_read(struct str text, struct arena *arena, struct load *out, struct error *e)
    MUST_CHECK;
/* In order of time, of equal ones in the order in which they stand. */
void load_sort(struct load *load);

/* How long the jobs of one tenant were not doing what they came for: from submission to end,
 * without the time that they needed; work lost to evictions counts. In steps of virtual time. */
struct load_delays {
    struct str project;
    size_t count;
    double mean_s, p95_s;
};

struct load_result {
    int64_t end_s;     /* of the last job */
    double used;       /* of the first class, from the beginning to the end: 0..1 */
    int64_t evictions; /* of all jobs */
    size_t completed;
    double cpu_s; /* of everything but making the cluster */
    struct load_delays all;
    struct load_delays *tenants; /* by the first appearance of one of its jobs */
    size_t tenant_count;
};

/* Until all is done. ERR_INVALID: a job was refused, or one can never run. */
enum err load_run(const struct load *load, struct arena *arena, struct load_result *out,
                  struct error *e) MUST_CHECK;

/* ---- made and recorded ones ---------------------------------------------------------------- */

/* Queues with guarantees that borrow from each other (preset.c); how many steps of virtual time
 * are a second. NULL name: ERR_NOT_FOUND. */
enum { PRESET_STEPS_PER_S = 1000 };
enum err preset_load(const char *name, struct arena *arena, struct load *out, struct error *e)
    MUST_CHECK;

/* Jobs of virtual clusters (philly.c): timestamp, duration, num_gpus, cluster. */
struct philly_options {
    int64_t nodes, gpus; /* of the cluster */
    bool is_static;      /* nobody gets more than its part */
};
enum err philly_load(struct str text, const struct philly_options *options, struct arena *arena,
                     struct load *out, struct error *e) MUST_CHECK;

#endif
