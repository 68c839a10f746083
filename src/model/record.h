/*
 * record.h - the facts about every kind of object, as plain data.
 *
 * A record is what events carry, what a snapshot stores and what the state keeps: one shape, one
 * codec (wire/), so that an after-image in the journal can be put back by copying it. Records hold
 * no pointers to other objects, only ids and numbers; strings and lists are borrowed from whoever
 * made the record (an arena while a command or event is handled, the pool of the state once
 * stored). Amounts of a class are thousandths of a device (GPU classes) or of a core (CPU classes).
 */
#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

#include "base/calendar.h"
#include "base/id.h"
#include "base/timepoint.h"
#include "model/cause.h"
#include "model/decay.h"
#include "model/kinds.h"

/* Not given: keeps the present value in an update, takes the default in a creation. */
#define UNSET INT64_MIN
/* No such bound (limit), or all of it (lend_limit). */
#define UNBOUNDED INT64_C(-1)

/* Bounds on what comes from outside. */
enum {
    NAME_MAX_BYTES = 63, /* of one path component or object name */
    PATH_MAX_DEPTH = 8,  /* components of a project path */
    CLASSES_MAX = 256,
    HOOK_URL_MAX = 2048,
    HOOK_SECRET_MIN = 16,
    LOG_QUOTA_MIB_MAX = 1 << 30,
    LOG_DAYS_MAX = 36500,
    REQUEST_CLASSES_MAX = 8,
    NODE_DEVICES_MAX = 64,
    DEVICE_REASON_MAX = 96,
    ALLOCATION_DEVICES_MAX = 16,
    MEMBERS_MAX = 4096,
    ARRAY_MAX = 10000,
    NODE_MEMBERS_MAX = 4096,   /* members of workloads on one node: a node's set holds no more */
    MEMBER_CPU_MILLI_MIN = 10, /* less is no share that a kernel can give; 0: none asked for */
    MEMBER_CPU_MILLI_MAX = 4096 * 1000,
    MEMBER_MEMORY_MIB_MAX = 64 * 1024 * 1024,
    DEPENDENCIES_MAX = 64,
    MOUNTS_MAX = 8,
    ARGV_MAX = 1024,
    ENV_MAX = 512,
    LABELS_MAX = 64,
    CHANGES_MAX = 1000,          /* of settings and quotas, that have a time or wait for it */
    CHANGES_KEPT_MAX = 16,       /* of one project: for good, and can still be taken back */
    RESERVATIONS_MAX = 1000,     /* that have not ended; what is to come of them is counted often */
    SPEC_MAX_BYTES = 128 * 1024, /* of one workload's JSON */
    DIGEST_BYTES = 32
};

/* What the newest change of the settings is called where one of a project goes by its path. */
#define CHANGES_OF_SETTINGS "settings"

struct str_list {
    struct str *items;
    size_t count;
};

static inline bool str_list_has(const struct str_list *list, struct str text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i], text))
            return true;
    }
    return false;
}

struct pair {
    struct str name;
    struct str value;
};

struct pair_list {
    struct pair *items;
    size_t count;
};

struct id_list {
    struct id *items;
    size_t count;
};

struct digest {
    uint8_t bytes[DIGEST_BYTES]; /* SHA-256; all zero: none */
};

/* ---- configuration ------------------------------------------------------------------------- */

struct class_record {
    struct id id;
    struct str name; /* "h100-80g" */
    int64_t number;  /* small, stable, never reused: what other records refer to */
    enum class_kind kind;
    struct str vendor;  /* "nvidia", "amd", "sim", ... */
    int64_t memory_mib; /* of one device; 0 for CPU classes */
    enum slicing slicing;
    enum mig_table_name mig;       /* NONE: by the class's name */
    int64_t price_micros_per_hour; /* the flat rate card: per whole device (or core) and hour */
    struct decay capacity; /* kept by evolve, of usable devices; else only a snapshot's counts */
    uint64_t version;      /* sequence of the event that last changed the object; the ETag */
};

struct pool_record {
    struct id id;
    struct str name;
    int64_t class_number; /* of its devices; a CPU class for pools without devices */
    enum site_kind site;
    uint64_t version;
};

