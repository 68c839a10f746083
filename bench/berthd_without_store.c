/*
 * berthd_without_store.c - berthd itself, except that an append to the store keeps nothing and
 * succeeds: "the same request without a store" of bench/submits. Decisions, state,
 * scheduling, batches, the hand-over to a worker and answers are all as they are. It
 * forgets everything when it ends.
 */
#include "store/sqlite_store.h"

/* The linker gives every call of sqlite_append() to this (--wrap). */
enum err append_nothing(struct store *base, const struct store_batch *batch,
                        struct error *e) __asm__("__wrap_sqlite_append");

enum err append_nothing(struct store *base, const struct store_batch *batch, struct error *e)
{
    (void)base;
    (void)batch;
    (void)e;
    return ERR_OK;
}
