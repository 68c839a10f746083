#include "agent/gpu/gpu.h"

#include <stdio.h>
#include <string.h>

#include "agent/gpu/driver.h"

struct gpu {
    const struct gpu_driver *driver;
    void *state; /* the driver's */
    struct gpu_roots roots;
};

static const struct gpu_driver *const drivers[] = { &gpu_driver_nvml, &gpu_driver_rocm,
                                                    &gpu_driver_pci, &gpu_driver_sim,
                                                    &gpu_driver_none };
/* What "auto" tries, in this order. */
static const struct gpu_driver *const automatic[] = { &gpu_driver_nvml, &gpu_driver_rocm,
                                                      &gpu_driver_pci };

const char *const gpu_env_names[GPU_ENV_COUNT] = { "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
                                                   "ROCR_VISIBLE_DEVICES" };
enum { ENV_CUDA, ENV_NVIDIA, ENV_ROCR };

static enum err none_open(void **state, const struct gpu_roots *roots, const char *argument,
                          struct error *e)
{
    (void)state;
    (void)roots;
    if (argument[0] != '\0')
        return err_set(e, ERR_INVALID, "gpu: \"none\" takes nothing after a colon");
    return ERR_OK;
}

static void none_close(void *state)
{
    (void)state;
}

static enum err none_probe(void *state, struct gpu_inventory *out, struct error *e)
{
    (void)state;
    (void)e;
    gpu_inventory_init(out, &gpu_driver_none, 0);
    return ERR_OK;
}

const struct gpu_driver gpu_driver_none = {
    .name = "none",
    .open = none_open,
    .close = none_close,
    .probe = none_probe,
    .poll = gpu_no_poll,
    .processes = gpu_no_processes,
    .measure = gpu_no_measure,
};

static enum err set_root(char out[PATH_MAX / 4], const char *given, const char *usual,
                         struct error *e)
{
    const char *path = given != NULL ? given : usual;
    if (strlen(path) >= PATH_MAX / 4)
        return err_set(e, ERR_LIMIT, "the path %.100s... is too long", path);
    memcpy(out, path, strlen(path) + 1);
    return ERR_OK;
}

static enum err set_roots(struct gpu_roots *roots, const struct gpu_options *options,
                          struct error *e)
{
    static const struct gpu_options usual = { 0 };
    const struct gpu_options *given = options != NULL ? options : &usual;
    enum err rc = set_root(roots->sysfs, given->sysfs_root, "/sys", e);
    if (rc == ERR_OK)
        rc = set_root(roots->proc, given->proc_root, "/proc", e);
    if (rc == ERR_OK)
        rc = set_root(roots->dev, given->dev_root, "/dev", e);
    if (rc == ERR_OK)
        rc = set_root(roots->state, given->state_dir, "", e);
    return rc;
}

static bool has_devices(const struct gpu_driver *driver, void *state)
{
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    return driver->probe(state, &found, NULL) == ERR_OK && found.count > 0;
}

/* A driver that opens but finds nothing is as good as one that does not open. */
static enum err open_automatic(struct gpu *gpu)
{
    for (size_t i = 0; i < COUNT_OF(automatic); i++) {
        void *state = NULL;
        if (automatic[i]->open(&state, &gpu->roots, "", NULL) != ERR_OK)
            continue;
        if (has_devices(automatic[i], state)) {
            gpu->driver = automatic[i];
            gpu->state = state;
            return ERR_OK;
        }
        automatic[i]->close(state);
    }
    gpu->driver = &gpu_driver_none;
    return ERR_OK;
}

static enum err open_named(struct gpu *gpu, const char *spec, struct error *e)
{
    struct str rest = str_of(spec);
    struct str name = str_cut(&rest, ':');
    for (size_t i = 0; i < COUNT_OF(drivers); i++) {
        if (!str_is(name, drivers[i]->name))
            continue;
        enum err rc = drivers[i]->open(&gpu->state, &gpu->roots, rest.size > 0 ? rest.data : "", e);
        if (rc == ERR_OK)
            gpu->driver = drivers[i];
        return rc;
    }
    return err_set(e, ERR_INVALID, "gpu: \"%.60s\" is none of auto, nvml, rocm, pci, sim:..., none",
                   spec);
}

enum err gpu_open(struct gpu **out, const char *spec, const struct gpu_options *options,
                  struct error *e)
{
    AUTO(gpu) struct gpu *gpu = mem_new(1, sizeof(*gpu));
    enum err rc = set_roots(&gpu->roots, options, e);
    if (rc == ERR_OK)
        rc = strcmp(spec, "auto") == 0 ? open_automatic(gpu) : open_named(gpu, spec, e);
    if (rc != ERR_OK)
        return rc;
    *out = TAKE(gpu);
    return ERR_OK;
}

void gpu_free(struct gpu *gpu)
{
    if (gpu == NULL)
        return;
    if (gpu->driver != NULL)
        gpu->driver->close(gpu->state);
    mem_free(gpu);
}

enum err gpu_probe(struct gpu *gpu, struct gpu_inventory *out, struct error *e)
{
    return gpu->driver->probe(gpu->state, out, e);
}

size_t gpu_poll(struct gpu *gpu, struct gpu_event *out, size_t max)
{
    return gpu->driver->poll(gpu->state, out, max);
}

enum err gpu_processes(struct gpu *gpu, unsigned device, struct gpu_process *out, size_t max,
                       size_t *count, struct error *e)
{
    return gpu->driver->processes(gpu->state, device, out, max, count, e);
}

enum err gpu_measure(struct gpu *gpu, unsigned device, struct gpu_sample *out, struct error *e)
{
    return gpu->driver->measure(gpu->state, device, out, e);
}

/* A name that the vendor's runtime understands: its own UUID where there is one. */
static void add_name(struct buf *out, const struct gpu_device *device)
{
    bool has_uuid = !device->is_simulated && (strncmp(device->uuid, "GPU-", 4) == 0 ||
                                              strncmp(device->uuid, "MIG-", 4) == 0);
    if (out->size > 0)
        buf_add_char(out, ',');
    if (has_uuid)
        buf_add_text(out, device->uuid);
    else
        buf_format(out, "%u", device->index);
}

static void add_variable(struct buf *out, const char *name, const struct buf *list,
                         const char *when_empty)
{
    buf_clear(out);
    buf_format(out, "%s=%s", name, list->size > 0 ? list->data : when_empty);
}

enum err gpu_environment(const struct gpu_inventory *inventory, const unsigned *indices,
                         size_t count, struct buf out[GPU_ENV_COUNT], struct error *e)
{
    AUTO(buf) struct buf nvidia = { 0 };
    AUTO(buf) struct buf amd = { 0 };
    for (size_t i = 0; i < count; i++) {
        if (indices[i] >= inventory->count)
            return err_set(e, ERR_NOT_FOUND, "this node has no device %u", indices[i]);
        const struct gpu_device *device = &inventory->devices[indices[i]];
        if (device->vendor == GPU_VENDOR_NVIDIA)
            add_name(&nvidia, device);
        if (device->vendor == GPU_VENDOR_AMD)
            add_name(&amd, device);
    }
    /* An empty list is no device for CUDA; the others have a word for it. */
    add_variable(&out[ENV_CUDA], gpu_env_names[ENV_CUDA], &nvidia, "");
    add_variable(&out[ENV_NVIDIA], gpu_env_names[ENV_NVIDIA], &nvidia, "void");
    add_variable(&out[ENV_ROCR], gpu_env_names[ENV_ROCR], &amd, "-1");
    return ERR_OK;
}
