/* The tables, and the two directions over every one of them. */
#include <string.h>

#include "unit/test.h"
#include "unit/wire/generate.h"
#include "wire/link.h"
#include "wire/records.h"
#include "wire/resource.h"
#include "wire/schema_private.h"
#include "wire/spec_json.h"

enum { ROUNDS = 200, GROUPS_MAX = 5 };

/* ---- every table --------------------------------------------------------------------------- */

struct group {
    const struct schema *const *tables;
    size_t count;
    bool is_complete; /* every member of the struct has a row */
};

static const struct schema *const spec_schemas[] = {
    &workload_spec_schema, &project_spec_schema,    &quota_spec_schema, &class_spec_schema,
    &pool_spec_schema,     &profile_spec_schema,    &token_spec_schema, &volume_spec_schema,
    &image_spec_schema,    &credential_spec_schema, &hook_spec_schema,
};
static const struct schema *const partial_schemas[] = {
    &settings_spec_schema,
    &target_spec_schema,
    &settings_view_schema,
    &observed_schema,
};
static const struct schema *const view_schemas[] = {
    &project_view_schema,    &class_view_schema,       &pool_view_schema,    &request_view_schema,
    &profile_view_schema,    &device_view_schema,      &node_view_schema,    &workload_view_schema,
    &allocation_view_schema, &explanation_view_schema, &volume_view_schema,  &image_view_schema,
    &token_view_schema,      &credential_view_schema,  &hook_view_schema,    &upload_view_schema,
    &usage_view_schema,      &invoice_view_schema,     &segment_view_schema, &audit_view_schema,
    &whoami_view_schema,     &status_view_schema,      &problem_view_schema,
};
static const struct schema *const message_schemas[] = {
    &hello_schema,           &welcome_schema,      &refuse_schema,
    &inventory_schema,       &heartbeat_schema,    &heartbeat_ack_schema,
    &payloads_wanted_schema, &image_wanted_schema, &image_source_schema,
    &image_progress_schema,  &log_schema,          &join_schema,
    &joined_schema,          &renew_schema,        &renewed_schema,
    &stream_header_schema,
};

static size_t all_groups(struct group out[GROUPS_MAX])
{
    out[0] = (struct group){ record_schemas, record_schema_count, true };
    out[1] = (struct group){ spec_schemas, COUNT_OF(spec_schemas), true };
    out[2] = (struct group){ view_schemas, COUNT_OF(view_schemas), true };
    out[3] = (struct group){ message_schemas, COUNT_OF(message_schemas), true };
    out[4] = (struct group){ partial_schemas, COUNT_OF(partial_schemas), false };
    return 5;
}

typedef void table_check(const struct schema *schema, bool is_complete, void *arg);

static void each_table(table_check *check, void *arg)
{
    struct group groups[GROUPS_MAX];
    size_t count = all_groups(groups);

    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            check(groups[g].tables[i], groups[g].is_complete, arg);
}

/* Bytes a kind of field must have; 0: any. */
static size_t size_of_kind(const struct field *field)
{
    switch (field->kind) {
    case FIELD_STR:
    case FIELD_RAW:
        return sizeof(struct str);
    case FIELD_ID:
    case FIELD_PROJECT:
        return sizeof(struct id);
    case FIELD_I64:
    case FIELD_U64:
    case FIELD_WALL:
    case FIELD_MONO:
    case FIELD_CLASS:
        return sizeof(int64_t);
    case FIELD_BOOL:
        return sizeof(bool);
    case FIELD_DIGEST:
        return sizeof(struct digest);
    case FIELD_CLASS_ARRAY:
        return (size_t)field->max * sizeof(int64_t);
    case FIELD_ID_LIST:
    case FIELD_STR_LIST:
    case FIELD_PAIRS:
    case FIELD_STRUCT_LIST:
        return sizeof(struct any_list);
    case FIELD_STRUCT:
        return field->schema->size;
    case FIELD_ENUM:
        return field->size == sizeof(int64_t) ? sizeof(int64_t) : sizeof(unsigned);
    case FIELD_BYTES:
    case FIELD_KIND_COUNT:
        break;
    }
    return 0;
}

static void check_rows(const struct schema *schema, bool is_complete, void *arg)
{
    (void)is_complete;
    (void)arg;
    CHECK(schema->name, schema->doc != NULL && schema->doc[0] != '\0');
    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        size_t size = size_of_kind(field);
        CHECK(field->name, size == 0 || size == field->size);
        CHECK(field->name, (field->kind == FIELD_ENUM) == (field->names != NULL));
        CHECK(field->name, field->names == NULL || field_name_count(field) <= field->names->count);
        CHECK(field->name, (field->flags & FIELD_UNSET) == 0 || field->size == sizeof(int64_t));
        CHECK(field->name, field->min <= field->max || field->max == 0);
        for (size_t j = 0; j < i; j++)
            CHECK(field->name, strcmp(field->name, schema->fields[j].name) != 0);
    }
}

