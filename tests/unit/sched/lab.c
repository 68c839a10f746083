#include "unit/sched/lab.h"

#include <string.h>

#include "model/mig.h"
#include "model/transition.h"
#include "unit/test.h"

static const struct actor admin = { .role = ROLE_ADMIN, .name = { "root", 4 } };
static const struct actor controller = { .role = ROLE_SYSTEM, .name = { "system", 6 } };

void lab_init(struct lab *lab)
{
    *lab = (struct lab){ .next_id = 1 };
    lab->now.ns = 1000 * NS_PER_S;
    lab->wall.ns = INT64_C(1800000000) * NS_PER_S;
    lab->state = state_new();
    lab->sched = sched_new(lab->state);
    struct command start = { .type = CMD_CONTROLLER_START, .actor = controller };
    start.controller_start.epoch = 1;
    memset(start.controller_start.id_key, 7, sizeof(start.controller_start.id_key));
    lab_must(lab, &start);
    struct command image = { .type = CMD_IMAGE_SET };
    image.image_set = (struct image_spec){ .name = STR("debian-12"), .size_bytes = 1 };
    image.image_set.manifest.bytes[0] = 1;
    lab_must(lab, &image);
}

void lab_done(struct lab *lab)
{
    for (size_t i = 0; i < lab->agent_count; i++)
        vec_done(&lab->agents[i].processes);
    vec_done(&lab->claims);
    sched_free(lab->sched);
    state_free(lab->state);
    arena_done(&lab->arena);
}

struct id lab_id(struct lab *lab)
{
    return (struct id){ 0x1ab, lab->next_id++ };
}

/* ---- events -------------------------------------------------------------------------------- */

WRAPS static void trace_add(struct lab *lab, uint64_t value)
{
    lab->trace = (lab->trace ^ value) * 0x100000001b3u;
}

static void trace_event(struct lab *lab, const struct event *event)
{
    trace_add(lab, event->type);
    trace_add(lab, event->sequence);
    if (event->type == EV_WORKLOAD_CHANGED) {
        trace_add(lab, event->workload_changed.workload.lo);
        trace_add(lab, event->workload_changed.state);
    }
    if (event->type == EV_ALLOCATION_GRANTED) {
        trace_add(lab, event->allocation_granted.id.lo);
        trace_add(lab, event->allocation_granted.node.lo);
        for (size_t i = 0; i < event->allocation_granted.shares.count; i++)
            trace_add(lab, (uint64_t)event->allocation_granted.shares.items[i].device);
    }
}

/* A claimant that leaves the queue has started, or withdrew. */
static void claim_settle(struct lab *lab, const struct workload_changed *changed)
{
    for (size_t left = lab->claims.count; left > 0 && changed->state != WL_QUEUED; left--) {
        size_t i = left - 1;
        if (id_eq(lab->claims.items[i], changed->workload))
            lab->claims.items[i] = lab->claims.items[--lab->claims.count];
    }
}

/* Kept while its node was lost, it runs on, whoever got its part of a limit meanwhile. */
static bool comes_back(const struct lab *lab, const struct event *event)
{
    if (event->type != EV_ALLOCATION_CHANGED)
        return false;
    const struct allocation *a = state_allocation(lab->state, event->allocation_changed.allocation);
    return a->r.state == AL_LOST && allocation_is_charged(event->allocation_changed.state);
}

static void apply(struct lab *lab, const struct event_list *events)
{
    for (size_t i = 0; i < events->count; i++) {
        struct event *event = &events->items[i];
        event->sequence = lab->state->sequence + 1;
        trace_event(lab, event);
        if (event->type == EV_WORKLOAD_CHANGED)
            claim_settle(lab, &event->workload_changed);
        lab->may_be_over_limit |= comes_back(lab, event);
        evolve(lab->state, event);
        sched_note(lab->sched, event);
    }
}

static enum err decide_and_apply(struct lab *lab, struct command *command)
{
    struct event_list events = { 0 };
    command->now = lab->now;
    command->wall = lab->wall;
    if (command->actor.role == ROLE_NONE)
        command->actor = admin;
    if (id_is_none(command->new_id))
        command->new_id = lab_id(lab);
    enum err rc = decide(lab->state, lab->sched, command, &lab->arena, &events, &lab->e);
    CHECK("a refusal leaves no events", rc == ERR_OK || events.count == 0);
    apply(lab, &events);
    lab_check(lab);
    return rc;
}

