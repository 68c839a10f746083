#include "agent/ipc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { IPC_BACKLOG = 4, IPC_BUFFER_BYTES = 1024 * 1024 };

typedef enum err ipc_checker(const union ipc_message *m, struct error *e);

struct ipc_row {
    const char *name;
    size_t size;
    enum ipc_direction direction;
    unsigned fd_counts; /* bit n: n descriptors are fine */
    ipc_checker *check; /* NULL: no field can be wrong */
};

/* A text that ends, and is zero behind its end: nothing of the sender's memory travels along. */
static bool is_text(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    if (length == size)
        return false;
    for (size_t i = length; i < size; i++)
        if (text[i] != '\0')
            return false;
    return str_is_utf8((struct str){ text, length });
}

void ipc_text_set(char out[IPC_TEXT_MAX], const char *text)
{
    size_t length = strnlen(text, IPC_TEXT_MAX - 1);
    while (length > 0 && !str_is_utf8((struct str){ text, length }))
        length--;
    memset(out, 0, IPC_TEXT_MAX);
    memcpy(out, text, length);
}

#define FIELD(condition, name)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return err_field(e, name, "field %s is out of its range", name);                       \
    } while (0)
#define FIELD_TEXT(array) FIELD(is_text(array, sizeof(array)), #array)

static enum err check_desired_begin(const union ipc_message *m, struct error *e)
{
    const struct ipc_desired_begin *b = &m->desired_begin;
    FIELD(b->set_bytes >= GRANT_HEADER_SIZE + GRANT_SIGNATURE_SIZE, "set_bytes");
    FIELD(b->set_bytes <= GRANT_SET_BYTES_MAX, "set_bytes");
    FIELD(b->all_bytes >= b->set_bytes && b->all_bytes <= IPC_DESIRED_BYTES_MAX, "all_bytes");
    return ERR_OK;
}

static enum err check_desired_chunk(const union ipc_message *m, struct error *e)
{
    const struct ipc_desired_chunk *c = &m->desired_chunk;
    FIELD(c->size >= 1 && c->size <= IPC_CHUNK_MAX, "size");
    FIELD(c->offset <= IPC_DESIRED_BYTES_MAX - c->size, "offset");
    return ERR_OK;
}

static enum err check_log_ack(const union ipc_message *m, struct error *e)
{
    FIELD(!id_is_none(m->log_ack.allocation), "allocation");
    FIELD(m->log_ack.attempt >= 1, "attempt");
    FIELD(m->log_ack.is_final <= 1, "is_final");
    FIELD(m->log_ack.offset <= INT64_MAX, "offset");
    return ERR_OK;
}

static enum err check_log_again(const union ipc_message *m, struct error *e)
{
    FIELD(!id_is_none(m->log_again.allocation), "allocation");
    FIELD(m->log_again.attempt >= 1, "attempt");
    FIELD(m->log_again.unused == 0, "unused");
    return ERR_OK;
}

static enum err check_image_ready(const union ipc_message *m, struct error *e)
{
    const struct ipc_image_ready *r = &m->image_ready;
    FIELD(!grant_digest_is_none(&r->digest), "digest");
    FIELD(r->kind < IPC_IMAGE_KIND_COUNT, "kind");
    FIELD(r->state < IPC_IMAGE_STATE_COUNT, "state");
    FIELD(!id_is_none(r->tenant), "tenant");
    FIELD_TEXT(r->path);
    FIELD_TEXT(r->text);
    FIELD((r->path[0] == '/') == (r->state == IPC_IMAGE_READY_NOW), "path");
    return ERR_OK;
}

static enum err check_exec_open(const union ipc_message *m, struct error *e)
{
    FIELD(m->exec_open.stream != 0, "stream");
    FIELD(m->exec_open.payload_size <= IPC_CHUNK_MAX, "payload_size");
    return ERR_OK;
}

static enum err check_exec_resize(const union ipc_message *m, struct error *e)
{
    FIELD(m->exec_resize.stream != 0, "stream");
    FIELD(m->exec_resize.unused == 0, "unused");
    return ERR_OK;
}

