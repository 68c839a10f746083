/*
 * spec.h - what a person asks for, before it is checked and resolved: the bodies of requests and
 * manifests. wire/ fills these from JSON or YAML; decide() turns them into records.
 * Numbers that were not given are UNSET; strings and lists not given are empty.
 */
#ifndef MODEL_SPEC_H
#define MODEL_SPEC_H

#include "model/record.h"

/*
 * A node's lease is renewed by heartbeats, one each HEARTBEAT_S. One of them may be lost, and
 * the next has a second to be asked for and one to come back: with less than that fenced work
 * would end without a fault.
 */
enum { HEARTBEAT_S = 5, FENCE_AFTER_MIN_S = 2 * HEARTBEAT_S + 2 };

struct mount_spec {
    struct str volume; /* name or id, of the own tenant */
    struct str path;   /* absolute, inside the workload */
    bool is_read_only;
};

struct mount_list {
    struct mount_spec *items;
    size_t count;
};

struct dependency_spec {
    struct str workload; /* id of a workload or an array */
    int64_t when;        /* enum dependency_when, or UNSET: ok */
};

struct dependency_spec_list {
    struct dependency_spec *items;
    size_t count;
};

struct topology_spec {
    enum topology required, preferred; /* TOPOLOGY_NONE: not given */
};

struct workload_spec {
    struct str name;
    struct str project; /* path or id */
    struct str kind;    /* "job" */
    struct str profile; /* a profile's name: gives the request unless a field overrides it */
    struct str image;
    struct str_list command; /* argv; empty: the image's own */
    struct pair_list env;
    struct pair_list labels;
    struct str workdir;
    struct mount_list mounts;
    struct dependency_spec_list depends_on;
    struct str_list classes;
    struct str reservation; /* name or id, of the own tenant: runs in its windows only */
    struct str upload; /* digest in hexadecimal of stored code, unpacked at the working directory */
    int64_t count;     /* > 1: an array of that many workloads */
    int64_t gpu_milli, gpu_memory_mib, devices, share_milli, cpu_milli, memory_mib, shm_mib;
    int64_t mig_profile; /* enum mig_name, or UNSET */
    int64_t members, members_min;
    int64_t priority;
    int64_t time_limit_s, grace_s, retries, fence_after_s;
    int64_t preemptible, restart, on_contact_loss; /* enums, or UNSET */
    bool is_held;                                  /* submit it held */
    struct topology_spec topology;
};

struct quota_spec {
    struct str class_name;
    int64_t quota_milli, lend_limit_milli, limit_milli, over_quota_weight; /* UNSET: keep */
};

struct quota_spec_list {
    struct quota_spec *items;
    size_t count;
};

struct project_spec {
    struct str path; /* parents must exist */
    int64_t priority;
    int64_t log_quota_mib, log_days; /* 0: as its parent */
    struct quota_spec_list quotas;
    bool is_forced; /* accept over-commitment, and flag it */
};

struct class_spec {
    struct str name, vendor;
    int64_t kind, memory_mib, slicing, mig, price_micros_per_hour;
};

struct pool_spec {
    struct str name, class_name;
    int64_t site;
};

struct profile_spec {
    struct str name, description;
    struct str_list classes, pools;
    struct str_list projects; /* "*" alone: everybody's again */
    int64_t gpu_milli, gpu_memory_mib, devices, share_milli, cpu_milli, memory_mib;
    int64_t mig_profile;
    struct topology_spec topology;
};

struct node_spec {
    struct str rack, block; /* empty: keep; "none": no such label */
};

struct token_spec {
    struct str name, tenant, user, pool;
    int64_t role;
    int64_t expires_s; /* from now; UNSET: never (join tokens: one hour) */
};

struct volume_spec {
    struct str name, tenant;
    int64_t quota_mib;
};

struct image_spec {
    struct str name, tenant, source;
    struct digest manifest;
    int64_t size_bytes;
};

/* Times are local times of the zone: "2026-03-27T18:00:00". */
struct reservation_spec {
    struct str name, project, class_name;
    struct str zone;      /* "" is UTC */
    struct str zone_rule; /* what it means now: found by whoever may read the system's tables */
    struct str start, end, until;
    int64_t gpu_milli;
    int64_t duration_s;                  /* instead of `end` */
    int64_t every, interval, end_policy; /* enums and a number, or UNSET */
    bool is_lent, is_forced;
    bool is_request; /* only asked for: somebody confirms it later */
};

/* Times are local ones of the zone; without `from` it begins now, without an end it is for good. */
struct change_spec {
    struct str name, project; /* no project: of the settings */
    struct str reason;
    struct str zone, zone_rule; /* as of a reservation */
    struct str from, until, repeat_until;
    int64_t duration_s; /* instead of `until` */
    int64_t every, interval;
    int64_t priority, log_quota_mib, log_days;
    struct quota_spec_list quotas;
    struct settings_patch settings;
    bool is_forced;
};

/* What would follow if that were so. What is not asked has no project, or no name. */
struct whatif_spec {
    struct workload_spec submit;
    struct change_spec change;
    struct str lose_node;
    int64_t horizon_s; /* UNSET: a day */
};

struct credential_spec {
    struct str tenant, registry, username, sealed;
};

struct hook_spec {
    struct str name, project, url, sealed;
};

#endif
