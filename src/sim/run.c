#include "sim/run.h"

#include "sim/expect.h"

/* A scenario that does not come to rest is a fault of its own. */
enum { STEPS_MAX = 2000000 };

struct run {
    struct world world;
    const struct scenario *scenario;
    struct buf *faults;
    size_t next_event;
    bool counts_errors; /* refused events are expected to be counted */
};

static int64_t next_expected(const struct scenario *s, int64_t t)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < s->expect_count; i++) {
        const struct sim_expect *x = &s->expects[i];
        if (x->from_s == UNSET)
            continue;
        if (x->from_s * NS_PER_S > t)
            next = MIN_OF(next, x->from_s * NS_PER_S);
        else if (x->to_s * NS_PER_S > t && x->to_s != x->from_s && x->from_s > 0)
            next = MIN_OF(next, x->to_s * NS_PER_S);
    }
    return next;
}

static void check_now(struct run *run)
{
    const struct scenario *s = run->scenario;
    int64_t t = world_t(&run->world);
    (void)world_is_sound(&run->world, run->faults);
    for (size_t i = 0; i < s->expect_count; i++) {
        if (expect_is_due(&s->expects[i], t))
            (void)expect_holds(&run->world, &s->expects[i], run->faults);
    }
}

static void apply_events(struct run *run)
{
    const struct scenario *s = run->scenario;
    int64_t t = world_t(&run->world);
    for (; run->next_event < s->event_count; run->next_event++) {
        const struct sim_event *event = &s->events[run->next_event];
        struct error e = { 0 };
        if (event->at_s * NS_PER_S > t)
            return;
        if (world_apply(&run->world, event, &e) != ERR_OK &&
            !(run->counts_errors && event->expect_error.size == 0))
            buf_format(run->faults, "# at %llds: line %s\n", (long long)event->at_s, e.text);
    }
}

static int64_t next_instant(const struct run *run)
{
    const struct scenario *s = run->scenario;
    int64_t t = world_t(&run->world);
    int64_t next = MIN_OF(world_next(&run->world), next_expected(s, t));
    if (run->next_event < s->event_count)
        next = MIN_OF(next, s->events[run->next_event].at_s * NS_PER_S);
    return next;
}

static void to_the_end(struct run *run)
{
    const struct scenario *s = run->scenario;
    int64_t end = s->until_s == UNSET ? INT64_MAX : s->until_s * NS_PER_S;
    size_t steps = 0;
    for (;;) {
        apply_events(run);
        world_settle(&run->world);
        check_now(run);
        int64_t next = next_instant(run);
        bool is_stuck = ++steps > STEPS_MAX || run->faults->size > 64 * 1024;
        if (next > end || next == INT64_MAX || is_stuck) {
            if (is_stuck)
                buf_format(run->faults, "# it does not come to rest\n");
            break;
        }
        world_advance(&run->world, next);
    }
    if (end != INT64_MAX && world_t(&run->world) < end) {
        world_advance(&run->world, end);
        world_settle(&run->world);
    }
    for (size_t i = 0; i < s->expect_count; i++) {
        if (s->expects[i].from_s == UNSET)
            (void)expect_holds(&run->world, &s->expects[i], run->faults);
    }
}

enum err scenario_run(const struct scenario *scenario, struct arena *arena, struct buf *faults,
                      struct buf *log, struct error *e)
{
    struct run run = { .scenario = scenario, .faults = faults };
    for (size_t i = 0; i < scenario->expect_count; i++)
        run.counts_errors = run.counts_errors || scenario->expects[i].error_count != UNSET;
    enum err rc = world_start(&run.world, scenario, arena, log, e);
    if (rc == ERR_OK)
        to_the_end(&run);
    world_end(&run.world);
    return rc;
}
