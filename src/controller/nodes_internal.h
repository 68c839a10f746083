/*
 * nodes_internal.h - sessions of nodes, shared by the parts of nodes.h: nodes.c (links, greeting,
 * reports), node_identity.c (certificates), node_images.c (bytes of images and uploads).
 * Nobody else includes this.
 */
#ifndef CONTROLLER_NODES_INTERNAL_H
#define CONTROLLER_NODES_INTERNAL_H

#include "controller/nodes.h"

/* How far an image is that is fetched for work of the node. */
struct image_coming {
    struct digest manifest;
    enum image_phase phase;
    int64_t done_bytes, total_bytes;
    struct buf detail; /* owned */
};

struct session {
    struct nodes *nodes;
    struct link *link;
    uint64_t number; /* of no other session since the start */
    struct id node;  /* none: not greeted yet */
    bool is_greeted;
    struct stranger stranger;
    struct id run;       /* of its berth-agentd: what tickets have to name */
    bool lacks_payloads; /* of its newest set: they did not fit into one message */
    int64_t skew_ms;
    VEC(struct image_coming) coming; /* owned; by node_images.c */
    struct session *next, *prev;
};

struct nodes {
    struct nodes_options o;
    struct id_map by_node; /* greeted sessions */
    struct session *first;
    size_t connected;
    uint64_t sessions; /* ever */
    struct strangers strangers;
    struct loop_timer patience;  /* until the oldest stranger has to go */
    struct logship *logship;     /* owned */
    struct cli_streams *streams; /* borrowed */
};

void session_send(struct session *session, enum message_type type, const void *message);
/* Says why and closes, but for REFUSE_RENEW_ONLY. */
void session_refuse(struct session *session, enum refuse_reason reason, const char *detail);
struct actor session_actor(const struct session *session);
/* A command of the node; a refusal is logged. */
void session_command(struct session *session, struct command *command);
/* False: there is none in common, and that has been said. */
bool session_chooses(struct session *session, int64_t min, int64_t max, int64_t *chosen);

/* ---- node_identity.c: handlers of messages, and ---------------------------------------------- */

void session_join(struct session *session, const void *message);
void session_renew(struct session *session, const void *message);
/* Which node the certificate names, if that node exists and this one counts; refuses otherwise. */
bool session_identify(struct session *session);

/* ---- node_images.c --------------------------------------------------------------------------- */

void session_image_wanted(struct session *session, const void *message);
void session_image_progress(struct session *session, const void *message);
/* Forgets how far images are that nothing waits for any more; all of them. */
void session_images_settle(struct session *session);
void session_images_forget(struct session *session);
void session_open_blob(struct session *session, struct link_stream *stream,
                       const struct stream_header *header);

#endif
