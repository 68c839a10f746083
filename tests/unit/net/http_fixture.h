/* http_fixture.h - an HTTP server whose owner behaves as the first part of the path says. */
#ifndef TESTS_UNIT_NET_HTTP_FIXTURE_H
#define TESTS_UNIT_NET_HTTP_FIXTURE_H

#include "net/http.h"
#include "net_fixture.h"

enum { TEST_BODY_MAX = 1000, TEST_HEADER_MAX = 2048, TEST_FIELDS_MAX = 20, TEST_TIMEOUT_MS = 150 };

struct http_fixture {
    struct loop *loop;
    struct listener *listener;
    struct http_server *server;
    uint16_t port;
    struct http_ref later; /* of the last request to /later */
    struct buf uploaded;
    size_t request_count;
    size_t gone_count;
    size_t answered_count;
    size_t stream_left; /* bytes /download still has to write */
};

static inline void fixture_on_end(void *user, enum http_end end)
{
    struct http_fixture *fixture = user;
    if (end == HTTP_END_GONE)
        fixture->gone_count++;
    else
        fixture->answered_count++;
}

static inline void fixture_on_chunk(struct http_request *request, struct str bytes, void *arg)
{
    struct http_fixture *fixture = arg;
    (void)request;
    buf_add_str(&fixture->uploaded, bytes);
}

static inline struct str first_segment(const struct http_request *request)
{
    return http_request_segment_count(request) > 0 ? http_request_segment(request, 0) : STR("");
}

static inline void fixture_on_header(struct http_request *request, void *arg)
{
    struct http_fixture *fixture = arg;
    fixture->request_count++;
    http_request_set_user(request, fixture, fixture_on_end);
    struct str name = first_segment(request);
    if (str_is(name, "denied")) {
        struct http_response response = { .status = 403, .body = STR("denied") };
        http_respond(request, &response);
    } else if (str_is(name, "upload")) {
        struct http_body_sink sink = { fixture_on_chunk, fixture };
        http_request_set_body_max(request, 64 * MIB);
        http_request_stream_body(request, &sink);
    } else if (str_is(name, "small")) {
        http_request_set_body_max(request, 10);
    }
}

static inline void fixture_fill(struct http_request *request, void *arg)
{
    struct http_fixture *fixture = arg;
    char block[8192];
    memset(block, 'd', sizeof(block));
    while (fixture->stream_left > 0) {
        struct str bytes = { block, MIN_OF(sizeof(block), fixture->stream_left) };
        if (http_stream_write(request, bytes) != ERR_OK)
            return;
        fixture->stream_left -= bytes.size;
    }
    http_stream_end(request);
}

/* Says back method, parts, query and body. */
static inline void fixture_echo(struct http_request *request)
{
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "[%s]", http_method_name(http_request_method(request)));
    for (size_t i = 0; i < http_request_segment_count(request); i++)
        buf_format(&text, "<%.*s>", STR_ARG(http_request_segment(request, i)));
    for (size_t i = 0; i < http_request_query_count(request); i++) {
        struct http_pair pair = http_request_query(request, i);
        buf_format(&text, "(%.*s=%.*s)", STR_ARG(pair.name), STR_ARG(pair.value));
    }
    buf_format(&text, "{%.*s}", STR_ARG(http_request_body(request)));
    struct http_pair field = { STR("X-Test"), STR("a\r\nInjected: b") };
    struct http_response response = {
        .status = 200,
        .content_type = STR("text/plain"),
        .body = buf_str(&text),
        .fields = &field,
        .field_count = 1,
    };
    http_respond(request, &response);
}

static inline void fixture_on_request(struct http_request *request, void *arg)
{
    struct http_fixture *fixture = arg;
    struct str name = first_segment(request);
    struct http_response response = { .status = 200 };
    if (str_is(name, "later")) {
        fixture->later = http_request_ref(request);
    } else if (str_is(name, "feed")) {
        fixture->later = http_request_ref(request);
        http_feed_start(request, &response, 64 * KIB);
    } else if (str_is(name, "download")) {
        fixture->later = http_request_ref(request);
        bool is_chunked = http_request_query_count(request) == 0;
        http_stream_on_room(request, fixture_fill, fixture);
        http_stream_start(request, &response, is_chunked ? -1 : (int64_t)fixture->stream_left);
        fixture_fill(request, fixture);
    } else {
        fixture_echo(request);
    }
}

static inline void fixture_on_accept(struct conn *conn, void *arg)
{
    struct http_fixture *fixture = arg;
    http_server_take(fixture->server, conn);
}

/* `options` NULL: small caps and short deadlines. */
static inline void http_fixture_init(struct http_fixture *fixture, struct loop *loop,
                                     const struct http_server_options *options)
{
    static const struct http_server_options short_ones = {
        .header_bytes_max = TEST_HEADER_MAX,
        .header_count_max = TEST_FIELDS_MAX,
        .body_bytes_max = TEST_BODY_MAX,
        .header_timeout_ms = TEST_TIMEOUT_MS,
        .body_timeout_ms = TEST_TIMEOUT_MS,
        .write_timeout_ms = TEST_TIMEOUT_MS,
        .idle_timeout_ms = INT64_C(3) * TEST_TIMEOUT_MS,
        .feed_ping_ms = 50,
    };
    static const struct http_handler handler = {
        .on_header = fixture_on_header,
        .on_request = fixture_on_request,
    };
    struct error e;
    *fixture = (struct http_fixture){ .loop = loop };
    CHECK_OK("server",
             http_server_new(loop, options != NULL ? options : &short_ones, &handler, fixture,
                             &fixture->server, &e),
             &e);
    struct listener_options where = {
        .address = "127.0.0.1",
        .on_accept = fixture_on_accept,
        .arg = fixture,
    };
    CHECK_OK("listen", listener_open(loop, &where, &fixture->listener, &e), &e);
    fixture->port = listener_port(fixture->listener);
}

static inline void http_fixture_done(struct http_fixture *fixture)
{
    http_server_free(fixture->server);
    turn(fixture->loop, 0);
    turn(fixture->loop, 0);
    CHECK("every connection has gone", listener_conn_count(fixture->listener) == 0);
    listener_close(fixture->listener);
    buf_done(&fixture->uploaded);
}

#endif
