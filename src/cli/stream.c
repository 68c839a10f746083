#include "cli/stream.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "net/link.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/file.h"

enum { READ_CHUNK = 16 * 1024, CA_MAX = 256 * 1024, UPGRADE_HEAD_MAX = 16 * 1024 };

struct session {
    struct cli *cli;
    struct stream_run *run;
    struct loop *loop;
    struct conn *conn; /* until the upgrade is answered */
    struct link *link;
    struct link_stream *stream;
    struct loop_watch input, size_changes;
    bool is_input_watched, is_size_watched;
    struct buf incoming; /* a frame that is not whole */
    bool is_over;
    enum err rc;
    struct stream_exit exit;
    struct error error;
};

static void session_end(struct session *session, enum err rc)
{
    if (!session->is_over)
        session->rc = rc;
    session->is_over = true;
    loop_stop(session->loop);
}

static void frame_send(struct session *session, enum stream_channel channel, struct str bytes)
{
    AUTO(buf) struct buf frame = { 0 };
    channel_encode(channel, bytes, &frame);
    if (session->stream != NULL && link_stream_write(session->stream, buf_str(&frame)) < frame.size)
        session_end(session, err_set(&session->error, ERR_IO, "the stream has no room"));
}

/* ---- our side -------------------------------------------------------------------------------- */

static void input_stop(struct session *session)
{
    if (session->is_input_watched)
        loop_watch_remove(session->loop, &session->input);
    session->is_input_watched = false;
}

static void on_input(struct loop_watch *watch, uint32_t events)
{
    struct session *session = watch->arg;
    char chunk[READ_CHUNK];
    (void)events;
    if (link_stream_room(session->stream) < READ_CHUNK + 64) {
        loop_watch_change(session->loop, watch, 0); /* on_room goes on */
        link_stream_want_room(session->stream);
        return;
    }
    ssize_t got = read(watch->fd, chunk, sizeof(chunk));
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        input_stop(session);
        frame_send(session, CHANNEL_STDIN, (struct str){ 0 });
        return;
    }
    frame_send(session, CHANNEL_STDIN, (struct str){ chunk, (size_t)got });
}

/* Files cannot be waited for: they are always readable, and are read when there is room. */
static void input_start(struct session *session)
{
    struct error e = { 0 };
    if (session->run->input_fd < 0)
        return;
    session->input = (struct loop_watch){
        .fd = session->run->input_fd, .events = EPOLLIN, .on_ready = on_input, .arg = session
    };
    session->is_input_watched = loop_watch_add(session->loop, &session->input, &e) == ERR_OK;
    while (!session->is_input_watched && !session->is_over) {
        char chunk[READ_CHUNK];
        ssize_t got = read(session->run->input_fd, chunk, sizeof(chunk));
        while (!session->is_over && link_stream_room(session->stream) < READ_CHUNK + 64) {
            link_stream_want_room(session->stream);
            if (loop_turn(session->loop, 1000, &session->error) != ERR_OK)
                session_end(session, ERR_IO);
        }
        if (session->is_over)
            return;
        frame_send(session, CHANNEL_STDIN, (struct str){ chunk, got > 0 ? (size_t)got : 0 });
        if (got <= 0)
            return;
    }
}

static void size_send(struct session *session)
{
    struct winsize size;
    if (ioctl(session->run->output_fd, TIOCGWINSZ, &size) != 0)
        return;
    const char bytes[4] = { (char)(size.ws_row >> 8), (char)size.ws_row, (char)(size.ws_col >> 8),
                            (char)size.ws_col };
    frame_send(session, CHANNEL_RESIZE, (struct str){ bytes, 4 });
}

static void on_size_change(struct loop_watch *watch, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)events;
    if (read(watch->fd, &info, sizeof(info)) == sizeof(info))
        size_send(watch->arg);
}

static void sizes_watch(struct session *session)
{
    sigset_t set;
    struct error e = { 0 };
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGWINCH);
    if (!session->run->is_terminal || pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return;
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    session->size_changes = (struct loop_watch){
        .fd = fd, .events = EPOLLIN, .on_ready = on_size_change, .arg = session
    };
    session->is_size_watched =
        fd >= 0 && loop_watch_add(session->loop, &session->size_changes, &e) == ERR_OK;
}

/* ---- their side ------------------------------------------------------------------------------ */

