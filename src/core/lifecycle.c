#include "core/lifecycle.h"

#include "ledger/ledger.h"

/* ---- images -------------------------------------------------------------------------------- */

struct allocation_image *allocation_image(struct decision *d, struct allocation *allocation)
{
    struct allocation_image *image = id_map_get(&d->steps, allocation->r.id);
    if (image != NULL)
        return image;
    image = arena_new(d->arena, 1, sizeof(*image));
    *image = (struct allocation_image){ .allocation = allocation,
                                        .state = allocation->r.state,
                                        .stop_cause = allocation->r.stop_cause,
                                        .evictor = allocation->r.evictor,
                                        .exit = allocation->r.exit };
    id_map_put(&d->steps, allocation->r.id, image);
    return image;
}

struct workload_image *workload_image(struct decision *d, struct workload *workload)
{
    struct workload_image *image = id_map_get(&d->images, workload->r.id);
    if (image != NULL)
        return image;
    const struct workload_record *r = &workload->r;
    image = arena_new(d->arena, 1, sizeof(*image));
    image->workload = workload;
    image->next = (struct workload_changed){
        .workload = r->id,
        .state = r->state,
        .after_stop = r->after_stop,
        .cause = r->cause,
        .detail = str_copy(d->arena, r->detail), /* the first event drops the state's own */
        .attempt = r->attempt,
        .failures = r->failures,
        .evictions = r->evictions,
        .node_losses = r->node_losses,
        .not_before = r->not_before,
        .exit = r->exit,
    };
    gang_load(d, image);
    id_map_put(&d->images, r->id, image);
    *d->unsettled_end = image;
    d->unsettled_end = &image->next_unsettled;
    return image;
}

/* ---- single steps -------------------------------------------------------------------------- */

static bool is_in_use(enum allocation_state state)
{
    return state == AL_RUNNING || state == AL_STOPPING;
}

/* When the use of an allocation that takes this step ended: of a lost node, at its last sign. */
static struct mono use_ends(const struct decision *d, enum allocation_state to)
{
    struct mono at = d->now;
    if (to == AL_LOST)
        at.ns -= d->state->settings.lost_after_s * NS_PER_S;
    return at;
}

void allocation_step(struct decision *d, struct allocation *allocation, enum allocation_state to)
{
    struct allocation_image *image = allocation_image(d, allocation);
    const struct project *tenant = allocation->workload->project->tenant;
    struct allocation_changed *changed =
        &decide_add(d, EV_ALLOCATION_CHANGED, tenant->r.id)->allocation_changed;
    *changed = (struct allocation_changed){ .allocation = allocation->r.id,
                                            .state = to,
                                            .stop_cause = image->stop_cause,
                                            .evictor = image->evictor,
                                            .exit = image->exit };
    if (is_in_use(image->state) && !is_in_use(to)) {
        const struct class_object *class = state_class(d->state, allocation->r.class_number);
        const struct segment_end end = { tenant->r.id, class->r.price_micros_per_hour,
                                         use_ends(d, to), image->stop_cause };
        changed->has_segment = ledger_segment(&allocation->r, &end, &changed->segment);
    }
    image->state = to;
}

void workload_step(struct decision *d, struct workload_image *image, enum workload_state to,
                   enum cause cause, struct str detail)
{
    image->next.state = to;
    image->next.cause = cause;
    image->next.detail = detail;
    if (to != WL_STOPPING)
        image->next.after_stop = WL_NONE;
    struct id tenant = image->workload->project->tenant->r.id;
    decide_add(d, EV_WORKLOAD_CHANGED, tenant)->workload_changed = image->next;
}

/* ---- members of the present attempt -------------------------------------------------------- */

struct tally {
    size_t starting;
    size_t running;
    size_t stopping;
    size_t lost;
};

