/*
 * One descriptor, non-blocking, with a poll around every wait, so that deadlines hold for TLS as
 * well. This file knows nothing of OpenSSL (http_transport.h says why). libhttp-parser reads the
 * answers; what it has decoded and nobody has read yet waits in `body`.
 */
#include "net/http_client.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/address.h"
#include "net/http_library.h"
#include "net/http_transport.h"
#include "os/clock.h"
#include "os/fd.h"

enum {
    READ_BYTES = 16 * 1024,
    HEAD_MAX = 64 * 1024,
    CONNECT_TIMEOUT_DEFAULT_MS = 10000,
    TIMEOUT_DEFAULT_MS = 60000,
    CHUNK_LINE = 24
};

struct http_client {
    char *unix_path; /* owned; or */
    char *host;      /* owned */
    uint16_t port;
    int64_t connect_timeout_ms;
    int64_t timeout_ms;
    const struct http_transport *tls; /* NULL: a unix socket */
    void *tls_state; /* owned through `tls`; made with the first connection, from: */
    struct buf ca_pem;
    struct buf certificate_pem;
    struct buf key_pem;
    bool has_pin;
    bool ignores_time;
    uint8_t pin[HTTP_PIN_BYTES];

    int fd;       /* owned; -1: not connected */
    void *stream; /* owned through `tls` */
    bool is_kept; /* has carried a request before */
    bool is_busy; /* a response is being read */
};

struct field {
    struct buf name;
    struct buf value;
};

struct http_client_response {
    struct http_client *client; /* borrowed */
    http_parser parser;
    VEC(struct field) fields;
    size_t head_bytes;
    bool is_head; /* of a HEAD request: no body whatever the fields say */
    bool has_head;
    bool is_complete;
    bool keeps_alive;
    struct buf body; /* decoded and not read, from body_read on */
    size_t body_read;
    struct buf rest; /* after an upgrade: bytes of the new protocol */
};

/* --- The connection. --- */

enum err http_client_new(const struct http_client_options *options, struct http_client **out,
                         struct error *e)
{
    if ((options->unix_path == NULL) == (options->host == NULL))
        return err_set(e, ERR_INVALID, "either the path of a socket or a host is needed");
    if (options->host != NULL && options->tls == NULL)
        return err_set(e, ERR_INVALID, "only the local socket can be reached without TLS");
    struct http_client *client = mem_new(1, sizeof(*client));
    client->fd = -1;
    client->unix_path = options->unix_path != NULL ? mem_strdup(options->unix_path) : NULL;
    client->host = options->host != NULL ? mem_strdup(options->host) : NULL;
    client->port = options->port;
    client->tls = options->host != NULL ? options->tls : NULL;
    client->connect_timeout_ms =
        options->connect_timeout_ms > 0 ? options->connect_timeout_ms : CONNECT_TIMEOUT_DEFAULT_MS;
    client->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_DEFAULT_MS;
    client->ignores_time = options->ignores_time;
    client->has_pin = options->pin != NULL;
    if (client->has_pin)
        memcpy(client->pin, options->pin, sizeof(client->pin));
    buf_add_str(&client->ca_pem, options->ca_pem);
    buf_add_str(&client->certificate_pem, options->certificate_pem);
    buf_add_str(&client->key_pem, options->key_pem);
    *out = client;
    return ERR_OK;
}

static void disconnect(struct http_client *client)
{
    if (client->stream != NULL)
        client->tls->detach(client->stream);
    client->stream = NULL;
    fd_close(client->fd);
    client->fd = -1;
    client->is_kept = false;
}

void http_client_free(struct http_client *client)
{
    if (client == NULL)
        return;
    disconnect(client);
    if (client->tls_state != NULL)
        client->tls->free_state(client->tls_state);
    if (client->key_pem.data != NULL)
        explicit_bzero(client->key_pem.data, client->key_pem.size);
    buf_done(&client->ca_pem);
    buf_done(&client->certificate_pem);
    buf_done(&client->key_pem);
    mem_free(client->unix_path);
    mem_free(client->host);
    mem_free(client);
}

