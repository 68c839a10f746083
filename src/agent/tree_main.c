/*
 * berth-tree - one tree of files as a tar stream, in or out of a workload or a volume.
 *
 *     berth-tree get|put UID PATH      0: the stream (put), 1: the stream (get), 3: socket to
 *                                      agentd, 4: the directory it may not leave
 *
 * Everything in that directory belongs to a tenant: names, links, sizes, and the stream too. So
 * before it looks at any of it the program makes that directory its root, becomes the tenant's
 * first user without any capability, and gives up every system call that could load code, start
 * a program, reach the network or another process. What is left can do no more than the
 * tenant's own processes can.
 *
 * Where files go is as with `cp -r` (os/place.h). PATH of `get` that is "/" or ends in "/." asks
 * for what is inside.
 */
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/shim.h"
#include "os/archive.h"
#include "os/fd.h"
#include "os/place.h"

enum { CONTROL_FD = 3, ROOT_FD = 4, BLOCK = 64 * 1024, EXIT_USAGE = 2, EPERM_NUMBER = 1 };

static const int denied_calls[] = {
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(socket),
    SCMP_SYS(socketpair),
    SCMP_SYS(connect),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(kill),
    SCMP_SYS(tkill),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(chroot),
    SCMP_SYS(pivot_root),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(clone),
    SCMP_SYS(clone3),
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
    SCMP_SYS(bpf),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
};

static enum err load_filter(struct error *e)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL)
        return err_set(e, ERR_IO, "cannot make a system call filter");
    int rc = 0;
    for (size_t i = 0; i < COUNT_OF(denied_calls) && rc == 0; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM_NUMBER), denied_calls[i], 0);
    /* A library of the tenant's, asked for by a conversion of names, must not become our code. */
    const int mapping_calls[] = { SCMP_SYS(mmap), SCMP_SYS(mprotect), SCMP_SYS(pkey_mprotect) };
    for (size_t i = 0; i < COUNT_OF(mapping_calls) && rc == 0; i++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM_NUMBER), mapping_calls[i], 1,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    errno = -rc;
    return rc == 0 ? ERR_OK : err_errno(e, "load the system call filter");
}

static enum err become(uid_t uid, struct error *e)
{
    if (fchdir(ROOT_FD) != 0 || chroot(".") != 0 || chdir("/") != 0 || close(ROOT_FD) != 0)
        return err_errno(e, "enter the directory");
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
            return err_errno(e, "drop capability %d", cap);
    if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)
        return err_errno(e, "become uid %u", uid);
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { 0 };
    if (syscall(SYS_capset, &header, none) != 0)
        return err_errno(e, "drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_errno(e, "set no_new_privs");
    return load_filter(e);
}

/* get */

/* Writes a file's bytes; one that shrinks meanwhile is filled up with zeros, one that
 * grows is cut. */
