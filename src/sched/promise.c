/*
 * promise.c - when the first workload without a place will start, and what may start before it.
 *
 * The future is what is booked now, less what ends until then: running work at the end of its time
 * limit (or of `default_time_limit_s`), counted from its grant so that no start-up delays it; what
 * is being stopped, at the end of its grace, if that is earlier. It is looked at within a step, on
 * the indices themselves, and taken back (shadow_*). The more has ended the more fits, so the first
 * moment at which the work does is found by doubling and halving, not by trying all of them.
 *
 * The first workload of each class that has no place is promised that moment. It keeps the promise
 * until it starts, leaves the queue or is refused by a limit; who comes before it for a reason that
 * turns do not change (order_is_ahead) takes the promise over. Everybody else may start if it has
 * ended by then, or if the first still fits then beside it. So a promise never moves later
 * because of work that started behind it.
 *
 * Where no such moment is known nobody is kept from starting, until the first has waited
 * `starvation_after_s`: what starts from then on has to leave it a place once everything older is
 * gone.
 */
#include <stdlib.h>

#include "sched/internal.h"

enum { TAKEOVERS_MAX = 16 };

static const struct mono never = { INT64_MAX };

/* ---- what ends on its own ------------------------------------------------------------------ */

struct mono promise_end_of(const struct sched *sched, const struct workload *workload,
                           struct mono from)
{
    int64_t limit_s = workload->r.time_limit_s;
    if (limit_s == 0)
        limit_s = sched->state->settings.default_time_limit_s;
    return limit_s == 0 ? never : mono_add_s(from, limit_s);
}

/* When the attempt was granted: the earliest of its members. */
static struct mono granted_at(const struct swork *work)
{
    struct mono at = never;
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        struct mono granted = a->allocation->r.granted;
        if (allocation_is_charged(a->state) && mono_before(granted, at))
            at = granted;
    }
    return at;
}

static struct skip_key end_key(const struct swork *work)
{
    return (struct skip_key){ .major = work->end.ns,
                              .minor = work->workload->r.submitted_sequence };
}

void promise_note_end(struct sched *sched, struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    bool is_on = (r->state == WL_STARTING || r->state == WL_RUNNING) && work->charged > 0;
    if (is_on && work->has_end && !work->has_joined)
        return; /* as long as its members are of one time */
    if (work->has_end) {
        skip_remove(&sched->ends, &sched->pool, end_key(work));
        work->has_end = false;
    }
    if (!is_on) {
        work->has_joined = false;
        return;
    }
    struct mono at = promise_end_of(sched, work->workload, granted_at(work));
    if (at.ns == never.ns)
        return;
    work->end = at;
    skip_insert(&sched->ends, &sched->pool, end_key(work), work);
    work->has_end = true;
}

/* ---- the future, moment by moment ---------------------------------------------------------- */

enum moment_kind {
    MOMENT_ENDS,        /* running work */
    MOMENT_STOPPED,     /* an allocation that is being stopped */
    MOMENT_EVICTED,     /* work that this step evicts */
    MOMENT_STARTED,     /* work that this step starts */
    MOMENT_CLAIMED,     /* work that waits for its victims */
    MOMENT_UNPROTECTED, /* from here on something may be evicted: nothing is freed */
};

struct moment {
    int64_t at_ns;
    enum moment_kind kind;
    struct swork *work;
    const struct sallocation *allocation;
    const struct plan_member *members;
    size_t count; /* of members */
};

struct outlook {
    struct attempt *attempt; /* of who waits */
    VEC(struct moment) extras;
    size_t next_extra;
    const struct skip_node *next_end;
    VEC(struct moment) moments; /* in order, as far as they were looked at */
    size_t applied;
    size_t mark;
};

static void add_extra(struct outlook *outlook, struct moment moment)
{
    if (moment.at_ns != never.ns)
        vec_push(&outlook->extras, moment);
}

