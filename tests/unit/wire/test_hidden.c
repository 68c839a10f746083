/* Numbers of the whole installation, as tenants see them. */
#include "unit/test.h"
#include "wire/hidden.h"

static const uint8_t key[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const uint8_t other[16] = { 9 };
#define JSON_EXACT (UINT64_C(1) << 53)

static void hides_and_reveals(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    size_t plain = 0;
    for (size_t i = 0; i < 20000; i++) {
        uint64_t number = i < 5000 ? i + 1 : 1 + test_below(&random, (UINT64_C(1) << 52) - 1);
        uint64_t hidden = hidden_of(key, number);
        CHECK("exact in JSON, never none", hidden > 0 && hidden < JSON_EXACT);
        CHECK("comes back", hidden_reveal(key, hidden) == number);
        CHECK("another key, another number", hidden_reveal(other, hidden) != number);
        plain += hidden == number;
    }
    CHECK("nothing shows through", plain < 3);
}

/* What a tenant could count: neighbours must not look like neighbours. */
static void neighbours_say_nothing(void **state)
{
    (void)state;
    size_t near = 0;
    size_t rising = 0;
    for (uint64_t n = 1; n < 10000; n++) {
        uint64_t a = hidden_of(key, n);
        uint64_t b = hidden_of(key, n + 1);
        near += (a > b ? a - b : b - a) < UINT64_C(1) << 36;
        rising += b > a;
    }
    CHECK("not near each other", near < 10);
    CHECK("no order", rising > 4500 && rising < 5500);
}

static void operators_and_none_stay(void **state)
{
    (void)state;
    CHECK("operators", hidden_of(NULL, 77) == 77 && hidden_reveal(NULL, 77) == 77);
    CHECK("none", hidden_of(key, 0) == 0 && hidden_reveal(key, 0) == 0);
    CHECK("never given out", hidden_reveal(key, UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hides_and_reveals),
        cmocka_unit_test(neighbours_say_nothing),
        cmocka_unit_test(operators_and_none_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
