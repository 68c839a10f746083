/* zones.h - what the system says of zones by now, told to reservations and changes of before. */
#ifndef CONTROLLER_ZONES_H
#define CONTROLLER_ZONES_H

#include "engine/engine.h"

/* Once, after the start: a zone that cannot be read any more keeps the rule it had. */
void zones_refresh(struct engine *engine, struct wall now);

#endif
