/*
 * zone.h - local time of a zone by its rule, in whole seconds: pure arithmetic, no files.
 *
 * A rule is text, so that it can be kept with what it decided and be read again in years, whatever
 * the system's tables say by then. It is a TZ string of POSIX ("CET-1CEST,M3.5.0,M10.5.0/3"), or
 * shifts that no such string can say, and after the last of them a TZ string:
 * "+3600 1771120800:0 1774144800:3600;<+01>-1" is one hour ahead of UTC, from the first instant on
 * none, from the second on one hour again.
 */
#ifndef BASE_ZONE_H
#define BASE_ZONE_H

#include "base/str.h"

enum { ZONE_NAME_MAX = 63, ZONE_RULE_MAX = 1024, ZONE_SHIFTS_MAX = 40, LOCAL_TEXT_MAX = 24 };

/* What clocks on the wall show: seconds since 1970-01-01T00:00:00, as if that were UTC. */
struct local {
    int64_t s;
};

/* When in a year the clocks are changed. */
struct zone_change {
    enum { CHANGE_BY_WEEKDAY, CHANGE_BY_DAY, CHANGE_BY_DAY_WITHOUT_LEAP } kind;
    int64_t month, week, weekday; /* Mm.w.d; week 5: the last */
    int64_t day;                  /* Jn and n */
    int64_t time_s;               /* of local time before the change; may lie on other days */
};

struct zone_shift {
    int64_t at_s; /* UTC */
    int64_t offset_s;
};

/* All-zero is UTC. */
struct zone {
    int64_t first_offset_s; /* before the first shift */
    struct zone_shift shifts[ZONE_SHIFTS_MAX];
    size_t shift_count;
    int64_t standard_s; /* east of UTC */
    int64_t summer_s;
    bool has_summer;
    struct zone_change begin, end; /* of summer time */
};

/* ERR_INVALID: it is no such rule. */
enum err zone_parse(struct str rule, struct zone *out, struct error *e) MUST_CHECK;

/* Seconds east of UTC at that instant (seconds of UTC). */
int64_t zone_offset(const struct zone *zone, int64_t utc_s);
/* The next change of the offset after that instant; false: none in the next two years. */
bool zone_next_shift(const struct zone *zone, int64_t utc_s, struct zone_shift *out);

/* What the clocks there show. */
struct local zone_local(const struct zone *zone, int64_t utc_s);
/* The first instant at which the clocks show that time, or a later one: of a time that comes twice
 * the first, of one that is skipped the instant of the change. */
int64_t zone_instant(const struct zone *zone, struct local local);

/* Days since 1970 of a date, and back; outside, for tests. */
int64_t civil_day(int64_t year, int64_t month, int64_t day);
struct civil {
    int64_t year, month, day;
};
struct civil civil_of_day(int64_t day);
/* 0: Sunday. */
int64_t civil_weekday(int64_t day);

/* "2026-03-27T18:00:00" or "2026-03-27T18:00", a date that exists, of the years 1970..2200. */
bool local_parse(struct str text, struct local *out);
char *local_text(struct local local, char out[LOCAL_TEXT_MAX]);

#endif