static void frame_take(struct session *session, const struct channel_frame *frame)
{
    struct str bytes = frame->bytes;
    enum err rc = ERR_OK;
    if (frame->channel == CHANNEL_STDOUT && session->run->output_fd >= 0)
        rc = fd_write_full(session->run->output_fd, bytes.data, bytes.size, &session->error);
    else if (frame->channel == CHANNEL_STDERR && session->run->error_fd >= 0)
        rc = fd_write_full(session->run->error_fd, bytes.data, bytes.size, &session->error);
    if (rc != ERR_OK) {
        session_end(session, rc);
        return;
    }
    if (frame->channel == CHANNEL_EXIT && bytes.size == 2) {
        session->exit = (struct stream_exit){ .is_signal = bytes.data[0] != 0,
                                              .number = (unsigned char)bytes.data[1] };
        session_end(session, ERR_OK);
    } else if (frame->channel == CHANNEL_ERROR) {
        session_end(session, err_set(&session->error, ERR_UNAVAILABLE, "%.*s", STR_ARG(bytes)));
    }
}

static void on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    struct session *session = arg;
    struct error e = { 0 };
    buf_add_str(&session->incoming, bytes);
    struct str rest = buf_str(&session->incoming);
    while (!session->is_over) {
        struct channel_frame frame;
        bool is_complete = false;
        if (channel_decode(&rest, &frame, &is_complete, &e) != ERR_OK) {
            session_end(session, err_set(&session->error, ERR_IO, "the node breaks the protocol"));
            return;
        }
        if (!is_complete)
            break;
        frame_take(session, &frame);
    }
    buf_consume(&session->incoming, session->incoming.size - rest.size);
    link_stream_credit(stream, bytes.size);
}

static void on_room(struct link_stream *stream, void *arg)
{
    struct session *session = arg;
    (void)stream;
    if (session->is_input_watched)
        loop_watch_change(session->loop, &session->input, EPOLLIN);
}

/* ERR_OK: not a refusal. */
static enum err refusal_code(uint32_t code)
{
    switch (code) {
    case STREAM_REFUSED_NOT_FOUND:
        return ERR_NOT_FOUND;
    case STREAM_REFUSED_CONFLICT:
        return ERR_CONFLICT;
    case STREAM_REFUSED_DENIED:
    case LINK_CODE_REFUSED:
        return ERR_DENIED;
    case STREAM_REFUSED_UNAVAILABLE:
        return ERR_UNAVAILABLE;
    case STREAM_REFUSED_INVALID:
        return ERR_INVALID;
    default:
        return ERR_OK;
    }
}

static void on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    struct session *session = arg;
    (void)stream;
    session->stream = NULL;
    input_stop(session);
    if (session->is_over)
        return;
    enum err refusal = refusal_code(code);
    if (refusal != ERR_OK)
        session_end(session, err_set(&session->error, refusal, "%.*s", STR_ARG(text)));
    else
        session_end(session, err_set(&session->error, ERR_UNAVAILABLE,
                                     "the stream ended early: %.*s", STR_ARG(text)));
}

static const struct link_stream_events stream_events = {
    .on_data = on_data,
    .on_room = on_room,
    .on_close = on_close,
};

static void open_stream(struct session *session)
{
    AUTO(buf) struct buf bytes = { 0 };
    struct stream_run *run = session->run;
    run->header.token = buf_str(&session->cli->token);
    enum err rc = stream_header_encode(&run->header, &bytes, &session->error);
    if (rc != ERR_OK) {
        session_end(session, rc);
        return;
    }
    session->stream = link_stream_open(session->link, buf_str(&bytes), &stream_events, session);
    if (session->stream == NULL) {
        session_end(session, err_set(&session->error, ERR_UNAVAILABLE, "the link is down"));
        return;
    }
    sizes_watch(session);
    input_start(session);
}

static void on_up(struct link *link, void *arg)
{
    struct session *session = arg;
    session->link = link;
    open_stream(session);
}

static void on_message(struct link *link, uint16_t type, struct str payload, void *arg)
{
    struct session *session = arg;
    AUTO(arena) struct arena arena = { 0 };
    struct refuse_message refuse = { 0 };
    (void)link;
    if (type == MESSAGE_REFUSE &&
        message_decode(MESSAGE_REFUSE, payload, &arena, &refuse, NULL) == ERR_OK)
        session_end(session, err_set(&session->error, ERR_DENIED, "%.*s", STR_ARG(refuse.detail)));
}

static void on_down(struct link *link, const char *why, void *arg)
{
    struct session *session = arg;
    (void)link;
    session->link = NULL;
    if (!session->is_over)
        session_end(session,
                    err_set(&session->error, ERR_UNAVAILABLE, "%s: %s", session->cli->server, why));
}

