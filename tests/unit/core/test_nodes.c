/* Nodes: joining, inventory, contact and its loss, storms, drains, restarts of either side. */
#include <string.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

static const struct lab_quota no_quota;

static void two_nodes(struct lab *lab)
{
    lab_init(lab);
    lab_add_node(lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 2 });
    lab_add_node(lab, (struct lab_node){ .name = "n2", .class_name = "h100", .devices = 2 });
    lab_project(lab, "amber", no_quota);
}

static struct id submit(struct lab *lab, enum on_contact_loss how)
{
    return lab_submit(lab, (struct lab_job){ "amber", .gpu_milli = 1000, .on_contact_loss = how,
                                             .fence_after_s = 100 });
}

/* ---- contact ------------------------------------------------------------------------------- */

static void silence_is_not_failure(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = submit(&lab, LOSS_RESTART);
    lab_settle(&lab);
    struct lab_agent *n1 = lab_agent_of(&lab, "n1");
    for (int i = 0; i < 3; i++) {
        n1->is_silent = true;
        lab_run(&lab, 100);
        CHECK("unknown", lab_where(&lab, id)->r.contact == CONTACT_UNKNOWN);
        struct id other = submit(&lab, LOSS_RESTART);
        lab_settle(&lab);
        CHECK("gets no new work", str_is(lab_where(&lab, other)->r.name, "n2"));
        lab_act(&lab, CMD_WORKLOAD_CANCEL, other);
        n1->is_silent = false;
        lab_run(&lab, 2);
    }
    CHECK("nothing was restarted",
          lab_record(&lab, id)->attempt == 1 && lab_is(&lab, id, WL_RUNNING));
}

static void lost_work_restarts_elsewhere(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = submit(&lab, LOSS_RESTART);
    lab_settle(&lab);
    lab_agent_of(&lab, "n1")->is_silent = true;
    lab_run(&lab, 125);
    CHECK("a second attempt", lab_record(&lab, id)->attempt == 2 && lab_is(&lab, id, WL_RUNNING));
    CHECK("elsewhere", str_is(state_workload(lab.state, id)->last_allocation->node->r.name, "n2"));
    CHECK("no retry was used",
          lab_record(&lab, id)->failures == 0 && lab_record(&lab, id)->node_losses == 1);
    CHECK("the old attempt keeps its device", lab.state->allocation_count == 2);
    CHECK("but is not charged", lab_used(&lab, "amber", "h100") == 1000);
    lab_agent_of(&lab, "n1")->is_silent = false;
    lab_run(&lab, 2);
    CHECK("back, the old process is stopped", lab.state->allocation_count == 1);
    CHECK("and the new one goes on", lab_record(&lab, id)->attempt == 2);
    const struct project *amber = state_project_by_path(lab.state, STR("amber"));
    CHECK("the bill ends with the last sign of the node",
          amber->r.usage.items[0].milli_ms <= INT64_C(1000) * 6000);
}

static void fenced_work_waits_for_certainty(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = submit(&lab, LOSS_FENCE);
    lab_settle(&lab);
    lab_agent_of(&lab, "n1")->is_silent = true;
    lab_run(&lab, 121);
    CHECK("lost", lab_is(&lab, id, WL_QUEUED));
    /* fence_after 100 + grace 60 + kill_confirm 30 + 10 after the loss */
    lab_run(&lab, 197);
    CHECK("not before nothing of it can run", lab_is(&lab, id, WL_QUEUED));
    lab_run(&lab, 5);
    CHECK("then elsewhere", lab_is(&lab, id, WL_RUNNING));
}

static void kept_work_waits_for_its_node(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = submit(&lab, LOSS_KEEP);
    lab_settle(&lab);
    lab_agent_of(&lab, "n1")->is_silent = true;
    lab_run(&lab, 1000);
    CHECK("still the first attempt",
          lab_is(&lab, id, WL_RUNNING) && lab_record(&lab, id)->attempt == 1);
    CHECK("not charged meanwhile", lab_used(&lab, "amber", "h100") == 0);
    lab_agent_of(&lab, "n1")->is_silent = false;
    lab_run(&lab, 2);
    CHECK("it goes on", lab_used(&lab, "amber", "h100") == 1000);
    lab_exit(&lab, id, 0, 0);
    lab_settle(&lab);
    CHECK("and succeeds", lab_is(&lab, id, WL_SUCCEEDED));
}

/* The node of its first member is not heard of any more. */
static void lose_node_of(struct lab *lab, struct id gang)
{
    for (size_t i = 0; i < lab->agent_count; i++)
        lab->agents[i].is_silent = id_eq(lab->agents[i].node, lab_where(lab, gang)->r.id);
}

