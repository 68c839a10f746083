/*
 * Three batches: the open one collects, the flying one is with the store, a durable one is being
 * told to the world. The next is handed over before that telling begins, so that the store need not
 * wait for it. What is told to anybody hangs on a batch: an answer made while the open batch has
 * events reflects them and waits for it; otherwise it reflects at most the flying one. Desired sets
 * are built when a batch is handed over, because at that moment the state is exactly what the
 * journal will say once it is durable.
 */
#include "engine/engine.h"

#include <assert.h>
#include <string.h>

#include "engine/answers.h"
#include "engine/contacts.h"
#include "wire/event_copy.h"
#include "wire/event_json.h"

enum {
    BATCHES = 3,
    PROBE_AFTER_S = 2,
    SELF_CHECK_AFTER_S = 10,
    SELF_CHECK_WORKLOADS_PER_S = 1000,
    PACE_SLOW_NS = 2000000,
    PACE_WAIT_NS_MAX = 4000000,
    PACE_SMOOTHING = 8,
};

struct desired {
    struct id node;
    struct buf bytes; /* owned */
};

struct batch {
    struct arena arena;
    VEC(struct store_event) events;
    VEC(struct store_answer) answers;
    VEC(struct id) touched; /* nodes whose desired set changed */
    VEC(struct desired) desired;
    struct store_batch handed; /* to the store, which reads it until the outcome is known */
    struct engine_waiter *first_waiter, **last_waiter;
    size_t waiter_count;
    struct mono handed_at;
    struct batch *next; /* durable and not told yet, after this one */
    bool is_used;       /* open, flying or being told */
};

/*
 * When a disk is slow, half of all clients wait for the batch that flies and half for the next, and
 * each commit carries one half. A moment's patience after a commit lets those who were just
 * answered join the next with what they ask then: twice as much a commit, for a quarter more time.
 */
struct pace {
    int64_t commit_ns; /* what the last ones took, smoothed */
    struct mono until; /* nothing is handed over before, unless all expected are there */
    size_t expected;   /* waiters: those who waited for the last two batches */
};

struct engine {
    struct engine_seams seams;
    struct state *state;       /* owned */
    struct sched *sched;       /* owned */
    struct contacts *contacts; /* owned */
    struct answers *answers;   /* owned */
    struct batch batches[BATCHES];
    struct batch *open;
    struct batch *flying;  /* NULL: none */
    struct batch *durable; /* first of those to be told; NULL: none */
    bool is_telling;
    struct pace pace;
    bool is_started;
    bool is_probing; /* the flying batch is an empty one that tries whether the store works again */
    bool is_refusing;
    char refusal[320];
    struct mono probe_at, check_at;
    struct engine_counters counters;
    struct sched_tally tally;
};

static void batch_init(struct batch *batch)
{
    *batch = (struct batch){ 0 };
    batch->last_waiter = &batch->first_waiter;
}

/* Empties it for reuse; waiters must be gone. */
static void batch_clear(struct batch *batch)
{
    assert(batch->first_waiter == NULL);
    for (size_t i = 0; i < batch->desired.count; i++)
        buf_done(&batch->desired.items[i].bytes);
    batch->events.count = 0;
    batch->answers.count = 0;
    batch->touched.count = 0;
    batch->desired.count = 0;
    batch->is_used = false;
    batch->waiter_count = 0;
    arena_reset(&batch->arena);
}

static void batch_done(struct batch *batch)
{
    batch->first_waiter = NULL;
    batch->last_waiter = &batch->first_waiter;
    batch_clear(batch);
    vec_done(&batch->events);
    vec_done(&batch->answers);
    vec_done(&batch->touched);
    vec_done(&batch->desired);
    arena_done(&batch->arena);
}

static void batch_add_waiter(struct batch *batch, struct engine_waiter *waiter)
{
    waiter->next = NULL;
    *batch->last_waiter = waiter;
    batch->last_waiter = &waiter->next;
    batch->waiter_count++;
}

