#include "store/upgrade.h"

#include <string.h>

#include "store/answer_pack.h"
#include "store/journal_part.h"
#include "store/lz.h"

/* ---- 5: rows of the journal and answers are packed ------------------------------------------- */

enum packed_statement { OLD_KEY, OLD_CHECK, OLD_ROWS, OLD_ANSWERS, ADD_PART, ADD_ANSWERS };

static const char *const packed_statements[] = {
    [OLD_KEY] = "SELECT check_key FROM store_head",
    [OLD_CHECK] = "SELECT last_sequence, last_check FROM journal_segments UNION ALL "
                  "SELECT dropped_sequence, dropped_check FROM store_head ORDER BY 1 DESC LIMIT 1",
    [OLD_ROWS] =
        "SELECT sequence, type, version, at_ns, wall_ns, role, actor_tenant, actor_token, "
        "actor_node, actor_name, request, tenant, tenant_sequence, object, body, check_value "
        "FROM journal_rows ORDER BY sequence",
    [OLD_ANSWERS] = "SELECT id, key, body_hash, status, version, expires_ns, content "
                    "FROM answer_rows ORDER BY id",
    [ADD_PART] = "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)",
    [ADD_ANSWERS] = "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)",
};

enum { ANSWERS_TOGETHER = 64 };

static struct store_row old_row(struct sql_call *call, uint64_t *check)
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

static enum err write_part(struct sql *sql, struct journal_part *part, struct error *e)
{
    if (part->count == 0)
        return ERR_OK;
    struct sql_call call = sql_get(sql, ADD_PART);
    enum err rc = journal_part_write(part, lz_pack, &call, e);
    journal_part_begin(part, part->last_check);
    return rc;
}

/* The last archived row, and the key of all checks. */
static enum err old_anchor(struct sql *sql, struct journal_walk *walk, struct error *e)
{
    bool has_row = false;
    AUTO(sql_call) struct sql_call key = sql_get(sql, OLD_KEY);
    enum err rc = sql_next(&key, &has_row, e);
    if (rc != ERR_OK)
        return rc;
    struct str bytes = sql_get_blob(&key);
    if (bytes.size == sizeof(walk->key.bytes))
        memcpy(walk->key.bytes, bytes.data, bytes.size);
    AUTO(sql_call) struct sql_call last = sql_get(sql, OLD_CHECK);
    rc = sql_next(&last, &has_row, e);
    if (rc != ERR_OK)
        return rc;
    walk->sequence = sql_get_u64(&last);
    walk->check = sql_get_u64(&last);
    return ERR_OK;
}

static enum err pack_journal(struct sql *sql, struct error *e)
{
    AUTO(journal_walk) struct journal_walk walk = { 0 };
    AUTO(journal_part) struct journal_part part = { 0 };
    enum err rc = old_anchor(sql, &walk, e);
    if (rc != ERR_OK)
        return rc;
    journal_part_begin(&part, walk.check);
    bool has_row = false;
    AUTO(sql_call) struct sql_call call = sql_get(sql, OLD_ROWS);
    rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        uint64_t check = 0;
        struct store_row row = old_row(&call, &check);
        rc = journal_step(&walk, &row, check, e);
        if (rc != ERR_OK)
            return rc;
        journal_part_add(&part, &walk.key, &row);
        if (journal_part_is_full(&part))
            rc = write_part(sql, &part, e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc == ERR_OK ? write_part(sql, &part, e) : rc;
}

static enum err write_answers(struct sql *sql, struct answer_pack *pack, struct error *e)
{
    if (pack->count == 0)
        return ERR_OK;
    struct sql_call call = sql_get(sql, ADD_ANSWERS);
    enum err rc = answer_pack_write(pack, &call, e);
    answer_pack_begin(pack);
    return rc;
}

static void old_answer(struct sql_call *call, struct store_answer *out)
{
    out->number = sql_get_u64(call);
    sql_get_digest(call, &out->key);
    sql_get_digest(call, &out->body_hash);
    out->status = sql_get_int(call);
    out->version = sql_get_u64(call);
    out->expires.ns = sql_get_int(call);
    out->content = sql_get_blob(call);
}

static enum err pack_answers(struct sql *sql, struct error *e)
{
    AUTO(answer_pack) struct answer_pack pack = { 0 };
    AUTO(sql_call) struct sql_call call = sql_get(sql, OLD_ANSWERS);
    bool has_row = false;
    enum err rc = sql_next(&call, &has_row, e);
    while (rc == ERR_OK && has_row) {
        struct store_answer answer;
        old_answer(&call, &answer);
        answer_pack_add(&pack, &answer);
        if (pack.count == ANSWERS_TOGETHER)
            rc = write_answers(sql, &pack, e);
        if (rc == ERR_OK)
            rc = sql_next(&call, &has_row, e);
    }
    return rc == ERR_OK ? write_answers(sql, &pack, e) : rc;
}

static enum err pack_all(struct sql *sql, struct error *e)
{
    sql_use(sql, packed_statements, COUNT_OF(packed_statements));
    enum err rc = pack_journal(sql, e);
    if (rc == ERR_OK)
        rc = pack_answers(sql, e);
    sql_use_end(sql);
    return rc == ERR_OK ? sql_exec(sql, "DROP TABLE journal_rows; DROP TABLE answer_rows", e) : rc;
}

/* ---- by number ------------------------------------------------------------------------------- */

enum err store_upgrade(struct sql *sql, int64_t migration, struct error *e)
{
    return migration == 5 ? pack_all(sql, e) : ERR_OK;
}
