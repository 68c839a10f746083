/* What is asked for: when it is dealt, how old arrivals fade, and that it stays small. */
#include "model/mix.h"
#include "unit/test.h"

static struct request wants(int64_t gpu_milli, int64_t cpu_milli)
{
    return (struct request){ .gpu_milli = gpu_milli, .cpu_milli = cpu_milli };
}

static void see(struct request_mix *mix, int64_t gpu_milli, uint64_t members)
{
    const struct request request = wants(gpu_milli, 0);
    mix_see(mix, &request, members);
}

static void it_is_dealt_at_powers_then_evenly(void **state)
{
    static const uint64_t at[] = { 50, 200, 800, 3200, 6400, 9600 };
    struct request_mix mix = { 0 };
    size_t deals = 0;
    (void)state;
    for (uint64_t i = 1; i <= 10000; i++) {
        see(&mix, 1000, 1);
        if (deals < COUNT_OF(at) && i == at[deals])
            deals++;
        CHECK("when it should be", mix.dealt_at == (deals > 0 ? at[deals - 1] : 0));
    }
    CHECK("all of them", deals == COUNT_OF(at));
    mix_done(&mix);
}

static void members_count_each(void **state)
{
    struct request_mix mix = { 0 };
    (void)state;
    see(&mix, 1000, 49);
    CHECK("not yet", mix.dealt.count == 0);
    see(&mix, 500, 8);
    CHECK("a gang of eight", mix.dealt_at == 57 && mix.dealt.count == 2);
    CHECK("in the order of the first", mix.dealt.items[0].request.gpu_milli == 1000 &&
                                           mix.dealt.items[0].times == 49 &&
                                           mix.dealt.items[1].times == 8);
    mix_done(&mix);
}

static void what_came_long_ago_fades(void **state)
{
    struct request_mix mix = { 0 };
    (void)state;
    see(&mix, 1000, 3200);
    see(&mix, 250, 1);
    for (int i = 0; i < 16; i++)
        see(&mix, 500, 3200);
    CHECK("one kind is left", mix.dealt.count == 1 && mix.dealt.items[0].request.gpu_milli == 500);
    mix_done(&mix);
}

static void kinds_differ_by_every_field(void **state)
{
    struct request_mix mix = { 0 };
    struct request kinds[8];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        kinds[i] = wants(1000, 1000);
    kinds[1].gpu_milli = 2000;
    kinds[2].gpu_memory_mib = 1;
    kinds[3].devices = 1;
    kinds[4].share_milli = 1;
    kinds[5].cpu_milli = 1;
    kinds[6].memory_mib = 1;
    kinds[7].class_numbers[0] = 3;
    kinds[7].class_count = 1;
    for (size_t i = 0; i < 2 * COUNT_OF(kinds); i++)
        mix_see(&mix, &kinds[i % COUNT_OF(kinds)], 1);
    CHECK("each once", mix.seen.count == COUNT_OF(kinds));
    for (size_t i = 0; i < mix.seen.count; i++)
        CHECK("each twice", mix.seen.items[i].times == 2);
    kinds[7].class_numbers[0] = 4;
    mix_see(&mix, &kinds[7], 1);
    CHECK("another class", mix.seen.count == COUNT_OF(kinds) + 1);
    mix_done(&mix);
}

static void the_rarest_make_room(void **state)
{
    struct request_mix mix = { 0 };
    (void)state;
    for (int64_t i = 0; i < MIX_KINDS_MAX; i++)
        see(&mix, 1000 * (i + 1), i == 7 ? 1 : 2);
    see(&mix, 500, 1);
    CHECK("no more than that", mix.seen.count == MIX_KINDS_MAX);
    for (size_t i = 0; i < mix.seen.count; i++)
        CHECK("the one that came once went", mix.seen.items[i].request.gpu_milli != 8000);
    CHECK("the new one is last", mix.seen.items[mix.seen.count - 1].request.gpu_milli == 500);
    mix_done(&mix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_dealt_at_powers_then_evenly),
        cmocka_unit_test(members_count_each),
        cmocka_unit_test(what_came_long_ago_fades),
        cmocka_unit_test(kinds_differ_by_every_field),
        cmocka_unit_test(the_rarest_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
