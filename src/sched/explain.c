/* explain.c - why a workload waits: the first cause that applies, with the numbers behind it. */
#include "sched/internal.h"

enum { CLOSED_SHOWN_MAX = 3 };

struct explaining {
    const struct sched *sched;
    const struct workload *workload;
    struct arena *arena;
    struct explanation *out;
};

static void say(struct explaining *x, enum cause cause, const char *text)
{
    x->out->cause = cause;
    x->out->text = str_of(text);
}

static const char *class_name(const struct explaining *x, int64_t class_number)
{
    return str_c(x->arena, state_class(x->sched->state, class_number)->r.name);
}

/* "1.5", "4": thousandths as people write them. */
static const char *units(const struct explaining *x, int64_t milli)
{
    return milli_text(milli, arena_new(x->arena, MILLI_TEXT_MAX, 1));
}

static const char *profile_name(const struct mig_profile *profile)
{
    return enum_name(&mig_names, profile->name);
}

/* What one member asks for: "4 h100-80g", "0.500 h100-80g", "2000 MiB of h100-80g". */
static const char *wish(const struct explaining *x, int64_t class_number)
{
    const struct request *r = &x->workload->r.request;
    const char *class = class_name(x, class_number);
    const struct slicing_need need = request_slice(x->sched->state, r, class_number);
    if (need.profile != NULL && request_devices(r) > 1)
        return arena_format(x->arena, "%s of each of %lld %s", profile_name(need.profile),
                            (long long)request_devices(r), class);
    if (need.profile != NULL)
        return arena_format(x->arena, "%s of one %s", profile_name(need.profile), class);
    if (request_kind(r) == REQUEST_MEMORY)
        return arena_format(x->arena, "%lld MiB of one %s", (long long)r->gpu_memory_mib, class);
    if (request_kind(r) == REQUEST_SHARE && r->devices > 1)
        return arena_format(x->arena, "%s of each of %lld %s", units(x, r->share_milli),
                            (long long)r->devices, class);
    int64_t charge = request_charge(x->sched->state, r, class_number);
    return arena_format(x->arena, "%s %s", units(x, charge), class);
}

static void say_refusal(struct explaining *x, const struct ask *ask, const struct refusal *refusal)
{
    const char *path = "";
    if (refusal->level->project != NULL)
        path = str_c(x->arena, refusal->level->project->r.path);
    const char *needs = units(x, ask->charge);
    const char *used = units(x, refusal->used);
    const char *bound = units(x, refusal->bound);
    const char *class = class_name(x, ask->class_number);
    const char *text = "";
    switch (refusal->why) {
    case ADMIT_LIMIT:
        if (refusal->bound == 0) {
            text = arena_format(x->arena, "%s may not use %s any more", path, class);
            break;
        }
        text = arena_format(x->arena, "needs %s %s; %s uses %s of its limit of %s", needs, class,
                            path, used, bound);
        break;
    case ADMIT_FIXED_QUOTA:
        text = arena_format(x->arena,
                            "needs %s %s for work that is never preempted; %s uses %s of its quota"
                            " of %s for such work",
                            needs, class, path, used, bound);
        break;
    case ADMIT_NOT_LENT:
        text = arena_format(x->arena,
                            "needs %s %s beyond the quota of %s; %s may be borrowed, %s is kept for"
                            " others",
                            needs, class, path, used, bound);
        break;
    case ADMIT_OK:
        break;
    }
    say(x, CAUSE_WAITING_FOR_QUOTA, text);
}

/* The most wholly free devices on one node that may be used. */
static size_t largest_block(const struct sched *sched, int64_t class_number)
{
    const struct sclass *class = &sched->classes[class_number];
    size_t free = NODE_DEVICES_MAX;
    while (free > 0 && class->nodes_by_free[free] == 0)
        free--;
    return free;
}

static bool node_has_class(const struct snode *node, int64_t class_number)
{
    bool has_it = node->cpu_class == class_number;
    for (size_t i = 0; i < node->part_count && !has_it; i++)
        has_it = node->parts[i].class_number == class_number;
    return has_it;
}

