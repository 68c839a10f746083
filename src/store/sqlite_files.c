/*
 * sqlite_files.c - making, copying and restoring store files. A new file is always written beside
 * its place, forced to disk, checked where it came from outside, and then given its name in one
 * step that never replaces anything: whoever pulls the plug finds either no store or a whole one.
 */
#include "store/sqlite_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/file.h"
#include "store/migrate.h"
#include "store/sqlite_store.h"

enum { STORE_FILE_MODE = 0600 };

static enum err refuse_existing(const char *path, struct error *e)
{
    if (access(path, F_OK) == 0)
        return err_set(e, ERR_CONFLICT, "%s exists; choose another name or move it away", path);
    return ERR_OK;
}

/* A log left over from a lost store would be played into the new file. */
static enum err refuse_leftovers(const char *path, struct error *e)
{
    static const char *const endings[] = { "-wal", "-journal" };
    enum err rc = refuse_existing(path, e);
    for (size_t i = 0; rc == ERR_OK && i < COUNT_OF(endings); i++) {
        AUTO(buf) struct buf name = { 0 };
        buf_format(&name, "%s%s", path, endings[i]);
        struct stat found;
        if (stat(name.data, &found) == 0 && found.st_size > 0)
            rc =
                err_set(e, ERR_CONFLICT,
                        "%s is left over from a store that is gone; move it away first", name.data);
    }
    return rc;
}

static enum err sync_file(const char *path, struct error *e)
{
    AUTO(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_errno(e, "open %s", path);
    if (fsync(fd) != 0)
        return err_errno(e, "fsync %s", path);
    return ERR_OK;
}

/* Takes a name for a file to be made beside `path`; what an interrupted run left there is
 * removed. */
static enum err take_temporary(const char *path, struct buf *out, struct error *e)
{
    buf_format(out, "%s.new", path);
    if (unlink(out->data) != 0 && errno != ENOENT)
        return err_errno(e, "remove %s", out->data);
    AUTO(fd)
    int fd = open(out->data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, STORE_FILE_MODE);
    if (fd < 0)
        return err_errno(e, "create %s", out->data);
    return ERR_OK;
}

static enum err place(const char *temporary, const char *path, struct error *e)
{
    enum err rc = sync_file(temporary, e);
    if (rc != ERR_OK)
        return rc;
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) != 0) {
        if (errno == EEXIST)
            return err_set(e, ERR_CONFLICT, "%s exists; choose another name or move it away", path);
        if (errno != EINVAL || link(temporary, path) != 0)
            return err_errno(e, "rename %s to %s", temporary, path);
        (void)unlink(temporary); /* a file system without the flag: two names for a moment */
    }
    return file_sync_parent(path, e);
}

/* ---- create ---------------------------------------------------------------------------------- */

static enum err fill_new(const char *path, struct error *e)
{
    AUTO(sql) struct sql sql = { 0 };
    enum err rc = sql_open(&sql, path, SQL_CREATE, e);
    if (rc != ERR_OK)
        return rc;
    struct migration_list list = store_migration_list();
    return migrate(&sql, &list, e);
}

enum err store_sqlite_create(const char *path, struct error *e)
{
    AUTO(store_lock) struct store_lock lock = STORE_LOCK_NONE;
    AUTO(buf) struct buf temporary = { 0 };
    enum err rc = store_lock_take(path, &lock, e);
    if (rc == ERR_OK)
        rc = refuse_leftovers(path, e);
    if (rc == ERR_OK)
        rc = take_temporary(path, &temporary, e);
    if (rc != ERR_OK)
        return rc;
    rc = fill_new(temporary.data, e);
    if (rc == ERR_OK)
        rc = place(temporary.data, path, e);
    if (rc != ERR_OK)
        (void)unlink(temporary.data); /* the failure before is what counts */
    return rc;
}

/* ---- backup ---------------------------------------------------------------------------------- */

