/* workload.c - what people do to work that exists: cancel, hold, release, requeue. An array's id
 * stands for all of its elements. */
#include "core/lifecycle.h"

static const struct str no_detail;

/* The workload, or the first of the array, that the command names. */
static enum err find_workload(const struct decision *d, struct workload **out, bool *is_array,
                              struct error *e)
{
    struct id id = d->command->target.id;
    struct workload *workload = state_workload(d->state, id);
    *is_array = workload == NULL;
    if (workload == NULL)
        workload = state_array(d->state, id);
    char text[ID_TEXT_MAX];
    struct str name = d->command->target.name;
    if (name.size == 0)
        name = str_of(id_text(ID_WORKLOAD, id, text));
    if (workload == NULL || !decide_permits(d, workload->project->tenant->r.id))
        return not_found(e, "workload", name);
    if (!*is_array) {
        enum err rc = decide_match(d, workload->r.version, e);
        if (rc != ERR_OK)
            return rc;
    }
    *out = workload;
    return ERR_OK;
}

/* Applies `act` to the one workload, whose refusal is the answer, or to every element of the array,
 * where those that refuse are left as they are. */
static enum err act_on_target(struct decision *d,
                              enum err (*act)(struct decision *, struct workload *, struct error *),
                              struct error *e)
{
    struct workload *workload = NULL;
    bool is_array = false;
    enum err rc = find_workload(d, &workload, &is_array, e);
    if (rc != ERR_OK)
        return rc;
    if (!is_array)
        rc = act(d, workload, e);
    for (; is_array && workload != NULL; workload = workload->array_next)
        (void)act(d, workload, NULL); /* an element that cannot is no reason to spare the others */
    lifecycle_settle(d);
    return rc;
}

static enum cause cancel_cause(const struct decision *d)
{
    return d->actor.role == ROLE_MEMBER ? CAUSE_USER_CANCELLED : CAUSE_ADMIN_CANCELLED;
}

static struct str reason_of(const struct decision *d)
{
    return d->command->target.reason;
}

static enum err cancel(struct decision *d, struct workload *workload, struct error *e)
{
    (void)e; /* every state can be cancelled */
    if (workload_state_is_final(workload->r.state))
        return ERR_OK;
    struct workload_image *image = workload_image(d, workload);
    const struct stop stop = { .after = WL_CANCELLED,
                               .cause = cancel_cause(d),
                               .detail = reason_of(d) };
    bool is_asked = image->next.state == WL_STOPPING && image->next.after_stop == WL_CANCELLED;
    if (!is_asked)
        workload_stop(d, image, &stop);
    return ERR_OK;
}

enum err decide_workload_cancel(struct decision *d, struct error *e)
{
    enum err rc = check_text(d->command->target.reason, 1024, "reason", e);
    return rc == ERR_OK ? act_on_target(d, cancel, e) : rc;
}

static enum err refuse_state(const struct workload *workload, const char *what, struct error *e)
{
    return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "the workload is %s; %s",
                     enum_name(&workload_state_names, workload->r.state), what);
}

static enum err hold(struct decision *d, struct workload *workload, struct error *e)
{
    if (workload->r.state == WL_HELD)
        return ERR_OK;
    if (workload->r.state != WL_QUEUED)
        return refuse_state(workload, "only queued work can be held", e);
    /* What the controller holds by itself it could not decide about. */
    enum cause cause = d->actor.role == ROLE_SYSTEM ? CAUSE_MISCONFIGURED : CAUSE_HELD;
    workload_step(d, workload_image(d, workload), WL_HELD, cause, reason_of(d));
    return ERR_OK;
}

enum err decide_workload_hold(struct decision *d, struct error *e)
{
    enum err rc = check_text(d->command->target.reason, 1024, "reason", e);
    return rc == ERR_OK ? act_on_target(d, hold, e) : rc;
}

static enum err release(struct decision *d, struct workload *workload, struct error *e)
{
    if (workload_state_is_final(workload->r.state))
        return refuse_state(workload, "nothing of it waits any more", e);
    if (workload->r.state == WL_HELD)
        workload_step(d, workload_image(d, workload), WL_QUEUED, CAUSE_NONE, no_detail);
    return ERR_OK;
}

enum err decide_workload_release(struct decision *d, struct error *e)
{
    return act_on_target(d, release, e);
}

static enum err requeue(struct decision *d, struct workload *workload, struct error *e)
{
    enum workload_state state = workload->r.state;
    if (workload_state_is_final(state))
        return refuse_state(workload, "submit it again instead", e);
    if (state == WL_STOPPING && workload->r.after_stop != WL_QUEUED)
        return refuse_state(workload, "and will not go back to the queue; wait for its end", e);
    if (state != WL_STARTING && state != WL_RUNNING)
        return ERR_OK;
    if (workload->r.restart == RESTART_NEVER)
        return refuse_state(workload, "its restart is \"never\"; cancel it instead", e);
    const struct stop stop = { .after = WL_QUEUED,
                               .cause = CAUSE_USER_REQUEUED,
                               .detail = reason_of(d) };
    workload_stop(d, workload_image(d, workload), &stop);
    return ERR_OK;
}

enum err decide_workload_requeue(struct decision *d, struct error *e)
{
    enum err rc = check_text(d->command->target.reason, 1024, "reason", e);
    return rc == ERR_OK ? act_on_target(d, requeue, e) : rc;
}
