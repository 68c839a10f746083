/*
 * sqlite_trim.c - archiving and retention in small steps, each a transaction of its own, so that a
 * clean-up never holds up a batch for long. The journal's older rows move into deflated segments in
 * the same file: the move is atomic, one backup has all of it, and the pages it frees are
 * used again.
 */
#include <inttypes.h>

#include "store/deflate.h"
#include "store/lz.h"
#include "store/sqlite_store.h"

#define DAY_NS (INT64_C(86400) * NS_PER_S)

/* ---- archiving: one segment a step ----------------------------------------------------------- */

struct archiving {
    struct sql *sql;
    struct journal_walk walk; /* over what is collected */
    uint64_t end;             /* first sequence of the last part that was taken */
    struct journal_part segment;
    struct buf rows; /* of one part */
};

static enum err take_rows(struct archiving *a, struct str rows, struct error *e)
{
    enum err rc = ERR_OK;
    while (rc == ERR_OK && rows.size != 0) {
        struct store_row row;
        uint64_t check = 0;
        if (!journal_decode_checked(&rows, &row, &check))
            return err_set(e, ERR_CORRUPT, "the journal is damaged after event %" PRIu64,
                           a->walk.sequence);
        rc = journal_step(&a->walk, &row, check, e);
        if (rc == ERR_OK)
            rc = keep_record(a->sql, &row, e);
        if (rc == ERR_OK)
            journal_part_add(&a->segment, &a->walk.key, &row);
    }
    return rc;
}

/* Whole parts up to `to`, as many as fit a segment and one at least. */
static enum err collect(struct archiving *a, uint64_t to, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(a->sql, ST_PARTS_AFTER);
    sql_u64(&call, a->walk.sequence);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        uint64_t first = sql_get_u64(&call);
        uint64_t last = sql_get_u64(&call);
        (void)sql_get_u64(&call); /* previous_check */
        uint64_t raw_size = sql_get_u64(&call);
        bool fits = a->segment.count + (last - first + 1) <= SEGMENT_ROWS &&
                    a->segment.rows.size + raw_size <= SEGMENT_BYTES;
        if (last > to || (a->segment.count != 0 && !fits))
            break;
        rc = lz_unpack(sql_get_blob(&call), raw_size, &a->rows, e);
        if (rc == ERR_OK)
            rc = take_rows(a, buf_str(&a->rows), e);
        a->end = first;
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

static void pack_small(struct str raw, struct buf *out)
{
    deflate_bytes(raw, DEFLATE_SMALL, out);
}

static enum err move_parts(struct archiving *a, struct error *e)
{
    struct sql_call call = sql_get(a->sql, ST_SEGMENT_ADD);
    enum err rc = journal_part_write(&a->segment, pack_small, &call, e);
    if (rc != ERR_OK)
        return rc;
    call = sql_get(a->sql, ST_PARTS_REMOVE);
    sql_u64(&call, a->end);
    return sql_run(&call, e);
}

static enum err step_archive(struct sqlite_store *store, struct wall now, bool *did,
                             struct error *e)
{
    (void)now;
    struct store_head head;
    uint64_t first = 0;
    uint64_t previous_check = 0;
    enum err rc = head_read(&store->sql, &head, e);
    if (rc == ERR_OK)
        rc = journal_first_live(&store->sql, &first, &previous_check, e);
    if (rc != ERR_OK || first == 0 || first + SEGMENT_ROWS - 1 > head.archive_to)
        return rc;
    struct archiving a = { .sql = &store->sql };
    a.walk = (struct journal_walk){ store->key, first - 1, previous_check, { 0 } };
    journal_part_begin(&a.segment, previous_check);
    rc = collect(&a, head.archive_to, e);
    *did = rc == ERR_OK && a.segment.count != 0;
    if (*did)
        rc = move_parts(&a, e);
    journal_walk_done(&a.walk);
    journal_part_done(&a.segment);
    buf_done(&a.rows);
    return rc;
}

/* ---- retention ------------------------------------------------------------------------------- */

/* Runs a DELETE with the bounds (?1 time, ?2 rows); tells whether it removed anything. */
static enum err remove_before(struct sqlite_store *store, enum statement statement,
                              struct wall before, bool *did, struct error *e)
{
    struct sql_call call = sql_get(&store->sql, statement);
    sql_int(&call, before.ns);
    sql_int(&call, TRIM_ROWS);
    enum err rc = sql_run(&call, e);
    if (rc == ERR_OK && sqlite3_changes(store->sql.db) > 0)
        *did = true;
    return rc;
}

static struct wall days_before(struct wall now, int64_t days)
{
    return (struct wall){ now.ns - days * DAY_NS };
}

static enum err step_answers(struct sqlite_store *store, struct wall now, bool *did,
                             struct error *e)
{
    return remove_before(store, ST_ANSWERS_TRIM, now, did, e);
}

static enum err step_workloads(struct sqlite_store *store, struct wall now, bool *did,
                               struct error *e)
{
    static const enum statement statements[] = { ST_TRIM_ALLOCATIONS, ST_TRIM_RECORDS,
                                                 ST_TRIM_WORKLOADS };
    enum err rc = ERR_OK;
    if (store->retention.workload_days == 0)
        return ERR_OK;
    struct wall before = days_before(now, store->retention.workload_days);
    for (size_t i = 0; rc == ERR_OK && i < COUNT_OF(statements); i++)
        rc = remove_before(store, statements[i], before, did, e);
    return rc;
}

static enum err step_usage(struct sqlite_store *store, struct wall now, bool *did, struct error *e)
{
    if (store->retention.usage_days == 0)
        return ERR_OK;
    return remove_before(store, ST_TRIM_USAGE, days_before(now, store->retention.usage_days), did,
                         e);
}

static enum err step_audit(struct sqlite_store *store, struct wall now, bool *did, struct error *e)
{
    if (store->retention.audit_days == 0)
        return ERR_OK;
    return remove_before(store, ST_TRIM_AUDIT, days_before(now, store->retention.audit_days), did,
                         e);
}

static enum err oldest_snapshot(struct sqlite_store *store, uint64_t *out, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&store->sql, ST_SNAPSHOT_OLDEST);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc == ERR_OK)
        *out = has_row ? sql_get_u64(&call) : 0;
    return rc;
}

