#include "os/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void fd_close(int fd)
{
    if (fd < 0)
        return;
    int saved = errno;
    (void)close(
        fd); /* Linux closes even when it reports EINTR or EIO: trying again may hit another */
    errno = saved;
}

enum err fd_read_full(int fd, void *out, size_t size, size_t *got, struct error *e)
{
    char *at = out;
    size_t used = 0;
    while (used < size) {
        ssize_t n = read(fd, at + used, size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "read");
        if (n == 0)
            break;
        used += (size_t)n;
    }
    *got = used;
    return ERR_OK;
}

enum err fd_write_full(int fd, const void *bytes, size_t size, struct error *e)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, "write");
        at += n;
        size -= (size_t)n;
    }
    return ERR_OK;
}

void fd_drain(int fd)
{
    char dropped[4096];
    ssize_t n = 1;
    while (n > 0 || (n < 0 && errno == EINTR))
        n = read(fd, dropped, sizeof(dropped));
}

enum err fd_set_nonblock(int fd, bool is_nonblock, struct error *e)
{
    int flags = fcntl(fd, F_GETFL);
    int wanted = is_nonblock ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    if (flags < 0 || (wanted != flags && fcntl(fd, F_SETFL, wanted) != 0))
        return err_errno(e, "set O_NONBLOCK");
    return ERR_OK;
}

enum err fd_pipe(int ends[2], struct error *e)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) != 0)
        return err_errno(e, "make a pipe");
    ends[0] = pair[0];
    ends[1] = pair[1];
    return ERR_OK;
}

union pass_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
};

ssize_t fd_send(int socket, struct str bytes, const int *fds, size_t count, int flags)
{
    assert(count <= FD_PASS_MAX);
    union {
        const char *given;
        void *wanted; /* sendmsg promises not to change it; its type is older than const */
    } body = { bytes.data };
    struct iovec part = { body.wanted, bytes.size };
    union pass_control control = { 0 };
    struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
    if (count > 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    }
    ssize_t sent = 0;
    do
        sent = sendmsg(socket, &msg, flags | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
}

/* Every descriptor that came, also those nobody asked for, so that none leaks. */
static void take_passed(struct msghdr *msg, struct fd_pass *out)
{
    *out = (struct fd_pass){ .is_cut = (msg->msg_flags & MSG_CTRUNC) != 0 };
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd = -1;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (out->count < FD_PASS_MAX)
                out->fds[out->count++] = fd;
            else
                fd_close(fd);
        }
    }
}

ssize_t fd_receive(int socket, void *bytes, size_t size, struct fd_pass *out, int flags)
{
    struct iovec part = { bytes, size };
    union pass_control control = { 0 };
    struct msghdr msg = { .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = sizeof(control.bytes) };
    ssize_t got = 0;
    do
        got = recvmsg(socket, &msg, flags | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        *out = (struct fd_pass){ .count = 0 };
        return got;
    }
    take_passed(&msg, out);
    if ((msg.msg_flags & MSG_TRUNC) != 0) {
        fd_pass_done(out);
        errno = EMSGSIZE;
        return -1;
    }
    return got;
}

void fd_pass_done(struct fd_pass *pass)
{
    for (size_t i = 0; i < pass->count; i++)
        fd_close(pass->fds[i]);
    pass->count = 0;
}
