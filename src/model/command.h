/*
 * command.h - everything that can be asked of the core. Who asks is part of it, and comes from the
 * credential alone. Ids of what is created come with the command (new_id), from the entropy seam.
 */
#ifndef MODEL_COMMAND_H
#define MODEL_COMMAND_H

#include "model/event.h"
#include "model/spec.h"

enum command_type {
    CMD_CONTROLLER_START,
    CMD_SETTINGS_SET,
    CMD_CLASS_SET,
    CMD_CLASS_REMOVE,
    CMD_POOL_SET,
    CMD_POOL_REMOVE,
    CMD_PROFILE_SET,
    CMD_PROFILE_REMOVE,
    CMD_PROJECT_CREATE,
    CMD_PROJECT_UPDATE,
    CMD_PROJECT_REMOVE,
    CMD_TOKEN_CREATE,
    CMD_TOKEN_REVOKE,
    CMD_NODE_JOIN,
    CMD_NODE_RENEW,
    CMD_NODE_INVENTORY,
    CMD_NODE_OBSERVED,
    CMD_NODE_CONTACT,
    CMD_NODE_SET,
    CMD_NODE_CORDON,
    CMD_NODE_UNCORDON,
    CMD_NODE_DRAIN,
    CMD_NODE_UNDRAIN,
    CMD_NODE_CONFIRM_LOST,
    CMD_NODE_REMOVE,
    CMD_DEVICE_HOLD,
    CMD_DEVICE_RELEASE,
    CMD_WORKLOAD_SUBMIT,
    CMD_WORKLOAD_CANCEL,
    CMD_WORKLOAD_HOLD,
    CMD_WORKLOAD_RELEASE,
    CMD_WORKLOAD_REQUEUE,
    CMD_VOLUME_CREATE,
    CMD_VOLUME_PLACE,
    CMD_VOLUME_REMOVE,
    CMD_IMAGE_SET,
    CMD_IMAGE_REMOVE,
    CMD_CREDENTIAL_SET,
    CMD_CREDENTIAL_REMOVE,
    CMD_HOOK_SET,
    CMD_HOOK_REMOVE,
    CMD_HOOK_TEST,
    CMD_HOOK_NOTE, /* whether it was reached */
    CMD_UPLOAD_STORED,
    CMD_RESERVATION_CREATE,
    CMD_RESERVATION_CONFIRM,
    CMD_RESERVATION_RELEASE,
    CMD_RESERVATION_CANCEL,
    CMD_RESERVATION_REZONE, /* the system's table says another rule of that zone by now */
    CMD_CHANGE_CREATE,      /* of quotas, priorities or settings */
    CMD_CHANGE_REVERT,
    CMD_TICK, /* deadlines: back-off, start timeout, grace, drain, forgetting ended work */
    CMD_COUNT
};

struct node_join {
    struct digest join_secret; /* SHA-256 of the presented join token */
    struct str name;
    struct digest fingerprint;
};

struct node_renew {
    struct digest fingerprint;
    struct wall issued; /* 0: the certificate is asked for; else it is in use, and was made then */
};

/* What an agent found on its machine. Class names are created or matched by discovery. */
struct found_device {
    int64_t index;
    struct str class_name, vendor, uuid, model;
    int64_t memory_mib, numa_node, health;
    struct str health_reason; /* for people; empty when it is well */
    bool is_simulated;
};

struct found_device_list {
    struct found_device *items;
    size_t count;
};

struct node_inventory {
    struct id node;
    struct str boot_id, agent_version, cpu_class_name;
    struct str kernel, driver, runtime, problems; /* of node_record */
    struct str rack, block;                       /* empty: what is known of it stays */
    int64_t cpu_milli, memory_mib;
    struct found_device_list devices;
};

/* One allocation as the node sees it. */
enum observed_state {
    OBSERVED_PREPARING, /* pulling the image, making the file system */
    OBSERVED_RUNNING,
    OBSERVED_STOPPING,
    OBSERVED_EXITED, /* process gone, exit status known, devices clean */
    OBSERVED_FAILED, /* never ran; detail says why */
    OBSERVED_STUCK,  /* SIGKILL sent, will not die */
    OBSERVED_STATE_COUNT
};

struct observed {
    struct id allocation;
    int64_t attempt;
    enum observed_state state;
    struct exit_status exit;
    enum cause
        cause; /* why the node stopped it by itself: time_limit, out_of_memory, ... or none */
    struct str detail;
    int64_t checkpoints;       /* how often its workload said that it has saved its work */
    int64_t checkpoint_age_ms; /* how long ago the last time was */
    int64_t extended_s;        /* given beyond its grace, because its workload asked */
};

struct observed_list {
    struct observed *items;
    size_t count;
};

/* The full set of what is on the node, always: what is missing from it is not there. */
struct node_observed {
    struct id node;
    uint64_t generation; /* of the desired set the node had applied when it looked */
    uint64_t epoch;
    struct observed_list observed;
};

struct node_contact_command {
    struct id node;
    enum node_contact contact;
    struct str boot_id;
};

struct target {
    struct id id;
    struct str name; /* classes, pools, profiles: by name */
    struct str reason;
    int64_t deadline_s; /* drain; UNSET: none */
    int64_t index;      /* device */
    bool is_forced;
};

struct command {
    enum command_type type;
    struct actor actor;
    struct id request;
    struct id new_id;     /* of what is created; arrays derive the rest from it */
    struct digest secret; /* token creation: digest of the secret the caller made */
    uint64_t if_match;    /* version the caller saw; 0: any */
    struct mono now;
    struct wall wall;
    union {
        struct controller_started controller_start;
        struct settings_record settings; /* fields UNSET keep */
        struct class_spec class_set;
        struct pool_spec pool_set;
        struct profile_spec profile_set;
        struct project_spec project; /* create; update names it by target.id too */
        struct token_spec token_create;
        struct node_join node_join;
        struct node_renew node_renew;
        struct node_spec node_set;
        struct node_inventory inventory;
        struct node_observed observed;
        struct node_contact_command contact;
        struct workload_spec submit;
        struct volume_spec volume_create;
        struct image_spec image_set;
        struct credential_spec credential_set;
        struct hook_spec hook_set;
        struct upload_stored upload_stored;
        struct change_spec change;
        struct reservation_spec reservation; /* rezone: zone and rule of it */
    };
    struct target target; /* of everything that acts on an object */
    struct str spec_json; /* submit: the spec as canonical JSON, made by wire from `submit` */
};

/* "workload_submit": also the verb in the audit. */
const char *command_name(enum command_type type);

#endif
