/*
 * unpack.h - hands bytes from strangers to a sandboxed berth-unpack and takes its answer.
 *
 * The agent reads each blob once, hashes it and passes it on; what comes back is believed
 * only about that blob. So an unpacked layer is named by the digest of the blob, which we
 * computed, and never by the diff_id, which a captured unpacker could claim: it can spoil
 * what it was given and nothing else.
 */
#ifndef AGENT_IMAGE_UNPACK_H
#define AGENT_IMAGE_UNPACK_H

#include "agent/image/import.h"
#include "agent/image/unpack_protocol.h"

struct unpack_env {
    const char *program;
    uint32_t uid_base;
    struct image_limits limits;
};

struct unpack_job {
    enum unpack_task task;
    const char *name; /* INDEX: which image; NULL: any */
    int dir_fd;       /* where to unpack, and the sandbox's root; made by unpack_make_dir */
    int source_fd;    /* the blob; -1: `text` */
    struct str text;
    image_progress *progress; /* NULL: none */
    void *context;
    int64_t total; /* for progress only */
};

struct unpack_blob {
    struct image_digest digest;
    int64_t size;
};

/* A directory with the unpacker's first id as owner. */
MUST_CHECK enum err unpack_make_dir(const struct unpack_env *env, const char *path, int *fd,
                                    struct error *e);

/* Blocks until done. On failure the directory holds rubbish. */
MUST_CHECK enum err unpack_run(const struct unpack_env *env, const struct unpack_job *job,
                               struct unpack_result *result, struct unpack_blob *blob,
                               struct error *e);

#endif
