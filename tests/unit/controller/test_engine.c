/* The engine over hand-driven seams: nothing leaves before it is durable, nothing that
 * was lost leaves. */
#include <string.h>

#include "controller/state_load.h"
#include "engine/engine.h"
#include "unit/test.h"

enum { NOTED_MAX = 64 };

struct world {
    struct engine *engine;
    struct store *store;
    struct mono now;
    uint64_t entropy;
    const struct store_batch *flying; /* handed over and not answered */
    unsigned commits, published, reported;
    uint64_t last_published;
    struct id feed_tenant; /* of the first event that belongs to a tenant */
    uint64_t feed_last;
    struct id sent[NOTED_MAX];
    size_t sent_count;
    uint64_t state_at_handing_over;
    bool answers_at_once; /* the store, from within the handing over */
};

static struct mono seam_mono(void *arg)
{
    return ((struct world *)arg)->now;
}

static struct wall seam_wall(void *arg)
{
    return (struct wall){ ((struct world *)arg)->now.ns };
}

static void seam_clock(void *arg, struct store_clock *out)
{
    struct world *world = arg;
    *out = (struct store_clock){ .boot_id = STR("boot"),
                                 .boottime_ns = world->now.ns,
                                 .mono = world->now,
                                 .wall = { world->now.ns } };
}

static void seam_entropy(void *arg, void *bytes, size_t size)
{
    struct world *world = arg;
    uint8_t *out = bytes;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)test_random(&world->entropy);
}

static void settle(struct world *world, enum err rc);

static void seam_commit(void *arg, const struct store_batch *batch)
{
    struct world *world = arg;
    CHECK("one commit at a time", world->flying == NULL);
    world->flying = batch;
    world->commits++;
    if (world->answers_at_once)
        settle(world, ERR_OK);
}

static enum err seam_reload(void *arg, struct state **out, struct error *e)
{
    return state_load(((struct world *)arg)->store, out, e);
}

static void seam_build(void *arg, const struct state *state, const struct node *node,
                       struct buf *out)
{
    (void)arg;
    (void)state;
    buf_format(out, "%llu", (unsigned long long)node->r.generation);
}

static void seam_send(void *arg, struct id node, struct str bytes)
{
    struct world *world = arg;
    (void)bytes;
    CHECK("room to note", world->sent_count < NOTED_MAX);
    world->sent[world->sent_count++] = node;
}

static void seam_publish(void *arg, const struct event *event, struct str body)
{
    struct world *world = arg;
    CHECK("in order, without gaps", event->sequence == world->last_published + 1);
    CHECK("a body", body.size > 0);
    CHECK("tenants' events have their number",
          id_is_none(event->tenant) == (event->tenant_sequence == 0));
    if (id_is_none(world->feed_tenant))
        world->feed_tenant = event->tenant;
    if (!id_is_none(event->tenant) && id_eq(event->tenant, world->feed_tenant)) {
        CHECK("a feed of its own without gaps", event->tenant_sequence == world->feed_last + 1);
        world->feed_last = event->tenant_sequence;
    }
    world->last_published = event->sequence;
    world->published++;
}

static void seam_report(void *arg, const char *what, const struct error *e)
{
    (void)e;
    print_message("# reported: %s: %s\n", what, e->text);
    ((struct world *)arg)->reported++;
}

static void seam_handing_over(void *arg, const struct state *state)
{
    ((struct world *)arg)->state_at_handing_over = state->sequence;
}

/* The outcome of the commit under way, by a real store (memory). */
static void settle(struct world *world, enum err rc)
{
    const struct store_batch *batch = world->flying;
    struct error e = { 0 };
    CHECK("something flies", batch != NULL);
    world->flying = NULL;
    if (rc == ERR_OK)
        CHECK_OK("append", world->store->vtable->append(world->store, batch, &e), &e);
    else
        (void)err_set(&e, rc, "disk full");
    engine_committed(world->engine, rc, &e);
}

static void turn(struct world *world)
{
    while (engine_turn(world->engine, 100))
        continue;
}

/* Everything durable, nothing open. */
static void settle_all(struct world *world)
{
    turn(world);
    while (world->flying != NULL) {
        settle(world, ERR_OK);
        turn(world);
    }
}

