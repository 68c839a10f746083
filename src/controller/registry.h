/*
 * registry.h - what a reference in a registry means now: the digest of its manifest, and the
 * image's defaults, asked with skopeo as a child.
 *
 * An image is stored by digest, so a tag is looked up once, when the image is named. A list of
 * images for several machines becomes the one for this kind of machine. The login goes into a file
 * of mode 0600 in a directory of its own that is removed afterwards: never onto a command line.
 *
 * A tenant names the host. The child is run by berth-egress, so that it gets nowhere near: an
 * operator's `registries` may be on networks of the site, those of strangers may not.
 */
#ifndef CONTROLLER_REGISTRY_H
#define CONTROLLER_REGISTRY_H

#include "controller/images.h"
#include "net/reach.h"

struct registry_request {
    const char *reference; /* "registry/name:tag" or "...@sha256:..." */
    const char *work_dir;  /* private; exists */
    struct str username;   /* empty: anonymous */
    struct str password;
    bool is_plain_http; /* without TLS: the loopback only, see registry_is_plain() */
    enum reach reach;   /* of the registry's host, see registry_judge() */
    const char *egress; /* berth-egress */
};

struct registry_image {
    struct digest manifest;
    int64_t size_bytes; /* of all layers */
    struct image_defaults defaults;
};

/* The host of a reference: what a credential names. Borrowed from it. */
struct str registry_host(struct str reference);
/* "host/name@sha256:..." of a reference, whatever tag it has: what nodes fetch. In the arena. */
const char *registry_by_digest(struct str reference, const struct digest *digest,
                               struct arena *arena);
/* May this registry be asked without TLS? Only one of `hosts`, and only on the loopback. */
bool registry_is_plain(struct str reference, const struct str_list *hosts);
/* What an operator says of registries; both borrowed. */
struct registry_rules {
    const struct str_list *named; /* no other may be used, unless empty; these may be near */
    const struct str_list *plain; /* these too */
};
/* ERR_DENIED: images may not come from there. Else how near the host may be. */
enum err registry_judge(struct str reference, const struct registry_rules *rules, enum reach *reach,
                        struct error *e) MUST_CHECK;
/* ERR_INVALID naming the host: it is not on the loopback. */
enum err registry_check_plain(const struct str_list *hosts, struct error *e) MUST_CHECK;

/* Blocking, up to minutes: for workers. `out` lives in the arena. ERR_INVALID: no reference, or not
 * an image; ERR_UNAVAILABLE with what the registry said: it could not be resolved. */
enum err registry_resolve(const struct registry_request *request, struct arena *arena,
                          struct registry_image *out, struct error *e) MUST_CHECK;

#endif
