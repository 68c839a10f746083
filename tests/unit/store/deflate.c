/* deflate.c - deflated bytes come back, and those of a damaged file do no harm. */
#include "store/deflate.h"

#include <string.h>

#include "unit/test.h"

enum { LARGE = 16 * 1024 * 1024 };

static void there_and_back(const char *name, struct str raw, enum deflate_level level)
{
    AUTO(buf) struct buf packed = { 0 };
    AUTO(buf) struct buf again = { 0 };
    struct error e = { 0 };
    deflate_bytes(raw, level, &packed);
    CHECK_OK(name, inflate_bytes(buf_str(&packed), raw.size, &again, &e), &e);
    CHECK(name, str_eq(buf_str(&again), raw));
}

/* Equal bytes expand as far as anything can: the bound on sizes lets them pass. */
static void test_there_and_back(void **state)
{
    (void)state;
    char *zeros = mem_new(LARGE, 1);
    static const enum deflate_level levels[] = { DEFLATE_FAST, DEFLATE_SMALL };
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        there_and_back("nothing", (struct str){ NULL, 0 }, levels[i]);
        there_and_back("a byte", STR("x"), levels[i]);
        there_and_back("words", STR("one and one and one is three"), levels[i]);
        for (size_t size = 1; size <= LARGE; size *= 4)
            there_and_back("zeros", (struct str){ zeros, size }, levels[i]);
    }
    mem_free(zeros);
}

static const struct damaged_case {
    const char *name;
    uint64_t size; /* that the file says */
    const char *why;
} damaged_cases[] = {
    { "one too few", 27, "damaged" },
    { "one too many", 29, "damaged" },
    { "none", 0, "damaged" },
    { "more than its bytes can hold", 1 << 20, "cannot have been packed" },
    { "gigabytes", UINT64_C(1) << 33, "cannot have been packed" },
    { "more than a file holds", UINT64_MAX, "cannot have been packed" },
};

static void test_damage(void **state)
{
    (void)state;
    const struct str raw = STR("one and one and one is three");
    AUTO(buf) struct buf packed = { 0 };
    AUTO(buf) struct buf out = { 0 };
    deflate_bytes(raw, DEFLATE_SMALL, &packed);
    buf_add_text(&out, "before");
    size_t room = out.capacity;
    FOR_EACH_CASE (c, damaged_cases) {
        struct error e = { 0 };
        CHECK(c->name, inflate_bytes(buf_str(&packed), c->size, &out, &e) == ERR_CORRUPT);
        CHECK(c->name, strstr(e.text, c->why) != NULL);
        CHECK(c->name, str_is(buf_str(&out), "before") && out.capacity == room);
    }
    for (size_t i = 0; i < packed.size; i++) {
        packed.data[i] = (char)(packed.data[i] ^ 0x10);
        enum err rc = inflate_bytes(buf_str(&packed), raw.size, &out, NULL);
        CHECK("a flipped bit", rc == ERR_CORRUPT && str_is(buf_str(&out), "before"));
        packed.data[i] = (char)(packed.data[i] ^ 0x10);
    }
    CHECK("nothing at all", inflate_bytes((struct str){ NULL, 0 }, 5, &out, NULL) == ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests_name("store deflate", tests, NULL, NULL);
}
