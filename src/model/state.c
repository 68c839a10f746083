#include "model/state.h"

#include <assert.h>

static const struct settings_record default_settings = {
    .grace_s = 60,
    .kill_confirm_s = 30,
    .min_runtime_s = 600,
    .min_runtime_in_quota_s = 0,
    .start_timeout_s = 300,
    .lost_after_s = 120,
    .unknown_after_s = 15,
    .gang_repair_s = 60,
    .device_reserve_mib = 0,
    .backoff_base_s = 60,
    .backoff_max_s = 3600,
    .ended_keep_s = 3600,
    .ended_keep_count = 10000,
    .default_time_limit_s = 0,
    .starvation_after_s = STARVATION_AFTER_S,
    .reclaim_to = RECLAIM_TO_QUOTA,
    .placement = PLACE_ADAPTIVE,
    .lead_s = LEAD_DEFAULT_S,
    .history_half_life_s = HISTORY_HALF_LIFE_S,
    .consolidate_max_moves = CONSOLIDATE_MAX_MOVES,
};

struct state *state_new(void)
{
    struct state *state = mem_new(1, sizeof(*state));
    state->settings = default_settings;
    return state;
}

void state_free(struct state *state)
{
    if (state == NULL)
        return;
    vec_done(&state->classes);
    vec_done(&state->pools);
    vec_done(&state->profiles);
    id_map_done(&state->projects);
    str_map_done(&state->project_paths);
    id_map_done(&state->nodes);
    str_map_done(&state->node_names);
    id_map_done(&state->workloads);
    id_map_done(&state->arrays);
    id_map_done(&state->allocations);
    id_map_done(&state->tokens);
    id_map_done(&state->volumes);
    id_map_done(&state->images);
    id_map_done(&state->credentials);
    id_map_done(&state->hooks);
    mix_done(&state->mix);
    id_map_done(&state->reservations);
    id_map_done(&state->gangs);
    id_map_done(&state->changes);
    pool_done(&state->pool);
    mem_free(state);
}

struct project *state_project(const struct state *state, struct id id)
{
    return id_map_get(&state->projects, id);
}

struct project *state_project_by_path(const struct state *state, struct str path)
{
    return str_map_get(&state->project_paths, path);
}

struct workload *state_workload(const struct state *state, struct id id)
{
    return id_map_get(&state->workloads, id);
}

struct workload *state_array(const struct state *state, struct id array)
{
    return id_map_get(&state->arrays, array);
}

struct allocation *state_allocation(const struct state *state, struct id id)
{
    return id_map_get(&state->allocations, id);
}

struct node *state_node(const struct state *state, struct id id)
{
    return id_map_get(&state->nodes, id);
}

struct node *state_node_by_name(const struct state *state, struct str name)
{
    return str_map_get(&state->node_names, name);
}

struct class_object *state_class(const struct state *state, int64_t number)
{
    if (number < 0 || (size_t)number >= state->classes.count)
        return NULL;
    return state->classes.items[number];
}

struct class_object *state_class_by_name(const struct state *state, struct str name)
{
    for (size_t i = 0; i < state->classes.count; i++) {
        struct class_object *class = state->classes.items[i];
        if (!class->is_removed && str_eq(class->r.name, name))
            return class;
    }
    return NULL;
}

struct pool_object *state_pool(const struct state *state, struct id id)
{
    for (size_t i = 0; i < state->pools.count; i++) {
        if (id_eq(state->pools.items[i]->r.id, id))
            return state->pools.items[i];
    }
    return NULL;
}

struct pool_object *state_pool_by_name(const struct state *state, struct str name)
{
    for (size_t i = 0; i < state->pools.count; i++) {
        if (str_eq(state->pools.items[i]->r.name, name))
            return state->pools.items[i];
    }
    return NULL;
}

struct profile_object *state_profile_by_name(const struct state *state, struct str name)
{
    for (size_t i = 0; i < state->profiles.count; i++) {
        if (str_eq(state->profiles.items[i]->r.name, name))
            return state->profiles.items[i];
    }
    return NULL;
}

