/* What users of such systems ran into, one situation a test. */
#include <string.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

static const struct lab_quota no_quota;

/* ---- quotas and limits --------------------------------------------------------------------- */

static void exact_fraction_fits(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 300 });
    struct id a = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 100, .is_fixed = true });
    struct id b = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 200, .is_fixed = true });
    struct id c = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1, .is_fixed = true });
    lab_settle(&lab);
    CHECK("a tenth runs", lab_is(&lab, a, WL_RUNNING));
    CHECK("0.1 + 0.2 is 0.3", lab_is(&lab, b, WL_RUNNING));
    CHECK("and not a thousandth more", lab_is(&lab, c, WL_QUEUED));
    CHECK("it waits for quota", lab_why(&lab, c).cause == CAUSE_WAITING_FOR_QUOTA);
}

static void ten_tenths_make_one(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 1000 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 100, .count = 11, .is_fixed = true });
    lab_settle(&lab);
    CHECK("ten run", lab_count(&lab, WL_RUNNING) == 10);
    CHECK("the eleventh waits", lab_count(&lab, WL_QUEUED) == 1);
}

/* What a node cannot be told of is not granted: it would be held, and never start. */
static void a_node_has_so_many_members(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab.is_unchecked = true;
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 1000 });
    lab_submit(&lab, (struct lab_job){ "amber", .cpu_milli = 10, .count = NODE_MEMBERS_MAX + 4 });
    lab_settle(&lab);
    CHECK("as many as it may", lab_count(&lab, WL_RUNNING) == NODE_MEMBERS_MAX);
    CHECK("the others wait", lab_count(&lab, WL_QUEUED) == 4);
    lab_check(&lab);
}

static void limits_hold_at_every_level(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 8 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .limit_milli = 3000 });
    lab_project(&lab, "amber/vision", (struct lab_quota){ "h100", .limit_milli = 2000 });
    lab_project(&lab, "amber/speech", no_quota);
    struct id v =
        lab_submit(&lab, (struct lab_job){ "amber/vision", .gpu_milli = 1000, .count = 4 });
    lab_submit(&lab, (struct lab_job){ "amber/speech", .gpu_milli = 1000, .count = 4 });
    lab_settle(&lab);
    CHECK("two of the child", lab_used(&lab, "amber/vision", "h100") == 2000);
    CHECK("three of the tenant", lab_used(&lab, "amber", "h100") == 3000);
    /* One ends: exactly one more starts (C14). */
    lab_exit(&lab, lab_element(&lab, v, 0), 0, 0);
    lab_settle(&lab);
    CHECK("still three", lab_used(&lab, "amber", "h100") == 3000);
    CHECK("still at most two", lab_used(&lab, "amber/vision", "h100") <= 2000);
    CHECK("three run", lab_count(&lab, WL_RUNNING) == 3);
    CHECK("beyond any limit is refused at once",
          id_is_none(lab_submit(&lab, (struct lab_job){ "amber/vision", .gpu_milli = 3000 })) &&
              lab.e.cause == CAUSE_EXCEEDS_LIMIT);
}

static void a_lowered_limit_stops_nothing(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    struct id jobs = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 4 });
    lab_settle(&lab);
    lab.may_be_over_limit = true;
    lab_set_quota(&lab, "amber", (struct lab_quota){ "h100", .limit_milli = 2000 });
    lab_run(&lab, 5);
    CHECK("all four go on", lab_count(&lab, WL_RUNNING) == 4);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    for (int64_t i = 0; i < 2; i++)
        lab_exit(&lab, lab_element(&lab, jobs, i), 0, 0);
    lab_settle(&lab);
    CHECK("nothing new while at the limit", lab_count(&lab, WL_RUNNING) == 2);
    lab_exit(&lab, lab_element(&lab, jobs, 2), 0, 0);
    lab_settle(&lab);
    CHECK("below it the next one starts", lab_count(&lab, WL_RUNNING) == 2);
}

