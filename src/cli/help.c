#include "cli/help.h"

#include <stdio.h>
#include <string.h>

static const char *const noun_summaries[][2] = {
    { "tenant", "isolation boundaries: own network, storage, uid range, bill" },
    { "project", "the quota tree inside a tenant" },
    { "quota", "guarantees, limits and weights of tenants and projects" },
    { "policy", "settings of the scheduler and priorities of projects, for good or for a time" },
    { "whatif", "what would follow; nothing is done" },
    { "class", "kinds of hardware" },
    { "pool", "sets of nodes of one class" },
    { "profile", "shapes that users pick" },
    { "node", "machines: join, cordon, drain, remove" },
    { "device", "accelerators of nodes" },
    { "allocation", "what the nodes hold for running work" },
    { "token", "credentials" },
    { "volume", "storage of a tenant" },
    { "reservation", "devices in windows of time" },
    { "image", "root file systems of workloads" },
    { "credential", "logins at private registries" },
    { "hook", "where owners are told what becomes of their work" },
    { "usage", "what was used" },
    { "invoice", "what it costs" },
    { "audit", "who did what" },
    { "settings", "settings of the installation" },
};

const char *help_noun_summary(const char *noun)
{
    for (size_t i = 0; i < COUNT_OF(noun_summaries); i++) {
        if (strcmp(noun_summaries[i][0], noun) == 0)
            return noun_summaries[i][1];
    }
    return NULL;
}

static void print_rows(const char *noun)
{
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        const struct cli_command *c = *row;
        bool is_here =
            noun == NULL ? c->noun == NULL : c->noun != NULL && strcmp(c->noun, noun) == 0;
        if (is_here)
            (void)printf("  %-12s %s\n", c->verb, c->summary);
    }
}

void help_all(void)
{
    (void)puts("Usage: berth COMMAND [ARGUMENTS] [OPTIONS]\n"
               "       berth NOUN VERB [ARGUMENTS] [OPTIONS]\n\n"
               "Share GPUs of many teams and customers, each as if in a cluster of its own.\n\n"
               "Commands:");
    print_rows(NULL);
    (void)puts("\nNouns (berth NOUN --help):");
    for (size_t i = 0; i < COUNT_OF(noun_summaries); i++)
        (void)printf("  %-12s %s\n", noun_summaries[i][0], noun_summaries[i][1]);
    (void)puts("\nExit status: 0 ok, 1 failed, 2 usage, 3 not found, 4 denied, 5 conflict.\n"
               "Configuration: ~/.config/berth/config.yaml (server, ca, token), BERTH_SERVER,\n"
               "BERTH_CA, BERTH_TOKEN. As root on the controller nothing is needed.\n\n"
               "Example: berth submit --project amber --image debian-12 --gpus 0.5 -- nvidia-smi");
}

/* The first example of each verb. */
static void print_examples(const char *noun)
{
    for (const struct cli_command *const *row = cli_commands; *row != NULL; row++) {
        if ((*row)->noun == NULL || strcmp((*row)->noun, noun) != 0)
            continue;
        struct str rest = str_of((*row)->examples);
        struct str first = str_cut(&rest, '\n');
        (void)printf("%.*s\n", STR_ARG(first));
    }
}

void help_noun(const char *noun)
{
    (void)printf("Usage: berth %s VERB [ARGUMENTS] [OPTIONS]\n\nVerbs:\n", noun);
    print_rows(noun);
    (void)puts("\nExamples:");
    print_examples(noun);
    (void)printf("\nsee `berth %s VERB --help`\n", noun);
}

static void print_options(const struct cli_option *options, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char left[64];
        char letter[8] = "    ";
        if (options[i].letter != 0)
            (void)snprintf(letter, sizeof(letter), "-%c, ", options[i].letter);
        (void)snprintf(left, sizeof(left), "%s--%s %s", letter, options[i].name,
                       options[i].metavar != NULL ? options[i].metavar : "");
        (void)printf("  %-34s %s\n", left, options[i].help);
    }
}

void help_command(const struct cli_command *c)
{
    size_t global_count = 0;
    const struct cli_option *globals = cli_global_options(&global_count);
    (void)printf("Usage: berth %s%s%s [OPTIONS]%s%s\n\n%s\n", c->noun != NULL ? c->noun : "",
                 c->noun != NULL ? " " : "", c->verb, c->arguments != NULL ? " " : "",
                 c->arguments != NULL ? c->arguments : "", c->summary);
    if (c->option_count > 0) {
        (void)puts("\nOptions:");
        print_options(c->options, c->option_count);
    }
    (void)puts("\nOptions of every command:");
    print_options(globals, global_count);
    (void)printf("\nExamples:\n%s\n", c->examples);
}