static void world_start(struct world *world)
{
    struct error e = { 0 };
    struct state *state = NULL;
    uint64_t epoch = 0;
    const struct engine_seams seams = {
        .arg = world,
        .mono_now = seam_mono,
        .wall_now = seam_wall,
        .machine_clock = seam_clock,
        .entropy = seam_entropy,
        .commit = seam_commit,
        .handing_over = seam_handing_over,
        .reload = seam_reload,
        .desired_build = seam_build,
        .desired_send = seam_send,
        .publish = seam_publish,
        .report = seam_report,
    };
    *world = (struct world){ .now = { 1000 * NS_PER_S }, .entropy = 7 };
    world->store = store_memory_new();
    CHECK_OK("claim", world->store->vtable->claim(world->store, 1, &epoch, &e), &e);
    CHECK_OK("load", state_load(world->store, &state, &e), &e);
    world->engine = engine_new(&seams, state);
    engine_start(world->engine, epoch, STR("test"));
    settle_all(world);
}

static void world_end(struct world *world)
{
    CHECK("nothing was reported", world->reported == 0);
    engine_free(world->engine);
    store_free(world->store);
}

static const struct actor root = { .role = ROLE_ADMIN, .name = { "root", 4 } };

static enum err create_tenant(struct world *world, const char *name)
{
    struct command command = { .type = CMD_PROJECT_CREATE, .actor = root };
    struct error e = { 0 };
    command.project = (struct project_spec){ .path = str_of(name), .priority = UNSET };
    return engine_command(world->engine, &command, &e);
}

struct waiting {
    struct engine_waiter waiter;
    bool is_settled;
    enum err rc;
    const struct world *world; /* may be NULL */
    bool was_flying;           /* the next batch, when this was settled */
};

static void on_settled(struct engine_waiter *waiter, enum err rc, const struct error *why)
{
    struct waiting *waiting = (struct waiting *)(void *)waiter;
    (void)why;
    CHECK("once", !waiting->is_settled);
    waiting->is_settled = true;
    waiting->was_flying = waiting->world != NULL && waiting->world->flying != NULL;
    waiting->rc = rc;
}

static struct waiting wait_here(void)
{
    return (struct waiting){ .waiter = { .settled = on_settled } };
}

static bool has_tenant(const struct world *world, const char *name)
{
    return state_project_by_path(engine_state(world->engine), str_of(name)) != NULL;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_answers_wait_for_their_batch(void **state)
{
    (void)state;
    struct world world;
    struct waiting early = wait_here();
    struct waiting answer = wait_here();
    struct waiting read = wait_here();
    struct waiting later = wait_here();
    world_start(&world);

    engine_wait(world.engine, &early.waiter);
    CHECK("nothing to wait for: at once", early.is_settled && early.rc == ERR_OK);

    CHECK("create", create_tenant(&world, "amber") == ERR_OK);
    engine_wait(world.engine, &answer.waiter);
    turn(&world);
    engine_wait(world.engine, &read.waiter); /* reflects what flies */
    CHECK("created while it flies", create_tenant(&world, "birch") == ERR_OK);
    engine_wait(world.engine, &later.waiter);
    turn(&world);
    CHECK("nobody has heard", !answer.is_settled && !read.is_settled && !later.is_settled);
    CHECK("nor any feed", world.published == world.last_published);

    settle(&world, ERR_OK);
    CHECK("the first batch", answer.is_settled && read.is_settled && !later.is_settled);
    turn(&world);
    settle(&world, ERR_OK);
    CHECK("the second", later.is_settled && later.rc == ERR_OK);
    settle_all(&world);
    world_end(&world);
}

/* The store's time is the dearest: it does not wait until everybody has been told. */
static void test_the_next_flies_before_the_last_is_told(void **state)
{
    (void)state;
    struct world world;
    struct waiting first = wait_here();
    struct waiting second = wait_here();
    world_start(&world);
    first.world = second.world = &world;
    CHECK("create", create_tenant(&world, "amber") == ERR_OK);
    engine_wait(world.engine, &first.waiter);
    turn(&world);
    CHECK("another", create_tenant(&world, "birch") == ERR_OK);
    engine_wait(world.engine, &second.waiter);
    settle(&world, ERR_OK);
    CHECK("told while the next flies", first.is_settled && first.was_flying);
    CHECK("not the next", !second.is_settled);
    settle(&world, ERR_OK);
    CHECK("nothing more to fly", second.is_settled && !second.was_flying);
    settle_all(&world);
    world_end(&world);
}

/* One commit of `took_ns`, with `count` who wait for it; they are told. */
static void commit_slowly(struct world *world, int64_t took_ns, struct waiting *waiting,
                          size_t count, unsigned *name)
{
    char text[32];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(text, sizeof(text), "p%u", (*name)++);
        waiting[i] = wait_here();
        CHECK("create", create_tenant(world, text) == ERR_OK);
        engine_wait(world->engine, &waiting[i].waiter);
    }
    turn(world);
    if (world->flying == NULL) { /* held for company that does not come */
        world->now = engine_wake_at(world->engine);
        turn(world);
    }
    world->now.ns += took_ns;
    settle(world, ERR_OK);
}

