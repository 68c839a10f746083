#include "store/migrate.h"

#include <stdio.h>
#include <string.h>

static const char migrations_table[] = "CREATE TABLE IF NOT EXISTS migrations ("
                                       "number INTEGER PRIMARY KEY, "
                                       "name TEXT NOT NULL, "
                                       "checksum TEXT NOT NULL) STRICT";

enum { CHECKSUM_TEXT = 17 };

static void migration_checksum(const struct migration *m, char out[CHECKSUM_TEXT])
{
    static const uint8_t key[16] = "berth migration";
    (void)snprintf(out, CHECKSUM_TEXT, "%016llx",
                   (unsigned long long)siphash(key, m->sql, strlen(m->sql)));
}

/* Every migration the file has had is one of ours, letter for letter. */
static enum err check_applied(struct sql *sql, const struct migration_list *list, int64_t version,
                              struct error *e)
{
    for (int64_t i = 0; i < version; i++) {
        const struct migration *m = &list->items[i];
        char checksum[CHECKSUM_TEXT];
        char text[160];
        migration_checksum(m, checksum);
        (void)snprintf(text, sizeof(text),
                       "SELECT count(*) FROM migrations WHERE number = %lld AND checksum = '%s'",
                       (long long)m->number, checksum);
        int64_t count = 0;
        enum err rc = sql_read_int(sql, text, &count, e);
        if (rc != ERR_OK)
            return rc;
        if (count != 1)
            return err_set(e, ERR_CONFLICT,
                           "%s: its migration %lld (%s) is not the one of this program; use the "
                           "berthd that made it",
                           sql->path, (long long)m->number, m->name);
    }
    return ERR_OK;
}

static enum err read_version(struct sql *sql, const struct migration_list *list, int64_t *version,
                             struct error *e)
{
    int64_t application = 0;
    enum err rc = sql_read_int(sql, "PRAGMA application_id", &application, e);
    if (rc == ERR_OK)
        rc = sql_read_int(sql, "PRAGMA user_version", version, e);
    if (rc != ERR_OK)
        return rc;
    bool is_new = *version == 0 && application == 0;
    if (!is_new && application != STORE_APPLICATION_ID)
        return err_set(e, ERR_CORRUPT, "%s is an SQLite database but not a Berth store", sql->path);
    if (*version > (int64_t)list->count)
        return err_set(e, ERR_CONFLICT,
                       "%s has schema %lld, this program knows %zu: it was used by a newer berthd; "
                       "install that one",
                       sql->path, (long long)*version, list->count);
    return *version < 0 ? err_set(e, ERR_CORRUPT, "%s has no valid schema version", sql->path)
                        : ERR_OK;
}

static enum err apply_steps(struct sql *sql, const struct migration *m, migration_step_fn *step,
                            struct error *e)
{
    char checksum[CHECKSUM_TEXT];
    char text[256];
    migration_checksum(m, checksum);
    (void)snprintf(text, sizeof(text),
                   "INSERT INTO migrations VALUES (%lld, '%s', '%s');"
                   "PRAGMA user_version = %lld; PRAGMA application_id = %d",
                   (long long)m->number, m->name, checksum, (long long)m->number,
                   STORE_APPLICATION_ID);
    enum err rc = sql_exec(sql, migrations_table, e);
    if (rc == ERR_OK)
        rc = sql_exec(sql, m->sql, e);
    if (rc == ERR_OK && step != NULL)
        rc = step(sql, m->number, e);
    if (rc == ERR_OK)
        rc = sql_exec(sql, text, e);
    return rc;
}

static enum err apply(struct sql *sql, const struct migration *m, migration_step_fn *step,
                      struct error *e)
{
    enum err rc = sql_begin(sql, e);
    if (rc == ERR_OK)
        rc = apply_steps(sql, m, step, e);
    if (rc == ERR_OK)
        rc = sql_commit(sql, e);
    if (rc == ERR_OK)
        return ERR_OK;
    sql_rollback(sql);
    return err_wrap(e, rc, "migration %lld (%s)", (long long)m->number, m->name);
}

enum err migrate(struct sql *sql, const struct migration_list *list, struct error *e)
{
    int64_t version = 0;
    enum err rc = read_version(sql, list, &version, e);
    if (rc == ERR_OK)
        rc = check_applied(sql, list, version, e);
    for (size_t i = (size_t)version; rc == ERR_OK && i < list->count; i++)
        rc = apply(sql, &list->items[i], list->step, e);
    return rc;
}

enum err migrate_check(struct sql *sql, const struct migration_list *list, struct error *e)
{
    int64_t version = 0;
    enum err rc = read_version(sql, list, &version, e);
    if (rc != ERR_OK)
        return rc;
    if (version != (int64_t)list->count)
        return err_set(e, ERR_CONFLICT,
                       "%s has schema %lld, this program reads %zu: start berthd once", sql->path,
                       (long long)version, list->count);
    return check_applied(sql, list, version, e);
}
