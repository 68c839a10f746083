#include "sched/charge.h"

enum request_kind request_kind(const struct request *request)
{
    if (request->gpu_memory_mib > 0)
        return REQUEST_MEMORY;
    if (request->devices > 0)
        return request->share_milli == 1000 ? REQUEST_WHOLE : REQUEST_SHARE;
    if (request->mig_profile != MIG_ANY)
        return REQUEST_SHARE;
    if (request->gpu_milli > 0)
        return request->gpu_milli < 1000 ? REQUEST_SHARE : REQUEST_WHOLE;
    return REQUEST_CORES;
}

int64_t request_devices(const struct request *request)
{
    switch (request_kind(request)) {
    case REQUEST_CORES:
        return 0;
    case REQUEST_MEMORY:
        return 1;
    case REQUEST_SHARE:
    case REQUEST_WHOLE:
        break;
    }
    if (request->devices > 0)
        return request->devices;
    return request->gpu_milli < 1000 ? 1 : request->gpu_milli / 1000;
}

struct slicing_need request_slice(const struct state *state, const struct request *request,
                                  int64_t class_number)
{
    enum request_kind kind = request_kind(request);
    struct slicing_need need = { 0 };
    if (kind != REQUEST_SHARE && kind != REQUEST_MEMORY)
        return need;
    need.table = mig_table_of(&state_class(state, class_number)->r);
    if (need.table != NULL)
        need.profile = mig_cover(need.table, request);
    return need;
}

int64_t usable_mib(const struct state *state, int64_t memory_mib)
{
    return MAX_OF(memory_mib - state->settings.device_reserve_mib, INT64_C(0));
}

int64_t request_charge(const struct state *state, const struct request *request,
                       int64_t class_number)
{
    const struct slicing_need need = request_slice(state, request, class_number);
    if (need.profile != NULL)
        return request_devices(request) * mig_milli(need.profile);
    switch (request_kind(request)) {
    case REQUEST_CORES:
        return request->cpu_milli;
    case REQUEST_WHOLE:
        return request_devices(request) * 1000;
    case REQUEST_SHARE:
        return request->devices > 0 ? request->devices * request->share_milli : request->gpu_milli;
    case REQUEST_MEMORY:
        break;
    }
    int64_t usable = usable_mib(state, state_class(state, class_number)->r.memory_mib);
    if (request->gpu_memory_mib >= usable)
        return 1000;
    return (request->gpu_memory_mib * 1000 + usable - 1) / usable;
}

size_t request_class_count(const struct state *state, const struct request *request)
{
    return request->class_count > 0 ? request->class_count : state->classes.count;
}

int64_t request_class(const struct state *state, const struct request *request, size_t i)
{
    int64_t number = request->class_count > 0 ? request->class_numbers[i] : (int64_t)i;
    const struct class_object *class = state_class(state, number);
    enum class_kind kind = request_kind(request) == REQUEST_CORES ? CLASS_CPU : CLASS_GPU;
    if (class == NULL || class->is_removed || class->r.kind != kind)
        return -1;
    const struct slicing_need need = request_slice(state, request, number);
    bool is_covered =
        need.profile != NULL || (need.table == NULL && request->mig_profile == MIG_ANY);
    return is_covered ? number : -1;
}
