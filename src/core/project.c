/* project.c - tenants and projects: the quota tree, and the sums that must hold in it. */
#include <string.h>

#include "core/policy.h"

enum { PRIORITY_MAX = 1000, PRIORITY_DEFAULT = 50, WEIGHT_MAX = 1000000, WEIGHT_DEFAULT = 100 };

static const int64_t milli_max = INT64_C(1) << 40;

/* ---- sums of guarantees -------------------------------------------------------------------- */

static int64_t own_quota(const struct project *project, int64_t class_number)
{
    return project_quota(project, class_number).quota_milli;
}

/* The next project after all of `project`'s subtree, within `top`; NULL: none. */
static const struct project *next_outside(const struct project *project, const struct project *top)
{
    while (project != top && project->next_sibling == NULL)
        project = project->parent;
    return project == top ? NULL : project->next_sibling;
}

/* What the children of `top` are guaranteed together: one without a quota counts with its own
 * children's. */
int64_t quota_below(const struct project *top, int64_t class_number)
{
    int64_t sum = 0;
    const struct project *p = top->first_child;
    while (p != NULL) {
        int64_t quota = own_quota(p, class_number);
        sum += quota;
        bool descends = quota == 0 && p->first_child != NULL;
        p = descends ? p->first_child : next_outside(p, top);
    }
    return sum;
}

int64_t effective_quota(const struct project *project, int64_t class_number)
{
    int64_t quota = own_quota(project, class_number);
    return quota > 0 ? quota : quota_below(project, class_number);
}

/* Everything installed, healthy or not: a node under repair does not make promises void. */
static int64_t installed_milli(const struct state *state, int64_t class_number)
{
    int64_t sum = 0;
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        if (node->r.cpu_class_number == class_number &&
            state_class(state, class_number)->r.kind == CLASS_CPU)
            sum += node->r.cpu_milli;
        for (size_t i = 0; i < node->r.devices.count; i++) {
            const struct device_record *device = &node->r.devices.items[i];
            if (device->class_number == class_number && device->health != DEVICE_GONE)
                sum += 1000;
        }
    }
    return sum;
}

/* A change of one guarantee: of `project`, or of a new child of `parent` when that is NULL. */
struct guarantee {
    const struct project *project;
    const struct project *parent;
    int64_t class_number;
    int64_t quota_milli;
};

/* Whether the sums still hold with it; else says which one does not. */
static bool guarantee_holds(const struct state *state, const struct guarantee *g, struct error *e)
{
    int64_t below = g->project != NULL ? quota_below(g->project, g->class_number) : 0;
    struct str class_name = state_class(state, g->class_number)->r.name;
    char text[MILLI_TEXT_MAX];
    char bound_text[MILLI_TEXT_MAX];
    /* None at all is as good as its children's, but who takes its own away means less than that. */
    bool is_bound =
        g->quota_milli > 0 || (g->project != NULL && own_quota(g->project, g->class_number) > 0);
    if (is_bound && below > g->quota_milli) {
        (void)err_cause(e, ERR_CONFLICT, CAUSE_OVERCOMMITTED,
                        "%.*s: its children are guaranteed %s together, more than %s; lower"
                        " theirs first, or use --force (is_forced)",
                        STR_ARG(class_name), milli_text(below, text),
                        milli_text(g->quota_milli, bound_text));
        return false;
    }
    int64_t now = g->project != NULL ? effective_quota(g->project, g->class_number) : 0;
    int64_t more = (g->quota_milli > 0 ? g->quota_milli : below) - now;
    if (more <= 0)
        return true;
    for (const struct project *p = g->parent; p != NULL; p = p->parent) {
        int64_t quota = own_quota(p, g->class_number);
        int64_t sum = quota_below(p, g->class_number) + more;
        if (quota == 0)
            continue;
        if (sum <= quota)
            return true;
        (void)err_cause(e, ERR_CONFLICT, CAUSE_OVERCOMMITTED,
                        "%.*s: the children of %.*s would be guaranteed %s together, more than"
                        " its %s; raise that first, or use --force (is_forced)",
                        STR_ARG(class_name), STR_ARG(p->r.path), milli_text(sum, text),
                        milli_text(quota, bound_text));
        return false;
    }
    int64_t sum = more;
    for (const struct project *t = state->first_tenant; t != NULL; t = t->next_sibling)
        sum += effective_quota(t, g->class_number);
    int64_t installed = installed_milli(state, g->class_number);
    if (sum <= installed)
        return true;
    (void)err_cause(e, ERR_CONFLICT, CAUSE_OVERCOMMITTED,
                    "%.*s: all tenants would be guaranteed %s together, but there are %s"
                    " installed; lower it, or use --force (is_forced)",
                    STR_ARG(class_name), milli_text(sum, text), milli_text(installed, bound_text));
    return false;
}