/* ---- evictions ----------------------------------------------------------------------------- */

static int64_t staying(const struct project *project, int64_t class_number, const struct lab *lab)
{
    int64_t sum = 0;
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next) {
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node) {
            if (a->r.class_number == class_number &&
                (a->r.state == AL_STARTING || a->r.state == AL_RUNNING) &&
                project_is_within(a->workload->project, project))
                sum += a->r.charge_milli;
        }
    }
    return sum;
}

static int64_t charge_of(const struct workload *victim)
{
    int64_t charge = 0;
    for (const struct allocation *a = victim->first_allocation; a != NULL; a = a->next_in_workload)
        charge += a->r.state == AL_STARTING || a->r.state == AL_RUNNING ? a->r.charge_milli : 0;
    return charge;
}

/* Of all of it, or of the members that it is to lose. */
static int64_t charge_of_entry(const struct plan_entry *entry)
{
    const struct gang_record ranks = { .missing = entry->ranks };
    int64_t charge = 0;
    if (entry->action == PLAN_EVICT)
        return charge_of(entry->workload);
    for (const struct allocation *a = entry->workload->first_allocation; a != NULL;
         a = a->next_in_workload)
        charge +=
            (a->r.state == AL_STARTING || a->r.state == AL_RUNNING) && gang_lacks(&ranks, a->r.rank)
                ? a->r.charge_milli
                : 0;
    return charge;
}

static bool is_eviction(const struct plan_entry *entry)
{
    return entry->action == PLAN_EVICT || entry->action == PLAN_SHRINK;
}

static int64_t class_of(const struct workload *victim)
{
    return victim->last_allocation->r.class_number;
}

/* What the first entries of a plan change of the use of a class. */
static int64_t planned(const struct plan *plan, size_t count, const struct project *project,
                       int64_t class_number)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        if (!project_is_within(entry->workload->project, project))
            continue;
        if (is_eviction(entry) && class_of(entry->workload) == class_number)
            sum -= charge_of_entry(entry);
        for (size_t k = 0; k < entry->member_count; k++)
            sum +=
                entry->members[k].class_number == class_number ? entry->members[k].charge_milli : 0;
    }
    return sum;
}

/* INV-8: where the paths part, the victim's side is above its quota, and stays at or above it. */
static void check_eviction(const struct lab *lab, const struct plan *plan, size_t at)
{
    const struct plan_entry *entry = &plan->entries[at];
    const struct workload *victim = entry->workload;
    CHECK("INV-8: victims are preemptible", victim->r.preemptible == PREEMPTIBLE_ALWAYS);
    if (entry->cause == CAUSE_CONSOLIDATED) {
        CHECK("only if it is so wanted", lab->state->settings.consolidate == CONSOLIDATE_ON);
        return; /* nobody loses by it */
    }
    if (victim->project == entry->for_whom->project) {
        CHECK("INV-8: within a project only the less urgent",
              entry->cause == CAUSE_PREEMPTED_BY_PRIORITY &&
                  victim->r.priority < entry->for_whom->r.priority);
        return;
    }
    bool to_share = lab->state->settings.reclaim_to == RECLAIM_TO_FAIR_SHARE;
    CHECK("INV-8: others' work for a quota, or for a share where that is set",
          entry->cause == CAUSE_RECLAIMED_FOR_QUOTA ||
              (to_share && entry->cause == CAUSE_RECLAIMED_FOR_SHARE));
    const struct project *side = victim->project;
    while (side->parent != NULL && !project_is_within(entry->for_whom->project, side->parent))
        side = side->parent;
    if (project_is_within(entry->for_whom->project, side))
        return; /* work given directly to a parent: judged by what its children leave */
    int64_t class_number = class_of(victim);
    int64_t stays = staying(side, class_number, lab) + planned(plan, at, side, class_number);
    int64_t quota = sched_quota(lab->sched, side, class_number);
    CHECK("INV-8: the victim's side was above its quota", stays > quota);
    CHECK("INV-8: and does not end below it, but for work that is beyond it",
          stays - charge_of_entry(entry) >= quota || entry->cause == CAUSE_RECLAIMED_FOR_QUOTA);
}

static void note_plan(struct lab *lab, const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        lab->starts += entry->action == PLAN_START;
        lab->growths += entry->action == PLAN_GROW;
        lab->shrinks += entry->action == PLAN_SHRINK;
        if (!is_eviction(entry))
            continue;
        lab->evictions++;
        lab->moves += entry->cause == CAUSE_CONSOLIDATED;
        if (entry->for_whom == NULL)
            continue; /* a reservation needs the room */
        vec_push(&lab->claims, entry->for_whom->r.id);
        if (!lab->is_unchecked)
            check_eviction(lab, plan, i);
    }
}

