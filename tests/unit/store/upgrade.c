/*
 * upgrade.c - a store as an older program left it shows the same when this one has opened it. The
 * older store is made of a new one: its rows are written where they stood then.
 */
#include <string.h>

#include "store/journal.h"
#include "store/migrate.h"
#include "unit/store/dump.h"
#include "unit/store/history.h"
#include "unit/test.h"
#include "unit/test_dir.h"

enum { BATCHES = 12, BATCH_EVENTS = 300 };

struct fixture {
    struct test_dir dir;
    char path[256];
    struct store *store;
    struct history history;
    struct error e;
};

static void open_store(struct fixture *f)
{
    uint64_t epoch = 0;
    store_free(f->store);
    f->store = NULL;
    CHECK_OK("open", store_sqlite_open(f->path, NULL, &f->store, &f->e), &f->e);
    CHECK_OK("claim", f->store->vtable->claim(f->store, 0, &epoch, &f->e), &f->e);
}

static void fixture_init(struct fixture *f, size_t archived)
{
    *f = (struct fixture){ .dir = test_dir_new() };
    history_init(&f->history, test_seed());
    (void)test_dir_path(&f->dir, "store.db", f->path);
    CHECK_OK("create", store_sqlite_create(f->path, &f->e), &f->e);
    open_store(f);
    for (size_t i = 0; i < BATCHES; i++) {
        struct store_batch batch = history_batch(&f->history, BATCH_EVENTS, 7);
        CHECK_OK("append", f->store->vtable->append(f->store, &batch, &f->e), &f->e);
    }
    for (uint64_t at = 1; archived != 0 && at <= 4; at++)
        CHECK_OK(
            "save",
            store_save_snapshot(f->store, archived + at, STR("s"), f->history.sequence / 3, &f->e),
            &f->e);
    bool more = true;
    while (more)
        CHECK_OK("trim", f->store->vtable->trim(f->store, (struct wall){ 0 }, &more, &f->e), &f->e);
}

static void fixture_done(struct fixture *f)
{
    store_free(f->store);
    history_done(&f->history);
    test_dir_remove(&f->dir);
}

static struct buf show(struct fixture *f)
{
    struct buf out = { 0 };
    AUTO(query) struct query *query = NULL;
    CHECK_OK("dump", dump_store(f->store, &f->history, &out, &f->e), &f->e);
    CHECK_OK("query", query_open_sqlite(f->path, &query, &f->e), &f->e);
    CHECK_OK("dump", dump_queries(query, &f->history, &out, &f->e), &f->e);
    return out;
}

/* ---- back to migration 4 --------------------------------------------------------------------- */

static const char before_5[] =
    "ALTER TABLE journal RENAME TO parts; ALTER TABLE answers RENAME TO packs;"
    "CREATE TABLE journal (sequence INTEGER PRIMARY KEY, type INTEGER NOT NULL,"
    " version INTEGER NOT NULL, at_ns INTEGER NOT NULL, wall_ns INTEGER NOT NULL,"
    " role TEXT NOT NULL, actor_tenant BLOB, actor_token BLOB, actor_node BLOB,"
    " actor_name TEXT NOT NULL, request BLOB, tenant BLOB, object TEXT NOT NULL,"
    " body TEXT NOT NULL, check_value INTEGER NOT NULL,"
    " tenant_sequence INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, key BLOB NOT NULL CHECK (length(key) = 32),"
    " body_hash BLOB NOT NULL CHECK (length(body_hash) = 32), status INTEGER NOT NULL,"
    " version INTEGER NOT NULL, expires_ns INTEGER NOT NULL, content BLOB NOT NULL) STRICT;"
    "CREATE INDEX answers_keys ON answers (id, key, expires_ns);"
    "DROP INDEX audit_by_workload;"
    "CREATE INDEX audit_by_tenant ON audit (tenant, sequence);"
    "CREATE INDEX audit_by_workload ON audit (workload_key, sequence)"
    " WHERE workload_key IS NOT NULL;"
    "DELETE FROM migrations WHERE number > 4; PRAGMA user_version = 4";

enum { NEW_FIRST, NEW_KEY, OLD_ROW, OLD_ANSWER, OLD_RECORD };

static const char old_row[] =
    "INSERT INTO journal (sequence, type, version, at_ns, wall_ns, role, actor_tenant, "
    "actor_token, actor_node, actor_name, request, tenant, tenant_sequence, object, "
    "body, check_value) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

static const char *const texts[] = {
    [NEW_FIRST] = "SELECT first_sequence, previous_check FROM journal ORDER BY 1 LIMIT 1",
    [NEW_KEY] = "SELECT check_key FROM store_head",
    [OLD_ROW] = old_row,
    [OLD_ANSWER] = "INSERT INTO answers VALUES (?,?,?,?,?,?,?)",
    [OLD_RECORD] = "INSERT OR IGNORE INTO workload_records (key, body, version) VALUES (?, ?, ?)",
};

struct downgrade {
    struct sql sql;
    struct journal_key key;
    uint64_t first, check;
    struct buf bytes;
    struct error e;
};

