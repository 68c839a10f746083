/*
 * philly.c - jobs of virtual clusters as rows of CSV: timestamp, duration, num_gpus, cluster. In
 * this form a trace of Microsoft's Philly cluster was published (Jeon et al., "Analysis of
 * Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019).
 *
 * Every virtual cluster becomes a tenant, whose guarantee is what its largest job needs, and its
 * part of the rest by the device time that it asks for. More than a node's devices are a gang.
 */
#include <string.h>

#include "sim/load.h"
#include "sim/table.h"

struct row {
    int64_t at_s, duration_s, gpus;
    size_t tenant;
};

struct vc {
    struct str name;
    int64_t gpu_s, largest, quota;
};

struct philly {
    const struct philly_options *options;
    VEC(struct row) rows;
    VEC(struct vc) tenants;
    int64_t first_s;
};

static size_t tenant_number(struct philly *philly, struct str name)
{
    for (size_t i = 0; i < philly->tenants.count; i++) {
        if (str_eq(philly->tenants.items[i].name, name))
            return i;
    }
    const struct vc tenant = { .name = name };
    vec_push(&philly->tenants, tenant);
    return philly->tenants.count - 1;
}

static enum err read_row(struct philly *philly, const struct table *table, struct error *e)
{
    struct str at = { 0 };
    struct str duration = { 0 };
    struct str cluster = { 0 };
    struct row row = { 0 };
    int64_t duration_milli = 0;
    struct wall wall = { 0 };
    if (!table_text(table, "timestamp", &at) || !table_text(table, "duration", &duration) ||
        !table_text(table, "cluster", &cluster))
        return err_set(e, ERR_INVALID, "no column \"timestamp\", \"duration\" or \"cluster\"");
    enum err rc = table_number(table, "num_gpus", &row.gpus, e);
    if (rc != ERR_OK)
        return rc;
    if (!scenario_instant(at, &wall) ||
        !str_to_milli(duration, INT64_C(1) << 40, &duration_milli) || row.gpus == 0 ||
        cluster.size == 0)
        return err_set(e, ERR_INVALID, "line %zu: no job", table->line);
    row.at_s = wall.ns / NS_PER_S;
    row.duration_s = MAX_OF(duration_milli / 1000, INT64_C(1));
    row.tenant = tenant_number(philly, cluster);
    struct vc *tenant = &philly->tenants.items[row.tenant];
    tenant->gpu_s += row.duration_s * row.gpus;
    tenant->largest = MAX_OF(tenant->largest, row.gpus);
    philly->first_s = philly->rows.count == 0 ? row.at_s : MIN_OF(philly->first_s, row.at_s);
    vec_push(&philly->rows, row);
    return ERR_OK;
}

static enum err read_rows(struct philly *philly, struct str text, struct error *e)
{
    struct table table;
    enum err rc = ERR_OK;
    table_open(&table, text);
    while (rc == ERR_OK && table_next(&table, &rc, e))
        rc = read_row(philly, &table, e);
    if (rc == ERR_OK && philly->rows.count == 0)
        return err_set(e, ERR_INVALID, "there are no jobs");
    return rc;
}

/* What is left over by rounding goes to the first. */
static enum err divide(struct philly *philly, struct error *e)
{
    int64_t capacity = philly->options->nodes * philly->options->gpus;
    int64_t rest = capacity;
    int64_t total_s = 0;
    for (size_t i = 0; i < philly->tenants.count; i++) {
        rest -= philly->tenants.items[i].largest;
        total_s += philly->tenants.items[i].gpu_s;
    }
    if (rest < 0)
        return err_set(e, ERR_INVALID, "%lld devices are %lld too few for each one's largest job",
                       (long long)capacity, (long long)-rest);
    int64_t given = 0;
    for (size_t i = 0; i < philly->tenants.count; i++) {
        struct vc *tenant = &philly->tenants.items[i];
        int64_t part = (int64_t)((double)rest * (double)tenant->gpu_s / (double)total_s);
        tenant->quota = tenant->largest + part;
        given += part;
    }
    philly->tenants.items[0].quota += rest - given;
    return ERR_OK;
}

static void cluster_text(const struct philly *philly, struct buf *out)
{
    buf_format(out,
               "name: jobs of virtual clusters\n"
               "pools: [{name: n, class: gpu, nodes: %lld, gpus: %lld}]\n"
               "tenants:\n",
               (long long)philly->options->nodes, (long long)philly->options->gpus);
    for (size_t i = 0; i < philly->tenants.count; i++) {
        const struct vc *tenant = &philly->tenants.items[i];
        buf_format(out, "  - {path: vc-%.*s, quota: {gpu: %lld}", STR_ARG(tenant->name),
                   (long long)tenant->quota);
        if (philly->options->is_static)
            buf_format(out, ", limit: {gpu: %lld}", (long long)tenant->quota);
        buf_format(out, "}\n");
    }
    buf_format(out, "events: [{at: 0s, submit: {name: j, project: x, class: gpu, duration: 1s}}]\n"
                    "expect: []\n");
}

static void jobs_arrive(const struct philly *philly, struct arena *arena, struct load *load)
{
    load->count = philly->rows.count;
    load->arrivals = arena_new(arena, load->count, sizeof(*load->arrivals));
    struct sim_job *jobs = arena_new(arena, load->count, sizeof(*jobs));
    struct str *projects = arena_new(arena, philly->tenants.count, sizeof(*projects));
    for (size_t i = 0; i < philly->tenants.count; i++)
        projects[i] =
            str_of(arena_format(arena, "vc-%.*s", STR_ARG(philly->tenants.items[i].name)));
    for (size_t i = 0; i < load->count; i++) {
        const struct row *row = &philly->rows.items[i];
        int64_t members = (row->gpus + philly->options->gpus - 1) / philly->options->gpus;
        while (row->gpus % members != 0)
            members++;
        jobs[i] = load->scenario.events[0].job;
        jobs[i].project = projects[row->tenant];
        jobs[i].members = members;
        jobs[i].gpu_milli = row->gpus / members * 1000;
        jobs[i].duration_s = row->duration_s;
        load->arrivals[i] = (struct arrival){ row->at_s - philly->first_s, &jobs[i] };
    }
    load_sort(load);
}

enum err philly_load(struct str text, const struct philly_options *options, struct arena *arena,
                     struct load *out, struct error *e)
{
    struct philly philly = { .options = options };
    struct buf cluster = { 0 };
    enum err rc = read_rows(&philly, text, e);
    if (rc == ERR_OK)
        rc = divide(&philly, e);
    if (rc == ERR_OK) {
        cluster_text(&philly, &cluster);
        rc = load_read(str_copy(arena, buf_str(&cluster)), arena, out, e);
    }
    if (rc == ERR_OK)
        jobs_arrive(&philly, arena, out);
    buf_done(&cluster);
    vec_done(&philly.rows);
    vec_done(&philly.tenants);
    return rc;
}
