/* deflate.h - zlib for what is kept long and read rarely: archived journal segments, snapshots. */
#ifndef STORE_DEFLATE_H
#define STORE_DEFLATE_H

#include "base/error.h"
#include "base/str.h"

enum deflate_level { DEFLATE_FAST = 1, DEFLATE_SMALL = 6 };

/* Replaces `out`. */
void deflate_bytes(struct str raw, enum deflate_level level, struct buf *out);
/* Replaces `out`; ERR_CORRUPT, and `out` as before, when the bytes are not `raw_size` deflated
 * ones. */
MUST_CHECK enum err inflate_bytes(struct str packed, uint64_t raw_size, struct buf *out,
                                  struct error *e);

#endif
