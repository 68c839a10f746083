/*
 * Images and uploads: asked for by the privileged half, fetched here, handed over as a path.
 * Nothing fetched is trusted there: it is hashed again while it is imported.
 */
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/pull.h"
#include "agent/network.h"
#include "os/archive.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"

enum {
    FETCH_PATH_MAX = IPC_PATH_MAX,
    ENTRIES_MAX = 4096,
    BLOCK = 64 * 1024,
    KEEP_S = 600,
    AGAIN_AFTER_S = 5,
    SWEEP_MS = 60000,
    PROGRESS_MS = 1000, /* between two words about something that comes */
};

enum fetch_state { FETCH_ASKED, FETCH_COMING, FETCH_PULLING, FETCH_READY };

struct fetch {
    struct net_fetches *fetches;
    struct grant_digest digest;
    enum ipc_image_kind kind;
    struct id tenant;
    enum fetch_state state;
    char file[FETCH_PATH_MAX];   /* what comes in; "" none */
    char result[FETCH_PATH_MAX]; /* what is handed over */
    int fd;                      /* of `file` */
    uint64_t offset;
    int64_t total;
    struct link_stream *stream;
    struct image_pull *pull; /* owned */
    struct loop_watch pull_watch;
    bool is_pull_watched;
    struct mono give_up_at; /* of a pull */
    struct mono ready_at;
    struct fetch *next;
};

struct net_fetches {
    struct network *network; /* borrowed */
    struct fetch *first;     /* owned */
    struct loop_timer sweep, progress;
    uint64_t number; /* names of directories are never used twice */
};

/* ---- small things --------------------------------------------------------------------------- */

/* Removes a tree of ours: a layout is at most three levels deep and has no links.
 * NOLINTNEXTLINE(misc-no-recursion): bounded by `depth` */
static void remove_tree(int parent, const char *name, unsigned depth)
{
    if (unlinkat(parent, name, 0) == 0 || errno != EISDIR || depth == 0)
        return;
    AUTO(fd) int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL)
        return;
    (void)fd_take(&fd); /* the stream's now */
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe): our own stream */
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_tree(dirfd(dir), entry->d_name, depth - 1);
    }
    (void)closedir(dir);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static void fetch_clean(struct fetch *fetch)
{
    struct network *network = fetch->fetches->network;
    if (fetch->stream != NULL)
        link_stream_close(fetch->stream, LINK_CODE_OK, (struct str){ 0 });
    fetch->stream = NULL;
    if (fetch->is_pull_watched)
        loop_watch_remove(network->loop, &fetch->pull_watch);
    fetch->is_pull_watched = false;
    image_pull_free(fetch->pull);
    fetch->pull = NULL;
    fd_close(fetch->fd);
    fetch->fd = -1;
    if (fetch->file[0] != '\0')
        remove_tree(AT_FDCWD, fetch->file, 4);
    if (fetch->result[0] != '\0')
        remove_tree(AT_FDCWD, fetch->result, 4);
    fetch->file[0] = '\0';
    fetch->result[0] = '\0';
}

static void progress_send(struct fetch *fetch, enum image_phase phase, const char *detail)
{
    if (fetch->kind != IPC_IMAGE)
        return;
    struct image_progress_message progress = {
        .phase = phase,
        .done_bytes = fetch->pull != NULL ? image_pull_bytes(fetch->pull) : (int64_t)fetch->offset,
        .total_bytes = fetch->total,
        .detail = str_of(detail),
    };
    memcpy(progress.manifest.bytes, fetch->digest.bytes, DIGEST_BYTES);
    (void)network_send_up(fetch->fetches->network, MESSAGE_IMAGE_PROGRESS, &progress);
}

static void fetch_ready(struct fetch *fetch)
{
    struct ipc_image_ready ready = { .digest = fetch->digest,
                                     .kind = fetch->kind,
                                     .tenant = fetch->tenant };
    (void)snprintf(ready.path, sizeof(ready.path), "%s", fetch->result);
    fetch->state = FETCH_READY;
    fetch->ready_at = clock_monotonic();
    (void)network_send_down(fetch->fetches->network, IPC_IMAGE_READY,
                            &ready); /* or it asks again */
    progress_send(fetch, IMAGE_UNPACKING, "");
}

