#include "http_fixture.h"
#include "net/websocket.h"

static struct loop *loop;
static struct http_fixture fixture;

struct socket_end {
    struct websocket *socket;
    struct buf received; /* "t:text " or "b:bytes " of each message */
    size_t message_count;
    size_t room_count;
    bool is_closed;
    unsigned code;
    bool echoes;
};

static struct socket_end end;

static void on_message(struct websocket *socket, struct str bytes, bool is_text, void *arg)
{
    struct socket_end *to = arg;
    to->message_count++;
    if (to->received.size < 1000)
        buf_format(&to->received, "%c:%.*s ", is_text ? 't' : 'b', STR_ARG(bytes));
    if (to->echoes)
        CHECK("echo", websocket_send(socket, bytes, is_text) == ERR_OK);
}

static void on_room(struct websocket *socket, void *arg)
{
    (void)socket;
    ((struct socket_end *)arg)->room_count++;
}

static void on_close(struct websocket *socket, unsigned code, const char *why, void *arg)
{
    struct socket_end *to = arg;
    (void)socket;
    (void)why;
    to->socket = NULL;
    to->is_closed = true;
    to->code = code;
}

static const struct websocket_events events = { on_message, on_room, on_close };

static void on_request(struct http_request *request, void *arg)
{
    (void)arg;
    struct websocket_options options = {
        .message_bytes_max = 1000,
        .queue_bytes_max = 32 * KIB,
    };
    if (str_is(http_request_segment(request, 0), "protocol"))
        options.subprotocol = "terminal";
    if (str_is(http_request_segment(request, 0), "impatient"))
        options.ping_ms = 100;
    enum err rc = websocket_accept(request, &options, &events, &end, &end.socket, NULL);
    CHECK("accepted or refused", rc == ERR_OK || rc == ERR_INVALID);
}

static int set_up(void **state)
{
    (void)state;
    struct error e;
    static const struct http_handler handler = { .on_request = on_request };
    CHECK_OK("loop", loop_new(&loop, &e), &e);
    http_fixture_init(&fixture, loop, NULL);
    http_server_free(fixture.server);
    CHECK_OK("server",
             http_server_new(loop, &(struct http_server_options){ 0 }, &handler, NULL,
                             &fixture.server, &e),
             &e);
    end.echoes = true;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    TURN_UNTIL(loop, listener_conn_count(fixture.listener) == 0);
    http_fixture_done(&fixture);
    loop_free(loop);
    buf_done(&end.received);
    end = (struct socket_end){ 0 };
    return 0;
}

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define HANDSHAKE                                                                                  \
    "Host: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"                         \
    "Sec-WebSocket-Version: 13\r\n"

