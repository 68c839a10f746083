#include <string.h>

#include "base/str.h"
#include "unit/test.h"

enum { UNTOUCHED = 4711 };

/* clang-format off */
static const struct { const char *name; struct str a, b; int order; } order_cases[] = {
    { "equal",                       STR_INIT("ab"),   STR_INIT("ab"),   0 },
    { "by bytes",                    STR_INIT("ab"),   STR_INIT("ac"),  -1 },
    { "a prefix comes first",        STR_INIT("ab"),   STR_INIT("abc"), -1 },
    { "bytes before length",         STR_INIT("b"),    STR_INIT("abc"),  1 },
    { "empty comes first",           STR_INIT(""),     STR_INIT("a"),   -1 },
    { "empty equals all-zero",       STR_INIT(""),     { 0 },       0 },
    { "bytes are unsigned",          STR_INIT("\x7f"), STR_INIT("\x80"), -1 },
    { "a NUL is a byte",             STR_INIT("a\0"),  STR_INIT("a"),    1 },
};

static const struct { const char *text; int64_t min, max; bool is_valid; int64_t value; } int_cases[] = {
    { "0",                    0,         10,        true,  0 },
    { "10",                   0,         10,        true,  10 },
    { "007",                  0,         10,        true,  7 },
    { "-5",                   -5,        10,        true,  -5 },
    { "-0",                   0,         10,        true,  0 },
    { "9223372036854775807",  INT64_MIN, INT64_MAX, true,  INT64_MAX },
    { "-9223372036854775808", INT64_MIN, INT64_MAX, true,  INT64_MIN },
    { "9223372036854775808",  INT64_MIN, INT64_MAX, false, 0 },
    { "-9223372036854775809", INT64_MIN, INT64_MAX, false, 0 },
    { "99999999999999999999", INT64_MIN, INT64_MAX, false, 0 },
    { "11",                   0,         10,        false, 0 },
    { "-1",                   0,         10,        false, 0 },
    { "",                     0,         10,        false, 0 },
    { "-",                    -9,        10,        false, 0 },
    { "--1",                  -9,        10,        false, 0 },
    { "+1",                   0,         10,        false, 0 },
    { " 1",                   0,         10,        false, 0 },
    { "1 ",                   0,         10,        false, 0 },
    { "1x",                   0,         10,        false, 0 },
    { "0x1",                  0,         10,        false, 0 },
    { "1e1",                  0,         10,        false, 0 },
    { "1.0",                  0,         10,        false, 0 },
};

static const struct { const char *text; int64_t max; bool is_valid; int64_t value; } milli_cases[] = {
    { "0",       8000, true,  0 },
    { "0.5",     8000, true,  500 },
    { "2",       8000, true,  2000 },
    { "0.125",   8000, true,  125 },
    { "0.25",    8000, true,  250 },
    { "0.001",   8000, true,  1 },
    { "1.05",    8000, true,  1050 },
    { "8",       8000, true,  8000 },
    { "8.0",     8000, true,  8000 },
    { "8.001",   8000, false, 0 },
    { "9",       8000, false, 0 },
    { "0.0001",  8000, false, 0 },
    { "1.",      8000, false, 0 },
    { ".5",      8000, false, 0 },
    { ".",       8000, false, 0 },
    { "",        8000, false, 0 },
    { "-1",      8000, false, 0 },
    { "1.-5",    8000, false, 0 },
    { "1.5.0",   8000, false, 0 },
    { "1,5",     8000, false, 0 },
    { "0.5x",    8000, false, 0 },
    { "1.5",     1500, true,  1500 },
    { "1.501",   1500, false, 0 },
    { "99999999999999999999", INT64_MAX, false, 0 },
};

static const struct { const char *text; int64_t max; bool is_valid; int64_t value; } second_cases[] = {
    { "90",       100000, true,  90 },
    { "90s",      100000, true,  90 },
    { "0",        100000, true,  0 },
    { "0s",       100000, true,  0 },
    { "5m",       100000, true,  300 },
    { "2h",       100000, true,  7200 },
    { "1d",       100000, true,  86400 },
    { "1h30m",    100000, true,  5400 },
    { "1d2h3m4s", 100000, true,  93784 },
    { "90m",      100000, true,  5400 },
    { "",         100000, false, 0 },
    { "s",        100000, false, 0 },
    { "h5",       100000, false, 0 },
    { "1h30",     100000, false, 0 },
    { "30m1h",    100000, false, 0 },
    { "1h1h",     100000, false, 0 },
    { "1w",       100000, false, 0 },
    { "1H",       100000, false, 0 },
    { "-5m",      100000, false, 0 },
    { "-5",       100000, false, 0 },
    { "1.5h",     100000, false, 0 },
    { "1 h",      100000, false, 0 },
    { "2d",       100000, false, 0 },
    { "1d13601s", 100000, false, 0 },
    { "1d13600s", 100000, true,  100000 },
    { "100001",   100000, false, 0 },
    { "9999999999999999999d", INT64_MAX, false, 0 },
};

