#include "cli/tree.h"

#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/ignore.h"
#include "cli/safe.h"
#include "os/archive.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/place.h"

enum { DEPTH_MAX = 64, BLOCK = 64 * 1024, IGNORE_BYTES_MAX = 1024 * 1024, PATH_BYTES = 4096 };

struct writer {
    struct archive *archive;
    enum tree_ignore mode;
    struct ignore ignore;
    unsigned depth;
};

/* ---- writing --------------------------------------------------------------------------------- */

static enum err write_content(struct archive *archive, int fd, struct error *e)
{
    static char block[BLOCK];
    for (;;) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0)
            return err_errno(e, "read");
        if (got == 0)
            return ERR_OK;
        if (archive_write_data(archive, block, (size_t)got) < 0)
            return archive_failed(archive, ERR_IO, "tar", e);
    }
}

static void entry_blank(struct archive_entry *entry)
{
    archive_entry_set_mtime(entry, 0, 0);
    archive_entry_set_uid(entry, 0);
    archive_entry_set_gid(entry, 0);
    archive_entry_unset_atime(entry);
    archive_entry_unset_ctime(entry);
}

static enum err write_entry(struct writer *writer, int dir_fd, const char *file, const char *name,
                            const struct stat *info, struct error *e)
{
    char target[PATH_BYTES] = "";
    AUTO(fd) int fd = -1;
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_copy_stat(entry, info);
    if (writer->mode == TREE_GITIGNORE)
        entry_blank(entry);
    if (S_ISLNK(info->st_mode)) {
        ssize_t got = readlinkat(dir_fd, file, target, sizeof(target) - 1);
        target[MAX_OF(got, 0)] = '\0';
        archive_entry_set_symlink(entry, target);
    } else if (S_ISREG(info->st_mode)) {
        fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) {
            archive_entry_free(entry);
            return err_errno(e, "%s", name);
        }
    }
    bool is_good = archive_write_header(writer->archive, entry) == ARCHIVE_OK;
    archive_entry_free(entry);
    if (!is_good)
        return archive_failed(writer->archive, ERR_IO, "tar", e);
    return fd >= 0 ? write_content(writer->archive, fd, e) : ERR_OK;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void read_ignore(struct writer *writer, int dir_fd, const char *prefix)
{
    AUTO(buf) struct buf text = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    const char *path = arena_format(&arena, "/proc/self/fd/%d/.gitignore", dir_fd);
    if (writer->mode == TREE_GITIGNORE && file_read(path, IGNORE_BYTES_MAX, &text, NULL) == ERR_OK)
        ignore_add(&writer->ignore, str_of(prefix), buf_str(&text));
}

