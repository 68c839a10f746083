#include "os/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fd.h"

enum {
    READ_STEP = 16 * 1024,
    READS_AFTER_END = 64, /* more than a full pipe holds */
};

/* The program as a path, so that the child needs no search between fork and exec. */
static enum err find_program(const char *name, char out[PATH_MAX], struct error *e)
{
    if (strchr(name, '/') != NULL) {
        if (strlen(name) >= PATH_MAX)
            return err_set(e, ERR_LIMIT, "a program's path is longer than %d bytes", PATH_MAX);
        (void)snprintf(out, PATH_MAX, "%s", name);
        return ERR_OK;
    }
    const char *path = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): nothing here sets it */
    struct str rest = str_of(path != NULL ? path : "/usr/sbin:/usr/bin:/sbin:/bin");
    while (rest.size > 0) {
        struct str dir = str_cut(&rest, ':');
        int length = snprintf(out, PATH_MAX, "%.*s/%s", STR_ARG(dir), name);
        /* An empty or relative entry would run what happens to lie in the working directory. */
        if (dir.size > 0 && dir.data[0] == '/' && length < PATH_MAX && access(out, X_OK) == 0)
            return ERR_OK;
    }
    return err_set(e, ERR_NOT_FOUND, "there is no program %s in PATH", name);
}

/* What went wrong in the child. It runs in our memory, so it simply writes it there. */
struct child_failure {
    int number; /* errno; 0: nothing */
    const char *step;
};

struct child {
    const struct process_spec *spec;
    const char *program;
    pid_t parent;
    /* Volatile: the compiler sees a store on a way that never returns, and would not look again. */
    volatile struct child_failure failure;
};

static void __attribute__((noreturn)) child_fail(struct child *child, const char *step)
{
    child->failure.step = step;
    child->failure.number = errno;
    _exit(127);
}

static void child_reset_signals(void)
{
    struct sigaction by_default = { .sa_handler = SIG_DFL };
    sigset_t none;
    (void)sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &by_default, NULL); /* some cannot be changed, which is as well */
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/* Done by us, who may lower the score again, so that a child without that right may not
 * go below it. */
static void child_raise_oom_score(void)
{
    static const char score[] = "500"; /* of 1000 */
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    (void)!write(fd, score, sizeof(score) - 1); /* not there, or higher already: as well */
    (void)close(fd);
}

/*
 * Puts fds[i] at i. Every source is first copied above all targets, so that no target overwrites a
 * source that is still needed.
 */
static void child_place_fds(struct child *child)
{
    const struct process_spec *spec = child->spec;
    int count = (int)MAX_OF(spec->fd_count, (size_t)3);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0)
        child_fail(child, "open /dev/null");

    int copies[PROCESS_FDS_MAX];
    for (int i = 0; i < count; i++) {
        int source = (size_t)i < spec->fd_count && spec->fds[i] >= 0 ? spec->fds[i] : null_fd;
        copies[i] = fcntl(source, F_DUPFD_CLOEXEC, count);
        if (copies[i] < 0)
            child_fail(child, "copy a descriptor");
    }
    for (int i = 0; i < count; i++) {
        if (dup2(copies[i], i) < 0)
            child_fail(child, "place a descriptor");
    }
    if (close_range((unsigned)count, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0)
        child_fail(child, "close descriptors");
}

/* Between vfork and exec: our memory, our stack below this frame, its own descriptors and
 * signals. */
static void __attribute__((noreturn)) child_main(struct child *child)
{
    const struct process_spec *spec = child->spec;
    if (spec->is_group_leader && setsid() < 0)
        child_fail(child, "make a session");
    if (spec->dies_with_us) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
            child_fail(child, "ask for a death signal");
        if (getppid() != child->parent)
            _exit(127); /* it died before we asked */
    }
    if (spec->is_expendable)
        child_raise_oom_score();
    child_place_fds(child);
    if (spec->dir != NULL && chdir(spec->dir) != 0)
        child_fail(child, "enter the directory");
    child_reset_signals();

    /* execve promises not to change them; its type is older than const. */
    union {
        const char *const *given;
        char *const *wanted;
    } argv = { spec->argv }, env = { spec->env };
    (void)execve(child->program, argv.wanted, spec->env != NULL ? env.wanted : environ);
    child_fail(child, "execute");
}

/*
 * With all signals blocked, so that no handler of ours runs in the child. vfork and not fork: to
 * copy the page tables of a large process, and to fault in both copies afterwards, costs more than
 * all else here. We sleep until the child has become its program or has failed; it allocates
 * nothing and returns from nothing.
 */
