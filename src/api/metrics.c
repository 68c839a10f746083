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

/* So that a scrape stays small however the tree of projects grows: tenants come first. */
enum { USE_SERIES_MAX = 5000 };

static const struct use_family {
    const char *name, *help;
    size_t offset; /* in struct class_use */
} use_families[] = {
    { "berth_project_quota_milli", "Guarantee of a class, in thousandths.",
      offsetof(struct class_use, quota_milli) },
    { "berth_project_limit_milli", "Ceiling of a class; -1: none.",
      offsetof(struct class_use, limit_milli) },
    { "berth_project_fair_share_milli", "Fair share of a class, as of the last cycle.",
      offsetof(struct class_use, fair_milli) },
    { "berth_project_allocated_milli", "Use of a class by a tenant or project.",
      offsetof(struct class_use, allocated_milli) },
    { "berth_project_borrowed_milli", "Of it, above the quota.",
      offsetof(struct class_use, borrowed_milli) },
    { "berth_project_pending_milli", "Asked for by waiting work.",
      offsetof(struct class_use, pending_milli) },
};

/* A project and a class that have anything to do with each other. */
struct use_series {
    struct str project, class_name;
    struct class_use use;
};

struct use_list {
    const struct call *call;
    struct use_series *items;
    size_t count, left_out;
};

static void add_uses(struct use_list *list, const struct project *p)
{
    const struct state *state = call_state(list->call);
    for (size_t i = 0; i < state->classes.count; i++) {
        struct class_use use = sched_use(list->call->context->sched, p, (int64_t)i);
        bool is_any = use.quota_milli != 0 || use.limit_milli != UNBOUNDED ||
                      use.allocated_milli != 0 || use.pending_milli != 0;
        if (!is_any || state->classes.items[i]->is_removed)
            continue;
        if (list->count == USE_SERIES_MAX)
            list->left_out++;
        else
            list->items[list->count++] =
                (struct use_series){ p->r.path, state->classes.items[i]->r.name, use };
    }
}

static void use_labels(struct buf *out, const char *name, const struct use_series *series)
{
    buf_format(out, "%s{project=\"%.*s\",class=\"%.*s\"} ", name, STR_ARG(series->project),
               STR_ARG(series->class_name));
}

/* Of what it is due, how much it has: 1 is all of it. */
static void put_ratios(const struct use_list *list, struct buf *out)
{
    family(out, "berth_project_share_ratio", "Allocated over fair share, where there is a share.");
    for (size_t i = 0; i < list->count; i++) {
        const struct class_use *use = &list->items[i].use;
        if (use->fair_milli <= 0)
            continue;
        long long ratio_milli = (long long)(use->allocated_milli * 1000 / use->fair_milli);
        use_labels(out, "berth_project_share_ratio", &list->items[i]);
        buf_format(out, "%lld.%03lld\n", ratio_milli / 1000, ratio_milli % 1000);
    }
}

static void put_projects(const struct call *c, struct buf *out)
{
    struct use_list list = { .call = c };
    list.items = arena_new(call_arena(c), USE_SERIES_MAX, sizeof(*list.items));
    const struct project *first = call_state(c)->first_tenant;
    for (const struct project *p = first; p != NULL; p = p->next_sibling)
        add_uses(&list, p);
    for (const struct project *p = first; p != NULL; p = project_next(p)) {
        if (p->parent != NULL)
            add_uses(&list, p);
    }
    for (size_t f = 0; f < COUNT_OF(use_families); f++) {
        const struct use_family *row = &use_families[f];
        family(out, row->name, row->help);
        for (size_t i = 0; i < list.count; i++) {
            const void *number = (const char *)&list.items[i].use + row->offset;
            use_labels(out, row->name, &list.items[i]);
            buf_format(out, "%lld\n", (long long)*(const int64_t *)number);
        }
    }
    put_ratios(&list, out);
    plain(out, "berth_project_series_left_out", "Pairs of project and class beyond the 5000 shown.",
          (int64_t)list.left_out);
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
    put_projects(c, out);
    plain(out, "berth_projects", "Projects, tenants included.", (int64_t)state->project_count);
    plain(out, "berth_journal_sequence", "Sequence of the last event.", (int64_t)state->sequence);
    plain(out, "berth_epoch", "Epoch of the leadership.", (int64_t)state->epoch);
    if (c->context->ops->metrics != NULL)
        c->context->ops->metrics(c->context->ops->arg, out);
    return ERR_OK;
}
