/*
 * pack_frag.c - fragmentation: how much of a node's devices a request drawn from the mix could not use.
 * Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
 * Descent", USENIX ATC 2023. The score of a place is how little it adds, on a scale of 0 to 100, truncated.
 */
#include <math.h>
#include <string.h>

#include "sched/pack_internal.h"

static bool may_use(const struct pack_shape *shape, uint32_t model)
{
    return shape->models == 0 || (shape->models >> model & 1) != 0;
}

/* By why devices are lost: their order of summation is part of the result. */
struct loss {
    double too_little_of_both, devices_left_over, no_cores, cores_fit, cores_do_not, other_model;
};

static void loss_add(struct loss *loss, const struct pack_state *state,
                     const struct pack_weight *typical, double total)
{
    const struct pack_shape *shape = &typical->shape;
    double weight = typical->weight;
    bool has_cores = state->cpu_milli >= shape->cpu_milli;
    if (shape->count == 0) {
        *(has_cores ? &loss->cores_fit : &loss->cores_do_not) += weight * total;
        return;
    }
    if (!may_use(shape, state->model)) {
        loss->other_model += weight * total;
        return;
    }
    uint32_t usable = 0;
    int64_t left_over = 0;
    for (size_t i = 0; i < state->device_count; i++) {
        if (state->devices[i] >= shape->milli)
            usable++;
        else
            left_over += state->devices[i];
    }
    if (usable < shape->count)
        *(has_cores ? &loss->devices_left_over : &loss->too_little_of_both) += weight * total;
    else if (has_cores)
        loss->devices_left_over += weight * (double)left_over;
    else
        loss->no_cores += weight * total;
}

static double fragmentation(struct pack *pack, const struct pack_state *state)
{
    bool is_known = false;
    union memo_value *value = memo_find(&pack->mix.memo, state, &is_known);
    if (is_known)
        return value->real;
    int64_t total = 0;
    for (size_t i = 0; i < state->device_count; i++)
        total += state->devices[i];
    struct loss loss = { 0 };
    for (size_t i = 0; i < pack->mix.count && total > 0; i++)
        loss_add(&loss, state, &pack->mix.items[i], (double)total);
    value->real = loss.too_little_of_both + loss.devices_left_over + loss.no_cores +
                  loss.cores_fit + loss.cores_do_not + loss.other_model;
    return value->real;
}

double pack_fragmentation(struct pack *pack, const struct pack_node *node)
{
    struct pack_state state;
    state_of(node, &state);
    return fragmentation(pack, &state);
}

static int32_t score_of(double before, double after)
{
    return (int32_t)(1.0 / (1.0 + exp(-((before - after) / 1000))) * 100.0);
}

int32_t frag_score(struct pack *pack, const struct pack_node *node, const struct pack_shape *shape,
                   int64_t *device)
{
    struct pack_state state;
    state_of(node, &state);
    double before = fragmentation(pack, &state);
    *device = PACK_NONE;
    if (shape->count != 1 || shape->milli >= 1000) {
        state_take_first(&state, shape->cpu_milli, shape->count, shape->milli);
        return score_of(before, fragmentation(pack, &state));
    }
    int32_t best = 0;
    for (size_t i = 0; i < node->device_count; i++) {
        if (node->devices[i] < shape->milli)
            continue;
        struct pack_state after = state;
        state_take(&after, shape->cpu_milli, node->devices[i], shape->milli);
        int32_t score = score_of(before, fragmentation(pack, &after));
        if (*device == PACK_NONE || score > best) {
            best = score;
            *device = (int64_t)i;
        }
    }
    return best;
}
