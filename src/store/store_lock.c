#include "store/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "os/fd.h"

enum { MARK_BYTES = 72, LOCK_FILE_MODE = 0600 };

enum err store_lock_take(const char *path, struct store_lock *out, struct error *e)
{
    AUTO(buf) struct buf name = { 0 };
    buf_format(&name, "%s.lock", path);
    AUTO(fd) int fd = open(name.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, LOCK_FILE_MODE);
    if (fd < 0)
        return err_errno(e, "open %s", name.data);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return err_set(e, ERR_CONFLICT,
                           "%s: another process has this store open; stop it first", path);
        return err_errno(e, "lock %s", name.data);
    }
    out->fd = fd_take(&fd);
    return ERR_OK;
}

void store_lock_done(struct store_lock *lock)
{
    fd_close(lock->fd);
    lock->fd = -1;
}

/* One line for people, of fixed size, with a check against half a write. */
static void mark_format(char out[MARK_BYTES + 1], const struct journal_key *store,
                        uint64_t sequence)
{
    char name[2 * sizeof(store->bytes) + 1];
    hex_encode(store->bytes, sizeof(store->bytes), name);
    int head = snprintf(out, MARK_BYTES + 1, "%s %020" PRIu64, name, sequence);
    uint64_t check = siphash(store->bytes, out, (size_t)head);
    (void)snprintf(out + head, (size_t)(MARK_BYTES + 1 - head), " %016" PRIx64 " \n", check);
}

enum err store_mark_check(const struct store_lock *lock, const char *path,
                          const struct journal_key *store, uint64_t sequence, struct error *e)
{
    char found[MARK_BYTES + 1] = { 0 };
    char expected[MARK_BYTES + 1];
    if (pread(lock->fd, found, MARK_BYTES, 0) != MARK_BYTES)
        return ERR_OK; /* never marked */
    struct str number = { found + 2 * sizeof(store->bytes) + 1, 20 };
    while (number.size > 1 && number.data[0] == '0')
        number = (struct str){ number.data + 1, number.size - 1 };
    int64_t marked = 0;
    if (!str_to_i64(number, 0, INT64_MAX, &marked))
        return ERR_OK; /* half a write before a power loss */
    mark_format(expected, store, (uint64_t)marked);
    if (memcmp(found, expected, MARK_BYTES) != 0)
        return ERR_OK; /* the same, or of the store that was here before */
    if ((uint64_t)marked > sequence)
        return err_set(e, ERR_CORRUPT,
                       "%s ends at event %" PRIu64 ", but %" PRId64 " was acknowledged: its -wal "
                       "file is lost or damaged; restore a backup with berthd restore, or delete "
                       "its .lock file to go on without the rest",
                       path, sequence, marked);
    return ERR_OK;
}

void store_mark_set(const struct store_lock *lock, const struct journal_key *store,
                    uint64_t sequence)
{
    char line[MARK_BYTES + 1];
    mark_format(line, store, sequence);
    ssize_t written = pwrite(lock->fd, line, MARK_BYTES, 0);
    (void)written; /* an old mark only sees less */
}

enum err store_mark_clear(const struct store_lock *lock, const char *path, struct error *e)
{
    if (ftruncate(lock->fd, 0) != 0 || fsync(lock->fd) != 0)
        return err_errno(e, "clear %s.lock", path);
    return ERR_OK;
}
