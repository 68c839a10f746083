/* Files of other systems: sums stay what they were, and what is wrong or foreign is told. */
#include <string.h>

#include "cli/import.h"
#include "os/file.h"
#include "unit/test.h"
#include "wire/yaml.h"

static enum err read_text(struct import *import, import_reader *read, struct str text,
                          struct error *e)
{
    enum err rc = read(import, text, e);
    return rc == ERR_OK ? import_link(import, e) : rc;
}

static void read_fixture(struct import *import, import_reader *read, const char *name)
{
    AUTO(buf) struct buf text = { 0 };
    struct error e = { 0 };
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", FIXTURES, name);
    CHECK_OK(name, file_read(path, IMPORT_BYTES_MAX, &text, &e), &e);
    CHECK_OK(name, read_text(import, read, buf_str(&text), &e), &e);
}

static void alias(struct import *import, const char *text)
{
    struct error e = { 0 };
    CHECK_OK(text, import_alias_add(import, text, &e), &e);
}

static const struct import_class *class_of(const struct import *import, const char *name)
{
    for (size_t i = 0; i < import->classes.count; i++) {
        if (str_is(import->classes.items[i].name, name))
            return &import->classes.items[i];
    }
    test_fail(name, "is a class", __FILE__, __LINE__);
}

static bool has_note(const struct import *import, size_t line, const char *text)
{
    for (size_t i = 0; i < import->notes.count; i++) {
        const struct import_note *note = &import->notes.items[i];
        if (note->line == line && strstr(note->text, text) != NULL)
            return true;
    }
    return false;
}

/* What the manifest has of a document, as `berth apply` will read it. */
static const json_t *spec_of(const json_t *documents, const char *path)
{
    for (size_t i = 0; i < json_array_size(documents); i++) {
        const json_t *document = json_array_get(documents, i);
        const char *name = json_string_value(cli_field(document, "metadata.name"));
        if (name != NULL && strcmp(name, path) == 0)
            return json_object_get(document, "spec");
    }
    test_fail(path, "is in the manifest", __FILE__, __LINE__);
}

static int64_t amount_of(const json_t *documents, const char *path, const char *class_name,
                         const char *field)
{
    const json_t *quotas = json_object_get(spec_of(documents, path), "quotas");
    for (size_t i = 0; i < json_array_size(quotas); i++) {
        const json_t *row = json_array_get(quotas, i);
        const char *name = json_string_value(json_object_get(row, "class"));
        const json_t *amount = json_object_get(row, field);
        if (strcmp(name, class_name) == 0 && amount != NULL)
            return json_integer_value(amount);
    }
    return UNSET;
}

static json_t *manifest_of(const struct import *import)
{
    AUTO(buf) struct buf text = { 0 };
    struct error e = { 0 };
    json_t *documents = NULL;
    import_manifest(import, false, &text);
    CHECK_OK("the manifest can be read", yaml_read(buf_str(&text), &documents, &e), &e);
    CHECK("all are in it", json_array_size(documents) == import->nodes.count);
    return documents;
}

/* ---- the formats as they are documented ---------------------------------------------------- */

static void test_slurm_dump(void **state)
{
    (void)state;
    AUTO(import) struct import import = { 0 };
    alias(&import, "cpu=cpu-x86");
    alias(&import, "gpu=any-gpu");
    read_fixture(&import, import_slurm, "slurm-dump.cfg");
    CHECK("the same ceilings in all", class_of(&import, "a100")->limit_before == 20000 &&
                                          class_of(&import, "a100")->limit_after == 20000 &&
                                          class_of(&import, "v100")->limit_after == 8000 &&
                                          class_of(&import, "any-gpu")->limit_after == 2000 &&
                                          class_of(&import, "cpu-x86")->limit_after == 512000);
    AUTO(json) json_t *made = manifest_of(&import);
    CHECK("below its parents",
          amount_of(made, "science/physics/lattice", "a100", "limit_milli") == 6000);
    CHECK("shares are weights",
          amount_of(made, "science/physics", "a100", "over_quota_weight") == 30 &&
              amount_of(made, "science/biology", "v100", "over_quota_weight") == 10);
    CHECK("no limit is none",
          amount_of(made, "science/physics/lattice", "cpu-x86", "limit_milli") == UNSET);
    CHECK("a name like ours", spec_of(made, "arts_and_media") != NULL);
    CHECK("and it is said", has_note(&import, 7, "is called arts_and_media"));
    CHECK("a budget of time", has_note(&import, 10, "GrpTRESMins"));
    CHECK("a limit of counts", has_note(&import, 6, "MaxJobs"));
    CHECK("memory", has_note(&import, 8, "mem=4000G"));
    CHECK("people", has_note(&import, 0, "3 users"));
}

