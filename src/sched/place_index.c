/*
 * place_index.c - the scheduler's nodes in the picture that the placement policies know.
 *
 * A node is there once for each class of its devices; its cores and memory are in each. What is
 * free is noted when it changes and drawn into the picture when a place is next asked for. The
 * picture only estimates (a share by memory is shown in thousandths, of many devices the fullest
 * are shown); whether a member fits is told by accepts(), exactly. So the best of the picture is a
 * place, and where the picture knows none, there is none.
 *
 * All of it follows from the facts: ties go by a rank made from the node's id, and what is asked
 * for is kept in the state.
 */
#include <assert.h>

#include "sched/internal.h"
#include "sched/pack.h"

/* Whose part of the picture it is; without a node: free. */
struct slot {
    struct snode *node;
    int64_t class_number; /* of the devices shown; -1: none */
    bool is_first;        /* of the node: work without devices goes by it */
    bool is_dirty;        /* and in the list of these */
};

/* A change within a step: undone with all that was touched later than `at`. */
struct slot_change {
    struct snode *node;
    size_t at;
};

struct place_index {
    const struct sched *sched; /* whose it is */
    struct pack *pack;
    VEC(struct slot) slots;
    VEC(uint32_t) free;
    VEC(uint32_t) dirty;
    VEC(struct slot_change) changes;
    uint64_t learned_at; /* arrivals of the mix that the policy goes by */
};

/* ---- shapes -------------------------------------------------------------------------------- */

enum tag { TAG_CLASS, TAG_GPU, TAG_MIB, TAG_DEVICES, TAG_SHARE, TAG_PROFILE, TAG_TENANT };
static_assert((int)TAG_TENANT < (int)PACK_TAGS, "there is room for all");

/* Thousandths of a device of that class, as it is shown: what is exact is up to accepts(). */
static int64_t shown_milli(const struct sched *sched, const struct request *request,
                           int64_t class_number)
{
    int64_t devices = MAX_OF(request_devices(request), INT64_C(1));
    int64_t charge = request_charge(sched->state, request, class_number);
    return MIN_OF(MAX_OF(charge / devices, INT64_C(1)), INT64_C(1000));
}

static uint64_t model_bit(int64_t class_number)
{
    return UINT64_C(1) << ((uint64_t)class_number % PACK_MODELS_MAX);
}

static struct pack_shape shape_of(const struct sched *sched, const struct fitting *fitting)
{
    const struct request *request = &fitting->request;
    enum request_kind kind = request_kind(request);
    struct pack_shape shape = { .cpu_milli = request->cpu_milli,
                                .memory_mib = request->memory_mib };
    shape.tags[TAG_CLASS] = fitting->class_number;
    if (kind == REQUEST_CORES)
        return shape;
    shape.count = (uint32_t)request_devices(request);
    shape.milli = (uint32_t)shown_milli(sched, request, fitting->class_number);
    shape.models = model_bit(fitting->class_number);
    shape.tags[TAG_GPU] = request->gpu_milli;
    shape.tags[TAG_MIB] = request->gpu_memory_mib;
    shape.tags[TAG_DEVICES] = request->devices;
    shape.tags[TAG_SHARE] = request->share_milli;
    shape.tags[TAG_PROFILE] = (int64_t)request->mig_profile;
    if (kind != REQUEST_WHOLE) /* compared, never followed or ordered */
        shape.tags[TAG_TENANT] = (int64_t)(intptr_t)fitting->tenant;
    return shape;
}

static struct fitting fitting_of(const struct sched *sched, const struct pack_shape *shape)
{
    struct fitting fitting = {
        .request = { .gpu_milli = shape->tags[TAG_GPU],
                     .gpu_memory_mib = shape->tags[TAG_MIB],
                     .devices = shape->tags[TAG_DEVICES],
                     .share_milli = shape->tags[TAG_SHARE],
                     .mig_profile = (enum mig_name)shape->tags[TAG_PROFILE],
                     .cpu_milli = shape->cpu_milli,
                     .memory_mib = shape->memory_mib },
        .class_number = shape->tags[TAG_CLASS],
        .members = 1,
        .tenant = (const struct project *)(intptr_t)shape->tags[TAG_TENANT],
    };
    fitting.need = request_slice(sched->state, &fitting.request, fitting.class_number);
    return fitting;
}

/* ---- the picture --------------------------------------------------------------------------- */

/* What is left of a device, in thousandths: what shares took is never shown as whole. */
static int64_t left_of(const struct sdevice *device)
{
    if (!device->is_usable || device->whole > 0)
        return 0;
    int64_t usable = MAX_OF(device->usable_mib, INT64_C(1));
    int64_t left = MIN_OF(1000 - device->milli, (usable - device->mib) * 1000 / usable);
    if (device->is_partitioned)
        left = device_open_milli(device);
    left = MIN_OF(left, device->sharers > 0 ? INT64_C(999) : INT64_C(1000));
    return MAX_OF(left, INT64_C(0));
}

