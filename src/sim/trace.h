/*
 * trace.h - cluster traces in the format of the public `openb` trace (Alibaba, 2023): nodes and
 * pods as CSV with a header line; columns are found by their names.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "base/str.h"
#include "sched/pack.h"

struct trace_node {
    struct str name, model;
    struct pack_node node; /* empty */
};

struct trace_pod {
    struct str name, models; /* "A|B"; "": any */
    struct pack_shape shape;
};

/* Both by name: what orders refer to. */
struct trace {
    struct trace_node *nodes;
    size_t node_count;
    struct trace_pod *pods;
    size_t pod_count;
    int64_t capacity_milli; /* of all devices */
    struct str model_names[PACK_MODELS_MAX];
    size_t model_count;
};

/* Out of two texts that stay as long as the trace. ERR_INVALID with the line. */
enum err trace_read(struct str nodes, struct str pods, struct arena *arena, struct trace *out,
                    struct error *e) MUST_CHECK;

/* The shapes that make up 95 % of the pods, most frequent first, with their weights. */
struct pack_weight *trace_mix(const struct trace *trace, struct arena *arena, size_t *count);

#endif