static enum err check_exec_close(const union ipc_message *m, struct error *e)
{
    FIELD(m->exec_close.stream != 0, "stream");
    return ERR_OK;
}

static enum err check_tree_open(const union ipc_message *m, struct error *e)
{
    FIELD(m->tree_open.stream != 0, "stream");
    FIELD(m->tree_open.unused == 0, "unused");
    FIELD(m->tree_open.payload_size <= IPC_CHUNK_MAX, "payload_size");
    return ERR_OK;
}

static enum err check_hello(const union ipc_message *m, struct error *e)
{
    FIELD(!id_is_none(m->hello.node), "node");
    FIELD_TEXT(m->hello.boot_id);
    FIELD_TEXT(m->hello.build);
    return ERR_OK;
}

static enum err check_desired_result(const union ipc_message *m, struct error *e)
{
    FIELD(m->desired_result.code < ERR_COUNT, "code");
    FIELD(m->desired_result.unused == 0, "unused");
    FIELD_TEXT(m->desired_result.text);
    return ERR_OK;
}

static enum err check_observed_entry(const struct ipc_observed_entry *n, struct error *e)
{
    FIELD(!id_is_none(n->allocation), "allocation");
    FIELD(n->attempt >= 1, "attempt");
    FIELD(n->state < IPC_STATE_COUNT, "state");
    FIELD(n->end < IPC_END_COUNT, "end");
    FIELD((n->end != IPC_END_NONE) == (n->state == IPC_EXITED), "end");
    FIELD(n->exit_code >= -1 && n->exit_code <= 255, "exit_code");
    FIELD(n->signal >= 0 && n->signal <= 64, "signal");
    FIELD(n->is_oom <= 1, "is_oom");
    FIELD(n->started_ns >= 0 && n->ended_ns >= 0, "started_ns");
    FIELD(n->checkpointed_ns >= 0, "checkpointed_ns");
    FIELD(n->extended_s <= GRANT_GRACE_MAX_S, "extended_s");
    FIELD_TEXT(n->reason);
    return ERR_OK;
}

