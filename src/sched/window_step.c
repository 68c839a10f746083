/* window_step.c - what windows do within a step: they shut devices, clear them, and start their
 * own work. */
#include <stdlib.h>

#include "sched/internal.h"

bool window_is_for(const struct sallocation *a)
{
    return a->state == AL_STOPPING &&
           a->allocation->r.stop_cause == CAUSE_RECLAIMED_FOR_RESERVATION;
}

/* ---- shutting ------------------------------------------------------------------------------ */

static void pick_set(struct sched *sched, struct pick *pick, bool is_shut)
{
    struct device_share share = { .device = pick->device, .milli = 1000 };
    const struct share_list shares = { &share, 1 };
    const struct booking booking = { pick->node, &shares, 0, 0, NULL };
    if (pick->is_shut == is_shut)
        return;
    touch(sched, pick, sizeof(*pick));
    pick->is_shut = is_shut;
    if (is_shut)
        capacity_book(sched, &booking);
    else
        capacity_unbook(sched, &booking);
}

/* To work that can go and does not say when it ends. */
static bool is_shut_to_most(const struct sched *sched, const struct pick *pick, struct wall wall)
{
    bool is_lent = pick->window->reservation->r.is_lent && window_is_open(pick->window, wall);
    return !pick->is_used && !is_lent && window_is_near(sched, pick->window, wall);
}

/* Who ends before a window starts may have its devices; who never goes and does not, may not have
 * them however far away that is. */
static bool is_shut_to(const struct attempt *attempt, const struct pick *pick, struct wall wall)
{
    const struct swork *work = attempt->work;
    int64_t limit_s = work->workload->r.time_limit_s;
    int64_t end_ns = limit_s > 0 ? wall.ns + limit_s * NS_PER_S : INT64_MAX;
    bool meets = pick->window->reservation->r.window_start.ns < end_ns;
    if (work->tied != NULL)
        return pick->window != work->tied && is_shut_to_most(attempt->sched, pick, wall);
    if (attempt->ask.is_fixed)
        return meets && !pick->is_used;
    return meets && is_shut_to_most(attempt->sched, pick, wall);
}

void window_let_in(const struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    struct wall wall = window_wall(sched, attempt->now);
    for (size_t i = 0; i < sched->picks.count; i++)
        pick_set(sched, &sched->picks.items[i], is_shut_to(attempt, &sched->picks.items[i], wall));
}

void window_let_out(const struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    struct wall wall = window_wall(sched, attempt->now);
    for (size_t i = 0; i < sched->picks.count; i++)
        pick_set(sched, &sched->picks.items[i],
                 is_shut_to_most(sched, &sched->picks.items[i], wall));
}

static void open_all(struct sched *sched)
{
    for (size_t i = 0; i < sched->picks.count; i++)
        pick_set(sched, &sched->picks.items[i], false);
}

bool window_blocks(struct sched *sched, const struct swork *work)
{
    const struct request *request = &work->workload->r.request;
    bool is_blocked = false;
    if (sched->picks.count == 0)
        return false;
    size_t mark = shadow_mark(sched);
    open_all(sched);
    size_t count = request_class_count(sched->state, request);
    for (size_t i = 0; i < count && !is_blocked; i++) {
        int64_t class_number = request_class(sched->state, request, i);
        struct fitting fitting;
        if (class_number < 0)
            continue;
        fitting_init(sched, work->workload, class_number, &fitting);
        is_blocked = place_fits(sched, &fitting);
    }
    shadow_rollback(sched, mark);
    return is_blocked;
}

/* ---- clearing ------------------------------------------------------------------------------ */

/* Work is left in peace for a while after it began, also by reservations, where so configured. */
static bool is_protected(const struct attempt *step, const struct swork *work)
{
    struct sched *sched = step->sched;
    int64_t protect_s = sched->state->settings.min_runtime_in_quota_s;
    struct mono since = { 0 };
    for (const struct sallocation *a = work->first; a != NULL && protect_s > 0;
         a = a->next_of_work) {
        const struct allocation_record *r = &a->allocation->r;
        struct mono began = r->started.ns != 0 ? r->started : r->granted;
        since = mono_before(since, began) ? began : since;
    }
    struct mono until = mono_add_s(since, protect_s);
    if (protect_s == 0 || !mono_before(step->now, until))
        return false;
    if (sched->window_at.ns == 0 || mono_before(until, sched->window_at))
        sched->window_at = until;
    return true;
}

static bool may_go(const struct swork *work)
{
    return work->is_active && !work->is_leaving;
}

static void evict(const struct attempt *step, struct swork *victim, struct workload *for_whom)
{
    struct sched *sched = step->sched;
    struct plan_entry *entry = plan_add(step->plan, step->arena);
    *entry = (struct plan_entry){ .action = PLAN_EVICT,
                                  .workload = victim->workload,
                                  .cause = CAUSE_RECLAIMED_FOR_RESERVATION,
                                  .for_whom = for_whom };
    int64_t charge = 0;
    for (const struct sallocation *a = victim->first; a != NULL; a = a->next_of_work)
        charge += allocation_stays(a) ? a->charge_milli : 0;
    use_add(sched, victim->project, victim->active_class, USE_LEAVING, charge);
    touch(sched, victim, sizeof(*victim));
    victim->is_leaving = true;
}

