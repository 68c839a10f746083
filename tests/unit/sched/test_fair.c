/*
 * Fair shares of random little trees against a plain reference, written from the rules: per class
 * and from the top down; first what is guaranteed and asked for, then what is left by priority
 * and weight in rounds, then what rounding left by largest remainder, older ones first. Work given
 * directly to a project that has children is one more child, with what their quotas leave.
 */
#include "unit/sched/tiny.h"

enum { ACTS = 4, PARTS_MAX = TINY_PROJECTS_MAX + 1 };

/* One who takes part in a division. */
struct part {
    const struct project *project; /* NULL: work given directly to the parent */
    int64_t quota, kept, requestable, weight, priority;
    int64_t share;
};

struct parts {
    struct part items[PARTS_MAX];
    size_t count;
};

static bool is_wanting(const struct part *part, int64_t priority, bool is_weighted)
{
    return part->priority == priority && (part->weight > 0) == is_weighted &&
           part->share < part->requestable;
}

static int64_t weight_of(const struct part *part)
{
    return MAX_OF(part->weight, INT64_C(1)); /* those of weight 0 are all alike */
}

/* What is left over goes one by one to whoever has the largest remainder and none of it yet. */
static int64_t leftover(struct parts *parts, const bool wanting[], int64_t remaining, int64_t sum,
                        int64_t units)
{
    bool served[PARTS_MAX] = { false };
    for (; units > 0; units--) {
        size_t best = PARTS_MAX;
        for (size_t i = parts->count; i-- > 0;) {
            int64_t its = weight_of(&parts->items[i]) * remaining % sum;
            if (wanting[i] && !served[i] &&
                (best == PARTS_MAX || its >= weight_of(&parts->items[best]) * remaining % sum))
                best = i;
        }
        if (best == PARTS_MAX)
            break;
        served[best] = true;
        parts->items[best].share++;
    }
    return units;
}

/* Rounds among those of one priority; returns what is left. */
static int64_t rounds(struct parts *parts, int64_t priority, bool is_weighted, int64_t remaining)
{
    for (;;) {
        bool wanting[PARTS_MAX];
        bool is_any_full = false;
        int64_t sum = 0;
        int64_t given = 0;
        for (size_t i = 0; i < parts->count; i++) {
            wanting[i] = is_wanting(&parts->items[i], priority, is_weighted);
            sum += wanting[i] ? weight_of(&parts->items[i]) : 0;
        }
        if (sum == 0 || remaining <= 0)
            return remaining;
        for (size_t i = 0; i < parts->count; i++) {
            struct part *part = &parts->items[i];
            int64_t want = part->requestable - part->share;
            int64_t gets = weight_of(part) * remaining / sum;
            if (!wanting[i])
                continue;
            is_any_full |= gets >= want;
            part->share += MIN_OF(want, gets);
            given += MIN_OF(want, gets);
        }
        if (!is_any_full)
            return leftover(parts, wanting, remaining, sum, remaining - given);
        remaining -= given;
    }
}

static void divide(struct parts *parts, int64_t amount)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct part *part = &parts->items[i];
        part->share = MIN_OF(part->quota, part->requestable);
        amount -= part->share + MAX_OF(part->kept - part->share, INT64_C(0));
    }
    for (int64_t priority = 100; priority >= 0; priority--)
        amount = rounds(parts, priority, true, amount);
    for (int64_t priority = 100; priority >= 0; priority--)
        amount = rounds(parts, priority, false, amount);
}

/* ---- the facts ------------------------------------------------------------------------------ */

static int64_t class_number_of(const struct tiny *tiny)
{
    return state_class_by_name(tiny->lab.state, STR("h100"))->r.number;
}

static int64_t charged(const struct workload *w)
{
    int64_t sum = 0;
    for (const struct allocation *a = w->first_allocation; a != NULL; a = a->next_in_workload)
        sum += a->r.state == AL_STARTING || a->r.state == AL_RUNNING || a->r.state == AL_STOPPING
                   ? a->r.charge_milli
                   : 0;
    return sum;
}

/* What it has and asks for. */
static int64_t demand_of(const struct workload *w)
{
    bool is_pending = w->r.state == WL_QUEUED;
    return is_pending ? w->r.members * w->r.request.gpu_milli : charged(w);
}

static int64_t demand(const struct tiny *tiny, const struct project *project, bool is_own)
{
    int64_t sum = 0;
    for (const struct workload *w = tiny->lab.state->first_workload; w != NULL; w = w->next)
        if (is_own ? w->project == project : project_is_within(w->project, project))
            sum += demand_of(w);
    return sum;
}

/* NOLINTNEXTLINE(misc-no-recursion): three levels */
static int64_t guarantee(const struct project *project, int64_t class_number)
{
    int64_t quota = project_quota(project, class_number).quota_milli;
    int64_t below = 0;
    for (const struct project *c = project->first_child; c != NULL; c = c->next_sibling)
        below += guarantee(c, class_number);
    return quota != 0 ? quota : below;
}

static struct part part_of(const struct tiny *tiny, const struct project *project)
{
    int64_t class_number = class_number_of(tiny);
    const struct quota fields = project_quota(project, class_number);
    int64_t quota = guarantee(project, class_number);
    int64_t wanted = demand(tiny, project, false);
    bool lends_all = fields.lend_limit_milli == UNBOUNDED;
    return (struct part){
        .project = project,
        .quota = quota,
        .kept = lends_all ? 0 : MAX_OF(quota - fields.lend_limit_milli, INT64_C(0)),
        .requestable =
            fields.limit_milli == UNBOUNDED ? wanted : MIN_OF(wanted, fields.limit_milli),
        .weight = fields.over_quota_weight,
        .priority = project->r.priority,
    };
}

