/* Reservations: one list of all, in order of creation, and their steps. */
#include <assert.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"
#include "model/transition.h"

static struct reservation *reservation_add(struct state *state, const struct reservation_record *r)
{
    struct reservation *reservation = pool_new(&state->pool, sizeof(*reservation));
    reservation->project = state_project(state, r->project);
    assert(reservation->project != NULL);
    LIST_APPEND(state->first_reservation, state->last_reservation, reservation, next, prev);
    id_map_put(&state->reservations, r->id, reservation);
    return reservation;
}

void evolve_reservation_set(struct state *state, const struct event *event, enum history from)
{
    struct reservation_record r = event->reservation_set;
    struct reservation *reservation = state_reservation(state, r.id);
    r.version = version_of(event, from, r.version);
    if (from == LIVE) {
        const struct reservation_record *old = reservation != NULL ? &reservation->r : NULL;
        r.created_sequence = old != NULL ? old->created_sequence : event->sequence;
        r.created = old != NULL ? old->created : event->wall;
        r.ended_at = reservation_state_is_final(r.state) ? event->at : (struct mono){ 0 };
    }
    reservation_keep(&state->pool, &r);
    if (reservation == NULL) {
        assert(from == RESTORED || !reservation_state_is_final(r.state));
        reservation = reservation_add(state, &r);
    } else {
        assert(reservation->r.state == r.state ||
               reservation_may_become(reservation->r.state, r.state));
        reservation_drop(&state->pool, &reservation->r);
    }
    reservation->r = r;
}

static void reservation_remove(struct state *state, struct reservation *reservation)
{
    LIST_REMOVE(state->first_reservation, state->last_reservation, reservation, next, prev);
    (void)id_map_remove(&state->reservations, reservation->r.id);
    reservation_drop(&state->pool, &reservation->r);
    pool_free(&state->pool, reservation, sizeof(*reservation));
}

void evolve_reservation_removed(struct state *state, const struct event *event, enum history from)
{
    struct reservation *reservation = state_reservation(state, event->removed.id);
    (void)from;
    assert(reservation != NULL && reservation_state_is_final(reservation->r.state));
    reservation_remove(state, reservation);
}

void reservations_drop(struct state *state, struct id project)
{
    struct reservation *next = NULL;
    for (struct reservation *r = state->first_reservation; r != NULL; r = next) {
        next = r->next;
        if (id_eq(r->r.project, project))
            reservation_remove(state, r);
    }
}

/* ---- reading ------------------------------------------------------------------------------- */

struct reservation *state_reservation(const struct state *state, struct id id)
{
    return id_map_get(&state->reservations, id);
}

struct reservation *state_reservation_by_name(const struct state *state, struct id tenant,
                                              struct str name)
{
    struct reservation *found = NULL;
    for (struct reservation *r = state->last_reservation; r != NULL; r = r->prev) {
        if (!id_eq(r->project->tenant->r.id, tenant) || !str_eq(r->r.name, name))
            continue;
        if (!reservation_state_is_final(r->r.state))
            return r;
        found = found != NULL ? found : r;
    }
    return found;
}

struct calendar reservation_calendar(const struct reservation_record *r)
{
    struct calendar calendar = { .start = { r->start_s },
                                 .end = { r->end_s },
                                 .repeat = r->repeat,
                                 .interval = r->interval,
                                 .until = { r->until_s } };
    enum err rc = zone_parse(r->zone_rule, &calendar.zone, NULL);
    assert(rc == ERR_OK);
    (void)rc;
    return calendar;
}

struct window reservation_window(const struct reservation_record *r)
{
    return (struct window){ r->window_start, r->window_end };
}
