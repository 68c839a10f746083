/* image_tool - the image store from a command line, for image_run. Prints facts, one a line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/image/import.h"
#include "agent/image/mount.h"
#include "os/clock.h"

static struct error failure;

static enum err open_store(const char *path, struct image_store **out)
{
    const char *entries = getenv("IMAGE_TOOL_ENTRIES"); /* NOLINT(concurrency-mt-unsafe) */
    const char *bytes = getenv("IMAGE_TOOL_BYTES");     /* NOLINT(concurrency-mt-unsafe) */
    const struct image_store_options options = {
        .path = path,
        .unpacker = getenv("BERTH_UNPACK"), /* NOLINT(concurrency-mt-unsafe) */
        .limits = { .entries = entries != NULL ? strtoll(entries, NULL, 10) : 0,
                    .layer_bytes = bytes != NULL ? strtoll(bytes, NULL, 10) : 0 },
    };
    return image_store_open(out, &options, &failure);
}

static enum err digest_arg(const char *text, struct image_digest *out)
{
    return image_digest_parse(str_of(text), out)
               ? ERR_OK
               : err_set(&failure, ERR_INVALID, "%s is no digest", text);
}

static void show_progress(void *context, int64_t done, int64_t total)
{
    (void)context;
    (void)fprintf(stderr, "progress %" PRId64 " %" PRId64 "\n", done, total);
}

/* import GUESS|LAYOUT|TARBALL|DIRECTORY PATH [NAME] [TENANT] */
static enum err run_import(struct image_store *store, char **args)
{
    static const char *const kinds[] = { "layout", "tarball", "directory", "guess" };
    struct image_import import = { .path = args[1], .progress = show_progress };
    while (import.kind < IMAGE_SOURCE_GUESS && strcmp(kinds[import.kind], args[0]) != 0)
        import.kind++;
    import.name = args[2] != NULL && args[2][0] != '\0' ? args[2] : NULL;
    import.tenant = args[2] != NULL ? args[3] : NULL;
    struct image_digest image;
    char text[IMAGE_DIGEST_TEXT_MAX];
    enum err rc = image_import(store, &import, &image, &failure);
    if (rc == ERR_OK)
        (void)puts(image_digest_text(&image, text));
    return rc;
}

/* mount DIGEST UID_BASE SCRATCH ROOTFS LEASE auto|idmap|copy */
static enum err run_mount(struct image_store *store, char **args)
{
    struct image_mount want = {
        .uid_base = (uint32_t)strtoul(args[1], NULL, 10),
        .scratch = args[2],
        .rootfs = args[3],
        .lease = args[4],
        .mapping = strcmp(args[5], "copy") == 0    ? IMAGE_MAPPING_COPY
                   : strcmp(args[5], "idmap") == 0 ? IMAGE_MAPPING_IDMAP
                                                   : IMAGE_MAPPING_AUTO,
    };
    enum err rc = digest_arg(args[0], &want.image);
    return rc == ERR_OK ? image_mount(store, &want, &failure) : rc;
}

/* unmount ROOTFS LEASE */
static enum err run_unmount(struct image_store *store, char **args)
{
    return image_unmount(store, args[0], args[1], &failure);
}

/* gc MAX_BYTES MAX_AGE_S */
static enum err run_gc(struct image_store *store, char **args)
{
    const struct image_gc policy = { .max_bytes = strtoll(args[0], NULL, 10),
                                     .max_age_s = strtoll(args[1], NULL, 10),
                                     .now = clock_wall() };
    struct image_gc_result result;
    enum err rc = image_store_gc(store, &policy, &result, &failure);
    if (rc == ERR_OK)
        (void)printf("images %zu layers %zu bytes %" PRId64 " left %" PRId64 "\n",
                     result.images_removed, result.layers_removed, result.bytes_removed,
                     result.bytes_left);
    return rc;
}

static void show_entry(void *context, const struct image_entry *entry)
{
    char text[IMAGE_DIGEST_TEXT_MAX];
    (void)context;
    (void)printf("%s %" PRId64 " %s\n", image_digest_text(&entry->image, text), entry->bytes,
                 entry->is_leased ? "leased" : "free");
}

static enum err run_list(struct image_store *store, char **args)
{
    (void)args;
    return image_store_list(store, show_entry, NULL, &failure);
}

/* config DIGEST */
static enum err run_config(struct image_store *store, char **args)
{
    struct image_digest image;
    AUTO(buf) struct buf json = { 0 };
    enum err rc = digest_arg(args[0], &image);
    if (rc == ERR_OK)
        rc = image_store_config(store, &image, &json, &failure);
    if (rc == ERR_OK)
        (void)puts(json.data);
    return rc;
}

/* permitted TENANT DIGEST */
static enum err run_permitted(struct image_store *store, char **args)
{
    struct image_digest image;
    enum err rc = digest_arg(args[1], &image);
    if (rc == ERR_OK)
        (void)puts(image_store_is_permitted(store, args[0], &image) ? "yes" : "no");
    return rc;
}

/* keep-leases NAME... */
static enum err run_keep(struct image_store *store, char **args)
{
    size_t count = 0;
    while (args[count] != NULL)
        count++;
    return image_store_keep_leases(store, (const char *const *)args, count, &failure);
}

static const struct {
    const char *name;
    int args;
    enum err (*run)(struct image_store *store, char **args);
} commands[] = {
    { "import", 2, run_import },       { "mount", 6, run_mount },
    { "unmount", 2, run_unmount },     { "gc", 2, run_gc },
    { "list", 0, run_list },           { "config", 1, run_config },
    { "permitted", 2, run_permitted }, { "keep-leases", 0, run_keep },
};

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "can-idmap") == 0) {
        (void)puts(image_can_idmap(argv[2]) ? "yes" : "no");
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(commands) && argc > 2; i++) {
        if (strcmp(argv[2], commands[i].name) != 0 || argc < 3 + commands[i].args)
            continue;
        AUTO(image_store) struct image_store *store = NULL;
        enum err rc = open_store(argv[1], &store);
        if (rc == ERR_OK)
            rc = commands[i].run(store, argv + 3);
        if (rc != ERR_OK)
            (void)printf("%s: %s\n", err_name(rc), failure.text);
        return rc == ERR_OK ? 0 : 1;
    }
    (void)fputs("usage: image_tool STORE COMMAND ARGUMENTS\n", stderr);
    return 2;
}
