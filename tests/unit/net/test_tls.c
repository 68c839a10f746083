#include <openssl/ssl.h>

#include "net/conn.h"
#include "tls_fixture.h"

static struct loop *loop;
static struct tls_fixture *pki;

/* Both ends of the last connection, as their owners saw them. */
struct end {
    struct conn *conn;
    struct conn_peer peer;
    enum tls_protocol protocol;
    bool is_open;
    bool is_closed;
    char why[256];
    struct buf received;
};

static struct end server_end;
static struct end client_end;

static void on_open(struct conn *conn, void *arg)
{
    struct end *end = arg;
    end->conn = conn;
    end->is_open = true;
    end->peer = *conn_peer(conn);
    end->protocol = conn_protocol(conn);
}

static size_t on_data(struct conn *conn, struct str data, void *arg)
{
    struct end *end = arg;
    (void)conn;
    buf_add_str(&end->received, data);
    return data.size;
}

static void on_close(struct conn *conn, const char *why, void *arg)
{
    struct end *end = arg;
    (void)conn;
    end->is_closed = true;
    end->conn = NULL;
    (void)snprintf(end->why, sizeof(end->why), "%s", why);
}

static const struct conn_events events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_close = on_close,
};

static void on_accept(struct conn *conn, void *arg)
{
    conn_set_events(conn, &events, arg);
    on_open(conn, arg);
    /* A client of TLS 1.3 believes itself connected before its certificate was judged. */
    conn_send_always(conn, "hello", 5);
}

static int set_up(void **state)
{
    (void)state;
    struct error e;
    CHECK_OK("loop", loop_new(&loop, &e), &e);
    pki = tls_fixture_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_done(&server_end.received);
    buf_done(&client_end.received);
    loop_free(loop);
    tls_fixture_free(pki);
    return 0;
}

static struct listener *open_listener(struct tls_context *context)
{
    struct error e;
    struct listener *listener = NULL;
    struct listener_options options = {
        .address = "127.0.0.1",
        .tls = context,
        .on_accept = on_accept,
        .arg = &server_end,
        .handshake_timeout_ms = 500,
    };
    CHECK_OK("listen", listener_open(loop, &options, &listener, &e), &e);
    return listener;
}

static void reset_ends(void)
{
    buf_done(&server_end.received);
    buf_done(&client_end.received);
    server_end = (struct end){ 0 };
    client_end = (struct end){ 0 };
}

/* True when the client got the server's greeting. Both ends are closed again. */
static bool try_connect(struct listener *listener, struct tls_context *client, const char *name)
{
    reset_ends();
    struct conn_dial_options options = {
        .host = "127.0.0.1",
        .port = listener_port(listener),
        .tls = client,
        .tls_name = name,
    };
    client_end.conn = conn_dial(loop, &options, &events, &client_end);
    TURN_UNTIL(loop, client_end.is_closed || client_end.received.size == 5);
    bool is_greeted = !client_end.is_closed;
    if (is_greeted)
        conn_finish(client_end.conn);
    TURN_UNTIL(loop, client_end.is_closed && listener_conn_count(listener) == 0);
    return is_greeted;
}

static void test_mutual(void **state)
{
    (void)state;
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    AUTO(tls_context)
    struct tls_context *client =
        client_context(&pki->ca_certificate, &pki->client, TLS_PROTOCOL_LINK);
    struct listener *listener = open_listener(server);
    CHECK("connects", try_connect(listener, client, "localhost"));
    CHECK("protocol", server_end.protocol == TLS_PROTOCOL_LINK);
    CHECK("the certificate's name, not the request's", strcmp(server_end.peer.name, "nod_1") == 0);
    CHECK("peer", server_end.peer.has_certificate && !server_end.peer.is_expired);
    struct ca_certificate_info info;
    struct error e;
    CHECK_OK("read", ca_certificate_read(buf_str(&pki->client.certificate), &info, &e), &e);
    CHECK("fingerprint of its key", memcmp(info.key_fingerprint, server_end.peer.key_fingerprint,
                                           sizeof(info.key_fingerprint)) == 0);
    CHECK("its time", server_end.peer.not_after.ns == info.not_after.ns &&
                          server_end.peer.issued.ns - CA_SKEW_S * NS_PER_S == info.not_before.ns);
    CHECK("by address", try_connect(listener, client, "127.0.0.1"));
    listener_close(listener);
}