/* ---- fields -------------------------------------------------------------------------------- */

static enum err quota_check(const struct quota *row, struct error *e)
{
    const struct range ranges[] = {
        { "quotas.quota_milli", row->quota_milli, 0, milli_max },
        { "quotas.lend_limit_milli", row->lend_limit_milli, UNBOUNDED, milli_max },
        { "quotas.limit_milli", row->limit_milli, UNBOUNDED, milli_max },
        { "quotas.over_quota_weight", row->over_quota_weight, 0, WEIGHT_MAX },
    };
    return check_ranges(ranges, COUNT_OF(ranges), e);
}

/* The slot of its class in the list, which has room for one more and stays in order. */
static struct quota *quota_slot(struct quota_list *list, const struct quota *otherwise)
{
    size_t at = 0;
    while (at < list->count && list->items[at].class_number < otherwise->class_number)
        at++;
    if (at < list->count && list->items[at].class_number == otherwise->class_number)
        return &list->items[at];
    memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof(*list->items));
    list->count++;
    list->items[at] = *otherwise;
    return &list->items[at];
}

/* Says of one list what the other says as well. */
static void quota_put(struct quota *quota, const struct quota *row)
{
    quota->quota_milli = given_or(row->quota_milli, quota->quota_milli);
    quota->lend_limit_milli = given_or(row->lend_limit_milli, quota->lend_limit_milli);
    quota->limit_milli = given_or(row->limit_milli, quota->limit_milli);
    quota->over_quota_weight = given_or(row->over_quota_weight, quota->over_quota_weight);
}

enum err quotas_resolve(const struct decision *d, const struct quota_spec_list *specs,
                        struct quota_list *out, struct error *e)
{
    if (specs->count > CLASSES_MAX)
        return err_field(e, "quotas", "quotas: name at most %d classes", CLASSES_MAX);
    struct quota_list list = { .items = arena_new(d->arena, specs->count, sizeof(*list.items)) };
    for (size_t i = 0; i < specs->count; i++) {
        const struct quota_spec *spec = &specs->items[i];
        struct class_object *class = NULL;
        enum err rc = find_class(d, spec->class_name, "quotas.class", &class, e);
        if (rc != ERR_OK)
            return rc;
        const struct quota nothing = { class->r.number, UNSET, UNSET, UNSET, UNSET };
        const struct quota row = { class->r.number, spec->quota_milli, spec->lend_limit_milli,
                                   spec->limit_milli, spec->over_quota_weight };
        rc = quota_check(&row, e);
        if (rc != ERR_OK)
            return rc;
        quota_put(quota_slot(&list, &nothing), &row);
    }
    *out = list;
    return ERR_OK;
}

static enum err quotas_merge(const struct decision *d, const struct project *old,
                             const struct policy_patch *patch, bool is_forced,
                             struct project_record *next, struct error *e)
{
    const struct quota_list *rows = &patch->quotas;
    struct quota_list merged = { .count = next->quotas.count };
    merged.items = arena_new(d->arena, merged.count + rows->count, sizeof(*merged.items));
    if (merged.count > 0)
        memcpy(merged.items, next->quotas.items, merged.count * sizeof(*merged.items));

    for (size_t i = 0; i < rows->count; i++) {
        const struct quota *row = &rows->items[i];
        const struct quota none = { row->class_number, 0, UNBOUNDED, UNBOUNDED, WEIGHT_DEFAULT };
        if (state_class(d->state, row->class_number)->is_removed)
            continue; /* since the change was made */
        struct quota *quota = quota_slot(&merged, &none);
        quota_put(quota, row);
        const struct guarantee guarantee = {
            old, id_is_none(next->parent) ? NULL : state_project(d->state, next->parent),
            row->class_number, quota->quota_milli
        };
        if (guarantee_holds(d->state, &guarantee, is_forced ? NULL : e))
            continue;
        if (!is_forced)
            return ERR_CONFLICT;
        next->is_overcommitted = true;
    }
    next->quotas = merged;
    return ERR_OK;
}

static enum err project_check(const struct policy_patch *patch, struct error *e)
{
    const struct range ranges[] = {
        { "priority", patch->priority, 0, PRIORITY_MAX },
        { "log_quota_mib", patch->log_quota_mib, 0, LOG_QUOTA_MIB_MAX },
        { "log_days", patch->log_days, 0, LOG_DAYS_MAX },
    };
    return check_ranges(ranges, COUNT_OF(ranges), e);
}

