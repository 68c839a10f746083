/*
 * net_fixture.h - a real server on a free loopback port or in a private unix socket, and
 * raw clients, all in the test's one thread: whoever waits for an answer turns the
 * server's loop meanwhile.
 */
#ifndef TESTS_UNIT_NET_FIXTURE_H
#define TESTS_UNIT_NET_FIXTURE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/conn.h"
#include "net/loop.h"
#include "os/clock.h"
#include "unit/test.h"

enum { PATIENCE_MS = 30000 };
#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static inline int64_t now_ms(void)
{
    return clock_monotonic().ns / NS_PER_MS;
}

static inline void turn(struct loop *loop, int wait_ms)
{
    struct error e;
    CHECK_OK("turn", loop_turn(loop, wait_ms, &e), &e);
}

/* Appends all, or nothing when that is more than there is room for; on_room tells of more. */
static inline bool send_within_room(struct conn *conn, const void *bytes, size_t size)
{
    if (size > conn_room(conn)) {
        conn_want_room(conn);
        return false;
    }
    conn_send_always(conn, bytes, size);
    return true;
}

/* Turns the loop until the condition holds; fails the test when it never does. */
#define TURN_UNTIL(loop, condition)                                                                \
    do {                                                                                           \
        int64_t end_ms_ = now_ms() + PATIENCE_MS;                                                  \
        while (!(condition)) {                                                                     \
            CHECK(#condition, now_ms() < end_ms_);                                                 \
            turn((loop), 5);                                                                       \
        }                                                                                          \
    } while (0)

static inline int client_connect(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK("socket", fd >= 0);
    CHECK("connect", connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

/* Sends all of it, turning the loop while the socket is full. False: the peer has closed. */
static inline bool client_send(struct loop *loop, int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    int64_t end_ms = now_ms() + PATIENCE_MS;
    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN)
            return false;
        CHECK("client_send", now_ms() < end_ms);
        if (sent > 0) {
            at += sent;
            size -= (size_t)sent;
        }
        turn(loop, sent > 0 ? 0 : 5);
    }
    return true;
}

/* Reads what there is. False: the peer has closed. */
static inline bool client_read(int fd, struct buf *out)
{
    char bytes[16384];
    for (;;) {
        ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
        if (got == 0)
            return false;
        buf_add(out, bytes, (size_t)got);
    }
}

/* Until the peer has closed. False: it has not within `wait_ms`. */
static inline bool client_read_to_end(struct loop *loop, int fd, struct buf *out, int64_t wait_ms)
{
    int64_t end_ms = now_ms() + wait_ms;
    while (client_read(fd, out)) {
        if (now_ms() >= end_ms)
            return false;
        turn(loop, 2);
    }
    return true;
}

/* Until `text` is among what has come. False: the peer closed first. */
static inline bool client_read_until(struct loop *loop, int fd, struct buf *out, const char *text)
{
    int64_t end_ms = now_ms() + PATIENCE_MS;
    for (;;) {
        bool is_open = client_read(fd, out);
        if (out->size > 0 && memmem(out->data, out->size, text, strlen(text)) != NULL)
            return true;
        if (!is_open)
            return false;
        CHECK(text, now_ms() < end_ms);
        turn(loop, 2);
    }
}

static inline bool has_text(const struct buf *buf, const char *text)
{
    return buf->size > 0 && memmem(buf->data, buf->size, text, strlen(text)) != NULL;
}

static inline size_t count_text(const struct buf *buf, const char *text)
{
    size_t count = 0;
    const char *at = buf->data;
    size_t left = buf->size;
    while (left > 0) {
        const char *found = memmem(at, left, text, strlen(text));
        if (found == NULL)
            break;
        count++;
        left -= (size_t)(found + 1 - at);
        at = found + 1;
    }
    return count;
}

#endif
