/* The NVML driver against tests/fake/nvml.c: discovery, MIG, faults, use. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>

#include "agent/gpu/watch.h"
#include "os/clock.h"
#include "unit/agent_gpu/gpu_world.h"

enum { PATIENCE_MS = 20 * 1000 };

static struct world *world_new(const char *script)
{
    return world_make("nvml", 195, "FAKE_NVML", script);
}

static void finds_devices_in_the_order_of_the_bus(void **state)
{
    (void)state;
    struct world *world =
        world_new("* count 3\n0 bus 0x90\n1 bus 0x3b\n1 name NVIDIA A100-SXM4-40GB\n"
                  "1 memory 40960\n2 bus 0x80\n");
    put_file(world, "bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    bool has_nodes = put_device(world, "nvidia1", 1) && put_device(world, "nvidiactl", 255);
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("count", found.count == 3);
    CHECK("driver", strcmp(found.driver_version, "580.65.06") == 0);
    const struct gpu_device *first = &found.devices[0];
    CHECK("address", strcmp(first->pci, "0000:3b:00.0") == 0 && first->index == 0);
    CHECK("class", strcmp(first->class_name, "a100-40g") == 0);
    CHECK("identity", first->minor == 1 && first->numa_node == 1 && first->memory_mib == 40960);
    CHECK("uuid", strcmp(first->uuid, "GPU-00000000-0000-0000-0000-000000000001") == 0);
    CHECK("kind", first->mig == GPU_MIG_OFF && !first->is_simulated && first->parent_minor == -1);
    CHECK("others", strcmp(found.devices[1].pci, "0000:80:00.0") == 0 &&
                        strcmp(found.devices[2].class_name, "h100-80g") == 0);
    if (has_nodes) {
        CHECK("node", first->node_count == 1 && first->nodes[0].major == 195);
        CHECK("node", strcmp(first->nodes[0].path, "/dev/nvidia1") == 0);
        CHECK("shared", found.shared_count == 1 && found.shared[0].minor == 255);
    }
    CHECK("no node", found.devices[2].node_count == 0);
    world_free(world);
}

static void offers_the_instances_of_a_divided_device(void **state)
{
    (void)state;
    struct world *world = world_new("* count 2\n1 mig 3\n");
    put_file(world, "driver/nvidia/capabilities/gpu1/mig/gi2/access",
             "DeviceFileMinor: 21\nDeviceFileMode: 292\n");
    put_file(world, "driver/nvidia/capabilities/gpu1/mig/gi2/ci0/access", "DeviceFileMinor: 22\n");
    bool has_nodes = put_device(world, "nvidia1", 1) &&
                     put_device(world, "nvidia-caps/nvidia-cap21", 21) &&
                     put_device(world, "nvidia-caps/nvidia-cap22", 22);
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("count", found.count == 4);
    CHECK("whole", found.devices[0].mig == GPU_MIG_OFF);
    for (size_t i = 1; i < 4; i++) {
        const struct gpu_device *instance = &found.devices[i];
        CHECK("instance", instance->mig == GPU_MIG_INSTANCE && instance->parent_minor == 1);
        CHECK("class", strcmp(instance->class_name, "mig-1g.10gb") == 0);
        CHECK("uuid", strncmp(instance->uuid, "MIG-", 4) == 0);
    }
    if (has_nodes) {
        CHECK("nodes", found.devices[2].node_count == 3);
        CHECK("capability",
              strcmp(found.devices[2].nodes[2].path, "/dev/nvidia-caps/nvidia-cap22") == 0);
        CHECK("no capability", found.devices[1].node_count == 1);
    }
    world_free(world);
}

static void tells_faults_once(void **state)
{
    (void)state;
    struct error e;
    struct gpu_event events[8];
    struct world *world = world_new("* count 2\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("quiet", gpu_poll(world->gpu, events, 8) == 0);

    write_script(world, "* count 2\n1 xid 79\n0 ecc 2\n");
    CHECK("two", gpu_poll(world->gpu, events, 8) == 2);
    CHECK("xid", events[0].kind == GPU_EVENT_XID && events[0].device == 1 && events[0].code == 79);
    CHECK("ecc", events[1].kind == GPU_EVENT_ECC && events[1].device == 0 && events[1].code == 2);
    CHECK("once", gpu_poll(world->gpu, events, 8) == 0);

    write_script(world, "* count 2\n1 xid 79\n0 ecc 2\n1 xid 48\n1 lost 1\n");
    CHECK("one at a time", gpu_poll(world->gpu, events, 1) == 1 && events[0].code == 48);
    CHECK("lost", gpu_poll(world->gpu, events, 8) == 1 && events[0].kind == GPU_EVENT_LOST &&
                      events[0].device == 1);
    CHECK("lost once", gpu_poll(world->gpu, events, 8) == 0);
    struct gpu_sample sample;
    CHECK("measure", gpu_measure(world->gpu, 1, &sample, &e) == ERR_IO);

    write_script(world, "* count 2\n1 xid 79\n0 ecc 2\n1 xid 48\n");
    CHECK("back", gpu_poll(world->gpu, events, 8) == 1 && events[0].kind == GPU_EVENT_BACK);
    world_free(world);
}

static void a_fault_of_a_divided_device_is_one_of_each_instance(void **state)
{
    (void)state;
    struct gpu_event events[8];
    struct world *world = world_new("* count 1\n0 mig 2\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    write_script(world, "* count 1\n0 mig 2\n0 xid 63\n");
    CHECK("both", gpu_poll(world->gpu, events, 8) == 2 && events[0].device != events[1].device);
    world_free(world);
}

static void a_lost_device_does_not_hide_the_others(void **state)
{
    (void)state;
    struct world *world = world_new("* count 3\n1 lost 1\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK("count", found.count == 2);
    CHECK("others", found.devices[0].minor == 0 && found.devices[1].minor == 2);
    world_free(world);
}

static void tells_use(void **state)
{
    (void)state;
    struct error e;
    struct gpu_sample sample = { 0 };
    struct gpu_process processes[4];
    size_t count = 9;
    struct world *world =
        world_new("0 used 1000\n0 util 42\n0 temp 61\n0 power 350000\n1 pid 4711\n"
                  "1 pid_mib 512\n");
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(world, &found);
    CHECK_OK("measure", gpu_measure(world->gpu, 0, &sample, &e), &e);
    CHECK("figures", sample.used_mib == 1000 && sample.utilisation_percent == 42 &&
                         sample.temperature_c == 61 && sample.power_mw == 350000);
    CHECK_OK("processes", gpu_processes(world->gpu, 0, processes, 4, &count, &e), &e);
    CHECK("none", count == 0);
    CHECK_OK("processes", gpu_processes(world->gpu, 1, processes, 4, &count, &e), &e);
    CHECK("one", count == 1 && processes[0].pid == 4711 && processes[0].memory_mib == 512);
    CHECK("foreign", gpu_processes(world->gpu, 7, processes, 4, &count, &e) == ERR_NOT_FOUND);
    CHECK("foreign", gpu_measure(world->gpu, 7, &sample, &e) == ERR_NOT_FOUND);
    world_free(world);
}

static void says_why_it_does_not_start(void **state)
{
    (void)state;
    struct error e;
    struct world *world = world_new("* init 9\n");
    CHECK("refused", try_open(world, "nvml", &e) == ERR_UNAVAILABLE);
    CHECK("reason", strstr(e.text, "Driver Not Loaded") != NULL);
    CHECK("no argument", try_open(world, "nvml:1", &e) == ERR_INVALID);
    world_free(world);
}

static void is_chosen_automatically_when_it_finds_devices(void **state)
{
    (void)state;
    struct error e;
    static const struct {
        const char *name;
        const char *script;
        const char *driver;
    } cases[] = {
        { "devices", "* count 1\n", "nvml" },
        { "none of them", "* count 0\n", "none" },
        { "no driver", "* init 9\n", "none" },
    };
    FOR_EACH_CASE (c, cases) {
        struct world *world = world_new(c->script);
        CHECK_OK(c->name, try_open(world, "auto", &e), &e);
        AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
        CHECK_OK(c->name, gpu_probe(world->gpu, &found, &e), &e);
        CHECK(c->name, strcmp(found.driver_name, c->driver) == 0);
        world_free(world);
    }
}

/* Two devices, the second with a fault to tell; asking for it hangs in the FIFO. */
struct hanging {
    struct world *world;
    struct gpu_watch *watch;
    char fifo[256];
};

