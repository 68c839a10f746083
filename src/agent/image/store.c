#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/path.h"
#include "agent/image/store_internal.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/random.h"

static const struct image_limits default_limits = {
    .blob_bytes = INT64_C(64) << 30,
    .layer_bytes = INT64_C(256) << 30,
    .entries = 4000000,
};

static const char *const folders[] = { "blobs",  "images", "layers", "permits",
                                       "leases", "copies", "tmp" };

const char *store_path(const struct image_store *store, store_path_text out, const char *fmt, ...)
{
    int used = snprintf(out, PATH_MAX, "%s/", store->path);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(out + used, PATH_MAX - (size_t)used, fmt, args);
    va_end(args);
    return out;
}

const char *store_digest_path(const struct image_store *store, store_path_text out,
                              const char *folder, const struct image_digest *digest)
{
    char hex[IMAGE_DIGEST_HEX_MAX];
    return store_path(store, out, "%s/%s", folder, image_digest_hex(digest, hex));
}

const char *store_temporary(const struct image_store *store, store_path_text out)
{
    return store_path(store, out, "tmp/%016llx%016llx", (unsigned long long)random_u64(),
                      (unsigned long long)random_u64());
}

enum err store_check_name(const char *what, const char *name, struct error *e)
{
    size_t size = strnlen(name, IMAGE_NAME_MAX);
    bool is_good = size > 0 && size < IMAGE_NAME_MAX && name[0] != '.';
    for (size_t i = 0; i < size && is_good; i++) {
        char c = name[i];
        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
    }
    if (!is_good)
        return err_set(e, ERR_INVALID, "%s \"%.64s\" is not 1..%d of [a-zA-Z0-9_.-]", what, name,
                       IMAGE_NAME_MAX - 1);
    return ERR_OK;
}

static enum err lock(const struct image_store *store, int how, int *out, struct error *e)
{
    store_path_text path;
    AUTO(fd) int fd = open(store_path(store, path, "lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "open %s", path);
    int rc;
    do {
        rc = flock(fd, how);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno == EWOULDBLOCK)
        return err_set(e, ERR_UNAVAILABLE, "the image store is in use; try again");
    if (rc != 0)
        return err_errno(e, "lock the image store");
    *out = fd_take(&fd);
    return ERR_OK;
}

enum err store_lock_shared(const struct image_store *store, int *out, struct error *e)
{
    return lock(store, LOCK_SH, out, e);
}

enum err store_lock_exclusive(const struct image_store *store, int *out, struct error *e)
{
    return lock(store, LOCK_EX | LOCK_NB, out, e);
}

static bool is_executable(const char *path)
{
    return access(path, X_OK) == 0;
}

static enum err find_unpacker(const char *given, char out[PATH_MAX], struct error *e)
{
    char self[PATH_MAX] = { 0 };
    if (given != NULL) {
        (void)snprintf(out, PATH_MAX, "%s", given);
        return ERR_OK;
    }
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash = size > 0 ? strrchr(self, '/') : NULL;
    if (slash != NULL) {
        *slash = '\0';
        int length = snprintf(out, PATH_MAX, "%s/berth-unpack", self);
        if (length < PATH_MAX && is_executable(out))
            return ERR_OK;
    }
    static const char *const usual[] = { "/usr/libexec/berth/berth-unpack",
                                         "/usr/local/libexec/berth/berth-unpack" };
    for (size_t i = 0; i < COUNT_OF(usual); i++) {
        (void)snprintf(out, PATH_MAX, "%s", usual[i]);
        if (is_executable(out))
            return ERR_OK;
    }
    return err_set(e, ERR_NOT_FOUND, "berth-unpack is neither beside this program nor in %s",
                   "/usr/libexec/berth");
}

static enum err make_folders(const struct image_store *store, struct error *e)
{
    enum err rc = file_make_dirs(store->path, 0711, e);
    store_path_text path;
    for (size_t i = 0; i < COUNT_OF(folders) && rc == ERR_OK; i++) {
        /* Only the texts are for others: files in layers/ carry setuid bits. */
        mode_t mode = strcmp(folders[i], "blobs") == 0 ? 0755 : 0700;
        rc = file_make_dirs(store_path(store, path, "%s", folders[i]), mode, e);
    }
    return rc;
}

/* What a killed process left. Somebody else at work here right now keeps it until the next time. */
static void clear_after_crash(const struct image_store *store)
{
    AUTO(fd) int lock_fd = -1;
    AUTO(store_names) struct store_names names = { 0 };
    store_path_text path;
    if (store_lock_exclusive(store, &lock_fd, NULL) != ERR_OK ||
        store_list_names(store, "tmp", &names, NULL) != ERR_OK)
        return;
    for (size_t i = 0; i < names.count; i++)
        remove_tree(store_path(store, path, "tmp/%s", names.items[i]));
}

static struct image_limits with_defaults(struct image_limits given)
{
    return (struct image_limits){
        .blob_bytes = given.blob_bytes > 0 ? given.blob_bytes : default_limits.blob_bytes,
        .layer_bytes = given.layer_bytes > 0 ? given.layer_bytes : default_limits.layer_bytes,
        .entries = given.entries > 0 ? given.entries : default_limits.entries,
    };
}

enum err image_store_attach(struct image_store **out, const char *path, struct error *e)
{
    if (path[0] != '/' || strlen(path) >= STORE_ROOT_MAX)
        return err_set(e, ERR_INVALID,
                       "the image store's path \"%.200s\" is not absolute or too "
                       "long",
                       path);
    struct image_store *store = mem_new(1, sizeof(*store));
    (void)snprintf(store->path, sizeof(store->path), "%s", path);
    store->env.uid_base = IMAGE_UID_BASE;
    *out = store;
    return ERR_OK;
}

enum err image_store_open(struct image_store **out, const struct image_store_options *options,
                          struct error *e)
{
    AUTO(image_store) struct image_store *store = NULL;
    enum err rc = image_store_attach(&store, options->path, e);
    if (rc != ERR_OK)
        return rc;
    assert(store != NULL);
    rc = find_unpacker(options->unpacker, store->unpacker, e);
    if (rc == ERR_OK)
        rc = make_folders(store, e);
    if (rc != ERR_OK)
        return rc;

    store->env = (struct unpack_env){
        .program = store->unpacker,
        .uid_base = options->uid_base != 0 ? options->uid_base : IMAGE_UID_BASE,
        .limits = with_defaults(options->limits),
    };
    clear_after_crash(store);
    *out = TAKE(store);
    return ERR_OK;
}

void image_store_free(struct image_store *store)
{
    mem_free(store);
}

void store_names_done(struct store_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        mem_free(names->items[i]);
    mem_free(names->items);
    *names = (struct store_names){ 0 };
}

static int compare_names(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

enum err store_list_names(const struct image_store *store, const char *folder,
                          struct store_names *out, struct error *e)
{
    store_path_text path;
    DIR *dir = opendir(store_path(store, path, "%s", folder));
    if (dir == NULL)
        return err_errno(e, "open %s", path);
    VEC(char *) names = { 0 };
    /* readdir's buffer belongs to this DIR alone: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] != '.')
            vec_push(&names, mem_strdup(entry->d_name));
    }
    (void)closedir(dir); /* was only read */
    if (names.count > 0)
        qsort(names.items, names.count, sizeof(names.items[0]), compare_names);
    *out = (struct store_names){ names.items, names.count };
    return ERR_OK;
}
