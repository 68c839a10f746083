/* check.c - compares the indices with freshly built ones. */
#include <string.h>

#include "sched/internal.h"

struct field {
    const char *name;
    size_t offset;
};

#define FIELD(type, name)                                                                          \
    {                                                                                              \
#name, offsetof(struct type, name)                                                         \
    }

static const struct field use_fields[] = {
    FIELD(suse, charged),     FIELD(suse, leaving),     FIELD(suse, claimed),
    FIELD(suse, fixed),       FIELD(suse, pending),     FIELD(suse, own_charged),
    FIELD(suse, own_leaving), FIELD(suse, own_claimed), FIELD(suse, own_pending),
    FIELD(suse, quota),       FIELD(suse, own_quota),   FIELD(suse, limit),
    FIELD(suse, never_lent),  FIELD(suse, weight),      FIELD(suse, unmet_below),
    FIELD(suse, reserved),
};

static const struct field node_fields[] = {
    FIELD(snode, cpu_class), FIELD(snode, cpu_milli),   FIELD(snode, memory_mib),
    FIELD(snode, cpu_free),  FIELD(snode, memory_free), FIELD(snode, slots_free),
};

static int64_t read_field(const void *object, const struct field *field)
{
    int64_t value = 0;
    memcpy(&value, (const char *)object + field->offset, sizeof(value));
    return value;
}

static bool same_fields(const void *kept, const void *built, const struct field *fields,
                        size_t count, const char *what, struct error *e)
{
    for (size_t i = 0; i < count; i++) {
        int64_t a = read_field(kept, &fields[i]);
        int64_t b = read_field(built, &fields[i]);
        if (a == b)
            continue;
        (void)err_set(e, ERR_CORRUPT, "%s: %s is %lld, but the facts say %lld", what,
                      fields[i].name, (long long)a, (long long)b);
        return false;
    }
    return true;
}

static bool differs(struct error *e, const char *what, size_t kept, size_t built)
{
    if (kept == built)
        return false;
    (void)err_set(e, ERR_CORRUPT, "%s: %zu, but the facts say %zu", what, kept, built);
    return true;
}

static bool same_uses(const struct sproject *kept, const struct sproject *built, const char *what,
                      size_t class_count, struct error *e)
{
    for (size_t c = 0; c < class_count; c++) {
        if (!same_fields(&kept->uses[c], &built->uses[c], use_fields, COUNT_OF(use_fields), what,
                         e))
            return false;
    }
    return true;
}

static bool same_projects(const struct sched *kept, const struct sched *built, struct error *e)
{
    const struct sproject *b = built->first_project;
    if (!same_uses(&kept->root, &built->root, "cluster", kept->class_count, e))
        return false;
    for (; b != NULL; b = b->next) {
        const struct sproject *k = sproject_of(kept, b->project);
        if (k == NULL) {
            (void)err_set(e, ERR_CORRUPT, "a project is missing");
            return false;
        }
        if (!same_uses(k, b, "project", kept->class_count, e) ||
            differs(e, "groups of a project", k->groups.count, b->groups.count))
            return false;
        for (size_t c = 0; c < kept->class_count; c++)
            if (differs(e, "groups of a class", k->waits[c].groups, b->waits[c].groups))
                return false;
    }
    return true;
}

static bool same_device(const struct sdevice *a, const struct sdevice *b)
{
    return a->index == b->index && a->class_number == b->class_number &&
           a->usable_mib == b->usable_mib && a->milli == b->milli && a->mib == b->mib &&
           a->whole == b->whole && a->sharers == b->sharers && a->tenant == b->tenant &&
           a->is_mixed == b->is_mixed && a->is_isolated == b->is_isolated &&
           a->is_partitioned == b->is_partitioned && a->is_usable == b->is_usable &&
           memcmp(a->slices, b->slices, sizeof(a->slices)) == 0;
}

