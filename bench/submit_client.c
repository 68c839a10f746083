/*
 * submit_client.c - many clients that submit over the local socket, each its next request
 * when the last one is answered. Prints one JSON line: requests, seconds, latencies, the
 * clients' own CPU time.
 *
 *     submit_client SOCKET BODY-FILE CLIENTS SECONDS [STATUS]
 *
 * STATUS is the answer that counts as success (201). Written on bare sockets, so that the clients
 * take as little as possible of the processors that they share with the controller.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/random.h"

enum {
    CLIENTS_MAX = 1024,
    ANSWER_MAX = 64 * 1024,
    SAMPLES_MAX = 4 * 1024 * 1024,
    BODY_MAX = 65536
};

struct client {
    int fd;
    struct mono sent;
    size_t size; /* bytes of the answer so far */
    char answer[ANSWER_MAX];
};

struct run {
    const char *socket;
    struct buf body;
    const char *status; /* " 201 " */
    uint64_t key;       /* of the next request: each has an Idempotency-Key of its own */
    int epoll;
    size_t count, failed;
    int64_t *latencies_ns;
    char first_failure[512];
};

static _Noreturn void fail(const char *what)
{
    perror(what);
    _exit(EXIT_FAILURE);
}

static void client_send(struct run *run, struct client *client)
{
    AUTO(buf) struct buf request = { 0 };
    buf_format(
        &request,
        "POST /v1/workloads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Idempotency-Key: %016llx\r\nContent-Length: %zu\r\n\r\n",
        (unsigned long long)run->key++, run->body.size);
    buf_add_str(&request, buf_str(&run->body));
    client->size = 0;
    client->sent = clock_monotonic();
    if (send(client->fd, request.data, request.size, MSG_NOSIGNAL) != (ssize_t)request.size)
        fail("send");
}

static void client_open(struct run *run, struct client *client)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", run->socket);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 ||
        connect(client->fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        fail(run->socket);
    struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = client } };
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, client->fd, &event) != 0)
        fail("epoll_ctl");
}

/* Whether the answer is complete: its head says how long the rest is. */
static bool answer_is_complete(const struct client *client)
{
    static const char field[] = "content-length: ";
    const char *end = memmem(client->answer, client->size, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    const char *length =
        memmem(client->answer, (size_t)(end - client->answer), field, sizeof(field) - 1);
    size_t body = length != NULL ? (size_t)strtoul(length + sizeof(field) - 1, NULL, 10) : 0;
    return client->size >= (size_t)(end + 4 - client->answer) + body;
}

/* True when it may send its next request. */
static bool client_read(struct run *run, struct client *client)
{
    ssize_t got = recv(client->fd, client->answer + client->size, ANSWER_MAX - client->size - 1, 0);
    if (got <= 0)
        fail("recv");
    client->size += (size_t)got;
    if (!answer_is_complete(client))
        return false;
    client->answer[client->size] = '\0';
    if (strncmp(client->answer + 8, run->status, 5) != 0 && run->failed++ == 0)
        (void)snprintf(run->first_failure, sizeof(run->first_failure), "%.500s", client->answer);
    if (run->count < SAMPLES_MAX)
        run->latencies_ns[run->count++] = clock_monotonic().ns - client->sent.ns;
    return true;
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static double percentile_ms(const struct run *run, double part)
{
    if (run->count == 0)
        return 0;
    size_t at = (size_t)(part * (double)(run->count - 1));
    return (double)run->latencies_ns[at] / (double)NS_PER_MS;
}

/* All clients to the deadline; answers under way are waited for. Returns how long it took. */
static int64_t run_clients(struct run *run, struct client *clients, size_t count, int64_t seconds)
{
    struct epoll_event events[64];
    struct mono begin = clock_monotonic();
    struct mono deadline = mono_add_s(begin, seconds);
    size_t busy = count;
    for (size_t i = 0; i < count; i++)
        client_send(run, &clients[i]);
    while (busy > 0) {
        int ready = epoll_wait(run->epoll, events, (int)COUNT_OF(events), 60000);
        if (ready <= 0)
            fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            struct client *client = events[i].data.ptr;
            if (!client_read(run, client))
                continue;
            if (mono_before(clock_monotonic(), deadline))
                client_send(run, client);
            else
                busy--;
        }
    }
    return clock_monotonic().ns - begin.ns;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        (void)fputs("usage: submit_client SOCKET BODY-FILE CLIENTS SECONDS [STATUS]\n", stderr);
        return 2;
    }
    struct run run = { .socket = argv[1], .status = " 201 ", .key = random_u64() };
    char status[16];
    if (argc > 5) {
        (void)snprintf(status, sizeof(status), " %.3s ", argv[5]);
        run.status = status;
    }
    struct error e = { 0 };
    if (file_read(argv[2], BODY_MAX, &run.body, &e) != ERR_OK) {
        (void)fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    size_t count = (size_t)strtoul(argv[3], NULL, 10);
    if (count == 0 || count > CLIENTS_MAX)
        return 2;
    run.latencies_ns = mem_new(SAMPLES_MAX, sizeof(int64_t));
    run.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct client *clients = mem_new(count, sizeof(*clients));
    for (size_t i = 0; i < count; i++)
        client_open(&run, &clients[i]);
    int64_t ns = run_clients(&run, clients, count, strtol(argv[4], NULL, 10));
    qsort(run.latencies_ns, run.count, sizeof(int64_t), compare);
    (void)printf("{\"clients\":%zu,\"requests\":%zu,\"failed\":%zu,\"seconds\":%.3f,\"per_s\":%.1f,"
                 "\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"client_cpu_s\":%.3f}\n",
                 count, run.count, run.failed, (double)ns / 1e9,
                 (double)run.count * 1e9 / (double)ns, percentile_ms(&run, 0.5),
                 percentile_ms(&run, 0.99), percentile_ms(&run, 1), (double)clock_cpu_ns() / 1e9);
    if (run.failed > 0)
        (void)fprintf(stderr, "%zu answers were unexpected; the first: %s\n", run.failed,
                      run.first_failure);
    mem_free(clients);
    mem_free(run.latencies_ns);
    buf_done(&run.body);
    (void)close(run.epoll);
    return run.failed == 0 ? 0 : 1;
}
