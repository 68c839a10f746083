/*
 * net_files.h - who this node is, on disk: made by joining, renewed while it runs. The directory is
 * the network half's own; what the privileged half must trust (the controller's grant key) is
 * copied into its own directory at joining time.
 */
#ifndef AGENT_NET_FILES_H
#define AGENT_NET_FILES_H

#include "base/id.h"
#include "base/str.h"
#include "base/timepoint.h"

struct net_identity {
    struct id node;
    char host[256]; /* of the controller */
    uint16_t port;
    struct buf authority;   /* PEM: whom to trust */
    struct buf certificate; /* PEM */
    struct buf key;         /* PEM, secret */
    struct wall not_before, not_after;
};

void net_identity_done(struct net_identity *identity); /* wipes the key */
/* ERR_NOT_FOUND: this node has not joined; the text says how to. */
enum err net_identity_load(const char *dir, struct net_identity *out, struct error *e) MUST_CHECK;
/* How long the present certificate is good enough: until a third of its life, by the controller's
 * clock, since ours may be wrong; never longer than that third. Two are left for one that
 * is away. */
int64_t net_identity_renew_in_ms(const struct net_identity *identity, struct wall there);
/* Replaces certificate and key, key first under a temporary name, so that a crash leaves a pair.
 * ERR_INVALID: it is of another key (an answer to an earlier request), or names another node. */
enum err net_identity_renew(const char *dir, struct net_identity *identity, struct str certificate,
                            struct str key, struct error *e) MUST_CHECK;

struct net_join {
    const char *dir;      /* of the network half; made 0700 when missing, owned by `uid` */
    const char *identity; /* file for the privileged half: node id and grant key (identity.h) */
    unsigned uid;         /* of the network half */
    const char *host;
    uint16_t port;
    const char *token;
    const char *name;
    struct str ca_pem;  /* trust this authority; or, when empty, */
    const uint8_t *pin; /* a certificate with this SHA-256 */
};
/* Joins: asks the controller for an identity and keeps it. Blocking. ERR_CONFLICT: joined
 * already. */
enum err net_join(const struct net_join *join, struct error *e) MUST_CHECK;

#endif
