/*
 * What the controller hears of this node: the observed set, put together from the privileged half's
 * changes, and the inventory.
 */
#include <stdio.h>

#include "agent/gpu/gpu.h"
#include "agent/network.h"
#include "os/clock.h"

enum { REPORT_MS = 2 };

static enum observed_state state_of(const struct ipc_observed_entry *entry)
{
    switch ((enum ipc_state)entry->state) {
    case IPC_WAITING:
    case IPC_PREPARING:
        return OBSERVED_PREPARING;
    case IPC_RUNNING:
        return OBSERVED_RUNNING;
    case IPC_STOPPING:
        return OBSERVED_STOPPING;
    case IPC_EXITED:
    case IPC_GONE:
    case IPC_STATE_COUNT:
        break;
    }
    bool has_not_run = entry->end == IPC_END_START_FAILED || entry->end == IPC_END_NO_PROGRAM;
    return has_not_run ? OBSERVED_FAILED : OBSERVED_EXITED;
}

static enum cause cause_of(const struct ipc_observed_entry *entry)
{
    switch ((enum ipc_end)entry->end) {
    case IPC_END_OOM:
        return CAUSE_OUT_OF_MEMORY;
    case IPC_END_TIME_LIMIT:
        return CAUSE_TIME_LIMIT;
    case IPC_END_FENCED:
    case IPC_END_LOST:
        return CAUSE_NODE_FAILURE;
    case IPC_END_START_FAILED:
        return CAUSE_MISCONFIGURED;
    case IPC_END_NO_PROGRAM:
        return CAUSE_FAILED; /* its user's, who named it */
    case IPC_END_NONE:
    case IPC_END_EXIT:
    case IPC_END_STOPPED:
    case IPC_END_NOT_GRANTED:
    case IPC_END_COUNT:
        break;
    }
    return CAUSE_NONE;
}

static void observed_fill(struct observed *out, const struct ipc_observed_entry *entry)
{
    bool is_known = entry->exit_code >= 0 || entry->signal != 0;
    *out = (struct observed){
        .allocation = entry->allocation,
        .attempt = entry->attempt,
        .state = state_of(entry),
        .exit = { .is_known = is_known,
                  .code = entry->exit_code >= 0 ? entry->exit_code : 0,
                  .signal = entry->signal,
                  .is_oom = entry->is_oom != 0 },
        .cause = cause_of(entry),
        .detail = str_of(entry->reason),
        .checkpoints = entry->checkpoints,
        .extended_s = entry->extended_s,
    };
    /* Ages travel, for no two machines' clocks agree. */
    if (entry->checkpoints > 0)
        out->checkpoint_age_ms =
            MAX_OF((clock_boottime().ns - entry->checkpointed_ns) / NS_PER_MS, INT64_C(0));
}

void net_report_send(void *arg)
{
    struct network *network = arg;
    network->is_report_due = false;
    if (!network->is_observed_full)
        return;
    AUTO(arena) struct arena arena = { 0 };
    struct node_observed observed = {
        .node = network->identity.node,
        .generation = network->applied_generation,
        .epoch = network->applied_epoch,
    };
    observed.observed.items =
        arena_new(&arena, network->observed.count, sizeof(*observed.observed.items));
    for (size_t i = 0; i < network->observed.count; i++)
        observed_fill(&observed.observed.items[observed.observed.count++],
                      &network->observed.items[i]);
    net_logs_silent(network->logs, network->observed.items, network->observed.count);
    if (network_send_up(network, MESSAGE_OBSERVED, &observed))
        network->reported = loop_now(network->loop);
}

/* Soon, but the larger the set the more changes share one message. */
static void report_due(struct network *network)
{
    if (network->is_report_due || !network->is_welcome)
        return;
    network->is_report_due = true;
    int64_t pause_ms = REPORT_MS + (int64_t)network->observed.count / 10;
    int64_t at_ns = network->reported.ns + pause_ms * NS_PER_MS;
    loop_timer_set(network->loop, &network->report,
                   (struct mono){ MAX_OF(at_ns, loop_now(network->loop).ns) });
}

