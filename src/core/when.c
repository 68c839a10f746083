#include "core/when.h"

enum { INTERVAL_MAX = 53 };

static enum err parse_time(struct str text, const char *field, int64_t *out, struct error *e)
{
    struct local local = { 0 };
    if (!local_parse(text, &local))
        return err_field(e, field, "%s: expected a local time like 2026-03-27T18:00:00", field);
    *out = local.s;
    return ERR_OK;
}

/* Its zone by name, and by what the name means now. */
static enum err fill_zone(const struct when_spec *spec, struct when *out, struct zone *zone,
                          struct error *e)
{
    bool is_utc = spec->zone.size == 0 || str_is(spec->zone, "UTC");
    out->zone = is_utc ? STR("UTC") : spec->zone;
    out->zone_rule = is_utc ? STR("UTC0") : spec->zone_rule;
    if (spec->zone.size > ZONE_NAME_MAX || zone_parse(out->zone_rule, zone, NULL) != ERR_OK)
        return err_field(e, "zone", "zone: there is no time zone \"%.*s\"",
                         (int)MIN_OF(spec->zone.size, (size_t)ZONE_NAME_MAX), spec->zone.data);
    return ERR_OK;
}

static enum err fill_end(const struct when_spec *spec, struct when *out, struct error *e)
{
    bool has_end = spec->end.size > 0;
    bool has_span = spec->duration_s != UNSET;
    if (has_end == has_span && (has_end || !spec->may_be_open))
        return err_field(e, spec->end_name, "%s: give either %s or duration_s", spec->end_name,
                         spec->end_name);
    if (has_span)
        out->end_s = out->start_s + spec->duration_s;
    return has_end ? parse_time(spec->end, spec->end_name, &out->end_s, e) : ERR_OK;
}

static enum err fill_times(const struct when_spec *spec, struct wall now, const struct zone *zone,
                           struct when *out, struct error *e)
{
    enum err rc = ERR_OK;
    if (spec->start.size > 0 || !spec->may_be_now)
        rc = parse_time(spec->start, spec->start_name, &out->start_s, e);
    else
        out->start_s = zone_local(zone, now.ns / NS_PER_S).s;
    if (rc == ERR_OK)
        rc = fill_end(spec, out, e);
    if (rc == ERR_OK && spec->until.size > 0)
        rc = parse_time(spec->until, spec->until_name, &out->until_s, e);
    if (rc == ERR_OK && spec->until.size > 0 && out->repeat == REPEAT_NEVER)
        rc = err_field(e, spec->until_name, "%s: only what repeats has one; give every as well",
                       spec->until_name);
    if (rc == ERR_OK && out->end_s == 0 && out->repeat != REPEAT_NEVER)
        rc = err_field(e, spec->end_name, "%s: what repeats has to end", spec->end_name);
    if (rc != ERR_OK || out->end_s == 0)
        return rc;
    if (out->end_s <= out->start_s)
        return err_field(e, spec->end_name, "%s: must be after %s", spec->end_name,
                         spec->start_name);
    if (out->end_s - out->start_s > WHEN_YEAR_S)
        return err_field(e, spec->end_name, "%s: a window has at most 366 days", spec->end_name);
    return ERR_OK;
}

static enum err check_repeat(const struct when_spec *spec, struct when *out, struct error *e)
{
    if (out->repeat == REPEAT_NEVER)
        return ERR_OK;
    if (out->repeat == REPEAT_WEEKDAY && out->interval != 1)
        return err_field(e, "interval", "interval: weekdays are taken one after the other");
    if (out->end_s - out->start_s > calendar_span_max(out->repeat, out->interval))
        return err_field(e, spec->end_name, "%s: the window would reach into the next one",
                         spec->end_name);
    if (out->until_s == 0)
        out->until_s = out->start_s + WHEN_YEAR_S;
    if (out->until_s <= out->start_s || out->until_s > out->start_s + WHEN_YEAR_S)
        return err_field(e, spec->until_name, "%s: must be within 366 days after %s",
                         spec->until_name, spec->start_name);
    return ERR_OK;
}

static enum err fill_window(const struct when_spec *spec, struct wall now, const struct zone *zone,
                            struct when *out, struct error *e)
{
    struct calendar calendar = { .zone = *zone,
                                 .start = { out->start_s },
                                 .end = { out->end_s },
                                 .repeat = out->repeat,
                                 .interval = out->interval,
                                 .until = { out->until_s } };
    if (out->end_s == 0)
        out->window.start.ns = zone_instant(zone, calendar.start) * NS_PER_S;
    else if (!calendar_next(&calendar, now, &out->window))
        return err_field(e, spec->end_name, "%s: is over already", spec->end_name);
    if (out->window.start.ns > now.ns + WHEN_YEAR_S * NS_PER_S)
        return err_field(e, spec->start_name, "%s: at most 366 days ahead", spec->start_name);
    return ERR_OK;
}

enum err when_fill(const struct when_spec *spec, struct wall now, struct when *out, struct error *e)
{
    struct zone zone = { 0 };
    struct when_spec wanted = *spec;
    const struct range ranges[] = {
        { "duration_s", spec->duration_s, 1, WHEN_YEAR_S },
        { "every", spec->every, REPEAT_NEVER, REPEAT_COUNT - 1 },
        { "interval", spec->interval, 1, INTERVAL_MAX },
    };
    enum err rc = check_ranges(ranges, COUNT_OF(ranges), e);
    *out = (struct when){ .repeat = (enum repeat)given_or(spec->every, REPEAT_NEVER),
                          .interval = given_or(spec->interval, 1) };
    /* So long from now on: what the clocks show in between does not matter. */
    if (spec->may_be_now && spec->start.size == 0 && spec->end.size == 0 &&
        out->repeat == REPEAT_NEVER)
        wanted.zone = STR("UTC");
    if (rc == ERR_OK)
        rc = fill_zone(&wanted, out, &zone, e);
    if (rc == ERR_OK)
        rc = fill_times(&wanted, now, &zone, out, e);
    if (rc == ERR_OK)
        rc = check_repeat(&wanted, out, e);
    return rc != ERR_OK ? rc : fill_window(&wanted, now, &zone, out, e);
}
