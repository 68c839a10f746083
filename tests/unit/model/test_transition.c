/* All pairs of both tables, against lists written down by hand. */
#include <string.h>

#include "model/transition.h"
#include "unit/test.h"

static const struct {
    const char *from;
    const char *to; /* every legal step, separated by blanks */
} workload_steps[] = {
    { "held", "queued cancelled failed" },
    { "queued", "held provisioning starting cancelled failed" },
    { "provisioning", "queued starting cancelled failed" },
    { "starting", "queued running stopping succeeded failed cancelled timed_out" },
    { "running", "queued stopping succeeded failed cancelled timed_out" },
    { "stopping", "queued succeeded failed cancelled timed_out" },
    { "succeeded", "" },
    { "failed", "" },
    { "cancelled", "" },
    { "timed_out", "" },
}, allocation_steps[] = {
    { "starting", "running stopping cleaning lost ended" },
    { "running", "stopping cleaning quarantined lost ended" },
    { "stopping", "cleaning quarantined lost ended" },
    { "cleaning", "quarantined ended" },
    { "quarantined", "ended" },
    { "lost", "running cleaning quarantined ended" },
    { "ended", "" },
}, reservation_steps[] = {
    { "requested", "confirmed degraded cancelled" },
    { "confirmed", "active degraded completed released cancelled" },
    { "active", "degraded confirmed completed released cancelled" },
    { "degraded", "active confirmed completed released cancelled" },
    { "completed", "" },
    { "released", "" },
    { "cancelled", "" },
}, change_steps[] = {
    { "scheduled", "active expired reverted failed" },
    { "active", "scheduled expired reverted settled" },
    { "expired", "" },
    { "reverted", "" },
    { "settled", "" },
    { "failed", "" },
};

static bool lists(const char *list, const char *word)
{
    struct str rest = str_of(list);
    while (rest.size > 0) {
        if (str_is(str_cut(&rest, ' '), word))
            return true;
    }
    return false;
}

static void test_workload(void **state)
{
    (void)state;
    CHECK("every state has its row", COUNT_OF(workload_steps) == WL_STATE_COUNT - 1);
    FOR_EACH_CASE (c, workload_steps) {
        unsigned from = 0;
        CHECK(c->from, enum_parse(&workload_state_names, str_of(c->from), &from));
        for (unsigned to = 0; to <= WL_STATE_COUNT; to++)
            CHECK(c->from,
                  workload_may_become((enum workload_state)from, (enum workload_state)to) ==
                      lists(c->to, enum_name(&workload_state_names, to)));
        CHECK(c->from, workload_state_is_final((enum workload_state)from) == (c->to[0] == '\0'));
        CHECK("none leads nowhere", !workload_may_become(WL_NONE, (enum workload_state)from));
        CHECK("nor does what is no state",
              !workload_may_become(WL_STATE_COUNT, (enum workload_state)from));
    }
}

static void test_allocation(void **state)
{
    (void)state;
    CHECK("every state has its row", COUNT_OF(allocation_steps) == AL_STATE_COUNT - 1);
    FOR_EACH_CASE (c, allocation_steps) {
        unsigned from = 0;
        CHECK(c->from, enum_parse(&allocation_state_names, str_of(c->from), &from));
        for (unsigned to = 0; to <= AL_STATE_COUNT; to++)
            CHECK(c->from,
                  allocation_may_become((enum allocation_state)from, (enum allocation_state)to) ==
                      lists(c->to, enum_name(&allocation_state_names, to)));
        CHECK("none leads nowhere", !allocation_may_become(AL_NONE, (enum allocation_state)from));
        CHECK("nor does what is no state",
              !allocation_may_become(AL_STATE_COUNT, (enum allocation_state)from));
    }
}

static void test_reservation(void **state)
{
    (void)state;
    CHECK("every state has its row", COUNT_OF(reservation_steps) == RSV_STATE_COUNT - 1);
    FOR_EACH_CASE (c, reservation_steps) {
        unsigned from = 0;
        CHECK(c->from, enum_parse(&reservation_state_names, str_of(c->from), &from));
        for (unsigned to = 0; to <= RSV_STATE_COUNT; to++)
            CHECK(c->from, reservation_may_become((enum reservation_state)from,
                                                  (enum reservation_state)to) ==
                               lists(c->to, enum_name(&reservation_state_names, to)));
        bool is_final = reservation_state_is_final((enum reservation_state)from);
        CHECK(c->from, is_final == (c->to[0] == '\0'));
        CHECK(c->from,
              is_final || reservation_may_become((enum reservation_state)from, RSV_CANCELLED));
        CHECK(c->from, !(is_final && reservation_is_kept((enum reservation_state)from)));
    }
    CHECK("none leads nowhere", !reservation_may_become(RSV_NONE, RSV_CONFIRMED));
    CHECK("nor does what is no state", !reservation_may_become(RSV_STATE_COUNT, RSV_CONFIRMED));
    CHECK("what is only asked for is not kept", !reservation_is_kept(RSV_REQUESTED));
}

static void test_change(void **state)
{
    (void)state;
    CHECK("every state has its row", COUNT_OF(change_steps) == CHG_STATE_COUNT - 1);
    FOR_EACH_CASE (c, change_steps) {
        unsigned from = 0;
        CHECK(c->from, enum_parse(&change_state_names, str_of(c->from), &from));
        for (unsigned to = 0; to <= CHG_STATE_COUNT; to++)
            CHECK(c->from, change_may_become((enum change_state)from, (enum change_state)to) ==
                               lists(c->to, enum_name(&change_state_names, to)));
        CHECK(c->from, change_state_is_final((enum change_state)from) == (c->to[0] == '\0'));
    }
    CHECK("none leads nowhere", !change_may_become(CHG_NONE, CHG_ACTIVE));
    CHECK("nor does what is no state", !change_may_become(CHG_STATE_COUNT, CHG_ACTIVE));
}

static void test_meaning(void **state)
{
    (void)state;
    static const struct {
        enum allocation_state state;
        bool is_charged, is_held;
    } cases[] = {
        { AL_NONE, false, false },       { AL_STARTING, true, true },  { AL_RUNNING, true, true },
        { AL_STOPPING, true, true },     { AL_CLEANING, false, true }, { AL_LOST, false, true },
        { AL_QUARANTINED, false, true }, { AL_ENDED, false, false },
    };
    FOR_EACH_CASE (c, cases) {
        const char *name = enum_name(&allocation_state_names, c->state);
        CHECK(name, allocation_is_charged(c->state) == c->is_charged);
        CHECK(name, allocation_is_held(c->state) == c->is_held);
    }
}

/* From every state that is not final, an end is in reach: nothing can be stuck by the table. */
static void test_every_state_can_end(void **state)
{
    (void)state;
    for (unsigned from = WL_HELD; from < WL_SUCCEEDED; from++)
        CHECK(enum_name(&workload_state_names, from),
              workload_may_become((enum workload_state)from, WL_CANCELLED));
    for (unsigned from = AL_STARTING; from < AL_ENDED; from++)
        CHECK(enum_name(&allocation_state_names, from),
              allocation_may_become((enum allocation_state)from, AL_ENDED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workload),    cmocka_unit_test(test_allocation),
        cmocka_unit_test(test_reservation), cmocka_unit_test(test_change),
        cmocka_unit_test(test_meaning),     cmocka_unit_test(test_every_state_can_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
