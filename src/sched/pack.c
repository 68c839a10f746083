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
    size_t seen;       /* entries of the log that are in */
    int32_t *scores;   /* by node */
    uint32_t *winners; /* of 2 * width; [1] is the best node of all */
    struct tournament *next;
};

/* Shapes beyond this many push out the oldest. */
enum { SHAPES_MAX = 1024 };

struct pack *pack_new(enum pack_policy policy, const struct pack_node *nodes, size_t node_count,
                      const struct pack_weight *mix, size_t mix_count)
{
    struct pack *pack = mem_new(1, sizeof(*pack));
    pack->policy = policy;
    pack->nodes = mem_new(MAX_OF(node_count, (size_t)1), sizeof(*nodes));
    pack->node_count = node_count;
    pack->cpu_most = 1;
    pack->device_milli_most = 1;
    for (size_t i = 0; i < node_count; i++) {
        assert(nodes[i].device_count <= PACK_DEVICES_MAX && nodes[i].model < PACK_MODELS_MAX);
        pack->nodes[i] = nodes[i];
        pack->cpu_most = MAX_OF(pack->cpu_most, nodes[i].cpu_all);
        pack->device_milli_most =
            MAX_OF(pack->device_milli_most, INT64_C(1000) * nodes[i].device_count);
    }
    pack->width = 1;
    while (pack->width < node_count)
        pack->width *= 2;
    if (policy == PACK_ADAPTIVE)
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
    while (pack->tournaments != NULL) {
        struct tournament *next = pack->tournaments->next;
        tournament_free(pack->tournaments);
        pack->tournaments = next;
    }
    str_map_done(&pack->by_shape);
    adaptive_free(pack->adaptive);
    memo_done(&pack->mix.memo);
    vec_done(&pack->log);
    mem_free(pack->mix.items);
    mem_free(pack->nodes);
    mem_free(pack);
}

/* ---- the tree ------------------------------------------------------------------------------ */

/* The better one; the first of equals. A place beyond the last node never wins. */
static uint32_t better(const struct tournament *t, size_t node_count, uint32_t a, uint32_t b)
{
    if (b >= node_count)
        return a;
    return t->scores[b] > t->scores[a] ? b : a;
}

static void replay_path(const struct pack *pack, struct tournament *t, uint32_t node)
{
    for (size_t at = (pack->width + node) / 2; at > 0; at /= 2)
        t->winners[at] = better(t, pack->node_count, t->winners[2 * at], t->winners[2 * at + 1]);
}

static void play_all(struct pack *pack, struct tournament *t)
{
    for (size_t i = 0; i < pack->node_count; i++)
        t->scores[i] = pack_score(pack, &pack->nodes[i], &t->shape);
    for (size_t i = 0; i < pack->width; i++)
        t->winners[pack->width + i] = (uint32_t)i;
    for (size_t at = pack->width - 1; at > 0; at--)
        t->winners[at] = better(t, pack->node_count, t->winners[2 * at], t->winners[2 * at + 1]);
    t->seen = pack->log.count;
    t->is_stale = false;
}

static void catch_up(struct pack *pack, struct tournament *t)
{
    if (t->is_stale || pack->log.count - t->seen >= pack->node_count) {
        play_all(pack, t);
        return;
    }
    for (; t->seen < pack->log.count; t->seen++) {
        uint32_t node = pack->log.items[t->seen];
        int32_t score = pack_score(pack, &pack->nodes[node], &t->shape);
        if (score == t->scores[node])
            continue;
        t->scores[node] = score;
        replay_path(pack, t, node);
    }
}

/* ---- shapes -------------------------------------------------------------------------------- */

static struct str key_of(const struct pack_shape *shape)
{
    return (struct str){ (const char *)shape, sizeof(*shape) };
}

static void drop_oldest(struct pack *pack)
{
    struct tournament **link = &pack->tournaments;
    while ((*link)->next != NULL)
        link = &(*link)->next;
    (void)str_map_remove(&pack->by_shape, key_of(&(*link)->shape));
    tournament_free(*link);
    *link = NULL;
    pack->tournament_count--;
}

static struct tournament *tournament_for(struct pack *pack, const struct pack_shape *shape)
{
    struct tournament *t = str_map_get(&pack->by_shape, key_of(shape));
    if (t != NULL) {
        catch_up(pack, t);
        return t;
    }
    if (pack->tournament_count == SHAPES_MAX)
        drop_oldest(pack);
    t = mem_new(1, sizeof(*t));
    t->shape = *shape;
    t->scores = mem_new(MAX_OF(pack->node_count, (size_t)1), sizeof(*t->scores));
    t->winners = mem_new(2 * pack->width, sizeof(*t->winners));
    t->next = pack->tournaments;
    pack->tournaments = t;
    pack->tournament_count++;
    str_map_put(&pack->by_shape, key_of(&t->shape), t);
    play_all(pack, t);
    return t;
}

void pack_see(struct pack *pack, const struct pack_shape *shape)
{
    if (pack->policy != PACK_ADAPTIVE || !adaptive_see(pack->adaptive, shape))
        return;
    for (struct tournament *t = pack->tournaments; t != NULL; t = t->next)
        t->is_stale = true;
}

/* ---- places -------------------------------------------------------------------------------- */

struct pack_place pack_find(struct pack *pack, const struct pack_shape *shape)
{
    struct pack_place place = { .node = PACK_NONE };
    if (pack->node_count == 0)
        return place;
    const struct tournament *t = tournament_for(pack, shape);
    uint32_t best = t->winners[1];
    if (t->scores[best] == PACK_NONE)
        return place;
    place.node = best;
    pack_pick(pack, &pack->nodes[best], shape, place.devices);
    return place;
}

/* What every shape has seen is forgotten; who is far behind scores all nodes anew. */
static void log_trim(struct pack *pack)
{
    if (pack->log.count < 4 * pack->node_count + 1024)
        return;
    size_t gone = pack->log.count - pack->node_count;
    memmove(pack->log.items, pack->log.items + gone,
            (pack->log.count - gone) * sizeof(*pack->log.items));
    pack->log.count -= gone;
    for (struct tournament *t = pack->tournaments; t != NULL; t = t->next)
        t->seen = t->seen > gone ? t->seen - gone : 0;
}

void pack_take(struct pack *pack, const struct pack_shape *shape, const struct pack_place *place,
               int sign)
{
    struct pack_node *node = &pack->nodes[place->node];
    node->cpu_milli -= sign * shape->cpu_milli;
    node->memory_mib -= sign * shape->memory_mib;
    for (uint32_t i = 0; i < shape->count; i++)
        node->devices[place->devices[i]] -= sign * (int64_t)shape->milli;
    log_trim(pack);
    vec_push(&pack->log, (uint32_t)place->node);
}

const struct pack_node *pack_node(const struct pack *pack, int64_t node)
{
    return &pack->nodes[node];
}
