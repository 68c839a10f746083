#include "controller/judge.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/log.h"

enum { ASK_MS = 200, ASK_BYTES_MAX = 65536 };

struct judge {
    struct judge_options options;
    pthread_t thread;
    int stop; /* an eventfd */
    atomic_uint signs;
    unsigned seen;  /* of them, at the last tick */
    unsigned quiet; /* ticks since it changed */
    bool has_ended;
};

#define STUCK "the loop of the controller has stopped: it answers nobody and decides nothing\n"
static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
                             "content-type: text/plain; charset=utf-8\r\n"
                             "cache-control: no-store\r\n"
                             "connection: close\r\n\r\n" STUCK;

/* A record of TLS that needs no keys: a fatal alert, internal_error. In answer to a ClientHello it
 * ends the handshake at once. */
static const char alert[] = { 21, 3, 3, 0, 2, 2, 80 };

/* What was asked is taken first: closing over unread bytes would take the answer back. */
static void answer_one(int fd, struct str words)
{
    struct pollfd watch = { .fd = fd, .events = POLLIN };
    char asked[4096];
    size_t got = 0;
    while (got < ASK_BYTES_MAX && poll(&watch, 1, ASK_MS) > 0) {
        ssize_t n = recv(fd, asked, sizeof(asked), MSG_DONTWAIT);
        if (n <= 0)
            break;
        got += (size_t)n;
        if ((size_t)n < sizeof(asked))
            break;
    }
    (void)!send(fd, words.data, words.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fd, SHUT_WR);
}

/* In the loop's place. It may be back by now and have taken the connection: then there is none. */
static void answer_waiting(int listener, struct str words)
{
    AUTO(fd) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        answer_one(fd, words);
}

static bool is_late(const struct judge *judge)
{
    return judge->quiet >= judge->options.late_ticks;
}

static void tick(struct judge *judge)
{
    unsigned signs = atomic_load_explicit(&judge->signs, memory_order_relaxed);
    bool was_late = is_late(judge);
    judge->quiet = signs == judge->seen ? judge->quiet + 1 : 0;
    judge->seen = signs;
    int64_t quiet_ms = (int64_t)judge->quiet * judge->options.tick_ms;
    if (was_late && !is_late(judge))
        log_warning("the loop turns again");
    if (!was_late && is_late(judge))
        log_error("the loop has stopped turning", LOG_INT("quiet_ms", quiet_ms));
    if (judge->quiet >= judge->options.end_ticks && !judge->has_ended) {
        judge->has_ended = true;
        log_error("the loop does not come back: ending", LOG_INT("quiet_ms", quiet_ms));
        judge->options.end(judge->options.arg);
    }
}

static struct mono tick_after(const struct judge *judge, struct mono at)
{
    return (struct mono){ at.ns + (int64_t)judge->options.tick_ms * (NS_PER_S / 1000) };
}

static void *judge_run(void *arg)
{
    struct judge *judge = arg;
    struct mono due = tick_after(judge, clock_monotonic());
    for (;;) {
        struct pollfd watches[] = {
            { .fd = judge->stop, .events = POLLIN },
            { .fd = is_late(judge) ? judge->options.listener : -1, .events = POLLIN },
            { .fd = is_late(judge) ? judge->options.secure : -1, .events = POLLIN },
        };
        int ready = poll(watches, COUNT_OF(watches), clock_poll_ms(clock_monotonic(), due));
        if (ready < 0 && errno != EINTR)
            return NULL;
        if (watches[0].revents != 0)
            return NULL;
        if (ready > 0 && watches[1].revents != 0)
            answer_waiting(watches[1].fd, (struct str){ answer, sizeof(answer) - 1 });
        if (ready > 0 && watches[2].revents != 0)
            answer_waiting(watches[2].fd, (struct str){ alert, sizeof(alert) });
        struct mono now = clock_monotonic();
        if (mono_before(now, due))
            continue;
        due = tick_after(judge, now);
        tick(judge);
    }
}

enum err judge_start(const struct judge_options *options, struct judge **out, struct error *e)
{
    AUTO(fd) int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop < 0)
        return err_errno(e, "eventfd");
    struct judge *judge = mem_new(1, sizeof(*judge));
    judge->options = *options;
    judge->stop = fd_take(&stop);
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&judge->thread, NULL, judge_run, judge);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        fd_close(judge->stop);
        mem_free(judge);
        errno = failed;
        return err_errno(e, "pthread_create");
    }
    *out = judge;
    return ERR_OK;
}

void judge_sign(struct judge *judge)
{
    if (judge != NULL)
        atomic_fetch_add_explicit(&judge->signs, 1, memory_order_relaxed);
}

void judge_stop(struct judge *judge)
{
    const uint64_t one = 1;
    if (judge == NULL)
        return;
    (void)!write(judge->stop, &one, sizeof(one));
    (void)pthread_join(judge->thread, NULL);
    fd_close(judge->stop);
    mem_free(judge);
}
