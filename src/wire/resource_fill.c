/* resource_fill.c - from the state to views: ids become names, monotonic times become durations. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model/mig.h"
#include "model/policy.h"
#include "wire/resource.h"

/* ---- names --------------------------------------------------------------------------------- */

static struct str name_of_class(const struct state *state, int64_t number)
{
    const struct class_object *class = state_class(state, number);

    return class != NULL ? class->r.name : (struct str){ 0 };
}

static struct str class_name_in_state(const void *arg, int64_t number)
{
    return name_of_class(arg, number);
}

static bool is_tenant_in_state(const void *arg, struct id id)
{
    const struct project *project = state_project(arg, id);

    return project != NULL && project->parent == NULL;
}

struct wire_names wire_names_of(const struct state *state)
{
    return (struct wire_names){ state, class_name_in_state, is_tenant_in_state, NULL };
}

struct names_copy {
    struct str *classes; /* by number */
    size_t class_count;
    struct id *tenants; /* sorted */
    size_t tenant_count;
};

static struct str class_name_in_copy(const void *arg, int64_t number)
{
    const struct names_copy *copy = arg;

    if (number < 0 || (size_t)number >= copy->class_count)
        return (struct str){ 0 };
    return copy->classes[number];
}

static int compare_ids(const void *a, const void *b)
{
    return id_cmp(*(const struct id *)a, *(const struct id *)b);
}

static bool is_tenant_in_copy(const void *arg, struct id id)
{
    const struct names_copy *copy = arg;

    return copy->tenant_count > 0 &&
           bsearch(&id, copy->tenants, copy->tenant_count, sizeof(id), compare_ids) != NULL;
}

struct wire_names wire_names_copy(const struct state *state, struct arena *arena)
{
    struct names_copy *copy = arena_new(arena, 1, sizeof(*copy));
    size_t tenants = 0;

    copy->class_count = state->classes.count;
    copy->classes = arena_new(arena, copy->class_count, sizeof(*copy->classes));
    for (size_t i = 0; i < copy->class_count; i++)
        copy->classes[i] = str_copy(arena, state->classes.items[i]->r.name);
    for (const struct project *p = state->first_tenant; p != NULL; p = p->next_sibling)
        tenants++;
    copy->tenants = arena_new(arena, tenants, sizeof(*copy->tenants));
    for (const struct project *p = state->first_tenant; p != NULL; p = p->next_sibling)
        copy->tenants[copy->tenant_count++] = p->r.id;
    if (tenants > 0)
        qsort(copy->tenants, tenants, sizeof(*copy->tenants), compare_ids);
    return (struct wire_names){ copy, class_name_in_copy, is_tenant_in_copy, NULL };
}

char *project_id_text(const struct project *project, char text[ID_TEXT_MAX])
{
    return id_text(project->parent == NULL ? ID_TENANT : ID_PROJECT, project->r.id, text);
}

/* Names of the tenant and node behind an id; empty when there is none. */
static struct str path_of(const struct state *state, struct id project)
{
    const struct project *found = id_is_none(project) ? NULL : state_project(state, project);

    return found != NULL ? found->r.path : (struct str){ 0 };
}

static struct str name_of_node(const struct state *state, struct id id)
{
    const struct node *node = id_is_none(id) ? NULL : state_node(state, id);

    return node != NULL ? node->r.name : (struct str){ 0 };
}

/* Whole seconds from one moment to another; 0 when it is not after. */
static int64_t seconds_between(struct mono from, struct mono to)
{
    return mono_before(from, to) ? (to.ns - from.ns) / NS_PER_S : 0;
}

/* ---- projects ------------------------------------------------------------------------------ */

static bool quota_is_worth_a_row(const struct quota_view *view)
{
    return view->quota_milli != 0 || view->limit_milli != UNBOUNDED || view->allocated_milli != 0 ||
           view->pending_milli != 0 || view->over_quota_weight != 100 ||
           view->lend_limit_milli != UNBOUNDED;
}

static struct quota_view quota_view_of(const struct project *project, struct str class_name,
                                       int64_t number, const struct class_numbers *use)
{
    struct quota quota = project_quota(project, number);

    return (struct quota_view){
        .class_name = class_name,
        .quota_milli = quota.quota_milli,
        .lend_limit_milli = quota.lend_limit_milli,
        .limit_milli = quota.limit_milli,
        .over_quota_weight = quota.over_quota_weight,
        .allocated_milli = use->allocated_milli,
        .borrowed_milli = use->borrowed_milli,
        .pending_milli = use->pending_milli,
        .is_over_limit = quota.limit_milli != UNBOUNDED && use->allocated_milli > quota.limit_milli,
    };
}

