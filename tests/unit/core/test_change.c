/* Changes of quotas, priorities and settings: what is refused, that each of them ends as if it had
 * never been, whatever lies over it, and what is said of it before. */
#include <string.h>

#include "core/preview.h"
#include "model/policy.h"
#include "unit/sched/lab.h"
#include "unit/test.h"

#define START_S INT64_C(1780272000) /* 2026-06-01T00:00:00Z, a Monday */

static void world(struct lab *lab)
{
    lab_init(lab);
    lab->wall.ns = START_S * NS_PER_S;
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = { "n1", "n2" };
        (void)lab_add_node(lab, (struct lab_node){ names[i], "h100", .devices = 8 });
    }
    (void)lab_project(lab, "amber", (struct lab_quota){ "h100", .quota_milli = 4000 });
    (void)lab_project(lab, "birch", (struct lab_quota){ "h100", .quota_milli = 4000 });
}

static struct command blank(void)
{
    const struct policy_patch nothing = policy_nothing();
    struct command command = { .type = CMD_CHANGE_CREATE };
    command.change = (struct change_spec){ .duration_s = UNSET,
                                           .every = UNSET,
                                           .interval = UNSET,
                                           .priority = UNSET,
                                           .log_quota_mib = UNSET,
                                           .log_days = UNSET,
                                           .settings = nothing.settings };
    return command;
}

/* Of amber's guarantee; `rows` has to live as long as the command. */
static struct command quota_of(struct quota_spec *row, int64_t milli)
{
    struct command command = blank();
    *row = (struct quota_spec){ STR("h100"), milli, UNSET, UNSET, UNSET };
    command.change.project = STR("amber");
    command.change.quotas = (struct quota_spec_list){ row, 1 };
    return command;
}

static enum err make(struct lab *lab, struct command *command)
{
    command->new_id = lab_id(lab);
    return lab_do(lab, command);
}

static const struct change_record *record(const struct lab *lab, struct id id)
{
    const struct change *change = state_change(lab->state, id);
    return change != NULL ? &change->r : NULL;
}

static int64_t quota_now(const struct lab *lab)
{
    const struct project *amber = state_project_by_path(lab->state, STR("amber"));
    const struct class_object *class = state_class_by_name(lab->state, STR("h100"));
    return project_quota(amber, class->r.number).quota_milli / 1000;
}

static enum err revert(struct lab *lab, struct id id)
{
    struct command command = { .type = CMD_CHANGE_REVERT };
    command.target.id = id;
    return lab_do(lab, &command);
}

/* ---- what is refused ----------------------------------------------------------------------- */

#define CHANGE(name, what)                                                                         \
    static void name(struct change_spec *s)                                                        \
    {                                                                                              \
        what;                                                                                      \
    }
CHANGE(bad_name, s->name = STR("Night"))
CHANGE(name_of_the_settings, s->name = STR("settings"))
CHANGE(name_of_a_project, s->name = STR("birch"))
CHANGE(name_like_an_id, s->name = STR("chg_01m8qh64g99t1yp9vc5mfjnm0c"))
CHANGE(no_project, s->project = STR("oak"))
CHANGE(quotas_of_settings, s->project = STR(""))
CHANGE(settings_of_project, s->settings.grace_s = 5)
CHANGE(no_class, s->quotas.items[0].class_name = STR("b200"))
CHANGE(negative, s->quotas.items[0].quota_milli = -1)
CHANGE(nothing, s->quotas.count = 0)
CHANGE(too_much, s->quotas.items[0].quota_milli = 13000)
CHANGE(too_much_later, s->quotas.items[0].quota_milli = 13000; s->from = STR("2026-06-02T00:00"))
CHANGE(bad_priority, s->priority = 1001)
CHANGE(bad_from, s->from = STR("tomorrow"))
CHANGE(bad_until, s->until = STR("2026-06-31T00:00:00"))
CHANGE(in_the_past, s->from = STR("2026-05-01T00:00"); s->until = STR("2026-05-02T00:00"))
CHANGE(until_and_span, s->until = STR("2026-06-02T00:00"); s->duration_s = 60)
CHANGE(no_span, s->duration_s = 0)
CHANGE(for_ever_again, s->every = REPEAT_DAY)
CHANGE(into_the_next, s->every = REPEAT_DAY; s->duration_s = 90000)
CHANGE(once_until, s->repeat_until = STR("2026-07-01T00:00"); s->duration_s = 60)
CHANGE(bad_zone, s->zone = STR("Europe/Atlantis"); s->until = STR("2026-06-02T00:00"))
CHANGE(too_far, s->from = STR("2028-06-02T00:00"))

