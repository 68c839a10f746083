/* The projections as arrays in memory, row for row what sqlite_project.c keeps in tables. */
#include <string.h>

#include "store/memory_store.h"

void memory_keep(struct str *text)
{
    char *copy = NULL;
    if (text->size != 0) {
        copy = mem_new(text->size, 1);
        memcpy(copy, text->data, text->size);
    }
    text->data = copy;
}

void memory_drop(struct str *text)
{
    mem_free((char *)(uintptr_t)text->data);
    *text = (struct str){ 0 };
}

static enum err set_project(void *to, const struct project_row *row, struct error *e)
{
    struct memory_store *store = to;
    (void)e;
    struct project_row *kept = id_map_get(&store->projects_by_id, row->id);
    if (kept == NULL) {
        kept = mem_new(1, sizeof(*kept));
        vec_push(&store->projects, kept);
        id_map_put(&store->projects_by_id, row->id, kept);
    }
    struct str path = row->path;
    memory_keep(&path);
    memory_drop(&kept->path);
    *kept = *row;
    kept->path = path;
    return ERR_OK;
}

static enum err add_workload(void *to, const struct ended_workload *row, struct error *e)
{
    struct memory_store *store = to;
    if (id_map_get(&store->workloads_by_id, row->id) != NULL)
        return err_set(e, ERR_CONFLICT, "this workload was submitted before");
    const struct project_row *project = id_map_get(&store->projects_by_id, row->project);
    struct memory_workload *kept = mem_new(1, sizeof(*kept));
    kept->row = *row;
    if (project != NULL)
        kept->row.project_path = project->path;
    memory_keep(&kept->row.name);
    memory_keep(&kept->row.user);
    memory_keep(&kept->row.project_path);
    memory_keep(&kept->row.detail);
    memory_keep(&kept->row.record_json);
    vec_push(&store->workloads, kept);
    id_map_put(&store->workloads_by_id, row->id, kept);
    return ERR_OK;
}

void memory_drop_workload(struct memory_store *store, struct memory_workload *workload)
{
    (void)id_map_remove(&store->workloads_by_id, workload->row.id);
    memory_drop(&workload->row.name);
    memory_drop(&workload->row.user);
    memory_drop(&workload->row.project_path);
    memory_drop(&workload->row.detail);
    memory_drop(&workload->row.record_json);
    mem_free(workload);
}

static enum err change_workload(void *to, const struct workload_step *step, struct error *e)
{
    struct memory_store *store = to;
    struct memory_workload *kept = id_map_get(&store->workloads_by_id, step->id);
    (void)e;
    if (kept == NULL)
        return ERR_OK; /* retention took it */
    struct ended_workload *row = &kept->row;
    struct str detail = step->detail;
    memory_keep(&detail);
    memory_drop(&row->detail);
    row->detail = detail;
    if (step->started.ns > 0 && row->state != step->state)
        row->started = step->started;
    row->state = step->state;
    row->cause = step->cause;
    row->attempt = step->attempt;
    row->evictions = step->evictions;
    row->failures = step->failures;
    row->node_losses = step->node_losses;
    row->ended = step->ended;
    row->exit = step->exit;
    return ERR_OK;
}

static enum err add_allocation(void *to, const struct allocation_row *row, struct error *e)
{
    struct memory_store *store = to;
    if (id_map_get(&store->allocations_by_id, row->id) != NULL)
        return err_set(e, ERR_CONFLICT, "this allocation was granted before");
    struct memory_allocation *kept = mem_new(1, sizeof(*kept));
    kept->row = *row;
    vec_push(&store->allocations, kept);
    id_map_put(&store->allocations_by_id, row->id, kept);
    return ERR_OK;
}

static enum err change_allocation(void *to, const struct allocation_step *step, struct error *e)
{
    struct memory_store *store = to;
    struct memory_allocation *kept = id_map_get(&store->allocations_by_id, step->id);
    (void)e;
    if (kept == NULL)
        return ERR_OK; /* it has ended */
    struct allocation_row *row = &kept->row;
    if (step->started.ns > 0 && row->state != step->state)
        row->started = step->started;
    if (row->ended.ns == 0)
        row->ended = step->ended;
    row->state = step->state;
    row->stop_cause = step->stop_cause;
    row->evictor = step->evictor;
    row->exit = step->exit;
    if (row->state == AL_ENDED)
        (void)id_map_remove(&store->allocations_by_id, row->id);
    return ERR_OK;
}

static enum err add_usage(void *to, const struct usage_row *row, struct wall recorded,
                          struct error *e)
{
    struct memory_store *store = to;
    if (id_map_get(&store->billed, use_key(&row->segment)) != NULL)
        return err_set(e, ERR_CONFLICT, "this use of the allocation was recorded before");
    struct memory_usage *kept = mem_new(1, sizeof(*kept));
    kept->row = *row;
    kept->recorded = recorded;
    vec_push(&store->usage, kept);
    id_map_put(&store->billed, use_key(&row->segment), kept);
    return ERR_OK;
}

