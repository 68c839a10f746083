/*
 * terminal.h - a terminal in a running workload for browsers: WebSocket messages on one side, the
 * exec stream of a node on the other. Subprotocol berth-terminal/1:
 *
 *     client, first   {"token":"...","command":["/bin/sh"],"member":0,"rows":24,"columns":80,
 *                     "term":"xterm-256color"}, each of them optional
 *     client, later   {"rows":50,"columns":132} the size has changed; {"end":true} end of the input;
 *                     binary: what is typed
 *     server          binary: what the terminal shows; then {"exit":N}, {"signal":N} or
 *                     {"error":"..."} and a close: 1000 the command ended, 1001 the
 *                     controller stops, 1002 a message that is none of these, 4000 refused
 *                     or lost, as the error says
 *
 * A browser cannot send a token in the head of a WebSocket, so the upgrade itself is open to
 * everybody of the same origin, and the first message says who asks (a token in the head counts as
 * well). Until then nothing is looked up, and who does not speak within seconds is gone.
 */
#ifndef CONTROLLER_TERMINAL_H
#define CONTROLLER_TERMINAL_H

#include "controller/exchange.h"

/* Answers the exchange's request: with 101, or with a problem. */
void terminal_open(struct exchange *exchange, struct http_request *http);
/* Starts to close all of them: the controller stops. */
void terminals_end(struct server *server);

#endif
