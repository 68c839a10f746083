/*
 * Placement against brute force: on small random clusters, with parts of devices taken by several
 * tenants, a gang starts exactly if some way to place all its members exists, whatever the
 * policy; within one rack or one node where that is required, and where it is preferred and can be
 * had. What is chosen takes no more than there is (lab_check).
 */
#include <string.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

#if defined(__SANITIZE_ADDRESS__)
enum { WORLDS = 30 };
#else
enum { WORLDS = 150 };
#endif
enum { NODES_MAX = 3, DEVICES_MAX = 4, MEMBERS_MOST = 6 };

/* ---- what is free, from the facts alone ----------------------------------------------------- */

struct gpu {
    int64_t milli, mib, usable;
    const struct project *tenant; /* of the sharers */
    bool is_whole;
};

struct box {
    struct gpu gpus[DEVICES_MAX];
    size_t gpu_count;
    int64_t cpu, memory;
};

struct puzzle {
    struct box boxes[NODES_MAX];
    size_t box_count;
    unsigned allowed; /* boxes, a bit each */
    const struct request *request;
    const struct project *tenant;
};

static void box_book(struct box *box, const struct allocation *a)
{
    box->cpu -= a->r.cpu_milli;
    box->memory -= a->r.memory_mib;
    for (size_t i = 0; i < a->r.shares.count; i++) {
        const struct device_share *share = &a->r.shares.items[i];
        struct gpu *gpu = &box->gpus[share->device];
        gpu->milli += share->milli;
        gpu->mib += share->memory_mib;
        gpu->is_whole |= share->milli == 1000;
        gpu->tenant = share->milli < 1000 ? a->workload->project->tenant : gpu->tenant;
    }
}

static void puzzle_read(struct puzzle *puzzle, const struct lab *lab)
{
    puzzle->box_count = 0;
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next) {
        struct box *box = &puzzle->boxes[puzzle->box_count++];
        *box = (struct box){ .cpu = n->r.cpu_milli, .memory = n->r.memory_mib };
        box->gpu_count = n->r.devices.count;
        for (size_t i = 0; i < box->gpu_count; i++)
            box->gpus[i].usable = n->r.devices.items[i].memory_mib;
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node)
            box_book(box, a);
    }
}

/* ---- every way to place them ---------------------------------------------------------------- */

static struct gpu part_of(const struct request *r, const struct gpu *gpu)
{
    struct gpu part = { .milli = 1000, .mib = gpu->usable };
    if (r->gpu_memory_mib > 0) {
        part.milli = r->gpu_memory_mib * 1000 / gpu->usable;
        part.mib = r->gpu_memory_mib;
    } else if (r->devices > 0 ? r->share_milli < 1000 : r->gpu_milli < 1000) {
        part.milli = r->devices > 0 ? r->share_milli : r->gpu_milli;
        part.mib = part.milli * gpu->usable / 1000;
    }
    return part;
}

static bool gpu_takes(const struct puzzle *puzzle, const struct gpu *gpu, const struct gpu *part)
{
    if (gpu->is_whole)
        return false;
    if (part->milli >= 1000)
        return gpu->tenant == NULL && part->mib <= gpu->usable;
    return (gpu->tenant == NULL || gpu->tenant == puzzle->tenant) &&
           gpu->milli + part->milli <= 1000 && gpu->mib + part->mib <= gpu->usable;
}

static size_t devices_of(const struct request *r)
{
    if (r->devices > 0 || r->gpu_memory_mib > 0)
        return (size_t)MAX_OF(r->devices, INT64_C(1));
    return r->gpu_milli == 0 ? 0 : (size_t)MAX_OF(r->gpu_milli / 1000, INT64_C(1));
}

