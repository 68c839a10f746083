#include <inttypes.h>

#include "store/deflate.h"
#include "store/sqlite_store.h"

struct store_row journal_row_read(struct sql_call *call, uint64_t *check)
{
    struct store_row row = { 0 };
    row.sequence = sql_get_u64(call);
    row.type = (enum event_type)sql_get_int(call);
    row.version = (unsigned)sql_get_int(call);
    row.at.ns = sql_get_int(call);
    row.wall.ns = sql_get_int(call);
    row.actor.role = (enum role)sql_get_enum(call, &role_names);
    row.actor.tenant = sql_get_id(call);
    row.actor.token = sql_get_id(call);
    row.actor.node = sql_get_id(call);
    row.actor.name = sql_get_text(call);
    row.request = sql_get_id(call);
    row.tenant = sql_get_id(call);
    row.tenant_sequence = sql_get_u64(call);
    row.object = sql_get_text(call);
    row.body = sql_get_text(call);
    *check = sql_get_u64(call);
    return row;
}

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

static enum err read_segment(struct reading *r, struct str rows, struct error *e)
{
    enum err rc = ERR_OK;
    while (rc == ERR_OK && rows.size != 0) {
        struct store_row row;
        uint64_t check = 0;
        if (!journal_decode_checked(&rows, &row, &check))
            return err_set(e, ERR_CORRUPT, "the journal's archive is damaged after event %" PRIu64,
                           r->walk.sequence);
        rc = give(r, &row, check, e);
    }
    return rc;
}

static enum err read_segments(struct reading *r, struct error *e)
{
    AUTO(buf) struct buf rows = { 0 };
    AUTO(sql_call) struct sql_call call = sql_get(r->sql, ST_SEGMENTS_AFTER);
    sql_u64(&call, r->after);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        uint64_t first = sql_get_u64(&call);
        uint64_t last = sql_get_u64(&call);
        uint64_t previous_check = sql_get_u64(&call);
        uint64_t raw_size = sql_get_u64(&call);
        if (!r->is_anchored)
            anchor(r, first - 1, previous_check);
        rc = inflate_bytes(sql_get_blob(&call), raw_size, &rows, e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "archived events %" PRIu64 "..%" PRIu64, first, last);
        rc = read_segment(r, buf_str(&rows), e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

static enum err read_live(struct reading *r, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(r->sql, ST_JOURNAL_AFTER);
    sql_u64(&call, r->walk.sequence);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        uint64_t check = 0;
        struct store_row row = journal_row_read(&call, &check);
        rc = give(r, &row, check, e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc;
}

/* No segment is read: `after` is a live row, the last archived one, or where the journal begins. */
static enum err anchor_live(struct reading *r, struct error *e)
{
    uint64_t check = 0;
    enum err rc = journal_check_of(r->sql, &r->head, r->after, &check, e);
    if (rc == ERR_OK)
        anchor(r, r->after, check);
    return rc;
}

enum err journal_check_of(struct sql *sql, const struct store_head *head, uint64_t sequence,
                          uint64_t *check, struct error *e)
{
    bool has_row = false;
    {
        AUTO(sql_call) struct sql_call live = sql_get(sql, ST_JOURNAL_CHECK);
        sql_u64(&live, sequence);
        enum err rc = sql_next(&live, &has_row, e);
        if (rc != ERR_OK)
            return rc;
        if (has_row) {
            *check = sql_get_u64(&live);
            return ERR_OK;
        }
    }
    AUTO(sql_call) struct sql_call last = sql_get(sql, ST_SEGMENT_LAST);
    enum err rc = sql_next(&last, &has_row, e);
    if (rc != ERR_OK)
        return rc;
    uint64_t archived = has_row ? sql_get_u64(&last) : head->dropped_sequence;
    if (archived != sequence)
        return err_set(e, ERR_CORRUPT, "event %" PRIu64 " is missing from the journal", sequence);
    *check = has_row ? sql_get_u64(&last) : head->dropped_check;
    return ERR_OK;
}

static enum err read_all(struct reading *r, struct error *e)
{
    enum err rc = read_segments(r, e);
    if (rc == ERR_OK && !r->is_anchored)
        rc = anchor_live(r, e);
    if (rc == ERR_OK)
        rc = read_live(r, e);
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

void answer_read(struct sql_call *call, struct store_answer *out)
{
    out->number = sql_get_u64(call);
    sql_get_digest(call, &out->key);
    sql_get_digest(call, &out->body_hash);
    out->status = sql_get_int(call);
    out->version = sql_get_u64(call);
    out->expires.ns = sql_get_int(call);
    out->content = sql_get_blob(call);
}

enum err sqlite_read_answers(struct store *base, store_answer_fn *each, void *arg, struct error *e)
{
    AUTO(sql_call) struct sql_call call = sql_get(&sqlite_of(base)->sql, ST_ANSWERS_READ);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        struct store_answer answer = { .number = sql_get_u64(&call) };
        sql_get_digest(&call, &answer.key);
        answer.expires.ns = sql_get_int(&call);
        rc = each(arg, &answer, e);
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
    return project_event(&sqlite_sink, r->sql, &stored, e);
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