static enum err drop_segment(struct sqlite_store *store, uint64_t last, uint64_t check,
                             struct error *e)
{
    struct sql_call call = sql_get(&store->sql, ST_SEGMENT_REMOVE);
    sql_u64(&call, last);
    enum err rc = sql_run(&call, e);
    if (rc != ERR_OK)
        return rc;
    call = sql_get(&store->sql, ST_HEAD_DROP);
    sql_u64(&call, last);
    sql_u64(&call, check);
    return sql_run(&call, e);
}

/* The oldest archived segment, when it is older than asked for and no snapshot needs it. */
static enum err step_journal(struct sqlite_store *store, struct wall now, bool *did,
                             struct error *e)
{
    if (store->retention.journal_days == 0)
        return ERR_OK;
    uint64_t needed_after = 0;
    enum err rc = oldest_snapshot(store, &needed_after, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(sql_call) struct sql_call call = sql_get(&store->sql, ST_SEGMENT_OLDEST);
    bool has_row = false;
    rc = sql_next(&call, &has_row, e);
    if (rc != ERR_OK || !has_row)
        return rc;
    uint64_t last = sql_get_u64(&call);
    uint64_t check = sql_get_u64(&call);
    int64_t wall_ns = sql_get_int(&call);
    sql_end(&call);
    if (last > needed_after || wall_ns >= days_before(now, store->retention.journal_days).ns)
        return ERR_OK;
    rc = drop_segment(store, last, check, e);
    *did = rc == ERR_OK;
    return rc;
}

/* ---- one step -------------------------------------------------------------------------------- */

typedef enum err trim_step(struct sqlite_store *store, struct wall now, bool *did, struct error *e);

enum err sqlite_trim(struct store *base, struct wall now, bool *more, struct error *e)
{
    static trim_step *const steps[] = { step_archive, step_answers, step_workloads,
                                        step_usage,   step_audit,   step_journal };
    struct sqlite_store *store = sqlite_of(base);
    *more = false;
    for (size_t i = 0; i < COUNT_OF(steps) && !*more; i++) {
        enum err rc = sqlite_begin(store, e);
        if (rc != ERR_OK)
            return rc;
        bool did = false;
        rc = sqlite_end(store, steps[i](store, now, &did, e), e);
        if (rc != ERR_OK)
            return rc;
        *more = did;
    }
    return ERR_OK;
}
