#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/address.h"
#include "net/conn_internal.h"
#include "net/tls_internal.h"
#include "os/fd.h"

enum {
    BACKLOG = 4096,
    ACCEPT_BUDGET = 64, /* in one round */
    ACCEPT_PAUSE_MS = 100,
    CONN_MAX_DEFAULT = 65536,
    HANDSHAKE_TIMEOUT_DEFAULT_MS = 10000
};

struct listener {
    struct loop *loop;       /* borrowed */
    struct loop_watch watch; /* fd -1: closed */
    struct loop_timer pause; /* while descriptors or memory are short */
    struct tls_context *tls; /* counted; NULL: plain */
    size_t conn_max;
    size_t conn_count;
    struct conn *first; /* accepted and not closed; each frees itself */
    int64_t handshake_timeout_ms;
    uint16_t port;
    char *unix_path; /* owned; NULL: TCP */
    void (*on_accept)(struct conn *conn, void *arg);
    void *arg;
};

static void listener_free(struct listener *listener)
{
    tls_context_free(listener->tls);
    mem_free(listener->unix_path);
    mem_free(listener);
}

void listener_on_open(struct listener *listener, struct conn *conn)
{
    if (listener->watch.fd < 0)
        conn_abort(conn, "the listener has closed");
    else
        listener->on_accept(conn, listener->arg);
}

void listener_on_gone(struct listener *listener, const struct conn *conn)
{
    if (conn->prev != NULL)
        conn->prev->next = conn->next;
    else
        listener->first = conn->next;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    listener->conn_count--;
    if (listener->conn_count == 0 && listener->watch.fd < 0)
        listener_free(listener);
}

static void read_credentials(int fd, struct conn_peer *peer)
{
    struct ucred credentials = { 0 };
    socklen_t size = sizeof(credentials);
    peer->is_unix = true;
    (void)snprintf(peer->address, sizeof(peer->address), "unix");
    /* Without the kernel's word the peer is nobody. */
    peer->uid = (uid_t)-1;
    peer->gid = (gid_t)-1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
        peer->uid = credentials.uid;
        peer->gid = credentials.gid;
        peer->pid = credentials.pid;
    }
}

static void accept_conn(struct listener *listener, int fd, const struct sockaddr_storage *address)
{
    struct conn *conn = conn_new(listener->loop);
    conn->listener = listener;
    conn->next = listener->first;
    if (conn->next != NULL)
        conn->next->prev = conn;
    listener->first = conn;
    listener->conn_count++;
    if (listener->unix_path != NULL)
        read_credentials(fd, &conn->peer);
    else
        address_text(address, conn->peer.address);
    if (listener->tls != NULL) {
        tls_context_ref(listener->tls);
        conn->tls = listener->tls;
    }
    if (conn_attach(conn, fd, CONN_HANDSHAKE, NULL) != ERR_OK) {
        fd_close(fd);
        conn_abort(conn, "the socket cannot be watched");
        return;
    }
    int64_t deadline = loop_now(listener->loop).ns + listener->handshake_timeout_ms * NS_PER_MS;
    conn_set_deadline(conn, (struct mono){ deadline });
    conn_start(conn, NULL);
}

static void on_ready(struct loop_watch *watch, uint32_t events)
{
    (void)events;
    struct listener *listener = watch->arg;
    for (int i = 0; i < ACCEPT_BUDGET && watch->fd >= 0; i++) {
        struct sockaddr_storage address = { 0 };
        socklen_t size = sizeof(address);
        int fd =
            accept4(watch->fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            bool is_short =
                errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            if (is_short) {
                /* The level stays up: without a pause the loop would spin on it. */
                loop_watch_change(listener->loop, watch, 0);
                loop_timer_set(
                    listener->loop, &listener->pause,
                    (struct mono){ loop_now(listener->loop).ns + ACCEPT_PAUSE_MS * NS_PER_MS });
            }
            return;
        }
        if (listener->conn_count >= listener->conn_max)
            fd_close(fd);
        else
            accept_conn(listener, fd, &address);
    }
}

static void on_pause_end(void *arg)
{
    struct listener *listener = arg;
    loop_watch_change(listener->loop, &listener->watch, EPOLLIN);
}

/* --- Sockets. --- */