/* It holds a part of that device, and will not be gone in time by itself. */
static bool is_in_the_way(const struct sched *sched, const struct pick *pick,
                          const struct sallocation *a)
{
    const struct workload_record *r = &a->work->workload->r;
    bool holds = false;
    for (size_t i = 0; i < a->shares.count; i++)
        holds |= a->shares.items[i].device == pick->device;
    if (!holds || a->is_reserved || (a->state != AL_STARTING && a->state != AL_RUNNING))
        return false;
    struct mono since = a->allocation->r.started.ns != 0 ? a->allocation->r.started : sched->now;
    struct mono end = mono_add_s(since, r->time_limit_s);
    const struct reservation_record *window = &pick->window->reservation->r;
    return r->time_limit_s == 0 || window_wall(sched, end).ns > window->window_start.ns;
}

/* Evicts from the picked devices of near windows what would still be there at their start. */
static void clear(const struct attempt *step)
{
    struct sched *sched = step->sched;
    struct wall wall = window_wall(sched, step->now);
    for (size_t i = 0; i < sched->picks.count; i++) {
        const struct pick *pick = &sched->picks.items[i];
        if (!is_shut_to_most(sched, pick, wall))
            continue;
        for (const struct sallocation *a = pick->node->allocations; a != NULL;
             a = a->next_on_node) {
            if (is_in_the_way(sched, pick, a) && may_go(a->work) && !is_protected(step, a->work))
                evict(step, a->work, NULL);
        }
    }
}

/* ---- tied work ----------------------------------------------------------------------------- */

static void move_booking(struct sched *sched, const struct sallocation *a, bool is_out)
{
    const struct booking booking = { a->node, &a->shares, a->cpu_milli, a->memory_mib,
                                     a->project->project->tenant };
    if (is_out)
        capacity_unbook(sched, &booking);
    else
        capacity_book(sched, &booking);
}

/* What is being stopped for it, for reservations, or for nobody. */
static void leaving_go(const struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    struct id own = attempt->work->workload->r.id;
    for (const struct skip_node *n = skip_first(&sched->stopping); n != NULL; n = skip_next(n)) {
        const struct sallocation *a = n->item;
        if (id_is_none(a->evictor) || id_eq(a->evictor, own))
            move_booking(sched, a, true);
    }
}

static void victim_go(struct sched *sched, const struct swork *victim)
{
    for (const struct sallocation *a = victim->first; a != NULL; a = a->next_of_work) {
        if (allocation_stays(a))
            move_booking(sched, a, true);
    }
}

static void victim_come_back(struct sched *sched, const struct swork *victim)
{
    for (const struct sallocation *a = victim->first; a != NULL; a = a->next_of_work) {
        if (allocation_stays(a))
            move_booking(sched, a, false);
    }
}

static int by_urgency(const void *left, const void *right)
{
    const struct workload_record *a = &(*(struct swork *const *)left)->workload->r;
    const struct workload_record *b = &(*(struct swork *const *)right)->workload->r;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    return a->submitted_sequence > b->submitted_sequence ? -1 : 1;
}

/* All that could go, the least urgent first, then the youngest. */
static size_t candidates(const struct attempt *attempt, struct swork **out)
{
    const struct sched *sched = attempt->sched;
    size_t count = 0;
    for (const struct sproject *p = sched->first_project; p != NULL; p = p->next) {
        const struct skip_list *active = &p->active[attempt->ask.class_number];
        for (const struct skip_node *n = skip_first(active); n != NULL; n = skip_next(n)) {
            if (may_go(n->item) && !is_protected(attempt, n->item))
                out[count++] = n->item;
        }
    }
    qsort(out, count, sizeof(struct swork *), by_urgency);
    return count;
}

/* One after the other until it fits; then those that were not needed are spared. Within the
 * shadow, which the caller takes back. */
static size_t gather(const struct attempt *attempt, struct swork **victims)
{
    struct sched *sched = attempt->sched;
    size_t most = candidates(attempt, victims);
    size_t count = 0;
    bool fits = false;
    while (count < most && !fits) {
        victim_go(sched, victims[count++]);
        fits = place_fits(sched, &attempt->fitting);
    }
    if (!fits)
        return 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        victim_come_back(sched, victims[i]);
        if (place_fits(sched, &attempt->fitting))
            continue;
        victim_go(sched, victims[i]);
        victims[kept++] = victims[i];
    }
    return kept;
}

/* An open window has devices for it, but not where it needs them: others go. */
static void make_room(struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    size_t most = sched->classes[attempt->ask.class_number].active_count;
    struct swork **victims = arena_new(attempt->arena, most, sizeof(struct swork *));
    size_t mark = shadow_mark(sched);
    size_t count = 0;
    window_let_in(attempt);
    leaving_go(attempt);
    if (!place_fits(sched, &attempt->fitting))
        count = gather(attempt, victims);
    shadow_rollback(sched, mark);
    for (size_t i = 0; i < count; i++)
        evict(attempt, victims[i], attempt->work->workload);
}

static void serve(const struct attempt *step, struct sreservation *window)
{
    const struct reservation_record *r = &window->reservation->r;
    for (const struct skip_node *n = skip_first(&window->queue); n != NULL; n = skip_next(n)) {
        struct attempt attempt = *step;
        attempt_init(&attempt, n->item, r->class_number);
        if (window->used_milli + attempt.ask.charge > r->gpu_milli ||
            !quota_is_within_limits(&attempt.ask))
            continue;
        if (!attempt_start(&attempt))
            make_room(&attempt);
    }
}

void window_serve(const struct attempt *step)
{
    struct sched *sched = step->sched;
    struct wall wall = window_wall(sched, step->now);
    if (sched->first_reservation == NULL)
        return;
    window_let_out(step);
    clear(step);
    for (struct sreservation *w = sched->first_reservation; w != NULL; w = w->next) {
        if (window_is_open(w, wall))
            serve(step, w);
    }
}
