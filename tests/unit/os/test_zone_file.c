/* Rules out of the system's tables against a second reading of the same tables: Python's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/calendar.h"
#include "os/zone_file.h"
#include "unit/test.h"

#define AROUND (INT64_C(1796023707) * NS_PER_S) /* 2026-11-30 */

/* clang-format off */
static const struct { const char *name; const char *zone; enum err rc; } refusals[] = {
    { "no zone of that name",   "Europe/Atlantis",      ERR_NOT_FOUND },
    { "a directory",            "Europe",               ERR_NOT_FOUND },
    { "no name",                "",                     ERR_INVALID },
    { "out of the directory",   "../../../etc/passwd",  ERR_INVALID },
    { "a path from the root",   "/etc/localtime",       ERR_INVALID },
    { "an empty part",          "Europe//Berlin",       ERR_INVALID },
    { "a slash at the end",     "Europe/",              ERR_INVALID },
    { "no table",               "tzdata.zi",            ERR_INVALID },
};
/* clang-format on */

static void test_refusals(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, refusals) {
        AUTO(buf) struct buf out = { 0 };
        struct error e = { 0 };
        CHECK(c->name, zone_file_rule(str_of(c->zone), (struct wall){ AROUND }, &out, &e) == c->rc);
        CHECK("says why", e.text[0] != '\0');
        CHECK("gives nothing", out.size == 0);
    }
}

static void test_utc(void **state)
{
    (void)state;
    AUTO(buf) struct buf out = { 0 };
    CHECK("needs no table",
          zone_file_rule(STR("UTC"), (struct wall){ AROUND }, &out, NULL) == ERR_OK);
    assert_string_equal(out.data, "UTC0");
}

/* "instant ZONE LOCAL UTC" and "offset ZONE UTC OFFSET", a line each, from the oracle. */
static void check_line(char *line, size_t *lines)
{
    struct str rest = str_of(line);
    struct str what = str_cut(&rest, ' ');
    struct str zone_name = str_cut(&rest, ' ');
    int64_t a = 0;
    int64_t b = 0;
    AUTO(buf) struct buf rule = { 0 };
    struct zone zone;
    struct error e = { 0 };
    assert_true(str_to_i64(str_cut(&rest, ' '), INT64_MIN, INT64_MAX, &a));
    assert_true(str_to_i64(str_cut(&rest, '\n'), INT64_MIN, INT64_MAX, &b));
    if (zone_file_rule(zone_name, (struct wall){ AROUND }, &rule, &e) != ERR_OK ||
        zone_parse(buf_str(&rule), &zone, &e) != ERR_OK)
        fail_msg("%.*s: %s", STR_ARG(zone_name), e.text);
    int64_t got =
        str_is(what, "offset") ? zone_offset(&zone, a) : zone_instant(&zone, (struct local){ a });
    if (got != b)
        fail_msg("%.*s of %.*s at %lld: %lld, expected %lld (rule %s)", STR_ARG(what),
                 STR_ARG(zone_name), (long long)a, (long long)got, (long long)b, rule.data);
    ++*lines;
}

static void test_oracle(void **state)
{
    (void)state;
    const char *path = getenv("TEST_ZONES");
    assert_non_null(path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[256];
    size_t lines = 0;
    while (fgets(line, sizeof(line), file) != NULL)
        check_line(line, &lines);
    (void)fclose(file);
    print_message("# %zu answers agree with zoneinfo\n", lines);
    CHECK("the oracle said something", lines > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_utc),
        cmocka_unit_test(test_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
