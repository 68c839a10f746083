#include "agent/runtime/oci_config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/init.h"
#include "agent/runtime/json_out.h"
#include "base/map.h"

enum {
    SHARES_OF_SETUP = 1024, /* what everything begins with */
    SHM_DEFAULT_MIB = 64,
    NOFILE_WANTED = 65536,
    MASTER_PORT_DEFAULT = 29500,
    EPERM_NUMBER = 1,
    ENOSYS_NUMBER = 38,
};

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What no workload needs and exploits like. The rest of the kernel is open: a list of
 * what is denied. */
static const char *const denied_calls[] = {
    /* asynchronous and in-kernel machinery with a long list of escapes */
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "bpf",
    "userfaultfd",
    "perf_event_open",
    "keyctl",
    "add_key",
    "request_key",
    /* mounts and namespaces */
    "mount",
    "umount2",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsmount",
    "fspick",
    "fsconfig",
    "mount_setattr",
    "pivot_root",
    "chroot",
    "setns",
    "unshare",
    /* other processes, other files */
    "ptrace",
    "kcmp",
    "process_madvise",
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    "lookup_dcookie",
    /* the machine */
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "swapon",
    "swapoff",
    "reboot",
    "acct",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "iopl",
    "ioperm",
    "vhangup",
    "nfsservctl",
    "personality",
};

/* clone with any of these makes a namespace; clone3 hides its flags from a filter, so it "does not
 * exist", and every C library falls back to clone. */
static const uint32_t namespace_flags[] = {
    0x00020000, /* CLONE_NEWNS */ 0x02000000,  /* CLONE_NEWCGROUP */ 0x04000000, /* CLONE_NEWUTS */
    0x08000000, /* CLONE_NEWIPC */ 0x10000000, /* CLONE_NEWUSER */ 0x20000000,   /* CLONE_NEWPID */
    0x40000000,                                                                  /* CLONE_NEWNET */
};

static const char *const masked_paths[] = {
    "/proc/acpi",          "/proc/asound",     "/proc/kcore",         "/proc/keys",
    "/proc/latency_stats", "/proc/scsi",       "/proc/timer_list",    "/proc/sched_debug",
    "/proc/kmsg",          "/proc/interrupts", "/proc/sysrq-trigger",
};
static const char *const read_only_paths[] = {
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
};

struct mount_row {
    const char *destination;
    const char *type;
    const char *options[6];
};

/* clang-format off */
static const struct mount_row fixed_mounts[] = {
    { "/proc",       "proc",   { "nosuid", "noexec", "nodev" } },
    { "/dev",        "tmpfs",  { "nosuid", "noexec", "strictatime", "mode=755", "size=64k" } },
    { "/dev/pts",    "devpts", { "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620" } },
    { "/dev/mqueue", "mqueue", { "nosuid", "noexec", "nodev" } },
};

struct device_row { unsigned major; int minor; /* -1: all */ };
static const struct device_row harmless_devices[] = {
    { 1, 3 } /* null */, { 1, 5 } /* zero */, { 1, 7 } /* full */, { 1, 8 } /* random */,
    { 1, 9 } /* urandom */, { 5, 0 } /* tty */, { 5, 2 } /* ptmx */, { 136, -1 } /* pts */,
};
/* clang-format on */

static const char *const reserved_env[] = {
    "BERTH_ALLOCATION",     "BERTH_WORKLOAD",
    "BERTH_ATTEMPT",        "BERTH_RANK",
    "BERTH_WORLD_SIZE",     "BERTH_MASTER_ADDR",
    "BERTH_HOSTS",          "MASTER_ADDR",
    "MASTER_PORT",          "RANK",
    "WORLD_SIZE",           "LOCAL_RANK",
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
};

bool oci_is_reserved_env(struct str name)
{
    for (size_t i = 0; i < COUNT_OF(reserved_env); i++)
        if (str_is(name, reserved_env[i]))
            return true;
    return false;
}

static struct str env_name(struct str variable)
{
    return str_cut(&variable, '=');
}

static bool is_device_env(const struct oci_config *config, struct str name)
{
    for (size_t i = 0; i < config->device_env_count; i++)
        if (str_eq(env_name(config->device_env[i]), name))
            return true;
    return false;
}

