/* store_internal.h - the store as import, mount and garbage collection see it. */
#ifndef AGENT_IMAGE_STORE_INTERNAL_H
#define AGENT_IMAGE_STORE_INTERNAL_H

#include <limits.h>

#include "agent/image/store.h"
#include "agent/image/unpack.h"

enum { STORE_ROOT_MAX = PATH_MAX / 4 };

struct image_store {
    char path[STORE_ROOT_MAX];
    char unpacker[PATH_MAX];
    struct unpack_env env;
    bool has_no_idmap; /* found out at the first mount that failed */
};

/* Paths below the store; long enough for every name that is put into one. */
typedef char store_path_text[PATH_MAX];
const char *store_path(const struct image_store *store, store_path_text out, const char *fmt, ...)
    PRINTF(3, 4);
/* "images/<hex>" and the like. */
const char *store_digest_path(const struct image_store *store, store_path_text out,
                              const char *folder, const struct image_digest *digest);

/* A fresh name below tmp/. */
const char *store_temporary(const struct image_store *store, store_path_text out);

/*
 * A lock is held until its descriptor is closed; each has an open file of its own, so that two
 * users in one process do not end each other's. Shared: nothing is removed meanwhile. Exclusive:
 * nothing is added or mounted meanwhile; ERR_UNAVAILABLE: somebody does just now.
 */
MUST_CHECK enum err store_lock_shared(const struct image_store *store, int *lock, struct error *e);
MUST_CHECK enum err store_lock_exclusive(const struct image_store *store, int *lock,
                                         struct error *e);

/* [a-zA-Z0-9_.-], neither empty nor a dot first. */
MUST_CHECK enum err store_check_name(const char *what, const char *name, struct error *e);

MUST_CHECK enum err store_write_record(const struct image_store *store,
                                       const struct image_digest *image,
                                       const struct image_manifest *manifest, struct error *e);
/* Marks the image as used now. */
void store_touch(const struct image_store *store, const struct image_digest *image);

struct layer_meta {
    struct image_digest diff_id;
    int64_t bytes;
    int64_t entries;
    bool is_opaque;
};
MUST_CHECK enum err store_read_meta(const struct image_store *store,
                                    const struct image_digest *blob, struct layer_meta *out,
                                    struct error *e);
/* Into a directory nobody knows yet; the caller syncs. */
MUST_CHECK enum err store_write_meta(const char *layer_dir, const struct layer_meta *meta,
                                     struct error *e);
bool store_has_layer(const struct image_store *store, const struct image_digest *blob);

/* Adds or drops the lease of a workload. Whole or not there for every reader, but not synced: what
 * it guards is a mount, which a power cut ends as well. */
MUST_CHECK enum err store_add_lease(const struct image_store *store, const char *name,
                                    const struct image_digest *image, struct error *e);
MUST_CHECK enum err store_drop_lease(const struct image_store *store, const char *name,
                                     struct error *e);

/* Names in a folder of the store, sorted, dot files left out; both are yours. */
struct store_names {
    char **items;
    size_t count;
};
MUST_CHECK enum err store_list_names(const struct image_store *store, const char *folder,
                                     struct store_names *out, struct error *e);
void store_names_done(struct store_names *names);
DEFINE_CLEANUP_AT(store_names, struct store_names, store_names_done)

#endif