static void what_is_never_lent_stays_free(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 8 });
    lab_project(&lab, "amber",
                (struct lab_quota){ "h100", .quota_milli = 4000, .lend_milli = 1000 });
    lab_project(&lab, "birch", no_quota);
    lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .count = 8 });
    lab_settle(&lab);
    CHECK("birch borrows all but three", lab_used(&lab, "birch", "h100") == 5000);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 3 });
    CHECK("amber's three start at once", lab_used(&lab, "amber", "h100") == 3000);
    CHECK("without an eviction", lab.evictions == 0);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    lab_run(&lab, 2);
    CHECK("the fourth reclaims what was lent", lab_used(&lab, "amber", "h100") == 4000);
    CHECK("with one eviction", lab.evictions == 1);
}

/* ---- reclaim ------------------------------------------------------------------------------- */

static void the_guarantee_returns(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab.stop_s = 5;
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 8 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 8 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 4000 });
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 4000 });
    struct id jobs = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 16 });
    lab_settle(&lab);
    CHECK("amber borrows everything", lab_used(&lab, "amber", "h100") == 16000);
    struct id claims =
        lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .count = 16 });
    CHECK("four are evicted at once", lab.evictions == 4);
    CHECK("waiting for victims",
          lab_why(&lab, lab_element(&lab, claims, 0)).cause == CAUSE_WAITING_FOR_VICTIMS);
    lab_run(&lab, 4);
    CHECK("nothing starts before a device is free", lab_used(&lab, "birch", "h100") == 0);
    lab_run(&lab, 2);
    CHECK("then the guarantee is back", lab_used(&lab, "birch", "h100") == 4000);
    CHECK("and amber keeps the rest", lab_used(&lab, "amber", "h100") == 12000);
    CHECK("the youngest went", lab_is(&lab, lab_element(&lab, jobs, 15), WL_QUEUED) &&
                                   lab_is(&lab, lab_element(&lab, jobs, 11), WL_RUNNING));
    CHECK("they know why",
          lab_record(&lab, lab_element(&lab, jobs, 15))->cause == CAUSE_RECLAIMED_FOR_QUOTA);
    lab_run(&lab, 1000);
    CHECK("then nothing moves", lab.evictions == 4);
}

static void no_eviction_without_a_start(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 8000 });
    lab_project(&lab, "birch", no_quota);
    lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .count = 8 });
    lab_settle(&lab);
    /* Five on one node is more than any node has: refused, and nobody is evicted for it. */
    CHECK("no node could hold it",
          id_is_none(lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 5000 })) &&
              lab.e.cause == CAUSE_NO_MATCHING_CLASS);
    CHECK("nobody was evicted", lab.evictions == 0);
    struct id one = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    lab_run(&lab, 2);
    CHECK("one victim for one device", lab.evictions == 1 && lab_is(&lab, one, WL_RUNNING));
    /* With a node out of use, what is left cannot hold eight. */
    lab_node_act(&lab, CMD_NODE_CORDON, "n2");
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .members = 7 });
    lab_run(&lab, 5);
    CHECK("nobody is evicted in vain", lab.evictions == 1);
}

static void a_victim_set_covers_every_dimension(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){
                           .name = "n1", .class_name = "h100", .devices = 8, .cpu_milli = 8000 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 8000 });
    lab_project(&lab, "birch", no_quota);
    struct id a =
        lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 8000, .cpu_milli = 4000 });
    struct id b = lab_submit(&lab, (struct lab_job){ "birch", .cpu_milli = 4000 });
    lab_settle(&lab);
    CHECK("both run", lab_is(&lab, a, WL_RUNNING) && lab_is(&lab, b, WL_RUNNING));
    struct id c =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 8000, .cpu_milli = 8000 });
    lab_run(&lab, 2);
    CHECK("both had to go", lab.evictions == 2);
    CHECK("the guarantee runs", lab_is(&lab, c, WL_RUNNING));
}