struct request {
    int64_t gpu_milli; /* per member: below 1000 a fraction of one device, else whole devices */
    int64_t gpu_memory_mib; /* instead of gpu_milli: a fraction by memory */
    int64_t devices;        /* with share_milli: n distinct devices with that share each; else 0 */
    int64_t share_milli;
    int64_t cpu_milli;
    int64_t memory_mib;
    int64_t class_numbers[REQUEST_CLASSES_MAX]; /* in order of preference */
    size_t class_count;                         /* 0: any class the project may use */
    enum topology required;    /* all members within one of these; TOPOLOGY_NONE: anywhere */
    enum topology preferred;   /* the same where it can be had */
    enum mig_name mig_profile; /* instead of gpu_milli: that partition of one device */
};

struct profile_record {
    struct id id;
    struct str name; /* "gpu-4" */
    struct str description;
    struct request request;
    struct str_list pools;    /* in order; empty: any pool of the classes */
    struct str_list projects; /* paths: only they, and what is below them, may use it; empty: all */
    uint64_t version;
};

struct quota {
    int64_t class_number;
    int64_t quota_milli;       /* guarantee; 0: none */
    int64_t lend_limit_milli;  /* UNBOUNDED: all of the quota may be lent */
    int64_t limit_milli;       /* ceiling; UNBOUNDED: none */
    int64_t over_quota_weight; /* default 100 */
};

struct quota_list {
    struct quota *items; /* at most one a class, in order of class number */
    size_t count;
};

/* What a project used of a class in all usage segments that have ended: a fold over events. */
struct usage_total {
    int64_t class_number;
    int64_t milli_ms; /* thousandths of a device times milliseconds */
    int64_t amount_micros;
    int64_t segments;
};

struct usage_list {
    struct usage_total *items;
    size_t count;
};

/* What the allocations of a project and of those below it hold of a class, decayed. */
struct past_use {
    int64_t class_number;
    struct decay decay;
};

struct past_list {
    struct past_use *items;
    size_t count;
};

/* What the allocations of one user's work in a project itself hold, decayed: devices of all classes
 * together, and cores of work without devices. */
struct user_past {
    struct str user;
    struct decay devices, cores;
};

struct user_past_list {
    struct user_past *items;
    size_t count;
};

struct project_record {
    struct id id;
    struct id parent; /* none: this is a tenant, and `id` is a tenant id */
    struct str name;  /* one component */
    struct str path;  /* "amber/vision/train" */
    int64_t number;   /* tenants: which uid range is theirs, never reused; projects: 0 */
    int64_t priority; /* 0..1000, default 50 */
    struct quota_list quotas;
    bool is_overcommitted; /* accepted by force although the sum of quotas exceeds what there is */
    int64_t log_quota_mib; /* of output stored, for it and each project below; 0: as its parent */
    int64_t log_days;      /* how long output of ended work is kept; 0: as its parent */
    uint64_t created_sequence;
    struct wall created;
    uint64_t version;
    struct usage_list usage;     /* kept by evolve; of EV_PROJECT_SET only a snapshot's counts */
    struct past_list past;       /* likewise; not of before there was any */
    struct user_past_list users; /* likewise; who has used nothing for long is left out */
    uint64_t feed_sequence;      /* tenants, in snapshots only: project.last_sequence of state.h */
};

/* What is 0 in settings that an older program stored. */
enum { STARVATION_AFTER_S = 14400, HISTORY_HALF_LIFE_S = 604800, CONSOLIDATE_MAX_MOVES = 8 };

struct settings_record {
    int64_t grace_s;                /* 60 */
    int64_t kill_confirm_s;         /* 30 */
    int64_t min_runtime_s;          /* 600 */
    int64_t min_runtime_in_quota_s; /* 0 */
    int64_t start_timeout_s;        /* 300 */
    int64_t lost_after_s;           /* 120 */
    int64_t unknown_after_s;        /* 15 */
    int64_t gang_repair_s;          /* 60: what a gang short of members waits for others */
    int64_t device_reserve_mib;     /* 0 */
    int64_t backoff_base_s;         /* 60: the n-th own failure waits base * 2^n */
    int64_t backoff_max_s;          /* 3600 */
    int64_t lead_s;                 /* 300: how long before its start a window is cleared */
    int64_t ended_keep_s;           /* 3600: how long an ended workload stays in memory */
    int64_t ended_keep_count;       /* 10000: and how many at most */
    int64_t default_time_limit_s;   /* 0, none: what work without a time limit is planned with */
    int64_t starvation_after_s;     /* 14400: what no start can be promised to waits no longer */
    int64_t history_k_milli;        /* 0: how much past use takes from a weight */
    int64_t history_half_life_s;    /* 604800 */
    int64_t consolidate_max_moves;  /* 8: workloads moved at most to make room for one */
    enum consolidate consolidate;   /* off: running work is moved so that waiting work fits */
    enum reclaim_to reclaim_to;
    enum placement placement;
    enum user_fairness user_fairness; /* off: whose turn it is among the users of a project */
    uint64_t version;
};

