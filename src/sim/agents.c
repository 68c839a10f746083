#include "sim/agents.h"

#include <stdlib.h>

#include "core/core.h"
#include "model/transition.h"

static struct command by_node(const struct agent *agent, enum command_type type)
{
    return (struct command){ .type = type, .actor = { .role = ROLE_NODE, .node = agent->node } };
}

static struct str boot_id(struct world *world, const struct agent *agent)
{
    return str_of(arena_format(engine_arena(world->engine), "boot-%lld", (long long)agent->boots));
}

enum err agent_inventory(struct world *world, struct agent *agent, struct error *e)
{
    const struct sim_pool *pool = agent->pool;
    struct arena *arena = engine_arena(world->engine);
    struct command command = by_node(agent, CMD_NODE_INVENTORY);
    struct node_inventory *inventory = &command.inventory;
    *inventory = (struct node_inventory){
        .node = agent->node,
        .boot_id = boot_id(world, agent),
        .agent_version = STR("sim"),
        .cpu_class_name = pool->gpus == 0 ? pool->class_name : STR("cpu"),
        .cpu_milli = pool->cpu_milli != UNSET ? pool->cpu_milli : MEMBER_CPU_MILLI_MAX,
        .memory_mib = pool->memory_mib != UNSET ? pool->memory_mib : INT64_C(1) << 32,
    };
    if (pool->nodes_per_rack != UNSET)
        inventory->rack = str_of(arena_format(arena, "%.*s-r%lld", STR_ARG(pool->name),
                                              (long long)(agent->number / pool->nodes_per_rack)));
    if (pool->nodes_per_rack != UNSET && pool->racks_per_block != UNSET)
        inventory->block = str_of(arena_format(
            arena, "%.*s-b%lld", STR_ARG(pool->name),
            (long long)(agent->number / pool->nodes_per_rack / pool->racks_per_block)));
    const struct class_object *class =
        state_class_by_name(engine_state(world->engine), pool->class_name);
    inventory->devices.count = (size_t)pool->gpus;
    inventory->devices.items = arena_new(arena, (size_t)pool->gpus, sizeof(struct found_device));
    for (size_t i = 0; i < (size_t)pool->gpus; i++)
        inventory->devices.items[i] = (struct found_device){
            .index = (int64_t)i,
            .class_name = pool->class_name,
            .vendor = STR("sim"),
            .uuid = str_of(arena_format(arena, "%.*s-%zu", STR_ARG(agent->name), i)),
            .memory_mib = class->r.memory_mib,
            .health = agent->is_failed[i] ? DEVICE_FAILED : DEVICE_OK,
            .is_simulated = true,
        };
    return engine_command(world->engine, &command, e);
}

static bool is_reachable(const struct agent *agent)
{
    return agent->is_up && !agent->is_partitioned;
}

void agent_stir(struct world *world, struct agent *agent)
{
    if (agent->is_stirred)
        return;
    agent->is_stirred = true;
    vec_push(&world->stirred, (size_t)(agent - world->agents));
}

void agent_report_later(struct world *world, struct agent *agent)
{
    agent->is_report_due = true;
    agent_stir(world, agent);
}

void agents_heartbeat(struct world *world)
{
    world->heard = world->now;
    for (size_t i = 0; i < world->agent_count; i++) {
        struct agent *agent = &world->agents[i];
        if (!is_reachable(agent))
            continue;
        agent->seen = world->now;
        engine_node_seen(world->engine, agent->node, boot_id(world, agent));
    }
}

void agents_keep_contact(struct world *world)
{
    int64_t unknown_after_s = engine_state(world->engine)->settings.unknown_after_s;
    if (world->now.ns - world->heard.ns >= unknown_after_s * NS_PER_S / 2)
        agents_heartbeat(world);
}

static struct observed observe(const struct world *world, const struct process *process)
{
    return (struct observed){
        .allocation = process->allocation,
        .attempt = process->attempt,
        .state = process->has_exited    ? OBSERVED_EXITED
                 : process->is_stopping ? OBSERVED_STOPPING
                                        : OBSERVED_RUNNING,
        .exit = process->exit,
        .checkpoints = process->checkpoints,
        .checkpoint_age_ms = (world->now.ns - process->checkpointed.ns) / NS_PER_MS,
    };
}

static void report(struct world *world, struct agent *agent)
{
    const struct state *state = engine_state(world->engine);
    struct command command = by_node(agent, CMD_NODE_OBSERVED);
    struct node_observed *observed = &command.observed;
    observed->node = agent->node;
    observed->epoch = state->epoch;
    observed->generation = state_node(state, agent->node)->r.generation;
    observed->observed.count = agent->processes.count;
    observed->observed.items =
        arena_new(engine_arena(world->engine), agent->processes.count, sizeof(struct observed));
    for (size_t i = 0; i < agent->processes.count; i++)
        observed->observed.items[i] = observe(world, &agent->processes.items[i]);
    agent->is_report_due = false;
    if (engine_command(world->engine, &command, &world->problem) == ERR_OK)
        world->problem.code = ERR_OK;
}

