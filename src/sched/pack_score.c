/* pack_score.c - what fits, the simple policies, and which devices of a node are taken. */
#include "sched/pack_internal.h"

static bool pack_fits(const struct pack_node *node, const struct pack_shape *shape)
{
    uint32_t usable = 0;
    if (node->cpu_milli < shape->cpu_milli || node->memory_mib < shape->memory_mib)
        return false;
    if (shape->count == 0)
        return true;
    if (shape->models != 0 && (shape->models >> node->model & 1) == 0)
        return false;
    for (size_t i = 0; i < node->device_count; i++)
        usable += node->devices[i] >= shape->milli;
    return usable >= shape->count;
}

static int64_t devices_free(const struct pack_node *node)
{
    int64_t sum = 0;
    for (size_t i = 0; i < node->device_count; i++)
        sum += node->devices[i];
    return sum;
}

static int64_t devices_wanted(const struct pack_shape *shape)
{
    return (int64_t)shape->count * shape->milli;
}

static int32_t score_best_fit(const struct pack *pack, const struct pack_node *node,
                              const struct pack_shape *shape)
{
    double left = (double)(node->cpu_milli - shape->cpu_milli) / (double)pack->cpu_most * 0.5;
    left += (double)(devices_free(node) - devices_wanted(shape)) / (double)pack->device_milli_most *
            0.5;
    return (int32_t)((1.0 - left) * 100.0);
}

static int32_t score_spread(const struct pack_node *node, const struct pack_shape *shape)
{
    double cores =
        50.0 * (double)(node->cpu_milli - shape->cpu_milli) / (double)MAX_OF(node->cpu_all, 1);
    double all = 1000.0 * MAX_OF(node->device_count, 1u);
    return (int32_t)(cores + 50.0 * (double)(devices_free(node) - devices_wanted(shape)) / all);
}

/* In use before wholly free, and of those in use the ones with least left. */
static int32_t score_pack(const struct pack_node *node, const struct pack_shape *shape)
{
    if (shape->count == 0)
        return 0;
    int32_t free = 0;
    for (size_t i = 0; i < node->device_count; i++)
        free += node->devices[i] == 1000;
    if (free == (int32_t)node->device_count)
        return MAX_OF(100 / 3 - free, free);
    struct pack_state state;
    state_of(node, &state);
    int32_t whole = 0;
    int32_t left = 0;
    uint32_t wanted = shape->count;
    for (size_t i = 0; i < state.device_count && wanted > 0; i++) {
        if (state.devices[i] < shape->milli)
            continue;
        whole += state.devices[i] == 1000;
        left += state.devices[i] * 100 / 1000;
        wanted--;
    }
    return whole > 0 ? MAX_OF(50 - whole, 33) : MAX_OF(100 - left / 10, 50);
}

/* What the picture says, or the filter, which knows better. */
static bool spot_of(struct pack *pack, size_t at, const struct pack_shape *shape,
                    struct pack_spot *out)
{
    const struct pack_node *node = &pack->nodes.items[at];
    *out = (struct pack_spot){ &pack->worths.items[at], node, shape, 0 };
    if (pack->filter.accepts != NULL)
        return pack->filter.accepts(pack->filter.context, at, shape, &out->usable);
    if (!pack_fits(node, shape))
        return false;
    for (uint32_t i = 0; i < node->device_count && shape->count > 0; i++)
        out->usable |= node->devices[i] >= shape->milli ? UINT32_C(1) << i : 0;
    return true;
}

int32_t pack_score(struct pack *pack, size_t at, const struct pack_shape *shape)
{
    struct pack_spot spot;
    int64_t device = 0;
    if (!spot_of(pack, at, shape, &spot))
        return PACK_NONE;
    switch (pack->policy) {
    case PLACE_BEST_FIT:
        return MAX_OF(score_best_fit(pack, spot.node, shape), 0);
    case PLACE_PACK:
        return score_pack(spot.node, shape);
    case PLACE_SPREAD:
        return MAX_OF(score_spread(spot.node, shape), 0);
    case PLACE_FGD:
        return frag_score(pack, &spot, &device);
    case PLACE_ADAPTIVE:
        return adaptive_score(pack->adaptive, &spot, &device);
    case PLACE_FIRST_FIT:
    case PLACEMENT_COUNT:
        break;
    }
    return 0;
}

size_t spot_lefts(const struct pack_spot *spot, uint16_t lefts[PACK_DEVICES_MAX])
{
    size_t count = 0;
    for (uint32_t i = 0; i < spot->node->device_count; i++) {
        uint16_t left = (uint16_t)spot->node->devices[i];
        size_t at = count;
        if ((spot->usable >> i & 1) == 0)
            continue;
        for (; at > 0 && lefts[at - 1] > left; at--)
            lefts[at] = lefts[at - 1];
        lefts[at] = left;
        count++;
    }
    return count;
}

int64_t spot_device(const struct pack_spot *spot, int64_t left)
{
    for (uint32_t i = 0; i < spot->node->device_count; i++) {
        if ((spot->usable >> i & 1) != 0 && spot->node->devices[i] == left)
            return (int64_t)i;
    }
    return PACK_NONE;
}

/* The device for a part of one, where its policy says so; else the one that it fits most
 * tightly. */
static int64_t pick_part(struct pack *pack, const struct pack_spot *spot)
{
    int64_t best = PACK_NONE;
    uint16_t lefts[PACK_DEVICES_MAX];
    if (pack->policy == PLACE_FGD)
        (void)frag_score(pack, spot, &best);
    else if (pack->policy == PLACE_ADAPTIVE)
        (void)adaptive_score(pack->adaptive, spot, &best);
    else if (spot_lefts(spot, lefts) > 0)
        best = spot_device(spot, lefts[0]);
    return best;
}

int64_t pack_device_at(struct pack *pack, size_t at, const struct pack_shape *shape)
{
    struct pack_spot spot;
    return spot_of(pack, at, shape, &spot) ? pick_part(pack, &spot) : PACK_NONE;
}

/* Whole ones in their order. */
void pack_pick(struct pack *pack, size_t at, const struct pack_shape *shape,
               uint32_t devices[PACK_DEVICES_MAX])
{
    uint32_t taken = 0;
    struct pack_spot spot;
    if (!spot_of(pack, at, shape, &spot))
        return;
    if (spot_is_part(&spot)) {
        devices[0] = (uint32_t)pick_part(pack, &spot);
        return;
    }
    for (uint32_t i = 0; i < spot.node->device_count && taken < shape->count; i++) {
        if ((spot.usable >> i & 1) != 0)
            devices[taken++] = i;
    }
}
