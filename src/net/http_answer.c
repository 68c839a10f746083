/* Writing: whole answers, streams, feeds. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/http_internal.h"
#include "os/clock.h"

enum { CHUNK_OVERHEAD = 24 };

static const struct {
    unsigned status;
    const char *text;
} reasons[] = {
    { 101, "Switching Protocols" },
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 206, "Partial Content" },
    { 301, "Moved Permanently" },
    { 302, "Found" },
    { 303, "See Other" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 416, "Range Not Satisfiable" },
    { 417, "Expectation Failed" },
    { 422, "Unprocessable Content" },
    { 426, "Upgrade Required" },
    { 428, "Precondition Required" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 507, "Insufficient Storage" },
};

static const char *reason_of(unsigned status)
{
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "Status";
}

/* Not strftime: its names of days follow the locale. */
static const char *date_text(struct http_server *server)
{
    static const char days[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    int64_t now_s = clock_wall().ns / NS_PER_S;
    if (now_s == server->date_s)
        return server->date;
    time_t seconds = (time_t)now_s;
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL)
        return "Thu, 01 Jan 1970 00:00:00 GMT";
    server->date_s = now_s;
    (void)snprintf(server->date, sizeof(server->date), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                   days[parts.tm_wday % 7], parts.tm_mday, months[parts.tm_mon % 12],
                   parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
    return server->date;
}

/* A value must not begin a line of its own: control characters become spaces. */
static void add_value(struct buf *out, struct str value)
{
    for (size_t i = 0; i < value.size; i++) {
        unsigned char c = (unsigned char)value.data[i];
        bool is_control = c < 0x20 || c == 0x7f;
        buf_add(out, is_control ? " " : value.data + i, 1);
    }
}

static void add_field(struct buf *out, struct str name, struct str value)
{
    add_value(out, name);
    buf_add_text(out, ": ");
    add_value(out, value);
    buf_add_text(out, "\r\n");
}

static bool status_has_body(unsigned status)
{
    return status >= 200 && status != 204 && status != 304;
}

static void add_head(struct http_server *server, const struct answer *answer)
{
    const struct http_response *response = answer->response;
    struct buf *out = &server->text;
    buf_clear(out);
    buf_format(out, "HTTP/1.1 %u %s\r\nDate: %s\r\n", response->status, reason_of(response->status),
               date_text(server));
    if (response->content_type.size > 0)
        add_field(out, STR("Content-Type"), response->content_type);
    if (answer->length >= 0 && status_has_body(response->status))
        buf_format(out, "Content-Length: %lld\r\n", (long long)answer->length);
    if (answer->is_chunked)
        buf_add_text(out, "Transfer-Encoding: chunked\r\n");
    if (answer->closes)
        buf_add_text(out, "Connection: close\r\n");
    buf_add_str(out, server->options.common_fields);
    for (size_t i = 0; i < response->field_count; i++)
        add_field(out, response->fields[i].name, response->fields[i].value);
    buf_add_text(out, "\r\n");
}

void http_send_answer(struct channel *channel, const struct answer *answer)
{
    struct http_server *server = channel->server;
    const struct http_response *response = answer->response;
    add_head(server, answer);
    conn_send_always(channel->conn, server->text.data, server->text.size);
    if (answer->has_body && status_has_body(response->status))
        conn_send_always(channel->conn, response->body.data, response->body.size);
}

/* --- Whole answers. --- */

static bool will_close(const struct http_request *request, const struct http_response *response)
{
    return request->channel->is_last || request->channel->server->is_draining ||
           !request->is_body_complete || response->must_close;
}

void http_respond(struct http_request *request, const struct http_response *response)
{
    struct channel *channel = request->channel;
    assert(request->kind == ANSWER_NONE);
    channel->is_last = will_close(request, response);
    struct answer answer = {
        .response = response,
        .length = (int64_t)response->body.size,
        .closes = channel->is_last,
        .has_body = request->head.method != HTTP_METHOD_HEAD,
    };
    http_send_answer(channel, &answer);
    http_finish(request);
}

void http_refuse(struct channel *channel, struct http_refusal refusal)
{
    struct http_server *server = channel->server;
    bool is_streaming = channel->request != NULL && channel->request->kind != ANSWER_NONE;
    AUTO(buf) struct buf body = { 0 };
    struct http_response response = { .status = refusal.status, .content_type = STR("text/plain") };
    if (server->handler.on_refuse != NULL)
        server->handler.on_refuse(refusal.status, refusal.detail, &body, &response.content_type,
                                  server->arg);
    else
        buf_format(&body, "%s\n", refusal.detail);
    response.body = buf_str(&body);
    server->stats.refusal_count++;
    struct answer answer = { &response, (int64_t)body.size, .closes = true, .has_body = true };
    if (!is_streaming)
        http_send_answer(channel, &answer);
    channel->phase = CHANNEL_CLOSED;
    if (channel->request != NULL)
        http_request_free(channel->request, HTTP_END_GONE);
    conn_finish(channel->conn);
}

/* --- Streams. --- */

void http_stream_start(struct http_request *request, const struct http_response *response,
                       int64_t length)
{
    struct channel *channel = request->channel;
    assert(request->kind == ANSWER_NONE);
    request->kind = ANSWER_STREAM;
    request->is_chunked = length < 0;
    request->stream_left = length < 0 ? UINT64_MAX : (uint64_t)length;
    channel->is_last = will_close(request, response);
    channel->phase = CHANNEL_ANSWER;
    conn_set_deadline(channel->conn, (struct mono){ 0 });
    struct answer answer = {
        .response = response,
        .length = length,
        .is_chunked = request->is_chunked,
        .closes = channel->is_last,
    };
    http_send_answer(channel, &answer);
}

void http_stream_on_room(struct http_request *request,
                         void (*fn)(struct http_request *request, void *arg), void *arg)
{
    request->on_room = fn;
    request->room_arg = arg;
}

size_t http_stream_room(const struct http_request *request)
{
    size_t room = conn_room(request->channel->conn);
    return room > CHUNK_OVERHEAD ? room - CHUNK_OVERHEAD : 0;
}

void http_stream_want_room(struct http_request *request)
{
    conn_want_room(request->channel->conn);
}

enum err http_stream_write(struct http_request *request, struct str bytes)
{
    struct conn *conn = request->channel->conn;
    assert(request->kind == ANSWER_STREAM);
    if (conn_is_closing(conn))
        return ERR_UNAVAILABLE;
    if (bytes.size > request->stream_left)
        return ERR_INVALID;
    if (bytes.size == 0 || request->head.method == HTTP_METHOD_HEAD)
        return ERR_OK;
    if (bytes.size > http_stream_room(request)) {
        conn_want_room(conn);
        return ERR_LIMIT;
    }
    if (!request->is_chunked) {
        request->stream_left -= bytes.size;
        conn_send_always(conn, bytes.data, bytes.size);
        return ERR_OK;
    }
    char line[CHUNK_OVERHEAD];
    int size = snprintf(line, sizeof(line), "%zx\r\n", bytes.size);
    conn_send_always(conn, line, (size_t)size);
    conn_send_always(conn, bytes.data, bytes.size);
    conn_send_always(conn, "\r\n", 2);
    return ERR_OK;
}

void http_stream_end(struct http_request *request)
{
    assert(request->kind == ANSWER_STREAM);
    bool is_head = request->head.method == HTTP_METHOD_HEAD;
    if (!is_head && !request->is_chunked && request->stream_left > 0) {
        http_stream_cut(request);
        return;
    }
    if (!is_head && request->is_chunked)
        conn_send_always(request->channel->conn, "0\r\n\r\n", 5);
    http_finish(request);
}

void http_stream_cut(struct http_request *request)
{
    conn_abort(request->channel->conn, "the answer was broken off");
}

void http_on_room(struct channel *channel)
{
    struct http_request *request = channel->request;
    if (request != NULL && request->on_room != NULL)
        request->on_room(request, request->room_arg);
}

/* --- Feeds. --- */

static void on_feed_timer(void *arg)
{
    static const char ping[] = ": ping\n\n";
    struct http_server *server = arg;
    struct mono now = loop_now(server->loop);
    int64_t interval_ns = server->options.feed_ping_ms * NS_PER_MS;
    for (struct http_request *feed = server->feeds.feed_next; feed != &server->feeds;
         feed = feed->feed_next) {
        struct conn *conn = feed->channel->conn;
        /* One that has not taken the last thing needs no further proof of life. */
        if (now.ns - feed->feed_last.ns < interval_ns || conn_queued(conn) > 0)
            continue;
        feed->feed_last = now;
        conn_send_always(conn, ping, sizeof(ping) - 1);
    }
    if (server->stats.feed_count > 0)
        loop_timer_set(server->loop, &server->feed_timer,
                       (struct mono){ now.ns + interval_ns / 2 });
}

void http_feeds_init(struct http_server *server)
{
    server->feeds.feed_next = &server->feeds;
    server->feeds.feed_prev = &server->feeds;
    server->feed_timer.fn = on_feed_timer;
    server->feed_timer.arg = server;
}

void http_feed_start(struct http_request *request, const struct http_response *response,
                     size_t queue_bytes)
{
    struct channel *channel = request->channel;
    struct http_server *server = channel->server;
    assert(request->kind == ANSWER_NONE);
    request->kind = ANSWER_FEED;
    /* Its length is unknown and its end is the connection's: nothing can follow it. */
    channel->is_last = true;
    channel->phase = CHANNEL_ANSWER;
    conn_set_deadline(channel->conn, (struct mono){ 0 });
    conn_set_queue(channel->conn, queue_bytes);
    struct http_response head = *response;
    head.content_type = STR("text/event-stream");
    http_send_answer(channel, &(struct answer){ .response = &head, .length = -1, .closes = true });
    request->feed_last = loop_now(server->loop);
    request->feed_next = server->feeds.feed_next;
    request->feed_prev = &server->feeds;
    request->feed_next->feed_prev = request;
    server->feeds.feed_next = request;
    server->stats.feed_count++;
    if (server->feed_timer.slot == 0)
        loop_timer_set(
            server->loop, &server->feed_timer,
            (struct mono){ request->feed_last.ns + server->options.feed_ping_ms * NS_PER_MS });
}

/* "name: value", with the line breaks of the value as lines of the same name. */
static void add_event_lines(struct buf *out, const char *name, struct str value)
{
    while (value.size > 0) {
        struct str line = str_cut(&value, '\n');
        buf_format(out, "%s: ", name);
        for (size_t i = 0; i < line.size; i++) {
            bool is_break = line.data[i] == '\r' || line.data[i] == '\0';
            buf_add(out, is_break ? " " : line.data + i, 1);
        }
        buf_add_char(out, '\n');
    }
}

void http_event_format(struct buf *out, struct str id, struct str event, struct str data)
{
    add_event_lines(out, "id", id);
    add_event_lines(out, "event", event);
    if (data.size == 0)
        buf_add_text(out, "data: \n");
    add_event_lines(out, "data", data);
    buf_add_char(out, '\n');
}

static void drop_feed(struct http_request *request)
{
    struct channel *channel = request->channel;
    AUTO(buf) struct buf last = { 0 };
    http_event_format(&last, buf_str(&request->feed_id), STR("overflow"), STR("resume after id"));
    conn_send_always(channel->conn, last.data, last.size);
    channel->server->stats.feed_drop_count++;
    conn_finish(channel->conn);
}

enum err http_feed_send(struct http_request *request, struct str formatted, struct str id)
{
    struct conn *conn = request->channel->conn;
    assert(request->kind == ANSWER_FEED);
    if (conn_is_closing(conn))
        return ERR_LIMIT;
    if (formatted.size > conn_room(conn)) {
        drop_feed(request);
        return ERR_LIMIT;
    }
    conn_send_always(conn, formatted.data, formatted.size);
    request->feed_last = loop_now(request->channel->server->loop);
    if (id.size > 0) {
        buf_clear(&request->feed_id);
        buf_add_str(&request->feed_id, id);
    }
    return ERR_OK;
}

void http_feed_end(struct http_request *request)
{
    assert(request->kind == ANSWER_FEED);
    http_finish(request);
}