static void test_rows(void **state)
{
    (void)state;
    each_table(check_rows, NULL);
}

/* Padding is less than 8 bytes, a forgotten member nearly never: bools next to each other apart. */
static void check_complete(const struct schema *schema, bool is_complete, void *arg)
{
    (void)arg;
    if (!is_complete)
        return;
    AUTO(mem) char *seen = mem_new(schema->size, 1);
    size_t gap = 0;

    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        memset(seen + field->offset, 1, field->size);
        if (field->kind == FIELD_CLASS_ARRAY)
            memset(seen + field->count_offset, 1, sizeof(size_t));
    }
    for (size_t i = 0; i < schema->size; i++) {
        gap = seen[i] != 0 ? 0 : gap + 1;
        CHECK(schema->name, gap < 8);
    }
}

static void test_complete(void **state)
{
    (void)state;
    each_table(check_complete, NULL);
}

static void check_round_trip(const struct schema *schema, bool is_complete, void *arg)
{
    (void)is_complete;
    uint64_t *seed = arg;

    for (int round = 0; round < ROUNDS; round++) {
        AUTO(arena) struct arena arena = { 0 };
        AUTO(buf) struct buf first = { 0 };
        AUTO(buf) struct buf second = { 0 };
        struct error e = { 0 };
        void *object = arena_new(&arena, 1, schema->size);
        void *copy = arena_new(&arena, 1, schema->size);
        struct json_writer w = json_writer_of(&first);

        generate(seed, schema, &arena, object);
        schema_encode(&w, schema, object, WIRE_STORED, NULL);
        CHECK_OK(schema->name,
                 schema_decode_text(schema, buf_str(&first), UNKNOWN_REFUSED, &arena, copy, &e),
                 &e);
        w = json_writer_of(&second);
        schema_encode(&w, schema, copy, WIRE_STORED, NULL);
        CHECK(schema->name, str_eq(buf_str(&first), buf_str(&second)));
    }
}

static void test_round_trips(void **state)
{
    (void)state;
    uint64_t seed = test_seed();

    each_table(check_round_trip, &seed);
}

/* PUBLIC forms are JSON as well, and hold no field that is secret or only stored. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables nest */
static void refuse_hidden(const struct schema *schema, const json_t *json)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct field *field = &schema->fields[i];
        const json_t *value = json_object_get(json, field->name);
        bool is_hidden = (field->flags & (FIELD_SECRET | FIELD_STORED)) != 0;
        CHECK(field->name, !is_hidden || value == NULL);
        if (field->kind == FIELD_STRUCT && value != NULL)
            refuse_hidden(field->schema, value);
        for (size_t k = 0; field->kind == FIELD_STRUCT_LIST && k < json_array_size(value); k++)
            refuse_hidden(field->schema, json_array_get(value, k));
    }
}

static void check_public(const struct schema *schema, bool is_complete, void *arg)
{
    (void)is_complete;
    uint64_t *seed = arg;

    for (int round = 0; round < ROUNDS / 4; round++) {
        AUTO(arena) struct arena arena = { 0 };
        AUTO(buf) struct buf text = { 0 };
        AUTO(json) json_t *json = NULL;
        struct error e = { 0 };
        void *object = arena_new(&arena, 1, schema->size);
        struct json_writer w = json_writer_of(&text);

        generate(seed, schema, &arena, object);
        schema_encode(&w, schema, object, WIRE_PUBLIC, NULL);
        CHECK_OK(schema->name, json_read(buf_str(&text), 0, &json, &e), &e);
        refuse_hidden(schema, json);
    }
}

static void test_public(void **state)
{
    (void)state;
    uint64_t seed = test_seed();

    each_table(check_public, &seed);
}

/* ---- refusals ------------------------------------------------------------------------------ */

struct inner {
    struct str word;
    int64_t amount;
};

struct inner_list {
    struct inner *items;
    size_t count;
};

struct sample {
    struct str name;
    int64_t amount;
    uint64_t counter;
    bool is_on;
    enum role role;
    struct id id;
    struct digest digest;
    struct wall at;
    struct str_list words;
    struct pair_list labels;
    struct inner one;
    struct inner_list many;
    int64_t maybe;
    int64_t classes[3];
    size_t class_count;
    struct id_list ids;
};

