/*
 * Placement in single situations: what the policies are for, nodes with many devices, what is said
 * of topologies, and what a restart remembers. Whether a place is found at all: test_packing.c.
 */
#include <string.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

static struct lab_job any_job(uint64_t *random, const char *project)
{
    static const int64_t parts[] = { 100, 250, 333, 500, 700 };
    struct lab_job job = { .project = project };
    switch (test_below(random, 5)) {
    case 0:
        job.gpu_memory_mib = 1000 + (int64_t)test_below(random, 24000);
        break;
    case 1:
        job.devices = 1 + (int64_t)test_below(random, 3);
        job.share_milli = parts[test_below(random, COUNT_OF(parts))];
        break;
    case 2:
        job.gpu_milli = 1000 * (1 + (int64_t)test_below(random, 3));
        break;
    default:
        job.gpu_milli = parts[test_below(random, COUNT_OF(parts))];
        break;
    }
    job.cpu_milli = test_below(random, 2) == 0 ? 0 : 500 * (int64_t)test_below(random, 4);
    job.memory_mib = test_below(random, 3) == 0 ? 1024 : 0;
    return job;
}

/* ---- what the policies are for --------------------------------------------------------------- */

/* Two small jobs on two empty nodes: does a job of a whole node still fit? */
static bool leaves_a_node(enum placement policy)
{
    AUTO(lab) struct lab lab;
    struct settings_record settings = lab_no_settings();
    lab_init(&lab);
    settings.placement = policy;
    lab_set(&lab, settings);
    lab_add_node(&lab, (struct lab_node){ .name = "n0", .class_name = "h100", .devices = 8 });
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 8 });
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    (void)lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    (void)lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 500 });
    struct id whole = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 8000 });
    return !lab_is(&lab, whole, WL_QUEUED);
}

static void policies_do_what_they_say(void **state)
{
    (void)state;
    for (unsigned policy = 0; policy < PLACEMENT_COUNT; policy++)
        CHECK(enum_name(&placement_names, policy),
              leaves_a_node((enum placement)policy) == (policy != PLACE_SPREAD));
}

/* A node of more devices than the picture shows, in parts as the hardware cuts them. */
static void many_devices_are_all_used(void **state)
{
    AUTO(lab) struct lab lab;
    (void)state;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n0", .class_name = "h100", .devices = 40 });
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    (void)lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 20 });
    (void)lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 500, .count = 40 });
    struct id none = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 100 });
    CHECK("all of it", lab_used(&lab, "amber", "h100") == 40000);
    CHECK("and no more", lab_is(&lab, none, WL_QUEUED));
}

/* Devices in two racks: the cause and its numbers; and what is refused at once. */
static void a_wait_says_that_it_is_the_topology(void **state)
{
    AUTO(lab) struct lab lab;
    (void)state;
    lab_init(&lab);
    lab_add_node(
        &lab, (struct lab_node){ .name = "n0", .class_name = "h100", .devices = 4, .rack = "r0" });
    lab_add_node(
        &lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4, .rack = "r1" });
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    struct lab_job job = { "amber", .gpu_milli = 2000, .members = 3 };
    job.topology.required = TOPOLOGY_RACK;
    struct explanation why = lab_why(&lab, lab_submit(&lab, job));
    CHECK("the cause", why.cause == CAUSE_WAITING_FOR_TOPOLOGY);
    CHECK("the numbers",
          str_is(why.text, "needs 3 members of 2 h100 within one rack; at most 2 fit in one now,"
                           " though all fit on several; at most 2 fit even when all usable nodes"
                           " are empty"));
    job.members = 2;
    CHECK("that fits", !lab_is(&lab, lab_submit(&lab, job), WL_QUEUED));
    job.topology.preferred = TOPOLOGY_BLOCK;
    CHECK("what is preferred is closer",
          id_is_none(lab_submit(&lab, job)) && strcmp(lab.e.field, "topology.preferred") == 0);
    job.topology.preferred = TOPOLOGY_NODE;
    CHECK("it is", !id_is_none(lab_submit(&lab, job)));
}

/* The controller learns from what is submitted; after a restart it knows the same. */
static void a_restart_forgets_nothing(void **state)
{
    AUTO(lab) struct lab lab;
    uint64_t random = test_seed();
    (void)state;
    lab_init(&lab);
    for (int i = 0; i < 8; i++) {
        static const char *const names[] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };
        lab_add_node(&lab,
                     (struct lab_node){ .name = names[i], .class_name = "h100", .devices = 8 });
    }
    lab_project(&lab, "amber", (struct lab_quota){ 0 });
    for (int i = 0; i < 220; i++) {
        struct id id = lab_submit(&lab, any_job(&random, "amber"));
        if (i % 3 != 0 && !id_is_none(id))
            (void)lab_act(&lab, CMD_WORKLOAD_CANCEL, id);
        lab_run(&lab, 1);
        if (i % 50 == 49)
            lab_restart(&lab);
    }
    CHECK("it has learned", lab.state->mix.dealt_at >= 200 && lab.state->mix.dealt.count > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_do_what_they_say),
        cmocka_unit_test(many_devices_are_all_used),
        cmocka_unit_test(a_wait_says_that_it_is_the_topology),
        cmocka_unit_test(a_restart_forgets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
