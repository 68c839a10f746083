/* What workloads say to their nodes: that they have saved their work, that they need more time. */
#include "model/state.h"
#include "unit/sched/lab.h"
#include "unit/test.h"

static struct id running_work(struct lab *lab)
{
    lab_init(lab);
    lab_add_node(lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 2 });
    lab_project(lab, "amber", (struct lab_quota){ .class_name = "h100", .quota_milli = 2000 });
    struct id id = lab_submit(lab, (struct lab_job){ .project = "amber", .gpu_milli = 1000 });
    lab_settle(lab);
    CHECK("it runs", lab_is(lab, id, WL_RUNNING));
    return id;
}

static struct allocation *allocation_of(const struct lab *lab, struct id id)
{
    return state_workload(lab->state, id)->first_allocation;
}

/* Its node reports it as it says. */
static void report(struct lab *lab, struct id id, struct observed said)
{
    const struct allocation *a = allocation_of(lab, id);
    struct observed seen = said;
    seen.allocation = a->r.id;
    seen.attempt = said.attempt != 0 ? said.attempt : a->r.attempt;
    seen.state = a->r.state == AL_STOPPING ? OBSERVED_STOPPING : OBSERVED_RUNNING;
    struct command command = { .type = CMD_NODE_OBSERVED,
                               .actor = { .role = ROLE_NODE, .node = a->node->r.id } };
    command.observed = (struct node_observed){ .node = a->node->r.id,
                                               .epoch = lab->state->epoch,
                                               .generation = a->node->r.generation,
                                               .observed = { &seen, 1 } };
    lab_must(lab, &command);
}

/* A stop that its agent does not carry out. */
static void stop(struct lab *lab, struct id id)
{
    lab_agent_of(lab, "n1")->is_stuck = true;
    CHECK("it is told to stop", lab_act(lab, CMD_WORKLOAD_REQUEUE, id) == ERR_OK);
    CHECK("it is stopping", lab_is(lab, id, WL_STOPPING));
}

static void a_checkpoint_is_noted(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id id = running_work(&lab);
    lab_run(&lab, 100);
    report(&lab, id, (struct observed){ .checkpoints = 1, .checkpoint_age_ms = 40000 });
    const struct allocation_record *r = &allocation_of(&lab, id)->r;
    CHECK("when", r->checkpointed.ns == lab.now.ns - 40 * NS_PER_S && r->checkpoints == 1);

    uint64_t sequence = lab.state->sequence;
    report(&lab, id, (struct observed){ .checkpoints = 1, .checkpoint_age_ms = 35000 });
    CHECK("the same said again is no news", lab.state->sequence == sequence);
    report(&lab, id, (struct observed){ .checkpoints = 2 });
    CHECK("a later one is", r->checkpointed.ns == lab.now.ns && r->checkpoints == 2);

    sequence = lab.state->sequence;
    lab_run(&lab, 5);
    for (int64_t i = 3; i < 100; i++)
        report(&lab, id, (struct observed){ .checkpoints = i });
    CHECK("whoever saves all the time fills no journal", lab.state->sequence == sequence);
    lab_run(&lab, 5);
    report(&lab, id, (struct observed){ .checkpoints = 100 });
    CHECK("and is heard again later", r->checkpoints == 100 && r->checkpointed.ns == lab.now.ns);
}

static void an_older_attempt_says_nothing(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id id = running_work(&lab);
    CHECK("again", lab_act(&lab, CMD_WORKLOAD_REQUEUE, id) == ERR_OK);
    lab_run(&lab, 5);
    CHECK("a second attempt", lab_is(&lab, id, WL_RUNNING) && lab_record(&lab, id)->attempt == 2);
    uint64_t sequence = lab.state->sequence;
    report(&lab, id, (struct observed){ .attempt = 1, .checkpoints = 7, .extended_s = 100 });
    report(&lab, id, (struct observed){ .attempt = 3, .checkpoints = 7, .extended_s = 100 });
    CHECK("only the present one counts", lab.state->sequence == sequence);
    CHECK("it begins with nothing", allocation_of(&lab, id)->r.checkpointed.ns == 0);
}

static void a_lying_node_gains_nothing(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id id = running_work(&lab);
    lab_run(&lab, 30);
    report(&lab, id, (struct observed){ .checkpoints = 1, .checkpoint_age_ms = INT64_MAX });
    const struct allocation_record *r = &allocation_of(&lab, id)->r;
    CHECK("not before it was granted", r->checkpointed.ns == r->granted.ns);
    lab_run(&lab, 30);
    report(&lab, id, (struct observed){ .checkpoints = 2, .checkpoint_age_ms = -1000000 });
    CHECK("nor later than now", r->checkpointed.ns == lab.now.ns);
    report(&lab, id, (struct observed){ .checkpoints = 2, .extended_s = 500 });
    CHECK("nobody stops it: there is nothing to extend", r->extended_s == 0);
    stop(&lab, id);
    report(&lab, id, (struct observed){ .checkpoints = 2, .extended_s = INT64_MAX });
    CHECK("at most what the rules give", r->grace_s + r->extended_s == GRACE_EXTENDED_MAX_S);
}

static void more_grace_moves_the_deadline(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id id = running_work(&lab);
    stop(&lab, id);
    const struct allocation_record *r = &allocation_of(&lab, id)->r;
    const struct settings_record *settings = &lab.state->settings;
    report(&lab, id, (struct observed){ .extended_s = 300 });
    CHECK("noted", r->extended_s == 300);
    report(&lab, id, (struct observed){ .extended_s = 200 });
    CHECK("never taken back", r->extended_s == 300);
    int64_t until_s = r->grace_s + r->extended_s + settings->kill_confirm_s;
    lab_run(&lab, until_s - 2);
    CHECK("it still has time", allocation_of(&lab, id)->r.state == AL_STOPPING);
    lab_run(&lab, 4);
    CHECK("then it counts as stuck", allocation_of(&lab, id)->r.state == AL_QUARANTINED);
}

static void a_restart_of_the_controller_forgets_nothing(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id id = running_work(&lab);
    lab_run(&lab, 100);
    report(&lab, id, (struct observed){ .checkpoints = 4, .checkpoint_age_ms = 1000 });
    struct mono saved = allocation_of(&lab, id)->r.checkpointed;
    lab_restart(&lab);
    CHECK("as it was", allocation_of(&lab, id)->r.checkpointed.ns == saved.ns &&
                           allocation_of(&lab, id)->r.checkpoints == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_noted),
        cmocka_unit_test(an_older_attempt_says_nothing),
        cmocka_unit_test(a_lying_node_gains_nothing),
        cmocka_unit_test(more_grace_moves_the_deadline),
        cmocka_unit_test(a_restart_of_the_controller_forgets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
