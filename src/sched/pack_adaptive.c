/*
 * pack_adaptive.c - the policy `adaptive`: a member goes where it destroys the least that
 * could still be sold.
 *
 * What a node is worth is played out: fixed random streams of requests, drawn from the requests
 * seen so far, come to it alone, each that fits going to the tightest device; the thousandths of
 * devices filled, over all streams, are its worth. To that comes a little for each shape of several
 * devices that still fits, and a price of device models in the measure in which requests insist on
 * them, as a node alone cannot see either. The smallest loss of worth wins, in steps of LOSS_STEP,
 * so that noise decides nothing.
 *
 * All of it is integers; only past arrivals are known. docs/adr/0035-placement-policies.md tells
 * where it comes from, and what was measured.
 */
#include <stdlib.h>
#include <string.h>

#include "base/wide.h"
#include "sched/pack_internal.h"

enum {
    STREAMS = 96,
    STREAM_LENGTH = 60,    /* requests of devices in a stream */
    CORES_PART = 4,        /* of the requests without devices, one in so many takes part */
    LOSS_STEP = 40,        /* thousandths of a device */
    CPU_STEP_MILLI = 4000, /* what a node is worth is told by so many cores: see worth_of() */
    FIRST_REBUILD = 50,    /* arrivals */
    REBUILD_GROWTH = 4,
    FIXED_BITS = 20,      /* of weights and prices */
    SCORE_BASE = 1 << 24, /* scores are higher-is-better and not negative */
};

/* Weight of shapes of several devices: 0.024 of their devices, times the root of their
 * part of demand. */
static const int64_t several_weight = STREAMS * 24 * (INT64_C(1) << FIXED_BITS) / 1000;
/* Price of a model that is asked for by name as much as there is of it: half its devices. */
static const int64_t price_most = STREAMS * (INT64_C(1) << FIXED_BITS) / 2;

struct card {
    int64_t cpu_milli;
    uint32_t count, milli;
    uint64_t models;
};

/*
 * The same in a stream, as one model of device sees it. What follows in the stream is told as well:
 * most plays come to a node that has little left, and need not be looked at one by one.
 */
struct play {
    int32_t cpu_milli;
    uint16_t count, milli;
    int32_t rest_cpu;    /* the least of this and later ones that ask for devices */
    uint16_t rest_milli; /* likewise */
    uint16_t to_part;    /* how many whole devices' worth of plays to the next without any */
};

/* All streams of one model, one after the other. */
struct streams {
    struct play *plays; /* owned */
    size_t ends[STREAMS];
};

/* A kind of request, and how often it came. */
struct seen {
    struct card card;
    int64_t memory_mib;
    uint64_t times;
};

/* A shape of several devices, and what being able to hold it is worth. */
struct several {
    struct card card;
    int64_t weight; /* STREAMS * 2^FIXED_BITS of a thousandth of a device */
};

struct adaptive {
    VEC(struct seen) seen; /* sorted */
    uint64_t arrivals, rebuild_at;
    bool is_due; /* what was seen is new: the streams are made when they are needed */
    uint64_t random;
    struct card *cards; /* owned: of all streams */
    size_t card_count;
    struct streams streams[PACK_MODELS_MAX]; /* of those that were asked for */
    VEC(struct several) several;
    int64_t prices[PACK_MODELS_MAX];
    int64_t capacity[PACK_MODELS_MAX]; /* devices of each model */
    struct pack_memo memo;
};

static uint64_t random_next(struct adaptive *a)
{
    uint64_t z = a->random += 0x9e3779b97f4a7c15u; /* SplitMix64 (Steele, Lea, Flood 2014) */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- what was asked for -------------------------------------------------------------------- */

static int compare_seen(const struct seen *a, const struct seen *b)
{
    const int64_t left[] = { a->card.cpu_milli, a->memory_mib, a->card.count, a->card.milli };
    const int64_t right[] = { b->card.cpu_milli, b->memory_mib, b->card.count, b->card.milli };
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    }
    return (a->card.models > b->card.models) - (a->card.models < b->card.models);
}

