/* Class names, simulated and PCI devices, and the environment of a grant. */
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/gpu/gpu.h"
#include "os/file.h"
#include "unit/test_dir.h"

static void classes_have_one_name_under_every_driver(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        enum gpu_vendor vendor;
        int64_t memory_mib;
        const char *name;
    } cases[] = {
        { "NVIDIA H100 80GB HBM3", GPU_VENDOR_NVIDIA, 81559, "h100-80g" },
        { "NVIDIA H100 PCIe", GPU_VENDOR_NVIDIA, 81559, "h100-pcie-80g" },
        { "NVIDIA H100 NVL", GPU_VENDOR_NVIDIA, 95830, "h100-nvl-94g" },
        { "NVIDIA H200", GPU_VENDOR_NVIDIA, 143771, "h200-141g" },
        { "NVIDIA GH200 480GB", GPU_VENDOR_NVIDIA, 97871, "gh200-96g" },
        { "NVIDIA B200", GPU_VENDOR_NVIDIA, 183359, "b200-180g" },
        { "NVIDIA A100-SXM4-40GB", GPU_VENDOR_NVIDIA, 40960, "a100-40g" },
        { "NVIDIA A100-SXM4-80GB", GPU_VENDOR_NVIDIA, 81920, "a100-80g" },
        { "NVIDIA A100-PCIE-40GB", GPU_VENDOR_NVIDIA, 40960, "a100-pcie-40g" },
        { "NVIDIA A100 80GB PCIe", GPU_VENDOR_NVIDIA, 81920, "a100-pcie-80g" },
        { "NVIDIA L40S", GPU_VENDOR_NVIDIA, 46068, "l40s" },
        { "NVIDIA L4", GPU_VENDOR_NVIDIA, 23034, "l4" },
        { "NVIDIA A10", GPU_VENDOR_NVIDIA, 23028, "a10" },
        { "Tesla T4", GPU_VENDOR_NVIDIA, 15360, "t4" },
        { "Tesla V100-SXM2-32GB", GPU_VENDOR_NVIDIA, 32768, "v100-32g" },
        { "NVIDIA RTX A4000", GPU_VENDOR_NVIDIA, 16376, "rtx-a4000-16g" },
        { "NVIDIA RTX A1000", GPU_VENDOR_NVIDIA, 8188, "rtx-a1000-8g" },
        { "NVIDIA GeForce RTX 4090", GPU_VENDOR_NVIDIA, 24564, "rtx-4090-24g" },
        { "NVIDIA H100 80GB HBM3 MIG 1g.10gb", GPU_VENDOR_NVIDIA, 9984, "mig-1g.10gb" },
        { "NVIDIA A100-SXM4-40GB MIG 3g.20gb", GPU_VENDOR_NVIDIA, 19968, "mig-3g.20gb" },
        { "AMD Instinct MI300X", GPU_VENDOR_AMD, 196592, "mi300x" },
        { "AMD Instinct MI210", GPU_VENDOR_AMD, 65520, "mi210" },
        { "AMD Radeon RX 7900 XTX", GPU_VENDOR_AMD, 24560, "rx-7900-xtx-24g" },
        { "Intel(R) Data Center GPU Max 1550", GPU_VENDOR_INTEL, 131072, "max-1550" },
        { "", GPU_VENDOR_OTHER, 0, "gpu-other" },
        { "???", GPU_VENDOR_AMD, 8192, "gpu-amd-8g" },
    };
    FOR_EACH_CASE (c, cases) {
        char name[GPU_CLASS_MAX];
        gpu_class_name(c->vendor, c->model, c->memory_mib, name);
        if (strcmp(name, c->name) != 0)
            print_error("%s gives %s\n", c->model, name);
        CHECK(c->model, strcmp(name, c->name) == 0);
    }
}

static void long_names_stay_within_their_bounds(void **state)
{
    (void)state;
    char model[400];
    char name[GPU_CLASS_MAX];
    memset(model, 'x', sizeof(model));
    model[sizeof(model) - 1] = '\0';
    gpu_class_name(GPU_VENDOR_OTHER, model, INT64_C(1) << 40, name);
    CHECK("cut", strlen(name) < GPU_CLASS_MAX && name[0] == 'x');
    memcpy(model, "A MIG ", 6);
    gpu_class_name(GPU_VENDOR_NVIDIA, model, 1, name);
    CHECK("cut", strlen(name) < GPU_CLASS_MAX);
}

