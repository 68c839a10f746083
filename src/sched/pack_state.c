#include "sched/pack_internal.h"

static void sink(struct pack_state *state, size_t at)
{
    uint16_t left = state->devices[at];
    for (; at > 0 && state->devices[at - 1] > left; at--)
        state->devices[at] = state->devices[at - 1];
    state->devices[at] = left;
}

void state_of(const struct pack_node *node, struct pack_state *out)
{
    *out = (struct pack_state){ .model = node->model,
                                .device_count = node->device_count,
                                .cpu_milli = node->cpu_milli };
    for (size_t i = 0; i < node->device_count; i++) {
        out->devices[i] = (uint16_t)node->devices[i];
        sink(out, i);
    }
}

void state_take(struct pack_state *state, int64_t cpu_milli, int64_t left, int64_t milli)
{
    size_t at = 0;
    while (state->devices[at] != left)
        at++;
    state->devices[at] = (uint16_t)(left - MIN_OF(left, milli));
    sink(state, at);
    state->cpu_milli -= cpu_milli;
}

void state_take_last(struct pack_state *state, int64_t cpu_milli, uint32_t count, int64_t milli)
{
    size_t first = state->device_count - MIN_OF(count, state->device_count);
    for (size_t i = first; i < state->device_count; i++)
        state->devices[i] = (uint16_t)(state->devices[i] - MIN_OF(milli, state->devices[i]));
    for (size_t i = first; i < state->device_count; i++)
        sink(state, i);
    state->cpu_milli -= cpu_milli;
}

void state_take_first(struct pack_state *state, int64_t cpu_milli, uint32_t count, int64_t milli)
{
    for (size_t i = 0; i < state->device_count && count > 0; i++) {
        if (state->devices[i] < milli)
            continue;
        state->devices[i] = (uint16_t)(state->devices[i] - milli);
        count--;
    }
    for (size_t i = 1; i < state->device_count; i++)
        sink(state, i);
    state->cpu_milli -= cpu_milli;
}
