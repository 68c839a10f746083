/*
 * slots.h - what of a class can still be reserved, and when: pure counting over the windows of all
 * reservations that are kept. Only src/core includes this.
 */
#ifndef CORE_SLOTS_H
#define CORE_SLOTS_H

#include "core/core.h"

/* How much of a class others have, from each instant on. In the arena. */
struct level {
    int64_t at_ns;
    int64_t milli;
};
struct levels {
    struct level *items; /* by time; before the first of them: 0 */
    size_t count;
};

struct slots_of {
    const struct state *state;
    int64_t class_number;
    struct id except;              /* this reservation does not count */
    const struct project *project; /* only those of it and below; NULL: all */
    struct wall from;              /* windows that have ended by then do not count */
};
struct levels slots_levels(const struct slots_of *of, struct arena *arena);
/* The most in any window of the calendar from then on. */
int64_t slots_peak_of_all(const struct levels *levels, const struct calendar *calendar,
                          struct wall from);

/* What there is to reserve: devices that work, without what tenants never lend. */
int64_t slots_capacity(const struct state *state, const struct sched *sched, int64_t class_number);

/* The starts nearest to that of the calendar at which it would fit in `milli`, nearest first, as
 * moves of its times in seconds; returns how many. */
enum { SLOTS_NEAREST = 3 };
size_t slots_nearest(const struct levels *levels, const struct calendar *calendar, int64_t milli,
                     struct wall from, int64_t moves[SLOTS_NEAREST], struct arena *arena);

#endif
