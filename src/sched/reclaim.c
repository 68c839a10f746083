/*
 * reclaim.c - evicting borrowed work for work inside its guarantee (or its fair share,
 * `reclaim_to`), and less urgent work of a project for more urgent work of the same.
 *
 * Of borrowed work both sides are judged where their paths in the quota tree part: there the
 * claimant's ancestor stays within what it may have, and the victim's is above its own before the
 * eviction; nothing from there down to the victim's project ends below its quota.
 *
 * No sequence of evictions can come back to where it began. For borrowed work makes_progress() sees
 * to that: wherever paths part, what all sides together lack of their quotas (as far as they ask
 * for them) has to shrink by the exchange, or to stay and what they lack of their shares to shrink.
 * Both are whole numbers that are never negative, so with the same demand, and thus the same
 * shares, it ends. That test is needed besides the rule above because work is evicted whole: a
 * large victim may leave its side further below its share than the claimant was. Within a project a
 * claimant is strictly more urgent than each victim, which cannot evict it in turn; nor can work
 * without devices, evicted for the cores that work with devices needs, evict any with devices.
 *
 * Nothing is evicted unless the claimant then fits: victims are taken out one by one within the
 * step until it does, the least urgent first; of equally urgent ones those of projects above their
 * share, then those that lose least work, then the youngest. Those that turn out not to be needed
 * are put back. The room they leave is the claimant's: it is held for it in every following step
 * until it starts or withdraws.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/internal.h"

/* A workload, or one member of an elastic gang that has more than it needs. */
struct victim {
    struct swork *work;         /* NULL: it is spared after all */
    struct sallocation *member; /* NULL: all of the workload that is not taken out by itself */
};

struct victims {
    struct victim *items; /* in the arena */
    size_t count;
};

/* ---- who may be a victim ------------------------------------------------------------------- */

/* Without what is leaving; the claimant's side counts what was claimed before it as well. */
static int64_t staying(const struct suse *use)
{
    return use->charged - use->leaving;
}

static int64_t own_staying(const struct suse *use)
{
    return use->own_charged - use->own_leaving;
}

static struct mono allocation_began(const struct sallocation *a)
{
    const struct allocation_record *r = &a->allocation->r;
    return r->started.ns != 0 ? r->started : r->granted;
}

/* What a side may have: its quota, or by `reclaim_to: fair_share` its share; work that is never
 * preempted stays within the quota. */
static int64_t bound_of(const struct attempt *attempt, int64_t quota, int64_t fair)
{
    bool to_share = attempt->sched->state->settings.reclaim_to == RECLAIM_TO_FAIR_SHARE;
    return to_share && !attempt->ask.is_fixed ? MAX_OF(quota, fair) : quota;
}

/* What the claimant's side has with it, and what is its own. Work directly in `common` counts
 * against what its children's quotas leave. */
struct side {
    int64_t total, quota, fair;
};

static struct side claimant_side(const struct attempt *attempt, const struct sproject *common)
{
    const struct ask *ask = &attempt->ask;
    if (ask->project == common) {
        const struct suse *own = &common->uses[ask->class_number];
        return (struct side){ own_staying(own) + own->own_claimed + ask->charge, own->own_quota,
                              own->own_fair };
    }
    const struct suse *use = &side_below(ask->project, common)->uses[ask->class_number];
    return (struct side){ staying(use) + use->claimed + ask->charge, use->quota, use->fair };
}

/* Its ancestor right below `common` stays within what it may have. */
static bool claimant_is_inside(const struct attempt *attempt, const struct sproject *common)
{
    const struct side side = claimant_side(attempt, common);
    return side.total <= bound_of(attempt, side.quota, side.fair);
}

static int64_t charge_of(const struct swork *work)
{
    int64_t charge = 0;
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work)
        charge += allocation_stays(a) ? a->charge_milli : 0;
    return charge;
}

static int64_t charge_of_victim(const struct victim *victim)
{
    return victim->member != NULL ? victim->member->charge_milli : charge_of(victim->work);
}

/* Work that does not lie within its project's quota as a whole: counted by priority and age, the
 * more protected first, it takes the project above it. The active ones begin with the least
 * protected. */
