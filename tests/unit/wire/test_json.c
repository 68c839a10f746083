/* The writer, the bounded reader and times as text. */
#include <string.h>

#include "base/timepoint.h"
#include "unit/test.h"
#include "wire/json_cursor.h"
#include "wire/json_read.h"

static const struct spelling {
    const char *name;
    struct str bytes;
    const char *json;
} spellings[] = {
    { "plain", { "abc", 3 }, "\"abc\"" },
    { "empty", { NULL, 0 }, "\"\"" },
    { "quotes", { "a\"b\\", 4 }, "\"a\\\"b\\\\\"" },
    { "short escapes", { "\b\t\n\f\r", 5 }, "\"\\b\\t\\n\\f\\r\"" },
    { "controls", { "\x00\x1f\x7f", 3 }, "\"\\u0000\\u001f\\u007f\"" },
    { "UTF-8",
      { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9f", 9 },
      "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9f\"" },
    { "a lone continuation", { "a\x80z", 3 }, "\"a\\ufffdz\"" },
    { "a cut sequence", { "\xe2\x82", 2 }, "\"\\ufffd\\ufffd\"" },
    { "an overlong slash", { "\xc0\xaf", 2 }, "\"\\ufffd\\ufffd\"" },
    { "a surrogate", { "\xed\xa0\x80", 3 }, "\"\\ufffd\\ufffd\\ufffd\"" },
    { "beyond Unicode", { "\xf4\x90\x80\x80", 4 }, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
    { "a bad end", { "\xf0\x9f\x90z", 4 }, "\"\\ufffd\\ufffd\\ufffdz\"" },
};

static void test_strings(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, spellings) {
        AUTO(buf) struct buf out = { 0 };
        struct json_writer w = json_writer_of(&out);
        json_add_str(&w, c->bytes);
        CHECK(c->name, str_is(buf_str(&out), c->json));
    }
}

static void test_structure(void **state)
{
    (void)state;
    AUTO(buf) struct buf out = { 0 };
    struct json_writer w = json_writer_of(&out);

    json_begin_object(&w);
    json_put_i64(&w, "low", INT64_MIN);
    json_put_u64(&w, "high", UINT64_MAX);
    json_key(&w, "list");
    json_begin_array(&w);
    json_add_null(&w);
    json_begin_array(&w);
    json_end_array(&w);
    json_begin_object(&w);
    json_end_object(&w);
    json_add_raw(&w, STR("{\"raw\":1}"));
    json_end_array(&w);
    json_key_str(&w, STR("a\"b"));
    json_add_bool(&w, false);
    json_put_bool(&w, "yes", true);
    json_put_text(&w, "text", "t");
    json_put_str(&w, "none", (struct str){ 0 });
    json_end_object(&w);
    CHECK("structure",
          str_is(buf_str(&out), "{\"low\":-9223372036854775808,\"high\":18446744073709551615,"
                                "\"list\":[null,[],{},{\"raw\":1}],\"a\\\"b\":false,\"yes\":true,"
                                "\"text\":\"t\",\"none\":\"\"}"));
}

static const struct hostile {
    const char *name;
    struct str text;
    enum err want;
} hostile[] = {
    { "nothing", { "", 0 }, ERR_INVALID },
    { "blank", { " ", 1 }, ERR_INVALID },
    { "rubbish after it", { "{} x", 4 }, ERR_INVALID },
    { "two documents", { "{}{}", 4 }, ERR_INVALID },
    { "cut short", { "{\"a\":", 5 }, ERR_INVALID },
    { "a duplicate key", { "{\"a\":1,\"a\":2}", 13 }, ERR_INVALID },
    { "a deep duplicate key", { "[{\"b\":{\"a\":1,\"a\":2}}]", 21 }, ERR_INVALID },
    { "a trailing comma", { "[1,]", 4 }, ERR_INVALID },
    { "a comment", { "/**/1", 5 }, ERR_INVALID },
    { "single quotes", { "'a'", 3 }, ERR_INVALID },
    { "NaN", { "NaN", 3 }, ERR_INVALID },
    { "a leading zero", { "[01]", 4 }, ERR_INVALID },
    { "beyond 64 bits", { "[9223372036854775808]", 21 }, ERR_INVALID },
    { "a number too large", { "[1e400]", 7 }, ERR_INVALID },
    { "bad UTF-8", { "\"\xff\"", 3 }, ERR_INVALID },
    { "an escaped NUL", { "\"\\u0000\"", 8 }, ERR_INVALID },
    { "a raw NUL", { "\"\0\"", 3 }, ERR_INVALID },
    { "a lone surrogate", { "\"\\ud800\"", 8 }, ERR_INVALID },
    { "a raw newline", { "\"\n\"", 3 }, ERR_INVALID },
};

static void test_hostile(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, hostile) {
        AUTO(json) json_t *json = NULL;
        struct error e = { 0 };
        CHECK(c->name, json_read(c->text, 0, &json, &e) == c->want);
        CHECK(c->name, json == NULL && e.text[0] != '\0');
    }
}

