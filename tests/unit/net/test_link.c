#include "net/link.h"
#include "tls_fixture.h"

enum { MESSAGE_MAX = 300000, STREAMS = 4, TEST_KEEPALIVE_MS = 60, BULK = 4 * 1024 * 1024 };

static struct loop *loop;

struct stream_end {
    struct link_stream *stream;
    struct buf received;
    bool holds_credit; /* a reader that has stalled */
    bool has_ended;
    bool is_closed;
    uint32_t code;
    char text[300];
    size_t to_send; /* bytes still to write, of `fill` */
};

struct side {
    struct link *link;
    bool is_up;
    bool is_down;
    char why[300];
    struct buf messages; /* "type:size:first byte " of each */
    size_t message_count;
    size_t room_count;
    size_t stream_count;
    char header[64];
    struct stream_end streams[STREAMS];
};

static struct side server;
static struct side client;

/* --- What both sides do. --- */

static void write_more(struct stream_end *end)
{
    char block[10000];
    memset(block, 's', sizeof(block));
    while (end->to_send > 0) {
        struct str bytes = { block, MIN_OF(sizeof(block), end->to_send) };
        size_t taken = link_stream_write(end->stream, bytes);
        end->to_send -= taken;
        if (taken < bytes.size)
            return;
    }
}

static void on_stream_data(struct link_stream *stream, struct str bytes, void *arg)
{
    struct stream_end *end = arg;
    buf_add_str(&end->received, bytes);
    if (!end->holds_credit)
        link_stream_credit(stream, bytes.size);
}

static void on_stream_room(struct link_stream *stream, void *arg)
{
    (void)stream;
    write_more(arg);
}

static void on_stream_end(struct link_stream *stream, void *arg)
{
    (void)stream;
    ((struct stream_end *)arg)->has_ended = true;
}

static void on_stream_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    (void)stream;
    struct stream_end *end = arg;
    end->stream = NULL;
    end->is_closed = true;
    end->code = code;
    (void)snprintf(end->text, sizeof(end->text), "%.*s", STR_ARG(text));
}

static const struct link_stream_events stream_events = {
    .on_data = on_stream_data,
    .on_room = on_stream_room,
    .on_end = on_stream_end,
    .on_close = on_stream_close,
};

static void on_up(struct link *link, void *arg)
{
    (void)link;
    ((struct side *)arg)->is_up = true;
}

static void on_message(struct link *link, uint16_t type, struct str payload, void *arg)
{
    (void)link;
    struct side *side = arg;
    side->message_count++;
    buf_format(&side->messages, "%u:%zu:%c ", (unsigned)type, payload.size,
               payload.size > 0 ? payload.data[0] : '-');
}

static void on_link_room(struct link *link, void *arg)
{
    (void)link;
    ((struct side *)arg)->room_count++;
}

static void on_stream(struct link *link, struct link_stream *stream, struct str header, void *arg)
{
    (void)link;
    struct side *side = arg;
    (void)snprintf(side->header, sizeof(side->header), "%.*s", STR_ARG(header));
    if (str_is(header, "unwanted"))
        return;
    struct stream_end *end = &side->streams[side->stream_count++ % STREAMS];
    end->stream = stream;
    end->holds_credit = str_is(header, "stalled");
    link_stream_set_events(stream, &stream_events, end);
}

static void on_down(struct link *link, const char *why, void *arg)
{
    (void)link;
    struct side *side = arg;
    side->is_down = true;
    side->link = NULL;
    (void)snprintf(side->why, sizeof(side->why), "%s", why);
}

static const struct link_events link_events = {
    .on_up = on_up,
    .on_message = on_message,
    .on_room = on_link_room,
    .on_stream = on_stream,
    .on_down = on_down,
};

static const struct link_options link_options = {
    .message_bytes_max = MESSAGE_MAX,
    .stream_max = STREAMS,
    .keepalive_ms = TEST_KEEPALIVE_MS,
};

static void on_accept(struct conn *conn, void *arg)
{
    struct side *side = arg;
    side->link = link_accept(conn, &link_options, &link_events, side);
    side->is_up = true;
}

/* --- Set-up. --- */

static void side_done(struct side *side)
{
    buf_done(&side->messages);
    for (size_t i = 0; i < STREAMS; i++)
        buf_done(&side->streams[i].received);
    *side = (struct side){ 0 };
}

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
    side_done(&server);
    side_done(&client);
    loop_free(loop);
    return 0;
}

