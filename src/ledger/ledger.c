#include "ledger/ledger.h"

#include <assert.h>

#include "base/wide.h"

/* A charge of 1,000 milli for 3,600,000 ms costs the price. */
#define MILLI_MS_PER_UNIT_HOUR UINT64_C(3600000000)

/*
 * Three factors of 63 bits need 189. Hence the division comes first, with its remainder: with
 * use = whole * D + rest, use * price / D = whole * price + rest * price / D, and every
 * product fits.
 */
int64_t ledger_amount(int64_t duration_ms, int64_t charge_milli, int64_t price_micros_per_hour)
{
    assert(duration_ms >= 0);
    assert(charge_milli >= 0);
    assert(price_micros_per_hour >= 0);

    wide_unsigned price = (uint64_t)price_micros_per_hour;
    wide_unsigned use = (wide_unsigned)(uint64_t)duration_ms * (uint64_t)charge_milli;
    wide_unsigned whole = use / MILLI_MS_PER_UNIT_HOUR;
    wide_unsigned rest = use % MILLI_MS_PER_UNIT_HOUR;
    if (price == 0)
        return 0;
    if (whole > (wide_unsigned)INT64_MAX / price)
        return INT64_MAX;
    wide_unsigned amount = whole * price + rest * price / MILLI_MS_PER_UNIT_HOUR;
    return amount > (wide_unsigned)INT64_MAX ? INT64_MAX : (int64_t)amount;
}

/* Whole milliseconds from the start of the use to `at`. */
static int64_t used_ms(const struct allocation_record *allocation, struct mono at)
{
    if (mono_before(at, allocation->started))
        return 0;
    return (at.ns - allocation->started.ns) / NS_PER_MS;
}

bool ledger_segment(const struct allocation_record *allocation, const struct segment_end *end,
                    struct segment *out)
{
    if (allocation->started.ns == 0)
        return false;
    int64_t duration_ms = used_ms(allocation, end->at);
    *out = (struct segment){
        .allocation = allocation->id,
        .workload = allocation->workload,
        .project = allocation->project,
        .tenant = end->tenant,
        .class_number = allocation->class_number,
        .charge_milli = allocation->charge_milli,
        .start = allocation->started_wall,
        .duration_ms = duration_ms,
        .price_micros_per_hour = end->price_micros_per_hour,
        .amount_micros =
            ledger_amount(duration_ms, allocation->charge_milli, end->price_micros_per_hour),
        .cause = end->cause,
    };
    return true;
}

/* What runs now, summed per project and class; a project's row is made when it is first needed. */
struct running {
    int64_t milli_ms;
    int64_t amount_micros;
};

struct tally {
    const struct state *state;
    const struct project *root; /* NULL: all tenants */
    struct mono at;
    struct arena *arena;
    struct id_map rows; /* project -> struct running[classes] */
};

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static struct running *tally_row(struct tally *tally, const struct project *project)
{
    struct running *row = id_map_get(&tally->rows, project->r.id);
    if (row == NULL) {
        row = arena_new(tally->arena, tally->state->classes.count, sizeof(*row));
        id_map_put(&tally->rows, project->r.id, row);
    }
    return row;
}

static void tally_allocation(struct tally *tally, const struct allocation *allocation)
{
    const struct allocation_record *r = &allocation->r;
    const struct project *project = allocation->workload->project;
    const struct class_object *class = state_class(tally->state, r->class_number);
    if (r->started.ns == 0 || !allocation_is_charged(r->state) || class == NULL)
        return;
    if (tally->root != NULL && !project_is_within(project, tally->root))
        return;

    int64_t milli_ms = 0;
    int64_t duration_ms = used_ms(r, tally->at);
    int64_t amount = ledger_amount(duration_ms, r->charge_milli, class->r.price_micros_per_hour);
    if (__builtin_mul_overflow(duration_ms, r->charge_milli, &milli_ms))
        milli_ms = INT64_MAX;
    for (; project != NULL; project = project->parent) {
        struct running *running = &tally_row(tally, project)[r->class_number];
        running->milli_ms = add_capped(running->milli_ms, milli_ms);
        running->amount_micros = add_capped(running->amount_micros, amount);
    }
}

static struct usage_total closed_total(const struct project *project, int64_t class_number)
{
    for (size_t i = 0; i < project->r.usage.count; i++) {
        if (project->r.usage.items[i].class_number == class_number)
            return project->r.usage.items[i];
    }
    return (struct usage_total){ .class_number = class_number };
}

/* Writes the lines of one project to `lines` (NULL: nowhere) and returns how many there are. */
static size_t report_project(const struct tally *tally, const struct project *project,
                             struct usage_line *lines)
{
    const struct running *row = id_map_get(&tally->rows, project->r.id);
    size_t count = 0;
    for (size_t class = 0; class < tally->state->classes.count; class ++) {
        struct usage_total closed = closed_total(project, (int64_t) class);
        struct running running = row != NULL ? row[class] : (struct running){ 0 };
        if (closed.segments == 0 && running.milli_ms == 0)
            continue;
        count++;
        if (lines == NULL)
            continue;
        lines[count - 1] = (struct usage_line){
            .project = project,
            .class_number = (int64_t) class,
            .milli_ms = add_capped(closed.milli_ms, running.milli_ms),
            .running_milli_ms = running.milli_ms,
            .amount_micros = add_capped(closed.amount_micros, running.amount_micros),
            .running_amount_micros = running.amount_micros,
            .segments = closed.segments,
        };
    }
    return count;
}

/* Next in pre-order below `root`, NULL at its end. */
static const struct project *next_below(const struct project *root, const struct project *project)
{
    const struct project *next = project_next(project);
    if (root != NULL && next != NULL && !project_is_within(next, root))
        return NULL;
    return next;
}

void ledger_report(const struct state *state, const struct project *root, struct mono at,
                   struct arena *arena, struct usage_report *out)
{
    struct tally tally = { .state = state, .root = root, .at = at, .arena = arena };
    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
            tally_allocation(&tally, a);
    }

    const struct project *first = root != NULL ? root : state->first_tenant;
    size_t needed = 0;
    for (const struct project *p = first; p != NULL; p = next_below(root, p))
        needed += report_project(&tally, p, NULL);
    *out = (struct usage_report){ .lines = arena_new(arena, needed, sizeof(*out->lines)) };
    for (const struct project *p = first; p != NULL; p = next_below(root, p))
        out->count += report_project(&tally, p, &out->lines[out->count]);
    id_map_done(&tally.rows);
}
