/*
 * pack.c - scores of all nodes for a shape, as a tournament: each inner place of the tree holds the
 * better of the two below it, so that the best is at the top and a change costs one path.
 */
#include <assert.h>
#include <string.h>

#include "sched/pack_internal.h"

struct tournament {
    struct pack_shape shape;
    bool is_stale;     /* all scores have changed */
    size_t width;      /* what it was made for */
    size_t seen;       /* entries of the log that are in */
    int32_t *scores;   /* of `width`: by node, with its level */
    uint32_t *winners; /* of 2 * width; [1] is the best node of all */
    struct tournament *newer, *older;
};

/* Shapes beyond this many, or beyond this much memory, push out those not asked for longest. */
enum { SHAPES_MAX = 1024, SHAPES_MIN = 16, SHAPES_BYTES = 64 << 20 };

struct pack *pack_open(enum placement policy, const struct pack_filter *filter)
{
    struct pack *pack = mem_new(1, sizeof(*pack));
    pack->policy = policy;
    if (filter != NULL)
        pack->filter = *filter;
    pack->width = 1;
    if (policy == PLACE_ADAPTIVE)
        pack->adaptive = adaptive_new(NULL, 0);
    pack_learn(pack, NULL, 0);
    return pack;
}

struct pack *pack_new(enum placement policy, const struct pack_node *nodes, size_t node_count,
                      const struct pack_weight *mix, size_t mix_count)
{
    struct pack *pack = mem_new(1, sizeof(*pack));
    pack->policy = policy;
    pack->width = 1;
    for (size_t i = 0; i < node_count; i++)
        pack_set(pack, i, &nodes[i], (struct pack_standing){ .rank = i });
    if (policy == PLACE_ADAPTIVE)
        pack->adaptive = adaptive_new(nodes, node_count);
    pack->mix.items = mem_new(MAX_OF(mix_count, (size_t)1), sizeof(*mix));
    pack->mix.count = mix_count;
    if (mix_count > 0)
        memcpy(pack->mix.items, mix, mix_count * sizeof(*mix));
    return pack;
}

static void tournament_free(struct tournament *t)
{
    mem_free(t->scores);
    mem_free(t->winners);
    mem_free(t);
}

void pack_free(struct pack *pack)
{
    if (pack == NULL)
        return;
    while (pack->newest != NULL) {
        struct tournament *next = pack->newest->older;
        tournament_free(pack->newest);
        pack->newest = next;
    }
    str_map_done(&pack->by_shape);
    adaptive_free(pack->adaptive);
    memo_done(&pack->mix.memo);
    vec_done(&pack->log);
    vec_done(&pack->nodes);
    vec_done(&pack->standings);
    vec_done(&pack->worths);
    mem_free(pack->mix.items);
    mem_free(pack);
}

/* ---- the tree ------------------------------------------------------------------------------ */

/* Levels are the low bits of a score that is kept: between policies' scores they decide nothing. */
enum { LEVELS = PACK_LEVEL_MAX + 1 };

static int32_t score_of(struct pack *pack, size_t at, const struct pack_shape *shape)
{
    int32_t score = pack_score(pack, at, shape);
    if (score == PACK_NONE)
        return PACK_NONE;
    bool has_levels = pack->policy != PLACE_FIRST_FIT && pack->policy != PLACE_SPREAD;
    return score * LEVELS + (has_levels ? pack->standings.items[at].level : 0);
}

/* The better one: of equals the one of lower rank. Places beyond the last node fit nothing. */
static uint32_t better(const struct pack *pack, const struct tournament *t, uint32_t a, uint32_t b)
{
    if (t->scores[a] != t->scores[b])
        return t->scores[a] > t->scores[b] ? a : b;
    if (t->scores[a] == PACK_NONE)
        return a;
    return pack->standings.items[b].rank < pack->standings.items[a].rank ? b : a;
}

static void replay_path(const struct pack *pack, struct tournament *t, uint32_t node)
{
    for (size_t at = (t->width + node) / 2; at > 0; at /= 2)
        t->winners[at] = better(pack, t, t->winners[2 * at], t->winners[2 * at + 1]);
}

/* Room for all nodes that there are by now. */
static void widen(const struct pack *pack, struct tournament *t)
{
    if (t->width == pack->width)
        return;
    mem_free(t->scores);
    mem_free(t->winners);
    t->width = pack->width;
    t->scores = mem_new(t->width, sizeof(*t->scores));
    t->winners = mem_new(2 * t->width, sizeof(*t->winners));
    for (size_t i = 0; i < t->width; i++) {
        t->scores[i] = PACK_NONE;
        t->winners[t->width + i] = (uint32_t)i;
    }
    t->is_stale = true;
}

