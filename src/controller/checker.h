/*
 * checker.h - the engine's self-check in a forked copy of the process.
 *
 * Recomputing everything that is derived takes about as long as the state is large; the loop has
 * other things to do. A child has the state as it was, to itself: what the loop pays is the fork.
 * Small states are checked in place, which is cheaper than that.
 */
#ifndef CONTROLLER_CHECKER_H
#define CONTROLLER_CHECKER_H

#include "engine/engine.h"
#include "net/loop.h"

struct checker;

/* `on_done` gets what the child found, on the loop. */
struct checker *checker_new(struct loop *loop,
                            void (*on_done)(void *arg, unsigned found, const struct error *e),
                            void *arg);
void checker_free(struct checker *checker); /* ends a child; NULL is a no-op */

/* False: not now or not worth it; the engine does it itself. */
bool checker_start(struct checker *checker, const struct state *state, const struct sched *sched);

#endif