void project_view_fill(struct project_view *view, const struct state *state,
                       const struct project *project, class_numbers_fn *numbers, const void *arg,
                       struct arena *arena)
{
    *view = (struct project_view){
        .id = project->r.id,
        .parent = project->r.parent,
        .path = project->r.path,
        .name = project->r.name,
        .tenant = project->tenant->r.path,
        .priority = project->r.priority,
        .is_overcommitted = project->r.is_overcommitted,
        .log_quota_mib = project->r.log_quota_mib,
        .log_days = project->r.log_days,
        .live_workloads = (int64_t)project->live_workloads,
        .created = project->r.created,
        .version = project->r.version,
    };
    view->quotas.items = arena_new(arena, state->classes.count, sizeof(*view->quotas.items));
    for (size_t i = 0; i < state->classes.count; i++) {
        const struct class_object *class = state->classes.items[i];
        struct class_numbers use = { 0 };
        if (numbers != NULL)
            use = numbers(arg, project, class->r.number);
        struct quota_view row = quota_view_of(project, class->r.name, class->r.number, &use);
        if (!class->is_removed && quota_is_worth_a_row(&row))
            view->quotas.items[view->quotas.count++] = row;
    }
}

/* ---- hardware ------------------------------------------------------------------------------ */

void class_view_fill(struct class_view *view, const struct state *state,
                     const struct class_object *class_object)
{
    const struct class_record *r = &class_object->r;

    *view = (struct class_view){
        .id = r->id,
        .name = r->name,
        .vendor = r->vendor,
        .kind = r->kind,
        .memory_mib = r->memory_mib,
        .slicing = r->slicing,
        .mig = mig_table_name_of(r),
        .price_micros_per_hour = r->price_micros_per_hour,
        .version = r->version,
    };
    for (const struct project *p = state->first_tenant; p != NULL; p = p->next_sibling)
        view->quota_milli += project_quota(p, r->number).quota_milli;
}

void pool_view_fill(struct pool_view *view, const struct state *state,
                    const struct pool_object *pool)
{
    *view = (struct pool_view){
        .id = pool->r.id,
        .name = pool->r.name,
        .class_name = name_of_class(state, pool->r.class_number),
        .site = pool->r.site,
        .node_count = (int64_t)pool->node_count,
        .version = pool->r.version,
    };
}

static struct str number_text(struct arena *arena, int64_t number)
{
    return str_of(arena_format(arena, "%lld", (long long)number));
}

static void request_view_fill(struct request_view *view, const struct request *request,
                              const struct wire_names *names, struct arena *arena)
{
    *view = (struct request_view){
        .gpu_milli = request->gpu_milli,
        .gpu_memory_mib = request->gpu_memory_mib,
        .devices = request->devices,
        .share_milli = request->share_milli,
        .cpu_milli = request->cpu_milli,
        .memory_mib = request->memory_mib,
        .mig_profile = request->mig_profile,
        .required = request->required,
        .preferred = request->preferred,
        .classes = { arena_new(arena, request->class_count, sizeof(struct str)),
                     request->class_count },
    };
    for (size_t i = 0; i < request->class_count; i++) {
        struct str name = names->class_name(names->arg, request->class_numbers[i]);
        view->classes.items[i] =
            name.size > 0 ? name : number_text(arena, request->class_numbers[i]);
    }
}

void profile_view_fill(struct profile_view *view, const struct state *state,
                       const struct profile_object *profile, struct arena *arena)
{
    const struct wire_names names = wire_names_of(state);

    *view = (struct profile_view){
        .id = profile->r.id,
        .name = profile->r.name,
        .description = profile->r.description,
        .pools = profile->r.pools,
        .projects = profile->r.projects,
        .topology = { profile->r.request.required, profile->r.request.preferred },
        .version = profile->r.version,
    };
    request_view_fill(&view->request, &profile->r.request, &names, arena);
}

