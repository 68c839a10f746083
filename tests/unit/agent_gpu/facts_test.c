/* The facts of this very machine, and what is said about a lesser one. */
#include "agent/node_facts.h"
#include "unit/test_dir.h"

static void facts_of_this_machine_make_sense(void **state)
{
    (void)state;
    struct node_facts facts;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    const struct node_facts_options options = { .data_dir = dir.path,
                                                .crun = "",
                                                .skopeo = "no-such-program" };
    node_facts_read(&facts, &options);
    CHECK("processors", facts.cpu_count > 0 && facts.cpu_count < 100000);
    CHECK("memory", facts.memory_mib > 64);
    CHECK("names",
          facts.kernel[0] != '\0' && facts.machine[0] != '\0' && facts.hostname[0] != '\0');
    CHECK("numa", facts.numa_nodes >= 1);
    CHECK("boot", strlen(facts.boot_id) == 36);
    CHECK("mode", facts.cgroup_mode < CGROUP_MODE_COUNT);
    CHECK("pidfd", facts.has_pidfd);
    CHECK("absent program", facts.skopeo_version[0] == '\0');
    CHECK("one not asked", facts.crun_version[0] == '\0');
    CHECK("as root only", !facts.has_idmap || geteuid() == 0);
    CHECK("nothing left", rmdir(dir.path) == 0);
}

struct problems {
    size_t count, fatal;
};

static void count_problem(void *context, const char *text, bool is_fatal)
{
    struct problems *problems = context;
    CHECK("text", text[0] != '\0');
    problems->count++;
    problems->fatal += is_fatal;
}

static void problems_are_told_one_by_one(void **state)
{
    (void)state;
    struct node_facts good = { .cpu_count = 1,
                               .memory_mib = 1,
                               .cgroup_mode = CGROUP_MODE_V2,
                               .has_userns = true,
                               .has_overlay = true,
                               .has_seccomp = true,
                               .has_pidfd = true,
                               .crun_version = "1.8.1" };
    struct problems found = { 0 };
    CHECK("good", node_facts_check(&good, count_problem, &found) && found.count == 0);
    struct node_facts old = good;
    old.has_idmap = false; /* slower, not impossible */
    CHECK("good", node_facts_check(&old, count_problem, &found) && found.count == 0);
    old.has_userns = false;
    old.crun_version[0] = '\0';
    CHECK("bad", !node_facts_check(&old, count_problem, &found) && found.count == 2);
    CHECK("which a later installation can mend", found.fatal == 0);
    struct node_facts none = { .cpu_count = 0 };
    found = (struct problems){ 0 };
    CHECK("none", !node_facts_check(&none, count_problem, &found) && found.count == 7);
    CHECK("there even the agent could not work", found.fatal == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_of_this_machine_make_sense),
        cmocka_unit_test(problems_are_told_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
