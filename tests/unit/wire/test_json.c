/* The writer, the bounded reader and times as text. */
#include <string.h>

#include "base/timepoint.h"
#include "unit/test.h"
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
