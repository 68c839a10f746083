#include "agent/logspool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/fd.h"

enum { MAGIC = 0x474f4c42 }; /* "BLOG" */

enum {
    GAP_BYTES = 8,
    GAPS_ROOM = 2 * (LOGSPOOL_HEADER_SIZE + GAP_BYTES), /* one of each stream */
    PUNCH_STEP = 64 * 1024,
    RESERVE_STEP = 16 * 1024,
};

struct pending_gap {
    uint64_t offset;
    uint64_t lost; /* 0: none */
    enum logspool_cause cause;
};

struct logspool {
    int fd;
    int dir_fd;
    uint64_t quota;
    uint64_t size;
    uint64_t
        reserved;   /* the disk has room for the file up to here; UINT64_MAX: that cannot be told */
    uint64_t acked; /* as last read; it only grows */
    uint64_t offset[LOGSPOOL_STREAM_END];
    struct pending_gap gaps[LOGSPOOL_STREAM_END];
};

/* One header, in the order it lies in the file. */
struct header {
    uint32_t magic;
    uint16_t kind;
    uint16_t stream;
    uint32_t size;
    uint32_t cause;
    uint64_t offset;
    uint64_t time_ns;
};
static_assert(sizeof(struct header) == LOGSPOOL_HEADER_SIZE, "no padding");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the spool is written as it lies in memory");

static enum err read_header(int fd, uint64_t at, struct header *out, struct error *e)
{
    ssize_t got = pread(fd, out, sizeof(*out), (off_t)at);
    if (got < 0)
        return err_errno(e, "read the spool");
    if ((size_t)got < sizeof(*out))
        return err_set(e, ERR_NOT_FOUND, "the spool ends here");
    bool is_gap = out->kind == LOGSPOOL_GAP;
    bool is_right = out->magic == MAGIC && (is_gap || out->kind == LOGSPOOL_DATA) &&
                    out->stream >= LOGSPOOL_STDOUT && out->stream < LOGSPOOL_STREAM_END &&
                    out->size <= LOGSPOOL_RECORD_MAX && (!is_gap || out->size == GAP_BYTES) &&
                    out->cause <= LOGSPOOL_CAUSE_DISK;
    return is_right ? ERR_OK
                    : err_set(e, ERR_CORRUPT, "no record starts at %llu of the spool",
                              (unsigned long long)at);
}

enum err logspool_read(int fd, uint64_t at, struct buf *buffer, struct logspool_record *out,
                       struct error *e)
{
    struct header head;
    enum err rc = read_header(fd, at, &head, e);
    if (rc != ERR_OK)
        return rc;
    buf_clear(buffer);
    buf_reserve(buffer, head.size);
    ssize_t got = pread(fd, buffer->data, head.size, (off_t)(at + sizeof(head)));
    if (got < 0)
        return err_errno(e, "read the spool");
    if ((size_t)got < head.size)
        return err_set(e, ERR_NOT_FOUND, "the record is not there whole yet");
    buffer->size = (size_t)got;
    buffer->data[buffer->size] = '\0';

    *out = (struct logspool_record){
        .kind = (enum logspool_kind)head.kind,
        .stream = (enum logspool_stream)head.stream,
        .cause = (enum logspool_cause)head.cause,
        .offset = head.offset,
        .time = { (int64_t)head.time_ns },
        .next = at + sizeof(head) + head.size,
    };
    if (out->kind == LOGSPOOL_GAP)
        memcpy(&out->lost, buffer->data, sizeof(out->lost));
    else
        out->bytes = buf_str(buffer);
    return ERR_OK;
}

struct logspool *logspool_new(int dir_fd, uint64_t quota_bytes)
{
    struct logspool *spool = mem_new(1, sizeof(*spool));
    *spool = (struct logspool){ .fd = -1, .dir_fd = dir_fd, .quota = quota_bytes };
    return spool;
}

void logspool_free(struct logspool *spool)
{
    if (spool == NULL)
        return;
    fd_close(spool->fd);
    mem_free(spool);
}

uint64_t logspool_size(const struct logspool *spool)
{
    return spool->size;
}

static bool has_room(struct logspool *spool, size_t bytes)
{
    if (spool->quota == 0 || spool->size + bytes - spool->acked <= spool->quota)
        return true;
    spool->acked = MAX_OF(spool->acked, MIN_OF(logspool_acked(spool->dir_fd), spool->size));
    return spool->size + bytes - spool->acked <= spool->quota;
}

/* Most short work says nothing, so the file is made for the first record. */
static bool is_open(struct logspool *spool)
{
    if (spool->fd < 0)
        spool->fd = openat(spool->dir_fd, "log",
                           O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return spool->fd >= 0;
}

/*
 * Output never takes the room of the records that would tell of its loss: on a disk that stays full
 * to the end, the last thing in the file says how much is missing.
 */
static bool has_disk(struct logspool *spool, size_t bytes)
{
    uint64_t need = spool->size + bytes + GAPS_ROOM;
    if (need <= spool->reserved)
        return true;
    if (!is_open(spool))
        return false;
    const uint64_t ends[] = { need + RESERVE_STEP, need }; /* well ahead, or as far as must be */
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (fallocate(spool->fd, FALLOC_FL_KEEP_SIZE, (off_t)spool->size,
                      (off_t)(ends[i] - spool->size)) == 0) {
            spool->reserved = ends[i];
            return true;
        }
        if (errno != ENOSPC && errno != EDQUOT && errno != EINTR) {
            spool->reserved = UINT64_MAX; /* a file system that knows no such thing */
            return true;
        }
    }
    return false;
}

