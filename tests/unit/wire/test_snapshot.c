/* Snapshots: a state written and read is the same state; what is cut or rotten is noticed. */
#include <string.h>

#include "unit/test.h"
#include "wire/snapshot.h"

enum { TENANTS = 3, WORKLOADS = 60 };

static void apply(struct state *state, struct event event)
{
    event.version = 1;
    event.sequence = state->sequence + 1;
    event.at = (struct mono){ (int64_t)event.sequence * 1000 };
    event.wall = (struct wall){ (int64_t)event.sequence * 1000 };
    evolve(state, &event);
}

static struct id id_of(uint64_t kind, uint64_t number)
{
    return (struct id){ kind, number };
}

static void add_catalog(struct state *state)
{
    apply(state,
          (struct event){ .type = EV_CONTROLLER_STARTED,
                          .controller_started = { .epoch = 3, .id_key = "0123456789abcde" } });
    apply(state, (struct event){ .type = EV_SETTINGS_CHANGED,
                                 .settings = { .grace_s = 60, .ended_keep_s = 3600 } });
    apply(state, (struct event){ .type = EV_CLASS_SET,
                                 .class_set = { .id = id_of(1, 1),
                                                .name = STR("h100-80g"),
                                                .vendor = STR("sim"),
                                                .memory_mib = 81920 } });
    apply(state, (struct event){ .type = EV_POOL_SET,
                                 .pool_set = { .id = id_of(2, 1), .name = STR("main") } });
}

static void add_tenant(struct state *state, struct arena *arena, uint64_t number)
{
    struct quota quotas[] = { { .quota_milli = 4000, .lend_limit_milli = -1, .limit_milli = -1 } };
    struct str name = str_of(arena_format(arena, "tenant-%d", (int)number));

    apply(state, (struct event){ .type = EV_PROJECT_SET,
                                 .tenant = id_of(3, number),
                                 .project_set = { .id = id_of(3, number),
                                                  .name = name,
                                                  .path = name,
                                                  .number = (int64_t)number,
                                                  .priority = 50,
                                                  .quotas = { quotas, 1 } } });
}

static struct event submitted(struct arena *arena, uint64_t number)
{
    struct event event = {
        .type = EV_WORKLOAD_SUBMITTED,
        .tenant = id_of(3, number % TENANTS),
        .workload_submitted = { .id = id_of(4, number),
                                .project = id_of(3, number % TENANTS),
                                .user = STR("alice"),
                                .members = 1,
                                .state = number % 3 == 0 ? WL_HELD : WL_QUEUED,
                                .request = { .gpu_milli = 1000, .class_count = 1 } },
    };
    struct workload_record *r = &event.workload_submitted;

    r->name = str_of(arena_format(arena, "work-%d", (int)number));
    r->spec_json = str_of(arena_format(arena, "{\"command\":[\"sleep\",\"%d\"]}", (int)number));
    return event;
}

static struct state *make_state(void)
{
    AUTO(arena) struct arena arena = { 0 };
    struct state *state = state_new();

    add_catalog(state);
    for (uint64_t i = 0; i < TENANTS; i++)
        add_tenant(state, &arena, i);
    for (uint64_t i = 0; i < WORKLOADS; i++)
        apply(state, submitted(&arena, i));
    return state;
}

static void test_round_trip(void **unused)
{
    (void)unused;
    AUTO(state) struct state *state = make_state();
    AUTO(state) struct state *copy = state_new();
    AUTO(buf) struct buf first = { 0 };
    AUTO(buf) struct buf second = { 0 };
    struct error e = { 0 };

    snapshot_write(state, &first);
    CHECK_OK("reads", snapshot_read(buf_str(&first), copy, &e), &e);
    CHECK("is consistent", state_check(copy, &e));
    CHECK("sequence", copy->sequence == state->sequence && copy->epoch == 3);
    CHECK("workloads", copy->workload_count == WORKLOADS);
    snapshot_write(copy, &second);
    CHECK("written again, the same bytes", str_eq(buf_str(&first), buf_str(&second)));
}

static void test_empty(void **unused)
{
    (void)unused;
    AUTO(state) struct state *state = state_new();
    AUTO(state) struct state *copy = state_new();
    AUTO(buf) struct buf text = { 0 };
    struct error e = { 0 };

    snapshot_write(state, &text);
    CHECK_OK("reads", snapshot_read(buf_str(&text), copy, &e), &e);
}

/* Written behind what a buffer holds already, it stands for itself. */
static void test_appended(void **unused)
{
    (void)unused;
    AUTO(state) struct state *state = make_state();
    AUTO(state) struct state *copy = state_new();
    AUTO(buf) struct buf text = { 0 };
    struct error e = { 0 };

    buf_add_text(&text, "before");
    snapshot_write(state, &text);
    buf_consume(&text, 6);
    CHECK_OK("reads", snapshot_read(buf_str(&text), copy, &e), &e);
}

static void test_cut(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    AUTO(state) struct state *state = make_state();
    AUTO(buf) struct buf text = { 0 };

    snapshot_write(state, &text);
    for (int round = 0; round < 300; round++) {
        AUTO(state) struct state *copy = state_new();
        struct error e = { 0 };
        size_t size = test_below(&seed, text.size);
        CHECK("a cut snapshot is refused",
              snapshot_read((struct str){ text.data, size }, copy, &e) == ERR_CORRUPT);
        CHECK("with a text", e.text[0] != '\0');
    }
}

static void test_rotten(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    AUTO(state) struct state *state = make_state();
    AUTO(buf) struct buf text = { 0 };

    snapshot_write(state, &text);
    for (int round = 0; round < 300; round++) {
        AUTO(state) struct state *copy = state_new();
        struct error e = { 0 };
        size_t at = test_below(&seed, text.size);
        char bit = (char)(1 << test_below(&seed, 7));
        text.data[at] = (char)(text.data[at] ^ bit);
        CHECK("a flipped bit is noticed", snapshot_read(buf_str(&text), copy, &e) == ERR_CORRUPT);
        text.data[at] = (char)(text.data[at] ^ bit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_appended),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_rotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
