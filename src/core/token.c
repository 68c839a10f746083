/* token.c - credentials: only the digest of a secret ever gets here. */
#include <string.h>

#include "core/decide.h"

enum { JOIN_EXPIRES_S = 3600, EXPIRES_MAX_S = 10 * 366 * 24 * 3600, TOKENS_OF_TENANT_MAX = 10000 };

static enum err token_fields(const struct decision *d, struct token_record *next, struct error *e)
{
    const struct token_spec *spec = &d->command->token_create;
    const struct range expires = { "expires_s", spec->expires_s, 1, EXPIRES_MAX_S };
    enum err rc = check_text(spec->name, 200, "name", e);
    if (rc == ERR_OK)
        rc = check_text(spec->user, NAME_MAX_BYTES, "user", e);
    if (rc == ERR_OK)
        rc = check_ranges(&expires, 1, e);
    if (rc != ERR_OK)
        return rc;
    if (digest_is_none(&d->command->secret))
        return err_set(e, ERR_INVALID, "the digest of the secret is missing");
    next->name = spec->name;
    next->user = spec->user;
    next->secret = d->command->secret;
    if (spec->expires_s != UNSET)
        next->expires.ns = d->wall.ns + spec->expires_s * NS_PER_S;
    return ERR_OK;
}

/* What a role needs and what it may not have. */
static enum err token_role(const struct decision *d, struct token_record *next, struct error *e)
{
    const struct token_spec *spec = &d->command->token_create;
    if (spec->role != ROLE_ADMIN && spec->role != ROLE_MEMBER && spec->role != ROLE_NODE_JOIN)
        return err_field(e, "role", "role must be admin, member or node_join");
    next->role = (enum role)spec->role;
    if (next->role != ROLE_NODE_JOIN && spec->pool.size > 0)
        return err_field(e, "pool", "pool is for node_join tokens only");
    if (next->role != ROLE_MEMBER && spec->tenant.size > 0)
        return err_field(e, "tenant", "tenant is for member tokens only");
    if (next->role == ROLE_MEMBER) {
        struct project *tenant = NULL;
        enum err rc = find_tenant(d, spec->tenant, &tenant, e);
        if (rc != ERR_OK)
            return rc;
        if (spec->user.size == 0)
            return err_field(e, "user", "user is missing; name who will act with this token");
        if (tenant->token_count >= TOKENS_OF_TENANT_MAX)
            return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                             "tenant %.*s has %d tokens already; revoke some",
                             STR_ARG(tenant->r.path), TOKENS_OF_TENANT_MAX);
        next->tenant = tenant->r.id;
    }
    if (next->role == ROLE_NODE_JOIN) {
        if (spec->pool.size > 0 && state_pool_by_name(d->state, spec->pool) == NULL)
            return err_field(e, "pool", "there is no pool \"%.*s\"", STR_ARG(spec->pool));
        next->pool = spec->pool;
        if (next->expires.ns == 0)
            next->expires.ns = d->wall.ns + JOIN_EXPIRES_S * NS_PER_S;
    }
    return ERR_OK;
}

enum err decide_token_create(struct decision *d, struct error *e)
{
    struct token_record next = { .id = d->command->new_id, .created = d->wall };
    enum err rc = token_fields(d, &next, e);
    if (rc == ERR_OK)
        rc = token_role(d, &next, e);
    if (rc != ERR_OK)
        return rc;
    for (const struct token *t = d->state->first_token; t != NULL; t = t->next) {
        if (memcmp(&t->r.secret, &next.secret, sizeof(next.secret)) == 0)
            return err_cause(e, ERR_CONFLICT, CAUSE_CONFLICT, "this secret is in use already");
    }
    decide_add(d, EV_TOKEN_SET, next.tenant)->token_set = next;
    return ERR_OK;
}

enum err decide_token_revoke(struct decision *d, struct error *e)
{
    const struct token *token = state_token(d->state, d->command->target.id);
    char text[ID_TEXT_MAX];
    if (token == NULL)
        return not_found(e, "token", str_of(id_text(ID_TOKEN, d->command->target.id, text)));
    if (token->r.is_revoked)
        return ERR_OK;
    struct event *event = decide_add(d, EV_TOKEN_SET, token->r.tenant);
    event->token_set = token->r;
    event->token_set.is_revoked = true;
    return ERR_OK;
}
