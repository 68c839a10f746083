/*
 * decide.c - from a command to its handler: who may ask, and which function decides.
 *
 * What a role may do nowhere is refused here, by one table. What it may do to its own tenant's
 * objects is for the handlers: they look the object up and ask decide_permits(), so that a foreign
 * object and an absent one give the same answer.
 */
#include "core/decide.h"

#include <string.h>

#include "access/access.h"

static const struct row {
    enum err (*handler)(struct decision *d, struct error *e);
    enum permission permission;
    /* clang-format off */
} rows[CMD_COUNT] = {
    [CMD_CONTROLLER_START]    = { decide_controller_start,   PERMIT_SYSTEM },
    [CMD_SETTINGS_SET]        = { decide_settings_set,       PERMIT_SETTINGS_WRITE },
    [CMD_CLASS_SET]           = { decide_class_set,          PERMIT_CLASS_WRITE },
    [CMD_CLASS_REMOVE]        = { decide_class_remove,       PERMIT_CLASS_WRITE },
    [CMD_POOL_SET]            = { decide_pool_set,           PERMIT_POOL_WRITE },
    [CMD_POOL_REMOVE]         = { decide_pool_remove,        PERMIT_POOL_WRITE },
    [CMD_PROFILE_SET]         = { decide_profile_set,        PERMIT_PROFILE_WRITE },
    [CMD_PROFILE_REMOVE]      = { decide_profile_remove,     PERMIT_PROFILE_WRITE },
    [CMD_PROJECT_CREATE]      = { decide_project_create,     PERMIT_PROJECT_WRITE },
    [CMD_PROJECT_UPDATE]      = { decide_project_update,     PERMIT_QUOTA_WRITE },
    [CMD_PROJECT_REMOVE]      = { decide_project_remove,     PERMIT_PROJECT_WRITE },
    [CMD_TOKEN_CREATE]        = { decide_token_create,       PERMIT_TOKEN_WRITE },
    [CMD_TOKEN_REVOKE]        = { decide_token_revoke,       PERMIT_TOKEN_WRITE },
    [CMD_NODE_JOIN]           = { decide_node_join,          PERMIT_NODE_JOIN },
    [CMD_NODE_RENEW]          = { decide_node_renew,         PERMIT_NODE_REPORT },
    [CMD_NODE_INVENTORY]      = { decide_node_inventory,     PERMIT_NODE_REPORT },
    [CMD_NODE_OBSERVED]       = { decide_node_observed,      PERMIT_NODE_REPORT },
    [CMD_NODE_CONTACT]        = { decide_node_contact,       PERMIT_SYSTEM },
    [CMD_NODE_SET]            = { decide_node_set,           PERMIT_NODE_WRITE },
    [CMD_NODE_CORDON]         = { decide_node_cordon,        PERMIT_NODE_WRITE },
    [CMD_NODE_UNCORDON]       = { decide_node_uncordon,      PERMIT_NODE_WRITE },
    [CMD_NODE_DRAIN]          = { decide_node_drain,         PERMIT_NODE_WRITE },
    [CMD_NODE_UNDRAIN]        = { decide_node_undrain,       PERMIT_NODE_WRITE },
    [CMD_NODE_CONFIRM_LOST]   = { decide_node_confirm_lost,  PERMIT_NODE_WRITE },
    [CMD_NODE_REMOVE]         = { decide_node_remove,        PERMIT_NODE_WRITE },
    [CMD_DEVICE_HOLD]         = { decide_device_hold,        PERMIT_NODE_WRITE },
    [CMD_DEVICE_RELEASE]      = { decide_device_release,     PERMIT_NODE_WRITE },
    [CMD_WORKLOAD_SUBMIT]     = { decide_workload_submit,    PERMIT_WORKLOAD_SUBMIT },
    [CMD_WORKLOAD_CANCEL]     = { decide_workload_cancel,    PERMIT_WORKLOAD_CANCEL },
    [CMD_WORKLOAD_HOLD]       = { decide_workload_hold,      PERMIT_WORKLOAD_CANCEL },
    [CMD_WORKLOAD_RELEASE]    = { decide_workload_release,   PERMIT_WORKLOAD_CANCEL },
    [CMD_WORKLOAD_REQUEUE]    = { decide_workload_requeue,   PERMIT_WORKLOAD_CANCEL },
    [CMD_VOLUME_CREATE]       = { decide_volume_create,      PERMIT_VOLUME_WRITE },
    [CMD_VOLUME_PLACE]        = { decide_volume_place,       PERMIT_VOLUME_WRITE },
    [CMD_VOLUME_REMOVE]       = { decide_volume_remove,      PERMIT_VOLUME_WRITE },
    [CMD_IMAGE_SET]           = { decide_image_set,          PERMIT_IMAGE_WRITE },
    [CMD_IMAGE_REMOVE]        = { decide_image_remove,       PERMIT_IMAGE_WRITE },
    [CMD_CREDENTIAL_SET]      = { decide_credential_set,     PERMIT_CREDENTIAL_WRITE },
    [CMD_CREDENTIAL_REMOVE]   = { decide_credential_remove,  PERMIT_CREDENTIAL_WRITE },
    [CMD_HOOK_SET]            = { decide_hook_set,           PERMIT_HOOK_WRITE },
    [CMD_HOOK_REMOVE]         = { decide_hook_remove,        PERMIT_HOOK_WRITE },
    [CMD_HOOK_TEST]           = { decide_hook_test,          PERMIT_HOOK_WRITE },
    [CMD_HOOK_NOTE]           = { decide_hook_note,          PERMIT_SYSTEM },
    [CMD_UPLOAD_STORED]       = { decide_upload_stored,      PERMIT_IMAGE_WRITE },
    [CMD_RESERVATION_CREATE]  = { decide_reservation_create,  PERMIT_RESERVATION_WRITE },
    [CMD_RESERVATION_CONFIRM] = { decide_reservation_confirm, PERMIT_RESERVATION_WRITE },
    [CMD_RESERVATION_RELEASE] = { decide_reservation_release, PERMIT_RESERVATION_WRITE },
    [CMD_RESERVATION_CANCEL]  = { decide_reservation_cancel,  PERMIT_RESERVATION_WRITE },
    [CMD_RESERVATION_REZONE]  = { decide_reservation_rezone,  PERMIT_SYSTEM },
    [CMD_CHANGE_CREATE]       = { decide_change_create,      PERMIT_QUOTA_WRITE },
    [CMD_CHANGE_REVERT]       = { decide_change_revert,      PERMIT_QUOTA_WRITE },
    [CMD_TICK]                = { decide_tick,               PERMIT_SYSTEM },
};
/* clang-format on */

