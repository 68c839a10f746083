#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "os/log.h"
#include "os/process.h"

enum {
    CDI_TIMEOUT_MS = 10 * 1000,
    DRIVER_PATIENCE_MS = 10 * 1000, /* then it is said that the driver does not answer */
    DRIVER_END_MS = 1000,           /* for the driver to come back before agentd ends */
};

/* XIDs after which the device does no work until it is reset. All others are the fault of
 * a program. */
static const uint64_t fatal_xids[] = {
    48,  /* an uncorrectable memory error */
    64,  /* the row remapper failed */
    79,  /* fell off the bus */
    95,  /* an uncontained memory error */
    119, /* the device's own processor does not answer */
    120, /* or has stopped */
};

static bool has_cdi_directory(const struct agentd_options *options)
{
    for (size_t i = 0; i < options->cdi_dir_count; i++)
        if (access(options->cdi_dirs[i], F_OK) == 0)
            return true;
    return false;
}

/* The whole command line of berth-cdi: lists of ours, and the names that our devices may have. */
static const char *const *cdi_command(const struct agentd *agentd, struct arena *arena)
{
    const struct agentd_options *o = &agentd->options;
    size_t count = 0;
    size_t most =
        2 + 2 * (o->cdi_dir_count + o->cdi_hook_count) + EDIT_NAMES_MAX * agentd->inventory.count;
    const char **argv = arena_new(arena, most, sizeof(*argv));
    argv[count++] = agentd->cdi_program;
    for (size_t i = 0; i < o->cdi_dir_count; i++) {
        argv[count++] = "--dir";
        argv[count++] = o->cdi_dirs[i];
    }
    for (size_t i = 0; i < o->cdi_hook_count; i++) {
        argv[count++] = "--hook";
        argv[count++] = o->cdi_hooks[i];
    }
    for (size_t i = 0; i < agentd->inventory.count; i++) {
        const char *names[EDIT_NAMES_MAX];
        size_t name_count = edit_names_of(&agentd->inventory.devices[i], arena, names);
        for (size_t n = 0; n < name_count; n++)
            argv[count++] = arena_format(arena, "%zu:%s", i, names[n]);
    }
    return argv;
}

/* berth-cdi has looked already; what runs as root is looked at twice. */
static enum err check_hooks(const struct agentd *agentd, struct error *e)
{
    const struct agentd_options *o = &agentd->options;
    for (size_t d = 0; d < agentd->edits.count; d++)
        for (size_t h = 0; h < agentd->edits.devices[d].hooks.count; h++) {
            const char *path = agentd->edits.devices[d].hooks.items[h].path;
            bool is_allowed = false;
            for (size_t i = 0; i < o->cdi_hook_count; i++)
                is_allowed = is_allowed || strcmp(o->cdi_hooks[i], path) == 0;
            if (!is_allowed)
                return err_set(e, ERR_DENIED, "the hook %.100s is not allowed", path);
        }
    return ERR_OK;
}

static enum err read_specs(struct agentd *agentd, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    static const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const struct process_run run = {
        .spec = { .argv = cdi_command(agentd, &arena), .env = env, .dir = "/" },
        .output_max = EDIT_RECORDS_BYTES_MAX,
        .timeout_ms = CDI_TIMEOUT_MS,
    };
    AUTO(process_result) struct process_result result = { 0 };
    enum err rc = process_check(&run, &result, e);
    if (rc == ERR_OK)
        rc = edit_records_read(buf_str(&result.output), agentd->inventory.count,
                               &agentd->edits_arena, &agentd->edits, e);
    return rc == ERR_OK ? check_hooks(agentd, e) : rc;
}

/* A node whose specs are broken still has devices and work: the operator is told, and it
 * goes on. */
static void read_edits(struct agentd *agentd)
{
    struct error e = { 0 };
    if (agentd->inventory.count == 0 || !has_cdi_directory(&agentd->options))
        return;
    if (read_specs(agentd, &e) != ERR_OK) {
        log_error("CDI specs are not used", LOG_ERR(&e));
        edit_set_done(&agentd->edits);
    }
    for (size_t i = 0; i < agentd->edits.problems.count; i++)
        log_warning("a CDI spec has a problem", LOG_STR("what", agentd->edits.problems.items[i]));
}

