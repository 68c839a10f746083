/* A loop that really stops turning, and the thread that says so in its place. */
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/judge.h"
#include "net/loop.h"
#include "os/clock.h"
#include "os/fd.h"
#include "unit/test.h"
#include "unit/test_dir.h"

enum { TICK_MS = 5, LATE_TICKS = 20, PATIENCE_S = 20 };

struct world {
    struct test_dir dir;
    struct sockaddr_un address, secure_address;
    struct loop *loop;
    struct judge *judge;
    struct loop_watch listener;
    int secure;                /* nobody takes a connection there while the loop turns */
    struct loop_watch stopper; /* a byte here stops the loop inside of a call */
    struct loop_timer pulse;
    int stop[2], go_on[2], ended[2];
};

static void on_connection(struct loop_watch *watch, uint32_t events)
{
    (void)events;
    AUTO(fd) int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "by itself", 9);
}

/* Here the loop hangs until it is told to go on. */
static void on_stop(struct loop_watch *watch, uint32_t events)
{
    struct world *world = watch->arg;
    char byte = 0;
    (void)events;
    CHECK("told to stop", read(world->stop[0], &byte, 1) == 1);
    CHECK("told to go on", read(world->go_on[0], &byte, 1) == 1);
    if (byte == 'q')
        loop_stop(world->loop);
}

static void on_pulse(void *arg)
{
    struct world *world = arg;
    judge_sign(world->judge);
    loop_timer_set(world->loop, &world->pulse,
                   (struct mono){ loop_now(world->loop).ns + NS_PER_S / 1000 });
}

static void on_end(void *arg)
{
    struct world *world = arg;
    ssize_t told = write(world->ended[1], "e", 1);
    assert(told == 1);
    (void)told;
}

static int listen_at(const struct test_dir *dir, const char *name, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    (void)snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", dir->path, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK("socket", fd >= 0 && bind(fd, (struct sockaddr *)address, sizeof(*address)) == 0 &&
                        listen(fd, 8) == 0);
    return fd;
}

static void world_start(struct world *world, unsigned end_ticks)
{
    struct error e = { 0 };
    *world = (struct world){ .dir = test_dir_new() };
    CHECK("pipes", pipe2(world->stop, O_CLOEXEC) == 0 && pipe2(world->go_on, O_CLOEXEC) == 0 &&
                       pipe2(world->ended, O_CLOEXEC) == 0);
    int fd = listen_at(&world->dir, "s", &world->address);
    world->secure = listen_at(&world->dir, "t", &world->secure_address);
    CHECK_OK("loop", loop_new(&world->loop, &e), &e);
    world->listener = (struct loop_watch){ .fd = fd, .events = EPOLLIN, .on_ready = on_connection };
    world->stopper = (struct loop_watch){
        .fd = world->stop[0], .events = EPOLLIN, .on_ready = on_stop, .arg = world
    };
    world->pulse = (struct loop_timer){ .fn = on_pulse, .arg = world };
    CHECK_OK("watch", loop_watch_add(world->loop, &world->listener, &e), &e);
    CHECK_OK("watch", loop_watch_add(world->loop, &world->stopper, &e), &e);
    const struct judge_options options = { .listener = fd,
                                           .secure = world->secure,
                                           .tick_ms = TICK_MS,
                                           .late_ticks = LATE_TICKS,
                                           .end_ticks = end_ticks,
                                           .end = on_end,
                                           .arg = world };
    CHECK_OK("judge", judge_start(&options, &world->judge, &e), &e);
    on_pulse(world);
}

static void world_end(struct world *world)
{
    judge_stop(world->judge);
    loop_free(world->loop);
    fd_close(world->listener.fd);
    fd_close(world->secure);
    for (size_t i = 0; i < 2; i++) {
        fd_close(world->stop[i]);
        fd_close(world->go_on[i]);
        fd_close(world->ended[i]);
    }
    test_dir_remove(&world->dir);
}
DEFINE_CLEANUP_AT(world, struct world, world_end)

