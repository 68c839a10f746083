/*
 * mix.h - what is asked for: kinds of requests, and how often they came. A fold over
 * submissions, for placement, which judges a place by what future work could still use.
 *
 * What placement goes by is not the running count but what was dealt from it: a copy, made after
 * 50, 200, 800 and 3,200 members and then after every further 3,200, when older arrivals come to
 * count half. So what is known follows a mix that changes, and changes itself seldom.
 */
#ifndef MODEL_MIX_H
#define MODEL_MIX_H

#include "base/mem.h"
#include "model/record.h"

enum {
    MIX_KINDS_MAX = 256, /* then those that came least make room */
    MIX_FIRST_DEAL = 50,
    MIX_DEAL_GROWTH = 4,
    MIX_DEAL_EVERY = 3200,
};

struct mix_kind {
    struct request request;
    uint64_t times;
};

struct mix_list {
    struct mix_kind *items;
    size_t count;
};

/* All-zero is a mix of which nothing is known. */
struct request_mix {
    VEC(struct mix_kind) seen;  /* in the order in which they first came */
    VEC(struct mix_kind) dealt; /* of seen, when it was last dealt */
    uint64_t arrivals;
    uint64_t dealt_at; /* arrivals, when it was last dealt; 0: never */
};

void mix_done(struct request_mix *mix);
/* So many members that ask for that arrived. */
void mix_see(struct request_mix *mix, const struct request *request, uint64_t members);

#endif
