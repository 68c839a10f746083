#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agentd.h"
#include "agent/runtime/cgroup.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"
#include "os/random.h"
#include "os/sd_notify.h"

enum {
    LOOK_EVERY_MS = 1000,
    EVENTS_AT_ONCE = 256,
};

static enum err watch_add(struct agentd *agentd, struct watch *watch, int fd, struct error *e)
{
    struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = watch } };
    if (epoll_ctl(agentd->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return err_errno(e, "watch a descriptor");
    watch->fd = fd;
    return ERR_OK;
}

enum err agentd_watch(struct agentd *agentd, struct watch *watch, int fd, struct error *e)
{
    enum err rc = watch_add(agentd, watch, fd, e);
    if (rc != ERR_OK)
        fd_close(fd);
    return rc;
}

enum err agentd_watch_child(struct agentd *agentd, struct watch *watch, int pidfd, struct error *e)
{
    enum err rc = watch_add(agentd, watch, pidfd, e);
    if (rc != ERR_OK) {
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0); /* it may have ended */
        (void)waitid(P_PIDFD, (id_t)pidfd, &(siginfo_t){ 0 }, WEXITED);
        fd_close(pidfd);
    }
    return rc;
}

void agentd_unwatch(struct agentd *agentd, struct watch *watch)
{
    if (watch->fd < 0)
        return;
    (void)epoll_ctl(agentd->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL); /* closing does it as well */
    fd_close(fd_take(&watch->fd));
}

static void hints_ready(struct agentd *agentd, void *self, uint32_t events)
{
    (void)self;
    (void)events;
    attempts_hint(agentd);
}

/* Where shims leave word that they have written something. Losing one only costs a second. */
static enum err open_hints(struct agentd *agentd, struct error *e)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(agentd->notify_path) >= sizeof(address.sun_path))
        return err_set(e, ERR_INVALID, "%s is too long for a socket; choose a shorter --run",
                       agentd->notify_path);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", agentd->notify_path);
    AUTO(fd) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, "make a socket");
    if (unlink(agentd->notify_path) != 0 && errno != ENOENT)
        return err_errno(e, "remove the old %s", agentd->notify_path);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        return err_errno(e, "bind %s", agentd->notify_path);
    agentd->hints = (struct watch){ -1, hints_ready, agentd };
    return agentd_watch(agentd, &agentd->hints, fd_take(&fd), e);
}

static void signals_ready(struct agentd *agentd, void *self, uint32_t events)
{
    (void)self;
    (void)events;
    struct signalfd_siginfo info;
    if (read(agentd->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        agentd->is_ending = true;
}

static enum err open_signals(struct agentd *agentd, struct error *e)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0)
        return err_errno(e, "block signals");
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_errno(e, "make a signalfd");
    agentd->signals = (struct watch){ -1, signals_ready, agentd };
    return agentd_watch(agentd, &agentd->signals, fd, e);
}

struct place {
    char *out; /* ATTEMPT_PATH_MAX */
    const char *name;
    bool is_in_memory;
    bool is_directory;
};

static enum err make_places(struct agentd *agentd, struct error *e)
{
    const struct place places[] = {
        { agentd->alloc_dir, "alloc", false, true },
        { agentd->upload_dir, "uploads", false, true },
        { agentd->volume_dir, "volumes", false, true },
        { agentd->store_path, "images", false, false },
        { agentd->stamp_path, "stamp", false, false },
        { agentd->bundle_dir, "alloc", true, true },
        { agentd->runtime_root, "runtime", true, true },
        { agentd->lease_path, "lease", true, false },
        { agentd->notify_path, "hints", true, false },
    };
    const char *roots[] = { agentd->options.state_dir, agentd->options.run_dir };
    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        if (roots[i][0] != '/' || strlen(roots[i]) > ATTEMPT_PATH_MAX / 4)
            return err_set(e, ERR_INVALID, "%s is not a short absolute path", roots[i]);
        enum err rc = file_make_dirs(roots[i], 0711, e);
        if (rc != ERR_OK)
            return rc;
    }
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        const struct place *place = &places[i];
        (void)snprintf(place->out, ATTEMPT_PATH_MAX, "%s/%s", roots[place->is_in_memory ? 1 : 0],
                       place->name);
        mode_t mode = place->out == agentd->bundle_dir ? 0711 : 0700;
        enum err rc = place->is_directory ? file_make_dirs(place->out, mode, e) : ERR_OK;
        if (rc != ERR_OK)
            return rc;
        if (place->is_directory && chmod(place->out, mode) != 0)
            return err_errno(e, "set the mode of %s", place->out);
    }
    return ERR_OK;
}

