/*
 * Promised starts against a brute-force oracle: random work of one project on a small cluster. Of
 * whoever waits first the promise is the earliest end after which it fits; it never moves later;
 * and what waits behind it although it fits would have delayed it. A gang may have had some other
 * place where it would not: two places are tried, not all of them, so that is counted.
 */
#include "unit/sched/lab.h"
#include "unit/test.h"

enum { NODES = 3, DEVICES = 4, MEMBERS = 3, STEPS = 400, HISTORIES = 20 };

static const char *const names[NODES] = { "n0", "n1", "n2" };
static const int64_t never = INT64_MAX;

struct world {
    struct lab lab;
    uint64_t random;
    struct id first; /* who waited first at the last look */
    int64_t promised;
    size_t promises, kept, missed;
};

/* At what waits behind a promise although there is room. */
struct looks {
    size_t kept, missed;
};

static size_t below(struct world *w, size_t bound)
{
    return test_below(&w->random, bound);
}

static size_t node_index(const struct lab *lab, const struct node *node)
{
    size_t index = 0;
    for (const struct node *n = lab->state->first_node; n != node; n = n->next)
        index++;
    return index;
}

static int64_t end_of(const struct lab *lab, const struct workload *w, struct mono from)
{
    int64_t limit_s = w->r.time_limit_s;
    if (limit_s == 0)
        limit_s = lab->state->settings.default_time_limit_s;
    return limit_s == 0 ? never : mono_add_s(from, limit_s).ns;
}

/* Devices free on each node once all that ends by then is gone. Work that was planned with the
 * default limit may go on beyond it: nothing of `now` has ended. */
static void free_at(const struct lab *lab, int64_t at_ns, int64_t out[NODES])
{
    for (size_t i = 0; i < NODES; i++)
        out[i] = DEVICES;
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next) {
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node) {
            if (at_ns == lab->now.ns || end_of(lab, a->workload, a->r.granted) > at_ns)
                out[node_index(lab, n)] -= (int64_t)a->r.shares.count;
        }
    }
}

static bool fits(const struct workload *w, const int64_t room[NODES])
{
    int64_t members = 0;
    for (size_t i = 0; i < NODES; i++)
        members += room[i] / (w->r.request.gpu_milli / 1000);
    return members >= w->r.members;
}

static int64_t earliest(const struct lab *lab, const struct workload *w)
{
    int64_t best = never;
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next) {
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node) {
            int64_t room[NODES];
            int64_t at = end_of(lab, a->workload, a->r.granted);
            if (at >= best)
                continue;
            free_at(lab, at, room);
            best = fits(w, room) ? at : best;
        }
    }
    return best;
}

/* Whether some way to put `w` leaves the first its place; `now` and `then` are what is free. */
static bool some_way(const struct workload *w, const struct workload *first,
                     const int64_t now[NODES], const int64_t then[NODES])
{
    int64_t each = w->r.request.gpu_milli / 1000;
    /* A member each on any node: NODES to the power of members, counted through. */
    size_t ways = 1;
    for (int64_t m = 0; m < w->r.members; m++)
        ways *= NODES;
    for (size_t way = 0; way < ways; way++) {
        int64_t used[NODES] = { 0 };
        size_t rest = way;
        for (int64_t m = 0; m < w->r.members; m++, rest /= NODES)
            used[rest % NODES] += each;
        bool is_room = true;
        int64_t left[NODES];
        for (size_t i = 0; i < NODES; i++) {
            is_room = is_room && used[i] <= now[i];
            left[i] = then[i] - used[i];
        }
        if (is_room && fits(first, left))
            return true;
    }
    return false;
}

static const struct workload *first_waiting(const struct lab *lab)
{
    const struct workload *w = lab->state->first_workload;
    while (w != NULL && w->r.state != WL_QUEUED)
        w = w->next; /* in order of submission, all of one priority */
    return w;
}

static void check_others(struct world *world, const struct workload *first, int64_t promised)
{
    const struct lab *lab = &world->lab;
    int64_t now[NODES];
    int64_t then[NODES];
    free_at(lab, lab->now.ns, now);
    free_at(lab, promised, then);
    for (const struct workload *w = first->next; w != NULL; w = w->next) {
        if (w->r.state != WL_QUEUED || !fits(w, now))
            continue;
        world->kept++;
        CHECK("only a promise keeps anything from starting", promised != never);
        CHECK("what has ended by then starts", end_of(lab, w, lab->now) > promised);
        world->missed += some_way(w, first, now, then);
    }
}

