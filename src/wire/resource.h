/*
 * resource.h - objects as the API shows them: plain view structs, one table each, filled from the
 * state. The server encodes them (PUBLIC form), the CLI decodes the same structs with the
 * same tables.
 *
 * Strings are borrowed from the state or live in the arena: a view is encoded at once. Classes,
 * pools, projects and nodes appear by name; every quantity is an integer with its unit in its name;
 * -1 as a limit means none. A view never holds a secret, but for the answer that made it.
 *
 * foo_view_fill() sets all of a view and cannot fail; what it says of the scheduler, of text and of
 * lists comes with its other arguments.
 */
#ifndef WIRE_RESOURCE_H
#define WIRE_RESOURCE_H

#include "model/spec.h"
#include "model/state.h"
#include "wire/link.h"
#include "wire/schema.h"

/* ---- names for PUBLIC forms ---------------------------------------------------------------- */

struct wire_names wire_names_of(const struct state *state); /* borrows it */
/* A copy for workers, which may not read the state. Lives in the arena. */
struct wire_names wire_names_copy(const struct state *state, struct arena *arena);

/* "ten_..." or "prj_...", whichever it is. */
char *project_id_text(const struct project *project, char text[ID_TEXT_MAX]);

/* ---- projects ------------------------------------------------------------------------------ */

struct quota_view {
    struct str class_name; /* "class" */
    int64_t quota_milli, lend_limit_milli, limit_milli, over_quota_weight;
    int64_t allocated_milli, borrowed_milli, pending_milli; /* now, of the whole subtree */
    bool is_over_limit; /* it was lowered below what is in use */
};

struct quota_view_list {
    struct quota_view *items;
    size_t count;
};

struct project_view {
    struct id id;     /* "ten_..." of a tenant, else "prj_..." */
    struct id parent; /* none: a tenant */
    struct str path, name, tenant;
    int64_t priority;
    bool is_overcommitted;
    int64_t log_quota_mib, log_days;
    struct quota_view_list quotas;
    int64_t live_workloads;
    struct wall created;
    uint64_t version;
};

/* Numbers of the scheduler, which wire may not ask itself; all may stay 0. */
struct class_numbers {
    int64_t allocated_milli, borrowed_milli, pending_milli;
};
typedef struct class_numbers class_numbers_fn(const void *arg, const struct project *project,
                                              int64_t class_number);

/* One quota row for every class that has a quota, a limit or use; `numbers` may be NULL. */
void project_view_fill(struct project_view *view, const struct state *state,
                       const struct project *project, class_numbers_fn *numbers, const void *arg,
                       struct arena *arena);

/* ---- hardware ------------------------------------------------------------------------------ */

struct class_view {
    struct id id;
    struct str name, vendor;
    enum class_kind kind;
    int64_t memory_mib;
    enum slicing slicing;
    enum mig_table_name mig;
    int64_t price_micros_per_hour;
    int64_t capacity_milli, free_milli; /* from the scheduler */
    int64_t quota_milli;                /* sum of the tenants' guarantees */
    uint64_t version;
};
void class_view_fill(struct class_view *view, const struct state *state,
                     const struct class_object *class_object);

struct pool_view {
    struct id id;
    struct str name, class_name;
    enum site_kind site;
    int64_t node_count;
    uint64_t version;
};
void pool_view_fill(struct pool_view *view, const struct state *state,
                    const struct pool_object *pool);

struct request_view {
    int64_t gpu_milli, gpu_memory_mib, devices, share_milli, cpu_milli, memory_mib;
    struct str_list classes;
    enum topology required, preferred;
    enum mig_name mig_profile;
};

struct profile_view {
    struct id id;
    struct str name, description;
    struct request_view request;
    struct str_list pools;
    struct str_list projects;
    struct topology_spec topology; /* the request's, as it is set */
    uint64_t version;
};
void profile_view_fill(struct profile_view *view, const struct state *state,
                       const struct profile_object *profile, struct arena *arena);

