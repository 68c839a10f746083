/*
 * The facts: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles" (profiles, fractions,
 * numbers of instances) and "Partitioning" (where they may begin; what `nvidia-smi mig -lgipp` of a
 * device says). Profiles with media extensions (+me) are left out: they differ in engines, not in
 * where they lie. A profile's memory is what a driver gives at least, in whole MiB: for the devices
 * of 40 and 80 GB as drivers list it, for the others the slices of the device rounded down to half
 * a GiB, so that nothing is promised that is not there.
 */
#include "model/mig.h"

#include <stddef.h>

enum {
    AT_0 = 1 << 0,
    AT_0_4 = 1 << 0 | 1 << 4,
    AT_0_2_4 = 1 << 0 | 1 << 2 | 1 << 4,
    AT_0_2_4_6 = 1 << 0 | 1 << 2 | 1 << 4 | 1 << 6,
    AT_0_TO_6 = 0x7f,
};

/* clang-format off */
static const struct mig_table tables[MIG_TABLE_COUNT] = {
    [MIG_TABLE_A100_40G] = { {
        { MIG_1G_5GB,   1, 1, AT_0_TO_6,  7,   4864 },
        { MIG_1G_10GB,  1, 2, AT_0_2_4_6, 4,   9850 },
        { MIG_2G_10GB,  2, 2, AT_0_2_4,   3,   9850 },
        { MIG_3G_20GB,  3, 4, AT_0_4,     2,  19968 },
        { MIG_4G_20GB,  4, 4, AT_0,       1,  19968 },
        { MIG_7G_40GB,  7, 8, AT_0,       1,  40192 } } },
    [MIG_TABLE_A100_80G] = { {
        { MIG_1G_10GB,  1, 1, AT_0_TO_6,  7,   9728 },
        { MIG_1G_20GB,  1, 2, AT_0_2_4_6, 4,  19968 },
        { MIG_2G_20GB,  2, 2, AT_0_2_4,   3,  19968 },
        { MIG_3G_40GB,  3, 4, AT_0_4,     2,  40192 },
        { MIG_4G_40GB,  4, 4, AT_0,       1,  40192 },
        { MIG_7G_80GB,  7, 8, AT_0,       1,  80640 } } },
    [MIG_TABLE_H100_80G] = { {
        { MIG_1G_10GB,  1, 1, AT_0_TO_6,  7,   9984 },
        { MIG_1G_20GB,  1, 2, AT_0_2_4_6, 4,  20090 },
        { MIG_2G_20GB,  2, 2, AT_0_2_4,   3,  20090 },
        { MIG_3G_40GB,  3, 4, AT_0_4,     2,  40448 },
        { MIG_4G_40GB,  4, 4, AT_0,       1,  40448 },
        { MIG_7G_80GB,  7, 8, AT_0,       1,  81152 } } },
    [MIG_TABLE_H100_94G] = { {
        { MIG_1G_12GB,  1, 1, AT_0_TO_6,  7,  11264 },
        { MIG_1G_24GB,  1, 2, AT_0_2_4_6, 4,  23040 },
        { MIG_2G_24GB,  2, 2, AT_0_2_4,   3,  23040 },
        { MIG_3G_47GB,  3, 4, AT_0_4,     2,  46592 },
        { MIG_4G_47GB,  4, 4, AT_0,       1,  46592 },
        { MIG_7G_94GB,  7, 8, AT_0,       1,  95232 } } },
    [MIG_TABLE_H100_96G] = { {
        { MIG_1G_12GB,  1, 1, AT_0_TO_6,  7,  11264 },
        { MIG_1G_24GB,  1, 2, AT_0_2_4_6, 4,  23552 },
        { MIG_2G_24GB,  2, 2, AT_0_2_4,   3,  23552 },
        { MIG_3G_48GB,  3, 4, AT_0_4,     2,  47616 },
        { MIG_4G_48GB,  4, 4, AT_0,       1,  47616 },
        { MIG_7G_96GB,  7, 8, AT_0,       1,  96256 } } },
    [MIG_TABLE_H200_141G] = { {
        { MIG_1G_18GB,  1, 1, AT_0_TO_6,  7,  16384 },
        { MIG_1G_35GB,  1, 2, AT_0_2_4_6, 4,  33280 },
        { MIG_2G_35GB,  2, 2, AT_0_2_4,   3,  33280 },
        { MIG_3G_71GB,  3, 4, AT_0_4,     2,  67584 },
        { MIG_4G_71GB,  4, 4, AT_0,       1,  67584 },
        { MIG_7G_141GB, 7, 8, AT_0,       1, 143360 } } },
};
/* clang-format on */

