#include "net/websocket.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/mem.h"
#include "net/http_head.h"

enum {
    MESSAGE_DEFAULT = 64 * 1024,
    QUEUE_DEFAULT = 256 * 1024,
    QUEUE_SLACK = 64 * 1024, /* pongs of a peer that does not read */
    PING_DEFAULT_MS = 20000,
    CLOSE_WAIT_MS = 5000,
    FRAME_OVERHEAD = 16,
    REASON_MAX = 123,
    KEY_TEXT = 24,
    KEY_BYTES = 16,
    SHA1_BYTES = 20,
    ACCEPT_TEXT = 32
};
enum { CODE_NO_FRAME = 1006 };

struct websocket {
    struct conn *conn;                     /* borrowed; frees itself after on_close */
    wslay_event_context_ptr wslay;         /* owned */
    const struct websocket_events *events; /* borrowed */
    void *arg;
    struct str input; /* what on_data shows and wslay has not taken yet */
    bool is_inside;   /* wslay is reading: what is queued leaves afterwards */
    bool wants_room;
    size_t queue_max;
    int64_t ping_ms;
    struct loop_timer timer;
    struct mono last_received;
};

/* --- wslay's view of the connection. --- */

static ssize_t take_input(wslay_event_context_ptr wslay, uint8_t *out, size_t size, int flags,
                          void *arg)
{
    (void)flags;
    struct websocket *socket = arg;
    size_t count = MIN_OF(size, socket->input.size);
    if (count == 0) {
        wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(out, socket->input.data, count);
    socket->input = (struct str){ socket->input.data + count, socket->input.size - count };
    return (ssize_t)count;
}

/* The bound is kept where messages are queued, so that a frame never stops half-way. */
static ssize_t give_output(wslay_event_context_ptr wslay, const uint8_t *bytes, size_t size,
                           int flags, void *arg)
{
    (void)flags;
    struct websocket *socket = arg;
    if (conn_is_closing(socket->conn)) {
        wslay_event_set_error(wslay, WSLAY_ERR_CALLBACK_FAILURE);
        return -1;
    }
    conn_send_always(socket->conn, bytes, size);
    return (ssize_t)size;
}

static void on_wslay_message(wslay_event_context_ptr wslay,
                             const struct wslay_event_on_msg_recv_arg *message, void *arg)
{
    (void)wslay;
    struct websocket *socket = arg;
    bool is_text = message->opcode == WSLAY_TEXT_FRAME;
    if (!is_text && message->opcode != WSLAY_BINARY_FRAME)
        return; /* pings, pongs and closes are answered by wslay */
    struct str bytes = { (const char *)message->msg, message->msg_length };
    socket->events->on_message(socket, bytes, is_text, socket->arg);
}

static void flush(struct websocket *socket)
{
    if (socket->is_inside || conn_is_closing(socket->conn))
        return;
    if (wslay_event_send(socket->wslay) != 0)
        conn_abort(socket->conn, "WebSocket: a frame cannot be sent");
    else if (conn_queued(socket->conn) > socket->queue_max + QUEUE_SLACK)
        conn_abort(socket->conn, "WebSocket: asks more than it reads");
    else if (wslay_event_get_close_sent(socket->wslay) &&
             (wslay_event_get_close_received(socket->wslay) ||
              !wslay_event_want_read(socket->wslay)))
        conn_finish(socket->conn);
}

/* --- Events of the connection. --- */

static size_t on_data(struct conn *conn, struct str data, void *arg)
{
    struct websocket *socket = arg;
    socket->last_received = loop_now(conn_loop(conn));
    socket->input = data;
    socket->is_inside = true;
    int failed = wslay_event_recv(socket->wslay);
    socket->is_inside = false;
    /* Broken frames leave a close frame in wslay's queue, and it reads no more: the rest
     * is dropped. */
    flush(socket);
    if (failed != 0)
        conn_finish(conn);
    return data.size;
}

static void on_room(struct conn *conn, void *arg)
{
    (void)conn;
    struct websocket *socket = arg;
    if (!socket->wants_room)
        return;
    socket->wants_room = false;
    if (socket->events->on_room != NULL)
        socket->events->on_room(socket, socket->arg);
}

static unsigned close_code(const struct websocket *socket)
{
    if (wslay_event_get_close_received(socket->wslay))
        return wslay_event_get_status_code_received(socket->wslay);
    if (wslay_event_get_close_sent(socket->wslay))
        return wslay_event_get_status_code_sent(socket->wslay);
    return CODE_NO_FRAME;
}

static void on_close(struct conn *conn, const char *why, void *arg)
{
    struct websocket *socket = arg;
    loop_timer_stop(conn_loop(conn), &socket->timer);
    socket->events->on_close(socket, close_code(socket), why, socket->arg);
    wslay_event_context_free(socket->wslay);
    mem_free(socket);
}

static const struct conn_events conn_events = {
    .on_data = on_data,
    .on_room = on_room,
    .on_close = on_close,
};

static void on_timer(void *arg)
{
    struct websocket *socket = arg;
    struct loop *loop = conn_loop(socket->conn);
    int64_t silence_ms = (loop_now(loop).ns - socket->last_received.ns) / NS_PER_MS;
    if (silence_ms >= 2 * socket->ping_ms) {
        conn_abort(socket->conn, "WebSocket: no sign of life from the peer");
        return;
    }
    if (silence_ms >= socket->ping_ms) {
        struct wslay_event_msg ping = { .opcode = WSLAY_PING };
        (void)wslay_event_queue_msg(socket->wslay, &ping); /* fails once a close is queued */
        flush(socket);
    }
    loop_timer_set(loop, &socket->timer,
                   (struct mono){ loop_now(loop).ns + socket->ping_ms * NS_PER_MS });
}

/* --- The handshake. --- */

bool websocket_is_wanted(const struct http_request *request)
{
    return http_has_token(http_request_field(request, "upgrade"), "websocket");
}

static bool is_key(struct str key)
{
    uint8_t bytes[KEY_TEXT];
    return key.size == KEY_TEXT &&
           EVP_DecodeBlock(bytes, (const unsigned char *)key.data, KEY_TEXT) == KEY_BYTES + 2 &&
           str_starts((struct str){ key.data + KEY_TEXT - 2, 2 }, STR("=="));
}

static bool accept_text(struct str key, char out[ACCEPT_TEXT])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char joined[KEY_TEXT + sizeof(guid)];
    uint8_t digest[SHA1_BYTES];
    memcpy(joined, key.data, KEY_TEXT);
    memcpy(joined + KEY_TEXT, guid, sizeof(guid));
    if (EVP_Digest(joined, KEY_TEXT + sizeof(guid) - 1, digest, NULL, EVP_sha1(), NULL) != 1)
        return false;
    (void)EVP_EncodeBlock((unsigned char *)out, digest, SHA1_BYTES);
    return true;
}

