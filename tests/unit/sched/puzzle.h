/*
 * puzzle.h - is there any way to place all members? Tries all of them, from the facts alone:
 * devices and parts of devices, memory on them, whose they are, cores, memory, racks and blocks.
 */
#ifndef TESTS_UNIT_SCHED_PUZZLE_H
#define TESTS_UNIT_SCHED_PUZZLE_H

#include "model/mig.h"
#include "unit/sched/lab.h"

enum { PUZZLE_NODES_MAX = 6, PUZZLE_DEVICES_MAX = 6 };

struct puzzle_gpu {
    int64_t milli, mib, usable;
    const struct project *tenant; /* of the sharers */
    bool is_whole;                /* taken as a whole, or not to be used */
    uint8_t slices;               /* of partitions */
};

struct puzzle_box {
    const struct node *node;
    struct puzzle_gpu gpus[PUZZLE_DEVICES_MAX];
    size_t gpu_count;
    int64_t cpu, memory;
    bool is_closed;
};

struct puzzle {
    struct puzzle_box boxes[PUZZLE_NODES_MAX];
    size_t box_count;
    unsigned allowed; /* boxes, a bit each */
    const struct request *request;
    int64_t class_number;
    const struct mig_table *table; /* of that class; NULL: parts are as they come */
    const struct project *tenant;
};

/* What is free for the members of that workload in that class, but for the allocations that
 * `is_gone`, if any, says are not there. */
typedef bool puzzle_gone(void *arg, const struct allocation *a);
void puzzle_read(struct puzzle *puzzle, const struct lab *lab, const struct workload *w,
                 int64_t class_number, puzzle_gone *is_gone, void *arg);
/* All members within one node, rack or block, or anywhere. */
bool puzzle_is_solvable(const struct puzzle *puzzle, size_t members, enum topology topology);

/* Are all allocations of a workload that close together? */
bool puzzle_is_within(const struct workload *w, enum topology topology);

#endif
