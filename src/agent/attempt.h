/*
 * attempt.h - the two directories of one attempt: how agentd and its shim speak, without speaking.
 *
 *   STATE/alloc/alc_....N/    on disk: what must outlive the machine
 *     spec      struct attempt_spec and the payload, written before the shim is spawned
 *     status    struct attempt_status of the end, on disk before the shim says "exited"
 *     log       the spool (logspool.h); log.ack: how much of it may be dropped
 *     scratch/  what the workload writes over its image
 *   RUN/alloc/alc_....N/      in memory (tmpfs): what dies with the processes anyway
 *     config.json, rootfs/, upload/, own/, hosts, runtime.log, runtime.pid   for the runtime: its bundle
 *     pid       of the workload's first process, as text: there before its status says "running"
 *     lock      locked (flock) by the shim as long as it lives; holds its pid as text
 *     status    struct attempt_status while it runs
 *     stop      struct attempt_stop, written by agentd: the work is to end
 *     why       text: nothing was begun, for something was short
 *     reason    struct attempt_reason, written by agentd before "stop": what the workload is told
 *     said      struct attempt_said: what the workload says, by the shim
 *   "status.new" and "stop.new" are there from the beginning, so that there is room for the end and
 *   for an order to stop on the fullest disk.
 *
 * Files are the state, a signal or a datagram is only a hint to look again. So either side can be
 * killed at any moment and started again, and a new version of one side reads what an older one
 * wrote: every record carries a version.
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

/*
 * In memory, and in the shim's mount namespace only: what every container is given by us,
 * on a file system of its own, for a workload can read in /proc/mounts where on the
 * machine a bind mount comes from.
 */
#define ATTEMPT_OWN_DIR    "own"
#define ATTEMPT_INIT_NAME  "berth-init"
#define ATTEMPT_NOTICE_DIR ATTEMPT_OWN_DIR "/notice"
#define ATTEMPT_HOSTS_NAME                                                                         \
    "hosts" /* agentd puts it into the bundle, the shim from there into own/ */

/* In memory: why a shim gave up before it began anything, as text. */
#define ATTEMPT_WHY_NAME "why"

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
    uint32_t has_upload;       /* mounted at upload/ of the bundle */
    uint32_t is_fake;          /* the fake runtime: nothing is really run */
    uint8_t grant[GRANT_SIZE]; /* as it was signed */
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

/* Why, for the workload itself: beside attempt_stop, whose shape older shims know. */
struct attempt_reason {
    uint32_t magic;
    uint32_t version;
    char cause[32]; /* a word of model/cause.h */
    uint64_t check;
};

/* What the workload has said to its shim so far. */
struct attempt_said {
    uint32_t magic;
    uint32_t version;
    uint32_t checkpoints;
    uint32_t extended_s;
    int64_t checkpointed_ns; /* CLOCK_BOOTTIME of the last; 0: never */
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

/* Both directories, open. */
struct attempt_dirs {
    int disk;
    int run; /* -1: it never ran in this boot */
};

#define ATTEMPT_DIRS_NONE ((struct attempt_dirs){ -1, -1 })

void attempt_dirs_done(struct attempt_dirs *dirs);
DEFINE_CLEANUP_AT(attempt_dirs, struct attempt_dirs, attempt_dirs_done)

/* ERR_NOT_FOUND: there is nothing on disk. A missing directory in memory is fine. */
MUST_CHECK enum err attempt_dirs_open(const char *disk, const char *run, struct attempt_dirs *out,
                                      struct error *e);

/*
 * Records are read and replaced whole. A read fills `out` only with a record that is complete and
 * intact. ERR_NOT_FOUND: no such file. ERR_CORRUPT: not what was written.
 */
MUST_CHECK enum err attempt_read_spec(const struct attempt_dirs *dirs, struct attempt_spec *out,
                                      struct error *e);
MUST_CHECK enum err attempt_read_payload(const struct attempt_dirs *dirs, struct buf *out,
                                         struct error *e);
/* Once, before anybody reads it. */
MUST_CHECK enum err attempt_write_spec(const struct attempt_dirs *dirs, struct attempt_spec *spec,
                                       struct str payload, struct error *e);

/* The end, where there is one, else how it runs. After a power cut the end may be found under its
 * temporary name: that counts too. */
MUST_CHECK enum err attempt_read_status(const struct attempt_dirs *dirs, struct attempt_status *out,
                                        struct error *e);
/* Takes the room that the end, and an order to stop, will need. */
MUST_CHECK enum err attempt_reserve(const struct attempt_dirs *dirs, struct error *e);

/* ATTEMPT_EXITED goes to the disk and is synced, the other states into memory; so does the end
 * where the disk takes nothing: better known for as long as the machine runs than not at all. */
MUST_CHECK enum err attempt_write_status(const struct attempt_dirs *dirs,
                                         struct attempt_status *status, struct error *e);
MUST_CHECK enum err attempt_read_stop(const struct attempt_dirs *dirs, struct attempt_stop *out,
                                      struct error *e);
MUST_CHECK enum err attempt_write_stop(const struct attempt_dirs *dirs, struct attempt_stop *stop,
                                       struct error *e);
MUST_CHECK enum err attempt_read_reason(const struct attempt_dirs *dirs, struct attempt_reason *out,
                                        struct error *e);
MUST_CHECK enum err attempt_write_reason(const struct attempt_dirs *dirs,
                                         struct attempt_reason *reason, struct error *e);
MUST_CHECK enum err attempt_read_said(const struct attempt_dirs *dirs, struct attempt_said *out,
                                      struct error *e);
MUST_CHECK enum err attempt_write_said(const struct attempt_dirs *dirs, struct attempt_said *said,
                                       struct error *e);
MUST_CHECK enum err attempt_read_lease(const char *path, struct attempt_lease *out,
                                       struct error *e);
MUST_CHECK enum err attempt_write_lease(const char *path, struct attempt_lease *lease,
                                        struct error *e);

/* A plain file that is new, and reading one. */
MUST_CHECK enum err attempt_write_file(int dir_fd, const char *name, struct str bytes,
                                       struct error *e);
MUST_CHECK enum err attempt_read_file(int dir_fd, const char *name, size_t max, struct buf *out,
                                      struct error *e);

/* The shim's side of the lock file it inherited: writes its pid there, before it begins
 * anything. */
MUST_CHECK enum err attempt_lock_sign(int lock_fd, pid_t pid, struct error *e);
/* Takes that back when nothing was begun: it may be started again. */
MUST_CHECK enum err attempt_lock_unsign(int lock_fd, struct error *e);

enum attempt_holder {
    ATTEMPT_NEVER_RAN, /* in this boot: nobody has signed, nobody holds it */
    ATTEMPT_STARTING,  /* held, not signed yet */
    ATTEMPT_HELD,      /* held by *pid */
    ATTEMPT_LEFT       /* signed, but not held any more */
};
/* Who holds the lock, as a pidfd that certainly is that shim. *pidfd is yours, -1 unless HELD. */
MUST_CHECK enum err attempt_holder(const struct attempt_dirs *dirs, enum attempt_holder *out,
                                   int *pidfd, struct error *e);
/* Opens and locks the lock file for a shim that is about to be spawned. */
MUST_CHECK enum err attempt_lock(const struct attempt_dirs *dirs, int *lock_fd, struct error *e);

#endif
