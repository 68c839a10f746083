#include <string.h>

#include "model/command.h"
#include "model/kinds.h"
#include "unit/test.h"

static const struct {
    const struct enum_names *names;
    const char *of_zero; /* NULL: zero has no name */
    const char *of_last;
    size_t count;
} tables[] = {
    { &workload_state_names, NULL, "timed_out", WL_STATE_COUNT },
    { &allocation_state_names, NULL, "ended", AL_STATE_COUNT },
    { &workload_kind_names, "job", "cluster", WORKLOAD_KIND_COUNT },
    { &class_kind_names, "gpu", "cpu", CLASS_KIND_COUNT },
    { &slicing_names, "policed", "cooperative", SLICING_COUNT },
    { &site_kind_names, "native", "sim", SITE_KIND_COUNT },
    { &on_contact_loss_names, "restart", "keep", ON_CONTACT_LOSS_COUNT },
    { &restart_policy_names, "on_failure", "never", RESTART_POLICY_COUNT },
    { &preemptible_names, "always", "never", PREEMPTIBLE_COUNT },
    { &dependency_when_names, "ok", "failed", DEPENDENCY_WHEN_COUNT },
    { &role_names, NULL, "system", ROLE_COUNT },
    { &node_contact_names, "never", "lost", NODE_CONTACT_COUNT },
    { &hold_kind_names, "person", "drain", HOLD_KIND_COUNT },
    { &device_health_names, "ok", "gone", DEVICE_HEALTH_COUNT },
    { &reclaim_to_names, "quota", "fair_share", RECLAIM_TO_COUNT },
    { &user_fairness_names, "off", "usage", USER_FAIRNESS_COUNT },
    { &consolidate_names, "off", "on", CONSOLIDATE_COUNT },
    { &placement_names, "first_fit", "adaptive", PLACEMENT_COUNT },
    { &topology_names, NULL, "block", TOPOLOGY_COUNT },
    { &cause_names, NULL, "unavailable", CAUSE_COUNT },
};

/* Names go into JSON, SQL and scripts. */
static bool is_word(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (!(*c >= 'a' && *c <= 'z') && *c != '_')
            return false;
    }
    return text[0] != '\0';
}

static void test_tables(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, tables) {
        const char *what = c->names->what;
        CHECK(what, c->names->count == c->count);
        CHECK(what, strcmp(enum_name(c->names, 0), c->of_zero != NULL ? c->of_zero : "") == 0);
        CHECK(what, strcmp(enum_name(c->names, (unsigned)c->count - 1), c->of_last) == 0);
        for (unsigned value = c->of_zero != NULL ? 0 : 1; value < c->count; value++) {
            unsigned parsed = ~0u;
            CHECK(what, is_word(enum_name(c->names, value)));
            CHECK(enum_name(c->names, value),
                  enum_parse(c->names, str_of(enum_name(c->names, value)), &parsed));
            CHECK("a name belongs to one value", parsed == value);
        }
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const not_names[] = { "", "Job", "job ", "jo", "jobs", "JOB" };
    unsigned untouched = 7;
    for (size_t i = 0; i < COUNT_OF(not_names); i++)
        CHECK(not_names[i], !enum_parse(&workload_kind_names, str_of(not_names[i]), &untouched));
    CHECK("the state called none has no name",
          !enum_parse(&workload_state_names, STR(""), &untouched));
    CHECK("a refusal leaves the output", untouched == 7);
    CHECK("beyond the table is unnamed", enum_name(&workload_kind_names, 99)[0] == '\0');
}

static void test_causes(void **state)
{
    (void)state;
    CHECK("none has no name", cause_name(CAUSE_NONE)[0] == '\0');
    CHECK("none has no meaning", cause_meaning(CAUSE_NONE)[0] == '\0');
    CHECK("beyond the list is unnamed", cause_name(CAUSE_COUNT)[0] == '\0');
    CHECK("beyond the list means nothing", cause_meaning(CAUSE_COUNT)[0] == '\0');
    for (unsigned i = CAUSE_NONE + 1; i < CAUSE_COUNT; i++) {
        enum cause cause = CAUSE_NONE;
        const char *meaning = cause_meaning((enum cause)i);
        CHECK("parses", cause_parse(str_of(cause_name((enum cause)i)), &cause) && cause == i);
        CHECK(cause_name((enum cause)i), meaning != NULL && strlen(meaning) > 20);
        CHECK("is a sentence", meaning[strlen(meaning) - 1] == '.');
    }
    size_t usual = 0;
    for (unsigned i = CAUSE_NONE; i < CAUSE_COUNT; i++)
        usual += cause_is_usual((enum cause)i);
    CHECK("usual is what starts or runs, and nothing else",
          usual == 2 && cause_is_usual(CAUSE_GRANTED) && cause_is_usual(CAUSE_STARTED));
    enum cause cause = CAUSE_HELD;
    CHECK("refuses other words", !cause_parse(STR("bad_luck"), &cause) && cause == CAUSE_HELD);
}

