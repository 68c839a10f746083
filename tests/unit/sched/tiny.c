#include "unit/sched/tiny.h"

void tiny_fail(const struct tiny *tiny, const char *what, const char *file, int line)
{
    print_error("cluster of seed %llu\n", (unsigned long long)tiny->seed);
    test_fail(what, "does not hold", file, line);
}

/* Fewer only where somebody asks for fewer: tools/mutate, which runs them a thousand times. */
static size_t promised(size_t clusters)
{
    const char *given = getenv("BERTH_TEST_CLUSTERS"); /* NOLINT(concurrency-mt-unsafe) */
    return given != NULL ? strtoul(given, NULL, 10) : clusters;
}

void tiny_run(size_t clusters, void (*cluster)(struct tiny *tiny), struct tiny *tiny)
{
    uint64_t seed = test_seed();
    clusters = promised(clusters);
    size_t ran = 0;
    for (; ran < clusters; ran++) {
        tiny->seed = seed + ran;
        tiny->random = tiny->seed;
        lab_init(&tiny->lab);
        tiny->lab.is_unchecked = true;
        cluster(tiny);
        lab_done(&tiny->lab);
    }
    print_message("# %zu clusters: %zu, %zu, %zu, %zu\n", ran, tiny->counts[0], tiny->counts[1],
                  tiny->counts[2], tiny->counts[3]);
    TINY_CHECK(tiny, "as many clusters as promised", ran >= promised(TINY_CLUSTERS));
}

size_t tiny_below(struct tiny *tiny, size_t bound)
{
    return test_below(&tiny->random, bound);
}

bool tiny_one_in(struct tiny *tiny, size_t n)
{
    return tiny_below(tiny, n) == 0;
}

int64_t tiny_pick(struct tiny *tiny, const int64_t *values, size_t count)
{
    return values[tiny_below(tiny, count)];
}

void tiny_project(struct tiny *tiny, const char *path, struct quota_spec quota, int64_t priority)
{
    struct command command = { .type = CMD_PROJECT_CREATE };
    command.project = (struct project_spec){
        .path = str_of(path), .priority = priority, .quotas = { &quota, 1 }, .is_forced = true
    };
    lab_must(&tiny->lab, &command);
}

/* Whole devices mostly, so that quotas are met exactly now and then. */
static int64_t some_devices(struct tiny *tiny, int64_t most)
{
    int64_t milli = 1000 * (int64_t)tiny_below(tiny, (size_t)most + 1);
    return tiny_one_in(tiny, 6) ? milli + 100 * (int64_t)tiny_below(tiny, 10) : milli;
}

static struct quota_spec some_quota(struct tiny *tiny, int64_t devices)
{
    static const int64_t weights[] = { 0, 100, 100, 100, 200, 300, 37 };
    struct quota_spec quota = {
        .class_name = STR("h100"),
        .quota_milli = tiny_one_in(tiny, 4) ? 0 : some_devices(tiny, devices / 2 + 1),
        .lend_limit_milli = UNSET,
        .limit_milli = UNSET,
        .over_quota_weight = tiny_pick(tiny, weights, COUNT_OF(weights)),
    };
    if (tiny_one_in(tiny, 4))
        quota.limit_milli = 1000 + some_devices(tiny, devices); /* for one device at least */
    return quota;
}

size_t tiny_projects(struct tiny *tiny, int64_t devices, const char *paths[])
{
    static const char *const trees[][TINY_PROJECTS_MAX] = {
        { "a", "b" },
        { "a", "b", "c" },
        { "a", "b", "c", "d" },
        { "a", "a/x", "b" },
        { "a", "a/x", "a/y", "b" },
        { "a", "a/x", "a/y", "b", "b/z" },
        { "a", "a/x", "a/y" },
        { "a", "a/x", "a/x/p", "a/x/q", "b" },
    };
    static const int64_t priorities[] = { 50, 50, 50, 10, 90 };
    const char *const *tree = trees[tiny_below(tiny, COUNT_OF(trees))];
    size_t count = 0;
    for (; count < TINY_PROJECTS_MAX && tree[count] != NULL; count++) {
        paths[count] = tree[count];
        tiny_project(tiny, tree[count], some_quota(tiny, devices),
                     tiny_pick(tiny, priorities, COUNT_OF(priorities)));
    }
    return count;
}

static int64_t any_size(struct tiny *tiny)
{
    static const int64_t sizes[] = { 1000, 1000, 1000, 2000, 2000, 3000, 4000, 500, 300 };
    return tiny_pick(tiny, sizes, COUNT_OF(sizes));
}

const char *tiny_leaf(struct tiny *tiny, const char *const paths[], size_t count)
{
    for (;;) {
        const char *path = paths[tiny_below(tiny, count)];
        if (state_project_by_path(tiny->lab.state, str_of(path))->first_child == NULL)
            return path;
    }
}

struct lab_job tiny_job(struct tiny *tiny, const char *project)
{
    static const int64_t priorities[] = { 0, 0, 0, 20, 80 };
    struct lab_job job = { project, .gpu_milli = any_size(tiny),
                           .priority = tiny_pick(tiny, priorities, COUNT_OF(priorities)),
                           .is_fixed = tiny_one_in(tiny, 10) };
    if (tiny_one_in(tiny, 3))
        job.members = 1 + (int64_t)tiny_below(tiny, 3);
    if (tiny_one_in(tiny, 6))
        job.cpu_milli = 1000 * (1 + (int64_t)tiny_below(tiny, 6));
    if (tiny_one_in(tiny, 8))
        job.topology.required = tiny_one_in(tiny, 2) ? TOPOLOGY_NODE : TOPOLOGY_RACK;
    return job;
}

size_t tiny_world(struct tiny *tiny, const char *paths[])
{
    static const char *const names[] = { "n0", "n1", "n2", "n3" };
    struct settings_record settings = lab_no_settings();
    int64_t devices = 0;
    if (tiny_one_in(tiny, 2))
        settings.reclaim_to = RECLAIM_TO_FAIR_SHARE;
    settings.min_runtime_s = tiny_one_in(tiny, 2) ? 0 : 10;
    settings.min_runtime_in_quota_s = tiny_one_in(tiny, 6) ? 5 : 0;
    lab_set(&tiny->lab, settings);
    size_t nodes = 1 + tiny_below(tiny, COUNT_OF(names));
    for (size_t i = 0; i < nodes; i++) {
        size_t its = 1 + tiny_below(tiny, MIN_OF(8 / nodes, (size_t)4));
        lab_add_node(&tiny->lab, (struct lab_node){ .name = names[i],
                                                    .class_name = "h100",
                                                    .devices = its,
                                                    .cpu_milli = 8000,
                                                    .rack = i < 2 ? "one" : "two" });
        devices += (int64_t)its;
    }
    return tiny_projects(tiny, devices, paths);
}
