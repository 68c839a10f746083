/*
 * Partitions against brute force: what the table says of places is all there is to know, and where
 * one more goes leaves room for others.
 */
#include "model/mig.h"
#include "unit/test.h"

enum { WANTED_MOST = MIG_COMPUTE_SLICES };

/* As the guide has it, written down a second time: where each kind may begin. */
static const struct {
    uint8_t compute, memory, most;
    const char *starts;
} kinds[MIG_PROFILES_MAX] = {
    { 1, 1, 7, "0123456" }, { 1, 2, 4, "0246" }, { 2, 2, 3, "024" },
    { 3, 4, 2, "04" },      { 4, 4, 1, "0" },    { 7, 8, 1, "0" },
};

static const struct mig_table *table_at(size_t i)
{
    return mig_table_at((enum mig_table_name)(MIG_TABLE_NONE + 1 + (int)i));
}

static void every_table_has_the_same_places(void **state)
{
    (void)state;
    for (size_t t = 0; table_at(t) != NULL; t++) {
        const struct mig_table *table = table_at(t);
        for (size_t i = 0; i < MIG_PROFILES_MAX; i++) {
            const struct mig_profile *p = &table->profiles[i];
            uint8_t starts = 0;
            for (const char *at = kinds[i].starts; *at != '\0'; at++)
                starts |= (uint8_t)(1u << (unsigned)(*at - '0'));
            const char *name = enum_name(&mig_names, p->name);
            CHECK(name, p->compute == kinds[i].compute && p->memory == kinds[i].memory &&
                            p->most == kinds[i].most && p->starts == starts);
            CHECK(name, name[0] == '0' + p->compute && name[1] == 'g');
            CHECK("memory grows", i == 0 || p->memory_mib >= table->profiles[i - 1].memory_mib);
            CHECK("no more than its slices of the whole",
                  p->memory_mib * MIG_MEMORY_SLICES <=
                      (table->profiles[MIG_PROFILES_MAX - 1].memory_mib + 1024) * p->memory);
        }
    }
}

struct row {
    const char *name;
    const char *class_name;
    struct request request;
    enum mig_name profile;
};

static void the_smallest_that_covers(void **state)
{
    static const struct row rows[] = {
        { "a little", "h100-80g", { .gpu_milli = 1 }, MIG_1G_10GB },
        { "a seventh", "h100-80g", { .gpu_milli = 143 }, MIG_1G_10GB },
        { "more than a seventh", "h100-80g", { .gpu_milli = 144 }, MIG_1G_20GB },
        { "a quarter", "h100-80g", { .gpu_milli = 250 }, MIG_1G_20GB },
        { "two sevenths", "h100-80g", { .gpu_milli = 286 }, MIG_2G_20GB },
        { "half", "h100-80g", { .gpu_milli = 500 }, MIG_3G_40GB },
        { "more than half", "h100-80g", { .gpu_milli = 501 }, MIG_4G_40GB },
        { "most of it", "h100-80g", { .gpu_milli = 600 }, MIG_7G_80GB },
        { "half of each of two", "a100-40g", { .devices = 2, .share_milli = 500 }, MIG_3G_20GB },
        { "its memory", "a100-40g", { .gpu_memory_mib = 4864 }, MIG_1G_5GB },
        { "a MiB more", "a100-40g", { .gpu_memory_mib = 4865 }, MIG_1G_10GB },
        { "by name", "h200-141g", { .mig_profile = MIG_2G_35GB }, MIG_2G_35GB },
        { "another's name", "h200-141g", { .mig_profile = MIG_1G_10GB }, MIG_ANY },
        { "more memory than there is", "h200-141g", { .gpu_memory_mib = 143361 }, MIG_ANY },
    };
    (void)state;
    FOR_EACH_CASE (c, rows) {
        const struct mig_table *table = mig_table_at(mig_table_named(str_of(c->class_name)));
        const struct mig_profile *got = mig_cover(table, &c->request);
        CHECK(c->name, (got != NULL ? got->name : MIG_ANY) == c->profile);
    }
}

