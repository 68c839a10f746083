/*
 * Images and uploads that the network half has fetched, and what of the store is used no more. The
 * work is done by berth-images, a child; here is only which runs, and what follows from its end.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "agent/images_main.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"
#include "os/process.h"

enum {
    IMPORTS_MAX = 16,
    TEXT_MAX = 320,
    KEEP_MAX = 512,   /* images about to be used; with more nothing is collected */
    GC_EVERY_S = 600, /* and after each import */
    GC_AGAIN_S = 60,  /* it found the store in use */
    GC_SOON_S = 5,    /* the store is over its size, and something is not needed any more */
    GC_ARGUMENTS = 5,
};

struct import {
    struct watch child; /* pidfd */
    bool is_gc;         /* a collection: `what` is empty */
    int report_fd;      /* the child's last words, when it fails; owned */
    struct mono give_up_at;
    bool is_late; /* it was ended for taking too long */
    struct ipc_image_ready what;
};

/* "uploads/<hex>" holds the digest of the image that the tarball became. */
static void upload_path(const struct agentd *agentd, const struct grant_digest *upload,
                        char out[ATTEMPT_PATH_MAX])
{
    char hex[2 * GRANT_DIGEST_SIZE + 1];
    hex_encode(upload->bytes, GRANT_DIGEST_SIZE, hex);
    (void)snprintf(out, ATTEMPT_PATH_MAX, "%.300s/%s", agentd->upload_dir, hex);
}

bool import_find_upload(const struct agentd *agentd, const struct grant_digest *upload,
                        struct grant_digest *image)
{
    char path[ATTEMPT_PATH_MAX];
    AUTO(buf) struct buf text = { 0 };
    upload_path(agentd, upload, path);
    return file_read(path, 2 * GRANT_DIGEST_SIZE, &text, NULL) == ERR_OK &&
           hex_decode(buf_str(&text), image->bytes, GRANT_DIGEST_SIZE);
}

/* What becomes of the grants that wait for it: never, or later again. */
static void give_up(struct agentd *agentd, const struct ipc_image_ready *what, const char *why,
                    enum ipc_image_state how)
{
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        const struct grant *grant = &agentd->set.grants[i];
        struct wanted *wanted = &agentd->wanted[i];
        bool is_image = what->kind == IPC_IMAGE;
        if (!id_eq(grant->tenant, what->tenant) ||
            (is_image ? wanted->ready.has_image : wanted->ready.has_upload) ||
            !grant_digest_eq(is_image ? &grant->image : &grant->upload, &what->digest))
            continue;
        if (how == IPC_IMAGE_NOT_NOW)
            desired_put_off(agentd, wanted, why);
        else
            desired_refuse(agentd, wanted, why);
    }
}

static void import_free(struct agentd *agentd, struct import *import)
{
    for (size_t i = 0; i < agentd->imports.count; i++)
        if (agentd->imports.items[i] == import) {
            agentd->imports.items[i] = agentd->imports.items[--agentd->imports.count];
            break;
        }
    agentd_unwatch(agentd, &import->child);
    fd_close(import->report_fd);
    mem_free(import);
}

