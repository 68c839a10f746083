/* advice.c - what stands in the way of waiting work, who comes before it, what would let it start
 * now, and by when it starts otherwise. */
#include "sched/internal.h"

enum { SAID_MAX = 16, AHEAD_NAMED_MAX = 5, SHARE_MIN_MILLI = 50 };

struct advising {
    const struct sched *sched;
    const struct swork *work;
    struct mono now;
    struct arena *arena;
    struct advice *out;
};

static void list_add(struct advising *x, struct str_list *list, const char *text)
{
    if (list->items == NULL)
        list->items = arena_new(x->arena, SAID_MAX, sizeof(*list->items));
    if (list->count < SAID_MAX)
        list->items[list->count++] = str_of(text);
}

static const char *name_of(const struct advising *x, int64_t class_number)
{
    return str_c(x->arena, state_class(x->sched->state, class_number)->r.name);
}

/* ---- what stands in the way ---------------------------------------------------------------- */

static void add_blocker(struct advising *x, int64_t class_number)
{
    struct explanation why = { 0 };
    (void)explain_class(x->sched, x->work, class_number, x->arena, &why);
    list_add(x, &x->out->blockers,
             arena_format(x->arena, "%s: %s (%.*s)", name_of(x, class_number),
                          cause_name(why.cause), STR_ARG(why.text)));
}

/* ---- who comes first ----------------------------------------------------------------------- */

static void add_ahead(struct advising *x)
{
    const struct swork *work = x->work;
    char text[ID_TEXT_MAX];
    for (const struct skip_node *g = skip_first(&work->project->groups);
         g != NULL && skip_compare(g->key, user_turn(work)) < 0; g = skip_next(g)) {
        const struct sgroup *group = g->item;
        x->out->ahead_count += (int64_t)skip_rank(&group->queue, user_bound(group, work));
        for (const struct skip_node *n = skip_first(&group->queue);
             n != NULL && skip_compare(user_turn(n->item), user_turn(work)) < 0 &&
             x->out->ahead.count < AHEAD_NAMED_MAX;
             n = skip_next(n)) {
            const struct swork *other = n->item;
            list_add(
                x, &x->out->ahead,
                arena_format(x->arena, "%s", id_text(ID_WORKLOAD, other->workload->r.id, text)));
        }
    }
}

/* Others wait for the same class: whose turn it is depends on shares, quotas and priorities. */
static void add_others(struct advising *x, int64_t class_number)
{
    for (const struct sproject *p = x->sched->first_project; p != NULL; p = p->next) {
        if (p->waits[class_number].groups > 0 &&
            p->project->tenant != x->work->project->project->tenant)
            x->out->others_come_first = true;
    }
}

/* ---- what would let it start --------------------------------------------------------------- */

/* With so many members, this request and in this class. */
static bool would_start(const struct advising *x, const struct request *request, int64_t members,
                        int64_t class_number)
{
    const struct workload_record *r = &x->work->workload->r;
    const struct ask ask = { x->work->project, class_number,
                             members * request_charge(x->sched->state, request, class_number),
                             r->preemptible == PREEMPTIBLE_NEVER };
    struct fitting fitting;
    fitting_init(x->sched, x->work->workload, class_number, &fitting);
    fitting.request = *request;
    fitting.members = (size_t)members;
    return quota_admits(x->sched, &ask, ADMIT_NOW, NULL) == ADMIT_OK &&
           place_fits(x->sched, &fitting);
}

static void try_smaller_gang(struct advising *x, int64_t class_number)
{
    const struct workload_record *r = &x->work->workload->r;
    int64_t low = 0; /* so many start, `high` do not */
    int64_t high = members_least(r);
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        bool starts = would_start(x, &r->request, middle, class_number);
        low = starts ? middle : low;
        high = starts ? high : middle;
    }
    if (low > 0)
        list_add(x, &x->out->changes,
                 arena_format(x->arena, "%lld members instead of %lld", (long long)low,
                              (long long)members_least(r)));
}

static void try_fewer_devices(struct advising *x, int64_t class_number)
{
    const struct workload_record *r = &x->work->workload->r;
    struct request request = r->request;
    if (request_kind(&request) != REQUEST_WHOLE)
        return;
    for (int64_t devices = request_devices(&r->request) - 1; devices > 0; devices--) {
        request.gpu_milli = devices * 1000;
        if (!would_start(x, &request, members_least(r), class_number))
            continue;
        list_add(x, &x->out->changes,
                 arena_format(x->arena, "%lld %s a member instead of %lld", (long long)devices,
                              name_of(x, class_number), (long long)request_devices(&r->request)));
        return;
    }
}

static void try_fraction(struct advising *x, int64_t class_number)
{
    const struct workload_record *r = &x->work->workload->r;
    struct request request = r->request;
    bool is_one = request_kind(&request) == REQUEST_WHOLE && request_devices(&request) == 1;
    bool is_share = request_kind(&request) == REQUEST_SHARE && request.devices == 0;
    if (!is_one && !is_share)
        return;
    for (request.gpu_milli = r->request.gpu_milli - SHARE_MIN_MILLI;
         request.gpu_milli >= SHARE_MIN_MILLI; request.gpu_milli -= SHARE_MIN_MILLI) {
        if (!would_start(x, &request, members_least(r), class_number))
            continue;
        list_add(x, &x->out->changes,
                 arena_format(x->arena, "%s of one %s",
                              milli_text(request.gpu_milli, arena_new(x->arena, MILLI_TEXT_MAX, 1)),
                              name_of(x, class_number)));
        return;
    }
}

