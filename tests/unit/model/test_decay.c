/* Averages that forget: against the formula, and in any number of steps. */
#include <math.h>

#include "model/decay.h"
#include "model/state.h"
#include "unit/test.h"

enum { HOUR_S = 3600, ROUNDS = 20000 };

static bool is_near(double a, double b, double by)
{
    return fabs(a - b) <= by;
}

static void half_is_left_after_a_half_life(void **state)
{
    (void)state;
    const uint64_t all = UINT64_C(1) << 62;
    CHECK("all at once", decay_left(0, HOUR_S) == all);
    for (int64_t n = 1; n < 62; n++)
        CHECK("a half each time", decay_left(n * HOUR_S * NS_PER_S, HOUR_S) == all >> n);
    CHECK("nothing in the end", decay_left(62 * HOUR_S * NS_PER_S, HOUR_S) == 0);
    CHECK("nor later", decay_left(INT64_MAX, 1) == 0);
    CHECK("years", decay_left(INT64_MAX, 366 * 86400) < all);
}

static void what_is_left_is_as_the_formula_says(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    double before = ldexp(1, 62);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t half_life_s = 60 + (int64_t)(test_random(&seed) % 10000000);
        int64_t ns = (int64_t)(test_random(&seed) % (uint64_t)(half_life_s * 20 * NS_PER_S));
        double halves = (double)ns / ((double)half_life_s * (double)NS_PER_S);
        double wanted = ldexp(exp2(-halves), 62);
        CHECK("near", is_near((double)decay_left(ns, half_life_s), wanted, wanted * 1e-8));
        double at = (double)decay_left((int64_t)i * 10000000, HOUR_S);
        CHECK("never more with time", at <= before);
        before = at;
    }
}

/* A level that changes at random, in the integer and in the formula. */
static void an_average_forgets(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct decay decay = { 0 };
    double wanted = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct mono at = decay.as_of;
        at.ns += (int64_t)(test_random(&seed) % UINT64_C(20000000000000));
        double left = exp2(-(double)(at.ns - decay.as_of.ns) / (HOUR_S * (double)NS_PER_S));
        wanted = wanted * left + (double)decay.level * (1 - left);
        decay_to(&decay, at, HOUR_S);
        CHECK("near", is_near((double)decay.average / DECAY_ONE, wanted, 0.01 + wanted * 1e-6));
        decay.level = (int64_t)(test_random(&seed) % 1000000);
    }
}

static void no_time_changes_nothing(void **state)
{
    (void)state;
    struct decay decay = { .average = 7, .as_of = { 1000 }, .level = 1000 };
    CHECK("now", decay_at(&decay, (struct mono){ 1000 }, HOUR_S) == 7);
    CHECK("before", decay_at(&decay, (struct mono){ 10 }, HOUR_S) == 7);
    decay_to(&decay, (struct mono){ INT64_MAX }, HOUR_S);
    CHECK("in the end it is the level", decay.average == INT64_C(1000) * DECAY_ONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_is_left_after_a_half_life),
        cmocka_unit_test(what_is_left_is_as_the_formula_says),
        cmocka_unit_test(an_average_forgets),
        cmocka_unit_test(no_time_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
