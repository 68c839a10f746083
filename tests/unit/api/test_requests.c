/* Requests as clients send them: what is answered, what is refused, what others do not see. */
#include <string.h>

#include "unit/api/world.h"
#include "unit/test.h"
#include "wire/hidden.h"

#define SUBMIT                                                                                     \
    "{\"project\":\"amber\",\"name\":\"train\",\"image\":\"debian-12\","                           \
    "\"command\":[\"sleep\",\"60\"],\"gpu_milli\":1000,\"labels\":{\"team\":\"vision\"}}"

static void start(struct world *world)
{
    world_init(world);
    CHECK(
        "an image for all",
        world_post(world, "/v1/images",
                   "{\"name\":\"debian-12\",\"source\":\"registry.example/debian:12\",\"manifest\":"
                   "\"1111111111111111111111111111111111111111111111111111111111111111\"}") == 201);
    world->actor = actor_member(world, "amber");
}

/* A copy that outlives the next request. */
static char *keep(struct world *world, const char *path)
{
    return arena_format(&world->events, "%s", world_text(world, path));
}

static unsigned send_to(struct world *world, enum http_method method, const char *prefix,
                        const char *id, const char *suffix)
{
    return world_send(world, method, arena_format(&world->events, "%s%s%s", prefix, id, suffix),
                      "");
}

/* ---- work ---------------------------------------------------------------------------------- */