/* One member on these devices of the box; false: it does not fit, and nothing is taken. */
static bool box_take(const struct puzzle *puzzle, struct box *box, unsigned devices)
{
    const struct request *r = puzzle->request;
    if (box->cpu < r->cpu_milli || box->memory < r->memory_mib)
        return false;
    for (size_t i = 0; i < box->gpu_count; i++) {
        const struct gpu part = part_of(r, &box->gpus[i]);
        if ((devices >> i & 1) != 0 && !gpu_takes(puzzle, &box->gpus[i], &part))
            return false;
    }
    for (size_t i = 0; i < box->gpu_count; i++) {
        const struct gpu part = part_of(r, &box->gpus[i]);
        if ((devices >> i & 1) == 0)
            continue;
        box->gpus[i].milli += part.milli;
        box->gpus[i].mib += part.mib;
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

/* Members are equal, so they are tried in one order of places only: from `from` on. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are members */
static bool solve(struct puzzle *puzzle, size_t members, unsigned from)
{
    if (members == 0)
        return true;
    for (unsigned place = from; place < puzzle->box_count << DEVICES_MAX; place++) {
        struct box *box = &puzzle->boxes[place >> DEVICES_MAX];
        unsigned devices = place & ((1u << DEVICES_MAX) - 1);
        struct box before = *box;
        if ((puzzle->allowed >> (place >> DEVICES_MAX) & 1) == 0 ||
            devices >> box->gpu_count != 0 || bits_of(devices) != devices_of(puzzle->request) ||
            !box_take(puzzle, box, devices))
            continue;
        if (solve(puzzle, members - 1, place))
            return true;
        *box = before;
    }
    return false;
}

/* Nodes 0 and 1 are a rack, node 2 has no label. */
static const unsigned racks[] = { 3, 4 };
static const unsigned single[] = { 1, 2, 4 };
static const unsigned block[] = { 7 };
static const unsigned anywhere[] = { 7 };

struct sets {
    const unsigned *items;
    size_t count;
};

static struct sets sets_of(enum topology topology)
{
    switch (topology) {
    case TOPOLOGY_NODE:
        return (struct sets){ single, COUNT_OF(single) };
    case TOPOLOGY_RACK:
        return (struct sets){ racks, COUNT_OF(racks) };
    case TOPOLOGY_BLOCK:
        return (struct sets){ block, COUNT_OF(block) };
    case TOPOLOGY_NONE:
    case TOPOLOGY_COUNT:
        break;
    }
    return (struct sets){ anywhere, COUNT_OF(anywhere) };
}

static bool is_solvable(const struct puzzle *puzzle, size_t members, enum topology topology)
{
    struct sets sets = sets_of(topology);
    for (size_t i = 0; i < sets.count; i++) {
        struct puzzle copy = *puzzle;
        copy.allowed = sets.items[i];
        if (solve(&copy, members, 0))
            return true;
    }
    return false;
}

/* Which nodes it was given: a bit each. */
static unsigned nodes_used(const struct lab *lab, const struct workload *w)
{
    unsigned used = 0;
    unsigned at = 0;
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next, at++)
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node)
            used |= a->workload == w ? 1u << at : 0;
    return used;
}

static bool is_within(unsigned used, enum topology topology)
{
    struct sets sets = sets_of(topology);
    for (size_t i = 0; i < sets.count; i++) {
        if ((used & ~sets.items[i]) == 0)
            return true;
    }
    return false;
}

/* ---- random worlds -------------------------------------------------------------------------- */

static struct lab_job any_job(uint64_t *random, const char *project)
{
    static const int64_t parts[] = { 100, 250, 333, 500, 700 };
    struct lab_job job = { .project = project };
    switch (test_below(random, 5)) {
    case 0:
        job.gpu_memory_mib = 1000 + (int64_t)test_below(random, 24000);
        break;
    case 1:
        job.devices = 1 + (int64_t)test_below(random, 3);
        job.share_milli = parts[test_below(random, COUNT_OF(parts))];
        break;
    case 2:
        job.gpu_milli = 1000 * (1 + (int64_t)test_below(random, 3));
        break;
    default:
        job.gpu_milli = parts[test_below(random, COUNT_OF(parts))];
        break;
    }
    job.cpu_milli = test_below(random, 2) == 0 ? 0 : 500 * (int64_t)test_below(random, 4);
    job.memory_mib = test_below(random, 3) == 0 ? 1024 : 0;
    return job;
}

