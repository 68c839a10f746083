/* Dividing an amount among siblings: by tables, and random ones against what any division
 * must fulfil. */
#include <string.h>

#include "sched/share.h"
#include "unit/test.h"

enum { PARTIES_MAX = 12 };

struct case_row {
    const char *name;
    int64_t amount;
    size_t count;
    struct share_party parties[4];
};

/* quota, never lent, requestable, weight, priority; the share that is expected; past use */
#define PARTY(q, never, asks, w, p, gets, past)                                                    \
    {                                                                                              \
        .quota = (q), .never_lent = (never), .requestable = (asks), .weight = (w),                 \
        .priority = (p), .share = (gets), .past_ppm = (past)                                       \
    }

static const struct case_row rows[] = {
    { "weights 3 to 1",
      8000,
      2,
      { PARTY(0, 0, 99000, 300, 50, 6000, 0), PARTY(0, 0, 99000, 100, 50, 2000, 0) } },
    { "quotas first, the rest by weight",
      12000,
      2,
      { PARTY(4000, 0, 99000, 300, 50, 7000, 0), PARTY(4000, 0, 99000, 100, 50, 5000, 0) } },
    { "who asks for less leaves it to others",
      8000,
      3,
      { PARTY(0, 0, 1000, 100, 50, 1000, 0), PARTY(0, 0, 99000, 100, 50, 3500, 0),
        PARTY(0, 0, 99000, 100, 50, 3500, 0) } },
    { "priority before weight",
      8000,
      2,
      { PARTY(0, 0, 5000, 1, 50, 5000, 0), PARTY(0, 0, 99000, 900, 10, 3000, 0) } },
    { "weight 0 only what nobody wants",
      8000,
      2,
      { PARTY(0, 0, 99000, 0, 90, 3000, 0), PARTY(0, 0, 5000, 100, 10, 5000, 0) } },
    { "what is never lent is kept",
      8000,
      2,
      { PARTY(6000, 4000, 1000, 100, 50, 1000, 0), PARTY(0, 0, 99000, 100, 50, 4000, 0) } },
    { "more guaranteed than there is",
      4000,
      2,
      { PARTY(4000, 0, 4000, 100, 50, 4000, 0), PARTY(4000, 0, 4000, 100, 50, 4000, 0) } },
    { "what rounding leaves goes to the largest remainder",
      10,
      3,
      { PARTY(0, 0, 99, 100, 50, 2, 0), PARTY(0, 0, 99, 250, 50, 4, 0),
        PARTY(0, 0, 99, 250, 50, 4, 0) } },
    { "a tie goes to the older",
      10,
      3,
      { PARTY(0, 0, 99, 100, 50, 4, 0), PARTY(0, 0, 99, 100, 50, 3, 0),
        PARTY(0, 0, 99, 100, 50, 3, 0) } },
};

static void test_tables(void **state)
{
    (void)state;
    FOR_EACH_CASE (row, rows) {
        struct share_party parties[4];
        memcpy(parties, row->parties, sizeof(parties));
        share_split(parties, row->count, row->amount, 0);
        for (size_t i = 0; i < row->count; i++)
            CHECK(row->name, parties[i].share == row->parties[i].share);
    }
}

struct past_row {
    const char *name;
    int64_t k_milli;
    struct share_party parties[3]; /* as above, with the past use in millionths */
};

static const struct past_row past_rows[] = {
    { "without history the past is nothing",
      0,
      { PARTY(0, 0, 99000, 100, 50, 5000, 900000), PARTY(0, 0, 99000, 100, 50, 5000, 0) } },
    { "who used nothing gets what the other used too much",
      500,
      { PARTY(0, 0, 99000, 100, 50, 3000, 900000), PARTY(0, 0, 99000, 100, 50, 7000, 100000) } },
    { "use in proportion to the weights changes nothing",
      1000,
      { PARTY(0, 0, 99000, 300, 50, 7500, 750000), PARTY(0, 0, 99000, 100, 50, 2500, 250000) } },
    { "who used far too much waits for what is left",
      10000,
      { PARTY(0, 0, 99000, 100, 50, 4000, 999999), PARTY(0, 0, 6000, 100, 50, 6000, 0) } },
    { "a guarantee is not touched",
      10000,
      { PARTY(6000, 0, 99000, 100, 50, 6000, 999999), PARTY(0, 0, 99000, 100, 50, 4000, 0) } },
    { "priority comes first",
      1000,
      { PARTY(0, 0, 8000, 100, 60, 8000, 999999), PARTY(0, 0, 99000, 100, 50, 2000, 0) } },
    { "where all used too much the weights decide",
      1000,
      { PARTY(0, 0, 99000, 100, 50, 5000, 1000000), PARTY(0, 0, 99000, 100, 50, 5000, 1000000) } },
};

static void test_past_use(void **state)
{
    (void)state;
    FOR_EACH_CASE (row, past_rows) {
        struct share_party parties[3];
        memcpy(parties, row->parties, sizeof(parties));
        share_split(parties, 2, 10000, row->k_milli);
        for (size_t i = 0; i < 2; i++)
            CHECK(row->name, parties[i].share == row->parties[i].share);
    }
}