static void seen_add(struct adaptive *a, const struct pack_shape *shape, uint64_t times)
{
    const struct seen kind = { { shape->cpu_milli, shape->count, shape->milli, shape->models },
                               shape->memory_mib,
                               times };
    size_t low = 0;
    size_t high = a->seen.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_seen(&a->seen.items[middle], &kind) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < a->seen.count && compare_seen(&a->seen.items[low], &kind) == 0) {
        a->seen.items[low].times += times;
        return;
    }
    vec_reserve(&a->seen, a->seen.count + 1);
    memmove(a->seen.items + low + 1, a->seen.items + low,
            (a->seen.count - low) * sizeof(*a->seen.items));
    a->seen.items[low] = kind;
    a->seen.count++;
}

/* Of requests with devices, or without. */
static uint64_t times_of(const struct adaptive *a, bool has_devices)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < a->seen.count; i++)
        sum += (a->seen.items[i].card.count > 0) == has_devices ? a->seen.items[i].times : 0;
    return sum;
}

/* ---- streams ------------------------------------------------------------------------------- */

/* Systematic sampling: one of each of `count` equal parts of what was seen, in its order. */
static void deal(struct adaptive *a, bool has_devices, size_t count)
{
    uint64_t total = times_of(a, has_devices);
    uint64_t passed = 0;
    size_t kind = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = (((uint64_t)i << 16) + (random_next(a) & 0xffff)) * total / count >> 16;
        for (;;) {
            const struct seen *seen = &a->seen.items[kind];
            bool is_of_it = (seen->card.count > 0) == has_devices;
            if (is_of_it && at < passed + seen->times)
                break;
            passed += is_of_it ? seen->times : 0;
            kind++;
        }
        a->cards[a->card_count++] = a->seen.items[kind].card;
    }
}

static void cards_shuffle(struct adaptive *a)
{
    for (size_t left = a->card_count; left > 1; left--) {
        size_t other = (size_t)(random_next(a) % left);
        struct card card = a->cards[left - 1];
        a->cards[left - 1] = a->cards[other];
        a->cards[other] = card;
    }
}

static void look_ahead(struct play *plays, size_t from, size_t to)
{
    int32_t cpu = INT32_MAX;
    uint16_t milli = UINT16_MAX;
    uint16_t to_part = 0;
    for (size_t left = to; left > from; left--) {
        struct play *play = &plays[left - 1];
        bool is_whole = play->milli >= 1000;
        to_part = is_whole ? (uint16_t)(to_part + 1) : 0;
        if (play->count > 0) {
            cpu = MIN_OF(cpu, play->cpu_milli);
            milli = MIN_OF(milli, play->milli);
        }
        play->rest_cpu = cpu;
        play->rest_milli = milli;
        play->to_part = to_part;
    }
}

/* What that model can play of the streams. */
static void streams_fill(const struct adaptive *a, size_t model, struct streams *out)
{
    size_t count = 0;
    out->plays = mem_new(a->card_count, sizeof(*out->plays));
    for (size_t i = 0; i < STREAMS; i++) {
        size_t to = (i + 1) * a->card_count / STREAMS;
        for (size_t k = i * a->card_count / STREAMS; k < to; k++) {
            const struct card *card = &a->cards[k];
            if (card->models == 0 || (card->models >> model & 1) != 0) {
                struct play *play = &out->plays[count++];
                *play = (struct play){ .cpu_milli = (int32_t)card->cpu_milli,
                                       .count = (uint16_t)card->count,
                                       .milli = (uint16_t)card->milli };
            }
        }
        out->ends[i] = count;
        look_ahead(out->plays, i > 0 ? out->ends[i - 1] : 0, count);
    }
}

static void streams_make(struct adaptive *a)
{
    size_t with = (size_t)STREAMS * STREAM_LENGTH;
    size_t without =
        (size_t)(with * times_of(a, false) / (CORES_PART * MAX_OF(times_of(a, true), 1u)));
    for (size_t m = 0; m < PACK_MODELS_MAX; m++) {
        mem_free(a->streams[m].plays);
        a->streams[m].plays = NULL;
    }
    mem_free(a->cards);
    a->card_count = 0;
    a->cards = mem_new(with + without, sizeof(*a->cards));
    deal(a, true, with);
    deal(a, false, without);
    cards_shuffle(a);
}

