#include "core/whatif.h"

#include <assert.h>

#include "core/decide.h"

enum { STEP_BUDGET = 1000 };

static const struct actor nature = { .role = ROLE_SYSTEM, .name = STR_INIT("what-if") };

struct whatif {
    struct state *state;
    struct sched *sched;
    const struct whatif_ask *ask;
    struct whatif_run *run;
    struct arena arena; /* of one decision */
    struct mono now;
    VEC(struct id) stirred; /* nodes that have something to do */
    struct id_map is_stirred;
    bool is_submitting;
};

void whatif_run_done(struct whatif_run *run)
{
    vec_done(&run->rows);
    id_map_done(&run->by_workload);
    arena_done(&run->texts);
}

static void whatif_done(struct whatif *w)
{
    arena_done(&w->arena);
    vec_done(&w->stirred);
    id_map_done(&w->is_stirred);
}
DEFINE_CLEANUP_AT(whatif, struct whatif, whatif_done)

static struct wall wall_now(const struct whatif *w)
{
    return (struct wall){ w->ask->wall.ns + (w->now.ns - w->ask->now.ns) };
}

void whatif_run_add(struct whatif_run *run, const struct whatif_row *row)
{
    struct whatif_row copy = *row;
    copy.name = str_copy(&run->texts, row->name);
    vec_push(&run->rows, copy);
    id_map_put(&run->by_workload, row->workload, (void *)(uintptr_t)run->rows.count);
}

/* ---- what happens -------------------------------------------------------------------------- */

static struct whatif_row *row_at(struct whatif *w, struct id workload)
{
    struct whatif_run *run = w->run;
    uintptr_t place = (uintptr_t)id_map_get(&run->by_workload, workload);
    if (place == 0) {
        struct whatif_row row = { .workload = workload, .started = { INT64_MAX } };
        const struct workload *known = state_workload(w->state, workload);
        if (known != NULL) {
            row.project = known->r.project;
            row.name = known->r.name;
        }
        whatif_run_add(run, &row);
        place = run->rows.count;
    }
    return &run->rows.items[place - 1];
}

const struct whatif_row *whatif_row_of(const struct whatif_run *run, struct id workload)
{
    uintptr_t place = (uintptr_t)id_map_get(&run->by_workload, workload);
    return place != 0 ? &run->rows.items[place - 1] : NULL;
}

bool whatif_next(const struct whatif_run *before, const struct whatif_run *after, size_t *at,
                 struct whatif_pair *out)
{
    static const struct whatif_row nothing = { .started = { INT64_MAX } };
    for (; *at < after->rows.count + before->rows.count; (*at)++) {
        bool is_after = *at < after->rows.count;
        const struct whatif_row *row =
            is_after ? &after->rows.items[*at] : &before->rows.items[*at - after->rows.count];
        const struct whatif_row *other = whatif_row_of(is_after ? before : after, row->workload);
        if (!is_after && other != NULL)
            continue; /* it came with those of `after` */
        if (other == NULL)
            other = &nothing;
        *out = (struct whatif_pair){ is_after ? other : row, is_after ? row : other, row };
        (*at)++;
        return true;
    }
    return false;
}

static void stir(struct whatif *w, struct id node)
{
    if (id_map_get(&w->is_stirred, node) != NULL)
        return;
    id_map_put(&w->is_stirred, node, w);
    vec_push(&w->stirred, node);
}

/* Before the event is applied: what it changes is still as it was. */
static void note(struct whatif *w, const struct event *event)
{
    if (event->type == EV_WORKLOAD_SUBMITTED && w->is_submitting) {
        struct whatif_row *row = row_at(w, event->workload_submitted.id);
        row->is_new = true;
        row->project = event->workload_submitted.project;
        row->name = str_copy(&w->run->texts, event->workload_submitted.name);
    } else if (event->type == EV_ALLOCATION_GRANTED) {
        struct whatif_row *row = row_at(w, event->allocation_granted.workload);
        w->run->starts += row->started.ns == INT64_MAX;
        if (row->started.ns == INT64_MAX)
            row->started = event->at;
        stir(w, event->allocation_granted.node);
    } else if (event->type == EV_ALLOCATION_CHANGED) {
        stir(w, state_allocation(w->state, event->allocation_changed.allocation)->r.node);
    } else if (event->type == EV_WORKLOAD_CHANGED) {
        const struct workload_changed *next = &event->workload_changed;
        if (next->evictions <= state_workload(w->state, next->workload)->r.evictions)
            return;
        struct whatif_row *row = row_at(w, next->workload);
        row->evictions++;
        row->cause = next->cause;
        w->run->evictions++;
    }
}

