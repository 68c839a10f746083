/*
 * One session a link. Until HELLO (or JOIN) succeeded a session may do nothing else. Messages are
 * decoded into the engine's open batch, because events borrow from their command until durable.
 */
#include "controller/cli_streams.h"
#include "controller/logship.h"
#include "controller/nodes_internal.h"
#include "os/clock.h"
#include "os/log.h"

enum {
    MESSAGE_BYTES_MAX = 4 * 1024 * 1024,
    STRANGER_BYTES_MAX = 64 * 1024, /* before the greeting: a JOIN, a HELLO, a RENEW */
    PAYLOADS_BYTES_MAX = 8 * 1024 * 1024,
};

void nodes_set_streams(struct nodes *nodes, struct cli_streams *streams)
{
    nodes->streams = streams;
}

/* ---- strangers ----------------------------------------------------------------------------- */

static void strangers_look(void *arg)
{
    struct nodes *nodes = arg;
    struct mono now = loop_now(nodes->o.loop);
    struct mono next;
    for (struct stranger *late = strangers_take_late(&nodes->strangers, now); late != NULL;
         late = strangers_take_late(&nodes->strangers, now))
        link_abort(((struct session *)late->owner)->link, "it did not say in time who it is");
    if (strangers_next(&nodes->strangers, &next))
        loop_timer_set(nodes->o.loop, &nodes->patience, next);
}

/* Of each address, and of all, the oldest makes room. */
static void session_is_stranger(struct session *session)
{
    struct nodes *nodes = session->nodes;
    session->stranger.owner = session;
    struct stranger *surplus =
        strangers_add(&nodes->strangers, &session->stranger, link_peer(session->link)->address,
                      loop_now(nodes->o.loop));
    if (surplus != NULL)
        link_abort(((struct session *)surplus->owner)->link,
                   "too many have not said yet who they are");
    strangers_look(nodes);
}

/* ---- life ---------------------------------------------------------------------------------- */

struct nodes *nodes_new(const struct nodes_options *options)
{
    struct nodes *nodes = mem_new(1, sizeof(*nodes));
    nodes->o = *options;
    nodes->patience = (struct loop_timer){ .fn = strangers_look, .arg = nodes };
    strangers_init(&nodes->strangers, &options->strangers);
    nodes->logship = logship_new(options->loop, options->logs);
    return nodes;
}

void nodes_free(struct nodes *nodes)
{
    if (nodes == NULL)
        return;
    logship_free(nodes->logship);
    loop_timer_stop(nodes->o.loop, &nodes->patience);
    id_map_done(&nodes->by_node);
    mem_free(nodes);
}

void nodes_abort(struct nodes *nodes, const char *why)
{
    for (struct session *s = nodes->first; s != NULL; s = s->next)
        link_abort(s->link, why);
}

void session_send(struct session *session, enum message_type type, const void *message)
{
    AUTO(buf) struct buf bytes = { 0 };
    message_encode(type, message, &bytes);
    if (link_send(session->link, (uint16_t)type, buf_str(&bytes)) != ERR_OK)
        link_abort(session->link, "the agent does not take its messages");
}

/* Who may only renew needs the link for it; a stranger's patience ends it. */
void session_refuse(struct session *session, enum refuse_reason reason, const char *detail)
{
    const struct refuse_message refuse = { .reason = reason,
                                           .detail = str_of(detail),
                                           .retry_after_s = reason == REFUSE_BUSY ? 5 : 0 };
    session_send(session, MESSAGE_REFUSE, &refuse);
    if (reason != REFUSE_RENEW_ONLY)
        link_close(session->link, detail);
}

struct actor session_actor(const struct session *session)
{
    const struct node *node = state_node(engine_state(session->nodes->o.engine), session->node);
    return (struct actor){ .role = ROLE_NODE,
                           .node = session->node,
                           .name = node != NULL ? node->r.name : STR("node") };
}

/* How far a clock is ahead of ours; clocks that cannot be are as far as can be told. */
static int64_t skew_ms_of(int64_t wall_ns)
{
    int64_t ahead_ns = 0;
    if (__builtin_sub_overflow(wall_ns, clock_wall().ns, &ahead_ns))
        ahead_ns = wall_ns < 0 ? INT64_MIN : INT64_MAX;
    return ahead_ns / NS_PER_MS;
}

