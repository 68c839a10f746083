#include "core/preview.h"

#include <stdlib.h>
#include <string.h>

#include "core/policy.h"

static const char *const effects[EFFECT_COUNT] = {
    [EFFECT_BORROWED] = "becomes_borrowed",
    [EFFECT_GUARANTEED] = "becomes_guaranteed",
    [EFFECT_UNPROTECTED] = "loses_protection",
    [EFFECT_PROTECTED] = "gains_protection",
};
const struct enum_names preview_effect_names = { "effect", effects, EFFECT_COUNT };

struct preview_run {
    const struct state *state;
    const struct sched *sched;
    struct arena *arena;
    struct mono now;
    struct preview *out;
};

static void add_work(const struct preview_run *run, const struct preview_work *work)
{
    struct preview *out = run->out;
    if (out->work_count < PREVIEW_WORK_MAX)
        out->work[out->work_count] = *work;
    out->work_count++;
}

/* ---- running work -------------------------------------------------------------------------- */

struct running {
    const struct workload *workload;
    int64_t milli;
};

static int64_t charge_in(const struct workload *workload, int64_t class_number)
{
    int64_t milli = 0;
    for (const struct allocation *a = workload->first_allocation; a != NULL;
         a = a->next_in_workload)
        milli += a->r.class_number == class_number && allocation_is_charged(a->r.state)
                     ? a->r.charge_milli
                     : 0;
    return milli;
}

/* Of a gang, only one of its allocations stands for it. */
static bool is_first_of_work(const struct allocation *allocation)
{
    for (const struct allocation *a = allocation->workload->first_allocation; a != allocation;
         a = a->next_in_workload)
        if (a->r.class_number == allocation->r.class_number && allocation_is_charged(a->r.state))
            return false;
    return allocation_is_charged(allocation->r.state);
}

/* Work in windows of reservations counts in no quota. */
static bool counts(const struct allocation *allocation)
{
    const struct workload_record *r = &allocation->workload->r;
    return (id_is_none(r->reservation) || r->is_on_demand) && is_first_of_work(allocation);
}

/* What keeps its place: first work that is never stopped, then by priority, then older work. */
static int by_right(const void *a, const void *b)
{
    const struct workload_record *left = &((const struct running *)a)->workload->r;
    const struct workload_record *right = &((const struct running *)b)->workload->r;
    bool left_stays = left->preemptible == PREEMPTIBLE_NEVER;
    bool right_stays = right->preemptible == PREEMPTIBLE_NEVER;
    if (left_stays != right_stays)
        return left_stays ? -1 : 1;
    if (left->priority != right->priority)
        return left->priority > right->priority ? -1 : 1;
    return (left->submitted_sequence > right->submitted_sequence) -
           (left->submitted_sequence < right->submitted_sequence);
}

static struct running *find_running(const struct preview_run *run, const struct project *project,
                                    int64_t class_number, size_t *count)
{
    struct running *list = arena_new(run->arena, run->state->allocation_count, sizeof(*list));
    *count = 0;
    for (const struct node *node = run->state->first_node; node != NULL; node = node->next) {
        for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
            if (a->r.class_number == class_number && counts(a) &&
                project_is_within(a->workload->project, project))
                list[(*count)++] =
                    (struct running){ a->workload, charge_in(a->workload, class_number) };
        }
    }
    if (*count > 0)
        qsort(list, *count, sizeof(*list), by_right);
    return list;
}

/* Which work lies above the guarantee, before and after. */
static void find_borrowed(const struct preview_run *run, const struct preview_level *level)
{
    size_t count = 0;
    const struct running *list = find_running(run, level->project, level->class_number, &count);
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += list[i].milli;
        bool was_borrowed = sum > level->quota_milli;
        bool is_borrowed = sum > level->new_quota_milli;
        if (was_borrowed == is_borrowed)
            continue;
        const struct preview_work work = { list[i].workload, level->class_number, list[i].milli,
                                           is_borrowed ? EFFECT_BORROWED : EFFECT_GUARANTEED };
        add_work(run, &work);
    }
}

/* ---- a project ----------------------------------------------------------------------------- */

static struct preview_level level_of(const struct preview_run *run, const struct project *project,
                                     int64_t class_number)
{
    struct class_use use = sched_use(run->sched, project, class_number);
    struct quota quota = project_quota(project, class_number);
    int64_t effective = effective_quota(project, class_number);
    return (struct preview_level){ .project = project,
                                   .class_number = class_number,
                                   .quota_milli = effective,
                                   .new_quota_milli = effective,
                                   .limit_milli = quota.limit_milli,
                                   .new_limit_milli = quota.limit_milli,
                                   .allocated_milli = use.allocated_milli,
                                   .pending_milli = use.pending_milli };
}

