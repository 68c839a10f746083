/*
 * What waiting work is told: who comes first, what would let it start now, never a word of other
 * tenants; and by when it starts, which has to be true of nine starts in ten.
 */
#include <string.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

static const struct lab_quota no_quota = { 0 };

static struct advice advice_of(struct lab *lab, struct id id)
{
    struct advice advice;
    sched_advise(lab->sched, state_workload(lab->state, id), lab->now, &lab->arena, &advice);
    return advice;
}

static bool says(const struct str_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (str_is(list->items[i], text))
            return true;
    }
    for (size_t i = 0; i < list->count; i++)
        print_message("# said: %.*s\n", STR_ARG(list->items[i]));
    return false;
}

static void what_would_let_it_start(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "l40s", .devices = 8 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .limit_milli = 1000 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 2000, .class_name = "h100" });
    lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 500, .class_name = "h100" });
    lab_settle(&lab);
    struct id gang = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .members = 3, .class_name = "h100" });
    struct id wide =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 3000, .class_name = "h100" });
    struct id capped =
        lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .class_name = "h100" });
    lab_settle(&lab);
    struct advice advice = advice_of(&lab, gang);
    CHECK("a smaller gang", says(&advice.changes, "1 members instead of 3"));
    CHECK("another class", says(&advice.changes, "class l40s, which has room"));
    CHECK("nobody before it", advice.ahead_count == 0 && advice.ahead.count == 0);
    advice = advice_of(&lab, wide);
    CHECK("fewer devices", says(&advice.changes, "1 h100 a member instead of 3"));
    CHECK("the gang comes first", advice.ahead_count == 1 && advice.ahead.count == 1);
    CHECK("and others may", advice.others_come_first);
    CHECK("nobody declared an end", advice.by.ns == INT64_MAX);
    advice = advice_of(&lab, capped);
    CHECK("a higher limit", says(&advice.changes, "a limit of 1.500 h100 for birch"));
    CHECK("a fraction", says(&advice.changes, "0.500 of one h100"));
    CHECK("one blocker a class", advice.blockers.count == 1);
}

static struct id submit_as(struct lab *lab, const char *user)
{
    struct command command =
        lab_submission(lab, (struct lab_job){ "amber", .gpu_milli = 1000, .class_name = "h100" });
    command.actor = (struct actor){ .role = ROLE_ADMIN, .name = str_of(user) };
    command.new_id = lab_id(lab);
    lab_must(lab, &command);
    lab_settle(lab);
    return command.new_id;
}

static bool is_before(struct lab *lab, struct id first, struct id second)
{
    struct explanation one;
    struct explanation other;
    sched_explain(lab->sched, state_workload(lab->state, first), lab->now, &lab->arena, &one);
    sched_explain(lab->sched, state_workload(lab->state, second), lab->now, &lab->arena, &other);
    return one.position < other.position;
}

static void whose_turn_it_is_among_users(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 2 });
    lab_project(&lab, "amber", no_quota);
    (void)submit_as(&lab, "ann");
    (void)submit_as(&lab, "ann");
    struct id more = submit_as(&lab, "ann");
    struct id less = submit_as(&lab, "bob");
    CHECK("by submission", is_before(&lab, more, less));
    CHECK("without turns nothing is said", advice_of(&lab, less).turn.size == 0);

    struct settings_record settings = lab_no_settings();
    settings.user_fairness = USER_FAIRNESS_USAGE;
    lab_set(&lab, settings);
    lab_settle(&lab);
    CHECK("who has nothing comes first", is_before(&lab, less, more));
    struct advice advice = advice_of(&lab, more);
    print_message("# said: %.*s\n", STR_ARG(advice.turn));
    CHECK("and it is said why",
          str_is(advice.turn, "bob (now 0 devices, lately 0 on average) comes before ann (now 2"
                              " devices, lately 0 on average), who uses more of amber"));
    CHECK("one comes before it", advice.ahead_count == 1 && advice.ahead.count == 1);
    CHECK("nobody before the first",
          advice_of(&lab, less).turn.size == 0 && advice_of(&lab, less).ahead_count == 0);

    settings.user_fairness = USER_FAIRNESS_OFF;
    lab_set(&lab, settings);
    lab_settle(&lab);
    CHECK("by submission again", is_before(&lab, more, less));
}

