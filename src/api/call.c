#include "api/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/filter.h"
#include "api/handlers.h"
#include "wire/hidden.h"
#include "wire/spec_json.h"

/* ---- what was asked ------------------------------------------------------------------------ */

struct str call_param(const struct call *c, const char *name)
{
    for (size_t i = 0; i < c->request->query_count; i++)
        if (str_is(c->request->query[i].name, name))
            return c->request->query[i].value;
    return (struct str){ 0 };
}

enum err call_param_i64(const struct call *c, const char *name, int64_t min, int64_t max,
                        int64_t *out, struct error *e)
{
    struct str text = call_param(c, name);

    if (text.data == NULL || str_to_i64(text, min, max, out))
        return ERR_OK;
    return err_field(e, name, "%s: must be an integer in %" PRId64 "..%" PRId64, name, min, max);
}

enum err call_param_bool(const struct call *c, const char *name, bool *out, struct error *e)
{
    struct str text = call_param(c, name);

    if (text.data == NULL)
        return ERR_OK;
    if (!str_is(text, "true") && !str_is(text, "false"))
        return err_field(e, name, "%s: must be true or false", name);
    *out = str_is(text, "true");
    return ERR_OK;
}

enum err call_param_enum(const struct call *c, const char *name, const struct enum_names *names,
                         int64_t *out, struct error *e)
{
    struct str text = call_param(c, name);
    unsigned value = 0;

    if (text.data == NULL)
        return ERR_OK;
    if (!enum_parse(names, text, &value))
        return refuse_name(name, names, e);
    *out = (int64_t)value;
    return ERR_OK;
}

struct str call_path_param(const struct call *c)
{
    struct str path = str_copy(call_arena(c), c->request->params[0]);

    for (char *at = (char *)(uintptr_t)path.data; at < path.data + path.size; at++) /* our copy */
        if (*at == ':')
            *at = '/';
    return path;
}

enum err call_zone_rule(const struct call *c, struct str zone, struct str *out, struct error *e)
{
    const struct api_ops *ops = c->context->ops;
    enum err rc = zone.size > 0 ? ops->zone_rule(ops->arg, zone, call_arena(c), out, e) : ERR_OK;
    struct error why = { 0 };

    if (rc != ERR_NOT_FOUND && rc != ERR_INVALID)
        return rc;
    if (e != NULL)
        why = *e;
    return why.field[0] == '\0' ? err_field(e, "zone", "zone: %.200s", why.text) : rc;
}

enum err call_limit(const struct call *c, size_t *out, struct error *e)
{
    int64_t limit = API_PAGE_DEFAULT;
    enum err rc = call_param_i64(c, "limit", 1, API_PAGE_MAX, &limit, e);

    *out = (size_t)limit;
    return rc;
}

enum err call_body(const struct call *c, void *spec, struct error *e)
{
    return spec_decode(c->request->route->request, c->request->body, call_arena(c), spec, e);
}

/* NULL: an operator. */
static const uint8_t *call_hide_key(const struct call *c)
{
    return c->context->actor.role == ROLE_MEMBER ? call_state(c)->id_key : NULL;
}

struct wire_names call_names(const struct call *c)
{
    struct wire_names names = wire_names_of(call_state(c));
    names.hide_key = call_hide_key(c);
    return names;
}

struct wire_names call_names_copy(const struct call *c)
{
    struct wire_names names = wire_names_copy(call_state(c), call_arena(c));
    const uint8_t *key = call_hide_key(c);
    if (key != NULL) {
        uint8_t *copy = arena_new(call_arena(c), 1, sizeof(call_state(c)->id_key));
        memcpy(copy, key, sizeof(call_state(c)->id_key));
        names.hide_key = copy;
    }
    return names;
}

enum err call_cursor(const struct call *c, uint64_t *out, struct error *e)
{
    int64_t after = 0;
    enum err rc = call_param_i64(c, "after", 0, INT64_MAX, &after, e);
    if (rc == ERR_OK)
        *out = hidden_reveal(call_hide_key(c), (uint64_t)after);
    return rc;
}

/* ETags are "VERSION"; a list of them is more than we ever gave out. */
static enum err parse_if_match(const struct call *c, uint64_t *out, struct error *e)
{
    struct str text = c->request->if_match;
    int64_t version = 0;

    *out = 0;
    if (text.size == 0 || str_is(text, "*"))
        return ERR_OK;
    bool is_quoted = text.size > 2 && text.data[0] == '"' && text.data[text.size - 1] == '"';
    if (!is_quoted ||
        !str_to_i64((struct str){ text.data + 1, text.size - 2 }, 1, INT64_MAX, &version))
        return err_field(e, "If-Match", "If-Match: must be one ETag as it was given out");
    *out = hidden_reveal(call_hide_key(c), (uint64_t)version);
    return ERR_OK;
}

enum err call_command(struct call *c, enum command_type type, struct error *e)
{
    struct command *command = &c->result->command;

    c->result->outcome = API_COMMAND;
    *command = (struct command){ .type = type,
                                 .actor = c->context->actor,
                                 .request = c->request->request,
                                 .target = { .deadline_s = UNSET } };
    return parse_if_match(c, &command->if_match, e);
}

enum err call_target(struct call *c, enum command_type type, struct id target, struct error *e)
{
    enum err rc = call_command(c, type, e);

    c->result->command.target.id = target;
    return rc;
}

enum err call_action(struct call *c, enum command_type type, struct id target, struct error *e)
{
    enum err rc = call_command(c, type, e);

    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.target, e);
    c->result->command.target.id = target;
    return rc;
}

