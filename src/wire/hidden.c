#include "wire/hidden.h"

#include <string.h>

#include "base/id.h"

/* A balanced Feistel network over two halves of 26 bits. Six rounds: the domain is small. */
enum { HALF_BITS = 26, ROUNDS = 6 };
static const uint64_t half_mask = (UINT64_C(1) << HALF_BITS) - 1;

static bool is_plain(const uint8_t *key, uint64_t number)
{
    return key == NULL || number == 0 || number >> (2 * HALF_BITS) != 0;
}

/* The key derives ids too: another message length, and a key of its own. */
static uint64_t round_of(const uint8_t *key, unsigned round, uint64_t half)
{
    uint8_t own[16];
    const uint64_t message[3] = { UINT64_C(0x6e6564646968), round, half };
    for (unsigned i = 0; i < sizeof(own); i++)
        own[i] = key[i] ^ 0x5a;
    return siphash(own, message, sizeof(message)) & half_mask;
}

static uint64_t permute(const uint8_t *key, uint64_t number)
{
    uint64_t left = number >> HALF_BITS;
    uint64_t right = number & half_mask;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t next = left ^ round_of(key, i, right);
        left = right;
        right = next;
    }
    return left << HALF_BITS | right;
}

static uint64_t permute_back(const uint8_t *key, uint64_t number)
{
    uint64_t left = number >> HALF_BITS;
    uint64_t right = number & half_mask;
    for (unsigned i = ROUNDS; i > 0; i--) {
        uint64_t before = right ^ round_of(key, i - 1, left);
        right = left;
        left = before;
    }
    return left << HALF_BITS | right;
}

/* 0 means "none" on both sides: what falls on it is permuted once more. */
uint64_t hidden_of(const uint8_t *key, uint64_t number)
{
    if (is_plain(key, number))
        return number;
    uint64_t hidden = permute(key, number);
    return hidden != 0 ? hidden : permute(key, 0);
}

uint64_t hidden_reveal(const uint8_t *key, uint64_t hidden)
{
    if (is_plain(key, hidden))
        return hidden;
    uint64_t number = permute_back(key, hidden);
    return number != 0 ? number : permute_back(key, 0);
}
