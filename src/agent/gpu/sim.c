/*
 * Simulated devices, for trying everything out without hardware. They are marked as such wherever
 * they appear. With a state directory they have device files (real majors, no driver behind them):
 * opening one that was granted fails with ENXIO, one that was not with EPERM, which is how tests
 * see that the fence holds. Lines appended to <state>/sim-events ("0 xid 79", "1 lost 0", "1 back
 * 0", "2 ecc 1") become events.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/gpu/driver.h"
#include "base/id.h"
#include "os/fd.h"
#include "os/file.h"

enum { NVIDIA_MAJOR = 195, DRM_MAJOR = 226, DRM_RENDER_FIRST = 128 };

static const struct model {
    const char *name; /* in the spec; beside it the class's name is understood */
    enum gpu_vendor vendor;
    const char *model;
    int64_t memory_mib;
} models[] = {
    /* clang-format off */
    { "h100",     GPU_VENDOR_NVIDIA, "NVIDIA H100 80GB HBM3 (simulated)",  81559 },
    { "h200",     GPU_VENDOR_NVIDIA, "NVIDIA H200 (simulated)",            143771 },
    { "a100",     GPU_VENDOR_NVIDIA, "NVIDIA A100-SXM4-80GB (simulated)",  81920 },
    { "a100-40g", GPU_VENDOR_NVIDIA, "NVIDIA A100-SXM4-40GB (simulated)",  40960 },
    { "l40s",     GPU_VENDOR_NVIDIA, "NVIDIA L40S (simulated)",            46068 },
    { "v100",     GPU_VENDOR_NVIDIA, "Tesla V100-SXM2-32GB (simulated)",   32768 },
    { "t4",       GPU_VENDOR_NVIDIA, "Tesla T4 (simulated)",               15360 },
    { "mi300x",   GPU_VENDOR_AMD,    "AMD Instinct MI300X (simulated)",    196592 },
    { "mi210",    GPU_VENDOR_AMD,    "AMD Instinct MI210 (simulated)",     65520 },
    /* clang-format on */
};

struct sim {
    const struct gpu_roots *roots;
    const struct model *devices[GPU_DEVICES_MAX];
    size_t count;
    off_t events_read; /* bytes of sim-events that were looked at */
    struct gpu_event_queue queue;
};

static const struct model *find_model(struct str name)
{
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        char class_name[GPU_CLASS_MAX];
        gpu_class_name(models[i].vendor, models[i].model, models[i].memory_mib, class_name);
        if (str_is(name, models[i].name) || str_is(name, class_name))
            return &models[i];
    }
    return NULL;
}

/* "4xh100+1xmi300x" */
static enum err parse(struct sim *sim, struct str rest, struct error *e)
{
    while (rest.size > 0) {
        struct str part = str_cut(&rest, '+');
        struct str name = part;
        struct str number = str_cut(&name, 'x');
        int64_t count = 0;
        const struct model *model = find_model(name);
        if (!str_to_i64(number, 1, GPU_DEVICES_MAX, &count) || model == NULL)
            return err_set(e, ERR_INVALID,
                           "gpu: sim:%.*s is not COUNTxMODEL, like sim:4xh100 or sim:2xa100-40g",
                           STR_ARG(part));
        if (sim->count + (size_t)count > GPU_DEVICES_MAX)
            return err_set(e, ERR_LIMIT, "gpu: sim has more than %d devices", GPU_DEVICES_MAX);
        for (int64_t i = 0; i < count; i++)
            sim->devices[sim->count++] = model;
    }
    if (sim->count == 0)
        return err_set(e, ERR_INVALID, "gpu: sim wants devices, like sim:4xh100");
    return ERR_OK;
}

/* The file may be there from an earlier start. */
static enum err make_node(const struct sim *sim, size_t index, struct gpu_node *out,
                          struct error *e)
{
    bool is_amd = sim->devices[index]->vendor == GPU_VENDOR_AMD;
    unsigned minor_number = (unsigned)index + (is_amd ? DRM_RENDER_FIRST : 0);
    *out = (struct gpu_node){ .major = is_amd ? DRM_MAJOR : NVIDIA_MAJOR, .minor = minor_number };
    (void)snprintf(out->path, sizeof(out->path), is_amd ? "/dev/dri/renderD%u" : "/dev/nvidia%u",
                   minor_number);
    if (!gpu_format_path(out->host_path, "%s/%s%u", sim->roots->state,
                         is_amd ? "renderD" : "nvidia", minor_number))
        return err_set(e, ERR_LIMIT, "the directory for simulated devices has too long a path");
    if (mknod(out->host_path, S_IFCHR | 0666, makedev(out->major, out->minor)) != 0 &&
        errno != EEXIST)
        return err_errno(e, "make the simulated device %s", out->host_path);
    if (chmod(out->host_path, 0666) != 0)
        return err_errno(e, "set the mode of %s", out->host_path);
    return ERR_OK;
}

static enum err make_nodes(const struct sim *sim, struct error *e)
{
    struct gpu_node ignored;
    enum err rc = file_make_dirs(sim->roots->state, 0711, e);
    for (size_t i = 0; i < sim->count && rc == ERR_OK; i++)
        rc = make_node(sim, i, &ignored, e);
    return rc;
}

