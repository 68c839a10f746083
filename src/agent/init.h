/*
 * init.h - what berth-init, the first process of every container, tells the shim on descriptor 3.
 *
 * Its own exit status cannot carry it: the first process of a pid namespace cannot end by a signal
 * of its own, so "killed by 11" and "exit 139" would look the same. One record a fact: how the
 * start went, how the workload ended, and between them what it says on NOTICE_SOCKET, each answered
 * by an INIT_ANSWER before the next (init_notice.h). It is a socket that keeps records apart and
 * tells the shim who wrote. A workload that gets hold of it can only lie about itself.
 */
#ifndef AGENT_INIT_H
#define AGENT_INIT_H

#include <stdint.h>

enum { INIT_REPORT_FD = 3, INIT_NOTICE_FD = 4, INIT_TEXT_MAX = 120 };

/* Where the container has it: in /dev, which every container has whatever its image is. */
#define INIT_PATH "/dev/berth-init"

/* In a directory that it cannot write to: why and by when it is to end, and the socket, on which
 * berth-init listens with descriptor 4. The shim has made all of it. */
#define NOTICE_DIR         "/run/berth"
#define NOTICE_FILE_NAME   "notice"
#define NOTICE_SOCKET_NAME "notice.sock"
#define NOTICE_SOCKET      NOTICE_DIR "/" NOTICE_SOCKET_NAME

enum init_kind {
    INIT_STARTED = 1, /* the workload's program runs */
    INIT_FAILED,      /* it cannot be run: `value` is the errno, `text` the program */
    INIT_EXITED,      /* `value` is the exit status */
    INIT_KILLED,      /* `value` is the signal */
    /* the workload's words, and what the shim answers: one line in `text` */
    INIT_CHECKPOINTED,
    INIT_EXTEND, /* `value` is for how many seconds; 0: it does not say */
    INIT_ANSWER
};

struct init_report {
    uint32_t kind; /* enum init_kind */
    int32_t value;
    char text[INIT_TEXT_MAX];
};

#endif
