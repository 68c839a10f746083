/* attempt.c - one workload, one class: what a step does for it once it is decided. */
#include <string.h>

#include "sched/internal.h"

void attempt_init(struct attempt *attempt, struct swork *work, int64_t class_number)
{
    attempt->work = work;
    attempt->is_reserved = work->tied != NULL;
    attempt->ask = (struct ask){
        .project = work->project,
        .class_number = class_number,
        .charge = swork_charge(attempt->sched, work, class_number),
        .is_fixed = work->workload->r.preemptible == PREEMPTIBLE_NEVER && work->tied == NULL,
    };
    attempt->retry_at = (struct mono){ 0 };
    attempt->lacks_progress = false;
    fitting_init(attempt->sched, work->workload, class_number, &attempt->fitting);
}

void attempt_note_progress(const struct attempt *attempt)
{
    struct sgroup *group = attempt->work->group;
    if (!attempt->lacks_progress || group == NULL)
        return;
    attempt->sched->is_unsettled = true;
    group->is_unsettled = true;
    group->project->rouse.is_unsettled = true;
    group->project->next_rouse.is_unsettled = true;
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

enum way { BOOK, UNBOOK };

static void move_members(struct attempt *attempt, const struct plan_member *members, enum way way)
{
    struct sched *sched = attempt->sched;
    for (size_t i = 0; i < attempt->fitting.members; i++) {
        const struct booking booking = { snode_of(sched, members[i].node), &members[i].shares,
                                         members[i].cpu_milli, members[i].memory_mib,
                                         attempt->fitting.tenant };
        if (way == BOOK)
            capacity_book(sched, &booking);
        else
            capacity_unbook(sched, &booking);
    }
    touch(sched, attempt->work, sizeof(*attempt->work));
    attempt->work->is_booked = way == BOOK;
}

/* Volumes that have no node yet get the one on which they are first used. */
static void pin_volumes(struct attempt *attempt, const struct plan_member *members)
{
    const struct id_list *volumes = &attempt->work->workload->r.volumes;
    for (size_t i = 0; i < volumes->count; i++) {
        const struct volume_pin pin = { volumes->items[i], members[0].node->r.id };
        vec_push(&attempt->sched->pins, pin);
    }
}

static void use_move(struct attempt *attempt, enum use_kind kind, int64_t sign)
{
    const struct ask *ask = &attempt->ask;
    use_add(attempt->sched, ask->project, ask->class_number, kind, sign * ask->charge);
    if (ask->is_fixed)
        use_add(attempt->sched, ask->project, ask->class_number, USE_FIXED, sign * ask->charge);
}

void attempt_start_at(struct attempt *attempt, struct plan_member *members)
{
    struct plan_entry *entry = plan_add(attempt->plan, attempt->arena);
    *entry = (struct plan_entry){ .action = PLAN_START,
                                  .workload = attempt->work->workload,
                                  .members = members,
                                  .member_count = attempt->fitting.members,
                                  .is_borrowed =
                                      !attempt->is_reserved && !quota_is_inside(&attempt->ask) };
    move_members(attempt, members, BOOK);
    pin_volumes(attempt, members);
    use_move(attempt, attempt->is_reserved ? USE_RESERVED : USE_CHARGED, 1);
    if (attempt->is_reserved) {
        int64_t *used = &attempt->work->tied->used_milli;
        touch(attempt->sched, used, sizeof(*used));
        *used += attempt->ask.charge;
    }
    promise_spoil(attempt->sched);
}

bool attempt_start(struct attempt *attempt)
{
    window_let_in(attempt);
    struct plan_member *members = place_all(attempt->sched, &attempt->fitting, attempt->arena);
    window_let_out(attempt);
    if (members == NULL)
        return false;
    attempt_start_at(attempt, members);
    return true;
}

void attempt_book(struct attempt *attempt, const struct plan_member *members)
{
    move_members(attempt, members, BOOK);
}

void attempt_claim(struct attempt *attempt)
{
    use_move(attempt, USE_CLAIMED, 1);
    promise_spoil(attempt->sched);
}

void attempt_hold(struct attempt *attempt, const struct plan_member *members)
{
    attempt_book(attempt, members);
    attempt_claim(attempt);
}

void attempt_release(struct attempt *attempt, const struct plan_member *members)
{
    move_members(attempt, members, UNBOOK);
    use_move(attempt, USE_CLAIMED, -1);
}
