/*
 * observed.c - what a node reports to have, against what was granted to it.
 *
 * Level-triggered: each report is the whole truth about the node as of a generation of its desired
 * set, so a report that is lost or comes twice changes nothing. What the node has and should not is
 * no matter of this file: it is not in the node's desired set, so the node ends it by itself.
 */
#include "core/lifecycle.h"

enum { CHECKPOINT_NOTED_S = 10 };

enum reaction {
    IGNORE,
    RUNS,       /* its process runs: billed from here */
    ENDS,       /* gone, and its devices are clean */
    FAILS,      /* never ran */
    IS_STUCK,   /* will not die: its devices are out of use */
    COMES_BACK, /* a lost one that runs: kept only when its workload waits for it */
};

/* clang-format off */
static const enum reaction reactions[AL_STATE_COUNT][OBSERVED_STATE_COUNT] = {
    [AL_STARTING]    = { [OBSERVED_RUNNING] = RUNS,   [OBSERVED_EXITED] = ENDS,
                         [OBSERVED_FAILED] = FAILS,   [OBSERVED_STUCK] = IS_STUCK },
    [AL_RUNNING]     = { [OBSERVED_EXITED] = ENDS,    [OBSERVED_FAILED] = ENDS,
                         [OBSERVED_STUCK] = IS_STUCK },
    [AL_STOPPING]    = { [OBSERVED_EXITED] = ENDS,    [OBSERVED_FAILED] = ENDS,
                         [OBSERVED_STUCK] = IS_STUCK },
    [AL_CLEANING]    = { [OBSERVED_EXITED] = ENDS,    [OBSERVED_FAILED] = ENDS,
                         [OBSERVED_STUCK] = IS_STUCK },
    [AL_QUARANTINED] = { [OBSERVED_EXITED] = ENDS,    [OBSERVED_FAILED] = ENDS },
    [AL_LOST]        = { [OBSERVED_RUNNING] = COMES_BACK, [OBSERVED_EXITED] = ENDS,
                         [OBSERVED_FAILED] = ENDS,    [OBSERVED_STUCK] = IS_STUCK },
};
/* clang-format on */

static void member_end_of(struct decision *d, struct allocation *a, const struct observed *seen,
                          bool never_ran)
{
    const struct member_end end = { .exit = seen->exit,
                                    .cause = seen->cause,
                                    .never_ran = never_ran,
                                    .detail = str_copy(d->arena, seen->detail) };
    member_ended(d, a, &end);
}

static void member_stuck(struct decision *d, struct allocation *a)
{
    struct allocation_image *member = allocation_image(d, a);
    if (member->stop_cause == CAUSE_NONE)
        member->stop_cause = CAUSE_DEVICE_FAILURE;
    if (member->state == AL_STARTING)
        allocation_step(d, a, AL_STOPPING);
    member_lost(d, a, AL_QUARANTINED);
}

/* A workload that waits for its node goes on; of any other the node is told to end it. */
static void member_back(struct decision *d, struct allocation *a)
{
    const struct workload *workload = a->workload;
    if (workload->r.on_contact_loss != LOSS_KEEP || workload_state_is_final(workload->r.state))
        return;
    const struct workload_changed *now = &workload_image(d, a->workload)->next;
    if (a->r.attempt != now->attempt || (now->state != WL_STARTING && now->state != WL_RUNNING))
        return;
    allocation_image(d, a)->stop_cause = CAUSE_NONE;
    allocation_step(d, a, AL_RUNNING);
}

static void react(struct decision *d, struct allocation *a, const struct observed *seen)
{
    /* An earlier entry of the report may have stopped this one: a gang ends as a whole. */
    switch (reactions[allocation_image(d, a)->state][seen->state]) {
    case IGNORE:
        break;
    case RUNS:
        allocation_step(d, a, AL_RUNNING);
        (void)workload_image(d, a->workload);
        break;
    case ENDS:
        member_end_of(d, a, seen, false);
        break;
    case FAILS:
        member_end_of(d, a, seen, true);
        break;
    case IS_STUCK:
        member_stuck(d, a);
        break;
    case COMES_BACK:
        member_back(d, a);
        break;
    }
}

