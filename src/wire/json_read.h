/*
 * json_read.h - reads JSON that comes from outside: bounded in bytes and depth, duplicate keys
 * refused, numbers that are not 64-bit integers refused where an integer is wanted.
 */
#ifndef WIRE_JSON_READ_H
#define WIRE_JSON_READ_H

#include <jansson.h>

#include "base/str.h"
#include "wire/json_writer.h"

DEFINE_CLEANUP(json, json_t *, json_decref)

enum { JSON_DEPTH_MAX = 32, JSON_BYTES_MAX = 16 * 1024 * 1024 };

/* One document and nothing after it; `bytes_max` 0: JSON_BYTES_MAX. ERR_INVALID with line and
 * column; ERR_LIMIT when it is too large. `*out` is the caller's to json_decref (AUTO(json)). */
enum err json_read(struct str text, size_t bytes_max, json_t **out, struct error *e) MUST_CHECK;

/* Writes a tree out again: compact, members in the order in which they came. */
void json_write_tree(struct json_writer *w, const json_t *value);

/* RFC 3339 in UTC ("2026-11-30T07:28:27.123Z", up to nine places) into nanoseconds. */
bool wall_parse(struct str text, int64_t *ns);

#endif