static void simulated_devices_are_what_was_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        size_t count; /* 0: refused */
        const char *last_class;
    } cases[] = {
        { "sim:4xh100", 4, "h100-80g" },
        { "sim:4xh100-80g", 4, "h100-80g" },
        { "sim:2xa100-40g+1xmi300x", 3, "mi300x" },
        { "sim:128xt4", 128, "t4" },
        { "sim:129xt4", 0, "" },
        { "sim:100xt4+29xt4", 0, "" },
        { "sim:0xh100", 0, "" },
        { "sim:-1xh100", 0, "" },
        { "sim:4xh999", 0, "" },
        { "sim:4", 0, "" },
        { "sim:", 0, "" },
        { "sim", 0, "" },
        { "sim:4xh100+", 4, "h100-80g" },
        { "sim:4xh100++1xt4", 0, "" },
        { "none", 0, "none" },
        { "none:1", 0, "" },
        { "cuda", 0, "" },
        { "", 0, "" },
    };
    FOR_EACH_CASE (c, cases) {
        struct error e = { 0 };
        AUTO(gpu) struct gpu *gpu = NULL;
        AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
        bool is_opened = gpu_open(&gpu, c->spec, NULL, &e) == ERR_OK;
        CHECK(c->spec, is_opened == (c->last_class[0] != '\0'));
        CHECK(c->spec, is_opened || e.text[0] != '\0');
        if (!is_opened)
            continue;
        CHECK_OK(c->spec, gpu_probe(gpu, &found, &e), &e);
        CHECK(c->spec, found.count == c->count);
        if (c->count == 0)
            continue;
        const struct gpu_device *last = &found.devices[c->count - 1];
        CHECK(c->spec, strcmp(last->class_name, c->last_class) == 0 && last->is_simulated);
        CHECK(c->spec, strstr(last->model, "simulated") != NULL);
        CHECK(c->spec, strncmp(last->uuid, "SIM-", 4) == 0 && last->node_count == 0);
        CHECK(c->spec, last->index == c->count - 1);
    }
}

static void simulated_devices_have_files_and_faults(void **state)
{
    (void)state;
    struct error e;
    struct gpu_event events[4];
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    char path[256];
    const struct gpu_options options = { .state_dir = dir.path };
    AUTO(gpu) struct gpu *gpu = NULL;
    if (gpu_open(&gpu, "sim:2xh100+1xmi300x", &options, &e) != ERR_OK) {
        SKIP_UNLESS_ROOT("to make device files");
    }
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    CHECK_OK("probe", gpu_probe(gpu, &found, &e), &e);
    const struct gpu_node *node = &found.devices[1].nodes[0];
    struct stat st;
    CHECK("node", found.devices[1].node_count == 1 && strcmp(node->path, "/dev/nvidia1") == 0);
    CHECK("file", stat(node->host_path, &st) == 0 && S_ISCHR(st.st_mode));
    CHECK("mode", (st.st_mode & 0777) == 0666 && node->major == 195 && node->minor == 1);
    CHECK("amd", strcmp(found.devices[2].nodes[0].path, "/dev/dri/renderD130") == 0);

    AUTO(gpu) struct gpu *again = NULL;
    CHECK_OK("again", gpu_open(&again, "sim:2xh100+1xmi300x", &options, &e), &e);

    CHECK("quiet", gpu_poll(gpu, events, 4) == 0);
    FILE *script = fopen(test_dir_path(&dir, "sim-events", path), "we");
    CHECK("script", script != NULL);
    (void)fputs("1 xid 79\n9 xid 1\nnonsense\n0 lost 0\n2 ec", script);
    (void)fflush(script);
    CHECK("two", gpu_poll(gpu, events, 4) == 2);
    CHECK("xid", events[0].kind == GPU_EVENT_XID && events[0].device == 1 && events[0].code == 79);
    CHECK("lost", events[1].kind == GPU_EVENT_LOST && events[1].device == 0);
    (void)fputs("c 3\n", script);
    (void)fclose(script);
    CHECK("rest", gpu_poll(gpu, events, 4) == 1 && events[0].kind == GPU_EVENT_ECC);
}

static void uuids_differ_between_nodes(void **state)
{
    (void)state;
    struct error e;
    AUTO(test_dir) struct test_dir one = test_dir_new();
    AUTO(test_dir) struct test_dir two = test_dir_new();
    const char *dirs[] = { one.path, two.path, one.path };
    char uuids[3][64];
    for (size_t i = 0; i < 3; i++) {
        AUTO(gpu) struct gpu *gpu = NULL;
        AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
        const struct gpu_options options = { .state_dir = dirs[i] };
        if (gpu_open(&gpu, "sim:1xh100", &options, &e) != ERR_OK)
            SKIP_UNLESS_ROOT("to make device files");
        CHECK_OK("probe", gpu_probe(gpu, &found, &e), &e);
        memcpy(uuids[i], found.devices[0].uuid, sizeof(uuids[i]));
    }
    CHECK("apart", strcmp(uuids[0], uuids[1]) != 0 && strcmp(uuids[0], uuids[2]) == 0);
}

