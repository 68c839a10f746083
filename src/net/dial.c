/*
 * A dialled connection: names are resolved on a worker, then the addresses are tried one after the
 * other until one connects. The last failure is the reason given.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/address.h"
#include "net/conn_internal.h"
#include "net/tls_internal.h"
#include "os/fd.h"

enum { ADDRESSES_MAX = 8, DIAL_TIMEOUT_DEFAULT_MS = 10000 };

struct address {
    struct sockaddr_storage storage;
    socklen_t size;
};

struct dial {
    struct conn *conn; /* borrowed; NULL: it has gone while a worker resolved the name */
    char *host;        /* owned; NULL: unix */
    char *tls_name;    /* owned */
    uint16_t port;
    bool is_resolving;
    int resolve_error; /* of getaddrinfo */
    struct address addresses[ADDRESSES_MAX];
    size_t address_count;
    size_t next;
    struct error error; /* of the last try */
};

static void dial_destroy(struct dial *dial)
{
    mem_free(dial->host);
    mem_free(dial->tls_name);
    mem_free(dial);
}

void dial_free(struct dial *dial)
{
    if (dial == NULL)
        return;
    dial->conn = NULL;
    if (!dial->is_resolving)
        dial_destroy(dial);
}

/* --- One address after the other. --- */

static enum err connect_to(struct conn *conn, const struct address *address, struct error *e)
{
    AUTO(fd)
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, "socket");
    int yes = 1;
    if (address->storage.ss_family != AF_UNIX &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0)
        return err_errno(e, "TCP_NODELAY");
    if (connect(fd, (const struct sockaddr *)&address->storage, address->size) < 0 &&
        errno != EINPROGRESS)
        return err_errno(e, "connect");
    enum err rc = conn_attach(conn, fd, CONN_CONNECTING, e);
    if (rc == ERR_OK)
        fd_take(&fd);
    return rc;
}

static void connect_next(struct conn *conn)
{
    struct dial *dial = conn->dial;
    while (dial->next < dial->address_count) {
        if (connect_to(conn, &dial->addresses[dial->next++], &dial->error) == ERR_OK)
            return;
    }
    conn_abort(conn, dial->error.text);
}

void dial_on_ready(struct conn *conn)
{
    struct dial *dial = conn->dial;
    int failure = 0;
    socklen_t size = sizeof(failure);
    if (getsockopt(conn->watch.fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
        failure = errno;
    if (failure == 0) {
        const struct address *used = &dial->addresses[dial->next - 1];
        if (used->storage.ss_family == AF_UNIX)
            (void)snprintf(conn->peer.address, sizeof(conn->peer.address), "unix");
        else
            address_text(&used->storage, conn->peer.address);
        conn->peer.is_unix = used->storage.ss_family == AF_UNIX;
        conn_start(conn, dial->tls_name);
        return;
    }
    errno = failure;
    (void)err_errno(&dial->error, "connect");
    loop_watch_remove(conn->loop, &conn->watch);
    fd_close(conn->watch.fd);
    conn->watch.fd = -1;
    conn->state = CONN_RESOLVING;
    connect_next(conn);
}

/* --- Names. --- */

static void resolve(void *arg)
{
    struct dial *dial = arg;
    char port[8];
    (void)snprintf(port, sizeof(port), "%u", (unsigned)dial->port);
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    struct addrinfo *list = NULL;
    dial->resolve_error = getaddrinfo(dial->host, port, &hints, &list);
    if (dial->resolve_error != 0)
        return;
    for (struct addrinfo *one = list; one != NULL; one = one->ai_next) {
        if (dial->address_count == ADDRESSES_MAX)
            break;
        struct address *address = &dial->addresses[dial->address_count++];
        memcpy(&address->storage, one->ai_addr, one->ai_addrlen);
        address->size = one->ai_addrlen;
    }
    freeaddrinfo(list);
}

static void on_resolved(void *arg)
{
    struct dial *dial = arg;
    dial->is_resolving = false;
    if (dial->conn == NULL) {
        dial_destroy(dial);
        return;
    }
    if (dial->conn->state == CONN_DEAD)
        return; /* its deadline passed; on_close is due and frees the dial */
    if (dial->resolve_error != 0)
        (void)err_set(&dial->error, ERR_UNAVAILABLE, "%s: %s", dial->host,
                      gai_strerror(dial->resolve_error));
    connect_next(dial->conn);
}

/* Not from within conn_dial, whose caller does not know the connection yet. */
static void on_begin(void *arg)
{
    struct dial *dial = arg;
    dial->resolve_error = 0;
    on_resolved(dial);
}

static void begin(struct conn *conn, const struct conn_dial_options *options)
{
    struct dial *dial = conn->dial;
    struct address *first = &dial->addresses[0];
    dial->is_resolving = true;
    if (options->unix_path != NULL) {
        struct sockaddr_un address;
        if (address_unix(options->unix_path, &address)) {
            memcpy(&first->storage, &address, sizeof(address));
            first->size = sizeof(address);
            dial->address_count = 1;
        } else {
            (void)err_set(&dial->error, ERR_INVALID, "%s is too long for the path of a socket",
                          options->unix_path);
        }
        loop_post(conn->loop, on_begin, dial);
    } else if (address_parse(options->host, options->port, &first->storage, &first->size)) {
        dial->address_count = 1;
        loop_post(conn->loop, on_begin, dial);
    } else {
        loop_work(conn->loop, resolve, on_resolved, dial);
    }
}

struct conn *conn_dial(struct loop *loop, const struct conn_dial_options *options,
                       const struct conn_events *events, void *arg)
{
    struct conn *conn = conn_new(loop);
    conn_set_events(conn, events, arg);
    const char *name = options->tls_name != NULL ? options->tls_name : options->host;
    struct dial *dial = mem_new(1, sizeof(*dial));
    dial->conn = conn;
    dial->port = options->port;
    dial->host = options->host != NULL ? mem_strdup(options->host) : NULL;
    dial->tls_name = name != NULL ? mem_strdup(name) : NULL;
    (void)err_set(&dial->error, ERR_UNAVAILABLE, "%s has no address; check the name",
                  options->host != NULL ? options->host : "the host");
    conn->dial = dial;
    if (options->tls != NULL) {
        tls_context_ref(options->tls);
        conn->tls = options->tls;
    }
    int64_t timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DIAL_TIMEOUT_DEFAULT_MS;
    conn_set_deadline(conn, (struct mono){ loop_now(loop).ns + timeout_ms * NS_PER_MS });
    begin(conn, options);
    return conn;
}