static enum err check_observed(const union ipc_message *m, struct error *e)
{
    const struct ipc_observed *o = &m->observed;
    FIELD(o->is_full <= 1, "is_full");
    FIELD(o->count <= IPC_OBSERVED_MAX, "count");
    FIELD(o->is_full == 1 || (o->total == 0 && o->first == 0), "total");
    FIELD(o->is_full == 0 || (o->first <= o->total && o->count <= o->total - o->first), "first");
    for (uint32_t i = 0; i < o->count; i++) {
        enum err rc = check_observed_entry(&o->entries[i], e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

static enum err check_need_image(const union ipc_message *m, struct error *e)
{
    FIELD(!grant_digest_is_none(&m->need_image.digest), "digest");
    FIELD(m->need_image.kind < IPC_IMAGE_KIND_COUNT, "kind");
    FIELD(m->need_image.unused == 0, "unused");
    FIELD(!id_is_none(m->need_image.tenant), "tenant");
    return ERR_OK;
}

static enum err check_log_ready(const union ipc_message *m, struct error *e)
{
    FIELD(!id_is_none(m->log_ready.allocation), "allocation");
    FIELD(m->log_ready.attempt >= 1, "attempt");
    FIELD(m->log_ready.is_complete <= 1, "is_complete");
    FIELD(m->log_ready.size <= INT64_MAX && m->log_ready.acked <= INT64_MAX, "size");
    return ERR_OK;
}

static enum err check_inventory(const union ipc_message *m, struct error *e)
{
    const struct ipc_inventory *v = &m->inventory;
    FIELD(v->device_count <= IPC_DEVICES_MAX, "device_count");
    FIELD_TEXT(v->driver);
    FIELD_TEXT(v->driver_version);
    FIELD_TEXT(v->runtime);
    FIELD_TEXT(v->problems);
    for (uint32_t i = 0; i < v->device_count; i++) {
        const struct ipc_device *device = &v->devices[i];
        FIELD(device->memory_mib >= 0, "memory_mib");
        FIELD(device->is_simulated <= 1, "is_simulated");
        FIELD(device->health < IPC_HEALTH_COUNT, "health");
        FIELD_TEXT(device->uuid);
        FIELD_TEXT(device->model);
        FIELD_TEXT(device->class_name);
        FIELD_TEXT(device->pci);
        FIELD_TEXT(device->health_reason);
    }
    return ERR_OK;
}

static enum err check_exec_opened(const union ipc_message *m, struct error *e)
{
    FIELD(m->exec_opened.stream != 0, "stream");
    FIELD(m->exec_opened.code < ERR_COUNT, "code");
    FIELD(m->exec_opened.is_tty <= 1, "is_tty");
    FIELD_TEXT(m->exec_opened.text);
    return ERR_OK;
}

static enum err check_exec_exited(const union ipc_message *m, struct error *e)
{
    FIELD(m->exec_exited.stream != 0, "stream");
    FIELD(m->exec_exited.exit_code >= -1 && m->exec_exited.exit_code <= 255, "exit_code");
    FIELD(m->exec_exited.signal >= 0 && m->exec_exited.signal <= 64, "signal");
    FIELD_TEXT(m->exec_exited.text);
    return ERR_OK;
}

static enum err check_tree_opened(const union ipc_message *m, struct error *e)
{
    FIELD(m->tree_opened.stream != 0, "stream");
    FIELD(m->tree_opened.code < ERR_COUNT && m->tree_opened.unused == 0, "code");
    FIELD_TEXT(m->tree_opened.text);
    return ERR_OK;
}

static enum err check_tree_done(const union ipc_message *m, struct error *e)
{
    FIELD(m->tree_done.stream != 0, "stream");
    FIELD(m->tree_done.code < ERR_COUNT && m->tree_done.unused == 0, "code");
    FIELD_TEXT(m->tree_done.text);
    return ERR_OK;
}

static enum err check_challenge(const union ipc_message *m, struct error *e)
{
    FIELD(!id_is_none(m->challenge.number), "number");
    return ERR_OK;
}

enum { NO_FD = 1 << 0, ONE_FD = 1 << 1, THREE_FDS = 1 << 3 };

/* clang-format off */
static const struct ipc_row rows[IPC_TAG_END] = {
    [IPC_DESIRED_BEGIN]  = { "desired_begin",  sizeof(struct ipc_desired_begin),  IPC_DOWN, NO_FD, check_desired_begin },
    [IPC_DESIRED_CHUNK]  = { "desired_chunk",  sizeof(struct ipc_desired_chunk),  IPC_DOWN, NO_FD, check_desired_chunk },
    [IPC_DESIRED_END]    = { "desired_end",    sizeof(struct ipc_desired_end),    IPC_DOWN, NO_FD, NULL },
    [IPC_CONTACT]        = { "contact",        sizeof(struct ipc_contact),        IPC_DOWN, NO_FD, NULL },
    [IPC_LOG_ACK]        = { "log_ack",        sizeof(struct ipc_log_ack),        IPC_DOWN, NO_FD, check_log_ack },
    [IPC_IMAGE_READY]    = { "image_ready",    sizeof(struct ipc_image_ready),    IPC_DOWN, NO_FD, check_image_ready },
    [IPC_INVENTORY_GET]  = { "inventory_get",  sizeof(struct ipc_inventory_get),  IPC_DOWN, NO_FD, NULL },
    [IPC_EXEC_OPEN]      = { "exec_open",      sizeof(struct ipc_exec_open),      IPC_DOWN, NO_FD, check_exec_open },
    [IPC_EXEC_RESIZE]    = { "exec_resize",    sizeof(struct ipc_exec_resize),    IPC_DOWN, NO_FD, check_exec_resize },
    [IPC_EXEC_CLOSE]     = { "exec_close",     sizeof(struct ipc_exec_close),     IPC_DOWN, NO_FD, check_exec_close },
    [IPC_TREE_OPEN]      = { "tree_open",      sizeof(struct ipc_tree_open),      IPC_DOWN, NO_FD, check_tree_open },
    [IPC_HELLO]          = { "hello",          sizeof(struct ipc_hello),          IPC_UP,   NO_FD, check_hello },
    [IPC_DESIRED_RESULT] = { "desired_result", sizeof(struct ipc_desired_result), IPC_UP,   NO_FD, check_desired_result },
    [IPC_OBSERVED]       = { "observed",       sizeof(struct ipc_observed),       IPC_UP,   NO_FD, check_observed },
    [IPC_NEED_IMAGE]     = { "need_image",     sizeof(struct ipc_need_image),     IPC_UP,   NO_FD, check_need_image },
    [IPC_LOG_READY]      = { "log_ready",      sizeof(struct ipc_log_ready),      IPC_UP,   NO_FD | ONE_FD, check_log_ready },
    [IPC_INVENTORY]      = { "inventory",      sizeof(struct ipc_inventory),      IPC_UP,   NO_FD, check_inventory },
    [IPC_EXEC_OPENED]    = { "exec_opened",    sizeof(struct ipc_exec_opened),    IPC_UP,   NO_FD | ONE_FD | THREE_FDS, check_exec_opened },
    [IPC_EXEC_EXITED]    = { "exec_exited",    sizeof(struct ipc_exec_exited),    IPC_UP,   NO_FD, check_exec_exited },
    [IPC_TREE_OPENED]    = { "tree_opened",    sizeof(struct ipc_tree_opened),    IPC_UP,   NO_FD | ONE_FD, check_tree_opened },
    [IPC_TREE_DONE]      = { "tree_done",      sizeof(struct ipc_tree_done),      IPC_UP,   NO_FD, check_tree_done },
    [IPC_LOG_AGAIN]      = { "log_again",      sizeof(struct ipc_log_again),      IPC_DOWN, NO_FD, check_log_again },
    [IPC_CHALLENGE]      = { "challenge",      sizeof(struct ipc_challenge),      IPC_UP,   NO_FD, check_challenge },
};
/* clang-format on */

size_t ipc_size(uint32_t tag)
{
    return tag < IPC_TAG_END ? rows[tag].size : 0;
}

const char *ipc_name(uint32_t tag)
{
    return tag < IPC_TAG_END && rows[tag].name != NULL ? rows[tag].name : "unknown";
}

enum err ipc_check(const union ipc_message *message, size_t size, size_t fd_count,
                   enum ipc_direction direction, struct error *e)
{
    if (size < sizeof(struct ipc_header))
        return err_set(e, ERR_INVALID, "a message of %zu bytes has no header", size);
    uint32_t tag = message->header.tag;
    if (message->header.version != IPC_VERSION)
        return err_set(e, ERR_INVALID, "version %u is not %d", message->header.version,
                       IPC_VERSION);
    if (ipc_size(tag) == 0 || rows[tag].direction != direction)
        return err_set(e, ERR_INVALID, "tag %u is not one this side may send", tag);
    if (size != rows[tag].size)
        return err_set(e, ERR_INVALID, "%s has %zu bytes, not %zu", ipc_name(tag), size,
                       rows[tag].size);
    if (fd_count > FD_PASS_MAX || (rows[tag].fd_counts >> fd_count & 1U) == 0)
        return err_set(e, ERR_INVALID, "%s came with %zu descriptors", ipc_name(tag), fd_count);
    enum err rc = rows[tag].check != NULL ? rows[tag].check(message, e) : ERR_OK;
    return rc != ERR_OK ? err_wrap(e, rc, "%s", ipc_name(tag)) : ERR_OK;
}

static enum err socket_address(const char *path, struct sockaddr_un *out, struct error *e)
{
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(out->sun_path))
        return err_set(e, ERR_INVALID, "%s is too long for a socket: at most %zu characters", path,
                       sizeof(out->sun_path) - 1);
    (void)snprintf(out->sun_path, sizeof(out->sun_path), "%s", path);
    return ERR_OK;
}

/* Room for one desired set's chunks in flight. What the system allows less is fine. */
static void widen(int fd)
{
    int bytes = IPC_BUFFER_BYTES;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)); /* best effort */
}

