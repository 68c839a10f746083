/* berth-sim: the controller's core under virtual time. */
#include "sim/main.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "os/file.h"
#include "sim/run.h"

static const char usage[] =
    "usage: berth-sim run [--events] FILE|DIRECTORY...\n"
    "       berth-sim replay --nodes FILE --pods FILE [OPTION...]\n"
    "       berth-sim replay --philly FILE [--policy static|borrow] [--nodes N] [--gpus N] "
    "[--json]\n"
    "       berth-sim bench [--preset NAME] [OPTION...]\n"
    "       berth-sim whatif --snapshot FILE [OPTION...]\n"
    "       berth-sim --help | --version\n"
    "\n"
    "Runs scenarios through the scheduler and the core of berthd, in virtual time.\n"
    "\n"
    "  run FILE...          what each scenario expects, as TAP: one line a scenario; of a\n"
    "                       directory, all its files that end in .yaml\n"
    "  run --events FILE    every event of its scenarios as JSON lines instead; the same\n"
    "                       bytes for the same file\n"
    "\n"
    "  replay               a trace of nodes and pods (CSV) against a placement policy: pods come "
    "one\n"
    "                       by one, each is tried once, nothing leaves or moves\n"
    "    --nodes FILE       sn,cpu_milli,memory_mib,gpu,model\n"
    "    --pods FILE        name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]\n"
    "    --order ORDER      trace (by name), shuffle:SEED, or file:FILE with two lines: the pods'\n"
    "                       numbers in order of arrival, and each node's place among ties (trace)\n"
    "    --inflate PERCENT  repeat pods at random until they ask for so much of all devices\n"
    "    --placement NAME   first_fit, best_fit, pack, spread, fgd or adaptive (adaptive)\n"
    "    --placements FILE  a line an arrival: POD NODE DEVICE-DEVICE, or POD -\n"
    "    --json             the figures as JSON\n"
    "  replay --philly FILE jobs of virtual clusters (timestamp,duration,num_gpus,cluster), each "
    "a\n"
    "                       tenant with its part of --nodes (96) of --gpus (8) devices: how long "
    "jobs\n"
    "                       were delayed; with --policy static nobody gets more than its part\n"
    "\n"
    "  bench                a large made-up cluster with a long queue: what decisions take\n"
    "    --nodes N --gpus N --projects N --workloads N --events N   (12500 8 1000 1000000 20000)\n"
    "    --preset NAME      instead: quota-baseline or quota-large, queues that borrow, in "
    "virtual\n"
    "                       time\n"
    "    --json             the figures as JSON\n"
    "\n"
    "  whatif               what would follow in a state of `berth export --snapshot`, beside "
    "what\n"
    "                       follows as things are; the last column of each pair is as supposed\n"
    "    --snapshot FILE    the state\n"
    "    --submit FILE      this work is submitted: a specification as YAML\n"
    "    --quota PATH:CLASS=N   this quota is set\n"
    "    --lose NODE        this node is lost\n"
    "    --horizon TIME     so far ahead (24h)\n"
    "    --json             the figures as JSON\n"
    "\n"
    "exit status: 0 everything is as expected, 1 something is not, 2 wrong use or file\n";

struct totals {
    size_t count, failed;
};

static enum err run_one(const struct doc *doc, struct arena *arena, bool wants_events,
                        struct totals *totals, struct error *e)
{
    struct scenario scenario;
    AUTO(buf) struct buf faults = { 0 };
    AUTO(buf) struct buf log = { 0 };
    enum err rc = scenario_read(doc, arena, &scenario, e);
    if (rc == ERR_OK)
        rc = scenario_run(&scenario, arena, &faults, wants_events ? &log : NULL, e);
    if (rc != ERR_OK)
        return rc;
    totals->count++;
    totals->failed += faults.size > 0;
    if (wants_events)
        (void)fwrite(log.data, 1, log.size, stdout);
    else
        (void)printf("%s %zu - %.*s\n", faults.size > 0 ? "not ok" : "ok", totals->count,
                     STR_ARG(scenario.name));
    if (faults.size > 0)
        (void)fprintf(wants_events ? stderr : stdout, "%.*s", (int)faults.size, faults.data);
    return ERR_OK;
}