static const struct { const char *name; struct str text; bool is_valid; } text_cases[] = {
    { "empty",                       STR_INIT(""),                     true },
    { "ASCII",                       STR_INIT("hello, world"),         true },
    { "tab and newline",             STR_INIT("a\tb\n"),               true },
    { "two bytes",                   STR_INIT("gr\xc3\xbc\xc3\x9f"),   true },
    { "three bytes",                 STR_INIT("\xe2\x82\xac"),         true },
    { "four bytes",                  STR_INIT("\xf0\x9f\x9a\xa2"),     true },
    { "the first of two bytes",      STR_INIT("\xc2\x80"),             true },
    { "the first of three bytes",    STR_INIT("\xe0\xa0\x80"),         true },
    { "below the surrogates",        STR_INIT("\xed\x9f\xbf"),         true },
    { "above the surrogates",        STR_INIT("\xee\x80\x80"),         true },
    { "the first of four bytes",     STR_INIT("\xf0\x90\x80\x80"),     true },
    { "the last code point",         STR_INIT("\xf4\x8f\xbf\xbf"),     true },
    { "NUL",                         STR_INIT("a\0b"),                 false },
    { "carriage return",             STR_INIT("a\r\n"),                false },
    { "escape",                      STR_INIT("\x1b[31m"),             false },
    { "delete",                      STR_INIT("\x7f"),                 false },
    { "a continuation alone",        STR_INIT("\x80"),                 false },
    { "overlong slash",              STR_INIT("\xc0\xaf"),             false },
    { "overlong, three bytes",       STR_INIT("\xe0\x9f\xbf"),         false },
    { "overlong, four bytes",        STR_INIT("\xf0\x8f\xbf\xbf"),     false },
    { "a surrogate",                 STR_INIT("\xed\xa0\x80"),         false },
    { "past the last code point",    STR_INIT("\xf4\x90\x80\x80"),     false },
    { "no such lead",                STR_INIT("\xf5\x80\x80\x80"),     false },
    { "0xff",                        STR_INIT("\xff"),                 false },
    { "cut after one of two",        STR_INIT("\xc3"),                 false },
    { "cut after two of three",      STR_INIT("\xe2\x82"),             false },
    { "cut after three of four",     STR_INIT("\xf0\x9f\x9a"),         false },
    { "a lead instead of the rest",  STR_INIT("\xe2\x82\xc3"),         false },
    { "ASCII instead of the rest",   STR_INIT("\xc3""a"),              false },
};
/* clang-format on */

static void test_order(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, order_cases) {
        int got = str_cmp(c->a, c->b);
        CHECK(c->name, (got > 0) - (got < 0) == c->order);
        int back = str_cmp(c->b, c->a);
        CHECK(c->name, (back > 0) - (back < 0) == -c->order);
        CHECK(c->name, str_eq(c->a, c->b) == (c->order == 0));
    }
}

static void test_small_ones(void **state)
{
    (void)state;
    CHECK("of NULL", str_of(NULL).size == 0);
    CHECK("of text", str_of("abc").size == 3);
    CHECK("is", str_is(STR("abc"), "abc") && !str_is(STR("abc"), "ab"));
    CHECK("starts", str_starts(STR("abc"), STR("ab")) && str_starts(STR("abc"), STR("")));
    CHECK("does not start", !str_starts(STR("ab"), STR("abc")) && !str_starts(STR("b"), STR("a")));
    AUTO(arena) struct arena arena = { 0 };
    struct str copy = str_copy(&arena, STR("a\0b"));
    CHECK("copy", str_eq(copy, STR("a\0b")) && copy.data[3] == '\0');
    assert_string_equal(str_c(&arena, (struct str){ "abcdef", 3 }), "abc");
}

static void test_cut(void **state)
{
    (void)state;
    struct str rest = STR("amber/vision//x");
    CHECK("first", str_is(str_cut(&rest, '/'), "amber"));
    CHECK("second", str_is(str_cut(&rest, '/'), "vision"));
    CHECK("an empty part", str_is(str_cut(&rest, '/'), "") && str_is(rest, "x"));
    CHECK("the last", str_is(str_cut(&rest, '/'), "x") && rest.size == 0);
    CHECK("nothing left", str_cut(&rest, '/').size == 0);
    struct str trailing = STR("a/");
    (void)str_cut(&trailing, '/');
    CHECK("a separator at the end leaves nothing", trailing.size == 0);
}

static void test_integers(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, int_cases) {
        int64_t got = UNTOUCHED;
        CHECK(c->text, str_to_i64(str_of(c->text), c->min, c->max, &got) == c->is_valid);
        CHECK(c->text, got == (c->is_valid ? c->value : UNTOUCHED));
    }
}

static void test_milli(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, milli_cases) {
        int64_t got = UNTOUCHED;
        CHECK(c->text, str_to_milli(str_of(c->text), c->max, &got) == c->is_valid);
        CHECK(c->text, got == (c->is_valid ? c->value : UNTOUCHED));
    }
}

