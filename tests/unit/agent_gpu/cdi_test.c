/* CDI specs: what is merged, what is refused, what one broken file does not spoil. */
#include <sys/stat.h>

#include "agent/gpu/cdi.h"
#include "os/file.h"
#include "unit/test_dir.h"

static void put(const struct test_dir *dir, const char *name, const char *text)
{
    struct error e;
    char path[256];
    CHECK_OK(name, file_write_atomic(test_dir_path(dir, name, path), str_of(text), 0600, &e), &e);
}

static struct cdi *open_specs(const struct test_dir *dir)
{
    struct error e;
    struct cdi *cdi = NULL;
    const char *const directories[] = { "/nonexistent/cdi", dir->path };
    const char *const hooks[] = { "/usr/bin/nvidia-ctk" };
    const struct cdi_options options = { directories, 2, hooks, 1 };
    CHECK_OK("open", cdi_open(&cdi, &options, &e), &e);
    return cdi;
}

static const char whole_spec[] =
    "{\"cdiVersion\":\"0.6.0\",\"kind\":\"nvidia.com/gpu\",\"containerEdits\":{"
    "\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\"],"
    "\"mounts\":[{\"hostPath\":\"/usr/lib/libcuda.so.1\",\"containerPath\":\"/lib/libcuda.so.1\","
    "\"options\":[\"ro\",\"bind\"]}],"
    "\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/usr/bin/nvidia-ctk\","
    "\"args\":[\"nvidia-ctk\",\"hook\"],\"timeout\":5},"
    "{\"hookName\":\"createContainer\",\"path\":\"/tmp/evil\"}],"
    "\"additionalGids\":[44]},"
    "\"devices\":["
    "{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/"
    "nvidia0\",\"type\":\"c\","
    "\"major\":195,\"minor\":0,\"hostPath\":\"/nonexistent/nvidia0\",\"permissions\":\"rw\"}]}},"
    "{\"name\":\"1\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/"
    "nvidia1\",\"type\":\"c\","
    "\"major\":195,\"minor\":1,\"hostPath\":\"/nonexistent/"
    "nvidia1\",\"fileMode\":438,\"uid\":0}]}},"
    "{\"name\":\"null\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/null\"}]}},"
    "{\"name\":\"GPU-aa\"},"
    "{\"name\":\"gone\",\"containerEdits\":{\"env\":[\"A=1\"],"
    "\"deviceNodes\":[{\"path\":\"/dev/nonexistent\"}]}}]}";

static void edits_of_spec_and_device_are_merged(void **state)
{
    (void)state;
    struct error e;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(arena) struct arena arena = { 0 };
    AUTO(container_edits) struct container_edits edits = { 0 };
    put(&dir, "nvidia.json", whole_spec);
    AUTO(cdi) struct cdi *cdi = open_specs(&dir);
    CHECK("no problem", cdi_problem_count(cdi) == 0);
    const char *const names[] = { "nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=null" };
    CHECK_OK("apply", cdi_apply(cdi, names, 3, &arena, &edits, &e), &e);
    CHECK("env once", edits.env.count == 1);
    CHECK("env", strcmp(edits.env.items[0], "NVIDIA_VISIBLE_DEVICES=void") == 0);
    CHECK("mount", edits.mounts.count == 1 && edits.mounts.items[0].option_count == 2);
    CHECK("mount", strcmp(edits.mounts.items[0].container_path, "/lib/libcuda.so.1") == 0);
    CHECK("devices", edits.devices.count == 3);
    CHECK("numbers", edits.devices.items[1].major == 195 && edits.devices.items[1].minor == 1);
    CHECK("mode", edits.devices.items[1].file_mode == 0666 && edits.devices.items[1].uid == 0);
    CHECK("permissions", strcmp(edits.devices.items[0].permissions, "rw") == 0 &&
                             strcmp(edits.devices.items[1].permissions, "rwm") == 0);
    CHECK("from the host", edits.devices.items[2].major == 1 && edits.devices.items[2].minor == 3 &&
                               edits.devices.items[2].type == 'c');
    CHECK("group", edits.additional_gids.count == 1 && edits.additional_gids.items[0] == 44);
    CHECK("hook", edits.hooks.count == 1 && edits.hooks_refused == 1);
    CHECK("hook", edits.hooks.items[0].stage == EDIT_HOOK_CREATE_CONTAINER &&
                      edits.hooks.items[0].timeout_s == 5 && edits.hooks.items[0].arg_count == 2);
}