static void a_shorter_time_limit(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 2000, .time_limit_s = 600 });
    lab_settle(&lab);
    struct id first = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    struct id kept = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    lab_settle(&lab);
    int64_t promised_ns = lab_record(&lab, first)->state_since.ns + 600 * NS_PER_S;
    struct advice advice = advice_of(&lab, kept);
    CHECK("in so many seconds the first one starts",
          says(&advice.changes, "a time limit of at most 600 s"));
    CHECK("it waits for that", lab_why(&lab, kept).is_kept);
    CHECK("the promise is the projection", advice_of(&lab, first).by.ns == promised_ns);
    CHECK("what runs is told nothing", advice_of(&lab, first).blockers.count == 1);
}

static void not_even_an_empty_cluster(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 2 });
    lab_project(&lab, "amber", no_quota);
    CHECK("cordon", lab_node_act(&lab, CMD_NODE_CORDON, "n1") == ERR_OK);
    struct id wide = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    lab_settle(&lab);
    struct explanation why = lab_why(&lab, wide);
    CHECK("is not called busy", strstr(str_c(&lab.arena, why.text),
                                       "not fit even if all usable nodes were empty") != NULL);
}

/* ---- projections --------------------------------------------------------------------------- */

enum { NODES = 4, DEVICES = 8, JOBS = 300, HISTORIES = 4 };

struct told {
    struct id id;
    int64_t runs_s; /* really */
    int64_t by_ns;  /* at its submission; 0: it did not wait */
    bool is_over;
};

static void submit_one(struct lab *lab, uint64_t *random, struct told *told)
{
    int64_t limit_s = 60 * (1 + (int64_t)test_below(random, 60));
    int64_t gpus = INT64_C(1) << test_below(random, 4);
    told->id =
        lab_submit(lab, (struct lab_job){ .project = test_below(random, 3) == 0 ? "birch" : "amber",
                                          .gpu_milli = 1000 * gpus,
                                          .members = test_below(random, 8) == 0 ? 2 : 1,
                                          .time_limit_s = limit_s });
    told->runs_s = 1 + limit_s * (int64_t)(30 + test_below(random, 70)) / 100;
    lab_settle(lab);
    if (lab_is(lab, told->id, WL_QUEUED))
        told->by_ns = advice_of(lab, told->id).by.ns;
}

static void end_what_is_over(struct lab *lab, struct told *told, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct workload *w = state_workload(lab->state, told[i].id);
        if (told[i].is_over || w == NULL || w->r.state != WL_RUNNING ||
            lab->now.ns - w->r.state_since.ns < told[i].runs_s * NS_PER_S)
            continue;
        told[i].is_over = true;
        for (int64_t rank = 0; rank < w->r.members; rank++)
            lab_exit(lab, told[i].id, rank, 0);
    }
    lab_settle(lab);
}

static void count_starts(struct lab *lab, struct told *told, size_t count, size_t *all,
                         size_t *good)
{
    for (size_t i = 0; i < count; i++) {
        if (told[i].by_ns == 0 || lab_is(lab, told[i].id, WL_QUEUED))
            continue;
        ++*all;
        *good += lab->now.ns <= told[i].by_ns + 10 * NS_PER_S; /* looked at every ten seconds */
        told[i].by_ns = 0;
    }
}

static void run_projections(uint64_t seed, size_t *all, size_t *good)
{
    AUTO(lab) struct lab lab;
    static const char *const nodes[NODES] = { "n0", "n1", "n2", "n3" };
    static struct told told[JOBS];
    uint64_t random = seed;
    memset(told, 0, sizeof(told));
    lab_init(&lab);
    lab.is_unchecked = true;
    struct settings_record settings = lab_no_settings();
    settings.ended_keep_s = 366 * 24 * 3600;
    lab_set(&lab, settings);
    for (size_t i = 0; i < NODES; i++)
        lab_add_node(
            &lab, (struct lab_node){ .name = nodes[i], .class_name = "h100", .devices = DEVICES });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", no_quota);
    for (size_t count = 0; count < JOBS;) {
        if (test_below(&random, 12) == 0)
            submit_one(&lab, &random, &told[count++]);
        lab_run(&lab, 10);
        end_what_is_over(&lab, told, count);
        count_starts(&lab, told, count, all, good);
    }
}

static void starts_lie_in_the_projected_range(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    size_t all = 0;
    size_t good = 0;
    for (uint64_t i = 0; i < HISTORIES; i++)
        run_projections(seed + i, &all, &good);
    print_message("# %zu of %zu starts lay in the range that was shown\n", good, all);
    CHECK("some work had to wait", all > 100);
    CHECK("nine of ten", good * 10 >= all * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_would_let_it_start),
        cmocka_unit_test(whose_turn_it_is_among_users),
        cmocka_unit_test(a_shorter_time_limit),
        cmocka_unit_test(not_even_an_empty_cluster),
        cmocka_unit_test(starts_lie_in_the_projected_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
