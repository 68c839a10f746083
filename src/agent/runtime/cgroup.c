#include "agent/runtime/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/file.h"

/* The v2 tree of hybrid machines. */
#define UNIFIED "/unified"

enum {
    CGROUP_TREE_MAX = 512,
    CGROUP_PATH_MAX = 1024,
    CGROUP_FILE_MAX = 64 * 1024,
    KILL_ROUNDS = 8,
    CPU_PERIOD_US = 100000,
    SHARES_MIN = 2,
    SHARES_MAX = 262144,
    WEIGHT_MAX = 10000,
};

static bool is_filesystem(const char *path, unsigned long magic)
{
    struct statfs st;
    return statfs(path, &st) == 0 && (unsigned long)st.f_type == magic;
}

enum cgroup_mode cgroup_detect(const char *root)
{
    char unified[CGROUP_PATH_MAX];
    (void)snprintf(unified, sizeof(unified), "%s" UNIFIED, root);
    if (is_filesystem(root, CGROUP2_SUPER_MAGIC))
        return CGROUP_MODE_V2;
    if (!is_filesystem(root, TMPFS_MAGIC))
        return CGROUP_MODE_NONE;
    return is_filesystem(unified, CGROUP2_SUPER_MAGIC) ? CGROUP_MODE_HYBRID : CGROUP_MODE_V1;
}

enum err cgroup_enter_mounts(enum cgroup_mode mode, struct error *e)
{
    if (unshare(CLONE_NEWNS) != 0)
        return err_errno(e, "make a mount namespace (is this root?)");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        return err_errno(e, "keep our mounts to ourselves");
    if (mode == CGROUP_MODE_HYBRID &&
        mount("/dev/null", CGROUP_ROOT UNIFIED "/cgroup.controllers", NULL, MS_BIND, NULL) != 0)
        return err_errno(e, "hide the controllers of the v2 tree");
    return ERR_OK;
}

/* A file of the cgroup in the tree that has `controller`: its own on v1, the one there is on v2. */
static void file_path(const char *root, enum cgroup_mode mode, const char *controller,
                      const char *path, const char *name, char out[CGROUP_PATH_MAX])
{
    bool is_v2 = mode == CGROUP_MODE_V2;
    (void)snprintf(out, CGROUP_PATH_MAX, "%s%s%s%s/%s", root, is_v2 ? "" : "/",
                   is_v2 ? "" : controller, path, name);
}

int64_t cgroup_oom_kills(const char *root, enum cgroup_mode mode, const char *path)
{
    char file[CGROUP_PATH_MAX];
    file_path(root, mode, "memory", path,
              mode == CGROUP_MODE_V2 ? "memory.events" : "memory.oom_control", file);
    AUTO(buf) struct buf text = { 0 };
    if (file_read(file, CGROUP_FILE_MAX, &text, NULL) != ERR_OK)
        return 0;
    struct str lines = buf_str(&text);
    while (lines.size > 0) {
        struct str value = str_cut(&lines, '\n');
        struct str name = str_cut(&value, ' ');
        int64_t count = 0;
        if (str_is(name, "oom_kill") && str_to_i64(value, 0, INT64_MAX, &count))
            return count;
    }
    return 0;
}

bool cgroup_has_swap_limit(const char *root, enum cgroup_mode mode)
{
    char file[CGROUP_PATH_MAX];
    if (mode == CGROUP_MODE_V2)
        return true; /* absent means that there is no swap to limit, and the runtime copes */
    file_path(root, mode, "memory", "", "memory.memsw.limit_in_bytes", file);
    return access(file, F_OK) == 0;
}

static enum err put_text(const char *file, const char *text, struct error *e)
{
    AUTO(fd) int fd = open(file, O_WRONLY | O_CLOEXEC);
    size_t size = strlen(text);
    return fd >= 0 && write(fd, text, size) == (ssize_t)size ? ERR_OK
                                                             : err_errno(e, "set %s", file);
}