static const struct link_events link_events = {
    .on_up = on_up,
    .on_message = on_message,
    .on_down = on_down,
};
static const struct link_options link_options = { .message_bytes_max = 1024 * 1024 };

/* ---- over the unix socket: HTTP first, then the link ----------------------------------------- */

static void upgrade_on_open(struct conn *conn, void *arg)
{
    static const char request[] = "GET /v1/link HTTP/1.1\r\nHost: berth\r\nConnection: Upgrade\r\n"
                                  "Upgrade: " TLS_ALPN_LINK "\r\n\r\n";
    (void)arg;
    conn_send_always(conn, request, sizeof(request) - 1);
}

static size_t upgrade_on_data(struct conn *conn, struct str data, void *arg)
{
    struct session *session = arg;
    const char *end = memmem(data.data, data.size, "\r\n\r\n", 4);
    if (end == NULL && data.size < UPGRADE_HEAD_MAX)
        return 0;
    if (end == NULL || !str_starts(data, STR("HTTP/1.1 101"))) {
        session_end(session, err_set(&session->error, ERR_UNAVAILABLE,
                                     "the controller does not speak berth-link/1 here"));
        return data.size;
    }
    session->conn = NULL;
    session->link = link_take(conn, &link_options, &link_events, session);
    open_stream(session);
    return (size_t)(end - data.data) + 4;
}

static void upgrade_on_close(struct conn *conn, const char *why, void *arg)
{
    struct session *session = arg;
    (void)conn;
    session->conn = NULL;
    if (!session->is_over)
        session_end(session,
                    err_set(&session->error, ERR_UNAVAILABLE, "%s: %s", session->cli->server, why));
}

static const struct conn_events upgrade_events = { .on_open = upgrade_on_open,
                                                   .on_data = upgrade_on_data,
                                                   .on_close = upgrade_on_close };

static enum err dial(struct session *session, struct error *e)
{
    struct cli *cli = session->cli;
    static const struct str unix_prefix = { "unix:", 5 };
    struct conn_dial_options options = { 0 };
    if (str_starts(str_of(cli->server), unix_prefix)) {
        options.unix_path = cli->server + unix_prefix.size;
        session->conn = conn_dial(session->loop, &options, &upgrade_events, session);
        return ERR_OK;
    }
    AUTO(buf) struct buf ca = { 0 };
    AUTO(tls_context) struct tls_context *tls = NULL;
    struct http_client_options address = { 0 };
    enum err rc = cli_server_split(cli, &address, e);
    if (rc == ERR_OK)
        rc = file_read(cli->ca_file, CA_MAX, &ca, e);
    const struct tls_client_options tls_options = { .ca_pem = buf_str(&ca),
                                                    .protocol = TLS_PROTOCOL_LINK };
    if (rc == ERR_OK)
        rc = tls_client_new(&tls_options, &tls, e);
    if (rc != ERR_OK)
        return rc;
    options.host = address.host;
    options.port = address.port;
    options.tls = tls;
    session->link = link_dial(session->loop, &options, &link_options, &link_events, session);
    return ERR_OK;
}

static void session_done(struct session *session)
{
    struct error e = { 0 };
    input_stop(session);
    if (session->is_size_watched) {
        loop_watch_remove(session->loop, &session->size_changes);
        fd_close(session->size_changes.fd);
    }
    session->is_over = true;
    if (session->link != NULL)
        link_abort(session->link, "done");
    if (session->conn != NULL)
        conn_abort(session->conn, "done");
    while ((session->link != NULL || session->conn != NULL) &&
           loop_turn(session->loop, 0, &e) == ERR_OK)
        continue;
    buf_done(&session->incoming);
    loop_free(session->loop);
}

enum err stream_run(struct cli *cli, struct stream_run *run, struct stream_exit *out,
                    struct error *e)
{
    struct session session = { .cli = cli, .run = run };
    (void)signal(SIGPIPE, SIG_IGN);
    enum err rc = loop_new(&session.loop, e);
    if (rc != ERR_OK)
        return rc;
    rc = dial(&session, e);
    while (rc == ERR_OK && !session.is_over)
        rc = loop_turn(session.loop, -1, e);
    if (rc == ERR_OK)
        rc = session.rc;
    if (rc != ERR_OK && session.error.text[0] != '\0' && e != NULL)
        *e = session.error;
    if (rc == ERR_OK)
        *out = session.exit;
    session_done(&session);
    return rc;
}
