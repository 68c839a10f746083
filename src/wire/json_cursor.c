#include "wire/json_cursor.h"

#include <assert.h>
#include <string.h>

#include "wire/json_read.h"
#include "wire/utf8.h"

static bool fail(struct json_cursor *c, const char *problem)
{
    c->problem = problem;
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The next byte that is not blank, 0 at the end (a NUL byte begins no value either). */
static char next_byte(struct json_cursor *c)
{
    while (c->at < c->text.size && is_blank(c->text.data[c->at]))
        c->at++;
    if (c->at == c->text.size)
        return '\0';
    return c->text.data[c->at];
}

enum json_kind json_cursor_peek(struct json_cursor *c)
{
    char byte = next_byte(c);

    switch (byte) {
    case '{':
        return JSON_KIND_OBJECT;
    case '[':
        return JSON_KIND_ARRAY;
    case '"':
        return JSON_KIND_STRING;
    case 't':
        return JSON_KIND_TRUE;
    case 'f':
        return JSON_KIND_FALSE;
    case 'n':
        return JSON_KIND_NULL;
    default:
        return byte == '-' || (byte >= '0' && byte <= '9') ? JSON_KIND_NUMBER : JSON_KIND_END;
    }
}

/* ---- brackets ------------------------------------------------------------------------------ */

bool json_cursor_enter(struct json_cursor *c)
{
    if (c->depth == JSON_DEPTH_MAX)
        return fail(c, "nested too deep");
    c->depth++;
    c->at++;
    return true;
}

/* To the next part of an object or array: its comma is taken. False at `close`, which is taken. */
static bool next_part(struct json_cursor *c, bool *is_first, char close)
{
    char byte = next_byte(c);

    if (byte == close) {
        c->at++;
        c->depth--;
        return false;
    }
    if (*is_first) {
        *is_first = false;
        return true;
    }
    if (byte != ',')
        return fail(c, close == '}' ? "',' or '}' expected" : "',' or ']' expected");
    c->at++;
    return true;
}

bool json_cursor_next_item(struct json_cursor *c, bool *is_first)
{
    return next_part(c, is_first, ']');
}

/* ---- strings ------------------------------------------------------------------------------- */

/* Between the quotes: from `*start` to the cursor, which stands behind the closing one. */
static bool scan_string(struct json_cursor *c, size_t *start, bool *has_escape)
{
    const uint8_t *bytes = (const uint8_t *)c->text.data;
    size_t at = c->at + 1;

    *start = at;
    *has_escape = false;
    while (at < c->text.size) {
        uint8_t byte = bytes[at];
        if (byte == '"') {
            c->at = at + 1;
            return true;
        }
        size_t step = 1;
        if (byte == '\\') {
            *has_escape = true;
            step = 2;
        } else if (byte < 0x20) {
            c->at = at;
            return fail(c, "control character in a string");
        } else if (byte >= 0x80) {
            step = utf8_length(bytes + at, c->text.size - at);
        }
        if (step == 0) {
            c->at = at;
            return fail(c, "bytes that are not UTF-8");
        }
        at += step;
    }
    c->at = c->text.size;
    return fail(c, "string without an end");
}

static bool hex_unit(struct str escaped, size_t at, uint32_t *out)
{
    uint32_t unit = 0;

    if (at + 4 > escaped.size)
        return false;
    for (size_t i = at; i < at + 4; i++) {
        int digit = hex_digit(escaped.data[i]);
        if (digit < 0)
            return false;
        unit = unit << 4 | (uint32_t)digit;
    }
    *out = unit;
    return true;
}

/* A \u escape, `*at` behind its 'u'; joins surrogates. */
static const char *unescape_unit(struct str escaped, size_t *at, char **out)
{
    uint32_t unit = 0;
    uint32_t low = 0;

    if (!hex_unit(escaped, *at, &unit))
        return "\\u needs four hexadecimal digits";
    *at += 4;
    if (unit >= 0xd800 && unit <= 0xdbff) {
        bool has_low = *at + 2 <= escaped.size && escaped.data[*at] == '\\' &&
                       escaped.data[*at + 1] == 'u' && hex_unit(escaped, *at + 2, &low) &&
                       low >= 0xdc00 && low <= 0xdfff;
        if (!has_low)
            return "half of a surrogate pair";
        *at += 6;
        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    } else if (unit >= 0xdc00 && unit <= 0xdfff) {
        return "half of a surrogate pair";
    }
    if (unit == 0)
        return "NUL in a string";
    *out += utf8_put(unit, *out);
    return NULL;
}

static char short_escape(char letter)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *found = letter != '\0' ? strchr(from, letter) : NULL;

    if (found == NULL)
        return '\0';
    return to[found - from];
}

