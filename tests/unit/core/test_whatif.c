/* What would follow, found out on a copy: who starts when, who is evicted, what is refused; and
 * that what was asked of is untouched. */
#include "core/whatif.h"
#include "unit/sched/lab.h"
#include "unit/test.h"

enum { HOUR_S = 3600, DAY_S = 86400 };

struct copy {
    struct state *state;
    struct sched *sched;
};

static void copy_done(struct copy *copy)
{
    sched_free(copy->sched);
    state_free(copy->state);
}
DEFINE_CLEANUP_AT(copy, struct copy, copy_done)

static void restore(void *arg, const struct event *event)
{
    evolve_restored(arg, event);
}

static void copy_make(const struct lab *lab, struct copy *out)
{
    struct state_header header = state_header(lab->state);
    out->state = state_new();
    state_restore_header(out->state, &header);
    state_walk(lab->state, restore, out->state);
    out->sched = sched_new(out->state);
}

static void world(struct lab *lab)
{
    lab_init(lab);
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = { "n1", "n2" };
        (void)lab_add_node(lab, (struct lab_node){ names[i], "h100", .devices = 4 });
    }
    (void)lab_project(lab, "amber", (struct lab_quota){ "h100", .quota_milli = 4000 });
    (void)lab_project(lab, "birch", (struct lab_quota){ "h100", .quota_milli = 2000 });
}

static struct command submit(struct lab *lab, const char *project, int64_t gpus)
{
    struct command command =
        lab_submission(lab, (struct lab_job){ project, .gpu_milli = gpus * 1000 });
    command.actor = (struct actor){ .role = ROLE_ADMIN, .name = STR("root") };
    return command;
}

static enum err ask(const struct lab *lab, struct command *commands, size_t count, struct id lost,
                    struct whatif_run *out)
{
    AUTO(copy) struct copy copy = { 0 };
    struct error e = { 0 };
    const struct whatif_ask question = { .commands = commands,
                                         .count = count,
                                         .lost = lost,
                                         .horizon_s = DAY_S,
                                         .now = lab->now,
                                         .wall = lab->wall };
    uint64_t before = lab->state->sequence;
    copy_make(lab, &copy);
    enum err rc = core_whatif(copy.state, copy.sched, &question, out, &e);
    CHECK("nothing is done", lab->state->sequence == before);
    return rc;
}

static int64_t start_s(const struct whatif_run *run, struct id workload)
{
    const struct whatif_row *row = whatif_row_of(run, workload);
    bool has_started = row != NULL && row->started.ns != INT64_MAX;
    return has_started ? (row->started.ns - run->from.ns) / NS_PER_S : -1;
}

static const struct id nobody;

static void starts_when_others_end(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct lab_job job = { "amber", .gpu_milli = 4000, .time_limit_s = HOUR_S };
    (void)lab_submit(&lab, job);
    (void)lab_submit(&lab, job);
    lab_run(&lab, 60);
    struct command command = submit(&lab, "amber", 4);
    AUTO(whatif_run) struct whatif_run run = { 0 };
    CHECK("asked", ask(&lab, &command, 1, nobody, &run) == ERR_OK);
    int64_t at = start_s(&run, command.new_id);
    CHECK("when one of them has to end", at > HOUR_S - 120 && at <= HOUR_S);
    CHECK("it is the only one", run.starts == 1 && run.evictions == 0 && run.waiting == 0);
    CHECK("and new", whatif_row_of(&run, command.new_id)->is_new && !run.is_cut);
    CHECK("its name is kept", whatif_row_of(&run, command.new_id)->name.size > 0);
}

static void never_behind_endless_work(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct lab_job job = { "amber", .gpu_milli = 4000 };
    (void)lab_submit(&lab, job);
    (void)lab_submit(&lab, job);
    lab_run(&lab, 5);
    struct command command = submit(&lab, "amber", 4);
    AUTO(whatif_run) struct whatif_run run = { 0 };
    CHECK("asked", ask(&lab, &command, 1, nobody, &run) == ERR_OK);
    CHECK("it waits", start_s(&run, command.new_id) < 0 && run.waiting == 1);
    struct settings_record settings = lab_no_settings();
    settings.default_time_limit_s = HOUR_S;
    lab_set(&lab, settings);
    AUTO(whatif_run) struct whatif_run planned = { 0 };
    CHECK("asked", ask(&lab, &command, 1, nobody, &planned) == ERR_OK);
    int64_t at = start_s(&planned, command.new_id);
    CHECK("unless that is planned to end", at > 0 && at <= HOUR_S);
}

