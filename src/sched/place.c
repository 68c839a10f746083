/*
 * place.c - where members fit, exactly; which of these places they take is up to the policy
 * (place_index.c).
 *
 * Members of a gang ask for the same, and nodes do not influence each other; so giving them places
 * one after the other finds places for all whenever there are any, without any backtracking. Within
 * a node that holds as well: whole devices are interchangeable; a single share taken of whichever
 * device costs exactly one later member its place; and members that want shares of several devices
 * take those that hold most of them, which never costs a later member.
 */
#include <assert.h>
#include <string.h>

#include "sched/internal.h"

/* The node a volume is on: placed earlier in this step, or by now. */
static struct id volume_node(const struct sched *sched, struct id volume)
{
    for (size_t i = 0; i < sched->pins.count; i++) {
        if (id_eq(sched->pins.items[i].volume, volume))
            return sched->pins.items[i].node;
    }
    const struct volume *v = state_volume(sched->state, volume);
    const struct id none = { 0 };
    return v != NULL && state_node(sched->state, v->r.node) != NULL ? v->r.node : none;
}

void fitting_init(const struct sched *sched, const struct workload *workload, int64_t class_number,
                  struct fitting *out)
{
    const struct workload_record *r = &workload->r;
    *out = (struct fitting){ .request = r->request,
                             .class_number = class_number,
                             .need = request_slice(sched->state, &r->request, class_number),
                             .members = (size_t)members_least(r),
                             .tenant = workload->project->tenant,
                             .is_single_node =
                                 r->volumes.count > 0 || r->request.required == TOPOLOGY_NODE,
                             .required = r->request.required,
                             .preferred = r->request.preferred };
    for (size_t i = 0; i < r->volumes.count; i++) {
        struct id node = volume_node(sched, r->volumes.items[i]);
        if (id_is_none(node))
            continue;
        out->is_impossible |= !id_is_none(out->node) && !id_eq(out->node, node);
        out->node = node;
    }
}

/* ---- partitions ---------------------------------------------------------------------------- */

bool fitting_is_slice(const struct fitting *fitting)
{
    return fitting->need.profile != NULL && fitting->need.profile->memory < MIG_MEMORY_SLICES;
}

uint8_t slices_used(const struct sdevice *device)
{
    unsigned used = 0;
    for (unsigned i = 0; i < MIG_MEMORY_SLICES; i++)
        used |= device->slices[i] > 0 ? 1u << i : 0;
    return (uint8_t)used;
}

void slices_book(struct sdevice *device, const struct device_share *share, int sign)
{
    uint8_t mask = share->slice_size > 0 ? mig_mask(share->slice_start, share->slice_size) : 0xff;
    for (unsigned i = 0; i < MIG_MEMORY_SLICES; i++)
        device->slices[i] = (uint8_t)(device->slices[i] + ((mask >> i & 1) != 0 ? sign : 0));
}

/* ---- devices of one member ----------------------------------------------------------------- */

/* A node's devices while members are tried on them. */
struct trial {
    const struct fitting *fitting;
    struct sdevice devices[NODE_DEVICES_MAX];
    size_t device_count;
};

static void trial_init(struct trial *trial, const struct fitting *fitting, const struct snode *node)
{
    trial->fitting = fitting;
    trial->device_count = MIN_OF(node->device_count, (size_t)NODE_DEVICES_MAX);
    if (trial->device_count > 0)
        memcpy(trial->devices, node->devices, trial->device_count * sizeof(*node->devices));
}

/* A partition of all slices is the whole device. */
static struct device_share place_slice(const struct fitting *fitting, const struct sdevice *device)
{
    const struct mig_profile *profile = fitting->need.profile;
    struct device_share share = { .device = device->index,
                                  .milli = mig_milli(profile),
                                  .memory_mib = profile->memory_mib };
    if (!fitting_is_slice(fitting)) {
        share.memory_mib = device->usable_mib;
        return share;
    }
    share.slice_start = mig_start(fitting->need.table, profile, slices_used(device));
    share.slice_size = profile->memory;
    share.slice_compute = profile->compute;
    return share;
}

