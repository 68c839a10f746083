#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/runtime/cgroup.h"
#include "agent/runtime/runtime.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/process.h"

#define PID_NAME "runtime.pid"

enum {
    CRUN_TIMEOUT_S = 120,
    LOG_MAX = 4096,
    ARGS_MAX = 24,
    REMOVE_ROUNDS = 1000,
    REMOVE_STEP_MS = 5
};

/* The last line of what crun logged, for people: "time: ..." is cut off. */
static enum err fail_with_log(const struct runtime_work *work, const char *what, int code,
                              struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    struct str last = { 0 };
    if (attempt_read_file(work->dirs->run, "runtime.log", LOG_MAX, &text, NULL) == ERR_OK) {
        struct str lines = buf_str(&text);
        while (lines.size > 0) {
            struct str line = str_cut(&lines, '\n');
            last = line.size > 0 ? line : last;
        }
    }
    if (last.size == 0 || !str_is_text(last))
        return err_set(e, ERR_IO, "%s %s ended with %d", work->spec->runtime, what, code);
    return err_set(e, ERR_IO, "%s: %.*s", what, STR_ARG(last));
}

static enum err spawn(const struct runtime_work *work, const char *const *args, const int *fds,
                      size_t fd_count, struct process *out, struct error *e)
{
    const char *argv[ARGS_MAX] = {
        work->spec->runtime, "--root",   work->spec->runtime_root, "--log", "runtime.log",
        "--cgroup-manager",  "cgroupfs",
    };
    size_t count = 7;
    for (size_t i = 0; args[i] != NULL && count < ARGS_MAX - 1; i++)
        argv[count++] = args[i];

    /* Nothing of the image's or the user's environment gets near a process of ours. */
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    const struct process_spec spec = {
        .argv = argv,
        .program = work->program,
        .env = env,
        .fds = fds,
        .fd_count = fd_count,
        .is_expendable = true, /* we are not: work would inherit what protects us */
    };
    return process_spawn(&spec, out, e);
}

static enum err wait_for(const struct runtime_work *work, const char *what, struct process *process,
                         struct error *e)
{
    struct process_exit end = { 0 };
    enum err rc = process_wait(process, mono_add_s(clock_monotonic(), CRUN_TIMEOUT_S), &end, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%s %s", work->spec->runtime, what);
    return end.code == 0 ? ERR_OK : fail_with_log(work, what, end.code, e);
}

static enum err run(const struct runtime_work *work, const char *const *args, const int *fds,
                    size_t fd_count, struct error *e)
{
    AUTO(process) struct process process = PROCESS_NONE;
    enum err rc = spawn(work, args, fds, fd_count, &process, e);
    return rc == ERR_OK ? wait_for(work, args[0], &process, e) : rc;
}

static enum err read_pid(const struct runtime_work *work, const char *name, pid_t *out,
                         struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    enum err rc = attempt_read_file(work->dirs->run, name, 32, &text, e);
    if (rc != ERR_OK)
        return rc;
    struct str lines = buf_str(&text);
    int64_t pid = 0;
    if (!str_to_i64(str_cut(&lines, '\n'), 2, INT32_MAX, &pid))
        return err_set(e, ERR_CORRUPT, "%s is no process id", name);
    *out = (pid_t)pid;
    return ERR_OK;
}

/* One program run does create and start; two would cost a third of a short job's time. */
static enum err crun_start(const struct runtime_work *work, const int fds[RUNTIME_FD_COUNT],
                           struct process *starter, struct error *e)
{
    char pid_file[ATTEMPT_PATH_MAX]; /* a relative one would end up elsewhere */
    (void)snprintf(pid_file, sizeof(pid_file), "%s/" PID_NAME, work->bundle);
    const char *const args[] = { "run",        "--detach", "--preserve-fds",
                                 "2",          "--bundle", work->bundle,
                                 "--pid-file", pid_file,   work->spec->name,
                                 NULL };
    return spawn(work, args, fds, RUNTIME_FD_COUNT, starter, e);
}

static enum err crun_started(const struct runtime_work *work, struct process *starter, pid_t *init,
                             struct error *e)
{
    enum err rc = wait_for(work, "run", starter, e);
    return rc == ERR_OK ? read_pid(work, PID_NAME, init, e) : rc;
}

static enum err crun_exec(const struct runtime_work *work, const struct runtime_exec *exec,
                          pid_t *pid, struct error *e)
{
    char pid_file[ATTEMPT_PATH_MAX];
    (void)snprintf(pid_file, sizeof(pid_file), "%s/%s", work->bundle, exec->pid_file);
    const char *args[10] = { "exec",   "--detach",  "--pid-file",
                             pid_file, "--process", exec->process_file };
    size_t count = 6;
    if (exec->console_socket != NULL) {
        args[count++] = "--console-socket";
        args[count++] = exec->console_socket;
    }
    args[count] = work->spec->name;
    enum err rc = run(work, args, exec->fds, COUNT_OF(exec->fds), e);
    return rc != ERR_OK ? rc : read_pid(work, exec->pid_file, pid, e);
}

static enum err crun_limit_cpu(const struct runtime_work *work, uint32_t cpu_milli, struct error *e)
{
    return cgroup_limit_cpu(CGROUP_ROOT, work->cgroup_mode, work->spec->cgroup, cpu_milli, e);
}

static int64_t crun_oom_kills(const struct runtime_work *work)
{
    return cgroup_oom_kills(CGROUP_ROOT, work->cgroup_mode, work->spec->cgroup);
}

static void crun_kill(const struct runtime_work *work)
{
    cgroup_kill(CGROUP_ROOT, work->cgroup_mode, work->spec->cgroup);
}

/* What crun keeps of a container: a directory of a few files. False: something else is in there. */
static bool remove_state(const struct runtime_work *work)
{
    char path[ATTEMPT_PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", work->spec->runtime_root, work->spec->name);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return errno == ENOENT;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int flags = entry->d_type == DT_DIR ? AT_REMOVEDIR : 0;
        (void)unlinkat(dirfd(dir), entry->d_name, flags); /* rmdir below tells */
    }
    (void)closedir(dir);
    return rmdir(path) == 0;
}

/*
 * "crun delete" costs as much as a third of a short job, so what it does is done here: remove the
 * cgroup and crun's own directory. Where that is not enough crun is asked.
 */
static bool crun_remove(const struct runtime_work *work)
{
    bool is_empty = cgroup_remove(CGROUP_ROOT, work->cgroup_mode, work->spec->cgroup);
    for (int round = 0; round < REMOVE_ROUNDS && !is_empty; round++) {
        crun_kill(work); /* dying takes a moment, and a fork may have been faster */
        (void)poll(NULL, 0, REMOVE_STEP_MS);
        is_empty = cgroup_remove(CGROUP_ROOT, work->cgroup_mode, work->spec->cgroup);
    }
    if (is_empty && remove_state(work))
        return true;
    const char *const args[] = { "delete", "--force", work->spec->name, NULL };
    static const int no_fds[3] = { -1, -1, -1 };
    (void)run(work, args, no_fds, COUNT_OF(no_fds), NULL); /* the look below is what counts */
    return cgroup_remove(CGROUP_ROOT, work->cgroup_mode, work->spec->cgroup);
}

const struct runtime runtime_crun = {
    .name = "crun",
    .start = crun_start,
    .started = crun_started,
    .limit_cpu = crun_limit_cpu,
    .exec = crun_exec,
    .oom_kills = crun_oom_kills,
    .kill = crun_kill,
    .remove = crun_remove,
};
