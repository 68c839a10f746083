/* window.c - reservations, the work tied to them, and what time brings them. */
#include <assert.h>

#include "sched/internal.h"

static struct sreservation *window_of(const struct sched *sched, struct id id)
{
    return id_is_none(id) ? NULL : id_map_get(&sched->reservations, id);
}

/* ---- reservations -------------------------------------------------------------------------- */

/* Whoever waits for devices of its class is looked at again. */
static void window_changed(struct sched *sched, const struct sreservation *window)
{
    struct sclass *class = &sched->classes[window->reservation->r.class_number];
    class->gained = ++sched->clock;
    class->is_fair = false;
}

void window_add(struct sched *sched, struct reservation *reservation)
{
    struct sreservation *window = pool_new(&sched->pool, sizeof(*window));
    window->reservation = reservation;
    window->available_milli = UNSET;
    window->prev = sched->last_reservation;
    if (window->prev != NULL)
        window->prev->next = window;
    else
        sched->first_reservation = window;
    sched->last_reservation = window;
    id_map_put(&sched->reservations, reservation->r.id, window);
    window_changed(sched, window);
}

void window_note(struct sched *sched, struct id id)
{
    struct sreservation *window = window_of(sched, id);
    if (window == NULL)
        window_add(sched, state_reservation(sched->state, id));
    else
        window_changed(sched, window);
}

void window_remove(struct sched *sched, struct id id)
{
    struct sreservation *window = id_map_remove(&sched->reservations, id);
    assert(window != NULL && window->works == 0);
    if (window->prev != NULL)
        window->prev->next = window->next;
    else
        sched->first_reservation = window->next;
    if (window->next != NULL)
        window->next->prev = window->prev;
    else
        sched->last_reservation = window->prev;
    pool_free(&sched->pool, window, sizeof(*window));
}

/* ---- tied work ----------------------------------------------------------------------------- */

void window_tie(struct sched *sched, struct swork *work)
{
    if (workload_state_is_final(work->workload->r.state))
        return;
    work->tied = window_of(sched, work->workload->r.reservation);
    if (work->tied != NULL)
        work->tied->works++;
}

void window_drop(struct swork *work)
{
    if (work->tied == NULL)
        return;
    work->tied->works--;
    if (work->first == NULL)
        work->tied = NULL;
}

void window_untie(struct sched *sched, struct swork *work)
{
    if (work->tied == NULL)
        return;
    allocation_untie(sched, work);
    work->tied->works--;
    work->tied = NULL;
    work_refresh(sched, work);
}

void window_enqueue(struct sched *sched, struct swork *work)
{
    skip_insert(&work->tied->queue, &sched->pool, work->key, work);
    sched->clock++;
}

void window_dequeue(struct sched *sched, struct swork *work)
{
    skip_remove(&work->tied->queue, &sched->pool, work->key);
}

static struct skip_key live_key(const struct swork *work)
{
    return (struct skip_key){ .minor = work->workload->r.submitted_sequence };
}

void window_count(struct sched *sched, const struct sallocation *a, bool is_added)
{
    struct swork *work = a->work;
    struct sreservation *window = work->tied;
    window->used_milli += is_added ? a->charge_milli : -a->charge_milli;
    if (is_added && work->charged == 1)
        skip_insert(&window->live, &sched->pool, live_key(work), work);
    else if (!is_added && work->charged == 0)
        skip_remove(&window->live, &sched->pool, live_key(work));
}

struct reservation_use sched_reservation(const struct sched *sched,
                                         const struct reservation *reservation)
{
    const struct sreservation *window = window_of(sched, reservation->r.id);
    const struct reservation_use unknown = { .available_milli = UNSET };
    if (window == NULL)
        return unknown;
    return (struct reservation_use){ window->used_milli, window->available_milli,
                                     window->queue.count, window->live.count };
}

