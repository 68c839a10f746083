/* memory.c - the store of tests and of the simulator: the same promises, kept in memory. */
#include <inttypes.h>
#include <string.h>

#include "store/journal.h"
#include "store/memory_store.h"

enum { SNAPSHOTS_KEPT = 3 };

/* ---- append ---------------------------------------------------------------------------------- */

static enum err check_batch(const struct memory_store *store, const struct store_batch *batch,
                            struct error *e)
{
    if (store->base.epoch == 0 || store->epoch != store->base.epoch)
        return err_set(e, ERR_CONFLICT,
                       "epoch %" PRIu64 " no longer leads, the store is at %" PRIu64,
                       store->base.epoch, store->epoch);
    for (size_t i = 0; i < batch->event_count; i++) {
        uint64_t expected = store->sequence + 1 + i;
        if (batch->events[i].event->sequence != expected)
            return err_set(e, ERR_INVALID, "event %" PRIu64 " is out of order, expected %" PRIu64,
                           batch->events[i].event->sequence, expected);
    }
    return ERR_OK;
}

/* A key that exists, in the store or earlier in the batch. */
static bool is_taken(const struct id_map *stored, struct id_map *seen, struct id id)
{
    static char mark;
    if (id_map_get(stored, id) != NULL || id_map_get(seen, id) != NULL)
        return true;
    id_map_put(seen, id, &mark);
    return false;
}

/* Projections refuse these as well, but then part of the batch would stand. */
static enum err check_keys(const struct memory_store *store, const struct store_batch *batch,
                           struct error *e)
{
    struct id_map made = { 0 };
    struct id_map billed = { 0 };
    bool is_unique = true;
    for (size_t i = 0; is_unique && i < batch->event_count; i++) {
        const struct event *ev = batch->events[i].event;
        if (ev->type == EV_WORKLOAD_SUBMITTED)
            is_unique = !is_taken(&store->workloads_by_id, &made, ev->workload_submitted.id);
        else if (ev->type == EV_ALLOCATION_GRANTED)
            is_unique = !is_taken(&store->allocations_by_id, &made, ev->allocation_granted.id);
        else if (ev->type == EV_ALLOCATION_CHANGED && ev->allocation_changed.has_segment)
            is_unique =
                !is_taken(&store->billed, &billed, use_key(&ev->allocation_changed.segment));
    }
    id_map_done(&made);
    id_map_done(&billed);
    return is_unique ? ERR_OK : err_set(e, ERR_CONFLICT, "a key of this batch exists already");
}

static struct store_row *keep_row(const struct store_event *event)
{
    struct store_row *row = mem_new(1, sizeof(*row));
    *row = journal_row_of(event);
    memory_keep(&row->actor.name);
    memory_keep(&row->object);
    memory_keep(&row->body);
    return row;
}

static void drop_row(struct store_row *row)
{
    memory_drop(&row->actor.name);
    memory_drop(&row->object);
    memory_drop(&row->body);
    mem_free(row);
}

/* A SHA-256 is as good a key by its first half. */
static struct id answer_id(const struct digest *key)
{
    struct id id;
    memcpy(&id.hi, key->bytes, sizeof(id.hi));
    memcpy(&id.lo, key->bytes + sizeof(id.hi), sizeof(id.lo));
    return id;
}

struct store_answer *memory_answer(const struct memory_store *store, const struct digest *key)
{
    struct store_answer *found = id_map_get(&store->answers_by_key, answer_id(key));
    return found != NULL && memcmp(&found->key, key, sizeof(*key)) == 0 ? found : NULL;
}

static void drop_answer(struct memory_store *store, struct store_answer *answer)
{
    (void)id_map_remove(&store->answers_by_key, answer_id(&answer->key));
    memory_drop(&answer->content);
    mem_free(answer);
}

static void keep_answer(struct memory_store *store, const struct store_answer *answer)
{
    struct str content = answer->content;
    struct store_answer *kept = memory_answer(store, &answer->key);
    if (kept == NULL) {
        kept = mem_new(1, sizeof(*kept));
        vec_push(&store->answers, kept);
        id_map_put(&store->answers_by_key, answer_id(&answer->key), kept);
    }
    memory_keep(&content);
    memory_drop(&kept->content);
    *kept = *answer;
    kept->content = content;
}

static void keep_clock(struct memory_store *store, const struct store_clock *clock)
{
    struct str boot_id = clock->boot_id;
    memory_keep(&boot_id);
    memory_drop(&store->clock.boot_id);
    store->clock = *clock;
    store->clock.boot_id = boot_id;
    store->has_clock = true;
}

