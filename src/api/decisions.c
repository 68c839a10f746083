/*
 * decisions.c - decisions out of the rows of the audit, the newest first.
 *
 * A decision is several events of one moment: the step of the workload, and one for each member.
 * A start says the workload's step before its members, an eviction behind them; so what is read
 * backwards opens an eviction with its step, and closes a start with it. Members that no step
 * belongs to joined or left work that goes on.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "wire/event_json.h"
#include "wire/resource.h"

/* Rows of one call, and of one page: then the client asks again, and others get a turn. */
enum { SCAN_STEP = 500, SCAN_MAX = 50000 };

/* By cause, since that is what the journal says. */
static const char *const rules[CAUSE_COUNT] = {
    [CAUSE_GRANTED] = "allocate",
    [CAUSE_RECLAIMED_FOR_QUOTA] = "reclaim",
    [CAUSE_RECLAIMED_FOR_SHARE] = "reclaim",
    [CAUSE_RECLAIMED_FOR_RESERVATION] = "reservation",
    [CAUSE_RESERVATION_ENDED] = "reservation",
    [CAUSE_PREEMPTED_BY_PRIORITY] = "preempt",
    [CAUSE_CONSOLIDATED] = "consolidate",
    [CAUSE_DRAINED] = "drain",
    [CAUSE_STALE_GANG] = "stale_gang",
    [CAUSE_TIME_LIMIT] = "time_limit",
    [CAUSE_START_TIMEOUT] = "start_timeout",
    [CAUSE_IDLE_TIMEOUT] = "idle_timeout",
    [CAUSE_BUDGET_EXHAUSTED] = "budget",
    [CAUSE_NODE_FAILURE] = "node_failure",
    [CAUSE_DEVICE_FAILURE] = "node_failure",
    [CAUSE_DEPENDENCY_FAILED] = "dependency",
    [CAUSE_NOT_NEEDED] = "dependency",
    [CAUSE_MISCONFIGURED] = "set_aside",
};

enum shape { SHAPE_OTHER, SHAPE_STEP, SHAPE_GRANT, SHAPE_STOP };

/* One row that is part of a decision. */
struct part {
    enum shape shape;
    uint64_t key;
    struct wall at;
    struct id workload;
    struct event event;
};

struct decision {
    uint64_t key;
    struct wall at;
    const char *rule;
    enum cause cause;
    struct str detail;
    struct id workload, evictor, last_node;
    int64_t attempt, class_number, members, nodes, charge_milli;
    bool is_start, is_borrowed;
};

struct scan {
    const struct api_query *query;
    struct arena arena;     /* of what is found */
    struct arena row_arena; /* of one row */
    VEC(struct decision) found;
    struct decision open; /* key 0: none */
    size_t seen;          /* rows that the store gave, of one call */
    uint64_t last;        /* row looked at */
    uint64_t done;        /* row behind which a next page begins */
    bool is_over;         /* the page is full, or all that is left is too old */
    bool is_old;          /* the latter */
};

int decision_compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct id));
}

static bool is_named_before(size_t i)
{
    bool is_named = false;
    for (size_t k = 0; k < i && !is_named; k++)
        is_named = rules[k] != NULL && strcmp(rules[k], rules[i]) == 0;
    return is_named;
}

enum err decision_rule_parse(struct str text, const char **out, struct error *e)
{
    AUTO(buf) struct buf known = { 0 };
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        if (rules[i] == NULL || is_named_before(i))
            continue;
        if (str_is(text, rules[i])) {
            *out = rules[i];
            return ERR_OK;
        }
        buf_format(&known, "%s%s", known.size > 0 ? ", " : "", rules[i]);
    }
    return err_field(e, "rule", "rule: must be one of %s", known.data);
}

/* ---- which rows -------------------------------------------------------------------------- */

static enum event_type decided_type(const struct audit_row *row)
{
    enum event_type type = EV_NONE;
    if (row->actor.role != ROLE_SYSTEM || row->body.size == 0 ||
        !event_parse_name(row->verb, &type))
        return EV_NONE;
    return type;
}

static bool wants_project(const struct scan *scan, struct id project)
{
    const struct id_list *wanted = &scan->query->decisions.projects;
    return wanted->count == 0 || bsearch(&project, wanted->items, wanted->count, sizeof(project),
                                         decision_compare_ids) != NULL;
}

/* All that the scheduler does to a workload is its decision; of what else the controller does by
 * itself, that it stops one. What follows from a stop is none of its own. */
static enum shape shape_of(const struct event *event, bool is_scheduler)
{
    if (event->type == EV_WORKLOAD_CHANGED)
        return is_scheduler || event->workload_changed.state == WL_STOPPING ? SHAPE_STEP
                                                                            : SHAPE_OTHER;
    if (event->type == EV_ALLOCATION_GRANTED)
        return SHAPE_GRANT;
    return event->allocation_changed.state == AL_STOPPING ? SHAPE_STOP : SHAPE_OTHER;
}