static void make_world(struct lab *lab, uint64_t *random)
{
    static const char *const names[NODES_MAX] = { "n0", "n1", "n2" };
    size_t nodes = 1 + test_below(random, NODES_MAX);
    for (size_t i = 0; i < nodes; i++)
        lab_add_node(lab,
                     (struct lab_node){ .name = names[i],
                                        .class_name = "h100",
                                        .devices = 1 + test_below(random, DEVICES_MAX),
                                        .memory_mib = test_below(random, 4) == 0 ? 24576 : 46068,
                                        .cpu_milli = 4000 * (1 + (int64_t)test_below(random, 3)),
                                        .node_memory_mib = 8192,
                                        .rack = i < 2 ? "r1" : NULL });
    lab_project(lab, "amber", (struct lab_quota){ 0 });
    lab_project(lab, "birch", (struct lab_quota){ 0 });
}

/* Work of both tenants, some of which ends again, so that what is left has holes. */
static void make_holes(struct lab *lab, uint64_t *random)
{
    size_t jobs = test_below(random, 12);
    for (size_t i = 0; i < jobs; i++)
        (void)lab_submit(lab, any_job(random, test_below(random, 2) == 0 ? "amber" : "birch"));
    lab_run(lab, 2);
    for (struct workload *w = lab->state->first_workload; w != NULL; w = w->next) {
        if (w->r.state != WL_RUNNING || test_below(random, 3) == 0)
            (void)lab_act(lab, CMD_WORKLOAD_CANCEL, w->r.id);
    }
    lab_run(lab, 5);
}

static bool try_gang(struct lab *lab, uint64_t *random)
{
    struct lab_job job = any_job(random, test_below(random, 2) == 0 ? "amber" : "birch");
    struct puzzle puzzle;
    job.members = 1 + (int64_t)test_below(random, MEMBERS_MOST);
    if (test_below(random, 2) == 0)
        job.topology.required = (enum topology)test_below(random, TOPOLOGY_COUNT);
    else
        job.topology.preferred = (enum topology)test_below(random, TOPOLOGY_COUNT);
    puzzle_read(&puzzle, lab);
    struct id id = lab_submit(lab, job);
    if (id_is_none(id))
        return false; /* more than the largest node has */
    const struct workload *w = state_workload(lab->state, id);
    struct request request = w->r.request;
    puzzle.request = &request;
    puzzle.tenant = w->project->tenant;
    bool is_placed = w->r.state != WL_QUEUED;
    size_t members = (size_t)job.members;
    CHECK("it starts if and only if there is a way",
          is_placed == is_solvable(&puzzle, members, job.topology.required));
    unsigned used = nodes_used(lab, w);
    CHECK("as close together as required", is_within(used, job.topology.required));
    bool is_closest = is_within(used, job.topology.preferred);
    CHECK("as close together as preferred",
          !is_placed || is_closest == is_solvable(&puzzle, members, job.topology.preferred));
    bool has_topology = job.topology.required != TOPOLOGY_NONE && members > 1;
    if (!is_placed)
        CHECK("the cause says whether it is the topology",
              (lab_why(lab, id).cause == CAUSE_WAITING_FOR_TOPOLOGY) ==
                  (has_topology && is_solvable(&puzzle, members, TOPOLOGY_NONE)));
    (void)lab_act(lab, CMD_WORKLOAD_CANCEL, id);
    lab_run(lab, 5);
    return is_placed;
}

static void a_gang_starts_if_there_is_a_way(void **state)
{
    uint64_t random = test_seed();
    size_t placed = 0;
    size_t tried = 0;
    (void)state;
    for (unsigned i = 0; i < WORLDS; i++) {
        AUTO(lab) struct lab lab;
        struct settings_record settings = lab_no_settings();
        lab_init(&lab);
        settings.placement = (enum placement)(i % PLACEMENT_COUNT);
        lab_set(&lab, settings);
        make_world(&lab, &random);
        make_holes(&lab, &random);
        for (int k = 0; k < 4; k++, tried++)
            placed += try_gang(&lab, &random);
    }
    print_message("# %zu gangs, %zu placed\n", tried, placed);
    CHECK("some were, some were not", placed > tried / 10 && placed < tried);
}

