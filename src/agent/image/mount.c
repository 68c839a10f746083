/*
 * The overlay gets its layers as /proc/self/fd/N: an option string must fit into a page, and 127
 * paths would not. The id-mapped mounts are attached to a private directory only for as long as the
 * overlay needs to take hold of them; afterwards the one mount at rootfs is all there is. Should
 * that directory be cleared away by somebody else, as after a crash, no mount is harmed.
 *
 * "userxattr" because the layers were unpacked in a user namespace, which may write user.overlay.*
 * but not trusted.overlay.*. A workload cannot write either through the overlay.
 */
#include "agent/image/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/image/idmap.h"
#include "agent/image/path.h"
#include "agent/image/store_internal.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/process.h"

enum { COPY_TIMEOUT_MS = 3600 * 1000, OVERLAY_MAGIC = 0x794c7630, OPTIONS_MAX = 4096 };

/* Layers on their way into an overlay: highest first, as the option wants them. */
struct stack {
    char staging[PATH_MAX];    /* where id-mapped layers are attached; "" none */
    int fds[IMAGE_LAYERS_MAX]; /* owned */
    size_t count;
};

static void stack_done(struct stack *stack)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < stack->count; i++) {
        fd_close(stack->fds[i]);
        if (stack->staging[0] != '\0' &&
            path_format(path, NULL, "%s/%zu", stack->staging, i) == ERR_OK) {
            (void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
            (void)rmdir(path);
        }
    }
    if (stack->staging[0] != '\0' && rmdir(stack->staging) != 0 && errno == ENOTEMPTY)
        remove_tree(stack->staging);
    stack->count = 0;
}

struct image_leftover {
    struct stack stack;
};

void image_leftover_free(struct image_leftover *leftover)
{
    if (leftover == NULL)
        return;
    stack_done(&leftover->stack);
    mem_free(leftover);
}

static enum err layer_path(const struct image_store *store, const struct image_layer *layer,
                           store_path_text out, struct error *e)
{
    char hex[IMAGE_DIGEST_HEX_MAX];
    store_path(store, out, "layers/%s/fs", image_digest_hex(&layer->blob, hex));
    if (access(out, F_OK) != 0)
        return err_set(e, ERR_CORRUPT, "layer %s is missing; import the image again", hex);
    return ERR_OK;
}

static enum err push_fd(struct stack *stack, const char *path, struct error *e)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_errno(e, "open %s", path);
    stack->fds[stack->count++] = fd;
    return ERR_OK;
}

static enum err push_idmapped(struct stack *stack, int userns_fd, const char *source,
                              struct error *e)
{
    char target[PATH_MAX];
    enum err rc = path_format(target, e, "%s/%zu", stack->staging, stack->count);
    if (rc != ERR_OK)
        return rc;
    if (mkdir(target, 0700) != 0)
        return err_errno(e, "make %s", target);
    rc = idmap_mount(userns_fd, source, target, e);
    if (rc != ERR_OK)
        return rc;
    rc = push_fd(stack, target, e);
    if (rc != ERR_OK)
        (void)umount2(target, MNT_DETACH | UMOUNT_NOFOLLOW); /* stack_done does not know it */
    return rc;
}

/* nftw has no argument for its callback; mounts are made by one thread. */
static struct {
    uint32_t from;
    uint32_t to;
} shift;

static int shift_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)type;
    (void)at;
    if (st->st_uid < shift.from || st->st_gid < shift.from)
        return 0; /* a hard link that was reached before */
    if (lchown(path, st->st_uid - shift.from + shift.to, st->st_gid - shift.from + shift.to) != 0)
        return -1;
    /* The change of owner took setuid and setgid away. */
    return S_ISREG(st->st_mode) && (st->st_mode & 06000) != 0 ? chmod(path, st->st_mode & 07777)
                                                              : 0;
}