static void batch_settle(struct batch *batch, enum err rc, const struct error *why)
{
    struct engine_waiter *waiter = batch->first_waiter;
    batch->first_waiter = NULL;
    batch->last_waiter = &batch->first_waiter;
    while (waiter != NULL) {
        struct engine_waiter *next = waiter->next;
        waiter->settled(waiter, rc, why);
        waiter = next;
    }
}

static void batch_touch(struct batch *batch, struct id node)
{
    for (size_t left = batch->touched.count; left > 0; left--) {
        size_t i = left - 1;
        if (id_eq(batch->touched.items[i], node))
            return;
    }
    vec_push(&batch->touched, node);
}

/* There always is one: of three at most one flies and one is told when the open one is
 * handed over. */
static struct batch *batch_take(struct engine *engine)
{
    struct batch *batch = engine->batches;
    while (batch->is_used)
        batch++;
    assert(batch < engine->batches + BATCHES);
    batch->is_used = true;
    return batch;
}

struct engine *engine_new(const struct engine_seams *seams, struct state *state)
{
    struct engine *engine = mem_new(1, sizeof(*engine));
    engine->seams = *seams;
    engine->state = state;
    engine->sched = sched_new(state);
    engine->contacts = contacts_new();
    engine->answers = answers_new();
    for (size_t i = 0; i < BATCHES; i++)
        batch_init(&engine->batches[i]);
    engine->open = batch_take(engine);
    return engine;
}

void engine_free(struct engine *engine)
{
    if (engine == NULL)
        return;
    for (size_t i = 0; i < BATCHES; i++)
        batch_done(&engine->batches[i]);
    contacts_free(engine->contacts);
    answers_free(engine->answers);
    tally_done(&engine->tally);
    sched_free(engine->sched);
    state_free(engine->state);
    mem_free(engine);
}

const struct state *engine_state(const struct engine *engine)
{
    return engine->state;
}

const struct sched *engine_sched(const struct engine *engine)
{
    return engine->sched;
}

struct arena *engine_arena(struct engine *engine)
{
    return &engine->open->arena;
}

static struct mono engine_now(const struct engine *engine)
{
    struct mono now = engine->seams.mono_now(engine->seams.arg);
    return mono_before(now, engine->state->now) ? engine->state->now : now;
}

/* Which node's desired set an event changes; asked before evolve, which may free the allocation. */
static struct id event_node(const struct engine *engine, const struct event *event)
{
    struct id node = { 0 };
    if (event->type == EV_ALLOCATION_GRANTED)
        node = event->allocation_granted.node;
    if (event->type == EV_ALLOCATION_CHANGED) {
        const struct allocation *allocation =
            state_allocation(engine->state, event->allocation_changed.allocation);
        if (allocation != NULL)
            node = allocation->r.node;
    }
    return node;
}

/* The number evolve() will have counted to: a tenant's feed begins with its own creation. */
static uint64_t tenant_sequence_of(const struct state *state, const struct event *event)
{
    if (id_is_none(event->tenant))
        return 0;
    const struct project *project = state_project(state, event->tenant);
    return project != NULL ? project->tenant->last_sequence + 1 : 1;
}

/* Numbers an event, makes it part of the open batch and lets the state and the scheduler follow. */
static void engine_apply(struct engine *engine, const struct event *decided,
                         const struct command *command)
{
    struct batch *batch = engine->open;
    struct event *event = arena_new(&batch->arena, 1, sizeof(*event));
    struct event numbered = *decided;
    if (numbered.actor.role == ROLE_NONE)
        numbered.actor = command->actor;
    event_copy(&batch->arena, &numbered, event);
    event->sequence = engine->state->sequence + 1;
    event->tenant_sequence = tenant_sequence_of(engine->state, event);
    event->at = command->now;
    event->wall = command->wall;
    event->request = command->request;

    struct buf body = { 0 };
    event_body_encode(event, &body);
    char object[ID_TEXT_MAX];
    struct store_event stored = {
        .event = event,
        .body = str_copy(&batch->arena, buf_str(&body)),
        .object = str_copy(&batch->arena, event_object(event, object)),
    };
    buf_done(&body);
    vec_push(&batch->events, stored);

    struct id node = event_node(engine, event);
    if (!id_is_none(node))
        batch_touch(batch, node);
    tally_event(&engine->tally, engine->state, engine->sched, event);
    evolve(engine->state, event);
    sched_note(engine->sched, event);
    engine->counters.events++;
}

