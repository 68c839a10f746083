#include "wire/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wire/utf8.h"

static uint64_t level_bit(const struct json_writer *w)
{
    return UINT64_C(1) << w->depth;
}

/* Before every value: its comma, and the rule that members of an object have keys. */
static void before_value(struct json_writer *w)
{
    if (w->has_key) {
        w->has_key = false;
        return;
    }
    assert((w->is_object & level_bit(w)) == 0);
    if (w->depth > 0 && (w->has_item & level_bit(w)) != 0)
        buf_add_char(w->out, ',');
    w->has_item |= level_bit(w);
}

static void begin(struct json_writer *w, char bracket, bool is_object)
{
    before_value(w);
    buf_add_char(w->out, bracket);
    assert(w->depth + 1 < JSON_WRITER_DEPTH);
    w->depth++;
    w->has_item &= ~level_bit(w);
    if (is_object)
        w->is_object |= level_bit(w);
    else
        w->is_object &= ~level_bit(w);
}

static void end(struct json_writer *w, char bracket)
{
    assert(w->depth > 0 && !w->has_key);
    w->is_object &= ~level_bit(w);
    w->depth--;
    buf_add_char(w->out, bracket);
}

void json_begin_object(struct json_writer *w)
{
    begin(w, '{', true);
}

void json_end_object(struct json_writer *w)
{
    end(w, '}');
}

void json_begin_array(struct json_writer *w)
{
    begin(w, '[', false);
}

void json_end_array(struct json_writer *w)
{
    end(w, ']');
}

static void before_key(struct json_writer *w)
{
    assert((w->is_object & level_bit(w)) != 0 && !w->has_key);
    if ((w->has_item & level_bit(w)) != 0)
        buf_add_char(w->out, ',');
    w->has_item |= level_bit(w);
    w->has_key = true;
}

void json_key(struct json_writer *w, const char *key)
{
    size_t size = strlen(key);

    before_key(w);
    buf_reserve(w->out, size + 3);
    buf_add_char(w->out, '"');
    buf_add(w->out, key, size);
    buf_add(w->out, "\":", 2);
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* One byte that is not plain; returns how many bytes of the text it stands for. */
static size_t add_special(struct buf *out, const uint8_t *at, size_t left)
{
    static const char short_forms[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                        ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\' };
    uint8_t c = at[0];

    if (c < sizeof(short_forms) && short_forms[c] != '\0') {
        buf_add_char(out, '\\');
        buf_add_char(out, short_forms[c]);
        return 1;
    }
    if (c < 0x20 || c == 0x7f) {
        char text[8];
        int size = snprintf(text, sizeof(text), "\\u%04x", (unsigned)c);
        buf_add(out, text, (size_t)size);
        return 1;
    }
    size_t size = utf8_length(at, left);
    if (size == 0) {
        buf_add_text(out, "\\ufffd");
        return 1;
    }
    buf_add(out, at, size);
    return size;
}

static void add_quoted(struct buf *out, struct str value)
{
    const uint8_t *bytes = (const uint8_t *)value.data;
    size_t at = 0;

    buf_reserve(out, value.size + 2);
    buf_add_char(out, '"');
    while (at < value.size) {
        size_t start = at;
        while (at < value.size && is_plain(bytes[at]))
            at++;
        if (at > start)
            buf_add(out, bytes + start, at - start);
        if (at < value.size)
            at += add_special(out, bytes + at, value.size - at);
    }
    buf_add_char(out, '"');
}

void json_key_str(struct json_writer *w, struct str key)
{
    before_key(w);
    add_quoted(w->out, key);
    buf_add_char(w->out, ':');
}

void json_add_str(struct json_writer *w, struct str value)
{
    before_value(w);
    add_quoted(w->out, value);
}

void json_add_text(struct json_writer *w, const char *value)
{
    json_add_str(w, str_of(value));
}

void json_add_i64(struct json_writer *w, int64_t value)
{
    if (value >= 0) {
        json_add_u64(w, (uint64_t)value);
        return;
    }
    char text[24];
    int size = snprintf(text, sizeof(text), "%" PRId64, value);
    before_value(w);
    buf_add(w->out, text, (size_t)size);
}

void json_add_u64(struct json_writer *w, uint64_t value)
{
    char text[24];
    size_t at = sizeof(text);

    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    before_value(w);
    buf_add(w->out, text + at, sizeof(text) - at);
}

void json_add_bool(struct json_writer *w, bool value)
{
    before_value(w);
    buf_add_text(w->out, value ? "true" : "false");
}

void json_add_null(struct json_writer *w)
{
    before_value(w);
    buf_add_text(w->out, "null");
}

void json_add_raw(struct json_writer *w, struct str json)
{
    before_value(w);
    buf_add_str(w->out, json);
}

void json_put_str(struct json_writer *w, const char *key, struct str value)
{
    json_key(w, key);
    json_add_str(w, value);
}

void json_put_text(struct json_writer *w, const char *key, const char *value)
{
    json_key(w, key);
    json_add_text(w, value);
}

void json_put_i64(struct json_writer *w, const char *key, int64_t value)
{
    json_key(w, key);
    json_add_i64(w, value);
}

void json_put_u64(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_add_u64(w, value);
}

void json_put_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_add_bool(w, value);
}