/* ---- what the policies are for --------------------------------------------------------------- */

/* Two small jobs on two empty nodes: does a job of a whole node still fit? */
static bool leaves_a_node(enum placement policy)
{
    AUTO(lab) struct lab lab;
    struct settings_record settings = lab_no_settings();
    lab_init(&lab);
    settings.placement = policy;
    lab_set(&lab, settings);
    lab_add_node(&lab, (struct lab_node){ .name = "n0", .class_name = "h100", .devices = 8 });
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 8 });
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    (void)lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    (void)lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 500 });
    struct id whole = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 8000 });
    return !lab_is(&lab, whole, WL_QUEUED);
}

static void policies_do_what_they_say(void **state)
{
    (void)state;
    for (unsigned policy = 0; policy < PLACEMENT_COUNT; policy++)
        CHECK(enum_name(&placement_names, policy),
              leaves_a_node((enum placement)policy) == (policy != PLACE_SPREAD));
}

/* A node of more devices than the picture shows, in parts as the hardware cuts them. */
static void many_devices_are_all_used(void **state)
{
    AUTO(lab) struct lab lab;
    (void)state;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n0", .class_name = "h100", .devices = 40 });
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    (void)lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 20 });
    (void)lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 500, .count = 40 });
    struct id none = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 100 });
    CHECK("all of it", lab_used(&lab, "amber", "h100") == 40000);
    CHECK("and no more", lab_is(&lab, none, WL_QUEUED));
}

/* Devices in two racks: the cause and its numbers; and what is refused at once. */
static void a_wait_says_that_it_is_the_topology(void **state)
{
    AUTO(lab) struct lab lab;
    (void)state;
    lab_init(&lab);
    lab_add_node(
        &lab, (struct lab_node){ .name = "n0", .class_name = "h100", .devices = 4, .rack = "r0" });
    lab_add_node(
        &lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4, .rack = "r1" });
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    struct lab_job job = { "amber", .gpu_milli = 2000, .members = 3 };
    job.topology.required = TOPOLOGY_RACK;
    struct explanation why = lab_why(&lab, lab_submit(&lab, job));
    CHECK("the cause", why.cause == CAUSE_WAITING_FOR_TOPOLOGY);
    CHECK("the numbers",
          str_is(why.text, "needs 3 members of 2 h100 within one rack; at most 2 fit in one now,"
                           " though all fit on several; at most 2 fit even when all usable nodes"
                           " are empty"));
    job.members = 2;
    CHECK("that fits", !lab_is(&lab, lab_submit(&lab, job), WL_QUEUED));
    job.topology.preferred = TOPOLOGY_BLOCK;
    CHECK("what is preferred is closer",
          id_is_none(lab_submit(&lab, job)) && strcmp(lab.e.field, "topology.preferred") == 0);
    job.topology.preferred = TOPOLOGY_NODE;
    CHECK("it is", !id_is_none(lab_submit(&lab, job)));
}

/* The controller learns from what is submitted; after a restart it knows the same. */
static void a_restart_forgets_nothing(void **state)
{
    AUTO(lab) struct lab lab;
    uint64_t random = test_seed();
    (void)state;
    lab_init(&lab);
    for (int i = 0; i < 8; i++) {
        static const char *const names[] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };
        lab_add_node(&lab,
                     (struct lab_node){ .name = names[i], .class_name = "h100", .devices = 8 });
    }
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    for (int i = 0; i < 220; i++) {
        struct id id = lab_submit(&lab, any_job(&random, "amber"));
        if (i % 3 != 0 && !id_is_none(id))
            (void)lab_act(&lab, CMD_WORKLOAD_CANCEL, id);
        lab_run(&lab, 1);
        if (i % 50 == 49)
            lab_restart(&lab);
    }
    CHECK("it has learned", lab.state->mix.dealt_at >= 200 && lab.state->mix.dealt.count > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gang_starts_if_there_is_a_way),
        cmocka_unit_test(policies_do_what_they_say),
        cmocka_unit_test(many_devices_are_all_used),
        cmocka_unit_test(a_wait_says_that_it_is_the_topology),
        cmocka_unit_test(a_restart_forgets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
