/*
 * step.c - one pass over the queue, in slices.
 *
 * First the claims: room that evictions free belongs to whom they were made for. Then the projects'
 * groups, one workload at a time, always that of the project whose turn it is. Who is next is
 * decided level by level in the quota tree: every project offers the first of its queue, every
 * parent the best offer of its children.
 *
 * A group that was found blocked is not looked at again until something it could use was freed. The
 * first workload of a class that is blocked for want of a place is promised a start; what comes
 * after it starts only where that promise still holds (promise.c), so that small work cannot starve
 * large work.
 */
#include <assert.h>
#include <string.h>

#include "base/wide.h"
#include "sched/internal.h"

struct pass {
    struct sched *sched;
    struct mono now;
    struct arena *arena;
    struct plan *plan;
    size_t budget;
    struct held_claim *claims;  /* found in this step, newest first */
    struct held_claim *moves;   /* likewise: where moved work goes on */
    struct held_claim *waiting; /* claimants that only wait for use of their own to end */
};

/* ---- what there is to look at -------------------------------------------------------------- */

static bool is_due(const struct pass *pass, struct mono at)
{
    return at.ns != 0 && !mono_before(pass->now, at);
}

static bool needs_sweep(const struct pass *pass, const struct sproject *project)
{
    const struct sched *sched = pass->sched;
    if (project->groups.count == 0)
        return false;
    if (project->touched > project->swept || sched->all_gained > project->swept ||
        is_due(pass, project->rouse.retry_at) ||
        (project->rouse.is_unsettled && sched->settled > project->swept))
        return true;
    for (size_t c = 0; c < sched->class_count; c++) {
        const struct sclass *class = &sched->classes[c];
        if (project->waits[c].groups > 0 &&
            (class->gained > project->swept || class->evictable > project->swept))
            return true;
    }
    return false;
}

/* Blocked when last looked at, and nothing that matters to it has changed since. */
static bool is_clean(const struct pass *pass, const struct sgroup *group)
{
    const struct sched *sched = pass->sched;
    if (group->checked == 0 || sched->all_gained > group->checked)
        return false;
    if (is_due(pass, group->retry_at) || (group->is_unsettled && sched->settled > group->checked))
        return false;
    size_t count = request_class_count(sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, &group->request, i);
        if (class_number < 0)
            continue;
        const struct sclass *class = &sched->classes[class_number];
        if (class->gained > group->checked ||
            (group->wants_victims && class->evictable > group->checked))
            return false;
    }
    return true;
}

/* ---- the next of one project --------------------------------------------------------------- */

static struct attempt attempt_of(struct pass *pass)
{
    return (struct attempt){ .sched = pass->sched,
                             .now = pass->now,
                             .arena = pass->arena,
                             .plan = pass->plan,
                             .claims = &pass->claims,
                             .moves = &pass->moves };
}

static void skip_booked(struct sgroup *group)
{
    while (group->cursor != NULL && ((struct swork *)group->cursor->item)->is_booked)
        group->cursor = skip_next(group->cursor);
}

/* The turn of a group's next workload. */
static struct skip_key turn_of(const struct sgroup *group)
{
    return user_turn(group->cursor->item);
}

/* Keeps a group whose turn comes again in this pass, in the order of its next workload. */
static void advance_later(struct sgroup *group)
{
    skip_booked(group);
    if (group->cursor == NULL)
        return;
    struct sgroup **at = &group->project->advanced;
    while (*at != NULL && skip_compare(turn_of(*at), turn_of(group)) < 0)
        at = &(*at)->next_advanced;
    group->next_advanced = *at;
    *at = group;
}

/* Whether its most urgent work could evict anybody if it asked for the least: if not, none of its
 * work can. Judged once while nobody's use changes. */
static bool may_evict_any(struct sched *sched, struct sproject *project, int64_t class_number)
{
    struct swait *wait = &project->waits[class_number];
    if (wait->judged == sched->moves)
        return wait->may_evict;
    const struct sgroup *first = skip_first(&project->groups)->item;
    wait->judged = sched->moves;
    wait->may_evict = reclaim_is_thinkable((struct attempt){
        .sched = sched,
        .work = skip_first(&first->queue)->item,
        .ask = {
            .project = project, .class_number = class_number, .charge = wait->least_charge } });
    return wait->may_evict;
}

