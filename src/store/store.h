/*
 * store.h - the journal and what is projected from it, behind one vtable: SQLite (one file, no
 * server) and memory (tests, simulator). One contract test suite runs against every kind.
 *
 * The journal is the truth. A batch of events, their projections (workloads, allocations, usage
 * segments, ledger, audit), the answers kept for Idempotency-Keys and the clock row are ONE
 * transaction: after append() returns ERR_OK all of it is durable, otherwise none of it happened
 * (ERR_UNAVAILABLE: disk full, rolled back, may be tried again later) or the outcome is unknown
 * (ERR_IO: an fsync failed; the process must exit with 75 and recover at the next start).
 * Calls block; the controller makes them on one worker thread at a time. Nothing here
 * reads a clock.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/error.h"
#include "model/event.h"
#include "model/state.h"

struct store_event {
    const struct event *event; /* for the projections */
    struct str body;           /* the payload as JSON: what the journal keeps */
    struct str object;         /* text id of the object, for the audit; may be empty */
};

/* The answer given to a request with an Idempotency-Key, kept for a day. */
struct store_answer {
    uint64_t number;         /* from 1; the caller's, above that of every answer before */
    struct digest key;       /* of principal and key */
    struct digest body_hash; /* of method, path and request body */
    int64_t status;
    struct str content; /* the response body */
    uint64_t version;   /* its ETag; 0: none */
    struct wall expires;
};

/* How ledger time goes on after a restart: by the boot clock within a boot, else by wall time. */
struct store_clock {
    struct str boot_id;
    int64_t boottime_ns;
    struct mono mono;
    struct wall wall;
};

struct store_batch {
    const struct store_event *events; /* consecutive sequences, following the last stored one */
    size_t event_count;
    const struct store_answer *answers;
    size_t answer_count;
    struct store_clock clock;
};

/* One journal row as read back. */
struct store_row {
    uint64_t sequence;
    enum event_type type;
    unsigned version;
    struct mono at;
    struct wall wall;
    struct actor actor;
    struct id request;
    struct id tenant;
    uint64_t tenant_sequence; /* 0: in no feed, or written before feeds had numbers of their own */
    struct str object;
    struct str body;
};

/* Return ERR_OK to go on; anything else ends the walk and is returned by it. */
typedef enum err store_row_fn(void *arg, const struct store_row *row, struct error *e);
typedef enum err store_answer_fn(void *arg, const struct store_answer *answer, struct error *e);
/* Decodes a journal body for rebuild(): fills `out` from the row (wire does it; store may not). */
typedef enum err store_decode_fn(void *arg, const struct store_row *row, struct arena *arena,
                                 struct event *out, struct error *e);

/* A snapshot as the store keeps it. */
struct store_packed {
    uint64_t raw_bytes;
    uint64_t check; /* of the raw bytes */
    struct str content;
};

struct store;

