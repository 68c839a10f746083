/* digest.h - SHA-256 digests as OCI writes them, and hashing of streams. */
#ifndef AGENT_IMAGE_DIGEST_H
#define AGENT_IMAGE_DIGEST_H

#include <string.h>

#include "base/base.h"
#include "base/str.h"

enum {
    IMAGE_DIGEST_TEXT_MAX = 72, /* "sha256:..." with its NUL */
    IMAGE_DIGEST_HEX_MAX = 65,
};

/* SHA-256; the only algorithm that is accepted. */
struct image_digest {
    uint8_t bytes[32];
};

static inline int image_digest_cmp(const struct image_digest *a, const struct image_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static inline bool image_digest_eq(const struct image_digest *a, const struct image_digest *b)
{
    return image_digest_cmp(a, b) == 0;
}

struct image_digest image_digest_of(const void *bytes, size_t size);
/* "sha256:" and 64 lower-case hexadecimal digits, nothing else. */
bool image_digest_parse(struct str text, struct image_digest *out);
/* Both write the text with its NUL and return `out`: "sha256:9f86..." and "9f86...". */
char *image_digest_text(const struct image_digest *digest, char out[IMAGE_DIGEST_TEXT_MAX]);
char *image_digest_hex(const struct image_digest *digest, char out[IMAGE_DIGEST_HEX_MAX]);

struct image_hash; /* opaque: a digest in the making */

struct image_hash *image_hash_new(void);
void image_hash_add(struct image_hash *hash, const void *bytes, size_t size);
struct image_digest image_hash_end(struct image_hash *hash); /* nothing may be added after it */
void image_hash_free(struct image_hash *hash);               /* NULL is a no-op */
DEFINE_CLEANUP(image_hash, struct image_hash *, image_hash_free)

#endif
