/* journal_part.h - rows on their way into one row of the tables `journal` or `journal_segments`. */
#ifndef STORE_JOURNAL_PART_H
#define STORE_JOURNAL_PART_H

#include "store/journal.h"
#include "store/sql.h"

enum {
    PART_ROWS = 256,
    PART_BYTES = 1 << 16, /* of rows before packing; one row may be larger */
};

struct journal_part {
    uint64_t first, last; /* sequences; first 0: it is empty */
    uint64_t previous_check, last_check;
    struct wall last_wall;
    size_t count;
    struct buf rows, packed;
};

/* Empties it; the next row follows one with this check. */
void journal_part_begin(struct journal_part *part, uint64_t check);
void journal_part_add(struct journal_part *part, const struct journal_key *key,
                      const struct store_row *row);
bool journal_part_is_full(const struct journal_part *part);
/* Binds it to an INSERT of the seven columns, in their order, and runs that. */
typedef void journal_pack_fn(struct str raw, struct buf *out);
MUST_CHECK enum err journal_part_write(struct journal_part *part, journal_pack_fn *pack,
                                       struct sql_call *call, struct error *e);
void journal_part_done(struct journal_part *part);
DEFINE_CLEANUP_AT(journal_part, struct journal_part, journal_part_done)

#endif
