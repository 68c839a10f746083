#include <inttypes.h>

#include "store/deflate.h"
#include "store/lz.h"
#include "store/sqlite_store.h"

const struct journal_place journal_places[PLACE_COUNT] = {
    [PLACE_SEGMENTS] = { ST_SEGMENTS_AFTER, inflate_bytes },
    [PLACE_LIVE] = { ST_PARTS_AFTER, lz_unpack },
};

/* ---- the journal, archived segments first ---------------------------------------------------- */

struct reading {
    struct sql *sql;
    struct store_head head;
    uint64_t after;
    store_row_fn *each;
    void *arg;
    bool is_anchored; /* `walk` knows the check of the row before the next one */
    struct journal_walk walk;
};

static void anchor(struct reading *r, uint64_t sequence, uint64_t check)
{
    r->walk.sequence = sequence;
    r->walk.check = check;
    r->is_anchored = true;
}

static enum err give(struct reading *r, const struct store_row *row, uint64_t check,
                     struct error *e)
{
    enum err rc = journal_step(&r->walk, row, check, e);
    if (rc != ERR_OK || row->sequence <= r->after)
        return rc;
    return r->each(r->arg, row, e);
}

static enum err read_rows(struct reading *r, struct str rows, struct error *e)
{
    enum err rc = ERR_OK;
    while (rc == ERR_OK && rows.size != 0) {
        struct store_row row;
        uint64_t check = 0;
        if (!journal_decode_checked(&rows, &row, &check))
            return err_set(e, ERR_CORRUPT, "the journal is damaged after event %" PRIu64,
                           r->walk.sequence);
        rc = give(r, &row, check, e);
    }
    return rc;
}

static enum err read_place(struct reading *r, const struct journal_place *place, struct error *e)
{
    AUTO(buf) struct buf rows = { 0 };
    AUTO(sql_call) struct sql_call call = sql_get(r->sql, place->after);
    sql_u64(&call, r->is_anchored ? r->walk.sequence : r->after);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        uint64_t first = sql_get_u64(&call);
        uint64_t last = sql_get_u64(&call);
        uint64_t previous_check = sql_get_u64(&call);
        uint64_t raw_size = sql_get_u64(&call);
        if (!r->is_anchored)
            anchor(r, first - 1, previous_check);
        rc = place->unpack(sql_get_blob(&call), raw_size, &rows, e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "events %" PRIu64 "..%" PRIu64, first, last);
        rc = read_rows(r, buf_str(&rows), e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

/* Sequence and check of the last row of a place. */
static enum err last_of(struct sql *sql, enum statement statement, uint64_t *sequence,
                        uint64_t *check, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(sql, statement);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc == ERR_OK && has_row) {
        *sequence = sql_get_u64(&call);
        *check = sql_get_u64(&call);
    }
    return rc;
}

enum err journal_check_of(struct sql *sql, const struct store_head *head, uint64_t sequence,
                          uint64_t *check, struct error *e)
{
    uint64_t last = head->dropped_sequence;
    uint64_t last_check = head->dropped_check;
    enum err rc = last_of(sql, ST_SEGMENT_LAST, &last, &last_check, e);
    if (rc == ERR_OK)
        rc = last_of(sql, ST_PART_LAST, &last, &last_check, e);
    if (rc != ERR_OK)
        return rc;
    if (last != sequence)
        return err_set(e, ERR_CORRUPT, "event %" PRIu64 " is missing from the journal", sequence);
    *check = last_check;
    return ERR_OK;
}

enum err journal_first_live(struct sql *sql, uint64_t *first, uint64_t *previous_check,
                            struct error *e)
{
    *first = 0;
    *previous_check = 0;
    return last_of(sql, ST_PART_FIRST, first, previous_check, e);
}

static enum err read_all(struct reading *r, struct error *e)
{
    enum err rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < PLACE_COUNT; i++)
        rc = read_place(r, &journal_places[i], e);
    if (rc == ERR_OK && !r->is_anchored) {
        /* Nothing is behind `after`: it is the end. */
        rc = journal_check_of(r->sql, &r->head, r->after, &r->walk.check, e);
        r->walk.sequence = r->after;
    }
    if (rc != ERR_OK)
        return rc;
    if (r->walk.sequence != r->head.sequence || r->walk.check != r->head.check)
        return err_set(e, ERR_CORRUPT,
                       "the journal ends at event %" PRIu64 ", but %" PRIu64
                       " were stored; restore "
                       "a backup with berthd restore",
                       r->walk.sequence, r->head.sequence);
    return ERR_OK;
}

