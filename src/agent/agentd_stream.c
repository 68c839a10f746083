/*
 * Commands in running work, and trees of files in and out of it. Each is a helper process
 * with a socket to us: a command's helper is berth-shim, a tree's is berth-tree, which
 * drops to the tenant's ids before it looks at a name. Both need a ticket that the
 * controller has signed for just this.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "agent/shim.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"
#include "os/process.h"
#include "os/random.h"

enum {
    NAME_SIZE = 32,
    TICKETS_KEPT = 4096,
    OPEN_MAX_S = 180, /* for a helper to say how it went: the runtime has two minutes */
    END_MAX_S = 30,   /* for one that was asked to end */
};

enum stream_kind { STREAM_COMMAND, STREAM_TERMINAL, STREAM_TREE };

struct stream {
    uint64_t id;
    enum stream_kind kind;
    bool is_silent;  /* its connection is gone: nobody is told, its helper is only waited for */
    bool is_opened;  /* the network half has its answer */
    bool is_running; /* and it was a good one: an end will follow */
    uint16_t rows;
    uint16_t columns;
    struct watch control; /* socket of the helper */
    struct watch child;   /* its pidfd */
    int master;           /* of the terminal, for resizing; owned, -1 none */
    struct fd_pass ours;  /* the network half's ends, until it gets them */
    struct shim_exec_report end;
    bool has_end;
    struct mono give_up_at; /* its helper has to do something until then; 0: it has all the time */
};

static struct stream *find(const struct agentd *agentd, uint64_t id)
{
    for (size_t i = 0; i < agentd->streams.count; i++)
        if (agentd->streams.items[i]->id == id && !agentd->streams.items[i]->is_silent)
            return agentd->streams.items[i];
    return NULL;
}

static void stream_free(struct agentd *agentd, struct stream *stream)
{
    for (size_t i = 0; i < agentd->streams.count; i++)
        if (agentd->streams.items[i] == stream) {
            agentd->streams.items[i] = agentd->streams.items[--agentd->streams.count];
            break;
        }
    agentd_unwatch(agentd, &stream->control);
    agentd_unwatch(agentd, &stream->child);
    fd_close(stream->master);
    fd_pass_done(&stream->ours);
    mem_free(stream);
}

static void tell_opened(struct agentd *agentd, uint64_t id, enum stream_kind kind, enum err code,
                        const char *text, struct fd_pass *fds)
{
    bool is_tree = kind == STREAM_TREE;
    struct ipc_exec_opened exec = { .stream = id, .code = (uint32_t)code };
    exec.is_tty = kind == STREAM_TERMINAL ? 1 : 0;
    struct ipc_tree_opened tree = { .stream = id, .code = (uint32_t)code };
    ipc_text_set(is_tree ? tree.text : exec.text, text);
    if (is_tree)
        peer_send(agentd, IPC_TREE_OPENED, &tree, fds);
    else
        peer_send(agentd, IPC_EXEC_OPENED, &exec, fds);
}

static void tell_end(struct agentd *agentd, const struct stream *stream)
{
    if (stream->kind == STREAM_TREE) {
        struct ipc_tree_done done = { .stream = stream->id,
                                      .code = stream->has_end ? stream->end.code : ERR_IO };
        ipc_text_set(done.text, stream->has_end ? stream->end.text : "its helper was killed");
        peer_send(agentd, IPC_TREE_DONE, &done, NULL);
        return;
    }
    struct ipc_exec_exited exited = { .stream = stream->id,
                                      .exit_code = stream->has_end ? stream->end.exit_code : -1,
                                      .signal = stream->has_end ? stream->end.signal : 0 };
    ipc_text_set(exited.text, stream->has_end ? "" : "its helper was killed");
    peer_send(agentd, IPC_EXEC_EXITED, &exited, NULL);
}

static const char no_descriptors[] = "the node is out of descriptors; try again in a while";

/* A command's helper sees it and kills the command; its end is reported as any other. */
static void end_stream(struct stream *stream)
{
    if (stream->kind == STREAM_TREE && stream->child.fd >= 0)
        (void)pidfd_send_signal(stream->child.fd, SIGKILL, NULL, 0); /* it may have ended */
    else if (stream->control.fd >= 0)
        (void)shutdown(stream->control.fd, SHUT_WR);
    stream->give_up_at = mono_add_s(clock_monotonic(), END_MAX_S);
}