void device_view_fill(struct device_view *view, const struct state *state, const struct node *node,
                      const struct device_record *device)
{
    *view = (struct device_view){
        .node = node->r.name,
        .index = device->index,
        .class_name = name_of_class(state, device->class_number),
        .uuid = device->uuid,
        .model = device->model,
        .memory_mib = device->memory_mib,
        .numa_node = device->numa_node,
        .health = device->health,
        .health_reason = device->health_reason,
        .is_simulated = device->is_simulated,
        .is_held = device->is_held,
        .is_usable = device_is_usable(device),
        .hold_reason = device->hold_reason,
    };
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
        for (size_t i = 0; i < a->r.shares.count; i++)
            if (a->r.shares.items[i].device == device->index)
                view->allocated_milli += a->r.shares.items[i].milli;
}

void node_view_fill(struct node_view *view, const struct state *state, const struct node *node,
                    struct mono now, struct arena *arena)
{
    size_t devices = node->r.devices.count;

    *view = (struct node_view){
        .id = node->r.id,
        .name = node->r.name,
        .pool = node->pool != NULL ? node->pool->r.name : (struct str){ 0 },
        .contact = node->r.contact,
        .contact_since = node->r.contact_since,
        .is_usable = node_is_usable(node),
        .holds = node->r.holds,
        .boot_id = node->r.boot_id,
        .agent_version = node->r.agent_version,
        .kernel = node->r.kernel,
        .driver = node->r.driver,
        .runtime = node->r.runtime,
        .problems = node->r.problems,
        .rack = node->r.rack,
        .block = node->r.block,
        .cpu_milli = node->r.cpu_milli,
        .memory_mib = node->r.memory_mib,
        .drain_remaining_s =
            node->r.drain_deadline.ns == 0 ? UNSET : seconds_between(now, node->r.drain_deadline),
        .clock_skew_ms = UNSET,
        .devices = { arena_new(arena, devices, sizeof(struct device_view)), devices },
        .generation = node->r.generation,
        .version = node->r.version,
    };
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        view->cpu_used_milli += a->r.cpu_milli;
        view->memory_used_mib += a->r.memory_mib;
        view->allocation_count++;
    }
    for (size_t i = 0; i < devices; i++) {
        device_view_fill(&view->devices.items[i], state, node, &node->r.devices.items[i]);
        view->devices.items[i].node = (struct str){ 0 };
    }
}

/* ---- workloads ----------------------------------------------------------------------------- */

void workload_view_of_record(struct workload_view *view, const struct workload_record *record,
                             const struct wire_names *names, struct arena *arena)
{
    *view = (struct workload_view){
        .id = record->id,
        .array = record->array,
        .array_index = id_is_none(record->array) ? UNSET : record->array_index,
        .name = record->name,
        .user = record->user,
        .kind = record->kind,
        .state = record->state,
        .cause = record->cause,
        .detail = record->detail,
        .after_stop = record->after_stop,
        .attempt = record->attempt,
        .failures = record->failures,
        .evictions = record->evictions,
        .node_losses = record->node_losses,
        .members = record->members,
        .members_min = record->members_min,
        .priority = record->priority,
        .preemptible = record->preemptible,
        .restart = record->restart,
        .on_contact_loss = record->on_contact_loss,
        .time_limit_s = record->time_limit_s,
        .grace_s = record->grace_s,
        .retries = record->retries,
        .fence_after_s = record->fence_after_s,
        .reservation = id_is_none(record->reservation)
                           ? (struct str){ 0 }
                           : str_of(id_text(ID_RESERVATION, record->reservation,
                                            arena_new(arena, ID_TEXT_MAX, 1))),
        .is_on_demand = record->is_on_demand,
        .image = record->image,
        .upload = record->upload,
        .submitted = record->submitted,
        .started = record->started,
        .ended = record->ended,
        .queued_s = UNSET,
        .running_s = UNSET,
        .exit = record->exit,
        .spec = record->spec_json,
        .version = record->version,
    };
    request_view_fill(&view->request, &record->request, names, arena);
    size_t count = record->depends_on.count;
    view->depends_on.items = arena_new(arena, count, sizeof(*view->depends_on.items));
    view->depends_on.count = count;
    for (size_t i = 0; i < count; i++)
        view->depends_on.items[i] = (struct dependency_view){ record->depends_on.items[i].workload,
                                                              record->depends_on.items[i].when };
}

/* A node that was removed has no name any more. */
static struct str name_or_id(const struct state *state, struct id node, struct arena *arena)
{
    char text[ID_TEXT_MAX];
    struct str name = name_of_node(state, node);

    return name.size > 0 ? name : str_copy(arena, str_of(id_text(ID_NODE, node, text)));
}

