/*
 * The self-check: every count and link of the state, made again from the objects themselves.
 *
 * Each list is walked once; an object counts when its back link, its place in the map and what it
 * hangs on agree. Equal totals of lists and maps then say that nothing is in one but not the other.
 */
#include "model/state.h"

#define FACT(e, ok, ...)                                                                           \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            (void)err_set(e, ERR_CORRUPT, __VA_ARGS__);                                            \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool check_catalog(const struct state *state, struct error *e)
{
    for (size_t i = 0; i < state->classes.count; i++)
        FACT(e, state->classes.items[i]->r.number == (int64_t)i, "class %zu has the number %lld", i,
             (long long)state->classes.items[i]->r.number);
    for (size_t i = 0; i < state->pools.count; i++) {
        const struct pool_object *pool = state->pools.items[i];
        size_t nodes = 0;
        for (const struct node *node = state->first_node; node != NULL; node = node->next)
            nodes += node->pool == pool;
        FACT(e, pool->node_count == nodes, "pool %.*s counts %zu nodes and has %zu",
             STR_ARG(pool->r.name), pool->node_count, nodes);
    }
    return true;
}

struct tenant_counts {
    size_t tokens, volumes, images;
};

static struct tenant_counts count_belongings(const struct state *state, struct id tenant)
{
    struct tenant_counts counts = { 0 };
    for (const struct token *token = state->first_token; token != NULL; token = token->next)
        counts.tokens += id_eq(token->r.tenant, tenant);
    for (const struct volume *volume = state->first_volume; volume != NULL; volume = volume->next)
        counts.volumes += id_eq(volume->r.tenant, tenant);
    for (const struct image *image = state->first_image; image != NULL; image = image->next)
        counts.images += id_eq(image->r.tenant, tenant);
    return counts;
}

static bool check_project_lists(const struct project *project, struct error *e)
{
    bool ok = true;
    for (size_t i = 1; i < project->r.quotas.count; i++)
        ok = ok &&
             project->r.quotas.items[i - 1].class_number < project->r.quotas.items[i].class_number;
    FACT(e, ok, "quotas of %.*s are out of order", STR_ARG(project->r.path));
    for (size_t i = 1; i < project->r.usage.count; i++)
        ok = ok &&
             project->r.usage.items[i - 1].class_number < project->r.usage.items[i].class_number;
    FACT(e, ok, "usage rows of %.*s are out of order", STR_ARG(project->r.path));
    return true;
}

static bool check_project(const struct state *state, const struct project *project, struct error *e)
{
    const struct project *parent = project->parent;
    struct str path = project->r.path;
    struct id parent_id = parent != NULL ? parent->r.id : (struct id){ 0 };
    FACT(e, id_eq(project->r.parent, parent_id), "project %.*s hangs on the wrong parent",
         STR_ARG(path));
    FACT(e, project->tenant == (parent != NULL ? parent->tenant : project),
         "project %.*s belongs to the wrong tenant", STR_ARG(path));
    FACT(e, parent != NULL || project->r.number < state->next_tenant_number,
         "the number of tenant %.*s would be used again", STR_ARG(path));
    FACT(e, state_project(state, project->r.id) == project, "project %.*s is not found by id",
         STR_ARG(path));
    FACT(e, state_project_by_path(state, path) == project, "project %.*s is not found by path",
         STR_ARG(path));

    const struct project *before = project->prev_sibling;
    const struct project *first = parent != NULL ? parent->first_child : state->first_tenant;
    const struct project *last = parent != NULL ? parent->last_child : state->last_tenant;
    FACT(e, before != NULL ? before->next_sibling == project : first == project,
         "project %.*s is not linked from the one before it", STR_ARG(path));
    FACT(e, project->next_sibling != NULL || last == project,
         "project %.*s ends its list, but is not its last", STR_ARG(path));

    struct tenant_counts counts = { 0 }; /* only tenants own anything */
    if (parent == NULL)
        counts = count_belongings(state, project->r.id);
    FACT(e, project->token_count == counts.tokens, "%.*s counts %zu tokens and has %zu",
         STR_ARG(path), project->token_count, counts.tokens);
    FACT(e, project->volume_count == counts.volumes, "%.*s counts %zu volumes and has %zu",
         STR_ARG(path), project->volume_count, counts.volumes);
    FACT(e, project->image_count == counts.images, "%.*s counts %zu images and has %zu",
         STR_ARG(path), project->image_count, counts.images);
    return check_project_lists(project, e);
}

static bool check_projects(const struct state *state, struct error *e)
{
    size_t count = 0;
    for (const struct project *p = state->first_tenant; p != NULL; p = project_next(p)) {
        count++;
        if (!check_project(state, p, e))
            return false;
    }
    FACT(e, state->project_count == count, "%zu projects are counted and %zu are there",
         state->project_count, count);
    FACT(e, state->projects.count == count && state->project_paths.count == count,
         "the maps of projects have %zu and %zu entries for %zu projects", state->projects.count,
         state->project_paths.count, count);
    return true;
}

