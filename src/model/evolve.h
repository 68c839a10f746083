/*
 * evolve.h - how one event changes the state, by kind of object. Only src/model includes this: the
 * ways in are evolve() and evolve_restored() of state.h.
 */
#ifndef MODEL_EVOLVE_H
#define MODEL_EVOLVE_H

#include "model/state.h"

/* Where an event comes from: just decided (or replayed), or the after-image of a snapshot, whose
 * sequences, versions, times and totals are taken as they are. */
enum history { LIVE, RESTORED };

typedef void evolve_fn(struct state *state, const struct event *event, enum history from);

evolve_fn evolve_class_set, evolve_class_removed; /* evolve_catalog.c */
evolve_fn evolve_pool_set, evolve_pool_removed;
evolve_fn evolve_profile_set, evolve_profile_removed;

evolve_fn evolve_project_set, evolve_project_removed; /* evolve_project.c */

evolve_fn evolve_token_set, evolve_token_removed; /* evolve_belongings.c */
evolve_fn evolve_volume_set, evolve_volume_removed;
evolve_fn evolve_image_set, evolve_image_removed;
evolve_fn evolve_credential_set, evolve_credential_removed;
evolve_fn evolve_hook_set, evolve_hook_removed, evolve_hook_tested; /* evolve_hook.c */
evolve_fn evolve_upload_stored;

evolve_fn evolve_node_set, evolve_node_contact, evolve_node_holds, evolve_node_removed;
evolve_fn evolve_device_changed; /* evolve_node.c */

evolve_fn evolve_workload_submitted, evolve_workload_changed; /* evolve_workload.c */
evolve_fn evolve_workload_forgotten, evolve_workload_untied;

evolve_fn evolve_gang_changed; /* evolve_gang.c */

evolve_fn evolve_reservation_set, evolve_reservation_removed; /* evolve_reservation.c */

evolve_fn evolve_change_set, evolve_change_removed; /* evolve_change.c */

/* evolve_allocation.c */
evolve_fn evolve_allocation_granted, evolve_allocation_changed, evolve_allocation_noted;

/* past.c: decayed use and capacity. */
enum moment { BEFORE, AFTER };
/* What the node that the event is about offers counts anew. */
void past_note_node(struct state *state, const struct event *event, enum history from,
                    enum moment moment);
/* So much more is held by the project and those above it. */
void past_note_use(struct state *state, struct project *project, int64_t class_number,
                   int64_t milli, enum history from);
/* The same of one user of the project. */
void past_note_user(struct state *state, const struct allocation *allocation, int64_t milli,
                    enum history from);
void past_bring_to_now(struct state *state);

/* The attempt is over, or another begins: nothing is missing of it. */
void gang_drop(struct state *state, struct id workload);
/* Takes a final workload without allocations out of memory. */
void workload_forget(struct state *state, struct workload *workload);
/* Takes all reservations of a project out of the state. */
void reservations_drop(struct state *state, struct id project);
/* Takes all changes of a project out of the state. */
void changes_drop(struct state *state, struct id project);
/* Takes everything that belongs to a tenant out of the state, except its projects and workloads. */
void belongings_drop(struct state *state, struct id tenant);
/* Those of a project, or of all of a tenant. */
void hooks_drop(struct state *state, struct id project);

/* The version an object has after this event. */
static inline uint64_t version_of(const struct event *event, enum history from, uint64_t recorded)
{
    return from == LIVE ? event->sequence : recorded;
}

#endif
