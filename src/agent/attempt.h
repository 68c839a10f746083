/*
 * attempt.h - the directory of one attempt: how agentd and its shim speak, without speaking.
 *
 *   STATE/alloc/alc_....N/
 *     spec      struct attempt_spec, written last before the shim is spawned: "this may run"
 *     grant     the grant as it was signed (GRANT_SIZE bytes)
 *     payload   its payload
 *     config.json, rootfs/, scratch/, runtime.log, pid   for the runtime
 *     lock      locked (flock) by the shim as long as it lives; holds its pid as text
 *     status    struct attempt_status, replaced by the shim; on disk before it says "exited"
 *     stop      struct attempt_stop, written by agentd: the work is to end
 *     log       the spool (logspool.h); log.ack: how much of it may be dropped
 *
 * Files are the state, a signal or a datagram is only a hint to look again. So either side can be killed
 * at any moment and started again, and a new version of one side reads what an older one wrote: every
 * record carries a version and its size never shrinks.
 */
#ifndef AGENT_ATTEMPT_H
#define AGENT_ATTEMPT_H

#include <sys/types.h>

#include "agent/ipc.h"
#include "base/id.h"
#include "base/str.h"
#include "base/timepoint.h"

enum {
    ATTEMPT_PATH_MAX = 512,
    ATTEMPT_NAME_MAX = 48, /* "alc_... .4294967295" with its NUL */
    ATTEMPT_VERSION = 1,
};

/* What the shim needs to know. Times are CLOCK_BOOTTIME of the boot it was written in. */
struct attempt_spec {
    uint32_t magic;
    uint32_t version;
    struct id allocation;
    uint32_t attempt;
    uint32_t uid_base;
    uint32_t time_limit_s; /* 0: none */
    uint32_t grace_s;
    uint32_t fence_after_s; /* 0: none */
    uint32_t has_image;     /* 0: rootfs is used as it is */
    uint64_t log_quota_bytes;
    uint8_t image[32];
    uint8_t upload[32];
    uint32_t has_upload; /* mounted at upload/ of the directory */
    uint32_t is_fake;    /* the fake runtime: nothing is really run */
    char boot_id[40];
    char name[ATTEMPT_NAME_MAX];
    char cgroup[128];       /* path below each hierarchy, starts with '/' */
    char runtime[256];      /* program */
    char runtime_root[256]; /* its own state */
    char image_store[256];
    char lease[256];  /* file with the newest acknowledged heartbeat */
    char notify[256]; /* datagram socket that takes hints; may be absent */
    uint64_t check;
};

enum attempt_state { ATTEMPT_RUNNING = 1, ATTEMPT_STOPPING, ATTEMPT_EXITED };

struct attempt_status {
    uint32_t magic;
    uint32_t version;
    uint32_t state;    /* enum attempt_state */
    uint32_t end;      /* enum ipc_end */
    int32_t exit_code; /* -1: none */
    int32_t signal;
    uint32_t is_oom;
    int32_t init_pid; /* of the workload's first process on the host; 0: none */
    int64_t started_ns;
    int64_t ended_ns;
    char boot_id[40];
    char reason[IPC_TEXT_MAX];
    uint64_t check;
};

struct attempt_stop {
    uint32_t magic;
    uint32_t version;
    uint32_t end; /* IPC_END_STOPPED or IPC_END_NOT_GRANTED */
    uint32_t grace_s;
    uint64_t check;
};

/* The node's fence lease: one file for all attempts. */
struct attempt_lease {
    uint32_t magic;
    uint32_t version;
    int64_t sent_ns; /* CLOCK_BOOTTIME when the newest acknowledged heartbeat was sent */
    char boot_id[40];
    uint64_t check;
};

/* "alc_....1" of the directory; returns `out`. */
char *attempt_name(struct id allocation, uint32_t attempt, char out[ATTEMPT_NAME_MAX]);
bool attempt_parse(const char *name, struct id *allocation, uint32_t *attempt);

/*
 * Records are read and replaced whole in the directory `dir_fd`. A read fills `out` only with a record
 * that is complete and intact. ERR_NOT_FOUND: no such file. ERR_CORRUPT: not what was written.
 */
enum attempt_durability { ATTEMPT_VOLATILE, ATTEMPT_DURABLE };

MUST_CHECK enum err attempt_read_spec(int dir_fd, struct attempt_spec *out, struct error *e);
MUST_CHECK enum err attempt_write_spec(int dir_fd, struct attempt_spec *spec, struct error *e);
/* After a power cut the status may be found under its temporary name: that one counts too. */
MUST_CHECK enum err attempt_read_status(int dir_fd, struct attempt_status *out, struct error *e);
MUST_CHECK enum err attempt_write_status(int dir_fd, struct attempt_status *status,
                                         enum attempt_durability durability, struct error *e);
MUST_CHECK enum err attempt_read_stop(int dir_fd, struct attempt_stop *out, struct error *e);
MUST_CHECK enum err attempt_write_stop(int dir_fd, struct attempt_stop *stop, struct error *e);
MUST_CHECK enum err attempt_read_lease(const char *path, struct attempt_lease *out,
                                       struct error *e);
MUST_CHECK enum err attempt_write_lease(const char *path, struct attempt_lease *lease,
                                        struct error *e);

/* Plain files of the directory, replaced whole and not synced. */
MUST_CHECK enum err attempt_write_file(int dir_fd, const char *name, struct str bytes,
                                       struct error *e);
MUST_CHECK enum err attempt_read_file(int dir_fd, const char *name, size_t max, struct buf *out,
                                      struct error *e);

/* The shim's side of the lock file it inherited: writes its pid there. */
MUST_CHECK enum err attempt_lock_sign(int lock_fd, pid_t pid, struct error *e);

enum attempt_holder {
    ATTEMPT_NEVER_RAN, /* nobody has signed, nobody holds it */
    ATTEMPT_STARTING,  /* held, not signed yet */
    ATTEMPT_HELD,      /* held by *pid */
    ATTEMPT_LEFT       /* signed, but not held any more */
};
/* Who holds the lock, as a pidfd that certainly is that shim. *pidfd is yours, -1 unless HELD. */
MUST_CHECK enum err attempt_holder(int dir_fd, enum attempt_holder *out, int *pidfd,
                                   struct error *e);
/* Opens and locks the lock file for a shim that is about to be spawned. */
MUST_CHECK enum err attempt_lock(int dir_fd, int *lock_fd, struct error *e);

#endif
