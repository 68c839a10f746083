/* help.h - help on every level, from the table of commands. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

const struct cli_option *cli_global_options(size_t *count);

/* One line on a noun, or NULL. */
const char *help_noun_summary(const char *noun); /* for tests */

void help_all(void);
void help_noun(const char *noun);
void help_command(const struct cli_command *command);

#endif
