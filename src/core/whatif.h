/*
 * whatif.h - what would follow: the real core and scheduler on a state of their own, in virtual
 * time.
 *
 * The state and its scheduler are the caller's copy, and are used up. Nodes do at once what is
 * wanted of them; work runs as long as its time limit (or `default_time_limit_s`) lets it, and for
 * ever without one: so a start is found no earlier than it will be.
 */
#ifndef CORE_WHATIF_H
#define CORE_WHATIF_H

#include "core/core.h"

/* What became of one workload that started or was evicted. */
struct whatif_row {
    struct id workload;
    struct id project;
    struct str name;     /* in `texts` of the run */
    struct mono started; /* for the first time since; INT64_MAX: it did not */
    size_t evictions;
    enum cause cause; /* of the last of them */
    bool is_new;      /* one of the commands submitted it */
};

struct whatif_run {
    VEC(struct whatif_row) rows; /* in the order in which something happened to them */
    struct id_map by_workload;   /* -> its place in rows, from 1 */
    struct arena texts;
    struct mono from, until;
    size_t starts, evictions, waiting; /* waiting: at the end */
    bool is_cut;                       /* there was more to come before `until` than time for it */
};

void whatif_run_done(struct whatif_run *run);
DEFINE_CLEANUP_AT(whatif_run, struct whatif_run, whatif_run_done)

struct whatif_ask {
    struct command *commands; /* each is filled with the time */
    size_t count;
    struct id lost;    /* a node that is lost then; none: no */
    int64_t horizon_s; /* so far ahead */
    struct mono now;
    struct wall wall;
    bool (*may_go_on)(void *arg); /* asked again and again; NULL: always */
    void *arg;
};

/* A refusal is that of the first command that is refused. */
enum err core_whatif(struct state *state, struct sched *sched, const struct whatif_ask *ask,
                     struct whatif_run *out, struct error *e) MUST_CHECK;
/* For a run that was made elsewhere: its rows, one by one; the name is copied. */
void whatif_run_add(struct whatif_run *run, const struct whatif_row *row);
/* For tests; NULL: nothing happened to it. */
const struct whatif_row *whatif_row_of(const struct whatif_run *run, struct id workload);

/* One workload in both runs, never NULL; one to which nothing happened in a run has a row without
 * a start there. */
struct whatif_pair {
    const struct whatif_row *before, *after;
    const struct whatif_row *any; /* one that is there, for its name */
};
/* Goes over all workloads of two runs, from `*at` 0 on; false: that was all. */
bool whatif_next(const struct whatif_run *before, const struct whatif_run *after, size_t *at,
                 struct whatif_pair *out);

#endif
