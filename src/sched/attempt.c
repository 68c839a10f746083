/* attempt.c - one workload, one class: what a step does for it once it is decided. */
#include <string.h>

#include "sched/internal.h"

void attempt_init(struct attempt *attempt, struct swork *work, int64_t class_number)
{
    attempt->work = work;
    attempt->ask = (struct ask){
        .project = work->project,
        .class_number = class_number,
        .charge = swork_charge(attempt->sched, work, class_number),
        .is_fixed = work->workload->r.preemptible == PREEMPTIBLE_NEVER,
    };
    attempt->retry_at = (struct mono){ 0 };
    fitting_init(attempt->sched, work->workload, class_number, &attempt->fitting);
}

struct plan_entry *plan_add(struct plan *plan, struct arena *arena)
{
    if (plan->count == plan->capacity) {
        size_t capacity = MAX_OF(plan->capacity * 2, (size_t)16);
        struct plan_entry *entries = arena_new(arena, capacity, sizeof(*entries));
        if (plan->count > 0)
            memcpy(entries, plan->entries, plan->count * sizeof(*entries));
        plan->entries = entries;
        plan->capacity = capacity;
    }
    return &plan->entries[plan->count++];
}

static void book_members(struct attempt *attempt, const struct plan_member *members)
{
    struct sched *sched = attempt->sched;
    for (size_t i = 0; i < attempt->fitting.members; i++) {
        const struct booking booking = { snode_of(sched, members[i].node), &members[i].shares,
                                         members[i].cpu_milli, members[i].memory_mib,
                                         attempt->fitting.tenant };
        capacity_book(sched, &booking);
    }
    const struct id_list *volumes = &attempt->work->workload->r.volumes;
    for (size_t i = 0; i < volumes->count; i++) {
        const struct volume_pin pin = { volumes->items[i], members[0].node->r.id };
        vec_push(&sched->pins, pin);
    }
    touch(sched, attempt->work, sizeof(*attempt->work));
    attempt->work->is_booked = true;
}

bool attempt_start(struct attempt *attempt)
{
    struct sched *sched = attempt->sched;
    const struct ask *ask = &attempt->ask;
    struct plan_member *members = place_all(sched, &attempt->fitting, attempt->arena);
    if (members == NULL)
        return false;
    struct plan_entry *entry = plan_add(attempt->plan, attempt->arena);
    *entry = (struct plan_entry){ .action = PLAN_START,
                                  .workload = attempt->work->workload,
                                  .members = members,
                                  .member_count = attempt->fitting.members,
                                  .is_borrowed = !quota_is_inside(ask) };
    book_members(attempt, members);
    use_add(sched, ask->project, ask->class_number, USE_CHARGED, ask->charge);
    if (ask->is_fixed)
        use_add(sched, ask->project, ask->class_number, USE_FIXED, ask->charge);
    return true;
}

void attempt_claim(struct attempt *attempt, const struct plan_member *members)
{
    const struct ask *ask = &attempt->ask;
    book_members(attempt, members);
    use_add(attempt->sched, ask->project, ask->class_number, USE_CLAIMED, ask->charge);
    if (ask->is_fixed)
        use_add(attempt->sched, ask->project, ask->class_number, USE_FIXED, ask->charge);
}