static struct mono deadline_in(int64_t ms)
{
    return (struct mono){ clock_monotonic().ns + ms * NS_PER_MS };
}

enum err http_transport_wait(int fd, short events, struct mono deadline, struct error *e)
{
    for (;;) {
        struct pollfd one = { .fd = fd, .events = events };
        int count = poll(&one, 1, clock_poll_ms(clock_monotonic(), deadline));
        if (count > 0)
            return ERR_OK;
        if (count == 0)
            return err_set(e, ERR_UNAVAILABLE, "the server does not answer in time");
        if (errno != EINTR)
            return err_errno(e, "poll");
    }
}

enum err http_transport_connect(int fd, const struct sockaddr *address, socklen_t size,
                                struct mono deadline, struct error *e)
{
    if (connect(fd, address, size) == 0)
        return ERR_OK;
    /* A unix socket whose backlog is full says EAGAIN, and would not become writable later. */
    if (errno != EINPROGRESS)
        return err_errno(e, "connect");
    enum err rc = http_transport_wait(fd, POLLOUT, deadline, e);
    if (rc != ERR_OK)
        return rc;
    int failure = 0;
    socklen_t length = sizeof(failure);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length) < 0)
        return err_errno(e, "connect");
    errno = failure;
    return failure == 0 ? ERR_OK : err_errno(e, "connect");
}

static enum err connect_unix(struct http_client *client, struct error *e)
{
    struct sockaddr_un address;
    if (!address_unix(client->unix_path, &address))
        return err_set(e, ERR_INVALID, "%s is too long for the path of a socket",
                       client->unix_path);
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, "socket");
    enum err rc = http_transport_connect(fd, (struct sockaddr *)&address, sizeof(address),
                                         deadline_in(client->connect_timeout_ms), e);
    if (rc == ERR_OK)
        rc = fd_set_nonblock(fd, true, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s", client->unix_path);
    client->fd = fd_take(&fd);
    return ERR_OK;
}

static enum err make_tls(struct http_client *client, struct error *e)
{
    if (client->tls_state != NULL)
        return ERR_OK;
    struct http_client_options options = {
        .ca_pem = buf_str(&client->ca_pem),
        .pin = client->has_pin ? client->pin : NULL,
        .certificate_pem = buf_str(&client->certificate_pem),
        .key_pem = buf_str(&client->key_pem),
        .ignores_time = client->ignores_time,
    };
    return client->tls->new_state(&options, &client->tls_state, e);
}

static enum err open_connection(struct http_client *client, struct error *e)
{
    if (client->unix_path != NULL)
        return connect_unix(client, e);
    struct mono deadline = deadline_in(client->connect_timeout_ms);
    enum err rc = make_tls(client, e);
    if (rc == ERR_OK)
        rc = client->tls->dial(client->host, client->port, deadline, &client->fd, e);
    if (rc == ERR_OK)
        rc = client->tls->attach(client->tls_state, client->fd, client->host, deadline,
                                 &client->stream, e);
    if (rc != ERR_OK)
        disconnect(client);
    return rc;
}

static enum err write_all(struct http_client *client, struct str bytes, struct error *e)
{
    while (bytes.size > 0) {
        struct mono deadline = deadline_in(client->timeout_ms);
        enum err rc = ERR_OK;
        size_t sent = 0;
        errno = 0;
        if (client->stream != NULL) {
            rc = client->tls->write(client->stream, bytes, deadline, &sent, e);
        } else {
            ssize_t count = send(client->fd, bytes.data, bytes.size, MSG_NOSIGNAL);
            sent = count > 0 ? (size_t)count : 0;
            if (count < 0 && errno == EAGAIN)
                rc = http_transport_wait(client->fd, POLLOUT, deadline, e);
            else if (count < 0 && errno != EINTR)
                rc = err_errno(e, "send");
        }
        if (rc != ERR_OK)
            return rc;
        bytes = (struct str){ bytes.data + sent, bytes.size - sent };
    }
    return ERR_OK;
}