static struct tally tally_members(struct decision *d, const struct workload_image *image)
{
    struct tally tally = { 0 };
    for (struct allocation *a = image->workload->first_allocation; a != NULL;
         a = a->next_in_workload) {
        if (a->r.attempt != image->next.attempt)
            continue;
        enum allocation_state state = allocation_image(d, a)->state;
        tally.starting += state == AL_STARTING;
        tally.running += state == AL_RUNNING;
        tally.stopping += state == AL_STOPPING;
        tally.lost += state == AL_LOST;
    }
    return tally;
}

static bool has_live_members(const struct tally *tally)
{
    return tally->starting + tally->running + tally->stopping > 0;
}

/* ---- what comes after ---------------------------------------------------------------------- */

static bool is_own_failure(enum cause cause)
{
    return cause == CAUSE_FAILED || cause == CAUSE_OUT_OF_MEMORY || cause == CAUSE_START_TIMEOUT ||
           cause == CAUSE_MISCONFIGURED;
}

/* base * 2^n up to the maximum; n counts from 0. */
static int64_t backoff_s(const struct settings_record *settings, int64_t n)
{
    int64_t wait = settings->backoff_base_s;
    while (n-- > 0 && wait < settings->backoff_max_s)
        wait *= 2;
    return MIN_OF(wait, settings->backoff_max_s);
}

/* A fenced workload stops itself on its lost node; nothing of it may start before that is
 * certain. */
enum { FENCE_MARGIN_S = 10 };

int64_t workload_fence_s(const struct decision *d, const struct workload *workload)
{
    int64_t grace_s = MAX_OF(workload->r.grace_s, d->state->settings.grace_s);
    return workload->r.fence_after_s + grace_s + d->state->settings.kill_confirm_s + FENCE_MARGIN_S;
}

static struct mono earliest_restart(struct decision *d, const struct workload_image *image)
{
    const struct workload *workload = image->workload;
    const struct settings_record *settings = &d->state->settings;
    struct mono at = { 0 };
    if (is_own_failure(image->next.cause) && image->next.failures > 0)
        at = mono_add_s(d->now, backoff_s(settings, image->next.failures - 1));
    if (workload->r.on_contact_loss == LOSS_FENCE && tally_members(d, image).lost > 0) {
        struct mono fenced = mono_add_s(d->now, workload_fence_s(d, workload));
        at = mono_before(at, fenced) ? fenced : at;
    }
    return at;
}

static void workload_finish(struct decision *d, struct workload_image *image,
                            enum workload_state after)
{
    if (after == WL_QUEUED) {
        image->next.not_before = earliest_restart(d, image);
        /* The exit status belongs to the attempt that is over. */
        image->next.exit = (struct exit_status){ 0 };
    }
    workload_step(d, image, after, image->next.cause, image->next.detail);
}

/* `restart: never` means one attempt: what would go back to the queue ends instead. */
static enum workload_state after_for(const struct workload *workload, enum workload_state after)
{
    bool is_over = after == WL_QUEUED && workload->r.restart == RESTART_NEVER;
    return is_over ? WL_FAILED : after;
}

void workload_stop(struct decision *d, struct workload_image *image, const struct stop *stop)
{
    struct workload *workload = image->workload;
    enum workload_state after = after_for(workload, stop->after);
    for (struct allocation *a = workload->first_allocation; a != NULL; a = a->next_in_workload) {
        struct allocation_image *member = allocation_image(d, a);
        if (a->r.attempt != image->next.attempt ||
            (member->state != AL_STARTING && member->state != AL_RUNNING))
            continue;
        member->stop_cause = stop->cause;
        member->evictor = stop->evictor;
        allocation_step(d, a, AL_STOPPING);
    }
    struct tally tally = tally_members(d, image);
    if (has_live_members(&tally)) {
        image->next.after_stop = after;
        workload_step(d, image, WL_STOPPING, stop->cause, stop->detail);
        return;
    }
    image->next.cause = stop->cause;
    image->next.detail = stop->detail;
    workload_finish(d, image, after);
}