static void carry_out(struct lab *lab, const struct plan *plan)
{
    struct event_list events = { 0 };
    note_plan(lab, plan);
    decide_plan(lab->state, plan, lab->now, lab->wall, &lab->arena, &events);
    apply(lab, &events);
    if (events.count > 0)
        lab_check(lab);
}

bool lab_step(struct lab *lab, size_t budget, lab_judge *judge, void *arg)
{
    struct plan plan = { 0 };
    bool more = sched_step(lab->sched, lab->now, budget, &lab->arena, &plan);
    lab->steps++;
    if (judge != NULL)
        judge(arg, &plan);
    carry_out(lab, &plan);
    return more;
}

void lab_schedule(struct lab *lab)
{
    bool more = !lab->is_paused;
    for (size_t rounds = 0; more; rounds++) {
        CHECK("scheduling comes to an end", rounds < 100000);
        more = lab_step(lab, lab->is_unchecked ? 1000 : 3, NULL, NULL);
    }
    arena_reset(&lab->arena);
}

enum err lab_do(struct lab *lab, struct command *command)
{
    enum err rc = decide_and_apply(lab, command);
    lab_schedule(lab);
    return rc;
}

void lab_must(struct lab *lab, struct command *command)
{
    if (lab_do(lab, command) != ERR_OK)
        test_fail(command_name(command->type), lab->e.text, __FILE__, __LINE__);
}

/* ---- invariants ---------------------------------------------------------------------------- */

struct load {
    int64_t milli;
    int64_t mib;
    size_t holders;
    size_t whole;
    const struct project *tenant;
    bool is_mixed, is_overlapping;
    uint8_t slices;
};

/* INV-1: no device is booked twice, in any dimension. */
static void check_device(const struct lab *lab, const struct node *node,
                         const struct device_record *device)
{
    struct load load = { 0 };
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        for (size_t i = 0; i < a->r.shares.count; i++) {
            const struct device_share *share = &a->r.shares.items[i];
            const struct project *tenant = a->workload->project->tenant;
            if (share->device != device->index)
                continue;
            uint8_t slices = mig_mask(share->slice_start, share->slice_size);
            load.is_overlapping |= (load.slices & slices) != 0;
            load.slices |= slices;
            load.milli += share->milli;
            load.mib += share->memory_mib;
            load.holders++;
            load.whole += share->milli == 1000;
            load.is_mixed |= load.tenant != NULL && load.tenant != tenant;
            load.tenant = tenant;
        }
    }
    const struct class_record *class = &state_class(lab->state, device->class_number)->r;
    CHECK("INV-1: thousandths of a device", load.milli <= 1000);
    int64_t reserve = mig_table_of(class) != NULL ? 0 : lab->state->settings.device_reserve_mib;
    CHECK("INV-1: memory of a device", load.mib <= device->memory_mib - reserve);
    CHECK("INV-1: partitions are disjoint", !load.is_overlapping);
    CHECK("INV-1: a whole device has one holder", load.whole == 0 || load.holders == 1);
    CHECK("INV-1: shares of one tenant", !load.is_mixed || class->slicing == SLICING_MIG);
}

static void check_node(const struct lab *lab, const struct node *node)
{
    int64_t cpu = 0;
    int64_t memory = 0;
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        cpu += a->r.cpu_milli;
        memory += a->r.memory_mib;
    }
    CHECK("INV-1: cores of a node", cpu <= node->r.cpu_milli);
    CHECK("INV-1: memory of a node", memory <= node->r.memory_mib);
    for (size_t i = 0; i < node->r.devices.count; i++)
        check_device(lab, node, &node->r.devices.items[i]);
}

static size_t live_of_rank(const struct workload *w, int64_t rank)
{
    size_t count = 0;
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload)
        count += a->r.rank == rank && (a->r.state == AL_STARTING || a->r.state == AL_RUNNING);
    return count;
}

