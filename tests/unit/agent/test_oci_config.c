#include <jansson.h>
#include <string.h>

#include "agent/runtime/oci_config.h"
#include "sample.h"
#include "unit/test.h"

static const struct str args[] = { { "/bin/sh", 7 }, { "-c", 2 }, { "echo \"\x1b\\\n\"", 10 } };
static const struct str env[] = { { "A=1", 3 },
                                  { "CUDA_VISIBLE_DEVICES=all", 24 },
                                  { "A=2", 3 },
                                  { "RANK=9", 6 },
                                  { "PATH=/x", 7 } };
static const struct str hosts[] = { { "m0", 2 }, { "m1", 2 } };
static const struct oci_device devices[] = {
    { .path = "/dev/nvidia3", .major = 195, .minor = 3 },
    { .path = "/dev/bound",
      .major = 8,
      .minor = 1,
      .is_block = true,
      .is_bound = true,
      .access = "r" },
};
static const char *const hook_args[] = { "ctk", "x" };
static const struct oci_hook hooks[] = {
    { .stage = "createContainer",
      .path = "/bin/ctk",
      .args = hook_args,
      .arg_count = 2,
      .timeout_s = 3 },
};
static const struct str device_env[] = { { "CUDA_VISIBLE_DEVICES=GPU-3", 26 } };

struct written {
    struct grant grant;
    struct grant_payload payload;
    struct oci_config config;
    struct buf text;
    json_t *root; /* owned */
};

static void written_done(struct written *w)
{
    json_decref(w->root);
    buf_done(&w->text);
}
DEFINE_CLEANUP_AT(written, struct written, written_done)

static void write_sample(struct written *w)
{
    struct oci_bind bind = {
        .source = "/host/volume", .target = STR("/data"), .is_read_only = true, .is_idmapped = true
    };
    w->grant = sample_grant(1);
    w->payload = (struct grant_payload){ .working_dir = STR("/work"),
                                         .arg_count = COUNT_OF(args),
                                         .args = args,
                                         .env_count = COUNT_OF(env),
                                         .env = env,
                                         .host_count = COUNT_OF(hosts),
                                         .hosts = hosts };
    w->config = (struct oci_config){ .grant = &w->grant,
                                     .payload = &w->payload,
                                     .rootfs = "/root/fs",
                                     .cgroup = "/berth/x",
                                     .init = "/host/berth-init",
                                     .has_swap_limit = true,
                                     .nofile_max = 20000,
                                     .devices = devices,
                                     .device_count = 1,
                                     .binds = &bind,
                                     .bind_count = 1,
                                     .device_env = device_env,
                                     .device_env_count = COUNT_OF(device_env) };
    oci_config_write(&w->config, &w->text);
    json_error_t error;
    w->root = json_loadb(w->text.data, w->text.size, JSON_REJECT_DUPLICATES, &error);
    CHECK(error.text, w->root != NULL);
}

/* "a.b.0": objects by name, arrays by index. NULL: not there. */
static const json_t *at(const json_t *node, const char *path)
{
    char part[64];
    while (node != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        memcpy(part, path, length);
        part[length] = '\0';
        path += length + (path[length] == '.' ? 1 : 0);
        node = json_is_array(node) ? json_array_get(node, strtoul(part, NULL, 10))
                                   : json_object_get(node, part);
    }
    return node;
}

static bool array_has(const json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *item = json_string_value(json_array_get(array, i));
        if (item != NULL && strcmp(item, text) == 0)
            return true;
    }
    return false;
}

static void rights_are_none(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    write_sample(&w);
    CHECK("no_new_privs", json_is_true(at(w.root, "process.noNewPrivileges")));
    static const char *const sets[] = { "bounding", "effective", "permitted", "inheritable",
                                        "ambient" };
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        const json_t *set = json_object_get(at(w.root, "process.capabilities"), sets[i]);
        CHECK(sets[i], json_is_array(set) && json_array_size(set) == 0);
    }
    CHECK("no hooks", json_object_get(w.root, "hooks") == NULL);
    static const char *const types[] = {
        "pid", "mount", "ipc", "uts", "cgroup", "network", "user"
    };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        const json_t *ns = json_array_get(at(w.root, "linux.namespaces"), i);
        CHECK(types[i], strcmp(json_string_value(json_object_get(ns, "type")), types[i]) == 0);
        CHECK("a new one", json_object_get(ns, "path") == NULL);
    }
    CHECK("uids", json_integer_value(at(w.root, "linux.uidMappings.0.hostID")) == 1000000 &&
                      json_integer_value(at(w.root, "linux.gidMappings.0.size")) == 65536);
}

