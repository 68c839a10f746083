/*
 * ca.h - our own certificate authority: keys, requests, server and client certificates,
 * fingerprints.
 *
 * All of it is PEM in and PEM out, and time is a parameter. A client certificate names its holder
 * in CN and as the URI CA_NAME_URI NAME; nothing else of it carries meaning.
 */
#ifndef NET_CA_H
#define NET_CA_H

#include "base/str.h"
#include "base/timepoint.h"

enum ca_key_kind { CA_KEY_P256, CA_KEY_ED25519 }; /* browsers accept P-256 only */
enum {
    CA_FINGERPRINT_BYTES = 32,
    CA_NAME_MAX = 64,
    /* A certificate is valid a little before it was made, for holders whose clocks are behind. */
    CA_SKEW_S = 300
};
#define CA_NAME_URI "urn:berth:"

/* A PKCS#8 private key. `out` is wiped by the caller when done: buf_done does not. */
MUST_CHECK enum err ca_key_new(enum ca_key_kind kind, struct buf *out, struct error *e);

/* A request that proves possession of the key. */
MUST_CHECK enum err ca_request_new(struct str key_pem, struct str name, struct buf *out,
                                   struct error *e);

/* A self-signed authority of path length 0. */
struct ca_options {
    struct str name; /* CN, shown to people */
    struct wall now;
    int64_t lifetime_s;
};
MUST_CHECK enum err ca_certificate_new(struct str key_pem, const struct ca_options *options,
                                       struct buf *out, struct error *e);

struct ca; /* key and certificate, parsed */
MUST_CHECK enum err ca_load(struct str certificate_pem, struct str key_pem, struct ca **out,
                            struct error *e);
void ca_free(struct ca *ca);
DEFINE_CLEANUP(ca, struct ca *, ca_free)

/* For a request (CERTIFICATE REQUEST) or a public or private key, as its PEM header says. */
struct ca_server_options {
    const struct str *names; /* DNS names and IP addresses; wildcards are refused */
    size_t name_count;
    struct wall now;
    int64_t lifetime_s;
};
MUST_CHECK enum err ca_issue_server(const struct ca *ca, struct str subject_pem,
                                    const struct ca_server_options *options, struct buf *out,
                                    struct error *e);

struct ca_client_options {
    struct str name; /* letters, digits, '.', '_', '-'; the name inside a request is ignored */
    struct wall now;
    int64_t lifetime_s;
};
MUST_CHECK enum err ca_issue_client(const struct ca *ca, struct str subject_pem,
                                    const struct ca_client_options *options, struct buf *out,
                                    struct error *e);

/* What a certificate says; whether to believe it is for who verified it. */
struct ca_certificate_info {
    char name[CA_NAME_MAX + 1];                    /* "" when it carries no CA_NAME_URI */
    uint8_t fingerprint[CA_FINGERPRINT_BYTES];     /* SHA-256 of the DER */
    uint8_t key_fingerprint[CA_FINGERPRINT_BYTES]; /* as ca_key_fingerprint() */
    struct wall not_before;
    struct wall not_after;
};
MUST_CHECK enum err ca_certificate_read(struct str pem, struct ca_certificate_info *out,
                                        struct error *e);

/* SHA-256 of the public key of a request, certificate or key: the same for all three. */
MUST_CHECK enum err ca_key_fingerprint(struct str pem, uint8_t out[CA_FINGERPRINT_BYTES],
                                       struct error *e);

#endif
