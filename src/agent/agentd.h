/*
 * agentd.h - the privileged half of an agent, inside. One epoll, no network, and one thread but for
 * the one that asks the devices' driver.
 *
 *   agentd_main.c     start, the loop
 *   agentd_options.c  the command line
 *   agentd_desired.c  desired sets: collect, verify, remember, make ready
 *   agentd_attempt.c  attempts: find them again, start, stop, watch, forget
 *   agentd_spare.c    a shim made ahead
 *   agentd_config.c   from a grant to the files of its attempt: the last step before root acts
 *   agentd_peer.c     the network half: messages in, messages out
 *   agentd_contact.c  the lease of fenced work
 *   agentd_import.c   images and uploads into the store, and out of it when unused
 *   agentd_devices.c  accelerators: what is there, and whether it still works
 *   agentd_stream.c   commands in running work
 */
#ifndef AGENT_AGENTD_H
#define AGENT_AGENTD_H

#include <string.h>

#include "agent/attempt.h"
#include "agent/gpu/edits.h"
#include "agent/gpu/watch.h"
#include "agent/identity.h"
#include "agent/image/store.h"
#include "agent/ipc.h"
#include "agent/node_facts.h"
#include "agent/reconcile.h"
#include "agent/runtime/program.h"
#include "base/map.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/process.h"

struct agentd;

/* One descriptor in the epoll set. `self` is whose it is. Lives inside of its owner. */
struct watch {
    int fd; /* owned; -1: none */
    void (*ready)(struct agentd *agentd, void *self, uint32_t events);
    void *self;
};

enum { CDI_LIST_MAX = 16 };

struct agentd_options {
    const char *state_dir; /* on disk */
    const char *run_dir;   /* in memory, best: what need not outlive the machine */
    const char *identity;
    const char *socket;
    unsigned peer_uid;
    const char *crun;
    const char *shim;
    const char *unpacker;     /* NULL: where the image store looks for it */
    const char *rootfs;       /* NULL: images only; for tests */
    const char *gpu;          /* as gpu_open takes it */
    const char *cgroup;       /* parent of all attempts, starts with '/' */
    uint64_t log_quota_bytes; /* of one attempt */
    uint32_t starting_max;
    const char *cdi_dirs[CDI_LIST_MAX]; /* where CDI specs lie */
    size_t cdi_dir_count;
    const char *cdi_hooks[CDI_LIST_MAX]; /* programs that these may start as root */
    size_t cdi_hook_count;
    int64_t image_store_bytes; /* images that are not in use go beyond it */
    int64_t image_age_s;       /* or when unused for so long */
    int64_t image_timeout_s;   /* an import that takes longer is ended */
    bool is_fake;
};

/* An attempt whose directory exists. */
struct attempt {
    struct grant grant;
    char name[ATTEMPT_NAME_MAX];
    enum rec_state state;
    struct attempt_status status;
    struct attempt_said said;
    uint32_t stop_grace_s;
    struct watch shim;    /* pidfd of the shim, or of what cleans up after it */
    bool is_lost;         /* the shim was killed: cleaning up, then it counts as ended */
    bool is_cleaning;     /* `shim` is what cleans up */
    bool was_cleaned;     /* with success */
    bool is_unclean;      /* cleaning up did not succeed: again in a second */
    bool is_unsigned;     /* held by a shim whose pid is not known yet: look again */
    bool is_unread;       /* its shim has ended, and what that said cannot be read now */
    bool is_changed;      /* since it was last reported */
    bool has_log;         /* the spool exists: there is output */
    bool is_log_offered;  /* on this connection, with its descriptor */
    bool is_log_complete; /* told, too */
    bool is_log_stored;
    bool is_end_told;    /* to a network half, at least once */
    bool is_begun;       /* its shim has signed for it: something may run */
    struct mono shim_at; /* since when `shim` works, and when it was asked to stop; monotonic */
    struct mono stop_at;
    struct mono stopping_at; /* since when it is being stopped, for whatever reason; monotonic */
    struct mono ended_at;    /* boot clock */
};