static enum err store_rows(struct memory_store *store, const struct store_batch *batch,
                           struct error *e)
{
    for (size_t i = 0; i < batch->event_count; i++) {
        enum err rc = project_event(&memory_sink, store, &batch->events[i], e);
        if (rc != ERR_OK)
            return rc;
        vec_push(&store->journal, keep_row(&batch->events[i]));
        store->sequence = batch->events[i].event->sequence;
    }
    for (size_t i = 0; i < batch->answer_count; i++)
        keep_answer(store, &batch->answers[i]);
    keep_clock(store, &batch->clock);
    return ERR_OK;
}

static enum err memory_append(struct store *base, const struct store_batch *batch, struct error *e)
{
    struct memory_store *store = memory_of(base);
    enum err rc = check_batch(store, batch, e);
    if (rc == ERR_OK)
        rc = check_keys(store, batch, e);
    if (rc != ERR_OK)
        return rc;
    return store_rows(store, batch, e);
}

static enum err memory_claim(struct store *base, uint64_t at_least, uint64_t *epoch,
                             struct error *e)
{
    struct memory_store *store = memory_of(base);
    (void)e;
    store->epoch = MAX_OF(store->epoch + 1, at_least);
    base->epoch = store->epoch;
    *epoch = store->epoch;
    return ERR_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static enum err memory_load_snapshot(struct store *base, uint64_t *sequence, struct buf *bytes,
                                     struct error *e)
{
    struct memory_store *store = memory_of(base);
    if (store->snapshots.count == 0)
        return err_set(e, ERR_NOT_FOUND, "no snapshot was ever taken");
    const struct memory_snapshot *newest = &store->snapshots.items[store->snapshots.count - 1];
    *sequence = newest->sequence;
    buf_clear(bytes);
    buf_add_str(bytes, newest->bytes);
    return ERR_OK;
}

static void remove_snapshot(struct memory_store *store, size_t at)
{
    memory_drop(&store->snapshots.items[at].bytes);
    store->snapshots.count--;
    for (size_t i = at; i < store->snapshots.count; i++)
        store->snapshots.items[i] = store->snapshots.items[i + 1];
}

/* In order of sequence; one at the same sequence is replaced. */
static void put_snapshot(struct memory_store *store, struct memory_snapshot snapshot)
{
    size_t at = 0;
    while (at < store->snapshots.count && store->snapshots.items[at].sequence < snapshot.sequence)
        at++;
    if (at < store->snapshots.count && store->snapshots.items[at].sequence == snapshot.sequence)
        remove_snapshot(store, at);
    vec_push(&store->snapshots, snapshot);
    for (size_t i = store->snapshots.count - 1; i > at; i--)
        store->snapshots.items[i] = store->snapshots.items[i - 1];
    store->snapshots.items[at] = snapshot;
}

static void memory_pack_snapshot(const struct store *base, struct str bytes, struct buf *content,
                                 struct store_packed *out)
{
    (void)base;
    buf_clear(content);
    buf_add_str(content, bytes);
    *out = (struct store_packed){ .raw_bytes = bytes.size, .content = buf_str(content) };
}

static enum err memory_save_snapshot(struct store *base, uint64_t sequence,
                                     const struct store_packed *snapshot, uint64_t keep_events,
                                     struct error *e)
{
    struct str bytes = snapshot->content;
    struct memory_store *store = memory_of(base);
    if (store->epoch != base->epoch)
        return err_set(e, ERR_CONFLICT, "epoch %" PRIu64 " no longer leads", base->epoch);
    if (sequence > store->sequence || sequence == 0)
        return err_set(e, ERR_INVALID,
                       "a snapshot at %" PRIu64 " of a journal that ends at %" PRIu64, sequence,
                       store->sequence);
    memory_keep(&bytes);
    put_snapshot(store, (struct memory_snapshot){ sequence, bytes });
    if (store->snapshots.count > SNAPSHOTS_KEPT)
        remove_snapshot(store, 0);
    uint64_t behind = 0;
    if (store->snapshots.count > 1)
        behind = store->snapshots.items[store->snapshots.count - 2].sequence;
    uint64_t not_kept = store->sequence - MIN_OF(store->sequence, keep_events);
    store->archive_to = MAX_OF(store->archive_to, MIN_OF(behind, not_kept));
    return ERR_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum err memory_read_events(struct store *base, uint64_t after, store_row_fn *each,
                                   void *arg, struct error *e)
{
    struct memory_store *store = memory_of(base);
    enum err rc = ERR_OK;
    if (after < store->dropped)
        return err_set(e, ERR_NOT_FOUND,
                       "events up to %" PRIu64 " are gone: the retention of the journal is limited",
                       store->dropped);
    if (after > store->sequence)
        return err_set(e, ERR_CORRUPT, "the journal ends at event %" PRIu64 ", before %" PRIu64,
                       store->sequence, after);
    for (size_t i = (size_t)(after - store->dropped); rc == ERR_OK && i < store->journal.count; i++)
        rc = each(arg, store->journal.items[i], e);
    return rc;
}

static enum err memory_read_answers(struct store *base, store_answer_fn *each, void *arg,
                                    struct error *e)
{
    struct memory_store *store = memory_of(base);
    enum err rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < store->answers.count; i++)
        rc = each(arg,
                  &(struct store_answer){ .number = store->answers.items[i]->number,
                                          .key = store->answers.items[i]->key,
                                          .expires = store->answers.items[i]->expires },
                  e);
    return rc;
}

static enum err memory_read_clock(struct store *base, struct store_clock *out, struct arena *arena,
                                  struct error *e)
{
    struct memory_store *store = memory_of(base);
    if (!store->has_clock)
        return err_set(e, ERR_NOT_FOUND, "nothing was ever appended to this store");
    *out = store->clock;
    out->boot_id = str_copy(arena, store->clock.boot_id);
    return ERR_OK;
}

/* ---- retention: everything that is due, in one step ------------------------------------------ */

#define DAY_NS (INT64_C(86400) * NS_PER_S)

static bool is_older(struct wall at, struct wall now, int64_t days)
{
    return days != 0 && at.ns < now.ns - days * DAY_NS;
}

static void trim_answers(struct memory_store *store, struct wall now)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->answers.count; i++) {
        if (store->answers.items[i]->expires.ns <= now.ns)
            drop_answer(store, store->answers.items[i]);
        else
            store->answers.items[kept++] = store->answers.items[i];
    }
    store->answers.count = kept;
}

