/*
 * consolidate.c - moving running work so that waiting work fits.
 *
 * A workload that is admitted, and for which enough is free but not together, may have other work
 * moved out of its way: work that can go, has run for its protected time, and has a new place in
 * the same plan, beside the place of whom it is moved for. As few workloads as possible are moved;
 * among sets of equally many, those that lose least work. For one member all sets of work on each
 * node are tried, the small ones first; for a gang, nodes are opened one after the other, each by
 * the smallest set that makes room for one more member.
 *
 * A move is an eviction, so the work goes back to the queue; its new place is held for it until it
 * starts there: while it stops as one of those that move, then as a claim.
 */
#include <string.h>

#include "sched/internal.h"

enum {
    NODE_WORKS_MAX = 16, /* of one node, those that lose least */
    TRIALS_MAX = 4096,   /* of sets, for one claimant */
    /* The setting `consolidate_max_moves` goes no further than NODE_WORKS_MAX. */
};

/* Work that is taken out together. */
struct set {
    struct swork *works[NODE_WORKS_MAX];
    size_t count;
    int64_t lost; /* work_lost() */
};

struct consolidation {
    struct attempt *attempt; /* of whom it is for */
    struct set moved;
    struct plan_member *places[NODE_WORKS_MAX]; /* of `moved` */
    size_t moves_max;
    size_t trials;
};

/* ---- what may be moved --------------------------------------------------------------------- */

static bool is_protected(struct attempt *attempt, const struct swork *work)
{
    int64_t protect_s = attempt->sched->state->settings.min_runtime_s;
    struct mono until = mono_add_s(work_began(work), protect_s);
    if (!mono_before(attempt->now, until))
        return false;
    if (attempt->retry_at.ns == 0 || mono_before(until, attempt->retry_at))
        attempt->retry_at = until;
    return true;
}

static bool is_movable(struct attempt *attempt, const struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    return work->is_active && !work->is_leaving && r->state == WL_RUNNING &&
           r->restart != RESTART_NEVER && r->volumes.count == 0 && !is_protected(attempt, work);
}

static bool has(const struct set *set, const struct swork *work)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->works[i] == work)
            return true;
    }
    return false;
}

static void add(struct set *set, struct swork *work, int64_t lost)
{
    set->works[set->count++] = work;
    set->lost += lost;
}

/* Keeps those that lose least, in that order; of equals the youngest first. */
static void insert(struct set *set, int64_t lost[NODE_WORKS_MAX], struct swork *work, int64_t its)
{
    size_t at = set->count;
    uint64_t age = work->workload->r.submitted_sequence;
    while (at > 0 &&
           (its < lost[at - 1] ||
            (its == lost[at - 1] && age > set->works[at - 1]->workload->r.submitted_sequence)))
        at--;
    if (at == NODE_WORKS_MAX)
        return;
    size_t tail = MIN_OF(set->count, (size_t)NODE_WORKS_MAX - 1) - at;
    memmove(&set->works[at + 1], &set->works[at], tail * sizeof(set->works[0]));
    memmove(&lost[at + 1], &lost[at], tail * sizeof(lost[0]));
    set->works[at] = work;
    lost[at] = its;
    set->count = at + tail + 1;
}

static void collect(struct attempt *attempt, const struct snode *node, struct set *out,
                    int64_t lost[NODE_WORKS_MAX])
{
    *out = (struct set){ .count = 0 };
    for (const struct sallocation *a = node->allocations; a != NULL; a = a->next_on_node) {
        if (allocation_stays(a) && !has(out, a->work) && is_movable(attempt, a->work))
            insert(out, lost, a->work, work_lost(a->work, NULL, attempt->now));
    }
}

/* ---- trying a set -------------------------------------------------------------------------- */

static void take_out(struct sched *sched, const struct set *set)
{
    for (size_t i = 0; i < set->count; i++)
        reclaim_take_out(sched, set->works[i]);
}

