/*
 * Placement against brute force: on random clusters of up to four nodes and eight devices, with
 * parts of them taken by several tenants, a gang of up to eight members starts exactly if some way
 * to place all its members exists, whatever the policy; within one rack or one node where that is
 * required, and where it is preferred and can be had. Of two classes it takes the first in which
 * there is a way. What is chosen takes no more than there is (lab_check).
 */
#include "unit/sched/puzzle.h"
#include "unit/sched/tiny.h"

enum { NODES_MOST = 4, DEVICES_MOST = 8, MEMBERS_MOST = 8 };

/* As they come, and as the hardware of some clusters has them. */
static const char *const classes[] = { "h100", "l40s" };

static bool is_partitioned(const struct tiny *tiny)
{
    const struct class_object *class = state_class_by_name(tiny->lab.state, str_of(classes[0]));
    return class != NULL && mig_table_of(&class->r) != NULL;
}

static struct lab_job any_job(struct tiny *tiny)
{
    static const int64_t parts[] = { 100, 250, 333, 500, 700 };
    static const enum mig_name profiles[] = { MIG_1G_5GB, MIG_1G_10GB, MIG_2G_10GB, MIG_3G_20GB,
                                              MIG_4G_20GB };
    struct lab_job job = { .project = tiny_one_in(tiny, 2) ? "amber" : "birch" };
    switch (tiny_below(tiny, is_partitioned(tiny) ? 8 : 6)) {
    case 0:
        job.gpu_memory_mib = 1000 + (int64_t)tiny_below(tiny, 24000);
        break;
    case 1:
        job.devices = 1 + (int64_t)tiny_below(tiny, 3);
        job.share_milli = tiny_pick(tiny, parts, COUNT_OF(parts));
        break;
    case 2:
    case 3:
        job.gpu_milli = 1000 * (1 + (int64_t)tiny_below(tiny, 3));
        break;
    case 4:
        job.cpu_milli = 1000 * (1 + (int64_t)tiny_below(tiny, 6));
        break;
    case 6:
    case 7:
        job.mig_profile = profiles[tiny_below(tiny, COUNT_OF(profiles))];
        break;
    default:
        job.gpu_milli = tiny_pick(tiny, parts, COUNT_OF(parts));
        break;
    }
    if (job.cpu_milli == 0 && tiny_one_in(tiny, 2))
        job.cpu_milli = 500 * (int64_t)tiny_below(tiny, 4);
    job.memory_mib = tiny_one_in(tiny, 3) ? 1024 : 0;
    return job;
}

static void make_nodes(struct tiny *tiny)
{
    static const char *const names[NODES_MOST] = { "n0", "n1", "n2", "n3" };
    static const char *const labels[] = { NULL, "one", "two" };
    size_t nodes = 1 + tiny_below(tiny, NODES_MOST);
    bool has_partitions = tiny_one_in(tiny, 4);
    for (size_t i = 0; i < nodes; i++)
        lab_add_node(&tiny->lab,
                     (struct lab_node){
                         .name = names[i],
                         .class_name = classes[tiny_one_in(tiny, 4)],
                         .devices = 1 + tiny_below(tiny, MIN_OF(DEVICES_MOST / nodes,
                                                                (size_t)PUZZLE_DEVICES_MAX)),
                         .memory_mib = !has_partitions && tiny_one_in(tiny, 4) ? 24576 : 46068,
                         .cpu_milli = 4000 * (1 + (int64_t)tiny_below(tiny, 3)),
                         .node_memory_mib = 8192,
                         .rack = labels[tiny_below(tiny, COUNT_OF(labels))],
                         .block = labels[tiny_below(tiny, COUNT_OF(labels))] });
    if (has_partitions && state_class_by_name(tiny->lab.state, str_of(classes[0])) != NULL)
        CHECK("sliced",
              lab_slice(&tiny->lab, classes[0], SLICING_MIG, MIG_TABLE_A100_40G) == ERR_OK);
    if (tiny_one_in(tiny, 8))
        (void)lab_node_act(&tiny->lab, CMD_NODE_CORDON, names[tiny_below(tiny, nodes)]);
    if (tiny_one_in(tiny, 8)) {
        struct command hold = { .type = CMD_DEVICE_HOLD };
        hold.target.name = str_of(names[tiny_below(tiny, nodes)]);
        lab_must(&tiny->lab, &hold);
    }
}

