#include "controller/delivery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/egress.h"
#include "os/fd.h"
#include "os/process.h"

enum { TIME_S = 40, ENVIRONMENT_MAX = 8 };

struct delivery {
    struct delivery_order order; /* task and host are of the past */
    struct process process;
    struct loop_watch watch; /* of the end that its answer comes from */
    struct loop_timer overdue;
    char answer[DELIVERY_FAULT_MAX + 8]; /* "fault WHY\n" */
    size_t size;
};

static void delivery_free(struct delivery *delivery)
{
    loop_timer_stop(delivery->order.loop, &delivery->overdue);
    loop_watch_remove(delivery->order.loop, &delivery->watch);
    fd_close(delivery->watch.fd);
    process_done(&delivery->process); /* it has said its last word, or its time is over */
    mem_free(delivery);
}

void delivery_abort(struct delivery *delivery)
{
    if (delivery != NULL)
        delivery_free(delivery);
}

static void finish(struct delivery *delivery, const char *fault)
{
    void (*done)(void *arg, const char *fault) = delivery->order.done;
    void *arg = delivery->order.arg;
    char text[DELIVERY_FAULT_MAX];
    size_t size = MIN_OF(strlen(fault), sizeof(text) - 1);
    memcpy(text, fault, size);
    text[size] = '\0';
    delivery_free(delivery);
    done(arg, text);
}

static void on_overdue(void *arg)
{
    finish(arg, "it does not answer in time");
}

/* Its words are about a stranger's answer: only what can be printed of them. */
static void settle(struct delivery *delivery)
{
    static const struct str fault = { "fault ", 6 };
    struct str rest = { delivery->answer, delivery->size };
    struct str line = str_cut(&rest, '\n');
    char why[DELIVERY_FAULT_MAX] = "the program that delivers has failed";
    if (str_is(line, "ok"))
        why[0] = '\0';
    if (str_starts(line, fault)) {
        size_t size = MIN_OF(line.size - fault.size, sizeof(why) - 1);
        for (size_t i = 0; i < size; i++) {
            char c = line.data[fault.size + i];
            why[i] = '?';
            if (c >= ' ' && c < 0x7f)
                why[i] = c;
        }
        why[size] = '\0';
    }
    finish(delivery, why);
}

static void on_answer(struct loop_watch *watch, uint32_t events)
{
    struct delivery *delivery = watch->arg;
    char bytes[256];
    (void)events;
    ssize_t got = read(watch->fd, bytes, sizeof(bytes));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        settle(delivery);
        return;
    }
    size_t part = MIN_OF((size_t)got, sizeof(delivery->answer) - delivery->size);
    memcpy(delivery->answer + delivery->size, bytes, part);
    delivery->size += part;
}

/* In memory, not in a pipe, which could be full. */
static enum err make_input(struct str task, int *out, struct error *e)
{
    AUTO(fd) int fd = memfd_create("notice", MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "make room for a notice");
    enum err rc = fd_write_full(fd, task.data, task.size, e);
    if (rc == ERR_OK && lseek(fd, 0, SEEK_SET) != 0)
        rc = err_errno(e, "rewind a notice");
    if (rc == ERR_OK)
        *out = fd_take(&fd);
    return rc;
}

static void fill_environment(struct arena *arena, const char *out[ENVIRONMENT_MAX])
{
    static const char *const passed_on[] = { "HTTPS_PROXY", "NO_PROXY", "https_proxy", "no_proxy" };
    size_t count = 0;
    out[count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    for (size_t i = 0; i < COUNT_OF(passed_on); i++) {
        const char *value =
            getenv(passed_on[i]); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
        if (value != NULL)
            out[count++] = arena_format(arena, "%s=%s", passed_on[i], value);
    }
    out[count] = NULL;
}

static enum err spawn(const struct delivery_order *order, int input, int output,
                      struct process *out, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    const char *environment[ENVIRONMENT_MAX];
    const char *egress = NULL;
    enum err rc = egress_find(&arena, &egress, e);
    if (rc != ERR_OK)
        return rc;
    const char *slash = strrchr(egress, '/');
    const char *const argv[] = {
        arena_format(&arena, "%.*s/berth-courier", (int)(slash - egress), egress), NULL
    };
    const int fds[] = { input, output, -1 };
    fill_environment(&arena, environment);
    const struct process_spec spec = {
        .argv = egress_argv(egress, order->reach, order->host, argv, &arena),
        .env = environment,
        .dir = "/",
        .fds = fds,
        .fd_count = COUNT_OF(fds),
        .is_group_leader = true,
        .is_expendable = true,
    };
    return process_spawn(&spec, out, e);
}

enum err delivery_start(const struct delivery_order *order, struct delivery **out, struct error *e)
{
    AUTO(fd) int input = -1;
    int ends[2];
    enum err rc = make_input(order->task, &input, e);
    if (rc == ERR_OK)
        rc = fd_pipe(ends, e);
    if (rc != ERR_OK)
        return rc;
    AUTO(fd) int ours = ends[0];
    AUTO(fd) int theirs = ends[1];
    AUTO(process) struct process process = PROCESS_NONE;
    rc = fd_set_nonblock(ours, true, e);
    if (rc == ERR_OK)
        rc = spawn(order, input, theirs, &process, e);
    if (rc != ERR_OK)
        return rc;

    struct delivery *delivery = mem_new(1, sizeof(*delivery));
    delivery->order = *order;
    delivery->watch = (struct loop_watch){
        .fd = ours, .events = EPOLLIN, .on_ready = on_answer, .arg = delivery
    };
    delivery->overdue = (struct loop_timer){ .fn = on_overdue, .arg = delivery };
    rc = loop_watch_add(order->loop, &delivery->watch, e);
    if (rc != ERR_OK) {
        mem_free(delivery);
        return rc;
    }
    (void)fd_take(&ours);
    delivery->process = process;
    process = PROCESS_NONE;
    loop_timer_set(order->loop, &delivery->overdue, mono_add_s(loop_now(order->loop), TIME_S));
    *out = delivery;
    return ERR_OK;
}
