#include "api/routes.h"

#include "api/handlers.h"
#include "wire/resource.h"
#include "wire/spec_json.h"

enum { MIB = 1024 * 1024 };
#define SUBMIT_BYTES_MAX ((uint64_t)1 * MIB)
#define UPLOAD_BYTES_MAX ((uint64_t)2048 * MIB)
#define IMAGE_BYTES_MAX  ((uint64_t)65536 * MIB)

/* ---- parameters of queries ----------------------------------------------------------------- */

#define PAGE                                                                                       \
    { "limit", "rows of a page, 100 unless given", true },                                         \
    {                                                                                              \
        "after", "the `next` of the page before", false                                            \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, false                                                                          \
    }
#define OF_TENANT                                                                                  \
    {                                                                                              \
        "tenant", "name or id; default: one's own, operators: all", false                          \
    }
#define FORCE                                                                                      \
    {                                                                                              \
        "force", "true: although it is in use", false                                              \
    }

#define DRY                                                                                        \
    {                                                                                              \
        "dry_run", "true: refuse what would be refused, and change nothing", false                 \
    }

static const struct param page_params[] = { PAGE, END };
static const struct param tenant_params[] = { OF_TENANT, END };
static const struct param tenant_page_params[] = { OF_TENANT, PAGE, END };
static const struct param project_params[] = {
    OF_TENANT, { "path", "only this one and what is below it", false }, PAGE, END
};
static const struct param node_params[] = { { "pool", "only of this pool", false },
                                            { "contact", "never, ok, unknown or lost", false },
                                            PAGE,
                                            END };
static const struct param device_params[] = {
    { "node", "name or id", false }, { "class", "only of this class", false }, PAGE, END
};
static const struct param dry_params[] = { DRY, END };
static const struct param remove_tenant_params[] = { OF_TENANT, DRY, END };
static const struct param force_params[] = { FORCE, DRY, END };
static const struct param workload_params[] = {
    { "project", "path or id; with all that is below it", false },
    { "state", "one state, or several with commas", false },
    { "label", "NAME=VALUE", false },
    { "array", "elements of this array", false },
    { "user", "only of this user", false },
    { "history", "true: ended work out of the store, also what has left memory", false },
    OF_TENANT,
    PAGE,
    END
};
static const struct param log_params[] = { { "member", "rank, 0 unless given", true },
                                           { "attempt", "the latest unless given", true },
                                           { "stream", "stdout or stderr; both unless given",
                                             false },
                                           { "offset", "first byte", true },
                                           { "tail_bytes", "only the last so many", true },
                                           { "follow", "true: go on as it grows", false },
                                           END };
static const struct param allocation_params[] = { { "node", "name or id", false }, PAGE, END };
static const struct param reservation_params[] = {
    { "project", "path or id; with all that is below it", false },
    { "state", "only in this state", false },
    OF_TENANT,
    PAGE,
    END
};
static const struct param change_params[] = { { "project", "path or id; with all that is below it",
                                                false },
                                              { "state", "only in this state", false },
                                              OF_TENANT,
                                              PAGE,
                                              END };
static const struct param slot_params[] = {
    { "class", "of the devices; has to be given", false },
    { "gpu_milli", "how many: 1000 for each, 1000 unless given", true },
    { "duration_s", "for how long, an hour unless given", true },
    { "after_s", "not before so many seconds from now", true },
    { "limit", "so many answers, 3 unless given", true },
    END
};
static const struct param usage_params[] = { OF_TENANT,
                                             { "project", "path or id; with all below it", false },
                                             { "class", "only of this class", false },
                                             END };
static const struct param segment_params[] = { OF_TENANT,
                                               { "project", "path or id", false },
                                               { "workload", "only of this workload", false },
                                               PAGE,
                                               END };
static const struct param decision_params[] = {
    { "project", "path or id; with all that is below it", false },
    { "workload", "only about this workload", false },
    { "rule", "allocate, reclaim, preempt, ...: only by this rule", false },
    { "since_s", "only of the last so many seconds", true },
    OF_TENANT,
    PAGE,
    END
};
static const struct param event_params[] = { { "after", "sequence to resume behind", true },
                                             { "workload", "only of this workload", false },
                                             OF_TENANT,
                                             END };
