/* changes.c - quotas, priorities and settings that change, for good or for a time; previewed and
 * taken back. */
#include "api/call.h"
#include "api/handlers.h"
#include "core/preview.h"
#include "wire/resource.h"
#include "wire/spec_json.h"

static void answer(struct call *c, const struct change *change)
{
    struct change_view view;

    change_view_fill(&view, call_state(c), &change->r, call_arena(c));
    call_answer(c, &change_view_schema, &view, change->r.version);
}

/* Changes of the settings are of no tenant. */
static bool is_allowed(const struct call *c, const struct change *change)
{
    const struct id nobody = { 0 };

    return call_allows(c, change->project != NULL ? change->project->tenant->r.id : nobody);
}

/* ---- finding ------------------------------------------------------------------------------- */

/* The newest one of the project (NULL: of the settings) that can be taken back. */
static const struct change *newest_of(const struct state *state, const struct project *project)
{
    const struct change *found = NULL;

    for (const struct change *change = state->first_change; change != NULL; change = change->next)
        if (change->project == project && !change_state_is_final(change->r.state))
            found = change;
    return found;
}

/* By its name, unless that is of others: then it hides nothing. */
static const struct change *by_name(const struct call *c, struct str name)
{
    const struct change *found = state_change_by_name(call_state(c), name);

    return found != NULL && is_allowed(c, found) ? found : NULL;
}

/* An id, the name of one that is not over, whose newest it is, or the name of one that is over. */
static const struct change *look_up(const struct call *c, struct str name)
{
    const struct project *project = state_project_by_path(call_state(c), name);
    const struct change *named = by_name(c, name);
    const struct change *newest = NULL;
    struct id id = { 0 };

    if (id_parse(ID_CHANGE, name, &id))
        return state_change(call_state(c), id);
    if (named != NULL && !change_state_is_final(named->r.state))
        return named;
    if (str_is(name, CHANGES_OF_SETTINGS))
        newest = newest_of(call_state(c), NULL);
    else if (project != NULL)
        newest = newest_of(call_state(c), project);
    return newest != NULL ? newest : named;
}

static enum err find(const struct call *c, const struct change **out, struct error *e)
{
    struct str name = call_path_param(c);
    const struct change *found = look_up(c, name);