/* A new place for each that is moved; the most demanding first. */
static bool relocate(struct consolidation *c)
{
    for (size_t i = 0; i < c->moved.count; i++) {
        struct attempt one = *c->attempt;
        struct swork *work = c->moved.works[i];
        attempt_init(&one, work, work->active_class);
        window_let_in(&one);
        c->places[i] = place_all(one.sched, &one.fitting, one.arena);
        window_let_out(&one);
        if (c->places[i] == NULL || !promise_allows(&one, c->places[i]))
            return false;
        attempt_book(&one, c->places[i]);
    }
    return true;
}

static void sort_by_demand(struct set *set)
{
    for (size_t i = 1; i < set->count; i++) {
        struct swork *work = set->works[i];
        const struct request *request = &work->workload->r.request;
        size_t at = i;
        while (at > 0 && request_devices(request) >
                             request_devices(&set->works[at - 1]->workload->r.request)) {
            set->works[at] = set->works[at - 1];
            at--;
        }
        set->works[at] = work;
    }
}

/* With `moved` out: room for the claimant, and then for all of them? All of it stays booked. */
static bool works_out(struct consolidation *c)
{
    struct attempt *attempt = c->attempt;
    window_let_in(attempt);
    attempt->members = reclaim_would_fit(attempt)
                           ? place_all(attempt->sched, &attempt->fitting, attempt->arena)
                           : NULL;
    window_let_out(attempt);
    if (attempt->members == NULL || !promise_allows(attempt, attempt->members))
        return false;
    attempt_book(attempt, attempt->members);
    sort_by_demand(&c->moved);
    return relocate(c);
}

/* The next of all selections of `count` out of `from`; false: that was the last. */
static bool next_selection(size_t *selected, size_t count, size_t from)
{
    size_t i = count;
    while (i > 0 && selected[i - 1] == from - count + i - 1)
        i--;
    if (i == 0)
        return false;
    selected[i - 1]++;
    for (; i < count; i++)
        selected[i] = selected[i - 1] + 1;
    return true;
}

/* Of the work on that node, the best set of that size: with which `c` works out, or, for a gang,
 * with which the node holds one more member. Nothing is left changed. */
static void try_node(struct consolidation *c, struct snode *node, size_t size, struct set *best)
{
    struct attempt *attempt = c->attempt;
    struct set on_it;
    int64_t lost[NODE_WORKS_MAX];
    size_t selected[NODE_WORKS_MAX];
    bool is_gang = attempt->fitting.members > 1;
    size_t before = place_members_on(&attempt->fitting, node, attempt->fitting.members);
    collect(attempt, node, &on_it, lost);
    if (on_it.count < size || (before > 0 && !is_gang))
        return;
    for (size_t i = 0; i < size; i++)
        selected[i] = i;
    do {
        struct consolidation trial = *c;
        struct set set = { .count = 0 };
        for (size_t i = 0; i < size; i++)
            add(&set, on_it.works[selected[i]], lost[selected[i]]);
        if (best->count > 0 && set.lost >= best->lost)
            continue;
        if (c->trials++ >= TRIALS_MAX)
            return;
        size_t mark = shadow_mark(attempt->sched);
        take_out(attempt->sched, &set);
        trial.moved = set;
        bool opens = place_members_on(&attempt->fitting, node, before + 1) > before;
        if (opens && (is_gang || works_out(&trial)))
            *best = set;
        shadow_rollback(attempt->sched, mark);
    } while (next_selection(selected, size, on_it.count));
}

/* On the whole cluster, of the smallest size possible; with count 0: there is none. */
static struct set find_set(struct consolidation *c)
{
    struct set best = { .count = 0 };
    size_t left = c->moves_max - c->moved.count;
    for (size_t size = 1; size <= left && best.count == 0; size++) {
        for (struct snode *node = c->attempt->sched->first_node; node != NULL; node = node->next) {
            if (node->is_usable && c->trials < TRIALS_MAX)
                try_node(c, node, size, &best);
        }
    }
    return best;
}

