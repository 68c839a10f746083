/* The invariants of the reliability plan that a single state can show. */
#include "model/mig.h"
#include "sched/sched.h"
#include "sim/expect.h"

struct sound {
    const struct world *world;
    struct buf *why;
    bool is_good;
};

static void broken(struct sound *sound, const char *invariant, struct str name)
{
    sound->is_good = false;
    buf_format(sound->why, "# at %gs: broken invariant: %s (%.*s)\n",
               (double)world_t(sound->world) / (double)NS_PER_S, invariant, STR_ARG(name));
}

struct load {
    int64_t milli, mib;
    size_t holders, whole;
    const struct project *tenant;
    bool is_mixed, is_overlapping;
    uint8_t slices;
};

static void load_add(struct load *load, const struct allocation *a, int64_t device)
{
    const struct project *tenant = a->workload->project->tenant;
    for (size_t i = 0; i < a->r.shares.count; i++) {
        const struct device_share *share = &a->r.shares.items[i];
        if (share->device != device)
            continue;
        uint8_t slices = mig_mask(share->slice_start, share->slice_size);
        load->is_overlapping = load->is_overlapping || (load->slices & slices) != 0;
        load->slices |= slices;
        load->milli += share->milli;
        load->mib += share->memory_mib;
        load->holders++;
        load->whole += share->milli == 1000;
        load->is_mixed = load->is_mixed || (load->tenant != NULL && load->tenant != tenant);
        load->tenant = tenant;
    }
}

/* INV-1: nothing is booked twice, in any dimension. */
static void check_device(struct sound *sound, const struct node *node,
                         const struct device_record *device)
{
    const struct state *state = engine_state(sound->world->engine);
    struct load load = { 0 };
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
        load_add(&load, a, device->index);
    const struct class_record *class = &state_class(state, device->class_number)->r;
    bool is_hard = class->slicing == SLICING_MIG;
    int64_t reserve = mig_table_of(class) != NULL ? 0 : state->settings.device_reserve_mib;
    if (load.milli > 1000 || load.mib > device->memory_mib - reserve)
        broken(sound, "1: a device holds more than there is of it", node->r.name);
    if (load.whole > 0 && load.holders > 1)
        broken(sound, "1: a whole device has one holder", node->r.name);
    if (load.is_overlapping)
        broken(sound, "1: two partitions of a device have a slice in common", node->r.name);
    if (load.is_mixed && !is_hard)
        broken(sound, "1: a shared device is of one tenant", node->r.name);
}

static void check_node(struct sound *sound, const struct node *node)
{
    int64_t cpu_milli = 0;
    int64_t memory_mib = 0;
    for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        cpu_milli += a->r.cpu_milli;
        memory_mib += a->r.memory_mib;
    }
    if (cpu_milli > node->r.cpu_milli || memory_mib > node->r.memory_mib)
        broken(sound, "1: cores and memory of a node", node->r.name);
    for (size_t i = 0; i < node->r.devices.count; i++)
        check_device(sound, node, &node->r.devices.items[i]);
}

/* INV-6, INV-7: what a workload holds fits its state. And every state says its cause; of what is
 * queued the scheduler tells it when asked. */
static void check_workload(struct sound *sound, const struct workload *w)
{
    int64_t present = 0;
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload) {
        if (!allocation_is_charged(a->r.state))
            continue;
        if (a->r.attempt != w->r.attempt)
            broken(sound, "6: only the present attempt is live", w->r.name);
        present++;
    }
    bool may_hold =
        w->r.state == WL_STARTING || w->r.state == WL_RUNNING || w->r.state == WL_STOPPING;
    if ((present > 0 && !may_hold) || present > w->r.members)
        broken(sound, "7: waiting and ended work holds nothing, other work its members", w->r.name);
    if (w->r.state != WL_QUEUED && w->r.cause == CAUSE_NONE)
        broken(sound, "every state has a cause", w->r.name);
}

/* INV-3: use is the sum of allocations. */
static void check_project(struct sound *sound, const struct project *project)
{
    const struct state *state = engine_state(sound->world->engine);
    for (size_t c = 0; c < state->classes.count; c++) {
        int64_t sum = 0;
        for (const struct node *n = state->first_node; n != NULL; n = n->next) {
            for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node)
                sum += a->r.class_number == (int64_t)c && allocation_is_charged(a->r.state) &&
                               project_is_within(a->workload->project, project)
                           ? a->r.charge_milli
                           : 0;
        }
        if (sum !=
            sched_use(engine_sched(sound->world->engine), project, (int64_t)c).allocated_milli)
            broken(sound, "3: use equals the sum of allocations", project->r.path);
    }
}

bool world_is_sound(const struct world *world, struct buf *why)
{
    const struct state *state = engine_state(world->engine);
    struct sound sound = { world, why, true };
    struct error e = { 0 };
    if (!state_check(state, &e) || !sched_check(engine_sched(world->engine), &e))
        broken(&sound, "derived data equals what the facts give", str_of(e.text));
    if (world->problem.code != ERR_OK)
        broken(&sound, "the core reports no problem", str_of(world->problem.text));
    for (const struct node *n = state->first_node; n != NULL; n = n->next)
        check_node(&sound, n);
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next)
        check_workload(&sound, w);
    for (const struct project *p = state->first_tenant; p != NULL; p = project_next(p))
        check_project(&sound, p);
    return sound.is_good;
}
