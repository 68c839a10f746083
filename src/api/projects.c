/* projects.c - tenants and projects. */
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "wire/spec_json.h"

static struct class_numbers numbers_of(const void *arg, const struct project *project,
                                       int64_t class_number)
{
    struct class_use use = sched_use(arg, project, class_number);

    return (struct class_numbers){ use.allocated_milli, use.borrowed_milli, use.pending_milli };
}

static void fill(const struct call *c, const struct project *project, struct project_view *view)
{
    project_view_fill(view, call_state(c), project, numbers_of, c->context->sched, call_arena(c));
}

static void answer_project(struct call *c, const struct project *project)
{
    struct project_view view;

    fill(c, project, &view);
    call_answer(c, &project_view_schema, &view, project->r.version);
}

/* ---- reads --------------------------------------------------------------------------------- */

static void add_row(struct call *c, struct list *list, const struct project *project,
                    const struct wire_names *names)
{
    char text[ID_TEXT_MAX];
    struct project_view view;

    if (!call_allows(c, project->tenant->r.id) || !list_wants(list, project_id_text(project, text)))
        return;
    fill(c, project, &view);
    list->count++;
    schema_encode(&list->w, &project_view_schema, &view, WIRE_PUBLIC, names);
}

enum err list_tenants(struct call *c, struct error *e)
{
    const struct wire_names names = call_names(c);
    struct list list;
    enum err rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct project *p = call_state(c)->first_tenant; p != NULL && !list.has_more;
         p = p->next_sibling)
        add_row(c, &list, p, &names);
    return call_list_end(c, &list, e);
}

enum err list_projects(struct call *c, struct error *e)
{
    const struct wire_names names = call_names(c);
    struct str path = call_param(c, "path");
    struct project *tenant = NULL;
    struct project *root = NULL;
    struct list list;
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc == ERR_OK && path.data != NULL)
        rc = call_project(c, path, &root, e);
    if (rc == ERR_OK)
        rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct project *p = call_state(c)->first_tenant; p != NULL && !list.has_more;
         p = project_next(p)) {
        bool is_wanted =
            (tenant == NULL || p->tenant == tenant) && (root == NULL || project_is_within(p, root));
        if (is_wanted)
            add_row(c, &list, p, &names);
    }
    return call_list_end(c, &list, e);
}

enum err get_tenant(struct call *c, struct error *e)
{
    struct project *tenant = NULL;
    enum err rc = call_tenant(c, c->request->params[0], &tenant, e);

    if (rc == ERR_OK)
        answer_project(c, tenant);
    return rc;
}

enum err get_project(struct call *c, struct error *e)
{
    struct project *project = NULL;
    enum err rc = call_project(c, call_path_param(c), &project, e);

    if (rc == ERR_OK)
        answer_project(c, project);
    return rc;
}

/* ---- changes ------------------------------------------------------------------------------- */

static enum err create(struct call *c, struct error *e)
{
    enum err rc = call_command(c, CMD_PROJECT_CREATE, e);

    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.project, e);
    return rc;
}

enum err create_tenant(struct call *c, struct error *e)
{
    enum err rc = create(c, e);
    if (rc != ERR_OK)
        return rc;

    struct str path = c->result->command.project.path;
    if (path.size > 0 && memchr(path.data, '/', path.size) != NULL)
        return err_field(e, "path", "path: a tenant's has no \"/\"; create a project instead");
    return ERR_OK;
}

enum err create_project(struct call *c, struct error *e)
{
    return create(c, e);
}

static enum err update(struct call *c, const struct project *project, struct error *e)
{
    enum err rc = call_command(c, CMD_PROJECT_UPDATE, e);

    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.project, e);
    if (rc != ERR_OK)
        return rc;
    struct str path = c->result->command.project.path;
    if (path.size > 0 && !str_eq(path, project->r.path))
        return err_field(e, "path", "path: a project cannot be moved");
    c->result->command.target.id = project->r.id;
    return ERR_OK;
}

enum err update_tenant(struct call *c, struct error *e)
{
    struct project *tenant = NULL;
    enum err rc = call_tenant(c, c->request->params[0], &tenant, e);

    return rc == ERR_OK ? update(c, tenant, e) : rc;
}

enum err update_project(struct call *c, struct error *e)
{
    struct project *project = NULL;
    enum err rc = call_project(c, call_path_param(c), &project, e);

    return rc == ERR_OK ? update(c, project, e) : rc;
}

enum err finish_project(struct call *c, struct error *e)
{
    const struct command *command = &c->before->command;
    bool is_new = command->type == CMD_PROJECT_CREATE;
    const struct project *project =
        is_new ? state_project_by_path(call_state(c), command->project.path)
               : state_project(call_state(c), command->target.id);
    char text[ID_TEXT_MAX];

    if (project == NULL)
        return call_not_found("project", command->project.path, e);
    answer_project(c, project);
    if (is_new)
        call_location(c, "/v1/projects/", project_id_text(project, text));
    return ERR_OK;
}

enum err remove_tenant(struct call *c, struct error *e)
{
    struct project *tenant = NULL;
    enum err rc = call_tenant(c, c->request->params[0], &tenant, e);

    return rc == ERR_OK ? call_target(c, CMD_PROJECT_REMOVE, tenant->r.id, e) : rc;
}

enum err remove_project(struct call *c, struct error *e)
{
    struct project *project = NULL;
    enum err rc = call_project(c, call_path_param(c), &project, e);

    return rc == ERR_OK ? call_target(c, CMD_PROJECT_REMOVE, project->r.id, e) : rc;
}
