#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "controller/cli_streams.h"
#include "controller/exchange.h"
#include "controller/server_metrics.h"
#include "controller/terminal.h"
#include "identity/token.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "os/random.h"
#include "os/zone_file.h"

enum {
    BURST_SECONDS = 10,
    LOOP_SHARE = 4,
    ANSWER_KEEP_S = 86400,
    KEY_BYTES_MAX = 255,
};

/* ---- operations for handlers ---------------------------------------------------------------- */

static struct id op_new_id(void *arg)
{
    (void)arg;
    return id_in_time(random_id(), clock_wall());
}

static struct str op_seal(void *arg, struct arena *arena, struct str secret)
{
    struct server *server = arg;
    AUTO(buf) struct buf sealed = { 0 };
    keys_seal(server->berthd->keys, secret, &sealed);
    return str_copy(arena, buf_str(&sealed));
}

static int64_t op_blob_size(void *arg, struct id tenant, const struct digest *digest)
{
    struct server *server = arg;
    const struct state *state = engine_state(server->berthd->engine);
    for (const struct upload *u = state->first_upload; u != NULL; u = u->next) {
        if (id_eq(u->r.tenant, tenant) && memcmp(&u->r.digest, digest, sizeof(*digest)) == 0 &&
            blobs_has(server->berthd->blobs, digest))
            return u->r.size_bytes;
    }
    return -1;
}

static enum err op_zone_rule(void *arg, struct str name, struct arena *arena, struct str *out,
                             struct error *e)
{
    AUTO(buf) struct buf rule = { 0 };
    (void)arg;
    enum err rc = zone_file_rule(name, clock_wall(), &rule, e);
    if (rc == ERR_OK)
        *out = str_copy(arena, buf_str(&rule));
    return rc;
}

/* Answering at all shows that the loop turns. */
static const char *op_health(void *arg)
{
    const struct berthd *berthd = ((struct server *)arg)->berthd;
    return pulse_problem(&berthd->pulse, loop_now(berthd->loop));
}

static const char *op_readiness(void *arg)
{
    struct server *server = arg;
    return engine_refusal(server->berthd->engine);
}

static void metric(struct buf *out, const char *name, const char *kind, const char *help,
                   uint64_t value)
{
    buf_format(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, kind, name,
               (unsigned long long)value);
}

static void op_metrics(void *arg, struct buf *out)
{
    struct server *server = arg;
    struct engine_counters counters = engine_counters(server->berthd->engine);
    struct http_stats http = http_server_stats(server->http);
    metric(out, "berth_commands_total", "counter", "Commands decided.", counters.commands);
    metric(out, "berth_refusals_total", "counter", "Commands refused.", counters.refusals);
    metric(out, "berth_events_total", "counter", "Events decided.", counters.events);
    metric(out, "berth_batches_total", "counter", "Batches given to the store.", counters.batches);
    metric(out, "berth_lost_batches_total", "counter", "Batches the store refused.",
           counters.lost_batches);
    metric(out, "berth_drifts_total", "counter", "Self-checks that found a difference.",
           counters.drifts);
    server_metrics_of_engine(server->berthd->engine, out);
    metric(out, "berth_http_requests_total", "counter", "HTTP requests.", http.request_count);
    metric(out, "berth_http_refusals_total", "counter", "HTTP requests that broke the protocol.",
           http.refusal_count);
    metric(out, "berth_feed_drops_total", "counter", "Change feeds dropped for being slow.",
           http.feed_drop_count);
    metric(out, "berth_http_connections", "gauge", "Open HTTP connections.", http.conn_count);
    metric(out, "berth_feeds", "gauge", "Open change feeds.", http.feed_count);
    metric(out, "berth_agents_connected", "gauge", "Agents with a live link.",
           nodes_connected(server->berthd->nodes));
    metric(out, "berth_blob_bytes", "gauge", "Bytes of uploads and images stored.",
           (uint64_t)blobs_bytes(server->berthd->blobs));
}

