#include "agent/network.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/gpu/gpu.h"
#include "agent/node_facts.h"
#include "net/egress.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/log.h"
#include "os/random.h"

enum {
    IPC_RETRY_MS = 500,
    DIAL_FIRST_MS = 200,
    DIAL_MAX_MS = 15000,
    REPORT_MS = 2,
    HEARTBEAT_DEFAULT_S = 5,
    DESIRED_MESSAGE_MAX = LINK_MESSAGE_MAX,
    RENEW_PAUSE_S = 60,  /* at least between two tries to renew the certificate */
    RENEW_AGAIN_S = 600, /* without an answer */
    SHOW_AGAIN_S = 60,   /* while commands of people keep the link that showed the old one */
};

static void timer_in_ms(struct network *network, struct loop_timer *timer, int64_t ms)
{
    loop_timer_set(network->loop, timer,
                   (struct mono){ loop_now(network->loop).ns + ms * NS_PER_MS });
}

/* ---- down: the privileged half -------------------------------------------------------------- */

static void ipc_lost(struct network *network, const char *why)
{
    if (network->ipc < 0)
        return;
    log_warning("the privileged half is not there", LOG_STR("why", why));
    loop_watch_remove(network->loop, &network->ipc_watch);
    fd_close(network->ipc);
    network->ipc = -1;
    network->is_agentd_ready = false;
    network->is_observed_full = false;
    network->challenge = (struct id){ 0 };
    network->assembling.count = 0;
    network->is_desired_begun = false;
    net_logs_agentd_gone(network->logs);
    net_streams_agentd_gone(network->streams);
    timer_in_ms(network, &network->ipc_retry, IPC_RETRY_MS);
}

bool network_send_down(struct network *network, enum ipc_tag tag, void *message)
{
    struct error e = { 0 };
    if (network->ipc < 0 || !network->is_agentd_ready)
        return false;
    enum err rc = ipc_send(network->ipc, tag, message, NULL, 0, &e);
    if (rc == ERR_OK)
        return true;
    if (rc != ERR_UNAVAILABLE)
        ipc_lost(network, e.text);
    return false;
}

static void watch_ipc(struct network *network, uint32_t events)
{
    if (network->ipc >= 0)
        loop_watch_change(network->loop, &network->ipc_watch, events);
}

/* Sends as much of the desired set as there is room for. */
static void desired_push(struct network *network)
{
    if (network->desired_set_bytes == 0 || network->desired_sent == SIZE_MAX)
        return;
    if (!network->is_desired_begun) {
        struct ipc_desired_begin begin = { .set_bytes = network->desired_set_bytes,
                                           .all_bytes = (uint32_t)network->desired.size };
        if (!network_send_down(network, IPC_DESIRED_BEGIN, &begin)) {
            watch_ipc(network, EPOLLIN | EPOLLOUT);
            return;
        }
        network->is_desired_begun = true;
        network->desired_sent = 0;
    }
    static struct ipc_desired_chunk chunk; /* 32 KiB: not for the stack; one thread */
    while (network->desired_sent < network->desired.size) {
        size_t size = MIN_OF(network->desired.size - network->desired_sent, (size_t)IPC_CHUNK_MAX);
        chunk.offset = (uint32_t)network->desired_sent;
        chunk.size = (uint32_t)size;
        memcpy(chunk.bytes, network->desired.data + network->desired_sent, size);
        if (!network_send_down(network, IPC_DESIRED_CHUNK, &chunk)) {
            watch_ipc(network, EPOLLIN | EPOLLOUT);
            return;
        }
        network->desired_sent += size;
    }
    struct ipc_desired_end end = { 0 };
    bool is_sent = network_send_down(network, IPC_DESIRED_END, &end);
    watch_ipc(network, is_sent ? EPOLLIN : EPOLLIN | EPOLLOUT);
    if (is_sent) {
        network->desired_sent = SIZE_MAX;
        network->is_desired_begun = false;
    }
}