static const struct streams *streams_of(struct adaptive *a, size_t model)
{
    if (a->streams[model].plays == NULL)
        streams_fill(a, model, &a->streams[model]);
    return &a->streams[model];
}

/* ---- what a node alone cannot see ---------------------------------------------------------- */

static int64_t demand_of(const struct seen *seen)
{
    return (int64_t)seen->times * seen->card.count * seen->card.milli;
}

static int64_t demand_all(const struct adaptive *a)
{
    int64_t sum = 0;
    for (size_t i = 0; i < a->seen.count; i++)
        sum += demand_of(&a->seen.items[i]);
    return sum;
}

/* The whole part of the root, bit by bit. */
static int64_t root_of(int64_t value)
{
    int64_t root = 0;
    for (int64_t bit = INT64_C(1) << 30; bit > 0; bit /= 2) {
        if ((root + bit) * (root + bit) <= value)
            root += bit;
    }
    return root;
}

/* The root of a part of a whole, in 2^FIXED_BITS. */
static int64_t root_of_part(int64_t part, int64_t whole)
{
    return root_of((int64_t)(((wide)part << (2 * FIXED_BITS)) / whole));
}

static void several_make(struct adaptive *a)
{
    int64_t all = demand_all(a);
    a->several.count = 0;
    for (size_t i = 0; i < a->seen.count; i++) {
        const struct seen *seen = &a->seen.items[i];
        int64_t demand = 0;
        uint64_t times = 0;
        if (seen->card.count < 2)
            continue;
        for (size_t k = 0; k < a->seen.count; k++) {
            bool is_like = a->seen.items[k].card.count == seen->card.count;
            demand += is_like ? demand_of(&a->seen.items[k]) : 0;
            times += is_like ? a->seen.items[k].times : 0;
        }
        int64_t root = root_of_part(demand, all);
        int64_t weight = (several_weight * root >> FIXED_BITS) * (int64_t)seen->times;
        const struct several several = { seen->card, weight / (int64_t)times };
        vec_push(&a->several, several);
    }
}

/* Requests that insist on models, split over these by how much there is of each. */
static void prices_make(struct adaptive *a)
{
    int64_t insisted[PACK_MODELS_MAX] = { 0 }; /* thousandths of devices */
    int64_t all = MAX_OF(demand_all(a), INT64_C(1));
    int64_t capacity = 0;
    for (size_t m = 0; m < PACK_MODELS_MAX; m++)
        capacity += a->capacity[m];
    for (size_t i = 0; i < a->seen.count; i++) {
        const struct seen *seen = &a->seen.items[i];
        int64_t of_them = 0;
        for (size_t m = 0; m < PACK_MODELS_MAX; m++)
            of_them += (seen->card.models >> m & 1) != 0 ? a->capacity[m] : 0;
        for (size_t m = 0; m < PACK_MODELS_MAX && of_them > 0; m++) {
            if ((seen->card.models >> m & 1) != 0)
                insisted[m] += demand_of(seen) * a->capacity[m] / of_them;
        }
    }
    for (size_t m = 0; m < PACK_MODELS_MAX; m++) {
        /* (insisted / all) / (capacity of it / capacity), at most 1 */
        wide part = (wide)insisted[m] * capacity;
        wide whole = (wide)all * a->capacity[m];
        a->prices[m] = whole == 0      ? 0
                       : part >= whole ? price_most
                                       : (int64_t)(price_most * part / whole);
    }
}

static void rebuild(struct adaptive *a)
{
    a->is_due = false;
    if (times_of(a, true) == 0)
        return;
    memo_clear(&a->memo);
    streams_make(a);
    several_make(a);
    prices_make(a);
}

/* ---- worth of a node ----------------------------------------------------------------------- */