struct device_share place_share(const struct fitting *fitting, const struct sdevice *device)
{
    const struct request *request = &fitting->request;
    struct device_share share = { .device = device->index,
                                  .milli = 1000,
                                  .memory_mib = device->usable_mib };
    int64_t usable = MAX_OF(device->usable_mib, INT64_C(1));
    if (fitting->need.profile != NULL)
        return place_slice(fitting, device);
    switch (request_kind(request)) {
    case REQUEST_SHARE:
        share.milli = request->devices > 0 ? request->share_milli : request->gpu_milli;
        share.memory_mib = share.milli * device->usable_mib / 1000;
        break;
    case REQUEST_MEMORY:
        share.milli = MIN_OF(request->gpu_memory_mib * 1000 / usable, INT64_C(1000));
        share.memory_mib = request->gpu_memory_mib;
        break;
    case REQUEST_WHOLE:
    case REQUEST_CORES:
        break;
    }
    return share;
}

bool place_device_takes(const struct fitting *fitting, const struct sdevice *device,
                        const struct device_share *share)
{
    if (!device->is_usable || device->class_number != fitting->class_number || device->whole > 0)
        return false;
    if (share->milli >= 1000)
        return device->sharers == 0 && share->memory_mib <= device->usable_mib;
    if (fitting_is_slice(fitting))
        return share->slice_start >= 0;
    if (device->sharers > 0 && !device->is_isolated &&
        (device->is_mixed || device->tenant != fitting->tenant))
        return false;
    return device->milli + share->milli <= 1000 &&
           device->mib + share->memory_mib <= device->usable_mib;
}

/* How many more such shares it holds. */
static int64_t shares_left(const struct fitting *fitting, const struct sdevice *device)
{
    if (fitting_is_slice(fitting))
        return mig_room(fitting->need.profile, slices_used(device));
    const struct device_share of_it = place_share(fitting, device);
    const struct device_share *share = &of_it;
    int64_t by_milli = (1000 - device->milli) / MAX_OF(share->milli, INT64_C(1));
    int64_t by_mib = (device->usable_mib - device->mib) / MAX_OF(share->memory_mib, INT64_C(1));
    return MIN_OF(by_milli, by_mib);
}

/* How many places of partitions one more costs, where it costs least. */
static int64_t openings_lost(const struct fitting *fitting, const struct sdevice *device)
{
    const struct mig_profile *profile = fitting->need.profile;
    uint8_t used = slices_used(device);
    int64_t start = mig_start(fitting->need.table, profile, used);
    return mig_openings(fitting->need.table, used) -
           mig_openings(fitting->need.table, used | mig_mask(start, profile->memory));
}

/* One share goes to the first device that is shared already, before it breaks a whole one (a
 * partition to the one of them where it costs fewest places of others); of several, each goes to a
 * device that holds most of them. */
static bool is_better(const struct trial *trial, const struct sdevice *a, const struct sdevice *b)
{
    const struct fitting *fitting = trial->fitting;
    if (request_devices(&fitting->request) > 1)
        return shares_left(fitting, a) > shares_left(fitting, b);
    if (!fitting_is_slice(fitting) || (a->sharers > 0) != (b->sharers > 0))
        return a->sharers > 0 && b->sharers == 0;
    return openings_lost(fitting, a) < openings_lost(fitting, b);
}

static struct sdevice *pick_device(struct trial *trial, const bool taken[NODE_DEVICES_MAX])
{
    struct sdevice *best = NULL;
    for (size_t i = 0; i < trial->device_count; i++) {
        struct sdevice *device = &trial->devices[i];
        const struct device_share share = place_share(trial->fitting, device);
        if (taken[i] || !place_device_takes(trial->fitting, device, &share))
            continue;
        if (best == NULL || is_better(trial, device, best))
            best = device;
    }
    return best;
}