static enum err run_file(const char *path, bool wants_events, struct totals *totals,
                         struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf text = { 0 };
    struct doc *docs = NULL;
    size_t count = 0;
    enum err rc = file_read(path, DOC_FILES_BYTES_MAX, &text, e);
    if (rc != ERR_OK)
        return rc;
    rc = doc_read(buf_str(&text), &arena, &docs, &count, e);
    if (rc == ERR_OK && count == 0)
        rc = err_set(e, ERR_INVALID, "1:1: there is no scenario");
    for (size_t i = 0; i < count && rc == ERR_OK; i++)
        rc = run_one(&docs[i], &arena, wants_events, totals, e);
    return rc == ERR_OK ? ERR_OK : err_wrap(e, rc, "%s", path);
}

static int is_yaml(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot != NULL && strcmp(dot, ".yaml") == 0;
}

/* In the order of their names, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum err run_directory(const char *path, bool wants_events, struct totals *totals,
                              struct error *e)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_yaml, by_name);
    if (count < 0)
        return err_errno(e, "%s", path);
    enum err rc = count > 0 ? ERR_OK : err_set(e, ERR_NOT_FOUND, "%s: no file ends in .yaml", path);
    for (int i = 0; i < count; i++) {
        AUTO(arena) struct arena arena = { 0 };
        if (rc == ERR_OK)
            rc = run_file(arena_format(&arena, "%s/%s", path, entries[i]->d_name), wants_events,
                          totals, e);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static enum err run_path(const char *path, bool wants_events, struct totals *totals,
                         struct error *e)
{
    struct stat info;
    bool is_directory = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    return is_directory ? run_directory(path, wants_events, totals, e)
                        : run_file(path, wants_events, totals, e);
}

int wrong_use(const char *what)
{
    (void)fprintf(stderr, "berth-sim: %s\nsee `berth-sim --help`\n", what);
    return EXIT_WRONG;
}

static int run(int argc, char **argv)
{
    bool wants_events = argc > 0 && strcmp(argv[0], "--events") == 0;
    struct totals totals = { 0 };
    int first = wants_events ? 1 : 0;
    if (first >= argc)
        return wrong_use("name the file of a scenario");
    for (int i = first; i < argc; i++) {
        struct error e = { 0 };
        if (argv[i][0] == '-')
            return wrong_use("options come before the files");
        if (run_path(argv[i], wants_events, &totals, &e) != ERR_OK) {
            (void)fprintf(stderr, "berth-sim: %s\n", e.text);
            return EXIT_WRONG;
        }
    }
    if (!wants_events)
        (void)printf("1..%zu\n", totals.count);
    return totals.failed > 0 ? EXIT_FAULT : EXIT_HELD;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return wrong_use("say what to do");
    if (strcmp(argv[argc - 1], "--help") == 0 || strcmp(argv[argc - 1], "-h") == 0)
        return fputs(usage, stdout) < 0 ? EXIT_FAULT : EXIT_HELD;
    if (strcmp(argv[1], "--version") == 0)
        return printf("berth-sim %s\n", BERTH_VERSION) < 0 ? EXIT_FAULT : EXIT_HELD;
    if (strcmp(argv[1], "run") == 0)
        return run(argc - 2, argv + 2);
    if (strcmp(argv[1], "replay") == 0)
        return replay_main(argc - 2, argv + 2);
    if (strcmp(argv[1], "whatif") == 0)
        return whatif_main(argc - 2, argv + 2);
    if (strcmp(argv[1], "bench") == 0)
        return bench_main(argc - 2, argv + 2);
    return wrong_use("there is no such command");
}
