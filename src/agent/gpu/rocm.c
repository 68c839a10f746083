/*
 * AMD's devices by the ROCm SMI library, whose interface is declared here from its public
 * documentation. It has no events that can be waited for without a thread, so losses and
 * error counts are polled.
 */
#include <stdio.h>
#include <string.h>

#include "agent/gpu/driver.h"
#include "agent/gpu/library.h"

enum {
    RSMI_OK = 0,
    RSMI_VRAM = 0,
    RSMI_SENSOR_EDGE = 0,
    RSMI_TEMPERATURE_NOW = 0,
    RSMI_SOFTWARE_DRIVER = 0,
    RSMI_BLOCK_COUNT = 14, /* of the chip, each with its own error counts */
    PROCESSES_MAX = 256,
    DEVICES_OF_PROCESS_MAX = 64,
};

#define MIB (1024 * 1024)

struct rsmi_errors {
    uint64_t corrected;
    uint64_t uncorrected;
};

struct rsmi_process {
    uint32_t pid;
    uint32_t pasid;
    uint64_t vram_bytes;
    uint64_t sdma_us;
    uint32_t cu_percent;
};

struct rsmi_api {
    int (*init)(uint64_t flags);
    int (*shutdown)(void);
    int (*device_count)(uint32_t *count);
    int (*name)(uint32_t device, char *out, size_t size);
    int (*pci)(uint32_t device, uint64_t *address);
    int (*memory_total)(uint32_t device, int type, uint64_t *bytes);
    int (*memory_used)(uint32_t device, int type, uint64_t *bytes);
    int (*unique_id)(uint32_t device, uint64_t *id);
    int (*version)(int component, char *out, uint32_t size);
    int (*busy_percent)(uint32_t device, uint32_t *percent);
    int (*temperature)(uint32_t device, uint32_t sensor, int metric, int64_t *millidegrees);
    int (*power)(uint32_t device, uint32_t sensor, uint64_t *microwatts);
    int (*errors)(uint32_t device, uint64_t block, struct rsmi_errors *errors);
    int (*processes)(struct rsmi_process *processes, uint32_t *count);
    int (*devices_of_process)(uint32_t pid, uint32_t *devices, uint32_t *count);
    int (*process_on_device)(uint32_t pid, uint32_t device, struct rsmi_process *process);
};

#define SYMBOL(member, name, is_required)                                                          \
    {                                                                                              \
        (name), offsetof(struct rsmi_api, member), (is_required)                                   \
    }
static const struct library_symbol symbols[] = {
    SYMBOL(init, "rsmi_init", true),
    SYMBOL(shutdown, "rsmi_shut_down", true),
    SYMBOL(device_count, "rsmi_num_monitor_devices", true),
    SYMBOL(name, "rsmi_dev_name_get", true),
    SYMBOL(pci, "rsmi_dev_pci_id_get", true),
    SYMBOL(memory_total, "rsmi_dev_memory_total_get", true),
    SYMBOL(memory_used, "rsmi_dev_memory_usage_get", true),
    SYMBOL(unique_id, "rsmi_dev_unique_id_get", false),
    SYMBOL(version, "rsmi_version_str_get", false),
    SYMBOL(busy_percent, "rsmi_dev_busy_percent_get", false),
    SYMBOL(temperature, "rsmi_dev_temp_metric_get", false),
    SYMBOL(power, "rsmi_dev_power_ave_get", false),
    SYMBOL(errors, "rsmi_dev_ecc_count_get", false),
    SYMBOL(processes, "rsmi_compute_process_info_get", false),
    SYMBOL(devices_of_process, "rsmi_compute_process_gpus_get", false),
    SYMBOL(process_on_device, "rsmi_compute_process_info_by_device_get", false),
};

struct offered {
    uint32_t number; /* the library's */
    uint64_t errors; /* uncorrected, as last seen */
    bool is_lost;
};

struct rocm {
    const struct gpu_roots *roots;
    void *library; /* owned */
    struct rsmi_api api;
    bool is_initialised;
    struct offered offered[GPU_DEVICES_MAX]; /* by index of the last inventory */
    size_t offered_count;
    struct gpu_event_queue queue;
};

static void rocm_close(void *state)
{
    struct rocm *rocm = state;
    if (rocm == NULL)
        return;
    if (rocm->is_initialised)
        (void)rocm->api.shutdown(); /* nothing to do about it */
    library_close(rocm->library);
    vec_done(&rocm->queue.events);
    mem_free(rocm);
}
DEFINE_CLEANUP(rocm, struct rocm *, rocm_close)

