/*
 * The connection to the controller: who we are, heartbeats, the certificate, and what it tells us.
 */
#include <string.h>

#include "agent/network.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/random.h"

enum {
    DIAL_FIRST_MS = 200,
    DIAL_MAX_MS = 15000,
    DESIRED_MESSAGE_MAX = LINK_MESSAGE_MAX,
    RENEW_PAUSE_S = 60,  /* at least between two tries to renew the certificate */
    RENEW_AGAIN_S = 600, /* without an answer */
    SHOW_AGAIN_S = 60,   /* while commands of people keep the link that showed the old one */
};

bool network_send_up(struct network *network, enum message_type type, const void *message)
{
    if (network->link == NULL || !network->is_welcome)
        return false;
    AUTO(buf) struct buf bytes = { 0 };
    message_encode(type, message, &bytes);
    if (link_send(network->link, (uint16_t)type, buf_str(&bytes)) == ERR_OK)
        return true;
    link_abort(network->link, "the controller does not take our messages");
    return false;
}

static uint64_t obeyed_epoch(const struct network *network)
{
    return MAX_OF(network->agentd.epoch, network->applied_epoch);
}

static void hello_send(struct network *network)
{
    const struct hello_message hello = {
        .protocol_min = PROTOCOL_MIN,
        .protocol_max = PROTOCOL_MAX,
        .node = network->identity.node,
        .boot_id = str_of(network->agentd.boot_id),
        .agent_version = str_of(network->agentd.build),
        .wall_ns = clock_wall().ns,
        .epoch = obeyed_epoch(network),
        .generation = network->agentd.generation,
    };
    AUTO(buf) struct buf bytes = { 0 };
    message_encode(MESSAGE_HELLO, &hello, &bytes);
    if (link_send(network->link, MESSAGE_HELLO, buf_str(&bytes)) != ERR_OK)
        link_abort(network->link, "hello cannot be sent");
}

/* A renewed certificate is shown as soon as that disturbs nobody: until then the old one
 * counts, too. */
static void renew_wait(struct network *network)
{
    struct mono at = network->renew_due;
    struct mono look = mono_add_s(loop_now(network->loop), SHOW_AGAIN_S);
    if (network->is_certificate_new && mono_before(look, at))
        at = look;
    loop_timer_set(network->loop, &network->renew, at);
}

/* Without an answer, or with one that cannot be used, the next try is a while later. */
static void renew_send(struct network *network)
{
    struct error e = { 0 };
    AUTO(buf) struct buf request = { 0 };
    char name[ID_TEXT_MAX];
    network->renew_tried = loop_now(network->loop);
    network->renew_due = mono_add_s(network->renew_tried, RENEW_AGAIN_S);
    renew_wait(network);
    buf_clear(&network->renew_key);
    enum err rc = ca_key_new(CA_KEY_P256, &network->renew_key, &e);
    if (rc == ERR_OK)
        rc = ca_request_new(buf_str(&network->renew_key),
                            str_of(id_text(ID_NODE, network->identity.node, name)), &request, &e);
    if (rc != ERR_OK) {
        log_error("a new certificate cannot be asked for", LOG_ERR(&e));
        return;
    }
    const struct renew_message renew = { .request = buf_str(&request) };
    AUTO(buf) struct buf bytes = { 0 };
    message_encode(MESSAGE_RENEW, &renew, &bytes);
    if (link_send(network->link, MESSAGE_RENEW, buf_str(&bytes)) != ERR_OK)
        link_abort(network->link, "a renewal cannot be sent");
}

/* On the monotonic clock from now on; not at once again, whatever the times say. */
static void renew_plan(struct network *network, int64_t in_ms)
{
    int64_t at_ns = loop_now(network->loop).ns + in_ms * NS_PER_MS;
    if (network->renew_tried.ns != 0)
        at_ns = MAX_OF(at_ns, mono_add_s(network->renew_tried, RENEW_PAUSE_S).ns);
    network->renew_due = (struct mono){ at_ns };
    renew_wait(network);
}

