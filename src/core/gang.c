/*
 * gang.c - attempts that go on without some of their members.
 *
 * A member that is lost with its node or device leaves a gap. While at least members_min are left
 * the attempt simply goes on; with fewer it is short, and waits gang_repair_s for others to take
 * their places before it is requeued whole. A gap is closed by a new allocation of the same attempt
 * and rank. Of elastic gangs gaps are also made by reclaim, and are there from the beginning where
 * not all members found room.
 */
#include <string.h>

#include "core/lifecycle.h"

void gang_load(struct decision *d, struct workload_image *image)
{
    const struct gang *gang = state_gang(d->state, image->workload->r.id);
    image->gang = (struct gang_record){ .workload = image->workload->r.id };
    if (gang == NULL)
        return;
    /* The first event of the decision may drop the state's own list. */
    image->gang = gang->r;
    image->gang.missing.items =
        arena_new(d->arena, gang->r.missing.count, sizeof(*gang->r.missing.items));
    memcpy(image->gang.missing.items, gang->r.missing.items,
           gang->r.missing.count * sizeof(*gang->r.missing.items));
}

static int64_t left_of(const struct workload_image *image)
{
    return image->workload->r.members - (int64_t)image->gang.missing.count;
}

static bool is_on(const struct workload_image *image)
{
    return image->next.state == WL_STARTING || image->next.state == WL_RUNNING;
}

bool gang_is_short(const struct workload_image *image)
{
    return image->gang.short_since.ns != 0;
}

bool gang_has_dropped(struct decision *d, struct allocation *allocation)
{
    const struct workload *workload = allocation->workload;
    const struct workload_image *image = id_map_get(&d->images, workload->r.id);
    enum workload_state state = image != NULL ? image->next.state : workload->r.state;
    if (state != WL_STARTING && state != WL_RUNNING)
        return false;
    switch (allocation_image(d, allocation)->state) {
    case AL_STOPPING:
    case AL_CLEANING:
    case AL_QUARANTINED:
        return true;
    case AL_LOST:
        return workload->r.on_contact_loss != LOSS_KEEP;
    case AL_NONE:
    case AL_STARTING:
    case AL_RUNNING:
    case AL_ENDED:
    case AL_STATE_COUNT:
        break;
    }
    return false;
}

/* ---- gaps ---------------------------------------------------------------------------------- */

static void publish(struct decision *d, const struct workload_image *image)
{
    const struct project *tenant = image->workload->project->tenant;
    decide_add(d, EV_GANG_CHANGED, tenant->r.id)->gang_changed = image->gang;
}

static void gap_add(struct decision *d, struct workload_image *image, int64_t rank)
{
    const struct gap_list *old = &image->gang.missing;
    struct gap_list list = { arena_new(d->arena, old->count + 1, sizeof(*list.items)), 0 };
    size_t i = 0;
    while (i < old->count && old->items[i].rank < rank)
        list.items[list.count++] = old->items[i++];
    list.items[list.count++].rank = rank;
    while (i < old->count)
        list.items[list.count++] = old->items[i++];
    image->gang.missing = list;
}

static bool has_rank(const struct gap_list *list, int64_t rank)
{
    const struct gang_record of = { .missing = *list };
    return gang_lacks(&of, rank);
}

/* Whether it is short by now; from when on is known already where it was. */
static void judge(const struct decision *d, struct workload_image *image)
{
    bool is_short = left_of(image) < members_least(&image->workload->r);
    if (!is_short)
        image->gang.short_since = (struct mono){ 0 };
    else if (!gang_is_short(image))
        image->gang.short_since = d->now;
}

/* Says in which state it goes on: the same one, with the counters as they are now. */
static void tell(struct decision *d, struct workload_image *image, struct str why)
{
    const struct workload_record *r = &image->workload->r;
    long long left = left_of(image);
    const char *text = arena_format(d->arena, "%.*s; %lld of %lld members are left", STR_ARG(why),
                                    left, (long long)r->members);
    if (gang_is_short(image))
        text = arena_format(d->arena, "%s, of which it needs %lld: it waits for others for %lld s",
                            text, (long long)members_least(r),
                            (long long)d->state->settings.gang_repair_s);
    workload_step(d, image, image->next.state, image->next.cause, str_of(text));
}

