/* What each event does to the state: stamps, counters, links, totals. One story a test. */
#include <string.h>

#include "unit/model/dump.h"
#include "unit/model/world.h"
#include "unit/test.h"

static const struct id none;

/* Class 0, a pool, a node, tenant amber with amber/vision below it. */
struct cast {
    struct id class, pool, node, tenant, project;
};

static struct cast cast_of(struct world *world)
{
    struct cast cast = { .class = world_class(world, "h100-80g") };
    cast.pool = world_pool(world, "main", 0);
    cast.node = world_node(world, "node-1", cast.pool);
    cast.tenant = world_project(world, none, "amber");
    cast.project = world_project(world, cast.tenant, "vision");
    return cast;
}

static void test_controller_started(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    CHECK("takes the epoch", world.state->epoch == 1);
    CHECK("takes the key", world.state->id_key[2] == 3);
    world_apply(&world, (struct event){ .type = EV_CONTROLLER_STARTED,
                                        .controller_started = { 9, { 7, 7, 7 }, STR("1.1") } });
    CHECK("a later start raises the epoch", world.state->epoch == 9);
    CHECK("the key of the first start stays", world.state->id_key[2] == 3);
}

static void test_settings(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    const struct settings_record *settings = &world.state->settings;
    CHECK("a new state has the defaults", settings->grace_s == 60 && settings->lost_after_s == 120);
    CHECK("and no version of them", settings->version == 0);
    struct settings_record changed = *settings;
    changed.grace_s = 5;
    changed.version = 77;
    world_apply(&world, (struct event){ .type = EV_SETTINGS_CHANGED, .settings = changed });
    CHECK("takes what is new", settings->grace_s == 5);
    CHECK("the version is the sequence", settings->version == world.state->sequence);
}

static void test_time_never_goes_back(void **state)
{
    (void)state;
    AUTO(state) struct state *s = state_new();
    struct event event = { .sequence = 1,
                           .type = EV_SETTINGS_CHANGED,
                           .at = { 500 },
                           .wall = { 900 },
                           .settings = s->settings };
    evolve(s, &event);
    event.sequence = 2;
    event.at.ns = 400;
    event.wall.ns = 100;
    evolve(s, &event);
    CHECK("ledger time stays", s->now.ns == 500);
    CHECK("wall time is what the clock said", s->wall.ns == 100);
    CHECK("the sequence goes on", s->sequence == 2);
}

static void test_classes(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct id first = world_class(&world, "h100-80g");
    (void)world_class(&world, "cpu-x86");
    CHECK("is found by number", id_eq(state_class(world.state, 0)->r.id, first));
    CHECK("is found by name", state_class_by_name(world.state, STR("cpu-x86"))->r.number == 1);
    CHECK("there is no third", state_class(world.state, 2) == NULL);
    CHECK("nor a negative one", state_class(world.state, -1) == NULL);
    world_remove(&world, EV_CLASS_REMOVED, first);
    CHECK("a removed class has no name", state_class_by_name(world.state, STR("h100-80g")) == NULL);
    CHECK("but keeps its number", state_class(world.state, 0)->is_removed);
    CHECK("and has a new version", state_class(world.state, 0)->r.version == world.state->sequence);
    (void)world_class(&world, "h100-80g");
    CHECK("the name may come back with a new number",
          state_class_by_name(world.state, STR("h100-80g"))->r.number == 2);
}

static void test_class_comes_back(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct id id = world_class(&world, "h100-80g");
    struct class_record r = { .id = id, .name = STR("h100-94g"), .price_micros_per_hour = 5 };
    world_remove(&world, EV_CLASS_REMOVED, id);
    world_apply(&world, (struct event){ .type = EV_CLASS_SET, .class_set = r });
    CHECK("set again, it is there again",
          state_class_by_name(world.state, STR("h100-94g")) == state_class(world.state, 0));
    CHECK("with what is new", state_class(world.state, 0)->r.price_micros_per_hour == 5);
}