static int64_t op_clock_skew_ms(void *arg, struct id node)
{
    const struct server *server = arg;
    return nodes_skew_ms(server->berthd->nodes, node);
}

static bool op_image_progress(void *arg, struct id node, const struct digest *manifest,
                              struct image_progress_message *out)
{
    const struct server *server = arg;
    return nodes_image_progress(server->berthd->nodes, node, manifest, out);
}

static bool op_image_command(void *arg, const struct digest *manifest, struct arena *arena,
                             struct str_list *out)
{
    struct server *server = arg;
    const struct image_defaults *own = images_defaults(server->berthd->images, manifest);
    if (own == NULL)
        return false;
    *out = image_defaults_args(own, arena);
    return true;
}

static enum err op_may_ask(void *arg, struct id tenant, struct error *e)
{
    return errand_check(arg, tenant, e);
}

/* ---- the life of an exchange ----------------------------------------------------------------- */

struct http_request *exchange_http(const struct exchange *exchange)
{
    return exchange->is_gone ? NULL : http_find(exchange->server->http, exchange->ref);
}

void exchange_release(struct exchange *exchange)
{
    if (!exchange->is_gone || exchange->is_waiting)
        return;
    blob_writer_free(exchange->writer);
    api_answer_done(&exchange->answer);
    if (exchange->result.secret.size > 0) /* in our own arena */
        explicit_bzero((void *)(uintptr_t)exchange->result.secret.data,
                       exchange->result.secret.size);
    arena_done(&exchange->arena);
    mem_free(exchange);
}

static void exchange_on_end(void *user, enum http_end end)
{
    struct exchange *exchange = user;
    (void)end;
    exchange->is_gone = true;
    exchange_release(exchange);
}

struct api_context exchange_context(struct exchange *exchange)
{
    struct berthd *berthd = exchange->server->berthd;
    return (struct api_context){
        .state = engine_state(berthd->engine),
        .sched = engine_sched(berthd->engine),
        .actor = exchange->actor,
        .now = ledger_clock_now(&berthd->clock),
        .wall = clock_wall(),
        .arena = &exchange->arena,
        .version = STR(BERTH_VERSION),
        .openapi = buf_str(&exchange->server->openapi),
        .ops = &exchange->server->ops,
    };
}

static void field_add(struct http_response *response, struct http_pair *fields, const char *name,
                      const char *value)
{
    if (value[0] != '\0')
        fields[response->field_count++] = (struct http_pair){ str_of(name), str_of(value) };
}

static void respond(struct http_request *http, const struct api_answer *answer, const char *allow)
{
    char etag[32] = "";
    char retry[24] = "";
    struct http_pair fields[5];
    struct http_response response = { .status = answer->status,
                                      .content_type = str_of(answer->content_type),
                                      .body = buf_str(&answer->body),
                                      .fields = fields };
    if (answer->version != 0)
        (void)snprintf(etag, sizeof(etag), "\"%llu\"", (unsigned long long)answer->version);
    if (answer->retry_after_s > 0)
        (void)snprintf(retry, sizeof(retry), "%lld", (long long)answer->retry_after_s);
    field_add(&response, fields, "etag", etag);
    field_add(&response, fields, "location", answer->location);
    field_add(&response, fields, "retry-after", retry);
    field_add(&response, fields, "www-authenticate",
              answer->status == 401 ? "Bearer realm=\"berth\"" : "");
    field_add(&response, fields, "allow", allow);
    http_respond(http, &response);
}

static void answer_send(struct exchange *exchange)
{
    struct http_request *http = exchange_http(exchange);
    if (http != NULL)
        respond(http, &exchange->answer, "");
}

