/* catalog.c - classes, pools, profiles and settings: PUT by name creates or changes. */
#include "api/call.h"
#include "api/handlers.h"
#include "wire/spec_json.h"

/* The name in the body, if any, is the one in the path. */
static enum err name_of_path(const struct call *c, struct str *name, struct error *e)
{
    struct str path = c->request->params[0];

    if (name->size > 0 && !str_eq(*name, path))
        return err_field(e, "name", "name: is not the one in the path");
    *name = path;
    return ERR_OK;
}

static enum err remove_named(struct call *c, enum command_type type, struct error *e)
{
    enum err rc = call_command(c, type, e);

    c->result->command.target.name = c->request->params[0];
    return rc;
}

/* ---- classes ------------------------------------------------------------------------------- */

static void fill_class(const struct call *c, const struct class_object *class,
                       struct class_view *view)
{
    struct class_capacity capacity = sched_capacity(c->context->sched, class->r.number);

    class_view_fill(view, call_state(c), class);
    view->capacity_milli = capacity.capacity_milli;
    view->free_milli = capacity.free_milli;
}

enum err list_classes(struct call *c, struct error *e)
{
    struct list list;
    enum err rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (size_t i = 0; i < call_state(c)->classes.count && !list.has_more; i++) {
        const struct class_object *class = call_state(c)->classes.items[i];
        char text[ID_TEXT_MAX];
        struct class_view view;
        if (class->is_removed || !list_wants(&list, id_text(ID_CLASS, class->r.id, text)))
            continue;
        fill_class(c, class, &view);
        list_add(&list, &class_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

static enum err answer_class(struct call *c, struct str name, struct error *e)
{
    const struct class_object *class = state_class_by_name(call_state(c), name);
    struct class_view view;

    if (class == NULL)
        return call_not_found("class", name, e);
    fill_class(c, class, &view);
    call_answer(c, &class_view_schema, &view, class->r.version);
    return ERR_OK;
}

enum err get_class(struct call *c, struct error *e)
{
    return answer_class(c, c->request->params[0], e);
}

enum err set_class(struct call *c, struct error *e)
{
    enum err rc = call_command(c, CMD_CLASS_SET, e);

    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.class_set, e);
    if (rc == ERR_OK)
        rc = name_of_path(c, &c->result->command.class_set.name, e);
    return rc;
}

enum err finish_class(struct call *c, struct error *e)
{
    return answer_class(c, c->before->command.class_set.name, e);
}

enum err remove_class(struct call *c, struct error *e)
{
    return remove_named(c, CMD_CLASS_REMOVE, e);
}

/* ---- pools --------------------------------------------------------------------------------- */

enum err list_pools(struct call *c, struct error *e)
{
    struct list list;
    enum err rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (size_t i = 0; i < call_state(c)->pools.count && !list.has_more; i++) {
        const struct pool_object *pool = call_state(c)->pools.items[i];
        char text[ID_TEXT_MAX];
        struct pool_view view;
        if (!list_wants(&list, id_text(ID_POOL, pool->r.id, text)))
            continue;
        pool_view_fill(&view, call_state(c), pool);
        list_add(&list, &pool_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

static enum err answer_pool(struct call *c, struct str name, struct error *e)
{
    const struct pool_object *pool = state_pool_by_name(call_state(c), name);
    struct pool_view view;

    if (pool == NULL)
        return call_not_found("pool", name, e);
    pool_view_fill(&view, call_state(c), pool);
    call_answer(c, &pool_view_schema, &view, pool->r.version);
    return ERR_OK;
}

enum err get_pool(struct call *c, struct error *e)
{
    return answer_pool(c, c->request->params[0], e);
}

enum err set_pool(struct call *c, struct error *e)
{
    enum err rc = call_command(c, CMD_POOL_SET, e);

    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.pool_set, e);
    if (rc == ERR_OK)
        rc = name_of_path(c, &c->result->command.pool_set.name, e);
    return rc;
}

enum err finish_pool(struct call *c, struct error *e)
{
    return answer_pool(c, c->before->command.pool_set.name, e);
}

enum err remove_pool(struct call *c, struct error *e)
{
    return remove_named(c, CMD_POOL_REMOVE, e);
}

/* ---- profiles ------------------------------------------------------------------------------ */

/* Members see those that some project of their tenant may use; of whom it is for only their own. */
static bool profile_is_seen(const struct call *c, const struct profile_record *profile,
                            struct str_list *projects)
{
    const struct id tenant = c->context->actor.tenant;

