#include "agent/image/import.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/image/path.h"
#include "agent/image/store_internal.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/process.h"

enum { INDEX_DEPTH_MAX = 4, MAGIC_SIZE = 6, TAR_EXIT_S = 60 };

/* A layer that is unpacked in work/<its place in the list> and not yet where it belongs. */
struct staged {
    struct image_digest blobs[IMAGE_LAYERS_MAX];
    size_t count;
};

/* One import under way: what it has found out so far. */
struct importer {
    struct image_store *store;
    const struct image_import *import;
    int source_fd;        /* owned: the layout, the tarball, or tar's output */
    store_path_text work; /* a directory in tmp/ for all that is not finished */
    struct staged staged;
    struct buf manifest; /* text */
    struct buf config;   /* text */
    struct image_digest image;
    struct image_manifest found;
    int64_t done_before; /* bytes of the layers that are through, for progress */
    int64_t total;
};

static void importer_done(struct importer *importer)
{
    fd_close(fd_take(&importer->source_fd));
    if (importer->work[0] != '\0')
        remove_tree(importer->work);
    buf_done(&importer->manifest);
    buf_done(&importer->config);
}
DEFINE_CLEANUP_AT(importer, struct importer, importer_done)

static void report_progress(void *context, int64_t done, int64_t total)
{
    (void)total; /* of this layer; the importer's is of all */
    const struct importer *importer = context;
    importer->import->progress(importer->import->context, importer->done_before + done,
                               importer->total);
}

/*
 * Opens below the layout without following any link: somebody else may own the layout, and we are
 * root. Only regular files: a fifo would make us wait for ever.
 */
static enum err open_in_layout(const struct importer *importer, const char *path, int *out,
                               struct error *e)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    AUTO(fd) int fd = (int)syscall(SYS_openat2, importer->source_fd, path, &how, sizeof(how));
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_INVALID, "the image layout lacks %s", path);
    if (fd < 0)
        return err_errno(e, "open %s of the image layout", path);
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "%s of the image layout is no file", path);
    *out = fd_take(&fd);
    return ERR_OK;
}

static enum err open_blob(const struct importer *importer, const struct image_digest *digest,
                          int *out, struct error *e)
{
    char hex[IMAGE_DIGEST_HEX_MAX];
    char path[IMAGE_DIGEST_HEX_MAX + 16];
    (void)snprintf(path, sizeof(path), "blobs/sha256/%s", image_digest_hex(digest, hex));
    return open_in_layout(importer, path, out, e);
}

static enum err read_text(int fd, struct buf *out, struct error *e)
{
    size_t got = 0;
    buf_reserve(out, IMAGE_JSON_MAX + 1);
    enum err rc = fd_read_full(fd, out->data, IMAGE_JSON_MAX + 1, &got, e);
    if (rc != ERR_OK)
        return rc;
    if (got > IMAGE_JSON_MAX)
        return err_set(e, ERR_LIMIT, "a text of the image is larger than %d bytes", IMAGE_JSON_MAX);
    out->size = got;
    out->data[got] = '\0';
    return ERR_OK;
}

/* A JSON blob whose bytes are what its digest says. */
static enum err read_text_blob(const struct importer *importer, const struct image_digest *digest,
                               struct buf *out, struct error *e)
{
    AUTO(fd) int fd = -1;
    enum err rc = open_blob(importer, digest, &fd, e);
    if (rc == ERR_OK)
        rc = read_text(fd, out, e);
    if (rc != ERR_OK)
        return rc;
    struct image_digest found = image_digest_of(out->data, out->size);
    char text[IMAGE_DIGEST_TEXT_MAX];
    if (!image_digest_eq(&found, digest))
        return err_set(e, ERR_CORRUPT, "the bytes of blob %s do not match its digest",
                       image_digest_text(digest, text));
    return ERR_OK;
}

/* JSON is parsed in the sandbox too, in an empty directory. */
static enum err parse_text(const struct importer *importer, enum unpack_task task, struct str text,
                           struct unpack_result *out, struct error *e)
{
    char path[PATH_MAX];
    AUTO(fd) int dir_fd = -1;
    const struct unpack_env *env = &importer->store->env;
    enum err rc = path_format(path, e, "%s/text", importer->work);
    if (rc == ERR_OK)
        rc = unpack_make_dir(env, path, &dir_fd, e);
    if (rc != ERR_OK)
        return rc;
    const struct unpack_job job = { .task = task,
                                    .name =
                                        task == UNPACK_TASK_INDEX ? importer->import->name : NULL,
                                    .dir_fd = dir_fd,
                                    .source_fd = -1,
                                    .text = text };
    struct unpack_blob ignored;
    rc = unpack_run(env, &job, out, &ignored, e);
    remove_tree(path);
    return rc;
}

