/*
 * full.h - what `berth` leaves to another program. The command line is two programs of one source:
 * `berth` speaks over the local socket and loads next to nothing, because loading OpenSSL and
 * libarchive takes longer than a request; `berth-full` has everything. near.c and full.c define the
 * same functions, and those of near.c (with run_exec and the like) go on as the other program.
 */
#ifndef CLI_FULL_H
#define CLI_FULL_H

#include "cli/cli.h"

/* Before anything is read or sent. `berth` becomes berth-full here where the command or the server
 * needs that; an error says that it could not. */
enum err cli_program_choose(struct cli *cli, struct error *e) MUST_CHECK;
/* For https:// servers. */
const struct http_transport *cli_transport(void);

#endif
