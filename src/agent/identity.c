#include "agent/identity.h"

#include <assert.h>
#include <sodium.h>

#include "os/file.h"

enum { IDENTITY_FILE_MAX = 4096 };

static_assert(IDENTITY_KEY_SIZE == crypto_sign_PUBLICKEYBYTES, "an Ed25519 key");
static_assert(GRANT_SIGNATURE_SIZE == crypto_sign_BYTES, "an Ed25519 signature");
static_assert(GRANT_DIGEST_SIZE == crypto_hash_sha256_BYTES, "a SHA-256 digest");

enum err identity_read(const char *path, struct identity *out, struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    enum err rc = file_read(path, IDENTITY_FILE_MAX, &text, e);
    if (rc == ERR_NOT_FOUND)
        return err_set(e, rc, "%s does not exist: this node has not joined a controller", path);
    if (rc != ERR_OK)
        return rc;

    struct identity identity = { 0 };
    bool has_node = false;
    bool has_key = false;
    struct str lines = buf_str(&text);
    while (lines.size > 0) {
        struct str value = str_cut(&lines, '\n');
        struct str name = str_cut(&value, ' ');
        if (str_is(name, "node"))
            has_node = id_parse(ID_NODE, value, &identity.node);
        else if (str_is(name, "controller"))
            has_key = hex_decode(value, identity.controller_key, IDENTITY_KEY_SIZE);
    }
    if (!has_node || !has_key)
        return err_set(e, ERR_CORRUPT, "%s: \"%s\" is missing or wrong; join again", path,
                       has_node ? "controller" : "node");
    *out = identity;
    return ERR_OK;
}

enum err identity_write(const char *path, const struct identity *identity, struct error *e)
{
    char node[ID_TEXT_MAX];
    char key[2 * IDENTITY_KEY_SIZE + 1];
    hex_encode(identity->controller_key, IDENTITY_KEY_SIZE, key);
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "node %s\ncontroller %s\n", id_text(ID_NODE, identity->node, node), key);
    return file_write_atomic(path, buf_str(&text), 0644, e);
}

static void sha256(void *self, struct str bytes, struct grant_digest *out)
{
    (void)self;
    (void)crypto_hash_sha256(out->bytes, (const unsigned char *)bytes.data, bytes.size);
}

static bool verify(void *self, struct str bytes, const uint8_t signature[GRANT_SIGNATURE_SIZE])
{
    const struct identity *identity = self;
    return crypto_sign_verify_detached(signature, (const unsigned char *)bytes.data, bytes.size,
                                       identity->controller_key) == 0;
}

struct grant_crypto identity_crypto(struct identity *identity)
{
    return (struct grant_crypto){ .self = identity, .sha256 = sha256, .verify = verify };
}