/* The terminal's master stays here a second time, for EXEC_RESIZE. */
static void take_master(struct stream *stream, int fd)
{
    struct winsize size = { .ws_row = stream->rows, .ws_col = stream->columns };
    (void)ioctl(fd, TIOCSWINSZ, &size); /* a terminal of the wrong size still works */
    stream->master = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    fd_pass_done(&stream->ours);
    stream->ours = (struct fd_pass){ .fds = { fd }, .count = 1 };
}

static void take_report(struct agentd *agentd, struct stream *stream,
                        const struct shim_exec_report *report, int fd)
{
    if (report->kind == SHIM_EXEC_EXITED) {
        stream->end = *report;
        stream->has_end = true;
        fd_close(fd);
        return;
    }
    if (stream->is_opened || stream->is_silent || report->code >= ERR_COUNT) {
        fd_close(fd);
        return;
    }
    if (fd >= 0)
        take_master(stream, fd);
    stream->is_opened = true;
    stream->is_running = report->code == ERR_OK;
    stream->give_up_at = (struct mono){ 0 };
    if (stream->is_running && stream->ours.count == 0) { /* its terminal found no descriptor here */
        stream->is_running = false;
        end_stream(stream);
        tell_opened(agentd, stream->id, stream->kind, ERR_UNAVAILABLE, no_descriptors, NULL);
        return;
    }
    if (!stream->is_running)
        fd_pass_done(&stream->ours);
    tell_opened(agentd, stream->id, stream->kind, (enum err)report->code, report->text,
                &stream->ours);
}

/* False: nothing more is there now. */
static bool read_report(struct agentd *agentd, struct stream *stream)
{
    struct shim_exec_report report = { 0 };
    AUTO(fd_pass) struct fd_pass passed = { 0 };
    ssize_t got = fd_receive(stream->control.fd, &report, sizeof(report), &passed, MSG_DONTWAIT);
    if (got != (ssize_t)sizeof(report))
        return false;
    int fd = passed.count > 0 ? fd_take(&passed.fds[0]) : -1;
    report.text[IPC_TEXT_MAX - 1] = '\0';
    take_report(agentd, stream, &report, fd);
    return true;
}

static void control_ready(struct agentd *agentd, void *self, uint32_t events)
{
    struct stream *stream = self;
    (void)events;
    if (!read_report(agentd, stream))
        agentd_unwatch(agentd, &stream->control); /* closed: its end follows */
}

