#include "controller/images.h"

#include <archive_entry.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "os/archive.h"
#include "os/file.h"
#include "wire/json_read.h"

enum {
    JSON_FILE_MAX = 1024 * 1024,
    ENTRIES_MAX = 4096,
    BLOCK_BYTES = 64 * 1024,
    KEPT_MAX = 512 * 1024,
};

struct known_image {
    struct digest manifest;
    struct image_defaults defaults;
    bool is_known; /* false: looked for and not found */
    struct known_image *next;
};

struct images {
    char *dir; /* owned */
    struct arena arena;
    struct known_image *first;
};

#define LIST(member)                                                                               \
    {                                                                                              \
        .name = #member, .kind = FIELD_STR_LIST,                                                   \
        .offset = offsetof(struct image_defaults, member), .size = sizeof(struct str_list),        \
        .max = 1024, .item_max = 64 * 1024                                                         \
    }
static const struct field defaults_fields[] = {
    LIST(entrypoint),
    LIST(command),
    LIST(env),
    { .name = "workdir",
      .kind = FIELD_STR,
      .offset = offsetof(struct image_defaults, workdir),
      .size = sizeof(struct str),
      .max = 4096 },
};
static const struct schema defaults_schema = {
    .name = "ImageDefaults",
    .size = sizeof(struct image_defaults),
    .fields = defaults_fields,
    .count = COUNT_OF(defaults_fields),
};

struct images *images_new(const char *dir)
{
    struct images *images = mem_new(1, sizeof(*images));
    images->dir = mem_strdup(dir);
    return images;
}

void images_free(struct images *images)
{
    if (images == NULL)
        return;
    arena_done(&images->arena);
    mem_free(images->dir);
    mem_free(images);
}

static const char *kept_path(const struct images *images, const struct digest *manifest,
                             struct arena *arena)
{
    char hex[2 * DIGEST_BYTES + 1];
    hex_encode(manifest->bytes, DIGEST_BYTES, hex);
    return arena_format(arena, "%s/%s.json", images->dir, hex);
}

static struct known_image *known_find(struct images *images, const struct digest *manifest)
{
    for (struct known_image *k = images->first; k != NULL; k = k->next) {
        if (memcmp(&k->manifest, manifest, sizeof(*manifest)) == 0)
            return k;
    }
    return NULL;
}

const struct image_defaults *images_defaults(struct images *images, const struct digest *manifest)
{
    struct known_image *known = known_find(images, manifest);
    if (known == NULL) {
        AUTO(arena) struct arena scratch = { 0 };
        AUTO(buf) struct buf text = { 0 };
        known = arena_new(&images->arena, 1, sizeof(*known));
        known->manifest = *manifest;
        known->is_known =
            file_read(kept_path(images, manifest, &scratch), KEPT_MAX, &text, NULL) == ERR_OK &&
            schema_decode_text(&defaults_schema, buf_str(&text), UNKNOWN_IGNORED, &images->arena,
                               &known->defaults, NULL) == ERR_OK;
        known->next = images->first;
        images->first = known;
    }
    return known->is_known ? &known->defaults : NULL;
}

struct str_list image_defaults_args(const struct image_defaults *defaults, struct arena *arena)
{
    struct str_list args = { 0 };
    args.items =
        arena_new(arena, defaults->entrypoint.count + defaults->command.count, sizeof(*args.items));
    for (size_t i = 0; i < defaults->entrypoint.count; i++)
        args.items[args.count++] = defaults->entrypoint.items[i];
    for (size_t i = 0; i < defaults->command.count; i++)
        args.items[args.count++] = defaults->command.items[i];
    return args;
}

enum err images_keep(struct images *images, const struct digest *manifest,
                     const struct image_defaults *defaults, struct error *e)
{
    AUTO(arena) struct arena scratch = { 0 };
    AUTO(buf) struct buf text = { 0 };
    struct json_writer writer = json_writer_of(&text);
    schema_encode(&writer, &defaults_schema, defaults, WIRE_STORED, NULL);
    enum err rc = file_write_atomic(kept_path(images, manifest, &scratch), buf_str(&text), 0600, e);
    if (rc != ERR_OK)
        return rc;
    struct known_image *known = known_find(images, manifest);
    if (known != NULL) {
        known->is_known = schema_decode_text(&defaults_schema, buf_str(&text), UNKNOWN_IGNORED,
                                             &images->arena, &known->defaults, NULL) == ERR_OK;
    }
    return ERR_OK;
}

void images_forget(struct images *images, const struct state *state, const struct digest *manifest)
{
    AUTO(arena) struct arena scratch = { 0 };
    for (const struct image *i = state->first_image; i != NULL; i = i->next) {
        if (memcmp(&i->r.manifest, manifest, sizeof(*manifest)) == 0)
            return;
    }
    struct known_image *known = known_find(images, manifest);
    if (known != NULL)
        known->is_known = false;
    (void)unlink(kept_path(images, manifest, &scratch)); /* a small file, and nobody reads it */
}

/* ---- reading an archive -------------------------------------------------------------------- */

