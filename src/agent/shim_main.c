#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/cgroup.h"
#include "agent/runtime/program.h"
#include "agent/shim.h"
#include "agent/shim_order.h"
#include "os/fd.h"

/* Beyond what a container is given: it is run from there when that is in place already. */
enum { HANDED_FD = 3, PROGRAM_FD = 5, USAGE_STATUS = 2 };
static_assert((int)PROGRAM_FD >= (int)RUNTIME_FD_COUNT, "it would be executed");
#define PROGRAM_PATH "/proc/self/fd/5"

static enum err shim_enter(const char *disk, const char *run, struct shim_context *out,
                           struct error *e)
{
    enum err rc = attempt_dirs_open(disk, run, &out->dirs, e);
    if (rc != ERR_OK)
        return rc;
    /* Cleaning up after the machine went down: nothing is left in memory. */
    if (fchdir(out->dirs.run >= 0 ? out->dirs.run : out->dirs.disk) != 0)
        return err_errno(e, "enter %s", run);
    rc = attempt_read_spec(&out->dirs, &out->spec, e);
    if (rc != ERR_OK)
        return rc;
    out->disk = disk;
    out->runtime = out->spec.is_fake == 1 ? &runtime_fake : &runtime_crun;
    out->work = (struct runtime_work){
        .spec = &out->spec,
        .dirs = &out->dirs,
        .bundle = run,
        .program = sealed_program_is(PROGRAM_FD) ? PROGRAM_PATH : NULL,
        .cgroup_mode = cgroup_detect(CGROUP_ROOT),
    };
    return ERR_OK;
}

/* fts walks by changing directory, so no depth of names is too long for it. */
static void shim_remove_tree(int dir_fd, const char *name)
{
    if (fchdir(dir_fd) != 0)
        return;
    union {
        const char *given;
        char *wanted; /* fts_open does not change it; its type is older than const */
    } root = { name };
    char *const roots[] = { root.wanted, NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOSTAT, NULL);
    if (walk == NULL)
        return;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    for (FTSENT *entry = fts_read(walk); entry != NULL; entry = fts_read(walk)) {
        if (entry->fts_info == FTS_DP)
            (void)rmdir(entry->fts_accpath);
        else if (entry->fts_info != FTS_D)
            (void)unlink(entry->fts_accpath);
    }
    (void)fts_close(walk);
}

int shim_clean(struct shim_context *context)
{
    context->runtime->kill(&context->work);
    bool is_gone = context->runtime->remove(&context->work);
    shim_settle_root(context); /* where it never came to a start */
    shim_unmount_root(context);
    shim_remove_tree(context->dirs.disk, "scratch");
    return is_gone ? 0 : 1;
}

/* Also over the bytes it was started with, so that ps and /proc tell whose it is. */
static void take_argument(char **argument, char *text)
{
    size_t room = strlen(*argument);
    memset(*argument, 0, room);
    memcpy(*argument, text, MIN_OF(strlen(text), room));
    *argument = text;
}

/* Until there is an attempt; then all is as if we had been started for it. False: there
 * never was. */
static bool wait_for_order(char **argv)
{
    static struct shim_order order;
    static char verb[] = "run";
    struct fd_pass passed;
    struct error e = { 0 };
    if (shim_own_mounts(&e) != ERR_OK) {
        (void)dprintf(STDERR_FILENO, "berth-shim: %s\n", e.text);
        return false;
    }
    /* Anything else: agentd has no order any more. */
    if (fd_receive(HANDED_FD, &order, sizeof(order), &passed, 0) != (ssize_t)sizeof(order) ||
        passed.count == 0 || dup2(passed.fds[0], HANDED_FD) < 0)
        return false;
    (void)close(passed.fds[0]);
    if (passed.count > 1 && passed.fds[1] != PROGRAM_FD) {
        (void)dup2(passed.fds[1], PROGRAM_FD); /* without it the program is run by its path */
        (void)close(passed.fds[1]);
    }
    take_argument(&argv[1], verb);
    take_argument(&argv[2], order.disk);
    take_argument(&argv[3], order.run);
    return true;
}

static int usage(void)
{
    (void)dprintf(STDERR_FILENO,
                  "usage: berth-shim run DISK RUN | exec DISK RUN NAME | clean DISK RUN\n"
                  "Started by berth-agentd; see berth-agentd(8).\n");
    return USAGE_STATUS;
}

int main(int argc, char **argv)
{
    bool is_exec = argc == 5 && strcmp(argv[1], "exec") == 0;
    bool is_spare = argc == 4 && strcmp(argv[1], "spare") == 0;
    bool is_run = is_spare || (argc == 4 && strcmp(argv[1], "run") == 0);
    if (!is_exec && !is_run && !(argc == 4 && strcmp(argv[1], "clean") == 0))
        return usage();

    (void)umask(0); /* modes in config.json are meant as they are written */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN); /* until shim_run wants to hear of the end of the machine */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return 1;
    if (is_spare && !wait_for_order(argv))
        return 0;
    struct error e = { 0 };
    struct shim_context context = { .dirs = ATTEMPT_DIRS_NONE, .has_own_mounts = is_spare };
    if (shim_enter(argv[2], argv[3], &context, &e) != ERR_OK) {
        (void)dprintf(STDERR_FILENO, "berth-shim: %s: %s\n", argv[2], e.text);
        return 1;
    }
    int status = is_run    ? shim_run(&context, HANDED_FD)
                 : is_exec ? shim_exec(&context, argv[4], HANDED_FD)
                           : shim_clean(&context);
    /* At once: agentd keeps continuing its shims (SIGCONT), and a leak checker that stops the
     * process at its exit would have its own stop taken back and wait for it for ever. */
    _exit(status);
}