static void try_other_classes(struct advising *x)
{
    const struct workload_record *r = &x->work->workload->r;
    bool is_cores = request_kind(&r->request) == REQUEST_CORES;
    for (size_t c = 0; c < x->sched->class_count && r->request.class_count > 0; c++) {
        bool is_named = false;
        for (size_t i = 0; i < r->request.class_count; i++)
            is_named |= r->request.class_numbers[i] == (int64_t)c;
        bool is_of_kind =
            (state_class(x->sched->state, (int64_t)c)->r.kind == CLASS_CPU) == is_cores;
        if (!is_named && is_of_kind && would_start(x, &r->request, members_least(r), (int64_t)c))
            list_add(x, &x->out->changes,
                     arena_format(x->arena, "class %s, which has room", name_of(x, (int64_t)c)));
    }
}

/* More of what refuses it, where there is a place. */
static void try_more_quota(struct advising *x, int64_t class_number)
{
    const struct swork *work = x->work;
    const struct ask ask = { work->project, class_number,
                             swork_charge(x->sched, work, class_number),
                             work->workload->r.preemptible == PREEMPTIBLE_NEVER };
    struct refusal why = { 0 };
    struct fitting fitting;
    fitting_init(x->sched, work->workload, class_number, &fitting);
    enum admission admission = quota_admits(x->sched, &ask, ADMIT_NOW, &why);
    if (admission == ADMIT_OK || !place_fits(x->sched, &fitting))
        return;
    char *needed = arena_new(x->arena, MILLI_TEXT_MAX, 1);
    const char *amount = milli_text(why.used + ask.charge, needed);
    const char *path = str_c(x->arena, why.level->project->r.path);
    if (admission == ADMIT_LIMIT)
        list_add(x, &x->out->changes,
                 arena_format(x->arena, "a limit of %s %s for %s", amount, name_of(x, class_number),
                              path));
    else if (admission == ADMIT_FIXED_QUOTA)
        list_add(x, &x->out->changes,
                 arena_format(x->arena,
                              "a quota of %s %s for %s, or --preemptible always within its limits",
                              amount, name_of(x, class_number), path));
    else
        list_add(x, &x->out->changes,
                 arena_format(x->arena, "more quota of %s for %s", name_of(x, class_number), path));
}

static void try_shorter(struct advising *x, int64_t class_number)
{
    const struct spromise *promise = &x->sched->classes[class_number].promise;
    bool is_kept = x->work->group->verdict == VERDICT_KEPT && promise->work != NULL &&
                   promise->work != x->work && promise->at.ns != INT64_MAX &&
                   mono_before(x->now, promise->at);
    if (is_kept)
        list_add(x, &x->out->changes,
                 arena_format(x->arena, "a time limit of at most %lld s",
                              (long long)((promise->at.ns - x->now.ns) / NS_PER_S)));
}

static void advise_on_class(struct advising *x, int64_t class_number)
{
    add_blocker(x, class_number);
    add_others(x, class_number);
    try_shorter(x, class_number);
    try_more_quota(x, class_number);
    if (members_least(&x->work->workload->r) > 1)
        try_smaller_gang(x, class_number);
    try_fewer_devices(x, class_number);
    try_fraction(x, class_number);
    const struct ask ask = { x->work->project, class_number,
                             swork_charge(x->sched, x->work, class_number),
                             x->work->workload->r.preemptible == PREEMPTIBLE_NEVER };
    if (quota_admits(x->sched, &ask, ADMIT_NOW, NULL) != ADMIT_OK)
        return; /* when its own project lets it is not to be foreseen */
    struct mono by = project_start(x->sched, x->work, class_number, x->now, x->arena);
    if (by.ns != INT64_MAX) /* what comes later may come first, and rooms lie apart */
        by.ns += (by.ns - x->now.ns) / 2;
    x->out->by = mono_before(by, x->out->by) ? by : x->out->by;
}

void sched_advise(const struct sched *sched, const struct workload *workload, struct mono now,
                  struct arena *arena, struct advice *out)
{
    const struct swork *work = swork_of(sched, workload->r.id);
    *out = (struct advice){ .by = { INT64_MAX } };
    if (work == NULL || work->where != WORK_QUEUED)
        return;
    struct advising x = { sched, work, now, arena, out };
    const struct request *request = &workload->r.request;
    size_t count = request_class_count(sched->state, request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, request, i);
        if (class_number >= 0)
            advise_on_class(&x, class_number);
    }
    try_other_classes(&x);
    add_ahead(&x);
    out->turn = user_explain(sched, work, now, arena);
    struct mono promised = sched_promised(sched, workload);
    if (promised.ns != INT64_MAX)
        out->by = promised;
    if (mono_before(out->by, now))
        out->by = now;
}