static void the_table_of_a_class(void **state)
{
    struct class_record r = { .name = STR("h100-80g"), .slicing = SLICING_MIG };
    (void)state;
    CHECK("by its name", mig_table_of(&r) == mig_table_at(MIG_TABLE_H100_80G));
    r.mig = MIG_TABLE_A100_40G;
    CHECK("by its own word", mig_table_of(&r) == mig_table_at(MIG_TABLE_A100_40G));
    r.slicing = SLICING_POLICED;
    CHECK("not where parts are no partitions", mig_table_of(&r) == NULL);
    r = (struct class_record){ .name = STR("mig-1g.10gb"), .slicing = SLICING_MIG };
    CHECK("an instance is no device to divide", mig_table_of(&r) == NULL);
}

/* How many more of one kind fit, by trying all places one after the other. */
static int64_t most_of(const struct mig_profile *p, uint8_t used, int64_t from)
{
    size_t best = 0;
    int64_t stack_at[MIG_MEMORY_SLICES + 1] = { from };
    uint8_t stack_used[MIG_MEMORY_SLICES + 1] = { used };
    for (size_t count = 1; count > 0;) {
        size_t depth = count - 1;
        int64_t at = stack_at[depth]++;
        if (at >= MIG_MEMORY_SLICES) {
            count--;
            continue;
        }
        uint8_t mask = mig_mask(at, p->memory);
        if ((p->starts >> at & 1) == 0 || (stack_used[depth] & mask) != 0)
            continue;
        stack_at[count] = at + 1;
        stack_used[count] = stack_used[depth] | mask;
        best = MAX_OF(best, count);
        count++;
    }
    return (int64_t)best;
}

static void one_is_placed_exactly_if_there_is_a_place(void **state)
{
    const struct mig_table *table = mig_table_at(MIG_TABLE_H100_80G);
    (void)state;
    for (unsigned used = 0; used < 256; used++) {
        for (size_t i = 0; i < MIG_PROFILES_MAX; i++) {
            const struct mig_profile *p = &table->profiles[i];
            int64_t most = most_of(p, (uint8_t)used, 0);
            int64_t start = mig_start(table, p, (uint8_t)used);
            CHECK("as many as brute force finds", mig_room(p, (uint8_t)used) == most);
            CHECK("a place is found if one exists", (start >= 0) == (most > 0));
            CHECK("which is legal and free",
                  start < 0 ||
                      ((p->starts >> start & 1) != 0 && (mig_mask(start, p->memory) & used) == 0));
            CHECK("no more than the vendor's count", used != 0 || most == p->most);
        }
    }
}

/* So many of each kind. */
struct wanted {
    int64_t counts[MIG_PROFILES_MAX];
};

/* Whether some way exists: largest first, every place of each. */
static bool exists(const struct mig_table *table, struct wanted left, uint8_t used)
{
    struct {
        struct wanted left;
        uint8_t used;
        int64_t at;
    } stack[WANTED_MOST + 2] = { { left, used, 0 } };
    for (size_t count = 1; count > 0;) {
        size_t depth = count - 1;
        size_t kind = MIG_PROFILES_MAX;
        while (kind > 0 && stack[depth].left.counts[kind - 1] == 0)
            kind--;
        if (kind == 0)
            return true;
        const struct mig_profile *p = &table->profiles[kind - 1];
        int64_t at = stack[depth].at++;
        if (at >= MIG_MEMORY_SLICES) {
            count--;
            continue;
        }
        uint8_t mask = mig_mask(at, p->memory);
        if ((p->starts >> at & 1) == 0 || (stack[depth].used & mask) != 0)
            continue;
        stack[count] = stack[depth];
        stack[count].used |= mask;
        stack[count].at = 0;
        stack[count].left.counts[kind - 1]--;
        count++;
    }
    return false;
}

