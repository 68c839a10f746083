/*
 * claim.h - who may be evicted for a workload that waits, from the facts alone: rules 5 and 6 of a
 * step and the rules for victims, written down plainly and tried for every set of running work.
 * For small clusters with one class in use, where work is given to projects without children only.
 */
#ifndef TESTS_UNIT_SCHED_CLAIM_H
#define TESTS_UNIT_SCHED_CLAIM_H

#include "unit/sched/lab.h"

enum { CLAIM_RUNNING_MAX = 12 };

enum claim_way {
    CLAIM_BORROWED,   /* others' work above their quota (or share) */
    CLAIM_STRADDLING, /* also work that its project's quota covers in part only */
    CLAIM_LESS_URGENT /* of its own project */
};

struct claim {
    const struct lab *lab;
    struct workload *claimant;
    int64_t class_number;
    int64_t charge;
    enum claim_way way;
    struct workload *running[CLAIM_RUNNING_MAX]; /* all work that is not being stopped */
    size_t count;
    int8_t suffices[1 << CLAIM_RUNNING_MAX]; /* by set: 0 not looked at, 1 no, 2 yes */
    int8_t allowed[1 << CLAIM_RUNNING_MAX];
};

/* Sets of running work are bits: 1 << i is running[i]. Nothing is being stopped in that lab,
 * and no more than CLAIM_RUNNING_MAX run. */
void claim_init(struct claim *claim, const struct lab *lab, struct workload *claimant);
/* What follows is by that way. */
void claim_by(struct claim *claim, enum claim_way way);

/* All of the claimant would run if those were gone: limits, quota of fixed work, a place. */
bool claim_suffices(struct claim *claim, unsigned gone);
/* Once those are gone, may this one go as well? */
bool claim_may_go(const struct claim *claim, size_t victim, unsigned gone);
/* They may be evicted one after the other, in some order. */
bool claim_is_allowed(struct claim *claim, unsigned gone);
/* Both; and afterwards there is less lacking wherever the paths part. */
bool claim_is_valid(struct claim *claim, unsigned gone);
/* Less is lacking than before: of quotas, or as little of these and less of shares. */
bool claim_makes_progress(const struct claim *claim, unsigned gone);
/* Any set is valid by that way. */
bool claim_is_possible(struct claim *claim);
/* One is, of work that may go as things are now, for which the claimant ends within its quota
 * wherever it parts from one of them. */
bool claim_is_guaranteed(struct claim *claim);
/* The first is to go before the second. */
bool claim_is_preferred(const struct claim *claim, size_t first, size_t second);
/* All who may go at first may still go when it is their turn: no side reaches its bound through one
 * of them. */
bool claim_is_unbounded(const struct claim *claim);
/* The set of a plan's evictions; 0: it has none. */
unsigned claim_victims(const struct claim *claim, const struct plan *plan);

#endif
