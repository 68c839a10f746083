/*
 * Root file systems, in a mount namespace of the shim's own: whatever way it ends, its mounts end with
 * it, and no other workload's namespace ever had them.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/mount.h"
#include "agent/shim.h"

static enum err mount_one(struct image_store *store, const struct attempt_spec *spec,
                          const uint8_t digest[32], const char *name, struct error *e)
{
    char directory[ATTEMPT_PATH_MAX];
    char rootfs[ATTEMPT_PATH_MAX + 32];
    char scratch[ATTEMPT_PATH_MAX + 32];
    char lease[ATTEMPT_NAME_MAX + 8];
    if (getcwd(directory, sizeof(directory)) == NULL)
        return err_errno(e, "find the attempt's directory");
    (void)snprintf(rootfs, sizeof(rootfs), "%s/%s", directory, name);
    (void)snprintf(scratch, sizeof(scratch), "%s/scratch/%s", directory, name);
    (void)snprintf(lease, sizeof(lease), "%s.%c", spec->name, name[0]);
    if ((mkdir("scratch", 0711) != 0 && errno != EEXIST) ||
        (mkdir(scratch, 0711) != 0 && errno != EEXIST))
        return err_errno(e, "make %s", scratch);
    struct image_mount mount = {
        .lease = lease,
        .scratch = scratch,
        .rootfs = rootfs,
        .uid_base = spec->uid_base,
        .mapping = IMAGE_MAPPING_AUTO,
    };
    memcpy(mount.image.bytes, digest, sizeof(mount.image.bytes));
    return image_mount(store, &mount, e);
}

enum err shim_mount_root(const struct attempt_spec *spec, struct error *e)
{
    if (spec->has_image == 0 && spec->has_upload == 0)
        return ERR_OK;
    if (unshare(CLONE_NEWNS) != 0)
        return err_errno(e, "make a mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        return err_errno(e, "keep our mounts to ourselves");
    AUTO(image_store) struct image_store *store = NULL;
    const struct image_store_options options = { .path = spec->image_store };
    enum err rc = image_store_open(&store, &options, e);
    if (rc == ERR_OK && spec->has_image == 1)
        rc = mount_one(store, spec, spec->image, "rootfs", e);
    if (rc == ERR_OK && spec->has_upload == 1)
        rc = mount_one(store, spec, spec->upload, "upload", e);
    return rc;
}

static void unmount_one(struct image_store *store, const struct attempt_spec *spec,
                        const char *name)
{
    char directory[ATTEMPT_PATH_MAX];
    char rootfs[ATTEMPT_PATH_MAX + 32];
    char lease[ATTEMPT_NAME_MAX + 8];
    if (getcwd(directory, sizeof(directory)) == NULL)
        return;
    (void)snprintf(rootfs, sizeof(rootfs), "%s/%s", directory, name);
    (void)snprintf(lease, sizeof(lease), "%s.%c", spec->name, name[0]);
    struct error e = { 0 };
    if (image_unmount(store, rootfs, lease, &e) != ERR_OK)
        (void)dprintf(STDERR_FILENO, "berth-shim %s: %s\n", spec->name, e.text);
}

void shim_unmount_root(const struct attempt_spec *spec)
{
    if (spec->has_image == 0 && spec->has_upload == 0)
        return;
    AUTO(image_store) struct image_store *store = NULL;
    const struct image_store_options options = { .path = spec->image_store };
    if (image_store_open(&store, &options, NULL) != ERR_OK)
        return;
    if (spec->has_image == 1)
        unmount_one(store, spec, "rootfs");
    if (spec->has_upload == 1)
        unmount_one(store, spec, "upload");
}