static bool is_beyond_quota(const struct swork *victim)
{
    const struct suse *own = &victim->project->uses[victim->active_class];
    int64_t up_to_it = own_staying(own);
    const struct skip_list *active = &victim->project->active[victim->active_class];
    for (const struct skip_node *n = skip_first(active); n->item != victim; n = skip_next(n)) {
        const struct swork *other = n->item;
        if (!other->is_leaving)
            up_to_it -= charge_of(other);
    }
    return up_to_it > own->own_quota;
}

/* Its side has more than its own before it goes. Nothing from there down ends below its quota,
 * unless nobody else is left and the work is beyond its project's quota: as a whole it was never
 * guaranteed. */
static bool victim_is_outside(const struct attempt *attempt, const struct victim *who,
                              const struct sproject *common)
{
    const struct swork *victim = who->work;
    int64_t class_number = victim->active_class;
    int64_t charge = charge_of_victim(who);
    const struct suse *own = &victim->project->uses[class_number];
    bool may_end_below = attempt->takes_straddlers && is_beyond_quota(victim);
    if (own_staying(own) - charge < own->own_quota && !may_end_below)
        return false;
    if (victim->project == common)
        return own_staying(own) > bound_of(attempt, own->own_quota, own->own_fair);
    for (const struct sproject *p = victim->project; p != common; p = p->parent) {
        const struct suse *use = &p->uses[class_number];
        bool ends_below = staying(use) - charge < use->quota;
        if (ends_below && (!may_end_below || staying(use) <= use->quota))
            return false;
        if (p->parent == common && staying(use) <= bound_of(attempt, use->quota, use->fair))
            return false;
    }
    return true;
}

/* How long it is protected: from claims inside a quota only if so configured. */
static int64_t protected_s(const struct attempt *attempt, const struct sproject *common)
{
    const struct settings_record *settings = &attempt->sched->state->settings;
    if (common == NULL)
        return settings->min_runtime_s;
    const struct side side = claimant_side(attempt, common);
    return side.total <= side.quota ? settings->min_runtime_in_quota_s : settings->min_runtime_s;
}

struct mono work_began(const struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    bool is_elastic = members_least(r) < r->members;
    struct mono since = { 0 };
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        struct mono began = allocation_began(a);
        bool is_later = mono_before(since, began);
        if (since.ns == 0 || (is_elastic ? allocation_stays(a) && !is_later : is_later))
            since = began;
    }
    return since;
}

/* One member saves for all: which one does is a matter of its program. */
static struct mono work_saved(const struct swork *work)
{
    struct mono saved = { 0 };
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        const struct allocation_record *r = &a->allocation->r;
        if (r->attempt == work->workload->r.attempt && mono_before(saved, r->checkpointed))
            saved = r->checkpointed;
    }
    return saved;
}

int64_t work_lost(const struct swork *work, const struct sallocation *member, struct mono now)
{
    struct mono saved = work_saved(work);
    int64_t lost = 0;
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        struct mono since = allocation_began(a);
        since = mono_before(since, saved) ? saved : since;
        if (allocation_stays(a) && (member == NULL || member == a))
            lost += (now.ns - since.ns) / NS_PER_MS * a->charge_milli;
    }
    return lost;
}

/* `common` NULL: within one project. */
static bool is_protected(struct attempt *attempt, const struct victim *victim,
                         const struct sproject *common)
{
    int64_t protect_s = protected_s(attempt, common);
    struct mono since = { 0 };
    if (protect_s > 0)
        since =
            victim->member != NULL ? allocation_began(victim->member) : work_began(victim->work);
    struct mono until = mono_add_s(since, protect_s);
    if (protect_s == 0 || !mono_before(attempt->now, until))
        return false;
    if (attempt->retry_at.ns == 0 || mono_before(until, attempt->retry_at))
        attempt->retry_at = until;
    return true;
}

static bool is_less_urgent(const struct attempt *attempt, const struct swork *victim)
{
    return victim->workload->r.priority < attempt->work->workload->r.priority;
}

static bool may_evict(struct attempt *attempt, const struct victim *who)
{
    const struct swork *victim = who->work;
    bool is_own = victim->project == attempt->ask.project;
    if (victim->is_leaving || is_own != (attempt->way == EVICT_LESS_URGENT))
        return false;
    if (is_own)
        return is_less_urgent(attempt, victim) && !is_protected(attempt, who, NULL);
    const struct sproject *common = common_ancestor(attempt->ask.project, victim->project);
    return claimant_is_inside(attempt, common) && victim_is_outside(attempt, who, common) &&
           !is_protected(attempt, who, common);
}

