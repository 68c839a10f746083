/*
 * quota.c - what projects use, and whether they may use more.
 *
 * A project's use counts in all projects above it; the root counts for the whole cluster. What a
 * project never lends and does not use is kept free for it at every level: unmet_below.
 */
#include <assert.h>

#include "sched/internal.h"

struct sproject *sproject_of(const struct sched *sched, const struct project *project)
{
    return id_map_get(&sched->projects, project->r.id);
}

/* ---- the tree ------------------------------------------------------------------------------ */

void quota_add_project(struct sched *sched, struct project *project)
{
    struct sproject *added = pool_new(&sched->pool, sizeof(*added));
    struct sproject *parent =
        project->parent != NULL ? sproject_of(sched, project->parent) : &sched->root;
    added->project = project;
    added->order = project->r.created_sequence;
    added->parent = parent;
    added->depth = parent->depth + 1;
    added->uses = mem_new(sched->class_count, sizeof(*added->uses));
    added->active = mem_new(sched->class_count, sizeof(*added->active));
    added->waits = mem_new(sched->class_count, sizeof(*added->waits));
    added->prev_sibling = parent->last_child;
    if (parent->last_child != NULL)
        parent->last_child->next_sibling = added;
    else
        parent->first_child = added;
    parent->last_child = added;
    added->prev = sched->last_project;
    if (sched->last_project != NULL)
        sched->last_project->next = added;
    else
        sched->first_project = added;
    sched->last_project = added;
    id_map_put(&sched->projects, project->r.id, added);
}

void quota_remove_project(struct sched *sched, struct id id)
{
    struct sproject *project = id_map_remove(&sched->projects, id);
    assert(project != NULL && project->first_child == NULL && project->groups.count == 0);
    struct sproject *parent = project->parent;
    if (project->prev_sibling != NULL)
        project->prev_sibling->next_sibling = project->next_sibling;
    else
        parent->first_child = project->next_sibling;
    if (project->next_sibling != NULL)
        project->next_sibling->prev_sibling = project->prev_sibling;
    else
        parent->last_child = project->prev_sibling;
    if (project->prev != NULL)
        project->prev->next = project->next;
    else
        sched->first_project = project->next;
    if (project->next != NULL)
        project->next->prev = project->prev;
    else
        sched->last_project = project->prev;
    mem_free(project->uses);
    mem_free(project->active);
    mem_free(project->waits);
    str_map_done(&project->shapes);
    pool_free(&sched->pool, project, sizeof(*project));
}

static int64_t unmet(const struct suse *use)
{
    return MAX_OF(use->never_lent - use->charged - use->claimed, INT64_C(0));
}

static void quota_load(struct sproject *project, size_t class_count)
{
    for (size_t c = 0; c < class_count; c++) {
        const struct quota quota = project_quota(project->project, (int64_t)c);
        struct suse *use = &project->uses[c];
        use->quota = quota.quota_milli;
        use->limit = quota.limit_milli;
        use->weight = quota.over_quota_weight;
        use->own_quota = 0;
        use->unmet_below = 0;
        use->is_stale = true;
        use->never_lent = quota.lend_limit_milli;
    }
}

/* Children come before their parents here, so that their sums are ready. */
static void quota_conclude(struct sproject *project, size_t class_count)
{
    for (size_t c = 0; c < class_count; c++) {
        struct suse *use = &project->uses[c];
        struct suse *above = &project->parent->uses[c];
        int64_t below = use->own_quota; /* what the children added up so far */
        if (use->quota == 0)
            use->quota = below;
        use->own_quota = MAX_OF(use->quota - below, INT64_C(0));
        int64_t lend = use->never_lent;
        use->never_lent = lend == UNBOUNDED ? 0 : MAX_OF(use->quota - lend, INT64_C(0));
        above->own_quota += use->quota;
        above->unmet_below += unmet(use);
    }
}

void quota_refresh(struct sched *sched)
{
    for (size_t c = 0; c < sched->class_count; c++) {
        sched->classes[c].is_fair = false;
        sched->classes[c].promise.is_fresh = false;
        sched->root.uses[c].own_quota = 0;
        sched->root.uses[c].unmet_below = 0;
    }
    for (struct sproject *p = sched->first_project; p != NULL; p = p->next)
        quota_load(p, sched->class_count);
    for (struct sproject *p = sched->last_project; p != NULL; p = p->prev)
        quota_conclude(p, sched->class_count);
    sched->all_gained = ++sched->clock;
}

/* ---- use ----------------------------------------------------------------------------------- */

