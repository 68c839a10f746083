#include "store/deflate.h"

#include <assert.h>
#include <zlib.h>

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
    if (raw_size > raw_max)
        return err_set(e, ERR_CORRUPT, "%llu bytes cannot have been packed here",
                       (unsigned long long)raw_size);
    uLong size = (uLong)raw_size;
    buf_clear(out);
    buf_reserve(out, size);
    int rc = uncompress((Bytef *)out->data, &size, (const Bytef *)packed.data, (uLong)packed.size);
    if (rc != Z_OK || size != raw_size)
        return err_set(e, ERR_CORRUPT, "packed bytes are damaged");
    out->size = size;
    out->data[size] = '\0';
    return ERR_OK;
}
