/* The blocking client against a real server, which runs on a thread of its own here. */
#include <pthread.h>

#include "http_fixture.h"
#include "net/address.h"
#include "net/http_client.h"
#include "os/fd.h"
#include "tls_fixture.h"
#include "unit/test_dir.h"

static struct loop *loop;
static struct http_fixture fixture;
static struct tls_fixture *pki;
static struct listener *unix_listener;
static struct listener *tls_listener;
static struct tls_context *server_tls;
static struct test_dir dir;
static char socket_path[256];
static pthread_t server_thread;
static struct conn_peer last_peer;

static void client_test_on_request(struct http_request *request, void *arg);

static const struct http_handler handler = {
    .on_header = fixture_on_header,
    .on_request = client_test_on_request,
};

static void client_test_on_request(struct http_request *request, void *arg)
{
    struct str name = first_segment(request);
    last_peer = *http_request_peer(request);
    if (str_is(name, "events")) {
        http_feed_start(request, &(struct http_response){ .status = 200 }, 65536);
        for (int i = 1; i <= 3; i++) {
            AUTO(buf) struct buf event = { 0 };
            AUTO(buf) struct buf id = { 0 };
            buf_format(&id, "%d", i);
            http_event_format(&event, buf_str(&id), STR("change"), STR("a\nb"));
            CHECK("sent", http_feed_send(request, buf_str(&event), buf_str(&id)) == ERR_OK);
        }
        http_feed_end(request);
    } else {
        fixture_on_request(request, arg);
    }
}

static void *serve(void *arg)
{
    (void)arg;
    struct error e;
    CHECK_OK("run", loop_run(loop, &e), &e);
    return NULL;
}

static void start_server(void)
{
    CHECK("thread", pthread_create(&server_thread, NULL, serve, NULL) == 0);
}

static void stop_server(void)
{
    loop_stop(loop);
    pthread_join(server_thread, NULL);
}

/* What the server's thread wrote may be read now. */
static void sync_with_server(void)
{
    stop_server();
    start_server();
}

static size_t conn_count(void)
{
    stop_server();
    size_t count = http_server_conn_count(fixture.server);
    start_server();
    return count;
}

static int set_up(void **state)
{
    (void)state;
    struct error e;
    struct http_server_options options = {
        .body_bytes_max = TEST_BODY_MAX,
        .idle_timeout_ms = TEST_TIMEOUT_MS,
    };
    CHECK_OK("loop", loop_new(&loop, &e), &e);
    http_fixture_init(&fixture, loop, NULL);
    http_server_free(fixture.server);
    CHECK_OK("server", http_server_new(loop, &options, &handler, &fixture, &fixture.server, &e),
             &e);
    pki = tls_fixture_new();
    dir = test_dir_new();
    struct listener_options local = {
        .unix_path = test_dir_path(&dir, "socket", socket_path),
        .unix_mode = 0600,
        .on_accept = fixture_on_accept,
        .arg = &fixture,
    };
    CHECK_OK("unix", listener_open(loop, &local, &unix_listener, &e), &e);
    server_tls = server_context(pki, NULL);
    struct listener_options remote = {
        .address = "127.0.0.1",
        .tls = server_tls,
        .on_accept = fixture_on_accept,
        .arg = &fixture,
    };
    CHECK_OK("tls", listener_open(loop, &remote, &tls_listener, &e), &e);
    start_server();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stop_server();
    http_server_free(fixture.server);
    fixture.server = NULL;
    TURN_UNTIL(loop,
               listener_conn_count(unix_listener) == 0 && listener_conn_count(tls_listener) == 0);
    listener_close(unix_listener);
    listener_close(tls_listener);
    http_fixture_done(&fixture);
    tls_context_free(server_tls);
    tls_fixture_free(pki);
    loop_free(loop);
    test_dir_remove(&dir);
    return 0;
}

static struct http_client *unix_client(void)
{
    struct error e;
    struct http_client *client = NULL;
    struct http_client_options options = { .unix_path = socket_path };
    CHECK_OK("client", http_client_new(&options, &client, &e), &e);
    return client;
}

