/*
 * queue.c - who waits, and for what.
 *
 * Work that could start is grouped by project and shape. A group is looked at through its first
 * workload, so that a hundred thousand equal ones cost as much as one. Everything else waits for a
 * moment (back-off) or for other work (dependencies) and costs nothing until that comes.
 */
#include <assert.h>
#include <string.h>

#include "sched/internal.h"

struct swork *swork_of(const struct sched *sched, struct id workload)
{
    return id_map_get(&sched->works, workload);
}

int64_t swork_charge(const struct sched *sched, const struct swork *work, int64_t class_number)
{
    const struct workload_record *r = &work->workload->r;
    return members_least(r) * request_charge(sched->state, &r->request, class_number);
}

/* ---- groups -------------------------------------------------------------------------------- */

static struct shape shape_of(const struct workload_record *r, const struct suser *user)
{
    const struct request *q = &r->request;
    struct shape shape;
    memset(&shape, 0, sizeof(shape));
    const int64_t numbers[] = { q->gpu_milli,
                                q->gpu_memory_mib,
                                q->devices,
                                q->share_milli,
                                q->cpu_milli,
                                q->memory_mib,
                                (int64_t)q->class_count,
                                r->members,
                                r->preemptible,
                                q->required,
                                q->preferred,
                                r->time_limit_s,
                                members_least(r),
                                q->mig_profile,
                                user != NULL ? (int64_t)user->serial : 0 };
    static_assert(COUNT_OF(numbers) + REQUEST_CLASSES_MAX == COUNT_OF(shape.numbers),
                  "a shape has all amounts and all classes");
    memcpy(shape.numbers, numbers, sizeof(numbers));
    for (size_t i = 0; i < q->class_count; i++)
        shape.numbers[COUNT_OF(numbers) + i] = q->class_numbers[i];
    for (size_t i = 0; i < r->volumes.count && i < MOUNTS_MAX; i++)
        shape.volumes[i] = r->volumes.items[i];
    return shape;
}

static struct str shape_key(const struct shape *shape)
{
    return (struct str){ (const char *)shape, sizeof(*shape) };
}

static void group_add_waits(struct sched *sched, struct sgroup *group)
{
    size_t count = request_class_count(sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, &group->request, i);
        if (class_number < 0)
            continue;
        struct swait *wait = &group->project->waits[class_number];
        int64_t charge = order_ask(sched, group, class_number).charge;
        wait->least_charge = wait->groups == 0 ? charge : MIN_OF(wait->least_charge, charge);
        wait->groups++;
    }
}

/* The least of those that are left is not looked for: less is asked for soon, or nothing. */
static void group_remove_waits(struct sched *sched, struct sgroup *group)
{
    size_t count = request_class_count(sched->state, &group->request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, &group->request, i);
        if (class_number >= 0)
            group->project->waits[class_number].groups--;
    }
}

static struct sgroup *group_for(struct sched *sched, struct swork *work)
{
    struct sproject *project = work->project;
    const struct workload_record *r = &work->workload->r;
    struct suser *user = user_of(sched, project, work->workload);
    struct shape shape = shape_of(r, user);
    struct sgroup *group = str_map_get(&project->shapes, shape_key(&shape));
    if (group != NULL)
        return group;
    group = pool_new(&sched->pool, sizeof(*group));
    group->shape = shape;
    group->project = project;
    group->user = user;
    group->request = r->request;
    group->members = members_least(r);
    group->is_fixed = r->preemptible == PREEMPTIBLE_NEVER;
    if (user != NULL)
        user->groups++;
    str_map_put(&project->shapes, shape_key(&group->shape), group);
    group_add_waits(sched, group);
    return group;
}

