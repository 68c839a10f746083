/* Bodies of events: every type, every fixture of every version. */
#include <assert.h>
#include <dirent.h>
#include <string.h>

#include "model/state.h"
#include "unit/test.h"
#include "unit/wire/generate.h"
#include "wire/event_json.h"
#include "wire/feed.h"

enum { ROUNDS = 100, FIXTURE_BYTES_MAX = 64 * 1024, FIXTURES_MAX = 256 };

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

/* events/vVERSION/TYPE.json, or TYPE.N.json as an older program wrote it. */
struct fixture {
    char name[272];
    enum event_type type;
    unsigned version;
    struct buf text;
};

struct fixtures {
    struct fixture items[FIXTURES_MAX];
    size_t count;
};

static void fixture_read(struct fixtures *all, const char *path, const char *file, unsigned version)
{
    struct fixture *fixture = &all->items[all->count++];
    struct str name = str_of(file);
    struct str type = str_cut(&name, '.');
    assert(all->count < FIXTURES_MAX);
    *fixture = (struct fixture){ .version = version };
    (void)snprintf(fixture->name, sizeof(fixture->name), "v%u/%s", version, file);
    while (fixture->type < EV_TYPE_COUNT &&
           (event_name(fixture->type) == NULL || !str_is(type, event_name(fixture->type))))
        fixture->type++;
    CHECK(fixture->name, fixture->type < EV_TYPE_COUNT);
    FILE *stream = fopen(path, "re");
    CHECK(fixture->name, stream != NULL);
    buf_reserve(&fixture->text, FIXTURE_BYTES_MAX);
    fixture->text.size = fread(fixture->text.data, 1, FIXTURE_BYTES_MAX, stream);
    (void)fclose(stream);
    CHECK(fixture->name, fixture->text.size > 0);
}

/* Whatever lies there, of every version there ever was. */
static void fixtures_find(struct fixtures *all)
{
    char path[512];
    const char *root = getenv("BERTH_FIXTURES"); /* NOLINT(concurrency-mt-unsafe): one thread */
    for (unsigned version = 1;; version++) {
        (void)snprintf(path, sizeof(path), "%s/events/v%u", root != NULL ? root : "tests/fixtures",
                       version);
        DIR *dir = opendir(path);
        if (dir == NULL)
            break;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
            if (entry->d_name[0] == '.')
                continue;
            AUTO(buf) struct buf file = { 0 };
            buf_format(&file, "%s/%s", path, entry->d_name);
            fixture_read(all, file.data, entry->d_name, version);
        }
        (void)closedir(dir);
    }
    CHECK("there are some", all->count > 0);
}

static void fixtures_done(struct fixtures *all)
{
    for (size_t i = 0; i < all->count; i++)
        buf_done(&all->items[i].text);
}
DEFINE_CLEANUP_AT(fixtures, struct fixtures, fixtures_done)

static void fixture_decode(const struct fixture *fixture, struct arena *arena, struct event *out)
{
    struct error e = { 0 };
    *out = (struct event){ .type = fixture->type, .version = fixture->version };
    CHECK_OK(fixture->name, event_body_decode(buf_str(&fixture->text), arena, out, &e), &e);
}

/* All that `old` says is in `new`, which may say more: fields are added to types. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as a fixture */
static bool says_as_much(const json_t *new, const json_t *old)
{
    const char *key = NULL;
    const json_t *value = NULL;
    if (json_is_array(old) && json_array_size(new) == json_array_size(old)) {
        for (size_t i = 0; i < json_array_size(old); i++) {
            if (!says_as_much(json_array_get(new, i), json_array_get(old, i)))
                return false;
        }
        return true;
    }
    if (!json_is_object(old))
        return json_equal(new, old) == 1;
    json_object_foreach((json_t *)(uintptr_t)old, key, value)
    {
        if (!says_as_much(json_object_get(new, key), value))
            return false;
    }
    return json_is_object(new);
}