void workload_evict(struct decision *d, struct workload *workload, enum cause cause,
                    struct id evictor)
{
    struct workload_image *image = workload_image(d, workload);
    const struct stop stop = { .after = WL_QUEUED, .cause = cause, .evictor = evictor };
    image->next.evictions++;
    workload_stop(d, image, &stop);
}

bool core_wants_running(const struct allocation *allocation)
{
    const struct workload_record *r = &allocation->workload->r;
    if (allocation->r.state != AL_LOST)
        return allocation->r.state == AL_STARTING || allocation->r.state == AL_RUNNING;
    bool is_present =
        allocation->r.attempt == r->attempt && (r->state == WL_STARTING || r->state == WL_RUNNING);
    return is_present && r->on_contact_loss == LOSS_KEEP;
}

/* ---- members that end by themselves -------------------------------------------------------- */

static struct str exit_detail(struct decision *d, const struct allocation *a,
                              const struct member_end *end)
{
    const char *member = "";
    if (a->workload->r.members > 1)
        member = arena_format(d->arena, "member %lld ", (long long)a->r.rank);
    if (end->detail.size > 0)
        return str_of(arena_format(d->arena, "%s%.*s", member, STR_ARG(end->detail)));
    if (!end->exit.is_known)
        return str_of(arena_format(d->arena, "%sended, exit status unknown", member));
    if (end->exit.is_oom)
        return str_of(arena_format(d->arena, "%sran out of memory (%lld MiB)", member,
                                   (long long)a->r.memory_mib));
    if (end->exit.signal != 0)
        return str_of(
            arena_format(d->arena, "%sended by signal %lld", member, (long long)end->exit.signal));
    return str_of(
        arena_format(d->arena, "%sexited with code %lld", member, (long long)end->exit.code));
}

static enum cause end_cause(const struct member_end *end)
{
    if (end->cause != CAUSE_NONE)
        return end->cause;
    if (end->exit.is_oom)
        return CAUSE_OUT_OF_MEMORY;
    bool is_good =
        !end->never_ran && end->exit.is_known && end->exit.code == 0 && end->exit.signal == 0;
    return is_good ? CAUSE_EXITED : CAUSE_FAILED;
}

/* Where a workload goes whose member ended for that reason; failures are counted already. */
static enum workload_state after_end(const struct workload_image *image, enum cause cause)
{
    if (cause == CAUSE_TIME_LIMIT || cause == CAUSE_RESERVATION_ENDED)
        return WL_TIMED_OUT;
    if (is_own_failure(cause) && image->next.failures > image->workload->r.retries)
        return WL_FAILED;
    return WL_QUEUED;
}

static bool is_present_attempt(const struct workload_image *image, const struct allocation *a)
{
    enum workload_state state = image->next.state;
    return a->r.attempt == image->next.attempt &&
           (state == WL_STARTING || state == WL_RUNNING || state == WL_STOPPING);
}

void member_ended(struct decision *d, struct allocation *allocation, const struct member_end *end)
{
    struct allocation_image *member = allocation_image(d, allocation);
    enum cause cause = end_cause(end);
    bool is_dropped = gang_has_dropped(d, allocation);
    member->exit = end->exit;
    if (member->stop_cause == CAUSE_NONE)
        member->stop_cause = cause;
    struct workload *workload = allocation->workload;
    allocation_step(d, allocation, AL_ENDED);
    if (workload_state_is_final(workload->r.state))
        return;

    struct workload_image *image = workload_image(d, workload);
    if (!is_present_attempt(image, allocation) || is_dropped)
        return;
    /* What made it stop tells more than how the others were stopped. */
    bool is_stopping = image->next.state == WL_STOPPING;
    if (!is_stopping || !image->next.exit.is_known)
        image->next.exit = end->exit;
    if (is_stopping || cause == CAUSE_EXITED)
        return; /* settled with the other members */
    bool is_loss = cause == CAUSE_NODE_FAILURE || cause == CAUSE_DEVICE_FAILURE;
    struct str detail = exit_detail(d, allocation, end);
    image->next.node_losses += is_loss;
    if ((is_loss && gang_loses(d, image, allocation, detail)) ||
        (end->never_ran && gang_gives_up(d, image, allocation, detail)))
        return;
    /* Members that fail while others are missing fail for want of them. */
    if (is_own_failure(cause) && gang_is_short(image))
        cause = CAUSE_NODE_FAILURE;
    image->next.failures += is_own_failure(cause);
    const struct stop stop = { .after = after_end(image, cause), .cause = cause, .detail = detail };
    workload_stop(d, image, &stop);
}

