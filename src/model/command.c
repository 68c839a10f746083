#include "model/command.h"

static const char *const names[CMD_COUNT] = {
    [CMD_CONTROLLER_START] = "controller_start",
    [CMD_SETTINGS_SET] = "settings_set",
    [CMD_CLASS_SET] = "class_set",
    [CMD_CLASS_REMOVE] = "class_remove",
    [CMD_POOL_SET] = "pool_set",
    [CMD_POOL_REMOVE] = "pool_remove",
    [CMD_PROFILE_SET] = "profile_set",
    [CMD_PROFILE_REMOVE] = "profile_remove",
    [CMD_PROJECT_CREATE] = "project_create",
    [CMD_PROJECT_UPDATE] = "project_update",
    [CMD_PROJECT_REMOVE] = "project_remove",
    [CMD_TOKEN_CREATE] = "token_create",
    [CMD_TOKEN_REVOKE] = "token_revoke",
    [CMD_NODE_JOIN] = "node_join",
    [CMD_NODE_RENEW] = "node_renew",
    [CMD_NODE_INVENTORY] = "node_inventory",
    [CMD_NODE_OBSERVED] = "node_observed",
    [CMD_NODE_CONTACT] = "node_contact",
    [CMD_NODE_CORDON] = "node_cordon",
    [CMD_NODE_UNCORDON] = "node_uncordon",
    [CMD_NODE_DRAIN] = "node_drain",
    [CMD_NODE_UNDRAIN] = "node_undrain",
    [CMD_NODE_CONFIRM_LOST] = "node_confirm_lost",
    [CMD_NODE_REMOVE] = "node_remove",
    [CMD_DEVICE_HOLD] = "device_hold",
    [CMD_DEVICE_RELEASE] = "device_release",
    [CMD_WORKLOAD_SUBMIT] = "workload_submit",
    [CMD_WORKLOAD_CANCEL] = "workload_cancel",
    [CMD_WORKLOAD_HOLD] = "workload_hold",
    [CMD_WORKLOAD_RELEASE] = "workload_release",
    [CMD_WORKLOAD_REQUEUE] = "workload_requeue",
    [CMD_VOLUME_CREATE] = "volume_create",
    [CMD_VOLUME_PLACE] = "volume_place",
    [CMD_VOLUME_REMOVE] = "volume_remove",
    [CMD_IMAGE_SET] = "image_set",
    [CMD_IMAGE_REMOVE] = "image_remove",
    [CMD_CREDENTIAL_SET] = "credential_set",
    [CMD_CREDENTIAL_REMOVE] = "credential_remove",
    [CMD_UPLOAD_STORED] = "upload_stored",
    [CMD_TICK] = "tick",
};

const char *command_name(enum command_type type)
{
    return type < CMD_COUNT && names[type] != NULL ? names[type] : "";
}