static void exchange_settled(struct engine_waiter *waiter, enum err rc, const struct error *why)
{
    struct exchange *exchange = (struct exchange *)(void *)waiter;
    exchange->is_waiting = false;
    if (rc != ERR_OK) {
        struct error e = { 0 };
        (void)err_cause(&e, rc, CAUSE_UNAVAILABLE, "%s",
                        why != NULL ? why->text : "the change could not be stored");
        api_problem(&e, &exchange->answer);
    }
    if (exchange->is_gone)
        exchange_release(exchange);
    else
        answer_send(exchange); /* ends it: exchange_on_end follows */
}

void exchange_answer(struct exchange *exchange)
{
    exchange->is_waiting = true;
    exchange->waiter.settled = exchange_settled;
    engine_wait(exchange->server->berthd->engine, &exchange->waiter);
}

void exchange_refuse(struct exchange *exchange, const struct error *e)
{
    api_problem(e, &exchange->answer);
    if (exchange->answer.status >= 500 && e->code != ERR_UNAVAILABLE)
        log_error("a request failed inside", LOG_ERR(e));
    exchange_answer(exchange);
}

/* ---- Idempotency-Key ------------------------------------------------------------------------- */

static void hash_add(crypto_hash_sha256_state *hash, struct str bytes)
{
    uint64_t size = bytes.size;
    (void)crypto_hash_sha256_update(hash, (const unsigned char *)&size, sizeof(size));
    (void)crypto_hash_sha256_update(hash, (const unsigned char *)bytes.data, bytes.size);
}

static enum err key_read(struct exchange *exchange, struct http_request *http, struct error *e)
{
    struct str key = http_request_field(http, "idempotency-key");
    if (key.data == NULL || !route_is_idempotent(exchange->request.route))
        return ERR_OK;
    if (key.size == 0 || key.size > KEY_BYTES_MAX)
        return err_field(e, "Idempotency-Key", "Idempotency-Key: 1 to %d characters are wanted",
                         KEY_BYTES_MAX);
    exchange->has_key = true;
    crypto_hash_sha256_state hash;
    (void)crypto_hash_sha256_init(&hash);
    hash_add(&hash,
             (struct str){ (const char *)&exchange->actor.token, sizeof(exchange->actor.token) });
    hash_add(&hash, exchange->actor.name);
    hash_add(&hash, key);
    (void)crypto_hash_sha256_final(&hash, exchange->key.bytes);

    (void)crypto_hash_sha256_init(&hash);
    hash_add(&hash, str_of(http_method_name(http_request_method(http))));
    hash_add(&hash, http_request_target(http));
    hash_add(&hash, exchange->request.body);
    (void)crypto_hash_sha256_final(&hash, exchange->body_hash.bytes);
    return ERR_OK;
}

/* True when the request was answered before (or refused now): nothing is left to do. */
static bool key_replay(struct exchange *exchange)
{
    struct berthd *berthd = exchange->server->berthd;
    struct store_answer stored;
    struct error e = { 0 };
    uint64_t number = engine_answer_number(berthd->engine, &exchange->key);
    if (number == 0)
        return false;
    const struct store_answer *answer = engine_pending_answer(berthd->engine, &exchange->key);
    if (answer == NULL) {
        const struct answer_lookup lookup = { number, exchange->key, clock_wall() };
        enum err rc = query_answer(berthd->query, &lookup, &exchange->arena, &stored, &e);
        if (rc == ERR_NOT_FOUND)
            return false;
        if (rc != ERR_OK) {
            exchange_refuse(exchange, &e);
            return true;
        }
        answer = &stored;
    }
    if (memcmp(&answer->body_hash, &exchange->body_hash, sizeof(exchange->body_hash)) != 0) {
        (void)err_cause(&e, ERR_CONFLICT, CAUSE_CONFLICT,
                        "this Idempotency-Key was used for another request; use a new key");
        exchange_refuse(exchange, &e);
        return true;
    }
    exchange->answer.status = (unsigned)answer->status;
    exchange->answer.content_type =
        answer->status < 400 ? "application/json" : "application/problem+json";
    exchange->answer.version = answer->version;
    buf_clear(&exchange->answer.body);
    buf_add_str(&exchange->answer.body, answer->content);
    exchange_answer(exchange);
    return true;
}

