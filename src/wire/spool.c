#include "wire/spool.h"

static const uint32_t magic = 0x474f4c42; /* "BLOG" */
enum { GAP_BYTES = 8 };

static uint64_t load(const char *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i > 0; i--)
        value = value << 8 | (unsigned char)bytes[i - 1];
    return value;
}

enum err spool_next(struct str bytes, struct spool_record *out, struct error *e)
{
    if (bytes.size < SPOOL_HEADER_SIZE)
        return err_set(e, ERR_NOT_FOUND, "the record is not there whole");
    const char *p = bytes.data;
    uint64_t kind = load(p + 4, 2);
    uint64_t stream = load(p + 6, 2);
    uint64_t size = load(p + 8, 4);
    bool is_gap = kind == SPOOL_GAP;
    if (load(p, 4) != magic || (!is_gap && kind != SPOOL_DATA) ||
        (stream != SPOOL_STDOUT && stream != SPOOL_STDERR) || size > SPOOL_RECORD_MAX ||
        (is_gap && size != GAP_BYTES))
        return err_set(e, ERR_CORRUPT, "no record of a log starts here");
    if (bytes.size - SPOOL_HEADER_SIZE < size)
        return err_set(e, ERR_NOT_FOUND, "the record is not there whole");

    *out = (struct spool_record){
        .kind = is_gap ? SPOOL_GAP : SPOOL_DATA,
        .stream = stream == SPOOL_STDOUT ? SPOOL_STDOUT : SPOOL_STDERR,
        .offset = load(p + 16, 8),
        .lost = is_gap ? load(p + SPOOL_HEADER_SIZE, GAP_BYTES) : 0,
        .time = { (int64_t)load(p + 24, 8) },
        .bytes = is_gap ? (struct str){ 0 } : (struct str){ p + SPOOL_HEADER_SIZE, (size_t)size },
        .size = SPOOL_HEADER_SIZE + (size_t)size,
    };
    return ERR_OK;
}