#define OF struct inner
static const struct field inner_fields[] = {
    { F(STR, word), .max = 4, .flags = FIELD_REQUIRED },
    { F(I64, amount), .min = 1, .max = 9 },
};
static const struct schema inner_schema = SCHEMA("Inner", inner_fields, "inside");
#undef OF

#define OF struct sample
static const struct field sample_fields[] = {
    { F(STR, name), .min = 1, .max = 8 },
    { F(I64, amount), .min = 0, .max = 1000 },
    { F(U64, counter) },
    { F(BOOL, is_on) },
    { F(ENUM, role), .names = &role_names },
    { F(ID, id), .id_kind = ID_WORKLOAD },
    { F(DIGEST, digest) },
    { F(WALL, at) },
    { F(STR_LIST, words), .max = 2, .item_max = 4 },
    { F(PAIRS, labels), .max = 2, .item_max = 4 },
    { F(STRUCT, one), .schema = &inner_schema },
    { F(STRUCT_LIST, many), .schema = &inner_schema, .max = 3 },
    { F(I64, maybe), .flags = FIELD_UNSET, .min = 0, .max = 5 },
    { F_ARRAY("classes", CLASS_ARRAY, classes, class_count) },
    { F(ID_LIST, ids), .id_kind = ID_VOLUME, .max = 2 },
};
static const struct schema sample_schema = SCHEMA("Sample", sample_fields, "a sample");
#undef OF

static const struct refusal {
    const char *json;
    const char *field;
} refusals[] = {
    { "[]", "" },
    { "{\"nmae\":\"x\"}", "nmae" },
    { "{\"name\":7}", "name" },
    { "{\"name\":null}", "name" },
    { "{\"name\":\"\"}", "name" },
    { "{\"name\":\"123456789\"}", "name" },
    { "{\"amount\":-1}", "amount" },
    { "{\"amount\":1001}", "amount" },
    { "{\"amount\":1.0}", "amount" },
    { "{\"amount\":\"1\"}", "amount" },
    { "{\"amount\":true}", "amount" },
    { "{\"counter\":-1}", "counter" },
    { "{\"is_on\":1}", "is_on" },
    { "{\"role\":\"root\"}", "role" },
    { "{\"role\":\"\"}", "role" },
    { "{\"role\":1}", "role" },
    { "{\"id\":\"prj_00000000000000000000000001\"}", "id" },
    { "{\"id\":\"wl_0\"}", "id" },
    { "{\"id\":{}}", "id" },
    { "{\"digest\":\"00\"}", "digest" },
    { "{\"at\":\"yesterday\"}", "at" },
    { "{\"at\":\"2026-02-29T00:00:00Z\"}", "at" },
    { "{\"words\":\"a\"}", "words" },
    { "{\"words\":[\"a\",\"b\",\"c\"]}", "words" },
    { "{\"words\":[\"a\",\"toolong\"]}", "words[1]" },
    { "{\"words\":[\"a\",5]}", "words[1]" },
    { "{\"labels\":[]}", "labels" },
    { "{\"labels\":{\"a\":1}}", "labels.a" },
    { "{\"labels\":{\"\":\"x\"}}", "labels" },
    { "{\"labels\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}}", "labels" },
    { "{\"one\":[]}", "one" },
    { "{\"one\":{}}", "one.word" },
    { "{\"one\":{\"word\":\"a\",\"more\":1}}", "one.more" },
    { "{\"many\":[{\"word\":\"a\"},{\"word\":\"b\",\"amount\":10}]}", "many[1].amount" },
    { "{\"many\":[{\"word\":\"a\"},7]}", "many[1]" },
    { "{\"many\":[{\"word\":\"a\"},{\"word\":\"a\"},{\"word\":\"a\"},{\"word\":\"a\"}]}", "many" },
    { "{\"maybe\":6}", "maybe" },
    { "{\"classes\":[1,2,3,4]}", "classes" },
    { "{\"classes\":[1,256]}", "classes[1]" },
    { "{\"ids\":[\"wl_00000000000000000000000001\"]}", "ids[0]" },
};

static void test_refusals(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, refusals) {
        AUTO(arena) struct arena arena = { 0 };
        struct sample sample = { 0 };
        struct error e = { 0 };
        CHECK(c->json, schema_decode_text(&sample_schema, str_of(c->json), UNKNOWN_REFUSED, &arena,
                                          &sample, &e) == ERR_INVALID);
        CHECK(c->json, strcmp(e.field, c->field) == 0);
        CHECK(c->json, e.text[0] != '\0');
    }
}

