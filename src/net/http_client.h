/*
 * http_client.h - a small blocking HTTP/1.1 client for command lines.
 *
 * One connection, kept alive between requests and opened again when the server has closed it.
 * Redirects are not followed, proxies not used.
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include "base/str.h"

struct http_client;
struct http_transport;

/*
 * TLS, for programs that reach hosts. One that only uses the socket does not name it, and then the
 * linker leaves OpenSSL out: loading it takes longer than a request.
 */
const struct http_transport *http_client_tls(void);

struct http_client_options {
    const char *unix_path; /* or */
    const char *host;      /* name or numeric address, always TLS */
    uint16_t port;
    const struct http_transport *tls; /* http_client_tls() for a host; NULL for a socket */
    struct str ca_pem;                /* trust anchors; or */
    const uint8_t *pin; /* SHA-256 of the server's certificate or of a CA it sends, 32 bytes */
    struct str certificate_pem; /* ours, optional */
    struct str key_pem;
    int64_t connect_timeout_ms; /* 0: 10 s */
    int64_t timeout_ms;         /* each wait for the server; 0: 60 s */
    bool ignores_time;          /* our clock may be wrong */
};

/* Connects with the first request. Strings of `options` are copied. */
MUST_CHECK enum err http_client_new(const struct http_client_options *options,
                                    struct http_client **out, struct error *e);
void http_client_free(struct http_client *client);
DEFINE_CLEANUP(http_client, struct http_client *, http_client_free)

struct http_client_field {
    struct str name;
    struct str value;
};

struct http_client_request {
    const char *method;
    struct str target; /* encoded: "/v1/workloads?limit=5" */
    const struct http_client_field *fields;
    size_t field_count;
    struct str body;
    /* Instead of `body`: fills up to `size` bytes, 0 ends it; sent chunked, or with body_length. */
    MUST_CHECK enum err (*read_body)(void *arg, void *out, size_t size, size_t *got,
                                     struct error *e);
    int64_t body_length; /* -1 or 0: unknown, chunked; used with read_body only */
    void *body_arg;      /* borrowed */
    bool may_repeat;     /* may be sent again when a kept connection turns out to be closed */
};

struct http_client_response; /* owns its bytes */
/* Returns when the head has come. The body is then read with one of the two below. */
MUST_CHECK enum err http_client_send(struct http_client *client,
                                     const struct http_client_request *request,
                                     struct http_client_response **out, struct error *e);
unsigned http_client_status(const struct http_client_response *response);
/* By lower-case name; data NULL: absent. */
struct str http_client_field(const struct http_client_response *response, const char *name);
/* Up to `size` bytes as they come; *got 0: the end. */
MUST_CHECK enum err http_client_read(struct http_client_response *response, void *out, size_t size,
                                     size_t *got, struct error *e);
/* All of it, at most `max` bytes (ERR_LIMIT); appended. */
MUST_CHECK enum err http_client_read_all(struct http_client_response *response, size_t max,
                                         struct buf *out, struct error *e);
/* An unread rest closes the connection. */
void http_client_response_free(struct http_client_response *response);
DEFINE_CLEANUP(http_client_response, struct http_client_response *, http_client_response_free)

/* The next event of a text/event-stream; comments are skipped. ERR_NOT_FOUND: the feed
 * has ended. */
struct http_client_event {
    struct buf id; /* the last one seen: where to resume */
    struct buf event;
    struct buf data;
};
MUST_CHECK enum err http_client_read_event(struct http_client_response *response, size_t max,
                                           struct http_client_event *event, struct error *e);
void http_client_event_done(struct http_client_event *event);

#endif