static void key_remember(struct exchange *exchange)
{
    if (!exchange->has_key)
        return;
    struct api_answer told_once = { 0 };
    if (route_has_secret(exchange->request.route) && exchange->answer.status < 300) {
        /* Secrets are not kept. Who did not get the answer must not get a second one unawares. */
        struct error e = { 0 };
        (void)err_cause(&e, ERR_CONFLICT, CAUSE_CONFLICT,
                        "this request has already made a token, and its secret is told only once: "
                        "revoke it (berth token list) and make another under a new key");
        api_problem(&e, &told_once);
    }
    const struct api_answer *kept = told_once.status != 0 ? &told_once : &exchange->answer;
    const struct store_answer answer = {
        .key = exchange->key,
        .body_hash = exchange->body_hash,
        .status = kept->status,
        .content = buf_str(&kept->body),
        .version = kept->version,
        .expires = { clock_wall().ns + ANSWER_KEEP_S * NS_PER_S },
    };
    engine_remember(exchange->server->berthd->engine, &answer);
    buf_done(&told_once.body);
}

/* ---- commands and queries -------------------------------------------------------------------- */

bool exchange_command(struct exchange *exchange)
{
    struct berthd *berthd = exchange->server->berthd;
    struct error e = { 0 };
    if (exchange->has_key && key_replay(exchange))
        return true;
    enum err rc = engine_command(berthd->engine, &exchange->result.command, &e);
    bool is_accepted = rc == ERR_OK;
    if (rc == ERR_OK) {
        struct api_context context = exchange_context(exchange);
        rc = api_finish(&exchange->request, &context, &exchange->result, &exchange->answer, &e);
    }
    if (rc != ERR_OK)
        api_problem(&e, &exchange->answer);
    if (rc == ERR_OK)
        key_remember(exchange); /* a refusal may be tried again under the same key */
    exchange_answer(exchange);
    berthd_wake(berthd);
    return is_accepted;
}

static void query_next(struct server *server);

static void query_run(void *arg)
{
    struct exchange *exchange = arg;
    exchange->query_error = (struct error){ 0 };
    exchange->query_rc = api_query_run(&exchange->result.query, exchange->server->berthd->lists,
                                       &exchange->answer, &exchange->query_error);
}

static void query_done(void *arg)
{
    struct exchange *exchange = arg;
    struct server *server = exchange->server;
    exchange->is_waiting = false;
    server->is_querying = false;
    if (exchange->is_gone)
        exchange_release(exchange);
    else if (exchange->query_rc != ERR_OK)
        exchange_refuse(exchange, &exchange->query_error);
    else
        answer_send(exchange); /* what the store says is durable */
    query_next(server);
}

static void query_next(struct server *server)
{
    struct exchange *exchange = server->first_query;
    if (server->is_querying || exchange == NULL)
        return;
    server->first_query = exchange->next;
    if (server->first_query == NULL)
        server->last_query = &server->first_query;
    server->is_querying = true;
    loop_work(server->berthd->loop, query_run, query_done, exchange);
}

/* One connection for lists, one query at a time: lists must not crowd out commits. */
static void query_queue(struct exchange *exchange)
{
    struct server *server = exchange->server;
    exchange->is_waiting = true;
    exchange->next = NULL;
    *server->last_query = exchange;
    server->last_query = &exchange->next;
    query_next(server);
}

/* ---- who asks, and how often ----------------------------------------------------------------- */

