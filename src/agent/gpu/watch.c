#include "agent/gpu/watch.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "os/clock.h"
#include "os/fd.h"

/* The thread shares no memory with its owner: a question is one byte, an answer one message. */
struct gpu_watch {
    int socket; /* owned */
    pthread_t thread;
    bool is_asked;
    struct mono asked_at;
};

/* What the thread owns. */
struct keeper {
    struct gpu *gpu;
    int socket;
};

static void keeper_free(struct keeper *keeper)
{
    gpu_free(keeper->gpu);
    fd_close(keeper->socket); /* last: its other end then knows that all is gone */
    mem_free(keeper);
}

static void *keeper_main(void *arg)
{
    struct keeper *keeper = arg;
    char question;
    bool is_heard = true;
    while (is_heard && recv(keeper->socket, &question, sizeof(question), 0) > 0) {
        struct gpu_answer answer = { 0 };
        answer.count = gpu_poll(keeper->gpu, answer.events, COUNT_OF(answer.events));
        is_heard = send(keeper->socket, &answer, sizeof(answer), MSG_NOSIGNAL) > 0;
    }
    keeper_free(keeper);
    return NULL;
}

/* Signals stay with the thread that waits for them by a descriptor. */
static int start_thread(pthread_t *thread, struct keeper *keeper)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, keeper_main, keeper);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

enum err gpu_watch_new(struct gpu_watch **out, struct gpu *gpu, struct error *e)
{
    int ends[2] = { -1, -1 };
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        gpu_free(gpu);
        return err_errno(e, "make a socket for the thread that asks the devices");
    }
    struct keeper *keeper = mem_new(1, sizeof(*keeper));
    *keeper = (struct keeper){ .gpu = gpu, .socket = ends[1] };
    struct gpu_watch *watch = mem_new(1, sizeof(*watch));
    watch->socket = ends[0];
    int rc = start_thread(&watch->thread, keeper);
    if (rc != 0) {
        keeper_free(keeper);
        fd_close(watch->socket);
        mem_free(watch);
        return err_set(e, ERR_UNAVAILABLE, "no thread can be started to ask the devices: error %d",
                       rc);
    }
    *out = watch;
    return ERR_OK;
}

/* Waits for the end of the thread, which closes its end of the socket; false: it does not come. */
static bool is_over(const struct gpu_watch *watch, int patience_ms)
{
    struct gpu_answer late;
    struct mono until = { clock_monotonic().ns + (int64_t)patience_ms * NS_PER_MS };
    struct pollfd socket = { .fd = watch->socket, .events = POLLIN };
    while (poll(&socket, 1, clock_poll_ms(clock_monotonic(), until)) > 0)
        if (recv(watch->socket, &late, sizeof(late), MSG_DONTWAIT) <= 0)
            return true;
    return false;
}

void gpu_watch_free(struct gpu_watch *watch, int patience_ms)
{
    if (watch == NULL)
        return;
    (void)shutdown(watch->socket, SHUT_WR); /* no more questions; it cannot fail */
    if (is_over(watch, patience_ms))
        (void)pthread_join(watch->thread, NULL);
    else
        (void)pthread_detach(watch->thread);
    fd_close(watch->socket);
    mem_free(watch);
}

void gpu_watch_ask(struct gpu_watch *watch, struct mono now)
{
    if (watch->is_asked)
        return;
    watch->is_asked = send(watch->socket, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    watch->asked_at = now;
}

bool gpu_watch_take(struct gpu_watch *watch, struct gpu_answer *out)
{
    if (!watch->is_asked ||
        recv(watch->socket, out, sizeof(*out), MSG_DONTWAIT) != (ssize_t)sizeof(*out))
        return false;
    watch->is_asked = false;
    return true;
}

int64_t gpu_watch_due_ms(const struct gpu_watch *watch, struct mono now)
{
    return watch->is_asked ? (now.ns - watch->asked_at.ns) / NS_PER_MS : 0;
}
