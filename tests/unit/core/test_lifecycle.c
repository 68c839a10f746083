/* What happens to work: cancel in every state, ends, retries, dependencies, arrays, deadlines. */
#include <string.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

static const struct lab_quota no_quota;

static void small_world(struct lab *lab)
{
    lab_init(lab);
    lab_add_node(lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(lab, "amber", no_quota);
}

static struct id submit(struct lab *lab)
{
    return lab_submit(lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
}

/* ---- cancel in every state ----------------------------------------------------------------- */

static void cancel(struct lab *lab, struct id id)
{
    CHECK("cancel is never refused", lab_act(lab, CMD_WORKLOAD_CANCEL, id) == ERR_OK);
    uint64_t sequence = lab->state->sequence;
    CHECK("nor a second time", lab_act(lab, CMD_WORKLOAD_CANCEL, id) == ERR_OK);
    CHECK("and then it changes nothing", lab->state->sequence == sequence);
}

static void cancel_held_and_queued(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id held =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .is_held = true });
    cancel(&lab, held);
    CHECK("held becomes cancelled", lab_is(&lab, held, WL_CANCELLED));
    CHECK("by an operator", lab_record(&lab, held)->cause == CAUSE_ADMIN_CANCELLED);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    struct id queued = submit(&lab);
    cancel(&lab, queued);
    CHECK("queued becomes cancelled", lab_is(&lab, queued, WL_CANCELLED));
}

static void cancel_starting_and_running(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    lab_agent_of(&lab, "n1")->is_slow = true;
    struct id starting = submit(&lab);
    lab_settle(&lab);
    CHECK("starting", lab_is(&lab, starting, WL_STARTING));
    CHECK("because it was granted", lab_record(&lab, starting)->cause == CAUSE_GRANTED);
    cancel(&lab, starting);
    CHECK("its node is told first", lab_is(&lab, starting, WL_STOPPING));
    lab_settle(&lab);
    CHECK("then it is cancelled", lab_is(&lab, starting, WL_CANCELLED));
    lab_agent_of(&lab, "n1")->is_slow = false;
    struct id running = submit(&lab);
    lab_settle(&lab);
    CHECK("running", lab_is(&lab, running, WL_RUNNING));
    CHECK("because all of it started", lab_record(&lab, running)->cause == CAUSE_STARTED);
    cancel(&lab, running);
    lab_settle(&lab);
    CHECK("cancelled", lab_is(&lab, running, WL_CANCELLED));
    CHECK("and its device is free", lab_used(&lab, "amber", "h100") == 0);
}

static void cancel_before_the_node_heard_of_it(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id = submit(&lab);
    CHECK("granted", lab_is(&lab, id, WL_STARTING));
    cancel(&lab, id);
    lab_settle(&lab);
    CHECK("cancelled without ever running", lab_is(&lab, id, WL_CANCELLED));
    const struct project *amber = state_project_by_path(lab.state, STR("amber"));
    CHECK("and without a bill", amber->r.usage.count == 0);
}

static void cancel_stopping_and_final(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    lab.stop_s = 5;
    struct id id = submit(&lab);
    lab_settle(&lab);
    CHECK("requeue", lab_act(&lab, CMD_WORKLOAD_REQUEUE, id) == ERR_OK);
    CHECK("stopping, to be queued",
          lab_is(&lab, id, WL_STOPPING) && lab_record(&lab, id)->after_stop == WL_QUEUED);
    cancel(&lab, id);
    CHECK("now to be cancelled", lab_record(&lab, id)->after_stop == WL_CANCELLED);
    lab_run(&lab, 6);
    CHECK("cancelled", lab_is(&lab, id, WL_CANCELLED));
    cancel(&lab, id);
    CHECK("final stays final", lab_is(&lab, id, WL_CANCELLED));
}

static void cancel_while_its_node_is_lost(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .on_contact_loss = LOSS_KEEP });
    lab_settle(&lab);
    lab_agent_of(&lab, "n1")->is_silent = true;
    lab_run(&lab, 130);
    CHECK("it waits for its node", lab_is(&lab, id, WL_RUNNING));
    cancel(&lab, id);
    CHECK("cancelled at once", lab_is(&lab, id, WL_CANCELLED));
    CHECK("its device stays booked", lab.state->allocation_count == 1);
    lab_agent_of(&lab, "n1")->is_silent = false;
    lab_run(&lab, 2);
    CHECK("until the node is back and has stopped it", lab.state->allocation_count == 0);
}