static void fetch_failed(struct fetch *fetch, const struct error *why)
{
    struct ipc_image_ready ready = {
        .digest = fetch->digest,
        .kind = fetch->kind,
        .state = err_is_shortage(why) ? IPC_IMAGE_NOT_NOW : IPC_IMAGE_FAILED,
        .tenant = fetch->tenant,
    };
    ipc_text_set(ready.text, why->text);
    log_warning("an image or upload cannot be fetched", LOG_STR("why", why->text));
    progress_send(fetch, IMAGE_FAILED, why->text);
    fetch_clean(fetch);
    fetch->state = FETCH_READY;
    fetch->ready_at = clock_monotonic();
    (void)network_send_down(fetch->fetches->network, IPC_IMAGE_READY, &ready);
}

static void path_make(struct net_fetches *fetches, const char *suffix, char out[FETCH_PATH_MAX])
{
    (void)snprintf(out, FETCH_PATH_MAX, "%s/fetch/%llu.%s", fetches->network->options.state_dir,
                   (unsigned long long)++fetches->number, suffix);
}

/* ---- an archive of a layout into a directory ------------------------------------------------- */

/* oci-layout, index.json and blobs/sha256/<64 hex digits>: what a layout consists of. */
static bool is_layout_name(struct str name)
{
    static const struct str blobs = { "blobs/sha256/", 13 };
    uint8_t digest[GRANT_DIGEST_SIZE];
    if (str_is(name, "oci-layout") || str_is(name, "index.json"))
        return true;
    return str_starts(name, blobs) &&
           hex_decode((struct str){ name.data + blobs.size, name.size - blobs.size }, digest,
                      sizeof(digest));
}

static enum err entry_write(struct archive *archive, int dir, const char *name, struct error *e)
{
    AUTO(fd) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, "%s", name);
    if (archive_read_data_into_fd(archive, fd) == ARCHIVE_OK)
        return ERR_OK;
    errno = archive_errno(archive);
    return errno == ENOSPC || errno == EDQUOT
               ? err_errno(e, "write %s", name)
               : err_set(e, ERR_INVALID, "the archive is damaged at %s", name);
}

static enum err layout_extract(const char *file, const char *target, struct error *e)
{
    AUTO(archive) struct archive *archive = archive_read_new();
    AUTO(arena) struct arena arena = { 0 };
    enum err rc = file_make_dirs(arena_format(&arena, "%s/blobs/sha256", target), 0700, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int dir = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(e, "%s", target);
    (void)archive_read_support_format_tar(archive);
    if (archive_read_open_filename(archive, file, BLOCK) != ARCHIVE_OK)
        return err_set(e, ERR_INVALID, "the archive cannot be read");
    struct archive_entry *entry = NULL;
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        int got = archive_read_next_header(archive, &entry);
        if (got == ARCHIVE_EOF)
            return ERR_OK;
        if (got != ARCHIVE_OK)
            return err_set(e, ERR_INVALID, "the archive is damaged");
        const char *name = archive_entry_pathname(entry);
        if (name != NULL && strncmp(name, "./", 2) == 0)
            name += 2;
        if (name == NULL || archive_entry_filetype(entry) != AE_IFREG ||
            !is_layout_name(str_of(name)))
            continue;
        rc = entry_write(archive, dir, name, e);
        if (rc != ERR_OK)
            return rc;
    }
    return err_set(e, ERR_LIMIT, "the archive has more than %d entries", ENTRIES_MAX);
}

struct extraction {
    struct net_fetches *fetches;
    struct grant_digest digest;
    enum ipc_image_kind kind;
    struct id tenant;
    char file[FETCH_PATH_MAX];
    char target[FETCH_PATH_MAX];
    enum err rc;
    struct error error;
};

static struct fetch *fetch_find(const struct net_fetches *fetches,
                                const struct grant_digest *digest, enum ipc_image_kind kind,
                                struct id tenant)
{
    for (struct fetch *f = fetches->first; f != NULL; f = f->next) {
        if (f->kind == kind && grant_digest_eq(&f->digest, digest) && id_eq(f->tenant, tenant))
            return f;
    }
    return NULL;
}

static void extraction_run(void *arg)
{
    struct extraction *extraction = arg;
    extraction->rc = layout_extract(extraction->file, extraction->target, &extraction->error);
}

