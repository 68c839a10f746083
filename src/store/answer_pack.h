/* answer_pack.h - answers that were given together as one row of the table `answers`. */
#ifndef STORE_ANSWER_PACK_H
#define STORE_ANSWER_PACK_H

#include "store/sql.h"
#include "store/store.h"

struct answer_pack {
    uint64_t first, last; /* numbers */
    size_t count;
    struct wall expires; /* the last of them */
    struct buf heads, contents, packed;
};

void answer_pack_begin(struct answer_pack *pack);
void answer_pack_add(struct answer_pack *pack, const struct store_answer *answer);
/* Binds it to an INSERT of the six columns, in their order, and runs that. */
MUST_CHECK enum err answer_pack_write(struct answer_pack *pack, struct sql_call *call,
                                      struct error *e);
void answer_pack_done(struct answer_pack *pack);
DEFINE_CLEANUP_AT(answer_pack, struct answer_pack, answer_pack_done)

/* Cuts the next head off; its content has a size and no bytes. False: they are not heads. */
bool answer_head_cut(struct str *heads, struct store_answer *out);

#endif
