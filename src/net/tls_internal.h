/* tls_internal.h - OpenSSL as conn.c, ca.c and http_client.c share it. Not for other folders. */
#ifndef NET_TLS_INTERNAL_H
#define NET_TLS_INTERNAL_H

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/ca.h"
#include "net/tls.h"

DEFINE_CLEANUP(bio, BIO *, BIO_free_all)
DEFINE_CLEANUP(x509, X509 *, X509_free)
DEFINE_CLEANUP(pkey, EVP_PKEY *, EVP_PKEY_free)

/* Puts OpenSSL's last reason behind the text, and empties its queue of errors. */
enum err tls_fail(struct error *e, enum err code, const char *fmt, ...) PRINTF(3, 4);
/* That reason alone; static text. */
const char *tls_reason(void);

/* The next PEM object of a BIO; never asks for a pass phrase. NULL: none, or broken. */
X509 *tls_read_certificate(BIO *bio);
EVP_PKEY *tls_read_key(BIO *bio);
BIO *tls_bio(struct str bytes); /* read-only view; an empty one when there are none */

/* What ca_certificate_read reads out of PEM. */
MUST_CHECK enum err tls_certificate_info(X509 *certificate, struct ca_certificate_info *out,
                                         struct error *e);
MUST_CHECK enum err tls_fingerprint(const X509 *certificate, uint8_t out[CA_FINGERPRINT_BYTES],
                                    struct error *e);

void tls_context_ref(struct tls_context *context);

/* One end over a connected descriptor, ready for SSL_do_handshake. `name`: clients only. */
MUST_CHECK enum err tls_attach(struct tls_context *context, int fd, const char *name, SSL **out,
                               struct error *e);

/* After the handshake. */
struct tls_peer {
    enum tls_protocol protocol;
    bool is_resumed;
    bool has_certificate;
    bool is_expired;
    struct ca_certificate_info certificate;
};
MUST_CHECK enum err tls_peer_read(struct tls_context *context, SSL *ssl, struct tls_peer *out,
                                  struct error *e);

#endif
