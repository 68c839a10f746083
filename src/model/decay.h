/*
 * decay.h - averages in which what is long ago counts less: by half after every half-life.
 *
 * The average of a level that changes now and then, weighted by 2^-(age / half-life). It begins at
 * 0, as if there had been nothing before; so two averages with the same beginning are compared as
 * they are. Whole numbers only: the same history gives the same average on every machine.
 */
#ifndef MODEL_DECAY_H
#define MODEL_DECAY_H

#include "base/timepoint.h"

/* What an average of 1 is. */
enum { DECAY_ONE = 1 << 20 };

struct decay {
    int64_t average; /* in units of 1 / DECAY_ONE, as of then */
    struct mono as_of;
    int64_t level; /* since then */
};

/* What is left of 2^62 after that time: 2^62 at once, 2^61 after a half-life. For tests. */
uint64_t decay_left(int64_t ns, int64_t half_life_s);
/* The average at that time, which is not before `as_of`. */
int64_t decay_at(const struct decay *decay, struct mono at, int64_t half_life_s);
/* Brings it to that time. */
void decay_to(struct decay *decay, struct mono at, int64_t half_life_s);

#endif
