/*
 * terminal.h - a terminal in a running workload for browsers: WebSocket messages on one side, the exec
 * stream of a node on the other. docs/API.md describes the messages.
 *
 * A browser cannot send a token in the head of a WebSocket, so the upgrade itself is open to everybody
 * of the same origin, and the first message says who asks. Until then nothing is looked up, and who
 * does not speak within seconds is gone.
 */
#ifndef CONTROLLER_TERMINAL_H
#define CONTROLLER_TERMINAL_H

#include "controller/exchange.h"

/* Answers the exchange's request: with 101, or with a problem. */
void terminal_open(struct exchange *exchange, struct http_request *http);
/* Starts to close all of them: the controller stops. */
void terminals_end(struct server *server);

#endif
