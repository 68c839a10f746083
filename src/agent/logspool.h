/*
 * logspool.h - what a workload wrote, byte for byte, between its pipes and the controller.
 *
 * A spool is a file of records that only grows; each is a 32-byte little-endian header
 * and its bytes:
 *
 *     u32 magic     "BLOG"
 *     u16 kind      1 data, 2 gap
 *     u16 stream    1 stdout, 2 stderr
 *     u32 size      bytes that follow the header; of a gap 8: u64 bytes lost
 *     u32 cause     of a gap: 1 quota, 2 disk; of data 0
 *     u64 offset    of the first byte (kept or lost) in its stream: streams have no silent holes
 *     i64 time_ns   wall clock when it was read from the pipe
 *
 * One writer (the shim) appends each record with one call; readers may read meanwhile and stop
 * before a record that is not there whole. The quota bounds the bytes that are not acknowledged
 * yet: what does not fit is counted and becomes one gap record when there is room again, or at the
 * end. The work is never slowed down or stopped for its log. Space of acknowledged bytes is given
 * back by punching holes, so offsets in the file stay true.
 */
#ifndef AGENT_LOGSPOOL_H
#define AGENT_LOGSPOOL_H

#include "base/error.h"
#include "base/str.h"
#include "base/timepoint.h"

enum { LOGSPOOL_HEADER_SIZE = 32, LOGSPOOL_RECORD_MAX = 64 * 1024 };

enum logspool_kind { LOGSPOOL_DATA = 1, LOGSPOOL_GAP = 2 };
enum logspool_stream { LOGSPOOL_STDOUT = 1, LOGSPOOL_STDERR = 2, LOGSPOOL_STREAM_END = 3 };
enum logspool_cause { LOGSPOOL_CAUSE_NONE, LOGSPOOL_CAUSE_QUOTA, LOGSPOOL_CAUSE_DISK };

struct logspool; /* opaque */

/*
 * A spool "log" in `dir_fd`, which is borrowed as long as the spool lives; the file is made with
 * the first record. `quota_bytes` bounds what is not acknowledged in "log.ack"; 0: no bound.
 */
struct logspool *logspool_new(int dir_fd, uint64_t quota_bytes);
void logspool_free(struct logspool *spool); /* NULL is a no-op; writes no pending gaps */
DEFINE_CLEANUP(logspool, struct logspool *, logspool_free)

/* Keeps the bytes or counts them as lost. Cannot fail: losing is what failing means here. */
void logspool_write(struct logspool *spool, enum logspool_stream stream, struct str bytes,
                    struct wall now);
/* Writes the gaps that are still pending, over the quota if need be. */
void logspool_finish(struct logspool *spool, struct wall now);
uint64_t logspool_size(const struct logspool *spool);

/* Acknowledging side (agentd): notes that everything before `offset` is stored elsewhere. */
MUST_CHECK enum err logspool_ack(int dir_fd, uint64_t offset, struct error *e);
uint64_t logspool_acked(int dir_fd); /* 0 when nothing is */

struct logspool_record {
    enum logspool_kind kind;
    enum logspool_stream stream;
    enum logspool_cause cause;
    uint64_t offset; /* in the stream */
    uint64_t lost;   /* of a gap */
    struct wall time;
    struct str bytes; /* of data; borrowed from `buffer` */
    uint64_t next;    /* file offset of the next record */
};

/*
 * Reads the record at file offset `at` of a spool, also of one that is being written.
 * `buffer` keeps the bytes until the next call. ERR_NOT_FOUND: not there (yet).
 * ERR_CORRUPT: no record starts here.
 */
MUST_CHECK enum err logspool_read(int fd, uint64_t at, struct buf *buffer,
                                  struct logspool_record *out, struct error *e); /* for tests */

#endif
