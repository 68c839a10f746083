/* whatif.c - what would follow: asked here, found out on a copy of the state, told by comparing. */
#include "core/whatif.h"

#include "api/call.h"
#include "api/handlers.h"
#include "model/policy.h"
#include "wire/resource.h"
#include "wire/spec_json.h"

enum { HORIZON_S = 86400, ROWS_MAX = 500 };

/* ---- asking -------------------------------------------------------------------------------- */

/* Deciding what is supposed takes long where that is 10,000 workloads: not before it is known that
 * it will be asked. */
static enum err may_ask(const struct call *c, struct error *e)
{
    const struct api_ops *ops = c->context->ops;

    return ops->may_ask != NULL ? ops->may_ask(ops->arg, c->context->actor.tenant, e) : ERR_OK;
}

/* Refused as the command itself would be; nothing is done with it. */
static enum err add_command(struct call *c, const struct command *command, struct error *e)
{
    struct api_whatif *whatif = &c->result->whatif;
    struct event_list events = { 0 };
    struct command *kept = &whatif->commands[whatif->count++];

    *kept = *command;
    kept->new_id = c->context->ops->new_id(c->context->ops->arg);
    kept->now = c->context->now;
    kept->wall = c->context->wall;
    return decide(call_state(c), c->context->sched, kept, call_arena(c), &events, e);
}

static enum err suppose_work(struct call *c, const struct workload_spec *spec, struct error *e)
{
    struct command command;
    enum err rc = call_command(c, CMD_WORKLOAD_SUBMIT, e);
    if (rc != ERR_OK)
        return rc;

    command = c->result->command;
    command.submit = *spec;
    rc = submit_fill(c, &command, e);
    return rc == ERR_OK ? add_command(c, &command, e) : rc;
}

static enum err suppose_change(struct call *c, const struct change_spec *spec, struct error *e)
{
    struct command command;
    enum err rc = call_command(c, CMD_CHANGE_CREATE, e);
    if (rc != ERR_OK)
        return rc;

    command = c->result->command;
    command.change = *spec;
    rc = call_zone_rule(c, spec->zone, &command.change.zone_rule, e);
    return rc == ERR_OK ? add_command(c, &command, e) : rc;
}

static enum err suppose_loss(struct call *c, struct str name, struct error *e)
{
    struct node *node = NULL;
    enum err rc = ERR_OK;

    if (!call_is_operator(c))
        return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED, "only operators lose nodes");
    rc = call_node(c, name, &node, e);
    if (rc == ERR_OK)
        c->result->whatif.lost = node->r.id;
    return rc;
}

static bool is_change_given(const struct change_spec *spec)
{
    struct policy_patch patch = { .quotas = { 0 },
                                  .priority = spec->priority,
                                  .log_quota_mib = spec->log_quota_mib,
                                  .log_days = spec->log_days,
                                  .settings = spec->settings };
    struct policy_cell cell;
    size_t at = 0;

    return spec->project.size > 0 || spec->quotas.count > 0 || policy_next(&patch, &at, &cell);
}

enum err ask_whatif(struct call *c, struct error *e)
{
    struct whatif_spec spec = { .horizon_s = UNSET };
    bool has_work = false;
    bool has_change = false;
    enum err rc = may_ask(c, e);
    if (rc == ERR_OK)
        rc = call_body(c, &spec, e);
    if (rc != ERR_OK)
        return rc;

    has_work = spec.submit.project.size > 0 || spec.submit.image.size > 0;
    has_change = is_change_given(&spec.change);
    if (!has_work && !has_change && spec.lose_node.size == 0)
        return err_field(e, "submit", "nothing is supposed: give submit, change or lose_node");
    if (spec.lose_node.size > 0)
        rc = suppose_loss(c, spec.lose_node, e);
    if (rc == ERR_OK && has_change)
        rc = suppose_change(c, &spec.change, e);
    if (rc == ERR_OK && has_work)
        rc = suppose_work(c, &spec.submit, e);
    c->result->whatif.horizon_s = spec.horizon_s != UNSET ? spec.horizon_s : HORIZON_S;
    c->result->outcome = API_WHATIF;
    return rc;
}