void decision_init(struct decision *d, const struct state *state, struct arena *arena,
                   struct event_list *events)
{
    *d = (struct decision){ .state = state, .arena = arena, .events = events };
    d->unsettled_end = &d->unsettled;
}

void decision_done(struct decision *d)
{
    id_map_done(&d->steps);
    id_map_done(&d->images);
}

enum err decide(const struct state *state, const struct sched *sched, const struct command *command,
                struct arena *arena, struct event_list *events, struct error *e)
{
    if ((unsigned)command->type >= CMD_COUNT)
        return err_set(e, ERR_INVALID, "there is no such command");
    const struct row *row = &rows[command->type];
    if (access_scope(command->actor.role, row->permission) == SCOPE_NOTHING)
        return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED, "%s is not permitted to this role",
                         command_name(command->type));

    size_t count_before = events->count;
    AUTO(decision) struct decision d;
    decision_init(&d, state, arena, events);
    d.sched = sched;
    d.command = command;
    d.actor = command->actor;
    d.now = command->now;
    d.wall = command->wall;
    d.request = command->request;
    enum err rc = row->handler(&d, e);
    if (rc != ERR_OK)
        events->count = count_before;
    return rc;
}

bool decide_permits(const struct decision *d, struct id tenant)
{
    return access_allows(&d->actor, rows[d->command->type].permission, tenant);
}

struct id decide_id(const struct decision *d, uint64_t i)
{
    uint8_t key[16];
    struct id first = d->command->new_id;
    memcpy(key, &first.hi, 8);
    memcpy(key + 8, &first.lo, 8);
    return i == 0 ? first : id_beside(first, id_derive(key, 0, i));
}

struct event *decide_add(struct decision *d, enum event_type type, struct id tenant)
{
    struct event *event = event_add(d->arena, d->events, type);
    event->at = d->now;
    event->wall = d->wall;
    event->actor = d->actor;
    event->request = d->request;
    event->tenant = tenant;
    return event;
}