/* ---- taking out and putting back ----------------------------------------------------------- */

enum way { TAKE_OUT, PUT_BACK };

static void move_booking(struct sched *sched, const struct sallocation *a, enum way way)
{
    const struct booking booking = { a->node, &a->shares, a->cpu_milli, a->memory_mib,
                                     a->project->project->tenant };
    if (way == TAKE_OUT)
        capacity_unbook(sched, &booking);
    else
        capacity_book(sched, &booking);
}

static void move_bookings(struct sched *sched, const struct swork *victim, enum way way)
{
    for (const struct sallocation *a = victim->first; a != NULL; a = a->next_of_work) {
        if (allocation_stays(a))
            move_booking(sched, a, way);
    }
}

static void set_out(struct sched *sched, struct sallocation *member, bool is_out)
{
    touch(sched, member, sizeof(*member));
    member->is_out = is_out;
}

static void move_victim(struct sched *sched, const struct victim *victim, enum way way)
{
    struct swork *work = victim->work;
    int64_t charge = charge_of_victim(victim);
    use_add(sched, work->project, work->active_class, USE_LEAVING,
            way == TAKE_OUT ? charge : -charge);
    if (victim->member != NULL) {
        move_booking(sched, victim->member, way);
        set_out(sched, victim->member, way == TAKE_OUT);
        return;
    }
    move_bookings(sched, work, way);
    touch(sched, work, sizeof(*work));
    work->is_leaving = way == TAKE_OUT;
}

/* What is being stopped anyway, for this claimant or for nobody. */
static void move_stopping(const struct attempt *attempt, enum way way)
{
    struct sched *sched = attempt->sched;
    for (const struct skip_node *n = skip_first(&sched->stopping); n != NULL; n = skip_next(n)) {
        const struct sallocation *a = n->item;
        if (window_is_for(a))
            continue; /* its devices are a reservation's */
        if (id_is_none(a->evictor) || id_eq(a->evictor, attempt->work->workload->r.id))
            move_booking(sched, a, way);
    }
}

void reclaim_take_out(struct sched *sched, struct swork *work)
{
    const struct victim victim = { work, NULL };
    move_victim(sched, &victim, TAKE_OUT);
}

void reclaim_stays_booked(struct sched *sched, struct swork *work)
{
    move_bookings(sched, work, PUT_BACK);
}

/* ---- the plan ------------------------------------------------------------------------------ */

static void victims_reserve(const struct attempt *attempt, struct victims *victims, size_t more)
{
    struct victim *items = arena_new(attempt->arena, victims->count + more, sizeof(*items));
    if (victims->count > 0)
        memcpy(items, victims->items, victims->count * sizeof(*items));
    victims->items = items;
}

bool reclaim_would_fit(const struct attempt *attempt)
{
    return quota_admits(attempt->sched, &attempt->ask, ADMIT_FUTURE, NULL) == ADMIT_OK &&
           place_fits(attempt->sched, &attempt->fitting);
}

/* Whom to spare least: the least urgent; of these, those beyond their share, then who loses least
 * work, then the youngest. */
struct candidate {
    struct victim who;
    int64_t priority;
    bool is_over_share;
    int64_t lost; /* work_lost() */
    uint64_t submitted_sequence;
    int64_t rank; /* of a member alone; -1: of all of it, which comes after its members */
};

struct candidates {
    struct candidate *items; /* in the arena */
    size_t count, capacity;
};

static struct candidate candidate_of(const struct attempt *attempt, struct victim who)
{
    const struct swork *work = who.work;
    const struct suse *use = &work->project->uses[work->active_class];
    return (struct candidate){ .who = who,
                               .priority = work->workload->r.priority,
                               .is_over_share = use->charged > use->fair,
                               .lost = work_lost(work, who.member, attempt->now),
                               .submitted_sequence = work->workload->r.submitted_sequence,
                               .rank = who.member != NULL ? who.member->allocation->r.rank : -1 };
}

static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->is_over_share != b->is_over_share)
        return a->is_over_share ? -1 : 1;
    if (a->lost != b->lost)
        return a->lost < b->lost ? -1 : 1;
    if (a->submitted_sequence != b->submitted_sequence)
        return a->submitted_sequence > b->submitted_sequence ? -1 : 1;
    return a->rank > b->rank ? -1 : 1;
}

