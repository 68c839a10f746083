/*
 * The connection to the privileged half: what it says, and desired sets on their way down to it.
 */
#include <string.h>
#include <sys/epoll.h>

#include "agent/network.h"
#include "os/fd.h"
#include "os/log.h"

enum { IPC_RETRY_MS = 500, MESSAGES_AT_ONCE = 64, DESIRED_AGAIN_MS = 5000 };

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
    network_timer_in_ms(network, &network->ipc_retry, IPC_RETRY_MS);
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
void net_ipc_desired(struct network *network, struct str bytes)
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

/* It was not the set that was wrong: what was short may be there by now. */
void net_ipc_desired_again(void *arg)
{
    struct network *network = arg;
    network->desired_sent = network->desired_set_bytes > 0 ? 0 : SIZE_MAX;
    network->is_desired_begun = false;
    desired_push(network);
}

/* What the other half has accepted it holds to, whether or not something was to be done for it. */
static void on_desired_result(struct network *network, const struct ipc_desired_result *result)
{
    if (result->code != ERR_OK) {
        log_warning("a desired set was refused", LOG_STR("why", result->text),
                    LOG_INT("generation", result->generation));
        if (result->code == ERR_IO || result->code == ERR_UNAVAILABLE)
            network_timer_in_ms(network, &network->desired_again, DESIRED_AGAIN_MS);
        return;
    }
    network->agentd.epoch = result->epoch;
    network->agentd.generation = result->generation;
}

static void on_ipc_message(struct network *network, const union ipc_message *message,
                           struct fd_pass *fds)
{
    switch ((enum ipc_tag)message->header.tag) {
    case IPC_HELLO:
        network->agentd = message->hello;
        network->is_agentd_ready = true;
        network->desired_sent = network->desired_set_bytes > 0 ? 0 : SIZE_MAX;
        (void)network_send_down(network, IPC_INVENTORY_GET, &(struct ipc_inventory_get){ 0 });
        desired_push(network);
        if (network->link == NULL)
            network_timer_in_ms(network, &network->dial, 0);
        break;
    case IPC_INVENTORY:
        network->inventory = message->inventory;
        network->has_inventory = true;
        net_report_inventory(network);
        break;
    case IPC_OBSERVED:
        net_report_observed(network, &message->observed);
        break;
    case IPC_DESIRED_RESULT:
        on_desired_result(network, &message->desired_result);
        break;
    case IPC_CHALLENGE:
        network->challenge = message->challenge.number;
        if (!network->has_challenged_last && network->is_welcome)
            network_timer_in_ms(network, &network->beat, 0); /* fenced work waits for it to start */
        break;
    case IPC_NEED_IMAGE:
        net_fetches_need(network->fetches, &message->need_image);
        break;
    case IPC_LOG_READY:
        net_logs_ready(network->logs, &message->log_ready, fds);
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
    case IPC_LOG_AGAIN:
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
    for (unsigned i = 0; i < MESSAGES_AT_ONCE && network->ipc >= 0; i++) {
        AUTO(fd_pass) struct fd_pass fds = { 0 };
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

void net_ipc_connect(void *arg)
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
        network_timer_in_ms(network, &network->ipc_retry, IPC_RETRY_MS);
    }
}
