/* dump.h - everything a state knows as text, one object a line, so that two states can be compared. */
#ifndef TESTS_UNIT_MODEL_DUMP_H
#define TESTS_UNIT_MODEL_DUMP_H

#include "model/state.h"

/* The payload of an after-image, every field of it. */
void dump_event(struct buf *out, const struct event *event);

/* Header, everything state_walk() gives, and what only lists and counters of the state know. */
void dump_state(struct buf *out, const struct state *state);

/* Both dumps, compared; the first line that differs goes to the log of the test. */
bool dump_is_equal(const struct state *a, const struct state *b);

/* A new state made of the snapshot of another. */
struct state *restore_copy(const struct state *state);

#endif