static void the_filter_has_what_the_documents_name(void **state)
{
    (void)state;
    static const char *const must[] = {
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "keyctl",
        "add_key",
        "request_key",
        "bpf",
        "userfaultfd",
        "perf_event_open",
        "mount",
        "umount2",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsmount",
        "fsconfig",
        "fspick",
        "mount_setattr",
        "pivot_root",
        "ptrace",
        "setns",
        "unshare",
        "kexec_load",
        "init_module",
        "open_by_handle_at",
    };
    AUTO(written) struct written w = { 0 };
    write_sample(&w);
    const json_t *denied = at(w.root, "linux.seccomp.syscalls.0.names");
    FOR_EACH_CASE (c, must)
        CHECK(*c, array_has(denied, *c));
    CHECK("clone3 is hidden",
          array_has(at(w.root, "linux.seccomp.syscalls.1.names"), "clone3") &&
              json_integer_value(at(w.root, "linux.seccomp.syscalls.1.errnoRet")) == 38);
    int64_t flags = 0;
    for (size_t i = 2; i < json_array_size(at(w.root, "linux.seccomp.syscalls")); i++)
        flags |= json_integer_value(
            at(json_array_get(at(w.root, "linux.seccomp.syscalls"), i), "args.0.value"));
    CHECK("all namespaces of clone", flags == 0x7e020000);
    CHECK("one ABI", json_array_size(at(w.root, "linux.seccomp.architectures")) == 1);
}

static void devices_are_denied_but_for_the_granted(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    write_sample(&w);
    const json_t *rules = at(w.root, "linux.resources.devices");
    CHECK("deny first", json_is_false(at(rules, "0.allow")) && at(rules, "0.major") == NULL);
    size_t granted = 0;
    for (size_t i = 1; i < json_array_size(rules); i++) {
        const json_t *rule = json_array_get(rules, i);
        CHECK("never mknod", strcmp(json_string_value(at(rule, "access")), "rw") == 0);
        if (json_integer_value(at(rule, "major")) == 195)
            granted += json_integer_value(at(rule, "minor")) == 3 ? 1 : 100;
    }
    CHECK("just the one", granted == 1);
    CHECK("its node",
          strcmp(json_string_value(at(w.root, "linux.devices.0.path")), "/dev/nvidia3") == 0);
}

static void limits_are_the_grants(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    write_sample(&w);
    CHECK("memory", json_integer_value(at(w.root, "linux.resources.memory.limit")) == 256 << 20);
    CHECK("no swap", json_integer_value(at(w.root, "linux.resources.memory.swap")) == 256 << 20);
    CHECK("pids", json_integer_value(at(w.root, "linux.resources.pids.limit")) ==
                      w.grant.pids_max + 1); /* berth-init is not counted */
    CHECK("the CPU is limited when the work runs",
          at(w.root, "linux.resources.cpu.quota") == NULL &&
              json_integer_value(at(w.root, "linux.resources.cpu.shares")) == 1024);
    static const struct {
        const char *type;
        int64_t value;
    } rlimits[] = { { "RLIMIT_NOFILE", 20000 }, { "RLIMIT_CORE", 0 } };
    for (size_t i = 0; i < COUNT_OF(rlimits); i++) {
        const json_t *limit = json_array_get(at(w.root, "process.rlimits"), i);
        CHECK(rlimits[i].type, strcmp(json_string_value(at(limit, "type")), rlimits[i].type) == 0);
        CHECK("soft", json_integer_value(at(limit, "soft")) == rlimits[i].value);
        CHECK("hard", json_integer_value(at(limit, "hard")) == rlimits[i].value);
    }
    CHECK("no others", json_array_size(at(w.root, "process.rlimits")) == COUNT_OF(rlimits));
}

static void mounts_are_ours(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    write_sample(&w);
    const json_t *mounts = json_object_get(w.root, "mounts");
    bool has_volume = false;
    for (size_t i = 0; i < json_array_size(mounts); i++) {
        const json_t *mount = json_array_get(mounts, i);
        const char *target = json_string_value(at(mount, "destination"));
        const json_t *options = at(mount, "options");
        CHECK("no /sys", strncmp(target, "/sys", 4) != 0);
        CHECK(target, array_has(options, "nosuid"));
        if (strcmp(target, "/dev/shm") == 0)
            CHECK("shm", array_has(options, "size=32m") && array_has(options, "noexec"));
        if (strcmp(target, "/data") == 0)
            has_volume = array_has(options, "ro") && array_has(options, "idmap") &&
                         array_has(options, "nodev");
    }
    CHECK("volume", has_volume);
    CHECK("masked", array_has(at(w.root, "linux.maskedPaths"), "/proc/kcore"));
    CHECK("read-only", array_has(at(w.root, "linux.readonlyPaths"), "/proc/sys"));
}

static void reserved_names_are_the_grants(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    write_sample(&w);
    const json_t *list = at(w.root, "process.env");
    CHECK("the last one wins", array_has(list, "A=2") && !array_has(list, "A=1"));
    CHECK("devices", array_has(list, "CUDA_VISIBLE_DEVICES=GPU-3") &&
                         !array_has(list, "CUDA_VISIBLE_DEVICES=all"));
    CHECK("rank", array_has(list, "RANK=1") && !array_has(list, "RANK=9"));
    CHECK("master",
          array_has(list, "BERTH_MASTER_ADDR=m0") && array_has(list, "MASTER_PORT=29500"));
    CHECK("hosts", array_has(list, "BERTH_HOSTS=m0,m1"));
    CHECK("their own PATH", array_has(list, "PATH=/x") && array_has(list, "HOME=/root"));
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t k = 0; k < i; k++) {
            const char *a = json_string_value(json_array_get(list, i));
            const char *b = json_string_value(json_array_get(list, k));
            size_t name = strcspn(a, "=") + 1;
            CHECK(a, strncmp(a, b, name) != 0);
        }
}

