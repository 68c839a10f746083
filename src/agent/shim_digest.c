/*
 * The shim's own SHA-256 behind agent/image/digest.h: libsodium's, linked in. libcrypto, which the
 * rest of the agent hashes with, costs more to load than everything else a shim does for a short
 * job, and a shim hashes at most one small text.
 */
#include <sodium.h>

#include "agent/image/digest.h"
#include "base/mem.h"

struct image_hash {
    crypto_hash_sha256_state state;
};

struct image_hash *image_hash_new(void)
{
    struct image_hash *hash = mem_new(1, sizeof(*hash));
    (void)crypto_hash_sha256_init(&hash->state);
    return hash;
}

void image_hash_add(struct image_hash *hash, const void *bytes, size_t size)
{
    (void)crypto_hash_sha256_update(&hash->state, bytes, size);
}

struct image_digest image_hash_end(struct image_hash *hash)
{
    struct image_digest digest;
    (void)crypto_hash_sha256_final(&hash->state, digest.bytes);
    return digest;
}

void image_hash_free(struct image_hash *hash)
{
    mem_free(hash);
}

struct image_digest image_digest_of(const void *bytes, size_t size)
{
    struct image_digest digest;
    (void)crypto_hash_sha256(digest.bytes, bytes, size);
    return digest;
}

bool image_digest_parse(struct str text, struct image_digest *out)
{
    struct str hex = text;
    if (!str_starts(text, STR("sha256:")))
        return false;
    hex.data += sizeof("sha256:") - 1;
    hex.size -= sizeof("sha256:") - 1;
    for (size_t i = 0; i < hex.size; i++)
        if (hex.data[i] >= 'A' && hex.data[i] <= 'F')
            return false;
    return hex_decode(hex, out->bytes, sizeof(out->bytes));
}

char *image_digest_hex(const struct image_digest *digest, char out[IMAGE_DIGEST_HEX_MAX])
{
    hex_encode(digest->bytes, sizeof(digest->bytes), out);
    return out;
}

char *image_digest_text(const struct image_digest *digest, char out[IMAGE_DIGEST_TEXT_MAX])
{
    memcpy(out, "sha256:", sizeof("sha256:") - 1);
    hex_encode(digest->bytes, sizeof(digest->bytes), out + sizeof("sha256:") - 1);
    return out;
}
