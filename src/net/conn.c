/*
 * States only move forward (conn_internal.h). Every callback may close the connection, so each step
 * looks at the state again before it goes on; the memory stays until the task at the round's end.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/conn_internal.h"
#include "net/tls_internal.h"
#include "os/fd.h"

enum {
    SCRATCH_BYTES = 64 * 1024,
    READ_BUDGET_BYTES = 256 * 1024, /* of one connection in one round */
    KEEP_MAX = 80 * 1024,           /* more than a frame of link.h, more than a head of http.h */
    QUEUE_DEFAULT_BYTES = 256 * 1024,
    PROGRESS_BYTES = 64 * 1024,
    OUT_COMPACT_BYTES = 64 * 1024,
    LINGER_MS = 2000,
    WRITE_TIMEOUT_DEFAULT_MS = 30000
};

/* Where bytes land first: idle connections own no buffer. Never in use across a
 * callback's return. */
static _Thread_local char scratch[SCRATCH_BYTES];

static void on_task(void *arg);
static void on_timer(void *arg);
static void on_ready(struct loop_watch *watch, uint32_t events);

struct conn *conn_new(struct loop *loop)
{
    struct conn *conn = mem_new(1, sizeof(*conn));
    conn->loop = loop;
    conn->watch = (struct loop_watch){ -1, 0, on_ready, conn };
    conn->timer.fn = on_timer;
    conn->timer.arg = conn;
    conn->task.fn = on_task;
    conn->task.arg = conn;
    conn->queue_high = QUEUE_DEFAULT_BYTES;
    conn->write_timeout_ms = WRITE_TIMEOUT_DEFAULT_MS;
    return conn;
}

void conn_set_events(struct conn *conn, const struct conn_events *events, void *arg)
{
    conn->events = events;
    conn->arg = arg;
}

const struct conn_peer *conn_peer(const struct conn *conn)
{
    return &conn->peer;
}

enum tls_protocol conn_protocol(const struct conn *conn)
{
    return conn->protocol;
}

struct loop *conn_loop(const struct conn *conn)
{
    return conn->loop;
}

bool conn_is_closing(const struct conn *conn)
{
    return conn->state > CONN_OPEN;
}

/* --- Deadlines: one lazy timer, which is never moved to a later time. --- */

static struct mono earlier(struct mono a, struct mono b)
{
    if (a.ns == 0 || (b.ns != 0 && mono_before(b, a)))
        return b;
    return a;
}

static void arm(struct conn *conn)
{
    struct mono at = earlier(conn->read_deadline, conn->write_deadline);
    if (at.ns != 0 && (conn->timer.slot == 0 || mono_before(at, conn->timer.at)))
        loop_timer_set(conn->loop, &conn->timer, at);
}

static struct mono in_ms(const struct conn *conn, int64_t ms)
{
    return (struct mono){ loop_now(conn->loop).ns + ms * NS_PER_MS };
}

void conn_set_deadline(struct conn *conn, struct mono at)
{
    if (conn->state > CONN_OPEN)
        return;
    conn->read_deadline = at;
    arm(conn);
}

void conn_set_write_timeout(struct conn *conn, int64_t timeout_ms)
{
    conn->write_timeout_ms = timeout_ms;
}

static bool has_passed(const struct conn *conn, struct mono at)
{
    return at.ns != 0 && !mono_before(loop_now(conn->loop), at);
}

static void on_timer(void *arg)
{
    struct conn *conn = arg;
    if (has_passed(conn, conn->write_deadline)) {
        conn_abort(conn, "the peer takes nothing: write deadline");
    } else if (has_passed(conn, conn->read_deadline)) {
        conn->read_deadline = (struct mono){ 0 };
        if (conn->state == CONN_OPEN && conn->events->on_deadline != NULL)
            conn->events->on_deadline(conn, conn->arg);
        else
            conn_abort(conn, conn->state < CONN_OPEN ? "no connection in time" : "deadline");
    }
    if (conn->state != CONN_DEAD)
        arm(conn);
}

/* --- Closing. --- */

