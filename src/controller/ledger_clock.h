/*
 * ledger_clock.h - ledger time: monotonic, and going on over restarts of the controller.
 *
 * Within one boot of the machine it advances with the boot clock. Over a reboot the gap is taken
 * from wall time, never less than nothing and never more than a year, so that a clock that was set
 * wrongly cannot run deadlines or bills away. Setting the wall clock while running changes nothing.
 */
#ifndef CONTROLLER_LEDGER_CLOCK_H
#define CONTROLLER_LEDGER_CLOCK_H

#include "os/clock.h"
#include "store/store.h"

struct ledger_clock {
    char boot_id[CLOCK_BOOT_ID_MAX];
    int64_t offset_ns; /* ledger time minus boot clock */
};

/* `last` is the stored position; NULL for a new store, which starts at one second. */
enum err ledger_clock_init(struct ledger_clock *clock, const struct store_clock *last,
                           struct error *e) MUST_CHECK;
struct mono ledger_clock_now(const struct ledger_clock *clock);
struct store_clock ledger_clock_position(const struct ledger_clock *clock);

#endif