/* As sacctmgr prints it: parents may come behind their children. */
static void test_slurm_assoc(void **state)
{
    (void)state;
    AUTO(import) struct import import = { 0 };
    read_fixture(&import, import_slurm, "slurm-assoc.txt");
    CHECK("sums", class_of(&import, "a100")->limit_before == 20000 &&
                      class_of(&import, "a100")->limit_after == 20000);
    AUTO(json) json_t *made = manifest_of(&import);
    CHECK("below science", amount_of(made, "science/physics", "a100", "limit_milli") == 12000);
    CHECK("cores need a class", has_note(&import, 6, "--class cpu=NAME"));
    CHECK("wall time", has_note(&import, 4, "MaxWall"));
}

static void test_kueue(void **state)
{
    (void)state;
    AUTO(import) struct import import = { 0 };
    alias(&import, "cpu=cpu-x86");
    read_fixture(&import, import_kueue, "kueue.yaml");
    CHECK("the same quota in all", class_of(&import, "a100")->quota_before == 32000 &&
                                       class_of(&import, "a100")->quota_after == 32000 &&
                                       class_of(&import, "l40s")->quota_before == 10000 &&
                                       class_of(&import, "l40s")->quota_after == 10000 &&
                                       class_of(&import, "cpu-x86")->quota_before == 64500 &&
                                       class_of(&import, "cpu-x86")->quota_after == 64500);
    AUTO(json) json_t *made = manifest_of(&import);
    const char *vision = "university/research/vision";
    CHECK("nominal", amount_of(made, vision, "a100", "quota_milli") == 16000);
    CHECK("borrowing is a limit", amount_of(made, vision, "a100", "limit_milli") == 20000);
    CHECK("none is none", amount_of(made, vision, "l40s", "limit_milli") == UNSET);
    CHECK("lending", amount_of(made, vision, "a100", "lend_limit_milli") == 8000 &&
                         amount_of(made, vision, "l40s", "lend_limit_milli") == -1);
    CHECK("half a weight", amount_of(made, vision, "a100", "over_quota_weight") == 50);
    CHECK("a cohort has its queues' and its own",
          amount_of(made, "university/research", "a100", "quota_milli") == 32000 &&
              amount_of(made, "university/research", "a100", "limit_milli") == 40000);
    CHECK("a root lends and borrows nothing outside",
          amount_of(made, "university", "a100", "limit_milli") == 32000 &&
              amount_of(made, "university", "a100", "lend_limit_milli") == 0 &&
              amount_of(made, "alone", "l40s", "limit_milli") == 2000);
    CHECK("a local queue", spec_of(made, "university/research/vision/vision-team-main") != NULL);
    CHECK("what it does not say",
          has_note(&import, 31, "namespaceSelector") && has_note(&import, 33, "queueingStrategy") &&
              has_note(&import, 43, "memory") && has_note(&import, 69, "preemption") &&
              has_note(&import, 98, "Namespace"));
}

static void test_kai(void **state)
{
    (void)state;
    AUTO(import) struct import import = { 0 };
    alias(&import, "gpu=h100-80g");
    alias(&import, "cpu=cpu-x86");
    read_fixture(&import, import_kai, "kai.yaml");
    CHECK("the same in all", class_of(&import, "h100-80g")->quota_before == 14500 &&
                                 class_of(&import, "h100-80g")->quota_after == 14500 &&
                                 class_of(&import, "h100-80g")->limit_before ==
                                     class_of(&import, "h100-80g")->limit_after &&
                                 class_of(&import, "cpu-x86")->quota_after == 32000);
    AUTO(json) json_t *made = manifest_of(&import);
    const char *language = "research/research.language";
    CHECK("a parent without a quota has its children's",
          amount_of(made, "research", "h100-80g", "quota_milli") == UNSET);
    CHECK("an unset limit is the quota",
          amount_of(made, language, "h100-80g", "limit_milli") == 4000);
    CHECK("cores are thousandths there",
          amount_of(made, "research/research.vision", "cpu-x86", "limit_milli") == 64000);
    CHECK("parts of a device", amount_of(made, "sales", "h100-80g", "quota_milli") == 2500);
    CHECK("no weight", amount_of(made, "sales", "h100-80g", "over_quota_weight") == 0);
    CHECK("priority",
          json_integer_value(json_object_get(spec_of(made, language), "priority")) == 1000 &&
              has_note(&import, 43, "1000 instead"));
    CHECK("times", has_note(&import, 44, "preemptMinRuntime"));
}

