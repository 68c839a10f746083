/* pulse.h - whether the scheduler gets on: what /healthz tells whoever restarts a stuck
 * controller. */
#ifndef CONTROLLER_PULSE_H
#define CONTROLLER_PULSE_H

#include <stdbool.h>

#include "base/timepoint.h"

struct pulse {
    struct mono turned; /* the engine's last turn */
    struct mono passed; /* the last one that left nothing to schedule */
};

struct pulse pulse_start(struct mono now);
/* After each turn of the engine; `more`: something is left to schedule. */
void pulse_turned(struct pulse *pulse, struct mono now, bool more);
/* NULL: all is well; else what is wrong, in a sentence. */
const char *pulse_problem(const struct pulse *pulse, struct mono now);

#endif
