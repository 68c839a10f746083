/*
 * One shim that waits. To make a process and its C library ready takes longer than all else
 * that agentd does for a start, so where nothing is starting one is made ahead; work that
 * comes alone finds it waiting. In a burst there is none, and each shim is spawned for its
 * attempt: the sum is the same.
 *
 * It waits on a socket for an order (shim.h) and ends when that closes, or with agentd, until it
 * has signed for an attempt. Whether it does so at all nobody waits for long: see look_at_shim.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "agent/shim_order.h"
#include "os/fd.h"

static bool is_same_program(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void spare_done(struct agentd *agentd)
{
    fd_close(fd_take(&agentd->spare.socket));
    process_done(&agentd->spare.process);
}

static bool is_starting(const struct agentd *agentd)
{
    for (size_t i = 0; i < agentd->attempts.count; i++)
        if (agentd->attempts.items[i]->state == REC_PREPARING)
            return true;
    return false;
}

static enum err spawn(struct agentd *agentd, struct spare *out, struct error *e)
{
    int ends[2];
    if (stat(agentd->options.shim, &out->program) != 0)
        return err_errno(e, "find %s", agentd->options.shim);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_errno(e, "make a socket");
    AUTO(fd) int ours = ends[0];
    AUTO(fd) int theirs = ends[1];
    /* As long as the longest name, for the shim writes its attempt's over it: it is what
     * ps shows. */
    char name[ATTEMPT_NAME_MAX];
    struct attempt_paths paths;
    memset(name, '-', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    config_paths(agentd, name, &paths);
    const char *const argv[] = { agentd->options.shim, "spare", paths.disk, paths.run, NULL };
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    const int fds[] = { -1, -1, STDERR_FILENO, theirs };
    const struct process_spec spec = { .argv = argv,
                                       .env = env,
                                       .fds = fds,
                                       .fd_count = COUNT_OF(fds),
                                       .is_group_leader = true,
                                       .dies_with_us = true };
    enum err rc = process_spawn(&spec, &out->process, e);
    if (rc == ERR_OK)
        out->socket = fd_take(&ours);
    return rc;
}

void spare_prepare(struct agentd *agentd)
{
    if (agentd->spare.process.pidfd >= 0 || agentd->options.is_fake || !agentd->has_set ||
        is_starting(agentd))
        return;
    enum err rc = spawn(agentd, &agentd->spare, NULL);
    (void)rc; /* then each start spawns its own, and says why where that fails too */
}

/* True: it lives, and is what would be spawned now. */
static bool is_good(const struct agentd *agentd)
{
    struct stat now;
    struct pollfd ended = { agentd->spare.process.pidfd, POLLIN, 0 };
    return agentd->spare.process.pidfd >= 0 && stat(agentd->options.shim, &now) == 0 &&
           is_same_program(&now, &agentd->spare.program) && poll(&ended, 1, 0) == 0;
}

bool spare_take(struct agentd *agentd, const struct attempt_paths *paths, int lock_fd, int *pidfd)
{
    if (!is_good(agentd)) {
        spare_done(agentd);
        return false;
    }
    struct shim_order order;
    memset(&order, 0, sizeof(order));
    (void)snprintf(order.disk, sizeof(order.disk), "%s", paths->disk);
    (void)snprintf(order.run, sizeof(order.run), "%s", paths->run);
    const int fds[] = { lock_fd, agentd->runtime.fd };
    const struct str bytes = { (const char *)&order, sizeof(order) };
    size_t count = agentd->runtime.fd >= 0 ? 2 : 1;
    if (fd_send(agentd->spare.socket, bytes, fds, count, MSG_DONTWAIT) < 0) {
        spare_done(agentd);
        return false;
    }
    fd_close(fd_take(&agentd->spare.socket));
    *pidfd = fd_take(&agentd->spare.process.pidfd);
    agentd->spare.process = PROCESS_NONE;
    return true;
}
