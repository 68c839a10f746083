/* Placement: what was kept up to date step by step equals what is made afresh, and every
 * place is one. */
#include <string.h>

#include "sched/pack.h"
#include "unit/test.h"

enum { NODES = 40, STEPS = 400, KINDS = 12 };

#if defined(__SANITIZE_ADDRESS__)
enum { WORLDS = 4 };
#else
enum { WORLDS = 40 };
#endif

struct world {
    struct pack_node nodes[NODES]; /* a model of our own */
    struct pack_shape shapes[KINDS];
    struct pack_weight mix[KINDS];
    struct {
        size_t shape;
        struct pack_place place;
    } placed[STEPS];
    size_t placed_count;
    uint64_t random;
};

static size_t below(struct world *w, size_t bound)
{
    return test_below(&w->random, bound);
}

static void world_make(struct world *w, uint64_t seed)
{
    static const uint32_t fractions[] = { 100, 250, 333, 500, 810 };
    *w = (struct world){ .random = seed };
    for (size_t i = 0; i < NODES; i++) {
        struct pack_node *node = &w->nodes[i];
        node->model = (uint32_t)below(w, 3);
        node->device_count = (uint32_t)(below(w, 4) == 0 ? 0 : 1u << below(w, 4));
        node->cpu_milli = node->cpu_all = 16000 * (int64_t)(1 + below(w, 8));
        node->memory_mib = 65536 * (int64_t)(1 + below(w, 4));
        for (size_t k = 0; k < node->device_count; k++)
            node->devices[k] = 1000;
    }
    for (size_t i = 0; i < KINDS; i++) {
        struct pack_shape *shape = &w->shapes[i];
        shape->cpu_milli = 1000 * (int64_t)(1 + below(w, 16));
        shape->memory_mib = 1024 * (int64_t)(1 + below(w, 32));
        shape->count = (uint32_t)(below(w, 5) == 0 ? 0 : 1u << below(w, 3));
        shape->milli = shape->count == 0 ? 0 : 1000;
        if (shape->count == 1 && below(w, 2) == 0)
            shape->milli = fractions[below(w, COUNT_OF(fractions))];
        shape->models = shape->count > 0 && below(w, 3) == 0 ? 1 + below(w, 7) : 0;
        w->mix[i] = (struct pack_weight){ *shape, 1.0 / KINDS };
    }
}

static bool fits(const struct pack_node *node, const struct pack_shape *shape)
{
    size_t usable = 0;
    for (size_t i = 0; i < node->device_count; i++)
        usable += node->devices[i] >= shape->milli;
    bool is_model =
        shape->count == 0 || shape->models == 0 || (shape->models >> node->model & 1) != 0;
    return is_model && node->cpu_milli >= shape->cpu_milli &&
           node->memory_mib >= shape->memory_mib && usable >= shape->count;
}

static void book(struct world *w, const struct pack_shape *shape, const struct pack_place *place,
                 int sign)
{
    struct pack_node *node = &w->nodes[place->node];
    node->cpu_milli -= sign * shape->cpu_milli;
    node->memory_mib -= sign * shape->memory_mib;
    for (size_t i = 0; i < shape->count; i++) {
        CHECK("a device of the node", place->devices[i] < node->device_count);
        for (size_t k = 0; k < i; k++)
            CHECK("another one", place->devices[k] != place->devices[i]);
        node->devices[place->devices[i]] -= sign * (int64_t)shape->milli;
        CHECK("no more than there is",
              node->devices[place->devices[i]] >= 0 && node->devices[place->devices[i]] <= 1000);
    }
    CHECK("cores and memory", node->cpu_milli >= 0 && node->memory_mib >= 0);
}

static bool is_same(const struct pack_place *a, const struct pack_place *b, size_t count)
{
    return a->node == b->node &&
           (a->node == PACK_NONE || memcmp(a->devices, b->devices, count * sizeof(uint32_t)) == 0);
}