/* Too little is free, there is nothing that it may evict, and no promise that it could get: then
 * what was freed is of no use to it. Nearly all that waits is like that, mostly. */
static bool is_hopeless(const struct pass *pass, const struct sgroup *group)
{
    struct sched *sched = pass->sched;
    bool was_blocked = group->checked > sched->all_gained && group->verdict == VERDICT_PLACE;
    if (!was_blocked || is_due(pass, group->retry_at))
        return false;
    size_t count = request_class_count(sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, &group->request, i);
        if (class_number < 0)
            continue;
        const struct attempt attempt = { .sched = sched,
                                         .work = skip_first(&group->queue)->item,
                                         .ask = order_ask(sched, group, class_number) };
        if (!place_lacks_room(sched, &group->request, class_number, (size_t)group->members) ||
            (group->holds && promise_may_take_over(sched, attempt.work, class_number)) ||
            (may_evict_any(sched, group->project, class_number) && reclaim_is_thinkable(attempt)))
            return false;
    }
    return true;
}

static void enter_pass(const struct pass *pass, struct sgroup *group)
{
    group->pass = pass->sched->pass;
    group->cursor = skip_first(&group->queue);
}

/* In every class that it may use, no more than that was refused before in this pass, where use only
 * grows. Remembered like any group that was looked at. */
static bool is_refused_everywhere(const struct sched *sched, struct sgroup *group)
{
    size_t count = request_class_count(sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, &group->request, i);
        if (class_number < 0)
            continue;
        const struct ask ask = order_ask(sched, group, class_number);
        const struct swait *wait = &group->project->waits[class_number];
        if (wait->refused_in != sched->pass || ask.charge < wait->refused)
            return false;
    }
    group->verdict = VERDICT_QUOTA;
    group->checked = sched->clock;
    group->wants_victims = false;
    group->is_unsettled = false;
    group->retry_at = (struct mono){ 0 };
    return true;
}

/* What comes later in its project does so in the order of the cluster as well. */
static void note_blocked(struct sched *sched, struct sgroup *group)
{
    bool is_blocked =
        group->verdict == VERDICT_KEPT || (group->verdict == VERDICT_PLACE && group->holds);
    size_t count = is_blocked ? request_class_count(sched->state, &group->request) : 0;
    if (is_blocked && group->project->front == NULL)
        group->project->front = group;
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, &group->request, i);
        if (class_number >= 0)
            order_note_blocked(sched, group->project, class_number);
    }
}

/* What the walk does with the group it stands at. */
enum offer { OFFER_IT, OFFER_LATER, OFFER_NOT };

static struct mono earlier_of(struct mono a, struct mono b)
{
    return a.ns == 0 || (b.ns != 0 && mono_before(b, a)) ? b : a;
}

/* What is not looked at now may have to be by itself. */
static void keep_rouse(struct sgroup *group)
{
    struct rouse *rouse = &group->project->next_rouse;
    rouse->retry_at = earlier_of(rouse->retry_at, group->retry_at);
    rouse->is_unsettled = rouse->is_unsettled || group->is_unsettled;
}

static enum offer offer_of(struct pass *pass, struct sgroup *group)
{
    if (((struct swork *)group->cursor->item)->is_booked)
        return OFFER_LATER;
    if (is_clean(pass, group) || is_hopeless(pass, group)) {
        note_blocked(pass->sched, group);
        keep_rouse(group);
        return OFFER_NOT;
    }
    return is_refused_everywhere(pass->sched, group) ? OFFER_NOT : OFFER_IT;
}

/* Too little is free of any class that its work may use, it may evict nobody, and earlier work of
 * its own was blocked in this pass, so that no promise is to be had either: then none of it has to
 * be looked at. Without this an exit would cost as much as there are different requests. */