/* Text never grows by unescaping: six bytes become three at most. NULL: fine. */
static const char *unescape(struct str escaped, char *out, size_t *size)
{
    char *start = out;

    for (size_t at = 0; at < escaped.size;) {
        if (escaped.data[at] != '\\') {
            *out++ = escaped.data[at++];
            continue;
        }
        char letter = escaped.data[at + 1];
        at += 2;
        const char *problem = NULL;
        if (letter == 'u')
            problem = unescape_unit(escaped, &at, &out);
        else if (short_escape(letter) != '\0')
            *out++ = short_escape(letter);
        else
            problem = "an escape that does not exist";
        if (problem != NULL)
            return problem;
    }
    *size = (size_t)(out - start);
    return NULL;
}

static bool unescaped(struct json_cursor *c, struct str escaped, struct arena *arena,
                      struct str *out)
{
    char *copy = arena_new(arena, 1, escaped.size + 1);
    size_t size = 0;
    const char *problem = unescape(escaped, copy, &size);

    if (problem != NULL)
        return fail(c, problem);
    *out = (struct str){ copy, size };
    return true;
}

bool json_cursor_string(struct json_cursor *c, struct arena *arena, struct str *out)
{
    size_t start = 0;
    bool has_escape = false;
    if (!scan_string(c, &start, &has_escape))
        return false;

    struct str raw = { c->text.data + start, c->at - 1 - start };
    if (has_escape)
        return unescaped(c, raw, arena, out);
    *out = str_copy(arena, raw);
    return true;
}

/* As json_cursor_string, for a string that nobody wants. */
static bool check_string(struct json_cursor *c, struct arena *scratch)
{
    size_t start = 0;
    bool has_escape = false;
    struct str none;

    if (!scan_string(c, &start, &has_escape))
        return false;
    struct str raw = { c->text.data + start, c->at - 1 - start };
    return !has_escape || unescaped(c, raw, scratch, &none);
}

bool json_cursor_next_key(struct json_cursor *c, bool *is_first, struct arena *arena,
                          struct str *key)
{
    size_t start = 0;
    bool has_escape = false;

    if (!next_part(c, is_first, '}'))
        return false;
    if (next_byte(c) != '"')
        return fail(c, "a name in quotes expected");
    if (!scan_string(c, &start, &has_escape))
        return false;
    *key = (struct str){ c->text.data + start, c->at - 1 - start };
    if (has_escape && !unescaped(c, *key, arena, key))
        return false;
    if (next_byte(c) != ':')
        return fail(c, "':' expected");
    c->at++;
    return true;
}

/* ---- numbers and words --------------------------------------------------------------------- */

static size_t scan_digits(struct json_cursor *c)
{
    size_t start = c->at;

    while (c->at < c->text.size && c->text.data[c->at] >= '0' && c->text.data[c->at] <= '9')
        c->at++;
    return c->at - start;
}

static bool has_byte(const struct json_cursor *c, char byte)
{
    return c->at < c->text.size && c->text.data[c->at] == byte;
}

static bool scan_exponent(struct json_cursor *c)
{
    c->at++;
    if (has_byte(c, '+') || has_byte(c, '-'))
        c->at++;
    return scan_digits(c) > 0 || fail(c, "a number without its exponent");
}

bool json_cursor_number(struct json_cursor *c, bool *is_integer, int64_t *out)
{
    size_t start = c->at;
    bool is_plain = true;

    if (has_byte(c, '-'))
        c->at++;
    bool has_zero = has_byte(c, '0');
    size_t count = scan_digits(c);
    if (count == 0 || (has_zero && count > 1))
        return fail(c, "not a number");
    if (has_byte(c, '.')) {
        is_plain = false;
        c->at++;
        if (scan_digits(c) == 0)
            return fail(c, "a number without digits after its point");
    }
    if (has_byte(c, 'e') || has_byte(c, 'E')) {
        is_plain = false;
        if (!scan_exponent(c))
            return false;
    }
    struct str text = { c->text.data + start, c->at - start };
    *is_integer = is_plain && str_to_i64(text, INT64_MIN, INT64_MAX, out);
    return true;
}

