#include "wire/spec_json.h"

/* Bounds of what people send. decide() checks what they mean; here is what they may cost. */
enum {
    TEXT_MAX = 1024,
    REFERENCE_MAX = 512, /* of an image: registry, path, tag and digest */
    PROJECT_MAX = (NAME_MAX_BYTES + 1) * PATH_MAX_DEPTH,
    ARGUMENT_MAX = 64 * 1024,
    VALUE_MAX = 32 * 1024,
    PASSWORD_MAX = 4096,
    DAY_S = 86400
};
#define MILLI_MAX   INT64_C(1000000000)
#define MIB_MAX     INT64_C(1000000000)
#define SECONDS_MAX INT64_C(315360000) /* ten years */
#define MICROS_MAX  INT64_C(1000000000000)

#define OPTIONAL(kind, member, low, high)                                                          \
    F(kind, member), .flags = FIELD_UNSET, .min = (low), .max = (high)

#define OF struct mount_spec
static const struct field mount_fields[] = {
    { F(STR, volume), .max = NAME_MAX_BYTES, .flags = FIELD_REQUIRED, .doc = "name or id" },
    { F(STR, path), .max = 4095, .flags = FIELD_REQUIRED, .doc = "absolute, inside the workload" },
    { F(BOOL, is_read_only) },
};
static const struct schema mount_schema =
    SCHEMA("MountSpec", mount_fields, "a volume inside of a workload");
#undef OF

#define OF struct dependency_spec
static const struct field dependency_fields[] = {
    { F(STR, workload), .max = NAME_MAX_BYTES, .flags = FIELD_REQUIRED,
      .doc = "id of a workload or an array" },
    { F(ENUM, when), .names = &dependency_when_names, .flags = FIELD_UNSET,
      .doc = "how it has to end; default ok" },
};
static const struct schema dependency_spec_schema =
    SCHEMA("DependencySpec", dependency_fields, "what has to end first");
#undef OF

#define OF struct topology_spec
static const struct field topology_fields[] = {
    { F(ENUM, required), .names = &topology_names, .doc = "all members within one of these" },
    { F(ENUM, preferred), .names = &topology_names, .doc = "the same where it can be had" },
};
static const struct schema topology_spec_schema =
    SCHEMA("TopologySpec", topology_fields, "node, rack or block");
#undef OF

