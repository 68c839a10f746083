/* print.c - answers as tables, JSON or YAML, all of it safe for a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/safe.h"
#include "model/cause.h"
#include "os/clock.h"

bool cli_is_terminal(void)
{
    return isatty(STDOUT_FILENO) == 1;
}

const json_t *cli_field(const json_t *object, const char *path)
{
    AUTO(arena) struct arena arena = { 0 };
    struct str rest = str_of(path);
    while (object != NULL && rest.size > 0)
        object = json_object_get(object, str_c(&arena, str_cut(&rest, '.')));
    return object;
}

const char *cli_text(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));
    return text != NULL ? text : "";
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* 1500 -> "1.5", 2000 -> "2", -1 -> "-" */
static void add_milli(struct buf *out, int64_t milli)
{
    if (milli < 0) {
        buf_add_char(out, '-');
        return;
    }
    buf_format(out, "%lld", (long long)(milli / 1000));
    if (milli % 1000 != 0) {
        buf_format(out, ".%03lld", (long long)(milli % 1000));
        while (out->data[out->size - 1] == '0')
            out->data[--out->size] = '\0';
    }
}

static void add_span(struct buf *out, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (seconds < units[i].seconds && i + 1 < COUNT_OF(units))
            continue;
        buf_format(out, "%lld%c", (long long)(seconds / units[i].seconds), units[i].unit);
        int64_t rest = seconds % units[i].seconds;
        if (i + 1 < COUNT_OF(units) && rest / units[i + 1].seconds > 0)
            buf_format(out, "%lld%c", (long long)(rest / units[i + 1].seconds), units[i + 1].unit);
        return;
    }
}

static void add_micros(struct buf *out, int64_t micros)
{
    const char *sign = micros < 0 ? "-" : "";
    uint64_t whole = micros < 0 ? -(uint64_t)micros : (uint64_t)micros;
    buf_format(out, "%s%llu.%06llu", sign, (unsigned long long)(whole / 1000000),
               (unsigned long long)(whole % 1000000));
}

static void add_plain(struct buf *out, const json_t *value)
{
    if (json_is_string(value))
        safe_line(str_of(json_string_value(value)), out); /* names and texts of others */
    else if (json_is_integer(value))
        buf_format(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        buf_add_text(out, json_is_true(value) ? "yes" : "no");
}

static void add_list(struct buf *out, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (i > 0)
            buf_add_char(out, ',');
        if (json_is_object(item)) { /* holds by their kind, and why */
            const json_t *kind = json_object_get(item, "kind");
            const json_t *reason = json_object_get(item, "reason");
            add_plain(out, kind != NULL ? kind : json_object_get(item, "class"));
            if (json_string_length(reason) > 0) {
                buf_add_text(out, " (");
                add_plain(out, reason);
                buf_add_char(out, ')');
            }
        } else {
            add_plain(out, item);
        }
    }
}

/* {"queued":3,"running":1} -> "3 queued, 1 running" */
static void add_counts(struct buf *out, const json_t *object)
{
    const char *key;
    const json_t *count;
    const char *before = "";
    json_object_foreach((json_t *)(uintptr_t)object, key, count)
    {
        buf_format(out, "%s%lld ", before, (long long)json_integer_value(count));
        safe_line(str_of(key), out);
        before = ", ";
    }
}

/* What a member asks for: "1.5", "2x0.5", "20480 MiB". */
static void add_gpus(struct buf *out, const json_t *request)
{
    json_int_t mib = json_integer_value(json_object_get(request, "gpu_memory_mib"));
    json_int_t devices = json_integer_value(json_object_get(request, "devices"));
    const char *profile = json_string_value(json_object_get(request, "mig_profile"));
    if (profile != NULL) {
        safe_line(str_of(profile), out);
    } else if (mib > 0) {
        buf_format(out, "%lld MiB", (long long)mib);
    } else if (devices > 0) {
        buf_format(out, "%lldx", (long long)devices);
        add_milli(out, json_integer_value(json_object_get(request, "share_milli")));
    } else {
        add_milli(out, json_integer_value(json_object_get(request, "gpu_milli")));
    }
}

