/*
 * stream.h - one berth-link/1 stream to the controller, between descriptors of ours: terminals,
 * commands, trees. The token travels in the stream's header.
 */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include "cli/cli.h"
#include "wire/link.h"

struct stream_run {
    struct stream_header header; /* `token` is filled in */
    int input_fd;                /* sent as standard input; -1: none */
    int output_fd, error_fd;
    bool is_terminal; /* output_fd is one: its size is sent, changes too */
};

struct stream_exit {
    bool is_signal;
    int number;
};

/* Runs to the end. ERR_DENIED, ERR_NOT_FOUND, ...: refused, with the server's reason. */
enum err stream_run(struct cli *cli, struct stream_run *run, struct stream_exit *out,
                    struct error *e) MUST_CHECK;

#endif
