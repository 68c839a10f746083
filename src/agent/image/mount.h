/*
 * mount.h - a workload's root file system: the image's layers below, its own scratch above.
 *
 * The layers lie on disk once, owned by the unpacker's range of ids. For each workload they
 * are seen through an id-mapped mount that shifts this range to the tenant's, and an
 * overlay puts a writable directory on top. Where the kernel or the file system cannot do
 * that (Linux before 5.19), a shifted copy of each layer is made once a tenant and used
 * instead: slower, the same result.
 */
#ifndef AGENT_IMAGE_MOUNT_H
#define AGENT_IMAGE_MOUNT_H

#include "agent/image/store.h"

enum image_mapping {
    IMAGE_MAPPING_AUTO, /* id-mapped where it works, else copies */
    IMAGE_MAPPING_IDMAP,
    IMAGE_MAPPING_COPY
};

/* What was needed to make a mount and is not any more; to clear it away takes
 * milliseconds of waiting. */
struct image_leftover;
void image_leftover_free(struct image_leftover *leftover); /* NULL is a no-op */
DEFINE_CLEANUP(image_leftover, struct image_leftover *, image_leftover_free)

struct image_mount {
    struct image_digest image;
    const char *lease; /* name of the workload's attempt: keeps the image from garbage collection */
    const char *scratch; /* directory on a real file system; upper/ and work/ are made in it */
    const char *rootfs;  /* where to mount; made when missing */
    uint32_t uid_base;   /* the tenant's range: IMAGE_UID_COUNT ids from here, users and groups */
    enum image_mapping mapping;
    struct image_leftover **leftover; /* yours to free later; NULL: it is cleared away at once */
};

/* Mounts with nosuid and nodev. On failure nothing is mounted and no lease is left. A second call
 * for a rootfs that is mounted already is refused with ERR_CONFLICT. */
MUST_CHECK enum err image_mount(struct image_store *store, const struct image_mount *want,
                                struct error *e);
/* Also when it is not mounted any more; the scratch directory is the caller's to remove. */
MUST_CHECK enum err image_unmount(struct image_store *store, const char *rootfs, const char *lease,
                                  struct error *e);

/* True when this machine can do id-mapped overlays below `path` (tried once, not guessed). */
bool image_can_idmap(const char *path);

#endif