static enum err rocm_open(void **state, const struct gpu_roots *roots, const char *argument,
                          struct error *e)
{
    /* The number grew with each release; what we call has stayed the same. */
    static const char *const names[] = { "librocm_smi64.so",   "librocm_smi64.so.7",
                                         "librocm_smi64.so.6", "librocm_smi64.so.5",
                                         "librocm_smi64.so.1", "/opt/rocm/lib/librocm_smi64.so" };
    if (argument[0] != '\0')
        return err_set(e, ERR_INVALID, "gpu: \"rocm\" takes nothing after a colon");
    AUTO(rocm) struct rocm *rocm = mem_new(1, sizeof(*rocm));
    rocm->roots = roots;
    enum err rc = library_open(&rocm->library, names, COUNT_OF(names), e);
    if (rc == ERR_OK)
        rc = library_find(rocm->library, symbols, COUNT_OF(symbols), &rocm->api, e);
    if (rc != ERR_OK)
        return rc;
    int code = rocm->api.init(0);
    if (code != RSMI_OK) /* 8 where there is no /sys/class/drm, that is: no such device */
        return err_set(e, ERR_UNAVAILABLE, "ROCm SMI does not start (%d): no AMD device?", code);
    rocm->is_initialised = true;
    *state = TAKE(rocm);
    return ERR_OK;
}

static uint64_t read_errors(const struct rocm *rocm, uint32_t number)
{
    uint64_t sum = 0;
    for (int block = 0; block < RSMI_BLOCK_COUNT && rocm->api.errors != NULL; block++) {
        struct rsmi_errors errors;
        /* A block without counters is refused, and the next one may have some. */
        if (rocm->api.errors(number, UINT64_C(1) << block, &errors) == RSMI_OK)
            sum += errors.uncorrected;
    }
    return sum;
}

static void read_address(const struct rocm *rocm, uint32_t number, struct gpu_device *device)
{
    uint64_t address = 0;
    if (rocm->api.pci(number, &address) != RSMI_OK)
        return;
    (void)snprintf(device->pci, sizeof(device->pci), "%04x:%02x:%02x.%x", (unsigned)(address >> 32),
                   (unsigned)(address >> 8 & 0xff), (unsigned)(address >> 3 & 0x1f),
                   (unsigned)(address & 7));
    device->numa_node = gpu_pci_numa_node(rocm->roots, device->pci);
    device->minor = gpu_pci_child_minor(rocm->roots, device->pci, "drm", "renderD");
    if (device->minor < 0)
        return;
    char name[32];
    (void)snprintf(name, sizeof(name), "dri/renderD%d", device->minor);
    gpu_add_node(rocm->roots, device->nodes, &device->node_count, name);
}

static enum err offer(struct rocm *rocm, uint32_t number, struct gpu_inventory *out,
                      struct error *e)
{
    struct gpu_device *device = gpu_inventory_add(out);
    if (device == NULL)
        return err_set(e, ERR_LIMIT, "this node has more than %d devices", GPU_DEVICES_MAX);
    uint64_t bytes = 0;
    uint64_t id = 0;
    device->vendor = GPU_VENDOR_AMD;
    if (rocm->api.name(number, device->model, sizeof(device->model)) != RSMI_OK ||
        rocm->api.memory_total(number, RSMI_VRAM, &bytes) != RSMI_OK) {
        out->count--; /* lost, or one without memory of its own: not for computing */
        return ERR_OK;
    }
    device->model[sizeof(device->model) - 1] = '\0';
    device->memory_mib = (int64_t)(bytes / MIB);
    read_address(rocm, number, device);
    if (rocm->api.unique_id != NULL && rocm->api.unique_id(number, &id) == RSMI_OK && id != 0)
        (void)snprintf(device->uuid, sizeof(device->uuid), "GPU-%016llx", (unsigned long long)id);
    else
        (void)snprintf(device->uuid, sizeof(device->uuid), "%s", device->pci);
    gpu_class_name(GPU_VENDOR_AMD, device->model, device->memory_mib, device->class_name);
    rocm->offered[rocm->offered_count++] =
        (struct offered){ .number = number, .errors = read_errors(rocm, number) };
    return ERR_OK;
}

static void sort_offered(struct rocm *rocm, struct gpu_inventory *inventory)
{
    struct offered found[GPU_DEVICES_MAX];
    unsigned before[GPU_DEVICES_MAX];
    memcpy(found, rocm->offered, sizeof(found));
    gpu_inventory_sort(inventory, before);
    for (size_t i = 0; i < inventory->count; i++)
        rocm->offered[i] = found[before[i]];
}

static enum err rocm_probe(void *state, struct gpu_inventory *out, struct error *e)
{
    struct rocm *rocm = state;
    uint32_t count = 0;
    int code = rocm->api.device_count(&count);
    if (code != RSMI_OK)
        return err_set(e, ERR_UNAVAILABLE, "ROCm SMI: count devices: error %d", code);
    AUTO(gpu_inventory) struct gpu_inventory found;
    gpu_inventory_init(&found, &gpu_driver_rocm, count);
    if (rocm->api.version != NULL)
        (void)rocm->api.version(RSMI_SOFTWARE_DRIVER, found.driver_version,
                                sizeof(found.driver_version)); /* "" is fine */
    found.driver_version[sizeof(found.driver_version) - 1] = '\0';
    rocm->offered_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        enum err rc = offer(rocm, i, &found, e);
        if (rc != ERR_OK)
            return rc;
    }
    sort_offered(rocm, &found);
    gpu_add_node(rocm->roots, found.shared, &found.shared_count, "kfd");
    *out = found;
    found.devices = NULL;
    return ERR_OK;
}