static const struct param content_params[] = { { "name", "for people", false }, OF_TENANT, END };
static const struct param image_params[] = {
    { "tenant", "whose image it becomes; operators: everybody's unless given", false }, END
};

/* ---- the table ----------------------------------------------------------------------------- */

#define GET         .method = HTTP_METHOD_GET, .status = 200
#define POST        .method = HTTP_METHOD_POST, .flags = ROUTE_IDEMPOTENT
#define POST_SECRET .method = HTTP_METHOD_POST, .flags = ROUTE_IDEMPOTENT | ROUTE_SECRET
#define PUT         .method = HTTP_METHOD_PUT
#define PATCH       .method = HTTP_METHOD_PATCH, .flags = ROUTE_IF_MATCH, .status = 200
#define DELETE      .method = HTTP_METHOD_DELETE, .flags = ROUTE_IF_MATCH, .status = 204

/* An action on an object: POST .../verb, with an optional reason, answers with the object. */
#define ACTION(path, permit, handler, finisher, view, group, about)                                \
    {                                                                                              \
        POST, .pattern = (path), .permission = (permit), .handle = (handler),                      \
              .finish = (finisher), .request = &target_spec_schema, .answer = &(view),             \
              .status = 200, .tag = (group), .summary = (about)                                    \
    }
#define ACTION_OF_TENANT(path, permit, handler, finisher, view, group, about)                      \
    {                                                                                              \
        POST, .pattern = (path), .permission = (permit), .handle = (handler),                      \
              .finish = (finisher), .request = &target_spec_schema, .answer = &(view),             \
              .status = 200, .params = tenant_params, .tag = (group), .summary = (about)           \
    }
#define LIST(path, permit, handler, view, query, group, about)                                     \
    {                                                                                              \
        GET, .pattern = (path), .permission = (permit), .handle = (handler), .answer = &(view),    \
             .shape = SHAPE_LIST, .params = (query), .tag = (group), .summary = (about)            \
    }
#define ONE(path, permit, handler, view, group, about)                                             \
    {                                                                                              \
        GET, .pattern = (path), .permission = (permit), .handle = (handler), .answer = &(view),    \
             .tag = (group), .summary = (about)                                                    \
    }
#define REMOVE(path, permit, handler, query, group, about)                                         \
    {                                                                                              \
        DELETE, .pattern = (path), .permission = (permit), .handle = (handler),                    \
                .finish = finish_none, .shape = SHAPE_NONE, .params = (query), .tag = (group),     \
                .summary = (about)                                                                 \
    }
#define CREATE(path, permit, handler, finisher, spec, view, group, about)                          \
    {                                                                                              \
        POST, .pattern = (path), .permission = (permit), .handle = (handler),                      \
              .finish = (finisher), .request = &(spec), .answer = &(view), .status = 201,          \
              .tag = (group), .summary = (about)                                                   \
    }
#define CHANGE(path, permit, handler, finisher, spec, view, group, about)                          \
    {                                                                                              \
        PATCH, .pattern = (path), .permission = (permit), .handle = (handler),                     \
               .finish = (finisher), .request = &(spec), .answer = &(view), .tag = (group),        \
               .summary = (about)                                                                  \
    }
#define SET(path, permit, handler, finisher, spec, view, group, about)                             \
    {                                                                                              \
        PUT, .flags = ROUTE_IF_MATCH, .pattern = (path), .permission = (permit),                   \
             .handle = (handler), .finish = (finisher), .request = &(spec), .answer = &(view),     \
             .status = 200, .tag = (group), .summary = (about)                                     \
    }