static void put_pci(const struct test_dir *dir, const char *address, const char *const fields[3])
{
    static const char *const names[] = { "class", "vendor", "device" };
    struct error e;
    char path[256];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", dir->path, address);
        CHECK_OK(address, file_make_dirs(path, 0700, &e), &e);
        (void)snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/%s", dir->path, address,
                       names[i]);
        CHECK_OK(address, file_write_atomic(path, str_of(fields[i]), 0600, &e), &e);
    }
}

/* A directory, or a file when there is a text. */
static void put_path(const struct test_dir *dir, const char *name, const char *text)
{
    struct error e;
    char path[256];
    test_dir_path(dir, name, path);
    char *slash = strrchr(path, '/');
    if (text == NULL) {
        CHECK_OK(name, file_make_dirs(path, 0700, &e), &e);
        return;
    }
    *slash = '\0';
    CHECK_OK(name, file_make_dirs(path, 0700, &e), &e);
    *slash = '/';
    CHECK_OK(name, file_write_atomic(path, str_of(text), 0600, &e), &e);
}

static void put_node(const struct test_dir *dir, const char *name)
{
    char path[256];
    put_path(dir, name, "");
    test_dir_path(dir, name, path);
    CHECK(name, unlink(path) == 0 && mknod(path, S_IFCHR | 0600, makedev(1, 3)) == 0);
}

static void the_bus_shows_accelerators_and_nothing_else(void **state)
{
    (void)state;
    struct error e;
    if (geteuid() != 0)
        SKIP_UNLESS_ROOT("to make device files");
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    put_pci(&dir, "0000:c1:00.0", (const char *[]){ "0x030200\n", "0x10de\n", "0x2330\n" });
    put_pci(&dir, "0000:3b:00.0", (const char *[]){ "0x038000\n", "0x1002\n", "0x74a1\n" });
    put_pci(&dir, "0000:5e:00.0", (const char *[]){ "0x120000\n", "0x1da3\n", "0x1060\n" });
    put_pci(&dir, "0000:03:00.0",
            (const char *[]){ "0x030000\n", "0x1a03\n", "0x2000\n" }); /* BMC */
    put_pci(&dir, "0000:00:02.0", (const char *[]){ "0x030000\n", "0x8086\n", "0x9a49\n" });
    put_pci(&dir, "0000:04:00.0", (const char *[]){ "0x020000\n", "0x15b3\n", "0x1017\n" });
    put_pci(&dir, "0000:05:00.0", (const char *[]){ "rubbish\n", "0x10de\n", "0x2330\n" });
    put_pci(&dir, "0000:06:00.0", (const char *[]){ "0x030200\n", "0x10de\n", "0x2331\n" });
    put_path(&dir, "bus/pci/devices/0000:3b:00.0/drm/renderD129", NULL);
    put_path(&dir, "bus/pci/devices/0000:5e:00.0/accel/accel0", NULL);
    put_path(&dir, "driver/nvidia/gpus/0000:c1:00.0/information",
             "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-feed\nDevice Minor: \t 3\n");
    put_node(&dir, "dri/renderD129");
    put_node(&dir, "accel/accel0");
    put_node(&dir, "nvidia3");
    put_node(&dir, "nvidiactl");
    char path[256];
    const struct gpu_options options = { .sysfs_root = dir.path,
                                         .proc_root = dir.path,
                                         .dev_root = dir.path };
    AUTO(gpu) struct gpu *gpu = NULL;
    AUTO(gpu_inventory) struct gpu_inventory found = { 0 };
    CHECK_OK("open", gpu_open(&gpu, "pci", &options, &e), &e);
    CHECK_OK("probe", gpu_probe(gpu, &found, &e), &e);
    CHECK("count", found.count == 3);
    CHECK("amd",
          strcmp(found.devices[0].class_name, "mi300x") == 0 && found.devices[0].minor == 129);
    CHECK("other", strcmp(found.devices[1].class_name, "pci-1da3-1060") == 0);
    CHECK("nvidia", strcmp(found.devices[2].class_name, "h100-80g") == 0);
    CHECK("known by uuid", strcmp(found.devices[2].uuid, "GPU-feed") == 0);
    CHECK("known by address", strcmp(found.devices[1].uuid, "0000:5e:00.0") == 0);
    CHECK("file", strcmp(found.devices[2].nodes[0].path, "/dev/nvidia3") == 0);
    CHECK("shared", found.shared_count == 1);

    struct gpu_event events[4];
    CHECK("quiet", gpu_poll(gpu, events, 4) == 0);
    (void)snprintf(path, sizeof(path), "%s/bus/pci/devices/0000:c1:00.0", dir.path);
    char away[256];
    CHECK("unplug", rename(path, test_dir_path(&dir, "away", away)) == 0);
    CHECK("lost", gpu_poll(gpu, events, 4) == 1 && events[0].kind == GPU_EVENT_LOST &&
                      events[0].device == 2);
    CHECK("plug", rename(away, path) == 0);
    CHECK("back", gpu_poll(gpu, events, 4) == 1 && events[0].kind == GPU_EVENT_BACK);
}

