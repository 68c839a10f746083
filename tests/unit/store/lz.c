/* lz.c - whatever is packed comes back, and whatever was not packed is refused without harm. */
#include "store/lz.h"

#include <string.h>

#include "unit/test.h"

enum { ROUNDS = 400, RAW_MAX = 200000 };

static void check_comes_back(const char *name, struct str raw)
{
    struct error e = { 0 };
    AUTO(buf) struct buf packed = { 0 };
    AUTO(buf) struct buf again = { 0 };
    lz_pack(raw, &packed);
    CHECK_OK(name, lz_unpack(buf_str(&packed), raw.size, &again, &e), &e);
    CHECK(name, str_eq(buf_str(&again), raw));
    CHECK("never much longer", packed.size <= raw.size + raw.size / 255 + 2);
    CHECK("another size", lz_unpack(buf_str(&packed), raw.size + 1, &again, &e) == ERR_CORRUPT);
    if (raw.size > 0)
        CHECK("another size", lz_unpack(buf_str(&packed), raw.size - 1, &again, &e) == ERR_CORRUPT);
}

/* Pieces that were there before, near and far, between bytes that were not. */
static void make_alike(uint64_t *random, struct buf *out)
{
    size_t size = test_below(random, test_below(random, 20) == 0 ? RAW_MAX : 3000);
    buf_clear(out);
    while (out->size < size) {
        size_t count = test_below(random, test_below(random, 10) == 0 ? 5000 : 40);
        bool is_new = out->size < 10 || test_below(random, 3) == 0;
        size_t from = is_new ? 0 : test_below(random, out->size);
        for (size_t i = 0; i < count; i++) {
            if (is_new)
                buf_add_char(out, (char)(uint8_t)test_random(random));
            else
                buf_add_char(out, out->data[from + i]);
        }
    }
}

static void what_is_packed_comes_back(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    AUTO(buf) struct buf raw = { 0 };
    static const char *const texts[] = { "",
                                         "a",
                                         "aaaaaa",
                                         "aaaaaaa",
                                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                         "abcdefabcdef",
                                         "abcdefgabcdefgabcdefg" };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check_comes_back(texts[i], str_of(texts[i]));
    for (size_t i = 0; i < RAW_MAX; i++)
        buf_add_char(&raw, 'a');
    check_comes_back("as much from as few bytes as can be", buf_str(&raw));
    for (size_t i = 0; i < ROUNDS; i++) {
        make_alike(&random, &raw);
        check_comes_back("alike", buf_str(&raw));
    }
}

static void rows_that_are_alike_become_small(void **state)
{
    (void)state;
    AUTO(buf) struct buf raw = { 0 };
    AUTO(buf) struct buf packed = { 0 };
    uint64_t random = test_seed();
    for (int i = 0; i < 32; i++) {
        buf_format(&raw, "{\"id\":\"%016llx\",\"project\":\"amber\",\"command\":[\"train\"],",
                   (unsigned long long)test_random(&random));
        for (int field = 0; field < 30; field++)
            buf_format(&raw, "\"field%d\":%d,", field, field * 1000);
    }
    lz_pack(buf_str(&raw), &packed);
    CHECK("a tenth", packed.size * 10 < raw.size);
}

/* Counts that run off the end, copies from before the beginning, more than was said. */
static void what_is_not_packed_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes;
        size_t size;
        uint64_t raw_size;
    } cases[] = {
        { "nothing for something", "", 0, 1 },
        { "no literals", "\x30", 1, 3 },
        { "half a count", "\xf0", 1, 20 },
        { "a count without end", "\xf0\xff\xff", 3, 600 },
        { "half a distance",
          "\x10"
          "a\x01",
          3, 7 },
        { "no distance",
          "\x10"
          "a\x00\x00",
          4, 7 },
        { "before the beginning",
          "\x10"
          "a\x02\x00",
          4, 7 },
        { "a copy beyond the size",
          "\x1f"
          "a\x01\x00\xff\x00",
          6, 100 },
        { "literals beyond the size",
          "\x20"
          "ab",
          3, 1 },
        { "larger than anything", "", 0, UINT64_C(1) << 40 },
        { "more than so few bytes can be",
          "\x1f"
          "a\x01\x00\xff\xff\x00",
          7, UINT64_C(1) << 29 },
    };
    AUTO(buf) struct buf out = { 0 };
    buf_add_text(&out, "as before");
    size_t capacity = out.capacity;
    FOR_EACH_CASE (c, cases) {
        struct error e = { 0 };
        struct str bytes = { c->bytes, c->size };
        CHECK(c->name, lz_unpack(bytes, c->raw_size, &out, &e) == ERR_CORRUPT);
        CHECK(c->name, str_is(buf_str(&out), "as before") && out.capacity == capacity);
    }
}

static void damage_does_no_harm(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    AUTO(buf) struct buf raw = { 0 };
    AUTO(buf) struct buf packed = { 0 };
    AUTO(buf) struct buf out = { 0 };
    for (size_t i = 0; i < ROUNDS; i++) {
        struct error e = { 0 };
        make_alike(&random, &raw);
        lz_pack(buf_str(&raw), &packed);
        char *flipped = &packed.data[test_below(&random, packed.size)];
        *flipped = (char)((uint8_t)*flipped ^ (uint8_t)(1 + test_below(&random, 255)));
        struct str cut = { packed.data, 1 + test_below(&random, packed.size) };
        enum err rc = lz_unpack(cut, raw.size, &out, &e);
        CHECK("refused or of the size", rc == ERR_CORRUPT || out.size == raw.size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(rows_that_are_alike_become_small),
        cmocka_unit_test(what_is_not_packed_is_refused),
        cmocka_unit_test(damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
