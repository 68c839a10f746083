/*
 * init_notice.h - the socket on which a workload says "checkpointed" and "extend" (NOTICE_SOCKET).
 *
 * Its other end is berth-init, which has the workload's own rights and limits: whoever sends it
 * nonsense, floods it or never ends a line spends its own time. What reaches the shim is a record
 * of fixed size, one at a time: the next one goes when it has answered. See init.h.
 */
#ifndef AGENT_INIT_NOTICE_H
#define AGENT_INIT_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NOTICE_CONNECTIONS = 4, NOTICE_LINE_MAX = 64 };

struct notice_connection {
    int fd; /* -1: free */
    uint64_t used_at;
    size_t size;
    char line[NOTICE_LINE_MAX];
};

struct notice {
    struct notice_connection connections[NOTICE_CONNECTIONS];
    struct notice_connection *asker; /* who gets the next answer; NULL: it is gone, or nobody */
    bool is_asking;                  /* the shim has not answered yet */
    bool is_deaf;                    /* there is no socket, or no shim */
    uint64_t clock;                  /* counts what happens, to tell which is idle longest */
};

/* As the kernel takes it. */
struct notice_poll {
    int fd;
    int16_t events;
    int16_t seen;
};
enum { NOTICE_POLLS = NOTICE_CONNECTIONS + 2 };

void notice_begin(struct notice *notice);
/* What to wait for; all of `polls` is filled. */
void notice_wait_for(const struct notice *notice, struct notice_poll polls[NOTICE_POLLS]);
/* Takes what has come. Never waits. */
void notice_serve(struct notice *notice, const struct notice_poll polls[NOTICE_POLLS]);

#endif