/* What is beside each grant of the newest set. */
struct wanted {
    struct rec_ready ready;
    char why[IPC_TEXT_MAX];
    enum rec_kind
        noted; /* REC_WAIT, REC_REFUSE, REC_NEVER_STARTED; REC_KIND_COUNT: an attempt is there */
    const char *reason;
    bool is_changed;
    bool is_image_asked; /* on this connection */
    bool is_upload_asked;
    unsigned tries;                   /* starts that came to nothing */
    struct grant_digest upload_image; /* what the upload became in the image store */
};

struct payload_entry {
    struct grant_digest digest;
    size_t size;
    char bytes[];
};

/* A message that found no room; `fds` are owned. */
struct outgoing {
    enum ipc_tag tag;
    void *message; /* owned */
    struct fd_pass fds;
};

struct key {
    struct id allocation;
    struct id workload;
    uint32_t attempt;
};

/* A number that the controller is asked to sign; see agentd_contact.c. */
struct challenge {
    struct id number;    /* none: answered, or never made */
    struct mono made_at; /* boot clock */
    bool is_answered;
    struct grant_stamp newest; /* of the answer */
};

enum { CHALLENGES_KEPT = 16 };

struct contacts {
    struct challenge ring[CHALLENGES_KEPT];
    size_t next;
    struct mono challenge_at; /* boot clock: not before */
    struct mono look_at;      /* for fenced work, unless the set is a new one */
    struct grant_stamp looked;
};

/* A shim that waits for an attempt; see agentd_spare.c. */
struct spare {
    struct process process; /* PROCESS_NONE: there is none */
    int socket;             /* owned; takes its order */
    struct stat program;    /* what it was made of */
};

struct stream;
struct import;

/* A device that has fallen ill stays so until agentd starts again: only a reset heals it. */
struct device_health {
    bool is_lost; /* does not answer now */
    bool is_ill;
    uint64_t xid; /* what made it ill, the first of them */
};

struct agentd {
    struct agentd_options options;
    struct identity identity;
    struct grant_crypto crypto; /* borrows identity */
    char boot_id[CLOCK_BOOT_ID_MAX];
    char alloc_dir[ATTEMPT_PATH_MAX];  /* directories of attempts, on disk */
    char bundle_dir[ATTEMPT_PATH_MAX]; /* and in memory */
    char lease_path[ATTEMPT_PATH_MAX];
    char stamp_path[ATTEMPT_PATH_MAX];
    char notify_path[ATTEMPT_PATH_MAX];
    char runtime_root[ATTEMPT_PATH_MAX];
    char store_path[ATTEMPT_PATH_MAX];
    char upload_dir[ATTEMPT_PATH_MAX];
    char volume_dir[ATTEMPT_PATH_MAX];
    char tree_program[ATTEMPT_PATH_MAX]; /* berth-tree, beside the shim */
    char init_program[ATTEMPT_PATH_MAX]; /* and the others */
    char images_program[ATTEMPT_PATH_MAX];
    char cdi_program[ATTEMPT_PATH_MAX];
    enum cgroup_mode cgroup_mode;
    char crun_version[32];
    char problems[1024]; /* what keeps this node from running work, as it was at the start */
    bool is_hopeless;    /* neither work nor agentd could run here */
    unsigned nofile_max;
    struct sealed_program runtime; /* what shims run crun from */
    struct spare spare;
    struct gpu_watch *driver; /* owned; NULL: there is no device to ask for */
    bool is_driver_silent;    /* it was said so */
    struct gpu_inventory inventory;
    struct arena edits_arena;
    struct edit_set edits;                        /* what CDI specs add for each device */
    struct device_health health[GPU_DEVICES_MAX]; /* one a device of the inventory */
    struct image_store *images;                   /* owned */

    int state_fd; /* locked: one agentd at a time works on a state */
    int epoll_fd;
    struct watch listener;
    struct watch peer;
    struct watch hints;
    struct watch signals;
    bool is_ending;
    bool is_dropping; /* the peer: see peer_drop */
    bool is_deaf;     /* no descriptor was left for a connection: not asked for a second */
    bool is_dirty;    /* reconcile before sleeping again */

    struct grant_stamp stamp; /* of the newest accepted set, on disk */
    int stamp_fd;             /* of its file, to overwrite it; -1: not yet */
    struct grant_digest stamp_digest;
    bool has_set; /* its grants are known, not only its stamp */
    struct grant_set set;
    struct wanted *wanted;                /* owned; one a grant */
    VEC(struct payload_entry *) payloads; /* owned */
    struct id_map payload_of;             /* digest_key -> entry of payloads */
    struct buf incoming;                  /* a desired set on its way in */
    uint32_t incoming_set_bytes;
    uint32_t incoming_all_bytes;

