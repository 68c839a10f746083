/*
 * Two readers of libarchive, one behind the other: the first only decompresses, so that the bytes
 * of the tar itself pass through here and can be hashed (the diff_id is of those); the second takes
 * them apart. Whatever follows the end of the tar is hashed too, as the image's maker did.
 *
 * Not kept: extended attributes (file capabilities are worthless to a process that cannot gain any,
 * and user.overlay.* would speak to the kernel), ACLs, device nodes (refused) and the times of
 * directories (which change as soon as the next entry is made in them).
 */
#include "agent/image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/tree.h"
#include "os/fd.h"

enum { CHUNK = 256 * 1024, READ_SIZE = 64 * 1024 };

/* Beside file content a tar may carry this much for each entry: headers, long names, padding. */
#define OVERHEAD_OF_ENTRY INT64_C(16384)

struct layer {
    struct archive *packed; /* owned: decompresses */
    struct archive *tar;    /* owned: reads what `packed` gives */
    struct image_hash *hash;
    struct tree tree;
    const struct image_limits *limits;
    int64_t stream_bytes; /* of the tar so far */
    int64_t bytes;        /* of file content so far */
    int64_t entries;
    uint8_t chunk[CHUNK];
};

static void layer_free(struct layer *layer)
{
    if (layer == NULL)
        return;
    if (layer->tar != NULL)
        (void)archive_read_free(layer->tar); /* nothing left to save */
    if (layer->packed != NULL)
        (void)archive_read_free(layer->packed);
    image_hash_free(layer->hash);
    mem_free(layer);
}
DEFINE_CLEANUP(layer, struct layer *, layer_free)

void layer_prepare(void)
{
    /* Before anything else runs, and built into the C library.
     * NOLINTNEXTLINE(concurrency-mt-unsafe) */
    (void)setlocale(LC_CTYPE, "C.UTF-8");
}

static enum err archive_failed(struct archive *archive, const char *what, struct error *e)
{
    const char *why = archive_error_string(archive);
    return err_set(e, ERR_INVALID, "%s: %.160s", what, why != NULL ? why : "unknown error");
}

/* The second reader's source. */
static la_ssize_t read_tar_bytes(struct archive *archive, void *context, const void **bytes)
{
    struct layer *layer = context;
    la_ssize_t got = archive_read_data(layer->packed, layer->chunk, sizeof(layer->chunk));
    if (got < 0) {
        archive_set_error(archive, EINVAL, "%s", archive_error_string(layer->packed));
        return -1;
    }
    layer->stream_bytes += got;
    if (layer->stream_bytes >
        layer->limits->layer_bytes + layer->limits->entries * OVERHEAD_OF_ENTRY) {
        archive_set_error(archive, EFBIG, "the layer unpacks to more than its limit");
        return -1;
    }
    image_hash_add(layer->hash, layer->chunk, (size_t)got);
    *bytes = layer->chunk;
    return got;
}

/* Switches on what a reader understands; everything else libarchive knows stays off. */
typedef int support_fn(struct archive *archive);

static enum err new_reader(support_fn *const *supports, size_t count, struct archive **out,
                           struct error *e)
{
    struct archive *archive = archive_read_new();
    *out = archive;
    for (size_t i = 0; i < count; i++) {
        if (supports[i](archive) != ARCHIVE_OK)
            return archive_failed(archive, "this build of libarchive cannot read layers", e);
    }
    return ERR_OK;
}

static enum err open_packed(struct layer *layer, int data_fd, struct error *e)
{
    static support_fn *const supports[] = {
        archive_read_support_filter_gzip,  archive_read_support_filter_zstd,
        archive_read_support_filter_xz,    archive_read_support_format_raw,
        archive_read_support_format_empty,
    };
    enum err rc = new_reader(supports, COUNT_OF(supports), &layer->packed, e);
    if (rc != ERR_OK)
        return rc;
    struct archive_entry *entry;
    int got = archive_read_open_fd(layer->packed, data_fd, READ_SIZE);
    if (got == ARCHIVE_OK)
        got = archive_read_next_header(layer->packed, &entry);
    if (got == ARCHIVE_EOF)
        return err_set(e, ERR_INVALID, "the layer is empty");
    return got == ARCHIVE_OK ? ERR_OK : archive_failed(layer->packed, "unpack the layer", e);
}

