/* reports.c - what was used, what happened, and the server itself. */
#include "api/call.h"
#include "api/handlers.h"
#include "ledger/ledger.h"

enum { DECISIONS_SINCE_S_MAX = 10 * 366 * 86400 };

/* ---- usage --------------------------------------------------------------------------------- */

/* What the query is about: a project, a tenant, or - for operators - everything (NULL). */
static enum err root_of_query(const struct call *c, struct project **out, struct error *e)
{
    struct str project = call_param(c, "project");
    enum err rc = call_tenant_param(c, out, e);

    if (rc == ERR_OK && project.data != NULL)
        rc = call_project(c, project, out, e);
    return rc;
}

static void fill_usage(const struct call *c, const struct usage_line *line, struct usage_view *view)
{
    const struct class_object *class = state_class(call_state(c), line->class_number);

    *view = (struct usage_view){
        .project = line->project->r.path,
        .milli_ms = line->milli_ms,
        .running_milli_ms = line->running_milli_ms,
        .amount_micros = line->amount_micros,
        .segments = line->segments,
    };
    if (class != NULL) {
        view->class_name = class->r.name;
        view->price_micros_per_hour = class->r.price_micros_per_hour;
    }
}

enum err get_usage(struct call *c, struct error *e)
{
    struct str class_name = call_param(c, "class");
    struct usage_report report = { 0 };
    struct project *root = NULL;
    struct list list;
    enum err rc = root_of_query(c, &root, e);
    if (rc == ERR_OK)
        rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    ledger_report(call_state(c), root, c->context->now, call_arena(c), &report);
    for (size_t i = 0; i < report.count; i++) {
        struct usage_view view;
        fill_usage(c, &report.lines[i], &view);
        if (class_name.data == NULL || str_eq(class_name, view.class_name))
            list_add(&list, &usage_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

enum err get_invoice(struct call *c, struct error *e)
{
    struct usage_report report = { 0 };
    struct project *tenant = NULL;
    struct invoice_view view = { .until = c->context->wall };
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;
    if (tenant == NULL)
        return err_field(e, "tenant", "tenant: name the tenant whose invoice it is");

    ledger_report(call_state(c), tenant, c->context->now, call_arena(c), &report);
    view.tenant = tenant->r.path;
    view.lines.items = arena_new(call_arena(c), report.count, sizeof(*view.lines.items));
    for (size_t i = 0; i < report.count; i++) {
        /* A line holds what is below its project: those of the tenant hold everything. */
        if (report.lines[i].project != tenant)
            continue;
        fill_usage(c, &report.lines[i], &view.lines.items[view.lines.count++]);
        view.total_micros += report.lines[i].amount_micros;
    }
    call_answer(c, &invoice_view_schema, &view, 0);
    return ERR_OK;
}

/* ---- questions to the store ---------------------------------------------------------------- */

static enum err ask_store(struct call *c, enum api_query_kind kind, struct error *e)
{
    struct api_query *query = &c->result->query;
    struct project *tenant = NULL;
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc == ERR_OK)
        rc = call_limit(c, &query->page.limit, e);
    if (rc == ERR_OK)
        rc = call_cursor(c, &query->page.after, e);
    if (rc != ERR_OK)
        return rc;

    c->result->outcome = API_QUERY;
    query->kind = kind;
    if (tenant != NULL)
        query->page.tenant = tenant->r.id;
    query->names = call_names_copy(c);
    query->arena = call_arena(c);
    return ERR_OK;
}

enum err list_segments(struct call *c, struct error *e)
{
    struct str name = call_param(c, "project");
    struct str workload = call_param(c, "workload");
    struct query_page *page = &c->result->query.page;
    struct project *project = NULL;
    enum err rc = ask_store(c, API_QUERY_USAGE, e);
    if (rc == ERR_OK && name.data != NULL)
        rc = call_project(c, name, &project, e);
    if (rc != ERR_OK)
        return rc;

    if (project != NULL)
        page->project = project->r.id;
    if (workload.data != NULL && !id_parse(ID_WORKLOAD, workload, &page->workload))
        return err_field(e, "workload", "workload: must be an id that begins with \"wl_\"");
    return ERR_OK;
}

enum err list_audit(struct call *c, struct error *e)
{
    return ask_store(c, API_QUERY_AUDIT, e);
}

/* Of a project and all below it. */
static void want_projects(struct call *c, const struct project *top)
{
    struct api_query *query = &c->result->query;
    struct id_list *list = &query->decisions.projects;
    size_t count = 0;
    for (const struct project *p = top; p != NULL; p = project_next(p))
        count += project_is_within(p, top);
    list->items = arena_new(call_arena(c), count, sizeof(*list->items));
    for (const struct project *p = top; list->count < count; p = project_next(p))
        list->items[list->count++] = p->r.id;
    qsort(list->items, list->count, sizeof(*list->items), decision_compare_ids);
    query->page.tenant = top->tenant->r.id;
    if (count == 1)
        query->page.project = top->r.id;
}

enum err list_decisions(struct call *c, struct error *e)
{
    struct api_query *query = &c->result->query;
    struct str name = call_param(c, "project");
    struct str workload = call_param(c, "workload");
    struct str rule = call_param(c, "rule");
    struct project *project = NULL;
    int64_t since_s = INT64_MIN;
    enum err rc = ask_store(c, API_QUERY_DECISIONS, e);
    if (rc == ERR_OK && name.data != NULL)
        rc = call_project(c, name, &project, e);
    if (rc == ERR_OK && rule.data != NULL)
        rc = decision_rule_parse(rule, &query->decisions.rule, e);
    if (rc == ERR_OK)
        rc = call_param_i64(c, "since_s", 0, DECISIONS_SINCE_S_MAX, &since_s, e);
    if (rc != ERR_OK)
        return rc;
    if (workload.data != NULL && !id_parse(ID_WORKLOAD, workload, &query->page.workload))
        return err_field(e, "workload", "workload: must be an id that begins with \"wl_\"");
    if (since_s >= 0)
        query->decisions.since.ns = c->context->wall.ns - since_s * NS_PER_S;
    if (project != NULL)
        want_projects(c, project);
    return ERR_OK;
}

/* ---- the feed ------------------------------------------------------------------------------ */

enum err watch_events(struct call *c, struct error *e)
{
    struct api_feed *feed = &c->result->feed;
    struct str workload = call_param(c, "workload");
    struct project *tenant = NULL;
    int64_t after = 0;
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc == ERR_OK)
        rc = call_param_i64(c, "after", 0, INT64_MAX, &after, e);
    if (rc != ERR_OK)
        return rc;
    if (workload.data != NULL && !id_parse(ID_WORKLOAD, workload, &feed->workload))
        return err_field(e, "workload", "workload: must be an id that begins with \"wl_\"");

    c->result->outcome = API_FEED;
    feed->view = call_is_operator(c) && tenant == NULL ? FEED_OPERATOR : FEED_TENANT;
    if (tenant != NULL)
        feed->tenant = tenant->r.id;
    feed->has_after = call_param(c, "after").data != NULL;
    feed->after = (uint64_t)after;
    /* What an EventSource sends by itself when it comes back: newer than what its address says. */
    struct str last = c->request->last_event_id;
    if (last.size == 0)
        return ERR_OK;
    if (!str_to_i64(last, 0, INT64_MAX, &after))
        return err_field(e, "Last-Event-ID", "Last-Event-ID: must be the id of an event");
    feed->has_after = true;
    feed->after = (uint64_t)after;
    return ERR_OK;
}

/* ---- the server ---------------------------------------------------------------------------- */

static void count_workloads(const struct state *state, const struct project *tenant,
                            struct status_view *view)
{
    for (const struct workload *w = state->first_workload; w != NULL; w = w->next) {
        if (tenant != NULL && w->project->tenant != tenant)
            continue;
        view->workloads_queued += w->r.state == WL_QUEUED || w->r.state == WL_PROVISIONING;
        view->workloads_running += w->r.state == WL_RUNNING;
        for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload)
            view->allocations++;
    }
}