static int open_socket_at(const char *path, struct buf *answer)
{
    AUTO(buf) struct buf request = { 0 };
    int fd = client_connect(fixture.port);
    buf_format(&request, "GET %s HTTP/1.1\r\n" HANDSHAKE KEY "\r\n", path);
    CHECK("sent", client_send(loop, fd, request.data, request.size));
    CHECK("upgraded", client_read_until(loop, fd, answer, "\r\n\r\n"));
    CHECK("status", has_text(answer, "HTTP/1.1 101 "));
    CHECK("accept", has_text(answer, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    buf_clear(answer);
    return fd;
}

static int open_socket(struct buf *answer)
{
    return open_socket_at("/ws", answer);
}

/* A frame as a client sends it: masked with zeros unless `is_bare`. */
static void add_frame(struct buf *out, unsigned first, const char *payload, size_t size,
                      bool is_bare)
{
    buf_add_char(out, (char)first);
    if (size < 126) {
        buf_add_char(out, (char)(size | (is_bare ? 0 : 0x80)));
    } else {
        buf_add_char(out, (char)(126 | (is_bare ? 0 : 0x80)));
        buf_add_char(out, (char)(size >> 8));
        buf_add_char(out, (char)(size & 0xff));
    }
    if (!is_bare)
        buf_add(out, "\0\0\0\0", 4);
    buf_add(out, payload, size);
}

static void send_frame(int fd, unsigned first, const char *payload)
{
    AUTO(buf) struct buf frame = { 0 };
    add_frame(&frame, first, payload, strlen(payload), false);
    (void)client_send(loop, fd, frame.data, frame.size);
}

enum { TEXT = 0x81, BINARY = 0x82, CLOSE = 0x88, PING = 0x89, PONG = 0x8a };

static void test_echo(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    int fd = open_socket(&answer);
    send_frame(fd, TEXT, "hello");
    CHECK("echoed", client_read_until(loop, fd, &answer, "\x81\x05hello"));
    send_frame(fd, BINARY, "\xff\xfe");
    CHECK("binary", client_read_until(loop, fd, &answer, "\x82\x02\xff\xfe"));
    send_frame(fd, 0x01, "one ");
    send_frame(fd, PING, "p");
    send_frame(fd, 0x80, "message");
    CHECK("a ping between fragments", client_read_until(loop, fd, &answer, "\x8a\x01p"));
    CHECK("one message", client_read_until(loop, fd, &answer, "\x81\x0bone message"));
    send_frame(fd, CLOSE, "\x03\xe8");
    CHECK("closed", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("with a close frame", has_text(&answer, "\x88\x02\x03\xe8"));
    close(fd);
    TURN_UNTIL(loop, end.is_closed);
    CHECK("code", end.code == 1000);
}

static void test_data_with_the_handshake(void **state)
{
    (void)state;
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(buf) struct buf answer = { 0 };
    buf_add_text(&bytes, "GET /ws HTTP/1.1\r\n" HANDSHAKE KEY "\r\n");
    add_frame(&bytes, TEXT, "early", 5, false);
    int fd = client_connect(fixture.port);
    CHECK("sent", client_send(loop, fd, bytes.data, bytes.size));
    CHECK("echoed", client_read_until(loop, fd, &answer,
                                      "\x81\x05"
                                      "early"));
    close(fd);
    TURN_UNTIL(loop, end.is_closed);
    CHECK("no close frame came", end.code == 1006);
}

struct handshake_case {
    const char *name;
    const char *request;
    const char *status;
};

static const struct handshake_case handshake_cases[] = {
    { "no upgrade at all", "GET /ws HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 426 " },
    { "another protocol",
      "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n" KEY "\r\n",
      "HTTP/1.1 426 " },
    { "no Connection: Upgrade",
      "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" KEY
      "\r\n",
      "HTTP/1.1 426 " },
    { "an old version",
      "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Version: 8\r\n" KEY "\r\n",
      "HTTP/1.1 426 " },
    { "a POST", "POST /ws HTTP/1.1\r\n" HANDSHAKE KEY "\r\n", "HTTP/1.1 426 " },
    { "no key", "GET /ws HTTP/1.1\r\n" HANDSHAKE "\r\n", "HTTP/1.1 400 " },
    { "a short key", "GET /ws HTTP/1.1\r\n" HANDSHAKE "Sec-WebSocket-Key: YQ==\r\n\r\n",
      "HTTP/1.1 400 " },
    { "a key that is not base64",
      "GET /ws HTTP/1.1\r\n" HANDSHAKE "Sec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!==\r\n\r\n",
      "HTTP/1.1 400 " },
    { "two keys", "GET /ws HTTP/1.1\r\n" HANDSHAKE KEY KEY "\r\n", "HTTP/1.1 400 " },
    { "our subprotocol is not offered", "GET /protocol HTTP/1.1\r\n" HANDSHAKE KEY "\r\n",
      "HTTP/1.1 400 " },
    { "our subprotocol among others",
      "GET /protocol HTTP/1.1\r\n" HANDSHAKE KEY "Sec-WebSocket-Protocol: x, terminal\r\n\r\n",
      "HTTP/1.1 101 " },
};

static void test_handshakes(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, handshake_cases) {
        AUTO(buf) struct buf answer = { 0 };
        int fd = client_connect(fixture.port);
        CHECK(c->name, client_send(loop, fd, c->request, strlen(c->request)));
        CHECK(c->name, client_read_until(loop, fd, &answer, "\r\n\r\n"));
        CHECK(c->name, has_text(&answer, c->status));
        close(fd);
    }
    TURN_UNTIL(loop, end.is_closed);
}

struct hostile_case {
    const char *name;
    unsigned first;
    const char *payload;
    size_t size;
    bool is_bare;
    unsigned code; /* that we close with; 0: wslay says none */
};

#define BYTES(text) (text), sizeof(text) - 1

static const struct hostile_case hostile_cases[] = {
    { "an unmasked frame", TEXT, BYTES("x"), true, 1002 },
    { "a reserved bit", 0xc1, BYTES("x"), false, 1002 },
    { "an opcode that does not exist", 0x83, BYTES("x"), false, 1002 },
    { "a control opcode that does not exist", 0x8b, BYTES("x"), false, 1002 },
    { "a fragmented ping", 0x09, BYTES("x"), false, 0 },
    { "a continuation of nothing", 0x80, BYTES("x"), false, 1002 },
    { "text that is not UTF-8", TEXT, BYTES("\xc0\xaf"), false, 1007 },
    { "a close of one byte", CLOSE, BYTES("\x03"), false, 0 },
    { "a close with a code of nobody", CLOSE, BYTES("\x03\xed"), false, 0 },
};

static void check_close(const char *name, int fd, unsigned code)
{
    AUTO(buf) struct buf answer = { 0 };
    CHECK(name, client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    bool has_code = answer.size >= 2 && (unsigned char)answer.data[0] == CLOSE &&
                    (code == 0 || (answer.size >= 4 && (unsigned char)answer.data[2] * 256u +
                                                               (unsigned char)answer.data[3] ==
                                                           code));
    for (size_t i = 0; i < answer.size && !has_code; i++)
        print_error("%02x ", (unsigned char)answer.data[i]);
    CHECK(name, has_code);
    close(fd);
    TURN_UNTIL(loop, end.is_closed);
    CHECK(name, end.message_count == 0);
    end.is_closed = false;
}

static void test_hostile_frames(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, hostile_cases) {
        AUTO(buf) struct buf answer = { 0 };
        AUTO(buf) struct buf frame = { 0 };
        int fd = open_socket(&answer);
        add_frame(&frame, c->first, c->payload, c->size, c->is_bare);
        CHECK(c->name, client_send(loop, fd, frame.data, frame.size));
        check_close(c->name, fd, c->code);
    }
    AUTO(buf) struct buf answer = { 0 };
    AUTO(buf) struct buf frame = { 0 };
    char *large = mem_new(1001, 1);
    int fd = open_socket(&answer);
    add_frame(&frame, BINARY, large, 1001, false);
    mem_free(large);
    (void)client_send(loop, fd, frame.data, frame.size);
    check_close("a message larger than the bound", fd, 1009);

    fd = open_socket(&answer);
    static const char huge[] = "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0x";
    (void)client_send(loop, fd, huge, sizeof(huge) - 1);
    check_close("a frame of 2^63 bytes", fd, 1009);
}

static void test_queue_bound(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    int fd = open_socket(&answer);
    char block[8000] = { 0 };
    enum err rc = ERR_OK;
    for (int i = 0; i < 100000 && rc == ERR_OK; i++) {
        rc = websocket_send(end.socket, (struct str){ block, sizeof(block) }, false);
        turn(loop, 0);
    }
    CHECK("bounded", rc == ERR_LIMIT);
    int64_t end_ms = now_ms() + PATIENCE_MS;
    while (end.room_count == 0 && now_ms() < end_ms) {
        (void)client_read(fd, &answer);
        turn(loop, 1);
    }
    CHECK("room is told", end.room_count == 1);
    close(fd);
    TURN_UNTIL(loop, end.is_closed);
}

static void test_close_from_here(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    int fd = open_socket(&answer);
    websocket_close(end.socket, 4001, "enough");
    CHECK("nothing after it", websocket_send(end.socket, STR("x"), true) == ERR_UNAVAILABLE);
    CHECK("told", client_read_until(loop, fd, &answer,
                                    "\x88\x08\x0f\xa1"
                                    "enough"));
    send_frame(fd, CLOSE, "\x0f\xa1");
    CHECK("closed", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    close(fd);
    TURN_UNTIL(loop, end.is_closed);
    CHECK("code", end.code == 4001);
}

static void test_silence(void **state)
{
    (void)state;
    AUTO(buf) struct buf answer = { 0 };
    int fd = open_socket_at("/impatient", &answer);
    CHECK("pinged", client_read_until(loop, fd, &answer, "\x89"));
    CHECK("then cut", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    close(fd);
    TURN_UNTIL(loop, end.is_closed);
    CHECK("code", end.code == 1006);
}

static void add_random_frame(struct buf *out, uint64_t *seed)
{
    char payload[8];
    size_t size = test_below(seed, sizeof(payload));
    for (size_t i = 0; i < size; i++)
        payload[i] = (char)test_random(seed);
    add_frame(out, (unsigned)test_below(seed, 256), payload, size, test_below(seed, 10) == 0);
}

static void send_random_frames(uint64_t *seed)
{
    AUTO(buf) struct buf answer = { 0 };
    AUTO(buf) struct buf bytes = { 0 };
    int fd = open_socket(&answer);
    for (size_t count = test_below(seed, 12); count > 0; count--)
        add_random_frame(&bytes, seed);
    (void)client_send(loop, fd, bytes.data, bytes.size);
    (void)shutdown(fd, SHUT_WR);
    CHECK("let go", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    close(fd);
    TURN_UNTIL(loop, end.is_closed);
    end.is_closed = false;
}

static void test_random_frames(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    end.echoes = false;
    for (int round = 0; round < 200; round++)
        send_random_frames(&seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_echo, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_data_with_the_handshake, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_handshakes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_queue_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_close_from_here, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_silence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_random_frames, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net websocket", tests, NULL, NULL);
}