enum err get_snapshot(struct call *c, struct error *e)
{
    c->result->outcome = API_SNAPSHOT;
    return may_ask(c, e);
}

/* ---- telling ------------------------------------------------------------------------------- */

struct telling {
    const struct call *call;
    const struct whatif_run *before, *after;
    struct whatif_view view;
};

static struct wall wall_of(const struct telling *t, struct mono at)
{
    int64_t ahead_ns = at.ns - t->after->from.ns;

    if (at.ns == INT64_MAX)
        return (struct wall){ 0 };
    return (struct wall){ t->call->context->wall.ns + ahead_ns };
}

/* What is different for it; NULL: nothing. */
static const char *effect_of(const struct whatif_row *before, const struct whatif_row *after)
{
    bool starts_before = before->started.ns != INT64_MAX;
    bool starts_after = after->started.ns != INT64_MAX;

    if (after->is_new)
        return starts_after ? "starts" : "waits";
    if (after->evictions != before->evictions)
        return after->evictions > before->evictions ? "evicted" : "spared";
    if (starts_before != starts_after)
        return starts_after ? "starts_too" : "does_not_start";
    if (before->started.ns == after->started.ns)
        return NULL;
    return after->started.ns < before->started.ns ? "earlier" : "later";
}

static void tell_row(struct telling *t, const struct whatif_pair *pair)
{
    const struct whatif_row *before = pair->before;
    const struct whatif_row *after = pair->after;
    const struct whatif_row *any = pair->any;
    const struct project *project = state_project(call_state(t->call), any->project);
    const char *effect = effect_of(before, after);
    struct whatif_view *view = &t->view;

    if (project == NULL || !call_allows(t->call, project->tenant->r.id))
        return; /* of others nothing is told, not even how many */
    view->starts_before += before->started.ns != INT64_MAX;
    view->starts_after += after->started.ns != INT64_MAX;
    view->evictions_before += (int64_t)before->evictions;
    view->evictions_after += (int64_t)after->evictions;
    if (effect == NULL || view->work_count++ >= ROWS_MAX)
        return;
    struct whatif_row_view *row = &view->work.items[view->work.count++];
    *row = (struct whatif_row_view){
        .workload = any->workload,
        .name = any->name,
        .project = project->r.path,
        .effect = str_of(effect),
        .is_new = after->is_new,
        .started_before = wall_of(t, before->started),
        .started_after = wall_of(t, after->started),
        .delay_s = UNSET,
        .evictions_before = (int64_t)before->evictions,
        .evictions_after = (int64_t)after->evictions,
        .cause = after->evictions > 0 ? after->cause : before->cause,
    };
    if (before->started.ns != INT64_MAX && after->started.ns != INT64_MAX)
        row->delay_s = (after->started.ns - before->started.ns) / NS_PER_S;
}

static void tell_rows(struct telling *t)
{
    struct whatif_pair pair;
    size_t at = 0;

    while (whatif_next(t->before, t->after, &at, &pair))
        tell_row(t, &pair);
}

void api_whatif_answer(const struct api_request *request, const struct api_context *context,
                       const struct whatif_run *before, const struct whatif_run *after,
                       struct api_answer *answer)
{
    struct call call = { .request = request, .context = context, .answer = answer };
    struct telling t = { .call = &call, .before = before, .after = after };

    t.view.from = wall_of(&t, after->from);
    t.view.until = wall_of(&t, after->until);
    t.view.is_cut = before->is_cut || after->is_cut;
    t.view.waiting_before = call_is_operator(&call) ? (int64_t)before->waiting : UNSET;
    t.view.waiting_after = call_is_operator(&call) ? (int64_t)after->waiting : UNSET;
    t.view.work.items = arena_new(context->arena, ROWS_MAX, sizeof(*t.view.work.items));
    tell_rows(&t);
    answer->status = 200;
    call_answer(&call, &whatif_view_schema, &t.view, 0);
}
