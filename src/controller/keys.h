/*
 * keys.h - the controller's secrets on disk: CA, server certificate, grant-signing key, session
 * tickets, and the key that seals stored passwords. All files are 0600 and of the controller alone.
 */
#ifndef CONTROLLER_KEYS_H
#define CONTROLLER_KEYS_H

#include "controller/config.h"
#include "net/ca.h"
#include "net/tls.h"
#include "wire/grant.h"

enum { KEYS_PUBLIC_BYTES = 32, KEYS_SECRET_BYTES = 64, KEYS_SEAL_BYTES = 32 };

struct keys {
    struct buf ca_pem; /* certificate, for clients to pin */
    struct buf server_pem, server_key_pem;
    struct ca *ca; /* owned */
    uint8_t grant_public[KEYS_PUBLIC_BYTES];
    uint8_t grant_secret[KEYS_SECRET_BYTES];
    uint8_t seal[KEYS_SEAL_BYTES];
    struct tls_ticket_key tickets[2]; /* today's, which encrypts, and the one before */
};

/* Makes all of them in `state_dir`, which exists. ERR_CONFLICT: there are keys already. */
enum err keys_create(const struct config *config, struct error *e) MUST_CHECK;
/* Loads them; makes a new server certificate when it ends within 30 days or the names changed. */
enum err keys_load(const struct config *config, struct keys **out, struct error *e) MUST_CHECK;
/*
 * What a running controller renews: the key of session tickets once it is a day old at `now` (who
 * holds a ticket under the one before resumes still), and the server's certificate, which is read
 * again: an operator's may have been replaced, ours is made anew near its end. `is_new`: something
 * changed. On an error what was in use stays.
 */
enum err keys_refresh(const struct config *config, struct keys *keys, struct wall now, bool *is_new,
                      struct error *e) MUST_CHECK;
void keys_free(struct keys *keys); /* wipes; NULL is a no-op */
DEFINE_CLEANUP(keys, struct keys *, keys_free)

/* Cryptography of grants with this controller's key; borrows `keys`. */
struct grant_crypto keys_grant_crypto(struct keys *keys);

/* Secrets at rest: XChaCha20-Poly1305 with the seal key. `sealed` is hexadecimal. */
void keys_seal(const struct keys *keys, struct str plain, struct buf *sealed);
enum err keys_open(const struct keys *keys, struct str sealed, struct buf *plain, struct error *e)
    MUST_CHECK;

#endif
