/*
 * pack_frag.c - fragmentation: how much of a node's devices a request drawn from the mix could
 * not use. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
 * Fragmentation Gradient Descent", USENIX ATC 2023. The score of a place is how little it adds,
 * on a scale of 0 to 100, truncated.
 */
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

/*
 * The score is 100 times the logistic function of the gain in devices, truncated. These are the
 * least gains with scores of 1 to 99: comparing with them gives the same score on every
 * machine, whatever its exp() is.
 */
static const double least_gain[] = {
    -4.5951198501345898,  -3.8918202981106265,     -3.4760986898352733,  -3.1780538303479453,
    -2.9444389791664403,  -2.7515353130419489,     -2.5866893440979424,  -2.4423470353692043,
    -2.3136349291806306,  -2.1972245773362191,     -2.090741096933769,   -1.9924301646902063,
    -1.900958761193047,   -1.8152899666382489,     -1.7346010553881064,  -1.6582280766035324,
    -1.5856272637403819,  -1.5163474893680884,     -1.4500101755059982,  -1.3862943611198906,
    -1.3249254147435985,  -1.2656663733312759,     -1.2083112059245342,  -1.1526795099383855,
    -1.0986122886681098,  -1.0459685551826876,     -0.99462257514406205, -0.94446160884085129,
    -0.89538404705484131, -0.84729786038720367,    -0.8001193001121133,  -0.7537718023763802,
    -0.70818505792448583, -0.6632942174102644,     -0.61903920840622351, -0.57536414490356191,
    -0.53221681374730834, -0.48954822531870568,    -0.44731221804366483, -0.40546510810816455,
    -0.36396537720141164, -0.32277339226305107,    -0.28185115214098788, -0.24116205681688813,
    -0.20067069546215097, -0.16034265007517956,    -0.12014431184206351, -0.080042707673536662,
    -0.04000533461369931, -3.3306690738754686e-16, 0.040005334613698845, 0.080042707673536315,
    0.12014431184206303,  0.16034265007517931,     0.20067069546215119,  0.24116205681688804,
    0.28185115214098783,  0.32277339226305096,     0.36396537720141137,  0.40546510810816422,
    0.4473122180436645,   0.48954822531870551,     0.53221681374730834,  0.57536414490356158,
    0.6190392084062234,   0.66329421741026395,     0.70818505792448549,  0.75377180237637964,
    0.80011930011211241,  0.84729786038720345,     0.89538404705484098,  0.94446160884085117,
    0.99462257514406205,  1.0459685551826876,      1.0986122886681098,   1.1526795099383857,
    1.2083112059245338,   1.2656663733312759,      1.3249254147435987,   1.3862943611198901,
    1.4500101755059973,   1.5163474893680882,      1.585627263740381,    1.658228076603532,
    1.7346010553881057,   1.8152899666382483,      1.9009587611930467,   1.9924301646902063,
    2.0907410969337699,   2.19722457733622,        2.3136349291806311,   2.4423470353692038,
    2.5866893440979424,   2.7515353130419475,      2.9444389791664398,   3.1780538303479413,
    3.4760986898352733,   3.8918202981106202,      4.5951198501345729,
};

static int32_t score_of(double before, double after)
{
    double gain = (before - after) / 1000;
    size_t low = 0;
    size_t high = COUNT_OF(least_gain);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (gain >= least_gain[middle])
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)low;
}

int32_t frag_score(struct pack *pack, const struct pack_spot *spot, int64_t *device)
{
    const struct pack_node *node = spot->node;
    const struct pack_shape *shape = spot->shape;
    struct pack_state state;
    state_of(node, &state);
    if (!spot->before->is_known)
        spot->before->value.real = fragmentation(pack, &state);
    spot->before->is_known = true;
    double before = spot->before->value.real;
    *device = PACK_NONE;
    if (!spot_is_part(spot)) {
        state_take_first(&state, shape->cpu_milli, shape->count, shape->milli);
        return score_of(before, fragmentation(pack, &state));
    }
    int32_t best = 0;
    for (size_t i = 0; i < node->device_count; i++) {
        if ((spot->usable >> i & 1) == 0)
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
