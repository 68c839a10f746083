#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "store/migrate.h"
#include "store/page_vfs.h"
#include "store/sqlite_files.h"
#include "store/sqlite_store.h"

static bool has_log(const char *path)
{
    AUTO(buf) struct buf log = { 0 };
    struct stat found;
    buf_format(&log, "%s-wal", path);
    return stat(log.data, &found) == 0 && found.st_size > 0;
}

/* SQLite would make a missing file and accept an empty one; a store never starts empty by
 * itself. */
enum err store_file_check(const char *path, struct error *e)
{
    struct stat found;
    if (stat(path, &found) != 0) {
        if (errno == ENOENT)
            return err_set(e, ERR_NOT_FOUND,
                           "%s does not exist: restore a backup with berthd restore, or make a new "
                           "store with berthd init",
                           path);
        return err_errno(e, "%s", path);
    }
    if (!S_ISREG(found.st_mode))
        return err_set(e, ERR_INVALID, "%s is not a file", path);
    /* With a log beside it half a page may stand at the end: a copy back that was interrupted. */
    bool is_cut =
        found.st_size < SQL_PAGE_BYTES || (found.st_size % SQL_PAGE_BYTES != 0 && !has_log(path));
    if (is_cut)
        return err_set(e, ERR_CORRUPT,
                       "%s has %lld bytes, not a whole number of pages: it was cut; restore a "
                       "backup with berthd restore",
                       path, (long long)found.st_size);
    return ERR_OK;
}

enum err store_identity_check(struct sql *sql, struct error *e)
{
    int64_t application = 0;
    enum err rc = sql_read_int(sql, "PRAGMA application_id", &application, e);
    if (rc != ERR_OK)
        return rc;
    if (application != STORE_APPLICATION_ID)
        return err_set(e, ERR_CORRUPT, "%s is an SQLite database but not a Berth store", sql->path);
    if (!page_vfs_is_reserved(sql->db))
        return err_set(e, ERR_CORRUPT, "%s: its header is damaged", sql->path);
    return ERR_OK;
}

static int count_log_pages(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct sqlite_store *store = arg;
    (void)db;
    (void)name;
    store->log_pages = pages;
    return SQLITE_OK;
}

/* The last row of the journal is the one the head names. */
static enum err check_tail(struct sqlite_store *store, const struct store_head *head,
                           struct error *e)
{
    uint64_t check = 0;
    enum err rc = journal_check_of(&store->sql, head, head->sequence, &check, e);
    if (rc == ERR_OK && check != head->check)
        rc = err_set(e, ERR_CORRUPT, "event %" PRIu64 " is not the one that was stored last",
                     head->sequence);
    return rc == ERR_OK ? rc : err_wrap(e, rc, "%s", store->sql.path);
}

static enum err check_journal(struct sqlite_store *store, struct error *e)
{
    struct store_head head;
    enum err rc = head_read(&store->sql, &head, e);
    if (rc == ERR_OK)
        rc = store_mark_check(&store->lock, store->sql.path, &head.key, head.sequence, e);
    if (rc == ERR_OK)
        rc = check_tail(store, &head, e);
    if (rc != ERR_OK)
        return rc;
    store->key = head.key;
    store->sequence = head.sequence;
    return ERR_OK;
}

static enum err set_up(struct sqlite_store *store, const char *path, struct error *e)
{
    enum err rc = store_lock_take(path, &store->lock, e);
    if (rc == ERR_OK)
        rc = sql_open(&store->sql, path, SQL_WRITE, e);
    if (rc == ERR_OK)
        rc = store_identity_check(&store->sql, e);
    if (rc == ERR_OK)
        rc = sql_exec(&store->sql, "PRAGMA journal_mode = WAL", e);
    struct migration_list list = store_migration_list();
    if (rc == ERR_OK)
        rc = migrate(&store->sql, &list, e);
    if (rc != ERR_OK)
        return rc;
    sql_use(&store->sql, store_statements, ST_COUNT);
    (void)sqlite3_wal_hook(store->sql.db, count_log_pages, store); /* gives the hook before */
    return check_journal(store, e);
}

enum err store_sqlite_open(const char *path, const struct store_retention *retention,
                           struct store **out, struct error *e)
{
    enum err rc = store_file_check(path, e);
    if (rc != ERR_OK)
        return rc;
    struct sqlite_store *store = mem_new(1, sizeof(*store));
    store->base.vtable = &sqlite_vtable;
    store->lock = STORE_LOCK_NONE;
    if (retention != NULL)
        store->retention = *retention;
    rc = set_up(store, path, e);
    if (rc != ERR_OK) {
        store_free(&store->base);
        return rc;
    }
    *out = &store->base;
    return ERR_OK;
}
