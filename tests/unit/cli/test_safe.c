/* Text of others on a terminal: every kind of byte, whole and in pieces. */
#include <string.h>

#include "cli/safe.h"
#include "unit/test.h"

static const struct {
    const char *name, *text, *lines, *line;
} cases[] = {
    { "plain", "plain text ~", "plain text ~", "plain text ~" },
    { "line ends and tabs", "a\tb\nc\r\nd", "a\tb\nc\r\nd", "a\\x09b\\x0ac\\x0d\\x0ad" },
    { "a lone carriage return", "50%\r60%", "50%\\x0d60%", "50%\\x0d60%" },
    { "two of them and a line end", "\r\r\n", "\\x0d\r\n", "\\x0d\\x0d\\x0a" },
    { "one at the end", "a\r", "a\\x0d", "a\\x0d" },
    { "an escape sequence", "\033[31mred", "\\x1b[31mred", "\\x1b[31mred" },
    { "bell, backspace, delete", "\a\b\x7f", "\\x07\\x08\\x7f", "\\x07\\x08\\x7f" },
    { "letters beyond ASCII", "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
      "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
    { "C1 in UTF-8",
      "\xc2\x9b"
      "31m\xc2\x80\xc2\x9f",
      "\\xc2\\x9b31m\\xc2\\x80\\xc2\\x9f", "\\xc2\\x9b31m\\xc2\\x80\\xc2\\x9f" },
    { "what follows C1 is text", "\xc2\xa0|", "\xc2\xa0|", "\xc2\xa0|" },
    { "C1 as bytes",
      "\x9b"
      "31m",
      "\\x9b31m", "\\x9b31m" },
    { "an overlong line end", "\xc0\x8a", "\\xc0\\x8a", "\\xc0\\x8a" },
    { "an overlong escape", "\xe0\x80\x9b", "\\xe0\\x80\\x9b", "\\xe0\\x80\\x9b" },
    { "a surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80" },
    { "beyond Unicode", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80" },
    { "a character that is cut", "\xe2\x82|", "\\xe2\\x82|", "\\xe2\\x82|" },
    { "one cut by the end", "\xf0\x9f\x98", "\\xf0\\x9f\\x98", "\\xf0\\x9f\\x98" },
    { "a begin before a control", "\xc2\x1b", "\\xc2\\x1b", "\\xc2\\x1b" },
    { "a begin before a begin", "\xe2\xe2\x82\xac", "\\xe2\xe2\x82\xac", "\\xe2\xe2\x82\xac" },
    { "turned direction",
      "a\xe2\x80\xae" /* NOLINT(misc-misleading-bidirectional): it is what is tested */
      "b\xe2\x81\xa6",
      "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6", "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6" },
};

static void test_cases(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, cases) {
        AUTO(buf) struct buf lines = { 0 };
        AUTO(buf) struct buf line = { 0 };
        safe_lines(str_of(c->text), &lines);
        safe_line(str_of(c->text), &line);
        CHECK(c->name, str_is(buf_str(&lines), c->lines));
        CHECK(c->name, str_is(buf_str(&line), c->line));
    }
}

/* Wherever a text is cut, the same comes out. */
static bool is_same_in_pieces(const char *text, size_t first, size_t second, const char *lines)
{
    AUTO(buf) struct buf out = { 0 };
    struct safe_stream stream = { 0 };
    safe_add(&stream, (struct str){ text, first }, &out);
    safe_add(&stream, (struct str){ text + first, second - first }, &out);
    safe_add(&stream, str_of(text + second), &out);
    safe_end(&stream, &out);
    return str_is(buf_str(&out), lines);
}

static void test_pieces(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, cases) {
        size_t size = strlen(c->text);
        for (size_t first = 0; first <= size; first++) {
            for (size_t second = first; second <= size; second++)
                CHECK(c->name, is_same_in_pieces(c->text, first, second, c->lines));
        }
    }
}

/* Whatever comes in, in whatever pieces: the same as in one piece, and harmless. */
static void test_any_bytes(void **state)
{
    (void)state;
    static const uint8_t likely[] = { 0xc2, 0x9b, '\r', '\n', 0xe2, 0x80, 0xae, 0xf0, 0x9f, 033 };
    uint64_t seed = test_seed();
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        AUTO(buf) struct buf whole = { 0 };
        AUTO(buf) struct buf pieces = { 0 };
        AUTO(buf) struct buf again = { 0 };
        struct safe_stream stream = { 0 };
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (char)likely[test_random(&seed) % sizeof(likely)];
            if (test_random(&seed) % 4 == 0)
                bytes[i] = (char)test_random(&seed);
        }
        safe_lines((struct str){ bytes, sizeof(bytes) }, &whole);
        for (size_t at = 0; at < sizeof(bytes);) {
            size_t size = test_random(&seed) % 7;
            size = MIN_OF(size, sizeof(bytes) - at);
            safe_add(&stream, (struct str){ bytes + at, size }, &pieces);
            at += size;
        }
        safe_end(&stream, &pieces);
        safe_lines(buf_str(&whole), &again);
        CHECK("in pieces as in one", str_eq(buf_str(&whole), buf_str(&pieces)));
        CHECK("nothing is left to escape", str_eq(buf_str(&whole), buf_str(&again)));
    }
}

static void test_json(void **state)
{
    (void)state;
    AUTO(buf) struct buf out = { 0 };
    safe_json(STR("{\n  \"a\": \"\xc3\xa9\xc2\x9b\x7f\xe2\x80\xae\\u001b\"\n}"), &out);
    CHECK("escaped as JSON has it",
          str_is(buf_str(&out), "{\n  \"a\": \"\xc3\xa9\\u009b\\u007f\\u202e\\u001b\"\n}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
