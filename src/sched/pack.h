/*
 * pack.h - which node a member goes to: the placement policies, over a compact picture of
 * the nodes.
 *
 * For every shape of request the scores of all nodes are kept in a tournament tree; a change of
 * a node is noted once and applied to a shape when that is next asked for. So a decision costs
 * what has changed since, not the size of the cluster. Scores are higher-is-better; ties go to
 * the node that comes first.
 *
 * Policies: first_fit; best_fit (least left over, cores and devices alike); pack (devices in use
 * before wholly free ones); spread (most left over); fgd (fragmentation gradient descent: Weng et
 * al., "Beware of Fragmentation", USENIX ATC 2023); adaptive (pack_adaptive.c). Scores of best_fit,
 * spread and fgd use floating point; amounts never do.
 */
#ifndef SCHED_PACK_H
#define SCHED_PACK_H

#include "base/base.h"
#include "base/mem.h"

enum { PACK_DEVICES_MAX = 16, PACK_MODELS_MAX = 64, PACK_NONE = -1 };

enum pack_policy {
    PACK_FIRST_FIT,
    PACK_BEST_FIT,
    PACK_PACK,
    PACK_SPREAD,
    PACK_FGD,
    PACK_ADAPTIVE,
    PACK_POLICY_COUNT
};

/* What is free on a node, in thousandths of cores and of devices. */
struct pack_node {
    uint32_t model; /* of its devices: below PACK_MODELS_MAX */
    uint32_t device_count;
    int64_t cpu_milli, memory_mib;
    int64_t cpu_all; /* of the empty node */
    int64_t devices[PACK_DEVICES_MAX];
};

/* One member: `milli` of each of `count` devices; below 1000 only of one. */
struct pack_shape {
    int64_t cpu_milli, memory_mib;
    uint32_t count;
    uint32_t milli;
    uint64_t models; /* a bit for each that it may use; 0: any */
};

/* How often a shape is asked for: what fragmentation is judged by. */
struct pack_weight {
    struct pack_shape shape;
    double weight; /* of all, 1.0 in total */
};

struct pack; /* opaque */

/* Nodes in the order that decides ties; copied. `mix` is for PACK_FGD; copied too. */
struct pack *pack_new(enum pack_policy policy, const struct pack_node *nodes, size_t node_count,
                      const struct pack_weight *mix, size_t mix_count);
void pack_free(struct pack *pack); /* NULL is a no-op */
DEFINE_CLEANUP(pack, struct pack *, pack_free)

struct pack_place {
    int64_t node; /* PACK_NONE: it fits nowhere */
    uint32_t devices[PACK_DEVICES_MAX];
};

/* A request came, whether it will find a place or not: PACK_ADAPTIVE learns what is asked for. */
void pack_see(struct pack *pack, const struct pack_shape *shape);
/* The best place for one member; takes nothing. */
struct pack_place pack_find(struct pack *pack, const struct pack_shape *shape);
/* Takes it, or gives it back (sign -1). */
void pack_take(struct pack *pack, const struct pack_shape *shape, const struct pack_place *place,
               int sign);
const struct pack_node *pack_node(const struct pack *pack, int64_t node);
/* Expected thousandths of the node's devices that a request of the mix could not use (PACK_FGD). */
double pack_fragmentation(struct pack *pack, const struct pack_node *node);

#endif