static enum err refuse(struct http_request *request, unsigned status, const char *why,
                       struct error *e)
{
    struct http_pair version = { STR("Sec-WebSocket-Version"), STR("13") };
    struct http_response response = {
        .status = status,
        .content_type = STR("text/plain"),
        .body = str_of(why),
        .fields = &version,
        .field_count = 1,
    };
    http_respond(request, &response);
    return err_set(e, ERR_INVALID, "%s", why);
}

static struct websocket *socket_new(struct conn *conn, const struct websocket_options *options,
                                    const struct websocket_events *events, void *arg)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = take_input,
        .send_callback = give_output,
        .on_msg_recv_callback = on_wslay_message,
    };
    struct websocket *socket = mem_new(1, sizeof(*socket));
    int failed = wslay_event_context_server_init(&socket->wslay, &callbacks, socket);
    assert(failed == 0); /* only for want of memory */
    size_t message_max =
        options->message_bytes_max > 0 ? options->message_bytes_max : MESSAGE_DEFAULT;
    wslay_event_config_set_max_recv_msg_length(socket->wslay, message_max);
    socket->conn = conn;
    socket->events = events;
    socket->arg = arg;
    socket->queue_max = options->queue_bytes_max > 0 ? options->queue_bytes_max : QUEUE_DEFAULT;
    socket->ping_ms = options->ping_ms > 0 ? options->ping_ms : PING_DEFAULT_MS;
    socket->timer.fn = on_timer;
    socket->timer.arg = socket;
    socket->last_received = loop_now(conn_loop(conn));
    conn_set_events(conn, &conn_events, socket);
    conn_set_queue(conn, socket->queue_max);
    loop_timer_set(conn_loop(conn), &socket->timer,
                   (struct mono){ socket->last_received.ns + socket->ping_ms * NS_PER_MS });
    return socket;
}