static void add_level(const struct preview_run *run, struct preview_level *level)
{
    level->borrowed_milli = MAX_OF(level->allocated_milli - level->quota_milli, INT64_C(0));
    level->new_borrowed_milli = MAX_OF(level->allocated_milli - level->new_quota_milli, INT64_C(0));
    run->out->levels[run->out->level_count++] = *level;
}

/* The project itself, and those above that have no guarantee of their own: theirs is a sum. */
static void preview_class(const struct preview_run *run, const struct project *project,
                          const struct quota *row)
{
    struct preview_level level = level_of(run, project, row->class_number);
    int64_t own = given_or(row->quota_milli, project_quota(project, row->class_number).quota_milli);
    level.new_quota_milli = own > 0 ? own : quota_below(project, row->class_number);
    level.new_limit_milli = given_or(row->limit_milli, level.limit_milli);
    int64_t more = level.new_quota_milli - level.quota_milli;
    add_level(run, &level);
    if (more == 0)
        return;
    find_borrowed(run, &level);
    for (const struct project *p = project->parent; p != NULL; p = p->parent) {
        if (project_quota(p, row->class_number).quota_milli > 0)
            break;
        struct preview_level sum = level_of(run, p, row->class_number);
        sum.new_quota_milli += more;
        add_level(run, &sum);
    }
}

/* ---- settings ------------------------------------------------------------------------------ */

/* Work that can go and ran for so long that one of the two values protects it. */
static void find_protected(const struct preview_run *run, int64_t before_s, int64_t after_s)
{
    for (const struct node *node = run->state->first_node; node != NULL; node = node->next) {
        for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
            const struct workload *w = a->workload;
            if (w->r.state != WL_RUNNING || w->r.preemptible == PREEMPTIBLE_NEVER || !counts(a))
                continue;
            int64_t ran_s = (run->now.ns - w->r.state_since.ns) / NS_PER_S;
            bool was_protected = ran_s < before_s;
            bool is_protected = ran_s < after_s;
            if (was_protected == is_protected)
                continue;
            const struct preview_work work = { w, a->r.class_number,
                                               charge_in(w, a->r.class_number),
                                               is_protected ? EFFECT_PROTECTED
                                                            : EFFECT_UNPROTECTED };
            add_work(run, &work);
        }
    }
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void fill_former(const struct preview_run *run, const struct project *project)
{
    struct change_record *change = &run->out->change;
    struct policy_patch to = change->to; /* only read */
    struct policy_cell cell;
    change->former = policy_blank(&to, run->arena);
    for (size_t at = 0; policy_next(&to, &at, &cell);)
        *policy_find(&change->former, &cell) = policy_present(run->state, project, &cell);
}

static void preview_fill(const struct preview_run *run)
{
    struct preview *out = run->out;
    const struct change_record *change = &out->change;
    const struct project *project =
        id_is_none(change->project) ? NULL : state_project(run->state, change->project);
    out->work = arena_new(run->arena, PREVIEW_WORK_MAX, sizeof(*out->work));
    out->levels =
        arena_new(run->arena, change->to.quotas.count * (PATH_MAX_DEPTH + 1), sizeof(*out->levels));
    fill_former(run, project);
    for (size_t i = 0; i < change->to.quotas.count; i++)
        preview_class(run, project, &change->to.quotas.items[i]);
    const struct settings_record *now = &run->state->settings;
    if (change->to.settings.min_runtime_s != UNSET)
        find_protected(run, now->min_runtime_s, change->to.settings.min_runtime_s);
    if (change->to.settings.min_runtime_in_quota_s != UNSET)
        find_protected(run, now->min_runtime_in_quota_s,
                       change->to.settings.min_runtime_in_quota_s);
}

/* The change that the command would make; what it would do to a project is an event beside it. */
static bool find_change(const struct event_list *events, struct id id, struct preview *out)
{
    bool is_found = false;
    for (size_t i = 0; i < events->count; i++) {
        const struct event *event = &events->items[i];
        if (event->type == EV_CHANGE_SET && id_eq(event->change_set.id, id)) {
            out->change = event->change_set;
            is_found = true;
        }
    }
    return is_found;
}

enum err core_preview(const struct state *state, const struct sched *sched,
                      const struct command *command, struct arena *arena, struct preview *out,
                      struct error *e)
{
    struct event_list events = { 0 };
    struct event_list careful_events = { 0 };
    struct command careful = *command;
    enum err rc = decide(state, sched, command, arena, &events, e);
    if (rc != ERR_OK)
        return rc;
    *out = (struct preview){ .change = { .state = CHG_NONE } };
    if (!find_change(&events, command->new_id, out))
        return err_set(e, ERR_INVALID, "there is nothing to change");
    careful.change.is_forced = false;
    out->is_overcommitted = command->change.is_forced &&
                            decide(state, sched, &careful, arena, &careful_events, NULL) != ERR_OK;
    const struct preview_run run = { state, sched, arena, command->now, out };
    preview_fill(&run);
    return ERR_OK;
}
