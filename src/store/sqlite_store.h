/* sqlite_store.h - what the parts of the SQLite store share; nobody else includes it. */
#ifndef STORE_SQLITE_STORE_H
#define STORE_SQLITE_STORE_H

#include "store/answer_pack.h"
#include "store/journal_part.h"
#include "store/projection.h"
#include "store/statements.h"
#include "store/store_lock.h"

enum {
    SNAPSHOTS_KEPT = 3,
    SEGMENT_ROWS = 1000,
    SEGMENT_BYTES = 1 << 20, /* of rows before deflating; one row may be larger */
    TRIM_ROWS = 200,         /* a step of trim() */
};

struct sqlite_store {
    struct store base; /* first: the vtable's functions cast back */
    struct sql sql;
    struct store_lock lock;
    struct store_retention retention;
    struct journal_key key;
    uint64_t sequence;        /* of the last event known to be durable */
    int log_pages;            /* of the write-ahead log after the last commit */
    bool is_poisoned;         /* a commit's outcome is unknown: nothing may be written any more */
    struct journal_part part; /* of append(): kept for their memory */
    struct answer_pack answers;
};

static inline struct sqlite_store *sqlite_of(struct store *store)
{
    return (struct sqlite_store *)(void *)store;
}

/* The row of store_head. */
struct store_head {
    struct journal_key key;
    uint64_t epoch, sequence, check, dropped_sequence, dropped_check, archive_to;
};
MUST_CHECK enum err head_read(struct sql *sql, struct store_head *out, struct error *e);

/*
 * A write transaction. begin refuses on a poisoned store. end commits when `rc` is ERR_OK and rolls
 * back otherwise; an outcome that is not known poisons the store and is ERR_IO.
 */
MUST_CHECK enum err sqlite_begin(struct sqlite_store *store, struct error *e);
MUST_CHECK enum err sqlite_end(struct sqlite_store *store, enum err rc, struct error *e);

extern const struct store_vtable sqlite_vtable;

/* sqlite_append.c */
enum err sqlite_append(struct store *base, const struct store_batch *batch, struct error *e);
/* sqlite_project.c; `to` is a struct sql *. */
extern const struct projection_sink sqlite_sink;
MUST_CHECK enum err sqlite_clear_projections(struct sql *sql, struct error *e);
/* sqlite_read.c */
enum err sqlite_read_events(struct store *base, uint64_t after, store_row_fn *each, void *arg,
                            struct error *e);
enum err sqlite_read_answers(struct store *base, store_answer_fn *each, void *arg, struct error *e);
enum err sqlite_read_clock(struct store *base, struct store_clock *out, struct arena *arena,
                           struct error *e);
/* ERR_NOT_FOUND: retention dropped some of them. ERR_CORRUPT: not what was written, or not all. */
MUST_CHECK enum err journal_read_after(struct sql *sql, uint64_t after, store_row_fn *each,
                                       void *arg, struct error *e);
enum err sqlite_rebuild(struct store *base, store_decode_fn *decode, void *arg, struct error *e);
/* The check of the last row: live, else archived, else of what retention dropped last. ERR_CORRUPT:
 * its sequence is not this. */
MUST_CHECK enum err journal_check_of(struct sql *sql, const struct store_head *head,
                                     uint64_t sequence, uint64_t *check, struct error *e);
/* Where rows are: behind `after`, and how they are packed. What is archived comes first. */
struct journal_place {
    enum statement after;
    enum err (*unpack)(struct str packed, uint64_t raw_size, struct buf *out, struct error *e);
};
enum { PLACE_SEGMENTS, PLACE_LIVE, PLACE_COUNT };
extern const struct journal_place journal_places[PLACE_COUNT];
/* The first part, and the check of the row before it; *first 0: all is archived. */
MUST_CHECK enum err journal_first_live(struct sql *sql, uint64_t *first, uint64_t *previous_check,
                                       struct error *e);
/* Keeps the body of a submission that leaves the live journal, where its workload is read
 * from there. */
MUST_CHECK enum err keep_record(struct sql *sql, const struct store_row *row, struct error *e);
/* sqlite_snapshot.c */
enum err sqlite_load_snapshot(struct store *base, uint64_t *sequence, struct buf *bytes,
                              struct error *e);
void sqlite_pack_snapshot(const struct store *base, struct str bytes, struct buf *content,
                          struct store_packed *out);
enum err sqlite_save_snapshot(struct store *base, uint64_t sequence,
                              const struct store_packed *snapshot, uint64_t keep_events,
                              struct error *e);
/* sqlite_trim.c */
enum err sqlite_trim(struct store *base, struct wall now, bool *more, struct error *e);

#endif