static void who_is_evicted(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct settings_record settings = lab_no_settings();
    settings.min_runtime_in_quota_s = 0;
    lab_set(&lab, settings);
    struct id kept = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    struct id lent = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    lab_run(&lab, 5);
    struct command command = submit(&lab, "birch", 2);
    AUTO(whatif_run) struct whatif_run run = { 0 };
    CHECK("asked", ask(&lab, &command, 1, nobody, &run) == ERR_OK);
    const struct whatif_row *row = whatif_row_of(&run, lent);
    CHECK("what is borrowed", row != NULL && row->evictions == 1 && run.evictions == 1);
    CHECK("for a quota", row->cause == CAUSE_RECLAIMED_FOR_QUOTA);
    CHECK("and nothing else", whatif_row_of(&run, kept) == NULL);
    CHECK("then the owner starts", start_s(&run, command.new_id) >= 0);
    CHECK("it still runs", lab_is(&lab, lent, WL_RUNNING));
}

static void a_node_is_lost(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct id a = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 2000 });
    lab_run(&lab, 5);
    AUTO(whatif_run) struct whatif_run run = { 0 };
    CHECK("asked", ask(&lab, NULL, 0, lab_where(&lab, a)->r.id, &run) == ERR_OK);
    CHECK("it starts elsewhere at once", start_s(&run, a) == 0);
    CHECK("that is no eviction", run.evictions == 0 && run.waiting == 0);
}

static void refused_as_it_would_be(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    struct command command = submit(&lab, "amber", 5);
    AUTO(whatif_run) struct whatif_run run = { 0 };
    CHECK("no node has five", ask(&lab, &command, 1, nobody, &run) != ERR_OK);
    CHECK("nothing to tell", run.rows.count == 0);
}

static bool never(void *arg)
{
    ++*(size_t *)arg;
    return false;
}

static void cut_when_time_is_up(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    AUTO(copy) struct copy copy = { 0 };
    AUTO(whatif_run) struct whatif_run run = { 0 };
    struct error e = { 0 };
    size_t asked = 0;
    world(&lab);
    copy_make(&lab, &copy);
    struct command command = submit(&lab, "amber", 4);
    const struct whatif_ask question = { .commands = &command,
                                         .count = 1,
                                         .horizon_s = DAY_S,
                                         .now = lab.now,
                                         .wall = lab.wall,
                                         .may_go_on = never,
                                         .arg = &asked };
    CHECK_OK("asked", core_whatif(copy.state, copy.sched, &question, &run, &e), &e);
    CHECK("it says so", run.is_cut && asked > 0 && run.starts == 0);
}

static void the_same_twice(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    world(&lab);
    for (int i = 0; i < 6; i++)
        (void)lab_submit(&lab, (struct lab_job){ i % 2 == 0 ? "amber" : "birch",
                                                 .gpu_milli = 1000 * (i % 4 + 1),
                                                 .time_limit_s = 600 * (i + 1) });
    lab_run(&lab, 20);
    struct command command = submit(&lab, "birch", 3);
    AUTO(whatif_run) struct whatif_run first = { 0 };
    AUTO(whatif_run) struct whatif_run second = { 0 };
    CHECK("once", ask(&lab, &command, 1, nobody, &first) == ERR_OK);
    CHECK("twice", ask(&lab, &command, 1, nobody, &second) == ERR_OK);
    CHECK("as many", first.rows.count == second.rows.count);
    for (size_t i = 0; i < first.rows.count; i++)
        CHECK("the same", id_eq(first.rows.items[i].workload, second.rows.items[i].workload) &&
                              first.rows.items[i].started.ns == second.rows.items[i].started.ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_when_others_end), cmocka_unit_test(never_behind_endless_work),
        cmocka_unit_test(who_is_evicted),         cmocka_unit_test(a_node_is_lost),
        cmocka_unit_test(refused_as_it_would_be), cmocka_unit_test(cut_when_time_is_up),
        cmocka_unit_test(the_same_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
