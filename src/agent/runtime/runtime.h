/*
 * runtime.h - what makes processes out of a prepared attempt. Used by the shim, whose working
 * directory is the attempt's in memory and who is a subreaper, so that what is started is
 * its child.
 *
 * Two of them: crun, and a fake for tests and simulated load that runs nothing (runtime/fake.c).
 */
#ifndef AGENT_RUNTIME_RUNTIME_H
#define AGENT_RUNTIME_RUNTIME_H

#include <sys/types.h>

#include "agent/attempt.h"
#include "agent/node_facts.h"
#include "os/process.h"

struct runtime_work {
    const struct attempt_spec *spec; /* borrowed */
    const struct attempt_dirs *dirs; /* borrowed */
    const char *bundle;  /* path of the one in memory, our working directory; borrowed */
    const char *program; /* a sealed copy of spec->runtime (program.h); NULL: none */
    enum cgroup_mode cgroup_mode;
};

/* Descriptors of a workload's first process: as in a shell, and where berth-init reports and
 * listens (init.h). */
enum {
    RUNTIME_STDIN,
    RUNTIME_STDOUT,
    RUNTIME_STDERR,
    RUNTIME_REPORT,
    RUNTIME_NOTICE,
    RUNTIME_FD_COUNT
};

struct runtime_exec {
    const char *process_file; /* in the bundle: an OCI process */
    const char *pid_file;
    const char *console_socket; /* takes the terminal's master; NULL: fds are used */
    int fds[3];                 /* stdin, stdout, stderr of the command */
};

struct runtime {
    const char *name;
    /* Begins to make config.json run. `starter` is what does that, and is yours. */
    enum err (*start)(const struct runtime_work *work, const int fds[RUNTIME_FD_COUNT],
                      struct process *starter, struct error *e);
    /* Waits until `starter` has done so; `init` is the first process then, a child of ours. */
    enum err (*started)(const struct runtime_work *work, struct process *starter, pid_t *init,
                        struct error *e);
    /* From now on it gets no more of the CPUs than this. Not before: the set-up would crawl. */
    enum err (*limit_cpu)(const struct runtime_work *work, uint32_t cpu_milli, struct error *e);
    /* A further command in the same container; `pid` is a child of ours. */
    enum err (*exec)(const struct runtime_work *work, const struct runtime_exec *exec, pid_t *pid,
                     struct error *e);
    int64_t (*oom_kills)(const struct runtime_work *work);
    /* SIGKILL to all of it, whoever is its parent. */
    void (*kill)(const struct runtime_work *work);
    /* Ends what is left of a container and forgets it. False: some of it would not end. */
    bool (*remove)(const struct runtime_work *work);
};

extern const struct runtime runtime_crun;
extern const struct runtime runtime_fake;

#endif
