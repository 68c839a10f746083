#include <string.h>

#include "agent/reconcile.h"
#include "model/cause.h"
#include "sample.h"
#include "unit/test.h"

#define READY(payload, image, upload, hopeless)                                                    \
    {                                                                                              \
        .has_payload = (payload), .has_image = (image), .has_upload = (upload),                    \
        .is_hopeless = (hopeless)                                                                  \
    }

static const struct rec_ready all_ready = READY(true, true, true, false);

/* One grant against at most one attempt: the smallest worlds there are. */
struct row {
    const char *name;
    bool has_set;
    bool is_wanted;
    bool is_stop;  /* the grant asks for it */
    bool is_there; /* an attempt exists */
    enum rec_state state;
    bool is_log_stored;
    int64_t ended_s_ago;
    enum rec_kind expected; /* REC_KIND_COUNT: nothing */
};

static const struct row rows[] = {
    { "before the first set nothing is concluded", false, false, false, true, REC_RUNNING, false, 0,
      REC_KIND_COUNT },
    { "wanted and absent starts", true, true, false, false, 0, false, 0, REC_START },
    { "wanted and preparing is left alone", true, true, false, true, REC_PREPARING, false, 0,
      REC_KIND_COUNT },
    { "wanted and running is left alone", true, true, false, true, REC_RUNNING, false, 0,
      REC_KIND_COUNT },
    { "wanted and ended is kept, stored or not", true, true, false, true, REC_EXITED, true, 9999,
      REC_KIND_COUNT },
    { "wanted to stop and running is stopped", true, true, true, true, REC_RUNNING, false, 0,
      REC_STOP },
    { "wanted to stop and preparing is stopped", true, true, true, true, REC_PREPARING, false, 0,
      REC_STOP },
    { "wanted to stop and stopping is left alone", true, true, true, true, REC_STOPPING, false, 0,
      REC_KIND_COUNT },
    { "wanted to stop and absent never starts", true, true, true, false, 0, false, 0,
      REC_NEVER_STARTED },
    { "unwanted and running is stopped", true, false, false, true, REC_RUNNING, false, 0,
      REC_STOP_NOT_GRANTED },
    { "unwanted and preparing is stopped", true, false, false, true, REC_PREPARING, false, 0,
      REC_STOP_NOT_GRANTED },
    { "unwanted and stopping is left alone", true, false, false, true, REC_STOPPING, false, 0,
      REC_KIND_COUNT },
    { "unwanted and ended stays for its log", true, false, false, true, REC_EXITED, false, 10,
      REC_KIND_COUNT },
    { "unwanted, ended and stored goes", true, false, false, true, REC_EXITED, true, 0,
      REC_REMOVE },
    { "unwanted and ended long ago goes", true, false, false, true, REC_EXITED, false,
      RECONCILE_LOG_KEEP_S + 1, REC_REMOVE },
};

static struct mono at_s(int64_t seconds)
{
    return (struct mono){ seconds * NS_PER_S };
}

static void one_grant_one_attempt(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, rows) {
        AUTO(arena) struct arena arena = { 0 };
        struct grant grant = sample_grant(1);
        struct grant started = sample_grant(1);
        grant.is_stop = c->is_stop;
        struct rec_observed observed = { .grant = &started,
                                         .state = c->state,
                                         .stop_grace_s = grant.grace_s,
                                         .is_log_stored = c->is_log_stored,
                                         .ended_at = at_s(100000 - c->ended_s_ago) };
        struct rec_input input = { c->has_set,           &grant,      &all_ready,
                                   c->is_wanted ? 1 : 0, &observed,   c->is_there ? 1 : 0,
                                   at_s(100000),         at_s(99999), 4 };
        struct rec_plan plan;
        reconcile(&input, &arena, &plan);
        CHECK(c->name, plan.count == (c->expected == REC_KIND_COUNT ? 0 : 1));
        CHECK(c->name, plan.count == 0 || plan.actions[0].kind == c->expected);
    }
}

/* Why a grant that is wanted does not start. */
struct wait_case {
    const char *reason; /* of the wait; NULL: it starts */
    struct rec_ready ready;
    int64_t lease_s;
    void (*change)(struct grant *wanted, struct grant *other);
    bool has_other; /* running beside it */
    bool is_other_wanted;
    bool is_other_stopping; /* for too long already */
};

