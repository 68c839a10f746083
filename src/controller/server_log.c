/* Output of workloads out of the log store, as it was written or as it grows; and stored blobs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "controller/exchange.h"
#include "os/fd.h"
#include "wire/spool.h"

enum { READ_BYTES = 80 * 1024, LOOK_MS = 150, BLOB_CHUNK = 64 * 1024 };
/* Output that is still on its way when its work has ended: how long a reader waits for its next
 * byte, and for all of it before the first byte is answered. */
enum { QUIET_S = 10, SETTLE_S = 30 };

struct log_reader {
    struct server *server;
    struct exchange *exchange;
    struct api_log log;
    bool has_key;
    struct log_key key;
    uint64_t position;        /* in the spool */
    uint64_t delivered;       /* bytes of the chosen streams seen so far, skipped ones too */
    uint64_t skip;            /* bytes not wanted at the start */
    uint64_t stored;          /* bytes of the spool there at the last look that found more */
    struct mono begun, grown; /* when reading began; when `stored` grew last */
    bool is_started;          /* an answer has begun */
    struct loop_timer look;
    struct log_reader *next, *prev;
};

static void reader_free(struct log_reader *reader)
{
    struct server *server = reader->server;
    loop_timer_stop(server->berthd->loop, &reader->look);
    if (reader->prev != NULL)
        reader->prev->next = reader->next;
    else
        server->readers = reader->next;
    if (reader->next != NULL)
        reader->next->prev = reader->prev;
    exchange_release(reader->exchange);
    mem_free(reader);
}

static void reader_on_end(void *user, enum http_end end)
{
    struct log_reader *reader = user;
    (void)end;
    reader->exchange->is_gone = true;
    reader_free(reader);
}

/* Picks the output wanted: of that attempt (0: the latest) and member. */
static bool pick_entry(void *arg, const struct log_entry *entry)
{
    struct log_reader *reader = arg;
    bool is_attempt = reader->log.attempt == 0 || entry->key.attempt == reader->log.attempt;
    if (is_attempt && entry->key.rank == reader->log.member) {
        reader->key = entry->key;
        reader->has_key = true;
    }
    return true; /* attempts come in order: the last match is the latest */
}

static bool stream_is_wanted(const struct api_log *log, enum spool_stream stream)
{
    if (log->has_both)
        return true;
    return (log->stream == LOG_STDOUT) == (stream == SPOOL_STDOUT);
}

/* The part of a record that is wanted, after what is to be skipped. */
static struct str record_cut(struct log_reader *reader, const struct spool_record *record)
{
    uint64_t size = record->kind == SPOOL_GAP ? record->lost : record->bytes.size;
    uint64_t start = reader->delivered;
    reader->delivered += size;
    if (reader->delivered <= reader->skip || record->kind == SPOOL_GAP)
        return (struct str){ 0 };
    size_t cut = start < reader->skip ? (size_t)(reader->skip - start) : 0;
    return (struct str){ record->bytes.data + cut, record->bytes.size - cut };
}

static void gap_note(struct log_reader *reader, const struct spool_record *record, struct buf *out)
{
    if (record->kind == SPOOL_GAP && reader->delivered > reader->skip)
        buf_format(out, "\n[berth: %llu bytes of output were not kept here]\n",
                   (unsigned long long)record->lost);
}

/* Decodes whole records; `position` moves behind them. False: the spool is damaged. */
static bool records_take(struct log_reader *reader, struct str bytes, struct buf *out)
{
    for (;;) {
        struct spool_record record;
        enum err rc = spool_next(bytes, &record, NULL);
        if (rc == ERR_NOT_FOUND)
            return true;
        if (rc != ERR_OK)
            return false;
        if (stream_is_wanted(&reader->log, record.stream)) {
            buf_add_str(out, record_cut(reader, &record));
            gap_note(reader, &record, out);
        }
        reader->position += record.size;
        bytes.data += record.size;
        bytes.size -= record.size;
    }
}

static const struct workload *reader_workload(const struct log_reader *reader)
{
    return state_workload(engine_state(reader->server->berthd->engine), reader->log.workload);
}

