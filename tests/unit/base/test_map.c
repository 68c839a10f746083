#include <string.h>

#include "base/map.h"
#include "unit/test.h"

/*
 * Both maps against a list that is searched from the front. Keys come from a small set, and most of
 * the id keys share their home slot, so that probing and shifting back are what is tested.
 */
enum { KEYS = 400, STEPS = 40000 };

struct model {
    void *values[KEYS]; /* NULL: absent */
    size_t count;
};

static void *model_put(struct model *model, size_t key, void *value)
{
    void *before = model->values[key];
    model->values[key] = value;
    model->count += before == NULL;
    return before;
}

static void *model_remove(struct model *model, size_t key)
{
    void *before = model->values[key];
    model->values[key] = NULL;
    model->count -= before != NULL;
    return before;
}

static struct id id_for(size_t key)
{
    return key % 4 == 0 ? (struct id){ key * 131, ~(uint64_t)key }
                        : (struct id){ key << 40, 5 }; /* one home */
}

static void test_id_map_random(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    static struct model model;
    static int values[64];
    struct id_map map = { 0 };

    for (size_t step = 0; step < STEPS; step++) {
        size_t key = test_below(&seed, KEYS);
        void *value = &values[test_below(&seed, COUNT_OF(values))];
        /* Grows in the first half, shrinks in the second. */
        if (test_below(&seed, 100) < (step < STEPS / 2 ? 60u : 40u)) {
            (void)model_put(&model, key, value);
            id_map_put(&map, id_for(key), value);
        } else {
            CHECK("removes the same",
                  id_map_remove(&map, id_for(key)) == model_remove(&model, key));
        }
        CHECK("count", map.count == model.count);
        size_t probe = test_below(&seed, KEYS);
        CHECK("finds the same", id_map_get(&map, id_for(probe)) == model.values[probe]);
    }
    for (size_t key = 0; key < KEYS; key++)
        CHECK("finds all", id_map_get(&map, id_for(key)) == model.values[key]);
    id_map_done(&map);
}

static void test_str_map_random(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    static struct model model;
    static int values[64];
    static char names[KEYS][24];
    struct str_map map = { 0 };
    memcpy(map.hash_key, &seed, sizeof(seed));

    for (size_t key = 0; key < KEYS; key++)
        (void)snprintf(names[key], sizeof(names[key]), "%.*s%zu", (int)(key % 12), "amber/vision",
                       key);
    for (size_t step = 0; step < STEPS; step++) {
        size_t key = test_below(&seed, KEYS);
        void *value = &values[test_below(&seed, COUNT_OF(values))];
        if (test_below(&seed, 100) < (step < STEPS / 2 ? 60u : 40u)) {
            (void)model_put(&model, key, value);
            str_map_put(&map, str_of(names[key]), value);
        } else {
            CHECK("removes the same",
                  str_map_remove(&map, str_of(names[key])) == model_remove(&model, key));
        }
        CHECK("count", map.count == model.count);
        size_t probe = test_below(&seed, KEYS);
        CHECK("finds the same", str_map_get(&map, str_of(names[probe])) == model.values[probe]);
    }
    str_map_done(&map);
}

static void test_empty_maps(void **state)
{
    (void)state;
    struct id_map ids = { 0 };
    struct str_map names = { 0 };
    CHECK("get", id_map_get(&ids, (struct id){ 1, 2 }) == NULL);
    CHECK("remove", id_map_remove(&ids, (struct id){ 1, 2 }) == NULL);
    CHECK("get", str_map_get(&names, STR("a")) == NULL);
    CHECK("remove", str_map_remove(&names, STR("a")) == NULL);
    id_map_done(&ids);
    str_map_done(&names);
}

static void test_keys_with_odd_bytes(void **state)
{
    (void)state;
    int one = 1;
    int two = 2;
    struct str_map map = { 0 };
    str_map_put(&map, (struct str){ 0 }, &one);
    str_map_put(&map, STR("a\0b"), &two);
    CHECK("the empty key", str_map_get(&map, STR("")) == &one);
    CHECK("a NUL is a byte", str_map_get(&map, STR("a\0b")) == &two);
    CHECK("and not an end", str_map_get(&map, STR("a")) == NULL);
    struct id_map ids = { 0 };
    id_map_put(&ids, (struct id){ 0, 0 }, &one);
    CHECK("the none id is a key too", id_map_get(&ids, (struct id){ 0, 0 }) == &one);
    str_map_done(&map);
    id_map_done(&ids);
}

static void test_done_keeps_the_hash_key(void **state)
{
    (void)state;
    int value = 0;
    struct str_map map = { .hash_key = { 1, 2, 3 } };
    str_map_put(&map, STR("x"), &value);
    str_map_done(&map);
    CHECK("empty", map.count == 0 && str_map_get(&map, STR("x")) == NULL);
    CHECK("key kept", map.hash_key[0] == 1 && map.hash_key[2] == 3);
    str_map_put(&map, STR("x"), &value);
    CHECK("usable again", str_map_get(&map, STR("x")) == &value);
    str_map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_id_map_random),
        cmocka_unit_test(test_str_map_random),
        cmocka_unit_test(test_empty_maps),
        cmocka_unit_test(test_keys_with_odd_bytes),
        cmocka_unit_test(test_done_keeps_the_hash_key),
    };
    return cmocka_run_group_tests_name("base/map", tests, NULL, NULL);
}
