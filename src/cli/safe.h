/*
 * safe.h - text of others on a terminal, which can do nothing with it but show it. What is
 * escaped: the controls of ASCII and of C1, bytes that are no UTF-8, and the characters that
 * turn the reading direction.
 */
#ifndef CLI_SAFE_H
#define CLI_SAFE_H

#include "base/str.h"

/* A stream that comes in pieces; starts as zeroes. */
struct safe_stream {
    char held[4]; /* the begin of a character, or a carriage return: what follows decides */
    size_t held_size;
};

/* Line ends ("\n", "\r\n") and tabs stay; what is escaped becomes \x1b, a byte each. */
void safe_add(struct safe_stream *stream, struct str bytes, struct buf *out);
void safe_end(struct safe_stream *stream, struct buf *out);

/* A whole text of several lines; or of one, where line ends and tabs are escaped too. */
void safe_lines(struct str text, struct buf *out);
void safe_line(struct str text, struct buf *out);
/* JSON text, which stays the same JSON: escaped as \u009b. */
void safe_json(struct str text, struct buf *out);

#endif
