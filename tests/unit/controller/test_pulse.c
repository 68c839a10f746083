/* When a scheduler that turns no more, or never comes to an end, counts as stuck. */
#include "controller/pulse.h"
#include "unit/test.h"

static struct mono at(int64_t seconds)
{
    return (struct mono){ seconds * NS_PER_S };
}

static void test_health(void **state)
{
    (void)state;
    struct pulse pulse = pulse_start(at(100));
    CHECK("at the start", pulse_problem(&pulse, at(100)) == NULL);
    CHECK("a turn is late", pulse_problem(&pulse, at(131)) != NULL);
    pulse_turned(&pulse, at(131), false);
    CHECK("it was only slow", pulse_problem(&pulse, at(160)) == NULL);
    for (int64_t s = 132; s < 250; s++) {
        pulse_turned(&pulse, at(s), true);
        CHECK("a long pass", pulse_problem(&pulse, at(s)) == NULL);
    }
    pulse_turned(&pulse, at(252), true);
    CHECK("a pass without an end", pulse_problem(&pulse, at(252)) != NULL);
    pulse_turned(&pulse, at(253), false);
    CHECK("an end after all", pulse_problem(&pulse, at(253)) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_health),
    };
    return cmocka_run_group_tests_name("controller pulse", tests, NULL, NULL);
}