/* One arrival or one departure. */
static void step(struct world *w, struct pack *pack, enum placement policy)
{
    if (w->placed_count > 0 && (below(w, 3) == 0 || w->placed_count == STEPS)) {
        size_t at = below(w, w->placed_count);
        const struct pack_shape *shape = &w->shapes[w->placed[at].shape];
        pack_take(pack, shape, &w->placed[at].place, -1);
        book(w, shape, &w->placed[at].place, -1);
        w->placed[at] = w->placed[--w->placed_count];
        return;
    }
    size_t kind = below(w, KINDS);
    const struct pack_shape *shape = &w->shapes[kind];
    pack_see(pack, shape);
    const struct pack_place place = pack_find(pack, shape);
    if (policy != PLACE_ADAPTIVE) { /* which has learned what a fresh one has not */
        struct pack *fresh = pack_new(policy, w->nodes, NODES, w->mix, KINDS);
        const struct pack_place again = pack_find(fresh, shape);
        pack_free(fresh);
        CHECK("as one that is made afresh", is_same(&place, &again, shape->count));
    }
    bool is_somewhere = false;
    for (size_t i = 0; i < NODES; i++)
        is_somewhere = is_somewhere || fits(&w->nodes[i], shape);
    CHECK("a place where there is one", (place.node != PACK_NONE) == is_somewhere);
    if (place.node == PACK_NONE)
        return;
    book(w, shape, &place, 1);
    pack_take(pack, shape, &place, 1);
    w->placed[w->placed_count].shape = kind;
    w->placed[w->placed_count++].place = place;
}

static uint64_t run(uint64_t seed, enum placement policy)
{
    struct world *w = mem_new(1, sizeof(*w));
    uint64_t trace = 0;
    world_make(w, seed);
    struct pack *pack = pack_new(policy, w->nodes, NODES, w->mix, KINDS);
    for (size_t i = 0; i < STEPS; i++) {
        step(w, pack, policy);
        trace = trace * 31 +
                (w->placed_count > 0 ? (uint64_t)w->placed[w->placed_count - 1].place.node + 1 : 0);
    }
    for (size_t i = 0; i < NODES; i++)
        CHECK("the same picture",
              memcmp(pack_node(pack, (int64_t)i), &w->nodes[i], sizeof(w->nodes[i])) == 0);
    pack_free(pack);
    mem_free(w);
    return trace;
}

static void test_every_policy(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (uint64_t i = 0; i < WORLDS; i++) {
        for (unsigned policy = 0; policy < PLACEMENT_COUNT; policy++) {
            uint64_t trace = run(seed + i, (enum placement)policy);
            CHECK("the same again", run(seed + i, (enum placement)policy) == trace);
        }
    }
}

static void test_no_nodes(void **state)
{
    (void)state;
    const struct pack_shape shape = { .cpu_milli = 1 };
    for (unsigned policy = 0; policy < PLACEMENT_COUNT; policy++) {
        AUTO(pack) struct pack *pack = pack_new((enum placement)policy, NULL, 0, NULL, 0);
        CHECK("nowhere", pack_find(pack, &shape).node == PACK_NONE);
    }
}

/* ---- nodes that come, change and go --------------------------------------------------------- */

struct crowd {
    struct pack_node nodes[NODES];
    struct pack_standing standings[NODES];
    bool is_there[NODES];
    uint64_t refused; /* a bit for each node that the filter refuses */
};

static bool crowd_accepts(const void *context, size_t node, const struct pack_shape *shape,
                          uint32_t *usable)
{
    const struct crowd *crowd = context;
    uint32_t count = 0;
    *usable = 0;
    for (uint32_t i = 0; i < crowd->nodes[node].device_count; i++) {
        if (crowd->nodes[node].devices[i] < shape->milli)
            continue;
        *usable |= UINT32_C(1) << i;
        count++;
    }
    return crowd->is_there[node] && (crowd->refused >> node & 1) == 0 && count >= shape->count;
}

static void crowd_change(struct crowd *crowd, struct pack *pack, uint64_t *random)
{
    size_t at = test_below(random, NODES);
    struct pack_node *node = &crowd->nodes[at];
    crowd->is_there[at] = test_below(random, 5) != 0;
    *node = (struct pack_node){ .cpu_milli = 8000, .cpu_all = 8000 };
    node->device_count = crowd->is_there[at] ? 1 + (uint32_t)test_below(random, 8) : 0;
    for (size_t i = 0; i < node->device_count; i++)
        node->devices[i] = 250 * (int64_t)test_below(random, 5);
    crowd->standings[at] =
        (struct pack_standing){ .rank = test_below(random, 3) == 0 ? *random : at,
                                .level = (uint8_t)test_below(random, PACK_LEVEL_MAX + 1) };
    crowd->refused ^= UINT64_C(1) << at & *random;
    pack_set(pack, at, node, crowd->standings[at]);
}