static void test_events(void **state)
{
    (void)state;
    size_t named = 0;
    for (unsigned i = 0; i < EV_TYPE_COUNT; i++) {
        const char *name = event_name((enum event_type)i);
        enum event_type type = EV_NONE;
        if (name == NULL)
            continue;
        named++;
        CHECK(name, is_word(name));
        CHECK(name, event_parse_name(str_of(name), &type) && type == i);
    }
    CHECK("every type is named", named == 39);
    CHECK("none is no type", event_name(EV_NONE) == NULL);
    CHECK("beyond is no type", event_name(EV_TYPE_COUNT) == NULL);
    enum event_type type = EV_POOL_SET;
    CHECK("refuses other words", !event_parse_name(STR("pool_painted"), &type));
    CHECK("leaves the output", type == EV_POOL_SET);
}

/* Numbers are stored in journals: they may be added to, never changed. */
static void test_event_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned number;
    } stored[] = {
        { "controller_started", 1 },  { "settings_changed", 2 },
        { "class_set", 10 },          { "class_removed", 11 },
        { "pool_set", 12 },           { "pool_removed", 13 },
        { "profile_set", 14 },        { "profile_removed", 15 },
        { "project_set", 20 },        { "project_removed", 21 },
        { "token_set", 30 },          { "token_removed", 31 },
        { "node_set", 40 },           { "node_contact", 41 },
        { "node_holds", 42 },         { "node_removed", 43 },
        { "device_changed", 44 },     { "workload_submitted", 50 },
        { "workload_changed", 51 },   { "workload_forgotten", 52 },
        { "allocation_granted", 60 }, { "allocation_changed", 61 },
        { "volume_set", 70 },         { "volume_removed", 71 },
        { "image_set", 72 },          { "image_removed", 73 },
        { "credential_set", 74 },     { "credential_removed", 75 },
        { "upload_stored", 76 },      { "workload_untied", 53 },
        { "reservation_set", 80 },    { "reservation_removed", 81 },
        { "gang_changed", 54 },       { "change_set", 90 },
        { "change_removed", 91 },     { "allocation_noted", 62 },
        { "hook_set", 92 },           { "hook_removed", 93 },
        { "hook_tested", 94 },
    };
    FOR_EACH_CASE (c, stored) {
        enum event_type type = EV_NONE;
        CHECK(c->name, event_parse_name(str_of(c->name), &type) && type == c->number);
    }
}

static void test_event_add(void **state)
{
    (void)state;
    AUTO(arena) struct arena arena = { 0 };
    struct event_list list = { 0 };
    for (size_t i = 0; i < 100; i++) {
        struct event *event = event_add(&arena, &list, EV_POOL_REMOVED);
        CHECK("is empty", event->sequence == 0 && id_is_none(event->removed.id));
        CHECK("has version 1", event->version == 1 && event->type == EV_POOL_REMOVED);
        event->removed.id.lo = i + 1;
    }
    CHECK("counts", list.count == 100);
    for (size_t i = 0; i < list.count; i++)
        CHECK("keeps what was there", list.items[i].removed.id.lo == i + 1);
}

static void test_commands(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CMD_COUNT; i++) {
        CHECK("is a word", is_word(command_name((enum command_type)i)));
        for (unsigned k = 0; k < i; k++)
            CHECK(command_name((enum command_type)i),
                  strcmp(command_name((enum command_type)i), command_name((enum command_type)k)) !=
                      0);
    }
    CHECK("beyond the list is unnamed", command_name(CMD_COUNT)[0] == '\0');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_causes),        cmocka_unit_test(test_events),
        cmocka_unit_test(test_event_numbers), cmocka_unit_test(test_event_add),
        cmocka_unit_test(test_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