static void cancel_by_its_owner(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id = submit(&lab);
    struct command command = { .type = CMD_WORKLOAD_CANCEL };
    command.actor.role = ROLE_MEMBER;
    command.actor.tenant = state_project_by_path(lab.state, STR("amber"))->r.id;
    command.target.id = id;
    lab_must(&lab, &command);
    lab_settle(&lab);
    CHECK("says so", lab_record(&lab, id)->cause == CAUSE_USER_CANCELLED);
}

/* ---- ends ---------------------------------------------------------------------------------- */

struct end_case {
    const char *name;
    struct exit_status exit;
    enum cause reported;
    enum workload_state state;
    enum cause cause;
};

/* clang-format off */
static const struct end_case end_cases[] = {
    { "code 0 is success", { .is_known = true }, CAUSE_NONE, WL_SUCCEEDED, CAUSE_EXITED },
    { "code 3 is a failure", { .is_known = true, .code = 3 }, CAUSE_NONE, WL_FAILED, CAUSE_FAILED },
    { "a signal is a failure", { .is_known = true, .signal = 11 }, CAUSE_NONE, WL_FAILED, CAUSE_FAILED },
    { "out of memory is told apart", { .is_known = true, .signal = 9, .is_oom = true }, CAUSE_NONE, WL_FAILED, CAUSE_OUT_OF_MEMORY },
    { "the node's time limit", { .is_known = true, .signal = 15 }, CAUSE_TIME_LIMIT, WL_TIMED_OUT, CAUSE_TIME_LIMIT },
    { "a failing device is nobody's fault", { .is_known = true, .signal = 9 }, CAUSE_DEVICE_FAILURE, WL_QUEUED, CAUSE_DEVICE_FAILURE },
    { "an unknown status is no success", { .is_known = false }, CAUSE_NONE, WL_FAILED, CAUSE_FAILED },
};
/* clang-format on */

static void ends(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, end_cases) {
        AUTO(lab) struct lab lab;
        small_world(&lab);
        struct id id = submit(&lab);
        lab_settle(&lab);
        lab.is_paused = true;
        lab_exit_with(&lab, id, 0, c->exit, c->reported);
        lab_run(&lab, 1);
        CHECK(c->name, lab_is(&lab, id, c->state));
        CHECK(c->name, lab_record(&lab, id)->cause == c->cause);
        CHECK(c->name, lab.state->allocation_count == 0);
    }
}

static void ran_and_ended_between_two_reports(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    lab_agent_of(&lab, "n1")->is_slow = true;
    struct id id = submit(&lab);
    lab_settle(&lab);
    lab_exit(&lab, id, 0, 0);
    lab_settle(&lab);
    CHECK("it succeeded", lab_is(&lab, id, WL_SUCCEEDED));
}

static void a_failed_start_is_a_failure(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct lab_agent *agent = lab_agent_of(&lab, "n1");
    agent->is_slow = true;
    struct id id = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .retries = 1 });
    lab_settle(&lab);
    agent->processes.items[0].has_failed = true;
    lab_settle(&lab);
    CHECK("it backs off", lab_is(&lab, id, WL_QUEUED) && lab_record(&lab, id)->failures == 1);
    lab_run(&lab, 60);
    CHECK("and starts again", lab_is(&lab, id, WL_STARTING));
    agent->processes.items[0].has_failed = true;
    lab_settle(&lab);
    CHECK("once", lab_is(&lab, id, WL_FAILED));
}

static void backoff_doubles_up_to_its_maximum(void **state)
{
    (void)state;
    static const int64_t expected[] = { 60, 120, 240, 480, 960, 1920, 3600, 3600 };
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .retries = 100 });
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        lab_settle(&lab);
        lab_exit(&lab, id, 0, 1);
        lab_settle(&lab);
        int64_t wait_ns = lab_record(&lab, id)->not_before.ns - lab.now.ns;
        CHECK("the n-th failure waits 60 * 2^n", wait_ns == expected[i] * NS_PER_S);
        CHECK("the scheduler knows when to wake",
              sched_wake_at(lab.sched).ns == lab.now.ns + wait_ns);
        lab.now = mono_add_s(lab.now, expected[i]);
    }
}

static void restart_never_means_one_attempt(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .retries = 5, .never_restarts = true });
    lab_settle(&lab);
    CHECK("a requeue is refused", lab_act(&lab, CMD_WORKLOAD_REQUEUE, id) == ERR_CONFLICT);
    lab_exit(&lab, id, 0, 1);
    lab_settle(&lab);
    CHECK("retries or not", lab_is(&lab, id, WL_FAILED));
}

