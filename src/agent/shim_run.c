/*
 * The life of one attempt, in one poll loop: two pipes, the first process, signals, one timer.
 *
 * Four things can end the work early: agentd (a "stop" file, SIGURG as the hint: it harms
 * nobody who is not listening yet), the time limit, the end of the machine (SIGTERM), and the
 * fence: no heartbeat acknowledged for fence_after_s, counted on the boot clock from when that
 * heartbeat was sent. Whichever comes first is the reason that is kept. All of them are TERM,
 * then KILL after the grace.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/init.h"
#include "agent/logspool.h"
#include "agent/shim.h"
#include "agent/shim_notice.h"
#include "os/clock.h"
#include "os/fd.h"

enum {
    STARTED_MAX_MS = 30 * 1000,              /* for berth-init's first word, once crun is done */
    DRAIN_MAX_NS = 2 * 1000 * 1000 * 1000LL, /* after the end, for pipes that somebody keeps open */
    KILL_AGAIN_S = 1,
};

enum { EXIT_NOT_BEGUN = 75 };

enum stage { STAGE_RUNNING, STAGE_TERM, STAGE_KILL };

struct shim {
    struct shim_context *context; /* borrowed */
    struct attempt_status status;
    struct logspool *spool;
    int outputs[2];      /* read ends of stdout and stderr; -1 at their end */
    int report_fd;       /* our end of what berth-init says; the fake runtime says nothing */
    bool is_heard;       /* it has said that the workload runs */
    bool has_no_program; /* it has said that there is nothing to run */
    int init_fd;         /* pidfd; -1 when reaped */
    int signal_fd;
    int timer_fd;
    enum stage stage;
    struct mono limit_at; /* 0: none */
    struct mono fence_at;
    struct mono kill_at;
    struct mono drain_until;
    struct shim_notice notice;
    int last_signal;  /* berth-init says that it ended the workload; 0: it did not say so */
    uint32_t asked_s; /* of grace, by the stop that was asked with the least */
};

static const struct mono never = { INT64_MAX };

/* A hint: agentd reads the files anyway when it is not there to hear it. */
static void notify(const struct shim *shim)
{
    const struct attempt_spec *spec = &shim->context->spec;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strnlen(spec->notify, sizeof(spec->notify));
    if (length == 0 || length >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, spec->notify, length);
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)sendto(fd, spec->name, strlen(spec->name), MSG_NOSIGNAL,
                     (const struct sockaddr *)&address, sizeof(address));
}

static void publish(struct shim *shim, enum attempt_state state)
{
    struct error e = { 0 };
    shim->status.state = (uint32_t)state;
    if (attempt_write_status(&shim->context->dirs, &shim->status, &e) != ERR_OK)
        (void)dprintf(STDERR_FILENO, "berth-shim %s: %s\n", shim->context->spec.name, e.text);
    notify(shim);
}

static void signal_init(const struct shim *shim, int number)
{
    if (shim->init_fd >= 0)
        (void)pidfd_send_signal(shim->init_fd, number, NULL, 0); /* it may have ended */
}

static void kill_all(struct shim *shim, struct mono now)
{
    shim->stage = STAGE_KILL;
    shim->kill_at = mono_add_s(now, KILL_AGAIN_S);
    signal_init(shim, SIGKILL); /* takes its pid namespace with it */
    shim->context->runtime->kill(&shim->context->work);
}

static void begin_stop(struct shim *shim, enum ipc_end why, uint32_t grace_s, struct mono now)
{
    bool is_first = shim->stage == STAGE_RUNNING;
    if (is_first || (shim->stage == STAGE_TERM && grace_s < shim->asked_s)) {
        struct mono kill_at = mono_add_s(now, grace_s);
        if (is_first || mono_before(kill_at, shim->kill_at)) { /* else: more patience as well */
            shim->kill_at = kill_at;
            shim_notice_tell(&shim->notice, why, grace_s, now);
        }
        shim->asked_s = grace_s;
    }
    if (is_first) {
        shim->stage = STAGE_TERM;
        shim->status.end = (uint32_t)why;
        signal_init(shim, SIGTERM);
        publish(shim, ATTEMPT_STOPPING);
    }
    if (shim->stage == STAGE_TERM && !mono_before(now, shim->kill_at))
        kill_all(shim, now);
}

static void look_for_stop(struct shim *shim, struct mono now)
{
    struct attempt_stop stop;
    if (attempt_read_stop(&shim->context->dirs, &stop, NULL) == ERR_OK)
        begin_stop(shim, (enum ipc_end)stop.end, stop.grace_s, now);
}