/* Why a node takes no new work, as a person would say it. */
static const char *closed_because(const struct node *node)
{
    static const char *const words[HOLD_KIND_COUNT] = {
        [HOLD_PERSON] = "cordoned", [HOLD_CHECK] = "held by a check", [HOLD_DRAIN] = "being drained"
    };
    if (node->r.contact != CONTACT_OK)
        return "out of contact";
    /* The last: who drains a node has often cordoned it before. */
    return node->r.holds.count > 0 ? words[node->r.holds.items[node->r.holds.count - 1].kind]
                                   : "not ready";
}

/* "; n1 is being drained, n2 cordoned, and 3 more take no new work", or "". */
static const char *closed_nodes(const struct explaining *x, const struct fitting *fitting)
{
    size_t count = 0;
    const char *text = "";
    for (const struct snode *n = x->sched->first_node; n != NULL; n = n->next) {
        bool is_meant = id_is_none(fitting->node) ? node_has_class(n, fitting->class_number)
                                                  : id_eq(n->node->r.id, fitting->node);
        if (n->is_usable || !is_meant)
            continue;
        if (count++ < CLOSED_SHOWN_MAX)
            text = arena_format(x->arena, "%s%s %.*s is %s", text, count > 1 ? "," : "",
                                STR_ARG(n->node->r.name), closed_because(n->node));
    }
    if (count == 0)
        return "";
    if (count > CLOSED_SHOWN_MAX)
        text = arena_format(x->arena, "%s, and %zu more", text, count - CLOSED_SHOWN_MAX);
    return arena_format(x->arena, ";%s: no new work there", text);
}

/* "; device 2 of n1 is held", or "": parts of usable nodes that take no work. */
static const char *closed_devices(const struct explaining *x, const struct fitting *fitting)
{
    size_t count = 0;
    const char *text = "";
    for (const struct snode *n = x->sched->first_node; n != NULL; n = n->next) {
        const struct device_list *devices = &n->node->r.devices;
        bool is_meant =
            n->is_usable && (id_is_none(fitting->node) || id_eq(n->node->r.id, fitting->node));
        for (size_t i = 0; is_meant && i < devices->count; i++) {
            const struct device_record *device = &devices->items[i];
            if (device->class_number != fitting->class_number || device_is_usable(device) ||
                count++ >= CLOSED_SHOWN_MAX)
                continue;
            const char *why =
                device->is_held ? "held" : enum_name(&device_health_names, device->health);
            if (!device->is_held && device->health_reason.size > 0)
                why = arena_format(x->arena, "%s (%.*s)", why, STR_ARG(device->health_reason));
            text = arena_format(x->arena, "%s; device %lld of %.*s is %s", text,
                                (long long)device->index, STR_ARG(n->node->r.name), why);
        }
    }
    if (count > CLOSED_SHOWN_MAX)
        text = arena_format(x->arena, "%s, and %zu more", text, count - CLOSED_SHOWN_MAX);
    return text;
}

/* Which nodes and devices take no work. */
static const char *closed(const struct explaining *x, const struct fitting *fitting)
{
    return arena_format(x->arena, "%s%s", closed_nodes(x, fitting), closed_devices(x, fitting));
}

/* Of a gang that would not even fit empty nodes: how much of it would. */
static const char *never_fits(const struct explaining *x, const struct fitting *fitting)
{
    size_t most = place_count_if_empty(x->sched, fitting);
    if (most >= fitting->members)
        return "";
    if (fitting->members <= 1)
        return "; it would not fit even if all usable nodes were empty";
    return arena_format(x->arena, "; at most %zu fit even when all usable nodes are empty", most);
}

