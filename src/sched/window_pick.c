/*
 * window_pick.c - which devices the windows take.
 *
 * By order of their starts, every window that is open or next takes as many as it has: those its
 * own work uses; then what is free or will be by its start, from the emptiest node on, so that
 * whole nodes come together; then what takes the fewest evictions. Windows that overlap never take
 * the same device. What is taken by work that is never preempted and does not say that it ends in
 * time, is nobody's to take.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sched/internal.h"

/* What has to happen before a device can be had. */
enum cost {
    COST_OURS,    /* the window's own work uses it */
    COST_NOTHING, /* free, or will be */
    COST_EVICT,   /* somebody has to go */
    COST_NEVER,
};

/* A device that could be taken. */
struct offer {
    struct snode *node;
    size_t node_number;
    int64_t device;
    size_t ordinal; /* among the devices of all nodes that are usable */
    enum cost cost;
    size_t sharers;       /* COST_EVICT: how many have to go */
    struct swork *holder; /* COST_EVICT: the only one, or one of them */
    size_t gain;          /* devices that its going gives */
    size_t node_taken;    /* devices of the node that are not free */
};

struct market {
    struct sched *sched;
    struct sreservation *window;
    struct offer *offers;
    size_t count;
    size_t ordinals;    /* devices looked at so far */
    size_t *newest;     /* by ordinal: the newest pick of the device, from 1; 0: none */
    VEC(size_t) before; /* by pick: the one of the same device before it, likewise */
};

static void market_done(struct market *market)
{
    vec_done(&market->before);
}
DEFINE_CLEANUP_AT(market, struct market, market_done)

/* ---- what a device costs ------------------------------------------------------------------- */

/* Its declared end is no later than the window's start. */
static bool ends_in_time(const struct market *market, const struct sallocation *a)
{
    const struct workload_record *r = &a->work->workload->r;
    const struct reservation_record *window = &market->window->reservation->r;
    if (r->time_limit_s == 0)
        return false;
    struct mono since =
        a->allocation->r.started.ns != 0 ? a->allocation->r.started : market->sched->now;
    struct mono end = mono_add_s(since, r->time_limit_s);
    return window_wall(market->sched, end).ns <= window->window_start.ns;
}

static enum cost cost_of_tied(const struct market *market, const struct sallocation *a)
{
    const struct reservation_record *own = &market->window->reservation->r;
    const struct reservation_record *other = &a->work->tied->reservation->r;
    if (a->work->tied == market->window)
        return COST_OURS;
    return other->window_end.ns <= own->window_start.ns ? COST_NOTHING : COST_NEVER;
}

static enum cost cost_of(const struct market *market, const struct sallocation *a)
{
    switch (a->state) {
    case AL_CLEANING:
        return COST_NOTHING;
    case AL_STOPPING:
        if (a->is_reserved)
            return cost_of_tied(market, a) == COST_NEVER ? COST_NEVER : COST_NOTHING;
        return id_is_none(a->evictor) || window_is_for(a) ? COST_NOTHING : COST_NEVER;
    case AL_STARTING:
    case AL_RUNNING:
        if (a->is_reserved)
            return cost_of_tied(market, a);
        if (ends_in_time(market, a))
            return COST_NOTHING;
        return a->is_fixed ? COST_NEVER : COST_EVICT;
    case AL_QUARANTINED:
    case AL_LOST:
    case AL_NONE:
    case AL_ENDED:
    case AL_STATE_COUNT:
        break;
    }
    return COST_NEVER;
}

static void offer_meet(struct offer *offer, enum cost cost, const struct sallocation *a)
{
    if (cost == COST_EVICT && offer->cost <= COST_EVICT) {
        offer->sharers++;
        offer->holder = a->work;
    }
    bool is_ours = (offer->cost == COST_OURS || cost == COST_OURS) && offer->cost != COST_NEVER &&
                   cost != COST_NEVER;
    offer->cost = is_ours ? COST_OURS : MAX_OF(offer->cost, cost);
}

