/*
 * network.h - the unprivileged half of an agent: TLS to the controller on one side, fixed-size
 * messages to the privileged half (ipc.h) on the other. It can start nothing by itself: what may
 * run is in sets and tickets that the controller signs and the other half verifies.
 *
 * network.c     - puts the parts together, and runs them
 * net_ipc.c     - the connection to the privileged half; desired sets
 * net_link.c    - the connection to the controller; heartbeats, the certificate
 * net_report.c  - observed sets and inventories for the controller
 * net_fetch.c   - images and uploads from the controller or a registry
 * net_logs.c    - output of workloads to the controller
 * net_streams.c - commands, terminals and trees between the controller and a workload
 * net_files.c   - identity on disk: certificate, key, authority, address
 */
#ifndef AGENT_NETWORK_H
#define AGENT_NETWORK_H

#include "agent/ipc.h"
#include "agent/net_files.h"
#include "agent/node_facts.h"
#include "net/link.h"
#include "wire/link.h"

struct net_fetches;
struct net_logs;
struct net_streams;

struct network_options {
    const char *state_dir;      /* of this half, its own uid's: identity, things being fetched */
    const char *socket;         /* of the privileged half */
    unsigned agentd_uid;        /* who must be at the other end: 0 but for tests */
    struct str_list registries; /* named by this node's operator: they may be on the node itself */
    bool is_plain_http;         /* and these are asked without TLS */
    int64_t image_timeout_s;    /* a pull that takes longer is ended */
    struct str rack, block;     /* where the machine stands; empty: not known here */
};

struct network {
    struct network_options options;
    struct loop *loop;
    struct net_identity identity;

    /* the privileged half */
    int ipc; /* -1: not connected */
    struct loop_watch ipc_watch;
    struct loop_timer ipc_retry;
    bool is_agentd_ready; /* its HELLO came */
    struct ipc_hello agentd;
    struct ipc_inventory inventory;
    bool has_inventory;
    struct node_facts facts;                   /* as they were at the start; for inventories */
    VEC(struct ipc_observed_entry) observed;   /* what it holds, by its last word */
    bool is_observed_full;                     /* a full set has been assembled */
    VEC(struct ipc_observed_entry) assembling; /* the full set, as far as it has come */
    uint64_t applied_epoch, applied_generation;

    /* a desired set on its way down */
    struct buf desired;         /* owned: set and payloads as ipc.h lays them out */
    uint32_t desired_set_bytes; /* of it, the signed set; 0: none yet */
    size_t desired_sent;        /* bytes sent; SIZE_MAX: nothing to send */
    bool is_desired_begun;
    struct loop_timer desired_again;

    /* the controller */
    struct link *link;       /* NULL: none */
    struct tls_context *tls; /* owned; remembers the session; NULL: of a certificate not used yet */
    bool is_welcome;
    struct loop_timer dial;
    unsigned dial_failures;
    struct loop_timer beat;
    int64_t heartbeat_s;
    uint64_t beat_number;
    struct id challenge;      /* of the privileged half, for the next beat; none: no need */
    bool has_challenged_last; /* the last beat carried one */
    struct loop_timer report;
    struct mono reported;
    bool is_report_due;
    struct loop_timer renew;
    struct mono renew_due, renew_tried; /* the next try, and the last one; 0: none yet */
    struct buf renew_key;               /* owned: of the certificate being asked for */
    bool is_certificate_new;            /* renewed, and not yet shown to the controller */

    struct arena arena;
    const char *egress;          /* berth-egress, in the arena */
    struct net_fetches *fetches; /* owned */
    struct net_logs *logs;       /* owned */
    struct net_streams *streams; /* owned */
};

/* Reads the identity and makes the parts; connects to nobody yet. Borrows the options' texts. */
enum err network_open(const struct network_options *options, struct network **out, struct error *e)
    MUST_CHECK;
void network_free(struct network *network); /* NULL is a no-op */
DEFINE_CLEANUP(network, struct network *, network_free)
/* Serves until network_stop, which a handler of the same loop may call. */
enum err network_run(struct network *network, struct error *e) MUST_CHECK;
void network_stop(struct network *network);

/* For the parts. False: not connected, or no room; the part tries again when told of a
 * new connection. */
bool network_send_down(struct network *network, enum ipc_tag tag, void *message);
bool network_send_up(struct network *network, enum message_type type, const void *message);

void network_timer_in_ms(struct network *network, struct loop_timer *timer, int64_t ms);

/* ---- both connections ------------------------------------------------------------------------ */

/* Those with a void * are for timers; `arg` is the network. */

void net_ipc_connect(void *arg);
/* The newest set from the controller replaces whatever was not sent yet. */
void net_ipc_desired(struct network *network, struct str bytes);
void net_ipc_desired_again(void *arg);

void net_link_dial(void *arg);
void net_link_beat(void *arg);
void net_link_renew(void *arg);

void net_report_observed(struct network *network, const struct ipc_observed *message);
void net_report_inventory(struct network *network);
void net_report_send(void *arg);

/* ---- the parts: each hears of what concerns it ----------------------------------------------- */

/*
 * ..._new borrows the network; ..._free ends whatever goes on, and takes NULL. ..._up: the
 * controller has greeted us; ..._down: the link has gone; ..._agentd_gone: the privileged half has.
 * None of them fails: what cannot be done now is tried again, or told to whoever asked.
 */

struct net_fetches *net_fetches_new(struct network *network);
void net_fetches_free(struct net_fetches *fetches);
/* The privileged half has no such image: fetch it from the controller, or ask it for the source. */
void net_fetches_need(struct net_fetches *fetches, const struct ipc_need_image *need);
/* The controller's answer: the registry that has it. */
void net_fetches_source(struct net_fetches *fetches, const struct image_source_message *source);
void net_fetches_up(struct net_fetches *fetches);
void net_fetches_down(struct net_fetches *fetches);

struct net_logs *net_logs_new(struct network *network);
void net_logs_free(struct net_logs *logs);
/* Takes the descriptor, if one came. */
void net_logs_ready(struct net_logs *logs, const struct ipc_log_ready *ready, struct fd_pass *fds);
/* How far the controller has which log: the rest of each follows, what it has is let go. */
void net_logs_wanted(struct net_logs *logs, const struct log_message *wanted);
/* Says of which ended attempts nothing will come, as they wrote nothing: before their
 * ends are told. */
void net_logs_silent(struct net_logs *logs, const struct ipc_observed_entry *entries, size_t count);
void net_logs_up(struct net_logs *logs);
void net_logs_down(struct net_logs *logs);
void net_logs_agentd_gone(struct net_logs *logs);

struct net_streams *net_streams_new(struct network *network);
void net_streams_free(struct net_streams *streams);
/* The controller opens one; it is closed with a reason where it cannot be served. */
void net_streams_open(struct net_streams *streams, struct link_stream *stream,
                      const struct stream_header *header);
/* Takes the descriptors it keeps (sets them to -1). */
void net_streams_message(struct net_streams *streams, const union ipc_message *message,
                         struct fd_pass *fds);
void net_streams_agentd_gone(struct net_streams *streams);

#endif
