/*
 * ledger.h - what work costs: usage segments, their amounts, and reports of what was used.
 *
 * A usage segment is one uninterrupted use of one allocation, in ledger time: from the report that
 * its process runs to the moment the process is known to be gone. Waiting, image pulls and the
 * hand-over of devices are not billed. Nothing an agent claims can lengthen a segment:
 * both ends are moments of the controller, and of a lost node the end is the last
 * heartbeat that was accepted.
 *
 *   amount = floor(duration_ms * charge_milli * price_micros_per_hour / (3,600,000 * 1,000))
 *
 * exactly, whatever the factors. Rounding is down, per segment, and the only one there is:
 * cutting a segment in n pieces at whole milliseconds keeps the sum of the durations and
 * lowers the sum of the amounts by at most n - 1 micro-units; it never raises it. No customer
 * gains or loses by a requeue.
 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include "model/state.h"

/* The amount by the formula above. INT64_MAX where it would be larger; factors are not negative. */
int64_t ledger_amount(int64_t duration_ms, int64_t charge_milli,
                      int64_t price_micros_per_hour); /* for tests */

struct segment_end {
    struct id tenant;
    int64_t price_micros_per_hour; /* of the class of the allocation */
    struct mono at;                /* an end before the start makes a segment of no length */
    enum cause cause;
};

/* The segment of an allocation whose use ends there. False, and `out` untouched, when its process
 * never ran: then there is nothing to bill. */
bool ledger_segment(const struct allocation_record *allocation, const struct segment_end *end,
                    struct segment *out);

/* What a project and everything below it used of a class. */
struct usage_line {
    const struct project *project;
    int64_t class_number;
    int64_t milli_ms;
    int64_t running_milli_ms; /* of it, by what still runs */
    int64_t amount_micros;
    int64_t running_amount_micros; /* of it, at the present price */
    int64_t segments;              /* that have ended */
};

struct usage_report {
    struct usage_line
        *lines; /* projects in pre-order, then classes by number; without empty ones */
    size_t count;
};

/*
 * The report of a project and all below it (NULL: of all tenants) at a moment: ended segments from
 * the totals of the state, and running ones as if they ended then. Lines live in the arena.
 */
void ledger_report(const struct state *state, const struct project *root, struct mono at,
                   struct arena *arena, struct usage_report *out);

#endif