static void child_ended(struct agentd *agentd, void *self, uint32_t events)
{
    struct stream *stream = self;
    (void)events;
    while (stream->control.fd >= 0 && read_report(agentd, stream))
        continue;
    (void)waitid(P_PIDFD, (id_t)stream->child.fd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
    if (stream->is_silent) {
        stream_free(agentd, stream);
        return;
    }
    if (!stream->is_opened)
        tell_opened(agentd, stream->id, stream->kind, ERR_IO, "its helper ended without a word",
                    NULL);
    else if (stream->is_running)
        tell_end(agentd, stream);
    stream_free(agentd, stream);
}

/* What a helper is started with. */
struct helper {
    const char *const *argv;
    int stdio[3];
    int root; /* of a tree: the directory it may not leave; -1 for commands */
};

static enum err spawn(struct agentd *agentd, struct stream *stream, const struct helper *helper,
                      struct error *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return err_errno(e, "make a socket pair");
    AUTO(fd) int ours = pair[0];
    AUTO(fd) int theirs = pair[1];
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    const int fds[] = { helper->stdio[0], helper->stdio[1], helper->stdio[2], theirs,
                        helper->root };
    const struct process_spec spec = {
        .argv = helper->argv,
        .env = env,
        .fds = fds,
        .fd_count = COUNT_OF(fds),
        .is_group_leader = true,
    };
    struct process process = PROCESS_NONE;
    enum err rc = process_spawn(&spec, &process, e);
    if (rc != ERR_OK)
        return rc;
    stream->control = (struct watch){ -1, control_ready, stream };
    stream->child = (struct watch){ -1, child_ended, stream };
    stream->give_up_at = mono_add_s(clock_monotonic(), OPEN_MAX_S);
    rc = agentd_watch_child(agentd, &stream->child, process.pidfd, e);
    if (rc == ERR_OK)
        rc = agentd_watch(agentd, &stream->control, fd_take(&ours), e);
    if (rc != ERR_OK && stream->child.fd >= 0)
        (void)pidfd_send_signal(stream->child.fd, SIGKILL, NULL, 0); /* nobody would hear it */
    return rc;
}

/*
 * Used once: a network half that repeats a ticket gets nothing twice. What is forgotten
 * here, by a new start or because there are too many, is of an earlier run, whose tickets
 * are no good any more.
 */
static enum err use_ticket(struct agentd *agentd, const struct ticket *ticket, struct error *e)
{
    if (!id_eq(ticket->run, agentd->run))
        return err_set(e, ERR_DENIED, "the ticket is of an earlier run of the agent; try again");
    for (size_t i = 0; i < agentd->used_tickets.count; i++)
        if (id_eq(agentd->used_tickets.items[i], ticket->id))
            return err_set(e, ERR_DENIED, "the ticket was used before: ask for the command again");
    vec_push(&agentd->used_tickets, ticket->id);
    if (agentd->used_tickets.count == TICKETS_KEPT) {
        agentd->used_tickets.count = 0;
        agentd->run = random_id();
        peer_hello(agentd);
    }
    return ERR_OK;
}

struct request {
    struct ticket ticket;
    struct grant_payload command;
    struct arena arena;
};

static void request_done(struct request *request)
{
    arena_done(&request->arena);
}
DEFINE_CLEANUP_AT(request, struct request, request_done)

static enum err open_request(struct agentd *agentd, const uint8_t ticket[TICKET_SIZE],
                             struct str payload, struct request *out, struct error *e)
{
    enum err rc = ticket_decode(ticket, agentd->identity.node, &agentd->crypto, &out->ticket, e);
    if (rc != ERR_OK)
        return rc;
    struct grant_digest digest;
    agentd->crypto.sha256(agentd->crypto.self, payload, &digest);
    if (!grant_digest_eq(&digest, &out->ticket.payload))
        return err_set(e, ERR_DENIED, "the payload is not the one the ticket names");
    if (out->ticket.epoch != agentd->stamp.epoch)
        return err_set(e, ERR_DENIED, "the ticket is of epoch %llu, not %llu",
                       (unsigned long long)out->ticket.epoch,
                       (unsigned long long)agentd->stamp.epoch);
    if (agentd->streams.count >= IPC_STREAMS_MAX)
        return err_set(e, ERR_LIMIT, "%d commands and copies run on this node already",
                       IPC_STREAMS_MAX);
    rc = grant_payload_decode(payload, &out->arena, &out->command, e);
    return rc == ERR_OK ? use_ticket(agentd, &out->ticket, e) : rc;
}

/* NULL: it is not one that runs here now, and `e` says so. */
static struct attempt *find_running(const struct agentd *agentd, const struct ticket *ticket,
                                    struct error *e)
{
    struct attempt *attempt = attempts_find(agentd, ticket->object, ticket->attempt);
    if (attempt == NULL || !id_eq(attempt->grant.tenant, ticket->tenant)) {
        (void)err_set(e, ERR_NOT_FOUND,
                      "it does not run on this node; `berth show` says where it runs");
        return NULL;
    }
    if (attempt->state != REC_RUNNING && attempt->state != REC_STOPPING) {
        (void)err_set(e, ERR_CONFLICT,
                      "it is not running now; wait until it runs (`berth show` says its state)");
        return NULL;
    }
    return attempt;
}

/* Pipes for a command without a terminal: `helper` gets its ends, which are the caller's
 * to close. */
static enum err make_pipes(struct stream *stream, struct helper *helper, struct error *e)
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        enum err rc = fd_pipe(ends, e);
        if (rc != ERR_OK)
            return rc;
        bool is_input = i == 0;
        helper->stdio[i] = ends[is_input ? 0 : 1];
        stream->ours.fds[stream->ours.count++] = ends[is_input ? 1 : 0];
    }
    return ERR_OK;
}

static void close_stdio(struct helper *helper)
{
    for (int i = 0; i < 3; i++)
        fd_close(fd_take(&helper->stdio[i]));
}

