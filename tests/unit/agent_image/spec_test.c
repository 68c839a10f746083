/* Digests, indexes, manifests and configurations, good and hostile. */
#include <string.h>

#include "agent/image/spec.h"
#include "unit/test.h"

#define HEX_A         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B         "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEX_0         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define LAYER_TYPE    "application/vnd.oci.image.layer.v1.tar+gzip"

static void digests_have_one_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
    } cases[] = {
        { "sha256:" HEX_A, true },
        { "sha256:AAAAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
        { "sha256:" HEX_A "a", false },
        { "sha256:aaaa", false },
        { "sha256:", false },
        { "sha512:" HEX_A, false },
        { HEX_A, false },
        { "", false },
        { "sha256:../../../../../../etc/passwd../../../../../../etc/passwd......", false },
    };
    FOR_EACH_CASE (c, cases) {
        struct image_digest digest;
        char text[IMAGE_DIGEST_TEXT_MAX];
        CHECK(c->text, image_digest_parse(str_of(c->text), &digest) == c->is_good);
        CHECK(c->text, !c->is_good || strcmp(image_digest_text(&digest, text), c->text) == 0);
    }
    struct image_digest empty = image_digest_of("", 0);
    char hex[IMAGE_DIGEST_HEX_MAX];
    CHECK("known answer", strcmp(image_digest_hex(&empty, hex), HEX_0) == 0);
    AUTO(image_hash) struct image_hash *hash = image_hash_new();
    image_hash_add(hash, "ab", 2);
    image_hash_add(hash, "c", 1);
    struct image_digest pieces = image_hash_end(hash);
    struct image_digest whole = image_digest_of("abc", 3);
    CHECK("in pieces", image_digest_eq(&pieces, &whole));
}

#define ENTRY(digest, more)                                                                        \
    "{\"mediaType\":\"" MANIFEST_TYPE "\",\"digest\":\"" digest "\"" more "}"
#define NAMED(name)           ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"" name "\"}"
#define PLATFORM(os, machine) ",\"platform\":{\"os\":\"" os "\",\"architecture\":\"" machine "\"}"
#define INDEX(entries)        "{\"schemaVersion\":2,\"manifests\":[" entries "]}"

static void an_index_gives_the_image_that_fits(void **state)
{
    (void)state;
#if defined(__x86_64__)
#define HERE      "amd64"
#define ELSEWHERE "arm64"
#else
#define HERE      "arm64"
#define ELSEWHERE "amd64"
#endif
    static const struct {
        const char *name;
        const char *json;
        const char *wanted; /* NULL: any */
        const char *digest; /* NULL: refused */
    } cases[] = {
        { "the only one", INDEX(ENTRY("sha256:" HEX_A, "")), NULL, "sha256:" HEX_A },
        { "by platform",
          INDEX(ENTRY("sha256:" HEX_A, PLATFORM("linux", ELSEWHERE)) "," ENTRY(
              "sha256:" HEX_B, PLATFORM("linux", HERE))),
          NULL, "sha256:" HEX_B },
        { "by name",
          INDEX(ENTRY("sha256:" HEX_A, NAMED("one")) "," ENTRY("sha256:" HEX_B, NAMED("two"))),
          "two", "sha256:" HEX_B },
        { "two that fit", INDEX(ENTRY("sha256:" HEX_A, "") "," ENTRY("sha256:" HEX_B, "")), NULL,
          NULL },
        { "no such name", INDEX(ENTRY("sha256:" HEX_A, NAMED("one"))), "two", NULL },
        { "another machine", INDEX(ENTRY("sha256:" HEX_A, PLATFORM("linux", ELSEWHERE))), NULL,
          NULL },
        { "another system", INDEX(ENTRY("sha256:" HEX_A, PLATFORM("windows", HERE))), NULL, NULL },
        { "empty", INDEX(""), NULL, NULL },
        { "path for a digest", INDEX(ENTRY("sha256:../../etc/passwd", "")), NULL, NULL },
        { "no list", "{\"manifests\":{}}", NULL, NULL },
        { "no object", "[]", NULL, NULL },
        { "no JSON", "manifests", NULL, NULL },
        { "nothing", "", NULL, NULL },
        { "said twice", "{\"manifests\":[],\"manifests\":[]}", NULL, NULL },
    };
    FOR_EACH_CASE (c, cases) {
        struct error e = { 0 };
        struct image_digest digest;
        bool is_index = true;
        char text[IMAGE_DIGEST_TEXT_MAX];
        enum err rc = image_index_parse(str_of(c->json), c->wanted, &digest, &is_index, &e);
        CHECK(c->name, (rc == ERR_OK) == (c->digest != NULL));
        CHECK(c->name, rc != ERR_OK || strcmp(image_digest_text(&digest, text), c->digest) == 0);
        CHECK(c->name, rc != ERR_OK || !is_index);
        CHECK(c->name, rc == ERR_OK || e.text[0] != '\0');
    }
}

#define CONFIG "\"config\":{\"digest\":\"sha256:" HEX_A "\",\"size\":7}"
#define LAYER  "{\"mediaType\":\"" LAYER_TYPE "\",\"digest\":\"sha256:" HEX_B "\",\"size\":9}"

