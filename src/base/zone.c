#include "base/zone.h"

#include <stdio.h>

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400, WEEK_DAYS = 7, MARGIN_S = 2 * DAY_S };

/* ---- dates --------------------------------------------------------------------------------- */

/* Months are counted from March, so that the leap day is the last of a year; eras are of 400
 * years. */
int64_t civil_day(int64_t year, int64_t month, int64_t day)
{
    int64_t y = year - (month <= 2);
    int64_t m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

struct civil civil_of_day(int64_t day)
{
    int64_t z = day + 719468;
    int64_t era = z / 146097;
    int64_t of_era = z - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t m = (5 * of_year + 2) / 153;
    struct civil civil = { .day = of_year - (153 * m + 2) / 5 + 1,
                           .month = m < 10 ? m + 3 : m - 9 };
    civil.year = year_of_era + era * 400 + (civil.month <= 2);
    return civil;
}

int64_t civil_weekday(int64_t day)
{
    return ((day + 4) % WEEK_DAYS + WEEK_DAYS) % WEEK_DAYS;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t year_of(int64_t s)
{
    return civil_of_day(floor_div(s, DAY_S)).year;
}

/* ---- reading rules ------------------------------------------------------------------------- */

struct reader {
    struct str rest;
};

static char peek(const struct reader *r)
{
    static const char end = '\0';
    const char *at = r->rest.size > 0 ? r->rest.data : &end;
    return *at;
}

static void skip(struct reader *r)
{
    r->rest.data++;
    r->rest.size--;
}

static bool take(struct reader *r, char c)
{
    if (peek(r) != c || r->rest.size == 0)
        return false;
    skip(r);
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool take_number(struct reader *r, int64_t min, int64_t max, int64_t *out)
{
    size_t size = 0;
    while (size < r->rest.size && is_digit(r->rest.data[size]))
        size++;
    const struct str digits = { r->rest.data, size };
    if (size == 0 || size > 12 || !str_to_i64(digits, min, max, out))
        return false;
    r->rest.data += size;
    r->rest.size -= size;
    return true;
}

/* At least three letters, or anything in angle brackets. */
static bool take_name(struct reader *r)
{
    size_t letters = 0;
    bool is_quoted = take(r, '<');
    while (r->rest.size > 0 && (is_quoted ? peek(r) != '>' : is_letter(peek(r)))) {
        skip(r);
        letters++;
    }
    return letters >= 3 && (!is_quoted || take(r, '>'));
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(struct reader *r, int64_t max_hours, int64_t *out)
{
    int64_t parts[3] = { 0 };
    bool is_negative = take(r, '-');
    if (!is_negative)
        (void)take(r, '+');
    if (!take_number(r, 0, max_hours, &parts[0]))
        return false;
    for (size_t i = 1; i < COUNT_OF(parts) && take(r, ':'); i++) {
        if (!take_number(r, 0, 59, &parts[i]))
            return false;
    }
    int64_t s = parts[0] * HOUR_S + parts[1] * MINUTE_S + parts[2];
    *out = is_negative ? -s : s;
    return true;
}

static bool take_day(struct reader *r, struct zone_change *out)
{
    if (take(r, 'M')) {
        out->kind = CHANGE_BY_WEEKDAY;
        return take_number(r, 1, 12, &out->month) && take(r, '.') &&
               take_number(r, 1, 5, &out->week) && take(r, '.') &&
               take_number(r, 0, 6, &out->weekday);
    }
    bool is_without_leap = take(r, 'J');
    out->kind = is_without_leap ? CHANGE_BY_DAY_WITHOUT_LEAP : CHANGE_BY_DAY;
    return take_number(r, is_without_leap, 365, &out->day);
}

static bool take_change(struct reader *r, struct zone_change *out)
{
    *out = (struct zone_change){ .time_s = 2 * HOUR_S };
    return take(r, ',') && take_day(r, out) && (!take(r, '/') || take_time(r, 167, &out->time_s));
}

/* POSIX counts offsets to the west. */
static bool take_posix(struct reader *r, struct zone *out)
{
    int64_t west = 0;
    if (!take_name(r) || !take_time(r, 24, &west))
        return false;
    out->standard_s = -west;
    if (r->rest.size == 0)
        return true;
    out->has_summer = true;
    out->summer_s = out->standard_s + HOUR_S;
    if (!take_name(r))
        return false;
    if (peek(r) != ',') {
        if (!take_time(r, 24, &west))
            return false;
        out->summer_s = -west;
    }
    return take_change(r, &out->begin) && take_change(r, &out->end) && r->rest.size == 0;
}

static bool take_signed(struct reader *r, int64_t max, int64_t *out)
{
    bool is_negative = take(r, '-');
    if (!is_negative)
        (void)take(r, '+');
    if (!take_number(r, 0, max, out))
        return false;
    *out = is_negative ? -*out : *out;
    return true;
}

/* "+3600 1771120800:0 1774144800:3600;": shifts in order. */
static bool take_shifts(struct reader *r, struct zone *out)
{
    if (!take_signed(r, DAY_S, &out->first_offset_s))
        return false;
    while (take(r, ' ')) {
        struct zone_shift shift = { 0 };
        if (out->shift_count == ZONE_SHIFTS_MAX || !take_signed(r, INT64_C(1) << 36, &shift.at_s) ||
            !take(r, ':') || !take_signed(r, DAY_S, &shift.offset_s))
            return false;
        if (out->shift_count > 0 && shift.at_s <= out->shifts[out->shift_count - 1].at_s)
            return false;
        out->shifts[out->shift_count++] = shift;
    }
    return out->shift_count > 0 && take(r, ';');
}

enum err zone_parse(struct str rule, struct zone *out, struct error *e)
{
    struct zone zone = { 0 };
    struct reader r = { rule };
    bool has_shifts = peek(&r) == '+' || peek(&r) == '-';
    if (rule.size > ZONE_RULE_MAX || (has_shifts && !take_shifts(&r, &zone)) ||
        !take_posix(&r, &zone))
        return err_set(e, ERR_INVALID, "\"%.*s\" is no rule of a time zone",
                       (int)MIN_OF(rule.size, (size_t)80), rule.data != NULL ? rule.data : "");
    *out = zone;
    return ERR_OK;
}

/* ---- offsets ------------------------------------------------------------------------------- */

/* Local time of a change in that year, by the clocks before it. */
static int64_t change_local(const struct zone_change *change, int64_t year)
{
    int64_t day = civil_day(year, 1, 1);
    switch (change->kind) {
    case CHANGE_BY_DAY:
        day += change->day;
        break;
    case CHANGE_BY_DAY_WITHOUT_LEAP:
        day += change->day - 1 + (is_leap(year) && change->day > 59);
        break;
    case CHANGE_BY_WEEKDAY: {
        int64_t first = civil_day(year, change->month, 1);
        int64_t next =
            change->month == 12 ? civil_day(year + 1, 1, 1) : civil_day(year, change->month + 1, 1);
        int64_t ahead = (change->weekday - civil_weekday(first) + WEEK_DAYS) % WEEK_DAYS;
        day = first + ahead + (change->week - 1) * WEEK_DAYS;
        if (day >= next)
            day -= WEEK_DAYS;
        break;
    }
    }
    return day * DAY_S + change->time_s;
}

static struct zone_shift summer_begins(const struct zone *zone, int64_t year)
{
    return (struct zone_shift){ change_local(&zone->begin, year) - zone->standard_s,
                                zone->summer_s };
}

static struct zone_shift summer_ends(const struct zone *zone, int64_t year)
{
    return (struct zone_shift){ change_local(&zone->end, year) - zone->summer_s, zone->standard_s };
}

/* The last change of the years around decides; where two fall together, summer goes on. */
static int64_t rule_offset(const struct zone *zone, int64_t utc_s)
{
    if (!zone->has_summer)
        return zone->standard_s;
    struct zone_shift last = { INT64_MIN, zone->standard_s };
    int64_t year = year_of(utc_s);
    for (int64_t y = year - 1; y <= year + 1; y++) {
        const struct zone_shift both[] = { summer_ends(zone, y), summer_begins(zone, y) };
        for (size_t i = 0; i < COUNT_OF(both); i++) {
            if (both[i].at_s <= utc_s && both[i].at_s >= last.at_s)
                last = both[i];
        }
    }
    return last.offset_s;
}

int64_t zone_offset(const struct zone *zone, int64_t utc_s)
{
    size_t passed = 0;
    while (passed < zone->shift_count && zone->shifts[passed].at_s <= utc_s)
        passed++;
    if (passed == zone->shift_count)
        return rule_offset(zone, utc_s); /* from the last shift on */
    return passed == 0 ? zone->first_offset_s : zone->shifts[passed - 1].offset_s;
}

static void no_later(struct zone_shift shift, int64_t after_s, struct zone_shift *earliest)
{
    if (shift.at_s > after_s && shift.at_s < earliest->at_s)
        *earliest = shift;
}

bool zone_next_shift(const struct zone *zone, int64_t utc_s, struct zone_shift *out)
{
    int64_t before = zone_offset(zone, utc_s);
    int64_t at_s = utc_s;
    int64_t first_year = year_of(utc_s) - 1;
    for (;;) {
        struct zone_shift next = { INT64_MAX, 0 };
        for (size_t i = 0; i < zone->shift_count; i++)
            no_later(zone->shifts[i], at_s, &next);
        for (int64_t y = first_year; zone->has_summer && y <= first_year + 3; y++) {
            no_later(summer_begins(zone, y), at_s, &next);
            no_later(summer_ends(zone, y), at_s, &next);
        }
        if (next.at_s == INT64_MAX)
            return false;
        next.offset_s = zone_offset(zone, next.at_s);
        at_s = next.at_s;
        if (next.offset_s == before)
            continue;
        *out = next;
        return true;
    }
}

struct local zone_local(const struct zone *zone, int64_t utc_s)
{
    return (struct local){ utc_s + zone_offset(zone, utc_s) };
}

int64_t zone_instant(const struct zone *zone, struct local local)
{
    int64_t from = local.s - MARGIN_S; /* no clock is so far ahead */
    int64_t offset = zone_offset(zone, from);
    for (;;) {
        struct zone_shift next;
        int64_t at = MAX_OF(from, local.s - offset);
        if (!zone_next_shift(zone, from, &next) || at < next.at_s)
            return at;
        from = next.at_s;
        offset = next.offset_s;
    }
}

/* ---- texts --------------------------------------------------------------------------------- */

static bool part(struct str text, size_t at, size_t size, int64_t *out)
{
    const struct str digits = { text.data + at, size };
    for (size_t i = 0; i < size; i++) {
        if (!is_digit(digits.data[i]))
            return false;
    }
    return str_to_i64(digits, 0, 9999, out);
}

bool local_parse(struct str text, struct local *out)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    if (text.size != sizeof(shape) - 1 && text.size != sizeof(shape) - 4)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (shape[i] != 'd' && text.data[i] != shape[i])
            return false;
    }
    if (!part(text, 0, 4, &year) || !part(text, 5, 2, &month) || !part(text, 8, 2, &day) ||
        !part(text, 11, 2, &hour) || !part(text, 14, 2, &minute) ||
        (text.size == sizeof(shape) - 1 && !part(text, 17, 2, &second)))
        return false;
    if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || hour > 23 ||
        minute > 59 || second > 59)
        return false;
    int64_t date = civil_day(year, month, day);
    if (civil_of_day(date).day != day)
        return false;
    out->s = date * DAY_S + hour * HOUR_S + minute * MINUTE_S + second;
    return true;
}

char *local_text(struct local local, char out[LOCAL_TEXT_MAX])
{
    int64_t day = floor_div(local.s, DAY_S);
    int64_t s = local.s - day * DAY_S;
    struct civil c = civil_of_day(day);
    (void)snprintf(out, LOCAL_TEXT_MAX, "%04u-%02u-%02uT%02u:%02u:%02u", (unsigned)c.year % 10000,
                   (unsigned)c.month % 100, (unsigned)c.day % 100, (unsigned)(s / HOUR_S) % 100,
                   (unsigned)(s % HOUR_S / MINUTE_S) % 100, (unsigned)(s % MINUTE_S) % 100);
    return out;
}