static int ledger_order(const struct ledger_row *a, const struct ledger_row *b)
{
    int order = id_cmp(a->project, b->project);
    if (order != 0)
        return order;
    return a->class_number < b->class_number ? -1 : a->class_number > b->class_number;
}

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static enum err grow_ledger(void *to, const struct ledger_row *by, struct error *e)
{
    struct memory_store *store = to;
    (void)e;
    size_t at = 0;
    while (at < store->ledger.count && ledger_order(store->ledger.items[at], by) < 0)
        at++;
    if (at == store->ledger.count || ledger_order(store->ledger.items[at], by) != 0) {
        struct ledger_row *made = mem_new(1, sizeof(*made));
        *made = *by;
        vec_push(&store->ledger, made);
        for (size_t i = store->ledger.count - 1; i > at; i--)
            store->ledger.items[i] = store->ledger.items[i - 1];
        store->ledger.items[at] = made;
        return ERR_OK;
    }
    struct ledger_row *row = store->ledger.items[at];
    row->milli_ms = add_capped(row->milli_ms, by->milli_ms);
    row->amount_micros = add_capped(row->amount_micros, by->amount_micros);
    row->segments += by->segments;
    return ERR_OK;
}

/* A journal older than these numbers has none: then they are counted again. */
static uint64_t tenant_sequence_of(const struct memory_store *store, const struct event *event)
{
    if (id_is_none(event->tenant) || event->tenant_sequence != 0)
        return event->tenant_sequence;
    for (size_t i = store->audit.count; i > 0; i--) {
        const struct memory_audit *kept = store->audit.items[i - 1];
        if (id_eq(kept->row.tenant, event->tenant))
            return kept->tenant_sequence + 1;
    }
    return 1;
}

static enum err add_audit(void *to, const struct audit_entry *entry, struct error *e)
{
    struct memory_store *store = to;
    const struct event *ev = entry->event->event;
    (void)e;
    struct memory_audit *kept = mem_new(1, sizeof(*kept));
    kept->row = (struct audit_row){
        .key = ev->sequence,
        .at = ev->wall,
        .actor = ev->actor,
        .request = ev->request,
        .tenant = ev->tenant,
        .verb = str_of(event_name(ev->type)),
        .object = entry->event->object,
    };
    memory_keep(&kept->row.actor.name);
    memory_keep(&kept->row.object);
    kept->type = ev->type;
    kept->tenant_sequence = tenant_sequence_of(store, ev);
    const struct memory_allocation *allocation =
        id_map_get(&store->allocations_by_id, entry->allocation);
    kept->workload = entry->workload;
    if (id_is_none(kept->workload) && allocation != NULL)
        kept->workload = allocation->row.workload;
    const struct memory_workload *workload = id_map_get(&store->workloads_by_id, entry->workload);
    kept->project = entry->project;
    if (id_is_none(kept->project) && workload != NULL)
        kept->project = workload->row.project;
    if (id_is_none(kept->project) && allocation != NULL)
        kept->project = allocation->row.project;
    kept->row.project = kept->project;
    kept->row.workload = kept->workload;
    vec_push(&store->audit, kept);
    return ERR_OK;
}

const struct projection_sink memory_sink = {
    .project_set = set_project,
    .workload_add = add_workload,
    .workload_change = change_workload,
    .allocation_add = add_allocation,
    .allocation_change = change_allocation,
    .usage_add = add_usage,
    .ledger_grow = grow_ledger,
    .audit_add = add_audit,
};

void memory_drop_allocation(struct memory_store *store, struct memory_allocation *allocation)
{
    if (id_map_get(&store->allocations_by_id, allocation->row.id) == allocation)
        (void)id_map_remove(&store->allocations_by_id, allocation->row.id);
    mem_free(allocation);
}

void memory_drop_usage(struct memory_store *store, struct memory_usage *usage)
{
    (void)id_map_remove(&store->billed, use_key(&usage->row.segment));
    mem_free(usage);
}

void memory_drop_audit(struct memory_audit *audit)
{
    memory_drop(&audit->row.actor.name);
    memory_drop(&audit->row.object);
    mem_free(audit);
}

void memory_clear_projections(struct memory_store *store)
{
    for (size_t i = 0; i < store->projects.count; i++) {
        memory_drop(&store->projects.items[i]->path);
        mem_free(store->projects.items[i]);
    }
    for (size_t i = 0; i < store->workloads.count; i++)
        memory_drop_workload(store, store->workloads.items[i]);
    for (size_t i = 0; i < store->allocations.count; i++)
        memory_drop_allocation(store, store->allocations.items[i]);
    for (size_t i = 0; i < store->usage.count; i++)
        memory_drop_usage(store, store->usage.items[i]);
    for (size_t i = 0; i < store->ledger.count; i++)
        mem_free(store->ledger.items[i]);
    for (size_t i = 0; i < store->audit.count; i++)
        memory_drop_audit(store->audit.items[i]);
    store->projects.count = store->workloads.count = store->allocations.count = 0;
    store->usage.count = store->ledger.count = store->audit.count = 0;
    id_map_done(&store->projects_by_id);
    id_map_done(&store->workloads_by_id);
    id_map_done(&store->allocations_by_id);
    id_map_done(&store->billed);
}
