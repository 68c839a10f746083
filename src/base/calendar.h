/*
 * calendar.h - windows of local time, once or again and again, and the instants they mean.
 *
 * What is kept is the rule; instants follow from it. A window comes once on each of its local days:
 * one that begins in a gap of the clocks begins at the change, one whose beginning comes twice
 * begins the first time. One that would be over before it began, because the clocks skip it, lasts
 * as long as it would on another day.
 */
#ifndef BASE_CALENDAR_H
#define BASE_CALENDAR_H

#include "base/timepoint.h"
#include "base/zone.h"

enum repeat {
    REPEAT_NEVER,
    REPEAT_DAY,     /* every `interval` days */
    REPEAT_WEEKDAY, /* Monday to Friday; `interval` is 1 */
    REPEAT_WEEK,    /* every `interval` weeks, on the same day of the week */
    REPEAT_COUNT
};

struct calendar {
    struct zone zone;
    struct local start, end; /* of the first window; end is after start */
    enum repeat repeat;
    int64_t interval;   /* from 1; of REPEAT_NEVER it says nothing */
    struct local until; /* the last window begins before; of REPEAT_NEVER it says nothing */
};

/* Half-open: [start, end). */
struct window {
    struct wall start, end;
};

/* The first window that ends after that instant; false: there is none any more. */
bool calendar_next(const struct calendar *calendar, struct wall after, struct window *out);

/* How long a window may be so that none reaches into the next, in seconds of local time. */
int64_t calendar_span_max(enum repeat repeat, int64_t interval);

static inline bool window_overlaps(struct window a, struct window b)
{
    return a.start.ns < b.end.ns && b.start.ns < a.end.ns;
}

#endif