static enum err open_tar(struct layer *layer, struct error *e)
{
    static support_fn *const supports[] = {
        archive_read_support_format_tar,
        archive_read_support_format_empty, /* a tar of two zero blocks changes nothing, and is one */
    };
    enum err rc = new_reader(supports, COUNT_OF(supports), &layer->tar, e);
    if (rc != ERR_OK)
        return rc;
    int got = archive_read_open(layer->tar, layer, NULL, read_tar_bytes, NULL);
    return got == ARCHIVE_OK ? ERR_OK : archive_failed(layer->tar, "read the layer as tar", e);
}

static enum err meta_of(struct archive_entry *entry, struct tree_meta *out, struct error *e)
{
    int64_t uid = archive_entry_uid(entry);
    int64_t gid = archive_entry_gid(entry);
    if (uid < 0 || uid >= IMAGE_UID_COUNT || gid < 0 || gid >= IMAGE_UID_COUNT)
        return err_set(e, ERR_INVALID, "its owner %lld:%lld is not in 0..%u", (long long)uid,
                       (long long)gid, IMAGE_UID_COUNT - 1);
    *out = (struct tree_meta){
        .uid = (uid_t)uid,
        .gid = (gid_t)gid,
        .mode = archive_entry_mode(entry) & 07777,
        .modified = { .tv_sec = archive_entry_mtime(entry),
                      .tv_nsec = archive_entry_mtime_nsec(entry) },
    };
    return ERR_OK;
}

static enum err write_at(int fd, const void *bytes, size_t size, int64_t offset, struct error *e)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t put = pwrite(fd, at, size, offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return err_errno(e, "write");
        at += put;
        size -= (size_t)put;
        offset += put;
    }
    return ERR_OK;
}

/* Holes of sparse files stay holes. */
static enum err copy_content(struct layer *layer, int fd, int64_t size, struct error *e)
{
    for (;;) {
        const void *block;
        size_t block_size;
        la_int64_t offset;
        int rc = archive_read_data_block(layer->tar, &block, &block_size, &offset);
        if (rc == ARCHIVE_EOF)
            break;
        if (rc != ARCHIVE_OK)
            return archive_failed(layer->tar, "read its content", e);
        layer->bytes += (int64_t)block_size;
        if (layer->bytes > layer->limits->layer_bytes)
            return err_set(e, ERR_LIMIT, "the layer's files have more than %lld bytes",
                           (long long)layer->limits->layer_bytes);
        enum err wrc = write_at(fd, block, block_size, offset, e);
        if (wrc != ERR_OK)
            return wrc;
    }
    if (ftruncate(fd, size) != 0)
        return err_errno(e, "set the size");
    return ERR_OK;
}

static enum err add_file(struct layer *layer, const struct tree_place *place,
                         struct archive_entry *entry, const struct tree_meta *meta, struct error *e)
{
    int64_t size = archive_entry_size(entry);
    if (size < 0 || size > layer->limits->layer_bytes)
        return err_set(e, ERR_LIMIT, "the file is larger than %lld bytes",
                       (long long)layer->limits->layer_bytes);
    AUTO(fd) int fd = -1;
    enum err rc = tree_add_file(place, &fd, e);
    if (rc == ERR_OK)
        rc = copy_content(layer, fd, size, e);
    if (rc == ERR_OK)
        rc = tree_end_file(fd, meta, e);
    return rc;
}

static enum err add_entry(struct layer *layer, const struct tree_place *place,
                          struct archive_entry *entry, struct error *e)
{
    if (!place->is_root && strncmp(place->name, ".wh.", 4) == 0)
        return tree_add_whiteout(&layer->tree, place, e);
    const char *target = archive_entry_hardlink(entry);
    if (target != NULL)
        return tree_add_hardlink(&layer->tree, place, target, e);

