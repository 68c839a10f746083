#include "unit/store/history.h"

#include <string.h>

#include "unit/test.h"

static size_t below(struct history *h, size_t bound)
{
    return test_below(&h->random, bound);
}

static bool one_in(struct history *h, size_t n)
{
    return below(h, n) == 0;
}

static struct id some_id(struct history *h)
{
    return (struct id){ test_random(&h->random) | 1, test_random(&h->random) };
}

static struct str some_name(struct history *h)
{
    static const char *const names[] = { "",        "a",    "it's",        "Zo\xc3\xab",
                                         "tr\"ain", "x\\y", "\xe2\x9c\x93" };
    return str_of(names[below(h, COUNT_OF(names))]);
}

static struct str some_body(struct history *h)
{
    size_t max = h->body_max != 0 ? h->body_max : 300;
    if (one_in(h, 200))
        max *= 200;
    size_t size = below(h, max);
    char *pad = arena_new(&h->arena, size + 1, 1);
    for (size_t i = 0; i < size; i++)
        pad[i] = (char)('a' + (i * 7 + size) % 26);
    return str_of(arena_format(&h->arena, "{\"n\":%zu,\"pad\":\"%s\"}", size, pad));
}

static void fill_digest(struct history *h, struct digest *out)
{
    for (size_t i = 0; i < sizeof(out->bytes); i++)
        out->bytes[i] = (uint8_t)test_random(&h->random);
}

static void tick(struct history *h)
{
    h->at.ns += (int64_t)below(h, 1000000);
    h->wall.ns += (int64_t)below(h, 1000000);
}

/* As the engine numbers them; now and then as before there were such numbers. */
static uint64_t next_in_feed(const struct history *h, struct id tenant)
{
    uint64_t number = 0;
    if (id_is_none(tenant) || h->has_old_numbers)
        return 0;
    for (size_t i = h->events.count; i > 0 && number == 0; i--) {
        if (id_eq(h->events.items[i - 1].event->tenant, tenant))
            number = h->events.items[i - 1].event->tenant_sequence;
    }
    return number + 1;
}

static struct event *add(struct history *h, enum event_type type, struct id tenant)
{
    struct event *ev = arena_new(&h->arena, 1, sizeof(*ev));
    tick(h);
    ev->sequence = ++h->sequence;
    ev->type = type;
    ev->version = 1 + (unsigned)below(h, 2);
    ev->at = h->at;
    ev->wall = h->wall;
    ev->actor.role = (enum role)(1 + below(h, ROLE_COUNT - 1));
    ev->actor.name = some_name(h);
    if (one_in(h, 2))
        ev->actor.token = some_id(h);
    if (ev->actor.role == ROLE_MEMBER)
        ev->actor.tenant = tenant;
    if (ev->actor.role == ROLE_NODE)
        ev->actor.node = some_id(h);
    if (!one_in(h, 4))
        ev->request = some_id(h);
    ev->tenant = tenant;
    ev->tenant_sequence = next_in_feed(h, tenant);
    struct store_event stored = { .event = ev, .body = some_body(h) };
    vec_push(&h->events, stored);
    return ev;
}

static void name_object(struct history *h, enum id_kind kind, struct id id)
{
    char text[ID_TEXT_MAX];
    id_text(kind, id, text);
    h->events.items[h->events.count - 1].object = str_copy(&h->arena, str_of(text));
}

static void make_project(struct history *h)
{
    struct history_project *made = &h->projects[h->project_count];
    made->id = some_id(h);
    made->tenant = made->id;
    struct id parent = { 0 };
    if (h->project_count >= HISTORY_TENANTS) {
        const struct history_project *above = &h->projects[below(h, h->project_count)];
        parent = above->id;
        made->tenant = above->tenant;
    }
    made->path = str_of(arena_format(&h->arena, "p%zu/%zu", h->project_count, below(h, 100)));
    struct event *ev = add(h, EV_PROJECT_SET, made->tenant);
    ev->project_set =
        (struct project_record){ .id = made->id, .parent = parent, .path = made->path };
    name_object(h, ID_PROJECT, made->id);
    h->project_count++;
}

static void submit(struct history *h)
{
    const struct history_project *project = &h->projects[below(h, h->project_count)];
    struct history_workload made = {
        .id = some_id(h),
        .project = project->id,
        .tenant = project->tenant,
        .state = one_in(h, 10) ? WL_HELD : WL_QUEUED,
    };
    struct event *ev = add(h, EV_WORKLOAD_SUBMITTED, made.tenant);
    ev->workload_submitted = (struct workload_record){
        .id = made.id,
        .project = made.project,
        .name = some_name(h),
        .user = some_name(h),
        .state = made.state,
        .cause = made.state == WL_HELD ? CAUSE_HELD : CAUSE_WAITING_FOR_CAPACITY,
        .detail = some_name(h),
    };
    if (one_in(h, 3)) {
        ev->workload_submitted.array = some_id(h);
        ev->workload_submitted.array_index = (int64_t)below(h, 1000);
    }
    name_object(h, ID_WORKLOAD, made.id);
    vec_push(&h->live, made);
}