struct store_vtable {
    const char *name; /* "sqlite", "memory" */
    /* Raises the stored epoch by one (or to at least `at_least`) and returns it; fences older
     * holders: an append by a holder of an older epoch fails with ERR_CONFLICT. */
    enum err (*claim)(struct store *store, uint64_t at_least, uint64_t *epoch, struct error *e);
    enum err (*append)(struct store *store, const struct store_batch *batch, struct error *e);
    /* Newest snapshot; ERR_NOT_FOUND when none was ever taken. `bytes` is the caller's to
     * buf_done. */
    enum err (*load_snapshot)(struct store *store, uint64_t *sequence, struct buf *bytes,
                              struct error *e);
    /* Makes a snapshot small, `content` being what `out` then borrows. Takes long and touches
     * nothing: for a thread or a child process beside the batches. */
    void (*pack_snapshot)(const struct store *store, struct str bytes, struct buf *content,
                          struct store_packed *out);
    /* Durable before it returns. Archives journal segments that are older than the snapshot before
     * the last one, keeping `keep_events` rows at least for feeds. */
    enum err (*save_snapshot)(struct store *store, uint64_t sequence,
                              const struct store_packed *snapshot, uint64_t keep_events,
                              struct error *e);
    /* Rows with sequence > after, in order, without gaps (ERR_CORRUPT otherwise). */
    enum err (*read_events)(struct store *store, uint64_t after, store_row_fn *each, void *arg,
                            struct error *e);
    /* Number, key and expiry of every answer kept, in the order of their numbers; of one key the
     * newest counts. */
    enum err (*read_answers)(struct store *store, store_answer_fn *each, void *arg,
                             struct error *e);
    enum err (*read_clock)(struct store *store, struct store_clock *out, struct arena *arena,
                           struct error *e); /* ERR_NOT_FOUND: nothing was ever appended */
    /* Removes what `retention` no longer keeps; small steps, returns whether more is left. */
    enum err (*trim)(struct store *store, struct wall now, bool *more, struct error *e);
    /* Between batches: copies the write-ahead log back when it has this many pages of 4 KiB. */
    enum err (*maintain)(struct store *store, int log_pages_max, struct error *e);
    /* Copies back what the log has by now. The one call that may run beside the others,
     * on a thread of its own: it takes long, and batches go on meanwhile; maintain() then
     * has little left to copy. */
    enum err (*copy_log)(struct store *store, struct error *e);
    /* Pages of the log after the last batch, copied back or not. */
    int (*log_pages)(const struct store *store);
    /* Drops all projections and makes them again from the (archived and live) journal. */
    enum err (*rebuild)(struct store *store, store_decode_fn *decode, void *arg, struct error *e);
    void (*free)(struct store *store);
};

struct store {
    const struct store_vtable *vtable;
    uint64_t epoch; /* as claimed; 0: not yet */
};

static inline void store_free(struct store *store)
{
    if (store != NULL)
        store->vtable->free(store);
}
DEFINE_CLEANUP(store, struct store *, store_free)

/* Packs and saves. */
static inline enum err store_save_snapshot(struct store *store, uint64_t sequence, struct str bytes,
                                           uint64_t keep_events, struct error *e)
{
    AUTO(buf) struct buf content = { 0 };
    struct store_packed packed;
    store->vtable->pack_snapshot(store, bytes, &content, &packed);
    return store->vtable->save_snapshot(store, sequence, &packed, keep_events, e);
}

/* Retention in days, by kind; 0: for ever. */
struct store_retention {
    int64_t journal_days;  /* archived segments: 0 */
    int64_t workload_days; /* ended workloads and their allocations: 365 */
    int64_t usage_days;    /* 0: bills can always be recomputed */
    int64_t audit_days;    /* 0 */
};

/* Makes a new empty store; ERR_CONFLICT when the file exists. */
enum err store_sqlite_create(const char *path, struct error *e) MUST_CHECK;
/* Opens an existing one, checks it and migrates it forwards. A missing (ERR_NOT_FOUND), short or
 * corrupt (ERR_CORRUPT) file is refused with a text that says what to do; it never starts empty. */
enum err store_sqlite_open(const char *path, const struct store_retention *retention,
                           struct store **out, struct error *e) MUST_CHECK;
/* A consistent copy while the store is in use (VACUUM INTO); ERR_CONFLICT when `to` exists. */
enum err store_sqlite_backup(const char *path, const char *to, struct error *e) MUST_CHECK;
/* Puts a backup in place of a missing store and raises its epoch, so that agents refuse
 * the old one. */
enum err store_sqlite_restore(const char *from, const char *path, uint64_t epoch_at_least,
                              struct error *e) MUST_CHECK;

/* Keeps everything until told otherwise. */
struct store *store_memory_new(void); /* for tests */
void store_memory_retain(struct store *store,
                         const struct store_retention *retention); /* for tests */

#endif
