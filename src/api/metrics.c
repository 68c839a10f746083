/* metrics.c - what the state says, in the text format of Prometheus: one table of names. */
#include "api/call.h"
#include "api/handlers.h"

/* One metric family; `# HELP` and `# TYPE` come out once, before its samples. */
static void family(struct buf *out, const char *name, const char *help)
{
    buf_format(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

/* Names of ours hold nothing that a label's value would have to escape. */
static void sample(struct buf *out, const char *name, const char *label, struct str value,
                   int64_t number)
{
    buf_format(out, "%s{%s=\"%.*s\"} %lld\n", name, label, STR_ARG(value), (long long)number);
}

static void plain(struct buf *out, const char *name, const char *help, int64_t number)
{
    family(out, name, help);
    buf_format(out, "%s %lld\n", name, (long long)number);
}

static void put_workloads(const struct state *state, struct buf *out)
{
    int64_t counts[WL_STATE_COUNT] = { 0 };

    for (const struct workload *w = state->first_workload; w != NULL; w = w->next)
        counts[w->r.state]++;
    family(out, "berth_workloads", "Workloads in memory by state.");
    for (unsigned i = WL_HELD; i < WL_STATE_COUNT; i++)
        sample(out, "berth_workloads", "state", str_of(enum_name(&workload_state_names, i)),
               counts[i]);
}

static void put_allocations(const struct state *state, struct buf *out)
{
    int64_t counts[AL_STATE_COUNT] = { 0 };

    for (const struct node *node = state->first_node; node != NULL; node = node->next)
        for (const struct allocation *a = node->first_allocation; a != NULL; a = a->next_on_node)
            counts[a->r.state]++;
    family(out, "berth_allocations", "Allocations that hold something, by state.");
    for (unsigned i = AL_STARTING; i < AL_ENDED; i++)
        sample(out, "berth_allocations", "state", str_of(enum_name(&allocation_state_names, i)),
               counts[i]);
}

static void put_reservations(const struct call *c, struct buf *out)
{
    int64_t counts[RSV_STATE_COUNT] = { 0 };
    int64_t used = 0;

    for (const struct reservation *r = call_state(c)->first_reservation; r != NULL; r = r->next) {
        counts[r->r.state]++;
        used += sched_reservation(c->context->sched, r).used_milli;
    }
    family(out, "berth_reservations", "Reservations in memory by state.");
    for (unsigned i = RSV_REQUESTED; i < RSV_STATE_COUNT; i++)
        sample(out, "berth_reservations", "state", str_of(enum_name(&reservation_state_names, i)),
               counts[i]);
    plain(out, "berth_reserved_milli", "What work of reservations holds, in thousandths.", used);
}

static void put_nodes(const struct state *state, struct buf *out)
{
    int64_t counts[NODE_CONTACT_COUNT] = { 0 };
    int64_t health[DEVICE_HEALTH_COUNT] = { 0 };
    int64_t usable = 0;

    for (const struct node *node = state->first_node; node != NULL; node = node->next) {
        counts[node->r.contact]++;
        usable += node_is_usable(node);
        for (size_t i = 0; i < node->r.devices.count; i++)
            health[node->r.devices.items[i].health]++;
    }
    family(out, "berth_nodes", "Nodes by contact.");
    for (unsigned i = 0; i < NODE_CONTACT_COUNT; i++)
        sample(out, "berth_nodes", "contact", str_of(enum_name(&node_contact_names, i)), counts[i]);
    plain(out, "berth_nodes_usable", "Nodes that take new work.", usable);
    family(out, "berth_devices", "Devices by health.");
    for (unsigned i = 0; i < DEVICE_HEALTH_COUNT; i++)
        sample(out, "berth_devices", "health", str_of(enum_name(&device_health_names, i)),
               health[i]);
}

static void put_skews(const struct call *c, struct buf *out)
{
    const struct api_ops *ops = c->context->ops;
    if (ops->clock_skew_ms == NULL)
        return;
    family(out, "berth_node_clock_skew_seconds",
           "Clock of a connected node, ahead of the controller's.");
    for (const struct node *n = call_state(c)->first_node; n != NULL; n = n->next) {
        int64_t skew_ms = ops->clock_skew_ms(ops->arg, n->r.id);
        if (skew_ms == UNSET)
            continue;
        long long size_ms = skew_ms < 0 ? -(long long)skew_ms : (long long)skew_ms;
        buf_format(out, "berth_node_clock_skew_seconds{node=\"%.*s\"} %s%lld.%03lld\n",
                   STR_ARG(n->r.name), skew_ms < 0 ? "-" : "", size_ms / 1000, size_ms % 1000);
    }
}

static void put_classes(const struct call *c, struct buf *out)
{
    const struct state *state = call_state(c);

    family(out, "berth_class_capacity_milli", "Usable capacity of a class, in thousandths.");
    for (size_t i = 0; i < state->classes.count; i++)
        if (!state->classes.items[i]->is_removed)
            sample(out, "berth_class_capacity_milli", "class", state->classes.items[i]->r.name,
                   sched_capacity(c->context->sched, (int64_t)i).capacity_milli);
    family(out, "berth_class_free_milli", "Of it, what nothing occupies.");
    for (size_t i = 0; i < state->classes.count; i++)
        if (!state->classes.items[i]->is_removed)
            sample(out, "berth_class_free_milli", "class", state->classes.items[i]->r.name,
                   sched_capacity(c->context->sched, (int64_t)i).free_milli);
}

static const struct use_family {
    const char *name, *help;
    size_t offset; /* in struct class_use */
} use_families[] = {
    { "berth_tenant_allocated_milli", "Use of a class by a tenant, in thousandths.",
      offsetof(struct class_use, allocated_milli) },
    { "berth_tenant_borrowed_milli", "Of it, above the quota.",
      offsetof(struct class_use, borrowed_milli) },
    { "berth_tenant_pending_milli", "Asked for by waiting work.",
      offsetof(struct class_use, pending_milli) },
};

static void put_tenants(const struct call *c, struct buf *out)
{
    const struct state *state = call_state(c);

    for (size_t f = 0; f < COUNT_OF(use_families); f++) {
        const struct use_family *row = &use_families[f];
        family(out, row->name, row->help);
        for (const struct project *p = state->first_tenant; p != NULL; p = p->next_sibling) {
            for (size_t i = 0; i < state->classes.count; i++) {
                struct class_use use = sched_use(c->context->sched, p, (int64_t)i);
                const void *number = (const char *)&use + row->offset;
                if (*(const int64_t *)number != 0)
                    buf_format(out, "%s{tenant=\"%.*s\",class=\"%.*s\"} %lld\n", row->name,
                               STR_ARG(p->r.path), STR_ARG(state->classes.items[i]->r.name),
                               (long long)*(const int64_t *)number);
            }
        }
    }
}

enum err get_metrics(struct call *c, struct error *e)
{
    struct buf *out = &c->answer->body;
    const struct state *state = call_state(c);

    (void)e;
    call_text(c, "text/plain; version=0.0.4; charset=utf-8");
    put_workloads(state, out);
    put_allocations(state, out);
    put_reservations(c, out);
    put_nodes(state, out);
    put_skews(c, out);
    put_classes(c, out);
    put_tenants(c, out);
    plain(out, "berth_projects", "Projects, tenants included.", (int64_t)state->project_count);
    plain(out, "berth_journal_sequence", "Sequence of the last event.", (int64_t)state->sequence);
    plain(out, "berth_epoch", "Epoch of the leadership.", (int64_t)state->epoch);
    if (c->context->ops->metrics != NULL)
        c->context->ops->metrics(c->context->ops->arg, out);
    return ERR_OK;
}
