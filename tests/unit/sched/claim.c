#include "unit/sched/claim.h"

#include <assert.h>
#include <string.h>

#include "unit/sched/puzzle.h"

/* ---- facts ---------------------------------------------------------------------------------- */

static int64_t charge_of(const struct workload *w)
{
    int64_t sum = 0;
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload)
        sum += a->r.charge_milli;
    return sum;
}

static bool is_fixed(const struct workload *w)
{
    return w->r.preemptible == PREEMPTIBLE_NEVER;
}

static bool is_gone(unsigned gone, size_t i)
{
    return (gone >> i & 1) != 0;
}

/* What a subtree has once those are gone. */
static int64_t has(const struct claim *claim, const struct project *project, unsigned gone)
{
    int64_t sum = 0;
    for (size_t i = 0; i < claim->count; i++)
        if (!is_gone(gone, i) && project_is_within(claim->running[i]->project, project))
            sum += charge_of(claim->running[i]);
    return sum;
}

static int64_t has_fixed(const struct claim *claim, const struct project *project)
{
    int64_t sum = 0;
    for (size_t i = 0; i < claim->count; i++)
        if (is_fixed(claim->running[i]) && project_is_within(claim->running[i]->project, project))
            sum += charge_of(claim->running[i]);
    return sum;
}

static int64_t quota_of(const struct claim *claim, const struct project *project)
{
    return sched_quota(claim->lab->sched, project, claim->class_number);
}

static int64_t fair_of(const struct claim *claim, const struct project *project)
{
    return sched_use(claim->lab->sched, project, claim->class_number).fair_milli;
}

static bool is_to_share(const struct claim *claim)
{
    return claim->lab->state->settings.reclaim_to == RECLAIM_TO_FAIR_SHARE;
}

/* What a side may have before others take from it, or it from others. */
static int64_t bound_of(const struct claim *claim, const struct project *side)
{
    int64_t quota = quota_of(claim, side);
    bool counts_share = is_to_share(claim) && !is_fixed(claim->claimant);
    return counts_share ? MAX_OF(quota, fair_of(claim, side)) : quota;
}

/* The part of the tree that holds the project and not the other one. */
static const struct project *side_of(const struct project *project, const struct project *other)
{
    while (project->parent != NULL && !project_is_within(other, project->parent))
        project = project->parent;
    return project;
}

void claim_init(struct claim *claim, const struct lab *lab, struct workload *claimant)
{
    *claim = (struct claim){ .lab = lab, .claimant = claimant };
    claim->class_number = state_class_by_name(lab->state, STR("h100"))->r.number;
    claim->charge = claimant->r.members * claimant->r.request.gpu_milli;
    for (struct workload *w = lab->state->first_workload; w != NULL; w = w->next) {
        if (w->r.state != WL_STARTING && w->r.state != WL_RUNNING)
            continue;
        assert(claim->count < CLAIM_RUNNING_MAX);
        claim->running[claim->count++] = w;
    }
}

void claim_by(struct claim *claim, enum claim_way way)
{
    claim->way = way;
    memset(claim->allowed, 0, sizeof(claim->allowed));
}

/* ---- is it enough --------------------------------------------------------------------------- */

struct gone {
    const struct claim *claim;
    unsigned set;
};

static bool allocation_is_gone(void *arg, const struct allocation *a)
{
    const struct gone *gone = arg;
    for (size_t i = 0; i < gone->claim->count; i++)
        if (gone->claim->running[i] == a->workload)
            return is_gone(gone->set, i);
    return false;
}

static bool is_admitted(const struct claim *claim, unsigned gone)
{
    for (const struct project *p = claim->claimant->project; p != NULL; p = p->parent) {
        int64_t limit = project_quota(p, claim->class_number).limit_milli;
        if (limit != UNBOUNDED && has(claim, p, gone) + claim->charge > limit)
            return false;
        if (is_fixed(claim->claimant) && has_fixed(claim, p) + claim->charge > quota_of(claim, p))
            return false;
    }
    return true;
}

bool claim_suffices(struct claim *claim, unsigned gone)
{
    int8_t *known = &claim->suffices[gone];
    if (*known == 0) {
        struct gone arg = { claim, gone };
        struct puzzle puzzle;
        puzzle_read(&puzzle, claim->lab, claim->claimant, claim->class_number, allocation_is_gone,
                    &arg);
        bool does = is_admitted(claim, gone) &&
                    puzzle_is_solvable(&puzzle, (size_t)claim->claimant->r.members,
                                       claim->claimant->r.request.required);
        *known = does ? 2 : 1;
    }
    return *known == 2;
}

/* ---- who may go ----------------------------------------------------------------------------- */

