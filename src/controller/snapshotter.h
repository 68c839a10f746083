/*
 * snapshotter.h - a snapshot every so many events, without stopping the loop: a forked child packs
 * the state as it was when a batch was handed over; it is stored once that batch is durable.
 */
#ifndef CONTROLLER_SNAPSHOTTER_H
#define CONTROLLER_SNAPSHOTTER_H

#include "model/state.h"
#include "store/store.h"

struct snapshotter;

struct snapshotter *snapshotter_new(const char *path, int64_t every_events, uint64_t last_sequence);
void snapshotter_free(struct snapshotter *snapshotter); /* NULL is a no-op */

/* The state is exactly what the batch being handed over will make durable: forks if one is due. */
void snapshotter_consider(struct snapshotter *snapshotter, const struct store *store,
                          const struct state *state);

/* On the worker that just made a batch durable: stores the child's snapshot if it is complete and
 * not newer than `durable`. */
enum err snapshotter_store(struct snapshotter *snapshotter, struct store *store, uint64_t durable,
                           struct error *e) MUST_CHECK;

#endif
