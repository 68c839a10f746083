#include "model/mix.h"

#include <string.h>

void mix_done(struct request_mix *mix)
{
    vec_done(&mix->seen);
    vec_done(&mix->dealt);
}

static bool is_same(const struct request *a, const struct request *b)
{
    return a->gpu_milli == b->gpu_milli && a->gpu_memory_mib == b->gpu_memory_mib &&
           a->devices == b->devices && a->share_milli == b->share_milli &&
           a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
           a->mig_profile == b->mig_profile && a->class_count == b->class_count &&
           memcmp(a->class_numbers, b->class_numbers,
                  a->class_count * sizeof(a->class_numbers[0])) == 0;
}

static void remove_at(struct request_mix *mix, size_t at)
{
    mix->seen.count--;
    memmove(mix->seen.items + at, mix->seen.items + at + 1,
            (mix->seen.count - at) * sizeof(*mix->seen.items));
}

/* The one that came least; of equals the one that came first. */
static void drop_rarest(struct request_mix *mix)
{
    size_t rarest = 0;
    for (size_t i = 1; i < mix->seen.count; i++) {
        if (mix->seen.items[i].times < mix->seen.items[rarest].times)
            rarest = i;
    }
    remove_at(mix, rarest);
}

static void count_in(struct request_mix *mix, const struct request *request, uint64_t members)
{
    for (size_t i = 0; i < mix->seen.count; i++) {
        if (!is_same(&mix->seen.items[i].request, request))
            continue;
        mix->seen.items[i].times += members;
        return;
    }
    if (mix->seen.count == MIX_KINDS_MAX)
        drop_rarest(mix);
    const struct mix_kind kind = { *request, members };
    vec_push(&mix->seen, kind);
}

static uint64_t next_deal(const struct request_mix *mix)
{
    if (mix->dealt_at == 0)
        return MIX_FIRST_DEAL;
    if (mix->dealt_at < MIX_DEAL_EVERY)
        return mix->dealt_at * MIX_DEAL_GROWTH;
    return mix->dealt_at + MIX_DEAL_EVERY;
}

static void halve(struct request_mix *mix)
{
    for (size_t i = mix->seen.count; i > 0; i--) {
        mix->seen.items[i - 1].times /= 2;
        if (mix->seen.items[i - 1].times == 0)
            remove_at(mix, i - 1);
    }
}

static void deal(struct request_mix *mix)
{
    mix->dealt.count = 0;
    for (size_t i = 0; i < mix->seen.count; i++)
        vec_push(&mix->dealt, mix->seen.items[i]);
    mix->dealt_at = mix->arrivals;
    if (mix->dealt_at >= MIX_DEAL_EVERY)
        halve(mix);
}

void mix_see(struct request_mix *mix, const struct request *request, uint64_t members)
{
    count_in(mix, request, members);
    mix->arrivals += members;
    if (mix->arrivals >= next_deal(mix))
        deal(mix);
}