static void a_fixed_holder_of_cores_is_spared(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){
                           .name = "n1", .class_name = "h100", .devices = 8, .cpu_milli = 8000 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 8000 });
    lab_project(&lab, "birch", (struct lab_quota){ "cpu-x86", .quota_milli = 4000 });
    lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 8000, .cpu_milli = 4000 });
    lab_submit(&lab, (struct lab_job){ "birch", .cpu_milli = 4000, .is_fixed = true });
    lab_settle(&lab);
    CHECK("both run", lab_count(&lab, WL_RUNNING) == 2);
    struct id c =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 8000, .cpu_milli = 8000 });
    lab_run(&lab, 2);
    CHECK("evicting one alone would be in vain", lab.evictions == 0);
    CHECK("it waits for capacity", lab_why(&lab, c).cause == CAUSE_WAITING_FOR_CAPACITY);
}

static void victims_are_no_more_than_needed(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 8000 });
    lab_project(&lab, "birch", no_quota);
    /* n1: four small, older; n2: one large, then four small on what is left. */
    lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .count = 6 });
    lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 2000 });
    lab_settle(&lab);
    CHECK("full", lab_used(&lab, "birch", "h100") == 8000);
    struct id c = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    lab_run(&lab, 2);
    CHECK("all of one node, nothing of the other", lab.evictions == 3);
    CHECK("it runs", lab_is(&lab, c, WL_RUNNING));
    CHECK("the older four go on", lab_used(&lab, "birch", "h100") == 4000);
}

static void no_loop_of_evictions(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    for (int i = 0; i < 3; i++)
        lab_add_node(&lab, (struct lab_node){ .name = (const char *[]){ "n1", "n2", "n3" }[i],
                                              .class_name = "h100",
                                              .devices = 10 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 15000 });
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 15000 });
    lab_project(&lab, "cedar", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 25 });
    lab_submit(&lab, (struct lab_job){ "cedar", .gpu_milli = 1000, .count = 5 });
    lab_settle(&lab);
    CHECK("all thirty run", lab_count(&lab, WL_RUNNING) == 30);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 5 });
    lab_run(&lab, 300);
    CHECK("who is above its quota waits", lab.evictions == 0);
    CHECK("and cedar stays", lab_used(&lab, "cedar", "h100") == 5000);
}

static void a_claimant_runs_in_the_class_it_claimed(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab.stop_s = 5;
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "l40s", .devices = 2 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 1000 });
    struct id victim =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .class_name = "h100" });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .class_name = "l40s",
                                       .time_limit_s = 1000 });
    struct id head =
        lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 2000, .class_name = "l40s" });
    lab_settle(&lab);
    CHECK("the head keeps the free device from what would run past its promised start",
          lab_is(&lab, head, WL_QUEUED));
    struct id claim =
        lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .class_name = "h100",
                                           .other_class_name = "l40s" });
    lab_settle(&lab);
    CHECK("it claims, and waits", lab.evictions == 1 && lab_is(&lab, claim, WL_QUEUED));
    lab_run(&lab, 10);
    CHECK("the room was made for it", lab_is(&lab, claim, WL_RUNNING));
    CHECK("there it runs", str_is(lab_where(&lab, claim)->r.name, "n1"));
    CHECK("what it took is gone", lab_is(&lab, victim, WL_QUEUED));
}

static void freed_room_is_the_claimants(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab.stop_s = 10;
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 2 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 2000 });
    struct id jobs = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 2 });
    lab_settle(&lab);
    struct id claim = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 2000 });
    CHECK("both are stopping", lab_count(&lab, WL_STOPPING) == 2);
    /* One is gone early; a small job that would fit on its device must not take it. */
    lab_run(&lab, 2);
    lab_exit(&lab, lab_element(&lab, jobs, 0), 0, 0);
    lab_run(&lab, 1);
    struct id small =
        lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .priority = 90 });
    struct id other = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    lab_run(&lab, 3);
    CHECK("nobody takes the free device",
          lab_is(&lab, small, WL_QUEUED) && lab_is(&lab, other, WL_QUEUED));
    lab_run(&lab, 6);
    CHECK("the claimant has both", lab_is(&lab, claim, WL_RUNNING));
}