/* What devices are called that have them, here and by agents. */
static const struct {
    const char *class_name;
    enum mig_table_name table;
} classes[] = {
    { "a100-40g", MIG_TABLE_A100_40G },      { "a100-pcie-40g", MIG_TABLE_A100_40G },
    { "a100", MIG_TABLE_A100_80G },          { "a100-80g", MIG_TABLE_A100_80G },
    { "a100-pcie-80g", MIG_TABLE_A100_80G }, { "h100", MIG_TABLE_H100_80G },
    { "h100-80g", MIG_TABLE_H100_80G },      { "h100-pcie-80g", MIG_TABLE_H100_80G },
    { "h100-94g", MIG_TABLE_H100_94G },      { "h100-nvl-94g", MIG_TABLE_H100_94G },
    { "h100-96g", MIG_TABLE_H100_96G },      { "gh200-96g", MIG_TABLE_H100_96G },
    { "h200", MIG_TABLE_H200_141G },         { "h200-141g", MIG_TABLE_H200_141G },
};

const struct mig_table *mig_table_at(enum mig_table_name name)
{
    return name > MIG_TABLE_NONE && name < MIG_TABLE_COUNT ? &tables[name] : NULL;
}

enum mig_table_name mig_table_named(struct str class_name)
{
    for (size_t i = 0; i < COUNT_OF(classes); i++) {
        if (str_is(class_name, classes[i].class_name))
            return classes[i].table;
    }
    return MIG_TABLE_NONE;
}

enum mig_table_name mig_table_name_of(const struct class_record *r)
{
    if (r->slicing != SLICING_MIG || r->kind != CLASS_GPU)
        return MIG_TABLE_NONE;
    return r->mig != MIG_TABLE_NONE ? r->mig : mig_table_named(r->name);
}

const struct mig_table *mig_table_of(const struct class_record *r)
{
    return mig_table_at(mig_table_name_of(r));
}

/* The larger of both fractions that it is, in thousandths rounded up. */
static int64_t nominal_milli(const struct mig_profile *profile)
{
    int64_t compute =
        (profile->compute * INT64_C(1000) + MIG_COMPUTE_SLICES - 1) / MIG_COMPUTE_SLICES;
    return MAX_OF(compute, mig_milli(profile));
}

static bool covers(const struct mig_profile *profile, const struct request *request)
{
    if (request->mig_profile != MIG_ANY)
        return profile->name == request->mig_profile;
    if (request->gpu_memory_mib > 0)
        return profile->memory_mib >= request->gpu_memory_mib;
    return nominal_milli(profile) >=
           (request->devices > 0 ? request->share_milli : request->gpu_milli);
}

const struct mig_profile *mig_cover(const struct mig_table *table, const struct request *request)
{
    for (size_t i = 0; i < MIG_PROFILES_MAX; i++) {
        if (covers(&table->profiles[i], request))
            return &table->profiles[i];
    }
    return NULL;
}

static bool is_free(const struct mig_profile *profile, int64_t start, uint8_t used)
{
    return (profile->starts >> start & 1) != 0 && (mig_mask(start, profile->memory) & used) == 0;
}

/* Places of one profile never overlap each other, so all free ones can be had at once. */
int64_t mig_room(const struct mig_profile *profile, uint8_t used)
{
    int64_t room = 0;
    for (int64_t start = 0; start < MIG_MEMORY_SLICES; start++)
        room += is_free(profile, start, used);
    return room;
}

int64_t mig_openings(const struct mig_table *table, uint8_t used)
{
    int64_t openings = 0;
    for (size_t i = 0; i < MIG_PROFILES_MAX; i++)
        openings += mig_room(&table->profiles[i], used);
    return openings;
}

int64_t mig_start(const struct mig_table *table, const struct mig_profile *profile, uint8_t used)
{
    int64_t best = -1;
    int64_t most = -1;
    for (int64_t start = 0; start < MIG_MEMORY_SLICES; start++) {
        if (!is_free(profile, start, used))
            continue;
        int64_t left = mig_openings(table, used | mig_mask(start, profile->memory));
        if (left >= most) {
            best = start;
            most = left;
        }
    }
    return best;
}