/*
 * A captured parser could name what belongs to others. It may only pass on digests that stand
 * in the text it was given.
 */
static enum err check_named(struct str text, const struct image_digest *digest, struct error *e)
{
    char name[IMAGE_DIGEST_TEXT_MAX];
    image_digest_text(digest, name);
    if (memmem(text.data, text.size, name, strlen(name)) == NULL)
        return err_set(e, ERR_INVALID, "%s is not named by the image", name);
    return ERR_OK;
}

static enum err find_manifest(struct importer *importer, struct error *e)
{
    AUTO(buf) struct buf index = { 0 };
    AUTO(fd) int fd = -1;
    enum err rc = open_in_layout(importer, "index.json", &fd, e);
    if (rc == ERR_OK)
        rc = read_text(fd, &index, e);
    if (rc != ERR_OK)
        return rc;
    for (int depth = 0; depth < INDEX_DEPTH_MAX; depth++) {
        struct unpack_result result;
        rc = parse_text(importer, UNPACK_TASK_INDEX, buf_str(&index), &result, e);
        if (rc == ERR_OK)
            rc = check_named(buf_str(&index), &result.manifest, e);
        if (rc != ERR_OK)
            return rc;
        importer->image = result.manifest;
        if (result.is_index == 0)
            return read_text_blob(importer, &importer->image, &importer->manifest, e);
        buf_clear(&index);
        rc = read_text_blob(importer, &result.manifest, &index, e);
        if (rc != ERR_OK)
            return rc;
    }
    return err_set(e, ERR_INVALID, "the image's indexes are nested more than %d deep",
                   INDEX_DEPTH_MAX);
}

static enum err read_manifest(struct importer *importer, struct error *e)
{
    struct unpack_result result;
    struct str text = buf_str(&importer->manifest);
    enum err rc = parse_text(importer, UNPACK_TASK_MANIFEST, text, &result, e);
    if (rc == ERR_OK)
        rc = check_named(text, &result.image.config, e);
    for (size_t i = 0; rc == ERR_OK && i < result.image.layer_count; i++)
        rc = check_named(text, &result.image.layers[i].blob, e);
    if (rc != ERR_OK)
        return rc;
    importer->found = result.image;
    for (size_t i = 0; i < importer->found.layer_count; i++)
        importer->total += importer->found.layers[i].size;
    return ERR_OK;
}

static enum err read_config(struct importer *importer, struct error *e)
{
    enum err rc = read_text_blob(importer, &importer->found.config, &importer->config, e);
    if (rc != ERR_OK)
        return rc;
    struct unpack_result result;
    rc = parse_text(importer, UNPACK_TASK_CONFIG, buf_str(&importer->config), &result, e);
    if (rc != ERR_OK)
        return rc;
    if (result.image.layer_count != importer->found.layer_count)
        return err_set(e, ERR_INVALID, "the image has %zu layers and %zu diff_ids",
                       importer->found.layer_count, result.image.layer_count);
    for (size_t i = 0; i < importer->found.layer_count; i++)
        importer->found.layers[i].diff_id = result.image.layers[i].diff_id;
    return ERR_OK;
}

/*
 * Puts the complete layers where they belong, after one sync for all of them. A concurrent import
 * of the same layer may have been first, or the image has it twice.
 */
static enum err publish_layers(const struct importer *importer, struct error *e)
{
    AUTO(fd) int fd = open(importer->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "open %s", importer->work);
    if (importer->staged.count > 0 && syncfs(fd) != 0)
        return err_errno(e, "sync the layers");
    store_path_text path;
    for (size_t i = 0; i < importer->staged.count; i++) {
        char made[PATH_MAX];
        enum err rc = path_format(made, e, "%s/%zu", importer->work, i);
        if (rc != ERR_OK)
            return rc;
        store_digest_path(importer->store, path, "layers", &importer->staged.blobs[i]);
        if (rename(made, path) != 0 && errno != EEXIST && errno != ENOTEMPTY)
            return err_errno(e, "rename %s", made);
    }
    return importer->staged.count > 0 ? file_sync_parent(path, e) : ERR_OK;
}

