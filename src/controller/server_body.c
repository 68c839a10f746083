/* Bodies that go into the blob store as they come: uploaded code and image archives. */
#include "controller/exchange.h"

enum { BODY_TIMEOUT_MS = 60000 };

static void on_chunk(struct http_request *request, struct str bytes, void *arg)
{
    struct exchange *exchange = arg;
    (void)request;
    if (exchange->body_rc == ERR_OK) /* else the rest is read and dropped: the answer says why */
        exchange->body_rc = blob_writer_add(exchange->writer, bytes, &exchange->body_error);
}

/* 0: it comes in chunks, of whatever size. A length too large is the body limit's to refuse. */
static int64_t announced_bytes(struct http_request *request)
{
    int64_t size = 0;
    struct str text = http_request_field(request, "content-length");
    return text.size > 0 && str_to_i64(text, 0, INT64_MAX, &size) ? size : 0;
}

void body_start(struct exchange *exchange, struct http_request *request)
{
    struct server *server = exchange->server;
    struct error e = { 0 };
    struct api_context context = exchange_context(exchange);
    const struct http_body_sink sink = { .on_chunk = on_chunk, .arg = exchange };
    enum err rc = api_handle(&exchange->request, &context, &exchange->result, &e);
    if (rc == ERR_OK)
        rc = blob_writer_new(server->berthd->blobs, (int64_t)exchange->result.store_body.bytes_max,
                             announced_bytes(request), &exchange->writer, &e);
    if (rc != ERR_OK) {
        exchange_refuse(exchange, &e);
        return;
    }
    http_request_set_body_max(request, exchange->result.store_body.bytes_max);
    http_request_set_body_timeout(request, BODY_TIMEOUT_MS);
    http_request_stream_body(request, &sink);
}

/*
 * What is known of the bytes becomes a command. They stay only if that is accepted; it goes in the
 * same turn, so nobody else can have come to rely on what is new.
 */
static void body_known(struct exchange *exchange)
{
    struct error e = { 0 };
    struct api_context context = exchange_context(exchange);
    const struct berthd *berthd = exchange->server->berthd;
    const struct api_stored stored = exchange->stored;
    bool is_image = exchange->result.store_body.kind == API_BODY_IMAGE;
    bool is_new = false;
    bool is_accepted = false;
    enum err rc =
        api_stored(&exchange->request, &context, &exchange->stored, &exchange->result, &e);
    if (rc == ERR_OK)
        rc = blob_writer_publish(exchange->writer, &is_new, &e);
    if (rc == ERR_OK)
        is_accepted = exchange_command(exchange);
    else
        exchange_refuse(exchange, &e);
    if (is_accepted)
        return;
    if (is_new)
        blobs_remove(berthd->blobs, &stored.digest);
    if (is_image)
        images_forget(berthd->images, engine_state(berthd->engine), &stored.manifest);
}

struct inspection {
    struct exchange *exchange;
    const char *path;
    struct arena arena;
    struct image_defaults defaults;
    enum err rc;
    struct error error;
};

static void inspection_run(void *arg)
{
    struct inspection *inspection = arg;
    inspection->rc = image_archive_read(inspection->path, &inspection->arena,
                                        &inspection->exchange->stored.manifest,
                                        &inspection->defaults, &inspection->error);
}

static void inspection_done(void *arg)
{
    struct inspection *inspection = arg;
    struct exchange *exchange = inspection->exchange;
    exchange->is_waiting = false;
    if (inspection->rc == ERR_OK)
        inspection->rc = images_keep(exchange->server->berthd->images, &exchange->stored.manifest,
                                     &inspection->defaults, &inspection->error);
    if (exchange->is_gone)
        exchange_release(exchange);
    else if (inspection->rc != ERR_OK)
        exchange_refuse(exchange, &inspection->error);
    else
        body_known(exchange);
    arena_done(&inspection->arena);
    mem_free(inspection);
}

void body_finish(struct exchange *exchange)
{
    struct berthd *berthd = exchange->server->berthd;
    struct error *e = &exchange->body_error;
    enum err rc = exchange->body_rc;
    if (rc == ERR_OK)
        rc = blob_writer_seal(exchange->writer, &exchange->result.store_body.expected,
                              &exchange->stored.digest, &exchange->stored.size_bytes, e);
    if (rc != ERR_OK) {
        exchange_refuse(exchange, e);
        return;
    }
    if (exchange->result.store_body.kind == API_BODY_UPLOAD) {
        body_known(exchange);
        return;
    }
    struct inspection *inspection = mem_new(1, sizeof(*inspection));
    inspection->exchange = exchange;
    inspection->path = blob_writer_path(exchange->writer);
    exchange->is_waiting = true;
    loop_work(berthd->loop, inspection_run, inspection_done, inspection);
}
