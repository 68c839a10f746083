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

/* quota, never lent, requestable, weight, priority; the share that is expected */
static const struct case_row rows[] = {
    { "weights 3 to 1",
      8000,
      2,
      { { 0, 0, 99000, 300, 50, 6000 }, { 0, 0, 99000, 100, 50, 2000 } } },
    { "quotas first, the rest by weight",
      12000,
      2,
      { { 4000, 0, 99000, 300, 50, 7000 }, { 4000, 0, 99000, 100, 50, 5000 } } },
    { "who asks for less leaves it to others",
      8000,
      3,
      { { 0, 0, 1000, 100, 50, 1000 },
        { 0, 0, 99000, 100, 50, 3500 },
        { 0, 0, 99000, 100, 50, 3500 } } },
    { "priority before weight",
      8000,
      2,
      { { 0, 0, 5000, 1, 50, 5000 }, { 0, 0, 99000, 900, 10, 3000 } } },
    { "weight 0 only what nobody wants",
      8000,
      2,
      { { 0, 0, 99000, 0, 90, 3000 }, { 0, 0, 5000, 100, 10, 5000 } } },
    { "what is never lent is kept",
      8000,
      2,
      { { 6000, 4000, 1000, 100, 50, 1000 }, { 0, 0, 99000, 100, 50, 4000 } } },
    { "more guaranteed than there is",
      4000,
      2,
      { { 4000, 0, 4000, 100, 50, 4000 }, { 4000, 0, 4000, 100, 50, 4000 } } },
    { "what rounding leaves goes to the largest remainder",
      10,
      3,
      { { 0, 0, 99, 100, 50, 2 }, { 0, 0, 99, 250, 50, 4 }, { 0, 0, 99, 250, 50, 4 } } },
    { "a tie goes to the older",
      10,
      3,
      { { 0, 0, 99, 100, 50, 4 }, { 0, 0, 99, 100, 50, 3 }, { 0, 0, 99, 100, 50, 3 } } },
};

static void test_tables(void **state)
{
    (void)state;
    FOR_EACH_CASE (row, rows) {
        struct share_party parties[4];
        memcpy(parties, row->parties, sizeof(parties));
        share_split(parties, row->count, row->amount);
        for (size_t i = 0; i < row->count; i++)
            CHECK(row->name, parties[i].share == row->parties[i].share);
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
        share_split(parties, count, amount);
        check_split(parties, count, amount);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_any_division),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
