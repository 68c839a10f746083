#include "controller/ledger_clock.h"
#include "unit/test.h"

static struct ledger_clock clock_after(const struct store_clock *last)
{
    struct ledger_clock clock;
    struct error e = { 0 };
    CHECK_OK("init", ledger_clock_init(&clock, last, &e), &e);
    return clock;
}

/* How far the clock is past `from`, in seconds, give or take what this test takes. */
static int64_t seconds_past(const struct ledger_clock *clock, struct mono from)
{
    return (ledger_clock_now(clock).ns - from.ns + NS_PER_S / 2) / NS_PER_S;
}

static void test_goes_on_within_a_boot(void **state)
{
    (void)state;
    struct ledger_clock first = clock_after(NULL);
    struct store_clock last = ledger_clock_position(&first);
    last.boottime_ns -= 100 * NS_PER_S;              /* as if stored 100 s ago */
    last.wall.ns += INT64_C(365) * 86400 * NS_PER_S; /* and the wall clock was set since */
    struct ledger_clock second = clock_after(&last);
    CHECK("by the boot clock alone", seconds_past(&second, last.mono) == 100);
}

static const struct {
    const char *name;
    int64_t away_s; /* by the wall clock, over a reboot */
    int64_t wanted_s;
} reboots[] = {
    { "an hour away", 3600, 3600 },
    { "the clock was set back: no time passed", -86400, 0 },
    { "the clock was set far ahead: a year at most", INT64_C(40) * 366 * 86400, 366 * 86400 },
};

static void test_goes_on_over_a_reboot(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, reboots) {
        struct ledger_clock first = clock_after(NULL);
        struct store_clock last = ledger_clock_position(&first);
        last.boot_id = STR("another boot");
        last.boottime_ns = INT64_C(1) << 60;
        last.wall.ns = clock_wall().ns - c->away_s * NS_PER_S;
        struct ledger_clock second = clock_after(&last);
        CHECK(c->name, seconds_past(&second, last.mono) == c->wanted_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on_within_a_boot),
        cmocka_unit_test(test_goes_on_over_a_reboot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