enum err devices_open(struct agentd *agentd, struct error *e)
{
    const struct gpu_options options = { .state_dir = agentd->options.state_dir };
    AUTO(gpu) struct gpu *gpu = NULL;
    enum err rc = gpu_open(&gpu, agentd->options.gpu, &options, e);
    if (rc == ERR_OK)
        rc = gpu_probe(gpu, &agentd->inventory, e);
    if (rc == ERR_OK)
        read_edits(agentd);
    if (rc == ERR_OK && agentd->inventory.count > 0)
        rc = gpu_watch_new(&agentd->driver, TAKE(gpu), e);
    return rc;
}

void devices_done(struct agentd *agentd)
{
    edit_set_done(&agentd->edits);
    arena_done(&agentd->edits_arena);
    gpu_inventory_done(&agentd->inventory);
    gpu_watch_free(agentd->driver, DRIVER_END_MS);
    agentd->driver = NULL;
}

static enum ipc_health health_of(const struct device_health *health)
{
    return health->is_lost || health->is_ill ? IPC_HEALTH_FAILED : IPC_HEALTH_OK;
}

/* For people, beside what the device is; "" when it is well. */
static void write_reason(const struct device_health *health, char out[IPC_REASON_MAX])
{
    const char *lost = health->is_lost ? "it does not answer" : "";
    if (health->is_ill)
        (void)snprintf(out, IPC_REASON_MAX, "XID %llu, until it is reset%s%s",
                       (unsigned long long)health->xid, health->is_lost ? "; " : "", lost);
    else
        (void)snprintf(out, IPC_REASON_MAX, "%s", lost);
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
        if (!health->is_ill && is_fatal(event->code))
            *health = (struct device_health){ health->is_lost, true, event->code };
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

static void take_answer(struct agentd *agentd, const struct gpu_answer *answer)
{
    bool is_changed = false;
    for (size_t i = 0; i < answer->count; i++) {
        const struct gpu_event *event = &answer->events[i];
        if (event->device >= agentd->inventory.count)
            continue;
        const struct device_health *health = &agentd->health[event->device];
        struct device_health before = *health;
        take_event(agentd, event);
        is_changed =
            is_changed || health->is_lost != before.is_lost || health->is_ill != before.is_ill;
    }
    if (is_changed)
        devices_send(agentd);
}

/* Said once a silence. Work is looked after meanwhile, and what a device last was stays true. */
static void note_silence(struct agentd *agentd, struct mono now)
{
    int64_t due_ms = gpu_watch_due_ms(agentd->driver, now);
    bool is_silent = due_ms > DRIVER_PATIENCE_MS;
    if (is_silent == agentd->is_driver_silent)
        return;
    agentd->is_driver_silent = is_silent;
    const char *name = agentd->inventory.driver_name;
    if (is_silent)
        log_error("the driver does not answer: nothing new is known of the devices",
                  LOG_STR("driver", name), LOG_INT("asked_ms_ago", due_ms));
    else
        log_info("the driver answers again", LOG_STR("driver", name));
}

void devices_look(struct agentd *agentd)
{
    struct gpu_answer answer;
    struct mono now = clock_monotonic();
    if (agentd->driver == NULL)
        return;
    if (gpu_watch_take(agentd->driver, &answer))
        take_answer(agentd, &answer);
    note_silence(agentd, now);
    gpu_watch_ask(agentd->driver, now);
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
    (void)snprintf(message->runtime, sizeof(message->runtime), "%s %s",
                   agentd->options.is_fake ? "fake" : "crun",
                   agentd->crun_version[0] != '\0' ? agentd->crun_version : "of no version");
    (void)snprintf(message->problems, sizeof(message->problems), "%s", agentd->problems);
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
        write_reason(&agentd->health[i], out->health_reason);
        out->memory_mib = device->memory_mib;
        (void)snprintf(out->uuid, sizeof(out->uuid), "%s", device->uuid);
        (void)snprintf(out->model, sizeof(out->model), "%s", device->model);
        (void)snprintf(out->class_name, sizeof(out->class_name), "%s", device->class_name);
        (void)snprintf(out->pci, sizeof(out->pci), "%s", device->pci);
    }
    peer_send(agentd, IPC_INVENTORY, message, NULL);
    mem_free(message);
}
