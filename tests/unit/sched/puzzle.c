#include "unit/sched/puzzle.h"

static void box_book(struct puzzle_box *box, const struct allocation *a)
{
    box->cpu -= a->r.cpu_milli;
    box->memory -= a->r.memory_mib;
    for (size_t i = 0; i < a->r.shares.count; i++) {
        const struct device_share *share = &a->r.shares.items[i];
        struct puzzle_gpu *gpu = &box->gpus[share->device];
        gpu->milli += share->milli;
        gpu->mib += share->memory_mib;
        gpu->is_whole |= share->milli == 1000;
        gpu->slices |= mig_mask(share->slice_start, share->slice_size);
        gpu->tenant = share->milli < 1000 ? a->workload->project->tenant : gpu->tenant;
    }
}

void puzzle_read(struct puzzle *puzzle, const struct lab *lab, const struct workload *w,
                 int64_t class_number, puzzle_gone *is_gone, void *arg)
{
    *puzzle = (struct puzzle){ .request = &w->r.request,
                               .class_number = class_number,
                               .table = mig_table_of(&state_class(lab->state, class_number)->r),
                               .tenant = w->project->tenant };
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next) {
        struct puzzle_box *box = &puzzle->boxes[puzzle->box_count++];
        *box = (struct puzzle_box){ .node = n,
                                    .cpu = n->r.cpu_milli,
                                    .memory = n->r.memory_mib,
                                    .is_closed = !node_is_usable(n) };
        box->gpu_count = n->r.devices.count;
        for (size_t i = 0; i < box->gpu_count; i++) {
            const struct device_record *device = &n->r.devices.items[i];
            box->gpus[i].usable =
                device->memory_mib -
                (puzzle->table != NULL ? 0 : lab->state->settings.device_reserve_mib);
            box->gpus[i].is_whole =
                !device_is_usable(device) || device->class_number != class_number;
        }
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node)
            if (is_gone == NULL || !is_gone(arg, a))
                box_book(box, a);
    }
}

/* ---- every way to place them ---------------------------------------------------------------- */

enum { NO_PART = 1001 }; /* thousandths that no device has */

/* The first legal place of a partition: those of one profile never overlap each other. */
static struct puzzle_gpu partition_of(const struct puzzle *puzzle, const struct puzzle_gpu *gpu)
{
    const struct mig_profile *profile = mig_cover(puzzle->table, puzzle->request);
    struct puzzle_gpu part = { .milli = NO_PART };
    if (profile != NULL && profile->memory == MIG_MEMORY_SLICES)
        return (struct puzzle_gpu){ .milli = 1000, .mib = gpu->usable };
    for (int64_t at = 0; profile != NULL && at < MIG_MEMORY_SLICES; at++) {
        uint8_t slices = mig_mask(at, profile->memory);
        if ((profile->starts >> at & 1) != 0 && (slices & gpu->slices) == 0 && part.slices == 0)
            part = (struct puzzle_gpu){ .milli = mig_milli(profile),
                                        .mib = profile->memory_mib,
                                        .slices = slices };
    }
    return part;
}

static struct puzzle_gpu part_of(const struct puzzle *puzzle, const struct puzzle_gpu *gpu)
{
    const struct request *r = puzzle->request;
    bool is_whole = r->devices > 0 ? r->share_milli == 1000 : r->gpu_milli >= 1000;
    if (puzzle->table != NULL && !is_whole)
        return partition_of(puzzle, gpu);
    if (r->mig_profile != MIG_ANY)
        return (struct puzzle_gpu){ .milli = NO_PART };
    struct puzzle_gpu part = { .milli = 1000, .mib = gpu->usable };
    if (r->gpu_memory_mib > 0) {
        part.milli = r->gpu_memory_mib * 1000 / gpu->usable;
        part.mib = r->gpu_memory_mib;
    } else if (r->devices > 0 ? r->share_milli < 1000 : r->gpu_milli < 1000) {
        part.milli = r->devices > 0 ? r->share_milli : r->gpu_milli;
        part.mib = part.milli * gpu->usable / 1000;
    }
    return part;
}

static bool gpu_takes(const struct puzzle *puzzle, const struct puzzle_gpu *gpu,
                      const struct puzzle_gpu *part)
{
    if (gpu->is_whole || part->milli == NO_PART)
        return false;
    if (part->milli >= 1000)
        return gpu->tenant == NULL && part->mib <= gpu->usable;
    return (gpu->tenant == NULL || gpu->tenant == puzzle->tenant || part->slices != 0) &&
           gpu->milli + part->milli <= 1000 && gpu->mib + part->mib <= gpu->usable;
}

