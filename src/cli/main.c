/* main.c - runs what the words ask for. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/config.h"
#include "cli/full.h"
#include "cli/guess.h"
#include "cli/help.h"
#include "cli/special.h"
#include "cli/words.h"

/* A verb or noun, or a verb of the noun that was named. */
static const char *command_hint(struct cli *cli)
{
    const char *noun = cli->named_count == 2 ? cli->named[0] : NULL;
    struct guess guess = { .word = cli->named[cli->named_count - 1] };
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        const struct cli_command *c = *row;
        bool is_of_noun = noun != NULL && c->noun != NULL && strcmp(c->noun, noun) == 0;
        if (noun == NULL)
            guess_try(&guess, c->noun != NULL ? c->noun : c->verb);
        else if (is_of_noun)
            guess_try(&guess, c->verb);
    }
    return guess.best == NULL
               ? ""
               : arena_format(&cli->arena, "; did you mean berth %s%s%s?", noun != NULL ? noun : "",
                              noun != NULL ? " " : "", guess.best);
}

/* No command was named in full: help, or what comes nearest. */
static int without_command(struct cli *cli)
{
    const char *const *named = cli->named;
    bool wants_help = cli_has(cli, "help");
    if (cli->named_count == 2)
        return (int)cli_usage(cli, "no such command: %s %s%s", named[0], named[1],
                              command_hint(cli));
    if (cli->named_count == 0)
        help_all();
    else if (words_is_noun(named[0]))
        help_noun(named[0]);
    else
        return (int)cli_usage(cli, "no such command: %s%s", named[0], command_hint(cli));
    return wants_help ? CLI_OK : CLI_USAGE;
}

static bool format_read(struct cli *cli)
{
    const char *text = cli_get(cli, "output");
    static const char *const names[] = { "table", "json", "yaml" };
    for (size_t i = 0; text != NULL && i < COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            cli->format = (enum cli_format)i;
            return true;
        }
    }
    return text == NULL;
}

static int run(struct cli *cli)
{
    const struct cli_command *command = cli->command;
    struct error e = { 0 };
    if (cli_has(cli, "version")) {
        (void)puts("berth " BERTH_VERSION);
        return CLI_OK;
    }
    if (command == NULL)
        return without_command(cli);
    if (cli_has(cli, "help")) {
        help_command(command);
        return CLI_OK;
    }
    if (!format_read(cli))
        return (int)cli_usage(cli, "--output: table, json or yaml is wanted, not %s",
                              cli_get(cli, "output"));
    unsigned count = (unsigned)cli->argument_count;
    if (count < command->arguments_min)
        return (int)cli_usage(cli, "%s is missing", command->arguments);
    if (count > command->arguments_max)
        return (int)cli_usage(cli, "too many arguments: %s",
                              cli->arguments[command->arguments_max]);
    cli->is_quiet = cli_has(cli, "quiet");
    enum err rc = cli_config_load(cli, &e);
    if (rc == ERR_OK)
        rc = cli_program_choose(cli, &e);
    if (rc != ERR_OK)
        return (int)cli_fail(&e);
    if (command->look != NULL && cli_has(cli, "dry-run"))
        return (int)run_dry(cli);
    return (int)(command->run != NULL ? command->run(cli) : cli_run_request(cli));
}

int main(int argc, char **argv)
{
    static struct cli cli;          /* large; one a process */
    (void)signal(SIGPIPE, SIG_DFL); /* `berth list | head` ends quietly */
    cli.argv = argv;
    int status = words_read(&cli, argc) ? run(&cli) : CLI_USAGE;
    http_client_free(cli.client);
    if (cli.token.size > 0)
        explicit_bzero(cli.token.data, cli.token.size);
    buf_done(&cli.token);
    arena_done(&cli.arena);
    if (fflush(stdout) != 0 && status == CLI_OK)
        status = CLI_FAILED;
    return status;
}
