#include "base/calendar.h"

enum { DAY_S = 86400, WEEK_DAYS = 7, SATURDAY = 6, SUNDAY = 0 };

static int64_t step_days(const struct calendar *calendar)
{
    switch (calendar->repeat) {
    case REPEAT_WEEK:
        return WEEK_DAYS * calendar->interval;
    case REPEAT_DAY:
        return calendar->interval;
    case REPEAT_WEEKDAY:
    case REPEAT_NEVER:
    case REPEAT_COUNT:
        break;
    }
    return 1;
}

int64_t calendar_span_max(enum repeat repeat, int64_t interval)
{
    const struct calendar calendar = { .repeat = repeat, .interval = interval };
    return repeat == REPEAT_NEVER ? INT64_MAX : step_days(&calendar) * DAY_S;
}

static struct wall wall_of(int64_t s)
{
    return (struct wall){ s * NS_PER_S };
}

/* The window that begins so many days after the first. */
static struct window window_at(const struct calendar *calendar, int64_t days)
{
    const struct local start = { calendar->start.s + days * DAY_S };
    const struct local end = { calendar->end.s + days * DAY_S };
    int64_t from = zone_instant(&calendar->zone, start);
    int64_t to = zone_instant(&calendar->zone, end);
    if (to <= from)
        to = from + (end.s - start.s);
    return (struct window){ wall_of(from), wall_of(to) };
}

static bool is_day_meant(const struct calendar *calendar, int64_t days)
{
    int64_t day = calendar->start.s / DAY_S + days;
    int64_t weekday = civil_weekday(day);
    return calendar->repeat != REPEAT_WEEKDAY || (weekday != SATURDAY && weekday != SUNDAY);
}

/* Local time is never more than two days off, so the search begins well before. */
static int64_t first_days(const struct calendar *calendar, struct wall after)
{
    int64_t step = step_days(calendar);
    int64_t passed = (after.ns / NS_PER_S - calendar->end.s) / DAY_S - 4;
    return passed > 0 ? passed / step * step : 0;
}

bool calendar_next(const struct calendar *calendar, struct wall after, struct window *out)
{
    bool is_once = calendar->repeat == REPEAT_NEVER;
    int64_t days = is_once ? 0 : first_days(calendar, after);
    while (is_once || calendar->start.s + days * DAY_S < calendar->until.s) {
        struct window window = window_at(calendar, days);
        if (is_day_meant(calendar, days) && window.end.ns > after.ns) {
            *out = window;
            return true;
        }
        if (is_once)
            return false;
        days += step_days(calendar);
    }
    return false;
}