/* The user's own: each name once, the last one wins, reserved names are dropped. */
static void write_user_env(struct json_out *json, const struct oci_config *config,
                           const struct grant_payload *payload)
{
    struct str_map last = { 0 };
    for (uint32_t i = 0; i < payload->env_count; i++) {
        union {
            const struct str *given;
            void *wanted; /* the map only hands it back */
        } value = { &payload->env[i] };
        str_map_remove(&last, env_name(payload->env[i]));
        str_map_put(&last, env_name(payload->env[i]), value.wanted);
    }
    for (uint32_t i = 0; i < payload->env_count; i++) {
        struct str name = env_name(payload->env[i]);
        if (str_map_get(&last, name) == &payload->env[i] && !oci_is_reserved_env(name) &&
            !is_device_env(config, name))
            json_str(json, NULL, payload->env[i]);
    }
    static const struct {
        const char *name, *variable;
    } defaults[] = {
        { "PATH", "PATH=" DEFAULT_PATH },
        { "HOME", "HOME=/root" },
    };
    for (size_t i = 0; i < COUNT_OF(defaults); i++)
        if (str_map_get(&last, str_of(defaults[i].name)) == NULL)
            json_text(json, NULL, defaults[i].variable);
    str_map_done(&last);
}

static void PRINTF(2, 3) write_env(struct json_out *json, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    json_text(json, NULL, text);
}

static void write_hosts(struct json_out *json, const struct grant_payload *payload)
{
    AUTO(buf) struct buf hosts = { 0 };
    buf_add_text(&hosts, "BERTH_HOSTS=");
    for (uint32_t i = 0; i < payload->host_count; i++) {
        if (i > 0)
            buf_add_char(&hosts, ',');
        buf_add_str(&hosts, payload->hosts[i]);
    }
    if (payload->host_count == 0)
        buf_add_text(&hosts, "localhost");
    json_str(json, NULL, buf_str(&hosts));
}

static void write_member_env(struct json_out *json, const struct grant *grant,
                             const struct grant_payload *payload)
{
    char id[ID_TEXT_MAX];
    struct str master = payload->host_count > 0 ? payload->hosts[0] : STR("127.0.0.1");
    unsigned port = payload->master_port != 0 ? payload->master_port : MASTER_PORT_DEFAULT;
    write_env(json, "BERTH_ALLOCATION=%s", id_text(ID_ALLOCATION, grant->allocation, id));
    write_env(json, "BERTH_WORKLOAD=%s", id_text(ID_WORKLOAD, grant->workload, id));
    write_env(json, "BERTH_ATTEMPT=%u", grant->attempt);
    write_env(json, "BERTH_RANK=%u", grant->member_rank);
    write_env(json, "BERTH_WORLD_SIZE=%u", grant->member_count);
    write_env(json, "BERTH_MASTER_ADDR=%.*s", STR_ARG(master));
    write_hosts(json, payload);
    write_env(json, "MASTER_ADDR=%.*s", STR_ARG(master));
    write_env(json, "MASTER_PORT=%u", port);
    write_env(json, "RANK=%u", grant->member_rank);
    write_env(json, "WORLD_SIZE=%u", grant->member_count);
    write_env(json, "LOCAL_RANK=0"); /* one member has one container, and is alone in it */
}

enum process_kind {
    PROCESS_WORKLOAD, /* below berth-init */
    PROCESS_COMMAND,
    PROCESS_TERMINAL /* a command that has one */
};

