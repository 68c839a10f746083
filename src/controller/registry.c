#include "controller/registry.h"

#include <ftw.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/egress.h"
#include "os/file.h"
#include "os/process.h"
#include "wire/json_read.h"
#include "wire/json_writer.h"

enum {
    REFERENCE_BYTES_MAX = 512,
    ANSWER_BYTES_MAX = 4 * 1024 * 1024,
    TIMEOUT_MS = 60000,
    ENVIRONMENT_MAX = 16,
    LAYERS_MAX = 1024,
    REMOVE_FDS = 8,
    REASON_BYTES_MAX = 120,
};

static const struct str digest_mark = { "@sha256:", 8 };
static const struct str default_host = { "docker.io", 9 };

/* Of our environment only this: how to reach the outside. */
static const char *const passed_on[] = { "HTTP_PROXY",    "HTTPS_PROXY", "NO_PROXY",
                                         "http_proxy",    "https_proxy", "no_proxy",
                                         "SSL_CERT_FILE", "SSL_CERT_DIR" };

/* ---- references ----------------------------------------------------------------------------- */

/* A first part with a dot, a colon or the name localhost is a host; else it is the usual
 * registry. */
struct str registry_host(struct str reference)
{
    struct str rest = reference;
    struct str first = str_cut(&rest, '/');
    bool is_host = rest.size > 0 &&
                   (memchr(first.data, '.', first.size) != NULL ||
                    memchr(first.data, ':', first.size) != NULL || str_is(first, "localhost"));
    return is_host ? first : default_host;
}

static bool is_loopback(struct str host)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct str name = str_of(names[i]);
        if (str_starts(host, name) && (host.size == name.size || host.data[name.size] == ':'))
            return true;
    }
    return false;
}

bool registry_is_plain(struct str reference, const struct str_list *hosts)
{
    struct str host = registry_host(reference);
    return str_list_has(hosts, host) && is_loopback(host);
}

enum err registry_judge(struct str reference, const struct registry_rules *rules, enum reach *reach,
                        struct error *e)
{
    struct str host = registry_host(reference);
    bool is_named = str_list_has(rules->named, host) || str_list_has(rules->plain, host);
    if (!is_named && rules->named->count > 0)
        return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED,
                         "images may not come from %.*s: operators name the registries that are "
                         "allowed",
                         STR_ARG(host));
    *reach = is_named ? REACH_NEAR : REACH_PUBLIC;
    return ERR_OK;
}

enum err registry_check_plain(const struct str_list *hosts, struct error *e)
{
    for (size_t i = 0; i < hosts->count; i++) {
        if (!is_loopback(hosts->items[i]))
            return err_field(e, "plain_http_registries",
                             "plain_http_registries: %.*s is not on the loopback; others need TLS",
                             STR_ARG(hosts->items[i]));
    }
    return ERR_OK;
}

static enum err reference_check(struct str reference, struct error *e)
{
    bool is_good = reference.size > 0 && reference.size < REFERENCE_BYTES_MAX &&
                   reference.data[0] != '-' && reference.data[0] != '/';
    for (size_t i = 0; i < reference.size && is_good; i++) {
        char c = reference.data[i];
        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  memchr("._-/:@[]", c, 9) != NULL;
    }
    if (!is_good)
        return err_field(e, "source",
                         "source: REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:DIGEST is wanted");
    return ERR_OK;
}

/* "host:5000/name" of "host:5000/name:tag@sha256:...". */
static struct str repository_of(struct str reference)
{
    const char *at = memchr(reference.data, '@', reference.size);
    if (at != NULL)
        reference.size = (size_t)(at - reference.data);
    for (size_t i = reference.size; i > 0 && reference.data[i - 1] != '/'; i--) {
        if (reference.data[i - 1] == ':') {
            reference.size = i - 1;
            break;
        }
    }
    return reference;
}

