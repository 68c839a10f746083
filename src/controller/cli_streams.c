#include "controller/cli_streams.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "access/access.h"
#include "identity/token.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/random.h"

enum { PAYLOAD_BYTES_MAX = 32 * 1024 };

/* One half of a relay: what came from here and the other side had no room for. */
struct half {
    struct relay *relay;
    struct link_stream *stream; /* NULL: closed */
    struct half *other;
    struct buf held; /* owned; at most what was credited to the peer: LINK_WINDOW */
    bool has_ended;  /* it sends no more */
};

struct relay {
    struct half user, node;
};

struct cli_streams {
    struct berthd *berthd;
};

/* ---- bytes both ways ------------------------------------------------------------------------- */

static void relay_free_if_done(struct relay *relay)
{
    if (relay->user.stream != NULL || relay->node.stream != NULL)
        return;
    buf_done(&relay->user.held);
    buf_done(&relay->node.held);
    mem_free(relay);
}

/* Passes on what `from` has sent; credits exactly what went out. */
static void half_flush(struct half *from)
{
    struct link_stream *to = from->other->stream;
    if (to == NULL)
        return;
    size_t passed = link_stream_write(to, buf_str(&from->held));
    buf_consume(&from->held, passed);
    if (from->stream != NULL && passed > 0)
        link_stream_credit(from->stream, passed);
    if (from->has_ended && from->held.size == 0)
        link_stream_end(to);
}

static void half_on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    struct half *half = arg;
    (void)stream;
    if (half->other->stream == NULL) {
        link_stream_credit(stream, bytes.size); /* nobody is left to hear it */
        return;
    }
    buf_add_str(&half->held, bytes);
    half_flush(half);
}

static void half_on_room(struct link_stream *stream, void *arg)
{
    struct half *half = arg;
    (void)stream;
    half_flush(half->other);
}

static void half_on_end(struct link_stream *stream, void *arg)
{
    struct half *half = arg;
    (void)stream;
    half->has_ended = true;
    half_flush(half);
}

static void half_on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    struct half *half = arg;
    struct relay *relay = half->relay;
    (void)stream;
    half_flush(half);
    half->stream = NULL;
    struct half *other = half->other;
    if (other->stream != NULL) {
        struct str why = code == LINK_CODE_DOWN ? STR("the connection to the node was lost") : text;
        link_stream_close(other->stream, code, why);
        other->stream = NULL;
    }
    relay_free_if_done(relay);
}

static const struct link_stream_events half_events = {
    .on_data = half_on_data,
    .on_room = half_on_room,
    .on_end = half_on_end,
    .on_close = half_on_close,
};

/* ---- who may, and where ---------------------------------------------------------------------- */

/* What a stream is about, once it has been found and allowed. */
struct destination {
    struct id node;
    struct id object; /* allocation or volume */
    struct id tenant;
    uint32_t attempt;
    uint32_t uid_base;
    enum ticket_kind kind;
};

static enum err stream_actor(const struct state *state, const struct conn_peer *peer,
                             struct str token, struct actor *out, struct error *e)
{
    if (token.size == 0 && peer->is_unix && peer->uid == 0) {
        *out = (struct actor){ .role = ROLE_ADMIN, .name = STR("root") };
        return ERR_OK;
    }
    return token_authenticate(state, token, clock_wall(), out, e);
}

static enum err find_allocation(const struct state *state, const struct actor *actor,
                                const struct stream_header *header, struct destination *out,
                                struct error *e)
{
    const struct workload *workload = state_workload(state, header->workload);
    if (workload == NULL ||
        !access_allows(actor, PERMIT_WORKLOAD_EXEC, workload->project->tenant->r.id))
        return err_cause(e, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "no such workload");
    const struct project *tenant = workload->project->tenant;
    for (const struct allocation *a = workload->first_allocation; a != NULL;
         a = a->next_in_workload) {
        bool is_present = a->r.attempt == workload->r.attempt && a->r.rank == header->member;
        if (!is_present || a->r.state != AL_RUNNING)
            continue;
        *out = (struct destination){ .node = a->r.node,
                                     .object = a->r.id,
                                     .tenant = tenant->r.id,
                                     .attempt = (uint32_t)a->r.attempt,
                                     .uid_base = tenant_uid_base(tenant) };
        return ERR_OK;
    }
    return err_cause(
        e, ERR_CONFLICT, CAUSE_CONFLICT, "member %lld of the workload does not run now (it is %s)",
        (long long)header->member, enum_name(&workload_state_names, workload->r.state));
}