static enum err engine_refuse(const struct engine *engine, struct error *e)
{
    return err_cause(e, ERR_UNAVAILABLE, CAUSE_UNAVAILABLE, "%s", engine->refusal);
}

enum err engine_command(struct engine *engine, struct command *command, struct error *e)
{
    engine->counters.commands++;
    if (engine->is_refusing)
        return engine_refuse(engine, e);

    command->now = engine_now(engine);
    command->wall = engine->seams.wall_now(engine->seams.arg);
    if (id_is_none(command->request))
        engine->seams.entropy(engine->seams.arg, &command->request, sizeof(command->request));
    if (id_is_none(command->new_id))
        engine->seams.entropy(engine->seams.arg, &command->new_id, sizeof(command->new_id));

    struct event_list events = { 0 };
    enum err rc = decide(engine->state, engine->sched, command, &engine->open->arena, &events, e);
    if (rc != ERR_OK) {
        engine->counters.refusals++;
        return rc;
    }
    for (size_t i = 0; i < events.count; i++)
        engine_apply(engine, &events.items[i], command);
    return ERR_OK;
}

/* A command of the engine's own. A refusal is a fault of ours: it is reported, and time goes on. */
static void engine_own_command(struct engine *engine, struct command *command, const char *what)
{
    struct error e = { 0 };
    command->actor = (struct actor){ .role = ROLE_SYSTEM, .name = STR("system") };
    if (engine_command(engine, command, &e) != ERR_OK && e.code != ERR_UNAVAILABLE)
        engine->seams.report(engine->seams.arg, what, &e);
}

static void engine_lead(struct engine *engine, uint64_t epoch, struct str version)
{
    struct command start = { .type = CMD_CONTROLLER_START };
    start.controller_start.epoch = epoch;
    start.controller_start.version = version;
    engine->seams.entropy(engine->seams.arg, start.controller_start.id_key,
                          sizeof(start.controller_start.id_key));
    engine_own_command(engine, &start, "start");
}

void engine_raise_epoch(struct engine *engine, uint64_t epoch, struct str version)
{
    engine_lead(engine, epoch, version);
    for (const struct node *node = engine->state->first_node; node != NULL; node = node->next)
        engine_node_resend(engine, node->r.id);
}

void engine_start(struct engine *engine, uint64_t epoch, struct str version)
{
    assert(!engine->is_started);
    engine->is_started = true;
    engine_lead(engine, epoch, version);

    struct mono now = engine_now(engine);
    contacts_start(engine->contacts, engine->state, now);
    engine->check_at = mono_add_s(now, SELF_CHECK_AFTER_S);
}

void engine_recall(struct engine *engine, const struct store_answer *answer)
{
    answers_put(engine->answers, answer, engine->seams.wall_now(engine->seams.arg));
}

uint64_t engine_answer_number(const struct engine *engine, const struct digest *key)
{
    return answers_number(engine->answers, key);
}

void engine_remember(struct engine *engine, const struct store_answer *answer)
{
    struct batch *batch = engine->open;
    struct store_answer copy = *answer;
    copy.content = str_copy(&batch->arena, answer->content);
    copy.number = answers_next_number(engine->answers);
    vec_push(&batch->answers, copy);
    engine_recall(engine, &copy);
}

static const struct store_answer *batch_answer(const struct batch *batch, const struct digest *key)
{
    for (size_t i = 0; batch != NULL && i < batch->answers.count; i++) {
        if (memcmp(&batch->answers.items[i].key, key, sizeof(*key)) == 0)
            return &batch->answers.items[i];
    }
    return NULL;
}

