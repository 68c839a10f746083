/* The ordered list against a plain array: order, membership and rank after every change. */
#include "sched/skip.h"
#include "unit/test.h"

enum { KEYS = 200, STEPS = 20000 };

static size_t below_count(const bool *is_in, int64_t bound)
{
    size_t count = 0;
    for (int64_t i = 0; i < bound; i++)
        count += is_in[i];
    return count;
}

static void test_rank_follows(void **unused)
{
    (void)unused;
    struct pool pool = { 0 };
    struct skip_list list = { 0 };
    bool is_in[KEYS] = { false };
    uint64_t random = 88172645463325252u; /* fixed: every run is the same */
    for (int step = 0; step < STEPS; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        int64_t i = (int64_t)(random % KEYS);
        const struct skip_key key = { .major = i / 50, .minor = (uint64_t)i };
        if (is_in[i])
            skip_remove(&list, &pool, key);
        else
            (void)skip_insert(&list, &pool, key, &is_in[i]);
        is_in[i] = !is_in[i];
        assert_int_equal(skip_find(&list, key) != NULL, is_in[i]);
        int64_t probe = (int64_t)(random / KEYS % KEYS);
        const struct skip_key asked = { .major = probe / 50, .minor = (uint64_t)probe };
        assert_int_equal(skip_rank(&list, asked), below_count(is_in, probe));
    }
    assert_int_equal(list.count, below_count(is_in, KEYS));
    pool_done(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rank_follows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