static void others_take_the_places_of_lost_members(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    lab_add_node(&lab, (struct lab_node){ .name = "n3", .class_name = "h100", .devices = 2 });
    struct id gang = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .members = 4 });
    lab_settle(&lab);
    lose_node_of(&lab, gang);
    lab_run(&lab, 125);
    CHECK("the same attempt goes on",
          lab_is(&lab, gang, WL_RUNNING) && lab_record(&lab, gang)->attempt == 1);
    CHECK("with all members", lab_used(&lab, "amber", "h100") == 4000);
    CHECK("as a loss of nodes, not of its own",
          lab_record(&lab, gang)->node_losses == 2 && lab_record(&lab, gang)->failures == 0);
    CHECK("nothing is missing", state_gang(lab.state, gang) == NULL);
    for (size_t i = 0; i < lab.agent_count; i++)
        lab.agents[i].is_silent = false;
    lab_run(&lab, 5);
    CHECK("back, the lost ones are ended",
          lab.state->allocation_count == 4 && lab_is(&lab, gang, WL_RUNNING));
    for (int64_t rank = 0; rank < 4; rank++)
        lab_exit(&lab, gang, rank, 0);
    lab_settle(&lab);
    CHECK("it ends well", lab_is(&lab, gang, WL_SUCCEEDED));
}

static struct id gang_of_four(struct lab *lab, struct lab_job job)
{
    two_nodes(lab);
    job.project = "amber";
    job.gpu_milli = 1000;
    job.members = 4;
    struct id gang = lab_submit(lab, job);
    lab_settle(lab);
    return gang;
}

static void a_gang_without_replacement_is_requeued(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id gang = gang_of_four(&lab, (struct lab_job){ .retries = 0 });
    lose_node_of(&lab, gang);
    lab_run(&lab, 121);
    CHECK("it waits for others", lab_is(&lab, gang, WL_RUNNING));
    CHECK("and says so", str_is(lab_record(&lab, gang)->detail,
                                "node n1 was lost; 2 of 4 members are left, of which it needs 4: "
                                "it waits for others for 60 s"));
    lab_restart(&lab);
    CHECK("also after a restart",
          lab_is(&lab, gang, WL_RUNNING) && state_gang(lab.state, gang) != NULL);
    lose_node_of(&lab, gang);
    lab_run(&lab, 75);
    CHECK("it is requeued whole", lab_is(&lab, gang, WL_QUEUED));
    CHECK("as stale", lab_record(&lab, gang)->cause == CAUSE_STALE_GANG &&
                          lab_record(&lab, gang)->evictions == 1);
    CHECK("nothing is remembered of the attempt", state_gang(lab.state, gang) == NULL);
}

static void an_elastic_gang_goes_on_with_the_rest(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id gang = gang_of_four(&lab, (struct lab_job){ .members_min = 2 });
    lose_node_of(&lab, gang);
    lab_run(&lab, 300);
    CHECK("it runs", lab_is(&lab, gang, WL_RUNNING) && lab_record(&lab, gang)->attempt == 1);
    CHECK("smaller", lab_used(&lab, "amber", "h100") == 2000);
    for (size_t i = 0; i < lab.agent_count; i++)
        lab.agents[i].is_silent = false;
    lab_run(&lab, 5);
    CHECK("and grows again", lab_used(&lab, "amber", "h100") == 4000);
    CHECK("without an eviction", lab_record(&lab, gang)->evictions == 0);
}

static void with_one_attempt_no_member_is_replaced(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id gang = gang_of_four(&lab, (struct lab_job){ .never_restarts = true });
    lose_node_of(&lab, gang);
    lab_run(&lab, 130);
    CHECK("it has failed", lab_is(&lab, gang, WL_FAILED));

    AUTO(lab) struct lab other;
    gang = gang_of_four(&other, (struct lab_job){ .never_restarts = true, .members_min = 2 });
    lose_node_of(&other, gang);
    lab_run(&other, 130);
    for (size_t i = 0; i < other.agent_count; i++)
        other.agents[i].is_silent = false;
    lab_run(&other, 10);
    CHECK("the rest goes on", lab_is(&other, gang, WL_RUNNING));
    CHECK("and stays as it is", lab_used(&other, "amber", "h100") == 2000);
}

static void a_fenced_gang_is_not_repaired(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id gang =
        gang_of_four(&lab, (struct lab_job){ .on_contact_loss = LOSS_FENCE, .fence_after_s = 100 });
    lose_node_of(&lab, gang);
    lab_run(&lab, 122);
    CHECK("what is lost may still run: all of it waits until it cannot",
          lab_is(&lab, gang, WL_QUEUED) && lab_record(&lab, gang)->not_before.ns > lab.now.ns);
}

