#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agentd.h"

enum {
    EXIT_USAGE = 2,
    LOG_QUOTA_DEFAULT_MIB = 256,
    STARTING_DEFAULT = 8,
    IMAGE_STORE_DEFAULT_MIB = 100 * 1024,
    IMAGE_AGE_DEFAULT_S = 30 * 86400,
};

const struct agentd_options agentd_options_default = {
    .state_dir = "/var/lib/berth/agent",
    .run_dir = "/run/berth/agent",
    .socket = "/run/berth/agentd.sock",
    .crun = "/usr/bin/crun",
    .gpu = "auto",
    .cgroup = "/berth",
    .log_quota_bytes = (uint64_t)LOG_QUOTA_DEFAULT_MIB * 1024 * 1024,
    .starting_max = STARTING_DEFAULT,
    .image_store_bytes = (int64_t)IMAGE_STORE_DEFAULT_MIB * 1024 * 1024,
    .image_age_s = IMAGE_AGE_DEFAULT_S,
    .image_timeout_s = IMAGE_TIMEOUT_DEFAULT_S,
};

static const char *const help =
    "usage: berth-agentd [OPTION]...\n"
    "The privileged half of a Berth agent: starts and stops what the controller has signed.\n"
    "\n"
    "  --state DIR            where everything is kept (/var/lib/berth/agent)\n"
    "  --run DIR              what need not outlive the machine: a tmpfs (/run/berth/agent)\n"
    "  --identity FILE        who this node is (STATE/identity), written by \"berth-agent join\"\n"
    "  --socket PATH          where berth-agent connects (/run/berth/agentd.sock)\n"
    "  --peer-user NAME|UID   who may connect (berth-agent)\n"
    "  --gpu SPEC             auto, nvml, rocm, pci, none, or sim:4xh100 (auto)\n"
    "  --cdi DIR              where CDI specs lie; may be repeated (/etc/cdi, /run/cdi)\n"
    "  --cdi-hook PROGRAM     a hook that CDI specs may run as root; may be repeated (none)\n"
    "  --crun PROGRAM         the container runtime (/usr/bin/crun)\n"
    "  --shim PROGRAM         berth-shim (beside this program)\n"
    "  --unpacker PROGRAM     berth-unpack (beside this program, or in /usr/libexec/berth)\n"
    "  --cgroup PATH          parent of all cgroups of workloads (/berth)\n"
    "  --log-quota-mib N      unshipped log bytes kept for an attempt (256)\n"
    "  --image-store-mib N    unused images go when all take more (102400)\n"
    "  --image-age SECONDS    or when unused for so long (2592000: 30 days)\n"
    "  --image-timeout SECONDS  an import that takes longer is ended (3600)\n"
    "  --starting N           attempts started at once (8)\n"
    "  --rootfs DIR           for tests: the root of grants without an image, read-only\n"
    "  --fake-runtime         for tests: nothing is really run\n"
    "  --log-level LEVEL      debug, info, warning, error (info)\n"
    "  --help, --version\n";

enum option_key {
    OPT_STATE = 256,
    OPT_RUN,
    OPT_IDENTITY,
    OPT_SOCKET,
    OPT_PEER,
    OPT_GPU,
    OPT_CDI,
    OPT_CDI_HOOK,
    OPT_CRUN,
    OPT_SHIM,
    OPT_CGROUP,
    OPT_UNPACKER,
    OPT_LOG_QUOTA,
    OPT_STARTING,
    OPT_IMAGE_STORE,
    OPT_IMAGE_AGE,
    OPT_IMAGE_TIMEOUT,
    OPT_ROOTFS,
    OPT_FAKE,
    OPT_LOG_LEVEL,
    OPT_HELP,
    OPT_VERSION,
};

/* clang-format off */
static const struct option long_options[] = {
    { "state",         required_argument, NULL, OPT_STATE },
    { "run",           required_argument, NULL, OPT_RUN },
    { "identity",      required_argument, NULL, OPT_IDENTITY },
    { "socket",        required_argument, NULL, OPT_SOCKET },
    { "peer-user",     required_argument, NULL, OPT_PEER },
    { "gpu",           required_argument, NULL, OPT_GPU },
    { "cdi",           required_argument, NULL, OPT_CDI },
    { "cdi-hook",      required_argument, NULL, OPT_CDI_HOOK },
    { "crun",          required_argument, NULL, OPT_CRUN },
    { "shim",          required_argument, NULL, OPT_SHIM },
    { "unpacker",      required_argument, NULL, OPT_UNPACKER },
    { "cgroup",        required_argument, NULL, OPT_CGROUP },
    { "log-quota-mib", required_argument, NULL, OPT_LOG_QUOTA },
    { "starting",      required_argument, NULL, OPT_STARTING },
    { "image-store-mib", required_argument, NULL, OPT_IMAGE_STORE },
    { "image-age",     required_argument, NULL, OPT_IMAGE_AGE },
    { "image-timeout", required_argument, NULL, OPT_IMAGE_TIMEOUT },
    { "rootfs",        required_argument, NULL, OPT_ROOTFS },
    { "fake-runtime",  no_argument,       NULL, OPT_FAKE },
    { "log-level",     required_argument, NULL, OPT_LOG_LEVEL },
    { "help",          no_argument,       NULL, OPT_HELP },
    { "version",       no_argument,       NULL, OPT_VERSION },
    { NULL, 0, NULL, 0 },
};
/* clang-format on */