/* Gaps are gaps, and a gang is short exactly when it has too many of them. */
static void check_gang(const struct lab *lab, const struct workload *w)
{
    const struct gang *gang = state_gang(lab->state, w->r.id);
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload)
        CHECK("one member a rank", live_of_rank(w, a->r.rank) <= 1);
    if (gang == NULL)
        return;
    int64_t left = w->r.members - (int64_t)gang->r.missing.count;
    CHECK("only what runs is not whole", w->r.state == WL_STARTING || w->r.state == WL_RUNNING);
    CHECK("short of members", (left < members_least(&w->r)) == (gang->r.short_since.ns != 0));
    for (size_t i = 0; i < gang->r.missing.count; i++)
        CHECK("a gap is one", live_of_rank(w, gang->r.missing.items[i].rank) == 0);
}

/* INV-6 and INV-7: what a workload holds fits its state. */
static void check_workload(const struct workload *w)
{
    int64_t present = 0;
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload) {
        if (!allocation_is_charged(a->r.state))
            continue;
        CHECK("INV-6: only the present attempt is live", a->r.attempt == w->r.attempt);
        present++;
    }
    bool may_hold =
        w->r.state == WL_STARTING || w->r.state == WL_RUNNING || w->r.state == WL_STOPPING;
    CHECK("INV-7: waiting and ended work holds nothing", may_hold || present == 0);
    CHECK("INV-7: never more than all members", present <= w->r.members);
    CHECK("INV-7: a stop has something to stop", w->r.state != WL_STOPPING || present > 0);
    CHECK("INV-6: restart never", w->r.restart != RESTART_NEVER || w->r.attempt <= 1);
    CHECK("INV-7: a start is of all members",
          w->r.state != WL_STARTING || w->first_allocation != NULL || w->r.members == 0);
    CHECK("a stop knows what follows", w->r.state != WL_STOPPING || w->r.after_stop == WL_QUEUED ||
                                           workload_state_is_final(w->r.after_stop));
}

static int64_t charged(const struct lab *lab, const struct project *project, int64_t class_number)
{
    int64_t sum = 0;
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next) {
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node) {
            if (a->r.class_number == class_number && allocation_is_charged(a->r.state) &&
                project_is_within(a->workload->project, project))
                sum += a->r.charge_milli;
        }
    }
    return sum;
}

/* INV-3: use is what the allocations say, and within every limit. */
static void check_project(const struct lab *lab, const struct project *project)
{
    for (size_t c = 0; c < lab->state->classes.count; c++) {
        int64_t sum = charged(lab, project, (int64_t)c);
        int64_t limit = project_quota(project, (int64_t)c).limit_milli;
        CHECK("INV-3: use equals the sum of allocations",
              sched_use(lab->sched, project, (int64_t)c).allocated_milli == sum);
        CHECK("INV-3: no limit is passed",
              limit == UNBOUNDED || sum <= limit || lab->may_be_over_limit);
    }
}

void lab_check(const struct lab *lab)
{
    struct error e = { 0 };
    if (lab->is_unchecked)
        return;
    if (!state_check(lab->state, &e))
        test_fail("state_check", e.text, __FILE__, __LINE__);
    if (!sched_check(lab->sched, &e))
        test_fail("sched_check", e.text, __FILE__, __LINE__);
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next)
        check_node(lab, n);
    for (const struct workload *w = lab->state->first_workload; w != NULL; w = w->next) {
        check_workload(w);
        check_gang(lab, w);
    }
    for (const struct project *p = lab->state->first_tenant; p != NULL; p = project_next(p))
        check_project(lab, p);
}

/* ---- agents -------------------------------------------------------------------------------- */

static struct lab_process *process_of(struct lab_agent *agent, struct id allocation)
{
    for (size_t i = 0; i < agent->processes.count; i++) {
        if (id_eq(agent->processes.items[i].allocation, allocation))
            return &agent->processes.items[i];
    }
    return NULL;
}

static void process_stop(struct lab *lab, struct lab_process *process)
{
    if (process->is_stopping || process->has_exited)
        return;
    process->is_stopping = true;
    process->dies_at = mono_add_s(lab->now, lab->stop_s);
}