/* `want` is NULL for a tarball, whose digests nobody has told us. */
static enum err check_layer(const struct image_layer *want, const struct unpack_blob *blob,
                            const struct image_digest *diff_id, struct error *e)
{
    char text[IMAGE_DIGEST_TEXT_MAX];
    if (want == NULL)
        return ERR_OK;
    if (!image_digest_eq(&blob->digest, &want->blob))
        return err_set(e, ERR_CORRUPT, "the bytes of layer %s do not match its digest",
                       image_digest_text(&want->blob, text));
    if (diff_id != NULL && !image_digest_eq(diff_id, &want->diff_id))
        return err_set(e, ERR_CORRUPT, "layer %s unpacks to something else than its diff_id",
                       image_digest_text(&want->blob, text));
    return ERR_OK;
}

/* Makes work/<n>/fs to unpack into. */
static enum err make_layer_dir(const struct importer *importer, char out[PATH_MAX], int *fd,
                               struct error *e)
{
    char fs[PATH_MAX];
    enum err rc = path_format(out, e, "%s/%zu", importer->work, importer->staged.count);
    if (rc == ERR_OK)
        rc = path_format(fs, e, "%s/fs", out);
    if (rc != ERR_OK)
        return rc;
    if (mkdir(out, 0700) != 0)
        return err_errno(e, "make %s", out);
    return unpack_make_dir(&importer->store->env, fs, fd, e);
}

static enum err unpack_layer(struct importer *importer, int blob_fd, const struct image_layer *want,
                             struct image_layer *out, struct error *e)
{
    char dir[PATH_MAX];
    AUTO(fd) int dir_fd = -1;
    enum err rc = make_layer_dir(importer, dir, &dir_fd, e);
    if (rc != ERR_OK)
        return rc;
    const struct unpack_job job = {
        .task = UNPACK_TASK_LAYER,
        .dir_fd = dir_fd,
        .source_fd = blob_fd,
        .progress = importer->import->progress != NULL ? report_progress : NULL,
        .context = importer,
    };
    struct unpack_result result;
    struct unpack_blob blob;
    rc = unpack_run(&importer->store->env, &job, &result, &blob, e);
    if (rc == ERR_OK)
        rc = check_layer(want, &blob, &result.layer.diff_id, e);
    if (rc != ERR_OK)
        return rc;
    const struct layer_meta meta = { result.layer.diff_id, result.layer.bytes, result.layer.entries,
                                     result.layer.is_opaque != 0 };
    rc = store_write_meta(dir, &meta, e);
    if (rc != ERR_OK)
        return rc;
    importer->staged.blobs[importer->staged.count++] = blob.digest;
    *out = (struct image_layer){ blob.digest, meta.diff_id, blob.size };
    return ERR_OK;
}

/* The layer is here already; whoever imports must still hold all of its bytes. */
static enum err prove_possession(const struct importer *importer, int blob_fd,
                                 const struct image_layer *layer, struct error *e)
{
    enum { CHUNK = 256 * 1024 };
    AUTO(image_hash) struct image_hash *hash = image_hash_new();
    AUTO(mem) char *chunk = mem_new(CHUNK, 1);
    struct unpack_blob blob = { .size = 0 };
    size_t got = 0;
    do {
        enum err rc = fd_read_full(blob_fd, chunk, CHUNK, &got, e);
        if (rc != ERR_OK)
            return rc;
        image_hash_add(hash, chunk, got);
        blob.size += (int64_t)got;
    } while (got > 0 && blob.size <= importer->store->env.limits.blob_bytes);
    blob.digest = image_hash_end(hash);
    struct layer_meta meta;
    enum err rc = store_read_meta(importer->store, &layer->blob, &meta, e);
    return rc == ERR_OK ? check_layer(layer, &blob, &meta.diff_id, e) : rc;
}

static enum err take_layer(struct importer *importer, struct image_layer *layer, struct error *e)
{
    AUTO(fd) int fd = -1;
    enum err rc = open_blob(importer, &layer->blob, &fd, e);
    if (rc != ERR_OK)
        return rc;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_errno(e, "look at a layer");
    if (st.st_size != layer->size)
        return err_set(e, ERR_CORRUPT, "a layer has %lld bytes; the manifest says %lld",
                       (long long)st.st_size, (long long)layer->size);
    if (store_has_layer(importer->store, &layer->blob))
        return prove_possession(importer, fd, layer, e);
    struct image_layer made;
    return unpack_layer(importer, fd, layer, &made, e);
}

