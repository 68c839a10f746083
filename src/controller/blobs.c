#include "controller/blobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/file.h"
#include "os/random.h"

struct blobs {
    char *dir; /* owned */
    int64_t quota_bytes;
    int64_t stored_bytes;
    int64_t incoming_bytes; /* of uploads under way: they are stored next */
};

struct blob_writer {
    struct blobs *blobs; /* borrowed */
    int fd;
    char *path; /* owned; of the temporary file */
    int64_t size_bytes, size_bytes_max;
    crypto_hash_sha256_state hash;
    struct digest digest; /* once sealed */
};

enum { HEX_DIGITS = 2 * DIGEST_BYTES, READ_ONLY_MODE = 0400 };
static const char temporary_prefix[] = "incoming-";

/* Counts what is stored and removes what an interrupted upload left. */
static enum err blobs_scan(struct blobs *blobs, struct error *e)
{
    DIR *dir = opendir(blobs->dir);
    if (dir == NULL)
        return err_errno(e, "%s", blobs->dir);
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe): our own stream */
        struct stat info;
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (str_starts(str_of(entry->d_name), str_of(temporary_prefix)))
            (void)unlinkat(dirfd(dir), entry->d_name, 0); /* a leftover: gone or not, harmless */
        else
            blobs->stored_bytes += info.st_size;
    }
    (void)closedir(dir);
    return ERR_OK;
}

enum err blobs_open(const char *dir, int64_t quota_mib, struct blobs **out, struct error *e)
{
    enum err rc = file_make_dirs(dir, 0700, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(blobs) struct blobs *blobs = mem_new(1, sizeof(*blobs));
    blobs->dir = mem_strdup(dir);
    blobs->quota_bytes = quota_mib * 1024 * 1024;
    rc = blobs_scan(blobs, e);
    if (rc != ERR_OK)
        return rc;
    *out = TAKE(blobs);
    return ERR_OK;
}

void blobs_free(struct blobs *blobs)
{
    if (blobs == NULL)
        return;
    mem_free(blobs->dir);
    mem_free(blobs);
}

int64_t blobs_bytes(const struct blobs *blobs)
{
    return blobs->stored_bytes;
}

static const char *blobs_path(const struct blobs *blobs, const struct digest *digest,
                              struct arena *arena)
{
    char hex[HEX_DIGITS + 1];
    hex_encode(digest->bytes, DIGEST_BYTES, hex);
    return arena_format(arena, "%s/%s", blobs->dir, hex);
}

bool blobs_has(const struct blobs *blobs, const struct digest *digest)
{
    AUTO(arena) struct arena arena = { 0 };
    struct stat info;
    return stat(blobs_path(blobs, digest, &arena), &info) == 0;
}

enum err blobs_read(const struct blobs *blobs, const struct digest *digest, int *fd,
                    int64_t *size_bytes, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    const char *path = blobs_path(blobs, digest, &arena);
    AUTO(fd) int opened = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (opened < 0)
        return err_set(e, ERR_NOT_FOUND, "no blob %s is stored here",
                       path + strlen(blobs->dir) + 1);
    struct stat info;
    if (fstat(opened, &info) != 0)
        return err_errno(e, "%s", path);
    *size_bytes = info.st_size;
    *fd = fd_take(&opened);
    return ERR_OK;
}

static enum err room_check(const struct blobs *blobs, int64_t more_bytes, struct error *e)
{
    if (more_bytes <= blobs->quota_bytes - blobs->stored_bytes - blobs->incoming_bytes)
        return ERR_OK;
    return err_set(e, ERR_LIMIT,
                   "the store of uploads has no room for it (blob_quota_mib %lld): remove images, "
                   "raise it, or wait for other uploads to end",
                   (long long)(blobs->quota_bytes / (1024 * 1024)));
}

enum err blob_writer_new(struct blobs *blobs, int64_t size_bytes_max, int64_t announced_bytes,
                         struct blob_writer **out, struct error *e)
{
    enum err rc = room_check(blobs, announced_bytes, e);
    if (rc != ERR_OK)
        return rc;
    char id[ID_TEXT_MAX];
    AUTO(arena) struct arena arena = { 0 };
    const char *path = arena_format(&arena, "%s/%s%s", blobs->dir, temporary_prefix,
                                    id_text(ID_REQUEST, random_id(), id));
    AUTO(fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "%s", path);

