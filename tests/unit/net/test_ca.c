#include "tls_fixture.h"

static struct tls_fixture *pki;

static int set_up(void **state)
{
    (void)state;
    pki = tls_fixture_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tls_fixture_free(pki);
    return 0;
}

struct name_case {
    const char *name;
    bool is_taken;
};

static const struct name_case client_names[] = {
    { "nod_4k3n", true },
    { "a", true },
    { "a.b-c_d", true },
    { "", false },
    { "a b", false },
    { "a/b", false },
    { "a,b", false },
    { "a\n", false },
    { "\xc3\xa4", false },
    { "urn:berth:a", false },
    { "0123456789012345678901234567890123456789012345678901234567890123", true },
    { "01234567890123456789012345678901234567890123456789012345678901234", false },
};

static void test_client_names(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, client_names) {
        AUTO(buf) struct buf out = { 0 };
        struct error e;
        struct ca_certificate_info info;
        struct ca_client_options options = { str_of(c->name), clock_wall(), 60 };
        enum err rc = ca_issue_client(pki->ca, buf_str(&pki->client.key), &options, &out, &e);
        CHECK(c->name, rc == (c->is_taken ? ERR_OK : ERR_INVALID));
        CHECK(c->name, c->is_taken || out.size == 0);
        if (!c->is_taken)
            continue;
        CHECK_OK(c->name, ca_certificate_read(buf_str(&out), &info, &e), &e);
        CHECK(c->name, strcmp(info.name, c->name) == 0);
    }
}

static const struct name_case server_names[] = {
    { "localhost", true }, { "berth.example.org", true }, { "10.0.0.1", true }, { "::1", true },
    { "fe80::1", true },   { "*.example.org", false },    { "*", false },       { "", false },
    { "a b", false },      { "a,DNS:b", false },          { "a:b", false },     { "a\nb", false },
    { "1:2:3", false },
};

static void test_server_names(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, server_names) {
        AUTO(buf) struct buf out = { 0 };
        struct str name = str_of(c->name);
        struct ca_server_options options = { &name, 1, clock_wall(), 60 };
        enum err rc = ca_issue_server(pki->ca, buf_str(&pki->server.key), &options, &out, NULL);
        CHECK(c->name, rc == (c->is_taken ? ERR_OK : ERR_INVALID));
    }
    AUTO(buf) struct buf out = { 0 };
    struct ca_server_options none = { NULL, 0, clock_wall(), 60 };
    CHECK("without a name",
          ca_issue_server(pki->ca, buf_str(&pki->server.key), &none, &out, NULL) == ERR_INVALID);
}

static void test_validity(void **state)
{
    (void)state;
    AUTO(buf) struct buf out = { 0 };
    struct error e;
    struct ca_certificate_info info;
    struct wall now = { INT64_C(1893456000) * NS_PER_S }; /* 2030-01-01 */
    struct ca_client_options options = { STR("nod_1"), now, 86400 };
    CHECK_OK("issue", ca_issue_client(pki->ca, buf_str(&pki->client.key), &options, &out, &e), &e);
    CHECK_OK("read", ca_certificate_read(buf_str(&out), &info, &e), &e);
    CHECK("to the second", info.not_after.ns == now.ns + 86400 * NS_PER_S);
    CHECK("a little earlier, for clocks behind",
          info.not_before.ns < now.ns && now.ns - info.not_before.ns <= 600 * NS_PER_S);
    options.lifetime_s = 0;
    CHECK("no lifetime",
          ca_issue_client(pki->ca, buf_str(&pki->client.key), &options, &out, NULL) == ERR_INVALID);
}

static void test_fingerprints(void **state)
{
    (void)state;
    AUTO(buf) struct buf request = { 0 };
    struct error e;
    uint8_t of_key[CA_FINGERPRINT_BYTES];
    uint8_t of_request[CA_FINGERPRINT_BYTES];
    uint8_t of_certificate[CA_FINGERPRINT_BYTES];
    uint8_t of_other[CA_FINGERPRINT_BYTES];
    CHECK_OK("request", ca_request_new(buf_str(&pki->client.key), STR("x"), &request, &e), &e);
    CHECK_OK("key", ca_key_fingerprint(buf_str(&pki->client.key), of_key, &e), &e);
    CHECK_OK("request", ca_key_fingerprint(buf_str(&request), of_request, &e), &e);
    CHECK_OK("certificate",
             ca_key_fingerprint(buf_str(&pki->client.certificate), of_certificate, &e), &e);
    CHECK_OK("other", ca_key_fingerprint(buf_str(&pki->server.key), of_other, &e), &e);
    CHECK("one key, one fingerprint", memcmp(of_key, of_request, sizeof(of_key)) == 0 &&
                                          memcmp(of_key, of_certificate, sizeof(of_key)) == 0);
    CHECK("another key, another", memcmp(of_key, of_other, sizeof(of_key)) != 0);
}