static bool is_spent(const struct pass *pass, struct sproject *project)
{
    struct sched *sched = pass->sched;
    if (project->groups.count == 0 || sched->first_reservation != NULL)
        return false;
    for (size_t c = 0; c < sched->class_count; c++) {
        const struct swait *wait = &project->waits[c];
        if (wait->groups > 0 &&
            (wait->blocked != sched->pass || sched->classes[c].free_milli >= wait->least_charge ||
             state_class(sched->state, (int64_t)c)->r.kind != CLASS_GPU ||
             may_evict_any(sched, project, (int64_t)c)))
            return false;
    }
    return true;
}

/* Finds the next group of the project's own queue that has to be looked at. */
static void refresh_own(struct pass *pass, struct sproject *project)
{
    project->own = project->advanced;
    if (project->walk != NULL && is_spent(pass, project))
        project->walk = NULL;
    while (project->walk != NULL) {
        struct sgroup *group = project->walk->item;
        if (project->own != NULL && skip_compare(turn_of(project->own), project->walk->key) < 0)
            return;
        if (group->pass != pass->sched->pass)
            enter_pass(pass, group);
        enum offer offer = offer_of(pass, group);
        if (offer == OFFER_IT) {
            project->own = group;
            return;
        }
        project->walk = skip_next(project->walk);
        if (offer == OFFER_LATER)
            advance_later(group);
        project->own = project->advanced;
    }
}

/* Takes the group that was offered out of the offer. */
static void take_own(struct sproject *project)
{
    struct sgroup *group = project->own;
    if (project->advanced == group)
        project->advanced = group->next_advanced;
    else
        project->walk = skip_next(project->walk);
}

/* Limits, quota or what is never lent refuse even the least that it asks for, and it may evict
 * nobody: then all of its work is refused. */
static bool is_refused(struct sched *sched, struct sproject *project)
{
    for (size_t c = 0; c < sched->class_count; c++) {
        const struct swait *wait = &project->waits[c];
        const struct ask least = { .project = project,
                                   .class_number = (int64_t)c,
                                   .charge = wait->least_charge };
        if (wait->groups > 0 && (quota_admits(sched, &least, ADMIT_NOW, NULL) == ADMIT_OK ||
                                 may_evict_any(sched, project, (int64_t)c)))
            return false;
    }
    return true;
}

/* Nothing of it has changed since all of it was looked at, and what was freed is of no use to
 * anything of it, told by its least; or not even to the first that had no place then. */
static bool is_as_before(const struct pass *pass, struct sproject *project)
{
    struct sched *sched = pass->sched;
    if (project->touched > project->swept || sched->all_gained > project->swept ||
        is_due(pass, project->rouse.retry_at) ||
        (project->rouse.is_unsettled && sched->settled > project->swept))
        return false;
    if (project->front == NULL)
        return is_refused(sched, project);
    if (!is_hopeless(pass, project->front))
        return false;
    note_blocked(sched, project->front);
    return is_spent(pass, project);
}

/* ---- whose turn it is ---------------------------------------------------------------------- */

static void refresh_candidate(const struct sched *sched, struct sproject *project)
{
    struct sgroup *best = project->own;
    struct rank own_rank = { 0 };
    const struct rank *best_rank = &own_rank;
    if (best != NULL && project->first_child != NULL)
        own_rank = order_rank(sched, project, best, OWN_QUEUE);
    for (struct sproject *child = project->first_child; child != NULL;
         child = child->next_sibling) {
        if (child->candidate == NULL || (best != NULL && !order_before(&child->rank, best_rank)))
            continue;
        best = child->candidate;
        best_rank = &child->rank;
    }
    project->candidate = best;
    if (best != NULL && project->parent != NULL)
        project->rank = order_rank(sched, project, best, SUBTREE);
}

static void refresh_path(struct pass *pass, struct sproject *project)
{
    refresh_own(pass, project);
    for (struct sproject *p = project; p != NULL; p = p->parent)
        refresh_candidate(pass->sched, p);
}

