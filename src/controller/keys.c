#include "controller/keys.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/random.h"

enum { PEM_MAX = 64 * 1024, PATH_BYTES = 4096, SERVER_DAYS = 365, CA_DAYS = 3650, DAY_S = 86400 };

static enum err key_path(const struct config *config, const char *name, char out[PATH_BYTES],
                         struct error *e)
{
    size_t length = strlen(name);
    if (config->state_dir.size + length + 2 > PATH_BYTES)
        return err_set(e, ERR_LIMIT, "state_dir is too long");
    memcpy(out, config->state_dir.data, config->state_dir.size);
    out[config->state_dir.size] = '/';
    memcpy(out + config->state_dir.size + 1, name, length + 1);
    return ERR_OK;
}

static enum err key_write(const struct config *config, const char *name, struct str bytes,
                          mode_t mode, struct error *e)
{
    char path[PATH_BYTES];
    enum err rc = key_path(config, name, path, e);
    return rc != ERR_OK ? rc : file_write_atomic(path, bytes, mode, e);
}

static enum err key_read(const struct config *config, const char *name, struct buf *out,
                         struct error *e)
{
    char path[PATH_BYTES];
    enum err rc = key_path(config, name, path, e);
    if (rc != ERR_OK)
        return rc;
    rc = file_read(path, PEM_MAX, out, e);
    if (rc == ERR_NOT_FOUND)
        return err_set(e, ERR_NOT_FOUND,
                       "%s is missing: run `berthd init`, or put back the backup"
                       " of the whole state directory",
                       path);
    return rc;
}

/* A file of exactly `size` secret bytes. */
static enum err key_read_exact(const struct config *config, const char *name, void *out,
                               size_t size, struct error *e)
{
    AUTO(buf) struct buf bytes = { 0 };
    enum err rc = key_read(config, name, &bytes, e);
    if (rc != ERR_OK)
        return rc;
    if (bytes.size != size)
        return err_set(e, ERR_CORRUPT, "%s has %zu bytes, not %zu", name, bytes.size, size);
    memcpy(out, bytes.data, size);
    sodium_memzero(bytes.data, bytes.size);
    return ERR_OK;
}

/* What the certificate was made for, to notice when the configuration asks for other names. */
static void server_names(const struct config *config, struct buf *out)
{
    for (size_t i = 0; i < config->names.count; i++) {
        buf_add_str(out, config->names.items[i]);
        buf_add_char(out, '\n');
    }
}

static bool server_names_changed(const struct config *config)
{
    AUTO(buf) struct buf wanted = { 0 };
    AUTO(buf) struct buf present = { 0 };
    server_names(config, &wanted);
    return key_read(config, "server.names", &present, NULL) != ERR_OK ||
           !str_eq(buf_str(&wanted), buf_str(&present));
}

static enum err server_certificate_make(const struct config *config, const struct ca *ca,
                                        struct wall now, struct error *e)
{
    AUTO(buf) struct buf key = { 0 };
    AUTO(buf) struct buf certificate = { 0 };
    static const struct str local[] = { { "localhost", 9 }, { "127.0.0.1", 9 }, { "::1", 3 } };
    struct str names[COUNT_OF(local) + 32];
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(local); i++)
        names[count++] = local[i];
    for (size_t i = 0; i < config->names.count && count < COUNT_OF(names); i++)
        names[count++] = config->names.items[i];

    enum err rc = ca_key_new(CA_KEY_P256, &key, e);
    if (rc != ERR_OK)
        return rc;
    const struct ca_server_options options = {
        .names = names, .name_count = count, .now = now, .lifetime_s = SERVER_DAYS * DAY_S
    };
    rc = ca_issue_server(ca, buf_str(&key), &options, &certificate, e);
    if (rc == ERR_OK)
        rc = key_write(config, "server.key", buf_str(&key), 0600, e);
    if (rc == ERR_OK)
        rc = key_write(config, "server.pem", buf_str(&certificate), 0644, e);
    sodium_memzero(key.data, key.size);
    if (rc != ERR_OK)
        return rc;
    AUTO(buf) struct buf listed = { 0 };
    server_names(config, &listed);
    return key_write(config, "server.names", buf_str(&listed), 0644, e);
}

static enum err ca_make(const struct config *config, struct ca **out, struct error *e)
{
    AUTO(buf) struct buf key = { 0 };
    AUTO(buf) struct buf certificate = { 0 };
    enum err rc = ca_key_new(CA_KEY_P256, &key, e);
    if (rc != ERR_OK)
        return rc;
    const struct ca_options options = { .name = STR("Berth CA"),
                                        .now = clock_wall(),
                                        .lifetime_s = (int64_t)CA_DAYS * DAY_S };
    rc = ca_certificate_new(buf_str(&key), &options, &certificate, e);
    if (rc == ERR_OK)
        rc = key_write(config, "ca.key", buf_str(&key), 0600, e);
    if (rc == ERR_OK)
        rc = key_write(config, "ca.pem", buf_str(&certificate), 0644, e);
    if (rc == ERR_OK)
        rc = ca_load(buf_str(&certificate), buf_str(&key), out, e);
    sodium_memzero(key.data, key.size);
    return rc;
}

