/* net_main.c - berth-agent, the network half: `join` once, then `run`. */
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/network.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/log.h"
#include "os/sd_notify.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, CA_BYTES_MAX = 64 * 1024, TOKEN_MAX = 256 };
enum { REGISTRIES_MAX = 64 };

static const char default_state[] = "/var/lib/berth-agent";
static const char default_identity[] = "/var/lib/berth/agent/identity";
static const char default_socket[] = "/run/berth/agentd.sock";

struct arguments {
    const char *state_dir, *identity, *socket, *server, *token_file, *ca, *pin, *name, *user;
    const char *rack, *block;
    unsigned agentd_uid;
    struct str registries[REGISTRIES_MAX];
    size_t registry_count;
    bool is_plain_http;
    unsigned image_timeout_s;
};

static void print_help(void)
{
    (void)printf(
        "Usage: berth-agent join --server HOST[:PORT] --token-file FILE (--ca FILE | --pin HEX)\n"
        "       berth-agent [run]\n\n"
        "The network half of a node's agent. It speaks to the controller and starts nothing; the\n"
        "privileged half is berth-agentd.\n\n"
        "Options of join (as root):\n"
        "  --server HOST[:PORT]  the controller (port 7878)\n"
        "  --token-file FILE     a join token, `-` for standard input; never on a command line\n"
        "  --ca FILE             the controller's authority, STATE/ca.pem there\n"
        "  --pin HEX             or its SHA-256 fingerprint\n"
        "  --name NAME           of the node (default: the host name)\n"
        "  --user USER|UID       who runs this half (default: berth-agent)\n"
        "  --identity FILE       for the privileged half (default %s)\n"
        "Options of both:\n"
        "  --state DIR           of this half (default %s)\n"
        "Options of run:\n"
        "  --socket PATH         of berth-agentd (default %s)\n"
        "  --agentd-uid UID      who must own it (default 0)\n"
        "  --registry HOST[:PORT]  a registry that may be on this machine; may be repeated\n"
        "  --plain-http          and these are asked without TLS\n"
        "  --image-timeout SECONDS  a pull that takes longer is ended (3600)\n"
        "  --rack NAME           the rack that the machine is in, for work that stays together\n"
        "  --block NAME          and the block that its rack is in\n"
        "  --help, --version\n\n"
        "Example: berth node join-token -q | ssh n1 berth-agent join --server ctl:7878 \\\n"
        "             --token-file - --ca ca.pem\n",
        default_identity, default_state, default_socket);
}

static const struct option long_options[] = {
    { "state", required_argument, NULL, 's' },
    { "identity", required_argument, NULL, 'i' },
    { "socket", required_argument, NULL, 'u' },
    { "server", required_argument, NULL, 'S' },
    { "token-file", required_argument, NULL, 't' },
    { "ca", required_argument, NULL, 'c' },
    { "pin", required_argument, NULL, 'p' },
    { "name", required_argument, NULL, 'n' },
    { "user", required_argument, NULL, 'U' },
    { "agentd-uid", required_argument, NULL, 'a' },
    { "registry", required_argument, NULL, 'r' },
    { "rack", required_argument, NULL, 'R' },
    { "block", required_argument, NULL, 'B' },
    { "plain-http", no_argument, NULL, 'H' },
    { "image-timeout", required_argument, NULL, 'T' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },
    { NULL, 0, NULL, 0 },
};

static bool parse_number(const char *text, int64_t max, unsigned *out)
{
    int64_t value = 0;
    if (!str_to_i64(str_of(text), 0, max, &value))
        return false;
    *out = (unsigned)value;
    return true;
}