/* ---- where borrowed work is ---------------------------------------------------------------- */

/* All of its ancestors that are not the claimant's as well have to be above their quotas. */
static bool may_hold_borrowed(const struct attempt *attempt, const struct sproject *project,
                              int64_t class_number)
{
    const struct suse *use = &project->uses[class_number];
    const struct sproject *on_path = attempt->ask.project;
    while (on_path->depth > project->depth)
        on_path = on_path->parent;
    return project == on_path || staying(use) > use->quota;
}

struct sproject *reclaim_next_borrower(const struct attempt *attempt, struct sproject *project,
                                       int64_t class_number)
{
    for (bool may_descend = true;;) {
        while (project != NULL && (!may_descend || project->first_child == NULL) &&
               project->next_sibling == NULL) {
            project = project->parent;
            may_descend = false;
        }
        if (project == NULL)
            return NULL;
        project = may_descend && project->first_child != NULL ? project->first_child
                                                              : project->next_sibling;
        const struct suse *use = &project->uses[class_number];
        may_descend = may_hold_borrowed(attempt, project, class_number);
        if (may_descend && project != attempt->ask.project && own_staying(use) > use->own_quota &&
            project->active[class_number].count > 0)
            return project;
    }
}

static void candidates_reserve(const struct attempt *attempt, struct candidates *list, size_t more)
{
    if (list->count + more <= list->capacity)
        return;
    list->capacity = 2 * (list->count + more);
    struct candidate *items = arena_new(attempt->arena, list->capacity, sizeof(*items));
    if (list->count > 0)
        memcpy(items, list->items, list->count * sizeof(*items));
    list->items = items;
}

static bool collect(struct attempt *attempt, struct victim who, struct candidates *out)
{
    bool may = may_evict(attempt, &who);
    candidates_reserve(attempt, out, 1);
    if (may)
        out->items[out->count++] = candidate_of(attempt, who);
    return may;
}

/* How many members it has beyond those that it needs. */
static int64_t surplus_of(const struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    int64_t count = -members_least(r);
    if (count == -r->members)
        return 0;
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work)
        count += allocation_stays(a);
    return MAX_OF(count, INT64_C(0));
}

/* Of those that stay, the one with the highest rank below that. */
static struct sallocation *last_below(const struct swork *work, int64_t rank)
{
    struct sallocation *best = NULL;
    for (struct sallocation *a = work->first; a != NULL; a = a->next_of_work) {
        int64_t its = a->allocation->r.rank;
        if (allocation_stays(a) && its < rank && (best == NULL || its > best->allocation->r.rank))
            best = a;
    }
    return best;
}

/* What is surplus of an elastic gang may go by itself: the members with the highest ranks. */
static void collect_members(struct attempt *attempt, struct swork *work, struct candidates *out)
{
    int64_t left = surplus_of(work);
    struct sallocation *member = left > 0 ? last_below(work, INT64_MAX) : NULL;
    for (; left > 0 && member != NULL; left--) {
        (void)collect(attempt, (struct victim){ work, member }, out);
        member = last_below(work, member->allocation->r.rank);
    }
}

static void collect_from(struct attempt *attempt, const struct sproject *project,
                         int64_t class_number, struct candidates *out)
{
    const struct skip_list *active = &project->active[class_number];
    candidates_reserve(attempt, out, active->count);
    for (const struct skip_node *n = skip_first(active); n != NULL; n = skip_next(n)) {
        struct swork *work = n->item;
        collect_members(attempt, work, out);
        if (!collect(attempt, (struct victim){ work, NULL }, out) &&
            attempt->way == EVICT_LESS_URGENT && !is_less_urgent(attempt, work))
            return; /* the list begins with the least urgent */
    }
}

/* Takes them out in turn, from that one on, as long as the claimant does not fit. Somebody who
 * might have gone before another did is refused: then `is_bounded`. */
static bool take_in_turn(struct attempt *attempt, const struct candidates *candidates, size_t from,
                         struct victims *victims, bool *is_bounded)
{
    for (size_t i = from; i < candidates->count; i++) {
        const struct victim victim = candidates->items[i].who;
        if (!may_evict(attempt, &victim)) {
            *is_bounded = *is_bounded || victim.member == NULL;
            continue;
        }
        move_victim(attempt->sched, &victim, TAKE_OUT);
        victims->items[victims->count++] = victim;
        if (reclaim_would_fit(attempt))
            return true;
    }
    return false;
}