/* What the command says of a project. */
static enum err patch_of(const struct decision *d, struct policy_patch *out, struct error *e)
{
    const struct project_spec *spec = &d->command->project;
    *out = policy_nothing();
    out->priority = spec->priority;
    out->log_quota_mib = spec->log_quota_mib;
    out->log_days = spec->log_days;
    enum err rc = project_check(out, e);
    return rc == ERR_OK ? quotas_resolve(d, &spec->quotas, &out->quotas, e) : rc;
}

enum err project_patch(const struct decision *d, const struct project *project,
                       const struct policy_patch *patch, bool is_forced, struct project_record *out,
                       struct error *e)
{
    struct project_record next = project->r;
    next.users = (struct user_past_list){ 0 }; /* what was used is for evolve to say */
    enum err rc = project_check(patch, e);
    if (rc != ERR_OK)
        return rc;
    next.priority = given_or(patch->priority, next.priority);
    next.log_quota_mib = given_or(patch->log_quota_mib, next.log_quota_mib);
    next.log_days = given_or(patch->log_days, next.log_days);
    /* The flag tells of the last change that named guarantees. */
    if (patch->quotas.count > 0)
        next.is_overcommitted = false;
    rc = quotas_merge(d, project, patch, is_forced, &next, e);
    if (rc == ERR_OK)
        *out = next;
    return rc;
}

/* ---- commands ------------------------------------------------------------------------------ */

/* Splits "amber/vision/train" into its parent's path and its last component. */
static enum err path_split(struct str path, struct str *parent, struct str *name, struct error *e)
{
    if (path.size == 0)
        return err_field(e, "path", "path is missing; give one such as amber or amber/vision");
    size_t depth = 1;
    size_t last = 0;
    struct str rest = path;
    while (rest.size > 0) {
        struct str part = str_cut(&rest, '/');
        enum err rc = check_name(part, "path", e);
        if (rc != ERR_OK)
            return rc;
    }
    for (size_t i = 0; i < path.size; i++) {
        if (path.data[i] != '/')
            continue;
        depth++;
        last = i;
    }
    if (path.data[path.size - 1] == '/')
        return err_field(e, "path", "path ends in \"/\"; leave it out");
    if (depth > PATH_MAX_DEPTH)
        return err_field(e, "path", "path is deeper than %d levels", PATH_MAX_DEPTH);
    *parent = (struct str){ path.data, last };
    size_t start = depth > 1 ? last + 1 : 0;
    *name = (struct str){ path.data + start, path.size - start };
    return ERR_OK;
}

enum err decide_project_create(struct decision *d, struct error *e)
{
    const struct project_spec *spec = &d->command->project;
    struct str parent_path = { 0 };
    struct str name = { 0 };
    struct policy_patch patch;
    enum err rc = path_split(spec->path, &parent_path, &name, e);
    if (rc == ERR_OK)
        rc = patch_of(d, &patch, e);
    if (rc != ERR_OK)
        return rc;
    if (state_project_by_path(d->state, spec->path) != NULL)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "project %.*s exists already",
                         STR_ARG(spec->path));
    struct project_record next = { .id = d->command->new_id,
                                   .name = name,
                                   .path = spec->path,
                                   .priority = given_or(spec->priority, PRIORITY_DEFAULT),
                                   .log_quota_mib = given_or(spec->log_quota_mib, 0),
                                   .log_days = given_or(spec->log_days, 0),
                                   .created = d->wall };
    struct id tenant = next.id;
    if (parent_path.size > 0) {
        const struct project *parent = state_project_by_path(d->state, parent_path);
        if (parent == NULL)
            return not_found(e, "project", parent_path);
        next.parent = parent->r.id;
        tenant = parent->tenant->r.id;
    } else {
        if (d->state->next_tenant_number >= TENANT_NUMBERS_MAX)
            return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT, "all %d tenant numbers are used up",
                             TENANT_NUMBERS_MAX);
        next.number = d->state->next_tenant_number;
    }
    rc = quotas_merge(d, NULL, &patch, spec->is_forced, &next, e);
    if (rc != ERR_OK)
        return rc;
    decide_add(d, EV_PROJECT_SET, tenant)->project_set = next;
    return ERR_OK;
}

/* The project that the command names, by id or by path. */
static enum err project_target(const struct decision *d, struct project **out, struct error *e)
{
    if (!id_is_none(d->command->target.id)) {
        *out = state_project(d->state, d->command->target.id);
        return *out != NULL ? ERR_OK : not_found(e, "project", d->command->target.name);
    }
    struct str name = d->command->target.name;
    return find_project(d, name.size > 0 ? name : d->command->project.path, "path", out, e);
}

