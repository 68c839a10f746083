#include "agent/gpu/driver.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/file.h"

enum { SMALL_FILE_MAX = 16 * 1024, QUEUE_MAX = 1024 };

enum err gpu_no_processes(void *state, unsigned device, struct gpu_process *out, size_t max,
                          size_t *count, struct error *e)
{
    (void)state;
    (void)device;
    (void)out;
    (void)max;
    (void)count;
    return err_set(e, ERR_UNAVAILABLE, "this driver cannot tell who uses a device");
}

enum err gpu_no_measure(void *state, unsigned device, struct gpu_sample *out, struct error *e)
{
    (void)state;
    (void)device;
    (void)out;
    return err_set(e, ERR_UNAVAILABLE, "this driver cannot measure a device");
}

size_t gpu_no_poll(void *state, struct gpu_event *out, size_t max)
{
    (void)state;
    (void)out;
    (void)max;
    return 0;
}

void gpu_inventory_init(struct gpu_inventory *inventory, const struct gpu_driver *driver,
                        size_t count)
{
    *inventory = (struct gpu_inventory){ .driver_name = driver->name };
    size_t room = MIN_OF(MAX_OF(count, (size_t)1), (size_t)GPU_DEVICES_MAX);
    inventory->devices = mem_new(room, sizeof(struct gpu_device));
}

void gpu_inventory_done(struct gpu_inventory *inventory)
{
    mem_free(inventory->devices);
    *inventory = (struct gpu_inventory){ 0 };
}

struct gpu_device *gpu_inventory_add(struct gpu_inventory *inventory)
{
    if (inventory->count == GPU_DEVICES_MAX)
        return NULL;
    inventory->devices =
        mem_resize(inventory->devices, inventory->count + 1, sizeof(inventory->devices[0]));
    struct gpu_device *device = &inventory->devices[inventory->count];
    *device = (struct gpu_device){
        .index = (unsigned)inventory->count++,
        .minor = -1,
        .numa_node = -1,
        .parent_minor = -1,
    };
    return device;
}

/* Equal addresses are instances of one device: they keep the order they were found in. */
static int compare_devices(const void *a, const void *b)
{
    const struct gpu_device *left = a;
    const struct gpu_device *right = b;
    int order = strcmp(left->pci, right->pci);
    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

void gpu_inventory_sort(struct gpu_inventory *inventory, unsigned before[GPU_DEVICES_MAX])
{
    qsort(inventory->devices, inventory->count, sizeof(inventory->devices[0]), compare_devices);
    for (size_t i = 0; i < inventory->count; i++) {
        before[i] = inventory->devices[i].index;
        inventory->devices[i].index = (unsigned)i;
    }
}

bool gpu_format_path(char out[GPU_PATH_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(out, GPU_PATH_MAX, fmt, args);
    va_end(args);
    return size >= 0 && size < GPU_PATH_MAX;
}

void gpu_add_node(const struct gpu_roots *roots, struct gpu_node nodes[GPU_NODES_MAX],
                  size_t *count, const char *name)
{
    struct stat st;
    struct gpu_node node = { .major = 0 };
    if (*count == GPU_NODES_MAX || !gpu_format_path(node.path, "/dev/%s", name) ||
        !gpu_format_path(node.host_path, "%s/%s", roots->dev, name))
        return;
    if (stat(node.host_path, &st) != 0 || !S_ISCHR(st.st_mode))
        return;
    node.major = major(st.st_rdev);
    node.minor = minor(st.st_rdev);
    nodes[(*count)++] = node;
}

bool gpu_read_line(char *out, size_t size, const char *fmt, ...)
{
    char path[PATH_MAX];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(path, sizeof(path), fmt, args);
    va_end(args);
    AUTO(buf) struct buf text = { 0 };
    if (length >= (int)sizeof(path) || file_read(path, SMALL_FILE_MAX, &text, NULL) != ERR_OK)
        return false;
    struct str rest = buf_str(&text);
    struct str line = str_cut(&rest, '\n');
    if (line.size >= size)
        return false;
    (void)snprintf(out, size, "%.*s", STR_ARG(line));
    return true;
}

static struct str trim(struct str text)
{
    while (text.size > 0 && isspace((unsigned char)text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && isspace((unsigned char)text.data[text.size - 1]))
        text.size--;
    return text;
}

bool gpu_read_field(char *out, size_t size, const char *path, const char *name)
{
    AUTO(buf) struct buf text = { 0 };
    if (file_read(path, SMALL_FILE_MAX, &text, NULL) != ERR_OK)
        return false;
    struct str rest = buf_str(&text);
    while (rest.size > 0) {
        struct str line = str_cut(&rest, '\n');
        struct str key = trim(str_cut(&line, ':'));
        struct str value = trim(line);
        if (!str_is(key, name) || value.size >= size)
            continue;
        (void)snprintf(out, size, "%.*s", STR_ARG(value));
        return true;
    }
    return false;
}

bool gpu_pci_address(const char *text, char out[20])
{
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned device = 0;
    unsigned function = 0;
    int used = 0;
    /* The numbers are bounded right below: NOLINTNEXTLINE(cert-err34-c) */
    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) != 4 ||
        text[used] != '\0')
        return false;
    (void)snprintf(out, 20, "%04x:%02x:%02x.%x", domain, bus & 0xff, device & 0xff, function & 0xf);
    return true;
}

int gpu_pci_numa_node(const struct gpu_roots *roots, const char *address)
{
    char line[16];
    int64_t node = 0;
    if (!gpu_read_line(line, sizeof(line), "%s/bus/pci/devices/%s/numa_node", roots->sysfs,
                       address) ||
        !str_to_i64(str_of(line), -1, 4095, &node))
        return -1;
    return (int)node;
}

int gpu_pci_child_minor(const struct gpu_roots *roots, const char *address, const char *folder,
                        const char *prefix)
{
    char path[PATH_MAX];
    int found = -1;
    if (snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/%s", roots->sysfs, address, folder) >=
        (int)sizeof(path))
        return -1;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return -1;
    size_t skip = strlen(prefix);
    /* readdir's buffer belongs to this DIR alone: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        int64_t number = 0;
        if (strncmp(entry->d_name, prefix, skip) == 0 &&
            str_to_i64(str_of(entry->d_name + skip), 0, 1 << 20, &number))
            found = (int)number;
    }
    (void)closedir(dir); /* was only read */
    return found;
}

void gpu_queue_add(struct gpu_event_queue *queue, enum gpu_event_kind kind, unsigned device,
                   uint64_t code)
{
    if (queue->events.count == QUEUE_MAX)
        return; /* nobody fetches; the first events say what happened */
    struct gpu_event event = { .kind = kind, .device = device, .code = code };
    vec_push(&queue->events, event);
}

size_t gpu_queue_take(struct gpu_event_queue *queue, struct gpu_event *out, size_t max)
{
    size_t count = MIN_OF(max, queue->events.count);
    if (count == 0)
        return 0;
    memcpy(out, queue->events.items, count * sizeof(out[0]));
    queue->events.count -= count;
    memmove(queue->events.items, queue->events.items + count, queue->events.count * sizeof(out[0]));
    return count;
}