static void test_a_slow_store_is_given_more_at_once(void **state)
{
    (void)state;
    struct world world;
    struct waiting waiting[8];
    unsigned name = 0;
    world_start(&world);
    for (int i = 0; i < 40; i++)
        commit_slowly(&world, 8 * NS_PER_MS, waiting, 4, &name);

    /* One of four asks again: the others may, for a quarter of what a commit takes. */
    CHECK("create", create_tenant(&world, "amber") == ERR_OK);
    struct waiting one = wait_here();
    engine_wait(world.engine, &one.waiter);
    turn(&world);
    CHECK("held", world.flying == NULL);
    int64_t left_ns = engine_wake_at(world.engine).ns - world.now.ns;
    CHECK("not for long", left_ns > 0 && left_ns <= 4 * NS_PER_MS);
    CHECK("create", create_tenant(&world, "birch") == ERR_OK);
    struct waiting more[3] = { wait_here(), wait_here(), wait_here() };
    for (size_t i = 0; i < COUNT_OF(more); i++)
        engine_wait(world.engine, &more[i].waiter);
    turn(&world);
    CHECK("all are there: at once", world.flying != NULL);
    settle_all(&world);

    /* Alone nobody is waited for, and with a fast store neither. */
    for (int i = 0; i < 40; i++)
        commit_slowly(&world, 8 * NS_PER_MS, waiting, 1, &name);
    CHECK("create", create_tenant(&world, "cedar") == ERR_OK);
    turn(&world);
    CHECK("alone", world.flying != NULL);
    settle_all(&world);
    for (int i = 0; i < 80; i++)
        commit_slowly(&world, NS_PER_MS / 10, waiting, 4, &name);
    CHECK("create", create_tenant(&world, "delta") == ERR_OK);
    turn(&world);
    CHECK("fast", world.flying != NULL);
    settle_all(&world);
    world_end(&world);
}

/* The order of the journal holds (seam_publish looks), however the answers of a store nest. */
static void test_a_store_that_answers_at_once(void **state)
{
    (void)state;
    struct world world;
    struct waiting waiting[3] = { wait_here(), wait_here(), wait_here() };
    static const char *const names[] = { "amber", "birch", "cedar" };
    world_start(&world);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        CHECK("create", create_tenant(&world, names[i]) == ERR_OK);
        engine_wait(world.engine, &waiting[i].waiter);
        if (i == 0)
            turn(&world);
    }
    world.answers_at_once = true;
    settle(&world, ERR_OK);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        CHECK(names[i], waiting[i].is_settled && waiting[i].rc == ERR_OK);
    CHECK("and later", create_tenant(&world, "delta") == ERR_OK);
    turn(&world);
    world_end(&world);
}

static void test_refusals_wait_too(void **state)
{
    (void)state;
    struct world world;
    struct waiting refusal = wait_here();
    world_start(&world);
    CHECK("create", create_tenant(&world, "amber") == ERR_OK);
    CHECK("twice is refused", create_tenant(&world, "amber") == ERR_CONFLICT);
    engine_wait(world.engine, &refusal.waiter);
    turn(&world);
    CHECK("it reflects what is not durable", !refusal.is_settled);
    settle(&world, ERR_OK);
    CHECK("now it is", refusal.is_settled);
    settle_all(&world);
    world_end(&world);
}