static struct http_client *tls_client(void)
{
    struct error e;
    struct http_client *client = NULL;
    struct http_client_options options = {
        .host = "localhost",
        .port = listener_port(tls_listener),
        .tls = http_client_tls(),
        .ca_pem = buf_str(&pki->ca_certificate),
        .certificate_pem = buf_str(&pki->client.certificate),
        .key_pem = buf_str(&pki->client.key),
    };
    CHECK_OK("client", http_client_new(&options, &client, &e), &e);
    return client;
}

/* The status; the body is appended to `out`. */
static unsigned exchange(struct http_client *client, const struct http_client_request *request,
                         struct buf *out)
{
    struct error e;
    AUTO(http_client_response) struct http_client_response *response = NULL;
    CHECK_OK("send", http_client_send(client, request, &response, &e), &e);
    CHECK_OK("read", http_client_read_all(response, 64 * MIB, out, &e), &e);
    return http_client_status(response);
}

static void check_requests(struct http_client *client)
{
    AUTO(buf) struct buf body = { 0 };
    struct http_client_field field = { STR("X-Test"), STR("1") };
    struct http_client_request get = {
        .method = "GET",
        .target = STR("/a/b?x=1"),
        .fields = &field,
        .field_count = 1,
    };
    for (int i = 0; i < 3; i++)
        CHECK("status", exchange(client, &get, &body) == 200);
    CHECK("answers", count_text(&body, "[GET]<a><b>(x=1){}") == 3);
    CHECK("over one connection", conn_count() == 1);
    struct http_client_request post = {
        .method = "POST",
        .target = STR("/a"),
        .body = STR("{\"b\":1}"),
    };
    buf_clear(&body);
    CHECK("status", exchange(client, &post, &body) == 200);
    CHECK("answer", has_text(&body, "[POST]<a>{{\"b\":1}}"));
    struct http_client_request head = { .method = "HEAD", .target = STR("/a") };
    buf_clear(&body);
    CHECK("status", exchange(client, &head, &body) == 200 && body.size == 0);
    CHECK("goes on after a HEAD", exchange(client, &get, &body) == 200);
}

static void test_unix(void **state)
{
    (void)state;
    AUTO(http_client) struct http_client *client = unix_client();
    check_requests(client);
    sync_with_server();
    CHECK("peer", last_peer.is_unix && last_peer.uid == getuid() && last_peer.pid == getpid());
}

static void test_tls(void **state)
{
    (void)state;
    AUTO(http_client) struct http_client *client = tls_client();
    check_requests(client);
    sync_with_server();
    CHECK("peer", !last_peer.is_unix && last_peer.is_tls && strcmp(last_peer.name, "nod_1") == 0);
    CHECK("address", strncmp(last_peer.address, "127.0.0.1:", 10) == 0);
}

static void test_distrust(void **state)
{
    (void)state;
    struct error e;
    AUTO(buf) struct buf key = { 0 };
    AUTO(buf) struct buf other = { 0 };
    make_ca(&key, &other);
    struct http_client_options options = {
        .host = "localhost",
        .port = listener_port(tls_listener),
        .tls = http_client_tls(),
        .ca_pem = buf_str(&other),
    };
    AUTO(http_client) struct http_client *client = NULL;
    struct http_client_response *response = NULL;
    struct http_client_request get = { .method = "GET", .target = STR("/a") };
    CHECK_OK("client", http_client_new(&options, &client, &e), &e);
    CHECK("refused", http_client_send(client, &get, &response, &e) == ERR_DENIED);
    CHECK("says why", strstr(e.text, "not trusted") != NULL);
    struct http_client_options none = { 0 };
    struct http_client *nothing = NULL;
    CHECK("neither socket nor host", http_client_new(&none, &nothing, &e) == ERR_INVALID);
    options.tls = NULL;
    CHECK("a host in the clear", http_client_new(&options, &nothing, &e) == ERR_INVALID);
}

static void test_server_closed_meanwhile(void **state)
{
    (void)state;
    AUTO(buf) struct buf body = { 0 };
    AUTO(http_client) struct http_client *client = unix_client();
    struct http_client_request post = { .method = "POST", .target = STR("/a"), .body = STR("x") };
    CHECK("status", exchange(client, &post, &body) == 200);
    int64_t end_ms = now_ms() + PATIENCE_MS;
    /* The server's idle deadline, seen from the outside. */
    while (conn_count() > 0) {
        struct pollfd nothing = { .fd = -1 };
        CHECK("in time", now_ms() < end_ms);
        (void)poll(&nothing, 1, 5);
    }
    CHECK("connects again without a word", exchange(client, &post, &body) == 200);
}