/* Puts the group where its first workload belongs; drops it when it has none. */
static void group_reposition(struct sched *sched, struct sgroup *group, bool is_listed)
{
    struct sproject *project = group->project;
    const struct skip_node *first = skip_first(&group->queue);
    struct skip_key turn = first != NULL ? user_turn(first->item) : group->key;
    if (is_listed && first != NULL && skip_compare(turn, group->key) == 0)
        return;
    if (is_listed)
        skip_remove(&project->groups, &sched->pool, group->key);
    if (first != NULL) {
        group->key = turn;
        skip_insert(&project->groups, &sched->pool, group->key, group);
        return;
    }
    group_remove_waits(sched, group);
    if (group->user != NULL)
        user_leave(sched, project, group->user);
    (void)str_map_remove(&project->shapes, shape_key(&group->shape));
    pool_free(&sched->pool, group, sizeof(*group));
}

static void group_add(struct sched *sched, struct swork *work)
{
    struct sgroup *group = group_for(sched, work);
    bool is_listed = group->queue.count > 0;
    const struct swork *first = is_listed ? skip_first(&group->queue)->item : NULL;
    if (first != NULL && work->workload->r.priority > first->workload->r.priority)
        group->checked = 0; /* it may preempt what the others could not */
    work->group = group;
    skip_insert(&group->queue, &sched->pool, work->key, work);
    group_reposition(sched, group, is_listed);
    group->project->touched = ++sched->clock;
}

static void group_remove(struct sched *sched, struct swork *work)
{
    struct sgroup *group = work->group;
    struct sproject *project = group->project;
    skip_remove(&group->queue, &sched->pool, work->key);
    work->group = NULL;
    group_reposition(sched, group, true);
    project->front = NULL;
    project->touched = ++sched->clock;
}

/* ---- demand -------------------------------------------------------------------------------- */

/* Demand counts in the first class that the work may use. */
static void pending_add(struct sched *sched, struct swork *work)
{
    const struct request *request = &work->workload->r.request;
    size_t count = request_class_count(sched->state, request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, request, i);
        if (class_number < 0)
            continue;
        work->pending_class = class_number;
        work->pending_milli = swork_charge(sched, work, class_number);
        use_add(sched, work->project, class_number, USE_PENDING, work->pending_milli);
        return;
    }
}

static void pending_remove(struct sched *sched, struct swork *work)
{
    if (work->pending_milli != 0)
        use_add(sched, work->project, work->pending_class, USE_PENDING, -work->pending_milli);
    work->pending_milli = 0;
}

/* ---- dependencies -------------------------------------------------------------------------- */

/* Each outweighs those before it. Unneeded: what it was to follow the failure of has not failed, or
 * was not needed itself. */
enum dependency_state { DEPENDENCY_MET, DEPENDENCY_OPEN, DEPENDENCY_UNNEEDED, DEPENDENCY_NEVER };

/* Of a workload, or of all elements of an array that are still known. */
static enum dependency_state dependency_state(const struct sched *sched,
                                              const struct dependency *dependency)
{
    const struct workload *w = state_workload(sched->state, dependency->workload);
    bool is_array = w == NULL;
    if (is_array)
        w = state_array(sched->state, dependency->workload);
    size_t failed = 0;
    size_t unneeded = 0;
    for (; w != NULL; w = is_array ? w->array_next : NULL) {
        bool is_final = workload_state_is_final(w->r.state);
        bool is_unneeded = is_final && w->r.cause == CAUSE_NOT_NEEDED;
        unneeded += is_unneeded;
        if (w->r.state == WL_SUCCEEDED || is_unneeded)
            continue;
        if (is_final && dependency->when == AFTER_OK)
            return DEPENDENCY_NEVER;
        if (!is_final)
            return DEPENDENCY_OPEN;
        failed++;
    }
    bool is_unneeded = dependency->when == AFTER_FAILED
                           ? failed == 0
                           : dependency->when == AFTER_OK && unneeded > 0;
    return is_unneeded ? DEPENDENCY_UNNEEDED : DEPENDENCY_MET;
}

/* A dependency that was met once is met for good: work that started before waits for nothing. */
static enum dependency_state dependencies_state(const struct sched *sched,
                                                const struct workload_record *r)
{
    enum dependency_state all = DEPENDENCY_MET;
    for (size_t i = 0; i < r->depends_on.count && r->attempt == 0; i++) {
        enum dependency_state one = dependency_state(sched, &r->depends_on.items[i]);
        all = MAX_OF(all, one);
    }
    return all;
}