static struct listener *listen_plain(void)
{
    struct error e;
    struct listener *listener = NULL;
    struct listener_options options = {
        .address = "127.0.0.1",
        .on_accept = on_accept,
        .arg = &server,
    };
    CHECK_OK("listen", listener_open(loop, &options, &listener, &e), &e);
    return listener;
}

static struct listener *connect_both(void)
{
    struct listener *listener = listen_plain();
    struct conn_dial_options dial = { .host = "127.0.0.1", .port = listener_port(listener) };
    client.link = link_dial(loop, &dial, &link_options, &link_events, &client);
    TURN_UNTIL(loop, client.is_up && server.is_up);
    return listener;
}

static void disconnect(struct listener *listener)
{
    if (client.link != NULL)
        link_close(client.link, "done");
    TURN_UNTIL(loop, (client.is_down || client.link == NULL) && server.is_down);
    TURN_UNTIL(loop, listener_conn_count(listener) == 0);
    listener_close(listener);
}

static struct link_stream *open_stream(struct stream_end *end, const char *header)
{
    end->stream = link_stream_open(client.link, str_of(header), &stream_events, end);
    CHECK(header, end->stream != NULL);
    return end->stream;
}

/* --- Messages. --- */

static void test_messages(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    char *big = mem_new(MESSAGE_MAX, 1);
    memset(big, 'b', MESSAGE_MAX);
    CHECK("small", link_send(client.link, 7, STR("hello")) == ERR_OK);
    CHECK("empty", link_send(client.link, 8, STR("")) == ERR_OK);
    CHECK("as large as is taken",
          link_send(client.link, 65535, (struct str){ big, MESSAGE_MAX }) == ERR_OK);
    CHECK("after it", link_send(client.link, 9, STR("x")) == ERR_OK);
    CHECK("the other way", link_send(server.link, 1, STR("y")) == ERR_OK);
    TURN_UNTIL(loop, server.message_count == 4 && client.message_count == 1);
    CHECK("in order", strcmp(server.messages.data, "7:5:h 8:0:- 65535:300000:b 9:1:x ") == 0);
    CHECK("beyond the protocol",
          link_send(client.link, 1, (struct str){ big, LINK_MESSAGE_MAX + 1 }) == ERR_LIMIT);
    mem_free(big);
    disconnect(listener);
    CHECK("why", strstr(server.why, "done") != NULL);
}

static void test_message_too_large_for_receiver(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    char *big = mem_new(MESSAGE_MAX + 1, 1);
    CHECK("queued", link_send(client.link, 1, (struct str){ big, MESSAGE_MAX + 1 }) == ERR_OK);
    mem_free(big);
    TURN_UNTIL(loop, server.is_down && client.is_down);
    CHECK("refused with the reason", strstr(client.why, "larger than is taken") != NULL);
    CHECK("not delivered", server.message_count == 0);
    CHECK("a link that is down takes nothing", client.link == NULL);
    listener_close(listener);
}

static void test_queue_bound(void **state)
{
    (void)state;
    struct listener *listener = listen_plain();
    struct conn_dial_options dial = { .host = "127.0.0.1", .port = listener_port(listener) };
    struct link_options options = link_options;
    options.queue_bytes_max = 500000;
    client.link = link_dial(loop, &dial, &options, &link_events, &client);
    /* Sent before it is up: waits. */
    char *block = mem_new(100000, 1);
    size_t sent = 0;
    while (link_send(client.link, 1, (struct str){ block, 100000 }) == ERR_OK)
        sent++;
    CHECK("bounded", sent == 5 && link_queued(client.link) == 500000);
    TURN_UNTIL(loop, server.message_count == sent);
    CHECK("room is told", client.room_count == 1);
    mem_free(block);
    disconnect(listener);
}

/* --- Streams. --- */

static void test_stream_both_ways(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    struct stream_end *mine = &client.streams[0];
    struct stream_end *theirs = &server.streams[0];
    open_stream(mine, "echo");
    CHECK("written", link_stream_write(mine->stream, STR("ping")) == 4);
    TURN_UNTIL(loop, theirs->received.size == 4);
    CHECK("header", strcmp(server.header, "echo") == 0);
    CHECK("back", link_stream_write(theirs->stream, STR("pong")) == 4);
    link_stream_end(mine->stream);
    TURN_UNTIL(loop, mine->received.size == 4 && theirs->has_ended);
    CHECK("half-closed: the other half goes on",
          link_stream_write(theirs->stream, STR("more")) == 4);
    link_stream_close(theirs->stream, 142, STR("exit"));
    theirs->stream = NULL;
    TURN_UNTIL(loop, mine->is_closed);
    CHECK("all that was written came first", mine->received.size == 8);
    CHECK("code and text", mine->code == 142 && strcmp(mine->text, "exit") == 0);
    disconnect(listener);
}