static void apply(struct whatif *w, const struct event_list *events)
{
    for (size_t i = 0; i < events->count; i++) {
        struct event *event = &events->items[i];
        event->sequence = w->state->sequence + 1;
        note(w, event);
        evolve(w->state, event);
        sched_note(w->sched, event);
    }
}

static enum err act(struct whatif *w, struct command *command, struct error *e)
{
    struct event_list events = { 0 };
    command->now = w->now;
    command->wall = wall_now(w);
    enum err rc = decide(w->state, w->sched, command, &w->arena, &events, e);
    if (rc == ERR_OK)
        apply(w, &events);
    return rc;
}

static bool may_go_on(struct whatif *w)
{
    if (w->ask->may_go_on == NULL || w->ask->may_go_on(w->ask->arg))
        return true;
    w->run->is_cut = true;
    return false;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* What runs without a time limit is planned with this one; 0: it never ends. */
static int64_t planned_s(const struct whatif *w, const struct workload *workload)
{
    bool is_bounded = workload->r.time_limit_s != 0 || workload->r.state != WL_RUNNING;
    return is_bounded ? 0 : w->state->settings.default_time_limit_s;
}

static bool has_ended(const struct whatif *w, const struct workload *workload)
{
    int64_t span_s = planned_s(w, workload);
    return span_s > 0 && !mono_before(w->now, mono_add_s(workload->r.state_since, span_s));
}

/* All that the node has: what is wanted runs, what is not is gone. */
static void report(struct whatif *w, const struct node *node)
{
    struct error e = { 0 };
    size_t count = 0;
    struct command command = { .type = CMD_NODE_OBSERVED,
                               .actor = { .role = ROLE_NODE, .node = node->r.id } };
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
        count++;
    struct observed *items = arena_new(&w->arena, count, sizeof(*items));
    command.observed = (struct node_observed){ .node = node->r.id,
                                               .generation = node->r.generation,
                                               .epoch = w->state->epoch,
                                               .observed = { items, 0 } };
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        struct observed seen = { .allocation = a->r.id, .attempt = a->r.attempt };
        bool is_stuck = a->r.state == AL_QUARANTINED;
        if (!is_stuck && !core_wants_running(a))
            continue;
        seen.state = is_stuck                    ? OBSERVED_STUCK
                     : has_ended(w, a->workload) ? OBSERVED_EXITED
                                                 : OBSERVED_RUNNING;
        seen.exit.is_known = seen.state == OBSERVED_EXITED;
        items[command.observed.observed.count++] = seen;
    }
    enum err rc = act(w, &command, &e);
    assert(rc == ERR_OK); /* of a node that is there none is refused */
    (void)rc;
}

/* Nodes out of contact are silent. */
static bool nodes_act(struct whatif *w)
{
    size_t count = w->stirred.count;
    for (size_t i = 0; i < count; i++) {
        const struct node *node = state_node(w->state, w->stirred.items[i]);
        (void)id_map_remove(&w->is_stirred, w->stirred.items[i]);
        if (node != NULL && node->r.contact == CONTACT_OK)
            report(w, node);
    }
    /* What they stirred meanwhile comes behind. */
    size_t left = w->stirred.count - count;
    for (size_t i = 0; i < left; i++)
        w->stirred.items[i] = w->stirred.items[count + i];
    w->stirred.count = left;
    return count > 0;
}