/* clang-format off */
static const struct {
    const char *name;
    void (*change)(struct change_spec *s);
    enum err rc;
    enum cause cause;
    const char *field;
} refusals[] = {
    { "a name that is none", bad_name, ERR_INVALID, CAUSE_NONE, "name" },
    { "a name that means the settings", name_of_the_settings, ERR_INVALID, CAUSE_NONE, "name" },
    { "a name that means a project", name_of_a_project, ERR_INVALID, CAUSE_NONE, "name" },
    { "a name like an id", name_like_an_id, ERR_INVALID, CAUSE_NONE, "name" },
    { "an absent project", no_project, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "" },
    { "quotas of nobody", quotas_of_settings, ERR_INVALID, CAUSE_NONE, "project" },
    { "settings of a project", settings_of_project, ERR_INVALID, CAUSE_NONE, "project" },
    { "an absent class", no_class, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "quotas.class" },
    { "less than nothing", negative, ERR_INVALID, CAUSE_NONE, "quotas.quota_milli" },
    { "nothing to change", nothing, ERR_INVALID, CAUSE_NONE, "quotas" },
    { "more than there is", too_much, ERR_CONFLICT, CAUSE_OVERCOMMITTED, "" },
    { "and as much tomorrow", too_much_later, ERR_CONFLICT, CAUSE_OVERCOMMITTED, "" },
    { "a priority out of range", bad_priority, ERR_INVALID, CAUSE_NONE, "priority" },
    { "a time that is none", bad_from, ERR_INVALID, CAUSE_NONE, "from" },
    { "a day that does not exist", bad_until, ERR_INVALID, CAUSE_NONE, "until" },
    { "a window that is over", in_the_past, ERR_INVALID, CAUSE_NONE, "until" },
    { "an end and a span", until_and_span, ERR_INVALID, CAUSE_NONE, "until" },
    { "no time at all", no_span, ERR_INVALID, CAUSE_NONE, "duration_s" },
    { "every day for good", for_ever_again, ERR_INVALID, CAUSE_NONE, "until" },
    { "windows that meet", into_the_next, ERR_INVALID, CAUSE_NONE, "until" },
    { "an end of what comes once", once_until, ERR_INVALID, CAUSE_NONE, "repeat_until" },
    { "a zone that is none", bad_zone, ERR_INVALID, CAUSE_NONE, "zone" },
    { "a start too far away", too_far, ERR_INVALID, CAUSE_NONE, "from" },
};
/* clang-format on */

static void refused_with_the_field(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct quota_spec row;
    FOR_EACH_CASE (c, refusals) {
        struct command command = quota_of(&row, 8000);
        uint64_t before = lab.state->sequence;
        c->change(&command.change);
        if (make(&lab, &command) != c->rc)
            fail_msg("%s: %s", c->name, lab.e.text);
        CHECK(c->name, lab.e.cause == c->cause);
        if (strcmp(lab.e.field, c->field) != 0)
            fail_msg("%s: field %s (%s)", c->name, lab.e.field, lab.e.text);
        CHECK("changes nothing", lab.state->sequence == before);
    }
    struct command command = quota_of(&row, 8000);
    command.change.name = STR("night");
    CHECK("and without any of that it is taken", make(&lab, &command) == ERR_OK);
    CHECK("it holds", quota_now(&lab) == 8);
    CHECK("a name is there once", make(&lab, &command) == ERR_CONFLICT);
}

static void only_operators(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct quota_spec row;
    const struct project *amber = state_project_by_path(lab.state, STR("amber"));
    const struct actor ada = { .role = ROLE_MEMBER, .tenant = amber->r.id, .name = STR("ada") };
    struct command command = quota_of(&row, 8000);
    CHECK("by operators", make(&lab, &command) == ERR_OK);
    struct command take_back = { .type = CMD_CHANGE_REVERT, .actor = ada };
    take_back.target.id = command.new_id;
    CHECK("not taken back by members", lab_do(&lab, &take_back) == ERR_DENIED);
    command.actor = ada;
    CHECK("nor made by them", make(&lab, &command) == ERR_DENIED);
    CHECK("of what is not there nothing is taken back",
          revert(&lab, lab_id(&lab)) == ERR_NOT_FOUND);
}