/* Names of the nodes of the present attempt, by rank; of ended work, of its last. */
static struct str_list nodes_of(const struct state *state, const struct workload *workload,
                                struct arena *arena)
{
    const struct workload_record *r = &workload->r;
    struct str_list nodes = { 0 };
    bool has_ended = workload_state_is_final(r->state);

    nodes.items = arena_new(arena, (size_t)r->members, sizeof(*nodes.items));
    for (size_t i = 0; has_ended && i < MIN_OF(r->nodes.count, (size_t)r->members); i++)
        if (!id_is_none(r->nodes.items[i]))
            nodes.items[nodes.count++] = name_or_id(state, r->nodes.items[i], arena);
    for (const struct allocation *a = workload->first_allocation; !has_ended && a != NULL;
         a = a->next_in_workload)
        if (a->r.attempt == r->attempt && nodes.count < (size_t)r->members)
            nodes.items[nodes.count++] = a->node->r.name;
    return nodes;
}

void workload_view_fill(struct workload_view *view, const struct state *state,
                        const struct workload *workload, const struct wait_reason *reason,
                        enum view_depth depth, struct arena *arena)
{
    const struct wire_names names = wire_names_of(state);
    const struct workload_record *r = &workload->r;

    workload_view_of_record(view, r, &names, arena);
    view->project = workload->project->r.path;
    view->tenant = workload->project->tenant->r.path;
    view->nodes = nodes_of(state, workload, arena);
    const struct reservation *reservation = state_reservation(state, r->reservation);
    if (reservation != NULL)
        view->reservation = reservation->r.name;
    if (depth == VIEW_LIST)
        view->spec = (struct str){ 0 };
    if (reason != NULL) {
        view->cause = reason->cause;
        view->detail = reason->text;
        view->position = reason->position;
    }
}

void workload_view_fill_times(struct workload_view *view, const struct workload_record *record,
                              struct mono now)
{
    int64_t so_far_s = seconds_between(record->state_since, now);

    if (record->state == WL_QUEUED || record->state == WL_HELD)
        view->queued_s = so_far_s;
    if (record->state == WL_RUNNING || record->state == WL_STOPPING)
        view->running_s = so_far_s;
}

void allocation_view_fill(struct allocation_view *view, const struct state *state,
                          const struct allocation *allocation)
{
    const struct allocation_record *r = &allocation->r;

    *view = (struct allocation_view){
        .id = r->id,
        .workload = r->workload,
        .project = path_of(state, r->project),
        .node = name_of_node(state, r->node),
        .attempt = r->attempt,
        .rank = r->rank,
        .class_name = name_of_class(state, r->class_number),
        .charge_milli = r->charge_milli,
        .cpu_milli = r->cpu_milli,
        .memory_mib = r->memory_mib,
        .devices = r->shares,
        .state = r->state,
        .stop_cause = r->stop_cause,
        .evictor = r->evictor,
        .grace_s = r->grace_s,
        .started = r->started_wall,
        .exit = r->exit,
        .is_borrowed = r->is_borrowed,
    };
}

/* ---- the rest ------------------------------------------------------------------------------ */

void volume_view_fill(struct volume_view *view, const struct state *state,
                      const struct volume *volume)
{
    *view = (struct volume_view){
        .id = volume->r.id,
        .tenant = path_of(state, volume->r.tenant),
        .name = volume->r.name,
        .node = name_of_node(state, volume->r.node),
        .quota_mib = volume->r.quota_mib,
        .created = volume->r.created,
        .version = volume->r.version,
    };
}

static struct quota_spec_list quota_specs(const struct state *state, const struct quota_list *list,
                                          struct arena *arena)
{
    struct quota_spec_list specs = { .count = list->count };
    specs.items = arena_new(arena, list->count, sizeof(*specs.items));
    for (size_t i = 0; i < list->count; i++) {
        const struct quota *q = &list->items[i];
        specs.items[i] =
            (struct quota_spec){ name_of_class(state, q->class_number), q->quota_milli,
                                 q->lend_limit_milli, q->limit_milli, q->over_quota_weight };
    }
    return specs;
}

static struct str local_copy(int64_t s, struct arena *arena)
{
    return str_of(local_text((struct local){ s }, arena_new(arena, 1, LOCAL_TEXT_MAX)));
}

