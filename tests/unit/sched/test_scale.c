/* A thousand nodes and a hundred thousand waiting workloads: what one event costs. */
#include <time.h>

#include "unit/sched/lab.h"
#include "unit/test.h"

enum { NODES = 1000, DEVICES = 8, TENANTS = 50, QUEUED = 100000, SHAPES = 20, EVENTS = 20 };

#if defined(__SANITIZE_ADDRESS__)
enum { LIMIT_MS = 1000 };
#else
enum { LIMIT_MS = 50 };
#endif

static double cpu_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Nodes without simulated agents: events straight from commands. */
static void add_nodes(struct lab *lab)
{
    for (int i = 0; i < NODES; i++) {
        lab->agent_count = 0;
        vec_done(&lab->agents[0].processes);
        char *name = mem_strdup(arena_format(&lab->arena, "n%d", i));
        lab_add_node(lab,
                     (struct lab_node){ .name = name, .class_name = "h100", .devices = DEVICES });
        mem_free(name);
    }
    lab->agent_count = 0;
}

struct scale {
    size_t shapes; /* different requests per tenant */
    bool is_even;  /* every workload asks for one device */
    int64_t quota_milli;
    int64_t limit_milli;
};

static void fill_world(struct lab *lab, const struct scale *scale)
{
    lab_init(lab);
    lab->is_unchecked = true;
    lab->is_paused = true;
    add_nodes(lab);
    for (int t = 0; t < TENANTS; t++) {
        char path[16];
        (void)snprintf(path, sizeof(path), "t%d", t);
        lab_project(lab, path,
                    (struct lab_quota){ "h100", .quota_milli = scale->quota_milli,
                                        .limit_milli = scale->limit_milli });
        for (size_t s = 0; s < scale->shapes; s++) {
            static const int64_t milli[] = { 1000, 2000, 500, 4000, 8000 };
            size_t count = (size_t)QUEUED / TENANTS / scale->shapes;
            struct id id = lab_submit(
                lab, (struct lab_job){
                         path, .gpu_milli = scale->is_even ? 1000 : milli[s % COUNT_OF(milli)],
                         .memory_mib = 10 + (int64_t)s, .count = (int64_t)count });
            CHECK("submitted", !id_is_none(id));
        }
    }
    lab->is_paused = false;
}

static void report(struct lab *lab, struct allocation *a, enum observed_state seen)
{
    struct command command = { .type = CMD_NODE_OBSERVED,
                               .actor = { .role = ROLE_NODE, .node = a->node->r.id } };
    struct observed observed = {
        .allocation = a->r.id, .attempt = a->r.attempt, .state = seen, .exit = { .is_known = true }
    };
    command.observed.node = a->node->r.id;
    command.observed.observed = (struct observed_list){ &observed, 1 };
    lab_must(lab, &command);
}

static void measure(const char *name, const struct scale *scale)
{
    AUTO(lab) struct lab lab;
    double began = cpu_ms();
    fill_world(&lab, scale);
    double filled = cpu_ms();
    lab_schedule(&lab);
    double scheduled = cpu_ms();
    print_message("# %s: %zu workloads entered in %.0f ms, first pass %.0f ms, %zu starts\n", name,
                  lab.state->workload_count, filled - began, scheduled - filled, lab.starts);
    double worst = 0;
    double sum = 0;
    for (int i = 0; i < EVENTS; i++) {
        struct node *node = lab.state->first_node;
        for (int skip = 0; skip < i * 20; skip++)
            node = node->next;
        lab.is_paused = true;
        while (node->first_allocation == NULL)
            node = node->prev != NULL ? node->prev : lab.state->first_node;
        report(&lab, node->first_allocation, OBSERVED_RUNNING);
        lab.is_paused = false;
        size_t starts = lab.starts;
        double before = cpu_ms();
        report(&lab, node->first_allocation, OBSERVED_EXITED);
        double took = cpu_ms() - before;
        CHECK("what was freed is used again", lab.starts > starts);
        worst = MAX_OF(worst, took);
        sum += took;
    }
    print_message("# %s: an exit is decided in %.3f ms, at worst %.3f ms\n", name, sum / EVENTS,
                  worst);
    CHECK("within the bound", sum / EVENTS < LIMIT_MS);
    struct error e = { 0 };
    if (!sched_check(lab.sched, &e))
        test_fail("sched_check", e.text, __FILE__, __LINE__);
}

static void few_shapes(void **state)
{
    (void)state;
    measure("few shapes, borrowed", &(struct scale){ .shapes = 5 });
}

static void within_quotas(void **state)
{
    (void)state;
    measure("within quotas",
            &(struct scale){ .shapes = 5, .quota_milli = INT64_C(8000000) / TENANTS });
}

static void all_shapes_differ(void **state)
{
    (void)state;
    measure("all differ", &(struct scale){ .shapes = QUEUED / TENANTS, .is_even = true });
}

/* Nobody holds anybody back, so an exit wakes every single group. */
static void all_at_their_limits(void **state)
{
    (void)state;
    measure("all differ, at their limits",
            &(struct scale){ .shapes = QUEUED / TENANTS, .is_even = true, .limit_milli = 80000 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_shapes),
        cmocka_unit_test(within_quotas),
        cmocka_unit_test(all_shapes_differ),
        cmocka_unit_test(all_at_their_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