/* When the next work ends that is only planned to; nodes where some has are stirred. */
static int64_t planned_end(struct whatif *w)
{
    int64_t next = INT64_MAX;
    if (w->state->settings.default_time_limit_s == 0)
        return next;
    for (const struct node *node = w->state->first_node; node != NULL; node = node->next) {
        for (const struct allocation *a = node->first_allocation;
             a != NULL && node->r.contact == CONTACT_OK; a = a->next_on_node) {
            int64_t span_s = planned_s(w, a->workload);
            if (span_s == 0 || !core_wants_running(a))
                continue;
            if (has_ended(w, a->workload))
                stir(w, node->r.id);
            else
                next = MIN_OF(next, mono_add_s(a->workload->r.state_since, span_s).ns);
        }
    }
    return next;
}

/* ---- time ---------------------------------------------------------------------------------- */

static bool schedule(struct whatif *w)
{
    bool is_changed = false;
    for (bool more = true; more && may_go_on(w);) {
        struct plan plan = { 0 };
        struct event_list events = { 0 };
        sched_clock(w->sched, w->now, wall_now(w));
        more = sched_step(w->sched, w->now, STEP_BUDGET, &w->arena, &plan);
        decide_plan(w->state, &plan, w->now, wall_now(w), &w->arena, &events);
        apply(w, &events);
        is_changed |= events.count > 0;
        arena_reset(&w->arena);
    }
    return is_changed;
}

static bool tick(struct whatif *w)
{
    struct error e = { 0 };
    struct command command = { .type = CMD_TICK, .actor = nature };
    uint64_t before = w->state->sequence;
    if (core_next_deadline(w->sched).ns > w->now.ns)
        return false;
    (void)act(w, &command, &e); /* time is never refused */
    return w->state->sequence != before;
}

/* Until nothing changes at this instant. */
static void settle(struct whatif *w)
{
    for (bool is_changed = true; is_changed && may_go_on(w);) {
        is_changed = schedule(w);
        (void)planned_end(w);
        is_changed |= nodes_act(w);
        is_changed |= tick(w);
        arena_reset(&w->arena);
    }
}

static void go_on(struct whatif *w)
{
    struct whatif_run *run = w->run;
    while (may_go_on(w)) {
        settle(w);
        int64_t next = MIN_OF(core_next_deadline(w->sched).ns, sched_wake_at(w->sched).ns);
        next = MIN_OF(next, planned_end(w));
        if (next <= w->now.ns) /* what is due and did nothing is not waited for */
            next = w->now.ns + NS_PER_S;
        if (run->is_cut || next > run->until.ns)
            break;
        w->now.ns = next;
    }
    for (const struct workload *at = w->state->first_workload; at != NULL; at = at->next)
        run->waiting += at->r.state == WL_QUEUED;
}

/* Whom it was told already to stop or to start does so. */
static void stir_all(struct whatif *w)
{
    for (const struct node *node = w->state->first_node; node != NULL; node = node->next) {
        if (node->first_allocation != NULL)
            stir(w, node->r.id);
    }
}

static void lose(struct whatif *w, struct id node)
{
    struct error e = { 0 };
    struct command command = { .type = CMD_NODE_CONTACT, .actor = nature };
    command.contact = (struct node_contact_command){ .node = node, .contact = CONTACT_LOST };
    (void)act(w, &command, &e); /* it is there: the caller found it */
}

enum err core_whatif(struct state *state, struct sched *sched, const struct whatif_ask *ask,
                     struct whatif_run *out, struct error *e)
{
    AUTO(whatif)
    struct whatif w = { .state = state, .sched = sched, .ask = ask, .run = out, .now = ask->now };
    *out = (struct whatif_run){ .from = ask->now, .until = mono_add_s(ask->now, ask->horizon_s) };
    sched_clock(sched, w.now, ask->wall);
    w.is_submitting = true;
    for (size_t i = 0; i < ask->count; i++) {
        enum err rc = act(&w, &ask->commands[i], e);
        if (rc != ERR_OK)
            return rc;
    }
    w.is_submitting = false;
    if (!id_is_none(ask->lost))
        lose(&w, ask->lost);
    stir_all(&w);
    go_on(&w);
    return ERR_OK;
}
