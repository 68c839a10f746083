/*
 * token.h - bearer tokens: berth_<id>_<64 hexadecimal digits of randomness>.
 *
 * The id finds the record, the digest of the whole text proves possession; only the digest is ever
 * stored. The fixed prefix lets secret scanners find a leaked one.
 */
#ifndef IDENTITY_TOKEN_H
#define IDENTITY_TOKEN_H

#include "model/state.h"

enum { TOKEN_TEXT_MAX = 112 }; /* longest token with its NUL */

/* A new token for the record `id`; `out` is secret and wiped by the caller. */
void token_make(struct id id, char out[TOKEN_TEXT_MAX], struct digest *digest);

/* SHA-256 of the text: what records keep. */
void token_digest(struct str text, struct digest *digest);

/*
 * Who presents this token at `now`. ERR_UNAUTHENTICATED, always with the same text, when it is
 * malformed, unknown, wrong, revoked, expired, or of a kind that cannot make requests.
 * `out->name` is borrowed from the state.
 */
enum err token_authenticate(const struct state *state, struct str text, struct wall now,
                            struct actor *out, struct error *e) MUST_CHECK;

#endif