static void test_submit(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);

    CHECK(world.error.text, world_post(&world, "/v1/workloads", SUBMIT) == 201);
    CHECK("id", strncmp(world_text(&world, "id"), "wl_", 3) == 0);
    CHECK("location", strncmp(world.answer.location, "/v1/workloads/wl_", 17) == 0);
    CHECK("state", strcmp(world_text(&world, "state"), "queued") == 0);
    CHECK("project by path", strcmp(world_text(&world, "project"), "amber") == 0);
    CHECK("user", strcmp(world_text(&world, "user"), "alice") == 0);
    CHECK("spec", strcmp(world_text(&world, "spec.image"), "debian-12") == 0);
    CHECK("request", world_number(&world, "request.gpu_milli") == 1000);
    CHECK("version", world.answer.version > 0);

    char *id = keep(&world, "id");
    CHECK("is there", send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", id, "") == 200);
    CHECK("explains itself",
          send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", id, "/explain") == 200);
    CHECK("with a cause", world_text(&world, "cause")[0] != '\0');
    CHECK("and its meaning", world_text(&world, "meaning")[0] != '\0');
    CHECK("holds nothing yet",
          send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", id, "/allocations") == 200);
    CHECK("log", send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", id, "/logs?follow=true") == 0 &&
                     world.result.outcome == API_LOG && world.result.log.is_follow);
}

/* Versions are journal sequences: operators see them, tenants only that they are equal or not. */
static void test_hidden_versions(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    CHECK("submitted", world_post(&world, "/v1/workloads", SUBMIT) == 201);
    char *id = keep(&world, "id");
    uint64_t shown = world.answer.version;
    CHECK("the same in body and ETag", world_number(&world, "version") == (int64_t)shown);
    CHECK("in lists as well", world_get(&world, "/v1/workloads") == 200 &&
                                  world_number(&world, "items.0.version") == (int64_t)shown);

    world.actor = actor_admin();
    CHECK("operators", send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", id, "") == 200);
    uint64_t real = world.answer.version;
    CHECK("see the sequence", real > 0 && real <= world.state->sequence);
    CHECK("tenants do not", shown != real);
    CHECK("which is the same one", hidden_reveal(world.state->id_key, shown) == real);
}

static void test_actions(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    CHECK("submitted", world_post(&world, "/v1/workloads", SUBMIT) == 201);
    char *id = keep(&world, "id");

    world.seconds += 100; /* and nothing happens */
    CHECK("how long is by now", send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", id, "") == 200 &&
                                    world_number(&world, "queued_s") == 100);
    CHECK("held", send_to(&world, HTTP_METHOD_POST, "/v1/workloads/", id, "/hold") == 200);
    CHECK("held", strcmp(world_text(&world, "state"), "held") == 0);
    CHECK("released", send_to(&world, HTTP_METHOD_POST, "/v1/workloads/", id, "/release") == 200);
    CHECK("queued", strcmp(world_text(&world, "state"), "queued") == 0);
    CHECK("cancelled", send_to(&world, HTTP_METHOD_POST, "/v1/workloads/", id, "/cancel") == 200);
    CHECK("cancelled", strcmp(world_text(&world, "state"), "cancelled") == 0);
    CHECK("cause", strcmp(world_text(&world, "cause"), "user_cancelled") == 0);
    CHECK("a misspelt field of an action",
          world_post(&world, arena_format(&world.events, "/v1/workloads/%s/cancel", id),
                     "{\"reson\":\"x\"}") == 400);
    CHECK("names it", strcmp(world_text(&world, "field"), "reson") == 0);
}

static void test_arrays(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);

    CHECK("submitted", world_post(&world, "/v1/workloads",
                                  "{\"project\":\"amber\",\"image\":\"debian-12\",\"command\":"
                                  "[\"true\"],\"count\":5}") == 201);
    char *array = keep(&world, "array");
    CHECK("an array's id", strncmp(array, "arr_", 4) == 0);
    CHECK("lists elements",
          send_to(&world, HTTP_METHOD_GET, "/v1/workloads?array=", array, "") == 200);
    CHECK("all of them", json_array_size(json_object_get(world.json, "items")) == 5);
    CHECK("cancels all",
          send_to(&world, HTTP_METHOD_POST, "/v1/workloads/", array, "/cancel") == 200);
    CHECK("lists", world_get(&world, "/v1/workloads?state=cancelled") == 200);
    CHECK("all of them", json_array_size(json_object_get(world.json, "items")) == 5);
}

static void test_pages(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    char *ids[7];
    size_t seen = 0;

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        CHECK("submitted", world_post(&world, "/v1/workloads", SUBMIT) == 201);
        ids[i] = keep(&world, "id");
    }
    const char *target = "/v1/workloads?limit=3";
    for (int page = 0; page < 3; page++) {
        CHECK("page", world_get(&world, target) == 200);
        const json_t *items = json_object_get(world.json, "items");
        for (size_t i = 0; i < json_array_size(items); i++) {
            const char *id = json_string_value(json_object_get(json_array_get(items, i), "id"));
            CHECK("the newest first", strcmp(id, ids[COUNT_OF(ids) - 1 - seen]) == 0);
            seen++;
        }
        CHECK("next", (world_text(&world, "next")[0] != '\0') == (page < 2));
        target = arena_format(&world.events, "/v1/workloads?limit=3&after=%s",
                              world_text(&world, "next"));
    }
    CHECK("each once", seen == COUNT_OF(ids));
    CHECK("a bad cursor", world_get(&world, "/v1/workloads?after=x") == 400);
    CHECK("a bad limit", world_get(&world, "/v1/workloads?limit=0") == 400);
    CHECK("a bad limit", world_get(&world, "/v1/workloads?limit=1001") == 400);
}

static void test_filters(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    CHECK("submitted", world_post(&world, "/v1/workloads", SUBMIT) == 201);
    static const struct filter_case {
        const char *query;
        size_t rows;
    } cases[] = {
        { "state=queued", 1 },      { "state=running", 0 },
        { "state=held,queued", 1 }, { "label=team=vision", 1 },
        { "label=team=audio", 0 },  { "user=alice", 1 },
        { "user=bob", 0 },          { "project=amber", 1 },
        { "tenant=amber", 1 },      { "array=arr_00000000000000000000000001", 0 },
    };
    FOR_EACH_CASE (c, cases) {
        CHECK(c->query,
              world_get(&world, arena_format(&world.events, "/v1/workloads?%s", c->query)) == 200);
        CHECK(c->query, json_array_size(json_object_get(world.json, "items")) == c->rows);
    }
    CHECK("no such state", world_get(&world, "/v1/workloads?state=dancing") == 400);
    CHECK("no value", world_get(&world, "/v1/workloads?label=nothing") == 400);
    CHECK("no such parameter", world_get(&world, "/v1/workloads?statee=queued") == 400);
    CHECK("twice", world_get(&world, "/v1/workloads?user=a&user=b") == 400);
    CHECK("lists leave specs out", world_get(&world, "/v1/workloads") == 200 &&
                                       world_text(&world, "items.0.spec.image")[0] == '\0');
}

static const struct bad_submit {
    const char *name;
    const char *body;
    unsigned status;
    const char *field;
} bad_submits[] = {
    { "no body", "", 400, "project" },
    { "no JSON", "{", 400, "" },
    { "an unknown field", "{\"project\":\"amber\",\"gpus\":1}", 400, "gpus" },
    { "a fraction as a number", "{\"project\":\"amber\",\"gpu_milli\":0.5}", 400, "gpu_milli" },
    { "somebody else's project",
      "{\"project\":\"birch\",\"image\":\"debian-12\",\"command\":"
      "[\"true\"]}",
      404, "" },
    { "no project at all", "{\"project\":\"cedar\",\"image\":\"debian-12\",\"command\":[\"true\"]}",
      404, "" },
};

static void test_bad_submits(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    FOR_EACH_CASE (c, bad_submits) {
        CHECK(c->name, world_post(&world, "/v1/workloads", c->body) == c->status);
        CHECK(c->name, strcmp(world_text(&world, "field"), c->field) == 0);
        CHECK(c->name, strcmp(world.answer.content_type, "application/problem+json") == 0);
        CHECK(c->name, world_number(&world, "status") == (int64_t)c->status);
        CHECK(c->name, world_text(&world, "cause")[0] != '\0');
    }
    CHECK("nothing was made", world.state->workload_count == 0);
}

static void test_history(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    CHECK("submitted", world_post(&world, "/v1/workloads", SUBMIT) == 201);
    char *id = keep(&world, "id");
    CHECK("cancelled", send_to(&world, HTTP_METHOD_POST, "/v1/workloads/", id, "/cancel") == 200);

    CHECK(world.error.text, world_get(&world, "/v1/workloads?history=true") == 200);
    CHECK("one row", json_array_size(json_object_get(world.json, "items")) == 1);
    CHECK("the one", strcmp(world_text(&world, "items.0.id"), id) == 0);
    CHECK("as it ended", strcmp(world_text(&world, "items.0.state"), "cancelled") == 0);
    CHECK("with its class by name or none",
          world_number(&world, "items.0.request.gpu_milli") == 1000);
}

static void test_history_filters(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        size_t count;
    } cases[] = {
        { "", 4 },
        { "&state=cancelled", 4 },
        { "&state=succeeded,failed", 0 },
        { "&label=kind=blue", 2 },
        { "&label=kind=red", 1 },
        { "&label=kind=blue&limit=1", 1 },
        { "&label=other=blue", 0 },
        { "&user=nobody", 0 },
        { "&array=arr_00000000000000000000000000", 0 },
        { "&project=amber", 4 },
        { "&project=amber&label=kind=blue", 2 },
    };
    static const char *const labels[] = { "blue", "red", "blue", "green" };
    AUTO(world) struct world world;
    start(&world);
    for (size_t i = 0; i < COUNT_OF(labels); i++) {
        char body[256];
        (void)snprintf(
            body, sizeof(body),
            "{\"project\":\"amber\",\"image\":\"debian-12\",\"command\":[\"x\"],\"labels\":{"
            "\"kind\":\"%s\"}}",
            labels[i]);
        CHECK("submitted", world_post(&world, "/v1/workloads", body) == 201);
        char *id = keep(&world, "id");
        CHECK("cancelled",
              send_to(&world, HTTP_METHOD_POST, "/v1/workloads/", id, "/cancel") == 200);
    }
    FOR_EACH_CASE (c, cases) {
        char target[256];
        (void)snprintf(target, sizeof(target), "/v1/workloads?history=true%s", c->query);
        CHECK(c->query, world_get(&world, target) == 200);
        CHECK(c->query, json_array_size(json_object_get(world.json, "items")) == c->count);
    }
    CHECK("refused as for the others",
          world_get(&world, "/v1/workloads?history=true&state=nonesuch") == 400);

    /* A page that is filtered ends where its last row is. */
    CHECK("first page",
          world_get(&world, "/v1/workloads?history=true&label=kind=blue&limit=1") == 200);
    char next[256];
    (void)snprintf(next, sizeof(next),
                   "/v1/workloads?history=true&label=kind=blue&limit=1&after=%s",
                   world_text(&world, "next"));
    CHECK("second page", world_get(&world, next) == 200);
    CHECK("has the other", json_array_size(json_object_get(world.json, "items")) == 1);
    (void)snprintf(next, sizeof(next),
                   "/v1/workloads?history=true&label=kind=blue&limit=1&after=%s",
                   world_text(&world, "next"));
    CHECK("third page", world_get(&world, next) == 200);
    CHECK("is empty and the last", json_array_size(json_object_get(world.json, "items")) == 0 &&
                                       json_object_get(world.json, "next") == NULL);
}