/* A command of a node. Refusals are told to the operator: an honest agent gets none. */
void session_command(struct session *session, struct command *command)
{
    struct error e = { 0 };
    command->actor = session_actor(session);
    if (engine_command(session->nodes->o.engine, command, &e) != ERR_OK) {
        char node[ID_TEXT_MAX];
        log_warning("a node's report was refused", LOG_STR("report", command_name(command->type)),
                    LOG_STR("node", id_text(ID_NODE, session->node, node)), LOG_ERR(&e));
    }
    session->nodes->o.on_decided(session->nodes->o.arg);
}

/* ---- greeting ------------------------------------------------------------------------------ */

bool session_chooses(struct session *session, int64_t min, int64_t max, int64_t *chosen)
{
    struct error e = { 0 };
    const struct protocol_range own = { PROTOCOL_MIN, PROTOCOL_MAX };
    const struct protocol_range peer = { min, max };
    if (protocol_choose(own, peer, chosen, &e) == ERR_OK)
        return true;
    session_refuse(session, REFUSE_VERSION, e.text);
    return false;
}

static void session_replace(struct nodes *nodes, struct session *session)
{
    struct session *old = id_map_get(&nodes->by_node, session->node);
    if (old != NULL) {
        old->is_greeted = false;
        nodes->connected--;
        link_abort(old->link, "the node connected anew");
    }
    id_map_put(&nodes->by_node, session->node, session);
    session->is_greeted = true;
    strangers_remove(&nodes->strangers, &session->stranger);
    link_set_message_max(session->link, MESSAGE_BYTES_MAX);
    nodes->connected++;
}

static void refuse_newer(struct session *session, uint64_t obeyed)
{
    const struct nodes *nodes = session->nodes;
    if (nodes->o.on_newer_epoch(nodes->o.arg, obeyed)) {
        session_refuse(session, REFUSE_BUSY, "a restored controller claims a higher epoch first");
        return;
    }
    session_refuse(session, REFUSE_BUSY, "the node has obeyed a newer controller than this one");
    log_error("a node knows a newer epoch: this controller's store is an old copy; put a backup in "
              "place by `berthd restore`",
              LOG_INT("node_epoch", obeyed),
              LOG_INT("epoch", engine_state(nodes->o.engine)->epoch));
}

static void on_hello(struct session *session, const void *message)
{
    const struct hello_message *hello = message;
    struct nodes *nodes = session->nodes;
    const struct state *state = engine_state(nodes->o.engine);
    int64_t protocol = 0;
    if (!session_identify(session))
        return;
    if (link_peer(session->link)->is_expired) {
        session_refuse(session, REFUSE_RENEW_ONLY, "the certificate has expired: renew it first");
        return;
    }
    if (!session_chooses(session, hello->protocol_min, hello->protocol_max, &protocol))
        return;
    if (hello->epoch > state->epoch) {
        refuse_newer(session, hello->epoch);
        return;
    }
    session->skew_ms = skew_ms_of(hello->wall_ns);
    session_replace(nodes, session);
    const struct welcome_message welcome = {
        .protocol = protocol,
        .epoch = state->epoch,
        .wall_ns = clock_wall().ns,
        .version = str_of(nodes->o.version),
        .heartbeat_s = HEARTBEAT_S,
        .unknown_after_s = state->settings.unknown_after_s,
        .kill_confirm_s = state->settings.kill_confirm_s,
    };
    session_send(session, MESSAGE_WELCOME, &welcome);
    engine_node_seen(nodes->o.engine, session->node, hello->boot_id);
    engine_node_resend(nodes->o.engine, session->node);
    nodes->o.on_decided(nodes->o.arg);
}

/* ---- reports ------------------------------------------------------------------------------- */

static void on_inventory(struct session *session, const void *message)
{
    const struct inventory_message *inventory = message;
    struct command command = { .type = CMD_NODE_INVENTORY, .inventory = inventory->inventory };
    command.inventory.node = session->node;
    session->run = inventory->run;
    session_command(session, &command);
}