static bool workload_has_ended(const struct log_reader *reader)
{
    const struct workload *workload = reader_workload(reader);
    return workload == NULL || workload_state_is_final(workload->r.state);
}

/* The workload has just ended, and of the wanted attempt not a byte is here yet. */
static bool output_is_unseen(const struct log_reader *reader)
{
    struct berthd *berthd = reader->server->berthd;
    const struct workload *workload = reader_workload(reader);
    int64_t wanted = reader->log.attempt;
    if (workload == NULL || (wanted != 0 && wanted != workload->r.attempt) ||
        !logstore_awaits(berthd->logs, workload->r.id))
        return false;
    return (!reader->has_key || reader->key.attempt < workload->r.attempt) &&
           mono_before(loop_now(berthd->loop), mono_add_s(workload->ended_at, SETTLE_S));
}

/* The attempt has ended and its node, in contact, has not sent all of it. */
static bool output_is_partial(const struct log_reader *reader)
{
    struct berthd *berthd = reader->server->berthd;
    struct log_key key;
    struct id node;
    return reader->has_key && !logstore_is_final(berthd->logs, &reader->key) &&
           state_allocation(engine_state(berthd->engine), reader->key.allocation) == NULL &&
           logstore_expected(berthd->logs, reader->key.allocation, &key, &node) &&
           nodes_link(berthd->nodes, node) != NULL;
}

/* A later attempt has begun or is to begin, and of this one no process is left. */
static bool attempt_is_over(const struct log_reader *reader)
{
    struct berthd *berthd = reader->server->berthd;
    const struct workload *workload = reader_workload(reader);
    int64_t wanted = reader->log.attempt;
    if (workload == NULL || wanted == 0 || wanted > workload->r.attempt)
        return false;
    bool is_waiting = workload->r.state == WL_QUEUED || workload->r.state == WL_HELD ||
                      workload->r.state == WL_PROVISIONING;
    if (wanted == workload->r.attempt && !is_waiting)
        return false;
    return !reader->has_key || logstore_is_final(berthd->logs, &reader->key) ||
           state_allocation(engine_state(berthd->engine), reader->key.allocation) == NULL;
}

/*
 * A state comes here before the last of the output does, and who has waited for the end wants to
 * read all of it. True: more of what has ended is on its way, and comes.
 */
static bool output_is_due(struct log_reader *reader)
{
    struct berthd *berthd = reader->server->berthd;
    struct mono now = loop_now(berthd->loop);
    uint64_t stored = reader->has_key ? logstore_size(berthd->logs, &reader->key) : 0;
    if (stored != reader->stored)
        reader->grown = now;
    reader->stored = stored;
    if (!mono_before(now, mono_add_s(reader->grown, QUIET_S)))
        return false;
    if (workload_has_ended(reader))
        return output_is_unseen(reader) || output_is_partial(reader);
    return output_is_partial(reader) || (!reader->has_key && attempt_is_over(reader));
}

static void reader_sleep(struct log_reader *reader)
{
    struct loop *loop = reader->server->berthd->loop;
    loop_timer_set(loop, &reader->look, (struct mono){ loop_now(loop).ns + LOOK_MS * NS_PER_MS });
}

/* A later attempt has begun: go on with its output. */
static bool reader_move_on(struct log_reader *reader)
{
    struct log_key before = reader->key;
    bool had_key = reader->has_key;
    logstore_list(reader->server->berthd->logs, reader->log.project, reader->log.workload,
                  pick_entry, reader);
    bool is_other =
        reader->has_key && (!had_key || !id_eq(before.allocation, reader->key.allocation));
    if (is_other)
        reader->position = 0;
    return is_other;
}

/* Nothing more comes of this attempt; for who follows the latest, of the workload. */
static bool reader_is_at_end(struct log_reader *reader)
{
    if (!reader->log.is_follow)
        return true; /* it has settled before the first byte */
    if (workload_has_ended(reader) || attempt_is_over(reader))
        return !output_is_due(reader);
    reader->grown = loop_now(reader->server->berthd->loop);
    return false;
}

