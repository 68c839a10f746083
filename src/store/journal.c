#include "store/journal.h"

#include "store/bytes.h"

static void put_str(struct buf *out, struct str text)
{
    put_u64(out, text.size);
    buf_add_str(out, text);
}

static void put_id(struct buf *out, struct id id)
{
    put_u64(out, id.hi);
    put_u64(out, id.lo);
}

/* Beside the version: a tenant's sequence follows the tenant. Rows written before have none, and
 * their checks stay what they were. */
static const uint64_t has_tenant_sequence = UINT64_C(1) << 32;

static void journal_encode(struct buf *out, const struct store_row *row)
{
    put_u64(out, row->sequence);
    put_u64(out, (uint64_t)row->type);
    put_u64(out, row->version | (row->tenant_sequence != 0 ? has_tenant_sequence : 0));
    put_u64(out, (uint64_t)row->at.ns);
    put_u64(out, (uint64_t)row->wall.ns);
    put_str(out, str_of(enum_name(&role_names, row->actor.role)));
    put_id(out, row->actor.tenant);
    put_id(out, row->actor.token);
    put_id(out, row->actor.node);
    put_str(out, row->actor.name);
    put_id(out, row->request);
    put_id(out, row->tenant);
    if (row->tenant_sequence != 0)
        put_u64(out, row->tenant_sequence);
    put_str(out, row->object);
    put_str(out, row->body);
}

static bool cut_str(struct str *bytes, struct str *out)
{
    uint64_t size = 0;
    if (!cut_u64(bytes, &size) || size > bytes->size)
        return false;
    *out = (struct str){ bytes->data, (size_t)size };
    *bytes = (struct str){ bytes->data + size, bytes->size - (size_t)size };
    return true;
}

static bool cut_id(struct str *bytes, struct id *out)
{
    return cut_u64(bytes, &out->hi) && cut_u64(bytes, &out->lo);
}

static bool cut_row(struct str *bytes, struct store_row *out)
{
    struct store_row row = { 0 };
    struct str role = { 0 };
    uint64_t type = 0;
    uint64_t version = 0;
    unsigned role_value = 0;
    bool is_row = cut_u64(bytes, &row.sequence) && cut_u64(bytes, &type) &&
                  cut_u64(bytes, &version) && cut_i64(bytes, &row.at.ns) &&
                  cut_i64(bytes, &row.wall.ns) && cut_str(bytes, &role) &&
                  cut_id(bytes, &row.actor.tenant) && cut_id(bytes, &row.actor.token) &&
                  cut_id(bytes, &row.actor.node) && cut_str(bytes, &row.actor.name) &&
                  cut_id(bytes, &row.request) && cut_id(bytes, &row.tenant) &&
                  ((version & has_tenant_sequence) == 0 || cut_u64(bytes, &row.tenant_sequence)) &&
                  cut_str(bytes, &row.object) && cut_str(bytes, &row.body);
    version &= ~has_tenant_sequence;
    if (!is_row || type > UINT32_MAX || version > UINT32_MAX)
        return false;
    (void)enum_parse(&role_names, role, &role_value); /* unnamed: ROLE_NONE */
    row.type = (enum event_type)type;
    row.version = (unsigned)version;
    row.actor.role = (enum role)role_value;
    *out = row;
    return true;
}

static uint64_t journal_check(const struct journal_key *key, uint64_t previous, struct str encoded)
{
    uint8_t chained[16];
    memcpy(chained, key->bytes, sizeof(chained));
    for (unsigned i = 0; i < 8; i++)
        chained[i] ^= (uint8_t)(previous >> (8 * i));
    return siphash(chained, encoded.data, encoded.size);
}

void journal_encode_next(struct buf *out, const struct store_row *row,
                         const struct journal_key *key, uint64_t *check)
{
    size_t start = out->size;
    journal_encode(out, row);
    *check = journal_check(key, *check, (struct str){ out->data + start, out->size - start });
    put_u64(out, *check);
}

bool journal_decode_checked(struct str *bytes, struct store_row *out, uint64_t *check)
{
    return cut_row(bytes, out) && cut_u64(bytes, check);
}

struct store_row journal_row_of(const struct store_event *event)
{
    const struct event *ev = event->event;
    return (struct store_row){
        .sequence = ev->sequence,
        .type = ev->type,
        .version = ev->version,
        .at = ev->at,
        .wall = ev->wall,
        .actor = ev->actor,
        .request = ev->request,
        .tenant = ev->tenant,
        .tenant_sequence = ev->tenant_sequence,
        .object = event->object,
        .body = event->body,
    };
}

enum err journal_step(struct journal_walk *walk, const struct store_row *row, uint64_t check,
                      struct error *e)
{
    if (row->sequence != walk->sequence + 1)
        return err_set(e, ERR_CORRUPT,
                       "the journal has a gap: event %llu follows %llu; restore a backup with "
                       "berthd restore",
                       (unsigned long long)row->sequence, (unsigned long long)walk->sequence);
    buf_clear(&walk->scratch);
    journal_encode(&walk->scratch, row);
    if (journal_check(&walk->key, walk->check, buf_str(&walk->scratch)) != check)
        return err_set(e, ERR_CORRUPT,
                       "event %llu of the journal is not what was written; restore a backup with "
                       "berthd restore",
                       (unsigned long long)row->sequence);
    walk->sequence = row->sequence;
    walk->check = check;
    return ERR_OK;
}

void journal_walk_done(struct journal_walk *walk)
{
    buf_done(&walk->scratch);
}
