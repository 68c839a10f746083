#include <string.h>

#include "base/id.h"
#include "unit/test.h"

static const uint8_t sip_key[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

/* The published vectors: the message is 0, 1, 2, ... of the given size. */
static const struct {
    size_t size;
    uint64_t hash;
} sip_cases[] = {
    { 0, 0x726fdb47dd0e0e31 },  { 1, 0x74f839c593dc67fd },  { 2, 0x0d6c8009d9a94f5a },
    { 3, 0x85676696d7fb7e2d },  { 4, 0xcf2794e0277187b7 },  { 5, 0x18765564cd99a68d },
    { 6, 0xcbc9466e58fee3ce },  { 7, 0xab0200f58b01d137 },  { 8, 0x93f5f5799a932462 },
    { 9, 0x9e0082df0ba9e4b0 },  { 10, 0x7a5dbbc594ddb9f3 }, { 11, 0xf4b32f46226bada7 },
    { 12, 0x751e8fbc860ee5fb }, { 13, 0x14ea5627c0843d90 }, { 14, 0xf723ca908e7af2ee },
    { 15, 0xa129ca6149be45e5 }, { 16, 0x3f2acc7f57c29bdb }, { 31, 0x32d892fad841c342 },
    { 32, 0x7127512f72f27cce }, { 33, 0xa7f32346f95978e3 }, { 63, 0x958a324ceb064572 },
};

static void test_siphash_vectors(void **state)
{
    (void)state;
    uint8_t message[64];
    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (uint8_t)i;
    FOR_EACH_CASE (c, sip_cases) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%zu bytes", c->size);
        CHECK(name, siphash(sip_key, message, c->size) == c->hash);
    }
    CHECK("nothing may be NULL", siphash(sip_key, NULL, 0) == sip_cases[0].hash);
}

/* The 128-bit variant over the same key and the 16 bytes 0..15, as OpenSSL computes it. */
static void test_derive(void **state)
{
    (void)state;
    struct id id = id_derive(sip_key, 0x0706050403020100, 0x0f0e0d0c0b0a0908);
    CHECK("low half", id.lo == 0xbb54b067caa4e26e);
    CHECK("high half", id.hi == 0x77052385bf1533fd);
    CHECK("repeats", id_eq(id_derive(sip_key, 1, 2), id_derive(sip_key, 1, 2)));
    CHECK("sequence matters", !id_eq(id_derive(sip_key, 1, 2), id_derive(sip_key, 2, 2)));
    CHECK("index matters", !id_eq(id_derive(sip_key, 1, 2), id_derive(sip_key, 1, 3)));
    CHECK("order matters", !id_eq(id_derive(sip_key, 1, 2), id_derive(sip_key, 2, 1)));
}

static void test_text_round_trip(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (enum id_kind kind = ID_TENANT; kind < ID_KIND_COUNT; kind++) {
        for (size_t i = 0; i < 200; i++) {
            struct id id = { test_random(&seed), test_random(&seed) };
            if (i == 0)
                id = (struct id){ UINT64_MAX, UINT64_MAX };
            if (i == 1)
                id = (struct id){ 0, 0 };
            char text[ID_TEXT_MAX];
            struct id back = { 1, 1 };
            CHECK("returns its buffer", id_text(kind, id, text) == text);
            CHECK("has its prefix", str_starts(str_of(text), str_of(id_prefix(kind))));
            CHECK("has its size", strlen(text) == strlen(id_prefix(kind)) + ID_DIGITS);
            CHECK("parses", id_parse(kind, str_of(text), &back));
            CHECK("is the same", id_eq(id, back));
            CHECK("is of its kind", id_is_kind(kind, str_of(text)));
        }
    }
}

static void test_text_sorts_as_the_id(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (size_t i = 0; i < 2000; i++) {
        struct id a = { test_random(&seed) >> (i % 64), test_random(&seed) };
        struct id b = { i % 3 == 0 ? a.hi : test_random(&seed) >> (i % 64), test_random(&seed) };
        char text_a[ID_TEXT_MAX];
        char text_b[ID_TEXT_MAX];
        int by_text = strcmp(id_text(ID_NODE, a, text_a), id_text(ID_NODE, b, text_b));
        CHECK("same order", (by_text < 0) == (id_cmp(a, b) < 0));
        CHECK("same order", (by_text > 0) == (id_cmp(a, b) > 0));
        CHECK("equal to itself", id_cmp(a, a) == 0);
    }
}

