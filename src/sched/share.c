#include "sched/share.h"

#include "base/wide.h"

/* Who takes part in one round: of one priority, with or without weights. */
struct round {
    struct share_party *parties;
    size_t count;
    int64_t priority;
    bool is_weighted; /* else those of weight 0, all alike */
    int64_t history_k_milli;
};

static bool takes_part(const struct round *round, const struct share_party *party)
{
    return party->priority == round->priority && (party->weight > 0) == round->is_weighted &&
           party->share < party->requestable;
}

static int64_t plain_weights(const struct round *round)
{
    int64_t sum = 0;
    for (size_t i = 0; i < round->count; i++) {
        struct share_party *party = &round->parties[i];
        party->counts = round->is_weighted ? party->weight : 1;
        if (takes_part(round, party))
            sum += party->counts;
    }
    return sum;
}

/* w' + k (w' - u'), or 0 where that is negative; w' is its part of the weights `sum`, and u' its
 * past use, both in millionths. All at 0: nobody is to be preferred. */
static int64_t past_weights(const struct round *round, int64_t sum)
{
    int64_t k = round->history_k_milli;
    int64_t all = 0;
    for (size_t i = 0; i < round->count; i++) {
        struct share_party *party = &round->parties[i];
        if (!takes_part(round, party))
            continue;
        int64_t part = (int64_t)((wide)party->weight * 1000000 / sum);
        party->counts = MAX_OF(part * (1000 + k) - k * party->past_ppm, INT64_C(0));
        all += party->counts;
    }
    return all;
}

/* What each counts in this round; returns the sum. */
static int64_t weights_of(const struct round *round)
{
    int64_t plain = plain_weights(round);
    if (plain == 0 || round->history_k_milli == 0 || !round->is_weighted)
        return plain;
    int64_t all = past_weights(round, plain);
    return all > 0 ? all : plain_weights(round);
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
        int64_t part = part_of(party->counts, amount, weights).floor;
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
            int64_t remainder =
                takes_part(round, party) ? part_of(party->counts, amount, weights).remainder : -1;
            largest = remainder < bound ? MAX_OF(largest, remainder) : largest;
        }
        for (size_t i = 0; i < round->count && taken < units && largest >= 0; i++) {
            struct share_party *party = &round->parties[i];
            if (!takes_part(round, party) ||
                part_of(party->counts, amount, weights).remainder != largest)
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

static int64_t run_priorities(struct round round, int64_t amount)
{
    round.priority = INT64_MAX;
    while (amount > 0 && next_priority(round.parties, round.count, round.priority, &round.priority))
        amount = run_rounds(&round, amount);
    return amount;
}

void share_split(struct share_party *parties, size_t count, int64_t amount, int64_t history_k_milli)
{
    struct round round = {
        .parties = parties, .count = count, .is_weighted = true, .history_k_milli = history_k_milli
    };
    for (size_t i = 0; i < count; i++) {
        struct share_party *party = &parties[i];
        party->share = MIN_OF(party->quota, party->requestable);
        amount -= party->share + MAX_OF(party->never_lent - party->share, INT64_C(0));
    }
    amount = run_priorities(round, amount);
    round.is_weighted = false;
    (void)run_priorities(round, amount);
}