static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left;
    const struct moment *b = right;
    return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static void add_stopping(struct outlook *outlook)
{
    const struct attempt *attempt = outlook->attempt;
    for (const struct skip_node *n = skip_first(&attempt->sched->stopping); n != NULL;
         n = skip_next(n)) {
        const struct sallocation *a = n->item;
        const struct allocation_record *r = &a->allocation->r;
        struct mono declared = promise_end_of(attempt->sched, a->allocation->workload, r->granted);
        struct mono at = a->state == AL_STOPPING ? mono_add_s(r->stopping, grace_of(r)) : r->gone;
        at = mono_before(declared, at) ? declared : at;
        add_extra(outlook,
                  (struct moment){ .at_ns = at.ns, .kind = MOMENT_STOPPED, .allocation = a });
    }
}

static bool is_started(const struct plan *plan, const struct swork *work)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->entries[i].action == PLAN_START && plan->entries[i].workload == work->workload)
            return true;
    }
    return false;
}

/* Members that are told to stop, and whose workload goes on. */
static void add_shrinking(struct outlook *outlook, const struct swork *work)
{
    struct mono gone = mono_add_s(outlook->attempt->now, work->workload->r.grace_s);
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        if (a->is_out)
            add_extra(outlook,
                      (struct moment){ .at_ns = gone.ns, .kind = MOMENT_STOPPED, .allocation = a });
    }
}

/* What this step has decided so far. */
static void add_plan(struct outlook *outlook)
{
    const struct attempt *attempt = outlook->attempt;
    struct sched *sched = attempt->sched;
    for (size_t i = 0; i < attempt->plan->count; i++) {
        const struct plan_entry *entry = &attempt->plan->entries[i];
        const struct workload_record *r = &entry->workload->r;
        struct moment moment = { .work = swork_of(sched, r->id),
                                 .members = entry->members,
                                 .count = entry->member_count };
        if (entry->action == PLAN_START) {
            moment.kind = MOMENT_STARTED;
            moment.at_ns = promise_end_of(sched, entry->workload, attempt->now).ns;
        } else if (entry->action == PLAN_GROW) {
            moment.kind = MOMENT_STARTED;
            moment.at_ns = moment.work->has_end ? moment.work->end.ns : never.ns;
        } else if (entry->action == PLAN_SHRINK) {
            add_shrinking(outlook, moment.work);
            continue;
        } else if (entry->action == PLAN_EVICT) {
            moment.kind = MOMENT_EVICTED;
            moment.at_ns = mono_add_s(attempt->now, r->grace_s).ns;
        } else {
            continue;
        }
        add_extra(outlook, moment);
    }
}

static void add_claim(struct outlook *outlook, struct swork *work,
                      const struct plan_member *members)
{
    const struct attempt *attempt = outlook->attempt;
    if (!work->is_booked || members == NULL || is_started(attempt->plan, work))
        return;
    add_extra(outlook, (struct moment){
                           .at_ns = promise_end_of(attempt->sched, work->workload, attempt->now).ns,
                           .kind = MOMENT_CLAIMED,
                           .work = work,
                           .members = members,
                           .count = (size_t)members_least(&work->workload->r) });
}

static void add_claims(struct outlook *outlook)
{
    const struct attempt *attempt = outlook->attempt;
    for (const struct skip_node *n = skip_first(&attempt->sched->claimants); n != NULL;
         n = skip_next(n)) {
        struct swork *work = n->item;
        const struct held_claim *held = *attempt->claims;
        while (held != NULL && held->work != work)
            held = held->next;
        add_claim(outlook, work, held != NULL ? held->members : work->claim);
    }
    for (const struct held_claim *held = *attempt->claims; held != NULL; held = held->next) {
        if (!held->work->is_claimant)
            add_claim(outlook, held->work, held->members);
    }
}

static void add_protection(struct outlook *outlook, const struct swork *work, int64_t protect_s)
{
    struct mono until = mono_add_s(work_began(work), protect_s);
    if (mono_before(outlook->attempt->now, until))
        add_extra(outlook, (struct moment){ .at_ns = until.ns, .kind = MOMENT_UNPROTECTED });
}

static void add_protections_of(struct outlook *outlook, const struct sproject *project,
                               int64_t protect_s)
{
    const struct skip_list *active = &project->active[outlook->attempt->ask.class_number];
    for (const struct skip_node *n = skip_first(active); n != NULL; n = skip_next(n))
        add_protection(outlook, n->item, protect_s);
}

