/*
 * server.h - the HTTP side of the controller: listeners, authentication, rates, routes, feeds. What
 * a route does is api/'s; here is when an answer may leave, and to whom.
 */
#ifndef CONTROLLER_SERVER_H
#define CONTROLLER_SERVER_H

#include "controller/berthd.h"

struct server;

/* Opens the unix socket and, if configured, the TLS port. Borrows `berthd`. */
enum err server_open(struct berthd *berthd, struct server **out, struct error *e) MUST_CHECK;
/* No new requests; feeds end; answers that wait still go out. */
/* Takes over renewed keys (keys_refresh), for connections to come. */
enum err server_rekey(struct server *server, struct error *e) MUST_CHECK;
void server_drain(struct server *server);
void server_close(struct server *server);          /* NULL is a no-op */
uint16_t server_port(const struct server *server); /* 0: no TLS port */
int server_local_fd(const struct server *server);  /* listens at the unix socket; borrowed */
int server_secure_fd(const struct server *server); /* the same for TLS; -1: there is none */

/* A durable event, to every feed that may see it. */
void server_publish(struct server *server, const struct event *event, struct str body);

#endif
