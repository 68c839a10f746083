/* query.c - lists out of the store, on a worker: nothing here may look at the state. */
#include <inttypes.h>
#include <stdio.h>

#include "api/api.h"
#include "wire/event_json.h"
#include "wire/hidden.h"
#include "wire/resource.h"

/* Rows that a filter may look at for one page: then the client asks again, and others get
 * a turn. */
enum { SCAN_STEP = 500, SCAN_MAX = 50000 };

struct page {
    const struct api_query *query;
    struct json_writer w;
    size_t count;
    size_t seen;        /* rows that the store gave, of one call */
    bool has_more;      /* perhaps */
    uint64_t last;      /* key of the last row that was looked at */
    struct arena arena; /* of one row */
};

/* ---- workloads ----------------------------------------------------------------------------- */

/* The record as it was submitted, with how it ended. */
static enum err workload_of_row(struct page *page, const struct ended_workload *row,
                                struct workload_view *view, struct error *e)
{
    struct event event = { .type = EV_WORKLOAD_SUBMITTED, .version = row->record_version };
    struct workload_record *r = &event.workload_submitted;
    struct str path = row->project_path;
    enum err rc = event_body_decode(row->record_json, &page->arena, &event, e);
    if (rc != ERR_OK)
        return rc;

    r->state = row->state;
    r->cause = row->cause;
    r->detail = row->detail;
    r->attempt = row->attempt;
    r->evictions = row->evictions;
    r->failures = row->failures;
    r->node_losses = row->node_losses;
    r->submitted = row->submitted;
    r->started = row->started;
    r->ended = row->ended;
    r->exit = row->exit;
    workload_view_of_record(view, r, &page->query->names, &page->arena);
    view->project = row->project_path;
    view->tenant = str_cut(&path, '/');
    view->version = row->key;
    return ERR_OK;
}

static enum err add_workload(void *arg, const struct ended_workload *row, struct error *e)
{
    struct page *page = arg;
    const struct workload_filter *filter = &page->query->filter;
    const struct workload_traits traits = { row->state, row->array, row->user, row->project_path };
    struct workload_view view;

    page->seen++;
    if (page->count == page->query->page.limit)
        return ERR_OK;
    page->last = row->key;
    if (!workload_filter_takes(filter, &traits))
        return ERR_OK;
    arena_reset(&page->arena);
    enum err rc = workload_of_row(page, row, &view, e);
    if (rc != ERR_OK || !workload_filter_takes_spec(filter, view.spec))
        return rc;
    view.spec = (struct str){ 0 };
    schema_encode(&page->w, &workload_view_schema, &view, WIRE_PUBLIC, &page->query->names);
    page->count++;
    return ERR_OK;
}

/* With a filter rows are asked for in steps until the page is full. */
static enum err run_workloads(struct page *page, struct query *connection, struct error *e)
{
    struct query_page rows = page->query->page;
    size_t limit = rows.limit;
    size_t scanned = 0;
    enum err rc = ERR_OK;

    if (workload_filter_is_set(&page->query->filter))
        rows.limit = SCAN_STEP;
    do {
        page->seen = 0;
        rc = query_ended_workloads(connection, &rows, add_workload, page, e);
        rows.after = page->last;
        scanned += page->seen;
    } while (rc == ERR_OK && page->seen == rows.limit && page->count < limit && scanned < SCAN_MAX);
    page->has_more = page->seen == rows.limit || page->count == limit;
    return rc;
}

static enum err add_one_workload(void *arg, const struct ended_workload *row, struct error *e)
{
    struct page *page = arg;
    struct id tenant = page->query->tenant;
    struct workload_view view;
    char text[ID_TEXT_MAX];

    if (!id_is_none(tenant) && !id_eq(tenant, row->tenant))
        return err_set(e, ERR_NOT_FOUND, "there is no workload \"%s\"",
                       id_text(ID_WORKLOAD, row->id, text));
    enum err rc = workload_of_row(page, row, &view, e);
    if (rc != ERR_OK)
        return rc;
    schema_encode(&page->w, &workload_view_schema, &view, WIRE_PUBLIC, &page->query->names);
    page->count++;
    return ERR_OK;
}

static enum err run_workload(struct page *page, struct query *connection, struct error *e)
{
    struct id id = page->query->workload;
    char text[ID_TEXT_MAX];
    enum err rc = query_workload(connection, id, add_one_workload, page, e);