static void add_cause(struct buf *out, const json_t *value)
{
    enum cause cause = CAUSE_NONE;
    bool is_known = cause_parse(str_of(json_string_value(value)), &cause);
    if (!is_known || !cause_is_usual(cause)) /* a newer server's is shown as it is */
        add_plain(out, value);
}

static void add_cell(struct buf *out, const json_t *object, const struct cli_column *column)
{
    const json_t *value = cli_field(object, column->field);
    size_t before = out->size;
    int64_t number = json_integer_value(value);
    if (value != NULL && !json_is_null(value)) {
        switch (column->kind) {
        case COLUMN_TEXT:
            add_plain(out, value);
            break;
        case COLUMN_MILLI:
            add_milli(out, number);
            break;
        case COLUMN_SECONDS:
            add_span(out, number);
            break;
        case COLUMN_MICROS:
            add_micros(out, number);
            break;
        case COLUMN_DEVICE_S:
            buf_format(out, "%lld.%03lld", (long long)(number / 1000000),
                       (long long)(number / 1000 % 1000));
            break;
        case COLUMN_BYTES:
            buf_format(out, "%lld MiB", (long long)((number + 1048575) / 1048576));
            break;
        case COLUMN_FLAG:
            buf_add_text(out, json_is_true(value) ? "yes" : "");
            break;
        case COLUMN_LIST:
            add_list(out, value);
            break;
        case COLUMN_GPUS:
            add_gpus(out, value);
            break;
        case COLUMN_COUNTS:
            add_counts(out, value);
            break;
        case COLUMN_CAUSE:
            add_cause(out, value);
            break;
        case COLUMN_TIME: { /* seconds are enough for people */
            struct str time = str_of(json_string_value(value));
            safe_line((struct str){ time.data, MIN_OF(time.size, (size_t)19) }, out);
            break;
        }
        }
    }
    if (out->size == before)
        buf_add_char(out, '-');
}

static size_t width_of(struct str text)
{
    size_t width = 0;
    for (size_t i = 0; i < text.size; i++)
        width += ((unsigned char)text.data[i] & 0xc0) != 0x80; /* one a character of UTF-8 */
    return width;
}

static void print_rows(const json_t *array, const struct cli_column *columns, size_t column_count)
{
    size_t rows = json_array_size(array);
    AUTO(arena) struct arena arena = { 0 };
    struct str *cells = arena_new(&arena, rows * column_count, sizeof(*cells));
    size_t *widths = arena_new(&arena, column_count, sizeof(*widths));
    for (size_t c = 0; c < column_count; c++)
        widths[c] = strlen(columns[c].head);
    for (size_t i = 0; i < rows * column_count; i++) {
        AUTO(buf) struct buf cell = { 0 };
        size_t c = i % column_count;
        add_cell(&cell, json_array_get(array, i / column_count), &columns[c]);
        cells[i] = str_copy(&arena, buf_str(&cell));
        widths[c] = MAX_OF(widths[c], width_of(cells[i]));
    }
    for (size_t c = 0; c < column_count; c++)
        (void)printf("%-*s%s", c + 1 < column_count ? (int)widths[c] : 0, columns[c].head,
                     c + 1 < column_count ? "  " : "\n");
    for (size_t i = 0; i < rows * column_count; i++) {
        size_t c = i % column_count;
        bool is_last = c + 1 == column_count;
        int padding = is_last ? 0 : (int)(widths[c] - width_of(cells[i]));
        (void)printf("%.*s%*s%s", STR_ARG(cells[i]), padding, "", is_last ? "\n" : "  ");
    }
}

void cli_add_json(struct buf *out, const json_t *value, size_t flags)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | flags);
    safe_json(text != NULL ? str_of(text) : STR("null"), out);
    free(text);
}

/* ---- whole values ---------------------------------------------------------------------------- */

/* Text that YAML would read as something else, or not at all, is quoted as JSON, which
 * YAML reads. */