static void test_many_commands_are_one_batch(void **state)
{
    (void)state;
    struct world world;
    world_start(&world);
    unsigned before = world.commits;
    char name[32];
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        CHECK("create", create_tenant(&world, name) == ERR_OK);
    }
    turn(&world);
    CHECK("one", world.commits == before + 1 && world.flying->event_count >= 100);
    CHECK("the state is what the batch will make durable",
          world.state_at_handing_over ==
              world.flying->events[world.flying->event_count - 1].event->sequence);
    settle_all(&world);
    world_end(&world);
}

static void test_disk_full(void **state)
{
    (void)state;
    struct world world;
    struct waiting flying = wait_here();
    struct waiting open = wait_here();
    world_start(&world);
    CHECK("durable", create_tenant(&world, "amber") == ERR_OK);
    settle_all(&world);

    CHECK("flying", create_tenant(&world, "birch") == ERR_OK);
    engine_wait(world.engine, &flying.waiter);
    turn(&world);
    CHECK("open", create_tenant(&world, "cedar") == ERR_OK);
    engine_wait(world.engine, &open.waiter);
    settle(&world, ERR_UNAVAILABLE);
    CHECK("told", flying.rc == ERR_UNAVAILABLE && open.rc == ERR_UNAVAILABLE);
    CHECK("back to what is stored", has_tenant(&world, "amber") && !has_tenant(&world, "birch") &&
                                        !has_tenant(&world, "cedar"));
    CHECK("refuses", create_tenant(&world, "delta") == ERR_UNAVAILABLE);
    CHECK("says why", strstr(engine_refusal(world.engine), "disk full") != NULL);

    turn(&world);
    CHECK("does not hurry", world.flying == NULL);
    world.now.ns += 3 * NS_PER_S;
    turn(&world);
    CHECK("tries", world.flying != NULL && world.flying->event_count == 0);
    settle(&world, ERR_UNAVAILABLE);
    CHECK("still refuses", create_tenant(&world, "delta") == ERR_UNAVAILABLE);
    world.now.ns += 3 * NS_PER_S;
    turn(&world);
    settle(&world, ERR_OK);
    CHECK("recovers by itself", engine_refusal(world.engine) == NULL);
    CHECK("takes commands", create_tenant(&world, "birch") == ERR_OK);
    settle_all(&world);
    CHECK("durable", has_tenant(&world, "birch"));
    world_end(&world);
}

static void test_answers_under_keys(void **state)
{
    (void)state;
    struct world world;
    struct store_answer answer = { .key = { { 1 } }, .status = 201, .content = STR("{}") };
    world_start(&world);
    CHECK("unknown", engine_pending_answer(world.engine, &answer.key) == NULL &&
                         engine_answer_number(world.engine, &answer.key) == 0);
    CHECK("create", create_tenant(&world, "amber") == ERR_OK);
    engine_remember(world.engine, &answer);
    const struct store_answer *found = engine_pending_answer(world.engine, &answer.key);
    CHECK("open", found != NULL && str_is(found->content, "{}"));
    turn(&world);
    CHECK("flying", engine_pending_answer(world.engine, &answer.key) != NULL);
    CHECK("in the same batch", world.flying->answer_count == 1);
    settle(&world, ERR_OK);
    CHECK("the store's now", engine_pending_answer(world.engine, &answer.key) == NULL &&
                                 engine_answer_number(world.engine, &answer.key) == 1);
    settle_all(&world);
    world_end(&world);
}

static struct id add_node(struct world *world)
{
    struct command token = { .type = CMD_TOKEN_CREATE, .actor = root, .secret = { { 9 } } };
    struct command join = { .type = CMD_NODE_JOIN,
                            .actor = { .role = ROLE_NODE_JOIN, .name = STR("n1") } };
    struct command inventory = { .type = CMD_NODE_INVENTORY };
    struct error e = { 0 };
    token.token_create =
        (struct token_spec){ .name = STR("join"), .role = ROLE_NODE_JOIN, .expires_s = UNSET };
    CHECK_OK("token", engine_command(world->engine, &token, &e), &e);
    join.node_join.name = STR("n1");
    join.node_join.join_secret.bytes[0] = 9;
    CHECK_OK("join", engine_command(world->engine, &join, &e), &e);
    inventory.actor = (struct actor){ .role = ROLE_NODE, .node = join.new_id, .name = STR("n1") };
    inventory.inventory = (struct node_inventory){ .node = join.new_id,
                                                   .boot_id = STR("boot"),
                                                   .agent_version = STR("test"),
                                                   .cpu_class_name = STR("cpu-x86"),
                                                   .cpu_milli = 4000,
                                                   .memory_mib = 4096 };
    CHECK_OK("inventory", engine_command(world->engine, &inventory, &e), &e);
    engine_node_seen(world->engine, join.new_id, STR("boot"));
    settle_all(world);
    return join.new_id;
}

