/* resource.c - the tables of what the API shows. How they are filled: resource_fill.c. */
#include "wire/resource.h"

#include "wire/records.h"

#define OF struct quota_view
static const struct field quota_view_fields[] = {
    { F_AS("class", STR, class_name) },
    { F(I64, quota_milli), .doc = "guarantee" },
    { F(I64, lend_limit_milli), .doc = "of it, what others may use meanwhile; -1: all" },
    { F(I64, limit_milli), .doc = "ceiling; -1: none" },
    { F(I64, over_quota_weight) },
    { F(I64, allocated_milli), .doc = "in use now, by the whole subtree" },
    { F(I64, borrowed_milli), .doc = "of it, above the quota" },
    { F(I64, pending_milli), .doc = "asked for by waiting work" },
    { F(BOOL, is_over_limit), .flags = FIELD_SPARSE,
      .doc = "more is in use than the limit: it was lowered, and nothing is stopped for that" },
};
static const struct schema quota_view_schema =
    SCHEMA("Quota", quota_view_fields, "quota and use of a class");
#undef OF

#define OF struct project_view
static const struct field project_view_fields[] = {
    { F(PROJECT, id), .doc = "ten_... of a tenant, else prj_..." },
    { F(PROJECT, parent), .doc = "absent: this is a tenant" },
    { F(STR, path) },
    { F(STR, name) },
    { F(STR, tenant) },
    { F(I64, priority) },
    { F(BOOL, is_overcommitted), .doc = "its quotas were accepted beyond what there is" },
    { F(I64, log_quota_mib), .flags = FIELD_SPARSE,
      .doc = "output stored, for it and each project below; absent: as its parent" },
    { F(I64, log_days), .flags = FIELD_SPARSE,
      .doc = "how long output of ended work is kept; absent: as its parent" },
    { F(STRUCT_LIST, quotas), .schema = &quota_view_schema },
    { F(I64, live_workloads), .doc = "of its own that have not ended" },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema project_view_schema =
    SCHEMA("Project", project_view_fields, "a tenant, or a project inside of one");
#undef OF

#define OF struct class_view
static const struct field class_view_fields[] = {
    { F(ID, id), .id_kind = ID_CLASS },
    { F(STR, name) },
    { F(ENUM, kind), .names = &class_kind_names },
    { F(STR, vendor) },
    { F(I64, memory_mib), .doc = "of one device" },
    { F(ENUM, slicing), .names = &slicing_names },
    { F(ENUM, mig), .names = &mig_table_names, .flags = FIELD_SPARSE,
      .doc = "which partitions its devices have, where their parts are such" },
    { F(I64, price_micros_per_hour), .doc = "of a whole device or core" },
    { F(I64, capacity_milli), .doc = "that can be used now" },
    { F(I64, free_milli) },
    { F(I64, quota_milli), .doc = "sum of the guarantees of all tenants" },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema class_view_schema = SCHEMA("Class", class_view_fields, "what hardware is");
#undef OF

#define OF struct pool_view
static const struct field pool_view_fields[] = {
    { F(ID, id), .id_kind = ID_POOL },
    { F(STR, name) },
    { F_AS("class", STR, class_name) },
    { F(ENUM, site), .names = &site_kind_names, .max = SITE_NATIVE + 1 },
    { F(I64, node_count) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema pool_view_schema =
    SCHEMA("Pool", pool_view_fields, "nodes of one class on one site");
#undef OF

#define OF struct request_view
static const struct field request_view_fields[] = {
    { F(I64, gpu_milli), .doc = "below 1000: a fraction of one device" },
    { F(I64, gpu_memory_mib), .flags = FIELD_SPARSE },
    { F(I64, devices), .flags = FIELD_SPARSE },
    { F(I64, share_milli), .flags = FIELD_SPARSE },
    { F(ENUM, mig_profile), .names = &mig_names, .flags = FIELD_SPARSE,
      .doc = "that partition of one device" },
    { F(I64, cpu_milli) },
    { F(I64, memory_mib) },
    { F(STR_LIST, classes), .doc = "in order of preference; empty: any" },
    { F_AS("topology_required", ENUM, required), .names = &topology_names, .flags = FIELD_SPARSE,
      .doc = "all members within one of these" },
    { F_AS("topology_preferred", ENUM, preferred), .names = &topology_names, .flags = FIELD_SPARSE,
      .doc = "the same where it can be had" },
};
const struct schema request_view_schema =
    SCHEMA("Request", request_view_fields, "what one member asks for");
#undef OF

#define OF struct topology_spec
static const struct field topology_view_fields[] = {
    { F(ENUM, required), .names = &topology_names, .flags = FIELD_SPARSE },
    { F(ENUM, preferred), .names = &topology_names, .flags = FIELD_SPARSE },
};
static const struct schema topology_view_schema =
    SCHEMA("Topology", topology_view_fields, "how close together members are");
#undef OF

#define OF struct profile_view
static const struct field profile_view_fields[] = {
    { F(ID, id), .id_kind = ID_PROFILE },
    { F(STR, name) },
    { F(STR, description) },
    { F(STRUCT, request), .schema = &request_view_schema },
    { F(STR_LIST, pools), .doc = "in order; empty: any of the classes" },
    { F(STR_LIST, projects), .flags = FIELD_SPARSE,
      .doc = "only they, and what is below, may use it; of those one may see. Absent: all" },
    { F(STRUCT, topology), .schema = &topology_view_schema, .flags = FIELD_SPARSE,
      .doc = "of its work, unless that says another" },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema profile_view_schema =
    SCHEMA("Profile", profile_view_fields, "a shape that users pick by name");
#undef OF

#define OF struct device_view
static const struct field device_view_fields[] = {
    { F(STR, node), .flags = FIELD_SPARSE },
    { F(I64, index), .doc = "on its node" },
    { F_AS("class", STR, class_name) },
    { F(STR, uuid) },
    { F(STR, model) },
    { F(I64, memory_mib) },
    { F(I64, numa_node) },
    { F(ENUM, health), .names = &device_health_names },
    { F(STR, health_reason), .flags = FIELD_SPARSE, .doc = "why it is not well" },
    { F(BOOL, is_simulated) },
    { F(BOOL, is_held) },
    { F(BOOL, is_usable) },
    { F(STR, hold_reason), .flags = FIELD_SPARSE },
    { F(I64, allocated_milli) },
};
const struct schema device_view_schema = SCHEMA("Device", device_view_fields, "an accelerator");
#undef OF

#define OF struct node_view
static const struct field node_view_fields[] = {
    { F(ID, id), .id_kind = ID_NODE },
    { F(STR, name) },
    { F(STR, pool) },
    { F(ENUM, contact), .names = &node_contact_names },
    { F(WALL, contact_since) },
    { F(BOOL, is_usable), .doc = "new work may be placed on it" },
    { F(STRUCT_LIST, holds), .schema = &hold_schema, .doc = "why not" },
    { F(STR, boot_id) },
    { F(STR, agent_version) },
    { F(STR, kernel) },
    { F(STR, driver) },
    { F(STR, runtime) },
    { F(STR, problems), .doc = "what keeps it from running work; `berth doctor` shows it" },
    { F(STR, rack), .doc = "where it stands; empty: with the others of its pool" },
    { F(STR, block), .doc = "likewise: several racks" },
    { F(I64, cpu_milli) },
    { F(I64, cpu_used_milli) },
    { F(I64, memory_mib) },
    { F(I64, memory_used_mib) },
    { F(I64, allocation_count) },
    { F(I64, drain_remaining_s), .flags = FIELD_UNSET,
      .doc = "then what runs is evicted; absent: no deadline" },
    { F(I64, clock_skew_ms), .flags = FIELD_UNSET,
      .doc = "how far its clock is ahead of the controller's; absent: it is not connected" },
    { F(STRUCT_LIST, devices), .schema = &device_view_schema },
    { F(U64, generation), .doc = "of its desired set" },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema node_view_schema = SCHEMA("Node", node_view_fields, "a machine");
#undef OF

#define OF struct dependency_view
static const struct field dependency_view_fields[] = {
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(ENUM, when), .names = &dependency_when_names },
};
static const struct schema dependency_view_schema =
    SCHEMA("Dependency", dependency_view_fields, "what has to end first");
#undef OF

#define OF struct image_progress_view
static const struct field image_progress_view_fields[] = {
    { F(STR, node) },
    { F(ENUM, phase), .names = &image_phase_names },
    { F(I64, done_bytes) },
    { F(I64, total_bytes), .flags = FIELD_SPARSE, .doc = "absent: not known" },
    { F(STR, detail), .flags = FIELD_SPARSE, .doc = "why it failed" },
};
static const struct schema image_progress_view_schema =
    SCHEMA("ImageProgress", image_progress_view_fields, "how far a node is with an image");
#undef OF

#define OF struct workload_view
static const struct field workload_view_fields[] = {
    { F(ID, id), .id_kind = ID_WORKLOAD },
    { F(ID, array), .id_kind = ID_ARRAY },
    { F(I64, array_index), .flags = FIELD_UNSET, .doc = "from 0; absent: not of an array" },
    { F(STR, name) },
    { F(STR, project) },
    { F(STR, tenant) },
    { F(STR, user) },
    { F(ENUM, kind), .names = &workload_kind_names, .max = KIND_JOB + 1 },
    { F(ENUM, state), .names = &workload_state_names },
    { F(ENUM, cause), .names = &cause_names, .doc = "why it is in this state" },
    { F(STR, detail), .flags = FIELD_SPARSE, .doc = "the numbers behind it" },
    { F(I64, position), .flags = FIELD_SPARSE, .doc = "in its queue, from 1" },
    { F(WALL, promised_start_at), .flags = FIELD_SPARSE,
      .doc = "of the first that waits for a class: it starts by then; others may only go before it "
             "where they do not delay it" },
    { F(ENUM, after_stop), .names = &workload_state_names, .doc = "while stopping" },
    { F(I64, attempt), .doc = "0: it never started" },
    { F(I64, failures) },
    { F(I64, evictions) },
    { F(I64, node_losses) },
    { F(STRUCT, request), .schema = &request_view_schema },
    { F(I64, members) },
    { F(I64, members_min) },
    { F(I64, priority) },
    { F(ENUM, preemptible), .names = &preemptible_names },
    { F(ENUM, restart), .names = &restart_policy_names },
    { F(ENUM, on_contact_loss), .names = &on_contact_loss_names },
    { F(I64, time_limit_s), .doc = "0: none" },
    { F(I64, grace_s) },
    { F(I64, retries) },
    { F(I64, fence_after_s), .flags = FIELD_SPARSE },
    { F(STRUCT_LIST, depends_on), .schema = &dependency_view_schema, .flags = FIELD_SPARSE },
    { F(STR_LIST, nodes), .flags = FIELD_SPARSE,
      .doc = "of the present attempt, by rank; of ended work, of its last" },
    { F(STRUCT_LIST, image_progress), .schema = &image_progress_view_schema, .flags = FIELD_SPARSE,
      .doc = "while it starts, of nodes that fetch its image; a list of workloads has none" },
    { F(STR, reservation), .flags = FIELD_SPARSE, .doc = "it runs in its windows only" },
    { F(BOOL, is_on_demand), .flags = FIELD_SPARSE,
      .doc = "its reservation's window ended, and it went on" },
    { F(DIGEST, image) },
    { F(DIGEST, upload) },
    { F(WALL, submitted) },
    { F(WALL, started), .doc = "of the latest attempt" },
    { F(WALL, ended) },
    { F(I64, queued_s), .flags = FIELD_UNSET, .doc = "so far, while it waits" },
    { F(I64, running_s), .flags = FIELD_UNSET, .doc = "so far, while it runs" },
    { F(STRUCT, exit), .schema = &exit_status_schema, .flags = FIELD_SPARSE },
    { F(RAW, spec), .doc = "as it was submitted, completed with defaults" },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema workload_view_schema =
    SCHEMA("Workload", workload_view_fields, "work, where it stands, and why");
#undef OF

#define OF struct allocation_view
static const struct field allocation_view_fields[] = {
    { F(ID, id), .id_kind = ID_ALLOCATION },
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(STR, project) },
    { F(STR, node) },
    { F(I64, attempt) },
    { F(I64, rank) },
    { F_AS("class", STR, class_name) },
    { F(I64, charge_milli), .doc = "what is billed, of that class" },
    { F(I64, cpu_milli) },
    { F(I64, memory_mib) },
    { F(STRUCT_LIST, devices), .schema = &device_share_schema },
    { F(ENUM, state), .names = &allocation_state_names },
    { F(ENUM, stop_cause), .names = &cause_names },
    { F(ID, evictor), .id_kind = ID_WORKLOAD, .doc = "the workload it makes room for" },
    { F(I64, grace_s) },
    { F(WALL, started) },
    { F(STRUCT, exit), .schema = &exit_status_schema, .flags = FIELD_SPARSE },
    { F(BOOL, is_borrowed), .doc = "above the quota when it was granted" },
};
const struct schema allocation_view_schema =
    SCHEMA("Allocation", allocation_view_fields, "what a node gives to one member");
#undef OF

#define OF struct explanation_view
static const struct field explanation_view_fields[] = {
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(ENUM, state), .names = &workload_state_names },
    { F(ENUM, cause), .names = &cause_names },
    { F(STR, meaning), .doc = "of the cause, and what can be done" },
    { F(STR, detail), .doc = "the numbers behind it" },
    { F(I64, position), .doc = "in its queue, from 1; 0: it does not wait" },
    { F(I64, waits_s), .flags = FIELD_SPARSE, .doc = "at least, until the next try" },
    { F(WALL, promised_start_at), .flags = FIELD_SPARSE, .doc = "it starts by then" },
    { F(WALL, starts_from), .flags = FIELD_SPARSE,
      .doc =
          "projected from time limits: the start is not before; absent with starts_by: not known" },
    { F(WALL, starts_by), .flags = FIELD_SPARSE, .doc = "and mostly by then" },
    { F(STR_LIST, blockers), .flags = FIELD_SPARSE, .doc = "all that stands in the way, by class" },
    { F(STR_LIST, changes), .flags = FIELD_SPARSE, .doc = "any of these would let it start now" },
    { F(STR_LIST, ahead), .flags = FIELD_SPARSE,
      .doc = "ids of the first few that come before it in its project" },
    { F(I64, ahead_count), .flags = FIELD_SPARSE, .doc = "how many these are in all" },
    { F(STR, turn), .flags = FIELD_SPARSE,
      .doc = "who comes first among the users of its project, and why (setting user_fairness)" },
    { F(BOOL, others_come_first), .flags = FIELD_SPARSE,
      .doc = "work of other tenants waits for the same, and may come first" },
};
const struct schema explanation_view_schema =
    SCHEMA("Explanation", explanation_view_fields, "why a workload is where it is");
#undef OF

#define OF struct volume_view
static const struct field volume_view_fields[] = {
    { F(ID, id), .id_kind = ID_VOLUME },
    { F(STR, tenant) },
    { F(STR, name) },
    { F(STR, node), .flags = FIELD_SPARSE, .doc = "where its bytes are" },
    { F(I64, quota_mib), .doc = "0: none" },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema volume_view_schema =
    SCHEMA("Volume", volume_view_fields, "a directory that outlives workloads");
#undef OF

#define OF struct reservation_view
static const struct field reservation_view_fields[] = {
    { F(ID, id), .id_kind = ID_RESERVATION },
    { F(STR, name) },
    { F(STR, project) },
    { F(STR, tenant) },
    { F(STR, user) },
    { F_AS("class", STR, class_name) },
    { F(I64, gpu_milli) },
    { F(ENUM, state), .names = &reservation_state_names },
    { F(STR, detail), .flags = FIELD_SPARSE, .doc = "why it is in this state" },
    { F(STR, zone) },
    { F(STR, start), .doc = "of its first window, in local time of the zone" },
    { F(STR, end) },
    { F_AS("every", ENUM, repeat), .names = &repeat_names, .flags = FIELD_SPARSE,
      .doc = "absent: once" },
    { F(I64, interval) },
    { F(STR, until), .flags = FIELD_SPARSE, .doc = "the last window begins before" },
    { F(ENUM, end_policy), .names = &end_policy_names },
    { F(BOOL, is_lent) },
    { F(BOOL, is_overcommitted), .doc = "it was accepted beyond what there is" },
    { F(WALL, window_start), .doc = "the open window or the next; of an ended one the last" },
    { F(WALL, window_end) },
    { F(I64, windows_passed) },
    { F(I64, used_milli), .doc = "by its work now" },
    { F(I64, available_milli), .flags = FIELD_UNSET,
      .doc = "what the open window has or the next could have; absent: nothing is kept" },
    { F(I64, running), .doc = "workloads of it that hold anything" },
    { F(I64, waiting), .doc = "workloads of it that wait" },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema reservation_view_schema =
    SCHEMA("Reservation", reservation_view_fields, "devices for a project in windows of time");
#undef OF

#define OF struct quota_spec
static const struct field quota_part_fields[] = {
    { F_AS("class", STR, class_name) },
    { F(I64, quota_milli), .flags = FIELD_UNSET },
    { F(I64, lend_limit_milli), .flags = FIELD_UNSET },
    { F(I64, limit_milli), .flags = FIELD_UNSET },
    { F(I64, over_quota_weight), .flags = FIELD_UNSET },
};
static const struct schema quota_part_schema =
    SCHEMA("QuotaFields", quota_part_fields, "some quota fields of a project for a class");
#undef OF

#define OF struct policy_view
static const struct field policy_view_fields[] = {
    { F(STRUCT_LIST, quotas), .schema = &quota_part_schema, .flags = FIELD_SPARSE },
    { F(I64, priority), .flags = FIELD_UNSET },
    { F(I64, log_quota_mib), .flags = FIELD_UNSET },
    { F(I64, log_days), .flags = FIELD_UNSET },
    { F(STRUCT, settings), .schema = &settings_patch_schema, .flags = FIELD_SPARSE },
};
static const struct schema policy_view_schema =
    SCHEMA("PolicyFields", policy_view_fields, "fields of a project, or settings");
#undef OF

#define OF struct change_view
static const struct field change_view_fields[] = {
    { F(ID, id), .id_kind = ID_CHANGE },
    { F(STR, name), .flags = FIELD_SPARSE },
    { F(STR, project), .flags = FIELD_SPARSE, .doc = "absent: it is of the settings" },
    { F(STR, tenant), .flags = FIELD_SPARSE },
    { F(STR, user) },
    { F(STR, reason), .flags = FIELD_SPARSE },
    { F(STR, summary), .doc = "what it sets, for people: \"h100-80g limit 4 -> 8\"" },
    { F(ENUM, state), .names = &change_state_names },
    { F(STR, detail), .flags = FIELD_SPARSE, .doc = "why it is in this state" },
    { F(STRUCT_LIST, quotas), .schema = &quota_part_schema, .flags = FIELD_SPARSE },
    { F(I64, priority), .flags = FIELD_UNSET },
    { F(I64, log_quota_mib), .flags = FIELD_UNSET },
    { F(I64, log_days), .flags = FIELD_UNSET },
    { F(STRUCT, settings), .schema = &settings_patch_schema, .flags = FIELD_SPARSE },
    { F(STRUCT, former), .schema = &policy_view_schema, .flags = FIELD_SPARSE,
      .doc = "while it is active: what holds again after it" },
    { F(BOOL, is_forced), .doc = "quotas beyond what there is are accepted" },
    { F(STR, zone) },
    { F(STR, from), .doc = "of its first window, in local time of the zone" },
    { F(STR, until), .flags = FIELD_SPARSE, .doc = "absent: for good" },
    { F_AS("every", ENUM, repeat), .names = &repeat_names, .flags = FIELD_SPARSE,
      .doc = "absent: once" },
    { F(I64, interval) },
    { F(STR, repeat_until), .flags = FIELD_SPARSE, .doc = "the last window begins before" },
    { F(WALL, window_start), .doc = "the open window or the next; of an ended one the last" },
    { F(WALL, window_end), .doc = "absent: for good" },
    { F(I64, windows_passed) },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema change_view_schema =
    SCHEMA("Change", change_view_fields, "a change of a project or of the settings");
#undef OF

#define OF struct preview_level_view
static const struct field preview_level_fields[] = {
    { F(STR, project) },
    { F_AS("class", STR, class_name) },
    { F(I64, quota_milli), .doc = "its own, or the sum of its children's" },
    { F(I64, new_quota_milli) },
    { F(I64, limit_milli), .doc = "-1: none" },
    { F(I64, new_limit_milli) },
    { F(I64, allocated_milli) },
    { F(I64, pending_milli) },
    { F(I64, borrowed_milli) },
    { F(I64, new_borrowed_milli) },
    { F(BOOL, is_over_limit), .doc = "more is in use than the new limit; nothing is stopped" },
};
static const struct schema preview_level_schema =
    SCHEMA("PreviewLevel", preview_level_fields, "a project and class that a change touches");
#undef OF

#define OF struct preview_work_view
static const struct field preview_work_fields[] = {
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(STR, name) },
    { F(STR, project) },
    { F(STR, user) },
    { F_AS("class", STR, class_name) },
    { F(I64, charge_milli) },
    { F(STR, effect), .doc = "becomes_borrowed, becomes_guaranteed, loses_protection or "
                             "gains_protection" },
    { F(BOOL, is_preemptible), .doc = "false: it is never stopped for others" },
};
static const struct schema preview_work_schema =
    SCHEMA("PreviewWork", preview_work_fields, "running work that a change concerns");
#undef OF

#define OF struct preview_view
static const struct field preview_view_fields[] = {
    { F(STRUCT, change), .schema = &change_view_schema, .doc = "with what is now in `former`" },
    { F(BOOL, is_overcommitted), .doc = "it is accepted by force only" },
    { F(STRUCT_LIST, levels), .schema = &preview_level_schema },
    { F(STRUCT_LIST, work), .schema = &preview_work_schema, .doc = "the first 200" },
    { F(I64, work_count), .doc = "of it in all" },
};
const struct schema preview_view_schema =
    SCHEMA("ChangePreview", preview_view_fields, "what a change would do; nothing is done");
#undef OF

#define OF struct whatif_row_view
static const struct field whatif_row_fields[] = {
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(STR, name) },
    { F(STR, project) },
    { F(STR, effect), .doc =
                          "starts, starts_too (it would not otherwise), does_not_start, earlier, "
                          "later, evicted, spared or waits" },
    { F(BOOL, is_new), .doc = "it is what was supposed to be submitted" },
    { F(WALL, started_before), .doc = "absent: it does not start in that time" },
    { F(WALL, started_after) },
    { F(I64, delay_s), .flags = FIELD_UNSET,
      .doc = "how much later it starts; less than 0: earlier" },
    { F(I64, evictions_before) },
    { F(I64, evictions_after) },
    { F(ENUM, cause), .names = &cause_names, .flags = FIELD_SPARSE, .doc = "of the last eviction" },
};
static const struct schema whatif_row_schema =
    SCHEMA("WhatIfWork", whatif_row_fields, "work to which something else would happen");
#undef OF

#define OF struct whatif_view
static const struct field whatif_view_fields[] = {
    { F(WALL, from) },
    { F(WALL, until) },
    { F(BOOL, is_cut), .doc = "there was more than could be looked at: later starts are missing" },
    { F(I64, starts_before), .doc = "workloads that start in that time as things are" },
    { F(I64, starts_after), .doc = "and as is supposed" },
    { F(I64, evictions_before) },
    { F(I64, evictions_after) },
    { F(I64, waiting_before), .flags = FIELD_UNSET, .doc = "at the end; for operators" },
    { F(I64, waiting_after), .flags = FIELD_UNSET },
    { F(STRUCT_LIST, work), .schema = &whatif_row_schema, .doc = "the first 500 that differ" },
    { F(I64, work_count), .doc = "of it in all" },
};
const struct schema whatif_view_schema =
    SCHEMA("WhatIf", whatif_view_fields, "what would follow; nothing is done");
#undef OF

#define OF struct slot_view
static const struct field slot_view_fields[] = {
    { F(WALL, start) },
    { F(WALL, end) },
    { F_AS("class", STR, class_name) },
    { F(I64, free_milli), .doc = "that could be reserved for all of it" },
};
const struct schema slot_view_schema =
    SCHEMA("Slot", slot_view_fields, "when devices could be reserved");
#undef OF

#define OF struct image_view
static const struct field image_view_fields[] = {
    { F(ID, id), .id_kind = ID_IMAGE },
    { F(STR, tenant), .flags = FIELD_SPARSE, .doc = "absent: offered to all" },
    { F(STR, name) },
    { F(DIGEST, manifest) },
    { F(STR, source) },
    { F(I64, size_bytes) },
    { F(STR_LIST, command), .flags = FIELD_SPARSE,
      .doc = "what runs when work names no command: entry point and arguments" },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema image_view_schema = SCHEMA("Image", image_view_fields, "an image");
#undef OF

#define OF struct token_view
static const struct field token_view_fields[] = {
    { F(ID, id), .id_kind = ID_TOKEN },
    { F(STR, name) },
    { F(ENUM, role), .names = &role_names },
    { F(STR, tenant), .flags = FIELD_SPARSE },
    { F(STR, user), .flags = FIELD_SPARSE },
    { F(STR, pool), .flags = FIELD_SPARSE },
    { F(WALL, created) },
    { F(WALL, expires), .doc = "absent: never" },
    { F(BOOL, is_revoked) },
    { F(STR, secret), .flags = FIELD_SPARSE,
      .doc = "the token itself: shown once, in the answer that makes it" },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema token_view_schema = SCHEMA("Token", token_view_fields, "a bearer token");
#undef OF

#define OF struct credential_view
static const struct field credential_view_fields[] = {
    { F(ID, id), .id_kind = ID_CREDENTIAL },
    { F(STR, tenant) },
    { F(STR, registry) },
    { F(STR, username) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema credential_view_schema =
    SCHEMA("Credential", credential_view_fields, "a login at a private registry");
#undef OF

#define OF struct hook_view
static const struct field hook_view_fields[] = {
    { F(ID, id), .id_kind = ID_HOOK },
    { F(STR, tenant) },
    { F(STR, project) },
    { F(STR, name) },
    { F(STR, url) },
    { F(STR, fault), .doc = "why it was not reached the last time" },
    { F(WALL, created) },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema hook_view_schema = SCHEMA("Hook", hook_view_fields, "where notices go");
#undef OF

#define OF struct upload_view
static const struct field upload_view_fields[] = {
    { F(DIGEST, digest) },
    { F(I64, size_bytes) },
    { F(STR, name), .flags = FIELD_SPARSE },
};
const struct schema upload_view_schema =
    SCHEMA("Upload", upload_view_fields, "bytes stored under their SHA-256");
#undef OF

#define OF struct usage_view
static const struct field usage_view_fields[] = {
    { F(STR, project) },
    { F_AS("class", STR, class_name) },
    { F(I64, milli_ms), .doc = "thousandths of a device times milliseconds" },
    { F(I64, running_milli_ms), .doc = "of it, by what still runs" },
    { F(I64, amount_micros), .doc = "millionths of the currency" },
    { F(I64, price_micros_per_hour) },
    { F(I64, segments), .doc = "that have ended" },
};
const struct schema usage_view_schema =
    SCHEMA("Usage", usage_view_fields, "use of a class by a project");
#undef OF

#define OF struct invoice_view
static const struct field invoice_view_fields[] = {
    { F(STR, tenant) },
    { F(STRUCT_LIST, lines), .schema = &usage_view_schema },
    { F(I64, total_micros) },
    { F(WALL, until) },
};
const struct schema invoice_view_schema =
    SCHEMA("Invoice", invoice_view_fields, "what a tenant's use costs so far");
#undef OF

#define OF struct segment_view
static const struct field segment_view_fields[] = {
    { F(U64, key), .flags = FIELD_HIDDEN },
    { F(ID, allocation), .id_kind = ID_ALLOCATION },
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(PROJECT, project) },
    { F_AS("class", STR, class_name) },
    { F(I64, charge_milli) },
    { F(WALL, start) },
    { F(I64, duration_ms) },
    { F(I64, price_micros_per_hour) },
    { F(I64, amount_micros) },
    { F(ENUM, cause), .names = &cause_names, .doc = "of its end" },
};
const struct schema segment_view_schema =
    SCHEMA("UsageSegment", segment_view_fields, "one uninterrupted use of one allocation");
#undef OF

#define OF struct audit_view
static const struct field audit_view_fields[] = {
    { F(U64, sequence), .flags = FIELD_HIDDEN },
    { F(WALL, at) },
    { F(ENUM, role), .names = &role_names },
    { F(STR, actor) },
    { F(ID, token), .id_kind = ID_TOKEN },
    { F(ID, request), .id_kind = ID_REQUEST },
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F(STR, verb), .doc = "what happened" },
    { F(STR, object), .doc = "to what", .flags = FIELD_SPARSE },
    { F(RAW, data) },
};
const struct schema audit_view_schema = SCHEMA("AuditEntry", audit_view_fields, "who did what");
#undef OF

#define OF struct decision_view
static const struct field decision_view_fields[] = {
    { F(U64, sequence), .flags = FIELD_HIDDEN, .doc = "of the journal" },
    { F(WALL, at) },
    { F(STR, rule), .doc = "allocate, reclaim, preempt, ..." },
    { F(ENUM, cause), .names = &cause_names },
    { F(STR, detail), .flags = FIELD_SPARSE },
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(STR, name), .flags = FIELD_SPARSE },
    { F(STR, project), .flags = FIELD_SPARSE },
    { F(STR, user), .flags = FIELD_SPARSE },
    { F(I64, attempt) },
    { F_AS("class", STR, class_name), .flags = FIELD_SPARSE },
    { F(I64, members), .doc = "that it is about" },
    { F(I64, nodes), .doc = "that they start on", .flags = FIELD_SPARSE },
    { F(I64, charge_milli), .doc = "what they take or give back, in thousandths of a device" },
    { F(BOOL, is_borrowed), .doc = "a start above the quota", .flags = FIELD_SPARSE },
    { F(I64, waited_s), .doc = "a start: since the submission", .flags = FIELD_SPARSE },
    { F(ID, evictor), .id_kind = ID_WORKLOAD, .doc = "the workload it makes room for" },
    { F(STR, evictor_project), .flags = FIELD_SPARSE },
};
const struct schema decision_view_schema =
    SCHEMA("Decision", decision_view_fields, "what the scheduler decided, by which rule and why");
#undef OF

#define OF struct whoami_view
static const struct field whoami_view_fields[] = {
    { F(ENUM, role), .names = &role_names },
    { F(STR, user) },
    { F(STR, tenant), .flags = FIELD_SPARSE },
    { F(ID, token), .id_kind = ID_TOKEN },
};
const struct schema whoami_view_schema =
    SCHEMA("Identity", whoami_view_fields, "whom the server takes the caller for");
#undef OF

#define OF struct status_view
static const struct field status_view_fields[] = {
    { F(STR, version) },
    { F(U64, epoch) },
    { F(U64, sequence) },
    { F(WALL, now) },
    { F(I64, tenants) },
    { F(I64, projects) },
    { F(I64, nodes) },
    { F(I64, nodes_usable) },
    { F(I64, workloads_queued) },
    { F(I64, workloads_running) },
    { F(I64, allocations) },
};
const struct schema status_view_schema =
    SCHEMA("Status", status_view_fields, "the installation in numbers");
#undef OF

#define OF struct problem_view
static const struct field problem_view_fields[] = {
    { F(STR, type) },
    { F(STR, title) },
    { F(I64, status) },
    { F(STR, cause), .doc = "one of the closed list, the same everywhere" },
    { F(STR, detail), .doc = "what is wrong, with numbers, and what to change" },
    { F(STR, field), .flags = FIELD_SPARSE, .doc = "path of the field at fault" },
};
const struct schema problem_view_schema =
    SCHEMA("Problem", problem_view_fields, "why a request was refused (RFC 9457)");
#undef OF

#define OF struct settings_record
static const struct field settings_view_fields[] = {
    { F(I64, grace_s) },
    { F(I64, kill_confirm_s) },
    { F(I64, min_runtime_s) },
    { F(I64, min_runtime_in_quota_s) },
    { F(I64, start_timeout_s) },
    { F(I64, lost_after_s) },
    { F(I64, unknown_after_s) },
    { F(I64, gang_repair_s) },
    { F(I64, history_k_milli) },
    { F(I64, history_half_life_s) },
    { F(ENUM, user_fairness), .names = &user_fairness_names },
    { F(ENUM, consolidate), .names = &consolidate_names },
    { F(I64, consolidate_max_moves) },
    { F(I64, device_reserve_mib) },
    { F(I64, backoff_base_s) },
    { F(I64, backoff_max_s) },
    { F(I64, ended_keep_s) },
    { F(I64, ended_keep_count) },
    { F(I64, default_time_limit_s) },
    { F(I64, starvation_after_s) },
    { F(I64, lead_s) },
    { F(ENUM, reclaim_to), .names = &reclaim_to_names },
    { F(ENUM, placement), .names = &placement_names },
    { F(U64, version), .flags = FIELD_HIDDEN },
};
const struct schema settings_view_schema =
    SCHEMA("Settings", settings_view_fields, "settings of the installation");
#undef OF