static void a_failure_leaves_the_edits_as_they_were(void **state)
{
    (void)state;
    struct error e;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(arena) struct arena arena = { 0 };
    AUTO(container_edits) struct container_edits edits = { 0 };
    put(&dir, "nvidia.json", whole_spec);
    AUTO(cdi) struct cdi *cdi = open_specs(&dir);
    const char *const absent[] = { "nvidia.com/gpu=0", "nvidia.com/gpu=9" };
    CHECK("absent", cdi_apply(cdi, absent, 2, &arena, &edits, &e) == ERR_NOT_FOUND);
    CHECK("named", strstr(e.text, "nvidia.com/gpu=9") != NULL);
    const char *const gone[] = { "nvidia.com/gpu=0", "nvidia.com/gpu=gone" };
    CHECK("gone", cdi_apply(cdi, gone, 2, &arena, &edits, &e) == ERR_UNAVAILABLE);
    CHECK("clean", edits.env.count == 0 && edits.devices.count == 0 && edits.hooks.count == 0 &&
                       edits.mounts.count == 0 && edits.hooks_refused == 0);
}

#define SPEC(edits)                                                                                \
    "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v.com/c\",\"devices\":[{\"name\":\"d\","                 \
    "\"containerEdits\":{" edits "}}]}"

static void bad_edits_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *spec;
    } cases[] = {
        { "env without a name", SPEC("\"env\":[\"=x\"]") },
        { "env without a value", SPEC("\"env\":[\"X\"]") },
        { "env that is no list", SPEC("\"env\":\"X=1\"") },
        { "env of numbers", SPEC("\"env\":[1]") },
        { "relative mount",
          SPEC("\"mounts\":[{\"hostPath\":\"lib\",\"containerPath\":\"/lib\"}]") },
        { "mount with ..",
          SPEC("\"mounts\":[{\"hostPath\":\"/a/../b\",\"containerPath\":\"/b\"}]") },
        { "mount to ..", SPEC("\"mounts\":[{\"hostPath\":\"/a\",\"containerPath\":\"/..\"}]") },
        { "mount to nowhere", SPEC("\"mounts\":[{\"hostPath\":\"/a\"}]") },
        { "device with ..", SPEC("\"deviceNodes\":[{\"path\":\"/dev/../null\"}]") },
        { "device that is a file", SPEC("\"deviceNodes\":[{\"path\":\"/etc/passwd\"}]") },
        { "device of odd type", SPEC("\"deviceNodes\":[{\"path\":\"/dev/no\",\"type\":\"x\","
                                     "\"major\":1,\"minor\":2}]") },
        { "device with odd permissions",
          SPEC("\"deviceNodes\":[{\"path\":\"/dev/null\",\"permissions\":\"rwx\"}]") },
        { "negative minor", SPEC("\"deviceNodes\":[{\"path\":\"/dev/no\",\"type\":\"c\","
                                 "\"major\":1,\"minor\":-2}]") },
        { "hook at an unknown stage", SPEC("\"hooks\":[{\"hookName\":\"prestart\","
                                           "\"path\":\"/usr/bin/nvidia-ctk\"}]") },
        { "hook with ..", SPEC("\"hooks\":[{\"hookName\":\"poststop\",\"path\":\"/usr/../x\"}]") },
        { "group 0", SPEC("\"additionalGids\":[0]") },
    };
    FOR_EACH_CASE (c, cases) {
        struct error e;
        AUTO(test_dir) struct test_dir dir = test_dir_new();
        AUTO(arena) struct arena arena = { 0 };
        AUTO(container_edits) struct container_edits edits = { 0 };
        put(&dir, "spec.json", c->spec);
        AUTO(cdi) struct cdi *cdi = open_specs(&dir);
        const char *const names[] = { "v.com/c=d" };
        CHECK(c->name, cdi_has(cdi, names[0]));
        CHECK(c->name, cdi_apply(cdi, names, 1, &arena, &edits, &e) == ERR_INVALID ||
                           e.code == ERR_UNAVAILABLE);
    }
}