/* In order of preference. Where one that goes first leaves its side with nothing to give, and the
 * claimant does not fit, the first ones are spared: few of them, for each costs as much again. */
static bool take_enough(struct attempt *attempt, const struct candidates *candidates,
                        struct victims *victims)
{
    enum { SPARED_MAX = 8 };
    size_t mark = shadow_mark(attempt->sched);
    size_t before = victims->count;
    bool is_bounded = false;
    if (take_in_turn(attempt, candidates, 0, victims, &is_bounded))
        return true;
    if (!is_bounded || attempt->way == EVICT_LESS_URGENT)
        return false;
    for (size_t from = 1; from < candidates->count && from <= SPARED_MAX; from++) {
        shadow_rollback(attempt->sched, mark);
        victims->count = before;
        if (take_in_turn(attempt, candidates, from, victims, &is_bounded))
            return true;
    }
    shadow_rollback(attempt->sched, mark);
    victims->count = before;
    return take_in_turn(attempt, candidates, 0, victims, &is_bounded);
}

/* Adds victims out of one class until the claimant fits: of those who may go as things are now. */
static bool gather(struct attempt *attempt, int64_t class_number, struct victims *victims)
{
    struct candidates candidates = { 0 };
    if (attempt->way == EVICT_LESS_URGENT)
        collect_from(attempt, attempt->ask.project, class_number, &candidates);
    else
        for (struct sproject *p =
                 reclaim_next_borrower(attempt, &attempt->sched->root, class_number);
             p != NULL; p = reclaim_next_borrower(attempt, p, class_number))
            collect_from(attempt, p, class_number, &candidates);
    if (candidates.count == 0)
        return false;
    qsort(candidates.items, candidates.count, sizeof(*candidates.items), compare_candidates);
    victims_reserve(attempt, victims, candidates.count);
    return take_enough(attempt, &candidates, victims);
}

/* Work without devices may hold the cores or the memory that the claimant needs beside
 * its devices. */
static bool gather_all(struct attempt *attempt, struct victims *victims)
{
    struct sched *sched = attempt->sched;
    int64_t class_number = attempt->ask.class_number;
    bool wants_devices = state_class(sched->state, class_number)->r.kind == CLASS_GPU;
    if (gather(attempt, class_number, victims))
        return true;
    if (place_is_hopeless(sched, &attempt->fitting))
        return false;
    for (size_t c = 0; c < sched->class_count && wants_devices; c++) {
        if (state_class(sched->state, (int64_t)c)->r.kind == CLASS_CPU &&
            gather(attempt, (int64_t)c, victims))
            return true;
    }
    return false;
}

/* How many victims there are whose paths part from the claimant's at each depth. */
struct partings {
    size_t at[PATH_MAX_DEPTH + 1];
};

static size_t parting_of(const struct attempt *attempt, const struct victim *victim)
{
    return common_ancestor(attempt->ask.project, victim->work->project)->depth;
}

/* Who is spared counts again on the claimant's side: that still has to be inside for all the
 * others. */
static bool is_still_inside(const struct attempt *attempt, const struct partings *partings)
{
    if (attempt->way == EVICT_LESS_URGENT)
        return true;
    for (const struct sproject *p = attempt->ask.project; p != NULL; p = p->parent) {
        if (partings->at[p->depth] > 0 && !claimant_is_inside(attempt, p))
            return false;
    }
    return true;
}

/* Spares whoever is not needed, beginning with the one that should be spared most. */
static void prune(struct attempt *attempt, struct victims *victims)
{
    struct sched *sched = attempt->sched;
    struct partings partings = { 0 };
    for (size_t i = 0; i < victims->count; i++)
        partings.at[parting_of(attempt, &victims->items[i])]++;
    for (size_t left = victims->count; left > 0; left--) {
        size_t i = left - 1;
        struct victim *victim = &victims->items[i];
        if (victim->member != NULL && victim->work->is_leaving)
            continue; /* all of it goes */
        size_t depth = parting_of(attempt, victim);
        move_victim(sched, victim, PUT_BACK);
        partings.at[depth]--;
        if (reclaim_would_fit(attempt) && is_still_inside(attempt, &partings)) {
            victim->work = NULL;
            continue;
        }
        move_victim(sched, victim, TAKE_OUT);
        partings.at[depth]++;
    }
}