static enum err archive_take(struct archive *archive, struct buf *out, struct error *e)
{
    for (;;) {
        buf_reserve(out, BLOCK_BYTES);
        la_ssize_t got = archive_read_data(archive, out->data + out->size, BLOCK_BYTES);
        if (got == 0)
            return ERR_OK;
        if (got < 0)
            return err_set(e, ERR_INVALID, "the archive is damaged");
        out->size += (size_t)got;
        out->data[out->size] = '\0';
        if (out->size > JSON_FILE_MAX)
            return err_set(e, ERR_LIMIT, "a description in the archive is larger than 1 MiB");
    }
}

static const char *entry_name(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    if (name != NULL && strncmp(name, "./", 2) == 0)
        name += 2;
    return name;
}

/* The bytes of one small file of the archive. */
static enum err archive_file(const char *path, const char *wanted, struct buf *out, struct error *e)
{
    AUTO(archive) struct archive *archive = archive_read_new();
    if (archive == NULL)
        return err_set(e, ERR_UNAVAILABLE, "no memory for reading an archive");
    (void)archive_read_support_format_tar(archive);
    if (archive_read_open_filename(archive, path, BLOCK_BYTES) != ARCHIVE_OK)
        return err_set(e, ERR_INVALID,
                       "the upload is not a tar archive: send a tar of an OCI layout, or use "
                       "`berth image import`");
    struct archive_entry *entry = NULL;
    for (size_t i = 0; i < ENTRIES_MAX && archive_read_next_header(archive, &entry) == ARCHIVE_OK;
         i++) {
        const char *name = entry_name(entry);
        if (name != NULL && strcmp(name, wanted) == 0 && archive_entry_filetype(entry) == AE_IFREG)
            return archive_take(archive, out, e);
    }
    return err_set(e, ERR_INVALID, "the upload is not an OCI archive: %s is missing", wanted);
}

enum err image_descriptor_digest(const json_t *descriptor, struct digest *out, struct error *e)
{
    static const struct str prefix = { "sha256:", 7 };
    struct str text = str_of(json_string_value(json_object_get(descriptor, "digest")));
    if (!str_starts(text, prefix) ||
        !hex_decode((struct str){ text.data + prefix.size, text.size - prefix.size }, out->bytes,
                    DIGEST_BYTES))
        return err_set(e, ERR_INVALID, "a digest that is not sha256 is named");
    return ERR_OK;
}

/* A JSON blob of the layout, held against the digest that names it. */
static enum err archive_blob(const char *path, const struct digest *digest, json_t **out,
                             struct error *e)
{
    char hex[2 * DIGEST_BYTES + 1];
    struct digest got;
    AUTO(buf) struct buf text = { 0 };
    AUTO(arena) struct arena arena = { 0 };
    hex_encode(digest->bytes, DIGEST_BYTES, hex);
    enum err rc = archive_file(path, arena_format(&arena, "blobs/sha256/%s", hex), &text, e);
    if (rc != ERR_OK)
        return rc;
    (void)crypto_hash_sha256(got.bytes, (const unsigned char *)text.data, text.size);
    if (memcmp(&got, digest, sizeof(got)) != 0)
        return err_set(e, ERR_INVALID,
                       "blob %s of the archive has other bytes than its digest says", hex);
    return json_read(buf_str(&text), JSON_FILE_MAX, out, e);
}

static struct str_list strings_of(const json_t *array, struct arena *arena)
{
    struct str_list list = { .items =
                                 arena_new(arena, json_array_size(array), sizeof(struct str)) };
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (text != NULL)
            list.items[list.count++] = str_copy(arena, str_of(text));
    }
    return list;
}

void image_config_defaults(const json_t *config, struct arena *arena, struct image_defaults *out)
{
    const json_t *inner = json_object_get(config, "config");
    *out = (struct image_defaults){
        .entrypoint = strings_of(json_object_get(inner, "Entrypoint"), arena),
        .command = strings_of(json_object_get(inner, "Cmd"), arena),
        .env = strings_of(json_object_get(inner, "Env"), arena),
        .workdir = str_copy(arena, str_of(json_string_value(json_object_get(inner, "WorkingDir")))),
    };
}

static enum err manifest_find(const char *path, struct digest *manifest, struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    AUTO(json) json_t *index = NULL;
    enum err rc = archive_file(path, "index.json", &text, e);
    if (rc == ERR_OK)
        rc = json_read(buf_str(&text), JSON_FILE_MAX, &index, e);
    if (rc != ERR_OK)
        return rc;
    const json_t *manifests = json_object_get(index, "manifests");
    if (json_array_size(manifests) != 1)
        return err_set(e, ERR_INVALID, "the archive has %zu images; one is wanted",
                       json_array_size(manifests));
    return image_descriptor_digest(json_array_get(manifests, 0), manifest, e);
}

enum err image_archive_read(const char *path, struct arena *arena, struct digest *manifest,
                            struct image_defaults *defaults, struct error *e)
{
    AUTO(json) json_t *description = NULL;
    AUTO(json) json_t *config = NULL;
    struct digest config_digest;
    enum err rc = manifest_find(path, manifest, e);
    if (rc == ERR_OK)
        rc = archive_blob(path, manifest, &description, e);
    if (rc == ERR_OK)
        rc = image_descriptor_digest(json_object_get(description, "config"), &config_digest, e);
    if (rc == ERR_OK)
        rc = archive_blob(path, &config_digest, &config, e);
    if (rc != ERR_OK)
        return err_wrap(e, rc, "image archive");

    image_config_defaults(config, arena, defaults);
    return ERR_OK;
}
