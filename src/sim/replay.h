/*
 * replay.h - a trace against a placement policy: pods arrive one by one, each is tried
 * once, nothing leaves or moves. The procedure of the inflation experiment of FGD (Weng
 * et al., USENIX ATC 2023).
 */
#ifndef SIM_REPLAY_H
#define SIM_REPLAY_H

#include "sim/trace.h"

struct replay_options {
    enum placement policy;
    const size_t *arrivals; /* indices of pods */
    size_t arrival_count;
    const size_t *ranks;    /* of each node by name: its place among ties; NULL: by name */
    struct buf *placements; /* a line an arrival; NULL: none */
};

struct replay_result {
    double arrived_pct, allocation_pct_100, allocation_pct_end, fragmentation_pct;
    double unallocated; /* devices */
    size_t failed;
};

void replay_run(const struct trace *trace, const struct replay_options *options,
                struct arena *arena, struct replay_result *out);

/* All pods, shuffled when there is a seed, then others at random until they ask for that many
 * percent of all devices. */
size_t *replay_arrivals(const struct trace *trace, bool is_shuffled, uint64_t seed,
                        int64_t inflate_pct, struct arena *arena, size_t *count);
/* Two lines of numbers: arrivals, and ranks of nodes. ERR_INVALID. */
enum err replay_order(struct str text, const struct trace *trace, struct arena *arena,
                      struct replay_options *options, struct error *e) MUST_CHECK;

#endif