/* One side where paths part: a subtree, or the work directly in the ancestor that they share. */
struct branch {
    struct sproject *at;
    bool is_own;
};

static struct branch branch_of(struct sproject *project, const struct sproject *common)
{
    bool is_own = project == common;
    return (struct branch){ is_own ? project : side_below(project, common), is_own };
}

static int64_t *taken_of(const struct branch *branch)
{
    return branch->is_own ? &branch->at->own_taken : &branch->at->taken;
}

/* What it lacks of the quota that it asks for, and of its share. */
struct lack {
    int64_t quota, share;
};

static struct lack lack_of(const struct branch *branch, int64_t class_number, int64_t more)
{
    const struct suse *use = &branch->at->uses[class_number];
    int64_t has = more + (branch->is_own ? own_staying(use) : staying(use));
    int64_t wanted =
        branch->is_own ? use->own_charged + use->own_pending : use->charged + use->pending;
    int64_t quota = MIN_OF(branch->is_own ? use->own_quota : use->quota, wanted);
    int64_t fair = branch->is_own ? use->own_fair : use->fair;
    return (struct lack){ MAX_OF(quota - has, INT64_C(0)), MAX_OF(fair - has, INT64_C(0)) };
}

static void lack_add(struct lack *sum, struct lack before, struct lack after)
{
    sum->quota += after.quota - before.quota;
    sum->share += after.share - before.share;
}

/* The victims of this class whose paths part from the claimant's at `common`. */
static struct branch *branches_at(const struct attempt *attempt, const struct victims *victims,
                                  const struct sproject *common, size_t *count)
{
    const struct ask *ask = &attempt->ask;
    struct branch *branches = arena_new(attempt->arena, victims->count, sizeof(*branches));
    *count = 0;
    for (size_t i = 0; i < victims->count; i++) {
        const struct victim *who = &victims->items[i];
        const struct swork *victim = who->work;
        if (victim == NULL || victim->active_class != ask->class_number ||
            common_ancestor(ask->project, victim->project) != common)
            continue;
        struct branch branch = branch_of(victim->project, common);
        *taken_of(&branch) += charge_of_victim(who);
        branches[(*count)++] = branch;
    }
    return branches;
}

/* Where paths part less is lacking afterwards: first of quotas, then of shares. */
static bool makes_progress_at(const struct attempt *attempt, const struct victims *victims,
                              const struct sproject *common)
{
    const struct ask *ask = &attempt->ask;
    size_t count = 0;
    struct branch *branches = branches_at(attempt, victims, common, &count);
    struct branch own = branch_of(ask->project, common);
    int64_t claimed = own.is_own ? common->uses[ask->class_number].own_claimed
                                 : own.at->uses[ask->class_number].claimed;
    struct lack sum = { 0 };
    lack_add(&sum, lack_of(&own, ask->class_number, claimed),
             lack_of(&own, ask->class_number, claimed + ask->charge));
    for (size_t i = 0; i < count; i++) {
        int64_t *taken = taken_of(&branches[i]);
        lack_add(&sum, lack_of(&branches[i], ask->class_number, *taken),
                 lack_of(&branches[i], ask->class_number, 0));
        *taken = 0; /* each branch once */
    }
    return count == 0 || sum.quota < 0 || (sum.quota == 0 && sum.share < 0);
}

/* Every reclaim leaves less lacking, so that no sequence of them comes back to where it began. */
static bool makes_progress(const struct attempt *attempt, const struct victims *victims)
{
    /* Priorities are an order of their own; and work beyond its project's quota cannot claim
     * back what it lost, for want of room inside that quota. */
    if (attempt->way == EVICT_LESS_URGENT || attempt->takes_straddlers)
        return true;
    for (const struct sproject *p = attempt->ask.project; p != NULL; p = p->parent) {
        if (!makes_progress_at(attempt, victims, p))
            return false;
    }
    return true;
}

static enum cause evict_cause(const struct attempt *attempt, const struct swork *victim)
{
    if (attempt->way == EVICT_LESS_URGENT)
        return CAUSE_PREEMPTED_BY_PRIORITY;
    const struct sproject *common = common_ancestor(attempt->ask.project, victim->project);
    const struct side side = claimant_side(attempt, common);
    return side.total <= side.quota ? CAUSE_RECLAIMED_FOR_QUOTA : CAUSE_RECLAIMED_FOR_SHARE;
}

