#include "net/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/tls_internal.h"
#include "os/clock.h"
#include "os/random.h"

enum {
    TICKET_NAME_BYTES = 16,
    TICKET_KEY_BYTES = 32,
    TICKET_IV_BYTES = 16,
    TLS_NAME_MAX = 256,
    SESSION_LIFETIME_DEFAULT_S = 86400
};
static_assert(TICKET_NAME_BYTES + 2 * TICKET_KEY_BYTES == TLS_TICKET_KEY_BYTES, "layout of a key");

struct tls_context {
    SSL_CTX *ssl; /* owned; its app data is this struct */
    size_t ref_count;
    bool is_server;

    struct tls_ticket_key ticket_keys[TLS_TICKET_KEYS_MAX];
    size_t ticket_key_count;
    struct wall (*now)(void *arg);
    void *now_arg;

    enum tls_protocol protocol;
    bool ignores_time;
    bool has_pin;
    uint8_t pin[CA_FINGERPRINT_BYTES];
    SSL_SESSION *session;            /* owned; the last one with session_name, or NULL */
    char session_name[TLS_NAME_MAX]; /* the first server asked for; others never resume */
};

const char *tls_reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return reason != NULL ? reason : "no reason given";
}

enum err tls_fail(struct error *e, enum err code, const char *fmt, ...)
{
    char text[160];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return err_set(e, code, "%s: %s", text, tls_reason());
}

/* --- PEM. --- */

static int no_pass_phrase(char *out, int size, int is_writing, void *arg)
{
    (void)out;
    (void)size;
    (void)is_writing;
    (void)arg;
    return 0;
}

BIO *tls_bio(struct str bytes)
{
    assert(bytes.size <= INT32_MAX);
    BIO *bio = BIO_new_mem_buf(bytes.size > 0 ? bytes.data : "", (int)bytes.size);
    assert(bio != NULL);
    return bio;
}

X509 *tls_read_certificate(BIO *bio)
{
    return PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL);
}

EVP_PKEY *tls_read_key(BIO *bio)
{
    return PEM_read_bio_PrivateKey(bio, NULL, no_pass_phrase, NULL);
}

static enum err use_identity(SSL_CTX *ssl, struct str certificate_pem, struct str key_pem,
                             struct error *e)
{
    AUTO(bio) BIO *chain = tls_bio(certificate_pem);
    AUTO(x509) X509 *leaf = tls_read_certificate(chain);
    if (leaf == NULL || SSL_CTX_use_certificate(ssl, leaf) != 1)
        return tls_fail(e, ERR_INVALID, "certificate");
    for (X509 *more = tls_read_certificate(chain); more != NULL;
         more = tls_read_certificate(chain)) {
        if (SSL_CTX_add0_chain_cert(ssl, more) != 1) {
            X509_free(more);
            return tls_fail(e, ERR_INVALID, "certificate chain");
        }
    }
    ERR_clear_error(); /* the end of the PEM is reported as an error */
    AUTO(bio) BIO *bio = tls_bio(key_pem);
    AUTO(pkey) EVP_PKEY *key = tls_read_key(bio);
    if (key == NULL)
        return tls_fail(e, ERR_INVALID, "private key");
    if (SSL_CTX_use_PrivateKey(ssl, key) != 1 || SSL_CTX_check_private_key(ssl) != 1)
        return tls_fail(e, ERR_INVALID, "the private key does not belong to the certificate");
    return ERR_OK;
}

static enum err trust(SSL_CTX *ssl, struct str ca_pem, bool is_announced, struct error *e)
{
    AUTO(bio) BIO *bio = tls_bio(ca_pem);
    X509_STORE *store = SSL_CTX_get_cert_store(ssl);
    size_t count = 0;
    for (;;) {
        AUTO(x509) X509 *ca = tls_read_certificate(bio);
        if (ca == NULL)
            break;
        if (X509_STORE_add_cert(store, ca) != 1)
            return tls_fail(e, ERR_INVALID, "CA certificate");
        if (is_announced && SSL_CTX_add_client_CA(ssl, ca) != 1)
            return tls_fail(e, ERR_INVALID, "CA certificate");
        count++;
    }
    if (count == 0)
        return tls_fail(e, ERR_INVALID, "CA certificate");
    ERR_clear_error();
    return ERR_OK;
}

