/* completion.c - completion scripts for bash and zsh, from the table of commands. */
#include <stdio.h>
#include <string.h>

#include "cli/help.h"
#include "cli/special.h"

/* The first words: verbs of their own, and each noun once. */
static void print_words(void)
{
    const char *noun = NULL;
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        const struct cli_command *c = *row;
        if (c->noun == NULL)
            (void)printf("%s ", c->verb);
        else if (noun == NULL || strcmp(noun, c->noun) != 0)
            (void)printf("%s ", c->noun);
        noun = c->noun;
    }
}

static void print_options(const struct cli_command *command)
{
    size_t count = 0;
    const struct cli_option *globals = cli_global_options(&count);
    for (size_t i = 0; i < command->option_count; i++)
        (void)printf("--%s ", command->options[i].name);
    for (size_t i = 0; i < count; i++)
        (void)printf("--%s ", globals[i].name);
}

static void print_verbs(const char *noun)
{
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        if ((*row)->noun != NULL && strcmp((*row)->noun, noun) == 0)
            (void)printf("%s ", (*row)->verb);
    }
}

static void print_cases(void)
{
    const char *noun = NULL;
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        const struct cli_command *c = *row;
        if (c->noun != NULL && (noun == NULL || strcmp(noun, c->noun) != 0)) {
            (void)printf("        %s) offers=\"", c->noun);
            print_verbs(c->noun);
            (void)puts("\" ;;");
        }
        (void)printf("        \"%s%s%s\") offers=\"", c->noun != NULL ? c->noun : "",
                     c->noun != NULL ? " " : "", c->verb);
        print_options(c);
        (void)puts("\" ;;");
        noun = c->noun;
    }
}

/* Options that may stand before the command, and which of them take the next word along. */
static void print_globals(bool only_with_value)
{
    size_t count = 0;
    const struct cli_option *globals = cli_global_options(&count);
    const char *separator = only_with_value ? "|" : " ";
    const char *before = "";
    for (size_t i = 0; i < count; i++) {
        if (only_with_value && globals[i].kind == OPTION_FLAG)
            continue;
        (void)printf("%s--%s", before, globals[i].name);
        if (only_with_value && globals[i].letter != 0)
            (void)printf("|-%c", globals[i].letter);
        before = separator;
    }
}

/* A function for bash, which zsh can run as well. Its words are not called `words`: zsh
 * has those. */
static void print_function(const char *name)
{
    (void)printf("%s() {\n", name);
    (void)puts("    local offers=\"\" one=\"\" two=\"\" word i\n"
               "    local current=\"${COMP_WORDS[COMP_CWORD]}\"\n"
               "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
               "        word=\"${COMP_WORDS[i]}\"\n"
               "        case \"$word\" in");
    (void)printf("        ");
    print_globals(true);
    (void)puts(") i=$((i + 1)) ;;\n"
               "        -*) ;;\n"
               "        *) if [ -z \"$one\" ]; then one=\"$word\"; elif [ -z \"$two\" ]; then "
               "two=\"$word\"; fi ;;\n"
               "        esac\n"
               "    done\n"
               "    if [ -z \"$one\" ]; then");
    (void)printf("        offers=\"");
    print_words();
    print_globals(false);
    (void)puts("\"\n    else\n        case \"$one\" in");
    print_cases();
    (void)puts("        esac\n"
               "        if [ -n \"$two\" ]; then\n"
               "            case \"$one $two\" in");
    print_cases();
    (void)puts("            esac\n"
               "        fi\n"
               "    fi\n"
               "    COMPREPLY=($(compgen -W \"$offers\" -- \"$current\"))\n"
               "}");
}

static void print_bash(void)
{
    (void)puts("# completion of berth for bash; made by `berth completion bash`");
    print_function("_berth");
    (void)puts("complete -o default -F _berth berth");
}

/* For a directory of $fpath, where the first use runs the file as the function it is named
 * after; or to be sourced. */
static void print_zsh(void)
{
    (void)puts("#compdef berth\n"
               "# completion of berth for zsh; made by `berth completion zsh`\n"
               "autoload -U +X bashcompinit && bashcompinit");
    print_function("_berth_offers");
    (void)puts("_berth() {\n"
               "    _bash_complete -o default -F _berth_offers\n"
               "}\n"
               "if [ \"$funcstack[1]\" = _berth ]; then\n"
               "    _berth\n"
               "else\n"
               "    compdef _berth berth\n"
               "fi");
}

enum cli_exit run_completion(struct cli *cli)
{
    const char *shell = cli->arguments[0];
    if (strcmp(shell, "bash") == 0) {
        print_bash();
    } else if (strcmp(shell, "zsh") == 0) {
        print_zsh();
    } else {
        return cli_usage(cli, "completion is there for bash and zsh, not for %s", shell);
    }
    return CLI_OK;
}
