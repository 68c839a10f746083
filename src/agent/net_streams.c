/*
 * Commands, terminals and trees: the controller opens a stream with a signed ticket, the privileged
 * half opens descriptors for it, and here bytes go between the two. On the stream they are frames
 * of a channel (wire/link.h); a tree uses stdin and stdout alike. Both directions are bounded: what
 * the stream has no room for stays in the pipe, what the pipe has no room for is not credited.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/network.h"
#include "os/fd.h"
#include "os/log.h"

enum {
    READ_CHUNK = 16 * 1024,
    LAST_FRAMES = 1024,             /* always left: for the exit or the error */
    INCOMING_MAX = LINK_WINDOW / 2, /* a frame that is not whole holds back its credit */
};

struct pipe_end {
    struct tunnel *tunnel;
    enum stream_channel channel;
    int fd; /* owned; -1: none or closed */
    struct loop_watch watch;
    bool is_watched;
};

struct tunnel {
    struct net_streams *streams;
    uint64_t number;
    enum stream_kind kind;
    bool is_tty;
    bool is_opened;             /* the privileged half was asked */
    struct link_stream *stream; /* NULL: the user has gone */
    uint8_t ticket[TICKET_SIZE];
    uint16_t rows, columns;
    struct buf incoming; /* owned: bytes of a frame that is not whole */
    struct buf input;    /* owned: for the process, not written yet */
    bool is_input_ended;
    struct pipe_end in, out, err;
    bool has_exit;
    char exit_frame[2];
    bool is_failed;
    struct buf failure; /* owned: text */
    struct tunnel *next;
};

struct net_streams {
    struct network *network; /* borrowed */
    struct tunnel *first;    /* owned */
    uint64_t number;
};

static void tunnel_finish(struct tunnel *tunnel);

/* ---- descriptors ----------------------------------------------------------------------------- */

static void end_close(struct pipe_end *end)
{
    if (end->is_watched)
        loop_watch_remove(end->tunnel->streams->network->loop, &end->watch);
    end->is_watched = false;
    fd_close(end->fd);
    end->fd = -1;
}

static void tunnel_free(struct tunnel *tunnel)
{
    struct tunnel **link = &tunnel->streams->first;
    while (*link != tunnel)
        link = &(*link)->next;
    *link = tunnel->next;
    end_close(&tunnel->in);
    end_close(&tunnel->out);
    end_close(&tunnel->err);
    buf_done(&tunnel->incoming);
    buf_done(&tunnel->input);
    buf_done(&tunnel->failure);
    mem_free(tunnel);
}

static void frame_write(struct tunnel *tunnel, enum stream_channel channel, struct str bytes)
{
    AUTO(buf) struct buf frame = { 0 };
    channel_encode(channel, bytes, &frame);
    /* Room was checked for output; the few last frames fit into what is always left. */
    size_t written = link_stream_write(tunnel->stream, buf_str(&frame));
    if (written < frame.size)
        log_warning("a frame of a command's output was cut");
}

static void end_read(struct pipe_end *end)
{
    struct tunnel *tunnel = end->tunnel;
    char chunk[READ_CHUNK];
    for (;;) {
        size_t room = tunnel->stream != NULL ? link_stream_room(tunnel->stream) : 0;
        if (room < READ_CHUNK + LAST_FRAMES) {
            if (end->is_watched)
                loop_watch_change(tunnel->streams->network->loop, &end->watch, 0);
            if (tunnel->stream != NULL)
                link_stream_want_room(tunnel->stream);
            return; /* on_room reads on */
        }
        ssize_t got = read(end->fd, chunk, sizeof(chunk));
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) { /* the end; a terminal says EIO */
            end_close(end);
            tunnel_finish(tunnel);
            return;
        }
        frame_write(tunnel, end->channel, (struct str){ chunk, (size_t)got });
    }
}

