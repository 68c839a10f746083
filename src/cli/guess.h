/*
 * guess.h - what a person probably meant by a word that means nothing: a command, an option, or the
 * name of something that the controller knows.
 */
#ifndef CLI_GUESS_H
#define CLI_GUESS_H

#include "cli/cli.h"

/* All-zero but for the word. */
struct guess {
    const char *word;
    const char *best; /* of what was tried so far; NULL: nothing is near. Borrowed */
    size_t distance;  /* of `best` */
};

/* Remembers the candidate when it is nearer than those before: few letters missing,
 * added, wrong or swapped. */
void guess_try(struct guess *guess, const char *candidate);
/* "; did you mean X?", or "". */
const char *guess_hint(struct cli *cli, const struct guess *guess);

/* As cli_fail. Where the controller says that something has no such name, names that are
 * near are told. */
enum cli_exit cli_refused(struct cli *cli, const struct error *e);

#endif
