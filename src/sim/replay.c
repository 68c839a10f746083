#include "sim/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the run ------------------------------------------------------------------------------- */

struct replay {
    const struct trace *trace;
    const struct replay_options *options;
    struct pack *pack;
    size_t *by_rank; /* node of each rank */
    int64_t used_milli, arrived_milli;
    double at_100_sum;
    size_t at_100_count;
    size_t failed;
};

static int64_t asked(const struct pack_shape *shape)
{
    return (int64_t)shape->count * shape->milli;
}

/* Nodes without devices have nothing that could be in use. */
static double percent(const struct replay *replay, int64_t milli)
{
    double capacity = (double)replay->trace->capacity_milli;
    return capacity > 0 ? (double)milli / (capacity / 1000.0) / 10 : 0.0;
}

/* To two decimals, correctly, as the published tables are. */
static double rounded(double value)
{
    char text[400];
    (void)snprintf(text, sizeof(text), "%.2f", value);
    return strtod(text, NULL);
}

static void write_place(const struct replay *replay, const struct trace_pod *pod,
                        const struct pack_place *place)
{
    struct buf *out = replay->options->placements;
    if (out == NULL)
        return;
    if (place->node == PACK_NONE) {
        buf_format(out, "%.*s -\n", STR_ARG(pod->name));
        return;
    }
    struct str node = replay->trace->nodes[replay->by_rank[place->node]].name;
    buf_format(out, "%.*s %.*s ", STR_ARG(pod->name), STR_ARG(node));
    for (uint32_t i = 0; i < pod->shape.count; i++)
        buf_format(out, "%s%u", i > 0 ? "-" : "", place->devices[i]);
    buf_add_char(out, '\n');
}

static void arrive(struct replay *replay, const struct trace_pod *pod)
{
    replay->arrived_milli += asked(&pod->shape);
    pack_see(replay->pack, &pod->shape);
    const struct pack_place place = pack_find(replay->pack, &pod->shape);
    if (place.node == PACK_NONE) {
        replay->failed++;
    } else {
        pack_take(replay->pack, &pod->shape, &place, 1);
        replay->used_milli += asked(&pod->shape);
    }
    write_place(replay, pod, &place);
    double arrived = percent(replay, replay->arrived_milli);
    if (arrived >= 99.5 && arrived <= 100.5) { /* what rounds to 100, halves to even */
        replay->at_100_sum += rounded(percent(replay, replay->used_milli));
        replay->at_100_count++;
    }
}

static struct pack *pack_of(struct replay *replay, struct arena *arena)
{
    const struct trace *trace = replay->trace;
    struct pack_node *nodes = arena_new(arena, trace->node_count, sizeof(*nodes));
    replay->by_rank = arena_new(arena, trace->node_count, sizeof(*replay->by_rank));
    for (size_t i = 0; i < trace->node_count; i++)
        replay->by_rank[replay->options->ranks != NULL ? replay->options->ranks[i] : i] = i;
    for (size_t i = 0; i < trace->node_count; i++)
        nodes[i] = trace->nodes[replay->by_rank[i]].node;
    size_t mix_count = 0;
    const struct pack_weight *mix = trace_mix(trace, arena, &mix_count);
    return pack_new(replay->options->policy, nodes, trace->node_count, mix, mix_count);
}

void replay_run(const struct trace *trace, const struct replay_options *options,
                struct arena *arena, struct replay_result *out)
{
    struct replay replay = { .trace = trace, .options = options };
    replay.pack = pack_of(&replay, arena);
    for (size_t i = 0; i < options->arrival_count; i++)
        arrive(&replay, &trace->pods[options->arrivals[i]]);
    double fragmented = 0.0;
    for (size_t i = 0; i < trace->node_count; i++)
        fragmented += pack_fragmentation(replay.pack, pack_node(replay.pack, (int64_t)i));
    double capacity = (double)trace->capacity_milli;
    *out = (struct replay_result){
        .arrived_pct = percent(&replay, replay.arrived_milli),
        .allocation_pct_100 =
            replay.at_100_count > 0 ? replay.at_100_sum / (double)replay.at_100_count : 0.0,
        .allocation_pct_end = percent(&replay, replay.used_milli),
        .unallocated = (capacity - (double)replay.used_milli) / 1000.0,
        .fragmentation_pct = capacity > 0 ? 100.0 * fragmented / capacity : 0.0,
        .failed = replay.failed,
    };
    pack_free(replay.pack);
}

