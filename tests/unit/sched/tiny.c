#include "unit/sched/tiny.h"

void tiny_fail(const struct tiny *tiny, const char *what, const char *file, int line)
{
    print_error("cluster of seed %llu\n", (unsigned long long)tiny->seed);
    test_fail(what, "does not hold", file, line);
}

void tiny_run(size_t clusters, void (*cluster)(struct tiny *tiny), struct tiny *tiny)
{
    uint64_t seed = test_seed();
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
    TINY_CHECK(tiny, "as many clusters as promised", ran >= TINY_CLUSTERS);
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
        quota.limit_milli = some_devices(tiny, devices + 1);
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
