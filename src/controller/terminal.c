#include "controller/terminal.h"

#include <stdio.h>
#include <string.h>

#include "controller/cli_streams.h"
#include "net/websocket.h"
#include "os/log.h"
#include "wire/json_writer.h"

#define SUBPROTOCOL "berth-terminal/1"

enum {
    FIRST_MESSAGE_S = 10,
    ARGUMENTS_MAX = 64,
    ARGUMENT_BYTES_MAX = 2048,
    SIZE_MAX_CELLS = 4096,
    QUEUE_BYTES = 2 * CHANNEL_FRAME_MAX, /* a whole frame of the node always fits an empty queue */
};

/* Close codes of our own; reasons are for people. */
enum { CLOSE_NORMAL = 1000, CLOSE_STOPPING = 1001, CLOSE_PROTOCOL = 1002, CLOSE_REFUSED = 4000 };

struct terminal {
    struct server *server; /* borrowed */
    struct websocket *socket;
    struct link_stream *stream; /* to the node; NULL: not yet, or no more */
    struct loop_timer deadline; /* of the first message */
    struct conn_peer peer;
    struct id workload;
    struct str token; /* of the request's head; in the arena */
    struct arena arena;
    struct buf from_node; /* owned; credited as it leaves: at most LINK_WINDOW */
    struct buf to_node;   /* owned; the socket is paused while it is not empty */
    bool is_started, is_ending;
    struct loop_task ending;
    unsigned end_code;
    const char *end_reason; /* static */
    struct terminal *next, *prev;
};

/* A text message of the client. The first one starts the command, later ones change the size. */
struct terminal_message {
    struct str token;
    struct str_list command;
    struct str term;
    int64_t member, rows, columns;
    bool end;
};

#define OF struct terminal_message
static const struct field message_fields[] = {
    { F(STR, token), .max = 256 },
    { F(STR_LIST, command), .max = ARGUMENTS_MAX, .item_max = ARGUMENT_BYTES_MAX },
    { F(STR, term), .max = 63 },
    { F(I64, member), .min = 0, .max = INT32_MAX },
    { F(I64, rows), .min = 1, .max = SIZE_MAX_CELLS },
    { F(I64, columns), .min = 1, .max = SIZE_MAX_CELLS },
    { F(BOOL, end) },
};
static const struct schema terminal_schema =
    SCHEMA("TerminalMessage", message_fields, "what a browser's terminal says");
#undef OF

/* ---- towards the client ---------------------------------------------------------------------- */

static void terminal_end(struct terminal *terminal, unsigned code, const char *reason)
{
    if (terminal->is_ending)
        return;
    terminal->is_ending = true;
    terminal->end_code = code;
    terminal->end_reason = reason;
    loop_task_queue(terminal->server->berthd->loop, &terminal->ending);
}

/* At the end of the round: inside of a message's callback a close would overtake what was said. */
static void on_ending(void *arg)
{
    struct terminal *terminal = arg;
    websocket_close(terminal->socket, terminal->end_code, terminal->end_reason);
}

/* {"exit": number} or {"signal": number}, then the end. False: no room now. */
static bool terminal_say_exit(struct terminal *terminal, const uint8_t exited[2])
{
    char text[64];
    int size =
        snprintf(text, sizeof(text), "{\"%s\":%u}", exited[0] == 0 ? "exit" : "signal", exited[1]);
    if (websocket_send(terminal->socket, (struct str){ text, (size_t)size }, true) == ERR_LIMIT)
        return false;
    terminal_end(terminal, CLOSE_NORMAL, "");
    return true;
}

/* {"error": text}, then the end. */
static void terminal_fail(struct terminal *terminal, unsigned code, struct str why)
{
    AUTO(buf) struct buf text = { 0 };
    struct json_writer w = json_writer_of(&text);
    if (terminal->is_ending)
        return;
    json_begin_object(&w);
    json_put_str(&w, "error", why);
    json_end_object(&w);
    if (websocket_send(terminal->socket, buf_str(&text), true) != ERR_OK)
        log_info("a terminal had no room for its error", LOG_SLICE("error", why));
    terminal_end(terminal, code, "");
}

/* False: no room now. */
static bool frame_pass(struct terminal *terminal, const struct channel_frame *frame)
{
    if (frame->channel == CHANNEL_STDOUT || frame->channel == CHANNEL_STDERR)
        return frame->bytes.size == 0 ||
               websocket_send(terminal->socket, frame->bytes, false) != ERR_LIMIT;
    if (frame->channel == CHANNEL_EXIT && frame->bytes.size == 2)
        return terminal_say_exit(terminal, (const uint8_t *)frame->bytes.data);
    if (frame->channel == CHANNEL_ERROR)
        terminal_fail(terminal, CLOSE_REFUSED, frame->bytes);
    return true;
}