static void forced_is_flagged(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct quota_spec row;
    struct command command = quota_of(&row, 13000);
    command.change.is_forced = true;
    CHECK("by force", make(&lab, &command) == ERR_OK);
    const struct project *amber = state_project_by_path(lab.state, STR("amber"));
    CHECK("it says so", amber->r.is_overcommitted);
    CHECK("taken back", revert(&lab, command.new_id) == ERR_OK);
    CHECK("and does not say so any more", !amber->r.is_overcommitted && quota_now(&lab) == 4);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void ends_by_itself(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct quota_spec row;
    struct command command = quota_of(&row, 8000);
    command.change.duration_s = 600;
    CHECK("for ten minutes", make(&lab, &command) == ERR_OK);
    CHECK("it holds at once", quota_now(&lab) == 8);
    lab_run(&lab, 590);
    CHECK("it holds", quota_now(&lab) == 8);
    lab_restart(&lab);
    lab_run(&lab, 20);
    CHECK("what was before holds again", quota_now(&lab) == 4);
    CHECK("it says so", record(&lab, command.new_id)->state == CHG_EXPIRED);
    CHECK("and cannot be taken back", revert(&lab, command.new_id) == ERR_CONFLICT);
    lab_run(&lab, lab.state->settings.ended_keep_s + 10);
    CHECK("then it is forgotten", record(&lab, command.new_id) == NULL);
}

static void begins_later(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct quota_spec row;
    struct command command = quota_of(&row, 8000);
    command.change.from = STR("2026-06-01T00:10");
    CHECK("later, for good", make(&lab, &command) == ERR_OK);
    CHECK("not yet", quota_now(&lab) == 4 && record(&lab, command.new_id)->state == CHG_SCHEDULED);
    lab_run(&lab, 605);
    CHECK("now", quota_now(&lab) == 8 && record(&lab, command.new_id)->state == CHG_ACTIVE);
    command = quota_of(&row, 6000);
    command.change.from = STR("2026-06-01T00:20");
    CHECK("another", make(&lab, &command) == ERR_OK);
    CHECK("taken back before it begins", revert(&lab, command.new_id) == ERR_OK);
    lab_run(&lab, 1200);
    CHECK("it never does", quota_now(&lab) == 8);
}

/* "Priorities that can change overnight." */
static void comes_every_night(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    lab.is_unchecked = true;
    const struct project *amber = state_project_by_path(lab.state, STR("amber"));
    int64_t by_day = amber->r.priority;
    struct command command = blank();
    command.change.project = STR("amber");
    command.change.priority = 900;
    command.change.zone = STR("Europe/Berlin");
    command.change.zone_rule = STR("CET-1CEST,M3.5.0,M10.5.0/3");
    command.change.from = STR("2026-06-01T03:00");
    command.change.until = STR("2026-06-01T04:00");
    command.change.every = REPEAT_DAY;
    command.change.repeat_until = STR("2026-06-03T00:00");
    CHECK("every night", make(&lab, &command) == ERR_OK);
    for (int night = 0; night < 2; night++) {
        lab_run(&lab, 3590); /* 01:00 UTC is 03:00 in Berlin */
        CHECK("by day", amber->r.priority == by_day);
        lab_run(&lab, 30);
        CHECK("by night", amber->r.priority == 900);
        CHECK("it is on", record(&lab, command.new_id)->state == CHG_ACTIVE);
        lab_run(&lab, 3590);
        CHECK("by day again", amber->r.priority == by_day);
        lab_run(&lab, 86400 - 3590 - 30 - 3590);
    }
    CHECK("two nights, and no more", record(&lab, command.new_id) == NULL);
}

static void passes_while_nobody_looks(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct quota_spec row;
    struct command command = quota_of(&row, 8000);
    command.change.from = STR("2026-06-01T00:10");
    command.change.until = STR("2026-06-01T00:20");
    CHECK("later", make(&lab, &command) == ERR_OK);
    lab.now.ns += 1800 * NS_PER_S;
    lab.wall.ns += 1800 * NS_PER_S;
    lab_restart(&lab);
    lab_run(&lab, 2);
    CHECK("it is over", record(&lab, command.new_id)->state == CHG_EXPIRED);
    CHECK("and says why", strstr(record(&lab, command.new_id)->detail.data, "was away") != NULL);
    CHECK("nothing changed", quota_now(&lab) == 4);
}

static void fails_when_it_does_not_fit_then(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct quota_spec row;
    struct command command = quota_of(&row, 8000);
    command.change.from = STR("2026-06-01T00:10");
    CHECK("it would fit now", make(&lab, &command) == ERR_OK);
    lab_set_quota(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 10000 });
    lab_run(&lab, 605);
    const struct change_record *r = record(&lab, command.new_id);
    CHECK("it does not any more", r->state == CHG_FAILED && quota_now(&lab) == 4);
    CHECK("and says why", memmem(r->detail.data, r->detail.size, "guaranteed", 10) != NULL);
}

