/* gpu_world.h - a driver, a fake of its vendor's library that reads a script, and the
 * files it looks at. */
#ifndef UNIT_GPU_WORLD_H
#define UNIT_GPU_WORLD_H

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/gpu/gpu.h"
#include "os/file.h"
#include "unit/test_dir.h"

struct world {
    struct test_dir dir;
    char script[256];
    const char *driver;    /* as gpu_open takes it */
    unsigned device_major; /* of its device files */
    void *
        library; /* what the driver will find under the vendor's name; NULL: the only one there is */
    struct gpu *gpu;
};

static inline void write_script(const struct world *world, const char *text)
{
    struct error e;
    CHECK_OK("script", file_write_atomic(world->script, str_of(text), 0600, &e), &e);
}

/* `variable` tells the fake where its script is. */
static inline struct world *world_make(const char *driver, unsigned device_major,
                                       const char *variable, const char *script)
{
    struct world *world = calloc(1, sizeof(*world));
    world->driver = driver;
    world->device_major = device_major;
    world->dir = test_dir_new();
    test_dir_path(&world->dir, "script", world->script);
    write_script(world, script);
    (void)setenv(variable, world->script, 1); /* NOLINT(concurrency-mt-unsafe): one thread */
    return world;
}

static inline void world_free(struct world *world)
{
    gpu_free(world->gpu);
    if (world->library != NULL)
        (void)dlclose(world->library);
    test_dir_remove(&world->dir);
    free(world);
}

static inline enum err try_open(struct world *world, const char *spec, struct error *e)
{
    const struct gpu_options options = { .sysfs_root = world->dir.path,
                                         .proc_root = world->dir.path,
                                         .dev_root = world->dir.path };
    return gpu_open(&world->gpu, spec, &options, e);
}

static inline void open_and_probe(struct world *world, struct gpu_inventory *found)
{
    struct error e;
    CHECK_OK("open", try_open(world, world->driver, &e), &e);
    CHECK_OK("probe", gpu_probe(world->gpu, found, &e), &e);
}

static inline void put_file(const struct world *world, const char *name, const char *text)
{
    struct error e;
    char path[256];
    test_dir_path(&world->dir, name, path);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    CHECK_OK(name, file_make_dirs(path, 0700, &e), &e);
    *slash = '/';
    CHECK_OK(name, file_write_atomic(path, str_of(text), 0600, &e), &e);
}

/* Device files can only be made by root; without them the lists of nodes stay empty. */
static inline bool put_device(const struct world *world, const char *name, unsigned minor_number)
{
    char path[256];
    put_file(world, name, "");
    test_dir_path(&world->dir, name, path);
    (void)unlink(path);
    return mknod(path, S_IFCHR | 0600, makedev(world->device_major, minor_number)) == 0;
}

#endif