struct device_view {
    struct str node; /* its name; empty inside of a node */
    int64_t index;
    struct str class_name, uuid, model;
    int64_t memory_mib, numa_node;
    enum device_health health;
    struct str health_reason;
    bool is_simulated, is_held, is_usable;
    struct str hold_reason;
    int64_t allocated_milli;
};

struct device_view_list {
    struct device_view *items;
    size_t count;
};

struct node_view {
    struct id id;
    struct str name, pool;
    enum node_contact contact;
    struct wall contact_since;
    bool is_usable;
    struct hold_list holds;
    struct str boot_id, agent_version, kernel, driver, runtime, problems, rack, block;
    int64_t cpu_milli, cpu_used_milli, memory_mib, memory_used_mib;
    int64_t allocation_count;
    int64_t drain_remaining_s; /* UNSET: no deadline */
    int64_t clock_skew_ms;     /* UNSET: not connected, or not known to who fills this */
    struct device_view_list devices;
    uint64_t generation, version;
};
void node_view_fill(struct node_view *view, const struct state *state, const struct node *node,
                    struct mono now, struct arena *arena);
void device_view_fill(struct device_view *view, const struct state *state, const struct node *node,
                      const struct device_record *device);

/* ---- workloads ----------------------------------------------------------------------------- */

struct dependency_view {
    struct id workload;
    enum dependency_when when;
};

struct dependency_view_list {
    struct dependency_view *items;
    size_t count;
};

/* How far a node is with the image of starting work. */
struct image_progress_view {
    struct str node;
    enum image_phase phase;
    int64_t done_bytes, total_bytes; /* 0: not known */
    struct str detail;
};

struct image_progress_view_list {
    struct image_progress_view *items;
    size_t count;
};

struct workload_view {
    struct id id, array;
    int64_t array_index;                    /* UNSET: not of an array */
    struct str name, project, tenant, user; /* project and tenant: paths */
    enum workload_kind kind;
    enum workload_state state;
    enum cause cause;
    struct str detail;             /* the numbers behind the cause */
    int64_t position;              /* in its queue, from 1; 0: not waiting */
    struct wall promised_start_at; /* 0: no start was promised */
    enum workload_state after_stop;
    int64_t attempt, failures, evictions, node_losses;
    struct request_view request;
    int64_t members, members_min, priority;
    enum preemptible preemptible;
    enum restart_policy restart;
    enum on_contact_loss on_contact_loss;
    int64_t time_limit_s, grace_s, retries, fence_after_s;
    struct dependency_view_list depends_on;
    struct str_list nodes;                          /* names, by rank, of the latest attempt */
    struct image_progress_view_list image_progress; /* empty: filled by who knows */
    struct str reservation; /* its name, or its id when that has left memory */
    bool is_on_demand;
    struct digest image, upload;
    struct wall submitted, started, ended;
    int64_t queued_s, running_s; /* how long it has been so; UNSET when it is not */
    struct exit_status exit;
    struct str spec; /* JSON as submitted; empty in lists */
    uint64_t version;
};

/* What the scheduler says of a waiting workload; NULL: what the record says. */
struct wait_reason {
    enum cause cause;
    struct str text;
    int64_t position;
};

enum view_depth { VIEW_LIST, VIEW_FULL };
void workload_view_fill(struct workload_view *view, const struct state *state,
                        const struct workload *workload, const struct wait_reason *reason,
                        enum view_depth depth, struct arena *arena);
/* How long it has been in its state by `now`: the state's own time is that of the last event. */
void workload_view_fill_times(struct workload_view *view, const struct workload_record *record,
                              struct mono now);
/* From a stored record, of a workload that has left memory. */
void workload_view_of_record(struct workload_view *view, const struct workload_record *record,
                             const struct wire_names *names, struct arena *arena);

struct allocation_view {
    struct id id, workload;
    struct str project, node;
    int64_t attempt, rank;
    struct str class_name;
    int64_t charge_milli, cpu_milli, memory_mib;
    struct share_list devices;
    enum allocation_state state;
    enum cause stop_cause;
    struct id evictor;
    int64_t grace_s;
    struct wall started;
    struct exit_status exit;
    bool is_borrowed;
};
void allocation_view_fill(struct allocation_view *view, const struct state *state,
                          const struct allocation *allocation);