/* A further command inherits the workload's environment. */
static void write_process(struct json_out *json, const struct oci_config *config,
                          const struct grant_payload *command, enum process_kind kind)
{
    json_bool(json, "terminal", kind == PROCESS_TERMINAL);
    json_open(json, "user", '{');
    json_int(json, "uid", 0);
    json_int(json, "gid", 0);
    json_close(json, '}');
    json_open(json, "args", '[');
    if (kind == PROCESS_WORKLOAD)
        json_text(json, NULL, INIT_PATH);
    for (uint32_t i = 0; i < command->arg_count; i++)
        json_str(json, NULL, command->args[i]);
    json_close(json, ']');

    json_open(json, "env", '[');
    write_user_env(json, config, command);
    write_member_env(json, config->grant, config->payload);
    for (size_t i = 0; i < config->device_env_count; i++)
        json_str(json, NULL, config->device_env[i]);
    json_close(json, ']');

    json_str(json, "cwd", command->working_dir.size > 0 ? command->working_dir : STR("/"));
    json_open(json, "capabilities", '{');
    static const char *const sets[] = { "bounding", "effective", "permitted", "inheritable",
                                        "ambient" };
    for (size_t i = 0; i < COUNT_OF(sets); i++)
        json_texts(json, sets[i], NULL, 0);
    json_close(json, '}');

    const struct {
        const char *type;
        unsigned value;
    } limits[] = {
        { "RLIMIT_NOFILE", MIN_OF(config->nofile_max, (unsigned)NOFILE_WANTED) },
        { "RLIMIT_CORE", 0 },
    };
    json_open(json, "rlimits", '[');
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        json_open(json, NULL, '{');
        json_text(json, "type", limits[i].type);
        json_int(json, "soft", limits[i].value);
        json_int(json, "hard", limits[i].value);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_bool(json, "noNewPrivileges", true);
}

static void write_mount(struct json_out *json, struct str destination, const char *type,
                        const char *source, const char *const *options)
{
    json_open(json, NULL, '{');
    json_str(json, "destination", destination);
    json_text(json, "type", type);
    json_text(json, "source", source);
    json_open(json, "options", '[');
    for (size_t i = 0; options[i] != NULL; i++)
        json_text(json, NULL, options[i]);
    json_close(json, ']');
    json_close(json, '}');
}

static void write_tmpfs(struct json_out *json, const char *destination, uint32_t size_mib,
                        bool may_execute)
{
    char size[32];
    (void)snprintf(size, sizeof(size), "size=%um", size_mib);
    const char *const options[] = {
        "nosuid", "nodev", "mode=1777", size, may_execute ? NULL : "noexec", NULL
    };
    write_mount(json, str_of(destination), "tmpfs", "tmpfs", options);
}

static void write_mounts(struct json_out *json, const struct oci_config *config)
{
    json_open(json, "mounts", '[');
    for (size_t i = 0; i < COUNT_OF(fixed_mounts); i++) {
        const struct mount_row *row = &fixed_mounts[i];
        const char *options[COUNT_OF(row->options) + 1] = { 0 };
        memcpy(options, row->options, sizeof(row->options));
        write_mount(json, str_of(row->destination), row->type, row->type, options);
    }
    uint32_t shm = config->grant->shm_mib;
    write_tmpfs(json, "/dev/shm",
                shm > 0 ? shm : MIN_OF(SHM_DEFAULT_MIB, config->grant->memory_mib), false);
    write_tmpfs(json, "/tmp", config->grant->memory_mib,
                true); /* counts as the workload's memory */
    static const char *const init_options[] = { "bind", "ro", "nosuid", "nodev", NULL };
    write_mount(json, STR(INIT_PATH), "bind", config->init, init_options);
    for (size_t i = 0; i < config->bind_count; i++) {
        const struct oci_bind *bind = &config->binds[i];
        const char *options[8] = { "bind", "nosuid" };
        size_t count = 2;
        if (!bind->is_device)
            options[count++] = "nodev";
        if (bind->is_idmapped)
            options[count++] = "idmap";
        if (bind->is_read_only)
            options[count++] = "ro";
        write_mount(json, bind->target, "bind", bind->source, options);
    }
    json_close(json, ']');
}

static void write_namespaces(struct json_out *json, const struct grant *grant)
{
    static const char *const types[] = {
        "pid", "mount", "ipc", "uts", "cgroup", "network", "user"
    };
    json_open(json, "namespaces", '[');
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        json_open(json, NULL, '{');
        json_text(json, "type", types[i]);
        json_close(json, '}');
    }
    json_close(json, ']');
    static const char *const maps[] = { "uidMappings", "gidMappings" };
    for (size_t i = 0; i < COUNT_OF(maps); i++) {
        json_open(json, maps[i], '[');
        json_open(json, NULL, '{');
        json_int(json, "containerID", 0);
        json_int(json, "hostID", grant->uid_base);
        json_int(json, "size", grant->uid_count);
        json_close(json, '}');
        json_close(json, ']');
    }
}