static void keep_both(struct grant *wanted, struct grant *other)
{
    other->devices[0].index = 7;
    other->device_count = 1;
    (void)wanted;
}
static void same_device(struct grant *wanted, struct grant *other)
{
    (void)wanted;
    (void)other;
}
static void half_devices(struct grant *wanted, struct grant *other)
{
    wanted->device_count = other->device_count = 1;
    wanted->devices[0].milli = other->devices[0].milli = 500;
}
static void same_member(struct grant *wanted, struct grant *other)
{
    other->device_count = 0;
    other->workload = wanted->workload;
}
static void other_rank(struct grant *wanted, struct grant *other)
{
    same_member(wanted, other);
    other->member_rank = 3;
}
static void other_tenant(struct grant *wanted, struct grant *other)
{
    (void)wanted;
    other->device_count = 0;
    other->tenant = (struct id){ 9, 9 };
}
static void other_tenant_apart(struct grant *wanted, struct grant *other)
{
    other_tenant(wanted, other);
    other->uid_base += other->uid_count;
}
static void given_up(struct grant *wanted, struct grant *other)
{
    keep_both(wanted, other);
    other->is_stop = true;
    other->stop_cause = CAUSE_NODE_FAILURE;
}
static void cancelled(struct grant *wanted, struct grant *other)
{
    given_up(wanted, other);
    other->stop_cause = CAUSE_USER_CANCELLED;
}
static void far_device(struct grant *wanted, struct grant *other)
{
    (void)other;
    wanted->devices[0].index = RECONCILE_DEVICES;
}

static const struct wait_case wait_cases[] = {
    { NULL, READY(true, true, true, false), 99999, keep_both, true, true, false },
    { "no room",
      { .again_at = { 100001 * NS_PER_S }, .why = "no room" },
      99999,
      keep_both,
      false,
      true,
      false },
    { "payload is missing", READY(false, true, true, false), 99999, keep_both, false, true, false },
    { "image is being fetched", READY(true, false, true, false), 99999, keep_both, false, true,
      false },
    { "upload is being fetched", READY(true, true, false, false), 99999, keep_both, false, true,
      false },
    { "no heartbeat was acknowledged lately, which its fence needs", READY(true, true, true, false),
      0, keep_both, false, true, false },
    { "no heartbeat was acknowledged lately, which its fence needs", READY(true, true, true, false),
      99940, keep_both, false, true, false },
    { NULL, READY(true, true, true, false), 99941, keep_both, false, true, false },
    { "earlier work is being stopped on this node", READY(true, true, true, false), 99999,
      same_device, true, false, false },
    { "earlier work is being stopped on its device", READY(true, true, true, false), 99999,
      same_device, true, false, true },
    { "earlier work is being stopped on this node", READY(true, true, true, false), 99999,
      keep_both, true, false, false },
    { NULL, READY(true, true, true, false), 99999, keep_both, true, false, true },
    { "earlier work is being stopped on this node", READY(true, true, true, false), 99999, given_up,
      true, true, false },
    { NULL, READY(true, true, true, false), 99999, given_up, true, true, true },
    { NULL, READY(true, true, true, false), 99999, cancelled, true, true, false },
    { "its device is still in use", READY(true, true, true, false), 99999, same_device, true, true,
      false },
    { NULL, READY(true, true, true, false), 99999, half_devices, true, true, false },
    { "earlier work is being stopped on its device", READY(true, true, true, false), 99999,
      half_devices, true, false, true },
    { "an earlier attempt of it has not ended", READY(true, true, true, false), 99999, same_member,
      true, false, true },
    { NULL, READY(true, true, true, false), 99999, other_rank, true, true, false },
    { "another tenant's work still uses its ids", READY(true, true, true, false), 99999,
      other_tenant, true, false, true },
    { NULL, READY(true, true, true, false), 99999, other_tenant_apart, true, false, true },
    { "it names a device that this node cannot have", READY(true, true, true, false), 99999,
      far_device, false, true, false },
};

static void what_is_missing_is_named(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, wait_cases) {
        AUTO(arena) struct arena arena = { 0 };
        struct grant desired[2] = { sample_grant(1), sample_grant(2) };
        c->change(&desired[0], &desired[1]);
        struct rec_ready ready[2] = { c->ready, all_ready };
        struct rec_observed observed = { .grant = &desired[1],
                                         .state = c->is_other_stopping ? REC_STOPPING : REC_RUNNING,
                                         .is_stop_overdue = c->is_other_stopping };
        struct rec_input input = { true,
                                   desired,
                                   ready,
                                   c->is_other_wanted ? 2 : 1,
                                   &observed,
                                   c->has_other ? 1 : 0,
                                   at_s(100000),
                                   at_s(c->lease_s),
                                   4 };
        if (!c->has_other)
            input.desired_count = 1;
        struct rec_plan plan;
        reconcile(&input, &arena, &plan);
        const char *name = c->reason != NULL ? c->reason : "starts";
        CHECK(name, plan.count >= 1);
        const struct rec_action *last = &plan.actions[plan.count - 1];
        CHECK(name, last->kind == (c->reason != NULL ? REC_WAIT : REC_START) && last->index == 0);
        CHECK(name, c->reason == NULL || strcmp(last->reason, c->reason) == 0);
    }
}