/* The processes on the other node fail for want of those that were lost. */
static void failures_for_want_of_members_are_losses(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id gang = gang_of_four(&lab, (struct lab_job){ .retries = 0 });
    lose_node_of(&lab, gang);
    lab_run(&lab, 125);
    lab_exit(&lab, gang, 2, 1);
    lab_settle(&lab);
    CHECK("it is requeued", lab_is(&lab, gang, WL_QUEUED));
    CHECK("and no retry used", lab_record(&lab, gang)->failures == 0);
}

/* A member that joins and never starts is given up; the others go on. */
static void a_joining_member_that_never_starts_is_given_up(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    struct id gang = gang_of_four(&lab, (struct lab_job){ .members_min = 2 });
    lose_node_of(&lab, gang);
    lab_run(&lab, 125);
    for (size_t i = 0; i < lab.agent_count; i++) {
        lab.agents[i].is_slow = lab.agents[i].is_silent;
        lab.agents[i].is_silent = false;
    }
    lab_run(&lab, 290);
    CHECK("two are to join", lab_used(&lab, "amber", "h100") == 4000);
    lab_run(&lab, 60);
    CHECK("they are given up", lab_used(&lab, "amber", "h100") == 2000);
    CHECK("the others go on", lab_is(&lab, gang, WL_RUNNING) &&
                                  lab_record(&lab, gang)->attempt == 1 &&
                                  lab_record(&lab, gang)->failures == 0);
    lab_run(&lab, 200);
    CHECK("for a while nobody joins", lab_used(&lab, "amber", "h100") == 2000);
    lab_run(&lab, 150);
    CHECK("then it is tried again", lab_used(&lab, "amber", "h100") == 4000);
}

static void a_reboot_ends_what_ran(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = submit(&lab, LOSS_KEEP);
    lab_settle(&lab);
    struct lab_agent *n1 = lab_agent_of(&lab, "n1");
    n1->boot_id = "boot-2";
    n1->processes.count = 0;
    lab_run(&lab, 2);
    CHECK("restarted at once", lab_is(&lab, id, WL_RUNNING) && lab_record(&lab, id)->attempt == 2);
    CHECK("as a loss of the node", lab_record(&lab, id)->node_losses == 1);
    CHECK("and the device is free again", lab.state->allocation_count == 1);
}

static void many_lost_at_once_are_a_storm(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    static char names[20][4];
    for (int i = 0; i < 20; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "n%d", i);
        lab_add_node(&lab,
                     (struct lab_node){ .name = names[i], .class_name = "h100", .devices = 1 });
    }
    lab_project(&lab, "amber", no_quota);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 20 });
    lab_settle(&lab);
    for (size_t i = 0; i < 6; i++)
        lab.agents[i].is_silent = true;
    lab_run(&lab, 600);
    CHECK("nothing is declared lost", lab_count(&lab, WL_RUNNING) == 20);
    CHECK("nothing is restarted", lab.starts == 20);
    CHECK("a person confirms one", lab_node_act(&lab, CMD_NODE_CONFIRM_LOST, "n0") == ERR_OK);
    lab_run(&lab, 2);
    CHECK("which is then lost",
          state_node_by_name(lab.state, STR("n0"))->r.contact == CONTACT_LOST);
    for (size_t i = 1; i < 4; i++)
        lab.agents[i].is_silent = false;
    lab_run(&lab, 200);
    CHECK("with three back the others are lost like any", lab_count(&lab, WL_RUNNING) == 17);
    for (size_t i = 0; i < 6; i++)
        lab.agents[i].is_silent = false;
    lab_run(&lab, 10);
    CHECK("all back, all run", lab_count(&lab, WL_RUNNING) == 20);
}

static void a_controller_away_harms_nothing(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct lab_agent *n1 = lab_agent_of(&lab, "n1");
    struct id running = submit(&lab, LOSS_RESTART);
    lab_settle(&lab);
    n1->is_slow = true;
    struct id starting = submit(&lab, LOSS_RESTART);
    lab_settle(&lab);
    /* An hour goes by; the controller is away, the work is not. */
    lab.now = mono_add_s(lab.now, 3600);
    lab.wall.ns += 3600 * NS_PER_S;
    n1->is_slow = false;
    lab_restart(&lab);
    lab_run(&lab, 130);
    CHECK("the running one runs",
          lab_is(&lab, running, WL_RUNNING) && lab_record(&lab, running)->attempt == 1);
    CHECK("the starting one too",
          lab_is(&lab, starting, WL_RUNNING) && lab_record(&lab, starting)->attempt == 1);
}