/* ---- alarms -------------------------------------------------------------------------------- */

static bool alarm_before(const struct alarm *a, const struct alarm *b)
{
    return a->at_ns < b->at_ns;
}

static void alarm_swap(struct alarm *a, struct alarm *b)
{
    struct alarm kept = *a;
    *a = *b;
    *b = kept;
}

static void alarm_set(struct world *world, struct agent *agent, struct id allocation,
                      struct mono at)
{
    if (at.ns == INT64_MAX)
        return;
    const struct alarm alarm = { at.ns, (size_t)(agent - world->agents), allocation };
    vec_push(&world->alarms, alarm);
    struct alarm *heap = world->alarms.items;
    for (size_t i = world->alarms.count - 1; i > 0 && alarm_before(&heap[i], &heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        alarm_swap(&heap[i], &heap[(i - 1) / 2]);
}

/* ---- what ends, and what is saved ---------------------------------------------------------- */

static bool is_past(const struct world *world, struct mono at)
{
    return !mono_before(world->now, at);
}

static void process_exit(struct world *world, struct agent *agent, struct process *process,
                         struct exit_status exit)
{
    process->has_exited = true;
    process->exit = exit;
    agent_report_later(world, agent);
}

static void save_checkpoint(const struct world *world, const struct process *process)
{
    const struct state *state = engine_state(world->engine);
    const struct workload *workload = state_workload(state, process->job->workload);
    int64_t every_ns = process->job->spec->checkpoint_s;
    bool goes_on = workload != NULL && (workload->r.state == WL_RUNNING ||
                                        process->job->saved_attempt == process->attempt);
    if (every_ns == UNSET || every_ns <= 0 || goes_on)
        return;
    process->job->saved_attempt = process->attempt;
    every_ns *= NS_PER_S;
    int64_t ran_ns = world->now.ns - process->began.ns;
    process->job->done_ns += ran_ns - ran_ns % every_ns;
}

/* While it runs it tells its node so, as a real one does. */
static void note_checkpoint(struct world *world, struct agent *agent, struct process *process)
{
    int64_t every_ns = process->job->spec->checkpoint_s;
    if (every_ns == UNSET || every_ns <= 0 || process->has_exited)
        return;
    every_ns *= NS_PER_S;
    int64_t count = (world->now.ns - process->began.ns) / every_ns;
    struct mono next = { process->began.ns + (count + 1) * every_ns };
    if (count == process->checkpoints)
        return;
    process->checkpoints = count;
    process->checkpointed = (struct mono){ next.ns - every_ns };
    agent->is_report_due = true;
    alarm_set(world, agent, process->allocation, next);
}

static void agent_end_work(struct world *world, struct agent *agent)
{
    static const struct exit_status good = { .is_known = true };
    static const struct exit_status bad = { .is_known = true, .code = 1 };
    static const struct exit_status killed = { .is_known = true, .signal = 15 };
    for (size_t k = 0; k < agent->processes.count; k++) {
        struct process *process = &agent->processes.items[k];
        if (process->has_exited)
            continue;
        if (is_past(world, process->ends_at)) {
            process_exit(world, agent, process, process->will_fail ? bad : good);
        } else if (process->is_stopping && is_past(world, process->dies_at)) {
            save_checkpoint(world, process);
            process_exit(world, agent, process, killed);
        }
        note_checkpoint(world, agent, process);
    }
    if (agent->is_report_due && is_reachable(agent))
        report(world, agent);
}

/* ---- alarms that are over ------------------------------------------------------------------ */

static void alarm_drop_first(struct world *world)
{
    struct alarm *heap = world->alarms.items;
    size_t count = --world->alarms.count;
    heap[0] = heap[count];
    for (size_t i = 0;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++)
            least = alarm_before(&heap[child], &heap[least]) ? child : least;
        if (least == i)
            return;
        alarm_swap(&heap[i], &heap[least]);
        i = least;
    }
}

static int index_order(const void *left, const void *right)
{
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    return (a > b) - (a < b);
}

/* In the order of their numbers, whatever stirred them first: the log of events depends on it. */
static void stirred_sort(struct world *world)
{
    qsort(world->stirred.items, world->stirred.count, sizeof(size_t), index_order);
}

/* Who cannot be reached stays stirred. */
static void stirred_settle(struct world *world)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->stirred.count; i++) {
        struct agent *agent = &world->agents[world->stirred.items[i]];
        agent->is_stirred = !is_reachable(agent);
        if (agent->is_stirred)
            world->stirred.items[kept++] = world->stirred.items[i];
    }
    world->stirred.count = kept;
}

static void end_stirred(struct world *world)
{
    for (size_t i = 0; i < world->stirred.count; i++)
        agent_end_work(world, &world->agents[world->stirred.items[i]]);
    stirred_settle(world);
}

