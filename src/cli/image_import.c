/*
 * image_import.c - a directory, a tarball, an OCI layout or archive becomes one OCI archive (a tar
 * of a layout, https://github.com/opencontainers/image-spec) and is uploaded.
 */
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/blob.h"
#include "cli/special.h"
#include "cli/tree.h"
#include "os/archive.h"
#include "os/fd.h"

enum { BLOCK = 64 * 1024, LOOK_ENTRIES = 64 };

struct layer {
    int fd;
    char digest[BLOB_HEX_MAX];  /* as it is shipped */
    char diff_id[BLOB_HEX_MAX]; /* of the plain tar */
    int64_t size_bytes;
    const char *media_type;
};

/* Does the tar begin like an OCI layout? */
static bool is_oci_archive(const char *path)
{
    struct archive *archive = archive_read_new();
    struct archive_entry *entry = NULL;
    bool is_oci = false;
    (void)archive_read_support_format_tar(archive);
    if (archive_read_open_filename(archive, path, BLOCK) == ARCHIVE_OK) {
        for (unsigned i = 0;
             i < LOOK_ENTRIES && !is_oci && archive_read_next_header(archive, &entry) == ARCHIVE_OK;
             i++) {
            const char *name = archive_entry_pathname(entry);
            is_oci = name != NULL &&
                     (strcmp(name, "oci-layout") == 0 || strcmp(name, "./oci-layout") == 0 ||
                      strcmp(name, "index.json") == 0);
        }
    }
    (void)archive_read_free(archive);
    return is_oci;
}

/* SHA-256 of what is inside the compression, which is none, gzip or zstd. */
static enum err layer_diff_id(struct layer *layer, const char *path, struct error *e)
{
    static char block[BLOCK];
    uint8_t digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state hash;
    struct archive_entry *entry = NULL;
    struct archive *archive = archive_read_new();
    (void)crypto_hash_sha256_init(&hash);
    (void)archive_read_support_filter_gzip(archive);
    (void)archive_read_support_filter_zstd(archive);
    (void)archive_read_support_format_raw(archive);
    enum err rc = ERR_OK;
    if (archive_read_open_filename(archive, path, BLOCK) != ARCHIVE_OK ||
        archive_read_next_header(archive, &entry) != ARCHIVE_OK)
        rc = archive_failed(archive, ERR_INVALID, "the archive cannot be read", e);
    for (la_ssize_t got = 1; rc == ERR_OK && got != 0;) {
        got = archive_read_data(archive, block, sizeof(block));
        if (got < 0)
            rc = archive_failed(archive, ERR_INVALID, "the archive cannot be read", e);
        else
            (void)crypto_hash_sha256_update(&hash, (const unsigned char *)block, (size_t)got);
    }
    int filter = archive_filter_code(archive, 0);
    layer->media_type =
        filter == ARCHIVE_FILTER_GZIP   ? "application/vnd.oci.image.layer.v1.tar+gzip"
        : filter == ARCHIVE_FILTER_ZSTD ? "application/vnd.oci.image.layer.v1.tar+zstd"
                                        : "application/vnd.oci.image.layer.v1.tar";
    (void)archive_read_free(archive);
    (void)crypto_hash_sha256_final(&hash, digest);
    hex_encode(digest, sizeof(digest), layer->diff_id);
    return rc;
}

/* What else is taken for a root file system shows only on a node, and too late. */
static enum err wanted(struct error *e, const char *path, const char *but)
{
    return err_set(e, ERR_INVALID,
                   "%s is no image: %s; a directory with a root file system, a tar of one (plain, "
                   "gzip or zstd), "
                   "an OCI layout or an OCI archive is wanted",
                   path, but);
}

/* `docker save` of old: layers inside of the tar, and no OCI layout. */
static bool is_docker_archive(const char *name)
{
    size_t size = strlen(name);
    static const char layer[] = "/layer.tar";
    return strcmp(name, "manifest.json") == 0 ||
           (size >= strlen(layer) && strcmp(name + size - strlen(layer), layer) == 0);
}