/* A value as people write it. */
static const char *policy_text(const struct policy_field *field, int64_t value, struct arena *arena)
{
    if (field->names != NULL)
        return enum_name(field->names, value >= 0 ? (unsigned)value : UINT_MAX);
    if (value == UNBOUNDED)
        return str_is(str_of(field->name), "limit_milli") ? "none" : "all";
    if (field->kind == POLICY_QUOTA && strstr(field->name, "_milli") != NULL)
        return milli_text(value, arena_new(arena, 1, MILLI_TEXT_MAX));
    return arena_format(arena, "%lld", (long long)value);
}

/* "h100-80g limit 4 -> 8, priority 50 -> 80" */
static struct str change_summary(const struct state *state, const struct change_record *r,
                                 struct arena *arena)
{
    struct policy_patch to = r->to;         /* only read */
    struct policy_patch former = r->former; /* likewise */
    struct policy_cell cell;
    const char *text = "";
    const struct str unit = STR("_milli");
    for (size_t at = 0; policy_next(&to, &at, &cell);) {
        struct str name = str_of(cell.field->name);
        struct str of = cell.field->kind == POLICY_QUOTA ? name_of_class(state, cell.class_number)
                                                         : (struct str){ 0 };
        const int64_t *before = policy_find(&former, &cell);
        bool is_known = before != NULL && *before != UNSET;
        if (name.size > unit.size &&
            memcmp(name.data + name.size - unit.size, unit.data, unit.size) == 0)
            name.size -= unit.size;
        text = arena_format(arena, "%s%s%.*s%s%.*s %s%s%s", text, *text != '\0' ? ", " : "",
                            STR_ARG(of), of.size > 0 ? " " : "", STR_ARG(name),
                            is_known ? policy_text(cell.field, *before, arena) : "",
                            is_known ? " -> " : "", policy_text(cell.field, *cell.value, arena));
    }
    return str_of(text);
}

void change_view_fill(struct change_view *view, const struct state *state,
                      const struct change_record *r, struct arena *arena)
{
    const struct project *project =
        id_is_none(r->project) ? NULL : state_project(state, r->project);
    *view = (struct change_view){
        .id = r->id,
        .name = r->name,
        .user = r->user,
        .reason = r->reason,
        .summary = change_summary(state, r, arena),
        .state = r->state,
        .detail = r->detail,
        .quotas = quota_specs(state, &r->to.quotas, arena),
        .priority = r->to.priority,
        .log_quota_mib = r->to.log_quota_mib,
        .log_days = r->to.log_days,
        .settings = r->to.settings,
        .former = { .quotas = quota_specs(state, &r->former.quotas, arena),
                    .priority = r->former.priority,
                    .log_quota_mib = r->former.log_quota_mib,
                    .log_days = r->former.log_days,
                    .settings = r->former.settings },
        .is_forced = r->is_forced,
        .zone = r->zone,
        .from = local_copy(r->start_s, arena),
        .repeat = r->repeat,
        .interval = r->interval,
        .window_start = r->window_start,
        .window_end = r->window_end,
        .windows_passed = r->windows_passed,
        .created = r->created,
        .version = r->version,
    };
    if (project != NULL) {
        view->project = project->r.path;
        view->tenant = project->tenant->r.path;
    }
    if (r->end_s != 0)
        view->until = local_copy(r->end_s, arena);
    if (r->repeat != REPEAT_NEVER)
        view->repeat_until = local_copy(r->until_s, arena);
}

void reservation_view_fill(struct reservation_view *view, const struct state *state,
                           const struct reservation *reservation, struct arena *arena)
{
    const struct reservation_record *r = &reservation->r;
    char *times = arena_new(arena, 3, LOCAL_TEXT_MAX);
    *view = (struct reservation_view){
        .id = r->id,
        .name = r->name,
        .project = reservation->project->r.path,
        .tenant = reservation->project->tenant->r.path,
        .user = r->user,
        .class_name = name_of_class(state, r->class_number),
        .gpu_milli = r->gpu_milli,
        .state = r->state,
        .detail = r->detail,
        .zone = r->zone,
        .start = str_of(local_text((struct local){ r->start_s }, times)),
        .end = str_of(local_text((struct local){ r->end_s }, times + LOCAL_TEXT_MAX)),
        .repeat = r->repeat,
        .interval = r->interval,
        .end_policy = r->end_policy,
        .is_lent = r->is_lent,
        .is_overcommitted = r->is_overcommitted,
        .window_start = r->window_start,
        .window_end = r->window_end,
        .windows_passed = r->windows_passed,
        .available_milli = UNSET,
        .created = r->created,
        .version = r->version,
    };
    const struct local until = { r->until_s };
    if (r->repeat != REPEAT_NEVER)
        view->until = str_of(local_text(until, times + (size_t)2 * LOCAL_TEXT_MAX));
}