/* Passes on what is stored and not yet read; false: the answer ended, or waits for room. */
static bool reader_push(struct log_reader *reader, struct http_request *http)
{
    struct berthd *berthd = reader->server->berthd;
    for (;;) {
        AUTO(buf) struct buf spool = { 0 };
        AUTO(buf) struct buf out = { 0 };
        if (http_stream_room(http) < 2 * (size_t)READ_BYTES) {
            http_stream_want_room(http); /* on_room goes on */
            return false;
        }
        uint64_t before = reader->position;
        if (!reader->has_key ||
            logstore_read(berthd->logs, &reader->key, before, READ_BYTES, &spool, NULL) != ERR_OK)
            return true;
        if (!records_take(reader, buf_str(&spool), &out) ||
            (out.size > 0 && http_stream_write(http, buf_str(&out)) != ERR_OK)) {
            http_stream_cut(http);
            return false;
        }
        if (reader->position == before)
            return true;
    }
}

/* How many bytes the chosen streams have in all, for `tail`. */
static uint64_t reader_total(struct log_reader *reader)
{
    struct log_reader counter = *reader;
    counter.skip = UINT64_MAX;
    for (;;) {
        AUTO(buf) struct buf spool = { 0 };
        AUTO(buf) struct buf out = { 0 };
        uint64_t before = counter.position;
        if (!counter.has_key ||
            logstore_read(reader->server->berthd->logs, &counter.key, counter.position, READ_BYTES,
                          &spool, NULL) != ERR_OK ||
            !records_take(&counter, buf_str(&spool), &out) || counter.position == before)
            return counter.delivered;
    }
}

static void reader_turn(void *arg);

static void reader_on_room(struct http_request *request, void *arg)
{
    (void)request;
    reader_turn(arg);
}

static void reader_begin(struct log_reader *reader, struct http_request *http)
{
    static const struct http_response response = {
        .status = 200,
        .content_type = { "application/octet-stream", sizeof("application/octet-stream") - 1 },
    };
    reader->is_started = true;
    reader->skip = reader->log.offset;
    if (reader->log.tail_bytes > 0) {
        uint64_t total = reader_total(reader);
        uint64_t tail = (uint64_t)reader->log.tail_bytes;
        reader->skip = total > tail ? total - tail : 0;
    }
    http_stream_start(http, &response, -1);
    http_stream_on_room(http, reader_on_room, reader);
}

static void reader_turn(void *arg)
{
    struct log_reader *reader = arg;
    struct http_request *http = exchange_http(reader->exchange);
    if (http == NULL)
        return;
    if (!reader->is_started) {
        struct mono now = loop_now(reader->server->berthd->loop);
        (void)reader_move_on(reader);
        if (output_is_due(reader) && mono_before(now, mono_add_s(reader->begun, SETTLE_S))) {
            reader_sleep(reader);
            return;
        }
        reader_begin(reader, http);
    }
    for (;;) {
        bool is_final =
            reader->has_key && logstore_is_final(reader->server->berthd->logs, &reader->key);
        if (!reader_push(reader, http))
            return;
        if (reader->log.is_follow && (is_final || !reader->has_key) && reader_move_on(reader))
            continue;
        if (reader_is_at_end(reader))
            http_stream_end(http);
        else
            reader_sleep(reader);
        return;
    }
}

static enum err owner_row(void *arg, const struct ended_workload *row, struct error *e)
{
    struct api_log *log = arg;
    if (id_is_none(log->tenant) || id_eq(log->tenant, row->tenant))
        log->project = row->project;
    if (!id_is_none(log->project) && log->attempt > row->attempt)
        return err_set(e, ERR_NOT_FOUND, "there is no attempt %lld: %lld of it began",
                       (long long)log->attempt, (long long)row->attempt);
    return ERR_OK;
}