static void the_environment_names_granted_devices_only(void **state)
{
    (void)state;
    static struct gpu_device devices[] = {
        { .index = 0, .vendor = GPU_VENDOR_NVIDIA, .uuid = "GPU-aa" },
        { .index = 1, .vendor = GPU_VENDOR_NVIDIA, .uuid = "MIG-bb" },
        { .index = 2, .vendor = GPU_VENDOR_AMD, .uuid = "GPU-cc" },
        { .index = 3, .vendor = GPU_VENDOR_NVIDIA, .uuid = "SIM-dd", .is_simulated = true },
        { .index = 4, .vendor = GPU_VENDOR_AMD, .uuid = "0000:3b:00.0" },
        { .index = 5, .vendor = GPU_VENDOR_OTHER, .uuid = "0000:4b:00.0" },
    };
    const struct gpu_inventory inventory = { .devices = devices, .count = COUNT_OF(devices) };
    static const struct {
        const char *name;
        unsigned indices[3];
        size_t count;
        const char *cuda;
        const char *nvidia;
        const char *rocr;
    } cases[] = {
        { "nothing",
          { 0 },
          0,
          "CUDA_VISIBLE_DEVICES=",
          "NVIDIA_VISIBLE_DEVICES=void",
          "ROCR_VISIBLE_DEVICES=-1" },
        { "one",
          { 0 },
          1,
          "CUDA_VISIBLE_DEVICES=GPU-aa",
          "NVIDIA_VISIBLE_DEVICES=GPU-aa",
          "ROCR_VISIBLE_DEVICES=-1" },
        { "order of the grant",
          { 1, 0 },
          2,
          "CUDA_VISIBLE_DEVICES=MIG-bb,GPU-aa",
          "NVIDIA_VISIBLE_DEVICES=MIG-bb,GPU-aa",
          "ROCR_VISIBLE_DEVICES=-1" },
        { "both vendors",
          { 2, 0, 4 },
          3,
          "CUDA_VISIBLE_DEVICES=GPU-aa",
          "NVIDIA_VISIBLE_DEVICES=GPU-aa",
          "ROCR_VISIBLE_DEVICES=GPU-cc,4" },
        { "simulated",
          { 3 },
          1,
          "CUDA_VISIBLE_DEVICES=3",
          "NVIDIA_VISIBLE_DEVICES=3",
          "ROCR_VISIBLE_DEVICES=-1" },
        { "another vendor",
          { 5 },
          1,
          "CUDA_VISIBLE_DEVICES=",
          "NVIDIA_VISIBLE_DEVICES=void",
          "ROCR_VISIBLE_DEVICES=-1" },
    };
    struct buf out[GPU_ENV_COUNT] = { 0 };
    struct error e;
    FOR_EACH_CASE (c, cases) {
        CHECK_OK(c->name, gpu_environment(&inventory, c->indices, c->count, out, &e), &e);
        CHECK(c->name, strcmp(out[0].data, c->cuda) == 0);
        CHECK(c->name, strcmp(out[1].data, c->nvidia) == 0);
        CHECK(c->name, strcmp(out[2].data, c->rocr) == 0);
    }
    unsigned beyond = 6;
    CHECK("beyond", gpu_environment(&inventory, &beyond, 1, out, &e) == ERR_NOT_FOUND);
    for (size_t i = 0; i < GPU_ENV_COUNT; i++)
        buf_done(&out[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_have_one_name_under_every_driver),
        cmocka_unit_test(long_names_stay_within_their_bounds),
        cmocka_unit_test(simulated_devices_are_what_was_asked_for),
        cmocka_unit_test(simulated_devices_have_files_and_faults),
        cmocka_unit_test(uuids_differ_between_nodes),
        cmocka_unit_test(the_bus_shows_accelerators_and_nothing_else),
        cmocka_unit_test(the_environment_names_granted_devices_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