/* ---- layers -------------------------------------------------------------------------------- */

/* Three changes of one field in every order of their ends: each time what is left on top holds. */
static void layers_are_taken_out(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t ends[3];
        int64_t quotas[4]; /* after none, one, two, all of them */
    } orders[] = {
        { "the last first", { 2, 1, 0 }, { 7, 6, 5, 4 } },
        { "the first first", { 0, 1, 2 }, { 7, 7, 7, 4 } },
        { "the middle first", { 1, 2, 0 }, { 7, 7, 5, 4 } },
        { "the middle, then the first", { 1, 0, 2 }, { 7, 7, 7, 4 } },
        { "the first, then the last", { 0, 2, 1 }, { 7, 7, 6, 4 } },
        { "the last, then the first", { 2, 0, 1 }, { 7, 6, 6, 4 } },
    };
    FOR_EACH_CASE (c, orders) {
        AUTO(lab) struct lab lab;
        world(&lab);
        struct id ids[3];
        for (int64_t i = 0; i < 3; i++) {
            struct quota_spec row;
            struct command command = quota_of(&row, (5 + i) * 1000);
            CHECK(c->name, make(&lab, &command) == ERR_OK);
            ids[i] = command.new_id;
        }
        CHECK(c->name, quota_now(&lab) == c->quotas[0]);
        for (size_t i = 0; i < 3; i++) {
            CHECK(c->name, revert(&lab, ids[c->ends[i]]) == ERR_OK);
            CHECK(c->name, quota_now(&lab) == c->quotas[i + 1]);
        }
    }
}

static void the_last_word_counts(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct quota_spec row;
    struct command command = quota_of(&row, 8000);
    command.change.priority = 70;
    command.change.duration_s = 600;
    const struct project *amber = state_project_by_path(lab.state, STR("amber"));
    int64_t before = amber->r.priority;
    CHECK("for a time", make(&lab, &command) == ERR_OK);
    lab_set_quota(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 5000 });
    lab_run(&lab, 610);
    CHECK("what a person said meanwhile stays", quota_now(&lab) == 5);
    CHECK("the rest is as before", amber->r.priority == before);
}

static void settings_for_a_time(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = blank();
    enum placement before = lab.state->settings.placement;
    command.change.settings.placement = PLACE_SPREAD;
    command.change.settings.grace_s = 5;
    command.change.duration_s = 60;
    CHECK("both", make(&lab, &command) == ERR_OK);
    CHECK("they hold",
          lab.state->settings.placement == PLACE_SPREAD && lab.state->settings.grace_s == 5);
    lab_run(&lab, 61);
    CHECK("then no more",
          lab.state->settings.placement == before && lab.state->settings.grace_s != 5);
    command.change.settings.placement = PLACEMENT_COUNT;
    CHECK("no such placement", make(&lab, &command) == ERR_INVALID);
    command.change.settings.placement = UNSET;
    command.change.settings.lost_after_s = 10;
    CHECK("what does not go together", make(&lab, &command) == ERR_INVALID);
    CHECK("is refused by field", strcmp(lab.e.field, "lost_after_s") == 0);
}

/* What was before may not go with what others set meanwhile: then that stays, and it is said. */
static void what_does_not_go_back(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = blank();
    struct settings_record settings = lab_no_settings();
    command.change.settings.lost_after_s = 600;
    command.change.duration_s = 60;
    CHECK("for a time", make(&lab, &command) == ERR_OK);
    settings.unknown_after_s = 300;
    lab_set(&lab, settings);
    CHECK("not by hand", revert(&lab, command.new_id) == ERR_INVALID);
    lab_run(&lab, 61);
    const struct change_record *r = record(&lab, command.new_id);
    CHECK("it ends", r->state == CHG_EXPIRED && lab.state->settings.lost_after_s == 600);
    CHECK("and says so", memmem(r->detail.data, r->detail.size, "not put back", 12) != NULL);
}

static void only_the_last_few_are_kept(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct id first = { 0 };
    for (int64_t i = 0; i <= CHANGES_KEPT_MAX; i++) {
        struct command command = blank();
        command.change.project = STR("amber");
        command.change.priority = 100 + i;
        CHECK("one more", make(&lab, &command) == ERR_OK);
        first = i == 0 ? command.new_id : first;
    }
    CHECK("the first is settled", record(&lab, first)->state == CHG_SETTLED);
    CHECK("it is there for good", revert(&lab, first) == ERR_CONFLICT);
}