static void a_withdrawn_claim_frees_its_room(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab.stop_s = 10;
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 2 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 2000 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 2 });
    lab_settle(&lab);
    struct id claim = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 2000 });
    CHECK("cancelled while it waits", lab_act(&lab, CMD_WORKLOAD_CANCEL, claim) == ERR_OK);
    lab_run(&lab, 11);
    CHECK("the victims are back", lab_used(&lab, "amber", "h100") == 2000);
    CHECK("at their second attempt", lab_count(&lab, WL_RUNNING) == 2);
}

static void requeue_keeps_the_place(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 1000 });
    struct id first = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    lab_settle(&lab);
    struct id later = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 19 });
    uint64_t submitted = lab_record(&lab, first)->submitted_sequence;
    struct id claim = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000 });
    lab_run(&lab, 3);
    CHECK("the claimant runs first", lab_is(&lab, claim, WL_RUNNING));
    CHECK("the victim waits", lab_is(&lab, first, WL_QUEUED));
    CHECK("with its old time", lab_record(&lab, first)->submitted_sequence == submitted);
    CHECK("at the head of the queue", lab_why(&lab, first).position == 1);
    lab_exit(&lab, claim, 0, 0);
    lab_settle(&lab);
    CHECK("and is the next to run", lab_is(&lab, first, WL_RUNNING));
    CHECK("before those that came after it", lab_is(&lab, lab_element(&lab, later, 0), WL_QUEUED));
    CHECK("as its second attempt", lab_record(&lab, first)->attempt == 2);
}

static void evictions_do_not_use_retries(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 1000 });
    struct id job = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .retries = 2 });
    for (int i = 0; i < 5; i++) {
        lab_settle(&lab);
        struct id claim = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000 });
        lab_run(&lab, 2);
        CHECK("reclaimed", lab_is(&lab, claim, WL_RUNNING));
        lab_exit(&lab, claim, 0, 0);
        lab_run(&lab, 2);
    }
    CHECK("five evictions", lab_record(&lab, job)->evictions == 5);
    CHECK("no failure", lab_record(&lab, job)->failures == 0);
    lab_exit(&lab, job, 0, 1);
    lab_settle(&lab);
    CHECK("one failure of its own", lab_record(&lab, job)->failures == 1);
    CHECK("it is still alive", lab_is(&lab, job, WL_QUEUED));
    CHECK("and waits a minute", lab_why(&lab, job).cause == CAUSE_WAITING_FOR_BACKOFF);
    lab_run(&lab, 61);
    CHECK("then runs again", lab_is(&lab, job, WL_RUNNING));
}

static void borrowed_work_has_its_minimum_time(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    struct settings_record settings = lab_no_settings();
    settings.min_runtime_in_quota_s = 600;
    lab_set(&lab, settings);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 1000 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    lab_settle(&lab);
    struct id claim = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000 });
    lab_run(&lab, 599);
    CHECK("protected for ten minutes", lab.evictions == 0);
    lab_run(&lab, 3);
    CHECK("then reclaimed without any other event", lab_is(&lab, claim, WL_RUNNING));
}

/* ---- gangs --------------------------------------------------------------------------------- */

static void a_gang_is_all_or_nothing(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    for (int i = 0; i < 10; i++) {
        static char names[10][4];
        (void)snprintf(names[i], sizeof(names[i]), "n%d", i);
        lab_add_node(&lab,
                     (struct lab_node){ .name = names[i], .class_name = "h100", .devices = 1 });
    }
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", no_quota);
    struct id a = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .members = 10 });
    struct id b = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .members = 10 });
    lab_settle(&lab);
    CHECK("one has all ten",
          lab_is(&lab, a, WL_RUNNING) && lab_used(&lab, "amber", "h100") == 10000);
    CHECK("the other has none", lab_is(&lab, b, WL_QUEUED) && lab_used(&lab, "birch", "h100") == 0);
    for (int64_t i = 0; i < 10; i++)
        lab_exit(&lab, a, i, 0);
    lab_settle(&lab);
    CHECK("then the other", lab_is(&lab, a, WL_SUCCEEDED) && lab_is(&lab, b, WL_RUNNING));
}