/* Counted by priority and age, after what is never preempted, it takes its project above the
 * quota. */
static bool is_beyond_quota(const struct claim *claim, size_t victim, unsigned gone)
{
    const struct workload *v = claim->running[victim];
    int64_t sum = charge_of(v);
    for (size_t i = 0; i < claim->count; i++) {
        const struct workload *w = claim->running[i];
        bool is_more_protected =
            is_fixed(w) || w->r.priority > v->r.priority ||
            (w->r.priority == v->r.priority && w->r.submitted_sequence < v->r.submitted_sequence);
        if (w->project == v->project && is_more_protected && !is_gone(gone, i))
            sum += charge_of(w);
    }
    return sum > quota_of(claim, v->project);
}

static bool is_within_own_quota(const struct claim *claim)
{
    const struct project *own = claim->claimant->project;
    return has(claim, own, 0) + claim->charge <= quota_of(claim, own);
}

/* The rest of its path stays at or above its quotas, or the work is not covered by them. */
static bool leaves_quotas(const struct claim *claim, size_t victim, const struct project *side,
                          unsigned gone)
{
    const struct workload *v = claim->running[victim];
    bool may_straddle = claim->way == CLAIM_STRADDLING && is_beyond_quota(claim, victim, gone);
    for (const struct project *p = v->project;; p = p->parent) {
        int64_t before = has(claim, p, gone);
        bool ends_below = before - charge_of(v) < quota_of(claim, p);
        if (ends_below && (!may_straddle || before <= quota_of(claim, p)))
            return false;
        if (p == side)
            return true;
    }
}

static bool is_protected(const struct claim *claim, size_t victim, bool is_in_quota)
{
    const struct settings_record *settings = &claim->lab->state->settings;
    int64_t protect_s = is_in_quota ? settings->min_runtime_in_quota_s : settings->min_runtime_s;
    int64_t began_ns = 0;
    for (const struct allocation *a = claim->running[victim]->first_allocation; a != NULL;
         a = a->next_in_workload)
        began_ns = MAX_OF(began_ns, a->r.started.ns != 0 ? a->r.started.ns : a->r.granted.ns);
    return claim->lab->now.ns < began_ns + protect_s * NS_PER_S;
}