static void test_seconds(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, second_cases) {
        int64_t got = UNTOUCHED;
        CHECK(c->text, str_to_seconds(str_of(c->text), c->max, &got) == c->is_valid);
        CHECK(c->text, got == (c->is_valid ? c->value : UNTOUCHED));
    }
}

static void test_text(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, text_cases)
        CHECK(c->name, str_is_text(c->text) == c->is_valid);
    CHECK("controls are UTF-8", str_is_utf8(STR("a\0\r\x1b\x7f")));
    CHECK("four bytes are UTF-8", str_is_utf8(STR("\xf0\x9f\x9a\xa2")));
    CHECK("a surrogate is not", !str_is_utf8(STR("\xed\xa0\x80")));
    CHECK("nor is a cut character", !str_is_utf8(STR("a\xe2\x82")));
}

/* Every code point, encoded by the book, is text exactly when it is no control and no surrogate. */
static void test_every_code_point(void **state)
{
    (void)state;
    for (unsigned long point = 0; point <= 0x10ffff; point++) {
        char bytes[4];
        size_t size = 0;
        if (point < 0x80) {
            bytes[size++] = (char)point;
        } else if (point < 0x800) {
            bytes[size++] = (char)(0xc0 | point >> 6);
        } else if (point < 0x10000) {
            bytes[size++] = (char)(0xe0 | point >> 12);
            bytes[size++] = (char)(0x80 | (point >> 6 & 0x3f));
        } else {
            bytes[size++] = (char)(0xf0 | point >> 18);
            bytes[size++] = (char)(0x80 | (point >> 12 & 0x3f));
            bytes[size++] = (char)(0x80 | (point >> 6 & 0x3f));
        }
        if (point >= 0x80)
            bytes[size++] = (char)(0x80 | (point & 0x3f));
        bool is_control = (point < 0x20 && point != '\t' && point != '\n') || point == 0x7f;
        bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
        if (str_is_text((struct str){ bytes, size }) != (!is_control && !is_surrogate)) {
            char name[32];
            (void)snprintf(name, sizeof(name), "U+%04lX", point);
            test_fail(name, "judged wrongly", __FILE__, __LINE__);
        }
    }
}

static void test_buf(void **state)
{
    (void)state;
    AUTO(buf) struct buf buf = { 0 };
    CHECK("starts empty", buf_str(&buf).size == 0);
    buf_add_text(&buf, "ab");
    buf_add_char(&buf, 'c');
    buf_add_str(&buf, STR("de"));
    buf_add(&buf, NULL, 0);
    buf_format(&buf, "-%d-%s", 42, "x");
    assert_string_equal(buf.data, "abcde-42-x");
    buf_consume(&buf, 0);
    buf_consume(&buf, 3);
    assert_string_equal(buf.data, "de-42-x");
    buf_consume(&buf, buf.size);
    CHECK("all consumed", buf.size == 0 && buf.data[0] == '\0');
    buf_add_text(&buf, "again");
    buf_clear(&buf);
    CHECK("cleared", buf.size == 0 && buf.data[0] == '\0' && buf.capacity > 0);
    buf_clear(&(struct buf){ 0 });
}

static void test_buf_grows(void **state)
{
    (void)state;
    AUTO(buf) struct buf buf = { 0 };
    for (int i = 0; i < 5000; i++)
        buf_format(&buf, "%04d", i);
    CHECK("size", buf.size == 20000 && buf.data[buf.size] == '\0');
    CHECK("content", memcmp(buf.data + 19996, "4999", 4) == 0);
    size_t capacity = buf.capacity;
    buf_reserve(&buf, 50000);
    CHECK("reserved", buf.capacity >= buf.size + 50001 && buf.capacity > capacity);
}

static void test_hex(void **state)
{
    (void)state;
    const uint8_t bytes[4] = { 0x00, 0xff, 0x1a, 0xb2 };
    char text[9];
    uint8_t back[4] = { 9, 9, 9, 9 };
    hex_encode(bytes, sizeof(bytes), text);
    assert_string_equal(text, "00ff1ab2");
    CHECK("decodes", hex_decode(str_of(text), back, 4) && memcmp(bytes, back, 4) == 0);
    static const char *const bad[] = { "",         "00ff1ab",  "00ff1ab23", "00ff1abg",
                                       "00FF1AB2", "0x0ff1ab", " 0ff1ab2" };
    FOR_EACH_CASE (text_at, bad) {
        memset(back, 9, sizeof(back));
        CHECK(*text_at, !hex_decode(str_of(*text_at), back, 4));
        CHECK(*text_at, back[0] == 9 && back[3] == 9);
    }
    CHECK("no bytes", hex_decode(STR(""), back, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_small_ones),
        cmocka_unit_test(test_cut),   cmocka_unit_test(test_integers),
        cmocka_unit_test(test_milli), cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_text),  cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_buf),   cmocka_unit_test(test_buf_grows),
        cmocka_unit_test(test_hex),
    };
    return cmocka_run_group_tests_name("base/str", tests, NULL, NULL);
}
