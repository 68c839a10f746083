/*
 * event_copy.h - a deep copy of an event. Decided events borrow from the command and the state; the
 * journal and the change feed outlive both.
 */
#ifndef WIRE_EVENT_COPY_H
#define WIRE_EVENT_COPY_H

#include "model/event.h"

/* `out` becomes independent of whatever `event` borrows from; everything is in the arena. */
void event_copy(struct arena *arena, const struct event *event, struct event *out);

#endif