/* The newest set from the controller replaces whatever was not sent yet. */
static void desired_take(struct network *network, struct str bytes)
{
    AUTO(arena) struct arena arena = { 0 };
    struct desired_message message;
    struct error e = { 0 };
    if (desired_decode(bytes, &arena, &message, &e) != ERR_OK || message.set.size == 0) {
        log_warning("a desired set cannot be read", LOG_ERR(&e));
        return;
    }
    buf_clear(&network->desired);
    buf_add_str(&network->desired, message.set);
    for (size_t i = 0; i < message.payloads.count; i++) {
        struct str payload = message.payloads.items[i];
        uint32_t size = (uint32_t)payload.size;
        uint8_t head[4] = { (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16),
                            (uint8_t)(size >> 24) };
        buf_add(&network->desired, head, sizeof(head));
        buf_add_str(&network->desired, payload);
    }
    network->desired_set_bytes = (uint32_t)message.set.size;
    network->desired_sent = 0;
    network->is_desired_begun = false; /* a set half sent is begun anew: BEGIN replaces it */
    desired_push(network);
}

/* ---- up: reports ----------------------------------------------------------------------------- */

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

static enum observed_state state_of(const struct ipc_observed_entry *entry)
{
    switch ((enum ipc_state)entry->state) {
    case IPC_WAITING:
    case IPC_PREPARING:
        return OBSERVED_PREPARING;
    case IPC_RUNNING:
        return OBSERVED_RUNNING;
    case IPC_STOPPING:
        return OBSERVED_STOPPING;
    case IPC_EXITED:
    case IPC_GONE:
    case IPC_STATE_COUNT:
        break;
    }
    return entry->end == IPC_END_START_FAILED ? OBSERVED_FAILED : OBSERVED_EXITED;
}

static enum cause cause_of(const struct ipc_observed_entry *entry)
{
    switch ((enum ipc_end)entry->end) {
    case IPC_END_OOM:
        return CAUSE_OUT_OF_MEMORY;
    case IPC_END_TIME_LIMIT:
        return CAUSE_TIME_LIMIT;
    case IPC_END_FENCED:
    case IPC_END_LOST:
        return CAUSE_NODE_FAILURE;
    case IPC_END_START_FAILED:
        return CAUSE_MISCONFIGURED;
    case IPC_END_NONE:
    case IPC_END_EXIT:
    case IPC_END_STOPPED:
    case IPC_END_NOT_GRANTED:
    case IPC_END_COUNT:
        break;
    }
    return CAUSE_NONE;
}

static void observed_fill(struct observed *out, const struct ipc_observed_entry *entry)
{
    bool is_known = entry->exit_code >= 0 || entry->signal != 0;
    *out = (struct observed){
        .allocation = entry->allocation,
        .attempt = entry->attempt,
        .state = state_of(entry),
        .exit = { .is_known = is_known,
                  .code = entry->exit_code >= 0 ? entry->exit_code : 0,
                  .signal = entry->signal,
                  .is_oom = entry->is_oom != 0 },
        .cause = cause_of(entry),
        .detail = str_of(entry->reason),
    };
}

static void report_send(void *arg)
{
    struct network *network = arg;
    network->is_report_due = false;
    if (!network->is_observed_full)
        return;
    AUTO(arena) struct arena arena = { 0 };
    struct node_observed observed = {
        .node = network->identity.node,
        .generation = network->applied_generation,
        .epoch = network->applied_epoch,
    };
    observed.observed.items =
        arena_new(&arena, network->observed.count, sizeof(*observed.observed.items));
    for (size_t i = 0; i < network->observed.count; i++)
        observed_fill(&observed.observed.items[observed.observed.count++],
                      &network->observed.items[i]);
    net_logs_silent(network->logs, network->observed.items, network->observed.count);
    if (network_send_up(network, MESSAGE_OBSERVED, &observed))
        network->reported = loop_now(network->loop);
}

/* Soon, but the larger the set the more changes share one message. */
static void report_due(struct network *network)
{
    if (network->is_report_due || !network->is_welcome)
        return;
    network->is_report_due = true;
    int64_t pause_ms = REPORT_MS + (int64_t)network->observed.count / 10;
    int64_t at_ns = network->reported.ns + pause_ms * NS_PER_MS;
    loop_timer_set(network->loop, &network->report,
                   (struct mono){ MAX_OF(at_ns, loop_now(network->loop).ns) });
}