/* The devices that are shown, in their order: all with something left, the fullest where these are
 * too many. */
struct shown {
    const struct sdevice *devices[PACK_DEVICES_MAX];
    int64_t lefts[PACK_DEVICES_MAX];
    uint32_t count;
};

static void show_instead(struct shown *shown, const struct sdevice *device, int64_t left)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < shown->count; i++)
        most = shown->lefts[i] >= shown->lefts[most] ? i : most;
    if (shown->lefts[most] <= left)
        return;
    for (uint32_t i = most + 1; i < shown->count; i++) {
        shown->devices[i - 1] = shown->devices[i];
        shown->lefts[i - 1] = shown->lefts[i];
    }
    shown->devices[shown->count - 1] = device;
    shown->lefts[shown->count - 1] = left;
}

static void show(const struct snode *node, int64_t class_number, struct shown *out)
{
    size_t of_class = 0;
    out->count = 0;
    for (size_t i = 0; i < node->device_count; i++)
        of_class += node->devices[i].class_number == class_number;
    bool are_all = of_class <= PACK_DEVICES_MAX;
    for (size_t i = 0; i < node->device_count; i++) {
        const struct sdevice *device = &node->devices[i];
        int64_t left = left_of(device);
        if (device->class_number != class_number || (left == 0 && !are_all))
            continue;
        if (out->count == PACK_DEVICES_MAX) {
            show_instead(out, device, left);
            continue;
        }
        out->devices[out->count] = device;
        out->lefts[out->count++] = left;
    }
}

/* A finished hash of the id: a fixed order that neither names nor sizes have a part in. */
static uint64_t rank_of(struct id id)
{
    static const uint8_t key[16] = "berth node rank";
    return siphash(key, &id, sizeof(id));
}

/* From how much of its devices is in use (or of its cores, where it has none): the more, the
 * earlier its nodes come among equals, so that other racks stay whole. */
static uint8_t level_of(const struct sdomain *rack)
{
    int64_t devices = 0;
    int64_t free = 0;
    int64_t cores = 0;
    int64_t cores_free = 0;
    for (const struct snode *node = rack->first; node != NULL;
         node = domain_next(node, TOPOLOGY_RACK)) {
        devices += (int64_t)node->device_count;
        for (size_t i = 0; i < node->part_count; i++)
            free += (int64_t)node->parts[i].free_devices;
        cores += node->cpu_milli;
        cores_free += MAX_OF(node->cpu_free, INT64_C(0));
    }
    int64_t all = devices > 0 ? devices : MAX_OF(cores, INT64_C(1));
    int64_t used = devices > 0 ? devices - free : cores - cores_free;
    int64_t level = used == 0 ? 0 : 1 + used * (PACK_LEVEL_MAX - 1) / all;
    return (uint8_t)level;
}

static void draw(struct place_index *index, uint32_t at)
{
    struct slot *slot = &index->slots.items[at];
    struct pack_node picture = { 0 };
    struct shown shown = { .count = 0 };
    slot->is_dirty = false;
    if (slot->node == NULL) {
        pack_set(index->pack, at, &picture, (struct pack_standing){ 0 });
        return;
    }
    const struct snode *node = slot->node;
    if (slot->class_number >= 0)
        show(node, slot->class_number, &shown);
    picture.model = (uint32_t)((uint64_t)MAX_OF(slot->class_number, INT64_C(0)) % PACK_MODELS_MAX);
    picture.device_count = shown.count;
    picture.cpu_milli = MAX_OF(node->cpu_free, INT64_C(0));
    picture.memory_mib = MAX_OF(node->memory_free, INT64_C(0));
    picture.cpu_all = node->cpu_milli;
    for (uint32_t i = 0; i < shown.count; i++)
        picture.devices[i] = shown.lefts[i];
    const struct sdomain *rack = domain_at(node, TOPOLOGY_RACK);
    pack_set(index->pack, at, &picture,
             (struct pack_standing){ .rank = rank_of(node->node->r.id),
                                     .level = rack->is_labelled ? rack->level : 0 });
}

static void slot_touch(struct place_index *index, uint32_t at)
{
    if (index->slots.items[at].is_dirty)
        return;
    index->slots.items[at].is_dirty = true;
    vec_push(&index->dirty, at);
}

static void node_touch(struct place_index *index, const struct snode *node)
{
    for (size_t i = 0; i < node->slot_count; i++)
        slot_touch(index, node->slots[i]);
}