/* What is left while a stream is played: cores, and devices ascending. */
struct board {
    int32_t cpu_milli;
    uint32_t count;
    uint16_t devices[PACK_DEVICES_MAX];
};

static void board_sink(struct board *board, uint32_t at, uint16_t left)
{
    for (; at > 0 && board->devices[at - 1] > left; at--)
        board->devices[at] = board->devices[at - 1];
    board->devices[at] = left;
}

/* Several devices, of those with most left. False: there are not as many. */
static bool board_take_several(struct board *board, const struct play *play)
{
    if (play->count > board->count || board->devices[board->count - play->count] < play->milli)
        return false;
    for (uint32_t i = board->count - play->count; i < board->count; i++)
        board_sink(board, i, (uint16_t)(board->devices[i] - play->milli));
    return true;
}

static void board_take_one(struct board *board, uint16_t milli)
{
    uint32_t at = 0;
    while (board->devices[at] < milli)
        at++;
    board_sink(board, at, (uint16_t)(board->devices[at] - milli));
}

/* What one stream fills of it. */
static int64_t fill(const struct play *play, const struct play *end, struct board board)
{
    int64_t sold = 0;
    while (play < end) {
        uint16_t most = board.devices[board.count - 1];
        if (most < play->rest_milli || board.cpu_milli < play->rest_cpu)
            break; /* nothing later fits */
        if (most < 1000 && play->to_part > 0) {
            play += play->to_part;
            continue;
        }
        const struct play *now = play++;
        if (now->cpu_milli > board.cpu_milli || now->milli > most)
            continue;
        if (now->count == 1)
            board_take_one(&board, now->milli);
        else if (now->count > 1 && !board_take_several(&board, now))
            continue;
        board.cpu_milli -= now->cpu_milli;
        sold += (int64_t)now->count * now->milli;
    }
    return sold;
}

/* Devices with nothing left take no part. */
static void board_of(const struct pack_state *state, struct board *out)
{
    *out = (struct board){ .cpu_milli = (int32_t)MIN_OF(state->cpu_milli, (int64_t)INT32_MAX) };
    for (size_t i = 0; i < state->device_count; i++) {
        if (state->devices[i] > 0)
            out->devices[out->count++] = state->devices[i];
    }
}

static int64_t worth_of_several(const struct adaptive *a, const struct pack_state *state)
{
    int64_t worth = 0;
    for (size_t i = 0; i < a->several.count; i++) {
        const struct card *card = &a->several.items[i].card;
        int64_t usable = 0;
        uint32_t count = 0;
        if (card->cpu_milli > state->cpu_milli ||
            (card->models != 0 && (card->models >> state->model & 1) == 0))
            continue;
        for (size_t k = 0; k < state->device_count; k++) {
            if (state->devices[k] < card->milli)
                continue;
            usable += state->devices[k];
            count++;
        }
        worth += count >= card->count ? a->several.items[i].weight * usable : 0;
    }
    return worth >> FIXED_BITS;
}

/* Cores are rounded down: a third of the states to play out, and places that are as good. */
static int64_t worth_of(struct adaptive *a, const struct pack_state *exact)
{
    bool is_known = false;
    struct pack_state rounded = *exact;
    const struct pack_state *state = &rounded;
    rounded.cpu_milli -= rounded.cpu_milli % CPU_STEP_MILLI;
    union memo_value *value = memo_find(&a->memo, state, &is_known);
    if (is_known)
        return value->whole;
    int64_t worth = 0;
    struct board board;
    board_of(state, &board);
    const struct streams *streams = streams_of(a, state->model);
    for (size_t i = 0; i < STREAMS && board.count > 0; i++) {
        size_t from = i > 0 ? streams->ends[i - 1] : 0;
        worth += fill(streams->plays + from, streams->plays + streams->ends[i], board);
    }
    if (board.count > 0)
        worth += worth_of_several(a, state);
    value->whole = worth;
    return worth;
}

/* ---- the policy ---------------------------------------------------------------------------- */