static void begin_pass(struct pass *pass)
{
    struct sched *sched = pass->sched;
    sched->pass++;
    sched->visited.count = 0;
    for (struct sproject *p = sched->first_project; p != NULL; p = p->next) {
        p->own = NULL;
        p->candidate = NULL;
        if (!needs_sweep(pass, p))
            continue;
        vec_push(&sched->visited, p);
        p->advanced = NULL;
        p->walk = NULL;
        p->next_rouse = p->rouse;
        if (user_rank(sched, p, pass->now, pass->arena))
            p->touched = ++sched->clock;
        if (is_as_before(pass, p))
            continue;
        p->next_rouse = (struct rouse){ 0 };
        p->front = NULL;
        p->walk = skip_first(&p->groups);
        refresh_own(pass, p);
    }
    sched->root.own = NULL;
    sched->root.candidate = NULL;
    if (sched->visited.count == 0)
        return;
    for (struct sproject *p = sched->last_project; p != NULL; p = p->prev)
        refresh_candidate(sched, p);
    refresh_candidate(sched, &sched->root);
}

/* ---- one workload -------------------------------------------------------------------------- */

static void remember_refusal(const struct attempt *attempt, enum admission admission)
{
    struct swait *wait = &attempt->work->project->waits[attempt->ask.class_number];
    struct attempt preempting = *attempt;
    preempting.way = EVICT_LESS_URGENT;
    if (admission != ADMIT_FIXED_QUOTA && !reclaim_is_entitled(attempt) &&
        !reclaim_may_help(&preempting)) {
        bool is_first = wait->refused_in != attempt->sched->pass;
        wait->refused = is_first ? attempt->ask.charge : MIN_OF(wait->refused, attempt->ask.charge);
        wait->refused_in = attempt->sched->pass;
    }
}

/* On what is free, in the first class that admits it and has room. */
static enum verdict try_start(struct pass *pass, struct sgroup *group, struct swork *work)
{
    const struct request *request = &work->workload->r.request;
    enum verdict verdict = VERDICT_NONE;
    size_t count = request_class_count(pass->sched->state, request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(pass->sched->state, request, i);
        if (class_number < 0)
            continue;
        struct attempt attempt = attempt_of(pass);
        attempt_init(&attempt, work, class_number);
        enum admission admission = quota_admits(pass->sched, &attempt.ask, ADMIT_NOW, NULL);
        if (admission != ADMIT_OK) {
            verdict = MAX_OF(verdict, VERDICT_QUOTA);
            remember_refusal(&attempt, admission);
            continue;
        }
        bool is_room = false;
        struct plan_member *members = gang_place(&attempt, &is_room);
        if (members != NULL) {
            attempt_start_at(&attempt, members);
            return VERDICT_STARTED;
        }
        group->is_kept = group->is_kept || is_room;
        verdict = MAX_OF(verdict, is_room ? VERDICT_KEPT : VERDICT_PLACE);
    }
    return verdict;
}

static struct held_claim *held_add(const struct pass *pass, struct swork *work,
                                   const struct plan_member *members, struct held_claim *next)
{
    struct held_claim *held = arena_new(pass->arena, 1, sizeof(*held));
    *held = (struct held_claim){ work, members, next };
    return held;
}

static void remember_claim(struct pass *pass, struct swork *work, const struct plan_member *members)
{
    pass->claims = held_add(pass, work, members, pass->claims);
}

static bool try_evict(struct pass *pass, struct sgroup *group, struct swork *work,
                      enum evict_way way)
{
    size_t count = request_class_count(pass->sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(pass->sched->state, &group->request, i);
        if (class_number < 0)
            continue;
        struct attempt attempt = attempt_of(pass);
        attempt_init(&attempt, work, class_number);
        attempt.way = way;
        group->wants_victims = true;
        if (!reclaim_may_help(&attempt))
            continue;
        if (reclaim(&attempt)) {
            remember_claim(pass, work, attempt.members);
            return true;
        }
        group->is_kept = group->is_kept || attempt.is_kept;
        group->retry_at = earlier_of(group->retry_at, attempt.retry_at);
        attempt_note_progress(&attempt);
    }
    return false;
}

