/* conn_internal.h - what conn.c shares with listener.c and dial.c. Not for other files. */
#ifndef NET_CONN_INTERNAL_H
#define NET_CONN_INTERNAL_H

#include <openssl/ssl.h>

#include "net/conn.h"

enum conn_state {
    CONN_RESOLVING,  /* dialled: no socket yet */
    CONN_CONNECTING, /* dialled: the kernel is at it */
    CONN_HANDSHAKE,
    CONN_OPEN,
    CONN_FINISHING, /* sends its queue; what comes is dropped */
    CONN_LINGERING, /* has sent its end; waits shortly for the peer's */
    CONN_DEAD       /* on_close is due */
};

struct dial;

struct conn {
    struct loop *loop;                /* borrowed */
    const struct conn_events *events; /* borrowed; NULL until an accepted one has its owner */
    void *arg;
    struct loop_watch watch;   /* fd -1: none */
    struct loop_timer timer;   /* no later than the earlier deadline */
    struct loop_task task;     /* flush, show kept bytes, or on_close */
    struct tls_context *tls;   /* counted; NULL: plain */
    SSL *ssl;                  /* owned */
    struct listener *listener; /* counted by it; NULL: dialled */
    struct conn *next, *prev;  /* of those that it accepted and that are not closed */
    struct dial *dial;         /* owned while connecting */
    enum conn_state state;
    bool is_paused;
    bool has_ended;     /* the peer sends no more */
    bool wants_room;    /* conn_want_room asked for it */
    bool shows_kept;    /* the task shows kept bytes again */
    bool reads_in_task; /* and reads, without waiting for the level to say so */
    bool wants_write;   /* the handshake or a read waits for room in the socket */
    struct buf in;      /* read and not used */
    struct buf out;     /* from out_sent on: not yet handed to the kernel */
    size_t out_sent;
    size_t queue_high;
    size_t progress; /* bytes sent since the write deadline was set */
    struct mono read_deadline;
    struct mono write_deadline;
    int64_t write_timeout_ms;
    char *why; /* owned */
    enum tls_protocol protocol;
    struct conn_peer peer;
};

struct conn *conn_new(struct loop *loop);
/* Watches a socket, which becomes the connection's, in state CONN_HANDSHAKE or CONN_CONNECTING. */
MUST_CHECK enum err conn_attach(struct conn *conn, int fd, enum conn_state state, struct error *e);
/* The socket is connected: begins the handshake, or opens. `name`: the server's, for clients. */
void conn_start(struct conn *conn, const char *name);

/* listener.c: an accepted connection has opened; one goes, and is still there. */
void listener_on_open(struct listener *listener, struct conn *conn);
void listener_on_gone(struct listener *listener, const struct conn *conn);

/* dial.c */
void dial_on_ready(struct conn *conn); /* the socket of CONN_CONNECTING is writable or failed */
void dial_free(struct dial *dial);

#endif