void member_lost(struct decision *d, struct allocation *allocation, enum allocation_state to)
{
    struct allocation_image *member = allocation_image(d, allocation);
    struct workload *workload = allocation->workload;
    bool is_dropped = gang_has_dropped(d, allocation);
    if (member->stop_cause == CAUSE_NONE)
        member->stop_cause = CAUSE_NODE_FAILURE;
    allocation_step(d, allocation, to);
    if (workload_state_is_final(workload->r.state))
        return;

    struct workload_image *image = workload_image(d, workload);
    if (!is_present_attempt(image, allocation))
        return;
    bool is_waited_for = to == AL_LOST && workload->r.on_contact_loss == LOSS_KEEP;
    if (image->next.state == WL_STOPPING || is_waited_for || is_dropped)
        return;
    image->next.node_losses++;
    bool is_stuck = to == AL_QUARANTINED;
    const char *what = is_stuck ? "would not end its process" : "was lost";
    const struct stop stop = { .after = WL_QUEUED,
                               .cause = is_stuck ? CAUSE_DEVICE_FAILURE : CAUSE_NODE_FAILURE,
                               .detail =
                                   str_of(arena_format(d->arena, "node %.*s %s",
                                                       STR_ARG(allocation->node->r.name), what)) };
    if (!gang_loses(d, image, allocation, stop.detail))
        workload_stop(d, image, &stop);
}

/* ---- conclusions --------------------------------------------------------------------------- */

static const struct str no_detail;

/* All that is left of it has ended well: that is not all of it where it was waiting for others. */
static void workload_end(struct decision *d, struct workload_image *image)
{
    if (!gang_is_short(image)) {
        workload_step(d, image, WL_SUCCEEDED, CAUSE_EXITED, no_detail);
        return;
    }
    const struct stop stop = { .after = WL_QUEUED, .cause = CAUSE_STALE_GANG };
    workload_stop(d, image, &stop);
}

static void workload_settle(struct decision *d, struct workload_image *image)
{
    struct tally tally = tally_members(d, image);
    bool is_kept = tally.lost > 0 && image->workload->r.on_contact_loss == LOSS_KEEP;
    bool is_done = !has_live_members(&tally);
    switch (image->next.state) {
    case WL_STARTING:
        if (is_done && !is_kept)
            workload_end(d, image);
        else if (tally.starting == 0 && tally.running > 0 && !gang_is_short(image))
            workload_step(d, image, WL_RUNNING, CAUSE_STARTED, no_detail);
        break;
    case WL_RUNNING:
        if (is_done && !is_kept)
            workload_end(d, image);
        break;
    case WL_STOPPING:
        if (is_done)
            workload_finish(d, image, image->next.after_stop);
        break;
    case WL_NONE:
    case WL_HELD:
    case WL_QUEUED:
    case WL_PROVISIONING:
    case WL_SUCCEEDED:
    case WL_FAILED:
    case WL_CANCELLED:
    case WL_TIMED_OUT:
    case WL_STATE_COUNT:
        break;
    }
}

void lifecycle_settle(struct decision *d)
{
    for (struct workload_image *image = d->unsettled; image != NULL; image = image->next_unsettled)
        workload_settle(d, image);
    d->unsettled = NULL;
    d->unsettled_end = &d->unsettled;
}
