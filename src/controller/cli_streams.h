/*
 * cli_streams.h - streams that people open: a command or terminal in a running workload, a tree out
 * of or into a workload or a volume. The controller says who may, signs a ticket for the node and
 * passes bytes both ways with bounded memory; the node obeys the ticket alone.
 */
#ifndef CONTROLLER_CLI_STREAMS_H
#define CONTROLLER_CLI_STREAMS_H

#include "controller/berthd.h"

struct cli_streams;

/* Borrows `berthd`. */
struct cli_streams *cli_streams_new(struct berthd *berthd);
void cli_streams_free(struct cli_streams *streams); /* their links are down; NULL is a no-op */

/* A stream on a link that is no agent's. Takes it, or closes it with a reason. */
void cli_streams_open(struct cli_streams *streams, struct link_stream *stream,
                      const struct conn_peer *peer, const struct stream_header *header);

/* Who hears what a node sends. */
struct stream_end {
    const struct link_stream_events *events;
    void *arg;
};

/*
 * A command in a running workload for a user who is not on a link: browsers, over terminal.h.
 * `header` is of STREAM_EXEC with a command. Judges the token (or the peer) as for command lines;
 * `out` is the stream to the node, with the ticket already on it.
 */
enum err cli_streams_exec(struct berthd *berthd, const struct conn_peer *peer,
                          const struct stream_header *header, const struct stream_end *end,
                          struct link_stream **out, struct error *e) MUST_CHECK;

#endif