/* When its rack has become fuller or emptier by a step, all nodes of it are drawn anew. */
static void rack_refresh(struct place_index *index, const struct snode *node)
{
    struct sdomain *rack = domain_at(node, TOPOLOGY_RACK);
    uint8_t level = rack->is_labelled ? level_of(rack) : 0;
    if (level == rack->level)
        return;
    rack->level = level;
    for (const struct snode *n = rack->first; n != NULL; n = domain_next(n, TOPOLOGY_RACK))
        node_touch(index, n);
}

static void draw_all(struct place_index *index)
{
    for (size_t i = 0; i < index->dirty.count; i++) {
        const struct snode *node = index->slots.items[index->dirty.items[i]].node;
        if (node != NULL)
            rack_refresh(index, node);
    }
    for (size_t i = 0; i < index->dirty.count; i++)
        draw(index, index->dirty.items[i]);
    index->dirty.count = 0;
}

/* ---- what fits ----------------------------------------------------------------------------- */

static bool takes_cores(const struct slot *slot, const struct fitting *fitting)
{
    return slot->is_first && place_members_on(fitting, slot->node, 1) == 1;
}

static bool accepts(const void *context, size_t at, const struct pack_shape *shape,
                    uint32_t *usable)
{
    const struct place_index *index = context;
    const struct slot *slot = &index->slots.items[at];
    const struct fitting fitting = fitting_of(index->sched, shape);
    *usable = 0;
    if (slot->node == NULL)
        return false;
    if (shape->count == 0)
        return takes_cores(slot, &fitting);
    if (slot->class_number != fitting.class_number ||
        place_members_on(&fitting, slot->node, 1) == 0)
        return false;
    struct shown shown;
    show(slot->node, slot->class_number, &shown);
    for (uint32_t i = 0; i < shown.count; i++) {
        const struct device_share share = place_share(&fitting, shown.devices[i]);
        *usable |= place_device_takes(&fitting, shown.devices[i], &share) ? UINT32_C(1) << i : 0;
    }
    return true;
}

/* ---- keeping it ---------------------------------------------------------------------------- */

static uint32_t slot_new(struct place_index *index)
{
    if (index->free.count > 0)
        return index->free.items[--index->free.count];
    vec_push(&index->slots, (struct slot){ 0 });
    return (uint32_t)(index->slots.count - 1);
}

static void slots_drop(struct place_index *index, struct snode *node, size_t from)
{
    for (size_t i = from; i < node->slot_count; i++) {
        index->slots.items[node->slots[i]].node = NULL;
        slot_touch(index, node->slots[i]);
        vec_push(&index->free, node->slots[i]);
    }
    node->slot_count = MIN_OF(node->slot_count, from);
}

void index_add_node(struct sched *sched, struct snode *node)
{
    struct place_index *index = sched->index;
    size_t count = MAX_OF(node->part_count, (size_t)1);
    assert(!sched->is_shadow);
    slots_drop(index, node, count);
    for (size_t i = 0; i < count; i++) {
        if (i == node->slot_count)
            node->slots[node->slot_count++] = slot_new(index);
        struct slot *slot = &index->slots.items[node->slots[i]];
        slot->node = node;
        slot->class_number = i < node->part_count ? node->parts[i].class_number : -1;
        slot->is_first = i == 0;
        slot_touch(index, node->slots[i]);
    }
}

void index_remove_node(struct sched *sched, struct snode *node)
{
    assert(!sched->is_shadow);
    slots_drop(sched->index, node, 0);
}

void index_note(struct sched *sched, struct snode *node)
{
    struct place_index *index = sched->index;
    node_touch(index, node);
    if (!sched->is_shadow)
        return;
    const struct slot_change change = { node, sched->undo.count };
    vec_push(&index->changes, change);
}

void index_roll_back(struct sched *sched, size_t mark)
{
    struct place_index *index = sched->index;
    while (index->changes.count > 0 && index->changes.items[index->changes.count - 1].at > mark)
        node_touch(index, index->changes.items[--index->changes.count].node);
}

/* ---- what is asked for --------------------------------------------------------------------- */

/* In the first class that it may use; false: in none. */
static bool kind_of(const struct sched *sched, const struct mix_kind *seen, struct pack_kind *out)
{
    const struct request *request = &seen->request;
    size_t count = request_class_count(sched->state, request);
    bool is_possible = false;
    *out = (struct pack_kind){ .times = seen->times };
    for (size_t i = 0; i < count; i++) {
        int64_t class_number = request_class(sched->state, request, i);
        if (class_number < 0)
            continue;
        if (!is_possible) {
            const struct fitting fitting = { .request = *request, .class_number = class_number };
            struct pack_shape shape = shape_of(sched, &fitting);
            out->shape = (struct pack_shape){ .cpu_milli = shape.cpu_milli,
                                              .memory_mib = shape.memory_mib,
                                              .count = shape.count,
                                              .milli = shape.milli };
        }
        is_possible = true;
        if (out->shape.count > 0 && request->class_count > 0)
            out->shape.models |= model_bit(class_number);
    }
    return is_possible;
}

