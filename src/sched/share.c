#include "sched/share.h"

#include "base/wide.h"

/* Who takes part in one round: of one priority, with or without weights. */
struct round {
    struct share_party *parties;
    size_t count;
    int64_t priority;
    bool is_weighted; /* else those of weight 0, all alike */
};

static bool takes_part(const struct round *round, const struct share_party *party)
{
    return party->priority == round->priority && (party->weight > 0) == round->is_weighted &&
           party->share < party->requestable;
}

static int64_t weight_of(const struct round *round, const struct share_party *party)
{
    return round->is_weighted ? party->weight : 1;
}

static int64_t weights_of(const struct round *round)
{
    int64_t sum = 0;
    for (size_t i = 0; i < round->count; i++) {
        if (takes_part(round, &round->parties[i]))
            sum += weight_of(round, &round->parties[i]);
    }
    return sum;
}

struct part {
    int64_t floor;
    int64_t remainder; /* of the division by all weights */
};

static struct part part_of(int64_t weight, int64_t amount, int64_t weights)
{
    wide product = (wide)weight * amount;
    return (struct part){ (int64_t)(product / weights), (int64_t)(product % weights) };
}

/* Everybody's part of `amount`; returns what was taken. */
static int64_t hand_out_parts(const struct round *round, int64_t amount, int64_t weights,
                              bool *is_anybody_full)
{
    int64_t taken = 0;
    *is_anybody_full = false;
    for (size_t i = 0; i < round->count; i++) {
        struct share_party *party = &round->parties[i];
        if (!takes_part(round, party))
            continue;
        int64_t want = party->requestable - party->share;
        int64_t part = part_of(weight_of(round, party), amount, weights).floor;
        *is_anybody_full = *is_anybody_full || part >= want;
        party->share += MIN_OF(part, want);
        taken += MIN_OF(part, want);
    }
    return taken;
}

/* What rounding left is less than a thousandth each: to the largest remainders of that round. */
static int64_t hand_out_units(const struct round *round, int64_t amount, int64_t weights,
                              int64_t units)
{
    int64_t bound = INT64_MAX; /* remainders at and above it were served */
    int64_t taken = 0;
    while (taken < units && bound >= 0) {
        int64_t largest = -1;
        for (size_t i = 0; i < round->count; i++) {
            const struct share_party *party = &round->parties[i];
            int64_t remainder = takes_part(round, party)
                                    ? part_of(weight_of(round, party), amount, weights).remainder
                                    : -1;
            largest = remainder < bound ? MAX_OF(largest, remainder) : largest;
        }
        for (size_t i = 0; i < round->count && taken < units && largest >= 0; i++) {
            struct share_party *party = &round->parties[i];
            if (!takes_part(round, party) ||
                part_of(weight_of(round, party), amount, weights).remainder != largest)
                continue;
            party->share++;
            taken++;
        }
        bound = largest;
    }
    return taken;
}

/* Rounds until nobody can take more; returns what is left. */
static int64_t run_rounds(const struct round *round, int64_t amount)
{
    for (;;) {
        int64_t weights = weights_of(round);
        bool is_anybody_full = false;
        if (weights == 0 || amount <= 0)
            return amount;
        int64_t left = amount - hand_out_parts(round, amount, weights, &is_anybody_full);
        if (!is_anybody_full)
            return left - hand_out_units(round, amount, weights, left);
        amount = left;
    }
}

/* The next lower priority than `below` among those who want more; false: there is none. */
static bool next_priority(const struct share_party *parties, size_t count, int64_t below,
                          int64_t *priority)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const struct share_party *party = &parties[i];
        if (party->share >= party->requestable || party->priority >= below)
            continue;
        *priority = any ? MAX_OF(*priority, party->priority) : party->priority;
        any = true;
    }
    return any;
}

static int64_t run_priorities(struct share_party *parties, size_t count, bool is_weighted,
                              int64_t amount)
{
    struct round round = { parties, count, INT64_MAX, is_weighted };
    while (amount > 0 && next_priority(parties, count, round.priority, &round.priority))
        amount = run_rounds(&round, amount);
    return amount;
}

void share_split(struct share_party *parties, size_t count, int64_t amount)
{
    for (size_t i = 0; i < count; i++) {
        struct share_party *party = &parties[i];
        party->share = MIN_OF(party->quota, party->requestable);
        amount -= party->share + MAX_OF(party->never_lent - party->share, INT64_C(0));
    }
    amount = run_priorities(parties, count, true, amount);
    (void)run_priorities(parties, count, false, amount);
}
