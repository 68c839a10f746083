/* A further command in a running container, and the terminal that crun makes for it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim.h"
#include "os/fd.h"

enum { NAME_MAX_LENGTH = 64 };

static void report(int control_fd, const struct shim_exec_report *what, int fd)
{
    const struct str bytes = { (const char *)what, sizeof(*what) };
    (void)fd_send(control_fd, bytes, &fd, fd >= 0 ? 1 : 0,
                  0); /* agentd gone: the poll sees it too */
}

/* A socket in the attempt's directory (ours, mode 0700) that crun sends the terminal's
 * master to. */
static enum err listen_console(const char *path, int *out, struct error *e)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, 1) != 0)
        return err_errno(e, "listen for the terminal");
    *out = fd_take(&fd);
    return ERR_OK;
}

static enum err receive_console(int listener, int *out, struct error *e)
{
    AUTO(fd) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "accept the terminal");
    char name[256];
    AUTO(fd_pass) struct fd_pass passed = { 0 };
    if (fd_receive(fd, name, sizeof(name), &passed, 0) < 0)
        return err_errno(e, "receive the terminal");
    if (passed.count != 1)
        return err_set(e, ERR_IO, "the runtime sent no terminal");
    *out = fd_take(&passed.fds[0]);
    return ERR_OK;
}

/* Until the command ends; agentd's closing of the socket, or a byte from it, kills the command. */
static void wait_for_end(int pidfd, int control_fd, struct shim_exec_report *out)
{
    bool is_told = false;
    for (;;) {
        struct pollfd polls[] = { { pidfd, POLLIN, 0 }, { is_told ? -1 : control_fd, POLLIN, 0 } };
        if (poll(polls, COUNT_OF(polls), -1) < 0)
            continue;
        if (polls[1].revents != 0) {
            is_told = true;
            (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0); /* it may have ended */
        }
        siginfo_t info = { 0 };
        if (polls[0].revents == 0 || waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) != 0 ||
            info.si_pid == 0)
            continue;
        bool is_exit = info.si_code == CLD_EXITED;
        out->exit_code = is_exit ? info.si_status : -1;
        out->signal = is_exit ? 0 : info.si_status;
        return;
    }
}

static enum err run_command(struct shim_context *context, const char *name, bool is_tty, pid_t *pid,
                            int *master, struct error *e)
{
    char process_file[NAME_MAX_LENGTH + 8];
    char pid_file[NAME_MAX_LENGTH + 8];
    char socket_path[NAME_MAX_LENGTH + 8];
    (void)snprintf(process_file, sizeof(process_file), "%s.json", name);
    (void)snprintf(pid_file, sizeof(pid_file), "%s.pid", name);
    (void)snprintf(socket_path, sizeof(socket_path), "%s.sock", name);
    AUTO(fd) int listener = -1;
    enum err rc = is_tty ? listen_console(socket_path, &listener, e) : ERR_OK;
    if (rc == ERR_OK) {
        struct runtime_exec exec = { process_file,
                                     pid_file,
                                     is_tty ? socket_path : NULL,
                                     { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO } };
        rc = context->runtime->exec(&context->work, &exec, pid, e);
    }
    if (rc == ERR_OK && is_tty)
        rc = receive_console(listener, master, e);
    (void)unlink(process_file);
    (void)unlink(pid_file);
    (void)unlink(socket_path);
    return rc;
}

int shim_exec(struct shim_context *context, const char *name, int control_fd)
{
    struct error e = { 0 };
    struct shim_exec_report what = { .kind = SHIM_EXEC_OPENED, .exit_code = -1 };
    if (strlen(name) > NAME_MAX_LENGTH || strchr(name, '/') != NULL)
        return 1;
    bool is_tty = strncmp(name, "tty", 3) == 0;
    pid_t pid = -1;
    AUTO(fd) int master = -1;
    enum err rc = run_command(context, name, is_tty, &pid, &master, &e);
    AUTO(fd) int pidfd = rc == ERR_OK ? pidfd_open(pid, 0) : -1;
    if (rc == ERR_OK && pidfd < 0)
        rc = err_errno(&e, "hold the command");
    what.code = (uint32_t)rc;
    ipc_text_set(what.text, rc != ERR_OK ? e.text : "");
    report(control_fd, &what, master);
    /* Only the command holds its ends from now on: their closing must be seen by the reader. */
    fd_close(fd_take(&master));
    for (int i = 0; i < 3; i++)
        (void)close(i);
    if (rc != ERR_OK)
        return 1;
    what = (struct shim_exec_report){ .kind = SHIM_EXEC_EXITED };
    wait_for_end(pidfd, control_fd, &what);
    report(control_fd, &what, -1);
    return 0;
}