static void crowd_compare(const struct crowd *crowd, struct pack *pack, enum placement policy,
                          const struct pack_shape *shape)
{
    const struct pack_filter filter = { crowd_accepts, crowd };
    AUTO(pack) struct pack *fresh = pack_open(policy, &filter);
    int64_t best = PACK_NONE;
    for (size_t i = 0; i < NODES; i++)
        pack_set(fresh, i, &crowd->nodes[i], crowd->standings[i]);
    const struct pack_place place = pack_find(pack, shape);
    for (size_t i = 0; i < NODES; i++) {
        int32_t score = pack_score_at(fresh, i, shape);
        int32_t than = best == PACK_NONE ? PACK_NONE : pack_score_at(fresh, (size_t)best, shape);
        if (score > than || (score == than && score != PACK_NONE &&
                             crowd->standings[i].rank < crowd->standings[best].rank))
            best = (int64_t)i;
    }
    CHECK("the best of all, of equals the one of lower rank", place.node == best);
    CHECK("as one that is made afresh", pack_find(fresh, shape).node == best);
    if (best != PACK_NONE && shape->count == 1)
        CHECK("on a device that takes it",
              crowd->nodes[best].devices[place.devices[0]] >= shape->milli);
}

static void test_nodes_come_and_go(void **state)
{
    static const struct pack_shape shapes[] = {
        { .count = 1, .milli = 250 },  { .count = 1, .milli = 750 }, { .count = 1, .milli = 1000 },
        { .count = 4, .milli = 1000 }, { .cpu_milli = 1000 },
    };
    uint64_t random = test_seed();
    (void)state;
    for (unsigned policy = 0; policy < PLACEMENT_COUNT; policy++) {
        struct crowd crowd = { .refused = 0 };
        const struct pack_filter filter = { crowd_accepts, &crowd };
        AUTO(pack) struct pack *pack = pack_open((enum placement)policy, &filter);
        CHECK("nowhere", pack_find(pack, &shapes[0]).node == PACK_NONE);
        for (int i = 0; i < 200; i++) {
            for (size_t changes = test_below(&random, 4); changes > 0; changes--)
                crowd_change(&crowd, pack, &random);
            crowd_compare(&crowd, pack, (enum placement)policy,
                          &shapes[test_below(&random, COUNT_OF(shapes))]);
        }
    }
}

/* What it learned last counts, and nothing before that. */
static void test_learning_starts_anew(void **state)
{
    static const struct pack_kind small[] = { { { .count = 1, .milli = 250 }, 3 } };
    static const struct pack_kind large[] = { { { .count = 8, .milli = 1000 }, 5 },
                                              { { .cpu_milli = 1000 }, 5 } };
    uint64_t seed = test_seed();
    struct world *w = mem_new(1, sizeof(*w));
    (void)state;
    world_make(w, seed);
    for (unsigned policy = PLACE_FGD; policy <= PLACE_ADAPTIVE; policy++) {
        AUTO(pack) struct pack *twice = pack_open((enum placement)policy, NULL);
        AUTO(pack) struct pack *once = pack_open((enum placement)policy, NULL);
        for (size_t i = 0; i < NODES; i++) {
            pack_set(twice, i, &w->nodes[i], (struct pack_standing){ .rank = i });
            pack_set(once, i, &w->nodes[i], (struct pack_standing){ .rank = i });
        }
        pack_learn(twice, small, COUNT_OF(small));
        for (size_t k = 0; k < KINDS; k++)
            (void)pack_find(twice, &w->shapes[k]);
        pack_learn(twice, large, COUNT_OF(large));
        pack_learn(once, large, COUNT_OF(large));
        for (size_t k = 0; k < KINDS; k++)
            for (size_t i = 0; i < NODES; i++)
                CHECK("the same scores", pack_score_at(twice, i, &w->shapes[k]) ==
                                             pack_score_at(once, i, &w->shapes[k]));
    }
    mem_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_policy),
        cmocka_unit_test(test_no_nodes),
        cmocka_unit_test(test_nodes_come_and_go),
        cmocka_unit_test(test_learning_starts_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
