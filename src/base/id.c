#include "base/id.h"

#include <assert.h>
#include <string.h>

static const char *const prefixes[ID_KIND_COUNT] = {
    [ID_TENANT] = "ten_",      [ID_PROJECT] = "prj_",    [ID_CLASS] = "cls_",
    [ID_POOL] = "pol_",        [ID_PROFILE] = "pro_",    [ID_WORKLOAD] = "wl_",
    [ID_ARRAY] = "arr_",       [ID_ALLOCATION] = "alc_", [ID_NODE] = "nod_",
    [ID_DEVICE] = "dev_",      [ID_VOLUME] = "vol_",     [ID_IMAGE] = "img_",
    [ID_SEGMENT] = "seg_",     [ID_USER] = "usr_",       [ID_TOKEN] = "tok_",
    [ID_REQUEST] = "req_",     [ID_CREDENTIAL] = "crd_", [ID_RUN] = "run_",
    [ID_RESERVATION] = "rsv_", [ID_CHANGE] = "chg_",     [ID_HOOK] = "hok_",
};

/* Crockford's alphabet in lower case: no i, l, o, u. */
static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

int id_cmp(struct id a, struct id b)
{
    if (a.hi != b.hi)
        return a.hi < b.hi ? -1 : 1;
    return (a.lo > b.lo) - (a.lo < b.lo);
}

const char *id_prefix(enum id_kind kind)
{
    assert(kind < ID_KIND_COUNT);
    return prefixes[kind];
}

char *id_text(enum id_kind kind, struct id id, char out[ID_TEXT_MAX])
{
    size_t used = strlen(id_prefix(kind));
    static_assert(4 + ID_DIGITS < ID_TEXT_MAX, "a prefix and the digits fit");
    memcpy(out, id_prefix(kind), used);
    for (size_t left = ID_DIGITS; left > 0; left--) {
        size_t i = left - 1;
        out[used + i] = digits[id.lo & 31];
        id.lo = id.lo >> 5 | (id.hi & 31) << 59;
        id.hi >>= 5;
    }
    out[used + ID_DIGITS] = '\0';
    return out;
}

bool id_parse(enum id_kind kind, struct str text, struct id *out)
{
    struct str prefix = str_of(id_prefix(kind));
    if (!str_starts(text, prefix) || text.size != prefix.size + ID_DIGITS)
        return false;

    struct id id = { 0 };
    for (size_t i = prefix.size; i < text.size; i++) {
        const char *at = text.data[i] != '\0' ? strchr(digits, text.data[i]) : NULL;
        if (at == NULL || id.hi >> 59 != 0)
            return false; /* a digit outside the alphabet, or more than 128 bits */
        id.hi = id.hi << 5 | id.lo >> 59;
        id.lo = (id.lo & UINT64_MAX >> 5) << 5 | (uint64_t)(at - digits);
    }
    *out = id;
    return true;
}

bool id_is_kind(enum id_kind kind, struct str text)
{
    struct id ignored;
    return id_parse(kind, text, &ignored);
}

struct sip {
    uint64_t v0, v1, v2, v3;
};

WRAPS static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

WRAPS static void sip_rounds(struct sip *s, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        s->v0 += s->v1;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v2 = rotate(s->v2, 32);
    }
}

static uint64_t load_le64(const uint8_t *p)
{
    uint64_t x = 0;
    for (unsigned i = 8; i > 0; i--)
        x = x << 8 | p[i - 1];
    return x;
}

/* The common part of both lengths; `wide` starts the 128-bit variant of the reference. */
static struct sip sip_absorb(const uint8_t key[16], const uint8_t *bytes, size_t size, bool wide)
{
    uint64_t k0 = load_le64(key);
    uint64_t k1 = load_le64(key + 8);
    struct sip s = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                     k1 ^ 0x7465646279746573u };
    if (wide)
        s.v1 ^= 0xee;
    size_t whole = size / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t m = load_le64(bytes + i);
        s.v3 ^= m;
        sip_rounds(&s, 2);
        s.v0 ^= m;
    }
    uint64_t last = (uint64_t)(size & 0xff) << 56;
    for (size_t i = whole; i < size; i++)
        last |= (uint64_t)bytes[i] << (8 * (i - whole));
    s.v3 ^= last;
    sip_rounds(&s, 2);
    s.v0 ^= last;
    s.v2 ^= wide ? 0xee : 0xff;
    sip_rounds(&s, 4);
    return s;
}

uint64_t siphash(const uint8_t key[16], const void *bytes, size_t size)
{
    struct sip s = sip_absorb(key, bytes, size, false);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

struct id id_derive(const uint8_t key[16], uint64_t sequence, uint64_t index)
{
    uint8_t text[16];
    for (unsigned i = 0; i < 8; i++) {
        text[i] = (uint8_t)(sequence >> (8 * i));
        text[8 + i] = (uint8_t)(index >> (8 * i));
    }
    struct sip s = sip_absorb(key, text, sizeof(text), true);
    struct id id = { .lo = s.v0 ^ s.v1 ^ s.v2 ^ s.v3 };
    s.v1 ^= 0xdd;
    sip_rounds(&s, 4);
    id.hi = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    return id;
}

enum { TIME_SHIFT = 16 };

struct id id_in_time(struct id random, struct wall at)
{
    uint64_t ms = (uint64_t)(at.ns / NS_PER_MS);
    return id_beside((struct id){ ms << TIME_SHIFT, 0 }, random);
}

struct id id_beside(struct id sibling, struct id random)
{
    const uint64_t rest = (UINT64_C(1) << TIME_SHIFT) - 1;
    return (struct id){ (sibling.hi & ~rest) | (random.hi & rest), random.lo };
}