/* What whoever asks for /healthz hears; "" when nobody answers. */
static void ask(const struct world *world, char *out, size_t size)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nhost: berth\r\n\r\n";
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t got = 0;
    out[0] = '\0';
    int rc = connect(fd, (const struct sockaddr *)&world->address, sizeof(world->address));
    assert(rc == 0); /* cmocka's checks are for its own thread */
    (void)rc;
    (void)!send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
    struct pollfd watch = { .fd = fd, .events = POLLIN };
    while (got < size - 1 && poll(&watch, 1, PATIENCE_S * 1000) > 0) {
        ssize_t n = read(fd, out + got, size - 1 - got);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    out[got] = '\0';
}

/* Why a handshake came to no end; 0: it did. */
static int begin_tls(const struct world *world)
{
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    int rc =
        connect(fd, (const struct sockaddr *)&world->secure_address, sizeof(world->secure_address));
    assert(rc == 0 && SSL_set_fd(ssl, fd) == 1);
    ERR_clear_error();
    rc = SSL_connect(ssl);
    int why = rc == 1 ? 0 : ERR_GET_REASON(ERR_peek_error());
    SSL_free(ssl);
    SSL_CTX_free(context);
    return why;
}

static void tell(const int pipe[2], char byte)
{
    ssize_t told = write(pipe[1], &byte, 1);
    assert(told == 1);
    (void)told;
}

struct client {
    pthread_t thread;
    struct world *world;
    char before[512], stuck[512], after[512];
    int alert;
};

/* Of several answers the first that comes from whom it is wanted, within patience. */
static void ask_until(const struct world *world, const char *wanted, char out[512])
{
    struct mono deadline = mono_add_s(clock_monotonic(), PATIENCE_S);
    do
        ask(world, out, 512);
    while (strstr(out, wanted) == NULL && mono_before(clock_monotonic(), deadline));
}

static void *client_run(void *arg)
{
    struct client *client = arg;
    struct world *world = client->world;
    ask(world, client->before, sizeof(client->before));
    tell(world->stop, 's');
    ask_until(world, "503", client->stuck);
    client->alert = begin_tls(world);
    tell(world->go_on, 'g');
    ask_until(world, "itself", client->after);
    tell(world->stop, 's');
    tell(world->go_on, 'q');
    return NULL;
}

static void test_answers_in_the_place_of_the_loop(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    struct error e = { 0 };
    world_start(&world, UINT_MAX);
    struct client client = { .world = &world };
    CHECK("thread", pthread_create(&client.thread, NULL, client_run, &client) == 0);
    CHECK_OK("loop", loop_run(world.loop, &e), &e);
    CHECK("joined", pthread_join(client.thread, NULL) == 0);
    CHECK("a loop that turns answers itself", strcmp(client.before, "by itself") == 0);
    CHECK("one that hangs is answered for", strncmp(client.stuck, "HTTP/1.1 503 ", 13) == 0);
    CHECK("with the reason",
          strstr(client.stuck, "the loop of the controller has stopped") != NULL);
    CHECK("a handshake ends with a reason", client.alert == SSL_R_TLSV1_ALERT_INTERNAL_ERROR);
    CHECK("until it is back", strcmp(client.after, "by itself") == 0);
}

static void *ender_run(void *arg)
{
    struct world *world = arg;
    char byte = 0;
    tell(world->stop, 's');
    bool is_told = read(world->ended[0], &byte, 1) == 1;
    tell(world->go_on, 'q');
    return is_told ? world : NULL;
}

static void test_ends_what_does_not_come_back(void **state)
{
    (void)state;
    AUTO(world) struct world world;
    struct error e = { 0 };
    pthread_t thread;
    void *is_told = NULL;
    world_start(&world, LATE_TICKS * 2);
    CHECK("thread", pthread_create(&thread, NULL, ender_run, &world) == 0);
    CHECK_OK("loop", loop_run(world.loop, &e), &e);
    CHECK("joined", pthread_join(thread, &is_told) == 0);
    CHECK("the end was asked for", is_told != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_in_the_place_of_the_loop),
        cmocka_unit_test(test_ends_what_does_not_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
