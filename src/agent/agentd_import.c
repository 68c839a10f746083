/*
 * Images and uploads that the network half has fetched. A child reads them once, into the store or
 * into a file of root's, and compares the digest of what it read: what the network half changes
 * meanwhile changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "agent/image/import.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"
#include "os/random.h"

enum { IMPORTS_MAX = 16, COPY_STEP = 64 * 1024, TEXT_MAX = 320 };

struct import {
    struct watch child; /* pidfd */
    int report_fd;      /* the child's last words, when it fails; owned */
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

/* Copies what is hashed and hashes what is copied. */
static enum err copy_checked(const char *from, const char *to, const struct grant_digest *wanted,
                             struct error *e)
{
    AUTO(fd) int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (in < 0)
        return err_errno(e, "open %s", from);
    AUTO(fd) int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0)
        return err_errno(e, "make %s", to);
    crypto_hash_sha256_state state;
    struct grant_digest found;
    static uint8_t bytes[COPY_STEP];
    (void)crypto_hash_sha256_init(&state);
    for (size_t got = COPY_STEP; got == COPY_STEP;) {
        enum err rc = fd_read_full(in, bytes, sizeof(bytes), &got, e);
        if (rc == ERR_OK)
            rc = fd_write_full(out, bytes, got, e);
        if (rc != ERR_OK)
            return rc;
        (void)crypto_hash_sha256_update(&state, bytes, got);
    }
    (void)crypto_hash_sha256_final(&state, found.bytes);
    return grant_digest_eq(&found, wanted)
               ? ERR_OK
               : err_set(e, ERR_CORRUPT, "the upload does not have the digest it was asked by");
}

static enum err import_upload(struct agentd *agentd, const struct ipc_image_ready *what,
                              struct image_import import, struct error *e)
{
    char copy[ATTEMPT_PATH_MAX];
    char note[ATTEMPT_PATH_MAX];
    char hex[2 * GRANT_DIGEST_SIZE + 1];
    struct image_digest image;
    (void)snprintf(copy, sizeof(copy), "%.300s/%016llx.tar", agentd->upload_dir,
                   (unsigned long long)random_u64());
    import.kind = IMAGE_SOURCE_TARBALL;
    import.path = copy;
    enum err rc = copy_checked(what->path, copy, &what->digest, e);
    if (rc == ERR_OK)
        rc = image_import(agentd->images, &import, &image, e);
    (void)unlink(copy);
    if (rc != ERR_OK)
        return rc;
    upload_path(agentd, &what->digest, note);
    hex_encode(image.bytes, GRANT_DIGEST_SIZE, hex);
    return file_write_atomic(note, str_of(hex), 0600, e);
}

static enum err import_image(struct agentd *agentd, const struct ipc_image_ready *what,
                             struct image_import import, struct error *e)
{
    struct image_digest image;
    import.kind = IMAGE_SOURCE_GUESS;
    import.path = what->path;
    enum err rc = image_import(agentd->images, &import, &image, e);
    if (rc != ERR_OK)
        return rc;
    if (memcmp(image.bytes, what->digest.bytes, sizeof(image.bytes)) != 0)
        return err_set(e, ERR_CORRUPT, "the image does not have the digest it was asked by");
    return ERR_OK;
}

/* In the child. */
static void __attribute__((noreturn))
run_import(struct agentd *agentd, const struct ipc_image_ready *what, int report_fd)
{
    char tenant[ID_TEXT_MAX];
    struct error e = { 0 };
    fd_close(fd_take(&agentd->state_fd));   /* the lock on the state is not ours */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the store is never left half-way by that */
    struct image_import import = { .tenant = id_text(ID_TENANT, what->tenant, tenant) };
    enum err rc = what->kind == IPC_UPLOAD ? import_upload(agentd, what, import, &e)
                                           : import_image(agentd, what, import, &e);
    if (rc != ERR_OK)
        (void)!write(report_fd, e.text, strnlen(e.text, sizeof(e.text)));
    _exit(rc == ERR_OK ? 0 : 1);
}

/* The grants that wait for it never start: the controller hears why and decides what is next. */
static void give_up(struct agentd *agentd, const struct ipc_image_ready *what, const char *why)
{
    for (uint32_t i = 0; i < agentd->set.count; i++) {
        const struct grant *grant = &agentd->set.grants[i];
        struct wanted *wanted = &agentd->wanted[i];
        bool is_image = what->kind == IPC_IMAGE;
        if (!id_eq(grant->tenant, what->tenant) ||
            (is_image ? wanted->ready.has_image : wanted->ready.has_upload) ||
            !grant_digest_eq(is_image ? &grant->image : &grant->upload, &what->digest))
            continue;
        wanted->ready.is_hopeless = true;
        ipc_text_set(wanted->why, why);
    }
    agentd->is_dirty = true;
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
    bool is_good = info.si_code == CLD_EXITED && info.si_status == 0;
    if (!is_good && read(import->report_fd, text, sizeof(text) - 1) <= 0)
        (void)snprintf(text, sizeof(text), "the import was killed");
    if (!is_good) {
        log_warning("an image cannot be imported", LOG_STR("error", text));
        give_up(agentd, &import->what, text);
    }
    import_free(agentd, import);
    desired_refresh(agentd);
    agentd->is_dirty = true;
}

static enum err spawn_import(struct agentd *agentd, struct import *import, struct error *e)
{
    int ends[2];
    enum err rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int report_read = ends[0];
    AUTO(fd) int report_write = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_errno(e, "fork");
    if (pid == 0)
        run_import(agentd, &import->what, report_write);
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0)
        return err_errno(e, "hold the import");
    import->report_fd = fd_take(&report_read);
    import->child = (struct watch){ -1, import_ended, import };
    return agentd_watch(agentd, &import->child, pidfd, e);
}

static bool is_running(const struct agentd *agentd, const struct ipc_image_ready *ready)
{
    for (size_t i = 0; i < agentd->imports.count; i++) {
        const struct ipc_image_ready *other = &agentd->imports.items[i]->what;
        if (other->kind == ready->kind && id_eq(other->tenant, ready->tenant) &&
            grant_digest_eq(&other->digest, &ready->digest))
            return true;
    }
    return false;
}

void import_start(struct agentd *agentd, const struct ipc_image_ready *ready)
{
    if (ready->is_failed == 1) {
        give_up(agentd, ready, ready->text);
        return;
    }
    if (is_running(agentd, ready))
        return;
    struct error e = { 0 };
    struct import *import = mem_new(1, sizeof(*import));
    *import = (struct import){ .child = { .fd = -1 }, .report_fd = -1, .what = *ready };
    vec_push(&agentd->imports, import);
    enum err rc = agentd->imports.count > IMPORTS_MAX
                      ? err_set(&e, ERR_LIMIT, "more than %d imports at once", IMPORTS_MAX)
                      : spawn_import(agentd, import, &e);
    if (rc != ERR_OK) {
        give_up(agentd, ready, e.text);
        import_free(agentd, import);
    }
}

void imports_done(struct agentd *agentd)
{
    while (agentd->imports.count > 0)
        import_free(agentd, agentd->imports.items[0]);
    vec_done(&agentd->imports);
}
