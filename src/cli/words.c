#include "cli/words.h"

#include <string.h>

#include "cli/guess.h"
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

static bool value_add(struct cli *cli, const struct cli_option *option, const char *text)
{
    if (cli->value_count == CLI_VALUES_MAX) {
        (void)cli_usage(cli, "more than %d options", CLI_VALUES_MAX);
        return false;
    }
    cli->values[cli->value_count++] = (struct cli_value){ option, text };
    return true;
}

/* What a long option was meant to be: one of the command's, or of every command's. */
static const char *option_hint(struct cli *cli, const char *name, size_t length)
{
    struct guess guess = { .word = str_c(&cli->arena, (struct str){ name, length }) };
    size_t count = 0;
    const struct cli_option *globals = cli_global_options(&count);
    for (size_t i = 0; i < count; i++)
        guess_try(&guess, globals[i].name);
    for (size_t i = 0; cli->command != NULL && i < cli->command->option_count; i++)
        guess_try(&guess, cli->command->options[i].name);
    return guess.best != NULL ? arena_format(&cli->arena, "; did you mean --%s?", guess.best) : "";
}

/* Reads one option at argv[*at]; leaves *at at its last word. False: usage was printed. */
static bool option_read(struct cli *cli, int argc, int *at)
{
    const char *word = cli->argv[*at];
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    size_t length = equals != NULL ? (size_t)(equals - word - 2) : strlen(word) - (is_long ? 2 : 0);
    const struct cli_option *option =
        is_long ? option_find(cli, word + 2, length, 0) : option_find(cli, NULL, 0, word[1]);
    if (option == NULL) {
        (void)cli_usage(cli, "no such option%s: %s%s",
                        cli->command == NULL ? " before the command" : "", word,
                        is_long ? option_hint(cli, word + 2, length) : "");
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
        text = cli->argv[++*at];
    if (option->kind != OPTION_FLAG && text == NULL) {
        (void)cli_usage(cli, "--%s wants a value: %s", option->name, option->metavar);
        return false;
    }
    return value_add(cli, option, text);
}

bool words_is_noun(const char *word)
{
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        if ((*row)->noun != NULL && strcmp((*row)->noun, word) == 0)
            return true;
    }
    return false;
}

/* The row that `named` names in full, or NULL. */
static const struct cli_command *command_named(const struct cli *cli)
{
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        const char *noun = (*row)->noun;
        bool is_here = noun == NULL ? cli->named_count == 1
                                    : cli->named_count == 2 && strcmp(noun, cli->named[0]) == 0;
        if (is_here && strcmp((*row)->verb, cli->named[cli->named_count - 1]) == 0)
            return *row;
    }
    return NULL;
}

/* False: no command begins like this, and nothing after it can be read. */
static bool name_read(struct cli *cli, const char *word)
{
    if (cli->named_count == 0 && strcmp(word, "help") == 0)
        return value_add(cli, option_find(cli, word, strlen(word), 0), NULL); /* as --help */
    cli->named[cli->named_count++] = word;
    cli->command = command_named(cli);
    return cli->command != NULL || (cli->named_count == 1 && words_is_noun(word));
}

/* Whether the next argument is the first word of a command that this command runs: all that follows
 * is that command's own, options too. */
static bool begins_command(const struct cli *cli)
{
    const char *wanted = cli->command->arguments;
    const char *at = wanted != NULL ? strstr(wanted, "COMMAND") : NULL;
    if (at == NULL)
        return false;
    int before = strncmp(wanted, "WORKLOAD ", strlen("WORKLOAD ")) == 0 ? 1 : 0;
    return cli->argument_count == before;
}

bool words_read(struct cli *cli, int argc)
{
    cli->arguments = arena_new(&cli->arena, (size_t)argc + 1, sizeof(char *));
    for (int i = 1; i < argc; i++) {
        char *word = cli->argv[i];
        bool is_option = word[0] == '-' && word[1] != '\0';
        bool is_end = cli->command != NULL && strcmp(word, "--") == 0;
        if (is_end || (cli->command != NULL && !is_option && begins_command(cli))) {
            for (i += is_end; i < argc; i++)
                cli->arguments[cli->argument_count++] = cli->argv[i];
        } else if (is_option) {
            if (!option_read(cli, argc, &i))
                return false;
        } else if (cli->command != NULL) {
            cli->arguments[cli->argument_count++] = word;
        } else if (!name_read(cli, word)) {
            return true;
        }
    }
    return true;
}
