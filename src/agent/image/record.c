/* The small files of the store: one fact a line, written whole, refused when anything is odd. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/path.h"
#include "agent/image/store_internal.h"
#include "os/fd.h"
#include "os/file.h"

enum { RECORD_MAX = 64 * 1024 };

/* The next line, which must begin with this word; leaves what follows it. */
static bool take_line(struct str *rest, const char *word, struct str *value)
{
    struct str line = str_cut(rest, '\n');
    struct str first = str_cut(&line, ' ');
    *value = line;
    return str_is(first, word);
}

static bool take_number(struct str *rest, const char *word, int64_t *out)
{
    struct str value;
    return take_line(rest, word, &value) && str_to_i64(value, 0, INT64_MAX, out);
}

static bool take_digest(struct str *line, struct image_digest *out)
{
    return image_digest_parse(str_cut(line, ' '), out);
}

static void add_digest(struct buf *out, const struct image_digest *digest)
{
    char text[IMAGE_DIGEST_TEXT_MAX];
    buf_add_text(out, image_digest_text(digest, text));
}

enum err store_write_record(const struct image_store *store, const struct image_digest *image,
                            const struct image_manifest *manifest, struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    buf_add_text(&text, "berth-image 1\nconfig ");
    add_digest(&text, &manifest->config);
    buf_format(&text, " %lld\n", (long long)manifest->config_size);
    for (size_t i = 0; i < manifest->layer_count; i++) {
        const struct image_layer *layer = &manifest->layers[i];
        buf_add_text(&text, "layer ");
        add_digest(&text, &layer->blob);
        buf_add_char(&text, ' ');
        add_digest(&text, &layer->diff_id);
        buf_format(&text, " %lld\n", (long long)layer->size);
    }
    store_path_text path;
    return file_write_atomic(store_digest_path(store, path, "images", image), buf_str(&text), 0600,
                             e);
}

static bool parse_record(struct str rest, struct image_manifest *out)
{
    struct str value;
    if (!take_line(&rest, "berth-image", &value) || !str_is(value, "1"))
        return false;
    if (!take_line(&rest, "config", &value) || !take_digest(&value, &out->config) ||
        !str_to_i64(value, 0, INT64_MAX, &out->config_size))
        return false;
    while (rest.size > 0) {
        if (out->layer_count == IMAGE_LAYERS_MAX)
            return false;
        struct image_layer *layer = &out->layers[out->layer_count++];
        if (!take_line(&rest, "layer", &value) || !take_digest(&value, &layer->blob) ||
            !take_digest(&value, &layer->diff_id) || !str_to_i64(value, 0, INT64_MAX, &layer->size))
            return false;
    }
    return out->layer_count > 0;
}

enum err image_store_find(const struct image_store *store, const struct image_digest *image,
                          struct image_manifest *out, struct error *e)
{
    store_path_text path;
    AUTO(buf) struct buf text = { 0 };
    enum err rc = file_read(store_digest_path(store, path, "images", image), RECORD_MAX, &text, e);
    if (rc == ERR_NOT_FOUND) {
        char digest[IMAGE_DIGEST_TEXT_MAX];
        return err_set(e, ERR_NOT_FOUND, "image %s is not on this node",
                       image_digest_text(image, digest));
    }
    if (rc != ERR_OK)
        return rc;
    struct image_manifest manifest = { .layer_count = 0 };
    if (!parse_record(buf_str(&text), &manifest))
        return err_set(e, ERR_CORRUPT, "%s is damaged; import the image again", path);
    *out = manifest;
    return ERR_OK;
}

bool image_store_has(const struct image_store *store, const struct image_digest *image)
{
    store_path_text path;
    return access(store_digest_path(store, path, "images", image), F_OK) == 0;
}

enum err image_store_config(const struct image_store *store, const struct image_digest *image,
                            struct buf *json, struct error *e)
{
    struct image_manifest manifest;
    enum err rc = image_store_find(store, image, &manifest, e);
    if (rc != ERR_OK)
        return rc;
    store_path_text path;
    size_t before = json->size;
    rc = file_read(store_digest_path(store, path, "blobs", &manifest.config), IMAGE_JSON_MAX, json,
                   e);
    if (rc != ERR_OK)
        return rc;
    struct image_digest found = image_digest_of(json->data + before, json->size - before);
    if (!image_digest_eq(&found, &manifest.config)) {
        json->size = before;
        return err_set(e, ERR_CORRUPT, "%s is damaged; import the image again", path);
    }
    return ERR_OK;
}

enum err store_write_meta(const char *layer_dir, const struct layer_meta *meta, struct error *e)
{
    char path[PATH_MAX];
    enum err rc = path_format(path, e, "%s/meta", layer_dir);
    if (rc != ERR_OK)
        return rc;
    AUTO(buf) struct buf text = { 0 };
    buf_add_text(&text, "berth-layer 1\ndiff ");
    add_digest(&text, &meta->diff_id);
    buf_format(&text, "\nbytes %lld\nentries %lld\nopaque %d\n", (long long)meta->bytes,
               (long long)meta->entries, meta->is_opaque ? 1 : 0);
    AUTO(fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "create %s", path);
    return fd_write_full(fd, text.data, text.size, e);
}

