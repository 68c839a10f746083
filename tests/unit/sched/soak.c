/*
 * soak.c - days of virtual time in a small busy cluster: work of every kind comes, runs and ends;
 * nodes are lost and return, are drained and cordoned; quotas, limits and windows change; the
 * controller starts again. After every command and every plan all invariants hold (lab_check), and
 * what is kept in memory stays bounded. At the end everything is repaired and comes to rest.
 *
 *     BERTH_TEST_SEED=N soak DAYS     prints TAP, with the seed and a hash of all events
 */
#include <malloc.h>
#include <time.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

enum {
    NODES = 5,
    STEP_MAX_S = 240,
    LIVE_MAX = 60,
    KEPT_MAX = 100,
    HEAP_MAX_MIB = 64,
    DAY_S = 24 * 3600
};

static const char *const projects[] = { "amber/a", "amber/b", "birch", "cedar" };
static const char *const nodes[NODES] = { "n0", "n1", "n2", "n3", "n4" };

struct soak {
    struct lab lab;
    uint64_t random;
    size_t submitted, windows, losses, changes, restarts;
    size_t heap_most_mib;
};

static size_t below(struct soak *s, size_t bound)
{
    return test_below(&s->random, bound);
}

static bool one_in(struct soak *s, size_t n)
{
    return below(s, n) == 0;
}

static void make_world(struct soak *s)
{
    struct lab *lab = &s->lab;
    struct settings_record settings = lab_no_settings();
    lab_init(lab);
    settings.placement = (enum placement)below(s, PLACEMENT_COUNT);
    settings.reclaim_to = one_in(s, 2) ? RECLAIM_TO_FAIR_SHARE : RECLAIM_TO_QUOTA;
    settings.consolidate = one_in(s, 2) ? CONSOLIDATE_ON : CONSOLIDATE_OFF;
    settings.ended_keep_count = KEPT_MAX;
    settings.history_k_milli = one_in(s, 2) ? 1000 : 0;
    settings.history_half_life_s = 3600;
    lab_set(lab, settings);
    for (size_t i = 0; i < NODES; i++)
        lab_add_node(lab, (struct lab_node){ .name = nodes[i],
                                             .class_name = i < 4 ? "h100" : "l40s",
                                             .devices = i % 2 == 0 ? 4 : 2,
                                             .rack = i < 2 ? "r1" : "r2",
                                             .cpu_milli = 16000 });
    lab_project(lab, "amber", (struct lab_quota){ "h100", .quota_milli = 6000 });
    lab_project(lab, "amber/a", (struct lab_quota){ "h100", .quota_milli = 3000 });
    lab_project(lab, "amber/b", (struct lab_quota){ "h100", .quota_milli = 2000 });
    lab_project(lab, "birch", (struct lab_quota){ "h100", .quota_milli = 4000, .weight = 300 });
    lab_project(lab, "cedar", (struct lab_quota){ "l40s", .quota_milli = 2000 });
}

static void submit(struct soak *s)
{
    struct lab_job job = { .project = projects[below(s, COUNT_OF(projects))],
                           .time_limit_s = 60 + (int64_t)below(s, 4 * 3600),
                           .members = one_in(s, 3) ? 1 + (int64_t)below(s, 5) : 1,
                           .priority = one_in(s, 3) ? 1 + (int64_t)below(s, 100) : 0,
                           .retries = (int64_t)below(s, 3),
                           .is_fixed = one_in(s, 8),
                           .on_contact_loss =
                               (enum on_contact_loss)below(s, ON_CONTACT_LOSS_COUNT) };
    size_t dice = below(s, 6);
    if (dice == 0)
        job.gpu_milli = 100 * (1 + (int64_t)below(s, 9));
    else if (dice == 1)
        job.gpu_memory_mib = 1000 + (int64_t)below(s, 20000);
    else if (dice == 2)
        job.cpu_milli = 500 + (int64_t)below(s, 8000);
    else
        job.gpu_milli = 1000 * (1 + (int64_t)below(s, 4));
    if (job.members > 1 && one_in(s, 2))
        job.members_min = 1 + (int64_t)below(s, (size_t)job.members);
    if (one_in(s, 4))
        job.topology.preferred = (enum topology)(1 + below(s, TOPOLOGY_COUNT - 1));
    if (job.gpu_milli > 0 && one_in(s, 4)) {
        job.class_name = "l40s";
        job.other_class_name = "h100";
    }
    s->submitted += !id_is_none(lab_submit(&s->lab, job));
}

static struct str local_time(struct soak *s, int64_t in_s)
{
    time_t at = (time_t)(s->lab.wall.ns / NS_PER_S + in_s);
    struct tm tm = { 0 };
    char text[32];
    (void)gmtime_r(&at, &tm);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    return str_copy(&s->lab.arena, str_of(text));
}

static void reserve(struct soak *s)
{
    struct command command = { .type = CMD_RESERVATION_CREATE };
    int64_t in_s = 600 + (int64_t)below(s, 7200);
    const char *name = arena_format(&s->lab.arena, "w%zu", s->windows);
    command.reservation =
        (struct reservation_spec){ .name = str_of(name),
                                   .project = STR("birch"),
                                   .class_name = STR("h100"),
                                   .start = local_time(s, in_s),
                                   .end = local_time(s, in_s + 900 + (int64_t)below(s, 7200)),
                                   .gpu_milli = 1000 * (1 + (int64_t)below(s, 3)),
                                   .duration_s = UNSET,
                                   .every = UNSET,
                                   .interval = UNSET,
                                   .end_policy = (int64_t)below(s, END_POLICY_COUNT) };
    if (lab_do(&s->lab, &command) != ERR_OK)
        return; /* the calendar is full */
    s->windows++;
    (void)lab_submit(&s->lab, (struct lab_job){ .project = "birch",
                                                .gpu_milli = 1000,
                                                .time_limit_s = 1800,
                                                .reservation = name });
}

