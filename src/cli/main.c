/* main.c - finds the command's row, reads options, runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/config.h"
#include "cli/full.h"
#include "cli/help.h"

static const struct cli_option *option_in(const struct cli_option *options, size_t count,
                                          const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < count; i++) {
        bool is_named = name != NULL && strlen(options[i].name) == length &&
                        strncmp(options[i].name, name, length) == 0;
        if (is_named || (name == NULL && letter != 0 && options[i].letter == letter))
            return &options[i];
    }
    return NULL;
}

static const struct cli_option *option_find(const struct cli *cli, const char *name, size_t length,
                                            char letter)
{
    const struct cli_option *found = NULL;
    size_t count = 0;
    const struct cli_option *globals = cli_global_options(&count);
    if (cli->command != NULL)
        found = option_in(cli->command->options, cli->command->option_count, name, length, letter);
    return found != NULL ? found : option_in(globals, count, name, length, letter);
}

/* Reads one option at argv[*at]; leaves *at at its last word. False: usage was printed. */
static bool option_read(struct cli *cli, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    size_t length = equals != NULL ? (size_t)(equals - word - 2) : strlen(word) - (is_long ? 2 : 0);
    const struct cli_option *option =
        is_long ? option_find(cli, word + 2, length, 0) : option_find(cli, NULL, 0, word[1]);
    if (option == NULL) {
        (void)cli_usage(cli, "no such option: %s", word);
        return false;
    }
    const char *text = equals != NULL ? equals + 1 : NULL;
    if (!is_long && word[2] != '\0')
        text = word + 2;
    if (option->kind == OPTION_FLAG && text != NULL) {
        (void)cli_usage(cli, "--%s takes no value", option->name);
        return false;
    }
    if (option->kind != OPTION_FLAG && text == NULL && *at + 1 < argc)
        text = argv[++*at];
    if (option->kind != OPTION_FLAG && text == NULL) {
        (void)cli_usage(cli, "--%s wants a value: %s", option->name, option->metavar);
        return false;
    }
    if (cli->value_count == CLI_VALUES_MAX) {
        (void)cli_usage(cli, "more than %d options", CLI_VALUES_MAX);
        return false;
    }
    cli->values[cli->value_count++] = (struct cli_value){ option, text };
    return true;
}

/* Options may stand anywhere before `--`; the rest are arguments. */
static bool words_read(struct cli *cli, int argc, char **argv, int from)
{
    cli->arguments = arena_new(&cli->arena, (size_t)argc + 1, sizeof(char *));
    for (int i = from; i < argc; i++) {
        bool is_option = argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && strcmp(argv[i], "--") == 0) {
            while (++i < argc)
                cli->arguments[cli->argument_count++] = argv[i];
            break;
        }
        /* What follows the first argument of a command that runs one belongs to that. */
        bool takes_command = cli->command != NULL && cli->command->arguments != NULL &&
                             strstr(cli->command->arguments, "COMMAND") != NULL;
        if (takes_command && cli->argument_count > 0 && !is_option) {
            while (i < argc)
                cli->arguments[cli->argument_count++] = argv[i++];
            break;
        }
        if (!is_option)
            cli->arguments[cli->argument_count++] = argv[i];
        else if (!option_read(cli, argc, argv, &i))
            return false;
    }
    return true;
}

/* The row for the first one or two words; *used says how many they were. */
static const struct cli_command *command_find(int argc, char **argv, int *used)
{
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        const struct cli_command *command = *row;
        if (command->noun == NULL && argc > 1 && strcmp(argv[1], command->verb) == 0) {
            *used = 1;
            return command;
        }
        if (command->noun != NULL && argc > 2 && strcmp(argv[1], command->noun) == 0 &&
            strcmp(argv[2], command->verb) == 0) {
            *used = 2;
            return command;
        }
    }
    return NULL;
}

static bool noun_exists(const char *word)
{
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        if ((*row)->noun != NULL && strcmp((*row)->noun, word) == 0)
            return true;
    }
    return false;
}

/* No command was named in full: help, or what comes nearest. */
static int without_command(struct cli *cli, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    bool wants_help = word == NULL || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
                      strcmp(word, "help") == 0;
    if (wants_help && argc > 2 && noun_exists(argv[2])) {
        help_noun(argv[2]);
        return CLI_OK;
    }
    if (wants_help) {
        help_all();
        return word == NULL ? CLI_USAGE : CLI_OK;
    }
    if (strcmp(word, "--version") == 0) {
        (void)puts("berth 0.1.0");
        return CLI_OK;
    }
    if (noun_exists(word)) {
        help_noun(word);
        bool is_asked = argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0);
        return is_asked ? CLI_OK : CLI_USAGE;
    }
    return (int)cli_usage(cli, "no such command: %s", word);
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
    if (cli_has(cli, "help")) {
        help_command(command);
        return CLI_OK;
    }
    if (!format_read(cli))
        return (int)cli_usage(cli, "--output: table, json or yaml is wanted");
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
    return (int)(command->run != NULL ? command->run(cli) : cli_run_request(cli));
}

int main(int argc, char **argv)
{
    static struct cli cli; /* large; one a process */
    int used = 0;
    (void)signal(SIGPIPE, SIG_DFL); /* `berth list | head` ends quietly */
    cli.argv = argv;
    cli.command = command_find(argc, argv, &used);
    int status = CLI_USAGE;
    if (cli.command == NULL)
        status = without_command(&cli, argc, argv);
    else if (words_read(&cli, argc, argv, used + 1))
        status = run(&cli);
    http_client_free(cli.client);
    if (cli.token.size > 0)
        explicit_bzero(cli.token.data, cli.token.size);
    buf_done(&cli.token);
    arena_done(&cli.arena);
    if (fflush(stdout) != 0 && status == CLI_OK)
        status = CLI_FAILED;
    return status;
}
