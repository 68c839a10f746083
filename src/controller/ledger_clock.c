#include "controller/ledger_clock.h"

static const int64_t gap_max_ns = INT64_C(366) * 86400 * NS_PER_S;

enum err ledger_clock_init(struct ledger_clock *clock, const struct store_clock *last,
                           struct error *e)
{
    struct ledger_clock fresh = { 0 };
    enum err rc = clock_boot_id(fresh.boot_id, e);
    if (rc != ERR_OK)
        return rc;
    int64_t boottime_ns = clock_boottime().ns;
    int64_t now_ns = NS_PER_S;
    if (last != NULL) {
        int64_t gap_ns = str_is(last->boot_id, fresh.boot_id) ? boottime_ns - last->boottime_ns
                                                              : clock_wall().ns - last->wall.ns;
        gap_ns = MAX_OF(gap_ns, INT64_C(0));
        now_ns = last->mono.ns + MIN_OF(gap_ns, gap_max_ns);
    }
    fresh.offset_ns = now_ns - boottime_ns;
    *clock = fresh;
    return ERR_OK;
}

struct mono ledger_clock_now(const struct ledger_clock *clock)
{
    return (struct mono){ clock_boottime().ns + clock->offset_ns };
}

struct store_clock ledger_clock_position(const struct ledger_clock *clock)
{
    int64_t boottime_ns = clock_boottime().ns;
    return (struct store_clock){
        .boot_id = str_of(clock->boot_id),
        .boottime_ns = boottime_ns,
        .mono = { boottime_ns + clock->offset_ns },
        .wall = clock_wall(),
    };
}