static void test_without_client_certificate(void **state)
{
    (void)state;
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    AUTO(tls_context)
    struct tls_context *client = client_context(&pki->ca_certificate, NULL, TLS_PROTOCOL_HTTP);
    struct listener *listener = open_listener(server);
    CHECK("connects", try_connect(listener, client, "localhost"));
    CHECK("is nobody", !server_end.peer.has_certificate && server_end.peer.name[0] == '\0');
    CHECK("protocol", server_end.protocol == TLS_PROTOCOL_HTTP);
    listener_close(listener);

    struct error e;
    struct tls_server_options strict = {
        .certificate_pem = buf_str(&pki->server.certificate),
        .key_pem = buf_str(&pki->server.key),
        .client_ca_pem = buf_str(&pki->ca_certificate),
        .is_client_required = true,
    };
    AUTO(tls_context) struct tls_context *strict_server = NULL;
    CHECK_OK("strict", tls_server_new(&strict, &strict_server, &e), &e);
    listener = open_listener(strict_server);
    CHECK("refused where one is required", !try_connect(listener, client, "localhost"));
    CHECK("the owner never sees it", !server_end.is_open);
    listener_close(listener);
}

static void test_server_refused(void **state)
{
    (void)state;
    AUTO(buf) struct buf other_key = { 0 };
    AUTO(buf) struct buf other_ca = { 0 };
    make_ca(&other_key, &other_ca);
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    AUTO(tls_context)
    struct tls_context *right = client_context(&pki->ca_certificate, NULL, TLS_PROTOCOL_HTTP);
    AUTO(tls_context)
    struct tls_context *wrong = client_context(&other_ca, NULL, TLS_PROTOCOL_HTTP);
    struct listener *listener = open_listener(server);
    CHECK("another CA", !try_connect(listener, wrong, "localhost"));
    CHECK("another name", !try_connect(listener, right, "example.org"));
    CHECK("says why", strstr(client_end.why, "ostname") != NULL);
    CHECK("another address", !try_connect(listener, right, "127.0.0.2"));
    CHECK("the right one", try_connect(listener, right, "localhost"));
    CHECK("a session of one name does not serve another",
          !try_connect(listener, right, "example.org"));
    listener_close(listener);
}

static void test_client_refused(void **state)
{
    (void)state;
    struct identity foreign = { 0 };
    struct identity future = { 0 };
    AUTO(buf) struct buf other_key = { 0 };
    AUTO(buf) struct buf other_certificate = { 0 };
    struct error e;
    make_ca(&other_key, &other_certificate);
    AUTO(ca) struct ca *other = NULL;
    CHECK_OK("other", ca_load(buf_str(&other_certificate), buf_str(&other_key), &other, &e), &e);
    issue_client(other, "nod_1", clock_wall(), 3600, &foreign);
    issue_client(pki->ca, "nod_1", (struct wall){ clock_wall().ns + 3600 * NS_PER_S }, 3600,
                 &future);
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    AUTO(tls_context)
    struct tls_context *of_other =
        client_context(&pki->ca_certificate, &foreign, TLS_PROTOCOL_LINK);
    AUTO(tls_context)
    struct tls_context *too_early =
        client_context(&pki->ca_certificate, &future, TLS_PROTOCOL_LINK);
    AUTO(tls_context)
    struct tls_context *wrong_use =
        client_context(&pki->ca_certificate, &pki->server, TLS_PROTOCOL_LINK);
    struct listener *listener = open_listener(server);
    CHECK("another CA's certificate", !try_connect(listener, of_other, "localhost"));
    CHECK("not yet valid", !try_connect(listener, too_early, "localhost"));
    CHECK("a server's certificate", !try_connect(listener, wrong_use, "localhost"));
    CHECK("the owner saw none of them", !server_end.is_open);
    listener_close(listener);
    identity_done(&foreign);
    identity_done(&future);
}

