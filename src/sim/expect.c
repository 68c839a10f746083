#include "sim/expect.h"

#include <stdarg.h>
#include <stdio.h>

#include "sched/sched.h"

struct check {
    struct world *world;
    const struct sim_expect *expect;
    struct buf *why;
    bool is_good;
};

static void fault(struct check *check, const char *fmt, ...) PRINTF(2, 3);

static void fault(struct check *check, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    check->is_good = false;
    buf_format(check->why, "# at %gs: %s\n", (double)world_t(check->world) / (double)NS_PER_S,
               text);
}

bool expect_is_due(const struct sim_expect *expect, int64_t t)
{
    return expect->from_s != UNSET && t >= expect->from_s * NS_PER_S &&
           t <= expect->to_s * NS_PER_S;
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static enum cause cause_of(const struct check *check, const struct workload *workload)
{
    struct explanation why = { .cause = workload->r.cause };
    AUTO(arena) struct arena arena = { 0 };
    if (workload->r.state == WL_QUEUED)
        sched_explain(engine_sched(check->world->engine), workload, check->world->now, &arena,
                      &why);
    return why.cause;
}

static const struct allocation *first_member(const struct workload *workload)
{
    const struct allocation *a = workload->first_allocation;
    while (a != NULL && a->r.attempt != workload->r.attempt)
        a = a->next_in_workload;
    return a;
}

static struct str node_of(const struct workload *workload)
{
    const struct allocation *a = first_member(workload);
    return a != NULL ? a->node->r.name : STR("no node");
}

static void check_state(struct check *check, const struct job *job, const struct workload *workload)
{
    const struct sim_expect *x = check->expect;
    const char *state = enum_name(&workload_state_names, workload->r.state);
    const char *cause = cause_name(cause_of(check, workload));
    if (x->state.size > 0 && !str_is(x->state, state))
        fault(check, "job %.*s is %s (%s), expected %.*s", STR_ARG(job->name), state, cause,
              STR_ARG(x->state));
    else if (x->cause.size > 0 && !str_is(x->cause, cause))
        fault(check, "job %.*s is %s because of %s, expected %.*s", STR_ARG(job->name), state,
              cause, STR_ARG(x->cause));
}

static const struct workload *other_of(struct check *check, struct str name)
{
    const struct job *job = world_job(check->world, name);
    if (job == NULL)
        fault(check, "there is no job %.*s to compare with", STR_ARG(name));
    return job != NULL ? world_workload(check->world, job) : NULL;
}

static bool shares_device(const struct workload *a, const struct workload *b)
{
    const struct allocation *x = first_member(a);
    const struct allocation *y = first_member(b);
    if (x == NULL || y == NULL || x->node != y->node)
        return false;
    for (size_t i = 0; i < x->r.shares.count; i++) {
        for (size_t k = 0; k < y->r.shares.count; k++) {
            if (x->r.shares.items[i].device == y->r.shares.items[k].device)
                return true;
        }
    }
    return false;
}

static void check_place(struct check *check, const struct job *job, const struct workload *workload)
{
    const struct sim_expect *x = check->expect;
    const struct allocation *a = first_member(workload);
    struct str node = node_of(workload);
    if (x->node.size > 0 && !str_eq(x->node, node))
        fault(check, "job %.*s is on %.*s, expected %.*s", STR_ARG(job->name), STR_ARG(node),
              STR_ARG(x->node));
    struct str pool = a != NULL && a->node->pool != NULL ? a->node->pool->r.name : STR("no pool");
    if (x->pool.size > 0 && !str_eq(x->pool, pool))
        fault(check, "job %.*s is in %.*s, expected %.*s", STR_ARG(job->name), STR_ARG(pool),
              STR_ARG(x->pool));
    const struct workload *other =
        x->same_node_as.size > 0 ? other_of(check, x->same_node_as) : NULL;
    if (other != NULL && (a == NULL || !str_eq(node_of(other), node)))
        fault(check, "job %.*s is on %.*s, %.*s on %.*s, expected the same node",
              STR_ARG(job->name), STR_ARG(node), STR_ARG(x->same_node_as), STR_ARG(node_of(other)));
    other = x->different_device_from.size > 0 ? other_of(check, x->different_device_from) : NULL;
    if (other != NULL && shares_device(workload, other))
        fault(check, "job %.*s shares a device with %.*s", STR_ARG(job->name),
              STR_ARG(x->different_device_from));
}

static void check_counts(struct check *check, const struct job *job,
                         const struct workload *workload)
{
    const struct sim_expect *x = check->expect;
    const struct workload_record *r = &workload->r;
    int64_t started_ns = r->started.ns - check->world->scenario->start.ns;
    if (x->evictions != UNSET && r->evictions != x->evictions)
        fault(check, "job %.*s was evicted %lld times, expected %lld", STR_ARG(job->name),
              (long long)r->evictions, (long long)x->evictions);
    if (x->evictions_max != UNSET && r->evictions > x->evictions_max)
        fault(check, "job %.*s was evicted %lld times, expected at most %lld", STR_ARG(job->name),
              (long long)r->evictions, (long long)x->evictions_max);
    if (x->attempts != UNSET && r->attempt != x->attempts)
        fault(check, "job %.*s is in attempt %lld, expected %lld", STR_ARG(job->name),
              (long long)r->attempt, (long long)x->attempts);
    if (x->started_before_s != UNSET &&
        (r->started.ns == 0 || started_ns >= x->started_before_s * NS_PER_S))
        fault(check, "job %.*s started at %lld s, expected before %lld s", STR_ARG(job->name),
              r->started.ns == 0 ? -1LL : (long long)(started_ns / NS_PER_S),
              (long long)x->started_before_s);
    if (x->started_after_s != UNSET &&
        (r->started.ns == 0 || started_ns <= x->started_after_s * NS_PER_S))
        fault(check, "job %.*s started at %lld s, expected after %lld s", STR_ARG(job->name),
              r->started.ns == 0 ? -1LL : (long long)(started_ns / NS_PER_S),
              (long long)x->started_after_s);
}

/* Only waiting work has a promise. */
static void check_promise(struct check *check, const struct job *job,
                          const struct workload *workload)
{
    const struct sim_expect *x = check->expect;
    if (x->promised_before_s == UNSET)
        return;
    struct mono at = sched_promised(engine_sched(check->world->engine), workload);
    int64_t t_ns = at.ns == INT64_MAX ? -1 : at.ns - (check->world->now.ns - world_t(check->world));
    if (at.ns == INT64_MAX || t_ns >= x->promised_before_s * NS_PER_S)
        fault(check, "job %.*s was promised a start at %lld s, expected before %lld s",
              STR_ARG(job->name), t_ns < 0 ? -1LL : (long long)(t_ns / NS_PER_S),
              (long long)x->promised_before_s);
}

static void check_many(struct check *check)
{
    const struct sim_expect *x = check->expect;
    int64_t count = 0;
    int64_t all = 0;
    for (size_t i = 0; i < check->world->jobs.count; i++) {
        const struct job *job = check->world->jobs.items[i];
        if (!world_name_matches(x->job, job->name))
            continue;
        const struct workload *workload = world_workload(check->world, job);
        all++;
        count += str_is(x->state, enum_name(&workload_state_names, workload->r.state));
    }
    if (count != x->count_in_state)
        fault(check, "%lld of %lld jobs %.*s are %.*s, expected %lld", (long long)count,
              (long long)all, STR_ARG(x->job), STR_ARG(x->state), (long long)x->count_in_state);
}

static void check_job(struct check *check)
{
    const struct sim_expect *x = check->expect;
    if (x->count_in_state != UNSET) {
        check_many(check);
        return;
    }
    bool any = false;
    for (size_t i = 0; i < check->world->jobs.count; i++) {
        const struct job *job = check->world->jobs.items[i];
        if (!world_name_matches(x->job, job->name))
            continue;
        const struct workload *workload = world_workload(check->world, job);
        any = true;
        check_state(check, job, workload);
        check_place(check, job, workload);
        check_counts(check, job, workload);
        check_promise(check, job, workload);
    }
    if (!any)
        fault(check, "there is no job %.*s", STR_ARG(x->job));
}

/* ---- reservations -------------------------------------------------------------------------- */

static void check_reservation(struct check *check)
{
    const struct sim_expect *x = check->expect;
    const struct reservation *reservation = world_reservation(check->world, x->reservation);
    if (reservation == NULL) {
        fault(check, "there is no reservation %.*s", STR_ARG(x->reservation));
        return;
    }
    const char *state = enum_name(&reservation_state_names, reservation->r.state);
    if (!str_is(x->state, state))
        fault(check, "reservation %.*s is %s (%.*s), expected %.*s", STR_ARG(x->reservation), state,
              STR_ARG(reservation->r.detail), STR_ARG(x->state));
}

/* ---- amounts ------------------------------------------------------------------------------- */

enum compare { COMPARE_EQUAL, COMPARE_MAX, COMPARE_MIN };

static void check_amount(struct check *check, struct str path, const struct amount *amount,
                         enum compare compare)
{
    static const char *const words[] = { "", "at most ", "at least " };
    const struct state *state = engine_state(check->world->engine);
    const struct project *project = state_project_by_path(state, path);
    const struct class_object *class = state_class_by_name(state, amount->class_name);
    if (project == NULL || class == NULL) {
        fault(check, "there is no project %.*s or no class %.*s", STR_ARG(path),
              STR_ARG(amount->class_name));
        return;
    }
    int64_t milli =
        sched_use(engine_sched(check->world->engine), project, class->r.number).allocated_milli;
    bool is_good = compare == COMPARE_MAX   ? milli <= amount->value
                   : compare == COMPARE_MIN ? milli >= amount->value
                                            : milli == amount->value;
    if (!is_good)
        fault(check, "%.*s runs %.3f %.*s, expected %s%.3f", STR_ARG(path), (double)milli / 1000,
              STR_ARG(amount->class_name), words[compare], (double)amount->value / 1000);
}

static void check_amounts(struct check *check, const struct path_amounts_list *list,
                          enum compare compare)
{
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = 0; k < list->items[i].amounts.count; k++)
            check_amount(check, list->items[i].path, &list->items[i].amounts.items[k], compare);
    }
}

