#include "unit/api/world.h"

#include <string.h>

#include "unit/test.h"
#include "wire/event_json.h"

enum { SEGMENTS_MAX = 12, PAIRS_MAX = 16 };

/* ---- what the controller would do ---------------------------------------------------------- */

static struct id next_id(void *arg)
{
    struct world *world = arg;

    return (struct id){ 0x1d, ++world->ids };
}

static struct str fake_seal(void *arg, struct arena *arena, struct str secret)
{
    (void)arg;
    return str_of(arena_format(arena, "5ea1ed%zu", secret.size));
}

/* One zone, an hour east of UTC. */
static enum err fake_zone_rule(void *arg, struct str name, struct arena *arena, struct str *out,
                               struct error *e)
{
    (void)arg;
    (void)arena;
    if (!str_is(name, "Etc/East"))
        return err_set(e, ERR_NOT_FOUND, "there is no such zone");
    *out = STR("<+01>-1");
    return ERR_OK;
}

static int64_t fake_blob_size(void *arg, struct id tenant, const struct digest *digest)
{
    (void)arg;
    (void)tenant;
    return digest->bytes[0] == 0xee ? -1 : 42; /* ee...: was collected */
}

static const char *always_fine(void *arg)
{
    (void)arg;
    return NULL;
}

static void fake_metrics(void *arg, struct buf *out)
{
    (void)arg;
    buf_add_text(out, "# HELP berth_requests_total Requests.\n"
                      "# TYPE berth_requests_total counter\nberth_requests_total 1\n");
}

static void store_event(struct world *world, const struct event *event)
{
    AUTO(buf) struct buf body = { 0 };
    char object[ID_TEXT_MAX];
    struct error e = { 0 };

    event_body_encode(event, &body);
    const struct store_event item = { event, buf_str(&body), event_object(event, object) };
    const struct store_batch batch = { .events = &item, .event_count = 1 };
    CHECK_OK("stored", world->store->vtable->append(world->store, &batch, &e), &e);
}

static void apply(struct world *world, struct event *event)
{
    event->sequence = world->state->sequence + 1;
    event->version = 1;
    evolve(world->state, event);
    sched_note(world->sched, event);
    store_event(world, event);
}

static enum err run_command(struct world *world, struct command *command, struct error *e)
{
    struct event_list events = { 0 };

    command->now = (struct mono){ world->seconds * NS_PER_S };
    command->wall = (struct wall){ (1796023707 + world->seconds) * NS_PER_S };
    if (id_is_none(command->request))
        command->request = next_id(world);
    if (id_is_none(command->new_id))
        command->new_id = next_id(world);
    enum err rc = decide(world->state, world->sched, command, &world->events, &events, e);
    for (size_t i = 0; rc == ERR_OK && i < events.count; i++)
        apply(world, &events.items[i]);
    return rc;
}

void world_happen(struct world *world, struct event event)
{
    event.at = (struct mono){ world->seconds * NS_PER_S };
    event.wall = (struct wall){ (1796023707 + world->seconds) * NS_PER_S };
    event.actor = (struct actor){ .role = ROLE_NODE, .name = STR("node-1") };
    event.tenant = world->state->first_tenant->r.id;
    apply(world, &event);
}

void world_schedule(struct world *world)
{
    const struct mono now = { world->seconds * NS_PER_S };
    const struct wall wall = { (1796023707 + world->seconds) * NS_PER_S };
    bool more = true;
    while (more) {
        struct plan plan = { 0 };
        struct event_list events = { 0 };
        sched_clock(world->sched, now, wall);
        more = sched_step(world->sched, now, 1000, &world->events, &plan);
        decide_plan(world->state, &plan, now, wall, &world->events, &events);
        for (size_t i = 0; i < events.count; i++)
            apply(world, &events.items[i]);
    }
}

/* ---- the world ----------------------------------------------------------------------------- */

static void add(struct world *world, struct event event)
{
    event.wall = (struct wall){ 1796023707 * NS_PER_S };
    event.at = (struct mono){ 1 };
    apply(world, &event);
}

static void add_tenant(struct world *world, uint64_t number, const char *name)
{
    struct quota quota = { 0, 2000, UNBOUNDED, UNBOUNDED, 100 };

    add(world, (struct event){ .type = EV_PROJECT_SET,
                               .tenant = { 0x7e, number },
                               .project_set = { .id = { 0x7e, number },
                                                .name = str_of(name),
                                                .path = str_of(name),
                                                .number = (int64_t)number,
                                                .priority = 50,
                                                .quotas = { &quota, 1 } } });
}

