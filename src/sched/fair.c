/*
 * fair.c - fair shares of all projects, class by class, from the whole cluster down.
 *
 * A project's share is divided among its children; work given directly to a project that has
 * children is one more child, with what their quotas leave of its own. Shares depend on what
 * everybody has and asks for, so they are made anew at the beginning of a pass, for the
 * classes of which that changed.
 */
#include "sched/internal.h"

static int64_t requestable(const struct suse *use, int64_t demand)
{
    return use->limit == UNBOUNDED ? demand : MIN_OF(demand, use->limit);
}

/* What the project used lately, where that counts. */
static int64_t past_of(const struct sched *sched, const struct sproject *project,
                       int64_t class_number)
{
    if (sched->state->settings.history_k_milli == 0)
        return 0;
    return project_past_ppm(sched->state, project->project, class_number,
                            sched->classes[class_number].fair_at);
}

/* The work of the project itself alone. */
static int64_t own_past_of(const struct sched *sched, const struct sproject *project,
                           int64_t class_number)
{
    int64_t past = past_of(sched, project, class_number);
    for (const struct sproject *child = project->first_child; child != NULL && past > 0;
         child = child->next_sibling)
        past -= past_of(sched, child, class_number);
    return MAX_OF(past, INT64_C(0));
}

void fair_age(struct sched *sched)
{
    static const int64_t cycle_s = 1;
    for (size_t c = 0; c < sched->class_count; c++) {
        struct sclass *class = &sched->classes[c];
        bool is_old = !mono_before(sched->now, mono_add_s(class->fair_at, cycle_s));
        if (class->is_fair && (!is_old || sched->state->settings.history_k_milli == 0))
            continue;
        class->is_fair = false;
        class->fair_at = sched->now;
    }
}

static struct share_party child_party(const struct sched *sched, const struct sproject *child,
                                      int64_t class_number)
{
    const struct suse *use = &child->uses[class_number];
    return (struct share_party){ .quota = use->quota,
                                 .never_lent = use->never_lent,
                                 .requestable = requestable(use, use->charged + use->pending),
                                 .weight = use->weight,
                                 .priority = child->project->r.priority,
                                 .past_ppm = past_of(sched, child, class_number) };
}

/* The work of the project itself, beside its children. */
static struct share_party own_party(const struct sched *sched, const struct sproject *project,
                                    int64_t class_number)
{
    const struct suse *use = &project->uses[class_number];
    return (struct share_party){ .quota = use->own_quota,
                                 .requestable =
                                     requestable(use, use->own_charged + use->own_pending),
                                 .weight = use->weight,
                                 .priority = project->project->r.priority,
                                 .past_ppm = own_past_of(sched, project, class_number) };
}

/* Who may reclaim up to a share looks again when shares have changed. */
static void fair_set(struct sched *sched, int64_t *fair, int64_t class_number, int64_t share)
{
    if (*fair == share)
        return;
    *fair = share;
    sched->moves++;
    if (sched->state->settings.reclaim_to != RECLAIM_TO_FAIR_SHARE)
        return;
    sched->classes[class_number].evictable = ++sched->clock;
    sched->classes[class_number].promise.is_fresh = false;
}

static void divide(struct sched *sched, struct sproject *parent, int64_t class_number,
                   int64_t amount)
{
    sched->parties.count = 0;
    bool has_own = parent->parent != NULL;
    bool ages = sched->state->settings.history_k_milli != 0; /* everywhere, all the time */
    if (has_own)
        vec_push(&sched->parties, own_party(sched, parent, class_number));
    for (const struct sproject *child = parent->first_child; child != NULL;
         child = child->next_sibling)
        vec_push(&sched->parties, child_party(sched, child, class_number));
    share_split(sched->parties.items, sched->parties.count, amount,
                sched->state->settings.history_k_milli);
    const struct share_party *party = sched->parties.items;
    if (has_own)
        fair_set(sched, &parent->uses[class_number].own_fair, class_number, (party++)->share);
    for (struct sproject *child = parent->first_child; child != NULL; child = child->next_sibling) {
        struct suse *use = &child->uses[class_number];
        if (use->fair != party->share || use->is_stale || ages)
            vec_push(&sched->undivided, child);
        fair_set(sched, &use->fair, class_number, (party++)->share);
    }
}

/* From the whole cluster down, only where something has changed: the share, or below it what
 * divides it. */
static void divide_all(struct sched *sched, int64_t class_number, int64_t amount)
{
    divide(sched, &sched->root, class_number, amount);
    while (sched->undivided.count > 0) {
        struct sproject *project = sched->undivided.items[--sched->undivided.count];
        struct suse *use = &project->uses[class_number];
        use->is_stale = false;
        if (project->first_child != NULL)
            divide(sched, project, class_number, use->fair);
        else
            fair_set(sched, &use->own_fair, class_number, use->fair);
    }
}

/* Claims that lacked progress are looked at again when what is lacking may have changed: with
 * the shares, which follow from the same numbers. */
static void settle_claims(struct sched *sched)
{
    sched->is_unsettled = false;
    sched->settled = ++sched->clock;
    for (size_t c = 0; c < sched->class_count; c++)
        sched->classes[c].promise.is_fresh = false;
}

void fair_refresh(struct sched *sched)
{
    bool is_any_new = false;
    for (size_t c = 0; c < sched->class_count; c++) {
        struct sclass *class = &sched->classes[c];
        int64_t class_number = (int64_t)c;
        if (class->is_fair)
            continue;
        /* What runs on drained nodes counts as long as it runs there. */
        int64_t amount =
            MAX_OF(class->capacity_milli - class->reserved_milli,
                   class->free_milli - class->shut_milli + sched->root.uses[c].charged);
        divide_all(sched, class_number, amount);
        class->is_fair = true;
        is_any_new = true;
    }
    if (is_any_new && sched->is_unsettled)
        settle_claims(sched);
}
