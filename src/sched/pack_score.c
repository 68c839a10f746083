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

int32_t pack_score(struct pack *pack, const struct pack_node *node, const struct pack_shape *shape)
{
    int64_t device = 0;
    if (!pack_fits(node, shape))
        return PACK_NONE;
    switch (pack->policy) {
    case PACK_BEST_FIT:
        return score_best_fit(pack, node, shape);
    case PACK_PACK:
        return score_pack(node, shape);
    case PACK_SPREAD:
        return score_spread(node, shape);
    case PACK_FGD:
        return frag_score(pack, node, shape, &device);
    case PACK_ADAPTIVE:
        return adaptive_score(pack->adaptive, node, shape, &device);
    case PACK_FIRST_FIT:
    case PACK_POLICY_COUNT:
        break;
    }
    return 0;
}

/* The device for a part of one, where its policy says so; else the one that it fits most
 * tightly. */
static uint32_t pick_part(struct pack *pack, const struct pack_node *node,
                          const struct pack_shape *shape)
{
    int64_t best = PACK_NONE;
    if (pack->policy == PACK_FGD)
        (void)frag_score(pack, node, shape, &best);
    else if (pack->policy == PACK_ADAPTIVE)
        (void)adaptive_score(pack->adaptive, node, shape, &best);
    else
        for (uint32_t i = 0; i < node->device_count; i++) {
            bool is_better = best == PACK_NONE || node->devices[i] < node->devices[best];
            if (node->devices[i] >= shape->milli && is_better)
                best = i;
        }
    return (uint32_t)best;
}

/* Whole ones in their order. */
void pack_pick(struct pack *pack, const struct pack_node *node, const struct pack_shape *shape,
               uint32_t devices[PACK_DEVICES_MAX])
{
    uint32_t taken = 0;
    if (shape->count == 1 && shape->milli < 1000) {
        devices[0] = pick_part(pack, node, shape);
        return;
    }
    for (uint32_t i = 0; i < node->device_count && taken < shape->count; i++) {
        if (node->devices[i] >= shape->milli)
            devices[taken++] = i;
    }
}
