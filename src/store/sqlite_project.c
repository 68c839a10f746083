/* The projections as tables: one prepared statement a row operation. */
#include "store/sqlite_store.h"

static enum err put_project(void *to, const struct project_row *row, struct error *e)
{
    struct sql_call call = sql_get(to, ST_PROJECT_SET);
    sql_id(&call, row->id);
    sql_id(&call, row->parent);
    sql_id(&call, row->tenant);
    sql_text(&call, row->path);
    return sql_run(&call, e);
}

static enum err add_workload(void *to, const struct ended_workload *row, struct error *e)
{
    struct sql_call call = sql_get(to, ST_WORKLOAD_ADD);
    sql_u64(&call, row->key);
    sql_id(&call, row->id);
    sql_id(&call, row->array);
    sql_int(&call, row->array_index);
    sql_id(&call, row->project);
    sql_id(&call, row->tenant);
    sql_text(&call, row->name);
    sql_text(&call, row->user);
    sql_name(&call, enum_name(&workload_state_names, row->state));
    sql_name(&call, cause_name(row->cause));
    sql_text(&call, row->detail);
    sql_int(&call, row->attempt);
    sql_int(&call, row->evictions);
    sql_int(&call, row->failures);
    sql_int(&call, row->node_losses);
    sql_int(&call, row->submitted.ns);
    sql_int(&call, row->started.ns);
    sql_int(&call, row->ended.ns);
    sql_exit(&call, &row->exit);
    return sql_run(&call, e); /* the record is read from the journal, as long as that is live */
}

static enum err change_workload(void *to, const struct workload_step *step, struct error *e)
{
    struct sql_call call = sql_get(to, ST_WORKLOAD_CHANGE);
    sql_id(&call, step->id);
    sql_name(&call, enum_name(&workload_state_names, step->state));
    sql_name(&call, cause_name(step->cause));
    sql_text(&call, step->detail);
    sql_int(&call, step->attempt);
    sql_int(&call, step->evictions);
    sql_int(&call, step->failures);
    sql_int(&call, step->node_losses);
    sql_int(&call, step->started.ns);
    sql_int(&call, step->ended.ns);
    sql_exit(&call, &step->exit);
    return sql_run(&call, e);
}

static enum err add_allocation(void *to, const struct allocation_row *row, struct error *e)
{
    struct sql_call call = sql_get(to, ST_ALLOCATION_ADD);
    sql_u64(&call, row->key);
    sql_id(&call, row->id);
    sql_id(&call, row->workload);
    sql_id(&call, row->project);
    sql_id(&call, row->tenant);
    sql_id(&call, row->node);
    sql_int(&call, row->attempt);
    sql_int(&call, row->rank);
    sql_int(&call, row->class_number);
    sql_int(&call, row->charge_milli);
    sql_name(&call, enum_name(&allocation_state_names, row->state));
    sql_name(&call, cause_name(row->stop_cause));
    sql_id(&call, row->evictor);
    sql_int(&call, row->granted.ns);
    sql_int(&call, row->started.ns);
    sql_int(&call, row->ended.ns);
    sql_exit(&call, &row->exit);
    return sql_run(&call, e);
}

static enum err change_allocation(void *to, const struct allocation_step *step, struct error *e)
{
    struct sql_call call = sql_get(to, ST_ALLOCATION_CHANGE);
    sql_id(&call, step->id);
    sql_name(&call, enum_name(&allocation_state_names, step->state));
    sql_name(&call, cause_name(step->stop_cause));
    sql_id(&call, step->evictor);
    sql_int(&call, step->started.ns);
    sql_int(&call, step->ended.ns);
    sql_exit(&call, &step->exit);
    return sql_run(&call, e);
}

static enum err add_usage(void *to, const struct usage_row *row, struct wall recorded,
                          struct error *e)
{
    const struct segment *segment = &row->segment;
    struct sql_call call = sql_get(to, ST_USAGE_ADD);
    sql_u64(&call, row->key);
    sql_id(&call, segment->allocation);
    sql_id(&call, segment->workload);
    sql_id(&call, segment->project);
    sql_id(&call, segment->tenant);
    sql_int(&call, segment->class_number);
    sql_int(&call, segment->charge_milli);
    sql_int(&call, segment->start.ns);
    sql_int(&call, segment->duration_ms);
    sql_int(&call, segment->price_micros_per_hour);
    sql_int(&call, segment->amount_micros);
    sql_name(&call, cause_name(segment->cause));
    sql_int(&call, recorded.ns);
    return sql_run(&call, e);
}

static enum err grow_ledger(void *to, const struct ledger_row *by, struct error *e)
{
    struct sql_call call = sql_get(to, ST_LEDGER_GROW);
    sql_id(&call, by->project);
    sql_int(&call, by->class_number);
    sql_id(&call, by->tenant);
    sql_int(&call, by->milli_ms);
    sql_int(&call, by->amount_micros);
    sql_int(&call, by->segments);
    return sql_run(&call, e);
}

static enum err add_audit(void *to, const struct audit_entry *entry, struct error *e)
{
    const struct event *ev = entry->event->event;
    struct sql_call call = sql_get(to, ST_AUDIT_ADD);
    sql_u64(&call, ev->sequence);
    sql_int(&call, ev->wall.ns);
    sql_name(&call, enum_name(&role_names, ev->actor.role));
    sql_id(&call, ev->actor.tenant);
    sql_id(&call, ev->actor.token);
    sql_id(&call, ev->actor.node);
    sql_text(&call, ev->actor.name);
    sql_id(&call, ev->request);
    sql_id(&call, ev->tenant);
    sql_int(&call, (int64_t)ev->type);
    sql_text(&call, entry->event->object);
    sql_id(&call, entry->project);
    sql_id(&call, entry->workload);
    sql_id(&call, entry->allocation);
    sql_u64(&call, ev->tenant_sequence);
    return sql_run(&call, e);
}

enum err keep_record(struct sql *sql, const struct store_row *row, struct error *e)
{
    if (row->type != EV_WORKLOAD_SUBMITTED)
        return ERR_OK;
    struct sql_call call = sql_get(sql, ST_WORKLOAD_RECORD_ADD);
    sql_u64(&call, row->sequence);
    sql_text(&call, row->body);
    sql_int(&call, row->version);
    return sql_run(&call, e);
}

const struct projection_sink sqlite_sink = {
    .project_set = put_project,
    .workload_add = add_workload,
    .workload_change = change_workload,
    .allocation_add = add_allocation,
    .allocation_change = change_allocation,
    .usage_add = add_usage,
    .ledger_grow = grow_ledger,
    .audit_add = add_audit,
};

enum err sqlite_clear_projections(struct sql *sql, struct error *e)
{
    return sql_exec(sql,
                    "DELETE FROM projects; DELETE FROM workloads; DELETE FROM workload_records; "
                    "DELETE FROM allocations; DELETE FROM usage_segments; DELETE FROM ledger; "
                    "DELETE FROM audit",
                    e);
}