struct workload *sched_tied(const struct sched *sched, const struct reservation *reservation,
                            size_t i)
{
    const struct sreservation *window = window_of(sched, reservation->r.id);
    const struct skip_node *n = window != NULL ? skip_first(&window->live) : NULL;
    for (; n != NULL && i > 0; i--)
        n = skip_next(n);
    return n != NULL ? ((const struct swork *)n->item)->workload : NULL;
}

/* ---- time ---------------------------------------------------------------------------------- */

void sched_clock(struct sched *sched, struct mono now, struct wall wall)
{
    sched->wall_ahead_ns = wall.ns - now.ns;
}

struct wall window_wall(const struct sched *sched, struct mono now)
{
    return (struct wall){ now.ns + sched->wall_ahead_ns };
}

static struct mono mono_of(const struct sched *sched, struct wall wall)
{
    return (struct mono){ wall.ns - sched->wall_ahead_ns };
}

bool window_is_open(const struct sreservation *window, struct wall wall)
{
    const struct reservation_record *r = &window->reservation->r;
    return reservation_is_kept(r->state) && wall.ns >= r->window_start.ns &&
           wall.ns < r->window_end.ns;
}

bool window_is_near(const struct sched *sched, const struct sreservation *window, struct wall wall)
{
    const struct reservation_record *r = &window->reservation->r;
    int64_t lead_ns = sched->state->settings.lead_s * NS_PER_S;
    return reservation_is_kept(r->state) && wall.ns >= r->window_start.ns - lead_ns &&
           wall.ns < r->window_end.ns;
}

/* The state is not what it should be by then. */
static bool is_wrong(const struct sreservation *window, struct wall wall)
{
    const struct reservation_record *r = &window->reservation->r;
    if (wall.ns >= r->window_end.ns)
        return true;
    if (window->available_milli == UNSET)
        return r->state != RSV_DEGRADED &&
               (wall.ns >= r->window_start.ns) != (r->state == RSV_ACTIVE);
    if (window->available_milli < r->gpu_milli)
        return r->state != RSV_DEGRADED;
    return r->state != (wall.ns >= r->window_start.ns ? RSV_ACTIVE : RSV_CONFIRMED);
}

/* When it has to be looked at; INT64_MAX: never. */
static struct mono due_at(const struct sched *sched, const struct sreservation *window)
{
    const struct reservation_record *r = &window->reservation->r;
    const struct mono never = { INT64_MAX };
    switch (r->state) {
    case RSV_REQUESTED:
        return mono_of(sched, r->window_start);
    case RSV_CONFIRMED:
    case RSV_ACTIVE:
    case RSV_DEGRADED:
        if (is_wrong(window, window_wall(sched, sched->now)))
            return sched->now;
        if (window_wall(sched, sched->now).ns < r->window_start.ns)
            return mono_of(sched, r->window_start);
        return mono_of(sched, r->window_end);
    case RSV_COMPLETED:
    case RSV_RELEASED:
    case RSV_CANCELLED:
        return window->works > 0 ? never
                                 : mono_add_s(r->ended_at, sched->state->settings.ended_keep_s);
    case RSV_NONE:
    case RSV_STATE_COUNT:
        break;
    }
    return never;
}

static bool is_due(const struct sched *sched, const struct sreservation *window, struct mono now)
{
    if (reservation_is_kept(window->reservation->r.state))
        return is_wrong(window, window_wall(sched, now));
    return !mono_before(now, due_at(sched, window));
}

size_t window_due(const struct sched *sched, struct mono now, struct due *out, size_t max)
{
    size_t count = 0;
    for (const struct sreservation *w = sched->first_reservation; w != NULL && count < max;
         w = w->next) {
        if (is_due(sched, w, now))
            out[count++] = (struct due){ .kind = DUE_RESERVATION, .reservation = w->reservation };
    }
    return count;
}

struct mono window_next_due(const struct sched *sched)
{
    struct mono at = { INT64_MAX };
    for (const struct sreservation *w = sched->first_reservation; w != NULL; w = w->next)
        at.ns = MIN_OF(at.ns, due_at(sched, w).ns);
    return at;
}

/* ---- why work waits ------------------------------------------------------------------------ */