static void on_observed(struct session *session, const void *message)
{
    struct command command = { .type = CMD_NODE_OBSERVED };
    command.observed = *(const struct node_observed *)message;
    command.observed.node = session->node;
    engine_node_seen(session->nodes->o.engine, session->node, (struct str){ 0 });
    session_command(session, &command);
    session_images_settle(session);
    /* What has started needs its payload no more: now there is room for those of others. */
    if (session->lacks_payloads && link_queued(session->link) == 0)
        engine_node_resend(session->nodes->o.engine, session->node);
}

/* The signed answer to a node's challenge; empty when there is none to give. */
static void contact_make(const struct session *session, const struct node *node,
                         struct id challenge, char out[2 * CONTACT_SIZE + 1])
{
    const struct nodes *nodes = session->nodes;
    const struct grant_crypto crypto = keys_grant_crypto(nodes->o.keys);
    uint8_t bytes[CONTACT_SIZE];
    out[0] = '\0';
    if (node == NULL || id_is_none(challenge))
        return;
    const struct contact contact = {
        .node = session->node,
        .newest = { engine_state(nodes->o.engine)->epoch, node->r.generation },
        .challenge = challenge,
    };
    if (contact_encode(&contact, &crypto, bytes, NULL) == ERR_OK)
        hex_encode(bytes, sizeof(bytes), out);
}

static void on_heartbeat(struct session *session, const void *message)
{
    const struct heartbeat_message *beat = message;
    struct nodes *nodes = session->nodes;
    const struct node *node = state_node(engine_state(nodes->o.engine), session->node);
    char contact[2 * CONTACT_SIZE + 1];
    if (beat->epoch > engine_state(nodes->o.engine)->epoch) { /* it learned of it after its hello */
        refuse_newer(session, beat->epoch);
        return;
    }
    contact_make(session, node, beat->challenge, contact);
    session->skew_ms = skew_ms_of(beat->wall_ns);
    engine_node_seen(nodes->o.engine, session->node, (struct str){ 0 });
    const struct heartbeat_ack_message ack = { .number = beat->number,
                                               .wall_ns = clock_wall().ns,
                                               .contact = str_of(contact) };
    session_send(session, MESSAGE_HEARTBEAT_ACK, &ack);
    if (node != NULL && beat->generation < node->r.generation && link_queued(session->link) == 0)
        engine_node_resend(nodes->o.engine, session->node); /* a set was lost on the way */
    nodes->o.on_decided(nodes->o.arg);
}

static void on_payloads_wanted(struct session *session, const void *message)
{
    const struct payloads_wanted_message *wanted = message;
    struct nodes *nodes = session->nodes;
    const struct node *node = state_node(engine_state(nodes->o.engine), session->node);
    AUTO(arena) struct arena arena = { 0 };
    struct desired_message answer = { 0 };
    size_t bytes_left = PAYLOADS_BYTES_MAX; /* also when one is asked for many times */
    answer.payloads.items = arena_new(&arena, wanted->digests.count, sizeof(struct str));
    for (size_t i = 0; node != NULL && i < wanted->digests.count; i++) {
        struct grant_digest digest;
        if (!hex_decode(wanted->digests.items[i], digest.bytes, GRANT_DIGEST_SIZE))
            continue;
        struct str payload = desired_payload(nodes->o.desired, node, &digest);
        if (payload.size == 0 || payload.size > bytes_left)
            continue;
        answer.payloads.items[answer.payloads.count++] = payload;
        bytes_left -= payload.size;
    }
    AUTO(buf) struct buf bytes = { 0 };
    desired_encode(&answer, &bytes);
    if (link_send(session->link, MESSAGE_PAYLOADS, buf_str(&bytes)) != ERR_OK)
        link_abort(session->link, "the agent does not take its payloads");
}

/* The key of an allocation's output, if the allocation is (or lately was) this node's. */
static bool log_key_of(struct session *session, const struct log_position *position,
                       struct log_key *out)
{
    return logship_key(session->nodes->logship, engine_state(session->nodes->o.engine),
                       session->node, position, out);
}