static void a_shorter_grace_is_passed_on(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct grant grant = sample_grant(1);
    grant.is_stop = true;
    grant.grace_s = 5;
    struct rec_observed observed = { .grant = &grant, .state = REC_STOPPING, .stop_grace_s = 30 };
    struct rec_input input = { true, &grant, &all_ready, 1, &observed, 1, at_s(1), at_s(1), 4 };
    struct rec_plan plan;
    reconcile(&input, &arena, &plan);
    CHECK("shorter",
          plan.count == 1 && plan.actions[0].kind == REC_STOP && plan.actions[0].grace_s == 5);
    observed.stop_grace_s = 5;
    reconcile(&input, &arena, &plan);
    CHECK("the same", plan.count == 0);
}

static void what_cannot_be_is_refused_with_its_reason(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct grant grant = sample_grant(1);
    struct rec_ready ready = READY(true, false, true, true);
    ready.why = "no such image";
    struct rec_input input = { true, &grant, &ready, 1, NULL, 0, at_s(1), at_s(1), 4 };
    struct rec_plan plan;
    reconcile(&input, &arena, &plan);
    CHECK("refused", plan.count == 1 && plan.actions[0].kind == REC_REFUSE);
    CHECK("why", strcmp(plan.actions[0].reason, "no such image") == 0);
}

static void two_attempts_of_one_member_never_start_together(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct grant desired[2] = { sample_grant(1), sample_grant(2) };
    struct rec_ready ready[2] = { all_ready, all_ready };
    desired[1].workload = desired[0].workload;
    desired[0].device_count = desired[1].device_count = 0;
    struct rec_input input = { true, desired, ready, 2, NULL, 0, at_s(100), at_s(99), 4 };
    struct rec_plan plan;
    reconcile(&input, &arena, &plan);
    CHECK("one",
          plan.count == 2 && plan.actions[0].kind == REC_START && plan.actions[1].kind == REC_WAIT);
}

/* A small world that carries out plans, late and partly, with crashes and endings in between. */
enum { WORLD = 24, DEVICES = 4 };
struct world {
    struct grant grants[WORLD]; /* all that will ever be */
    bool is_wanted[WORLD];
    bool is_stop[WORLD];
    bool was_started[WORLD];
    struct rec_observed attempts[WORLD];
    bool is_there[WORLD];
    uint64_t seed;
};

static void world_init(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    for (uint64_t i = 0; i < WORLD; i++) {
        struct grant *g = &w->grants[i];
        *g = sample_grant(i + 1);
        g->on_contact_loss = GRANT_RESTART;
        g->fence_after_s = 0;
        g->workload.lo = i / 2; /* pairs are attempts of one member */
        g->tenant.lo = test_below(&w->seed, 2);
        g->uid_base = (uint32_t)(1000000 + g->tenant.lo * 65536);
        g->device_count = 1;
        g->devices[0].index = (uint16_t)test_below(&w->seed, DEVICES);
        g->devices[0].milli = test_below(&w->seed, 2) == 0 ? 500 : 1000;
    }
}

/* What must hold at every instant, whatever was asked. */
static void world_check(const struct world *w)
{
    uint32_t milli[DEVICES] = { 0 };
    for (size_t i = 0; i < WORLD; i++) {
        if (!w->is_there[i] || w->attempts[i].state == REC_EXITED)
            continue;
        milli[w->grants[i].devices[0].index] += w->grants[i].devices[0].milli;
        for (size_t k = 0; k < i; k++)
            CHECK("one live attempt a member",
                  !w->is_there[k] || w->attempts[k].state == REC_EXITED ||
                      !id_eq(w->grants[i].workload, w->grants[k].workload));
    }
    for (size_t d = 0; d < DEVICES; d++)
        CHECK("no device is given twice", milli[d] <= 1000);
}

