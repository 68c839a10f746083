/*
 * berth-load-agents - many simulated agents in one process, FOR LOAD TESTS ONLY. They
 * start nothing.
 *
 * Prints one JSON line twice a second until it gets SIGTERM or SIGINT, and exits 1 when a
 * controller refuses an agent for good.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "fleet.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"

enum { REPORT_MS = 500, CA_MAX = 64 * 1024 };

static void print_help(void)
{
    (void)printf(
        "Usage: berth-load-agents --port PORT --ca FILE --dir DIR --count N [OPTION...]\n\n"
        "Simulated agents for load tests: real TLS and the real protocol, and no work at all.\n\n"
        "  --host HOST        of the controller (127.0.0.1)\n"
        "  --port PORT        of the controller\n"
        "  --ca FILE          its authority\n"
        "  --dir DIR          identities: kept after joining, used again\n"
        "  --tokens FILE      join tokens, one a line, for agents without an identity\n"
        "  --count N          agents\n"
        "  --concurrency N    first dials at a time (64)\n"
        "  --gpus N           devices of each node (4)\n"
        "  --work-ms MS       how long granted work runs (0: until told to stop)\n");
}

static const struct option long_options[] = {
    { "host", required_argument, NULL, 'H' },
    { "port", required_argument, NULL, 'p' },
    { "ca", required_argument, NULL, 'c' },
    { "dir", required_argument, NULL, 'd' },
    { "tokens", required_argument, NULL, 't' },
    { "count", required_argument, NULL, 'n' },
    { "concurrency", required_argument, NULL, 'k' },
    { "gpus", required_argument, NULL, 'g' },
    { "work-ms", required_argument, NULL, 'w' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

/* Returns an exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct fleet_options *options, const char **ca)
{
    const char **const texts[] = {
        ['H'] = &options->host, ['c'] = ca, ['d'] = &options->dir, ['t'] = &options->token_file
    };
    int64_t numbers[128] = { ['p'] = 0, ['n'] = 0, ['k'] = 64, ['g'] = 4, ['w'] = 0 };
    int c = 0;
    while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (c == 'h') {
            print_help();
            return 0;
        }
        if (c > 0 && (size_t)c < COUNT_OF(texts) && texts[c] != NULL)
            *texts[c] = optarg;
        else if (c == '?' || !str_to_i64(str_of(optarg), 0, 10000000, &numbers[c]))
            return 2;
    }
    options->port = (uint16_t)numbers['p'];
    options->count = (size_t)numbers['n'];
    options->concurrency = (size_t)numbers['k'];
    options->gpus = numbers['g'];
    options->work_ms = numbers['w'];
    if (options->port == 0 || options->count == 0 || *ca == NULL || options->dir == NULL) {
        print_help();
        return 2;
    }
    return -1;
}

static void report(const struct fleet *fleet)
{
    const struct fleet_counts *c = &fleet->counts;
    (void)printf("{\"simulated\":true,\"agents\":%zu,\"joined\":%zu,\"connected\":%zu,"
                 "\"all_since_ns\":%lld,\"all_lost_ns\":%lld,\"now_ns\":%lld,\"cpu_ns\":%lld,"
                 "\"dials\":%llu,\"resumed\":%llu,\"refused\":%llu,\"sent\":%llu,\"received\":%llu,"
                 "\"beats_acked\":%llu,\"sets\":%llu,\"bad_sets\":%llu,\"running\":%zu,"
                 "\"started\":%llu,\"finished\":%llu,\"stopped\":%llu,\"vanished\":%llu}\n",
                 fleet->options.count, c->joined, c->connected, (long long)fleet->all_since.ns,
                 (long long)fleet->all_lost.ns, (long long)clock_monotonic().ns,
                 (long long)clock_cpu_ns(), (unsigned long long)c->dials,
                 (unsigned long long)c->resumed, (unsigned long long)c->refused,
                 (unsigned long long)c->sent, (unsigned long long)c->received,
                 (unsigned long long)c->beats_acked, (unsigned long long)c->sets,
                 (unsigned long long)c->bad_sets, c->running, (unsigned long long)c->started,
                 (unsigned long long)c->finished, (unsigned long long)c->stopped,
                 (unsigned long long)c->vanished);
    (void)fflush(stdout);
}

struct reporter {
    struct fleet *fleet;
    struct loop_timer timer;
};

static void on_report(void *arg)
{
    struct reporter *reporter = arg;
    struct loop *loop = reporter->fleet->loop;
    report(reporter->fleet);
    if (reporter->fleet->fatal.code != ERR_OK)
        loop_stop(loop);
    loop_timer_set(loop, &reporter->timer,
                   (struct mono){ loop_now(loop).ns + REPORT_MS * NS_PER_MS });
}

static void on_signal(struct loop_watch *watch, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)events;
    if (read(watch->fd, &info, sizeof(info)) == sizeof(info))
        loop_stop(watch->arg);
}

static enum err serve(struct fleet *fleet, struct error *e)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return err_errno(e, "sigprocmask");
    AUTO(fd) int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_errno(e, "signalfd");
    struct loop_watch watch = {
        .fd = fd, .events = EPOLLIN, .on_ready = on_signal, .arg = fleet->loop
    };
    enum err rc = loop_watch_add(fleet->loop, &watch, e);
    if (rc != ERR_OK)
        return rc;
    struct reporter reporter = { .fleet = fleet, .timer = { .fn = on_report, .arg = &reporter } };
    on_report(&reporter);
    fleet_start(fleet);
    rc = loop_run(fleet->loop, e);
    loop_timer_stop(fleet->loop, &reporter.timer);
    loop_watch_remove(fleet->loop, &watch);
    report(fleet);
    if (rc == ERR_OK && fleet->fatal.code != ERR_OK) {
        *e = fleet->fatal;
        rc = e->code;
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct fleet_options options = { .host = "127.0.0.1" };
    const char *ca = NULL;
    int status = parse_options(argc, argv, &options, &ca);
    if (status >= 0)
        return status;
    struct error e = { 0 };
    AUTO(buf) struct buf authority = { 0 };
    struct fleet *fleet = NULL;
    enum err rc = file_read(ca, CA_MAX, &authority, &e);
    if (rc == ERR_OK)
        rc = fleet_open(&options, buf_str(&authority), &fleet, &e);
    if (rc == ERR_OK)
        rc = serve(fleet, &e);
    fleet_free(fleet);
    if (rc == ERR_OK)
        return 0;
    (void)fprintf(stderr, "berth-load-agents: %s\n", e.text);
    return 1;
}
