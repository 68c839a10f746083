/*
 * share.h - dividing an amount of one class among siblings of the quota tree: guarantees
 * first, then what is left by priority and weight. Integers only; what rounding leaves is
 * handed out by largest remainder (Hamilton's method), so that nothing is lost and
 * nobody's order depends on chance.
 */
#ifndef SCHED_SHARE_H
#define SCHED_SHARE_H

#include "base/base.h"

/* All amounts are thousandths. */
struct share_party {
    int64_t quota;
    int64_t never_lent;  /* of quota: kept free for it although it asks for less */
    int64_t requestable; /* what it has and asks for, capped by its limit */
    int64_t weight;      /* 0: only what nobody with a weight wants */
    int64_t priority;    /* higher is served first */
    int64_t share;       /* out */
    int64_t past_ppm;    /* use of the cluster, lately: a million is all of it */
    int64_t counts;      /* scratch: its weight in a round */
};

/* Parties come oldest first: that decides ties. `history_k_milli` says how much of its part of the
 * weights a party loses by what it used beyond that part, and gains by what it did not use. */
void share_split(struct share_party *parties, size_t count, int64_t amount,
                 int64_t history_k_milli);

#endif
