#include "net/ca.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "net/tls_internal.h"
#include "os/random.h"

enum { SERIAL_BYTES = 16, RSA_BITS_MIN = 2048, DNS_NAME_MAX = 253 };

struct ca {
    X509 *certificate; /* owned */
    EVP_PKEY *key;     /* owned */
};

DEFINE_CLEANUP(x509_req, X509_REQ *, X509_REQ_free)
DEFINE_CLEANUP(x509_name, X509_NAME *, X509_NAME_free)
DEFINE_CLEANUP(general_names, GENERAL_NAMES *, GENERAL_NAMES_free)

static void bio_to_buf(BIO *bio, struct buf *out)
{
    char *bytes = NULL;
    long size = BIO_get_mem_data(bio, &bytes);
    buf_add(out, bytes, (size_t)size);
}

/* --- Keys and requests. --- */

enum err ca_key_new(enum ca_key_kind kind, struct buf *out, struct error *e)
{
    AUTO(pkey)
    EVP_PKEY *key =
        kind == CA_KEY_P256 ? EVP_EC_gen("P-256") : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    AUTO(bio) BIO *bio = BIO_new(BIO_s_secmem());
    if (key == NULL || bio == NULL ||
        PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return tls_fail(e, ERR_UNAVAILABLE, "make a key");
    bio_to_buf(bio, out);
    return ERR_OK;
}

/* Ed25519 brings its own digest. */
static const EVP_MD *digest_for(const EVP_PKEY *key)
{
    return EVP_PKEY_is_a(key, "ED25519") == 1 ? NULL : EVP_sha256();
}

static enum err load_key(struct str pem, EVP_PKEY **out, struct error *e)
{
    AUTO(bio) BIO *bio = tls_bio(pem);
    EVP_PKEY *key = tls_read_key(bio);
    if (key == NULL)
        return tls_fail(e, ERR_INVALID, "private key");
    *out = key;
    return ERR_OK;
}

static enum err name_new(struct str common_name, X509_NAME **out, struct error *e)
{
    AUTO(x509_name) X509_NAME *name = X509_NAME_new();
    if (name == NULL || common_name.size == 0 || common_name.size > CA_NAME_MAX ||
        !str_is_text(common_name) ||
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                   (const unsigned char *)common_name.data, (int)common_name.size,
                                   -1, 0) != 1)
        return err_set(e, ERR_INVALID, "a certificate's name has 1 to %d bytes of text",
                       CA_NAME_MAX);
    *out = TAKE(name);
    return ERR_OK;
}

enum err ca_request_new(struct str key_pem, struct str common_name, struct buf *out,
                        struct error *e)
{
    AUTO(pkey) EVP_PKEY *key = NULL;
    AUTO(x509_name) X509_NAME *name = NULL;
    enum err rc = load_key(key_pem, &key, e);
    if (rc == ERR_OK)
        rc = name_new(common_name, &name, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(x509_req) X509_REQ *request = X509_REQ_new();
    AUTO(bio) BIO *bio = BIO_new(BIO_s_mem());
    if (request == NULL || bio == NULL || X509_REQ_set_subject_name(request, name) != 1 ||
        X509_REQ_set_pubkey(request, key) != 1 ||
        X509_REQ_sign(request, key, digest_for(key)) <= 0 ||
        PEM_write_bio_X509_REQ(bio, request) != 1)
        return tls_fail(e, ERR_INVALID, "make a certificate request");
    bio_to_buf(bio, out);
    return ERR_OK;
}

static bool is_strong(const EVP_PKEY *key)
{
    if (EVP_PKEY_is_a(key, "ED25519") == 1)
        return true;
    if (EVP_PKEY_is_a(key, "RSA") == 1)
        return EVP_PKEY_get_bits(key) >= RSA_BITS_MIN;
    char group[32] = "";
    return EVP_PKEY_is_a(key, "EC") == 1 &&
           EVP_PKEY_get_group_name(key, group, sizeof(group), NULL) == 1 &&
           (strcmp(group, "prime256v1") == 0 || strcmp(group, "secp384r1") == 0);
}

static EVP_PKEY *key_of_request(BIO *bio)
{
    AUTO(x509_req) X509_REQ *request = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
    EVP_PKEY *key = request != NULL ? X509_REQ_get0_pubkey(request) : NULL;
    /* Whoever asks must hold the private half. */
    if (key == NULL || X509_REQ_verify(request, key) != 1 || EVP_PKEY_up_ref(key) != 1)
        return NULL;
    return key;
}

static EVP_PKEY *key_of_certificate(BIO *bio)
{
    AUTO(x509) X509 *certificate = tls_read_certificate(bio);
    return certificate != NULL ? X509_get_pubkey(certificate) : NULL;
}

static EVP_PKEY *key_of_public(BIO *bio)
{
    return PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
}

/* The public key in whatever the PEM holds. */
static enum err subject_key(struct str pem, EVP_PKEY **out, struct error *e)
{
    static const struct {
        const char *header;
        EVP_PKEY *(*read)(BIO *bio);
    } kinds[] = {
        { "-----BEGIN CERTIFICATE REQUEST-----", key_of_request },
        { "-----BEGIN CERTIFICATE-----", key_of_certificate },
        { "-----BEGIN PUBLIC KEY-----", key_of_public },
        { "-----BEGIN PRIVATE KEY-----", tls_read_key },
    };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (!str_starts(pem, str_of(kinds[i].header)))
            continue;
        AUTO(bio) BIO *bio = tls_bio(pem);
        AUTO(pkey) EVP_PKEY *key = kinds[i].read(bio);
        if (key == NULL)
            return tls_fail(e, ERR_INVALID, "the request or key cannot be read or verified");
        if (!is_strong(key))
            return err_set(e, ERR_INVALID,
                           "the key is not Ed25519, P-256, P-384 or RSA of at least %d bits",
                           RSA_BITS_MIN);
        *out = TAKE(key);
        return ERR_OK;
    }
    return err_set(e, ERR_INVALID, "neither a certificate request nor a key in PEM");
}