static void test_bulk(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    struct stream_end *mine = &client.streams[0];
    open_stream(mine, "bulk");
    TURN_UNTIL(loop, server.streams[0].stream != NULL);
    mine->to_send = BULK;
    server.streams[0].to_send = BULK;
    write_more(mine);
    write_more(&server.streams[0]);
    TURN_UNTIL(loop, server.streams[0].received.size == BULK && mine->received.size == BULK);
    link_stream_close(mine->stream, LINK_CODE_OK, STR(""));
    TURN_UNTIL(loop, server.streams[0].is_closed);
    disconnect(listener);
}

static void test_stalled_stream_slows_no_other(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    struct stream_end *stalled = &client.streams[0];
    struct stream_end *lively = &client.streams[1];
    open_stream(stalled, "stalled");
    open_stream(lively, "lively");
    stalled->to_send = 2 * MIB;
    write_more(stalled);
    lively->to_send = 5 * MIB;
    write_more(lively);
    TURN_UNTIL(loop, server.streams[1].received.size == 5 * MIB);
    CHECK("the stalled one got its window and no more",
          server.streams[0].received.size == LINK_WINDOW);
    CHECK("its sender waits", link_stream_room(stalled->stream) == 0 && stalled->to_send > 0);
    CHECK("messages pass", link_send(client.link, 1, STR("x")) == ERR_OK);
    TURN_UNTIL(loop, server.message_count == 1);

    server.streams[0].holds_credit = false;
    link_stream_credit(server.streams[0].stream, LINK_WINDOW);
    TURN_UNTIL(loop, server.streams[0].received.size == 2 * MIB);
    disconnect(listener);
    CHECK("down closes streams", stalled->is_closed && stalled->code == LINK_CODE_DOWN);
}

static void test_message_beside_bulk(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    char *big = mem_new(MESSAGE_MAX, 1);
    open_stream(&client.streams[0], "bulk");
    client.streams[0].to_send = 8 * MIB;
    write_more(&client.streams[0]);
    for (int i = 0; i < 10; i++)
        CHECK("big", link_send(client.link, 1, (struct str){ big, MESSAGE_MAX }) == ERR_OK);
    TURN_UNTIL(loop, server.message_count == 10 && server.streams[0].received.size == 8 * MIB);
    mem_free(big);
    disconnect(listener);
}

static void test_streams_refused(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    open_stream(&client.streams[0], "unwanted");
    TURN_UNTIL(loop, client.streams[0].is_closed);
    CHECK("nobody took it", client.streams[0].code == LINK_CODE_REFUSED);
    struct stream_end ends[STREAMS + 1] = { 0 };
    for (size_t i = 0; i <= STREAMS; i++)
        open_stream(&ends[i], "one");
    TURN_UNTIL(loop, ends[STREAMS].is_closed);
    CHECK("one too many", ends[STREAMS].code == LINK_CODE_LIMIT);
    CHECK("the others live", !ends[0].is_closed);
    link_stream_close(ends[0].stream, LINK_CODE_OK, STR(""));
    ends[STREAMS].is_closed = false;
    open_stream(&ends[STREAMS], "again");
    CHECK("written", link_stream_write(ends[STREAMS].stream, STR("x")) == 1);
    TURN_UNTIL(loop, server.streams[0].received.size == 1);
    disconnect(listener);
}

/* Data that was under way when we closed is not an offence. */
static void test_crossing_close(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    open_stream(&client.streams[0], "a");
    TURN_UNTIL(loop, server.streams[0].stream != NULL);
    CHECK("written", link_stream_write(client.streams[0].stream, STR("late")) == 4);
    link_stream_close(server.streams[0].stream, LINK_CODE_OK, STR(""));
    TURN_UNTIL(loop, client.streams[0].is_closed);
    CHECK("alive", link_send(client.link, 1, STR("x")) == ERR_OK);
    TURN_UNTIL(loop, server.message_count == 1);
    disconnect(listener);
}

static void test_keepalive(void **state)
{
    (void)state;
    struct listener *listener = connect_both();
    int64_t end_ms = now_ms() + INT64_C(6) * TEST_KEEPALIVE_MS;
    TURN_UNTIL(loop, now_ms() >= end_ms);
    CHECK("a quiet link stays up", !client.is_down && !server.is_down);
    disconnect(listener);
}

