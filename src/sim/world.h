/*
 * world.h - the real controller core in virtual time: the engine over seams that keep everything in
 * memory, and nodes that carry out what it wants of them.
 *
 * Nothing here reads a clock or a random number: the same scenario gives the same events. Instants
 * are nanoseconds since the start of the scenario where they are called `t`.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "engine/engine.h"
#include "sim/scenario.h"

/* One submitted job; of one with a count, each element. */
struct job {
    struct str name;
    struct id workload;
    const struct sim_job *spec;
    int64_t attempt;       /* the present one */
    int64_t saved_attempt; /* the last one that left a checkpoint */
    struct mono began;     /* its first process */
    int64_t done_ns;       /* what checkpoints have saved of earlier attempts */
};

struct process {
    struct id allocation;
    int64_t attempt;
    struct job *job; /* borrowed */
    struct mono began;
    struct mono ends_at; /* by itself; INT64_MAX: never */
    bool will_fail;
    bool is_stopping;
    struct mono dies_at; /* while stopping; INT64_MAX: never */
    bool has_exited;
    struct exit_status exit;
    int64_t checkpoints;
    struct mono checkpointed;
};

struct agent {
    struct id node;
    struct str name;
    const struct sim_pool *pool;
    int64_t number;  /* in its pool */
    bool *is_failed; /* by device */
    int64_t boots;
    bool is_up, is_partitioned;
    struct mono seen;
    bool is_report_due;
    bool is_stirred; /* among those to look at */
    VEC(struct process) processes;
};

/* When a process may have something to do; those that are over by then are found out then. */
struct alarm {
    int64_t at_ns;
    size_t agent;
    struct id allocation;
};

struct world {
    const struct scenario *scenario;
    struct arena *arena;
    struct engine *engine; /* owned */
    struct mono now;
    uint64_t entropy;
    bool is_unchecked; /* the core does not compare its indices now and then */
    struct agent *agents;
    size_t agent_count;
    struct id_map by_node;    /* -> struct agent */
    VEC(struct alarm) alarms; /* a heap, the earliest first */
    VEC(size_t) stirred;      /* agents that have something to carry out or to tell */
    bool has_silent;          /* some node was cut off at some time */
    struct mono heard;        /* when all that can be heard were last */
    VEC(struct job *) jobs;   /* in order of submission */
    struct id_map by_workload;
    int64_t errors;       /* events that were refused, and not expected to be */
    struct mono decided;  /* the last start or eviction */
    struct buf *log;      /* of all events, as JSON lines; NULL: none is kept */
    struct error problem; /* of the core itself: a report, a broken invariant; code ERR_OK: none */
};

/* The cluster and its tenants as the scenario says. ERR_INVALID: one of them was refused. */
enum err world_start(struct world *world, const struct scenario *scenario, struct arena *arena,
                     struct buf *log, struct error *e) MUST_CHECK;
void world_end(struct world *world);

/* The next instant at which anything happens by itself; INT64_MAX: never again. */
int64_t world_next(const struct world *world);
/* Time goes on to `t`: what ends by itself has ended. Nothing is decided. */
void world_advance(struct world *world, int64_t t);
/* One event of the scenario. Nothing is decided. ERR_INVALID: it makes no sense, with its place. */
enum err world_apply(struct world *world, const struct sim_event *event, struct error *e)
    MUST_CHECK;
/* What happened so far is durable; nothing is decided yet. */
void world_flush(struct world *world);
/* Decides, and lets nodes act, until nothing changes. */
void world_settle(struct world *world);

/* One job, or all of a count. Nothing is decided. Refusals are the core's. */
enum err world_submit(struct world *world, const struct sim_job *job, struct error *e) MUST_CHECK;
int64_t world_class(const struct world *world); /* number of the first pool's class */

int64_t world_t(const struct world *world);
struct job *world_job(const struct world *world, struct str name); /* NULL: none */
/* "h.*" means all whose names begin with "h."; a name given with a count all of its elements. */
bool world_name_matches(struct str pattern, struct str name);
/* The last that was made with that name; NULL: none. */
const struct reservation *world_reservation(const struct world *world, struct str name);
const struct workload *world_workload(const struct world *world, const struct job *job);

#endif
