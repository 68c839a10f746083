#include "controller/set_aside.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"

static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };

/* A handler is given no argument of ours. */
static struct {
    int fd; /* opened before: a process that dies opens nothing */
    pid_t pid;
    struct id (*looked_at)(void *arg);
    void *arg;
    struct sigaction before[COUNT_OF(signals)];
} dying = { .fd = -1 };

/* A stack that was used up has no room for a handler. */
static char handler_stack[64 * 1024] __attribute__((aligned(16)));

static void on_fault(int number)
{
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        if (signals[i] == number)
            (void)sigaction(number, &dying.before[i], NULL); /* the fault comes again, to it */
    }
    struct id id = dying.looked_at(dying.arg);
    if (getpid() == dying.pid && !id_is_none(id))
        (void)!pwrite(dying.fd, &id, sizeof(id), 0);
}

enum err set_aside_watch(const char *path, struct id (*looked_at)(void *arg), void *arg,
                         struct error *e)
{
    const stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) };
    struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER };
    dying.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (dying.fd < 0)
        return err_errno(e, "open %s", path);
    dying.pid = getpid();
    dying.looked_at = looked_at;
    dying.arg = arg;
    if (sigaltstack(&stack, NULL) != 0)
        return err_errno(e, "sigaltstack");
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        if (sigaction(signals[i], &action, &dying.before[i]) != 0)
            return err_errno(e, "sigaction");
    }
    return ERR_OK;
}

struct id set_aside_noted(const char *path)
{
    AUTO(buf) struct buf noted = { 0 };
    struct id id = { 0 };
    if (file_read(path, sizeof(id), &noted, NULL) == ERR_OK && noted.size == sizeof(id))
        memcpy(&id, noted.data, sizeof(id));
    return id;
}

struct held {
    struct engine_waiter waiter;
    const char *path;
};

static void on_durable(struct engine_waiter *waiter, enum err rc, const struct error *why)
{
    struct held *held = (struct held *)(void *)waiter;
    (void)why;
    if (rc == ERR_OK && truncate(held->path, 0) != 0)
        log_warning("what was set aside is set aside again at the next start");
    mem_free(held);
}

void set_aside_apply(struct engine *engine, const char *path)
{
    char text[ID_TEXT_MAX];
    struct error e = { 0 };
    struct id id = set_aside_noted(path);
    if (id_is_none(id))
        return;
    struct command command = { .type = CMD_WORKLOAD_HOLD,
                               .actor = { .role = ROLE_SYSTEM, .name = STR("scheduler") } };
    command.target.id = id;
    command.target.reason =
        STR("the controller failed while it looked for a place for it, and goes "
            "on without it; `berth release` has it looked at again");
    enum err rc = engine_command(engine, &command, &e);
    if (rc == ERR_OK)
        log_error("a workload was set aside: the controller failed at it",
                  LOG_STR("workload", id_text(ID_WORKLOAD, id, text)));
    else
        log_warning("the workload that the controller failed at is not set aside",
                    LOG_STR("workload", id_text(ID_WORKLOAD, id, text)), LOG_ERR(&e));
    struct held *held = mem_new(1, sizeof(*held));
    *held = (struct held){ .waiter = { .settled = on_durable }, .path = path };
    engine_wait(engine, &held->waiter);
}
