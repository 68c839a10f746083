/*
 * Consolidation against a search of all ways to move work: small clusters of whole devices, filled
 * and thinned out at random, and one more workload that fits nowhere although enough is free.
 */
#include "unit/sched/lab.h"
#include "unit/test.h"

enum { NODES = 4, DEVICES = 4, WORKS_MAX = NODES * DEVICES, MOVES_MAX = 3 };

#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 60 };
#else
enum { ROUNDS = 600 };
#endif

struct piece {
    int64_t devices;
    size_t node;
    bool may_go;
};

struct puzzle {
    int64_t free[NODES];
    struct piece pieces[WORKS_MAX];
    size_t count;
    int64_t wanted;
};

static size_t node_number(const struct node *node)
{
    return (size_t)(node->r.name.data[1] - '0');
}

static void puzzle_read(const struct lab *lab, int64_t wanted, struct puzzle *out)
{
    *out = (struct puzzle){ .wanted = wanted };
    for (size_t i = 0; i < NODES; i++)
        out->free[i] = DEVICES;
    for (const struct workload *w = lab->state->first_workload; w != NULL; w = w->next) {
        if (w->r.state != WL_RUNNING)
            continue;
        struct piece *piece = &out->pieces[out->count++];
        piece->devices = w->r.request.gpu_milli / 1000;
        piece->node = node_number(w->first_allocation->node);
        piece->may_go = w->r.preemptible == PREEMPTIBLE_ALWAYS;
        out->free[piece->node] -= piece->devices;
    }
}

/* Is there a node for each of those that are moved? */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as moves */
static bool can_place(struct puzzle *puzzle, unsigned moved, size_t from)
{
    while (from < puzzle->count && (moved >> from & 1) == 0)
        from++;
    if (from == puzzle->count)
        return true;
    int64_t devices = puzzle->pieces[from].devices;
    for (size_t n = 0; n < NODES; n++) {
        if (puzzle->free[n] < devices)
            continue;
        puzzle->free[n] -= devices;
        bool could = can_place(puzzle, moved, from + 1);
        puzzle->free[n] += devices;
        if (could)
            return true;
    }
    return false;
}

static bool works_out(const struct puzzle *puzzle, unsigned moved, size_t target)
{
    struct puzzle copy = *puzzle;
    for (size_t i = 0; i < copy.count; i++) {
        if ((moved >> i & 1) == 0)
            continue;
        if (!copy.pieces[i].may_go)
            return false;
        copy.free[copy.pieces[i].node] += copy.pieces[i].devices;
    }
    if (copy.free[target] < copy.wanted)
        return false;
    copy.free[target] -= copy.wanted;
    return can_place(&copy, moved, 0);
}

/* The fewest moves, of work of whatever nodes; 0: it does not go with MOVES_MAX. */
static int fewest(const struct puzzle *puzzle)
{
    int best = 0;
    for (unsigned moved = 1; moved < 1U << puzzle->count; moved++) {
        int count = __builtin_popcount(moved);
        if (count > MOVES_MAX || (best != 0 && count >= best))
            continue;
        for (size_t n = 0; n < NODES; n++) {
            if (works_out(puzzle, moved, n))
                best = count;
        }
    }
    return best;
}

static void make_world(struct lab *lab, uint64_t *random)
{
    static const char *const names[NODES] = { "n0", "n1", "n2", "n3" };
    lab_init(lab);
    for (size_t i = 0; i < NODES; i++)
        lab_add_node(
            lab, (struct lab_node){ .name = names[i], .class_name = "h100", .devices = DEVICES });
    lab_project(lab, "amber", (struct lab_quota){ "h100", .quota_milli = 16000 });
    lab_project(lab, "birch", (struct lab_quota){ 0 });
    struct settings_record settings = lab_no_settings();
    settings.min_runtime_s = 0;
    settings.consolidate = CONSOLIDATE_ON;
    settings.consolidate_max_moves = MOVES_MAX;
    settings.placement = (enum placement)test_below(random, PLACEMENT_COUNT);
    lab_set(lab, settings);
    lab->stop_s = (int64_t)test_below(random, 4);
}

/* Full, and then some of it ends. */
static void fill(struct lab *lab, uint64_t *random)
{
    for (size_t i = 0; i < 14; i++) {
        bool is_fixed = test_below(random, 6) == 0;
        lab_submit(lab, (struct lab_job){ "amber",
                                          .gpu_milli = 1000 * (1 + (int64_t)test_below(random, 3)),
                                          .is_fixed = is_fixed });
        lab_settle(lab);
    }
    for (const struct workload *w = lab->state->first_workload; w != NULL; w = w->next) {
        bool ends = w->r.state == WL_QUEUED || test_below(random, 3) == 0;
        if (ends && !workload_state_is_final(w->r.state))
            CHECK("cancel", lab_act(lab, CMD_WORKLOAD_CANCEL, w->r.id) == ERR_OK);
    }
    lab_run(lab, 10);
}

struct score {
    size_t possible, found, more;
};

static void round_of(uint64_t *random, struct score *score)
{
    struct lab lab;
    struct puzzle puzzle;
    make_world(&lab, random);
    fill(&lab, random);
    int64_t wanted = 2 + (int64_t)test_below(random, 3);
    puzzle_read(&lab, wanted, &puzzle);
    bool fits = false;
    for (size_t n = 0; n < NODES; n++)
        fits = fits || puzzle.free[n] >= wanted;
    size_t before = lab.evictions;
    struct id id = lab_submit(&lab, (struct lab_job){ "birch", .gpu_milli = 1000 * wanted });
    lab_run(&lab, 20);
    int moves = (int)(lab.evictions - before);
    int best = fits ? 0 : fewest(&puzzle);
    CHECK("it runs if it fits", !fits || lab_is(&lab, id, WL_RUNNING));
    CHECK("who fits moves nobody", !fits || moves == 0);
    CHECK("nothing is moved in vain", moves == 0 || lab_is(&lab, id, WL_RUNNING));
    CHECK("never fewer than possible", moves == 0 || (best != 0 && moves >= best));
    CHECK("one move is always found", best != 1 || moves == 1);
    CHECK("everybody has a place",
          lab_count(&lab, WL_RUNNING) == puzzle.count + (size_t)lab_is(&lab, id, WL_RUNNING));
    score->possible += best > 0;
    score->found += moves > 0;
    score->more += moves > best;
    lab_done(&lab);
}

static void moves_are_few_and_nobody_loses(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    struct score score = { 0 };
    for (int i = 0; i < ROUNDS; i++)
        round_of(&random, &score);
    print_message("# possible %zu, found %zu, with more moves %zu\n", score.possible, score.found,
                  score.more);
    CHECK("some were possible", score.possible >= ROUNDS / 20);
    CHECK("nearly all were found", score.found * 100 >= score.possible * 90);
    CHECK("nearly all with the fewest moves", score.more * 100 <= score.found * 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_are_few_and_nobody_loses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