static __attribute__((noinline)) pid_t vfork_quietly(struct child *child)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see above */
    if (pid == 0)
        child_main(child); /* NOLINT(clang-analyzer-unix.Vfork): never returns */
    int saved = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

static enum err describe_failure(const struct child *child, struct error *e)
{
    errno = child->failure.number;
    enum err rc = err_errno(e, "%s %s", child->failure.step, child->program);
    if (child->failure.number != ENOENT && child->failure.number != ENOTDIR)
        return rc;
    if (e != NULL)
        e->code = ERR_NOT_FOUND;
    return ERR_NOT_FOUND;
}

enum err process_spawn(const struct process_spec *spec, struct process *out, struct error *e)
{
    assert(spec->argv != NULL && spec->argv[0] != NULL && spec->fd_count <= PROCESS_FDS_MAX);
    char program[PATH_MAX];
    const char *name = spec->program != NULL ? spec->program : spec->argv[0];
    enum err rc = find_program(name, program, e);
    if (rc != ERR_OK)
        return rc;

    struct child child = { .spec = spec, .program = program, .parent = getpid() };
    pid_t pid = vfork_quietly(&child);
    if (pid < 0)
        return err_errno(e, "fork for %s", program);

    /* Ours until we wait for it, so the number cannot have been given to another process. */
    struct process process = { pid, pidfd_open(pid, 0), spec->is_group_leader };
    if (process.pidfd < 0)
        rc = err_errno(e, "open a pidfd for %s", program);
    else if (child.failure.number != 0)
        rc = describe_failure(&child, e);
    if (rc != ERR_OK) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        fd_close(process.pidfd);
        return rc;
    }
    *out = process;
    return ERR_OK;
}

static enum err reap(struct process *process, struct process_exit *out, struct error *e)
{
    siginfo_t info;
    int rc;
    do {
        rc = waitid((idtype_t)P_PIDFD, (id_t)process->pidfd, &info, WEXITED);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0)
        return err_errno(e, "wait for process %d", (int)process->pid);
    bool is_exit = info.si_code == CLD_EXITED;
    *out = (struct process_exit){ .code = is_exit ? info.si_status : 128 + info.si_status,
                                  .signal = is_exit ? 0 : info.si_status };
    fd_close(fd_take(&process->pidfd));
    process->pid = -1;
    return ERR_OK;
}

enum err process_wait(struct process *process, struct mono deadline, struct process_exit *out,
                      struct error *e)
{
    assert(process->pidfd >= 0);
    struct pollfd poll_fd = { .fd = process->pidfd, .events = POLLIN };
    for (;;) {
        struct mono now = clock_monotonic();
        int ready = poll(&poll_fd, 1, clock_poll_ms(now, deadline));
        if (ready > 0)
            return reap(process, out, e);
        if (ready < 0 && errno != EINTR)
            return err_errno(e, "poll process %d", (int)process->pid);
        if (!mono_before(clock_monotonic(), deadline))
            return err_set(e, ERR_UNAVAILABLE, "process %d still runs", (int)process->pid);
    }
}

void process_signal(const struct process *process, int signal)
{
    if (process->pidfd < 0)
        return;
    /* The group's number is safe too: it stays taken as long as its leader is not reaped. */
    if (process->is_group_leader)
        (void)kill(-process->pid, signal);
    else
        (void)pidfd_send_signal(process->pidfd, signal, NULL, 0);
}

void process_done(struct process *process)
{
    if (process->pidfd < 0)
        return;
    struct process_exit ignored;
    process_signal(process, SIGKILL);
    (void)reap(process, &ignored, NULL); /* only fails when it was reaped behind our back */
    fd_close(fd_take(&process->pidfd));
    process->pid = -1;
}

void process_result_done(struct process_result *result)
{
    buf_done(&result->output);
    buf_done(&result->errors);
}

/* What a running child writes; -1: ended. */
struct streams {
    int output;
    int errors;
};

static void streams_done(struct streams *streams)
{
    fd_close(streams->output);
    fd_close(streams->errors);
}
DEFINE_CLEANUP_AT(streams, struct streams, streams_done)

/* A file and not a pipe: nobody has to feed it, and a child that does not read breaks nothing. */
static enum err open_input(struct str input, int *out, struct error *e)
{
    AUTO(fd) int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "make a file for the input");
    enum err rc = fd_write_full(fd, input.data, input.size, e);
    if (rc != ERR_OK)
        return rc;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return err_errno(e, "rewind the input");
    *out = fd_take(&fd);
    return ERR_OK;
}

/* A pipe whose end for us does not block. */
static enum err open_output(int *ours, int *theirs, struct error *e)
{
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    *ours = ends[0];
    *theirs = ends[1];
    return fd_set_nonblock(*ours, true, e);
}