static bool same_node(const struct snode *kept, const struct snode *built, struct error *e)
{
    if (!same_fields(kept, built, node_fields, COUNT_OF(node_fields), "node", e) ||
        differs(e, "devices of a node", kept->device_count, built->device_count) ||
        differs(e, "live allocations of a node", kept->live, built->live) ||
        differs(e, "classes of a node", kept->part_count, built->part_count) ||
        differs(e, "node is usable", kept->is_usable, built->is_usable))
        return false;
    for (size_t i = 0; i < kept->device_count; i++) {
        if (same_device(&kept->devices[i], &built->devices[i]))
            continue;
        (void)err_set(e, ERR_CORRUPT, "a device has %lld milli booked, but the facts say %lld",
                      (long long)kept->devices[i].milli, (long long)built->devices[i].milli);
        return false;
    }
    for (size_t i = 0; i < kept->part_count; i++) {
        if (differs(e, "free devices of a node", kept->parts[i].free_devices,
                    built->parts[i].free_devices) ||
            differs(e, "largest share of a node", (size_t)kept->parts[i].open_milli,
                    (size_t)built->parts[i].open_milli))
            return false;
    }
    return true;
}

static bool same_capacity(const struct sched *kept, const struct sched *built, struct error *e)
{
    const struct snode *k = kept->first_node;
    for (const struct snode *b = built->first_node; b != NULL; b = b->next, k = k->next) {
        if (k == NULL || k->node != b->node) {
            (void)err_set(e, ERR_CORRUPT, "a node is missing or out of order");
            return false;
        }
        if (!same_node(k, b, e))
            return false;
    }
    for (size_t c = 0; c < kept->class_count; c++) {
        const struct sclass *a = &kept->classes[c];
        const struct sclass *b = &built->classes[c];
        if (differs(e, "capacity of a class", (size_t)a->capacity_milli,
                    (size_t)b->capacity_milli) ||
            differs(e, "free part of a class", (size_t)a->free_milli, (size_t)b->free_milli) ||
            differs(e, "evictable work of a class", a->active_count, b->active_count))
            return false;
        if (memcmp(a->nodes_by_free, b->nodes_by_free, sizeof(a->nodes_by_free)) == 0)
            continue;
        (void)err_set(e, ERR_CORRUPT, "nodes by free devices of a class differ");
        return false;
    }
    return true;
}

static bool same_works(const struct sched *kept, const struct sched *built, struct error *e)
{
    for (const struct workload *w = kept->state->first_workload; w != NULL; w = w->next) {
        const struct swork *a = swork_of(kept, w->r.id);
        const struct swork *b = swork_of(built, w->r.id);
        if (a == NULL || b == NULL) {
            (void)err_set(e, ERR_CORRUPT, "a workload is missing");
            return false;
        }
        if (differs(e, "where a workload waits", a->where, b->where) ||
            differs(e, "charged allocations of a workload", a->charged, b->charged) ||
            differs(e, "victims of a workload", a->victims, b->victims) ||
            differs(e, "workload can be evicted", a->is_active, b->is_active) ||
            differs(e, "workload is leaving", a->is_leaving, b->is_leaving) ||
            differs(e, "workload has a deadline", a->has_due, b->has_due) ||
            differs(e, "workload declared an end", a->has_end, b->has_end) ||
            (a->has_end && differs(e, "declared end", (size_t)a->end.ns, (size_t)b->end.ns)))
            return false;
        /* What a finished eviction left for its claimant is remembered, not derived. */
        if (b->is_claimant && !a->is_claimant) {
            (void)err_set(e, ERR_CORRUPT, "a claim is missing");
            return false;
        }
    }
    return !differs(e, "workloads", kept->works.count, built->works.count) &&
           !differs(e, "allocations", kept->allocations.count, built->allocations.count) &&
           !differs(e, "awaited workloads", kept->awaited.count, built->awaited.count) &&
           !differs(e, "allocations being stopped", kept->stopping.count, built->stopping.count) &&
           !differs(e, "deadlines", kept->due.count, built->due.count) &&
           !differs(e, "declared ends", kept->ends.count, built->ends.count) &&
           !differs(e, "gangs that are not whole", kept->gangs.count, built->gangs.count) &&
           !differs(e, "ended workloads", kept->forgettable.count, built->forgettable.count);
}

bool sched_check(const struct sched *sched, struct error *e)
{
    struct sched *built = sched_new(sched->state);
    /* Back-offs that ended by the last step count as ended in both. */
    queue_promote(built, sched->now);
    bool is_same = !differs(e, "classes", sched->class_count, built->class_count) &&
                   same_projects(sched, built, e) && same_capacity(sched, built, e) &&
                   same_works(sched, built, e) && index_check(sched, built, e) &&
                   promise_check(sched, built, e);
    sched_free(built);
    return is_same;
}
