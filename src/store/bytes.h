/* bytes.h - what packed rows are made of: numbers little-endian, so that a file can move
 * between machines. */
#ifndef STORE_BYTES_H
#define STORE_BYTES_H

#include <string.h>

#include "base/str.h"

static inline void put_u64(struct buf *out, uint64_t value)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    buf_add(out, bytes, sizeof(bytes));
}

/* The cut_ functions take it off `*bytes`; false: it is not there. */
static inline bool cut_bytes(struct str *bytes, void *out, size_t size)
{
    if (bytes->size < size)
        return false;
    memcpy(out, bytes->data, size);
    *bytes = (struct str){ bytes->data + size, bytes->size - size };
    return true;
}

static inline bool cut_u64(struct str *bytes, uint64_t *out)
{
    uint8_t raw[8];
    if (!cut_bytes(bytes, raw, sizeof(raw)))
        return false;
    *out = 0;
    for (unsigned i = 0; i < sizeof(raw); i++)
        *out |= (uint64_t)raw[i] << (8 * i);
    return true;
}

static inline bool cut_i64(struct str *bytes, int64_t *out)
{
    uint64_t value = 0;
    if (!cut_u64(bytes, &value))
        return false;
    memcpy(out, &value, sizeof(*out));
    return true;
}

#endif
