/*
 * logship.h - takes the output of workloads from their nodes into the log store, and tells a node
 * what may go only once it is on disk here: answers are collected and follow one sync.
 */
#ifndef CONTROLLER_LOGSHIP_H
#define CONTROLLER_LOGSHIP_H

#include "controller/logstore.h"
#include "model/state.h"
#include "net/link.h"
#include "wire/link.h"

struct logship;

/* Borrows both. */
struct logship *logship_new(struct loop *loop, struct logstore *logs);
void logship_free(struct logship *ship); /* NULL is a no-op */

/*
 * Where the output of an allocation belongs. True only for allocations that are on this node now,
 * or were when their output began to come in: a node cannot write into another's output.
 */
bool logship_key(struct logship *ship, const struct state *state, struct id node,
                 const struct log_position *position, struct log_key *out);

/* Sends LOG_WANTED after the next sync, if the link is still up then. Copies. */
void logship_answer(struct logship *ship, struct link *link, const struct log_message *wanted);
/* The link is going down: nothing is sent on it any more. */
void logship_drop(struct logship *ship, const struct link *link);

/* Receives the bytes of one output from `offset` on. */
void logship_take(struct logship *ship, struct link_stream *stream, const struct log_key *key,
                  uint64_t offset);

#endif
