/*
 * berth-egress - runs a program that asks the network for what a stranger has named, and decides
 * about each of its connections by the address, after names were resolved: redirections, and names
 * that change their mind, lead nowhere else.
 *
 *   berth-egress REACH HOST[:PORT] PROGRAM [ARGUMENT...]
 *
 * Public addresses are open to the program, and those of HOST as near as REACH says (net/reach.h),
 * when an operator has named it; the name servers of this machine at port 53; and a proxy that the
 * operator's environment names. It works by a seccomp filter that asks us about every connect(),
 * which we then do ourselves, on the program's socket and with the address that was looked at: what
 * a name leads to later, or what another thread writes over it, changes nothing. Of datagrams that
 * carry an address of their own only that is looked at; they are sent by the program. What would
 * connect by sending is refused, as kernels do that cannot: the program connects instead.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/reach.h"
#include "os/fd.h"
#include "os/file.h"

enum {
    ARG_REACH = 1,
    ARG_HOST,
    ARG_PROGRAM,
    HOST_MAX = 256,
    ADDRESSES_MAX = 64,
    DNS_PORT = 53,
    RESOLV_BYTES_MAX = 64 * 1024,
    STATUS_BYTES_MAX = 16 * 1024,
    MESSAGES_MAX = 16,
    CANNOT_START = 127,
    SIGNALLED = 128,
};

struct egress {
    enum reach reach; /* of `named` */
    struct sockaddr_storage named[ADDRESSES_MAX];
    size_t named_count;
    struct sockaddr_storage proxies[ADDRESSES_MAX];
    size_t proxy_count;
    struct sockaddr_storage servers[ADDRESSES_MAX]; /* of names */
    size_t server_count;
    struct ifaddrs *own; /* owned */
};

static int fail(const char *what)
{
    (void)fprintf(stderr, "berth-egress: %s: %s\n", what, strerrordesc_np(errno));
    return CANNOT_START;
}

/* ---- who is who ----------------------------------------------------------------------------- */

/* "host", "host:port", "[v6]:port": the host. */
static void host_of(const char *text, char out[HOST_MAX])
{
    struct str host = str_of(text);
    const char *end = strchr(text, ']');
    const char *colon = strrchr(text, ':');
    if (text[0] == '[' && end != NULL)
        host = (struct str){ text + 1, (size_t)(end - text) - 1 };
    else if (colon != NULL && colon == strchr(text, ':'))
        host.size = (size_t)(colon - text);
    host.size = MIN_OF(host.size, (size_t)HOST_MAX - 1);
    memcpy(out, host.data, host.size);
    out[host.size] = '\0';
}

static void resolve(const char *host, struct sockaddr_storage *out, size_t *count)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return; /* the program will find out as well, and say so */
    for (const struct addrinfo *a = found; a != NULL && *count < ADDRESSES_MAX; a = a->ai_next)
        memcpy(&out[(*count)++], a->ai_addr, a->ai_addrlen);
    freeaddrinfo(found);
}

/* The usual variables: "http://host:port", or without the scheme. */
static void find_proxies(struct egress *egress)
{
    static const char *const variables[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
                                             "https_proxy" };
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        const char *value = getenv(variables[i]); /* NOLINT(concurrency-mt-unsafe): one thread */
        char host[HOST_MAX];
        char text[HOST_MAX];
        if (value == NULL || value[0] == '\0')
            continue;
        const char *slashes = strstr(value, "//");
        const char *begin = slashes != NULL ? slashes + 2 : value;
        const char *at = strchr(begin, '@');
        begin = at != NULL ? at + 1 : begin;
        size_t size = MIN_OF(strcspn(begin, "/"), sizeof(text) - 1);
        memcpy(text, begin, size);
        text[size] = '\0';
        host_of(text, host);
        resolve(host, egress->proxies, &egress->proxy_count);
    }
}