static enum err find_volume(const struct state *state, const struct actor *actor,
                            const struct stream_header *header, struct destination *out,
                            struct error *e)
{
    const struct volume *volume = state_volume(state, header->volume);
    if (volume == NULL || !access_allows(actor, PERMIT_VOLUME_WRITE, volume->r.tenant))
        return err_cause(e, ERR_NOT_FOUND, CAUSE_NOT_FOUND, "no such volume");
    const struct project *tenant = state_project(state, volume->r.tenant);
    *out = (struct destination){ .node = volume->r.node,
                                 .object = volume->r.id,
                                 .tenant = volume->r.tenant,
                                 .uid_base = tenant_uid_base(tenant) };
    return ERR_OK;
}

static enum ticket_kind ticket_kind_of(const struct stream_header *header)
{
    bool is_volume = !id_is_none(header->volume);
    if (header->kind == STREAM_EXEC)
        return TICKET_EXEC;
    if (header->kind == STREAM_TREE_GET)
        return is_volume ? TICKET_VOLUME_GET : TICKET_COPY_GET;
    return is_volume ? TICKET_VOLUME_PUT : TICKET_COPY_PUT;
}

/* ---- tickets --------------------------------------------------------------------------------- */

static enum err payload_make(const struct stream_header *header, struct buf *out, struct error *e)
{
    char term[96] = "TERM=dumb";
    if (header->term.size > 0 && header->term.size < 64)
        (void)snprintf(term, sizeof(term), "TERM=%.*s", STR_ARG(header->term));
    struct str env = str_of(term);
    AUTO(arena) struct arena arena = { 0 };
    bool is_absolute = header->path.size > 0 && header->path.data[0] == '/';
    struct str path =
        is_absolute ? header->path : str_of(arena_format(&arena, "/%.*s", STR_ARG(header->path)));
    bool is_exec = header->kind == STREAM_EXEC;
    const struct grant_payload payload = {
        .arg_count = is_exec ? (uint32_t)header->argv.count : 1,
        .args = is_exec ? header->argv.items : &path,
        .env_count = is_exec && header->is_tty ? 1 : 0,
        .env = &env,
    };
    enum err rc = grant_payload_encode(&payload, out, e);
    if (rc == ERR_OK && out->size > PAYLOAD_BYTES_MAX)
        return err_set(e, ERR_LIMIT, "the command is longer than 32 KiB");
    return rc;
}

static enum err ticket_make(struct berthd *berthd, const struct stream_header *header,
                            const struct destination *target, struct str payload,
                            uint8_t out[TICKET_SIZE], struct error *e)
{
    const struct grant_crypto crypto = keys_grant_crypto(berthd->keys);
    struct ticket ticket = {
        .node = target->node,
        .epoch = engine_state(berthd->engine)->epoch,
        .run = nodes_run(berthd->nodes, target->node),
        .id = random_id(),
        .object = target->object,
        .tenant = target->tenant,
        .kind = target->kind,
        .is_tty = header->is_tty && header->kind == STREAM_EXEC,
        .attempt = target->attempt,
        .uid_base = target->uid_base,
        .uid_count = UID_RANGE,
    };
    crypto.sha256(crypto.self, payload, &ticket.payload);
    return ticket_encode(&ticket, &crypto, out, e);
}