static bool workload_is_due(const struct memory_store *store, const struct ended_workload *row,
                            struct wall now)
{
    return row->ended.ns > 0 && is_older(row->ended, now, store->retention.workload_days);
}

static void trim_workloads(struct memory_store *store, struct wall now)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->allocations.count; i++) {
        struct memory_allocation *allocation = store->allocations.items[i];
        const struct memory_workload *of =
            id_map_get(&store->workloads_by_id, allocation->row.workload);
        if (of != NULL && workload_is_due(store, &of->row, now))
            memory_drop_allocation(store, allocation);
        else
            store->allocations.items[kept++] = allocation;
    }
    store->allocations.count = kept;
    kept = 0;
    for (size_t i = 0; i < store->workloads.count; i++) {
        if (workload_is_due(store, &store->workloads.items[i]->row, now))
            memory_drop_workload(store, store->workloads.items[i]);
        else
            store->workloads.items[kept++] = store->workloads.items[i];
    }
    store->workloads.count = kept;
}

/* The oldest rows come first; the first that stays ends it. */
static void trim_usage(struct memory_store *store, struct wall now)
{
    size_t due = 0;
    while (due < store->usage.count &&
           is_older(store->usage.items[due]->recorded, now, store->retention.usage_days))
        memory_drop_usage(store, store->usage.items[due++]);
    store->usage.count -= due;
    for (size_t i = 0; i < store->usage.count; i++)
        store->usage.items[i] = store->usage.items[i + due];
}

static void trim_audit(struct memory_store *store, struct wall now)
{
    size_t due = 0;
    while (due < store->audit.count &&
           is_older(store->audit.items[due]->row.at, now, store->retention.audit_days))
        memory_drop_audit(store->audit.items[due++]);
    store->audit.count -= due;
    for (size_t i = 0; i < store->audit.count; i++)
        store->audit.items[i] = store->audit.items[i + due];
}

static void trim_journal(struct memory_store *store, struct wall now)
{
    size_t due = 0;
    uint64_t to = store->snapshots.count != 0 ? store->snapshots.items[0].sequence : 0;
    to = MIN_OF(to, store->archive_to);
    while (due < store->journal.count && store->journal.items[due]->sequence <= to &&
           is_older(store->journal.items[due]->wall, now, store->retention.journal_days))
        drop_row(store->journal.items[due++]);
    store->dropped += due;
    store->journal.count -= due;
    for (size_t i = 0; i < store->journal.count; i++)
        store->journal.items[i] = store->journal.items[i + due];
}