static void add_server(struct egress *egress, struct str text)
{
    char address[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    struct str host = str_cut(&text, '%');
    if (host.size >= sizeof(address) || egress->server_count == ADDRESSES_MAX)
        return;
    memcpy(address, host.data, host.size);
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        memcpy(&egress->servers[egress->server_count++], &v4, sizeof(v4));
    else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        memcpy(&egress->servers[egress->server_count++], &v6, sizeof(v6));
}

static void find_servers(struct egress *egress)
{
    AUTO(buf) struct buf text = { 0 };
    if (file_read("/etc/resolv.conf", RESOLV_BYTES_MAX, &text, NULL) != ERR_OK)
        buf_add_text(&text, "nameserver 127.0.0.1\nnameserver ::1\n"); /* as resolvers do */
    struct str rest = buf_str(&text);
    while (rest.size > 0) {
        struct str line = str_cut(&rest, '\n');
        static const struct str word = { "nameserver", 10 };
        if (!str_starts(line, word))
            continue;
        line = (struct str){ line.data + word.size, line.size - word.size };
        while (line.size > 0 && (line.data[0] == ' ' || line.data[0] == '\t'))
            line = (struct str){ line.data + 1, line.size - 1 };
        size_t size = 0;
        while (size < line.size && strchr(" \t\r#;", line.data[size]) == NULL)
            size++;
        add_server(egress, (struct str){ line.data, size });
    }
}

/* ---- what is allowed ------------------------------------------------------------------------ */

static bool is_among(const struct sockaddr *address, const struct sockaddr_storage *list,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (reach_same_address(address, (const struct sockaddr *)&list[i]))
            return true;
    }
    return false;
}

static unsigned port_of(const struct sockaddr *address)
{
    struct sockaddr_in v4; /* the port is at the same place in both */
    memcpy(&v4, address, sizeof(v4));
    return ntohs(v4.sin_port);
}

static bool is_allowed(const struct egress *egress, const struct sockaddr *address)
{
    if (address->sa_family == AF_NETLINK)
        return true; /* asking the kernel for routes */
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return false;
    if (port_of(address) == DNS_PORT && is_among(address, egress->servers, egress->server_count))
        return true;
    if (is_among(address, egress->proxies, egress->proxy_count))
        return true;
    enum reach reach = reach_of_with(address, egress->own);
    return reach == REACH_PUBLIC ||
           (reach <= egress->reach && is_among(address, egress->named, egress->named_count));
}

/* ---- what is asked -------------------------------------------------------------------------- */

