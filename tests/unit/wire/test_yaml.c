/* Manifests: what is read, and the hostile ones that are refused with a place. */
#include <string.h>

#include "unit/test.h"
#include "wire/yaml.h"

static const struct good {
    const char *name;
    const char *yaml;
    const char *json;
} good[] = {
    { "nothing", "", "[]" },
    { "comments only", "# nothing\n---\n# nothing either\n", "[]" },
    { "a mapping", "a: 1\nb: text\n", "[{\"a\":1,\"b\":\"text\"}]" },
    { "several documents", "a: 1\n---\nb: 2\n---\nc: 3\n", "[{\"a\":1},{\"b\":2},{\"c\":3}]" },
    { "types", "[1, -2, true, false, null, ~, word, 0x10, 010, yes, 1.5, 1e3]",
      "[[1,-2,true,false,null,null,\"word\",\"0x10\",\"010\",\"yes\",\"1.5\",\"1e3\"]]" },
    { "quoted is text", "[\"1\", 'true', \"null\"]", "[[\"1\",\"true\",\"null\"]]" },
    { "beyond 64 bits is text", "- 9223372036854775808\n- 9223372036854775807",
      "[[\"9223372036854775808\",9223372036854775807]]" },
    { "nesting", "a:\n  - b: [1]\n    c: {d: e}\n", "[{\"a\":[{\"b\":[1],\"c\":{\"d\":\"e\"}}]}]" },
    { "a block of text", "run: |\n  one\n  two\n", "[{\"run\":\"one\\ntwo\\n\"}]" },
    { "a null value", "a:\nb: 1\n", "[{\"a\":null,\"b\":1}]" },
    { "numbers as keys are text", "1: a\n", "[{\"1\":\"a\"}]" },
    { "JSON is YAML", "{\"a\": [1, \"x\"], \"b\": {}}", "[{\"a\":[1,\"x\"],\"b\":{}}]" },
    { "an empty key", "'': x", "[{\"\":\"x\"}]" },
    { "a byte order mark",
      "\xef\xbb\xbf"
      "a: 1",
      "[{\"a\":1}]" },
};

static void test_good(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, good) {
        AUTO(json) json_t *json = NULL;
        AUTO(buf) struct buf out = { 0 };
        struct error e = { 0 };
        struct json_writer w = json_writer_of(&out);
        CHECK_OK(c->name, yaml_read(str_of(c->yaml), &json, &e), &e);
        json_write_tree(&w, json);
        CHECK(c->name, str_is(buf_str(&out), c->json));
    }
}

static const struct bad {
    const char *name;
    struct str yaml;
    const char *text; /* part of the message */
} bad[] = {
    { "an anchor", { "a: &x 1", 7 }, "line 1, column 4" },
    { "an anchor on a list", { "a: &x [1]", 9 }, "anchors" },
    { "an alias", { "a: 1\nb: *a", 10 }, "aliases" },
    { "a tag", { "a: !!str 1", 10 }, "tags" },
    { "a tag on a mapping", { "a: !x {}", 8 }, "tags" },
    { "a duplicate key", { "a: 1\nb: 2\na: 3", 14 }, "twice at line 3, column 1" },
    { "a merge key", { "<<: {a: 1}", 10 }, "merge key" },
    { "a mapping as key", { "{a: b}: c", 9 }, "key that is not text" },
    { "a list as key", { "? [a]\n: c", 9 }, "key that is not text" },
    { "a directive", { "%YAML 1.1\n---\na: 1", 18 }, "directives" },
    { "a tab as indent", { "a:\n\tb: 1", 8 }, "line 2" },
    { "not closed", { "a: [1, 2", 8 }, "line" },
    { "not UTF-8", { "a: \xff", 4 }, "" },
    { "a NUL", { "a: \"\\0\"", 7 }, "NUL" },
    { "a NUL in a key", { "\"a\\0b\": 1", 9 }, "NUL" },
    { "a control character", { "a: \x01", 4 }, "" },
    { "UTF-16",
      { "\xff\xfe"
        "a\0:\0 \0"
        "1\0",
        10 },
      "" },
};