static void usage_is_billed_exactly(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct command price = { .type = CMD_CLASS_SET };
    price.class_set = (struct class_spec){ .name = STR("h100"),
                                           .kind = UNSET,
                                           .memory_mib = UNSET,
                                           .slicing = UNSET,
                                           .price_micros_per_hour = 4000000 };
    lab_must(&lab, &price);
    struct id id = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 250 });
    lab_settle(&lab);
    lab_run(&lab, 3600);
    lab_exit(&lab, id, 0, 0);
    lab_settle(&lab);
    const struct project *amber = state_project_by_path(lab.state, STR("amber"));
    CHECK("one segment", amber->r.usage.count == 1 && amber->r.usage.items[0].segments == 1);
    CHECK("a quarter of a device for an hour", amber->r.usage.items[0].amount_micros == 1000000);
}

/* ---- hold, release, requeue ---------------------------------------------------------------- */

static void hold_and_release(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .is_held = true });
    lab_settle(&lab);
    CHECK("held work does not start", lab_is(&lab, id, WL_HELD));
    CHECK("release", lab_act(&lab, CMD_WORKLOAD_RELEASE, id) == ERR_OK);
    lab_settle(&lab);
    CHECK("released it does", lab_is(&lab, id, WL_RUNNING));
    CHECK("running work is not held", lab_act(&lab, CMD_WORKLOAD_HOLD, id) == ERR_CONFLICT);
    CHECK("releasing it again is harmless", lab_act(&lab, CMD_WORKLOAD_RELEASE, id) == ERR_OK);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 3000 });
    struct id queued = submit(&lab);
    CHECK("queued work is", lab_act(&lab, CMD_WORKLOAD_HOLD, queued) == ERR_OK);
    CHECK("twice is harmless", lab_act(&lab, CMD_WORKLOAD_HOLD, queued) == ERR_OK);
    CHECK("held", lab_is(&lab, queued, WL_HELD));
    CHECK("requeue of what waits is harmless",
          lab_act(&lab, CMD_WORKLOAD_REQUEUE, queued) == ERR_OK);
}

static void requeue_runs_again(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id = submit(&lab);
    lab_settle(&lab);
    CHECK("requeue", lab_act(&lab, CMD_WORKLOAD_REQUEUE, id) == ERR_OK);
    lab_settle(&lab);
    CHECK("runs as its second attempt",
          lab_is(&lab, id, WL_RUNNING) && lab_record(&lab, id)->attempt == 2);
    CHECK("without a failure", lab_record(&lab, id)->failures == 0);
    lab_exit(&lab, id, 0, 0);
    lab_settle(&lab);
    CHECK("ended work is not requeued", lab_act(&lab, CMD_WORKLOAD_REQUEUE, id) == ERR_CONFLICT);
    CHECK("nor held", lab_act(&lab, CMD_WORKLOAD_HOLD, id) == ERR_CONFLICT);
    CHECK("nor released", lab_act(&lab, CMD_WORKLOAD_RELEASE, id) == ERR_CONFLICT);
}

static void an_array_acts_as_one(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id array = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 10 });
    lab_settle(&lab);
    CHECK("four run", lab_count(&lab, WL_RUNNING) == 4);
    struct id second = lab_element(&lab, array, 1);
    CHECK("elements have a name and an index", str_is(lab_record(&lab, second)->name, "job.1") &&
                                                   lab_record(&lab, second)->array_index == 1);
    CHECK("hold the array", lab_act(&lab, CMD_WORKLOAD_HOLD, array) == ERR_OK);
    CHECK("those that wait are held", lab_count(&lab, WL_HELD) == 6);
    CHECK("those that run go on", lab_count(&lab, WL_RUNNING) == 4);
    CHECK("cancel the array", lab_act(&lab, CMD_WORKLOAD_CANCEL, array) == ERR_OK);
    lab_settle(&lab);
    CHECK("all ten", lab_count(&lab, WL_CANCELLED) == 10);
}

/* ---- dependencies -------------------------------------------------------------------------- */

struct dependency_case {
    const char *name;
    int64_t code;
    enum dependency_when when;
    enum workload_state state;
};