/* What has left memory is looked up in the store; absent and foreign work answer alike. */
static enum err log_find(struct exchange *exchange, struct error *e)
{
    struct api_log *log = &exchange->result.log;
    char text[ID_TEXT_MAX];
    enum err rc = ERR_OK;
    if (id_is_none(log->project))
        rc = query_workload(exchange->server->berthd->query, log->workload, owner_row, log, e);
    if (id_is_none(log->project) && (rc == ERR_NOT_FOUND || rc == ERR_OK))
        return err_set(e, ERR_NOT_FOUND, "there is no workload \"%s\"",
                       id_text(ID_WORKLOAD, log->workload, text));
    return rc;
}

void log_start(struct exchange *exchange)
{
    struct server *server = exchange->server;
    struct http_request *http = exchange_http(exchange);
    if (http == NULL)
        return;
    struct error e = { 0 };
    if (log_find(exchange, &e) != ERR_OK) {
        exchange_refuse(exchange, &e);
        return;
    }
    struct log_reader *reader = mem_new(1, sizeof(*reader));
    reader->server = server;
    reader->exchange = exchange;
    reader->log = exchange->result.log;
    reader->look = (struct loop_timer){ .fn = reader_turn, .arg = reader };
    reader->begun = reader->grown = loop_now(server->berthd->loop);
    reader->next = server->readers;
    if (server->readers != NULL)
        server->readers->prev = reader;
    server->readers = reader;
    http_request_set_user(http, reader, reader_on_end);
    reader_turn(reader);
}

void logs_end(struct server *server)
{
    struct log_reader *next = NULL;
    for (struct log_reader *r = server->readers; r != NULL; r = next) {
        next = r->next;
        struct http_request *http = exchange_http(r->exchange);
        if (http != NULL)
            http_stream_cut(http);
    }
}

/* ---- blobs ----------------------------------------------------------------------------------- */

struct blob_reader {
    struct exchange *exchange;
    int fd; /* owned */
    int64_t offset, size_bytes;
};

static void blob_on_end(void *user, enum http_end end)
{
    struct blob_reader *reader = user;
    (void)end;
    fd_close(reader->fd);
    reader->exchange->is_gone = true;
    exchange_release(reader->exchange);
    mem_free(reader);
}

static void blob_push(struct http_request *http, void *arg)
{
    struct blob_reader *reader = arg;
    char *chunk = mem_new(BLOB_CHUNK, 1);
    bool is_broken = false;
    while (reader->offset < reader->size_bytes && http_stream_room(http) >= BLOB_CHUNK) {
        ssize_t got = pread(reader->fd, chunk, BLOB_CHUNK, reader->offset);
        is_broken =
            got <= 0 || http_stream_write(http, (struct str){ chunk, (size_t)got }) != ERR_OK;
        if (is_broken)
            break;
        reader->offset += got;
    }
    mem_free(chunk);
    if (is_broken)
        http_stream_cut(http);
    else if (reader->offset >= reader->size_bytes)
        http_stream_end(http);
    else
        http_stream_want_room(http); /* and here again */
}

void blob_start(struct exchange *exchange)
{
    struct http_request *http = exchange_http(exchange);
    struct error e = { 0 };
    int fd = -1;
    int64_t size_bytes = 0;
    if (http == NULL)
        return;
    if (blobs_read(exchange->server->berthd->blobs, &exchange->result.blob.digest, &fd, &size_bytes,
                   &e) != ERR_OK) {
        exchange_refuse(exchange, &e);
        return;
    }
    struct blob_reader *reader = mem_new(1, sizeof(*reader));
    *reader = (struct blob_reader){ .exchange = exchange, .fd = fd, .size_bytes = size_bytes };
    static const struct http_pair fields[] = {
        { { "content-disposition", 19 }, { "attachment", 10 } },
    };
    const struct http_response response = { .status = 200,
                                            .content_type = STR("application/octet-stream"),
                                            .fields = fields,
                                            .field_count = COUNT_OF(fields) };
    http_request_set_user(http, reader, blob_on_end);
    http_stream_start(http, &response, size_bytes);
    http_stream_on_room(http, blob_push, reader);
    blob_push(http, reader);
}
