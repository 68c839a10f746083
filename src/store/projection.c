#include "store/projection.h"

static enum err project_project(const struct projection_sink *sink, void *to,
                                const struct event *ev, struct error *e)
{
    const struct project_record *record = &ev->project_set;
    struct project_row row = {
        .id = record->id,
        .parent = record->parent,
        .tenant = id_is_none(record->parent) ? record->id : ev->tenant,
        .path = record->path,
    };
    return sink->project_set(to, &row, e);
}

static enum err project_submission(const struct projection_sink *sink, void *to,
                                   const struct store_event *event, struct error *e)
{
    const struct event *ev = event->event;
    const struct workload_record *record = &ev->workload_submitted;
    struct ended_workload row = {
        .key = ev->sequence,
        .id = record->id,
        .array = record->array,
        .project = record->project,
        .tenant = ev->tenant,
        .array_index = record->array_index,
        .name = record->name,
        .user = record->user,
        .state = record->state,
        .cause = record->cause,
        .detail = record->detail,
        .attempt = record->attempt,
        .evictions = record->evictions,
        .failures = record->failures,
        .node_losses = record->node_losses,
        .submitted = ev->wall,
        .exit = record->exit,
        .record_json = event->body,
        .record_version = ev->version,
    };
    return sink->workload_add(to, &row, e);
}

static enum err project_workload_change(const struct projection_sink *sink, void *to,
                                        const struct event *ev, struct error *e)
{
    const struct workload_changed *changed = &ev->workload_changed;
    struct workload_step step = {
        .id = changed->workload,
        .state = changed->state,
        .cause = changed->cause,
        .detail = changed->detail,
        .attempt = changed->attempt,
        .evictions = changed->evictions,
        .failures = changed->failures,
        .node_losses = changed->node_losses,
        .exit = changed->exit,
    };
    if (changed->state == WL_RUNNING)
        step.started = ev->wall;
    if (workload_state_is_final(changed->state))
        step.ended = ev->wall;
    return sink->workload_change(to, &step, e);
}

static enum err project_grant(const struct projection_sink *sink, void *to, const struct event *ev,
                              struct error *e)
{
    const struct allocation_record *record = &ev->allocation_granted;
    struct allocation_row row = {
        .key = ev->sequence,
        .id = record->id,
        .workload = record->workload,
        .project = record->project,
        .tenant = ev->tenant,
        .node = record->node,
        .attempt = record->attempt,
        .rank = record->rank,
        .class_number = record->class_number,
        .charge_milli = record->charge_milli,
        .state = record->state,
        .stop_cause = record->stop_cause,
        .evictor = record->evictor,
        .granted = ev->wall,
        .exit = record->exit,
    };
    return sink->allocation_add(to, &row, e);
}

static enum err project_usage(const struct projection_sink *sink, void *to, const struct event *ev,
                              struct error *e)
{
    const struct segment *segment = &ev->allocation_changed.segment;
    struct usage_row row = { .key = ev->sequence, .segment = *segment };
    enum err rc = sink->usage_add(to, &row, ev->wall, e);
    if (rc != ERR_OK)
        return rc;
    struct ledger_row by = {
        .project = segment->project,
        .class_number = segment->class_number,
        .tenant = segment->tenant,
        .amount_micros = segment->amount_micros,
        .segments = 1,
    };
    /* A total that stops at the top is wrong; one that wraps is a lie. */
    if (__builtin_mul_overflow(segment->charge_milli, segment->duration_ms, &by.milli_ms))
        by.milli_ms = INT64_MAX;
    return sink->ledger_grow(to, &by, e);
}

static enum err project_allocation_change(const struct projection_sink *sink, void *to,
                                          const struct event *ev, struct error *e)
{
    const struct allocation_changed *changed = &ev->allocation_changed;
    struct allocation_step step = {
        .id = changed->allocation,
        .state = changed->state,
        .stop_cause = changed->stop_cause,
        .evictor = changed->evictor,
        .exit = changed->exit,
    };
    if (changed->state == AL_RUNNING)
        step.started = ev->wall;
    if (!allocation_is_charged(changed->state))
        step.ended = ev->wall;
    enum err rc = ERR_OK;
    if (changed->has_segment)
        rc = project_usage(sink, to, ev, e);
    return rc == ERR_OK ? sink->allocation_change(to, &step, e) : rc;
}

/* What the event is about, for the filters of the audit. */
static struct audit_entry audit_entry_of(const struct store_event *event)
{
    const struct event *ev = event->event;
    struct audit_entry entry = { .event = event };
    if (ev->type == EV_PROJECT_SET) {
        entry.project = ev->project_set.id;
    } else if (ev->type == EV_PROJECT_REMOVED) {
        entry.project = ev->removed.id;
    } else if (ev->type == EV_WORKLOAD_SUBMITTED) {
        entry.workload = ev->workload_submitted.id;
        entry.project = ev->workload_submitted.project;
    } else if (ev->type == EV_WORKLOAD_CHANGED) {
        entry.workload = ev->workload_changed.workload;
    } else if (ev->type == EV_WORKLOAD_FORGOTTEN) {
        entry.workload = ev->removed.id;
    } else if (ev->type == EV_ALLOCATION_GRANTED) {
        entry.workload = ev->allocation_granted.workload;
        entry.project = ev->allocation_granted.project;
    } else if (ev->type == EV_ALLOCATION_CHANGED) {
        entry.allocation = ev->allocation_changed.allocation;
    } else if (ev->type == EV_ALLOCATION_NOTED) {
        entry.allocation = ev->allocation_noted.allocation;
    }
    return entry;
}

enum err project_event(const struct projection_sink *sink, void *to,
                       const struct store_event *event, struct error *e)
{
    const struct event *ev = event->event;
    struct audit_entry entry = audit_entry_of(event);
    /* The audit goes first where it needs what the change ends: an ended allocation has no id. */
    if (ev->type == EV_ALLOCATION_CHANGED) {
        enum err rc = sink->audit_add(to, &entry, e);
        return rc == ERR_OK ? project_allocation_change(sink, to, ev, e) : rc;
    }
    enum err rc = ERR_OK;
    if (ev->type == EV_PROJECT_SET)
        rc = project_project(sink, to, ev, e);
    else if (ev->type == EV_WORKLOAD_SUBMITTED)
        rc = project_submission(sink, to, event, e);
    else if (ev->type == EV_WORKLOAD_CHANGED)
        rc = project_workload_change(sink, to, ev, e);
    else if (ev->type == EV_ALLOCATION_GRANTED)
        rc = project_grant(sink, to, ev, e);
    return rc == ERR_OK ? sink->audit_add(to, &entry, e) : rc;
}