struct explanation_view {
    struct id workload;
    enum workload_state state;
    enum cause cause;
    struct str meaning; /* of the cause, in one sentence */
    struct str detail;
    int64_t position;
    int64_t waits_s; /* until the earliest next try; 0: nothing but the cause holds it */
    struct wall promised_start_at;            /* 0: no start was promised */
    struct str_list blockers, ahead, changes; /* struct advice of the scheduler */
    int64_t ahead_count;
    struct str turn;
    bool others_come_first;
    struct wall starts_from, starts_by; /* 0: not known */
};

/* ---- the rest ------------------------------------------------------------------------------ */

struct volume_view {
    struct id id;
    struct str tenant, name, node;
    int64_t quota_mib;
    struct wall created;
    uint64_t version;
};
void volume_view_fill(struct volume_view *view, const struct state *state,
                      const struct volume *volume);

struct reservation_view {
    struct id id;
    struct str name, project, tenant, user, class_name;
    int64_t gpu_milli;
    enum reservation_state state;
    struct str detail, zone, start, end, until;
    enum repeat repeat;
    int64_t interval;
    enum end_policy end_policy;
    bool is_lent, is_overcommitted;
    struct wall window_start, window_end;
    int64_t windows_passed;
    int64_t used_milli, available_milli, running, waiting; /* from the scheduler */
    struct wall created;
    uint64_t version;
};
void reservation_view_fill(struct reservation_view *view, const struct state *state,
                           const struct reservation *reservation, struct arena *arena);

/* What a change sets, or what was before. */
struct policy_view {
    struct quota_spec_list quotas;
    int64_t priority, log_quota_mib, log_days;
    struct settings_patch settings;
};

struct change_view {
    struct id id;
    struct str name, project, tenant, user, reason; /* no project: of the settings */
    struct str summary;
    enum change_state state;
    struct str detail;
    struct quota_spec_list quotas;
    int64_t priority, log_quota_mib, log_days;
    struct settings_patch settings;
    struct policy_view former;
    bool is_forced;
    struct str zone, from, until, repeat_until;
    enum repeat repeat;
    int64_t interval;
    struct wall window_start, window_end;
    int64_t windows_passed;
    struct wall created;
    uint64_t version;
};
void change_view_fill(struct change_view *view, const struct state *state,
                      const struct change_record *r, struct arena *arena);

struct preview_level_view {
    struct str project, class_name;
    int64_t quota_milli, new_quota_milli, limit_milli, new_limit_milli;
    int64_t allocated_milli, pending_milli, borrowed_milli, new_borrowed_milli;
    bool is_over_limit;
};
struct preview_level_list {
    struct preview_level_view *items;
    size_t count;
};
struct preview_work_view {
    struct id workload;
    struct str name, project, user, class_name, effect;
    int64_t charge_milli;
    bool is_preemptible;
};
struct preview_work_list {
    struct preview_work_view *items;
    size_t count;
};
struct preview_view {
    struct change_view change;
    bool is_overcommitted;
    struct preview_level_list levels;
    struct preview_work_list work;
    int64_t work_count;
};

/* One workload to which something else happens when it is supposed. */
struct whatif_row_view {
    struct id workload;
    struct str name, project, effect;
    bool is_new;
    struct wall started_before, started_after; /* 0: it did not */
    int64_t delay_s;                           /* UNSET: it does not start in both */
    int64_t evictions_before, evictions_after;
    enum cause cause;
};
struct whatif_row_list {
    struct whatif_row_view *items;
    size_t count;
};
struct whatif_view {
    struct wall from, until;
    bool is_cut;
    int64_t starts_before, starts_after, evictions_before, evictions_after;
    int64_t waiting_before, waiting_after; /* UNSET: not for this caller */
    struct whatif_row_list work;
    int64_t work_count;
};

struct slot_view {
    struct wall start, end;
    struct str class_name;
    int64_t free_milli;
};

