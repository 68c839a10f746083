/* expect.h - what must be true of a world, and what is said when it is not. */
#ifndef SIM_EXPECT_H
#define SIM_EXPECT_H

#include "sim/world.h"

/* Does it speak of this instant (in nanoseconds)? `end` ones do not. */
bool expect_is_due(const struct sim_expect *expect, int64_t t);
/* False: it does not hold, and `why` says what is and what was expected, as one line a fault. */
bool expect_holds(struct world *world, const struct sim_expect *expect, struct buf *why);
/* What must hold of every state, whoever asks (the invariants of the reliability plan). */
bool world_is_sound(const struct world *world, struct buf *why);

#endif