/* Changes one character of the base64 body. */
static void spoil(struct buf *pem, size_t at)
{
    pem->data[at] = pem->data[at] == 'A' ? 'B' : 'A';
}

static void test_bad_requests(void **state)
{
    (void)state;
    static const char weak[] = "-----BEGIN PUBLIC KEY-----\n"
                               "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAMv7bOhXRcmqi0kyCHMHSHLHO5XmAp3a\n"
                               "1eUbGQmSbnc+vf5iQ3cn2OBGgbBsm5Q1fJ7W8f5zJm8hB2s0eO6e9L0CAwEAAQ==\n"
                               "-----END PUBLIC KEY-----\n";
    struct ca_client_options options = { STR("nod_1"), clock_wall(), 60 };
    AUTO(buf) struct buf out = { 0 };
    AUTO(buf) struct buf request = { 0 };
    struct error e;
    CHECK_OK("request", ca_request_new(buf_str(&pki->client.key), STR("x"), &request, &e), &e);
    CHECK("empty", ca_issue_client(pki->ca, STR(""), &options, &out, &e) == ERR_INVALID);
    CHECK("no PEM", ca_issue_client(pki->ca, STR("hello"), &options, &out, &e) == ERR_INVALID);
    CHECK("RSA of 512 bits",
          ca_issue_client(pki->ca, str_of(weak), &options, &out, &e) == ERR_INVALID);
    struct str half = { request.data, request.size / 2 };
    CHECK("cut off", ca_issue_client(pki->ca, half, &options, &out, &e) == ERR_INVALID);
    /* The signature stands at the end: who changes it does not hold the key. */
    spoil(&request, request.size - 50);
    CHECK("signed by nobody",
          ca_issue_client(pki->ca, buf_str(&request), &options, &out, &e) == ERR_INVALID);
    CHECK("nothing was written", out.size == 0);
}

static void test_random_requests(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    AUTO(buf) struct buf request = { 0 };
    struct error e;
    struct ca_client_options options = { STR("nod_1"), clock_wall(), 60 };
    CHECK_OK("request", ca_request_new(buf_str(&pki->client.key), STR("x"), &request, &e), &e);
    for (int i = 0; i < 500; i++) {
        AUTO(buf) struct buf bent = { 0 };
        AUTO(buf) struct buf out = { 0 };
        buf_add_str(&bent, buf_str(&request));
        for (size_t n = test_below(&seed, 4) + 1; n > 0; n--)
            bent.data[40 + test_below(&seed, bent.size - 80)] = (char)test_random(&seed);
        enum err rc = ca_issue_client(pki->ca, buf_str(&bent), &options, &out, NULL);
        CHECK("refused, or harmless", rc == ERR_INVALID || rc == ERR_OK);
    }
}

static void test_load(void **state)
{
    (void)state;
    struct ca *ca = NULL;
    struct error e;
    CHECK("a leaf is no CA", ca_load(buf_str(&pki->client.certificate), buf_str(&pki->client.key),
                                     &ca, &e) == ERR_INVALID);
    CHECK("another's key", ca_load(buf_str(&pki->ca_certificate), buf_str(&pki->server.key), &ca,
                                   &e) == ERR_INVALID);
    CHECK("no certificate", ca_load(STR(""), buf_str(&pki->ca_key), &ca, &e) == ERR_INVALID);
    CHECK("no key", ca_load(buf_str(&pki->ca_certificate), STR(""), &ca, &e) == ERR_INVALID);
    CHECK("untouched", ca == NULL);
    struct tls_server_options options = {
        .certificate_pem = buf_str(&pki->server.certificate),
        .key_pem = buf_str(&pki->client.key),
    };
    struct tls_context *context = NULL;
    CHECK("a server with another's key", tls_server_new(&options, &context, &e) == ERR_INVALID);
    options.key_pem = STR("nonsense");
    CHECK("a server without a key", tls_server_new(&options, &context, &e) == ERR_INVALID);
    struct tls_client_options none = { 0 };
    CHECK("a client that trusts nobody", tls_client_new(&none, &context, &e) == ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_client_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_server_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_validity, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fingerprints, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_random_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_load, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net ca", tests, NULL, NULL);
}