static enum err put_bytes(struct archive *out, const char *path, struct error *e)
{
    AUTO(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_errno(e, "open %s", path);
    static char bytes[BLOCK];
    for (size_t got = BLOCK; got == BLOCK;) {
        enum err rc = fd_read_full(fd, bytes, sizeof(bytes), &got, e);
        if (rc != ERR_OK)
            return rc;
        if (got > 0 && archive_write_data(out, bytes, got) < 0)
            return archive_failed(out, ERR_IO, "write the stream", e);
    }
    return ERR_OK;
}

static enum err put_entry(struct archive *out, const FTSENT *found, const char *name,
                          struct error *e)
{
    char target[PATH_MAX] = "";
    bool is_link = S_ISLNK(found->fts_statp->st_mode);
    bool is_file = S_ISREG(found->fts_statp->st_mode);
    if (!is_link && !is_file && !S_ISDIR(found->fts_statp->st_mode))
        return ERR_OK; /* devices, sockets and pipes stay where they are */
    if (is_link && readlink(found->fts_accpath, target, sizeof(target) - 1) < 0)
        return err_errno(e, "read the link %s", found->fts_path);
    struct archive_entry *entry = archive_entry_new();
    archive_entry_copy_stat(entry, found->fts_statp);
    archive_entry_set_uid(entry, 0);
    archive_entry_set_gid(entry, 0);
    archive_entry_copy_pathname(entry, name);
    if (is_link)
        archive_entry_copy_symlink(entry, target);
    if (!is_file)
        archive_entry_set_size(entry, 0);
    int wrote = archive_write_header(out, entry);
    archive_entry_free(entry);
    if (wrote < ARCHIVE_WARN)
        return archive_failed(out, ERR_IO, "write the stream", e);
    return is_file ? put_bytes(out, found->fts_accpath, e) : ERR_OK;
}

static bool ends_with(const char *path, const char *end)
{
    size_t size = strlen(path);
    return size >= strlen(end) && strcmp(path + size - strlen(end), end) == 0;
}

/* What a file below `root` is called in the stream. */
static const char *stream_name(const char *root, bool is_inside, const char *path,
                               char out[PATH_MAX + 2])
{
    const char *last = strrchr(root, '/');
    const char *below = path + strlen(root);
    if (!is_inside)
        return path + (last - root) + 1;
    while (*below == '/')
        below++;
    (void)snprintf(out, PATH_MAX + 2, "%s%s", *below != '\0' ? "./" : ".", below);
    return out;
}

static enum err walk(struct archive *out, const char *path, struct error *e)
{
    char root[PATH_MAX];
    char name[PATH_MAX + 2];
    size_t size = place_trim(path);
    if (size >= sizeof(root))
        return err_set(e, ERR_INVALID, "the path is too long");
    memcpy(root, path, size);
    root[size] = '\0';
    bool is_inside = root[1] == '\0' || ends_with(path, "/.");
    char *const roots[] = { root, NULL };
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL);
    if (tree == NULL)
        return err_errno(e, "open %s", path);
    enum err rc = ERR_OK;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    for (FTSENT *found = fts_read(tree); found != NULL && rc == ERR_OK; found = fts_read(tree)) {
        bool is_unreadable =
            found->fts_info == FTS_DNR || found->fts_info == FTS_ERR || found->fts_info == FTS_NS;
        errno = found->fts_errno;
        if (is_unreadable)
            rc = err_errno(e, "read %s", found->fts_path);
        else if (found->fts_info != FTS_DP)
            rc = put_entry(out, found, stream_name(root, is_inside, found->fts_path, name), e);
    }
    (void)fts_close(tree);
    return rc;
}

static enum err get_tree(const char *path, struct error *e)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return err_set(e, ERR_NOT_FOUND, "%s does not exist", path);
    struct archive *out = archive_write_new();
    enum err rc = ERR_OK;
    if (archive_write_set_format_gnutar(out) != ARCHIVE_OK ||
        archive_write_open_fd(out, STDOUT_FILENO) != ARCHIVE_OK)
        rc = archive_failed(out, ERR_IO, "write the stream", e);
    if (rc == ERR_OK)
        rc = walk(out, path, e);
    if (rc == ERR_OK && archive_write_close(out) != ARCHIVE_OK)
        rc = archive_failed(out, ERR_IO, "write the stream", e);
    if (rc != ERR_OK)
        (void)archive_write_fail(out); /* no end mark: the reader sees that it is not whole */
    (void)archive_write_free(out);
    return rc;
}

/* put */

static enum err take_bytes(struct archive *in, struct archive *disk, struct error *e)
{
    for (;;) {
        const void *bytes = NULL;
        size_t size = 0;
        la_int64_t offset = 0;
        int rc = archive_read_data_block(in, &bytes, &size, &offset);
        if (rc == ARCHIVE_EOF)
            return ERR_OK;
        if (rc < ARCHIVE_WARN)
            return archive_failed(in, ERR_IO, "read the stream", e);
        if (archive_write_data_block(disk, bytes, size, offset) < ARCHIVE_WARN)
            return archive_failed(disk, ERR_IO, "write the files", e);
    }
}