/* Returns an exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct arguments *out)
{
    const char **const texts[] = {
        ['s'] = &out->state_dir, ['i'] = &out->identity,   ['u'] = &out->socket,
        ['S'] = &out->server,    ['t'] = &out->token_file, ['c'] = &out->ca,
        ['p'] = &out->pin,       ['n'] = &out->name,       ['U'] = &out->user,
        ['R'] = &out->rack,      ['B'] = &out->block
    };
    int c = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread yet */
    while ((c = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
        if (c == 'h') {
            print_help();
            return EXIT_OK;
        }
        if (c == 'V') {
            (void)puts("berth-agent " BERTH_VERSION);
            return EXIT_OK;
        }
        if (c == 'H') {
            out->is_plain_http = true;
        } else if (c == 'T' && parse_number(optarg, INT32_MAX, &out->image_timeout_s) &&
                   out->image_timeout_s > 0) {
            continue;
        } else if (c == 'r' && out->registry_count < REGISTRIES_MAX) {
            out->registries[out->registry_count++] = str_of(optarg);
        } else if (c > 0 && (size_t)c < COUNT_OF(texts) && texts[c] != NULL) {
            *texts[c] = optarg;
        } else if (c != 'a' || !parse_number(optarg, UINT32_MAX, &out->agentd_uid)) {
            (void)fputs("see `berth-agent --help`\n", stderr);
            return EXIT_USAGE;
        }
    }
    return -1;
}

static enum err user_uid(const char *user, unsigned *uid, struct error *e)
{
    if (parse_number(user, UINT32_MAX, uid))
        return ERR_OK;
    const struct passwd *entry = getpwnam(user); /* NOLINT(concurrency-mt-unsafe): one thread yet */
    if (entry == NULL)
        return err_set(e, ERR_NOT_FOUND,
                       "there is no user %s: make one (adduser --system berth-agent) or say --user",
                       user);
    *uid = entry->pw_uid;
    return ERR_OK;
}

static enum err token_read(const char *path, char out[TOKEN_MAX], struct error *e)
{
    AUTO(buf) struct buf bytes = { 0 };
    if (strcmp(path, "-") == 0) {
        size_t got = 0;
        enum err rc = fd_read_full(STDIN_FILENO, out, TOKEN_MAX - 1, &got, e);
        if (rc != ERR_OK)
            return rc;
        buf_add(&bytes, out, got);
    } else {
        enum err rc = file_read(path, TOKEN_MAX - 1, &bytes, e);
        if (rc != ERR_OK)
            return rc;
    }
    while (bytes.size > 0 &&
           (bytes.data[bytes.size - 1] == '\n' || bytes.data[bytes.size - 1] == ' '))
        bytes.data[--bytes.size] = '\0';
    if (bytes.size == 0)
        return err_set(e, ERR_INVALID,
                       "the join token is empty; `berth node join-token` makes one");
    memcpy(out, bytes.data, bytes.size);
    out[bytes.size] = '\0';
    return ERR_OK;
}

/* "host", "host:port", "[v6]:port" */
static enum err server_parse(struct arena *arena, const char *text, struct net_join *join,
                             struct error *e)
{
    struct str host = str_of(text);
    int64_t port = 7878;
    const char *colon = strrchr(text, ':');
    bool is_bracketed = text[0] == '[';
    if (colon != NULL && (is_bracketed || strchr(text, ':') == colon) && colon[1] != '\0') {
        if (!str_to_i64(str_of(colon + 1), 1, 65535, &port))
            return err_set(e, ERR_INVALID, "--server: \"%s\" has no valid port", text);
        host.size = (size_t)(colon - text);
    }
    if (is_bracketed && host.size > 2 && host.data[host.size - 1] == ']')
        host = (struct str){ host.data + 1, host.size - 2 };
    if (host.size == 0 || host.size > 253)
        return err_set(e, ERR_INVALID, "--server: \"%s\" names no host", text);
    join->host = str_c(arena, host);
    join->port = (uint16_t)port;
    return ERR_OK;
}