static void release_tls(struct conn *conn)
{
    if (conn->ssl == NULL)
        return;
    /* Otherwise OpenSSL takes a session that was cut for a bad one, never to be resumed. */
    SSL_set_shutdown(conn->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(conn->ssl);
    conn->ssl = NULL;
}

/* The socket goes at once; the owner hears of it at the end of the round. */
static void release_socket(struct conn *conn)
{
    loop_timer_stop(conn->loop, &conn->timer);
    if (conn->watch.fd >= 0)
        loop_watch_remove(conn->loop, &conn->watch);
    release_tls(conn);
    fd_close(conn->watch.fd);
    conn->watch.fd = -1;
}

void conn_abort(struct conn *conn, const char *why)
{
    if (conn->state == CONN_DEAD)
        return;
    conn->state = CONN_DEAD;
    if (conn->why == NULL)
        conn->why = mem_strdup(why);
    release_socket(conn);
    loop_task_queue(conn->loop, &conn->task);
}

static void conn_free(struct conn *conn)
{
    loop_task_cancel(conn->loop, &conn->task);
    dial_free(conn->dial);
    tls_context_free(conn->tls);
    buf_done(&conn->in);
    buf_done(&conn->out);
    mem_free(conn->why);
    mem_free(conn);
}

static void close_now(struct conn *conn)
{
    if (conn->events != NULL)
        conn->events->on_close(conn, conn->why, conn->arg);
    if (conn->listener != NULL)
        listener_on_gone(conn->listener, conn);
    conn_free(conn);
}

/* --- Writing. --- */

/* Before it opens the handshake reads; after it has closed what comes is dropped. */
static bool takes_data(const struct conn *conn)
{
    if (conn->has_ended || conn->state == CONN_DEAD)
        return false;
    return conn->state != CONN_OPEN || (!conn->is_paused && conn->in.size < KEEP_MAX);
}

static void update_watch(struct conn *conn)
{
    if (conn->watch.fd < 0)
        return;
    uint32_t events = 0;
    if (takes_data(conn) && conn->state != CONN_CONNECTING)
        events |= EPOLLIN;
    if (conn_queued(conn) > 0 || conn->wants_write || conn->state == CONN_CONNECTING)
        events |= EPOLLOUT;
    loop_watch_change(conn->loop, &conn->watch, events);
}

enum io { IO_DONE, IO_AGAIN, IO_END, IO_FAILED };

/* What a failed OpenSSL call means; on IO_FAILED the connection is dead. */
static enum io tls_outcome(struct conn *conn, int rc)
{
    switch (SSL_get_error(conn->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return IO_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        conn->wants_write = true;
        return IO_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return IO_END;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        conn_abort(conn, errno != 0 ? strerrordesc_np(errno) : "cut off by the peer");
        return IO_FAILED;
    default:
        conn_abort(conn, tls_reason());
        return IO_FAILED;
    }
}

static enum io write_some(struct conn *conn, const char *bytes, size_t size, size_t *sent)
{
    if (conn->ssl != NULL) {
        ERR_clear_error();
        errno = 0;
        int rc = SSL_write_ex(conn->ssl, bytes, size, sent);
        return rc == 1 ? IO_DONE : tls_outcome(conn, rc);
    }
    ssize_t count = send(conn->watch.fd, bytes, size, MSG_NOSIGNAL);
    if (count >= 0) {
        *sent = (size_t)count;
        return IO_DONE;
    }
    if (errno == EAGAIN || errno == EINTR)
        return IO_AGAIN;
    conn_abort(conn, strerrordesc_np(errno));
    return IO_FAILED;
}

static void note_progress(struct conn *conn, size_t sent)
{
    conn->out_sent += sent;
    conn->progress += sent;
    if (conn_queued(conn) == 0) {
        buf_done(&conn->out);
        conn->out_sent = 0;
        conn->write_deadline = (struct mono){ 0 };
        return;
    }
    if (conn->progress >= PROGRESS_BYTES) {
        conn->progress = 0;
        conn->write_deadline = in_ms(conn, conn->write_timeout_ms);
    }
    if (conn->out_sent >= OUT_COMPACT_BYTES && conn->out_sent >= conn->out.size / 2) {
        buf_consume(&conn->out, conn->out_sent);
        conn->out_sent = 0;
    }
}

static void send_end(struct conn *conn)
{
    if (conn->ssl != NULL)
        (void)SSL_shutdown(conn->ssl); /* if our notice does not fit now, the cut says as much */
    ERR_clear_error();
    release_tls(conn);                       /* what still comes is dropped as it is, encrypted */
    (void)shutdown(conn->watch.fd, SHUT_WR); /* fails when the peer has gone, which is as good */
    conn->state = CONN_LINGERING;
    if (conn->has_ended) {
        conn_abort(conn, "closed");
        return;
    }
    conn->read_deadline = in_ms(conn, LINGER_MS);
    arm(conn);
}

static void flush(struct conn *conn)
{
    conn->wants_write = false;
    while (conn_queued(conn) > 0) {
        size_t sent = 0;
        enum io io = write_some(conn, conn->out.data + conn->out_sent, conn_queued(conn), &sent);
        if (io == IO_FAILED)
            return;
        if (io != IO_DONE)
            break;
        note_progress(conn, sent);
    }
    if (conn->state == CONN_FINISHING && conn_queued(conn) == 0)
        send_end(conn);
    if (conn->state == CONN_OPEN && conn->wants_room && conn_queued(conn) <= conn->queue_high / 4) {
        conn->wants_room = false;
        if (conn->events->on_room != NULL)
            conn->events->on_room(conn, conn->arg);
    }
}

void conn_set_queue(struct conn *conn, size_t high)
{
    conn->queue_high = high;
}

size_t conn_queued(const struct conn *conn)
{
    return conn->out.size - conn->out_sent;
}

size_t conn_room(const struct conn *conn)
{
    size_t queued = conn_queued(conn);
    return conn->state != CONN_OPEN || queued >= conn->queue_high ? 0 : conn->queue_high - queued;
}

void conn_want_room(struct conn *conn)
{
    conn->wants_room = true;
    if (conn->state == CONN_OPEN)
        loop_task_queue(conn->loop, &conn->task);
}

void conn_send_always(struct conn *conn, const void *bytes, size_t size)
{
    if (conn->state != CONN_OPEN || size == 0)
        return;
    if (conn_queued(conn) == 0) {
        conn->progress = 0;
        conn->write_deadline = in_ms(conn, conn->write_timeout_ms);
        arm(conn);
    }
    buf_add(&conn->out, bytes, size);
    loop_task_queue(conn->loop, &conn->task);
}

void conn_finish(struct conn *conn)
{
    if (conn->state != CONN_OPEN)
        return;
    conn->state = CONN_FINISHING;
    conn->read_deadline = (struct mono){ 0 };
    loop_task_queue(conn->loop, &conn->task);
}

/* --- Reading. --- */

static enum io read_some(struct conn *conn, size_t size, size_t *got)
{
    if (conn->ssl != NULL) {
        ERR_clear_error();
        errno = 0;
        int rc = SSL_read_ex(conn->ssl, scratch, size, got);
        return rc == 1 ? IO_DONE : tls_outcome(conn, rc);
    }
    ssize_t count = recv(conn->watch.fd, scratch, size, 0);
    if (count > 0) {
        *got = (size_t)count;
        return IO_DONE;
    }
    if (count == 0)
        return IO_END;
    if (errno == EAGAIN || errno == EINTR)
        return IO_AGAIN;
    conn_abort(conn, strerrordesc_np(errno));
    return IO_FAILED;
}

/* Drops `used` bytes of what is kept, and the memory with the last of them. */
static void use_kept(struct conn *conn, size_t used)
{
    assert(used <= conn->in.size);
    if (used == conn->in.size)
        buf_done(&conn->in);
    else if (used > 0)
        buf_consume(&conn->in, used);
}

static void show_kept(struct conn *conn)
{
    conn->shows_kept = false;
    if (conn->in.size == 0)
        return;
    /* The owner may change within the call, and a closing connection drops its bytes. */
    size_t used = conn->events->on_data(conn, buf_str(&conn->in), conn->arg);
    if (conn->state == CONN_OPEN)
        use_kept(conn, used);
}

static void deliver(struct conn *conn, struct str fresh)
{
    if (conn->state != CONN_OPEN)
        return;
    if (conn->in.size > 0) {
        buf_add_str(&conn->in, fresh);
        show_kept(conn);
        return;
    }
    size_t used = conn->events->on_data(conn, fresh, conn->arg);
    assert(used <= fresh.size);
    if (conn->state == CONN_OPEN && used < fresh.size)
        buf_add(&conn->in, fresh.data + used, fresh.size - used);
}

static void on_peer_end(struct conn *conn)
{
    conn->has_ended = true;
    if (conn->state == CONN_LINGERING)
        conn_abort(conn, "closed");
    else if (conn->state == CONN_OPEN && conn->events->on_end != NULL)
        conn->events->on_end(conn, conn->arg);
    else if (conn->state == CONN_OPEN)
        conn_finish(conn);
}

/* Saves the system call that would say so; what comes meanwhile the level reports. */
static bool is_drained(const struct conn *conn, size_t asked, size_t got)
{
    return conn->ssl != NULL ? SSL_has_pending(conn->ssl) == 0 : got < asked;
}

static void read_all(struct conn *conn)
{
    size_t budget = READ_BUDGET_BYTES;
    while (takes_data(conn)) {
        if (budget == 0) {
            /* OpenSSL may hold bytes that epoll does not know of. */
            conn->reads_in_task = true;
            loop_task_queue(conn->loop, &conn->task);
            return;
        }
        size_t room = conn->state == CONN_OPEN ? KEEP_MAX - conn->in.size : SCRATCH_BYTES;
        size_t asked = MIN_OF(MIN_OF(room, (size_t)SCRATCH_BYTES), budget);
        size_t got = 0;
        enum io io = read_some(conn, asked, &got);
        if (io == IO_END)
            on_peer_end(conn);
        if (io != IO_DONE)
            return;
        budget -= got;
        deliver(conn, (struct str){ scratch, got });
        if (is_drained(conn, asked, got))
            return;
    }
}

void conn_pause(struct conn *conn)
{
    conn->is_paused = true;
    update_watch(conn);
}

void conn_resume(struct conn *conn)
{
    conn->is_paused = false;
    conn->shows_kept = true;
    conn->reads_in_task = true;
    loop_task_queue(conn->loop, &conn->task);
}

size_t conn_kept(const struct conn *conn)
{
    return conn->in.size;
}

/* --- Opening. --- */

static void open_now(struct conn *conn)
{
    conn->state = CONN_OPEN;
    conn->read_deadline = (struct mono){ 0 };
    if (conn->dial != NULL) {
        dial_free(conn->dial);
        conn->dial = NULL;
    }
    if (conn->listener != NULL)
        listener_on_open(conn->listener, conn);
    else if (conn->events->on_open != NULL)
        conn->events->on_open(conn, conn->arg);
    assert(conn->state != CONN_OPEN || conn->events != NULL);
    /* What came with the end of the handshake is already inside OpenSSL. */
    loop_task_queue(conn->loop, &conn->task);
}

static void take_peer(struct conn *conn, const struct tls_peer *peer)
{
    conn->protocol = peer->protocol;
    conn->peer.is_tls = true;
    conn->peer.is_resumed = peer->is_resumed;
    conn->peer.has_certificate = peer->has_certificate;
    conn->peer.is_expired = peer->is_expired;
    memcpy(conn->peer.name, peer->certificate.name, sizeof(conn->peer.name));
    memcpy(conn->peer.key_fingerprint, peer->certificate.key_fingerprint,
           sizeof(conn->peer.key_fingerprint));
    conn->peer.issued.ns = peer->certificate.not_before.ns + CA_SKEW_S * NS_PER_S;
    conn->peer.not_after = peer->certificate.not_after;
}

/* The alert that says why is in the socket; a plain close could drop it unread. */
static void fail_handshake(struct conn *conn, const char *why)
{
    if (conn->state == CONN_DEAD)
        return;
    conn->why = mem_strdup(why);
    (void)shutdown(conn->watch.fd, SHUT_WR);
    release_tls(conn);
    conn->state = CONN_LINGERING;
    conn->wants_write = false;
    conn->read_deadline = in_ms(conn, LINGER_MS);
    arm(conn);
}

static const char *handshake_reason(const struct conn *conn)
{
    long verified = SSL_get_verify_result(conn->ssl);
    if (verified == X509_V_OK)
        return tls_reason();
    ERR_clear_error();
    return X509_verify_cert_error_string(verified);
}

static void shake_hands(struct conn *conn)
{
    conn->wants_write = false;
    ERR_clear_error();
    errno = 0;
    int rc = SSL_do_handshake(conn->ssl);
    if (rc != 1) {
        int code = SSL_get_error(conn->ssl, rc);
        if (code == SSL_ERROR_WANT_WRITE)
            conn->wants_write = true;
        else if (code == SSL_ERROR_SYSCALL)
            conn_abort(conn, "cut off by the peer during the handshake");
        else if (code != SSL_ERROR_WANT_READ)
            fail_handshake(conn, handshake_reason(conn));
        return;
    }
    struct error error;
    struct tls_peer peer;
    if (tls_peer_read(conn->tls, conn->ssl, &peer, &error) != ERR_OK) {
        conn_abort(conn, error.text);
        return;
    }
    take_peer(conn, &peer);
    open_now(conn);
}

void conn_start(struct conn *conn, const char *name)
{
    conn->state = CONN_HANDSHAKE;
    if (conn->tls == NULL) {
        open_now(conn);
        update_watch(conn);
        return;
    }
    struct error error;
    if (tls_attach(conn->tls, conn->watch.fd, name, &conn->ssl, &error) != ERR_OK) {
        conn_abort(conn, error.text);
        return;
    }
    shake_hands(conn);
    update_watch(conn);
}

enum err conn_attach(struct conn *conn, int fd, enum conn_state state, struct error *e)
{
    conn->watch.fd = fd;
    conn->watch.events = state == CONN_CONNECTING ? EPOLLOUT : EPOLLIN;
    enum err rc = loop_watch_add(conn->loop, &conn->watch, e);
    if (rc != ERR_OK) {
        conn->watch.fd = -1;
        return rc;
    }
    conn->state = state;
    return ERR_OK;
}

/* --- Events of the loop. --- */

/* Writes what can be written and, where it may have something, reads; whatever the state. */
static void serve(struct conn *conn, bool reads)
{
    if (conn->state == CONN_HANDSHAKE)
        shake_hands(conn);
    if (conn->state == CONN_OPEN || conn->state == CONN_FINISHING)
        flush(conn);
    if (conn->state == CONN_OPEN && conn->shows_kept && !conn->is_paused)
        show_kept(conn);
    if (conn->state >= CONN_OPEN && reads)
        read_all(conn);
    if (conn->state > CONN_OPEN)
        buf_done(&conn->in); /* not earlier: the owner may have closed while looking at it */
    update_watch(conn);
}

static void on_ready(struct loop_watch *watch, uint32_t events)
{
    struct conn *conn = watch->arg;
    if (conn->state == CONN_CONNECTING) {
        dial_on_ready(conn);
        return;
    }
    serve(conn, true);
    /*
     * A reset, or both ends closed. Only when nothing is left to read, or nobody reads, is it the
     * end: the level would report it again and again.
     */
    bool is_broken = (events & EPOLLERR) != 0 || ((events & EPOLLHUP) != 0 && conn->has_ended);
    bool is_unread = (events & EPOLLHUP) != 0 && !takes_data(conn);
    if (conn->state != CONN_DEAD && (is_broken || is_unread))
        conn_abort(conn, "the peer has gone");
}

static void on_task(void *arg)
{
    struct conn *conn = arg;
    /* Without TLS the level reports what comes: only what was left, or ends, is read here. */
    bool reads = conn->reads_in_task || conn->ssl != NULL || conn->state > CONN_OPEN;
    conn->reads_in_task = false;
    if (conn->state == CONN_DEAD)
        close_now(conn);
    else if (conn->state >= CONN_HANDSHAKE)
        serve(conn, reads);
}