static bool try_reclaim(struct pass *pass, struct sgroup *group, struct swork *work)
{
    group->wants_victims = false;
    group->is_unsettled = false;
    group->retry_at = (struct mono){ 0 };
    return try_evict(pass, group, work, EVICT_BORROWED) ||
           try_evict(pass, group, work, EVICT_LESS_URGENT);
}

static bool try_consolidate(struct pass *pass, struct sgroup *group, struct swork *work,
                            struct mono *retry_at)
{
    size_t count = request_class_count(pass->sched->state, &group->request);
    bool is_on = pass->sched->state->settings.consolidate == CONSOLIDATE_ON;
    for (size_t i = 0; i < count && is_on; i++) {
        int64_t class_number = request_class(pass->sched->state, &group->request, i);
        if (class_number < 0)
            continue;
        struct attempt attempt = attempt_of(pass);
        attempt_init(&attempt, work, class_number);
        if (consolidate(&attempt)) {
            remember_claim(pass, work, attempt.members);
            return true;
        }
        *retry_at = earlier_of(*retry_at, attempt.retry_at);
    }
    return false;
}

static bool would_fit_if_empty(const struct sched *sched, const struct sgroup *group,
                               const struct swork *work)
{
    size_t count = request_class_count(sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, &group->request, i);
        struct fitting fitting;
        if (class_number < 0)
            continue;
        fitting_init(sched, work->workload, class_number, &fitting);
        if (place_if_empty(sched, &fitting))
            return true;
    }
    return false;
}

static enum verdict look_at(struct pass *pass, struct sgroup *group, struct swork *work)
{
    struct sched *sched = pass->sched;
    group->is_kept = false;
    enum verdict verdict = try_start(pass, group, work);
    if (verdict == VERDICT_STARTED || verdict == VERDICT_NONE)
        return verdict;
    struct mono retry_at = { 0 };
    if ((verdict == VERDICT_PLACE && try_consolidate(pass, group, work, &retry_at)) ||
        try_reclaim(pass, group, work))
        return VERDICT_CLAIMED;
    group->retry_at = earlier_of(group->retry_at, retry_at);
    group->holds = verdict == VERDICT_PLACE && would_fit_if_empty(sched, group, work) &&
                   !window_blocks(pass->sched, work);
    return verdict;
}

static void give_promise(struct pass *pass, struct swork *work)
{
    struct attempt attempt = attempt_of(pass);
    attempt.work = work;
    promise_give(&attempt);
}

static void take_turn(struct pass *pass, struct sgroup *group)
{
    struct sched *sched = pass->sched;
    struct sproject *project = group->project;
    struct swork *work = group->cursor->item;
    take_own(project);
    if (is_hopeless(pass, group)) { /* since it was offered */
        note_blocked(sched, group);
        keep_rouse(group);
        refresh_path(pass, project);
        return;
    }
    sched->looked_at = work->workload->r.id;
    group->verdict = look_at(pass, group, work);
    group->checked = 0;
    switch (group->verdict) {
    case VERDICT_STARTED:
    case VERDICT_CLAIMED:
        group->cursor = skip_next(group->cursor);
        advance_later(group);
        break;
    case VERDICT_PLACE:
        if (group->holds)
            give_promise(pass, work);
        note_blocked(sched, group);
        group->checked = sched->clock;
        break;
    case VERDICT_QUOTA:
        promise_drop(sched, work);
        group->checked = sched->clock;
        break;
    case VERDICT_KEPT:
        note_blocked(sched, group);
        group->checked = sched->clock;
        break;
    case VERDICT_NONE:
        break;
    }
    keep_rouse(group);
    sched->looked_at = (struct id){ 0 };
    refresh_path(pass, project);
}

/* ---- claims and dependencies --------------------------------------------------------------- */

/* Holds the room a claimant was promised. */
static void hold_promised(struct pass *pass, struct swork *work)
{
    struct attempt attempt = attempt_of(pass);
    if (work->claim == NULL || !queue_claim_is_usable(pass->sched, work))
        return;
    attempt_init(&attempt, work, work->claim[0].class_number);
    attempt_hold(&attempt, work->claim);
}