/* clang-format off */
static const struct { const char *name; struct str text; } refused[] = {
    { "nothing",                STR_INIT("") },
    { "the prefix alone",       STR_INIT("wl_") },
    { "another kind",           STR_INIT("ten_00000000000000000000000000") },
    { "no prefix",              STR_INIT("00000000000000000000000000") },
    { "one digit short",        STR_INIT("wl_0000000000000000000000000") },
    { "one digit long",         STR_INIT("wl_000000000000000000000000000") },
    { "upper case",             STR_INIT("wl_0000000000000000000000000A") },
    { "upper case prefix",      STR_INIT("WL_00000000000000000000000000") },
    { "a letter left out: i",   STR_INIT("wl_0000000000000000000000000i") },
    { "a letter left out: l",   STR_INIT("wl_0000000000000000000000000l") },
    { "a letter left out: o",   STR_INIT("wl_0000000000000000000000000o") },
    { "a letter left out: u",   STR_INIT("wl_0000000000000000000000000u") },
    { "a blank",                STR_INIT("wl_ 0000000000000000000000000") },
    { "a NUL",                  STR_INIT("wl_0000000000000000000000000\0") },
    { "130 bits",               STR_INIT("wl_80000000000000000000000000") },
    { "129 bits, all ones",     STR_INIT("wl_zzzzzzzzzzzzzzzzzzzzzzzzzz") },
};
/* clang-format on */

static void test_refusals(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, refused) {
        struct id id = { 7, 8 };
        CHECK(c->name, !id_parse(ID_WORKLOAD, c->text, &id));
        CHECK(c->name, id.hi == 7 && id.lo == 8);
        CHECK(c->name, !id_is_kind(ID_WORKLOAD, c->text));
    }
}

static void test_prefixes_differ(void **state)
{
    (void)state;
    for (enum id_kind kind = ID_TENANT; kind < ID_KIND_COUNT; kind++) {
        const char *prefix = id_prefix(kind);
        size_t size = strlen(prefix);
        CHECK("ends with a bar", size >= 3 && size <= 4 && prefix[size - 1] == '_');
        for (enum id_kind other = ID_TENANT; other < kind; other++)
            CHECK("unique", strcmp(prefix, id_prefix(other)) != 0);
    }
}

static void test_ids_in_time(void **state)
{
    (void)state;
    struct id random = { 0x0123456789abcdef, 0xfedcba9876543210 };
    struct wall at = { INT64_C(1800000000123) * NS_PER_MS + 999999 };
    struct id id = id_in_time(random, at);
    CHECK("milliseconds, then what was random",
          id.hi == (UINT64_C(1800000000123) << 16 | 0xcdef) && id.lo == random.lo);
    struct id later = id_in_time((struct id){ 0, 0 }, (struct wall){ at.ns + NS_PER_MS });
    CHECK("later ones come later", id_cmp(id, later) < 0);
    struct id sibling = id_beside(later, random);
    CHECK("beside", sibling.hi >> 16 == later.hi >> 16 && (sibling.hi & 0xffff) == 0xcdef &&
                        sibling.lo == random.lo);
}

static void test_none(void **state)
{
    (void)state;
    CHECK("zero is none", id_is_none((struct id){ 0, 0 }));
    CHECK("high is not", !id_is_none((struct id){ 1, 0 }));
    CHECK("low is not", !id_is_none((struct id){ 0, 1 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_siphash_vectors), cmocka_unit_test(test_derive),
        cmocka_unit_test(test_text_round_trip), cmocka_unit_test(test_text_sorts_as_the_id),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_prefixes_differ),
        cmocka_unit_test(test_ids_in_time),     cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests_name("base/id", tests, NULL, NULL);
}
