/* files.c - making, opening, copying and restoring store files, and every reason to refuse. */
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <string.h>

#include "os/file.h"
#include "store/migrate.h"
#include "unit/store/dump.h"
#include "unit/store/faulty_vfs.h"
#include "unit/store/history.h"
#include "unit/test.h"
#include "unit/test_dir.h"

struct fixture {
    struct test_dir dir;
    char path[256];
    char copy[256];
    char other[256];
    struct store *store;
    struct history history;
    struct error e;
};

static enum err open_store(struct fixture *f, const char *path)
{
    uint64_t epoch = 0;
    store_free(f->store);
    f->store = NULL;
    enum err rc = store_sqlite_open(path, NULL, &f->store, &f->e);
    return rc == ERR_OK ? f->store->vtable->claim(f->store, 0, &epoch, &f->e) : rc;
}

static void append(struct fixture *f, size_t events)
{
    struct store_batch batch = history_batch(&f->history, events, 1);
    CHECK_OK("append", f->store->vtable->append(f->store, &batch, &f->e), &f->e);
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){ .dir = test_dir_new() };
    history_init(&f->history, test_seed());
    (void)test_dir_path(&f->dir, "store.db", f->path);
    (void)test_dir_path(&f->dir, "copy.db", f->copy);
    (void)test_dir_path(&f->dir, "other.db", f->other);
    CHECK_OK("create", store_sqlite_create(f->path, &f->e), &f->e);
    CHECK_OK("open", open_store(f, f->path), &f->e);
    append(f, 100);
}

static void fixture_done(struct fixture *f)
{
    store_free(f->store);
    history_done(&f->history);
    test_dir_remove(&f->dir);
}

static void copy_file(const char *from, const char *to)
{
    struct error e;
    AUTO(buf) struct buf bytes = { 0 };
    CHECK_OK(from, file_read(from, 64 << 20, &bytes, &e), &e);
    CHECK_OK(to, file_write_atomic(to, buf_str(&bytes), 0600, &e), &e);
}

static void ending(const char *path, const char *text, char out[256])
{
    (void)snprintf(out, 256, "%.200s%s", path, text);
}

/* Without our page checks, as another program would. */
static void run_sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    CHECK(path, sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(text, sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    CHECK(path, sqlite3_close(db) == SQLITE_OK);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text, size_t size)
{
    struct error e;
    CHECK_OK(path, file_write_atomic(path, (struct str){ text, size }, 0600, &e), &e);
}

static void what_is_no_store_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct store *none = NULL;
    struct query *query = NULL;
    char text[3 * 4096];
    fixture_init(&f);
    CHECK("missing", store_sqlite_open(f.other, NULL, &none, &f.e) == ERR_NOT_FOUND);
    CHECK("says what to do", strstr(f.e.text, "berthd restore") != NULL);
    CHECK("missing", query_open_sqlite(f.other, &query, &f.e) == ERR_NOT_FOUND);
    CHECK("made nothing", access(f.other, F_OK) != 0);
    CHECK("a directory", store_sqlite_open(f.dir.path, NULL, &none, &f.e) == ERR_INVALID);
    write_text(f.other, "", 0);
    CHECK("empty", store_sqlite_open(f.other, NULL, &none, &f.e) == ERR_CORRUPT);
    write_text(f.other, "short", 5);
    CHECK("short", store_sqlite_open(f.other, NULL, &none, &f.e) == ERR_CORRUPT);
    memset(text, 'x', sizeof(text));
    write_text(f.other, text, sizeof(text));
    CHECK("noise", store_sqlite_open(f.other, NULL, &none, &f.e) == ERR_CORRUPT);
    memset(text, 0, sizeof(text));
    write_text(f.other, text, sizeof(text));
    CHECK("zeros", store_sqlite_open(f.other, NULL, &none, &f.e) == ERR_CORRUPT);
    CHECK("zeros", query_open_sqlite(f.other, &query, &f.e) == ERR_CORRUPT);
    CHECK("unlink", unlink(f.other) == 0);
    run_sql(f.other, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)");
    CHECK("another program's", store_sqlite_open(f.other, NULL, &none, &f.e) == ERR_CORRUPT);
    CHECK("nothing came out", none == NULL && query == NULL);
    fixture_done(&f);
}

static void one_controller_at_a_time(void **state)
{
    (void)state;
    struct fixture f;
    struct store *second = NULL;
    fixture_init(&f);
    CHECK("held", store_sqlite_open(f.path, NULL, &second, &f.e) == ERR_CONFLICT);
    CHECK("says why", strstr(f.e.text, "another process") != NULL);
    CHECK("held", store_sqlite_create(f.path, &f.e) == ERR_CONFLICT);
    CHECK("held", store_sqlite_restore(f.copy, f.path, 0, &f.e) == ERR_CONFLICT);
    append(&f, 10);
    CHECK_OK("free again", open_store(&f, f.path), &f.e);
    append(&f, 10);
    fixture_done(&f);
}

