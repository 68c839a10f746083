/* Views: names for workers, problems, and that nothing secret is in one. */
#include <string.h>

#include "unit/test.h"
#include "wire/resource.h"

static void apply(struct state *state, struct event event)
{
    event.version = 1;
    event.sequence = state->sequence + 1;
    event.at = (struct mono){ (int64_t)event.sequence };
    evolve(state, &event);
}

static struct state *make_state(void)
{
    struct state *state = state_new();
    struct quota quota = { 1, 3000, UNBOUNDED, UNBOUNDED, 100 };

    apply(state, (struct event){ .type = EV_SETTINGS_CHANGED });
    for (uint64_t i = 0; i < 3; i++)
        apply(state,
              (struct event){ .type = EV_CLASS_SET,
                              .class_set = { .id = { 1, i },
                                             .number = (int64_t)i,
                                             .name = i == 1 ? STR("mi300x") : STR("l40s") } });
    for (uint64_t i = 9; i > 0; i--) { /* ids against the order of creation */
        char name[] = "tenant-0";
        name[sizeof(name) - 2] = (char)('0' + i);
        apply(state, (struct event){ .type = EV_PROJECT_SET,
                                     .project_set = { .id = { 2, i },
                                                      .name = str_of(name),
                                                      .path = str_of(name),
                                                      .quotas = { &quota, i == 1 ? 1u : 0u } } });
    }
    apply(state, (struct event){ .type = EV_PROJECT_SET,
                                 .project_set = { .id = { 3, 1 },
                                                  .parent = { 2, 1 },
                                                  .name = STR("vision"),
                                                  .path = STR("tenant-1/vision") } });
    return state;
}

/* The copy for workers says the same as the state, also after the state has changed. */
static void test_names(void **unused)
{
    (void)unused;
    AUTO(arena) struct arena arena = { 0 };
    struct state *state = make_state();
    struct wire_names own = wire_names_of(state);
    struct wire_names copy = wire_names_copy(state, &arena);

    for (uint64_t i = 0; i < 12; i++) {
        struct id id = { 2, i };
        CHECK("tenants", own.is_tenant(own.arg, id) == copy.is_tenant(copy.arg, id));
        CHECK("tenants", own.is_tenant(own.arg, id) == (i >= 1 && i <= 9));
    }
    CHECK("a project is no tenant", !copy.is_tenant(copy.arg, (struct id){ 3, 1 }));
    for (int64_t number = -1; number < 5; number++)
        CHECK("classes",
              str_eq(own.class_name(own.arg, number), copy.class_name(copy.arg, number)));
    state_free(state);
    CHECK("the copy stands alone", str_is(copy.class_name(copy.arg, 1), "mi300x"));

    AUTO(state) struct state *empty = state_new();
    copy = wire_names_copy(empty, &arena);
    CHECK("nothing in nothing",
          !copy.is_tenant(copy.arg, (struct id){ 2, 1 }) && copy.class_name(copy.arg, 0).size == 0);
}

static struct class_numbers some_use(const void *arg, const struct project *project,
                                     int64_t class_number)
{
    (void)project;
    return (struct class_numbers){ .pending_milli = class_number == 2 ? *(const int64_t *)arg : 0 };
}

static void test_quota_rows(void **unused)
{
    (void)unused;
    AUTO(arena) struct arena arena = { 0 };
    AUTO(state) struct state *state = make_state();
    const struct project *tenant = state_project(state, (struct id){ 2, 1 });
    struct project_view view;
    int64_t pending = 500;

    project_view_fill(&view, state, tenant, NULL, NULL, &arena);
    CHECK("a class with a quota has a row",
          view.quotas.count == 1 && str_is(view.quotas.items[0].class_name, "mi300x"));
    CHECK("with its defaults", view.quotas.items[0].limit_milli == UNBOUNDED);
    project_view_fill(&view, state, tenant, some_use, &pending, &arena);
    CHECK("and one with demand",
          view.quotas.count == 2 && view.quotas.items[1].pending_milli == 500);
}

/* What is said of a number: absent and 0 are not the same. */
static void test_absent_and_zero(void **unused)
{
    (void)unused;
    AUTO(arena) struct arena arena = { 0 };
    AUTO(state) struct state *state = make_state();
    const struct wire_names names = wire_names_of(state);
    const struct workload_record first = { .id = { 5, 1 }, .array = { 5, 1 } };
    const struct workload_record alone = { .id = { 5, 2 } };
    const struct {
        const char *name;
        const struct workload_record *record;
        int64_t queued_s;
        bool has_index, has_queued;
    } cases[] = {
        { "the first element of an array", &first, UNSET, true, false },
        { "no element", &alone, UNSET, false, false },
        { "waiting since now", &alone, 0, false, true },
    };

    FOR_EACH_CASE (c, cases) {
        AUTO(buf) struct buf text = { 0 };
        AUTO(json) json_t *json = NULL;
        struct json_writer w = json_writer_of(&text);
        struct error e = { 0 };
        struct workload_view view;
        workload_view_of_record(&view, c->record, &names, &arena);
        CHECK(c->name, view.queued_s == UNSET && view.running_s == UNSET);
        view.queued_s = c->queued_s;
        schema_encode(&w, &workload_view_schema, &view, WIRE_PUBLIC, &names);
        CHECK_OK(c->name, json_read(buf_str(&text), 0, &json, &e), &e);
        CHECK(c->name, (json_object_get(json, "array_index") != NULL) == c->has_index);
        CHECK(c->name, (json_object_get(json, "queued_s") != NULL) == c->has_queued);
        CHECK(c->name, json_object_get(json, "running_s") == NULL);
    }
}

static const struct problem_case {
    enum err code;
    unsigned cause;
    int64_t status;
    const char *name;
} problems[] = {
    { ERR_INVALID, 0, 400, "invalid" },
    { ERR_NOT_FOUND, 0, 404, "not_found" },
    { ERR_CONFLICT, CAUSE_OVERCOMMITTED, 409, "overcommitted" },
    { ERR_LIMIT, 0, 422, "exceeds_limit" },
    { ERR_DENIED, 0, 403, "not_permitted" },
    { ERR_UNAUTHENTICATED, 0, 401, "unauthenticated" },
    { ERR_RATE, 0, 429, "rate_limited" },
    { ERR_UNAVAILABLE, 0, 503, "unavailable" },
    { ERR_IO, 0, 500, "unavailable" },
    { ERR_CORRUPT, 0, 500, "unavailable" },
    { ERR_COUNT, 0, 500, "unavailable" },
};

static void test_problems(void **unused)
{
    (void)unused;
    FOR_EACH_CASE (c, problems) {
        const struct error e = { .code = c->code,
                                 .cause = c->cause,
                                 .field = "name",
                                 .text = "name: \"/etc/secret\" is wrong" };
        struct problem_view view;
        problem_view_fill(&view, &e);
        CHECK(c->name, view.status == c->status && str_is(view.cause, c->name));
        CHECK(c->name, view.title.size > 0 && str_is(view.field, "name"));
        bool tells = memmem(view.detail.data, view.detail.size, "/etc/secret", 11) != NULL;
        CHECK("what fails inside is not told", tells == (c->status != 500));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_quota_rows),
        cmocka_unit_test(test_absent_and_zero),
        cmocka_unit_test(test_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