static void a_gang_loses_a_member(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    struct id a = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .members = 4, .retries = 1 });
    lab_settle(&lab);
    lab_exit(&lab, a, 2, 3);
    lab_settle(&lab);
    CHECK("all of it goes back to the queue", lab_is(&lab, a, WL_QUEUED));
    CHECK("nothing stays behind", lab_used(&lab, "amber", "h100") == 0);
    CHECK("one failure", lab_record(&lab, a)->failures == 1);
    lab_run(&lab, 61);
    CHECK("and runs whole again", lab_is(&lab, a, WL_RUNNING) && lab_record(&lab, a)->attempt == 2);
    lab_exit(&lab, a, 0, 9);
    lab_settle(&lab);
    CHECK("until its retries are used up", lab_is(&lab, a, WL_FAILED));
    CHECK("and says how",
          lab_record(&lab, a)->cause == CAUSE_FAILED && lab_record(&lab, a)->exit.code == 9);
}

/* ---- fractions ----------------------------------------------------------------------------- */

static void memory_fractions_never_overbook(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){
                           .name = "n1", .class_name = "l40s", .devices = 1, .memory_mib = 46068 });
    lab_project(&lab, "amber", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_memory_mib = 2000, .count = 24 });
    lab_settle(&lab);
    CHECK("23 fit", lab_count(&lab, WL_RUNNING) == 23);
    CHECK("the 24th waits", lab_count(&lab, WL_QUEUED) == 1);
}

static void fractions_stay_within_a_tenant(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 2 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", no_quota);
    struct id a = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 500 });
    struct id b = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 500 });
    struct id c = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 500 });
    struct id d = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 500 });
    lab_settle(&lab);
    CHECK("one device for each tenant", lab_is(&lab, a, WL_RUNNING) && lab_is(&lab, b, WL_RUNNING));
    CHECK("the second half is amber's", lab_is(&lab, c, WL_RUNNING));
    CHECK("birch's other half is not for amber", lab_is(&lab, d, WL_QUEUED));
    struct id whole = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000 });
    lab_settle(&lab);
    CHECK("a shared device is not given whole", lab_is(&lab, whole, WL_QUEUED));
}

static void shares_of_several_devices(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 3 });
    lab_project(&lab, "amber", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 500, .count = 2 });
    struct id two = lab_submit(
        &lab, (struct lab_job){ "amber", .devices = 2, .share_milli = 500, .members = 2 });
    lab_settle(&lab);
    CHECK("two members on two devices each", lab_is(&lab, two, WL_RUNNING));
    CHECK("charged n times s", lab_used(&lab, "amber", "h100") == 3000);
}

/* ---- order --------------------------------------------------------------------------------- */

static void other_classes_are_not_held_back(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "l40s", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000, .class_name = "h100" });
    lab_settle(&lab);
    struct id heads = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 4000, .count = 3, .class_name = "h100" });
    struct id cpu = lab_submit(&lab, (struct lab_job){ "amber", .cpu_milli = 1000 });
    struct id l =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .class_name = "l40s" });
    struct id later =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .class_name = "h100" });
    lab_settle(&lab);
    CHECK("cores run", lab_is(&lab, cpu, WL_RUNNING));
    CHECK("the other class runs", lab_is(&lab, l, WL_RUNNING));
    CHECK("the heads keep their order", lab_is(&lab, lab_element(&lab, heads, 0), WL_QUEUED));
    CHECK("nothing overtakes them", lab_is(&lab, later, WL_QUEUED));
}

