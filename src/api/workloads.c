/* workloads.c - work: submitted, listed, acted on, explained. */
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "wire/spec_json.h"

/* Of waiting work the scheduler knows better than the record. */
static bool is_waiting(const struct workload *workload)
{
    return workload->r.state == WL_QUEUED || workload->r.state == WL_PROVISIONING;
}

/* The wall clock's time of a start that was promised; 0: none was. */
static struct wall promised_start(const struct call *c, const struct workload *workload)
{
    struct mono at = sched_promised(c->context->sched, workload);
    struct wall none = { 0 };
    if (at.ns == INT64_MAX)
        return none;
    return (struct wall){ c->context->wall.ns + (at.ns - c->context->now.ns) };
}

static void fill(const struct call *c, const struct workload *workload, enum view_depth depth,
                 struct workload_view *view)
{
    struct explanation why = { 0 };
    struct wait_reason reason = { 0 };
    bool has_reason = is_waiting(workload);

    if (has_reason) {
        sched_explain(c->context->sched, workload, c->context->now, call_arena(c), &why);
        reason = (struct wait_reason){ why.cause, why.text, why.position };
    }
    workload_view_fill(view, call_state(c), workload, has_reason ? &reason : NULL, depth,
                       call_arena(c));
    workload_view_fill_times(view, &workload->r, c->context->now);
    if (has_reason)
        view->promised_start_at = promised_start(c, workload);
}

/* Not in lists: it takes a look at every node of the workload. */
static void fill_image_progress(const struct call *c, const struct workload *workload,
                                struct workload_view *view)
{
    const struct api_ops *ops = c->context->ops;
    struct image_progress_view_list *list = &view->image_progress;
    size_t count = 0;

    if (ops->image_progress == NULL || workload->r.state != WL_STARTING)
        return;
    for (const struct allocation *a = workload->first_allocation; a != NULL;
         a = a->next_in_workload)
        count++;
    list->items = arena_new(call_arena(c), count, sizeof(*list->items));
    for (const struct allocation *a = workload->first_allocation; a != NULL;
         a = a->next_in_workload) {
        struct image_progress_message progress;
        if (a->r.state != AL_STARTING ||
            !ops->image_progress(ops->arg, a->r.node, &workload->r.image, &progress))
            continue;
        list->items[list->count++] = (struct image_progress_view){
            .node = a->node->r.name,
            .phase = progress.phase,
            .done_bytes = progress.done_bytes,
            .total_bytes = progress.total_bytes,
            .detail = str_copy(call_arena(c), progress.detail),
        };
    }
}

static void answer_workload(struct call *c, const struct workload *workload)
{
    struct workload_view view;

    fill(c, workload, VIEW_FULL, &view);
    fill_image_progress(c, workload, &view);
    call_answer(c, &workload_view_schema, &view, workload->r.version);
}

/* ---- submission ---------------------------------------------------------------------------- */

/* Without a command the image's own is run; an image that has none would only fail, later
 * and on a node. */
static enum err check_command(const struct call *c, const struct workload_spec *spec,
                              const struct project *project, struct error *e)
{
    const struct api_ops *ops = c->context->ops;
    const struct image *image = NULL;
    struct str_list own = { 0 };

    if (spec->command.count > 0 || ops->image_command == NULL)
        return ERR_OK;
    image = state_image_by_name(call_state(c), project->tenant->r.id, spec->image);
    if (image == NULL || /* said when the command is decided */
        !ops->image_command(ops->arg, &image->r.manifest, call_arena(c), &own) || own.count > 0)
        return ERR_OK;
    return err_field(e, "command",
                     "command: none is given, and the image %.*s has none of its own; give one",
                     STR_ARG(image->r.name));
}

enum err submit_workload(struct call *c, struct error *e)
{
    enum err rc = call_command(c, CMD_WORKLOAD_SUBMIT, e);
    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.submit, e);
    return rc == ERR_OK ? submit_fill(c, &c->result->command, e) : rc;
}

enum err submit_fill(const struct call *c, struct command *command, struct error *e)
{
    struct project *project = NULL;
    enum err rc = call_project(c, command->submit.project, &project, e);
    if (rc == ERR_OK)
        rc = check_command(c, &command->submit, project, e);
    if (rc != ERR_OK)
        return rc;