static void nested(struct buf *out, size_t depth)
{
    buf_clear(out);
    for (size_t i = 0; i < depth; i++)
        buf_add_char(out, '[');
    for (size_t i = 0; i < depth; i++)
        buf_add_char(out, ']');
}

static void test_bounds(void **state)
{
    (void)state;
    AUTO(buf) struct buf text = { 0 };
    AUTO(json) json_t *fits = NULL;
    json_t *none = NULL;

    nested(&text, JSON_DEPTH_MAX);
    CHECK("as deep as allowed", json_read(buf_str(&text), 0, &fits, NULL) == ERR_OK);
    nested(&text, JSON_DEPTH_MAX + 1);
    CHECK("one too deep", json_read(buf_str(&text), 0, &none, NULL) == ERR_LIMIT);
    nested(&text, 100000);
    CHECK("far too deep", json_read(buf_str(&text), 0, &none, NULL) == ERR_LIMIT);
    CHECK("too large", json_read(STR("[1,2,3]"), 6, &none, NULL) == ERR_LIMIT);
    CHECK("brackets in strings do not count",
          json_read(STR("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[\""), 0, &none, NULL) ==
              ERR_OK);
    json_decref(none);
}

static void test_trees(void **state)
{
    (void)state;
    static const char text[] =
        "{\"z\":[1,-2,null,true,false,1.5,1e+300],\"a\":{\"b\":\"\xc3\xa9\\n\"},\"m\":{}}";
    AUTO(json) json_t *json = NULL;
    AUTO(buf) struct buf out = { 0 };
    struct error e = { 0 };
    struct json_writer w = json_writer_of(&out);

    CHECK_OK("reads", json_read(STR(text), 0, &json, &e), &e);
    json_write_tree(&w, json);
    CHECK("members keep their order",
          strncmp(out.data, "{\"z\":[1,-2,null,true,false,1.5,", 30) == 0);
    AUTO(json) json_t *again = NULL;
    CHECK_OK("reads again", json_read(buf_str(&out), 0, &again, &e), &e);
    CHECK("is the same", json_equal(json, again) == 1);
}

/* ---- the cursor against jansson ------------------------------------------------------------ */

static bool cursor_takes(struct str text)
{
    struct json_cursor c = json_cursor_of(text);
    struct str value;

    return json_cursor_skip(&c, &value) && json_cursor_end(&c);
}

/* What the cursor lets pass on purpose: reals beyond doubles, integers beyond 64 bits and duplicate
 * keys are for whoever wants the value, and tables refuse them. */
static bool jansson_takes(struct str text)
{
    json_error_t why;
    json_t *json =
        json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &why);

    json_decref(json);
    return json != NULL;
}

static bool is_about_range(struct str text)
{
    json_error_t why;
    json_t *json =
        json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &why);

    json_decref(json);
    return json == NULL && json_error_code(&why) == json_error_numeric_overflow;
}

static const char *const seeds[] = {
    "{\"a\":[1,-2.5e3,true,false,null,\"x\\u00e9\\ud83d\\udc1f\\n\"],\"b\":{\"c\":{}}}",
    "[[],[[]],{\"k\":[]},0,-0,0.5,1E+2]",
    "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9f\\\\ \\/\"",
    " \t\r\n{ \"a\" : 1 , \"b\" : [ 2 , 3 ] } ",
    "123456789012345678",
};

/* One to three random changes: a byte, a cut, a doubling. */
static void mutate(uint64_t *seed, struct buf *text)
{
    static const char bytes[] = "{}[]\",:\\0123456789.-+eEtrufalsn \n\x00\x1f\x7f\x80\xc3\xe2\xff";

    for (size_t n = 1 + test_below(seed, 3); n > 0 && text->size > 0; n--) {
        size_t at = test_below(seed, text->size);
        switch (test_below(seed, 3)) {
        case 0:
            text->data[at] = bytes[test_below(seed, sizeof(bytes) - 1)];
            break;
        case 1:
            memmove(text->data + at, text->data + at + 1, text->size - at - 1);
            text->size--;
            break;
        default:
            buf_reserve(text, 1);
            memmove(text->data + at + 1, text->data + at, text->size - at);
            text->size++;
            break;
        }
    }
}