static void a_claim_survives_a_restart(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    lab.stop_s = 20;
    lab_project(&lab, "birch", (struct lab_quota){ "h100", .quota_milli = 4000 });
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 4 });
    lab_settle(&lab);
    struct id claim =
        lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 2000, .members = 2 });
    lab_run(&lab, 3);
    lab_restart(&lab);
    CHECK("it still waits for its victims",
          lab_why(&lab, claim).cause == CAUSE_WAITING_FOR_VICTIMS);
    CHECK("nobody else is evicted", lab.evictions == 4);
    lab_run(&lab, 20);
    CHECK("and gets its room", lab_is(&lab, claim, WL_RUNNING));
}

/* ---- drains -------------------------------------------------------------------------------- */

static void a_drain_has_a_deadline(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000 });
    lab_settle(&lab);
    struct command drain = { .type = CMD_NODE_DRAIN };
    drain.target.name = STR("n1");
    drain.target.deadline_s = 100;
    drain.target.reason = STR("new fan");
    lab_must(&lab, &drain);
    lab_run(&lab, 98);
    CHECK("work goes on until then", lab_record(&lab, id)->attempt == 1);
    struct id other = submit(&lab, LOSS_RESTART);
    lab_settle(&lab);
    CHECK("but nothing new comes", str_is(lab_where(&lab, other)->r.name, "n2"));
    lab_run(&lab, 4);
    CHECK("then it moves",
          lab_record(&lab, id)->attempt == 2 && str_is(lab_where(&lab, id)->r.name, "n2"));
    CHECK("as an eviction", lab_record(&lab, id)->evictions == 1);
    CHECK("cordon", lab_node_act(&lab, CMD_NODE_CORDON, "n1") == ERR_OK);
    CHECK("undrain", lab_node_act(&lab, CMD_NODE_UNDRAIN, "n1") == ERR_OK);
    const struct node *n1 = state_node_by_name(lab.state, STR("n1"));
    CHECK("a person's hold is left", n1->r.holds.count == 1 && !node_is_usable(n1));
    CHECK("uncordon", lab_node_act(&lab, CMD_NODE_UNCORDON, "n1") == ERR_OK);
    CHECK("then it is back in use", node_is_usable(n1));
    CHECK("twice is harmless", lab_node_act(&lab, CMD_NODE_UNCORDON, "n1") == ERR_OK);
}

static void nodes_are_removed_empty(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = submit(&lab, LOSS_RESTART);
    lab_settle(&lab);
    CHECK("not with work on it", lab_node_act(&lab, CMD_NODE_REMOVE, "n1") == ERR_CONFLICT);
    CHECK("an empty one", lab_node_act(&lab, CMD_NODE_REMOVE, "n2") == ERR_OK);
    struct command remove = { .type = CMD_NODE_REMOVE };
    remove.target.name = STR("n1");
    remove.target.is_forced = true;
    lab_must(&lab, &remove);
    CHECK("by force its work waits for another", lab_is(&lab, id, WL_QUEUED));
    CHECK("a removed node is absent", lab_node_act(&lab, CMD_NODE_CORDON, "n1") == ERR_NOT_FOUND);
}

static void a_held_device_gets_no_work(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct command hold = { .type = CMD_DEVICE_HOLD };
    hold.target.name = STR("n1");
    hold.target.index = 0;
    hold.target.reason = STR("smells");
    lab_must(&lab, &hold);
    lab_submit(&lab, (struct lab_job){ "amber", .gpu_milli = 1000, .count = 4 });
    lab_settle(&lab);
    CHECK("three run", lab_count(&lab, WL_RUNNING) == 3);
    hold.type = CMD_DEVICE_RELEASE;
    hold.new_id = (struct id){ 0 };
    lab_must(&lab, &hold);
    lab_settle(&lab);
    CHECK("then four", lab_count(&lab, WL_RUNNING) == 4);
    hold.target.index = 9;
    CHECK("there is no device 9", lab_do(&lab, &hold) == ERR_NOT_FOUND);
}

/* ---- joining and inventory ----------------------------------------------------------------- */

static void a_join_token_works_once(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    struct command token = { .type = CMD_TOKEN_CREATE };
    token.token_create =
        (struct token_spec){ .name = STR("join"), .role = ROLE_NODE_JOIN, .expires_s = 10 };
    token.secret.bytes[0] = 42;
    lab_must(&lab, &token);
    struct command join = { .type = CMD_NODE_JOIN, .actor = { .role = ROLE_NODE_JOIN } };
    join.node_join.name = STR("n1");
    CHECK("a wrong secret", lab_do(&lab, &join) == ERR_UNAUTHENTICATED);
    join.node_join.join_secret.bytes[0] = 42;
    CHECK("the right one", lab_do(&lab, &join) == ERR_OK);
    join.new_id = (struct id){ 0 };
    join.node_join.name = STR("n2");
    CHECK("is used up", lab_do(&lab, &join) == ERR_UNAUTHENTICATED);
    token.secret.bytes[0] = 43;
    token.new_id = (struct id){ 0 };
    lab_must(&lab, &token);
    lab.wall.ns += 11 * NS_PER_S;
    join.node_join.join_secret.bytes[0] = 43;
    CHECK("an expired one", lab_do(&lab, &join) == ERR_UNAUTHENTICATED);
}

