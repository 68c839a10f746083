/* Requests: their slots, by which a late answer finds out that nobody waits for it, and
 * what they say. */
#include <assert.h>

#include "base/mem.h"
#include "net/http_internal.h"

/* --- Requests and their slots. --- */

struct http_request *http_request_new(struct channel *channel)
{
    struct http_server *server = channel->server;
    if (server->free_slot == 0) {
        struct slot fresh = { 0 };
        vec_push(&server->slots, fresh);
        server->free_slot = (uint32_t)server->slots.count;
    }
    uint32_t index = server->free_slot - 1;
    struct slot *slot = &server->slots.items[index];
    server->free_slot = slot->next_free;
    slot->next_free = 0;
    slot->generation = slot->generation == UINT32_MAX ? 1 : slot->generation + 1;

    struct http_request *request = mem_new(1, sizeof(*request));
    slot->request = request;
    request->channel = channel;
    request->ref = (struct http_ref){ index, slot->generation };
    request->body_max = server->options.body_bytes_max;
    request->body_timeout_ms = server->options.body_timeout_ms;
    channel->request = request;
    return request;
}

void http_request_free(struct http_request *request, enum http_end end)
{
    struct http_server *server = request->channel->server;
    struct slot *slot = &server->slots.items[request->ref.slot];
    assert(slot->request == request);
    slot->request = NULL;
    slot->next_free = server->free_slot;
    server->free_slot = request->ref.slot + 1;
    request->channel->request = NULL;
    if (request->feed_next != NULL) {
        request->feed_next->feed_prev = request->feed_prev;
        request->feed_prev->feed_next = request->feed_next;
        server->stats.feed_count--;
    }
    if (request->on_end != NULL)
        request->on_end(request->user, end);
    http_head_done(&request->head);
    buf_done(&request->body);
    buf_done(&request->feed_id);
    mem_free(request);
}

struct http_ref http_request_ref(const struct http_request *request)
{
    return request->ref;
}

struct http_request *http_find(struct http_server *server, struct http_ref ref)
{
    if (ref.generation == 0 || ref.slot >= server->slots.count)
        return NULL;
    const struct slot *slot = &server->slots.items[ref.slot];
    return slot->generation == ref.generation ? slot->request : NULL;
}

/* --- What a request says. --- */

enum http_method http_request_method(const struct http_request *request)
{
    return request->head.method;
}

size_t http_request_segment_count(const struct http_request *request)
{
    return request->head.segments.count;
}

struct str http_request_segment(const struct http_request *request, size_t index)
{
    assert(index < request->head.segments.count);
    return request->head.segments.items[index];
}

bool http_request_has_final_slash(const struct http_request *request)
{
    return request->head.has_final_slash;
}

size_t http_request_query_count(const struct http_request *request)
{
    return request->head.query.count;
}

struct http_pair http_request_query(const struct http_request *request, size_t index)
{
    assert(index < request->head.query.count);
    return request->head.query.items[index];
}

struct str http_request_target(const struct http_request *request)
{
    return request->head.target;
}

struct str http_request_field(const struct http_request *request, const char *name)
{
    return http_head_field(&request->head, name);
}

struct str http_request_body(const struct http_request *request)
{
    return buf_str(&request->body);
}

const struct conn_peer *http_request_peer(const struct http_request *request)
{
    return conn_peer(request->channel->conn);
}

void http_request_set_user(struct http_request *request, void *user,
                           void (*on_end)(void *user, enum http_end end))
{
    request->user = user;
    request->on_end = on_end;
}

void *http_request_user(const struct http_request *request)
{
    return request->user;
}

void http_request_set_body_max(struct http_request *request, uint64_t bytes)
{
    request->body_max = bytes;
}

void http_request_set_body_timeout(struct http_request *request, int64_t timeout_ms)
{
    request->body_timeout_ms = timeout_ms;
}

void http_request_stream_body(struct http_request *request, const struct http_body_sink *sink)
{
    request->sink = *sink;
}