static enum err read_after(struct reading *r, struct error *e)
{
    enum err rc = head_read(r->sql, &r->head, e);
    if (rc != ERR_OK)
        return rc;
    if (r->after < r->head.dropped_sequence)
        return err_set(e, ERR_NOT_FOUND,
                       "events up to %" PRIu64 " are gone: the retention of the journal is limited",
                       r->head.dropped_sequence);
    if (r->after > r->head.sequence)
        return err_set(e, ERR_CORRUPT, "the journal ends at event %" PRIu64 ", before %" PRIu64,
                       r->head.sequence, r->after);
    r->walk.key = r->head.key;
    return read_all(r, e);
}

enum err journal_read_after(struct sql *sql, uint64_t after, store_row_fn *each, void *arg,
                            struct error *e)
{
    struct reading r = { .sql = sql, .after = after, .each = each, .arg = arg };
    enum err rc = read_after(&r, e);
    journal_walk_done(&r.walk);
    return rc;
}

enum err sqlite_read_events(struct store *base, uint64_t after, store_row_fn *each, void *arg,
                            struct error *e)
{
    return journal_read_after(&sqlite_of(base)->sql, after, each, arg, e);
}

/* ---- answers and clock ----------------------------------------------------------------------- */

static enum err read_heads(struct str heads, store_answer_fn *each, void *arg, struct error *e)
{
    enum err rc = ERR_OK;
    while (rc == ERR_OK && heads.size != 0) {
        struct store_answer answer;
        if (!answer_head_cut(&heads, &answer))
            return err_set(e, ERR_CORRUPT, "the answers kept for Idempotency-Keys are damaged");
        answer.content = (struct str){ 0 };
        rc = each(arg, &answer, e);
    }
    return rc;
}

enum err sqlite_read_answers(struct store *base, store_answer_fn *each, void *arg, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&sqlite_of(base)->sql, ST_ANSWERS_READ);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        rc = read_heads(sql_get_blob(&call), each, arg, e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

enum err sqlite_read_clock(struct store *base, struct store_clock *out, struct arena *arena,
                           struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&sqlite_of(base)->sql, ST_CLOCK_READ);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    if (rc != ERR_OK)
        return rc;
    if (!has_row)
        return err_set(e, ERR_NOT_FOUND, "nothing was ever appended to this store");
    out->boot_id = str_copy(arena, sql_get_text(&call));
    out->boottime_ns = sql_get_int(&call);
    out->mono.ns = sql_get_int(&call);
    out->wall.ns = sql_get_int(&call);
    return ERR_OK;
}

/* ---- rebuild --------------------------------------------------------------------------------- */

struct rebuilding {
    struct sql *sql;
    store_decode_fn *decode;
    void *arg;
    uint64_t live; /* first sequence that is not archived; 0: none */
    struct arena arena;
};

static enum err project_again(void *arg, const struct store_row *row, struct error *e)
{
    struct rebuilding *r = arg;
    struct event event = { 0 };
    arena_reset(&r->arena);
    enum err rc = r->decode(r->arg, row, &r->arena, &event, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "event %" PRIu64, row->sequence);
    struct store_event stored = { .event = &event, .body = row->body, .object = row->object };
    rc = project_event(&sqlite_sink, r->sql, &stored, e);
    bool is_archived = r->live == 0 || row->sequence < r->live;
    return rc == ERR_OK && is_archived ? keep_record(r->sql, row, e) : rc;
}

static enum err rebuild_all(struct sqlite_store *store, struct rebuilding *r, struct error *e)
{
    struct store_head head;
    enum err rc = head_read(&store->sql, &head, e);
    if (rc != ERR_OK)
        return rc;
    if (head.dropped_sequence != 0)
        return err_set(e, ERR_CONFLICT,
                       "the journal no longer has events 1..%" PRIu64
                       ": projections cannot be made "
                       "again without them",
                       head.dropped_sequence);
    uint64_t previous_check = 0;
    rc = journal_first_live(&store->sql, &r->live, &previous_check, e);
    if (rc == ERR_OK)
        rc = sqlite_clear_projections(&store->sql, e);
    return rc == ERR_OK ? sqlite_read_events(&store->base, 0, project_again, r, e) : rc;
}

/* One transaction: whoever stops it finds the projections as they were. */
enum err sqlite_rebuild(struct store *base, store_decode_fn *decode, void *arg, struct error *e)
{
    struct sqlite_store *store = sqlite_of(base);
    struct rebuilding r = { .sql = &store->sql, .decode = decode, .arg = arg };
    enum err rc = sqlite_begin(store, e);
    if (rc != ERR_OK)
        return rc;
    rc = sqlite_end(store, rebuild_all(store, &r, e), e);
    arena_done(&r.arena);
    return rc;
}