static void put_row(struct downgrade *d, const struct store_event *event)
{
    struct store_row row = journal_row_of(event);
    journal_encode_next(&d->bytes, &row, &d->key, &d->check);
    struct sql_call call = sql_get(&d->sql, OLD_ROW);
    sql_u64(&call, row.sequence);
    sql_int(&call, (int64_t)row.type);
    sql_int(&call, row.version);
    sql_int(&call, row.at.ns);
    sql_int(&call, row.wall.ns);
    sql_name(&call, enum_name(&role_names, row.actor.role));
    sql_id(&call, row.actor.tenant);
    sql_id(&call, row.actor.token);
    sql_id(&call, row.actor.node);
    sql_text(&call, row.actor.name);
    sql_id(&call, row.request);
    sql_id(&call, row.tenant);
    sql_u64(&call, row.tenant_sequence);
    sql_text(&call, row.object);
    sql_text(&call, row.body);
    sql_u64(&call, d->check);
    CHECK_OK("row", sql_run(&call, &d->e), &d->e);
    if (row.type != EV_WORKLOAD_SUBMITTED)
        return;
    call = sql_get(&d->sql, OLD_RECORD);
    sql_u64(&call, row.sequence);
    sql_text(&call, row.body);
    sql_int(&call, row.version);
    CHECK_OK("record", sql_run(&call, &d->e), &d->e);
}

static void put_answer(struct downgrade *d, const struct store_answer *answer)
{
    struct sql_call call = sql_get(&d->sql, OLD_ANSWER);
    sql_u64(&call, answer->number);
    sql_digest(&call, &answer->key);
    sql_digest(&call, &answer->body_hash);
    sql_int(&call, answer->status);
    sql_u64(&call, answer->version);
    sql_int(&call, answer->expires.ns);
    sql_blob(&call, answer->content.data, answer->content.size);
    CHECK_OK("answer", sql_run(&call, &d->e), &d->e);
}

static void read_anchor(struct downgrade *d)
{
    bool has_row = false;
    AUTO(sql_call) struct sql_call first = sql_get(&d->sql, NEW_FIRST);
    CHECK_OK("first", sql_next(&first, &has_row, &d->e), &d->e);
    CHECK("has rows", has_row);
    d->first = sql_get_u64(&first);
    d->check = sql_get_u64(&first);
    AUTO(sql_call) struct sql_call key = sql_get(&d->sql, NEW_KEY);
    CHECK_OK("key", sql_next(&key, &has_row, &d->e), &d->e);
    struct str bytes = sql_get_blob(&key);
    CHECK("key", bytes.size == sizeof(d->key.bytes));
    memcpy(d->key.bytes, bytes.data, bytes.size);
}

/* `damaged` is the sequence of a row that is not as it was written; 0: none. */
static void go_back(struct fixture *f, uint64_t damaged)
{
    store_free(f->store);
    f->store = NULL;
    struct downgrade d = { 0 };
    CHECK_OK("open", sql_open(&d.sql, f->path, SQL_WRITE, &d.e), &d.e);
    sql_use(&d.sql, texts, COUNT_OF(texts));
    CHECK_OK("begin", sql_begin(&d.sql, &d.e), &d.e);
    read_anchor(&d);
    CHECK_OK("tables", sql_exec(&d.sql, before_5, &d.e), &d.e);
    for (size_t i = d.first - 1; i < f->history.events.count; i++)
        put_row(&d, &f->history.events.items[i]);
    for (size_t i = 0; i < f->history.answers.count; i++)
        put_answer(&d, &f->history.answers.items[i]);
    if (damaged != 0) {
        char text[128];
        (void)snprintf(text, sizeof(text),
                       "UPDATE journal SET body = body || ' ' WHERE sequence = %llu",
                       (unsigned long long)damaged);
        CHECK_OK("damage", sql_exec(&d.sql, text, &d.e), &d.e);
    }
    CHECK_OK("tables", sql_exec(&d.sql, "DROP TABLE parts; DROP TABLE packs", &d.e), &d.e);
    CHECK_OK("commit", sql_commit(&d.sql, &d.e), &d.e);
    sql_close(&d.sql);
    buf_done(&d.bytes);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void check_upgrade(size_t archived)
{
    struct fixture f;
    fixture_init(&f, archived);
    AUTO(buf) struct buf before = show(&f);
    go_back(&f, 0);
    open_store(&f);
    AUTO(buf) struct buf after = show(&f);
    CHECK("shows the same", str_eq(buf_str(&before), buf_str(&after)));

    CHECK_OK("rebuild", f.store->vtable->rebuild(f.store, history_decode, &f.history, &f.e), &f.e);
    AUTO(buf) struct buf rebuilt = show(&f);
    CHECK("and again", str_eq(buf_str(&before), buf_str(&rebuilt)));
    struct store_batch batch = history_batch(&f.history, 20, 2);
    CHECK_OK("goes on", f.store->vtable->append(f.store, &batch, &f.e), &f.e);
    open_store(&f);
    AUTO(buf) struct buf more = show(&f);
    CHECK("with more", more.size > after.size);
    fixture_done(&f);
}

static void rows_that_were_single_show_the_same(void **state)
{
    (void)state;
    check_upgrade(0);
}

static void so_do_those_behind_an_archive(void **state)
{
    (void)state;
    check_upgrade(2500);
}

static void damage_from_before_is_not_packed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 0);
    go_back(&f, 777);
    CHECK("refused", store_sqlite_open(f.path, NULL, &f.store, &f.e) == ERR_CORRUPT);
    CHECK("names it", strstr(f.e.text, "777") != NULL);
    CHECK("still", store_sqlite_open(f.path, NULL, &f.store, &f.e) == ERR_CORRUPT);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_were_single_show_the_same),
        cmocka_unit_test(so_do_those_behind_an_archive),
        cmocka_unit_test(damage_from_before_is_not_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