static size_t rocm_poll(void *state, struct gpu_event *out, size_t max)
{
    struct rocm *rocm = state;
    for (size_t i = 0; i < rocm->offered_count; i++) {
        struct offered *offered = &rocm->offered[i];
        uint64_t used = 0;
        bool is_lost = rocm->api.memory_used(offered->number, RSMI_VRAM, &used) != RSMI_OK;
        if (is_lost != offered->is_lost)
            gpu_queue_add(&rocm->queue, is_lost ? GPU_EVENT_LOST : GPU_EVENT_BACK, (unsigned)i, 0);
        offered->is_lost = is_lost;
        if (is_lost)
            continue;
        uint64_t errors = read_errors(rocm, offered->number);
        if (errors > offered->errors)
            gpu_queue_add(&rocm->queue, GPU_EVENT_ECC, (unsigned)i, errors);
        offered->errors = errors;
    }
    return gpu_queue_take(&rocm->queue, out, max);
}

static bool uses_device(const struct rocm *rocm, uint32_t pid, uint32_t number)
{
    uint32_t devices[DEVICES_OF_PROCESS_MAX];
    uint32_t count = DEVICES_OF_PROCESS_MAX;
    memset(devices, 0xff, sizeof(devices)); /* no device, should it count more than it names */
    if (rocm->api.devices_of_process(pid, devices, &count) != RSMI_OK)
        return false; /* it has ended meanwhile */
    for (uint32_t i = 0; i < MIN_OF(count, (uint32_t)DEVICES_OF_PROCESS_MAX); i++) {
        if (devices[i] == number)
            return true;
    }
    return false;
}

/* Old libraries know only the sum over all devices of a process: too much rather than too
 * little. */
static int64_t memory_on_device(const struct rocm *rocm, const struct rsmi_process *process,
                                uint32_t number)
{
    struct rsmi_process here;
    if (rocm->api.process_on_device != NULL &&
        rocm->api.process_on_device(process->pid, number, &here) == RSMI_OK)
        return (int64_t)(here.vram_bytes / MIB);
    return (int64_t)(process->vram_bytes / MIB);
}

static enum err rocm_processes(void *state, unsigned device, struct gpu_process *out, size_t max,
                               size_t *count, struct error *e)
{
    const struct rocm *rocm = state;
    if (device >= rocm->offered_count)
        return err_set(e, ERR_NOT_FOUND, "this node has no device %u", device);
    if (rocm->api.processes == NULL || rocm->api.devices_of_process == NULL)
        return err_set(e, ERR_UNAVAILABLE, "ROCm SMI is too old to tell who uses a device");
    uint32_t number = rocm->offered[device].number;
    struct rsmi_process processes[PROCESSES_MAX] = { 0 };
    uint32_t listed = PROCESSES_MAX;
    int code = rocm->api.processes(processes, &listed);
    if (code != RSMI_OK)
        return err_set(e, ERR_UNAVAILABLE, "ROCm SMI: list processes: error %d", code);
    size_t found = 0;
    for (uint32_t i = 0; i < MIN_OF(listed, (uint32_t)PROCESSES_MAX) && found < max; i++) {
        /* What is listed may be killed: nothing that is no process. */
        if (processes[i].pid >= 1 && processes[i].pid <= INT32_MAX &&
            uses_device(rocm, processes[i].pid, number))
            out[found++] = (struct gpu_process){ (pid_t)processes[i].pid,
                                                 memory_on_device(rocm, &processes[i], number) };
    }
    *count = found;
    return ERR_OK;
}

static enum err rocm_measure(void *state, unsigned device, struct gpu_sample *out, struct error *e)
{
    const struct rocm *rocm = state;
    if (device >= rocm->offered_count)
        return err_set(e, ERR_NOT_FOUND, "this node has no device %u", device);
    uint32_t number = rocm->offered[device].number;
    const struct rsmi_api *api = &rocm->api;
    uint64_t value = 0;
    uint32_t percent = 0;
    int64_t millidegrees = 0;
    if (api->memory_used(number, RSMI_VRAM, &value) != RSMI_OK)
        return err_set(e, ERR_IO, "ROCm SMI: device %u does not answer", device);
    struct gpu_sample sample = { (int64_t)(value / MIB), -1, -1, -1 };
    if (api->busy_percent != NULL && api->busy_percent(number, &percent) == RSMI_OK &&
        percent <= 100)
        sample.utilisation_percent = (int)percent;
    if (api->temperature != NULL &&
        api->temperature(number, RSMI_SENSOR_EDGE, RSMI_TEMPERATURE_NOW, &millidegrees) == RSMI_OK)
        sample.temperature_c = (int)(millidegrees / 1000);
    if (api->power != NULL && api->power(number, 0, &value) == RSMI_OK)
        sample.power_mw = (int64_t)(value / 1000);
    *out = sample;
    return ERR_OK;
}

const struct gpu_driver gpu_driver_rocm = {
    .name = "rocm",
    .open = rocm_open,
    .close = rocm_close,
    .probe = rocm_probe,
    .poll = rocm_poll,
    .processes = rocm_processes,
    .measure = rocm_measure,
};