const char *registry_by_digest(struct str reference, const struct digest *digest,
                               struct arena *arena)
{
    char hex[2 * DIGEST_BYTES + 1];
    hex_encode(digest->bytes, DIGEST_BYTES, hex);
    return arena_format(arena, "%.*s@sha256:%s", STR_ARG(repository_of(reference)), hex);
}

/* ---- skopeo ---------------------------------------------------------------------------------- */

struct session {
    const struct registry_request *request;
    struct arena *arena;
    char *dir; /* ours alone; removed at the end */
    const char *auth_file;
};

static void wipe(struct buf *secret)
{
    if (secret->data != NULL)
        explicit_bzero(secret->data, secret->capacity);
    buf_done(secret);
}
DEFINE_CLEANUP_AT(wipe, struct buf, wipe)

/* {"auths":{"host":{"auth":"base64 of user:password"}}} */
static enum err auth_write(const struct session *session, struct error *e)
{
    const struct registry_request *request = session->request;
    AUTO(wipe) struct buf text = { 0 };
    AUTO(wipe) struct buf pair = { 0 };
    AUTO(wipe) struct buf encoded = { 0 };
    buf_reserve(&text, 32 * 1024); /* so that no copy of the password stays behind */
    if (request->username.size == 0) {
        buf_add_text(&text, "{}");
        return file_write_atomic(session->auth_file, buf_str(&text), 0600, e);
    }
    buf_reserve(&pair, request->username.size + request->password.size + 2);
    buf_format(&pair, "%.*s:%.*s", STR_ARG(request->username), STR_ARG(request->password));
    size_t size = sodium_base64_encoded_len(pair.size, sodium_base64_VARIANT_ORIGINAL);
    buf_reserve(&encoded, size);
    (void)sodium_bin2base64(encoded.data, size, (const unsigned char *)pair.data, pair.size,
                            sodium_base64_VARIANT_ORIGINAL);
    struct str host = registry_host(str_of(request->reference));
    struct json_writer w = json_writer_of(&text);
    json_begin_object(&w);
    json_key(&w, "auths");
    json_begin_object(&w);
    json_key_str(&w, host);
    json_begin_object(&w);
    json_put_text(&w, "auth", encoded.data);
    json_end_object(&w);
    json_end_object(&w);
    json_end_object(&w);
    return file_write_atomic(session->auth_file, buf_str(&text), 0600, e);
}