/* --- Both ends. --- */

static struct tls_context *context_new(bool is_server)
{
    struct tls_context *context = mem_new(1, sizeof(*context));
    context->ref_count = 1;
    context->is_server = is_server;
    context->ssl = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    assert(context->ssl != NULL);
    SSL_CTX_set_app_data(context->ssl, context);
    SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
    int rc = SSL_CTX_set_cipher_list(context->ssl, "ECDHE+AESGCM:ECDHE+CHACHA20");
    assert(rc == 1);
    SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_read_ahead(context->ssl, 1); /* one system call a record instead of two */
    SSL_CTX_set_mode(context->ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

void tls_context_ref(struct tls_context *context)
{
    context->ref_count++;
}

void tls_context_free(struct tls_context *context)
{
    if (context == NULL || --context->ref_count > 0)
        return;
    SSL_SESSION_free(context->session);
    SSL_CTX_free(context->ssl);
    OPENSSL_cleanse(context->ticket_keys, sizeof(context->ticket_keys));
    mem_free(context);
}

/* --- Server. --- */

void tls_ticket_key_random(struct tls_ticket_key *out)
{
    random_bytes(out->bytes, sizeof(out->bytes));
}

static bool ticket_init(const struct tls_ticket_key *key, const uint8_t *iv, EVP_CIPHER_CTX *cipher,
                        EVP_MAC_CTX *mac, bool is_encrypting)
{
    uint8_t mac_key[TICKET_KEY_BYTES];
    char digest[] = "SHA256";
    memcpy(mac_key, key->bytes + TICKET_NAME_BYTES + TICKET_KEY_BYTES, sizeof(mac_key));
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, mac_key, sizeof(mac_key)),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    bool is_ready = EVP_MAC_CTX_set_params(mac, params) == 1 &&
                    EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL,
                                      key->bytes + TICKET_NAME_BYTES, iv, is_encrypting) == 1;
    OPENSSL_cleanse(mac_key, sizeof(mac_key));
    return is_ready;
}

/* OpenSSL's contract: -1 failure, 0 unknown key (full handshake), 1 fine, 2 fine but renew it. */
static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int is_encrypting)
{
    const struct tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    if (is_encrypting) {
        const struct tls_ticket_key *key = &context->ticket_keys[0];
        memcpy(name, key->bytes, TICKET_NAME_BYTES);
        random_bytes(iv, TICKET_IV_BYTES);
        return ticket_init(key, iv, cipher, mac, true) ? 1 : -1;
    }
    for (size_t i = 0; i < context->ticket_key_count; i++) {
        const struct tls_ticket_key *key = &context->ticket_keys[i];
        if (memcmp(name, key->bytes, TICKET_NAME_BYTES) == 0)
            return !ticket_init(key, iv, cipher, mac, false) ? -1 : i == 0 ? 1 : 2;
    }
    return 0;
}

enum err tls_server_set_ticket_keys(struct tls_context *context, const struct tls_ticket_key *keys,
                                    size_t count, struct error *e)
{
    assert(context->is_server);
    if (count == 0 || count > TLS_TICKET_KEYS_MAX)
        return err_set(e, ERR_INVALID, "%zu session ticket keys are not in 1..%d", count,
                       TLS_TICKET_KEYS_MAX);
    memcpy(context->ticket_keys, keys, count * sizeof(keys[0]));
    context->ticket_key_count = count;
    return ERR_OK;
}

static bool offers(const unsigned char *list, unsigned size, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < size; i += 1U + list[i]) {
        if (list[i] == length && i + 1 + length <= size && memcmp(list + i + 1, name, length) == 0)
            return true;
    }
    return false;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                   const unsigned char *list, unsigned size, void *arg)
{
    (void)arg;
    const char *name = TLS_ALPN_HTTP;
    if (offers(list, size, TLS_ALPN_LINK)) {
        if (SSL_version(ssl) < TLS1_3_VERSION)
            return SSL_TLSEXT_ERR_ALERT_FATAL;
        name = TLS_ALPN_LINK;
    } else if (!offers(list, size, TLS_ALPN_HTTP)) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = (const unsigned char *)name;
    *out_size = (unsigned char)strlen(name);
    return SSL_TLSEXT_ERR_OK;
}