/* Takes out what it takes; then everything is booked as planned. */
static bool solve(struct consolidation *c)
{
    struct attempt *attempt = c->attempt;
    while (c->moved.count == 0 || !place_fits(attempt->sched, &attempt->fitting)) {
        const struct set set = find_set(c);
        if (set.count == 0)
            return false;
        take_out(attempt->sched, &set);
        memcpy(&c->moved.works[c->moved.count], set.works, set.count * sizeof(set.works[0]));
        c->moved.count += set.count;
    }
    return works_out(c);
}

/* ---- the plan ------------------------------------------------------------------------------ */

static void commit(const struct consolidation *c)
{
    struct attempt *attempt = c->attempt;
    attempt_claim(attempt);
    for (size_t i = 0; i < c->moved.count; i++) {
        struct swork *work = c->moved.works[i];
        reclaim_stays_booked(attempt->sched, work);
        struct plan_entry *entry = plan_add(attempt->plan, attempt->arena);
        *entry = (struct plan_entry){ .action = PLAN_EVICT,
                                      .workload = work->workload,
                                      .cause = CAUSE_CONSOLIDATED,
                                      .for_whom = attempt->work->workload };
        struct held_claim *held = arena_new(attempt->arena, 1, sizeof(*held));
        *held = (struct held_claim){ work, c->places[i], *attempt->moves };
        *attempt->moves = held;
    }
}

bool consolidate(struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    const struct settings_record *settings = &sched->state->settings;
    struct consolidation c = { .attempt = attempt,
                               .moves_max = (size_t)MIN_OF(settings->consolidate_max_moves,
                                                           (int64_t)NODE_WORKS_MAX) };
    /* Moved work goes on using what it does: so it is not a matter of what will be left. */
    if (settings->consolidate != CONSOLIDATE_ON ||
        quota_admits(sched, &attempt->ask, ADMIT_NOW, NULL) != ADMIT_OK ||
        attempt->ask.charge > sched->classes[attempt->ask.class_number].free_milli ||
        reclaim_needs_only_time(attempt) || !place_if_empty(sched, &attempt->fitting))
        return false;
    promise_refresh_all(attempt);
    size_t mark = shadow_mark(sched);
    if (!solve(&c)) {
        shadow_rollback(sched, mark);
        return false;
    }
    commit(&c);
    return true;
}

/* ---- new places ---------------------------------------------------------------------------- */

static struct skip_key key_of(const struct swork *work)
{
    return (struct skip_key){ .minor = work->workload->r.submitted_sequence };
}

void consolidate_keep(struct sched *sched, const struct held_claim *moves)
{
    for (; moves != NULL; moves = moves->next) {
        struct swork *work = moves->work;
        queue_claim_place(sched, work, moves->members);
        work->is_moved = true;
        skip_insert(&sched->moving, &sched->pool, key_of(work), work);
    }
}

void consolidate_hold(const struct attempt *step)
{
    for (const struct skip_node *n = skip_first(&step->sched->moving); n != NULL;
         n = skip_next(n)) {
        struct swork *work = n->item;
        struct attempt one = *step;
        if (work->claim == NULL || !queue_claim_is_usable(step->sched, work))
            continue;
        attempt_init(&one, work, work->claim[0].class_number);
        attempt_book(&one, work->claim);
    }
}

void consolidate_note(struct sched *sched, struct swork *work)
{
    enum workload_state state = work->workload->r.state;
    if (!work->is_moved || work->is_claimant || skip_find(&sched->moving, key_of(work)) == NULL ||
        state == WL_STARTING || state == WL_RUNNING || state == WL_STOPPING)
        return;
    skip_remove(&sched->moving, &sched->pool, key_of(work));
    if (work->where == WORK_QUEUED)
        queue_claim(sched, work, sched->state->now);
    else
        queue_claim_forget(sched, work);
}