/* When the work must end unless a newer heartbeat is acknowledged. No lease of this boot:
 * at once. */
static struct mono fence_deadline(const struct shim *shim)
{
    const struct attempt_spec *spec = &shim->context->spec;
    if (spec->fence_after_s == 0)
        return never;
    struct attempt_lease lease;
    if (attempt_read_lease(spec->lease, &lease, NULL) != ERR_OK ||
        strncmp(lease.boot_id, spec->boot_id, sizeof(lease.boot_id)) != 0)
        return shim->fence_at;
    return mono_add_s((struct mono){ lease.sent_ns }, spec->fence_after_s);
}

static void tick(struct shim *shim, struct mono now)
{
    uint32_t grace_s = shim->context->spec.grace_s;
    if (shim->stage == STAGE_RUNNING && !mono_before(now, shim->limit_at))
        begin_stop(shim, IPC_END_TIME_LIMIT, grace_s, now);
    if (shim->stage == STAGE_RUNNING && !mono_before(now, shim->fence_at)) {
        shim->fence_at = fence_deadline(shim);
        if (!mono_before(now, shim->fence_at))
            begin_stop(shim, IPC_END_FENCED, grace_s, now);
    }
    if (shim->stage != STAGE_RUNNING && !mono_before(now, shim->kill_at))
        kill_all(shim, now);
}

static struct mono earlier(struct mono a, struct mono b)
{
    return mono_before(a, b) ? a : b;
}

static void arm(const struct shim *shim, bool is_deaf)
{
    struct mono next = shim->kill_at;
    if (shim->init_fd < 0)
        next = shim->drain_until;
    else if (shim->stage == STAGE_RUNNING)
        next = earlier(shim->limit_at, shim->fence_at);
    if (is_deaf)
        next = earlier(next, shim->notice.words_until);
    struct itimerspec when = { 0 };
    if (next.ns != never.ns) {
        int64_t ns = MAX_OF(next.ns, INT64_C(1)); /* 0 would mean: no alarm */
        when.it_value.tv_sec = ns / NS_PER_S;
        when.it_value.tv_nsec = ns % NS_PER_S;
    }
    (void)timerfd_settime(shim->timer_fd, TFD_TIMER_ABSTIME, &when,
                          NULL); /* valid by construction */
}

static void take_output(struct shim *shim, int which)
{
    static char
        bytes[LOGSPOOL_RECORD_MAX]; /* one thread; a page that no output fills costs nothing */
    ssize_t got = read(shim->outputs[which], bytes, sizeof(bytes));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        fd_close(fd_take(&shim->outputs[which]));
        return;
    }
    enum logspool_stream stream = which == 0 ? LOGSPOOL_STDOUT : LOGSPOOL_STDERR;
    bool is_first = logspool_size(shim->spool) == 0;
    logspool_write(shim->spool, stream, (struct str){ bytes, (size_t)got }, clock_wall());
    if (is_first)
        notify(shim); /* there is a log to ship now */
}

union credentials {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(struct ucred))];
};

/* One record, and who sent it as the kernel says it, by its number here. False: there is
 * none now. */
static bool read_report(const struct shim *shim, struct init_report *out, pid_t *sender)
{
    struct iovec part = { out, sizeof(*out) };
    union credentials control = { 0 };
    struct msghdr msg = { .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = sizeof(control.bytes) };
    ssize_t got = recvmsg(shim->report_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got != (ssize_t)sizeof(*out))
        return false;
    struct ucred from = { 0 };
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    if (head != NULL && head->cmsg_type == SCM_CREDENTIALS &&
        head->cmsg_len == CMSG_LEN(sizeof(from)))
        memcpy(&from, CMSG_DATA(head), sizeof(from));
    *sender = from.pid;
    return true;
}

/* What berth-init says while the work runs; how the workload ended is its last word. */
static void take_word(struct shim *shim, const struct init_report *report, struct mono now)
{
    struct init_report answer;
    if (report->kind == INIT_KILLED && report->value >= 1 && report->value <= SIGRTMAX)
        shim->last_signal = report->value;
    if (report->kind != INIT_CHECKPOINTED && report->kind != INIT_EXTEND)
        return;
    bool is_extended = shim_notice_hear(&shim->notice, report, now, &answer);
    (void)send(shim->report_fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!is_extended)
        return; /* agentd reads what was said in its own time */
    shim->kill_at = shim->notice.kill_at;
    notify(shim);
}

static void take_words(struct shim *shim, struct mono now)
{
    struct init_report report;
    pid_t sender = 0;
    while (shim_notice_listens(&shim->notice, now) && read_report(shim, &report, &sender))
        take_word(shim, &report, now);
}