static void terminal_pump(struct terminal *terminal)
{
    while (!terminal->is_ending) {
        struct error e = { 0 };
        struct str rest = buf_str(&terminal->from_node);
        struct channel_frame frame;
        bool is_complete = false;
        if (channel_decode(&rest, &frame, &is_complete, &e) != ERR_OK ||
            (!is_complete && terminal->from_node.size >= LINK_WINDOW)) {
            terminal_fail(terminal, CLOSE_REFUSED, STR("the node does not keep to the protocol"));
            return;
        }
        if (!is_complete || !frame_pass(terminal, &frame))
            return;
        size_t used = terminal->from_node.size - rest.size;
        buf_consume(&terminal->from_node, used);
        if (terminal->stream != NULL)
            link_stream_credit(terminal->stream, used);
    }
}

/* ---- the node's side ------------------------------------------------------------------------- */

static void node_flush(struct terminal *terminal)
{
    if (terminal->stream == NULL)
        return;
    size_t passed = link_stream_write(terminal->stream, buf_str(&terminal->to_node));
    buf_consume(&terminal->to_node, passed);
    if (terminal->to_node.size > 0)
        websocket_pause(terminal->socket);
    else if (!terminal->is_ending)
        websocket_resume(terminal->socket);
}

static void node_on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    struct terminal *terminal = arg;
    if (terminal->is_ending) {
        link_stream_credit(stream, bytes.size);
        return;
    }
    buf_add_str(&terminal->from_node, bytes);
    terminal_pump(terminal);
}

static void node_on_room(struct link_stream *stream, void *arg)
{
    (void)stream;
    node_flush(arg);
}

static void node_on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    struct terminal *terminal = arg;
    (void)stream;
    terminal->stream = NULL;
    terminal_pump(terminal);
    if (terminal->is_ending)
        return;
    bool is_lost = code == LINK_CODE_DOWN || text.size == 0;
    terminal_fail(terminal, CLOSE_REFUSED,
                  is_lost ? STR("the connection to the node was lost") : text);
}

static const struct link_stream_events node_events = { .on_data = node_on_data,
                                                       .on_room = node_on_room,
                                                       .on_close = node_on_close };

/* ---- the client's side ----------------------------------------------------------------------- */

static enum err terminal_start(struct terminal *terminal, const struct terminal_message *message,
                               struct error *e)
{
    static struct str shell = { "/bin/sh", 7 };
    const struct stream_end end = { &node_events, terminal };
    const struct stream_header header = {
        .kind = STREAM_EXEC,
        .workload = terminal->workload,
        .member = message->member,
        .argv = message->command.count > 0 ? message->command : (struct str_list){ &shell, 1 },
        .is_tty = true,
        .rows = message->rows > 0 ? message->rows : 24,
        .columns = message->columns > 0 ? message->columns : 80,
        .term = message->term.size > 0 ? message->term : STR("xterm-256color"),
        .token = message->token.size > 0 ? message->token : terminal->token,
    };
    return cli_streams_exec(terminal->server->berthd, &terminal->peer, &header, &end,
                            &terminal->stream, e);
}

static void terminal_change(struct terminal *terminal, const struct terminal_message *message)
{
    if (message->rows > 0 && message->columns > 0) {
        const uint8_t size[4] = { (uint8_t)(message->rows >> 8), (uint8_t)message->rows,
                                  (uint8_t)(message->columns >> 8), (uint8_t)message->columns };
        channel_encode(CHANNEL_RESIZE, (struct str){ (const char *)size, sizeof(size) },
                       &terminal->to_node);
    }
    if (message->end)
        channel_encode(CHANNEL_STDIN, (struct str){ 0 }, &terminal->to_node);
    node_flush(terminal);
}

static void terminal_hear(struct terminal *terminal, struct str text)
{
    AUTO(arena) struct arena arena = { 0 };
    struct terminal_message message = { 0 };
    struct error e = { 0 };
    enum err rc = schema_decode_text(&terminal_schema, text, UNKNOWN_REFUSED, &arena, &message, &e);
    if (rc != ERR_OK) {
        terminal_fail(terminal, CLOSE_PROTOCOL, str_of(e.text));
        return;
    }
    if (terminal->is_started) {
        terminal_change(terminal, &message);
        return;
    }
    terminal->is_started = true;
    loop_timer_stop(terminal->server->berthd->loop, &terminal->deadline);
    if (terminal_start(terminal, &message, &e) != ERR_OK)
        terminal_fail(terminal, CLOSE_REFUSED, str_of(e.text));
}

static void socket_on_message(struct websocket *socket, struct str bytes, bool is_text, void *arg)
{
    struct terminal *terminal = arg;
    (void)socket;
    if (terminal->is_ending)
        return;
    if (is_text) {
        terminal_hear(terminal, bytes);
    } else if (!terminal->is_started) {
        terminal_fail(terminal, CLOSE_PROTOCOL, STR("the first message is text: how to start"));
    } else if (bytes.size > 0) { /* an empty frame would be the end of the input */
        channel_encode(CHANNEL_STDIN, bytes, &terminal->to_node);
        node_flush(terminal);
    }
}