/* Where nobody gets all that it asks for there is one round, and its formula. */
static void test_past_formula(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (unsigned round = 0; round < 100000; round++) {
        struct share_party parties[PARTIES_MAX] = { 0 };
        size_t count = 2 + (size_t)(test_random(&seed) % (PARTIES_MAX - 1));
        int64_t k_milli = 1 + (int64_t)(test_random(&seed) % 3000);
        int64_t amount = (int64_t)(test_random(&seed) % 100000000);
        double weights = 0;
        for (size_t i = 0; i < count; i++) {
            parties[i].requestable = INT64_C(1) << 40;
            parties[i].weight = 1 + (int64_t)(test_random(&seed) % 1000);
            parties[i].past_ppm = (int64_t)(test_random(&seed) % 1000001);
            weights += (double)parties[i].weight;
        }
        double wanted[PARTIES_MAX];
        double sum = 0;
        for (size_t i = 0; i < count; i++) {
            double part = (double)parties[i].weight / weights;
            double past = (double)parties[i].past_ppm / 1e6;
            double counts = part + (double)k_milli / 1000 * (part - past);
            wanted[i] = MAX_OF(counts, 0.0);
            sum += wanted[i];
        }
        share_split(parties, count, amount, k_milli);
        for (size_t i = 0; i < count && sum > 0.01; i++) {
            double share = wanted[i] / sum * (double)amount;
            double near = 2 + (double)amount * 1e-5 / sum * (1 + (double)k_milli / 1000);
            CHECK("as the formula says", (double)parties[i].share > share - near &&
                                             (double)parties[i].share < share + near);
        }
    }
}

static int64_t guaranteed(const struct share_party *party)
{
    return MIN_OF(party->quota, party->requestable);
}

static int64_t extra(const struct share_party *party)
{
    return party->share - guaranteed(party);
}

static bool is_full(const struct share_party *party)
{
    return party->share == party->requestable;
}

/* Nobody gets of the rest while one that comes before it still wants. */
static bool comes_before(const struct share_party *a, const struct share_party *b)
{
    if ((a->weight > 0) != (b->weight > 0))
        return a->weight > 0;
    return a->priority > b->priority;
}

static void check_pair(const struct share_party *a, const struct share_party *b, size_t count)
{
    if (comes_before(a, b))
        CHECK("served in order", is_full(a) || extra(b) == 0);
    if (a->priority != b->priority || (a->weight > 0) != (b->weight > 0) || is_full(a))
        return;
    /* One that wants more has, for its weight, no less than any other: but for roundings. */
    int64_t wa = MAX_OF(a->weight, INT64_C(1));
    int64_t wb = MAX_OF(b->weight, INT64_C(1));
    int64_t slack = (int64_t)(count + 1) * (wa + wb);
    CHECK("proportional to weight", extra(b) * wa <= extra(a) * wb + slack);
}

static void check_split(const struct share_party *parties, size_t count, int64_t amount)
{
    int64_t sum = 0;
    int64_t kept = 0;
    int64_t firm = 0;
    bool are_all_full = true;
    for (size_t i = 0; i < count; i++) {
        const struct share_party *party = &parties[i];
        CHECK("at least what is guaranteed", party->share >= guaranteed(party));
        CHECK("no more than is asked for", party->share <= party->requestable);
        sum += party->share;
        firm += guaranteed(party);
        kept += MAX_OF(party->never_lent - guaranteed(party), INT64_C(0));
        are_all_full = are_all_full && is_full(party);
        for (size_t k = 0; k < count; k++)
            check_pair(party, &parties[k], count);
    }
    if (firm + kept >= amount)
        CHECK("nothing beyond the guarantees", sum == firm);
    else
        CHECK("all of it, or all that is asked for",
              sum + kept <= amount && (are_all_full || sum + kept == amount));
}

static void test_any_division(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (unsigned round = 0; round < 100000; round++) {
        struct share_party parties[PARTIES_MAX];
        size_t count = 1 + (size_t)(test_random(&seed) % PARTIES_MAX);
        int64_t scale = test_random(&seed) % 4 == 0 ? 7 : 16000;
        for (size_t i = 0; i < count; i++) {
            int64_t quota = (int64_t)(test_random(&seed) % (uint64_t)scale);
            parties[i] = (struct share_party){
                .quota = quota,
                .never_lent = test_random(&seed) % 3 == 0 ? quota / 2 : 0,
                .requestable = (int64_t)(test_random(&seed) % (uint64_t)(2 * scale)),
                .weight = (int64_t)(test_random(&seed) % 5) * 100,
                .priority = 50 + (int64_t)(test_random(&seed) % 3),
            };
        }
        int64_t amount = (int64_t)(test_random(&seed) % (uint64_t)(10 * scale));
        share_split(parties, count, amount, 0);
        check_split(parties, count, amount);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_past_use),
        cmocka_unit_test(test_past_formula),
        cmocka_unit_test(test_any_division),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
