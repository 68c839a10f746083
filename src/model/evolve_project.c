/* Tenants and projects: the quota tree. */
#include <assert.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"

static void project_link(struct state *state, struct project *project)
{
    struct project *parent = project->parent;
    if (parent == NULL)
        LIST_APPEND(state->first_tenant, state->last_tenant, project, next_sibling, prev_sibling);
    else
        LIST_APPEND(parent->first_child, parent->last_child, project, next_sibling, prev_sibling);
    state->project_count++;
    id_map_put(&state->projects, project->r.id, project);
    str_map_put(&state->project_paths, project->r.path, project);
}

static void project_unlink(struct state *state, struct project *project)
{
    struct project *parent = project->parent;
    (void)id_map_remove(&state->projects, project->r.id);
    (void)str_map_remove(&state->project_paths, project->r.path);
    state->project_count--;
    if (parent == NULL)
        LIST_REMOVE(state->first_tenant, state->last_tenant, project, next_sibling, prev_sibling);
    else
        LIST_REMOVE(parent->first_child, parent->last_child, project, next_sibling, prev_sibling);
}

static void project_stamp(struct project *project, const struct event *event, enum history from)
{
    struct project_record *r = &project->r;
    if (from == RESTORED) {
        project->last_sequence = r->feed_sequence;
    } else {
        r->created_sequence = event->sequence;
        r->created = event->wall;
        r->version = event->sequence;
        r->usage = (struct usage_list){ 0 };
        r->past = (struct past_list){ 0 };
        r->users = (struct user_past_list){ 0 };
    }
    r->feed_sequence = 0; /* last_sequence is the one that counts */
}

static void project_add(struct state *state, const struct event *event, enum history from)
{
    const struct project_record *given = &event->project_set;
    struct project *parent = id_is_none(given->parent) ? NULL : state_project(state, given->parent);
    assert((parent == NULL) == id_is_none(given->parent));
    assert(state_project_by_path(state, given->path) == NULL);

    struct project *project = pool_new(&state->pool, sizeof(*project));
    project->r = *given;
    project_stamp(project, event, from);
    str_keep(&state->pool, &project->r.name);
    str_keep(&state->pool, &project->r.path);
    quotas_keep(&state->pool, &project->r.quotas);
    usage_keep(&state->pool, &project->r.usage);
    past_keep(&state->pool, &project->r.past);
    for (size_t i = 0; i < project->r.past.count; i++)
        project->r.past.items[i].decay.level = 0; /* the allocations follow */
    users_keep(&state->pool, &project->r.users);
    for (size_t i = 0; i < project->r.users.count; i++)
        project->r.users.items[i].devices.level = project->r.users.items[i].cores.level = 0;
    project->parent = parent;
    project->tenant = parent != NULL ? parent->tenant : project;
    project_link(state, project);
    if (parent == NULL && state->next_tenant_number <= given->number)
        state->next_tenant_number = given->number + 1;
}

/* Names and places in the tree are for ever: paths are in other people's scripts. */
static void project_update(struct state *state, struct project *project, const struct event *event)
{
    const struct project_record *given = &event->project_set;
    assert(str_eq(project->r.path, given->path));
    struct quota_list quotas = given->quotas;
    quotas_keep(&state->pool, &quotas);
    quotas_drop(&state->pool, &project->r.quotas);
    project->r.quotas = quotas;
    project->r.priority = given->priority;
    project->r.is_overcommitted = given->is_overcommitted;
    project->r.log_quota_mib = given->log_quota_mib;
    project->r.log_days = given->log_days;
    project->r.version = event->sequence;
}

void evolve_project_set(struct state *state, const struct event *event, enum history from)
{
    struct project *project = state_project(state, event->project_set.id);
    if (project == NULL)
        project_add(state, event, from);
    else
        project_update(state, project, event);
}

static void workloads_forget(struct state *state, const struct project *project)
{
    struct workload *next = NULL;
    for (struct workload *workload = state->first_workload; workload != NULL; workload = next) {
        next = workload->next;
        if (workload->project == project)
            workload_forget(state, workload);
    }
}

void evolve_project_removed(struct state *state, const struct event *event, enum history from)
{
    struct project *project = state_project(state, event->removed.id);
    (void)from;
    assert(project != NULL);
    assert(project->first_child == NULL);
    assert(project->live_workloads == 0);

    workloads_forget(state, project);
    reservations_drop(state, project->r.id);
    changes_drop(state, project->r.id);
    hooks_drop(state, project->r.id);
    if (project->parent == NULL)
        belongings_drop(state, project->r.id);
    project_unlink(state, project);
    str_drop(&state->pool, &project->r.name);
    str_drop(&state->pool, &project->r.path);
    quotas_drop(&state->pool, &project->r.quotas);
    usage_drop(&state->pool, &project->r.usage);
    past_drop(&state->pool, &project->r.past);
    users_drop(&state->pool, &project->r.users);
    pool_free(&state->pool, project, sizeof(*project));
}