static void change_workload(struct history *h, struct history_workload *w, enum workload_state to,
                            enum cause cause)
{
    struct event *ev = add(h, EV_WORKLOAD_CHANGED, w->tenant);
    w->state = to;
    ev->workload_changed = (struct workload_changed){
        .workload = w->id,
        .state = to,
        .cause = cause,
        .detail = some_name(h),
        .attempt = w->attempt,
        .failures = (int64_t)below(h, 4),
        .evictions = (int64_t)below(h, 4),
        .node_losses = (int64_t)below(h, 4),
    };
    if (workload_state_is_final(to))
        ev->workload_changed.exit =
            (struct exit_status){ one_in(h, 2), (int64_t)below(h, 256), 0, one_in(h, 5) };
    name_object(h, ID_WORKLOAD, w->id);
}

static struct event *change_allocation(struct history *h, const struct history_workload *w,
                                       enum allocation_state to)
{
    struct event *ev = add(h, EV_ALLOCATION_CHANGED, w->tenant);
    ev->allocation_changed = (struct allocation_changed){
        .allocation = w->allocation,
        .state = to,
        .stop_cause = to == AL_RUNNING ? CAUSE_NONE : CAUSE_EXITED,
    };
    if (one_in(h, 5))
        ev->allocation_changed.evictor = some_id(h);
    name_object(h, ID_ALLOCATION, w->allocation);
    return ev;
}

static void start(struct history *h, struct history_workload *w)
{
    w->attempt++;
    w->allocation = some_id(h);
    struct event *ev = add(h, EV_ALLOCATION_GRANTED, w->tenant);
    ev->allocation_granted = (struct allocation_record){
        .id = w->allocation,
        .workload = w->id,
        .project = w->project,
        .node = some_id(h),
        .attempt = w->attempt,
        .rank = (int64_t)below(h, 8),
        .class_number = (int64_t)below(h, HISTORY_CLASSES),
        .charge_milli = 1 + (int64_t)below(h, 8000),
        .state = AL_STARTING,
    };
    name_object(h, ID_ALLOCATION, w->allocation);
    change_workload(h, w, WL_STARTING, CAUSE_NONE);
}

static void end_use(struct history *h, struct history_workload *w)
{
    struct event *ev = change_allocation(h, w, AL_CLEANING);
    ev->allocation_changed.has_segment = true;
    ev->allocation_changed.segment = (struct segment){
        .allocation = w->allocation,
        .workload = w->id,
        .project = w->project,
        .tenant = w->tenant,
        .class_number = (int64_t)below(h, HISTORY_CLASSES),
        .charge_milli = 1 + (int64_t)below(h, 8000),
        .start = { h->wall.ns - (int64_t)below(h, 100000) },
        .duration_ms = (int64_t)below(h, 100000000),
        .price_micros_per_hour = (int64_t)below(h, 5000000),
        .amount_micros = (int64_t)below(h, 500000000),
        .cause = CAUSE_EXITED,
    };
    (void)change_allocation(h, w, AL_ENDED);
}

static void end(struct history *h, size_t at)
{
    static const enum workload_state states[] = { WL_SUCCEEDED, WL_FAILED, WL_CANCELLED,
                                                  WL_TIMED_OUT };
    struct history_workload *w = &h->live.items[at];
    if (w->state == WL_RUNNING)
        end_use(h, w);
    change_workload(h, w, states[below(h, COUNT_OF(states))], CAUSE_EXITED);
    vec_push(&h->ended, w->id);
    h->live.items[at] = h->live.items[--h->live.count];
}

/* NOLINTBEGIN(bugprone-branch-clone): one row a state, also where two do the same */
static void advance(struct history *h)
{
    size_t at = below(h, h->live.count);
    struct history_workload *w = &h->live.items[at];
    if (one_in(h, 12)) {
        end(h, at);
    } else if (w->state == WL_HELD) {
        change_workload(h, w, WL_QUEUED, CAUSE_WAITING_FOR_QUOTA);
    } else if (w->state == WL_QUEUED) {
        start(h, w);
    } else if (w->state == WL_STARTING) {
        (void)change_allocation(h, w, AL_RUNNING);
        change_workload(h, w, WL_RUNNING, CAUSE_NONE);
    } else if (one_in(h, 5)) {
        end_use(h, w);
        change_workload(h, w, WL_QUEUED, CAUSE_RECLAIMED_FOR_QUOTA);
    } else {
        end(h, at);
    }
}
/* NOLINTEND(bugprone-branch-clone) */