static void add_to(struct suse *use, enum use_kind kind, int64_t milli, bool is_own)
{
    switch (kind) {
    case USE_CHARGED:
        use->charged += milli;
        use->own_charged += is_own ? milli : 0;
        break;
    case USE_LEAVING:
        use->leaving += milli;
        use->own_leaving += is_own ? milli : 0;
        break;
    case USE_CLAIMED:
        use->claimed += milli;
        use->own_claimed += is_own ? milli : 0;
        break;
    case USE_FIXED:
        use->fixed += milli;
        break;
    case USE_RESERVED:
        use->reserved += milli;
        break;
    case USE_PENDING:
        use->pending += milli;
        use->own_pending += is_own ? milli : 0;
        break;
    }
}

void use_add(struct sched *sched, struct sproject *project, int64_t class_number,
             enum use_kind kind, int64_t milli)
{
    struct sclass *class = &sched->classes[class_number];
    class->is_fair = class->is_fair && sched->is_shadow; /* what a step does is not done yet */
    class->promise.is_fresh = class->promise.is_fresh && (sched->is_shadow || kind == USE_PENDING);
    sched->moves++;
    for (struct sproject *p = project; p != NULL; p = p->parent) {
        struct suse *use = &p->uses[class_number];
        touch(sched, use, sizeof(*use));
        int64_t unmet_before = unmet(use);
        add_to(use, kind, milli, p == project);
        use->is_stale = use->is_stale || !sched->is_shadow;
        int64_t change = unmet(use) - unmet_before;
        if (change == 0 || p->parent == NULL)
            continue;
        struct suse *above = &p->parent->uses[class_number];
        touch(sched, above, sizeof(*above));
        above->unmet_below += change;
    }
}

/* ---- admission ----------------------------------------------------------------------------- */

static int64_t used(const struct suse *use, enum admit_view view)
{
    return use->charged + use->claimed - (view == ADMIT_FUTURE ? use->leaving : 0);
}

static enum admission refuse(struct refusal *out, enum admission why, const struct sproject *level,
                             int64_t amount, int64_t bound)
{
    if (out != NULL)
        *out = (struct refusal){ why, level, amount, bound };
    return why;
}

/* Inside a guarantee at some level, nothing is borrowed from beyond it. Else everything that others
 * never lend must stay free once this has been taken. */
static enum admission check_lending(const struct sched *sched, const struct ask *ask,
                                    enum admit_view view, struct refusal *out)
{
    int64_t needed = ask->charge;
    for (const struct sproject *p = ask->project; p->parent != NULL; p = p->parent) {
        const struct suse *use = &p->uses[ask->class_number];
        if (used(use, view) + needed <= use->quota)
            return ADMIT_OK;
        needed += p->parent->uses[ask->class_number].unmet_below - unmet(use);
    }
    int64_t kept = needed - ask->charge;
    int64_t left = sched->classes[ask->class_number].free_milli;
    if (kept == 0 || needed <= left)
        return ADMIT_OK;
    return refuse(out, ADMIT_NOT_LENT, ask->project, MAX_OF(left - kept, INT64_C(0)), kept);
}

enum admission quota_admits(const struct sched *sched, const struct ask *ask, enum admit_view view,
                            struct refusal *out)
{
    for (const struct sproject *p = ask->project; p->parent != NULL; p = p->parent) {
        const struct suse *use = &p->uses[ask->class_number];
        int64_t in_use = used(use, view) + use->reserved;
        if (use->limit != UNBOUNDED && in_use + ask->charge > use->limit)
            return refuse(out, ADMIT_LIMIT, p, in_use, use->limit);
        if (ask->is_fixed && use->fixed + ask->charge > use->quota)
            return refuse(out, ADMIT_FIXED_QUOTA, p, use->fixed, use->quota);
    }
    return check_lending(sched, ask, view, out);
}

bool quota_is_within_limits(const struct ask *ask)
{
    for (const struct sproject *p = ask->project; p->parent != NULL; p = p->parent) {
        const struct suse *use = &p->uses[ask->class_number];
        int64_t in_use = used(use, ADMIT_NOW) + use->reserved;
        if (use->limit != UNBOUNDED && in_use + ask->charge > use->limit)
            return false;
    }
    return true;
}

int64_t sched_never_lent(const struct sched *sched, int64_t class_number)
{
    int64_t sum = 0;
    for (const struct sproject *p = sched->root.first_child; p != NULL; p = p->next_sibling)
        sum += p->uses[class_number].never_lent;
    return sum;
}

bool quota_is_inside(const struct ask *ask)
{
    const struct sproject *project = ask->project;
    const struct suse *use = &project->uses[ask->class_number];
    if (project->first_child == NULL)
        return use->charged + use->claimed + ask->charge <= use->quota;
    return use->own_charged + use->own_claimed + ask->charge <= use->own_quota;
}