static enum err copy_tree(const char *source, const char *target, struct error *e)
{
    const char *const argv[] = { "cp", "--archive", "--reflink=auto", "--no-target-directory",
                                 "--", source,      target,           NULL };
    const char *const environment[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
    const struct process_run run = {
        .spec = { .argv = argv, .env = environment },
        .output_max = 4096,
        .timeout_ms = COPY_TIMEOUT_MS,
    };
    AUTO(process_result) struct process_result result = { 0 };
    return process_check(&run, &result, e);
}

static enum err shift_tree(const char *path, uint32_t from, uint32_t to, struct error *e)
{
    shift.from = from;
    shift.to = to;
    /* One thread makes mounts: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    if (nftw(path, shift_one, 64, FTW_PHYS | FTW_MOUNT) != 0)
        return err_errno(e, "change the owners in %s", path);
    AUTO(fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0)
        return err_errno(e, "sync %s", path);
    return ERR_OK;
}

/* The fallback: a copy of the layer with the tenant's owners, made once and kept. */
static enum err push_copied(struct image_store *store, struct stack *stack, const char *source,
                            const struct image_layer *layer, uint32_t uid_base, struct error *e)
{
    char hex[IMAGE_DIGEST_HEX_MAX];
    store_path_text path;
    store_path_text work;
    store_path(store, path, "copies/%u-%s", uid_base, image_digest_hex(&layer->blob, hex));
    if (access(path, F_OK) != 0) {
        store_temporary(store, work);
        enum err rc = copy_tree(source, work, e);
        if (rc == ERR_OK)
            rc = shift_tree(work, store->env.uid_base, uid_base, e);
        if (rc == ERR_OK && rename(work, path) != 0 && errno != EEXIST && errno != ENOTEMPTY)
            rc = err_errno(e, "rename %s", work);
        remove_tree(work); /* gone already unless something failed */
        if (rc != ERR_OK)
            return err_wrap(e, rc, "copy a layer for the tenant");
    }
    return push_fd(stack, path, e);
}

static enum err build_stack(struct image_store *store, const struct image_manifest *manifest,
                            const struct image_mount *want, struct stack *stack, struct error *e)
{
    bool is_idmapped = want->mapping == IMAGE_MAPPING_IDMAP;
    AUTO(fd) int userns_fd = -1;
    enum err rc = ERR_OK;
    if (is_idmapped) {
        rc = idmap_namespace(store->env.uid_base, want->uid_base, &userns_fd, e);
        store_temporary(store, stack->staging);
        if (rc == ERR_OK && mkdir(stack->staging, 0700) != 0)
            rc = err_errno(e, "make %s", stack->staging);
    }
    for (size_t i = manifest->layer_count; i > 0 && rc == ERR_OK; i--) {
        const struct image_layer *layer = &manifest->layers[i - 1];
        store_path_text source;
        struct layer_meta meta = { .bytes = 0 };
        rc = layer_path(store, layer, source, e);
        if (rc == ERR_OK)
            rc = store_read_meta(store, &layer->blob, &meta, e);
        if (rc == ERR_OK)
            rc = is_idmapped ? push_idmapped(stack, userns_fd, source, e)
                             : push_copied(store, stack, source, layer, want->uid_base, e);
        if (meta.is_opaque)
            break; /* hides all layers below; overlayfs itself does not look at the root for it */
    }
    return rc;
}

/* A directory of the tenant's root. It is emptied of nothing: a restarted agent finds its upper. */
static enum err make_owned_dir(const char *parent, const char *name, uint32_t owner, int *fd,
                               struct error *e)
{
    char path[PATH_MAX];
    enum err rc = path_format(path, e, "%s/%s", parent, name);
    if (rc != ERR_OK)
        return rc;
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return err_errno(e, "make %s", path);
    AUTO(fd) int made = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (made < 0)
        return err_errno(e, "open %s", path);
    if (fchown(made, owner, owner) != 0 || fchmod(made, 0755) != 0)
        return err_errno(e, "give %s to the tenant", path);
    *fd = fd_take(&made);
    return ERR_OK;
}

static enum err mount_overlay(const struct stack *stack, const struct image_mount *want,
                              struct error *e)
{
    AUTO(fd) int upper_fd = -1;
    AUTO(fd) int work_fd = -1;
    enum err rc = make_owned_dir(want->scratch, "upper", want->uid_base, &upper_fd, e);
    if (rc == ERR_OK)
        rc = make_owned_dir(want->scratch, "work", want->uid_base, &work_fd, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(buf) struct buf options = { 0 };
    buf_add_text(&options, "userxattr,lowerdir=");
    for (size_t i = 0; i < stack->count; i++)
        buf_format(&options, "%s/proc/self/fd/%d", i > 0 ? ":" : "", stack->fds[i]);
    buf_format(&options, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d", upper_fd, work_fd);
    if (options.size >= OPTIONS_MAX)
        return err_set(e, ERR_LIMIT, "the image has too many layers to mount");
    /* The source is for people, and workloads read it in /proc/mounts: no path of the machine. */
    if (mount("overlay", want->rootfs, "overlay", MS_NOSUID | MS_NODEV, options.data) != 0)
        return err_errno(e,
                         "mount the overlay at %s (is %s on a file system that can be an upper "
                         "layer?)",
                         want->rootfs, want->scratch);
    return ERR_OK;
}

static bool is_overlay_mounted(const char *path)
{
    struct statfs found;
    struct stat here;
    struct stat above;
    char parent[PATH_MAX];
    return path_format(parent, NULL, "%s/..", path) == ERR_OK && statfs(path, &found) == 0 &&
           found.f_type == OVERLAY_MAGIC && stat(path, &here) == 0 && stat(parent, &above) == 0 &&
           here.st_dev != above.st_dev;
}

static enum err check_request(const struct image_store *store, const struct image_mount *want,
                              struct error *e)
{
    uint64_t own = store->env.uid_base;
    uint64_t theirs = want->uid_base;
    if (theirs == 0 || theirs + IMAGE_UID_COUNT > INT32_MAX + UINT64_C(1))
        return err_set(e, ERR_INVALID, "the tenant's ids from %u are no range", want->uid_base);
    if (theirs < own + IMAGE_UID_COUNT && own < theirs + IMAGE_UID_COUNT)
        return err_set(e, ERR_INVALID, "the tenant's ids from %u overlap the unpacker's",
                       want->uid_base);
    if (want->rootfs[0] != '/' || want->scratch[0] != '/')
        return err_set(e, ERR_INVALID, "rootfs and scratch must be absolute paths");
    if (is_overlay_mounted(want->rootfs))
        return err_set(e, ERR_CONFLICT, "%s is mounted already", want->rootfs);
    return store_check_name("lease", want->lease, e);
}

static enum err mount_mapped(struct image_store *store, const struct image_manifest *manifest,
                             const struct image_mount *want, struct error *e)
{
    AUTO(image_leftover) struct image_leftover *leftover = mem_new(1, sizeof(*leftover));
    enum err rc = build_stack(store, manifest, want, &leftover->stack, e);
    if (rc == ERR_OK)
        rc = mount_overlay(&leftover->stack, want, e);
    if (rc == ERR_OK && want->leftover != NULL)
        *want->leftover = TAKE(leftover);
    return rc;
}

/*
 * Where nobody has chosen a way, id-mapped layers are simply tried: to find out
 * beforehand costs more than the mount, and each workload is mounted by a process of its
 * own. Only a failure is looked into.
 */
static enum err mount_any(struct image_store *store, const struct image_manifest *manifest,
                          const struct image_mount *given, struct error *e)
{
    struct image_mount want = *given;
    if (want.mapping == IMAGE_MAPPING_AUTO)
        want.mapping = store->has_no_idmap ? IMAGE_MAPPING_COPY : IMAGE_MAPPING_IDMAP;
    enum err rc = mount_mapped(store, manifest, &want, e);
    if (rc == ERR_OK || want.mapping == given->mapping || want.mapping == IMAGE_MAPPING_COPY ||
        image_can_idmap(store->path))
        return rc;
    store->has_no_idmap = true;
    want.mapping = IMAGE_MAPPING_COPY;
    return mount_mapped(store, manifest, &want, e);
}

static enum err mount_locked(struct image_store *store, const struct image_mount *want,
                             struct error *e)
{
    struct image_manifest manifest;
    enum err rc = image_store_find(store, &want->image, &manifest, e);
    if (rc == ERR_OK)
        rc = file_make_dirs(want->rootfs, 0755, e);
    if (rc == ERR_OK)
        rc = store_add_lease(store, want->lease, &want->image, e);
    if (rc != ERR_OK)
        return rc;
    rc = mount_any(store, &manifest, want, e);
    if (rc != ERR_OK) {
        enum err dropped = store_drop_lease(store, want->lease, NULL);
        (void)dropped; /* the first error is the one to tell */
    }
    store_touch(store, &want->image);
    return rc;
}

enum err image_mount(struct image_store *store, const struct image_mount *want, struct error *e)
{
    AUTO(fd) int lock = -1;
    enum err rc = check_request(store, want, e);
    if (rc == ERR_OK)
        rc = store_lock_shared(store, &lock, e);
    if (rc == ERR_OK)
        rc = mount_locked(store, want, e);
    return rc == ERR_OK ? ERR_OK : err_wrap(e, rc, "mount the image");
}

enum err image_unmount(struct image_store *store, const char *rootfs, const char *lease,
                       struct error *e)
{
    if (is_overlay_mounted(rootfs) && umount2(rootfs, UMOUNT_NOFOLLOW) != 0) {
        /* Somebody still looks into it: out of sight now, gone when the last one leaves. */
        if (errno != EBUSY || umount2(rootfs, MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
            return err_errno(e, "unmount %s", rootfs);
    }
    return store_drop_lease(store, lease, e);
}

static bool try_idmapped_overlay(const char *dir, struct error *e)
{
    AUTO(fd) int userns_fd = -1;
    char path[5][PATH_MAX];
    static const char *const names[] = { "lower", "mapped", "upper", "work", "root" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (path_format(path[i], e, "%s/%s", dir, names[i]) != ERR_OK || mkdir(path[i], 0700) != 0)
            return false;
    }
    if (idmap_namespace(IMAGE_UID_BASE, IMAGE_UID_BASE - IMAGE_UID_COUNT, &userns_fd, e) !=
            ERR_OK ||
        idmap_mount(userns_fd, path[0], path[1], e) != ERR_OK)
        return false;
    AUTO(buf) struct buf options = { 0 };
    buf_format(&options, "userxattr,lowerdir=%s,upperdir=%s,workdir=%s", path[1], path[2], path[3]);
    bool is_mounted = mount("none", path[4], "overlay", MS_NOSUID | MS_NODEV, options.data) == 0;
    if (is_mounted)
        (void)umount2(path[4], MNT_DETACH);
    (void)umount2(path[1], MNT_DETACH);
    return is_mounted;
}

bool image_can_idmap(const char *path)
{
    char dir[PATH_MAX];
    if (path_format(dir, NULL, "%s/.idmap-XXXXXX", path) != ERR_OK || mkdtemp(dir) == NULL)
        return false;
    struct error ignored; /* the answer is all that is asked */
    bool can = try_idmapped_overlay(dir, &ignored);
    remove_tree(dir);
    return can;
}