bool json_cursor_word(struct json_cursor *c)
{
    static const char *const words[] = { "true", "false", "null" };

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t size = strlen(words[i]);
        if (c->text.size - c->at >= size && memcmp(c->text.data + c->at, words[i], size) == 0) {
            c->at += size;
            return true;
        }
    }
    return fail(c, "neither true nor false nor null");
}

/* ---- whole values -------------------------------------------------------------------------- */

static bool skip_scalar(struct json_cursor *c, enum json_kind kind, struct arena *scratch)
{
    bool is_integer = false;
    int64_t number = 0;

    if (kind == JSON_KIND_STRING)
        return check_string(c, scratch);
    if (kind == JSON_KIND_NUMBER)
        return json_cursor_number(c, &is_integer, &number);
    if (kind == JSON_KIND_END)
        return fail(c, "a value expected");
    return json_cursor_word(c);
}

/* The brackets that are open within the value, one bit each: set for an object. */
struct open_brackets {
    uint64_t is_object;
    uint64_t is_first;
    unsigned count;
};

static bool open_bracket(struct json_cursor *c, struct open_brackets *open, bool is_object)
{
    if (!json_cursor_enter(c))
        return false;
    uint64_t bit = UINT64_C(1) << ++open->count;
    open->is_object = is_object ? open->is_object | bit : open->is_object & ~bit;
    open->is_first |= bit;
    return true;
}

/* Closes what ends here; true when a value follows. False: all is closed, or a problem. */
static bool next_value(struct json_cursor *c, struct open_brackets *open, struct arena *scratch)
{
    struct str key;

    while (open->count > 0) {
        uint64_t bit = UINT64_C(1) << open->count;
        bool is_first = (open->is_first & bit) != 0;
        bool has_more = (open->is_object & bit) != 0
                            ? json_cursor_next_key(c, &is_first, scratch, &key)
                            : json_cursor_next_item(c, &is_first);
        open->is_first &= ~bit;
        if (has_more)
            return true;
        if (c->problem != NULL)
            return false;
        open->count--;
    }
    return false;
}

bool json_cursor_skip(struct json_cursor *c, struct str *out)
{
    AUTO(arena) struct arena scratch = { 0 };
    struct open_brackets open = { 0 };
    static_assert(JSON_DEPTH_MAX < 63, "a bit for every level");

    (void)next_byte(c);
    size_t start = c->at;
    do {
        enum json_kind kind = json_cursor_peek(c);
        bool is_open = kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY;
        bool is_fine = is_open ? open_bracket(c, &open, kind == JSON_KIND_OBJECT)
                               : skip_scalar(c, kind, &scratch);
        if (!is_fine)
            return false;
        arena_reset(&scratch);
    } while (next_value(c, &open, &scratch));
    if (c->problem != NULL)
        return false;
    *out = (struct str){ c->text.data + start, c->at - start };
    return true;
}

bool json_cursor_end(struct json_cursor *c)
{
    (void)next_byte(c);
    return c->at == c->text.size || fail(c, "something follows the end");
}

enum err json_cursor_error(const struct json_cursor *c, struct error *e)
{
    size_t line = 1;
    size_t column = 1;

    for (size_t i = 0; i < c->at && i < c->text.size; i++) {
        column = c->text.data[i] == '\n' ? 1 : column + 1;
        line += c->text.data[i] == '\n';
    }
    return err_set(e, ERR_INVALID, "not valid JSON: %s at line %zu, column %zu",
                   c->problem != NULL ? c->problem : "a value expected", line, column);
}

void json_compact(struct buf *out, struct str json)
{
    bool is_string = false;
    size_t start = 0;

    for (size_t i = 0; i < json.size; i++) {
        char byte = json.data[i];
        if (is_string && byte == '\\') {
            i++;
        } else if (byte == '"') {
            is_string = !is_string;
        } else if (!is_string && is_blank(byte)) {
            buf_add(out, json.data + start, i - start);
            start = i + 1;
        }
    }
    buf_add(out, json.data + start, json.size - start);
}