/* "at most 2 cores and 105 MiB of memory are free": what lacks beside its devices. */
static const char *lack_beside(const struct explaining *x, const struct request *request,
                               const struct place_room *room)
{
    bool lacks_cores = room->cpu_milli < request->cpu_milli;
    bool lacks_memory = room->memory_mib < request->memory_mib;
    const char *cores = units(x, room->cpu_milli);
    if (lacks_cores && lacks_memory)
        return arena_format(x->arena, "at most %s cores and %lld MiB of memory are free", cores,
                            (long long)room->memory_mib);
    if (lacks_cores)
        return arena_format(x->arena, "at most %s cores are free", cores);
    if (lacks_memory)
        return arena_format(x->arena, "at most %lld MiB of memory is free",
                            (long long)room->memory_mib);
    return "no node has both free";
}

/* "1+1", "0": runs of free slices. */
static const char *free_runs(struct arena *arena, uint8_t used)
{
    const char *text = "";
    for (unsigned at = 0; at < MIG_MEMORY_SLICES; at++) {
        unsigned run = 0;
        while (at < MIG_MEMORY_SLICES && (used >> at & 1) == 0) {
            run++;
            at++;
        }
        if (run > 0)
            text = arena_format(arena, "%s%s%u", text, text[0] != '\0' ? "+" : "", run);
    }
    return text[0] != '\0' ? text : "0";
}

/* "0, 2 or 4" */
static const char *legal_starts(struct arena *arena, uint8_t starts)
{
    const char *text = "";
    for (unsigned at = 0; at < MIG_MEMORY_SLICES; at++) {
        bool is_last = starts >> (at + 1) == 0;
        if ((starts >> at & 1) != 0)
            text = arena_format(arena, "%s%s%u", text,
                                text[0] == '\0' ? ""
                                : is_last       ? " or "
                                                : ", ",
                                at);
    }
    return text;
}

/* The device of the class that has most free slices and is not given away as a whole. */
static const struct sdevice *emptiest(const struct sched *sched, int64_t class_number)
{
    const struct sdevice *best = NULL;
    for (const struct snode *n = sched->first_node; n != NULL; n = n->next) {
        for (size_t i = 0; n->is_usable && i < n->device_count; i++) {
            const struct sdevice *device = &n->devices[i];
            if (device->class_number != class_number || !device->is_usable || device->whole > 0)
                continue;
            if (best == NULL || device->milli < best->milli)
                best = device;
        }
    }
    return best;
}

/* What is free is not together: "2g.20gb needs 2 slices next to each other ...; free: 1+1". */
static const char *lack_of_slices(const struct explaining *x, const struct fitting *fitting)
{
    const struct mig_profile *profile = fitting->need.profile;
    const struct sdevice *device = emptiest(x->sched, fitting->class_number);
    if (device == NULL)
        return "all devices are in use as a whole";
    return arena_format(x->arena,
                        "%s needs %d slice%s next to each other, the first at %s; free on the"
                        " emptiest device: %s",
                        profile_name(profile), profile->memory, profile->memory > 1 ? "s" : "",
                        legal_starts(x->arena, profile->starts),
                        free_runs(x->arena, slices_used(device)));
}

/* What its devices lack: "2 free, largest block 2". */
static const char *lack_of_class(const struct explaining *x, const struct fitting *fitting,
                                 const struct place_room *room)
{
    int64_t class_number = fitting->class_number;
    if (fitting_is_slice(fitting))
        return lack_of_slices(x, fitting);
    const char *free = units(x, MAX_OF(x->sched->classes[class_number].free_milli, INT64_C(0)));
    switch (request_kind(&fitting->request)) {
    case REQUEST_WHOLE:
        return arena_format(x->arena, "%s free, largest block %zu", free,
                            largest_block(x->sched, class_number));
    case REQUEST_CORES:
        return arena_format(x->arena, "%s free, at most %s on one node", free,
                            units(x, room->open_milli));
    case REQUEST_SHARE:
    case REQUEST_MEMORY:
        break;
    }
    return arena_format(x->arena, "%s free, at most %s of one device", free,
                        units(x, room->open_milli));
}

