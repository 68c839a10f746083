/*
 * import.h - puts an image into the store: from an OCI layout, a tarball or a directory.
 *
 * Runs as root in the privileged half (or a child of it: it blocks until done). The bytes may come
 * from a directory that somebody else can write to meanwhile: everything is read once, through one
 * descriptor, and hashed on the way to the sandboxed unpacker. JSON is parsed in there as well.
 */
#ifndef AGENT_IMAGE_IMPORT_H
#define AGENT_IMAGE_IMPORT_H

#include "agent/image/store.h"

enum image_source_kind {
    IMAGE_SOURCE_LAYOUT,    /* OCI layout directory: index.json, oci-layout, blobs/sha256/ */
    IMAGE_SOURCE_TARBALL,   /* a root file system as tar, plain or packed with gzip, zstd, xz */
    IMAGE_SOURCE_DIRECTORY, /* a root file system */
    IMAGE_SOURCE_GUESS /* by looking: a file is a tarball, a directory with oci-layout a layout */
};

/* `done` of `total` bytes of what is shipped; total is 0 where it is not known. */
typedef void image_progress(void *context, int64_t done, int64_t total);

struct image_import {
    enum image_source_kind kind;
    const char *path;
    const char *name;                  /* NULL, or which image of a layout by its annotation */
    const char *tenant;                /* NULL, or who may use it from now on */
    const struct image_digest *wanted; /* NULL, or the only image that will do */
    image_progress *progress;          /* NULL: none */
    void *context;
};

/* On failure the store is as before. Importing what is there already is cheap and succeeds, but
 * every layer must still be in the source and match its digest: that is what proves possession. */
MUST_CHECK enum err image_import(struct image_store *store, const struct image_import *import,
                                 struct image_digest *image, struct error *e);

#endif
