/*
 * query_sqlite.c - pages of rows over a read-only connection. A page is one read transaction, so
 * the rows of it fit together whatever the writer does meanwhile.
 */
#include <inttypes.h>
#include <string.h>

#include "store/lz.h"
#include "store/migrate.h"
#include "store/query_backend.h"
#include "store/sqlite_files.h"
#include "store/sqlite_store.h"

struct sqlite_query {
    struct query base; /* first: the vtable's functions cast back */
    struct sql sql;
    struct buf segment;         /* rows of the part or segment read last */
    VEC(struct store_row) rows; /* of it, borrowed from `segment` */
};

static struct sqlite_query *query_of(struct query *query)
{
    return (struct sqlite_query *)(void *)query;
}

static enum err begin_read(struct sqlite_query *query, struct error *e)
{
    return sql_exec(&query->sql, "BEGIN", e);
}

/* Every page goes through here: a filter that is none matches all. */
static struct sql_call page_call(struct sqlite_query *query, enum statement statement,
                                 const struct query_page *page, uint64_t from)
{
    struct sql_call call = sql_get(&query->sql, statement);
    sql_u64(&call, from);
    sql_int(&call, (int64_t)page->limit);
    sql_id(&call, page->tenant);
    sql_id(&call, page->project);
    sql_id(&call, page->workload);
    return call;
}

/* Newest first: below the last key seen. */
static uint64_t from_newest(const struct query_page *page)
{
    return page->after != 0 ? page->after : INT64_MAX;
}

/* ---- usage ----------------------------------------------------------------------------------- */

static void usage_read(struct sql_call *call, struct usage_row *row)
{
    row->key = sql_get_u64(call);
    row->segment.allocation = sql_get_id(call);
    row->segment.workload = sql_get_id(call);
    row->segment.project = sql_get_id(call);
    row->segment.tenant = sql_get_id(call);
    row->segment.class_number = sql_get_int(call);
    row->segment.charge_milli = sql_get_int(call);
    row->segment.start.ns = sql_get_int(call);
    row->segment.duration_ms = sql_get_int(call);
    row->segment.price_micros_per_hour = sql_get_int(call);
    row->segment.amount_micros = sql_get_int(call);
    row->segment.cause = (enum cause)sql_get_enum(call, &cause_names);
}