static enum err run_join(const struct arguments *arguments, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf ca = { 0 };
    uint8_t pin[CA_FINGERPRINT_BYTES];
    char token[TOKEN_MAX];
    char host_name[65] = "";
    struct net_join join = { .dir = arguments->state_dir, .identity = arguments->identity };
    if (arguments->server == NULL || arguments->token_file == NULL ||
        (arguments->ca == NULL) == (arguments->pin == NULL))
        return err_set(e, ERR_INVALID,
                       "join needs --server, --token-file and one of --ca and --pin");
    enum err rc = server_parse(&arena, arguments->server, &join, e);
    if (rc == ERR_OK)
        rc = user_uid(arguments->user, &join.uid, e);
    if (rc == ERR_OK)
        rc = token_read(arguments->token_file, token, e);
    if (rc == ERR_OK && arguments->ca != NULL)
        rc = file_read(arguments->ca, CA_BYTES_MAX, &ca, e);
    if (rc != ERR_OK)
        return rc;
    if (arguments->pin != NULL && !hex_decode(str_of(arguments->pin), pin, sizeof(pin)))
        return err_set(e, ERR_INVALID, "--pin: 64 hexadecimal digits are wanted");
    if (arguments->name == NULL && gethostname(host_name, sizeof(host_name) - 1) != 0)
        return err_errno(e, "the host name");
    join.name = arguments->name != NULL ? arguments->name : host_name;
    join.token = token;
    join.ca_pem = buf_str(&ca);
    join.pin = pin;
    rc = net_join(&join, e);
    explicit_bzero(token, sizeof(token));
    if (rc == ERR_OK)
        (void)printf("joined as %s; start berth-agentd and berth-agent\n", join.name);
    return rc;
}

static void on_signal(struct loop_watch *watch, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)events;
    if (read(watch->fd, &info, sizeof(info)) == sizeof(info))
        network_stop(watch->arg);
}

/* Spools and streams of a full node are more than the usual limit lets through. */
static enum err raise_limit(struct error *e)
{
    struct rlimit limit = { 0 };
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return err_errno(e, "read the limit of open files");
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0
               ? ERR_OK
               : err_errno(e, "raise the limit of open files to its maximum");
}

static struct str label_of(const char *text)
{
    return text != NULL ? str_of(text) : (struct str){ 0 };
}

static enum err run_network(struct arguments *arguments, struct error *e)
{
    const struct network_options options = { .state_dir = arguments->state_dir,
                                             .socket = arguments->socket,
                                             .agentd_uid = arguments->agentd_uid,
                                             .registries = { arguments->registries,
                                                             arguments->registry_count },
                                             .is_plain_http = arguments->is_plain_http,
                                             .image_timeout_s = arguments->image_timeout_s,
                                             .rack = label_of(arguments->rack),
                                             .block = label_of(arguments->block) };
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return err_errno(e, "sigprocmask");
    (void)signal(SIGPIPE, SIG_IGN);
    AUTO(fd) int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_errno(e, "signalfd");
    AUTO(network) struct network *network = NULL;
    enum err rc = raise_limit(e);
    if (rc == ERR_OK)
        rc = network_open(&options, &network, e);
    if (rc != ERR_OK)
        return rc;
    struct loop_watch watch = {
        .fd = fd, .events = EPOLLIN, .on_ready = on_signal, .arg = network
    };
    rc = loop_watch_add(network->loop, &watch, e);
    if (rc == ERR_OK)
        rc = sd_notify_send("READY=1", e);
    if (rc == ERR_OK)
        rc = network_run(network, e);
    loop_watch_remove(network->loop, &watch);
    return rc;
}

int main(int argc, char **argv)
{
    struct arguments arguments = { .state_dir = default_state,
                                   .image_timeout_s = IMAGE_TIMEOUT_DEFAULT_S,
                                   .identity = default_identity,
                                   .socket = default_socket,
                                   .user = "berth-agent" };
    int status = parse_options(argc, argv, &arguments);
    if (status >= 0)
        return status;
    const char *command = optind < argc ? argv[optind++] : "run";
    bool is_join = strcmp(command, "join") == 0;
    if (optind < argc || (!is_join && strcmp(command, "run") != 0)) {
        (void)fputs("berth-agent: `join` or `run` is wanted; see --help\n", stderr);
        return EXIT_USAGE;
    }
    log_init(&(struct log_options){ .program = "berth-agent", .level = LOG_LEVEL_INFO });
    struct error e = { 0 };
    enum err rc = is_join ? run_join(&arguments, &e) : run_network(&arguments, &e);
    if (rc == ERR_OK)
        return EXIT_OK;
    (void)fprintf(stderr, "berth-agent: %s\n", e.text);
    return EXIT_FAILED;
}
