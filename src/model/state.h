/*
 * state.h - everything the controller knows, as a fold over events.
 *
 * evolve() is the only code that changes it, and it cannot fail: what could go wrong was refused by
 * decide() before. No derived counters live here: the scheduler keeps its own and can rebuild them
 * from these facts at any moment. All memory comes from the pool, so dropping a state is one call.
 * Everything is reachable in an order that history alone determines (lists), never a hash order.
 */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "base/map.h"
#include "base/mem.h"
#include "model/event.h"
#include "model/mix.h"
#include "model/record.h"

struct class_object {
    struct class_record r;
    bool is_removed;
};

struct pool_object {
    struct pool_record r;
    size_t node_count;
};

struct profile_object {
    struct profile_record r;
};

struct workload;
struct allocation;
struct node;

struct project {
    struct project_record r;
    struct project *parent; /* NULL: a tenant */
    struct project *first_child;
    struct project *last_child;
    struct project *next_sibling; /* tenants are siblings of each other; in order of creation */
    struct project *prev_sibling;
    struct project *tenant; /* the root of its path; itself for a tenant */
    size_t live_workloads;  /* workloads in memory that belong to it and are not final */
    size_t volume_count, image_count, token_count;
    uint64_t last_sequence; /* tenants: how many events their feed has; the feed's own numbering */
};

struct workload {
    struct workload_record r;
    struct project *project;
    struct workload *next; /* all workloads in memory, in order of submission */
    struct workload *prev;
    struct workload *array_next;         /* elements of the same array, by index; NULL at the end */
    struct allocation *first_allocation; /* of all attempts still held, by rank within an attempt */
    struct allocation *last_allocation;
    struct mono ended_at; /* when it became final; 0: not yet */
};

struct allocation {
    struct allocation_record r;
    struct workload *workload;
    struct node *node;
    struct allocation *next_in_workload, *prev_in_workload;
    struct allocation *next_on_node, *prev_on_node;
};

struct node {
    struct node_record r;
    struct pool_object *pool;
    struct node *next; /* all nodes, in order of joining */
    struct node *prev;
    struct allocation *first_allocation; /* held ones only, in order of granting */
    struct allocation *last_allocation;
};

struct token {
    struct token_record r;
    struct token *next, *prev;
};

struct volume {
    struct volume_record r;
    struct volume *next, *prev;
};

struct image {
    struct image_record r;
    struct image *next, *prev;
};

struct credential {
    struct credential_record r;
    struct credential *next, *prev;
};

struct hook {
    struct hook_record r;
    struct hook *next, *prev;
};

struct upload {
    struct upload_stored r;
    struct upload *next;
};

struct reservation {
    struct reservation_record r;
    struct project *project;
    struct reservation *next, *prev;
};

/* An attempt that goes on without all of its members. */
struct gang {
    struct gang_record r;
    struct gang *next, *prev;
};

struct change {
    struct change_record r;
    struct project *project; /* NULL: of the settings */
    struct change *next, *prev;
};

struct state {
    struct pool pool;
    uint64_t sequence; /* of the last event applied */
    struct mono now;   /* its time: ledger time never goes back */
    struct wall wall;
    uint64_t epoch;
    uint8_t id_key[16];
    struct settings_record settings;
    int64_t next_tenant_number;
    struct request_mix mix; /* what was submitted */

    VEC(struct class_object *) classes; /* index == class number; removed ones stay */
    VEC(struct pool_object *) pools;    /* in order of creation */
    VEC(struct profile_object *) profiles;

    struct project *first_tenant, *last_tenant;
    struct node *first_node, *last_node;
    struct workload *first_workload, *last_workload;
    struct token *first_token, *last_token;
    struct volume *first_volume, *last_volume;
    struct image *first_image, *last_image;
    struct credential *first_credential, *last_credential;
    struct hook *first_hook, *last_hook;
    struct upload *first_upload;
    struct reservation *first_reservation, *last_reservation;
    struct gang *first_gang, *last_gang;       /* in the order in which they got gaps */
    struct change *first_change, *last_change; /* in order of creation */
    size_t project_count, node_count, workload_count, ended_count, allocation_count;

    struct id_map projects; /* tenants too */
    struct str_map project_paths;
    struct id_map nodes;
    struct str_map node_names;
    struct id_map workloads;
    struct id_map arrays; /* id -> first element */
    struct id_map allocations;
    struct id_map tokens;
    struct id_map volumes;
    struct id_map images;
    struct id_map credentials;
    struct id_map hooks;
    struct id_map reservations;
    struct id_map gangs; /* by workload */
    struct id_map changes;
};

/* An empty state, before any event. Freeing it frees everything that was found in it. */
struct state *state_new(void);
void state_free(struct state *state); /* NULL is a no-op */
DEFINE_CLEANUP(state, struct state *, state_free)

/*
 * Applies one event; events come in order of sequence without gaps. Copies what it keeps, and frees
 * what it replaces: what an event borrows from the state itself is gone afterwards.
 *
 * Sequences, versions and times in the state are stamped from the event (created_sequence,
 * submitted, state_since, started, ended, granted, gone, ...): what a record says about them counts
 * in snapshots only. The same holds for usage, generation and the live counters.
 * It asserts what decide() guarantees: objects exist, steps are legal (transition.h).
 */