/* Where that is unknown or out of use, looks for other room that its victims leave. */
static void hold_other(struct pass *pass, struct swork *work)
{
    const struct request *request = &work->workload->r.request;
    struct attempt attempt = attempt_of(pass);
    size_t count = request_class_count(pass->sched->state, request);
    for (size_t i = 0; i < count && !work->is_booked; i++) {
        int64_t class_number = request_class(pass->sched->state, request, i);
        if (class_number < 0)
            continue;
        attempt_init(&attempt, work, class_number);
        if (reclaim_hold(&attempt))
            remember_claim(pass, work, attempt.members);
    }
}

/* Where it is held to run in this step. */
static const struct plan_member *held_place(const struct pass *pass, const struct swork *work)
{
    for (const struct held_claim *held = pass->claims; held != NULL; held = held->next) {
        if (held->work == work)
            return held->members;
    }
    return work->claim;
}

/* Starts a claimant on what is free, its own room included. In another class than it claimed only
 * within its quota there: as a borrower it would have had its victims evicted for nothing, and two
 * such claimants could evict each other for ever. */
static void start_claim(struct pass *pass, struct swork *work)
{
    const struct request *request = &work->workload->r.request;
    const struct plan_member *members = held_place(pass, work);
    struct attempt attempt = attempt_of(pass);
    bool was_held = work->is_booked;
    if (was_held) {
        attempt_init(&attempt, work, members[0].class_number);
        attempt_release(&attempt, members);
    }
    size_t count = request_class_count(pass->sched->state, request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(pass->sched->state, request, i);
        if (class_number < 0)
            continue;
        attempt_init(&attempt, work, class_number);
        bool is_claimed = !was_held || class_number == members[0].class_number;
        if ((is_claimed || quota_is_inside(&attempt.ask)) &&
            quota_admits(pass->sched, &attempt.ask, ADMIT_NOW, NULL) == ADMIT_OK &&
            attempt_start(&attempt))
            return;
    }
    if (!was_held)
        return;
    attempt_init(&attempt, work, members[0].class_number);
    if (quota_admits(pass->sched, &attempt.ask, ADMIT_NOW, NULL) != ADMIT_OK &&
        reclaim_admits_later(&attempt))
        pass->waiting = held_add(pass, work, members, pass->waiting);
    attempt_hold(&attempt, members);
}

/* All promised rooms are held before any others are looked for, and all rooms before anybody
 * starts, so that no claimant takes what another one waits for. */
static void serve_claims(struct pass *pass)
{
    const struct skip_list *claimants = &pass->sched->claimants;
    for (const struct skip_node *n = skip_first(claimants); n != NULL; n = skip_next(n))
        hold_promised(pass, n->item);
    const struct attempt step = attempt_of(pass);
    consolidate_hold(&step);
    for (const struct skip_node *n = skip_first(claimants); n != NULL; n = skip_next(n))
        hold_other(pass, n->item);
    for (const struct skip_node *n = skip_first(claimants); n != NULL; n = skip_next(n)) {
        pass->sched->looked_at = ((const struct swork *)n->item)->workload->r.id;
        start_claim(pass, n->item);
    }
    pass->sched->looked_at = (struct id){ 0 };
}

/* Claims made in this step, and places found in it, are remembered. */
static void keep_claims(struct pass *pass)
{
    struct held_claim *oldest = NULL;
    while (pass->claims != NULL) {
        struct held_claim *held = pass->claims;
        pass->claims = held->next;
        held->next = oldest;
        oldest = held;
    }
    for (; oldest != NULL; oldest = oldest->next) {
        queue_claim(pass->sched, oldest->work, pass->now);
        queue_claim_place(pass->sched, oldest->work, oldest->members);
    }
}

static bool is_waiting(const struct pass *pass, const struct swork *work)
{
    const struct held_claim *held = pass->waiting;
    while (held != NULL && held->work != work)
        held = held->next;
    return held != NULL;
}

static bool is_started(const struct plan *plan, const struct swork *work)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->entries[i].workload == work->workload)
            return true;
    }
    return false;
}

