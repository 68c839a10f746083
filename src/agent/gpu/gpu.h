/*
 * gpu.h - the accelerators of a node: what is there, is it healthy, who uses its memory.
 *
 * Drivers behind one table: NVML and ROCm SMI by dlopen (nothing of them is needed to build or to
 * run elsewhere), plain PCI by sysfs, simulated, none. A driver is used from one thread.
 */
#ifndef AGENT_GPU_GPU_H
#define AGENT_GPU_GPU_H

#include <sys/types.h>

#include "base/base.h"
#include "base/error.h"
#include "base/str.h"

enum {
    GPU_DEVICES_MAX = 128, /* of a node, MIG instances included */
    GPU_NODES_MAX = 8,     /* device files of one device, or shared by all */
    GPU_CLASS_MAX = 48,
    GPU_PATH_MAX = 256,
};

enum gpu_vendor { GPU_VENDOR_NVIDIA, GPU_VENDOR_AMD, GPU_VENDOR_INTEL, GPU_VENDOR_OTHER };
enum gpu_mig { GPU_MIG_NONE, GPU_MIG_OFF, GPU_MIG_INSTANCE };

/* A device file: what the workload sees at `path` is `host_path` on the node. Character device. */
struct gpu_node {
    char path[GPU_PATH_MAX];
    char host_path[GPU_PATH_MAX];
    unsigned major;
    unsigned minor;
};

struct gpu_device {
    unsigned index; /* place in the inventory: what grants speak of */
    enum gpu_vendor vendor;
    char model[96];                 /* "NVIDIA H100 80GB HBM3" */
    char uuid[64];                  /* "GPU-...", "MIG-...", "SIM-...", or the PCI address */
    char class_name[GPU_CLASS_MAX]; /* "h100-80g", "mig-1g.10gb", "mi300x" */
    char pci[20];                   /* "0000:3b:00.0"; "" when it has none */
    int minor;                      /* N of /dev/nvidiaN or renderDN; -1 unknown */
    int numa_node;                  /* -1 unknown */
    int64_t memory_mib;
    enum gpu_mig mig;
    int parent_minor; /* of a MIG instance, else -1 */
    bool is_simulated;
    struct gpu_node nodes[GPU_NODES_MAX];
    size_t node_count;
};

struct gpu_inventory {
    const char *driver_name;    /* static: "nvml", "rocm", "pci", "sim", "none" */
    char driver_version[64];    /* of the kernel driver; "" unknown */
    struct gpu_device *devices; /* owned */
    size_t count;
    struct gpu_node
        shared[GPU_NODES_MAX]; /* for every workload that has a device: /dev/nvidiactl */
    size_t shared_count;
};
void gpu_inventory_done(struct gpu_inventory *inventory);
DEFINE_CLEANUP_AT(gpu_inventory, struct gpu_inventory, gpu_inventory_done)

enum gpu_event_kind {
    GPU_EVENT_XID,  /* `code` is the XID */
    GPU_EVENT_ECC,  /* `code` is the count of uncorrected errors, which has grown */
    GPU_EVENT_LOST, /* the device does not answer any more */
    GPU_EVENT_BACK  /* it does again */
};

struct gpu_event {
    enum gpu_event_kind kind;
    unsigned device; /* index */
    uint64_t code;
};

struct gpu_process {
    pid_t pid; /* in the agent's pid namespace */
    int64_t memory_mib;
};

struct gpu_sample {
    int64_t used_mib;
    int utilisation_percent; /* -1: not known; also below */
    int temperature_c;
    int64_t power_mw;
};

struct gpu_options {
    const char *sysfs_root; /* NULL: "/sys"; another one in tests */
    const char *proc_root;  /* NULL: "/proc" */
    const char *dev_root;   /* NULL: "/dev"; prefix of host_path only */
    const char *state_dir;  /* sim: device files are made in here (c 195 N); NULL: none are made */
};

struct gpu; /* opaque: a driver that was opened */

/*
 * `spec`: "auto" (the first of nvml, rocm, pci that finds a device, else none), "nvml", "rocm",
 * "pci", "none", or "sim:4xh100", "sim:2xa100-40g+1xmi300x". Asking for one by name that is not
 * there fails with ERR_UNAVAILABLE and the reason.
 */
MUST_CHECK enum err gpu_open(struct gpu **out, const char *spec, const struct gpu_options *options,
                             struct error *e);
void gpu_free(struct gpu *gpu); /* NULL is a no-op */
DEFINE_CLEANUP(gpu, struct gpu *, gpu_free)

/* Everything that is there now, ordered by PCI address. Indices below refer to the last
 * inventory. */
MUST_CHECK enum err gpu_probe(struct gpu *gpu, struct gpu_inventory *out, struct error *e);

/* What happened since the last call; waits for no event, but as long as the vendor's library takes
 * to answer: see watch.h. At most `max`, the rest with the next call. */
size_t gpu_poll(struct gpu *gpu, struct gpu_event *out, size_t max);

/*
 * For tests/gpu, which hold them against what the card itself says: who holds memory of a
 * device, and its memory, use, heat and power now. ERR_NOT_FOUND: no such device;
 * ERR_UNAVAILABLE: cannot be told.
 */
MUST_CHECK enum err gpu_processes(struct gpu *gpu, unsigned device, struct gpu_process *out,
                                  size_t max, size_t *count, struct error *e);
MUST_CHECK enum err gpu_measure(struct gpu *gpu, unsigned device, struct gpu_sample *out,
                                struct error *e);

/* "h100-80g" out of a model's name and memory; a table first, then a tidied name. Returns `out`. */
char *gpu_class_name(enum gpu_vendor vendor, const char *model, int64_t memory_mib,
                     char out[GPU_CLASS_MAX]);
/* "nvidia"; "other" for an unknown number. Inline: the half with the network has no driver. */
static inline const char *gpu_vendor_name(unsigned vendor)
{
    static const char *const names[] = {
        [GPU_VENDOR_NVIDIA] = "nvidia",
        [GPU_VENDOR_AMD] = "amd",
        [GPU_VENDOR_INTEL] = "intel",
        [GPU_VENDOR_OTHER] = "other",
    };
    return names[vendor < COUNT_OF(names) ? vendor : GPU_VENDOR_OTHER];
}

enum { GPU_ENV_COUNT = 3 };
/* Names that a workload may never set itself: CUDA_, NVIDIA_ and ROCR_VISIBLE_DEVICES. */
extern const char *const gpu_env_names[GPU_ENV_COUNT];

/*
 * "NAME=value" for each of gpu_env_names, for a grant of these devices: always all three, so that a
 * workload without devices sees none whatever its image says. Real devices are named by UUID, which
 * stays true inside of a container that has only some of the files; simulated ones by index.
 */
MUST_CHECK enum err gpu_environment(const struct gpu_inventory *inventory, const unsigned *indices,
                                    size_t count, struct buf out[GPU_ENV_COUNT], struct error *e);

#endif