static void on_log_offer(struct session *session, const void *message)
{
    const struct log_message *offer = message;
    struct nodes *nodes = session->nodes;
    AUTO(arena) struct arena arena = { 0 };
    struct log_message wanted = { 0 };
    wanted.logs.items = arena_new(&arena, offer->logs.count, sizeof(struct log_position));
    for (size_t i = 0; i < offer->logs.count; i++) {
        struct log_position *position = &wanted.logs.items[wanted.logs.count];
        struct log_key key;
        *position = offer->logs.items[i];
        if (!log_key_of(session, &offer->logs.items[i], &key)) {
            /* Nobody will ever ask for it: the node may drop its copy. */
            position->is_final = true;
        } else {
            uint64_t stored = logstore_size(nodes->o.logs, &key);
            if (position->is_final && position->offset == 0 && stored == 0) {
                logstore_forget(nodes->o.logs, key.allocation); /* silent: nothing to answer */
                continue;
            }
            bool is_cut = logstore_is_cut(nodes->o.logs, &key);
            if (position->is_final && (is_cut || stored >= position->offset))
                logstore_finish(nodes->o.logs, &key);
            position->is_final = logstore_is_final(nodes->o.logs, &key);
            if (!is_cut) /* of a cut one nothing more is wanted: what the node has may go */
                position->offset = stored;
        }
        wanted.logs.count++;
    }
    if (wanted.logs.count > 0)
        logship_answer(nodes->logship, session->link, &wanted);
}

struct message_handler {
    enum message_type type;
    bool needs_greeting;
    void (*handle)(struct session *session, const void *message);
};

static const struct message_handler handlers[] = {
    { MESSAGE_JOIN, false, session_join },
    { MESSAGE_HELLO, false, on_hello },
    { MESSAGE_RENEW, false, session_renew },
    { MESSAGE_INVENTORY, true, on_inventory },
    { MESSAGE_OBSERVED, true, on_observed },
    { MESSAGE_HEARTBEAT, true, on_heartbeat },
    { MESSAGE_PAYLOADS_WANTED, true, on_payloads_wanted },
    { MESSAGE_IMAGE_WANTED, true, session_image_wanted },
    { MESSAGE_IMAGE_PROGRESS, true, session_image_progress },
    { MESSAGE_LOG_OFFER, true, on_log_offer },
};

static const struct message_handler *handler_of(uint16_t type)
{
    for (size_t i = 0; i < COUNT_OF(handlers); i++) {
        if (handlers[i].type == type)
            return &handlers[i];
    }
    return NULL;
}

static void on_message(struct link *link, uint16_t type, struct str payload, void *arg)
{
    struct session *session = arg;
    const struct message_handler *handler = handler_of(type);
    if (handler == NULL) {
        session_refuse(session, REFUSE_VERSION, "a message of a type that is not known here");
        return;
    }
    if (handler->needs_greeting && !session->is_greeted) {
        session_refuse(session, REFUSE_DENIED, "hello comes first");
        return;
    }
    /* Also of a session that was greeted: its node may have been removed since. */
    if (handler->type == MESSAGE_RENEW && !session_identify(session))
        return;
    const struct schema *schema = message_schema(handler->type);
    struct arena *arena = engine_arena(session->nodes->o.engine);
    void *message = arena_new(arena, 1, schema->size);
    struct error e = { 0 };
    if (message_decode(handler->type, payload, arena, message, &e) != ERR_OK) {
        log_warning("a node sent a message that cannot be read",
                    LOG_STR("message", message_name(handler->type)), LOG_ERR(&e));
        link_abort(link, "a message cannot be read");
        return;
    }
    handler->handle(session, message);
}

/* ---- streams of agents --------------------------------------------------------------------- */

static void open_log(struct session *session, struct link_stream *stream,
                     const struct stream_header *header)
{
    const struct log_position position = {
        .allocation = header->allocation,
        .attempt = header->attempt,
        .offset = header->offset,
    };
    struct log_key key;
    if (!log_key_of(session, &position, &key)) {
        link_stream_close(stream, LINK_CODE_REFUSED,
                          STR("no such output is expected of this node"));
        return;
    }
    logship_take(session->nodes->logship, stream, &key, header->offset);
}

