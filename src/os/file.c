#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/random.h"

enum { READ_STEP = 16 * 1024 };

/* Reads to the end, one byte past `max` at most: /proc files have no size to look at first. */
static enum err read_bounded(int fd, const char *path, size_t max, struct buf *out, struct error *e)
{
    size_t left = max + 1;
    while (left > 0) {
        size_t step = MIN_OF(left, (size_t)READ_STEP);
        size_t got = 0;
        buf_reserve(out, step);
        enum err rc = fd_read_full(fd, out->data + out->size, step, &got, e);
        if (rc != ERR_OK)
            return errno == EISDIR ? err_set(e, ERR_INVALID, "%s is a directory", path)
                                   : err_wrap(e, rc, "%s", path);
        out->size += got;
        out->data[out->size] = '\0';
        if (got < step)
            return ERR_OK;
        left -= got;
    }
    return err_set(e, ERR_LIMIT, "%s is larger than %zu bytes", path, max);
}

enum err file_read(const char *path, size_t max, struct buf *out, struct error *e)
{
    assert(max < SIZE_MAX);
    AUTO(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(e, ERR_NOT_FOUND, "%s does not exist", path);
    if (fd < 0)
        return err_errno(e, "open %s", path);

    size_t before = out->size;
    enum err rc = read_bounded(fd, path, max, out, e);
    if (rc != ERR_OK && out->data != NULL) {
        out->size = before;
        out->data[before] = '\0';
    }
    return rc;
}

enum err file_sync_parent(const char *path, struct error *e)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - path);
    if (size >= sizeof(parent))
        return err_set(e, ERR_LIMIT, "a path is longer than %d bytes", PATH_MAX);
    memcpy(parent, path, size);
    parent[size] = '\0';
    if (slash == path)
        memcpy(parent, "/", 2);
    if (slash == NULL)
        memcpy(parent, ".", 2);

    AUTO(fd) int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "open %s", parent);
    if (fsync(fd) != 0)
        return err_errno(e, "sync %s", parent);
    return ERR_OK;
}

/* The new file, complete and on disk under its temporary name. */
static enum err write_temporary(const char *path, struct str bytes, mode_t mode, struct error *e)
{
    AUTO(fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "create %s", path);
    enum err rc = fd_write_full(fd, bytes.data, bytes.size, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s", path);
    if (fchmod(fd, mode) != 0)
        return err_errno(e, "set the mode of %s", path);
    if (fsync(fd) != 0)
        return err_errno(e, "sync %s", path);
    return ERR_OK;
}

enum err file_write_atomic(const char *path, struct str bytes, mode_t mode, struct error *e)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof(temporary), "%s.%016llx.tmp", path,
                          (unsigned long long)random_u64());
    if (length < 0 || (size_t)length >= sizeof(temporary))
        return err_set(e, ERR_LIMIT, "a path is longer than %d bytes", PATH_MAX);

    enum err rc = write_temporary(temporary, bytes, mode, e);
    if (rc == ERR_OK && rename(temporary, path) != 0)
        rc = err_errno(e, "rename %s to %s", temporary, path);
    if (rc != ERR_OK) {
        (void)unlink(temporary); /* may not exist; the first error is the one to tell */
        return rc;
    }
    return file_sync_parent(path, e);
}

static enum err make_dir(const char *path, mode_t mode, struct error *e)
{
    if (mkdir(path, mode) == 0)
        return ERR_OK;
    if (errno != EEXIST)
        return err_errno(e, "make the directory %s", path);
    struct stat found;
    if (stat(path, &found) != 0)
        return err_errno(e, "look at %s", path);
    if (!S_ISDIR(found.st_mode))
        return err_set(e, ERR_CONFLICT, "%s exists and is not a directory", path);
    return ERR_OK;
}

enum err file_make_dirs(const char *path, mode_t mode, struct error *e)
{
    char part[PATH_MAX];
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof(part))
        return err_set(e, ERR_LIMIT, "a path has %zu bytes; it may have 1..%d", size, PATH_MAX - 1);
    memcpy(part, path, size + 1);
    /* Most often only the last one is missing, or nothing. */
    if (mkdir(path, mode) == 0)
        return ERR_OK;
    if (errno == EEXIST)
        return make_dir(path, mode, e);

    for (size_t i = 1; i < size; i++) {
        if (part[i] != '/')
            continue;
        part[i] = '\0';
        enum err rc = make_dir(part, mode, e);
        if (rc != ERR_OK)
            return rc;
        part[i] = '/';
    }
    return make_dir(part, mode, e);
}