/* Work of both tenants, some of which ends again, so that what is left has holes. */
static void make_holes(struct tiny *tiny)
{
    struct lab *lab = &tiny->lab;
    for (size_t jobs = tiny_below(tiny, 10); jobs > 0; jobs--)
        (void)lab_submit(lab, any_job(tiny));
    for (struct workload *w = lab->state->first_workload; w != NULL; w = w->next) {
        if (w->r.state == WL_QUEUED || tiny_one_in(tiny, 3))
            (void)lab_act(lab, CMD_WORKLOAD_CANCEL, w->r.id);
    }
    lab_settle(lab);
}

static struct lab_job any_gang(struct tiny *tiny)
{
    struct lab_job job = any_job(tiny);
    bool has_devices = job.gpu_milli > 0 || job.devices > 0 || job.gpu_memory_mib > 0 ||
                       job.mig_profile != MIG_ANY;
    job.members = 1 + (int64_t)tiny_below(tiny, MEMBERS_MOST);
    if (tiny_one_in(tiny, 2))
        job.topology.required = (enum topology)tiny_below(tiny, TOPOLOGY_COUNT);
    else
        job.topology.preferred = (enum topology)tiny_below(tiny, TOPOLOGY_COUNT);
    job.class_name = has_devices ? classes[tiny_one_in(tiny, 3)] : NULL;
    if (has_devices && tiny_one_in(tiny, 3))
        job.other_class_name = classes[job.class_name == classes[0]];
    return job;
}

/* The first of the classes in which there is a way; NULL: in none. */
static const char *solvable_class(struct tiny *tiny, const struct workload *w,
                                  const struct lab_job *job, enum topology topology)
{
    const char *const names[] = { job->class_name != NULL ? job->class_name : "cpu-x86",
                                  job->other_class_name };
    for (size_t i = 0; i < COUNT_OF(names) && names[i] != NULL; i++) {
        struct puzzle puzzle;
        const struct class_object *class = state_class_by_name(tiny->lab.state, str_of(names[i]));
        if (class == NULL)
            continue;
        puzzle_read(&puzzle, &tiny->lab, w, class->r.number, NULL, NULL);
        if (puzzle_is_solvable(&puzzle, (size_t)w->r.members, topology))
            return names[i];
    }
    return NULL;
}

static void check_place(struct tiny *tiny, const struct workload *w, const struct lab_job *job,
                        const char *preferred)
{
    const struct allocation *a = w->first_allocation;
    TINY_CHECK(tiny, "as close together as required", puzzle_is_within(w, job->topology.required));
    const struct class_object *class = state_class(tiny->lab.state, a->r.class_number);
    bool could_prefer = preferred != NULL && str_is(class->r.name, preferred);
    TINY_CHECK(tiny, "as close together as preferred",
               !could_prefer || puzzle_is_within(w, job->topology.preferred));
    tiny->lab.is_unchecked = false;
    lab_check(&tiny->lab);
    tiny->lab.is_unchecked = true;
}

static void check_cluster(struct tiny *tiny)
{
    struct lab *lab = &tiny->lab;
    struct settings_record settings = lab_no_settings();
    settings.placement = (enum placement)tiny_below(tiny, PLACEMENT_COUNT);
    lab_set(lab, settings);
    make_nodes(tiny);
    lab_project(lab, "amber", (struct lab_quota){ 0 });
    lab_project(lab, "birch", (struct lab_quota){ 0 });
    make_holes(tiny);
    struct lab_job job;
    struct id id;
    lab->is_paused = true;
    do {
        job = any_gang(tiny);
        id = lab_submit(lab, job);
    } while (id_is_none(id)); /* more than the largest node has */
    struct workload *w = state_workload(lab->state, id);
    const char *where = solvable_class(tiny, w, &job, job.topology.required);
    const char *preferred = solvable_class(tiny, w, &job, job.topology.preferred);
    lab->is_paused = false;
    lab_schedule(lab);
    bool is_placed = w->r.state != WL_QUEUED;
    TINY_CHECK(tiny, "it starts if and only if there is a way", is_placed == (where != NULL));
    tiny->counts[is_placed]++;
    if (!is_placed)
        return;
    int64_t its = w->first_allocation->r.class_number;
    TINY_CHECK(tiny, "in the first class in which there is a way",
               str_is(state_class(lab->state, its)->r.name, where));
    check_place(tiny, w, &job, preferred);
}

static void a_gang_starts_if_there_is_a_way(void **state)
{
    (void)state;
    struct tiny tiny = { 0 };
    tiny_run(TINY_CLUSTERS, check_cluster, &tiny);
    TINY_CHECK(&tiny, "many were placed", tiny.counts[1] > tiny.counts[0] / 4);
    TINY_CHECK(&tiny, "and many were not", tiny.counts[0] > tiny.counts[1] / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_gang_starts_if_there_is_a_way) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
