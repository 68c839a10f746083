#include <stdio.h>
#include <string.h>

#include "agent/agentd.h"
#include "os/log.h"

enum { EVENTS_PER_LOOK = 64 };

/* XIDs after which the device does no work until it is reset. All others are the fault of a program. */
static const uint64_t fatal_xids[] = {
    48,  /* an uncorrectable memory error */
    64,  /* the row remapper failed */
    79,  /* fell off the bus */
    95,  /* an uncontained memory error */
    119, /* the device's own processor does not answer */
    120, /* or has stopped */
};

enum err devices_open(struct agentd *agentd, struct error *e)
{
    const struct gpu_options options = { .state_dir = agentd->options.state_dir };
    enum err rc = gpu_open(&agentd->gpu, agentd->options.gpu, &options, e);
    return rc == ERR_OK ? gpu_probe(agentd->gpu, &agentd->inventory, e) : rc;
}

void devices_done(struct agentd *agentd)
{
    gpu_inventory_done(&agentd->inventory);
    gpu_free(agentd->gpu);
    agentd->gpu = NULL;
}

static enum ipc_health health_of(const struct device_health *health)
{
    return health->is_lost || health->is_ill ? IPC_HEALTH_FAILED : IPC_HEALTH_OK;
}

static bool is_fatal(uint64_t xid)
{
    for (size_t i = 0; i < COUNT_OF(fatal_xids); i++)
        if (fatal_xids[i] == xid)
            return true;
    return false;
}

static void take_event(struct agentd *agentd, const struct gpu_event *event)
{
    static const char *const names[] = {
        [GPU_EVENT_XID] = "xid",
        [GPU_EVENT_ECC] = "uncorrected memory errors",
        [GPU_EVENT_LOST] = "does not answer",
        [GPU_EVENT_BACK] = "answers again",
    };
    struct device_health *health = &agentd->health[event->device];
    switch (event->kind) {
    case GPU_EVENT_XID:
        health->is_ill = health->is_ill || is_fatal(event->code);
        break;
    case GPU_EVENT_LOST:
    case GPU_EVENT_BACK:
        health->is_lost = event->kind == GPU_EVENT_LOST;
        break;
    case GPU_EVENT_ECC: /* an XID says when it is more than a row that was replaced */
        break;
    }
    log_warning("a device has a word",
                LOG_STR("device", agentd->inventory.devices[event->device].uuid),
                LOG_STR("what", names[event->kind]), LOG_INT("code", event->code));
}

void devices_look(struct agentd *agentd)
{
    struct gpu_event events[EVENTS_PER_LOOK];
    size_t count = gpu_poll(agentd->gpu, events, COUNT_OF(events));
    bool is_changed = false;
    for (size_t i = 0; i < count; i++) {
        if (events[i].device >= agentd->inventory.count)
            continue;
        const struct device_health *health = &agentd->health[events[i].device];
        enum ipc_health before = health_of(health);
        take_event(agentd, &events[i]);
        is_changed = is_changed || health_of(health) != before;
    }
    if (is_changed)
        devices_send(agentd);
}

void devices_send(struct agentd *agentd)
{
    const struct gpu_inventory *inventory = &agentd->inventory;
    struct ipc_inventory *message = mem_new(1, sizeof(*message));
    message->device_count = (uint32_t)MIN_OF(inventory->count, (size_t)IPC_DEVICES_MAX);
    message->cgroup_mode = (uint32_t)agentd->cgroup_mode;
    (void)snprintf(message->driver, sizeof(message->driver), "%s", inventory->driver_name);
    (void)snprintf(message->driver_version, sizeof(message->driver_version), "%s",
                   inventory->driver_version);
    (void)snprintf(message->runtime, sizeof(message->runtime), "%.63s",
                   agentd->options.is_fake ? "fake" : agentd->options.crun);
    for (uint32_t i = 0; i < message->device_count; i++) {
        const struct gpu_device *device = &inventory->devices[i];
        struct ipc_device *out = &message->devices[i];
        out->index = device->index;
        out->vendor = (uint32_t)device->vendor;
        out->minor = device->minor;
        out->parent_minor = device->parent_minor;
        out->numa_node = device->numa_node;
        out->is_simulated = device->is_simulated ? 1 : 0;
        out->health = (uint32_t)health_of(&agentd->health[i]);
        out->memory_mib = device->memory_mib;
        (void)snprintf(out->uuid, sizeof(out->uuid), "%s", device->uuid);
        (void)snprintf(out->model, sizeof(out->model), "%s", device->model);
        (void)snprintf(out->class_name, sizeof(out->class_name), "%s", device->class_name);
        (void)snprintf(out->pci, sizeof(out->pci), "%s", device->pci);
    }
    peer_send(agentd, IPC_INVENTORY, message, NULL);
    mem_free(message);
}
