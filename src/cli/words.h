/*
 * words.h - the words of a command line: which command, its options, its arguments. Options that
 * every command has may stand anywhere, those of a command after it.
 */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "cli/cli.h"

/* Fills `named` and, when they name one, `command`, with `values` and `arguments`. False: a
 * complaint was printed. `cli->argv` is set. */
bool words_read(struct cli *cli, int argc);
/* Is it the first word of some command of two? */
bool words_is_noun(const char *word);

#endif
