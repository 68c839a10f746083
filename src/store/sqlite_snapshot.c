#include <inttypes.h>

#include "store/deflate.h"
#include "store/sqlite_store.h"

enum err sqlite_load_snapshot(struct store *base, uint64_t *sequence, struct buf *bytes,
                              struct error *e)
{
    struct sqlite_store *store = sqlite_of(base);
    AUTO(sql_call) struct sql_call call = sql_get(&store->sql, ST_SNAPSHOT_NEWEST);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc != ERR_OK)
        return rc;
    if (!has_row)
        return err_set(e, ERR_NOT_FOUND, "no snapshot was ever taken");

    uint64_t at = sql_get_u64(&call);
    uint64_t raw_size = sql_get_u64(&call);
    uint64_t check = sql_get_u64(&call);
    AUTO(buf) struct buf raw = { 0 };
    rc = inflate_bytes(sql_get_blob(&call), raw_size, &raw, e);
    if (rc == ERR_OK && siphash(store->key.bytes, raw.data, raw.size) != check)
        rc = err_set(e, ERR_CORRUPT, "its bytes are not what was written");
    if (rc != ERR_OK)
        return err_wrap(e, rc, "snapshot %" PRIu64, at);
    *sequence = at;
    buf_clear(bytes);
    buf_add_str(bytes, buf_str(&raw));
    return ERR_OK;
}

void sqlite_pack_snapshot(const struct store *base, struct str bytes, struct buf *content,
                          struct store_packed *out)
{
    const struct sqlite_store *store = (const struct sqlite_store *)(const void *)base;
    deflate_bytes(bytes, DEFLATE_FAST, content);
    *out = (struct store_packed){
        .raw_bytes = bytes.size,
        .check = siphash(store->key.bytes, bytes.data, bytes.size),
        .content = buf_str(content),
    };
}

static enum err add_snapshot(struct sqlite_store *store, uint64_t sequence,
                             const struct store_packed *snapshot, struct error *e)
{
    struct sql_call call = sql_get(&store->sql, ST_SNAPSHOT_ADD);
    sql_u64(&call, sequence);
    sql_u64(&call, snapshot->raw_bytes);
    sql_u64(&call, snapshot->check);
    sql_blob(&call, snapshot->content.data, snapshot->content.size);
    return sql_run(&call, e);
}

/* The sequence of the n-th newest snapshot, 0 being the newest; 0 when there are fewer. */
static enum err nth_snapshot(struct sqlite_store *store, int64_t n, uint64_t *sequence,
                             struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&store->sql, ST_SNAPSHOT_NTH);
    sql_int(&call, n);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc == ERR_OK)
        *sequence = has_row ? sql_get_u64(&call) : 0;
    return rc;
}

static enum err set_number(struct sqlite_store *store, enum statement statement, uint64_t value,
                           struct error *e)
{
    struct sql_call call = sql_get(&store->sql, statement);
    sql_u64(&call, value);
    return sql_run(&call, e);
}

/* What is behind the snapshot before the last one, and not wanted by feeds, may be archived. */
static enum err after_snapshot(struct sqlite_store *store, const struct store_head *head,
                               uint64_t keep_events, struct error *e)
{
    uint64_t oldest = 0;
    uint64_t behind = 0;
    enum err rc = nth_snapshot(store, SNAPSHOTS_KEPT - 1, &oldest, e);
    if (rc == ERR_OK)
        rc = nth_snapshot(store, 1, &behind, e);
    if (rc == ERR_OK)
        rc = set_number(store, ST_SNAPSHOTS_REMOVE, oldest, e);
    uint64_t not_kept = head->sequence - MIN_OF(head->sequence, keep_events);
    if (rc == ERR_OK)
        rc = set_number(store, ST_ARCHIVE_TO, MIN_OF(behind, not_kept), e);
    return rc;
}

static enum err write_snapshot(struct sqlite_store *store, uint64_t sequence,
                               const struct store_packed *snapshot, uint64_t keep_events,
                               struct error *e)
{
    struct store_head head;
    enum err rc = head_read(&store->sql, &head, e);
    if (rc != ERR_OK)
        return rc;
    if (head.epoch != store->base.epoch)
        return err_set(e, ERR_CONFLICT, "epoch %" PRIu64 " no longer leads", store->base.epoch);
    if (sequence > head.sequence || sequence == 0)
        return err_set(e, ERR_INVALID,
                       "a snapshot at %" PRIu64 " of a journal that ends at %" PRIu64, sequence,
                       head.sequence);
    rc = add_snapshot(store, sequence, snapshot, e);
    return rc == ERR_OK ? after_snapshot(store, &head, keep_events, e) : rc;
}

enum err sqlite_save_snapshot(struct store *base, uint64_t sequence,
                              const struct store_packed *snapshot, uint64_t keep_events,
                              struct error *e)
{
    struct sqlite_store *store = sqlite_of(base);
    enum err rc = sqlite_begin(store, e);
    if (rc != ERR_OK)
        return rc;
    return sqlite_end(store, write_snapshot(store, sequence, snapshot, keep_events, e), e);
}