/* A claimant whose victims are all gone, and that did not start, has a claim no longer: what was
 * held for it is to be looked at again. */
static bool end_void_claims(const struct pass *pass)
{
    struct sched *sched = pass->sched;
    const struct skip_node *n = skip_first(&sched->claimants);
    bool any = false;
    while (n != NULL) {
        struct swork *work = n->item;
        n = skip_next(n);
        if (work->victims > 0 || is_started(pass->plan, work) || is_waiting(pass, work) ||
            reclaim_is_pending(sched, work))
            continue;
        queue_claim_end(sched, work);
        any = true;
    }
    return any;
}

static void end_doomed(struct pass *pass)
{
    for (const struct skip_node *n = skip_first(&pass->sched->doomed); n != NULL;
         n = skip_next(n)) {
        const struct swork *work = n->item;
        struct plan_entry *entry = plan_add(pass->plan, pass->arena);
        *entry = (struct plan_entry){ .action = PLAN_END,
                                      .workload = work->workload,
                                      .cause = queue_doom(pass->sched, work) };
    }
}

/* ---- the step ------------------------------------------------------------------------------ */

/* All that the pass was to look at was looked at. Ends of protections are the one thing that time
 * alone brings about: the next is known again. */
static void end_pass(const struct pass *pass, uint64_t clock)
{
    struct sched *sched = pass->sched;
    for (size_t i = 0; i < sched->visited.count; i++) {
        struct sproject *project = sched->visited.items[i];
        project->swept = clock;
        project->rouse = project->next_rouse;
        sched->retry_at = earlier_of(sched->retry_at, project->rouse.retry_at);
    }
    if (!is_due(pass, sched->retry_at))
        return;
    sched->retry_at = (struct mono){ 0 };
    for (const struct sproject *p = sched->first_project; p != NULL; p = p->next)
        sched->retry_at = earlier_of(sched->retry_at, p->rouse.retry_at);
}

static void refresh_promises(struct pass *pass)
{
    struct attempt attempt = attempt_of(pass);
    promise_refresh_all(&attempt);
}

bool sched_step(struct sched *sched, struct mono now, size_t budget, struct arena *arena,
                struct plan *plan)
{
    struct pass pass = {
        .sched = sched, .now = now, .arena = arena, .plan = plan, .budget = budget
    };
    size_t count_before = plan->count;
    queue_promote(sched, now);
    sched->is_promise_moved = false;
    window_refresh(sched, now, arena);
    fair_age(sched);
    fair_refresh(sched);
    shadow_begin(sched);
    end_doomed(&pass);
    const struct attempt attempt = attempt_of(&pass);
    window_serve(&attempt);
    serve_claims(&pass);
    gang_repair(&attempt);
    begin_pass(&pass);
    uint64_t clock = sched->clock;
    struct sgroup *next = sched->root.candidate;
    for (; next != NULL && pass.budget > 0; pass.budget--) {
        take_turn(&pass, next);
        next = sched->root.candidate;
    }
    bool is_cut = next != NULL;
    if (!is_cut && plan->count == count_before) {
        refresh_promises(&pass);
        gang_grow(&attempt);
    }
    if (!is_cut)
        end_pass(&pass, clock);
    shadow_end(sched);
    bool is_freed = end_void_claims(&pass);
    keep_claims(&pass);
    consolidate_keep(sched, pass.moves);
    return is_cut || is_freed || sched->is_promise_moved || plan->count > count_before;
}

struct id sched_looked_at(const struct sched *sched)
{
    return sched->looked_at;
}

struct mono sched_wake_at(const struct sched *sched)
{
    struct mono at = { INT64_MAX };
    const struct skip_node *first = skip_first(&sched->backing_off);
    if (first != NULL)
        at.ns = first->key.major;
    if (sched->retry_at.ns != 0 && mono_before(sched->retry_at, at))
        at = sched->retry_at;
    if (sched->grow_at.ns != 0 && mono_before(sched->grow_at, at))
        at = sched->grow_at;
    if (sched->window_at.ns != 0 && mono_before(sched->window_at, at))
        at = sched->window_at;
    return at;
}