/* Credentials: only a digest of the secret is ever stored. */
struct token_record {
    struct id id;
    struct digest secret; /* SHA-256 of the token's random part */
    struct str name;      /* what it is for */
    enum role role;       /* ROLE_ADMIN, ROLE_MEMBER, ROLE_NODE_JOIN */
    struct id tenant;     /* members: the tenant it is of; none for admin and join tokens */
    struct str user;      /* who acts with it */
    struct str pool; /* join tokens: the pool the node enters ("" lets the node's class decide) */
    struct wall created;
    struct wall expires; /* 0: never */
    bool is_revoked;
    uint64_t version;
};

struct volume_record {
    struct id id;
    struct id tenant;
    struct str name;
    struct id node;    /* where its bytes are; none until first used or filled */
    int64_t quota_mib; /* 0: none */
    struct wall created;
    uint64_t version;
};

/* `source` of an image whose archive is in the controller's blob store: this and its digest. */
#define IMAGE_BLOB_PREFIX "blob:"

struct image_record {
    struct id id;
    struct id tenant; /* none: offered to every tenant by the operator */
    struct str name;  /* "debian-12" */
    struct digest manifest;
    struct str source; /* IMAGE_BLOB_PREFIX and a digest, or a registry's reference */
    int64_t size_bytes;
    struct wall created;
    uint64_t version;
};

/* A tenant's login at a private registry; the password is sealed by the controller's key. */
struct credential_record {
    struct id id;
    struct id tenant;
    struct str registry;
    struct str username;
    struct str sealed; /* bytes in hexadecimal; only the controller can open them */
    uint64_t version;
};

/* Where it is told what became of the work of a project and of those below it: a web server of its
 * owners', or an address. */
struct hook_record {
    struct id id;
    struct id tenant;
    struct id project;
    struct str name;   /* the tenant's only one */
    struct str url;    /* https://..., or mailto:ADDRESS */
    struct str sealed; /* what signs, in hexadecimal; only the controller can open it; "": mail */
    struct str fault;  /* why it was not reached the last time; "": it was, or was not tried yet */
    uint64_t created_sequence; /* it is told of what happened later */
    struct wall created;
    uint64_t version;
};

/* Else it is for a web server. */
static inline bool hook_url_is_mail(struct str url)
{
    return str_starts(url, STR("mailto:"));
}

/*
 * Devices for a project in windows of time. The rule is kept: local times, and the zone by its name
 * and by what that meant when it was last looked up; `window` is what follows of it, and is made
 * anew when the zone's rule changes.
 */
struct reservation_record {
    struct id id;
    struct id project;
    struct str name; /* of one that has not ended: the tenant's only one */
    struct str user;
    int64_t class_number;
    int64_t gpu_milli;      /* whole devices */
    struct str zone;        /* "Europe/Berlin" */
    struct str zone_rule;   /* base/zone.h */
    int64_t start_s, end_s; /* of the first window: what clocks there show, struct local */
    enum repeat repeat;
    int64_t interval;
    int64_t until_s; /* of what repeats: the last window begins before; struct local */
    enum end_policy end_policy;
    bool is_lent;          /* what is unused of an open window may be used by work that can go */
    bool is_overcommitted; /* accepted by force beyond what there is */
    enum reservation_state state;
    struct str detail;                    /* why it is in this state, for people */
    struct wall window_start, window_end; /* the open one or the next; of ended ones the last */
    int64_t windows_passed;
    struct mono ended_at; /* 0: it has not ended */
    uint64_t created_sequence;
    struct wall created;
    uint64_t version;
};