/* --- Hostile peers, on a raw socket. --- */

#define FRAME(size, type, flags, stream)                                                           \
    "\0\0" size type flags "\0\0"                                                                  \
    "\0\0\0" stream

struct hostile_case {
    const char *name;
    const char *bytes;
    size_t size;
    const char *why; /* NULL: no offence */
};

#define BYTES(text) (text), sizeof(text) - 1

/* clang-format off */
static const struct hostile_case hostile_cases[] = {
    { "a message", BYTES(FRAME("\0\7", "\1", "\1", "\0") "\0\1" "\0\0\0\1" "x"), NULL },
    { "a type that does not exist", BYTES(FRAME("\0\0", "\10", "\0", "\0")), "does not have" },
    { "type 0", BYTES(FRAME("\0\0", "\0", "\0", "\0")), "does not have" },
    { "type 255", BYTES(FRAME("\0\0", "\377", "\0", "\0")), "does not have" },
    { "a reserved bit", BYTES("\0\0\0\0" "\3" "\0" "\0\1" "\0\0\0\1"), "does not have" },
    { "a flag that does not exist", BYTES(FRAME("\0\0", "\2", "\2", "\1")), "does not have" },
    { "a payload beyond 64 KiB", BYTES("\0\1\0\1" "\1" "\1" "\0\0" "\0\0\0\0"), "does not have" },
    { "a payload of 4 GiB", BYTES("\377\377\377\377" "\1" "\1" "\0\0" "\0\0\0\0"), "does not have" },
    { "a message on a stream", BYTES(FRAME("\0\7", "\1", "\1", "\1") "\0\1" "\0\0\0\1" "x"), "does not have" },
    { "data on stream 0", BYTES(FRAME("\0\1", "\3", "\0", "\0") "x"), "does not have" },
    { "a ping of the wrong size", BYTES(FRAME("\0\1", "\6", "\0", "\0") "x"), "does not have" },
    { "a message without its head", BYTES(FRAME("\0\1", "\1", "\1", "\0") "x"), "inside another" },
    { "a message inside a message",
      BYTES(FRAME("\0\7", "\1", "\1", "\0") "\0\1" "\0\0\0\2" "x" FRAME("\0\7", "\1", "\1", "\0") "\0\1" "\0\0\0\1" "x"), "inside another" },
    { "a part of no message", BYTES(FRAME("\0\1", "\1", "\0", "\0") "x"), "part of no message" },
    { "an empty part", BYTES(FRAME("\0\6", "\1", "\1", "\0") "\0\1" "\0\0\0\2" FRAME("\0\0", "\1", "\0", "\0")), "part of no message" },
    { "a message longer than it says", BYTES(FRAME("\0\10", "\1", "\1", "\0") "\0\1" "\0\0\0\1" "xy"), "longer than it said" },
    { "a message of 4 GiB", BYTES(FRAME("\0\6", "\1", "\1", "\0") "\0\1" "\377\377\377\377"), "larger than is taken" },
    { "data of a stream never opened", BYTES(FRAME("\0\1", "\3", "\0", "\1") "x"), "never opened" },
    { "data of a stream of ours never opened", BYTES(FRAME("\0\1", "\3", "\0", "\2") "x"), "never opened" },
    { "credit for no stream", BYTES(FRAME("\0\4", "\4", "\0", "\1") "\0\0\0\1"), "credit for no stream" },
    { "the end of no stream", BYTES(FRAME("\0\4", "\5", "\0", "\1") "\0\0\0\0"), "never opened" },
    { "a stream under our numbers", BYTES(FRAME("\0\0", "\2", "\0", "\2")), "not free" },
    { "a stream opened twice", BYTES(FRAME("\0\1", "\2", "\0", "\1") "a" FRAME("\0\1", "\2", "\0", "\1") "a"), "not free" },
    { "a stream below the last", BYTES(FRAME("\0\1", "\2", "\0", "\3") "a" FRAME("\0\1", "\2", "\0", "\1") "a"), "not free" },
    { "no credit", BYTES(FRAME("\0\1", "\2", "\0", "\1") "a" FRAME("\0\4", "\4", "\0", "\1") "\0\0\0\0"), "more credit" },
    { "credit that was not used", BYTES(FRAME("\0\1", "\2", "\0", "\1") "a" FRAME("\0\4", "\4", "\0", "\1") "\0\0\0\1"), "more credit" },
    { "empty data", BYTES(FRAME("\0\1", "\2", "\0", "\1") "a" FRAME("\0\0", "\3", "\0", "\1")), "none at all" },
    { "data after the end",
      BYTES(FRAME("\0\1", "\2", "\0", "\1") "a" FRAME("\0\1", "\3", "\1", "\1") "x" FRAME("\0\1", "\3", "\0", "\1") "x"), "after the end" },
    { "the end of the link", BYTES(FRAME("\0\5", "\5", "\0", "\0") "\0\0\0\0" "x"), "closed by the peer: x" },
    { "an HTTP request", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "does not have" },
};
/* clang-format on */