struct image_view {
    struct id id;
    struct str tenant, name; /* tenant empty: offered to all */
    struct digest manifest;
    struct str source;
    int64_t size_bytes;
    struct str_list command; /* what it runs by itself; its maker may leave it empty */
    struct wall created;
    uint64_t version;
};
void image_view_fill(struct image_view *view, const struct state *state, const struct image *image);

struct token_view {
    struct id id;
    struct str name;
    enum role role;
    struct str tenant, user, pool;
    struct wall created, expires;
    bool is_revoked;
    struct str secret; /* the token itself: only in the answer that made it */
    uint64_t version;
};
void token_view_fill(struct token_view *view, const struct state *state, const struct token *token);

struct credential_view {
    struct id id;
    struct str tenant, registry, username;
    uint64_t version;
};
void credential_view_fill(struct credential_view *view, const struct state *state,
                          const struct credential *credential);

struct hook_view {
    struct id id;
    struct str tenant, project, name, url, fault;
    struct wall created;
    uint64_t version;
};
void hook_view_fill(struct hook_view *view, const struct state *state, const struct hook *hook);

struct upload_view {
    struct digest digest;
    int64_t size_bytes;
    struct str name;
};

/* One row of a usage report or an invoice: ended segments, and what runs now up to this moment. */
struct usage_view {
    struct str project, class_name;
    int64_t milli_ms;
    int64_t running_milli_ms; /* of it, by what still runs */
    int64_t amount_micros;
    int64_t price_micros_per_hour; /* the present flat rate */
    int64_t segments;
};

struct usage_view_list {
    struct usage_view *items;
    size_t count;
};

struct invoice_view {
    struct str tenant;
    struct usage_view_list lines;
    int64_t total_micros;
    struct wall until;
};

struct segment_view {
    uint64_t key;
    struct id allocation, workload, project;
    struct str class_name;
    int64_t charge_milli;
    struct wall start;
    int64_t duration_ms, price_micros_per_hour, amount_micros;
    enum cause cause;
};
void segment_view_fill(struct segment_view *view, const struct segment *segment, uint64_t key,
                       const struct wire_names *names);

struct audit_view {
    uint64_t sequence;
    struct wall at;
    enum role role;
    struct str actor; /* user, node or "system" */
    struct id token, request, tenant;
    struct str verb, object;
    struct str data; /* JSON of the event, PUBLIC form */
};

/* What the scheduler decided about one workload, with the numbers of it. */
struct decision_view {
    uint64_t sequence; /* of the event that says it */
    struct wall at;
    struct str rule; /* "allocate", "reclaim", ... */
    enum cause cause;
    struct str detail;
    struct id workload;
    struct str name, project, user; /* empty when the workload is no longer kept */
    int64_t attempt;
    struct str class_name;
    int64_t members, nodes, charge_milli;
    bool is_borrowed;
    int64_t waited_s; /* a start's: since the submission */
    struct id evictor;
    struct str evictor_project; /* empty: of another tenant */
};

struct whoami_view {
    enum role role;
    struct str user, tenant;
    struct id token;
};

struct status_view {
    struct str version;
    uint64_t epoch, sequence;
    struct wall now;
    int64_t tenants, projects, nodes, nodes_usable, workloads_queued, workloads_running,
        allocations;
};

/* RFC 9457. */
struct problem_view {
    struct str type, title;
    int64_t status;
    struct str cause, detail, field;
};
/* `title` and `status` out of the code; cause by name. Text is borrowed from `e`. */
void problem_view_fill(struct problem_view *view, const struct error *e);

extern const struct schema project_view_schema, class_view_schema, pool_view_schema,
    request_view_schema, profile_view_schema, device_view_schema, node_view_schema,
    workload_view_schema, allocation_view_schema, explanation_view_schema, volume_view_schema,
    reservation_view_schema, slot_view_schema, image_view_schema, token_view_schema,
    credential_view_schema, hook_view_schema, upload_view_schema, usage_view_schema,
    invoice_view_schema, segment_view_schema, audit_view_schema, decision_view_schema,
    whoami_view_schema, status_view_schema, change_view_schema, preview_view_schema,
    whatif_view_schema, problem_view_schema, settings_view_schema;

#endif