/* The desired set: start what is new, stop what should not run, forget what is settled. */
static void agent_apply(struct lab *lab, struct lab_agent *agent)
{
    const struct node *node = state_node(lab->state, agent->node);
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        struct lab_process *process = process_of(agent, a->r.id);
        if (process == NULL && a->r.state == AL_STARTING) {
            struct lab_process started = { .allocation = a->r.id, .attempt = a->r.attempt };
            vec_push(&agent->processes, started);
        } else if (process != NULL && !core_wants_running(a)) {
            process_stop(lab, process);
        }
    }
    for (size_t left = agent->processes.count; left > 0; left--) {
        size_t i = left - 1;
        struct lab_process *process = &agent->processes.items[i];
        const struct allocation *a = state_allocation(lab->state, process->allocation);
        if (a == NULL)
            process_stop(lab, process);
        bool is_dead =
            process->is_stopping && !agent->is_stuck && !mono_before(lab->now, process->dies_at);
        if (is_dead && !process->has_exited) {
            process->has_exited = true;
            process->exit = (struct exit_status){ .is_known = true, .signal = 15 };
        }
        if (a == NULL && process->has_exited)
            *process = agent->processes.items[--agent->processes.count];
    }
}

static struct observed observe(const struct lab_agent *agent, const struct lab_process *process)
{
    struct observed seen = { .allocation = process->allocation,
                             .attempt = process->attempt,
                             .state = OBSERVED_RUNNING,
                             .cause = process->cause };
    if (process->has_failed)
        seen.state = OBSERVED_FAILED;
    else if (process->has_exited)
        seen.state = OBSERVED_EXITED;
    else if (process->is_stopping)
        seen.state = OBSERVED_STOPPING;
    else if (agent->is_slow)
        seen.state = OBSERVED_PREPARING;
    seen.exit = process->exit;
    return seen;
}

static void agent_report(struct lab *lab, struct lab_agent *agent)
{
    struct command report = { .type = CMD_NODE_OBSERVED,
                              .actor = { .role = ROLE_NODE, .node = agent->node } };
    struct node_observed *observed = &report.observed;
    observed->node = agent->node;
    observed->epoch = lab->state->epoch;
    observed->generation = state_node(lab->state, agent->node)->r.generation;
    observed->observed.count = agent->processes.count;
    observed->observed.items =
        arena_new(&lab->arena, agent->processes.count, sizeof(struct observed));
    for (size_t i = 0; i < agent->processes.count; i++)
        observed->observed.items[i] = observe(agent, &agent->processes.items[i]);
    lab_must(lab, &report);
}

static void contact(struct lab *lab, struct lab_agent *agent, enum node_contact how)
{
    struct command command = { .type = CMD_NODE_CONTACT, .actor = controller };
    command.contact.node = agent->node;
    command.contact.contact = how;
    if (how == CONTACT_OK)
        command.contact.boot_id = str_of(agent->boot_id);
    lab_must(lab, &command);
}

/* What the engine does about nodes: contact when heard of, worse when silent for long. */
static void agent_contact(struct lab *lab, struct lab_agent *agent)
{
    const struct node *node = state_node(lab->state, agent->node);
    const struct settings_record *settings = &lab->state->settings;
    if (agent->is_up && !agent->is_silent) {
        agent->seen = lab->now;
        if (node->r.contact != CONTACT_OK || !str_is(node->r.boot_id, agent->boot_id))
            contact(lab, agent, CONTACT_OK);
        return;
    }
    int64_t silent_ns = lab->now.ns - agent->seen.ns;
    if (silent_ns >= settings->lost_after_s * NS_PER_S && node->r.contact < CONTACT_LOST)
        contact(lab, agent, CONTACT_LOST);
    else if (silent_ns >= settings->unknown_after_s * NS_PER_S && node->r.contact < CONTACT_UNKNOWN)
        contact(lab, agent, CONTACT_UNKNOWN);
}

static void tick_if_due(struct lab *lab)
{
    for (size_t rounds = 0; !mono_before(lab->now, core_next_deadline(lab->sched)); rounds++) {
        CHECK("deadlines come to an end", rounds < 10000);
        struct command tick = { .type = CMD_TICK, .actor = controller };
        lab_must(lab, &tick);
    }
}

void lab_settle(struct lab *lab)
{
    uint64_t before = 0;
    size_t rounds = 0;
    lab_schedule(lab);
    do {
        CHECK("agents come to rest", rounds++ < 1000);
        before = lab->state->sequence;
        for (size_t i = 0; i < lab->agent_count; i++) {
            struct lab_agent *agent = &lab->agents[i];
            if (state_node(lab->state, agent->node) == NULL)
                continue;
            agent_contact(lab, agent);
            if (!agent->is_up || agent->is_silent)
                continue;
            agent_apply(lab, agent);
            agent_report(lab, agent);
        }
        tick_if_due(lab);
        lab_schedule(lab);
    } while (lab->state->sequence != before);
}