/* Who may evict has to be looked at again when what runs loses its protection: in its own project,
 * and where work is borrowed now, since what ends until then makes nobody a borrower. */
static void add_protections(struct outlook *outlook, int64_t protect_s)
{
    const struct attempt *attempt = outlook->attempt;
    if (protect_s == 0)
        return;
    add_protections_of(outlook, attempt->ask.project, protect_s);
    for (struct sproject *p =
             reclaim_next_borrower(attempt, &attempt->sched->root, attempt->ask.class_number);
         p != NULL; p = reclaim_next_borrower(attempt, p, attempt->ask.class_number))
        add_protections_of(outlook, p, protect_s);
}

static bool may_evict(struct attempt *attempt)
{
    attempt->way = EVICT_BORROWED;
    if (reclaim_is_entitled(attempt))
        return true;
    attempt->way = EVICT_LESS_URGENT;
    return reclaim_may_help(attempt);
}

static void outlook_init(struct outlook *outlook, struct attempt *attempt)
{
    const struct settings_record *settings = &attempt->sched->state->settings;
    *outlook = (struct outlook){ .attempt = attempt,
                                 .next_end = skip_first(&attempt->sched->ends),
                                 .mark = shadow_mark(attempt->sched) };
    add_stopping(outlook);
    add_plan(outlook);
    add_claims(outlook);
    if (may_evict(attempt)) {
        add_protections(outlook, settings->min_runtime_s);
        add_protections(outlook, settings->min_runtime_in_quota_s);
    }
    if (outlook->extras.count > 0)
        qsort(outlook->extras.items, outlook->extras.count, sizeof(*outlook->extras.items),
              compare_moments);
}

static void outlook_done(struct outlook *outlook)
{
    shadow_rollback(outlook->attempt->sched, outlook->mark);
    vec_done(&outlook->extras);
    vec_done(&outlook->moments);
}

/* Finds one more moment; false: nothing ends any more. */
static bool outlook_extend(struct outlook *outlook)
{
    const struct skip_node *end = outlook->next_end;
    const struct moment *extra = outlook->next_extra < outlook->extras.count
                                     ? &outlook->extras.items[outlook->next_extra]
                                     : NULL;
    if (end == NULL && extra == NULL)
        return false;
    if (end == NULL || (extra != NULL && extra->at_ns <= end->key.major)) {
        vec_push(&outlook->moments, *extra);
        outlook->next_extra++;
        return true;
    }
    const struct moment ends = { .at_ns = end->key.major, .kind = MOMENT_ENDS, .work = end->item };
    vec_push(&outlook->moments, ends);
    outlook->next_end = skip_next(end);
    return true;
}

/* ---- what a moment frees ------------------------------------------------------------------- */

static void unbook_allocation(struct sched *sched, const struct sallocation *a)
{
    const struct booking booking = { a->node, &a->shares, a->cpu_milli, a->memory_mib,
                                     a->project->project->tenant };
    capacity_unbook(sched, &booking);
    if (a->is_fixed && allocation_is_charged(a->state))
        use_add(sched, a->project, a->class_number, USE_FIXED, -a->charge_milli);
}

/* What is leaving already gives back only its place. */
static void end_work(struct sched *sched, struct swork *work, bool was_leaving)
{
    if (work->is_leaving != was_leaving)
        return;
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        if (!allocation_stays(a))
            continue; /* gone by itself, and counted as such */
        unbook_allocation(sched, a);
        if (!was_leaving)
            use_add(sched, a->project, a->class_number, USE_LEAVING, a->charge_milli);
    }
    touch(sched, work, sizeof(*work));
    work->is_leaving = true;
}

enum way { COMES, GOES };

/* Where some of its members are, or will be. */
struct places {
    const struct plan_member *members;
    size_t count;
};

