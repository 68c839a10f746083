/* dump.h - everything a state knows as text, one object a line, so that two states can be
 * compared. */
#ifndef TESTS_UNIT_MODEL_DUMP_H
#define TESTS_UNIT_MODEL_DUMP_H

#include "model/state.h"

/* Every field of every object, read from the lists of the state and not through state_walk(): what
 * a snapshot forgets has to show. */
void dump_state(struct buf *out, const struct state *state);

/* Both dumps, compared; the first line that differs goes to the log of the test. */
bool dump_is_equal(const struct state *a, const struct state *b);

/* A new state made of the snapshot of another. */
struct state *restore_copy(const struct state *state);

#endif