static void wait_for_message(void)
{
    TURN_UNTIL(loop, server.message_count == 1);
}

static void check_hostile(const struct hostile_case *c, struct listener *listener)
{
    AUTO(buf) struct buf answer = { 0 };
    int fd = client_connect(listener_port(listener));
    (void)client_send(loop, fd, c->bytes, c->size);
    if (c->why == NULL) {
        wait_for_message();
        CHECK(c->name, !server.is_down);
    } else {
        CHECK(c->name, client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    }
    close(fd);
    TURN_UNTIL(loop, server.is_down);
    CHECK(c->name, c->why == NULL || strstr(server.why, c->why) != NULL);
    CHECK(c->name, server.message_count == (c->why == NULL ? 1 : 0));
    side_done(&server);
}

static void test_hostile_frames(void **state)
{
    (void)state;
    struct listener *listener = listen_plain();
    FOR_EACH_CASE (c, hostile_cases)
        check_hostile(c, listener);
    listener_close(listener);
}

/* More data than the window, from a peer that ignores credit. */
static void test_credit_violation(void **state)
{
    (void)state;
    struct listener *listener = listen_plain();
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(buf) struct buf answer = { 0 };
    static const char open[] = FRAME("\0\7", "\2", "\0", "\1") "stalled";
    static const char data[] = FRAME("\200\0", "\3", "\0", "\1"); /* 32 KiB */
    buf_add(&bytes, open, sizeof(open) - 1);
    for (int i = 0; i < LINK_WINDOW / 32768 + 1; i++) {
        buf_add(&bytes, data, sizeof(data) - 1);
        for (int j = 0; j < 32768; j++)
            buf_add_char(&bytes, 'x');
    }
    int fd = client_connect(listener_port(listener));
    (void)client_send(loop, fd, bytes.data, bytes.size);
    CHECK("let go", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("told why", has_text(&answer, "more data than was credited"));
    close(fd);
    TURN_UNTIL(loop, server.is_down);
    CHECK("no more than the window", server.streams[0].received.size == LINK_WINDOW);
    listener_close(listener);
}

/* Pings without end, and never a look at the answers. */
static void test_ping_flood(void **state)
{
    (void)state;
    struct listener *listener = listen_plain();
    AUTO(buf) struct buf pings = { 0 };
    static const char ping[] = FRAME("\0\10", "\6", "\0", "\0") "12345678";
    for (int i = 0; i < 5000; i++)
        buf_add(&pings, ping, sizeof(ping) - 1);
    int fd = client_connect(listener_port(listener));
    int small = 4096;
    CHECK("buffer", setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);
    int64_t end_ms = now_ms() + PATIENCE_MS;
    size_t at = 0;
    while (!server.is_down) {
        CHECK("in time", now_ms() < end_ms);
        ssize_t sent = send(fd, pings.data + at, pings.size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            at = (at + (size_t)sent) % pings.size;
        turn(loop, 0);
    }
    CHECK("why", strstr(server.why, "asks more than it reads") != NULL);
    close(fd);
    TURN_UNTIL(loop, listener_conn_count(listener) == 0);
    listener_close(listener);
}

static void test_silent_peer(void **state)
{
    (void)state;
    struct listener *listener = listen_plain();
    AUTO(buf) struct buf answer = { 0 };
    int fd = client_connect(listener_port(listener));
    int64_t begin_ms = now_ms();
    CHECK("let go", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    CHECK("not at once", now_ms() - begin_ms >= INT64_C(3) * TEST_KEEPALIVE_MS - 20);
    CHECK("pinged first", answer.size >= 20 && answer.data[4] == 6);
    close(fd);
    TURN_UNTIL(loop, server.is_down && listener_conn_count(listener) == 0);
    listener_close(listener);
}

static void test_byte_at_a_time(void **state)
{
    (void)state;
    struct listener *listener = listen_plain();
    static const char bytes[] =
        FRAME("\0\7", "\1", "\1", "\0") "\0\1"
                                        "\0\0\0\3"
                                        "a" FRAME("\0\2", "\1", "\0", "\0") "bc" FRAME(
                                            "\0\4", "\2", "\0", "\1") "echo" FRAME("\0\1", "\3",
                                                                                   "\0", "\1") "z";
    int fd = client_connect(listener_port(listener));
    for (size_t i = 0; i < sizeof(bytes) - 1; i++)
        CHECK("a byte", client_send(loop, fd, bytes + i, 1));
    TURN_UNTIL(loop, server.streams[0].received.size == 1);
    CHECK("the message", strcmp(server.messages.data, "1:3:a ") == 0);
    close(fd);
    TURN_UNTIL(loop, server.is_down && listener_conn_count(listener) == 0);
    listener_close(listener);
}

static void add_random_frame(struct buf *out, uint64_t *seed)
{
    size_t size = test_below(seed, 12);
    char header[12] = { 0 };
    header[3] = (char)size;
    header[4] = (char)test_below(seed, 8);
    header[5] = (char)test_below(seed, 2);
    header[11] = (char)test_below(seed, 4);
    buf_add(out, header, sizeof(header));
    for (; size > 0; size--)
        buf_add_char(out, (char)test_below(seed, 3));
}

static void send_random_frames(struct listener *listener, uint64_t *seed)
{
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(buf) struct buf answer = { 0 };
    for (size_t count = test_below(seed, 20); count > 0; count--)
        add_random_frame(&bytes, seed);
    int fd = client_connect(listener_port(listener));
    (void)client_send(loop, fd, bytes.data, bytes.size);
    (void)shutdown(fd, SHUT_WR);
    CHECK("let go", client_read_to_end(loop, fd, &answer, PATIENCE_MS));
    close(fd);
    TURN_UNTIL(loop, listener_conn_count(listener) == 0);
    side_done(&server);
}

static void test_random_frames(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct listener *listener = listen_plain();
    for (int round = 0; round < 200; round++)
        send_random_frames(listener, &seed);
    listener_close(listener);
}

/* --- Over TLS. --- */

static void test_over_tls(void **state)
{
    (void)state;
    struct error e;
    struct tls_fixture *pki = tls_fixture_new();
    AUTO(tls_context) struct tls_context *server_tls = server_context(pki, NULL);
    AUTO(tls_context)
    struct tls_context *client_tls =
        client_context(&pki->ca_certificate, &pki->client, TLS_PROTOCOL_LINK);
    struct listener *listener = NULL;
    struct listener_options options = {
        .address = "127.0.0.1",
        .tls = server_tls,
        .on_accept = on_accept,
        .arg = &server,
    };
    CHECK_OK("listen", listener_open(loop, &options, &listener, &e), &e);
    struct conn_dial_options dial = {
        .host = "localhost",
        .port = listener_port(listener),
        .tls = client_tls,
    };
    client.link = link_dial(loop, &dial, &link_options, &link_events, &client);
    TURN_UNTIL(loop, client.is_up && server.is_up);
    CHECK("who it is", strcmp(link_peer(server.link)->name, "nod_1") == 0);
    open_stream(&client.streams[0], "bulk");
    client.streams[0].to_send = 5 * MIB;
    write_more(&client.streams[0]);
    CHECK("message", link_send(client.link, 1, STR("x")) == ERR_OK);
    TURN_UNTIL(loop, server.streams[0].received.size == 5 * MIB);
    CHECK("message", server.message_count == 1);
    disconnect(listener);
    tls_fixture_free(pki);
}

static void test_dial_fails(void **state)
{
    (void)state;
    struct conn_dial_options dial = { .unix_path = "/nonexistent/socket" };
    client.link = link_dial(loop, &dial, &link_options, &link_events, &client);
    CHECK("waits", link_send(client.link, 1, STR("x")) == ERR_OK);
    CHECK("no stream yet", link_stream_open(client.link, STR(""), &stream_events, NULL) == NULL);
    TURN_UNTIL(loop, client.is_down);
    CHECK("never up", !client.is_up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_message_too_large_for_receiver, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_queue_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stream_both_ways, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bulk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stalled_stream_slows_no_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_message_beside_bulk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_streams_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_crossing_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_keepalive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credit_violation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ping_flood, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_silent_peer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_byte_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_random_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_over_tls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dial_fails, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net link", tests, NULL, NULL);
}
