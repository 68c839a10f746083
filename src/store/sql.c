#include "store/sql.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "store/page_vfs.h"

/*
 * FULL makes every commit wait for the disk. The log is copied back into the file by
 * maintain() only, never in the middle of a batch. Temporary tables stay in memory: a full
 * disk must not break a sort.
 */
static const char open_pragmas[] = "PRAGMA synchronous = FULL;"
                                   "PRAGMA wal_autocheckpoint = 0;"
                                   "PRAGMA foreign_keys = OFF;"
                                   "PRAGMA temp_store = MEMORY;"
                                   "PRAGMA journal_size_limit = 67108864;"
                                   "PRAGMA trusted_schema = OFF;"
                                   "PRAGMA cell_size_check = ON;";

/* In KiB. A batch of the writer fits; lists are short, and there are several who read them. */
static const int cache_kib[] = {
    [SQL_CREATE] = 2048,
    [SQL_WRITE] = 16384,
    [SQL_READ_ONLY] = 2048,
};

static const int open_flags[] = {
    [SQL_CREATE] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
    [SQL_WRITE] = SQLITE_OPEN_READWRITE,
    [SQL_READ_ONLY] = SQLITE_OPEN_READONLY,
};

enum err sql_open(struct sql *sql, const char *path, enum sql_mode mode, struct error *e)
{
    assert(sql->db == NULL);
    enum err rc = page_vfs_register(e);
    if (rc != ERR_OK)
        return rc;
    sql->path = mem_strdup(path);
    int flags = open_flags[mode] | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(path, &sql->db, flags, PAGE_VFS_NAME) != SQLITE_OK)
        rc = sql_fail(sql, e, "open");
    if (rc == ERR_OK && mode == SQL_CREATE)
        rc = page_vfs_reserve(sql->db, e);
    if (rc == ERR_OK) {
        (void)sqlite3_busy_timeout(sql->db, SQL_BUSY_MS); /* fails for no valid connection */
        (void)sqlite3_db_config(sql->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        char cache[64];
        (void)snprintf(cache, sizeof(cache), "PRAGMA cache_size = -%d", cache_kib[mode]);
        rc = sql_exec(sql, open_pragmas, e);
        if (rc == ERR_OK)
            rc = sql_exec(sql, cache, e);
    }
    if (rc != ERR_OK)
        sql_close(sql);
    return rc;
}

void sql_use(struct sql *sql, const char *const *texts, size_t count)
{
    assert(sql->statements == NULL);
    sql->texts = texts;
    sql->count = count;
    sql->statements = mem_new(count, sizeof(*sql->statements));
    sql->ids = mem_new(count, sizeof(*sql->ids));
}

void sql_use_end(struct sql *sql)
{
    for (size_t i = 0; i < sql->count; i++) {
        (void)sqlite3_finalize(sql->statements[i]); /* repeats the error of the last step */
        mem_free(sql->ids[i]);
    }
    mem_free(sql->statements);
    mem_free(sql->ids);
    sql->statements = NULL;
    sql->ids = NULL;
    sql->count = 0;
}

void sql_close(struct sql *sql)
{
    sql_use_end(sql);
    (void)sqlite3_close_v2(sql->db); /* what was committed stays so, whatever it says */
    mem_free((char *)(uintptr_t)sql->path);
    *sql = (struct sql){ 0 };
}

static enum err sql_code(int rc)
{
    if (rc == SQLITE_IOERR_DATA || rc == SQLITE_IOERR_CORRUPTFS)
        return ERR_CORRUPT;
    switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_UNAVAILABLE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return ERR_CORRUPT;
    case SQLITE_CONSTRAINT:
        return ERR_CONFLICT;
    case SQLITE_TOOBIG:
        return ERR_LIMIT;
    default:
        return ERR_IO;
    }
}

