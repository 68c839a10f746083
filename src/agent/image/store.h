/*
 * store.h - the images of a node, by digest; each layer is unpacked once and shared by all tenants.
 *
 *   blobs/<hex>          manifest and configuration texts, world-readable
 *   images/<hex>         one record an image: its configuration and layers, in lines of fixed shape
 *   layers/<hex>/fs      an unpacked layer, <hex> being the digest of the *blob* (see unpack.h);
 *                        owned by ids of the unpacker's own range, so a setuid bit in it is nothing
 *   permits/<tenant>/<hex>  this tenant imported the image itself and may use it
 *   leases/<name>        this workload's root file system is mounted from the image
 *   tmp/                 what is not finished; whoever works in there holds a lock on it
 *
 * The directory belongs to root with mode 0711. Things appear by rename when they are complete and
 * synced, so a kill -9 at any moment leaves either nothing or all of it.
 */
#ifndef AGENT_IMAGE_STORE_H
#define AGENT_IMAGE_STORE_H

#include "agent/image/spec.h"
#include "base/timepoint.h"

enum { IMAGE_NAME_MAX = 64 }; /* a tenant's or a lease's name with its NUL: [a-zA-Z0-9_.-] */

struct image_limits {
    int64_t blob_bytes;  /* of one layer as shipped */
    int64_t layer_bytes; /* of one layer unpacked */
    int64_t entries;     /* files in one layer */
};

struct image_store_options {
    const char *path;
    const char
        *unpacker;     /* berth-unpack; NULL: beside the running program, then the usual places */
    uint32_t uid_base; /* first of the unpacker's 65536 ids; 0: IMAGE_UID_BASE */
    struct image_limits limits; /* 0: the default of each */
};

/* Above the range that systemd gives to containers, below the sign bit; no tenant may
 * overlap it. */
#define IMAGE_UID_BASE  UINT32_C(1879048192)
#define IMAGE_UID_COUNT UINT32_C(65536)

struct image_store; /* opaque: image/store.c */

/* Makes the directory when it is missing, and clears away what a killed process left behind. */
MUST_CHECK enum err image_store_open(struct image_store **out,
                                     const struct image_store_options *options, struct error *e);
/* For who only mounts and unmounts, in a store that its owner has opened: nothing is made
 * or cleared. */
MUST_CHECK enum err image_store_attach(struct image_store **out, const char *path, struct error *e);
void image_store_free(struct image_store *store); /* NULL is a no-op */
DEFINE_CLEANUP(image_store, struct image_store *, image_store_free)

/* What the store knows of an image; layers lowest first, with diff_ids. */
MUST_CHECK enum err image_store_find(const struct image_store *store,
                                     const struct image_digest *image, struct image_manifest *out,
                                     struct error *e);
bool image_store_has(const struct image_store *store, const struct image_digest *image);

/* The configuration's JSON, for tests. ERR_CORRUPT: not what it was. */
MUST_CHECK enum err image_store_config(const struct image_store *store,
                                       const struct image_digest *image, struct buf *json,
                                       struct error *e);

/* A tenant may use an image only after its own successful import: knowing a digest is not
 * a right. */
MUST_CHECK enum err image_store_permit(const struct image_store *store, const char *tenant,
                                       const struct image_digest *image, struct error *e);
bool image_store_is_permitted(const struct image_store *store, const char *tenant,
                              const struct image_digest *image);

struct image_entry {
    struct image_digest image;
    struct wall used_at; /* last import, mount or unmount */
    int64_t bytes;       /* of its unpacked layers; shared ones count for each image */
    bool is_leased;
};

/* For tests: calls `each` for every image, in the order of their digests. */
typedef void image_store_each(void *context, const struct image_entry *entry);
MUST_CHECK enum err image_store_list(const struct image_store *store, image_store_each *each,
                                     void *context, struct error *e);

struct image_gc {
    int64_t
        max_bytes; /* images go, the longest unused first, until the layers fit; < 0: no limit */
    int64_t max_age_s; /* images unused for longer go in any case; < 0: no limit */
    struct wall now;
    const struct image_digest *keep; /* in use soon, though no lease says so yet */
    size_t keep_count;
};

struct image_gc_result {
    size_t images_removed;
    size_t layers_removed;
    int64_t bytes_removed;
    int64_t bytes_left;
};

/* Never removes what a lease holds, nor a layer that a remaining image needs. */
MUST_CHECK enum err image_store_gc(struct image_store *store, const struct image_gc *policy,
                                   struct image_gc_result *out, struct error *e);

/* Forgets leases of workloads that are not in `names` (sorted or not); for the start of
 * the agent. */
MUST_CHECK enum err image_store_keep_leases(struct image_store *store, const char *const *names,
                                            size_t count, struct error *e);

#endif
