#include "model/decay.h"

#include <assert.h>

#include "base/base.h"
#include "base/wide.h"

enum { LEFT_BITS = 62, FRACTION_BITS = 32 };

/* 2^62 / 2^(2^-i) for i = 1, 2, ...: the root of a half, the root of that, and so on. */
static const uint64_t roots[FRACTION_BITS] = {
    UINT64_C(3260954456333195553), UINT64_C(3877950241171266237), UINT64_C(4228934724888366668),
    UINT64_C(4416165660797809419), UINT64_C(4512867096753504463), UINT64_C(4562008997483360349),
    UINT64_C(4586780255215411731), UINT64_C(4599216278082138665), UINT64_C(4605446927862164404),
    UINT64_C(4608565417332308035), UINT64_C(4610125453837388245), UINT64_C(4610905670110601999),
    UINT64_C(4611295827762151833), UINT64_C(4611490918967884501), UINT64_C(4611588467665893036),
    UINT64_C(4611637242788701951), UINT64_C(4611661630543559956), UINT64_C(4611673824469352645),
    UINT64_C(4611679921444339948), UINT64_C(4611682969934856344), UINT64_C(4611684494180870228),
    UINT64_C(4611685256304066092), UINT64_C(4611685637365711255), UINT64_C(4611685827896545643),
    UINT64_C(4611685923161965790), UINT64_C(4611685970794676601), UINT64_C(4611685994611032191),
    UINT64_C(4611686006519210032), UINT64_C(4611686012473298964), UINT64_C(4611686015450343433),
    UINT64_C(4611686016938865668), UINT64_C(4611686017683126786),
};

uint64_t decay_left(int64_t ns, int64_t half_life_s)
{
    assert(ns >= 0 && half_life_s > 0);
    wide half_ns = (wide)half_life_s * NS_PER_S;
    wide halves = ns / half_ns;
    if (halves >= LEFT_BITS)
        return 0;
    uint64_t left = UINT64_C(1) << LEFT_BITS;
    uint64_t fraction = (uint64_t)((((wide)ns % half_ns) << FRACTION_BITS) / half_ns);
    for (unsigned i = 0; i < FRACTION_BITS; i++) {
        if ((fraction >> (FRACTION_BITS - 1 - i) & 1) != 0)
            left = (uint64_t)((wide_unsigned)left * roots[i] >> LEFT_BITS);
    }
    return left >> (unsigned)halves;
}

int64_t decay_at(const struct decay *decay, struct mono at, int64_t half_life_s)
{
    int64_t age_ns = MAX_OF(at.ns - decay->as_of.ns, INT64_C(0));
    if (age_ns == 0)
        return decay->average;
    uint64_t left = decay_left(age_ns, half_life_s);
    uint64_t gone = (UINT64_C(1) << LEFT_BITS) - left;
    wide_unsigned sum =
        (wide_unsigned)decay->average * left + (wide_unsigned)decay->level * DECAY_ONE * gone;
    return (int64_t)(sum >> LEFT_BITS);
}

void decay_to(struct decay *decay, struct mono at, int64_t half_life_s)
{
    decay->average = decay_at(decay, at, half_life_s);
    decay->as_of = at;
}