/* ---- what others see ----------------------------------------------------------------------- */

/* The answers to a foreign object and to one that never was differ only in the id they repeat. */
static void test_foreign_is_absent(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    CHECK("submitted", world_post(&world, "/v1/workloads", SUBMIT) == 201);
    char *id = keep(&world, "id");
    CHECK("volume", world_post(&world, "/v1/volumes", "{\"name\":\"data\"}") == 201);
    char *volume = keep(&world, "id");
    static const char none[] = "wl_0000000000000000000000zzzz";
    static const char *const suffixes[] = { "", "/explain", "/allocations" };

    world.actor = actor_member(&world, "birch");
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        unsigned foreign = send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", id, suffixes[i]);
        char *text = keep(&world, "detail");
        unsigned absent = send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", none, suffixes[i]);
        CHECK("status", foreign == 404 && absent == 404);
        CHECK("text", strlen(text) == strlen(world_text(&world, "detail")) &&
                          strncmp(text, world_text(&world, "detail"), 20) == 0);
    }
    CHECK("cancel", send_to(&world, HTTP_METHOD_POST, "/v1/workloads/", id, "/cancel") == 404);
    CHECK("logs", send_to(&world, HTTP_METHOD_GET, "/v1/workloads/", id, "/logs") == 404);
    CHECK("volume", send_to(&world, HTTP_METHOD_GET, "/v1/volumes/", volume, "") == 404);
    CHECK("volume by name", world_get(&world, "/v1/volumes/data") == 404);
    CHECK("its tenant by name", world_get(&world, "/v1/volumes/data?tenant=amber") == 404);
    CHECK("list", world_get(&world, "/v1/workloads") == 200 &&
                      json_array_size(json_object_get(world.json, "items")) == 0);
    CHECK("list of a foreign tenant", world_get(&world, "/v1/workloads?tenant=amber") == 404);
    CHECK("tenants", world_get(&world, "/v1/tenants") == 200 &&
                         json_array_size(json_object_get(world.json, "items")) == 1);
    CHECK("invoice", world_get(&world, "/v1/invoice?tenant=amber") == 404);
    CHECK("own invoice", world_get(&world, "/v1/invoice") == 200 &&
                             strcmp(world_text(&world, "tenant"), "birch") == 0);
    CHECK("usage", world_get(&world, "/v1/usage?project=amber") == 404);
    CHECK("feed", world_get(&world, "/v1/events?tenant=amber") == 404);
    CHECK("own feed", world_get(&world, "/v1/events?after=7") == 0 &&
                          world.result.outcome == API_FEED &&
                          world.result.feed.view == FEED_TENANT && world.result.feed.after == 7 &&
                          id_eq(world.result.feed.tenant, world.actor.tenant));
    CHECK("nodes are the operator's", world_get(&world, "/v1/nodes") == 403);
}