/* The first process has ended by itself; what it says of the workload is more than its
 * own status. */
static void take_last_word(struct shim *shim, struct mono now)
{
    struct init_report report;
    pid_t sender = 0;
    while (read_report(shim, &report, &sender))
        take_word(shim, &report, now);
    if (shim->last_signal == 0)
        return;
    shim->status.exit_code = -1;
    shim->status.signal = shim->last_signal;
}

static void take_exit(struct shim *shim)
{
    siginfo_t info = { 0 };
    if (waitid(P_PIDFD, (id_t)shim->init_fd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    struct mono now = clock_boottime();
    fd_close(fd_take(&shim->init_fd));
    shim->drain_until = (struct mono){ now.ns + DRAIN_MAX_NS };
    shim->status.ended_ns = now.ns;
    shim->status.exit_code = info.si_code == CLD_EXITED ? info.si_status : -1;
    shim->status.signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    if (info.si_code == CLD_EXITED)
        take_last_word(shim, now);

    bool is_success = info.si_code == CLD_EXITED && info.si_status == 0;
    shim->status.is_oom =
        !is_success && shim->context->runtime->oom_kills(&shim->context->work) > 0 ? 1 : 0;
    if (shim->status.end == IPC_END_NONE)
        shim->status.end = shim->status.is_oom == 1 ? IPC_END_OOM : IPC_END_EXIT;
}

/*
 * At the end of the machine everybody gets a SIGTERM, the workload as well, and SIGKILL follows
 * later. That is not an end of its own, whatever it makes of it.
 */
static void begin_shutdown(struct shim *shim, struct mono now)
{
    if (shim->stage == STAGE_RUNNING)
        ipc_text_set(shim->status.reason, "its node was shut down");
    begin_stop(shim, IPC_END_LOST, shim->context->spec.grace_s, now);
}

static void take_signals(struct shim *shim, struct mono now)
{
    struct signalfd_siginfo info;
    bool is_shutdown = false;
    while (read(shim->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        is_shutdown = is_shutdown || info.ssi_signo == SIGTERM;
    look_for_stop(shim, now); /* the files say what is asked */
    if (is_shutdown && shim->init_fd >= 0)
        begin_shutdown(shim, now);
}

static bool is_over(const struct shim *shim, struct mono now)
{
    if (shim->init_fd >= 0)
        return false;
    return (shim->outputs[0] < 0 && shim->outputs[1] < 0) || !mono_before(now, shim->drain_until);
}

static void watch(struct shim *shim)
{
    for (struct mono now = clock_boottime(); !is_over(shim, now); now = clock_boottime()) {
        if (shim->init_fd >= 0)
            tick(shim, now);
        bool is_deaf = !shim_notice_listens(&shim->notice, now);
        bool may_hear = shim->init_fd >= 0 && !is_deaf && shim->context->spec.is_fake == 0;
        arm(shim, shim->init_fd >= 0 && is_deaf);
        struct pollfd polls[] = {
            { shim->outputs[0], POLLIN, 0 }, { shim->outputs[1], POLLIN, 0 },
            { shim->init_fd, POLLIN, 0 },    { shim->signal_fd, POLLIN, 0 },
            { shim->timer_fd, POLLIN, 0 },   { may_hear ? shim->report_fd : -1, POLLIN, 0 },
        };
        if (poll(polls, COUNT_OF(polls), -1) < 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (polls[i].revents != 0)
                take_output(shim, i);
        if (polls[3].revents != 0)
            take_signals(shim, clock_boottime());
        if ((polls[5].revents & POLLIN) != 0)
            take_words(shim, clock_boottime());
        uint64_t expirations = 0;
        if (polls[4].revents != 0)
            (void)!read(shim->timer_fd, &expirations, sizeof(expirations));
        if (polls[2].revents != 0)
            take_exit(shim);
    }
}

static enum err open_fds(struct shim *shim, struct error *e)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGURG);
    (void)sigaddset(&signals, SIGTERM);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0)
        return err_errno(e, "block signals");
    (void)signal(SIGTERM, SIG_DFL); /* what is ignored is not queued either */
    shim->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    shim->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (shim->signal_fd < 0 || shim->timer_fd < 0)
        return err_errno(e, "make the shim's descriptors");
    shim->spool = logspool_new(shim->context->dirs.disk, shim->context->spec.log_quota_bytes);
    return ERR_OK;
}

static enum err make_pipe(int *read_end, int *write_end, struct error *e)
{
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    *read_end = ends[0];
    *write_end = ends[1];
    return ERR_OK;
}

/* What berth-init says comes with the sender's process id, which a pipe would not tell. */
static enum err make_report(int *ours, int *theirs, struct error *e)
{
    static const int yes = 1;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_errno(e, "make a socket for the first process");
    *ours = ends[0];
    *theirs = ends[1];
    if (setsockopt(*ours, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0)
        return err_errno(e, "ask for the sender's process id");
    return ERR_OK;
}

static void set_deadlines(struct shim *shim)
{
    const struct attempt_spec *spec = &shim->context->spec;
    struct mono started = { shim->status.started_ns };
    shim->limit_at = spec->time_limit_s > 0 ? mono_add_s(started, spec->time_limit_s) : never;
    shim->fence_at = spec->fence_after_s > 0 ? started : never;
    shim->kill_at = never;
}

/* Whoever reads that it runs finds the file with its process id. */
static enum err note_init(struct shim *shim, pid_t init, struct error *e)
{
    char text[16];
    int size = snprintf(text, sizeof(text), "%d\n", init);
    shim->status.init_pid = init;
    return attempt_write_file(shim->context->dirs.run, "pid", (struct str){ text, (size_t)size },
                              e);
}

/* Only now, and before anybody is told that it runs: see runtime.h. */
static enum err limit_cpu(const struct shim *shim, struct error *e)
{
    struct grant grant;
    enum err rc = grant_decode(shim->context->spec.grant, &grant, e);
    return rc == ERR_OK
               ? shim->context->runtime->limit_cpu(&shim->context->work, grant.cpu_milli, e)
               : rc;
}

/* Why a program cannot be executed, for who named it; NULL: the reason is another. */
static const char *program_fault(int number)
{
    switch (number) {
    case ENOENT:
        return "the image has no such program, or not the interpreter that its first line names";
    case EACCES:
    case EISDIR:
        return "it is no file with permission to execute (chmod +x)";
    case ENOEXEC:
        return "it is neither a program for this machine nor a script that begins with #!";
    case ENOTDIR:
    case ELOOP:
        return "the path leads nowhere";
    default:
        return NULL;
    }
}

static enum err no_program(struct shim *shim, const struct init_report *report, struct error *e)
{
    const char *fault = program_fault(report->value);
    if (fault != NULL) {
        shim->has_no_program = true;
        return err_set(e, ERR_NOT_FOUND, "cannot run %s: %s", report->text, fault);
    }
    errno = report->value;
    return err_errno(e, "run %s", report->text);
}

static enum err take_first_word(struct shim *shim, struct error *e)
{
    struct init_report report;
    pid_t sender = 0;
    if (!read_report(shim, &report, &sender))
        return ERR_OK;
    if (report.kind == INIT_FAILED) {
        report.text[sizeof(report.text) - 1] = '\0';
        return no_program(shim, &report, e);
    }
    enum err rc = limit_cpu(shim, e);
    if (rc == ERR_OK)
        rc = note_init(shim, sender, e);
    if (rc != ERR_OK)
        return rc;
    shim->is_heard = true;
    shim->status.started_ns = clock_boottime().ns;
    publish(shim, ATTEMPT_RUNNING);
    return ERR_OK;
}

/*
 * The workload runs when berth-init says so. Often that is before the runtime has ended, which has
 * files to write and memory to give back: nobody waits for that to hear of it. No word at all, even
 * after the runtime has ended: berth-init was killed meanwhile, which is an end like any other.
 */
static enum err hear_start(struct shim *shim, struct process *starter, struct error *e)
{
    bool is_fake = shim->context->spec.is_fake == 1;
    struct pollfd polls[] = { { shim->report_fd, POLLIN, 0 }, { starter->pidfd, POLLIN, 0 } };
    if (!is_fake && poll(polls, COUNT_OF(polls), STARTED_MAX_MS) > 0 && polls[0].revents != 0) {
        enum err rc = take_first_word(shim, e);
        if (rc != ERR_OK)
            return rc;
    }
    pid_t init = -1;
    enum err rc = shim->context->runtime->started(&shim->context->work, starter, &init, e);
    if (rc != ERR_OK)
        return rc;
    shim->init_fd = pidfd_open(init, 0);
    if (shim->init_fd < 0)
        return err_errno(e, "hold the first process");
    if (!is_fake && !shim->is_heard && poll(polls, 1, STARTED_MAX_MS) > 0)
        rc = take_first_word(shim, e);
    if (rc == ERR_OK && !shim->is_heard)
        rc = limit_cpu(shim, e);
    return rc != ERR_OK || shim->is_heard ? rc : note_init(shim, init, e);
}

/* Starts the container on two pipes and a socket, whose ends for it are closed here again. */
static enum err start(struct shim *shim, struct error *e)
{
    AUTO(fd) int out_write = -1;
    AUTO(fd) int err_write = -1;
    AUTO(fd) int report_write = -1;
    AUTO(process) struct process starter = PROCESS_NONE;
    enum err rc = make_pipe(&shim->outputs[0], &out_write, e);
    if (rc == ERR_OK)
        rc = make_pipe(&shim->outputs[1], &err_write, e);
    if (rc == ERR_OK)
        rc = make_report(&shim->report_fd, &report_write, e);
    if (rc != ERR_OK)
        return rc;

    const int fds[RUNTIME_FD_COUNT] = { -1, out_write, err_write, report_write,
                                        shim->notice.listen_fd };
    rc = shim->context->runtime->start(&shim->context->work, fds, &starter, e);
    fd_close(fd_take(&out_write));
    fd_close(fd_take(&err_write));
    fd_close(fd_take(&report_write));
    fd_close(fd_take(&shim->notice.listen_fd));
    shim_settle_root(shim->context); /* while the runtime works */
    return rc == ERR_OK ? hear_start(shim, &starter, e) : rc;
}

/* Nothing runs; says why, so that it is reported like any other end. */
static void give_up(struct shim *shim, enum ipc_end end, const char *reason)
{
    shim->status.end = (uint32_t)end;
    shim->status.ended_ns = clock_boottime().ns;
    ipc_text_set(shim->status.reason, reason);
}

/* False: something was short before anything was begun. All of it may be tried again. */
static bool live(struct shim *shim, struct error *e)
{
    struct attempt_stop stop;
    if (attempt_read_stop(&shim->context->dirs, &stop, NULL) == ERR_OK) {
        give_up(shim, (enum ipc_end)stop.end, "stopped before it started");
        return true;
    }
    enum err rc = open_fds(shim, e);
    if (rc == ERR_OK)
        rc = shim_mount_own(shim->context, e);
    if (rc == ERR_OK && shim->context->spec.is_fake == 0)
        rc = shim_notice_open(&shim->notice, e);
    if (rc == ERR_OK)
        rc = shim_mount_root(shim->context, e);
    if (rc != ERR_OK && err_is_shortage(e))
        return false;
    if (rc == ERR_OK)
        rc = start(shim, e);
    if (rc != ERR_OK) {
        shim->context->runtime->kill(&shim->context->work);
        give_up(shim, shim->has_no_program ? IPC_END_NO_PROGRAM : IPC_END_START_FAILED, e->text);
        return true;
    }
    if (!shim->is_heard) {
        shim->status.started_ns = clock_boottime().ns;
        publish(shim, ATTEMPT_RUNNING);
    }
    set_deadlines(shim);
    look_for_stop(shim, clock_boottime()); /* it may have come before the signal was blocked */
    watch(shim);
    return true;
}

/* As if there had never been a shim, and said why: agentd takes it from there. */
static int begin_nothing(const struct shim *shim, int lock_fd, const char *why)
{
    struct error e = { 0 };
    int status = shim_clean(shim->context);
    enum err rc = attempt_write_file(shim->context->dirs.run, ATTEMPT_WHY_NAME, str_of(why), &e);
    (void)rc; /* then only that nothing was begun is known */
    return status == 0 && attempt_lock_unsign(lock_fd, &e) == ERR_OK ? EXIT_NOT_BEGUN : 1;
}

int shim_run(struct shim_context *context, int lock_fd)
{
    struct shim shim = {
        .context = context,
        .status = { .exit_code = -1 },
        .outputs = { -1, -1 },
        .report_fd = -1,
        .init_fd = -1,
        .signal_fd = -1,
        .timer_fd = -1,
        .notice = SHIM_NOTICE_NONE,
    };
    shim.notice.context = context;
    memcpy(shim.status.boot_id, context->spec.boot_id, sizeof(shim.status.boot_id));
    struct error e = { 0 };
    /* It ends with agentd until now; from now on it is the attempt's. */
    if (prctl(PR_SET_PDEATHSIG, 0) != 0 || attempt_lock_sign(lock_fd, getpid(), &e) != ERR_OK) {
        (void)dprintf(STDERR_FILENO, "berth-shim %s: %s\n", context->spec.name, e.text);
        return 1;
    }
    if (!live(&shim, &e)) {
        logspool_free(shim.spool);
        return begin_nothing(&shim, lock_fd, e.text);
    }
    if (shim.spool != NULL)
        logspool_finish(shim.spool, clock_wall());
    publish(&shim, ATTEMPT_EXITED);
    logspool_free(shim.spool);
    return shim_clean(context);
}