static void test_projects(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    struct project *amber = state_project(world.state, cast.tenant);
    struct project *vision = state_project_by_path(world.state, STR("amber/vision"));
    CHECK("hangs on its parent", vision->parent == amber && amber->first_child == vision);
    CHECK("knows its tenant", vision->tenant == amber && amber->tenant == amber);
    CHECK("is stamped", vision->r.created_sequence == world.state->sequence &&
                            vision->r.created.ns == world.state->wall.ns);
    CHECK("is within its tenant", project_is_within(vision, amber));
    CHECK("is within itself", project_is_within(vision, vision));
    CHECK("the tenant is not within it", !project_is_within(amber, vision));

    struct id other = world_project(&world, none, "birch");
    CHECK("tenant numbers go up", state_project(world.state, other)->r.number == 1);
    CHECK("pre-order: child first", project_next(amber) == vision);
    CHECK("then the sibling", project_next(vision) == state_project(world.state, other));
    CHECK("then the end", project_next(state_project(world.state, other)) == NULL);
    world_remove(&world, EV_PROJECT_REMOVED, other);
    other = world_project(&world, none, "birch");
    CHECK("a number is never used again", state_project(world.state, other)->r.number == 2);
}

static void test_update_keeps_facts(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    struct project *project = state_project(world.state, cast.project);
    uint64_t created = project->r.created_sequence;

    /* An after-image borrowed from the very object it replaces, with its history forgotten. */
    struct project_record image = project->r;
    struct quota quota = { 0, 4000, 1000, 8000, 50 };
    image.quotas = (struct quota_list){ &quota, 1 };
    image.priority = 900;
    image.created_sequence = 0;
    image.usage = (struct usage_list){ 0 };
    world_apply(&world, (struct event){ .type = EV_PROJECT_SET, .project_set = image });
    CHECK("takes the amounts", project_quota(project, 0).quota_milli == 4000);
    CHECK("takes the priority", project->r.priority == 900);
    CHECK("keeps when it was made", project->r.created_sequence == created);
    CHECK("has a new version", project->r.version == world.state->sequence);
    CHECK("is still found by path",
          state_project_by_path(world.state, STR("amber/vision")) == project);
    image = project->r; /* borrows the quotas of the state */
    world_apply(&world, (struct event){ .type = EV_PROJECT_SET, .project_set = image });
    CHECK("keeps what it borrowed from itself", project_quota(project, 0).limit_milli == 8000);
}

static void test_creation_begins_at_zero(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct usage_total past = { .class_number = 1, .segments = 9 };
    struct project_record r = { .id = { 4, 4 },
                                .name = STR("amber"),
                                .path = STR("amber"),
                                .usage = { &past, 1 },
                                .feed_sequence = 77 };
    world_apply(&world, (struct event){ .type = EV_PROJECT_SET, .project_set = r });
    const struct project *project = state_project(world.state, r.id);
    CHECK("a new project has used nothing", project->r.usage.count == 0);
    CHECK("and its feed is empty", project->last_sequence == 0);
}

static void test_quota_defaults(void **state)
{
    (void)state;
    struct project project = { 0 };
    struct quota quota = project_quota(&project, 3);
    CHECK("names the class", quota.class_number == 3);
    CHECK("guarantees nothing", quota.quota_milli == 0);
    CHECK("lends all of it", quota.lend_limit_milli == UNBOUNDED);
    CHECK("has no ceiling", quota.limit_milli == UNBOUNDED);
    CHECK("has the common weight", quota.over_quota_weight == 100);
}

static void test_log_limits(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t quotas[3], days[3]; /* of the tenant, its project and the one below */
        struct log_limits wanted;
    } cases[] = {
        { "nobody sets any", { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0 } },
        { "the tenant's hold below", { 64, 0, 0 }, { 7, 0, 0 }, { 64, 7 } },
        { "the nearest holds", { 64, 32, 0 }, { 7, 90, 1 }, { 32, 1 } },
        { "each by itself", { 64, 0, 16 }, { 0, 5, 0 }, { 16, 5 } },
    };
    FOR_EACH_CASE (c, cases) {
        struct project projects[3] = { { .parent = NULL } };
        for (size_t i = 0; i < COUNT_OF(projects); i++) {
            projects[i].parent = i > 0 ? &projects[i - 1] : NULL;
            projects[i].r.log_quota_mib = c->quotas[i];
            projects[i].r.log_days = c->days[i];
        }
        struct log_limits got = project_log_limits(&projects[2]);
        CHECK(c->name, got.quota_mib == c->wanted.quota_mib && got.days == c->wanted.days);
    }
}