static void test_expired_client(void **state)
{
    (void)state;
    struct identity old = { 0 };
    issue_client(pki->ca, "nod_2", (struct wall){ clock_wall().ns - 7200 * NS_PER_S }, 60, &old);
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    AUTO(tls_context)
    struct tls_context *client = client_context(&pki->ca_certificate, &old, TLS_PROTOCOL_LINK);
    struct listener *listener = open_listener(server);
    CHECK("connects", try_connect(listener, client, "localhost"));
    CHECK("flagged", server_end.peer.is_expired);
    CHECK("named", strcmp(server_end.peer.name, "nod_2") == 0);
    CHECK("and again by its session", try_connect(listener, client, "localhost"));
    CHECK("resumed", server_end.peer.is_resumed);
    CHECK("still flagged", server_end.peer.is_expired);
    listener_close(listener);
    identity_done(&old);
}

static struct wall in_two_hours(void *arg)
{
    (void)arg;
    return (struct wall){ clock_wall().ns + 7200 * NS_PER_S };
}

static void test_server_clock_judges(void **state)
{
    (void)state;
    /* A long-lived CA, so that only the client's certificate has ended in two hours. */
    AUTO(buf) struct buf key = { 0 };
    AUTO(buf) struct buf certificate = { 0 };
    AUTO(ca) struct ca *ca = NULL;
    struct identity client_identity = { 0 };
    struct error e;
    struct ca_options options = { STR("Long CA"), clock_wall(), 100000 };
    CHECK_OK("key", ca_key_new(CA_KEY_P256, &key, &e), &e);
    CHECK_OK("ca", ca_certificate_new(buf_str(&key), &options, &certificate, &e), &e);
    CHECK_OK("load", ca_load(buf_str(&certificate), buf_str(&key), &ca, &e), &e);
    issue_client(ca, "nod_3", clock_wall(), 3600, &client_identity);
    struct tls_server_options server_options = {
        .certificate_pem = buf_str(&pki->server.certificate),
        .key_pem = buf_str(&pki->server.key),
        .client_ca_pem = buf_str(&certificate),
        .now = in_two_hours,
    };
    AUTO(tls_context) struct tls_context *server = NULL;
    CHECK_OK("server", tls_server_new(&server_options, &server, &e), &e);
    AUTO(tls_context)
    struct tls_context *client =
        client_context(&pki->ca_certificate, &client_identity, TLS_PROTOCOL_LINK);
    struct listener *listener = open_listener(server);
    CHECK("connects", try_connect(listener, client, "localhost"));
    CHECK("expired by the server's clock", server_end.peer.is_expired);
    listener_close(listener);
    identity_done(&client_identity);
}

static void test_client_with_wrong_clock(void **state)
{
    (void)state;
    struct identity old = { 0 };
    struct error e;
    issue_server(pki->ca, STR("localhost"), (struct wall){ clock_wall().ns - 7200 * NS_PER_S }, 60,
                 &old);
    struct tls_server_options server_options = {
        .certificate_pem = buf_str(&old.certificate),
        .key_pem = buf_str(&old.key),
    };
    AUTO(tls_context) struct tls_context *server = NULL;
    CHECK_OK("server", tls_server_new(&server_options, &server, &e), &e);
    struct tls_client_options client_options = {
        .ca_pem = buf_str(&pki->ca_certificate),
        .protocol = TLS_PROTOCOL_LINK,
    };
    AUTO(tls_context) struct tls_context *strict = NULL;
    AUTO(tls_context) struct tls_context *lenient = NULL;
    CHECK_OK("client", tls_client_new(&client_options, &strict, &e), &e);
    client_options.ignores_time = true;
    CHECK_OK("client", tls_client_new(&client_options, &lenient, &e), &e);
    struct listener *listener = open_listener(server);
    CHECK("refused by a client that judges time", !try_connect(listener, strict, "localhost"));
    CHECK("taken by one that does not", try_connect(listener, lenient, "localhost"));
    CHECK("whose trust is not weaker otherwise", !try_connect(listener, lenient, "example.org"));
    listener_close(listener);
    identity_done(&old);
}

