#include "agent/image/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The sanitizers' own system calls and address space would not fit into the sandbox. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

enum err sandbox_unshare(struct error *e)
{
    int spaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    if (unshare(spaces) != 0)
        return err_errno(e, "make the namespaces of the unpacker");
    return ERR_OK;
}

static enum err become_root_inside(struct error *e)
{
    if (setgroups(0, NULL) != 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
        return err_errno(e, "take the unpacker's ids");
    return ERR_OK;
}

static enum err enter_root(int dir_fd, struct error *e)
{
    if (fchdir(dir_fd) != 0 || chroot(".") != 0 || chdir("/") != 0)
        return err_errno(e, "enter the directory to unpack into");
    return ERR_OK;
}

/* What is left: to give files any owner and mode of the own range, and to write into all
 * of them. */
static enum err shed_capabilities(struct error *e)
{
    uint32_t keep = 1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER | 1U << CAP_FSETID;
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
            return err_errno(e, "drop capability %d from the bounding set", cap);
    }
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { .effective = keep, .permitted = keep } };
    if (syscall(SYS_capset, &header, data) != 0)
        return err_errno(e, "drop capabilities");
    return ERR_OK;
}

static enum err limit_resources(int64_t file_bytes, struct error *e)
{
    const struct {
        __rlimit_resource_t resource;
        rlim_t value;
    } limits[] = {
        { RLIMIT_CORE, 0 },
        { RLIMIT_FSIZE, (rlim_t)file_bytes },
        { RLIMIT_NOFILE, 64 },
        { RLIMIT_CPU, 7200 },
        /* Room for the largest window that a zstd or xz frame may ask for; a bomb fails here. */
        { RLIMIT_AS, IS_SANITIZED ? RLIM_INFINITY : (rlim_t)1 << 30 },
    };
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct rlimit now;
        if (getrlimit(limits[i].resource, &now) != 0)
            return err_errno(e, "read a resource limit");
        now.rlim_cur = MIN_OF(limits[i].value, now.rlim_max);
        now.rlim_max = now.rlim_cur;
        if (setrlimit(limits[i].resource, &now) != 0)
            return err_errno(e, "set a resource limit");
    }
    (void)signal(SIGXFSZ, SIG_IGN); /* EFBIG from write says it better */
    return ERR_OK;
}

static const int allowed_calls[] = {
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(pwrite64),
    SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),
    SCMP_SYS(close),
    SCMP_SYS(fcntl),
    SCMP_SYS(lseek),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(openat),
    SCMP_SYS(openat2),
    SCMP_SYS(mkdirat),
    SCMP_SYS(mknodat),
    SCMP_SYS(symlinkat),
    SCMP_SYS(linkat),
    SCMP_SYS(unlinkat),
    SCMP_SYS(fchown),
    SCMP_SYS(fchownat),
    SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),
    SCMP_SYS(utimensat),
    SCMP_SYS(fsetxattr),
    SCMP_SYS(ftruncate),
    SCMP_SYS(brk),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(getrandom),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(futex),
    SCMP_SYS(getpid),
    SCMP_SYS(uname),
    SCMP_SYS(gettid),
    SCMP_SYS(tgkill),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(mprotect),
};

enum err sandbox_filter(const int *calls, size_t count, struct error *e)
{
    if (IS_SANITIZED)
        return ERR_OK;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (filter == NULL)
        return err_set(e, ERR_IO, "cannot make a system call filter");
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    if (rc != 0) {
        errno = -rc;
        return err_errno(e, "load the system call filter");
    }
    return ERR_OK;
}

enum err sandbox_enter(int dir_fd, int64_t file_bytes, struct error *e)
{
    enum err rc = become_root_inside(e);
    if (rc == ERR_OK)
        rc = enter_root(dir_fd, e);
    if (rc == ERR_OK)
        rc = shed_capabilities(e);
    if (rc == ERR_OK)
        rc = limit_resources(file_bytes, e);
    if (rc != ERR_OK)
        return rc;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_errno(e, "set no_new_privs");
    return sandbox_filter(allowed_calls, COUNT_OF(allowed_calls), e);
}
