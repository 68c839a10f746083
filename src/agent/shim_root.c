/*
 * Root file systems, in a mount namespace of the shim's own: whatever way it ends, its mounts end
 * with it, and no other workload's namespace ever had them.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim.h"
#include "os/fd.h"

enum { OWN_BYTES_MAX = 512 * 1024 };

struct place {
    char rootfs[ATTEMPT_PATH_MAX + 16];
    char scratch[ATTEMPT_PATH_MAX + 32];
    char lease[ATTEMPT_NAME_MAX + 8]; /* an attempt may hold two images */
};

static void find_place(const struct shim_context *context, const char *name, struct place *out)
{
    (void)snprintf(out->rootfs, sizeof(out->rootfs), "%.*s/%s", ATTEMPT_PATH_MAX,
                   context->work.bundle, name);
    (void)snprintf(out->scratch, sizeof(out->scratch), "%.*s/scratch/%s", ATTEMPT_PATH_MAX,
                   context->disk, name);
    (void)snprintf(out->lease, sizeof(out->lease), "%s.%c", context->spec.name, name[0]);
}

static enum err mount_one(struct shim_context *context, struct image_store *store,
                          const uint8_t digest[32], const char *name, struct error *e)
{
    struct place place;
    find_place(context, name, &place);
    if ((mkdirat(context->dirs.disk, "scratch", 0711) != 0 && errno != EEXIST) ||
        (mkdir(place.scratch, 0711) != 0 && errno != EEXIST))
        return err_errno(e, "make %s", place.scratch);
    struct image_mount mount = {
        .lease = place.lease,
        .scratch = place.scratch,
        .rootfs = place.rootfs,
        .uid_base = context->spec.uid_base,
        .mapping = IMAGE_MAPPING_AUTO,
        .leftover = &context->leftovers[name[0] == 'r' ? 0 : 1],
    };
    memcpy(mount.image.bytes, digest, sizeof(mount.image.bytes));
    return image_mount(store, &mount, e);
}

static bool has_mounts(const struct attempt_spec *spec)
{
    return spec->has_image == 1 || spec->has_upload == 1;
}

void shim_settle_root(struct shim_context *context)
{
    for (size_t i = 0; i < COUNT_OF(context->leftovers); i++) {
        image_leftover_free(context->leftovers[i]);
        context->leftovers[i] = NULL;
    }
}

enum err shim_own_mounts(struct error *e)
{
    if (unshare(CLONE_NEWNS) != 0)
        return err_errno(e, "make a mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        return err_errno(e, "keep our mounts to ourselves");
    return ERR_OK;
}

static enum err enter_own_mounts(struct shim_context *context, struct error *e)
{
    enum err rc = context->has_own_mounts ? ERR_OK : shim_own_mounts(e);
    context->has_own_mounts = rc == ERR_OK;
    return rc;
}

/* Everybody may read it there; who it belongs to is root. */
static enum err copy_own(int from_dir, const char *from, int own_fd, const char *name, mode_t mode,
                         struct error *e)
{
    AUTO(buf) struct buf bytes = { 0 };
    enum err rc = attempt_read_file(from_dir, from, OWN_BYTES_MAX, &bytes, e);
    if (rc == ERR_OK)
        rc = attempt_write_file(own_fd, name, buf_str(&bytes), e);
    if (rc == ERR_OK && fchmodat(own_fd, name, mode, 0) != 0)
        rc = err_errno(e, "let the workload read its %s", name);
    return rc;
}

/* berth-init lies beside this program. */
static enum err open_programs(int *out, struct error *e)
{
    char path[ATTEMPT_PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash = size > 0 ? memrchr(path, '/', (size_t)size) : NULL;
    if (slash == NULL)
        return err_errno(e, "find berth-init beside this program");
    slash[1] = '\0';
    *out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out >= 0 ? ERR_OK : err_errno(e, "open %s", path);
}

enum err shim_mount_own(struct shim_context *context, struct error *e)
{
    /* Not context->dirs.run, which may still lead into the mount namespace we came from. */
    const int run = AT_FDCWD;
    AUTO(fd) int programs = -1;
    if (context->spec.is_fake == 1)
        return ERR_OK; /* it may run without any right */
    enum err rc = enter_own_mounts(context, e);
    if (rc == ERR_OK)
        rc = open_programs(&programs, e);
    if (rc != ERR_OK)
        return rc;
    if ((mkdirat(run, ATTEMPT_OWN_DIR, 0711) != 0 && errno != EEXIST) ||
        mount("berth", ATTEMPT_OWN_DIR, "tmpfs", MS_NOSUID | MS_NODEV, "size=2m,mode=755") != 0)
        return err_errno(e, "mount %s", ATTEMPT_OWN_DIR);
    AUTO(fd) int own = openat(run, ATTEMPT_OWN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0)
        return err_errno(e, "open %s", ATTEMPT_OWN_DIR);
    rc = copy_own(programs, ATTEMPT_INIT_NAME, own, ATTEMPT_INIT_NAME, 0755, e);
    return rc == ERR_OK ? copy_own(run, ATTEMPT_HOSTS_NAME, own, ATTEMPT_HOSTS_NAME, 0644, e) : rc;
}

enum err shim_mount_root(struct shim_context *context, struct error *e)
{
    const struct attempt_spec *spec = &context->spec;
    if (!has_mounts(spec))
        return ERR_OK;
    AUTO(image_store) struct image_store *store = NULL;
    enum err rc = enter_own_mounts(context, e);
    if (rc == ERR_OK)
        rc = image_store_attach(&store, spec->image_store, e);
    if (rc == ERR_OK && spec->has_image == 1)
        rc = mount_one(context, store, spec->image, "rootfs", e);
    if (rc == ERR_OK && spec->has_upload == 1)
        rc = mount_one(context, store, spec->upload, "upload", e);
    return rc;
}

static void unmount_one(const struct shim_context *context, struct image_store *store,
                        const char *name)
{
    struct place place;
    struct error e = { 0 };
    find_place(context, name, &place);
    if (image_unmount(store, place.rootfs, place.lease, &e) != ERR_OK)
        (void)dprintf(STDERR_FILENO, "berth-shim %s: %s\n", context->spec.name, e.text);
}

void shim_unmount_root(const struct shim_context *context)
{
    AUTO(image_store) struct image_store *store = NULL;
    if (!has_mounts(&context->spec) ||
        image_store_attach(&store, context->spec.image_store, NULL) != ERR_OK)
        return;
    if (context->spec.has_image == 1)
        unmount_one(context, store, "rootfs");
    if (context->spec.has_upload == 1)
        unmount_one(context, store, "upload");
}
