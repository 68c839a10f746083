/* order.c - who comes before whom: the tree of projects, and work that has a promise. */
#include "base/wide.h"
#include "sched/internal.h"

static int64_t first_class(const struct sched *sched, const struct sgroup *group)
{
    size_t count = request_class_count(sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, &group->request, i);
        if (class_number >= 0)
            return class_number;
    }
    return -1;
}

struct ask order_ask(const struct sched *sched, const struct sgroup *group, int64_t class_number)
{
    int64_t each = request_charge(sched->state, &group->request, class_number);
    return (struct ask){ group->project, class_number, group->members * each, group->is_fixed };
}

struct rank order_rank(const struct sched *sched, const struct sproject *project,
                       const struct sgroup *group, enum rank_of side)
{
    struct rank rank = { .priority = project->project->r.priority, .order = project->order };
    int64_t class_number = first_class(sched, group);
    if (class_number < 0)
        return rank;
    const struct suse *use = &project->uses[class_number];
    const struct ask ask = order_ask(sched, group, class_number);
    int64_t quota = side == SUBTREE ? use->quota : use->own_quota;
    rank.total = ask.charge + (side == SUBTREE ? use->charged + use->claimed
                                               : use->own_charged + use->own_claimed);
    rank.fair = side == SUBTREE ? use->fair : use->own_fair;
    rank.is_in_share = rank.total <= rank.fair;
    rank.is_in_quota = rank.total <= quota;
    return rank;
}

/* Less of its fair share used; without any share, after those who have one. */
static int compare_use(const struct rank *a, const struct rank *b)
{
    if (a->fair == 0 || b->fair == 0)
        return (a->fair == 0) - (b->fair == 0);
    wide left = (wide)a->total * b->fair;
    wide right = (wide)b->total * a->fair;
    return (left > right) - (left < right);
}

/* What turns do not change: below 0 when `a` comes first, 0 when it is a matter of turns. */
static int compare_claims(const struct rank *a, const struct rank *b)
{
    if (a->is_in_share != b->is_in_share)
        return a->is_in_share ? -1 : 1;
    if (a->is_in_quota != b->is_in_quota)
        return a->is_in_quota ? -1 : 1;
    return (a->priority < b->priority) - (a->priority > b->priority);
}

bool order_before(const struct rank *a, const struct rank *b)
{
    int claims = compare_claims(a, b);
    int use = claims != 0 ? claims : compare_use(a, b);
    return use != 0 ? use < 0 : a->order < b->order;
}

const struct sproject *common_ancestor(const struct sproject *a, const struct sproject *b)
{
    while (a != b) {
        if (a->depth >= b->depth)
            a = a->parent;
        else
            b = b->parent;
    }
    return a;
}

struct sproject *side_below(struct sproject *project, const struct sproject *common)
{
    while (project->parent != common)
        project = project->parent;
    return project;
}

static struct rank rank_below(const struct sched *sched, const struct swork *work,
                              const struct sproject *common)
{
    bool is_own = work->project == common;
    return order_rank(sched, is_own ? work->project : side_below(work->project, common),
                      work->group, is_own ? OWN_QUEUE : SUBTREE);
}

void order_note_blocked(struct sched *sched, struct sproject *project, int64_t class_number)
{
    for (struct sproject *p = project; p->parent != NULL; p = p->parent)
        p->waits[class_number].blocked = sched->pass;
}

/* Behind blocked work of its own side it can come before nobody of another. */
static bool is_behind_own(const struct sched *sched, const struct swork *work,
                          const struct sproject *common, int64_t class_number)
{
    for (const struct sproject *p = work->project; p != common; p = p->parent) {
        if (p->waits[class_number].blocked == sched->pass)
            return true;
    }
    return false;
}

/* Between users that is a matter of turns: what one of them was promised stands. */
static bool is_ahead_in_project(const struct swork *work, const struct swork *of)
{
    bool is_same_user =
        work->group == NULL || of->group == NULL || work->group->user == of->group->user;
    return is_same_user ? skip_compare(work->key, of->key) < 0 : work->key.major < of->key.major;
}

bool order_is_ahead(const struct sched *sched, const struct swork *work, const struct swork *of,
                    int64_t class_number)
{
    if (work->project == of->project)
        return is_ahead_in_project(work, of);
    const struct sproject *common = common_ancestor(work->project, of->project);
    if (is_behind_own(sched, work, common, class_number))
        return false;
    const struct rank rank = rank_below(sched, work, common);
    const struct rank other = rank_below(sched, of, common);
    return compare_claims(&rank, &other) < 0;
}
