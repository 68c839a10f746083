/* transition.h - which step of a workload or an allocation is legal: two tables, walked by a test. */
#ifndef MODEL_TRANSITION_H
#define MODEL_TRANSITION_H

#include "model/kinds.h"

bool workload_may_become(enum workload_state from, enum workload_state to);
bool allocation_may_become(enum allocation_state from, enum allocation_state to);

#endif
