/*
 * process.h - children without a shell.
 *
 * A child gets exactly what its spec names: arguments, environment, descriptors, nothing else that
 * happens to be open, no blocked or ignored signals. It is held by a pidfd, which fits into a poll
 * set and can never name another process.
 */
#ifndef OS_PROCESS_H
#define OS_PROCESS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/timepoint.h"

enum { PROCESS_FDS_MAX = 16 };

struct process_spec {
    const char *const *argv; /* NULL at the end; argv[0] without a slash is looked up in PATH */
    const char *program;     /* what is executed under the name argv[0]; NULL: argv[0] itself */
    const char *const *env;  /* NULL at the end; NULL itself: ours */
    const char *dir;         /* working directory; NULL: ours */
    const int *fds;          /* fds[i] becomes descriptor i of the child; -1: /dev/null */
    size_t fd_count;         /* <= PROCESS_FDS_MAX; 0..2 beyond the count are /dev/null as well */
    bool is_group_leader;    /* a session and group of its own: a signal can reach all of it */
    bool dies_with_us;       /* SIGKILL when the thread that spawned it ends */
    bool is_expendable;      /* it and its children go first when the machine's memory is used up */
};

struct process {
    pid_t pid;
    int pidfd; /* owned; readable once the process has ended */
    bool is_group_leader;
};

/* How a process ended: by exit with `code`, or by `signal` (then code is 128 + signal, as
 * in sh). */
struct process_exit {
    int code;
    int signal;
};

/* ERR_NOT_FOUND: no such program. Nothing is left behind on failure. */
MUST_CHECK enum err process_spawn(const struct process_spec *spec, struct process *out,
                                  struct error *e);

/* Waits and reaps. ERR_UNAVAILABLE: still running at the deadline. */
MUST_CHECK enum err process_wait(struct process *process, struct mono deadline,
                                 struct process_exit *out, struct error *e);

/* To the process, or to its whole group when it leads one. One that has ended is fine. */
void process_signal(const struct process *process, int signal); /* for tests */

/* Kills and reaps a process that still runs, and releases it. All-zero with pidfd -1 is a no-op. */
void process_done(struct process *process);
DEFINE_CLEANUP_AT(process, struct process, process_done)

#define PROCESS_NONE ((struct process){ .pid = -1, .pidfd = -1 })

struct process_run {
    struct process_spec
        spec;          /* fds are not used; leads a group, so that a timeout ends all of it */
    struct str input;  /* its stdin */
    size_t output_max; /* bytes of each of stdout and stderr */
    int timeout_ms;
};

struct process_result {
    struct process_exit exit;
    struct buf output; /* stdout, whole */
    struct buf errors; /* stderr, cut at output_max */
};

void process_result_done(struct process_result *result);
DEFINE_CLEANUP_AT(process_result, struct process_result, process_result_done)

/*
 * Runs to the end and captures. ERR_UNAVAILABLE: killed at the timeout. ERR_LIMIT: stdout outgrew
 * output_max, killed. Any exit status is ERR_OK: the caller knows which ones are good.
 */
MUST_CHECK enum err process_run(const struct process_run *run, struct process_result *out,
                                struct error *e);

/* As process_run, and any end but exit 0 is ERR_IO with the last line of stderr in the text. */
MUST_CHECK enum err process_check(const struct process_run *run, struct process_result *out,
                                  struct error *e);

#endif