static enum err part_read(struct scan *scan, const struct audit_row *row, struct part *part,
                          struct error *e)
{
    enum event_type type = decided_type(row);
    *part = (struct part){ .key = row->key, .at = row->at, .workload = row->workload };
    bool is_wanted = type == EV_WORKLOAD_CHANGED || type == EV_ALLOCATION_GRANTED ||
                     type == EV_ALLOCATION_CHANGED;
    if (!is_wanted || !wants_project(scan, row->project))
        return ERR_OK;
    arena_reset(&scan->row_arena);
    part->event = (struct event){ .type = type, .version = row->version };
    enum err rc = event_body_decode(row->body, &scan->row_arena, &part->event, e);
    if (rc != ERR_OK)
        return rc;
    part->shape = shape_of(&part->event, str_is(row->actor.name, "scheduler"));
    if (type == EV_WORKLOAD_CHANGED)
        part->workload = part->event.workload_changed.workload;
    if (type == EV_ALLOCATION_GRANTED)
        part->workload = part->event.allocation_granted.workload;
    return ERR_OK;
}

/* ---- from rows to decisions -------------------------------------------------------------- */

static void decision_end(struct scan *scan)
{
    const struct decision *open = &scan->open;
    const struct decision_filter *filter = &scan->query->decisions;
    bool is_wanted = open->key != 0 && open->rule != NULL &&
                     (filter->rule == NULL || strcmp(filter->rule, open->rule) == 0);
    if (is_wanted)
        vec_push(&scan->found, *open);
    scan->open = (struct decision){ 0 };
    scan->done = scan->last;
    scan->is_over = scan->is_over || scan->found.count == scan->query->page.limit;
}

static bool belongs(const struct scan *scan, const struct part *part, bool is_start)
{
    const struct decision *open = &scan->open;
    return open->key != 0 && open->is_start == is_start && open->at.ns == part->at.ns &&
           id_eq(open->workload, part->workload);
}

/* Ends what was open, unless this row goes on with it. False: the page is full without it. */
static bool decision_go_on(struct scan *scan, const struct part *part, bool is_start)
{
    if (belongs(scan, part, is_start))
        return true;
    if (scan->open.key != 0)
        decision_end(scan);
    if (scan->is_over)
        return false;
    scan->open = (struct decision){
        .key = part->key, .at = part->at, .workload = part->workload, .is_start = is_start
    };
    return true;
}

static void set_cause(struct decision *open, enum cause cause)
{
    open->cause = cause;
    open->rule = rules[cause];
}

static void add_step(struct scan *scan, const struct part *part)
{
    const struct workload_changed *step = &part->event.workload_changed;
    bool is_start = step->state == WL_STARTING;
    if (!decision_go_on(scan, part, is_start))
        return;
    struct decision *open = &scan->open;
    open->key = part->key;
    open->attempt = step->attempt;
    open->detail = str_copy(&scan->arena, step->detail);
    set_cause(open, step->cause);
    if (!is_start)
        return; /* its members come behind it, that is before */
    scan->last = part->key;
    decision_end(scan);
}

static void add_grant(struct scan *scan, const struct part *part)
{
    const struct allocation_record *grant = &part->event.allocation_granted;
    if (!decision_go_on(scan, part, true))
        return;
    struct decision *open = &scan->open;
    if (open->rule == NULL)
        set_cause(open, CAUSE_GRANTED);
    open->nodes += !id_eq(open->last_node, grant->node);
    open->last_node = grant->node;
    open->attempt = grant->attempt;
    open->class_number = grant->class_number;
    open->charge_milli += grant->charge_milli;
    open->is_borrowed = open->is_borrowed || grant->is_borrowed;
    open->members++;
}

static void add_stop(struct scan *scan, const struct part *part)
{
    const struct allocation_changed *stop = &part->event.allocation_changed;
    if (!decision_go_on(scan, part, false))
        return;
    struct decision *open = &scan->open;
    if (open->rule == NULL)
        set_cause(open, stop->stop_cause);
    open->evictor = stop->evictor;
    open->members++;
}

static enum err on_row(void *arg, const struct audit_row *row, struct error *e)
{
    struct scan *scan = arg;
    struct part part;
    scan->seen++;
    if (scan->is_over)
        return ERR_OK;
    if (row->at.ns < scan->query->decisions.since.ns) {
        decision_end(scan);
        scan->is_over = scan->is_old = true;
        return ERR_OK;
    }
    enum err rc = part_read(scan, row, &part, e);
    if (rc != ERR_OK)
        return rc;
    if (part.shape == SHAPE_STEP)
        add_step(scan, &part);
    else if (part.shape == SHAPE_GRANT)
        add_grant(scan, &part);
    else if (part.shape == SHAPE_STOP)
        add_stop(scan, &part);
    if (scan->is_over)
        return ERR_OK;
    scan->last = row->key;
    if (scan->open.key == 0)
        scan->done = row->key;
    return ERR_OK;
}

