/*
 * cause.h - the closed list of reasons for waiting, eviction, ends, ledger lines and refusals.
 * One word, the same in C, JSON, SQL, CLI and docs. The order is stored nowhere; the names are.
 */
#ifndef MODEL_CAUSE_H
#define MODEL_CAUSE_H

#include "base/str.h"

enum cause {
    CAUSE_NONE,
    /* waiting */
    CAUSE_WAITING_FOR_QUOTA,
    CAUSE_WAITING_FOR_CAPACITY,
    CAUSE_WAITING_FOR_GANG,
    CAUSE_WAITING_FOR_TOPOLOGY,
    CAUSE_WAITING_FOR_RESERVATION,
    CAUSE_WAITING_FOR_BUDGET,
    CAUSE_WAITING_FOR_PROVISION,
    CAUSE_WAITING_FOR_VICTIMS,
    CAUSE_WAITING_FOR_BACKOFF,
    CAUSE_WAITING_FOR_DEPENDENCY,
    CAUSE_EXCEEDS_LIMIT,
    CAUSE_NO_MATCHING_CLASS,
    CAUSE_NOT_PERMITTED,
    CAUSE_HELD,
    CAUSE_MISCONFIGURED,
    /* starting and running */
    CAUSE_GRANTED,
    CAUSE_STARTED,
    /* evictions and ends */
    CAUSE_RECLAIMED_FOR_QUOTA,
    CAUSE_RECLAIMED_FOR_SHARE,
    CAUSE_RECLAIMED_FOR_RESERVATION,
    CAUSE_PREEMPTED_BY_PRIORITY,
    CAUSE_CONSOLIDATED,
    CAUSE_DRAINED,
    CAUSE_NODE_FAILURE,
    CAUSE_DEVICE_FAILURE,
    CAUSE_RESERVATION_ENDED,
    CAUSE_BUDGET_EXHAUSTED,
    CAUSE_TIME_LIMIT,
    CAUSE_IDLE_TIMEOUT,
    CAUSE_START_TIMEOUT,
    CAUSE_STALE_GANG,
    CAUSE_DEPENDENCY_FAILED,
    CAUSE_NOT_NEEDED,
    CAUSE_USER_CANCELLED,
    CAUSE_ADMIN_CANCELLED,
    CAUSE_USER_REQUEUED,
    CAUSE_SPOT_RECLAIMED,
    CAUSE_EXITED,
    CAUSE_FAILED,
    CAUSE_OUT_OF_MEMORY,
    /* refusals only */
    CAUSE_INVALID,
    CAUSE_NOT_FOUND,
    CAUSE_CONFLICT,
    CAUSE_OVERCOMMITTED,
    CAUSE_OVERLAPS_RESERVATION,
    CAUSE_UNAUTHENTICATED,
    CAUSE_RATE_LIMITED,
    CAUSE_UNAVAILABLE,
    CAUSE_COUNT
};

const char *cause_name(enum cause cause); /* "waiting_for_quota"; CAUSE_NONE is "" */
bool cause_parse(struct str text, enum cause *out);
/* One sentence for people: what it means and what can be done. Static. */
const char *cause_meaning(enum cause cause);
/* Of work that starts or runs: nothing is in its way, so a table for people leaves it out. */
bool cause_is_usual(enum cause cause);
/* Why the system ended, moved or put back work that its owner had not ended: he is told. */
bool cause_is_of_system(enum cause cause);

#endif