static void say(struct explanation *out, enum cause cause, const char *text)
{
    out->cause = cause;
    out->text = str_of(text);
}

static const char *units(struct arena *arena, int64_t milli)
{
    return milli_text(milli, arena_new(arena, MILLI_TEXT_MAX, 1));
}

void window_explain(const struct sched *sched, const struct swork *work, struct arena *arena,
                    struct explanation *out)
{
    const struct sreservation *window = work->tied;
    const struct reservation_record *r = &window->reservation->r;
    char when[WALL_TEXT_MAX];
    out->position = (int64_t)skip_rank(&window->queue, work->key) + 1;
    if (work->victims > 0) {
        say(out, CAUSE_WAITING_FOR_VICTIMS,
            arena_format(arena, "%zu allocations are being stopped to make room for it",
                         work->victims));
        return;
    }
    if (r->state == RSV_REQUESTED) {
        say(out, CAUSE_WAITING_FOR_RESERVATION,
            arena_format(arena, "nobody has confirmed its reservation %.*s", STR_ARG(r->name)));
        return;
    }
    if (reservation_state_is_final(r->state)) {
        say(out, CAUSE_WAITING_FOR_RESERVATION,
            arena_format(arena,
                         "its reservation %.*s is %s: no window is left; cancel it, or submit"
                         " it again without",
                         STR_ARG(r->name), enum_name(&reservation_state_names, r->state)));
        return;
    }
    if (!window_is_open(window, window_wall(sched, sched->now))) {
        out->not_before = mono_of(sched, r->window_start);
        say(out, CAUSE_WAITING_FOR_RESERVATION,
            arena_format(arena, "its reservation %.*s opens at %s", STR_ARG(r->name),
                         wall_text(r->window_start, when)));
        return;
    }
    int64_t charge = swork_charge(sched, work, r->class_number);
    say(out, CAUSE_WAITING_FOR_CAPACITY,
        arena_format(arena, "needs %s in reservation %.*s; of %s there are %s, and %s in use",
                     units(arena, charge), STR_ARG(r->name), units(arena, r->gpu_milli),
                     units(arena, MAX_OF(window->available_milli, INT64_C(0))),
                     units(arena, window->used_milli)));
}

bool window_explains(const struct sched *sched, const struct swork *work, int64_t class_number,
                     struct arena *arena, struct explanation *out)
{
    struct wall wall = window_wall(sched, sched->now);
    const struct workload_record *r = &work->workload->r;
    int64_t end_ns = r->time_limit_s > 0 ? wall.ns + r->time_limit_s * NS_PER_S : INT64_MAX;
    int64_t charge = swork_charge(sched, work, class_number);
    int64_t kept = 0;
    struct wall until = { 0 };
    for (const struct sreservation *w = sched->first_reservation; w != NULL; w = w->next) {
        const struct reservation_record *of = &w->reservation->r;
        bool is_near = window_is_near(sched, w, wall);
        bool is_met = reservation_is_kept(of->state) && of->class_number == class_number &&
                      of->window_start.ns < end_ns && wall.ns < of->window_end.ns &&
                      (is_near || r->preemptible == PREEMPTIBLE_NEVER);
        if (!is_met)
            continue;
        kept += MAX_OF(w->available_milli, INT64_C(0));
        until.ns = MAX_OF(until.ns, of->window_end.ns);
    }
    /* What is free already counts what is kept and unused; what tied work holds does not. */
    int64_t free = sched->classes[class_number].free_milli;
    if (kept == 0 || free + kept < charge || free - kept >= charge)
        return false;
    struct fitting fitting;
    fitting_init(sched, work->workload, class_number, &fitting);
    if (!place_if_empty(sched, &fitting))
        return false;
    char when[WALL_TEXT_MAX];
    say(out, CAUSE_WAITING_FOR_RESERVATION,
        arena_format(arena, "needs %s %.*s; %s are kept for a reservation, until %s",
                     units(arena, charge), STR_ARG(state_class(sched->state, class_number)->r.name),
                     units(arena, kept), wall_text(until, when)));
    return true;
}
