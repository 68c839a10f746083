#include "base/timepoint.h"

#include <stdio.h>

/* Days since 1970 to a proleptic Gregorian date: Howard Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms", civil_from_days. No C library call, so that pure code may use it. */
static void civil_from_days(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    *day = (unsigned)(day_of_year - (153 * shifted + 2) / 5 + 1);
    *month = (unsigned)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

char *wall_text(struct wall at, char out[WALL_TEXT_MAX])
{
    int64_t ms = at.ns / NS_PER_MS;
    int64_t day_ms = ms % 86400000;
    int64_t days = ms / 86400000;
    if (day_ms < 0) {
        day_ms += 86400000;
        days--;
    }
    int64_t year = 0;
    unsigned month = 0;
    unsigned day = 0;
    civil_from_days(days, &year, &month, &day);
    (void)snprintf(out, WALL_TEXT_MAX, "%04d-%02u-%02uT%02u:%02u:%02u.%03uZ", (int)(year % 10000),
                   month % 100, day % 100, (unsigned)(day_ms / 3600000) % 100,
                   (unsigned)(day_ms / 60000 % 60), (unsigned)(day_ms / 1000 % 60),
                   (unsigned)(day_ms % 1000));
    return out;
}
