/* usage.c - options of every command, complaints and the exit statuses that go with them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/help.h"
#include "cli/safe.h"
#include "model/cause.h"

static const struct cli_option global_options[] = {
    { "output", 'o', OPTION_TEXT, OPTION_LOCAL, NULL, "FORMAT", "table, json or yaml" },
    { "quiet", 'q', OPTION_FLAG, OPTION_LOCAL, NULL, NULL, "only ids" },
    { "server", 's', OPTION_TEXT, OPTION_LOCAL, NULL, "URL",
      "https://HOST:PORT or unix:PATH (BERTH_SERVER)" },
    { "ca", 0, OPTION_TEXT, OPTION_LOCAL, NULL, "FILE", "the controller's authority (BERTH_CA)" },
    { "help", 'h', OPTION_FLAG, OPTION_LOCAL, NULL, NULL, "this help" },
    { "version", 0, OPTION_FLAG, OPTION_LOCAL, NULL, NULL, "the version of berth" },
};

const struct cli_option *cli_global_options(size_t *count)
{
    *count = COUNT_OF(global_options);
    return global_options;
}

enum cli_exit cli_usage(const struct cli *cli, const char *fmt, ...)
{
    char text[1024]; /* a longer complaint is cut */
    AUTO(buf) struct buf safe = { 0 };
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    safe_lines(str_of(text), &safe);
    (void)fprintf(stderr, "berth: %s\n", safe.data);
    if (cli->command != NULL)
        (void)fprintf(stderr, "see `berth %s%s%s --help`\n",
                      cli->command->noun != NULL ? cli->command->noun : "",
                      cli->command->noun != NULL ? " " : "", cli->command->verb);
    else
        (void)fputs("see `berth --help`\n", stderr);
    return CLI_USAGE;
}

/* What was asked for cannot be right as it stands: wrong words here, or the controller refuses a
 * field. Work that no node can hold is well said all the same. */
static bool is_usage(const struct error *e)
{
    return e->code == ERR_INVALID && (e->cause == CAUSE_NONE || e->cause == CAUSE_INVALID);
}

enum cli_exit cli_fail(const struct error *e)
{
    static const enum cli_exit exits[ERR_COUNT] = {
        [ERR_OK] = CLI_OK,
        [ERR_INVALID] = CLI_FAILED,
        [ERR_NOT_FOUND] = CLI_NOT_FOUND,
        [ERR_CONFLICT] = CLI_CONFLICT,
        [ERR_LIMIT] = CLI_FAILED,
        [ERR_DENIED] = CLI_DENIED,
        [ERR_UNAUTHENTICATED] = CLI_DENIED,
        [ERR_RATE] = CLI_FAILED,
        [ERR_UNAVAILABLE] = CLI_FAILED,
        [ERR_IO] = CLI_FAILED,
        [ERR_CORRUPT] = CLI_FAILED,
    };
    AUTO(buf) struct buf safe = { 0 };
    safe_lines(str_of(e->text), &safe); /* it may quote what somebody else has named */
    (void)fflush(stdout);
    (void)fprintf(stderr, "berth: %s\n", safe.data);
    return is_usage(e) ? CLI_USAGE : exits[e->code];
}

const char *cli_get(const struct cli *cli, const char *name)
{
    for (size_t left = cli->value_count; left > 0; left--) {
        size_t i = left - 1;
        if (strcmp(cli->values[i].option->name, name) == 0)
            return cli->values[i].text;
    }
    return NULL;
}

bool cli_has(const struct cli *cli, const char *name)
{
    for (size_t i = 0; i < cli->value_count; i++) {
        if (strcmp(cli->values[i].option->name, name) == 0)
            return true;
    }
    return false;
}