static bool is_in_motion(const struct lab *lab)
{
    for (const struct node *n = lab->state->first_node; n != NULL; n = n->next) {
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node) {
            if (a->r.state != AL_STARTING && a->r.state != AL_RUNNING)
                return true;
        }
    }
    return false;
}

static void check(struct world *world)
{
    struct lab *lab = &world->lab;
    const struct workload *first = first_waiting(lab);
    int64_t room[NODES];
    if (is_in_motion(lab))
        return;
    if (first == NULL) {
        world->first = (struct id){ 0 };
        return;
    }
    free_at(lab, lab->now.ns, room);
    CHECK("the first would have started", !fits(first, room));
    int64_t promised = sched_promised(lab->sched, first).ns;
    int64_t wanted = earliest(lab, first);
    if (promised > lab->now.ns || wanted > lab->now.ns)
        CHECK("the earliest instant at which it fits", promised == wanted);
    if (id_eq(first->r.id, world->first))
        CHECK("a promise never moves later", promised <= world->promised);
    world->first = first->r.id;
    world->promised = promised;
    world->promises += promised != never;
    check_others(world, first, promised);
}

static void submit(struct world *world)
{
    struct lab_job job = { "amber", .class_name = "h100" };
    job.gpu_milli = 1000 * (1 + (int64_t)below(world, DEVICES));
    job.members = 1 + (int64_t)below(world, MEMBERS);
    job.time_limit_s = below(world, 6) == 0 ? 0 : 10 * (1 + (int64_t)below(world, 30));
    lab_submit(&world->lab, job);
}

static void end_one(struct world *world)
{
    struct lab_agent *agent = &world->lab.agents[below(world, NODES)];
    if (agent->processes.count == 0)
        return;
    struct lab_process *process = &agent->processes.items[below(world, agent->processes.count)];
    const struct allocation *a = state_allocation(world->lab.state, process->allocation);
    if (a != NULL) /* the whole gang, so that nothing of it is stopped */
        for (int64_t rank = 0; rank < a->workload->r.members; rank++)
            lab_exit(&world->lab, a->workload->r.id, rank, 0);
}

static struct looks run_history(uint64_t seed)
{
    struct world *world = mem_new(1, sizeof(*world));
    struct lab *lab = &world->lab;
    world->random = seed;
    lab_init(lab);
    for (size_t i = 0; i < NODES; i++)
        lab_add_node(
            lab, (struct lab_node){ .name = names[i], .class_name = "h100", .devices = DEVICES });
    lab_project(lab, "amber", (struct lab_quota){ "h100", .quota_milli = NODES * DEVICES * 1000 });
    if (seed % 3 == 0) {
        struct settings_record settings = lab_no_settings();
        settings.default_time_limit_s = 200;
        lab_set(lab, settings);
    }
    for (size_t i = 0; i < STEPS; i++) {
        size_t dice = below(world, 10);
        if (dice < 4 && lab_count(lab, WL_QUEUED) < 12)
            submit(world);
        else if (dice < 6)
            end_one(world);
        else if (dice < 8)
            lab_run(lab, 1 + (int64_t)below(world, 20));
        lab_settle(lab);
        check(world);
        lab->is_unchecked = false;
        if (i % 20 == 0)
            lab_check(lab);
        lab->is_unchecked = true; /* what lab_check() compares costs more than all the rest */
    }
    print_message(
        "# seed %llu: %zu starts, %zu looks at a promise, %zu at what it keeps out, %zu of"
        " it might have started elsewhere\n",
        (unsigned long long)seed, lab->starts, world->promises, world->kept, world->missed);
    struct looks looks = { world->kept, world->missed };
    lab_done(lab);
    mem_free(world);
    return looks;
}

static void promises_are_what_an_oracle_says(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    struct looks all = { 0 };
    for (uint64_t i = 0; i < HISTORIES; i++) {
        struct looks looks = run_history(seed + i);
        all.kept += looks.kept;
        all.missed += looks.missed;
    }
    print_message("# kept %zu times, %zu of them for want of a third place to try\n", all.kept,
                  all.missed);
    CHECK("nearly all that could start does", all.missed * 20 <= all.kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_are_what_an_oracle_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