void net_link_renew(void *arg)
{
    struct network *network = arg;
    if (network->link == NULL || !network->is_welcome)
        return; /* the next welcome plans it anew */
    if (!mono_before(loop_now(network->loop), network->renew_due))
        renew_send(network);
    else if (network->is_certificate_new && link_stream_count(network->link) == 0)
        link_close(network->link, "to show the renewed certificate");
    else
        renew_wait(network);
}

static void on_renewed(struct network *network, const struct renewed_message *renewed)
{
    struct error e = { 0 };
    enum err rc = net_identity_renew(network->options.state_dir, &network->identity,
                                     renewed->certificate, buf_str(&network->renew_key), &e);
    if (rc != ERR_OK) {
        log_error("a new certificate cannot be kept", LOG_ERR(&e));
        return;
    }
    log_info("certificate renewed");
    tls_context_free(network->tls); /* the next dial shows the new one */
    network->tls = NULL;
    network->is_certificate_new = true;
    renew_plan(network, net_identity_renew_in_ms(&network->identity, network->identity.not_before));
    if (network->is_welcome)
        network_timer_in_ms(network, &network->renew, 0);
    else
        link_close(network->link, "the certificate was renewed"); /* the old one had expired */
}

static void on_welcome(struct network *network, const struct welcome_message *welcome)
{
    network->is_welcome = true;
    network->dial_failures = 0;
    network->heartbeat_s = MAX_OF(welcome->heartbeat_s, INT64_C(1));
    log_info("connected to the controller", LOG_SLICE("version", welcome->version),
             LOG_INT("epoch", welcome->epoch));
    net_report_inventory(network);
    network->is_report_due = false;
    if (network->is_observed_full)
        net_report_send(network);
    net_fetches_up(network->fetches);
    net_logs_up(network->logs);
    network_timer_in_ms(network, &network->beat, 0);
    network->is_certificate_new = false;
    const struct wall there = { welcome->wall_ns };
    renew_plan(network, net_identity_renew_in_ms(&network->identity, there));
}

void net_link_beat(void *arg)
{
    struct network *network = arg;
    if (!network->is_welcome)
        return;
    const struct heartbeat_message beat = {
        .number = ++network->beat_number,
        .boottime_ns = clock_boottime().ns,
        .wall_ns = clock_wall().ns,
        .epoch = obeyed_epoch(network),
        .generation = network->applied_generation,
        .challenge = network->challenge,
    };
    network->has_challenged_last = !id_is_none(network->challenge);
    network->challenge = (struct id){ 0 };
    (void)network_send_up(network, MESSAGE_HEARTBEAT,
                          &beat); /* a link that fails is dialled anew */
    network_timer_in_ms(network, &network->beat, network->heartbeat_s * 1000);
}

static void on_beat_ack(struct network *network, const struct heartbeat_ack_message *ack)
{
    struct ipc_contact down = { 0 };
    if (ack->contact.size == 0)
        return;
    if (!hex_decode(ack->contact, down.bytes, sizeof(down.bytes)))
        log_warning("a contact cannot be read");
    else
        (void)network_send_down(network, IPC_CONTACT, &down); /* the next one does as well */
}

static void on_refuse(struct network *network, const struct refuse_message *refuse)
{
    log_error("the controller refuses this node",
              LOG_STR("reason", enum_name(&refuse_reason_names, refuse->reason)),
              LOG_SLICE("detail", refuse->detail));
    bool has_tried =
        network->renew_tried.ns != 0 &&
        mono_before(loop_now(network->loop), mono_add_s(network->renew_tried, RENEW_PAUSE_S));
    if (refuse->reason == REFUSE_RENEW_ONLY && !has_tried) {
        renew_send(network);
        return;
    }
    if (refuse->reason != REFUSE_BUSY)
        network->dial_failures += 4; /* it needs a person: do not hurry */
    link_close(network->link, "refused");
}

