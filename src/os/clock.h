/*
 * clock.h - what time it is, the only caller of clock_gettime.
 *
 * Nothing below the edges calls it: time is a parameter, so that a replay and a simulation see the
 * same times as the run they repeat.
 */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "base/error.h"
#include "base/timepoint.h"

/* Since boot, without the time a machine slept: for timeouts of this process. */
struct mono clock_monotonic(void);

/* Since boot, sleep included: for leases and fences, which other machines count on. */
struct mono clock_boottime(void);

/* May step either way: for calendars, records and people only. */
struct wall clock_wall(void);

/* CPU time this process has used, for time budgets. */
int64_t clock_cpu_ns(void);

enum { CLOCK_BOOT_ID_MAX = 37 }; /* a UUID with its NUL */

/* Names this boot of the machine: boot times of two boots must not be compared. */
MUST_CHECK enum err clock_boot_id(char out[CLOCK_BOOT_ID_MAX], struct error *e);

/* Milliseconds from `now` to `deadline`, rounded up, within 0..INT_MAX: an argument for poll. */
int clock_poll_ms(struct mono now, struct mono deadline);

#endif
