/* fd.h - file descriptors: closed by scope, read and written whole. */
#ifndef OS_FD_H
#define OS_FD_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/* A negative number is a no-op. Keeps errno, so that it may run between a failure and its
 * report. */
void fd_close(int fd);
DEFINE_CLEANUP(fd, int, fd_close)

/* Moves a descriptor out of its variable, so that AUTO no longer closes it. */
static inline int fd_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* For blocking descriptors. Reads until `size` bytes or the end; `got` says how many came. */
MUST_CHECK enum err fd_read_full(int fd, void *out, size_t size, size_t *got, struct error *e);
MUST_CHECK enum err fd_write_full(int fd, const void *bytes, size_t size, struct error *e);
/* Reads to the end and drops it: a writer's last bytes, of no use here, do not break its pipe. */
void fd_drain(int fd);

MUST_CHECK enum err fd_set_nonblock(int fd, bool is_nonblock, struct error *e);

/* A close-on-exec pipe: ends[0] is read from, ends[1] written to. Both are yours. */
MUST_CHECK enum err fd_pipe(int ends[2], struct error *e);

/* A datagram that carries descriptors, over a local socket. */
enum { FD_PASS_MAX = 3 };
struct fd_pass {
    int fds[FD_PASS_MAX]; /* received: yours */
    size_t count;
    bool
        is_cut; /* received: some are lost, for there were none left for them, or they were too many */
};

/* As sendmsg; what is sent stays open here. */
ssize_t fd_send(int socket, struct str bytes, const int *fds, size_t count, int flags);
/* As recvmsg, for whole datagrams: -1 and EMSGSIZE when one was larger than `size`. */
ssize_t fd_receive(int socket, void *bytes, size_t size, struct fd_pass *out, int flags);
void fd_pass_done(struct fd_pass *pass); /* closes what is left in it; taken ones are -1 */
DEFINE_CLEANUP_AT(fd_pass, struct fd_pass, fd_pass_done)

#endif
