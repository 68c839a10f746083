/*
 * sqlite.c - the embedded store: one file in WAL mode, every commit forced to disk, one writer.
 *
 * What happens when the disk fails follows from where it fails. Before the commit record is
 * whole in the log nothing has happened: SQLite rolls back, and a full disk is ERR_UNAVAILABLE.
 * Once COMMIT has met any other error the outcome is unknown (fsync may fail with the data on
 * disk or not, and asking again is known to lie): the store writes nothing any more and says
 * ERR_IO until it is opened anew.
 */
#include <inttypes.h>
#include <string.h>

#include "store/sqlite_store.h"

enum err head_read(struct sql *sql, struct store_head *out, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(sql, ST_HEAD_READ);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc != ERR_OK)
        return rc;
    if (!has_row)
        return err_set(e, ERR_CORRUPT, "%s has lost its head row", sql->path);
    struct str key = sql_get_blob(&call);
    *out = (struct store_head){ 0 };
    if (key.size == sizeof(out->key.bytes))
        memcpy(out->key.bytes, key.data, key.size);
    out->epoch = sql_get_u64(&call);
    out->sequence = sql_get_u64(&call);
    out->check = sql_get_u64(&call);
    out->dropped_sequence = sql_get_u64(&call);
    out->dropped_check = sql_get_u64(&call);
    out->archive_to = sql_get_u64(&call);
    return ERR_OK;
}

enum err sqlite_begin(struct sqlite_store *store, struct error *e)
{
    if (store->is_poisoned)
        return err_set(
            e, ERR_IO,
            "%s: the outcome of an earlier commit is unknown; start the controller again",
            store->sql.path);
    return sql_begin(&store->sql, e);
}

/* Whatever is not plainly "nothing happened" could be anything. */
static enum err poison(struct sqlite_store *store, enum err rc, struct error *e)
{
    store->is_poisoned = true;
    (void)sqlite3_db_config(store->sql.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return rc == ERR_CORRUPT ? rc : err_wrap(e, ERR_IO, "outcome unknown");
}

enum err sqlite_end(struct sqlite_store *store, enum err rc, struct error *e)
{
    if (rc != ERR_OK) {
        sql_rollback(&store->sql);
        return rc == ERR_IO ? poison(store, rc, e) : rc;
    }
    rc = sql_commit(&store->sql, e);
    if (rc == ERR_OK)
        return ERR_OK;
    sql_rollback(&store->sql);
    return rc == ERR_UNAVAILABLE ? rc : poison(store, rc, e);
}

static enum err raise_epoch(struct sqlite_store *store, uint64_t at_least, uint64_t *epoch,
                            struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&store->sql, ST_EPOCH_RAISE);
    sql_u64(&call, at_least);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc != ERR_OK)
        return rc;
    if (!has_row)
        return err_set(e, ERR_CORRUPT, "%s has lost its head row", store->sql.path);
    *epoch = sql_get_u64(&call);
    return sql_next(&call, &has_row, e);
}

static enum err sqlite_claim(struct store *base, uint64_t at_least, uint64_t *epoch,
                             struct error *e)
{
    struct sqlite_store *store = sqlite_of(base);
    uint64_t claimed = 0;
    enum err rc = sqlite_begin(store, e);
    if (rc != ERR_OK)
        return rc;
    rc = sqlite_end(store, raise_epoch(store, at_least, &claimed, e), e);
    if (rc != ERR_OK)
        return rc;
    base->epoch = claimed;
    *epoch = claimed;
    return ERR_OK;
}

/* Passive: takes what no reader holds, waits for nobody. Readers that stay only delay it. */
static enum err sqlite_maintain(struct store *base, int log_pages_max, struct error *e)
{
    struct sqlite_store *store = sqlite_of(base);
    if (store->is_poisoned || store->log_pages < log_pages_max)
        return ERR_OK;
    int rc =
        sqlite3_wal_checkpoint_v2(store->sql.db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc == SQLITE_OK || rc == SQLITE_BUSY) {
        store->log_pages = 0; /* the next commit says how long it still is */
        return ERR_OK;
    }
    return sql_fail(&store->sql, e, "checkpoint");
}

/* A connection of its own: SQLite lets one copy while another writes, and the log begins anew when
 * all of it is copied. What a copy leaves half done, the next one does again. */
static enum err sqlite_copy_log(struct store *base, struct error *e)
{
    AUTO(sql) struct sql sql = { 0 };
    enum err rc = sql_open(&sql, sqlite_of(base)->sql.path, SQL_WRITE, e);
    if (rc != ERR_OK)
        return rc;
    (void)sqlite3_db_config(sql.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int result = sqlite3_wal_checkpoint_v2(sql.db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return result == SQLITE_OK || result == SQLITE_BUSY ? ERR_OK
                                                        : sql_fail(&sql, e, "copy the log back");
}

static int sqlite_log_pages(const struct store *base)
{
    return ((const struct sqlite_store *)(const void *)base)->log_pages;
}

static void sqlite_free(struct store *base)
{
    struct sqlite_store *store = sqlite_of(base);
    sql_close(&store->sql);
    store_lock_done(&store->lock);
    journal_part_done(&store->part);
    answer_pack_done(&store->answers);
    mem_free(store);
}

const struct store_vtable sqlite_vtable = {
    .name = "sqlite",
    .claim = sqlite_claim,
    .append = sqlite_append,
    .load_snapshot = sqlite_load_snapshot,
    .pack_snapshot = sqlite_pack_snapshot,
    .save_snapshot = sqlite_save_snapshot,
    .read_events = sqlite_read_events,
    .read_answers = sqlite_read_answers,
    .read_clock = sqlite_read_clock,
    .trim = sqlite_trim,
    .maintain = sqlite_maintain,
    .copy_log = sqlite_copy_log,
    .log_pages = sqlite_log_pages,
    .rebuild = sqlite_rebuild,
    .free = sqlite_free,
};