static void a_new_store_replaces_nothing(void **state)
{
    (void)state;
    struct fixture f;
    char log[256];
    fixture_init(&f);
    store_free(f.store);
    f.store = NULL;
    CHECK("exists", store_sqlite_create(f.path, &f.e) == ERR_CONFLICT);
    CHECK("exists", store_sqlite_backup(f.path, f.path, &f.e) == ERR_CONFLICT);
    ending(f.other, "-wal", log);
    write_text(log, "left over", 9);
    CHECK("a log of a lost store", store_sqlite_create(f.other, &f.e) == ERR_CONFLICT);
    CHECK("names it", strstr(f.e.text, "other.db-wal") != NULL);
    CHECK("unlink", unlink(log) == 0);
    CHECK_OK("create", store_sqlite_create(f.other, &f.e), &f.e);
    CHECK("no such folder", store_sqlite_create("/nonexistent/store.db", &f.e) == ERR_IO);
    CHECK_OK("open", open_store(&f, f.path), &f.e);
    fixture_done(&f);
}

/* ---- what was acknowledged and is gone ------------------------------------------------------- */

static void a_lost_log_is_noticed(void **state)
{
    (void)state;
    struct fixture f;
    char log[256];
    char mark[256];
    struct store *none = NULL;
    fixture_init(&f);
    CHECK_OK("open", open_store(&f, f.path), &f.e); /* the log is empty now */
    copy_file(f.path, f.copy);
    uint64_t before = f.history.sequence;
    append(&f, 50);
    store_free(f.store);
    f.store = NULL;
    copy_file(f.copy, f.path); /* the file without what its log had */
    ending(f.path, "-wal", log);
    ending(f.path, ".lock", mark);
    (void)unlink(log);
    CHECK("behind its mark", store_sqlite_open(f.path, NULL, &none, &f.e) == ERR_CORRUPT);
    char both[2][32];
    (void)snprintf(both[0], sizeof(both[0]), "event %d,", (int)before);
    (void)snprintf(both[1], sizeof(both[1]), " %d was", (int)f.history.sequence);
    CHECK("says both", strstr(f.e.text, both[0]) != NULL && strstr(f.e.text, both[1]) != NULL);
    CHECK("and the way out", strstr(f.e.text, ".lock") != NULL);
    CHECK("unlink", unlink(mark) == 0);
    CHECK_OK("accepted", open_store(&f, f.path), &f.e);
    fixture_done(&f);
}

static void a_half_written_mark_is_no_reason_to_refuse(void **state)
{
    static const char *const marks[] = { "", "garbage", "00000000000000000000000000000000 " };
    (void)state;
    struct fixture f;
    char mark[256];
    fixture_init(&f);
    ending(f.path, ".lock", mark);
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        store_free(f.store);
        f.store = NULL;
        write_text(mark, marks[i], strlen(marks[i]));
        CHECK_OK("open", open_store(&f, f.path), &f.e);
        append(&f, 5);
    }
    fixture_done(&f);
}

/* ---- migrations ------------------------------------------------------------------------------ */

static const struct migration test_migrations[] = {
    { 1, "first", "CREATE TABLE one (x INTEGER) STRICT; INSERT INTO one VALUES (7)" },
    { 2, "second", "CREATE TABLE two (x INTEGER) STRICT; INSERT INTO two SELECT x + 1 FROM one" },
    { 3, "third", "INSERT INTO one VALUES (9); INSERT INTO missing VALUES (1)" },
};

static void migrations_go_forward_only(void **state)
{
    (void)state;
    struct fixture f;
    int64_t value = 0;
    fixture_init(&f);
    AUTO(sql) struct sql sql = { 0 };
    CHECK_OK("new", sql_open(&sql, f.other, SQL_CREATE, &f.e), &f.e);
    struct migration_list list = { test_migrations, 1, NULL };
    CHECK_OK("first", migrate(&sql, &list, &f.e), &f.e);
    CHECK_OK("again", migrate(&sql, &list, &f.e), &f.e);
    list.count = 2;
    CHECK("not yet", migrate_check(&sql, &list, &f.e) == ERR_CONFLICT);
    CHECK_OK("second", migrate(&sql, &list, &f.e), &f.e);
    CHECK_OK("check", migrate_check(&sql, &list, &f.e), &f.e);
    CHECK_OK("used the first", sql_read_int(&sql, "SELECT x FROM two", &value, &f.e), &f.e);
    CHECK("once", value == 8);
    list.count = 3;
    CHECK("fails", migrate(&sql, &list, &f.e) != ERR_OK);
    CHECK("names it", strstr(f.e.text, "third") != NULL);
    CHECK_OK("count", sql_read_int(&sql, "SELECT count(*) FROM one", &value, &f.e), &f.e);
    CHECK("as a whole or not at all", value == 1);
    list.count = 1;
    CHECK("newer", migrate(&sql, &list, &f.e) == ERR_CONFLICT);
    CHECK("says so", strstr(f.e.text, "newer berthd") != NULL);
    struct migration changed[2] = { test_migrations[0], test_migrations[1] };
    changed[0].sql = "CREATE TABLE one (x INTEGER) STRICT";
    struct migration_list differs = { changed, 2, NULL };
    CHECK("another first", migrate(&sql, &differs, &f.e) == ERR_CONFLICT);
    CHECK("another first", migrate_check(&sql, &differs, &f.e) == ERR_CONFLICT);
    fixture_done(&f);
}