static enum err spawn_captured(const struct process_run *run, struct process *process,
                               struct streams *streams, struct error *e)
{
    AUTO(fd) int input = -1;
    AUTO(fd) int output = -1;
    AUTO(fd) int errors = -1;
    enum err rc = open_input(run->input, &input, e);
    if (rc == ERR_OK)
        rc = open_output(&streams->output, &output, e);
    if (rc == ERR_OK)
        rc = open_output(&streams->errors, &errors, e);
    if (rc != ERR_OK)
        return rc;

    const int fds[] = { input, output, errors };
    struct process_spec spec = run->spec;
    spec.fds = fds;
    spec.fd_count = COUNT_OF(fds);
    spec.is_group_leader = true;
    return process_spawn(&spec, process, e);
}

/* One read: true when there may be more. Beyond `max` bytes are dropped, and `is_over` says so. */
static bool read_some(int *fd, struct buf *out, size_t max, bool *is_over)
{
    char bytes[READ_STEP];
    ssize_t got = *fd < 0 ? 0 : read(*fd, bytes, sizeof(bytes));
    if (got < 0)
        return errno == EINTR;
    if (got == 0) {
        fd_close(fd_take(fd));
        return false;
    }
    size_t kept = MIN_OF((size_t)got, max - out->size);
    buf_add(out, bytes, kept);
    *is_over = *is_over || kept < (size_t)got;
    return true;
}

/*
 * Reads both streams until the process has ended. What its own children still write later is not
 * waited for: a daemon that keeps the pipe open must not hold us.
 */
static enum err capture(const struct process_run *run, const struct process *process,
                        struct streams *streams, struct process_result *result, struct error *e)
{
    struct mono deadline = { clock_monotonic().ns + run->timeout_ms * NS_PER_MS };
    bool is_over = false;
    bool is_cut = false; /* stderr may be */
    for (;;) {
        struct pollfd fds[3] = { { .fd = process->pidfd, .events = POLLIN },
                                 { .fd = streams->output, .events = POLLIN },
                                 { .fd = streams->errors, .events = POLLIN } };
        struct mono now = clock_monotonic();
        if (!mono_before(now, deadline))
            return err_set(e, ERR_UNAVAILABLE, "%s took longer than %d ms", run->spec.argv[0],
                           run->timeout_ms);
        if (poll(fds, COUNT_OF(fds), clock_poll_ms(now, deadline)) < 0 && errno != EINTR)
            return err_errno(e, "poll");

        bool has_ended = fds[0].revents != 0;
        unsigned reads = has_ended ? READS_AFTER_END : 1;
        while (reads-- > 0 &&
               read_some(&streams->output, &result->output, run->output_max, &is_over))
            continue;
        reads = has_ended ? READS_AFTER_END : 1;
        while (reads-- > 0 &&
               read_some(&streams->errors, &result->errors, run->output_max, &is_cut))
            continue;
        if (is_over)
            return err_set(e, ERR_LIMIT, "%s wrote more than %zu bytes", run->spec.argv[0],
                           run->output_max);
        if (has_ended)
            return ERR_OK;
    }
}

enum err process_run(const struct process_run *run, struct process_result *out, struct error *e)
{
    AUTO(process) struct process process = PROCESS_NONE;
    AUTO(streams) struct streams streams = { -1, -1 };
    AUTO(process_result) struct process_result result = { 0 };

    enum err rc = spawn_captured(run, &process, &streams, e);
    if (rc == ERR_OK)
        rc = capture(run, &process, &streams, &result, e);
    if (rc == ERR_OK)
        rc = reap(&process, &result.exit, e);
    if (rc != ERR_OK)
        return rc;
    *out = result;
    result = (struct process_result){ 0 };
    return ERR_OK;
}

/* The last line that says something, for an error text. */
static struct str last_line(struct str text)
{
    while (text.size > 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == ' '))
        text.size--;
    if (text.size == 0)
        return text;
    size_t start = text.size;
    while (start > 0 && text.data[start - 1] != '\n')
        start--;
    return (struct str){ text.data + start, text.size - start };
}

enum err process_check(const struct process_run *run, struct process_result *out, struct error *e)
{
    AUTO(process_result) struct process_result result = { 0 };
    enum err rc = process_run(run, &result, e);
    if (rc != ERR_OK)
        return rc;
    struct str why = last_line(buf_str(&result.errors));
    if (result.exit.code != 0)
        return err_set(e, ERR_IO, "%s ended with status %d%s%.*s", run->spec.argv[0],
                       result.exit.code, why.size > 0 ? ": " : "", STR_ARG(why));
    *out = result;
    result = (struct process_result){ 0 };
    return ERR_OK;
}