static const char *sql_advice(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return ": the disk is full, free some space";
    case SQLITE_BUSY:
        return ": another process holds the file";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ": the file is damaged or not a store; restore a backup with berthd restore";
    default:
        return "";
    }
}

enum err sql_fail(const struct sql *sql, struct error *e, const char *doing)
{
    int rc = sqlite3_extended_errcode(sql->db);
    int64_t page = page_vfs_bad_page(sql->db);
    if (rc == SQLITE_IOERR_DATA && page > 0)
        return err_set(e, ERR_CORRUPT,
                       "%s: %s: page %lld (byte %lld) is not what was written; check the disk and "
                       "restore a backup with berthd restore",
                       sql->path, doing, (long long)page, (long long)(page - 1) * SQL_PAGE_BYTES);
    return err_set(e, sql_code(rc), "%s: %s: %s%s", sql->path, doing,
                   sql->db != NULL ? sqlite3_errmsg(sql->db) : "out of memory", sql_advice(rc));
}

enum err sql_exec(struct sql *sql, const char *text, struct error *e)
{
    if (sqlite3_exec(sql->db, text, NULL, NULL, NULL) != SQLITE_OK)
        return sql_fail(sql, e, "set up");
    return ERR_OK;
}

enum err sql_read_int(struct sql *sql, const char *text, int64_t *out, struct error *e)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(sql->db, text, -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    enum err result = ERR_OK;
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    else if (rc == SQLITE_DONE)
        result = err_set(e, ERR_CORRUPT, "%s: \"%s\" gives nothing", sql->path, text);
    else
        result = sql_fail(sql, e, "read");
    (void)sqlite3_finalize(statement);
    return result;
}

