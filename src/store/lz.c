#include "store/lz.h"

#include <string.h>

#include "base/mem.h"

enum {
    MATCH_MIN = 6,
    DISTANCE_MAX = 65535,
    TABLE_BITS = 12,
    COUNT_IN_HALF = 15,
    /* A search that finds nothing takes longer steps, one more after 32 bytes. */
    TRY_LESS_AFTER = 5,
    /* What a packed byte stands for, at most: one of a count of copied bytes. */
    EXPANDS_MAX = 255,
};

/* SQLite's own bound on a value; more cannot have been stored. */
static const uint64_t raw_max = UINT64_C(1) << 30;

static uint64_t load_u64(const char *from)
{
    uint64_t value = 0;
    memcpy(&value, from, sizeof(value));
    return value;
}

/* Of the first MATCH_MIN bytes; which come first in memory differs by machine, and does
 * not matter. */
WRAPS static size_t slot_of(const char *at)
{
    uint64_t bytes = 0;
    memcpy(&bytes, at, MATCH_MIN);
    return (size_t)((bytes * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - TABLE_BITS));
}

/* ---- packing --------------------------------------------------------------------------------- */

static void put_count(struct buf *out, size_t count)
{
    if (count < COUNT_IN_HALF)
        return;
    for (count -= COUNT_IN_HALF; count >= 255; count -= 255)
        buf_add_char(out, (char)255);
    buf_add_char(out, (char)(uint8_t)count);
}

static void put_literals(struct buf *out, struct str literals, size_t copied)
{
    size_t high = MIN_OF(literals.size, (size_t)COUNT_IN_HALF);
    size_t low = MIN_OF(copied, (size_t)COUNT_IN_HALF);
    buf_add_char(out, (char)(uint8_t)(high << 4 | low));
    put_count(out, literals.size);
    buf_add(out, literals.data, literals.size);
}

static void put_copy(struct buf *out, size_t distance, size_t copied)
{
    buf_add_char(out, (char)(uint8_t)(distance & 0xff));
    buf_add_char(out, (char)(uint8_t)(distance >> 8));
    put_count(out, copied);
}

/* How many bytes are the same; `a` is before `b`. */
static size_t same_bytes(const char *a, const char *b, const char *end)
{
    const char *start = b;
    while (end - b >= 8 && load_u64(a) == load_u64(b)) {
        a += 8;
        b += 8;
    }
    while (b < end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(b - start);
}

void lz_pack(struct str raw, struct buf *out)
{
    /* The position after the last bytes that fell into the slot. */
    uint32_t table[1 << TABLE_BITS] = { 0 };
    size_t at = 0;
    size_t literals_at = 0;
    size_t tries = 0;
    buf_clear(out);
    while (raw.size < UINT32_MAX && at + MATCH_MIN <= raw.size) {
        uint32_t *slot = &table[slot_of(raw.data + at)];
        size_t seen = *slot;
        *slot = (uint32_t)(at + 1);
        size_t from = seen - 1; /* of no meaning when nothing was seen */
        size_t count = 0;
        if (seen != 0 && at - from <= DISTANCE_MAX)
            count = same_bytes(raw.data + from, raw.data + at, raw.data + raw.size);
        if (count < MATCH_MIN) {
            at += 1 + (tries++ >> TRY_LESS_AFTER);
            continue;
        }
        put_literals(out, (struct str){ raw.data + literals_at, at - literals_at },
                     count - MATCH_MIN);
        put_copy(out, at - from, count - MATCH_MIN);
        at += count;
        literals_at = at;
        tries = 0;
    }
    put_literals(out, (struct str){ raw.data + literals_at, raw.size - literals_at }, 0);
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static bool cut_count(struct str *packed, size_t *count)
{
    if (*count < COUNT_IN_HALF)
        return true;
    uint8_t more = 255;
    while (more == 255) {
        if (packed->size == 0)
            return false;
        more = (uint8_t)packed->data[0];
        *packed = (struct str){ packed->data + 1, packed->size - 1 };
        *count += more;
    }
    return true;
}

static bool cut_literals(struct str *packed, size_t count, size_t raw_size, struct buf *out)
{
    if (count > packed->size || count > raw_size - out->size)
        return false;
    buf_add(out, packed->data, count);
    *packed = (struct str){ packed->data + count, packed->size - count };
    return true;
}

static bool cut_copy(struct str *packed, size_t count, size_t raw_size, struct buf *out)
{
    if (packed->size < 2)
        return false;
    size_t distance = (uint8_t)packed->data[0] | (size_t)(uint8_t)packed->data[1] << 8;
    *packed = (struct str){ packed->data + 2, packed->size - 2 };
    if (!cut_count(packed, &count))
        return false;
    count += MATCH_MIN;
    if (distance == 0 || distance > out->size || count > raw_size - out->size)
        return false;
    /* What is copied may reach into what the copy writes; the room is there. */
    if (count <= distance) {
        memcpy(out->data + out->size, out->data + out->size - distance, count);
        out->size += count;
        return true;
    }
    for (; count > 0; count--, out->size++)
        out->data[out->size] = out->data[out->size - distance];
    return true;
}

static bool unpack_step(struct str *packed, size_t raw_size, struct buf *out)
{
    uint8_t counts = (uint8_t)packed->data[0];
    size_t literals = counts >> 4;
    *packed = (struct str){ packed->data + 1, packed->size - 1 };
    if (!cut_count(packed, &literals) || !cut_literals(packed, literals, raw_size, out))
        return false;
    return packed->size == 0 || cut_copy(packed, counts & 0xf, raw_size, out);
}

enum err lz_unpack(struct str packed, uint64_t raw_size, struct buf *out, struct error *e)
{
    /* The size is as little to be trusted as the bytes: it reserves no more than they
     * could fill. */
    if (raw_size > raw_max || raw_size > (uint64_t)packed.size * EXPANDS_MAX)
        return err_set(e, ERR_CORRUPT, "%llu bytes cannot have been packed here",
                       (unsigned long long)raw_size);
    AUTO(buf) struct buf raw = { 0 };
    buf_reserve(&raw, (size_t)raw_size);
    bool is_whole = true;
    while (is_whole && packed.size != 0)
        is_whole = unpack_step(&packed, (size_t)raw_size, &raw);
    if (!is_whole || raw.size != raw_size)
        return err_set(e, ERR_CORRUPT, "packed bytes are damaged");
    raw.data[raw.size] = '\0';
    struct buf before = *out;
    *out = raw;
    raw = before; /* and ends with this function */
    return ERR_OK;
}