static void import_ended(struct agentd *agentd, void *self, uint32_t events)
{
    (void)events;
    struct import *import = self;
    siginfo_t info = { 0 };
    char text[TEXT_MAX] = "";
    if (waitid(P_PIDFD, (id_t)import->child.fd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    bool is_gc = import->is_gc;
    bool is_over = is_gc && info.si_code == CLD_EXITED && info.si_status == IMAGES_STORE_IS_OVER;
    bool is_good = info.si_code == CLD_EXITED && (info.si_status == 0 || is_over);
    if (!is_good && read(import->report_fd, text, sizeof(text) - 1) <= 0)
        (void)snprintf(text, sizeof(text), "it was killed");
    if (!is_good && import->is_late)
        (void)snprintf(text, sizeof(text),
                       "it took longer than %lld s, and was ended; see --image-timeout of "
                       "berth-agentd",
                       (long long)agentd->options.image_timeout_s);
    agentd->gc_at = mono_add_s(clock_monotonic(), is_gc ? (is_good ? GC_EVERY_S : GC_AGAIN_S) : 0);
    agentd->gc_soon_at = mono_add_s(clock_monotonic(), GC_SOON_S);
    if (is_gc)
        agentd->is_store_over = is_over;
    if (is_gc && !is_good)
        log_info("unused images stay for now", LOG_STR("why", text));
    if (!is_gc && !is_good) {
        log_warning("an image cannot be imported", LOG_STR("error", text));
        bool is_short = info.si_code == CLD_EXITED && info.si_status == IMAGES_NOT_NOW;
        give_up(agentd, &import->what, text, is_short ? IPC_IMAGE_NOT_NOW : IPC_IMAGE_FAILED);
    }
    import_free(agentd, import);
    if (is_gc)
        desired_forget_images(agentd);
    desired_refresh(agentd);
    agentd->is_dirty = true;
}

/* `argv` goes to berth-images; what it has to say comes through report_fd. */
static enum err spawn_child(struct agentd *agentd, struct import *import, const char *const *argv,
                            struct error *e)
{
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int report_read = ends[0];
    AUTO(fd) int report_write = ends[1];
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    const int fds[] = { -1, report_write, STDERR_FILENO };
    const struct process_spec spec = {
        .argv = argv,
        .env = env,
        .dir = "/",
        .fds = fds,
        .fd_count = COUNT_OF(fds),
        .dies_with_us = true, /* the store is never left half-way by that */
    };
    struct process process = PROCESS_NONE;
    rc = process_spawn(&spec, &process, e);
    if (rc != ERR_OK)
        return rc;
    import->report_fd = fd_take(&report_read);
    import->give_up_at = mono_add_s(clock_monotonic(), agentd->options.image_timeout_s);
    import->child = (struct watch){ -1, import_ended, import };
    return agentd_watch_child(agentd, &import->child, process.pidfd, e);
}

static enum err spawn_import(struct agentd *agentd, struct import *import, struct error *e)
{
    const struct ipc_image_ready *what = &import->what;
    const char *unpacker = agentd->options.unpacker;
    bool is_upload = what->kind == IPC_UPLOAD;
    char tenant[ID_TEXT_MAX];
    char hex[2 * GRANT_DIGEST_SIZE + 1];
    hex_encode(what->digest.bytes, GRANT_DIGEST_SIZE, hex);
    const char *const argv[] = {
        agentd->images_program,
        is_upload ? "upload" : "image",
        agentd->store_path,
        unpacker != NULL ? unpacker : "",
        id_text(ID_TENANT, what->tenant, tenant),
        hex,
        what->path,
        is_upload ? agentd->upload_dir : NULL,
        NULL,
    };
    return spawn_child(agentd, import, argv, e);
}

static bool is_running(const struct agentd *agentd, const struct ipc_image_ready *ready)
{
    for (size_t i = 0; i < agentd->imports.count; i++) {
        const struct ipc_image_ready *other = &agentd->imports.items[i]->what;
        if (!agentd->imports.items[i]->is_gc && other->kind == ready->kind &&
            id_eq(other->tenant, ready->tenant) && grant_digest_eq(&other->digest, &ready->digest))
            return true;
    }
    return false;
}

void import_start(struct agentd *agentd, const struct ipc_image_ready *ready)
{
    if (ready->state != IPC_IMAGE_READY_NOW) {
        give_up(agentd, ready, ready->text, (enum ipc_image_state)ready->state);
        return;
    }
    if (is_running(agentd, ready))
        return;
    struct error e = { 0 };
    struct import *import = mem_new(1, sizeof(*import));
    *import = (struct import){ .child = { .fd = -1 }, .report_fd = -1, .what = *ready };
    vec_push(&agentd->imports, import);
    bool is_full = agentd->imports.count > IMPORTS_MAX;
    enum err rc = is_full ? err_set(&e, ERR_LIMIT, "%d images are imported first", IMPORTS_MAX)
                          : spawn_import(agentd, import, &e);
    if (rc != ERR_OK) {
        give_up(agentd, ready, e.text,
                is_full || err_is_shortage(&e) ? IPC_IMAGE_NOT_NOW : IPC_IMAGE_FAILED);
        import_free(agentd, import);
    }
}

/* Collections */

struct keep {
    char hex[KEEP_MAX][2 * GRANT_DIGEST_SIZE + 1];
    size_t count;
    bool is_full;
};

static void keep_one(struct keep *keep, const struct grant_digest *image)
{
    char hex[2 * GRANT_DIGEST_SIZE + 1];
    hex_encode(image->bytes, GRANT_DIGEST_SIZE, hex);
    for (size_t i = 0; i < keep->count; i++)
        if (strcmp(keep->hex[i], hex) == 0)
            return;
    keep->is_full = keep->count == KEEP_MAX;
    if (!keep->is_full)
        memcpy(keep->hex[keep->count++], hex, sizeof(hex));
}

static void keep_grant(const struct agentd *agentd, const struct grant *grant, struct keep *keep)
{
    struct grant_digest upload;
    if (!grant_digest_is_none(&grant->image))
        keep_one(keep, &grant->image);
    if (!grant_digest_is_none(&grant->upload) &&
        import_find_upload(agentd, &grant->upload, &upload))
        keep_one(keep, &upload);
}

static enum err spawn_gc(struct agentd *agentd, const struct keep *keep, struct error *e)
{
    char bytes[32];
    char age[32];
    (void)snprintf(bytes, sizeof(bytes), "%lld", (long long)agentd->options.image_store_bytes);
    (void)snprintf(age, sizeof(age), "%lld", (long long)agentd->options.image_age_s);
    const char *argv[GC_ARGUMENTS + KEEP_MAX + 1] = { agentd->images_program, "gc",
                                                      agentd->store_path, bytes, age };
    for (size_t i = 0; i < keep->count; i++)
        argv[GC_ARGUMENTS + i] = keep->hex[i];
    struct import *import = mem_new(1, sizeof(*import));
    *import = (struct import){ .child = { .fd = -1 }, .report_fd = -1, .is_gc = true };
    vec_push(&agentd->imports, import);
    enum err rc = spawn_child(agentd, import, argv, e);
    if (rc != ERR_OK)
        import_free(agentd, import);
    return rc;
}

/*
 * What an attempt that has ended ran from is still kept when its directory is: right after a start,
 * or a moment after its end. A store that was left too large because of it is looked at again as
 * soon as that has changed, not only after GC_EVERY_S.
 */
static bool is_collection_due(const struct agentd *agentd, const struct keep *before,
                              const struct keep *keep)
{
    struct mono now = clock_monotonic();
    if (!mono_before(now, agentd->gc_at))
        return true;
    return agentd->is_store_over && !mono_before(now, agentd->gc_soon_at) &&
           (keep->count != before->count ||
            memcmp(keep->hex, before->hex, keep->count * sizeof(keep->hex[0])) != 0);
}

void images_collect(struct agentd *agentd)
{
    static struct keep before; /* 32 KiB each */
    static struct keep keep;
    bool is_possible = agentd->is_store_over || !mono_before(clock_monotonic(), agentd->gc_at);
    if (agentd->imports.count > 0 || !is_possible)
        return;
    keep = (struct keep){ .count = 0 };
    for (uint32_t i = 0; i < agentd->set.count; i++)
        keep_grant(agentd, &agentd->set.grants[i], &keep);
    for (size_t i = 0; i < agentd->attempts.count; i++)
        keep_grant(agentd, &agentd->attempts.items[i]->grant, &keep);
    if (!is_collection_due(agentd, &before, &keep))
        return;
    agentd->gc_at = mono_add_s(clock_monotonic(), GC_AGAIN_S);
    before = keep;
    struct error e = { 0 };
    if (!keep.is_full && spawn_gc(agentd, &keep, &e) != ERR_OK)
        log_warning("unused images cannot be collected", LOG_ERR(&e));
}

/* One that reads from a disk that does not answer, or unpacks without an end: its child ends with
 * it, and its end is told as others are. */
void imports_look(struct agentd *agentd)
{
    for (size_t i = 0; i < agentd->imports.count; i++) {
        struct import *import = agentd->imports.items[i];
        if (import->is_late || import->child.fd < 0 ||
            mono_before(clock_monotonic(), import->give_up_at))
            continue;
        import->is_late = true;
        (void)pidfd_send_signal(import->child.fd, SIGKILL, NULL, 0); /* it may have ended */
    }
}

/* Leases of attempts that are not here any more: their shims were killed, or the node went down. */
enum err images_keep_leases(struct agentd *agentd, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    size_t count = 0;
    const char **names = arena_new(&arena, 2 * agentd->attempts.count + 1, sizeof(*names));
    for (size_t i = 0; i < agentd->attempts.count; i++) {
        const char *name = agentd->attempts.items[i]->name;
        names[count++] = arena_format(&arena, "%s.r", name); /* as the shim names them: rootfs/ */
        names[count++] = arena_format(&arena, "%s.u", name); /* and upload/ */
    }
    return image_store_keep_leases(agentd->images, names, count, e);
}

void imports_done(struct agentd *agentd)
{
    while (agentd->imports.count > 0)
        import_free(agentd, agentd->imports.items[0]);
    vec_done(&agentd->imports);
}
