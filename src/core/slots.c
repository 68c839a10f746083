#include "core/slots.h"

#include <stdlib.h>

enum { MINUTE_S = 60, TRIED_OF_MANY = 400 };

/* ---- levels -------------------------------------------------------------------------------- */

struct points {
    VEC(struct level) all; /* changes, not levels */
};

static void add_windows(struct points *points, const struct reservation_record *r, struct wall from)
{
    struct calendar calendar = reservation_calendar(r);
    struct window window;
    for (struct wall at = from; calendar_next(&calendar, at, &window); at = window.end) {
        const struct level begin = { window.start.ns, r->gpu_milli };
        const struct level end = { window.end.ns, -r->gpu_milli };
        vec_push(&points->all, begin);
        vec_push(&points->all, end);
    }
}

static int by_time(const void *left, const void *right)
{
    const struct level *a = left;
    const struct level *b = right;
    return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static bool is_counted(const struct slots_of *of, const struct reservation *r)
{
    return reservation_is_kept(r->r.state) && r->r.class_number == of->class_number &&
           !id_eq(r->r.id, of->except) &&
           (of->project == NULL || project_is_within(r->project, of->project));
}

struct levels slots_levels(const struct slots_of *of, struct arena *arena)
{
    struct points points = { 0 };
    for (const struct reservation *r = of->state->first_reservation; r != NULL; r = r->next) {
        if (is_counted(of, r))
            add_windows(&points, &r->r, of->from);
    }
    struct levels out = { arena_new(arena, points.all.count, sizeof(*out.items)), 0 };
    if (points.all.count > 0)
        qsort(points.all.items, points.all.count, sizeof(*points.all.items), by_time);
    int64_t milli = 0;
    for (size_t i = 0; i < points.all.count; i++) {
        milli += points.all.items[i].milli;
        bool is_same_time =
            out.count > 0 && out.items[out.count - 1].at_ns == points.all.items[i].at_ns;
        if (!is_same_time)
            out.count++;
        out.items[out.count - 1] = (struct level){ points.all.items[i].at_ns, milli };
    }
    vec_done(&points.all);
    return out;
}

/* How many of them are at or before that instant. */
static size_t levels_until(const struct levels *levels, int64_t at_ns)
{
    size_t low = 0;
    size_t high = levels->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (levels->items[middle].at_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The most of them in that window. */
static int64_t slots_peak(const struct levels *levels, struct window window)
{
    size_t i = levels_until(levels, window.start.ns);
    int64_t peak = i > 0 ? levels->items[i - 1].milli : 0;
    for (; i < levels->count && levels->items[i].at_ns < window.end.ns; i++)
        peak = MAX_OF(peak, levels->items[i].milli);
    return peak;
}

int64_t slots_peak_of_all(const struct levels *levels, const struct calendar *calendar,
                          struct wall from)
{
    int64_t peak = 0;
    struct window window;
    for (struct wall at = from; calendar_next(calendar, at, &window); at = window.end)
        peak = MAX_OF(peak, slots_peak(levels, window));
    return peak;
}

/* ---- what there is ------------------------------------------------------------------------- */

/* Cordoned and drained nodes come back; lost ones may not, and neither may what was taken out. */
static bool is_counted_on(const struct node *node)
{
    return node->r.contact == CONTACT_OK || node->r.contact == CONTACT_UNKNOWN;
}

int64_t slots_capacity(const struct state *state, const struct sched *sched, int64_t class_number)
{
    int64_t sum = 0;
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        for (size_t i = 0; i < node->r.devices.count && is_counted_on(node); i++) {
            const struct device_record *device = &node->r.devices.items[i];
            if (device->class_number == class_number && device_is_usable(device))
                sum += 1000;
        }
    }
    int64_t kept = sched_never_lent(sched, class_number);
    return MAX_OF(sum - (kept + 999) / 1000 * 1000, INT64_C(0));
}

/* ---- where else it would fit --------------------------------------------------------------- */

static struct calendar moved(const struct calendar *calendar, int64_t move_s)
{
    struct calendar out = *calendar;
    out.start.s += move_s;
    out.end.s += move_s;
    out.until.s += move_s;
    return out;
}

static int by_distance(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    int64_t far_a = a < 0 ? -a : a;
    int64_t far_b = b < 0 ? -b : b;
    if (far_a != far_b)
        return far_a < far_b ? -1 : 1;
    return (b > a) - (b < a); /* later rather than earlier */
}

static int64_t seconds_up(int64_t ns)
{
    return (ns + NS_PER_S - 1) / NS_PER_S;
}

/* Right after something ends, right before something begins, and as soon as possible. */
static size_t candidates(const struct levels *levels, struct window first, struct wall from,
                         int64_t *out)
{
    int64_t duration_s = (first.end.ns - first.start.ns) / NS_PER_S;
    int64_t start_s = first.start.ns / NS_PER_S;
    int64_t now_s = (seconds_up(from.ns) + MINUTE_S - 1) / MINUTE_S * MINUTE_S;
    size_t count = 0;
    out[count++] = now_s - start_s;
    for (size_t i = 0; i < levels->count; i++) {
        int64_t at_s = seconds_up(levels->items[i].at_ns);
        const int64_t starts[] = { at_s, at_s - duration_s };
        for (size_t k = 0; k < COUNT_OF(starts); k++) {
            if (starts[k] >= now_s)
                out[count++] = starts[k] - start_s;
        }
    }
    qsort(out, count, sizeof(*out), by_distance);
    return count;
}

size_t slots_nearest(const struct levels *levels, const struct calendar *calendar, int64_t milli,
                     struct wall from, int64_t moves[SLOTS_NEAREST], struct arena *arena)
{
    struct window first;
    size_t found = 0;
    if (milli < 0 || !calendar_next(calendar, from, &first))
        return 0;
    int64_t *tries = arena_new(arena, 2 * levels->count + 1, sizeof(*tries));
    size_t count = candidates(levels, first, from, tries);
    size_t most = calendar->repeat == REPEAT_NEVER ? count : MIN_OF(count, (size_t)TRIED_OF_MANY);
    for (size_t i = 0; i < most && found < SLOTS_NEAREST; i++) {
        if (tries[i] == 0 || (found > 0 && moves[found - 1] == tries[i]))
            continue;
        const struct calendar other = moved(calendar, tries[i]);
        if (slots_peak_of_all(levels, &other, from) <= milli)
            moves[found++] = tries[i];
    }
    return found;
}

/* ---- the earliest -------------------------------------------------------------------------- */

/* The end of the last level in the window that leaves too little; 0: none does. */
static int64_t blocked_until(const struct levels *levels, struct window window, int64_t milli)
{
    int64_t until = 0;
    size_t i = levels_until(levels, window.start.ns);
    for (i = i > 0 ? i - 1 : 0; i < levels->count; i++) {
        if (levels->items[i].at_ns >= window.end.ns)
            break;
        bool is_before = i + 1 < levels->count && levels->items[i + 1].at_ns <= window.start.ns;
        if (!is_before && levels->items[i].milli > milli)
            until = levels->items[i + 1].at_ns; /* the last level is 0 */
    }
    return until;
}

size_t core_slots(const struct state *state, const struct sched *sched,
                  const struct slot_query *query, struct slot *out, size_t max, int64_t *most_milli)
{
    AUTO(arena) struct arena arena = { 0 };
    const struct slots_of of = { .state = state,
                                 .class_number = query->class_number,
                                 .from = query->from };
    struct levels levels = slots_levels(&of, &arena);
    int64_t capacity = slots_capacity(state, sched, query->class_number);
    *most_milli = capacity;
    size_t count = 0;
    struct wall start = { seconds_up(query->from.ns) * NS_PER_S };
    while (count < max && query->gpu_milli <= capacity) {
        const struct window window = { start, { start.ns + query->duration_s * NS_PER_S } };
        int64_t until = blocked_until(&levels, window, capacity - query->gpu_milli);
        if (until != 0) {
            start.ns = seconds_up(until) * NS_PER_S;
            continue;
        }
        out[count++] = (struct slot){ window, capacity - slots_peak(&levels, window) };
        start = window.end;
    }
    return count;
}
