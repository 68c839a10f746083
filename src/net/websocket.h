/*
 * websocket.h - WebSocket messages (RFC 6455) after an upgrade; frames are read and
 * written by wslay.
 *
 * No extensions. Whole messages are handed over; their size and the unsent queue are bounded.
 */
#ifndef NET_WEBSOCKET_H
#define NET_WEBSOCKET_H

#include "net/http.h"

struct websocket;

struct websocket_events {
    void (*on_message)(struct websocket *socket, struct str bytes, bool is_text, void *arg);
    void (*on_room)(struct websocket *socket, void *arg); /* after ERR_LIMIT; may be NULL */
    /* The end, once: code 1000 normal, 1006 no close frame came. It is freed when this returns. */
    void (*on_close)(struct websocket *socket, unsigned code, const char *why, void *arg);
};

struct websocket_options {
    const char *subprotocol;  /* must be among those the client offers; NULL: none */
    size_t message_bytes_max; /* 0: 64 KiB; beyond: closed with 1009 */
    size_t queue_bytes_max;   /* 0: 256 KiB */
    int64_t ping_ms;          /* 0: 20 s; twice without any sign of life ends it */
};

/* True when the request asks for a WebSocket at all. */
bool websocket_is_wanted(const struct http_request *request);
/* Answers the request: with 101, or with 400/426 and an error. Origin is for the caller
 * to check. */
MUST_CHECK enum err websocket_accept(struct http_request *request,
                                     const struct websocket_options *options,
                                     const struct websocket_events *events, void *arg,
                                     struct websocket **out, struct error *e);
/* ERR_LIMIT: no room now. ERR_UNAVAILABLE: closing. */
MUST_CHECK enum err websocket_send(struct websocket *socket, struct str bytes, bool is_text);
/* Back-pressure on what the client sends; a few messages that have come already may still
 * follow. */
void websocket_pause(struct websocket *socket);
void websocket_resume(struct websocket *socket);
/* Starts the closing handshake; on_close follows. `reason` at most 123 bytes. */
void websocket_close(struct websocket *socket, unsigned code, const char *reason);

#endif