/*
 * An expired client certificate passes, and tls_peer_read says so: its holder may renew it.
 * Everything else that OpenSSL finds wrong stays refused.
 */
static int on_verify_client(int is_fine, X509_STORE_CTX *store)
{
    if (!is_fine && X509_STORE_CTX_get_error_depth(store) == 0 &&
        X509_STORE_CTX_get_error(store) == X509_V_ERR_CERT_HAS_EXPIRED) {
        X509_STORE_CTX_set_error(store, X509_V_OK);
        return 1;
    }
    return is_fine;
}

static enum err set_client_trust(struct tls_context *context,
                                 const struct tls_server_options *options, struct error *e)
{
    uint8_t id[SHA256_DIGEST_LENGTH] = { 0 };
    if (options->client_ca_pem.size > 0) {
        enum err rc = trust(context->ssl, options->client_ca_pem, true, e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "client CA");
        int mode = SSL_VERIFY_PEER | SSL_VERIFY_CLIENT_ONCE |
                   (options->is_client_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
        SSL_CTX_set_verify(context->ssl, mode, on_verify_client);
        SHA256((const unsigned char *)options->client_ca_pem.data, options->client_ca_pem.size, id);
    }
    /* A ticket counts only under the CA that verified its holder. */
    SSL_CTX_set_session_id_context(context->ssl, id, sizeof(id));
    return ERR_OK;
}

static struct wall system_now(void *arg)
{
    (void)arg;
    return clock_wall();
}

enum err tls_server_set_identity(struct tls_context *context, struct str certificate_pem,
                                 struct str key_pem, struct error *e)
{
    AUTO(tls_context) struct tls_context *trial = context_new(true);
    enum err rc = use_identity(trial->ssl, certificate_pem, key_pem, e);
    if (rc != ERR_OK)
        return rc;
    SSL_CTX_clear_chain_certs(context->ssl);
    return use_identity(context->ssl, certificate_pem, key_pem, e);
}

enum err tls_server_new(const struct tls_server_options *options, struct tls_context **out,
                        struct error *e)
{
    AUTO(tls_context) struct tls_context *context = context_new(true);
    context->now = options->now != NULL ? options->now : system_now;
    context->now_arg = options->now_arg;
    enum err rc = use_identity(context->ssl, options->certificate_pem, options->key_pem, e);
    if (rc == ERR_OK)
        rc = set_client_trust(context, options, e);
    if (rc != ERR_OK)
        return rc;
    struct tls_ticket_key ephemeral;
    tls_ticket_key_random(&ephemeral);
    bool is_durable = options->ticket_key_count > 0;
    rc = tls_server_set_ticket_keys(context, is_durable ? options->ticket_keys : &ephemeral,
                                    is_durable ? options->ticket_key_count : 1, e);
    if (rc != ERR_OK)
        return rc;
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context->ssl, on_ticket);
    SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context->ssl, 1);
    SSL_CTX_set_timeout(context->ssl, options->session_lifetime_s > 0
                                          ? (long)options->session_lifetime_s
                                          : SESSION_LIFETIME_DEFAULT_S);
    SSL_CTX_set_alpn_select_cb(context->ssl, on_alpn, NULL);
    *out = TAKE(context);
    return ERR_OK;
}

/* --- Client. --- */

/*
 * Keeps a copy of the newest session, and each connection gets a copy of that: OpenSSL marks the
 * one that a connection has used as not to be resumed again. 0 means that we took no reference.
 */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls_context *context = SSL_get_app_data(ssl);
    if (context == NULL)
        return 0;
    SSL_SESSION_free(context->session);
    context->session = SSL_SESSION_dup(session);
    return 0;
}

/*
 * With a pin: the server's own certificate equals it, or a CA that the server sends does and then
 * verifies the chain in place of a store.
 */