static enum err usage(struct query *base, const struct query_page *page, usage_row_fn *each,
                      void *arg, struct error *e)
{
    enum statement statement = ST_QUERY_USAGE;
    if (!id_is_none(page->workload))
        statement = ST_QUERY_USAGE_WORKLOAD;
    else if (!id_is_none(page->project))
        statement = ST_QUERY_USAGE_PROJECT;
    else if (!id_is_none(page->tenant))
        statement = ST_QUERY_USAGE_TENANT;
    AUTO(sql_call) struct sql_call call = page_call(query_of(base), statement, page, page->after);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        struct usage_row row;
        usage_read(&call, &row);
        rc = each(arg, &row, e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

/* ---- journal rows, live or archived ---------------------------------------------------------- */

static const struct store_row *cached_row(const struct sqlite_query *query, uint64_t sequence)
{
    if (query->rows.count == 0 || sequence < query->rows.items[0].sequence)
        return NULL;
    uint64_t at = sequence - query->rows.items[0].sequence;
    return at < query->rows.count ? &query->rows.items[at] : NULL;
}

static enum err cache_rows(struct sqlite_query *query, uint64_t first, struct error *e)
{
    struct str rest = buf_str(&query->segment);
    struct store_row row;
    uint64_t check = 0; /* a page has one of its own; the chain is followed at start-up */
    while (rest.size != 0) {
        if (!journal_decode_checked(&rest, &row, &check) ||
            row.sequence != first + query->rows.count)
            return err_set(e, ERR_CORRUPT, "the journal is damaged after event %" PRIu64,
                           first + query->rows.count - 1);
        vec_push(&query->rows, row);
    }
    return ERR_OK;
}

/* What a place has of the first part or segment behind `sequence` - 1. */
static enum err load_from(struct sqlite_query *query, const struct journal_place *place,
                          uint64_t sequence, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&query->sql, place->after);
    sql_u64(&call, sequence - 1);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    query->rows.count = 0;
    if (rc != ERR_OK || !has_row)
        return rc;
    uint64_t first = sql_get_u64(&call);
    (void)sql_get_u64(&call); /* last_sequence */
    (void)sql_get_u64(&call); /* previous_check */
    uint64_t raw_size = sql_get_u64(&call);
    if (first > sequence)
        return ERR_OK;
    rc = place->unpack(sql_get_blob(&call), raw_size, &query->segment, e);
    if (rc == ERR_OK)
        rc = cache_rows(query, first, e);
    if (rc != ERR_OK)
        query->rows.count = 0;
    return rc;
}

/* The row is valid until one of another part is looked for. */
static enum err find_row(struct sqlite_query *query, uint64_t sequence,
                         const struct store_row **out, struct error *e)
{
    enum err rc = ERR_OK;
    *out = cached_row(query, sequence);
    for (size_t left = PLACE_COUNT; rc == ERR_OK && *out == NULL && left > 0; left--) {
        rc = load_from(query, &journal_places[left - 1], sequence, e);
        *out = cached_row(query, sequence);
    }
    if (rc == ERR_OK && *out == NULL)
        return err_set(e, ERR_NOT_FOUND, "event %" PRIu64 " is no longer kept", sequence);
    return rc;
}

/* Gives a row out with the number that the feed knows it by. */
struct numbered {
    uint64_t tenant_sequence;
    store_row_fn *each;
    void *arg;
};

static enum err with_number(void *arg, const struct store_row *stored, struct error *e)
{
    const struct numbered *numbered = arg;
    struct store_row row = *stored;
    row.tenant_sequence = numbered->tenant_sequence;
    return numbered->each(numbered->arg, &row, e);
}

static enum err give_event(struct sqlite_query *query, uint64_t sequence, store_row_fn *each,
                           void *arg, struct error *e)
{
    const struct store_row *row = NULL;
    enum err rc = find_row(query, sequence, &row, e);
    return rc == ERR_OK ? each(arg, row, e) : rc;
}

static enum err each_event(struct sqlite_query *query, const struct query_page *page,
                           store_row_fn *each, void *arg, struct error *e)
{
    bool is_all = id_is_none(page->tenant);
    AUTO(sql_call)
    struct sql_call call = sql_get(&query->sql, is_all ? ST_QUERY_EVENTS : ST_QUERY_EVENTS_TENANT);
    sql_u64(&call, page->after);
    sql_int(&call, (int64_t)page->limit);
    if (!is_all)
        sql_id(&call, page->tenant);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        uint64_t sequence = sql_get_u64(&call);
        struct numbered numbered = { sql_get_u64(&call), each, arg };
        rc = give_event(query, sequence, with_number, &numbered, e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

/* Several statements make a page, so that they must see one state. */
static enum err events(struct query *base, const struct query_page *page, store_row_fn *each,
                       void *arg, struct error *e)
{
    struct sqlite_query *query = query_of(base);
    enum err rc = begin_read(query, e);
    if (rc != ERR_OK)
        return rc;
    rc = each_event(query, page, each, arg, e);
    sql_rollback(&query->sql);
    return rc;
}

/* ---- workloads ------------------------------------------------------------------------------- */

static void workload_read(struct sql_call *call, struct ended_workload *row)
{
    row->key = sql_get_u64(call);
    row->id = sql_get_id(call);
    row->array = sql_get_id(call);
    row->array_index = sql_get_int(call);
    row->project = sql_get_id(call);
    row->tenant = sql_get_id(call);
    row->name = sql_get_text(call);
    row->user = sql_get_text(call);
    row->project_path = sql_get_text(call);
    row->state = (enum workload_state)sql_get_enum(call, &workload_state_names);
    row->cause = (enum cause)sql_get_enum(call, &cause_names);
    row->detail = sql_get_text(call);
    row->attempt = sql_get_int(call);
    row->evictions = sql_get_int(call);
    row->failures = sql_get_int(call);
    row->node_losses = sql_get_int(call);
    row->submitted.ns = sql_get_int(call);
    row->started.ns = sql_get_int(call);
    row->ended.ns = sql_get_int(call);
    row->exit = sql_get_exit(call);
    row->record_json = sql_get_text(call);
    row->record_version = (unsigned)sql_get_int(call);
}

/* The record is what was submitted: in the journal, until that row leaves the live part of it. */
static enum err read_record(struct sqlite_query *query, struct ended_workload *row, struct error *e)
{
    const struct store_row *submitted = NULL;
    enum err rc = find_row(query, row->key, &submitted, e);
    if (rc != ERR_OK)
        return rc;
    row->record_json = submitted->body;
    row->record_version = submitted->version;
    return ERR_OK;
}

static enum err give_workload(struct sqlite_query *query, struct sql_call *call,
                              ended_workload_fn *each, void *arg, struct error *e)
{
    struct ended_workload row;
    enum err rc = ERR_OK;
    workload_read(call, &row);
    if (row.record_json.data == NULL)
        rc = read_record(query, &row, e);
    return rc == ERR_OK ? each(arg, &row, e) : rc;
}

static enum err ended_workloads(struct query *base, const struct query_page *page,
                                ended_workload_fn *each, void *arg, struct error *e)
{
    struct sqlite_query *query = query_of(base);
    enum statement statement = ST_QUERY_ENDED;
    if (!id_is_none(page->project))
        statement = ST_QUERY_ENDED_PROJECT;
    else if (!id_is_none(page->tenant))
        statement = ST_QUERY_ENDED_TENANT;
    AUTO(sql_call) struct sql_call call = page_call(query, statement, page, from_newest(page));
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        rc = give_workload(query, &call, each, arg, e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

static enum err one_workload(struct query *base, struct id id, ended_workload_fn *each, void *arg,
                             struct error *e)
{
    struct sqlite_query *query = query_of(base);
    AUTO(sql_call) struct sql_call call = sql_get(&query->sql, ST_QUERY_WORKLOAD);
    sql_id(&call, id);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc == ERR_OK && !has_row)
        return err_set(e, ERR_NOT_FOUND, "no such workload");
    return rc == ERR_OK ? give_workload(query, &call, each, arg, e) : rc;
}

/* ---- audit ----------------------------------------------------------------------------------- */

static void audit_read(struct sql_call *call, struct audit_row *row)
{
    row->key = sql_get_u64(call);
    row->at.ns = sql_get_int(call);
    row->actor.role = (enum role)sql_get_enum(call, &role_names);
    row->actor.tenant = sql_get_id(call);
    row->actor.token = sql_get_id(call);
    row->actor.node = sql_get_id(call);
    row->actor.name = sql_get_text(call);
    row->request = sql_get_id(call);
    row->tenant = sql_get_id(call);
    row->verb = str_of(event_name((enum event_type)sql_get_int(call)));
    row->object = sql_get_text(call);
    row->project = sql_get_id(call);
    row->workload = sql_get_id(call);
    row->body = (struct str){ 0 };
    row->version = 0;
}

struct audit_body {
    struct audit_row *row;
    audit_row_fn *each;
    void *arg;
};

static enum err with_body(void *arg, const struct store_row *stored, struct error *e)
{
    struct audit_body *body = arg;
    body->row->body = stored->body;
    body->row->version = stored->version;
    return body->each(body->arg, body->row, e);
}

/* Who did what is kept by itself; the body is as long as the journal keeps it. */
static enum err give_audit(struct sqlite_query *query, struct audit_row *row, audit_row_fn *each,
                           void *arg, struct error *e)
{
    struct audit_body body = { row, each, arg };
    struct store_head head;
    enum err rc = head_read(&query->sql, &head, e);
    if (rc != ERR_OK)
        return rc;
    if (row->key <= head.dropped_sequence)
        return each(arg, row, e);
    return give_event(query, row->key, with_body, &body, e);
}

static enum err each_audit(struct sqlite_query *query, const struct query_page *page,
                           audit_row_fn *each, void *arg, struct error *e)
{
    enum statement statement = ST_QUERY_AUDIT;
    if (!id_is_none(page->workload))
        statement = ST_QUERY_AUDIT_WORKLOAD;
    else if (!id_is_none(page->tenant))
        statement = ST_QUERY_AUDIT_TENANT;
    AUTO(sql_call) struct sql_call call = page_call(query, statement, page, from_newest(page));
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        struct audit_row row;
        audit_read(&call, &row);
        rc = give_audit(query, &row, each, arg, e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

static enum err audit(struct query *base, const struct query_page *page, audit_row_fn *each,
                      void *arg, struct error *e)
{
    struct sqlite_query *query = query_of(base);
    enum err rc = begin_read(query, e);
    if (rc != ERR_OK)
        return rc;
    rc = each_audit(query, page, each, arg, e);
    sql_rollback(&query->sql);
    return rc;
}

/* ---- answers, opening ------------------------------------------------------------------------ */

/* Finds it among the answers that were given together; `*at` is where its content begins. */
static enum err find_head(struct str heads, const struct answer_lookup *lookup,
                          struct store_answer *out, uint64_t *at, struct error *e)
{
    *at = 0;
    while (heads.size != 0) {
        struct store_answer head;
        if (!answer_head_cut(&heads, &head))
            return err_set(e, ERR_CORRUPT, "the answers kept for Idempotency-Keys are damaged");
        if (head.number == lookup->number && head.expires.ns > lookup->now.ns &&
            memcmp(&head.key, &lookup->key, sizeof(head.key)) == 0) {
            *out = head;
            return ERR_OK;
        }
        *at += head.content.size;
    }
    return err_set(e, ERR_NOT_FOUND, "no answer is kept for this key");
}

static enum err answer(struct query *base, const struct answer_lookup *lookup, struct arena *arena,
                       struct store_answer *out, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&query_of(base)->sql, ST_ANSWERS_FIND);
    sql_u64(&call, lookup->number);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc != ERR_OK)
        return rc;
    struct store_answer found = { 0 };
    uint64_t at = 0;
    struct str heads = { 0 };
    if (has_row)
        heads = sql_get_blob(&call);
    rc = find_head(heads, lookup, &found, &at, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(buf) struct buf contents = { 0 };
    uint64_t raw_size = sql_get_u64(&call);
    rc = lz_unpack(sql_get_blob(&call), raw_size, &contents, e);
    if (rc != ERR_OK)
        return rc;
    if (at > contents.size || found.content.size > contents.size - at)
        return err_set(e, ERR_CORRUPT, "the answers kept for Idempotency-Keys are damaged");
    found.content = str_copy(arena, (struct str){ contents.data + at, found.content.size });
    *out = found;
    return ERR_OK;
}

static void sqlite_query_free(struct query *base)
{
    struct sqlite_query *query = query_of(base);
    sql_close(&query->sql);
    buf_done(&query->segment);
    vec_done(&query->rows);
    mem_free(query);
}

static const struct query_vtable sqlite_query_vtable = {
    .ended_workloads = ended_workloads,
    .workload = one_workload,
    .usage = usage,
    .audit = audit,
    .events = events,
    .answer = answer,
    .free = sqlite_query_free,
};

static enum err open_query(struct sqlite_query *query, const char *path, struct error *e)
{
    struct migration_list list = store_migration_list();
    enum err rc = sql_open(&query->sql, path, SQL_READ_ONLY, e);
    if (rc == ERR_OK)
        rc = store_identity_check(&query->sql, e);
    if (rc == ERR_OK)
        rc = migrate_check(&query->sql, &list, e);
    if (rc == ERR_OK)
        sql_use(&query->sql, store_statements, ST_COUNT);
    return rc;
}

enum err query_open_sqlite(const char *path, struct query **out, struct error *e)
{
    enum err rc = store_file_check(path, e);
    if (rc != ERR_OK)
        return rc;
    struct sqlite_query *query = mem_new(1, sizeof(*query));
    query->base.vtable = &sqlite_query_vtable;
    rc = open_query(query, path, e);
    if (rc != ERR_OK) {
        query_free(&query->base);
        return rc;
    }
    *out = &query->base;
    return ERR_OK;
}