/* One walk over a list whose objects have r.id, next and prev, against its map of ids. */
#define DEFINE_LIST_CHECK(kind, map)                                                               \
    static bool check_##kind##_list(const struct state *state, struct error *e)                    \
    {                                                                                              \
        size_t count = 0;                                                                          \
        const struct kind *before = NULL;                                                          \
        for (const struct kind *at = state->first_##kind; at != NULL; at = at->next) {             \
            FACT(e, at->prev == before, #kind " %zu has a wrong link back", count);                \
            FACT(e, id_map_get(&state->map, at->r.id) == at, #kind " %zu is not found by its id",  \
                 count);                                                                           \
            before = at;                                                                           \
            count++;                                                                               \
        }                                                                                          \
        FACT(e, state->last_##kind == before, "the last " #kind " is not the end of its list");    \
        FACT(e, state->map.count == count, "the map of " #map " has %zu entries for %zu",          \
             state->map.count, count);                                                             \
        return true;                                                                               \
    }
DEFINE_LIST_CHECK(token, tokens)
DEFINE_LIST_CHECK(volume, volumes)
DEFINE_LIST_CHECK(image, images)
DEFINE_LIST_CHECK(credential, credentials)
DEFINE_LIST_CHECK(hook, hooks)
DEFINE_LIST_CHECK(reservation, reservations)
DEFINE_LIST_CHECK(change, changes)
DEFINE_LIST_CHECK(node, nodes)
DEFINE_LIST_CHECK(workload, workloads)

static bool check_reservations(const struct state *state, struct error *e)
{
    for (const struct reservation *r = state->first_reservation; r != NULL; r = r->next)
        FACT(e, r->project == state_project(state, r->r.project),
             "reservation %.*s is of the wrong project", STR_ARG(r->r.name));
    return true;
}

static bool check_gang(const struct state *state, const struct gang *gang, struct error *e)
{
    const struct workload *workload = state_workload(state, gang->r.workload);
    FACT(e, state_gang(state, gang->r.workload) == gang, "a gang is not found by its workload");
    FACT(e,
         workload != NULL && (workload->r.state == WL_STARTING || workload->r.state == WL_RUNNING),
         "members are missing of work that does not run");
    for (size_t i = 0; i < gang->r.missing.count; i++) {
        int64_t after = i > 0 ? gang->r.missing.items[i - 1].rank : -1;
        int64_t rank = gang->r.missing.items[i].rank;
        FACT(e, rank > after && rank < workload->r.members,
             "missing members of workload %.*s are out of order", STR_ARG(workload->r.name));
    }
    return true;
}

static bool check_gangs(const struct state *state, struct error *e)
{
    const struct gang *before = NULL;
    size_t count = 0;
    for (const struct gang *gang = state->first_gang; gang != NULL; gang = gang->next) {
        FACT(e, gang->prev == before, "gang %zu has a wrong link back", count);
        if (!check_gang(state, gang, e))
            return false;
        before = gang;
        count++;
    }
    FACT(e, state->last_gang == before, "the last gang is not the end of its list");
    FACT(e, state->gangs.count == count, "the map of gangs has %zu entries for %zu",
         state->gangs.count, count);
    return true;
}

static bool check_changes(const struct state *state, struct error *e)
{
    for (const struct change *c = state->first_change; c != NULL; c = c->next)
        FACT(e,
             id_is_none(c->r.project) ? c->project == NULL
                                      : c->project == state_project(state, c->r.project),
             "change %.*s is of the wrong project", STR_ARG(c->r.name));
    return true;
}

static bool check_belongings(const struct state *state, struct error *e)
{
    return check_token_list(state, e) && check_volume_list(state, e) &&
           check_image_list(state, e) && check_credential_list(state, e) &&
           check_hook_list(state, e) && check_reservation_list(state, e) &&
           check_reservations(state, e) && check_change_list(state, e) && check_changes(state, e);
}

static bool check_node(const struct state *state, const struct node *node, size_t *held,
                       struct error *e)
{
    struct str name = node->r.name;
    FACT(e, state_node_by_name(state, name) == node, "node %.*s is not found by name",
         STR_ARG(name));
    FACT(e, state_pool(state, node->r.pool) == node->pool, "node %.*s is in the wrong pool",
         STR_ARG(name));
    const struct allocation *before = NULL;
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        FACT(e, a->prev_on_node == before, "an allocation on %.*s has a wrong link back",
             STR_ARG(name));
        FACT(e, before == NULL || before->r.created_sequence < a->r.created_sequence,
             "allocations on %.*s are not in order of granting", STR_ARG(name));
        FACT(e, a->node == node && id_eq(a->r.node, node->r.id),
             "an allocation in the list of %.*s is of another node", STR_ARG(name));
        before = a;
        ++*held;
    }
    FACT(e, node->last_allocation == before,
         "the last allocation on %.*s is not the end of its list", STR_ARG(name));
    return true;
}

static bool check_nodes(const struct state *state, struct error *e)
{
    size_t count = 0;
    size_t held = 0;
    if (!check_node_list(state, e))
        return false;
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        count++;
        if (!check_node(state, node, &held, e))
            return false;
    }
    FACT(e, state->node_count == count && state->node_names.count == count,
         "%zu nodes and %zu names are counted, and %zu nodes are there", state->node_count,
         state->node_names.count, count);
    FACT(e, state->allocation_count == held, "%zu allocations are counted and %zu are on nodes",
         state->allocation_count, held);
    return true;
}

