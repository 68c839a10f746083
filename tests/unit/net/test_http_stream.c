#include "http_fixture.h"

static struct loop *loop;
static struct http_fixture fixture;

static int set_up(void **state)
{
    (void)state;
    struct error e;
    CHECK_OK("loop", loop_new(&loop, &e), &e);
    http_fixture_init(&fixture, loop, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_fixture_done(&fixture);
    loop_free(loop);
    return 0;
}

#define HOST "Host: berth.test\r\n"

static int request(const char *text)
{
    int fd = client_connect(fixture.port);
    CHECK(text, client_send(loop, fd, text, strlen(text)));
    return fd;
}

static struct http_request *later(void)
{
    return http_find(fixture.server, fixture.later);
}

/* --- Downloads. --- */

enum { DOWNLOAD = 3 * 1024 * 1024 };

static void test_download_with_length(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    fixture.stream_left = DOWNLOAD;
    int fd =
        request("GET /download?length=1 HTTP/1.1\r\n" HOST "\r\nGET /a HTTP/1.1\r\n" HOST "\r\n");
    CHECK("goes on", client_read_until(loop, fd, &answer, "<a>"));
    CHECK("length", has_text(&answer, "Content-Length: 3145728\r\n"));
    CHECK("all of it", count_text(&answer, "dd") >= DOWNLOAD - 1);
    CHECK("answered", fixture.answered_count == 2);
    close(fd);
}

static void test_download_chunked(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    fixture.stream_left = 20000;
    int fd = request("GET /download HTTP/1.1\r\n" HOST "\r\n");
    CHECK("end", client_read_until(loop, fd, &answer, "\r\n0\r\n\r\n"));
    CHECK("chunked", has_text(&answer, "Transfer-Encoding: chunked\r\n"));
    CHECK("chunks", has_text(&answer, "\r\n2000\r\ndd") && has_text(&answer, "\r\ne20\r\ndd"));
    close(fd);
}

static void test_download_is_bounded(void **state)
{
    (void)state;
    fixture.stream_left = 200 * MIB;
    size_t begin = fixture.stream_left;
    int fd = request("GET /download HTTP/1.1\r\n" HOST "\r\n");
    /* Nobody reads: what was written is the kernel's buffers and our queue, then the deadline. */
    TURN_UNTIL(loop, fixture.gone_count == 1);
    CHECK("bounded", begin - fixture.stream_left < 32 * MIB);
    CHECK("gone", later() == NULL);
    close(fd);
}

static void test_download_cut(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    fixture.stream_left = 200 * MIB;
    int fd = request("GET /download HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(loop, later() != NULL);
    http_stream_cut(later());
    CHECK("closed", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("no end of the body", !has_text(&answer, "\r\n0\r\n\r\n"));
    close(fd);
    TURN_UNTIL(loop, fixture.gone_count == 1);
}

/* --- Uploads. --- */

static void test_upload(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    AUTO(buf) struct buf body = { 0 };
    for (int i = 0; i < 500000; i++)
        buf_add_char(&body, (char)('a' + i % 26));
    int fd = request("POST /upload HTTP/1.1\r\n" HOST "Content-Length: 500000\r\n\r\n");
    CHECK("sent", client_send(loop, fd, body.data, body.size));
    CHECK("answered", client_read_until(loop, fd, &answer, "[POST]<upload>{}"));
    CHECK("all of it, in order", fixture.uploaded.size == body.size &&
                                     memcmp(fixture.uploaded.data, body.data, body.size) == 0);
    close(fd);
}

static void test_upload_client_leaves(void **state)
{
    (void)state;
    int fd = request("POST /upload HTTP/1.1\r\n" HOST "Content-Length: 500000\r\n\r\nabc");
    TURN_UNTIL(loop, fixture.uploaded.size == 3);
    close(fd);
    TURN_UNTIL(loop, fixture.gone_count == 1);
    CHECK("not taken for a whole one", fixture.answered_count == 0);
}

/* --- Feeds. --- */

static void send_event(size_t number, const char *data, enum err expected)
{
    AUTO(buf) struct buf event = { 0 };
    char id[24];
    (void)snprintf(id, sizeof(id), "%zu", number);
    http_event_format(&event, str_of(id), STR("change"), str_of(data));
    CHECK("sent", http_feed_send(later(), buf_str(&event), str_of(id)) == expected);
}

static void test_feed(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    int fd = request("GET /feed HTTP/1.1\r\n" HOST "\r\n");
    CHECK("head", client_read_until(loop, fd, &answer, "\r\n\r\n"));
    CHECK("type", has_text(&answer, "Content-Type: text/event-stream\r\n"));
    send_event(7, "two\nlines", ERR_OK);
    CHECK("event",
          client_read_until(loop, fd, &answer, "id: 7\nevent: change\ndata: two\ndata: lines\n\n"));
    CHECK("a sign of life in silence", client_read_until(loop, fd, &answer, ": ping\n\n"));
    CHECK("counted", http_server_stats(fixture.server).feed_count == 1);
    http_feed_end(later());
    CHECK("ended", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("counted", http_server_stats(fixture.server).feed_count == 0);
    close(fd);
}

static void test_feed_client_leaves(void **state)
{
    (void)state;
    int fd = request("GET /feed HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(loop, later() != NULL);
    close(fd);
    TURN_UNTIL(loop, fixture.gone_count == 1);
    CHECK("no feed", later() == NULL && http_server_stats(fixture.server).feed_count == 0);
}

/* The id of the last whole event in what a client has read. */
static size_t last_id(const struct buf *answer)
{
    size_t id = 0;
    const char *at = answer->data;
    for (;;) {
        const char *line = strstr(at, "\nid: ");
        if (line == NULL || strstr(line, "\n\n") == NULL)
            return id;
        id = strtoul(line + 5, NULL, 10);
        at = line + 5;
    }
}

static void test_slow_feed_is_dropped_with_a_resume_point(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    char data[4001];
    memset(data, 'e', sizeof(data) - 1);
    data[sizeof(data) - 1] = '\0';
    int slow = request("GET /feed HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(loop, later() != NULL);
    /* Events until the kernel's buffers and the feed's own queue are full. */
    size_t number = 0;
    enum err rc = ERR_OK;
    while (rc == ERR_OK) {
        AUTO(buf) struct buf event = { 0 };
        char id[24];
        (void)snprintf(id, sizeof(id), "%zu", ++number);
        http_event_format(&event, str_of(id), STR(""), str_of(data));
        rc = http_feed_send(later(), buf_str(&event), str_of(id));
        turn(loop, 0);
        CHECK("bounded", number < 20000);
    }
    CHECK("dropped", rc == ERR_LIMIT);
    CHECK("counted", http_server_stats(fixture.server).feed_drop_count == 1);
    if (later() != NULL)
        send_event(number, "x", ERR_LIMIT);
    CHECK("closed", client_read_to_end(loop, slow, &answer, PATIENCE_MS));
    TURN_UNTIL(loop, fixture.gone_count == 1);
    CHECK("resumes at the last event sent", last_id(&answer) == number - 1);
    CHECK("is told", has_text(&answer, "event: overflow\n"));
    close(slow);
}

/* One that does not read at all is cut by the write deadline and resumes at what it had. */
static void test_dead_feed_is_cut(void **state)
{
    (void)state;
    char data[60000];
    memset(data, 'e', sizeof(data) - 1);
    data[sizeof(data) - 1] = '\0';
    int fd = request("GET /feed HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(loop, later() != NULL);
    for (int i = 0; i < 1000 && later() != NULL; i++) {
        AUTO(buf) struct buf event = { 0 };
        http_event_format(&event, STR("1"), STR(""), str_of(data));
        if (http_feed_send(later(), buf_str(&event), STR("1")) != ERR_OK)
            break;
        turn(loop, 0);
    }
    TURN_UNTIL(loop, http_server_conn_count(fixture.server) == 0);
    CHECK("ended", fixture.gone_count == 1);
    close(fd);
}

/* --- The server's own end. --- */

static void test_drain(void **state)
{
    (void)state;
    AUTO(buf) struct buf idle_answer = { 0 };
    AUTO(buf) struct buf answer = { 0 };
    AUTO(buf) struct buf feed_answer = { 0 };
    int feed = request("GET /feed HTTP/1.1\r\n" HOST "\r\n");
    CHECK("feed", client_read_until(loop, feed, &feed_answer, "\r\n\r\n"));
    struct http_ref feed_ref = fixture.later;
    int busy = request("GET /later HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(loop, fixture.later.slot != feed_ref.slot);
    int idle = client_connect(fixture.port);
    TURN_UNTIL(loop, http_server_conn_count(fixture.server) == 3);
    http_server_drain(fixture.server);
    CHECK("idle", client_read_to_end(loop, idle, &idle_answer, PATIENCE_MS));
    CHECK("feed", client_read_to_end(loop, feed, &feed_answer, PATIENCE_MS));
    CHECK("the busy one waits for its answer", later() != NULL);
    http_respond(later(), &(struct http_response){ .status = 200, .body = STR("late") });
    CHECK("busy", client_read_to_end(loop, busy, &answer, PATIENCE_MS));
    CHECK("told", has_text(&answer, "Connection: close\r\n") && has_text(&answer, "late"));
    close(idle);
    close(feed);
    close(busy);
}

static void test_free_with_work_under_way(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    int one = request("GET /later HTTP/1.1\r\n" HOST "\r\n");
    int two = request("POST /upload HTTP/1.1\r\n" HOST "Content-Length: 500000\r\n\r\nabc");
    int three = request("GET /feed HTTP/1.1\r\n" HOST "\r\n");
    TURN_UNTIL(loop, fixture.request_count == 3);
    size_t gone = fixture.gone_count;
    http_server_free(fixture.server);
    CHECK("all ended at once", fixture.gone_count == gone + 3);
    CHECK("cut", client_read_to_end(loop, one, &answer, PATIENCE_MS));
    struct error e;
    static const struct http_handler handler = { .on_request = fixture_on_request };
    struct http_server_options options = { 0 };
    CHECK_OK("again", http_server_new(loop, &options, &handler, &fixture, &fixture.server, &e), &e);
    close(one);
    close(two);
    close(three);
}

static void test_connection_limit(void **state)
{
    (void)state;
    struct error e;
    struct listener *listener = NULL;
    AUTO(buf) struct buf answer = { 0 };
    struct listener_options options = {
        .address = "127.0.0.1",
        .conn_max = 2,
        .on_accept = fixture_on_accept,
        .arg = &fixture,
    };
    CHECK_OK("listen", listener_open(loop, &options, &listener, &e), &e);
    int first = client_connect(listener_port(listener));
    int second = client_connect(listener_port(listener));
    TURN_UNTIL(loop, listener_conn_count(listener) == 2);
    int third = client_connect(listener_port(listener));
    CHECK("one too many is closed", client_read_to_end(loop, third, &answer, PATIENCE_MS));
    CHECK("without a word", answer.size == 0);
    close(first);
    TURN_UNTIL(loop, listener_conn_count(listener) == 1);
    close(third);
    third = client_connect(listener_port(listener));
    CHECK("there is room again", client_send(loop, third, "GET /a HTTP/1.1\r\n" HOST "\r\n", 37));
    CHECK("answered", client_read_until(loop, third, &answer, "<a>"));
    close(second);
    close(third);
    TURN_UNTIL(loop, listener_conn_count(listener) == 0);
    listener_close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_download_with_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_download_chunked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_download_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_download_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_upload, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_upload_client_leaves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_feed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_feed_client_leaves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slow_feed_is_dropped_with_a_resume_point, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_dead_feed_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_drain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_free_with_work_under_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_connection_limit, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net http streams", tests, NULL, NULL);
}