/* ---- what else is known of the workloads ---------------------------------------------------- */

struct known {
    struct id tenant;
    struct str name, project, user;
    struct wall submitted;
    int64_t gpu_milli; /* of one member; 0: not by number */
    struct arena *arena;
};

static enum err on_workload(void *arg, const struct ended_workload *row, struct error *e)
{
    struct known *known = arg;
    struct event event = { .type = EV_WORKLOAD_SUBMITTED, .version = row->record_version };
    enum err rc = event_body_decode(row->record_json, known->arena, &event, e);
    if (rc != ERR_OK)
        return rc;
    const struct request *request = &event.workload_submitted.request;
    known->tenant = row->tenant;
    known->name = str_copy(known->arena, row->name);
    known->project = str_copy(known->arena, row->project_path);
    known->user = str_copy(known->arena, row->user);
    known->submitted = row->submitted;
    known->gpu_milli =
        request->devices > 0 ? request->devices * request->share_milli : request->gpu_milli;
    return ERR_OK;
}

/* All zero when it is no longer kept. */
static enum err look_up(struct query *connection, struct id workload, struct arena *arena,
                        struct known *out, struct error *e)
{
    *out = (struct known){ .arena = arena };
    if (id_is_none(workload))
        return ERR_OK;
    enum err rc = query_workload(connection, workload, on_workload, out, NULL);
    if (rc != ERR_OK && rc != ERR_NOT_FOUND)
        return err_set(e, rc, "a workload of the journal cannot be read");
    return ERR_OK;
}

/* Of whom it was stopped for a tenant sees only its own. */
static void show_evictor(const struct api_query *query, const struct known *own,
                         const struct known *evictor, struct decision_view *view)
{
    bool is_hidden = query->names.hide_key != NULL && !id_eq(own->tenant, evictor->tenant);
    if (is_hidden)
        view->evictor = (struct id){ 0 };
    else
        view->evictor_project = evictor->project;
}

static enum err put(struct scan *scan, const struct decision *d, struct query *connection,
                    struct json_writer *w, struct error *e)
{
    const struct api_query *query = scan->query;
    struct known own;
    struct known evictor;
    arena_reset(&scan->row_arena);
    enum err rc = look_up(connection, d->workload, &scan->row_arena, &own, e);
    if (rc == ERR_OK)
        rc = look_up(connection, d->evictor, &scan->row_arena, &evictor, e);
    if (rc != ERR_OK)
        return rc;
    struct decision_view view = {
        .sequence = d->key,
        .at = d->at,
        .rule = str_of(d->rule),
        .cause = d->cause,
        .detail = d->detail,
        .workload = d->workload,
        .name = own.name,
        .project = own.project,
        .user = own.user,
        .attempt = d->attempt,
        .members = d->members,
        .nodes = d->nodes,
        .charge_milli = d->is_start ? d->charge_milli : d->members * own.gpu_milli,
        .is_borrowed = d->is_borrowed,
        .evictor = d->evictor,
    };
    if (d->is_start) {
        view.class_name = query->names.class_name(query->names.arg, d->class_number);
        if (own.submitted.ns != 0)
            view.waited_s = MAX_OF((d->at.ns - own.submitted.ns) / NS_PER_S, INT64_C(0));
    }
    show_evictor(query, &own, &evictor, &view);
    schema_encode(w, &decision_view_schema, &view, WIRE_PUBLIC, &query->names);
    return ERR_OK;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static enum err scan_rows(struct scan *scan, struct query *connection, struct decision_end *end,
                          struct error *e)
{
    struct query_page rows = scan->query->page;
    size_t scanned = 0;
    enum err rc = ERR_OK;
    rows.limit = SCAN_STEP;
    do {
        scan->seen = 0;
        rc = query_audit(connection, &rows, on_row, scan, e);
        rows.after = scan->last;
        scanned += scan->seen;
    } while (rc == ERR_OK && scan->seen == rows.limit && !scan->is_over && scanned < SCAN_MAX);
    if (rc != ERR_OK)
        return rc;
    bool is_end = scan->seen < rows.limit && !scan->is_over;
    if (is_end)
        decision_end(scan);
    end->last = scan->done != 0 ? scan->done : scan->last;
    end->has_more = !is_end && !scan->is_old;
    return ERR_OK;
}

enum err decisions_run(const struct api_query *query, struct query *connection,
                       struct json_writer *w, struct decision_end *end, struct error *e)
{
    struct scan scan = { .query = query };
    enum err rc = scan_rows(&scan, connection, end, e);
    for (size_t i = 0; rc == ERR_OK && i < scan.found.count; i++)
        rc = put(&scan, &scan.found.items[i], connection, w, e);
    vec_done(&scan.found);
    arena_done(&scan.arena);
    arena_done(&scan.row_arena);
    return rc;
}