static void move_members(struct sched *sched, const struct swork *work, struct places places,
                         enum use_kind kind, enum way way)
{
    int64_t sign = way == COMES ? 1 : -1;
    bool is_fixed = work->workload->r.preemptible == PREEMPTIBLE_NEVER;
    for (size_t i = 0; i < places.count; i++) {
        const struct plan_member *member = &places.members[i];
        const struct booking booking = { snode_of(sched, member->node), &member->shares,
                                         member->cpu_milli, member->memory_mib,
                                         work->project->project->tenant };
        if (way == COMES)
            capacity_book(sched, &booking);
        else
            capacity_unbook(sched, &booking);
        use_add(sched, work->project, member->class_number, kind, sign * member->charge_milli);
        if (is_fixed)
            use_add(sched, work->project, member->class_number, USE_FIXED,
                    sign * member->charge_milli);
    }
}

static void apply(struct sched *sched, const struct moment *moment)
{
    const struct places places = { moment->members, moment->count };
    switch (moment->kind) {
    case MOMENT_ENDS:
        end_work(sched, moment->work, false);
        break;
    case MOMENT_STOPPED:
        unbook_allocation(sched, moment->allocation);
        break;
    case MOMENT_EVICTED:
        end_work(sched, moment->work, true);
        break;
    case MOMENT_STARTED:
        move_members(sched, moment->work, places, USE_CHARGED, GOES);
        break;
    case MOMENT_CLAIMED:
        move_members(sched, moment->work, places, USE_CLAIMED, GOES);
        break;
    case MOMENT_UNPROTECTED:
        break;
    }
}

/* Goes to where exactly `count` moments are over. */
static void outlook_go(struct outlook *outlook, size_t count)
{
    struct sched *sched = outlook->attempt->sched;
    if (count < outlook->applied) {
        shadow_rollback(sched, outlook->mark);
        outlook->applied = 0;
    }
    while (outlook->applied < count)
        apply(sched, &outlook->moments.items[outlook->applied++]);
}

/* Goes to that time. */
static void outlook_go_to(struct outlook *outlook, struct mono at)
{
    size_t count = 0;
    while (count < outlook->moments.count || outlook_extend(outlook)) {
        if (outlook->moments.items[count].at_ns > at.ns)
            break;
        count++;
    }
    outlook_go(outlook, count);
}

/* Of the last of so many moments; before now where work is late. */
static struct mono time_of(const struct outlook *outlook, size_t count)
{
    return (struct mono){ outlook->moments.items[count - 1].at_ns };
}

/* On what is free then, or by evictions. */
static bool fits_then(struct attempt *attempt, struct mono at)
{
    struct mono now = attempt->now;
    if (reclaim_would_fit(attempt))
        return true;
    attempt->now = mono_before(at, now) ? now : at;
    bool could = reclaim_could(attempt);
    attempt_note_progress(attempt);
    attempt->now = now;
    return could;
}

static bool fits_after(struct outlook *outlook, size_t count)
{
    outlook_go(outlook, count);
    return fits_then(outlook->attempt, time_of(outlook, count));
}

/* The earliest moment, found by doubling and halving; it does not fit before the first. */
static struct mono outlook_find(struct outlook *outlook)
{
    size_t low = 0;
    size_t high = 1;
    for (;;) {
        while (outlook->moments.count < high && outlook_extend(outlook))
            ;
        high = MIN_OF(high, outlook->moments.count);
        if (high == low)
            return never;
        if (fits_after(outlook, high))
            break;
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (fits_after(outlook, middle))
            high = middle;
        else
            low = middle;
    }
    outlook_go(outlook, high);
    return time_of(outlook, high);
}

/* ---- who has waited too long --------------------------------------------------------------- */

static struct mono starves_from(const struct sched *sched, const struct swork *work)
{
    return mono_add_s(work->workload->r.state_since, sched->state->settings.starvation_after_s);
}

/* Goes to where all is gone that was granted before that. */
static void outlook_go_beyond(struct outlook *outlook, struct mono from)
{
    struct sched *sched = outlook->attempt->sched;
    for (const struct skip_node *n = skip_first(&sched->stopping); n != NULL; n = skip_next(n))
        unbook_allocation(sched, n->item);
    for (const struct snode *node = sched->first_node; node != NULL; node = node->next) {
        for (const struct sallocation *a = node->allocations; a != NULL; a = a->next_on_node) {
            if (a->is_out)
                unbook_allocation(sched, a);
            else if (allocation_stays(a) && mono_before(a->allocation->r.granted, from))
                end_work(sched, a->work, false);
        }
    }
}