static enum err lock_state(struct agentd *agentd, struct error *e)
{
    agentd->state_fd = open(agentd->options.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (agentd->state_fd < 0)
        return err_errno(e, "open %s", agentd->options.state_dir);
    if (flock(agentd->state_fd, LOCK_EX | LOCK_NB) != 0)
        return err_set(e, ERR_CONFLICT, "another berth-agentd works on %s",
                       agentd->options.state_dir);
    return ERR_OK;
}

/* The other programs of ours are beside the shim. */
static enum err find_program(const struct agentd *agentd, const char *name,
                             char out[ATTEMPT_PATH_MAX], struct error *e)
{
    const char *shim = agentd->options.shim;
    const char *slash = strrchr(shim, '/');
    size_t length = slash != NULL ? (size_t)(slash - shim) + 1 : 0;
    if (length + strlen(name) >= ATTEMPT_PATH_MAX)
        return err_set(e, ERR_LIMIT, "--shim %.100s... is too long", shim);
    memcpy(out, shim, length);
    memcpy(out + length, name, strlen(name) + 1);
    if (access(out, X_OK) != 0)
        return err_errno(e, "find %s beside berth-shim", out);
    return ERR_OK;
}

static enum err find_programs(struct agentd *agentd, struct error *e)
{
    enum err rc = find_program(agentd, "berth-tree", agentd->tree_program, e);
    if (rc == ERR_OK)
        rc = find_program(agentd, "berth-images", agentd->images_program, e);
    if (rc == ERR_OK)
        rc = find_program(agentd, "berth-cdi", agentd->cdi_program, e);
    return rc == ERR_OK ? find_program(agentd, "berth-init", agentd->init_program, e) : rc;
}

static void read_lease(struct agentd *agentd)
{
    struct attempt_lease lease;
    if (attempt_read_lease(agentd->lease_path, &lease, NULL) == ERR_OK &&
        strncmp(lease.boot_id, agentd->boot_id, sizeof(agentd->boot_id)) == 0)
        agentd->lease.ns = lease.sent_ns;
}

static enum err open_images(struct agentd *agentd, struct error *e)
{
    const struct image_store_options options = { .path = agentd->store_path,
                                                 .unpacker = agentd->options.unpacker };
    return image_store_open(&agentd->images, &options, e);
}

static enum err prepare_node(struct agentd *agentd, struct error *e)
{
    struct rlimit limit = { 0 };
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return err_errno(e, "read the limit of open files");
    agentd->nofile_max = (unsigned)MIN_OF(limit.rlim_max, (rlim_t)1048576);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return err_errno(e, "raise the limit of open files to its maximum");
    agentd->cgroup_mode = cgroup_detect(CGROUP_ROOT);
    enum err rc = clock_boot_id(agentd->boot_id, e);
    if (rc == ERR_OK && !agentd->options.is_fake)
        rc = cgroup_enter_mounts(agentd->cgroup_mode, e);
    return rc;
}

static void take_problem(void *context, const char *text, bool is_fatal)
{
    struct agentd *agentd = context;
    size_t used = strlen(agentd->problems);
    log_warning("this node cannot do all", LOG_STR("why", text));
    (void)snprintf(agentd->problems + used, sizeof(agentd->problems) - used, "%s%s",
                   used > 0 ? "; " : "", text);
    agentd->is_hopeless = agentd->is_hopeless || is_fatal;
}

/* What only keeps work from starting is told, here and to the controller, and can be mended while
 * we look after the work that is there. */
static enum err check_node(struct agentd *agentd, struct error *e)
{
    struct node_facts facts;
    if (agentd->options.is_fake)
        return ERR_OK;
    node_facts_read(&facts,
                    &(struct node_facts_options){ .crun = agentd->options.crun, .skopeo = "" });
    (void)snprintf(agentd->crun_version, sizeof(agentd->crun_version), "%s", facts.crun_version);
    (void)node_facts_check(&facts, take_problem, agentd); /* each was taken */
    return agentd->is_hopeless
               ? err_set(e, ERR_UNAVAILABLE, "this machine cannot be a node: %s", agentd->problems)
               : ERR_OK;
}

/* State before sockets: nobody is served before what is here is known. */
static enum err agentd_open(struct agentd *agentd, struct error *e)
{
    agentd->run = random_id();
    agentd->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (agentd->epoll_fd < 0)
        return err_errno(e, "make an epoll");
    enum err rc = identity_read(agentd->options.identity, &agentd->identity, e);
    if (rc != ERR_OK)
        return rc;
    agentd->crypto = identity_crypto(&agentd->identity);
    rc = find_programs(agentd, e);
    if (rc == ERR_OK)
        rc = prepare_node(agentd, e);
    if (rc == ERR_OK)
        rc = check_node(agentd, e);
    if (rc == ERR_OK)
        rc = make_places(agentd, e);
    if (rc == ERR_OK)
        rc = lock_state(agentd, e);
    if (rc == ERR_OK)
        rc = desired_load_stamp(agentd, e);
    if (rc == ERR_OK)
        rc = devices_open(agentd, e);
    if (rc == ERR_OK)
        rc = open_images(agentd, e);
    if (rc != ERR_OK)
        return rc;
    read_lease(agentd);
    rc = open_signals(agentd, e);
    if (rc == ERR_OK)
        rc = open_hints(agentd, e);
    if (rc == ERR_OK)
        rc = attempts_scan(agentd, e);
    if (rc == ERR_OK)
        rc = images_keep_leases(agentd, e);
    return rc == ERR_OK ? peer_listen(agentd, e) : rc;
}

static void agentd_close(struct agentd *agentd)
{
    peer_drop(agentd, "agentd ends");
    peer_reap(agentd);
    agentd_unwatch(agentd, &agentd->listener);
    agentd_unwatch(agentd, &agentd->hints);
    agentd_unwatch(agentd, &agentd->signals);
    streams_done(agentd);
    imports_done(agentd);
    attempts_done(agentd);
    desired_done(agentd);
    vec_done(&agentd->streams);
    vec_done(&agentd->used_tickets);
    vec_done(&agentd->outgoing);
    devices_done(agentd);
    image_store_free(agentd->images);
    spare_done(agentd);
    sealed_program_done(&agentd->runtime);
    fd_close(agentd->epoll_fd);
    fd_close(agentd->stamp_fd);
    fd_close(agentd->state_fd);
}

/* Events are taken one by one, so that none refers to what an earlier one has released. */
static bool take_event(struct agentd *agentd, int timeout_ms)
{
    struct epoll_event event;
    if (epoll_wait(agentd->epoll_fd, &event, 1, timeout_ms) != 1)
        return false;
    const struct watch *watch = event.data.ptr;
    watch->ready(agentd, watch->self, event.events);
    peer_reap(agentd);
    return true;
}

static void agentd_loop(struct agentd *agentd)
{
    struct mono look_at = clock_monotonic();
    while (!agentd->is_ending) {
        int timeout_ms = agentd->is_dirty ? 0 : clock_poll_ms(clock_monotonic(), look_at);
        /* First what is there, then one decision about all of it. */
        bool is_more = take_event(agentd, timeout_ms);
        for (int i = 0; i < EVENTS_AT_ONCE && is_more && !agentd->is_ending; i++)
            is_more = take_event(agentd, 0);
        if (!mono_before(clock_monotonic(), look_at)) {
            attempts_look(agentd);
            devices_look(agentd);
            streams_look(agentd);
            imports_look(agentd);
            peer_look(agentd);
            images_collect(agentd);
            look_at = (struct mono){ clock_monotonic().ns + LOOK_EVERY_MS * NS_PER_MS };
        }
        if (agentd->is_dirty)
            attempts_reconcile(agentd);
        peer_flush(agentd);
        peer_reap(agentd);
        spare_prepare(agentd); /* when all has been told */
    }
}

int main(int argc, char **argv)
{
    struct log_options log = { .program = "berth-agentd", .level = LOG_LEVEL_INFO };
    struct agentd agentd = {
        .options = agentd_options_default,
        .state_fd = -1,
        .stamp_fd = -1,
        .epoll_fd = -1,
        .runtime = { .fd = -1 },
        .spare = { .process = { .pid = -1, .pidfd = -1 }, .socket = -1 },
        .listener = { .fd = -1 },
        .peer = { .fd = -1 },
        .hints = { .fd = -1 },
        .signals = { .fd = -1 },
    };
    int status = agentd_options_parse(argc, argv, &agentd.options, &log);
    if (status >= 0)
        return status;
    log_init(&log);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(0077);
    struct error e = { 0 };
    enum err rc = sodium_init() < 0 ? err_set(&e, ERR_IO, "libsodium does not start")
                                    : agentd_open(&agentd, &e);
    if (rc != ERR_OK) {
        log_error("cannot start", LOG_ERR(&e));
        agentd_close(&agentd);
        return EXIT_FAILURE;
    }
    log_info("ready", LOG_INT("attempts", agentd.attempts.count),
             LOG_INT("devices", agentd.inventory.count));
    if (sd_notify_send("READY=1", &e) != ERR_OK)
        log_warning("the service manager cannot be told", LOG_ERR(&e));
    agentd_loop(&agentd);
    agentd_close(&agentd);
    return EXIT_SUCCESS;
}