/* --- Certificates. --- */

static bool add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool is_added = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return is_added;
}

static bool set_serial(X509 *certificate)
{
    uint8_t bytes[SERIAL_BYTES];
    random_bytes(bytes, sizeof(bytes));
    bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 0x40); /* positive, and always of full length */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool is_set =
        number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return is_set;
}

static bool set_validity(X509 *certificate, struct wall now, int64_t lifetime_s)
{
    time_t from = (time_t)(now.ns / NS_PER_S - CA_SKEW_S);
    time_t to = (time_t)(now.ns / NS_PER_S + lifetime_s);
    return lifetime_s > 0 && ASN1_TIME_set(X509_getm_notBefore(certificate), from) != NULL &&
           ASN1_TIME_set(X509_getm_notAfter(certificate), to) != NULL;
}

/* Subject, key, validity and serial number; extensions and signature are still missing. */
static X509 *certificate_new(X509_NAME *subject, EVP_PKEY *key, struct wall now, int64_t lifetime_s)
{
    AUTO(x509) X509 *certificate = X509_new();
    if (certificate == NULL || X509_set_version(certificate, X509_VERSION_3) != 1 ||
        !set_serial(certificate) || !set_validity(certificate, now, lifetime_s) ||
        X509_set_subject_name(certificate, subject) != 1 || X509_set_pubkey(certificate, key) != 1)
        return NULL;
    return TAKE(certificate);
}

static enum err sign_and_write(X509 *certificate, EVP_PKEY *issuer_key, struct buf *out,
                               struct error *e)
{
    AUTO(bio) BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL || X509_sign(certificate, issuer_key, digest_for(issuer_key)) <= 0 ||
        PEM_write_bio_X509(bio, certificate) != 1)
        return tls_fail(e, ERR_INVALID, "sign a certificate");
    bio_to_buf(bio, out);
    return ERR_OK;
}