static size_t upload_left;

static enum err read_upload(void *arg, void *out, size_t size, size_t *got, struct error *e)
{
    (void)arg;
    (void)e;
    *got = MIN_OF(size, upload_left);
    memset(out, 'u', *got);
    upload_left -= *got;
    return ERR_OK;
}

static void check_upload(struct http_client *client, int64_t length, const char *target,
                         unsigned status)
{
    AUTO(buf) struct buf body = { 0 };
    upload_left = 3000000;
    struct http_client_request post = {
        .method = "POST",
        .target = str_of(target),
        .read_body = read_upload,
        .body_length = length,
    };
    CHECK(target, exchange(client, &post, &body) == status);
}

static void test_uploads(void **state)
{
    (void)state;
    AUTO(http_client) struct http_client *local = unix_client();
    AUTO(http_client) struct http_client *remote = tls_client();
    struct http_client *clients[] = { local, remote };
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        buf_clear(&fixture.uploaded);
        check_upload(clients[i], -1, "/upload", 200);
        sync_with_server();
        CHECK("chunked: all of it", fixture.uploaded.size == 3000000);
        buf_clear(&fixture.uploaded);
        check_upload(clients[i], 3000000, "/upload", 200);
        sync_with_server();
        CHECK("with a length: all of it", fixture.uploaded.size == 3000000);
        check_upload(clients[i], 3000000, "/a", 413);
        check_upload(clients[i], -1, "/a", 413);
        check_upload(clients[i], -1, "/denied", 403);
    }
}

static void test_download(void **state)
{
    (void)state;
    AUTO(http_client) struct http_client *local = unix_client();
    AUTO(http_client) struct http_client *remote = tls_client();
    struct http_client *clients[] = { local, remote };
    struct http_client_request get = { .method = "GET", .target = STR("/download") };
    struct error e;
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        AUTO(buf) struct buf body = { 0 };
        fixture.stream_left = 5000000;
        CHECK("status", exchange(clients[i], &get, &body) == 200);
        CHECK("all of it", body.size == 5000000);
        fixture.stream_left = 5000000;
        AUTO(http_client_response) struct http_client_response *response = NULL;
        CHECK_OK("send", http_client_send(clients[i], &get, &response, &e), &e);
        CHECK("bounded", http_client_read_all(response, 1000, &body, &e) == ERR_LIMIT);
    }
}

static void test_events(void **state)
{
    (void)state;
    struct error e;
    AUTO(http_client) struct http_client *client = unix_client();
    AUTO(http_client_response) struct http_client_response *response = NULL;
    struct http_client_event event = { 0 };
    struct http_client_request get = { .method = "GET", .target = STR("/events") };
    CHECK_OK("send", http_client_send(client, &get, &response, &e), &e);
    CHECK("type", str_is(http_client_field(response, "content-type"), "text/event-stream"));
    CHECK("absent", http_client_field(response, "etag").data == NULL);
    for (int i = 1; i <= 3; i++) {
        CHECK_OK("event", http_client_read_event(response, 1000, &event, &e), &e);
        CHECK("id", event.id.data[0] == '0' + i);
        CHECK("name", str_is(buf_str(&event.event), "change"));
        CHECK("data", str_is(buf_str(&event.data), "a\nb"));
    }
    CHECK("the end", http_client_read_event(response, 1000, &event, &e) == ERR_NOT_FOUND);
    http_client_event_done(&event);
}

static void test_bad_requests_stay_here(void **state)
{
    (void)state;
    struct error e;
    AUTO(http_client) struct http_client *client = unix_client();
    struct http_client_response *response = NULL;
    struct http_client_request split = { .method = "GET", .target = STR("/a\r\nX: y") };
    CHECK("a line break in the target",
          http_client_send(client, &split, &response, &e) == ERR_INVALID);
    struct http_client_field field = { STR("X"), STR("a\r\nY: b") };
    struct http_client_request injected = {
        .method = "GET",
        .target = STR("/a"),
        .fields = &field,
        .field_count = 1,
    };
    CHECK("a line break in a field",
          http_client_send(client, &injected, &response, &e) == ERR_INVALID);
}

