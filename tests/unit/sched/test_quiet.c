/*
 * Between two events from outside the scheduler comes to rest: random clusters with more work than
 * there is room for, where work is submitted, ends, and quotas change. Each eviction is carried out
 * and confirmed before the next decision, so that every plan can be judged by the facts:
 * - each reclaim leaves less lacking, first of quotas, then of shares, wherever the paths part;
 * - nothing goes on for ever;
 * - at rest no first of a queue could have, within its quotas, what a set of evictions would give.
 */
#include "unit/sched/claim.h"
#include "unit/sched/tiny.h"

enum { EVENTS, EVICTIONS, RESTS };
enum { EVENTS_EACH = 3, DECISIONS_MAX = 200 };

static struct claim claim;

static size_t count_running(const struct lab *lab)
{
    return lab_count(lab, WL_STARTING) + lab_count(lab, WL_RUNNING);
}

static enum claim_way way_of(const struct plan_entry *entry)
{
    return entry->cause == CAUSE_PREEMPTED_BY_PRIORITY ? CLAIM_LESS_URGENT : CLAIM_BORROWED;
}

/* Of all evictions of a plan; they are for one workload. */
static void judge(void *arg, const struct plan *plan)
{
    struct tiny *tiny = arg;
    const struct plan_entry *entry = plan->count > 0 ? &plan->entries[0] : NULL;
    for (size_t i = 0; i < plan->count; i++)
        if (plan->entries[i].action != PLAN_EVICT || plan->entries[i].for_whom != entry->for_whom)
            return; /* what else is in the same plan is not among the facts yet */
    if (entry == NULL)
        return;
    claim_init(&claim, &tiny->lab, entry->for_whom);
    unsigned victims = claim_victims(&claim, plan);
    claim_by(&claim, way_of(entry));
    bool is_plain = claim_is_allowed(&claim, victims);
    TINY_CHECK(tiny, "each reclaim leaves less lacking",
               !is_plain || claim.way == CLAIM_LESS_URGENT ||
                   claim_makes_progress(&claim, victims));
    if (!is_plain)
        claim_by(&claim, CLAIM_STRADDLING);
    TINY_CHECK(tiny, "who is evicted may be evicted", claim_is_allowed(&claim, victims));
    tiny->counts[EVICTIONS]++;
}

/* One decision after the other; what is being stopped is gone before the next. Where one look
 * decides nothing there are more in a step: the first may always be at the same. */
static void come_to_rest(struct tiny *tiny)
{
    struct lab *lab = &tiny->lab;
    bool more = true;
    size_t looks = 1;
    for (size_t decisions = 0; more; decisions++) {
        TINY_CHECK(tiny, "it comes to rest", decisions < DECISIONS_MAX);
        uint64_t before = lab->state->sequence;
        bool is_left = lab_step(lab, looks, judge, tiny);
        lab_settle(lab); /* while nothing is scheduled */
        looks = lab->state->sequence != before ? 1 : looks + 1;
        more = is_left || lab->state->sequence != before;
    }
}

static void check_rest(struct tiny *tiny)
{
    struct lab *lab = &tiny->lab;
    for (struct workload *w = lab->state->first_workload; w != NULL; w = w->next) {
        if (w->r.state != WL_QUEUED)
            continue;
        struct explanation why = lab_why(lab, w->r.id);
        if (why.position != 1 || why.is_kept || w->r.preemptible == PREEMPTIBLE_NEVER)
            continue;
        claim_init(&claim, lab, w);
        claim_by(&claim, CLAIM_BORROWED);
        TINY_CHECK(tiny, "what is guaranteed and can be had is had",
                   claim_suffices(&claim, 0) || !claim_is_possible(&claim) ||
                       !claim_is_guaranteed(&claim) || !claim_is_unbounded(&claim));
        tiny->counts[RESTS]++;
    }
}

static void any_event(struct tiny *tiny, const char *const paths[], size_t count)
{
    struct lab *lab = &tiny->lab;
    const char *leaf = tiny_leaf(tiny, paths, count);
    size_t dice = tiny_below(tiny, 6);
    if (dice == 0 && count_running(lab) > 0) {
        struct workload *w = lab->state->first_workload;
        while (w->r.state != WL_STARTING && w->r.state != WL_RUNNING)
            w = w->next;
        (void)lab_act(lab, CMD_WORKLOAD_CANCEL, w->r.id);
    } else if (dice == 1) {
        lab_set_quota(
            lab, leaf,
            (struct lab_quota){ "h100", .quota_milli = 1000 * (int64_t)tiny_below(tiny, 5) });
    } else {
        (void)lab_submit(lab, tiny_job(tiny, leaf));
    }
    tiny->counts[EVENTS]++;
}

static void check_cluster(struct tiny *tiny)
{
    const char *paths[TINY_PROJECTS_MAX];
    size_t count = tiny_world(tiny, paths);
    tiny->lab.is_paused = true;
    for (size_t i = 0; i < EVENTS_EACH; i++) {
        for (size_t together = 1 + tiny_below(tiny, 3); together > 0; together--)
            any_event(tiny, paths, count);
        tiny->lab.now = mono_add_s(tiny->lab.now, (int64_t)tiny_below(tiny, 20));
        come_to_rest(tiny);
        check_rest(tiny);
    }
}

static void it_comes_to_rest(void **state)
{
    (void)state;
    struct tiny tiny = { 0 };
    tiny_run(TINY_CLUSTERS, check_cluster, &tiny);
    TINY_CHECK(&tiny, "there were evictions", tiny.counts[EVICTIONS] > tiny.counts[EVENTS] / 100);
    TINY_CHECK(&tiny, "and work that waits", tiny.counts[RESTS] > tiny.counts[EVENTS] / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(it_comes_to_rest) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