static void play_all(struct pack *pack, struct tournament *t)
{
    for (size_t i = 0; i < pack->nodes.count; i++)
        t->scores[i] = score_of(pack, i, &t->shape);
    for (size_t at = t->width - 1; at > 0; at--)
        t->winners[at] = better(pack, t, t->winners[2 * at], t->winners[2 * at + 1]);
    if (t->width == 1)
        t->winners[1] = 0;
    t->seen = pack->log.count;
    t->is_stale = false;
}

static void catch_up(struct pack *pack, struct tournament *t)
{
    widen(pack, t);
    if (t->is_stale || pack->log.count - t->seen >= pack->nodes.count) {
        play_all(pack, t);
        return;
    }
    for (; t->seen < pack->log.count; t->seen++) {
        uint32_t node = pack->log.items[t->seen];
        int32_t score = score_of(pack, node, &t->shape);
        if (score == t->scores[node])
            continue;
        t->scores[node] = score;
        replay_path(pack, t, node);
    }
}

static void all_are_stale(struct pack *pack)
{
    for (struct tournament *t = pack->newest; t != NULL; t = t->older)
        t->is_stale = true;
}

/* Scores of best_fit are relative to the largest node. */
static void measure(struct pack *pack)
{
    if (pack->is_measured)
        return;
    int64_t cpu = 1;
    int64_t devices = 1;
    for (size_t i = 0; i < pack->nodes.count; i++) {
        cpu = MAX_OF(cpu, pack->nodes.items[i].cpu_all);
        devices = MAX_OF(devices, INT64_C(1000) * pack->nodes.items[i].device_count);
    }
    if (cpu != pack->cpu_most || devices != pack->device_milli_most)
        all_are_stale(pack);
    pack->cpu_most = cpu;
    pack->device_milli_most = devices;
    pack->is_measured = true;
}

/* ---- shapes -------------------------------------------------------------------------------- */

static struct str key_of(const struct pack_shape *shape)
{
    return (struct str){ (const char *)shape, sizeof(*shape) };
}

static void unlink_from(struct pack *pack, struct tournament *t)
{
    *(t->newer != NULL ? &t->newer->older : &pack->newest) = t->older;
    *(t->older != NULL ? &t->older->newer : &pack->oldest) = t->newer;
    t->newer = t->older = NULL;
}

static void make_newest(struct pack *pack, struct tournament *t)
{
    t->older = pack->newest;
    *(t->older != NULL ? &t->older->newer : &pack->oldest) = t;
    pack->newest = t;
}

static void drop_oldest(struct pack *pack)
{
    struct tournament *t = pack->oldest;
    unlink_from(pack, t);
    (void)str_map_remove(&pack->by_shape, key_of(&t->shape));
    tournament_free(t);
    pack->tournament_count--;
}

static size_t shapes_max(const struct pack *pack)
{
    size_t each = pack->width * (sizeof(int32_t) + 2 * sizeof(uint32_t));
    return MIN_OF(MAX_OF((size_t)SHAPES_BYTES / each, (size_t)SHAPES_MIN), (size_t)SHAPES_MAX);
}

static struct tournament *tournament_for(struct pack *pack, const struct pack_shape *shape)
{
    measure(pack);
    struct tournament *t = str_map_get(&pack->by_shape, key_of(shape));
    if (t != NULL) {
        unlink_from(pack, t);
    } else {
        while (pack->tournament_count >= shapes_max(pack))
            drop_oldest(pack);
        t = mem_new(1, sizeof(*t));
        t->shape = *shape;
        t->is_stale = true;
        pack->tournament_count++;
        str_map_put(&pack->by_shape, key_of(&t->shape), t);
    }
    make_newest(pack, t);
    catch_up(pack, t);
    return t;
}

bool pack_shape_asked(const struct pack *pack, size_t i, struct pack_shape *out)
{
    const struct tournament *t = pack->newest;
    for (; t != NULL && i > 0; i--)
        t = t->older;
    if (t != NULL)
        *out = t->shape;
    return t != NULL;
}

/* ---- what is asked for --------------------------------------------------------------------- */