static void test_pins(void **state)
{
    (void)state;
    struct ca_certificate_info leaf;
    struct ca_certificate_info ca;
    struct error e;
    CHECK_OK("leaf", ca_certificate_read(buf_str(&pki->server.certificate), &leaf, &e), &e);
    CHECK_OK("ca", ca_certificate_read(buf_str(&pki->ca_certificate), &ca, &e), &e);
    AUTO(buf) struct buf chain = { 0 };
    buf_add_str(&chain, buf_str(&pki->server.certificate));
    buf_add_str(&chain, buf_str(&pki->ca_certificate));
    struct tls_server_options server_options = {
        .certificate_pem = buf_str(&chain),
        .key_pem = buf_str(&pki->server.key),
    };
    AUTO(tls_context) struct tls_context *server = NULL;
    CHECK_OK("server", tls_server_new(&server_options, &server, &e), &e);
    struct listener *listener = open_listener(server);
    uint8_t wrong[CA_FINGERPRINT_BYTES] = { 1 };
    const struct {
        const char *name;
        const uint8_t *pin;
        const char *server_name;
        bool connects;
    } cases[] = {
        { "the server's own certificate", leaf.fingerprint, "localhost", true },
        { "the CA it sends", ca.fingerprint, "localhost", true },
        { "the CA, but another name", ca.fingerprint, "example.org", false },
        { "something else", wrong, "localhost", false },
    };
    FOR_EACH_CASE (c, cases) {
        struct tls_client_options options = { .pin = c->pin };
        AUTO(tls_context) struct tls_context *client = NULL;
        CHECK_OK(c->name, tls_client_new(&options, &client, &e), &e);
        CHECK(c->name, try_connect(listener, client, c->server_name) == c->connects);
    }
    listener_close(listener);
}

static void test_another_identity_while_it_serves(void **state)
{
    (void)state;
    struct identity renewed = { 0 };
    issue_server(pki->ca, STR("renewed.example"), clock_wall(), 3600, &renewed);
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    AUTO(tls_context)
    struct tls_context *client = client_context(&pki->ca_certificate, NULL, TLS_PROTOCOL_LINK);
    struct listener *listener = open_listener(server);
    struct error e;
    CHECK("the first", try_connect(listener, client, "localhost"));
    CHECK("a key of another is refused",
          tls_server_set_identity(server, buf_str(&renewed.certificate), buf_str(&pki->server.key),
                                  &e) == ERR_INVALID);
    AUTO(tls_context)
    struct tls_context *fresh = client_context(&pki->ca_certificate, NULL, TLS_PROTOCOL_LINK);
    CHECK("and changes nothing", try_connect(listener, fresh, "localhost"));
    CHECK_OK(
        "renew",
        tls_server_set_identity(server, buf_str(&renewed.certificate), buf_str(&renewed.key), &e),
        &e);
    AUTO(tls_context)
    struct tls_context *next = client_context(&pki->ca_certificate, NULL, TLS_PROTOCOL_LINK);
    CHECK("the renewed one", try_connect(listener, next, "renewed.example"));
    listener_close(listener);
    identity_done(&renewed);
}