/* Who belongs to no tenant may leave it out where one name is one thing. */
static void test_unique_names(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    CHECK("one", world_post(&world, "/v1/volumes", "{\"name\":\"data\"}") == 201);
    struct actor ann = world.actor;
    world.actor = (struct actor){ .role = ROLE_ADMIN, .name = STR("root") };
    CHECK("it is meant", world_get(&world, "/v1/volumes/data") == 200);
    CHECK("another",
          world_post(&world, "/v1/volumes", "{\"name\":\"data\",\"tenant\":\"birch\"}") == 201);
    CHECK("which is not said", world_get(&world, "/v1/volumes/data") == 400);
    CHECK("the field is", strcmp(world_text(&world, "field"), "tenant") == 0);
    CHECK("now it is", world_get(&world, "/v1/volumes/data?tenant=birch") == 200);
    world.actor = ann;
    CHECK("a tenant's own is its only one", world_get(&world, "/v1/volumes/data") == 200);
}

/* ---- operators ----------------------------------------------------------------------------- */

static void test_projects(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world);

    CHECK("tenant", world_post(&world, "/v1/tenants", "{\"path\":\"cedar\"}") == 201);
    CHECK("its id", strncmp(world_text(&world, "id"), "ten_", 4) == 0);
    CHECK("a tenant is no path", world_post(&world, "/v1/tenants", "{\"path\":\"a/b\"}") == 400);
    CHECK("project", world_post(&world, "/v1/projects",
                                "{\"path\":\"amber/vision\",\"quotas\":[{\"class\":\"h100-80g\","
                                "\"quota_milli\":1000,\"limit_milli\":3000}]}") == 201);
    CHECK("its id", strncmp(world_text(&world, "id"), "prj_", 4) == 0);
    CHECK("class by name", strcmp(world_text(&world, "quotas.0.class"), "h100-80g") == 0);
    CHECK("limit", world_number(&world, "quotas.0.limit_milli") == 3000);
    CHECK("again", world_post(&world, "/v1/projects", "{\"path\":\"amber/vision\"}") == 409);
    CHECK("by path", world_get(&world, "/v1/projects/amber%2Fvision") == 200);
    CHECK("below", world_get(&world, "/v1/projects?path=amber") == 200 &&
                       json_array_size(json_object_get(world.json, "items")) == 2);
    CHECK("changed", world_send(&world, HTTP_METHOD_PATCH, "/v1/projects/amber%2Fvision",
                                "{\"priority\":70}") == 200 &&
                         world_number(&world, "priority") == 70);
    CHECK("not moved", world_send(&world, HTTP_METHOD_PATCH, "/v1/projects/amber%2Fvision",
                                  "{\"path\":\"amber/nlp\"}") == 400);
    CHECK("a dry run is refused as the real one",
          world_send(&world, HTTP_METHOD_DELETE, "/v1/tenants/amber?dry_run=true", "") == 409 &&
              world_send(&world, HTTP_METHOD_DELETE, "/v1/tenants/amber", "") == 409);
    CHECK("a dry run", world_send(&world, HTTP_METHOD_DELETE,
                                  "/v1/projects/amber%2Fvision?dry_run=true", "") == 204 &&
                           world_get(&world, "/v1/projects/amber%2Fvision") == 200);
    CHECK("removed",
          world_send(&world, HTTP_METHOD_DELETE, "/v1/projects/amber%2Fvision", "") == 204);
    CHECK("gone", world_get(&world, "/v1/projects/amber%2Fvision") == 404);
}