static void a_large_job_is_not_starved_by_small_ones(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    struct id small = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 3, .time_limit_s = 1000 });
    lab_settle(&lab);
    struct id large = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    struct id more = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    lab_settle(&lab);
    CHECK("the free device is kept", lab_is(&lab, more, WL_QUEUED));
    for (int64_t i = 0; i < 3; i++)
        lab_exit(&lab, lab_element(&lab, small, i), 0, 0);
    lab_settle(&lab);
    CHECK("so that it runs", lab_is(&lab, large, WL_RUNNING));
    CHECK("cancelled, the next one runs", lab_act(&lab, CMD_WORKLOAD_CANCEL, large) == ERR_OK);
    lab_settle(&lab);
    CHECK("at once", lab_is(&lab, more, WL_RUNNING));
}

static void a_cancelled_head_lets_others_go(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .time_limit_s = 1000 });
    lab_settle(&lab);
    struct id large = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    struct id more = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    CHECK("held back", lab_is(&lab, more, WL_QUEUED));
    CHECK("cancel", lab_act(&lab, CMD_WORKLOAD_CANCEL, large) == ERR_OK);
    CHECK("no longer", lab_is(&lab, more, WL_STARTING));
}

static void within_quota_comes_first(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab.is_paused = true;
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 2000 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 8, .priority = 900 });
    lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .count = 8 });
    lab.is_paused = false;
    lab_settle(&lab);
    CHECK("the guarantee first, then in turn",
          lab_used(&lab, "birch", "h100") == 3000 && lab_used(&lab, "amber", "h100") == 1000);
    CHECK("nobody was evicted", lab.evictions == 0);
}

static void weights_divide_what_is_left(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab.is_paused = true;
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 8 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .weight = 300 });
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .weight = 100 });
    lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .count = 8 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 8 });
    lab.is_paused = false;
    lab_settle(&lab);
    CHECK("three to one",
          lab_used(&lab, "amber", "h100") == 6000 && lab_used(&lab, "birch", "h100") == 2000);
}

static void priority_then_submission(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1 });
    lab_project(&lab, "amber", no_quota);
    struct id first = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    struct id second = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    struct id third = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    struct id urgent =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .priority = 60 });
    const struct id expected[] = { first, urgent, second, third };
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        lab_settle(&lab);
        CHECK("in order", lab_is(&lab, expected[i], WL_RUNNING));
        lab_exit(&lab, expected[i], 0, 0);
    }
}

static void guarantees_of_children_against_each_other(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 8 });
    lab_project(&lab, "amber",
                (struct lab_quota){ "h100", .quota_milli = 8000, .limit_milli = 8000 });
    lab_project(&lab, "amber/a", (struct lab_quota){ "h100", .quota_milli = 4000 });
    lab_project(&lab, "amber/b", (struct lab_quota){ "h100", .quota_milli = 4000 });
    lab_submit(&lab, (struct lab_job){ "amber/a", .gpu_milli = 1000, .count = 8 });
    lab_settle(&lab);
    CHECK("a uses what b does not", lab_used(&lab, "amber/a", "h100") == 8000);
    lab_submit(&lab, (struct lab_job){ "amber/b", .gpu_milli = 1000, .count = 8 });
    lab_run(&lab, 3);
    CHECK("b has its own back, although the tenant was at its limit",
          lab_used(&lab, "amber/b", "h100") == 4000 && lab_used(&lab, "amber/a", "h100") == 4000);
    CHECK("four evictions", lab.evictions == 4);
}

static void work_in_a_parent_is_a_child_with_the_rest(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 4000 });
    lab_project(&lab, "amber/a", (struct lab_quota){ "h100", .quota_milli = 3000 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 4 });
    lab_settle(&lab);
    CHECK("the parent's own work has all", lab_used(&lab, "amber", "h100") == 4000);
    lab_submit(&lab, (struct lab_job){ "amber/a", .gpu_milli = 1000, .count = 4 });
    lab_run(&lab, 3);
    CHECK("and gives the child its three", lab_used(&lab, "amber/a", "h100") == 3000);
    CHECK("keeping one", lab.evictions == 3);
}