static void device_take(struct trial *trial, struct sdevice *device,
                        const struct device_share *share)
{
    device->milli += share->milli;
    device->mib += share->memory_mib;
    if (share->milli >= 1000) {
        device->whole++;
        return;
    }
    device->sharers++;
    slices_book(device, share, 1);
    if (!device->is_isolated)
        device->tenant = trial->fitting->tenant;
}

/* Takes the devices of one more member; `shares` has room for all, or is NULL. */
static bool take_member(struct trial *trial, struct device_share *shares)
{
    bool taken[NODE_DEVICES_MAX] = { false };
    int64_t wanted = request_devices(&trial->fitting->request);
    for (int64_t n = 0; n < wanted; n++) {
        struct sdevice *device = pick_device(trial, taken);
        if (device == NULL)
            return false;
        const struct device_share share = place_share(trial->fitting, device);
        device_take(trial, device, &share);
        taken[device - trial->devices] = true;
        if (shares != NULL)
            shares[n] = share;
    }
    return true;
}

/* ---- members of one node ------------------------------------------------------------------- */

static const struct spart *part_of(const struct snode *node, int64_t class_number)
{
    for (size_t i = 0; i < node->part_count; i++) {
        if (node->parts[i].class_number == class_number)
            return &node->parts[i];
    }
    return NULL;
}

static size_t members_by_cores(const struct snode *node, const struct request *request, size_t max)
{
    int64_t most = MIN_OF((int64_t)max, node->slots_free);
    if (request->cpu_milli > 0)
        most = MIN_OF(most, node->cpu_free / request->cpu_milli);
    if (request->memory_mib > 0)
        most = MIN_OF(most, node->memory_free / request->memory_mib);
    return most > 0 ? (size_t)most : 0;
}

static bool may_use(const struct fitting *fitting, const struct snode *node)
{
    if (!node->is_usable || fitting->is_impossible ||
        (fitting->within != NULL && domain_at(node, fitting->required) != fitting->within))
        return false;
    return id_is_none(fitting->node) || id_eq(fitting->node, node->node->r.id);
}

/* A cheap upper bound, exact for cores and whole devices. */
static size_t members_at_most(const struct fitting *fitting, const struct snode *node, size_t max)
{
    const struct request *request = &fitting->request;
    if (!may_use(fitting, node))
        return 0;
    if (request_kind(request) == REQUEST_CORES)
        return node->cpu_class == fitting->class_number ? members_by_cores(node, request, max) : 0;
    const struct spart *part = part_of(node, fitting->class_number);
    if (part == NULL || part->open_milli == 0)
        return 0;
    size_t most = members_by_cores(node, request, max);
    if (fitting->need.profile != NULL)
        return part->open_milli >= mig_milli(fitting->need.profile) ? most : 0;
    switch (request_kind(request)) {
    case REQUEST_WHOLE:
        return MIN_OF(most, part->free_devices / (size_t)request_devices(request));
    case REQUEST_SHARE:
        if (part->open_milli < (request->devices > 0 ? request->share_milli : request->gpu_milli))
            return 0;
        break;
    case REQUEST_MEMORY:
    case REQUEST_CORES:
        break;
    }
    return most;
}

static bool needs_trial(const struct fitting *fitting)
{
    enum request_kind kind = request_kind(&fitting->request);
    return kind == REQUEST_SHARE || kind == REQUEST_MEMORY;
}

/* Of the first member: all its devices are as they are. */
static bool has_shares(const struct fitting *fitting, const struct snode *node)
{
    int64_t wanted = request_devices(&fitting->request);
    for (size_t i = 0; i < node->device_count && wanted > 0; i++) {
        const struct sdevice *device = &node->devices[i];
        if (device->class_number != fitting->class_number)
            continue;
        const struct device_share share = place_share(fitting, device);
        wanted -= place_device_takes(fitting, device, &share);
    }
    return wanted == 0;
}

