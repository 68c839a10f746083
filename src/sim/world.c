#include "sim/world.h"

#include <assert.h>
#include <string.h>

#include "model/mig.h"
#include "model/policy.h"
#include "sim/agents.h"
#include "wire/event_json.h"
#include "wire/resource.h"

/* The core's clock when a scenario begins: anything but zero. */
#define BEGIN_NS (1000 * NS_PER_S)

static const struct actor root = { .role = ROLE_ADMIN, .name = STR_INIT("root") };
static const struct actor controller = { .role = ROLE_SYSTEM, .name = STR_INIT("system") };

/* ---- seams --------------------------------------------------------------------------------- */

static struct mono seam_mono(void *arg)
{
    return ((struct world *)arg)->now;
}

static struct wall seam_wall(void *arg)
{
    const struct world *world = arg;
    return (struct wall){ world->scenario->start.ns + world_t(world) };
}

static void seam_clock(void *arg, struct store_clock *out)
{
    *out = (struct store_clock){ .mono = seam_mono(arg), .wall = seam_wall(arg) };
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t random_next(struct world *world)
{
    uint64_t z = world->entropy += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void seam_entropy(void *arg, void *bytes, size_t size)
{
    uint8_t *out = bytes;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)random_next(arg);
}

/* Memory is durable at once. */
static void seam_commit(void *arg, const struct store_batch *batch)
{
    (void)batch;
    engine_committed(((struct world *)arg)->engine, ERR_OK, NULL);
}

static enum err seam_reload(void *arg, struct state **out, struct error *e)
{
    (void)arg;
    (void)out;
    return err_set(e, ERR_UNAVAILABLE, "no batch is ever lost here");
}

/* Nodes look at the state themselves. */
static void seam_build(void *arg, const struct state *state, const struct node *node,
                       struct buf *out)
{
    (void)arg;
    (void)state;
    (void)node;
    (void)out;
}

static void seam_send(void *arg, struct id node, struct str bytes)
{
    struct world *world = arg;
    struct agent *agent = id_map_get(&world->by_node, node);
    (void)bytes;
    if (agent != NULL)
        agent_stir(world, agent);
}

static bool is_decision(const struct event *event)
{
    return event->type == EV_ALLOCATION_GRANTED ||
           (event->type == EV_ALLOCATION_CHANGED &&
            event->allocation_changed.state == AL_STOPPING &&
            !id_is_none(event->allocation_changed.evictor));
}

static void seam_publish(void *arg, const struct event *event, struct str body)
{
    struct world *world = arg;
    if (is_decision(event))
        world->decided = world->now;
    if (world->log == NULL)
        return;
    buf_format(world->log, "{\"at_ms\":%lld,\"sequence\":%llu,\"event\":\"%s\",\"data\":%.*s}\n",
               (long long)(world_t(world) / NS_PER_MS), (unsigned long long)event->sequence,
               event_name(event->type), STR_ARG(body));
}

static bool seam_check(void *arg, const struct state *state, const struct sched *sched)
{
    (void)state;
    (void)sched;
    return ((struct world *)arg)->is_unchecked;
}

static void seam_report(void *arg, const char *what, const struct error *e)
{
    struct world *world = arg;
    if (world->problem.code == ERR_OK)
        (void)err_set(&world->problem, ERR_CORRUPT, "%s: %s", what, e->text);
}

static void engine_make(struct world *world, struct state *state)
{
    const struct engine_seams seams = {
        .arg = world,
        .mono_now = seam_mono,
        .wall_now = seam_wall,
        .machine_clock = seam_clock,
        .entropy = seam_entropy,
        .commit = seam_commit,
        .reload = seam_reload,
        .desired_build = seam_build,
        .desired_send = seam_send,
        .publish = seam_publish,
        .check = seam_check,
        .report = seam_report,
    };
    world->engine = engine_new(&seams, state);
}

static void restore_event(void *arg, const struct event *event)
{
    evolve_restored(arg, event);
}

/* What a snapshot gives back. */
static void controller_restart(struct world *world)
{
    const struct state *before = engine_state(world->engine);
    struct state_header header = state_header(before);
    struct state *restored = state_new();
    state_restore_header(restored, &header);
    state_walk(before, restore_event, restored);
    uint64_t epoch = before->epoch + 1;
    engine_free(world->engine);
    engine_make(world, restored);
    engine_start(world->engine, epoch, STR("sim"));
    agents_heartbeat(world);
    for (size_t i = 0; i < world->agent_count; i++)
        agent_report_later(world, &world->agents[i]);
}

/* ---- the cluster --------------------------------------------------------------------------- */

static enum err ask(struct world *world, struct command *command, struct error *e)
{
    if (command->actor.role == ROLE_NONE)
        command->actor = root;
    return engine_command(world->engine, command, e);
}

static enum err at_place(const struct doc *at, enum err rc, struct error *e)
{
    char text[sizeof(e->text)];
    if (rc == ERR_OK)
        return ERR_OK;
    memcpy(text, e->text, sizeof(text));
    return doc_error(at, e, "%.200s", text);
}

/* As much as its partitions need. */
static int64_t class_memory(const struct sim_class *class)
{
    const struct class_record record = {
        .name = class->name,
        .kind = CLASS_GPU,
        .slicing = class->slicing != UNSET ? (enum slicing) class->slicing : SLICING_POLICED,
        .mig = class->mig != UNSET ? (enum mig_table_name) class->mig : MIG_TABLE_NONE,
    };
    const struct mig_table *table = mig_table_of(&record);
    int64_t least = table != NULL ? table->profiles[MIG_PROFILES_MAX - 1].memory_mib : 0;
    return class->memory_mib != UNSET ? class->memory_mib : MAX_OF(least, INT64_C(81920));
}

static enum err class_make(struct world *world, const struct sim_class *class, bool is_gpu,
                           struct error *e)
{
    struct command command = { .type = CMD_CLASS_SET };
    command.class_set = (struct class_spec){
        .name = class->name,
        .vendor = STR("sim"),
        .kind = is_gpu ? CLASS_GPU : CLASS_CPU,
        .memory_mib = is_gpu ? class_memory(class) : 0,
        .slicing = class->slicing,
        .mig = class->mig,
        .price_micros_per_hour = UNSET,
    };
    return at_place(class->at, ask(world, &command, e), e);
}

static enum err classes_make(struct world *world, struct error *e)
{
    const struct scenario *s = world->scenario;
    for (size_t i = 0; i < s->class_count; i++) {
        enum err rc = class_make(world, &s->classes[i], true, e);
        if (rc != ERR_OK)
            return rc;
    }
    for (size_t i = 0; i < s->pool_count; i++) {
        const struct sim_pool *pool = &s->pools[i];
        const struct sim_class class = { pool->at, pool->class_name, UNSET, pool->slicing,
                                         pool->mig };
        bool is_known = state_class_by_name(engine_state(world->engine), pool->class_name) != NULL;
        enum err rc = is_known ? ERR_OK : class_make(world, &class, pool->gpus > 0, e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

static enum err node_join(struct world *world, struct agent *agent, struct error *e)
{
    struct command token = { .type = CMD_TOKEN_CREATE };
    token.token_create = (struct token_spec){
        .name = STR("join"), .pool = agent->pool->name, .role = ROLE_NODE_JOIN, .expires_s = UNSET
    };
    seam_entropy(world, token.secret.bytes, sizeof(token.secret.bytes));
    enum err rc = ask(world, &token, e);
    if (rc != ERR_OK)
        return rc;
    struct command join = { .type = CMD_NODE_JOIN, .actor = { .role = ROLE_NODE_JOIN } };
    join.node_join.join_secret = token.secret;
    join.node_join.name = agent->name;
    rc = ask(world, &join, e);
    if (rc != ERR_OK)
        return rc;
    agent->node = state_node_by_name(engine_state(world->engine), agent->name)->r.id;
    id_map_put(&world->by_node, agent->node, agent);
    return agent_inventory(world, agent, e);
}

static enum err pool_make(struct world *world, const struct sim_pool *pool, struct error *e)
{
    struct command command = { .type = CMD_POOL_SET };
    command.pool_set = (struct pool_spec){ .name = pool->name,
                                           .class_name = pool->class_name,
                                           .site = SITE_NATIVE };
    enum err rc = ask(world, &command, e);
    for (int64_t i = 0; i < pool->nodes && rc == ERR_OK; i++) {
        struct agent *agent = &world->agents[world->agent_count++];
        *agent = (struct agent){
            .pool = pool, .number = i, .is_up = true, .boots = 1, .seen = world->now
        };
        agent->name =
            str_of(arena_format(world->arena, "%.*s-%lld", STR_ARG(pool->name), (long long)i));
        agent->is_failed = arena_new(world->arena, (size_t)pool->gpus, sizeof(bool));
        rc = node_join(world, agent, e);
    }
    return at_place(pool->at, rc, e);
}

static enum err pools_make(struct world *world, struct error *e)
{
    const struct scenario *s = world->scenario;
    size_t count = 0;
    for (size_t i = 0; i < s->pool_count; i++)
        count += (size_t)MAX_OF(s->pools[i].nodes, INT64_C(0));
    world->agents = arena_new(world->arena, count, sizeof(*world->agents));
    for (size_t i = 0; i < s->pool_count; i++) {
        enum err rc = pool_make(world, &s->pools[i], e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

/* ---- tenants ------------------------------------------------------------------------------- */

static struct quota_spec *quota_for(struct quota_spec_list *list, struct str class_name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i].class_name, class_name))
            return &list->items[i];
    }
    struct quota_spec *quota = &list->items[list->count++];
    *quota = (struct quota_spec){ class_name, UNSET, UNSET, UNSET, UNSET };
    return quota;
}

static void quotas_add(struct quota_spec_list *list, const struct amount_list *amounts,
                       size_t offset)
{
    for (size_t i = 0; i < amounts->count; i++) {
        struct quota_spec *quota = quota_for(list, amounts->items[i].class_name);
        *(int64_t *)(void *)((char *)quota + offset) = amounts->items[i].value;
    }
}

/* A weight without a class is that of every class. */
static void weights_add(const struct world *world, struct quota_spec_list *list,
                        const struct amount_list *weights)
{
    const struct state *state = engine_state(world->engine);
    if (weights->count != 1 || weights->items[0].class_name.size > 0) {
        quotas_add(list, weights, offsetof(struct quota_spec, over_quota_weight));
        return;
    }
    for (size_t i = 0; i < state->classes.count; i++)
        quota_for(list, state->classes.items[i]->r.name)->over_quota_weight =
            weights->items[0].value;
}

static struct project_spec project_of(struct world *world, const struct sim_tenant *tenant)
{
    struct project_spec spec = { .path = tenant->path,
                                 .priority = tenant->priority,
                                 .is_forced = tenant->is_forced };
    size_t count = tenant->quota.count + tenant->limit.count + tenant->lend_limit.count +
                   tenant->weight.count + engine_state(world->engine)->classes.count;
    spec.quotas.items = arena_new(engine_arena(world->engine), count, sizeof(struct quota_spec));
    quotas_add(&spec.quotas, &tenant->quota, offsetof(struct quota_spec, quota_milli));
    quotas_add(&spec.quotas, &tenant->limit, offsetof(struct quota_spec, limit_milli));
    quotas_add(&spec.quotas, &tenant->lend_limit, offsetof(struct quota_spec, lend_limit_milli));
    weights_add(world, &spec.quotas, &tenant->weight);
    return spec;
}

static enum err parents_make(struct world *world, struct str path, struct error *e)
{
    for (size_t i = 0; i < path.size; i++) {
        const struct str parent = { path.data, i };
        if (path.data[i] != '/' ||
            state_project_by_path(engine_state(world->engine), parent) != NULL)
            continue;
        struct command command = { .type = CMD_PROJECT_CREATE };
        command.project = (struct project_spec){ .path = parent, .priority = UNSET };
        enum err rc = ask(world, &command, e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

/* For a time. */
static enum err tenant_change(struct world *world, const struct sim_tenant *tenant, struct error *e)
{
    const struct policy_patch nothing = policy_nothing();
    const struct project_spec spec = project_of(world, tenant);
    struct command command = { .type = CMD_CHANGE_CREATE };
    command.change = (struct change_spec){ .project = tenant->path,
                                           .duration_s = tenant->for_s,
                                           .every = UNSET,
                                           .interval = UNSET,
                                           .priority = spec.priority,
                                           .log_quota_mib = UNSET,
                                           .log_days = UNSET,
                                           .quotas = spec.quotas,
                                           .settings = nothing.settings,
                                           .is_forced = spec.is_forced };
    return ask(world, &command, e);
}

static enum err tenant_set(struct world *world, const struct sim_tenant *tenant, struct error *e)
{
    if (tenant->for_s != UNSET)
        return tenant_change(world, tenant, e);
    enum err rc = parents_make(world, tenant->path, e);
    if (rc != ERR_OK)
        return rc;
    bool is_known = state_project_by_path(engine_state(world->engine), tenant->path) != NULL;
    struct command command = { .type = is_known ? CMD_PROJECT_UPDATE : CMD_PROJECT_CREATE };
    command.project = project_of(world, tenant);
    command.target.name = tenant->path;
    return ask(world, &command, e);
}

/* ---- start and end ------------------------------------------------------------------------- */

static enum err settings_make(struct world *world, const struct settings_record *given,
                              struct error *e)
{
    struct command command = { .type = CMD_SETTINGS_SET };
    const struct settings_record *present = &engine_state(world->engine)->settings;
    command.settings = *given;
    if (given->reclaim_to == RECLAIM_TO_COUNT)
        command.settings.reclaim_to = present->reclaim_to;
    if (given->consolidate == CONSOLIDATE_COUNT)
        command.settings.consolidate = present->consolidate;
    if (given->user_fairness == USER_FAIRNESS_COUNT)
        command.settings.user_fairness = present->user_fairness;
    if (given->placement == PLACEMENT_COUNT)
        command.settings.placement = present->placement;
    return ask(world, &command, e);
}

static enum err image_make(struct world *world, struct error *e)
{
    struct command command = { .type = CMD_IMAGE_SET };
    command.image_set = (struct image_spec){ .name = STR("sim"), .size_bytes = 1 };
    command.image_set.manifest.bytes[0] = 1;
    return ask(world, &command, e);
}

enum err world_start(struct world *world, const struct scenario *scenario, struct arena *arena,
                     struct buf *log, struct error *e)
{
    *world = (struct world){ .scenario = scenario,
                             .arena = arena,
                             .now = { BEGIN_NS },
                             .decided = { BEGIN_NS },
                             .entropy = scenario->seed == UNSET ? 0 : (uint64_t)scenario->seed,
                             .log = log };
    engine_make(world, state_new());
    engine_start(world->engine, 1, STR("sim"));
    struct settings_record settings = scenario->settings;
    settings.ended_keep_s = 366 * 86400; /* what has ended can be asked about */
    settings.ended_keep_count = 10000000;
    enum err rc = settings_make(world, &settings, e);
    if (rc == ERR_OK)
        rc = image_make(world, e);
    if (rc == ERR_OK)
        rc = classes_make(world, e);
    if (rc == ERR_OK)
        rc = pools_make(world, e);
    for (size_t i = 0; i < scenario->tenant_count && rc == ERR_OK; i++)
        rc = at_place(scenario->tenants[i].at, tenant_set(world, &scenario->tenants[i], e), e);
    if (rc != ERR_OK)
        return rc;
    agents_heartbeat(world);
    world_settle(world);
    return ERR_OK;
}

void world_end(struct world *world)
{
    for (size_t i = 0; i < world->agent_count; i++)
        vec_done(&world->agents[i].processes);
    vec_done(&world->jobs);
    vec_done(&world->alarms);
    vec_done(&world->stirred);
    id_map_done(&world->by_node);
    id_map_done(&world->by_workload);
    engine_free(world->engine);
}

/* ---- time ---------------------------------------------------------------------------------- */

int64_t world_t(const struct world *world)
{
    return world->now.ns - BEGIN_NS;
}

int64_t world_class(const struct world *world)
{
    const struct class_object *class =
        state_class_by_name(engine_state(world->engine), world->scenario->pools[0].class_name);
    return class->r.number;
}

int64_t world_next(const struct world *world)
{
    const struct sched *sched = engine_sched(world->engine);
    const struct mono at[] = { agents_next(world), core_next_deadline(sched),
                               sched_wake_at(sched) };
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < COUNT_OF(at); i++)
        next = MIN_OF(next, at[i].ns);
    return next == INT64_MAX ? INT64_MAX : MAX_OF(next, world->now.ns) - BEGIN_NS;
}

void world_advance(struct world *world, int64_t t)
{
    world->now.ns = BEGIN_NS + t;
    agents_keep_contact(world);
    agents_end_work(world);
}

void world_flush(struct world *world)
{
    (void)engine_turn(world->engine, 0);
}

void world_settle(struct world *world)
{
    uint64_t before = 0;
    do {
        before = engine_state(world->engine)->sequence;
        while (engine_turn(world->engine, 1000))
            continue;
        agents_act(world);
    } while (engine_state(world->engine)->sequence != before);
}

/* ---- events -------------------------------------------------------------------------------- */

bool world_name_matches(struct str pattern, struct str name)
{
    if (pattern.size > 0 && pattern.data[pattern.size - 1] == '*')
        return str_starts(name, (struct str){ pattern.data, pattern.size - 1 });
    return str_eq(pattern, name) || (str_starts(name, pattern) && name.data[pattern.size] == '.');
}

struct job *world_job(const struct world *world, struct str name)
{
    for (size_t i = 0; i < world->jobs.count; i++) {
        if (str_eq(world->jobs.items[i]->name, name))
            return world->jobs.items[i];
    }
    return NULL;
}

const struct workload *world_workload(const struct world *world, const struct job *job)
{
    const struct workload *workload = state_workload(engine_state(world->engine), job->workload);
    assert(workload != NULL); /* nothing is forgotten here */
    return workload;
}

static void job_add(struct world *world, const struct sim_job *spec,
                    const struct workload *workload, struct str name)
{
    struct job *job = arena_new(world->arena, 1, sizeof(*job));
    *job = (struct job){ .name = name, .workload = workload->r.id, .spec = spec };
    vec_push(&world->jobs, job);
    id_map_put(&world->by_workload, workload->r.id, job);
}

static void jobs_add(struct world *world, const struct sim_job *spec, struct id submitted)
{
    const struct state *state = engine_state(world->engine);
    const struct workload *workload = state_workload(state, submitted);
    if (workload != NULL) {
        bool has_count = spec->count != UNSET;
        job_add(world, spec, workload,
                !has_count ? spec->name
                           : str_of(arena_format(world->arena, "%.*s.0", STR_ARG(spec->name))));
        return;
    }
    for (workload = state_array(state, submitted); workload != NULL;
         workload = workload->array_next)
        job_add(world, spec, workload,
                str_of(arena_format(world->arena, "%.*s.%lld", STR_ARG(spec->name),
                                    (long long)workload->r.array_index)));
}

static int64_t or_zero(int64_t value)
{
    return value == UNSET ? 0 : value;
}

enum err world_submit(struct world *world, const struct sim_job *job, struct error *e)
{
    struct command command = { .type = CMD_WORKLOAD_SUBMIT, .actor = root };
    if (job->user.size > 0)
        command.actor.name = job->user;
    bool has_devices = job->gpu_milli != UNSET || job->gpu_memory_mib != UNSET ||
                       job->devices != UNSET || job->mig_profile != UNSET;
    command.submit = (struct workload_spec){
        .project = job->project,
        .reservation = job->reservation,
        .name = job->count == UNSET ? job->name : (struct str){ 0 },
        .image = STR("sim"),
        .classes = job->classes,
        .count = job->count,
        .gpu_milli = has_devices ? job->gpu_milli : 0,
        .gpu_memory_mib = job->gpu_memory_mib,
        .devices = job->devices,
        .share_milli = job->share_milli,
        .mig_profile = job->mig_profile,
        .cpu_milli = or_zero(job->cpu_milli),
        .memory_mib = or_zero(job->memory_mib),
        .shm_mib = UNSET,
        .members = job->members,
        .members_min = job->members_min,
        .priority = job->priority,
        .time_limit_s = job->time_limit_s,
        .grace_s = UNSET,
        .retries = job->retries,
        .fence_after_s = UNSET,
        .preemptible = job->preemptible,
        .restart = UNSET,
        .on_contact_loss = UNSET,
        .topology = job->topology,
    };
    command.spec_json = STR("{}");
    seam_entropy(world, &command.new_id, sizeof(command.new_id));
    enum err rc = ask(world, &command, e);
    if (rc == ERR_OK)
        jobs_add(world, job, command.new_id);
    return rc;
}

static enum err act_on_jobs(struct world *world, const struct sim_event *event,
                            enum command_type type, struct error *e)
{
    bool any = false;
    for (size_t i = 0; i < world->jobs.count; i++) {
        const struct job *job = world->jobs.items[i];
        if (!world_name_matches(event->name, job->name))
            continue;
        any = true;
        struct command command = { .type = type };
        command.target.id = job->workload;
        enum err rc = ask(world, &command, e);
        if (rc != ERR_OK)
            return rc;
    }
    return any ? ERR_OK : doc_error(event->at, e, "there is no job \"%.*s\"", STR_ARG(event->name));
}

static enum err act_on_node(struct world *world, const struct sim_event *event,
                            enum command_type type, struct error *e)
{
    struct command command = { .type = type };
    command.target.name = event->name;
    command.target.deadline_s = event->deadline_s;
    return ask(world, &command, e);
}

static enum err node_fail(struct world *world, struct agent *agent, struct error *e)
{
    struct command command = { .type = CMD_NODE_CONTACT, .actor = controller };
    agent_power_off(world, agent);
    command.contact.node = agent->node;
    command.contact.contact = CONTACT_LOST;
    return ask(world, &command, e);
}

static enum err node_return(struct world *world, struct agent *agent, struct error *e)
{
    agent->is_up = true;
    agent->boots++;
    agent_report_later(world, agent);
    enum err rc = agent_inventory(world, agent, e);
    agents_heartbeat(world);
    return rc;
}

static enum err device_set(struct world *world, const struct sim_event *event, struct agent *agent,
                           struct error *e)
{
    if (event->index < 0 || event->index >= agent->pool->gpus)
        return doc_error(event->at, e, "%.*s has no device %lld", STR_ARG(event->name),
                         (long long)event->index);
    agent->is_failed[event->index] = event->type == SIM_FAIL_DEVICE;
    return agent_inventory(world, agent, e);
}

static enum err act_on_machine(struct world *world, const struct sim_event *event, struct error *e)
{
    struct agent *agent = NULL;
    for (size_t i = 0; i < world->agent_count; i++) {
        if (str_eq(world->agents[i].name, event->name))
            agent = &world->agents[i];
    }
    if (agent == NULL)
        return doc_error(event->at, e, "there is no node \"%.*s\"", STR_ARG(event->name));
    agents_heartbeat(world); /* up to this instant all could be heard */
    if (event->type == SIM_FAIL_NODE)
        return node_fail(world, agent, e);
    if (event->type == SIM_RETURN_NODE)
        return node_return(world, agent, e);
    if (event->type == SIM_FAIL_DEVICE || event->type == SIM_RETURN_DEVICE)
        return device_set(world, event, agent, e);
    agent->is_partitioned = event->type == SIM_PARTITION;
    world->has_silent = true;
    agent_report_later(world, agent);
    agents_heartbeat(world);
    return ERR_OK;
}

/* A scenario time as the clocks of the zone show it. */
static struct str local_time(const struct world *world, const struct sim_reservation *spec,
                             struct str time)
{
    struct zone zone;
    int64_t span_s = 0;
    if (!str_to_seconds(time, INT64_MAX / NS_PER_S, &span_s) ||
        zone_parse(spec->zone_rule, &zone, NULL) != ERR_OK)
        return time;
    int64_t utc_s = world->scenario->start.ns / NS_PER_S + span_s;
    return str_of(local_text(zone_local(&zone, utc_s), arena_new(world->arena, LOCAL_TEXT_MAX, 1)));
}

static enum err reserve(struct world *world, const struct sim_reservation *spec, struct error *e)
{
    struct command command = { .type = CMD_RESERVATION_CREATE };
    command.reservation = (struct reservation_spec){
        .name = spec->name,
        .project = spec->project,
        .class_name = spec->class_name,
        .zone = spec->zone,
        .zone_rule = spec->zone_rule,
        .start = local_time(world, spec, spec->start),
        .end = local_time(world, spec, spec->end),
        .until = local_time(world, spec, spec->until),
        .gpu_milli = spec->gpu_milli,
        .duration_s = UNSET,
        .every = spec->every,
        .interval = spec->interval,
        .end_policy = spec->end_policy,
        .is_lent = spec->is_lent,
        .is_forced = spec->is_forced,
        .is_request = spec->is_request,
    };
    seam_entropy(world, &command.new_id, sizeof(command.new_id));
    return ask(world, &command, e);
}

const struct reservation *world_reservation(const struct world *world, struct str name)
{
    const struct reservation *found = NULL;
    const struct state *state = engine_state(world->engine);
    for (const struct reservation *r = state->first_reservation; r != NULL; r = r->next) {
        if (str_eq(r->r.name, name))
            found = r;
    }
    return found;
}

static enum err act_on_reservation(struct world *world, const struct sim_event *event,
                                   enum command_type type, struct error *e)
{
    const struct reservation *reservation = world_reservation(world, event->name);
    struct command command = { .type = type };
    if (reservation == NULL)
        return doc_error(event->at, e, "there is no reservation \"%.*s\"", STR_ARG(event->name));
    command.target.id = reservation->r.id;
    return ask(world, &command, e);
}

static enum err event_do(struct world *world, const struct sim_event *event, struct error *e)
{
    switch (event->type) {
    case SIM_SUBMIT:
        return world_submit(world, &event->job, e);
    case SIM_CANCEL:
        return act_on_jobs(world, event, CMD_WORKLOAD_CANCEL, e);
    case SIM_HOLD:
        return act_on_jobs(world, event, CMD_WORKLOAD_HOLD, e);
    case SIM_RELEASE:
        return act_on_jobs(world, event, CMD_WORKLOAD_RELEASE, e);
    case SIM_SET_QUOTA:
        return tenant_set(world, &event->quota, e);
    case SIM_SET:
        return settings_make(world, &event->settings, e);
    case SIM_DRAIN:
        return act_on_node(world, event, CMD_NODE_DRAIN, e);
    case SIM_UNDRAIN:
        return act_on_node(world, event, CMD_NODE_UNDRAIN, e);
    case SIM_RESTART_CONTROLLER:
        world_settle(world);
        controller_restart(world);
        return ERR_OK;
    case SIM_RESERVE:
        return reserve(world, &event->reservation, e);
    case SIM_RELEASE_RESERVATION:
        return act_on_reservation(world, event, CMD_RESERVATION_RELEASE, e);
    case SIM_CANCEL_RESERVATION:
        return act_on_reservation(world, event, CMD_RESERVATION_CANCEL, e);
    case SIM_CONFIRM_RESERVATION:
        return act_on_reservation(world, event, CMD_RESERVATION_CONFIRM, e);
    case SIM_FAIL_NODE:
    case SIM_RETURN_NODE:
    case SIM_FAIL_DEVICE:
    case SIM_RETURN_DEVICE:
    case SIM_PARTITION:
    case SIM_HEAL:
        break;
    }
    return act_on_machine(world, event, e);
}

enum err world_apply(struct world *world, const struct sim_event *event, struct error *e)
{
    enum err rc = event_do(world, event, e);
    if (event->expect_error.size == 0) {
        world->errors += rc != ERR_OK;
        return at_place(event->at, rc, e);
    }
    if (rc == ERR_OK)
        return doc_error(event->at, e, "was taken, expected to be refused with %.*s",
                         STR_ARG(event->expect_error));
    struct problem_view problem; /* as the API would say it */
    problem_view_fill(&problem, e);
    if (!str_eq(event->expect_error, problem.cause)) {
        char text[sizeof(e->text)];
        memcpy(text, e->text, sizeof(text));
        return doc_error(event->at, e, "refused with %.*s (%.120s), expected %.*s",
                         STR_ARG(problem.cause), text, STR_ARG(event->expect_error));
    }
    return ERR_OK;
}