static enum err write_dir(struct writer *writer, int dir_fd, const char *prefix, struct error *e);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, at most DEPTH_MAX */
static enum err write_child(struct writer *writer, int dir_fd, const char *file, const char *name,
                            struct error *e)
{
    struct stat info;
    if (fstatat(dir_fd, file, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? ERR_OK : err_errno(e, "%s", name); /* gone meanwhile: fine */
    bool is_dir = S_ISDIR(info.st_mode);
    if (writer->mode == TREE_GITIGNORE &&
        (strcmp(file, ".git") == 0 || ignore_matches(&writer->ignore, str_of(name), is_dir)))
        return ERR_OK;
    if (!is_dir && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
        return ERR_OK; /* sockets, pipes and devices do not travel */
    enum err rc = write_entry(writer, dir_fd, file, name, &info, e);
    if (rc != ERR_OK || !is_dir)
        return rc;
    AUTO(fd) int fd = openat(dir_fd, file, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 ? write_dir(writer, fd, name, e) : err_errno(e, "%s", name);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, at most DEPTH_MAX */
static enum err write_dir(struct writer *writer, int dir_fd, const char *prefix, struct error *e)
{
    struct dirent **entries = NULL;
    char name[PATH_BYTES];
    enum err rc = ERR_OK;
    if (writer->depth == DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "%s: more than %d directories deep", prefix, DEPTH_MAX);
    writer->depth++;
    read_ignore(writer, dir_fd, prefix);
    int count = scandirat(dir_fd, ".", &entries, not_dots, by_name);
    if (count < 0)
        rc = err_errno(e, "%s", prefix);
    for (int i = 0; i < count; i++) {
        int length = snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] != '\0' ? "/" : "",
                              entries[i]->d_name);
        if (rc == ERR_OK && length >= (int)sizeof(name))
            rc = err_set(e, ERR_LIMIT, "%s: the path is too long", prefix);
        if (rc == ERR_OK)
            rc = write_child(writer, dir_fd, entries[i]->d_name, name, e);
        free(entries[i]);
    }
    free(entries);
    writer->depth--;
    return rc;
}

enum err tree_write(int fd, const char *path, const char *name, enum tree_ignore ignore,
                    struct error *e)
{
    struct writer writer = { .archive = archive_write_new(), .mode = ignore };
    struct stat info = { 0 };
    (void)archive_write_set_format_pax_restricted(writer.archive);
    (void)archive_write_set_bytes_per_block(writer.archive, BLOCK);
    enum err rc = archive_write_open_fd(writer.archive, fd) == ARCHIVE_OK
                      ? ERR_OK
                      : archive_failed(writer.archive, ERR_IO, "tar", e);
    AUTO(fd) int top = open(path, O_RDONLY | O_CLOEXEC);
    if (rc == ERR_OK && (top < 0 || fstat(top, &info) != 0))
        rc = err_errno(e, "%s", path);
    bool is_dir = rc == ERR_OK && S_ISDIR(info.st_mode);
    if (rc == ERR_OK && name[0] != '\0')
        rc = write_entry(&writer, AT_FDCWD, path, name, &info, e);
    if (rc == ERR_OK && is_dir)
        rc = write_dir(&writer, top, name, e);
    if (rc == ERR_OK && archive_write_close(writer.archive) != ARCHIVE_OK)
        rc = archive_failed(writer.archive, ERR_IO, "tar", e);
    (void)archive_write_free(writer.archive);
    ignore_done(&writer.ignore);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * Only files and directories come here. A workload's symbolic link may lead anywhere on this
 * machine: whoever opened it later would read or write there. Looking at where it leads does not
 * help, because links lead through each other.
 */
static bool is_wanted(struct archive_entry *entry)
{
    mode_t type = archive_entry_filetype(entry);
    return (type == AE_IFREG || type == AE_IFDIR) && archive_entry_hardlink(entry) == NULL;
}

/* Names of others: nothing of them may reach the terminal as it is. */
static void tell_skipped(struct archive_entry *entry)
{
    AUTO(buf) struct buf name = { 0 };
    bool is_link =
        archive_entry_filetype(entry) == AE_IFLNK || archive_entry_hardlink(entry) != NULL;
    safe_line(str_of(archive_entry_pathname(entry)), &name);
    (void)fprintf(stderr, "berth: skipped %.*s: %s\n", STR_ARG(buf_str(&name)),
                  is_link ? "links are not copied" : "not a file");
}

/* Not archive_read_extract2, which makes a warning out of a file that could not be made. */
static enum err read_entry(struct archive *in, struct archive_entry *entry, struct archive *out,
                           struct error *e)
{
    const void *block = NULL;
    size_t size = 0;
    la_int64_t offset = 0;
    if (archive_write_header(out, entry) < ARCHIVE_WARN)
        return archive_failed(out, ERR_IO, "tar", e);
    while (archive_entry_size(entry) > 0) {
        int got = archive_read_data_block(in, &block, &size, &offset);
        if (got == ARCHIVE_EOF)
            break;
        if (got < ARCHIVE_WARN)
            return archive_failed(in, ERR_IO, "tar", e);
        if (archive_write_data_block(out, block, size, offset) < ARCHIVE_WARN)
            return archive_failed(out, ERR_IO, "tar", e);
    }
    return archive_write_finish_entry(out) < ARCHIVE_WARN ? archive_failed(out, ERR_IO, "tar", e)
                                                          : ERR_OK;
}

/* The next entry that is wanted; those that are not are counted, and named when asked for. */
static enum err next_entry(struct archive *in, bool is_verbose, size_t *skipped,
                           struct archive_entry **out, struct error *e)
{
    for (;;) {
        int got = archive_read_next_header(in, out);
        if (got == ARCHIVE_EOF) {
            *out = NULL;
            return ERR_OK;
        }
        if (got < ARCHIVE_WARN)
            return archive_failed(in, ERR_IO, "tar", e);
        if (is_wanted(*out))
            return ERR_OK;
        ++*skipped;
        if (is_verbose)
            tell_skipped(*out);
    }
}

static enum err read_entries(struct archive *in, struct archive *out, struct place *place,
                             enum tree_words words, struct error *e)
{
    struct archive_entry *entry = NULL;
    size_t skipped = 0;
    size_t copied = 0;
    for (;;) {
        enum err rc = next_entry(in, words == TREE_VERBOSE, &skipped, &entry, e);
        if (rc != ERR_OK)
            return rc;
        if (entry == NULL)
            break;
        rc = archive_place(place, entry, e);
        archive_entry_set_perm(entry, archive_entry_perm(entry) & 0777); /* no set-user-id */
        if (rc == ERR_OK)
            rc = read_entry(in, entry, out, e);
        if (rc != ERR_OK)
            return err_wrap(e, rc, "%s", archive_entry_pathname(entry));
        copied++;
    }
    if (skipped > 0 && copied == 0)
        return err_set(
            e, ERR_INVALID,
            "nothing was copied: links are not, nor what is no file; name what it leads to");
    if (skipped > 0 && words == TREE_BRIEF)
        (void)fprintf(stderr,
                      "berth: skipped %zu: links are not copied, nor what is no file; --verbose "
                      "names them\n",
                      skipped);
    return ERR_OK;
}

static enum err tree_read(int fd, const char *path, enum tree_words words, struct error *e)
{
    struct place place;
    enum err rc = place_find(path, &place, e);
    if (rc != ERR_OK)
        return rc;
    struct archive *in = archive_read_new();
    struct archive *out = archive_write_disk_new();
    (void)archive_read_support_format_tar(in);
    (void)archive_read_support_format_empty(in); /* the other side says why nothing comes */
    (void)archive_write_disk_set_options(
        out, ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                 ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
    rc = archive_read_open_fd(in, fd, BLOCK) == ARCHIVE_OK ? read_entries(in, out, &place, words, e)
                                                           : archive_failed(in, ERR_IO, "tar", e);
    if (rc == ERR_OK && archive_write_close(out) != ARCHIVE_OK)
        rc = archive_failed(out, ERR_IO, "tar", e);
    if (rc == ERR_OK)
        fd_drain(fd); /* zeros follow the mark of an archive's end, and may come later */
    (void)archive_read_free(in);
    (void)archive_write_free(out);
    return rc;
}

/* ---- in a child ------------------------------------------------------------------------------ */

static _Noreturn void child_end(enum err rc, const struct error *e)
{
    if (rc != ERR_OK) {
        AUTO(buf) struct buf text = { 0 };
        safe_line(str_of(e->text), &text); /* it may have names of a workload's files */
        (void)fprintf(stderr, "berth: %.*s\n", STR_ARG(buf_str(&text)));
    }
    _exit(rc == ERR_OK ? 0 : 1);
}

enum err tree_spawn_write(const char *path, const char *name, struct tree_child *out,
                          struct error *e)
{
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    out->pid = fork();
    if (out->pid == 0) {
        struct error why = { 0 };
        fd_close(ends[0]);
        rc = tree_write(ends[1], path, name, TREE_ALL, &why);
        child_end(rc, &why);
    }
    fd_close(ends[1]);
    out->fd = ends[0];
    return out->pid > 0 ? ERR_OK : err_errno(e, "fork");
}

enum err tree_spawn_read(const char *path, enum tree_words words, struct tree_child *out,
                         struct error *e)
{
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    out->pid = fork();
    if (out->pid == 0) {
        struct error why = { 0 };
        fd_close(ends[1]);
        rc = tree_read(ends[0], path, words, &why);
        child_end(rc, &why);
    }
    fd_close(ends[0]);
    out->fd = ends[1];
    return out->pid > 0 ? ERR_OK : err_errno(e, "fork");
}

enum err tree_wait(struct tree_child *child, struct error *e)
{
    int status = 0;
    fd_close(child->fd);
    child->fd = -1;
    if (waitpid(child->pid, &status, 0) != child->pid)
        return err_errno(e, "waitpid");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? ERR_OK
               : err_set(e, ERR_IO, "the files could not all be copied");
}