/* One record in one call. False: the disk is full or broken, and the file is as it was. */
static bool append(struct logspool *spool, struct header *head, const void *bytes)
{
    if (!is_open(spool))
        return false;
    union {
        const void *given;
        void *wanted; /* writev promises not to change it; its type is older than const */
    } body = { bytes };
    struct iovec parts[2] = { { head, sizeof(*head) }, { body.wanted, head->size } };
    size_t whole = sizeof(*head) + head->size;
    ssize_t put = 0;
    do
        put = writev(spool->fd, parts, COUNT_OF(parts));
    while (put < 0 && errno == EINTR);
    if (put >= 0 && (size_t)put == whole) {
        spool->size += whole;
        return true;
    }
    if (spool->reserved != UINT64_MAX)
        spool->reserved = 0; /* cutting gives it back */
    if (ftruncate(spool->fd, (off_t)spool->size) != 0)
        spool->quota = 1; /* nothing more can be kept: the rest becomes a gap that nobody reads */
    return false;
}

static bool append_gap(struct logspool *spool, enum logspool_stream stream, struct wall now)
{
    struct pending_gap *gap = &spool->gaps[stream];
    if (gap->lost == 0)
        return true;
    struct header head = {
        MAGIC,       LOGSPOOL_GAP,     (uint16_t)stream, GAP_BYTES, (uint32_t)gap->cause,
        gap->offset, (uint64_t)now.ns,
    };
    if (!append(spool, &head, &gap->lost))
        return false;
    *gap = (struct pending_gap){ 0 };
    return true;
}

static void lose(struct logspool *spool, enum logspool_stream stream, size_t size,
                 enum logspool_cause cause)
{
    struct pending_gap *gap = &spool->gaps[stream];
    if (gap->lost == 0)
        *gap = (struct pending_gap){ .offset = spool->offset[stream], .cause = cause };
    gap->lost += size;
}

void logspool_write(struct logspool *spool, enum logspool_stream stream, struct str bytes,
                    struct wall now)
{
    assert(bytes.size <= LOGSPOOL_RECORD_MAX);
    if (bytes.size == 0)
        return;
    size_t gap_size = spool->gaps[stream].lost > 0 ? LOGSPOOL_HEADER_SIZE + GAP_BYTES : 0;
    struct header head = {
        MAGIC, LOGSPOOL_DATA,         (uint16_t)stream, (uint32_t)bytes.size,
        0,     spool->offset[stream], (uint64_t)now.ns,
    };
    if (!has_room(spool, gap_size + LOGSPOOL_HEADER_SIZE + bytes.size))
        lose(spool, stream, bytes.size, LOGSPOOL_CAUSE_QUOTA);
    else if (!has_disk(spool, gap_size + LOGSPOOL_HEADER_SIZE + bytes.size) ||
             !append_gap(spool, stream, now) || !append(spool, &head, bytes.data))
        lose(spool, stream, bytes.size, LOGSPOOL_CAUSE_DISK);
    spool->offset[stream] += bytes.size;
}

void logspool_finish(struct logspool *spool, struct wall now)
{
    for (enum logspool_stream s = LOGSPOOL_STDOUT; s < LOGSPOOL_STREAM_END; s++)
        (void)append_gap(spool, s, now); /* its room was kept; on a broken disk nothing helps */
    if (spool->fd >= 0)
        (void)!ftruncate(spool->fd, (off_t)spool->size); /* what was reserved, and may stay so */
}

uint64_t logspool_acked(int dir_fd)
{
    uint64_t acked = 0;
    AUTO(fd) int fd = openat(dir_fd, "log.ack", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || pread(fd, &acked, sizeof(acked), 0) != (ssize_t)sizeof(acked))
        return 0;
    return acked;
}

/* The eight bytes are replaced in place by one aligned write: a reader sees the old or the new. */
enum err logspool_ack(int dir_fd, uint64_t offset, struct error *e)
{
    AUTO(fd) int log_fd = openat(dir_fd, "log", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (log_fd < 0 || fstat(log_fd, &st) != 0)
        return err_errno(e, "open the spool");
    if (offset > (uint64_t)st.st_size)
        return err_set(e, ERR_INVALID, "%llu is behind the end of the spool",
                       (unsigned long long)offset);
    uint64_t before = logspool_acked(dir_fd);
    if (offset <= before)
        return ERR_OK;
    AUTO(fd) int fd = openat(dir_fd, "log.ack", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || pwrite(fd, &offset, sizeof(offset), 0) != (ssize_t)sizeof(offset))
        return err_errno(e, "note what was acknowledged");
    uint64_t start = before - before % PUNCH_STEP;
    uint64_t end = offset - offset % PUNCH_STEP;
    if (end > start)
        (void)fallocate(log_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
                        (off_t)(end - start)); /* a file system without holes keeps the bytes */
    return ERR_OK;
}
