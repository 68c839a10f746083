/*
 * Victims against brute force: in a random cluster full of work that is at rest, one more workload
 * is submitted. If every set of running work is tried, then
 * - whoever is evicted suffices, may be evicted by the rules, and no proper subset would do;
 * - nobody of them could be exchanged for one that should rather go;
 * - nothing is evicted where no set would do, or none is needed;
 * - a claim within its quotas gets its victims whenever there is any set that would do, of work
 *   that may go as things are now, and no side reaches its bound on the way.
 */
#include "unit/sched/claim.h"
#include "unit/sched/tiny.h"

enum { NOTHING, EVICTED, IN_ORDER, NOT_FOUND };

struct trial {
    struct tiny *tiny;
    struct claim *claim;
    bool is_started;
    unsigned victims;
};

/* Until it is full or nearly so; then nothing waits and nothing is being stopped. */
static void fill(struct tiny *tiny, const char *const paths[], size_t count)
{
    struct lab *lab = &tiny->lab;
    const char *greedy = tiny_leaf(tiny, paths, count);
    for (size_t jobs = 3 + tiny_below(tiny, 5); jobs > 0; jobs--) {
        (void)lab_submit(
            lab, tiny_job(tiny, tiny_one_in(tiny, 2) ? greedy : tiny_leaf(tiny, paths, count)));
        if (tiny_one_in(tiny, 3))
            lab_settle(lab);
        lab->now = mono_add_s(lab->now, (int64_t)tiny_below(tiny, 4));
    }
    lab_settle(lab);
    for (struct workload *w = lab->state->first_workload; w != NULL; w = w->next)
        if (w->r.state == WL_QUEUED || (w->r.state == WL_RUNNING && tiny_one_in(tiny, 8)))
            (void)lab_act(lab, CMD_WORKLOAD_CANCEL, w->r.id);
    lab_settle(lab);
}

/* Who should go before the last of them, or is one of them: whoever is asked in turn. */
static unsigned asked(const struct claim *claim, unsigned victims)
{
    unsigned set = victims;
    for (size_t in = 0; in < claim->count; in++)
        for (size_t i = 0; i < claim->count && (victims >> in & 1) != 0; i++)
            set |= claim_may_go(claim, i, 0) && claim_is_preferred(claim, i, in) ? 1u << i : 0;
    return set;
}

/* Where all who are asked may go together: else it is a matter of sides that reach their bounds
 * through one, and then cannot give another. */
static void check_preference(struct tiny *tiny, struct claim *claim, unsigned victims)
{
    if (!claim_is_allowed(claim, asked(claim, victims)))
        return;
    tiny->counts[IN_ORDER]++;
    for (size_t in = 0; in < claim->count; in++) {
        for (size_t out = 0; out < claim->count; out++) {
            unsigned exchanged = (victims & ~(1u << in)) | 1u << out;
            if ((victims >> in & 1) == 0 || (victims >> out & 1) != 0 ||
                !claim_is_preferred(claim, out, in))
                continue;
            TINY_CHECK(tiny, "nobody stays who should rather go",
                       !claim_is_valid(claim, exchanged));
        }
    }
}

static void check_victims(struct tiny *tiny, struct claim *claim, unsigned victims)
{
    TINY_CHECK(tiny, "who is evicted may be evicted", claim_is_allowed(claim, victims));
    TINY_CHECK(tiny, "and suffices", claim_suffices(claim, victims));
    TINY_CHECK(tiny, "and less is lacking afterwards", claim_is_valid(claim, victims));
    for (unsigned subset = (victims - 1) & victims; subset != 0; subset = (subset - 1) & victims)
        TINY_CHECK(tiny, "no proper subset would do", !claim_is_valid(claim, subset));
    check_preference(tiny, claim, victims);
}

/* Whether the victims, or that there are none, is settled by that way. */
static bool judge_way(struct trial *trial, enum claim_way way)
{
    struct tiny *tiny = trial->tiny;
    struct claim *claim = trial->claim;
    claim_by(claim, way);
    if (!claim_is_possible(claim))
        return false;
    if (trial->victims != 0 && claim_is_valid(claim, trial->victims)) {
        check_victims(tiny, claim, trial->victims);
        tiny->counts[EVICTED]++;
        return true;
    }
    TINY_CHECK(tiny, "a set that would do is found",
               way == CLAIM_STRADDLING || !claim_is_unbounded(claim) ||
                   !claim_is_guaranteed(claim));
    tiny->counts[NOT_FOUND]++;
    return false;
}

static void judge(void *arg, const struct plan *plan)
{
    static const enum claim_way ways[] = { CLAIM_BORROWED, CLAIM_STRADDLING, CLAIM_LESS_URGENT };
    struct trial *trial = arg;
    struct claim *claim = trial->claim;
    struct tiny *tiny = trial->tiny;
    trial->victims = claim_victims(claim, plan);
    trial->is_started = plan->count > 0 && plan->entries[0].action == PLAN_START;
    TINY_CHECK(tiny, "it starts at once if nobody has to go",
               trial->is_started == claim_suffices(claim, 0));
    bool is_settled = trial->is_started;
    for (size_t i = 0; i < COUNT_OF(ways) && !is_settled; i++)
        is_settled = judge_way(trial, ways[i]);
    TINY_CHECK(tiny, "where no set would do nobody is evicted", is_settled || trial->victims == 0);
    tiny->counts[NOTHING] += !is_settled;
}

static void check_cluster(struct tiny *tiny)
{
    static struct claim claim;
    struct lab *lab = &tiny->lab;
    const char *paths[TINY_PROJECTS_MAX];
    struct id id;
    size_t count = tiny_world(tiny, paths);
    fill(tiny, paths, count);
    lab->is_paused = true;
    do
        id = lab_submit(lab, tiny_job(tiny, tiny_leaf(tiny, paths, count)));
    while (id_is_none(id)); /* more than it may ever have */
    claim_init(&claim, lab, state_workload(lab->state, id));
    struct trial trial = { tiny, &claim, false, 0 };
    (void)lab_step(lab, SIZE_MAX, judge, &trial);
}

static void victims_are_as_few_as_can_be(void **state)
{
    (void)state;
    struct tiny tiny = { 0 };
    tiny_run(TINY_CLUSTERS, check_cluster, &tiny);
    TINY_CHECK(&tiny, "many had victims", tiny.counts[EVICTED] > tiny.counts[NOTHING] / 10);
    TINY_CHECK(&tiny, "many had none", tiny.counts[NOTHING] > tiny.counts[EVICTED] / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(victims_are_as_few_as_can_be) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