static void test_server_that_does_not_answer(void **state)
{
    (void)state;
    struct error e;
    struct http_client_options options = { .unix_path = socket_path, .timeout_ms = 100 };
    AUTO(http_client) struct http_client *client = NULL;
    struct http_client_response *response = NULL;
    struct http_client_request get = { .method = "GET", .target = STR("/later") };
    CHECK_OK("client", http_client_new(&options, &client, &e), &e);
    CHECK("in time", http_client_send(client, &get, &response, &e) == ERR_UNAVAILABLE);
    struct http_client_options nowhere = { .unix_path = "/nonexistent/socket" };
    AUTO(http_client) struct http_client *lost = NULL;
    CHECK_OK("client", http_client_new(&nowhere, &lost, &e), &e);
    CHECK("no server", http_client_send(lost, &get, &response, &e) == ERR_IO);
    CHECK("says where", strstr(e.text, "/nonexistent/socket") != NULL);
}

/* What a server says that is not one of ours. */
struct answer_case {
    const char *name;
    const char *bytes;
    unsigned status; /* 0: an error */
    const char *body;
};

static const struct answer_case answer_cases[] = {
    { "to the end of the connection", "HTTP/1.1 200 OK\r\n\r\nabc", 200, "abc" },
    { "HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nabc", 200, "ab" },
    { "an interim answer first",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", 201, "x" },
    { "no body", "HTTP/1.1 204 No Content\r\n\r\n", 204, "" },
    { "chunks",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", 200,
      "abc" },
    { "not HTTP", "SSH-2.0-OpenSSH\r\n", 0, NULL },
    { "nothing", "", 0, NULL },
    { "half a head", "HTTP/1.1 200 OK\r\nContent-", 0, NULL },
    { "half a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", 200, NULL },
    { "half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 200, NULL },
};

struct canned {
    int fd;
    const char *bytes;
};

static void *answer_canned(void *arg)
{
    struct canned *canned = arg;
    char request[1024];
    AUTO(fd) int fd = accept(canned->fd, NULL, NULL);
    CHECK("request", read(fd, request, sizeof(request)) > 0);
    size_t size = strlen(canned->bytes);
    CHECK("answer", write(fd, canned->bytes, size) == (ssize_t)size);
    return NULL;
}

static void check_answer(const struct answer_case *c, int listen_fd, const char *path)
{
    struct error e;
    pthread_t thread;
    struct canned canned = { listen_fd, c->bytes };
    AUTO(buf) struct buf body = { 0 };
    AUTO(http_client) struct http_client *client = NULL;
    AUTO(http_client_response) struct http_client_response *response = NULL;
    struct http_client_options options = { .unix_path = path };
    struct http_client_request get = { .method = "GET", .target = STR("/") };
    CHECK_OK(c->name, http_client_new(&options, &client, &e), &e);
    CHECK("thread", pthread_create(&thread, NULL, answer_canned, &canned) == 0);
    enum err rc = http_client_send(client, &get, &response, &e);
    CHECK(c->name, (rc == ERR_OK) == (c->status != 0));
    if (rc == ERR_OK) {
        CHECK(c->name, http_client_status(response) == c->status);
        rc = http_client_read_all(response, 1000, &body, &e);
        CHECK(c->name, (rc == ERR_OK) == (c->body != NULL));
        CHECK(c->name, c->body == NULL || str_eq(buf_str(&body), str_of(c->body)));
    }
    pthread_join(thread, NULL);
}

static void test_answers_of_others(void **state)
{
    (void)state;
    char path[256];
    struct sockaddr_un address;
    CHECK("path", address_unix(test_dir_path(&dir, "canned", path), &address));
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK("bind", bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK("listen", listen(fd, 4) == 0);
    FOR_EACH_CASE (c, answer_cases)
        check_answer(c, fd, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unix, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_distrust, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_server_closed_meanwhile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_uploads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_download, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_requests_stay_here, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_server_that_does_not_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_of_others, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net http client", tests, NULL, NULL);
}