void agents_end_work(struct world *world)
{
    while (world->alarms.count > 0 && world->alarms.items[0].at_ns <= world->now.ns) {
        agent_stir(world, &world->agents[world->alarms.items[0].agent]);
        alarm_drop_first(world);
    }
    if (world->stirred.count == 0)
        return;
    stirred_sort(world);
    end_stirred(world);
}

/* ---- what is wanted ------------------------------------------------------------------------ */

static struct mono later(struct mono at, int64_t span_s)
{
    return span_s == SIM_NEVER || span_s == UNSET ? (struct mono){ INT64_MAX }
                                                  : mono_add_s(at, span_s);
}

static void process_start(struct world *world, struct agent *agent, const struct allocation *a)
{
    struct job *job = id_map_get(&world->by_workload, a->r.workload);
    if (job->attempt != a->r.attempt) {
        job->attempt = a->r.attempt;
        job->began = world->now;
    }
    struct process process = { .allocation = a->r.id,
                               .attempt = a->r.attempt,
                               .job = job,
                               .began = world->now,
                               .ends_at = later(job->began, job->spec->duration_s) };
    if (process.ends_at.ns != INT64_MAX)
        process.ends_at.ns = MAX_OF(process.ends_at.ns - job->done_ns, world->now.ns);
    struct mono fails_at = later(world->now, job->spec->fails_after_s);
    process.will_fail = mono_before(fails_at, process.ends_at);
    if (process.will_fail)
        process.ends_at = fails_at;
    vec_push(&agent->processes, process);
    alarm_set(world, agent, process.allocation, process.ends_at);
    if (job->spec->checkpoint_s > 0) /* UNSET is below */
        alarm_set(world, agent, process.allocation, later(world->now, job->spec->checkpoint_s));
    agent_report_later(world, agent);
}

/* TERM at once; KILL when its grace is over, which ends everything but what never dies. */
static void process_stop(struct world *world, struct agent *agent, struct process *process,
                         int64_t grace_s)
{
    if (process->is_stopping || process->has_exited)
        return;
    int64_t stop_s = process->job->spec->stop_s;
    process->is_stopping = true;
    process->dies_at = stop_s == SIM_NEVER
                           ? (struct mono){ INT64_MAX }
                           : mono_add_s(world->now, stop_s == UNSET ? 0 : MIN_OF(stop_s, grace_s));
    alarm_set(world, agent, process->allocation, process->dies_at);
    agent_report_later(world, agent);
}

static struct process *process_of(struct agent *agent, struct id allocation)
{
    for (size_t i = 0; i < agent->processes.count; i++) {
        if (id_eq(agent->processes.items[i].allocation, allocation))
            return &agent->processes.items[i];
    }
    return NULL;
}

static void agent_act(struct world *world, struct agent *agent)
{
    const struct state *state = engine_state(world->engine);
    const struct node *node = state_node(state, agent->node);
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        struct process *process = process_of(agent, a->r.id);
        if (process == NULL && a->r.state == AL_STARTING)
            process_start(world, agent, a);
        else if (process != NULL && !core_wants_running(a))
            process_stop(world, agent, process, a->r.grace_s);
    }
    for (size_t left = agent->processes.count; left > 0; left--) {
        struct process *process = &agent->processes.items[left - 1];
        if (state_allocation(state, process->allocation) != NULL)
            continue;
        process_stop(world, agent, process, 0);
        if (process->has_exited)
            *process = agent->processes.items[--agent->processes.count];
    }
}

void agents_act(struct world *world)
{
    if (world->stirred.count == 0)
        return;
    stirred_sort(world);
    for (size_t i = 0; i < world->stirred.count; i++) {
        struct agent *agent = &world->agents[world->stirred.items[i]];
        if (is_reachable(agent))
            agent_act(world, agent);
    }
    end_stirred(world);
}

void agent_power_off(struct world *world, struct agent *agent)
{
    agent->is_up = false;
    agent->processes.count = 0;
    world->has_silent = true;
}

static struct mono earlier(struct mono a, struct mono b)
{
    return mono_before(a, b) ? a : b;
}

/* When silence makes a node unknown, and then lost. */
static struct mono silence_next(const struct world *world, const struct agent *agent)
{
    const struct settings_record *settings = &engine_state(world->engine)->settings;
    struct mono unknown = mono_add_s(agent->seen, settings->unknown_after_s);
    struct mono lost = mono_add_s(agent->seen, settings->lost_after_s);
    if (is_reachable(agent))
        return (struct mono){ INT64_MAX };
    return mono_before(world->now, unknown) ? unknown
           : mono_before(world->now, lost)  ? lost
                                            : (struct mono){ INT64_MAX };
}

struct mono agents_next(const struct world *world)
{
    struct mono next = { world->alarms.count > 0 ? world->alarms.items[0].at_ns : INT64_MAX };
    for (size_t i = 0; world->has_silent && i < world->agent_count; i++)
        next = earlier(next, silence_next(world, &world->agents[i]));
    return next;
}
