#include "controller/snapshotter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"
#include "wire/snapshot.h"

static const size_t bytes_max = (size_t)2 << 30;

struct snapshotter {
    char *path; /* owned; of the child's file */
    int64_t every_events;
    uint64_t last_sequence; /* of the newest snapshot, stored or under way */
    uint64_t pending; /* sequence of the child's; 0: none. Written by the loop, read by workers */
    pid_t child;      /* 0: none */
};

struct snapshotter *snapshotter_new(const char *path, int64_t every_events, uint64_t last_sequence)
{
    struct snapshotter *snapshotter = mem_new(1, sizeof(*snapshotter));
    snapshotter->path = mem_strdup(path);
    snapshotter->every_events = every_events;
    snapshotter->last_sequence = last_sequence;
    return snapshotter;
}

void snapshotter_free(struct snapshotter *snapshotter)
{
    if (snapshotter == NULL)
        return;
    if (snapshotter->child > 0) {
        (void)kill(snapshotter->child, SIGKILL);
        (void)waitpid(snapshotter->child, NULL, 0);
    }
    (void)unlink(snapshotter->path);
    mem_free(snapshotter->path);
    mem_free(snapshotter);
}

/* What the child writes: these numbers as they are in memory, then the content. */
struct file_head {
    uint64_t raw_bytes;
    uint64_t check;
};

/* In the child: memory as it was, no thread but this one. Only writes a file. */
static _Noreturn void child_write(const struct snapshotter *snapshotter, const struct store *store,
                                  const struct state *state)
{
    AUTO(buf) struct buf bytes = { 0 };
    AUTO(buf) struct buf content = { 0 };
    struct store_packed packed;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the store's lock must not outlive the controller */
    snapshot_write(state, &bytes);
    store->vtable->pack_snapshot(store, buf_str(&bytes), &content, &packed);
    const struct file_head head = { packed.raw_bytes, packed.check };
    int fd = open(snapshotter->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_good = fd >= 0 && fd_write_full(fd, &head, sizeof(head), NULL) == ERR_OK &&
                   fd_write_full(fd, content.data, content.size, NULL) == ERR_OK && close(fd) == 0;
    _exit(is_good ? 0 : 1);
}

void snapshotter_consider(struct snapshotter *snapshotter, const struct store *store,
                          const struct state *state)
{
    /* Its cost is that of all of the state: as many events more as there is work keeps it a small
     * part of theirs, and a restart replays no more than it loads. */
    uint64_t every = (uint64_t)snapshotter->every_events + state->workload_count;
    uint64_t since = state->sequence - snapshotter->last_sequence;
    if (snapshotter->child > 0 || since < every)
        return;
    pid_t child = fork();
    if (child == 0)
        child_write(snapshotter, store, state);
    if (child < 0) {
        log_warning("no snapshot: fork failed", LOG_INT("errno", errno));
        return;
    }
    snapshotter->child = child;
    snapshotter->pending = state->sequence;
    snapshotter->last_sequence = state->sequence;
}

enum err snapshotter_store(struct snapshotter *snapshotter, struct store *store, uint64_t durable,
                           struct error *e)
{
    int status = 0;
    if (snapshotter->child <= 0 || durable < snapshotter->pending ||
        waitpid(snapshotter->child, &status, WNOHANG) != snapshotter->child)
        return ERR_OK;
    snapshotter->child = 0;
    AUTO(buf) struct buf bytes = { 0 };
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(e, ERR_IO, "the snapshot's writer failed");
    enum err rc = file_read(snapshotter->path, bytes_max, &bytes, e);
    (void)unlink(snapshotter->path);
    struct file_head head;
    if (rc == ERR_OK && bytes.size < sizeof(head))
        rc = err_set(e, ERR_IO, "the snapshot's writer wrote too little");
    if (rc != ERR_OK)
        return rc;
    memcpy(&head, bytes.data, sizeof(head));
    const struct store_packed packed = {
        .raw_bytes = head.raw_bytes,
        .check = head.check,
        .content = { bytes.data + sizeof(head), bytes.size - sizeof(head) },
    };
    return store->vtable->save_snapshot(store, snapshotter->pending, &packed,
                                        (uint64_t)snapshotter->every_events, e);
}
