/*
 * NVIDIA's devices by NVML. A device in MIG mode is not offered itself but as its instances; events
 * and losses of the device are passed on to all of them, as each is affected.
 */
#include <stdio.h>
#include <string.h>

#include "agent/gpu/driver.h"
#include "agent/gpu/library.h"
#include "agent/gpu/nvml_abi.h"

enum { PHYSICAL_MAX = 64, PROCESSES_MAX = 512, EVENTS_PER_POLL = 64 };

#define MIB (1024 * 1024)

/* A device on the bus. */
struct physical {
    nvml_device handle;
    unsigned long long ecc_errors; /* as last seen */
    bool is_lost;
};

/* A device as offered: the physical one or a part of it. */
struct offered {
    nvml_device handle;
    size_t physical;
    unsigned gpu_instance; /* NVML_NO_INSTANCE: all of it */
};

struct nvml {
    const struct gpu_roots *roots;
    void *library; /* owned */
    struct nvml_api api;
    bool is_initialised;
    nvml_event_set events; /* owned; NULL: this library or these devices have none */
    struct physical physical[PHYSICAL_MAX];
    size_t physical_count;
    struct offered offered[GPU_DEVICES_MAX]; /* by index of the last inventory */
    size_t offered_count;
    struct gpu_event_queue queue;
};

#define SYMBOL(member, name, is_required)                                                          \
    {                                                                                              \
        (name), offsetof(struct nvml_api, member), (is_required)                                   \
    }