static void all_is_unknown(struct pack *pack)
{
    all_are_stale(pack);
    for (size_t i = 0; i < pack->worths.count; i++)
        pack->worths.items[i].is_known = false;
}

void pack_see(struct pack *pack, const struct pack_shape *shape)
{
    if (pack->policy == PLACE_ADAPTIVE && adaptive_see(pack->adaptive, shape))
        all_is_unknown(pack);
}

static void frag_learn(struct frag_mix *mix, const struct pack_kind *kinds, size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += kinds[i].times;
    mem_free(mix->items);
    memo_clear(&mix->memo);
    mix->items = mem_new(count, sizeof(*mix->items));
    mix->count = count;
    for (size_t i = 0; i < count; i++)
        mix->items[i] =
            (struct pack_weight){ kinds[i].shape, (double)kinds[i].times / (double)all };
}

void pack_learn(struct pack *pack, const struct pack_kind *kinds, size_t count)
{
    bool has_devices = false;
    for (size_t i = 0; i < count; i++)
        has_devices = has_devices || kinds[i].shape.count > 0;
    if (!has_devices) {
        kinds = pack_prior;
        count = COUNT_OF(pack_prior);
    }
    if (pack->policy == PLACE_ADAPTIVE)
        adaptive_learn(pack->adaptive, kinds, count);
    if (pack->policy == PLACE_FGD)
        frag_learn(&pack->mix, kinds, count);
    all_is_unknown(pack);
}

/* ---- places -------------------------------------------------------------------------------- */

struct pack_place pack_find(struct pack *pack, const struct pack_shape *shape)
{
    struct pack_place place = { .node = PACK_NONE };
    if (pack->nodes.count == 0)
        return place;
    const struct tournament *t = tournament_for(pack, shape);
    uint32_t best = t->winners[1];
    if (t->scores[best] == PACK_NONE)
        return place;
    place.node = best;
    pack_pick(pack, best, shape, place.devices);
    return place;
}

int32_t pack_score_at(struct pack *pack, size_t at, const struct pack_shape *shape)
{
    measure(pack);
    return score_of(pack, at, shape);
}

/* What every shape has seen is forgotten; who is far behind scores all nodes anew. */
static void log_trim(struct pack *pack)
{
    if (pack->log.count < 4 * pack->nodes.count + 1024)
        return;
    size_t gone = pack->log.count - pack->nodes.count;
    memmove(pack->log.items, pack->log.items + gone,
            (pack->log.count - gone) * sizeof(*pack->log.items));
    pack->log.count -= gone;
    for (struct tournament *t = pack->newest; t != NULL; t = t->older)
        t->seen = t->seen > gone ? t->seen - gone : 0;
}

static void note_change(struct pack *pack, size_t at)
{
    log_trim(pack);
    pack->worths.items[at].is_known = false;
    vec_push(&pack->log, (uint32_t)at);
}

void pack_set(struct pack *pack, size_t at, const struct pack_node *node,
              struct pack_standing standing)
{
    assert(node->device_count <= PACK_DEVICES_MAX && node->model < PACK_MODELS_MAX);
    while (pack->nodes.count <= at) {
        vec_push(&pack->nodes, (struct pack_node){ 0 });
        vec_push(&pack->standings, (struct pack_standing){ 0 });
        vec_push(&pack->worths, (struct pack_worth){ .is_known = false });
        note_change(pack, pack->nodes.count - 1);
    }
    while (pack->width < pack->nodes.count)
        pack->width *= 2;
    struct pack_node *kept = &pack->nodes.items[at];
    if (node->cpu_all != kept->cpu_all || node->device_count != kept->device_count)
        pack->is_measured = false;
    if (standing.rank != pack->standings.items[at].rank)
        all_are_stale(pack); /* it is another node: even with equal scores others may win */
    *kept = *node;
    pack->standings.items[at] = standing;
    note_change(pack, at);
}

void pack_take(struct pack *pack, const struct pack_shape *shape, const struct pack_place *place,
               int sign)
{
    struct pack_node *node = &pack->nodes.items[place->node];
    node->cpu_milli -= sign * shape->cpu_milli;
    node->memory_mib -= sign * shape->memory_mib;
    for (uint32_t i = 0; i < shape->count; i++)
        node->devices[place->devices[i]] -= sign * (int64_t)shape->milli;
    note_change(pack, (size_t)place->node);
}

const struct pack_node *pack_node(const struct pack *pack, int64_t node)
{
    return &pack->nodes.items[node];
}