size_t place_members_on(const struct fitting *fitting, const struct snode *node, size_t max)
{
    size_t most = members_at_most(fitting, node, max);
    if (most == 0 || !needs_trial(fitting))
        return most;
    if (most == 1)
        return has_shares(fitting, node) ? 1 : 0;
    struct trial trial;
    trial_init(&trial, fitting, node);
    size_t count = 0;
    while (count < most && take_member(&trial, NULL))
        count++;
    return count;
}

/* ---- all members --------------------------------------------------------------------------- */

/* Whole devices alone can be counted without looking at any node. */
bool place_lacks_room(const struct sched *sched, const struct request *request,
                      int64_t class_number, size_t members)
{
    const struct sclass *class = &sched->classes[class_number];
    if (class->free_milli <= 0)
        return true;
    if (request_kind(request) != REQUEST_WHOLE)
        return false;
    size_t each = (size_t)request_devices(request);
    size_t found = 0;
    for (size_t free = each; free <= NODE_DEVICES_MAX && found < members; free++)
        found += class->nodes_by_free[free] * (free / each);
    return found < members;
}

bool place_is_hopeless(const struct sched *sched, const struct fitting *fitting)
{
    return fitting->is_impossible ||
           place_lacks_room(sched, &fitting->request, fitting->class_number, fitting->members);
}

/* How many members fit a node: as it is, or if it were empty. */
typedef size_t room_fn(const struct fitting *fitting, const struct snode *node, size_t max);

/* Where all have to be within one rack or block, the most in one. */
static size_t count_members(const struct sched *sched, const struct fitting *fitting, room_fn *room)
{
    enum topology within = fitting->is_single_node ? TOPOLOGY_NONE : fitting->required;
    size_t count = 0;
    for (struct sdomain *d = domains_of(sched, within); d != NULL; d = d->next)
        d->counted = 0;
    for (const struct snode *node = sched->first_node; node != NULL && count < fitting->members;
         node = node->next) {
        struct sdomain *domain = domain_at(node, within);
        size_t others = domain != NULL ? domain->counted : count;
        if (fitting->is_single_node)
            others = 0;
        size_t all = others + room(fitting, node, fitting->members - others);
        if (domain != NULL)
            domain->counted = all;
        count = MAX_OF(count, all);
    }
    return count;
}

size_t place_count(const struct sched *sched, const struct fitting *fitting)
{
    return count_members(sched, fitting, place_members_on);
}

bool place_fits(const struct sched *sched, const struct fitting *fitting)
{
    if (place_is_hopeless(sched, fitting))
        return false;
    if (fitting->members == 1 && id_is_none(fitting->node) && fitting->within == NULL)
        return index_best(sched, fitting) != NULL;
    return place_count(sched, fitting) >= fitting->members;
}

/* The only node for all of them; NULL: they may be on several. They fit. */
static struct snode *only_node(const struct sched *sched, const struct fitting *fitting)
{
    struct snode *best = NULL;
    if (!id_is_none(fitting->node))
        return id_map_get(&sched->nodes, fitting->node);
    if (!fitting->is_single_node || fitting->members == 1)
        return NULL;
    for (struct snode *node = sched->first_node; node != NULL; node = node->next) {
        if (place_members_on(fitting, node, fitting->members) < fitting->members)
            continue;
        if (best == NULL || index_is_better(sched, fitting, node, best))
            best = node;
    }
    return best;
}

/* A part of one device is of the device that the policy says. */
static void take_part(const struct sched *sched, const struct fitting *fitting, struct snode *node,
                      struct device_share *share)
{
    const struct sdevice *device =
        fitting_is_slice(fitting) ? NULL : index_device(sched, fitting, node);
    if (device != NULL) {
        *share = place_share(fitting, device);
        return;
    }
    struct trial trial;
    trial_init(&trial, fitting, node);
    (void)take_member(&trial, share);
}

