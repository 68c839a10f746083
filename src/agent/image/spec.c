#include "agent/image/spec.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

DEFINE_CLEANUP(json, json_t *, json_decref)

enum { INDEX_ENTRIES_MAX = 512 };

static const char *const index_types[] = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
};
static const char *const manifest_types[] = {
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
};
/* A layer type that is missing here is one the unpacker cannot read: encrypted or foreign. */
static const char *const layer_types[] = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
};

static bool is_listed(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, list[i]) == 0)
            return true;
    }
    return false;
}
#define IS_LISTED(text, list) is_listed((text), (list), COUNT_OF(list))

static enum err parse_object(struct str text, const char *what, json_t **out, struct error *e)
{
    if (text.size > IMAGE_JSON_MAX)
        return err_set(e, ERR_LIMIT, "the image's %s is larger than %d bytes", what,
                       IMAGE_JSON_MAX);
    json_error_t why;
    json_t *root =
        json_loadb(text.data != NULL ? text.data : "", text.size, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL)
        return err_set(e, ERR_INVALID, "the image's %s, line %d: %s", what, why.line, why.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return err_set(e, ERR_INVALID, "the image's %s is not a JSON object", what);
    }
    *out = root;
    return ERR_OK;
}

/* "" when the member is missing or no string. */
static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static enum err digest_of(const json_t *object, const char *what, struct image_digest *out,
                          struct error *e)
{
    const char *text = text_of(object, "digest");
    if (!image_digest_parse(str_of(text), out))
        return err_set(e, ERR_INVALID, "the image's %s has the digest \"%.80s\", not sha256:...",
                       what, text);
    return ERR_OK;
}

static enum err size_of(const json_t *object, const char *what, int64_t *out, struct error *e)
{
    const json_t *size = json_object_get(object, "size");
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return err_set(e, ERR_INVALID, "the image's %s has no size", what);
    *out = json_integer_value(size);
    return ERR_OK;
}

/* Go's names, which OCI uses. */
static const char *machine_architecture(void)
{
    static const char *const names[][2] = {
        { "x86_64", "amd64" },
        { "aarch64", "arm64" },
        { "ppc64le", "ppc64le" },
        { "riscv64", "riscv64" },
    };
    struct utsname host;
    if (uname(&host) != 0)
        return "";
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(host.machine, names[i][0]) == 0)
            return names[i][1];
    }
    return "";
}

/* An entry without a platform fits: layouts of one image often leave it out. */
static bool fits_machine(const json_t *entry)
{
    const json_t *platform = json_object_get(entry, "platform");
    if (platform == NULL)
        return true;
    return strcmp(text_of(platform, "os"), "linux") == 0 &&
           strcmp(text_of(platform, "architecture"), machine_architecture()) == 0;
}

static bool fits_name(const json_t *entry, const char *name)
{
    const json_t *notes = json_object_get(entry, "annotations");
    return name == NULL || strcmp(text_of(notes, "org.opencontainers.image.ref.name"), name) == 0;
}

enum err image_index_parse(struct str json, const char *name, struct image_digest *manifest,
                           bool *is_index, struct error *e)
{
    AUTO(json) json_t *root = NULL;
    enum err rc = parse_object(json, "index", &root, e);
    if (rc != ERR_OK)
        return rc;
    const json_t *entries = json_object_get(root, "manifests");
    if (!json_is_array(entries) || json_array_size(entries) > INDEX_ENTRIES_MAX)
        return err_set(e, ERR_INVALID, "the image's index has no list of manifests of at most %d",
                       INDEX_ENTRIES_MAX);

    const json_t *found = NULL;
    size_t fit_count = 0;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        const char *type = text_of(entry, "mediaType");
        if (!IS_LISTED(type, index_types) && !IS_LISTED(type, manifest_types))
            continue;
        if (!fits_machine(entry) || !fits_name(entry, name))
            continue;
        found = entry;
        fit_count++;
    }
    if (fit_count == 0)
        return err_set(e, ERR_NOT_FOUND, "the index has no image%s%.64s for linux/%s",
                       name != NULL ? " named " : "", name != NULL ? name : "",
                       machine_architecture());
    if (fit_count > 1)
        return err_set(e, ERR_INVALID, "the index has %zu images that fit; name one", fit_count);

    struct image_digest digest;
    rc = digest_of(found, "manifest", &digest, e);
    if (rc != ERR_OK)
        return rc;
    *manifest = digest;
    *is_index = IS_LISTED(text_of(found, "mediaType"), index_types);
    return ERR_OK;
}