static void test_catalog(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world);

    CHECK("class", world_get(&world, "/v1/classes/h100-80g") == 200);
    CHECK("capacity", world_number(&world, "capacity_milli") == 4000 &&
                          world_number(&world, "quota_milli") == 4000);
    CHECK("made",
          world_send(&world, HTTP_METHOD_PUT, "/v1/classes/l40s",
                     "{\"kind\":\"gpu\",\"vendor\":\"nvidia\",\"memory_mib\":46068}") == 200);
    CHECK("changed", world_send(&world, HTTP_METHOD_PUT, "/v1/classes/l40s",
                                "{\"price_micros_per_hour\":900000}") == 200 &&
                         world_number(&world, "memory_mib") == 46068);
    CHECK("two names",
          world_send(&world, HTTP_METHOD_PUT, "/v1/classes/l40s", "{\"name\":\"l4\"}") == 400);
    CHECK("pool", world_send(&world, HTTP_METHOD_PUT, "/v1/pools/spare",
                             "{\"class\":\"l40s\",\"site\":\"native\"}") == 200 &&
                      strcmp(world_text(&world, "class"), "l40s") == 0);
    CHECK("profile",
          world_send(&world, HTTP_METHOD_PUT, "/v1/profiles/gpu-2",
                     "{\"gpu_milli\":2000,\"classes\":[\"l40s\"],\"pools\":[\"spare\"]}") == 200 &&
              strcmp(world_text(&world, "request.classes.0"), "l40s") == 0);
    CHECK("in use", world_send(&world, HTTP_METHOD_DELETE, "/v1/pools/spare", "") == 409);
    CHECK("removed", world_send(&world, HTTP_METHOD_DELETE, "/v1/profiles/gpu-2", "") == 204 &&
                         world_send(&world, HTTP_METHOD_DELETE, "/v1/pools/spare", "") == 204);
    CHECK("list", world_get(&world, "/v1/classes?limit=2") == 200 &&
                      json_array_size(json_object_get(world.json, "items")) == 2);
    CHECK("settings", world_send(&world, HTTP_METHOD_PATCH, "/v1/settings",
                                 "{\"grace_s\":45,\"placement\":\"best_fit\"}") == 200 &&
                          strcmp(world_text(&world, "placement"), "best_fit") == 0 &&
                          world_number(&world, "grace_s") == 45 &&
                          world_number(&world, "kill_confirm_s") == 30);
    CHECK("a policy that is none", world_send(&world, HTTP_METHOD_PATCH, "/v1/settings",
                                              "{\"placement\":\"worst_fit\"}") == 400 &&
                                       strcmp(world_text(&world, "field"), "placement") == 0);
    world.actor = actor_member(&world, "amber");
    CHECK("members read", world_get(&world, "/v1/classes") == 200);
    CHECK("and change nothing",
          world_send(&world, HTTP_METHOD_PUT, "/v1/classes/l40s", "{}") == 403);
}