enum err sql_begin(struct sql *sql, struct error *e)
{
    if (sqlite3_exec(sql->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return sql_fail(sql, e, "begin");
    return ERR_OK;
}

enum err sql_commit(struct sql *sql, struct error *e)
{
    if (sqlite3_exec(sql->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        return sql_fail(sql, e, "commit");
    return ERR_OK;
}

void sql_rollback(struct sql *sql)
{
    if (sqlite3_get_autocommit(sql->db) == 0)
        (void)sqlite3_exec(sql->db, "ROLLBACK", NULL, NULL,
                           NULL); /* nothing was written that counts */
}

struct sql_call sql_get(struct sql *sql, size_t number)
{
    assert(number < sql->count);
    sqlite3_stmt **slot = &sql->statements[number];
    struct sql_call call = { .sql = sql };
    if (*slot == NULL && sqlite3_prepare_v3(sql->db, sql->texts[number], -1,
                                            SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK)
        call.failed = true;
    if (*slot != NULL && sql->ids[number] == NULL)
        sql->ids[number] =
            mem_new((size_t)sqlite3_bind_parameter_count(*slot) + 1, sizeof(*sql->ids[number]));
    call.statement = *slot;
    call.ids = sql->ids[number];
    return call;
}

static void sql_bound(struct sql_call *call, int rc)
{
    if (rc != SQLITE_OK)
        call->failed = true;
}

void sql_int(struct sql_call *call, int64_t value)
{
    if (!call->failed)
        sql_bound(call, sqlite3_bind_int64(call->statement, ++call->argument, value));
}

void sql_u64(struct sql_call *call, uint64_t value)
{
    int64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    sql_int(call, bits);
}

void sql_text(struct sql_call *call, struct str text)
{
    if (call->failed)
        return;
    const char *data = text.size != 0 ? text.data : "";
    sql_bound(call, sqlite3_bind_text64(call->statement, ++call->argument, data, text.size,
                                        SQLITE_STATIC, SQLITE_UTF8));
}

void sql_name(struct sql_call *call, const char *text)
{
    sql_text(call, str_of(text));
}

void sql_blob(struct sql_call *call, const void *bytes, size_t size)
{
    if (call->failed)
        return;
    const void *data = size != 0 ? bytes : "";
    sql_bound(call,
              sqlite3_bind_blob64(call->statement, ++call->argument, data, size, SQLITE_STATIC));
}

void sql_id(struct sql_call *call, struct id id)
{
    if (call->failed)
        return;
    uint8_t *bytes = call->ids[call->argument++];
    if (id_is_none(id)) {
        sql_bound(call, sqlite3_bind_null(call->statement, call->argument));
        return;
    }
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(id.hi >> (56 - 8 * i));
        bytes[8 + i] = (uint8_t)(id.lo >> (56 - 8 * i));
    }
    sql_bound(call, sqlite3_bind_blob(call->statement, call->argument, bytes, 16, SQLITE_STATIC));
}

void sql_digest(struct sql_call *call, const struct digest *digest)
{
    sql_blob(call, digest->bytes, sizeof(digest->bytes));
}

void sql_exit(struct sql_call *call, const struct exit_status *exit)
{
    sql_int(call, exit->is_known);
    sql_int(call, exit->code);
    sql_int(call, exit->signal);
    sql_int(call, exit->is_oom);
}

enum err sql_run(struct sql_call *call, struct error *e)
{
    bool has_row = false;
    enum err rc = sql_next(call, &has_row, e);
    sql_end(call);
    return rc;
}

enum err sql_next(struct sql_call *call, bool *has_row, struct error *e)
{
    int rc = call->failed ? SQLITE_ERROR : sqlite3_step(call->statement);
    call->column = 0;
    *has_row = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW)
        return ERR_OK;
    enum err result = rc == SQLITE_DONE ? ERR_OK : sql_fail(call->sql, e, "statement");
    sql_end(call);
    return result;
}

void sql_end(struct sql_call *call)
{
    if (call->statement != NULL)
        (void)sqlite3_reset(call->statement); /* repeats the error of the last step */
    call->statement = NULL;
    call->failed = true;
}

int64_t sql_get_int(struct sql_call *call)
{
    return sqlite3_column_int64(call->statement, call->column++);
}

uint64_t sql_get_u64(struct sql_call *call)
{
    int64_t bits = sql_get_int(call);
    uint64_t value = 0;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

struct str sql_get_text(struct sql_call *call)
{
    const unsigned char *text = sqlite3_column_text(call->statement, call->column);
    int size = sqlite3_column_bytes(call->statement, call->column++);
    return (struct str){ (const char *)text, (size_t)size };
}

struct str sql_get_blob(struct sql_call *call)
{
    const void *bytes = sqlite3_column_blob(call->statement, call->column);
    int size = sqlite3_column_bytes(call->statement, call->column++);
    return (struct str){ bytes, (size_t)size };
}

struct id sql_get_id(struct sql_call *call)
{
    struct str bytes = sql_get_blob(call);
    struct id id = { 0 };
    if (bytes.size != 16)
        return id;
    for (unsigned i = 0; i < 8; i++) {
        id.hi = id.hi << 8 | (uint8_t)bytes.data[i];
        id.lo = id.lo << 8 | (uint8_t)bytes.data[8 + i];
    }
    return id;
}

void sql_get_digest(struct sql_call *call, struct digest *out)
{
    struct str bytes = sql_get_blob(call);
    *out = (struct digest){ 0 };
    if (bytes.size == sizeof(out->bytes))
        memcpy(out->bytes, bytes.data, sizeof(out->bytes));
}

struct exit_status sql_get_exit(struct sql_call *call)
{
    struct exit_status exit = { 0 };
    exit.is_known = sql_get_int(call) != 0;
    exit.code = sql_get_int(call);
    exit.signal = sql_get_int(call);
    exit.is_oom = sql_get_int(call) != 0;
    return exit;
}

unsigned sql_get_enum(struct sql_call *call, const struct enum_names *names)
{
    unsigned value = 0;
    return enum_parse(names, sql_get_text(call), &value) ? value : 0;
}
