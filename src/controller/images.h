/*
 * images.h - what is inside an image as far as starting work needs it: entrypoint, command,
 * environment and working directory, out of the OCI configuration. Read from the archive in the
 * blob store when an image is added, kept as a small file per manifest digest, cached here.
 */
#ifndef CONTROLLER_IMAGES_H
#define CONTROLLER_IMAGES_H

#include "base/error.h"
#include "model/record.h"
#include "model/state.h"
#include "wire/schema.h"

struct image_defaults {
    struct str_list entrypoint;
    struct str_list command;
    struct str_list env; /* NAME=value */
    struct str workdir;
};

struct images;

/* `dir` exists. */
struct images *images_new(const char *dir);
void images_free(struct images *images); /* NULL is a no-op */
DEFINE_CLEANUP(images, struct images *, images_free)

/* NULL: not known (nothing is added then). Borrowed for ever. */
const struct image_defaults *images_defaults(struct images *images, const struct digest *manifest);
/* What it runs by itself: its entry point, then its command. The list lives in the arena. */
struct str_list image_defaults_args(const struct image_defaults *defaults, struct arena *arena);

/*
 * Reads an OCI archive (a tar of an OCI layout with one image): checks the digests of manifest and
 * configuration, keeps the defaults. Blocking: for workers. Digests of layers are checked by nodes.
 */
enum err image_archive_read(const char *path, struct arena *arena, struct digest *manifest,
                            struct image_defaults *defaults, struct error *e) MUST_CHECK;
/* Out of an OCI configuration: what its image starts with. In the arena. */
void image_config_defaults(const json_t *config, struct arena *arena, struct image_defaults *out);
/* The digest that a descriptor ("digest", "size", ...) of a manifest or index names. */
enum err image_descriptor_digest(const json_t *descriptor, struct digest *out, struct error *e)
    MUST_CHECK;
/* Keeps them, durably, from the loop. */
enum err images_keep(struct images *images, const struct digest *manifest,
                     const struct image_defaults *defaults, struct error *e) MUST_CHECK;
/* What was kept for an image that was then refused, unless an image of `state` needs it. */
void images_forget(struct images *images, const struct state *state, const struct digest *manifest);

#endif