static void fill(const struct sched *sched, const struct fitting *fitting, struct snode *node,
                 struct arena *arena, struct plan_member *member)
{
    size_t devices = (size_t)request_devices(&fitting->request);
    *member = (struct plan_member){
        .node = node->node,
        .class_number = fitting->class_number,
        .charge_milli = request_charge(sched->state, &fitting->request, fitting->class_number),
        .cpu_milli = fitting->request.cpu_milli,
        .memory_mib = fitting->request.memory_mib,
        .shares = { arena_new(arena, devices, sizeof(struct device_share)), devices },
    };
    if (devices == 1 && needs_trial(fitting)) {
        take_part(sched, fitting, node, member->shares.items);
        return;
    }
    struct trial trial;
    trial_init(&trial, fitting, node);
    (void)take_member(&trial, member->shares.items); /* it fits */
}

/* ---- members close together ----------------------------------------------------------------- */

/* Where the members still to be placed may go. */
struct scope {
    struct snode *only;
    enum topology required, preferred;
    const struct sdomain *within; /* the one of `required` that was chosen */
};

static bool is_in_scope(const struct scope *scope, const struct snode *node)
{
    return scope->within == NULL || domain_at(node, scope->required) == scope->within;
}

/* Of two that hold so many: the one that has enough, of these the fuller one, else the roomier. */
static bool is_room_better(size_t room, size_t than, size_t wanted)
{
    if ((room >= wanted) != (than >= wanted))
        return room >= wanted;
    return room >= wanted ? room < than : room > than;
}

/* The rack or block that holds all that are wanted and has least room beyond them; where none holds
 * all, the one that holds most. */
static struct sdomain *best_domain(const struct sched *sched, const struct fitting *fitting,
                                   const struct scope *scope, enum topology level, size_t wanted)
{
    struct sdomain *best = NULL;
    for (struct sdomain *d = domains_of(sched, level); d != NULL; d = d->next) {
        d->counted = 0;
        for (const struct snode *n = d->first; n != NULL; n = domain_next(n, level))
            d->counted += is_in_scope(scope, n) ? place_members_on(fitting, n, MEMBERS_MAX) : 0;
        if (best == NULL || is_room_better(d->counted, best->counted, wanted) ||
            (d->counted == best->counted && id_cmp(d->key, best->key) < 0))
            best = d;
    }
    return best;
}

/* The same among nodes. */
static struct snode *best_node(const struct sched *sched, const struct fitting *fitting,
                               const struct scope *scope, size_t wanted)
{
    struct snode *best = NULL;
    size_t most = 0;
    for (struct snode *n = sched->first_node; n != NULL; n = n->next) {
        size_t room = is_in_scope(scope, n) ? place_members_on(fitting, n, MEMBERS_MAX) : 0;
        if (room == 0 || (best != NULL && !is_room_better(room, most, wanted) &&
                          (room != most || !index_is_better(sched, fitting, n, best))))
            continue;
        best = n;
        most = room;
    }
    return best;
}

/* By the policy, in that rack or block; NULL: none has room. */
static struct snode *best_node_in(const struct sched *sched, const struct fitting *fitting,
                                  const struct scope *scope, const struct sdomain *domain,
                                  enum topology level)
{
    struct snode *best = NULL;
    for (struct snode *n = domain->first; n != NULL; n = domain_next(n, level)) {
        if (is_in_scope(scope, n) && place_members_on(fitting, n, 1) == 1 &&
            (best == NULL || index_is_better(sched, fitting, n, best)))
            best = n;
    }
    return best;
}

static struct scope scope_of(const struct sched *sched, const struct fitting *fitting)
{
    struct scope scope = { .only = only_node(sched, fitting) };
    if ((fitting->members == 1 && fitting->within == NULL) || scope.only != NULL)
        return scope;
    scope.required = fitting->required;
    scope.preferred = fitting->preferred;
    if (scope.required != TOPOLOGY_NONE)
        scope.within = best_domain(sched, fitting, &scope, scope.required, fitting->members);
    return scope;
}

