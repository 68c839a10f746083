/*
 * pull.h - fetches an image from a registry into an OCI layout, with skopeo as a child process.
 *
 * For the network half. The result is a directory that image_import (privileged half) reads;
 * nothing in it is trusted. Manifests and blobs are as the registry has them, of whichever of
 * the two kinds, OCI's or Docker's, so that digests stay what they are. Credentials go into a
 * file of mode 0600 in a private directory that is removed afterwards: never onto a command
 * line, never into the environment.
 */
#ifndef AGENT_IMAGE_PULL_H
#define AGENT_IMAGE_PULL_H

#include <sys/types.h>

#include "agent/image/spec.h"
#include "net/reach.h"

struct image_pull_request {
    const char *reference; /* "registry/name:tag" or "...@sha256:..."; never starts with '-' */
    const char *layout;    /* directory to make; must not exist */
    const char *work_dir;  /* private directory for the credentials' file and skopeo's own files */
    const char *user;      /* NULL: anonymous */
    const char *password;
    const char *skopeo; /* NULL: found in PATH */
    const char *egress; /* berth-egress; NULL: without, for tests */
    enum reach reach;   /* how near the registry's host may be */
    bool is_plain_http; /* registries on a loopback or trusted network; never the default */
    int64_t max_bytes;  /* the child is stopped when the layout grows beyond; 0: no limit */
};

struct image_pull; /* opaque: image/pull.c */

/* "docker.io" of "debian:12". Borrowed from the reference, or static. */
struct str image_registry(const char *reference);

MUST_CHECK enum err image_pull_start(struct image_pull **out,
                                     const struct image_pull_request *request, struct error *e);
/* Readable when the child ends: for an event loop. */
int image_pull_fd(const struct image_pull *pull);
/* Bytes of the layout so far, for showing progress. */
int64_t image_pull_bytes(const struct image_pull *pull);
/* Looks without blocking; *is_done false while it runs. After an error or is_done only free it. An
 * error is the failure of the pull, with the last line that skopeo wrote; credentials and the
 * half-made layout are gone then. */
MUST_CHECK enum err image_pull_poll(struct image_pull *pull, bool *is_done, struct error *e);
void image_pull_free(struct image_pull *pull); /* stops it if it runs; NULL is a no-op */
DEFINE_CLEANUP(image_pull, struct image_pull *, image_pull_free)

#endif
