/*
 * conn.h - a buffered stream over TCP, TLS over TCP, or a unix socket, and the sockets
 * that accept them.
 *
 * Bytes come in by on_data, which says how many it used; the rest is kept and shown again
 * with more. Bytes go out through a bounded queue, written when the loop's round ends, so
 * that what is sent in pieces leaves in one packet. An idle connection owns no buffers. A
 * connection frees itself after on_close, which is called exactly once and never from inside
 * another call on the connection.
 */
#ifndef NET_CONN_H
#define NET_CONN_H

#include <sys/types.h>

#include "base/str.h"
#include "net/ca.h"
#include "net/loop.h"
#include "net/tls.h"

struct conn;

/* Who is at the other end. */
enum { CONN_ADDRESS_MAX = 56 }; /* "[v6]:port" with its NUL */
struct conn_peer {
    bool is_unix; /* then uid, gid and pid are the kernel's word */
    uid_t uid;
    gid_t gid;
    pid_t pid;
    char address[CONN_ADDRESS_MAX]; /* "unix" or the numeric address with its port */
    bool is_tls;
    bool is_resumed;
    bool has_certificate; /* a verified one; then what follows is set */
    bool is_expired;      /* its time has passed: good for renewing it and nothing else */
    char name[CA_NAME_MAX + 1];
    uint8_t key_fingerprint[CA_FINGERPRINT_BYTES]; /* as ca_key_fingerprint() */
    struct wall issued; /* the `now` that it was made with, whole seconds */
    struct wall not_after;
};

struct conn_events {
    /* Connected, handshake done, peer known. Not called for connections handed to their
     * owner open. */
    void (*on_open)(struct conn *conn, void *arg);
    /* Returns how many bytes were used. All that has come and was not used before is in `data`. */
    size_t (*on_data)(struct conn *conn, struct str data, void *arg);
    /* The peer will send no more; it may still read. NULL: the connection is closed after
     * its queue. */
    void (*on_end)(struct conn *conn, void *arg);
    /* The queue fell to its low mark after conn_want_room. May be NULL. */
    void (*on_room)(struct conn *conn, void *arg);
    /* A deadline passed. NULL, or for CONN_DEADLINE_WRITE: the connection is cut. */
    void (*on_deadline)(struct conn *conn, void *arg);
    /* The end. `why` is for logs. The connection is freed when this returns. */
    void (*on_close)(struct conn *conn, const char *why, void *arg);
};

void conn_set_events(struct conn *conn, const struct conn_events *events, void *arg);
const struct conn_peer *conn_peer(const struct conn *conn); /* borrowed from the connection */
enum tls_protocol conn_protocol(const struct conn *conn);   /* by ALPN; HTTP without TLS */
struct loop *conn_loop(const struct conn *conn);

/* What waits unsent is at most `high` bytes; on_room comes at `high / 4`. */
void conn_set_queue(struct conn *conn, size_t high);
/*
 * Appends, beyond the mark too: small things (an answer, an error, a ping) must go out, and the
 * rest is for the caller to cut to conn_room. Nothing once it is closing.
 */
void conn_send_always(struct conn *conn, const void *bytes, size_t size);
size_t conn_room(const struct conn *conn);   /* bytes up to the mark */
size_t conn_queued(const struct conn *conn); /* bytes not yet handed to the kernel */
/* Asks for on_room; it comes at once when there is room already. */
void conn_want_room(struct conn *conn);

/* Back-pressure: while paused nothing is read, beyond what has come already. */
void conn_pause(struct conn *conn);
/* Shows kept bytes again at the end of the round, too. */
void conn_resume(struct conn *conn);
size_t conn_kept(const struct conn *conn); /* bytes read and not used */

/* One absolute deadline for reading, of whatever phase its owner is in; ns 0 clears it. */
void conn_set_deadline(struct conn *conn, struct mono at);
/* While the queue is not empty, each 64 KiB of progress must come within this time. */
void conn_set_write_timeout(struct conn *conn, int64_t timeout_ms);

/* Sends the queue and our end of stream, waits shortly for the peer's, closes. No more on_data. */
void conn_finish(struct conn *conn);
/* Closes now. Only on_close follows, at the end of the round. */
void conn_abort(struct conn *conn, const char *why);
bool conn_is_closing(const struct conn *conn);

/* A socket that accepts. */
struct listener;
struct listener_options {
    const char *unix_path;        /* or */
    const char *address;          /* numeric, "0.0.0.0", "::", "127.0.0.1" */
    uint16_t port;                /* 0: any free one */
    mode_t unix_mode;             /* permissions of the unix socket, e.g. 0666 */
    struct tls_context *tls;      /* NULL: plain */
    size_t conn_max;              /* more are closed at once; 0: 65536 */
    int64_t handshake_timeout_ms; /* 0: 10 s */
    /* A connection is open. The callee must set its events, or abort it. */
    void (*on_accept)(struct conn *conn, void *arg);
    void *arg; /* borrowed */
};

MUST_CHECK enum err listener_open(struct loop *loop, const struct listener_options *options,
                                  struct listener **out, struct error *e);
uint16_t listener_port(const struct listener *listener);
/* The socket that listens, borrowed: for who answers when the loop cannot. */
int listener_fd(const struct listener *listener);
size_t listener_conn_count(
    const struct listener *listener); /* accepted and not yet closed; for tests */
/* Stops accepting; connections live on. Removes the unix socket. */
void listener_close(struct listener *listener);
DEFINE_CLEANUP(listener, struct listener *, listener_close)
/* The same, and cuts all that it accepted, in whatever phase: on_close of each, and with it the
 * last of their memory, follows at the end of the round. For the end of a process. */
void listener_abort(struct listener *listener, const char *why);

/* Connects. on_open or on_close follows, with the reason, never before this returns. */
struct conn_dial_options {
    const char *unix_path; /* or */
    const char *host;      /* name or numeric address */
    uint16_t port;
    struct tls_context *tls; /* NULL: plain */
    const char *tls_name;    /* the name its certificate must carry; NULL: host */
    int64_t timeout_ms;      /* for all up to on_open; 0: 10 s */
};
struct conn *conn_dial(struct loop *loop, const struct conn_dial_options *options,
                       const struct conn_events *events, void *arg);

#endif
