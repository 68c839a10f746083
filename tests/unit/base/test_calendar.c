#include "base/calendar.h"
#include "unit/test.h"

#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"

static struct local local_of(const char *text)
{
    struct local local = { 0 };
    if (!local_parse(str_of(text), &local))
        fail_msg("%s is no time", text);
    return local;
}

static struct calendar calendar_of(const char *start, const char *end, enum repeat repeat,
                                   int64_t interval)
{
    struct calendar c = { .start = local_of(start),
                          .end = local_of(end),
                          .repeat = repeat,
                          .interval = interval,
                          .until = local_of("2027-06-01T00:00:00") };
    if (zone_parse(STR(BERLIN), &c.zone, NULL) != ERR_OK)
        fail();
    return c;
}

static struct wall wall_of(const char *utc)
{
    return (struct wall){ local_of(utc).s * NS_PER_S };
}

struct row {
    const char *name, *start, *end;
    enum repeat repeat;
    int64_t interval;
    const char *after;
    const char *from, *to; /* UTC; NULL: no window any more */
};

/* clang-format off */
static const struct row rows[] = {
    { "once, before it", "2026-06-01T01:00", "2026-06-01T02:00", REPEAT_NEVER, 0, "2026-01-01T00:00", "2026-05-31T23:00:00", "2026-06-01T00:00:00" },
    { "once, in it", "2026-06-01T01:00", "2026-06-01T02:00", REPEAT_NEVER, 0, "2026-05-31T23:30", "2026-05-31T23:00:00", "2026-06-01T00:00:00" },
    { "once, when it ends", "2026-06-01T01:00", "2026-06-01T02:00", REPEAT_NEVER, 0, "2026-06-01T00:00", NULL, NULL },
    { "Friday", "2026-03-27T18:00", "2026-03-27T20:00", REPEAT_WEEKDAY, 1, "2026-03-27T12:00", "2026-03-27T17:00:00", "2026-03-27T19:00:00" },
    { "after Friday comes Monday, in summer", "2026-03-27T18:00", "2026-03-27T20:00", REPEAT_WEEKDAY, 1, "2026-03-27T19:00", "2026-03-30T16:00:00", "2026-03-30T18:00:00" },
    { "a Saturday begins on Monday", "2026-03-28T18:00", "2026-03-28T20:00", REPEAT_WEEKDAY, 1, "2026-03-01T00:00", "2026-03-30T16:00:00", "2026-03-30T18:00:00" },
    { "every third day", "2026-01-01T10:00", "2026-01-01T11:00", REPEAT_DAY, 3, "2026-01-02T00:00", "2026-01-04T09:00:00", "2026-01-04T10:00:00" },
    { "every second week", "2026-01-05T10:00", "2026-01-06T10:00", REPEAT_WEEK, 2, "2026-01-06T09:00", "2026-01-19T09:00:00", "2026-01-20T09:00:00" },
    { "across the change it is an hour shorter", "2026-03-01T01:00", "2026-03-01T05:00", REPEAT_DAY, 1, "2026-03-28T12:00", "2026-03-29T00:00:00", "2026-03-29T03:00:00" },
    { "and an hour longer", "2026-03-01T01:00", "2026-03-01T05:00", REPEAT_DAY, 1, "2026-10-24T12:00", "2026-10-24T23:00:00", "2026-10-25T04:00:00" },
    { "begins in the gap: at the change", "2026-03-01T02:30", "2026-03-01T05:00", REPEAT_DAY, 1, "2026-03-28T12:00", "2026-03-29T01:00:00", "2026-03-29T03:00:00" },
    { "ends in the gap: at the change", "2026-03-01T01:00", "2026-03-01T02:30", REPEAT_DAY, 1, "2026-03-28T12:00", "2026-03-29T00:00:00", "2026-03-29T01:00:00" },
    { "all in the gap: as long as ever", "2026-03-01T02:10", "2026-03-01T02:50", REPEAT_DAY, 1, "2026-03-28T12:00", "2026-03-29T01:00:00", "2026-03-29T01:40:00" },
    { "twice: the first time only", "2026-03-01T02:10", "2026-03-01T02:50", REPEAT_DAY, 1, "2026-10-24T12:00", "2026-10-25T00:10:00", "2026-10-25T00:50:00" },
    { "and then the next day", "2026-03-01T02:10", "2026-03-01T02:50", REPEAT_DAY, 1, "2026-10-25T00:50", "2026-10-26T01:10:00", "2026-10-26T01:50:00" },
    { "the last one", "2026-03-01T02:10", "2026-03-01T02:50", REPEAT_DAY, 1, "2027-05-31T00:00", "2027-05-31T00:10:00", "2027-05-31T00:50:00" },
    { "and no more", "2026-03-01T02:10", "2026-03-01T02:50", REPEAT_DAY, 1, "2027-05-31T00:50", NULL, NULL },
};
/* clang-format on */

static void test_next(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, rows) {
        struct calendar calendar = calendar_of(c->start, c->end, c->repeat, c->interval);
        struct window window = { 0 };
        bool found = calendar_next(&calendar, wall_of(c->after), &window);
        CHECK(c->name, found == (c->from != NULL));
        if (!found)
            continue;
        char text[LOCAL_TEXT_MAX];
        const struct local from = { window.start.ns / NS_PER_S };
        const struct local to = { window.end.ns / NS_PER_S };
        CHECK(c->name, str_is(str_of(local_text(from, text)), c->from));
        CHECK(c->name, str_is(str_of(local_text(to, text)), c->to));
    }
}

/* Whatever the time of day, a window comes once on each day, and none meets another. */
static void test_once_a_day(void **state)
{
    (void)state;
    for (int64_t minute = 0; minute < 24 * 60; minute += 7) {
        struct calendar c = calendar_of("2026-01-01T00:00", "2026-01-01T00:25", REPEAT_DAY, 1);
        c.start.s += minute * 60;
        c.end.s += minute * 60;
        struct window before = { 0 };
        int64_t count = 0;
        struct wall after = wall_of("2025-12-31T00:00");
        struct window window;
        int64_t last_day = -1;
        for (; calendar_next(&c, after, &window); after = window.end, count++) {
            int64_t day = zone_local(&c.zone, window.start.ns / NS_PER_S).s / 86400;
            CHECK("it is not empty", window.start.ns < window.end.ns);
            CHECK("in order", window.start.ns >= before.end.ns);
            CHECK("a day of its own", day > last_day);
            CHECK("no day is left out", last_day < 0 || day == last_day + 1);
            last_day = day;
            before = window;
        }
        CHECK("all of them", count == civil_day(2027, 6, 1) - civil_day(2026, 1, 1));
    }
}

static void test_span(void **state)
{
    (void)state;
    CHECK("days", calendar_span_max(REPEAT_DAY, 2) == 2 * INT64_C(86400));
    CHECK("weekdays", calendar_span_max(REPEAT_WEEKDAY, 1) == INT64_C(86400));
    CHECK("weeks", calendar_span_max(REPEAT_WEEK, 2) == 14 * INT64_C(86400));
    CHECK("once", calendar_span_max(REPEAT_NEVER, 0) == INT64_MAX);
    const struct window a = { { 1 }, { 2 } };
    const struct window b = { { 2 }, { 3 } };
    CHECK("half open", !window_overlaps(a, b) && !window_overlaps(b, a) && window_overlaps(a, a));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_next),
                                        cmocka_unit_test(test_once_a_day),
                                        cmocka_unit_test(test_span) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