static size_t devices_of(const struct request *r)
{
    if (r->devices > 0 || r->gpu_memory_mib > 0 || r->mig_profile != MIG_ANY)
        return (size_t)MAX_OF(r->devices, INT64_C(1));
    return r->gpu_milli == 0 ? 0 : (size_t)MAX_OF(r->gpu_milli / 1000, INT64_C(1));
}

/* One member on these devices of the box; false: it does not fit, and nothing is taken. */
static bool box_take(const struct puzzle *puzzle, struct puzzle_box *box, unsigned devices)
{
    const struct request *r = puzzle->request;
    if (box->cpu < r->cpu_milli || box->memory < r->memory_mib)
        return false;
    for (size_t i = 0; i < box->gpu_count; i++) {
        const struct puzzle_gpu part = part_of(puzzle, &box->gpus[i]);
        if ((devices >> i & 1) != 0 && !gpu_takes(puzzle, &box->gpus[i], &part))
            return false;
    }
    for (size_t i = 0; i < box->gpu_count; i++) {
        const struct puzzle_gpu part = part_of(puzzle, &box->gpus[i]);
        if ((devices >> i & 1) == 0)
            continue;
        box->gpus[i].milli += part.milli;
        box->gpus[i].mib += part.mib;
        box->gpus[i].slices |= part.slices;
        box->gpus[i].is_whole |= part.milli >= 1000;
        box->gpus[i].tenant = part.milli < 1000 ? puzzle->tenant : NULL;
    }
    box->cpu -= r->cpu_milli;
    box->memory -= r->memory_mib;
    return true;
}

static unsigned bits_of(unsigned set)
{
    unsigned count = 0;
    for (; set != 0; set &= set - 1)
        count++;
    return count;
}

static bool may_try(const struct puzzle *puzzle, size_t at, unsigned devices)
{
    const struct puzzle_box *box = &puzzle->boxes[at];
    return (puzzle->allowed >> at & 1) != 0 && !box->is_closed && devices >> box->gpu_count == 0 &&
           bits_of(devices) == devices_of(puzzle->request);
}

/* Members are equal, so they are tried in one order of places only: from `from` on. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are members */
static bool solve(struct puzzle *puzzle, size_t members, unsigned from)
{
    if (members == 0)
        return true;
    for (unsigned place = from; place < puzzle->box_count << PUZZLE_DEVICES_MAX; place++) {
        size_t at = place >> PUZZLE_DEVICES_MAX;
        unsigned devices = place & ((1u << PUZZLE_DEVICES_MAX) - 1);
        struct puzzle_box before = puzzle->boxes[at];
        if (!may_try(puzzle, at, devices) || !box_take(puzzle, &puzzle->boxes[at], devices))
            continue;
        if (solve(puzzle, members - 1, place))
            return true;
        puzzle->boxes[at] = before;
    }
    return false;
}

/* ---- racks and blocks ----------------------------------------------------------------------- */

/* Nodes without a label stand with the others of their pool that have none. */
static bool is_same(struct str label, struct str other, const struct node *a, const struct node *b)
{
    return str_eq(label, other) && (label.size > 0 || a->pool == b->pool);
}

/* A rack is one within its block. */
static bool is_near(const struct node *a, const struct node *b, enum topology topology)
{
    switch (topology) {
    case TOPOLOGY_NODE:
        return a == b;
    case TOPOLOGY_RACK:
        return str_eq(a->r.block, b->r.block) && is_same(a->r.rack, b->r.rack, a, b);
    case TOPOLOGY_BLOCK:
        return is_same(a->r.block, b->r.block, a, b);
    case TOPOLOGY_NONE:
    case TOPOLOGY_COUNT:
        break;
    }
    return true;
}

bool puzzle_is_solvable(const struct puzzle *puzzle, size_t members, enum topology topology)
{
    for (size_t first = 0; first < puzzle->box_count; first++) {
        struct puzzle copy = *puzzle;
        copy.allowed = 0;
        for (size_t i = 0; i < puzzle->box_count; i++)
            copy.allowed |=
                is_near(puzzle->boxes[first].node, puzzle->boxes[i].node, topology) ? 1u << i : 0;
        if (solve(&copy, members, 0))
            return true;
    }
    return false;
}

bool puzzle_is_within(const struct workload *w, enum topology topology)
{
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload)
        if (!is_near(w->first_allocation->node, a->node, topology))
            return false;
    return true;
}
