/* plan.c - the events that carry out a plan. Ids derive from the stored key and the sequence, so
 * that the same history gives the same ids. */
#include "core/lifecycle.h"

struct grants {
    struct decision *d;
    uint64_t next_id;
    struct id_map placed; /* volumes that got their node earlier in this plan */
};

static void place_volumes(struct grants *grants, const struct plan_entry *entry)
{
    const struct workload_record *r = &entry->workload->r;
    struct decision *d = grants->d;
    for (size_t i = 0; i < r->volumes.count; i++) {
        struct volume *volume = state_volume(d->state, r->volumes.items[i]);
        if (volume == NULL || id_map_get(&grants->placed, volume->r.id) != NULL ||
            state_node(d->state, volume->r.node) != NULL)
            continue;
        struct volume_record *next = &decide_add(d, EV_VOLUME_SET, volume->r.tenant)->volume_set;
        *next = volume->r;
        next->node = entry->members[0].node->r.id;
        id_map_put(&grants->placed, volume->r.id, volume);
    }
}

/* The i-th member of the entry, in that attempt. */
static void grant(struct grants *grants, const struct plan_entry *entry, size_t i, int64_t attempt)
{
    const struct workload *workload = entry->workload;
    const struct plan_member *member = &entry->members[i];
    struct decision *d = grants->d;
    struct id tenant = workload->project->tenant->r.id;
    decide_add(d, EV_ALLOCATION_GRANTED, tenant)->allocation_granted = (struct allocation_record){
        .id = id_derive(d->state->id_key, d->state->sequence, grants->next_id++),
        .workload = workload->r.id,
        .project = workload->r.project,
        .node = member->node->r.id,
        .attempt = attempt,
        .rank = entry->ranks.count > 0 ? entry->ranks.items[i].rank : (int64_t)i,
        .class_number = member->class_number,
        .charge_milli = member->charge_milli,
        .cpu_milli = member->cpu_milli,
        .memory_mib = member->memory_mib,
        .shares = member->shares,
        .state = AL_STARTING,
        .grace_s = workload->r.grace_s,
        .granted = d->now,
        .is_borrowed = entry->is_borrowed,
    };
}

static void start(struct grants *grants, const struct plan_entry *entry)
{
    static const struct str no_detail;
    struct workload_image *image = workload_image(grants->d, entry->workload);
    image->next.attempt++;
    image->next.not_before = (struct mono){ 0 };
    image->next.exit = (struct exit_status){ 0 };
    workload_step(grants->d, image, WL_STARTING, CAUSE_GRANTED, no_detail);
    place_volumes(grants, entry);
    for (size_t i = 0; i < entry->member_count; i++)
        grant(grants, entry, i, image->next.attempt);
    gang_starts_with(grants->d, image, entry->member_count);
}

static void grow(struct grants *grants, const struct plan_entry *entry)
{
    struct workload_image *image = workload_image(grants->d, entry->workload);
    for (size_t i = 0; i < entry->member_count; i++)
        grant(grants, entry, i, image->next.attempt);
    gang_grows(grants->d, image, &entry->ranks);
}

static void shrink(struct decision *d, const struct plan_entry *entry)
{
    const struct stop stop = { .cause = entry->cause,
                               .detail = STR("some of its members made room for other work"),
                               .evictor = entry->for_whom->r.id };
    gang_shrinks(d, entry->workload, &entry->ranks, &stop);
}

/* What it was to run after that did not end as asked, in words. */
static const char *broken_dependency(struct decision *d, const struct workload *workload)
{
    const struct dependency_list *list = &workload->r.depends_on;
    char text[ID_TEXT_MAX];
    for (size_t i = 0; i < list->count; i++) {
        const struct workload *w = state_workload(d->state, list->items[i].workload);
        bool is_broken = w != NULL && list->items[i].when == AFTER_OK &&
                         workload_state_is_final(w->r.state) && w->r.state != WL_SUCCEEDED;
        if (!is_broken)
            continue;
        return arena_format(d->arena, "it was to run after the success of %s (%.*s), which is %s",
                            id_text(ID_WORKLOAD, w->r.id, text), STR_ARG(w->r.name),
                            enum_name(&workload_state_names, w->r.state));
    }
    return "what it was to run after can no longer end as asked";
}

/* Work for the case of a failure that did not come has not failed itself. */
static void end(struct decision *d, const struct plan_entry *entry)
{
    bool is_unneeded = entry->cause == CAUSE_NOT_NEEDED;
    const char *detail = is_unneeded ? "it was to run only if other work failed, and none did"
                                     : broken_dependency(d, entry->workload);
    workload_step(d, workload_image(d, entry->workload), is_unneeded ? WL_CANCELLED : WL_FAILED,
                  entry->cause, str_of(detail));
}

void decide_plan(const struct state *state, const struct plan *plan, struct mono now,
                 struct wall wall, struct arena *arena, struct event_list *events)
{
    static const struct id nobody = { 0 };
    AUTO(decision) struct decision d;
    decision_init(&d, state, arena, events);
    d.actor = (struct actor){ .role = ROLE_SYSTEM, .name = STR("scheduler") };
    d.now = now;
    d.wall = wall;
    struct grants grants = { .d = &d };
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_entry *entry = &plan->entries[i];
        switch (entry->action) {
        case PLAN_START:
            start(&grants, entry);
            break;
        case PLAN_EVICT:
            workload_evict(&d, entry->workload, entry->cause,
                           entry->for_whom != NULL ? entry->for_whom->r.id : nobody);
            break;
        case PLAN_GROW:
            grow(&grants, entry);
            break;
        case PLAN_SHRINK:
            shrink(&d, entry);
            break;
        case PLAN_END:
            end(&d, entry);
            break;
        }
    }
    id_map_done(&grants.placed);
}