#define OF struct workload_spec
static const struct field workload_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES, .doc = "default: made from the command" },
    { F(STR, project), .max = PROJECT_MAX, .flags = FIELD_REQUIRED, .doc = "path or id" },
    { F(STR, kind), .max = NAME_MAX_BYTES, .doc = "always job" },
    { F(STR, profile), .max = NAME_MAX_BYTES,
      .doc = "gives the request, unless a field here overrides it" },
    { F(STR, image), .max = REFERENCE_MAX, .doc = "name of an image" },
    { F(STR_LIST, command), .max = ARGV_MAX, .item_max = ARGUMENT_MAX,
      .doc = "arguments, the program first; empty: the image's own" },
    { F(PAIRS, env), .max = ENV_MAX, .item_max = VALUE_MAX },
    { F(PAIRS, labels), .max = LABELS_MAX, .item_max = 256 },
    { F(STR, workdir), .max = 4095, .doc = "absolute; default: the image's" },
    { F(STRUCT_LIST, mounts), .schema = &mount_schema, .max = MOUNTS_MAX },
    { F(STRUCT_LIST, depends_on), .schema = &dependency_spec_schema, .max = DEPENDENCIES_MAX },
    { F(STR_LIST, classes), .max = REQUEST_CLASSES_MAX, .item_max = NAME_MAX_BYTES,
      .doc = "resource classes in order of preference; empty: any" },
    { F(STR, upload), .max = 2 * DIGEST_BYTES, .doc = "SHA-256 of an upload, in hexadecimal" },
    { F(STR, reservation), .max = NAME_MAX_BYTES,
      .doc = "name or id: it runs in its windows only" },
    { OPTIONAL(I64, count, 1, ARRAY_MAX), .doc = "more than 1: an array of that many workloads" },
    { OPTIONAL(I64, gpu_milli, 0, MILLI_MAX),
      .doc = "per member: below 1000 a fraction of one device, else whole devices" },
    { OPTIONAL(I64, gpu_memory_mib, 0, MIB_MAX), .doc = "instead: a fraction by memory" },
    { OPTIONAL(I64, devices, 0, ALLOCATION_DEVICES_MAX),
      .doc = "with share_milli: so many devices, that share of each" },
    { OPTIONAL(I64, share_milli, 0, 1000) },
    { OPTIONAL(ENUM, mig_profile, 0, 0), .names = &mig_names,
      .doc = "instead: that partition of one device, of a class whose slicing is mig" },
    { OPTIONAL(I64, cpu_milli, 0, MILLI_MAX), .doc = "1000: one core" },
    { OPTIONAL(I64, memory_mib, 0, MIB_MAX) },
    { OPTIONAL(I64, shm_mib, 0, MIB_MAX), .doc = "size of /dev/shm, within memory_mib" },
    { OPTIONAL(I64, members, 1, MEMBERS_MAX), .doc = "of a gang; they start together" },
    { OPTIONAL(I64, members_min, 1, MEMBERS_MAX),
      .doc = "with how many it may run: it starts with those that fit, and grows; default all" },
    { OPTIONAL(I64, priority, 0, 1000), .doc = "inside of the project; default 50" },
    { OPTIONAL(I64, time_limit_s, 0, SECONDS_MAX), .doc = "of each attempt; 0: none" },
    { OPTIONAL(I64, grace_s, 0, 86400), .doc = "between TERM and KILL" },
    { OPTIONAL(I64, retries, 0, 1000), .doc = "after failures of its own" },
    { OPTIONAL(I64, fence_after_s, FENCE_AFTER_MIN_S, 86400),
      .doc = "12 at least: without an acknowledged heartbeat, which comes every 5 s; then the work "
             "stops itself" },
    { OPTIONAL(ENUM, preemptible, 0, 0), .names = &preemptible_names },
    { OPTIONAL(ENUM, restart, 0, 0), .names = &restart_policy_names },
    { OPTIONAL(ENUM, on_contact_loss, 0, 0), .names = &on_contact_loss_names },
    { F(BOOL, is_held), .doc = "submit it held" },
    { F(STRUCT, topology), .schema = &topology_spec_schema,
      .doc = "how close together its members have to be" },
};
const struct schema workload_spec_schema =
    SCHEMA("WorkloadSpec", workload_fields, "work to be done");
#undef OF

#define OF struct quota_spec
static const struct field quota_fields[] = {
    { F_AS("class", STR, class_name), .max = NAME_MAX_BYTES, .flags = FIELD_REQUIRED },
    { OPTIONAL(I64, quota_milli, 0, MILLI_MAX), .doc = "guarantee" },
    { OPTIONAL(I64, lend_limit_milli, UNBOUNDED, MILLI_MAX),
      .doc = "how much of it others may use while it is not needed; -1: all of it" },
    { OPTIONAL(I64, limit_milli, UNBOUNDED, MILLI_MAX), .doc = "ceiling; -1: none" },
    { OPTIONAL(I64, over_quota_weight, 0, 1000000),
      .doc = "in the division of what is left over; default 100" },
};
const struct schema quota_spec_schema =
    SCHEMA("QuotaSpec", quota_fields, "quota fields of a project for a class");
#undef OF

