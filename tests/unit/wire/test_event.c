/* Bodies of events: every type, every fixture of every version. */
#include <string.h>

#include "unit/test.h"
#include "unit/wire/generate.h"
#include "wire/event_json.h"
#include "wire/feed.h"

enum { ROUNDS = 100, FIXTURE_BYTES_MAX = 64 * 1024 };

static struct event random_event(uint64_t *seed, enum event_type type, struct arena *arena)
{
    struct event event = { .type = type, .version = 1 };

    generate(seed, event_schema(type, 1), arena, &event.controller_started);
    event.sequence = test_random(seed) >> 1;
    event.at = (struct mono){ (int64_t)(test_random(seed) >> 2) };
    event.wall = (struct wall){ (int64_t)(test_random(seed) >> 2) };
    event.actor = (struct actor){ .role = ROLE_MEMBER,
                                  .tenant = { test_random(seed), 1 },
                                  .name = STR("alice") };
    event.request = (struct id){ 1, test_random(seed) };
    event.tenant = event.actor.tenant;
    return event;
}

static void each_type(void (*check)(uint64_t *seed, enum event_type type))
{
    uint64_t seed = test_seed();
    size_t types = 0;

    for (unsigned type = 0; type < EV_TYPE_COUNT; type++) {
        if (event_name(type) == NULL)
            continue;
        types++;
        for (int round = 0; round < ROUNDS; round++)
            check(&seed, type);
    }
    CHECK("there are types", types >= 29);
}

static void check_body(uint64_t *seed, enum event_type type)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf first = { 0 };
    AUTO(buf) struct buf second = { 0 };
    struct error e = { 0 };
    struct event event = random_event(seed, type, &arena);
    struct event copy = { .type = type, .version = 1 };

    memset(&copy.controller_started, 0xa5, sizeof(copy.controller_started)); /* is overwritten */
    event_body_encode(&event, &first);
    CHECK("one line", memchr(first.data, '\n', first.size) == NULL);
    CHECK_OK(event_name(type), event_body_decode(buf_str(&first), &arena, &copy, &e), &e);
    event_body_encode(&copy, &second);
    CHECK(event_name(type), str_eq(buf_str(&first), buf_str(&second)));
}

static void test_bodies(void **state)
{
    (void)state;
    each_type(check_body);
}

static void check_line(uint64_t *seed, enum event_type type)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf first = { 0 };
    AUTO(buf) struct buf second = { 0 };
    struct error e = { 0 };
    struct event event = random_event(seed, type, &arena);
    struct event copy;

    event_line_encode(&event, &first);
    CHECK_OK(event_name(type), event_line_decode(buf_str(&first), &arena, &copy, &e), &e);
    event_line_encode(&copy, &second);
    CHECK(event_name(type), str_eq(buf_str(&first), buf_str(&second)));
    CHECK("head", copy.sequence == event.sequence && copy.at.ns == event.at.ns &&
                      copy.wall.ns == event.wall.ns && id_eq(copy.tenant, event.tenant) &&
                      str_is(copy.actor.name, "alice"));
}

static void test_lines(void **state)
{
    (void)state;
    each_type(check_line);
}

/* ---- fixtures ------------------------------------------------------------------------------ */

static bool read_fixture(const char *name, struct buf *out)
{
    AUTO(buf) struct buf path = { 0 };
    const char *root = getenv("BERTH_FIXTURES"); /* NOLINT(concurrency-mt-unsafe): one thread */

    buf_format(&path, "%s/events/v1/%s.json", root != NULL ? root : "tests/fixtures", name);
    FILE *file = fopen(path.data, "re");
    if (file == NULL)
        return false;
    buf_reserve(out, FIXTURE_BYTES_MAX);
    out->size = fread(out->data, 1, FIXTURE_BYTES_MAX, file);
    (void)fclose(file);
    return out->size > 0;
}

/* What a fixture says is what is read: written out again, it is the same JSON. */
static void test_fixtures(void **state)
{
    (void)state;
    for (unsigned type = 0; type < EV_TYPE_COUNT; type++) {
        AUTO(arena) struct arena arena = { 0 };
        AUTO(buf) struct buf text = { 0 };
        AUTO(buf) struct buf out = { 0 };
        AUTO(json) json_t *before = NULL;
        AUTO(json) json_t *after = NULL;
        struct error e = { 0 };
        struct event event = { .type = type, .version = 1 };
        const char *name = event_name(type);
        if (name == NULL)
            continue;

        CHECK(name, read_fixture(name, &text));
        CHECK_OK(name, json_read(buf_str(&text), 0, &before, &e), &e);
        CHECK_OK(name, event_body_decode(buf_str(&text), &arena, &event, &e), &e);
        event_body_encode(&event, &out);
        CHECK_OK(name, json_read(buf_str(&out), 0, &after, &e), &e);
        CHECK(name, json_equal(before, after) == 1);
    }
}

/* ---- refusals ------------------------------------------------------------------------------ */

static const struct bad_body {
    const char *name;
    enum event_type type;
    unsigned version;
    const char *body;
} bad_bodies[] = {
    { "not JSON", EV_CLASS_SET, 1, "{" },
    { "no object", EV_CLASS_SET, 1, "7" },
    { "a wrong type of value", EV_CLASS_SET, 1, "{\"name\":1}" },
    { "a state nobody knows", EV_WORKLOAD_CHANGED, 1, "{\"state\":\"dancing\"}" },
    { "an unknown version", EV_CLASS_SET, 2, "{}" },
    { "version nought", EV_CLASS_SET, 0, "{}" },
    { "no type", EV_NONE, 1, "{}" },
    { "a number between types", 5, 1, "{}" },
    { "a number beyond types", EV_TYPE_COUNT, 1, "{}" },
};

