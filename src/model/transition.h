/*
 * transition.h - which step of a workload, an allocation or a reservation is legal: tables,
 * walked by a test.
 *
 * Staying in the same state is not a step: an event may change cause, detail or counters of
 * anything that has not ended without one.
 *
 * workload: held -> queued -> [provisioning] -> starting -> running -> [stopping] -> final or
 * queued. allocation: starting -> running -> [stopping] -> cleaning -> ended. The use that is
 * billed ends with the step out of starting, running and stopping, lost included: a lost allocation
 * that runs on after all begins a new use.
 */
#ifndef MODEL_TRANSITION_H
#define MODEL_TRANSITION_H

#include "model/kinds.h"

bool workload_may_become(enum workload_state from, enum workload_state to);
bool allocation_may_become(enum allocation_state from, enum allocation_state to);
bool reservation_may_become(enum reservation_state from, enum reservation_state to);
bool change_may_become(enum change_state from, enum change_state to);

#endif