/* Goes to when the promise is to hold. */
static void outlook_go_to_promise(struct outlook *outlook, const struct spromise *promise)
{
    struct sched *sched = outlook->attempt->sched;
    if (promise->is_starving)
        outlook_go_beyond(outlook, starves_from(sched, promise->work));
    else
        outlook_go_to(outlook, promise->at);
}

/* ---- promises ------------------------------------------------------------------------------ */

static struct attempt attempt_for(const struct attempt *like, struct swork *work,
                                  int64_t class_number)
{
    struct attempt attempt = { .sched = like->sched,
                               .now = like->now,
                               .arena = like->arena,
                               .plan = like->plan,
                               .claims = like->claims };
    attempt_init(&attempt, work, class_number);
    return attempt;
}

static void compute(struct attempt *attempt, struct spromise *promise)
{
    const struct sched *sched = attempt->sched;
    struct outlook outlook;
    outlook_init(&outlook, attempt);
    promise->at = outlook_find(&outlook);
    bool is_known = promise->at.ns != never.ns;
    promise->is_starving =
        !is_known && !mono_before(attempt->now, starves_from(sched, promise->work));
    if (promise->is_starving) {
        shadow_rollback(attempt->sched, outlook.mark);
        outlook_go_to_promise(&outlook, promise);
    }
    promise->spare_milli = UNBOUNDED;
    if ((is_known || promise->is_starving) && reclaim_would_fit(attempt))
        promise->spare_milli =
            sched->classes[attempt->ask.class_number].free_milli - attempt->ask.charge;
    promise->as_of = attempt->now;
    promise->is_fresh = true;
    outlook_done(&outlook);
}

/* What it kept free, others may be able to use. */
static void end_promise(struct sched *sched, struct sclass *class)
{
    class->promise = (struct spromise){ 0 };
    class->gained = ++sched->clock;
    sched->is_promise_moved = true;
}

void promise_drop(struct sched *sched, const struct swork *work)
{
    for (size_t c = 0; c < sched->class_count; c++) {
        if (sched->classes[c].promise.work == work)
            end_promise(sched, &sched->classes[c]);
    }
}

/* Computes it anew where something has changed. Who is refused by limits or quota by now has it
 * no longer. */
static void refresh(const struct attempt *like, int64_t class_number)
{
    struct sched *sched = like->sched;
    struct sclass *class = &sched->classes[class_number];
    struct spromise *promise = &class->promise;
    bool starves_now = promise->at.ns == never.ns && !promise->is_starving &&
                       !mono_before(like->now, starves_from(sched, promise->work));
    bool is_late = mono_before(promise->at, like->now) && mono_before(promise->as_of, like->now);
    if (promise->is_fresh && !starves_now && !is_late)
        return;
    struct attempt attempt = attempt_for(like, promise->work, class_number);
    if (quota_admits(sched, &attempt.ask, ADMIT_NOW, NULL) != ADMIT_OK) {
        end_promise(sched, class);
        return;
    }
    const struct spromise before = *promise;
    compute(&attempt, promise);
    if (!mono_before(before.at, promise->at) && before.is_starving <= promise->is_starving)
        return;
    class->gained = ++sched->clock; /* what would have delayed it may not do so now */
    sched->is_promise_moved = true;
}

void promise_refresh_all(struct attempt *attempt)
{
    for (size_t c = 0; c < attempt->sched->class_count; c++) {
        const struct swork *work = attempt->sched->classes[c].promise.work;
        if (work != NULL && !work->is_booked)
            refresh(attempt, (int64_t)c);
    }
}

void promise_spoil(struct sched *sched)
{
    for (size_t c = 0; c < sched->class_count; c++)
        sched->classes[c].promise.is_fresh = false;
}

static bool is_promised(const struct sched *sched, const struct swork *work)
{
    for (size_t c = 0; c < sched->class_count; c++) {
        if (sched->classes[c].promise.work == work)
            return true;
    }
    return false;
}

/* Turns can go round in circles, so that has a bound. */
void promise_spoil_on(struct sched *sched, const struct snode *node)
{
    sched->classes[node->cpu_class].promise.is_fresh = false;
    for (size_t i = 0; i < node->part_count; i++)
        sched->classes[node->parts[i].class_number].promise.is_fresh = false;
}