/* A node as it is between its hello and its inventory: new, rebooted, or set up anew
 * under its name. */
static void nothing_starts_before_the_inventory(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_project(&lab, "amber", no_quota);
    struct lab_agent *n1 = lab_add_node(&lab, (struct lab_node){ .name = "n1" });
    struct command inventory = { .type = CMD_NODE_INVENTORY,
                                 .actor = { .role = ROLE_NODE, .node = n1->node } };
    inventory.inventory = (struct node_inventory){ .node = n1->node,
                                                   .boot_id = STR("boot-2"),
                                                   .agent_version = STR("1"),
                                                   .cpu_class_name = STR("cpu-x86"),
                                                   .cpu_milli = 64000,
                                                   .memory_mib = 1 << 20 };
    const struct node *node = state_node(lab.state, n1->node);
    CHECK("it is usable as it is", node_is_usable(node));

    struct command contact = { .type = CMD_NODE_CONTACT, .actor = { .role = ROLE_SYSTEM } };
    contact.contact = (struct node_contact_command){ .node = n1->node,
                                                     .contact = CONTACT_OK,
                                                     .boot_id = STR("boot-2") };
    lab_must(&lab, &contact);
    n1->boot_id = "boot-2";
    CHECK("rebooted and in contact",
          node->r.contact == CONTACT_OK && str_is(node->r.boot_id, "boot-2"));
    struct id first = lab_submit(&lab, (struct lab_job){ .project = "amber" });
    struct id small = lab_submit(&lab, (struct lab_job){ .project = "amber", .cpu_milli = 10 });
    lab_schedule(&lab);
    CHECK("nothing is placed", !node_is_usable(node) && node->first_allocation == NULL &&
                                   lab_is(&lab, first, WL_QUEUED) &&
                                   lab_is(&lab, small, WL_QUEUED));
    lab_must(&lab, &inventory);
    CHECK("with its inventory it is usable again", node_is_usable(node));
    lab_settle(&lab);
    CHECK("and takes what waits",
          lab_is(&lab, first, WL_RUNNING) && lab_is(&lab, small, WL_RUNNING));
}

static void a_new_node_waits_for_its_inventory(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_project(&lab, "amber", no_quota);
    for (uint8_t round = 1; round <= 2; round++) {
        struct command token = { .type = CMD_TOKEN_CREATE };
        token.token_create =
            (struct token_spec){ .name = STR("join"), .role = ROLE_NODE_JOIN, .expires_s = 10 };
        token.secret.bytes[0] = round;
        lab_must(&lab, &token);
        struct command join = { .type = CMD_NODE_JOIN, .actor = { .role = ROLE_NODE_JOIN } };
        join.node_join.name = STR("n9");
        join.node_join.join_secret.bytes[0] = round;
        lab_must(&lab, &join);
        const struct node *node = state_node_by_name(lab.state, STR("n9"));
        struct command contact = { .type = CMD_NODE_CONTACT, .actor = { .role = ROLE_SYSTEM } };
        contact.contact = (struct node_contact_command){ .node = node->r.id,
                                                         .contact = CONTACT_OK,
                                                         .boot_id = STR("boot-1") };
        lab_must(&lab, &contact);
        CHECK("in contact and not usable", node->r.contact == CONTACT_OK && !node_is_usable(node));
        struct id job = lab_submit(&lab, (struct lab_job){ .project = "amber" });
        CHECK("nothing is placed there", id_is_none(job) || lab_is(&lab, job, WL_QUEUED));
        struct command inventory = { .type = CMD_NODE_INVENTORY,
                                     .actor = { .role = ROLE_NODE, .node = node->r.id } };
        inventory.inventory = (struct node_inventory){ .node = node->r.id,
                                                       .boot_id = STR("boot-1"),
                                                       .cpu_class_name = STR("cpu-x86"),
                                                       .cpu_milli = 1000,
                                                       .memory_mib = 1024 };
        lab_must(&lab, &inventory);
        CHECK("until its inventory is there", node_is_usable(node));
        contact.contact.contact = CONTACT_UNKNOWN;
        contact.contact.boot_id = (struct str){ 0 };
        contact.new_id = (struct id){ 0 };
        lab_must(&lab, &contact); /* away, and set up anew: the second round */
    }
}

