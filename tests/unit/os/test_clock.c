#include <limits.h>
#include <string.h>

#include "os/clock.h"
#include "unit/test.h"

static void test_clocks_go_forward(void **state)
{
    (void)state;
    struct mono monotonic = clock_monotonic();
    struct mono boot = clock_boottime();
    for (int i = 0; i < 1000; i++) {
        struct mono next = clock_monotonic();
        CHECK("monotonic", !mono_before(next, monotonic));
        monotonic = next;
        next = clock_boottime();
        CHECK("boot time", !mono_before(next, boot));
        boot = next;
    }
    CHECK("boot time counts sleep too", !mono_before(clock_boottime(), monotonic));
}

static void test_wall_is_plausible(void **state)
{
    (void)state;
    char text[WALL_TEXT_MAX];
    (void)wall_text(clock_wall(), text);
    CHECK(text, strcmp(text, "2024") > 0 && strcmp(text, "2200") < 0);
}

static void test_cpu_time_is_spent(void **state)
{
    (void)state;
    int64_t before = clock_cpu_ns();
    CHECK("some is used", before > 0);
    while (clock_cpu_ns() == before)
        continue;
    CHECK("more is used", clock_cpu_ns() > before);
}

static void test_boot_id(void **state)
{
    (void)state;
    struct error e = { 0 };
    char first[CLOCK_BOOT_ID_MAX];
    char second[CLOCK_BOOT_ID_MAX];
    CHECK_OK("first", clock_boot_id(first, &e), &e);
    CHECK_OK("second", clock_boot_id(second, &e), &e);
    CHECK(first, strlen(first) == 36 && first[8] == '-');
    assert_string_equal(first, second);
}

/* clang-format off */
static const struct { const char *name; int64_t now, deadline; int ms; } poll_cases[] = {
    { "past",                 10,         5,                    0 },
    { "now",                  10,         10,                   0 },
    { "rounds up",            10,         11,                   1 },
    { "a whole one",          0,          NS_PER_MS,            1 },
    { "a whole one and more", 0,          NS_PER_MS + 1,        2 },
    { "for ever is capped",   0,          INT64_MAX,            INT_MAX },
};
/* clang-format on */

static void test_poll_ms(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, poll_cases)
        CHECK(c->name,
              clock_poll_ms((struct mono){ c->now }, (struct mono){ c->deadline }) == c->ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks_go_forward), cmocka_unit_test(test_wall_is_plausible),
        cmocka_unit_test(test_cpu_time_is_spent), cmocka_unit_test(test_boot_id),
        cmocka_unit_test(test_poll_ms),
    };
    return cmocka_run_group_tests_name("os/clock", tests, NULL, NULL);
}