    struct blob_writer *writer = mem_new(1, sizeof(*writer));
    writer->blobs = blobs;
    writer->fd = fd_take(&fd);
    writer->path = mem_strdup(path);
    writer->size_bytes_max = size_bytes_max;
    (void)crypto_hash_sha256_init(&writer->hash);
    *out = writer;
    return ERR_OK;
}

void blob_writer_free(struct blob_writer *writer)
{
    if (writer == NULL)
        return;
    fd_close(writer->fd);
    if (writer->path != NULL) { /* else it was published, and counts as stored */
        (void)unlink(writer->path);
        writer->blobs->incoming_bytes -= writer->size_bytes;
    }
    mem_free(writer->path);
    mem_free(writer);
}

enum err blob_writer_add(struct blob_writer *writer, struct str bytes, struct error *e)
{
    int64_t size_bytes = writer->size_bytes + (int64_t)bytes.size;
    if (size_bytes > writer->size_bytes_max)
        return err_set(e, ERR_LIMIT, "the upload is larger than the %lld MiB allowed",
                       (long long)(writer->size_bytes_max / (1024 * 1024)));
    enum err rc = room_check(writer->blobs, (int64_t)bytes.size, e);
    if (rc == ERR_OK)
        rc = fd_write_full(writer->fd, bytes.data, bytes.size, e);
    if (rc != ERR_OK)
        return rc;
    writer->size_bytes = size_bytes;
    writer->blobs->incoming_bytes += (int64_t)bytes.size;
    (void)crypto_hash_sha256_update(&writer->hash, (const unsigned char *)bytes.data, bytes.size);
    return ERR_OK;
}

enum err blob_writer_seal(struct blob_writer *writer, const struct digest *expected,
                          struct digest *digest, int64_t *size_bytes, struct error *e)
{
    static const struct digest any;
    struct digest *got = &writer->digest;
    (void)crypto_hash_sha256_final(&writer->hash, got->bytes);
    if (memcmp(expected, &any, sizeof(any)) != 0 && memcmp(expected, got, sizeof(*got)) != 0) {
        char hex[HEX_DIGITS + 1];
        hex_encode(got->bytes, DIGEST_BYTES, hex);
        return err_field(e, "digest", "the bytes that came have SHA-256 %s, not the one named",
                         hex);
    }
    if (fchmod(writer->fd, READ_ONLY_MODE) != 0 || fsync(writer->fd) != 0)
        return err_errno(e, "%s", writer->path);
    *digest = *got;
    *size_bytes = writer->size_bytes;
    return ERR_OK;
}

const char *blob_writer_path(const struct blob_writer *writer)
{
    return writer->path;
}

enum err blob_writer_publish(struct blob_writer *writer, bool *is_new, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    const char *path = blobs_path(writer->blobs, &writer->digest, &arena);
    *is_new = !blobs_has(writer->blobs, &writer->digest);
    if (rename(writer->path, path) != 0)
        return err_errno(e, "%s", path);
    mem_free(writer->path);
    writer->path = NULL;
    writer->blobs->incoming_bytes -= writer->size_bytes;
    if (*is_new)
        writer->blobs->stored_bytes += writer->size_bytes;
    return file_sync_parent(path, e);
}

void blobs_remove(struct blobs *blobs, const struct digest *digest)
{
    AUTO(arena) struct arena arena = { 0 };
    const char *path = blobs_path(blobs, digest, &arena);
    struct stat info;
    if (stat(path, &info) == 0 && unlink(path) == 0)
        blobs->stored_bytes -= info.st_size;
}

size_t blobs_collect(struct blobs *blobs, int64_t now_s, int64_t age_s,
                     bool (*is_used)(void *arg, const struct digest *digest), void *arg)
{
    DIR *dir = opendir(blobs->dir);
    if (dir == NULL)
        return 0;
    size_t removed = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe): our own stream */
        struct digest digest;
        struct stat info;
        if (!hex_decode(str_of(entry->d_name), digest.bytes, DIGEST_BYTES) ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            now_s - info.st_mtim.tv_sec < age_s || is_used(arg, &digest))
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) == 0) {
            blobs->stored_bytes -= info.st_size;
            removed++;
        }
    }
    (void)closedir(dir);
    return removed;
}