/* One node's devices of the class, each with what stands in the way. */
static void offer_node(struct market *market, struct snode *node, size_t number)
{
    struct offer *of_node = &market->offers[market->count];
    size_t first = market->count;
    size_t taken = 0;
    for (size_t i = 0; i < node->device_count; i++) {
        const struct sdevice *device = &node->devices[i];
        if (!device->is_usable ||
            device->class_number != market->window->reservation->r.class_number)
            continue;
        market->offers[market->count++] = (struct offer){ .node = node,
                                                          .node_number = number,
                                                          .device = device->index,
                                                          .ordinal = market->ordinals + i,
                                                          .cost = COST_NOTHING };
    }
    market->ordinals += node->device_count;
    size_t count = market->count - first;
    for (const struct sallocation *a = node->allocations; a != NULL && count > 0;
         a = a->next_on_node) {
        enum cost cost = cost_of(market, a);
        for (size_t k = 0; k < a->shares.count; k++) {
            for (size_t i = 0; i < count; i++) {
                if (of_node[i].device == a->shares.items[k].device)
                    offer_meet(&of_node[i], cost, a);
            }
        }
    }
    for (size_t i = 0; i < count; i++)
        taken += of_node[i].cost > COST_NOTHING;
    for (size_t i = 0; i < count; i++)
        of_node[i].node_taken = taken;
}

/* Another window that overlaps has it already. */
static bool is_picked(const struct market *market, const struct offer *offer)
{
    const struct sched *sched = market->sched;
    struct window own = reservation_window(&market->window->reservation->r);
    size_t at = market->newest[offer->ordinal];
    while (at != 0) {
        const struct pick *pick = &sched->picks.items[at - 1];
        if (window_overlaps(own, reservation_window(&pick->window->reservation->r)))
            return true;
        assert(market->before.items != NULL); /* there is one for each pick */
        at = market->before.items[at - 1];
    }
    return false;
}

static void pick_add(struct market *market, const struct offer *offer)
{
    const struct pick pick = { market->window, offer->node, offer->device, offer->cost == COST_OURS,
                               false };
    vec_push(&market->before, market->newest[offer->ordinal]);
    vec_push(&market->sched->picks, pick);
    market->newest[offer->ordinal] = market->sched->picks.count;
}

/* ---- who goes ------------------------------------------------------------------------------ */

static uint64_t submitted(const struct offer *offer)
{
    return offer->holder != NULL ? offer->holder->workload->r.submitted_sequence : 0;
}

static int by_holder(const void *left, const void *right)
{
    const struct offer *a = left;
    const struct offer *b = right;
    return (submitted(a) > submitted(b)) - (submitted(a) < submitted(b));
}

/* How many devices come free when a holder goes; only its own count, not those it shares. */
static void count_gains(struct offer *offers, size_t count)
{
    qsort(offers, count, sizeof(*offers), by_holder);
    for (size_t i = 0; i < count;) {
        size_t end = i;
        size_t gain = 0;
        for (; end < count && offers[end].holder == offers[i].holder; end++)
            gain += offers[end].sharers == 1;
        for (; i < end; i++)
            offers[i].gain = offers[i].sharers == 1 ? gain : 1;
    }
}

/* Our own, then what costs nothing on the emptiest nodes, then most devices for an eviction; the
 * emptiest node again, then the least urgent, then the youngest. */
static int by_cost(const void *left, const void *right)
{
    const struct offer *a = left;
    const struct offer *b = right;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    if (a->cost == COST_EVICT && a->gain * b->sharers != b->gain * a->sharers)
        return a->gain * b->sharers > b->gain * a->sharers ? -1 : 1;
    if (a->node_taken != b->node_taken)
        return a->node_taken < b->node_taken ? -1 : 1;
    if (a->node_number != b->node_number)
        return a->node_number < b->node_number ? -1 : 1;
    if (a->cost == COST_EVICT && a->holder != b->holder) {
        int64_t first = a->holder->workload->r.priority;
        int64_t second = b->holder->workload->r.priority;
        if (first != second)
            return first < second ? -1 : 1;
        return submitted(a) > submitted(b) ? -1 : 1;
    }
    return (a->device > b->device) - (a->device < b->device);
}

/* ---- taking -------------------------------------------------------------------------------- */

static size_t offers_most(const struct sched *sched)
{
    size_t most = 0;
    for (const struct snode *node = sched->first_node; node != NULL; node = node->next)
        most += node->is_usable ? node->device_count : 0;
    return most;
}