static void end_process(struct soak *s)
{
    struct lab_agent *agent = &s->lab.agents[below(s, s->lab.agent_count)];
    if (agent->processes.count == 0)
        return;
    struct lab_process *process = &agent->processes.items[below(s, agent->processes.count)];
    if (process->has_exited)
        return;
    process->has_exited = true;
    process->exit = (struct exit_status){ .is_known = true, .code = one_in(s, 6) ? 1 : 0 };
}

static void disturb(struct soak *s)
{
    static const enum command_type acts[] = { CMD_NODE_CORDON, CMD_NODE_UNCORDON, CMD_NODE_UNCORDON,
                                              CMD_NODE_UNDRAIN };
    size_t at = below(s, NODES);
    struct lab_agent *agent = &s->lab.agents[at];
    struct command drain = { .type = CMD_NODE_DRAIN };
    switch (below(s, 6)) {
    case 0:
        agent->is_silent = !agent->is_silent;
        s->losses += agent->is_silent;
        break;
    case 1:
        agent->boot_id = str_is(str_of(agent->boot_id), "boot-1") ? "boot-2" : "boot-1";
        agent->processes.count = 0;
        break;
    case 2:
        drain.target.name = str_of(nodes[at]);
        drain.target.deadline_s = (int64_t)below(s, 3600);
        lab_must(&s->lab, &drain);
        break;
    case 3:
        if (one_in(s, 4)) {
            lab_restart(&s->lab);
            s->restarts++;
        }
        break;
    default:
        agent->is_silent = false;
        (void)lab_node_act(&s->lab, acts[below(s, COUNT_OF(acts))], nodes[at]);
        break;
    }
}

static void change_quota(struct soak *s)
{
    s->lab.may_be_over_limit = true;
    s->changes++;
    lab_set_quota(&s->lab, projects[below(s, COUNT_OF(projects))],
                  (struct lab_quota){ "h100", .quota_milli = 1000 * (int64_t)below(s, 6),
                                      .limit_milli = 1000 * (int64_t)(2 + below(s, 12)) });
}

static void check_bounds(struct soak *s)
{
    struct mallinfo2 heap = mallinfo2();
    size_t mib = (heap.uordblks + heap.hblkhd) >> 20;
    s->heap_most_mib = MAX_OF(s->heap_most_mib, mib);
    CHECK("work that has ended is forgotten", s->lab.state->ended_count <= KEPT_MAX + LIVE_MAX);
    CHECK("memory stays bounded", mib <= HEAP_MAX_MIB);
}

static void act(struct soak *s)
{
    const struct state *state = s->lab.state;
    size_t dice = below(s, 100);
    if (dice < 40 && state->workload_count - state->ended_count < LIVE_MAX)
        submit(s);
    else if (dice < 60)
        end_process(s);
    else if (dice < 64)
        disturb(s);
    else if (dice < 65)
        change_quota(s);
    else if (dice < 66)
        reserve(s);
}

static void pass(struct soak *s, int64_t seconds)
{
    s->lab.now = mono_add_s(s->lab.now, seconds);
    s->lab.wall.ns += seconds * NS_PER_S;
    lab_settle(&s->lab);
}

/* All nodes work; then no work stays in between. */
static void repair(struct soak *s)
{
    for (size_t i = 0; i < NODES; i++) {
        s->lab.agents[i].is_silent = false;
        CHECK("uncordon", lab_node_act(&s->lab, CMD_NODE_UNCORDON, nodes[i]) == ERR_OK);
        CHECK("undrain", lab_node_act(&s->lab, CMD_NODE_UNDRAIN, nodes[i]) == ERR_OK);
    }
    for (int i = 0; i < 100; i++)
        pass(s, 5);
    for (const struct workload *w = s->lab.state->first_workload; w != NULL; w = w->next) {
        bool is_between = w->r.state == WL_STARTING || w->r.state == WL_STOPPING;
        bool is_fresh = s->lab.now.ns - w->r.state_since.ns < 60 * NS_PER_S;
        CHECK("nothing stays in between", !is_between || is_fresh);
    }
}

static int64_t days = 1;

static void it_runs_for_days(void **state)
{
    (void)state;
    struct soak *s = mem_new(1, sizeof(*s));
    s->random = test_seed();
    make_world(s);
    const struct mono end = mono_add_s(s->lab.now, days * DAY_S);
    while (mono_before(s->lab.now, end)) {
        act(s);
        pass(s, (int64_t)below(s, STEP_MAX_S));
        check_bounds(s);
    }
    repair(s);
    print_message("# %lld days: %zu submitted, %zu starts, %zu evictions, %zu growths, %zu shrinks,"
                  " %zu moves\n",
                  (long long)days, s->submitted, s->lab.starts, s->lab.evictions, s->lab.growths,
                  s->lab.shrinks, s->lab.moves);
    print_message("# %zu windows, %zu losses, %zu changes, %zu restarts, at most %zu MiB\n",
                  s->windows, s->losses, s->changes, s->restarts, s->heap_most_mib);
    print_message("# trace %016llx of %llu events\n", (unsigned long long)s->lab.trace,
                  (unsigned long long)s->lab.state->sequence);
    CHECK("there was something to see",
          s->lab.starts > 20 && s->windows > 0 && s->losses > 0 && s->changes > 0);
    lab_done(&s->lab);
    mem_free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(it_runs_for_days) };
    if (argc > 1)
        days = strtoll(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