const struct store_answer *engine_pending_answer(const struct engine *engine,
                                                 const struct digest *key)
{
    const struct store_answer *answer = batch_answer(engine->open, key);
    return answer != NULL ? answer : batch_answer(engine->flying, key);
}

static bool batch_is_empty(const struct batch *batch)
{
    return batch->events.count == 0 && batch->answers.count == 0 && batch->touched.count == 0;
}

void engine_wait(struct engine *engine, struct engine_waiter *waiter)
{
    if (!batch_is_empty(engine->open))
        batch_add_waiter(engine->open, waiter);
    else if (engine->flying != NULL && !engine->is_probing)
        batch_add_waiter(engine->flying, waiter);
    else
        waiter->settled(waiter, ERR_OK, NULL);
}

void engine_node_seen(struct engine *engine, struct id node, struct str boot_id)
{
    const struct node *known = state_node(engine->state, node);
    if (known == NULL)
        return;
    contacts_seen(engine->contacts, node, engine_now(engine));
    bool is_rebooted = boot_id.size > 0 && !str_eq(boot_id, known->r.boot_id);
    if (known->r.contact == CONTACT_OK && !is_rebooted)
        return;
    struct command command = { .type = CMD_NODE_CONTACT };
    command.contact.node = node;
    command.contact.contact = CONTACT_OK;
    command.contact.boot_id = boot_id;
    engine_own_command(engine, &command, "node contact");
}

void engine_node_resend(struct engine *engine, struct id node)
{
    batch_touch(engine->open, node);
}

static void engine_contact_changed(void *arg, struct id node, enum node_contact contact)
{
    struct engine *engine = arg;
    struct command command = { .type = CMD_NODE_CONTACT };
    command.contact.node = node;
    command.contact.contact = contact;
    engine_own_command(engine, &command, "node contact");
}

static bool engine_schedule(struct engine *engine, size_t budget)
{
    struct arena *arena = &engine->open->arena;
    struct plan plan = { 0 };
    struct command command = {
        .now = engine_now(engine),
        .wall = engine->seams.wall_now(engine->seams.arg),
        .actor = { .role = ROLE_SYSTEM, .name = STR("scheduler") },
    };
    sched_clock(engine->sched, command.now, command.wall);
    bool more = sched_step(engine->sched, command.now, budget, arena, &plan);
    if (plan.count == 0)
        return more;

    struct event_list events = { 0 };
    decide_plan(engine->state, &plan, command.now, command.wall, arena, &events);
    for (size_t i = 0; i < events.count; i++)
        engine_apply(engine, &events.items[i], &command);
    return true;
}

/* After a commit: how long the next may wait for company. */
static void pace_set(struct engine *engine, const struct batch *done)
{
    struct pace *pace = &engine->pace;
    struct mono now = engine_now(engine);
    pace->commit_ns += (now.ns - done->handed_at.ns - pace->commit_ns) / PACE_SMOOTHING;
    pace->until = (struct mono){ 0 };
    pace->expected = done->waiter_count + engine->open->waiter_count;
    if (pace->commit_ns >= PACE_SLOW_NS && done->waiter_count > 1)
        pace->until.ns = now.ns + MIN_OF(pace->commit_ns / 4, (int64_t)PACE_WAIT_NS_MAX);
}

static bool pace_holds(const struct engine *engine, struct mono now)
{
    return mono_before(now, engine->pace.until) &&
           engine->open->waiter_count < engine->pace.expected;
}

/* Hands the open batch to the store. The seam may answer from within the call. */
static void engine_flush(struct engine *engine)
{
    struct batch *batch = engine->open;
    for (size_t i = 0; i < batch->touched.count; i++) {
        const struct node *node = state_node(engine->state, batch->touched.items[i]);
        if (node == NULL)
            continue; /* removed in the same batch */
        struct desired desired = { .node = node->r.id };
        engine->seams.desired_build(engine->seams.arg, engine->state, node, &desired.bytes);
        vec_push(&batch->desired, desired);
    }
    engine->flying = batch;
    engine->open = batch_take(engine);
    engine->counters.batches++;

    batch->handed = (struct store_batch){
        .events = batch->events.items,
        .event_count = batch->events.count,
        .answers = batch->answers.items,
        .answer_count = batch->answers.count,
    };
    batch->handed_at = engine_now(engine);
    engine->seams.machine_clock(engine->seams.arg, &batch->handed.clock);
    if (engine->seams.handing_over != NULL)
        engine->seams.handing_over(engine->seams.arg, engine->state);
    engine->seams.commit(engine->seams.arg, &batch->handed);
}

