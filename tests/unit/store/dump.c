#include "unit/store/dump.h"

#include <inttypes.h>
#include <sqlite3.h>

static void add_id(struct buf *out, struct id id)
{
    buf_format(out, " %016" PRIx64 "%016" PRIx64, id.hi, id.lo);
}

static void add_actor(struct buf *out, const struct actor *actor)
{
    buf_format(out, " %d", (int)actor->role);
    add_id(out, actor->tenant);
    add_id(out, actor->token);
    add_id(out, actor->node);
    buf_format(out, " [%.*s]", STR_ARG(actor->name));
}

void dump_row(struct buf *out, const struct store_row *row)
{
    buf_format(out, "journal %" PRIu64 " %d %u %" PRId64 " %" PRId64, row->sequence, (int)row->type,
               row->version, row->at.ns, row->wall.ns);
    add_actor(out, &row->actor);
    add_id(out, row->request);
    add_id(out, row->tenant);
    buf_format(out, " %" PRIu64 " [%.*s] ", row->tenant_sequence, STR_ARG(row->object));
    buf_add_str(out, row->body);
    buf_add_char(out, '\n');
}

static enum err on_event(void *arg, const struct store_row *row, struct error *e)
{
    (void)e;
    dump_row(arg, row);
    return ERR_OK;
}

struct answer_dump {
    struct buf *out;
    struct wall now; /* what has expired may be there or not */
};

static enum err on_answer(void *arg, const struct store_answer *answer, struct error *e)
{
    const struct answer_dump *dump = arg;
    struct buf *out = dump->out;
    char hex[2 * DIGEST_BYTES + 1];
    (void)e;
    if (answer->expires.ns <= dump->now.ns)
        return ERR_OK;
    hex_encode(answer->key.bytes, DIGEST_BYTES, hex);
    buf_format(out, "answer %" PRIu64 " %s %" PRId64, answer->number, hex, answer->expires.ns);
    buf_add_char(out, '\n');
    return ERR_OK;
}

static void dump_answer(const struct store_answer *answer, struct buf *out)
{
    char hex[2 * DIGEST_BYTES + 1];
    buf_format(out, "answer %" PRIu64, answer->number);
    hex_encode(answer->body_hash.bytes, DIGEST_BYTES, hex);
    buf_format(out, " %s %" PRId64 " %" PRIu64 " %" PRId64 " ", hex, answer->status,
               answer->version, answer->expires.ns);
    buf_add_str(out, answer->content);
    buf_add_char(out, '\n');
}

enum err dump_store(struct store *store, const struct history *history, struct buf *out,
                    struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    struct store_clock clock = { 0 };
    enum err rc = store->vtable->read_events(store, 0, on_event, out, e);
    if (rc == ERR_OK)
        rc = store->vtable->read_answers(store, on_answer,
                                         &(struct answer_dump){ out, history->wall }, e);
    if (rc == ERR_OK)
        rc = store->vtable->read_clock(store, &clock, &arena, e);
    buf_format(out, "clock [%.*s] %" PRId64 " %" PRId64 " %" PRId64 "\n", STR_ARG(clock.boot_id),
               clock.boottime_ns, clock.mono.ns, clock.wall.ns);
    return rc;
}

/* ---- queries --------------------------------------------------------------------------------- */

struct paging {
    struct buf *out;
    bool is_feed_of_tenant;
    uint64_t last;
    size_t count;
};

static enum err on_workload(void *arg, const struct ended_workload *row, struct error *e)
{
    struct paging *p = arg;
    (void)e;
    p->last = row->key;
    p->count++;
    buf_format(p->out, "workload %" PRIu64, row->key);
    add_id(p->out, row->id);
    add_id(p->out, row->array);
    add_id(p->out, row->project);
    add_id(p->out, row->tenant);
    buf_format(p->out, " %" PRId64 " [%.*s] [%.*s] [%.*s] %d %d [%.*s]", row->array_index,
               STR_ARG(row->name), STR_ARG(row->user), STR_ARG(row->project_path), (int)row->state,
               (int)row->cause, STR_ARG(row->detail));
    buf_format(p->out, " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, row->attempt,
               row->evictions, row->failures, row->node_losses);
    buf_format(p->out, " %" PRId64 " %" PRId64 " %" PRId64, row->submitted.ns, row->started.ns,
               row->ended.ns);
    buf_format(p->out, " %d %" PRId64 " %" PRId64 " %d ", row->exit.is_known, row->exit.code,
               row->exit.signal, row->exit.is_oom);
    buf_add_str(p->out, row->record_json);
    buf_add_char(p->out, '\n');
    return ERR_OK;
}

static enum err on_usage(void *arg, const struct usage_row *row, struct error *e)
{
    struct paging *p = arg;
    const struct segment *s = &row->segment;
    (void)e;
    p->last = row->key;
    p->count++;
    buf_format(p->out, "usage %" PRIu64, row->key);
    add_id(p->out, s->allocation);
    add_id(p->out, s->workload);
    add_id(p->out, s->project);
    add_id(p->out, s->tenant);
    buf_format(p->out,
               " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d\n",
               s->class_number, s->charge_milli, s->start.ns, s->duration_ms,
               s->price_micros_per_hour, s->amount_micros, (int)s->cause);
    return ERR_OK;
}

static enum err on_audit(void *arg, const struct audit_row *row, struct error *e)
{
    struct paging *p = arg;
    (void)e;
    p->last = row->key;
    p->count++;
    buf_format(p->out, "audit %" PRIu64 " %" PRId64, row->key, row->at.ns);
    add_actor(p->out, &row->actor);
    add_id(p->out, row->request);
    add_id(p->out, row->tenant);
    add_id(p->out, row->project);
    add_id(p->out, row->workload);
    buf_format(p->out, " %.*s [%.*s] ", STR_ARG(row->verb), STR_ARG(row->object));
    buf_add_str(p->out, row->body);
    buf_add_char(p->out, '\n');
    return ERR_OK;
}

