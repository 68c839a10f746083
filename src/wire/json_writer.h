/*
 * json_writer.h - writes JSON straight into a buffer, without a tree.
 *
 * Commas come by themselves. A writer is a few bytes on the stack; what it writes is
 * compact and, for equal calls, equal byte for byte. Misuse (a value without a key inside
 * an object) is an assertion.
 */
#ifndef WIRE_JSON_WRITER_H
#define WIRE_JSON_WRITER_H

#include "base/str.h"

enum { JSON_WRITER_DEPTH = 64 };

struct json_writer {
    struct buf *out; /* borrowed */
    unsigned depth;
    bool has_key;       /* a key was written, its value not yet */
    uint64_t is_object; /* one bit a level */
    uint64_t has_item;  /* something stands before, at that level */
};

static inline struct json_writer json_writer_of(struct buf *out)
{
    return (struct json_writer){ .out = out };
}

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *key); /* needs no escaping: a word of ours */
void json_key_str(struct json_writer *w, struct str key);

/* Bytes that are not UTF-8 come out as U+FFFD, so that what is written is always JSON. */
void json_add_str(struct json_writer *w, struct str value);
void json_add_text(struct json_writer *w, const char *value);
void json_add_i64(struct json_writer *w, int64_t value);
void json_add_u64(struct json_writer *w, uint64_t value);
void json_add_bool(struct json_writer *w, bool value);
void json_add_null(struct json_writer *w);
void json_add_raw(struct json_writer *w, struct str json); /* is JSON already */

/* The same with a key in front. */
void json_put_str(struct json_writer *w, const char *key, struct str value);
void json_put_text(struct json_writer *w, const char *key, const char *value);
void json_put_i64(struct json_writer *w, const char *key, int64_t value);
void json_put_u64(struct json_writer *w, const char *key, uint64_t value);
void json_put_bool(struct json_writer *w, const char *key, bool value);

#endif