static void write_device_rule(struct json_out *json, char type, int64_t major, int64_t minor,
                              const char *access)
{
    bool is_allowed = type != '\0';
    const char name[2] = { type, '\0' };
    json_open(json, NULL, '{');
    json_bool(json, "allow", is_allowed);
    if (is_allowed) {
        json_text(json, "type", name);
        json_int(json, "major", major);
        if (minor >= 0)
            json_int(json, "minor", minor);
    }
    json_text(json, "access", access);
    json_close(json, '}');
}

static void write_devices(struct json_out *json, const struct oci_config *config)
{
    if (config->device_count == 0)
        return;
    json_open(json, "devices", '[');
    for (size_t i = 0; i < config->device_count; i++) {
        const struct oci_device *device = &config->devices[i];
        if (device->is_bound)
            continue;
        json_open(json, NULL, '{');
        json_text(json, "path", device->path);
        json_text(json, "type", device->is_block ? "b" : "c");
        json_int(json, "major", device->major);
        json_int(json, "minor", device->minor);
        json_int(json, "fileMode", 0666);
        json_int(json, "uid", 0);
        json_int(json, "gid", 0);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_resources(struct json_out *json, const struct oci_config *config)
{
    const struct grant *grant = config->grant;
    int64_t memory = (int64_t)grant->memory_mib * 1024 * 1024;
    json_open(json, "resources", '{');
    json_open(json, "devices", '[');
    write_device_rule(json, '\0', 0, 0, "rwm"); /* nothing, to begin with */
    for (size_t i = 0; i < COUNT_OF(harmless_devices); i++)
        write_device_rule(json, 'c', harmless_devices[i].major, harmless_devices[i].minor, "rw");
    for (size_t i = 0; i < config->device_count; i++)
        write_device_rule(json, config->devices[i].is_block ? 'b' : 'c', config->devices[i].major,
                          config->devices[i].minor,
                          config->devices[i].access != NULL ? config->devices[i].access : "rw");
    json_close(json, ']');

    json_open(json, "memory", '{');
    json_int(json, "limit", memory);
    if (config->has_swap_limit)
        json_int(json, "swap", memory); /* of both together: no swap */
    json_close(json, '}');
    json_open(json, "pids", '{');
    json_int(json, "limit", (int64_t)grant->pids_max + 1); /* berth-init is not of the workload */
    json_close(json, '}');
    json_open(json, "cpu", '{');
    /* The grant's come when the work runs (runtime.h): the runtime works within these. */
    json_int(json, "shares", SHARES_OF_SETUP);
    json_close(json, '}');
    json_close(json, '}');
}

static void write_call_rule(struct json_out *json, const char *const *names, size_t count,
                            int error_number)
{
    json_texts(json, "names", names, count);
    json_text(json, "action", "SCMP_ACT_ERRNO");
    json_int(json, "errnoRet", error_number);
}

/* Only the machine's own call numbers: a process that uses another ABI (i386, x32) is killed. */
static void write_seccomp(struct json_out *json)
{
#if defined(__x86_64__)
    static const char *const architectures[] = { "SCMP_ARCH_X86_64" };
#elif defined(__aarch64__)
    static const char *const architectures[] = { "SCMP_ARCH_AARCH64" };
#else
#error "name this machine's seccomp architecture here"
#endif
    static const char *const clone_call[] = { "clone" };
    static const char *const clone3_call[] = { "clone3" };
    json_open(json, "seccomp", '{');
    json_text(json, "defaultAction", "SCMP_ACT_ALLOW");
    json_texts(json, "architectures", architectures, COUNT_OF(architectures));
    json_open(json, "syscalls", '[');
    json_open(json, NULL, '{');
    write_call_rule(json, denied_calls, COUNT_OF(denied_calls), EPERM_NUMBER);
    json_close(json, '}');
    json_open(json, NULL, '{');
    write_call_rule(json, clone3_call, 1, ENOSYS_NUMBER);
    json_close(json, '}');
    for (size_t i = 0; i < COUNT_OF(namespace_flags); i++) {
        json_open(json, NULL, '{');
        write_call_rule(json, clone_call, 1, EPERM_NUMBER);
        json_open(json, "args", '[');
        json_open(json, NULL, '{');
        json_int(json, "index", 0);
        json_int(json, "value", namespace_flags[i]);
        json_int(json, "valueTwo", namespace_flags[i]);
        json_text(json, "op", "SCMP_CMP_MASKED_EQ");
        json_close(json, '}');
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void write_linux(struct json_out *json, const struct oci_config *config)
{
    json_open(json, "linux", '{');
    write_namespaces(json, config->grant);
    json_text(json, "cgroupsPath", config->cgroup);
    write_devices(json, config);
    write_resources(json, config);
    json_texts(json, "maskedPaths", masked_paths, COUNT_OF(masked_paths));
    json_texts(json, "readonlyPaths", read_only_paths, COUNT_OF(read_only_paths));
    write_seccomp(json);
    json_close(json, '}');
}

static void write_hook(struct json_out *json, const struct oci_hook *hook)
{
    json_open(json, NULL, '{');
    json_text(json, "path", hook->path);
    json_texts(json, "args", hook->args, hook->arg_count);
    json_texts(json, "env", hook->env, hook->env_count);
    if (hook->timeout_s > 0)
        json_int(json, "timeout", hook->timeout_s);
    json_close(json, '}');
}

static void write_hooks(struct json_out *json, const struct oci_config *config)
{
    static const char *const stages[] = { "createRuntime", "createContainer", "startContainer",
                                          "poststart", "poststop" };
    if (config->hook_count == 0)
        return;
    json_open(json, "hooks", '{');
    for (size_t s = 0; s < COUNT_OF(stages); s++) {
        json_open(json, stages[s], '[');
        for (size_t i = 0; i < config->hook_count; i++)
            if (strcmp(config->hooks[i].stage, stages[s]) == 0)
                write_hook(json, &config->hooks[i]);
        json_close(json, ']');
    }
    json_close(json, '}');
}

static struct str hostname_of(const struct oci_config *config)
{
    struct str hostname = config->payload->hostname;
    return hostname.size > 0 ? hostname : STR("berth");
}

void oci_config_write(const struct oci_config *config, struct buf *out)
{
    struct json_out json = { out, false };
    json_open(&json, NULL, '{');
    json_text(&json, "ociVersion", "1.0.2");
    json_open(&json, "process", '{');
    write_process(&json, config, config->payload, PROCESS_WORKLOAD);
    json_close(&json, '}');
    json_open(&json, "root", '{');
    json_text(&json, "path", config->rootfs);
    json_bool(&json, "readonly", config->is_rootfs_read_only);
    json_close(&json, '}');
    json_str(&json, "hostname", hostname_of(config));
    write_mounts(&json, config);
    write_hooks(&json, config);
    write_linux(&json, config);
    json_close(&json, '}');
}

/* Only what is a host name, so that a name cannot bring a line of its own. */
static void add_host(struct buf *out, struct str name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
        if (!is_fine)
            return;
    }
    if (name.size > 0)
        buf_format(out, "127.0.0.1\t%.*s\n", STR_ARG(name));
}

void oci_hosts_write(const struct oci_config *config, struct buf *out)
{
    const struct grant_payload *payload = config->payload;
    buf_add_text(out, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
    add_host(out, hostname_of(config));
    if (config->grant->member_count != 1)
        return;
    for (uint32_t i = 0; i < payload->host_count; i++)
        if (!str_eq(payload->hosts[i], hostname_of(config)))
            add_host(out, payload->hosts[i]);
}

void oci_process_write(const struct oci_config *config, const struct grant_payload *command,
                       bool is_tty, struct buf *out)
{
    struct json_out json = { out, false };
    json_open(&json, NULL, '{');
    write_process(&json, config, command, is_tty ? PROCESS_TERMINAL : PROCESS_COMMAND);
    json_close(&json, '}');
}