static struct plan_entry *evict_entry(struct attempt *attempt, const struct swork *victim,
                                      enum plan_action action)
{
    struct plan_entry *entry = plan_add(attempt->plan, attempt->arena);
    *entry = (struct plan_entry){ .action = action,
                                  .workload = victim->workload,
                                  .cause = evict_cause(attempt, victim),
                                  .for_whom = attempt->work->workload };
    return entry;
}

/* They hold their devices until they are gone. */
static void evict_whole(struct attempt *attempt, struct swork *victim)
{
    for (struct sallocation *a = victim->first; a != NULL; a = a->next_of_work) {
        if (a->is_out)
            set_out(attempt->sched, a, false);
    }
    move_bookings(attempt->sched, victim, PUT_BACK);
    (void)evict_entry(attempt, victim, PLAN_EVICT);
}

/* All members that are taken out of the gang, which stand among the victims from here on. */
static void evict_members(struct attempt *attempt, struct victim *victims, size_t count)
{
    struct swork *work = victims->work;
    struct gap_list ranks = { arena_new(attempt->arena, count, sizeof(*ranks.items)), 0 };
    for (size_t i = 0; i < count; i++) {
        if (victims[i].work != work || victims[i].member == NULL)
            continue;
        move_booking(attempt->sched, victims[i].member, PUT_BACK);
        ranks.items[ranks.count++].rank = victims[i].member->allocation->r.rank;
        victims[i].work = NULL;
    }
    evict_entry(attempt, work, PLAN_SHRINK)->ranks = ranks;
}

static void evict(struct attempt *attempt, const struct victims *victims)
{
    for (size_t i = 0; i < victims->count; i++) {
        struct victim *victim = &victims->items[i];
        if (victim->work != NULL && victim->member == NULL)
            evict_whole(attempt, victim->work);
    }
    for (size_t i = 0; i < victims->count; i++) {
        struct victim *victim = &victims->items[i];
        if (victim->work != NULL && victim->member != NULL && !victim->work->is_leaving)
            evict_members(attempt, victim, victims->count - i);
    }
}

bool reclaim_is_entitled(const struct attempt *attempt)
{
    bool is_inside = claimant_is_inside(attempt, attempt->ask.project);
    for (const struct sproject *p = attempt->ask.project; p->parent != NULL && !is_inside;
         p = p->parent)
        is_inside = claimant_is_inside(attempt, p->parent);
    return is_inside;
}

/* Work of its own project that is less urgent. */
static bool has_less_urgent(const struct attempt *attempt, int64_t class_number)
{
    const struct skip_list *active = &attempt->ask.project->active[class_number];
    for (const struct skip_node *n = skip_first(active); n != NULL; n = skip_next(n)) {
        const struct swork *other = n->item;
        if (!is_less_urgent(attempt, other))
            return false;
        if (!other->is_leaving)
            return true;
    }
    return false;
}

static bool has_victims(const struct attempt *attempt, int64_t class_number)
{
    if (attempt->way == EVICT_LESS_URGENT)
        return has_less_urgent(attempt, class_number);
    return reclaim_next_borrower(attempt, &attempt->sched->root, class_number) != NULL;
}

/* Somebody to evict that way: for its class, or for the cores that go with it. */
static bool is_anybody(const struct attempt *attempt)
{
    const struct sched *sched = attempt->sched;
    if (attempt->way == EVICT_BORROWED && !reclaim_is_entitled(attempt))
        return false;
    for (size_t c = 0; c < sched->class_count; c++) {
        bool matters = (int64_t)c == attempt->ask.class_number ||
                       state_class(sched->state, (int64_t)c)->r.kind == CLASS_CPU;
        if (matters && sched->classes[c].active_count > 0 && has_victims(attempt, (int64_t)c))
            return true;
    }
    return false;
}

bool reclaim_may_help(const struct attempt *attempt)
{
    return is_anybody(attempt) && place_if_empty(attempt->sched, &attempt->fitting);
}

bool reclaim_is_thinkable(struct attempt attempt)
{
    attempt.way = EVICT_BORROWED;
    bool is_thinkable = is_anybody(&attempt);
    attempt.way = EVICT_LESS_URGENT;
    return is_thinkable || is_anybody(&attempt);
}