void lab_run(struct lab *lab, int64_t seconds)
{
    for (int64_t i = 0; i < seconds; i++) {
        lab->now = mono_add_s(lab->now, 1);
        lab->wall.ns += NS_PER_S;
        lab_settle(lab);
    }
}

static void restore_event(void *arg, const struct event *event)
{
    evolve_restored(arg, event);
}

void lab_restart(struct lab *lab)
{
    struct state_header header = state_header(lab->state);
    struct state *restored = state_new();
    state_restore_header(restored, &header);
    state_walk(lab->state, restore_event, restored);
    sched_free(lab->sched);
    state_free(lab->state);
    lab->state = restored;
    lab->sched = sched_new(restored);
    for (size_t i = 0; i < lab->agent_count; i++)
        lab->agents[i].seen = lab->now;
    struct command start = { .type = CMD_CONTROLLER_START, .actor = controller };
    start.controller_start.epoch = restored->epoch + 1;
    lab_must(lab, &start);
}

/* ---- builders ------------------------------------------------------------------------------ */

static struct quota_spec_list quotas_of(struct lab *lab, struct lab_quota quota)
{
    struct quota_spec_list list = { 0 };
    if (quota.class_name == NULL)
        return list;
    list.items = arena_new(&lab->arena, 1, sizeof(*list.items));
    list.count = 1;
    list.items[0] = (struct quota_spec){
        .class_name = str_of(quota.class_name),
        .quota_milli = quota.quota_milli,
        .lend_limit_milli = quota.lend_milli != 0 ? quota.lend_milli : UNSET,
        .limit_milli = quota.limit_milli != 0 ? quota.limit_milli : UNSET,
        .over_quota_weight = quota.weight != 0 ? quota.weight : UNSET,
    };
    return list;
}

struct id lab_project(struct lab *lab, const char *path, struct lab_quota quota)
{
    struct command command = { .type = CMD_PROJECT_CREATE };
    command.project = (struct project_spec){ .path = str_of(path),
                                             .priority = UNSET,
                                             .quotas = quotas_of(lab, quota) };
    lab_must(lab, &command);
    return state_project_by_path(lab->state, str_of(path))->r.id;
}

void lab_set_quota(struct lab *lab, const char *path, struct lab_quota quota)
{
    struct command command = { .type = CMD_PROJECT_UPDATE };
    command.project = (struct project_spec){
        .path = str_of(path), .priority = UNSET, .quotas = quotas_of(lab, quota), .is_forced = true
    };
    command.target.name = str_of(path);
    lab_must(lab, &command);
}

static struct id join(struct lab *lab, const char *name)
{
    struct command token = { .type = CMD_TOKEN_CREATE };
    token.token_create =
        (struct token_spec){ .name = STR("join"), .role = ROLE_NODE_JOIN, .expires_s = UNSET };
    memcpy(token.secret.bytes, &lab->next_id, sizeof(lab->next_id));
    lab_must(lab, &token);
    struct command command = { .type = CMD_NODE_JOIN, .actor = { .role = ROLE_NODE_JOIN } };
    command.node_join.join_secret = token.secret;
    command.node_join.name = str_of(name);
    lab_must(lab, &command);
    return state_node_by_name(lab->state, str_of(name))->r.id;
}

struct lab_agent *lab_add_node(struct lab *lab, struct lab_node node)
{
    struct lab_agent *agent = &lab->agents[lab->agent_count++];
    *agent = (struct lab_agent){ .node = join(lab, node.name), .boot_id = "boot-1", .is_up = true };
    agent->seen = lab->now;
    struct command command = { .type = CMD_NODE_INVENTORY,
                               .actor = { .role = ROLE_NODE, .node = agent->node } };
    struct node_inventory *inventory = &command.inventory;
    inventory->node = agent->node;
    inventory->boot_id = str_of(agent->boot_id);
    inventory->agent_version = STR("1");
    inventory->cpu_class_name = STR("cpu-x86");
    inventory->cpu_milli = node.cpu_milli != 0 ? node.cpu_milli : 64000;
    inventory->memory_mib = node.node_memory_mib != 0 ? node.node_memory_mib : 1 << 20;
    inventory->rack = node.rack != NULL ? str_of(node.rack) : (struct str){ 0 };
    inventory->block = node.block != NULL ? str_of(node.block) : (struct str){ 0 };
    inventory->devices.count = node.devices;
    inventory->devices.items = arena_new(&lab->arena, node.devices, sizeof(struct found_device));
    for (size_t i = 0; i < node.devices; i++)
        inventory->devices.items[i] = (struct found_device){
            .index = (int64_t)i,
            .class_name = str_of(node.class_name),
            .vendor = STR("sim"),
            .uuid = str_of(arena_format(&lab->arena, "%s-%zu", node.name, i)),
            .memory_mib = node.memory_mib != 0 ? node.memory_mib : 81920,
            .is_simulated = true,
        };
    lab_must(lab, &command);
    return agent;
}

