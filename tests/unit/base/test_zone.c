#include "base/zone.h"
#include "unit/test.h"

#define BERLIN   "CET-1CEST,M3.5.0,M10.5.0/3"
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"
#define SHIFTED  "+3600 1771120800:0 1774144800:3600;<+01>-1"

static struct zone zone_of(const char *rule)
{
    struct zone zone;
    struct error e = { 0 };
    if (zone_parse(str_of(rule), &zone, &e) != ERR_OK)
        fail_msg("%s: %s", rule, e.text);
    return zone;
}

static struct local local_of(const char *text)
{
    struct local local = { 0 };
    if (!local_parse(str_of(text), &local))
        fail_msg("%s is no time", text);
    return local;
}

/* clang-format off */
static const struct { const char *name; const char *rule; const char *local; const char *utc; } instants[] = {
    { "winter",                          BERLIN,   "2026-03-27T18:00:00", "2026-03-27T17:00:00" },
    { "summer",                          BERLIN,   "2026-03-30T18:00:00", "2026-03-30T16:00:00" },
    { "just before the gap",             BERLIN,   "2026-03-29T01:59:59", "2026-03-29T00:59:59" },
    { "in the gap: when it begins",      BERLIN,   "2026-03-29T02:30:00", "2026-03-29T01:00:00" },
    { "where the gap ends",              BERLIN,   "2026-03-29T03:00:00", "2026-03-29T01:00:00" },
    { "twice: the first time",           BERLIN,   "2026-10-25T02:30:00", "2026-10-25T00:30:00" },
    { "where twice begins",              BERLIN,   "2026-10-25T02:00:00", "2026-10-25T00:00:00" },
    { "just after twice",                BERLIN,   "2026-10-25T03:00:00", "2026-10-25T02:00:00" },
    { "west of Greenwich",               NEW_YORK, "2026-03-08T02:30:00", "2026-03-08T07:00:00" },
    { "its second Sunday",               NEW_YORK, "2026-11-01T01:30:00", "2026-11-01T05:30:00" },
    { "the south has summer in January", "NZST-12NZDT,M9.5.0,M4.1.0/3", "2026-01-15T12:00:00", "2026-01-14T23:00:00" },
    { "half an hour of change", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-07-01T10:30:00", "2026-07-01T00:00:00" },
    { "before a shift that is listed",   SHIFTED,  "2026-02-14T12:00:00", "2026-02-14T11:00:00" },
    { "between shifts",                  SHIFTED,  "2026-03-01T12:00:00", "2026-03-01T12:00:00" },
    { "after the last of them",          SHIFTED,  "2026-04-01T12:00:00", "2026-04-01T11:00:00" },
    { "no rule at all is UTC",           "UTC0",   "2026-04-01T12:00:00", "2026-04-01T12:00:00" },
    { "the 60th day without leap days",  "AAA0BBB,J60/0,J300/0", "2028-02-29T12:00:00", "2028-02-29T12:00:00" },
    { "and the day after",               "AAA0BBB,J60/0,J300/0", "2028-03-01T12:00:00", "2028-03-01T11:00:00" },
    { "the 60th day with them",          "AAA0BBB,59/0,J300/0",  "2028-02-29T12:00:00", "2028-02-29T11:00:00" },
    { "a time on another day", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T12:00:00", "2026-03-29T13:00:00" },
};
static const struct { const char *name; const char *rule; } wrong_rules[] = {
    { "nothing",                     "" },
    { "a short name",                "CE-1" },
    { "no offset",                   "CET" },
    { "summer without its days",     "CET-1CEST" },
    { "one day only",                "CET-1CEST,M3.5.0" },
    { "a thirteenth month",          "CET-1CEST,M13.5.0,M10.5.0" },
    { "a sixth week",                "CET-1CEST,M3.6.0,M10.5.0" },
    { "an eighth weekday",           "CET-1CEST,M3.5.7,M10.5.0" },
    { "day 0 of those without leap", "CET-1CEST,J0,J300" },
    { "day 366",                     "CET-1CEST,366,J300" },
    { "a time beyond a week",        "CET-1CEST,M3.5.0/168,M10.5.0" },
    { "more than there is",          "CET-1 " },
    { "25 hours",                    "CET-25" },
    { "a bracket left open",         "<+01-1" },
    { "shifts without a rule",       "+3600 10:0" },
    { "shifts out of order",         "+3600 10:0 10:3600;UTC0" },
    { "an offset without shifts",    "+3600;UTC0" },
};
static const struct { const char *name; const char *text; int64_t s; } locals[] = {
    { "the epoch",        "1970-01-01T00:00:00", 0 },
    { "without seconds",  "1970-01-02T01:02",    86400 + 3720 },
    { "a leap day",       "2028-02-29T23:59:59", INT64_C(1835481599) },
};
static const char *const wrong_locals[] = {
    "", "2026-02-29T00:00:00", "2026-13-01T00:00:00", "2026-01-01T24:00:00", "2026-01-01T00:60:00",
    "2026-01-01 00:00:00", "2026-01-01T00:00:00Z", "2026-01-01", "1969-12-31T23:59:59",
    "2026-01-00T00:00:00", "2026-04-31T00:00:00", "+026-01-01T00:00:00",
};
/* clang-format on */

static void test_instants(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, instants) {
        struct zone zone = zone_of(c->rule);
        char text[LOCAL_TEXT_MAX];
        const struct local got = { zone_instant(&zone, local_of(c->local)) };
        CHECK(c->name, local_text(got, text) == text);
        assert_string_equal(text, c->utc);
    }
}

static void test_wrong_rules(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, wrong_rules) {
        struct zone zone = { .standard_s = 7 };
        struct error e = { 0 };
        CHECK(c->name, zone_parse(str_of(c->rule), &zone, &e) == ERR_INVALID);
        CHECK("leaves the zone", zone.standard_s == 7 && e.text[0] != '\0');
    }
    struct buf many = { 0 };
    buf_add_text(&many, "+0");
    for (int i = 1; i <= ZONE_SHIFTS_MAX + 1; i++)
        buf_format(&many, " %d:0", i);
    buf_add_text(&many, ";UTC0");
    struct zone zone;
    CHECK("too many shifts", zone_parse(buf_str(&many), &zone, NULL) == ERR_INVALID);
    buf_done(&many);
}