/* Children that are promised more than their parent has: as there, but forced. */
static void test_overcommitted(void **state)
{
    static const char text[] =
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: top}\n"
        "spec: {resources: {gpu: {quota: 4, limit: -1}}}\n---\n"
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: low}\n"
        "spec: {parentQueue: top, resources: {gpu: {quota: 5, limit: -1}}}\n";
    (void)state;
    AUTO(import) struct import import = { 0 };
    struct error e = { 0 };
    alias(&import, "gpu=h100");
    CHECK_OK("read", read_text(&import, import_kai, str_of(text), &e), &e);
    CHECK("said", has_note(&import, 1, "top has 4 h100 and what is below it 5"));
    AUTO(json) json_t *made = manifest_of(&import);
    CHECK("forced", json_is_true(json_object_get(spec_of(made, "top/low"), "is_forced")));
}

/* ---- what is wrong ------------------------------------------------------------------------- */

#define QUEUE(name, spec)                                                                          \
    "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: " name "}\nspec: " spec "\n"
#define CLUSTER_QUEUE(quota)                                                                       \
    "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n"         \
    "  resourceGroups:\n  - flavors:\n    - name: f\n      resources:\n"                           \
    "      - name: nvidia.com/gpu\n        nominalQuota: " quota "\n"

static const struct {
    const char *name;
    import_reader *read;
    const char *text, *wanted;
} bad[] = {
    { "an unknown word", import_slurm, "Cluster - 'a'\nAcount - 'b'\n", "line 2, column 1" },
    { "no name", import_slurm, "Account\n", "line 1, column 8" },
    { "an empty name", import_slurm, "Account - ''\n", "line 1: a name is missing" },
    { "an open quote", import_slurm, "Account - 'b':Description='x\n", "line 1, column 15" },
    { "an account twice", import_slurm, "Account - 'b'\n\nAccount - 'b'\n",
      "line 3: \"b\" is there already, in line 1" },
    { "a parent that is nowhere", import_slurm, "Parent - 'x'\nAccount - 'b'\n",
      "line 2: the parent \"x\" of \"b\" is not there" },
    { "two clusters", import_slurm, "Cluster - 'a'\nCluster - 'b'\n", "line 2: a second cluster" },
    { "a limit that is no number", import_slurm, "Account - 'b':GrpTRES=gres/gpu:x=many\n",
      "line 1: GrpTRES: \"many\"" },
    { "a limit beyond all bounds", import_slurm,
      "Account - 'b':GrpTRES=gres/gpu:x=99999999999999999999\n", "line 1: GrpTRES" },
    { "no UTF-8", import_slurm, "Account - '\xff'\n", "line 1 is not text" },
    { "a name of no letters", import_slurm, "Account - '***'\n", "line 1: \"***\" has no letter" },
    { "a table without accounts", import_slurm, "Cluster|User\na|b\n",
      "line 1: there is no column" },
    { "two clusters in a table", import_slurm, "Cluster|Account|ParentName|User\na|x||\nb|y||\n",
      "line 3: a second cluster" },
    { "a circle", import_slurm, "Account|ParentName|User\na|b|\nb|a|\n", "is its own parent" },
    { "no YAML", import_kai, "a: [\n", "line 2" },
    { "no object", import_kai, "just text\n", "has no kind" },
    { "no name", import_kai, "apiVersion: scheduling.run.ai/v2\nkind: Queue\n",
      "line 1: metadata.name" },
    { "a spec that is a list", import_kai, QUEUE("a", "[1]"), "line 4: spec of Queue a" },
    { "a negative quota", import_kai, QUEUE("a", "{resources: {gpu: {quota: -2}}}"),
      "line 4: quota is not an amount" },
    { "a huge quota", import_kai, QUEUE("a", "{resources: {gpu: {quota: 9000000000000000000}}}"),
      "line 4: quota is not an amount" },
    { "a priority in words", import_kai, QUEUE("a", "{priority: high}"), "line 4: priority" },
    { "below itself", import_kai, QUEUE("a", "{parentQueue: a}"),
      "line 1: \"a\" is its own parent" },
    { "an alias of YAML", import_kai, "a: &x 1\nb: *x\n", "anchors are not supported" },
    { "a quota in words", import_kueue, CLUSTER_QUEUE("lots"), "line 10: nominalQuota" },
    { "no quota", import_kueue, CLUSTER_QUEUE(""), "nominalQuota is not an amount" },
    { "a local queue of nothing", import_kueue,
      "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: a, namespace: b}\n"
      "spec: {}\n",
      "line 1: LocalQueue a has no clusterQueue" },
};