void image_view_fill(struct image_view *view, const struct state *state, const struct image *image)
{
    *view = (struct image_view){
        .id = image->r.id,
        .tenant = path_of(state, image->r.tenant),
        .name = image->r.name,
        .manifest = image->r.manifest,
        .source = image->r.source,
        .size_bytes = image->r.size_bytes,
        .created = image->r.created,
        .version = image->r.version,
    };
}

void token_view_fill(struct token_view *view, const struct state *state, const struct token *token)
{
    *view = (struct token_view){
        .id = token->r.id,
        .name = token->r.name,
        .role = token->r.role,
        .tenant = path_of(state, token->r.tenant),
        .user = token->r.user,
        .pool = token->r.pool,
        .created = token->r.created,
        .expires = token->r.expires,
        .is_revoked = token->r.is_revoked,
        .version = token->r.version,
    };
}

void credential_view_fill(struct credential_view *view, const struct state *state,
                          const struct credential *credential)
{
    *view = (struct credential_view){
        .id = credential->r.id,
        .tenant = path_of(state, credential->r.tenant),
        .registry = credential->r.registry,
        .username = credential->r.username,
        .version = credential->r.version,
    };
}

void hook_view_fill(struct hook_view *view, const struct state *state, const struct hook *hook)
{
    *view = (struct hook_view){
        .id = hook->r.id,
        .tenant = path_of(state, hook->r.tenant),
        .project = path_of(state, hook->r.project),
        .name = hook->r.name,
        .url = hook->r.url,
        .fault = hook->r.fault,
        .created = hook->r.created,
        .version = hook->r.version,
    };
}

void segment_view_fill(struct segment_view *view, const struct segment *segment, uint64_t key,
                       const struct wire_names *names)
{
    *view = (struct segment_view){
        .key = key,
        .allocation = segment->allocation,
        .workload = segment->workload,
        .project = segment->project,
        .class_name = names->class_name(names->arg, segment->class_number),
        .charge_milli = segment->charge_milli,
        .start = segment->start,
        .duration_ms = segment->duration_ms,
        .price_micros_per_hour = segment->price_micros_per_hour,
        .amount_micros = segment->amount_micros,
        .cause = segment->cause,
    };
}

/* ---- problems ------------------------------------------------------------------------------ */

static const struct problem_row {
    unsigned status;
    enum cause cause; /* when the error names none */
    const char *title;
} problem_rows[ERR_COUNT] = {
    [ERR_OK] = { 200, CAUSE_NONE, "Fine" },
    [ERR_INVALID] = { 400, CAUSE_INVALID, "The request is wrong" },
    [ERR_NOT_FOUND] = { 404, CAUSE_NOT_FOUND, "There is no such thing" },
    [ERR_CONFLICT] = { 409, CAUSE_CONFLICT, "The state of things does not allow it" },
    [ERR_LIMIT] = { 422, CAUSE_EXCEEDS_LIMIT, "A limit forbids it" },
    [ERR_DENIED] = { 403, CAUSE_NOT_PERMITTED, "Not permitted" },
    [ERR_UNAUTHENTICATED] = { 401, CAUSE_UNAUTHENTICATED, "Not authenticated" },
    [ERR_RATE] = { 429, CAUSE_RATE_LIMITED, "Too many requests" },
    [ERR_UNAVAILABLE] = { 503, CAUSE_UNAVAILABLE, "Not now" },
    [ERR_IO] = { 500, CAUSE_UNAVAILABLE, "The controller has a problem" },
    [ERR_CORRUPT] = { 500, CAUSE_UNAVAILABLE, "The controller has a problem" },
};

void problem_view_fill(struct problem_view *view, const struct error *e)
{
    enum err code = (unsigned)e->code < ERR_COUNT ? e->code : ERR_IO;
    const struct problem_row *row = &problem_rows[code];
    enum cause cause = e->cause != CAUSE_NONE ? (enum cause)e->cause : row->cause;

    *view = (struct problem_view){
        .type = STR("about:blank"),
        .title = str_of(row->title),
        .status = row->status,
        .cause = str_of(cause_name(cause)),
        /* What went wrong inside is for the log: it may name files and addresses. */
        .detail = row->status == 500 ? STR("it failed inside; the controller's log says why")
                                     : str_of(e->text),
        .field = str_of(e->field),
    };
}