#define OF struct project_spec
static const struct field project_fields[] = {
    { F(STR, path), .max = PROJECT_MAX, .doc = "\"amber/vision\"; parents must exist" },
    { OPTIONAL(I64, priority, 0, 1000) },
    { OPTIONAL(I64, log_quota_mib, 0, LOG_QUOTA_MIB_MAX),
      .doc = "output of its work that is stored, and of that of each project below that sets none; "
             "0: as its parent, for a tenant as the controller" },
    { OPTIONAL(I64, log_days, 0, LOG_DAYS_MAX),
      .doc = "how long output of ended work is kept, likewise; 0: as its parent" },
    { F(STRUCT_LIST, quotas), .schema = &quota_spec_schema, .max = CLASSES_MAX },
    { F(BOOL, is_forced), .doc = "accept quotas beyond what there is, and mark the project" },
};
const struct schema project_spec_schema =
    SCHEMA("ProjectSpec", project_fields, "a tenant or a project");
#undef OF

#define OF struct class_spec
static const struct field class_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES },
    { F(STR, vendor), .max = NAME_MAX_BYTES },
    { OPTIONAL(ENUM, kind, 0, 0), .names = &class_kind_names },
    { OPTIONAL(I64, memory_mib, 0, MIB_MAX), .doc = "of one device" },
    { OPTIONAL(ENUM, slicing, 0, 0), .names = &slicing_names,
      .doc = "of parts of a device: mig (partitions of hardware) lets several tenants have some; "
             "policed "
             "and cooperative, which mean the same so far, one tenant at a time" },
    { OPTIONAL(ENUM, mig, 0, 0), .names = &mig_table_names,
      .doc = "with slicing mig: which partitions there are; default: by the class's name" },
    { OPTIONAL(I64, price_micros_per_hour, 0, MICROS_MAX),
      .doc = "of a whole device or core, in millionths of the currency" },
};
const struct schema class_spec_schema = SCHEMA("ClassSpec", class_fields, "what hardware is");
#undef OF

#define OF struct pool_spec
static const struct field pool_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES },
    { F_AS("class", STR, class_name), .max = NAME_MAX_BYTES },
    { OPTIONAL(ENUM, site, 0, SITE_NATIVE + 1), .names = &site_kind_names,
      .doc = "nodes that run berth-agent" },
};
const struct schema pool_spec_schema =
    SCHEMA("PoolSpec", pool_fields, "nodes of one class on one site");
#undef OF

#define OF struct node_spec
static const struct field node_fields[] = {
    { F(STR, rack), .max = NAME_MAX_BYTES, .doc = "where it stands; none: not known" },
    { F(STR, block), .max = NAME_MAX_BYTES, .doc = "several racks; none: not known" },
};
const struct schema node_spec_schema =
    SCHEMA("NodeSpec", node_fields, "labels of a node to change; the others stay");
#undef OF

#define OF struct profile_spec
static const struct field profile_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES },
    { F(STR, description), .max = TEXT_MAX },
    { F(STR_LIST, classes), .max = REQUEST_CLASSES_MAX, .item_max = NAME_MAX_BYTES },
    { F(STR_LIST, pools), .max = 64, .item_max = NAME_MAX_BYTES },
    { F(STR_LIST, projects), .max = 64, .item_max = PROJECT_MAX,
      .doc =
          "paths: only they, and what is below, may use it; to others it is absent. \"*\": all" },
    { F(STRUCT, topology), .schema = &topology_spec_schema,
      .doc = "of its work, unless that says another" },
    { OPTIONAL(I64, gpu_milli, 0, MILLI_MAX) },
    { OPTIONAL(I64, gpu_memory_mib, 0, MIB_MAX) },
    { OPTIONAL(I64, devices, 0, ALLOCATION_DEVICES_MAX) },
    { OPTIONAL(I64, share_milli, 0, 1000) },
    { OPTIONAL(ENUM, mig_profile, 0, 0), .names = &mig_names },
    { OPTIONAL(I64, cpu_milli, 0, MILLI_MAX) },
    { OPTIONAL(I64, memory_mib, 0, MIB_MAX) },
};
const struct schema profile_spec_schema =
    SCHEMA("ProfileSpec", profile_fields, "a shape that users pick by name");