/* Schemas are JSON; those that nest name tables that exist. */
static void on_nested(void *arg, const struct schema *schema)
{
    size_t *count = arg;

    CHECK("a nested table has a name", schema->name[0] != '\0');
    (*count)++;
}

static void check_description(const struct schema *schema, bool is_complete, void *arg)
{
    (void)is_complete;
    (void)arg;
    for (int use = SCHEMA_ANSWER; use <= SCHEMA_REQUEST; use++) {
        AUTO(buf) struct buf text = { 0 };
        AUTO(json) json_t *json = NULL;
        struct error e = { 0 };
        size_t nested = 0;
        struct json_writer w = json_writer_of(&text);

        schema_describe(&w, schema, (enum schema_use)use, on_nested, &nested);
        CHECK_OK(schema->name, json_read(buf_str(&text), 0, &json, &e), &e);
        CHECK(schema->name, json_is_object(json_object_get(json, "properties")));
    }
}

static void test_descriptions(void **state)
{
    (void)state;
    each_table(check_description, NULL);
}

static void test_no_error_wanted(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct sample sample = { 0 };

    CHECK("a NULL error is fine",
          schema_decode_text(&sample_schema, STR("{\"many\":[{}]}"), UNKNOWN_REFUSED, &arena,
                             &sample, NULL) == ERR_INVALID);
}

static void test_absent_fields(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct sample sample = { .amount = 7, .name = STR("old"), .maybe = 3 };
    struct error e = { 0 };

    CHECK_OK("reads",
             schema_decode_text(&sample_schema, STR("{\"name\":\"new\",\"extra\":[1]}"),
                                UNKNOWN_IGNORED, &arena, &sample, &e),
             &e);
    CHECK("a present field is read", str_is(sample.name, "new"));
    CHECK("an absent field stays", sample.amount == 7);
    CHECK("an absent optional number is UNSET", sample.maybe == UNSET);
}

static void test_digest_prefix(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf text = { 0 };
    struct sample sample = { 0 };
    struct error e = { 0 };

    buf_add_text(&text, "{\"digest\":\"sha256:");
    for (int i = 0; i < 32; i++)
        buf_add_text(&text, "0f");
    buf_add_text(&text, "\"}");
    CHECK_OK(
        "reads",
        schema_decode_text(&sample_schema, buf_str(&text), UNKNOWN_REFUSED, &arena, &sample, &e),
        &e);
    CHECK("value", sample.digest.bytes[31] == 0x0f);
}

/* ---- forms --------------------------------------------------------------------------------- */

static struct str class_name_of(const void *arg, int64_t number)
{
    (void)arg;
    return number == 3 ? STR("h100-80g") : (struct str){ 0 };
}

static bool is_tenant(const void *arg, struct id id)
{
    (void)arg;
    return id.lo == 1;
}

static void test_public_names(void **state)
{
    (void)state;
    AUTO(buf) struct buf text = { 0 };
    const struct wire_names names = { .class_name = class_name_of, .is_tenant = is_tenant };
    struct json_writer w = json_writer_of(&text);
    struct project_record project = { .id = { 0, 1 }, .parent = { 0, 2 } };
    struct quota quotas[] = { { .class_number = 3, .limit_milli = -1 }, { .class_number = 4 } };

    project.quotas = (struct quota_list){ quotas, 2 };
    schema_encode(&w, &project_record_schema, &project, WIRE_PUBLIC, &names);
    CHECK("a tenant's id", strstr(text.data, "\"id\":\"ten_") != NULL);
    CHECK("a project's id", strstr(text.data, "\"parent\":\"prj_") != NULL);
    CHECK("a class by name", strstr(text.data, "\"class\":\"h100-80g\"") != NULL);
    CHECK("an unknown class by number", strstr(text.data, "\"class\":4") != NULL);
    CHECK("zeroes are shown", strstr(text.data, "\"quota_milli\":0") != NULL);
    CHECK("numbers of tenants are not", strstr(text.data, "\"number\"") == NULL);
}

static void test_stored_is_short(void **state)
{
    (void)state;
    AUTO(buf) struct buf text = { 0 };
    struct json_writer w = json_writer_of(&text);
    struct sample sample = { .maybe = UNSET };

    schema_encode(&w, &sample_schema, &sample, WIRE_STORED, NULL);
    CHECK("zeroes are left out", str_is(buf_str(&text), "{}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_error_wanted),
        cmocka_unit_test(test_absent_fields),
        cmocka_unit_test(test_digest_prefix),
        cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_public_names),
        cmocka_unit_test(test_stored_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