/* What a fixture says is what is read; of each type one says all there is to say. */
static void test_fixtures(void **state)
{
    (void)state;
    bool is_complete[EV_TYPE_COUNT] = { false };
    AUTO(fixtures) struct fixtures all = { .count = 0 };
    fixtures_find(&all);
    for (size_t i = 0; i < all.count; i++) {
        AUTO(arena) struct arena arena = { 0 };
        AUTO(buf) struct buf out = { 0 };
        AUTO(json) json_t *before = NULL;
        AUTO(json) json_t *after = NULL;
        struct error e = { 0 };
        struct event event;
        const struct fixture *fixture = &all.items[i];
        fixture_decode(fixture, &arena, &event);
        event_body_encode(&event, &out);
        CHECK_OK(fixture->name, json_read(buf_str(&fixture->text), 0, &before, &e), &e);
        CHECK_OK(fixture->name, json_read(buf_str(&out), 0, &after, &e), &e);
        CHECK(fixture->name, says_as_much(after, before));
        is_complete[fixture->type] |= json_equal(before, after) == 1;
    }
    for (unsigned type = 0; type < EV_TYPE_COUNT; type++) {
        if (event_name(type) != NULL)
            CHECK(event_name(type), is_complete[type]);
    }
}

/* ---- fixtures as a history ----------------------------------------------------------------- */

static void replay(struct state *state, struct event *event)
{
    event->sequence = state->sequence + 1;
    event->at = (struct mono){ (int64_t)event->sequence };
    evolve(state, event);
}

/* What the fixtures lean on and none of them is about. */
static void make_classes(struct state *state, const struct event *next)
{
    for (int64_t number = 0; number < next->class_set.number; number++) {
        struct event event = { .type = EV_CLASS_SET, .version = 1 };
        event.class_set.id = (struct id){ 1, (uint64_t)number + 1 };
        event.class_set.name = (struct str){ &"abcdefgh"[number], 1 };
        event.class_set.number = number;
        replay(state, &event);
    }
}

static void make_parents(struct state *state, const struct event *next)
{
    struct event event = { .type = EV_PROJECT_SET, .version = 1 };
    CHECK("the tenant of the others",
          id_parse(ID_TENANT, STR("ten_10r6se036bhq03bnn8gtkhx5zv"), &event.project_set.id));
    event.project_set.name = event.project_set.path = STR("amber");
    replay(state, &event);
    event.project_set.parent = event.project_set.id;
    event.project_set.id = next->project_set.parent;
    event.project_set.name = STR("vision");
    event.project_set.path = STR("amber/vision");
    replay(state, &event);
}

static void step_workload(struct state *state, struct id id, enum workload_state to)
{
    struct event event = { .type = EV_WORKLOAD_CHANGED, .version = 1 };
    event.workload_changed.workload = id;
    event.workload_changed.state = to;
    replay(state, &event);
}

static void start_work(struct state *state, const struct event *next)
{
    step_workload(state, next->workload_changed.workload, WL_QUEUED);
    step_workload(state, next->workload_changed.workload, WL_STARTING);
}

static void end_work(struct state *state, const struct event *next)
{
    struct event event = { .type = EV_ALLOCATION_CHANGED, .version = 1 };
    event.allocation_changed.allocation =
        state_workload(state, next->removed.id)->first_allocation->r.id;
    event.allocation_changed.state = AL_ENDED;
    replay(state, &event);
    step_workload(state, next->removed.id, WL_FAILED);
}

/* Whatever step the work took before, it runs. */
static void go_on(struct state *state, const struct event *next)
{
    struct workload *workload = state_workload(state, next->gang_changed.workload);
    CHECK("it is there", workload != NULL);
    workload->r.state = WL_RUNNING;
}

/* The fixture of its submission may be of before there were reservations. */
static void tie_work(struct state *state, const struct event *next)
{
    struct workload *workload = state_workload(state, next->removed.id);
    CHECK("it is there", workload != NULL);
    workload->r.reservation = state->first_reservation->r.id;
}

static void end_change(struct state *state, const struct event *next)
{
    struct event event = { .type = EV_CHANGE_SET, .version = 1 };
    event.change_set = state_change(state, next->removed.id)->r;
    event.change_set.state = CHG_REVERTED;
    replay(state, &event);
}

