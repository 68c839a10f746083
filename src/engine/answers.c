#include "engine/answers.h"

#include <string.h>

#include "base/mem.h"

struct slot {
    uint64_t key;    /* of a SHA-256, its first bytes: as good a hash as any */
    uint64_t number; /* 0: empty */
};

struct generation {
    struct slot *slots; /* owned */
    size_t capacity;    /* a power of two, or 0 */
    size_t count;
    struct wall expires; /* of the last to expire */
};

struct answers {
    struct generation young, old;
    uint64_t last_number;
};

struct answers *answers_new(void)
{
    return mem_new(1, sizeof(struct answers));
}

void answers_free(struct answers *answers)
{
    if (answers == NULL)
        return;
    mem_free(answers->young.slots);
    mem_free(answers->old.slots);
    mem_free(answers);
}

static uint64_t key_of(const struct digest *digest)
{
    uint64_t key;
    memcpy(&key, digest->bytes, sizeof(key));
    return key;
}

/* The key's slot, or the empty one where it belongs. */
static struct slot *find(const struct generation *generation, uint64_t key)
{
    size_t mask = generation->capacity - 1;
    size_t i = (size_t)key & mask;
    while (generation->slots[i].number != 0 && generation->slots[i].key != key)
        i = (i + 1) & mask;
    return &generation->slots[i];
}

static void grow(struct generation *generation)
{
    struct generation bigger = *generation;
    bigger.capacity = generation->capacity > 0 ? generation->capacity * 2 : 64;
    bigger.slots = mem_new(bigger.capacity, sizeof(*bigger.slots));
    for (size_t i = 0; i < generation->capacity; i++) {
        if (generation->slots[i].number != 0)
            *find(&bigger, generation->slots[i].key) = generation->slots[i];
    }
    mem_free(generation->slots);
    *generation = bigger;
}

uint64_t answers_next_number(const struct answers *answers)
{
    return answers->last_number + 1;
}

void answers_put(struct answers *answers, const struct store_answer *answer, struct wall now)
{
    if (answers->old.expires.ns <= now.ns && answers->young.count > 0) {
        mem_free(answers->old.slots);
        answers->old = answers->young;
        answers->young = (struct generation){ 0 };
    }
    struct generation *young = &answers->young;
    if (young->count + 1 > young->capacity / 4 * 3)
        grow(young);
    struct slot *slot = find(young, key_of(&answer->key));
    young->count += slot->number == 0;
    *slot = (struct slot){ key_of(&answer->key), answer->number };
    young->expires.ns = MAX_OF(young->expires.ns, answer->expires.ns);
    answers->last_number = MAX_OF(answers->last_number, answer->number);
}

uint64_t answers_number(const struct answers *answers, const struct digest *key)
{
    const struct generation *const both[] = { &answers->young, &answers->old };
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        if (both[i]->count == 0)
            continue;
        uint64_t number = find(both[i], key_of(key))->number;
        if (number != 0)
            return number;
    }
    return 0;
}