static void the_migrations_are_numbered(void **state)
{
    (void)state;
    CHECK("some", store_migration_count >= 1);
    for (size_t i = 0; i < store_migration_count; i++)
        CHECK(store_migrations[i].name, store_migrations[i].number == (int64_t)i + 1);
}

static void a_store_of_a_newer_program_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct store *none = NULL;
    struct query *query = NULL;
    fixture_init(&f);
    store_free(f.store);
    f.store = NULL;
    {
        AUTO(sql) struct sql sql = { 0 };
        CHECK_OK("open", sql_open(&sql, f.path, SQL_WRITE, &f.e), &f.e);
        CHECK_OK("set", sql_exec(&sql, "PRAGMA user_version = 999", &f.e), &f.e);
    }
    CHECK("newer", store_sqlite_open(f.path, NULL, &none, &f.e) == ERR_CONFLICT);
    CHECK("says so", strstr(f.e.text, "newer berthd") != NULL);
    CHECK("newer", query_open_sqlite(f.path, &query, &f.e) == ERR_CONFLICT);
    fixture_done(&f);
}

/* ---- backup and restore ---------------------------------------------------------------------- */

static void check_same(struct fixture *f, const char *path)
{
    AUTO(buf) struct buf ours = { 0 };
    AUTO(buf) struct buf theirs = { 0 };
    AUTO(store) struct store *store = NULL;
    CHECK_OK("dump", dump_store(f->store, &f->history, &ours, &f->e), &f->e);
    CHECK_OK("tables", dump_tables(f->path, &ours, &f->e), &f->e);
    CHECK_OK("open", store_sqlite_open(path, NULL, &store, &f->e), &f->e);
    CHECK_OK("dump", dump_store(store, &f->history, &theirs, &f->e), &f->e);
    CHECK_OK("tables", dump_tables(path, &theirs, &f->e), &f->e);
    CHECK("the same", str_eq(buf_str(&ours), buf_str(&theirs)));
}

static void a_backup_is_taken_while_the_store_works(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    append(&f, 100);
    CHECK_OK("backup", store_sqlite_backup(f.path, f.copy, &f.e), &f.e);
    CHECK("exists", store_sqlite_backup(f.path, f.copy, &f.e) == ERR_CONFLICT);
    check_same(&f, f.copy);
    CHECK("no store", store_sqlite_backup("/nonexistent", f.other, &f.e) == ERR_NOT_FOUND);
    CHECK("left nothing", access(f.other, F_OK) != 0);
    append(&f, 100);
    fixture_done(&f);
}

static void a_restore_raises_the_epoch(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    uint64_t epoch = f.store->epoch;
    CHECK_OK("backup", store_sqlite_backup(f.path, f.copy, &f.e), &f.e);
    CHECK_OK("restore", store_sqlite_restore(f.copy, f.other, 0, &f.e), &f.e);
    check_same(&f, f.other);
    CHECK("exists", store_sqlite_restore(f.copy, f.other, 0, &f.e) == ERR_CONFLICT);
    CHECK_OK("open", open_store(&f, f.other), &f.e);
    CHECK("above the lost one", f.store->epoch > epoch + 1);
    store_free(f.store);
    f.store = NULL;
    CHECK("remove", unlink(f.other) == 0);
    CHECK_OK("restore", store_sqlite_restore(f.copy, f.other, 1000, &f.e), &f.e);
    CHECK_OK("open", open_store(&f, f.other), &f.e);
    CHECK("above what agents saw", f.store->epoch > 1000);
    append(&f, 10);
    fixture_done(&f);
}

