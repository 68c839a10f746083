#include "agent/image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

static const char opaque_marker[] = ".wh..wh..opq";
enum { WHITEOUT_PREFIX_SIZE = 4 }; /* of ".wh." */
static const char aufs_prefix[] = ".wh..wh.";

void tree_place_done(struct tree_place *place)
{
    fd_close(fd_take(&place->dir_fd));
}

/* One component below `dir_fd`, which must be a directory and no link. */
static int open_dir_below(int dir_fd, const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

static bool is_whiteout(int dir_fd, const char *name)
{
    struct stat st;
    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
           st.st_rdev == makedev(0, 0);
}

static enum err set_opaque(int fd, struct error *e)
{
    if (fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) != 0)
        return err_errno(e, "mark a directory as opaque");
    return ERR_OK;
}

/*
 * Makes a directory where nothing or a whiteout of this layer is. With both, what is below is
 * hidden and replaced by this directory: it is opaque.
 */
static enum err make_dir(int dir_fd, const char *name, int *out, struct error *e)
{
    bool was_whiteout = is_whiteout(dir_fd, name);
    if (was_whiteout && unlinkat(dir_fd, name, 0) != 0)
        return err_errno(e, "replace the whiteout of %.100s", name);
    if (mkdirat(dir_fd, name, 0755) != 0)
        return err_errno(e, "make the directory %.100s", name);
    AUTO(fd) int fd = open_dir_below(dir_fd, name);
    if (fd < 0)
        return err_errno(e, "open the directory %.100s", name);
    if (was_whiteout) {
        enum err rc = set_opaque(fd, e);
        if (rc != ERR_OK)
            return rc;
    }
    *out = fd_take(&fd);
    return ERR_OK;
}

static enum err enter_dir(int dir_fd, const char *name, int *out, struct error *e)
{
    int fd = open_dir_below(dir_fd, name);
    if (fd >= 0) {
        *out = fd;
        return ERR_OK;
    }
    if (errno == ELOOP)
        return err_set(e, ERR_INVALID, "it passes through the symbolic link %.100s", name);
    if (errno == ENOENT || (errno == ENOTDIR && is_whiteout(dir_fd, name)))
        return make_dir(dir_fd, name, out, e);
    if (errno == ENOTDIR)
        return err_set(e, ERR_INVALID, "it passes through %.100s, which is no directory", name);
    return err_errno(e, "open the directory %.100s", name);
}

/* The next component that names something; empty at the end of the path. */
static enum err next_component(struct str *rest, char out[TREE_NAME_MAX], struct error *e)
{
    out[0] = '\0';
    while (rest->size > 0) {
        struct str part = str_cut(rest, '/');
        if (part.size == 0 || str_is(part, "."))
            continue;
        if (str_is(part, ".."))
            return err_set(e, ERR_INVALID, "it contains \"..\"");
        if (part.size >= TREE_NAME_MAX)
            return err_set(e, ERR_INVALID, "a component is longer than %d bytes",
                           TREE_NAME_MAX - 1);
        memcpy(out, part.data, part.size);
        out[part.size] = '\0';
        return ERR_OK;
    }
    return ERR_OK;
}

/*
 * Walks to the directory that holds the path's last component. Each step opens one component
 * relative to the one before, so nothing that the archive made can lead the walk elsewhere.
 */
static enum err walk(struct tree *tree, struct str rest, struct tree_place *place, struct error *e)
{
    enum err rc = next_component(&rest, place->name, e);
    if (rc != ERR_OK)
        return rc;
    place->is_root = place->name[0] == '\0';
    place->dir_fd = fcntl(tree->root_fd, F_DUPFD_CLOEXEC, 3);
    if (place->dir_fd < 0)
        return err_errno(e, "copy a descriptor");
    for (;;) {
        char next[TREE_NAME_MAX];
        rc = next_component(&rest, next, e);
        if (rc != ERR_OK || next[0] == '\0')
            return rc;
        int below = -1;
        rc = enter_dir(place->dir_fd, place->name, &below, e);
        if (rc != ERR_OK)
            return rc;
        fd_close(place->dir_fd);
        place->dir_fd = below;
        memcpy(place->name, next, sizeof(next));
    }
}