static enum err authenticate(struct exchange *exchange, struct http_request *http, struct error *e)
{
    struct berthd *berthd = exchange->server->berthd;
    static const struct str scheme = { "Bearer ", 7 };
    const struct conn_peer *peer = http_request_peer(http);
    struct str field = http_request_field(http, "authorization");
    if (field.data == NULL && peer->is_unix && peer->uid == 0) {
        exchange->actor = (struct actor){ .role = ROLE_ADMIN, .name = STR("root") };
        return ERR_OK;
    }
    if (field.data == NULL && route_is_open(exchange->request.route))
        return ERR_OK;
    if (field.data == NULL)
        return err_cause(e, ERR_UNAUTHENTICATED, CAUSE_UNAUTHENTICATED,
                         "a token is needed: Authorization: Bearer ... (BERTH_TOKEN)");
    if (!str_starts(field, scheme))
        return err_cause(e, ERR_UNAUTHENTICATED, CAUSE_UNAUTHENTICATED,
                         "only Bearer tokens are accepted here");
    struct str token = { field.data + scheme.size, field.size - scheme.size };
    enum err rc =
        token_authenticate(engine_state(berthd->engine), token, clock_wall(), &exchange->actor, e);
    if (rc == ERR_OK) /* the record may be removed while the request waits */
        exchange->actor.name = str_copy(&exchange->arena, exchange->actor.name);
    return rc;
}

static struct rate_bucket *bucket_of(struct server *server, struct id token, struct mono now)
{
    struct rate_bucket *bucket = id_map_get(&server->buckets, token);
    if (bucket != NULL)
        return bucket;
    bucket = mem_new(1, sizeof(*bucket));
    bucket->token = token;
    bucket->tokens_milli = server->berthd->config.requests_per_s * BURST_SECONDS * 1000;
    bucket->filled = now;
    bucket->next = server->first_bucket;
    server->first_bucket = bucket;
    id_map_put(&server->buckets, token, bucket);
    return bucket;
}

/* A token bucket a token: sustained rate, bursts of ten seconds of it. Root on this
 * machine is free. */
static enum err rate_check(struct exchange *exchange, struct error *e)
{
    struct server *server = exchange->server;
    int64_t rate = server->berthd->config.requests_per_s;
    if (id_is_none(exchange->actor.token))
        return ERR_OK;
    struct mono now = loop_now(server->berthd->loop);
    struct rate_bucket *bucket = bucket_of(server, exchange->actor.token, now);
    int64_t full_milli = rate * BURST_SECONDS * 1000;
    int64_t elapsed_ms =
        MIN_OF((now.ns - bucket->filled.ns) / NS_PER_MS, (int64_t)BURST_SECONDS * 1000);
    bucket->tokens_milli = MIN_OF(bucket->tokens_milli + elapsed_ms * rate, full_milli);
    if (elapsed_ms > 0)
        bucket->filled = now;
    if (bucket->tokens_milli < 1000)
        return err_cause(e, ERR_RATE, CAUSE_RATE_LIMITED,
                         "more than %lld requests a second with this token, or such as took more "
                         "than its part of the controller's time; slow down",
                         (long long)rate);
    bucket->tokens_milli -= 1000;
    return ERR_OK;
}

/* Requests differ a thousandfold in what they cost the loop, for which all others wait. So what a
 * token may ask in a second is worth a LOOP_SHARE-th of a second of the loop, too. */
static void rate_charge(struct server *server, struct id token, int64_t spent_ns)
{
    struct rate_bucket *bucket = id_map_get(&server->buckets, token);
    int64_t rate = server->berthd->config.requests_per_s;
    int64_t spent_us = spent_ns * 1000 / NS_PER_MS;
    int64_t cost_milli = rate * LOOP_SHARE * spent_us / 1000;
    if (bucket != NULL) /* root has none */
        bucket->tokens_milli =
            MAX_OF(bucket->tokens_milli - cost_milli, -rate * BURST_SECONDS * 1000);
}

/* ---- heads and bodies ------------------------------------------------------------------------ */

