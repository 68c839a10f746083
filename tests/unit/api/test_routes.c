/* The route table: matching, permissions, and that every route is in the OpenAPI document. */
#include <string.h>

#include "api/routes.h"
#include "unit/api/world.h"
#include "unit/test.h"

static const struct matching {
    enum http_method method;
    const char *path;
    const char *pattern; /* NULL: refused */
    enum err rc;
    const char *allow;
} matchings[] = {
    { HTTP_METHOD_GET, "v1 workloads", "/v1/workloads", ERR_OK, "" },
    { HTTP_METHOD_HEAD, "v1 workloads", "/v1/workloads", ERR_OK, "" },
    { HTTP_METHOD_POST, "v1 workloads", "/v1/workloads", ERR_OK, "" },
    { HTTP_METHOD_GET, "v1 workloads wl_1", "/v1/workloads/{workload}", ERR_OK, "" },
    { HTTP_METHOD_POST, "v1 nodes n devices 3 hold", "/v1/nodes/{node}/devices/{index}/hold",
      ERR_OK, "" },
    { HTTP_METHOD_GET, "v1 usage segments", "/v1/usage/segments", ERR_OK, "" },
    { HTTP_METHOD_DELETE, "v1 workloads", NULL, ERR_CONFLICT, "POST, GET" },
    { HTTP_METHOD_OPTIONS, "healthz", NULL, ERR_CONFLICT, "GET" },
    { HTTP_METHOD_GET, "v1", NULL, ERR_NOT_FOUND, "" },
    { HTTP_METHOD_GET, "", NULL, ERR_NOT_FOUND, "" },
    { HTTP_METHOD_GET, "v2 workloads", NULL, ERR_NOT_FOUND, "" },
    { HTTP_METHOD_GET, "v1 workloads wl_1 logs more", NULL, ERR_NOT_FOUND, "" },
    { HTTP_METHOD_GET, "v1 {workload}", NULL, ERR_NOT_FOUND, "" },
};

static void test_matching(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, matchings) {
        struct str rest = str_of(c->path);
        struct str segments[8];
        struct api_request request = { 0 };
        struct error e = { 0 };
        char allow[64];
        size_t count = 0;
        while (rest.size > 0)
            segments[count++] = str_cut(&rest, ' ');
        CHECK(c->path, api_match(c->method, segments, count, &request, allow, &e) == c->rc);
        if (c->pattern != NULL)
            CHECK(c->path, strcmp(request.route->pattern, c->pattern) == 0);
        else
            CHECK(c->path, strcmp(allow, c->allow) == 0 && e.text[0] != '\0');
    }
}

static void test_params(void **state)
{
    (void)state;
    struct str segments[] = { STR("v1"),      STR("nodes"), STR("gpu-1"),
                              STR("devices"), STR("7"),     STR("release") };
    struct api_request request = { 0 };
    struct error e = { 0 };
    char allow[64];

    CHECK_OK("matches", api_match(HTTP_METHOD_POST, segments, 6, &request, allow, &e), &e);
    CHECK("in order", str_is(request.params[0], "gpu-1") && str_is(request.params[1], "7"));
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < route_count; i++) {
        const struct route *r = &routes[i];
        CHECK(r->pattern, r->pattern[0] == '/' && r->summary != NULL && r->tag != NULL);
        CHECK(r->pattern, (r->handle == NULL) == (r->shape == SHAPE_SOCKET));
        CHECK(r->pattern,
              r->shape == SHAPE_SOCKET ? r->status == 101 : r->status >= 200 && r->status < 300);
        CHECK(r->pattern, (r->method == HTTP_METHOD_GET) == (r->finish == NULL));
        CHECK(r->pattern, ((r->flags & ROUTE_STORES) != 0) == (r->stored != NULL));
        CHECK(r->pattern, (r->shape == SHAPE_ONE || r->shape == SHAPE_LIST) == (r->answer != NULL));
        CHECK(r->pattern, r->method != HTTP_METHOD_GET || r->request == NULL);
        for (size_t k = 0; k < i; k++)
            CHECK(r->pattern,
                  r->method != routes[k].method || strcmp(r->pattern, routes[k].pattern) != 0);
    }
}

static void test_every_route_is_described(void **state)
{
    (void)state;
    AUTO(buf) struct buf text = { 0 };
    AUTO(buf) struct buf again = { 0 };
    AUTO(json) json_t *json = NULL;
    struct error e = { 0 };

    api_openapi(STR("0.1.0"), &text);
    api_openapi(STR("0.1.0"), &again);
    CHECK("the same bytes every time", str_eq(buf_str(&text), buf_str(&again)));
    CHECK_OK("is JSON", json_read(buf_str(&text), 0, &json, &e), &e);
    for (size_t i = 0; i < route_count; i++) {
        char method[8] = "";
        const char *name = http_method_name(routes[i].method);
        for (size_t k = 0; name[k] != '\0' && k + 1 < sizeof(method); k++)
            method[k] = (char)(name[k] + ('a' - 'A'));
        const json_t *path = json_object_get(json_object_get(json, "paths"), routes[i].pattern);
        const json_t *operation = json_object_get(path, method);
        CHECK(routes[i].pattern, json_is_object(operation));
        CHECK(routes[i].pattern, json_is_object(json_object_get(operation, "responses")));
    }
}

static void test_permissions(void **state)
{
    (void)state;
    const struct actor nobody = { 0 };
    const struct actor member = { .role = ROLE_MEMBER, .tenant = { 1, 1 } };
    const struct actor admin = { .role = ROLE_ADMIN };
    const struct actor node = { .role = ROLE_NODE };

    for (size_t i = 0; i < route_count; i++) {
        const struct route *r = &routes[i];
        struct error e = { 0 };
        enum err want = route_is_open(r) ? ERR_OK : ERR_UNAUTHENTICATED;
        CHECK(r->pattern, api_permit(r, &nobody, &e) == want);
        CHECK(r->pattern, api_permit(r, &admin, &e) == ERR_OK);
        bool is_for_nodes = route_is_open(r) || (r->flags & ROUTE_OWN) != 0;
        CHECK(r->pattern, (api_permit(r, &node, &e) == ERR_OK) == is_for_nodes);
        if (strncmp(r->pattern, "/v1/nodes", 9) == 0 || strncmp(r->pattern, "/v1/tok", 7) == 0)
            CHECK(r->pattern, api_permit(r, &member, &e) == ERR_DENIED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matching),    cmocka_unit_test(test_params),
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_every_route_is_described),
        cmocka_unit_test(test_permissions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