    VEC(struct attempt *) attempts; /* owned */
    struct id_map attempt_of;       /* attempt_key -> entry of attempts */
    VEC(struct stream *) streams;   /* owned */
    VEC(struct import *) imports;   /* owned */
    struct id run;                  /* that tickets have to name */
    VEC(struct id) used_tickets;    /* of this run */
    VEC(struct key) gone;
    VEC(struct outgoing) outgoing;
    struct mono lease; /* boot clock; 0: none in this boot */
    struct contacts contacts;
    struct mono gc_at;      /* when unused images are looked for next */
    struct mono gc_soon_at; /* not before this */
    bool is_store_over;     /* the last collection left more than is allowed */
    struct mono full_at;    /* when the next full observed set is due */
    struct mono blocked_at; /* since when the peer takes nothing; 0: it takes */
};

/* Keys of maps: equal things have equal keys, and what is found is compared again. */
static inline struct id attempt_key(struct id allocation, uint32_t attempt)
{
    return (struct id){ allocation.hi, allocation.lo ^ ((uint64_t)attempt << 32 | attempt) };
}

static inline struct id digest_key(const struct grant_digest *digest)
{
    struct id key;
    memcpy(&key, digest->bytes, sizeof(key));
    return key;
}

/* agentd_options.c */
extern const struct agentd_options agentd_options_default;
/* -1: go on; else the exit status. */
int agentd_options_parse(int argc, char **argv, struct agentd_options *o, struct log_options *log);

/* agentd_main.c */
MUST_CHECK enum err agentd_watch(struct agentd *agentd, struct watch *watch, int fd,
                                 struct error *e);
/* The same for a child of ours, by its pidfd; where it cannot be watched it does not live. */
MUST_CHECK enum err agentd_watch_child(struct agentd *agentd, struct watch *watch, int pidfd,
                                       struct error *e);
void agentd_unwatch(struct agentd *agentd, struct watch *watch); /* closes; fd -1 is a no-op */

/* agentd_desired.c */
MUST_CHECK enum err desired_load_stamp(struct agentd *agentd, struct error *e);
MUST_CHECK enum err desired_begin(struct agentd *agentd, const struct ipc_desired_begin *begin,
                                  struct error *e);
MUST_CHECK enum err desired_chunk(struct agentd *agentd, const struct ipc_desired_chunk *chunk,
                                  struct error *e);
/* The answer goes out by itself; an error is one of the connection. */
void desired_end(struct agentd *agentd);
const struct payload_entry *desired_payload(const struct agentd *agentd,
                                            const struct grant_digest *digest);
/* Keeps a payload that a grant may need again. */
void desired_keep_payload(struct agentd *agentd, struct str bytes);
/* What is beside the grant of that attempt; NULL: the newest set has none. */
struct wanted *desired_wanted(const struct agentd *agentd, struct id allocation, uint32_t attempt);
/* Why it is to stop, as the newest set says it: a number of model/cause.h; 0: it does not. */
unsigned desired_stop_cause(const struct agentd *agentd, const struct grant *grant);
/* It will never start: the controller hears why and decides what is next. */
void desired_refuse(struct agentd *agentd, struct wanted *wanted, const char *why);
/* Something is short: it is tried again, later each time. The controller hears what it
 * waits for. */
void desired_put_off(struct agentd *agentd, struct wanted *wanted, const char *why);
/* Looks again at what each grant without an attempt still lacks. */
void desired_refresh(struct agentd *agentd);
/* Images may have gone: what each grant needs is looked for, and asked for, again. */
void desired_forget_images(struct agentd *agentd);
void desired_done(struct agentd *agentd);

/* agentd_attempt.c */
MUST_CHECK enum err attempts_scan(struct agentd *agentd, struct error *e);
void attempts_reconcile(struct agentd *agentd);
void attempts_hint(struct agentd *agentd); /* reads the datagrams of shims */
void attempts_look(struct agentd *agentd); /* once a second: what no hint has told */
struct attempt *attempts_find(const struct agentd *agentd, struct id allocation, uint32_t attempt);
/* Its directories; False: it is gone. */
bool attempt_open(const struct agentd *agentd, const char *name, struct attempt_dirs *out);
void attempts_log_ack(struct agentd *agentd, const struct ipc_log_ack *ack);
void attempts_log_again(struct agentd *agentd, const struct ipc_log_again *again);
void attempts_done(struct agentd *agentd);

