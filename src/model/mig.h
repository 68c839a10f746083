/*
 * mig.h - partitions of a device as the vendor allows them: NVIDIA's Multi-Instance GPU.
 *
 * A device has 7 slices of compute and 8 of memory. A profile is a number of each; an instance of
 * it begins at one of a few memory slices and takes those next to it. Two instances may be there at
 * once exactly if their memory slices are disjoint: the limits of compute and of how many there may
 * be of a profile follow from that, which a test shows.
 *
 * What an instance is charged is its memory slices, in eighths of a device: so what one device can
 * hold never adds up to more than one device, and no rounding is needed (docs/adr/0057).
 */
#ifndef MODEL_MIG_H
#define MODEL_MIG_H

#include "model/record.h"

enum { MIG_COMPUTE_SLICES = 7, MIG_MEMORY_SLICES = 8, MIG_PROFILES_MAX = 6 };

struct mig_profile {
    enum mig_name name;
    uint8_t compute; /* slices of MIG_COMPUTE_SLICES */
    uint8_t memory;  /* slices of MIG_MEMORY_SLICES; all of them: the whole device */
    uint8_t starts;  /* a bit for each memory slice where it may begin */
    uint8_t most;    /* on one device */
    int64_t memory_mib;
};

struct mig_table {
    struct mig_profile profiles[MIG_PROFILES_MAX]; /* smallest first */
};

/* The table of a class whose slicing is mig, by its own word or else by its name: NULL, or NONE:
 * it has none, and parts of its devices are whatever somebody made of them. */
const struct mig_table *mig_table_of(const struct class_record *r);
enum mig_table_name mig_table_name_of(const struct class_record *r);
/* That of devices of that name; and what a name means, NULL: none. Both for tests. */
enum mig_table_name mig_table_named(struct str class_name);     /* for tests */
const struct mig_table *mig_table_at(enum mig_table_name name); /* for tests */

/* The smallest profile that covers a part of a device; NULL: none does. */
const struct mig_profile *mig_cover(const struct mig_table *table, const struct request *request);

/* Memory slices as bits: those of an instance that begins there. */
static inline uint8_t mig_mask(int64_t start, int64_t size)
{
    return (uint8_t)(((1u << (unsigned)size) - 1) << (unsigned)start);
}

/* Thousandths of a device that it is charged and books. */
static inline int64_t mig_milli(const struct mig_profile *profile)
{
    return profile->memory * INT64_C(1000) / MIG_MEMORY_SLICES;
}

/* How many more instances of it fit beside the slices in use. */
int64_t mig_room(const struct mig_profile *profile, uint8_t used);
/* How many places are left in all, counted over all profiles. */
int64_t mig_openings(const struct mig_table *table, uint8_t used);
/* Where one more goes: the place that leaves most openings, of these the last; -1: nowhere. */
int64_t mig_start(const struct mig_table *table, const struct mig_profile *profile, uint8_t used);

#endif