/* Before anything of it is where others see it: a refused image leaves nothing behind. */
static enum err check_wanted(const struct importer *importer, struct error *e)
{
    const struct image_digest *wanted = importer->import->wanted;
    return wanted == NULL || image_digest_eq(&importer->image, wanted)
               ? ERR_OK
               : err_set(e, ERR_CORRUPT, "the image does not have the digest it was asked by");
}

static enum err import_layout(struct importer *importer, struct error *e)
{
    enum err rc = find_manifest(importer, e);
    if (rc == ERR_OK)
        rc = check_wanted(importer, e);
    if (rc == ERR_OK)
        rc = read_manifest(importer, e);
    if (rc == ERR_OK)
        rc = read_config(importer, e);
    for (size_t i = 0; rc == ERR_OK && i < importer->found.layer_count; i++) {
        rc = take_layer(importer, &importer->found.layers[i], e);
        importer->done_before += importer->found.layers[i].size;
    }
    return rc;
}

static const char *layer_type(const uint8_t magic[MAGIC_SIZE])
{
    static const struct {
        uint8_t bytes[MAGIC_SIZE];
        size_t size;
        const char *type;
    } types[] = {
        { { 0x1f, 0x8b }, 2, "application/vnd.oci.image.layer.v1.tar+gzip" },
        { { 0x28, 0xb5, 0x2f, 0xfd }, 4, "application/vnd.oci.image.layer.v1.tar+zstd" },
    };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (memcmp(magic, types[i].bytes, types[i].size) == 0)
            return types[i].type;
    }
    return "application/vnd.oci.image.layer.v1.tar";
}

/* An image of one layer, with the texts that a builder would have written for it. */
static void describe_tarball(struct importer *importer, const struct image_layer *layer,
                             const char *type)
{
    struct utsname host;
    const char *architecture = "amd64";
    if (uname(&host) == 0 && strcmp(host.machine, "aarch64") == 0)
        architecture = "arm64";
    char diff_id[IMAGE_DIGEST_TEXT_MAX];
    char blob[IMAGE_DIGEST_TEXT_MAX];
    char config[IMAGE_DIGEST_TEXT_MAX];
    buf_format(&importer->config,
               "{\"architecture\":\"%s\",\"os\":\"linux\",\"config\":{\"Env\":[\"PATH="
               "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"],"
               "\"Cmd\":[\"/bin/sh\"]},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
               architecture, image_digest_text(&layer->diff_id, diff_id));
    importer->found = (struct image_manifest){
        .config = image_digest_of(importer->config.data, importer->config.size),
        .config_size = (int64_t)importer->config.size,
        .layers = { *layer },
        .layer_count = 1,
    };
    buf_format(&importer->manifest,
               "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
               "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
               "\"digest\":\"%s\",\"size\":%zu},\"layers\":[{\"mediaType\":\"%s\","
               "\"digest\":\"%s\",\"size\":%lld}]}",
               image_digest_text(&importer->found.config, config), importer->config.size, type,
               image_digest_text(&layer->blob, blob), (long long)layer->size);
    importer->image = image_digest_of(importer->manifest.data, importer->manifest.size);
}