enum err tree_place(struct tree *tree, const char *path, struct tree_place *out, struct error *e)
{
    size_t size = strnlen(path, TREE_PATH_MAX);
    if (size >= TREE_PATH_MAX)
        return err_set(e, ERR_INVALID, "a path is longer than %d bytes", TREE_PATH_MAX - 1);
    if (path[0] == '/')
        return err_set(e, ERR_INVALID, "%.120s: it is absolute", path);
    AUTO(tree_place) struct tree_place place = { .dir_fd = -1 };
    enum err rc = walk(tree, (struct str){ path, size }, &place, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%.120s", path);
    *out = place;
    place.dir_fd = -1;
    return ERR_OK;
}

/* Removes what an earlier entry of the same archive left under this name, unless a directory. */
static enum err clear_place(const struct tree_place *place, struct error *e)
{
    if (place->is_root)
        return err_set(e, ERR_INVALID, "an entry other than a directory has the root's name");
    if (unlinkat(place->dir_fd, place->name, 0) == 0 || errno == ENOENT)
        return ERR_OK;
    if (errno == EISDIR || errno == EPERM)
        return err_set(e, ERR_INVALID, "%.120s is a directory and something else", place->name);
    return err_errno(e, "replace %.120s", place->name);
}

/* The mode comes last: changing the owner clears setuid and setgid. */
static enum err set_meta(int fd, const struct tree_meta *meta, struct error *e)
{
    const struct timespec times[2] = { meta->modified, meta->modified };
    if (fchown(fd, meta->uid, meta->gid) != 0)
        return err_errno(e, "set the owner");
    if (fchmod(fd, meta->mode) != 0)
        return err_errno(e, "set the mode");
    if (futimens(fd, times) != 0)
        return err_errno(e, "set the time");
    return ERR_OK;
}

enum err tree_add_dir(struct tree *tree, const struct tree_place *place,
                      const struct tree_meta *meta, struct error *e)
{
    if (place->is_root)
        return set_meta(tree->root_fd, meta, e);
    AUTO(fd) int fd = open_dir_below(place->dir_fd, place->name);
    if (fd < 0) {
        enum err rc = is_whiteout(place->dir_fd, place->name) ? ERR_OK : clear_place(place, e);
        if (rc == ERR_OK)
            rc = make_dir(place->dir_fd, place->name, &fd, e);
        if (rc != ERR_OK)
            return rc;
    }
    return set_meta(fd, meta, e);
}

enum err tree_add_file(const struct tree_place *place, int *fd, struct error *e)
{
    enum err rc = clear_place(place, e);
    if (rc != ERR_OK)
        return rc;
    int made = openat(place->dir_fd, place->name,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (made < 0)
        return err_errno(e, "create %.120s", place->name);
    *fd = made;
    return ERR_OK;
}

enum err tree_end_file(int fd, const struct tree_meta *meta, struct error *e)
{
    return set_meta(fd, meta, e);
}

static enum err set_link_meta(const struct tree_place *place, const struct tree_meta *meta,
                              struct error *e)
{
    const struct timespec times[2] = { meta->modified, meta->modified };
    if (fchownat(place->dir_fd, place->name, meta->uid, meta->gid, AT_SYMLINK_NOFOLLOW) != 0 ||
        utimensat(place->dir_fd, place->name, times, AT_SYMLINK_NOFOLLOW) != 0)
        return err_errno(e, "set the owner and time of %.120s", place->name);
    return ERR_OK;
}

enum err tree_add_symlink(const struct tree_place *place, const char *target,
                          const struct tree_meta *meta, struct error *e)
{
    enum err rc = clear_place(place, e);
    if (rc != ERR_OK)
        return rc;
    if (symlinkat(target, place->dir_fd, place->name) != 0)
        return err_errno(e, "make the symbolic link %.120s", place->name);
    return set_link_meta(place, meta, e);
}

enum err tree_add_fifo(const struct tree_place *place, const struct tree_meta *meta,
                       struct error *e)
{
    enum err rc = clear_place(place, e);
    if (rc != ERR_OK)
        return rc;
    if (mknodat(place->dir_fd, place->name, S_IFIFO | 0600, 0) != 0)
        return err_errno(e, "make the fifo %.120s", place->name);
    rc = set_link_meta(place, meta, e);
    /* Nobody else is in here, so the name is still the fifo and not a link. */
    if (rc == ERR_OK && fchmodat(place->dir_fd, place->name, meta->mode, 0) != 0)
        rc = err_errno(e, "set the mode of %.120s", place->name);
    return rc;
}

enum err tree_add_hardlink(struct tree *tree, const struct tree_place *place, const char *target,
                           struct error *e)
{
    AUTO(tree_place) struct tree_place from = { .dir_fd = -1 };
    enum err rc = tree_place(tree, target, &from, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "hard link to");
    struct stat st;
    if (from.is_root || fstatat(from.dir_fd, from.name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return err_set(e, ERR_INVALID, "hard link to %.120s, which is not in the layer", target);
    if (S_ISDIR(st.st_mode) || S_ISCHR(st.st_mode))
        return err_set(e, ERR_INVALID, "hard link to %.120s, which is no file", target);
    struct stat own;
    if (fstatat(place->dir_fd, place->name, &own, AT_SYMLINK_NOFOLLOW) == 0 &&
        own.st_ino == st.st_ino && own.st_dev == st.st_dev)
        return ERR_OK; /* a link to itself must not remove itself first */
    rc = clear_place(place, e);
    if (rc != ERR_OK)
        return rc;
    if (linkat(from.dir_fd, from.name, place->dir_fd, place->name, 0) != 0)
        return err_errno(e, "link %.120s to %.100s", place->name, target);
    return ERR_OK;
}

static enum err hide_name(const struct tree_place *place, const char *name, struct error *e)
{
    struct stat st;
    if (fstatat(place->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        /* The layer itself has the name: it hides what is below anyway, a directory if opaque. */
        if (!S_ISDIR(st.st_mode))
            return ERR_OK;
        AUTO(fd) int fd = open_dir_below(place->dir_fd, name);
        return fd < 0 ? err_errno(e, "open the directory %.120s", name) : set_opaque(fd, e);
    }
    if (mknodat(place->dir_fd, name, S_IFCHR, makedev(0, 0)) != 0)
        return err_errno(e, "make the whiteout of %.120s", name);
    return ERR_OK;
}

enum err tree_add_whiteout(struct tree *tree, const struct tree_place *place, struct error *e)
{
    if (strcmp(place->name, opaque_marker) == 0) {
        struct stat root;
        struct stat dir;
        if (fstat(tree->root_fd, &root) != 0 || fstat(place->dir_fd, &dir) != 0)
            return err_errno(e, "look at a directory");
        /* overlayfs does not look at the root's own attribute: whoever mounts has to know. */
        if (root.st_ino == dir.st_ino)
            tree->is_opaque = true;
        return set_opaque(place->dir_fd, e);
    }
    if (strncmp(place->name, aufs_prefix, sizeof(aufs_prefix) - 1) == 0)
        return ERR_OK; /* bookkeeping of an older union file system: means nothing in an image */
    const char *name = place->name + WHITEOUT_PREFIX_SIZE;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return err_set(e, ERR_INVALID, "%.120s is no whiteout of a file", place->name);
    return hide_name(place, name, e);
}
