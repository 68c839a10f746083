#include "store/deflate.h"

#include <assert.h>
#include <zlib.h>

/* What a deflated byte stands for, at most: four copies of 258 bytes, each of two bits. */
enum { EXPANDS_MAX = 4 * 258 };

/* SQLite's own bound on a value; more cannot have been stored. */
static const uint64_t raw_max = UINT64_C(1) << 34;

void deflate_bytes(struct str raw, enum deflate_level level, struct buf *out)
{
    uLong bound = compressBound((uLong)raw.size);
    buf_clear(out);
    buf_reserve(out, bound);
    const Bytef *from = raw.size != 0 ? (const Bytef *)raw.data : (const Bytef *)"";
    int rc = compress2((Bytef *)out->data, &bound, from, (uLong)raw.size, (int)level);
    assert(rc == Z_OK); /* the room is enough, and memory does not run out */
    out->size = bound;
    out->data[bound] = '\0';
}

enum err inflate_bytes(struct str packed, uint64_t raw_size, struct buf *out, struct error *e)
{
    /* As little to be trusted as the bytes: it reserves no more than they could fill. */
    if (raw_size > raw_max || raw_size > (uint64_t)packed.size * EXPANDS_MAX)
        return err_set(e, ERR_CORRUPT, "%llu bytes cannot have been packed here",
                       (unsigned long long)raw_size);
    uLong size = (uLong)raw_size;
    AUTO(buf) struct buf raw = { 0 };
    buf_reserve(&raw, size);
    int rc = uncompress((Bytef *)raw.data, &size, (const Bytef *)packed.data, (uLong)packed.size);
    if (rc != Z_OK || size != raw_size)
        return err_set(e, ERR_CORRUPT, "packed bytes are damaged");
    raw.size = size;
    raw.data[size] = '\0';
    struct buf before = *out;
    *out = raw;
    raw = before; /* and ends with this function */
    return ERR_OK;
}