static void test_nodes(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world);

    CHECK("list", world_get(&world, "/v1/nodes?pool=main&contact=ok") == 200 &&
                      strcmp(world_text(&world, "items.0.name"), "node-1") == 0);
    CHECK("devices", json_array_size(json_object_get(
                         json_array_get(json_object_get(world.json, "items"), 0), "devices")) == 4);
    CHECK("cordon",
          world_post(&world, "/v1/nodes/node-1/cordon", "{\"reason\":\"cables\"}") == 200);
    CHECK("is not usable", world_number(&world, "is_usable") == 0);
    CHECK("why", strcmp(world_text(&world, "holds.0.reason"), "cables") == 0);
    CHECK("uncordon", world_post(&world, "/v1/nodes/node-1/uncordon", "") == 200 &&
                          world_number(&world, "is_usable") == 1);
    CHECK("drain", world_post(&world, "/v1/nodes/node-1/drain", "{\"deadline_s\":600}") == 200);
    CHECK("undrain", world_post(&world, "/v1/nodes/node-1/undrain", "") == 200);
    CHECK("hold a device",
          world_post(&world, "/v1/nodes/node-1/devices/2/hold", "{\"reason\":\"XID 79\"}") == 200 &&
              world_number(&world, "is_usable") == 0 && world_number(&world, "index") == 2);
    CHECK("release it", world_post(&world, "/v1/nodes/node-1/devices/2/release", "") == 200);
    CHECK("no such device", world_post(&world, "/v1/nodes/node-1/devices/9/hold", "") == 404);
    CHECK("no number", world_post(&world, "/v1/nodes/node-1/devices/x/hold", "") == 404);
    CHECK("no such node", world_post(&world, "/v1/nodes/node-9/drain", "") == 404);
    CHECK("devices of all", world_get(&world, "/v1/devices?class=h100-80g&limit=3") == 200);
    const char *next =
        arena_format(&world.events, "/v1/devices?after=%s", world_text(&world, "next"));
    CHECK("next page", world_get(&world, next) == 200 &&
                           json_array_size(json_object_get(world.json, "items")) == 1);
    CHECK("removed", world_send(&world, HTTP_METHOD_DELETE, "/v1/nodes/node-1", "") == 204);
}