static enum err start_exec(struct agentd *agentd, struct stream *stream,
                           const struct request *request, struct error *e)
{
    static unsigned counter;
    char name[NAME_SIZE];
    char file[NAME_SIZE + 8];
    struct attempt_paths paths;
    const struct attempt *attempt = find_running(agentd, &request->ticket, e);
    if (attempt == NULL)
        return e->code;
    bool is_tty = stream->kind == STREAM_TERMINAL;
    (void)snprintf(name, sizeof(name), "%s-%d-%u", is_tty ? "tty" : "cmd", getpid(), ++counter);
    (void)snprintf(file, sizeof(file), "%s.json", name);
    config_paths(agentd, attempt->name, &paths);
    enum err rc = config_command(agentd, attempt, &request->command, is_tty, file, e);
    if (rc != ERR_OK)
        return rc;
    const char *const argv[] = { agentd->options.shim, "exec", paths.disk, paths.run, name, NULL };
    struct helper helper = { argv, { -1, -1, -1 }, -1 };
    rc = is_tty ? ERR_OK : make_pipes(stream, &helper, e);
    if (rc == ERR_OK)
        rc = spawn(agentd, stream, &helper, e);
    close_stdio(&helper);
    return rc;
}

static struct stream *stream_add(struct agentd *agentd, uint64_t id)
{
    struct stream *stream = mem_new(1, sizeof(*stream));
    stream->id = id;
    stream->control.fd = -1;
    stream->child.fd = -1;
    stream->master = -1;
    vec_push(&agentd->streams, stream);
    return stream;
}

void stream_exec_open(struct agentd *agentd, const struct ipc_exec_open *open)
{
    struct error e = { 0 };
    AUTO(request) struct request request = { 0 };
    struct stream *stream = NULL;
    struct str payload = { (const char *)open->payload, open->payload_size };
    enum err rc = find(agentd, open->stream) != NULL
                      ? err_set(&e, ERR_CONFLICT, "the stream is open already")
                      : open_request(agentd, open->ticket, payload, &request, &e);
    if (rc == ERR_OK && request.ticket.kind != TICKET_EXEC)
        rc = err_set(&e, ERR_DENIED, "the ticket is not one for a command");
    if (rc == ERR_OK) {
        stream = stream_add(agentd, open->stream);
        stream->kind = request.ticket.is_tty ? STREAM_TERMINAL : STREAM_COMMAND;
        stream->rows = open->rows;
        stream->columns = open->columns;
        rc = start_exec(agentd, stream, &request, &e);
    }
    if (rc == ERR_OK)
        return;
    log_info("a command was refused", LOG_ERR(&e));
    tell_opened(agentd, open->stream, STREAM_COMMAND, rc, e.text, NULL);
    if (stream != NULL)
        stream_free(agentd, stream);
}

/* The workload's own view of its files. Its first process was alive after its root was opened. */
static enum err open_workload_root(const struct agentd *agentd, const struct ticket *ticket,
                                   uint32_t *uid, int *out, struct error *e)
{
    char path[64];
    const struct attempt *attempt = find_running(agentd, ticket, e);
    struct attempt_status status;
    if (attempt == NULL)
        return e->code;
    (void)snprintf(path, sizeof(path), "/proc/%d/root", attempt->status.init_pid);
    AUTO(fd) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(attempt_dirs) struct attempt_dirs dirs = ATTEMPT_DIRS_NONE;
    if (fd < 0 || !attempt_open(agentd, attempt->name, &dirs) ||
        attempt_read_status(&dirs, &status, NULL) != ERR_OK || status.state == ATTEMPT_EXITED)
        return err_set(e, ERR_CONFLICT,
                       "it is not running now; wait until it runs (`berth show` says its state)");
    *uid = attempt->grant.uid_base;
    *out = fd_take(&fd);
    return ERR_OK;
}

/* A volume's files belong to ids 0.. on disk, so its copier is 0 there, with no capability. */
static enum err open_volume_root(const struct agentd *agentd, const struct ticket *ticket,
                                 uint32_t *uid, int *out, struct error *e)
{
    char path[2 * ATTEMPT_PATH_MAX];
    char tenant[ID_TEXT_MAX];
    char volume[ID_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s/%s", agentd->volume_dir,
                   id_text(ID_TENANT, ticket->tenant, tenant),
                   id_text(ID_VOLUME, ticket->object, volume));
    enum err rc = ticket->kind == TICKET_VOLUME_PUT ? file_make_dirs(path, 0755, e) : ERR_OK;
    if (rc != ERR_OK)
        return rc;
    *uid = 0;
    *out = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return *out < 0 ? err_set(e, ERR_NOT_FOUND, "the volume is not on this node") : ERR_OK;
}

