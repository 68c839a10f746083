#include "agent/image/pull.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/image/path.h"
#include "net/egress.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/process.h"

enum {
    REFERENCE_MAX = 512,
    SECRET_MAX = 8192,
    MESSAGES_MAX = 256 * 1024,
    ENV_MAX = 16,
    REASON_MAX = 150
};

struct image_pull {
    struct process process;
    char work[PATH_MAX];   /* ours alone: credentials, messages, skopeo's temporary files */
    char layout[PATH_MAX]; /* complete only after a good end */
    int64_t max_bytes;
    bool is_complete;
};

/* Of our environment only this: how to reach the outside. */
static const char *const passed_on[] = { "HTTP_PROXY",    "HTTPS_PROXY", "NO_PROXY",
                                         "http_proxy",    "https_proxy", "no_proxy",
                                         "SSL_CERT_FILE", "SSL_CERT_DIR" };

static bool is_reference_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("._-/:@[]", c) != NULL;
}

static enum err check_reference(const char *reference, struct error *e)
{
    size_t size = strnlen(reference, REFERENCE_MAX);
    bool is_good = size > 0 && size < REFERENCE_MAX && reference[0] != '-' && reference[0] != '/';
    for (size_t i = 0; i < size && is_good; i++)
        is_good = is_reference_char(reference[i]);
    if (!is_good)
        return err_field(e, "image", "\"%.100s\" is not REGISTRY/NAME:TAG or ...@sha256:DIGEST",
                         reference);
    return ERR_OK;
}

/* A first part with a dot, a colon or the name localhost is a registry; else it is the
 * usual one. */
struct str image_registry(const char *reference)
{
    struct str rest = str_of(reference);
    struct str first = str_cut(&rest, '/');
    bool is_host = rest.size > 0 &&
                   (memchr(first.data, '.', first.size) != NULL ||
                    memchr(first.data, ':', first.size) != NULL || str_is(first, "localhost"));
    return is_host ? first : STR("docker.io");
}

static void wipe(struct buf *secret)
{
    if (secret->data != NULL)
        explicit_bzero(secret->data, secret->capacity);
    buf_done(secret);
}
DEFINE_CLEANUP_AT(wipe, struct buf, wipe)

