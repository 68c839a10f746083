/* fd.h - file descriptors: closed by scope, read and written whole. */
#ifndef OS_FD_H
#define OS_FD_H

#include <sys/types.h>

#include "base/error.h"

/* A negative number is a no-op. Keeps errno, so that it may run between a failure and its report. */
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

MUST_CHECK enum err fd_set_nonblock(int fd, bool is_nonblock, struct error *e);

/* A close-on-exec pipe: ends[0] is read from, ends[1] written to. Both are yours. */
MUST_CHECK enum err fd_pipe(int ends[2], struct error *e);

#endif