static void test_resumption_over_restart(void **state)
{
    (void)state;
    struct tls_ticket_key keys[2];
    tls_ticket_key_random(&keys[0]);
    tls_ticket_key_random(&keys[1]);
    AUTO(tls_context)
    struct tls_context *client =
        client_context(&pki->ca_certificate, &pki->client, TLS_PROTOCOL_LINK);
    AUTO(tls_context) struct tls_context *first = server_context(pki, &keys[0]);
    struct listener *listener = open_listener(first);
    CHECK("the first time", try_connect(listener, client, "localhost"));
    CHECK("in full", !server_end.peer.is_resumed);
    listener_close(listener);

    AUTO(tls_context) struct tls_context *second = server_context(pki, &keys[0]);
    listener = open_listener(second);
    CHECK("after a restart", try_connect(listener, client, "localhost"));
    CHECK("resumed", server_end.peer.is_resumed);
    CHECK("the same peer", strcmp(server_end.peer.name, "nod_1") == 0);

    struct error e;
    struct tls_ticket_key rotated[] = { keys[1], keys[0] };
    CHECK_OK("rotate", tls_server_set_ticket_keys(second, rotated, 2, &e), &e);
    CHECK("after a rotation", try_connect(listener, client, "localhost"));
    CHECK("resumed by the old key", server_end.peer.is_resumed);
    CHECK_OK("rotate", tls_server_set_ticket_keys(second, &keys[1], 1, &e), &e);
    CHECK("old key gone", try_connect(listener, client, "localhost"));
    CHECK("resumed by the new ticket", server_end.peer.is_resumed);
    listener_close(listener);

    AUTO(tls_context) struct tls_context *third = server_context(pki, &keys[0]);
    listener = open_listener(third);
    CHECK("with other keys", try_connect(listener, client, "localhost"));
    CHECK("in full again", !server_end.peer.is_resumed);
    listener_close(listener);
    CHECK("none and too many keys are refused",
          tls_server_set_ticket_keys(third, keys, 0, NULL) == ERR_INVALID &&
              tls_server_set_ticket_keys(third, keys, TLS_TICKET_KEYS_MAX + 1, NULL) ==
                  ERR_INVALID);
}

/* A plain OpenSSL client, bent in one way; true when the handshake completes. */
static bool probe(struct listener *listener, void (*bend)(SSL *ssl))
{
    reset_ends();
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context, 0);
    SSL *ssl = SSL_new(context);
    bend(ssl);
    int fd = client_connect(listener_port(listener));
    struct error e;
    CHECK_OK("nonblock", fd_set_nonblock(fd, true, &e), &e);
    SSL_set_fd(ssl, fd);
    bool is_done = false;
    bool has_failed = false;
    int64_t end_ms = now_ms() + PATIENCE_MS;
    while (!is_done && !has_failed && now_ms() < end_ms) {
        int rc = SSL_connect(ssl);
        int code = SSL_get_error(ssl, rc);
        is_done = rc == 1;
        has_failed = rc != 1 && code != SSL_ERROR_WANT_READ && code != SSL_ERROR_WANT_WRITE;
        turn(loop, 1);
    }
    CHECK("decided", is_done || has_failed);
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    TURN_UNTIL(loop, listener_conn_count(listener) == 0);
    return is_done;
}

static void set_versions(SSL *ssl, int min, int max)
{
    SSL_set_min_proto_version(ssl, min);
    SSL_set_max_proto_version(ssl, max);
}

static void bend_none(SSL *ssl)
{
    (void)ssl;
}

static void bend_tls12(SSL *ssl)
{
    set_versions(ssl, TLS1_2_VERSION, TLS1_2_VERSION);
}

static void bend_tls11(SSL *ssl)
{
    set_versions(ssl, TLS1_VERSION, TLS1_1_VERSION);
}

static void bend_cbc(SSL *ssl)
{
    bend_tls12(ssl);
    SSL_set_cipher_list(ssl, "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA:AES128-SHA");
}

static void bend_link_on_12(SSL *ssl)
{
    bend_tls12(ssl);
    SSL_set_alpn_protos(ssl, (const unsigned char *)"\x0c" TLS_ALPN_LINK, 13);
}

static void bend_h2(SSL *ssl)
{
    SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2", 3);
}

static void bend_h2_or_http(SSL *ssl)
{
    SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2\x08" TLS_ALPN_HTTP, 12);
}

static void test_versions_and_ciphers(void **state)
{
    (void)state;
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    struct listener *listener = open_listener(server);
    const struct {
        const char *name;
        void (*bend)(SSL *ssl);
        bool connects;
    } cases[] = {
        { "TLS 1.3", bend_none, true },
        { "TLS 1.2 for HTTP", bend_tls12, true },
        { "TLS 1.1", bend_tls11, false },
        { "a cipher without AEAD", bend_cbc, false },
        { "berth-link/1 over TLS 1.2", bend_link_on_12, false },
        { "only h2", bend_h2, false },
        { "h2 or http/1.1", bend_h2_or_http, true },
    };
    FOR_EACH_CASE (c, cases)
        CHECK(c->name, probe(listener, c->bend) == c->connects);
    listener_close(listener);
}

