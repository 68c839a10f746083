/*
 * http_transport.h - hosts as http_client.c reaches them: names, TCP and TLS, by way of a
 * table, so that http_client.c names no symbol of OpenSSL and no resolver. Not for other
 * folders: they pass http_client_tls().
 */
#ifndef NET_HTTP_TRANSPORT_H
#define NET_HTTP_TRANSPORT_H

#include <sys/socket.h>

#include "base/str.h"
#include "base/timepoint.h"
#include "net/http_client.h"

enum { HTTP_PIN_BYTES = 32 };

struct http_transport {
    /* Trust and identity of a client, and its last session. */
    MUST_CHECK enum err (*new_state)(const struct http_client_options *options, void **state,
                                     struct error *e);
    void (*free_state)(void *state);
    /* A connected, non-blocking descriptor, the caller's. */
    MUST_CHECK enum err (*dial)(const char *host, uint16_t port, struct mono deadline, int *fd,
                                struct error *e);
    /* Shakes hands over it; it stays the caller's. */
    MUST_CHECK enum err (*attach)(void *state, int fd, const char *name, struct mono deadline,
                                  void **stream, struct error *e);
    void (*detach)(void *stream);
    MUST_CHECK enum err (*write)(void *stream, struct str bytes, struct mono deadline, size_t *sent,
                                 struct error *e);
    MUST_CHECK enum err (*read)(void *stream, char *out, size_t size, struct mono deadline,
                                size_t *got, struct error *e);
    bool (*has_input)(void *stream, bool is_ready); /* `is_ready`: the descriptor is readable */
};

/* For both files: ERR_UNAVAILABLE when the deadline passes first. */
MUST_CHECK enum err http_transport_connect(int fd, const struct sockaddr *address, socklen_t size,
                                           struct mono deadline, struct error *e);
MUST_CHECK enum err http_transport_wait(int fd, short events, struct mono deadline,
                                        struct error *e);

#endif