static void observed_put(struct network *network, const struct ipc_observed_entry *entry)
{
    size_t count = network->observed.count;
    size_t i = 0;
    while (i < count && (!id_eq(network->observed.items[i].allocation, entry->allocation) ||
                         network->observed.items[i].attempt != entry->attempt))
        i++;
    if (entry->state == IPC_GONE) {
        if (i <
            count) /* what is gone is not in the full set: that is how the controller learns it */
            network->observed.items[i] = network->observed.items[--network->observed.count];
        return;
    }
    if (i == count)
        vec_push(&network->observed, *entry);
    else
        network->observed.items[i] = *entry;
}

static void on_observed(struct network *network, const struct ipc_observed *message)
{
    network->applied_epoch = message->epoch;
    network->applied_generation = message->generation;
    if (message->is_full == 0) {
        for (size_t i = 0; i < message->count; i++)
            observed_put(network, &message->entries[i]);
        report_due(network);
        return;
    }
    if (message->first == 0)
        network->assembling.count = 0;
    if (message->first != network->assembling.count)
        return; /* a piece is missing: the next full set comes soon */
    for (size_t i = 0; i < message->count; i++)
        vec_push(&network->assembling, message->entries[i]);
    if (network->assembling.count < message->total)
        return;
    network->observed.count = 0;
    for (size_t i = 0; i < network->assembling.count; i++)
        observed_put(network, &network->assembling.items[i]);
    network->assembling.count = 0;
    network->is_observed_full = true;
    report_due(network);
}

/* What a name may be long at most: longer ones would be refused. */
static struct str text_cut(const char *text)
{
    struct str whole = str_of(text);
    whole.size = MIN_OF(whole.size, (size_t)NAME_MAX_BYTES);
    return whole;
}

static void inventory_send(struct network *network)
{
    if (!network->has_inventory)
        return;
    const struct ipc_inventory *found = &network->inventory;
    const struct node_facts *facts = &network->facts;
    char driver[sizeof(found->driver) + sizeof(found->driver_version)];
    (void)snprintf(driver, sizeof(driver), "%s%s%s", found->driver,
                   found->driver_version[0] != '\0' ? " " : "", found->driver_version);
    AUTO(arena) struct arena arena = { 0 };
    struct found_device *devices = arena_new(&arena, found->device_count, sizeof(*devices));
    for (uint32_t i = 0; i < found->device_count; i++) {
        const struct ipc_device *d = &found->devices[i];
        devices[i] = (struct found_device){
            .index = d->index,
            .class_name = str_of(d->class_name),
            .vendor = str_of(gpu_vendor_name(d->vendor)),
            .uuid = str_of(d->uuid),
            .model = str_of(d->model),
            .memory_mib = d->memory_mib,
            .numa_node = d->numa_node,
            .health = d->health == IPC_HEALTH_OK ? DEVICE_OK : DEVICE_FAILED,
            .is_simulated = d->is_simulated != 0,
        };
    }
    struct inventory_message message = {
        .inventory = {
            .node = network->identity.node,
            .boot_id = str_of(network->agentd.boot_id),
            .agent_version = str_of(network->agentd.build),
            .kernel = text_cut(facts->kernel),
            .driver = text_cut(driver),
            .runtime = text_cut(found->runtime),
            .problems = str_of(found->problems),
            .cpu_class_name = str_is(str_of(facts->machine), "aarch64") ? STR("cpu-arm")
                                                                        : STR("cpu-x86"),
            .cpu_milli = (int64_t)facts->cpu_count * 1000,
            .memory_mib = facts->memory_mib,
            .devices = { devices, found->device_count },
        },
        .run = network->agentd.run,
    };
    (void)network_send_up(network, MESSAGE_INVENTORY, &message); /* sent again after a reconnect */
}

