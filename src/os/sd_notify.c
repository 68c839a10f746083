#include "os/sd_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "os/fd.h"

enum err sd_notify_send(const char *state, struct error *e)
{
    const char *path = getenv("NOTIFY_SOCKET"); /* NOLINT(concurrency-mt-unsafe): never set by us */
    if (path == NULL || path[0] == '\0')
        return ERR_OK;

    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t size = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || size >= sizeof(address.sun_path))
        return err_set(e, ERR_INVALID, "NOTIFY_SOCKET \"%s\" is not a usable path", path);
    memcpy(address.sun_path, path, size);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* the abstract namespace */

    AUTO(fd) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_errno(e, "make a socket");
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, length) < 0)
        return err_errno(e, "notify %s", path);
    return ERR_OK;
}
