/*
 * answers.h - which Idempotency-Keys have an answer in the store, and under which number: so that a
 * new key, the usual case, asks the store nothing, and the store needs no index over keys, which
 * are random and would have a page of it written for every request.
 *
 * Two generations: keys come into the younger one; when all that the older one holds has expired,
 * it is dropped as a whole. 16 bytes a key, at a load of 3/8 to 3/4.
 */
#ifndef ENGINE_ANSWERS_H
#define ENGINE_ANSWERS_H

#include "store/store.h"

struct answers;

struct answers *answers_new(void);
void answers_free(struct answers *answers); /* NULL is a no-op */

/* The number above all that were put. */
uint64_t answers_next_number(const struct answers *answers);
/* `answer->number` is above all before; a later one of the same key takes its place. */
void answers_put(struct answers *answers, const struct store_answer *answer, struct wall now);
/* The number of the last answer put for this key, or 0: certainly none. May have expired, or, in
 * one of 2^64, be another key's: the store looks at both. */
uint64_t answers_number(const struct answers *answers, const struct digest *key);

#endif
