/*
 * json_cursor.h - reads JSON value by value, without a tree, out of a text that is there
 * as a whole.
 *
 * Strict (RFC 8259 and less): UTF-8 only, no NUL in strings, JSON_DEPTH_MAX levels, integers of 64
 * bits. A tree of jansson costs more than all the rest of loading a snapshot (docs/BENCHMARKS.md);
 * what is accepted here is what jansson accepts, and a test compares the two on mutated documents.
 *
 * Every function that returns false has set `problem`; the cursor then stays where the problem is.
 */
#ifndef WIRE_JSON_CURSOR_H
#define WIRE_JSON_CURSOR_H

#include "base/str.h"

struct json_cursor {
    struct str text;     /* borrowed */
    size_t at;           /* next byte */
    unsigned depth;      /* of open brackets */
    const char *problem; /* static; NULL: none */
};

enum json_kind {
    JSON_KIND_END, /* nothing left, or nothing that begins a value */
    JSON_KIND_OBJECT,
    JSON_KIND_ARRAY,
    JSON_KIND_STRING,
    JSON_KIND_NUMBER,
    JSON_KIND_TRUE,
    JSON_KIND_FALSE,
    JSON_KIND_NULL
};

static inline struct json_cursor json_cursor_of(struct str text)
{
    return (struct json_cursor){ .text = text };
}

/* What the next value is, by its first byte. */
enum json_kind json_cursor_peek(struct json_cursor *c);

/* Into an object or array that was peeked. */
bool json_cursor_enter(struct json_cursor *c);
/* The next member or item: true, and its key; false at the closing bracket (which is taken) or on a
 * problem. `*is_first` is true at the start and is cleared. Keys without escapes are borrowed. */
bool json_cursor_next_key(struct json_cursor *c, bool *is_first, struct arena *arena,
                          struct str *key);
bool json_cursor_next_item(struct json_cursor *c, bool *is_first);

/* A string that was peeked, copied into the arena with a NUL after it. */
bool json_cursor_string(struct json_cursor *c, struct arena *arena, struct str *out);
/* A number that was peeked; `*is_integer` false: it is none of 64 bits, `*out` is untouched. */
bool json_cursor_number(struct json_cursor *c, bool *is_integer, int64_t *out);
/* true, false or null that was peeked. */
bool json_cursor_word(struct json_cursor *c);
/* Passes over any value, checking all of it; its bytes. */
bool json_cursor_skip(struct json_cursor *c, struct str *out);
/* Nothing but blanks is left. */
bool json_cursor_end(struct json_cursor *c);

/* ERR_INVALID: the problem with line and column. */
enum err json_cursor_error(const struct json_cursor *c, struct error *e);

/* A value that was checked before, without blanks between its parts. */
void json_compact(struct buf *out, struct str json);

#endif
