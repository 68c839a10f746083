#include "store/answer_pack.h"

#include "store/bytes.h"
#include "store/lz.h"

void answer_pack_begin(struct answer_pack *pack)
{
    pack->count = 0;
    pack->expires = (struct wall){ 0 };
    buf_clear(&pack->heads);
    buf_clear(&pack->contents);
}

void answer_pack_add(struct answer_pack *pack, const struct store_answer *answer)
{
    if (pack->count++ == 0)
        pack->first = answer->number;
    pack->last = answer->number;
    pack->expires.ns = MAX_OF(pack->expires.ns, answer->expires.ns);
    put_u64(&pack->heads, answer->number);
    buf_add(&pack->heads, answer->key.bytes, sizeof(answer->key.bytes));
    buf_add(&pack->heads, answer->body_hash.bytes, sizeof(answer->body_hash.bytes));
    put_u64(&pack->heads, (uint64_t)answer->status);
    put_u64(&pack->heads, answer->version);
    put_u64(&pack->heads, (uint64_t)answer->expires.ns);
    put_u64(&pack->heads, answer->content.size);
    buf_add_str(&pack->contents, answer->content);
}

enum err answer_pack_write(struct answer_pack *pack, struct sql_call *call, struct error *e)
{
    lz_pack(buf_str(&pack->contents), &pack->packed);
    sql_u64(call, pack->first);
    sql_u64(call, pack->last);
    sql_int(call, pack->expires.ns);
    sql_blob(call, pack->heads.data, pack->heads.size);
    sql_u64(call, pack->contents.size);
    sql_blob(call, pack->packed.data, pack->packed.size);
    return sql_run(call, e);
}

void answer_pack_done(struct answer_pack *pack)
{
    buf_done(&pack->heads);
    buf_done(&pack->contents);
    buf_done(&pack->packed);
}

bool answer_head_cut(struct str *heads, struct store_answer *out)
{
    struct store_answer answer = { 0 };
    uint64_t size = 0;
    bool is_head = cut_u64(heads, &answer.number) &&
                   cut_bytes(heads, answer.key.bytes, sizeof(answer.key.bytes)) &&
                   cut_bytes(heads, answer.body_hash.bytes, sizeof(answer.body_hash.bytes)) &&
                   cut_i64(heads, &answer.status) && cut_u64(heads, &answer.version) &&
                   cut_i64(heads, &answer.expires.ns) && cut_u64(heads, &size);
    if (!is_head)
        return false;
    answer.content.size = (size_t)size;
    *out = answer;
    return true;
}