enum err ca_certificate_new(struct str key_pem, const struct ca_options *options, struct buf *out,
                            struct error *e)
{
    AUTO(pkey) EVP_PKEY *key = NULL;
    AUTO(x509_name) X509_NAME *name = NULL;
    enum err rc = load_key(key_pem, &key, e);
    if (rc == ERR_OK)
        rc = name_new(options->name, &name, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(x509) X509 *certificate = certificate_new(name, key, options->now, options->lifetime_s);
    if (certificate == NULL || X509_set_issuer_name(certificate, name) != 1 ||
        !add_extension(certificate, certificate, NID_basic_constraints,
                       "critical,CA:TRUE,pathlen:0") ||
        !add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(certificate, certificate, NID_subject_key_identifier, "hash"))
        return tls_fail(e, ERR_INVALID, "make the CA's certificate");
    return sign_and_write(certificate, key, out, e);
}

enum err ca_load(struct str certificate_pem, struct str key_pem, struct ca **out, struct error *e)
{
    AUTO(pkey) EVP_PKEY *key = NULL;
    enum err rc = load_key(key_pem, &key, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(bio) BIO *bio = tls_bio(certificate_pem);
    AUTO(x509) X509 *certificate = tls_read_certificate(bio);
    if (certificate == NULL)
        return tls_fail(e, ERR_INVALID, "the CA's certificate");
    if (X509_check_ca(certificate) != 1)
        return err_set(e, ERR_INVALID, "the certificate is not that of a CA");
    if (X509_check_private_key(certificate, key) != 1)
        return tls_fail(e, ERR_INVALID, "the private key does not belong to the CA's certificate");
    struct ca *ca = mem_new(1, sizeof(*ca));
    *ca = (struct ca){ TAKE(certificate), TAKE(key) };
    *out = ca;
    return ERR_OK;
}

void ca_free(struct ca *ca)
{
    if (ca == NULL)
        return;
    X509_free(ca->certificate);
    EVP_PKEY_free(ca->key);
    mem_free(ca);
}

struct leaf {
    struct str common_name;
    GENERAL_NAMES *names; /* borrowed */
    const char *usage;
    struct wall now;
    int64_t lifetime_s;
};

static enum err issue(const struct ca *ca, struct str subject_pem, const struct leaf *leaf,
                      struct buf *out, struct error *e)
{
    AUTO(pkey) EVP_PKEY *key = NULL;
    AUTO(x509_name) X509_NAME *name = NULL;
    enum err rc = subject_key(subject_pem, &key, e);
    if (rc == ERR_OK)
        rc = name_new(leaf->common_name, &name, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(x509) X509 *certificate = certificate_new(name, key, leaf->now, leaf->lifetime_s);
    if (certificate == NULL ||
        X509_set_issuer_name(certificate, X509_get_subject_name(ca->certificate)) != 1 ||
        !add_extension(certificate, ca->certificate, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(certificate, ca->certificate, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(certificate, ca->certificate, NID_ext_key_usage, leaf->usage) ||
        !add_extension(certificate, ca->certificate, NID_subject_key_identifier, "hash") ||
        !add_extension(certificate, ca->certificate, NID_authority_key_identifier, "keyid") ||
        X509_add1_ext_i2d(certificate, NID_subject_alt_name, leaf->names, 0, 0) != 1)
        return tls_fail(e, ERR_INVALID, "make a certificate");
    return sign_and_write(certificate, ca->key, out, e);
}

static bool add_string_name(GENERAL_NAMES *names, int type, struct str text)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *value = ASN1_IA5STRING_new();
    if (name == NULL || value == NULL || ASN1_STRING_set(value, text.data, (int)text.size) != 1 ||
        sk_GENERAL_NAME_push(names, name) <= 0) {
        GENERAL_NAME_free(name);
        ASN1_IA5STRING_free(value);
        return false;
    }
    GENERAL_NAME_set0_value(name, type, value);
    return true;
}

static bool add_address_name(GENERAL_NAMES *names, const char *text)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_OCTET_STRING *value = a2i_IPADDRESS(text);
    if (name == NULL || value == NULL || sk_GENERAL_NAME_push(names, name) <= 0) {
        GENERAL_NAME_free(name);
        ASN1_OCTET_STRING_free(value);
        return false;
    }
    GENERAL_NAME_set0_value(name, GEN_IPADD, value);
    return true;
}

static bool is_word(struct str text, const char *punctuation)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_plain && (c == '\0' || strchr(punctuation, c) == NULL))
            return false;
    }
    return text.size > 0;
}

static enum err add_server_name(GENERAL_NAMES *names, struct str text, struct error *e)
{
    char name[DNS_NAME_MAX + 1];
    if (text.size == 0 || text.size > DNS_NAME_MAX || !is_word(text, ".-:"))
        return err_set(e, ERR_INVALID, "\"%.*s\" is neither a host name nor an address",
                       STR_ARG(text));
    memcpy(name, text.data, text.size);
    name[text.size] = '\0';
    uint8_t address[sizeof(struct in6_addr)];
    bool is_address =
        inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
    if (!is_address && strchr(name, ':') != NULL)
        return err_set(e, ERR_INVALID, "\"%s\" is neither a host name nor an address", name);
    if (is_address ? !add_address_name(names, name) : !add_string_name(names, GEN_DNS, text))
        return tls_fail(e, ERR_INVALID, "name %s", name);
    return ERR_OK;
}

enum err ca_issue_server(const struct ca *ca, struct str subject_pem,
                         const struct ca_server_options *options, struct buf *out, struct error *e)
{
    if (options->name_count == 0)
        return err_set(e, ERR_INVALID, "a server's certificate needs a host name or an address");
    AUTO(general_names) GENERAL_NAMES *names = GENERAL_NAMES_new();
    assert(names != NULL);
    for (size_t i = 0; i < options->name_count; i++) {
        enum err rc = add_server_name(names, options->names[i], e);
        if (rc != ERR_OK)
            return rc;
    }
    struct str first = options->names[0];
    first.size = MIN_OF(first.size, (size_t)CA_NAME_MAX);
    struct leaf leaf = { first, names, "serverAuth", options->now, options->lifetime_s };
    return issue(ca, subject_pem, &leaf, out, e);
}