/* ---- who may see what ---------------------------------------------------------------------- */

bool call_allows(const struct call *c, struct id tenant)
{
    return access_allows(&c->context->actor, c->request->route->permission, tenant);
}

bool call_is_operator(const struct call *c)
{
    return access_scope(c->context->actor.role, c->request->route->permission) == SCOPE_ALL &&
           c->context->actor.role != ROLE_MEMBER;
}

enum err call_project(const struct call *c, struct str name, struct project **out, struct error *e)
{
    struct id id = { 0 };
    bool is_id = id_parse(ID_PROJECT, name, &id) || id_parse(ID_TENANT, name, &id);
    struct project *project =
        is_id ? state_project(call_state(c), id) : state_project_by_path(call_state(c), name);

    if (project == NULL || !call_allows(c, project->tenant->r.id))
        return call_not_found("project", name, e);
    *out = project;
    return ERR_OK;
}

enum err call_tenant(const struct call *c, struct str name, struct project **out, struct error *e)
{
    struct project *project = NULL;

    if (call_project(c, name, &project, NULL) != ERR_OK || project->parent != NULL)
        return call_not_found("tenant", name, e);
    *out = project;
    return ERR_OK;
}

enum err call_tenant_param(const struct call *c, struct project **out, struct error *e)
{
    struct str name = call_param(c, "tenant");

    *out = NULL;
    if (name.data != NULL)
        return call_tenant(c, name, out, e);
    if (!id_is_none(c->context->actor.tenant))
        *out = state_project(call_state(c), c->context->actor.tenant);
    return ERR_OK;
}

enum err call_node(const struct call *c, struct str name, struct node **out, struct error *e)
{
    struct id id = { 0 };
    struct node *node = id_parse(ID_NODE, name, &id) ? state_node(call_state(c), id)
                                                     : state_node_by_name(call_state(c), name);

    if (node == NULL)
        return call_not_found("node", name, e);
    *out = node;
    return ERR_OK;
}

enum err call_workload(const struct call *c, struct str text, struct workload **out,
                       struct error *e)
{
    struct id id = { 0 };
    struct workload *workload = NULL;

    if (id_parse(ID_WORKLOAD, text, &id))
        workload = state_workload(call_state(c), id);
    else if (id_parse(ID_ARRAY, text, &id))
        workload = state_array(call_state(c), id);
    if (workload == NULL || !call_allows(c, workload->project->tenant->r.id))
        return call_not_found("workload", text, e);
    *out = workload;
    return ERR_OK;
}

/* ---- answers ------------------------------------------------------------------------------- */

void api_answer_done(struct api_answer *answer)
{
    buf_done(&answer->body);
}

static void call_json(struct call *c)
{
    c->answer->status = c->request->route->status;
    c->answer->content_type = "application/json";
}

void call_answer(struct call *c, const struct schema *schema, const void *view, uint64_t version)
{
    const struct wire_names names = call_names(c);
    struct json_writer w = json_writer_of(&c->answer->body);

    call_json(c);
    c->answer->version = hidden_of(names.hide_key, version);
    schema_encode(&w, schema, view, WIRE_PUBLIC, &names);
    buf_add_char(&c->answer->body, '\n');
}

enum err finish_none(struct call *c, struct error *e)
{
    (void)e;
    c->answer->status = 204;
    return ERR_OK;
}

void call_location(struct call *c, const char *prefix, const char *id)
{
    (void)snprintf(c->answer->location, sizeof(c->answer->location), "%s%s", prefix, id);
}

void call_text(struct call *c, const char *content_type)
{
    c->answer->status = c->request->route->status;
    c->answer->content_type = content_type;
}

enum err call_list_begin(struct call *c, struct list *list, struct error *e)
{
    *list = (struct list){ .w = json_writer_of(&c->answer->body),
                           .names = { .hide_key = call_hide_key(c) },
                           .after = call_param(c, "after") };
    enum err rc = call_limit(c, &list->limit, e);
    if (rc != ERR_OK)
        return rc;
    json_begin_object(&list->w);
    json_key(&list->w, "items");
    json_begin_array(&list->w);
    return ERR_OK;
}

enum err call_tenant_list_begin(struct call *c, struct project **tenant, struct list *list,
                                struct error *e)
{
    enum err rc = call_tenant_param(c, tenant, e);

    return rc == ERR_OK ? call_list_begin(c, list, e) : rc;
}

bool list_wants(struct list *list, const char *id)
{
    if (list->after.data != NULL) {
        if (str_is(list->after, id))
            list->after = (struct str){ 0 };
        return false;
    }
    if (list->count == list->limit) {
        list->has_more = true;
        return false;
    }
    (void)snprintf(list->last, sizeof(list->last), "%s", id);
    return true;
}

void list_add(struct list *list, const struct schema *schema, const void *view)
{
    list->count++;
    schema_encode(&list->w, schema, view, WIRE_PUBLIC, &list->names);
}

enum err call_list_end(struct call *c, struct list *list, struct error *e)
{
    if (list->after.data != NULL)
        return err_field(e, "after", "after: \"%.*s\" is not in this list any more; begin again",
                         (int)MIN_OF(list->after.size, (size_t)64), list->after.data);
    json_end_array(&list->w);
    if (list->has_more)
        json_put_text(&list->w, "next", list->last);
    json_end_object(&list->w);
    buf_add_char(&c->answer->body, '\n');
    call_json(c);
    return ERR_OK;
}