static void test_tokens(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world);

    CHECK(world.error.text,
          world_post(&world, "/v1/tokens",
                     "{\"name\":\"ci\",\"tenant\":\"amber\",\"user\":\"bob\"}") == 201);
    char *id = keep(&world, "id");
    CHECK("the secret, once", strncmp(world_text(&world, "secret"), "berth_", 6) == 0);
    CHECK("role", strcmp(world_text(&world, "role"), "member") == 0);
    CHECK("again", send_to(&world, HTTP_METHOD_GET, "/v1/tokens/", id, "") == 200);
    CHECK("never again", world_text(&world, "secret")[0] == '\0');
    CHECK("nor its digest", strstr(world.answer.body.data, "secret") == NULL);
    CHECK("join", world_post(&world, "/v1/join-tokens", "{\"pool\":\"main\"}") == 201 &&
                      strcmp(world_text(&world, "role"), "node_join") == 0 &&
                      world_text(&world, "expires")[0] != '\0');
    CHECK("not as an admin", world_post(&world, "/v1/join-tokens", "{\"role\":\"admin\"}") == 400);
    CHECK("revoked", send_to(&world, HTTP_METHOD_DELETE, "/v1/tokens/", id, "") == 204);
    CHECK("shown as revoked", send_to(&world, HTTP_METHOD_GET, "/v1/tokens/", id, "") == 200 &&
                                  world_number(&world, "is_revoked") == 1);
    CHECK("list", world_get(&world, "/v1/tokens") == 200 &&
                      json_array_size(json_object_get(world.json, "items")) == 2);
}

/* ---- what tenants have --------------------------------------------------------------------- */

static void test_belongings(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    static const char upload[] =
        "/v1/uploads/2222222222222222222222222222222222222222222222222222222222222222";

    CHECK("images for all are seen", world_get(&world, "/v1/images/debian-12") == 200);
    CHECK("own image", world_send(&world, HTTP_METHOD_PUT, "/v1/images/mine/content", "") == 200 &&
                           strcmp(world_text(&world, "tenant"), "amber") == 0);
    CHECK("credential", world_post(&world, "/v1/credentials",
                                   "{\"registry\":\"ghcr.io\",\"username\":\"u\","
                                   "\"password\":\"hunter2\"}") == 201);
    CHECK("no password", strstr(world.answer.body.data, "hunter2") == NULL &&
                             strstr(world.answer.body.data, "5ea1ed") == NULL);
    CHECK("sealed", str_starts(world.result.command.credential_set.sealed, STR("5ea1ed")));
    CHECK("list", world_get(&world, "/v1/credentials") == 200 &&
                      strstr(world.answer.body.data, "5ea1ed") == NULL);
    CHECK("a hook",
          world_post(&world, "/v1/hooks",
                     "{\"name\":\"ops\",\"project\":\"amber\",\"url\":"
                     "\"https://example.org/x\",\"secret\":\"hunter2hunter2hunter2\"}") == 201);
    CHECK("no secret", strstr(world.answer.body.data, "hunter2") == NULL &&
                           strstr(world.answer.body.data, "5ea1ed") == NULL);
    CHECK("a secret that can be guessed",
          world_post(&world, "/v1/hooks",
                     "{\"name\":\"o\",\"project\":\"amber\",\"url\":"
                     "\"https://example.org/x\",\"secret\":\"hunter2\"}") == 400);
    CHECK("hooks", world_get(&world, "/v1/hooks") == 200 &&
                       strstr(world.answer.body.data, "https://example.org/x") != NULL &&
                       strstr(world.answer.body.data, "5ea1ed") == NULL);
    CHECK("upload", world_send(&world, HTTP_METHOD_PUT, upload, "") == 200 &&
                        world_number(&world, "size_bytes") == 42);
    CHECK("is there", world_get(&world, upload) == 200);
    CHECK("bytes", send_to(&world, HTTP_METHOD_GET, upload, "/content", "") == 0 &&
                       world.result.outcome == API_BLOB);
    CHECK("no digest", world_send(&world, HTTP_METHOD_PUT, "/v1/uploads/xyz", "") == 400);
    world.actor = actor_member(&world, "birch");
    CHECK("others do not have it", world_get(&world, upload) == 404);
    CHECK("nor the image", world_get(&world, "/v1/images/mine") == 404);
    world.actor = actor_admin();
    CHECK("operators name a tenant", world_send(&world, HTTP_METHOD_PUT, upload, "") == 400);
    CHECK("volumes of a tenant", world_get(&world, "/v1/volumes?tenant=amber") == 200);
}