static int on_verify_pin(X509_STORE_CTX *store, void *arg)
{
    struct tls_context *context = arg;
    uint8_t found[CA_FINGERPRINT_BYTES];
    X509 *leaf = X509_STORE_CTX_get0_cert(store);
    if (tls_fingerprint(leaf, found, NULL) == ERR_OK &&
        CRYPTO_memcmp(found, context->pin, sizeof(found)) == 0)
        return 1;
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(store);
    for (int i = 0; i < sk_X509_num(sent); i++) {
        X509 *ca = sk_X509_value(sent, i);
        if (tls_fingerprint(ca, found, NULL) != ERR_OK ||
            CRYPTO_memcmp(found, context->pin, sizeof(found)) != 0)
            continue;
        STACK_OF(X509) *trusted = sk_X509_new_null();
        int is_fine = trusted != NULL && sk_X509_push(trusted, ca) > 0;
        if (is_fine) {
            X509_STORE_CTX_set0_trusted_stack(store, trusted);
            is_fine = X509_verify_cert(store);
        }
        sk_X509_free(trusted);
        return is_fine;
    }
    X509_STORE_CTX_set_error(store, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT);
    return 0;
}

static enum err set_server_trust(struct tls_context *context,
                                 const struct tls_client_options *options, struct error *e)
{
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, NULL);
    if (options->pin != NULL) {
        context->has_pin = true;
        memcpy(context->pin, options->pin, sizeof(context->pin));
        SSL_CTX_set_cert_verify_callback(context->ssl, on_verify_pin, context);
        return ERR_OK;
    }
    return trust(context->ssl, options->ca_pem, false, e);
}

enum err tls_client_new(const struct tls_client_options *options, struct tls_context **out,
                        struct error *e)
{
    AUTO(tls_context) struct tls_context *context = context_new(false);
    context->protocol = options->protocol;
    context->ignores_time = options->ignores_time;
    enum err rc = set_server_trust(context, options, e);
    if (rc == ERR_OK && options->certificate_pem.size > 0)
        rc = use_identity(context->ssl, options->certificate_pem, options->key_pem, e);
    if (rc != ERR_OK)
        return rc;
    bool is_link = options->protocol == TLS_PROTOCOL_LINK;
    if (is_link)
        SSL_CTX_set_min_proto_version(context->ssl, TLS1_3_VERSION);
    static const unsigned char http[] = "\x08" TLS_ALPN_HTTP;
    static const unsigned char link[] = "\x0c" TLS_ALPN_LINK;
    int failed = SSL_CTX_set_alpn_protos(context->ssl, is_link ? link : http,
                                         is_link ? sizeof(link) - 1 : sizeof(http) - 1);
    assert(failed == 0);
    SSL_CTX_set_session_cache_mode(context->ssl,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context->ssl, on_new_session);
    *out = TAKE(context);
    return ERR_OK;
}

/* --- The socket under a connection. --- */

/* As OpenSSL's own, but a peer that has gone never raises SIGPIPE. */
static int socket_write(BIO *bio, const char *bytes, int size)
{
    BIO_clear_retry_flags(bio);
    ssize_t count = send((int)(intptr_t)BIO_get_data(bio), bytes, (size_t)size, MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)count;
}

static int socket_read(BIO *bio, char *out, int size)
{
    BIO_clear_retry_flags(bio);
    ssize_t count = recv((int)(intptr_t)BIO_get_data(bio), out, (size_t)size, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)count;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)number;
    if (command == BIO_CTRL_FLUSH)
        return 1;
    if (command != BIO_C_GET_FD)
        return 0;
    int fd = (int)(intptr_t)BIO_get_data(bio);
    if (pointer != NULL)
        *(int *)pointer = fd;
    return fd;
}

static BIO_METHOD *socket_method;

static void make_socket_method(void)
{
    socket_method =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "socket");
    assert(socket_method != NULL);
    BIO_meth_set_write(socket_method, socket_write);
    BIO_meth_set_read(socket_method, socket_read);
    BIO_meth_set_ctrl(socket_method, socket_control);
}

static void set_socket(SSL *ssl, int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_socket_method);
    BIO *bio = BIO_new(socket_method);
    assert(bio != NULL);
    BIO_set_data(bio, (void *)(intptr_t)fd);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
}