static void test_shifts(void **state)
{
    (void)state;
    struct zone berlin = zone_of(BERLIN);
    struct zone listed = zone_of(SHIFTED);
    struct zone utc = zone_of("UTC0");
    struct zone_shift shift = { 0 };
    CHECK("the next", zone_next_shift(&berlin, 1774746000 - 1, &shift));
    CHECK("is summer", shift.at_s == 1774746000 && shift.offset_s == 7200);
    CHECK("behind it", zone_next_shift(&berlin, 1774746000, &shift));
    CHECK("is winter", shift.at_s == 1792890000 && shift.offset_s == 3600);
    CHECK("listed ones", zone_next_shift(&listed, 0, &shift) && shift.at_s == 1771120800);
    CHECK("and no more after them", !zone_next_shift(&listed, 1774144800, &shift));
    CHECK("UTC has none", !zone_next_shift(&utc, 0, &shift));
    CHECK("what clocks show", zone_local(&berlin, 0).s == 3600);
}

static void test_locals(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, locals)
        CHECK(c->name, local_of(c->text).s == c->s);
    for (size_t i = 0; i < COUNT_OF(wrong_locals); i++) {
        struct local local = { 7 };
        CHECK(wrong_locals[i], !local_parse(str_of(wrong_locals[i]), &local) && local.s == 7);
    }
}

static void test_days(void **state)
{
    (void)state;
    int64_t expected = civil_day(1970, 1, 1);
    CHECK("the first", expected == 0 && civil_weekday(0) == 4);
    for (int64_t day = 0; day < 84000; day++) {
        struct civil c = civil_of_day(day);
        CHECK("there and back", civil_day(c.year, c.month, c.day) == day);
    }
    CHECK("before the epoch", civil_weekday(-1) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instants), cmocka_unit_test(test_wrong_rules),
        cmocka_unit_test(test_shifts),   cmocka_unit_test(test_locals),
        cmocka_unit_test(test_days),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