const struct pack_kind pack_prior[3] = {
    { { .cpu_milli = 10000, .memory_mib = 8000, .count = 1, .milli = 1000 }, 6 },
    { { .cpu_milli = 5000, .memory_mib = 4000, .count = 1, .milli = 500 }, 3 },
    { { .cpu_milli = 80000, .memory_mib = 64000, .count = 8, .milli = 1000 }, 1 },
};

enum { SEED = 7 };

void adaptive_learn(struct adaptive *a, const struct pack_kind *kinds, size_t count)
{
    a->random = SEED;
    a->seen.count = 0;
    for (size_t i = 0; i < count; i++)
        seen_add(a, &kinds[i].shape, kinds[i].times);
    a->is_due = true;
}

struct adaptive *adaptive_new(const struct pack_node *nodes, size_t node_count)
{
    struct adaptive *a = mem_new(1, sizeof(*a));
    a->rebuild_at = FIRST_REBUILD;
    for (size_t i = 0; i < node_count; i++)
        a->capacity[nodes[i].model] += nodes[i].device_count;
    adaptive_learn(a, pack_prior, COUNT_OF(pack_prior));
    if (node_count > 0) { /* a trace, whose own requests replace these */
        rebuild(a);
        a->seen.count = 0;
    }
    return a;
}

void adaptive_free(struct adaptive *a)
{
    if (a == NULL)
        return;
    vec_done(&a->seen);
    vec_done(&a->several);
    memo_done(&a->memo);
    mem_free(a->cards);
    for (size_t m = 0; m < PACK_MODELS_MAX; m++)
        mem_free(a->streams[m].plays);
    mem_free(a);
}

bool adaptive_see(struct adaptive *a, const struct pack_shape *shape)
{
    seen_add(a, shape, 1);
    if (++a->arrivals < a->rebuild_at)
        return false;
    a->rebuild_at = REBUILD_GROWTH * a->arrivals;
    rebuild(a);
    return true;
}

/* The least loss of worth, and which device it is had with: the value of what that has left. */
static int64_t least_loss(struct adaptive *a, const struct pack_spot *spot, int64_t *left)
{
    const struct pack_shape *shape = spot->shape;
    struct pack_state state;
    uint16_t lefts[PACK_DEVICES_MAX];
    state_of(spot->node, &state);
    if (!spot->before->is_known)
        spot->before->value.whole = worth_of(a, &state);
    spot->before->is_known = true;
    int64_t before = spot->before->value.whole;
    int64_t least = INT64_MAX;
    size_t count = spot_is_part(spot) ? spot_lefts(spot, lefts) : 0;
    *left = PACK_NONE;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && lefts[i] == lefts[i - 1])
            continue;
        struct pack_state after = state;
        state_take(&after, shape->cpu_milli, lefts[i], shape->milli);
        int64_t loss = before - worth_of(a, &after);
        *left = loss < least ? lefts[i] : *left;
        least = MIN_OF(least, loss);
    }
    if (count > 0)
        return least;
    state_take_last(&state, shape->cpu_milli, shape->count, shape->milli);
    return before - worth_of(a, &state);
}

int32_t adaptive_score(struct adaptive *a, const struct pack_spot *spot, int64_t *device)
{
    if (a->is_due)
        rebuild(a);
    int64_t left = PACK_NONE;
    int64_t loss = least_loss(a, spot, &left);
    *device = left == PACK_NONE ? PACK_NONE : spot_device(spot, left);
    const struct pack_node *node = spot->node;
    int64_t asked = (int64_t)spot->shape->count * spot->shape->milli;
    int64_t price = node->device_count > 0 ? a->prices[node->model] * asked >> FIXED_BITS : 0;
    const int64_t step = (int64_t)LOSS_STEP * STREAMS;
    int64_t bucket = loss + price + step / 2;
    bucket = bucket >= 0 ? bucket / step : -((step - 1 - bucket) / step);
    return (int32_t)(SCORE_BASE -
                     MIN_OF(MAX_OF(bucket, (int64_t)-SCORE_BASE), (int64_t)SCORE_BASE));
}