static void test_refusals(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, bad) {
        AUTO(import) struct import import = { 0 };
        struct error e = { 0 };
        alias(&import, "gpu=h100");
        CHECK(c->name, read_text(&import, c->read, str_of(c->text), &e) != ERR_OK);
        if (strstr(e.text, c->wanted) == NULL)
            test_fail(c->name, e.text, __FILE__, __LINE__);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    AUTO(import) struct import many = { 0 };
    AUTO(import) struct import deep = { 0 };
    AUTO(import) struct import wide = { 0 };
    AUTO(buf) struct buf text = { 0 };
    struct error e = { 0 };
    for (int i = 0; i <= IMPORT_NODES_MAX; i++)
        buf_format(&text, "Account - 'a%d':MaxJobs=1\n", i);
    CHECK("too many", read_text(&many, import_slurm, buf_str(&text), &e) == ERR_LIMIT);
    CHECK("notes are bounded", many.notes.count == IMPORT_NOTES_MAX && many.notes_left_out > 0);
    buf_clear(&text);
    for (int i = 0; i <= PATH_MAX_DEPTH; i++)
        buf_format(&text, "Account - 'a%d'\nParent - 'a%d'\n", i, i);
    CHECK("too deep", read_text(&deep, import_slurm, buf_str(&text), &e) == ERR_LIMIT);
    buf_clear(&text);
    buf_add_text(&text, "Account - '");
    for (int i = 0; i <= IMPORT_LINE_MAX; i++)
        buf_add_char(&text, 'a');
    CHECK("too long", read_text(&wide, import_slurm, buf_str(&text), &e) == ERR_LIMIT);
}

/* Names that would be the same of ours; and text that would be something else in a manifest. */
static void test_names(void **state)
{
    (void)state;
    AUTO(import) struct import import = { 0 };
    struct error e = { 0 };
    const char *text =
        "Account - 'A B':GrpTRES=gres/gpu:x]y=1\nAccount - 'a-b'\nAccount - '-a_b\"'\n";
    CHECK_OK("read", read_text(&import, import_slurm, str_of(text), &e), &e);
    AUTO(json) json_t *made = manifest_of(&import);
    CHECK("one keeps it", amount_of(made, "a-b", "x-y", "limit_milli") == 1000);
    CHECK("the other gets a number", spec_of(made, "a-b-2") != NULL);
    CHECK("nothing breaks out", spec_of(made, "a_b") != NULL);
}

/* Whatever stands in a file, reading it ends, with an error or a manifest that can be read. */
static void mutate(uint64_t *seed, struct buf *text)
{
    static const char bytes[] = "\n\t :-'\"|,={}[]&*!#%0123456789abcN\xff\x01";
    for (uint64_t left = test_random(seed) % 8 + 1; left > 0 && text->size > 0; left--) {
        size_t at = (size_t)(test_random(seed) % text->size);
        size_t span = (size_t)(test_random(seed) % MIN_OF(text->size - at, (size_t)40));
        if (test_random(seed) % 3 == 0)
            memmove(text->data + at, text->data + test_random(seed) % (text->size - span), span);
        else
            text->data[at] = bytes[test_random(seed) % (sizeof(bytes) - 1)];
    }
}

static void test_random_damage(void **state)
{
    static const struct {
        import_reader *read;
        const char *file;
    } files[] = { { import_slurm, "slurm-dump.cfg" },
                  { import_slurm, "slurm-assoc.txt" },
                  { import_kueue, "kueue.yaml" },
                  { import_kai, "kai.yaml" } };
    uint64_t seed = test_seed();
    size_t read_well = 0;
    (void)state;
    for (int round = 0; round < 4000; round++) {
        AUTO(import) struct import import = { 0 };
        AUTO(buf) struct buf text = { 0 };
        struct error e = { 0 };
        char path[512];
        (void)snprintf(path, sizeof(path), "%s/%s", FIXTURES, files[round % 4].file);
        CHECK_OK(path, file_read(path, IMPORT_BYTES_MAX, &text, &e), &e);
        mutate(&seed, &text);
        if (read_text(&import, files[round % 4].read, buf_str(&text), &e) != ERR_OK) {
            CHECK("it says what is wrong", e.text[0] != '\0');
            continue;
        }
        json_decref(manifest_of(&import));
        read_well++;
    }
    CHECK("some are read", read_well > 100);
}

static void test_amounts(void **state)
{
    static const struct {
        const char *text;
        int64_t wanted; /* -1: refused */
    } cases[] = { { "8", 8000 },       { "0.5", 500 }, { "500m", 500 },  { "2k", 2000000 },
                  { "1.5k", 1500000 }, { "", -1 },     { "m", -1 },      { "-1", -1 },
                  { "1e3", -1 },       { "8Gi", -1 },  { "0.0001", -1 }, { "9999999999999", -1 } };
    (void)state;
    FOR_EACH_CASE (c, cases) {
        int64_t got = -1;
        bool is_good = import_milli(str_of(c->text), &got);
        CHECK(c->text, is_good == (c->wanted >= 0) && (!is_good || got == c->wanted));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slurm_dump), cmocka_unit_test(test_slurm_assoc),
        cmocka_unit_test(test_kueue),      cmocka_unit_test(test_kai),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_overcommitted),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_amounts),    cmocka_unit_test(test_random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