static void test_feed(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    struct project *tenant = state_project(world.state, cast.tenant);
    CHECK("its creation and its child's", tenant->last_sequence == 2);
    struct id other = world_project(&world, none, "birch");
    struct id workload = world_submit(&world, cast.project);
    CHECK("events of others do not count", tenant->last_sequence == 3);
    CHECK("projects have no feed", state_project(world.state, cast.project)->last_sequence == 0);
    AUTO(state) struct state *copy = restore_copy(world.state);
    CHECK("a snapshot keeps it", state_project(copy, cast.tenant)->last_sequence == 3);
    world_workload(&world, workload, WL_CANCELLED);
    world_remove(&world, EV_PROJECT_REMOVED, other);
    CHECK("goes on", tenant->last_sequence == 4);
}

static void test_removal_takes_belongings(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    size_t used = world.state->pool.used;
    struct id birch = world_project(&world, none, "birch");
    struct id workload = world_submit(&world, birch);
    struct token_record token = { .id = world_id(&world), .tenant = birch, .name = STR("ci") };
    struct volume_record volume = { .id = world_id(&world), .tenant = birch, .name = STR("data") };
    struct image_record image = { .id = world_id(&world), .tenant = birch, .name = STR("deb") };
    struct credential_record credential = { .id = world_id(&world), .tenant = birch };
    struct upload_stored upload = { .tenant = birch, .name = STR("code") };
    struct upload_stored kept = { .tenant = cast.tenant };
    world_apply(&world, (struct event){ .type = EV_TOKEN_SET, .token_set = token });
    world_apply(&world, (struct event){ .type = EV_VOLUME_SET, .volume_set = volume });
    world_apply(&world, (struct event){ .type = EV_IMAGE_SET, .image_set = image });
    world_apply(&world, (struct event){ .type = EV_CREDENTIAL_SET, .credential_set = credential });
    world_apply(&world, (struct event){ .type = EV_UPLOAD_STORED, .upload_stored = kept });
    world_apply(&world, (struct event){ .type = EV_UPLOAD_STORED, .upload_stored = upload });
    const struct project *tenant = state_project(world.state, birch);
    CHECK("counts what it has", tenant->token_count == 1 && tenant->volume_count == 1 &&
                                    tenant->image_count == 1 && tenant->live_workloads == 1);
    world_workload(&world, workload, WL_CANCELLED);
    world_remove(&world, EV_PROJECT_REMOVED, birch);
    CHECK("its work is forgotten", state_workload(world.state, workload) == NULL);
    CHECK("its tokens are gone", state_token(world.state, token.id) == NULL);
    CHECK("its volumes are gone", state_volume(world.state, volume.id) == NULL);
    CHECK("its credentials are gone", state_credential(world.state, credential.id) == NULL);
    CHECK("uploads of others stay", world.state->first_upload != NULL &&
                                        id_eq(world.state->first_upload->r.tenant, cast.tenant));
    CHECK("only that upload is left", world.state->first_upload->next == NULL);
    CHECK("no byte is left",
          world.state->pool.used == used + (sizeof(struct upload) + 15) / 16 * 16);
}

static void test_belongings(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    struct image_record ours = { .id = world_id(&world),
                                 .tenant = cast.tenant,
                                 .name = STR("deb") };
    struct image_record shared = { .id = world_id(&world), .name = STR("deb") };
    world_apply(&world, (struct event){ .type = EV_IMAGE_SET, .image_set = ours });
    world_apply(&world, (struct event){ .type = EV_IMAGE_SET, .image_set = shared });
    CHECK("the own image goes first",
          id_eq(state_image_by_name(world.state, cast.tenant, STR("deb"))->r.id, ours.id));
    world_remove(&world, EV_IMAGE_REMOVED, ours.id);
    CHECK("then the operator's",
          id_eq(state_image_by_name(world.state, cast.tenant, STR("deb"))->r.id, shared.id));
    CHECK("then none", state_image_by_name(world.state, cast.tenant, STR("arch")) == NULL);

    struct volume_record volume = { .id = world_id(&world),
                                    .tenant = cast.tenant,
                                    .name = STR("data") };
    world_apply(&world, (struct event){ .type = EV_VOLUME_SET, .volume_set = volume });
    CHECK("a volume is found by name",
          state_volume_by_name(world.state, cast.tenant, STR("data")) != NULL);
    CHECK("but not by others", state_volume_by_name(world.state, none, STR("data")) == NULL);

    struct upload_stored upload = { .tenant = cast.tenant, .size_bytes = 1, .name = STR("a") };
    world_apply(&world, (struct event){ .type = EV_UPLOAD_STORED, .upload_stored = upload });
    upload.name = STR("b");
    world_apply(&world, (struct event){ .type = EV_UPLOAD_STORED, .upload_stored = upload });
    CHECK("the same bytes are stored once", world.state->first_upload->next == NULL);
    CHECK("under the new name", str_is(world.state->first_upload->r.name, "b"));
}