bool promise_may_take_over(const struct sched *sched, const struct swork *work,
                           int64_t class_number)
{
    const struct spromise *promise = &sched->classes[class_number].promise;
    if (promise->work == NULL || promise->work->is_booked)
        return true;
    return sched->takeovers < TAKEOVERS_MAX &&
           order_is_ahead(sched, work, promise->work, class_number);
}

/* Of the classes where nobody before it is promised anything, the one where it fits first. */
void promise_give(struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    struct swork *work = attempt->work;
    const struct request *request = &work->workload->r.request;
    struct spromise best = { 0 };
    struct sclass *where = NULL;
    size_t count = request_class_count(sched->state, request);
    if (is_promised(sched, work))
        return;
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, request, i);
        if (class_number < 0)
            continue;
        struct sclass *class = &sched->classes[class_number];
        struct attempt one = attempt_for(attempt, work, class_number);
        if (!promise_may_take_over(sched, work, class_number) ||
            quota_admits(sched, &one.ask, ADMIT_NOW, NULL) != ADMIT_OK)
            continue;
        struct spromise promise = { .work = work };
        compute(&one, &promise);
        if (where != NULL && !mono_before(promise.at, best.at))
            continue;
        best = promise;
        where = class;
    }
    if (where == NULL)
        return;
    if (where->promise.work != NULL) {
        sched->takeovers++;
        end_promise(sched, where);
    }
    where->promise = best;
}

/* ---- what may start before it -------------------------------------------------------------- */

static bool is_of_class(struct snode *node, int64_t class_number)
{
    return node->cpu_class == class_number || snode_part(node, class_number) != NULL;
}

static bool is_in_its_way(const struct attempt *attempt, const struct plan_member *members,
                          int64_t class_number)
{
    for (size_t i = 0; i < attempt->fitting.members; i++) {
        if (is_of_class(snode_of(attempt->sched, members[i].node), class_number))
            return true;
    }
    return false;
}

/* Members that join what runs are in no queue: they wait for everybody. */
static bool is_ahead(const struct attempt *attempt, const struct swork *of, int64_t class_number)
{
    return attempt->work->group != NULL &&
           order_is_ahead(attempt->sched, attempt->work, of, class_number);
}

/* Whether that promise says anything about this start. */
static bool binds(const struct attempt *attempt, const struct plan_member *members,
                  int64_t class_number)
{
    struct sched *sched = attempt->sched;
    const struct spromise *promise = &sched->classes[class_number].promise;
    if (promise->work == NULL || promise->work == attempt->work || promise->work->is_booked ||
        !is_in_its_way(attempt, members, class_number) ||
        is_ahead(attempt, promise->work, class_number))
        return false;
    refresh(attempt, class_number);
    if (promise->work == NULL)
        return false;
    if (promise->at.ns == never.ns)
        return promise->is_starving;
    struct mono end = promise_end_of(sched, attempt->work->workload, attempt->now);
    return mono_before(promise->at, end);
}

static bool is_kept(const struct attempt *attempt, const struct plan_member *members,
                    int64_t class_number)
{
    struct sched *sched = attempt->sched;
    const struct spromise *promise = &sched->classes[class_number].promise;
    if (attempt->ask.class_number == class_number && promise->spare_milli != UNBOUNDED &&
        attempt->ask.charge > promise->spare_milli)
        return false;
    size_t mark = shadow_mark(sched);
    struct attempt first = attempt_for(attempt, promise->work, class_number);
    struct outlook outlook;
    outlook_init(&outlook, &first);
    const struct places places = { members, attempt->fitting.members };
    move_members(sched, attempt->work, places, USE_CHARGED, COMES);
    outlook_go_to_promise(&outlook, promise);
    bool fits = fits_then(&first, promise->is_starving ? first.now : promise->at);
    outlook_done(&outlook);
    shadow_rollback(sched, mark);
    return fits;
}

