#include "base/timepoint.h"
#include "unit/test.h"

/* clang-format off */
static const struct { const char *name; int64_t ns; const char *text; } text_cases[] = {
    { "the epoch",              0,                                  "1970-01-01T00:00:00.000Z" },
    { "milliseconds are cut",   1999999,                            "1970-01-01T00:00:00.001Z" },
    { "before the epoch",       -NS_PER_S,                          "1969-12-31T23:59:59.000Z" },
    { "a leap day",             INT64_C(1709164799) * NS_PER_S,     "2024-02-28T23:59:59.000Z" },
    { "the leap day itself",    INT64_C(1709164800) * NS_PER_S,     "2024-02-29T00:00:00.000Z" },
    { "the day after",          INT64_C(1709251200) * NS_PER_S,     "2024-03-01T00:00:00.000Z" },
    { "2000 was a leap year",   INT64_C(951782400) * NS_PER_S,      "2000-02-29T00:00:00.000Z" },
    { "2100 is none",           INT64_C(4107542400) * NS_PER_S,     "2100-03-01T00:00:00.000Z" },
    { "past 2038",              INT64_C(2147483648) * NS_PER_S,     "2038-01-19T03:14:08.000Z" },
    { "milliseconds",           INT64_C(1796023707123) * NS_PER_MS, "2026-11-30T07:28:27.123Z" },
    { "the last of them",       INT64_MAX,                          "2262-04-11T23:47:16.854Z" },
    { "the first of them",      INT64_MIN,                          "1677-09-21T00:12:43.146Z" },
};
/* clang-format on */

static void test_wall_text(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, text_cases) {
        char text[WALL_TEXT_MAX];
        CHECK(c->name, wall_text((struct wall){ c->ns }, text) == text);
        assert_string_equal(text, c->text);
    }
}

static void test_mono(void **state)
{
    (void)state;
    struct mono at = { 5 };
    CHECK("adds", mono_add_s(at, 2).ns == 2 * NS_PER_S + 5);
    CHECK("subtracts", mono_add_s(at, -1).ns == 5 - NS_PER_S);
    CHECK("before", mono_before(at, mono_add_s(at, 1)));
    CHECK("not before itself", !mono_before(at, at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wall_text),
        cmocka_unit_test(test_mono),
    };
    return cmocka_run_group_tests_name("base/timepoint", tests, NULL, NULL);
}