enum err ipc_listen(const char *path, unsigned uid, int *out, struct error *e)
{
    struct sockaddr_un address;
    enum err rc = socket_address(path, &address, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, "make a socket");
    if (unlink(path) != 0 && errno != ENOENT)
        return err_errno(e, "remove the old %s", path);
    mode_t before = umask(0177);
    int bound = bind(fd, (const struct sockaddr *)&address, sizeof(address));
    (void)umask(before); /* cannot fail */
    if (bound != 0)
        return err_errno(e, "bind %s", path);
    if (chown(path, uid, (gid_t)-1) != 0)
        return err_errno(e, "give %s to uid %u", path, uid);
    if (listen(fd, IPC_BACKLOG) != 0)
        return err_errno(e, "listen on %s", path);
    *out = fd_take(&fd);
    return ERR_OK;
}

static enum err check_peer(int fd, unsigned uid, struct error *e)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return err_errno(e, "ask who is on the other side");
    if (peer.uid != uid)
        return err_set(e, ERR_DENIED, "uid %u is on the other side, expected %u", peer.uid, uid);
    return ERR_OK;
}

enum err ipc_accept(int listener, unsigned uid, int *out, struct error *e)
{
    AUTO(fd) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
        return err_set(e, ERR_UNAVAILABLE, "nobody is waiting to connect; try again when one does");
    if (fd < 0)
        return err_errno(e, "accept");
    enum err rc = check_peer(fd, uid, e);
    if (rc != ERR_OK)
        return rc;
    widen(fd);
    *out = fd_take(&fd);
    return ERR_OK;
}