static void a_broken_file_does_not_spoil_the_others(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"cdiVersion\":\"0.5.0\"}",
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"nokind\",\"devices\":[]}",
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"/c\",\"devices\":[]}",
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v/\",\"devices\":[]}",
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v/c\",\"devices\":{}}",
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v/c\",\"devices\":[{}]}",
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"v/c\",\"kind\":\"v/d\",\"devices\":[]}",
    };
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "broken%zu.json", i);
        put(&dir, name, broken[i]);
    }
    put(&dir, "nvidia.json", whole_spec);
    put(&dir, "notes.txt", "not a spec");
    AUTO(cdi) struct cdi *cdi = open_specs(&dir);
    CHECK("problems", cdi_problem_count(cdi) == COUNT_OF(broken));
    CHECK("named", strstr(cdi_problem(cdi, 0), "broken0.json: ") != NULL);
    CHECK("beyond", cdi_problem(cdi, COUNT_OF(broken))[0] == '\0');
    CHECK("good one", cdi_has(cdi, "nvidia.com/gpu=0"));
    CHECK("absent", !cdi_has(cdi, "nvidia.com/gpu=") && !cdi_has(cdi, "nvidia.com/gpu") &&
                        !cdi_has(cdi, "0") && !cdi_has(cdi, ""));
}

/* The first of a device's names that the specs know; NULL: none. */
static const char *known_name(const struct cdi *cdi, struct arena *arena,
                              const struct gpu_device *device)
{
    const char *names[EDIT_NAMES_MAX];
    size_t count = edit_names_of(device, arena, names);
    for (size_t i = 0; i < count; i++)
        if (cdi_has(cdi, names[i]))
            return names[i];
    return NULL;
}

static void devices_find_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct gpu_device device;
        const char *found;
    } cases[] = {
        { "by uuid",
          { .vendor = GPU_VENDOR_NVIDIA, .uuid = "GPU-aa", .minor = 7, .index = 7 },
          "nvidia.com/gpu=GPU-aa" },
        { "by number",
          { .vendor = GPU_VENDOR_NVIDIA, .uuid = "GPU-bb", .minor = 1, .index = 1 },
          "nvidia.com/gpu=1" },
        { "neither",
          { .vendor = GPU_VENDOR_NVIDIA, .uuid = "GPU-bb", .minor = 5, .index = 5 },
          NULL },
        { "instance",
          { .vendor = GPU_VENDOR_NVIDIA, .uuid = "MIG-x", .mig = GPU_MIG_INSTANCE },
          NULL },
        { "another vendor", { .vendor = GPU_VENDOR_AMD, .uuid = "GPU-aa", .index = 1 }, NULL },
        { "no vendor", { .vendor = GPU_VENDOR_OTHER, .uuid = "GPU-aa", .index = 1 }, NULL },
        { "simulated",
          { .vendor = GPU_VENDOR_NVIDIA, .uuid = "GPU-aa", .is_simulated = true },
          NULL },
    };
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(arena) struct arena arena = { 0 };
    put(&dir, "nvidia.json", whole_spec);
    AUTO(cdi) struct cdi *cdi = open_specs(&dir);
    FOR_EACH_CASE (c, cases) {
        const char *name = known_name(cdi, &arena, &c->device);
        CHECK(c->name, (name == NULL) == (c->found == NULL));
        CHECK(c->name, name == NULL || strcmp(name, c->found) == 0);
    }
}

static void later_files_win(void **state)
{
    (void)state;
    struct error e;
    AUTO(test_dir) struct test_dir dir = test_dir_new();
    AUTO(arena) struct arena arena = { 0 };
    AUTO(container_edits) struct container_edits edits = { 0 };
    put(&dir, "a.json", SPEC("\"env\":[\"FROM=a\"]"));
    put(&dir, "b.json", SPEC("\"env\":[\"FROM=b\"]"));
    AUTO(cdi) struct cdi *cdi = open_specs(&dir);
    const char *const names[] = { "v.com/c=d" };
    CHECK_OK("apply", cdi_apply(cdi, names, 1, &arena, &edits, &e), &e);
    CHECK("b", edits.env.count == 1 && strcmp(edits.env.items[0], "FROM=b") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_of_spec_and_device_are_merged),
        cmocka_unit_test(a_failure_leaves_the_edits_as_they_were),
        cmocka_unit_test(bad_edits_are_refused),
        cmocka_unit_test(a_broken_file_does_not_spoil_the_others),
        cmocka_unit_test(devices_find_their_names),
        cmocka_unit_test(later_files_win),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
