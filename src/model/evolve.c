/*
 * evolve: the fold. One row an event type says who applies it, and whether a snapshot may have it.
 *
 * An after-image (..._SET) of an object that exists replaces what people and agents may change and
 * keeps what history alone determines: sequences, usage, generation, links, and the strings that
 * are keys of maps. That way a decision made from a slightly older copy cannot undo a fact.
 */
#include "model/evolve.h"

#include <assert.h>
#include <string.h>

static void evolve_controller_started(struct state *state, const struct event *event,
                                      enum history from)
{
    static const uint8_t no_key[sizeof(state->id_key)];
    const struct controller_started *started = &event->controller_started;
    (void)from;
    state->epoch = started->epoch;
    if (memcmp(state->id_key, no_key, sizeof(no_key)) == 0)
        memcpy(state->id_key, started->id_key, sizeof(no_key)); /* of the first start, for ever */
}

static void evolve_settings_changed(struct state *state, const struct event *event,
                                    enum history from)
{
    if (from == LIVE)
        past_bring_to_now(state); /* by the half-life until now */
    state->settings = event->settings;
    if (state->settings.history_half_life_s == 0)
        state->settings.history_half_life_s = HISTORY_HALF_LIFE_S;
    if (state->settings.consolidate_max_moves == 0)
        state->settings.consolidate_max_moves = CONSOLIDATE_MAX_MOVES;
    if (state->settings.starvation_after_s == 0)
        state->settings.starvation_after_s = STARVATION_AFTER_S;
    if (state->settings.lead_s == UNSET)
        state->settings.lead_s = LEAD_DEFAULT_S; /* of before there were reservations */
    state->settings.version = version_of(event, from, event->settings.version);
}

static const struct step {
    evolve_fn *apply;
    bool in_snapshot;
} steps[EV_TYPE_COUNT] = {
    [EV_CONTROLLER_STARTED] = { evolve_controller_started, false },
    [EV_SETTINGS_CHANGED] = { evolve_settings_changed, true },
    [EV_CLASS_SET] = { evolve_class_set, true },
    [EV_CLASS_REMOVED] = { evolve_class_removed, true },
    [EV_POOL_SET] = { evolve_pool_set, true },
    [EV_POOL_REMOVED] = { evolve_pool_removed, false },
    [EV_PROFILE_SET] = { evolve_profile_set, true },
    [EV_PROFILE_REMOVED] = { evolve_profile_removed, false },
    [EV_PROJECT_SET] = { evolve_project_set, true },
    [EV_PROJECT_REMOVED] = { evolve_project_removed, false },
    [EV_TOKEN_SET] = { evolve_token_set, true },
    [EV_TOKEN_REMOVED] = { evolve_token_removed, false },
    [EV_NODE_SET] = { evolve_node_set, true },
    [EV_NODE_CONTACT] = { evolve_node_contact, false },
    [EV_NODE_HOLDS] = { evolve_node_holds, false },
    [EV_NODE_REMOVED] = { evolve_node_removed, false },
    [EV_DEVICE_CHANGED] = { evolve_device_changed, false },
    [EV_WORKLOAD_SUBMITTED] = { evolve_workload_submitted, true },
    [EV_WORKLOAD_CHANGED] = { evolve_workload_changed, false },
    [EV_WORKLOAD_FORGOTTEN] = { evolve_workload_forgotten, false },
    [EV_WORKLOAD_UNTIED] = { evolve_workload_untied, false },
    [EV_GANG_CHANGED] = { evolve_gang_changed, true },
    [EV_ALLOCATION_GRANTED] = { evolve_allocation_granted, true },
    [EV_ALLOCATION_CHANGED] = { evolve_allocation_changed, false },
    [EV_ALLOCATION_NOTED] = { evolve_allocation_noted, false },
    [EV_VOLUME_SET] = { evolve_volume_set, true },
    [EV_VOLUME_REMOVED] = { evolve_volume_removed, false },
    [EV_IMAGE_SET] = { evolve_image_set, true },
    [EV_IMAGE_REMOVED] = { evolve_image_removed, false },
    [EV_CREDENTIAL_SET] = { evolve_credential_set, true },
    [EV_CREDENTIAL_REMOVED] = { evolve_credential_removed, false },
    [EV_UPLOAD_STORED] = { evolve_upload_stored, true },
    [EV_RESERVATION_SET] = { evolve_reservation_set, true },
    [EV_RESERVATION_REMOVED] = { evolve_reservation_removed, false },
    [EV_CHANGE_SET] = { evolve_change_set, true },
    [EV_CHANGE_REMOVED] = { evolve_change_removed, false },
    [EV_HOOK_SET] = { evolve_hook_set, true },
    [EV_HOOK_REMOVED] = { evolve_hook_removed, false },
    [EV_HOOK_TESTED] = { evolve_hook_tested, false },
};

/* Counted after the event, so that a tenant's feed begins with its own creation. */
static void count_in_feed(struct state *state, struct id tenant)
{
    struct project *project = id_is_none(tenant) ? NULL : state_project(state, tenant);
    if (project != NULL)
        project->tenant->last_sequence++;
}

void evolve(struct state *state, const struct event *event)
{
    assert(event->sequence == state->sequence + 1);
    assert(event->type < EV_TYPE_COUNT && steps[event->type].apply != NULL);

    state->sequence = event->sequence;
    if (mono_before(state->now, event->at))
        state->now = event->at;
    state->wall = event->wall;
    past_note_node(state, event, LIVE, BEFORE);
    steps[event->type].apply(state, event, LIVE);
    past_note_node(state, event, LIVE, AFTER);
    count_in_feed(state, event->tenant);
}

void evolve_restored(struct state *state, const struct event *event)
{
    assert(event->type < EV_TYPE_COUNT && steps[event->type].in_snapshot);

    past_note_node(state, event, RESTORED, BEFORE);
    steps[event->type].apply(state, event, RESTORED);
    past_note_node(state, event, RESTORED, AFTER);
}