static void end_reservation(struct state *state, const struct event *next)
{
    struct event event = { .type = EV_RESERVATION_SET, .version = 1 };
    event.reservation_set = state_reservation(state, next->removed.id)->r;
    event.reservation_set.state = RSV_CANCELLED;
    replay(state, &event);
}

/* Every type once, in an order in which it may have happened. */
static const struct happened {
    enum event_type type;
    void (*before)(struct state *state, const struct event *next);
} history[] = {
    { EV_CONTROLLER_STARTED, NULL },
    { EV_SETTINGS_CHANGED, NULL },
    { EV_CLASS_SET, make_classes },
    { EV_POOL_SET, NULL },
    { EV_PROFILE_SET, NULL },
    { EV_PROJECT_SET, make_parents },
    { EV_TOKEN_SET, NULL },
    { EV_NODE_SET, NULL },
    { EV_NODE_CONTACT, NULL },
    { EV_NODE_HOLDS, NULL },
    { EV_DEVICE_CHANGED, NULL },
    { EV_VOLUME_SET, NULL },
    { EV_IMAGE_SET, NULL },
    { EV_CREDENTIAL_SET, NULL },
    { EV_HOOK_SET, NULL },
    { EV_HOOK_TESTED, NULL },
    { EV_UPLOAD_STORED, NULL },
    { EV_RESERVATION_SET, NULL },
    { EV_CHANGE_SET, NULL },
    { EV_WORKLOAD_SUBMITTED, NULL },
    { EV_ALLOCATION_GRANTED, NULL },
    { EV_WORKLOAD_CHANGED, start_work },
    { EV_WORKLOAD_UNTIED, tie_work },
    { EV_GANG_CHANGED, go_on },
    { EV_ALLOCATION_NOTED, NULL },
    { EV_ALLOCATION_CHANGED, NULL },
    { EV_WORKLOAD_FORGOTTEN, end_work },
    { EV_RESERVATION_REMOVED, end_reservation },
    { EV_CHANGE_REMOVED, end_change },
    { EV_VOLUME_REMOVED, NULL },
    { EV_IMAGE_REMOVED, NULL },
    { EV_CREDENTIAL_REMOVED, NULL },
    { EV_HOOK_REMOVED, NULL },
    { EV_TOKEN_REMOVED, NULL },
    { EV_PROJECT_REMOVED, NULL },
    { EV_NODE_REMOVED, NULL },
    { EV_PROFILE_REMOVED, NULL },
    { EV_POOL_REMOVED, NULL },
    { EV_CLASS_REMOVED, NULL },
};

/* This fixture where it is of that type, else any that is. */
static const struct fixture *fixture_for(const struct fixtures *all, const struct fixture *wanted,
                                         enum event_type type)
{
    for (size_t i = 0; i < all->count && wanted->type != type; i++) {
        if (all->items[i].type == type)
            return &all->items[i];
    }
    return wanted;
}

/* Each is a part of a history that the state takes: its assertions would end us. */
static void test_fixtures_happen(void **state)
{
    (void)state;
    AUTO(fixtures) struct fixtures all = { .count = 0 };
    fixtures_find(&all);
    for (size_t i = 0; i < all.count; i++) {
        AUTO(state) struct state *world = state_new();
        bool has_happened = false;
        FOR_EACH_CASE (step, history) {
            AUTO(arena) struct arena arena = { 0 };
            struct event event;
            const struct fixture *fixture = fixture_for(&all, &all.items[i], step->type);
            fixture_decode(fixture, &arena, &event);
            if (step->before != NULL)
                step->before(world, &event);
            replay(world, &event);
            has_happened |= fixture == &all.items[i];
        }
        CHECK(all.items[i].name, has_happened);
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
    if (type == EV_HOOK_SET)
        event.hook_set.sealed = event.hook_set.url = STR(sealed);
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
    event.type = EV_HOOK_SET;
    CHECK("nor hooks", !feed_shows(&event, FEED_TENANT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),       cmocka_unit_test(test_lines),
        cmocka_unit_test(test_fixtures),     cmocka_unit_test(test_fixtures_happen),
        cmocka_unit_test(test_bad_bodies),   cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_newer_fields), cmocka_unit_test(test_objects),
        cmocka_unit_test(test_feed),         cmocka_unit_test(test_feed_of_tenants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