static void environment_fill(const struct session *session, const char *out[ENVIRONMENT_MAX])
{
    size_t count = 0;
    out[count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    out[count++] = arena_format(session->arena, "HOME=%s", session->dir);
    out[count++] = arena_format(session->arena, "TMPDIR=%s", session->dir);
    out[count++] = arena_format(session->arena, "XDG_RUNTIME_DIR=%s", session->dir);
    for (size_t i = 0; i < COUNT_OF(passed_on) && count < ENVIRONMENT_MAX - 1; i++) {
        const char *value =
            getenv(passed_on[i]); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
        if (value != NULL)
            out[count++] = arena_format(session->arena, "%s=%s", passed_on[i], value);
    }
    out[count] = NULL;
}

/* Of skopeo's last line, `... msg="Error parsing image name \\"docker://...\\": WHY"`, the why. */
static struct str reason_of(struct str errors)
{
    static const struct str after_name = { "\\\": ", 4 };
    struct str last = { 0 };
    while (errors.size > 0) {
        struct str line = str_cut(&errors, '\n');
        last = line.size > 0 ? line : last;
    }
    for (size_t i = 0; i + after_name.size < last.size; i++) {
        struct str rest = { last.data + i, last.size - i };
        if (str_starts(rest, after_name)) {
            last = (struct str){ rest.data + after_name.size, rest.size - after_name.size };
            break;
        }
    }
    if (last.size > 0 && last.data[last.size - 1] == '"')
        last.size--;
    if (last.size >
        REASON_BYTES_MAX) { /* the cause comes last; what is cut begins with a whole word */
        last = (struct str){ last.data + last.size - REASON_BYTES_MAX, REASON_BYTES_MAX };
        (void)str_cut(&last, ' ');
    }
    return last.size > 0 ? last : STR("no reason was given");
}

/* Raw bytes of a manifest, or of a configuration. */
static enum err ask(const struct session *session, const char *reference, bool is_config,
                    struct buf *out, struct error *e)
{
    const char *environment[ENVIRONMENT_MAX];
    const char *const argv[] = {
        "skopeo",
        "inspect",
        "--raw",
        "--authfile",
        session->auth_file,
        session->request->is_plain_http ? "--tls-verify=false" : "--tls-verify=true",
        arena_format(session->arena, "docker://%s", reference),
        is_config ? "--config" : NULL,
        NULL,
    };
    AUTO(process_result) struct process_result result = { 0 };
    environment_fill(session, environment);
    const struct process_run run = {
        .spec = { .argv = egress_argv(session->request->egress, session->request->reach,
                                      registry_host(str_of(session->request->reference)), argv,
                                      session->arena),
                  .env = environment,
                  .dir = session->dir },
        .output_max = ANSWER_BYTES_MAX,
        .timeout_ms = TIMEOUT_MS,
    };
    enum err rc = process_run(&run, &result, e);
    if (rc == ERR_NOT_FOUND)
        return err_set(e, ERR_UNAVAILABLE, "skopeo is not installed where the controller runs");
    if (rc != ERR_OK)
        return err_wrap(e, rc, "%.100s", reference);
    struct str reason = reason_of(buf_str(&result.errors));
    if (result.exit.code != 0)
        return err_set(e, ERR_UNAVAILABLE, "%.100s cannot be resolved: %.*s", reference,
                       STR_ARG(reason));
    buf_add_str(out, buf_str(&result.output));
    return ERR_OK;
}

/* ---- manifests ------------------------------------------------------------------------------- */

static void digest_of(struct str bytes, struct digest *out)
{
    (void)crypto_hash_sha256(out->bytes, (const unsigned char *)bytes.data, bytes.size);
}

static bool digest_is(struct str bytes, const struct digest *wanted)
{
    struct digest got;
    digest_of(bytes, &got);
    return memcmp(&got, wanted, sizeof(got)) == 0;
}

/* Debian's names of machines are not those of registries. */
static const char *machine_here(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#else
    return "unknown";
#endif
}

/* The entry of a list for this kind of machine. */
static const json_t *list_pick(const json_t *manifests)
{
    for (size_t i = 0; i < json_array_size(manifests); i++) {
        const json_t *entry = json_array_get(manifests, i);
        const json_t *platform = json_object_get(entry, "platform");
        struct str os = str_of(json_string_value(json_object_get(platform, "os")));
        struct str machine = str_of(json_string_value(json_object_get(platform, "architecture")));
        if (str_is(os, "linux") && str_is(machine, machine_here()))
            return entry;
    }
    return NULL;
}

/* A manifest by its reference; one of a list by its digest, which its bytes then have to have. */
static enum err manifest_read(const struct session *session, const char *reference,
                              const struct digest *wanted, struct digest *digest, json_t **out,
                              struct error *e)
{
    AUTO(buf) struct buf text = { 0 };
    enum err rc = ask(session, reference, false, &text, e);
    if (rc != ERR_OK)
        return rc;
    digest_of(buf_str(&text), digest);
    if (wanted != NULL && !digest_is(buf_str(&text), wanted))
        return err_set(e, ERR_UNAVAILABLE, "%s: the registry sent other bytes", reference);
    return json_read(buf_str(&text), ANSWER_BYTES_MAX, out, e);
}

static const char *reference_by_digest(const struct session *session, const struct digest *digest)
{
    return registry_by_digest(str_of(session->request->reference), digest, session->arena);
}

/* Follows a list of images to the one for this machine, once. */
static enum err manifest_find(const struct session *session, struct digest *digest, json_t **out,
                              struct error *e)
{
    AUTO(json) json_t *first = NULL;
    struct str reference = str_of(session->request->reference);
    struct digest named;
    const struct digest *wanted = NULL;
    if (reference.size > digest_mark.size + 2 * DIGEST_BYTES &&
        str_starts(
            (struct str){ reference.data + reference.size - 2 * DIGEST_BYTES - digest_mark.size,
                          digest_mark.size },
            digest_mark) &&
        hex_decode(
            (struct str){ reference.data + reference.size - 2 * DIGEST_BYTES, 2 * DIGEST_BYTES },
            named.bytes, DIGEST_BYTES))
        wanted = &named;
    enum err rc = manifest_read(session,
                                wanted != NULL ? reference_by_digest(session, wanted)
                                               : session->request->reference,
                                wanted, digest, &first, e);
    if (rc != ERR_OK)
        return rc;
    const json_t *manifests = json_object_get(first, "manifests");
    if (manifests == NULL) {
        *out = TAKE(first);
        return ERR_OK;
    }
    const json_t *entry = list_pick(manifests);
    if (entry == NULL)
        return err_field(e, "source", "source: there is no image for linux/%s behind %s",
                         machine_here(), session->request->reference);
    rc = image_descriptor_digest(entry, &named, e);
    return rc == ERR_OK ? manifest_read(session, reference_by_digest(session, &named), &named,
                                        digest, out, e)
                        : rc;
}

static int64_t layers_size(const json_t *manifest)
{
    const json_t *layers = json_object_get(manifest, "layers");
    int64_t sum = 0;
    for (size_t i = 0; i < MIN_OF(json_array_size(layers), (size_t)LAYERS_MAX); i++) {
        json_int_t size = json_integer_value(json_object_get(json_array_get(layers, i), "size"));
        if (size > 0 && size < (INT64_C(1) << 40))
            sum += size;
    }
    return sum;
}

static enum err resolve(const struct session *session, struct registry_image *out, struct error *e)
{
    AUTO(json) json_t *manifest = NULL;
    AUTO(json) json_t *config = NULL;
    AUTO(buf) struct buf text = { 0 };
    struct registry_image image = { 0 };
    struct digest config_digest = { 0 };
    enum err rc = manifest_find(session, &image.manifest, &manifest, e);
    if (rc == ERR_OK)
        rc = image_descriptor_digest(json_object_get(manifest, "config"), &config_digest, e);
    if (rc == ERR_OK)
        rc = ask(session, reference_by_digest(session, &image.manifest), true, &text, e);
    if (rc == ERR_OK && !digest_is(buf_str(&text), &config_digest))
        rc =
            err_set(e, ERR_UNAVAILABLE, "the registry sent another configuration than the image's");
    if (rc == ERR_OK)
        rc = json_read(buf_str(&text), ANSWER_BYTES_MAX, &config, e);
    if (rc != ERR_OK)
        return rc;
    image_config_defaults(config, session->arena, &image.defaults);
    image.size_bytes = layers_size(manifest);
    *out = image;
    return ERR_OK;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

enum err registry_resolve(const struct registry_request *request, struct arena *arena,
                          struct registry_image *out, struct error *e)
{
    struct session session = { .request = request, .arena = arena };
    enum err rc = reference_check(str_of(request->reference), e);
    if (rc != ERR_OK)
        return rc;
    session.dir = arena_format(arena, "%s/resolve-XXXXXX", request->work_dir);
    if (mkdtemp(session.dir) == NULL)
        return err_errno(e, "make a directory in %s", request->work_dir);
    session.auth_file = arena_format(arena, "%s/auth.json", session.dir);
    rc = auth_write(&session, e);
    if (rc == ERR_OK)
        rc = resolve(&session, out, e);
    (void)unlink(session.auth_file);
    /* What skopeo may have left besides holds no secret; the next start looks no further at it. */
    /* Without FTW_CHDIR it is safe in threads: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    (void)nftw(session.dir, remove_entry, REMOVE_FDS, FTW_DEPTH | FTW_PHYS);
    return rc;
}
