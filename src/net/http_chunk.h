/*
 * http_chunk.h - chunked bodies, strictly: no extensions, no trailers, no bare LF. libhttp-parser
 * skips over extensions without looking for a line feed in them, and a proxy that ends the line
 * there would read another body than we do; hence this small reader of our own.
 */
#ifndef NET_HTTP_CHUNK_H
#define NET_HTTP_CHUNK_H

#include "base/str.h"

/* All-zero: at the start of a body. */
struct http_chunk {
    unsigned state;
    unsigned digits; /* of the size line so far */
    uint64_t left;   /* bytes of the chunk still to come */
};

enum http_chunk_result {
    HTTP_CHUNK_MORE, /* `data` is used up */
    HTTP_CHUNK_BODY, /* `out` holds bytes of the body: a slice of `data` */
    HTTP_CHUNK_END,  /* the body is complete; `data` is what follows it */
    HTTP_CHUNK_BAD
};

/* Takes bytes off the front of `data` up to the next thing to tell. */
enum http_chunk_result http_chunk_next(struct http_chunk *chunk, struct str *data, struct str *out);

#endif