static const struct library_symbol symbols[] = {
    SYMBOL(init, "nvmlInit_v2", true),
    SYMBOL(shutdown, "nvmlShutdown", true),
    SYMBOL(error_text, "nvmlErrorString", true),
    SYMBOL(driver_version, "nvmlSystemGetDriverVersion", true),
    SYMBOL(device_count, "nvmlDeviceGetCount_v2", true),
    SYMBOL(device_by_index, "nvmlDeviceGetHandleByIndex_v2", true),
    SYMBOL(name, "nvmlDeviceGetName", true),
    SYMBOL(uuid, "nvmlDeviceGetUUID", true),
    SYMBOL(minor, "nvmlDeviceGetMinorNumber", true),
    SYMBOL(memory, "nvmlDeviceGetMemoryInfo", true),
    SYMBOL(pci, "nvmlDeviceGetPciInfo_v3", true),
    SYMBOL(utilisation, "nvmlDeviceGetUtilizationRates", false),
    SYMBOL(temperature, "nvmlDeviceGetTemperature", false),
    SYMBOL(power, "nvmlDeviceGetPowerUsage", false),
    SYMBOL(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3", false),
    SYMBOL(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3", false),
    SYMBOL(ecc_errors, "nvmlDeviceGetTotalEccErrors", false),
    SYMBOL(mig_mode, "nvmlDeviceGetMigMode", false),
    SYMBOL(mig_count, "nvmlDeviceGetMaxMigDeviceCount", false),
    SYMBOL(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", false),
    SYMBOL(gpu_instance, "nvmlDeviceGetGpuInstanceId", false),
    SYMBOL(compute_instance, "nvmlDeviceGetComputeInstanceId", false),
    SYMBOL(event_set_new, "nvmlEventSetCreate", false),
    SYMBOL(event_set_free, "nvmlEventSetFree", false),
    SYMBOL(event_types, "nvmlDeviceGetSupportedEventTypes", false),
    SYMBOL(event_register, "nvmlDeviceRegisterEvents", false),
    SYMBOL(event_wait, "nvmlEventSetWait_v2", false),
};

static enum err fail(const struct nvml *nvml, int code, const char *what, struct error *e)
{
    const char *why = nvml->api.error_text(code);
    enum err rc = code == NVML_GPU_IS_LOST ? ERR_IO : ERR_UNAVAILABLE;
    return err_set(e, rc, "NVML: %s: %s (%d)", what, why != NULL ? why : "?", code);
}

static void nvml_close(void *state)
{
    struct nvml *nvml = state;
    if (nvml == NULL)
        return;
    if (nvml->events != NULL)
        (void)nvml->api.event_set_free(nvml->events); /* nothing to do about it */
    if (nvml->is_initialised)
        (void)nvml->api.shutdown();
    library_close(nvml->library);
    vec_done(&nvml->queue.events);
    mem_free(nvml);
}
DEFINE_CLEANUP(nvml, struct nvml *, nvml_close)

static enum err nvml_open(void **state, const struct gpu_roots *roots, const char *argument,
                          struct error *e)
{
    static const char *const names[] = { "libnvidia-ml.so.1" };
    if (argument[0] != '\0')
        return err_set(e, ERR_INVALID, "gpu: \"nvml\" takes nothing after a colon");
    AUTO(nvml) struct nvml *nvml = mem_new(1, sizeof(*nvml));
    nvml->roots = roots;
    enum err rc = library_open(&nvml->library, names, COUNT_OF(names), e);
    if (rc == ERR_OK)
        rc = library_find(nvml->library, symbols, COUNT_OF(symbols), &nvml->api, e);
    if (rc != ERR_OK)
        return rc;
    int code = nvml->api.init();
    if (code != NVML_OK)
        return fail(nvml, code, "start", e);
    nvml->is_initialised = true;
    *state = TAKE(nvml);
    return ERR_OK;
}

/* Events are best effort: without them a loss is still seen by asking the device. */
static void watch_events(struct nvml *nvml)
{
    const struct nvml_api *api = &nvml->api;
    if (nvml->events != NULL)
        (void)api->event_set_free(nvml->events);
    nvml->events = NULL;
    if (api->event_set_new == NULL || api->event_set_free == NULL || api->event_types == NULL ||
        api->event_register == NULL || api->event_wait == NULL)
        return;
    if (api->event_set_new(&nvml->events) != NVML_OK) {
        nvml->events = NULL;
        return;
    }
    for (size_t i = 0; i < nvml->physical_count; i++) {
        unsigned long long types = 0;
        nvml_device device = nvml->physical[i].handle;
        if (api->event_types(device, &types) != NVML_OK)
            continue;
        types &= NVML_EVENT_XID | NVML_EVENT_DOUBLE_BIT_ECC;
        if (types != 0)
            (void)api->event_register(device, types, nvml->events); /* see above */
    }
}

static unsigned long long read_ecc(const struct nvml *nvml, nvml_device device)
{
    unsigned long long count = 0;
    if (nvml->api.ecc_errors == NULL ||
        nvml->api.ecc_errors(device, NVML_ECC_UNCORRECTED, NVML_ECC_SINCE_BOOT, &count) != NVML_OK)
        return 0;
    return count;
}

static bool is_mig_enabled(const struct nvml *nvml, nvml_device device)
{
    unsigned current = 0;
    unsigned pending = 0;
    return nvml->api.mig_mode != NULL && nvml->api.mig_count != NULL &&
           nvml->api.mig_by_index != NULL && nvml->api.gpu_instance != NULL &&
           nvml->api.mig_mode(device, &current, &pending) == NVML_OK && current == NVML_MIG_ENABLED;
}

/* Does the device know the word MIG at all? */
static enum gpu_mig mig_kind(const struct nvml *nvml, nvml_device device)
{
    unsigned current = 0;
    unsigned pending = 0;
    if (nvml->api.mig_mode == NULL || nvml->api.mig_mode(device, &current, &pending) != NVML_OK)
        return GPU_MIG_NONE;
    return GPU_MIG_OFF;
}

/* What a device and its instances have in common. */
struct common {
    char pci[20];
    int numa_node;
    int minor;
};

static enum err read_common(const struct nvml *nvml, nvml_device device, struct common *out,
                            struct error *e)
{
    struct nvml_pci pci = { .domain = 0 };
    unsigned minor_number = 0;
    int code = nvml->api.pci(device, &pci);
    if (code != NVML_OK)
        return fail(nvml, code, "read the PCI address", e);
    pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
    if (!gpu_pci_address(pci.bus_id, out->pci))
        return err_set(e, ERR_INVALID, "NVML: \"%s\" is no PCI address", pci.bus_id);
    out->numa_node = gpu_pci_numa_node(nvml->roots, out->pci);
    out->minor = nvml->api.minor(device, &minor_number) == NVML_OK ? (int)minor_number : -1;
    return ERR_OK;
}

static enum err read_identity(const struct nvml *nvml, nvml_device handle,
                              struct gpu_device *device, struct error *e)
{
    struct nvml_memory memory = { .total = 0 };
    int code = nvml->api.name(handle, device->model, sizeof(device->model));
    if (code == NVML_OK)
        code = nvml->api.uuid(handle, device->uuid, sizeof(device->uuid));
    if (code == NVML_OK)
        code = nvml->api.memory(handle, &memory);
    if (code != NVML_OK)
        return fail(nvml, code, "read a device", e);
    device->model[sizeof(device->model) - 1] = '\0';
    device->uuid[sizeof(device->uuid) - 1] = '\0';
    device->memory_mib = (int64_t)(memory.total / MIB);
    gpu_class_name(GPU_VENDOR_NVIDIA, device->model, device->memory_mib, device->class_name);
    return ERR_OK;
}

/* The driver guards an instance by a file of its own, whose minor stands in /proc. */
static void add_capability(const struct nvml *nvml, struct gpu_device *device, const char *where)
{
    char path[PATH_MAX];
    char number[16];
    char name[64];
    int size = snprintf(path, sizeof(path), "%s/driver/nvidia/capabilities/gpu%d/mig/%s/access",
                        nvml->roots->proc, device->parent_minor, where);
    if (size >= (int)sizeof(path) ||
        !gpu_read_field(number, sizeof(number), path, "DeviceFileMinor"))
        return;
    (void)snprintf(name, sizeof(name), "nvidia-caps/nvidia-cap%s", number);
    gpu_add_node(nvml->roots, device->nodes, &device->node_count, name);
}

static void add_nodes(const struct nvml *nvml, struct gpu_device *device, unsigned gpu_instance,
                      unsigned compute_instance)
{
    char name[64];
    int minor_number = device->parent_minor >= 0 ? device->parent_minor : device->minor;
    (void)snprintf(name, sizeof(name), "nvidia%d", minor_number);
    gpu_add_node(nvml->roots, device->nodes, &device->node_count, name);
    if (gpu_instance == NVML_NO_INSTANCE)
        return;
    (void)snprintf(name, sizeof(name), "gi%u", gpu_instance);
    add_capability(nvml, device, name);
    (void)snprintf(name, sizeof(name), "gi%u/ci%u", gpu_instance, compute_instance);
    add_capability(nvml, device, name);
}

static enum err offer(struct nvml *nvml, const struct offered *what, const struct common *common,
                      struct gpu_inventory *out, struct error *e)
{
    struct gpu_device *device = gpu_inventory_add(out);
    if (device == NULL)
        return err_set(e, ERR_LIMIT, "this node has more than %d devices", GPU_DEVICES_MAX);
    bool is_instance = what->gpu_instance != NVML_NO_INSTANCE;
    device->vendor = GPU_VENDOR_NVIDIA;
    memcpy(device->pci, common->pci, sizeof(device->pci));
    device->numa_node = common->numa_node;
    device->minor = common->minor;
    device->parent_minor = is_instance ? common->minor : -1;
    device->mig = is_instance ? GPU_MIG_INSTANCE : mig_kind(nvml, what->handle);
    enum err rc = read_identity(nvml, what->handle, device, e);
    if (rc != ERR_OK) {
        out->count--;
        return rc;
    }
    unsigned compute_instance = 0;
    if (is_instance && nvml->api.compute_instance != NULL)
        (void)nvml->api.compute_instance(what->handle, &compute_instance); /* 0 is the usual one */
    add_nodes(nvml, device, what->gpu_instance, compute_instance);
    nvml->offered[nvml->offered_count++] = *what;
    return ERR_OK;
}

static enum err offer_instances(struct nvml *nvml, size_t physical, const struct common *common,
                                struct gpu_inventory *out, struct error *e)
{
    unsigned count = 0;
    nvml_device parent = nvml->physical[physical].handle;
    int code = nvml->api.mig_count(parent, &count);
    if (code != NVML_OK)
        return fail(nvml, code, "count MIG instances", e);
    for (unsigned i = 0; i < count; i++) {
        struct offered what = { .physical = physical };
        code = nvml->api.mig_by_index(parent, i, &what.handle);
        if (code == NVML_NOT_FOUND)
            continue; /* places for instances may be empty */
        if (code == NVML_OK)
            code = nvml->api.gpu_instance(what.handle, &what.gpu_instance);
        if (code != NVML_OK)
            return fail(nvml, code, "read a MIG instance", e);
        enum err rc = offer(nvml, &what, common, out, e);
        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

/* A device that is lost is not in the inventory: it can do no work. It must not hide the others. */
static enum err probe_one(struct nvml *nvml, unsigned index, struct gpu_inventory *out,
                          struct error *e)
{
    struct physical physical = { .ecc_errors = 0 };
    struct common common = { .numa_node = -1, .minor = -1 };
    struct error why = { 0 };
    int code = nvml->api.device_by_index(index, &physical.handle);
    if (code == NVML_GPU_IS_LOST)
        return ERR_OK;
    if (code != NVML_OK)
        return fail(nvml, code, "open a device", e);
    enum err rc = read_common(nvml, physical.handle, &common, &why);
    if (rc == ERR_IO)
        return ERR_OK;
    if (rc != ERR_OK)
        return err_set(e, rc, "%s", why.text);
    physical.ecc_errors = read_ecc(nvml, physical.handle);
    size_t place = nvml->physical_count;
    nvml->physical[nvml->physical_count++] = physical;
    if (is_mig_enabled(nvml, physical.handle))
        return offer_instances(nvml, place, &common, out, e);
    const struct offered whole = { physical.handle, place, NVML_NO_INSTANCE };
    rc = offer(nvml, &whole, &common, out, &why);
    return rc == ERR_OK || rc == ERR_IO ? ERR_OK : err_set(e, rc, "%s", why.text);
}

/* Puts `offered` into the order of the inventory, whose `index` still says how they were found. */
static void sort_offered(struct nvml *nvml, struct gpu_inventory *inventory)
{
    struct offered found[GPU_DEVICES_MAX];
    unsigned before[GPU_DEVICES_MAX];
    memcpy(found, nvml->offered, sizeof(found));
    gpu_inventory_sort(inventory, before);
    for (size_t i = 0; i < inventory->count; i++)
        nvml->offered[i] = found[before[i]];
}

static enum err nvml_probe(void *state, struct gpu_inventory *out, struct error *e)
{
    struct nvml *nvml = state;
    unsigned count = 0;
    int code = nvml->api.device_count(&count);
    if (code != NVML_OK)
        return fail(nvml, code, "count devices", e);
    AUTO(gpu_inventory) struct gpu_inventory found;
    gpu_inventory_init(&found, &gpu_driver_nvml, count);
    (void)nvml->api.driver_version(found.driver_version, sizeof(found.driver_version));
    nvml->physical_count = 0;
    nvml->offered_count = 0;
    for (unsigned i = 0; i < MIN_OF(count, (unsigned)PHYSICAL_MAX); i++) {
        enum err rc = probe_one(nvml, i, &found, e);
        if (rc != ERR_OK)
            return rc;
    }
    sort_offered(nvml, &found);
    static const char *const shared[] = { "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools" };
    for (size_t i = 0; i < COUNT_OF(shared); i++)
        gpu_add_node(nvml->roots, found.shared, &found.shared_count, shared[i]);
    watch_events(nvml);
    *out = found;
    found.devices = NULL;
    return ERR_OK;
}

/* `gpu_instance` narrows it down where the library knows. */
static void tell(struct nvml *nvml, enum gpu_event_kind kind, size_t physical,
                 unsigned gpu_instance, uint64_t code)
{
    for (size_t i = 0; i < nvml->offered_count; i++) {
        const struct offered *offered = &nvml->offered[i];
        bool is_meant = gpu_instance == NVML_NO_INSTANCE ||
                        offered->gpu_instance == NVML_NO_INSTANCE ||
                        offered->gpu_instance == gpu_instance;
        if (offered->physical == physical && is_meant)
            gpu_queue_add(&nvml->queue, kind, (unsigned)i, code);
    }
}

static void read_events(struct nvml *nvml)
{
    for (int i = 0; i < EVENTS_PER_POLL && nvml->events != NULL; i++) {
        struct nvml_event event = { .device = NULL };
        if (nvml->api.event_wait(nvml->events, &event, 0) != NVML_OK)
            return;
        if (event.type != NVML_EVENT_XID)
            continue; /* ECC is counted below */
        for (size_t p = 0; p < nvml->physical_count; p++) {
            if (nvml->physical[p].handle == event.device)
                tell(nvml, GPU_EVENT_XID, p, event.gpu_instance, event.data);
        }
    }
}

/* Asks each device something that only a living one answers. */
static void check_health(struct nvml *nvml)
{
    for (size_t p = 0; p < nvml->physical_count; p++) {
        struct physical *physical = &nvml->physical[p];
        struct nvml_memory memory;
        bool is_lost = nvml->api.memory(physical->handle, &memory) == NVML_GPU_IS_LOST;
        if (is_lost != physical->is_lost)
            tell(nvml, is_lost ? GPU_EVENT_LOST : GPU_EVENT_BACK, p, NVML_NO_INSTANCE, 0);
        physical->is_lost = is_lost;
        if (is_lost)
            continue;
        unsigned long long errors = read_ecc(nvml, physical->handle);
        if (errors > physical->ecc_errors)
            tell(nvml, GPU_EVENT_ECC, p, NVML_NO_INSTANCE, errors);
        physical->ecc_errors = errors;
    }
}

static size_t nvml_poll(void *state, struct gpu_event *out, size_t max)
{
    struct nvml *nvml = state;
    read_events(nvml);
    check_health(nvml);
    return gpu_queue_take(&nvml->queue, out, max);
}

/* NULL: no such device, and the error says so. */
static const struct offered *find_offered(const struct nvml *nvml, unsigned device, struct error *e)
{
    if (device < nvml->offered_count)
        return &nvml->offered[device];
    (void)err_set(e, ERR_NOT_FOUND, "this node has no device %u",
                  device); /* the caller returns it */
    return NULL;
}

/* A process with both kinds of work is in both lists: the larger figure is its use. */
static void merge_process(struct gpu_process *out, size_t max, size_t *count,
                          const struct nvml_process *process)
{
    int64_t used =
        process->used_memory == NVML_NOT_A_NUMBER ? 0 : (int64_t)(process->used_memory / MIB);
    for (size_t i = 0; i < *count; i++) {
        if (out[i].pid != (pid_t)process->pid)
            continue;
        out[i].memory_mib = MAX_OF(out[i].memory_mib, used);
        return;
    }
    if (*count < max)
        out[(*count)++] = (struct gpu_process){ (pid_t)process->pid, used };
}

static enum err nvml_processes(void *state, unsigned device, struct gpu_process *out, size_t max,
                               size_t *count, struct error *e)
{
    struct nvml *nvml = state;
    const struct offered *offered = find_offered(nvml, device, e);
    if (offered == NULL)
        return ERR_NOT_FOUND;
    int (*const lists[])(nvml_device, unsigned *,
                         struct nvml_process *) = { nvml->api.compute_processes,
                                                    nvml->api.graphics_processes };
    if (lists[0] == NULL)
        return err_set(e, ERR_UNAVAILABLE, "NVML is too old to tell who uses a device");
    size_t found = 0;
    struct nvml_process processes[PROCESSES_MAX];
    for (size_t l = 0; l < COUNT_OF(lists); l++) {
        unsigned listed = PROCESSES_MAX;
        if (lists[l] == NULL)
            continue;
        int code = lists[l](offered->handle, &listed, processes);
        if (code == NVML_NOT_SUPPORTED && l > 0)
            continue; /* graphics work does not exist on MIG instances */
        if (code != NVML_OK)
            return fail(nvml, code, "list processes", e);
        for (unsigned i = 0; i < MIN_OF(listed, (unsigned)PROCESSES_MAX); i++)
            merge_process(out, max, &found, &processes[i]);
    }
    *count = found;
    return ERR_OK;
}

static enum err nvml_measure(void *state, unsigned device, struct gpu_sample *out, struct error *e)
{
    const struct nvml *nvml = state;
    const struct offered *offered = find_offered(nvml, device, e);
    if (offered == NULL)
        return ERR_NOT_FOUND;
    struct nvml_memory memory;
    int code = nvml->api.memory(offered->handle, &memory);
    if (code != NVML_OK)
        return fail(nvml, code, "measure a device", e);
    struct gpu_sample sample = { (int64_t)(memory.used / MIB), -1, -1, -1 };
    struct nvml_utilisation utilisation;
    unsigned value = 0;
    if (nvml->api.utilisation != NULL &&
        nvml->api.utilisation(offered->handle, &utilisation) == NVML_OK)
        sample.utilisation_percent = (int)utilisation.gpu;
    if (nvml->api.temperature != NULL &&
        nvml->api.temperature(offered->handle, NVML_SENSOR_GPU, &value) == NVML_OK)
        sample.temperature_c = (int)value;
    if (nvml->api.power != NULL && nvml->api.power(offered->handle, &value) == NVML_OK)
        sample.power_mw = value;
    *out = sample;
    return ERR_OK;
}

const struct gpu_driver gpu_driver_nvml = {
    .name = "nvml",
    .open = nvml_open,
    .close = nvml_close,
    .probe = nvml_probe,
    .poll = nvml_poll,
    .processes = nvml_processes,
    .measure = nvml_measure,
};
