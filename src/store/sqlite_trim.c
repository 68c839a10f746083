/*
 * sqlite_trim.c - archiving and retention in small steps, each a transaction of its own, so that a
 * clean-up never holds up a batch for long. The journal's older rows move into deflated segments in
 * the same file: the move is atomic, one backup has all of it, and the pages it frees are used again.
 */
#include <inttypes.h>

#include "store/deflate.h"
#include "store/sqlite_store.h"

#define DAY_NS (INT64_C(86400) * NS_PER_S)

/* ---- archiving: one segment a step ------------------------------------------------------------ */

struct segment_rows {
    struct journal_walk walk;
    uint64_t previous_check;
    uint64_t first;
    struct wall last_wall;
    struct buf rows;
};

/* Collects full segments only; a rest waits until it is one. */
static enum err collect(struct sqlite_store *store, uint64_t to, struct segment_rows *out,
                        struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&store->sql, ST_JOURNAL_AFTER);
    sql_u64(&call, out->walk.sequence);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    for (int count = 0; rc == ERR_OK && has_row && count < SEGMENT_ROWS; count++) {
        uint64_t check = 0;
        struct store_row row = journal_row_read(&call, &check);
        if (row.sequence > to || (count > 0 && out->rows.size + row.body.size > SEGMENT_BYTES))
            break;
        rc = journal_step(&out->walk, &row, check, e);
        if (rc != ERR_OK)
            return rc;
        journal_encode_checked(&out->rows, &row, check);
        out->last_wall = row.wall;
        rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

static enum err add_segment(struct sqlite_store *store, const struct segment_rows *segment,
                            struct error *e)
{
    AUTO(buf) struct buf packed = { 0 };
    deflate_bytes(buf_str(&segment->rows), DEFLATE_SMALL, &packed);
    struct sql_call call = sql_get(&store->sql, ST_SEGMENT_ADD);
    sql_u64(&call, segment->first);
    sql_u64(&call, segment->walk.sequence);
    sql_u64(&call, segment->previous_check);
    sql_u64(&call, segment->walk.check);
    sql_int(&call, segment->last_wall.ns);
    sql_u64(&call, segment->rows.size);
    sql_blob(&call, packed.data, packed.size);
    enum err rc = sql_run(&call, e);
    if (rc != ERR_OK)
        return rc;
    call = sql_get(&store->sql, ST_JOURNAL_REMOVE);
    sql_u64(&call, segment->walk.sequence);
    return sql_run(&call, e);
}

static enum err first_live(struct sqlite_store *store, uint64_t *out, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&store->sql, ST_JOURNAL_FIRST);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc == ERR_OK)
        *out = has_row ? sql_get_u64(&call) : 0; /* min() of nothing is NULL, read as 0 */
    return rc;
}

static enum err archive_one(struct sqlite_store *store, const struct store_head *head,
                            struct segment_rows *segment, struct error *e)
{
    segment->walk.key = store->key;
    segment->walk.sequence = segment->first - 1;
    enum err rc =
        journal_check_of(&store->sql, head, segment->walk.sequence, &segment->walk.check, e);
    if (rc != ERR_OK)
        return rc;
    segment->previous_check = segment->walk.check;
    rc = collect(store, head->archive_to, segment, e);
    return rc == ERR_OK && segment->rows.size != 0 ? add_segment(store, segment, e) : rc;
}

static enum err step_archive(struct sqlite_store *store, struct wall now, bool *did,
                             struct error *e)
{
    (void)now;
    struct store_head head;
    uint64_t first = 0;
    enum err rc = head_read(&store->sql, &head, e);
    if (rc == ERR_OK)
        rc = first_live(store, &first, e);
    if (rc != ERR_OK || first == 0 || first + SEGMENT_ROWS - 1 > head.archive_to)
        return rc;
    struct segment_rows segment = { .first = first };
    rc = archive_one(store, &head, &segment, e);
    *did = rc == ERR_OK;
    journal_walk_done(&segment.walk);
    buf_done(&segment.rows);
    return rc;
}

/* ---- retention -------------------------------------------------------------------------------- */

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

/* ---- one step --------------------------------------------------------------------------------- */

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