#undef OF

#define OF struct token_spec
static const struct field token_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES, .doc = "what it is for" },
    { F(ENUM, role), .names = &role_names, .flags = FIELD_UNSET, .doc = "default member" },
    { F(STR, tenant), .max = NAME_MAX_BYTES, .doc = "of members: name or id" },
    { F(STR, user), .max = NAME_MAX_BYTES, .doc = "who acts with it" },
    { F(STR, pool), .max = NAME_MAX_BYTES, .doc = "of join tokens: the pool that nodes enter" },
    { OPTIONAL(I64, expires_s, 1, SECONDS_MAX),
      .doc = "from now; default never, for join tokens an hour" },
};
const struct schema token_spec_schema = SCHEMA("TokenSpec", token_fields, "a bearer token");
#undef OF

#define OF struct volume_spec
static const struct field volume_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES, .flags = FIELD_REQUIRED },
    { F(STR, tenant), .max = NAME_MAX_BYTES, .doc = "default: one's own" },
    { OPTIONAL(I64, quota_mib, 0, MIB_MAX), .doc = "0: none" },
};
const struct schema volume_spec_schema =
    SCHEMA("VolumeSpec", volume_fields, "a directory that outlives workloads");
#undef OF

#define OF struct reservation_spec
static const struct field reservation_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES, .flags = FIELD_REQUIRED },
    { F(STR, project), .max = PROJECT_MAX, .flags = FIELD_REQUIRED, .doc = "path or id" },
    { F_AS("class", STR, class_name), .max = NAME_MAX_BYTES, .flags = FIELD_REQUIRED },
    { OPTIONAL(I64, gpu_milli, 1000, MILLI_MAX), .doc = "whole devices: 1000 for each" },
    { F(STR, zone), .max = ZONE_NAME_MAX, .doc = "\"Europe/Berlin\"; default UTC" },
    { F(STR, start), .max = LOCAL_TEXT_MAX, .flags = FIELD_REQUIRED,
      .doc = "local time there: \"2026-03-27T18:00:00\"" },
    { F(STR, end), .max = LOCAL_TEXT_MAX, .doc = "likewise; or duration_s" },
    { OPTIONAL(I64, duration_s, 1, 366 * DAY_S), .doc = "of clocks there, instead of end" },
    { OPTIONAL(ENUM, every, 0, 0), .names = &repeat_names,
      .doc = "day, weekday or week; once unless given" },
    { OPTIONAL(I64, interval, 1, 53), .doc = "every so many days or weeks; default 1" },
    { F(STR, until), .max = LOCAL_TEXT_MAX,
      .doc = "local time that the last window begins before; default: 366 days after start" },
    { OPTIONAL(ENUM, end_policy, 0, 0), .names = &end_policy_names,
      .doc = "what its work does when a window ends: requeue (default), on_demand or stop" },
    { F(BOOL, is_lent), .doc = "others may use what is unused of an open window, until it is" },
    { F(BOOL, is_forced), .doc = "accept it beyond what there is, and mark it; operators only" },
    { F(BOOL, is_request), .doc = "only ask for it: nothing is kept until it is confirmed" },
};
const struct schema reservation_spec_schema =
    SCHEMA("ReservationSpec", reservation_fields, "devices for a project in windows of time");
#undef OF

#define OF struct image_spec
static const struct field image_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES },
    { F(STR, tenant), .max = NAME_MAX_BYTES, .doc = "default: one's own; operators: for all" },
    { F(STR, source), .max = REFERENCE_MAX, .doc = "reference in a registry" },
    { F(DIGEST, manifest), .doc = "SHA-256 of its manifest" },
    { OPTIONAL(I64, size_bytes, 0, INT64_MAX) },
};
const struct schema image_spec_schema = SCHEMA("ImageSpec", image_fields, "an image");
#undef OF