static void count_projects(const struct state *state, const struct project *tenant,
                           struct status_view *view)
{
    for (const struct project *p = state->first_tenant; p != NULL; p = project_next(p)) {
        if (tenant != NULL && p->tenant != tenant)
            continue;
        view->tenants += p->parent == NULL;
        view->projects++;
    }
}

/* Members see the numbers of their own tenant, and nothing of the machines. */
enum err get_status(struct call *c, struct error *e)
{
    const struct state *state = call_state(c);
    const struct id own = c->context->actor.tenant;
    const struct project *tenant = id_is_none(own) ? NULL : state_project(state, own);
    struct status_view view = { .version = c->context->version, .now = c->context->wall };

    (void)e;
    count_projects(state, tenant, &view);
    count_workloads(state, tenant, &view);
    if (call_is_operator(c)) {
        view.epoch = state->epoch;
        view.sequence = state->sequence;
        for (const struct node *node = state->first_node; node != NULL; node = node->next) {
            view.nodes++;
            view.nodes_usable += node_is_usable(node);
        }
    }
    call_answer(c, &status_view_schema, &view, 0);
    return ERR_OK;
}

enum err get_whoami(struct call *c, struct error *e)
{
    const struct actor *actor = &c->context->actor;
    const struct project *tenant =
        id_is_none(actor->tenant) ? NULL : state_project(call_state(c), actor->tenant);
    const struct whoami_view view = {
        .role = actor->role,
        .user = actor->name,
        .tenant = tenant != NULL ? tenant->r.path : (struct str){ 0 },
        .token = actor->token,
    };

    (void)e;
    call_answer(c, &whoami_view_schema, &view, 0);
    return ERR_OK;
}

enum err get_openapi(struct call *c, struct error *e)
{
    (void)e;
    call_text(c, "application/json");
    buf_add_str(&c->answer->body, c->context->openapi);
    return ERR_OK;
}

static void answer_probe(struct call *c, const char *problem)
{
    call_text(c, "text/plain; charset=utf-8");
    if (problem != NULL)
        c->answer->status = 503;
    buf_format(&c->answer->body, "%s\n", problem != NULL ? problem : "ok");
}

enum err get_health(struct call *c, struct error *e)
{
    (void)e;
    answer_probe(c, c->context->ops->health(c->context->ops->arg));
    return ERR_OK;
}

enum err get_readiness(struct call *c, struct error *e)
{
    (void)e;
    answer_probe(c, c->context->ops->readiness(c->context->ops->arg));
    return ERR_OK;
}