enum err ca_issue_client(const struct ca *ca, struct str subject_pem,
                         const struct ca_client_options *options, struct buf *out, struct error *e)
{
    if (options->name.size > CA_NAME_MAX || !is_word(options->name, "._-"))
        return err_set(e, ERR_INVALID,
                       "a client's name has 1 to %d letters, digits, dots, dashes or underscores",
                       CA_NAME_MAX);
    AUTO(general_names) GENERAL_NAMES *names = GENERAL_NAMES_new();
    assert(names != NULL);
    char uri[sizeof(CA_NAME_URI) + CA_NAME_MAX];
    size_t prefix = sizeof(CA_NAME_URI) - 1;
    memcpy(uri, CA_NAME_URI, prefix);
    memcpy(uri + prefix, options->name.data, options->name.size);
    if (!add_string_name(names, GEN_URI, (struct str){ uri, prefix + options->name.size }))
        return tls_fail(e, ERR_INVALID, "name of a client");
    struct leaf leaf = { options->name, names, "clientAuth", options->now, options->lifetime_s };
    return issue(ca, subject_pem, &leaf, out, e);
}

/* --- Reading. --- */

enum err tls_fingerprint(const X509 *certificate, uint8_t out[CA_FINGERPRINT_BYTES],
                         struct error *e)
{
    unsigned size = 0;
    uint8_t digest[EVP_MAX_MD_SIZE];
    if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1 || size != CA_FINGERPRINT_BYTES)
        return tls_fail(e, ERR_INVALID, "fingerprint of a certificate");
    memcpy(out, digest, CA_FINGERPRINT_BYTES);
    return ERR_OK;
}

static bool read_time(const ASN1_TIME *time, struct wall *out)
{
    struct tm parts = { 0 };
    if (ASN1_TIME_to_tm(time, &parts) != 1)
        return false;
    *out = (struct wall){ (int64_t)timegm(&parts) * NS_PER_S };
    return true;
}

/* Exactly one URI of our form, or no name at all: two names would be one too many to trust. */
static void read_name(X509 *certificate, char out[CA_NAME_MAX + 1])
{
    AUTO(general_names)
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    if (names == NULL || sk_GENERAL_NAME_num(names) != 1)
        return;
    int type = 0;
    const ASN1_IA5STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), &type);
    if (type != GEN_URI)
        return;
    struct str uri = { (const char *)ASN1_STRING_get0_data(value),
                       (size_t)ASN1_STRING_length(value) };
    if (!str_starts(uri, STR(CA_NAME_URI)))
        return;
    struct str name = { uri.data + sizeof(CA_NAME_URI) - 1, uri.size - sizeof(CA_NAME_URI) + 1 };
    if (name.size > CA_NAME_MAX || !is_word(name, "._-"))
        return;
    memcpy(out, name.data, name.size);
    out[name.size] = '\0';
}

static enum err key_fingerprint(const EVP_PKEY *key, uint8_t out[CA_FINGERPRINT_BYTES],
                                struct error *e)
{
    unsigned char *der = NULL;
    int size = i2d_PUBKEY(key, &der);
    if (size <= 0)
        return tls_fail(e, ERR_INVALID, "public key");
    int is_hashed = EVP_Digest(der, (size_t)size, out, NULL, EVP_sha256(), NULL);
    OPENSSL_free(der);
    return is_hashed == 1 ? ERR_OK : tls_fail(e, ERR_INVALID, "fingerprint of a key");
}

enum err tls_certificate_info(X509 *certificate, struct ca_certificate_info *out, struct error *e)
{
    struct ca_certificate_info info = { 0 };
    enum err rc = tls_fingerprint(certificate, info.fingerprint, e);
    if (rc == ERR_OK)
        rc = key_fingerprint(X509_get0_pubkey(certificate), info.key_fingerprint, e);
    if (rc != ERR_OK)
        return rc;
    if (!read_time(X509_get0_notBefore(certificate), &info.not_before) ||
        !read_time(X509_get0_notAfter(certificate), &info.not_after))
        return tls_fail(e, ERR_INVALID, "validity of a certificate");
    read_name(certificate, info.name);
    ERR_clear_error();
    *out = info;
    return ERR_OK;
}

enum err ca_certificate_read(struct str pem, struct ca_certificate_info *out, struct error *e)
{
    AUTO(bio) BIO *bio = tls_bio(pem);
    AUTO(x509) X509 *certificate = tls_read_certificate(bio);
    if (certificate == NULL)
        return tls_fail(e, ERR_INVALID, "certificate");
    return tls_certificate_info(certificate, out, e);
}

enum err ca_key_fingerprint(struct str pem, uint8_t out[CA_FINGERPRINT_BYTES], struct error *e)
{
    AUTO(pkey) EVP_PKEY *key = NULL;
    enum err rc = subject_key(pem, &key, e);
    return rc != ERR_OK ? rc : key_fingerprint(key, out, e);
}