static void test_nodes(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    struct id other_pool = world_pool(&world, "other", 0);
    struct node *node = state_node_by_name(world.state, STR("node-1"));
    CHECK("is in its pool", node->pool->node_count == 1);

    struct node_record image = node->r; /* borrowed from the state, as decide may do */
    image.pool = other_pool;
    image.contact = CONTACT_OK;
    image.holds = (struct hold_list){ 0 };
    image.boot_id = STR("boot-2");
    image.agent_version = (struct str){ 0 };
    image.created_sequence = 0;
    node->r.generation = 5;
    image.generation = 3;
    world_apply(&world, (struct event){ .type = EV_NODE_SET, .node_set = image });
    CHECK("moves", node->pool == state_pool(world.state, other_pool));
    CHECK("the pools count",
          node->pool->node_count == 1 && state_pool(world.state, cast.pool)->node_count == 0);
    CHECK("a new contact has a new time", node->r.contact_since.ns == world.state->wall.ns);
    CHECK("the generation never goes down", node->r.generation == 5);
    CHECK("keeps when it joined", node->r.created_sequence > 0);
    CHECK("is not usable before its inventory", !node_is_usable(node));
    image.agent_version = STR("1");
    world_apply(&world, (struct event){ .type = EV_NODE_SET, .node_set = image });
    CHECK("is usable", node_is_usable(node));

    struct hold hold = { HOLD_DRAIN, STR("root"), STR("new disks"), { 5 } };
    struct node_holds holds = { cast.node, { &hold, 1 }, { 99 } };
    world_apply(&world, (struct event){ .type = EV_NODE_HOLDS, .node_holds = holds });
    CHECK("a hold makes it unusable", !node_is_usable(node));
    CHECK("the deadline is kept", node->r.drain_deadline.ns == 99);
    CHECK("the reason is a copy", str_is(node->r.holds.items[0].reason, "new disks"));

    struct node_contact_event contact = { cast.node, CONTACT_LOST, { 0 } };
    int64_t since = node->r.contact_since.ns;
    world_apply(&world, (struct event){ .type = EV_NODE_CONTACT, .node_contact = contact });
    CHECK("lost", node->r.contact == CONTACT_LOST && node->r.contact_since.ns > since);
    CHECK("an unknown boot changes nothing", str_is(node->r.boot_id, "boot-2"));
    since = node->r.contact_since.ns;
    contact.boot_id = STR("boot-3");
    world_apply(&world, (struct event){ .type = EV_NODE_CONTACT, .node_contact = contact });
    CHECK("the same contact keeps its time", node->r.contact_since.ns == since);
    CHECK("a new boot is noted", str_is(node->r.boot_id, "boot-3"));
}

static void test_devices(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 1);
    struct cast cast = cast_of(&world);
    struct device_record *device = &state_node(world.state, cast.node)->r.devices.items[0];
    CHECK("is usable", device_is_usable(device));
    struct device_changed changed = { cast.node, 0, DEVICE_OK, true, STR("noisy fan") };
    world_apply(&world, (struct event){ .type = EV_DEVICE_CHANGED, .device_changed = changed });
    CHECK("a held device is not usable", !device_is_usable(device));
    CHECK("with its reason", str_is(device->hold_reason, "noisy fan"));
    changed = (struct device_changed){ cast.node, 0, DEVICE_FAILED, false, { 0 } };
    world_apply(&world, (struct event){ .type = EV_DEVICE_CHANGED, .device_changed = changed });
    CHECK("nor a failed one", !device_is_usable(device) && device->hold_reason.size == 0);
    CHECK("the node has a new version",
          state_node(world.state, cast.node)->r.version == world.state->sequence);
}

