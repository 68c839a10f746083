/* pack_internal.h - the parts of the placement policies. Only src/sched includes this. */
#ifndef SCHED_PACK_INTERNAL_H
#define SCHED_PACK_INTERNAL_H

#include "base/map.h"
#include "sched/pack.h"

/* A node's state without its identity: equal ones are worth the same. Devices ascending. */
struct pack_state {
    uint32_t model, device_count;
    int64_t cpu_milli;
    uint16_t devices[PACK_DEVICES_MAX];
};

/* Values of states, remembered. */
struct pack_memo {
    char *memory;            /* owned */
    struct memo_slot *slots; /* in it, each on a line of the cache */
    size_t capacity, count;
};
union memo_value {
    double real;
    int64_t whole;
};
/* Where the value of that state is; not known: to be filled now. Valid until the next call. */
union memo_value *memo_find(struct pack_memo *memo, const struct pack_state *state, bool *is_known);
void memo_clear(struct pack_memo *memo);
void memo_done(struct pack_memo *memo);

void state_of(const struct pack_node *node, struct pack_state *out);
/* Without `milli` (or all that it has) of the device that has `left`, ascending again. */
void state_take(struct pack_state *state, int64_t cpu_milli, int64_t left, int64_t milli);
/* Without `milli` of the first `count` devices, from the fullest up, that have as much. */
void state_take_first(struct pack_state *state, int64_t cpu_milli, uint32_t count, int64_t milli);

/* Without `milli` (or all that they have) of the `count` devices with most left. */
void state_take_last(struct pack_state *state, int64_t cpu_milli, uint32_t count, int64_t milli);

/* The typical requests as one model of device sees them. */
struct frag_mix {
    struct pack_weight *items; /* owned */
    size_t count;
    struct pack_memo memo;
};

struct pack {
    enum placement policy;
    struct pack_filter filter; /* without a function: the picture decides */
    VEC(struct pack_node) nodes;
    VEC(struct pack_standing) standings;
    VEC(struct pack_worth) worths;
    bool is_measured;                    /* the next two are right */
    int64_t cpu_most, device_milli_most; /* of any empty node */
    struct frag_mix mix;                 /* PLACE_FGD */
    struct adaptive *adaptive;           /* owned; PLACE_ADAPTIVE */
    size_t width;              /* of a tournament: the power of two that holds all nodes */
    struct str_map by_shape;   /* -> struct tournament */
    struct tournament *newest; /* owned, all of them: the one asked for last */
    struct tournament *oldest;
    size_t tournament_count;
    VEC(uint32_t) log; /* nodes in the order of their changes */
};

enum { SCORE_MAX = 100 };

/* What a node is worth as it is, until it changes. */
struct pack_worth {
    union memo_value value;
    bool is_known;
};

/* One node that a shape fits: which of its devices it may use, a bit each. */
struct pack_spot {
    struct pack_worth *before;
    const struct pack_node *node;
    const struct pack_shape *shape;
    uint32_t usable;
};

/* PACK_NONE: it does not fit. */
int32_t pack_score(struct pack *pack, size_t at, const struct pack_shape *shape);
void pack_pick(struct pack *pack, size_t at, const struct pack_shape *shape,
               uint32_t devices[PACK_DEVICES_MAX]);
/* What is left of the devices that it may use and that have as much, ascending; how many. */
size_t spot_lefts(const struct pack_spot *spot, uint16_t lefts[PACK_DEVICES_MAX]);
/* The first of them that has so much left. */
int64_t spot_device(const struct pack_spot *spot, int64_t left);
static inline bool spot_is_part(const struct pack_spot *spot)
{
    return spot->shape->count == 1 && spot->shape->milli < 1000;
}

/* What is assumed until it is known. */
extern const struct pack_kind pack_prior[3];

/* pack_adaptive.c; `device`: of a fraction, by its index on the node */
struct adaptive *adaptive_new(const struct pack_node *nodes, size_t node_count);
void adaptive_free(struct adaptive *adaptive); /* NULL is a no-op */
/* A request arrived; true: all scores have changed. */
bool adaptive_see(struct adaptive *adaptive, const struct pack_shape *shape);
/* That was asked for, and nothing else. */
void adaptive_learn(struct adaptive *adaptive, const struct pack_kind *kinds, size_t count);
int32_t adaptive_score(struct adaptive *adaptive, const struct pack_spot *spot, int64_t *device);

/* pack_frag.c */
int32_t frag_score(struct pack *pack, const struct pack_spot *spot, int64_t *device);

#endif
