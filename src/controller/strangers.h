/*
 * strangers.h - links whose other end has not said yet who it is: how long one may take, and how
 * many there may be, of one address and in all.
 *
 * When there are too many the oldest goes, of the same address first: whoever is honest says hello
 * within a round trip, so that even behind the address of an attacker, or beside a
 * thousand of them, a node gets in. An IPv6 address counts by its first 64 bits, which is
 * what one customer is given.
 */
#ifndef CONTROLLER_STRANGERS_H
#define CONTROLLER_STRANGERS_H

#include "base/id.h"
#include "base/timepoint.h"

/* Embedded in its owner; all-zero: not among the strangers. */
struct stranger {
    struct stranger *next, *prev;
    struct id address;
    struct mono until;
    void *owner; /* borrowed */
};

struct strangers {
    struct stranger ring; /* sentinel; the oldest is ring.next */
    size_t count;
    int64_t patience_s;
    size_t max;
    size_t max_per_address;
};

struct strangers_limits {
    int64_t patience_s;
    int64_t max;
    int64_t max_per_address;
};

void strangers_init(struct strangers *strangers, const struct strangers_limits *limits);

/* `address` is conn_peer's. Returns who has to go for it, already removed; NULL: nobody. */
struct stranger *strangers_add(struct strangers *strangers, struct stranger *stranger,
                               const char *address, struct mono now);
void strangers_remove(struct strangers *strangers, struct stranger *stranger); /* or not there */

/* One whose time is over, removed; NULL: none. */
struct stranger *strangers_take_late(struct strangers *strangers, struct mono now);
/* When the next one's is; false: there is none. */
bool strangers_next(const struct strangers *strangers, struct mono *at);

#endif