/* Opens the node's side: header with the ticket, then the payload the ticket names. */
static enum err node_open(struct berthd *berthd, const struct stream_header *asked,
                          const struct destination *target, const struct stream_end *end,
                          struct link_stream **out, struct error *e)
{
    uint8_t ticket[TICKET_SIZE];
    char hex[2 * TICKET_SIZE + 1];
    AUTO(buf) struct buf payload = { 0 };
    AUTO(buf) struct buf header_bytes = { 0 };
    AUTO(buf) struct buf frame = { 0 };
    struct link *link = nodes_link(berthd->nodes, target->node);
    if (link == NULL || id_is_none(nodes_run(berthd->nodes, target->node)))
        return err_cause(e, ERR_UNAVAILABLE, CAUSE_UNAVAILABLE,
                         "the node is not connected now; the work goes on there");
    enum err rc = payload_make(asked, &payload, e);
    if (rc == ERR_OK)
        rc = ticket_make(berthd, asked, target, buf_str(&payload), ticket, e);
    if (rc != ERR_OK)
        return rc;
    hex_encode(ticket, TICKET_SIZE, hex);
    const struct stream_header header = {
        .kind = asked->kind,
        .is_tty = asked->is_tty && asked->kind == STREAM_EXEC,
        .rows = asked->rows,
        .columns = asked->columns,
        .ticket = str_of(hex),
    };
    rc = stream_header_encode(&header, &header_bytes, e);
    if (rc != ERR_OK)
        return rc;
    struct link_stream *stream =
        link_stream_open(link, buf_str(&header_bytes), end->events, end->arg);
    if (stream == NULL)
        return err_set(e, ERR_UNAVAILABLE,
                       "the node is not connected now; try again when `berth node show` says "
                       "contact ok");
    channel_encode(CHANNEL_PAYLOAD, buf_str(&payload), &frame);
    /* A fresh stream has a whole window: the payload fits. */
    if (link_stream_write(stream, buf_str(&frame)) < frame.size)
        log_warning("a ticket's payload did not fit into a fresh stream");
    *out = stream;
    return ERR_OK;
}

static void refuse(struct link_stream *stream, const struct error *e)
{
    uint32_t code = STREAM_REFUSED_INVALID;
    if (e->code == ERR_NOT_FOUND)
        code = STREAM_REFUSED_NOT_FOUND;
    else if (e->code == ERR_CONFLICT)
        code = STREAM_REFUSED_CONFLICT;
    else if (e->code == ERR_DENIED || e->code == ERR_UNAUTHENTICATED)
        code = STREAM_REFUSED_DENIED;
    else if (e->code == ERR_UNAVAILABLE)
        code = STREAM_REFUSED_UNAVAILABLE;
    link_stream_close(stream, code, str_of(e->text));
}

/* What the user sent before the node's side was open; all-zero: nothing. Taken over. */
struct early {
    struct buf bytes;
    bool has_ended;
};

static void relay_start(struct cli_streams *streams, struct link_stream *stream,
                        const struct stream_header *header, const struct destination *target,
                        struct early *early)
{
    struct error e = { 0 };
    struct relay *relay = mem_new(1, sizeof(*relay));
    relay->user = (struct half){ .relay = relay, .stream = stream, .other = &relay->node };
    relay->node = (struct half){ .relay = relay, .other = &relay->user };
    const struct stream_end end = { &half_events, &relay->node };
    if (node_open(streams->berthd, header, target, &end, &relay->node.stream, &e) != ERR_OK) {
        mem_free(relay);
        refuse(stream, &e);
        return;
    }
    link_stream_set_events(stream, &half_events, &relay->user);
    relay->user.held = early->bytes;
    relay->user.has_ended = early->has_ended;
    early->bytes = (struct buf){ 0 };
    half_flush(&relay->user);
}

/* ---- volumes that are nowhere yet ------------------------------------------------------------ */

/* Held until the volume's place is durable. The user may hang up meanwhile. */
struct placing {
    struct engine_waiter waiter;
    struct cli_streams *streams;
    struct link_stream *stream; /* NULL: hung up */
    struct arena arena;
    struct stream_header header;
    struct destination target;
    struct early early; /* at most a window: nothing is credited yet */
};

static void placing_on_close(struct link_stream *stream, uint32_t code, struct str text, void *arg)
{
    struct placing *placing = arg;
    (void)stream;
    (void)code;
    (void)text;
    placing->stream = NULL;
}

static void placing_on_data(struct link_stream *stream, struct str bytes, void *arg)
{
    struct placing *placing = arg;
    (void)stream;
    buf_add_str(&placing->early.bytes, bytes);
}

static void placing_on_end(struct link_stream *stream, void *arg)
{
    struct placing *placing = arg;
    (void)stream;
    placing->early.has_ended = true;
}