/* ---- arrivals ------------------------------------------------------------------------------ */

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t random_below(uint64_t *state, size_t bound)
{
    return (size_t)(random_next(state) % bound);
}

size_t *replay_arrivals(const struct trace *trace, bool is_shuffled, uint64_t seed,
                        int64_t inflate_pct, struct arena *arena, size_t *count)
{
    VEC(size_t) arrivals = { 0 };
    int64_t bound = trace->capacity_milli * inflate_pct / 100;
    int64_t sum = 0;
    for (size_t i = 0; i < trace->pod_count; i++) {
        vec_push(&arrivals, i);
        sum += asked(&trace->pods[i].shape);
    }
    for (size_t left = arrivals.count; is_shuffled && left > 1; left--) {
        size_t other = random_below(&seed, left);
        size_t last = arrivals.items[left - 1];
        arrivals.items[left - 1] = arrivals.items[other];
        arrivals.items[other] = last;
    }
    while (inflate_pct > 0 && sum > bound && arrivals.count > 0) {
        size_t at = random_below(&seed, arrivals.count);
        sum -= asked(&trace->pods[arrivals.items[at]].shape);
        memmove(arrivals.items + at, arrivals.items + at + 1,
                (arrivals.count - at - 1) * sizeof(*arrivals.items));
        arrivals.count--;
    }
    bool has_devices = sum > 0 && trace->pod_count > 0; /* else nothing would ever be enough */
    while (inflate_pct > 0 && has_devices) {
        size_t pod = random_below(&seed, trace->pod_count);
        if (sum + trace->pods[pod].shape.milli > bound)
            break;
        sum += asked(&trace->pods[pod].shape);
        vec_push(&arrivals, pod);
    }
    size_t *out = arena_new(arena, arrivals.count, sizeof(*out));
    if (arrivals.count > 0)
        memcpy(out, arrivals.items, arrivals.count * sizeof(*out));
    *count = arrivals.count;
    vec_done(&arrivals);
    return out;
}

static enum err read_indices(struct str line, size_t bound, struct arena *arena, size_t **out,
                             size_t *count, struct error *e)
{
    *out = arena_new(arena, line.size / 2 + 1, sizeof(**out));
    *count = 0;
    while (line.size > 0) {
        int64_t index = 0;
        struct str text = str_cut(&line, ' ');
        if (text.size == 0)
            continue;
        if (!str_to_i64(text, 0, (int64_t)bound - 1, &index))
            return err_set(e, ERR_INVALID, "\"%.*s\" is no index below %zu", STR_ARG(text), bound);
        (*out)[(*count)++] = (size_t)index;
    }
    return ERR_OK;
}

enum err replay_order(struct str text, const struct trace *trace, struct arena *arena,
                      struct replay_options *options, struct error *e)
{
    size_t *arrivals = NULL;
    size_t *ranks = NULL;
    size_t rank_count = 0;
    struct str first = str_cut(&text, '\n');
    enum err rc =
        read_indices(first, trace->pod_count, arena, &arrivals, &options->arrival_count, e);
    if (rc == ERR_OK)
        rc = read_indices(str_cut(&text, '\n'), trace->node_count, arena, &ranks, &rank_count, e);
    if (rc != ERR_OK)
        return rc;
    bool *is_there = arena_new(arena, trace->node_count, sizeof(*is_there));
    for (size_t i = 0; i < rank_count; i++)
        is_there[ranks[i]] = true;
    for (size_t i = 0; i < trace->node_count; i++) {
        if (rank_count != trace->node_count || !is_there[i])
            return err_set(e, ERR_INVALID, "the second line does not rank every node once");
    }
    options->arrivals = arrivals;
    options->ranks = ranks;
    return ERR_OK;
}