    struct tree_meta meta;
    enum err rc = meta_of(entry, &meta, e);
    if (rc != ERR_OK)
        return rc;
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return add_file(layer, place, entry, &meta, e);
    case AE_IFDIR:
        return tree_add_dir(&layer->tree, place, &meta, e);
    case AE_IFIFO:
        return tree_add_fifo(place, &meta, e);
    case AE_IFLNK:
        target = archive_entry_symlink(entry);
        if (target == NULL)
            return err_set(e, ERR_INVALID, "a symbolic link without a target");
        return tree_add_symlink(place, target, &meta, e);
    case AE_IFCHR:
    case AE_IFBLK:
        return err_set(e, ERR_INVALID, "it is a device node");
    default: /* a type that is a plain number in libarchive */
        return err_set(e, ERR_INVALID, "it is neither file, directory, link nor fifo");
    }
}

static enum err add_named_entry(struct layer *layer, struct archive_entry *entry, struct error *e)
{
    const char *path = archive_entry_pathname(entry);
    if (path == NULL)
        return err_set(e, ERR_INVALID, "an entry has no name, or one that is not UTF-8");
    AUTO(tree_place) struct tree_place place = { .dir_fd = -1 };
    enum err rc = tree_place(&layer->tree, path, &place, e);
    if (rc != ERR_OK)
        return rc;
    rc = add_entry(layer, &place, entry, e);
    return rc == ERR_OK ? ERR_OK : err_wrap(e, rc, "%.100s", path);
}

static enum err add_all(struct layer *layer, struct error *e)
{
    for (;;) {
        struct archive_entry *entry;
        int got = archive_read_next_header(layer->tar, &entry);
        if (got == ARCHIVE_EOF)
            return ERR_OK;
        if (got != ARCHIVE_OK && got != ARCHIVE_WARN) /* warnings are about attributes we drop */
            return archive_failed(layer->tar, "read the layer", e);
        layer->entries++;
        if (layer->entries > layer->limits->entries)
            return err_set(e, ERR_LIMIT, "the layer has more than %lld entries",
                           (long long)layer->limits->entries);
        enum err rc = add_named_entry(layer, entry, e);
        if (rc != ERR_OK)
            return rc;
    }
}

/* What follows the end of the tar belongs to the diff_id, and the sender waits for its
 * last byte. */
static enum err drain(struct layer *layer, int data_fd, struct error *e)
{
    const void *bytes;
    la_ssize_t got;
    do {
        got = read_tar_bytes(layer->tar, layer, &bytes);
    } while (got > 0);
    if (got < 0)
        return archive_failed(layer->tar, "read the layer", e);
    ssize_t rest;
    do {
        rest = read(data_fd, layer->chunk, sizeof(layer->chunk));
    } while (rest > 0 || (rest < 0 && errno == EINTR));
    return rest < 0 ? err_errno(e, "read the layer") : ERR_OK;
}

enum err layer_unpack(int data_fd, int dir_fd, const struct image_limits *limits,
                      struct unpack_layer_result *out, struct error *e)
{
    AUTO(layer) struct layer *layer = mem_new(1, sizeof(*layer));
    layer->hash = image_hash_new();
    layer->tree = (struct tree){ .root_fd = dir_fd };
    layer->limits = limits;

    enum err rc = open_packed(layer, data_fd, e);
    if (rc == ERR_OK)
        rc = open_tar(layer, e);
    if (rc == ERR_OK)
        rc = add_all(layer, e);
    if (rc == ERR_OK)
        rc = drain(layer, data_fd, e);
    if (rc != ERR_OK)
        return rc;
    *out = (struct unpack_layer_result){
        .diff_id = image_hash_end(layer->hash),
        .bytes = layer->bytes,
        .entries = layer->entries,
        .is_opaque = layer->tree.is_opaque,
    };
    return ERR_OK;
}
