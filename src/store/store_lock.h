/*
 * store_lock.h - PATH.lock: one controller a store, and a mark of how far the journal got.
 *
 * The mark is written after every durable commit, but not forced to disk itself. So it is
 * never ahead of the store; when the store is found behind it, acknowledged changes are
 * missing (the write-ahead log was deleted or damaged, or an old copy was put in place by
 * hand) and the store is refused.
 */
#ifndef STORE_STORE_LOCK_H
#define STORE_STORE_LOCK_H

#include "base/error.h"
#include "store/journal.h"

struct store_lock {
    int fd; /* owned; -1: not held */
};

#define STORE_LOCK_NONE ((struct store_lock){ -1 })

/* ERR_CONFLICT: another process has the store open. */
MUST_CHECK enum err store_lock_take(const char *path, struct store_lock *out, struct error *e);
void store_lock_done(struct store_lock *lock);
DEFINE_CLEANUP_AT(store_lock, struct store_lock, store_lock_done)

/* ERR_CORRUPT: the mark is of this store and ahead of `sequence`. */
MUST_CHECK enum err store_mark_check(const struct store_lock *lock, const char *path,
                                     const struct journal_key *store, uint64_t sequence,
                                     struct error *e);
/* A failure is ignored: the mark is a second look, not the truth. */
void store_mark_set(const struct store_lock *lock, const struct journal_key *store,
                    uint64_t sequence);
/* Forgets the mark, durably: an older store is about to be put in place on purpose. */
MUST_CHECK enum err store_mark_clear(const struct store_lock *lock, const char *path,
                                     struct error *e);

#endif