/* agentd_config.c */
/* Paths of an attempt's two directories. */
struct attempt_paths {
    char disk[ATTEMPT_PATH_MAX + ATTEMPT_NAME_MAX];
    char run[ATTEMPT_PATH_MAX + ATTEMPT_NAME_MAX];
};
void config_paths(const struct agentd *agentd, const char *name, struct attempt_paths *out);
/* Makes the directories of an attempt complete, ready for a shim. Nothing is left of a failure. */
MUST_CHECK enum err config_prepare(struct agentd *agentd, const struct grant *grant,
                                   const struct wanted *wanted, struct attempt_dirs *dirs,
                                   struct error *e);
/* Writes NAME into the attempt's bundle: a command with the workload's environment and limits. */
MUST_CHECK enum err config_command(struct agentd *agentd, const struct attempt *attempt,
                                   const struct grant_payload *command, bool is_tty,
                                   const char *name, struct error *e);
/* Removes what agentd wrote and what is empty. False: there is more, a shim must clean up. */
bool config_remove(const struct agentd *agentd, const char *name);

/* agentd_spare.c */
void spare_prepare(struct agentd *agentd); /* unless there is one, or something starts just now */
/* Hands the attempt to the one that waits: `pidfd` is yours then. False: there is none. */
bool spare_take(struct agentd *agentd, const struct attempt_paths *paths, int lock_fd, int *pidfd);
void spare_done(struct agentd *agentd);

/* agentd_peer.c */
MUST_CHECK enum err peer_listen(struct agentd *agentd, struct error *e);
/* Sends or queues; takes over the descriptors of `fds` (may be NULL). Dropped without a peer. */
void peer_send(struct agentd *agentd, enum ipc_tag tag, void *message, struct fd_pass *fds);
void peer_flush(struct agentd *agentd); /* everything that has changed, as far as there is room */
/* Marks the connection as over: nothing is sent any more. peer_reap closes it, outside of
 * handlers. */
void peer_drop(struct agentd *agentd, const char *why);
void peer_hello(struct agentd *agentd); /* who we are, again */
void peer_reap(struct agentd *agentd);
void peer_look(struct agentd *agentd); /* once a second: whether it may connect again */

/* agentd_contact.c */
bool contact_next(struct agentd *agentd, struct ipc_challenge *out); /* false: none is due */
void contact_take(struct agentd *agentd, const struct ipc_contact *message);
void contact_look(struct agentd *agentd); /* after a new set */

/* agentd_import.c */
void import_start(struct agentd *agentd, const struct ipc_image_ready *ready);
/* The image that holds an upload. False: it is not here. */
bool import_find_upload(const struct agentd *agentd, const struct grant_digest *upload,
                        struct grant_digest *image);
/* Starts a collection when one is due and nothing else works on the store. */
void images_collect(struct agentd *agentd);
void imports_look(struct agentd *agentd); /* once a second: those that take too long */
MUST_CHECK enum err images_keep_leases(struct agentd *agentd, struct error *e); /* once, at start */
void imports_done(struct agentd *agentd);

/* agentd_devices.c */
MUST_CHECK enum err devices_open(struct agentd *agentd, struct error *e);
void devices_look(struct agentd *agentd); /* once a second: what has happened to them */
void devices_send(struct agentd *agentd); /* the inventory, to the network half */
void devices_done(struct agentd *agentd);

/* agentd_stream.c */
void stream_exec_open(struct agentd *agentd, const struct ipc_exec_open *open);
void stream_tree_open(struct agentd *agentd, const struct ipc_tree_open *open);
void stream_resize(struct agentd *agentd, const struct ipc_exec_resize *resize);
void stream_close(struct agentd *agentd, uint64_t id);
void streams_look(struct agentd *agentd);       /* once a second: helpers that do not answer */
void streams_disconnect(struct agentd *agentd); /* ends them all, tells nobody */
void streams_done(struct agentd *agentd);

#endif
