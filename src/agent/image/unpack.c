#include "agent/image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/process.h"

enum {
    CHUNK = 256 * 1024,
    STALL_S = 300,   /* the unpacker takes nothing for so long: killed */
    FINISH_S = 3600, /* from the last byte to the answer */
    HELLO_S = 60,
    EXIT_S = 10,
};

struct unpacker {
    struct process process;
    int data_fd;    /* owned */
    int control_fd; /* owned */
};

static void unpacker_done(struct unpacker *unpacker)
{
    fd_close(fd_take(&unpacker->data_fd));
    fd_close(fd_take(&unpacker->control_fd));
    process_done(&unpacker->process);
}
DEFINE_CLEANUP_AT(unpacker, struct unpacker, unpacker_done)

enum err unpack_make_dir(const struct unpack_env *env, const char *path, int *fd, struct error *e)
{
    if (mkdir(path, 0755) != 0)
        return err_errno(e, "make %s", path);
    AUTO(fd) int made = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0)
        return err_errno(e, "open %s", path);
    if (fchown(made, env->uid_base, env->uid_base) != 0 || fchmod(made, 0755) != 0)
        return err_errno(e, "give %s to the unpacker", path);
    *fd = fd_take(&made);
    return ERR_OK;
}

static enum err start(const struct unpack_env *env, int dir_fd, struct unpacker *out,
                      struct error *e)
{
    int data[2];
    int control[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, data) != 0)
        return err_errno(e, "make a socket pair");
    out->data_fd = data[0];
    AUTO(fd) int data_end = data[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0)
        return err_errno(e, "make a socket pair");
    out->control_fd = control[0];
    AUTO(fd) int control_end = control[1];

    const char *const argv[] = { env->program, NULL };
    const char *const environment[] = { "PATH=/usr/bin:/bin", NULL };
    const int fds[UNPACK_FD_COUNT] = { data_end, -1, -1, control_end, dir_fd };
    const struct process_spec spec = {
        .argv = argv,
        .env = environment,
        .dir = "/",
        .fds = fds,
        .fd_count = COUNT_OF(fds),
        .dies_with_us = true,
        .is_expendable = true,
    };
    enum err rc = process_spawn(&spec, &out->process, e);
    return rc == ERR_OK ? ERR_OK : err_wrap(e, rc, "start the unpacker");
}

/* Waits for a message of exactly this size. ERR_UNAVAILABLE: none came before the deadline. */
static enum err receive(int fd, void *out, size_t size, struct mono deadline, struct error *e)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    int ready;
    do {
        ready = poll(&poll_fd, 1, clock_poll_ms(clock_monotonic(), deadline));
    } while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return err_set(e, ERR_UNAVAILABLE, "the unpacker does not answer");
    ssize_t got = recv(fd, out, size, MSG_TRUNC);
    if (got < 0)
        return err_errno(e, "hear the unpacker");
    if ((size_t)got != size)
        return err_set(e, ERR_INVALID, "the unpacker ended without an answer");
    return ERR_OK;
}

static enum err write_map(pid_t pid, const char *file, uint32_t base, struct error *e)
{
    char path[64];
    char line[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    int size = snprintf(line, sizeof(line), "0 %u %u\n", base, IMAGE_UID_COUNT);
    AUTO(fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, line, (size_t)size) != size)
        return err_errno(e, "map the unpacker's ids in %s", path);
    return ERR_OK;
}

static enum err greet(const struct unpack_env *env, const struct unpack_job *job,
                      struct unpacker *unpacker, struct error *e)
{
    struct mono deadline = mono_add_s(clock_monotonic(), HELLO_S);
    struct unpack_hello hello = { 0 };
    enum err rc = receive(unpacker->control_fd, &hello, sizeof(hello), deadline, e);
    if (rc == ERR_OK && hello.magic != UNPACK_MAGIC)
        rc = err_set(e, ERR_INVALID, "%s is not berth-unpack", env->program);
    hello.text[sizeof(hello.text) - 1] = '\0';
    if (rc == ERR_OK && hello.code != ERR_OK)
        rc = err_set(e, ERR_UNAVAILABLE, "%s", hello.text);
    if (rc == ERR_OK)
        rc = write_map(unpacker->process.pid, "gid_map", env->uid_base, e);
    if (rc == ERR_OK)
        rc = write_map(unpacker->process.pid, "uid_map", env->uid_base, e);
    if (rc != ERR_OK)
        return rc;

    struct unpack_go go = { .task = job->task, .limits = env->limits };
    if (job->name != NULL)
        (void)snprintf(go.name, sizeof(go.name), "%s", job->name);
    if (send(unpacker->control_fd, &go, sizeof(go), MSG_NOSIGNAL) < 0)
        return err_errno(e, "speak to the unpacker");
    return ERR_OK;
}

