/*
 * nodes.h - the controller's end of every agent's link: joining, hello, inventory, observed sets,
 * heartbeats, desired sets, images and logs.
 *
 * Who speaks is the certificate's word alone; node ids inside messages are never read. A node whose
 * certificate has expired may renew it and nothing else; a removed node is told so. Whoever has
 * neither said hello nor opened a stream with a good token is a stranger (strangers.h).
 */
#ifndef CONTROLLER_NODES_H
#define CONTROLLER_NODES_H

#include "controller/blobs.h"
#include "controller/desired.h"
#include "controller/keys.h"
#include "controller/logstore.h"
#include "controller/registry.h"
#include "controller/strangers.h"
#include "engine/engine.h"
#include "net/link.h"
#include "wire/link.h"

struct nodes;

struct nodes_options {
    struct loop *loop;
    struct engine *engine;
    struct keys *keys;
    struct desired *desired;
    struct blobs *blobs;
    struct logstore *logs;
    const char *version;
    struct registry_rules registries;
    struct strangers_limits strangers; /* links that nobody has said hello on */
    /* Something was decided: a turn of the engine is due. */
    void (*on_decided)(void *arg);
    /* A node has obeyed a higher epoch than ours. True: a yet higher one will be claimed for it. */
    bool (*on_newer_epoch)(void *arg, uint64_t obeyed);
    void *arg;
};

/* Everything in `options` is borrowed. */
struct nodes *nodes_new(const struct nodes_options *options);
/* Links must be down: close the listener and abort them first by nodes_abort. NULL is a no-op. */
void nodes_free(struct nodes *nodes);
DEFINE_CLEANUP(nodes, struct nodes *, nodes_free)
void nodes_abort(struct nodes *nodes, const char *why);

/* Serves an accepted link: of an agent, of a machine that joins, or of a person's command line. */
void nodes_take(struct nodes *nodes, struct conn *conn);

/* Who serves streams on links that are not an agent's. */
struct cli_streams;
void nodes_set_streams(struct nodes *nodes, struct cli_streams *streams);

/* Passes a durable desired set on, if the node is connected. */
void nodes_send_desired(struct nodes *nodes, struct id node, struct str set);

/* Ends the link of a node that is a node no more; what it says next is a stranger's. */
void nodes_removed(struct nodes *nodes, struct id node);

/* The live link of a node, to open streams on; NULL: not connected. */
struct link *nodes_link(struct nodes *nodes, struct id node);
/* The run of its agent that tickets for it have to name; none: not known now. */
struct id nodes_run(const struct nodes *nodes, struct id node);
size_t nodes_connected(const struct nodes *nodes);
/* Wall-clock skew of a connected node in ms, its clock minus ours; UNSET: not connected. */
int64_t nodes_skew_ms(const struct nodes *nodes, struct id node);
/* How far a node is with an image that work there waits for; `detail` is borrowed. False:
 * not known. */
bool nodes_image_progress(const struct nodes *nodes, struct id node, const struct digest *manifest,
                          struct image_progress_message *out);

#endif
