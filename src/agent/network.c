#include "agent/network.h"

#include "net/egress.h"
#include "os/fd.h"

enum { HEARTBEAT_DEFAULT_S = 5 };

void network_timer_in_ms(struct network *network, struct loop_timer *timer, int64_t ms)
{
    loop_timer_set(network->loop, timer,
                   (struct mono){ loop_now(network->loop).ns + ms * NS_PER_MS });
}

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
    network->ipc_retry = timer_of(net_ipc_connect, network);
    network->desired_again = timer_of(net_ipc_desired_again, network);
    network->dial = timer_of(net_link_dial, network);
    network->beat = timer_of(net_link_beat, network);
    network->report = timer_of(net_report_send, network);
    network->renew = timer_of(net_link_renew, network);
    network->fetches = net_fetches_new(network);
    network->logs = net_logs_new(network);
    network->streams = net_streams_new(network);
    network_timer_in_ms(network, &network->ipc_retry, 0);
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
