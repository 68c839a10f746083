/* driver.h - the table behind gpu.h, and what several drivers need. */
#ifndef AGENT_GPU_DRIVER_H
#define AGENT_GPU_DRIVER_H

#include <limits.h>

#include "agent/gpu/gpu.h"
#include "base/mem.h"

/* The options with their defaults filled in; owned by struct gpu, outlives the driver's state. */
struct gpu_roots {
    char sysfs[PATH_MAX / 4];
    char proc[PATH_MAX / 4];
    char dev[PATH_MAX / 4];
    char state[PATH_MAX / 4]; /* "" none */
};

struct gpu_driver {
    const char *name;
    /* `argument` is what follows the colon of the spec, "" when nothing does. ERR_UNAVAILABLE: the
     * library or the hardware is not there. */
    enum err (*open)(void **state, const struct gpu_roots *roots, const char *argument,
                     struct error *e);
    void (*close)(void *state);
    enum err (*probe)(void *state, struct gpu_inventory *out, struct error *e);
    size_t (*poll)(void *state, struct gpu_event *out, size_t max);
    enum err (*processes)(void *state, unsigned device, struct gpu_process *out, size_t max,
                          size_t *count, struct error *e);
    enum err (*measure)(void *state, unsigned device, struct gpu_sample *out, struct error *e);
};

extern const struct gpu_driver gpu_driver_nvml;
extern const struct gpu_driver gpu_driver_rocm;
extern const struct gpu_driver gpu_driver_pci;
extern const struct gpu_driver gpu_driver_sim;
extern const struct gpu_driver gpu_driver_none;

/* For drivers that cannot tell. */
enum err gpu_no_processes(void *state, unsigned device, struct gpu_process *out, size_t max,
                          size_t *count, struct error *e);
enum err gpu_no_measure(void *state, unsigned device, struct gpu_sample *out, struct error *e);
size_t gpu_no_poll(void *state, struct gpu_event *out, size_t max);

/* Room for `count` devices, whatever a library says no more than GPU_DEVICES_MAX; zeroed before. */
void gpu_inventory_init(struct gpu_inventory *inventory, const struct gpu_driver *driver,
                        size_t count);
/* A device to fill in: index, unknown fields set to unknown. NULL: GPU_DEVICES_MAX are there. */
struct gpu_device *gpu_inventory_add(struct gpu_inventory *inventory);
/* Orders by PCI address, then as found, and numbers them; before[i] is the place that i had. */
void gpu_inventory_sort(struct gpu_inventory *inventory, unsigned before[GPU_DEVICES_MAX]);

/* Adds /dev/<name> when it is a character device there and there is room for it. */
void gpu_add_node(const struct gpu_roots *roots, struct gpu_node nodes[GPU_NODES_MAX],
                  size_t *count, const char *name);

/* Formats into a device file's path; false when it does not fit. */
bool gpu_format_path(char out[GPU_PATH_MAX], const char *fmt, ...) PRINTF(2, 3);

/* Reads one line of a small file below a root, without its newline; false when it is not there. */
bool gpu_read_line(char *out, size_t size, const char *fmt, ...) PRINTF(3, 4);
/* The value after "name:" in such a file, blanks trimmed. */
bool gpu_read_field(char *out, size_t size, const char *path, const char *name);

/* "00000000:3B:00.0" and the like to "0000:3b:00.0". */
bool gpu_pci_address(const char *text, char out[20]);
int gpu_pci_numa_node(const struct gpu_roots *roots, const char *address);
/* N of the first name like "<prefix>N" in <device>/<folder>; -1: none. */
int gpu_pci_child_minor(const struct gpu_roots *roots, const char *address, const char *folder,
                        const char *prefix);

/* Events that were found and not yet fetched. */
struct gpu_event_queue {
    VEC(struct gpu_event) events;
};
void gpu_queue_add(struct gpu_event_queue *queue, enum gpu_event_kind kind, unsigned device,
                   uint64_t code);
size_t gpu_queue_take(struct gpu_event_queue *queue, struct gpu_event *out, size_t max);

#endif
