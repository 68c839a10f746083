/*
 * egress.h - how a child is started that asks the network for what a stranger has named: by
 * berth-egress, which lets it connect only as near as it may.
 */
#ifndef NET_EGRESS_H
#define NET_EGRESS_H

#include "base/error.h"
#include "net/reach.h"

/* Beside the running program, or where it is installed. In the arena. ERR_NOT_FOUND. */
MUST_CHECK enum err egress_find(struct arena *arena, const char **out, struct error *e);

/* `argv` (NULL at its end) behind berth-egress; `host` may have a port. In the arena. */
const char *const *egress_argv(const char *program, enum reach reach, struct str host,
                               const char *const *argv, struct arena *arena);

#endif