static bool check_member_order(const struct allocation *a, const struct allocation *b)
{
    return a == NULL || a->r.attempt < b->r.attempt ||
           (a->r.attempt == b->r.attempt && a->r.rank <= b->r.rank);
}

static bool check_allocations(const struct state *state, const struct workload *workload,
                              size_t *held, struct error *e)
{
    const struct allocation *before = NULL;
    for (const struct allocation *a = workload->first_allocation; a != NULL;
         a = a->next_in_workload) {
        FACT(e, a->prev_in_workload == before, "an allocation has a wrong link back");
        FACT(e, check_member_order(before, a),
             "allocations of a workload are not in order of rank");
        FACT(e, a->workload == workload && id_eq(a->r.workload, workload->r.id),
             "an allocation is in the list of another workload");
        FACT(e, id_eq(a->r.project, workload->r.project), "an allocation is of another project");
        FACT(e, allocation_is_held(a->r.state), "an allocation that ended is still there");
        FACT(e, state_allocation(state, a->r.id) == a, "an allocation is not found by its id");
        before = a;
        ++*held;
    }
    FACT(e, workload->last_allocation == before,
         "the last allocation of a workload is not the end of its list");
    return true;
}

static bool check_workload(const struct state *state, const struct workload *workload,
                           struct error *e)
{
    const struct workload_record *r = &workload->r;
    const struct workload *next = workload->array_next;
    FACT(e, state_project(state, r->project) == workload->project,
         "workload %.*s is of the wrong project", STR_ARG(r->name));
    FACT(e, r->state > WL_NONE && r->state < WL_STATE_COUNT, "workload %.*s is in no state",
         STR_ARG(r->name));
    FACT(e, workload_state_is_final(r->state) || workload->ended_at.ns == 0,
         "workload %.*s ended without being final", STR_ARG(r->name));
    FACT(e, id_is_none(r->array) || state_array(state, r->array) != NULL,
         "the array of workload %.*s is not found", STR_ARG(r->name));
    FACT(e,
         next == NULL || (id_eq(next->r.array, r->array) && next->r.array_index > r->array_index),
         "the array of workload %.*s is out of order", STR_ARG(r->name));
    return true;
}

/* Elements reachable from their first ones, against workloads that name an array. */
static bool check_arrays(const struct state *state, struct error *e)
{
    size_t elements = 0;
    size_t heads = 0;
    size_t linked = 0;
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        elements += !id_is_none(w->r.array);
        linked += w->array_next != NULL;
        heads += !id_is_none(w->r.array) && state_array(state, w->r.array) == w;
    }
    FACT(e, state->arrays.count == heads, "the map of arrays has %zu entries for %zu arrays",
         state->arrays.count, heads);
    FACT(e, elements == heads + linked, "%zu elements of arrays are there and %zu are linked",
         elements, heads + linked);
    return true;
}

static bool check_live_counts(const struct state *state, struct error *e)
{
    size_t live = 0;
    for (const struct project *p = state->first_tenant; p != NULL; p = project_next(p))
        live += p->live_workloads;
    FACT(e, live + state->ended_count == state->workload_count,
         "projects count %zu live workloads, %zu have ended, and %zu are there", live,
         state->ended_count, state->workload_count);
    return true;
}

static bool check_workloads(const struct state *state, struct error *e)
{
    size_t count = 0;
    size_t ended = 0;
    size_t held = 0;
    if (!check_workload_list(state, e))
        return false;
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        count++;
        ended += workload_state_is_final(w->r.state);
        if (!check_workload(state, w, e) || !check_allocations(state, w, &held, e))
            return false;
    }
    FACT(e, state->workload_count == count, "%zu workloads are counted and %zu are there",
         state->workload_count, count);
    FACT(e, state->ended_count == ended, "%zu ended workloads are counted and %zu are there",
         state->ended_count, ended);
    FACT(e, state->allocation_count == held && state->allocations.count == held,
         "%zu allocations are counted and %zu are of workloads", state->allocation_count, held);
    return check_gangs(state, e) && check_arrays(state, e) && check_live_counts(state, e);
}

bool state_check(const struct state *state, struct error *e)
{
    return check_catalog(state, e) && check_projects(state, e) && check_belongings(state, e) &&
           check_nodes(state, e) && check_workloads(state, e);
}