static bool soon_takes(struct gpu_watch *watch, struct gpu_answer *answer)
{
    struct mono until = { clock_monotonic().ns + PATIENCE_MS * NS_PER_MS };
    bool is_there = gpu_watch_take(watch, answer);
    while (!is_there && mono_before(clock_monotonic(), until)) {
        (void)poll(NULL, 0, 1);
        is_there = gpu_watch_take(watch, answer);
    }
    return is_there;
}

static struct hanging hanging_new(void)
{
    struct error e;
    struct gpu_answer answer;
    struct hanging h = { .world = world_new("* count 2\n") };
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    open_and_probe(h.world, &found);
    CHECK_OK("watch", gpu_watch_new(&h.watch, TAKE(h.world->gpu), &e), &e);
    CHECK("not asked", !gpu_watch_take(h.watch, &answer));
    gpu_watch_ask(h.watch, (struct mono){ 0 });
    CHECK("well", soon_takes(h.watch, &answer) && answer.count == 0);

    char script[512];
    test_dir_path(&h.world->dir, "fifo", h.fifo);
    CHECK("fifo", mkfifo(h.fifo, 0600) == 0);
    (void)snprintf(script, sizeof(script), "* count 2\n1 xid 79\n1 hang %s\n", h.fifo);
    write_script(h.world, script);
    return h;
}