static const struct dependency_case dependency_cases[] = {
    { "after ok, and it was", 0, AFTER_OK, WL_RUNNING },
    { "after ok, but it failed", 1, AFTER_OK, WL_FAILED },
    { "after any, and it was ok", 0, AFTER_ANY, WL_RUNNING },
    { "after any, and it failed", 1, AFTER_ANY, WL_RUNNING },
    { "after failed, and it did", 1, AFTER_FAILED, WL_RUNNING },
    { "after failed, but it was ok", 0, AFTER_FAILED, WL_CANCELLED },
};

static void dependencies(void **state)
{
    (void)state;
    FOR_EACH_CASE (c, dependency_cases) {
        AUTO(lab) struct lab lab;
        small_world(&lab);
        struct id first = submit(&lab);
        struct id second = lab_submit(
            &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .after = first, .when = c->when });
        struct id third =
            lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .after = second });
        lab_run(&lab, 3);
        CHECK(c->name, lab_is(&lab, second, WL_QUEUED));
        lab_exit(&lab, first, 0, c->code);
        lab_settle(&lab);
        CHECK(c->name, lab_is(&lab, second, c->state));
        enum cause cause = c->state == WL_FAILED      ? CAUSE_DEPENDENCY_FAILED
                           : c->state == WL_CANCELLED ? CAUSE_NOT_NEEDED
                                                      : CAUSE_STARTED;
        CHECK(c->name, lab_record(&lab, second)->cause == cause);
        CHECK(c->name, lab_is(&lab, third, c->state == WL_RUNNING ? WL_QUEUED : c->state));
        CHECK(c->name, cause == CAUSE_STARTED || lab_record(&lab, third)->cause == cause);
    }
}

/* What follows work that was not needed: `ok` and `failed` are not needed either, `any` runs; and
 * beside a dependency that failed, that one counts. */
static void after_what_was_not_needed(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id first = submit(&lab);
    struct id rescue = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .after = first, .when = AFTER_FAILED });
    struct id rescue_of_it =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .after = rescue,
                                           .when = AFTER_FAILED });
    struct id always = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .after = rescue, .when = AFTER_ANY });
    lab_run(&lab, 3);
    lab_exit(&lab, first, 0, 0);
    lab_settle(&lab);
    CHECK("it is cancelled", lab_is(&lab, rescue, WL_CANCELLED));
    CHECK("and so is what was for its failure",
          lab_is(&lab, rescue_of_it, WL_CANCELLED) &&
              lab_record(&lab, rescue_of_it)->cause == CAUSE_NOT_NEEDED);
    CHECK("what was for any end runs", lab_is(&lab, always, WL_RUNNING));
}

static void a_dependency_on_a_whole_array(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id array = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 3 });
    struct id after =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .after = array });
    lab_settle(&lab);
    for (int64_t i = 0; i < 3; i++) {
        CHECK("waits for all of it", lab_is(&lab, after, WL_QUEUED));
        lab_exit(&lab, lab_element(&lab, array, i), 0, 0);
        lab_settle(&lab);
    }
    CHECK("then runs", lab_is(&lab, after, WL_RUNNING));
}

/* ---- deadlines ----------------------------------------------------------------------------- */

static void a_start_that_takes_too_long(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    lab_agent_of(&lab, "n1")->is_slow = true;
    struct id id = submit(&lab);
    lab_run(&lab, 299);
    CHECK("five minutes are allowed", lab_is(&lab, id, WL_STARTING));
    lab_run(&lab, 3);
    CHECK("then it has failed", lab_is(&lab, id, WL_FAILED));
    CHECK("by its cause", lab_record(&lab, id)->cause == CAUSE_START_TIMEOUT);
}

static void a_process_that_does_not_die(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    lab_run(&lab, 200);
    struct id id = submit(&lab);
    lab_settle(&lab);
    struct lab_agent *agent = lab_agent_of(&lab, "n1");
    agent->is_stuck = true;
    cancel(&lab, id);
    lab_run(&lab, 89);
    CHECK("grace and kill have their time", lab_is(&lab, id, WL_STOPPING));
    lab_run(&lab, 2);
    CHECK("then it is over for its owner", lab_is(&lab, id, WL_CANCELLED));
    CHECK("who does not pay any longer", lab_used(&lab, "amber", "h100") == 0);
    CHECK("but the device is out of use", lab.state->allocation_count == 1);
    struct id four = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    lab_settle(&lab);
    CHECK("for everybody", lab_is(&lab, four, WL_QUEUED));
    struct command release = { .type = CMD_DEVICE_RELEASE };
    release.target.name = STR("n1");
    lab_must(&lab, &release);
    lab_settle(&lab);
    CHECK("until a person says it is clean", lab_is(&lab, four, WL_RUNNING));
}