static void extraction_done(void *arg)
{
    struct extraction *extraction = arg;
    struct fetch *fetch =
        fetch_find(extraction->fetches, &extraction->digest, extraction->kind, extraction->tenant);
    if (fetch != NULL) {
        (void)unlink(fetch->file);
        fetch->file[0] = '\0';
        if (extraction->rc == ERR_OK)
            fetch_ready(fetch);
        else
            fetch_failed(fetch, &extraction->error);
    }
    mem_free(extraction);
}

static void fetch_complete(struct fetch *fetch)
{
    fd_close(fetch->fd);
    fetch->fd = -1;
    if (fetch->kind == IPC_UPLOAD) {
        memcpy(fetch->result, fetch->file, sizeof(fetch->result));
        fetch->file[0] = '\0';
        fetch_ready(fetch);
        return;
    }
    progress_send(fetch, IMAGE_UNPACKING, "");
    path_make(fetch->fetches, "layout", fetch->result);
    struct extraction *extraction = mem_new(1, sizeof(*extraction));
    *extraction = (struct extraction){ .fetches = fetch->fetches,
                                       .digest = fetch->digest,
                                       .kind = fetch->kind,
                                       .tenant = fetch->tenant };
    memcpy(extraction->file, fetch->file, sizeof(fetch->file));
    memcpy(extraction->target, fetch->result, sizeof(fetch->result));
    loop_work(fetch->fetches->network->loop, extraction_run, extraction_done, extraction);
}

/* ---- bytes from the controller --------------------------------------------------------------- */

static void blob_on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    struct fetch *fetch = arg;
    struct error e = { 0 };
    if (fd_write_full(fetch->fd, bytes.data, bytes.size, &e) != ERR_OK) {
        fetch_failed(fetch, &e);
        return;
    }
    fetch->offset += bytes.size;
    link_stream_credit(stream, bytes.size);
}

static void blob_on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    struct fetch *fetch = arg;
    (void)stream;
    fetch->stream = NULL;
    if (code == LINK_CODE_OK) {
        fetch_complete(fetch);
        return;
    }
    if (code == LINK_CODE_DOWN) {
        fetch->state = FETCH_ASKED; /* goes on at the same offset when the controller is back */
        return;
    }
    struct error e = { 0 };
    (void)err_set(&e, ERR_DENIED, "the controller refuses: %.*s", STR_ARG(text));
    fetch_failed(fetch, &e);
}

static const struct link_stream_events blob_events = {
    .on_data = blob_on_data,
    .on_close = blob_on_close,
};

