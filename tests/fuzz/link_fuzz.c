/*
 * link_fuzz.c - frames of berth-link/1 out of arbitrary bytes, in two pieces, into a real
 * link whose owner opens, writes, credits and closes streams meanwhile. Not part of the
 * build (clang only):
 *
 *     clang -std=gnu17 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -Isrc \
 *         tests/fuzz/link_fuzz.c src/net/{address,ca,conn,dial,link,listener,loop,tls}.c \
 *         src/os/{clock,fd,file,random}.c src/base/{error,id,map,mem,str,timepoint}.c \
 *         -lssl -lcrypto -lpthread -o link_fuzz && ./link_fuzz -max_len=4096 -max_total_time=60
 */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/conn_internal.h"
#include "net/link.h"
#include "os/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct loop *loop;
static bool is_down;
static size_t open_count;

static void on_stream_data(struct link_stream *stream, struct str bytes, void *arg)
{
    (void)arg;
    if (bytes.data[0] % 3 == 0)
        link_stream_credit(stream, bytes.size);
    if (bytes.data[0] == 'w')
        (void)link_stream_write(stream, bytes);
    if (bytes.data[0] == 'e')
        link_stream_end(stream);
    if (bytes.data[0] == 'c') {
        open_count--;
        link_stream_close(stream, 7, STR("closed"));
    }
}

static void on_stream_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    (void)stream;
    (void)code;
    (void)arg;
    assert(text.size <= 1024);
    open_count--;
}

static const struct link_stream_events stream_events = {
    .on_data = on_stream_data,
    .on_close = on_stream_close,
};

static void on_stream(struct link *link, struct link_stream *stream, struct str header, void *arg)
{
    (void)link;
    (void)arg;
    if (header.size > 0 && header.data[0] == 'n')
        return; /* nobody takes it */
    open_count++;
    link_stream_set_events(stream, &stream_events, NULL);
}

static void on_message(struct link *link, uint16_t type, struct str payload, void *arg)
{
    (void)arg;
    assert(payload.size <= 3000);
    if (type == 1)
        assert(link_send(link, 2, payload) != ERR_INVALID);
    if (type == 2 && link_stream_open(link, STR("ours"), &stream_events, NULL) != NULL)
        open_count++;
    if (type == 3)
        link_close(link, "asked to");
}

static void on_down(struct link *link, const char *why, void *arg)
{
    (void)link;
    (void)arg;
    assert(why != NULL && open_count == 0);
    is_down = true;
}

static const struct link_events link_events = {
    .on_message = on_message,
    .on_stream = on_stream,
    .on_down = on_down,
};

static void turn(void)
{
    enum err rc = loop_turn(loop, 0, NULL);
    assert(rc == ERR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct link_options options = { .message_bytes_max = 3000, .stream_max = 4 };
    int ends[2];
    if (size < 1)
        return 0;
    if (loop == NULL)
        assert(loop_new(&loop, NULL) == ERR_OK);
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    is_down = false;
    open_count = 0;
    struct conn *conn = conn_new(loop);
    assert(conn_attach(conn, ends[0], CONN_OPEN, NULL) == ERR_OK);
    (void)link_accept(conn, &options, &link_events, NULL);
    size_t first = (size - 1) * bytes[0] / 255;
    (void)send(ends[1], bytes + 1, first, MSG_NOSIGNAL);
    turn();
    (void)send(ends[1], bytes + 1 + first, size - 1 - first, MSG_NOSIGNAL);
    turn();
    turn();
    fd_close(ends[1]);
    for (int i = 0; i < 10 && !is_down; i++)
        turn();
    assert(is_down);
    return 0;
}
