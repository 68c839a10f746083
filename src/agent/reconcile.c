#include "agent/reconcile.h"

#include <assert.h>
#include <stdlib.h>

#include "model/cause.h"

/* A grant under its key, for finding it. */
struct keyed {
    const struct grant *grant;
    uint32_t index;
};

struct device_use {
    uint32_t milli;       /* of everything that has processes */
    bool is_held_by_past; /* by something that is not in the newest set */
};

struct reconciler {
    const struct rec_input *in; /* borrowed, as all below */
    struct rec_plan *plan;
    struct keyed *desired; /* sorted */
    struct keyed *observed;
    struct device_use *devices;
    uint32_t starting;
    bool has_old_work; /* of before a loss of contact, and still being stopped */
};

static int compare_keys(const void *left, const void *right)
{
    const struct keyed *a = left;
    const struct keyed *b = right;
    int order = id_cmp(a->grant->allocation, b->grant->allocation);
    if (order != 0)
        return order;
    return (a->grant->attempt > b->grant->attempt) - (a->grant->attempt < b->grant->attempt);
}

static const struct keyed *find(const struct keyed *sorted, size_t count, const struct grant *key)
{
    struct keyed wanted = { key, 0 };
    return count == 0 ? NULL : bsearch(&wanted, sorted, count, sizeof(*sorted), compare_keys);
}

static bool is_live(const struct rec_observed *observed)
{
    return observed->state != REC_EXITED;
}

static void act(struct reconciler *r, struct rec_action action)
{
    r->plan->actions[r->plan->count++] = action;
}

static const struct grant *wanted_grant(const struct reconciler *r, uint32_t observed)
{
    const struct keyed *found =
        find(r->desired, r->in->desired_count, r->in->observed[observed].grant);
    return found != NULL ? found->grant : NULL;
}

static void use_devices(struct reconciler *r, const struct grant *grant, bool is_past)
{
    for (uint32_t i = 0; i < grant->device_count; i++) {
        struct device_use *use = &r->devices[grant->devices[i].index % RECONCILE_DEVICES];
        use->milli += grant->devices[i].milli;
        use->is_held_by_past = use->is_held_by_past || is_past;
    }
}

/* The controller has given it up; what it does now, nobody knows. */
static bool is_old_work(const struct rec_observed *observed, const struct grant *wanted)
{
    bool is_given_up =
        wanted == NULL || (wanted->is_stop && wanted->stop_cause == CAUSE_NODE_FAILURE);
    return is_given_up && !observed->is_stop_overdue;
}

static void look_at_live(struct reconciler *r, uint32_t index)
{
    const struct rec_observed *observed = &r->in->observed[index];
    const struct grant *wanted = wanted_grant(r, index);
    bool is_stopping = observed->state == REC_STOPPING;
    use_devices(r, observed->grant, wanted == NULL);
    r->has_old_work = r->has_old_work || is_old_work(observed, wanted);
    if (observed->state == REC_PREPARING)
        r->starting++;
    if (wanted == NULL && !is_stopping)
        act(r, (struct rec_action){ REC_STOP_NOT_GRANTED, index, observed->grant->grace_s,
                                    "not in the newest set" });
    if (wanted != NULL && wanted->is_stop &&
        (!is_stopping || wanted->grace_s < observed->stop_grace_s))
        act(r, (struct rec_action){ REC_STOP, index, wanted->grace_s, "its grant asks for it" });
}

static bool is_forgettable(const struct rec_observed *observed, struct mono now)
{
    return observed->is_log_stored ||
           mono_before(mono_add_s(observed->ended_at, RECONCILE_LOG_KEEP_S), now);
}

static void look_at_ended(struct reconciler *r, uint32_t index)
{
    const struct rec_observed *observed = &r->in->observed[index];
    if (observed->is_busy || wanted_grant(r, index) != NULL)
        return;
    if (is_forgettable(observed, r->in->now))
        act(r, (struct rec_action){ REC_REMOVE, index, 0, "ended, reported and stored" });
}

/* Two processes of one member, or of two tenants under the same ids, must never be there
 * at once. */
static const char *rival(const struct reconciler *r, const struct grant *grant)
{
    for (size_t i = 0; i < r->in->observed_count; i++) {
        const struct rec_observed *other = &r->in->observed[i];
        if (!is_live(other))
            continue;
        if (id_eq(other->grant->workload, grant->workload) &&
            other->grant->member_rank == grant->member_rank)
            return "an earlier attempt of it has not ended";
        if (!id_eq(other->grant->tenant, grant->tenant) &&
            other->grant->uid_base < grant->uid_base + grant->uid_count &&
            grant->uid_base < other->grant->uid_base + other->grant->uid_count)
            return "another tenant's work still uses its ids";
    }
    for (size_t i = 0; i < r->plan->count; i++) {
        const struct rec_action *action = &r->plan->actions[i];
        const struct grant *other = &r->in->desired[action->index];
        if (action->kind == REC_START && id_eq(other->workload, grant->workload) &&
            other->member_rank == grant->member_rank)
            return "another attempt of it comes first";
    }
    return NULL;
}