/* --- One connection. --- */

static enum err expect_name(const struct tls_context *context, SSL *ssl, const char *name,
                            struct error *e)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (context->ignores_time)
        X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME);
    uint8_t address[sizeof(struct in6_addr)];
    bool is_address =
        inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
    int rc = is_address ? X509_VERIFY_PARAM_set1_ip_asc(param, name)
                        : X509_VERIFY_PARAM_set1_host(param, name, 0);
    char copy[TLS_NAME_MAX]; /* OpenSSL's macro takes it without const */
    (void)snprintf(copy, sizeof(copy), "%s", name);
    if (rc != 1 || (!is_address && SSL_set_tlsext_host_name(ssl, copy) != 1))
        return tls_fail(e, ERR_INVALID, "server name %s", name);
    return ERR_OK;
}

static enum err attach_client(struct tls_context *context, SSL *ssl, const char *name,
                              struct error *e)
{
    if (name == NULL || strlen(name) >= TLS_NAME_MAX)
        return err_set(e, ERR_INVALID, "the server's name is missing or too long");
    enum err rc = expect_name(context, ssl, name, e);
    if (rc != ERR_OK)
        return rc;
    if (context->session_name[0] == '\0')
        (void)snprintf(context->session_name, sizeof(context->session_name), "%s", name);
    /* A resumed session is not verified again, so it must not serve under another name. */
    bool may_resume = strcmp(context->session_name, name) == 0;
    SSL_set_app_data(ssl, may_resume ? context : NULL);
    SSL_SESSION *session =
        may_resume && context->session != NULL ? SSL_SESSION_dup(context->session) : NULL;
    if (session != NULL)
        SSL_set_session(ssl, session);
    SSL_SESSION_free(session);
    SSL_set_connect_state(ssl);
    return ERR_OK;
}

enum err tls_attach(struct tls_context *context, int fd, const char *name, SSL **out,
                    struct error *e)
{
    SSL *ssl = SSL_new(context->ssl);
    assert(ssl != NULL);
    set_socket(ssl, fd);
    if (context->is_server) {
        struct wall now = context->now(context->now_arg);
        X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), (time_t)(now.ns / NS_PER_S));
        SSL_set_accept_state(ssl);
    } else {
        enum err rc = attach_client(context, ssl, name, e);
        if (rc != ERR_OK) {
            SSL_free(ssl);
            return rc;
        }
    }
    *out = ssl;
    return ERR_OK;
}

static enum err read_protocol(const struct tls_context *context, const SSL *ssl,
                              enum tls_protocol *out, struct error *e)
{
    const unsigned char *name = NULL;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl, &name, &size);
    bool is_link = size == strlen(TLS_ALPN_LINK) && memcmp(name, TLS_ALPN_LINK, size) == 0;
    if (!context->is_server && is_link != (context->protocol == TLS_PROTOCOL_LINK))
        return err_set(e, ERR_INVALID, "the server does not speak %s on this port",
                       is_link ? TLS_ALPN_HTTP : TLS_ALPN_LINK);
    *out = is_link ? TLS_PROTOCOL_LINK : TLS_PROTOCOL_HTTP;
    return ERR_OK;
}

enum err tls_peer_read(struct tls_context *context, SSL *ssl, struct tls_peer *out, struct error *e)
{
    struct tls_peer peer = { .is_resumed = SSL_session_reused(ssl) == 1 };
    enum err rc = read_protocol(context, ssl, &peer.protocol, e);
    if (rc != ERR_OK)
        return rc;
    X509 *certificate = SSL_get0_peer_certificate(ssl);
    if (certificate != NULL && context->is_server) {
        rc = tls_certificate_info(certificate, &peer.certificate, e);
        if (rc != ERR_OK)
            return rc;
        if (peer.certificate.name[0] == '\0')
            return err_set(e, ERR_DENIED, "the client's certificate names no client");
        peer.has_certificate = true;
        peer.is_expired = context->now(context->now_arg).ns > peer.certificate.not_after.ns;
    }
    *out = peer;
    return ERR_OK;
}