/* An event that no decision of today makes: its state has a deadline all the same. */
static void happens(struct lab *lab, struct event event)
{
    event.sequence = lab->state->sequence + 1;
    event.version = 1;
    event.at = lab->now;
    event.wall = lab->wall;
    evolve(lab->state, &event);
    sched_note(lab->sched, &event);
}

static void devices_that_nobody_calls_clean(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    lab_run(&lab, 200);
    struct id id = submit(&lab);
    lab_settle(&lab);
    lab_agent_of(&lab, "n1")->is_stuck = true; /* it says no more of it */
    const struct workload *workload = state_workload(lab.state, id);
    const struct allocation *allocation = workload->first_allocation;
    struct event event = { .type = EV_ALLOCATION_CHANGED,
                           .tenant = workload->project->tenant->r.id };
    event.allocation_changed =
        (struct allocation_changed){ .allocation = allocation->r.id, .state = AL_CLEANING };
    happens(&lab, event);
    CHECK("it has time", mono_before(lab.now, core_next_deadline(lab.sched)));
    struct command tick = { .type = CMD_TICK, .actor = { .role = ROLE_SYSTEM } };
    lab.now = core_next_deadline(lab.sched);
    lab_must(&lab, &tick);
    bool is_out = false;
    for (const struct node *n = lab.state->first_node; n != NULL; n = n->next)
        is_out |= n->first_allocation != NULL && n->first_allocation->r.state == AL_QUARANTINED;
    CHECK("and then they are out of use", is_out);
}

/* Work for which a site is said to make capacity. */
static struct id provision(struct lab *lab)
{
    lab->is_paused = true;
    struct id id = submit(lab);
    const struct workload *workload = state_workload(lab->state, id);
    struct event event = { .type = EV_WORKLOAD_CHANGED, .tenant = workload->project->tenant->r.id };
    event.workload_changed = (struct workload_changed){ .workload = id, .state = WL_PROVISIONING };
    happens(lab, event);
    CHECK("waits", lab_is(lab, id, WL_PROVISIONING));
    return id;
}

static void cancel_while_capacity_is_made(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id = provision(&lab);
    cancel(&lab, id);
    CHECK("cancelled at once", lab_is(&lab, id, WL_CANCELLED));
    CHECK("by whom", lab_record(&lab, id)->cause == CAUSE_ADMIN_CANCELLED);
    lab_run(&lab, 600);
    CHECK("for good", lab_is(&lab, id, WL_CANCELLED));
}

static void capacity_that_no_site_makes(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id = provision(&lab);
    struct command tick = { .type = CMD_TICK, .actor = { .role = ROLE_SYSTEM } };
    lab.now = core_next_deadline(lab.sched);
    lab_must(&lab, &tick);
    CHECK("not for ever", lab_is(&lab, id, WL_QUEUED));
}

static void the_time_limit_counts_per_attempt(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct id id =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .time_limit_s = 100 });
    lab_settle(&lab);
    lab_run(&lab, 90);
    CHECK("requeue", lab_act(&lab, CMD_WORKLOAD_REQUEUE, id) == ERR_OK);
    lab_settle(&lab);
    lab_run(&lab, 98);
    CHECK("it has its time again", lab_is(&lab, id, WL_RUNNING));
    lab_run(&lab, 3);
    CHECK("and then no more",
          lab_is(&lab, id, WL_TIMED_OUT) && lab_record(&lab, id)->cause == CAUSE_TIME_LIMIT);
}

static void ended_work_is_forgotten(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    struct settings_record settings = lab_no_settings();
    settings.ended_keep_s = 100;
    settings.ended_keep_count = 3;
    lab_set(&lab, settings);
    struct id kept = submit(&lab);
    lab_settle(&lab);
    lab_exit(&lab, kept, 0, 0);
    lab_settle(&lab);
    struct id waiting = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .is_held = true, .after = kept });
    lab_run(&lab, 200);
    CHECK("not while something depends on it", state_workload(lab.state, kept) != NULL);
    CHECK("cancel", lab_act(&lab, CMD_WORKLOAD_CANCEL, waiting) == ERR_OK);
    lab_run(&lab, 1);
    CHECK("then at once, being old", state_workload(lab.state, kept) == NULL);
    CHECK("the young one stays", state_workload(lab.state, waiting) != NULL);
    for (int i = 0; i < 5; i++) {
        struct id id = submit(&lab);
        lab_settle(&lab);
        lab_exit(&lab, id, 0, 0);
        lab_settle(&lab);
    }
    CHECK("no more than three", lab.state->ended_count == 3);
    lab_run(&lab, 101);
    CHECK("and not for long", lab.state->ended_count == 0);
    CHECK("a forgotten one is absent", lab_act(&lab, CMD_WORKLOAD_CANCEL, kept) == ERR_NOT_FOUND);
}