static void observed_put(struct network *network, const struct ipc_observed_entry *entry)
{
    size_t count = network->observed.count;
    size_t i = 0;
    while (i < count && (!id_eq(network->observed.items[i].allocation, entry->allocation) ||
                         network->observed.items[i].attempt != entry->attempt))
        i++;
    if (entry->state == IPC_GONE) {
        if (i <
            count) /* what is gone is not in the full set: that is how the controller learns it */
            network->observed.items[i] = network->observed.items[--network->observed.count];
        return;
    }
    if (i == count)
        vec_push(&network->observed, *entry);
    else
        network->observed.items[i] = *entry;
}

void net_report_observed(struct network *network, const struct ipc_observed *message)
{
    network->applied_epoch = message->epoch;
    network->applied_generation = message->generation;
    if (message->is_full == 0) {
        for (size_t i = 0; i < message->count; i++)
            observed_put(network, &message->entries[i]);
        report_due(network);
        return;
    }
    if (message->first == 0)
        network->assembling.count = 0;
    if (message->first != network->assembling.count)
        return; /* a piece is missing: the next full set comes soon */
    for (size_t i = 0; i < message->count; i++)
        vec_push(&network->assembling, message->entries[i]);
    if (network->assembling.count < message->total)
        return;
    network->observed.count = 0;
    for (size_t i = 0; i < network->assembling.count; i++)
        observed_put(network, &network->assembling.items[i]);
    network->assembling.count = 0;
    network->is_observed_full = true;
    report_due(network);
}

/* What a name may be long at most: longer ones would be refused. */
static struct str text_cut(const char *text)
{
    struct str whole = str_of(text);
    whole.size = MIN_OF(whole.size, (size_t)NAME_MAX_BYTES);
    return whole;
}

void net_report_inventory(struct network *network)
{
    if (!network->has_inventory)
        return;
    const struct ipc_inventory *found = &network->inventory;
    const struct node_facts *facts = &network->facts;
    char driver[sizeof(found->driver) + sizeof(found->driver_version)];
    (void)snprintf(driver, sizeof(driver), "%s%s%s", found->driver,
                   found->driver_version[0] != '\0' ? " " : "", found->driver_version);
    AUTO(arena) struct arena arena = { 0 };
    struct found_device *devices = arena_new(&arena, found->device_count, sizeof(*devices));
    for (uint32_t i = 0; i < found->device_count; i++) {
        const struct ipc_device *d = &found->devices[i];
        devices[i] = (struct found_device){
            .index = d->index,
            .class_name = str_of(d->class_name),
            .vendor = str_of(gpu_vendor_name(d->vendor)),
            .uuid = str_of(d->uuid),
            .model = str_of(d->model),
            .memory_mib = d->memory_mib,
            .numa_node = d->numa_node,
            .health = d->health == IPC_HEALTH_OK ? DEVICE_OK : DEVICE_FAILED,
            .health_reason = str_of(d->health_reason),
            .is_simulated = d->is_simulated != 0,
        };
    }
    struct inventory_message message = {
        .inventory = {
            .node = network->identity.node,
            .boot_id = str_of(network->agentd.boot_id),
            .agent_version = str_of(network->agentd.build),
            .kernel = text_cut(facts->kernel),
            .driver = text_cut(driver),
            .runtime = text_cut(found->runtime),
            .problems = str_of(found->problems),
            .rack = network->options.rack,
            .block = network->options.block,
            .cpu_class_name = str_is(str_of(facts->machine), "aarch64") ? STR("cpu-arm")
                                                                        : STR("cpu-x86"),
            .cpu_milli = (int64_t)facts->cpu_count * 1000,
            .memory_mib = facts->memory_mib,
            .devices = { devices, found->device_count },
        },
        .run = network->agentd.run,
    };
    (void)network_send_up(network, MESSAGE_INVENTORY, &message); /* sent again after a reconnect */
}
