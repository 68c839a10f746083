#include <string.h>

#include "base/mem.h"
#include "unit/test.h"

static bool is_zero(const void *mem, size_t size)
{
    const unsigned char *bytes = mem;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

static bool is_aligned(const void *mem)
{
    return (uintptr_t)mem % _Alignof(max_align_t) == 0;
}

static void test_heap(void **state)
{
    (void)state;
    unsigned char *bytes = mem_new(10, 3);
    CHECK("zeroed", is_zero(bytes, 30));
    memset(bytes, 7, 30);
    bytes = mem_resize(bytes, 1000, 1);
    CHECK("keeps what was there", bytes[0] == 7 && bytes[29] == 7);
    mem_free(bytes);
    void *nothing = mem_new(0, 0);
    CHECK("no bytes is not NULL", nothing != NULL);
    mem_free(nothing);
    mem_free(NULL);
    AUTO(mem) char *copy = mem_strdup("berth");
    assert_string_equal(copy, "berth");
}

/* Objects do not overlap: each is filled with its own byte, all are read back. */
static void test_arena(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    AUTO(arena) struct arena arena = { 0 };
    enum { OBJECTS = 200 };
    unsigned char *objects[OBJECTS];
    size_t sizes[OBJECTS];

    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < OBJECTS; i++) {
            sizes[i] = test_below(&seed, i % 50 == 0 ? 200000 : 500);
            objects[i] = arena_new(&arena, sizes[i], 1);
            CHECK("zeroed", is_zero(objects[i], sizes[i]));
            CHECK("aligned", is_aligned(objects[i]));
            memset(objects[i], (int)(i & 0xff), sizes[i]);
        }
        for (size_t i = 0; i < OBJECTS; i++) {
            for (size_t at = 0; at < sizes[i]; at++)
                CHECK("untouched by the others", objects[i][at] == (i & 0xff));
        }
        CHECK("counts", arena.used > 0);
        arena_reset(&arena);
        CHECK("forgets", arena.used == 0);
    }
}

static void test_arena_text(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    char *copy = arena_dup(&arena, "a\0b", 3);
    CHECK("copies bytes and adds a NUL", memcmp(copy, "a\0b", 4) == 0);
    copy = arena_dup(&arena, NULL, 0);
    CHECK("nothing is the empty text", copy[0] == '\0');
    assert_string_equal(arena_format(&arena, "%s-%d", "node", 7), "node-7");
    char long_text[5000];
    memset(long_text, 'y', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_string_equal(arena_format(&arena, "%s", long_text), long_text);
}

static void test_empty_arena(void **state)
{
    (void)state;
    struct arena arena = { 0 };
    arena_reset(&arena);
    arena_done(&arena);
    arena_done(&arena);
    CHECK("still empty", arena.head == NULL && arena.used == 0);
}

static void test_pool_reuses(void **state)
{
    (void)state;
    struct pool pool = { 0 };
    char *first = pool_new(&pool, 100);
    memset(first, 1, 100);
    pool_free(&pool, first, 100);
    char *second = pool_new(&pool, 105); /* the same class of 112 */
    CHECK("the freed one comes back", second == first);
    CHECK("zeroed again", is_zero(second, 105));
    CHECK("counts whole classes", pool.used == 112);
    pool_free(&pool, NULL, 8);
    CHECK("NULL is a no-op", pool.used == 112);
    char *copy = pool_dup(&pool, "abc", 4);
    assert_string_equal(copy, "abc");
    pool_done(&pool);
    CHECK("empty", pool.used == 0 && pool.held == 0);
}

/* Random news and frees: live objects keep their bytes, and the count of live bytes
 * returns to 0. */
static void test_pool_random(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    enum { SLOTS = 300, STEPS = 20000 };
    struct pool pool = { 0 };
    unsigned char *objects[SLOTS] = { NULL };
    size_t sizes[SLOTS] = { 0 };

    for (size_t step = 0; step < STEPS; step++) {
        size_t i = test_below(&seed, SLOTS);
        if (objects[i] == NULL) {
            sizes[i] = 1 + test_below(&seed, step % 100 == 0 ? 70000 : 700);
            objects[i] = pool_new(&pool, sizes[i]);
            CHECK("zeroed", is_zero(objects[i], sizes[i]));
            CHECK("aligned", is_aligned(objects[i]));
            memset(objects[i], (int)(i & 0xff), sizes[i]);
            continue;
        }
        CHECK("first byte kept", objects[i][0] == (i & 0xff));
        CHECK("last byte kept", objects[i][sizes[i] - 1] == (i & 0xff));
        pool_free(&pool, objects[i], sizes[i]);
        objects[i] = NULL;
    }
    CHECK("holds at least what lives", pool.held >= pool.used);
    for (size_t i = 0; i < SLOTS; i++)
        pool_free(&pool, objects[i], sizes[i]);
    CHECK("nothing lives", pool.used == 0);
    pool_done(&pool);
}

/* clang-format off */
static const struct { const char *name; size_t size, rounded; } class_cases[] = {
    { "nothing takes the smallest",   0,       16 },
    { "one byte",                     1,       16 },
    { "a whole class",                16,      16 },
    { "one more",                     17,      32 },
    { "the last fine class",          1024,    1024 },
    { "the first power of two",       1025,    2048 },
    { "a power of two",               2048,    2048 },
    { "beyond it",                    2049,    4096 },
    { "the largest",                  1 << 20, 1 << 20 },
};
/* clang-format on */

static void test_pool_classes(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, class_cases) {
        struct pool pool = { 0 };
        void *mem = pool_new(&pool, c->size);
        CHECK(c->name, pool.used == c->rounded);
        pool_free(&pool, mem, c->size);
        CHECK(c->name, pool.used == 0);
        CHECK(c->name, pool_new(&pool, c->size) == mem);
        pool_done(&pool);
    }
}

static void test_vec(void **state)
{
    (void)state;
    VEC(int) numbers = { 0 };
    for (int i = 0; i < 1000; i++)
        vec_push(&numbers, i * 3);
    CHECK("counts", numbers.count == 1000 && numbers.capacity >= 1000);
    for (int i = 0; i < 1000; i++)
        CHECK("in order", numbers.items[i] == i * 3);
    vec_reserve(&numbers, 5000);
    CHECK("reserves", numbers.capacity >= 5000 && numbers.items[999] == 2997);
    vec_done(&numbers);
    CHECK("empty", numbers.items == NULL && numbers.count == 0 && numbers.capacity == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap),         cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_text),   cmocka_unit_test(test_empty_arena),
        cmocka_unit_test(test_pool_reuses),  cmocka_unit_test(test_pool_random),
        cmocka_unit_test(test_pool_classes), cmocka_unit_test(test_vec),
    };
    return cmocka_run_group_tests_name("base/mem", tests, NULL, NULL);
}
