/*
 * spec.h - what an OCI image says: digests, the index, the manifest and the configuration.
 *
 * All of it is JSON from strangers. It is parsed on the network side and in the sandboxed unpacker,
 * never in the privileged half; every text is bounded by IMAGE_JSON_MAX before it gets here.
 */
#ifndef AGENT_IMAGE_SPEC_H
#define AGENT_IMAGE_SPEC_H

#include "base/base.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    IMAGE_JSON_MAX = 4 << 20, /* bytes of an index, manifest or configuration */
    IMAGE_LAYERS_MAX = 127,
    IMAGE_ARGS_MAX = 256, /* entries of entrypoint, cmd and env, each */
    IMAGE_DIGEST_TEXT_MAX = 72,
};

/* SHA-256; the only algorithm that is accepted. */
struct image_digest {
    uint8_t bytes[32];
};

static inline bool image_digest_eq(const struct image_digest *a, const struct image_digest *b)
{
    return __builtin_memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

struct image_digest image_digest_of(const void *bytes, size_t size);
/* "sha256:" and 64 lower-case hexadecimal digits, nothing else. */
bool image_digest_parse(struct str text, struct image_digest *out);
/* Writes "sha256:..." with its NUL and returns `out`. */
char *image_digest_text(const struct image_digest *digest, char out[IMAGE_DIGEST_TEXT_MAX]);

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

/* Picks the manifest for linux on this machine's processor out of an index (or a nested one's
 * entry, which then is another index: *is_index). A name selects by the usual annotation. */
enum err image_index_parse(struct str json, const char *name, struct image_digest *manifest,
                           bool *is_index, struct error *e) MUST_CHECK;
enum err image_manifest_parse(struct str json, struct image_manifest *out, struct error *e)
    MUST_CHECK;
/* Takes the diff_ids out of the configuration; their number must be that of the layers. */
enum err image_manifest_add_diff_ids(struct image_manifest *manifest, struct str config_json,
                                     struct error *e) MUST_CHECK;
enum err image_config_parse(struct arena *arena, struct str json, struct image_config *out,
                            struct error *e) MUST_CHECK;

#endif
