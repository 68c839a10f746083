#include <string.h>

#include "store/memory_store.h"
#include "store/query_backend.h"

struct memory_query {
    struct query base; /* first: the vtable's functions cast back */
    struct memory_store *store;
};

static struct memory_store *store_of(struct query *query)
{
    return ((struct memory_query *)(void *)query)->store;
}

static bool wants(const struct id *filter, struct id value)
{
    return id_is_none(*filter) || id_eq(*filter, value);
}

/* Rows are looked up through the workload, as long as that is kept. */
static bool wants_workload(const struct memory_store *store, struct id filter, struct id value)
{
    return id_is_none(filter) ||
           (id_eq(filter, value) && id_map_get(&store->workloads_by_id, filter) != NULL);
}

static bool is_newer_end(const struct query_page *page, uint64_t key)
{
    return page->after != 0 && key >= page->after;
}

static enum err ended_workloads(struct query *query, const struct query_page *page,
                                ended_workload_fn *each, void *arg, struct error *e)
{
    struct memory_store *store = store_of(query);
    enum err rc = ERR_OK;
    size_t left = page->limit;
    for (size_t i = store->workloads.count; rc == ERR_OK && left > 0 && i > 0; i--) {
        const struct ended_workload *row = &store->workloads.items[i - 1]->row;
        if (row->ended.ns == 0 || is_newer_end(page, row->key) ||
            !wants(&page->tenant, row->tenant) || !wants(&page->project, row->project) ||
            !wants(&page->workload, row->id))
            continue;
        rc = each(arg, row, e);
        left--;
    }
    return rc;
}

static enum err one_workload(struct query *query, struct id id, ended_workload_fn *each, void *arg,
                             struct error *e)
{
    const struct memory_workload *found = id_map_get(&store_of(query)->workloads_by_id, id);
    if (found == NULL)
        return err_set(e, ERR_NOT_FOUND, "no such workload");
    return each(arg, &found->row, e);
}

static enum err usage(struct query *query, const struct query_page *page, usage_row_fn *each,
                      void *arg, struct error *e)
{
    struct memory_store *store = store_of(query);
    enum err rc = ERR_OK;
    size_t left = page->limit;
    for (size_t i = 0; rc == ERR_OK && left > 0 && i < store->usage.count; i++) {
        const struct usage_row *row = &store->usage.items[i]->row;
        if (row->key <= page->after || !wants(&page->tenant, row->segment.tenant) ||
            !wants(&page->project, row->segment.project) ||
            !wants_workload(store, page->workload, row->segment.workload))
            continue;
        rc = each(arg, row, e);
        left--;
    }
    return rc;
}

static const struct store_row *journal_row(const struct memory_store *store, uint64_t sequence)
{
    if (sequence <= store->dropped)
        return NULL;
    return store->journal.items[sequence - store->dropped - 1];
}

static enum err audit(struct query *query, const struct query_page *page, audit_row_fn *each,
                      void *arg, struct error *e)
{
    struct memory_store *store = store_of(query);
    enum err rc = ERR_OK;
    size_t left = page->limit;
    for (size_t i = store->audit.count; rc == ERR_OK && left > 0 && i > 0; i--) {
        const struct memory_audit *kept = store->audit.items[i - 1];
        if (is_newer_end(page, kept->row.key) || !wants(&page->tenant, kept->row.tenant) ||
            !wants(&page->project, kept->project) ||
            !wants_workload(store, page->workload, kept->workload))
            continue;
        const struct store_row *stored = journal_row(store, kept->row.key);
        struct audit_row row = kept->row;
        if (stored != NULL) {
            row.body = stored->body;
            row.version = stored->version;
        }
        rc = each(arg, &row, e);
        left--;
    }
    return rc;
}

/* As in SQLite, what a feed can resume from is as long as both audit and journal keep it. */
static enum err events(struct query *query, const struct query_page *page, store_row_fn *each,
                       void *arg, struct error *e)
{
    struct memory_store *store = store_of(query);
    bool is_all = id_is_none(page->tenant);
    enum err rc = ERR_OK;
    size_t left = page->limit;
    for (size_t i = 0; rc == ERR_OK && left > 0 && i < store->audit.count; i++) {
        const struct memory_audit *kept = store->audit.items[i];
        uint64_t number = is_all ? kept->row.key : kept->tenant_sequence;
        if (number <= page->after || !wants(&page->tenant, kept->row.tenant))
            continue;
        const struct store_row *stored = journal_row(store, kept->row.key);
        if (stored == NULL)
            return err_set(e, ERR_NOT_FOUND, "event %llu is no longer kept",
                           (unsigned long long)kept->row.key);
        struct store_row row = *stored;
        row.tenant_sequence = kept->tenant_sequence;
        rc = each(arg, &row, e);
        left--;
    }
    return rc;
}

static enum err answer(struct query *query, const struct answer_lookup *lookup, struct arena *arena,
                       struct store_answer *out, struct error *e)
{
    const struct store_answer *kept = memory_answer(store_of(query), &lookup->key);
    if (kept != NULL && kept->number == lookup->number && kept->expires.ns > lookup->now.ns) {
        *out = *kept;
        out->content = str_copy(arena, kept->content);
        return ERR_OK;
    }
    return err_set(e, ERR_NOT_FOUND, "no answer is kept for this key");
}

static void memory_query_free(struct query *query)
{
    mem_free(query);
}

static const struct query_vtable memory_query_vtable = {
    .ended_workloads = ended_workloads,
    .workload = one_workload,
    .usage = usage,
    .audit = audit,
    .events = events,
    .answer = answer,
    .free = memory_query_free,
};

struct query *query_open_memory(struct store *store)
{
    struct memory_query *query = mem_new(1, sizeof(*query));
    query->base.vtable = &memory_query_vtable;
    query->store = memory_of(store);
    return &query->base;
}
