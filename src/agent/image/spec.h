/*
 * spec.h - what an OCI image says: digests, the index, the manifest and the configuration.
 *
 * All of it is JSON from strangers. It is parsed on the network side and in the sandboxed unpacker,
 * never in the privileged half; every text is bounded by IMAGE_JSON_MAX before it gets here.
 */
#ifndef AGENT_IMAGE_SPEC_H
#define AGENT_IMAGE_SPEC_H

#include "agent/image/digest.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    IMAGE_JSON_MAX = 4 << 20, /* bytes of an index, manifest or configuration */
    IMAGE_LAYERS_MAX = 127,
    IMAGE_ARGS_MAX = 256, /* entries of entrypoint, cmd and env, each */
};

struct image_layer {
    struct image_digest blob; /* of the bytes as shipped; names the unpacked layer in the store */
    struct image_digest diff_id; /* of the uncompressed tar */
    int64_t size;                /* bytes of the blob */
};

struct image_manifest {
    struct image_digest config;
    int64_t config_size;
    struct image_layer layers[IMAGE_LAYERS_MAX]; /* lowest first; diff_id as yet zero */
    size_t layer_count;
};

/* What to run when the workload does not say. Strings belong to the arena given to the parser. */
struct image_config {
    const char *entrypoint[IMAGE_ARGS_MAX]; /* NULL-terminated by entrypoint_count */
    size_t entrypoint_count;
    const char *cmd[IMAGE_ARGS_MAX];
    size_t cmd_count;
    const char *env[IMAGE_ARGS_MAX]; /* "NAME=value" */
    size_t env_count;
    const char *workdir; /* absolute; "/" when the image names none */
    const char *user; /* "", "name", "uid", "uid:gid", ...; resolved inside the root filesystem */
};

/*
 * Picks out of an index what runs on linux and this machine's processor; `*is_index` when that is
 * another index. A name selects by the annotation org.opencontainers.image.ref.name; NULL: the only
 * one there is.
 */
MUST_CHECK enum err image_index_parse(struct str json, const char *name,
                                      struct image_digest *manifest, bool *is_index,
                                      struct error *e);
/* What an index has to call it: the kind of the two, OCI's or Docker's. */
enum { IMAGE_TYPE_MAX = 80 };
MUST_CHECK enum err image_manifest_type(struct str json, char out[IMAGE_TYPE_MAX], struct error *e);
MUST_CHECK enum err image_manifest_parse(struct str json, struct image_manifest *out,
                                         struct error *e);
/* The diff_ids of a configuration, lowest layer first. */
MUST_CHECK enum err image_diff_ids_parse(struct str json, struct image_digest out[IMAGE_LAYERS_MAX],
                                         size_t *count, struct error *e);
MUST_CHECK enum err image_config_parse(struct arena *arena, struct str json,
                                       struct image_config *out, struct error *e);

#endif
