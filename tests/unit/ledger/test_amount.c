/*
 * Amounts and segments, against arithmetic that shares nothing with the ledger: schoolbook numbers
 * of decimal digits, multiplied and divided one digit at a time.
 */
#include <string.h>

#include "ledger/ledger.h"
#include "unit/test.h"

enum { DIGITS = 64, RANDOM_CASES = 20000 };

struct number {
    unsigned char digit[DIGITS]; /* lowest first */
};

static struct number number_of(int64_t value)
{
    struct number n = { 0 };
    for (size_t i = 0; value > 0; i++, value /= 10)
        n.digit[i] = (unsigned char)(value % 10);
    return n;
}

static struct number multiply(const struct number *a, const struct number *b)
{
    struct number product = { 0 };
    for (size_t i = 0; i < DIGITS; i++) {
        unsigned carry = 0;
        for (size_t k = 0; i + k < DIGITS; k++) {
            carry += product.digit[i + k] + (unsigned)a->digit[i] * b->digit[k];
            product.digit[i + k] = (unsigned char)(carry % 10);
            carry /= 10;
        }
    }
    return product;
}

static struct number divide(const struct number *a, uint64_t by)
{
    struct number quotient = { 0 };
    uint64_t rest = 0;
    for (size_t left = DIGITS; left > 0; left--) {
        size_t i = left - 1;
        rest = rest * 10 + a->digit[i];
        quotient.digit[i] = (unsigned char)(rest / by);
        rest %= by;
    }
    return quotient;
}

static bool is_above(const struct number *a, const struct number *b)
{
    for (size_t left = DIGITS; left > 0; left--) {
        size_t i = left - 1;
        if (a->digit[i] != b->digit[i])
            return a->digit[i] > b->digit[i];
    }
    return false;
}

static struct number expected(int64_t duration_ms, int64_t milli, int64_t price)
{
    struct number top = number_of(INT64_MAX);
    struct number a = number_of(duration_ms);
    struct number b = number_of(milli);
    struct number c = number_of(price);
    struct number product = multiply(&a, &b);
    product = multiply(&product, &c);
    product = divide(&product, 3600000);
    product = divide(&product, 1000);
    return is_above(&product, &top) ? top : product;
}

static bool is_right(int64_t duration_ms, int64_t milli, int64_t price)
{
    struct number want = expected(duration_ms, milli, price);
    struct number got = number_of(ledger_amount(duration_ms, milli, price));
    if (memcmp(&want, &got, sizeof(want)) == 0)
        return true;
    print_error("%lld ms of %lld milli at %lld\n", (long long)duration_ms, (long long)milli,
                (long long)price);
    return false;
}

static void test_by_hand(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t duration_ms, milli, price, amount;
    } cases[] = {
        { "one device for one hour costs the price", 3600000, 1000, 2500000, 2500000 },
        { "half a device costs half", 3600000, 500, 2500000, 1250000 },
        { "eight devices for a minute", 60000, 8000, 2500000, 333333 },
        { "less than a micro-unit is nothing", 1, 1, 1, 0 },
        { "just below one is nothing", 3599999, 1000, 1, 0 },
        { "just one is one", 3600000, 1000, 1, 1 },
        { "no time", 0, 8000, 2500000, 0 },
        { "no device", 3600000, 0, 2500000, 0 },
        { "no price", 3600000, 8000, 0, 0 },
        { "what no number holds stops at the top", INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX },
        { "the largest that fits", INT64_MAX, 3600000, 1000, INT64_MAX },
        { "and a little less", INT64_MAX, 3600000, 999, 9214148664817921031 },
    };
    FOR_EACH_CASE (c, cases) {
        CHECK(c->name, ledger_amount(c->duration_ms, c->milli, c->price) == c->amount);
        CHECK(c->name, is_right(c->duration_ms, c->milli, c->price));
    }
}

/* A number of random length, so that small ones are as frequent as large ones. */
static int64_t any_number(uint64_t *random)
{
    return (int64_t)(test_random(random) >> 1 >> test_below(random, 63));
}

static void test_any_factors(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    for (size_t i = 0; i < RANDOM_CASES; i++) {
        int64_t duration_ms = any_number(&random);
        int64_t milli = any_number(&random);
        CHECK("is the exact amount", is_right(duration_ms, milli, any_number(&random)));
    }
}

