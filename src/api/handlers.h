/* handlers.h - every handler and finisher the route table names, by the file that holds them. */
#ifndef API_HANDLERS_H
#define API_HANDLERS_H

#include "api/routes.h"

/* call.c: of commands that only remove */
call_fn finish_none;

/* projects.c */
call_fn list_tenants, create_tenant, get_tenant, update_tenant, remove_tenant;
call_fn list_projects, create_project, get_project, update_project, remove_project;
call_fn finish_project;

/* catalog.c */
call_fn list_classes, set_class, get_class, remove_class, finish_class;
call_fn list_pools, set_pool, get_pool, remove_pool, finish_pool;
call_fn list_profiles, set_profile, get_profile, remove_profile, finish_profile;
call_fn get_settings, set_settings, finish_settings;

/* nodes.c */
call_fn list_nodes, get_node, remove_node, finish_node;
call_fn set_node, cordon_node, uncordon_node, drain_node, undrain_node, confirm_lost_node;
call_fn list_devices, hold_device, release_device, finish_device;

/* workloads.c */
call_fn submit_workload, finish_submit;
call_fn list_workloads, get_workload, explain_workload, get_logs;
call_fn cancel_workload, hold_workload, release_workload, requeue_workload, finish_workload;
call_fn list_workload_allocations, list_allocations;

/* belongings.c */
call_fn list_tokens, create_token, create_join_token, get_token, revoke_token, finish_token;
call_fn list_volumes, create_volume, get_volume, remove_volume, finish_volume;
call_fn list_images, set_image, get_image, remove_image, finish_image, put_image;
stored_fn image_stored;
call_fn list_hooks, set_hook, finish_hook, get_hook, remove_hook, test_hook, finish_hook_test;
call_fn list_credentials, set_credential, get_credential, remove_credential, finish_credential;
call_fn put_upload, get_upload, get_upload_content, finish_upload;
stored_fn upload_stored_now;

/* changes.c */
call_fn list_changes, get_change, create_change, preview_change, finish_change, revert_change;

/* whatif.c */
call_fn ask_whatif, get_snapshot;

/* reservations.c */
call_fn list_reservations, create_reservation, get_reservation, finish_reservation;
call_fn confirm_reservation, release_reservation, cancel_reservation, list_slots;

/* reports.c */
call_fn get_usage, list_segments, get_invoice, list_audit, list_decisions;
call_fn get_status, get_whoami, get_openapi, get_health, get_readiness, watch_events;

/* metrics.c */
call_fn get_metrics;

/* workloads.c: the rest of a command to submit `spec`, which is decoded. */
enum err submit_fill(const struct call *c, struct command *command, struct error *e) MUST_CHECK;

#endif