enum cause queue_doom(const struct sched *sched, const struct swork *work)
{
    enum dependency_state state = dependencies_state(sched, &work->workload->r);
    return state == DEPENDENCY_UNNEEDED ? CAUSE_NOT_NEEDED : CAUSE_DEPENDENCY_FAILED;
}

static struct skip_key submission_key(const struct swork *work)
{
    return (struct skip_key){ .minor = work->workload->r.submitted_sequence };
}

/* Whether ended work may be forgotten depends on who waits for it. */
static void target_refresh(struct sched *sched, struct id target)
{
    struct swork *work = swork_of(sched, target);
    if (work != NULL)
        due_work(sched, work);
    for (struct workload *w = state_array(sched->state, target); w != NULL; w = w->array_next) {
        work = swork_of(sched, w->r.id);
        if (work != NULL)
            due_work(sched, work);
    }
}

/* Targets are listed once, however often they are named. */
static void dependent_register(struct sched *sched, struct swork *work)
{
    const struct dependency_list *list = &work->workload->r.depends_on;
    for (size_t i = 0; i < list->count; i++) {
        struct id target = list->items[i].workload;
        struct sawaited *awaited = id_map_get(&sched->awaited, target);
        if (awaited == NULL) {
            awaited = pool_new(&sched->pool, sizeof(*awaited));
            awaited->target = target;
            id_map_put(&sched->awaited, target, awaited);
            target_refresh(sched, target);
        }
        if (skip_find(&awaited->waiters, submission_key(work)) == NULL)
            skip_insert(&awaited->waiters, &sched->pool, submission_key(work), work);
    }
    work->is_dependent = list->count > 0;
}

static void dependent_unregister(struct sched *sched, struct swork *work)
{
    const struct dependency_list *list = &work->workload->r.depends_on;
    for (size_t i = 0; i < list->count && work->is_dependent; i++) {
        struct sawaited *awaited = id_map_get(&sched->awaited, list->items[i].workload);
        if (awaited == NULL || skip_find(&awaited->waiters, submission_key(work)) == NULL)
            continue;
        skip_remove(&awaited->waiters, &sched->pool, submission_key(work));
        if (awaited->waiters.count > 0)
            continue;
        struct id target = awaited->target;
        (void)id_map_remove(&sched->awaited, target);
        pool_free(&sched->pool, awaited, sizeof(*awaited));
        target_refresh(sched, target);
    }
    work->is_dependent = false;
}

static void queue_enter(struct sched *sched, struct swork *work); /* wherever its record says */
static void queue_leave(struct sched *sched, struct swork *work);

static void dependents_wake(struct sched *sched, struct id target)
{
    const struct sawaited *awaited = id_map_get(&sched->awaited, target);
    if (awaited == NULL)
        return;
    for (struct skip_node *n = skip_first(&awaited->waiters); n != NULL; n = skip_next(n)) {
        struct swork *work = n->item;
        if (work->where != WORK_DEPENDS)
            continue;
        queue_leave(sched, work);
        queue_enter(sched, work);
    }
}

bool sched_is_awaited(const struct sched *sched, const struct workload *workload)
{
    if (id_map_get(&sched->awaited, workload->r.id) != NULL)
        return true;
    return !id_is_none(workload->r.array) && id_map_get(&sched->awaited, workload->r.array) != NULL;
}

/* ---- entering and leaving ------------------------------------------------------------------ */

static struct skip_key backoff_key(const struct swork *work)
{
    return (struct skip_key){ .major = work->workload->r.not_before.ns,
                              .minor = work->workload->r.submitted_sequence };
}

