#include "wire/json_read.h"

#include "base/timepoint.h"

/*
 * Nesting is counted before the parser sees the text: brackets outside of strings. A text that is
 * no JSON may be counted wrongly, but then the parser refuses it.
 */
static size_t nesting_depth(struct str text)
{
    size_t depth = 0;
    size_t deepest = 0;
    bool is_string = false;

    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (is_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                is_string = false;
        } else if (c == '"') {
            is_string = true;
        } else if (c == '[' || c == '{') {
            depth++;
            deepest = MAX_OF(deepest, depth);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

enum err json_read(struct str text, size_t bytes_max, json_t **out, struct error *e)
{
    size_t limit = bytes_max == 0 ? JSON_BYTES_MAX : bytes_max;
    if (text.size > limit)
        return err_set(e, ERR_LIMIT, "JSON of %zu bytes is larger than the %zu allowed", text.size,
                       limit);
    if (text.size == 0)
        return err_set(e, ERR_INVALID, "JSON expected, but there is nothing");
    if (nesting_depth(text) > JSON_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "JSON is nested deeper than %d levels", (int)JSON_DEPTH_MAX);

    json_error_t why;
    json_t *value =
        json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (value == NULL)
        return err_set(e, ERR_INVALID, "not valid JSON: %s at line %d, column %d", why.text,
                       why.line, why.column);
    *out = value;
    return ERR_OK;
}

static void write_real(struct json_writer *w, double value)
{
    char text[40];
    AUTO(json) json_t *real = json_real(value);
    size_t size = json_dumpb(real, text, sizeof(text), JSON_ENCODE_ANY);

    json_add_raw(w, (struct str){ text, MIN_OF(size, sizeof(text)) });
}

/* Recursion is bounded: a tree came through json_read or yaml_read, which count levels. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, see above */
static void write_object(struct json_writer *w, const json_t *value)
{
    /* jansson's iterators take no const, but do not change the tree either. */
    json_t *object = (json_t *)(uintptr_t)value;

    json_begin_object(w);
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        json_key_str(w, str_of(json_object_iter_key(at)));
        json_write_tree(w, json_object_iter_value(at));
    }
    json_end_object(w);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, see above */
void json_write_tree(struct json_writer *w, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        write_object(w, value);
        break;
    case JSON_ARRAY:
        json_begin_array(w);
        for (size_t i = 0; i < json_array_size(value); i++)
            json_write_tree(w, json_array_get(value, i));
        json_end_array(w);
        break;
    case JSON_STRING:
        json_add_str(w, (struct str){ json_string_value(value), json_string_length(value) });
        break;
    case JSON_INTEGER:
        json_add_i64(w, json_integer_value(value));
        break;
    case JSON_REAL:
        write_real(w, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_add_bool(w, json_is_true(value));
        break;
    case JSON_NULL:
        json_add_null(w);
        break;
    }
}

/* ---- RFC 3339 ------------------------------------------------------------------------------- */

/* Days from 1970-01-01 to a date of the proleptic Gregorian calendar, years from 1970 on. */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    int64_t shifted = month <= 2 ? year - 1 : year;
    int64_t era = shifted / 400;
    int64_t year_of_era = shifted - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * 146097 + day_of_era - 719468;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && is_leap ? 29 : days[month - 1];
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool digits(struct str text, size_t at, size_t count, int64_t max, int64_t *out)
{
    return str_to_i64((struct str){ text.data + at, count }, 0, max, out);
}

/* ".123" -> 123,000,000; the caller has checked that the text ends with 'Z'. */
static bool fraction_parse(struct str text, int64_t *ns)
{
    *ns = 0;
    if (text.size == 0)
        return true;
    if (text.data[0] != '.' || text.size < 2 || text.size > 10 || !is_digit(text.data[1]))
        return false;
    if (!digits(text, 1, text.size - 1, NS_PER_S - 1, ns))
        return false;
    for (size_t places = text.size - 1; places < 9; places++)
        *ns *= 10;
    return true;
}

bool wall_parse(struct str text, int64_t *ns)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    const size_t head = sizeof(shape) - 1;
    int64_t year, month, day, hour, minute, second, fraction;

    if (text.size < head + 1 || text.data[text.size - 1] != 'Z')
        return false;
    for (size_t i = 0; i < head; i++)
        if (shape[i] == 'd' ? !is_digit(text.data[i]) : text.data[i] != shape[i])
            return false;
    if (!digits(text, 0, 4, 2261, &year) || !digits(text, 5, 2, 12, &month) ||
        !digits(text, 8, 2, 31, &day) || !digits(text, 11, 2, 23, &hour) ||
        !digits(text, 14, 2, 59, &minute) || !digits(text, 17, 2, 59, &second))
        return false;
    if (year < 1970 || month < 1 || day < 1 || day > days_in_month(year, month))
        return false;
    if (!fraction_parse((struct str){ text.data + head, text.size - head - 1 }, &fraction))
        return false;
    int64_t minutes = (days_from_civil(year, month, day) * 24 + hour) * 60 + minute;
    *ns = (minutes * 60 + second) * NS_PER_S + fraction;
    return true;
}