/* The same by mig_start() alone, which never takes anything back. */
static bool is_packed(const struct mig_table *table, struct wanted left, uint8_t used)
{
    for (size_t kind = MIG_PROFILES_MAX; kind > 0; kind--) {
        const struct mig_profile *p = &table->profiles[kind - 1];
        for (; left.counts[kind - 1] > 0; left.counts[kind - 1]--) {
            int64_t start = mig_start(table, p, used);
            if (start < 0)
                return false;
            used |= mig_mask(start, p->memory);
        }
    }
    return true;
}

static bool wanted_next(struct wanted *wanted)
{
    for (size_t i = 0; i < MIG_PROFILES_MAX; i++) {
        if (++wanted->counts[i] <= kinds[i].most)
            return true;
        wanted->counts[i] = 0;
    }
    return false;
}

static int64_t sum_of(const struct wanted *wanted)
{
    int64_t sum = 0;
    for (size_t i = 0; i < MIG_PROFILES_MAX; i++)
        sum += wanted->counts[i];
    return sum;
}

/* Every set of partitions on every device with something on it: largest first, each where
 * mig_start() says, finds a packing exactly if there is one. And compute needs no rule of its own.
 */
static void largest_first_packs_whenever_that_can_be(void **state)
{
    const struct mig_table *table = mig_table_at(MIG_TABLE_A100_80G);
    size_t packed = 0;
    (void)state;
    for (unsigned used = 0; used < 256; used++) {
        struct wanted wanted = { { 0 } };
        while (wanted_next(&wanted)) {
            if (sum_of(&wanted) > WANTED_MOST)
                continue;
            bool is_possible = exists(table, wanted, (uint8_t)used);
            CHECK("found if and only if it exists",
                  is_packed(table, wanted, (uint8_t)used) == is_possible);
            int64_t compute = 0;
            for (size_t i = 0; i < MIG_PROFILES_MAX; i++)
                compute += wanted.counts[i] * table->profiles[i].compute;
            CHECK("places imply the slices of compute",
                  !is_possible || compute <= MIG_COMPUTE_SLICES);
            packed += is_possible;
        }
    }
    CHECK("some can be", packed > 1000);
}

/* Small ones that come and go: how often half of the device is still to be had at once. */
static size_t halves_kept(uint64_t seed, bool is_first_fit)
{
    const struct mig_table *table = mig_table_at(MIG_TABLE_A100_80G);
    size_t kept = 0;
    for (int run = 0; run < 500; run++) {
        int64_t starts[MIG_COMPUTE_SLICES];
        size_t count = 0;
        uint8_t used = 0;
        for (int step = 0; step < 20; step++) {
            const struct mig_profile *p = &table->profiles[0];
            if (count > 0 && (count == 3 || test_below(&seed, 2) == 0)) {
                size_t gone = test_below(&seed, count);
                used &= (uint8_t)~mig_mask(starts[gone], p->memory);
                starts[gone] = starts[--count];
                continue;
            }
            int64_t start = mig_start(table, p, used);
            for (int64_t at = MIG_COMPUTE_SLICES - 1; at >= 0 && is_first_fit; at--)
                start = (used >> at & 1) == 0 ? at : start;
            starts[count++] = start;
            used |= mig_mask(start, p->memory);
        }
        kept += mig_start(table, &table->profiles[4], used) >= 0;
    }
    return kept;
}

static void the_large_place_is_kept_longer_than_by_first_fit(void **state)
{
    uint64_t seed = test_seed();
    size_t ours = halves_kept(seed, false);
    size_t first_fit = halves_kept(seed, true);
    (void)state;
    print_message("# 4g.40gb still fits in %zu of 500 runs; by first fit in %zu\n", ours,
                  first_fit);
    CHECK("always, with at most three small ones", ours == 500);
    CHECK("by first fit less than half as often", first_fit < ours / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_has_the_same_places),
        cmocka_unit_test(the_smallest_that_covers),
        cmocka_unit_test(the_table_of_a_class),
        cmocka_unit_test(one_is_placed_exactly_if_there_is_a_place),
        cmocka_unit_test(largest_first_packs_whenever_that_can_be),
        cmocka_unit_test(the_large_place_is_kept_longer_than_by_first_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
