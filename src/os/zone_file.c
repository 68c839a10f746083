/*
 * zone_file.c - TZif (RFC 8536): a list of shifts, and behind it the rule for all that come later.
 *
 * Most zones follow their last rule for as far as anybody plans, and the rule alone is taken. Where
 * the shifts of the next years are listed because no rule can say them (Morocco changes its clocks
 * with the moon), they come along.
 */
#include "os/zone_file.h"

#include <string.h>

#include "os/file.h"

enum { TABLE_BYTES_MAX = 256 * 1024, HEADER_BYTES = 44, TYPE_BYTES = 6, DAY_S = 86400 };

#define ZONES       "/usr/share/zoneinfo/"
#define PAST_S      (INT64_C(400) * DAY_S)
#define AHEAD_S     (INT64_C(3) * 366 * DAY_S)
#define SHIFTS_TEXT "the table of the zone is damaged"

/* The second, 64-bit half of a file. */
struct table {
    const uint8_t *times; /* eight bytes each */
    const uint8_t *kinds; /* one byte each, which type begins at that time */
    const uint8_t *types; /* six bytes each, the first four of them the offset */
    size_t time_count, type_count;
    struct str footer;
};

/* Letters, digits and "_+-/", no empty or ".." part: what names of zones are made of. */
static bool zone_name_is_good(struct str name)
{
    bool is_good = name.size > 0 && name.size <= ZONE_NAME_MAX;
    for (size_t i = 0; i < name.size && is_good; i++) {
        char c = name.data[i];
        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '+' || c == '-' || c == '/';
    }
    struct str rest = name;
    while (rest.size > 0 && is_good)
        is_good = str_cut(&rest, '/').size > 0;
    return is_good && name.data[name.size - 1] != '/';
}

/* ---- the bytes of a table ------------------------------------------------------------------ */

static int64_t big_endian(const uint8_t *bytes, size_t size)
{
    uint64_t value = (bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        value = (value << 8) | bytes[i];
    int64_t out = 0;
    memcpy(&out, &value, sizeof(out));
    return out;
}

struct header {
    size_t utc_count, standard_count, leap_count, time_count, type_count, char_count;
};

static bool header_read(struct str bytes, struct header *out)
{
    size_t *const counts[] = { &out->utc_count,  &out->standard_count, &out->leap_count,
                               &out->time_count, &out->type_count,     &out->char_count };
    if (bytes.size < HEADER_BYTES || memcmp(bytes.data, "TZif", 4) != 0 || bytes.data[4] < '2')
        return false;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        int64_t count = big_endian((const uint8_t *)bytes.data + 20 + 4 * i, 4);
        if (count < 0 || count > TABLE_BYTES_MAX)
            return false;
        *counts[i] = (size_t)count;
    }
    return true;
}

static size_t body_bytes(const struct header *h, size_t time_bytes)
{
    return h->time_count * (time_bytes + 1) + h->type_count * TYPE_BYTES + h->char_count +
           h->leap_count * (time_bytes + 4) + h->standard_count + h->utc_count;
}

static bool table_read(struct str bytes, struct table *out)
{
    struct header h = { 0 };
    if (!header_read(bytes, &h) || bytes.size < HEADER_BYTES + body_bytes(&h, 4))
        return false;
    struct str half = { bytes.data + HEADER_BYTES + body_bytes(&h, 4),
                        bytes.size - HEADER_BYTES - body_bytes(&h, 4) };
    if (!header_read(half, &h) || half.size < HEADER_BYTES + body_bytes(&h, 8) + 2)
        return false;
    out->times = (const uint8_t *)half.data + HEADER_BYTES;
    out->kinds = out->times + 8 * h.time_count;
    out->types = out->kinds + h.time_count;
    out->time_count = h.time_count;
    out->type_count = h.type_count;
    struct str rest = { half.data + HEADER_BYTES + body_bytes(&h, 8),
                        half.size - HEADER_BYTES - body_bytes(&h, 8) };
    bool is_framed = rest.data[0] == '\n' && rest.data[rest.size - 1] == '\n';
    out->footer = (struct str){ rest.data + 1, rest.size - 2 };
    for (size_t i = 0; i < out->time_count && is_framed; i++)
        is_framed = out->kinds[i] < out->type_count;
    return is_framed && out->type_count > 0;
}