enum err websocket_accept(struct http_request *request, const struct websocket_options *options,
                          const struct websocket_events *events, void *arg, struct websocket **out,
                          struct error *e)
{
    struct str key = http_request_field(request, "sec-websocket-key");
    struct str offered = http_request_field(request, "sec-websocket-protocol");
    char accept[ACCEPT_TEXT];
    if (http_request_method(request) != HTTP_METHOD_GET || !websocket_is_wanted(request) ||
        !http_has_token(http_request_field(request, "connection"), "upgrade"))
        return refuse(request, 426, "this address speaks WebSocket only", e);
    if (!str_is(http_request_field(request, "sec-websocket-version"), "13"))
        return refuse(request, 426, "only version 13 of WebSocket is spoken", e);
    if (!is_key(key) || !accept_text(key, accept))
        return refuse(request, 400, "Sec-WebSocket-Key is not 16 bytes in base64", e);
    const char *protocol = options->subprotocol;
    if (protocol != NULL && !http_has_token(offered, protocol))
        return refuse(request, 400, "the client does not offer our subprotocol", e);
    struct http_pair fields[] = {
        { STR("Upgrade"), STR("websocket") },
        { STR("Connection"), STR("Upgrade") },
        { STR("Sec-WebSocket-Accept"), str_of(accept) },
        { STR("Sec-WebSocket-Protocol"), str_of(protocol) },
    };
    size_t count = COUNT_OF(fields) - (protocol == NULL ? 1 : 0);
    *out = socket_new(http_upgrade(request, fields, count), options, events, arg);
    return ERR_OK;
}

/* --- Sending. --- */

static size_t room_of(const struct websocket *socket)
{
    size_t room = conn_room(socket->conn);
    return room > FRAME_OVERHEAD ? room - FRAME_OVERHEAD : 0;
}

enum err websocket_send(struct websocket *socket, struct str bytes, bool is_text)
{
    if (conn_is_closing(socket->conn) || wslay_event_get_close_sent(socket->wslay))
        return ERR_UNAVAILABLE;
    if (bytes.size > room_of(socket)) {
        socket->wants_room = true;
        conn_want_room(socket->conn);
        return ERR_LIMIT;
    }
    struct wslay_event_msg message = {
        .opcode = is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
        .msg = (const uint8_t *)bytes.data,
        .msg_length = bytes.size,
    };
    if (wslay_event_queue_msg(socket->wslay, &message) != 0)
        return ERR_UNAVAILABLE;
    flush(socket);
    return ERR_OK;
}

void websocket_pause(struct websocket *socket)
{
    conn_pause(socket->conn);
}

void websocket_resume(struct websocket *socket)
{
    conn_resume(socket->conn);
}

void websocket_close(struct websocket *socket, unsigned code, const char *reason)
{
    struct loop *loop = conn_loop(socket->conn);
    size_t size = MIN_OF(strlen(reason), (size_t)REASON_MAX);
    if (conn_is_closing(socket->conn))
        return;
    (void)wslay_event_queue_close(socket->wslay, (uint16_t)code, (const uint8_t *)reason,
                                  size); /* fails when one is queued already */
    conn_resume(socket->conn);           /* the peer's answer must be read */
    conn_set_deadline(socket->conn, (struct mono){ loop_now(loop).ns + CLOSE_WAIT_MS * NS_PER_MS });
    flush(socket);
}