    *projects = profile->projects;
    if (c->context->actor.role != ROLE_MEMBER || profile->projects.count == 0)
        return true;
    projects->items = arena_new(call_arena(c), profile->projects.count, sizeof(*projects->items));
    projects->count = 0;
    for (size_t i = 0; i < profile->projects.count; i++) {
        const struct project *project =
            state_project_by_path(call_state(c), profile->projects.items[i]);
        if (project != NULL && id_eq(project->tenant->r.id, tenant))
            projects->items[projects->count++] = profile->projects.items[i];
    }
    return projects->count > 0;
}

enum err list_profiles(struct call *c, struct error *e)
{
    struct list list;
    enum err rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (size_t i = 0; i < call_state(c)->profiles.count && !list.has_more; i++) {
        const struct profile_object *profile = call_state(c)->profiles.items[i];
        char text[ID_TEXT_MAX];
        struct profile_view view;
        struct str_list projects;
        if (!profile_is_seen(c, &profile->r, &projects) ||
            !list_wants(&list, id_text(ID_PROFILE, profile->r.id, text)))
            continue;
        profile_view_fill(&view, call_state(c), profile, call_arena(c));
        view.projects = projects;
        list_add(&list, &profile_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

static enum err answer_profile(struct call *c, struct str name, struct error *e)
{
    const struct profile_object *profile = state_profile_by_name(call_state(c), name);
    struct profile_view view;
    struct str_list projects;

    if (profile == NULL || !profile_is_seen(c, &profile->r, &projects))
        return call_not_found("profile", name, e);
    profile_view_fill(&view, call_state(c), profile, call_arena(c));
    view.projects = projects;
    call_answer(c, &profile_view_schema, &view, profile->r.version);
    return ERR_OK;
}

enum err get_profile(struct call *c, struct error *e)
{
    return answer_profile(c, c->request->params[0], e);
}

enum err set_profile(struct call *c, struct error *e)
{
    enum err rc = call_command(c, CMD_PROFILE_SET, e);

    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.profile_set, e);
    if (rc == ERR_OK)
        rc = name_of_path(c, &c->result->command.profile_set.name, e);
    return rc;
}

enum err finish_profile(struct call *c, struct error *e)
{
    return answer_profile(c, c->before->command.profile_set.name, e);
}

enum err remove_profile(struct call *c, struct error *e)
{
    return remove_named(c, CMD_PROFILE_REMOVE, e);
}

/* ---- settings ------------------------------------------------------------------------------ */

enum err get_settings(struct call *c, struct error *e)
{
    const struct settings_record *settings = &call_state(c)->settings;

    (void)e;
    call_answer(c, &settings_view_schema, settings, settings->version);
    return ERR_OK;
}

enum err set_settings(struct call *c, struct error *e)
{
    struct settings_record *wanted = &c->result->command.settings;
    enum err rc = call_command(c, CMD_SETTINGS_SET, e);
    if (rc != ERR_OK)
        return rc;

    /* Numbers that are not given become UNSET; names have no such value and start as they are. */
    wanted->reclaim_to = call_state(c)->settings.reclaim_to;
    wanted->user_fairness = call_state(c)->settings.user_fairness;
    wanted->consolidate = call_state(c)->settings.consolidate;
    wanted->placement = call_state(c)->settings.placement;
    return call_body(c, wanted, e);
}

enum err finish_settings(struct call *c, struct error *e)
{
    return get_settings(c, e);
}