static void on_controller_message(struct network *network, enum message_type type,
                                  const void *message)
{
    if (type == MESSAGE_WELCOME)
        on_welcome(network, message);
    else if (type == MESSAGE_REFUSE)
        on_refuse(network, message);
    else if (type == MESSAGE_HEARTBEAT_ACK)
        on_beat_ack(network, message);
    else if (type == MESSAGE_IMAGE_SOURCE)
        net_fetches_source(network->fetches, message);
    else if (type == MESSAGE_LOG_WANTED)
        net_logs_wanted(network->logs, message);
    else if (type == MESSAGE_RENEWED)
        on_renewed(network, message);
}

static void on_link_message(struct link *link, uint16_t type, struct str payload, void *arg)
{
    struct network *network = arg;
    if (type == MESSAGE_DESIRED) {
        net_ipc_desired(network, payload);
        return;
    }
    const struct schema *schema = message_schema((enum message_type)type);
    if (schema == NULL)
        return; /* of a newer controller, and not needed to go on */
    AUTO(arena) struct arena arena = { 0 };
    struct error e = { 0 };
    void *message = arena_new(&arena, 1, schema->size);
    if (message_decode((enum message_type)type, payload, &arena, message, &e) != ERR_OK) {
        log_error("a message of the controller cannot be read", LOG_ERR(&e));
        link_abort(link, "a message cannot be read");
        return;
    }
    on_controller_message(network, (enum message_type)type, message);
}

static void on_link_up(struct link *link, void *arg)
{
    (void)link;
    hello_send(arg);
}

static void on_link_stream(struct link *link, struct link_stream *stream, struct str bytes,
                           void *arg)
{
    struct network *network = arg;
    AUTO(arena) struct arena arena = { 0 };
    struct stream_header header = { 0 };
    struct error e = { 0 };
    (void)link;
    if (!network->is_welcome || stream_header_decode(bytes, &arena, &header, &e) != ERR_OK) {
        link_stream_close(stream, LINK_CODE_REFUSED, STR("the stream's header cannot be read"));
        return;
    }
    net_streams_open(network->streams, stream, &header);
}

static void on_link_down(struct link *link, const char *why, void *arg)
{
    struct network *network = arg;
    (void)link;
    log_warning("no connection to the controller", LOG_STR("why", why));
    network->link = NULL;
    network->is_welcome = false;
    loop_timer_stop(network->loop, &network->beat);
    net_fetches_down(network->fetches);
    net_logs_down(network->logs);
    unsigned doublings = MIN_OF(network->dial_failures, 7U);
    int64_t ms = MIN_OF((int64_t)DIAL_FIRST_MS << doublings, (int64_t)DIAL_MAX_MS);
    network->dial_failures++;
    /* Jitter over the whole interval: ten thousand agents must not come back together. */
    network_timer_in_ms(network, &network->dial, ms / 2 + (int64_t)random_below((uint64_t)ms));
}

static const struct link_events controller_events = {
    .on_up = on_link_up,
    .on_message = on_link_message,
    .on_stream = on_link_stream,
    .on_down = on_link_down,
};

static enum err tls_open(struct network *network, struct error *e)
{
    const struct tls_client_options options = {
        .ca_pem = buf_str(&network->identity.authority),
        .certificate_pem = buf_str(&network->identity.certificate),
        .key_pem = buf_str(&network->identity.key),
        .protocol = TLS_PROTOCOL_LINK,
        .ignores_time = true, /* our clock may be wrong; the controller judges ours by its own */
    };
    return tls_client_new(&options, &network->tls, e);
}

void net_link_dial(void *arg)
{
    struct network *network = arg;
    struct error e = { 0 };
    if (network->link != NULL || !network->is_agentd_ready)
        return; /* the privileged half's hello dials */
    if (network->tls == NULL && tls_open(network, &e) != ERR_OK) {
        log_error("the node's certificate cannot be used", LOG_ERR(&e));
        network_timer_in_ms(network, &network->dial, DIAL_MAX_MS);
        return;
    }
    const struct conn_dial_options dial = {
        .host = network->identity.host,
        .port = network->identity.port,
        .tls = network->tls,
    };
    static const struct link_options link_options = { .message_bytes_max = DESIRED_MESSAGE_MAX };
    network->link = link_dial(network->loop, &dial, &link_options, &controller_events, network);
}
