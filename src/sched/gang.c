/*
 * gang.c - gangs that are not whole.
 *
 * An elastic gang starts with as many members as there is room for, from members_min on. What it
 * asks for, is ordered, promised and reclaimed by is always that minimum; the rest it takes as it
 * comes. A gang that lost members and has fewer than members_min is served before anybody in the
 * queue, all of what it lacks or nothing, but it evicts nobody: if nothing comes free in time it is
 * requeued, and has the rights of whoever waits. One that could have more members gets them last,
 * on what nobody who waits may use: neither now nor by a promise.
 */
#include "sched/internal.h"

static const struct mono never = { INT64_MAX };

/* ---- which there are ----------------------------------------------------------------------- */

static struct skip_key key_of(const struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    return (struct skip_key){ .major = -r->priority, .minor = r->submitted_sequence };
}

static struct sgang *gang_of(const struct sched *sched, const struct swork *work)
{
    const struct skip_node *found =
        sched->gangs.count > 0 ? skip_find(&sched->gangs, key_of(work)) : NULL;
    return found != NULL ? found->item : NULL;
}

void gang_note(struct sched *sched, struct swork *work)
{
    const struct gang *gang = state_gang(sched->state, work->workload->r.id);
    struct sgang *known = gang_of(sched, work);
    if (known == NULL && gang != NULL) {
        known = pool_new(&sched->pool, sizeof(*known));
        known->work = work;
        skip_insert(&sched->gangs, &sched->pool, key_of(work), known);
    }
    if (known == NULL)
        return;
    known->gang = gang;
    known->checked = 0;
    if (gang != NULL)
        return;
    skip_remove(&sched->gangs, &sched->pool, key_of(work));
    pool_free(&sched->pool, known, sizeof(*known));
}

struct mono gang_stale_at(const struct sched *sched, const struct swork *work)
{
    const struct sgang *gang = gang_of(sched, work);
    if (gang == NULL || gang->gang->r.short_since.ns == 0)
        return never;
    return mono_add_s(gang->gang->r.short_since, sched->state->settings.gang_repair_s);
}

/* ---- how many may start -------------------------------------------------------------------- */

static void resize(struct attempt *attempt, int64_t members)
{
    const struct request *request = &attempt->fitting.request;
    attempt->fitting.members = (size_t)members;
    attempt->ask.charge =
        members * request_charge(attempt->sched->state, request, attempt->ask.class_number);
}

/* Quota and limits; of work tied to a reservation, limits and what its window has left. */
static bool is_admitted(const struct attempt *attempt)
{
    const struct sreservation *window = attempt->work->tied;
    if (window == NULL)
        return quota_admits(attempt->sched, &attempt->ask, ADMIT_NOW, NULL) == ADMIT_OK;
    return window->used_milli + attempt->ask.charge <= window->reservation->r.gpu_milli &&
           quota_is_within_limits(&attempt->ask);
}

/* The most members between `least`, which are admitted, and `most` that are. */
static int64_t most_admitted(struct attempt *attempt, int64_t least, int64_t most)
{
    int64_t high = most + 1;
    while (high - least > 1) {
        int64_t middle = least + (high - least) / 2;
        resize(attempt, middle);
        if (is_admitted(attempt))
            least = middle;
        else
            high = middle;
    }
    return least;
}

/* More than the minimum, where that is admitted and has a place. */
static void widen(struct attempt *attempt)
{
    const struct workload_record *r = &attempt->work->workload->r;
    int64_t least = members_least(r);
    resize(attempt, most_admitted(attempt, least, r->members));
    int64_t fit = (int64_t)place_count(attempt->sched, &attempt->fitting);
    resize(attempt, MIN_OF(MAX_OF(fit, least), (int64_t)attempt->fitting.members));
}

struct plan_member *gang_place(struct attempt *attempt, bool *is_room)
{
    const struct workload_record *r = &attempt->work->workload->r;
    bool is_elastic = members_least(r) < r->members;
    window_let_in(attempt);
    if (is_elastic)
        widen(attempt);
    struct plan_member *members = promise_place(attempt, is_room);
    if (members == NULL && (int64_t)attempt->fitting.members > members_least(r)) {
        resize(attempt, members_least(r));
        members = promise_place(attempt, is_room);
    }
    window_let_out(attempt);
    return members;
}

/* ---- members that join --------------------------------------------------------------------- */

/* Some member that stays; NULL: none does. */
static const struct sallocation *member_of(const struct swork *work)
{
    const struct sallocation *a = work->first;
    while (a != NULL && !allocation_stays(a))
        a = a->next_of_work;
    return a;
}

/* The rank is taken until its last holder is gone: two of the same would meet. */
static bool is_rank_free(const struct swork *work, int64_t rank)
{
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        const struct allocation_record *r = &a->allocation->r;
        if (r->rank == rank && r->attempt == work->workload->r.attempt &&
            allocation_is_charged(a->state))
            return false;
    }
    return true;
}