static void socket_on_room(struct websocket *socket, void *arg)
{
    (void)socket;
    terminal_pump(arg);
}

static void terminal_free(struct terminal *terminal)
{
    struct server *server = terminal->server;
    if (terminal->prev != NULL)
        terminal->prev->next = terminal->next;
    else
        server->terminals = terminal->next;
    if (terminal->next != NULL)
        terminal->next->prev = terminal->prev;
    loop_timer_stop(server->berthd->loop, &terminal->deadline);
    loop_task_cancel(server->berthd->loop, &terminal->ending);
    if (terminal->token.size > 0) /* in our own arena */
        explicit_bzero((void *)(uintptr_t)terminal->token.data, terminal->token.size);
    arena_done(&terminal->arena);
    buf_done(&terminal->from_node);
    buf_done(&terminal->to_node);
    mem_free(terminal);
}

static void socket_on_close(struct websocket *socket, unsigned code, const char *why, void *arg)
{
    struct terminal *terminal = arg;
    (void)socket;
    (void)code;
    (void)why;
    if (terminal->stream != NULL)
        link_stream_close(terminal->stream, LINK_CODE_OK, STR("the terminal was closed"));
    terminal_free(terminal);
}

static const struct websocket_events socket_events = { .on_message = socket_on_message,
                                                       .on_room = socket_on_room,
                                                       .on_close = socket_on_close };

static void on_deadline(void *arg)
{
    terminal_fail(arg, CLOSE_PROTOCOL, STR("nothing was said for too long"));
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A page of another origin must not even try: browsers say where a page is from, others
 * say nothing. */
static enum err origin_check(const struct http_request *http, struct error *e)
{
    struct str origin = http_request_field(http, "origin");
    struct str host = http_request_field(http, "host");
    if (origin.data == NULL)
        return ERR_OK;
    for (const char *const *scheme = (const char *const[]){ "https://", "http://", NULL };
         *scheme != NULL; scheme++) {
        struct str prefix = str_of(*scheme);
        if (str_starts(origin, prefix) && host.size > 0 &&
            str_eq((struct str){ origin.data + prefix.size, origin.size - prefix.size }, host))
            return ERR_OK;
    }
    return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED,
                     "a page of another origin may not open terminals");
}

static enum err terminal_check(const struct exchange *exchange, const struct http_request *http,
                               struct id *workload, struct error *e)
{
    struct str text = exchange->request.params[0];
    if (!websocket_is_wanted(http))
        return err_set(e, ERR_INVALID, "this address is for WebSockets: Upgrade: websocket");
    if (!id_parse(ID_WORKLOAD, text, workload))
        return err_cause(e, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "there is no workload \"%.*s\"",
                         (int)MIN_OF(text.size, (size_t)64), text.data);
    return origin_check(http, e);
}

static struct terminal *terminal_new(struct exchange *exchange, const struct http_request *http,
                                     struct id workload)
{
    static const struct str scheme = { "Bearer ", 7 };
    struct str field = http_request_field(http, "authorization");
    struct terminal *terminal = mem_new(1, sizeof(*terminal));
    terminal->server = exchange->server;
    terminal->workload = workload;
    terminal->peer = *http_request_peer(http);
    if (str_starts(field, scheme))
        terminal->token = str_copy(
            &terminal->arena, (struct str){ field.data + scheme.size, field.size - scheme.size });
    terminal->ending = (struct loop_task){ .fn = on_ending, .arg = terminal };
    terminal->deadline = (struct loop_timer){ .fn = on_deadline, .arg = terminal };
    terminal->next = terminal->server->terminals;
    if (terminal->next != NULL)
        terminal->next->prev = terminal;
    terminal->server->terminals = terminal;
    return terminal;
}

void terminal_open(struct exchange *exchange, struct http_request *http)
{
    static const struct websocket_options options = { .subprotocol = SUBPROTOCOL,
                                                      .queue_bytes_max = QUEUE_BYTES };
    struct loop *loop = exchange->server->berthd->loop;
    struct error e = { 0 };
    struct id workload = { 0 };
    if (terminal_check(exchange, http, &workload, &e) != ERR_OK) {
        exchange_refuse(exchange, &e);
        return;
    }
    struct terminal *terminal = terminal_new(exchange, http, workload);
    /* Refused: the request was answered with why. The exchange has ended either way. */
    if (websocket_accept(http, &options, &socket_events, terminal, &terminal->socket, &e) !=
        ERR_OK) {
        terminal_free(terminal);
        return;
    }
    loop_timer_set(loop, &terminal->deadline, mono_add_s(loop_now(loop), FIRST_MESSAGE_S));
}

void terminals_end(struct server *server)
{
    for (struct terminal *t = server->terminals; t != NULL; t = t->next) {
        t->is_ending = true;
        websocket_close(t->socket, CLOSE_STOPPING, "the controller stops"); /* no round follows */
    }
}