struct lab_agent *lab_agent_of(struct lab *lab, const char *node)
{
    const struct node *found = state_node_by_name(lab->state, str_of(node));
    for (size_t i = 0; found != NULL && i < lab->agent_count; i++) {
        if (id_eq(lab->agents[i].node, found->r.id))
            return &lab->agents[i];
    }
    test_fail("no such agent", node, __FILE__, __LINE__);
    return NULL;
}

static int64_t or_unset(int64_t value)
{
    return value != 0 ? value : UNSET;
}

static void job_lists(struct lab *lab, const struct lab_job *job, struct workload_spec *spec)
{
    spec->classes.items = arena_new(&lab->arena, 2, sizeof(struct str));
    if (job->class_name != NULL)
        spec->classes.items[spec->classes.count++] = str_of(job->class_name);
    if (job->other_class_name != NULL)
        spec->classes.items[spec->classes.count++] = str_of(job->other_class_name);
    if (job->volume != NULL) {
        spec->mounts.items = arena_new(&lab->arena, 1, sizeof(struct mount_spec));
        spec->mounts.items[0] =
            (struct mount_spec){ .volume = str_of(job->volume), .path = STR("/data") };
        spec->mounts.count = 1;
    }
    if (id_is_none(job->after))
        return;
    char text[ID_TEXT_MAX];
    bool is_array = state_workload(lab->state, job->after) == NULL;
    id_text(is_array ? ID_ARRAY : ID_WORKLOAD, job->after, text);
    spec->depends_on.items = arena_new(&lab->arena, 1, sizeof(struct dependency_spec));
    spec->depends_on.items[0] =
        (struct dependency_spec){ .workload = str_copy(&lab->arena, str_of(text)),
                                  .when = job->when };
    spec->depends_on.count = 1;
}

enum err lab_slice(struct lab *lab, const char *class_name, enum slicing slicing,
                   enum mig_table_name table)
{
    struct command command = { .type = CMD_CLASS_SET };
    const struct mig_table *partitions = mig_table_at(table);
    command.class_set = (struct class_spec){
        .name = str_of(class_name),
        .kind = UNSET,
        .memory_mib =
            partitions != NULL ? partitions->profiles[MIG_PROFILES_MAX - 1].memory_mib : UNSET,
        .slicing = slicing,
        .mig = table,
        .price_micros_per_hour = UNSET,
    };
    return lab_do(lab, &command);
}

struct command lab_submission(struct lab *lab, struct lab_job job)
{
    struct command command = { .type = CMD_WORKLOAD_SUBMIT, .actor = job.actor };
    struct workload_spec *spec = &command.submit;
    *spec = (struct workload_spec){
        .project = str_of(job.project),
        .reservation = str_of(job.reservation),
        .image = STR("debian-12"),
        .topology = job.topology,
        .count = or_unset(job.count),
        .gpu_milli = or_unset(job.gpu_milli),
        .gpu_memory_mib = or_unset(job.gpu_memory_mib),
        .devices = or_unset(job.devices),
        .share_milli = or_unset(job.share_milli),
        .mig_profile = job.mig_profile,
        .cpu_milli = job.cpu_milli != 0 ? job.cpu_milli : 10,
        .memory_mib = job.memory_mib != 0 ? job.memory_mib : 10,
        .shm_mib = UNSET,
        .members = or_unset(job.members),
        .members_min = or_unset(job.members_min),
        .priority = or_unset(job.priority),
        .time_limit_s = or_unset(job.time_limit_s),
        .grace_s = UNSET,
        .retries = or_unset(job.retries),
        .fence_after_s = or_unset(job.fence_after_s),
        .preemptible = job.is_fixed ? PREEMPTIBLE_NEVER : UNSET,
        .restart = job.never_restarts ? RESTART_NEVER : UNSET,
        .on_contact_loss = job.on_contact_loss,
        .is_held = job.is_held,
    };
    job_lists(lab, &job, spec);
    command.spec_json = STR("{}");
    command.new_id = lab_id(lab);
    return command;
}