static void classes_are_discovered(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    const struct class_object *h100 = state_class_by_name(lab.state, STR("h100"));
    CHECK("of devices", h100 != NULL && h100->r.kind == CLASS_GPU && h100->r.memory_mib == 81920);
    const struct class_object *cpu = state_class_by_name(lab.state, STR("cpu-x86"));
    CHECK("and of cores", cpu != NULL && cpu->r.kind == CLASS_CPU);
    const struct node *n1 = state_node_by_name(lab.state, STR("n1"));
    CHECK("the node is in the pool of its class", str_is(n1->pool->r.name, "h100"));
    CHECK("all its devices count",
          sched_capacity(lab.sched, h100->r.number).capacity_milli == 4000);
    lab_add_node(&lab, (struct lab_node){ .name = "c1" });
    const struct node *c1 = state_node_by_name(lab.state, STR("c1"));
    CHECK("a node without devices is in the pool of its cores",
          str_is(c1->pool->r.name, "cpu-x86"));
}

static void a_device_that_is_gone(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct lab_agent *n1 = lab_agent_of(&lab, "n1");
    struct command inventory = { .type = CMD_NODE_INVENTORY,
                                 .actor = { .role = ROLE_NODE, .node = n1->node } };
    struct found_device found = { .index = 1,
                                  .class_name = STR("h100"),
                                  .vendor = STR("sim"),
                                  .uuid = STR("n1-1"),
                                  .memory_mib = 81920,
                                  .is_simulated = true };
    inventory.inventory = (struct node_inventory){ .node = n1->node,
                                                   .boot_id = STR("boot-1"),
                                                   .agent_version = STR("1"),
                                                   .cpu_class_name = STR("cpu-x86"),
                                                   .cpu_milli = 64000,
                                                   .memory_mib = 1 << 20,
                                                   .devices = { &found, 1 } };
    lab_must(&lab, &inventory);
    const struct node *node = state_node(lab.state, n1->node);
    CHECK("stays known", node->r.devices.count == 2);
    CHECK("as gone", node->r.devices.items[0].health == DEVICE_GONE);
    CHECK("and the other is usable", device_is_usable(&node->r.devices.items[1]));
    uint64_t sequence = lab.state->sequence;
    inventory.new_id = (struct id){ 0 };
    lab_must(&lab, &inventory);
    CHECK("the same again changes nothing", lab.state->sequence == sequence);
    inventory.inventory.runtime = STR("crun 1.8.1");
    inventory.inventory.problems = STR("the kernel has no seccomp filters");
    lab_must(&lab, &inventory);
    CHECK("what it says of itself is kept",
          str_is(node->r.runtime, "crun 1.8.1") &&
              str_is(node->r.problems, "the kernel has no seccomp filters"));
    inventory.inventory.problems = (struct str){ 0 };
    lab_must(&lab, &inventory);
    CHECK("and forgotten when it is mended", node->r.problems.size == 0);
    inventory.actor.node = lab_agent_of(&lab, "n2")->node;
    CHECK("no node speaks for another", lab_do(&lab, &inventory) == ERR_NOT_FOUND);
}

static void why_a_device_is_not_well(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    char long_text[DEVICE_REASON_MAX + 2];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    struct id n1 = lab_agent_of(&lab, "n1")->node;
    struct found_device found = { .index = 0,
                                  .class_name = STR("h100"),
                                  .vendor = STR("sim"),
                                  .uuid = STR("n1-0"),
                                  .memory_mib = 81920,
                                  .health = DEVICE_FAILED,
                                  .health_reason = STR("XID 79"),
                                  .is_simulated = true };
    struct command inventory = { .type = CMD_NODE_INVENTORY,
                                 .actor = { .role = ROLE_NODE, .node = n1 } };
    inventory.inventory = (struct node_inventory){ .node = n1,
                                                   .boot_id = STR("boot-1"),
                                                   .agent_version = STR("1"),
                                                   .cpu_class_name = STR("cpu-x86"),
                                                   .cpu_milli = 64000,
                                                   .memory_mib = 1 << 20,
                                                   .devices = { &found, 1 } };
    struct found_device *told = inventory.inventory.devices.items;
    lab_must(&lab, &inventory);
    const struct device_list *devices = &state_node(lab.state, n1)->r.devices;
    CHECK("is kept", str_is(devices->items[0].health_reason, "XID 79"));
    uint64_t sequence = lab.state->sequence;
    told->health_reason = STR("XID 79; it does not answer");
    lab_must(&lab, &inventory);
    CHECK("another reason is a change", lab.state->sequence > sequence);
    CHECK("which is kept", str_is(devices->items[0].health_reason, "XID 79; it does not answer"));
    told->health_reason = str_of(long_text);
    CHECK("a long one is refused", lab_do(&lab, &inventory) == ERR_INVALID);
    inventory.inventory.devices.count = 0;
    lab_must(&lab, &inventory);
    CHECK("what is gone has none",
          devices->items[0].health == DEVICE_GONE && devices->items[0].health_reason.size == 0);
}