static void queue_enter(struct sched *sched, struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    assert(work->where == WORK_OUT);
    if (r->state != WL_QUEUED)
        return;
    work->key = (struct skip_key){ .major = -r->priority, .minor = r->submitted_sequence };
    enum dependency_state dependencies = dependencies_state(sched, r);
    if (dependencies >= DEPENDENCY_UNNEEDED) {
        work->where = WORK_DOOMED;
        skip_insert(&sched->doomed, &sched->pool, work->key, work);
        return;
    }
    if (dependencies == DEPENDENCY_OPEN) {
        work->where = WORK_DEPENDS;
        return;
    }
    if (mono_before(sched->now, r->not_before)) {
        work->where = WORK_BACKS_OFF;
        work->key = backoff_key(work);
        skip_insert(&sched->backing_off, &sched->pool, work->key, work);
        return;
    }
    if (work->tied != NULL) {
        work->where = WORK_TIED;
        window_enqueue(sched, work);
        return;
    }
    work->where = WORK_QUEUED;
    group_add(sched, work);
    pending_add(sched, work);
    if (work->victims > 0)
        queue_claim(sched, work, sched->state->now); /* back before its victims are gone */
}

static void queue_leave(struct sched *sched, struct swork *work)
{
    queue_claim_end(sched, work);
    promise_drop(sched, work);
    switch (work->where) {
    case WORK_QUEUED:
        group_remove(sched, work);
        pending_remove(sched, work);
        break;
    case WORK_TIED:
        window_dequeue(sched, work);
        break;
    case WORK_BACKS_OFF:
        skip_remove(&sched->backing_off, &sched->pool, work->key);
        break;
    case WORK_DOOMED:
        skip_remove(&sched->doomed, &sched->pool, work->key);
        break;
    case WORK_OUT:
    case WORK_DEPENDS:
    case WORK_ENDED:
        break;
    }
    work->where = WORK_OUT;
}

void queue_promote(struct sched *sched, struct mono now)
{
    sched->now = mono_before(sched->now, now) ? now : sched->now;
    for (;;) {
        const struct skip_node *first = skip_first(&sched->backing_off);
        if (first == NULL || first->key.major > sched->now.ns)
            return;
        struct swork *work = first->item;
        queue_leave(sched, work);
        queue_enter(sched, work);
    }
}

/* ---- claims -------------------------------------------------------------------------------- */

void queue_claim(struct sched *sched, struct swork *work, struct mono since)
{
    if (work->is_claimant || work->where != WORK_QUEUED)
        return;
    work->is_claimant = true;
    promise_drop(sched, work); /* it has something better */
    promise_spoil(sched);
    work->claim_key = (struct skip_key){ .major = since.ns,
                                         .minor = ++sched->claim_serial,
                                         .tie = work->workload->r.submitted_sequence };
    skip_insert(&sched->claimants, &sched->pool, work->claim_key, work);
}

static void claim_drop(struct sched *sched, struct swork *work)
{
    size_t count = work->claim != NULL ? (size_t)members_least(&work->workload->r) : 0;
    for (size_t i = 0; i < count; i++) {
        struct share_list *shares = &work->claim[i].shares;
        pool_free(&sched->pool, shares->items, shares->count * sizeof(*shares->items));
    }
    pool_free(&sched->pool, work->claim, count * sizeof(*work->claim));
    work->claim = NULL;
}

void queue_claim_place(struct sched *sched, struct swork *work, const struct plan_member *members)
{
    size_t count = (size_t)members_least(&work->workload->r);
    claim_drop(sched, work);
    work->claim = pool_dup(&sched->pool, members, count * sizeof(*members));
    for (size_t i = 0; i < count; i++) {
        struct share_list *shares = &work->claim[i].shares;
        size_t size = shares->count * sizeof(*shares->items);
        shares->items = size > 0 ? pool_dup(&sched->pool, shares->items, size) : NULL;
    }
}

static bool is_claim_on(const struct swork *work, const struct node *node)
{
    for (int64_t i = 0; i < members_least(&work->workload->r) && work->claim != NULL; i++) {
        if (work->claim[i].node == node)
            return true;
    }
    return false;
}

void queue_claims_leave_node(struct sched *sched, const struct node *node)
{
    const struct skip_list *lists[] = { &sched->claimants, &sched->moving };
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (const struct skip_node *n = skip_first(lists[i]); n != NULL; n = skip_next(n)) {
            if (is_claim_on(n->item, node))
                claim_drop(sched, n->item);
        }
    }
}

