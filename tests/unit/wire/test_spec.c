/* Requests of people: canonical specs, refusals with their fields. */
#include <string.h>

#include "unit/test.h"
#include "unit/wire/generate.h"
#include "wire/spec_json.h"

static void test_canonical(void **state)
{
    (void)state;
    uint64_t seed = test_seed();

    for (int round = 0; round < 500; round++) {
        AUTO(arena) struct arena arena = { 0 };
        struct workload_spec spec = { 0 };
        struct workload_spec again = { 0 };
        struct error e = { 0 };

        generate(&seed, &workload_spec_schema, &arena, &spec);
        struct str first = workload_spec_canonical(&spec, &arena);
        CHECK_OK("parses", workload_spec_parse(first, &arena, &again, &e), &e);
        struct str second = workload_spec_canonical(&again, &arena);
        CHECK("canonical JSON is a fixed point", str_eq(first, second));
    }
}

static void test_defaults(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct workload_spec spec = { 0 };
    struct error e = { 0 };

    CHECK_OK("reads",
             spec_decode(&workload_spec_schema,
                         STR("{\"command\":[\"true\"],\"project\":\"amber\",\"count\":1}"), &arena,
                         &spec, &e),
             &e);
    CHECK("what was not given is UNSET", spec.gpu_milli == UNSET && spec.preemptible == UNSET);
    CHECK("defaults are filled in, nothing empty is there",
          str_is(workload_spec_canonical(&spec, &arena),
                 "{\"project\":\"amber\",\"kind\":\"job\",\"command\":[\"true\"],\"members\":1,"
                 "\"members_min\":1,\"preemptible\":\"always\",\"restart\":\"on_failure\","
                 "\"on_contact_loss\":\"restart\"}"));
}

static const struct refusal {
    const char *name;
    const struct schema *schema;
    const char *json;
    const char *field;
} refusals[] = {
    { "no project", &workload_spec_schema, "{\"command\":[\"x\"]}", "project" },
    { "a misspelt field", &workload_spec_schema, "{\"project\":\"a\",\"gpus\":1}", "gpus" },
    { "half a GPU as a number", &workload_spec_schema, "{\"project\":\"a\",\"gpu_milli\":0.5}",
      "gpu_milli" },
    { "a number in env", &workload_spec_schema, "{\"project\":\"a\",\"env\":{\"N\":1}}", "env.N" },
    { "env twice", &workload_spec_schema, "{\"project\":\"a\",\"env\":{\"N\":\"\",\"N\":\"\"}}",
      "env.N" },
    { "a mount without a path", &workload_spec_schema,
      "{\"project\":\"a\",\"mounts\":[{\"volume\":\"v\",\"path\":\"/x\"},{\"volume\":\"v\"}]}",
      "mounts[1].path" },
    { "a condition nobody knows", &workload_spec_schema,
      "{\"project\":\"a\",\"depends_on\":[{\"workload\":\"wl_1\",\"when\":\"maybe\"}]}",
      "depends_on[0].when" },
    { "too many", &workload_spec_schema, "{\"project\":\"a\",\"count\":10001}", "count" },
    { "priority", &workload_spec_schema, "{\"project\":\"a\",\"priority\":1001}", "priority" },
    { "a quota without a class", &project_spec_schema,
      "{\"path\":\"a\",\"quotas\":[{\"quota_milli\":1}]}", "quotas[0].class" },
    { "a quota below none", &project_spec_schema,
      "{\"path\":\"a\",\"quotas\":[{\"class\":\"x\",\"limit_milli\":-2}]}",
      "quotas[0].limit_milli" },
    { "a kind of class", &class_spec_schema, "{\"name\":\"x\",\"kind\":\"tpu\"}", "kind" },
    { "no password", &credential_spec_schema, "{\"registry\":\"r\",\"username\":\"u\"}",
      "password" },
    { "a setting", &settings_spec_schema, "{\"grace_s\":901}", "grace_s" },
    { "a repair for more than a day", &settings_spec_schema, "{\"gang_repair_s\":86401}",
      "gang_repair_s" },
    { "a policy that is none", &settings_spec_schema, "{\"placement\":\"worst_fit\"}",
      "placement" },
    { "a site that is not there yet", &pool_spec_schema, "{\"name\":\"p\",\"site\":\"slurm\"}",
      "site" },
    { "what only the server sets", &settings_spec_schema, "{\"version\":1}", "version" },
    { "what acts", &target_spec_schema, "{\"index\":1}", "index" },
};

static void test_refusals(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, refusals) {
        AUTO(arena) struct arena arena = { 0 };
        void *spec = arena_new(&arena, 1, c->schema->size);
        struct error e = { 0 };
        CHECK(c->name, spec_decode(c->schema, str_of(c->json), &arena, spec, &e) == ERR_INVALID);
        CHECK(c->name, strcmp(e.field, c->field) == 0);
    }
}

static void test_no_body(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct target target = { 0 };
    struct error e = { 0 };

    CHECK_OK("an action needs no body",
             spec_decode(&target_spec_schema, (struct str){ 0 }, &arena, &target, &e), &e);
    CHECK("no deadline", target.deadline_s == UNSET);
}

static void test_patch(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct settings_record settings = { .placement = PLACE_BEST_FIT, .version = 7 };
    struct error e = { 0 };

    CHECK_OK("reads",
             spec_decode(&settings_spec_schema, STR("{\"grace_s\":5}"), &arena, &settings, &e), &e);
    CHECK("given", settings.grace_s == 5);
    CHECK("not given", settings.kill_confirm_s == UNSET);
    CHECK("names stay as they were", settings.placement == PLACE_BEST_FIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical), cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_no_body),
        cmocka_unit_test(test_patch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