static void the_second_class_is_second(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "l40s", .devices = 2 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 1 });
    lab_project(&lab, "amber", (struct lab_quota){ "l40s", .limit_milli = 1000 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 3, .class_name = "h100",
                                       .other_class_name = "l40s" });
    lab_settle(&lab);
    CHECK("one of the first", lab_used(&lab, "amber", "h100") == 1000);
    CHECK("one of the second, at its limit", lab_used(&lab, "amber", "l40s") == 1000);
    CHECK("the third waits", lab_count(&lab, WL_QUEUED) == 1);
}

/* ---- explanations -------------------------------------------------------------------------- */

static void explanations_name_numbers(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 2000, .members = 2 });
    lab_settle(&lab);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 2000 });
    lab_settle(&lab);
    struct id wide = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    struct explanation why = lab_why(&lab, wide);
    CHECK("for capacity", why.cause == CAUSE_WAITING_FOR_CAPACITY);
    CHECK("with the largest block",
          str_is(why.text, "needs 4 h100 on one node; 2 free, largest block 2"));
    CHECK("at the head", why.position == 1);
    struct id gang = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .members = 3 });
    why = lab_why(&lab, gang);
    CHECK("a gang of which some fit", why.cause == CAUSE_WAITING_FOR_GANG);
    CHECK("second", why.position == 2);
    struct id held =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .is_held = true });
    CHECK("held", lab_why(&lab, held).cause == CAUSE_HELD && lab_why(&lab, held).position == 0);
    struct id after =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .after = wide });
    CHECK("after other work", lab_why(&lab, after).cause == CAUSE_WAITING_FOR_DEPENDENCY);
}

static void explanations_name_closed_nodes(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_add_node(&lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 4 });
    lab_add_node(&lab, (struct lab_node){ .name = "n3", .class_name = "l40s", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    CHECK("cordon", lab_node_act(&lab, CMD_NODE_CORDON, "n1") == ERR_OK);
    CHECK("another class", lab_node_act(&lab, CMD_NODE_CORDON, "n3") == ERR_OK);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 3000, .class_name = "h100" });
    struct id job =
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 2000, .class_name = "h100" });
    struct explanation why = lab_why(&lab, job);
    CHECK("cordoned", memmem(why.text.data, why.text.size, "; n1 is cordoned: no new work there",
                             strlen("; n1 is cordoned: no new work there")) != NULL);
    CHECK("drain", lab_node_act(&lab, CMD_NODE_DRAIN, "n2") == ERR_OK);
    why = lab_why(&lab, job);
    static const char both[] = "; n1 is cordoned, n2 is being drained: no new work there";
    CHECK("both", memmem(why.text.data, why.text.size, both, strlen(both)) != NULL);
    CHECK("no other", memmem(why.text.data, why.text.size, "n3", 2) == NULL);
}

static bool has(struct explanation why, const char *text)
{
    return memmem(why.text.data, why.text.size, text, strlen(text)) != NULL;
}

static void explanations_name_what_lacks(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1",
                                          .class_name = "h100",
                                          .devices = 4,
                                          .cpu_milli = 16000,
                                          .node_memory_mib = 32000 });
    lab_project(&lab, "amber", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 100, .cpu_milli = 12000,
                                       .memory_mib = 31000 });
    lab_settle(&lab);
    struct id job = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 100, .cpu_milli = 1000,
                                                       .memory_mib = 24000 });
    CHECK("memory beside a fraction",
          has(lab_why(&lab, job), "at most 1000 MiB of memory is free"));
    job = lab_submit(
        &lab, (struct lab_job){ "amber", .gpu_milli = 2000, .cpu_milli = 8000, .memory_mib = 500 });
    CHECK("cores beside whole devices", has(lab_why(&lab, job), "at most 4 cores are free"));
    job = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .cpu_milli = 100,
                                             .memory_mib = 100, .members = 5 });
    CHECK("a gang that never fits",
          has(lab_why(&lab, job), "; at most 4 fit even when all usable nodes are empty"));
}