/* What v1 calls shares is a weight of another range on v2; 1024 and 100 are what all begin with. */
enum err cgroup_limit_cpu(const char *root, enum cgroup_mode mode, const char *path,
                          uint32_t cpu_milli, struct error *e)
{
    bool is_v2 = mode == CGROUP_MODE_V2;
    int64_t quota_us = (int64_t)cpu_milli * CPU_PERIOD_US / 1000;
    int64_t shares = MIN_OF(MAX_OF((int64_t)cpu_milli * 1024 / 1000, SHARES_MIN), SHARES_MAX);
    int64_t weight = 1 + (shares - SHARES_MIN) * (WEIGHT_MAX - 1) / (SHARES_MAX - SHARES_MIN);
    char period[32];
    char quota[64];
    char share[32];
    (void)snprintf(period, sizeof(period), "%d", CPU_PERIOD_US);
    (void)snprintf(quota, sizeof(quota), is_v2 ? "%lld %d" : "%lld", (long long)quota_us,
                   CPU_PERIOD_US);
    (void)snprintf(share, sizeof(share), "%lld", (long long)(is_v2 ? weight : shares));
    const struct {
        const char *name, *text;
    } v1[] = { { "cpu.shares", share },
               { "cpu.cfs_period_us", period },
               { "cpu.cfs_quota_us", quota } },
      v2[] = { { "cpu.weight", share }, { "cpu.max", quota } };
    enum err rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < (is_v2 ? COUNT_OF(v2) : COUNT_OF(v1)); i++) {
        char file[CGROUP_PATH_MAX];
        file_path(root, mode, "cpu", path, is_v2 ? v2[i].name : v1[i].name, file);
        rc = put_text(file, is_v2 ? v2[i].text : v1[i].text, e);
    }
    return rc;
}

static bool kill_at_once(const char *root, enum cgroup_mode mode, const char *path)
{
    char file[CGROUP_PATH_MAX];
    (void)snprintf(file, sizeof(file), "%s%s%s/cgroup.kill", root,
                   mode == CGROUP_MODE_V2 ? "" : UNIFIED, path);
    AUTO(fd) int fd = open(file, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "1", 1) == 1;
}

/* v1 alone: one by one, again until nobody is left, for they may fork meanwhile. */
static void kill_each(const char *root, enum cgroup_mode mode, const char *path)
{
    char file[CGROUP_PATH_MAX];
    file_path(root, mode, "pids", path, "cgroup.procs", file);
    for (int round = 0; round < KILL_ROUNDS; round++) {
        AUTO(buf) struct buf text = { 0 };
        if (file_read(file, CGROUP_FILE_MAX, &text, NULL) != ERR_OK || text.size == 0)
            return;
        struct str lines = buf_str(&text);
        while (lines.size > 0) {
            int64_t pid = 0;
            if (str_to_i64(str_cut(&lines, '\n'), 2, INT32_MAX, &pid))
                (void)kill((pid_t)pid, SIGKILL); /* it may have ended by itself */
        }
    }
}

void cgroup_kill(const char *root, enum cgroup_mode mode, const char *path)
{
    if (!kill_at_once(root, mode, path))
        kill_each(root, mode, path);
}

static bool remove_one(const char *tree, const char *path)
{
    char dir[CGROUP_PATH_MAX];
    (void)snprintf(dir, sizeof(dir), "%s%s", tree, path);
    return rmdir(dir) == 0 || errno == ENOENT;
}

bool cgroup_remove(const char *root, enum cgroup_mode mode, const char *path)
{
    if (mode == CGROUP_MODE_V2)
        return remove_one(root, path);
    DIR *trees = opendir(root);
    if (trees == NULL)
        return false;
    bool is_gone = true;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    for (struct dirent *entry = readdir(trees); entry != NULL; entry = readdir(trees)) {
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
            continue;
        char tree[CGROUP_TREE_MAX];
        (void)snprintf(tree, sizeof(tree), "%s/%s", root, entry->d_name);
        is_gone = remove_one(tree, path) && is_gone;
    }
    (void)closedir(trees);
    return is_gone;
}