/* Asks, and comes back when the driver hangs; the other end of the FIFO. */
static int ask_into_the_hang(struct hanging *h, struct mono now)
{
    gpu_watch_ask(h->watch, now);
    int fd = open(h->fifo, O_WRONLY | O_CLOEXEC);
    CHECK("it hangs", fd >= 0);
    return fd;
}

static void a_library_that_hangs_holds_up_its_own_thread_only(void **state)
{
    (void)state;
    struct gpu_answer answer;
    struct hanging h = hanging_new();
    CHECK("nothing is due", gpu_watch_due_ms(h.watch, (struct mono){ 7 * NS_PER_S }) == 0);
    int fd = ask_into_the_hang(&h, (struct mono){ 1 * NS_PER_S });
    CHECK("no answer", !gpu_watch_take(h.watch, &answer));
    gpu_watch_ask(h.watch, (struct mono){ 5 * NS_PER_S });
    CHECK("due since", gpu_watch_due_ms(h.watch, (struct mono){ 9 * NS_PER_S }) == 8000);

    write_script(h.world, "* count 2\n1 xid 79\n");
    (void)close(fd);
    CHECK("it comes", soon_takes(h.watch, &answer));
    CHECK("whole",
          answer.count == 1 && answer.events[0].device == 1 && answer.events[0].code == 79);
    CHECK("none is due", gpu_watch_due_ms(h.watch, (struct mono){ 9 * NS_PER_S }) == 0);
    CHECK("asked once", !gpu_watch_take(h.watch, &answer));
    gpu_watch_ask(h.watch, (struct mono){ 9 * NS_PER_S });
    CHECK("and again", soon_takes(h.watch, &answer) && answer.count == 0);
    gpu_watch_free(h.watch, PATIENCE_MS);
    world_free(h.world);
}

static int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks != NULL && readdir(tasks) != NULL) /* NOLINT(concurrency-mt-unsafe): our own */
        count++;
    if (tasks != NULL)
        (void)closedir(tasks);
    return count;
}

static void whoever_ends_does_not_wait_for_a_library_that_hangs(void **state)
{
    (void)state;
    int before = count_threads();
    struct hanging h = hanging_new();
    int fd = ask_into_the_hang(&h, (struct mono){ 0 });
    gpu_watch_free(h.watch, 1);
    CHECK("it hangs still", count_threads() == before + 1);
    (void)close(fd);
    struct mono until = { clock_monotonic().ns + PATIENCE_MS * NS_PER_MS };
    while (count_threads() > before && mono_before(clock_monotonic(), until))
        (void)poll(NULL, 0, 1);
    CHECK("then the thread ends by itself", count_threads() == before);
    world_free(h.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_devices_in_the_order_of_the_bus),
        cmocka_unit_test(offers_the_instances_of_a_divided_device),
        cmocka_unit_test(tells_faults_once),
        cmocka_unit_test(a_fault_of_a_divided_device_is_one_of_each_instance),
        cmocka_unit_test(a_lost_device_does_not_hide_the_others),
        cmocka_unit_test(tells_use),
        cmocka_unit_test(says_why_it_does_not_start),
        cmocka_unit_test(is_chosen_automatically_when_it_finds_devices),
        cmocka_unit_test(a_library_that_hangs_holds_up_its_own_thread_only),
        cmocka_unit_test(whoever_ends_does_not_wait_for_a_library_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
