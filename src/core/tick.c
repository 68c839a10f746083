/* tick.c - what time alone makes due. The scheduler's index finds it; here is what follows. */
#include "core/lifecycle.h"

enum { DUE_AT_ONCE = 256 };

static void start_is_late(struct decision *d, struct allocation *a)
{
    struct workload_image *image = workload_image(d, a->workload);
    if (allocation_image(d, a)->state != AL_STARTING)
        return;
    if (a->r.attempt != image->next.attempt || image->next.state == WL_STOPPING) {
        allocation_step(d, a, AL_STOPPING);
        return;
    }
    struct str detail = str_of(arena_format(d->arena, "not running on node %.*s after %lld s",
                                            STR_ARG(a->node->r.name),
                                            (long long)d->state->settings.start_timeout_s));
    if (gang_gives_up(d, image, a, detail)) {
        allocation_image(d, a)->stop_cause = CAUSE_START_TIMEOUT;
        allocation_step(d, a, AL_STOPPING);
        return;
    }
    image->next.failures++;
    bool is_over = image->next.failures > a->workload->r.retries;
    const struct stop stop = {
        .after = is_over ? WL_FAILED : WL_QUEUED,
        .cause = CAUSE_START_TIMEOUT,
        .detail = detail,
    };
    workload_stop(d, image, &stop);
}

/* It had its grace, was killed, and is still there; or nobody says that its devices are clean. */
static void stop_is_late(struct decision *d, struct allocation *a)
{
    enum allocation_state state = allocation_image(d, a)->state;
    if (state == AL_STOPPING || state == AL_CLEANING)
        member_lost(d, a, AL_QUARANTINED);
}

static void time_is_up(struct decision *d, struct workload *workload)
{
    struct workload_image *image = workload_image(d, workload);
    const struct stop stop = {
        .after = WL_TIMED_OUT,
        .cause = CAUSE_TIME_LIMIT,
        .detail = str_of(arena_format(d->arena, "ran longer than its limit of %lld s",
                                      (long long)workload->r.time_limit_s)),
    };
    if (image->next.state == WL_RUNNING)
        workload_stop(d, image, &stop);
}

/* Back to the queue: perhaps there is room elsewhere by now. */
static void provisioning_is_late(struct decision *d, struct workload *workload)
{
    struct workload_image *image = workload_image(d, workload);
    if (image->next.state == WL_PROVISIONING)
        workload_step(d, image, WL_QUEUED, CAUSE_START_TIMEOUT, (struct str){ 0 });
}

static void drain_is_over(struct decision *d, struct node *node)
{
    const struct id nobody = { 0 };
    for (struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        enum allocation_state state = allocation_image(d, a)->state;
        if (state == AL_STARTING || state == AL_RUNNING)
            workload_evict(d, a->workload, CAUSE_DRAINED, nobody);
    }
}

static void forget(struct decision *d, const struct workload *workload)
{
    struct id tenant = workload->project->tenant->r.id;
    decide_add(d, EV_WORKLOAD_FORGOTTEN, tenant)->removed.id = workload->r.id;
}

enum err decide_tick(struct decision *d, struct error *e)
{
    (void)e; /* time is never refused */
    struct due *due = arena_new(d->arena, DUE_AT_ONCE, sizeof(*due));
    size_t count = sched_due(d->sched, d->now, due, DUE_AT_ONCE);
    for (size_t i = 0; i < count; i++) {
        switch (due[i].kind) {
        case DUE_START:
            start_is_late(d, due[i].allocation);
            break;
        case DUE_STOP:
            stop_is_late(d, due[i].allocation);
            break;
        case DUE_GANG:
            gang_is_stale(d, due[i].workload);
            break;
        case DUE_TIME_LIMIT:
            time_is_up(d, due[i].workload);
            break;
        case DUE_PROVISION:
            provisioning_is_late(d, due[i].workload);
            break;
        case DUE_DRAIN:
            drain_is_over(d, due[i].node);
            break;
        case DUE_RESERVATION:
            reservation_tick(d, due[i].reservation);
            break;
        case DUE_CHANGE:
            change_tick(d, due[i].change);
            break;
        case DUE_FORGET:
            forget(d, due[i].workload);
            break;
        }
    }
    lifecycle_settle(d);
    return ERR_OK;
}

struct mono core_next_deadline(const struct sched *sched)
{
    return sched_next_due(sched);
}