static bool yaml_is_plain(const char *text)
{
    static const char *const words[] = { "true", "false", "null", "yes", "no", "on", "off", "~" };
    if (text[0] == '\0' || strchr(" -?:,[]{}#&*!|>'\"%@`.+0123456789=<~", text[0]) != NULL)
        return false;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strcasecmp(text, words[i]) == 0)
            return false;
    }
    size_t length = strlen(text);
    if (text[length - 1] == ' ' || text[length - 1] == ':')
        return false;
    for (const char *p = text; *p != '\0'; p++) {
        if ((p[0] == ':' && p[1] == ' ') || (p[0] == ' ' && p[1] == '#'))
            return false;
    }
    AUTO(buf) struct buf safe = { 0 };
    safe_line(str_of(text), &safe);
    return safe.size == length; /* nothing in it has to be escaped */
}

static void yaml_text(const char *text, const json_t *quoted)
{
    AUTO(buf) struct buf out = { 0 };
    if (yaml_is_plain(text))
        buf_add_text(&out, text);
    else
        cli_add_json(&out, quoted, JSON_COMPACT);
    (void)fputs(out.data, stdout);
}

static void yaml_key(const char *key)
{
    AUTO(json) json_t *quoted = json_string(key);
    yaml_text(key, quoted);
}

static void yaml_scalar(const json_t *value)
{
    AUTO(buf) struct buf out = { 0 };
    (void)putchar(' ');
    if (json_is_string(value)) {
        yaml_text(json_string_value(value), value);
    } else {
        cli_add_json(&out, value, JSON_COMPACT);
        (void)fputs(out.data, stdout);
    }
    (void)putchar('\n');
}

static bool yaml_is_nested(const json_t *value)
{
    return (json_is_object(value) && json_object_size(value) > 0) ||
           (json_is_array(value) && json_array_size(value) > 0);
}

/* As deep as the answer, whose depth was bounded when it was read.
 * NOLINTNEXTLINE(misc-no-recursion) */
static void cli_print_yaml(const json_t *value, unsigned indent)
{
    const char *key;
    json_t *item;
    size_t index;
    if (!yaml_is_nested(value)) {
        yaml_scalar(value);
        return;
    }
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
        {
            (void)printf("%*s", (int)indent, "");
            yaml_key(key);
            (void)putchar(':');
            if (yaml_is_nested(item))
                (void)puts("");
            cli_print_yaml(item, indent + 2);
        }
        return;
    }
    json_array_foreach(value, index, item)
    {
        (void)printf("%*s-", (int)indent, "");
        if (yaml_is_nested(item))
            (void)puts("");
        cli_print_yaml(item, indent + 2);
    }
}

static void print_json(const json_t *value)
{
    AUTO(buf) struct buf text = { 0 };
    cli_add_json(&text, value, JSON_INDENT(2));
    (void)puts(text.data);
}

/* The word by which people call it: id first, else what names it. */
static void print_name(const json_t *object)
{
    static const char *const keys[] = { "id", "array", "name", "path", "digest", "sequence" };
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const json_t *value = json_object_get(object, keys[i]);
        AUTO(buf) struct buf text = { 0 };
        add_plain(&text, value);
        if (text.size > 0) {
            (void)puts(text.data);
            return;
        }
    }
}

static void print_names(const json_t *value)
{
    if (!json_is_array(value)) {
        print_name(value);
        return;
    }
    for (size_t i = 0; i < json_array_size(value); i++)
        print_name(json_array_get(value, i));
}

void cli_print(const struct cli *cli, const json_t *value, const struct cli_column *columns,
               size_t column_count)
{
    if (cli->is_quiet && cli->format == CLI_TABLE) {
        print_names(value);
    } else if (cli->format == CLI_JSON) {
        print_json(value);
    } else if (cli->format == CLI_YAML || (column_count == 0 && json_is_object(value))) {
        cli_print_yaml(value, 0);
    } else if (json_is_array(value)) {
        print_rows(value, columns, column_count);
    } else {
        AUTO(json) json_t *one = json_array();
        (void)json_array_append(one, (json_t *)(uintptr_t)value);
        print_rows(one, columns, column_count);
    }
}
