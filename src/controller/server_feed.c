/*
 * Change feeds. A feed that resumes is first given what the journal has, page by page on a worker,
 * until it has caught up with what was published; from then on it gets events as they
 * become durable.
 */
#include <string.h>

#include "controller/exchange.h"
#include "controller/state_load.h"
#include "wire/resource.h"

enum { FEED_QUEUE_BYTES = 1024 * 1024, PAGE_ROWS = 500 };

struct feed_subscriber {
    struct server *server;
    struct exchange *exchange; /* its request lives as long as the feed */
    struct api_feed feed;
    bool is_live;
    bool is_paging;
    uint64_t after;        /* in the numbers of this feed: feed_sequence() */
    uint64_t caught_up_at; /* what was published when the page was asked for */
    struct feed_subscriber *next, *prev;
    /* of the page a worker reads */
    struct buf page;
    size_t page_rows;
    struct arena arena;
    struct wire_names names;
    enum err rc;
    struct error error;
};

static void subscriber_free(struct feed_subscriber *subscriber)
{
    struct server *server = subscriber->server;
    if (subscriber->prev != NULL)
        subscriber->prev->next = subscriber->next;
    else
        server->feeds = subscriber->next;
    if (subscriber->next != NULL)
        subscriber->next->prev = subscriber->prev;
    buf_done(&subscriber->page);
    arena_done(&subscriber->arena);
    exchange_release(subscriber->exchange);
    mem_free(subscriber);
}

/* The workload an event is about; none when it is about none. */
static struct id event_workload(const struct state *state, const struct event *event)
{
    const struct id none = { 0 };
    const struct allocation *allocation = NULL;
    if (event->type == EV_WORKLOAD_SUBMITTED)
        return event->workload_submitted.id;
    if (event->type == EV_WORKLOAD_CHANGED)
        return event->workload_changed.workload;
    if (event->type == EV_WORKLOAD_FORGOTTEN)
        return event->removed.id;
    if (event->type == EV_ALLOCATION_GRANTED)
        return event->allocation_granted.workload;
    if (event->type == EV_ALLOCATION_CHANGED && event->allocation_changed.has_segment)
        return event->allocation_changed.segment.workload;
    if (state != NULL && event->type == EV_ALLOCATION_CHANGED)
        allocation = state_allocation(state, event->allocation_changed.allocation);
    if (state != NULL && event->type == EV_ALLOCATION_NOTED)
        allocation = state_allocation(state, event->allocation_noted.allocation);
    return allocation != NULL ? allocation->r.workload : none;
}

static bool feed_wants(const struct api_feed *feed, const struct state *state,
                       const struct event *event)
{
    if (!feed_shows(event, feed->view))
        return false;
    if (!id_is_none(feed->tenant) && !id_eq(feed->tenant, event->tenant))
        return false;
    return id_is_none(feed->workload) || id_eq(feed->workload, event_workload(state, event));
}

static void event_line(const struct event *event, enum feed_view view,
                       const struct wire_names *names, struct buf *out)
{
    AUTO(buf) struct buf data = { 0 };
    AUTO(buf) struct buf id = { 0 };
    feed_encode(event, view, names, &data);
    while (data.size > 0 && data.data[data.size - 1] == '\n')
        data.data[--data.size] = '\0';
    buf_format(&id, "%llu", (unsigned long long)feed_sequence(event, view));
    http_event_format(out, buf_str(&id), str_of(event_name(event->type)), buf_str(&data));
}

static enum err page_row(void *arg, const struct store_row *row, struct error *e)
{
    struct feed_subscriber *subscriber = arg;
    AUTO(arena) struct arena arena = { 0 };
    struct event event;
    enum err rc = state_decode_row(NULL, row, &arena, &event, e);
    if (rc != ERR_OK)
        return rc;
    subscriber->page_rows++;
    subscriber->after = feed_sequence(&event, subscriber->feed.view);
    if (feed_wants(&subscriber->feed, NULL, &event))
        event_line(&event, subscriber->feed.view, &subscriber->names, &subscriber->page);
    return ERR_OK;
}

static void page_run(void *arg)
{
    struct feed_subscriber *subscriber = arg;
    const struct query_page page = { .tenant = subscriber->feed.tenant,
                                     .after = subscriber->after,
                                     .limit = PAGE_ROWS };
    struct query *query = NULL;
    const char *path = subscriber->server->berthd->store_path;
    subscriber->error = (struct error){ 0 };
    subscriber->rc = query_open_sqlite(path, &query, &subscriber->error);
    if (subscriber->rc == ERR_OK)
        subscriber->rc = query_events(query, &page, page_row, subscriber, &subscriber->error);
    query_free(query);
}

static void page_next(struct feed_subscriber *subscriber);

