/* match.c - from method and path to a route, and what the server may ask about it. */
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "core/core.h"

enum { BODY_BYTES_DEFAULT = 64 * 1024 };

/* Does the pattern fit? Fills the parameters as it goes. */
static bool pattern_fits(const char *pattern, const struct str *segments, size_t count,
                         struct str params[API_PARAMS_MAX])
{
    struct str rest = str_of(pattern + 1);
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (rest.size == 0)
            return false;
        struct str part = str_cut(&rest, '/');
        if (part.data[0] == '{')
            params[used++] = segments[i];
        else if (!str_eq(part, segments[i]))
            return false;
    }
    return rest.size == 0 && count > 0;
}

static void add_allowed(char allow[64], enum http_method method)
{
    size_t used = strlen(allow);

    (void)snprintf(allow + used, 64 - used, "%s%s", used > 0 ? ", " : "", http_method_name(method));
}

enum err api_match(enum http_method method, const struct str *segments, size_t count,
                   struct api_request *out, char allow[64], struct error *e)
{
    enum http_method wanted = method == HTTP_METHOD_HEAD ? HTTP_METHOD_GET : method;

    allow[0] = '\0';
    for (size_t i = 0; i < route_count; i++) {
        struct str params[API_PARAMS_MAX] = { 0 };
        if (!pattern_fits(routes[i].pattern, segments, count, params))
            continue;
        add_allowed(allow, routes[i].method);
        if (routes[i].method != wanted)
            continue;
        out->route = &routes[i];
        memcpy(out->params, params, sizeof(params));
        allow[0] = '\0'; /* what others refuse from here on is no 405 */
        return ERR_OK;
    }
    if (allow[0] != '\0')
        return err_set(e, ERR_CONFLICT, "this path takes %s, not %s", allow,
                       http_method_name(method));
    return err_set(e, ERR_NOT_FOUND, "there is no such path; /openapi.json lists all of them");
}

uint64_t route_body_max(const struct route *route)
{
    return route->body_max != 0 ? route->body_max : BODY_BYTES_DEFAULT;
}

bool route_is_open(const struct route *route)
{
    return (route->flags & ROUTE_OPEN) != 0;
}

bool route_is_idempotent(const struct route *route)
{
    return (route->flags & ROUTE_IDEMPOTENT) != 0;
}

bool route_has_secret(const struct route *route)
{
    return (route->flags & ROUTE_SECRET) != 0;
}

bool route_stores_body(const struct route *route)
{
    return (route->flags & ROUTE_STORES) != 0;
}

bool route_is_socket(const struct route *route)
{
    return route->shape == SHAPE_SOCKET;
}

enum err api_permit(const struct route *route, const struct actor *actor, struct error *e)
{
    if ((route->flags & ROUTE_OPEN) != 0)
        return ERR_OK;
    if (actor->role == ROLE_NONE)
        return err_set(e, ERR_UNAUTHENTICATED,
                       "a bearer token is needed: set BERTH_TOKEN, or send \"Authorization: Bearer "
                       "TOKEN\"; an administrator makes one with `berth token create`");
    if ((route->flags & ROUTE_OWN) != 0 ||
        access_scope(actor->role, route->permission) != SCOPE_NOTHING)
        return ERR_OK;
    return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED, "%s is not permitted to the role %s",
                     permission_name(route->permission), enum_name(&role_names, actor->role));
}

/* ---- running a route ----------------------------------------------------------------------- */

static bool is_declared(const struct route *route, struct str name)
{
    for (const struct param *param = route->params; param != NULL && param->name != NULL; param++)
        if (str_is(name, param->name))
            return true;
    return false;
}

/* Parameters that nobody reads are mistakes: a filter misspelt would show too much. */
static enum err check_query(const struct api_request *request, struct error *e)
{
    for (size_t i = 0; i < request->query_count; i++) {
        struct str name = request->query[i].name;
        const char *text = "there is no such parameter";
        bool is_twice = false;
        for (size_t k = 0; k < i; k++)
            is_twice |= str_eq(request->query[k].name, name);
        if (is_declared(request->route, name) && !is_twice)
            continue;
        return err_set(e, ERR_INVALID, "%.*s: %s", (int)MIN_OF(name.size, (size_t)64), name.data,
                       is_twice ? "is there twice" : text);
    }
    return ERR_OK;
}

/* Whether the command would be refused is known here, and nothing is done with it. */
static enum err try_dry(struct call *c, struct error *e)
{
    bool is_dry = false;
    struct command *command = &c->result->command;
    struct event_list events = { 0 };
    enum err rc = call_param_bool(c, "dry_run", &is_dry, e);
    if (rc != ERR_OK || !is_dry || c->result->outcome != API_COMMAND)
        return rc;
    command->now = c->context->now;
    command->wall = c->context->wall;
    rc = decide(c->context->state, c->context->sched, command, c->context->arena, &events, e);
    if (rc != ERR_OK)
        return rc;
    c->result->outcome = API_ANSWER;
    return finish_none(c, e);
}

enum err api_handle(const struct api_request *request, const struct api_context *context,
                    struct api_result *result, struct error *e)
{
    struct call call = {
        .request = request, .context = context, .result = result, .answer = &result->answer
    };
    enum err rc = check_query(request, e);

    if (rc == ERR_OK)
        rc = request->route->handle(&call, e);
    if (rc == ERR_OK)
        rc = try_dry(&call, e);
    if (rc != ERR_OK)
        buf_clear(&result->answer.body);
    return rc;
}

enum err api_finish(const struct api_request *request, const struct api_context *context,
                    const struct api_result *result, struct api_answer *answer, struct error *e)
{
    struct call call = {
        .request = request, .context = context, .before = result, .answer = answer
    };

    return request->route->finish(&call, e);
}

enum err api_stored(const struct api_request *request, const struct api_context *context,
                    const struct api_stored *stored, struct api_result *result, struct error *e)
{
    struct call call = {
        .request = request, .context = context, .result = result, .answer = &result->answer
    };

    return request->route->stored(&call, stored, e);
}
