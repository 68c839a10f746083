/*
 * identity.h - who this node is and whose word it takes: written once, when the node joins.
 *
 *     node nod_...
 *     controller <64 hexadecimal digits: the Ed25519 key that signs desired sets>
 *
 * A file of root's, mode 0644. The privileged half reads nothing else that a join leaves behind.
 */
#ifndef AGENT_IDENTITY_H
#define AGENT_IDENTITY_H

#include "base/id.h"
#include "wire/grant.h"

enum { IDENTITY_KEY_SIZE = 32 };

struct identity {
    struct id node;
    uint8_t controller_key[IDENTITY_KEY_SIZE];
};

/* ERR_NOT_FOUND: this node has not joined. */
MUST_CHECK enum err identity_read(const char *path, struct identity *out, struct error *e);
MUST_CHECK enum err identity_write(const char *path, const struct identity *identity,
                                   struct error *e);

/* libsodium's SHA-256 and Ed25519 verification with the controller's key; it cannot sign. The
 * result borrows `identity`. */
struct grant_crypto identity_crypto(struct identity *identity);

#endif