/* What was decoded for commands that decided nothing (heartbeats, reports of no change) goes. */
static void engine_rest(struct engine *engine)
{
    if (batch_is_empty(engine->open))
        arena_reset(&engine->open->arena);
}

static bool engine_is_due(struct mono at, struct mono now)
{
    return !mono_before(now, at);
}

bool engine_turn(struct engine *engine, size_t budget)
{
    assert(engine->is_started);
    struct mono now = engine_now(engine);
    sched_clock(engine->sched, now, engine->seams.wall_now(engine->seams.arg));
    if (engine->is_refusing) {
        if (engine->flying == NULL && engine_is_due(engine->probe_at, now)) {
            engine->is_probing = true;
            engine_flush(engine);
        }
        engine_rest(engine);
        return false;
    }
    if (engine_is_due(core_next_deadline(engine->sched), now)) {
        struct command tick = { .type = CMD_TICK };
        engine_own_command(engine, &tick, "tick");
    }
    contacts_turn(engine->contacts, engine->state, now, engine_contact_changed, engine);
    if (engine_is_due(engine->check_at, now)) {
        bool is_elsewhere = engine->seams.check != NULL &&
                            engine->seams.check(engine->seams.arg, engine->state, engine->sched);
        if (!is_elsewhere)
            engine_self_check(engine);
        /* It reads all of the state, often in a copy of the process: rarer when there is much. */
        size_t more_s = engine->state->workload_count / SELF_CHECK_WORKLOADS_PER_S;
        engine->check_at = mono_add_s(now, SELF_CHECK_AFTER_S + (int64_t)more_s);
    }
    tally_cycle_begin(&engine->tally, now);
    bool more = engine_schedule(engine, budget);
    tally_cycle_end(&engine->tally, engine_now(engine), engine->seams.wall_now(engine->seams.arg),
                    more);
    bool is_ready = engine->flying == NULL && !batch_is_empty(engine->open);
    if (is_ready && !pace_holds(engine, now))
        engine_flush(engine);
    engine_rest(engine);
    /* A step may find that a reservation lacks devices. */
    return more || engine_is_due(core_next_deadline(engine->sched), now);
}

struct mono engine_wake_at(const struct engine *engine)
{
    if (engine->is_refusing)
        return engine->probe_at;
    struct mono at = engine->check_at;
    const struct mono others[] = { core_next_deadline(engine->sched), sched_wake_at(engine->sched),
                                   contacts_wake_at(engine->contacts) };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (mono_before(others[i], at))
            at = others[i];
    }
    bool is_held = engine->flying == NULL && !batch_is_empty(engine->open);
    if (is_held && mono_before(engine->pace.until, at))
        at = engine->pace.until;
    return at;
}

static void engine_rebuild_sched(struct engine *engine)
{
    sched_free(engine->sched);
    engine->sched = sched_new(engine->state);
}

