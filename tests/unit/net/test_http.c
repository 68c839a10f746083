#include "http_fixture.h"

static struct loop *loop;

static int set_up(void **state)
{
    (void)state;
    struct error e;
    CHECK_OK("loop", loop_new(&loop, &e), &e);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

#define HOST        "Host: berth.test\r\n"
#define GET(target) "GET " target " HTTP/1.1\r\n" HOST "\r\n"

struct abuse_case {
    const char *name;
    const char *bytes;
    size_t size; /* 0: strlen */
    unsigned status;
    bool stays_open;
};

#define WITH_NUL(text) (text), sizeof(text) - 1

/* clang-format off */
static const struct abuse_case abuse_cases[] = {
    { "a plain request is answered", GET("/a"), 0, 200, true },
    { "Content-Length and Transfer-Encoding together",
      "POST /a HTTP/1.1\r\n" HOST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", 0, 400, false },
    { "Transfer-Encoding and Content-Length together, the other way round",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG", 0, 400, false },
    { "two different Content-Lengths",
      "POST /a HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 0, 400, false },
    { "two equal Content-Lengths",
      "POST /a HTTP/1.1\r\n" HOST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab", 0, 400, false },
    { "a list in Content-Length", "POST /a HTTP/1.1\r\n" HOST "Content-Length: 2, 2\r\n\r\nab", 0, 400, false },
    { "a signed Content-Length", "POST /a HTTP/1.1\r\n" HOST "Content-Length: +2\r\n\r\nab", 0, 400, false },
    { "a negative Content-Length", "POST /a HTTP/1.1\r\n" HOST "Content-Length: -2\r\n\r\nab", 0, 400, false },
    { "a hexadecimal Content-Length", "POST /a HTTP/1.1\r\n" HOST "Content-Length: 0x2\r\n\r\nab", 0, 400, false },
    { "an empty Content-Length", "POST /a HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 0, 400, false },
    { "a Content-Length beyond 64 bits",
      "POST /a HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", 0, 400, false },
    { "Transfer-Encoding: gzip", "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 0, 400, false },
    { "Transfer-Encoding: gzip, chunked",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0, 400, false },
    { "Transfer-Encoding: identity", "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", 0, 400, false },
    { "Transfer-Encoding twice",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, 400, false },
    { "Transfer-Encoding with a trailing comma",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", 0, 400, false },
    { "Host twice", "GET /a HTTP/1.1\r\n" HOST HOST "\r\n", 0, 400, false },
    { "no Host", "GET /a HTTP/1.1\r\n\r\n", 0, 400, false },
    { "a Host that is none", "GET /a HTTP/1.1\r\nHost: a/b\r\n\r\n", 0, 400, false },
    { "Authorization twice",
      "GET /a HTTP/1.1\r\n" HOST "Authorization: a\r\nAuthorization: b\r\n\r\n", 0, 400, false },
    { "a folded line", "GET /a HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 0, 400, false },
    { "a folded line by a tab", "GET /a HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n", 0, 400, false },
    { "a blank before the first field", "GET /a HTTP/1.1\r\n X: a\r\n" HOST "\r\n", 0, 400, false },
    { "a bare LF after the request line", "GET /a HTTP/1.1\n" HOST "\r\n", 0, 400, false },
    { "a bare LF after a field", "GET /a HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 0, 400, false },
    { "a bare LF at the end of the head", "GET /a HTTP/1.1\r\n" HOST "\n", 0, 400, false },
    { "a bare CR in a field", "GET /a HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n", 0, 400, false },
    { "two CRs before the LF", "GET /a HTTP/1.1\r\n" HOST "X: a\r\r\n\r\n", 0, 400, false },
    { "a NUL in a value", WITH_NUL("GET /a HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n"), 400, false },
    { "a NUL in a name", WITH_NUL("GET /a HTTP/1.1\r\n" HOST "X\0: a\r\n\r\n"), 400, false },
    { "a NUL in the target", WITH_NUL("GET /a\0b HTTP/1.1\r\n" HOST "\r\n"), 400, false },
    { "a control character in a value", "GET /a HTTP/1.1\r\n" HOST "X: a\x01\r\n\r\n", 0, 400, false },
    { "a space before the colon", "POST /a HTTP/1.1\r\n" HOST "Content-Length : 2\r\n\r\nab", 0, 400, false },
    { "a tab before the colon", "POST /a HTTP/1.1\r\n" HOST "Content-Length\t: 2\r\n\r\nab", 0, 400, false },
    { "a field without a colon", "GET /a HTTP/1.1\r\n" HOST "X\r\n\r\n", 0, 400, false },
    { "a field without a name", "GET /a HTTP/1.1\r\n" HOST ": x\r\n\r\n", 0, 400, false },
    { "an empty line before the request", "\r\n" GET("/a"), 0, 400, false },
    { "two spaces in the request line", "GET  /a HTTP/1.1\r\n" HOST "\r\n", 0, 400, false },
    { "text behind the version", "GET /a HTTP/1.1 x\r\n" HOST "\r\n", 0, 400, false },
    { "no version", "GET /a\r\n" HOST "\r\n", 0, 400, false },
    { "HTTP/1.0", "GET /a HTTP/1.0\r\n" HOST "\r\n", 0, 505, false },
    { "HTTP/2.0 in the clear", "PRI * HTTP/2.0\r\n\r\n", 0, 501, false },
    { "a method in small letters", "get /a HTTP/1.1\r\n" HOST "\r\n", 0, 501, false },
    { "a method we do not serve", "TRACE /a HTTP/1.1\r\n" HOST "\r\n", 0, 501, false },
    { "CONNECT", "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n", 0, 501, false },
    { "an expectation we do not know", "GET /a HTTP/1.1\r\n" HOST "Expect: rain\r\n\r\n", 0, 417, false },
    { "a body larger than the cap",
      "POST /a HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n", 0, 413, false },
    { "a body larger than its route's cap",
      "POST /small HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n", 0, 413, false },
    { "a chunked body larger than its route's cap",
      "POST /small HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n", 0, 413, false },
    { "a chunk size that is no number",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 0, 400, false },
    { "a chunk extension",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n", 0, 400, false },
    { "a bare LF inside a chunk extension",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;\nx\r\n0\r\n\r\n", 0, 400, false },
    { "a bare LF after a chunk size",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", 0, 400, false },
    { "a chunk longer than it says",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n", 0, 400, false },
    { "a chunk size beyond 32 bits",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n", 0, 400, false },
    { "a trailer",
      "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n", 0, 400, false },
    { "garbage", WITH_NUL("\x16\x03\x01\x02\x00\x01\x00\n\n"), 400, false },
};
/* clang-format on */

static unsigned status_of(const struct buf *answer)
{
    static const char start[] = "HTTP/1.1 ";
    if (answer->size < sizeof(start) + 3 || memcmp(answer->data, start, sizeof(start) - 1) != 0)
        return 0;
    return (unsigned)strtoul(answer->data + sizeof(start) - 1, NULL, 10);
}

static void check_abuse(const struct abuse_case *c, uint16_t port)
{
    AUTO(buf) struct buf answer = { 0 };
    int fd = client_connect(port);
    CHECK(c->name, client_send(loop, fd, c->bytes, c->size > 0 ? c->size : strlen(c->bytes)));
    CHECK(c->name, client_read_until(loop, fd, &answer, "\r\n\r\n"));
    if (status_of(&answer) != c->status)
        print_error("%s: %.*s\n", c->name, STR_ARG(buf_str(&answer)));
    CHECK(c->name, status_of(&answer) == c->status);
    if (!c->stays_open) {
        CHECK(c->name, has_text(&answer, "\r\nConnection: close\r\n"));
        CHECK(c->name, client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    }
    CHECK(c->name, count_text(&answer, "\r\nDate: ") == 1);
    close(fd);
}

static void test_abuse(void **state)
{
    (void)state;
    struct http_fixture fixture;
    http_fixture_init(&fixture, loop, NULL);
    FOR_EACH_CASE (c, abuse_cases)
        check_abuse(c, fixture.port);
    http_fixture_done(&fixture);
}

struct target_case {
    const char *target;
    const char *answer; /* NULL: 400 */
};

static const struct target_case target_cases[] = {
    { "/", "[GET]{}" },
    { "/a", "[GET]<a>{}" },
    { "/a/b/", "[GET]<a><b>{}" },
    { "/a%20b/c%3Fd", "[GET]<a b><c?d>{}" },
    { "/%c3%a4", "[GET]<\xc3\xa4>{}" },
    { "/a?x=1&y=2", "[GET]<a>(x=1)(y=2){}" },
    { "/a?x=%26%3D%2f%25&z", "[GET]<a>(x=&=/%)(z=){}" },
    { "/a?x=a+b%2Bc", "[GET]<a>(x=a b+c){}" },
    { "/a?x=YQ==", "[GET]<a>(x=YQ==){}" },
    { "/a?&&x=1&", "[GET]<a>(x=1){}" },
    { "/a..b/.c", "[GET]<a..b><.c>{}" },
    { "/..", NULL },
    { "/a/../b", NULL },
    { "/a/./b", NULL },
    { "/a/%2e%2e/b", NULL },
    { "/a/%2E%2E/b", NULL },
    { "/a/.%2e/b", NULL },
    { "/a%2fb", NULL },
    { "/a%2Fb", NULL },
    { "/a%5cb", NULL },
    { "/a\\b", NULL },
    { "/a//b", NULL },
    { "//a", NULL },
    { "/a;b", NULL },
    { "/a;jsessionid=1/b", NULL },
    { "/a%3bb", NULL },
    { "/a%00b", NULL },
    { "/a%0ab", NULL },
    { "/a%7fb", NULL },
    { "/a%252e%252e", NULL },
    { "/a%25b", NULL },
    { "/a%c0%ae", NULL },
    { "/a%c0%af", NULL },
    { "/a%e0%80%af", NULL },
    { "/a%f8%80%80%80%af", NULL },
    { "/a%ff", NULL },
    { "/a%ed%a0%80", NULL },
    { "/a%2", NULL },
    { "/a%", NULL },
    { "/a%zz", NULL },
    { "/a%u002e", NULL },
    { "/a\xc3\xa4", NULL },
    { "/a?x=%00", NULL },
    { "/a?x=%0d%0a", NULL },
    { "/a?x=%c0%af", NULL },
    { "/a?x;y", NULL },
    { "/a?=1", NULL },
    { "/a?x=<y>", NULL },
    { "/a#b", NULL },
    { "a", NULL },
    { "*", NULL },
    { "http://berth.test/a", NULL },
};

static void check_target(const struct target_case *c, uint16_t port)
{
    AUTO(buf) struct buf request = { 0 };
    AUTO(buf) struct buf answer = { 0 };
    int fd = client_connect(port);
    buf_format(&request, "GET %s HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n", c->target);
    CHECK(c->target, client_send(loop, fd, request.data, request.size));
    CHECK(c->target, client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK(c->target, status_of(&answer) == (c->answer != NULL ? 200u : 400u));
    CHECK(c->target, c->answer == NULL || has_text(&answer, c->answer));
    CHECK(c->target, !has_text(&answer, "\nInjected"));
    close(fd);
}

static void test_targets(void **state)
{
    (void)state;
    struct http_fixture fixture;
    http_fixture_init(&fixture, loop, NULL);
    FOR_EACH_CASE (c, target_cases)
        check_target(c, fixture.port);
    http_fixture_done(&fixture);
}

/* Sends what `fill` makes and expects the status and a close. */
static void check_large(const char *name, const struct buf *request, unsigned status, uint16_t port)
{
    AUTO(buf) struct buf answer = { 0 };
    int fd = client_connect(port);
    (void)client_send(loop, fd, request->data, request->size);
    CHECK(name, client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK(name, status_of(&answer) == status);
    close(fd);
}

static void test_large_heads(void **state)
{
    (void)state;
    struct http_fixture fixture;
    http_fixture_init(&fixture, loop, NULL);

    AUTO(buf) struct buf big = { 0 };
    buf_add_text(&big, "GET /a HTTP/1.1\r\n" HOST "X: ");
    for (size_t i = 0; i < 200000; i++)
        buf_add_char(&big, 'x');
    check_large("a header of 200 kB", &big, 431, fixture.port);

    AUTO(buf) struct buf many = { 0 };
    buf_add_text(&many, "GET /a HTTP/1.1\r\n" HOST);
    for (size_t i = 0; i < TEST_FIELDS_MAX; i++)
        buf_format(&many, "X%zu: y\r\n", i);
    buf_add_text(&many, "\r\n");
    check_large("one field too many", &many, 431, fixture.port);

    AUTO(buf) struct buf target = { 0 };
    buf_add_text(&target, "GET /");
    for (size_t i = 0; i < 10000; i++)
        buf_add_char(&target, 'x');
    buf_add_text(&target, " HTTP/1.1\r\n" HOST "\r\n");
    check_large("a target without end", &target, 414, fixture.port);

    AUTO(buf) struct buf deep = { 0 };
    buf_add_text(&deep, "GET ");
    for (size_t i = 0; i < 40; i++)
        buf_add_text(&deep, "/x");
    buf_add_text(&deep, " HTTP/1.1\r\n" HOST "\r\n");
    check_large("a path with too many parts", &deep, 414, fixture.port);
    CHECK("the owner saw none of it", fixture.request_count == 0);
    http_fixture_done(&fixture);
}

/* One byte every 10 ms: absolute deadlines do not care how lively the client is. */
static void check_slow(const char *name, const char *head, const char *drip, uint16_t port)
{
    AUTO(buf) struct buf answer = { 0 };
    int fd = client_connect(port);
    CHECK(name, client_send(loop, fd, head, strlen(head)));
    int64_t begin_ms = now_ms();
    size_t sent = 0;
    int64_t next_ms = begin_ms;
    while (client_read(fd, &answer)) {
        CHECK(name, now_ms() - begin_ms < PATIENCE_MS);
        if (now_ms() >= next_ms) {
            next_ms += 10;
            (void)send(fd, drip + sent++ % strlen(drip), 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        turn(loop, 2);
    }
    CHECK(name, now_ms() - begin_ms >= TEST_TIMEOUT_MS - 20);
    CHECK(name, status_of(&answer) == 408);
    close(fd);
}

static void test_slow_clients(void **state)
{
    (void)state;
    struct http_fixture fixture;
    http_fixture_init(&fixture, loop, NULL);
    check_slow("a slow header", "GET /a HTTP/1.1\r\nX: ", "x", fixture.port);
    check_slow("a slow body", "POST /a HTTP/1.1\r\n" HOST "Content-Length: 900\r\n\r\n", "x",
               fixture.port);
    check_slow("a slow chunked body",
               "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n",
               fixture.port);
    check_slow("a slow streamed body",
               "POST /upload HTTP/1.1\r\n" HOST "Content-Length: 900\r\n\r\n", "x", fixture.port);
    http_fixture_done(&fixture);
}

static void test_idle_client(void **state)
{
    (void)state;
    struct http_fixture fixture;
    AUTO(buf) struct buf answer = { 0 };
    http_fixture_init(&fixture, loop, NULL);
    int fd = client_connect(fixture.port);
    CHECK("an idle client is closed without a word",
          client_read_to_end(loop, fd, &answer, PATIENCE_MS) && answer.size == 0);
    close(fd);
    http_fixture_done(&fixture);
}

static void test_pipelining(void **state)
{
    (void)state;
    struct http_fixture fixture;
    AUTO(buf) struct buf answer = { 0 };
    http_fixture_init(&fixture, loop, NULL);
    int fd = client_connect(fixture.port);
    static const char requests[] =
        GET("/one") "POST /two HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab" GET("/later")
            GET("/four") GET("/five");
    CHECK("sent", client_send(loop, fd, requests, strlen(requests)));
    CHECK("two", client_read_until(loop, fd, &answer, "<two>{ab}"));
    TURN_UNTIL(loop, fixture.later.generation != 0);
    for (int i = 0; i < 5; i++)
        turn(loop, 1);
    (void)client_read(fd, &answer);
    CHECK("nothing overtakes a late answer", !has_text(&answer, "<four>"));
    struct http_request *later = http_find(fixture.server, fixture.later);
    CHECK("the late one waits", later != NULL);
    http_respond(later, &(struct http_response){ .status = 202, .body = STR("late") });
    CHECK("five", client_read_until(loop, fd, &answer, "<five>"));
    const char *order[] = { "<one>", "<two>", "late", "<four>", "<five>" };
    const char *at = answer.data;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        at = strstr(at, order[i]);
        CHECK(order[i], at != NULL);
    }
    close(fd);
    http_fixture_done(&fixture);
}

static void test_byte_at_a_time(void **state)
{
    (void)state;
    struct http_fixture fixture;
    AUTO(buf) struct buf answer = { 0 };
    http_fixture_init(&fixture, loop, NULL);
    int fd = client_connect(fixture.port);
    static const char requests[] = "POST /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                                   "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"
                                   "POST /b HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nxyz";
    for (size_t i = 0; i < strlen(requests); i++)
        CHECK("a byte", client_send(loop, fd, requests + i, 1));
    CHECK("both", client_read_until(loop, fd, &answer, "<b>{xyz}"));
    CHECK("the first", has_text(&answer, "<a>{abc0123456789}"));
    close(fd);
    http_fixture_done(&fixture);
}

static void test_late_answer_after_client_left(void **state)
{
    (void)state;
    struct http_fixture fixture;
    http_fixture_init(&fixture, loop, NULL);
    int fd = client_connect(fixture.port);
    CHECK("sent", client_send(loop, fd, GET("/later"), strlen(GET("/later"))));
    TURN_UNTIL(loop, fixture.later.generation != 0);
    struct linger cut = { .l_onoff = 1 };
    CHECK("linger", setsockopt(fd, SOL_SOCKET, SO_LINGER, &cut, sizeof(cut)) == 0);
    close(fd); /* a reset */
    TURN_UNTIL(loop, fixture.gone_count == 1);
    CHECK("nobody to answer", http_find(fixture.server, fixture.later) == NULL);

    /* The slot is used again, and the old reference does not reach the new request. */
    struct http_ref old = fixture.later;
    fd = client_connect(fixture.port);
    CHECK("sent", client_send(loop, fd, GET("/later"), strlen(GET("/later"))));
    TURN_UNTIL(loop, fixture.later.generation != old.generation);
    CHECK("the same slot", fixture.later.slot == old.slot);
    CHECK("another request", http_find(fixture.server, old) == NULL);
    CHECK("none", http_find(fixture.server, (struct http_ref){ 0 }) == NULL);
    http_respond(http_find(fixture.server, fixture.later),
                 &(struct http_response){ .status = 200 });
    CHECK("answered once", http_find(fixture.server, fixture.later) == NULL);
    close(fd);
    http_fixture_done(&fixture);
}

static void test_half_close(void **state)
{
    (void)state;
    struct http_fixture fixture;
    AUTO(buf) struct buf answer = { 0 };
    http_fixture_init(&fixture, loop, NULL);
    int fd = client_connect(fixture.port);
    CHECK("sent", client_send(loop, fd, GET("/later") GET("/b"), 2 * strlen(GET("/b")) + 4));
    CHECK("shutdown", shutdown(fd, SHUT_WR) == 0);
    TURN_UNTIL(loop, fixture.later.generation != 0);
    for (int i = 0; i < 5; i++)
        turn(loop, 1);
    struct http_request *later = http_find(fixture.server, fixture.later);
    CHECK("still waited for", later != NULL);
    http_respond(later, &(struct http_response){ .status = 202, .body = STR("late") });
    CHECK("closed after the last answer", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("both answers", has_text(&answer, "late") && has_text(&answer, "<b>"));
    close(fd);

    buf_clear(&answer);
    fd = client_connect(fixture.port);
    CHECK("sent", client_send(loop, fd, "GET /a HT", 9));
    CHECK("shutdown", shutdown(fd, SHUT_WR) == 0);
    CHECK("half a head is no request", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("no answer", answer.size == 0);
    close(fd);
    http_fixture_done(&fixture);
}

static void test_early_answer(void **state)
{
    (void)state;
    struct http_fixture fixture;
    AUTO(buf) struct buf answer = { 0 };
    http_fixture_init(&fixture, loop, NULL);
    int fd = client_connect(fixture.port);
    static const char head[] = "POST /denied HTTP/1.1\r\n" HOST "Content-Length: 500\r\n\r\n";
    CHECK("sent", client_send(loop, fd, head, strlen(head)));
    CHECK("refused before the body has come", client_read_until(loop, fd, &answer, "denied"));
    CHECK("status", status_of(&answer) == 403);
    char body[500];
    memset(body, 'G', sizeof(body));
    (void)client_send(loop, fd, body, sizeof(body));
    CHECK("closed", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("the body is not read as a request", count_text(&answer, "HTTP/1.1") == 1);
    close(fd);

    buf_clear(&answer);
    fd = client_connect(fixture.port);
    CHECK("sent",
          client_send(loop, fd, GET("/denied") GET("/a"), strlen(GET("/denied") GET("/a"))));
    CHECK("without a body it goes on", client_read_until(loop, fd, &answer, "<a>"));
    close(fd);
    http_fixture_done(&fixture);
}

static void test_continue(void **state)
{
    (void)state;
    struct http_fixture fixture;
    AUTO(buf) struct buf answer = { 0 };
    http_fixture_init(&fixture, loop, NULL);
    int fd = client_connect(fixture.port);
    static const char head[] =
        "POST /a HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    CHECK("sent", client_send(loop, fd, head, strlen(head)));
    CHECK("invited", client_read_until(loop, fd, &answer, "HTTP/1.1 100 Continue\r\n\r\n"));
    CHECK("sent", client_send(loop, fd, "abc", 3));
    CHECK("answered", client_read_until(loop, fd, &answer, "{abc}"));
    close(fd);

    buf_clear(&answer);
    fd = client_connect(fixture.port);
    static const char denied[] =
        "POST /denied HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    CHECK("sent", client_send(loop, fd, denied, strlen(denied)));
    CHECK("closed", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("not invited", status_of(&answer) == 403);
    close(fd);
    http_fixture_done(&fixture);
}

static void test_head_method(void **state)
{
    (void)state;
    struct http_fixture fixture;
    AUTO(buf) struct buf answer = { 0 };
    http_fixture_init(&fixture, loop, NULL);
    int fd = client_connect(fixture.port);
    static const char request[] = "HEAD /a HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n";
    CHECK("sent", client_send(loop, fd, request, strlen(request)));
    CHECK("closed", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("length", has_text(&answer, "Content-Length: 11\r\n"));
    CHECK("no body", !has_text(&answer, "[HEAD]"));
    close(fd);
    http_fixture_done(&fixture);
}

static void test_random_bytes(void **state)
{
    (void)state;
    struct http_fixture fixture;
    uint64_t seed = test_seed();
    http_fixture_init(&fixture, loop, NULL);
    static const char valid[] = "POST /a?x=1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                                "3\r\nabc\r\n0\r\n\r\n" GET("/b/c%20d");
    for (int round = 0; round < 300; round++) {
        AUTO(buf) struct buf bytes = { 0 };
        AUTO(buf) struct buf answer = { 0 };
        buf_add_text(&bytes, valid);
        for (size_t i = test_below(&seed, 6); i > 0; i--)
            bytes.data[test_below(&seed, bytes.size)] = (char)test_random(&seed);
        int fd = client_connect(fixture.port);
        size_t cut = test_below(&seed, bytes.size);
        (void)(client_send(loop, fd, bytes.data, cut) &&
               client_send(loop, fd, bytes.data + cut, bytes.size - cut));
        (void)shutdown(fd, SHUT_WR);
        CHECK("every client is let go of", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
        close(fd);
    }
    http_fixture_done(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_abuse, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_targets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_heads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slow_clients, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_idle_client, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pipelining, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_byte_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_late_answer_after_client_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_half_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_early_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_continue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_head_method, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_random_bytes, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net http", tests, NULL, NULL);
}