static enum err sim_open(void **state, const struct gpu_roots *roots, const char *argument,
                         struct error *e)
{
    AUTO(mem) char *memory = mem_new(1, sizeof(struct sim));
    struct sim *sim = (void *)memory;
    sim->roots = roots;
    enum err rc = parse(sim, str_of(argument), e);
    if (rc == ERR_OK && roots->state[0] != '\0')
        rc = make_nodes(sim, e);
    if (rc != ERR_OK)
        return rc;
    *state = TAKE(memory);
    return ERR_OK;
}

static void sim_close(void *state)
{
    struct sim *sim = state;
    vec_done(&sim->queue.events);
    mem_free(sim);
}

/* The same at each start, another one on another node or in another state directory. */
static uint64_t sim_identity(const struct sim *sim)
{
    static const uint8_t key[16] = "simulated device";
    char host[65] = { 0 };
    (void)gethostname(host, sizeof(host) - 1); /* "" is as good a name */
    AUTO(buf) struct buf text = { 0 };
    buf_format(&text, "%s %s", host, sim->roots->state);
    return siphash(key, text.data, text.size);
}

static enum err sim_probe(void *state, struct gpu_inventory *out, struct error *e)
{
    struct sim *sim = state;
    uint64_t identity = sim_identity(sim);
    AUTO(gpu_inventory) struct gpu_inventory found;
    gpu_inventory_init(&found, &gpu_driver_sim, sim->count);
    (void)snprintf(found.driver_version, sizeof(found.driver_version), "simulated");
    for (size_t i = 0; i < sim->count; i++) {
        const struct model *model = sim->devices[i];
        struct gpu_device *device = gpu_inventory_add(&found);
        device->vendor = model->vendor;
        device->memory_mib = model->memory_mib;
        device->minor = (int)i;
        device->is_simulated = true;
        (void)snprintf(device->model, sizeof(device->model), "%s", model->model);
        (void)snprintf(device->uuid, sizeof(device->uuid), "SIM-%016llx-%02zu",
                       (unsigned long long)identity, i);
        gpu_class_name(model->vendor, model->model, model->memory_mib, device->class_name);
        if (sim->roots->state[0] == '\0')
            continue;
        enum err rc = make_node(sim, i, &device->nodes[0], e);
        if (rc != ERR_OK)
            return rc;
        device->node_count = 1;
    }
    *out = found;
    found.devices = NULL;
    return ERR_OK;
}

static void read_event(struct sim *sim, struct str line)
{
    static const char *const kinds[] = {
        [GPU_EVENT_XID] = "xid",
        [GPU_EVENT_ECC] = "ecc",
        [GPU_EVENT_LOST] = "lost",
        [GPU_EVENT_BACK] = "back",
    };
    int64_t device = 0;
    int64_t code = 0;
    struct str number = str_cut(&line, ' ');
    struct str word = str_cut(&line, ' ');
    if (!str_to_i64(number, 0, (int64_t)sim->count - 1, &device) ||
        !str_to_i64(line, 0, INT64_MAX, &code))
        return; /* a line that says nothing */
    for (size_t kind = 0; kind < COUNT_OF(kinds); kind++) {
        if (str_is(word, kinds[kind]))
            gpu_queue_add(&sim->queue, (enum gpu_event_kind)kind, (unsigned)device, (uint64_t)code);
    }
}

/* Only whole lines: the rest is still being written. */
static void read_events(struct sim *sim)
{
    char path[PATH_MAX];
    char text[4096];
    if (snprintf(path, sizeof(path), "%s/sim-events", sim->roots->state) >= (int)sizeof(path))
        return;
    AUTO(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : pread(fd, text, sizeof(text), sim->events_read);
    if (got <= 0)
        return;
    struct str rest = { text, (size_t)got };
    const char *end = memrchr(text, '\n', rest.size);
    if (end == NULL)
        return;
    rest.size = (size_t)(end - text) + 1;
    sim->events_read += (off_t)rest.size;
    while (rest.size > 0)
        read_event(sim, str_cut(&rest, '\n'));
}

static size_t sim_poll(void *state, struct gpu_event *out, size_t max)
{
    struct sim *sim = state;
    if (sim->roots->state[0] != '\0')
        read_events(sim);
    return gpu_queue_take(&sim->queue, out, max);
}

static enum err check_device(const struct sim *sim, unsigned device, struct error *e)
{
    if (device >= sim->count)
        return err_set(e, ERR_NOT_FOUND, "there is no simulated device %u", device);
    return ERR_OK;
}

static enum err sim_processes(void *state, unsigned device, struct gpu_process *out, size_t max,
                              size_t *count, struct error *e)
{
    (void)out;
    (void)max;
    enum err rc = check_device(state, device, e);
    if (rc == ERR_OK)
        *count = 0; /* nobody can use its memory */
    return rc;
}

static enum err sim_measure(void *state, unsigned device, struct gpu_sample *out, struct error *e)
{
    enum err rc = check_device(state, device, e);
    if (rc == ERR_OK)
        *out = (struct gpu_sample){ 0, -1, -1, -1 };
    return rc;
}

const struct gpu_driver gpu_driver_sim = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .probe = sim_probe,
    .poll = sim_poll,
    .processes = sim_processes,
    .measure = sim_measure,
};