static void test_workload_life(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 3);
    struct cast cast = cast_of(&world);
    struct id id = world_submit(&world, cast.project);
    struct workload *workload = state_workload(world.state, id);
    const struct workload_record *r = &workload->r;
    CHECK("is stamped", r->submitted_sequence == world.state->sequence &&
                            r->submitted.ns == world.state->wall.ns &&
                            r->state_since.ns == world.state->now.ns);
    CHECK("is live", workload->project->live_workloads == 1 && world.state->ended_count == 0);
    if (r->state == WL_HELD)
        world_workload(&world, id, WL_QUEUED);
    world_workload(&world, id, WL_STARTING);
    CHECK("is the first attempt", r->attempt == 1 && r->started.ns == 0);
    world_workload(&world, id, WL_RUNNING);
    CHECK("started by the wall clock", r->started.ns == world.state->wall.ns);
    struct mono since = r->state_since;
    world_workload(&world, id, WL_RUNNING);
    CHECK("a change of detail is no step", r->state_since.ns == since.ns);
    CHECK("but a new version", r->version == world.state->sequence);
    world_workload(&world, id, WL_STOPPING);
    CHECK("knows what follows", r->after_stop == WL_QUEUED && r->evictions == 1);
    world_workload(&world, id, WL_QUEUED);
    world_workload(&world, id, WL_STARTING);
    world_workload(&world, id, WL_RUNNING);
    CHECK("started again", r->started.ns == world.state->wall.ns && r->attempt == 2);
    world_workload(&world, id, WL_SUCCEEDED);
    CHECK("ended", r->ended.ns == world.state->wall.ns &&
                       workload->ended_at.ns == world.state->now.ns && r->exit.is_known);
    CHECK("is no longer live", workload->project->live_workloads == 0);
    CHECK("is counted as ended", world.state->ended_count == 1 && world.state->workload_count == 1);
    world_remove(&world, EV_WORKLOAD_FORGOTTEN, id);
    CHECK("is forgotten", state_workload(world.state, id) == NULL &&
                              world.state->ended_count == 0 && world.state->workload_count == 0);
}

static void test_workload_takes_every_field(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 3);
    struct cast cast = cast_of(&world);
    struct id id = world_submit(&world, cast.project);
    const struct workload_record *r = &state_workload(world.state, id)->r;
    struct workload_changed changed = {
        .workload = id,
        .state = r->state,
        .after_stop = WL_CANCELLED,
        .cause = CAUSE_WAITING_FOR_BACKOFF,
        .detail = STR("failed twice"),
        .attempt = 3,
        .failures = 2,
        .evictions = 5,
        .node_losses = 7,
        .not_before = { 11 },
        .exit = { .is_known = true, .code = 13 },
    };
    world_apply(&world, (struct event){ .type = EV_WORKLOAD_CHANGED, .workload_changed = changed });
    CHECK("what follows", r->after_stop == WL_CANCELLED);
    CHECK("why", r->cause == CAUSE_WAITING_FOR_BACKOFF && str_is(r->detail, "failed twice"));
    CHECK("counters", r->attempt == 3 && r->failures == 2 && r->evictions == 5);
    CHECK("losses", r->node_losses == 7);
    CHECK("back-off", r->not_before.ns == 11);
    CHECK("exit", r->exit.is_known && r->exit.code == 13);
    changed.detail = r->detail; /* borrowed from what it replaces */
    world_apply(&world, (struct event){ .type = EV_WORKLOAD_CHANGED, .workload_changed = changed });
    CHECK("its own detail again", str_is(r->detail, "failed twice"));
    changed.detail = (struct str){ 0 };
    world_apply(&world, (struct event){ .type = EV_WORKLOAD_CHANGED, .workload_changed = changed });
    CHECK("no detail", r->detail.size == 0);
}

static void test_arrays(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 3);
    struct cast cast = cast_of(&world);
    struct id array = world_id(&world);
    struct id ids[5];
    static const size_t order[5] = { 3, 0, 4, 1, 2 }; /* as no core would submit them */
    for (size_t i = 0; i < 5; i++) {
        ids[order[i]] = world_submit_element(&world, cast.project, array, (int64_t)order[i]);
        if (i < 2)
            (void)world_submit(&world, cast.project);
    }
    struct workload *at = state_array(world.state, array);
    for (size_t i = 0; i < 5; i++, at = at->array_next)
        CHECK("elements are in order of index", id_eq(at->r.id, ids[i]));
    CHECK("and end", at == NULL);
    static const size_t forgotten[5] = { 2, 0, 4, 3, 1 };
    for (size_t i = 0; i < 5; i++) {
        struct error e = { 0 };
        world_workload(&world, ids[forgotten[i]], WL_CANCELLED);
        world_remove(&world, EV_WORKLOAD_FORGOTTEN, ids[forgotten[i]]);
        CHECK(e.text, state_check(world.state, &e));
    }
    CHECK("an empty array is gone", state_array(world.state, array) == NULL);
}