static void default_paths(struct agentd_options *o)
{
    static char identity[ATTEMPT_PATH_MAX];
    static char shim[ATTEMPT_PATH_MAX];
    if (o->identity == NULL) {
        (void)snprintf(identity, sizeof(identity), "%s/identity", o->state_dir);
        o->identity = identity;
    }
    if (o->cdi_dir_count == 0) {
        o->cdi_dirs[o->cdi_dir_count++] = "/etc/cdi";
        o->cdi_dirs[o->cdi_dir_count++] = "/run/cdi";
    }
    if (o->shim == NULL) {
        ssize_t size = readlink("/proc/self/exe", shim, sizeof(shim) - sizeof("berth-shim"));
        char *slash = size > 0 ? memrchr(shim, '/', (size_t)size) : NULL;
        if (slash != NULL)
            memcpy(slash + 1, "berth-shim", sizeof("berth-shim"));
        o->shim = slash != NULL ? shim : "/usr/libexec/berth/berth-shim";
    }
}

static bool parse_user(const char *text, unsigned *out)
{
    int64_t uid = 0;
    if (str_to_i64(str_of(text), 0, UINT32_MAX - 1, &uid)) {
        *out = (unsigned)uid;
        return true;
    }
    const struct passwd *user = getpwnam(text); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (user == NULL)
        return false;
    *out = user->pw_uid;
    return true;
}

static bool parse_number(const char *text, int64_t max, int64_t *out)
{
    return str_to_i64(str_of(text), 1, max, out);
}

static bool add_path(const char **list, size_t *count, const char *value)
{
    if (*count == CDI_LIST_MAX || !edit_path_is_safe(value))
        return false;
    list[(*count)++] = value;
    return true;
}

/* One option. False: its value is wrong. */
static bool take_option(int key, const char *value, struct agentd_options *o,
                        struct log_options *log, const char **peer)
{
    int64_t number = 0;
    switch (key) {
    case OPT_STATE:
        o->state_dir = value;
        return true;
    case OPT_RUN:
        o->run_dir = value;
        return true;
    case OPT_IDENTITY:
        o->identity = value;
        return true;
    case OPT_SOCKET:
        o->socket = value;
        return true;
    case OPT_PEER:
        *peer = value;
        return true;
    case OPT_GPU:
        o->gpu = value;
        return true;
    case OPT_CDI:
        return add_path(o->cdi_dirs, &o->cdi_dir_count, value);
    case OPT_CDI_HOOK:
        return add_path(o->cdi_hooks, &o->cdi_hook_count, value);
    case OPT_CRUN:
        o->crun = value;
        return true;
    case OPT_SHIM:
        o->shim = value;
        return true;
    case OPT_UNPACKER:
        o->unpacker = value;
        return true;
    case OPT_CGROUP:
        o->cgroup = value;
        return value[0] == '/' && strstr(value, "..") == NULL;
    case OPT_ROOTFS:
        o->rootfs = value;
        return value[0] == '/';
    case OPT_FAKE:
        o->is_fake = true;
        return true;
    case OPT_LOG_QUOTA:
        if (!parse_number(value, 1024 * 1024, &number))
            return false;
        o->log_quota_bytes = (uint64_t)number * 1024 * 1024;
        return true;
    case OPT_IMAGE_STORE:
        if (!parse_number(value, INT32_MAX, &number))
            return false;
        o->image_store_bytes = number * 1024 * 1024;
        return true;
    case OPT_IMAGE_AGE:
        return parse_number(value, INT32_MAX, &o->image_age_s);
    case OPT_IMAGE_TIMEOUT:
        return parse_number(value, INT32_MAX, &o->image_timeout_s);
    case OPT_STARTING:
        if (!parse_number(value, GRANT_SET_MAX, &number))
            return false;
        o->starting_max = (uint32_t)number;
        return true;
    case OPT_LOG_LEVEL:
        return log_level_parse(str_of(value), &log->level);
    default:
        return false;
    }
}

int agentd_options_parse(int argc, char **argv, struct agentd_options *o, struct log_options *log)
{
    const char *peer = "berth-agent";
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    for (int key = getopt_long(argc, argv, "", long_options, NULL); key != -1;
         key =
             getopt_long(argc, argv, "", long_options, NULL)) { /* NOLINT(concurrency-mt-unsafe) */
        if (key == OPT_HELP) {
            (void)fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (key == OPT_VERSION) {
            (void)printf("berth-agentd %s\n", BERTH_VERSION);
            return EXIT_SUCCESS;
        }
        if (!take_option(key, optarg, o, log, &peer)) {
            (void)fprintf(stderr, "berth-agentd: wrong option %s; see --help\n", argv[optind - 1]);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "berth-agentd: unexpected \"%s\"; see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    if (!parse_user(peer, &o->peer_uid)) {
        (void)fprintf(stderr, "berth-agentd: there is no user %s; see --peer-user\n", peer);
        return EXIT_USAGE;
    }
    default_paths(o);
    return -1;
}