#define OF struct credential_spec
static const struct field credential_fields[] = {
    { F(STR, tenant), .max = NAME_MAX_BYTES, .doc = "default: one's own" },
    { F(STR, registry), .max = 255, .flags = FIELD_REQUIRED, .doc = "host, with a port if any" },
    { F(STR, username), .max = 255, .flags = FIELD_REQUIRED },
    { F_AS("password", STR, sealed), .max = PASSWORD_MAX, .flags = FIELD_REQUIRED | FIELD_SECRET,
      .doc = "sealed before it is stored; never shown again" },
};
const struct schema credential_spec_schema =
    SCHEMA("CredentialSpec", credential_fields, "a login at a private registry");
#undef OF

#define OF struct hook_spec
static const struct field hook_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES, .flags = FIELD_REQUIRED },
    { F(STR, project), .max = PROJECT_MAX, .flags = FIELD_REQUIRED,
      .doc = "its work, and that of those below it; a tenant: all of it" },
    { F(STR, url), .max = HOOK_URL_MAX, .flags = FIELD_REQUIRED,
      .doc = "https://... that takes a POST, or mailto:ADDRESS" },
    { F_AS("secret", STR, sealed), .max = PASSWORD_MAX, .flags = FIELD_SECRET,
      .doc = "signs what is sent; sealed before it is stored, never shown again; not for mail" },
};
const struct schema hook_spec_schema = SCHEMA("HookSpec", hook_fields, "where notices go");
#undef OF

#define OF struct settings_record
static const struct field settings_fields[] = {
    { OPTIONAL(I64, grace_s, 0, 900), .doc = "between TERM and KILL" },
    { OPTIONAL(I64, kill_confirm_s, 1, 3600), .doc = "for a killed process to be gone" },
    { OPTIONAL(I64, min_runtime_s, 0, DAY_S),
      .doc = "that work is left in peace by claims beyond a quota, and by more urgent work" },
    { OPTIONAL(I64, min_runtime_in_quota_s, 0, DAY_S),
      .doc = "that borrowed work is left in peace by claims within a quota" },
    { OPTIONAL(I64, start_timeout_s, 1, DAY_S) },
    { OPTIONAL(I64, lost_after_s, 5, DAY_S),
      .doc = "without contact, until a node is declared lost" },
    { OPTIONAL(I64, unknown_after_s, 1, DAY_S),
      .doc = "without contact, until a node gets no new work" },
    { OPTIONAL(I64, gang_repair_s, 0, DAY_S),
      .doc = "that a gang short of members waits for others before it is requeued whole" },
    { OPTIONAL(I64, history_k_milli, 0, 10000),
      .doc = "how much past use takes from a project's weight: 1000 as much as it had too much" },
    { OPTIONAL(I64, history_half_life_s, 60, 366 * DAY_S),
      .doc = "after which past use counts half" },
    { F(ENUM, user_fairness), .names = &user_fairness_names,
      .doc = "whether who used less of a project lately comes first among its users" },
    { F(ENUM, consolidate), .names = &consolidate_names,
      .doc = "move work that can go so that waiting work fits" },
    { OPTIONAL(I64, consolidate_max_moves, 1, 16), .doc = "workloads moved for one, at most" },
    { OPTIONAL(I64, device_reserve_mib, 0, INT64_C(1) << 20) },
    { OPTIONAL(I64, backoff_base_s, 0, DAY_S),
      .doc = "the n-th failure waits base times 2 to the n" },
    { OPTIONAL(I64, backoff_max_s, 0, DAY_S) },
    { OPTIONAL(I64, lead_s, 0, DAY_S),
      .doc = "how long before its start the devices of a reservation are cleared" },
    { OPTIONAL(I64, ended_keep_s, 0, 366 * DAY_S), .doc = "how long ended work stays in memory" },
    { OPTIONAL(I64, ended_keep_count, 0, 10000000) },
    { OPTIONAL(I64, default_time_limit_s, 0, 366 * DAY_S),
      .doc =
          "what work without a time limit is planned with, and not stopped by; 0: it never ends" },
    { OPTIONAL(I64, starvation_after_s, 1, 366 * DAY_S),
      .doc = "of waiting without a promised start, until others leave a place" },
    { F(ENUM, reclaim_to), .names = &reclaim_to_names,
      .doc = "how far work above a quota is stopped for others" },
    { F(ENUM, placement), .names = &placement_names,
      .doc = "which of the nodes that fit work goes to" },
};
const struct schema settings_spec_schema =
    SCHEMA("SettingsSpec", settings_fields, "settings to change; the others stay");
