#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
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