/* Events that have no table of their own still have audit rows. */
static void other(struct history *h)
{
    static const enum event_type types[] = { EV_NODE_CONTACT, EV_TOKEN_REMOVED, EV_CLASS_SET,
                                             EV_SETTINGS_CHANGED };
    struct id none = { 0 };
    (void)add(h, types[below(h, COUNT_OF(types))], none);
    if (one_in(h, 3)) {
        struct history_project *moved = &h->projects[below(h, h->project_count)];
        struct event *ev = add(h, EV_PROJECT_SET, moved->tenant);
        moved->path = str_of(arena_format(&h->arena, "moved/%zu", below(h, 1000)));
        ev->project_set = (struct project_record){
            .id = moved->id,
            .parent = id_eq(moved->id, moved->tenant) ? (struct id){ 0 } : moved->tenant,
            .path = moved->path,
        };
    }
    if (h->ended.count != 0 && one_in(h, 2)) {
        const struct history_project *project = &h->projects[below(h, h->project_count)];
        struct event *ev = add(h, EV_WORKLOAD_FORGOTTEN, project->tenant);
        ev->removed.id = h->ended.items[below(h, h->ended.count)];
    }
}

static void one_step(struct history *h)
{
    if (h->project_count < HISTORY_TENANTS ||
        (h->project_count < HISTORY_PROJECTS && one_in(h, 20)))
        make_project(h);
    else if (one_in(h, 15))
        other(h);
    else if (h->live.count == 0 || one_in(h, 4))
        submit(h);
    else
        advance(h);
}

static void make_answer(struct history *h)
{
    struct store_answer answer = { .number = h->answers.count + 1,
                                   .status = 201,
                                   .version = h->sequence };
    fill_digest(h, &answer.key);
    fill_digest(h, &answer.body_hash);
    answer.content = some_body(h);
    answer.expires = (struct wall){ h->wall.ns + (int64_t)below(h, 100) * NS_PER_S };
    vec_push(&h->answers, answer);
}

void history_init(struct history *history, uint64_t seed)
{
    *history = (struct history){ .random = seed, .at = { 1000 } };
    history->wall.ns = INT64_C(1800000000) * NS_PER_S;
}

void history_done(struct history *history)
{
    vec_done(&history->live);
    vec_done(&history->ended);
    vec_done(&history->events);
    vec_done(&history->answers);
    arena_done(&history->arena);
}

/* Vectors move as they grow, so that a batch has copies of its own. */
struct store_batch history_batch(struct history *history, size_t events, size_t answers)
{
    size_t first_event = history->events.count;
    size_t first_answer = history->answers.count;
    history->projects_before = history->project_count;
    history->ended_before = history->ended.count;
    while (history->events.count - first_event < events)
        one_step(history);
    while (history->answers.count - first_answer < answers)
        make_answer(history);
    struct store_batch batch = {
        .event_count = history->events.count - first_event,
        .answer_count = answers,
        .clock = { STR("4c0f7b6e-boot"), history->at.ns + 5, history->at, history->wall },
    };
    struct store_event *copies = arena_new(&history->arena, batch.event_count + 1, sizeof(*copies));
    for (size_t i = 0; i < batch.event_count; i++)
        copies[i] = history->events.items[first_event + i];
    struct store_answer *kept = arena_new(&history->arena, answers + 1, sizeof(*kept));
    for (size_t i = 0; i < answers; i++)
        kept[i] = history->answers.items[first_answer + i];
    batch.events = copies;
    batch.answers = kept;
    history->clock = batch.clock;
    return batch;
}

void history_take_back(struct history *history, const struct store_batch *batch)
{
    history->events.count -= batch->event_count;
    history->answers.count -= batch->answer_count;
    history->sequence -= batch->event_count;
    history->project_count = history->projects_before;
    history->ended.count = history->ended_before;
}

enum err history_decode(void *arg, const struct store_row *row, struct arena *arena,
                        struct event *out, struct error *e)
{
    const struct history *history = arg;
    (void)arena;
    if (row->sequence == 0 || row->sequence > history->events.count)
        return err_set(e, ERR_CORRUPT, "never made");
    const struct store_event *made = &history->events.items[row->sequence - 1];
    if (!str_eq(made->body, row->body) || made->event->type != row->type)
        return err_set(e, ERR_CORRUPT, "another body than was stored");
    *out = *made->event;
    return ERR_OK;
}