    /* One text for what is absent and what is foreign. */
    if (rc == ERR_NOT_FOUND || (rc == ERR_OK && page->count == 0))
        return err_set(e, ERR_NOT_FOUND, "there is no workload \"%s\"",
                       id_text(ID_WORKLOAD, id, text));
    return rc;
}

/* ---- usage --------------------------------------------------------------------------------- */

static enum err add_segment(void *arg, const struct usage_row *row, struct error *e)
{
    struct page *page = arg;
    struct segment_view view;

    (void)e;
    segment_view_fill(&view, &row->segment, row->key, &page->query->names);
    schema_encode(&page->w, &segment_view_schema, &view, WIRE_PUBLIC, &page->query->names);
    page->count++;
    page->last = row->key;
    return ERR_OK;
}

/* ---- audit --------------------------------------------------------------------------------- */

/* What the journal keeps, without secrets and with names. Empty when it cannot be read. */
static struct str public_body(struct page *page, const struct audit_row *row)
{
    AUTO(buf) struct buf text = { 0 };
    struct json_writer w = json_writer_of(&text);
    struct event event = { .version = row->version };

    if (row->body.size == 0 || !event_parse_name(row->verb, &event.type) ||
        event_body_decode(row->body, &page->arena, &event, NULL) != ERR_OK)
        return (struct str){ 0 };
    schema_encode(&w, event_schema(event.type, event.version), &event.controller_started,
                  WIRE_PUBLIC, &page->query->names);
    return str_copy(&page->arena, buf_str(&text));
}

static enum err add_audit(void *arg, const struct audit_row *row, struct error *e)
{
    struct page *page = arg;

    (void)e;
    arena_reset(&page->arena);
    const struct audit_view view = {
        .sequence = row->key,
        .at = row->at,
        .role = row->actor.role,
        .actor = row->actor.name,
        .token = row->actor.token,
        .request = row->request,
        .tenant = row->tenant,
        .verb = row->verb,
        .object = row->object,
        .data = public_body(page, row),
    };
    schema_encode(&page->w, &audit_view_schema, &view, WIRE_PUBLIC, &page->query->names);
    page->count++;
    page->last = row->key;
    return ERR_OK;
}

/* ---- decisions ----------------------------------------------------------------------------- */

static enum err run_decisions(struct page *page, struct query *connection, struct error *e)
{
    struct decision_end end = { 0 };
    enum err rc = decisions_run(page->query, connection, &page->w, &end, e);
    page->last = end.last;
    page->has_more = end.has_more;
    return rc;
}

/* ---- pages --------------------------------------------------------------------------------- */

static enum err run_rows(struct page *page, struct query *connection, struct error *e)
{
    const struct query_page *rows = &page->query->page;
    enum err rc = ERR_OK;

    switch (page->query->kind) {
    case API_QUERY_WORKLOADS:
        return run_workloads(page, connection, e);
    case API_QUERY_WORKLOAD:
        return run_workload(page, connection, e);
    case API_QUERY_USAGE:
        rc = query_usage(connection, rows, add_segment, page, e);
        break;
    case API_QUERY_DECISIONS:
        return run_decisions(page, connection, e);
    case API_QUERY_AUDIT:
        rc = query_audit(connection, rows, add_audit, page, e);
        break;
    }
    page->has_more = page->count == rows->limit;
    return rc;
}

static enum err run_list(struct page *page, struct query *connection, struct error *e)
{
    char cursor[24];

    json_begin_object(&page->w);
    json_key(&page->w, "items");
    json_begin_array(&page->w);
    enum err rc = run_rows(page, connection, e);
    if (rc != ERR_OK)
        return rc;
    json_end_array(&page->w);
    /* A full page may be the last: then the next one is empty. */
    (void)snprintf(cursor, sizeof(cursor), "%" PRIu64,
                   hidden_of(page->query->names.hide_key, page->last));
    if (page->has_more)
        json_put_text(&page->w, "next", cursor);
    json_end_object(&page->w);
    return ERR_OK;
}

enum err api_query_run(const struct api_query *query, struct query *connection,
                       struct api_answer *answer, struct error *e)
{
    struct page page = { .query = query, .w = json_writer_of(&answer->body) };
    bool is_one = query->kind == API_QUERY_WORKLOAD;
    enum err rc = is_one ? run_rows(&page, connection, e) : run_list(&page, connection, e);

    arena_done(&page.arena);
    if (rc != ERR_OK) {
        buf_clear(&answer->body);
        return rc;
    }
    answer->status = 200;
    answer->content_type = "application/json";
    buf_add_char(&answer->body, '\n');
    return ERR_OK;
}