/* Memory of the program, which waits for us. */
static bool read_memory(pid_t pid, uint64_t at, void *out, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    AUTO(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && pread(fd, out, size, (off_t)at) == (ssize_t)size;
}

static bool read_address(const struct seccomp_notif *asked, uint64_t at, uint64_t size,
                         struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    return size >= sizeof(sa_family_t) && size <= sizeof(*out) &&
           read_memory((pid_t)asked->pid, at, out, (size_t)size);
}

/* Its socket, as a descriptor of ours; -1: it cannot be had. A thread's number is not its
 * process's. */
static int borrow_socket(const struct seccomp_notif *asked)
{
    static const struct str word = { "Tgid:", 5 };
    char path[64];
    AUTO(buf) struct buf text = { 0 };
    (void)snprintf(path, sizeof(path), "/proc/%u/status", asked->pid);
    if (file_read(path, STATUS_BYTES_MAX, &text, NULL) != ERR_OK)
        return -1;
    struct str rest = buf_str(&text);
    int64_t pid = 0;
    while (rest.size > 0) {
        struct str line = str_cut(&rest, '\n');
        if (!str_starts(line, word))
            continue;
        line = (struct str){ line.data + word.size, line.size - word.size };
        while (line.size > 0 && line.data[0] == '\t')
            line = (struct str){ line.data + 1, line.size - 1 };
        if (!str_to_i64(line, 1, INT32_MAX, &pid))
            return -1;
    }
    AUTO(fd) int process = pid > 0 ? pidfd_open((pid_t)pid, 0) : -1;
    return process < 0 ? -1 : pidfd_getfd(process, (int)asked->data.args[0], 0);
}

static void reply(int listener, struct seccomp_notif_resp *out)
{
    if (seccomp_notify_id_valid(listener, out->id) == 0)
        (void)seccomp_notify_respond(listener, out); /* it may have been killed */
}

/* With the address that was looked at. One that blocks would keep all others waiting: a
 * child waits. */
static void do_connect(int listener, const struct seccomp_notif *asked,
                       const struct sockaddr_storage *address, struct seccomp_notif_resp *out)
{
    AUTO(fd) int fd = borrow_socket(asked);
    int flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;
    if (flags < 0 || seccomp_notify_id_valid(listener, asked->id) != 0) {
        out->error = -EACCES;
        reply(listener, out);
        return;
    }
    pid_t child = (flags & O_NONBLOCK) == 0 ? fork() : 0;
    bool is_child = (flags & O_NONBLOCK) == 0 && child == 0;
    if (child > 0)
        return;
    if (child < 0)
        out->error = -EAGAIN;
    else if (connect(fd, (const struct sockaddr *)address, (socklen_t)asked->data.args[2]) != 0)
        out->error = -errno;
    reply(listener, out);
    if (is_child)
        _exit(0);
}

/* Data along with a connection that is not there yet: it would be made by the program itself. */
static bool is_connecting(const struct seccomp_notif *asked)
{
    const __u64 *args = asked->data.args;
    return ((asked->data.nr == SCMP_SYS(sendmsg) ? args[2] : args[3]) & MSG_FASTOPEN) != 0;
}

/* True: none of the datagrams goes where it may not. One of no family does not count as one that
 * goes nowhere: IPv4 takes it for its own. */
static bool are_names_allowed(const struct egress *egress, const struct seccomp_notif *asked)
{
    const __u64 *args = asked->data.args;
    struct mmsghdr messages[MESSAGES_MAX] = { 0 };
    struct sockaddr_storage address;
    size_t count = 1;
    bool is_readable = true;
    if (asked->data.nr == SCMP_SYS(sendto)) {
        union {
            uint64_t number;
            void *pointer; /* of the program; never followed here */
        } name = { args[4] };
        messages[0].msg_hdr.msg_name = name.pointer;
        messages[0].msg_hdr.msg_namelen = (socklen_t)args[5];
    } else if (asked->data.nr == SCMP_SYS(sendmsg)) {
        is_readable = read_memory((pid_t)asked->pid, args[1], &messages[0].msg_hdr,
                                  sizeof(messages[0].msg_hdr));
    } else {
        count = (unsigned)args[2];
        is_readable = count <= MESSAGES_MAX && read_memory((pid_t)asked->pid, args[1], messages,
                                                           count * sizeof(messages[0]));
    }
    for (size_t i = 0; is_readable && i < count; i++) {
        const struct msghdr *head = &messages[i].msg_hdr;
        if (head->msg_name != NULL && head->msg_namelen > 0)
            is_readable = read_address(asked, (uint64_t)(uintptr_t)head->msg_name,
                                       head->msg_namelen, &address) &&
                          is_allowed(egress, (const struct sockaddr *)&address);
    }
    return is_readable;
}

static void answer(const struct egress *egress, int listener, struct seccomp_notif *asked,
                   struct seccomp_notif_resp *out)
{
    struct sockaddr_storage address;
    memset(asked, 0, sizeof(*asked));
    if (seccomp_notify_receive(listener, asked) != 0)
        return; /* it was interrupted, or it is gone */
    *out = (struct seccomp_notif_resp){ .id = asked->id };
    if (asked->data.nr != SCMP_SYS(connect)) {
        if (is_connecting(asked))
            out->error = -EOPNOTSUPP;
        else if (!are_names_allowed(egress, asked))
            out->error = -EACCES;
        else
            out->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        reply(listener, out);
        return;
    }
    if (read_address(asked, asked->data.args[1], asked->data.args[2], &address) &&
        (address.ss_family == AF_UNSPEC || /* undoes a connect */
         is_allowed(egress, (const struct sockaddr *)&address))) {
        do_connect(listener, asked, &address, out);
        return;
    }
    out->error = -EACCES;
    reply(listener, out);
}

/* ---- the program ---------------------------------------------------------------------------- */

static int load_filter(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int fd = -1;
    if (filter == NULL)
        return -1;
    if (seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(connect), 0) == 0 &&
        seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(sendto), 1,
                         SCMP_A4(SCMP_CMP_NE, 0, 0)) == 0 &&
        seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(sendmsg), 0) == 0 &&
        seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(sendmmsg), 0) == 0 &&
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup), 0) == 0 &&
        seccomp_load(filter) == 0)
        fd = seccomp_notify_fd(filter);
    seccomp_release(filter);
    return fd;
}