/* Places further members; they fit. */
struct placing {
    struct sched *sched;
    const struct fitting *fitting;
    struct arena *arena;
    struct plan_member *members;
    size_t placed;
};

static void place_next(struct placing *placing, struct snode *node)
{
    const struct fitting *fitting = placing->fitting;
    struct plan_member *member = &placing->members[placing->placed++];
    assert(node != NULL);
    fill(placing->sched, fitting, node, placing->arena, member);
    const struct booking booking = { node, &member->shares, member->cpu_milli, member->memory_mib,
                                     fitting->tenant };
    if (placing->placed < fitting->members)
        capacity_book(placing->sched, &booking);
}

/* As many as that rack or block holds. */
static void place_in(struct placing *placing, const struct scope *scope,
                     const struct sdomain *domain, enum topology level)
{
    size_t count = MIN_OF(domain->counted, placing->fitting->members - placing->placed);
    for (; count > 0; count--)
        place_next(placing, best_node_in(placing->sched, placing->fitting, scope, domain, level));
}

/* As many as are to be together, and then again. */
static void place_some(struct placing *placing, const struct scope *scope)
{
    const struct fitting *fitting = placing->fitting;
    size_t left = fitting->members - placing->placed;
    if (scope->only != NULL) {
        place_next(placing, scope->only);
    } else if (scope->preferred == TOPOLOGY_NODE) {
        struct snode *node = best_node(placing->sched, fitting, scope, left);
        assert(node != NULL);
        for (size_t n = MIN_OF(left, place_members_on(fitting, node, left)); n > 0; n--)
            place_next(placing, node);
    } else if (scope->preferred != TOPOLOGY_NONE) {
        place_in(placing, scope,
                 best_domain(placing->sched, fitting, scope, scope->preferred, left),
                 scope->preferred);
    } else if (scope->within != NULL) {
        place_in(placing, scope, scope->within, scope->required);
    } else {
        place_next(placing, index_best(placing->sched, fitting));
    }
}

struct plan_member *place_all(struct sched *sched, const struct fitting *fitting,
                              struct arena *arena)
{
    if (!place_fits(sched, fitting))
        return NULL;
    const struct scope scope = scope_of(sched, fitting);
    struct placing placing = { sched, fitting, arena,
                               arena_new(arena, fitting->members, sizeof(struct plan_member)), 0 };
    size_t mark = shadow_mark(sched);
    assert(sched->is_shadow);
    while (placing.placed < fitting->members)
        place_some(&placing, &scope);
    shadow_rollback(sched, mark);
    return placing.members;
}

/* ---- empty nodes --------------------------------------------------------------------------- */

static void empty_node(const struct snode *node, struct snode *out, struct sdevice *devices)
{
    *out = *node;
    out->devices = devices;
    out->cpu_free = node->cpu_milli;
    out->slots_free = NODE_MEMBERS_MAX;
    out->memory_free = node->memory_mib;
    for (size_t i = 0; i < out->part_count; i++)
        out->parts[i] = (struct spart){ .class_number = node->parts[i].class_number };
    for (size_t i = 0; i < out->device_count; i++) {
        const struct sdevice *device = &node->devices[i];
        devices[i] = (struct sdevice){ .index = device->index,
                                       .class_number = device->class_number,
                                       .usable_mib = device->usable_mib,
                                       .is_isolated = device->is_isolated,
                                       .is_partitioned = device->is_partitioned,
                                       .is_usable = device->is_usable };
        struct spart *part = snode_part(out, device->class_number);
        if (part == NULL || !device->is_usable)
            continue;
        part->free_devices++;
        part->open_milli = 1000;
    }
}

static size_t members_if_empty(const struct fitting *fitting, const struct snode *node, size_t max)
{
    struct sdevice devices[NODE_DEVICES_MAX];
    struct snode empty;
    if (!may_use(fitting, node))
        return 0;
    empty_node(node, &empty, devices);
    return place_members_on(fitting, &empty, max);
}

