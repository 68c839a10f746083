/*
 * http_head.h - the head of a request, from bytes to checked facts. Pure; for http.c and
 * the fuzzer.
 *
 * Two passes: http_head_scan looks at lines as they arrive and refuses what a lenient reader on the
 * way could understand differently (bare LF, NUL, folded lines, a space before the colon);
 * http_head_parse has libhttp-parser take the finished head apart and judges what it says.
 */
#ifndef NET_HTTP_HEAD_H
#define NET_HTTP_HEAD_H

#include "net/http.h"

/* Why a head was refused: the status to answer and a static text. Status 0: it was not. */
struct http_refusal {
    unsigned status;
    const char *detail;
};

struct http_scan {
    size_t line;  /* where the line begins that is not complete yet */
    size_t count; /* complete lines before it */
};

/*
 * Goes on where `scan` stopped; `data` is the head from its first byte. Returns the size of the
 * head with its empty line, or 0: more is needed, or refused.
 */
size_t http_head_scan(struct http_scan *scan, struct str data, size_t bytes_max, size_t count_max,
                      struct http_refusal *refusal);

enum http_framing { HTTP_FRAMING_NONE, HTTP_FRAMING_LENGTH, HTTP_FRAMING_CHUNKED };

/* All-zero is empty. Slices point into the two buffers. */
struct http_head {
    struct buf raw;  /* as it came, field names in lower case */
    struct buf text; /* the decoded parts of the target */
    enum http_method method;
    struct str target;
    bool has_final_slash;
    bool keeps_alive;
    bool expects_continue;
    enum http_framing framing;
    uint64_t length; /* of HTTP_FRAMING_LENGTH */
    VEC(struct str) segments;
    VEC(struct http_pair) query;
    VEC(struct http_pair) fields;
};

/* `bytes` is a whole head that http_head_scan accepted. False: refused, and `out` only
 * fit for done. */
MUST_CHECK bool http_head_parse(struct http_head *out, struct str bytes,
                                struct http_refusal *refusal);
struct str http_head_field(const struct http_head *head, const char *name); /* data NULL: absent */
void http_head_done(struct http_head *head);

/* True when a comma-separated field value holds the token, in any case of letters. */
bool http_has_token(struct str value, const char *token);

#endif