#undef OF

#define OF struct settings_patch
static const struct field settings_change_fields[] = {
    { OPTIONAL(I64, grace_s, 0, 900) },
    { OPTIONAL(I64, kill_confirm_s, 1, 3600) },
    { OPTIONAL(I64, min_runtime_s, 0, DAY_S) },
    { OPTIONAL(I64, min_runtime_in_quota_s, 0, DAY_S) },
    { OPTIONAL(I64, start_timeout_s, 1, DAY_S) },
    { OPTIONAL(I64, lost_after_s, 5, DAY_S) },
    { OPTIONAL(I64, unknown_after_s, 1, DAY_S) },
    { OPTIONAL(I64, device_reserve_mib, 0, INT64_C(1) << 20) },
    { OPTIONAL(I64, gang_repair_s, 0, DAY_S) },
    { OPTIONAL(I64, backoff_base_s, 0, DAY_S) },
    { OPTIONAL(I64, backoff_max_s, 0, DAY_S) },
    { OPTIONAL(I64, lead_s, 0, DAY_S) },
    { OPTIONAL(I64, history_k_milli, 0, 10000) },
    { OPTIONAL(I64, history_half_life_s, 60, 366 * DAY_S) },
    { OPTIONAL(I64, consolidate_max_moves, 1, 1000) },
    { OPTIONAL(I64, ended_keep_s, 0, 366 * DAY_S) },
    { OPTIONAL(I64, ended_keep_count, 0, 10000000) },
    { OPTIONAL(I64, default_time_limit_s, 0, 366 * DAY_S) },
    { OPTIONAL(I64, starvation_after_s, 1, 366 * DAY_S) },
    { OPTIONAL(ENUM, reclaim_to, 0, 0), .names = &reclaim_to_names },
    { OPTIONAL(ENUM, placement, 0, 0), .names = &placement_names },
    { OPTIONAL(ENUM, consolidate, 0, 0), .names = &consolidate_names },
    { OPTIONAL(ENUM, user_fairness, 0, 0), .names = &user_fairness_names },
};
static const struct schema settings_change_schema =
    SCHEMA("SettingsChange", settings_change_fields, "settings to change: see Settings");
#undef OF

#define OF struct change_spec
static const struct field change_fields[] = {
    { F(STR, name), .max = NAME_MAX_BYTES, .doc = "for people, and to find it again" },
    { F(STR, project), .max = PROJECT_MAX,
      .doc = "path or id; without one it is of the settings of the installation" },
    { F(STR, reason), .max = TEXT_MAX, .doc = "for people" },
    { F(STRUCT_LIST, quotas), .schema = &quota_spec_schema, .max = CLASSES_MAX },
    { OPTIONAL(I64, priority, 0, 1000), .doc = "among siblings" },
    { OPTIONAL(I64, log_quota_mib, 0, LOG_QUOTA_MIB_MAX) },
    { OPTIONAL(I64, log_days, 0, LOG_DAYS_MAX) },
    { F(STRUCT, settings), .schema = &settings_change_schema },
    { F(STR, zone), .max = ZONE_NAME_MAX, .doc = "\"Europe/Berlin\"; default UTC" },
    { F(STR, from), .max = LOCAL_TEXT_MAX,
      .doc = "local time there: \"2026-03-27T18:00:00\"; default: now" },
    { F(STR, until), .max = LOCAL_TEXT_MAX,
      .doc = "likewise: then what was before holds again; without an end it is for good" },
    { OPTIONAL(I64, duration_s, 1, 366 * DAY_S), .doc = "instead of until" },
    { OPTIONAL(ENUM, every, 0, 0), .names = &repeat_names,
      .doc = "day, weekday or week; once unless given" },
    { OPTIONAL(I64, interval, 1, 53), .doc = "every so many days or weeks; default 1" },
    { F(STR, repeat_until), .max = LOCAL_TEXT_MAX,
      .doc = "local time that the last window begins before; default: 366 days after from" },
    { F(BOOL, is_forced), .doc = "accept quotas beyond what there is, and mark the project" },
};
const struct schema change_spec_schema =
    SCHEMA("ChangeSpec", change_fields, "a change of a project or of the settings");