static enum err listen_tcp(const struct listener_options *options, int *out, struct error *e)
{
    struct sockaddr_storage address;
    socklen_t size = 0;
    if (!address_parse(options->address, options->port, &address, &size))
        return err_set(e, ERR_INVALID, "\"%s\" is not a numeric address", options->address);
    AUTO(fd) int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, "socket");
    int yes = 1;
    int no = 0;
    /* Accepted sockets inherit TCP_NODELAY: no answer waits for an acknowledgement. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0 ||
        (address.ss_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) < 0))
        return err_errno(e, "options of a listening socket");
    if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, BACKLOG) < 0)
        return err_errno(e, "listen on %s port %u", options->address, (unsigned)options->port);
    *out = fd_take(&fd);
    return ERR_OK;
}

/* A socket file that nobody serves is left over from a crash and may go. */
static enum err remove_stale(const struct sockaddr_un *address, struct error *e)
{
    struct stat info;
    if (lstat(address->sun_path, &info) < 0)
        return errno == ENOENT ? ERR_OK : err_errno(e, "%s", address->sun_path);
    if (!S_ISSOCK(info.st_mode))
        return err_set(e, ERR_CONFLICT, "%s exists and is not a socket: move it away",
                       address->sun_path);
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, "socket");
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
        return err_set(e, ERR_CONFLICT, "%s is served by another process: stop it first",
                       address->sun_path);
    if (unlink(address->sun_path) < 0 && errno != ENOENT)
        return err_errno(e, "remove %s", address->sun_path);
    return ERR_OK;
}

static enum err listen_unix(const struct listener_options *options, int *out, struct error *e)
{
    struct sockaddr_un address;
    if (!address_unix(options->unix_path, &address))
        return err_set(e, ERR_INVALID, "%s is too long for the path of a socket",
                       options->unix_path);
    enum err rc = remove_stale(&address, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, "socket");
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return err_errno(e, "bind %s", options->unix_path);
    /* Before listen: nobody can connect with the permissions of the moment in between. */
    if (chmod(options->unix_path, options->unix_mode) < 0 || listen(fd, BACKLOG) < 0) {
        rc = err_errno(e, "listen on %s", options->unix_path);
        (void)unlink(options->unix_path); /* best effort: the next start removes it as well */
        return rc;
    }
    *out = fd_take(&fd);
    return ERR_OK;
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t size = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return 0;
    return address_port(&address);
}

enum err listener_open(struct loop *loop, const struct listener_options *options,
                       struct listener **out, struct error *e)
{
    int fd = -1;
    enum err rc =
        options->unix_path != NULL ? listen_unix(options, &fd, e) : listen_tcp(options, &fd, e);
    if (rc != ERR_OK)
        return rc;
    struct listener *listener = mem_new(1, sizeof(*listener));
    *listener = (struct listener){
        .loop = loop,
        .watch = { fd, EPOLLIN, on_ready, listener },
        .pause = { .fn = on_pause_end, .arg = listener },
        .conn_max = options->conn_max > 0 ? options->conn_max : CONN_MAX_DEFAULT,
        .handshake_timeout_ms = options->handshake_timeout_ms > 0 ? options->handshake_timeout_ms
                                                                  : HANDSHAKE_TIMEOUT_DEFAULT_MS,
        .port = options->unix_path == NULL ? bound_port(fd) : 0,
        .unix_path = options->unix_path != NULL ? mem_strdup(options->unix_path) : NULL,
        .on_accept = options->on_accept,
        .arg = options->arg,
    };
    rc = loop_watch_add(loop, &listener->watch, e);
    if (rc != ERR_OK) {
        fd_close(fd);
        listener_free(listener);
        return rc;
    }
    if (options->tls != NULL) {
        tls_context_ref(options->tls);
        listener->tls = options->tls;
    }
    *out = listener;
    return ERR_OK;
}

uint16_t listener_port(const struct listener *listener)
{
    return listener->port;
}

int listener_fd(const struct listener *listener)
{
    return listener->watch.fd;
}

size_t listener_conn_count(const struct listener *listener)
{
    return listener->conn_count;
}

void listener_close(struct listener *listener)
{
    if (listener == NULL || listener->watch.fd < 0)
        return;
    loop_timer_stop(listener->loop, &listener->pause);
    loop_watch_remove(listener->loop, &listener->watch);
    fd_close(listener->watch.fd);
    listener->watch.fd = -1;
    if (listener->unix_path != NULL)
        (void)unlink(listener->unix_path); /* someone may have removed it already */
    if (listener->conn_count == 0)
        listener_free(listener);
}

void listener_abort(struct listener *listener, const char *why)
{
    if (listener == NULL)
        return;
    for (struct conn *conn = listener->first; conn != NULL; conn = conn->next)
        conn_abort(conn, why); /* stays in the list until the end of the round */
    listener_close(listener);
}
