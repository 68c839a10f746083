/* main.c - berthd's commands, one table. */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "controller/berthd.h"
#include "controller/setup.h"
#include "os/log.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char default_config[] = "/etc/berth/berthd.yaml";

struct options {
    const char *config_path;
    const char *state_dir; /* overrides, for a first look without a configuration file */
    const char *listen;
    const char *socket;
    const char *port;
    const char *log_level;
    const char *argument; /* of backup and restore */
    bool is_config_given;
};

static enum err run_init(const struct config *config, const struct options *options,
                         struct error *e)
{
    (void)options;
    return setup_init(config, e);
}

static enum err run_rebuild(const struct config *config, const struct options *options,
                            struct error *e)
{
    (void)options;
    return setup_rebuild(config, e);
}

static enum err run_backup(const struct config *config, const struct options *options,
                           struct error *e)
{
    return setup_backup(config, options->argument, e);
}

static enum err run_restore(const struct config *config, const struct options *options,
                            struct error *e)
{
    return setup_restore(config, options->argument, e);
}

struct command_row {
    const char *name;
    const char *argument; /* NULL: takes none */
    const char *help;
    enum err (*run)(const struct config *config, const struct options *options, struct error *e);
};

static const struct command_row commands[] = {
    { "run", NULL, "serve until SIGTERM (the default)", NULL },
    { "init", NULL, "make keys, certificate authority and an empty store", run_init },
    { "backup", "FILE", "write a consistent copy of the store, also while berthd runs",
      run_backup },
    { "restore", "FILE", "put a backup in place of a missing store", run_restore },
    { "rebuild", NULL, "make all projections again from the journal", run_rebuild },
};

static void print_help(void)
{
    (void)printf(
        "Usage: berthd [OPTIONS] [COMMAND]\n\n"
        "The controller of Berth: API, scheduler and ledger in one process.\n\nCommands:\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        (void)printf("  %-8s %-5s %s\n", commands[i].name,
                     commands[i].argument != NULL ? commands[i].argument : "", commands[i].help);
    (void)printf("\nOptions:\n"
                 "  --config FILE      configuration (default %s; missing: defaults)\n"
                 "  --state DIR        directory of everything that must survive\n"
                 "  --socket PATH      unix socket where root is admin\n"
                 "  --listen ADDRESS   numeric address of the TLS port; '' for none\n"
                 "  --port N           TLS port; 0 for any free one, written to STATE/port\n"
                 "  --log-level LEVEL  debug, info, warning or error\n"
                 "  --help, --version\n\n"
                 "Exit status: 0 ok, 1 failed, 2 usage, 75 the outcome of a commit is unknown:\n"
                 "start it again, it recovers by itself.\n\n"
                 "Example: berthd --state /var/lib/berth init && berthd --state /var/lib/berth\n",
                 default_config);
}

static const struct option long_options[] = {
    { "config", required_argument, NULL, 'c' },
    { "state", required_argument, NULL, 's' },
    { "socket", required_argument, NULL, 'u' },
    { "listen", required_argument, NULL, 'l' },
    { "port", required_argument, NULL, 'p' },
    { "log-level", required_argument, NULL, 'v' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },
    { NULL, 0, NULL, 0 },
};

/* Returns an exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct options *out)
{
    int c = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread yet */
    while ((c = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
        switch (c) {
        case 'c':
            out->config_path = optarg;
            out->is_config_given = true;
            break;
        case 's':
            out->state_dir = optarg;
            break;
        case 'u':
            out->socket = optarg;
            break;
        case 'l':
            out->listen = optarg;
            break;
        case 'p':
            out->port = optarg;
            break;
        case 'v':
            out->log_level = optarg;
            break;
        case 'h':
            print_help();
            return EXIT_OK;
        case 'V':
            (void)puts("berthd " BERTH_VERSION);
            return EXIT_OK;
        default:
            (void)fputs("see `berthd --help`\n", stderr);
            return EXIT_USAGE;
        }
    }
    return -1;
}

static enum err load(const struct options *options, struct arena *arena, struct config *config,
                     struct error *e)
{
    struct stat info;
    config_defaults(config);
    if (options->is_config_given || stat(options->config_path, &info) == 0) {
        enum err rc = config_load(options->config_path, arena, config, e);
        if (rc != ERR_OK)
            return rc;
    }
    if (options->state_dir != NULL)
        config->state_dir = str_of(options->state_dir);
    if (options->socket != NULL)
        config->socket = str_of(options->socket);
    if (options->listen != NULL)
        config->listen = str_of(options->listen);
    if (options->log_level != NULL)
        config->log_level = str_of(options->log_level);
    if (options->port != NULL && !str_to_i64(str_of(options->port), 0, 65535, &config->port))
        return err_set(e, ERR_INVALID, "--port: \"%s\" is not a port", options->port);
    return config_check(config, e);
}

static const struct command_row *command_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int usage(const char *problem)
{
    (void)fprintf(stderr, "berthd: %s; see `berthd --help`\n", problem);
    return EXIT_USAGE;
}

/*
 * The state grows in small pieces for as long as the process lives, and batches come and go by the
 * hundred a second. The allocator's defaults give memory back at 128 KiB and take it again
 * page by page: system calls and page faults that cost more than the requests. Much is kept,
 * and taken in larger steps.
 */
static void tune_memory(void)
{
    const int keep_bytes = 32 << 20, step_bytes = 256 << 10, own_map_bytes = 4 << 20;
    /* NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet */
    (void)mallopt(M_TRIM_THRESHOLD, keep_bytes);
    (void)mallopt(M_TOP_PAD, step_bytes);
    (void)mallopt(M_MMAP_THRESHOLD, own_map_bytes);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

int main(int argc, char **argv)
{
    struct options options = { .config_path = default_config };
    int status = parse_options(argc, argv, &options);
    if (status >= 0)
        return status;
    const char *name = optind < argc ? argv[optind++] : "run";
    const struct command_row *row = command_find(name);
    if (row == NULL)
        return usage("no such command");
    if (row->argument != NULL && optind < argc)
        options.argument = argv[optind++];
    if (optind < argc || (row->argument != NULL && options.argument == NULL))
        return usage("wrong number of arguments");

    struct arena arena = { 0 };
    struct config config;
    struct error e = { 0 };
    enum log_level level = LOG_LEVEL_INFO;
    enum err rc = load(&options, &arena, &config, &e);
    if (rc == ERR_OK && !log_level_parse(config.log_level, &level))
        rc = err_field(&e, "log_level", "log_level: debug, info, warning or error is wanted");
    if (rc == ERR_OK) {
        log_init(&(struct log_options){ .program = "berthd", .level = level });
        if (row->run == NULL) {
            tune_memory();
            return berthd_run(&config, arena);
        }
        rc = row->run(&config, &options, &e);
    }
    arena_done(&arena);
    if (rc == ERR_OK)
        return EXIT_OK;
    (void)fprintf(stderr, "berthd: %s\n", e.text);
    return EXIT_FAILED;
}