size_t place_count_if_empty(const struct sched *sched, const struct fitting *fitting)
{
    return count_members(sched, fitting, members_if_empty);
}

bool place_if_empty(const struct sched *sched, const struct fitting *fitting)
{
    return place_count_if_empty(sched, fitting) >= fitting->members;
}

/* ---- what there is ------------------------------------------------------------------------- */

void place_room(const struct sched *sched, const struct fitting *fitting, struct place_room *out)
{
    struct fitting bare = *fitting;
    bare.request.memory_mib = 0;
    if (request_kind(&bare.request) != REQUEST_CORES)
        bare.request.cpu_milli = 0;
    *out = (struct place_room){ 0 };
    for (const struct snode *node = sched->first_node; node != NULL; node = node->next) {
        if (!may_use(fitting, node))
            continue;
        const struct spart *part = part_of(node, fitting->class_number);
        out->open_milli = MAX_OF(out->open_milli, part != NULL ? part->open_milli : 0);
        if (node->cpu_class == fitting->class_number)
            out->open_milli = MAX_OF(out->open_milli, node->cpu_free);
        if (place_members_on(&bare, node, 1) == 0)
            continue;
        out->is_there = true;
        out->cpu_milli = MAX_OF(out->cpu_milli, node->cpu_free);
        out->memory_mib = MAX_OF(out->memory_mib, node->memory_free);
    }
}

/* Whether one member fits the empty node, whatever keeps it from being used now. */
static bool node_could_hold(const struct sched *sched, const struct snode *node,
                            const struct request *request)
{
    struct sdevice devices[NODE_DEVICES_MAX];
    struct snode empty;
    empty_node(node, &empty, devices);
    empty.is_usable = true;
    for (size_t i = 0; i < empty.device_count; i++) {
        struct spart *part = snode_part(&empty, devices[i].class_number);
        if (part == NULL || devices[i].is_usable)
            continue;
        devices[i].is_usable = true;
        part->free_devices++;
        part->open_milli = 1000;
    }
    size_t count = request_class_count(sched->state, request);
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, request, i);
        if (class_number < 0)
            continue;
        const struct fitting fitting = { .request = *request,
                                         .class_number = class_number,
                                         .need = request_slice(sched->state, request, class_number),
                                         .members = 1 };
        if (place_members_on(&fitting, &empty, 1) == 1)
            return true;
    }
    return false;
}

/* Of the nodes that have a class the request may use. */
static void most_add(const struct snode *node, int64_t class_number, struct node_most *out)
{
    size_t devices = 0;
    for (size_t i = 0; i < node->device_count; i++) {
        if (node->devices[i].class_number != class_number)
            continue;
        devices++;
        out->device_mib = MAX_OF(out->device_mib, node->devices[i].usable_mib);
    }
    if (devices == 0 && node->cpu_class != class_number)
        return;
    out->devices = MAX_OF(out->devices, (int64_t)devices);
    out->cpu_milli = MAX_OF(out->cpu_milli, node->cpu_milli);
    out->memory_mib = MAX_OF(out->memory_mib, node->memory_mib);
}

struct node_most sched_most(const struct sched *sched, const struct request *request)
{
    struct node_most most = { 0 };
    size_t count = request_class_count(sched->state, request);
    for (const struct snode *node = sched->first_node; node != NULL; node = node->next) {
        for (size_t i = 0; i < count; i++) {
            int64_t class_number = request_class(sched->state, request, i);
            if (class_number >= 0)
                most_add(node, class_number, &most);
        }
    }
    return most;
}

bool sched_could_ever_fit(const struct sched *sched, const struct request *request)
{
    for (const struct snode *node = sched->first_node; node != NULL; node = node->next) {
        if (node_could_hold(sched, node, request))
            return true;
    }
    return false;
}