static void blob_open(struct fetch *fetch, const struct digest *digest)
{
    struct network *network = fetch->fetches->network;
    struct error e = { 0 };
    AUTO(buf) struct buf bytes = { 0 };
    if (fetch->fd < 0) {
        path_make(fetch->fetches, "tar", fetch->file);
        fetch->fd = open(fetch->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        fetch->offset = 0;
    }
    const struct stream_header header = { .kind = STREAM_BLOB,
                                          .digest = *digest,
                                          .offset = fetch->offset };
    enum err rc = fetch->fd < 0 ? err_errno(&e, "%s", fetch->file)
                                : stream_header_encode(&header, &bytes, &e);
    if (rc != ERR_OK) {
        fetch_failed(fetch, &e);
        return;
    }
    fetch->stream = link_stream_open(network->link, buf_str(&bytes), &blob_events, fetch);
    fetch->state = fetch->stream != NULL ? FETCH_COMING : FETCH_ASKED;
}

/* ---- registries ------------------------------------------------------------------------------ */

static void on_pull_ready(struct loop_watch *watch, uint32_t events)
{
    struct fetch *fetch = watch->arg;
    struct loop *loop = fetch->fetches->network->loop;
    struct error e = { 0 };
    bool is_done = false;
    (void)events;
    /* A look that finds the end closes the descriptor, so the watch goes before it. */
    loop_watch_remove(loop, watch);
    fetch->is_pull_watched = false;
    fetch->offset = (uint64_t)image_pull_bytes(fetch->pull); /* for the last word about it */
    enum err rc = image_pull_poll(fetch->pull, &is_done, &e);
    if (rc == ERR_OK && !is_done)
        rc = loop_watch_add(loop, watch, &e);
    fetch->is_pull_watched = rc == ERR_OK && !is_done;
    if (fetch->is_pull_watched)
        return;
    image_pull_free(fetch->pull);
    fetch->pull = NULL;
    if (rc == ERR_OK)
        fetch_ready(fetch);
    else
        fetch_failed(fetch, &e);
}

/*
 * The host is a tenant's word. An operator of the controller may name it, which opens the networks
 * of the site to it; that it may be this very machine, only an operator of the node can say.
 */
static void pull_start(struct fetch *fetch, const struct image_source_message *source)
{
    struct network *network = fetch->fetches->network;
    AUTO(arena) struct arena arena = { 0 };
    struct error e = { 0 };
    path_make(fetch->fetches, "layout", fetch->result);
    struct str host = image_registry(str_c(&arena, source->reference));
    bool is_ours = str_list_has(&network->options.registries, host);
    const struct image_pull_request request = {
        .reference = str_c(&arena, source->reference),
        .layout = fetch->result,
        .work_dir = arena_format(&arena, "%s/fetch", network->options.state_dir),
        .user = source->username.size > 0 ? str_c(&arena, source->username) : NULL,
        .password = source->password.size > 0 ? str_c(&arena, source->password) : NULL,
        .egress = network->egress,
        .reach = is_ours            ? REACH_NEAR
                 : source->is_named ? REACH_PRIVATE
                                    : REACH_PUBLIC,
        .is_plain_http = is_ours && network->options.is_plain_http,
    };
    enum err rc = image_pull_start(&fetch->pull, &request, &e);
    if (rc == ERR_OK) {
        fetch->pull_watch = (struct loop_watch){ .fd = image_pull_fd(fetch->pull),
                                                 .events = EPOLLIN,
                                                 .on_ready = on_pull_ready,
                                                 .arg = fetch };
        rc = loop_watch_add(network->loop, &fetch->pull_watch, &e);
        fetch->is_pull_watched = rc == ERR_OK;
    }
    if (rc != ERR_OK) {
        fetch_failed(fetch, &e);
        return;
    }
    fetch->state = FETCH_PULLING;
    fetch->give_up_at = mono_add_s(loop_now(network->loop), network->options.image_timeout_s);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static void fetch_ask(struct fetch *fetch)
{
    struct network *network = fetch->fetches->network;
    if (network->link == NULL || !network->is_welcome)
        return; /* net_fetches_up asks */
    struct digest digest;
    memcpy(digest.bytes, fetch->digest.bytes, sizeof(digest.bytes));
    if (fetch->kind == IPC_UPLOAD) {
        blob_open(fetch, &digest);
        return;
    }
    const struct image_wanted_message wanted = { .manifest = digest, .tenant = fetch->tenant };
    (void)network_send_up(network, MESSAGE_IMAGE_WANTED, &wanted); /* again when the link is back */
}

void net_fetches_need(struct net_fetches *fetches, const struct ipc_need_image *need)
{
    enum ipc_image_kind kind = (enum ipc_image_kind)need->kind;
    struct fetch *fetch = fetch_find(fetches, &need->digest, kind, need->tenant);
    if (fetch == NULL) {
        fetch = mem_new(1, sizeof(*fetch));
        *fetch = (struct fetch){ .fetches = fetches,
                                 .digest = need->digest,
                                 .kind = kind,
                                 .tenant = need->tenant,
                                 .fd = -1,
                                 .next = fetches->first };
        fetches->first = fetch;
    } else if (fetch->state != FETCH_READY) {
        return; /* under way */
    } else if (fetch->result[0] != '\0' &&
               clock_monotonic().ns - fetch->ready_at.ns < AGAIN_AFTER_S * NS_PER_S) {
        fetch_ready(fetch); /* it asked before it heard */
        return;
    }
    fetch_clean(fetch);
    fetch->state = FETCH_ASKED;
    fetch_ask(fetch);
}

/* A registry that sends a byte now and then would hold a pull, and what waits for it, for ever. */
static void end_late_pull(struct fetch *fetch)
{
    const struct network *network = fetch->fetches->network;
    struct error e = { 0 };
    if (fetch->state != FETCH_PULLING || mono_before(loop_now(network->loop), fetch->give_up_at))
        return;
    (void)err_set(&e, ERR_UNAVAILABLE,
                  "the registry took longer than %lld s, and the pull was ended; see "
                  "--image-timeout of berth-agent",
                  (long long)network->options.image_timeout_s);
    fetch_failed(fetch, &e);
}

/* While anything comes. */
static void on_progress(void *arg)
{
    struct net_fetches *fetches = arg;
    bool is_any = false;
    for (struct fetch *f = fetches->first; f != NULL; f = f->next) {
        end_late_pull(f);
        bool is_coming = f->state == FETCH_COMING || f->state == FETCH_PULLING;
        if (is_coming && f->fd < 0 && f->pull == NULL)
            continue; /* it is being unpacked */
        if (is_coming)
            progress_send(f, IMAGE_PULLING, "");
        is_any = is_any || is_coming;
    }
    struct loop *loop = fetches->network->loop;
    if (is_any)
        loop_timer_set(loop, &fetches->progress,
                       (struct mono){ loop_now(loop).ns + PROGRESS_MS * NS_PER_MS });
}

void net_fetches_source(struct net_fetches *fetches, const struct image_source_message *source)
{
    for (struct fetch *f = fetches->first; f != NULL; f = f->next) {
        if (f->kind != IPC_IMAGE || f->state != FETCH_ASKED ||
            memcmp(f->digest.bytes, source->manifest.bytes, sizeof(f->digest.bytes)) != 0)
            continue;
        f->total = source->size_bytes;
        struct error e = { 0 };
        (void)err_set(&e, ERR_NOT_FOUND, "%.*s", STR_ARG(source->detail));
        if (source->kind == IMAGE_SOURCE_BLOB)
            blob_open(f, &source->blob);
        else if (source->kind == IMAGE_SOURCE_REGISTRY)
            pull_start(f, source);
        else
            fetch_failed(f, &e);
    }
    on_progress(fetches);
}

void net_fetches_up(struct net_fetches *fetches)
{
    for (struct fetch *f = fetches->first; f != NULL; f = f->next) {
        if (f->state == FETCH_ASKED)
            fetch_ask(f);
    }
}

void net_fetches_down(struct net_fetches *fetches)
{
    for (struct fetch *f = fetches->first; f != NULL; f = f->next) {
        if (f->state == FETCH_COMING)
            f->state = FETCH_ASKED; /* its stream was closed before */
    }
}

static void on_sweep(void *arg)
{
    struct net_fetches *fetches = arg;
    struct fetch **link = &fetches->first;
    int64_t now_ns = clock_monotonic().ns;
    while (*link != NULL) {
        struct fetch *fetch = *link;
        if (fetch->state != FETCH_READY || now_ns - fetch->ready_at.ns < KEEP_S * NS_PER_S) {
            link = &fetch->next;
            continue;
        }
        *link = fetch->next;
        fetch_clean(fetch);
        mem_free(fetch);
    }
    loop_timer_set(fetches->network->loop, &fetches->sweep,
                   (struct mono){ loop_now(fetches->network->loop).ns + SWEEP_MS * NS_PER_MS });
}

struct net_fetches *net_fetches_new(struct network *network)
{
    struct net_fetches *fetches = mem_new(1, sizeof(*fetches));
    AUTO(arena) struct arena arena = { 0 };
    struct error e = { 0 };
    fetches->network = network;
    const char *dir = arena_format(&arena, "%s/fetch", network->options.state_dir);
    remove_tree(AT_FDCWD, dir, 5); /* what an earlier process left half fetched */
    if (file_make_dirs(dir, 0755, &e) != ERR_OK)
        log_error("images cannot be fetched", LOG_ERR(&e));
    fetches->sweep = (struct loop_timer){ .fn = on_sweep, .arg = fetches };
    fetches->progress = (struct loop_timer){ .fn = on_progress, .arg = fetches };
    on_sweep(fetches);
    return fetches;
}

void net_fetches_free(struct net_fetches *fetches)
{
    if (fetches == NULL)
        return;
    loop_drain(fetches->network->loop);
    loop_timer_stop(fetches->network->loop, &fetches->sweep);
    loop_timer_stop(fetches->network->loop, &fetches->progress);
    while (fetches->first != NULL) {
        struct fetch *next = fetches->first->next;
        fetch_clean(fetches->first);
        mem_free(fetches->first);
        fetches->first = next;
    }
    mem_free(fetches);
}