/* Fixed-size secrets: the name, and how many random bytes. */
static enum err random_make(const struct config *config, const char *name, size_t size,
                            struct error *e)
{
    uint8_t bytes[2 * sizeof(struct tls_ticket_key)];
    random_bytes(bytes, size);
    enum err rc = key_write(config, name, (struct str){ (const char *)bytes, size }, 0600, e);
    sodium_memzero(bytes, sizeof(bytes));
    return rc;
}

static enum err grant_key_make(const struct config *config, struct error *e)
{
    uint8_t public[KEYS_PUBLIC_BYTES];
    uint8_t secret[KEYS_SECRET_BYTES];
    static_assert(KEYS_SECRET_BYTES == crypto_sign_SECRETKEYBYTES, "Ed25519");
    (void)crypto_sign_keypair(public, secret); /* cannot fail once sodium_init has succeeded */
    enum err rc = key_write(config, "grant.key",
                            (struct str){ (const char *)secret, sizeof(secret) }, 0600, e);
    sodium_memzero(secret, sizeof(secret));
    return rc;
}

enum err keys_create(const struct config *config, struct error *e)
{
    char path[PATH_BYTES];
    struct stat info;
    enum err rc = key_path(config, "ca.key", path, e);
    if (rc != ERR_OK)
        return rc;
    if (stat(path, &info) == 0)
        return err_set(e, ERR_CONFLICT, "%s exists: this state directory is set up already", path);
    if (sodium_init() < 0)
        return err_set(e, ERR_UNAVAILABLE, "libsodium cannot be initialised");

    rc = random_make(config, "seal.key", KEYS_SEAL_BYTES, e);
    if (rc == ERR_OK)
        rc = random_make(config, "tickets.key", sizeof(((struct keys *)NULL)->tickets), e);
    if (rc == ERR_OK)
        rc = grant_key_make(config, e);
    AUTO(ca) struct ca *ca = NULL;
    if (rc == ERR_OK)
        rc = ca_make(config, &ca, e);
    return rc != ERR_OK ? rc : server_certificate_make(config, ca, clock_wall(), e);
}

/* The operator's own certificate, or ours, made anew when it nears its end. */
static enum err server_load(const struct config *config, struct keys *keys, struct wall now,
                            struct error *e)
{
    if (config->certificate.size > 0) {
        AUTO(arena) struct arena arena = { 0 };
        enum err rc = file_read(str_c(&arena, config->certificate), PEM_MAX, &keys->server_pem, e);
        return rc != ERR_OK ? rc
                            : file_read(str_c(&arena, config->certificate_key), PEM_MAX,
                                        &keys->server_key_pem, e);
    }
    enum err rc = key_read(config, "server.pem", &keys->server_pem, e);
    if (rc != ERR_OK)
        return rc;
    struct ca_certificate_info info;
    rc = ca_certificate_read(buf_str(&keys->server_pem), &info, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "server.pem");
    bool is_near_end = info.not_after.ns - now.ns < INT64_C(30) * DAY_S * NS_PER_S;
    if (is_near_end || server_names_changed(config)) {
        rc = server_certificate_make(config, keys->ca, now, e);
        if (rc != ERR_OK)
            return rc;
        buf_clear(&keys->server_pem);
        rc = key_read(config, "server.pem", &keys->server_pem, e);
    }
    return rc != ERR_OK ? rc : key_read(config, "server.key", &keys->server_key_pem, e);
}

static enum err ca_open(const struct config *config, struct keys *keys, struct error *e)
{
    AUTO(buf) struct buf key = { 0 };
    enum err rc = key_read(config, "ca.pem", &keys->ca_pem, e);
    if (rc == ERR_OK)
        rc = key_read(config, "ca.key", &key, e);
    if (rc == ERR_OK)
        rc = ca_load(buf_str(&keys->ca_pem), buf_str(&key), &keys->ca, e);
    if (key.size > 0)
        sodium_memzero(key.data, key.size);
    return rc;
}

enum err keys_load(const struct config *config, struct keys **out, struct error *e)
{
    if (sodium_init() < 0)
        return err_set(e, ERR_UNAVAILABLE, "libsodium cannot be initialised");
    AUTO(keys) struct keys *keys = mem_new(1, sizeof(*keys));
    enum err rc = ca_open(config, keys, e);
    if (rc == ERR_OK)
        rc = server_load(config, keys, clock_wall(), e);
    if (rc == ERR_OK)
        rc = key_read_exact(config, "grant.key", keys->grant_secret, KEYS_SECRET_BYTES, e);
    if (rc == ERR_OK)
        rc = key_read_exact(config, "seal.key", keys->seal, KEYS_SEAL_BYTES, e);
    if (rc == ERR_OK)
        rc = key_read_exact(config, "tickets.key", keys->tickets, sizeof(keys->tickets), e);
    if (rc != ERR_OK)
        return rc;
    (void)crypto_sign_ed25519_sk_to_pk(keys->grant_public, keys->grant_secret);
    *out = TAKE(keys);
    return ERR_OK;
}