/* Does anything of the attempt still run, besides? */
static bool has_others(struct decision *d, const struct workload_image *image,
                       const struct allocation *allocation)
{
    for (struct allocation *a = image->workload->first_allocation; a != NULL;
         a = a->next_in_workload) {
        enum allocation_state state = allocation_image(d, a)->state;
        if (a != allocation && a->r.attempt == image->next.attempt &&
            (state == AL_STARTING || state == AL_RUNNING))
            return true;
    }
    return false;
}

/* Enough are left, or others may take their places: not of work with a single attempt, nor where
 * the lost member might still run until its fence. */
static bool may_lose(struct decision *d, const struct workload_image *image,
                     const struct allocation *allocation)
{
    const struct workload_record *r = &image->workload->r;
    if (!is_on(image) || gang_lacks(&image->gang, allocation->r.rank) ||
        !has_others(d, image, allocation))
        return false;
    if (left_of(image) > members_least(r))
        return true;
    return r->restart != RESTART_NEVER && r->on_contact_loss != LOSS_FENCE &&
           d->state->settings.gang_repair_s > 0;
}

static void lose(struct decision *d, struct workload_image *image, int64_t rank, struct str detail)
{
    gap_add(d, image, rank);
    judge(d, image);
    publish(d, image);
    tell(d, image, detail);
}

bool gang_loses(struct decision *d, struct workload_image *image, struct allocation *allocation,
                struct str detail)
{
    const struct workload *workload = image->workload;
    if (!may_lose(d, image, allocation))
        return false;
    if (workload->r.restart == RESTART_NEVER)
        image->gang.grow_after = (struct mono){ INT64_MAX };
    else if (workload->r.on_contact_loss == LOSS_FENCE)
        image->gang.grow_after = mono_add_s(d->now, workload_fence_s(d, workload));
    lose(d, image, allocation->r.rank, detail);
    return true;
}

bool gang_gives_up(struct decision *d, struct workload_image *image, struct allocation *allocation,
                   struct str detail)
{
    bool is_spare = left_of(image) > members_least(&image->workload->r);
    if (image->next.state != WL_RUNNING || !is_spare || !has_others(d, image, allocation))
        return false;
    struct mono at = mono_add_s(d->now, d->state->settings.start_timeout_s);
    if (mono_before(image->gang.grow_after, at))
        image->gang.grow_after = at;
    lose(d, image, allocation->r.rank, detail);
    return true;
}

/* ---- what the scheduler does --------------------------------------------------------------- */

void gang_starts_with(struct decision *d, struct workload_image *image, size_t count)
{
    size_t all = (size_t)image->workload->r.members;
    if (count == all)
        return;
    struct gap_list list = { arena_new(d->arena, all - count, sizeof(*list.items)), 0 };
    while (list.count < all - count) {
        list.items[list.count].rank = (int64_t)(count + list.count);
        list.count++;
    }
    image->gang = (struct gang_record){ .workload = image->workload->r.id, .missing = list };
    publish(d, image);
}

void gang_grows(struct decision *d, struct workload_image *image, const struct gap_list *ranks)
{
    const struct gap_list *old = &image->gang.missing;
    struct gap_list list = { arena_new(d->arena, old->count, sizeof(*list.items)), 0 };
    for (size_t i = 0; i < old->count; i++) {
        if (!has_rank(ranks, old->items[i].rank))
            list.items[list.count++] = old->items[i];
    }
    image->gang.missing = list;
    judge(d, image);
    publish(d, image);
}

void gang_shrinks(struct decision *d, struct workload *workload, const struct gap_list *ranks,
                  const struct stop *stop)
{
    struct workload_image *image = workload_image(d, workload);
    if (!is_on(image))
        return;
    for (struct allocation *a = workload->first_allocation; a != NULL; a = a->next_in_workload) {
        struct allocation_image *member = allocation_image(d, a);
        if (a->r.attempt != image->next.attempt || !has_rank(ranks, a->r.rank) ||
            (member->state != AL_STARTING && member->state != AL_RUNNING))
            continue;
        member->stop_cause = stop->cause;
        member->evictor = stop->evictor;
        allocation_step(d, a, AL_STOPPING);
        gap_add(d, image, a->r.rank);
    }
    image->next.evictions++;
    judge(d, image);
    publish(d, image);
    tell(d, image, stop->detail);
}

void gang_is_stale(struct decision *d, struct workload *workload)
{
    const struct id nobody = { 0 };
    const struct workload_image *image = workload_image(d, workload);
    if (is_on(image) && gang_is_short(image))
        workload_evict(d, workload, CAUSE_STALE_GANG, nobody);
}
