/*
 * event.h - facts that stay true. State, audit, usage and history are folds over them.
 *
 * Every event has a stable number and name, an actor, the request that caused it, two times and a
 * sequence. The payload shape of a type never changes its meaning: a new meaning is a new type or a
 * new version, and fixtures of every version are replayed in tests for ever.
 */
#ifndef MODEL_EVENT_H
#define MODEL_EVENT_H

#include "model/record.h"

enum event_type {
    EV_NONE,
    EV_CONTROLLER_STARTED = 1,
    EV_SETTINGS_CHANGED = 2,
    EV_CLASS_SET = 10,
    EV_CLASS_REMOVED = 11,
    EV_POOL_SET = 12,
    EV_POOL_REMOVED = 13,
    EV_PROFILE_SET = 14,
    EV_PROFILE_REMOVED = 15,
    EV_PROJECT_SET = 20,
    EV_PROJECT_REMOVED =
        21, /* takes its ended workloads along; a tenant's: all that is left of it */
    EV_TOKEN_SET = 30,
    EV_TOKEN_REMOVED = 31,
    EV_NODE_SET = 40, /* joined, inventory changed: after-image */
    EV_NODE_CONTACT = 41,
    EV_NODE_HOLDS = 42, /* cordon, drain and their ends: the new list of holds */
    EV_NODE_REMOVED = 43,
    EV_DEVICE_CHANGED = 44,
    EV_WORKLOAD_SUBMITTED = 50,
    EV_WORKLOAD_CHANGED = 51,   /* state, cause, counters: one step of the transition table */
    EV_WORKLOAD_FORGOTTEN = 52, /* final and without allocations: left memory, stays in the store */
    EV_WORKLOAD_UNTIED = 53,    /* it goes on without its reservation, on demand */
    EV_GANG_CHANGED = 54,       /* which members an attempt goes on without: after-image */
    EV_ALLOCATION_GRANTED = 60,
    EV_ALLOCATION_CHANGED = 61,
    EV_ALLOCATION_NOTED = 62, /* its workload saved its work, or asked for more time to end */
    EV_VOLUME_SET = 70,
    EV_VOLUME_REMOVED = 71,
    EV_IMAGE_SET = 72,
    EV_IMAGE_REMOVED = 73,
    EV_CREDENTIAL_SET = 74,
    EV_CREDENTIAL_REMOVED = 75,
    EV_UPLOAD_STORED = 76,
    EV_RESERVATION_SET = 80,     /* asked for, and every step of it: after-image */
    EV_RESERVATION_REMOVED = 81, /* ended long ago: left memory, stays in the journal */
    EV_CHANGE_SET = 90,          /* of quotas or settings, asked for and every step: after-image */
    EV_CHANGE_REMOVED = 91,      /* ended long ago: left memory, stays in the journal */
    EV_HOOK_SET = 92,
    EV_HOOK_REMOVED = 93,
    EV_HOOK_TESTED = 94, /* somebody wants to see something arrive */
    EV_TYPE_COUNT
};

struct actor {
    enum role role;
    struct id tenant; /* of members */
    struct id token;  /* none: local root, a node, or the system itself */
    struct id node;   /* ROLE_NODE */
    struct str name;  /* user, node name, "root", "system" */
};

struct controller_started {
    uint64_t epoch;
    uint8_t id_key[16]; /* of the first start; from which plan ids are derived */
    struct str version;
};

struct removed {
    struct id id;
};

struct node_contact_event {
    struct id node;
    enum node_contact contact;
    struct str boot_id; /* "" when not known */
};

struct node_holds {
    struct id node;
    struct hold_list holds;
    struct mono drain_deadline;
};

struct device_changed {
    struct id node;
    int64_t index;
    enum device_health health;
    bool is_held;
    struct str reason;
};

struct workload_changed {
    struct id workload;
    enum workload_state state;
    enum workload_state after_stop;
    enum cause cause;
    struct str detail;
    int64_t attempt;
    int64_t failures;
    int64_t evictions;
    int64_t node_losses;
    struct mono not_before;
    struct exit_status exit;
};

struct allocation_changed {
    struct id allocation;
    enum allocation_state state;
    enum cause stop_cause;
    struct id evictor;
    struct exit_status exit;
    /* Set when this change ends the allocation's use (process gone): what is billed. */
    bool has_segment;
    struct segment segment;
};

struct allocation_noted {
    struct id allocation;
    struct mono checkpointed;
    int64_t checkpoints;
    int64_t extended_s;
};

struct upload_stored {
    struct id tenant;
    struct digest digest;
    int64_t size_bytes;
    struct str name;
};

struct event {
    uint64_t sequence; /* 1, 2, 3, ... without gaps */
    enum event_type type;
    unsigned version; /* of the payload: 1 */
    struct mono at;
    struct wall wall;
    struct actor actor;
    struct id request;
    struct id tenant;         /* whose feed it belongs to; none: operators only */
    uint64_t tenant_sequence; /* its number in that feed: 1, 2, 3, ...; 0: in none */
    union {
        struct controller_started controller_started;
        struct settings_record settings;
        struct class_record class_set;
        struct pool_record pool_set;
        struct profile_record profile_set;
        struct project_record project_set;
        struct token_record token_set;
        struct node_record node_set;
        struct node_contact_event node_contact;
        struct node_holds node_holds;
        struct device_changed device_changed;
        struct workload_record workload_submitted;
        struct workload_changed workload_changed;
        struct gang_record gang_changed;
        struct allocation_record allocation_granted;
        struct allocation_changed allocation_changed;
        struct allocation_noted allocation_noted;
        struct volume_record volume_set;
        struct image_record image_set;
        struct credential_record credential_set;
        struct upload_stored upload_stored;
        struct reservation_record reservation_set;
        struct change_record change_set;
        struct hook_record hook_set;
        struct removed removed; /* ..._REMOVED, ..._FORGOTTEN, ..._UNTIED, ..._TESTED */
    };
};

/* Events made by one decision; items and what they point to live in the arena. */
struct event_list {
    struct event *items;
    size_t count;
    size_t capacity;
};

/* "workload_submitted"; NULL when the number is not an event type. */
const char *event_name(enum event_type type);
bool event_parse_name(struct str name, enum event_type *out);

/* Appends a zeroed event of that type, version 1, and returns it; valid until the next append. */
struct event *event_add(struct arena *arena, struct event_list *list, enum event_type type);

#endif