#undef OF

#define OF struct whatif_spec
static const struct field whatif_fields[] = {
    { F(STRUCT, submit), .schema = &workload_spec_schema, .doc = "this work is submitted" },
    { F(STRUCT, change), .schema = &change_spec_schema,
      .doc = "this change is made; operators only" },
    { F(STR, lose_node), .max = NAME_MAX_BYTES,
      .doc = "this node is lost, by name or id; operators only" },
    { OPTIONAL(I64, horizon_s, 1, 31 * DAY_S), .doc = "so far ahead; default a day" },
};
const struct schema whatif_spec_schema =
    SCHEMA("WhatIfSpec", whatif_fields, "what is supposed; at least one thing");
#undef OF

#define OF struct target
static const struct field target_fields[] = {
    { F(STR, reason), .max = TEXT_MAX, .doc = "for people, kept in the audit" },
    { OPTIONAL(I64, deadline_s, 0, SECONDS_MAX),
      .doc = "of a drain: from now, then what still runs is evicted" },
    { F(BOOL, is_forced) },
};
const struct schema target_spec_schema =
    SCHEMA("ActionSpec", target_fields, "how something is to be done");
#undef OF

enum err spec_decode(const struct schema *schema, struct str body, struct arena *arena, void *spec,
                     struct error *e)
{
    /* An action may come without a body; its fields are all optional. */
    struct str text = body.size > 0 ? body : STR("{}");

    return schema_decode_text(schema, text, UNKNOWN_REFUSED, arena, spec, e);
}

/* ---- canonical form ------------------------------------------------------------------------ */

static void fill(int64_t *value, int64_t given)
{
    if (*value == UNSET)
        *value = given;
}

/* Defaults that hold for every workload; what depends on a profile or the settings stays open. */
static void fill_defaults(struct workload_spec *spec)
{
    if (spec->kind.size == 0)
        spec->kind = STR("job");
    fill(&spec->members, 1);
    fill(&spec->members_min, spec->members);
    fill(&spec->preemptible, PREEMPTIBLE_ALWAYS);
    fill(&spec->restart, RESTART_ON_FAILURE);
    fill(&spec->on_contact_loss, LOSS_RESTART);
    if (spec->count == 1)
        spec->count = UNSET;
}

struct str workload_spec_canonical(const struct workload_spec *spec, struct arena *arena)
{
    AUTO(buf) struct buf text = { 0 };
    struct json_writer w = json_writer_of(&text);
    struct workload_spec full = *spec;

    fill_defaults(&full);
    schema_encode(&w, &workload_spec_schema, &full, WIRE_STORED, NULL);
    return str_copy(arena, buf_str(&text));
}

enum err workload_spec_parse(struct str json, struct arena *arena, struct workload_spec *out,
                             struct error *e)
{
    if (schema_decode_text(&workload_spec_schema, json, UNKNOWN_IGNORED, arena, out, e) == ERR_OK)
        return ERR_OK;
    if (e != NULL)
        e->code = ERR_CORRUPT;
    return err_wrap(e, ERR_CORRUPT, "stored spec of a workload");
}