static void page_done(void *arg)
{
    struct feed_subscriber *subscriber = arg;
    struct server *server = subscriber->server;
    subscriber->is_paging = false;
    subscriber->exchange->is_waiting = false;
    struct http_request *http = exchange_http(subscriber->exchange);
    if (http == NULL) {
        subscriber_free(subscriber);
        return;
    }
    if (subscriber->rc != ERR_OK) {
        http_feed_end(http); /* the client resumes where it was */
        return;
    }
    AUTO(buf) struct buf id = { 0 };
    buf_format(&id, "%llu", (unsigned long long)subscriber->after);
    if (subscriber->page.size > 0 &&
        http_feed_send(http, buf_str(&subscriber->page), buf_str(&id)) != ERR_OK)
        return; /* too slow: it was told where to resume, and its end follows */
    buf_clear(&subscriber->page);
    if (subscriber->page_rows == 0 && subscriber->caught_up_at == server->published) {
        subscriber->is_live = true;
        return;
    }
    page_next(subscriber);
}

static void page_next(struct feed_subscriber *subscriber)
{
    arena_reset(&subscriber->arena);
    const struct state *state = engine_state(subscriber->server->berthd->engine);
    subscriber->names = wire_names_copy(state, &subscriber->arena);
    if (subscriber->feed.view == FEED_TENANT) {
        uint8_t *key = arena_new(&subscriber->arena, 1, sizeof(state->id_key));
        memcpy(key, state->id_key, sizeof(state->id_key));
        subscriber->names.hide_key = key;
    }
    subscriber->page_rows = 0;
    subscriber->caught_up_at = subscriber->server->published;
    subscriber->is_paging = true;
    subscriber->exchange->is_waiting = true;
    loop_work(subscriber->server->berthd->loop, page_run, page_done, subscriber);
}

/* Replaces exchange_on_end: the subscriber goes with its request. */
static void feed_on_end(void *user, enum http_end end)
{
    struct feed_subscriber *subscriber = user;
    (void)end;
    subscriber->exchange->is_gone = true;
    if (!subscriber->is_paging)
        subscriber_free(subscriber);
}

void feed_start(struct exchange *exchange)
{
    struct server *server = exchange->server;
    struct http_request *http = exchange_http(exchange);
    static const struct http_response response = { .status = 200 };
    if (http == NULL)
        return;
    struct feed_subscriber *subscriber = mem_new(1, sizeof(*subscriber));
    subscriber->server = server;
    subscriber->exchange = exchange;
    subscriber->feed = exchange->result.feed;
    subscriber->next = server->feeds;
    if (server->feeds != NULL)
        server->feeds->prev = subscriber;
    server->feeds = subscriber;
    http_request_set_user(http, subscriber, feed_on_end);
    http_feed_start(http, &response, FEED_QUEUE_BYTES);
    if (!subscriber->feed.has_after) {
        subscriber->is_live = true;
        return;
    }
    subscriber->after = subscriber->feed.after;
    page_next(subscriber);
}

/* One event as one kind of reader sees it, made when the first of them wants it. */
struct feed_copy {
    struct buf line, id;
};

static void feed_copy_fill(struct feed_copy *copy, const struct state *state,
                           const struct event *event, enum feed_view view)
{
    struct wire_names names = wire_names_of(state);
    if (copy->line.size > 0)
        return;
    names.hide_key = view == FEED_TENANT ? state->id_key : NULL;
    event_line(event, view, &names, &copy->line);
    buf_format(&copy->id, "%llu", (unsigned long long)feed_sequence(event, view));
}

void feeds_publish(struct server *server, const struct event *event)
{
    const struct state *state = engine_state(server->berthd->engine);
    struct feed_copy copies[] = {
        [FEED_TENANT] = { .line = { 0 } }, [FEED_OPERATOR] = { .line = { 0 } }
    };
    struct feed_subscriber *next = NULL;
    for (struct feed_subscriber *s = server->feeds; s != NULL; s = next) {
        next = s->next;
        struct http_request *http = exchange_http(s->exchange);
        if (!s->is_live || http == NULL || !feed_wants(&s->feed, state, event))
            continue;
        struct feed_copy *copy = &copies[s->feed.view];
        feed_copy_fill(copy, state, event, s->feed.view);
        if (http_feed_send(http, buf_str(&copy->line), buf_str(&copy->id)) != ERR_OK)
            s->is_live = false; /* dropped with a resume point; its end follows */
    }
    for (size_t i = 0; i < COUNT_OF(copies); i++) {
        buf_done(&copies[i].line);
        buf_done(&copies[i].id);
    }
}

void feeds_end(struct server *server)
{
    struct feed_subscriber *next = NULL;
    for (struct feed_subscriber *s = server->feeds; s != NULL; s = next) {
        next = s->next;
        struct http_request *http = exchange_http(s->exchange);
        if (http != NULL)
            http_feed_end(http);
    }
}
