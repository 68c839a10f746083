#include "identity/token.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "os/random.h"

enum { SECRET_BYTES = 32 };
static const struct str prefix = { "berth_", 6 };

void token_digest(struct str text, struct digest *digest)
{
    static_assert(DIGEST_BYTES == crypto_hash_sha256_BYTES, "records keep a SHA-256");
    (void)crypto_hash_sha256(digest->bytes, (const unsigned char *)text.data, text.size);
}

void token_make(struct id id, char out[TOKEN_TEXT_MAX], struct digest *digest)
{
    uint8_t secret[SECRET_BYTES];
    char hex[2 * SECRET_BYTES + 1];
    char id_string[ID_TEXT_MAX];
    random_bytes(secret, sizeof(secret));
    hex_encode(secret, sizeof(secret), hex);
    const char *digits = id_text(ID_TOKEN, id, id_string) + strlen(id_prefix(ID_TOKEN));
    (void)snprintf(out, TOKEN_TEXT_MAX, "%s%s_%s", prefix.data, digits, hex);
    sodium_memzero(secret, sizeof(secret));
    sodium_memzero(hex, sizeof(hex));
    token_digest(str_of(out), digest);
}

static bool token_id(struct str text, struct id *out)
{
    char id_string[ID_TEXT_MAX];
    size_t wanted = prefix.size + ID_DIGITS + 1 + 2 * SECRET_BYTES;
    if (text.size != wanted || !str_starts(text, prefix) ||
        text.data[prefix.size + ID_DIGITS] != '_')
        return false;
    int length = snprintf(id_string, sizeof(id_string), "%s%.*s", id_prefix(ID_TOKEN), ID_DIGITS,
                          text.data + prefix.size);
    return length > 0 && id_parse(ID_TOKEN, str_of(id_string), out);
}

static bool token_is_live(const struct token *token, struct wall now)
{
    bool is_expired = token->r.expires.ns != 0 && token->r.expires.ns <= now.ns;
    bool makes_requests = token->r.role == ROLE_ADMIN || token->r.role == ROLE_MEMBER;
    return !token->r.is_revoked && !is_expired && makes_requests;
}

enum err token_authenticate(const struct state *state, struct str text, struct wall now,
                            struct actor *out, struct error *e)
{
    static const struct digest nothing;
    struct id id = { 0 };
    struct digest digest;
    const struct token *token = token_id(text, &id) ? state_token(state, id) : NULL;

    /* An unknown id costs the same as a wrong secret. */
    token_digest(text, &digest);
    const struct digest *wanted = token != NULL ? &token->r.secret : &nothing;
    bool is_right = sodium_memcmp(&digest, wanted, sizeof(digest)) == 0;
    if (token == NULL || !is_right || !token_is_live(token, now))
        return err_cause(e, ERR_UNAUTHENTICATED, CAUSE_UNAUTHENTICATED,
                         "the token is not valid: it may be mistyped, revoked or expired");
    *out = (struct actor){ .role = token->r.role,
                           .tenant = token->r.tenant,
                           .token = token->r.id,
                           .name = token->r.user };
    return ERR_OK;
}