    if (found == NULL || !is_allowed(c, found))
        return call_not_found("change", name, e);
    *out = found;
    return ERR_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

enum err list_changes(struct call *c, struct error *e)
{
    struct str path = call_param(c, "project");
    struct project *project = NULL;
    struct project *tenant = NULL;
    struct list list;
    int64_t state = UNSET;
    enum err rc = call_param_enum(c, "state", &change_state_names, &state, e);
    if (rc == ERR_OK && path.data != NULL)
        rc = call_project(c, path, &project, e);
    if (rc == ERR_OK)
        rc = call_tenant_list_begin(c, &tenant, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct change *change = call_state(c)->first_change;
         change != NULL && !list.has_more; change = change->next) {
        const struct project *of = change->project;
        char text[ID_TEXT_MAX];
        struct change_view view;
        if (!is_allowed(c, change) || (state != UNSET && (int64_t)change->r.state != state) ||
            (project != NULL && (of == NULL || !project_is_within(of, project))) ||
            (tenant != NULL && (of == NULL || of->tenant != tenant)) ||
            !list_wants(&list, id_text(ID_CHANGE, change->r.id, text)))
            continue;
        change_view_fill(&view, call_state(c), &change->r, call_arena(c));
        list_add(&list, &change_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

enum err get_change(struct call *c, struct error *e)
{
    const struct change *change = NULL;
    enum err rc = find(c, &change, e);

    if (rc == ERR_OK)
        answer(c, change);
    return rc;
}

/* ---- making -------------------------------------------------------------------------------- */

enum err create_change(struct call *c, struct error *e)
{
    const struct api_ops *ops = c->context->ops;
    struct change_spec *spec = &c->result->command.change;
    enum err rc = call_command(c, CMD_CHANGE_CREATE, e);
    if (rc == ERR_OK)
        rc = call_body(c, spec, e);
    if (rc == ERR_OK)
        rc = call_zone_rule(c, spec->zone, &spec->zone_rule, e);
    if (rc == ERR_OK)
        c->result->command.new_id = ops->new_id(ops->arg);
    return rc;
}

static struct str class_name_of(const struct call *c, int64_t number)
{
    return state_class(call_state(c), number)->r.name;
}

static void preview_view_fill(const struct call *c, const struct preview *preview,
                              struct preview_view *view)
{
    struct arena *arena = call_arena(c);
    size_t shown = MIN_OF(preview->work_count, (size_t)PREVIEW_WORK_MAX);
    *view = (struct preview_view){ .is_overcommitted = preview->is_overcommitted,
                                   .work_count = (int64_t)preview->work_count };
    change_view_fill(&view->change, call_state(c), &preview->change, arena);
    view->levels.items = arena_new(arena, preview->level_count, sizeof(*view->levels.items));
    for (size_t i = 0; i < preview->level_count; i++) {
        const struct preview_level *l = &preview->levels[i];
        view->levels.items[view->levels.count++] = (struct preview_level_view){
            .project = l->project->r.path,
            .class_name = class_name_of(c, l->class_number),
            .quota_milli = l->quota_milli,
            .new_quota_milli = l->new_quota_milli,
            .limit_milli = l->limit_milli,
            .new_limit_milli = l->new_limit_milli,
            .allocated_milli = l->allocated_milli,
            .pending_milli = l->pending_milli,
            .borrowed_milli = l->borrowed_milli,
            .new_borrowed_milli = l->new_borrowed_milli,
            .is_over_limit =
                l->new_limit_milli != UNBOUNDED && l->allocated_milli > l->new_limit_milli,
        };
    }
    view->work.items = arena_new(arena, shown, sizeof(*view->work.items));
    for (size_t i = 0; i < shown; i++) {
        const struct preview_work *w = &preview->work[i];
        view->work.items[view->work.count++] = (struct preview_work_view){
            .workload = w->workload->r.id,
            .name = w->workload->r.name,
            .project = w->workload->project->r.path,
            .user = w->workload->r.user,
            .class_name = class_name_of(c, w->class_number),
            .effect = str_of(enum_name(&preview_effect_names, w->effect)),
            .charge_milli = w->charge_milli,
            .is_preemptible = w->workload->r.preemptible != PREEMPTIBLE_NEVER,
        };
    }
}

/* The command is decided as it would be, and dropped. */
enum err preview_change(struct call *c, struct error *e)
{
    struct preview preview;
    struct preview_view view;
    struct command *command = &c->result->command;
    enum err rc = create_change(c, e);
    if (rc != ERR_OK)
        return rc;
    command->now = c->context->now;
    command->wall = c->context->wall;
    rc = core_preview(call_state(c), c->context->sched, command, call_arena(c), &preview, e);
    if (rc != ERR_OK)
        return rc;
    preview_view_fill(c, &preview, &view);
    c->result->outcome = API_ANSWER;
    call_answer(c, &preview_view_schema, &view, 0);
    return ERR_OK;
}

enum err finish_change(struct call *c, struct error *e)
{
    const struct command *command = &c->before->command;
    bool is_new = command->type == CMD_CHANGE_CREATE;
    struct id id = is_new ? command->new_id : command->target.id;
    const struct change *change = state_change(call_state(c), id);
    char text[ID_TEXT_MAX];

    if (change == NULL)
        return call_not_found("change", str_of(id_text(ID_CHANGE, id, text)), e);
    answer(c, change);
    if (is_new)
        call_location(c, "/v1/changes/", id_text(ID_CHANGE, id, text));
    return ERR_OK;
}

enum err revert_change(struct call *c, struct error *e)
{
    const struct change *change = NULL;
    enum err rc = find(c, &change, e);

    return rc == ERR_OK ? call_action(c, CMD_CHANGE_REVERT, change->r.id, e) : rc;
}