/* There is room for all members, but not close enough together. */
static bool say_topology(struct explaining *x, const struct fitting *fitting, size_t fit)
{
    struct fitting anywhere = *fitting;
    anywhere.required = TOPOLOGY_NONE;
    anywhere.is_single_node = x->workload->r.volumes.count > 0;
    if (fitting->required == TOPOLOGY_NONE || fitting->members == 1)
        return false;
    size_t all = place_count(x->sched, &anywhere);
    if (all < fitting->members)
        return false;
    say(x, CAUSE_WAITING_FOR_TOPOLOGY,
        arena_format(x->arena,
                     "needs %zu members of %s within one %s; at most %zu fit in one now,"
                     " though all fit on several%s%s",
                     fitting->members, wish(x, fitting->class_number),
                     enum_name(&topology_names, fitting->required), fit, never_fits(x, fitting),
                     closed(x, fitting)));
    return true;
}

static void say_capacity(struct explaining *x, const struct fitting *fitting)
{
    const struct request *request = &fitting->request;
    const char *each = wish(x, fitting->class_number);
    size_t fit = place_count(x->sched, fitting);
    if (fitting->is_impossible) {
        say(x, CAUSE_WAITING_FOR_CAPACITY, "its volumes are on different nodes; none has them all");
        return;
    }
    if (say_topology(x, fitting, fit))
        return;
    const char *never = never_fits(x, fitting);
    if (fitting->members > 1 && fit > 0) {
        say(x, CAUSE_WAITING_FOR_GANG,
            arena_format(x->arena, "needs %zu members of %s at once; %zu fit now%s%s",
                         fitting->members, each, fit, never, closed(x, fitting)));
        return;
    }
    struct place_room room;
    place_room(x->sched, fitting, &room);
    const char *members =
        fitting->members > 1 ? arena_format(x->arena, "%zu members of ", fitting->members) : "";
    const char *where = id_is_none(fitting->node) ? "on one node" : "on the node of its volumes";
    if (room.is_there)
        say(x, CAUSE_WAITING_FOR_CAPACITY,
            arena_format(x->arena,
                         "needs %s%s with %s cores and %lld MiB of memory %s; where the first is"
                         " free, %s%s%s",
                         members, each, units(x, request->cpu_milli),
                         (long long)request->memory_mib, where, lack_beside(x, request, &room),
                         never, closed(x, fitting)));
    else
        say(x, CAUSE_WAITING_FOR_CAPACITY,
            arena_format(x->arena, "needs %s%s %s; %s%s%s", members, each, where,
                         lack_of_class(x, fitting, &room), never, closed(x, fitting)));
}

/* Whose promised start keeps it from starting. Of another tenant nothing is told but that. */
static void say_kept(struct explaining *x, const struct swork *work, int64_t class_number)
{
    const struct swork *first = x->sched->classes[class_number].promise.work;
    const char *whose = "work that comes before it";
    char text[ID_TEXT_MAX];
    if (first != NULL && first->workload->project->tenant == work->workload->project->tenant)
        whose = id_text(ID_WORKLOAD, first->workload->r.id, text);
    say(x, CAUSE_WAITING_FOR_CAPACITY,
        arena_format(x->arena,
                     "would fit, but run into the promised start of %s; a time limit that ends "
                     "before that would let it start",
                     whose));
}

enum admission explain_class(const struct sched *sched, const struct swork *work,
                             int64_t class_number, struct arena *arena, struct explanation *out)
{
    struct explaining x = { sched, work->workload, arena, out };
    const struct ask ask = { work->project, class_number, swork_charge(sched, work, class_number),
                             work->workload->r.preemptible == PREEMPTIBLE_NEVER };
    struct refusal why = { 0 };
    enum admission admission = quota_admits(sched, &ask, ADMIT_NOW, &why);
    struct fitting fitting;
    fitting_init(sched, work->workload, class_number, &fitting);
    if (admission != ADMIT_OK)
        say_refusal(&x, &ask, &why);
    else if (window_explains(sched, work, class_number, arena, out))
        return admission;
    else if (work->group->verdict == VERDICT_KEPT && place_fits(sched, &fitting))
        say_kept(&x, work, class_number);
    else
        say_capacity(&x, &fitting);
    return admission;
}