static void test_allocation_life(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 3);
    struct cast cast = cast_of(&world);
    struct node *node = state_node(world.state, cast.node);
    struct id workload = world_submit(&world, cast.project);
    uint64_t version = node->r.version;
    struct id second = world_grant(&world, workload, cast.node, 1);
    struct id first = world_grant(&world, workload, cast.node, 0);
    struct allocation *a = state_allocation(world.state, first);
    struct allocation *b = state_allocation(world.state, second);
    CHECK("ranks are in order in the workload",
          a->workload->first_allocation == a && a->next_in_workload == b);
    CHECK("grants are in order on the node", node->first_allocation == b && b->next_on_node == a);
    CHECK("each grant is a new generation", node->r.generation == 2);
    CHECK("but no new version of the node", node->r.version == version);
    CHECK("is stamped", a->r.granted.ns == world.state->now.ns && a->r.started.ns == 0 &&
                            a->r.created_sequence == world.state->sequence);
    world_allocation(&world, first, AL_RUNNING);
    CHECK("a start changes nothing for the node", node->r.generation == 2);
    CHECK("started",
          a->r.started.ns == world.state->now.ns && a->r.started_wall.ns == world.state->wall.ns);
    world_allocation(&world, first, AL_STOPPING);
    CHECK("a stop is a new generation", node->r.generation == 3);
    CHECK("stopping",
          a->r.stopping.ns == world.state->now.ns && a->r.stop_cause == CAUSE_USER_CANCELLED);
    int64_t stopping = a->r.stopping.ns;
    world_allocation(&world, first, AL_STOPPING);
    CHECK("the same again is none", node->r.generation == 3 && a->r.stopping.ns == stopping);
    world_allocation(&world, first, AL_CLEANING);
    int64_t gone = a->r.gone.ns;
    CHECK("gone", gone == world.state->now.ns && a->r.exit.code == 3);
    world_allocation(&world, first, AL_ENDED);
    CHECK("an end is a new generation", node->r.generation == 5);
    CHECK("left", state_allocation(world.state, first) == NULL && node->first_allocation == b &&
                      b->next_on_node == NULL && world.state->allocation_count == 1);
    world_allocation(&world, second, AL_ENDED);
    CHECK("empty", node->first_allocation == NULL && b != NULL && node->last_allocation == NULL);
}

static void test_lost_and_back(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 3);
    struct cast cast = cast_of(&world);
    struct id id = world_grant(&world, world_submit(&world, cast.project), cast.node, 0);
    const struct allocation *a = state_allocation(world.state, id);
    world_allocation(&world, id, AL_RUNNING);
    int64_t started = a->r.started.ns;
    world_allocation(&world, id, AL_LOST);
    CHECK("a loss bills what was used",
          state_project(world.state, cast.tenant)->r.usage.count == 1);
    world_allocation(&world, id, AL_RUNNING);
    CHECK("coming back begins a new use",
          a->r.started.ns > started && a->r.started.ns == world.state->now.ns);
}

static struct event ended(struct id allocation, struct id project, int64_t class_number,
                          int64_t milli, int64_t duration_ms)
{
    struct segment segment = { .allocation = allocation,
                               .project = project,
                               .class_number = class_number,
                               .charge_milli = milli,
                               .duration_ms = duration_ms,
                               .amount_micros = 7 };
    return (struct event){ .type = EV_ALLOCATION_CHANGED,
                           .allocation_changed = { .allocation = allocation,
                                                   .state = AL_ENDED,
                                                   .has_segment = true,
                                                   .segment = segment } };
}