static enum err tickets_rotate(const struct config *config, struct keys *keys, struct wall now,
                               bool *is_new, struct error *e)
{
    struct stat info;
    struct tls_ticket_key fresh[COUNT_OF(keys->tickets)];
    char path[PATH_BYTES];
    enum err rc = key_path(config, "tickets.key", path, e);
    if (rc != ERR_OK)
        return rc;
    if (stat(path, &info) != 0)
        return err_errno(e, "%s", path);
    if (now.ns / NS_PER_S - info.st_mtim.tv_sec < DAY_S)
        return ERR_OK;
    tls_ticket_key_random(&fresh[0]);
    fresh[1] = keys->tickets[0];
    rc = key_write(config, "tickets.key", (struct str){ (const char *)fresh, sizeof(fresh) }, 0600,
                   e);
    if (rc == ERR_OK)
        memcpy(keys->tickets, fresh, sizeof(fresh));
    *is_new = *is_new || rc == ERR_OK;
    sodium_memzero(fresh, sizeof(fresh));
    return rc;
}

static void server_wipe(struct keys *keys)
{
    buf_done(&keys->server_pem);
    if (keys->server_key_pem.size > 0)
        sodium_memzero(keys->server_key_pem.data, keys->server_key_pem.size);
    buf_done(&keys->server_key_pem);
}

enum err keys_refresh(const struct config *config, struct keys *keys, struct wall now, bool *is_new,
                      struct error *e)
{
    struct keys fresh = { .ca = keys->ca };
    *is_new = false;
    enum err rc = server_load(config, &fresh, now, e);
    bool is_other = !str_eq(buf_str(&fresh.server_pem), buf_str(&keys->server_pem));
    if (rc != ERR_OK || !is_other) {
        server_wipe(&fresh);
    } else {
        server_wipe(keys);
        keys->server_pem = fresh.server_pem;
        keys->server_key_pem = fresh.server_key_pem;
        *is_new = true;
    }
    return rc != ERR_OK ? rc : tickets_rotate(config, keys, now, is_new, e);
}

void keys_free(struct keys *keys)
{
    if (keys == NULL)
        return;
    buf_done(&keys->ca_pem);
    server_wipe(keys);
    ca_free(keys->ca);
    sodium_memzero(keys, sizeof(*keys));
    mem_free(keys);
}

static void crypto_sha256(void *self, struct str bytes, struct grant_digest *out)
{
    (void)self;
    (void)crypto_hash_sha256(out->bytes, (const unsigned char *)bytes.data, bytes.size);
}

static void crypto_sign_grant(void *self, struct str bytes, uint8_t out[GRANT_SIGNATURE_SIZE])
{
    const struct keys *keys = self;
    (void)crypto_sign_detached(out, NULL, (const unsigned char *)bytes.data, bytes.size,
                               keys->grant_secret);
}

static bool crypto_verify_grant(void *self, struct str bytes,
                                const uint8_t signature[GRANT_SIGNATURE_SIZE])
{
    const struct keys *keys = self;
    return crypto_sign_verify_detached(signature, (const unsigned char *)bytes.data, bytes.size,
                                       keys->grant_public) == 0;
}

struct grant_crypto keys_grant_crypto(struct keys *keys)
{
    return (struct grant_crypto){
        .self = keys,
        .sha256 = crypto_sha256,
        .sign = crypto_sign_grant,
        .verify = crypto_verify_grant,
    };
}

void keys_seal(const struct keys *keys, struct str plain, struct buf *sealed)
{
    enum { NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES };
    size_t size = NONCE + plain.size + crypto_aead_xchacha20poly1305_ietf_ABYTES;
    uint8_t *bytes = mem_new(size, 1);
    random_bytes(bytes, NONCE);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(bytes + NONCE, NULL,
                                                     (const unsigned char *)plain.data, plain.size,
                                                     NULL, 0, NULL, bytes, keys->seal);
    buf_reserve(sealed, 2 * size);
    hex_encode(bytes, size, sealed->data + sealed->size);
    sealed->size += 2 * size;
    mem_free(bytes);
}

enum err keys_open(const struct keys *keys, struct str sealed, struct buf *plain, struct error *e)
{
    enum { NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES };
    size_t size = sealed.size / 2;
    if (size < NONCE + crypto_aead_xchacha20poly1305_ietf_ABYTES)
        return err_set(e, ERR_CORRUPT, "a sealed secret is too short");
    uint8_t *bytes = mem_new(size, 1);
    unsigned long long opened = 0;
    size_t before = plain->size;
    buf_reserve(plain, size);
    bool is_good = hex_decode(sealed, bytes, size) &&
                   crypto_aead_xchacha20poly1305_ietf_decrypt(
                       (unsigned char *)plain->data + before, &opened, NULL, bytes + NONCE,
                       size - NONCE, NULL, 0, bytes, keys->seal) == 0;
    mem_free(bytes);
    if (!is_good)
        return err_set(e, ERR_CORRUPT, "a sealed secret cannot be opened with this seal.key");
    plain->size = before + (size_t)opened;
    plain->data[plain->size] = '\0';
    return ERR_OK;
}