/*
 * Not in the report although the node had the present desired set when it looked: what ran there
 * is gone. A start may simply not have begun; its own timeout watches over it.
 */
static void missing(struct decision *d, struct allocation *a)
{
    enum allocation_state state = allocation_image(d, a)->state;
    if (a->r.state == AL_STARTING && state == AL_STARTING)
        return;
    if (state == AL_STOPPING) {
        const struct member_end end = { .cause = a->r.stop_cause };
        member_ended(d, a, &end);
        return;
    }
    member_lost(d, a, AL_ENDED);
}

/* Its use has begun and not ended, as of the events so far. */
static bool is_in_use(struct decision *d, struct allocation *a)
{
    enum allocation_state state = allocation_image(d, a)->state;
    return state == AL_RUNNING || state == AL_STOPPING;
}

/* It saved its work; of those that do so all the time not every instant is a fact to keep. */
static bool has_saved(const struct decision *d, const struct allocation *a,
                      const struct observed *seen)
{
    struct mono again = mono_add_s(a->r.checkpointed, CHECKPOINT_NOTED_S);
    return seen->checkpoints > a->r.checkpoints &&
           (a->r.checkpoints == 0 || !mono_before(d->now, again));
}

/* What the workload says of itself, which its node hands on. A node that lies can neither move a
 * checkpoint out of the attempt nor give anybody more time than the rules do. */
static void note(struct decision *d, struct allocation *a, const struct observed *seen)
{
    int64_t most_s = MAX_OF(GRACE_EXTENDED_MAX_S - a->r.grace_s, INT64_C(0));
    int64_t extended_s = MIN_OF(seen->extended_s, most_s);
    bool is_saved = has_saved(d, a, seen);
    bool is_stopping = a->r.state == AL_STOPPING;
    bool is_extended = is_stopping && extended_s > a->r.extended_s;
    if ((!is_saved && !is_extended) || !is_in_use(d, a))
        return;
    struct id tenant = a->workload->project->tenant->r.id;
    struct allocation_noted *noted = &decide_add(d, EV_ALLOCATION_NOTED, tenant)->allocation_noted;
    *noted =
        (struct allocation_noted){ a->r.id, a->r.checkpointed, a->r.checkpoints, a->r.extended_s };
    if (is_saved) {
        int64_t most_ms = (d->now.ns - a->r.granted.ns) / NS_PER_MS;
        int64_t age_ms = MIN_OF(MAX_OF(seen->checkpoint_age_ms, INT64_C(0)), most_ms);
        noted->checkpointed.ns = d->now.ns - age_ms * NS_PER_MS;
        noted->checkpoints = seen->checkpoints;
    }
    if (is_extended)
        noted->extended_s = extended_s;
}

static enum err observed_check(const struct observed_list *list, struct error *e)
{
    for (size_t i = 0; i < list->count; i++) {
        if ((unsigned)list->items[i].state >= OBSERVED_STATE_COUNT)
            return err_field(e, "observed.state", "observed.state: there is no state %u",
                             (unsigned)list->items[i].state);
    }
    return ERR_OK;
}

enum err decide_node_observed(struct decision *d, struct error *e)
{
    const struct node_observed *report = &d->command->observed;
    struct node *node = NULL;
    enum err rc = find_own_node(d, report->node, &node, e);
    if (rc == ERR_OK)
        rc = observed_check(&report->observed, e);
    if (rc != ERR_OK)
        return rc;
    struct id_map seen = { 0 };
    for (size_t i = 0; i < report->observed.count; i++)
        id_map_put(&seen, report->observed.items[i].allocation, &report->observed.items[i]);

    bool is_present = report->epoch == d->state->epoch && report->generation == node->r.generation;
    for (struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node) {
        const struct observed *of_it = id_map_get(&seen, a->r.id);
        if (of_it != NULL && of_it->attempt == a->r.attempt) {
            react(d, a, of_it);
            note(d, a, of_it);
        } else if (of_it == NULL && is_present) {
            missing(d, a);
        }
    }
    id_map_done(&seen);
    lifecycle_settle(d);
    return ERR_OK;
}
