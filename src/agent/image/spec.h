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
#include "base/str.h"

enum {
    IMAGE_JSON_MAX = 4 << 20, /* bytes of an index, manifest or configuration */
    IMAGE_LAYERS_MAX = 127,
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

#endif