static void test_usage(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 3);
    struct cast cast = cast_of(&world);
    struct id leaf = world_project(&world, cast.project, "train");
    struct id beside = world_project(&world, cast.tenant, "audio");
    struct id workload = world_submit(&world, leaf);
    static const struct {
        int64_t class_number, milli, duration_ms;
    } uses[] = { { 4, 1000, 10 }, { 1, 500, 3 }, { 2, 8000, 100 }, { 1, 500, 4 } };
    FOR_EACH_CASE (c, uses) {
        struct id id = world_grant(&world, workload, cast.node, 0);
        world_apply(&world, ended(id, leaf, c->class_number, c->milli, c->duration_ms));
    }
    struct id up[] = { leaf, cast.project, cast.tenant };
    for (size_t i = 0; i < COUNT_OF(up); i++) {
        const struct usage_list *usage = &state_project(world.state, up[i])->r.usage;
        CHECK("one row a class", usage->count == 3);
        CHECK("in order", usage->items[0].class_number == 1 && usage->items[1].class_number == 2 &&
                              usage->items[2].class_number == 4);
        CHECK("adds", usage->items[0].milli_ms == 3500 && usage->items[0].segments == 2 &&
                          usage->items[0].amount_micros == 14);
    }
    CHECK("not sideways", state_project(world.state, beside)->r.usage.count == 0);

    struct id id = world_grant(&world, workload, cast.node, 0);
    world_apply(&world, ended(id, leaf, 1, INT64_MAX, INT64_MAX));
    const struct usage_list *usage = &state_project(world.state, cast.tenant)->r.usage;
    CHECK("totals stop at the top", usage->items[0].milli_ms == INT64_MAX);
    id = world_grant(&world, workload, cast.node, 0);
    world_apply(&world, ended(id, leaf, 1, 1, 1));
    CHECK("and stay there", usage->items[0].milli_ms == INT64_MAX && usage->items[0].segments == 4);
}

static void test_uid_ranges(void **state)
{
    (void)state;
    struct project tenant = { 0 };
    CHECK("the first", tenant_uid_base(&tenant) == 524288);
    tenant.r.number = 1;
    CHECK("the second", tenant_uid_base(&tenant) == 524288 + UID_RANGE);
    tenant.r.number = TENANT_NUMBERS_MAX - 1;
    CHECK("the last ends where those of others begin",
          tenant_uid_base(&tenant) + (uint64_t)UID_RANGE == 1879048192);
}

static void test_lookups_of_nothing(void **state)
{
    (void)state;
    AUTO(state) struct state *s = state_new();
    struct id id = { 1, 2 };
    CHECK("project", state_project(s, id) == NULL);
    CHECK("project by path", state_project_by_path(s, STR("a")) == NULL);
    CHECK("workload", state_workload(s, id) == NULL && state_array(s, id) == NULL);
    CHECK("allocation", state_allocation(s, id) == NULL);
    CHECK("node", state_node(s, id) == NULL && state_node_by_name(s, STR("a")) == NULL);
    CHECK("class", state_class(s, 0) == NULL && state_class_by_name(s, STR("a")) == NULL);
    CHECK("pool", state_pool(s, id) == NULL && state_pool_by_name(s, STR("a")) == NULL);
    CHECK("profile", state_profile_by_name(s, STR("a")) == NULL);
    CHECK("token", state_token(s, id) == NULL && state_credential(s, id) == NULL);
    CHECK("volume", state_volume(s, id) == NULL && state_volume_by_name(s, id, STR("a")) == NULL);
    CHECK("image", state_image_by_name(s, id, STR("a")) == NULL);
    CHECK("is consistent", state_check(s, NULL));
    state_free(NULL);
}

static void test_catalog_lookups(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    world_init(&world, 3);
    struct cast cast = cast_of(&world);
    struct profile_record profile = { .id = world_id(&world), .name = STR("gpu-4") };
    world_apply(&world, (struct event){ .type = EV_PROFILE_SET, .profile_set = profile });
    CHECK("pool", id_eq(state_pool_by_name(world.state, STR("main"))->r.id, cast.pool));
    CHECK("profile", id_eq(state_profile_by_name(world.state, STR("gpu-4"))->r.id, profile.id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controller_started),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_time_never_goes_back),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_class_comes_back),
        cmocka_unit_test(test_projects),
        cmocka_unit_test(test_update_keeps_facts),
        cmocka_unit_test(test_creation_begins_at_zero),
        cmocka_unit_test(test_quota_defaults),
        cmocka_unit_test(test_feed),
        cmocka_unit_test(test_removal_takes_belongings),
        cmocka_unit_test(test_belongings),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_workload_life),
        cmocka_unit_test(test_workload_takes_every_field),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_allocation_life),
        cmocka_unit_test(test_lost_and_back),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_log_limits),
        cmocka_unit_test(test_uid_ranges),
        cmocka_unit_test(test_lookups_of_nothing),
        cmocka_unit_test(test_catalog_lookups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