/* Settings by the names they have in settings_record; UNSET: that one is not meant. */
struct settings_patch {
    int64_t grace_s, kill_confirm_s, min_runtime_s, min_runtime_in_quota_s, start_timeout_s;
    int64_t lost_after_s, unknown_after_s, gang_repair_s, device_reserve_mib;
    int64_t backoff_base_s, backoff_max_s;
    int64_t lead_s, ended_keep_s, ended_keep_count, default_time_limit_s, starvation_after_s;
    int64_t history_k_milli, history_half_life_s, consolidate_max_moves;
    int64_t reclaim_to, placement, consolidate, user_fairness; /* enums */
};

/* Fields of a project, or settings, and a value for each; UNSET: that one is not meant. */
struct policy_patch {
    struct quota_list quotas; /* by class number; their fields may be UNSET as well */
    int64_t priority, log_quota_mib, log_days;
    struct settings_patch settings;
};

/*
 * A change of a project or of the settings: at once or later, for good or in windows of time. While
 * it is active it has what was before. Its rule is kept as a reservation's.
 */
struct change_record {
    struct id id;
    struct id project; /* none: it is of the settings */
    struct str name;   /* of one that has not ended: nobody else's; "": none */
    struct str user;
    struct str reason;
    struct policy_patch to;
    struct policy_patch former; /* while it is active: the same fields before it */
    bool is_forced;             /* also beyond what there is */
    struct str zone;
    struct str zone_rule;   /* base/zone.h */
    int64_t start_s, end_s; /* of the first window: struct local; end 0: for good */
    enum repeat repeat;
    int64_t interval;
    int64_t until_s; /* of what repeats: the last window begins before; struct local */
    enum change_state state;
    struct str detail;                    /* why it is in this state, for people */
    struct wall window_start, window_end; /* the open one or the next; end 0: for good */
    int64_t windows_passed;
    uint64_t active_sequence; /* of when it became active: later ones lie over earlier ones */
    struct mono ended_at;     /* 0: it has not ended */
    uint64_t created_sequence;
    struct wall created;
    uint64_t version;
};

/* ---- nodes --------------------------------------------------------------------------------- */

struct device_record {
    int64_t index; /* position on the node: stable while the hardware is */
    int64_t class_number;
    struct str uuid;
    struct str model;
    int64_t memory_mib;
    int64_t numa_node;
    enum device_health health;
    struct str health_reason; /* as its agent says it; empty when it is well */
    bool is_simulated;
    bool is_held; /* a person or a check keeps it out of use */
    struct str hold_reason;
};

struct device_list {
    struct device_record *items; /* ordered by index */
    size_t count;
};

struct hold {
    enum hold_kind kind;
    struct str by; /* user or check */
    struct str reason;
    struct wall since;
};

struct hold_list {
    struct hold *items;
    size_t count;
};

struct node_record {
    struct id id;
    struct str name;
    struct id pool;
    struct digest fingerprint; /* of the node's present certificate's public key */
    struct wall certified;     /* when that was made, whole seconds */
    struct digest
        next_fingerprint;       /* of the one it was given last, until it shows it; zero: none */
    struct wall next_certified; /* when that was made; 0: never was any */
    enum node_contact contact;
    struct wall contact_since;
    struct str boot_id;
    struct str agent_version; /* "": what follows is not known, or may not hold any more */
    int64_t cpu_milli;
    int64_t memory_mib;
    int64_t cpu_class_number; /* what work without devices is charged in here */
    struct device_list devices;
    struct hold_list holds;     /* usable only when empty */
    struct mono drain_deadline; /* 0: none; then what still runs is evicted */
    uint64_t generation;        /* of its desired set; raised by every change of its grants */
    uint64_t created_sequence;
    uint64_t version;
    struct str kernel, driver, runtime; /* versions, for people: "crun 1.8.1" */
    struct str problems;    /* what keeps it from running work, as it said when it started */
    struct str rack, block; /* where it stands; "": with the others of its pool */
};

/* ---- workloads ----------------------------------------------------------------------------- */

struct dependency {
    struct id workload;
    enum dependency_when when;
};

struct dependency_list {
    struct dependency *items;
    size_t count;
};

struct exit_status {
    bool is_known;
    bool is_oom;
    int64_t code;   /* 0..255 when the process exited by itself */
    int64_t signal; /* otherwise the signal that ended it */
};

