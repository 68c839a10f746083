/*
 * projection.c - by when waiting work starts, as far as declared time limits tell.
 *
 * The class is one large pool here: what runs ends when it declared to, and what comes before the
 * work starts in turn as soon as so much is free, and holds it as long as it declared. Work mostly
 * ends earlier, and gaps are filled, so that the real start is mostly earlier as well; that the
 * free part may lie in the wrong places is what makes it later at times. The first of a class has
 * been promised a start, which is exact.
 */
#include <stdlib.h>

#include "sched/internal.h"

enum { AHEAD_MAX = 10000 };

static const struct mono never = { INT64_MAX };

/* What frees something, earliest first: a heap in the arena. */
struct release {
    int64_t at_ns;
    int64_t milli;
};

struct releases {
    struct release *items;
    size_t count;
};

static void release_swap(struct releases *heap, size_t a, size_t b)
{
    struct release kept = heap->items[a];
    heap->items[a] = heap->items[b];
    heap->items[b] = kept;
}

static void release_push(struct releases *heap, struct release release)
{
    size_t at = heap->count++;
    heap->items[at] = release;
    while (at > 0 && heap->items[at].at_ns < heap->items[(at - 1) / 2].at_ns) {
        release_swap(heap, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static struct release release_pop(struct releases *heap)
{
    struct release first = heap->items[0];
    heap->items[0] = heap->items[--heap->count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap->count; child++) {
            if (heap->items[child].at_ns < heap->items[least].at_ns)
                least = child;
        }
        if (least == at)
            return first;
        release_swap(heap, at, least);
        at = least;
    }
}

static int64_t milli_of(const struct swork *work, int64_t class_number)
{
    int64_t milli = 0;
    for (const struct sallocation *a = work->first; a != NULL; a = a->next_of_work)
        milli += a->class_number == class_number && allocation_is_charged(a->state)
                     ? a->charge_milli
                     : 0;
    return milli;
}

static bool may_use(const struct sched *sched, const struct sgroup *group, int64_t class_number)
{
    size_t count = request_class_count(sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        if (request_class(sched->state, &group->request, i) == class_number)
            return true;
    }
    return false;
}

/* Earlier in the own project; of others, what was submitted before. */
static bool comes_before(const struct swork *other, const struct swork *work)
{
    if (other->project == work->project)
        return skip_compare(user_turn(other), user_turn(work)) < 0;
    return other->workload->r.submitted_sequence < work->workload->r.submitted_sequence;
}

struct queue_ahead {
    const struct swork **items;
    size_t count;
};

static bool add_ahead(const struct sched *sched, const struct sproject *project,
                      const struct swork *work, int64_t class_number, struct queue_ahead *out)
{
    for (const struct skip_node *g = skip_first(&project->groups); g != NULL; g = skip_next(g)) {
        const struct sgroup *group = g->item;
        if (!may_use(sched, group, class_number))
            continue;
        for (const struct skip_node *n = skip_first(&group->queue); n != NULL; n = skip_next(n)) {
            if (!comes_before(n->item, work))
                break;
            if (out->count == AHEAD_MAX)
                return false;
            out->items[out->count++] = n->item;
        }
    }
    return true;
}

static int compare_ahead(const void *left, const void *right)
{
    const struct swork *const *a = left;
    const struct swork *const *b = right;
    uint64_t x = (*a)->workload->r.submitted_sequence;
    uint64_t y = (*b)->workload->r.submitted_sequence;
    return (x > y) - (x < y);
}

/* When so much is free; never: nothing ends any more. */
static struct mono wait_for(struct releases *heap, int64_t *free_milli, int64_t milli,
                            struct mono from)
{
    struct mono at = from;
    while (*free_milli < milli) {
        if (heap->count == 0)
            return never;
        struct release release = release_pop(heap);
        *free_milli += release.milli;
        at.ns = MAX_OF(at.ns, release.at_ns);
    }
    *free_milli -= milli;
    return at;
}

static void add_running(const struct sched *sched, int64_t class_number, struct releases *heap)
{
    for (const struct skip_node *n = skip_first(&sched->ends); n != NULL; n = skip_next(n)) {
        int64_t milli = milli_of(n->item, class_number);
        if (milli > 0)
            release_push(heap, (struct release){ n->key.major, milli });
    }
}

struct mono project_start(const struct sched *sched, const struct swork *work, int64_t class_number,
                          struct mono now, struct arena *arena)
{
    struct queue_ahead ahead = { .items = arena_new(arena, AHEAD_MAX, sizeof(*ahead.items)) };
    for (const struct sproject *p = sched->first_project; p != NULL; p = p->next) {
        if (!add_ahead(sched, p, work, class_number, &ahead))
            return never;
    }
    if (ahead.count > 1)
        qsort(ahead.items, ahead.count, sizeof(*ahead.items), compare_ahead);
    struct releases heap = { .items = arena_new(arena, sched->ends.count + ahead.count + 1,
                                                sizeof(*heap.items)) };
    add_running(sched, class_number, &heap);
    int64_t free_milli = sched->classes[class_number].free_milli;
    struct mono at = now;
    for (size_t i = 0; i < ahead.count; i++) {
        int64_t milli = swork_charge(sched, ahead.items[i], class_number);
        at = wait_for(&heap, &free_milli, milli, at);
        if (at.ns == never.ns)
            return never;
        struct mono end = promise_end_of(sched, ahead.items[i]->workload, at);
        if (end.ns != never.ns)
            release_push(&heap, (struct release){ end.ns, milli });
    }
    return wait_for(&heap, &free_milli, swork_charge(sched, work, class_number), at);
}