static struct digest key_number(uint8_t number)
{
    return (struct digest){ { number } };
}

static enum err renew(struct lab *lab, struct id node, uint8_t key, struct wall issued)
{
    struct command command = { .type = CMD_NODE_RENEW,
                               .actor = { .role = ROLE_NODE, .node = node } };
    command.node_renew = (struct node_renew){ key_number(key), issued };
    return lab_do(lab, &command);
}

static enum node_certificate standing(const struct node *node, uint8_t key, struct wall issued)
{
    const struct digest fingerprint = key_number(key);
    return node_certificate(&node->r, &fingerprint, issued);
}

static void a_certificate_is_renewed(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    const struct node *node = state_node(lab.state, lab_agent_of(&lab, "n1")->node);
    lab.wall.ns += 10 * NS_PER_S;
    CHECK("asked for", renew(&lab, node->r.id, 8, (struct wall){ 0 }) == ERR_OK);
    struct wall eight = node->r.next_certified;
    CHECK("it is on record", node->r.next_fingerprint.bytes[0] == 8 && eight.ns <= lab.wall.ns);
    struct digest first = node->r.fingerprint;
    CHECK("the old one counts on",
          node_certificate(&node->r, &first, node->r.certified) == NODE_CERTIFICATE_PRESENT);

    lab.wall.ns += 10 * NS_PER_S;
    CHECK("the answer was lost", renew(&lab, node->r.id, 9, (struct wall){ 0 }) == ERR_OK);
    struct wall nine = node->r.next_certified;
    CHECK("either may be shown", nine.ns > eight.ns &&
                                     standing(node, 8, eight) == NODE_CERTIFICATE_NEWER &&
                                     standing(node, 9, nine) == NODE_CERTIFICATE_NEWER);
    CHECK("the last is shown", renew(&lab, node->r.id, 9, nine) == ERR_OK);
    CHECK("and counts", standing(node, 9, nine) == NODE_CERTIFICATE_PRESENT &&
                            node->r.next_fingerprint.bytes[0] == 0);
    CHECK("nothing older does", standing(node, 8, eight) == NODE_CERTIFICATE_OLD);
    uint64_t sequence = lab.state->sequence;
    CHECK("shown again", renew(&lab, node->r.id, 9, nine) == ERR_OK);
    CHECK("an old one changes nothing",
          renew(&lab, node->r.id, 8, eight) == ERR_OK && lab.state->sequence == sequence);

    CHECK("a second one in a moment", renew(&lab, node->r.id, 10, (struct wall){ 0 }) == ERR_OK);
    CHECK("no third", renew(&lab, node->r.id, 11, (struct wall){ 0 }) == ERR_UNAVAILABLE);
}

/* Another machine under the same name, though our clock was set back since the first one
 * renewed. */
static void a_machine_in_anothers_place(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    struct wall issued[2];
    const struct node *node = NULL;
    for (uint8_t round = 1; round <= 2; round++) {
        struct command token = { .type = CMD_TOKEN_CREATE };
        token.token_create =
            (struct token_spec){ .name = STR("join"), .role = ROLE_NODE_JOIN, .expires_s = 10 };
        token.secret.bytes[0] = round;
        lab_must(&lab, &token);
        struct command join = { .type = CMD_NODE_JOIN, .actor = { .role = ROLE_NODE_JOIN } };
        join.node_join.name = STR("n9");
        join.node_join.join_secret.bytes[0] = round;
        join.node_join.fingerprint = key_number(round);
        lab_must(&lab, &join);
        node = state_node_by_name(lab.state, STR("n9"));
        CHECK("its own counts",
              standing(node, round, node->r.certified) == NODE_CERTIFICATE_PRESENT);
        issued[round - 1] = node->r.certified;
        if (round == 1) {
            lab.wall.ns += 100 * NS_PER_S;
            CHECK("renewed", renew(&lab, node->r.id, 77, (struct wall){ 0 }) == ERR_OK);
            issued[0] = node->r.next_certified;
            lab.wall.ns -= 50 * NS_PER_S;
        }
    }
    CHECK("the clock runs backwards, certificates do not", issued[1].ns > issued[0].ns);
    CHECK("the first machine's is old", standing(node, 77, issued[0]) == NODE_CERTIFICATE_OLD);
}

/* ---- reports ------------------------------------------------------------------------------- */

