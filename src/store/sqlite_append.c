#include <inttypes.h>

#include "store/lz.h"
#include "store/sqlite_store.h"

static enum err write_part(struct sqlite_store *store, struct error *e)
{
    struct sql_call call = sql_get(&store->sql, ST_PART_ADD);
    enum err rc = journal_part_write(&store->part, lz_pack, &call, e);
    journal_part_begin(&store->part, store->part.last_check);
    return rc;
}

static enum err add_event(struct sqlite_store *store, const struct store_event *event,
                          struct error *e)
{
    struct store_row row = journal_row_of(event);
    journal_part_add(&store->part, &store->key, &row);
    enum err rc = ERR_OK;
    if (journal_part_is_full(&store->part))
        rc = write_part(store, e);
    return rc == ERR_OK ? project_event(&sqlite_sink, &store->sql, event, e) : rc;
}

/* `*check` is that of the last row before, and becomes that of the last one. */
static enum err add_events(struct sqlite_store *store, const struct store_batch *batch,
                           uint64_t *check, struct error *e)
{
    enum err rc = ERR_OK;
    journal_part_begin(&store->part, *check);
    for (size_t i = 0; rc == ERR_OK && i < batch->event_count; i++)
        rc = add_event(store, &batch->events[i], e);
    if (rc == ERR_OK && store->part.count != 0)
        rc = write_part(store, e);
    *check = store->part.last_check;
    return rc;
}

static enum err add_answers(struct sqlite_store *store, const struct store_batch *batch,
                            struct error *e)
{
    if (batch->answer_count == 0)
        return ERR_OK;
    answer_pack_begin(&store->answers);
    for (size_t i = 0; i < batch->answer_count; i++)
        answer_pack_add(&store->answers, &batch->answers[i]);
    struct sql_call call = sql_get(&store->sql, ST_ANSWERS_ADD);
    return answer_pack_write(&store->answers, &call, e);
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
    if (rc == ERR_OK)
        rc = add_events(store, batch, &head.check, e);
    if (rc == ERR_OK)
        rc = add_answers(store, batch, e);
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
