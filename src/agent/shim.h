/*
 * shim.h - berth-shim: the one process that stays with a workload member, whatever
 * happens to the agent.
 *
 *   berth-shim run DISK RUN         descriptor 3: the attempt's lock; 5: the runtime's program, sealed
 *                                   (runtime/program.h), or anything else. Starts the work, keeps
 *                                   its log, its deadlines and its exit status, and ends after it.
 *   berth-shim spare ROOM ROOM      descriptor 3: a SOCK_SEQPACKET socket to agentd. Waits for an order
 *                                   (shim_order.h), then is as if started with "run"; ends when the
 *                                   socket closes. ROOM is as long as any path it may be told.
 *   berth-shim exec DISK RUN NAME   descriptors 0-2: the command's; 3: a SOCK_SEQPACKET socket to
 *                                   agentd. Runs RUN/NAME.json (an OCI process) in the container.
 *                                   NAME starts with "tty" when it has a terminal.
 *   berth-shim clean DISK RUN       After a shim that was killed: ends what it left and removes it.
 *                                   Exit 1: something would not end.
 *
 * DISK and RUN are the directories of attempt.h.
 */
#ifndef AGENT_SHIM_H
#define AGENT_SHIM_H

#include <limits.h>

#include "agent/image/mount.h"
#include "agent/runtime/runtime.h"

/* What all three begin with: the working directory, the spec, the runtime. */
struct shim_context {
    struct attempt_spec spec;
    struct attempt_dirs dirs;
    const char *disk; /* path; borrowed */
    const struct runtime *runtime;
    struct runtime_work work;
    bool has_own_mounts;                 /* in a mount namespace of its own already */
    struct image_leftover *leftovers[2]; /* of rootfs/ and upload/, until the start is under way */
};

int shim_run(struct shim_context *context, int lock_fd);
int shim_exec(struct shim_context *context, const char *name, int control_fd);
int shim_clean(struct shim_context *context);

/* A mount namespace of the shim's own, into which the machine's mounts still come. */
MUST_CHECK enum err shim_own_mounts(struct error *e);

/* The image (rootfs/) and the upload (upload/) of an attempt, in its bundle. */
MUST_CHECK enum err shim_mount_root(struct shim_context *context, struct error *e);
/* What containers are given by us (ATTEMPT_OWN_DIR), in the bundle. */
MUST_CHECK enum err shim_mount_own(struct shim_context *context, struct error *e);
void shim_settle_root(struct shim_context *context); /* once that is not in anybody's way */
void shim_unmount_root(const struct shim_context *context);

/* What exec says on its control socket, one datagram each; a terminal's master comes with
 * OPENED. */
enum shim_exec_kind { SHIM_EXEC_OPENED = 1, SHIM_EXEC_EXITED };
struct shim_exec_report {
    uint32_t kind;
    uint32_t code; /* enum err of OPENED */
    int32_t exit_code;
    int32_t signal;
    char text[IPC_TEXT_MAX];
};

#endif