struct token *state_token(const struct state *state, struct id id)
{
    return id_map_get(&state->tokens, id);
}

struct volume *state_volume(const struct state *state, struct id id)
{
    return id_map_get(&state->volumes, id);
}

struct volume *state_volume_by_name(const struct state *state, struct id tenant, struct str name)
{
    for (struct volume *volume = state->first_volume; volume != NULL; volume = volume->next) {
        if (id_eq(volume->r.tenant, tenant) && str_eq(volume->r.name, name))
            return volume;
    }
    return NULL;
}

struct image *state_image_by_name(const struct state *state, struct id tenant, struct str name)
{
    struct image *of_operator = NULL;
    for (struct image *image = state->first_image; image != NULL; image = image->next) {
        if (!str_eq(image->r.name, name))
            continue;
        if (id_eq(image->r.tenant, tenant))
            return image;
        if (id_is_none(image->r.tenant))
            of_operator = image;
    }
    return of_operator;
}

struct credential *state_credential(const struct state *state, struct id id)
{
    return id_map_get(&state->credentials, id);
}

struct hook *state_hook(const struct state *state, struct id id)
{
    return id_map_get(&state->hooks, id);
}

struct hook *state_hook_by_name(const struct state *state, struct id tenant, struct str name)
{
    struct hook *found = state->first_hook;
    while (found != NULL && !(id_eq(found->r.tenant, tenant) && str_eq(found->r.name, name)))
        found = found->next;
    return found;
}

const struct credential *state_credential_at(const struct state *state, struct id tenant,
                                             struct str registry)
{
    const struct credential *found = state->first_credential;
    while (found != NULL &&
           !(id_eq(found->r.tenant, tenant) && str_eq(found->r.registry, registry)))
        found = found->next;
    return found;
}

struct quota project_quota(const struct project *project, int64_t class_number)
{
    for (size_t i = 0; i < project->r.quotas.count; i++) {
        if (project->r.quotas.items[i].class_number == class_number)
            return project->r.quotas.items[i];
    }
    return (struct quota){
        .class_number = class_number,
        .quota_milli = 0,
        .lend_limit_milli = UNBOUNDED,
        .limit_milli = UNBOUNDED,
        .over_quota_weight = 100,
    };
}

struct log_limits project_log_limits(const struct project *project)
{
    struct log_limits limits = { 0 };
    for (const struct project *p = project; p != NULL; p = p->parent) {
        if (limits.quota_mib == 0)
            limits.quota_mib = p->r.log_quota_mib;
        if (limits.days == 0)
            limits.days = p->r.log_days;
    }
    return limits;
}

bool project_is_within(const struct project *project, const struct project *ancestor)
{
    while (project != NULL && project != ancestor)
        project = project->parent;
    return project != NULL;
}

struct project *project_next(const struct project *project)
{
    if (project->first_child != NULL)
        return project->first_child;
    while (project != NULL && project->next_sibling == NULL)
        project = project->parent;
    return project != NULL ? project->next_sibling : NULL;
}

bool node_is_usable(const struct node *node)
{
    /* The version comes with the inventory, and is forgotten when what it said may not
     * hold any more. */
    return node->r.contact == CONTACT_OK && node->r.holds.count == 0 &&
           node->r.agent_version.size > 0;
}

bool device_is_usable(const struct device_record *device)
{
    return device->health == DEVICE_OK && !device->is_held;
}

/* systemd sets 524288..1879048191 aside for ranges of containers; ours lie in there. */
#define UID_FIRST UINT32_C(524288)
#define UID_END   UINT32_C(1879048192)

static_assert(UID_FIRST + (uint64_t)TENANT_NUMBERS_MAX * UID_RANGE == UID_END,
              "the ranges of all tenants fill what is set aside");

uint32_t tenant_uid_base(const struct project *tenant)
{
    assert(tenant->parent == NULL);
    assert(tenant->r.number >= 0 && tenant->r.number < TENANT_NUMBERS_MAX);
    return UID_FIRST + (uint32_t)tenant->r.number * UID_RANGE;
}