static enum node_contact contact(const struct world *world, struct id node)
{
    return state_node(engine_state(world->engine), node)->r.contact;
}

static void test_contact(void **state)
{
    (void)state;
    struct world world;
    world_start(&world);
    struct id node = add_node(&world);
    CHECK("in contact", contact(&world, node) == CONTACT_OK);
    unsigned before = world.commits;
    for (unsigned i = 0; i < 10; i++) {
        world.now.ns += NS_PER_S;
        engine_node_seen(world.engine, node, STR("boot"));
        settle_all(&world);
    }
    CHECK("hearing of it is no event", world.commits == before);
    world.now.ns += 16 * NS_PER_S;
    settle_all(&world);
    CHECK("silent", contact(&world, node) == CONTACT_UNKNOWN);
    engine_node_seen(world.engine, node, STR("boot"));
    settle_all(&world);
    CHECK("back", contact(&world, node) == CONTACT_OK);
    world.now.ns += 121 * NS_PER_S;
    settle_all(&world);
    CHECK("lost", contact(&world, node) == CONTACT_LOST);
    world_end(&world);
}

static void test_desired_sets_follow_durability(void **state)
{
    (void)state;
    struct world world;
    world_start(&world);
    struct id node = add_node(&world);
    size_t before = world.sent_count;
    engine_node_resend(world.engine, node);
    turn(&world);
    CHECK("not yet", world.sent_count == before);
    settle(&world, ERR_OK);
    CHECK("sent", world.sent_count == before + 1 && id_eq(world.sent[before], node));
    settle_all(&world);
    world_end(&world);
}

static void test_a_higher_epoch(void **state)
{
    (void)state;
    struct world world;
    uint64_t epoch = 0;
    struct error e = { 0 };
    world_start(&world);
    struct id node = add_node(&world);
    size_t before = world.sent_count;
    CHECK_OK("claim", world.store->vtable->claim(world.store, 500, &epoch, &e), &e);
    engine_raise_epoch(world.engine, epoch, STR("test"));
    turn(&world);
    CHECK("decided, not told",
          engine_state(world.engine)->epoch == 500 && world.sent_count == before);
    settle(&world, ERR_OK);
    CHECK("every node gets its set anew",
          world.sent_count == before + 1 && id_eq(world.sent[before], node));
    CHECK("and goes on under it", create_tenant(&world, "amber") == ERR_OK);
    settle_all(&world);
    world_end(&world);
}

static void test_time_never_goes_back(void **state)
{
    (void)state;
    struct world world;
    world_start(&world);
    CHECK("create", create_tenant(&world, "amber") == ERR_OK);
    settle_all(&world);
    struct mono then = engine_state(world.engine)->now;
    world.now.ns -= 500 * NS_PER_S;
    CHECK("create", create_tenant(&world, "birch") == ERR_OK);
    settle_all(&world);
    CHECK("not before", !mono_before(engine_state(world.engine)->now, then));
    engine_self_check(world.engine);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_wait_for_their_batch),
        cmocka_unit_test(test_the_next_flies_before_the_last_is_told),
        cmocka_unit_test(test_a_slow_store_is_given_more_at_once),
        cmocka_unit_test(test_a_store_that_answers_at_once),
        cmocka_unit_test(test_refusals_wait_too),
        cmocka_unit_test(test_many_commands_are_one_batch),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_answers_under_keys),
        cmocka_unit_test(test_contact),
        cmocka_unit_test(test_desired_sets_follow_durability),
        cmocka_unit_test(test_a_higher_epoch),
        cmocka_unit_test(test_time_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