/* A stream that stays open had a good token: whoever opened it is no stranger any more. */
static void open_of_person(struct session *session, struct link_stream *stream,
                           const struct stream_header *header)
{
    size_t with_it = link_stream_count(session->link);
    cli_streams_open(session->nodes->streams, stream, link_peer(session->link), header);
    if (link_stream_count(session->link) >= with_it)
        strangers_remove(&session->nodes->strangers, &session->stranger);
}

static void on_stream(struct link *link, struct link_stream *stream, struct str bytes, void *arg)
{
    struct session *session = arg;
    (void)link;
    AUTO(arena) struct arena arena = { 0 };
    struct stream_header header = { 0 };
    struct error e = { 0 };
    if (stream_header_decode(bytes, &arena, &header, &e) != ERR_OK)
        link_stream_close(stream, LINK_CODE_REFUSED, STR("the stream's header cannot be read"));
    else if (!session->is_greeted)
        open_of_person(session, stream, &header);
    else if (header.kind == STREAM_BLOB)
        session_open_blob(session, stream, &header);
    else if (header.kind == STREAM_LOG)
        open_log(session, stream, &header);
    else
        link_stream_close(stream, LINK_CODE_REFUSED, STR("a node may not open this kind"));
}

static void on_down(struct link *link, const char *why, void *arg)
{
    struct session *session = arg;
    struct nodes *nodes = session->nodes;
    logship_drop(nodes->logship, link);
    strangers_remove(&nodes->strangers, &session->stranger);
    if (session->is_greeted) {
        char node[ID_TEXT_MAX];
        log_info("node disconnected", LOG_STR("node", id_text(ID_NODE, session->node, node)),
                 LOG_STR("why", why));
        (void)id_map_remove(&nodes->by_node, session->node);
        nodes->connected--;
    }
    if (session->prev != NULL)
        session->prev->next = session->next;
    else
        nodes->first = session->next;
    if (session->next != NULL)
        session->next->prev = session->prev;
    session_images_forget(session);
    mem_free(session);
}

static const struct link_events session_events = {
    .on_message = on_message,
    .on_stream = on_stream,
    .on_down = on_down,
};

void nodes_take(struct nodes *nodes, struct conn *conn)
{
    static const struct link_options options = { .message_bytes_max = STRANGER_BYTES_MAX };
    struct session *session = mem_new(1, sizeof(*session));
    session->nodes = nodes;
    session->number = ++nodes->sessions;
    session->next = nodes->first;
    if (nodes->first != NULL)
        nodes->first->prev = session;
    nodes->first = session;
    session->link = link_accept(conn, &options, &session_events, session);
    session_is_stranger(session);
}

void nodes_send_desired(struct nodes *nodes, struct id node_id, struct str set)
{
    struct session *session = id_map_get(&nodes->by_node, node_id);
    const struct state *state = engine_state(nodes->o.engine);
    const struct node *node = state_node(state, node_id);
    if (session == NULL || node == NULL)
        return;
    AUTO(arena) struct arena arena = { 0 };
    AUTO(buf) struct buf bytes = { 0 };
    const struct desired_message message = {
        .set = set,
        .payloads = desired_payloads(nodes->o.desired, node, PAYLOADS_BYTES_MAX,
                                     &session->lacks_payloads, &arena),
    };
    desired_encode(&message, &bytes);
    if (link_send(session->link, MESSAGE_DESIRED, buf_str(&bytes)) != ERR_OK)
        link_abort(session->link, "the agent does not take its desired set");
}

void nodes_removed(struct nodes *nodes, struct id node)
{
    struct session *session = id_map_get(&nodes->by_node, node);
    if (session != NULL)
        link_abort(session->link, "the node was removed");
}

struct link *nodes_link(struct nodes *nodes, struct id node)
{
    struct session *session = id_map_get(&nodes->by_node, node);
    return session != NULL ? session->link : NULL;
}

struct id nodes_run(const struct nodes *nodes, struct id node)
{
    const struct session *session = id_map_get(&nodes->by_node, node);
    return session != NULL ? session->run : (struct id){ 0 };
}

size_t nodes_connected(const struct nodes *nodes)
{
    return nodes->connected;
}

int64_t nodes_skew_ms(const struct nodes *nodes, struct id node)
{
    const struct session *session = id_map_get(&nodes->by_node, node);
    return session != NULL ? session->skew_ms : UNSET;
}
