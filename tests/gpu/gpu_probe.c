/* gpu_probe SPEC - what the agent's driver sees, as lines of words, for tests/gpu/run and
 * for people. */
#include <stdio.h>
#include <string.h>

#include "agent/gpu/gpu.h"

enum { PROCESSES_MAX = 256 };

static void print_nodes(const char *whose, const struct gpu_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)printf("node %s %s %s %u:%u\n", whose, nodes[i].path, nodes[i].host_path,
                     nodes[i].major, nodes[i].minor);
}

static void print_device(struct gpu *gpu, const struct gpu_device *device)
{
    struct error e = { 0 };
    struct gpu_sample sample;
    struct gpu_process processes[PROCESSES_MAX];
    size_t count = 0;
    static const char *const mig[] = { "-", "off", "instance" };
    (void)printf("device %u %s %s class=%s memory_mib=%lld minor=%d numa=%d mig=%s model=%s\n",
                 device->index, device->uuid, device->pci, device->class_name,
                 (long long)device->memory_mib, device->minor, device->numa_node, mig[device->mig],
                 device->model);
    print_nodes(device->uuid, device->nodes, device->node_count);
    if (gpu_measure(gpu, device->index, &sample, &e) == ERR_OK)
        (void)printf("sample %s used_mib=%lld percent=%d celsius=%d milliwatts=%lld\n",
                     device->uuid, (long long)sample.used_mib, sample.utilisation_percent,
                     sample.temperature_c, (long long)sample.power_mw);
    else
        (void)printf("unmeasured %s %s\n", device->uuid, e.text);
    if (gpu_processes(gpu, device->index, processes, PROCESSES_MAX, &count, &e) != ERR_OK)
        (void)printf("unlisted %s %s\n", device->uuid, e.text);
    for (size_t i = 0; i < count; i++)
        (void)printf("process %s %d memory_mib=%lld\n", device->uuid, (int)processes[i].pid,
                     (long long)processes[i].memory_mib);
}

static enum err print_all(const char *spec, struct error *e)
{
    AUTO(gpu) struct gpu *gpu = NULL;
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    enum err rc = gpu_open(&gpu, spec, NULL, e);
    if (rc == ERR_OK)
        rc = gpu_probe(gpu, &found, e);
    if (rc != ERR_OK)
        return rc;
    (void)printf("driver %s %s\n", found.driver_name, found.driver_version);
    for (size_t i = 0; i < found.count; i++)
        print_device(gpu, &found.devices[i]);
    print_nodes("shared", found.shared, found.shared_count);
    struct gpu_event events[16];
    size_t count = gpu_poll(gpu, events, COUNT_OF(events));
    for (size_t i = 0; i < count; i++)
        (void)printf("event %u kind=%d code=%llu\n", events[i].device, (int)events[i].kind,
                     (unsigned long long)events[i].code);
    return ERR_OK;
}

int main(int argc, char **argv)
{
    struct error e = { 0 };
    if (print_all(argc > 1 ? argv[1] : "auto", &e) == ERR_OK)
        return 0;
    (void)fprintf(stderr, "gpu_probe: %s\n", e.text);
    return e.code == ERR_UNAVAILABLE ? 77 : 1;
}