/* Some level of its path has a limit of 0. */
static bool is_forbidden(const struct swork *work, int64_t class_number)
{
    for (const struct sproject *p = work->project; p->parent != NULL; p = p->parent) {
        if (p->uses[class_number].limit == 0)
            return true;
    }
    return false;
}

/* The first class that admits it speaks for all, what it waits for there; if none does, the first
 * of all that are for its project, else the first of all. */
static void explain_queued(struct explaining *x, const struct swork *work)
{
    const struct sched *sched = x->sched;
    const struct request *request = &x->workload->r.request;
    size_t count = request_class_count(sched->state, request);
    const struct explanation before = *x->out;
    struct explanation first = before;
    bool is_any = false;
    bool is_first_forbidden = true;
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, request, i);
        if (class_number < 0)
            continue;
        if (explain_class(sched, work, class_number, x->arena, x->out) == ADMIT_OK)
            return;
        bool is_better = is_first_forbidden && !is_forbidden(work, class_number);
        first = is_any && !is_better ? first : *x->out;
        is_first_forbidden = is_first_forbidden && !is_better;
        is_any = true;
    }
    *x->out = first;
    if (!is_any)
        say(x, CAUSE_NO_MATCHING_CLASS, "there is no class that it may use");
}

static void explain_dependency(struct explaining *x)
{
    const struct dependency_list *list = &x->workload->r.depends_on;
    char text[ID_TEXT_MAX];
    for (size_t i = 0; i < list->count; i++) {
        struct id target = list->items[i].workload;
        const struct workload *w = state_workload(x->sched->state, target);
        bool is_array = w == NULL;
        if (!is_array && workload_state_is_final(w->r.state))
            continue;
        say(x, CAUSE_WAITING_FOR_DEPENDENCY,
            arena_format(x->arena, "waits for the end of %s (%s)",
                         id_text(is_array ? ID_ARRAY : ID_WORKLOAD, target, text),
                         enum_name(&dependency_when_names, list->items[i].when)));
        return;
    }
    say(x, CAUSE_WAITING_FOR_DEPENDENCY, "what it was to run after can no longer end as asked");
}

static void explain_claimant(struct explaining *x, const struct swork *work)
{
    say(x, CAUSE_WAITING_FOR_VICTIMS,
        arena_format(x->arena, "%zu allocations are being stopped to make room for it",
                     work->victims));
}

/* From 1 in its project's queue. */
static int64_t position_of(const struct swork *work)
{
    size_t ahead = 0;
    for (const struct skip_node *g = skip_first(&work->project->groups);
         g != NULL && skip_compare(g->key, user_turn(work)) < 0; g = skip_next(g)) {
        const struct sgroup *group = g->item;
        ahead += skip_rank(&group->queue, user_bound(group, work));
    }
    return (int64_t)ahead + 1;
}

void sched_explain(const struct sched *sched, const struct workload *workload, struct mono now,
                   struct arena *arena, struct explanation *out)
{
    const struct workload_record *r = &workload->r;
    struct explaining x = { sched, workload, arena, out };
    *out = (struct explanation){ .cause = r->cause, .text = r->detail };
    const struct swork *work = swork_of(sched, r->id);
    switch (work->where) {
    case WORK_BACKS_OFF:
        out->not_before = r->not_before;
        say(&x, CAUSE_WAITING_FOR_BACKOFF,
            arena_format(arena, "starts again in %lld s at the earliest (%lld failures)",
                         (long long)((r->not_before.ns - now.ns + NS_PER_S - 1) / NS_PER_S),
                         (long long)r->failures));
        break;
    case WORK_TIED:
        window_explain(sched, work, arena, out);
        break;
    case WORK_DEPENDS:
    case WORK_DOOMED:
        explain_dependency(&x);
        break;
    case WORK_QUEUED:
        out->position = position_of(work);
        out->is_kept = work->group->is_kept;
        if (work->is_claimant && work->victims > 0)
            explain_claimant(&x, work);
        else
            explain_queued(&x, work);
        break;
    case WORK_OUT:
    case WORK_ENDED:
        break;
    }
}
