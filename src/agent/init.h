/*
 * init.h - what berth-init, the first process of every container, tells the shim on descriptor 3.
 *
 * Its own exit status cannot carry it: the first process of a pid namespace cannot end by a signal
 * of its own, so "killed by 11" and "exit 139" would look the same. One record a fact, at most two:
 * how the start went, and how the workload ended. It is a socket that keeps records apart and tells
 * the shim who wrote. A workload that gets hold of it can only lie about itself.
 */
#ifndef AGENT_INIT_H
#define AGENT_INIT_H

#include <stdint.h>

enum { INIT_REPORT_FD = 3, INIT_TEXT_MAX = 120 };

/* Where the container has it: in /dev, which every container has whatever its image is. */
#define INIT_PATH "/dev/berth-init"

enum init_kind {
    INIT_STARTED = 1, /* the workload's program runs */
    INIT_FAILED,      /* it cannot be run: `value` is the errno, `text` the program */
    INIT_EXITED,      /* `value` is the exit status */
    INIT_KILLED       /* `value` is the signal */
};

struct init_report {
    uint32_t kind; /* enum init_kind */
    int32_t value;
    char text[INIT_TEXT_MAX];
};

#endif
