/*
 * Reading: bytes to requests. One request a connection at a time; while the owner has it, what the
 * client sends ahead is kept by the connection, up to a head's size, and then not read at all.
 */
#include "net/http.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "net/http_internal.h"

enum {
    HEADER_BYTES_DEFAULT = 16 * 1024,
    HEADER_BYTES_LIMIT = 64 * 1024, /* what libhttp-parser and conn.c's buffer take */
    HEADER_COUNT_DEFAULT = 64,
    BODY_BYTES_DEFAULT = 1024 * 1024,
    QUEUE_BYTES_DEFAULT = 256 * 1024,
    HEADER_TIMEOUT_DEFAULT_MS = 10000,
    BODY_TIMEOUT_DEFAULT_MS = 30000,
    WRITE_TIMEOUT_DEFAULT_MS = 30000,
    IDLE_TIMEOUT_DEFAULT_MS = 60000,
    FEED_PING_DEFAULT_MS = 15000,
    BODY_PROGRESS_BYTES = 64 * 1024,
    REQUESTS_AT_ONCE = 2, /* of one connection that sends ahead, before others get their turn */
    BODY_RESERVE_MAX = 64 * 1024 /* trusted of a Content-Length before the bytes are there */
};

/* --- Deadlines. --- */

static void set_deadline(struct channel *channel, int64_t ms)
{
    struct mono at = { ms > 0 ? loop_now(channel->server->loop).ns + ms * NS_PER_MS : 0 };
    conn_set_deadline(channel->conn, at);
}

static void on_deadline(struct conn *conn, void *arg)
{
    struct channel *channel = arg;
    if (channel->phase == CHANNEL_IDLE) {
        channel->phase = CHANNEL_CLOSED;
        conn_finish(conn);
    } else {
        const char *detail = channel->phase == CHANNEL_HEAD ? "the head did not come in time"
                                                            : "the body did not come in time";
        http_refuse(channel, (struct http_refusal){ 408, detail });
    }
}

/* --- The head. --- */