/* *got 0: the server has closed. */
static enum err read_some(struct http_client *client, char *out, size_t size, size_t *got,
                          struct error *e)
{
    struct mono deadline = deadline_in(client->timeout_ms);
    if (client->stream != NULL)
        return client->tls->read(client->stream, out, size, deadline, got, e);
    for (;;) {
        ssize_t count = recv(client->fd, out, size, 0);
        *got = count > 0 ? (size_t)count : 0;
        if (count >= 0)
            return ERR_OK;
        enum err rc = errno == EAGAIN  ? http_transport_wait(client->fd, POLLIN, deadline, e)
                      : errno == EINTR ? ERR_OK
                                       : err_errno(e, "recv");
        if (rc != ERR_OK)
            return rc;
    }
}

/* Something to read while a body is being sent: an early answer, or the end. */
static bool has_input(struct http_client *client)
{
    struct pollfd one = { .fd = client->fd, .events = POLLIN };
    bool is_ready = poll(&one, 1, 0) > 0;
    return client->stream != NULL ? client->tls->has_input(client->stream, is_ready) : is_ready;
}

/* --- Reading an answer. --- */

static int on_field_name(http_parser *parser, const char *at, size_t size)
{
    struct http_client_response *response = parser->data;
    response->head_bytes += size;
    if (response->head_bytes > HEAD_MAX)
        return 1;
    /* Names and values come in pieces; a value, even an empty one, ends a name. */
    bool is_more = response->fields.count > 0 &&
                   response->fields.items[response->fields.count - 1].value.data == NULL;
    if (!is_more) {
        struct field fresh = { 0 };
        vec_push(&response->fields, fresh);
    }
    struct field *field = &response->fields.items[response->fields.count - 1];
    for (size_t i = 0; i < size; i++) {
        char c = at[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        buf_add_char(&field->name, c);
    }
    return 0;
}

static int on_field_value(http_parser *parser, const char *at, size_t size)
{
    struct http_client_response *response = parser->data;
    response->head_bytes += size;
    if (response->head_bytes > HEAD_MAX || response->fields.count == 0)
        return 1;
    buf_add(&response->fields.items[response->fields.count - 1].value, at, size);
    return 0;
}

static void clear_fields(struct http_client_response *response)
{
    for (size_t i = 0; i < response->fields.count; i++) {
        buf_done(&response->fields.items[i].name);
        buf_done(&response->fields.items[i].value);
    }
    response->fields.count = 0;
}

static bool is_interim(const http_parser *parser)
{
    return parser->status_code < 200 && parser->status_code != 101;
}

static int on_headers_complete(http_parser *parser)
{
    struct http_client_response *response = parser->data;
    if (is_interim(parser)) {
        clear_fields(response);
        return 0;
    }
    response->has_head = true;
    return response->is_head ? 1 : 0;
}

static int on_body(http_parser *parser, const char *at, size_t size)
{
    struct http_client_response *response = parser->data;
    buf_add(&response->body, at, size);
    return 0;
}

static int on_message_complete(http_parser *parser)
{
    struct http_client_response *response = parser->data;
    if (is_interim(parser))
        return 0;
    response->is_complete = true;
    response->keeps_alive = http_should_keep_alive(parser) != 0;
    http_parser_pause(parser, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_header_field = on_field_name,
    .on_header_value = on_field_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* Reads once and decodes it. ERR_NOT_FOUND: the server had closed before the first byte. */
static enum err pump(struct http_client_response *response, struct error *e)
{
    char bytes[READ_BYTES];
    size_t got = 0;
    enum err rc = read_some(response->client, bytes, sizeof(bytes), &got, e);
    if (rc != ERR_OK)
        return rc;
    if (got == 0 && response->parser.nread == 0 && !response->has_head)
        return err_set(e, ERR_NOT_FOUND, "the server closed the connection without an answer");
    /* Size 0 tells the parser of the end, which completes a body without a length. */
    size_t used = http_parser_execute(&response->parser, &settings, bytes, got);
    enum http_errno failure = HTTP_PARSER_ERRNO(&response->parser);
    if (response->parser.upgrade && response->has_head) {
        response->is_complete = true;
        buf_add(&response->rest, bytes + used, got - used);
        return ERR_OK;
    }
    if (failure != HPE_OK && failure != HPE_PAUSED)
        return err_set(e, ERR_IO, "the answer is not HTTP: %s", http_errno_description(failure));
    if (got == 0 && !response->is_complete)
        return err_set(e, ERR_IO, "the answer broke off");
    return ERR_OK;
}

void http_client_response_free(struct http_client_response *response)
{
    if (response == NULL)
        return;
    struct http_client *client = response->client;
    client->is_busy = false;
    if (!response->is_complete || !response->keeps_alive || response->parser.upgrade)
        disconnect(client);
    clear_fields(response);
    vec_done(&response->fields);
    buf_done(&response->body);
    buf_done(&response->rest);
    mem_free(response);
}

/* --- Requests. --- */

static bool is_clean(struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < 0x20 || c == 0x7f)
            return false;
    }
    return true;
}

static enum err write_head(const struct http_client *client,
                           const struct http_client_request *request, struct buf *out,
                           struct error *e)
{
    if (!is_clean(request->target) || memchr(request->target.data, ' ', request->target.size))
        return err_set(e, ERR_INVALID, "a control character or a space in a target");
    buf_format(out, "%s %.*s HTTP/1.1\r\n", request->method, STR_ARG(request->target));
    if (client->unix_path != NULL)
        buf_add_text(out, "Host: localhost\r\n");
    else if (strchr(client->host, ':') != NULL)
        buf_format(out, "Host: [%s]:%u\r\n", client->host, (unsigned)client->port);
    else
        buf_format(out, "Host: %s:%u\r\n", client->host, (unsigned)client->port);
    for (size_t i = 0; i < request->field_count; i++) {
        const struct http_client_field *field = &request->fields[i];
        if (!is_clean(field->name) || !is_clean(field->value))
            return err_set(e, ERR_INVALID, "a control character in the header field %.*s",
                           STR_ARG(field->name));
        buf_format(out, "%.*s: %.*s\r\n", STR_ARG(field->name), STR_ARG(field->value));
    }
    bool has_length = request->read_body == NULL || request->body_length > 0;
    uint64_t length =
        request->read_body == NULL ? request->body.size : (uint64_t)request->body_length;
    if (!has_length)
        buf_add_text(out, "Transfer-Encoding: chunked\r\n");
    else if (length > 0 || strcmp(request->method, "GET") != 0)
        buf_format(out, "Content-Length: %llu\r\n", (unsigned long long)length);
    buf_add_text(out, "\r\n");
    return ERR_OK;
}

/* `is_refused`: the server answers before it has all of the body. */
static enum err send_body(struct http_client *client, const struct http_client_request *request,
                          bool *is_refused, struct error *e)
{
    char bytes[READ_BYTES];
    char line[CHUNK_LINE];
    bool is_chunked = request->body_length <= 0;
    int64_t left = request->body_length;
    for (;;) {
        size_t got = 0;
        enum err rc = request->read_body(request->body_arg, bytes, sizeof(bytes), &got, e);
        if (rc != ERR_OK)
            return rc;
        if (got == 0)
            break;
        if (!is_chunked && (int64_t)got > left)
            return err_set(e, ERR_INVALID, "the body is longer than was said");
        left -= (int64_t)got;
        if (has_input(client)) {
            *is_refused = true;
            return ERR_OK;
        }
        int size = snprintf(line, sizeof(line), "%zx\r\n", got);
        if (is_chunked)
            rc = write_all(client, (struct str){ line, (size_t)size }, e);
        if (rc == ERR_OK)
            rc = write_all(client, (struct str){ bytes, got }, e);
        if (rc == ERR_OK && is_chunked)
            rc = write_all(client, STR("\r\n"), e);
        if (rc != ERR_OK)
            return rc;
    }
    if (!is_chunked && left > 0)
        return err_set(e, ERR_INVALID, "the body is shorter than was said");
    return is_chunked ? write_all(client, STR("0\r\n\r\n"), e) : ERR_OK;
}

static enum err send_request(struct http_client *client, const struct http_client_request *request,
                             bool *is_refused, struct error *e)
{
    AUTO(buf) struct buf head = { 0 };
    enum err rc = write_head(client, request, &head, e);
    if (rc != ERR_OK)
        return rc;
    if (request->read_body == NULL)
        buf_add_str(&head, request->body);
    rc = write_all(client, buf_str(&head), e);
    if (rc == ERR_OK && request->read_body != NULL)
        rc = send_body(client, request, is_refused, e);
    return rc;
}

static enum err exchange(struct http_client *client, const struct http_client_request *request,
                         struct http_client_response **out, struct error *e)
{
    if (client->fd < 0) {
        enum err rc = open_connection(client, e);
        if (rc != ERR_OK)
            return rc;
    }
    bool is_refused = false;
    enum err sent = send_request(client, request, &is_refused, e);
    /* Even a failed write may have been answered: 413 and a close, say. */
    if (sent != ERR_OK && sent != ERR_IO)
        return sent;
    struct http_client_response *response = mem_new(1, sizeof(*response));
    response->client = client;
    response->is_head = strcmp(request->method, "HEAD") == 0;
    http_parser_init(&response->parser, HTTP_RESPONSE);
    response->parser.data = response;
    enum err rc = ERR_OK;
    while (rc == ERR_OK && !response->has_head)
        rc = pump(response, sent == ERR_OK ? e : NULL);
    if (rc != ERR_OK) {
        http_client_response_free(response);
        return sent != ERR_OK ? sent : rc;
    }
    if (sent != ERR_OK || is_refused)
        response->keeps_alive = false;
    *out = response;
    return ERR_OK;
}

enum err http_client_send(struct http_client *client, const struct http_client_request *request,
                          struct http_client_response **out, struct error *e)
{
    if (client->is_busy)
        return err_set(e, ERR_CONFLICT, "the answer before has not been read");
    /* A server that closed while we were idle has left its end of stream for us to see. */
    if (client->fd >= 0 && has_input(client))
        disconnect(client);
    bool was_kept = client->fd >= 0 && client->is_kept;
    enum err rc = exchange(client, request, out, e);
    bool may_repeat = request->may_repeat || strcmp(request->method, "GET") == 0;
    if (rc != ERR_OK && was_kept && may_repeat && request->read_body == NULL &&
        (rc == ERR_IO || rc == ERR_NOT_FOUND)) {
        disconnect(client);
        rc = exchange(client, request, out, e);
    }
    if (rc != ERR_OK) {
        disconnect(client);
        /* "Not found" is for what the request asked for. */
        return rc == ERR_NOT_FOUND ? ERR_IO : rc;
    }
    client->is_kept = true;
    client->is_busy = true;
    return ERR_OK;
}

unsigned http_client_status(const struct http_client_response *response)
{
    return response->parser.status_code;
}

struct str http_client_field(const struct http_client_response *response, const char *name)
{
    for (size_t i = 0; i < response->fields.count; i++) {
        if (str_is(buf_str(&response->fields.items[i].name), name)) {
            struct str value = buf_str(&response->fields.items[i].value);
            return value.data != NULL ? value : STR("");
        }
    }
    return (struct str){ 0 };
}

/* Decoded bytes are there, or the body is complete. */
static enum err want_body(struct http_client_response *response, struct error *e)
{
    if (response->body_read == response->body.size) {
        buf_clear(&response->body);
        response->body_read = 0;
    }
    while (response->body.size == 0 && !response->is_complete) {
        enum err rc = pump(response, e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

enum err http_client_read(struct http_client_response *response, void *out, size_t size,
                          size_t *got, struct error *e)
{
    enum err rc = want_body(response, e);
    if (rc != ERR_OK)
        return rc;
    *got = MIN_OF(size, response->body.size - response->body_read);
    if (*got > 0)
        memcpy(out, response->body.data + response->body_read, *got);
    response->body_read += *got;
    return ERR_OK;
}

enum err http_client_read_all(struct http_client_response *response, size_t max, struct buf *out,
                              struct error *e)
{
    char bytes[READ_BYTES];
    size_t total = 0;
    for (;;) {
        size_t got = 0;
        enum err rc = http_client_read(response, bytes, sizeof(bytes), &got, e);
        if (rc != ERR_OK || got == 0)
            return rc;
        total += got;
        if (total > max)
            return err_set(e, ERR_LIMIT, "the answer has more than %zu bytes", max);
        buf_add(out, bytes, got);
    }
}

/* --- Events. --- */

/* One line without its end. ERR_NOT_FOUND: the feed has ended. */
static enum err read_line(struct http_client_response *response, size_t max, struct buf *line,
                          struct error *e)
{
    buf_clear(line);
    for (;;) {
        enum err rc = want_body(response, e);
        if (rc != ERR_OK)
            return rc;
        struct str rest = { response->body.data + response->body_read,
                            response->body.size - response->body_read };
        if (rest.size == 0)
            return err_set(e, ERR_NOT_FOUND, "the feed has ended");
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t size = end != NULL ? (size_t)(end - rest.data) : rest.size;
        if (line->size + size > max)
            return err_set(e, ERR_LIMIT, "an event has more than %zu bytes", max);
        buf_add(line, rest.data, size);
        response->body_read += size + (end != NULL ? 1 : 0);
        if (end == NULL)
            continue;
        if (line->size > 0 && line->data[line->size - 1] == '\r')
            line->size--;
        return ERR_OK;
    }
}

static void take_event_line(struct http_client_event *event, struct str line)
{
    struct str value = line;
    struct str name = str_cut(&value, ':');
    if (value.size > 0 && value.data[0] == ' ')
        value = (struct str){ value.data + 1, value.size - 1 };
    if (str_is(name, "id")) {
        buf_clear(&event->id);
        buf_add_str(&event->id, value);
    } else if (str_is(name, "event")) {
        buf_clear(&event->event);
        buf_add_str(&event->event, value);
    } else if (str_is(name, "data")) {
        if (event->data.size > 0)
            buf_add_char(&event->data, '\n');
        buf_add_str(&event->data, value);
    }
}

enum err http_client_read_event(struct http_client_response *response, size_t max,
                                struct http_client_event *event, struct error *e)
{
    AUTO(buf) struct buf line = { 0 };
    bool has_lines = false;
    buf_clear(&event->event);
    buf_clear(&event->data);
    for (;;) {
        enum err rc = read_line(response, max, &line, e);
        if (rc != ERR_OK)
            return rc;
        if (line.size == 0 && has_lines)
            return ERR_OK;
        if (line.size == 0 || line.data[0] == ':')
            continue;
        if (event->data.size + line.size > max)
            return err_set(e, ERR_LIMIT, "an event has more than %zu bytes", max);
        has_lines = true;
        take_event_line(event, buf_str(&line));
    }
}

void http_client_event_done(struct http_client_event *event)
{
    buf_done(&event->id);
    buf_done(&event->event);
    buf_done(&event->data);
}