    command->submit.project = project->r.path;
    command->new_id = c->context->ops->new_id(c->context->ops->arg);
    command->spec_json = workload_spec_canonical(&command->submit, call_arena(c));
    if (command->spec_json.size > SPEC_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "a workload's spec of %zu bytes is larger than the %d allowed",
                       command->spec_json.size, (int)SPEC_MAX_BYTES);
    return ERR_OK;
}

enum err finish_submit(struct call *c, struct error *e)
{
    struct id id = c->before->command.new_id;
    const struct workload *workload = state_workload(call_state(c), id);
    bool is_array = workload == NULL;
    char text[ID_TEXT_MAX];

    if (is_array)
        workload = state_array(call_state(c), id);
    if (workload == NULL)
        return call_not_found("workload", str_of(id_text(ID_WORKLOAD, id, text)), e);
    answer_workload(c, workload);
    call_location(c, "/v1/workloads/", id_text(is_array ? ID_ARRAY : ID_WORKLOAD, id, text));
    return ERR_OK;
}

/* ---- lists --------------------------------------------------------------------------------- */

struct filter {
    const struct project *tenant, *project;
    struct workload_filter own;
};

static enum err parse_filter(const struct call *c, struct filter *filter, struct error *e)
{
    struct str project = call_param(c, "project");
    const struct workload_filter_text text = { .state = call_param(c, "state"),
                                               .array = call_param(c, "array"),
                                               .user = call_param(c, "user"),
                                               .label = call_param(c, "label") };
    struct project *found = NULL;
    enum err rc = call_tenant_param(c, &found, e);
    filter->tenant = found;
    if (rc == ERR_OK && project.data != NULL)
        rc = call_project(c, project, &found, e);
    if (rc == ERR_OK)
        rc = workload_filter_parse(&text, &filter->own, e);
    if (rc == ERR_OK)
        filter->project = project.data != NULL ? found : NULL;
    return rc;
}

static bool filter_takes(const struct filter *filter, const struct workload *workload)
{
    const struct workload_record *r = &workload->r;
    const struct workload_traits traits = { r->state, r->array, r->user,
                                            workload->project->r.path };

    return (filter->tenant == NULL || workload->project->tenant == filter->tenant) &&
           (filter->project == NULL || project_is_within(workload->project, filter->project)) &&
           workload_filter_takes(&filter->own, &traits) &&
           workload_filter_takes_spec(&filter->own, r->spec_json);
}

/* Where to go on: with a cursor, behind it. A workload that has left memory is no cursor
 * any more. */
static enum err first_of_page(const struct call *c, struct list *list, const struct workload **out,
                              struct error *e)
{
    struct workload *last = NULL;

    *out = call_state(c)->last_workload;
    if (list->after.data == NULL)
        return ERR_OK;
    if (call_workload(c, list->after, &last, NULL) != ERR_OK)
        return err_field(e, "after", "after: this workload has left the list; begin again");
    list->after = (struct str){ 0 };
    *out = last->prev;
    return ERR_OK;
}

static enum err list_live(struct call *c, const struct filter *filter, struct error *e)
{
    const struct workload *workload = NULL;
    struct list list;
    enum err rc = call_list_begin(c, &list, e);
    if (rc == ERR_OK)
        rc = first_of_page(c, &list, &workload, e);
    if (rc != ERR_OK)
        return rc;

