/* tls_fixture.h - an authority with a server's and a client's certificate, made afresh
 * for a test. */
#ifndef TESTS_UNIT_NET_TLS_FIXTURE_H
#define TESTS_UNIT_NET_TLS_FIXTURE_H

#include "net/ca.h"
#include "net/tls.h"
#include "net_fixture.h"
#include "os/fd.h"

struct identity {
    struct buf key;
    struct buf certificate;
};

struct tls_fixture {
    struct buf ca_key;
    struct buf ca_certificate;
    struct ca *ca;
    struct identity server; /* localhost, 127.0.0.1 */
    struct identity client; /* nod_1 */
};

static inline void identity_done(struct identity *identity)
{
    buf_done(&identity->key);
    buf_done(&identity->certificate);
}

static inline void make_ca(struct buf *key, struct buf *certificate)
{
    struct error e;
    struct ca_options options = { STR("Test CA"), clock_wall(), 3600 };
    CHECK_OK("key", ca_key_new(CA_KEY_P256, key, &e), &e);
    CHECK_OK("ca", ca_certificate_new(buf_str(key), &options, certificate, &e), &e);
}

static inline void issue_client(const struct ca *ca, const char *name, struct wall now,
                                int64_t lifetime_s, struct identity *out)
{
    struct error e;
    AUTO(buf) struct buf request = { 0 };
    CHECK_OK("key", ca_key_new(CA_KEY_ED25519, &out->key, &e), &e);
    CHECK_OK("request", ca_request_new(buf_str(&out->key), STR("someone"), &request, &e), &e);
    struct ca_client_options options = { str_of(name), now, lifetime_s };
    CHECK_OK("issue", ca_issue_client(ca, buf_str(&request), &options, &out->certificate, &e), &e);
}

static inline void issue_server(const struct ca *ca, struct str name, struct wall now,
                                int64_t lifetime_s, struct identity *out)
{
    struct error e;
    struct str names[] = { name, STR("127.0.0.1") };
    struct ca_server_options options = { names, COUNT_OF(names), now, lifetime_s };
    CHECK_OK("key", ca_key_new(CA_KEY_P256, &out->key, &e), &e);
    CHECK_OK("issue", ca_issue_server(ca, buf_str(&out->key), &options, &out->certificate, &e), &e);
}

static inline struct tls_fixture *tls_fixture_new(void)
{
    struct error e;
    struct tls_fixture *fixture = mem_new(1, sizeof(*fixture));
    make_ca(&fixture->ca_key, &fixture->ca_certificate);
    CHECK_OK(
        "load",
        ca_load(buf_str(&fixture->ca_certificate), buf_str(&fixture->ca_key), &fixture->ca, &e),
        &e);
    issue_server(fixture->ca, STR("localhost"), clock_wall(), 3600, &fixture->server);
    issue_client(fixture->ca, "nod_1", clock_wall(), 3600, &fixture->client);
    return fixture;
}

static inline void tls_fixture_free(struct tls_fixture *fixture)
{
    buf_done(&fixture->ca_key);
    buf_done(&fixture->ca_certificate);
    ca_free(fixture->ca);
    identity_done(&fixture->server);
    identity_done(&fixture->client);
    mem_free(fixture);
}

static inline struct tls_context *server_context(const struct tls_fixture *fixture,
                                                 const struct tls_ticket_key *keys)
{
    struct error e;
    struct tls_context *context = NULL;
    struct tls_server_options options = {
        .certificate_pem = buf_str(&fixture->server.certificate),
        .key_pem = buf_str(&fixture->server.key),
        .client_ca_pem = buf_str(&fixture->ca_certificate),
        .ticket_keys = keys,
        .ticket_key_count = keys != NULL ? 1 : 0,
    };
    CHECK_OK("server context", tls_server_new(&options, &context, &e), &e);
    return context;
}

/* `client` NULL: without a certificate. */
static inline struct tls_context *client_context(const struct buf *ca_certificate,
                                                 const struct identity *client,
                                                 enum tls_protocol protocol)
{
    struct error e;
    struct tls_context *context = NULL;
    struct tls_client_options options = {
        .ca_pem = buf_str(ca_certificate),
        .protocol = protocol,
    };
    if (client != NULL) {
        options.certificate_pem = buf_str(&client->certificate);
        options.key_pem = buf_str(&client->key);
    }
    CHECK_OK("client context", tls_client_new(&options, &context, &e), &e);
    return context;
}

#endif