static void begin_body(struct channel *channel)
{
    struct http_request *request = channel->request;
    const struct http_head *head = &request->head;
    if (head->framing == HTTP_FRAMING_LENGTH && head->length > request->body_max) {
        http_refuse(channel, (struct http_refusal){ 413, "the body is too large" });
        return;
    }
    channel->phase = CHANNEL_BODY;
    set_deadline(channel, request->body_timeout_ms);
    if (head->expects_continue)
        conn_send_always(channel->conn, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    if (head->framing == HTTP_FRAMING_LENGTH && request->sink.on_chunk == NULL)
        buf_reserve(&request->body, MIN_OF((size_t)head->length, (size_t)BODY_RESERVE_MAX));
}

static void hand_over(struct channel *channel)
{
    struct http_server *server = channel->server;
    channel->phase = CHANNEL_ANSWER;
    channel->request->is_body_complete = true;
    set_deadline(channel, 0);
    server->handler.on_request(channel->request, server->arg);
}

static void on_head(struct channel *channel, struct str bytes)
{
    struct http_server *server = channel->server;
    struct http_refusal refusal = { 0 };
    struct http_request *request = http_request_new(channel);
    channel->scan = (struct http_scan){ 0 };
    if (!http_head_parse(&request->head, bytes, &refusal)) {
        http_refuse(channel, refusal);
        return;
    }
    server->stats.request_count++;
    if (!request->head.keeps_alive || server->is_draining)
        channel->is_last = true;
    bool has_body = request->head.framing != HTTP_FRAMING_NONE;
    request->is_body_complete = !has_body;
    struct http_ref ref = request->ref;
    /* The phase says that an answer given from on_header comes before the body. */
    channel->phase = has_body ? CHANNEL_BODY : CHANNEL_ANSWER;
    if (server->handler.on_header != NULL)
        server->handler.on_header(request, server->arg);
    if (channel->server == NULL || http_find(server, ref) == NULL || request->kind != ANSWER_NONE)
        return;
    if (has_body)
        begin_body(channel);
    else
        hand_over(channel);
}

/* Returns the bytes used: all of a head, or none yet. */
static size_t read_head(struct channel *channel, struct str data)
{
    const struct http_server_options *options = &channel->server->options;
    struct http_refusal refusal = { 0 };
    if (channel->phase == CHANNEL_IDLE) {
        channel->phase = CHANNEL_HEAD;
        channel->scan = (struct http_scan){ 0 };
    }
    size_t size = http_head_scan(&channel->scan, data, options->header_bytes_max,
                                 options->header_count_max, &refusal);
    if (refusal.status != 0)
        http_refuse(channel, refusal);
    else if (size > 0)
        on_head(channel, (struct str){ data.data, size });
    return refusal.status != 0 ? data.size : size;
}

/* --- The body. --- */

static void on_body(struct channel *channel, struct str bytes)
{
    struct http_request *request = channel->request;
    request->body_seen += bytes.size;
    if (request->body_seen > request->body_max) {
        http_refuse(channel, (struct http_refusal){ 413, "the body is too large" });
        return;
    }
    if (request->sink.on_chunk == NULL) {
        buf_add_str(&request->body, bytes);
        return;
    }
    if (request->body_seen - request->body_mark >= BODY_PROGRESS_BYTES) {
        request->body_mark = request->body_seen;
        set_deadline(channel, request->body_timeout_ms);
    }
    request->sink.on_chunk(request, bytes, request->sink.arg);
}

/* Returns the bytes used; `is_complete` when the body's last byte was among them. */
static size_t read_length_body(struct channel *channel, struct str data, bool *is_complete)
{
    const struct http_request *request = channel->request;
    uint64_t left = request->head.length - request->body_seen;
    data.size = left < data.size ? (size_t)left : data.size;
    *is_complete = data.size == left;
    on_body(channel, data);
    return data.size;
}

static size_t read_chunked_body(struct channel *channel, struct str data, bool *is_complete)
{
    struct str rest = data;
    struct str bytes = { 0 };
    switch (http_chunk_next(&channel->request->chunk, &rest, &bytes)) {
    case HTTP_CHUNK_BODY:
        on_body(channel, bytes);
        break;
    case HTTP_CHUNK_END:
        *is_complete = true;
        break;
    case HTTP_CHUNK_BAD:
        http_refuse(channel, (struct http_refusal){ 400, "the chunked body is malformed" });
        break;
    case HTTP_CHUNK_MORE:
        break;
    }
    return data.size - rest.size;
}

static size_t read_body(struct channel *channel, struct str data)
{
    struct http_server *server = channel->server;
    struct http_ref ref = channel->request->ref;
    bool is_complete = false;
    size_t used = channel->request->head.framing == HTTP_FRAMING_LENGTH
                      ? read_length_body(channel, data, &is_complete)
                      : read_chunked_body(channel, data, &is_complete);
    /* A sink may have answered, or freed the server. */
    if (is_complete && channel->server != NULL && http_find(server, ref) != NULL &&
        channel->phase == CHANNEL_BODY)
        hand_over(channel);
    return used;
}

/* --- Events of the connection. --- */

static void channel_free(struct channel *channel)
{
    if (channel->server != NULL) {
        channel->next->prev = channel->prev;
        channel->prev->next = channel->next;
        channel->server->stats.conn_count--;
    }
    mem_free(channel);
}

static bool is_reading(const struct channel *channel)
{
    if (channel->server == NULL || channel->conn == NULL || conn_is_closing(channel->conn))
        return false;
    switch (channel->phase) {
    case CHANNEL_IDLE:
    case CHANNEL_HEAD:
    case CHANNEL_BODY:
        return true;
    case CHANNEL_ANSWER:
    case CHANNEL_CLOSED:
        break;
    }
    return false;
}

/* Returns whether it stopped with requests left, so that others get their turn. */
static bool read_requests(struct channel *channel, struct str data, size_t *used)
{
    size_t count = 0;
    while (*used < data.size && is_reading(channel)) {
        if (channel->phase == CHANNEL_IDLE && count++ == REQUESTS_AT_ONCE)
            return true;
        struct str rest = { data.data + *used, data.size - *used };
        size_t step =
            channel->phase == CHANNEL_BODY ? read_body(channel, rest) : read_head(channel, rest);
        if (step == 0)
            return false;
        *used += step;
    }
    return false;
}

static size_t on_data(struct conn *conn, struct str data, void *arg)
{
    struct channel *channel = arg;
    bool was_idle = channel->phase == CHANNEL_IDLE;
    size_t used = 0;
    channel->is_inside = true;
    channel->has_more = read_requests(channel, data, &used);
    channel->is_inside = false;
    if (channel->conn == NULL) {
        channel_free(channel);
        return used;
    }
    if (conn_is_closing(conn) || channel->server == NULL)
        return data.size;
    size_t kept = data.size - used;
    /* The clock of a head runs from its first byte: not from each. */
    if (channel->phase == CHANNEL_HEAD && (was_idle || used > 0))
        set_deadline(channel, channel->server->options.header_timeout_ms);
    if (!is_reading(channel) && kept >= channel->server->options.header_bytes_max)
        conn_pause(conn);
    if (channel->has_more)
        conn_resume(conn);
    else if (channel->has_ended && is_reading(channel))
        conn_finish(conn);
    return used;
}

/* A client that has only closed its half still gets the answers it asked for. */
static void on_peer_end(struct conn *conn, void *arg)
{
    struct channel *channel = arg;
    channel->has_ended = true;
    bool is_feed = channel->request != NULL && channel->request->kind == ANSWER_FEED;
    if (is_feed || channel->phase == CHANNEL_BODY)
        conn_abort(conn, "the client has gone");
    else if (channel->phase != CHANNEL_ANSWER && !channel->has_more)
        conn_finish(conn);
}

static void on_room(struct conn *conn, void *arg)
{
    (void)conn;
    http_on_room(arg);
}

static void on_close(struct conn *conn, const char *why, void *arg)
{
    (void)conn;
    (void)why;
    struct channel *channel = arg;
    if (channel->request != NULL)
        http_request_free(channel->request, HTTP_END_GONE);
    channel_free(channel);
}

static const struct conn_events channel_events = {
    .on_data = on_data,
    .on_end = on_peer_end,
    .on_room = on_room,
    .on_deadline = on_deadline,
    .on_close = on_close,
};

/* --- After the answer. --- */

void http_finish(struct http_request *request)
{
    struct channel *channel = request->channel;
    /* A body that has not come in full cannot be told from the next request: not kept alive. */
    bool is_last = channel->is_last || !request->is_body_complete || channel->server->is_draining;
    http_request_free(request, HTTP_END_ANSWERED);
    if (channel->server == NULL || conn_is_closing(channel->conn))
        return;
    if (is_last) {
        channel->phase = CHANNEL_CLOSED;
        conn_finish(channel->conn);
        return;
    }
    channel->phase = CHANNEL_IDLE;
    set_deadline(channel, channel->server->options.idle_timeout_ms);
    if (channel->is_inside)
        return;
    if (conn_kept(channel->conn) > 0)
        conn_resume(channel->conn);
    else if (channel->has_ended)
        conn_finish(channel->conn);
}

struct conn *http_upgrade(struct http_request *request, const struct http_pair *fields,
                          size_t field_count)
{
    struct channel *channel = request->channel;
    struct conn *conn = channel->conn;
    assert(channel->phase == CHANNEL_ANSWER && request->kind == ANSWER_NONE);
    struct http_response response = { .status = 101, .fields = fields, .field_count = field_count };
    http_send_answer(channel, &(struct answer){ .response = &response, .length = -1 });
    conn_set_deadline(conn, (struct mono){ 0 });
    http_request_free(request, HTTP_END_ANSWERED);
    channel->phase = CHANNEL_CLOSED;
    channel->conn = NULL;
    if (!channel->is_inside)
        channel_free(channel);
    conn_resume(conn); /* its new owner sees what came after the head */
    return conn;
}

/* --- The server. --- */

static void set_default_ms(int64_t *slot, int64_t value)
{
    if (*slot <= 0)
        *slot = value;
}

static void fill_defaults(struct http_server_options *options)
{
    if (options->header_bytes_max == 0)
        options->header_bytes_max = HEADER_BYTES_DEFAULT;
    if (options->header_count_max == 0)
        options->header_count_max = HEADER_COUNT_DEFAULT;
    if (options->body_bytes_max == 0)
        options->body_bytes_max = BODY_BYTES_DEFAULT;
    if (options->queue_bytes_max == 0)
        options->queue_bytes_max = QUEUE_BYTES_DEFAULT;
    set_default_ms(&options->header_timeout_ms, HEADER_TIMEOUT_DEFAULT_MS);
    set_default_ms(&options->body_timeout_ms, BODY_TIMEOUT_DEFAULT_MS);
    set_default_ms(&options->write_timeout_ms, WRITE_TIMEOUT_DEFAULT_MS);
    set_default_ms(&options->idle_timeout_ms, IDLE_TIMEOUT_DEFAULT_MS);
    set_default_ms(&options->feed_ping_ms, FEED_PING_DEFAULT_MS);
}

enum err http_server_new(struct loop *loop, const struct http_server_options *options,
                         const struct http_handler *handler, void *arg, struct http_server **out,
                         struct error *e)
{
    if (options->header_bytes_max > HEADER_BYTES_LIMIT)
        return err_set(e, ERR_INVALID, "header_bytes_max: %zu is more than %d",
                       options->header_bytes_max, HEADER_BYTES_LIMIT);
    struct http_server *server = mem_new(1, sizeof(*server));
    server->loop = loop;
    server->options = *options;
    fill_defaults(&server->options);
    buf_add_str(&server->common_fields, options->common_fields);
    server->options.common_fields = buf_str(&server->common_fields);
    server->handler = *handler;
    server->arg = arg;
    server->channels.next = &server->channels;
    server->channels.prev = &server->channels;
    server->date_s = INT64_MIN;
    http_feeds_init(server);
    *out = server;
    return ERR_OK;
}

void http_server_take(struct http_server *server, struct conn *conn)
{
    struct channel *channel = mem_new(1, sizeof(*channel));
    channel->server = server;
    channel->conn = conn;
    channel->next = server->channels.next;
    channel->prev = &server->channels;
    channel->next->prev = channel;
    server->channels.next = channel;
    server->stats.conn_count++;
    conn_set_events(conn, &channel_events, channel);
    conn_set_queue(conn, server->options.queue_bytes_max);
    conn_set_write_timeout(conn, server->options.write_timeout_ms);
    set_deadline(channel, server->options.idle_timeout_ms);
}

void http_server_drain(struct http_server *server)
{
    server->is_draining = true;
    struct channel *next = NULL;
    for (struct channel *channel = server->channels.next; channel != &server->channels;
         channel = next) {
        next = channel->next;
        bool is_feed = channel->request != NULL && channel->request->kind == ANSWER_FEED;
        if (is_feed)
            http_feed_end(channel->request);
        else if (channel->phase == CHANNEL_IDLE)
            conn_finish(channel->conn);
    }
}

void http_server_free(struct http_server *server)
{
    if (server == NULL)
        return;
    loop_timer_stop(server->loop, &server->feed_timer);
    while (server->channels.next != &server->channels) {
        struct channel *channel = server->channels.next;
        if (channel->request != NULL)
            http_request_free(channel->request, HTTP_END_GONE);
        channel->next->prev = channel->prev;
        channel->prev->next = channel->next;
        channel->server = NULL;
        channel->phase = CHANNEL_CLOSED;
        if (channel->conn != NULL)
            conn_abort(channel->conn, "the server has closed");
    }
    vec_done(&server->slots);
    buf_done(&server->common_fields);
    buf_done(&server->text);
    mem_free(server);
}

size_t http_server_conn_count(const struct http_server *server)
{
    return server->stats.conn_count;
}

struct http_stats http_server_stats(const struct http_server *server)
{
    return server->stats;
}