/* ---- before it is made --------------------------------------------------------------------- */

static void preview_says_who(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    AUTO(arena) struct arena arena = { 0 };
    struct preview preview;
    struct error e = { 0 };
    struct quota_spec row;
    struct lab_job urgent = { "amber", .gpu_milli = 2000, .priority = 90 };
    struct lab_job plain = { "amber", .gpu_milli = 2000 };
    struct id keeps = lab_submit(&lab, urgent);
    struct id loses = lab_submit(&lab, plain);
    lab_run(&lab, 5);
    CHECK("both run", lab_is(&lab, keeps, WL_RUNNING) && lab_is(&lab, loses, WL_RUNNING));
    struct command command = quota_of(&row, 2000);
    row.limit_milli = 3000;
    command.actor.role = ROLE_ADMIN;
    command.new_id = lab_id(&lab);
    command.now = lab.now;
    command.wall = lab.wall;
    CHECK_OK("previewed", core_preview(lab.state, lab.sched, &command, &arena, &preview, &e), &e);
    CHECK("one level", preview.level_count == 1);
    const struct preview_level *level = &preview.levels[0];
    CHECK("its guarantee", level->quota_milli == 4000 && level->new_quota_milli == 2000);
    CHECK("its limit", level->limit_milli == UNBOUNDED && level->new_limit_milli == 3000);
    CHECK("what is borrowed", level->borrowed_milli == 0 && level->new_borrowed_milli == 2000);
    CHECK("one of them", preview.work_count == 1);
    CHECK("the less urgent one", id_eq(preview.work[0].workload->r.id, loses));
    CHECK("becomes borrowed", preview.work[0].effect == EFFECT_BORROWED);
    CHECK("nothing was done",
          quota_now(&lab) == 4 && state_change(lab.state, command.new_id) == NULL);
    row.quota_milli = 13000;
    CHECK("refused as it would be",
          core_preview(lab.state, lab.sched, &command, &arena, &preview, &e) == ERR_CONFLICT);
    command.change.is_forced = true;
    CHECK_OK("by force", core_preview(lab.state, lab.sched, &command, &arena, &preview, &e), &e);
    CHECK("which is said", preview.is_overcommitted && preview.work_count == 0);
    command = blank();
    command.new_id = lab_id(&lab);
    command.actor.role = ROLE_ADMIN;
    command.now = lab.now;
    command.wall = lab.wall;
    command.change.settings.min_runtime_s = 0;
    CHECK_OK("settings", core_preview(lab.state, lab.sched, &command, &arena, &preview, &e), &e);
    CHECK("both lose their protection",
          preview.work_count == 2 && preview.work[0].effect == EFFECT_UNPROTECTED);
}

static void preview_of_sums(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    AUTO(arena) struct arena arena = { 0 };
    struct preview preview;
    struct error e = { 0 };
    struct quota_spec row;
    (void)lab_project(&lab, "cedar", (struct lab_quota){ .class_name = "h100" });
    (void)lab_project(&lab, "cedar/deep", (struct lab_quota){ "h100", .quota_milli = 1000 });
    struct command command = quota_of(&row, 3000);
    command.change.project = STR("cedar/deep");
    command.actor.role = ROLE_ADMIN;
    command.new_id = lab_id(&lab);
    command.now = lab.now;
    command.wall = lab.wall;
    CHECK_OK("previewed", core_preview(lab.state, lab.sched, &command, &arena, &preview, &e), &e);
    CHECK("the tenant's is the sum of its children's", preview.level_count == 2);
    CHECK("and rises with them",
          preview.levels[1].quota_milli == 1000 && preview.levels[1].new_quota_milli == 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_with_the_field),
        cmocka_unit_test(only_operators),
        cmocka_unit_test(forced_is_flagged),
        cmocka_unit_test(ends_by_itself),
        cmocka_unit_test(begins_later),
        cmocka_unit_test(comes_every_night),
        cmocka_unit_test(passes_while_nobody_looks),
        cmocka_unit_test(fails_when_it_does_not_fit_then),
        cmocka_unit_test(layers_are_taken_out),
        cmocka_unit_test(the_last_word_counts),
        cmocka_unit_test(settings_for_a_time),
        cmocka_unit_test(what_does_not_go_back),
        cmocka_unit_test(only_the_last_few_are_kept),
        cmocka_unit_test(preview_says_who),
        cmocka_unit_test(preview_of_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