static enum err write_credentials(const struct image_pull *pull,
                                  const struct image_pull_request *request, struct error *e)
{
    char path[PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/auth.json", pull->work);
    AUTO(wipe) struct buf text = { 0 };
    if (request->user == NULL) {
        buf_add_text(&text, "{}");
        return file_write_atomic(path, buf_str(&text), 0600, e);
    }
    const char *password = request->password != NULL ? request->password : "";
    if (strnlen(request->user, SECRET_MAX) + strnlen(password, SECRET_MAX) >= SECRET_MAX)
        return err_set(e, ERR_LIMIT, "the registry's user and password are too long");
    if (strchr(request->user, ':') != NULL)
        return err_set(e, ERR_INVALID, "the registry's user name contains a colon");

    AUTO(wipe) struct buf pair = { 0 };
    AUTO(wipe) struct buf encoded = { 0 };
    buf_reserve(&pair, SECRET_MAX + 2); /* so that it never moves and leaves a copy behind */
    buf_format(&pair, "%s:%s", request->user, password);
    buf_reserve(&encoded, pair.size * 2 + 4);
    int size = EVP_EncodeBlock((unsigned char *)encoded.data, (const unsigned char *)pair.data,
                               (int)pair.size);
    buf_reserve(&text, (size_t)size + REFERENCE_MAX + 64);
    buf_format(&text, "{\"auths\":{\"%.*s\":{\"auth\":\"%.*s\"}}}",
               STR_ARG(image_registry(request->reference)), size, encoded.data);
    return file_write_atomic(path, buf_str(&text), 0600, e);
}

static enum err make_work_dir(struct image_pull *pull, const struct image_pull_request *request,
                              struct error *e)
{
    if (strchr(request->layout, ':') != NULL || request->layout[0] != '/' ||
        strlen(request->layout) >= sizeof(pull->layout))
        return err_set(e, ERR_INVALID, "the layout's path must be absolute and without a colon");
    if (access(request->layout, F_OK) == 0)
        return err_set(e, ERR_CONFLICT, "%s exists already", request->layout);
    int size = snprintf(pull->work, sizeof(pull->work), "%s/pull-XXXXXX", request->work_dir);
    if (size >= (int)sizeof(pull->work) || mkdtemp(pull->work) == NULL) {
        enum err rc = err_errno(e, "make a directory in %s", request->work_dir);
        pull->work[0] = '\0';
        return rc;
    }
    (void)snprintf(pull->layout, sizeof(pull->layout), "%s", request->layout);
    return ERR_OK;
}

static void build_environment(const struct image_pull *pull, struct arena *arena,
                              const char *out[ENV_MAX])
{
    size_t count = 0;
    out[count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    out[count++] = arena_format(arena, "HOME=%s", pull->work);
    out[count++] = arena_format(arena, "TMPDIR=%s", pull->work);
    out[count++] = arena_format(arena, "XDG_RUNTIME_DIR=%s", pull->work);
    for (size_t i = 0; i < COUNT_OF(passed_on) && count < ENV_MAX - 1; i++) {
        const char *value =
            getenv(passed_on[i]); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
        if (value != NULL)
            out[count++] = arena_format(arena, "%s=%s", passed_on[i], value);
    }
    out[count] = NULL;
}

static enum err spawn(struct image_pull *pull, const struct image_pull_request *request,
                      struct error *e)
{
    char messages[PATH_MAX + 16];
    (void)snprintf(messages, sizeof(messages), "%s/messages", pull->work);
    AUTO(fd) int fd = open(messages, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "create %s", messages);
    AUTO(arena) struct arena arena = { 0 };
    const char *environment[ENV_MAX];
    build_environment(pull, &arena, environment);
    const char *const argv[] = {
        request->skopeo != NULL ? request->skopeo : "skopeo",
        "copy",
        "--insecure-policy",
        "--quiet",
        "--preserve-digests",
        "--authfile",
        arena_format(&arena, "%s/auth.json", pull->work),
        request->is_plain_http ? "--src-tls-verify=false" : "--src-tls-verify=true",
        arena_format(&arena, "docker://%s", request->reference),
        arena_format(&arena, "dir:%s", pull->layout),
        NULL,
    };
    const char *const *all = argv;
    if (request->egress != NULL)
        all = egress_argv(request->egress, request->reach, image_registry(request->reference), argv,
                          &arena);
    const int fds[] = { -1, -1, fd };
    const struct process_spec spec = {
        .argv = all,
        .env = environment,
        .dir = pull->work,
        .fds = fds,
        .fd_count = COUNT_OF(fds),
        .is_group_leader = true,
        .dies_with_us = true,
    };
    return process_spawn(&spec, &pull->process, e);
}

enum err image_pull_start(struct image_pull **out, const struct image_pull_request *request,
                          struct error *e)
{
    AUTO(image_pull) struct image_pull *pull = mem_new(1, sizeof(*pull));
    pull->process = PROCESS_NONE;
    pull->max_bytes = request->max_bytes;
    enum err rc = check_reference(request->reference, e);
    if (rc == ERR_OK)
        rc = make_work_dir(pull, request, e);
    if (rc == ERR_OK)
        rc = write_credentials(pull, request, e);
    if (rc == ERR_OK)
        rc = spawn(pull, request, e);
    if (rc != ERR_OK)
        return rc;
    *out = TAKE(pull);
    return ERR_OK;
}

int image_pull_fd(const struct image_pull *pull)
{
    return pull->process.pidfd;
}

int64_t image_pull_bytes(const struct image_pull *pull)
{
    int64_t bytes = 0;
    DIR *dir = opendir(pull->layout);
    if (dir == NULL)
        return 0; /* not made yet */
    /* readdir's buffer belongs to this DIR alone: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct stat st;
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            bytes += st.st_size;
    }
    (void)closedir(dir); /* was only read */
    return bytes;
}

/* ---- from what skopeo calls a dir to a layout ------------------------------------------------ */

/* A dir has blobs as <64 hex digits> and the manifest as manifest.json, byte for byte. */
static bool is_blob_name(const char *name)
{
    struct image_digest digest;
    return hex_decode(str_of(name), digest.bytes, sizeof(digest.bytes));
}

static enum err move_blobs(int layout, struct error *e)
{
    AUTO(fd) int fd = openat(layout, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL)
        return err_errno(e, "look at what was pulled");
    (void)fd_take(&fd);
    enum err rc = ERR_OK;
    /* readdir's buffer belongs to this DIR alone: NOLINTNEXTLINE(concurrency-mt-unsafe) */
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char to[sizeof("blobs/sha256/") + IMAGE_DIGEST_HEX_MAX];
        if (!is_blob_name(entry->d_name))
            continue;
        (void)snprintf(to, sizeof(to), "blobs/sha256/%.64s", entry->d_name);
        if (renameat(layout, entry->d_name, layout, to) != 0)
            rc = err_errno(e, "move a blob");
    }
    (void)closedir(dir); /* was only read */
    return rc;
}

static enum err write_index(const struct image_pull *pull, struct str manifest,
                            const struct image_digest *digest, struct error *e)
{
    char path[PATH_MAX + 16];
    char type[IMAGE_TYPE_MAX];
    char text[IMAGE_DIGEST_TEXT_MAX];
    AUTO(buf) struct buf index = { 0 };
    enum err rc = image_manifest_type(manifest, type, e);
    if (rc != ERR_OK)
        return rc;
    buf_format(&index,
               "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"%s\",\"digest\":\"%s\","
               "\"size\":%zu}]}",
               type, image_digest_text(digest, text), manifest.size);
    (void)snprintf(path, sizeof(path), "%s/index.json", pull->layout);
    rc = file_write_atomic(path, buf_str(&index), 0644, e);
    if (rc != ERR_OK)
        return rc;
    (void)snprintf(path, sizeof(path), "%s/oci-layout", pull->layout);
    return file_write_atomic(path, STR("{\"imageLayoutVersion\":\"1.0.0\"}"), 0644, e);
}

/* skopeo's "oci:" would write manifests of Docker's kind anew, and with another digest. */
static enum err make_layout(const struct image_pull *pull, struct error *e)
{
    char path[PATH_MAX + 16];
    char hex[IMAGE_DIGEST_HEX_MAX];
    char to[sizeof("blobs/sha256/") + IMAGE_DIGEST_HEX_MAX];
    AUTO(buf) struct buf manifest = { 0 };
    AUTO(fd) int layout = open(pull->layout, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (layout < 0)
        return err_errno(e, "open %s", pull->layout);
    (void)snprintf(path, sizeof(path), "%s/manifest.json", pull->layout);
    enum err rc = file_read(path, IMAGE_JSON_MAX, &manifest, e);
    if (rc != ERR_OK)
        return rc;
    if (mkdirat(layout, "blobs", 0755) != 0 || mkdirat(layout, "blobs/sha256", 0755) != 0)
        return err_errno(e, "make the layout's directories");
    rc = move_blobs(layout, e);
    if (rc != ERR_OK)
        return rc;
    struct image_digest digest = image_digest_of(manifest.data, manifest.size);
    (void)snprintf(to, sizeof(to), "blobs/sha256/%s", image_digest_hex(&digest, hex));
    if (renameat(layout, "manifest.json", layout, to) != 0)
        return err_errno(e, "move the manifest");
    return write_index(pull, buf_str(&manifest), &digest, e);
}

/* Of `time="..." level=fatal msg="WHY"` the why, and of a long one the end: the cause
 * comes last. */
static struct str reason_of(struct str line)
{
    static const struct str before = { "msg=\"", 5 };
    const char *at = memmem(line.data, line.size, before.data, before.size);
    if (at != NULL)
        line = (struct str){ at + before.size, line.size - (size_t)(at - line.data) - before.size };
    if (at != NULL && line.size > 0 && line.data[line.size - 1] == '"')
        line.size--;
    if (line.size > REASON_MAX)
        line = (struct str){ line.data + line.size - REASON_MAX, REASON_MAX };
    return line;
}

/* What skopeo says in its own words, or cannot even write down, is told as the system says it. */
static int shortage_of(const struct image_pull *pull, struct str reason)
{
    static const struct {
        struct str words;
        int number;
    } known[] = { { { "no space left on device", 23 }, ENOSPC },
                  { { "disk quota exceeded", 19 }, EDQUOT },
                  { { "too many open files", 19 }, EMFILE } };
    struct statvfs room;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (reason.size > 0 &&
            memmem(reason.data, reason.size, known[i].words.data, known[i].words.size) != NULL)
            return known[i].number;
    return reason.size == 0 && statvfs(pull->work, &room) == 0 && room.f_bavail == 0 ? ENOSPC : 0;
}

/* skopeo's last line, which names the reason. It prints no credentials, but may print the URL. */
static enum err tell_failure(const struct image_pull *pull, struct process_exit end,
                             struct error *e)
{
    char path[PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/messages", pull->work);
    AUTO(buf) struct buf text = { 0 };
    struct str last = { 0 };
    if (file_read(path, MESSAGES_MAX, &text, NULL) == ERR_OK) {
        struct str rest = buf_str(&text);
        while (rest.size > 0) {
            struct str line = str_cut(&rest, '\n');
            if (line.size > 0)
                last = line;
        }
    }
    errno = shortage_of(pull, last);
    if (last.size == 0 && errno != 0)
        return err_errno(e, "fetch into %s", pull->work);
    int number = errno;
    if (last.size == 0)
        return err_set(e, ERR_UNAVAILABLE, "skopeo ended with status %d", end.code);
    last = reason_of(last);
    enum err rc = err_set(e, ERR_UNAVAILABLE, "%.*s", STR_ARG(last));
    if (e != NULL)
        e->number = number;
    return rc;
}

enum err image_pull_poll(struct image_pull *pull, bool *is_done, struct error *e)
{
    struct process_exit end;
    struct error waiting = { 0 };
    if (pull->max_bytes > 0 && image_pull_bytes(pull) > pull->max_bytes) {
        process_done(&pull->process);
        return err_set(e, ERR_LIMIT, "the image is larger than %lld bytes",
                       (long long)pull->max_bytes);
    }
    enum err rc = process_wait(&pull->process, clock_monotonic(), &end, &waiting);
    if (rc == ERR_UNAVAILABLE) {
        *is_done = false;
        return ERR_OK;
    }
    if (rc != ERR_OK)
        return err_set(e, rc, "%s", waiting.text);
    if (end.code != 0)
        return tell_failure(pull, end, e);
    rc = make_layout(pull, e);
    if (rc != ERR_OK)
        return rc;
    pull->is_complete = true;
    *is_done = true;
    return ERR_OK;
}

void image_pull_free(struct image_pull *pull)
{
    if (pull == NULL)
        return;
    process_done(&pull->process);
    if (pull->work[0] != '\0')
        remove_tree(pull->work);
    if (pull->layout[0] != '\0' && !pull->is_complete)
        remove_tree(pull->layout);
    mem_free(pull);
}