static void add_hardware(struct world *world)
{
    struct device_record devices[4] = { 0 };

    for (size_t i = 0; i < COUNT_OF(devices); i++)
        devices[i] = (struct device_record){ .index = (int64_t)i,
                                             .uuid = STR("SIM"),
                                             .model = STR("simulated"),
                                             .memory_mib = 81920,
                                             .is_simulated = true };
    add(world, (struct event){ .type = EV_CLASS_SET,
                               .class_set = { .id = { 0xc1, 1 },
                                              .name = STR("h100-80g"),
                                              .vendor = STR("sim"),
                                              .memory_mib = 81920,
                                              .price_micros_per_hour = 2500000 } });
    add(world, (struct event){ .type = EV_CLASS_SET,
                               .class_set = { .id = { 0xc1, 2 },
                                              .number = 1,
                                              .kind = CLASS_CPU,
                                              .name = STR("cpu-x86"),
                                              .vendor = STR("any") } });
    add(world, (struct event){ .type = EV_POOL_SET,
                               .pool_set = { .id = { 0x90, 1 }, .name = STR("main") } });
    add(world, (struct event){ .type = EV_NODE_SET,
                               .node_set = { .id = { 0x0d, 1 },
                                             .name = STR("node-1"),
                                             .pool = { 0x90, 1 },
                                             .contact = CONTACT_OK,
                                             .agent_version = STR("1"),
                                             .cpu_milli = 32000,
                                             .memory_mib = 262144,
                                             .cpu_class_number = 1,
                                             .devices = { devices, COUNT_OF(devices) } } });
    add(world, (struct event){ .type = EV_NODE_CONTACT,
                               .node_contact = { .node = { 0x0d, 1 }, .contact = CONTACT_OK } });
}

void world_init(struct world *world)
{
    uint64_t epoch = 0;
    struct error e = { 0 };

    *world = (struct world){ .state = state_new(), .store = store_memory_new(), .seconds = 100 };
    CHECK_OK("claimed", world->store->vtable->claim(world->store, 0, &epoch, &e), &e);
    world->query = query_open_memory(world->store);
    world->sched = sched_new(world->state);
    add(world, (struct event){ .type = EV_CONTROLLER_STARTED,
                               .controller_started = { .epoch = epoch, .version = STR("1") } });
    add(world, (struct event){ .type = EV_SETTINGS_CHANGED,
                               .settings = { .grace_s = 60,
                                             .kill_confirm_s = 30,
                                             .start_timeout_s = 300,
                                             .lost_after_s = 120,
                                             .unknown_after_s = 15,
                                             .backoff_base_s = 60,
                                             .backoff_max_s = 3600,
                                             .ended_keep_s = 3600,
                                             .ended_keep_count = 10000 } });
    add_hardware(world);
    add_tenant(world, 1, "amber");
    add_tenant(world, 2, "birch");
    world->actor = actor_admin();
}

void world_done(struct world *world)
{
    api_answer_done(&world->answer);
    json_decref(world->json);
    query_free(world->query);
    sched_free(world->sched);
    state_free(world->state);
    store_free(world->store);
    arena_done(&world->request);
    arena_done(&world->events);
}

struct actor actor_admin(void)
{
    return (struct actor){ .role = ROLE_ADMIN, .name = STR("olga") };
}

struct actor actor_member(const struct world *world, const char *tenant)
{
    const struct project *project = state_project_by_path(world->state, str_of(tenant));

    return (struct actor){
        .role = ROLE_MEMBER, .tenant = project->r.id, .token = { 0x70, 1 }, .name = STR("alice")
    };
}

/* ---- requests ------------------------------------------------------------------------------ */

/* "%2F" becomes "/"; the only escape that tests use. */
static struct str decoded(struct arena *arena, struct str text)
{
    char *out = arena_new(arena, 1, text.size + 1);
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++) {
        bool is_slash = text.size - i >= 3 && memcmp(text.data + i, "%2F", 3) == 0;
        out[size] = text.data[i];
        if (is_slash) {
            out[size] = '/';
            i += 2;
        }
        size++;
    }
    return (struct str){ out, size };
}

static struct api_context context_of(struct world *world, const struct api_ops *ops)
{
    return (struct api_context){ .state = world->state,
                                 .sched = world->sched,
                                 .actor = world->actor,
                                 .now = { world->seconds * NS_PER_S },
                                 .wall = { (1796023707 + world->seconds) * NS_PER_S },
                                 .arena = &world->events,
                                 .version = STR("0.1.0"),
                                 .openapi = STR("{}\n"), /* test_routes.c reads the real one */
                                 .ops = ops };
}

