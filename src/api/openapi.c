/* openapi.c - the OpenAPI 3.1 document out of the route table and the tables of bodies
 * and answers. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "api/routes.h"
#include "wire/resource.h"

enum { COMPONENTS_MAX = 96 };

struct component {
    const struct schema *schema;
    enum schema_use use;
};

/* The tables mentioned so far; each is described once, and its mentions add more. */
struct document {
    struct json_writer w;
    struct component components[COMPONENTS_MAX];
    size_t count;
    enum schema_use use; /* of the table being described */
};

static void mention(struct document *doc, const struct schema *schema, enum schema_use use)
{
    for (size_t i = 0; i < doc->count; i++) {
        if (doc->components[i].schema == schema) {
            assert(doc->components[i].use == use); /* one table, one direction */
            return;
        }
        assert(strcmp(doc->components[i].schema->name, schema->name) != 0);
    }
    assert(doc->count < COMPONENTS_MAX);
    doc->components[doc->count++] = (struct component){ schema, use };
}

static void on_nested(void *arg, const struct schema *schema)
{
    struct document *doc = arg;

    mention(doc, schema, doc->use);
}

static void put_reference(struct document *doc, const struct schema *schema, enum schema_use use)
{
    char reference[128];

    (void)snprintf(reference, sizeof(reference), "#/components/schemas/%s", schema->name);
    json_begin_object(&doc->w);
    json_put_text(&doc->w, "$ref", reference);
    json_end_object(&doc->w);
    mention(doc, schema, use);
}

static void put_type(struct json_writer *w, const char *type)
{
    json_begin_object(w);
    json_put_text(w, "type", type);
    json_end_object(w);
}

/* ---- parameters ---------------------------------------------------------------------------- */

static void put_parameter(struct json_writer *w, struct str name, const char *where,
                          const char *type, const char *about)
{
    json_begin_object(w);
    json_put_str(w, "name", name);
    json_put_text(w, "in", where);
    json_put_bool(w, "required", strcmp(where, "path") == 0);
    if (about != NULL)
        json_put_text(w, "description", about);
    json_key(w, "schema");
    put_type(w, type);
    json_end_object(w);
}

static void put_path_parameters(struct json_writer *w, const struct route *route)
{
    struct str rest = str_of(route->pattern + 1);

    while (rest.size > 0) {
        struct str part = str_cut(&rest, '/');
        if (part.data[0] == '{')
            put_parameter(w, (struct str){ part.data + 1, part.size - 2 }, "path", "string", NULL);
    }
}

static void put_parameters(struct json_writer *w, const struct route *route)
{
    json_key(w, "parameters");
    json_begin_array(w);
    put_path_parameters(w, route);
    for (const struct param *param = route->params; param != NULL && param->name != NULL; param++)
        put_parameter(w, str_of(param->name), "query", param->is_integer ? "integer" : "string",
                      param->doc);
    if ((route->flags & ROUTE_IDEMPOTENT) != 0)
        put_parameter(w, STR("Idempotency-Key"), "header", "string",
                      "the same key and body: the same answer; kept for a day");
    if ((route->flags & ROUTE_IF_MATCH) != 0)
        put_parameter(w, STR("If-Match"), "header", "string",
                      "the ETag that was seen: 409 when it has changed since");
    json_end_array(w);
}

/* ---- bodies and answers -------------------------------------------------------------------- */

static void put_content(struct document *doc, const char *type)
{
    json_key(&doc->w, "content");
    json_begin_object(&doc->w);
    json_key(&doc->w, type);
    json_begin_object(&doc->w);
    json_key(&doc->w, "schema");
}

static void end_content(struct document *doc)
{
    json_end_object(&doc->w);
    json_end_object(&doc->w);
}

static void put_request(struct document *doc, const struct route *route)
{
    bool is_action = route->request != NULL && strcmp(route->request->name, "ActionSpec") == 0;

    if (route->request == NULL && (route->flags & ROUTE_STORES) == 0)
        return;
    json_key(&doc->w, "requestBody");
    json_begin_object(&doc->w);
    json_put_bool(&doc->w, "required", !is_action);
    if (route->request != NULL) {
        put_content(doc, "application/json");
        put_reference(doc, route->request, SCHEMA_REQUEST);
    } else {
        put_content(doc, "application/octet-stream");
        put_type(&doc->w, "string");
    }
    end_content(doc);
    json_end_object(&doc->w);
}

static void put_list(struct document *doc, const struct schema *schema)
{
    struct json_writer *w = &doc->w;

    json_begin_object(w);
    json_put_text(w, "type", "object");
    json_key(w, "required");
    json_begin_array(w);
    json_add_text(w, "items");
    json_end_array(w);
    json_key(w, "properties");
    json_begin_object(w);
    json_key(w, "items");
    json_begin_object(w);
    json_put_text(w, "type", "array");
    json_key(w, "items");
    put_reference(doc, schema, SCHEMA_ANSWER);
    json_end_object(w);
    json_key(w, "next");
    json_begin_object(w);
    json_put_text(w, "type", "string");
    json_put_text(w, "description", "cursor of the next page; absent: this is the last");
    json_end_object(w);
    json_end_object(w);
    json_end_object(w);
}

static void put_answer(struct document *doc, const struct route *route)
{
    static const char *const types[] = {
        [SHAPE_ONE] = "application/json",
        [SHAPE_LIST] = "application/json",
        [SHAPE_TEXT] = "text/plain",
        [SHAPE_JSON] = "application/json",
        [SHAPE_FEED] = "text/event-stream",
        [SHAPE_BYTES] = "application/octet-stream",
        [SHAPE_NONE] = NULL,
        [SHAPE_SOCKET] = NULL,
    };

    if (types[route->shape] == NULL)
        return;
    put_content(doc, types[route->shape]);
    if (route->shape == SHAPE_LIST)
        put_list(doc, route->answer);
    else if (route->shape == SHAPE_ONE)
        put_reference(doc, route->answer, SCHEMA_ANSWER);
    else
        put_type(&doc->w, route->shape == SHAPE_JSON ? "object" : "string");
    end_content(doc);
}

