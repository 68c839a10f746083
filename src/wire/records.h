/* records.h - the tables of every record of model/record.h and every payload of model/event.h. */
#ifndef WIRE_RECORDS_H
#define WIRE_RECORDS_H

#include "wire/schema.h"

extern const struct schema class_record_schema, pool_record_schema, request_schema,
    profile_record_schema, quota_schema, usage_total_schema, past_use_schema, user_past_schema,
    project_record_schema, settings_record_schema, token_record_schema, volume_record_schema,
    image_record_schema, credential_record_schema, hook_record_schema, device_record_schema,
    hold_schema, node_record_schema, dependency_schema, exit_status_schema, workload_record_schema,
    gap_schema, gang_record_schema, device_share_schema, allocation_record_schema, segment_schema;

extern const struct schema controller_started_schema, removed_class_schema, removed_pool_schema,
    removed_profile_schema, removed_project_schema, removed_token_schema, removed_node_schema,
    quota_patch_schema, settings_patch_schema, policy_patch_schema, change_record_schema,
    removed_change_schema, reservation_record_schema, removed_untied_schema,
    removed_reservation_schema, removed_workload_schema, removed_volume_schema,
    removed_image_schema, removed_credential_schema, removed_hook_schema, removed_tested_schema,
    node_contact_schema, node_holds_schema, device_changed_schema, workload_changed_schema,
    allocation_changed_schema, allocation_noted_schema, upload_stored_schema;

/* Every table above: tests walk them. */
extern const struct schema *const record_schemas[];
extern const size_t record_schema_count;

#endif