bool queue_claim_is_usable(const struct sched *sched, const struct swork *work)
{
    for (int64_t i = 0; i < members_least(&work->workload->r); i++) {
        const struct plan_member *member = &work->claim[i];
        struct snode *node = snode_of(sched, member->node);
        if (!node->is_usable)
            return false;
        for (size_t k = 0; k < member->shares.count; k++) {
            const struct sdevice *device = snode_device(node, member->shares.items[k].device);
            if (device == NULL || !device->is_usable)
                return false;
        }
    }
    return true;
}

void queue_claim_forget(struct sched *sched, struct swork *work)
{
    for (int64_t i = 0; i < members_least(&work->workload->r) && work->claim != NULL; i++)
        capacity_gained(sched, snode_of(sched, work->claim[i].node));
    claim_drop(sched, work);
    work->is_moved = false;
}

/* What it had been promised is free for others again, unless it starts there: its allocations tell
 * (queue_claim_met). */
void queue_claim_end(struct sched *sched, struct swork *work)
{
    if (!work->is_claimant)
        return;
    work->is_claimant = false;
    work->is_moved = false;
    skip_remove(&sched->claimants, &sched->pool, work->claim_key);
    promise_spoil(sched);
    if (work->claim == NULL)
        sched->all_gained = ++sched->clock;
    else if (work->workload->r.state == WL_STARTING)
        return;
    for (int64_t i = 0; i < members_least(&work->workload->r) && work->claim != NULL; i++)
        capacity_gained(sched, snode_of(sched, work->claim[i].node));
    claim_drop(sched, work);
}

static bool is_same_place(const struct plan_member *member, const struct allocation_record *r)
{
    bool is_same = id_eq(member->node->r.id, r->node) && member->shares.count == r->shares.count;
    for (size_t i = 0; is_same && i < r->shares.count; i++)
        is_same = member->shares.items[i].device == r->shares.items[i].device &&
                  member->shares.items[i].milli == r->shares.items[i].milli &&
                  member->shares.items[i].slice_start == r->shares.items[i].slice_start;
    return is_same;
}

void queue_claim_met(struct sched *sched, struct swork *work, const struct allocation_record *r)
{
    int64_t count = members_least(&work->workload->r);
    if (work->claim == NULL || work->is_claimant || r->rank >= count)
        return;
    const struct plan_member *member = &work->claim[r->rank];
    if (!is_same_place(member, r))
        capacity_gained(sched, snode_of(sched, member->node));
    if (r->rank == count - 1)
        claim_drop(sched, work);
}

/* ---- workloads ----------------------------------------------------------------------------- */

void queue_add_work(struct sched *sched, struct workload *workload)
{
    struct swork *work = pool_new(&sched->pool, sizeof(*work));
    work->workload = workload;
    work->project = sproject_of(sched, workload->project);
    id_map_put(&sched->works, workload->r.id, work);
    if (workload_state_is_final(workload->r.state)) {
        work->where = WORK_ENDED;
        due_work(sched, work);
        return;
    }
    window_tie(sched, work);
    if (workload->r.attempt == 0)
        dependent_register(sched, work);
    queue_enter(sched, work);
}

void queue_change_work(struct sched *sched, struct swork *work)
{
    const struct workload_record *r = &work->workload->r;
    queue_leave(sched, work);
    if (r->attempt > 0 || workload_state_is_final(r->state))
        dependent_unregister(sched, work);
    if (!workload_state_is_final(r->state)) {
        queue_enter(sched, work);
        return;
    }
    work->where = WORK_ENDED;
    window_drop(work);
    dependents_wake(sched, r->id);
    if (!id_is_none(r->array))
        dependents_wake(sched, r->array);
}

void queue_forget_work(struct sched *sched, struct id id)
{
    struct swork *work = id_map_remove(&sched->works, id);
    if (work == NULL)
        return; /* forgotten together with its project */
    assert(work->where == WORK_ENDED && work->first == NULL);
    if (work->has_due)
        skip_remove(&sched->forgettable, &sched->pool, work->due);
    pool_free(&sched->pool, work, sizeof(*work));
}
