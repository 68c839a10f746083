#include "agent/image/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/image/store.h"
#include "os/fd.h"

enum { HOLDER_STACK = 8192 };

static int __attribute__((noreturn)) hold(void *unused)
{
    (void)unused;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        (void)pause();
}

static enum err write_map(pid_t pid, const char *file, uint32_t inside, uint32_t outside,
                          struct error *e)
{
    char path[64];
    char line[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int size = snprintf(line, sizeof(line), "%u %u %u\n", inside, outside, IMAGE_UID_COUNT);
    AUTO(fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, line, (size_t)size) != size)
        return err_errno(e, "write %s", path);
    return ERR_OK;
}

enum err idmap_namespace(uint32_t disk_base, uint32_t tenant_base, int *userns_fd, struct error *e)
{
    /* A user namespace lives in a process; this one only waits to be killed. It shares our memory,
     * for copying it would cost more than all else here, and has its stack in this frame. */
    _Alignas(16) char stack[HOLDER_STACK];
    pid_t pid = clone(hold, stack + sizeof(stack), CLONE_VM | CLONE_NEWUSER | SIGCHLD, NULL);
    if (pid < 0)
        return err_errno(e, "make a user namespace");
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    enum err rc = write_map(pid, "uid_map", disk_base, tenant_base, e);
    if (rc == ERR_OK)
        rc = write_map(pid, "gid_map", disk_base, tenant_base, e);
    int fd = rc == ERR_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (rc == ERR_OK && fd < 0)
        rc = err_errno(e, "open %s", path);
    (void)kill(pid, SIGKILL); /* our child, not yet waited for: nobody else has this number */
    (void)waitpid(pid, NULL, 0);
    if (rc == ERR_OK)
        *userns_fd = fd;
    return rc;
}

enum err idmap_mount(int userns_fd, const char *source, const char *target, struct error *e)
{
    AUTO(fd) int fd = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "open %s as a mount", source);
    struct mount_attr attributes = {
        .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        .propagation = (uint64_t)MS_PRIVATE,
        .userns_fd = (uint64_t)(unsigned)userns_fd,
    };
    if (mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) != 0)
        return err_errno(e, "map the owners of %s", source);
    if (move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return err_errno(e, "mount %s", target);
    return ERR_OK;
}