static enum err import_tarball(struct importer *importer, struct error *e)
{
    struct stat st;
    if (fstat(importer->source_fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "%s is no file", importer->import->path);
    uint8_t magic[MAGIC_SIZE] = { 0 };
    if (pread(importer->source_fd, magic, sizeof(magic), 0) < 0)
        return err_errno(e, "read %s", importer->import->path);
    importer->total = st.st_size;
    struct image_layer layer;
    enum err rc = unpack_layer(importer, importer->source_fd, NULL, &layer, e);
    if (rc == ERR_OK)
        describe_tarball(importer, &layer, layer_type(magic));
    return rc;
}

/*
 * A directory is packed by tar and goes the way of a tarball. In sorted order and with
 * numeric owners the same directory gives the same image on every node; device files stay
 * out, a runtime makes its own.
 */
static enum err start_tar(const char *path, struct process *tar, int *out, struct error *e)
{
    const char *const argv[] = { "tar",
                                 "--create",
                                 "--file=-",
                                 "--format=gnu",
                                 "--sort=name",
                                 "--numeric-owner",
                                 "--one-file-system",
                                 "--exclude=./dev/*",
                                 "--directory",
                                 path,
                                 ".",
                                 NULL };
    const char *const environment[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int read_end = ends[0];
    AUTO(fd) int write_end = ends[1];
    const int fds[] = { -1, write_end };
    const struct process_spec spec = {
        .argv = argv, .env = environment, .fds = fds, .fd_count = 2, .dies_with_us = true
    };
    rc = process_spawn(&spec, tar, e);
    if (rc == ERR_OK)
        *out = fd_take(&read_end);
    return rc;
}

static enum err import_directory(struct importer *importer, struct error *e)
{
    AUTO(process) struct process tar = PROCESS_NONE;
    AUTO(fd) int fd = -1;
    struct image_layer layer;
    enum err rc = start_tar(importer->import->path, &tar, &fd, e);
    if (rc != ERR_OK)
        return rc;
    rc = unpack_layer(importer, fd, NULL, &layer, e);
    if (rc != ERR_OK)
        return rc;
    struct process_exit end;
    rc = process_wait(&tar, mono_add_s(clock_monotonic(), TAR_EXIT_S), &end, e);
    if (rc == ERR_OK && end.code != 0)
        rc = err_set(e, ERR_IO,
                     "tar of %s ended with status %d: it changed meanwhile, or cannot be "
                     "read",
                     importer->import->path, end.code);
    if (rc == ERR_OK)
        describe_tarball(importer, &layer, "application/vnd.oci.image.layer.v1.tar");
    return rc;
}

static enum err write_blob(const struct image_store *store, const struct image_digest *digest,
                           const struct buf *text, struct error *e)
{
    store_path_text path;
    return file_write_atomic(store_digest_path(store, path, "blobs", digest), buf_str(text), 0644,
                             e);
}

/* The record comes last: with it the image exists. */
static enum err publish_image(const struct importer *importer, struct error *e)
{
    const struct image_store *store = importer->store;
    enum err rc = write_blob(store, &importer->found.config, &importer->config, e);
    if (rc == ERR_OK)
        rc = write_blob(store, &importer->image, &importer->manifest, e);
    if (rc == ERR_OK)
        rc = store_write_record(store, &importer->image, &importer->found, e);
    if (rc == ERR_OK && importer->import->tenant != NULL)
        rc = image_store_permit(store, importer->import->tenant, &importer->image, e);
    return rc;
}

static enum err guess_kind(const struct image_import *import, int fd, enum image_source_kind *out,
                           struct error *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_errno(e, "look at %s", import->path);
    *out = import->kind;
    if (import->kind != IMAGE_SOURCE_GUESS)
        return ERR_OK;
    if (S_ISREG(st.st_mode))
        *out = IMAGE_SOURCE_TARBALL;
    else if (S_ISDIR(st.st_mode))
        *out = faccessat(fd, "oci-layout", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? IMAGE_SOURCE_LAYOUT
                                                                           : IMAGE_SOURCE_DIRECTORY;
    else
        return err_set(e, ERR_INVALID, "%s is neither a file nor a directory", import->path);
    return ERR_OK;
}

static enum err import_locked(struct importer *importer, enum image_source_kind kind,
                              struct error *e)
{
    static enum err (*const import[])(struct importer *, struct error *) = {
        [IMAGE_SOURCE_LAYOUT] = import_layout,
        [IMAGE_SOURCE_TARBALL] = import_tarball,
        [IMAGE_SOURCE_DIRECTORY] = import_directory,
    };
    AUTO(fd) int lock = -1;
    enum err rc = store_lock_shared(importer->store, &lock, e);
    if (rc != ERR_OK)
        return rc;
    if (mkdir(store_temporary(importer->store, importer->work), 0700) != 0)
        return err_errno(e, "make %s", importer->work);
    assert(kind < IMAGE_SOURCE_GUESS);
    rc = import[kind](importer, e);
    if (rc == ERR_OK)
        rc = check_wanted(importer, e);
    if (rc == ERR_OK)
        rc = publish_layers(importer, e);
    return rc == ERR_OK ? publish_image(importer, e) : rc;
}

enum err image_import(struct image_store *store, const struct image_import *import,
                      struct image_digest *image, struct error *e)
{
    AUTO(importer) struct importer importer = { .store = store, .import = import };
    importer.source_fd = open(import->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (importer.source_fd < 0)
        return err_errno(e, "open %s", import->path);
    enum image_source_kind kind = IMAGE_SOURCE_GUESS;
    enum err rc = import->tenant != NULL ? store_check_name("tenant", import->tenant, e) : ERR_OK;
    if (rc == ERR_OK)
        rc = guess_kind(import, importer.source_fd, &kind, e);
    if (rc == ERR_OK)
        rc = import_locked(&importer, kind, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "import %.100s", import->path);
    *image = importer.image;
    return ERR_OK;
}