static int64_t time_at(const struct table *table, size_t i)
{
    return big_endian(table->times + 8 * i, 8);
}

/* After the shift before the i-th. */
static int64_t offset_before(const struct table *table, size_t i)
{
    size_t kind = i > 0 ? table->kinds[i - 1] : 0;
    return big_endian(table->types + TYPE_BYTES * kind, 4);
}

/* ---- rules --------------------------------------------------------------------------------- */

/* From `first` on, the rule alone gives what the table lists. */
static bool rule_suffices(const struct table *table, size_t first, const struct zone *rule,
                          int64_t from_s)
{
    if (zone_offset(rule, from_s) != offset_before(table, first))
        return false;
    int64_t at = from_s;
    for (size_t i = first; i < table->time_count; i++) {
        struct zone_shift next;
        if (offset_before(table, i + 1) == offset_before(table, i))
            continue; /* a new name, or a new law */
        if (!zone_next_shift(rule, at, &next) || next.at_s != time_at(table, i) ||
            next.offset_s != offset_before(table, i + 1))
            return false;
        at = next.at_s;
    }
    return true;
}

/* Shifts until the rule agrees, at least up to `until_s`. */
static enum err shifts_add(const struct table *table, size_t first, const struct zone *rule,
                           int64_t until_s, struct buf *out, struct error *e)
{
    size_t count = 0;
    buf_format(out, "%+lld", (long long)offset_before(table, first));
    for (size_t i = first; i < table->time_count; i++) {
        int64_t at = time_at(table, i);
        if (count > 0 && at > until_s && zone_offset(rule, at - 1) == offset_before(table, i))
            break;
        if (++count > ZONE_SHIFTS_MAX)
            return err_set(e, ERR_INVALID, "the zone has more than %d shifts in the next years",
                           ZONE_SHIFTS_MAX);
        buf_format(out, " %lld:%lld", (long long)at, (long long)offset_before(table, i + 1));
    }
    buf_add_char(out, ';');
    return ERR_OK;
}

static enum err rule_add(const struct table *table, struct wall around, struct buf *out,
                         struct error *e)
{
    struct zone rule;
    int64_t from_s = around.ns / NS_PER_S - PAST_S;
    enum err rc = zone_parse(table->footer, &rule, e);
    if (rc != ERR_OK)
        return rc;
    size_t first = 0;
    while (first < table->time_count && time_at(table, first) <= from_s)
        first++;
    if (!rule_suffices(table, first, &rule, from_s)) {
        if (first == table->time_count)
            return err_set(e, ERR_INVALID, SHIFTS_TEXT);
        rc = shifts_add(table, first, &rule, from_s + PAST_S + AHEAD_S, out, e);
    }
    if (rc == ERR_OK)
        buf_add_str(out, table->footer);
    return rc;
}

enum err zone_file_rule(struct str name, struct wall around, struct buf *out, struct error *e)
{
    char path[sizeof(ZONES) + ZONE_NAME_MAX] = ZONES;
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(buf) struct buf rule = { 0 };
    struct table table;
    if (str_is(name, "UTC")) {
        buf_add_text(out, "UTC0");
        return ERR_OK;
    }
    if (!zone_name_is_good(name))
        return err_set(e, ERR_INVALID, "a time zone has a name like Europe/Berlin");
    memcpy(path + sizeof(ZONES) - 1, name.data, name.size);
    path[sizeof(ZONES) - 1 + name.size] = '\0';
    enum err rc = file_read(path, TABLE_BYTES_MAX, &bytes, e);
    if (rc != ERR_OK)
        return err_set(e, ERR_NOT_FOUND,
                       "this machine knows no time zone \"%.*s\"; names are like Europe/Berlin",
                       STR_ARG(name));
    if (!table_read(buf_str(&bytes), &table))
        return err_set(e, ERR_INVALID, SHIFTS_TEXT);
    rc = rule_add(&table, around, &rule, e);
    if (rc == ERR_OK)
        buf_add_str(out, buf_str(&rule));
    return rc;
}