/* Writes waiting input; true while the tunnel lives. */
static void input_write(struct tunnel *tunnel)
{
    struct pipe_end *end = tunnel->is_tty ? &tunnel->out : &tunnel->in;
    struct loop *loop = tunnel->streams->network->loop;
    while (end->fd >= 0 && tunnel->input.size > 0) {
        ssize_t put = write(end->fd, tunnel->input.data, tunnel->input.size);
        if (put < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (put < 0) { /* it reads no more: the rest has nowhere to go */
            buf_clear(&tunnel->input);
            if (!tunnel->is_tty)
                end_close(end);
            break;
        }
        buf_consume(&tunnel->input, (size_t)put);
        if (tunnel->stream != NULL)
            link_stream_credit(tunnel->stream, (size_t)put);
    }
    if (tunnel->input.size == 0 && tunnel->is_input_ended && !tunnel->is_tty)
        end_close(&tunnel->in);
    if (end->fd >= 0 && end->is_watched) {
        uint32_t wanted = tunnel->input.size > 0 ? EPOLLOUT : 0;
        loop_watch_change(loop, &end->watch, wanted | (end == &tunnel->in ? 0 : EPOLLIN));
    }
}

static void on_end_ready(struct loop_watch *watch, uint32_t events)
{
    struct pipe_end *end = watch->arg;
    struct tunnel *tunnel = end->tunnel;
    bool is_input = end == &tunnel->in;
    if ((events & EPOLLOUT) != 0 || is_input)
        input_write(tunnel);
    if (is_input) {
        if ((events & (EPOLLERR | EPOLLHUP)) != 0)
            end_close(end);
        return;
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        end_read(end);
}

/* False: it cannot be served. */
static bool end_take(struct tunnel *tunnel, struct pipe_end *end, enum stream_channel channel,
                     int fd)
{
    struct error e = { 0 };
    bool is_input = end == &tunnel->in;
    end->tunnel = tunnel;
    end->channel = channel;
    end->fd = fd;
    end->watch = (struct loop_watch){
        .fd = fd, .events = is_input ? 0 : EPOLLIN, .on_ready = on_end_ready, .arg = end
    };
    end->is_watched = fd_set_nonblock(fd, true, &e) == ERR_OK &&
                      loop_watch_add(tunnel->streams->network->loop, &end->watch, &e) == ERR_OK;
    if (!end->is_watched) {
        log_error("a command's descriptor cannot be watched", LOG_ERR(&e));
        end_close(end);
    }
    return end->is_watched;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* When all output is out and the exit is known (or it never began): tell, and forget. */
static void tunnel_finish(struct tunnel *tunnel)
{
    bool is_drained = tunnel->out.fd < 0 && tunnel->err.fd < 0;
    if (!tunnel->is_failed && (!is_drained || !tunnel->has_exit))
        return;
    if (tunnel->stream != NULL) {
        if (tunnel->is_failed)
            frame_write(tunnel, CHANNEL_ERROR, buf_str(&tunnel->failure));
        else
            frame_write(tunnel, CHANNEL_EXIT, (struct str){ tunnel->exit_frame, 2 });
        link_stream_close(tunnel->stream, LINK_CODE_OK, (struct str){ 0 });
    }
    tunnel_free(tunnel);
}

static void tunnel_fail(struct tunnel *tunnel, const char *why)
{
    tunnel->is_failed = true;
    buf_clear(&tunnel->failure);
    buf_add_text(&tunnel->failure, why);
    tunnel_finish(tunnel);
}

/* ---- frames from the user -------------------------------------------------------------------- */

static bool tunnel_is_tree(const struct tunnel *tunnel)
{
    return tunnel->kind != STREAM_EXEC;
}

/* Asks the privileged half; the payload is what the ticket's digest names. */
static bool tunnel_open(struct tunnel *tunnel, struct str payload)
{
    static struct ipc_exec_open exec; /* large; one thread */
    static struct ipc_tree_open tree;
    if (tunnel->is_opened || payload.size > IPC_CHUNK_MAX)
        return false;
    tunnel->is_opened = true;
    if (tunnel_is_tree(tunnel)) {
        tree = (struct ipc_tree_open){ .stream = tunnel->number,
                                       .payload_size = (uint32_t)payload.size };
        memcpy(tree.ticket, tunnel->ticket, TICKET_SIZE);
        memcpy(tree.payload, payload.data, payload.size);
        return network_send_down(tunnel->streams->network, IPC_TREE_OPEN, &tree);
    }
    exec = (struct ipc_exec_open){ .stream = tunnel->number,
                                   .rows = tunnel->rows,
                                   .columns = tunnel->columns,
                                   .payload_size = (uint32_t)payload.size };
    memcpy(exec.ticket, tunnel->ticket, TICKET_SIZE);
    memcpy(exec.payload, payload.data, payload.size);
    return network_send_down(tunnel->streams->network, IPC_EXEC_OPEN, &exec);
}

static void tunnel_resize(struct tunnel *tunnel, struct str bytes)
{
    if (bytes.size != 4 || !tunnel->is_tty || tunnel->out.fd < 0)
        return;
    const unsigned char *b = (const unsigned char *)bytes.data;
    struct winsize size = { .ws_row = (unsigned short)(b[0] << 8 | b[1]),
                            .ws_col = (unsigned short)(b[2] << 8 | b[3]) };
    (void)ioctl(tunnel->out.fd, TIOCSWINSZ, &size); /* a terminal that has ended keeps its size */
}

/* False: the tunnel is gone. */
static bool frame_take(struct tunnel *tunnel, const struct channel_frame *frame)
{
    if (frame->channel == CHANNEL_PAYLOAD) {
        if (!tunnel_open(tunnel, frame->bytes)) {
            tunnel_fail(tunnel, "the node's privileged half is busy or restarting; try again");
            return false;
        }
    } else if (frame->channel == CHANNEL_STDIN) {
        if (frame->bytes.size == 0)
            tunnel->is_input_ended = true;
        buf_add_str(&tunnel->input, frame->bytes);
        input_write(tunnel);
    } else if (frame->channel == CHANNEL_RESIZE) {
        tunnel_resize(tunnel, frame->bytes);
    }
    return true;
}

/*
 * Each byte is credited once: input when it has been written to the process, everything else when
 * its frame has been taken.
 */
static void tunnel_on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    struct tunnel *tunnel = arg;
    struct error e = { 0 };
    size_t input_bytes = 0;
    buf_add_str(&tunnel->incoming, bytes);
    struct str rest = buf_str(&tunnel->incoming);
    for (;;) {
        struct channel_frame frame;
        bool is_complete = false;
        if (channel_decode(&rest, &frame, &is_complete, &e) != ERR_OK) {
            tunnel_fail(tunnel, "the command's input breaks the protocol");
            return;
        }
        if (!is_complete)
            break;
        if (!frame_take(tunnel, &frame))
            return;
        if (frame.channel == CHANNEL_STDIN)
            input_bytes += frame.bytes.size;
    }
    size_t used = tunnel->incoming.size - rest.size;
    buf_consume(&tunnel->incoming, used);
    if (tunnel->incoming.size > INCOMING_MAX) {
        tunnel_fail(tunnel, "a frame of the command's input is too large");
        return;
    }
    link_stream_credit(stream, used - input_bytes);
}

static void tunnel_on_room(struct link_stream *stream, void *arg)
{
    struct tunnel *tunnel = arg;
    struct loop *loop = tunnel->streams->network->loop;
    (void)stream;
    if (tunnel->out.is_watched)
        loop_watch_change(loop, &tunnel->out.watch,
                          EPOLLIN | (tunnel->is_tty && tunnel->input.size > 0 ? EPOLLOUT : 0));
    if (tunnel->err.is_watched)
        loop_watch_change(loop, &tunnel->err.watch, EPOLLIN);
}

static void tunnel_on_end(struct link_stream *stream, void *arg)
{
    struct tunnel *tunnel = arg;
    (void)stream;
    tunnel->is_input_ended = true;
    input_write(tunnel);
}

/* The user has hung up: what runs is ended with its terminal. */
static void tunnel_on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    struct tunnel *tunnel = arg;
    (void)stream;
    (void)code;
    (void)text;
    tunnel->stream = NULL;
    struct ipc_exec_close close = { .stream = tunnel->number };
    if (tunnel->is_opened)
        (void)network_send_down(tunnel->streams->network, IPC_EXEC_CLOSE, &close); /* or it ended */
    tunnel_free(tunnel);
}

static const struct link_stream_events tunnel_events = {
    .on_data = tunnel_on_data,
    .on_room = tunnel_on_room,
    .on_end = tunnel_on_end,
    .on_close = tunnel_on_close,
};

void net_streams_open(struct net_streams *streams, struct link_stream *stream,
                      const struct stream_header *header)
{
    bool is_known = header->kind == STREAM_EXEC || header->kind == STREAM_TREE_GET ||
                    header->kind == STREAM_TREE_PUT;
    struct tunnel *tunnel = mem_new(1, sizeof(*tunnel));
    if (!is_known || !hex_decode(header->ticket, tunnel->ticket, TICKET_SIZE)) {
        mem_free(tunnel);
        link_stream_close(stream, LINK_CODE_REFUSED,
                          STR("no ticket, or a kind nodes do not serve"));
        return;
    }
    tunnel->streams = streams;
    tunnel->number = ++streams->number;
    tunnel->kind = header->kind;
    tunnel->is_tty = header->is_tty;
    tunnel->rows = (uint16_t)header->rows;
    tunnel->columns = (uint16_t)header->columns;
    tunnel->in.fd = tunnel->out.fd = tunnel->err.fd = -1;
    tunnel->in.tunnel = tunnel->out.tunnel = tunnel->err.tunnel = tunnel;
    tunnel->stream = stream;
    tunnel->next = streams->first;
    streams->first = tunnel;
    link_stream_set_events(stream, &tunnel_events, tunnel);
}

/* ---- messages of the privileged half --------------------------------------------------------- */

static struct tunnel *tunnel_find(struct net_streams *streams, uint64_t number)
{
    for (struct tunnel *t = streams->first; t != NULL; t = t->next) {
        if (t->number == number)
            return t;
    }
    return NULL;
}

/* It runs, and nobody could hear it. */
static void tunnel_give_up(struct tunnel *tunnel)
{
    struct ipc_exec_close close = { .stream = tunnel->number };
    (void)network_send_down(tunnel->streams->network, IPC_EXEC_CLOSE, &close); /* or it ended */
    tunnel_fail(tunnel, "the node is out of descriptors; try again in a while");
}

/* Each of `count` descriptors to its end, in the order of ipc.h. */
static void take_ends(struct tunnel *tunnel, struct fd_pass *fds, size_t count,
                      struct pipe_end *const ends[], const enum stream_channel channels[])
{
    bool is_good = fds->count == count;
    for (size_t i = 0; i < count && is_good; i++)
        is_good = end_take(tunnel, ends[i], channels[i], fd_take(&fds->fds[i]));
    if (is_good)
        input_write(tunnel);
    else
        tunnel_give_up(tunnel);
}

static void exec_opened(struct tunnel *tunnel, const struct ipc_exec_opened *opened,
                        struct fd_pass *fds)
{
    struct pipe_end *const ends[] = { &tunnel->in, &tunnel->out, &tunnel->err };
    static const enum stream_channel channels[] = { CHANNEL_STDIN, CHANNEL_STDOUT, CHANNEL_STDERR };
    if (opened->code != ERR_OK)
        tunnel_fail(tunnel, opened->text);
    else if (opened->is_tty != 0)
        take_ends(tunnel, fds, 1, &ends[1], &channels[1]);
    else
        take_ends(tunnel, fds, COUNT_OF(ends), ends, channels);
}

static void tree_opened(struct tunnel *tunnel, const struct ipc_tree_opened *opened,
                        struct fd_pass *fds)
{
    bool is_get = tunnel->kind == STREAM_TREE_GET;
    struct pipe_end *const end = is_get ? &tunnel->out : &tunnel->in;
    const enum stream_channel channel = is_get ? CHANNEL_STDOUT : CHANNEL_STDIN;
    if (opened->code != ERR_OK)
        tunnel_fail(tunnel, opened->text);
    else
        take_ends(tunnel, fds, 1, &end, &channel);
}

static void tunnel_exited(struct tunnel *tunnel, int32_t code, int32_t signal)
{
    tunnel->has_exit = true;
    tunnel->exit_frame[0] = signal != 0 ? 1 : 0;
    tunnel->exit_frame[1] = (char)(signal != 0 ? signal : code);
    tunnel_finish(tunnel);
}

void net_streams_message(struct net_streams *streams, const union ipc_message *message,
                         struct fd_pass *fds)
{
    enum ipc_tag tag = (enum ipc_tag)message->header.tag;
    /* Each of these has its stream number in the same place. */
    struct tunnel *tunnel = tunnel_find(streams, message->exec_opened.stream);
    if (tunnel == NULL)
        return; /* the user has gone; descriptors are closed by the caller */
    if (tag == IPC_EXEC_OPENED)
        exec_opened(tunnel, &message->exec_opened, fds);
    else if (tag == IPC_TREE_OPENED)
        tree_opened(tunnel, &message->tree_opened, fds);
    else if (tag == IPC_EXEC_EXITED && message->exec_exited.exit_code < 0 &&
             message->exec_exited.signal == 0)
        tunnel_fail(tunnel, message->exec_exited.text);
    else if (tag == IPC_EXEC_EXITED)
        tunnel_exited(tunnel, message->exec_exited.exit_code, message->exec_exited.signal);
    else if (message->tree_done.code != ERR_OK)
        tunnel_fail(tunnel, message->tree_done.text);
    else
        tunnel_exited(tunnel, 0, 0);
}

void net_streams_agentd_gone(struct net_streams *streams)
{
    struct tunnel *tunnel = streams->first;
    while (tunnel != NULL) {
        struct tunnel *next = tunnel->next;
        if (tunnel->is_opened)
            tunnel_fail(tunnel, "the node's privileged half restarted; the command was ended");
        tunnel = next;
    }
}

struct net_streams *net_streams_new(struct network *network)
{
    struct net_streams *streams = mem_new(1, sizeof(*streams));
    streams->network = network;
    return streams;
}

void net_streams_free(struct net_streams *streams)
{
    if (streams == NULL)
        return;
    while (streams->first != NULL)
        tunnel_free(streams->first);
    mem_free(streams);
}
