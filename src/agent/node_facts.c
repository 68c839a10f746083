#include "agent/node_facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/image/mount.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/process.h"

enum {
    CGROUP1_TMPFS_MAGIC = 0x01021994, /* the tmpfs that v1 hierarchies are mounted in */
    CGROUP2_MAGIC = 0x63677270,
    PROC_FILE_MAX = 256 * 1024,
    VERSION_TIMEOUT_MS = 5000,
};

#define MIB (1024 * 1024)

const char *const cgroup_mode_name[CGROUP_MODE_COUNT] = {
    [CGROUP_MODE_NONE] = "none",
    [CGROUP_MODE_V1] = "v1",
    [CGROUP_MODE_HYBRID] = "hybrid",
    [CGROUP_MODE_V2] = "v2",
};

static void read_system(struct node_facts *out)
{
    struct utsname host;
    struct sysinfo system;
    cpu_set_t cpus;
    if (uname(&host) == 0) {
        memcpy(out->hostname, host.nodename, sizeof(out->hostname));
        memcpy(out->kernel, host.release, sizeof(out->kernel));
        memcpy(out->machine, host.machine, sizeof(out->machine));
    }
    if (sysinfo(&system) == 0) {
        out->memory_mib = (int64_t)((uint64_t)system.totalram * system.mem_unit / MIB);
        out->swap_mib = (int64_t)((uint64_t)system.totalswap * system.mem_unit / MIB);
    }
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        out->cpu_count = (unsigned)CPU_COUNT(&cpus);
    else
        out->cpu_count = (unsigned)get_nprocs(); /* more processors than a cpu_set_t holds */
    char boot_id[CLOCK_BOOT_ID_MAX] = { 0 };
    if (clock_boot_id(boot_id, NULL) == ERR_OK)
        (void)snprintf(out->boot_id, sizeof(out->boot_id), "%s", boot_id);
}

static unsigned count_numa_nodes(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/sys/devices/system/node");
    if (dir == NULL)
        return 1;
    /* readdir's buffer belongs to this DIR alone: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        int64_t number = 0;
        if (strncmp(entry->d_name, "node", 4) == 0 &&
            str_to_i64(str_of(entry->d_name + 4), 0, 1 << 20, &number))
            count++;
    }
    (void)closedir(dir); /* was only read */
    return MAX_OF(count, 1U);
}

static bool is_cgroup2(const char *path)
{
    struct statfs found;
    return statfs(path, &found) == 0 && found.f_type == CGROUP2_MAGIC;
}

static enum cgroup_mode read_cgroup_mode(void)
{
    struct statfs found;
    if (is_cgroup2("/sys/fs/cgroup"))
        return CGROUP_MODE_V2;
    if (statfs("/sys/fs/cgroup", &found) != 0 || found.f_type != CGROUP1_TMPFS_MAGIC ||
        access("/sys/fs/cgroup/memory", F_OK) != 0)
        return CGROUP_MODE_NONE;
    return is_cgroup2("/sys/fs/cgroup/unified") ? CGROUP_MODE_HYBRID : CGROUP_MODE_V1;
}

/* cgroup.kill is there in every group but the root: any will do for finding out. */
static bool has_cgroup_kill(void)
{
    const char *roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        char path[64];
        if (!is_cgroup2(roots[i]))
            continue;
        (void)snprintf(path, sizeof(path), "%s/berth-probe.%d", roots[i], (int)getpid());
        if (mkdir(path, 0700) != 0)
            return false;
        char file[96];
        (void)snprintf(file, sizeof(file), "%s/cgroup.kill", path);
        bool has_it = access(file, F_OK) == 0;
        (void)rmdir(path); /* empty: nothing can keep it */
        return has_it;
    }
    return false;
}

/* Tried in a child, as the kernel may have it and an administrator may have switched it off. */
static bool can_make_userns(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* A module appears in the list once it is loaded. To ask for it by name loads it, which
 * is root's to do. */
static bool can_load_file_system(const char *name)
{
    AUTO(fd) int fd = fsopen(name, FSOPEN_CLOEXEC);
    return fd >= 0;
}

static bool has_file_system(const char *name)
{
    AUTO(buf) struct buf text = { 0 };
    if (file_read("/proc/filesystems", PROC_FILE_MAX, &text, NULL) != ERR_OK)
        return false;
    struct str rest = buf_str(&text);
    while (rest.size > 0) {
        struct str line = str_cut(&rest, '\n');
        (void)str_cut(&line, '\t'); /* "nodev" or nothing */
        if (str_is(line, name))
            return true;
    }
    return can_load_file_system(name);
}

static void read_features(struct node_facts *out, const char *data_dir)
{
    uint32_t action = SECCOMP_RET_KILL_PROCESS;
    out->has_userns = can_make_userns();
    out->has_overlay = has_file_system("overlay");
    out->has_idmap = data_dir != NULL && image_can_idmap(data_dir);
    out->has_seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
    out->has_cgroup_kill = has_cgroup_kill();
    AUTO(fd) int pidfd = pidfd_open(getpid(), 0);
    out->has_pidfd = pidfd >= 0;
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    out->landlock_abi = abi > 0 ? (int)abi : 0;
}

/* The last word of the first line: "crun version 1.8.1", "skopeo version 1.9.3". */
static void read_version(const char *program, char out[32])
{
    const char *const argv[] = { program, "--version", NULL };
    const struct process_run run = {
        .spec = { .argv = argv },
        .output_max = 4096,
        .timeout_ms = VERSION_TIMEOUT_MS,
    };
    AUTO(process_result) struct process_result result = { 0 };
    if (program[0] == '\0')
        return;
    if (process_check(&run, &result, NULL) != ERR_OK)
        return;
    struct str rest = buf_str(&result.output);
    struct str line = str_cut(&rest, '\n');
    struct str word = { 0 };
    while (line.size > 0)
        word = str_cut(&line, ' ');
    if (word.size < 32)
        (void)snprintf(out, 32, "%.*s", STR_ARG(word));
}

void node_facts_read(struct node_facts *out, const struct node_facts_options *options)
{
    *out = (struct node_facts){ .landlock_abi = 0 };
    read_system(out);
    read_features(out, options->data_dir);
    out->numa_nodes = count_numa_nodes();
    out->cgroup_mode = read_cgroup_mode();
    read_version(options->crun != NULL ? options->crun : "crun", out->crun_version);
    read_version(options->skopeo != NULL ? options->skopeo : "skopeo", out->skopeo_version);
}

bool node_facts_check(const struct node_facts *facts, node_facts_problem *each, void *context)
{
    const struct {
        bool is_bad, is_fatal;
        const char *text;
    } rules[] = {
        { facts->crun_version[0] == '\0', false, "crun is not installed: no workload can start" },
        { facts->cgroup_mode == CGROUP_MODE_NONE, false,
          "no cgroups with a memory controller are mounted: limits cannot be set" },
        { !facts->has_userns, false,
          "user namespaces cannot be made: tenants could not be kept apart" },
        { !facts->has_overlay, false,
          "the kernel has no overlay file system: images cannot be mounted" },
        { !facts->has_seccomp, false, "the kernel has no seccomp filters" },
        { !facts->has_pidfd, true, "the kernel has no pidfds (Linux 5.3 or later has)" },
        { facts->cpu_count == 0 || facts->memory_mib == 0, true,
          "the number of processors or the memory cannot be read" },
    };
    bool is_good = true;
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        if (!rules[i].is_bad)
            continue;
        is_good = false;
        each(context, rules[i].text, rules[i].is_fatal);
    }
    return is_good;
}