static void a_volume_pins_its_work(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    small_world(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 4 });
    struct command volume = { .type = CMD_VOLUME_CREATE };
    volume.volume_create =
        (struct volume_spec){ .name = STR("data"), .tenant = STR("amber"), .quota_mib = UNSET };
    lab_must(&lab, &volume);
    struct lab_job job = { "amber", .gpu_milli = 1000, .volume = "data" };
    struct actor member = { .role = ROLE_MEMBER, .name = STR("ann") };
    member.tenant = state_project_by_path(lab.state, STR("amber"))->r.id;
    job.actor = member;
    struct id first = lab_submit(&lab, job);
    lab_settle(&lab);
    CHECK("the first use places it", str_is(lab_where(&lab, first)->r.name, "n1"));
    CHECK("on that node", id_eq(lab.state->first_volume->r.node, lab_where(&lab, first)->r.id));
    struct id other = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 3000 });
    struct id second = lab_submit(&lab, job);
    lab_settle(&lab);
    CHECK("others wait for that node", lab_is(&lab, second, WL_QUEUED));
    lab_exit(&lab, first, 0, 0);
    lab_settle(&lab);
    CHECK("and run there", str_is(lab_where(&lab, second)->r.name, "n1"));
    struct command remove = { .type = CMD_VOLUME_REMOVE, .actor = member };
    remove.target.name = STR("data");
    CHECK("a volume in use stays", lab_do(&lab, &remove) == ERR_CONFLICT);
    lab_act(&lab, CMD_WORKLOAD_CANCEL, second);
    lab_act(&lab, CMD_WORKLOAD_CANCEL, other);
    lab_settle(&lab);
    CHECK("nor is its node removed by the way",
          lab_node_act(&lab, CMD_NODE_REMOVE, "n1") == ERR_CONFLICT &&
              strstr(lab.e.text, "data") != NULL);
    CHECK("one without volumes is", lab_node_act(&lab, CMD_NODE_REMOVE, "n2") == ERR_OK);
    struct command gone = { .type = CMD_NODE_REMOVE };
    gone.target.name = STR("n1");
    gone.target.is_forced = true;
    lab_must(&lab, &gone);
    CHECK("by force the volume is nowhere",
          state_node(lab.state, lab.state->first_volume->r.node) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancel_held_and_queued),
        cmocka_unit_test(cancel_starting_and_running),
        cmocka_unit_test(cancel_before_the_node_heard_of_it),
        cmocka_unit_test(cancel_stopping_and_final),
        cmocka_unit_test(cancel_while_its_node_is_lost),
        cmocka_unit_test(cancel_by_its_owner),
        cmocka_unit_test(ends),
        cmocka_unit_test(ran_and_ended_between_two_reports),
        cmocka_unit_test(a_failed_start_is_a_failure),
        cmocka_unit_test(backoff_doubles_up_to_its_maximum),
        cmocka_unit_test(restart_never_means_one_attempt),
        cmocka_unit_test(usage_is_billed_exactly),
        cmocka_unit_test(hold_and_release),
        cmocka_unit_test(requeue_runs_again),
        cmocka_unit_test(an_array_acts_as_one),
        cmocka_unit_test(dependencies),
        cmocka_unit_test(after_what_was_not_needed),
        cmocka_unit_test(a_dependency_on_a_whole_array),
        cmocka_unit_test(a_start_that_takes_too_long),
        cmocka_unit_test(a_process_that_does_not_die),
        cmocka_unit_test(devices_that_nobody_calls_clean),
        cmocka_unit_test(cancel_while_capacity_is_made),
        cmocka_unit_test(capacity_that_no_site_makes),
        cmocka_unit_test(the_time_limit_counts_per_attempt),
        cmocka_unit_test(ended_work_is_forgotten),
        cmocka_unit_test(a_volume_pins_its_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
