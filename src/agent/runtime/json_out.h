/* json_out.h - writes JSON for the runtime. The privileged half writes it and never reads any. */
#ifndef AGENT_RUNTIME_JSON_OUT_H
#define AGENT_RUNTIME_JSON_OUT_H

#include "base/str.h"

struct json_out {
    struct buf *out; /* borrowed */
    bool needs_comma;
};

/* In an object `key` is the member's name, in an array it is NULL. `bracket` is '{' or '['. */
void json_open(struct json_out *json, const char *key, char bracket);
void json_close(struct json_out *json, char bracket);                    /* '}' or ']' */
void json_str(struct json_out *json, const char *key, struct str value); /* valid UTF-8 */
void json_text(struct json_out *json, const char *key, const char *value);
void json_int(struct json_out *json, const char *key, int64_t value);
void json_bool(struct json_out *json, const char *key, bool value);
void json_texts(struct json_out *json, const char *key, const char *const *values, size_t count);

#endif
