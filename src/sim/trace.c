#include "sim/trace.h"

#include <stdlib.h>
#include <string.h>

#include "sim/table.h"

enum { POPULARITY_PCT = 95 };

/* ---- nodes --------------------------------------------------------------------------------- */

static enum err model_of(struct trace *trace, struct str name, uint32_t *out, struct error *e)
{
    for (size_t i = 0; i < trace->model_count; i++) {
        if (!str_eq(trace->model_names[i], name))
            continue;
        *out = (uint32_t)i;
        return ERR_OK;
    }
    if (trace->model_count == PACK_MODELS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d models of devices", PACK_MODELS_MAX);
    *out = (uint32_t)trace->model_count;
    trace->model_names[trace->model_count++] = name;
    return ERR_OK;
}

static enum err read_node(const struct table *table, struct trace *trace, struct trace_node *out,
                          struct error *e)
{
    int64_t devices = 0;
    struct pack_node *node = &out->node;
    if (!table_text(table, "sn", &out->name) || !table_text(table, "model", &out->model))
        return err_set(e, ERR_INVALID, "there is no column \"sn\" or no column \"model\"");
    enum err rc = table_number(table, "cpu_milli", &node->cpu_milli, e);
    if (rc == ERR_OK)
        rc = table_number(table, "memory_mib", &node->memory_mib, e);
    if (rc == ERR_OK)
        rc = table_number(table, "gpu", &devices, e);
    if (rc == ERR_OK && devices > PACK_DEVICES_MAX)
        rc = err_set(e, ERR_LIMIT, "line %zu: more than %d devices", table->line, PACK_DEVICES_MAX);
    if (rc == ERR_OK)
        rc = model_of(trace, out->model, &node->model, e);
    if (rc != ERR_OK)
        return rc;
    node->cpu_all = node->cpu_milli;
    node->device_count = (uint32_t)devices;
    for (int64_t i = 0; i < devices; i++)
        node->devices[i] = 1000;
    trace->capacity_milli += 1000 * devices;
    return ERR_OK;
}

static int node_order(const void *a, const void *b)
{
    return str_cmp(((const struct trace_node *)a)->name, ((const struct trace_node *)b)->name);
}

static enum err read_nodes(struct str text, struct arena *arena, struct trace *trace,
                           struct error *e)
{
    VEC(struct trace_node) nodes = { 0 };
    struct table table;
    enum err rc = ERR_OK;
    table_open(&table, text);
    while (rc == ERR_OK && table_next(&table, &rc, e)) {
        struct trace_node node = { 0 };
        rc = read_node(&table, trace, &node, e);
        vec_push(&nodes, node);
    }
    if (rc == ERR_OK && nodes.count == 0)
        rc = err_set(e, ERR_INVALID, "there are no nodes");
    if (rc == ERR_OK) {
        trace->node_count = nodes.count;
        trace->nodes = arena_new(arena, nodes.count, sizeof(*trace->nodes));
        memcpy(trace->nodes, nodes.items, nodes.count * sizeof(*nodes.items));
        qsort(trace->nodes, nodes.count, sizeof(*trace->nodes), node_order);
    }
    vec_done(&nodes);
    return rc;
}

/* ---- pods ---------------------------------------------------------------------------------- */

static enum err read_models(struct trace *trace, struct str list, uint64_t *out, struct error *e)
{
    while (list.size > 0) {
        struct str name = str_cut(&list, '|');
        uint32_t model = 0;
        if (name.size == 0)
            continue;
        enum err rc = model_of(trace, name, &model, e);
        if (rc != ERR_OK)
            return rc;
        *out |= UINT64_C(1) << model;
    }
    return ERR_OK;
}

static enum err read_pod(const struct table *table, struct trace *trace, struct trace_pod *out,
                         struct error *e)
{
    int64_t count = 0;
    int64_t milli = 0;
    if (!table_text(table, "name", &out->name))
        return err_set(e, ERR_INVALID, "there is no column \"name\"");
    enum err rc = table_number(table, "cpu_milli", &out->shape.cpu_milli, e);
    if (rc == ERR_OK)
        rc = table_number(table, "memory_mib", &out->shape.memory_mib, e);
    if (rc == ERR_OK)
        rc = table_number(table, "num_gpu", &count, e);
    if (rc == ERR_OK && count > PACK_DEVICES_MAX)
        rc = err_set(e, ERR_LIMIT, "line %zu: more than %d devices", table->line, PACK_DEVICES_MAX);
    if (rc == ERR_OK && count > 0)
        rc = table_number(table, "gpu_milli", &milli, e);
    if (rc != ERR_OK || count == 0)
        return rc;
    out->shape.count = (uint32_t)count;
    out->shape.milli = (uint32_t)MIN_OF(milli, INT64_C(1000));
    (void)table_text(table, "gpu_spec", &out->models); /* not every trace has it */
    return read_models(trace, out->models, &out->shape.models, e);
}

static int pod_order(const void *a, const void *b)
{
    return str_cmp(((const struct trace_pod *)a)->name, ((const struct trace_pod *)b)->name);
}

static enum err read_pods(struct str text, struct arena *arena, struct trace *trace,
                          struct error *e)
{
    VEC(struct trace_pod) pods = { 0 };
    struct table table;
    enum err rc = ERR_OK;
    table_open(&table, text);
    while (rc == ERR_OK && table_next(&table, &rc, e)) {
        struct trace_pod pod = { 0 };
        rc = read_pod(&table, trace, &pod, e);
        vec_push(&pods, pod);
    }
    if (rc == ERR_OK && pods.count == 0)
        rc = err_set(e, ERR_INVALID, "there are no pods");
    if (rc == ERR_OK) {
        trace->pod_count = pods.count;
        trace->pods = arena_new(arena, pods.count, sizeof(*trace->pods));
        memcpy(trace->pods, pods.items, pods.count * sizeof(*pods.items));
        qsort(trace->pods, pods.count, sizeof(*trace->pods), pod_order);
    }
    vec_done(&pods);
    return rc;
}

enum err trace_read(struct str nodes, struct str pods, struct arena *arena, struct trace *out,
                    struct error *e)
{
    *out = (struct trace){ 0 };
    enum err rc = read_nodes(nodes, arena, out, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "nodes");
    rc = read_pods(pods, arena, out, e);
    return rc == ERR_OK ? ERR_OK : err_wrap(e, rc, "pods");
}

/* ---- the mix ------------------------------------------------------------------------------- */

struct kind {
    struct trace_pod pod; /* memory does not count */
    size_t count;
};

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_kinds(const struct trace_pod *a, const struct trace_pod *b)
{
    int order = compare_i64(a->shape.cpu_milli, b->shape.cpu_milli);
    if (order == 0)
        order = compare_i64(a->shape.milli, b->shape.milli);
    if (order == 0)
        order = compare_i64(a->shape.count, b->shape.count);
    return order != 0 ? order : str_cmp(a->models, b->models);
}

static int kind_order(const void *a, const void *b)
{
    return compare_kinds(a, b);
}

static int frequency_order(const void *left, const void *right)
{
    const struct kind *a = left;
    const struct kind *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return -compare_kinds(&a->pod, &b->pod);
}

static struct kind *kinds_of(const struct trace *trace, struct arena *arena, size_t *count)
{
    struct trace_pod *sorted = arena_new(arena, trace->pod_count, sizeof(*sorted));
    struct kind *kinds = arena_new(arena, trace->pod_count, sizeof(*kinds));
    memcpy(sorted, trace->pods, trace->pod_count * sizeof(*sorted));
    qsort(sorted, trace->pod_count, sizeof(*sorted), kind_order);
    *count = 0;
    for (size_t i = 0; i < trace->pod_count; i++) {
        if (i == 0 || compare_kinds(&sorted[i - 1], &sorted[i]) != 0)
            kinds[(*count)++].pod = sorted[i];
        kinds[*count - 1].count++;
    }
    qsort(kinds, *count, sizeof(*kinds), frequency_order);
    return kinds;
}

struct pack_weight *trace_mix(const struct trace *trace, struct arena *arena, size_t *count)
{
    size_t kind_count = 0;
    const struct kind *kinds = kinds_of(trace, arena, &kind_count);
    struct pack_weight *mix = arena_new(arena, kind_count, sizeof(*mix));
    double total = (double)trace->pod_count;
    double covered = 0.0;
    *count = 0;
    for (size_t i = 0; i < kind_count && covered < POPULARITY_PCT * total / 100.0; i++) {
        covered += (double)kinds[i].count;
        mix[i] = (struct pack_weight){ kinds[i].pod.shape, (double)kinds[i].count / total };
        mix[i].shape.memory_mib = 0;
        (*count)++;
    }
    for (size_t i = 0; i < *count && *count < kind_count; i++)
        mix[i].weight /= covered / total;
    return mix;
}
