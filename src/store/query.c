#include "store/query_backend.h"

static enum err check_page(const struct query_page *page, struct error *e)
{
    if (page->limit < 1 || page->limit > QUERY_LIMIT_MAX)
        return err_field(e, "limit", "%zu is not in 1..%d", page->limit, QUERY_LIMIT_MAX);
    if (page->after > INT64_MAX)
        return err_field(e, "after", "no row has this key");
    return ERR_OK;
}

enum err query_ended_workloads(struct query *query, const struct query_page *page,
                               ended_workload_fn *each, void *arg, struct error *e)
{
    enum err rc = check_page(page, e);
    return rc == ERR_OK ? query->vtable->ended_workloads(query, page, each, arg, e) : rc;
}

enum err query_workload(struct query *query, struct id id, ended_workload_fn *each, void *arg,
                        struct error *e)
{
    return query->vtable->workload(query, id, each, arg, e);
}

enum err query_usage(struct query *query, const struct query_page *page, usage_row_fn *each,
                     void *arg, struct error *e)
{
    enum err rc = check_page(page, e);
    return rc == ERR_OK ? query->vtable->usage(query, page, each, arg, e) : rc;
}

enum err query_audit(struct query *query, const struct query_page *page, audit_row_fn *each,
                     void *arg, struct error *e)
{
    enum err rc = check_page(page, e);
    return rc == ERR_OK ? query->vtable->audit(query, page, each, arg, e) : rc;
}

enum err query_events(struct query *query, const struct query_page *page, store_row_fn *each,
                      void *arg, struct error *e)
{
    enum err rc = check_page(page, e);
    return rc == ERR_OK ? query->vtable->events(query, page, each, arg, e) : rc;
}

enum err query_answer(struct query *query, const struct answer_lookup *lookup, struct arena *arena,
                      struct store_answer *out, struct error *e)
{
    return query->vtable->answer(query, lookup, arena, out, e);
}

void query_free(struct query *query)
{
    if (query != NULL)
        query->vtable->free(query);
}
