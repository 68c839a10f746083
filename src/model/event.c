#include "model/event.h"

#include <assert.h>
#include <string.h>

static const char *const names[EV_TYPE_COUNT] = {
    [EV_CONTROLLER_STARTED] = "controller_started",
    [EV_SETTINGS_CHANGED] = "settings_changed",
    [EV_CLASS_SET] = "class_set",
    [EV_CLASS_REMOVED] = "class_removed",
    [EV_POOL_SET] = "pool_set",
    [EV_POOL_REMOVED] = "pool_removed",
    [EV_PROFILE_SET] = "profile_set",
    [EV_PROFILE_REMOVED] = "profile_removed",
    [EV_PROJECT_SET] = "project_set",
    [EV_PROJECT_REMOVED] = "project_removed",
    [EV_TOKEN_SET] = "token_set",
    [EV_TOKEN_REMOVED] = "token_removed",
    [EV_NODE_SET] = "node_set",
    [EV_NODE_CONTACT] = "node_contact",
    [EV_NODE_HOLDS] = "node_holds",
    [EV_NODE_REMOVED] = "node_removed",
    [EV_DEVICE_CHANGED] = "device_changed",
    [EV_WORKLOAD_SUBMITTED] = "workload_submitted",
    [EV_WORKLOAD_CHANGED] = "workload_changed",
    [EV_WORKLOAD_FORGOTTEN] = "workload_forgotten",
    [EV_WORKLOAD_UNTIED] = "workload_untied",
    [EV_GANG_CHANGED] = "gang_changed",
    [EV_ALLOCATION_GRANTED] = "allocation_granted",
    [EV_ALLOCATION_CHANGED] = "allocation_changed",
    [EV_ALLOCATION_NOTED] = "allocation_noted",
    [EV_VOLUME_SET] = "volume_set",
    [EV_VOLUME_REMOVED] = "volume_removed",
    [EV_IMAGE_SET] = "image_set",
    [EV_IMAGE_REMOVED] = "image_removed",
    [EV_CREDENTIAL_SET] = "credential_set",
    [EV_CREDENTIAL_REMOVED] = "credential_removed",
    [EV_UPLOAD_STORED] = "upload_stored",
    [EV_RESERVATION_SET] = "reservation_set",
    [EV_RESERVATION_REMOVED] = "reservation_removed",
    [EV_CHANGE_SET] = "change_set",
    [EV_CHANGE_REMOVED] = "change_removed",
    [EV_HOOK_SET] = "hook_set",
    [EV_HOOK_REMOVED] = "hook_removed",
    [EV_HOOK_TESTED] = "hook_tested",
};

const char *event_name(enum event_type type)
{
    return type < EV_TYPE_COUNT ? names[type] : NULL;
}

bool event_parse_name(struct str name, enum event_type *out)
{
    for (size_t i = 0; i < EV_TYPE_COUNT; i++) {
        if (names[i] != NULL && str_is(name, names[i])) {
            *out = (enum event_type)i;
            return true;
        }
    }
    return false;
}

struct event *event_add(struct arena *arena, struct event_list *list, enum event_type type)
{
    assert(event_name(type) != NULL);
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity * 2 : 2;
        struct event *grown = arena_new(arena, capacity, sizeof(*grown));
        if (list->count > 0)
            memcpy(grown, list->items, list->count * sizeof(*grown));
        list->items = grown;
        list->capacity = capacity;
    }
    struct event *event = &list->items[list->count++];
    *event = (struct event){ .type = type, .version = 1 };
    return event;
}