/* Every entry can be read: what is cut off or no tar at all is noticed here. */
static enum err check_tar(const char *path, struct error *e)
{
    struct archive *archive = archive_read_new();
    struct archive_entry *entry = NULL;
    size_t count = 0;
    enum err rc = ERR_OK;
    (void)archive_read_support_filter_gzip(archive);
    (void)archive_read_support_filter_zstd(archive);
    (void)archive_read_support_format_tar(archive);
    int got = archive_read_open_filename(archive, path, BLOCK);
    if (got == ARCHIVE_OK)
        got = archive_read_next_header(archive, &entry);
    for (; rc == ERR_OK && got >= ARCHIVE_WARN && got != ARCHIVE_EOF; count++) {
        const char *name = archive_entry_pathname(entry);
        if (count < LOOK_ENTRIES && name != NULL && is_docker_archive(name))
            rc = err_set(e, ERR_INVALID,
                         "%s is an archive of `docker save`; skopeo copy docker-archive:%s "
                         "oci-archive:image.tar makes one that can be imported",
                         path, path);
        got = archive_read_next_header(archive, &entry);
    }
    if (rc == ERR_OK && count == 0)
        rc = wanted(e, path, got == ARCHIVE_EOF ? "it is empty" : "it is no tar");
    else if (rc == ERR_OK && got != ARCHIVE_EOF)
        rc = archive_failed(archive, ERR_INVALID, "the archive cannot be read", e);
    (void)archive_read_free(archive);
    return rc;
}

static bool is_empty_dir(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    while (dir != NULL && count < 3 && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        (void)closedir(dir);
    return count <= 2; /* itself and its parent */
}

static enum err layer_of_dir(struct layer *layer, const char *path, struct error *e)
{
    if (is_empty_dir(path))
        return wanted(e, path, "nothing is in it");
    enum err rc = blob_temporary(&layer->fd, e);
    if (rc == ERR_OK)
        rc = tree_write(layer->fd, path, "", TREE_ALL, e);
    if (rc == ERR_OK)
        rc = blob_digest(layer->fd, layer->digest, &layer->size_bytes, e);
    memcpy(layer->diff_id, layer->digest, sizeof(layer->diff_id));
    layer->media_type = "application/vnd.oci.image.layer.v1.tar";
    return rc;
}

static enum err layer_of_file(struct layer *layer, const char *path, struct error *e)
{
    enum err rc = check_tar(path, e);
    if (rc != ERR_OK)
        return rc;
    layer->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (layer->fd < 0)
        return err_errno(e, "%s", path);
    rc = blob_digest(layer->fd, layer->digest, &layer->size_bytes, e);
    return rc == ERR_OK ? layer_diff_id(layer, path, e) : rc;
}

/* ---- the archive ----------------------------------------------------------------------------- */

static void header_add(struct archive *archive, const char *name, int64_t size_bytes)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, size_bytes);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    (void)archive_write_header(archive, entry); /* a failure shows when data follows */
    archive_entry_free(entry);
}

static enum err bytes_add(struct archive *archive, const char *name, struct str bytes,
                          struct error *e)
{
    header_add(archive, name, (int64_t)bytes.size);
    return archive_write_data(archive, bytes.data, bytes.size) == (la_ssize_t)bytes.size
               ? ERR_OK
               : archive_failed(archive, ERR_INVALID, "the archive cannot be read", e);
}

static enum err layer_add(struct archive *archive, const struct layer *layer, struct error *e)
{
    static char block[BLOCK];
    char name[96];
    (void)snprintf(name, sizeof(name), "blobs/sha256/%s", layer->digest);
    header_add(archive, name, layer->size_bytes);
    for (off_t at = 0; at < layer->size_bytes;) {
        ssize_t got = pread(layer->fd, block, sizeof(block), at);
        if (got <= 0)
            return err_errno(e, "read");
        if (archive_write_data(archive, block, (size_t)got) != (la_ssize_t)got)
            return archive_failed(archive, ERR_INVALID, "the archive cannot be read", e);
        at += got;
    }
    return ERR_OK;
}

static const char *architecture(void)
{
    struct utsname machine;
    bool is_arm = uname(&machine) == 0 && strcmp(machine.machine, "aarch64") == 0;
    return is_arm ? "arm64" : "amd64";
}

