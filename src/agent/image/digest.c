#include "agent/image/digest.h"

#include <assert.h>
#include <openssl/evp.h>

#include "base/mem.h"

static const char prefix[] = "sha256:";

struct image_hash {
    EVP_MD_CTX *context;
};

struct image_hash *image_hash_new(void)
{
    struct image_hash *hash = mem_new(1, sizeof(*hash));
    hash->context = EVP_MD_CTX_new();
    /* Fails only for want of memory or of SHA-256 itself, which no build of libcrypto lacks. */
    int is_started = EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL);
    assert(is_started == 1);
    return hash;
}

void image_hash_add(struct image_hash *hash, const void *bytes, size_t size)
{
    int is_added = EVP_DigestUpdate(hash->context, bytes, size);
    assert(is_added == 1);
}

struct image_digest image_hash_end(struct image_hash *hash)
{
    struct image_digest digest;
    int is_ended = EVP_DigestFinal_ex(hash->context, digest.bytes, NULL);
    assert(is_ended == 1);
    return digest;
}

void image_hash_free(struct image_hash *hash)
{
    if (hash == NULL)
        return;
    EVP_MD_CTX_free(hash->context);
    mem_free(hash);
}

struct image_digest image_digest_of(const void *bytes, size_t size)
{
    AUTO(image_hash) struct image_hash *hash = image_hash_new();
    image_hash_add(hash, bytes, size);
    return image_hash_end(hash);
}

bool image_digest_parse(struct str text, struct image_digest *out)
{
    struct image_digest digest;
    if (!str_starts(text, STR(prefix)))
        return false;
    struct str hex = { text.data + sizeof(prefix) - 1, text.size - (sizeof(prefix) - 1) };
    for (size_t i = 0; i < hex.size; i++) {
        if (hex.data[i] >= 'A' && hex.data[i] <= 'F')
            return false; /* two spellings of one digest would be two names of one file */
    }
    if (!hex_decode(hex, digest.bytes, sizeof(digest.bytes)))
        return false;
    *out = digest;
    return true;
}

char *image_digest_hex(const struct image_digest *digest, char out[IMAGE_DIGEST_HEX_MAX])
{
    hex_encode(digest->bytes, sizeof(digest->bytes), out);
    return out;
}

char *image_digest_text(const struct image_digest *digest, char out[IMAGE_DIGEST_TEXT_MAX])
{
    memcpy(out, prefix, sizeof(prefix) - 1);
    hex_encode(digest->bytes, sizeof(digest->bytes), out + sizeof(prefix) - 1);
    return out;
}
