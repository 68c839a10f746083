/*
 * lz.h - a fast codec for what one transaction stores. Rows that are written together are
 * much alike: a tenth of their bytes is new. It costs less than the pages would that it
 * saves, where deflate does not.
 *
 * Packed bytes are steps: a byte whose high half counts literals and whose low half counts copied
 * bytes beyond MATCH_MIN (15: bytes follow that add to it, up to the first that is not 255), the
 * literals, and how far back the copy begins (two bytes). The last step ends after its literals.
 */
#ifndef STORE_LZ_H
#define STORE_LZ_H

#include "base/error.h"
#include "base/str.h"

/* Replaces `out`. */
void lz_pack(struct str raw, struct buf *out);
/* Replaces `out`; ERR_CORRUPT, and `out` as before, when the bytes are not `raw_size`
 * packed ones. */
MUST_CHECK enum err lz_unpack(struct str packed, uint64_t raw_size, struct buf *out,
                              struct error *e);

#endif