static void test_not_tls_at_all(void **state)
{
    (void)state;
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    struct listener *listener = open_listener(server);
    AUTO(buf) struct buf answer = { 0 };
    int fd = client_connect(listener_port(listener));
    CHECK("sent", client_send(loop, fd, "GET / HTTP/1.1\r\n\r\n", 18));
    CHECK("closed", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    close(fd);
    fd = client_connect(listener_port(listener));
    CHECK("silence is ended by the handshake's deadline",
          client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    close(fd);
    TURN_UNTIL(loop, listener_conn_count(listener) == 0);
    listener_close(listener);
}

static void test_bulk_both_ways(void **state)
{
    (void)state;
    reset_ends();
    AUTO(tls_context) struct tls_context *server = server_context(pki, NULL);
    AUTO(tls_context)
    struct tls_context *client = client_context(&pki->ca_certificate, NULL, TLS_PROTOCOL_LINK);
    struct listener *listener = open_listener(server);
    struct conn_dial_options options = {
        .host = "127.0.0.1",
        .port = listener_port(listener),
        .tls = client,
        .tls_name = "localhost",
    };
    client_end.conn = conn_dial(loop, &options, &events, &client_end);
    TURN_UNTIL(loop, client_end.is_open && server_end.is_open);
    enum { BLOCK = 50000, BLOCKS = 200 };
    char *block = mem_new(BLOCK, 1);
    size_t up = 0;
    size_t down = 0;
    int64_t end_ms = now_ms() + PATIENCE_MS;
    while (server_end.received.size < (size_t)BLOCK * BLOCKS ||
           client_end.received.size < (size_t)BLOCK * BLOCKS + 5) {
        CHECK("in time", now_ms() < end_ms);
        while (up < BLOCKS && send_within_room(client_end.conn, block, BLOCK))
            up++;
        while (down < BLOCKS && send_within_room(server_end.conn, block, BLOCK))
            down++;
        CHECK("bounded", conn_queued(client_end.conn) <= 256 * KIB);
        turn(loop, 1);
    }
    mem_free(block);
    conn_abort(client_end.conn, "done");
    TURN_UNTIL(loop, client_end.is_closed && server_end.is_closed);
    listener_close(listener);
}

static void test_dial_failures(void **state)
{
    (void)state;
    reset_ends();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK("bind", bind(fd, (struct sockaddr *)&address, size) == 0);
    CHECK("name", getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    struct conn_dial_options nobody = { .host = "127.0.0.1", .port = ntohs(address.sin_port) };
    (void)conn_dial(loop, &nobody, &events, &client_end);
    TURN_UNTIL(loop, client_end.is_closed);
    CHECK("nobody listens", strstr(client_end.why, "refused") != NULL);
    reset_ends();
    struct conn_dial_options nowhere = { .unix_path = "/nonexistent/socket" };
    (void)conn_dial(loop, &nowhere, &events, &client_end);
    TURN_UNTIL(loop, client_end.is_closed);
    CHECK("no such socket", strstr(client_end.why, "No such file") != NULL);
    reset_ends();
    CHECK("listen, and never accept", listen(fd, 1) == 0);
    AUTO(tls_context)
    struct tls_context *client = client_context(&pki->ca_certificate, NULL, TLS_PROTOCOL_LINK);
    nobody.tls = client;
    nobody.timeout_ms = 100;
    (void)conn_dial(loop, &nobody, &events, &client_end);
    TURN_UNTIL(loop, client_end.is_closed);
    CHECK("a server that says nothing", strstr(client_end.why, "in time") != NULL);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_mutual, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_client_certificate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_server_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_client_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expired_client, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_server_clock_judges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_client_with_wrong_clock, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_identity_while_it_serves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resumption_over_restart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_versions_and_ciphers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_tls_at_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bulk_both_ways, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dial_failures, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net tls", tests, NULL, NULL);
}