static const struct link_stream_events placing_events = {
    .on_data = placing_on_data,
    .on_end = placing_on_end,
    .on_close = placing_on_close,
};

static void placing_settled(struct engine_waiter *waiter, enum err rc, const struct error *why)
{
    struct placing *placing = (struct placing *)(void *)waiter;
    if (placing->stream != NULL && rc == ERR_OK)
        relay_start(placing->streams, placing->stream, &placing->header, &placing->target,
                    &placing->early);
    else if (placing->stream != NULL)
        refuse(placing->stream, why);
    buf_done(&placing->early.bytes);
    arena_done(&placing->arena);
    mem_free(placing);
}

static void header_copy(struct arena *arena, const struct stream_header *from,
                        struct stream_header *out)
{
    *out = (struct stream_header){ .kind = from->kind,
                                   .volume = from->volume,
                                   .path = str_copy(arena, from->path) };
}

static enum err place_volume(struct cli_streams *streams, struct link_stream *stream,
                             const struct actor *actor, const struct stream_header *header,
                             struct destination *target, struct error *e)
{
    struct berthd *berthd = streams->berthd;
    struct command command = { .type = CMD_VOLUME_PLACE, .actor = *actor };
    command.target.id = header->volume;
    enum err rc = engine_command(berthd->engine, &command, e);
    if (rc != ERR_OK)
        return rc;
    target->node = state_volume(engine_state(berthd->engine), header->volume)->r.node;
    struct placing *placing = mem_new(1, sizeof(*placing));
    placing->waiter.settled = placing_settled;
    placing->streams = streams;
    placing->stream = stream;
    placing->target = *target;
    header_copy(&placing->arena, header, &placing->header);
    link_stream_set_events(stream, &placing_events, placing);
    engine_wait(berthd->engine, &placing->waiter);
    berthd_wake(berthd);
    return ERR_OK;
}

void cli_streams_open(struct cli_streams *streams, struct link_stream *stream,
                      const struct conn_peer *peer, const struct stream_header *header)
{
    const struct state *state = engine_state(streams->berthd->engine);
    struct actor actor = { 0 };
    struct destination target = { 0 };
    struct error e = { 0 };
    bool is_volume = !id_is_none(header->volume);
    bool is_known = header->kind == STREAM_EXEC || header->kind == STREAM_TREE_GET ||
                    header->kind == STREAM_TREE_PUT;
    enum err rc = is_known ? stream_actor(state, peer, header->token, &actor, &e)
                           : err_set(&e, ERR_INVALID, "no such kind of stream");
    if (rc == ERR_OK && header->kind == STREAM_EXEC && header->argv.count == 0)
        rc = err_field(&e, "argv", "a command is needed");
    if (rc == ERR_OK)
        rc = is_volume ? find_volume(state, &actor, header, &target, &e)
                       : find_allocation(state, &actor, header, &target, &e);
    target.kind = ticket_kind_of(header);
    if (rc == ERR_OK && is_volume && id_is_none(target.node)) {
        rc = place_volume(streams, stream, &actor, header, &target, &e);
        if (rc == ERR_OK)
            return;
    }
    struct early nothing = { 0 };
    if (rc == ERR_OK)
        relay_start(streams, stream, header, &target, &nothing);
    else
        refuse(stream, &e);
}

enum err cli_streams_exec(struct berthd *berthd, const struct conn_peer *peer,
                          const struct stream_header *header, const struct stream_end *end,
                          struct link_stream **out, struct error *e)
{
    const struct state *state = engine_state(berthd->engine);
    struct actor actor = { 0 };
    struct destination target = { 0 };
    assert(header->kind == STREAM_EXEC && header->argv.count > 0);
    enum err rc = stream_actor(state, peer, header->token, &actor, e);
    if (rc == ERR_OK)
        rc = find_allocation(state, &actor, header, &target, e);
    target.kind = TICKET_EXEC;
    return rc == ERR_OK ? node_open(berthd, header, &target, end, out, e) : rc;
}

struct cli_streams *cli_streams_new(struct berthd *berthd)
{
    struct cli_streams *streams = mem_new(1, sizeof(*streams));
    streams->berthd = berthd;
    return streams;
}

void cli_streams_free(struct cli_streams *streams)
{
    mem_free(streams);
}