struct id lab_submit(struct lab *lab, struct lab_job job)
{
    struct command command = lab_submission(lab, job);
    const struct id none = { 0 };
    return lab_do(lab, &command) == ERR_OK ? command.new_id : none;
}

struct id lab_element(const struct lab *lab, struct id array, int64_t index)
{
    const struct workload *w = state_array(lab->state, array);
    while (w != NULL && w->r.array_index != index)
        w = w->array_next;
    const struct id none = { 0 };
    return w != NULL ? w->r.id : none;
}

/* ---- acting and asking --------------------------------------------------------------------- */

enum err lab_act(struct lab *lab, enum command_type type, struct id id)
{
    struct command command = { .type = type };
    command.target.id = id;
    return lab_do(lab, &command);
}

enum err lab_node_act(struct lab *lab, enum command_type type, const char *node)
{
    struct command command = { .type = type };
    command.target.name = str_of(node);
    command.target.deadline_s = UNSET;
    return lab_do(lab, &command);
}

struct settings_record lab_no_settings(void)
{
    return (struct settings_record){
        .grace_s = UNSET,
        .kill_confirm_s = UNSET,
        .min_runtime_s = UNSET,
        .min_runtime_in_quota_s = UNSET,
        .start_timeout_s = UNSET,
        .lost_after_s = UNSET,
        .unknown_after_s = UNSET,
        .device_reserve_mib = UNSET,
        .backoff_base_s = UNSET,
        .backoff_max_s = UNSET,
        .ended_keep_s = UNSET,
        .ended_keep_count = UNSET,
        .placement = PLACE_ADAPTIVE,
        .default_time_limit_s = UNSET,
        .starvation_after_s = UNSET,
        .lead_s = UNSET,
        .gang_repair_s = UNSET,
        .history_k_milli = UNSET,
        .history_half_life_s = UNSET,
        .consolidate_max_moves = UNSET,
    };
}

void lab_set(struct lab *lab, struct settings_record settings)
{
    struct command command = { .type = CMD_SETTINGS_SET };
    command.settings = settings;
    lab_must(lab, &command);
}

const struct workload_record *lab_record(const struct lab *lab, struct id id)
{
    const struct workload *w = state_workload(lab->state, id);
    if (w == NULL)
        test_fail("lab_record", "no such workload", __FILE__, __LINE__);
    return &w->r;
}

bool lab_is(const struct lab *lab, struct id id, enum workload_state state)
{
    return lab_record(lab, id)->state == state;
}

size_t lab_count(const struct lab *lab, enum workload_state state)
{
    size_t count = 0;
    for (const struct workload *w = lab->state->first_workload; w != NULL; w = w->next)
        count += w->r.state == state;
    return count;
}

void lab_exit_with(struct lab *lab, struct id workload, int64_t rank, struct exit_status exit,
                   enum cause cause)
{
    const struct workload *w = state_workload(lab->state, workload);
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload) {
        if (a->r.rank != rank || a->r.attempt != w->r.attempt)
            continue;
        for (size_t i = 0; i < lab->agent_count; i++) {
            struct lab_process *process = process_of(&lab->agents[i], a->r.id);
            if (process == NULL)
                continue;
            process->has_exited = true;
            process->exit = exit;
            process->cause = cause;
            return;
        }
    }
    test_fail("lab_exit", "there is no such process", __FILE__, __LINE__);
}

void lab_exit(struct lab *lab, struct id workload, int64_t rank, int64_t code)
{
    const struct exit_status exit = { .is_known = true, .code = code };
    lab_exit_with(lab, workload, rank, exit, CAUSE_NONE);
}

const struct node *lab_where(const struct lab *lab, struct id workload)
{
    const struct workload *w = state_workload(lab->state, workload);
    return w->first_allocation != NULL ? w->first_allocation->node : NULL;
}

struct explanation lab_why(struct lab *lab, struct id workload)
{
    struct explanation why = { 0 };
    sched_explain(lab->sched, state_workload(lab->state, workload), lab->now, &lab->arena, &why);
    return why;
}

int64_t lab_used(const struct lab *lab, const char *path, const char *class_name)
{
    const struct class_object *class = state_class_by_name(lab->state, str_of(class_name));
    const struct project *project = state_project_by_path(lab->state, str_of(path));
    return sched_use(lab->sched, project, class->r.number).allocated_milli;
}