static struct gap_list free_ranks(const struct sgang *gang, struct arena *arena)
{
    const struct gap_list *missing = &gang->gang->r.missing;
    struct gap_list out = { arena_new(arena, missing->count, sizeof(*out.items)), 0 };
    for (size_t i = 0; i < missing->count; i++) {
        if (is_rank_free(gang->work, missing->items[i].rank))
            out.items[out.count++] = missing->items[i];
    }
    return out;
}

/* An attempt for some more members: close to those that are there, where that is required. */
static bool joining_init(struct attempt *attempt, const struct sgang *gang, int64_t members)
{
    const struct sallocation *a = member_of(gang->work);
    if (a == NULL)
        return false;
    attempt_init(attempt, gang->work, a->class_number);
    resize(attempt, members);
    if (attempt->fitting.is_single_node)
        attempt->fitting.node = a->node->node->r.id;
    else if (attempt->fitting.required != TOPOLOGY_NONE)
        attempt->fitting.within = domain_at(a->node, attempt->fitting.required);
    return true;
}

static void join(struct attempt *attempt, struct plan_member *members, struct gap_list ranks)
{
    attempt_start_at(attempt, members);
    struct plan_entry *entry = &attempt->plan->entries[attempt->plan->count - 1];
    ranks.count = attempt->fitting.members;
    entry->action = PLAN_GROW;
    entry->ranks = ranks;
}

static bool is_on(const struct swork *work)
{
    enum workload_state state = work->workload->r.state;
    return (state == WL_STARTING || state == WL_RUNNING) && !work->is_leaving;
}

static void repair(const struct attempt *step, const struct sgang *gang)
{
    const struct workload_record *r = &gang->work->workload->r;
    struct attempt attempt = *step;
    int64_t left = r->members - (int64_t)gang->gang->r.missing.count;
    int64_t lacks = members_least(r) - left;
    struct gap_list ranks = free_ranks(gang, step->arena);
    if (lacks <= 0 || !is_on(gang->work) || ranks.count < (size_t)lacks ||
        !joining_init(&attempt, gang, lacks) || !is_admitted(&attempt))
        return;
    window_let_in(&attempt);
    struct plan_member *members = place_all(attempt.sched, &attempt.fitting, attempt.arena);
    window_let_out(&attempt);
    if (members != NULL)
        join(&attempt, members, ranks);
}

void gang_repair(const struct attempt *step)
{
    const struct skip_list *gangs = &step->sched->gangs;
    for (const struct skip_node *n = skip_first(gangs); n != NULL; n = skip_next(n)) {
        const struct sgang *gang = n->item;
        if (gang->gang->r.short_since.ns != 0)
            repair(step, gang);
    }
}

/* ---- growth -------------------------------------------------------------------------------- */

static bool is_worth_a_look(const struct attempt *step, const struct sgang *gang)
{
    struct sched *sched = step->sched;
    const struct sallocation *a = member_of(gang->work);
    struct mono after = gang->gang->r.grow_after;
    if (a == NULL || gang->gang->r.short_since.ns != 0 || !is_on(gang->work))
        return false;
    if (mono_before(step->now, after)) {
        if (after.ns != never.ns && (sched->grow_at.ns == 0 || mono_before(after, sched->grow_at)))
            sched->grow_at = after;
        return false;
    }
    return gang->checked == 0 || sched->all_gained > gang->checked ||
           sched->classes[a->class_number].gained > gang->checked || after.ns > sched->grown.ns;
}

static void grow(const struct attempt *step, struct sgang *gang)
{
    struct attempt attempt = *step;
    struct gap_list ranks = free_ranks(gang, step->arena);
    if (ranks.count == 0 || !joining_init(&attempt, gang, 1) || !is_admitted(&attempt))
        return;
    resize(&attempt, most_admitted(&attempt, 1, (int64_t)ranks.count));
    window_let_in(&attempt);
    size_t fit = place_count(attempt.sched, &attempt.fitting);
    resize(&attempt, (int64_t)MIN_OF(fit, attempt.fitting.members));
    bool is_room = false;
    struct plan_member *members = fit > 0 ? promise_place(&attempt, &is_room) : NULL;
    if (members == NULL && fit > 1) {
        resize(&attempt, 1);
        members = promise_place(&attempt, &is_room);
    }
    window_let_out(&attempt);
    if (members != NULL)
        join(&attempt, members, ranks);
}

void gang_grow(const struct attempt *step)
{
    struct sched *sched = step->sched;
    const struct skip_list *gangs = &sched->gangs;
    sched->grow_at = (struct mono){ 0 };
    for (const struct skip_node *n = skip_first(gangs); n != NULL; n = skip_next(n)) {
        struct sgang *gang = n->item;
        if (!is_worth_a_look(step, gang))
            continue;
        gang->checked = sched->clock;
        grow(step, gang);
    }
    sched->grown = step->now;
}