static void manifests_are_read_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *json;
        bool is_good;
    } cases[] = {
        { "plain", "{" CONFIG ",\"layers\":[" LAYER "]}", true },
        { "two layers", "{" CONFIG ",\"layers\":[" LAYER "," LAYER "]}", true },
        { "with its type",
          "{\"mediaType\":\"" MANIFEST_TYPE "\"," CONFIG ",\"layers\":[" LAYER "]}", true },
        { "another type", "{\"mediaType\":\"text/plain\"," CONFIG ",\"layers\":[" LAYER "]}",
          false },
        { "no layer", "{" CONFIG ",\"layers\":[]}", false },
        { "no layers", "{" CONFIG "}", false },
        { "no config", "{\"layers\":[" LAYER "]}", false },
        { "encrypted layer",
          "{" CONFIG ",\"layers\":[{\"mediaType\":\"" LAYER_TYPE
          "+encrypted\",\"digest\":\"sha256:" HEX_B "\",\"size\":9}]}",
          false },
        { "layer without a size",
          "{" CONFIG ",\"layers\":[{\"mediaType\":\"" LAYER_TYPE "\",\"digest\":\"sha256:" HEX_B
          "\"}]}",
          false },
        { "layer of negative size",
          "{" CONFIG ",\"layers\":[{\"mediaType\":\"" LAYER_TYPE "\",\"digest\":\"sha256:" HEX_B
          "\",\"size\":-1}]}",
          false },
        { "layer that is a text", "{" CONFIG ",\"layers\":[\"sha256:" HEX_B "\"]}", false },
    };
    FOR_EACH_CASE (c, cases) {
        struct error e = { 0 };
        struct image_manifest manifest;
        enum err rc = image_manifest_parse(str_of(c->json), &manifest, &e);
        CHECK(c->name, (rc == ERR_OK) == c->is_good);
        CHECK(c->name, rc != ERR_OK || (manifest.config_size == 7 && manifest.layers[0].size == 9));
    }
}

static void the_number_of_layers_is_bounded(void **state)
{
    (void)state;
    struct error e;
    struct image_manifest manifest;
    for (int count = IMAGE_LAYERS_MAX; count <= IMAGE_LAYERS_MAX + 1; count++) {
        AUTO(buf) struct buf json = { 0 };
        buf_add_text(&json, "{" CONFIG ",\"layers\":[");
        for (int i = 0; i < count; i++)
            buf_format(&json, "%s" LAYER, i > 0 ? "," : "");
        buf_add_text(&json, "]}");
        enum err rc = image_manifest_parse(buf_str(&json), &manifest, &e);
        CHECK("bound", (rc == ERR_OK) == (count == IMAGE_LAYERS_MAX));
    }
}

static void deep_and_large_texts_are_refused(void **state)
{
    (void)state;
    struct error e;
    struct image_manifest manifest;
    AUTO(buf) struct buf deep = { 0 };
    for (int i = 0; i < 100000; i++)
        buf_add_text(&deep, "{\"a\":");
    CHECK("deep", image_manifest_parse(buf_str(&deep), &manifest, &e) == ERR_INVALID);
    AUTO(buf) struct buf large = { 0 };
    buf_reserve(&large, IMAGE_JSON_MAX + 1);
    memset(large.data, ' ', IMAGE_JSON_MAX + 1);
    large.size = IMAGE_JSON_MAX + 1;
    CHECK("large", image_manifest_parse(buf_str(&large), &manifest, &e) == ERR_LIMIT);
}

static void diff_ids_are_all_digests(void **state)
{
    (void)state;
    struct error e;
    struct image_digest ids[IMAGE_LAYERS_MAX];
    size_t count = 0;
    CHECK_OK("two",
             image_diff_ids_parse(
                 STR("{\"rootfs\":{\"diff_ids\":[\"sha256:" HEX_A "\",\"sha256:" HEX_B "\"]}}"),
                 ids, &count, &e),
             &e);
    CHECK("two", count == 2 && ids[1].bytes[0] == 0xbb);
    static const char *const bad[] = {
        "{}",
        "{\"rootfs\":{\"diff_ids\":[]}}",
        "{\"rootfs\":{\"diff_ids\":[\"x\"]}}",
        "{\"rootfs\":{\"diff_ids\":[null]}}",
        "{\"rootfs\":[]}",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(bad[i], image_diff_ids_parse(str_of(bad[i]), ids, &count, &e) != ERR_OK);
}

/* Random damage to good texts: an answer or an error, never a crash. */
static void damaged_texts_do_no_harm(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"mediaType\":\"" MANIFEST_TYPE "\"," CONFIG ",\"layers\":[" LAYER "," LAYER "]}",
        INDEX(ENTRY("sha256:" HEX_A, NAMED("one"))),
        "{\"config\":{\"Entrypoint\":[\"a\"],\"Env\":[\"A=b\"]},\"rootfs\":{\"diff_ids\":["
        "\"sha256:" HEX_A "\"]}}",
    };
    uint64_t seed = test_seed();
    for (int round = 0; round < 5000; round++) {
        char text[600];
        size_t size = strlen(texts[round % 3]);
        memcpy(text, texts[round % 3], size);
        for (size_t i = 0; i <= test_below(&seed, 3); i++)
            text[test_below(&seed, size)] = (char)test_below(&seed, 256);
        struct str json = { text, size - test_below(&seed, 4) };
        struct image_manifest manifest;
        struct image_digest ids[IMAGE_LAYERS_MAX];
        size_t count = 0;
        bool is_index = false;
        enum err rc = image_manifest_parse(json, &manifest, NULL);
        rc |= image_index_parse(json, NULL, &ids[0], &is_index, NULL);
        rc |= image_diff_ids_parse(json, ids, &count, NULL);
        CHECK("one text is not three things", rc != ERR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_have_one_spelling),
        cmocka_unit_test(an_index_gives_the_image_that_fits),
        cmocka_unit_test(manifests_are_read_or_refused),
        cmocka_unit_test(the_number_of_layers_is_bounded),
        cmocka_unit_test(deep_and_large_texts_are_refused),
        cmocka_unit_test(diff_ids_are_all_digests),
        cmocka_unit_test(damaged_texts_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