/* Cutting a use in n pieces at whole milliseconds: durations add up, amounts lose at most n - 1. */
static void test_pieces(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    for (size_t i = 0; i < RANDOM_CASES / 10; i++) {
        struct allocation_record r = {
            .started = { 1 + (int64_t)test_below(&random, 1000000000000) },
            .charge_milli = 1 + (int64_t)test_below(&random, 16000),
        };
        struct segment_end end = { .price_micros_per_hour =
                                       (int64_t)test_below(&random, 90000000) };
        int64_t start_ns = r.started.ns;
        int64_t whole_ms = (int64_t)test_below(&random, 1000000000);
        struct segment whole = { 0 };
        end.at.ns = start_ns + whole_ms * NS_PER_MS;
        CHECK("the whole", ledger_segment(&r, &end, &whole) && whole.duration_ms == whole_ms);

        int64_t pieces = 0;
        int64_t at_ms = 0;
        int64_t sum_ms = 0;
        int64_t sum = 0;
        while (at_ms < whole_ms) {
            int64_t length_ms = 1 + (int64_t)test_below(&random, 200000000);
            int64_t next_ms = MIN_OF(whole_ms, at_ms + length_ms);
            struct segment piece = { 0 };
            r.started.ns = start_ns + at_ms * NS_PER_MS; /* where the one before ended */
            end.at.ns = start_ns + next_ms * NS_PER_MS;
            CHECK("a piece", ledger_segment(&r, &end, &piece));
            sum_ms += piece.duration_ms;
            sum += piece.amount_micros;
            at_ms = next_ms;
            pieces++;
        }
        CHECK("no time is lost and none counted twice", sum_ms == whole_ms);
        CHECK("pieces never cost more", sum <= whole.amount_micros);
        CHECK("nor much less", sum >= whole.amount_micros - MAX_OF(pieces - 1, (int64_t)0));
    }
}

static void test_segment(void **state)
{
    (void)state;
    struct allocation_record r = {
        .id = { 1, 1 },
        .workload = { 2, 2 },
        .project = { 3, 3 },
        .class_number = 4,
        .charge_milli = 1000,
        .started = { 5 * NS_PER_S },
        .started_wall = { 1700000000 * NS_PER_S },
    };
    struct segment_end end = { .tenant = { 9, 9 },
                               .price_micros_per_hour = 3600,
                               .at = { 65 * NS_PER_S + 999999 },
                               .cause = CAUSE_EXITED };
    struct segment segment = { 0 };
    CHECK("there is one", ledger_segment(&r, &end, &segment));
    CHECK("names what was used",
          id_eq(segment.allocation, r.id) && id_eq(segment.workload, r.workload) &&
              id_eq(segment.project, r.project) && id_eq(segment.tenant, end.tenant));
    CHECK("whole milliseconds", segment.duration_ms == 60000);
    CHECK("one micro-unit a second", segment.amount_micros == 60);
    CHECK("with its rate", segment.price_micros_per_hour == 3600 && segment.charge_milli == 1000);
    CHECK("begins when the process ran", segment.start.ns == r.started_wall.ns);
    CHECK("says why it ended", segment.cause == CAUSE_EXITED && segment.class_number == 4);
}

static void test_segment_edges(void **state)
{
    (void)state;
    struct allocation_record r = { .charge_milli = 1000 };
    struct segment_end end = { .price_micros_per_hour = 3600, .at = { 7 * NS_PER_S } };
    struct segment segment = { .duration_ms = 77 };
    CHECK("what never ran is not billed", !ledger_segment(&r, &end, &segment));
    CHECK("and nothing is written", segment.duration_ms == 77);
    r.started.ns = 9 * NS_PER_S; /* a lost node: the last heartbeat was before the start report */
    CHECK("an end before the start", ledger_segment(&r, &end, &segment));
    CHECK("has no length", segment.duration_ms == 0 && segment.amount_micros == 0);
    end.at = r.started;
    CHECK("an end at the start", ledger_segment(&r, &end, &segment) && segment.duration_ms == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),       cmocka_unit_test(test_any_factors),
        cmocka_unit_test(test_pieces),        cmocka_unit_test(test_segment),
        cmocka_unit_test(test_segment_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