static bool is_within(const struct check *check, const struct job *job, struct str path)
{
    const struct project *project = state_project_by_path(engine_state(check->world->engine), path);
    return project != NULL &&
           project_is_within(world_workload(check->world, job)->project, project);
}

static void check_pending(struct check *check, const struct amount *wanted)
{
    int64_t count = 0;
    for (size_t i = 0; i < check->world->jobs.count; i++) {
        const struct job *job = check->world->jobs.items[i];
        count += is_within(check, job, wanted->class_name) &&
                 world_workload(check->world, job)->r.state == WL_QUEUED;
    }
    if (count != wanted->value)
        fault(check, "%lld jobs of %.*s wait, expected %lld", (long long)count,
              STR_ARG(wanted->class_name), (long long)wanted->value);
}

static void check_free(struct check *check, const struct amount *wanted)
{
    const struct class_object *class =
        state_class_by_name(engine_state(check->world->engine), wanted->class_name);
    int64_t milli =
        class == NULL
            ? -1
            : sched_capacity(engine_sched(check->world->engine), class->r.number).free_milli;
    if (milli != wanted->value)
        fault(check, "%.3f %.*s are free, expected %.3f", (double)milli / 1000,
              STR_ARG(wanted->class_name), (double)wanted->value / 1000);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void check_evictions(struct check *check)
{
    const struct sim_expect *x = check->expect;
    int64_t count = 0;
    for (size_t i = 0; i < check->world->jobs.count; i++) {
        const struct job *job = check->world->jobs.items[i];
        if (x->path.size == 0 || is_within(check, job, x->path))
            count += world_workload(check->world, job)->r.evictions;
    }
    if (x->evictions != UNSET && count != x->evictions)
        fault(check, "%lld evictions, expected %lld", (long long)count, (long long)x->evictions);
    if (x->evictions_max != UNSET && count > x->evictions_max)
        fault(check, "%lld evictions, expected at most %lld", (long long)count,
              (long long)x->evictions_max);
}

bool expect_holds(struct world *world, const struct sim_expect *expect, struct buf *why)
{
    struct check check = { world, expect, why, true };
    if (expect->reservation.size > 0)
        check_reservation(&check);
    else if (expect->job.size > 0)
        check_job(&check);
    else
        check_evictions(&check);
    check_amounts(&check, &expect->running, COMPARE_EQUAL);
    check_amounts(&check, &expect->running_max, COMPARE_MAX);
    check_amounts(&check, &expect->running_min, COMPARE_MIN);
    for (size_t i = 0; i < expect->pending.count; i++)
        check_pending(&check, &expect->pending.items[i]);
    for (size_t i = 0; i < expect->free.count; i++)
        check_free(&check, &expect->free.items[i]);
    int64_t quiet_ns = world->decided.ns - (world->now.ns - world_t(world));
    if (expect->quiet_after_s != UNSET && quiet_ns > expect->quiet_after_s * NS_PER_S)
        fault(&check, "the last decision was at %lld s, expected none after %lld s",
              (long long)(quiet_ns / NS_PER_S), (long long)expect->quiet_after_s);
    if (expect->error_count != UNSET && world->errors != expect->error_count)
        fault(&check, "%lld events were refused, expected %lld", (long long)world->errors,
              (long long)expect->error_count);
    return check.is_good;
}