static bool parse_meta(struct str rest, struct layer_meta *out)
{
    struct str value;
    int64_t is_opaque = 0;
    if (!take_line(&rest, "berth-layer", &value) || !str_is(value, "1"))
        return false;
    if (!take_line(&rest, "diff", &value) || !take_digest(&value, &out->diff_id))
        return false;
    if (!take_number(&rest, "bytes", &out->bytes) ||
        !take_number(&rest, "entries", &out->entries) || !take_number(&rest, "opaque", &is_opaque))
        return false;
    out->is_opaque = is_opaque != 0;
    return rest.size == 0;
}

enum err store_read_meta(const struct image_store *store, const struct image_digest *blob,
                         struct layer_meta *out, struct error *e)
{
    char hex[IMAGE_DIGEST_HEX_MAX];
    store_path_text path;
    AUTO(buf) struct buf text = { 0 };
    store_path(store, path, "layers/%s/meta", image_digest_hex(blob, hex));
    enum err rc = file_read(path, RECORD_MAX, &text, e);
    if (rc != ERR_OK)
        return rc;
    struct layer_meta meta = { .bytes = 0 };
    if (!parse_meta(buf_str(&text), &meta))
        return err_set(e, ERR_CORRUPT, "%s is damaged", path);
    *out = meta;
    return ERR_OK;
}

bool store_has_layer(const struct image_store *store, const struct image_digest *blob)
{
    store_path_text path;
    return access(store_digest_path(store, path, "layers", blob), F_OK) == 0;
}

void store_touch(const struct image_store *store, const struct image_digest *image)
{
    store_path_text path;
    /* The time is a hint for garbage collection; without it the image goes somewhat earlier. */
    (void)utimensat(AT_FDCWD, store_digest_path(store, path, "images", image), NULL, 0);
}

enum err image_store_permit(const struct image_store *store, const char *tenant,
                            const struct image_digest *image, struct error *e)
{
    char hex[IMAGE_DIGEST_HEX_MAX];
    store_path_text path;
    enum err rc = store_check_name("tenant", tenant, e);
    if (rc == ERR_OK)
        rc = file_make_dirs(store_path(store, path, "permits/%s", tenant), 0700, e);
    if (rc != ERR_OK)
        return rc;
    store_path(store, path, "permits/%s/%s", tenant, image_digest_hex(image, hex));
    return file_write_atomic(path, (struct str){ 0 }, 0600, e);
}

bool image_store_is_permitted(const struct image_store *store, const char *tenant,
                              const struct image_digest *image)
{
    char hex[IMAGE_DIGEST_HEX_MAX];
    store_path_text path;
    if (store_check_name("tenant", tenant, NULL) != ERR_OK)
        return false;
    store_path(store, path, "permits/%s/%s", tenant, image_digest_hex(image, hex));
    return access(path, F_OK) == 0;
}

enum err store_add_lease(const struct image_store *store, const char *name,
                         const struct image_digest *image, struct error *e)
{
    char text[IMAGE_DIGEST_TEXT_MAX];
    store_path_text path;
    store_path_text work;
    enum err rc = store_check_name("lease", name, e);
    if (rc != ERR_OK)
        return rc;
    /* A name with a dot in front is no lease, and only the shim that has this one writes there. */
    store_path(store, work, "leases/.%s", name);
    AUTO(fd) int fd = open(work, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "create %s", work);
    rc = fd_write_full(fd, text, strlen(image_digest_text(image, text)), e);
    if (rc == ERR_OK && rename(work, store_path(store, path, "leases/%s", name)) != 0)
        rc = err_errno(e, "rename %s", work);
    return rc;
}

enum err store_drop_lease(const struct image_store *store, const char *name, struct error *e)
{
    store_path_text path;
    enum err rc = store_check_name("lease", name, e);
    if (rc != ERR_OK)
        return rc;
    if (unlink(store_path(store, path, "leases/%s", name)) != 0 && errno != ENOENT)
        return err_errno(e, "remove %s", path);
    return ERR_OK;
}

enum err image_store_keep_leases(struct image_store *store, const char *const *names, size_t count,
                                 struct error *e)
{
    AUTO(store_names) struct store_names leases = { 0 };
    enum err rc = store_list_names(store, "leases", &leases, e);
    for (size_t i = 0; i < leases.count && rc == ERR_OK; i++) {
        bool is_kept = false;
        for (size_t n = 0; n < count && !is_kept; n++)
            is_kept = strcmp(leases.items[i], names[n]) == 0;
        if (!is_kept)
            rc = store_drop_lease(store, leases.items[i], e);
    }
    return rc;
}