/* The lost store had gone on after the backup; its mark must not stand in the way. */
static void an_older_backup_may_take_the_place(void **state)
{
    (void)state;
    struct fixture f;
    char log[256];
    fixture_init(&f);
    CHECK_OK("backup", store_sqlite_backup(f.path, f.copy, &f.e), &f.e);
    append(&f, 50);
    store_free(f.store);
    f.store = NULL;
    CHECK("remove", unlink(f.path) == 0);
    ending(f.path, "-wal", log);
    (void)unlink(log);
    CHECK_OK("restore", store_sqlite_restore(f.copy, f.path, 0, &f.e), &f.e);
    CHECK_OK("open", open_store(&f, f.path), &f.e);
    fixture_done(&f);
}

static void a_damaged_backup_is_not_restored(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    CHECK("missing", store_sqlite_restore(f.copy, f.other, 0, &f.e) == ERR_NOT_FOUND);
    CHECK_OK("backup", store_sqlite_backup(f.path, f.copy, &f.e), &f.e);
    int fd = open(f.copy, O_RDWR | O_CLOEXEC);
    CHECK("open", fd >= 0 && pwrite(fd, "?", 1, 5000) == 1 && close(fd) == 0);
    CHECK("damaged", store_sqlite_restore(f.copy, f.other, 0, &f.e) == ERR_CORRUPT);
    CHECK("left nothing", access(f.other, F_OK) != 0);
    fixture_done(&f);
}

/* ---- queries beside the writer --------------------------------------------------------------- */

static enum err count_row(void *arg, const struct audit_row *row, struct error *e)
{
    size_t *count = arg;
    (void)row;
    (void)e;
    ++*count;
    return ERR_OK;
}

static void queries_see_what_is_committed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    AUTO(query) struct query *query = NULL;
    CHECK_OK("open", query_open_sqlite(f.path, &query, &f.e), &f.e);
    for (size_t i = 1; i <= 5; i++) {
        size_t count = 0;
        struct query_page page = { .limit = 1000 };
        CHECK_OK("list", query_audit(query, &page, count_row, &count, &f.e), &f.e);
        CHECK("all committed", count == f.history.sequence);
        append(&f, 50);
        CHECK_OK("maintain", f.store->vtable->maintain(f.store, 1000, &f.e), &f.e);
    }
    fixture_done(&f);
}

struct copier {
    struct store *store;
    atomic_bool is_ended;
    unsigned copies;
};

static void *copy_until_ended(void *arg)
{
    struct copier *copier = arg;
    struct error e;
    while (!atomic_load(&copier->is_ended)) {
        CHECK_OK("copy", copier->store->vtable->copy_log(copier->store, &e), &e);
        copier->copies++;
    }
    return NULL;
}

/* The long part of keeping the log short needs no pause; the short part ends it. */
static void the_log_is_copied_while_batches_go_on(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t thread;
    fixture_init(&f);
    struct copier copier = { .store = f.store };
    for (size_t i = 0; i < 20; i++)
        append(&f, 50);
    int before = f.store->vtable->log_pages(f.store);
    CHECK("thread", pthread_create(&thread, NULL, copy_until_ended, &copier) == 0);
    for (size_t i = 0; i < 40; i++)
        append(&f, 50);
    atomic_store(&copier.is_ended, true);
    pthread_join(thread, NULL);
    CHECK("copied", copier.copies > 0);
    CHECK_OK("the rest", f.store->vtable->maintain(f.store, 1, &f.e), &f.e);
    append(&f, 1);
    int after = f.store->vtable->log_pages(f.store);
    CHECK("the log begins anew", after > 0 && after < before);

    AUTO(buf) struct buf whole = { 0 };
    AUTO(buf) struct buf again = { 0 };
    CHECK_OK("dump", dump_store(f.store, &f.history, &whole, &f.e), &f.e);
    CHECK_OK("open", open_store(&f, f.path), &f.e);
    CHECK_OK("dump", dump_store(f.store, &f.history, &again, &f.e), &f.e);
    CHECK("nothing lost", str_eq(buf_str(&whole), buf_str(&again)));
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_store_is_refused),
        cmocka_unit_test(one_controller_at_a_time),
        cmocka_unit_test(a_new_store_replaces_nothing),
        cmocka_unit_test(a_lost_log_is_noticed),
        cmocka_unit_test(a_half_written_mark_is_no_reason_to_refuse),
        cmocka_unit_test(migrations_go_forward_only),
        cmocka_unit_test(the_migrations_are_numbered),
        cmocka_unit_test(a_store_of_a_newer_program_is_refused),
        cmocka_unit_test(the_log_is_copied_while_batches_go_on),
        cmocka_unit_test(a_backup_is_taken_while_the_store_works),
        cmocka_unit_test(a_restore_raises_the_epoch),
        cmocka_unit_test(an_older_backup_may_take_the_place),
        cmocka_unit_test(a_damaged_backup_is_not_restored),
        cmocka_unit_test(queries_see_what_is_committed),
    };
    faulty_register();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