enum err image_manifest_type(struct str json, char out[IMAGE_TYPE_MAX], struct error *e)
{
    AUTO(json) json_t *root = NULL;
    enum err rc = parse_object(json, "manifest", &root, e);
    if (rc != ERR_OK)
        return rc;
    const char *type = text_of(root, "mediaType"); /* optional in OCI */
    if (type[0] == '\0')
        type = manifest_types[0];
    if (!IS_LISTED(type, manifest_types))
        return err_set(e, ERR_INVALID, "the manifest has the type \"%.100s\"", type);
    (void)snprintf(out, IMAGE_TYPE_MAX, "%s", type);
    return ERR_OK;
}

static enum err parse_layer(const json_t *entry, struct image_layer *out, struct error *e)
{
    const char *type = text_of(entry, "mediaType");
    if (!IS_LISTED(type, layer_types))
        return err_set(e, ERR_INVALID, "a layer of the image has the type \"%.100s\"", type);
    enum err rc = digest_of(entry, "layer", &out->blob, e);
    if (rc == ERR_OK)
        rc = size_of(entry, "layer", &out->size, e);
    return rc;
}

enum err image_manifest_parse(struct str json, struct image_manifest *out, struct error *e)
{
    AUTO(json) json_t *root = NULL;
    enum err rc = parse_object(json, "manifest", &root, e);
    if (rc != ERR_OK)
        return rc;
    const char *type = text_of(root, "mediaType"); /* optional in OCI */
    if (type[0] != '\0' && !IS_LISTED(type, manifest_types))
        return err_set(e, ERR_INVALID, "the manifest has the type \"%.100s\"", type);
    const json_t *config = json_object_get(root, "config");
    const json_t *layers = json_object_get(root, "layers");
    size_t count = json_array_size(layers);
    if (count == 0 || count > IMAGE_LAYERS_MAX)
        return err_set(e, ERR_INVALID, "the image has %zu layers; 1..%d are possible", count,
                       IMAGE_LAYERS_MAX);

    struct image_manifest manifest = { .layer_count = count };
    rc = digest_of(config, "configuration", &manifest.config, e);
    if (rc == ERR_OK)
        rc = size_of(config, "configuration", &manifest.config_size, e);
    for (size_t i = 0; i < count && rc == ERR_OK; i++)
        rc = parse_layer(json_array_get(layers, i), &manifest.layers[i], e);
    if (rc == ERR_OK)
        *out = manifest;
    return rc;
}

enum err image_diff_ids_parse(struct str json, struct image_digest out[IMAGE_LAYERS_MAX],
                              size_t *count, struct error *e)
{
    AUTO(json) json_t *root = NULL;
    enum err rc = parse_object(json, "configuration", &root, e);
    if (rc != ERR_OK)
        return rc;
    const json_t *ids = json_object_get(json_object_get(root, "rootfs"), "diff_ids");
    size_t found = json_array_size(ids);
    if (found == 0 || found > IMAGE_LAYERS_MAX)
        return err_set(e, ERR_INVALID, "the image's configuration has %zu diff_ids", found);
    struct image_digest digests[IMAGE_LAYERS_MAX];
    for (size_t i = 0; i < found; i++) {
        const char *text = json_string_value(json_array_get(ids, i));
        if (!image_digest_parse(str_of(text), &digests[i]))
            return err_set(e, ERR_INVALID, "diff_id %zu of the image is not sha256:...", i);
    }
    memcpy(out, digests, found * sizeof(digests[0]));
    *count = found;
    return ERR_OK;
}
