/* call.h - what handlers share: query parameters, look-ups that do not tell foreign from
 * absent, answers. */
#ifndef API_CALL_H
#define API_CALL_H

#include "api/routes.h"
#include "wire/resource.h"

/* ---- what was asked ------------------------------------------------------------------------ */

static inline const struct state *call_state(const struct call *c)
{
    return c->context->state;
}

static inline struct arena *call_arena(const struct call *c)
{
    return c->context->arena;
}

/* A parameter of the query; data NULL: not given. */
struct str call_param(const struct call *c, const char *name);
enum err call_param_i64(const struct call *c, const char *name, int64_t min, int64_t max,
                        int64_t *out, struct error *e) MUST_CHECK; /* not given: `*out` stays */
enum err call_param_bool(const struct call *c, const char *name, bool *out, struct error *e)
    MUST_CHECK;
enum err call_param_enum(const struct call *c, const char *name, const struct enum_names *names,
                         int64_t *out, struct error *e) MUST_CHECK;
enum err call_limit(const struct call *c, size_t *out, struct error *e) MUST_CHECK;

/* The first part of the path that stands for an object, as a project's path: a slash ends a part of
 * the target, whether it is escaped or not, so these come as "amber:vision". */
struct str call_path_param(const struct call *c);
/* What a zone means now, if one is named; ERR_INVALID with its field: there is none such. */
enum err call_zone_rule(const struct call *c, struct str zone, struct str *out, struct error *e)
    MUST_CHECK;

/* The body, into a zeroed struct of the route's request table. */
enum err call_body(const struct call *c, void *spec, struct error *e) MUST_CHECK;

/* Starts the result's command: type, actor, request, If-Match. */
enum err call_command(struct call *c, enum command_type type, struct error *e) MUST_CHECK;
/* The same for one object; and with what the body says of it (a reason, a deadline). */
enum err call_target(struct call *c, enum command_type type, struct id target, struct error *e)
    MUST_CHECK;
enum err call_action(struct call *c, enum command_type type, struct id target, struct error *e)
    MUST_CHECK;

/* ---- who may see what ---------------------------------------------------------------------- */

/* May the caller use this route on an object of that tenant (none: of no tenant)? */
bool call_allows(const struct call *c, struct id tenant);
/* Does the caller's permission reach over all tenants? */
bool call_is_operator(const struct call *c);
/* ERR_NOT_FOUND, with the same text for foreign and absent objects. Here, so that the
 * analyzer sees it. */
static inline enum err call_not_found(const char *what, struct str name, struct error *e)
{
    (void)err_cause(e, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "there is no %s \"%.*s\"", what,
                    (int)MIN_OF(name.size, (size_t)128), name.data != NULL ? name.data : "");
    return ERR_NOT_FOUND;
}

/* By id or path. */
enum err call_project(const struct call *c, struct str name, struct project **out, struct error *e)
    MUST_CHECK;
/* By id or name. */
enum err call_tenant(const struct call *c, struct str name, struct project **out, struct error *e)
    MUST_CHECK;
/* The tenant that the query names; else the caller's own; NULL for operators who name none. */
enum err call_tenant_param(const struct call *c, struct project **out, struct error *e) MUST_CHECK;
enum err call_node(const struct call *c, struct str name, struct node **out, struct error *e)
    MUST_CHECK;
enum err call_workload(const struct call *c, struct str text, struct workload **out,
                       struct error *e) MUST_CHECK;

/* Names for what this caller reads; tenants see no number that counts for everybody. */
struct wire_names call_names(const struct call *c);
/* The same for a worker, in the arena of the request. */
struct wire_names call_names_copy(const struct call *c);
/* The `after` of a list whose cursors are keys of the store. */
enum err call_cursor(const struct call *c, uint64_t *out, struct error *e) MUST_CHECK;

/* ---- answers ------------------------------------------------------------------------------- */

void call_answer(struct call *c, const struct schema *schema, const void *view, uint64_t version);
void call_location(struct call *c, const char *prefix, const char *id);
void call_text(struct call *c, const char *content_type);

/* A list: begun, filled row by row, ended with the cursor of the next page if there is one. */
struct list {
    struct json_writer w;
    struct wire_names names; /* only what hides numbers: views have names already */
    size_t limit;
    size_t count;
    struct str after;           /* cursor given; data NULL: none, or found already */
    char last[2 * ID_TEXT_MAX]; /* cursor of the last row written */
    bool has_more;
};
enum err call_list_begin(struct call *c, struct list *list, struct error *e) MUST_CHECK;
/* The same, of what belongs to the tenant of call_tenant_param. */
enum err call_tenant_list_begin(struct call *c, struct project **tenant, struct list *list,
                                struct error *e) MUST_CHECK;
/* Is a row of that id to be written? False while the cursor is not passed; when the page is full
 * `has_more` becomes true and the loop may end. */
bool list_wants(struct list *list, const char *id);
void list_add(struct list *list, const struct schema *schema, const void *view);
enum err call_list_end(struct call *c, struct list *list, struct error *e) MUST_CHECK;

#endif