    for (; workload != NULL && !list.has_more; workload = workload->prev) {
        char text[ID_TEXT_MAX];
        struct workload_view view;
        bool is_wanted =
            call_allows(c, workload->project->tenant->r.id) && filter_takes(filter, workload);
        if (!is_wanted || !list_wants(&list, id_text(ID_WORKLOAD, workload->r.id, text)))
            continue;
        fill(c, workload, VIEW_LIST, &view);
        list_add(&list, &workload_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

/* Ended work out of the store. */
static enum err list_history(struct call *c, const struct filter *filter, struct error *e)
{
    struct api_query *query = &c->result->query;
    enum err rc = call_limit(c, &query->page.limit, e);
    if (rc == ERR_OK)
        rc = call_cursor(c, &query->page.after, e);
    if (rc != ERR_OK)
        return rc;
    c->result->outcome = API_QUERY;
    query->kind = API_QUERY_WORKLOADS;
    query->filter = filter->own;
    if (filter->tenant != NULL)
        query->page.tenant = filter->tenant->r.id;
    if (filter->project != NULL) {
        query->page.tenant = filter->project->tenant->r.id;
        if (filter->project->first_child == NULL)
            query->page.project = filter->project->r.id; /* the store has an index for it */
        else
            query->filter.path = str_copy(call_arena(c), filter->project->r.path);
    }
    query->names = call_names_copy(c);
    query->arena = call_arena(c);
    return ERR_OK;
}

enum err list_workloads(struct call *c, struct error *e)
{
    struct filter filter = { 0 };
    bool is_history = false;
    enum err rc = parse_filter(c, &filter, e);
    if (rc == ERR_OK)
        rc = call_param_bool(c, "history", &is_history, e);
    if (rc != ERR_OK)
        return rc;
    return is_history ? list_history(c, &filter, e) : list_live(c, &filter, e);
}

/* ---- one workload -------------------------------------------------------------------------- */

/* Not in memory: perhaps in the store. Whose it is decides there as it would here. */
static enum err ask_store(struct call *c, struct error *e)
{
    struct api_query *query = &c->result->query;

    if (!id_parse(ID_WORKLOAD, c->request->params[0], &query->workload))
        return call_not_found("workload", c->request->params[0], e);
    c->result->outcome = API_QUERY;
    query->kind = API_QUERY_WORKLOAD;
    query->tenant = c->context->actor.tenant;
    query->names = call_names_copy(c);
    query->arena = call_arena(c);
    return ERR_OK;
}

enum err get_workload(struct call *c, struct error *e)
{
    struct workload *workload = NULL;

    if (call_workload(c, c->request->params[0], &workload, NULL) != ERR_OK)
        return ask_store(c, e);
    answer_workload(c, workload);
    return ERR_OK;
}

static struct wall wall_of(const struct call *c, struct mono at)
{
    return (struct wall){ c->context->wall.ns + (at.ns - c->context->now.ns) };
}

static void fill_advice(const struct call *c, const struct workload *workload,
                        struct explanation_view *view)
{
    struct advice advice;
    sched_advise(c->context->sched, workload, c->context->now, call_arena(c), &advice);
    view->blockers = advice.blockers;
    view->ahead = advice.ahead;
    view->ahead_count = advice.ahead_count;
    view->turn = advice.turn;
    view->others_come_first = advice.others_come_first;
    view->changes = advice.changes;
    if (advice.by.ns == INT64_MAX)
        return;
    view->starts_from = c->context->wall;
    view->starts_by = wall_of(c, advice.by);
}

enum err explain_workload(struct call *c, struct error *e)
{
    struct workload *workload = NULL;
    struct explanation why = { 0 };
    enum err rc = call_workload(c, c->request->params[0], &workload, e);
    if (rc != ERR_OK)
        return rc;

    struct explanation_view view = { .workload = workload->r.id,
                                     .state = workload->r.state,
                                     .cause = workload->r.cause,
                                     .detail = workload->r.detail };
    if (is_waiting(workload)) {
        sched_explain(c->context->sched, workload, c->context->now, call_arena(c), &why);
        view.cause = why.cause;
        view.detail = why.text;
        view.position = why.position;
        view.promised_start_at = promised_start(c, workload);
        fill_advice(c, workload, &view);
        if (mono_before(c->context->now, why.not_before))
            view.waits_s = (why.not_before.ns - c->context->now.ns + NS_PER_S - 1) / NS_PER_S;
    }
    if (workload->r.state == WL_HELD && view.detail.size == 0)
        view.detail = STR("no reason was given; `berth release` lets it start");
    view.meaning = str_of(view.cause != CAUSE_NONE ? cause_meaning(view.cause) : "");
    call_answer(c, &explanation_view_schema, &view, 0);
    return ERR_OK;
}

enum err list_workload_allocations(struct call *c, struct error *e)
{
    struct workload *workload = NULL;
    struct list list;
    enum err rc = call_workload(c, c->request->params[0], &workload, e);
    if (rc == ERR_OK)
        rc = call_list_begin(c, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct allocation *a = workload->first_allocation; a != NULL && !list.has_more;
         a = a->next_in_workload) {
        char text[ID_TEXT_MAX];
        struct allocation_view view;
        if (!list_wants(&list, id_text(ID_ALLOCATION, a->r.id, text)))
            continue;
        allocation_view_fill(&view, call_state(c), a);
        list_add(&list, &allocation_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

/* ---- logs ---------------------------------------------------------------------------------- */

static enum err parse_log(const struct call *c, struct api_log *log, struct error *e)
{
    int64_t offset = 0;
    int64_t stream = UNSET;
    enum err rc = call_param_i64(c, "member", 0, MEMBERS_MAX - 1, &log->member, e);
    if (rc == ERR_OK)
        rc = call_param_i64(c, "attempt", 1, INT32_MAX, &log->attempt, e);
    if (rc == ERR_OK)
        rc = call_param_i64(c, "offset", 0, INT64_MAX, &offset, e);
    if (rc == ERR_OK)
        rc = call_param_i64(c, "tail_bytes", 1, INT64_MAX, &log->tail_bytes, e);
    if (rc == ERR_OK)
        rc = call_param_bool(c, "follow", &log->is_follow, e);
    if (rc == ERR_OK)
        rc = call_param_enum(c, "stream", &log_stream_names, &stream, e);
    if (rc != ERR_OK)
        return rc;
    log->offset = (uint64_t)offset;
    log->has_both = stream == UNSET;
    log->stream = stream == UNSET ? LOG_STDOUT : (enum log_stream)stream;
    return ERR_OK;
}

static enum err check_log(const struct api_log *log, const struct workload_record *record,
                          struct error *e)
{
    if (log->member >= record->members)
        return err_set(e, ERR_NOT_FOUND, "there is no member %lld: its members are 0 to %lld",
                       (long long)log->member, (long long)record->members - 1);
    if (log->attempt > record->attempt)
        return err_set(e, ERR_NOT_FOUND, "there is no attempt %lld: %lld of it began",
                       (long long)log->attempt, (long long)record->attempt);
    return ERR_OK;
}

/* Of work that has left memory the server knows from the log store whose it is. */
enum err get_logs(struct call *c, struct error *e)
{
    struct api_log *log = &c->result->log;
    struct workload *workload = NULL;
    enum err rc = parse_log(c, log, e);
    if (rc != ERR_OK)
        return rc;

    c->result->outcome = API_LOG;
    log->tenant = c->context->actor.tenant;
    if (call_workload(c, c->request->params[0], &workload, NULL) == ERR_OK) {
        log->workload = workload->r.id;
        log->project = workload->project->r.id;
        log->tenant = workload->project->tenant->r.id;
        rc = check_log(log, &workload->r, e);
        log->attempt = log->attempt != 0 ? log->attempt : workload->r.attempt;
        return rc;
    }
    if (!id_parse(ID_WORKLOAD, c->request->params[0], &log->workload) ||
        state_workload(call_state(c), log->workload) != NULL)
        return call_not_found("workload", c->request->params[0], e);
    return ERR_OK;
}

/* ---- actions ------------------------------------------------------------------------------- */

static enum err act(struct call *c, enum command_type type, struct error *e)
{
    struct workload *workload = NULL;
    struct id array = { 0 };
    enum err rc = call_workload(c, c->request->params[0], &workload, e);
    if (rc != ERR_OK)
        return rc;

    bool is_array = id_parse(ID_ARRAY, c->request->params[0], &array);
    return call_action(c, type, is_array ? array : workload->r.id, e);
}

enum err cancel_workload(struct call *c, struct error *e)
{
    return act(c, CMD_WORKLOAD_CANCEL, e);
}

enum err hold_workload(struct call *c, struct error *e)
{
    return act(c, CMD_WORKLOAD_HOLD, e);
}

enum err release_workload(struct call *c, struct error *e)
{
    return act(c, CMD_WORKLOAD_RELEASE, e);
}

enum err requeue_workload(struct call *c, struct error *e)
{
    return act(c, CMD_WORKLOAD_REQUEUE, e);
}

enum err finish_workload(struct call *c, struct error *e)
{
    struct workload *workload = NULL;
    enum err rc = call_workload(c, c->request->params[0], &workload, e);

    if (rc == ERR_OK)
        answer_workload(c, workload);
    return rc;
}
