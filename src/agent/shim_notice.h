/*
 * shim_notice.h - what a workload is told of its end, and what it may say (init.h: NOTICE_DIR).
 *
 * The file says why it is to end and by when; it is there before the signal, and is replaced as a
 * whole when that changes. The workload's words come as records from berth-init, so many a second
 * and no more; they are answered here and kept in the attempt's "said" file, from where agentd
 * tells the controller. Nothing is read or written where the tenant could have put something: the
 * directory is the shim's own, in its own mount namespace, and read-only inside.
 */
#ifndef AGENT_SHIM_NOTICE_H
#define AGENT_SHIM_NOTICE_H

#include "agent/init.h"
#include "agent/shim.h"

enum {
    SHIM_GRACE_MAX_S = 900,   /* of a workload that asks for more, all together */
    SHIM_EXTEND_LEAST_S = 10, /* less is not worth a message */
    SHIM_WORDS_AT_ONCE = 8,   /* in a second */
};

struct shim_notice {
    const struct shim_context *context; /* borrowed */
    int dir_fd;                         /* -1: there is none; it is told nothing */
    int listen_fd;                      /* until berth-init has it */
    struct attempt_said said;
    struct mono said_at; /* when that was written last */
    struct mono words_until;
    unsigned words; /* since a second before */
    /* Its end; boot clock. */
    enum ipc_end end; /* IPC_END_NONE: nothing stops it */
    char cause[32];
    uint32_t grace_s;
    struct mono told_at;
    struct mono kill_at;
};

#define SHIM_NOTICE_NONE ((struct shim_notice){ .dir_fd = -1, .listen_fd = -1 })

/* The directory that is mounted at NOTICE_DIR and the socket in it, in ATTEMPT_OWN_DIR. What it
 * opens is open as long as the shim lives. */
MUST_CHECK enum err shim_notice_open(struct shim_notice *notice, struct error *e);

/* It is to end: `why`, by when. Also when that has become earlier. */
void shim_notice_tell(struct shim_notice *notice, enum ipc_end why, uint32_t grace_s,
                      struct mono now);

/* A word of the workload, and the answer to it. True: notice->kill_at is later now. */
bool shim_notice_hear(struct shim_notice *notice, const struct init_report *word, struct mono now,
                      struct init_report *answer);

/* Whether it is heard now, and if not, from when on. */
bool shim_notice_listens(const struct shim_notice *notice, struct mono now);

#endif
