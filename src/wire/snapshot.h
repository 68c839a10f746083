/*
 * snapshot.h - the whole state as lines of JSON: a header, one after-image event a line, a trailer
 * with the number of lines, so that a cut file is noticed. Its format is versioned like the events.
 */
#ifndef WIRE_SNAPSHOT_H
#define WIRE_SNAPSHOT_H

#include "base/str.h"
#include "model/state.h"

void snapshot_write(const struct state *state, struct buf *out);

/* The same without what nobody outside may have: tokens, logins, uploads, and of work the specs,
 * which may have secrets in their environment. Enough for the scheduler. */
void snapshot_write_bare(const struct state *state, struct buf *out);

/* Into a fresh state. ERR_CORRUPT with the line at fault; then the state is to be thrown away. */
enum err snapshot_read(struct str bytes, struct state *state, struct error *e) MUST_CHECK;

#endif
