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
#include "model/kinds.h"

enum { PACK_DEVICES_MAX = 16, PACK_MODELS_MAX = 64, PACK_TAGS = 7, PACK_NONE = -1 };

/* What is free on a node, in thousandths of cores and of devices. */
struct pack_node {
    uint32_t model; /* of its devices: below PACK_MODELS_MAX */
    uint32_t device_count;
    int64_t cpu_milli, memory_mib;
    int64_t cpu_all; /* of the empty node */
    int64_t devices[PACK_DEVICES_MAX];
};

/* One member: `milli` of each of `count` devices. */
struct pack_shape {
    int64_t cpu_milli, memory_mib;
    uint32_t count;
    uint32_t milli;
    uint64_t models;         /* a bit for each that it may use; 0: any */
    int64_t tags[PACK_TAGS]; /* what only the filter looks at; shapes that differ in it differ */
};

/* A kind of request, and how often it came. */
struct pack_kind {
    struct pack_shape shape;
    uint64_t times;
};

/*
 * Says exactly whether one member fits a node, where the picture of it only estimates, and which
 * of the devices in the picture it may use (one bit each).
 */
struct pack_filter {
    bool (*accepts)(const void *context, size_t node, const struct pack_shape *shape,
                    uint32_t *usable);
    const void *context;
};

/* How often a shape is asked for: what fragmentation is judged by. */
struct pack_weight {
    struct pack_shape shape;
    double weight; /* of all, 1.0 in total */
};

struct pack; /* opaque */

/* Nodes in the order that decides ties; copied. `mix` is for PLACE_FGD; copied too. What fits
 * is told by the picture alone. */
struct pack *pack_new(enum placement policy, const struct pack_node *nodes, size_t node_count,
                      const struct pack_weight *mix, size_t mix_count);
/* Without nodes; pack_set() adds them. What they are asked for is what pack_learn() says. */
struct pack *pack_open(enum placement policy, const struct pack_filter *filter);
void pack_free(struct pack *pack); /* NULL is a no-op */
DEFINE_CLEANUP(pack, struct pack *, pack_free)

struct pack_place {
    int64_t node; /* PACK_NONE: it fits nowhere */
    uint32_t devices[PACK_DEVICES_MAX];
};

/* The node at that number is like that now, or is new (numbers beyond the last are empty nodes that
 * the filter must refuse). Of equals the one of a higher level comes first, then the one of lower
 * rank; first_fit and spread know no levels. */
struct pack_standing {
    uint64_t rank;
    uint8_t level; /* at most PACK_LEVEL_MAX */
};
enum { PACK_LEVEL_MAX = 15 };
void pack_set(struct pack *pack, size_t at, const struct pack_node *node,
              struct pack_standing standing);
/* What is asked for, instead of all that was known; nothing with devices: a mix of its own. */
void pack_learn(struct pack *pack, const struct pack_kind *kinds, size_t count);
/* A request came, whether it will find a place or not: PLACE_ADAPTIVE learns what is asked for. */
void pack_see(struct pack *pack, const struct pack_shape *shape);
/* The best place for one member; takes nothing. */
struct pack_place pack_find(struct pack *pack, const struct pack_shape *shape);
/* Takes it, or gives it back (sign -1). */
void pack_take(struct pack *pack, const struct pack_shape *shape, const struct pack_place *place,
               int sign);
const struct pack_node *pack_node(const struct pack *pack, int64_t node);
/* Compares one node with another for a shape, as pack_find() does: its score, PACK_NONE: it does
 * not fit there. The device for a part of one; PACK_NONE: any. */
int32_t pack_score_at(struct pack *pack, size_t at, const struct pack_shape *shape);
int64_t pack_device_at(struct pack *pack, size_t at, const struct pack_shape *shape);
/* The shapes asked for lately, from the latest on; false: there are fewer. */
bool pack_shape_asked(const struct pack *pack, size_t i, struct pack_shape *out);
/* Expected thousandths of the node's devices that a request of the mix could not use
 * (PLACE_FGD). */
double pack_fragmentation(struct pack *pack, const struct pack_node *node);

#endif