void evolve(struct state *state, const struct event *event);

/*
 * Snapshot: the state as the shortest history that gives it back. Calls `emit` with after-image
 * events in an order evolve_restored() accepts; sequence and times of the whole state go first.
 */
struct state_header {
    uint64_t sequence;
    struct mono now;
    struct wall wall;
    uint64_t epoch;
    uint8_t id_key[16];
    int64_t next_tenant_number;
    struct mix_list mix_seen, mix_dealt; /* borrowed from the state; see mix.h */
    uint64_t mix_arrivals, mix_dealt_at;
};
/* The events are borrowed until `emit` returns. */
void state_walk(const struct state *state, void (*emit)(void *arg, const struct event *event),
                void *arg);
/* What no after-image says: see above. */
struct state_header state_header(const struct state *state);
/* The two halves of loading: header once, then every event that state_walk() gave. */
void state_restore_header(struct state *state, const struct state_header *header);
void evolve_restored(struct state *state, const struct event *event);

/* Recomputes every count and link of the state from its objects; false with text on the first that
 * differs. For the self-check and for tests. */
bool state_check(const struct state *state, struct error *e);

/* Look-ups: what is found is the state's, until the next event. NULL: absent. */
struct project *state_project(const struct state *state, struct id id);
struct project *state_project_by_path(const struct state *state, struct str path);
struct workload *state_workload(const struct state *state, struct id id);
struct workload *state_array(const struct state *state, struct id array); /* first element */
struct allocation *state_allocation(const struct state *state, struct id id);
struct node *state_node(const struct state *state, struct id id);
struct node *state_node_by_name(const struct state *state, struct str name);
struct class_object *state_class(const struct state *state, int64_t number);
struct class_object *state_class_by_name(const struct state *state, struct str name);
struct pool_object *state_pool(const struct state *state, struct id id);
struct pool_object *state_pool_by_name(const struct state *state, struct str name);
struct profile_object *state_profile_by_name(const struct state *state, struct str name);
/* May work of that project be given this shape? */
bool profile_is_for(const struct profile_record *profile, const struct project *project);
struct token *state_token(const struct state *state, struct id id);
struct volume *state_volume(const struct state *state, struct id id);
struct volume *state_volume_by_name(const struct state *state, struct id tenant, struct str name);
/* The tenant's own image of that name, else the operator's. */
struct image *state_image_by_name(const struct state *state, struct id tenant, struct str name);
struct credential *state_credential(const struct state *state, struct id id);
/* The tenant's own login at that registry. */
const struct credential *state_credential_at(const struct state *state, struct id tenant,
                                             struct str registry);

struct hook *state_hook(const struct state *state, struct id id);
struct hook *state_hook_by_name(const struct state *state, struct id tenant, struct str name);

/* What is missing of the workload's attempt; NULL: nothing. */
struct gang *state_gang(const struct state *state, struct id workload);
bool gang_lacks(const struct gang_record *r, int64_t rank);

struct reservation *state_reservation(const struct state *state, struct id id);
/* The tenant's: the one of that name that has not ended, else the last that had it. */
struct reservation *state_reservation_by_name(const struct state *state, struct id tenant,
                                              struct str name);
/* Its rule; the zone's was checked when it was made. */
struct calendar reservation_calendar(const struct reservation_record *r);
struct window reservation_window(const struct reservation_record *r);

struct change *state_change(const struct state *state, struct id id);
/* The one of that name that has not ended, else the last that had it. */
struct change *state_change_by_name(const struct state *state, struct str name);
/* Its rule; of one for good it says nothing. */
struct calendar change_calendar(const struct change_record *r);

/* Of a capacity that has been there all the time, decayed alike, how much the project used: in
 * thousandths of thousandths, 1,000,000 is all of it. As of that time. */
int64_t project_past_ppm(const struct state *state, const struct project *project,
                         int64_t class_number, struct mono at);
/* What work of that user in the project itself used lately; NULL: nothing. */
const struct user_past *project_user_past(const struct project *project, struct str user);
/* Quota fields of a project for a class; defaults (0, all, none, 100) where none are set. */
struct quota project_quota(const struct project *project, int64_t class_number);
/* Each from the nearest of itself and its ancestors that sets it; 0: none does. */
struct log_limits {
    int64_t quota_mib;
    int64_t days;
};
struct log_limits project_log_limits(const struct project *project);
/* Is it `ancestor` itself, or somewhere below it? */
bool project_is_within(const struct project *project, const struct project *ancestor);
/* No hold, in contact: new work may be placed. */
bool node_is_usable(const struct node *node);
/* Healthy, and without a hold of its own. */
bool device_is_usable(const struct device_record *device);

/* Next in pre-order over the trees of all tenants, parents before children; NULL after the last. */
struct project *project_next(const struct project *project);

/* First uid of the tenant's own range of 65,536; tenant numbers end where uids of others begin. */
enum { LEAD_DEFAULT_S = 300 };
enum { UID_RANGE = 65536, TENANT_NUMBERS_MAX = 28664 };
uint32_t tenant_uid_base(const struct project *tenant);

#endif