static struct part own_part(const struct tiny *tiny, const struct project *project)
{
    struct part part = part_of(tiny, project);
    int64_t class_number = class_number_of(tiny);
    int64_t limit = project_quota(project, class_number).limit_milli;
    int64_t wanted = demand(tiny, project, true);
    for (const struct project *c = project->first_child; c != NULL; c = c->next_sibling)
        part.quota -= guarantee(c, class_number);
    part.quota = MAX_OF(part.quota, INT64_C(0));
    part.requestable = limit == UNBOUNDED ? wanted : MIN_OF(wanted, limit);
    part.project = NULL;
    part.kept = 0;
    return part;
}

/* Healthy devices; of a node that takes no more work, what is in use. */
static int64_t capacity(const struct tiny *tiny)
{
    int64_t sum = 0;
    for (const struct node *n = tiny->lab.state->first_node; n != NULL; n = n->next) {
        sum += node_is_usable(n) ? 1000 * (int64_t)n->r.devices.count : 0;
        for (const struct allocation *a = n->first_allocation; a != NULL; a = a->next_on_node)
            sum += node_is_usable(n) ? 0 : a->r.charge_milli;
    }
    return sum;
}

/* Of the children of a project, or of all tenants; and so on below. */
/* NOLINTNEXTLINE(misc-no-recursion): three levels */
static void compare(struct tiny *tiny, const struct project *parent, int64_t amount)
{
    struct parts parts = { 0 };
    if (parent != NULL)
        parts.items[parts.count++] = own_part(tiny, parent);
    for (const struct project *p = parent != NULL ? parent->first_child
                                                  : tiny->lab.state->first_tenant;
         p != NULL; p = p->next_sibling)
        parts.items[parts.count++] = part_of(tiny, p);
    divide(&parts, amount);
    for (size_t i = 0; i < parts.count; i++) {
        const struct part *part = &parts.items[i];
        if (part->project == NULL)
            continue;
        struct class_use use = sched_use(tiny->lab.sched, part->project, class_number_of(tiny));
        TINY_CHECK(tiny, "the guarantee", use.quota_milli == part->quota);
        TINY_CHECK(tiny, "what it has and asks for",
                   use.allocated_milli + use.pending_milli == demand(tiny, part->project, false));
        TINY_CHECK(tiny, "the fair share", use.fair_milli == part->share);
        tiny->counts[0]++;
        tiny->counts[1] += part->share > MIN_OF(part->quota, part->requestable);
        tiny->counts[2] += part->share < part->requestable;
        if (part->project->first_child != NULL)
            compare(tiny, part->project, part->share);
    }
}

/* ---- random clusters ------------------------------------------------------------------------ */

static void act(struct tiny *tiny, const char *const paths[], size_t count, size_t nodes)
{
    static const int64_t sizes[] = { 1000, 1000, 2000, 3000, 5000, 100, 250, 333, 500 };
    static const char *const names[] = { "n0", "n1", "n2", "n3" };
    struct lab *lab = &tiny->lab;
    const char *path = paths[tiny_below(tiny, count)];
    switch (tiny_below(tiny, 8)) {
    case 0:
        if (lab->state->first_workload != NULL)
            (void)lab_act(lab, CMD_WORKLOAD_CANCEL, lab->state->first_workload->r.id);
        break;
    case 1:
        (void)lab_node_act(lab, tiny_one_in(tiny, 2) ? CMD_NODE_CORDON : CMD_NODE_UNCORDON,
                           names[tiny_below(tiny, nodes)]);
        break;
    case 2:
        lab_set_quota(lab, path,
                      (struct lab_quota){ "h100", .quota_milli = 500 * (int64_t)tiny_below(tiny, 9),
                                          .lend_milli = 500 * (int64_t)tiny_below(tiny, 4),
                                          .limit_milli = 500 * (int64_t)tiny_below(tiny, 17) });
        break;
    default:
        (void)lab_submit(
            lab, (struct lab_job){ path, .gpu_milli = tiny_pick(tiny, sizes, COUNT_OF(sizes)),
                                   .members = 1 + (int64_t)tiny_below(tiny, 3) });
        break;
    }
}

static void check_cluster(struct tiny *tiny)
{
    static const char *const names[] = { "n0", "n1", "n2", "n3" };
    const char *paths[TINY_PROJECTS_MAX];
    size_t nodes = 1 + tiny_below(tiny, COUNT_OF(names));
    int64_t devices = 0;
    for (size_t i = 0; i < nodes; i++) {
        size_t count = 1 + tiny_below(tiny, 4);
        lab_add_node(&tiny->lab,
                     (struct lab_node){ .name = names[i], .class_name = "h100", .devices = count });
        devices += (int64_t)count;
    }
    size_t count = tiny_projects(tiny, devices, paths);
    for (size_t i = 0; i < ACTS; i++) {
        act(tiny, paths, count, nodes);
        act(tiny, paths, count, nodes);
        compare(tiny, NULL, capacity(tiny));
    }
}

static void shares_are_what_the_rules_say(void **state)
{
    (void)state;
    struct tiny tiny = { 0 };
    tiny_run(TINY_CLUSTERS, check_cluster, &tiny);
    TINY_CHECK(&tiny, "many are above what is guaranteed", tiny.counts[1] > tiny.counts[0] / 10);
    TINY_CHECK(&tiny, "many get less than they want", tiny.counts[2] > tiny.counts[0] / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(shares_are_what_the_rules_say) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
