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
static void step(struct world *w, struct pack *pack, enum pack_policy policy)
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
    if (policy != PACK_ADAPTIVE) { /* which has learned what a fresh one has not */
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

static uint64_t run(uint64_t seed, enum pack_policy policy)
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
        for (unsigned policy = 0; policy < PACK_POLICY_COUNT; policy++) {
            uint64_t trace = run(seed + i, (enum pack_policy)policy);
            CHECK("the same again", run(seed + i, (enum pack_policy)policy) == trace);
        }
    }
}

static void test_no_nodes(void **state)
{
    (void)state;
    const struct pack_shape shape = { .cpu_milli = 1 };
    for (unsigned policy = 0; policy < PACK_POLICY_COUNT; policy++) {
        AUTO(pack) struct pack *pack = pack_new((enum pack_policy)policy, NULL, 0, NULL, 0);
        CHECK("nowhere", pack_find(pack, &shape).node == PACK_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_policy),
        cmocka_unit_test(test_no_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