static enum err vacuum_into(const char *path, const char *to, struct error *e)
{
    AUTO(sql) struct sql sql = { 0 };
    enum err rc = store_file_check(path, e);
    if (rc == ERR_OK)
        rc = sql_open(&sql, path, SQL_READ_ONLY, e);
    if (rc == ERR_OK)
        rc = store_identity_check(&sql, e);
    if (rc != ERR_OK)
        return rc;
    char *text = sqlite3_mprintf("VACUUM INTO %Q", to);
    int done = sqlite3_exec(sql.db, text, NULL, NULL, NULL);
    sqlite3_free(text);
    return done == SQLITE_OK ? ERR_OK : sql_fail(&sql, e, "copy");
}

enum err store_sqlite_backup(const char *path, const char *to, struct error *e)
{
    AUTO(buf) struct buf temporary = { 0 };
    enum err rc = refuse_existing(to, e);
    if (rc == ERR_OK)
        rc = take_temporary(to, &temporary, e);
    if (rc != ERR_OK)
        return rc;
    rc = vacuum_into(path, temporary.data, e);
    if (rc == ERR_OK)
        rc = place(temporary.data, to, e);
    if (rc != ERR_OK)
        (void)unlink(temporary.data); /* the failure before is what counts */
    return rc;
}

/* ---- restore --------------------------------------------------------------------------------- */

static enum err no_row(void *arg, const struct store_row *row, struct error *e)
{
    (void)arg;
    (void)row;
    (void)e;
    return ERR_OK; /* reading it has checked it */
}

static enum err check_pages(struct sql *sql, struct error *e)
{
    int64_t is_whole = 0;
    enum err rc = sql_read_int(
        sql, "SELECT integrity_check = 'ok' FROM pragma_integrity_check LIMIT 1", &is_whole, e);
    if (rc == ERR_OK && is_whole == 0)
        rc = err_set(e, ERR_CORRUPT, "its tables and indexes do not fit together");
    return rc;
}

/* Everything in the copy is read once: pages, rows, and the chain of the journal. */
static enum err check_whole(struct sql *sql, struct error *e)
{
    struct migration_list list = store_migration_list();
    enum err rc = store_identity_check(sql, e);
    if (rc == ERR_OK)
        rc = migrate(sql, &list, e);
    if (rc == ERR_OK)
        rc = check_pages(sql, e);
    if (rc != ERR_OK)
        return rc;
    sql_use(sql, store_statements, ST_COUNT);
    struct store_head head;
    rc = head_read(sql, &head, e);
    return rc == ERR_OK ? journal_read_after(sql, head.dropped_sequence, no_row, NULL, e) : rc;
}

static enum err raise_epoch(struct sql *sql, uint64_t at_least, struct error *e)
{
    struct sql_call call = sql_get(sql, ST_EPOCH_RAISE);
    sql_u64(&call, at_least);
    return sql_run(&call, e);
}

static enum err prepare_copy(const char *path, uint64_t epoch_at_least, struct error *e)
{
    AUTO(sql) struct sql sql = { 0 };
    enum err rc = sql_open(&sql, path, SQL_WRITE, e);
    if (rc == ERR_OK)
        rc = check_whole(&sql, e);
    if (rc == ERR_OK)
        rc = raise_epoch(&sql, epoch_at_least, e);
    return rc;
}

enum err store_sqlite_restore(const char *from, const char *path, uint64_t epoch_at_least,
                              struct error *e)
{
    AUTO(store_lock) struct store_lock lock = STORE_LOCK_NONE;
    AUTO(buf) struct buf temporary = { 0 };
    enum err rc = store_lock_take(path, &lock, e);
    if (rc == ERR_OK)
        rc = refuse_leftovers(path, e);
    if (rc == ERR_OK)
        rc = take_temporary(path, &temporary, e);
    if (rc != ERR_OK)
        return rc;
    rc = vacuum_into(from, temporary.data, e);
    if (rc == ERR_OK)
        rc = prepare_copy(temporary.data, epoch_at_least, e);
    if (rc == ERR_OK)
        rc = store_mark_clear(&lock, path, e);
    if (rc == ERR_OK)
        rc = place(temporary.data, path, e);
    if (rc != ERR_OK)
        (void)unlink(temporary.data); /* the failure before is what counts */
    return rc;
}
