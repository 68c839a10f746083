/*
 * set_aside.h - one poisonous workload never stops the others.
 *
 * Should the process die in the middle of the scheduler's look at a workload, the same state would
 * let it die there at every start, and nobody's work would be started any more. So whose turn it
 * was is noted as the process dies; the next start holds that workload, with a cause that its owner
 * sees, and goes on with all others. A person who knows better releases it.
 */
#ifndef CONTROLLER_SET_ASIDE_H
#define CONTROLLER_SET_ASIDE_H

#include "engine/engine.h"

/* Notes at `path` the id that `looked_at` gives when this process dies by a fault of its own
 * (abort, a bad address, ...); not that of a forked child. Once a process; `path` and `arg` stay
 * valid for its life. */
enum err set_aside_watch(const char *path, struct id (*looked_at)(void *arg), void *arg,
                         struct error *e) MUST_CHECK;

/* What was noted; none: nothing was. A file that cannot be read has nothing. For tests. */
struct id set_aside_noted(const char *path);

/* After the engine's start: holds what was noted at `path`, and forgets it once that is durable. */
void set_aside_apply(struct engine *engine, const char *path);

#endif