static void test_bad(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, bad) {
        json_t *json = NULL;
        struct error e = { 0 };
        CHECK(c->name, yaml_read(c->yaml, &json, &e) == ERR_INVALID);
        CHECK(c->name, json == NULL && e.text[0] != '\0');
        CHECK(e.text, strstr(e.text, c->text) != NULL);
    }
}

static void test_limits(void **state)
{
    (void)state;
    AUTO(buf) struct buf text = { 0 };
    json_t *json = NULL;
    struct error e = { 0 };

    for (int i = 0; i < 100000; i++)
        buf_add_char(&text, '[');
    CHECK("deep", yaml_read(buf_str(&text), &json, &e) == ERR_LIMIT);
    buf_clear(&text);
    for (int i = 0; i < YAML_DOCUMENTS_MAX + 1; i++)
        buf_add_text(&text, "--- a\n");
    CHECK("many documents", yaml_read(buf_str(&text), &json, &e) == ERR_LIMIT);
    buf_clear(&text);
    buf_reserve(&text, YAML_BYTES_MAX + 1);
    memset(text.data, ' ', YAML_BYTES_MAX + 1);
    text.size = YAML_BYTES_MAX + 1;
    CHECK("large", yaml_read(buf_str(&text), &json, &e) == ERR_LIMIT);
    CHECK("nothing was made", json == NULL);
}

static void test_lines(void **state)
{
    (void)state;
    AUTO(json) json_t *json = NULL;
    AUTO(yaml_marks) struct yaml_marks marks = { 0 };
    struct error e = { 0 };
    const char *text = "# a comment\na: 1\nb:\n  - x\n\n  - {c: [true, 7]}\n---\nd: |\n  long\n";
    CHECK_OK("read", yaml_read_marked(str_of(text), &json, &marks, &e), &e);
    const json_t *first = json_array_get(json, 0);
    const json_t *list = json_object_get(first, "b");
    const json_t *inner = json_object_get(json_array_get(list, 1), "c");
    CHECK("of a document", yaml_line(&marks, first) == 2);
    CHECK("of a number", yaml_line(&marks, json_object_get(first, "a")) == 2);
    CHECK("of text in a list", yaml_line(&marks, json_array_get(list, 0)) == 4);
    CHECK("behind an empty line", yaml_line(&marks, json_array_get(inner, 1)) == 6);
    CHECK("true is nowhere", yaml_line(&marks, json_array_get(inner, 0)) == 0);
    CHECK("of the next document",
          yaml_line(&marks, json_object_get(json_array_get(json, 1), "d")) == 8);
    CHECK("what is not of it", yaml_line(&marks, NULL) == 0);
}

static void test_nothing(void **state)
{
    (void)state;
    AUTO(json) json_t *json = NULL;
    struct error e = { 0 };
    CHECK_OK("no text", yaml_read((struct str){ NULL, 0 }, &json, &e), &e);
    CHECK("no documents", json_array_size(json) == 0);
}

/* Random damage never crashes, and what is read is a list of documents. */
static void test_damage(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    static const char manifest[] =
        "kind: workload\nmetadata:\n  name: a\nspec:\n  command: [sh, -c, "
        "\"x\"]\n  env: {A: '1'}\n---\nkind: project\n";

    for (int round = 0; round < 20000; round++) {
        AUTO(json) json_t *json = NULL;
        char text[sizeof(manifest)];
        memcpy(text, manifest, sizeof(manifest));
        for (size_t n = test_below(&seed, 4) + 1; n > 0; n--)
            text[test_below(&seed, sizeof(manifest) - 1)] =
                "&*!|>[]{}:,-?#\"'\n\t% \\a0"[test_below(&seed, 22)];
        enum err rc = yaml_read((struct str){ text, sizeof(manifest) - 1 }, &json, NULL);
        CHECK("read or not", (rc == ERR_OK) == json_is_array(json));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),  cmocka_unit_test(test_bad),     cmocka_unit_test(test_limits),
        cmocka_unit_test(test_lines), cmocka_unit_test(test_nothing), cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