static void put_responses(struct document *doc, const struct route *route)
{
    struct json_writer *w = &doc->w;
    char status[16];

    (void)snprintf(status, sizeof(status), "%u", route->status);
    json_key(w, "responses");
    json_begin_object(w);
    json_key(w, status);
    json_begin_object(w);
    json_put_text(w, "description", route->status == 204 ? "Done" : "As asked");
    put_answer(doc, route);
    json_end_object(w);
    json_key(w, "default");
    json_begin_object(w);
    json_put_text(w, "description", "Refused, and why");
    put_content(doc, "application/problem+json");
    put_reference(doc, &problem_view_schema, SCHEMA_ANSWER);
    end_content(doc);
    json_end_object(w);
    json_end_object(w);
}

/* ---- paths --------------------------------------------------------------------------------- */

static const char *method_key(enum http_method method)
{
    static const char *const keys[HTTP_METHOD_COUNT] = {
        [HTTP_METHOD_GET] = "get",     [HTTP_METHOD_POST] = "post",     [HTTP_METHOD_PUT] = "put",
        [HTTP_METHOD_PATCH] = "patch", [HTTP_METHOD_DELETE] = "delete",
    };

    return keys[method];
}

/* "get_v1_workloads_workload": unique, because method and pattern are. */
static void put_operation_id(struct json_writer *w, const struct route *route)
{
    AUTO(buf) struct buf text = { 0 };

    buf_add_text(&text, method_key(route->method));
    for (const char *at = route->pattern; *at != '\0'; at++) {
        bool is_word = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
        if (is_word)
            buf_add_char(&text, *at);
        else if (*at != '}' && text.data[text.size - 1] != '_')
            buf_add_char(&text, '_');
    }
    json_put_str(w, "operationId", buf_str(&text));
}

static void put_operation(struct document *doc, const struct route *route)
{
    struct json_writer *w = &doc->w;

    json_key(w, method_key(route->method));
    json_begin_object(w);
    put_operation_id(w, route);
    json_put_text(w, "summary", route->summary);
    if ((route->flags & (ROUTE_OPEN | ROUTE_OWN)) == 0) {
        json_key(w, "description");
        AUTO(buf) struct buf text = { 0 };
        buf_format(&text, "Needs the permission `%s`.", permission_name(route->permission));
        json_add_str(w, buf_str(&text));
    }
    json_key(w, "tags");
    json_begin_array(w);
    json_add_text(w, route->tag);
    json_end_array(w);
    if ((route->flags & ROUTE_OPEN) != 0) {
        json_key(w, "security");
        json_begin_array(w);
        json_end_array(w);
    }
    put_parameters(w, route);
    put_request(doc, route);
    put_responses(doc, route);
    json_end_object(w);
}

static bool is_first_of_pattern(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(routes[i].pattern, routes[index].pattern) == 0)
            return false;
    return true;
}

static void put_paths(struct document *doc)
{
    json_key(&doc->w, "paths");
    json_begin_object(&doc->w);
    for (size_t i = 0; i < route_count; i++) {
        if (!is_first_of_pattern(i))
            continue;
        json_key(&doc->w, routes[i].pattern);
        json_begin_object(&doc->w);
        for (size_t k = i; k < route_count; k++)
            if (strcmp(routes[k].pattern, routes[i].pattern) == 0)
                put_operation(doc, &routes[k]);
        json_end_object(&doc->w);
    }
    json_end_object(&doc->w);
}

static void put_components(struct document *doc)
{
    struct json_writer *w = &doc->w;

    json_key(w, "components");
    json_begin_object(w);
    json_key(w, "securitySchemes");
    json_begin_object(w);
    json_key(w, "token");
    json_begin_object(w);
    json_put_text(w, "type", "http");
    json_put_text(w, "scheme", "bearer");
    json_end_object(w);
    json_end_object(w);
    json_key(w, "schemas");
    json_begin_object(w);
    /* The list grows while it is gone through. */
    for (size_t i = 0; i < doc->count; i++) {
        const struct component component = doc->components[i];
        doc->use = component.use;
        json_key(w, component.schema->name);
        schema_describe(w, component.schema, component.use, on_nested, doc);
    }
    json_end_object(w);
    json_end_object(w);
}

static void put_head(struct json_writer *w, struct str version)
{
    json_put_text(w, "openapi", "3.1.0");
    json_key(w, "info");
    json_begin_object(w);
    json_put_text(w, "title", "Berth");
    json_put_text(w, "description",
                  "A multi-tenant GPU control plane. Every quantity is an integer with its unit in "
                  "its name; objects of others answer exactly like absent ones.");
    json_put_str(w, "version", version);
    json_key(w, "license");
    json_begin_object(w);
    json_put_text(w, "name", "Apache-2.0");
    json_put_text(w, "identifier", "Apache-2.0");
    json_end_object(w);
    json_end_object(w);
    json_key(w, "security");
    json_begin_array(w);
    json_begin_object(w);
    json_key(w, "token");
    json_begin_array(w);
    json_end_array(w);
    json_end_object(w);
    json_end_array(w);
}

void api_openapi(struct str version, struct buf *out)
{
    struct document doc = { .w = json_writer_of(out) };

    json_begin_object(&doc.w);
    put_head(&doc.w, version);
    put_paths(&doc);
    put_components(&doc);
    json_end_object(&doc.w);
    buf_add_char(out, '\n');
}
