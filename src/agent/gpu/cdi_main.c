/*
 * berth-cdi - reads the node's CDI specs and says what its devices need, as records
 * (edits.h) on stdout.
 *
 *   berth-cdi [--dir DIR]... [--hook PROGRAM]... INDEX:NAME...
 *
 * Of several names of one index the first that a spec has counts. berth-agentd starts it: the JSON
 * parser is in here, with no rights, no network and few system calls.
 */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/gpu/cdi.h"
#include "agent/image/sandbox.h"
#include "os/fd.h"

enum { LISTS_MAX = 16, NOBODY = 65534, USAGE_STATUS = 2 };

static const int allowed_calls[] = {
    SCMP_SYS(read),           SCMP_SYS(pread64),      SCMP_SYS(write),      SCMP_SYS(close),
    SCMP_SYS(openat),         SCMP_SYS(fstat),        SCMP_SYS(newfstatat), SCMP_SYS(statx),
    SCMP_SYS(lseek),          SCMP_SYS(getdents64),   SCMP_SYS(fcntl),      SCMP_SYS(brk),
    SCMP_SYS(mmap),           SCMP_SYS(munmap),       SCMP_SYS(mremap),     SCMP_SYS(madvise),
    SCMP_SYS(mprotect),       SCMP_SYS(getrandom),    SCMP_SYS(futex),      SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(exit_group), SCMP_SYS(gettimeofday),
    SCMP_SYS(clock_gettime),  SCMP_SYS(getpid),
};

/* Nobody's ids, no network, no file written, and no way back. */
static enum err lock_in(struct error *e)
{
    const struct rlimit none = { 0, 0 };
    if (geteuid() == 0 &&
        (unshare(CLONE_NEWNET | CLONE_NEWIPC) != 0 || setgroups(0, NULL) != 0 ||
         setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0))
        return err_errno(e, "become nobody");
    if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_FSIZE, &none) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_errno(e, "give up what is not needed");
    return sandbox_filter(allowed_calls, COUNT_OF(allowed_calls), e);
}

struct request {
    const char *directories[LISTS_MAX];
    const char *hooks[LISTS_MAX];
    struct cdi_options options;
    char **names; /* "INDEX:NAME" */
    int name_count;
};

static bool parse(int argc, char **argv, struct request *out)
{
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        bool is_hook = strcmp(argv[i], "--hook") == 0;
        size_t *count = is_hook ? &out->options.allowed_hook_count : &out->options.directory_count;
        if (*count == LISTS_MAX || (!is_hook && strcmp(argv[i], "--dir") != 0))
            return false;
        if (is_hook)
            out->hooks[(*count)++] = argv[i + 1];
        else
            out->directories[(*count)++] = argv[i + 1];
    }
    out->options.directories = out->options.directory_count > 0 ? out->directories : NULL;
    out->options.allowed_hooks = out->hooks;
    out->names = argv + i;
    out->name_count = argc - i;
    return true;
}

/* One broken device takes nothing away from the others. */
static void write_device(const struct cdi *cdi, unsigned index, const char *name, struct buf *out)
{
    struct error e = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    AUTO(container_edits) struct container_edits edits = { 0 };
    if (cdi_apply(cdi, &name, 1, &arena, &edits, &e) != ERR_OK) {
        edit_records_problem(out, e.text);
        return;
    }
    edit_records_device(out, index, &edits);
    if (edits.hooks_refused > 0)
        edit_records_problem(out, arena_format(&arena, "%s: %zu hooks are on no --cdi-hook list",
                                               name, edits.hooks_refused));
}

static enum err write_all(const struct request *request, const struct cdi *cdi, struct buf *out,
                          struct error *e)
{
    int64_t done = -1;
    for (size_t i = 0; i < cdi_problem_count(cdi); i++)
        edit_records_problem(out, cdi_problem(cdi, i));
    for (int i = 0; i < request->name_count; i++) {
        struct str rest = str_of(request->names[i]);
        int64_t index = 0;
        if (!str_to_i64(str_cut(&rest, ':'), 0, GPU_DEVICES_MAX - 1, &index) || rest.size == 0)
            return err_set(e, ERR_INVALID, "\"%.80s\" is not INDEX:NAME", request->names[i]);
        if (index == done || !cdi_has(cdi, rest.data))
            continue;
        write_device(cdi, (unsigned)index, rest.data, out);
        done = index;
    }
    edit_records_end(out);
    return ERR_OK;
}

static enum err serve(const struct request *request, struct error *e)
{
    AUTO(cdi) struct cdi *cdi = NULL;
    AUTO(buf) struct buf records = { 0 };
    enum err rc = lock_in(e);
    if (rc == ERR_OK)
        rc = cdi_open(&cdi, &request->options, e);
    if (rc == ERR_OK)
        rc = write_all(request, cdi, &records, e);
    return rc == ERR_OK ? fd_write_full(STDOUT_FILENO, records.data, records.size, e) : rc;
}

int main(int argc, char **argv)
{
    struct request request = { .name_count = 0 };
    if (!parse(argc, argv, &request)) {
        (void)fputs("usage: berth-cdi [--dir DIR]... [--hook PROGRAM]... INDEX:NAME...\n", stderr);
        return USAGE_STATUS;
    }
    struct error e = { 0 };
    if (serve(&request, &e) != ERR_OK) {
        (void)dprintf(STDERR_FILENO, "berth-cdi: %s\n", e.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