/* The class whose promise would be broken; -1: none. */
static int64_t broken_promise(const struct attempt *attempt, const struct plan_member *members)
{
    for (size_t c = 0; c < attempt->sched->class_count; c++) {
        int64_t class_number = (int64_t)c;
        if (binds(attempt, members, class_number) && !is_kept(attempt, members, class_number))
            return class_number;
    }
    return -1;
}

bool promise_allows(struct attempt *attempt, const struct plan_member *members)
{
    return broken_promise(attempt, members) < 0;
}

/* Where the promised work would run, as far as that needs no evictions; else NULL. */
static struct plan_member *place_promised(const struct attempt *attempt, int64_t class_number)
{
    const struct spromise *promise = &attempt->sched->classes[class_number].promise;
    struct attempt first = attempt_for(attempt, promise->work, class_number);
    struct outlook outlook;
    outlook_init(&outlook, &first);
    outlook_go_to_promise(&outlook, promise);
    struct plan_member *members = place_all(first.sched, &first.fitting, first.arena);
    outlook_done(&outlook);
    return members;
}

struct plan_member *promise_place(struct attempt *attempt, bool *is_room)
{
    struct sched *sched = attempt->sched;
    struct plan_member *members = place_all(sched, &attempt->fitting, attempt->arena);
    *is_room = members != NULL;
    int64_t broken = members != NULL ? broken_promise(attempt, members) : -1;
    if (broken < 0)
        return members;
    const struct spromise *promise = &sched->classes[broken].promise;
    if (attempt->ask.class_number == broken && promise->spare_milli != UNBOUNDED &&
        attempt->ask.charge > promise->spare_milli)
        return NULL;
    const struct plan_member *kept = place_promised(attempt, broken);
    if (kept == NULL)
        return NULL;
    size_t mark = shadow_mark(sched);
    const struct places places = { kept, (size_t)members_least(&promise->work->workload->r) };
    move_members(sched, promise->work, places, USE_CLAIMED, COMES);
    members = place_all(sched, &attempt->fitting, attempt->arena);
    shadow_rollback(sched, mark);
    return members != NULL && promise_allows(attempt, members) ? members : NULL;
}

/* ---- asking -------------------------------------------------------------------------------- */

struct mono sched_promised(const struct sched *sched, const struct workload *workload)
{
    const struct swork *work = swork_of(sched, workload->r.id);
    struct mono at = never;
    for (size_t c = 0; c < sched->class_count && work != NULL; c++) {
        const struct spromise *promise = &sched->classes[c].promise;
        if (promise->work == work && mono_before(promise->at, at))
            at = promise->at;
    }
    return at;
}

/* What a step left of claims is remembered and not derived; and while something is being stopped,
 * its end is the first moment, whatever it frees. Which devices windows take is found in steps
 * only. Then there is nothing to compare. */
bool promise_check(const struct sched *kept, struct sched *built, struct error *e)
{
    struct plan plan = { 0 };
    struct held_claim *claims = NULL;
    AUTO(arena) struct arena arena = { 0 };
    bool is_same = true;
    for (size_t c = 0; c < kept->class_count; c++)
        built->classes[c].fair_at = kept->classes[c].fair_at;
    fair_refresh(built);
    bool is_settled =
        kept->claimants.count == 0 && kept->stopping.count == 0 && kept->picks.count == 0;
    for (size_t c = 0; c < kept->class_count && is_settled && is_same; c++) {
        const struct spromise *promise = &kept->classes[c].promise;
        if (promise->work == NULL || !promise->is_fresh || promise->is_starving ||
            mono_before(promise->at, kept->now) || !kept->classes[c].is_fair)
            continue;
        struct swork *work = swork_of(built, promise->work->workload->r.id);
        const struct attempt like = {
            .sched = built, .now = kept->now, .arena = &arena, .plan = &plan, .claims = &claims
        };
        struct attempt attempt = attempt_for(&like, work, (int64_t)c);
        struct spromise anew = { .work = work };
        shadow_begin(built);
        compute(&attempt, &anew);
        shadow_end(built);
        is_same = anew.at.ns == promise->at.ns;
        if (!is_same)
            (void)err_set(e, ERR_CORRUPT, "a start is promised at %lld, but the facts say %lld",
                          (long long)promise->at.ns, (long long)anew.at.ns);
    }
    return is_same;
}