/* sendmsg is asked about from here on, so the listener is only named, and taken by
 * whoever is asked. */
static int run_program(int to_parent, char **argv)
{
    char word = 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        return fail("tie the program to us");
    int listener = load_filter();
    if (listener < 0)
        return fail("install the filter");
    if (write(to_parent, &listener, sizeof(listener)) != (ssize_t)sizeof(listener) ||
        read(to_parent, &word, 1) != 1)
        return fail("hand over the filter");
    fd_close(listener);
    fd_close(to_parent);
    (void)execvp(argv[0], argv);
    return fail(argv[0]);
}

static bool take_listener(int from_child, pid_t child, int *out)
{
    int number = -1;
    AUTO(fd) int process = pidfd_open(child, 0);
    if (process < 0 || read(from_child, &number, sizeof(number)) != (ssize_t)sizeof(number))
        return false;
    *out = pidfd_getfd(process, number, 0);
    return *out >= 0 && write(from_child, "!", 1) == 1;
}

/* Those that waited for a connect have ended, or the program has: true, and how. */
static bool reap(pid_t child, int options, int *status)
{
    int found = 0;
    for (;;) {
        pid_t pid = waitpid(-1, &found, options);
        if (pid == child) {
            *status = found;
            return true;
        }
        if (pid == 0 || (pid < 0 && errno != EINTR))
            return false;
    }
}

static int supervise(const struct egress *egress, int listener, pid_t child)
{
    struct seccomp_notif *asked = NULL;
    struct seccomp_notif_resp *answered = NULL;
    int status = 0;
    bool has_ended = false;
    AUTO(fd) int program = pidfd_open(child, 0);
    if (program < 0 || seccomp_notify_alloc(&asked, &answered) != 0)
        return fail("look after the program");
    for (;;) {
        struct pollfd ready[] = { { .fd = listener, .events = POLLIN },
                                  { .fd = program, .events = POLLIN } };
        if (poll(ready, COUNT_OF(ready), -1) < 0 && errno != EINTR)
            break;
        if ((ready[0].revents & POLLIN) != 0)
            answer(egress, listener, asked, answered);
        else if ((ready[0].revents & (POLLHUP | POLLERR)) != 0 || ready[1].revents != 0)
            break; /* older kernels hang up only once the program is reaped: its end is seen by itself */
        has_ended = has_ended || reap(child, WNOHANG, &status);
    }
    seccomp_notify_free(asked, answered);
    if (!has_ended && !reap(child, 0, &status))
        return CANNOT_START;
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct egress egress = { .reach = REACH_PUBLIC };
    char host[HOST_MAX];
    int ends[2];
    if (argc <= ARG_PROGRAM || !reach_parse(str_of(argv[ARG_REACH]), &egress.reach)) {
        (void)fputs("berth-egress is started by berthd and berth-agent\n", stderr);
        return 2;
    }
    host_of(argv[ARG_HOST], host);
    if (egress.reach > REACH_PUBLIC)
        resolve(host, egress.named, &egress.named_count);
    find_proxies(&egress);
    find_servers(&egress);
    if (getifaddrs(&egress.own) != 0)
        return fail("look at our own addresses");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fail("make a socket pair");
    pid_t child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0) {
        fd_close(ends[0]);
        _exit(run_program(ends[1], argv + ARG_PROGRAM));
    }
    fd_close(ends[1]);
    AUTO(fd) int listener = -1;
    int status = take_listener(ends[0], child, &listener) ? supervise(&egress, listener, child)
                                                          : CANNOT_START;
    freeifaddrs(egress.own);
    return status;
}