static void explanations_name_held_devices(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 4 });
    lab_project(&lab, "amber", no_quota);
    struct command hold = { .type = CMD_DEVICE_HOLD };
    hold.target.name = STR("n1");
    hold.target.id = state_node_by_name(lab.state, STR("n1"))->r.id;
    hold.target.index = 2;
    lab_must(&lab, &hold);
    struct id job = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 4000 });
    CHECK("it is said", has(lab_why(&lab, job), "; device 2 of n1 is held"));
}

static void same_history_same_plans(void **state)
{
    (void)state;
    uint64_t traces[2] = { 0 };
    for (size_t i = 0; i < 2; i++) {
        AUTO(lab) struct lab lab;
        lab_init(&lab);
        lab.stop_s = 5;
        lab_add_node(&lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 8 });
        lab_project(&lab, "amber", (struct lab_quota){ "h100", .quota_milli = 1000 });
        lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 1000 });
        lab_project(&lab, "cedar", (struct lab_quota){ "h100", .quota_milli = 2000 });
        lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 4 });
        lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000, .count = 4 });
        lab_settle(&lab);
        lab_submit(&lab, (struct lab_job){ "cedar", .gpu_milli = 1000, .count = 2 });
        lab_run(&lab, 10);
        CHECK("exactly two evictions, from one plan", lab.evictions == 2);
        traces[i] = lab.trace;
    }
    CHECK("byte-equal histories", traces[0] == traces[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_fraction_fits),
        cmocka_unit_test(ten_tenths_make_one),
        cmocka_unit_test(a_node_has_so_many_members),
        cmocka_unit_test(limits_hold_at_every_level),
        cmocka_unit_test(a_lowered_limit_stops_nothing),
        cmocka_unit_test(what_is_never_lent_stays_free),
        cmocka_unit_test(the_guarantee_returns),
        cmocka_unit_test(no_eviction_without_a_start),
        cmocka_unit_test(a_victim_set_covers_every_dimension),
        cmocka_unit_test(a_fixed_holder_of_cores_is_spared),
        cmocka_unit_test(victims_are_no_more_than_needed),
        cmocka_unit_test(no_loop_of_evictions),
        cmocka_unit_test(a_claimant_runs_in_the_class_it_claimed),
        cmocka_unit_test(freed_room_is_the_claimants),
        cmocka_unit_test(a_withdrawn_claim_frees_its_room),
        cmocka_unit_test(requeue_keeps_the_place),
        cmocka_unit_test(evictions_do_not_use_retries),
        cmocka_unit_test(borrowed_work_has_its_minimum_time),
        cmocka_unit_test(a_gang_is_all_or_nothing),
        cmocka_unit_test(a_gang_loses_a_member),
        cmocka_unit_test(memory_fractions_never_overbook),
        cmocka_unit_test(fractions_stay_within_a_tenant),
        cmocka_unit_test(shares_of_several_devices),
        cmocka_unit_test(other_classes_are_not_held_back),
        cmocka_unit_test(a_large_job_is_not_starved_by_small_ones),
        cmocka_unit_test(a_cancelled_head_lets_others_go),
        cmocka_unit_test(within_quota_comes_first),
        cmocka_unit_test(weights_divide_what_is_left),
        cmocka_unit_test(priority_then_submission),
        cmocka_unit_test(guarantees_of_children_against_each_other),
        cmocka_unit_test(work_in_a_parent_is_a_child_with_the_rest),
        cmocka_unit_test(the_second_class_is_second),
        cmocka_unit_test(explanations_name_numbers),
        cmocka_unit_test(explanations_name_closed_nodes),
        cmocka_unit_test(explanations_name_what_lacks),
        cmocka_unit_test(explanations_name_held_devices),
        cmocka_unit_test(same_history_same_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