static const char *busy_device(const struct reconciler *r, const struct grant *grant)
{
    for (uint32_t i = 0; i < grant->device_count; i++) {
        if (grant->devices[i].index >= RECONCILE_DEVICES)
            return "it names a device that this node cannot have";
        const struct device_use *use = &r->devices[grant->devices[i].index];
        if (use->is_held_by_past)
            return "earlier work is being stopped on its device";
        if (use->milli + grant->devices[i].milli > 1000)
            return "its device is still in use";
    }
    return NULL;
}

static const char *missing(const struct reconciler *r, uint32_t index)
{
    const struct grant *grant = &r->in->desired[index];
    const struct rec_ready *ready = &r->in->ready[index];
    bool is_fence = grant->on_contact_loss == GRANT_FENCE;
    if (mono_before(r->in->now, ready->again_at))
        return ready->why;
    if (!ready->has_payload)
        return "payload is missing";
    if (!ready->has_image)
        return "image is being fetched";
    if (!ready->has_upload)
        return "upload is being fetched";
    if (is_fence && (r->in->lease.ns == 0 ||
                     !mono_before(r->in->now, mono_add_s(r->in->lease, grant->fence_after_s))))
        return "no heartbeat was acknowledged lately, which its fence needs";
    if (r->has_old_work)
        return "earlier work is being stopped on this node";
    const char *device = busy_device(r, grant);
    if (device != NULL)
        return device;
    if (r->starting >= r->in->starting_max)
        return "other starts come first";
    return rival(r, grant);
}

static void look_at_absent(struct reconciler *r, uint32_t index)
{
    const struct grant *grant = &r->in->desired[index];
    const struct rec_ready *ready = &r->in->ready[index];
    if (grant->is_stop) {
        act(r, (struct rec_action){ REC_NEVER_STARTED, index, 0, "stopped before it started" });
        return;
    }
    if (ready->is_hopeless) {
        act(r, (struct rec_action){ REC_REFUSE, index, 0, ready->why });
        return;
    }
    const char *why = missing(r, index);
    if (why != NULL) {
        act(r, (struct rec_action){ REC_WAIT, index, 0, why });
        return;
    }
    use_devices(r, grant, false);
    r->starting++;
    act(r, (struct rec_action){ REC_START, index, 0, "" });
}

static struct keyed *sort_desired(const struct rec_input *in, struct arena *arena)
{
    struct keyed *sorted = arena_new(arena, in->desired_count + 1, sizeof(*sorted));
    for (uint32_t i = 0; i < in->desired_count; i++)
        sorted[i] = (struct keyed){ &in->desired[i], i };
    qsort(sorted, in->desired_count, sizeof(*sorted), compare_keys);
    return sorted;
}

static struct keyed *sort_observed(const struct rec_input *in, struct arena *arena)
{
    struct keyed *sorted = arena_new(arena, in->observed_count + 1, sizeof(*sorted));
    for (uint32_t i = 0; i < in->observed_count; i++)
        sorted[i] = (struct keyed){ in->observed[i].grant, i };
    qsort(sorted, in->observed_count, sizeof(*sorted), compare_keys);
    return sorted;
}

void reconcile(const struct rec_input *input, struct arena *arena, struct rec_plan *plan)
{
    assert(input->desired_count <= GRANT_SET_MAX);
    size_t room = input->desired_count + input->observed_count + 1;
    *plan = (struct rec_plan){ arena_new(arena, room, sizeof(*plan->actions)), 0 };
    if (!input->has_set)
        return;

    struct reconciler r = {
        .in = input,
        .plan = plan,
        .desired = sort_desired(input, arena),
        .observed = sort_observed(input, arena),
        .devices = arena_new(arena, RECONCILE_DEVICES, sizeof(struct device_use)),
    };
    for (uint32_t i = 0; i < input->observed_count; i++)
        if (is_live(&input->observed[i]))
            look_at_live(&r, i);
    for (uint32_t i = 0; i < input->observed_count; i++)
        if (!is_live(&input->observed[i]))
            look_at_ended(&r, i);
    for (uint32_t i = 0; i < input->desired_count; i++)
        if (find(r.observed, input->observed_count, &input->desired[i]) == NULL)
            look_at_absent(&r, i);
}