/* Nothing of either batch was stored: forget them, and go back to what is. */
static void engine_lose(struct engine *engine, struct batch *flying, const struct error *why)
{
    engine->counters.lost_batches++;
    engine->is_refusing = true;
    struct error text = { 0 };
    (void)err_set(&text, ERR_UNAVAILABLE,
                  "the store takes no changes now (%s); nothing was changed,"
                  " try again when there is space",
                  why != NULL ? why->text : "no reason given");
    memcpy(engine->refusal, text.text, sizeof(engine->refusal));
    engine->probe_at = mono_add_s(engine_now(engine), PROBE_AFTER_S);

    struct state *state = NULL;
    struct error e = { 0 };
    if (engine->seams.reload(engine->seams.arg, &state, &e) != ERR_OK) {
        /* The old state holds events that are not stored: it must not be served. */
        engine->seams.report(engine->seams.arg, "reload", &e);
        state = state_new();
    }
    struct batch *open = engine->open;
    sched_free(engine->sched);
    state_free(engine->state);
    engine->state = state;
    engine->sched = sched_new(state);
    contacts_start(engine->contacts, state, engine_now(engine));

    (void)engine_refuse(engine, &e);
    batch_settle(flying, ERR_UNAVAILABLE, &e);
    batch_settle(open, ERR_UNAVAILABLE, &e);
    batch_clear(flying);
    batch_clear(open);
    open->is_used = true;
}

/* Nodes first: they have to do something about it. */
static void batch_tell(struct engine *engine, struct batch *batch)
{
    for (size_t i = 0; i < batch->desired.count; i++)
        engine->seams.desired_send(engine->seams.arg, batch->desired.items[i].node,
                                   buf_str(&batch->desired.items[i].bytes));
    for (size_t i = 0; i < batch->events.count; i++)
        engine->seams.publish(engine->seams.arg, batch->events.items[i].event,
                              batch->events.items[i].body);
    batch_settle(batch, ERR_OK, NULL);
}

/* In the order of the journal, also when a store answers from within the handing over. */
static void engine_tell(struct engine *engine)
{
    if (engine->is_telling)
        return;
    engine->is_telling = true;
    while (engine->durable != NULL) {
        struct batch *batch = engine->durable;
        batch_tell(engine, batch);
        engine->durable = batch->next;
        batch->next = NULL;
        batch_clear(batch);
    }
    engine->is_telling = false;
}

void engine_committed(struct engine *engine, enum err rc, const struct error *why)
{
    assert(engine->flying != NULL);
    assert(rc == ERR_OK || rc == ERR_UNAVAILABLE);
    struct batch *batch = engine->flying;
    bool was_probe = engine->is_probing;
    engine->flying = NULL;
    engine->is_probing = false;

    if (rc != ERR_OK && was_probe) {
        batch_clear(batch);
        engine->probe_at = mono_add_s(engine_now(engine), PROBE_AFTER_S);
        return;
    }
    if (rc != ERR_OK) {
        engine_lose(engine, batch, why);
        return;
    }
    engine->is_refusing = false;
    struct batch **last = &engine->durable;
    while (*last != NULL)
        last = &(*last)->next;
    *last = batch;
    pace_set(engine, batch);
    if (!batch_is_empty(engine->open) && !pace_holds(engine, engine_now(engine)))
        engine_flush(engine);
    engine_tell(engine);
}

unsigned engine_check(const struct state *state, const struct sched *sched, struct error *e)
{
    unsigned found = 0;
    if (!state_check(state, e))
        found |= ENGINE_DRIFT_STATE;
    if (!sched_check(sched, e))
        found |= ENGINE_DRIFT_SCHED;
    return found;
}

void engine_checked(struct engine *engine, unsigned found, const struct error *e)
{
    if (found == 0)
        return;
    engine->counters.drifts++;
    engine->seams.report(
        engine->seams.arg,
        (found & ENGINE_DRIFT_STATE) != 0 ? "state self-check" : "scheduler self-check", e);
    if ((found & ENGINE_DRIFT_SCHED) != 0)
        engine_rebuild_sched(engine);
}

void engine_self_check(struct engine *engine)
{
    struct error e = { 0 };
    unsigned found = engine_check(engine->state, engine->sched, &e);
    engine_checked(engine, found, &e);
}

const char *engine_refusal(const struct engine *engine)
{
    return engine->is_refusing ? engine->refusal : NULL;
}

const struct sched_tally *engine_tally(const struct engine *engine)
{
    return &engine->tally;
}

struct engine_counters engine_counters(const struct engine *engine)
{
    return engine->counters;
}