bool project_differs(const struct project_record *a, const struct project_record *b)
{
    return a->priority != b->priority || a->log_quota_mib != b->log_quota_mib ||
           a->log_days != b->log_days || a->is_overcommitted != b->is_overcommitted ||
           a->quotas.count != b->quotas.count ||
           (a->quotas.count > 0 && memcmp(a->quotas.items, b->quotas.items,
                                          a->quotas.count * sizeof(*a->quotas.items)) != 0);
}

enum err decide_project_update(struct decision *d, struct error *e)
{
    struct project *project = NULL;
    enum err rc = project_target(d, &project, e);
    if (rc == ERR_OK)
        rc = decide_match(d, project->r.version, e);
    struct policy_patch patch;
    struct project_record next = { .number = 0 };
    if (rc == ERR_OK)
        rc = patch_of(d, &patch, e);
    if (rc == ERR_OK)
        rc = project_patch(d, project, &patch, d->command->project.is_forced, &next, e);
    if (rc != ERR_OK)
        return rc;
    if (project_differs(&next, &project->r))
        decide_add(d, EV_PROJECT_SET, project->tenant->r.id)->project_set = next;
    return ERR_OK;
}

/* What stands in the way of removing it, as words; NULL: nothing. */
static const char *project_obstacle(const struct decision *d, const struct project *project)
{
    if (project->first_child != NULL)
        return "it has children; remove them first";
    if (project->live_workloads > 0)
        return "it has workloads that have not ended; cancel them first";
    if (project->volume_count > 0)
        return "it has volumes; remove them first";
    for (const struct reservation *r = d->state->first_reservation; r != NULL; r = r->next) {
        if (r->project == project && !reservation_state_is_final(r->r.state))
            return "it has reservations; cancel them first";
    }
    for (size_t i = 0; i < d->state->profiles.count; i++) {
        if (str_list_has(&d->state->profiles.items[i]->r.projects, project->r.path))
            return "a profile is for it; change that first";
    }
    if (project->image_count > 0)
        return "it has images; remove them first";
    for (const struct token *token = d->state->first_token; token != NULL; token = token->next) {
        if (id_eq(token->r.tenant, project->r.id) && !token->r.is_revoked)
            return "it has valid tokens; revoke them first";
    }
    for (const struct workload *w = d->state->first_workload; w != NULL; w = w->next) {
        if (w->project != project)
            continue;
        if (w->first_allocation != NULL)
            return "ended work of it still occupies devices; wait for its nodes";
        if (sched_is_awaited(d->sched, w))
            return "other work depends on ended work of it; cancel that first";
    }
    return NULL;
}

enum err decide_project_remove(struct decision *d, struct error *e)
{
    struct project *project = NULL;
    enum err rc = project_target(d, &project, e);
    if (rc == ERR_OK)
        rc = decide_match(d, project->r.version, e);
    if (rc != ERR_OK)
        return rc;
    const char *obstacle = project_obstacle(d, project);
    if (obstacle != NULL)
        return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "project %.*s: %s",
                         STR_ARG(project->r.path), obstacle);

    struct id tenant = project->tenant->r.id;
    for (const struct workload *w = d->state->first_workload; w != NULL; w = w->next) {
        if (w->project == project)
            decide_add(d, EV_WORKLOAD_FORGOTTEN, tenant)->removed.id = w->r.id;
    }
    for (const struct token *token = d->state->first_token; token != NULL; token = token->next) {
        if (id_eq(token->r.tenant, project->r.id))
            decide_add(d, EV_TOKEN_REMOVED, tenant)->removed.id = token->r.id;
    }
    for (const struct credential *c = d->state->first_credential; c != NULL; c = c->next) {
        if (id_eq(c->r.tenant, project->r.id))
            decide_add(d, EV_CREDENTIAL_REMOVED, tenant)->removed.id = c->r.id;
    }
    for (const struct hook *h = d->state->first_hook; h != NULL; h = h->next) {
        if (id_eq(h->r.project, project->r.id) || id_eq(h->r.tenant, project->r.id))
            decide_add(d, EV_HOOK_REMOVED, tenant)->removed.id = h->r.id;
    }
    for (const struct reservation *r = d->state->first_reservation; r != NULL; r = r->next) {
        if (r->project == project)
            decide_add(d, EV_RESERVATION_REMOVED, tenant)->removed.id = r->r.id;
    }
    decide_add(d, EV_PROJECT_REMOVED, tenant)->removed.id = project->r.id;
    return ERR_OK;
}