static enum err take_entry(struct archive *in, struct archive *disk, struct archive_entry *entry,
                           struct error *e)
{
    mode_t type = archive_entry_filetype(entry);
    bool is_link = archive_entry_hardlink(entry) != NULL;
    if (!is_link && type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)
        return err_set(e, ERR_INVALID, "%s is no file, directory or link",
                       archive_entry_pathname(entry));
    archive_entry_set_perm(entry, archive_entry_perm(entry) & 0777); /* no setuid, no setgid */
    if (archive_write_header(disk, entry) < ARCHIVE_WARN)
        return archive_failed(disk, ERR_IO, "write the files", e);
    enum err rc = take_bytes(in, disk, e);
    if (rc == ERR_OK && archive_write_finish_entry(disk) < ARCHIVE_WARN)
        rc = archive_failed(disk, ERR_IO, "write the files", e);
    return rc;
}

static enum err take_all(struct archive *in, struct archive *disk, struct place *place,
                         struct error *e)
{
    for (;;) {
        struct archive_entry *entry = NULL;
        int rc = archive_read_next_header(in, &entry);
        if (rc == ARCHIVE_EOF)
            return ERR_OK;
        if (rc < ARCHIVE_WARN)
            return archive_failed(in, ERR_IO, "read the stream", e);
        enum err taken = archive_place(place, entry, e);
        if (taken == ERR_OK)
            taken = take_entry(in, disk, entry, e);
        if (taken != ERR_OK)
            return taken;
    }
}

static enum err put_tree(const char *path, struct error *e)
{
    struct place place;
    enum err rc = place_find(path, &place, e);
    if (rc != ERR_OK)
        return rc;
    struct archive *in = archive_read_new();
    struct archive *disk = archive_write_disk_new();
    int flags = ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_UNLINK |
                ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS;
    if (archive_read_support_format_tar(in) < ARCHIVE_WARN ||
        archive_read_open_fd(in, STDIN_FILENO, BLOCK) != ARCHIVE_OK)
        rc = archive_failed(in, ERR_IO, "read the stream", e);
    if (rc == ERR_OK && archive_write_disk_set_options(disk, flags) != ARCHIVE_OK)
        rc = archive_failed(disk, ERR_IO, "write the files", e);
    if (rc == ERR_OK)
        rc = take_all(in, disk, &place, e);
    if (rc == ERR_OK)
        fd_drain(STDIN_FILENO); /* zeros follow the mark of an archive's end, and may come later */
    if (archive_write_free(disk) != ARCHIVE_OK && rc == ERR_OK)
        rc = err_set(e, ERR_IO, "the last files could not be finished");
    (void)archive_read_free(in);
    return rc;
}

static void report(enum shim_exec_kind kind, enum err code, const char *text)
{
    struct shim_exec_report what = { .kind = (uint32_t)kind, .code = (uint32_t)code };
    ipc_text_set(what.text, text);
    (void)send(CONTROL_FD, &what, sizeof(what), MSG_NOSIGNAL); /* agentd gone: nobody to tell */
}

int main(int argc, char **argv)
{
    int64_t uid = -1;
    bool is_put = argc == 4 && strcmp(argv[1], "put") == 0;
    bool is_get = argc == 4 && strcmp(argv[1], "get") == 0;
    if ((!is_put && !is_get) || !str_to_i64(str_of(argv[2]), 0, UINT32_MAX - 1, &uid) ||
        argv[3][0] != '/') {
        (void)dprintf(STDERR_FILENO, "usage: berth-tree get|put UID PATH\n"
                                     "Started by berth-agentd; see berth-agentd(8).\n");
        return EXIT_USAGE;
    }
    struct error e = { 0 };
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)umask(022);
    enum err rc = become((uid_t)uid, &e);
    report(SHIM_EXEC_OPENED, rc, e.text);
    if (rc != ERR_OK)
        return 1;
    rc = is_put ? put_tree(argv[3], &e) : get_tree(argv[3], &e);
    report(SHIM_EXEC_EXITED, rc, e.text);
    return rc == ERR_OK ? 0 : 1;
}