enum err ipc_connect(const char *path, unsigned uid, int *out, struct error *e)
{
    struct sockaddr_un address;
    enum err rc = socket_address(path, &address, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, "make a socket");
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        return err_errno(e, "connect to %s", path);
    rc = check_peer(fd, uid, e);
    if (rc != ERR_OK)
        return rc;
    widen(fd);
    *out = fd_take(&fd);
    return ERR_OK;
}

enum err ipc_send(int fd, enum ipc_tag tag, void *message, const int *fds, size_t fd_count,
                  struct error *e)
{
    struct ipc_header header = { (uint32_t)tag, IPC_VERSION };
    memcpy(message, &header, sizeof(header));
    const struct str bytes = { message, ipc_size((uint32_t)tag) };
    if (fd_send(fd, bytes, fds, fd_count, MSG_DONTWAIT) >= 0)
        return ERR_OK;
    if (errno == EAGAIN || errno == ENOBUFS)
        return err_set(e, ERR_UNAVAILABLE,
                       "the other side does not read; try again when the socket is writable");
    if (errno == ETOOMANYREFS)
        return err_set(e, ERR_LIMIT, "too many descriptors are on their way; try again in a while");
    return err_errno(e, "send %s", ipc_name((uint32_t)tag));
}

enum err ipc_receive(int fd, enum ipc_direction direction, union ipc_message *out,
                     struct fd_pass *fds, struct error *e)
{
    AUTO(fd_pass) struct fd_pass taken = { 0 };
    ssize_t got = fd_receive(fd, out, sizeof(*out), &taken, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return err_set(e, ERR_UNAVAILABLE,
                       "nothing has come; try again when the socket is readable");
    if (got < 0)
        return err_errno(e, "receive");
    if (got == 0)
        return err_set(e, ERR_NOT_FOUND, "the other side has closed");
    if (taken.is_cut && direction == IPC_DOWN)
        return err_set(e, ERR_INVALID, "descriptors came, which this side never takes");
    if (taken.is_cut)
        fd_pass_done(
            &taken); /* all or none: whoever handles the message knows that they are lost */
    enum err rc = ipc_check(out, (size_t)got, taken.count, direction, e);
    if (rc != ERR_OK)
        return rc;
    *fds = taken;
    taken.count = 0;
    return ERR_OK;
}