static void an_old_report_takes_nothing_away(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = submit(&lab, LOSS_RESTART);
    lab_settle(&lab);
    const struct node *node = lab_where(&lab, id);
    struct command report = { .type = CMD_NODE_OBSERVED,
                              .actor = { .role = ROLE_NODE, .node = node->r.id } };
    report.observed.node = node->r.id;
    report.observed.epoch = lab.state->epoch;
    report.observed.generation = node->r.generation - 1;
    lab_must(&lab, &report);
    CHECK("an older generation", lab_is(&lab, id, WL_RUNNING));
    report.observed.generation = node->r.generation;
    report.observed.epoch = lab.state->epoch - 1;
    lab_must(&lab, &report);
    CHECK("another epoch", lab_is(&lab, id, WL_RUNNING));
    report.observed.epoch = lab.state->epoch;
    lab.is_paused = true;
    lab_must(&lab, &report);
    CHECK("the present one is the truth",
          lab_is(&lab, id, WL_QUEUED) && lab_record(&lab, id)->node_losses == 1);
}

static enum err set_labels(struct lab *lab, const char *rack, const char *block)
{
    struct command command = { .type = CMD_NODE_SET };
    command.target.name = STR("n1");
    command.node_set.rack = str_of(rack);
    command.node_set.block = str_of(block);
    return lab_do(lab, &command);
}

static void labels_say_where_a_node_stands(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    lab_init(&lab);
    lab_add_node(
        &lab, (struct lab_node){ .name = "n1", .class_name = "h100", .devices = 1, .rack = "r1" });
    const struct node *n1 = state_node_by_name(lab.state, STR("n1"));
    CHECK("as its agent says", str_is(n1->r.rack, "r1") && n1->r.block.size == 0);
    CHECK("one of them", set_labels(&lab, "", "hall-2") == ERR_OK);
    CHECK("the other stays", str_is(n1->r.rack, "r1") && str_is(n1->r.block, "hall-2"));
    uint64_t sequence = lab.state->sequence;
    CHECK("the same again is no event",
          set_labels(&lab, "r1", "") == ERR_OK && lab.state->sequence == sequence);
    CHECK("taken away", set_labels(&lab, "none", "") == ERR_OK && n1->r.rack.size == 0);
    CHECK("no name",
          set_labels(&lab, "a b", "") == ERR_INVALID && strcmp(lab.e.field, "rack") == 0);
    CHECK("nor is that", set_labels(&lab, "", "/") == ERR_INVALID);
    struct command absent = { .type = CMD_NODE_SET };
    absent.target.name = STR("n9");
    CHECK("a node that is not there", lab_do(&lab, &absent) == ERR_NOT_FOUND);
}

static void reports_repeat_harmlessly(void **state)
{
    (void)state;
    AUTO(lab) struct lab lab;
    two_nodes(&lab);
    struct id id = submit(&lab, LOSS_RESTART);
    lab_settle(&lab);
    uint64_t sequence = lab.state->sequence;
    for (int i = 0; i < 10; i++)
        lab_run(&lab, 1);
    CHECK("nothing new is no event", lab.state->sequence == sequence);
    CHECK("running", lab_is(&lab, id, WL_RUNNING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_not_failure),
        cmocka_unit_test(lost_work_restarts_elsewhere),
        cmocka_unit_test(fenced_work_waits_for_certainty),
        cmocka_unit_test(kept_work_waits_for_its_node),
        cmocka_unit_test(others_take_the_places_of_lost_members),
        cmocka_unit_test(a_gang_without_replacement_is_requeued),
        cmocka_unit_test(an_elastic_gang_goes_on_with_the_rest),
        cmocka_unit_test(with_one_attempt_no_member_is_replaced),
        cmocka_unit_test(a_fenced_gang_is_not_repaired),
        cmocka_unit_test(failures_for_want_of_members_are_losses),
        cmocka_unit_test(a_joining_member_that_never_starts_is_given_up),
        cmocka_unit_test(a_reboot_ends_what_ran),
        cmocka_unit_test(many_lost_at_once_are_a_storm),
        cmocka_unit_test(a_controller_away_harms_nothing),
        cmocka_unit_test(a_claim_survives_a_restart),
        cmocka_unit_test(a_drain_has_a_deadline),
        cmocka_unit_test(nodes_are_removed_empty),
        cmocka_unit_test(a_held_device_gets_no_work),
        cmocka_unit_test(a_join_token_works_once),
        cmocka_unit_test(nothing_starts_before_the_inventory),
        cmocka_unit_test(a_new_node_waits_for_its_inventory),
        cmocka_unit_test(classes_are_discovered),
        cmocka_unit_test(a_device_that_is_gone),
        cmocka_unit_test(why_a_device_is_not_well),
        cmocka_unit_test(a_certificate_is_renewed),
        cmocka_unit_test(a_machine_in_anothers_place),
        cmocka_unit_test(an_old_report_takes_nothing_away),
        cmocka_unit_test(labels_say_where_a_node_stands),
        cmocka_unit_test(reports_repeat_harmlessly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