static enum err memory_trim(struct store *base, struct wall now, bool *more, struct error *e)
{
    struct memory_store *store = memory_of(base);
    (void)e;
    trim_answers(store, now);
    trim_workloads(store, now);
    trim_usage(store, now);
    trim_audit(store, now);
    trim_journal(store, now);
    *more = false;
    return ERR_OK;
}

static enum err memory_copy_log(struct store *base, struct error *e)
{
    (void)base;
    (void)e;
    return ERR_OK;
}

static int memory_log_pages(const struct store *base)
{
    (void)base;
    return 0;
}

static enum err memory_maintain(struct store *base, int log_pages_max, struct error *e)
{
    (void)log_pages_max;
    (void)base;
    (void)e;
    return ERR_OK;
}

/* ---- rebuild --------------------------------------------------------------------------------- */

struct decoder {
    store_decode_fn *decode;
    void *arg;
};

static enum err try_decode(const struct memory_store *store, const struct decoder *decoder,
                           struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    enum err rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < store->journal.count; i++) {
        struct event event = { 0 };
        arena_reset(&arena);
        rc = decoder->decode(decoder->arg, store->journal.items[i], &arena, &event, e);
        if (rc != ERR_OK)
            rc = err_wrap(e, rc, "event %" PRIu64, store->journal.items[i]->sequence);
    }
    return rc;
}

static enum err project_again(struct memory_store *store, const struct store_row *row,
                              const struct decoder *decoder, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    struct event event = { 0 };
    enum err rc = decoder->decode(decoder->arg, row, &arena, &event, e);
    if (rc != ERR_OK)
        return rc;
    struct store_event stored = { .event = &event, .body = row->body, .object = row->object };
    return project_event(&memory_sink, store, &stored, e);
}

/* Decodes all of it first, so that a journal it cannot read leaves the projections alone. */
static enum err memory_rebuild(struct store *base, store_decode_fn *decode, void *arg,
                               struct error *e)
{
    struct memory_store *store = memory_of(base);
    struct decoder decoder = { decode, arg };
    if (store->dropped != 0)
        return err_set(e, ERR_CONFLICT,
                       "the journal no longer has events 1..%" PRIu64
                       ": projections cannot be made "
                       "again without them",
                       store->dropped);
    enum err rc = try_decode(store, &decoder, e);
    if (rc != ERR_OK)
        return rc;
    memory_clear_projections(store);
    for (size_t i = 0; rc == ERR_OK && i < store->journal.count; i++)
        rc = project_again(store, store->journal.items[i], &decoder, e);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void memory_free(struct store *base)
{
    struct memory_store *store = memory_of(base);
    memory_clear_projections(store);
    for (size_t i = 0; i < store->journal.count; i++)
        drop_row(store->journal.items[i]);
    for (size_t i = 0; i < store->answers.count; i++)
        drop_answer(store, store->answers.items[i]);
    while (store->snapshots.count != 0)
        remove_snapshot(store, 0);
    memory_drop(&store->clock.boot_id);
    vec_done(&store->journal);
    vec_done(&store->snapshots);
    vec_done(&store->answers);
    id_map_done(&store->answers_by_key);
    vec_done(&store->projects);
    vec_done(&store->workloads);
    vec_done(&store->allocations);
    vec_done(&store->usage);
    vec_done(&store->ledger);
    vec_done(&store->audit);
    mem_free(store);
}

static const struct store_vtable memory_vtable = {
    .name = "memory",
    .claim = memory_claim,
    .append = memory_append,
    .load_snapshot = memory_load_snapshot,
    .pack_snapshot = memory_pack_snapshot,
    .save_snapshot = memory_save_snapshot,
    .read_events = memory_read_events,
    .read_answers = memory_read_answers,
    .read_clock = memory_read_clock,
    .trim = memory_trim,
    .maintain = memory_maintain,
    .copy_log = memory_copy_log,
    .log_pages = memory_log_pages,
    .rebuild = memory_rebuild,
    .free = memory_free,
};

struct store *store_memory_new(void)
{
    struct memory_store *store = mem_new(1, sizeof(*store));
    store->base.vtable = &memory_vtable;
    return &store->base;
}

void store_memory_retain(struct store *store, const struct store_retention *retention)
{
    memory_of(store)->retention = *retention;
}