static enum err carry_out(struct world *world, const struct api_request *request,
                          const struct api_context *context, struct error *e)
{
    struct api_result *result = &world->result;
    const struct api_stored stored = { .digest = result->store_body.expected,
                                       .size_bytes = 42,
                                       .manifest = { { 1 } } };
    enum err rc = ERR_OK;

    if (result->outcome == API_STORE_BODY)
        rc = api_stored(request, context, &stored, result, e);
    if (rc == ERR_OK && result->outcome == API_COMMAND) {
        rc = run_command(world, &result->command, e);
        if (rc == ERR_OK)
            rc = api_finish(request, context, result, &world->answer, e);
    } else if (rc == ERR_OK && result->outcome == API_QUERY) {
        rc = api_query_run(&result->query, world->query, &world->answer, e);
    } else if (rc == ERR_OK && result->outcome == API_ANSWER) {
        world->answer = result->answer;
        result->answer = (struct api_answer){ 0 };
    }
    return rc;
}

static enum err handle(struct world *world, struct api_request *request, struct error *e)
{
    const struct api_ops ops = { .arg = world,
                                 .new_id = next_id,
                                 .seal = fake_seal,
                                 .blob_size = fake_blob_size,
                                 .zone_rule = fake_zone_rule,
                                 .health = always_fine,
                                 .readiness = always_fine,
                                 .metrics = fake_metrics };
    const struct api_context context = context_of(world, &ops);
    enum err rc = api_permit(request->route, &world->actor, e);

    if (rc == ERR_OK)
        rc = api_handle(request, &context, &world->result, e);
    if (rc == ERR_OK)
        rc = carry_out(world, request, &context, e);
    return rc;
}

static size_t split(struct arena *arena, struct str path, struct str segments[SEGMENTS_MAX])
{
    size_t count = 0;

    (void)str_cut(&path, '/');
    while (path.size > 0 && count < SEGMENTS_MAX)
        segments[count++] = decoded(arena, str_cut(&path, '/'));
    return count;
}

static size_t split_query(struct arena *arena, struct str query, struct http_pair pairs[PAIRS_MAX])
{
    size_t count = 0;

    while (query.size > 0 && count < PAIRS_MAX) {
        struct str value = str_cut(&query, '&');
        struct str name = str_cut(&value, '=');
        pairs[count++] = (struct http_pair){ name, decoded(arena, value) };
    }
    return count;
}

unsigned world_send(struct world *world, enum http_method method, const char *target,
                    const char *body)
{
    struct http_pair pairs[PAIRS_MAX];
    struct str segments[SEGMENTS_MAX];
    struct str query = str_of(arena_format(&world->events, "%s", target));
    struct str path = str_cut(&query, '?');
    size_t count = split(&world->events, path, segments);
    struct api_request request = { .query = pairs,
                                   .query_count = split_query(&world->events, query, pairs),
                                   .body = str_of(arena_format(&world->events, "%s", body)) };
    char allow[64];

    api_answer_done(&world->answer);
    world->answer = (struct api_answer){ 0 };
    world->result = (struct api_result){ 0 };
    world->error = (struct error){ 0 };
    json_decref(world->json);
    world->json = NULL;
    enum err rc = api_match(method, segments, count, &request, allow, &world->error);
    if (rc == ERR_OK)
        rc = handle(world, &request, &world->error);
    if (rc != ERR_OK)
        api_problem(&world->error, &world->answer);
    api_answer_done(&world->result.answer);
    if (world->answer.body.size > 0)
        (void)!json_read(buf_str(&world->answer.body), 0, &world->json, NULL);
    return world->answer.status;
}

unsigned world_get(struct world *world, const char *target)
{
    return world_send(world, HTTP_METHOD_GET, target, "");
}

unsigned world_post(struct world *world, const char *target, const char *body)
{
    return world_send(world, HTTP_METHOD_POST, target, body);
}

/* ---- answers ------------------------------------------------------------------------------- */

static const json_t *at_path(const struct world *world, const char *path)
{
    const json_t *at = world->json;
    struct str rest = str_of(path);

    while (rest.size > 0 && at != NULL) {
        struct str part = str_cut(&rest, '.');
        int64_t index = 0;
        char name[64] = "";
        memcpy(name, part.data, MIN_OF(part.size, sizeof(name) - 1));
        if (json_is_array(at) && str_to_i64(part, 0, 1000, &index))
            at = json_array_get(at, (size_t)index);
        else
            at = json_object_get(at, name);
    }
    return at;
}

const char *world_text(const struct world *world, const char *path)
{
    const char *text = json_string_value(at_path(world, path));

    return text != NULL ? text : "";
}

int64_t world_number(const struct world *world, const char *path)
{
    const json_t *value = at_path(world, path);

    if (json_is_boolean(value))
        return json_is_true(value) ? 1 : 0;
    return json_is_integer(value) ? json_integer_value(value) : -1;
}
