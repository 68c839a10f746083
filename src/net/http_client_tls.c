#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>

#include "net/http_transport.h"
#include "net/tls_internal.h"
#include "os/fd.h"

enum { PORT_TEXT = 8 };

static enum err new_state(const struct http_client_options *options, void **state, struct error *e)
{
    struct tls_client_options tls = {
        .ca_pem = options->ca_pem,
        .pin = options->pin,
        .certificate_pem = options->certificate_pem,
        .key_pem = options->key_pem,
        .protocol = TLS_PROTOCOL_HTTP,
        .ignores_time = options->ignores_time,
    };
    struct tls_context *context = NULL;
    enum err rc = tls_client_new(&tls, &context, e);
    if (rc == ERR_OK)
        *state = context;
    return rc;
}

static void free_state(void *state)
{
    tls_context_free(state);
}

static enum err connect_addresses(const struct addrinfo *list, struct mono deadline, int *out,
                                  struct error *e)
{
    enum err rc = err_set(
        e, ERR_UNAVAILABLE,
        "the name has no address; check the host of the server's URL (--server or BERTH_SERVER)");
    int yes = 1;
    for (const struct addrinfo *one = list; one != NULL; one = one->ai_next) {
        AUTO(fd) int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            rc = err_errno(e, "socket");
            continue;
        }
        rc = http_transport_connect(fd, one->ai_addr, one->ai_addrlen, deadline, e);
        if (rc != ERR_OK)
            continue;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)); /* only speed */
        *out = fd_take(&fd);
        return ERR_OK;
    }
    return rc;
}

static enum err dial(const char *host, uint16_t port_number, struct mono deadline, int *out,
                     struct error *e)
{
    char port[PORT_TEXT];
    (void)snprintf(port, sizeof(port), "%u", (unsigned)port_number);
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    struct addrinfo *list = NULL;
    int failure = getaddrinfo(host, port, &hints, &list);
    if (failure != 0)
        return err_set(e, ERR_UNAVAILABLE, "%s: %s", host, gai_strerror(failure));
    enum err rc = connect_addresses(list, deadline, out, e);
    freeaddrinfo(list);
    return rc == ERR_OK ? ERR_OK : err_wrap(e, rc, "%s port %s", host, port);
}

/* Waits for what a failed call wants. ERR_OK: call again. */
static enum err wait_for(SSL *ssl, int rc, struct mono deadline, struct error *e)
{
    long verified = SSL_get_verify_result(ssl);
    switch (SSL_get_error(ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return http_transport_wait(SSL_get_fd(ssl), POLLIN, deadline, e);
    case SSL_ERROR_WANT_WRITE:
        return http_transport_wait(SSL_get_fd(ssl), POLLOUT, deadline, e);
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        return errno != 0 ? err_errno(e, "TLS")
                          : err_set(e, ERR_IO, "TLS: the server cut the connection");
    default:
        if (verified == X509_V_OK)
            return tls_fail(e, ERR_IO, "TLS");
        ERR_clear_error();
        return err_set(e, ERR_DENIED, "the server's certificate is not trusted: %s",
                       X509_verify_cert_error_string(verified));
    }
}

static void detach(void *stream)
{
    /* As in conn.c: otherwise the session could not be resumed. */
    SSL_set_shutdown(stream, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(stream);
}

static enum err attach(void *state, int fd, const char *name, struct mono deadline, void **stream,
                       struct error *e)
{
    SSL *ssl = NULL;
    enum err rc = tls_attach(state, fd, name, &ssl, e);
    while (rc == ERR_OK) {
        ERR_clear_error();
        errno = 0;
        int done = SSL_do_handshake(ssl);
        if (done == 1) {
            *stream = ssl;
            return ERR_OK;
        }
        rc = wait_for(ssl, done, deadline, e);
    }
    if (ssl != NULL)
        detach(ssl);
    return err_wrap(e, rc, "%s", name);
}

static enum err write_bytes(void *stream, struct str bytes, struct mono deadline, size_t *sent,
                            struct error *e)
{
    ERR_clear_error();
    errno = 0;
    int done = SSL_write_ex(stream, bytes.data, bytes.size, sent);
    return done == 1 ? ERR_OK : wait_for(stream, done, deadline, e);
}

static enum err read_bytes(void *stream, char *out, size_t size, struct mono deadline, size_t *got,
                           struct error *e)
{
    for (;;) {
        ERR_clear_error();
        errno = 0;
        *got = 0;
        int done = SSL_read_ex(stream, out, size, got);
        if (done == 1 || SSL_get_error(stream, done) == SSL_ERROR_ZERO_RETURN)
            return ERR_OK;
        enum err rc = wait_for(stream, done, deadline, e);
        if (rc != ERR_OK)
            return rc;
    }
}

static bool has_input(void *stream, bool is_ready)
{
    if (!is_ready)
        return SSL_pending(stream) > 0;
    /* It may be a session ticket, which OpenSSL takes for itself. */
    char byte = 0;
    size_t got = 0;
    ERR_clear_error();
    int done = SSL_peek_ex(stream, &byte, 1, &got);
    return done == 1 || SSL_get_error(stream, done) != SSL_ERROR_WANT_READ;
}

const struct http_transport *http_client_tls(void)
{
    static const struct http_transport transport = {
        .new_state = new_state,
        .free_state = free_state,
        .dial = dial,
        .attach = attach,
        .detach = detach,
        .write = write_bytes,
        .read = read_bytes,
        .has_input = has_input,
    };
    return &transport;
}
