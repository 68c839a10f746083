/*
 * timepoint.h - two kinds of time that cannot be swapped.
 *
 * struct mono never steps back and goes on over restarts of the controller ("ledger time"):
 * durations, deadlines, leases and bills use it. struct wall is what calendars and people use.
 */
#ifndef BASE_TIMEPOINT_H
#define BASE_TIMEPOINT_H

#include "base/base.h"

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

struct mono {
    int64_t ns;
};

struct wall {
    int64_t ns; /* since 1970-01-01T00:00:00Z */
};

static inline struct mono mono_add_s(struct mono at, int64_t seconds)
{
    return (struct mono){ at.ns + seconds * NS_PER_S };
}

static inline bool mono_before(struct mono a, struct mono b)
{
    return a.ns < b.ns;
}

enum { WALL_TEXT_MAX = 32 };

/* RFC 3339 in UTC with milliseconds, "2026-11-30T07:28:27.123Z"; returns `out`. */
char *wall_text(struct wall at, char out[WALL_TEXT_MAX]);

#endif
