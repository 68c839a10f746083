/* shim_order.h - what agentd tells a shim that waits: which attempt it is for. */
#ifndef AGENT_SHIM_ORDER_H
#define AGENT_SHIM_ORDER_H

#include "agent/attempt.h"

/* One datagram, with the attempt's lock and perhaps the runtime's sealed program. */
struct shim_order {
    char disk[ATTEMPT_PATH_MAX + ATTEMPT_NAME_MAX];
    char run[ATTEMPT_PATH_MAX + ATTEMPT_NAME_MAX];
};

#endif
