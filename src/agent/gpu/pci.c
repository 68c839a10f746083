/*
 * Accelerators as the PCI bus shows them: for vendors without a library of theirs on the node. It
 * knows which devices there are and which files open them, but neither use nor health beyond "still
 * there". A device that no kernel driver serves, and so has no file, is left out.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/driver.h"

enum { VENDOR_AMD = 0x1002, VENDOR_NVIDIA = 0x10de, VENDOR_INTEL = 0x8086 };

/* The upper 16 bits of a device's class code. */
enum {
    CLASS_VGA = 0x0300,
    CLASS_3D = 0x0302,
    CLASS_DISPLAY_OTHER = 0x0380, /* AMD's accelerators without outputs */
    CLASS_ACCELERATOR = 0x1200,
};

/* The bus does not tell names or memory; these are known. Others are named by their numbers. */
static const struct model {
    unsigned vendor;
    unsigned device;
    const char *name;
    int64_t memory_mib;
} models[] = {
    /* clang-format off */
    { VENDOR_NVIDIA, 0x2330, "NVIDIA H100 80GB HBM3",  81559 },
    { VENDOR_NVIDIA, 0x2331, "NVIDIA H100 PCIe",       81559 },
    { VENDOR_NVIDIA, 0x2335, "NVIDIA H200",            143771 },
    { VENDOR_NVIDIA, 0x20b0, "NVIDIA A100-SXM4-40GB",  40960 },
    { VENDOR_NVIDIA, 0x20b2, "NVIDIA A100-SXM4-80GB",  81920 },
    { VENDOR_NVIDIA, 0x20b5, "NVIDIA A100 80GB PCIe",  81920 },
    { VENDOR_NVIDIA, 0x20f1, "NVIDIA A100-PCIE-40GB",  40960 },
    { VENDOR_NVIDIA, 0x26b9, "NVIDIA L40S",            46068 },
    { VENDOR_NVIDIA, 0x27b8, "NVIDIA L4",              23034 },
    { VENDOR_NVIDIA, 0x2236, "NVIDIA A10",             23028 },
    { VENDOR_NVIDIA, 0x1eb8, "Tesla T4",               15360 },
    { VENDOR_NVIDIA, 0x1db1, "Tesla V100-SXM2-16GB",   16384 },
    { VENDOR_NVIDIA, 0x1db5, "Tesla V100-SXM2-32GB",   32768 },
    { VENDOR_AMD,    0x74a1, "AMD Instinct MI300X",    196592 },
    { VENDOR_AMD,    0x740f, "AMD Instinct MI210",     65520 },
    { VENDOR_AMD,    0x738c, "AMD Instinct MI100",     32752 },
    /* clang-format on */
};

struct pci {
    const struct gpu_roots *roots;
    char address[GPU_DEVICES_MAX][20]; /* by index of the last inventory */
    bool is_lost[GPU_DEVICES_MAX];
    size_t count;
    struct gpu_event_queue queue;
};

static enum err pci_open(void **state, const struct gpu_roots *roots, const char *argument,
                         struct error *e)
{
    char path[PATH_MAX];
    if (argument[0] != '\0')
        return err_set(e, ERR_INVALID, "gpu: \"pci\" takes nothing after a colon");
    if (snprintf(path, sizeof(path), "%s/bus/pci/devices", roots->sysfs) >= (int)sizeof(path) ||
        access(path, R_OK) != 0)
        return err_set(e, ERR_UNAVAILABLE, "there is no PCI bus on this node");
    struct pci *pci = mem_new(1, sizeof(*pci));
    pci->roots = roots;
    *state = pci;
    return ERR_OK;
}

static void pci_close(void *state)
{
    struct pci *pci = state;
    vec_done(&pci->queue.events);
    mem_free(pci);
}

static bool read_number(const struct pci *pci, const char *address, const char *file,
                        unsigned long *out)
{
    char line[32];
    char *end = NULL;
    if (!gpu_read_line(line, sizeof(line), "%s/bus/pci/devices/%s/%s", pci->roots->sysfs, address,
                       file))
        return false;
    *out = strtoul(line, &end, 16);
    return end != line && *end == '\0';
}

/* A plain VGA device may be a server's console chip or part of the processor: not for computing. */
static bool is_accelerator(const char *address, unsigned long class_code, unsigned long vendor)
{
    unsigned long kind = class_code >> 8;
    if (kind == CLASS_3D || kind == CLASS_ACCELERATOR)
        return true;
    if (kind != CLASS_VGA && kind != CLASS_DISPLAY_OTHER)
        return false;
    bool is_on_board = strncmp(address, "0000:00:", 8) == 0;
    return vendor == VENDOR_NVIDIA || vendor == VENDOR_AMD ||
           (vendor == VENDOR_INTEL && !is_on_board);
}

static void set_model(struct gpu_device *device, unsigned long vendor, unsigned long number)
{
    device->vendor = vendor == VENDOR_NVIDIA  ? GPU_VENDOR_NVIDIA
                     : vendor == VENDOR_AMD   ? GPU_VENDOR_AMD
                     : vendor == VENDOR_INTEL ? GPU_VENDOR_INTEL
                                              : GPU_VENDOR_OTHER;
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        if (models[i].vendor != vendor || models[i].device != number)
            continue;
        (void)snprintf(device->model, sizeof(device->model), "%s", models[i].name);
        device->memory_mib = models[i].memory_mib;
        gpu_class_name(device->vendor, device->model, device->memory_mib, device->class_name);
        return;
    }
    (void)snprintf(device->model, sizeof(device->model), "PCI device %04lx:%04lx", vendor, number);
    (void)snprintf(device->class_name, sizeof(device->class_name), "pci-%04lx-%04lx", vendor,
                   number);
}

