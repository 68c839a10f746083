/*
 * tls.h - who we are and whom we trust, for both ends of a TLS connection.
 *
 * Servers speak TLS 1.2 and 1.3 with forward secrecy and AEAD only for http/1.1, and 1.3 only for
 * berth-link/1; no renegotiation, compression or early data. Clients trust the pinned CA only,
 * never the system's. PEM comes as bytes: the caller reads the files.
 */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/str.h"
#include "base/timepoint.h"

struct tls_context; /* counted: connections keep it alive */

enum tls_protocol { TLS_PROTOCOL_HTTP, TLS_PROTOCOL_LINK };
#define TLS_ALPN_HTTP "http/1.1"
#define TLS_ALPN_LINK "berth-link/1"

/* Encrypts session tickets. Durable keys let sessions outlive a restart of the server. */
enum { TLS_TICKET_KEY_BYTES = 80, TLS_TICKET_KEYS_MAX = 4 };
struct tls_ticket_key {
    uint8_t bytes[TLS_TICKET_KEY_BYTES]; /* 16 name, 32 AES-256, 32 HMAC: all random */
};

struct tls_server_options {
    struct str certificate_pem; /* chain, leaf first */
    struct str key_pem;
    struct str client_ca_pem;                 /* empty: client certificates are not asked for */
    bool is_client_required;                  /* refuse clients without a certificate */
    const struct tls_ticket_key *ticket_keys; /* the first encrypts, all decrypt; none: ephemeral */
    size_t ticket_key_count;
    int64_t session_lifetime_s;    /* 0: a day */
    struct wall (*now)(void *arg); /* judges client certificates; NULL: clock_wall */
    void *now_arg;                 /* borrowed */
};

MUST_CHECK enum err tls_server_new(const struct tls_server_options *options,
                                   struct tls_context **out, struct error *e);
/* Another certificate and key for connections to come; what cannot be used changes nothing. */
MUST_CHECK enum err tls_server_set_identity(struct tls_context *context, struct str certificate_pem,
                                            struct str key_pem, struct error *e);
/* Rotates the keys of a running server. */
MUST_CHECK enum err tls_server_set_ticket_keys(struct tls_context *context,
                                               const struct tls_ticket_key *keys, size_t count,
                                               struct error *e);
void tls_ticket_key_random(struct tls_ticket_key *out);

struct tls_client_options {
    struct str ca_pem;  /* trust anchors; or */
    const uint8_t *pin; /* SHA-256 of the server's certificate or of a CA it sends, 32 bytes */
    struct str certificate_pem; /* ours, optional */
    struct str key_pem;
    enum tls_protocol protocol;
    bool ignores_time; /* our clock may be wrong: validity periods are not judged */
};

/* Remembers the last session, so that the next connection resumes it. */
MUST_CHECK enum err tls_client_new(const struct tls_client_options *options,
                                   struct tls_context **out, struct error *e);

void tls_context_free(struct tls_context *context); /* NULL is a no-op */
DEFINE_CLEANUP(tls_context, struct tls_context *, tls_context_free)

#endif