bool claim_may_go(const struct claim *claim, size_t victim, unsigned gone)
{
    const struct workload *v = claim->running[victim];
    const struct workload *c = claim->claimant;
    bool is_own = v->project == c->project;
    if (is_fixed(v) || is_own != (claim->way == CLAIM_LESS_URGENT))
        return false;
    if (is_own)
        return v->r.priority < c->r.priority && !is_protected(claim, victim, false);
    const struct project *mine = side_of(c->project, v->project);
    const struct project *its = side_of(v->project, c->project);
    int64_t total = has(claim, mine, gone) + claim->charge;
    return total <= bound_of(claim, mine) && has(claim, its, gone) > bound_of(claim, its) &&
           leaves_quotas(claim, victim, its, gone) &&
           !is_protected(claim, victim, total <= quota_of(claim, mine));
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the set is large */
bool claim_is_allowed(struct claim *claim, unsigned gone)
{
    int8_t *known = &claim->allowed[gone];
    if (gone == 0)
        return true;
    if (*known == 0) {
        *known = 1;
        for (size_t i = 0; i < claim->count && *known == 1; i++) {
            unsigned others = gone & ~(1u << i);
            if (is_gone(gone, i) && claim_may_go(claim, i, others) &&
                claim_is_allowed(claim, others))
                *known = 2;
        }
    }
    return *known == 2;
}

/* At the end the claimant's side is still within its bound, wherever it parts from a victim. */
static bool ends_inside(const struct claim *claim, unsigned gone)
{
    for (size_t i = 0; i < claim->count && claim->way != CLAIM_LESS_URGENT; i++) {
        const struct project *mine = side_of(claim->claimant->project, claim->running[i]->project);
        if (is_gone(gone, i) && has(claim, mine, gone) + claim->charge > bound_of(claim, mine))
            return false;
    }
    return true;
}

/* ---- what is lacking ------------------------------------------------------------------------ */

struct lack {
    int64_t quota, share;
};

static void lack_add(const struct claim *claim, const struct project *p, int64_t amount,
                     struct lack *sum)
{
    const struct class_use use = sched_use(claim->lab->sched, p, claim->class_number);
    int64_t wanted = use.allocated_milli + use.pending_milli;
    if (use.limit_milli != UNBOUNDED)
        wanted = MIN_OF(wanted, use.limit_milli);
    sum->quota += MAX_OF(MIN_OF(use.quota_milli, wanted) - amount, INT64_C(0));
    sum->share += MAX_OF(use.fair_milli - amount, INT64_C(0));
}

/* Of all children of a project, or all tenants. */
static struct lack lack_below(const struct claim *claim, const struct project *parent,
                              unsigned gone, bool is_started)
{
    struct lack sum = { 0 };
    const struct project *p =
        parent != NULL ? parent->first_child : claim->lab->state->first_tenant;
    for (; p != NULL; p = p->next_sibling) {
        int64_t amount = has(claim, p, gone);
        if (is_started && project_is_within(claim->claimant->project, p))
            amount += claim->charge;
        lack_add(claim, p, amount, &sum);
    }
    return sum;
}

bool claim_makes_progress(const struct claim *claim, unsigned gone)
{
    for (size_t i = 0; i < claim->count; i++) {
        if (!is_gone(gone, i))
            continue;
        const struct project *side = side_of(claim->claimant->project, claim->running[i]->project);
        struct lack before = lack_below(claim, side->parent, 0, false);
        struct lack after = lack_below(claim, side->parent, gone, true);
        if (after.quota > before.quota ||
            (after.quota == before.quota && after.share >= before.share))
            return false;
    }
    return true;
}

bool claim_is_valid(struct claim *claim, unsigned gone)
{
    if (claim->way == CLAIM_STRADDLING && !is_within_own_quota(claim))
        return false;
    return claim_is_allowed(claim, gone) && claim_suffices(claim, gone) &&
           ends_inside(claim, gone) &&
           (claim->way != CLAIM_BORROWED || claim_makes_progress(claim, gone));
}

bool claim_is_possible(struct claim *claim)
{
    for (unsigned gone = 1; gone >> claim->count == 0; gone++)
        if (claim_is_valid(claim, gone))
            return true;
    return false;
}

static bool ends_in_quota(const struct claim *claim, unsigned gone)
{
    for (size_t i = 0; i < claim->count; i++) {
        const struct project *mine = side_of(claim->claimant->project, claim->running[i]->project);
        if (is_gone(gone, i) && has(claim, mine, gone) + claim->charge > quota_of(claim, mine))
            return false;
    }
    return true;
}

bool claim_is_guaranteed(struct claim *claim)
{
    unsigned first = 0;
    for (size_t i = 0; i < claim->count; i++)
        first |= claim_may_go(claim, i, 0) ? 1u << i : 0;
    for (unsigned gone = first; gone != 0; gone = (gone - 1) & first)
        if (claim_is_valid(claim, gone) && ends_in_quota(claim, gone))
            return true;
    return false;
}

/* ---- preference ----------------------------------------------------------------------------- */

static int64_t lost(const struct claim *claim, const struct workload *w)
{
    int64_t sum = 0;
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload) {
        int64_t began_ns = a->r.started.ns != 0 ? a->r.started.ns : a->r.granted.ns;
        sum += (claim->lab->now.ns - began_ns) / NS_PER_MS * a->r.charge_milli;
    }
    return sum;
}

bool claim_is_preferred(const struct claim *claim, size_t first, size_t second)
{
    const struct workload *a = claim->running[first];
    const struct workload *b = claim->running[second];
    if (a->r.priority != b->r.priority)
        return a->r.priority < b->r.priority;
    bool a_over = has(claim, a->project, 0) > fair_of(claim, a->project);
    bool b_over = has(claim, b->project, 0) > fair_of(claim, b->project);
    if (a_over != b_over)
        return a_over;
    if (lost(claim, a) != lost(claim, b))
        return lost(claim, a) < lost(claim, b);
    return a->r.submitted_sequence > b->r.submitted_sequence;
}

bool claim_is_unbounded(const struct claim *claim)
{
    unsigned gone = 0;
    for (size_t turn = 0; turn < claim->count; turn++) {
        size_t next = claim->count;
        for (size_t i = 0; i < claim->count; i++) {
            bool may = (gone >> i & 1) == 0 && claim_may_go(claim, i, 0);
            if (may && (next == claim->count || claim_is_preferred(claim, i, next)))
                next = i;
        }
        if (next == claim->count)
            return true;
        if (!claim_may_go(claim, next, gone))
            return false;
        gone |= 1u << next;
    }
    return true;
}

unsigned claim_victims(const struct claim *claim, const struct plan *plan)
{
    unsigned set = 0;
    for (size_t k = 0; k < plan->count; k++) {
        const struct plan_entry *entry = &plan->entries[k];
        for (size_t i = 0; i < claim->count && entry->action == PLAN_EVICT; i++)
            set |= claim->running[i] == entry->workload ? 1u << i : 0;
    }
    return set;
}
