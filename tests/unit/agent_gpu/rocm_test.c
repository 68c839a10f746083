/* The ROCm driver against tests/fake/rocm.c: discovery, faults, use, old libraries and
 * ones that lie. */
#include "unit/agent_gpu/gpu_world.h"

/* `library`: which of the fakes; NVML finds nothing. */
static struct world *world_new(const char *library, const char *script)
{
    char path[256];
    struct error e;
    struct world *world = world_make("rocm", 226, "FAKE_ROCM", script);
    test_dir_path(&world->dir, "nvml", path);
    CHECK_OK("script", file_write_atomic(path, STR("* count 0\n"), 0600, &e), &e);
    (void)setenv("FAKE_NVML", path, 1); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(path, sizeof(path), "libfake-rocm-%s.so", library);
    world->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(dlerror(), world->library != NULL); /* NOLINT(concurrency-mt-unsafe): one thread */
    return world;
}

static void finds_devices_in_the_order_of_the_bus(void **state)
{
    (void)state;
    struct world *world = world_new("new", "* count 3\n0 bus 0x90\n1 bus 0x3b\n2 bus 0x80\n"
                                           "1 name AMD Instinct MI210\n1 memory 65520\n2 id 0\n");
    put_file(world, "bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    put_file(world, "bus/pci/devices/0000:3b:00.0/drm/renderD129/uevent", "");
    bool has_nodes = put_device(world, "dri/renderD129", 129) && put_device(world, "kfd", 0);
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("count", found.count == 3);
    CHECK("driver",
          strcmp(found.driver_name, "rocm") == 0 && strcmp(found.driver_version, "6.10.5") == 0);
    const struct gpu_device *first = &found.devices[0];
    CHECK("address", strcmp(first->pci, "0000:3b:00.0") == 0 && first->index == 0);
    CHECK("name", strcmp(first->model, "AMD Instinct MI210") == 0 &&
                      strcmp(first->class_name, "mi210") == 0);
    CHECK("memory", first->memory_mib == 65520);
    CHECK("place", first->numa_node == 1 && first->minor == 129);
    CHECK("uuid", strcmp(first->uuid, "GPU-0000000000001001") == 0);
    CHECK("kind",
          first->vendor == GPU_VENDOR_AMD && first->mig == GPU_MIG_NONE && !first->is_simulated);
    CHECK("without an id, its address", strcmp(found.devices[1].uuid, "0000:80:00.0") == 0);
    CHECK("others", strcmp(found.devices[2].class_name, "mi300x") == 0 &&
                        found.devices[2].minor == -1 && found.devices[2].node_count == 0);
    if (has_nodes) {
        CHECK("node", first->node_count == 1 && first->nodes[0].minor == 129 &&
                          strcmp(first->nodes[0].path, "/dev/dri/renderD129") == 0);
        CHECK("shared", found.shared_count == 1 && strcmp(found.shared[0].path, "/dev/kfd") == 0);
    }
    world_free(world);
}

static void tells_faults_once(void **state)
{
    (void)state;
    struct error e;
    struct gpu_event events[8];
    struct gpu_sample sample;
    /* The order of the bus is not the library's: what is told is the place in the inventory. */
    struct world *world = world_new("new", "0 bus 0x90\n0 ecc 3\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("old errors are no news", gpu_poll(world->gpu, events, 8) == 0);

    write_script(world, "0 bus 0x90\n0 ecc 5\n");
    CHECK("one", gpu_poll(world->gpu, events, 8) == 1);
    CHECK("errors of all blocks",
          events[0].kind == GPU_EVENT_ECC && events[0].device == 1 && events[0].code == 5);
    CHECK("once", gpu_poll(world->gpu, events, 8) == 0);

    write_script(world, "0 bus 0x90\n0 ecc 5\n* lost 1\n");
    CHECK("one at a time", gpu_poll(world->gpu, events, 1) == 1 && events[0].device == 0 &&
                               events[0].kind == GPU_EVENT_LOST);
    CHECK("the other", gpu_poll(world->gpu, events, 8) == 1 && events[0].device == 1 &&
                           events[0].kind == GPU_EVENT_LOST);
    CHECK("lost once", gpu_poll(world->gpu, events, 8) == 0);
    CHECK("measure", gpu_measure(world->gpu, 1, &sample, &e) == ERR_IO);

    write_script(world, "0 bus 0x90\n0 ecc 5\n1 lost 1\n");
    CHECK("back", gpu_poll(world->gpu, events, 8) == 1 && events[0].kind == GPU_EVENT_BACK &&
                      events[0].device == 1);
    world_free(world);
}

static void a_lost_device_does_not_hide_the_others(void **state)
{
    (void)state;
    struct error e;
    struct gpu_sample sample;
    struct world *world = world_new("new", "* count 3\n0 lost 1\n2 used 77\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("count", found.count == 2 && strcmp(found.devices[0].pci, "0000:11:00.0") == 0);
    CHECK_OK("measure", gpu_measure(world->gpu, 1, &sample, &e), &e);
    CHECK("places stay apart from numbers", sample.used_mib == 77);
    world_free(world);
}

static void tells_use(void **state)
{
    (void)state;
    struct error e;
    struct gpu_sample sample = { 0 };
    struct gpu_process processes[4];
    size_t count = 9;
    struct world *world = world_new("new", "0 used 1000\n0 util 42\n0 temp 61\n0 power 350000\n"
                                           "1 pid 4711\n1 pid_mib 512\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK_OK("measure", gpu_measure(world->gpu, 0, &sample, &e), &e);
    CHECK("figures", sample.used_mib == 1000 && sample.utilisation_percent == 42 &&
                         sample.temperature_c == 61 && sample.power_mw == 350000);
    CHECK_OK("processes", gpu_processes(world->gpu, 0, processes, 4, &count, &e), &e);
    CHECK("none", count == 0);
    CHECK_OK("processes", gpu_processes(world->gpu, 1, processes, 4, &count, &e), &e);
    CHECK("one", count == 1 && processes[0].pid == 4711 && processes[0].memory_mib == 512);
    CHECK("no more than asked for",
          gpu_processes(world->gpu, 1, processes, 0, &count, &e) == ERR_OK && count == 0);
    CHECK("foreign", gpu_processes(world->gpu, 2, processes, 4, &count, &e) == ERR_NOT_FOUND);
    CHECK("foreign", gpu_measure(world->gpu, 2, &sample, &e) == ERR_NOT_FOUND);
    write_script(world, "* code 6\n");
    CHECK("an error is told",
          gpu_processes(world->gpu, 1, processes, 4, &count, &e) == ERR_UNAVAILABLE &&
              strstr(e.text, "error 6") != NULL);
    world_free(world);
}

static void an_old_library_tells_what_it_can(void **state)
{
    (void)state;
    struct error e;
    struct gpu_sample sample = { 0 };
    struct gpu_event events[4];
    struct gpu_process processes[4];
    size_t count = 9;
    struct world *world = world_new("old", "0 used 5\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("devices", found.count == 2 && found.driver_version[0] == '\0');
    CHECK("the address is its identity", strcmp(found.devices[0].uuid, "0000:10:00.0") == 0);
    CHECK_OK("measure", gpu_measure(world->gpu, 0, &sample, &e), &e);
    CHECK("the rest is not known", sample.used_mib == 5 && sample.utilisation_percent == -1 &&
                                       sample.temperature_c == -1 && sample.power_mw == -1);
    write_script(world, "0 ecc 5\n1 lost 1\n");
    CHECK("losses only", gpu_poll(world->gpu, events, 4) == 1 && events[0].device == 1 &&
                             events[0].kind == GPU_EVENT_LOST);
    CHECK("processes cannot be told",
          gpu_processes(world->gpu, 0, processes, 4, &count, &e) == ERR_UNAVAILABLE && count == 9);
    world_free(world);
}

static void says_why_it_does_not_start(void **state)
{
    (void)state;
    static const struct {
        const char *name, *library, *script, *spec, *reason;
        enum err rc;
    } cases[] = {
        { "a missing symbol", "broken", "", "rocm", "rsmi_dev_memory_usage_get", ERR_UNAVAILABLE },
        { "no device", "new", "* init 8\n", "rocm", "(8)", ERR_UNAVAILABLE },
        { "an argument", "new", "", "rocm:1", "nothing after a colon", ERR_INVALID },
    };
    FOR_EACH_CASE (c, cases) {
        struct error e;
        struct world *world = world_new(c->library, c->script);
        CHECK(c->name, try_open(world, c->spec, &e) == c->rc);
        CHECK(e.text, strstr(e.text, c->reason) != NULL);
        world_free(world);
    }
}

static void is_chosen_automatically_when_it_finds_devices(void **state)
{
    (void)state;
    static const struct {
        const char *name, *library, *script, *driver;
    } cases[] = {
        { "devices", "new", "* count 1\n", "rocm" },
        { "none of them", "new", "* count 0\n", "none" },
        { "no device file system", "new", "* init 8\n", "none" },
        { "too old", "broken", "* count 1\n", "none" },
    };
    FOR_EACH_CASE (c, cases) {
        struct error e;
        struct world *world = world_new(c->library, c->script);
        CHECK_OK(c->name, try_open(world, "auto", &e), &e);
        AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
        CHECK_OK(c->name, gpu_probe(world->gpu, &found, &e), &e);
        CHECK(c->name, strcmp(found.driver_name, c->driver) == 0);
        world_free(world);
    }
}

static void a_library_that_lies_harms_nobody(void **state)
{
    (void)state;
    struct error e;
    struct gpu_sample sample;
    struct gpu_process processes[300];
    size_t count = 9;
    struct world *world = world_new("new", "* unended 1\n0 util 4000000000\n1 pid 0xffffffff\n"
                                           "0 pid 4711\n* listed 4000000000\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("a name ends", strlen(found.devices[0].model) == sizeof(found.devices[0].model) - 1);
    CHECK("and a version", strlen(found.driver_version) == sizeof(found.driver_version) - 1);
    CHECK_OK("measure", gpu_measure(world->gpu, 0, &sample, &e), &e);
    CHECK("more than all is not known", sample.utilisation_percent == -1);
    CHECK_OK("processes", gpu_processes(world->gpu, 0, processes, 300, &count, &e), &e);
    CHECK("only the one that is there", count == 1 && processes[0].pid == 4711);
    CHECK_OK("processes", gpu_processes(world->gpu, 1, processes, 300, &count, &e), &e);
    CHECK("-1 is no process", count == 0);

    struct gpu_inventory more = { 0 };
    write_script(world, "* count 4000000000\n");
    CHECK("no node has so many", gpu_probe(world->gpu, &more, &e) == ERR_LIMIT);
    CHECK("and nothing is told", more.devices == NULL && strstr(e.text, "128") != NULL);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_devices_in_the_order_of_the_bus),
        cmocka_unit_test(tells_faults_once),
        cmocka_unit_test(a_lost_device_does_not_hide_the_others),
        cmocka_unit_test(tells_use),
        cmocka_unit_test(an_old_library_tells_what_it_can),
        cmocka_unit_test(says_why_it_does_not_start),
        cmocka_unit_test(is_chosen_automatically_when_it_finds_devices),
        cmocka_unit_test(a_library_that_lies_harms_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