static void world_apply(struct world *w, size_t i, const struct rec_action *action,
                        bool is_observed)
{
    struct rec_observed *a = &w->attempts[i];
    (void)is_observed;
    switch (action->kind) {
    case REC_STOP_NOT_GRANTED:
    case REC_STOP:
        CHECK("only the living are stopped", a->state != REC_EXITED);
        a->state = REC_STOPPING;
        a->stop_grace_s = action->grace_s;
        break;
    case REC_REMOVE:
        CHECK("only the dead are removed", a->state == REC_EXITED && !w->is_wanted[i]);
        w->is_there[i] = false;
        break;
    case REC_START:
        CHECK("started once", !w->was_started[i] && !w->is_there[i] && w->is_wanted[i]);
        w->was_started[i] = w->is_there[i] = true;
        *a = (struct rec_observed){ .grant = &w->grants[i], .state = REC_PREPARING };
        break;
    case REC_WAIT:
    case REC_REFUSE:
    case REC_NEVER_STARTED:
    case REC_KIND_COUNT:
        break;
    }
}

/* One look; each action is carried out with the given chance in 100. Returns actions that
 * are no wait. */
static size_t world_step(struct world *w, unsigned chance)
{
    AUTO(arena) struct arena arena = { 0 };
    struct grant desired[WORLD];
    struct rec_ready ready[WORLD];
    struct rec_observed observed[WORLD];
    size_t desired_of[WORLD];
    size_t observed_of[WORLD];
    struct rec_input input = { .has_set = true,
                               .desired = desired,
                               .ready = ready,
                               .observed = observed,
                               .now = at_s(1000),
                               .lease = at_s(999),
                               .starting_max = 3 };
    for (size_t i = 0; i < WORLD; i++) {
        if (w->is_wanted[i]) {
            desired[input.desired_count] = w->grants[i];
            desired[input.desired_count].is_stop = w->is_stop[i];
            ready[input.desired_count] = all_ready;
            desired_of[input.desired_count++] = i;
        }
        if (w->is_there[i]) {
            observed[input.observed_count] = w->attempts[i];
            observed_of[input.observed_count++] = i;
        }
    }
    struct rec_plan plan;
    reconcile(&input, &arena, &plan);
    size_t effects = 0;
    for (size_t i = 0; i < plan.count; i++) {
        const struct rec_action *action = &plan.actions[i];
        bool is_observed = action->kind <= REC_REMOVE;
        effects += action->kind <= REC_START ? 1 : 0;
        if (test_below(&w->seed, 100) < chance)
            world_apply(w, is_observed ? observed_of[action->index] : desired_of[action->index],
                        action, is_observed);
    }
    world_check(w);
    return effects;
}

/* Life: what prepares runs, what stops ends, what runs may end. */
static void world_live(struct world *w, bool is_final)
{
    for (size_t i = 0; i < WORLD; i++) {
        struct rec_observed *a = &w->attempts[i];
        if (!w->is_there[i] || (!is_final && test_below(&w->seed, 2) == 0))
            continue;
        if (a->state == REC_PREPARING)
            a->state = REC_RUNNING;
        else if (a->state == REC_STOPPING ||
                 (a->state == REC_RUNNING && test_below(&w->seed, 8) == 0))
            a->state = REC_EXITED;
        else if (a->state == REC_EXITED)
            a->is_log_stored = true;
    }
}

/* A controller that never wants two attempts of one member, nor one again that it gave up. */
static void world_want(struct world *w)
{
    size_t i = test_below(&w->seed, WORLD);
    size_t twin = i ^ 1;
    if (w->is_wanted[i]) {
        if (test_below(&w->seed, 2) == 0)
            w->is_stop[i] = true;
        else
            w->is_wanted[i] = false;
    } else if (!w->was_started[i] && !w->is_stop[i] && !w->is_wanted[twin]) {
        w->is_wanted[i] = true;
    }
}

static void random_worlds_converge(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (int round = 0; round < 300; round++) {
        struct world w;
        world_init(&w, test_random(&seed));
        for (int step = 0; step < 120; step++) {
            world_want(&w);
            (void)world_step(&w, 60);
            world_live(&w, false);
        }
        size_t effects = 1;
        for (int step = 0; step < 100; step++) {
            effects = world_step(&w, 100);
            world_live(&w, true);
        }
        CHECK("nothing is left to do", effects == 0);
        for (size_t i = 0; i < WORLD; i++) {
            bool is_live = w.is_there[i] && w.attempts[i].state != REC_EXITED;
            CHECK("what lives is wanted", !is_live || (w.is_wanted[i] && !w.is_stop[i]));
            CHECK("what is unwanted is gone", w.is_wanted[i] || !w.is_there[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_grant_one_attempt),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_shorter_grace_is_passed_on),
        cmocka_unit_test(what_cannot_be_is_refused_with_its_reason),
        cmocka_unit_test(two_attempts_of_one_member_never_start_together),
        cmocka_unit_test(random_worlds_converge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