static void offers_make(struct market *market)
{
    size_t number = 0;
    market->count = 0;
    market->ordinals = 0;
    for (struct snode *node = market->sched->first_node; node != NULL;
         node = node->next, number++) {
        if (node->is_usable)
            offer_node(market, node, number);
    }
    size_t kept = 0;
    for (size_t i = 0; i < market->count; i++) {
        const struct offer *offer = &market->offers[i];
        if (offer->cost != COST_NEVER && !is_picked(market, offer))
            market->offers[kept++] = *offer;
    }
    market->count = kept;
    qsort(market->offers, market->count, sizeof(*market->offers), by_cost);
    size_t first = 0;
    while (first < market->count && market->offers[first].cost < COST_EVICT)
        first++;
    if (first == market->count)
        return; /* nobody has to go */
    count_gains(market->offers + first, market->count - first);
    qsort(market->offers + first, market->count - first, sizeof(*market->offers), by_cost);
}

static void take(struct market *market)
{
    const struct reservation_record *r = &market->window->reservation->r;
    int64_t taken = 0;
    offers_make(market);
    for (size_t i = 0; i < market->count && taken < r->gpu_milli; i++) {
        pick_add(market, &market->offers[i]);
        taken += 1000;
    }
    market->window->available_milli = taken;
}

static int by_start(const void *left, const void *right)
{
    const struct reservation_record *a = &(*(struct sreservation *const *)left)->reservation->r;
    const struct reservation_record *b = &(*(struct sreservation *const *)right)->reservation->r;
    if (a->window_start.ns != b->window_start.ns)
        return a->window_start.ns < b->window_start.ns ? -1 : 1;
    return (a->created_sequence > b->created_sequence) -
           (a->created_sequence < b->created_sequence);
}

static size_t windows_kept(const struct sched *sched, struct sreservation **out)
{
    size_t count = 0;
    for (struct sreservation *w = sched->first_reservation; w != NULL; w = w->next) {
        if (reservation_is_kept(w->reservation->r.state))
            out[count++] = w;
    }
    qsort(out, count, sizeof(struct sreservation *), by_start);
    return count;
}

/* ---- what is left to others ---------------------------------------------------------------- */

static bool device_is_free(struct snode *node, int64_t index)
{
    const struct sdevice *device = snode_device(node, index);
    return device->milli == 0;
}

/* What near windows have is no part of what is shared fairly. */
static void count_reserved(struct sched *sched, struct wall wall)
{
    for (size_t c = 0; c < sched->class_count; c++) {
        struct sclass *class = &sched->classes[c];
        int64_t reserved = 0;
        int64_t shut = 0;
        for (size_t i = 0; i < sched->picks.count; i++) {
            const struct pick *pick = &sched->picks.items[i];
            const struct reservation_record *r = &pick->window->reservation->r;
            bool is_lent = r->is_lent && window_is_open(pick->window, wall) && !pick->is_used;
            if (r->class_number != (int64_t)c || is_lent ||
                !window_is_near(sched, pick->window, wall))
                continue;
            reserved += 1000;
            shut += device_is_free(pick->node, pick->device) ? 1000 : 0;
        }
        if (reserved == class->reserved_milli && shut == class->shut_milli)
            continue;
        class->reserved_milli = reserved;
        class->shut_milli = shut;
        class->is_fair = false;
    }
}

/* When the next window is to be cleared. */
static void set_wake(struct sched *sched, struct wall wall)
{
    int64_t at = INT64_MAX;
    for (const struct sreservation *w = sched->first_reservation; w != NULL; w = w->next) {
        const struct reservation_record *r = &w->reservation->r;
        int64_t lead = r->window_start.ns - sched->state->settings.lead_s * NS_PER_S;
        if (reservation_is_kept(r->state) && lead > wall.ns)
            at = MIN_OF(at, lead - sched->wall_ahead_ns);
    }
    sched->window_at.ns = at == INT64_MAX ? 0 : at;
}

void window_refresh(struct sched *sched, struct mono now, struct arena *arena)
{
    struct wall wall = window_wall(sched, now);
    sched->picks.count = 0;
    sched->window_at.ns = 0;
    if (sched->first_reservation == NULL)
        return;
    struct sreservation **windows =
        arena_new(arena, sched->reservations.count, sizeof(struct sreservation *));
    size_t count = windows_kept(sched, windows);
    AUTO(market) struct market market = { .sched = sched };
    if (count > 0) {
        size_t most = offers_most(sched);
        market.offers = arena_new(arena, most, sizeof(*market.offers));
        market.newest = arena_new(arena, most, sizeof(*market.newest));
    }
    for (size_t i = 0; i < count; i++) {
        market.window = windows[i];
        take(&market);
    }
    count_reserved(sched, wall);
    set_wake(sched, wall);
}