static void test_reports(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    start(&world);
    CHECK("submitted", world_post(&world, "/v1/workloads", SUBMIT) == 201);

    CHECK("whoami", world_get(&world, "/v1/whoami") == 200 &&
                        strcmp(world_text(&world, "user"), "alice") == 0 &&
                        strcmp(world_text(&world, "tenant"), "amber") == 0);
    CHECK("status of a member",
          world_get(&world, "/v1/status") == 200 && world_number(&world, "tenants") == 1 &&
              world_number(&world, "workloads_queued") == 1 && world_number(&world, "nodes") == 0);
    CHECK("usage", world_get(&world, "/v1/usage") == 200);
    CHECK("segments", world_get(&world, "/v1/usage/segments") == 200);
    CHECK("audit is the operator's", world_get(&world, "/v1/audit") == 403);
    world.actor = actor_admin();
    CHECK("status", world_get(&world, "/v1/status") == 200 && world_number(&world, "nodes") == 1 &&
                        world_number(&world, "tenants") == 2);
    CHECK(world.error.text, world_get(&world, "/v1/audit?limit=2") == 200);
    CHECK("the newest first",
          strcmp(world_text(&world, "items.0.verb"), "workload_submitted") == 0);
    CHECK("who", strcmp(world_text(&world, "items.0.actor"), "alice") == 0);
    CHECK("what", strcmp(world_text(&world, "items.0.data.name"), "train") == 0);
    CHECK("next", world_text(&world, "next")[0] != '\0');
    CHECK("invoice needs a tenant", world_get(&world, "/v1/invoice") == 400);
    CHECK("health", world_get(&world, "/healthz") == 200 && world_get(&world, "/readyz") == 200);
    CHECK("OpenAPI", world_get(&world, "/openapi.json") == 200 && world.json != NULL);
    CHECK("metrics", world_get(&world, "/metrics") == 200);
    CHECK("feed of operators", world_get(&world, "/v1/events") == 0 &&
                                   world.result.feed.view == FEED_OPERATOR &&
                                   !world.result.feed.has_after);
    CHECK("no such path", world_get(&world, "/v1/nothing") == 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_submit),
        cmocka_unit_test(test_actions),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_bad_submits),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_history_filters),
        cmocka_unit_test(test_foreign_is_absent),
        cmocka_unit_test(test_unique_names),
        cmocka_unit_test(test_hidden_versions),
        cmocka_unit_test(test_projects),
        cmocka_unit_test(test_catalog),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_belongings),
        cmocka_unit_test(test_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