/* clang-format off */
const struct route routes[] = {
    /* the server itself */
    { GET, .pattern = "/healthz", .flags = ROUTE_OPEN, .handle = get_health, .shape = SHAPE_TEXT,
      .tag = "server", .summary = "Is the controller alive?" },
    { GET, .pattern = "/readyz", .flags = ROUTE_OPEN, .handle = get_readiness, .shape = SHAPE_TEXT,
      .tag = "server", .summary = "Does it take commands?" },
    { GET, .pattern = "/openapi.json", .flags = ROUTE_OPEN, .handle = get_openapi,
      .shape = SHAPE_JSON, .tag = "server", .summary = "This document" },
    { GET, .pattern = "/metrics", .permission = PERMIT_METRICS_READ, .handle = get_metrics,
      .shape = SHAPE_TEXT, .tag = "server", .summary = "Metrics in the text format of Prometheus" },
    { GET, .pattern = "/v1/status", .permission = PERMIT_CATALOG_READ, .handle = get_status,
      .answer = &status_view_schema, .tag = "server", .summary = "The installation in numbers" },
    { GET, .pattern = "/v1/whoami", .flags = ROUTE_OWN, .handle = get_whoami,
      .answer = &whoami_view_schema, .tag = "server", .summary = "Whom the server takes you for" },
    ONE("/v1/settings", PERMIT_SETTINGS_READ, get_settings, settings_view_schema, "server",
        "Settings of the installation"),
    CHANGE("/v1/settings", PERMIT_SETTINGS_WRITE, set_settings, finish_settings,
           settings_spec_schema, settings_view_schema, "server", "Change settings"),

    /* tenants and projects */
    LIST("/v1/tenants", PERMIT_TENANT_READ, list_tenants, project_view_schema, page_params,
         "projects", "Tenants"),
    CREATE("/v1/tenants", PERMIT_TENANT_WRITE, create_tenant, finish_project, project_spec_schema,
           project_view_schema, "projects", "Create a tenant"),
    ONE("/v1/tenants/{tenant}", PERMIT_TENANT_READ, get_tenant, project_view_schema, "projects",
        "A tenant, with quotas and use"),
    CHANGE("/v1/tenants/{tenant}", PERMIT_QUOTA_WRITE, update_tenant, finish_project,
           project_spec_schema, project_view_schema, "projects",
           "Change quotas or priority of a tenant"),
    REMOVE("/v1/tenants/{tenant}", PERMIT_TENANT_WRITE, remove_tenant, dry_params, "projects",
           "Remove an empty tenant"),
    LIST("/v1/projects", PERMIT_PROJECT_READ, list_projects, project_view_schema, project_params,
         "projects", "Projects, parents before children; tenants included"),
    CREATE("/v1/projects", PERMIT_PROJECT_WRITE, create_project, finish_project,
           project_spec_schema, project_view_schema, "projects", "Create a project"),
    ONE("/v1/projects/{project}", PERMIT_PROJECT_READ, get_project, project_view_schema, "projects",
        "A project by id, or by path with colons for its slashes"),
    CHANGE("/v1/projects/{project}", PERMIT_QUOTA_WRITE, update_project, finish_project,
           project_spec_schema, project_view_schema, "projects", "Change quotas or priority"),
    REMOVE("/v1/projects/{project}", PERMIT_PROJECT_WRITE, remove_project, dry_params, "projects",
           "Remove an empty project"),

    /* what can be asked for */
    LIST("/v1/classes", PERMIT_CATALOG_READ, list_classes, class_view_schema, page_params,
         "catalog", "Resource classes, with capacity"),
    SET("/v1/classes/{class}", PERMIT_CLASS_WRITE, set_class, finish_class, class_spec_schema,
        class_view_schema, "catalog", "Create or change a class"),
    ONE("/v1/classes/{class}", PERMIT_CATALOG_READ, get_class, class_view_schema, "catalog",
        "A class"),
    REMOVE("/v1/classes/{class}", PERMIT_CLASS_WRITE, remove_class, dry_params, "catalog",
           "Remove a class that nothing uses"),
    LIST("/v1/pools", PERMIT_CATALOG_READ, list_pools, pool_view_schema, page_params, "catalog",
         "Pools of nodes"),
    SET("/v1/pools/{pool}", PERMIT_POOL_WRITE, set_pool, finish_pool, pool_spec_schema,
        pool_view_schema, "catalog", "Create or change a pool"),
    ONE("/v1/pools/{pool}", PERMIT_CATALOG_READ, get_pool, pool_view_schema, "catalog", "A pool"),
    REMOVE("/v1/pools/{pool}", PERMIT_POOL_WRITE, remove_pool, dry_params, "catalog",
           "Remove an empty pool"),
    LIST("/v1/profiles", PERMIT_CATALOG_READ, list_profiles, profile_view_schema, page_params,
         "catalog", "Profiles that users pick"),
    SET("/v1/profiles/{profile}", PERMIT_PROFILE_WRITE, set_profile, finish_profile,
        profile_spec_schema, profile_view_schema, "catalog", "Create or change a profile"),
    ONE("/v1/profiles/{profile}", PERMIT_CATALOG_READ, get_profile, profile_view_schema, "catalog",
        "A profile"),
    REMOVE("/v1/profiles/{profile}", PERMIT_PROFILE_WRITE, remove_profile, dry_params, "catalog",
           "Remove a profile"),

    /* machines */
    LIST("/v1/nodes", PERMIT_NODE_READ, list_nodes, node_view_schema, node_params, "nodes",
         "Nodes, with devices and use"),
    ONE("/v1/nodes/{node}", PERMIT_NODE_READ, get_node, node_view_schema, "nodes", "A node"),
    CHANGE("/v1/nodes/{node}", PERMIT_NODE_WRITE, set_node, finish_node, node_spec_schema,
           node_view_schema, "nodes", "Say where a node stands"),
    REMOVE("/v1/nodes/{node}", PERMIT_NODE_WRITE, remove_node, force_params, "nodes",
           "Remove a node; it has to join again"),
    ACTION("/v1/nodes/{node}/cordon", PERMIT_NODE_WRITE, cordon_node, finish_node, node_view_schema,
           "nodes", "No new work on this node"),
    ACTION("/v1/nodes/{node}/uncordon", PERMIT_NODE_WRITE, uncordon_node, finish_node,
           node_view_schema, "nodes", "New work again"),
    ACTION("/v1/nodes/{node}/drain", PERMIT_NODE_WRITE, drain_node, finish_node, node_view_schema,
           "nodes", "Empty a node for maintenance"),
    ACTION("/v1/nodes/{node}/undrain", PERMIT_NODE_WRITE, undrain_node, finish_node,
           node_view_schema, "nodes", "End a drain"),
    ACTION("/v1/nodes/{node}/confirm-lost", PERMIT_NODE_WRITE, confirm_lost_node, finish_node,
           node_view_schema, "nodes", "A person says that nothing of this node can still run"),
    LIST("/v1/devices", PERMIT_NODE_READ, list_devices, device_view_schema, device_params, "nodes",
         "Devices of all nodes"),
    ACTION("/v1/nodes/{node}/devices/{index}/hold", PERMIT_NODE_WRITE, hold_device, finish_device,
           device_view_schema, "nodes", "Keep a device out of use"),
    ACTION("/v1/nodes/{node}/devices/{index}/release", PERMIT_NODE_WRITE, release_device,
           finish_device, device_view_schema, "nodes", "Put a device back into use"),
    LIST("/v1/allocations", PERMIT_NODE_READ, list_allocations, allocation_view_schema,
         allocation_params, "nodes", "What the nodes hold now"),
    { POST_SECRET, .pattern = "/v1/join-tokens", .permission = PERMIT_TOKEN_WRITE,
      .handle = create_join_token, .finish = finish_token, .request = &token_spec_schema,
      .answer = &token_view_schema, .status = 201, .tag = "nodes",
      .summary = "A token with which one machine can become a node" },

    /* work */
    { POST, .pattern = "/v1/workloads", .permission = PERMIT_WORKLOAD_SUBMIT,
      .handle = submit_workload, .finish = finish_submit, .request = &workload_spec_schema,
      .answer = &workload_view_schema, .status = 201, .body_max = SUBMIT_BYTES_MAX,
      .tag = "workloads", .summary = "Submit a workload, or an array of them" },
    LIST("/v1/workloads", PERMIT_WORKLOAD_READ, list_workloads, workload_view_schema,
         workload_params, "workloads", "Workloads, the newest first"),
    ONE("/v1/workloads/{workload}", PERMIT_WORKLOAD_READ, get_workload, workload_view_schema,
        "workloads", "A workload, also one that ended long ago"),
    ACTION("/v1/workloads/{workload}/cancel", PERMIT_WORKLOAD_CANCEL, cancel_workload,
           finish_workload, workload_view_schema, "workloads", "Cancel it, in any state"),
    ACTION("/v1/workloads/{workload}/hold", PERMIT_WORKLOAD_CANCEL, hold_workload, finish_workload,
           workload_view_schema, "workloads", "Keep waiting work from starting"),
    ACTION("/v1/workloads/{workload}/release", PERMIT_WORKLOAD_CANCEL, release_workload,
           finish_workload, workload_view_schema, "workloads", "Let held work start"),
    ACTION("/v1/workloads/{workload}/requeue", PERMIT_WORKLOAD_CANCEL, requeue_workload,
           finish_workload, workload_view_schema, "workloads", "Stop it and let it start again"),
    ONE("/v1/workloads/{workload}/explain", PERMIT_WORKLOAD_READ, explain_workload,
        explanation_view_schema, "workloads", "Why it waits, with numbers"),
    { GET, .pattern = "/v1/workloads/{workload}/logs", .permission = PERMIT_WORKLOAD_LOGS,
      .handle = get_logs, .shape = SHAPE_BYTES, .params = log_params, .tag = "workloads",
      .summary = "What it wrote" },
    { .method = HTTP_METHOD_GET, .pattern = "/v1/workloads/{workload}/terminal",
      .permission = PERMIT_WORKLOAD_EXEC, .flags = ROUTE_OPEN, .shape = SHAPE_SOCKET, .status = 101,
      .tag = "workloads",
      .summary = "A terminal in it: a WebSocket of the subprotocol berth-terminal/1" },
    LIST("/v1/workloads/{workload}/allocations", PERMIT_WORKLOAD_READ, list_workload_allocations,
         allocation_view_schema, page_params, "workloads", "What its members hold now"),

    /* what tenants have */
    LIST("/v1/tokens", PERMIT_TOKEN_READ, list_tokens, token_view_schema, tenant_page_params,
         "access", "Tokens, never their secrets"),
    { POST_SECRET, .pattern = "/v1/tokens", .permission = PERMIT_TOKEN_WRITE, .handle = create_token,
      .finish = finish_token, .request = &token_spec_schema, .answer = &token_view_schema,
      .status = 201, .tag = "access",
      .summary = "Make a token; the answer is the only place where its secret is" },
    ONE("/v1/tokens/{token}", PERMIT_TOKEN_READ, get_token, token_view_schema, "access", "A token"),
    REMOVE("/v1/tokens/{token}", PERMIT_TOKEN_WRITE, revoke_token, dry_params, "access",
           "Revoke a token, at once"),
    LIST("/v1/volumes", PERMIT_VOLUME_READ, list_volumes, volume_view_schema, tenant_page_params,
         "storage", "Volumes"),
    CREATE("/v1/volumes", PERMIT_VOLUME_WRITE, create_volume, finish_volume, volume_spec_schema,
           volume_view_schema, "storage", "Create a volume"),
    { GET, .pattern = "/v1/volumes/{volume}", .permission = PERMIT_VOLUME_READ,
      .handle = get_volume, .answer = &volume_view_schema, .params = tenant_params,
      .tag = "storage", .summary = "A volume, by id or name" },
    REMOVE("/v1/volumes/{volume}", PERMIT_VOLUME_WRITE, remove_volume, remove_tenant_params, "storage",
           "Remove a volume and what is in it"),
    LIST("/v1/changes", PERMIT_PROJECT_READ, list_changes, change_view_schema, change_params,
         "policies", "Changes of quotas, priorities and settings, in order of creation"),
    CREATE("/v1/changes", PERMIT_QUOTA_WRITE, create_change, finish_change, change_spec_schema,
           change_view_schema, "policies",
           "Change a project or the settings: now or later, for good or for a time"),
    { .method = HTTP_METHOD_POST, .pattern = "/v1/changes/preview", .permission = PERMIT_QUOTA_WRITE,
      .handle = preview_change, .finish = finish_change, .request = &change_spec_schema,
      .answer = &preview_view_schema, .status = 200, .tag = "policies",
      .summary = "What a change would do, and to whom; nothing is done" },
    ONE("/v1/changes/{change}", PERMIT_PROJECT_READ, get_change, change_view_schema, "policies",
        "A change, by id or name; or the newest of a project, by its path, or of the `settings`"),
    ACTION("/v1/changes/{change}/revert", PERMIT_QUOTA_WRITE, revert_change, finish_change,
           change_view_schema, "policies", "Take it back: what was before holds again"),
    { .method = HTTP_METHOD_POST, .pattern = "/v1/whatif", .permission = PERMIT_WORKLOAD_SUBMIT,
      .handle = ask_whatif, .finish = finish_none, .request = &whatif_spec_schema, .answer = &whatif_view_schema,
      .status = 200, .tag = "policies",
      .summary = "What would follow if work were submitted, something changed or a node lost" },
    { GET, .pattern = "/v1/snapshot", .permission = PERMIT_SNAPSHOT_READ, .handle = get_snapshot,
      .shape = SHAPE_BYTES, .tag = "server",
      .summary = "The state for berth-sim, without secrets: lines of JSON" },
    LIST("/v1/reservations", PERMIT_RESERVATION_READ, list_reservations, reservation_view_schema,
         reservation_params, "reservations", "Reservations, in order of creation"),
    CREATE("/v1/reservations", PERMIT_RESERVATION_WRITE, create_reservation, finish_reservation,
           reservation_spec_schema, reservation_view_schema, "reservations",
           "Reserve devices, or be told the nearest times when that is possible"),
    { GET, .pattern = "/v1/reservations/{reservation}", .permission = PERMIT_RESERVATION_READ,
      .handle = get_reservation, .answer = &reservation_view_schema, .params = tenant_params,
      .tag = "reservations", .summary = "A reservation, by id or name" },
    ACTION_OF_TENANT("/v1/reservations/{reservation}/confirm", PERMIT_RESERVATION_WRITE, confirm_reservation,
           finish_reservation, reservation_view_schema, "reservations",
           "Keep free what was only asked for"),
    ACTION_OF_TENANT("/v1/reservations/{reservation}/release", PERMIT_RESERVATION_WRITE, release_reservation,
           finish_reservation, reservation_view_schema, "reservations",
           "Give back what is left of it; its work does what its end_policy says"),
    ACTION_OF_TENANT("/v1/reservations/{reservation}/cancel", PERMIT_RESERVATION_WRITE, cancel_reservation,
           finish_reservation, reservation_view_schema, "reservations", "Cancel it"),
    LIST("/v1/slots", PERMIT_CATALOG_READ, list_slots, slot_view_schema, slot_params,
         "reservations", "The earliest times when so many devices could be reserved"),
    LIST("/v1/images", PERMIT_IMAGE_READ, list_images, image_view_schema, tenant_page_params,
         "storage", "Images, one's own and those offered to all"),
    CREATE("/v1/images", PERMIT_IMAGE_WRITE, set_image, finish_image, image_spec_schema,
           image_view_schema, "storage", "Name an image of a registry"),
    { PUT, .flags = ROUTE_STORES, .pattern = "/v1/images/{image}/content",
      .permission = PERMIT_IMAGE_WRITE, .handle = put_image, .stored = image_stored,
      .finish = finish_image, .answer = &image_view_schema, .status = 200, .params = image_params,
      .body_max = IMAGE_BYTES_MAX, .tag = "storage",
      .summary = "Upload an image: a tar of an OCI layout" },
    { GET, .pattern = "/v1/images/{image}", .permission = PERMIT_IMAGE_READ, .handle = get_image,
      .answer = &image_view_schema, .params = tenant_params, .tag = "storage",
      .summary = "An image, by id or name" },
    REMOVE("/v1/images/{image}", PERMIT_IMAGE_WRITE, remove_image, remove_tenant_params, "storage",
           "Remove an image; running work is not touched"),
    LIST("/v1/credentials", PERMIT_CREDENTIAL_READ, list_credentials, credential_view_schema,
         tenant_page_params, "storage", "Logins at private registries, never their passwords"),
    CREATE("/v1/credentials", PERMIT_CREDENTIAL_WRITE, set_credential, finish_credential,
           credential_spec_schema, credential_view_schema, "storage",
           "Set the login at a registry"),
    ONE("/v1/credentials/{credential}", PERMIT_CREDENTIAL_READ, get_credential,
        credential_view_schema, "storage", "A login, never its password"),
    REMOVE("/v1/credentials/{credential}", PERMIT_CREDENTIAL_WRITE, remove_credential, dry_params,
           "storage", "Remove a login"),
    LIST("/v1/hooks", PERMIT_HOOK_READ, list_hooks, hook_view_schema, tenant_page_params, "notices",
         "Where owners are told what becomes of their work; never the secrets"),
    CREATE("/v1/hooks", PERMIT_HOOK_WRITE, set_hook, finish_hook, hook_spec_schema,
           hook_view_schema, "notices", "Set a hook: a web server, or an address"),
    ONE("/v1/hooks/{hook}", PERMIT_HOOK_READ, get_hook, hook_view_schema, "notices",
        "A hook, never its secret"),
    REMOVE("/v1/hooks/{hook}", PERMIT_HOOK_WRITE, remove_hook, dry_params, "notices",
           "Remove a hook; nothing more is sent there"),
    ACTION("/v1/hooks/{hook}/test", PERMIT_HOOK_WRITE, test_hook, finish_hook_test,
           hook_view_schema, "notices", "Send a notice there that says it is a test"),
    { PUT, .flags = ROUTE_STORES, .pattern = "/v1/uploads/{digest}",
      .permission = PERMIT_IMAGE_WRITE, .handle = put_upload, .stored = upload_stored_now,
      .finish = finish_upload, .answer = &upload_view_schema, .status = 200,
      .params = content_params, .body_max = UPLOAD_BYTES_MAX, .tag = "storage",
      .summary = "Store bytes under their SHA-256" },
    { GET, .pattern = "/v1/uploads/{digest}", .permission = PERMIT_IMAGE_READ, .handle = get_upload,
      .answer = &upload_view_schema, .params = tenant_params, .tag = "storage",
      .summary = "Are these bytes stored already?" },
    { GET, .pattern = "/v1/uploads/{digest}/content", .permission = PERMIT_IMAGE_READ,
      .handle = get_upload_content, .shape = SHAPE_BYTES, .params = tenant_params,
      .tag = "storage", .summary = "The bytes" },

    /* what was used, and what happened */
    LIST("/v1/usage", PERMIT_USAGE_READ, get_usage, usage_view_schema, usage_params, "usage",
         "Use by project and class, up to now; projects include what is below them"),
    LIST("/v1/usage/segments", PERMIT_USAGE_READ, list_segments, segment_view_schema,
         segment_params, "usage", "Ended usage segments, the oldest first"),
    { GET, .pattern = "/v1/invoice", .permission = PERMIT_USAGE_READ, .handle = get_invoice,
      .answer = &invoice_view_schema, .params = tenant_params, .tag = "usage",
      .summary = "What a tenant's use costs so far, at the flat rate" },
    LIST("/v1/audit", PERMIT_AUDIT_READ, list_audit, audit_view_schema, tenant_page_params, "usage",
         "Who did what, the newest first"),
    LIST("/v1/decisions", PERMIT_WORKLOAD_READ, list_decisions, decision_view_schema,
         decision_params, "usage", "What the scheduler decided, and by which rule; the newest first"),
    { GET, .pattern = "/v1/events", .permission = PERMIT_TENANT_READ, .handle = watch_events,
      .shape = SHAPE_FEED, .params = event_params, .tag = "usage",
      .summary = "The change feed, as server-sent events" },
};
/* clang-format on */
const size_t route_count = COUNT_OF(routes);
