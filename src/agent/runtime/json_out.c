#include "agent/runtime/json_out.h"

#include <inttypes.h>

static void add_string(struct buf *out, struct str value)
{
    buf_reserve(out, value.size + 2);
    buf_add_char(out, '"');
    for (size_t i = 0; i < value.size; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if (c == '"' || c == '\\') {
            buf_add_char(out, '\\');
            buf_add_char(out, (char)c);
        } else if (c < 0x20) {
            buf_format(out, "\\u%04x", c);
        } else {
            buf_add_char(out, (char)c);
        }
    }
    buf_add_char(out, '"');
}

static void add_key(struct json_out *json, const char *key)
{
    if (json->needs_comma)
        buf_add_char(json->out, ',');
    json->needs_comma = true;
    if (key == NULL)
        return;
    add_string(json->out, str_of(key));
    buf_add_char(json->out, ':');
}

void json_open(struct json_out *json, const char *key, char bracket)
{
    add_key(json, key);
    buf_add_char(json->out, bracket);
    json->needs_comma = false;
}

void json_close(struct json_out *json, char bracket)
{
    buf_add_char(json->out, bracket);
    json->needs_comma = true;
}

void json_str(struct json_out *json, const char *key, struct str value)
{
    add_key(json, key);
    add_string(json->out, value);
}

void json_text(struct json_out *json, const char *key, const char *value)
{
    json_str(json, key, str_of(value));
}

void json_int(struct json_out *json, const char *key, int64_t value)
{
    add_key(json, key);
    buf_format(json->out, "%" PRId64, value);
}

void json_bool(struct json_out *json, const char *key, bool value)
{
    add_key(json, key);
    buf_add_text(json->out, value ? "true" : "false");
}

void json_texts(struct json_out *json, const char *key, const char *const *values, size_t count)
{
    json_open(json, key, '[');
    for (size_t i = 0; i < count; i++)
        json_text(json, NULL, values[i]);
    json_close(json, ']');
}
