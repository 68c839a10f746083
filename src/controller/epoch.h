/*
 * epoch.h - after a restore, an epoch above what nodes have obeyed.
 *
 * Each start claims an epoch, so a backup may lie many below what nodes know by now, and they obey
 * nothing lower. A node that reports a higher one is believed only after a restore - else a
 * copy of the store that was started by mistake would overtake the controller it was copied
 * from - and only within a bound, since a node may lie. Every claim at least doubles the
 * distance: twenty at most a start.
 */
#ifndef CONTROLLER_EPOCH_H
#define CONTROLLER_EPOCH_H

#include "controller/config.h"

enum { EPOCH_REACH = 1000000 };

struct epoch_claims {
    bool is_restored; /* and not all nodes have come back since */
    uint64_t first;   /* what this start began with */
    unsigned count;   /* claims since */
};

/* What to claim so that a node which has obeyed `obeyed` obeys us; 0: it is not to be believed. */
uint64_t epoch_above(struct epoch_claims *claims, uint64_t obeyed);

/* The restore, noted in the state directory until all nodes are back. */
enum err epoch_mark_restored(const struct config *config, struct error *e) MUST_CHECK;
bool epoch_is_restored(const struct config *config);
void epoch_unmark(
    const struct config *config); /* a mark that cannot be removed is there at the next start */

#endif
