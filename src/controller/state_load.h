/* state_load.h - the state out of the store: the newest snapshot and the events after it. */
#ifndef CONTROLLER_STATE_LOAD_H
#define CONTROLLER_STATE_LOAD_H

#include "model/state.h"
#include "store/store.h"

enum err state_load(struct store *store, struct state **out, struct error *e) MUST_CHECK;

/* The decoder store->rebuild() wants. */
enum err state_decode_row(void *arg, const struct store_row *row, struct arena *arena,
                          struct event *out, struct error *e);

#endif
