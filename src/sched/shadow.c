/* shadow.c - the undo log of one step. */
#include <assert.h>
#include <string.h>

#include "sched/internal.h"

void shadow_begin(struct sched *sched)
{
    assert(!sched->is_shadow && sched->undo.count == 0);
    sched->is_shadow = true;
}

void touch(struct sched *sched, void *at, size_t size)
{
    if (!sched->is_shadow)
        return;
    const struct undo undo = { at, size, sched->undo_bytes.size };
    buf_add(&sched->undo_bytes, at, size);
    vec_push(&sched->undo, undo);
}

size_t shadow_mark(const struct sched *sched)
{
    return sched->undo.count;
}

void shadow_rollback(struct sched *sched, size_t mark)
{
    index_roll_back(sched, mark);
    sched->moves += sched->undo.count > mark;
    while (sched->undo.count > mark) {
        const struct undo *undo = &sched->undo.items[--sched->undo.count];
        memcpy(undo->at, sched->undo_bytes.data + undo->offset, undo->size);
        sched->undo_bytes.size = undo->offset;
    }
}

void shadow_end(struct sched *sched)
{
    shadow_rollback(sched, 0);
    buf_clear(&sched->undo_bytes);
    sched->pins.count = 0;
    sched->is_shadow = false;
}
