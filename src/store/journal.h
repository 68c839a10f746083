/*
 * journal.h - one journal row as bytes: what its check covers and what the journal holds.
 *
 * The check of a row is SipHash(store key, check of the row before | bytes of the row): a
 * row that was changed, lost, repeated or taken from another store breaks the chain, and
 * the reader knows where.
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include "store/store.h"

struct journal_key {
    uint8_t bytes[16];
};

/* The same with the row's check behind it, as parts and segments hold them. `*check` is that of the
 * row before, and becomes this one's. */
void journal_encode_next(struct buf *out, const struct store_row *row,
                         const struct journal_key *key, uint64_t *check);
/* Cuts such a row off `*bytes`; false: they are not rows. The row borrows from them. */
bool journal_decode_checked(struct str *bytes, struct store_row *out, uint64_t *check);

/* The row that an event becomes; borrows from it. */
struct store_row journal_row_of(const struct store_event *event);

/* Walks rows with a check each, verifying chain and order. */
struct journal_walk {
    struct journal_key key;
    uint64_t sequence; /* of the last row seen */
    uint64_t check;    /* of the last row seen */
    struct buf scratch;
};
MUST_CHECK enum err journal_step(struct journal_walk *walk, const struct store_row *row,
                                 uint64_t check, struct error *e);
void journal_walk_done(struct journal_walk *walk);
DEFINE_CLEANUP_AT(journal_walk, struct journal_walk, journal_walk_done)

#endif