static void learn(const struct sched *sched)
{
    const struct request_mix *mix = &sched->state->mix;
    VEC(struct pack_kind) kinds = { 0 };
    for (size_t i = 0; i < mix->dealt.count; i++) {
        struct pack_kind kind;
        if (kind_of(sched, &mix->dealt.items[i], &kind))
            vec_push(&kinds, kind);
    }
    pack_learn(sched->index->pack, kinds.items, kinds.count);
    sched->index->learned_at = mix->dealt_at;
    vec_done(&kinds);
}

void index_learn(struct sched *sched)
{
    if (sched->index->learned_at != sched->state->mix.dealt_at)
        learn(sched);
}

void index_open(struct sched *sched)
{
    struct place_index *index = mem_new(1, sizeof(*index));
    index->sched = sched;
    const struct pack_filter filter = { accepts, index };
    index->pack = pack_open(sched->state->settings.placement, &filter);
    sched->index = index;
    learn(sched);
}

void index_close(struct sched *sched)
{
    struct place_index *index = sched->index;
    pack_free(index->pack);
    vec_done(&index->slots);
    vec_done(&index->free);
    vec_done(&index->dirty);
    vec_done(&index->changes);
    mem_free(index);
    sched->index = NULL;
}

/* ---- places -------------------------------------------------------------------------------- */

struct snode *index_best(const struct sched *sched, const struct fitting *fitting)
{
    struct place_index *index = sched->index;
    const struct pack_shape shape = shape_of(sched, fitting);
    draw_all(index);
    const struct pack_place place = pack_find(index->pack, &shape);
    return place.node == PACK_NONE ? NULL : index->slots.items[place.node].node;
}

/* The part of the node that such a member goes by; it has one. */
static uint32_t slot_for(const struct place_index *index, const struct snode *node,
                         const struct pack_shape *shape)
{
    size_t i = 0;
    while (i + 1 < node->slot_count && shape->count > 0 &&
           index->slots.items[node->slots[i]].class_number != shape->tags[TAG_CLASS])
        i++;
    return node->slots[i];
}

bool index_is_better(const struct sched *sched, const struct fitting *fitting,
                     const struct snode *node, const struct snode *than)
{
    struct place_index *index = sched->index;
    const struct pack_shape shape = shape_of(sched, fitting);
    draw_all(index);
    int32_t a = pack_score_at(index->pack, slot_for(index, node, &shape), &shape);
    int32_t b = pack_score_at(index->pack, slot_for(index, than, &shape), &shape);
    return a != b ? a > b : rank_of(node->node->r.id) < rank_of(than->node->r.id);
}

struct sdevice *index_device(const struct sched *sched, const struct fitting *fitting,
                             struct snode *node)
{
    struct place_index *index = sched->index;
    const struct pack_shape shape = shape_of(sched, fitting);
    struct shown shown;
    draw_all(index);
    int64_t device = pack_device_at(index->pack, slot_for(index, node, &shape), &shape);
    if (device == PACK_NONE)
        return NULL;
    show(node, fitting->class_number, &shown);
    return snode_device(node, shown.devices[device]->index);
}

/* ---- the check ----------------------------------------------------------------------------- */

enum { SHAPES_CHECKED = 32 };

bool index_check(const struct sched *kept, const struct sched *built, struct error *e)
{
    struct pack_shape shape;
    draw_all(kept->index);
    draw_all(built->index);
    for (size_t i = 0; i < SHAPES_CHECKED && pack_shape_asked(kept->index->pack, i, &shape); i++) {
        const struct fitting fitting = fitting_of(kept, &shape);
        const struct snode *a = index_best(kept, &fitting);
        const struct snode *b = index_best(built, &fitting);
        if ((a == NULL) == (b == NULL) && (a == NULL || a->node == b->node))
            continue;
        (void)err_set(
            e, ERR_CORRUPT, "place for %lld milli in class %lld is %.*s, not %.*s",
            (long long)shape.milli, (long long)fitting.class_number,
            a != NULL ? (int)a->node->r.name.size : 4, a != NULL ? a->node->r.name.data : "none",
            b != NULL ? (int)b->node->r.name.size : 4, b != NULL ? b->node->r.name.data : "none");
        return false;
    }
    return true;
}