/* For a claim within the quota alone. */
static bool may_take_straddlers(const struct attempt *attempt)
{
    const struct suse *use = &attempt->ask.project->uses[attempt->ask.class_number];
    return attempt->way == EVICT_BORROWED &&
           own_staying(use) + use->own_claimed + attempt->ask.charge <= use->own_quota;
}

/* Takes out whom it takes; false: it would not fit even then, and nothing was done. */
static bool gather_enough(struct attempt *attempt, struct victims *victims)
{
    size_t mark = shadow_mark(attempt->sched);
    attempt->takes_straddlers = false;
    if (gather_all(attempt, victims))
        return true;
    shadow_rollback(attempt->sched, mark);
    victims->count = 0;
    attempt->takes_straddlers = may_take_straddlers(attempt);
    return attempt->takes_straddlers && gather_all(attempt, victims);
}

/* Whom to evict, taken out already; false: it would not do, and who was taken out stays so. */
static bool choose(struct attempt *attempt, struct victims *victims)
{
    if (!gather_enough(attempt, victims))
        return false;
    prune(attempt, victims);
    attempt->lacks_progress = !makes_progress(attempt, victims);
    return !attempt->lacks_progress;
}

bool reclaim(struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    struct victims victims = { 0 };
    promise_refresh_all(attempt); /* before anything is taken out */
    size_t mark = shadow_mark(sched);
    window_let_in(attempt);
    move_stopping(attempt, TAKE_OUT);
    /* What is being stopped already may be enough: then there is only to wait. */
    bool is_enough = reclaim_would_fit(attempt);
    if (is_enough || !choose(attempt, &victims)) {
        window_let_out(attempt);
        shadow_rollback(sched, mark);
        return false;
    }
    attempt->members = place_all(sched, &attempt->fitting, attempt->arena);
    move_stopping(attempt, PUT_BACK);
    window_let_out(attempt);
    attempt->is_kept = !promise_allows(attempt, attempt->members);
    if (attempt->is_kept) {
        shadow_rollback(sched, mark);
        return false;
    }
    evict(attempt, &victims);
    attempt_hold(attempt, attempt->members);
    return true;
}

bool reclaim_could(struct attempt *attempt)
{
    static const enum evict_way ways[] = { EVICT_BORROWED, EVICT_LESS_URGENT };
    bool could = false;
    for (size_t i = 0; i < COUNT_OF(ways) && !could; i++) {
        size_t mark = shadow_mark(attempt->sched);
        struct victims victims = { 0 };
        attempt->way = ways[i];
        could = reclaim_may_help(attempt) && choose(attempt, &victims);
        shadow_rollback(attempt->sched, mark);
    }
    return could;
}

bool reclaim_hold(struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    attempt->members = NULL;
    window_let_in(attempt);
    move_stopping(attempt, TAKE_OUT);
    if (quota_admits(sched, &attempt->ask, ADMIT_FUTURE, NULL) == ADMIT_OK)
        attempt->members = place_all(sched, &attempt->fitting, attempt->arena);
    move_stopping(attempt, PUT_BACK);
    window_let_out(attempt);
    if (attempt->members == NULL)
        return false;
    attempt_hold(attempt, attempt->members);
    return true;
}

bool reclaim_admits_later(struct attempt *attempt)
{
    move_stopping(attempt, TAKE_OUT);
    bool is_admitted = quota_admits(attempt->sched, &attempt->ask, ADMIT_FUTURE, NULL) == ADMIT_OK;
    move_stopping(attempt, PUT_BACK);
    return is_admitted;
}

bool reclaim_needs_only_time(struct attempt *attempt)
{
    size_t mark = shadow_mark(attempt->sched);
    window_let_in(attempt);
    move_stopping(attempt, TAKE_OUT);
    bool would_fit = reclaim_would_fit(attempt);
    shadow_rollback(attempt->sched, mark);
    return would_fit;
}

bool reclaim_is_pending(const struct sched *sched, const struct swork *work)
{
    size_t members = work->claim != NULL ? (size_t)members_least(&work->workload->r) : 0;
    for (const struct skip_node *n = skip_first(&sched->stopping); n != NULL; n = skip_next(n)) {
        const struct sallocation *a = n->item;
        bool may_be = (id_is_none(a->evictor) || work->is_moved) && !window_is_for(a);
        for (size_t i = 0; i < members && may_be; i++)
            if (work->claim[i].node == a->node->node)
                return true;
    }
    return false;
}
