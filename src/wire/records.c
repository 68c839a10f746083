/*
 * records.c - how facts look in the journal, for ever: a row may be added here, never
 * renamed, never given another meaning. A field that is absent reads as zero, so old
 * bodies need no migration.
 */
#include "wire/records.h"

#include "model/event.h"
#include "model/record.h"

/* ---- configuration ------------------------------------------------------------------------- */

#define OF struct class_record
static const struct field class_record_fields[] = {
    { F(ID, id), .id_kind = ID_CLASS },
    { F(STR, name) },
    { F(I64, number), .flags = FIELD_STORED },
    { F(ENUM, kind), .names = &class_kind_names },
    { F(STR, vendor) },
    { F(I64, memory_mib) },
    { F(ENUM, slicing), .names = &slicing_names },
    { F(ENUM, mig), .names = &mig_table_names, .flags = FIELD_SPARSE },
    { F(I64, price_micros_per_hour) },
    { F_AS("capacity_average", I64, capacity.average), .flags = FIELD_STORED },
    { F_AS("capacity_as_of", MONO, capacity.as_of), .flags = FIELD_STORED },
    { F_AS("capacity_level", I64, capacity.level), .flags = FIELD_STORED },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema class_record_schema = SCHEMA("ClassRecord", class_record_fields, "a class");
#undef OF

#define OF struct pool_record
static const struct field pool_record_fields[] = {
    { F(ID, id), .id_kind = ID_POOL },          { F(STR, name) },
    { F_AS("class", CLASS, class_number) },     { F(ENUM, site), .names = &site_kind_names },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema pool_record_schema = SCHEMA("PoolRecord", pool_record_fields, "a pool");
#undef OF

#define OF struct request
static const struct field request_fields[] = {
    { F(I64, gpu_milli) },
    { F(I64, gpu_memory_mib) },
    { F(I64, devices) },
    { F(I64, share_milli) },
    { F(I64, cpu_milli) },
    { F(I64, memory_mib) },
    { F_ARRAY("classes", CLASS_ARRAY, class_numbers, class_count) },
    { F(ENUM, required), .names = &topology_names },
    { F(ENUM, preferred), .names = &topology_names },
    { F(ENUM, mig_profile), .names = &mig_names },
};
const struct schema request_schema =
    SCHEMA("RequestRecord", request_fields, "what one member asks for");
#undef OF

#define OF struct profile_record
static const struct field profile_record_fields[] = {
    { F(ID, id), .id_kind = ID_PROFILE },
    { F(STR, name) },
    { F(STR, description) },
    { F(STRUCT, request), .schema = &request_schema },
    { F(STR_LIST, pools) },
    { F(STR_LIST, projects) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema profile_record_schema =
    SCHEMA("ProfileRecord", profile_record_fields, "a profile");
#undef OF

#define OF struct quota
static const struct field quota_fields[] = {
    { F_AS("class", CLASS, class_number) }, { F(I64, quota_milli) },
    { F(I64, lend_limit_milli) },           { F(I64, limit_milli) },
    { F(I64, over_quota_weight) },
};
const struct schema quota_schema =
    SCHEMA("QuotaRecord", quota_fields, "quota fields of a project for a class");
#undef OF

#define OF struct usage_total
static const struct field usage_total_fields[] = {
    { F_AS("class", CLASS, class_number) },
    { F(I64, milli_ms) },
    { F(I64, amount_micros) },
    { F(I64, segments) },
};
const struct schema usage_total_schema =
    SCHEMA("UsageRecord", usage_total_fields, "usage of a class so far");
#undef OF

#define OF struct past_use
static const struct field past_use_fields[] = {
    { F_AS("class", CLASS, class_number) },
    { F_AS("average", I64, decay.average) },
    { F_AS("as_of", MONO, decay.as_of), .flags = FIELD_STORED },
    { F_AS("level", I64, decay.level) },
};
const struct schema past_use_schema =
    SCHEMA("PastUseRecord", past_use_fields, "use of a class, decayed");
#undef OF

#define OF struct user_past
static const struct field user_past_fields[] = {
    { F(STR, user) },
    { F_AS("devices_average", I64, devices.average) },
    { F_AS("devices_as_of", MONO, devices.as_of), .flags = FIELD_STORED },
    { F_AS("devices_level", I64, devices.level) },
    { F_AS("cores_average", I64, cores.average) },
    { F_AS("cores_as_of", MONO, cores.as_of), .flags = FIELD_STORED },
    { F_AS("cores_level", I64, cores.level) },
};
const struct schema user_past_schema =
    SCHEMA("UserPastRecord", user_past_fields, "use of a user, decayed");
#undef OF

#define OF struct project_record
static const struct field project_record_fields[] = {
    { F(PROJECT, id) },
    { F(PROJECT, parent) },
    { F(STR, name) },
    { F(STR, path) },
    { F(I64, number), .flags = FIELD_STORED },
    { F(I64, priority) },
    { F(STRUCT_LIST, quotas), .schema = &quota_schema },
    { F(BOOL, is_overcommitted) },
    { F(I64, log_quota_mib), .flags = FIELD_SPARSE },
    { F(I64, log_days), .flags = FIELD_SPARSE },
    { F(U64, created_sequence), .flags = FIELD_STORED },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
    { F(STRUCT_LIST, usage), .schema = &usage_total_schema, .flags = FIELD_STORED },
    { F(STRUCT_LIST, past), .schema = &past_use_schema, .flags = FIELD_STORED },
    { F(STRUCT_LIST, users), .schema = &user_past_schema, .flags = FIELD_STORED },
    { F(U64, feed_sequence), .flags = FIELD_STORED },
};
const struct schema project_record_schema =
    SCHEMA("ProjectRecord", project_record_fields, "a tenant or a project");
#undef OF

#define OF struct settings_record
static const struct field settings_record_fields[] = {
    { F(I64, grace_s) },
    { F(I64, kill_confirm_s) },
    { F(I64, min_runtime_s) },
    { F(I64, min_runtime_in_quota_s) },
    { F(I64, start_timeout_s) },
    { F(I64, lost_after_s) },
    { F(I64, unknown_after_s) },
    { F(I64, gang_repair_s) },
    { F(I64, device_reserve_mib) },
    { F(I64, backoff_base_s) },
    { F(I64, backoff_max_s) },
    { F(I64, ended_keep_s) },
    { F(I64, ended_keep_count) },
    { F(I64, default_time_limit_s) },
    { F(I64, starvation_after_s) },
    { F(I64, lead_s), .flags = FIELD_UNSET },
    { F(I64, history_k_milli) },
    { F(I64, history_half_life_s) },
    { F(I64, consolidate_max_moves) },
    { F(ENUM, consolidate), .names = &consolidate_names },
    { F(ENUM, reclaim_to), .names = &reclaim_to_names },
    { F(ENUM, placement), .names = &placement_names },
    { F(ENUM, user_fairness), .names = &user_fairness_names, .flags = FIELD_SPARSE },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema settings_record_schema =
    SCHEMA("SettingsRecord", settings_record_fields, "settings of the installation");
#undef OF

#define OF struct token_record
static const struct field token_record_fields[] = {
    { F(ID, id), .id_kind = ID_TOKEN },
    { F(DIGEST, secret), .flags = FIELD_SECRET },
    { F(STR, name) },
    { F(ENUM, role), .names = &role_names },
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F(STR, user) },
    { F(STR, pool) },
    { F(WALL, created) },
    { F(WALL, expires) },
    { F(BOOL, is_revoked) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema token_record_schema = SCHEMA("TokenRecord", token_record_fields, "a token");
#undef OF

#define OF struct volume_record
static const struct field volume_record_fields[] = {
    { F(ID, id), .id_kind = ID_VOLUME },
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F(STR, name) },
    { F(ID, node), .id_kind = ID_NODE },
    { F(I64, quota_mib) },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema volume_record_schema = SCHEMA("VolumeRecord", volume_record_fields, "a volume");
#undef OF

#define OF struct image_record
static const struct field image_record_fields[] = {
    { F(ID, id), .id_kind = ID_IMAGE },
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F(STR, name) },
    { F(DIGEST, manifest) },
    { F(STR, source) },
    { F(I64, size_bytes) },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema image_record_schema = SCHEMA("ImageRecord", image_record_fields, "an image");
#undef OF

#define OF struct credential_record
static const struct field credential_record_fields[] = {
    { F(ID, id), .id_kind = ID_CREDENTIAL },
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F(STR, registry) },
    { F(STR, username) },
    { F(STR, sealed), .flags = FIELD_SECRET },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema credential_record_schema =
    SCHEMA("CredentialRecord", credential_record_fields, "a login at a registry");
#undef OF

#define OF struct hook_record
static const struct field hook_record_fields[] = {
    { F(ID, id), .id_kind = ID_HOOK },
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F(PROJECT, project) },
    { F(STR, name) },
    { F(STR, url), .flags = FIELD_SECRET },
    { F(STR, sealed), .flags = FIELD_SECRET },
    { F(STR, fault) },
    { F(U64, created_sequence), .flags = FIELD_STORED },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema hook_record_schema =
    SCHEMA("HookRecord", hook_record_fields, "where notices go");
#undef OF

#define OF struct reservation_record
static const struct field reservation_record_fields[] = {
    { F(ID, id), .id_kind = ID_RESERVATION },
    { F(PROJECT, project) },
    { F(STR, name) },
    { F(STR, user) },
    { F_AS("class", CLASS, class_number) },
    { F(I64, gpu_milli) },
    { F(STR, zone) },
    { F(STR, zone_rule) },
    { F(I64, start_s), .doc = "local time of the zone, in seconds as if it were UTC" },
    { F(I64, end_s) },
    { F_AS("every", ENUM, repeat), .names = &repeat_names },
    { F(I64, interval) },
    { F(I64, until_s) },
    { F(ENUM, end_policy), .names = &end_policy_names },
    { F(BOOL, is_lent) },
    { F(BOOL, is_overcommitted) },
    { F(ENUM, state), .names = &reservation_state_names },
    { F(STR, detail) },
    { F(WALL, window_start) },
    { F(WALL, window_end) },
    { F(I64, windows_passed) },
    { F(MONO, ended_at), .flags = FIELD_STORED },
    { F(U64, created_sequence), .flags = FIELD_STORED },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema reservation_record_schema =
    SCHEMA("ReservationRecord", reservation_record_fields, "a reservation");
#undef OF

#define OF struct quota
static const struct field quota_patch_fields[] = {
    { F_AS("class", CLASS, class_number) },
    { F(I64, quota_milli), .flags = FIELD_UNSET },
    { F(I64, lend_limit_milli), .flags = FIELD_UNSET },
    { F(I64, limit_milli), .flags = FIELD_UNSET },
    { F(I64, over_quota_weight), .flags = FIELD_UNSET },
};
const struct schema quota_patch_schema =
    SCHEMA("QuotaPatch", quota_patch_fields, "some quota fields of a project for a class");
#undef OF

#define OF struct settings_patch
#define SETTING(name)                                                                              \
    {                                                                                              \
        F(I64, name), .flags = FIELD_UNSET                                                         \
    }
static const struct field settings_patch_fields[] = {
    SETTING(grace_s),
    SETTING(kill_confirm_s),
    SETTING(min_runtime_s),
    SETTING(min_runtime_in_quota_s),
    SETTING(start_timeout_s),
    SETTING(lost_after_s),
    SETTING(unknown_after_s),
    SETTING(gang_repair_s),
    SETTING(device_reserve_mib),
    SETTING(backoff_base_s),
    SETTING(backoff_max_s),
    SETTING(lead_s),
    SETTING(history_k_milli),
    SETTING(history_half_life_s),
    SETTING(consolidate_max_moves),
    SETTING(ended_keep_s),
    SETTING(ended_keep_count),
    SETTING(default_time_limit_s),
    SETTING(starvation_after_s),
    { F(ENUM, reclaim_to), .names = &reclaim_to_names, .flags = FIELD_UNSET },
    { F(ENUM, placement), .names = &placement_names, .flags = FIELD_UNSET },
    { F(ENUM, consolidate), .names = &consolidate_names, .flags = FIELD_UNSET },
    { F(ENUM, user_fairness), .names = &user_fairness_names, .flags = FIELD_UNSET },
};
#undef SETTING
const struct schema settings_patch_schema =
    SCHEMA("SettingsPatch", settings_patch_fields, "some settings");
#undef OF

#define OF struct policy_patch
static const struct field policy_patch_fields[] = {
    { F(STRUCT_LIST, quotas), .schema = &quota_patch_schema, .flags = FIELD_SPARSE },
    { F(I64, priority), .flags = FIELD_UNSET },
    { F(I64, log_quota_mib), .flags = FIELD_UNSET },
    { F(I64, log_days), .flags = FIELD_UNSET },
    { F(STRUCT, settings), .schema = &settings_patch_schema, .flags = FIELD_SPARSE },
};
const struct schema policy_patch_schema =
    SCHEMA("PolicyPatch", policy_patch_fields, "fields of a project, or settings");
#undef OF

#define OF struct change_record
static const struct field change_record_fields[] = {
    { F(ID, id), .id_kind = ID_CHANGE },
    { F(PROJECT, project) },
    { F(STR, name) },
    { F(STR, user) },
    { F(STR, reason) },
    { F(STRUCT, to), .schema = &policy_patch_schema },
    { F(STRUCT, former), .schema = &policy_patch_schema },
    { F(BOOL, is_forced) },
    { F(STR, zone) },
    { F(STR, zone_rule) },
    { F(I64, start_s), .doc = "local time of the zone, in seconds as if it were UTC" },
    { F(I64, end_s), .doc = "likewise; 0: for good" },
    { F_AS("every", ENUM, repeat), .names = &repeat_names },
    { F(I64, interval) },
    { F(I64, until_s) },
    { F(ENUM, state), .names = &change_state_names },
    { F(STR, detail) },
    { F(WALL, window_start) },
    { F(WALL, window_end) },
    { F(I64, windows_passed) },
    { F(U64, active_sequence), .flags = FIELD_STORED },
    { F(MONO, ended_at), .flags = FIELD_STORED },
    { F(U64, created_sequence), .flags = FIELD_STORED },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema change_record_schema =
    SCHEMA("ChangeRecord", change_record_fields, "a change of quotas or settings");
#undef OF

/* ---- nodes --------------------------------------------------------------------------------- */

#define OF struct device_record
static const struct field device_record_fields[] = {
    { F(I64, index) },
    { F_AS("class", CLASS, class_number) },
    { F(STR, uuid) },
    { F(STR, model) },
    { F(I64, memory_mib) },
    { F(I64, numa_node) },
    { F(ENUM, health), .names = &device_health_names },
    { F(BOOL, is_simulated) },
    { F(BOOL, is_held) },
    { F(STR, health_reason) },
    { F(STR, hold_reason) },
};
const struct schema device_record_schema = SCHEMA("DeviceRecord", device_record_fields, "a device");
#undef OF

#define OF struct hold
static const struct field hold_fields[] = {
    { F(ENUM, kind), .names = &hold_kind_names },
    { F(STR, by) },
    { F(STR, reason) },
    { F(WALL, since) },
};
const struct schema hold_schema = SCHEMA("Hold", hold_fields, "why a node takes no new work");
#undef OF

#define OF struct node_record
static const struct field node_record_fields[] = {
    { F(ID, id), .id_kind = ID_NODE },
    { F(STR, name) },
    { F(ID, pool), .id_kind = ID_POOL },
    { F(DIGEST, fingerprint) },
    { F(WALL, certified), .flags = FIELD_STORED },
    { F(DIGEST, next_fingerprint) },
    { F(WALL, next_certified), .flags = FIELD_STORED },
    { F(ENUM, contact), .names = &node_contact_names },
    { F(WALL, contact_since) },
    { F(STR, boot_id) },
    { F(STR, agent_version) },
    { F(STR, kernel) },
    { F(STR, driver) },
    { F(STR, runtime) },
    { F(STR, problems) },
    { F(STR, rack) },
    { F(STR, block) },
    { F(I64, cpu_milli) },
    { F(I64, memory_mib) },
    { F_AS("cpu_class", CLASS, cpu_class_number) },
    { F(STRUCT_LIST, devices), .schema = &device_record_schema },
    { F(STRUCT_LIST, holds), .schema = &hold_schema },
    { F(MONO, drain_deadline), .flags = FIELD_STORED },
    { F(U64, generation) },
    { F(U64, created_sequence), .flags = FIELD_STORED },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema node_record_schema = SCHEMA("NodeRecord", node_record_fields, "a node");
#undef OF

/* ---- workloads ----------------------------------------------------------------------------- */

#define OF struct dependency
static const struct field dependency_fields[] = {
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(ENUM, when), .names = &dependency_when_names },
};
const struct schema dependency_schema =
    SCHEMA("DependencyRecord", dependency_fields, "what has to end first");
#undef OF

#define OF struct exit_status
static const struct field exit_status_fields[] = {
    { F(BOOL, is_known) },
    { F(I64, code), .doc = "0..255 when the process exited by itself" },
    { F(I64, signal), .doc = "otherwise the signal that ended it" },
    { F(BOOL, is_oom), .doc = "ended for lack of memory" },
};
const struct schema exit_status_schema =
    SCHEMA("ExitStatus", exit_status_fields, "how a process ended");
#undef OF

#define OF struct workload_record
static const struct field workload_record_fields[] = {
    { F(ID, id), .id_kind = ID_WORKLOAD },
    { F(ID, array), .id_kind = ID_ARRAY },
    { F(I64, array_index) },
    { F(PROJECT, project) },
    { F(STR, name) },
    { F(STR, user) },
    { F(ENUM, kind), .names = &workload_kind_names },
    { F_AS("spec", RAW, spec_json) },
    { F(DIGEST, image) },
    { F(DIGEST, upload) },
    { F(STRUCT, request), .schema = &request_schema },
    { F(I64, members) },
    { F(I64, members_min) },
    { F(I64, priority) },
    { F(ENUM, preemptible), .names = &preemptible_names },
    { F(I64, time_limit_s) },
    { F(I64, grace_s) },
    { F(I64, retries) },
    { F(ENUM, restart), .names = &restart_policy_names },
    { F(ENUM, on_contact_loss), .names = &on_contact_loss_names },
    { F(I64, fence_after_s) },
    { F(STRUCT_LIST, depends_on), .schema = &dependency_schema },
    { F(ID_LIST, volumes), .id_kind = ID_VOLUME },
    { F(ID, reservation), .id_kind = ID_RESERVATION },
    { F(BOOL, is_on_demand) },
    { F(ENUM, state), .names = &workload_state_names },
    { F(ENUM, cause), .names = &cause_names },
    { F(STR, detail) },
    { F(ENUM, after_stop), .names = &workload_state_names },
    { F(I64, attempt) },
    { F(I64, failures) },
    { F(I64, evictions) },
    { F(I64, node_losses) },
    { F(U64, submitted_sequence), .flags = FIELD_STORED },
    { F(WALL, submitted) },
    { F(MONO, not_before), .flags = FIELD_STORED },
    { F(MONO, state_since), .flags = FIELD_STORED },
    { F(WALL, started) },
    { F(WALL, ended) },
    { F(ID_LIST, nodes), .id_kind = ID_NODE, .flags = FIELD_STORED, .max = MEMBERS_MAX },
    { F(STRUCT, exit), .schema = &exit_status_schema },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema workload_record_schema =
    SCHEMA("WorkloadRecord", workload_record_fields, "a workload");
#undef OF

#define OF struct gap
static const struct field gap_fields[] = {
    { F(I64, rank) },
};
const struct schema gap_schema = SCHEMA("Gap", gap_fields, "a member that is missing");
#undef OF

#define OF struct gang_record
static const struct field gang_record_fields[] = {
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(STRUCT_LIST, missing), .schema = &gap_schema, .max = MEMBERS_MAX },
    { F(MONO, short_since), .flags = FIELD_STORED },
    { F(MONO, grow_after), .flags = FIELD_STORED },
};
const struct schema gang_record_schema =
    SCHEMA("GangRecord", gang_record_fields, "which members a gang goes on without");
#undef OF

#define OF struct device_share
static const struct field device_share_fields[] = {
    { F(I64, device), .doc = "index on the node" },
    { F(I64, milli), .doc = "1000: the whole device" },
    { F(I64, memory_mib) },
    { F(I64, slice_start), .flags = FIELD_SPARSE, .doc = "a partition's first memory slice" },
    { F(I64, slice_size), .flags = FIELD_SPARSE, .doc = "its memory slices, of 8; absent: none" },
    { F(I64, slice_compute), .flags = FIELD_SPARSE, .doc = "its compute slices, of 7" },
};
const struct schema device_share_schema =
    SCHEMA("DeviceShare", device_share_fields, "a device, or a part of one");
#undef OF

#define OF struct allocation_record
static const struct field allocation_record_fields[] = {
    { F(ID, id), .id_kind = ID_ALLOCATION },
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(PROJECT, project) },
    { F(ID, node), .id_kind = ID_NODE },
    { F(I64, attempt) },
    { F(I64, rank) },
    { F_AS("class", CLASS, class_number) },
    { F(I64, charge_milli) },
    { F(I64, cpu_milli) },
    { F(I64, memory_mib) },
    { F(STRUCT_LIST, shares), .schema = &device_share_schema },
    { F(ENUM, state), .names = &allocation_state_names },
    { F(ENUM, stop_cause), .names = &cause_names },
    { F(ID, evictor), .id_kind = ID_WORKLOAD },
    { F(I64, grace_s) },
    { F(MONO, granted), .flags = FIELD_STORED },
    { F(MONO, started), .flags = FIELD_STORED },
    { F(MONO, stopping), .flags = FIELD_STORED },
    { F(MONO, gone), .flags = FIELD_STORED },
    { F(WALL, started_wall) },
    { F(STRUCT, exit), .schema = &exit_status_schema },
    { F(BOOL, is_borrowed) },
    { F(MONO, checkpointed), .flags = FIELD_STORED },
    { F(I64, checkpoints) },
    { F(I64, extended_s), .doc = "beyond grace_s, because it asked" },
    { F(U64, created_sequence), .flags = FIELD_STORED },
};
const struct schema allocation_record_schema =
    SCHEMA("AllocationRecord", allocation_record_fields, "an allocation");
#undef OF

#define OF struct segment
static const struct field segment_fields[] = {
    { F(ID, allocation), .id_kind = ID_ALLOCATION },
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(PROJECT, project) },
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F_AS("class", CLASS, class_number) },
    { F(I64, charge_milli) },
    { F(WALL, start) },
    { F(I64, duration_ms) },
    { F(I64, price_micros_per_hour) },
    { F(I64, amount_micros) },
    { F(ENUM, cause), .names = &cause_names },
};
const struct schema segment_schema = SCHEMA("SegmentRecord", segment_fields, "a usage segment");
#undef OF

/* ---- payloads that are not records --------------------------------------------------------- */

#define OF struct controller_started
static const struct field controller_started_fields[] = {
    { F(U64, epoch) },
    { F(BYTES, id_key), .flags = FIELD_SECRET },
    { F(STR, version) },
};
const struct schema controller_started_schema =
    SCHEMA("ControllerStarted", controller_started_fields, "the controller started");
#undef OF

#define OF struct removed
#define REMOVED(word, title, kind_of_id)                                                           \
    static const struct field removed_##word##_fields[] = { { F(ID, id),                           \
                                                              .id_kind = (kind_of_id) } };         \
    const struct schema removed_##word##_schema =                                                  \
        SCHEMA(title, removed_##word##_fields, "it is gone")
REMOVED(class, "ClassRemoved", ID_CLASS);
REMOVED(pool, "PoolRemoved", ID_POOL);
REMOVED(profile, "ProfileRemoved", ID_PROFILE);
REMOVED(token, "TokenRemoved", ID_TOKEN);
REMOVED(node, "NodeRemoved", ID_NODE);
REMOVED(workload, "WorkloadForgotten", ID_WORKLOAD);
REMOVED(untied, "WorkloadUntied", ID_WORKLOAD);
REMOVED(reservation, "ReservationRemoved", ID_RESERVATION);
REMOVED(change, "ChangeRemoved", ID_CHANGE);
REMOVED(volume, "VolumeRemoved", ID_VOLUME);
REMOVED(image, "ImageRemoved", ID_IMAGE);
REMOVED(credential, "CredentialRemoved", ID_CREDENTIAL);
REMOVED(hook, "HookRemoved", ID_HOOK);
REMOVED(tested, "HookTested", ID_HOOK);
static const struct field removed_project_fields[] = { { F(PROJECT, id) } };
const struct schema removed_project_schema =
    SCHEMA("ProjectRemoved", removed_project_fields, "it is gone");
#undef OF

#define OF struct node_contact_event
static const struct field node_contact_fields[] = {
    { F(ID, node), .id_kind = ID_NODE },
    { F(ENUM, contact), .names = &node_contact_names },
    { F(STR, boot_id) },
};
const struct schema node_contact_schema =
    SCHEMA("NodeContact", node_contact_fields, "contact with a node changed");
#undef OF

#define OF struct node_holds
static const struct field node_holds_fields[] = {
    { F(ID, node), .id_kind = ID_NODE },
    { F(STRUCT_LIST, holds), .schema = &hold_schema },
    { F(MONO, drain_deadline), .flags = FIELD_STORED },
};
const struct schema node_holds_schema =
    SCHEMA("NodeHolds", node_holds_fields, "the holds of a node changed");
#undef OF

#define OF struct device_changed
static const struct field device_changed_fields[] = {
    { F(ID, node), .id_kind = ID_NODE },
    { F(I64, index) },
    { F(ENUM, health), .names = &device_health_names },
    { F(BOOL, is_held) },
    { F(STR, reason) },
};
const struct schema device_changed_schema =
    SCHEMA("DeviceChanged", device_changed_fields, "a device changed");
#undef OF

#define OF struct workload_changed
static const struct field workload_changed_fields[] = {
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(ENUM, state), .names = &workload_state_names },
    { F(ENUM, after_stop), .names = &workload_state_names },
    { F(ENUM, cause), .names = &cause_names },
    { F(STR, detail) },
    { F(I64, attempt) },
    { F(I64, failures) },
    { F(I64, evictions) },
    { F(I64, node_losses) },
    { F(MONO, not_before), .flags = FIELD_STORED },
    { F(STRUCT, exit), .schema = &exit_status_schema },
};
const struct schema workload_changed_schema =
    SCHEMA("WorkloadChanged", workload_changed_fields, "one step of a workload");
#undef OF

#define OF struct allocation_changed
static const struct field allocation_changed_fields[] = {
    { F(ID, allocation), .id_kind = ID_ALLOCATION },
    { F(ENUM, state), .names = &allocation_state_names },
    { F(ENUM, stop_cause), .names = &cause_names },
    { F(ID, evictor), .id_kind = ID_WORKLOAD },
    { F(STRUCT, exit), .schema = &exit_status_schema },
    { F(BOOL, has_segment), .flags = FIELD_STORED },
    { F(STRUCT, segment), .schema = &segment_schema, .flags = FIELD_SPARSE },
};
const struct schema allocation_changed_schema =
    SCHEMA("AllocationChanged", allocation_changed_fields, "one step of an allocation");
#undef OF

#define OF struct allocation_noted
static const struct field allocation_noted_fields[] = {
    { F(ID, allocation), .id_kind = ID_ALLOCATION },
    { F(MONO, checkpointed), .flags = FIELD_STORED },
    { F(I64, checkpoints), .doc = "how often it has saved its work in this attempt" },
    { F(I64, extended_s), .doc = "beyond its grace, because it asked" },
};
const struct schema allocation_noted_schema =
    SCHEMA("AllocationNoted", allocation_noted_fields, "what a workload answered to its node");
#undef OF

#define OF struct upload_stored
static const struct field upload_stored_fields[] = {
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F(DIGEST, digest) },
    { F(I64, size_bytes) },
    { F(STR, name) },
};
const struct schema upload_stored_schema =
    SCHEMA("UploadStored", upload_stored_fields, "code was uploaded");
#undef OF

const struct schema *const record_schemas[] = {
    &class_record_schema,
    &pool_record_schema,
    &request_schema,
    &profile_record_schema,
    &quota_schema,
    &usage_total_schema,
    &past_use_schema,
    &user_past_schema,
    &project_record_schema,
    &settings_record_schema,
    &token_record_schema,
    &volume_record_schema,
    &image_record_schema,
    &credential_record_schema,
    &hook_record_schema,
    &reservation_record_schema,
    &quota_patch_schema,
    &settings_patch_schema,
    &policy_patch_schema,
    &change_record_schema,
    &device_record_schema,
    &hold_schema,
    &node_record_schema,
    &dependency_schema,
    &exit_status_schema,
    &workload_record_schema,
    &device_share_schema,
    &allocation_record_schema,
    &segment_schema,
    &controller_started_schema,
    &removed_class_schema,
    &removed_pool_schema,
    &removed_profile_schema,
    &removed_project_schema,
    &removed_token_schema,
    &removed_node_schema,
    &removed_workload_schema,
    &removed_untied_schema,
    &removed_reservation_schema,
    &removed_change_schema,
    &removed_volume_schema,
    &removed_image_schema,
    &removed_credential_schema,
    &removed_hook_schema,
    &removed_tested_schema,
    &node_contact_schema,
    &node_holds_schema,
    &device_changed_schema,
    &workload_changed_schema,
    &gap_schema,
    &gang_record_schema,
    &allocation_changed_schema,
    &allocation_noted_schema,
    &upload_stored_schema,
};
const size_t record_schema_count = COUNT_OF(record_schemas);