static enum err head_match(struct exchange *exchange, struct http_request *http, char allow[64],
                           struct error *e)
{
    struct str segments[SEGMENTS_MAX];
    size_t count = http_request_segment_count(http);
    if (count > SEGMENTS_MAX || http_request_has_final_slash(http))
        return err_cause(e, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "no such path");
    for (size_t i = 0; i < count; i++)
        segments[i] = str_copy(&exchange->arena, http_request_segment(http, i));
    enum err rc =
        api_match(http_request_method(http), segments, count, &exchange->request, allow, e);
    if (rc != ERR_OK)
        return rc;
    size_t queries = http_request_query_count(http);
    if (queries > QUERIES_MAX)
        return err_set(e, ERR_INVALID, "at most %d parameters are accepted", QUERIES_MAX);
    for (size_t i = 0; i < queries; i++) {
        struct http_pair pair = http_request_query(http, i);
        exchange->query[i].name = str_copy(&exchange->arena, pair.name);
        exchange->query[i].value = str_copy(&exchange->arena, pair.value);
    }
    exchange->request.query = exchange->query;
    exchange->request.query_count = queries;
    exchange->request.if_match = str_copy(&exchange->arena, http_request_field(http, "if-match"));
    exchange->request.last_event_id =
        str_copy(&exchange->arena, http_request_field(http, "last-event-id"));
    exchange->request.request = random_id();
    return ERR_OK;
}

static enum err head_check(struct exchange *exchange, struct http_request *http, char allow[64],
                           struct error *e)
{
    enum err rc = head_match(exchange, http, allow, e);
    if (rc == ERR_OK && route_is_socket(exchange->request.route))
        return ERR_OK; /* its first message says who asks */
    if (rc == ERR_OK)
        rc = authenticate(exchange, http, e);
    if (rc == ERR_OK)
        rc = rate_check(exchange, e);
    if (rc == ERR_OK && !route_is_open(exchange->request.route))
        rc = api_permit(exchange->request.route, &exchange->actor, e);
    return rc;
}

static void head_refuse(struct http_request *http, const struct error *e, const char *allow)
{
    struct api_answer answer = { 0 };
    if (allow[0] != '\0')
        api_protocol_problem(405, "The path does not take this method", e->text, &answer);
    else
        api_problem(e, &answer);
    respond(http, &answer, allow);
    api_answer_done(&answer);
}

/* A command line on the unix socket that wants streams: the same link as over TLS. */
static bool link_is_wanted(struct http_request *http)
{
    return http_request_segment_count(http) == 2 && str_is(http_request_segment(http, 0), "v1") &&
           str_is(http_request_segment(http, 1), "link") &&
           str_is(http_request_field(http, "upgrade"), TLS_ALPN_LINK);
}

static void on_header(struct http_request *http, void *arg)
{
    struct server *server = arg;
    if (link_is_wanted(http)) {
        static const struct http_pair field = { { "upgrade", 7 }, { TLS_ALPN_LINK, 12 } };
        nodes_take(server->berthd->nodes, http_upgrade(http, &field, 1));
        return;
    }
    struct exchange *exchange = mem_new(1, sizeof(*exchange));
    struct error e = { 0 };
    char allow[64] = "";
    exchange->server = server;
    exchange->ref = http_request_ref(http);
    http_request_set_user(http, exchange, exchange_on_end);
    if (head_check(exchange, http, allow, &e) != ERR_OK) {
        head_refuse(http, &e, allow);
        return;
    }
    if (route_is_socket(exchange->request.route)) {
        terminal_open(exchange, http);
        return;
    }
    http_request_set_body_max(http, route_body_max(exchange->request.route));
    if (route_stores_body(exchange->request.route))
        body_start(exchange, http);
}

static void outcome_run(struct exchange *exchange)
{
    switch (exchange->result.outcome) {
    case API_ANSWER:
        exchange->answer = exchange->result.answer;
        exchange->result.answer = (struct api_answer){ 0 };
        exchange_answer(exchange);
        break;
    case API_COMMAND:
        (void)exchange_command(exchange);
        break;
    case API_QUERY:
        query_queue(exchange);
        break;
    case API_RESOLVE:
        resolve_start(exchange);
        break;
    case API_FEED:
        feed_start(exchange);
        break;
    case API_LOG:
        log_start(exchange);
        break;
    case API_BLOB:
        blob_start(exchange);
        break;
    case API_WHATIF:
    case API_SNAPSHOT:
        errand_start(exchange);
        break;
    case API_STORE_BODY:
        body_finish(exchange);
        break;
    }
}