struct workload_record {
    struct id id;
    struct id array; /* none: not part of an array */
    int64_t array_index;
    struct id project;
    struct str name;
    struct str user;
    struct str spec_json; /* what was submitted, completed with defaults: argv, env, image, ... */
    struct digest image;  /* resolved at submission */
    struct digest upload; /* content-addressed code, none when not given */

    struct request request; /* per member */
    int64_t members;
    int64_t members_min;
    int64_t priority;
    enum workload_kind kind;
    enum preemptible preemptible;
    int64_t time_limit_s; /* 0: none; counts per attempt */
    int64_t grace_s;
    int64_t retries;
    enum restart_policy restart;
    enum on_contact_loss on_contact_loss;
    int64_t fence_after_s;
    struct dependency_list depends_on;
    struct id_list volumes; /* at most MOUNTS_MAX */
    struct id reservation;  /* none: not tied to any */
    bool is_on_demand;      /* the window of its reservation ended, and it went on */

    enum workload_state state;
    enum cause cause; /* why it is in this state; of queued work the scheduler knows better */
    enum workload_state after_stop; /* while stopping: WL_QUEUED or a final state */
    struct str detail;              /* numbers behind the cause, for people */
    int64_t attempt;                /* 0 before the first */
    int64_t failures;
    int64_t evictions;
    int64_t node_losses;
    uint64_t submitted_sequence;
    struct wall submitted;
    struct mono not_before; /* back-off; 0: none */
    struct mono state_since;
    struct wall started; /* of the latest attempt; 0: never */
    struct wall ended;
    struct id_list nodes; /* of the latest attempt, by rank; none: that member was never placed */
    struct exit_status exit;
    uint64_t version;
};

/* A member that an attempt goes on without: it was lost, taken away, or never started. */
struct gap {
    int64_t rank;
};

struct gap_list {
    struct gap *items; /* by rank */
    size_t count;
};

/* What is not whole of an attempt that starts or runs; whole gangs have no such record. */
struct gang_record {
    struct id workload;
    struct gap_list missing;
    struct mono short_since; /* fewer than members_min are left; 0: enough are */
    struct mono grow_after;  /* no member joins before; 0: at any time */
};

/* With how many members it may run. */
static inline int64_t members_least(const struct workload_record *r)
{
    bool is_elastic = r->members_min >= 1 && r->members_min < r->members;
    return is_elastic ? r->members_min : r->members;
}

struct device_share {
    int64_t device; /* index on the node */
    int64_t milli;  /* 1000: the whole device */
    int64_t memory_mib;
    int64_t slice_start; /* of a partition by the vendor's table: its first memory slice, */
    int64_t slice_size;  /* how many these are; 0: it is none */
    int64_t slice_compute;
};

struct share_list {
    struct device_share *items;
    size_t count;
};

struct allocation_record {
    struct id id;
    struct id workload;
    struct id project;
    struct id node;
    int64_t attempt;
    int64_t rank;         /* of the member, from 0 */
    int64_t class_number; /* what it is charged in */
    int64_t charge_milli; /* of that class */
    int64_t cpu_milli;
    int64_t memory_mib;
    struct share_list shares;
    enum allocation_state state;
    enum cause stop_cause; /* why it was told to stop */
    struct id evictor;     /* the workload it made room for, if any */
    int64_t grace_s;
    struct mono granted;
    struct mono started; /* 0: the process never ran */
    struct mono stopping;
    struct mono gone; /* process confirmed gone */
    struct wall started_wall;
    struct exit_status exit;
    bool is_borrowed;         /* above quota when it was granted; recomputed by the scheduler */
    struct mono checkpointed; /* what its workload had saved by then is not lost; 0: never */
    int64_t checkpoints;      /* how often it had, as the node counts */
    int64_t extended_s;       /* what it was given beyond grace_s, because it asked */
    uint64_t created_sequence;
};

/* What a workload may have to end in, with all that it asks for. */
enum { GRACE_EXTENDED_MAX_S = 900 };

static inline int64_t grace_of(const struct allocation_record *r)
{
    return r->grace_s + r->extended_s;
}

/* One uninterrupted use of one allocation: the only thing billed for compute. */
struct segment {
    struct id allocation;
    struct id workload;
    struct id project;
    struct id tenant;
    int64_t class_number;
    int64_t charge_milli;
    struct wall start;
    int64_t duration_ms;
    int64_t price_micros_per_hour;
    int64_t amount_micros;
    enum cause cause; /* of the end */
};

#endif