static void test_bad_bodies(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, bad_bodies) {
        AUTO(arena) struct arena arena = { 0 };
        struct event event = { .type = c->type, .version = c->version };
        struct error e = { 0 };
        CHECK(c->name, event_body_decode(str_of(c->body), &arena, &event, &e) == ERR_CORRUPT);
        CHECK(c->name, e.code == ERR_CORRUPT && e.text[0] != '\0');
    }
}

static const char *const bad_lines[] = {
    "",
    "[]",
    "{}",
    "{\"type\":\"class_set\"}",
    "{\"type\":\"class_set\",\"version\":1}",
    "{\"type\":\"class_set\",\"version\":9,\"body\":{}}",
    "{\"type\":\"nothing\",\"version\":1,\"body\":{}}",
    "{\"type\":7,\"version\":1,\"body\":{}}",
    "{\"type\":\"class_set\",\"version\":1,\"sequence\":-1,\"body\":{}}",
};

static void test_bad_lines(void **state)
{
    (void)state;
    FOR_EACH_CASE (line, bad_lines) {
        AUTO(arena) struct arena arena = { 0 };
        struct event event;
        struct error e = { 0 };
        CHECK(*line, event_line_decode(str_of(*line), &arena, &event, &e) == ERR_CORRUPT);
    }
}

static void test_newer_fields(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct event event = { .type = EV_CLASS_SET, .version = 1 };
    struct error e = { 0 };

    CHECK_OK("fields of a newer program are passed over",
             event_body_decode(STR("{\"name\":\"a\",\"later\":{\"x\":[1]}}"), &arena, &event, &e),
             &e);
    CHECK("the rest is read", str_is(event.class_set.name, "a"));
}

/* ---- objects and feeds --------------------------------------------------------------------- */

static void test_objects(void **state)
{
    (void)state;
    char text[ID_TEXT_MAX];
    struct id one = { 0, 1 };
    struct event tenant = { .type = EV_PROJECT_SET, .version = 1, .project_set = { .id = one } };
    struct event project = tenant;
    struct event workload = { .type = EV_WORKLOAD_CHANGED,
                              .version = 1,
                              .workload_changed = { .workload = one } };
    struct event settings = { .type = EV_SETTINGS_CHANGED, .version = 1 };

    project.project_set.parent = (struct id){ 0, 2 };
    CHECK("tenant", str_is(event_object(&tenant, text), "ten_00000000000000000000000001"));
    CHECK("project", str_is(event_object(&project, text), "prj_00000000000000000000000001"));
    CHECK("workload", str_is(event_object(&workload, text), "wl_00000000000000000000000001"));
    CHECK("settings have none", event_object(&settings, text).size == 0);
}

/* Every hexadecimal secret of a random event, looked for in its public form. */
static void check_feed(uint64_t *seed, enum event_type type)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf out = { 0 };
    AUTO(json) json_t *json = NULL;
    struct error e = { 0 };
    struct event event = random_event(seed, type, &arena);
    static const char sealed[] = "5ea1ed5ea1ed";

    if (type == EV_CREDENTIAL_SET)
        event.credential_set.sealed = STR(sealed);
    feed_encode(&event, FEED_OPERATOR, NULL, &out);
    CHECK_OK(event_name(type), json_read(buf_str(&out), 0, &json, &e), &e);
    CHECK("one line", memchr(out.data, '\n', out.size) == NULL);
    CHECK("data", json_is_object(json_object_get(json, "data")));
    CHECK("no sealed password", strstr(out.data, sealed) == NULL);
    CHECK("no digest of a token", json_object_get(json_object_get(json, "data"), "secret") == NULL);
    CHECK("no key", json_object_get(json_object_get(json, "data"), "id_key") == NULL);
}

static void test_feed(void **state)
{
    (void)state;
    each_type(check_feed);
}

static void test_feed_of_tenants(void **state)
{
    (void)state;
    AUTO(buf) struct buf out = { 0 };
    struct event event = { .type = EV_WORKLOAD_CHANGED,
                           .version = 1,
                           .tenant = { 0, 1 },
                           .actor = { .role = ROLE_ADMIN, .name = STR("olga") } };

    CHECK("own events are shown", feed_shows(&event, FEED_TENANT));
    feed_encode(&event, FEED_TENANT, NULL, &out);
    CHECK("who of the operator acted is not", strstr(out.data, "olga") == NULL);
    CHECK("that it was the operator is", strstr(out.data, "\"role\":\"admin\"") != NULL);
    event.tenant = (struct id){ 0 };
    CHECK("the operator's are not", !feed_shows(&event, FEED_TENANT));
    CHECK("but to operators", feed_shows(&event, FEED_OPERATOR));
    event.tenant = (struct id){ 0, 1 };
    event.type = EV_CREDENTIAL_SET;
    CHECK("credentials are not", !feed_shows(&event, FEED_TENANT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),          cmocka_unit_test(test_lines),
        cmocka_unit_test(test_fixtures),        cmocka_unit_test(test_bad_bodies),
        cmocka_unit_test(test_bad_lines),       cmocka_unit_test(test_newer_fields),
        cmocka_unit_test(test_objects),         cmocka_unit_test(test_feed),
        cmocka_unit_test(test_feed_of_tenants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
