#include <inttypes.h>

#include "store/sqlite_store.h"

static void bind_actor(struct sql_call *call, const struct actor *actor)
{
    sql_name(call, enum_name(&role_names, actor->role));
    sql_id(call, actor->tenant);
    sql_id(call, actor->token);
    sql_id(call, actor->node);
    sql_text(call, actor->name);
}

static enum err add_row(struct sqlite_store *store, const struct store_row *row, uint64_t *check,
                        struct error *e)
{
    buf_clear(&store->scratch);
    journal_encode(&store->scratch, row);
    *check = journal_check(&store->key, *check, buf_str(&store->scratch));

    struct sql_call call = sql_get(&store->sql, ST_JOURNAL_ADD);
    sql_u64(&call, row->sequence);
    sql_int(&call, (int64_t)row->type);
    sql_int(&call, row->version);
    sql_int(&call, row->at.ns);
    sql_int(&call, row->wall.ns);
    bind_actor(&call, &row->actor);
    sql_id(&call, row->request);
    sql_id(&call, row->tenant);
    sql_u64(&call, row->tenant_sequence);
    sql_text(&call, row->object);
    sql_text(&call, row->body);
    sql_u64(&call, *check);
    return sql_run(&call, e);
}

static enum err add_answer(struct sqlite_store *store, const struct store_answer *answer,
                           struct error *e)
{
    struct sql_call call = sql_get(&store->sql, ST_ANSWER_ADD);
    sql_u64(&call, answer->number);
    sql_digest(&call, &answer->key);
    sql_digest(&call, &answer->body_hash);
    sql_int(&call, answer->status);
    sql_u64(&call, answer->version);
    sql_int(&call, answer->expires.ns);
    sql_blob(&call, answer->content.data, answer->content.size);
    return sql_run(&call, e);
}

static enum err set_clock(struct sqlite_store *store, const struct store_clock *clock,
                          struct error *e)
{
    struct sql_call call = sql_get(&store->sql, ST_CLOCK_SET);
    sql_text(&call, clock->boot_id);
    sql_int(&call, clock->boottime_ns);
    sql_int(&call, clock->mono.ns);
    sql_int(&call, clock->wall.ns);
    return sql_run(&call, e);
}

static enum err advance(struct sqlite_store *store, uint64_t sequence, uint64_t check,
                        struct error *e)
{
    struct sql_call call = sql_get(&store->sql, ST_HEAD_ADVANCE);
    sql_u64(&call, sequence);
    sql_u64(&call, check);
    return sql_run(&call, e);
}

/* Leadership and numbering, as they are in this very transaction. */
static enum err check_batch(const struct sqlite_store *store, const struct store_head *head,
                            const struct store_batch *batch, struct error *e)
{
    if (store->base.epoch == 0 || head->epoch != store->base.epoch)
        return err_set(e, ERR_CONFLICT,
                       "epoch %" PRIu64 " no longer leads, the store is at %" PRIu64,
                       store->base.epoch, head->epoch);
    for (size_t i = 0; i < batch->event_count; i++) {
        uint64_t expected = head->sequence + 1 + i;
        if (batch->events[i].event->sequence != expected)
            return err_set(e, ERR_INVALID, "event %" PRIu64 " is out of order, expected %" PRIu64,
                           batch->events[i].event->sequence, expected);
    }
    return ERR_OK;
}

static enum err write_batch(struct sqlite_store *store, const struct store_batch *batch,
                            uint64_t *sequence, struct error *e)
{
    struct store_head head;
    enum err rc = head_read(&store->sql, &head, e);
    if (rc == ERR_OK)
        rc = check_batch(store, &head, batch, e);
    for (size_t i = 0; rc == ERR_OK && i < batch->event_count; i++) {
        struct store_row row = journal_row_of(&batch->events[i]);
        rc = add_row(store, &row, &head.check, e);
        if (rc == ERR_OK)
            rc = project_event(&sqlite_sink, &store->sql, &batch->events[i], e);
    }
    for (size_t i = 0; rc == ERR_OK && i < batch->answer_count; i++)
        rc = add_answer(store, &batch->answers[i], e);
    if (rc == ERR_OK)
        rc = set_clock(store, &batch->clock, e);
    *sequence = head.sequence + batch->event_count;
    if (rc == ERR_OK && batch->event_count != 0)
        rc = advance(store, *sequence, head.check, e);
    return rc;
}

enum err sqlite_append(struct store *base, const struct store_batch *batch, struct error *e)
{
    struct sqlite_store *store = sqlite_of(base);
    uint64_t sequence = 0;
    enum err rc = sqlite_begin(store, e);
    if (rc != ERR_OK)
        return rc;
    rc = write_batch(store, batch, &sequence, e);
    rc = sqlite_end(store, rc, e);
    if (rc != ERR_OK)
        return rc;
    if (sequence != store->sequence)
        store_mark_set(&store->lock, &store->key, sequence);
    store->sequence = sequence;
    return ERR_OK;
}