/* NVIDIA's kernel driver tells number and UUID without its library. */
static void add_nvidia_nodes(const struct pci *pci, struct gpu_device *device)
{
    char path[PATH_MAX];
    char text[64];
    char name[32];
    int64_t number = 0;
    int size = snprintf(path, sizeof(path), "%s/driver/nvidia/gpus/%s/information",
                        pci->roots->proc, device->pci);
    if (size >= (int)sizeof(path))
        return;
    if (gpu_read_field(text, sizeof(text), path, "GPU UUID") && strncmp(text, "GPU-", 4) == 0)
        (void)snprintf(device->uuid, sizeof(device->uuid), "%s", text);
    if (!gpu_read_field(text, sizeof(text), path, "Device Minor") ||
        !str_to_i64(str_of(text), 0, 255, &number))
        return;
    device->minor = (int)number;
    (void)snprintf(name, sizeof(name), "nvidia%d", device->minor);
    gpu_add_node(pci->roots, device->nodes, &device->node_count, name);
}

static void add_nodes(const struct pci *pci, struct gpu_device *device)
{
    static const struct {
        const char *folder;
        const char *prefix;
        const char *format;
    } kinds[] = {
        { "drm", "renderD", "dri/renderD" },
        { "accel", "accel", "accel/accel" },
    };
    if (device->vendor == GPU_VENDOR_NVIDIA) {
        add_nvidia_nodes(pci, device);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        char name[32];
        int number = gpu_pci_child_minor(pci->roots, device->pci, kinds[i].folder, kinds[i].prefix);
        if (number < 0)
            continue;
        device->minor = number;
        (void)snprintf(name, sizeof(name), "%s%d", kinds[i].format, number);
        gpu_add_node(pci->roots, device->nodes, &device->node_count, name);
    }
}

static enum err look_at(const struct pci *pci, const char *address, struct gpu_inventory *out,
                        struct error *e)
{
    unsigned long class_code = 0;
    unsigned long vendor = 0;
    unsigned long number = 0;
    char normal[20];
    if (!gpu_pci_address(address, normal) || !read_number(pci, address, "class", &class_code) ||
        !read_number(pci, address, "vendor", &vendor) ||
        !read_number(pci, address, "device", &number) ||
        !is_accelerator(address, class_code, vendor))
        return ERR_OK;
    struct gpu_device *device = gpu_inventory_add(out);
    if (device == NULL)
        return err_set(e, ERR_LIMIT, "this node has more than %d devices", GPU_DEVICES_MAX);
    memcpy(device->pci, normal, sizeof(normal));
    memcpy(device->uuid, normal, sizeof(normal));
    device->numa_node = gpu_pci_numa_node(pci->roots, normal);
    set_model(device, vendor, number);
    add_nodes(pci, device);
    if (device->node_count == 0)
        out->count--; /* no driver serves it: nobody could open it */
    return ERR_OK;
}

static void add_shared(const struct pci *pci, struct gpu_inventory *inventory)
{
    static const char *const names[] = { "nvidiactl", "nvidia-uvm", "kfd" };
    if (inventory->count == 0)
        return;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        gpu_add_node(pci->roots, inventory->shared, &inventory->shared_count, names[i]);
}

static enum err pci_probe(void *state, struct gpu_inventory *out, struct error *e)
{
    struct pci *pci = state;
    char path[PATH_MAX];
    unsigned before[GPU_DEVICES_MAX];
    (void)snprintf(path, sizeof(path), "%s/bus/pci/devices", pci->roots->sysfs);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return err_errno(e, "open %s", path);
    AUTO(gpu_inventory) struct gpu_inventory found;
    gpu_inventory_init(&found, &gpu_driver_pci, 0);
    enum err rc = ERR_OK;
    const struct dirent *entry;
    /* readdir's buffer belongs to this DIR alone: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while (rc == ERR_OK && (entry = readdir(dir)) != NULL)
        rc = look_at(pci, entry->d_name, &found, e);
    (void)closedir(dir); /* was only read */
    if (rc != ERR_OK)
        return rc;
    gpu_inventory_sort(&found, before);
    add_shared(pci, &found);
    pci->count = found.count;
    for (size_t i = 0; i < found.count; i++) {
        memcpy(pci->address[i], found.devices[i].pci, sizeof(pci->address[i]));
        pci->is_lost[i] = false;
    }
    *out = found;
    found.devices = NULL;
    return ERR_OK;
}

static size_t pci_poll(void *state, struct gpu_event *out, size_t max)
{
    struct pci *pci = state;
    char path[PATH_MAX];
    for (size_t i = 0; i < pci->count; i++) {
        (void)snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", pci->roots->sysfs,
                       pci->address[i]);
        bool is_lost = access(path, F_OK) != 0;
        if (is_lost != pci->is_lost[i])
            gpu_queue_add(&pci->queue, is_lost ? GPU_EVENT_LOST : GPU_EVENT_BACK, (unsigned)i, 0);
        pci->is_lost[i] = is_lost;
    }
    return gpu_queue_take(&pci->queue, out, max);
}

const struct gpu_driver gpu_driver_pci = {
    .name = "pci",
    .open = pci_open,
    .close = pci_close,
    .probe = pci_probe,
    .poll = pci_poll,
    .processes = gpu_no_processes,
    .measure = gpu_no_measure,
};
