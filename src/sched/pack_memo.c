#include <assert.h>
#include <string.h>

#include "sched/pack_internal.h"

/* One line of the cache: a look-up goes to memory that nothing else has just touched. */
enum { LINE = 64 };
struct memo_slot {
    struct pack_state state;
    union memo_value value;
    bool is_used;
};
static_assert(sizeof(struct memo_slot) == LINE, "fills a line");

/* Values that are asked for once are not worth keeping for ever. */
enum { MEMO_MIN = 64, MEMO_MAX = 1 << 18 };

static_assert(sizeof(struct pack_state) == 16 + 2 * PACK_DEVICES_MAX, "compared as bytes");

static uint64_t state_hash(const struct pack_state *state)
{
    uint64_t words[sizeof(*state) / 8];
    uint64_t hash = 0x9e3779b97f4a7c15u;
    memcpy(words, state, sizeof(words));
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        hash = (hash ^ words[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

static struct memo_slot *slot_of(struct memo_slot *slots, size_t capacity,
                                 const struct pack_state *state)
{
    size_t at = (size_t)state_hash(state) & (capacity - 1);
    while (slots[at].is_used && memcmp(&slots[at].state, state, sizeof(*state)) != 0)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static void memo_grow(struct pack_memo *memo)
{
    size_t capacity = MAX_OF(memo->capacity * 2, (size_t)MEMO_MIN);
    char *memory = mem_new(capacity + 1, sizeof(struct memo_slot));
    size_t beyond = (uintptr_t)memory % LINE;
    struct memo_slot *slots =
        (struct memo_slot *)(void *)(memory + (beyond > 0 ? LINE - beyond : 0));
    for (size_t i = 0; i < memo->capacity; i++) {
        if (memo->slots[i].is_used)
            *slot_of(slots, capacity, &memo->slots[i].state) = memo->slots[i];
    }
    mem_free(memo->memory);
    memo->memory = memory;
    memo->slots = slots;
    memo->capacity = capacity;
}

void memo_clear(struct pack_memo *memo)
{
    if (memo->count > 0)
        memset(memo->slots, 0, memo->capacity * sizeof(*memo->slots));
    memo->count = 0;
}

void memo_done(struct pack_memo *memo)
{
    mem_free(memo->memory);
    *memo = (struct pack_memo){ 0 };
}

union memo_value *memo_find(struct pack_memo *memo, const struct pack_state *state, bool *is_known)
{
    if (memo->count >= MEMO_MAX)
        memo_clear(memo);
    if (memo->count * 2 >= memo->capacity)
        memo_grow(memo);
    struct memo_slot *slot = slot_of(memo->slots, memo->capacity, state);
    *is_known = slot->is_used;
    if (!slot->is_used) {
        slot->state = *state;
        slot->is_used = true;
        memo->count++;
    }
    return &slot->value;
}