/* What the other half has accepted it holds to, whether or not something was to be done for it. */
static void on_desired_result(struct network *network, const struct ipc_desired_result *result)
{
    if (result->code != ERR_OK) {
        log_warning("a desired set was refused", LOG_STR("why", result->text),
                    LOG_INT("generation", result->generation));
        return;
    }
    network->agentd.epoch = result->epoch;
    network->agentd.generation = result->generation;
}

static uint64_t obeyed_epoch(const struct network *network)
{
    return MAX_OF(network->agentd.epoch, network->applied_epoch);
}

static void on_ipc_message(struct network *network, const union ipc_message *message,
                           struct ipc_fds *fds)
{
    switch ((enum ipc_tag)message->header.tag) {
    case IPC_HELLO:
        network->agentd = message->hello;
        network->is_agentd_ready = true;
        network->desired_sent = network->desired_set_bytes > 0 ? 0 : SIZE_MAX;
        (void)network_send_down(network, IPC_INVENTORY_GET, &(struct ipc_inventory_get){ 0 });
        desired_push(network);
        if (network->link == NULL)
            timer_in_ms(network, &network->dial, 0);
        break;
    case IPC_INVENTORY:
        network->inventory = message->inventory;
        network->has_inventory = true;
        inventory_send(network);
        break;
    case IPC_OBSERVED:
        on_observed(network, &message->observed);
        break;
    case IPC_DESIRED_RESULT:
        on_desired_result(network, &message->desired_result);
        break;
    case IPC_CHALLENGE:
        network->challenge = message->challenge.number;
        if (!network->has_challenged_last && network->is_welcome)
            timer_in_ms(network, &network->beat, 0); /* fenced work waits for it to start */
        break;
    case IPC_NEED_IMAGE:
        net_fetches_need(network->fetches, &message->need_image);
        break;
    case IPC_LOG_READY:
        net_logs_ready(network->logs, &message->log_ready,
                       fds->count > 0 ? fd_take(&fds->fds[0]) : -1);
        break;
    case IPC_EXEC_OPENED:
    case IPC_EXEC_EXITED:
    case IPC_TREE_OPENED:
    case IPC_TREE_DONE:
        net_streams_message(network->streams, message, fds);
        break;
    case IPC_DESIRED_BEGIN:
    case IPC_DESIRED_CHUNK:
    case IPC_DESIRED_END:
    case IPC_CONTACT:
    case IPC_LOG_ACK:
    case IPC_IMAGE_READY:
    case IPC_INVENTORY_GET:
    case IPC_EXEC_OPEN:
    case IPC_EXEC_RESIZE:
    case IPC_EXEC_CLOSE:
    case IPC_TREE_OPEN:
    case IPC_TAG_END:
        break; /* ipc_receive lets none of these through upwards */
    }
}

static void on_ipc_ready(struct loop_watch *watch, uint32_t events)
{
    struct network *network = watch->arg;
    static union ipc_message message; /* large; one thread */
    (void)events;
    for (unsigned i = 0; i < 64 && network->ipc >= 0; i++) {
        AUTO(ipc_fds) struct ipc_fds fds = { 0 };
        struct error e = { 0 };
        enum err rc = ipc_receive(network->ipc, IPC_UP, &message, &fds, &e);
        if (rc == ERR_UNAVAILABLE)
            break;
        if (rc != ERR_OK) {
            ipc_lost(network, e.text);
            return;
        }
        on_ipc_message(network, &message, &fds);
    }
    if ((events & EPOLLOUT) != 0)
        desired_push(network);
}

static void on_ipc_retry(void *arg)
{
    struct network *network = arg;
    struct error e = { 0 };
    int fd = -1;
    enum err rc = ipc_connect(network->options.socket, network->options.agentd_uid, &fd, &e);
    if (rc == ERR_OK) {
        network->ipc = fd;
        network->ipc_watch = (struct loop_watch){
            .fd = fd, .events = EPOLLIN, .on_ready = on_ipc_ready, .arg = network
        };
        rc = loop_watch_add(network->loop, &network->ipc_watch, &e);
        if (rc != ERR_OK) {
            fd_close(fd);
            network->ipc = -1;
        }
    }
    if (rc != ERR_OK) {
        log_warning("the privileged half cannot be reached", LOG_ERR(&e));
        timer_in_ms(network, &network->ipc_retry, IPC_RETRY_MS);
    }
}

