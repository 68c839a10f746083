#include "store/journal_part.h"

void journal_part_begin(struct journal_part *part, uint64_t check)
{
    part->first = 0;
    part->last = 0;
    part->previous_check = check;
    part->last_check = check;
    part->count = 0;
    buf_clear(&part->rows);
}

void journal_part_add(struct journal_part *part, const struct journal_key *key,
                      const struct store_row *row)
{
    if (part->count == 0)
        part->first = row->sequence;
    journal_encode_next(&part->rows, row, key, &part->last_check);
    part->last = row->sequence;
    part->last_wall = row->wall;
    part->count++;
}

bool journal_part_is_full(const struct journal_part *part)
{
    return part->count >= PART_ROWS || part->rows.size >= PART_BYTES;
}

enum err journal_part_write(struct journal_part *part, journal_pack_fn *pack, struct sql_call *call,
                            struct error *e)
{
    pack(buf_str(&part->rows), &part->packed);
    sql_u64(call, part->first);
    sql_u64(call, part->last);
    sql_u64(call, part->previous_check);
    sql_u64(call, part->last_check);
    sql_int(call, part->last_wall.ns);
    sql_u64(call, part->rows.size);
    sql_blob(call, part->packed.data, part->packed.size);
    return sql_run(call, e);
}

void journal_part_done(struct journal_part *part)
{
    buf_done(&part->rows);
    buf_done(&part->packed);
}