static void request_take(struct exchange *exchange, struct http_request *http)
{
    struct error e = { 0 };
    if (exchange->result.outcome == API_STORE_BODY) {
        body_finish(exchange);
        return;
    }
    exchange->request.body = str_copy(&exchange->arena, http_request_body(http));
    struct api_context context = exchange_context(exchange);
    enum err rc = key_read(exchange, http, &e);
    if (rc == ERR_OK)
        rc = api_handle(&exchange->request, &context, &exchange->result, &e);
    if (rc != ERR_OK)
        exchange_refuse(exchange, &e);
    else
        outcome_run(exchange);
}

static void on_request(struct http_request *http, void *arg)
{
    struct exchange *exchange = http_request_user(http);
    struct id token = exchange->actor.token; /* it may be answered and gone by then */
    struct mono begun = clock_monotonic();
    request_take(exchange, http);
    rate_charge(arg, token, clock_monotonic().ns - begun.ns);
}

/* What never became a request: the same form of error as everything else. */
static void on_refuse(unsigned status, const char *detail, struct buf *body,
                      struct str *content_type, void *arg)
{
    struct api_answer answer = { 0 };
    (void)arg;
    api_protocol_problem(status, "The request breaks the protocol or its limits", detail, &answer);
    buf_add_str(body, buf_str(&answer.body));
    *content_type = STR("application/problem+json");
    api_answer_done(&answer);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void on_accept(struct conn *conn, void *arg)
{
    struct server *server = arg;
    if (server->is_draining)
        conn_abort(conn, "the controller stops");
    else if (conn_protocol(conn) == TLS_PROTOCOL_LINK)
        nodes_take(server->berthd->nodes, conn);
    else
        http_server_take(server->http, conn);
}

static enum err open_secure(struct server *server, struct error *e)
{
    struct berthd *berthd = server->berthd;
    const struct config *config = &berthd->config;
    if (config->listen.size == 0)
        return ERR_OK;
    const struct tls_server_options tls = {
        .certificate_pem = buf_str(&berthd->keys->server_pem),
        .key_pem = buf_str(&berthd->keys->server_key_pem),
        .client_ca_pem = buf_str(&berthd->keys->ca_pem),
        .ticket_keys = berthd->keys->tickets,
        .ticket_key_count = COUNT_OF(berthd->keys->tickets),
    };
    enum err rc = tls_server_new(&tls, &server->tls, e);
    if (rc != ERR_OK)
        return rc;
    const struct listener_options options = {
        .address = str_c(&berthd->arena, config->listen),
        .port = (uint16_t)config->port,
        .tls = server->tls,
        .on_accept = on_accept,
        .arg = server,
    };
    rc = listener_open(berthd->loop, &options, &server->secure, e);
    if (rc != ERR_OK)
        return rc;
    char port[16];
    (void)snprintf(port, sizeof(port), "%u\n", listener_port(server->secure));
    return file_write_atomic(berthd_path(berthd, "port"), str_of(port), 0644, e);
}

enum err server_rekey(struct server *server, struct error *e)
{
    const struct keys *keys = server->berthd->keys;
    if (server->tls == NULL)
        return ERR_OK;
    enum err rc = tls_server_set_identity(server->tls, buf_str(&keys->server_pem),
                                          buf_str(&keys->server_key_pem), e);
    return rc != ERR_OK
               ? rc
               : tls_server_set_ticket_keys(server->tls, keys->tickets, COUNT_OF(keys->tickets), e);
}

static enum err open_local(struct server *server, struct error *e)
{
    struct berthd *berthd = server->berthd;
    const char *path = str_c(&berthd->arena, berthd->config.socket);
    const char *slash = strrchr(path, '/');
    if (slash != NULL && slash != path) {
        struct str dir = { path, (size_t)(slash - path) };
        enum err rc = file_make_dirs(str_c(&berthd->arena, dir), 0755, e);
        if (rc != ERR_OK)
            return rc;
    }
    const struct listener_options options = {
        .unix_path = path,
        .unix_mode = 0666, /* who connects is the kernel's word; others than root need a token */
        .on_accept = on_accept,
        .arg = server,
    };
    return listener_open(berthd->loop, &options, &server->local, e);
}

enum err server_open(struct berthd *berthd, struct server **out, struct error *e)
{
    static const struct http_handler handler = { .on_header = on_header,
                                                 .on_request = on_request,
                                                 .on_refuse = on_refuse };
    static const struct http_server_options options = {
        .common_fields = { "x-content-type-options: nosniff\r\ncache-control: no-store\r\n",
                           sizeof(
                               "x-content-type-options: nosniff\r\ncache-control: no-store\r\n") -
                               1 },
    };
    struct server *server = mem_new(1, sizeof(*server));
    *out = server; /* berthd_close closes what is open of it */
    server->berthd = berthd;
    server->last_query = &server->first_query;
    server->last_resolution = &server->first_resolution;
    server->published = engine_state(berthd->engine)->sequence;
    api_openapi(STR(BERTH_VERSION), &server->openapi);
    server->ops = (struct api_ops){
        .arg = server,
        .new_id = op_new_id,
        .seal = op_seal,
        .blob_size = op_blob_size,
        .zone_rule = op_zone_rule,
        .health = op_health,
        .readiness = op_readiness,
        .metrics = op_metrics,
        .clock_skew_ms = op_clock_skew_ms,
        .image_progress = op_image_progress,
        .image_command = op_image_command,
        .may_ask = op_may_ask,
    };
    enum err rc = http_server_new(berthd->loop, &options, &handler, server, &server->http, e);
    if (rc != ERR_OK)
        return rc;
    server->streams = cli_streams_new(berthd);
    nodes_set_streams(berthd->nodes, server->streams);
    rc = open_local(server, e);
    return rc != ERR_OK ? rc : open_secure(server, e);
}

void server_drain(struct server *server)
{
    if (server == NULL)
        return;
    server->is_draining = true;
    feeds_end(server);
    terminals_end(server);
    errands_end(server);
    logs_end(server);
    http_server_drain(server->http);
}

static void turn(struct server *server)
{
    struct error e = { 0 };
    if (loop_turn(server->berthd->loop, 0, &e) != ERR_OK)
        log_warning("connections were not closed in order", LOG_ERR(&e));
}

void server_close(struct server *server)
{
    if (server == NULL)
        return;
    http_server_free(server->http);
    turn(server); /* last words are sent */
    listener_abort(server->local, "the controller stops");
    listener_abort(server->secure, "the controller stops"); /* also what was refused and lingers */
    turn(server);
    cli_streams_free(server->streams);
    tls_context_free(server->tls);
    while (server->first_bucket != NULL) {
        struct rate_bucket *next = server->first_bucket->next;
        mem_free(server->first_bucket);
        server->first_bucket = next;
    }
    id_map_done(&server->buckets);
    buf_done(&server->openapi);
    mem_free(server);
}

int server_local_fd(const struct server *server)
{
    return listener_fd(server->local);
}

int server_secure_fd(const struct server *server)
{
    return server->secure != NULL ? listener_fd(server->secure) : -1;
}

uint16_t server_port(const struct server *server)
{
    return server->secure != NULL ? listener_port(server->secure) : 0;
}

void server_publish(struct server *server, const struct event *event, struct str body)
{
    (void)body;
    if (server == NULL)
        return; /* the start's own events: nobody listens yet */
    server->published = event->sequence;
    feeds_publish(server, event);
}