static enum err start_tree(struct agentd *agentd, struct stream *stream,
                           const struct request *request, struct error *e)
{
    const struct ticket *ticket = &request->ticket;
    assert(request->command.args != NULL); /* its caller has looked */
    bool is_volume = ticket->kind == TICKET_VOLUME_GET || ticket->kind == TICKET_VOLUME_PUT;
    bool is_put = ticket->kind == TICKET_COPY_PUT || ticket->kind == TICKET_VOLUME_PUT;
    AUTO(fd) int root = -1;
    uint32_t uid = 0;
    enum err rc = is_volume ? open_volume_root(agentd, ticket, &uid, &root, e)
                            : open_workload_root(agentd, ticket, &uid, &root, e);
    int ends[2];
    if (rc == ERR_OK)
        rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int theirs = ends[is_put ? 0 : 1];
    stream->ours = (struct fd_pass){ .fds = { ends[is_put ? 1 : 0] }, .count = 1 };

    char path[PAYLOAD_PATH_MAX + 1];
    char ids[16];
    (void)snprintf(path, sizeof(path), "%.*s", STR_ARG(request->command.args[0]));
    (void)snprintf(ids, sizeof(ids), "%u", uid);
    const char *const argv[] = { agentd->tree_program, is_put ? "put" : "get", ids, path, NULL };
    const struct helper helper = { argv, { is_put ? theirs : -1, is_put ? -1 : theirs, -1 }, root };
    return spawn(agentd, stream, &helper, e);
}

void stream_tree_open(struct agentd *agentd, const struct ipc_tree_open *open)
{
    struct error e = { 0 };
    AUTO(request) struct request request = { 0 };
    struct stream *stream = NULL;
    struct str payload = { (const char *)open->payload, open->payload_size };
    enum err rc = find(agentd, open->stream) != NULL
                      ? err_set(&e, ERR_CONFLICT, "the stream is open already")
                      : open_request(agentd, open->ticket, payload, &request, &e);
    if (rc == ERR_OK && request.ticket.kind == TICKET_EXEC)
        rc = err_set(&e, ERR_DENIED, "the ticket is not one for a copy");
    const struct str *path = request.command.args;
    if (rc == ERR_OK && (path == NULL || path->size == 0 || path->size > PAYLOAD_PATH_MAX))
        rc = err_set(&e, ERR_INVALID, "the path is empty or too long");
    if (rc == ERR_OK) {
        stream = stream_add(agentd, open->stream);
        stream->kind = STREAM_TREE;
        rc = start_tree(agentd, stream, &request, &e);
    }
    if (rc == ERR_OK)
        return;
    log_info("a copy was refused", LOG_ERR(&e));
    tell_opened(agentd, open->stream, STREAM_TREE, rc, e.text, NULL);
    if (stream != NULL)
        stream_free(agentd, stream);
}

void stream_resize(struct agentd *agentd, const struct ipc_exec_resize *resize)
{
    const struct stream *stream = find(agentd, resize->stream);
    struct winsize size = { .ws_row = resize->rows, .ws_col = resize->columns };
    if (stream != NULL && stream->master >= 0)
        (void)ioctl(stream->master, TIOCSWINSZ,
                    &size); /* a terminal of the wrong size still works */
}

void stream_close(struct agentd *agentd, uint64_t id)
{
    struct stream *stream = find(agentd, id);
    if (stream != NULL)
        end_stream(stream);
}

void streams_disconnect(struct agentd *agentd)
{
    for (size_t i = 0; i < agentd->streams.count; i++) {
        struct stream *stream = agentd->streams.items[i];
        stream->is_silent = true;
        fd_pass_done(&stream->ours);
        end_stream(stream);
    }
}

/* A helper that is stopped, traced or lost in the kernel answers nobody: its end does. */
void streams_look(struct agentd *agentd)
{
    for (size_t i = 0; i < agentd->streams.count; i++) {
        struct stream *stream = agentd->streams.items[i];
        if (stream->give_up_at.ns == 0 || stream->child.fd < 0 ||
            mono_before(clock_monotonic(), stream->give_up_at))
            continue;
        log_error("the helper of a command or copy does not answer and is killed");
        (void)pidfd_send_signal(stream->child.fd, SIGKILL, NULL,
                                0); /* its end is told as others are */
        stream->give_up_at = mono_add_s(clock_monotonic(), END_MAX_S);
    }
}

void streams_done(struct agentd *agentd)
{
    while (agentd->streams.count > 0)
        stream_free(agentd, agentd->streams.items[0]);
}