/* ---- up: the controller --------------------------------------------------------------------- */

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

/* A renewed certificate is shown as soon as that disturbs nobody: until then the old one counts, too. */
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

static void on_renew_due(void *arg)
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
        timer_in_ms(network, &network->renew, 0);
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
    inventory_send(network);
    network->is_report_due = false;
    if (network->is_observed_full)
        report_send(network);
    net_fetches_up(network->fetches);
    net_logs_up(network->logs);
    timer_in_ms(network, &network->beat, 0);
    network->is_certificate_new = false;
    const struct wall there = { welcome->wall_ns };
    renew_plan(network, net_identity_renew_in_ms(&network->identity, there));
}

static void on_beat(void *arg)
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
    timer_in_ms(network, &network->beat, network->heartbeat_s * 1000);
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
        desired_take(network, payload);
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
    timer_in_ms(network, &network->dial, ms / 2 + (int64_t)random_below((uint64_t)ms));
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

static void on_dial(void *arg)
{
    struct network *network = arg;
    struct error e = { 0 };
    if (network->link != NULL || !network->is_agentd_ready)
        return; /* the privileged half's hello dials */
    if (network->tls == NULL && tls_open(network, &e) != ERR_OK) {
        log_error("the node's certificate cannot be used", LOG_ERR(&e));
        timer_in_ms(network, &network->dial, DIAL_MAX_MS);
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

/* ---- life ----------------------------------------------------------------------------------- */

static struct loop_timer timer_of(void (*fn)(void *arg), struct network *network)
{
    return (struct loop_timer){ .fn = fn, .arg = network };
}

enum err network_open(const struct network_options *options, struct network **out, struct error *e)
{
    AUTO(network) struct network *network = mem_new(1, sizeof(*network));
    network->options = *options;
    network->ipc = -1;
    network->desired_sent = SIZE_MAX;
    network->heartbeat_s = HEARTBEAT_DEFAULT_S;
    node_facts_read(&network->facts, &(struct node_facts_options){ .crun = "", .skopeo = "" });
    enum err rc = net_identity_load(options->state_dir, &network->identity, e);
    if (rc == ERR_OK)
        rc = egress_find(&network->arena, &network->egress, e);
    if (rc == ERR_OK)
        rc = loop_new(&network->loop, e);
    if (rc != ERR_OK)
        return rc;
    network->ipc_retry = timer_of(on_ipc_retry, network);
    network->dial = timer_of(on_dial, network);
    network->beat = timer_of(on_beat, network);
    network->report = timer_of(report_send, network);
    network->renew = timer_of(on_renew_due, network);
    network->fetches = net_fetches_new(network);
    network->logs = net_logs_new(network);
    network->streams = net_streams_new(network);
    timer_in_ms(network, &network->ipc_retry, 0);
    *out = TAKE(network);
    return ERR_OK;
}

enum err network_run(struct network *network, struct error *e)
{
    return loop_run(network->loop, e);
}

void network_stop(struct network *network)
{
    loop_stop(network->loop);
}

void network_free(struct network *network)
{
    if (network == NULL)
        return;
    if (network->link != NULL)
        link_abort(network->link, "the agent stops");
    struct error e = { 0 };
    while (network->link != NULL && loop_turn(network->loop, 0, &e) == ERR_OK)
        continue; /* on_down follows at the end of a round */
    net_streams_free(network->streams);
    net_logs_free(network->logs);
    net_fetches_free(network->fetches);
    if (network->ipc >= 0)
        loop_watch_remove(network->loop, &network->ipc_watch);
    fd_close(network->ipc);
    tls_context_free(network->tls);
    loop_free(network->loop);
    buf_done(&network->desired);
    buf_done(&network->renew_key);
    vec_done(&network->observed);
    vec_done(&network->assembling);
    net_identity_done(&network->identity);
    arena_done(&network->arena);
    mem_free(network);
}