/* Configuration, manifest and index: three small texts, each named by its digest in the next. */
static enum err texts_add(struct archive *archive, const struct layer *layer, struct error *e)
{
    static const char path_env[] =
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char config_hex[BLOB_HEX_MAX];
    char manifest_hex[BLOB_HEX_MAX];
    char name[96];
    AUTO(buf) struct buf config = { 0 };
    AUTO(buf) struct buf manifest = { 0 };
    AUTO(buf) struct buf index = { 0 };
    buf_format(&config,
               "{\"architecture\":\"%s\",\"os\":\"linux\",\"config\":{\"Env\":[\"%s\"]},"
               "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:%s\"]}}",
               architecture(), path_env, layer->diff_id);
    blob_digest_of(buf_str(&config), config_hex);
    buf_format(&manifest,
               "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
               "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":"
               "\"sha256:%s\",\"size\":%zu},\"layers\":[{\"mediaType\":\"%s\",\"digest\":"
               "\"sha256:%s\",\"size\":%lld}]}",
               config_hex, config.size, layer->media_type, layer->digest,
               (long long)layer->size_bytes);
    blob_digest_of(buf_str(&manifest), manifest_hex);
    buf_format(&index,
               "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
               "\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:%s\","
               "\"size\":%zu}]}",
               manifest_hex, manifest.size);
    enum err rc = bytes_add(archive, "oci-layout", STR("{\"imageLayoutVersion\":\"1.0.0\"}"), e);
    if (rc == ERR_OK)
        rc = bytes_add(archive, "index.json", buf_str(&index), e);
    (void)snprintf(name, sizeof(name), "blobs/sha256/%s", manifest_hex);
    if (rc == ERR_OK)
        rc = bytes_add(archive, name, buf_str(&manifest), e);
    (void)snprintf(name, sizeof(name), "blobs/sha256/%s", config_hex);
    return rc == ERR_OK ? bytes_add(archive, name, buf_str(&config), e) : rc;
}

static enum err layer_wrap(const struct layer *layer, int *out, struct error *e)
{
    enum err rc = blob_temporary(out, e);
    if (rc != ERR_OK)
        return rc;
    struct archive *archive = archive_write_new();
    (void)archive_write_set_format_pax_restricted(archive);
    if (archive_write_open_fd(archive, *out) != ARCHIVE_OK)
        rc = archive_failed(archive, ERR_INVALID, "the archive cannot be read", e);
    if (rc == ERR_OK)
        rc = texts_add(archive, layer, e);
    if (rc == ERR_OK)
        rc = layer_add(archive, layer, e);
    if (rc == ERR_OK && archive_write_close(archive) != ARCHIVE_OK)
        rc = archive_failed(archive, ERR_INVALID, "the archive cannot be read", e);
    (void)archive_write_free(archive);
    return rc;
}

/* An OCI archive of whatever is at `path`; *out is the caller's. */
static enum err archive_make(struct cli *cli, const char *path, int *out, struct error *e)
{
    struct stat info;
    struct layer layer = { .fd = -1 };
    if (stat(path, &info) != 0)
        return err_errno(e, "%s", path);
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
        return wanted(e, path, "it is neither a directory nor a file");
    if (S_ISDIR(info.st_mode) &&
        access(arena_format(&cli->arena, "%s/oci-layout", path), F_OK) == 0) {
        enum err rc = blob_temporary(out, e);
        return rc == ERR_OK ? tree_write(*out, path, "", TREE_ALL, e) : rc;
    }
    if (S_ISREG(info.st_mode) && is_oci_archive(path)) {
        *out = open(path, O_RDONLY | O_CLOEXEC);
        return *out >= 0 ? ERR_OK : err_errno(e, "%s", path);
    }
    enum err rc =
        S_ISDIR(info.st_mode) ? layer_of_dir(&layer, path, e) : layer_of_file(&layer, path, e);
    if (rc == ERR_OK)
        rc = layer_wrap(&layer, out, e);
    fd_close(layer.fd);
    return rc;
}

enum cli_exit run_image_import(struct cli *cli)
{
    struct error e = { 0 };
    AUTO(fd) int fd = -1;
    AUTO(buf) struct buf target = { 0 };
    AUTO(buf) struct buf query = { 0 };
    AUTO(cli_answer) struct cli_answer answer = { 0 };
    enum err rc = archive_make(cli, cli->arguments[1], &fd, &e);
    if (rc == ERR_OK)
        rc = cli_query(cli, &query, &e);
    buf_add_text(&target, "/v1/images/");
    cli_encode_part(&target, str_of(cli->arguments[0]));
    buf_add_text(&target, "/content");
    buf_add_str(&target, buf_str(&query));
    off_t size_bytes = rc == ERR_OK ? lseek(fd, 0, SEEK_END) : 0;
    if (rc == ERR_OK)
        rc = blob_put(cli, target.data, fd, size_bytes, &answer, &e);
    if (rc != ERR_OK)
        return cli_fail(&e);
    cli_print(cli, answer.json, cli->command->columns, cli->command->column_count);
    return CLI_OK;
}
