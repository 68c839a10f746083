/*
 * id.h - random 128-bit ids with a prefix that says what they name: wl_4k3n... (26 base-32 digits).
 * The first 48 bits of ids made for requests are their time, so that an index over ids grows at its
 * end, like one over times, and is not written all over; 80 bits cannot be guessed.
 *
 * Ids come with the command that creates an object, from the entropy seam. Ids that a plan creates
 * are derived from a stored key and the journal sequence, so that a replay gives the same ones.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/base.h"
#include "base/str.h"
#include "base/timepoint.h"

struct id {
    uint64_t hi;
    uint64_t lo;
};

enum id_kind {
    ID_TENANT,
    ID_PROJECT,
    ID_CLASS,
    ID_POOL,
    ID_PROFILE,
    ID_WORKLOAD,
    ID_ARRAY,
    ID_ALLOCATION,
    ID_NODE,
    ID_DEVICE,
    ID_VOLUME,
    ID_IMAGE,
    ID_SEGMENT,
    ID_USER,
    ID_TOKEN,
    ID_REQUEST,
    ID_CREDENTIAL,
    ID_RUN,
    ID_RESERVATION,
    ID_CHANGE,
    ID_HOOK,
    ID_KIND_COUNT
};

enum { ID_DIGITS = 26, ID_TEXT_MAX = 32 }; /* longest text with its NUL */

static inline bool id_is_none(struct id id)
{
    return id.hi == 0 && id.lo == 0;
}

static inline bool id_eq(struct id a, struct id b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

int id_cmp(struct id a, struct id b);

const char *id_prefix(enum id_kind kind); /* "wl_" */

/* Writes "wl_..." with its NUL and returns `out`, so that it can be an argument of printf. */
char *id_text(enum id_kind kind, struct id id, char out[ID_TEXT_MAX]);
bool id_parse(enum id_kind kind, struct str text, struct id *out);
/* True when the text has this kind's prefix and shape. */
bool id_is_kind(enum id_kind kind, struct str text);

/* A fresh id out of a secret-independent key, a sequence and an index: SipHash-2-4, 128 bits. */
struct id id_derive(const uint8_t key[16], uint64_t sequence, uint64_t index);

/* `random` with its first 48 bits replaced by the time, in milliseconds. */
struct id id_in_time(struct id random, struct wall at);
/* `random` with the time of `sibling`. */
struct id id_beside(struct id sibling, struct id random);

/* SipHash-2-4 of Aumasson and Bernstein, 64-bit result; for hash tables with outside keys. */
uint64_t siphash(const uint8_t key[16], const void *bytes, size_t size);

#endif