/* Sends all of it, or stops early when the unpacker has something to say. */
static enum err pass_on(const struct unpacker *unpacker, const char *bytes, size_t size,
                        bool *has_answer, struct error *e)
{
    struct pollfd fds[2] = { { .fd = unpacker->control_fd, .events = POLLIN },
                             { .fd = unpacker->data_fd, .events = POLLOUT } };
    while (size > 0) {
        int ready = poll(fds, 2, STALL_S * 1000);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return err_set(e, ERR_UNAVAILABLE, "the unpacker takes no more bytes");
        if (fds[0].revents != 0) {
            *has_answer = true;
            return ERR_OK;
        }
        ssize_t put = send(unpacker->data_fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (put < 0 && errno == EPIPE)
            put = 0; /* it ended: its answer, or the lack of one, is on its way */
        if (put < 0)
            return err_errno(e, "feed the unpacker");
        if (put == 0) {
            *has_answer = true;
            return ERR_OK;
        }
        bytes += put;
        size -= (size_t)put;
    }
    return ERR_OK;
}

static enum err next_chunk(const struct unpack_job *job, int64_t done, char *chunk, size_t *got,
                           struct error *e)
{
    if (job->source_fd >= 0)
        return fd_read_full(job->source_fd, chunk, CHUNK, got, e);
    size_t left = job->text.size - (size_t)done;
    *got = MIN_OF(left, (size_t)CHUNK);
    if (*got > 0)
        memcpy(chunk, job->text.data + done, *got);
    return ERR_OK;
}

/* From the source through the hash to the unpacker. */
static enum err pump(const struct unpack_env *env, const struct unpack_job *job,
                     const struct unpacker *unpacker, struct unpack_blob *blob, struct error *e)
{
    AUTO(image_hash) struct image_hash *hash = image_hash_new();
    AUTO(mem) char *chunk = mem_new(CHUNK, 1);
    int64_t done = 0;
    bool has_answer = false;
    while (!has_answer) {
        size_t got = 0;
        enum err rc = next_chunk(job, done, chunk, &got, e);
        if (rc != ERR_OK)
            return rc;
        if (got == 0)
            break;
        done += (int64_t)got;
        if (done > env->limits.blob_bytes)
            return err_set(e, ERR_LIMIT, "the layer has more than %lld bytes",
                           (long long)env->limits.blob_bytes);
        image_hash_add(hash, chunk, got);
        rc = pass_on(unpacker, chunk, got, &has_answer, e);
        if (rc != ERR_OK)
            return rc;
        if (job->progress != NULL)
            job->progress(job->context, done, job->total);
    }
    if (shutdown(unpacker->data_fd, SHUT_WR) != 0)
        return err_errno(e, "end the unpacker's input");
    *blob = (struct unpack_blob){ image_hash_end(hash), done };
    return ERR_OK;
}

/* Nothing in the answer may lead us out of our own arrays. */
static enum err take_answer(struct unpacker *unpacker, struct unpack_result *result,
                            struct error *e)
{
    struct mono deadline = mono_add_s(clock_monotonic(), FINISH_S);
    enum err rc = receive(unpacker->control_fd, result, sizeof(*result), deadline, e);
    struct process_exit end = { 0 };
    if (rc == ERR_INVALID) {
        deadline = mono_add_s(clock_monotonic(), EXIT_S);
        if (process_wait(&unpacker->process, deadline, &end, NULL) == ERR_OK && end.signal != 0)
            return err_set(e, ERR_INVALID, "the unpacker was ended by signal %d", end.signal);
    }
    if (rc != ERR_OK)
        return rc;
    result->text[sizeof(result->text) - 1] = '\0';
    if (result->code >= ERR_COUNT || result->image.layer_count > IMAGE_LAYERS_MAX)
        return err_set(e, ERR_INVALID, "the unpacker's answer makes no sense");
    if (result->code != ERR_OK) {
        rc = err_set(e, (enum err)result->code, "%s", result->text);
        if (e != NULL)
            e->number = result->number; /* what is short may be there again later */
        return rc;
    }
    deadline = mono_add_s(clock_monotonic(), EXIT_S);
    rc = process_wait(&unpacker->process, deadline, &end, e);
    if (rc == ERR_OK && end.code != 0)
        rc = err_set(e, ERR_INVALID, "the unpacker ended with status %d", end.code);
    return rc;
}

enum err unpack_run(const struct unpack_env *env, const struct unpack_job *job,
                    struct unpack_result *result, struct unpack_blob *blob, struct error *e)
{
    AUTO(unpacker) struct unpacker unpacker = { PROCESS_NONE, -1, -1 };
    struct unpack_blob passed = { 0 };
    enum err rc = start(env, job->dir_fd, &unpacker, e);
    if (rc == ERR_OK)
        rc = greet(env, job, &unpacker, e);
    if (rc == ERR_OK)
        rc = pump(env, job, &unpacker, &passed, e);
    if (rc == ERR_OK)
        rc = take_answer(&unpacker, result, e);
    if (rc == ERR_OK)
        *blob = passed;
    return rc;
}