static void test_cursor_against_jansson(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    size_t taken = 0;

    for (int round = 0; round < 200000; round++) {
        AUTO(buf) struct buf text = { 0 };
        buf_add_text(&text, seeds[test_below(&seed, COUNT_OF(seeds))]);
        mutate(&seed, &text);
        bool ours = cursor_takes(buf_str(&text));
        /* jansson takes a NUL behind a document for its end; we do not. */
        if (memchr(text.data, '\0', text.size) != NULL) {
            CHECK("no NUL is taken", !ours);
            continue;
        }
        if (ours != jansson_takes(buf_str(&text)) && !is_about_range(buf_str(&text)))
            test_fail(text.data, ours ? "taken, but jansson refuses" : "refused, but jansson takes",
                      __FILE__, __LINE__);
        taken += ours;
    }
    CHECK("some are taken", taken > 1000 && taken < 199000);
}

/* Values too, not only whether they are there: both read the same strings. */
static void test_cursor_strings(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    static const char text[] = "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u20ac\\uD83D\\uDC1Fz\"";
    struct json_cursor c = json_cursor_of(STR(text));
    AUTO(json) json_t *json = NULL;
    struct str value;

    CHECK("reads", json_read(STR(text), 0, &json, NULL) == ERR_OK);
    CHECK("peeks", json_cursor_peek(&c) == JSON_KIND_STRING);
    CHECK("takes", json_cursor_string(&c, &arena, &value));
    CHECK("is the same", str_is(value, json_string_value(json)));
    CHECK("is at its end", json_cursor_end(&c));
}

static void test_cursor_errors(void **state)
{
    (void)state;
    struct json_cursor c = json_cursor_of(STR("{\n \"a\": [1,\n  tru]}"));
    struct str value;
    struct error e = { 0 };

    CHECK("refuses", !json_cursor_skip(&c, &value));
    CHECK("code", json_cursor_error(&c, &e) == ERR_INVALID);
    CHECK("where", strstr(e.text, "line 3, column 3") != NULL);
}

static void test_compact(void **state)
{
    (void)state;
    AUTO(buf) struct buf out = { 0 };

    json_compact(&out, STR(" { \"a b\" : [ 1 , \"x\\\" y\" ] }\n"));
    CHECK("without blanks", str_is(buf_str(&out), "{\"a b\":[1,\"x\\\" y\"]}"));
}

static const struct moment {
    const char *text;
    bool is_valid;
    int64_t ns;
} moments[] = {
    { "1970-01-01T00:00:00Z", true, 0 },
    { "2000-02-29T23:59:59Z", true, INT64_C(951868799) * NS_PER_S },
    { "2026-11-30T07:28:27.123Z", true, INT64_C(1796023707123) * NS_PER_MS },
    { "2026-11-30T07:28:27.123456789Z", true, INT64_C(1796023707123456789) },
    { "2026-11-30T07:28:27.5Z", true, INT64_C(1796023707500) * NS_PER_MS },
    { "1900-01-01T00:00:00Z", false, 0 },
    { "2100-02-29T00:00:00Z", false, 0 },
    { "2026-13-01T00:00:00Z", false, 0 },
    { "2026-00-01T00:00:00Z", false, 0 },
    { "2026-01-32T00:00:00Z", false, 0 },
    { "2026-01-01T24:00:00Z", false, 0 },
    { "2026-01-01T00:00:60Z", false, 0 },
    { "2026-01-01 00:00:00Z", false, 0 },
    { "2026-01-01T00:00:00", false, 0 },
    { "2026-01-01T00:00:00+01:00", false, 0 },
    { "2026-01-01T00:00:00.Z", false, 0 },
    { "2026-01-01T00:00:00.1234567890Z", false, 0 },
    { "2026-01-01T00:00:00.-1Z", false, 0 },
    { "2026-01-01T-1:00:00Z", false, 0 },
    { "", false, 0 },
    { "Z", false, 0 },
};

static void test_moments(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, moments) {
        int64_t ns = -1;
        CHECK(c->text, wall_parse(str_of(c->text), &ns) == c->is_valid);
        CHECK(c->text, ns == (c->is_valid ? c->ns : -1));
    }
}

static void test_moments_round_trip(void **state)
{
    (void)state;
    uint64_t seed = test_seed();

    for (int i = 0; i < 20000; i++) {
        char text[WALL_TEXT_MAX];
        struct wall at = { (int64_t)test_below(&seed, 9000000000000u) * NS_PER_MS };
        int64_t ns = 0;
        CHECK("parses", wall_parse(str_of(wall_text(at, text)), &ns));
        CHECK(text, ns == at.ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_moments_round_trip),
        cmocka_unit_test(test_cursor_against_jansson),
        cmocka_unit_test(test_cursor_strings),
        cmocka_unit_test(test_cursor_errors),
        cmocka_unit_test(test_compact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