static void devices_bring_hooks_and_variables(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    AUTO(buf) struct buf text = { 0 };
    write_sample(&w);
    static const struct str variables[] = { { "A=device", 8 } };
    struct oci_bind binds[] = {
        { .source = "/dev/x", .target = STR("/dev/bound"), .is_device = true }
    };
    w.config.device_count = COUNT_OF(devices);
    w.config.hooks = hooks;
    w.config.hook_count = COUNT_OF(hooks);
    w.config.device_env = variables;
    w.config.device_env_count = COUNT_OF(variables);
    w.config.binds = binds;
    oci_config_write(&w.config, &text);
    json_t *root = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    CHECK("parses", root != NULL);
    CHECK("hook",
          strcmp(json_string_value(at(root, "hooks.createContainer.0.path")), "/bin/ctk") == 0);
    CHECK("arguments", array_has(at(root, "hooks.createContainer.0.args"), "x"));
    CHECK("timeout", json_integer_value(at(root, "hooks.createContainer.0.timeout")) == 3);
    CHECK("no other", json_array_size(at(root, "hooks.poststop")) == 0);
    CHECK("the device's variable", array_has(at(root, "process.env"), "A=device"));
    CHECK("not the user's", !array_has(at(root, "process.env"), "A=2"));
    const json_t *mounts = json_object_get(root, "mounts");
    const json_t *last = json_array_get(mounts, json_array_size(mounts) - 1);
    CHECK("a device file works there", !array_has(json_object_get(last, "options"), "nodev") &&
                                           array_has(json_object_get(last, "options"), "nosuid"));
    CHECK("which is not made", json_array_size(at(root, "linux.devices")) == 1);
    const json_t *rules = at(root, "linux.resources.devices");
    const json_t *rule = json_array_get(rules, json_array_size(rules) - 1);
    CHECK("but allowed", json_integer_value(json_object_get(rule, "major")) == 8 &&
                             strcmp(json_string_value(json_object_get(rule, "type")), "b") == 0 &&
                             strcmp(json_string_value(json_object_get(rule, "access")), "r") == 0);
    json_decref(root);
}

static void the_first_process_is_berth_init(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    write_sample(&w);
    CHECK("first", strcmp(json_string_value(at(w.root, "process.args.0")), "/dev/berth-init") == 0);
    CHECK("then the payload's",
          strcmp(json_string_value(at(w.root, "process.args.1")), "/bin/sh") == 0);
    const json_t *mounts = json_object_get(w.root, "mounts");
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(mounts); i++)
        if (array_has(at(json_array_get(mounts, i), "options"), "bind") && found == NULL)
            found = json_array_get(mounts, i);
    CHECK("where it is",
          strcmp(json_string_value(at(found, "destination")), "/dev/berth-init") == 0);
    CHECK("whose it is", strcmp(json_string_value(at(found, "source")), "/host/berth-init") == 0);
    CHECK("nobody can write", array_has(at(found, "options"), "ro"));
}

static void strings_survive_json(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    write_sample(&w);
    const json_t *arg = at(w.root, "process.args.3");
    CHECK("controls and quotes",
          json_string_length(arg) == args[2].size &&
              memcmp(json_string_value(arg), args[2].data, args[2].size) == 0);
}

static void a_command_gets_no_more_than_the_workload(void **state)
{
    (void)state;
    AUTO(written) struct written w = { 0 };
    AUTO(buf) struct buf text = { 0 };
    write_sample(&w);
    oci_process_write(&w.config, &w.payload, true, &text);
    json_t *process = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    CHECK("parses", process != NULL);
    CHECK("no first process of its own",
          strcmp(json_string_value(at(process, "args.0")), "/bin/sh") == 0);
    CHECK("terminal", json_is_true(json_object_get(process, "terminal")));
    CHECK("no_new_privs", json_is_true(json_object_get(process, "noNewPrivileges")));
    CHECK("the same rights", json_equal(json_object_get(process, "capabilities"),
                                        at(w.root, "process.capabilities")) == 1);
    CHECK("the same limits",
          json_equal(json_object_get(process, "rlimits"), at(w.root, "process.rlimits")) == 1);
    json_decref(process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rights_are_none),
        cmocka_unit_test(the_filter_has_what_the_documents_name),
        cmocka_unit_test(devices_are_denied_but_for_the_granted),
        cmocka_unit_test(limits_are_the_grants),
        cmocka_unit_test(mounts_are_ours),
        cmocka_unit_test(reserved_names_are_the_grants),
        cmocka_unit_test(devices_bring_hooks_and_variables),
        cmocka_unit_test(the_first_process_is_berth_init),
        cmocka_unit_test(strings_survive_json),
        cmocka_unit_test(a_command_gets_no_more_than_the_workload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