static enum err on_feed(void *arg, const struct store_row *row, struct error *e)
{
    struct paging *p = arg;
    (void)e;
    p->last = p->is_feed_of_tenant ? row->tenant_sequence : row->sequence;
    p->count++;
    dump_row(p->out, row);
    return ERR_OK;
}

enum list { LIST_WORKLOADS, LIST_USAGE, LIST_AUDIT, LIST_EVENTS, LIST_COUNT };

static enum err one_page(struct query *query, enum list list, const struct query_page *page,
                         struct paging *p, struct error *e)
{
    switch (list) {
    case LIST_WORKLOADS:
        return query_ended_workloads(query, page, on_workload, p, e);
    case LIST_USAGE:
        return query_usage(query, page, on_usage, p, e);
    case LIST_AUDIT:
        return query_audit(query, page, on_audit, p, e);
    case LIST_EVENTS:
        return query_events(query, page, on_feed, p, e);
    case LIST_COUNT:
        break;
    }
    return err_set(e, ERR_INVALID, "no such list");
}

static enum err all_pages(struct query *query, enum list list, struct query_page page,
                          struct buf *out, struct error *e)
{
    buf_format(out, "list %d", (int)list);
    add_id(out, page.tenant);
    add_id(out, page.project);
    add_id(out, page.workload);
    buf_add_char(out, '\n');
    for (;;) {
        struct paging p = { .out = out, .is_feed_of_tenant = !id_is_none(page.tenant) };
        enum err rc = one_page(query, list, &page, &p, e);
        if (rc != ERR_OK || p.count < page.limit)
            return rc;
        page.after = p.last;
    }
}

static enum err all_answers(struct query *query, const struct history *history, struct buf *out,
                            struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    for (size_t i = 0; i < history->answers.count; i++) {
        const struct store_answer *made = &history->answers.items[i];
        struct store_answer found;
        const struct answer_lookup lookup = { made->number, made->key, history->wall };
        enum err rc = query_answer(query, &lookup, &arena, &found, e);
        if (rc == ERR_OK)
            dump_answer(&found, out);
        else if (rc != ERR_NOT_FOUND)
            return rc;
    }
    return ERR_OK;
}

enum err dump_queries(struct query *query, const struct history *history, struct buf *out,
                      struct error *e)
{
    enum err rc = ERR_OK;
    for (int list = 0; rc == ERR_OK && list < LIST_COUNT; list++) {
        rc = all_pages(query, (enum list)list, (struct query_page){ .limit = 1000 }, out, e);
        for (size_t i = 0; rc == ERR_OK && i < history->project_count; i++) {
            struct query_page page = { .tenant = history->projects[i].tenant, .limit = 7 };
            if (i < HISTORY_TENANTS)
                rc = all_pages(query, (enum list)list, page, out, e);
            page.project = history->projects[i].id;
            page.limit = 50;
            if (rc == ERR_OK && list != LIST_EVENTS)
                rc = all_pages(query, (enum list)list, page, out, e);
        }
        for (size_t i = 0; rc == ERR_OK && i < MIN_OF(history->ended.count, 20U); i++) {
            struct query_page page = { .workload = history->ended.items[i], .limit = 3 };
            if (list != LIST_EVENTS)
                rc = all_pages(query, (enum list)list, page, out, e);
        }
    }
    if (rc == ERR_OK)
        rc = all_answers(query, history, out, e);
    return rc;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *const tables[] = { "projects",    "workloads",      "workload_records",
                                      "allocations", "usage_segments", "ledger",
                                      "audit" };

static int on_column_row(void *arg, int count, char **values, char **names)
{
    struct buf *out = arg;
    (void)names;
    for (int i = 0; i < count; i++)
        buf_format(out, "%s|", values[i] != NULL ? values[i] : "NULL");
    buf_add_char(out, '\n');
    return 0;
}

static void quote_columns(sqlite3 *db, const char *table, struct buf *out)
{
    sqlite3_stmt *statement = NULL;
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "SELECT name FROM pragma_table_info('%s')", table);
    if (sqlite3_prepare_v2(db, text.data, -1, &statement, NULL) == SQLITE_OK)
        while (sqlite3_step(statement) == SQLITE_ROW)
            buf_format(out, "%squote(%s)", out->size != 0 ? "," : "",
                       (const char *)sqlite3_column_text(statement, 0));
    (void)sqlite3_finalize(statement);
}

enum err dump_tables(const char *path, struct buf *out, struct error *e)
{
    sqlite3 *db = NULL;
    enum err rc = ERR_OK;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        rc = err_set(e, ERR_IO, "%s", sqlite3_errmsg(db));
    for (size_t i = 0; rc == ERR_OK && i < COUNT_OF(tables); i++) {
        AUTO(buf) struct buf columns = { 0 };
        AUTO(buf) struct buf text = { 0 };
        quote_columns(db, tables[i], &columns);
        buf_format(&text, "SELECT %s FROM %s ORDER BY 1, 2", columns.data, tables[i]);
        buf_format(out, "table %s\n", tables[i]);
        if (sqlite3_exec(db, text.data, on_column_row, out, NULL) != SQLITE_OK)
            rc = err_set(e, ERR_IO, "%s", sqlite3_errmsg(db));
    }
    (void)sqlite3_close(db);
    return rc;
}
