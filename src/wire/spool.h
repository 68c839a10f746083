/*
 * spool.h - reads the records of a shipped log spool out of memory. The format is the node's
 * (agent/logspool.h): a 32-byte little-endian header {magic "BLOG", kind, stream, size,
 * cause, offset in the stream, wall time} and its bytes. What a node ships is not
 * trusted: every field is checked.
 */
#ifndef WIRE_SPOOL_H
#define WIRE_SPOOL_H

#include "base/error.h"
#include "base/str.h"
#include "base/timepoint.h"

enum { SPOOL_HEADER_SIZE = 32, SPOOL_RECORD_MAX = 64 * 1024 };
enum spool_kind { SPOOL_DATA = 1, SPOOL_GAP = 2 };
enum spool_stream { SPOOL_STDOUT = 1, SPOOL_STDERR = 2 };

struct spool_record {
    enum spool_kind kind;
    enum spool_stream stream;
    uint64_t offset; /* of the first byte, kept or lost, in its stream */
    uint64_t lost;   /* of a gap */
    struct wall time;
    struct str bytes; /* of data; borrowed */
    size_t size;      /* of the whole record in the spool */
};

/* The record at the start of `bytes`. ERR_NOT_FOUND: not there whole. ERR_CORRUPT: none
 * starts here. */
enum err spool_next(struct str bytes, struct spool_record *out, struct error *e) MUST_CHECK;

#endif
