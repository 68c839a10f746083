/* Tokens, volumes, images, registry credentials and uploads: what belongs to a tenant as
 * a whole. */
#include <assert.h>
#include <string.h>

#include "model/evolve.h"
#include "model/keep.h"
#include "model/list.h"

/* NULL: it belongs to the operator, of whose objects nothing is counted. */
static struct project *owner_of(const struct state *state, struct id tenant)
{
    struct project *owner = id_is_none(tenant) ? NULL : state_project(state, tenant);
    assert((owner == NULL) == id_is_none(tenant));
    return owner;
}

void evolve_token_set(struct state *state, const struct event *event, enum history from)
{
    struct token_record r = event->token_set;
    struct token *token = state_token(state, r.id);
    struct project *owner = owner_of(state, r.tenant);
    r.version = version_of(event, from, r.version);
    token_keep(&state->pool, &r);
    if (token == NULL) {
        token = pool_new(&state->pool, sizeof(*token));
        LIST_APPEND(state->first_token, state->last_token, token, next, prev);
        id_map_put(&state->tokens, r.id, token);
        if (owner != NULL)
            owner->token_count++;
    } else {
        assert(id_eq(token->r.tenant, r.tenant));
        token_drop(&state->pool, &token->r);
    }
    token->r = r;
}

static void token_remove(struct state *state, struct token *token)
{
    struct project *owner = owner_of(state, token->r.tenant);
    if (owner != NULL)
        owner->token_count--;
    LIST_REMOVE(state->first_token, state->last_token, token, next, prev);
    (void)id_map_remove(&state->tokens, token->r.id);
    token_drop(&state->pool, &token->r);
    pool_free(&state->pool, token, sizeof(*token));
}

void evolve_token_removed(struct state *state, const struct event *event, enum history from)
{
    struct token *token = state_token(state, event->removed.id);
    (void)from;
    assert(token != NULL);
    token_remove(state, token);
}

void evolve_volume_set(struct state *state, const struct event *event, enum history from)
{
    struct volume_record r = event->volume_set;
    struct volume *volume = state_volume(state, r.id);
    struct project *owner = owner_of(state, r.tenant);
    r.version = version_of(event, from, r.version);
    str_keep(&state->pool, &r.name);
    if (volume == NULL) {
        volume = pool_new(&state->pool, sizeof(*volume));
        LIST_APPEND(state->first_volume, state->last_volume, volume, next, prev);
        id_map_put(&state->volumes, r.id, volume);
        if (owner != NULL)
            owner->volume_count++;
    } else {
        assert(id_eq(volume->r.tenant, r.tenant));
        str_drop(&state->pool, &volume->r.name);
    }
    volume->r = r;
}

static void volume_remove(struct state *state, struct volume *volume)
{
    struct project *owner = owner_of(state, volume->r.tenant);
    if (owner != NULL)
        owner->volume_count--;
    LIST_REMOVE(state->first_volume, state->last_volume, volume, next, prev);
    (void)id_map_remove(&state->volumes, volume->r.id);
    str_drop(&state->pool, &volume->r.name);
    pool_free(&state->pool, volume, sizeof(*volume));
}

void evolve_volume_removed(struct state *state, const struct event *event, enum history from)
{
    struct volume *volume = state_volume(state, event->removed.id);
    (void)from;
    assert(volume != NULL);
    volume_remove(state, volume);
}

void evolve_image_set(struct state *state, const struct event *event, enum history from)
{
    struct image_record r = event->image_set;
    struct image *image = id_map_get(&state->images, r.id);
    struct project *owner = owner_of(state, r.tenant);
    r.version = version_of(event, from, r.version);
    image_keep(&state->pool, &r);
    if (image == NULL) {
        image = pool_new(&state->pool, sizeof(*image));
        LIST_APPEND(state->first_image, state->last_image, image, next, prev);
        id_map_put(&state->images, r.id, image);
        if (owner != NULL)
            owner->image_count++;
    } else {
        assert(id_eq(image->r.tenant, r.tenant));
        image_drop(&state->pool, &image->r);
    }
    image->r = r;
}

static void image_remove(struct state *state, struct image *image)
{
    struct project *owner = owner_of(state, image->r.tenant);
    if (owner != NULL)
        owner->image_count--;
    LIST_REMOVE(state->first_image, state->last_image, image, next, prev);
    (void)id_map_remove(&state->images, image->r.id);
    image_drop(&state->pool, &image->r);
    pool_free(&state->pool, image, sizeof(*image));
}

void evolve_image_removed(struct state *state, const struct event *event, enum history from)
{
    struct image *image = id_map_get(&state->images, event->removed.id);
    (void)from;
    assert(image != NULL);
    image_remove(state, image);
}

void evolve_credential_set(struct state *state, const struct event *event, enum history from)
{
    struct credential_record r = event->credential_set;
    struct credential *credential = state_credential(state, r.id);
    r.version = version_of(event, from, r.version);
    credential_keep(&state->pool, &r);
    if (credential == NULL) {
        credential = pool_new(&state->pool, sizeof(*credential));
        LIST_APPEND(state->first_credential, state->last_credential, credential, next, prev);
        id_map_put(&state->credentials, r.id, credential);
    } else {
        assert(id_eq(credential->r.tenant, r.tenant));
        credential_drop(&state->pool, &credential->r);
    }
    credential->r = r;
}

static void credential_remove(struct state *state, struct credential *credential)
{
    LIST_REMOVE(state->first_credential, state->last_credential, credential, next, prev);
    (void)id_map_remove(&state->credentials, credential->r.id);
    credential_drop(&state->pool, &credential->r);
    pool_free(&state->pool, credential, sizeof(*credential));
}

void evolve_credential_removed(struct state *state, const struct event *event, enum history from)
{
    struct credential *credential = state_credential(state, event->removed.id);
    (void)from;
    assert(credential != NULL);
    credential_remove(state, credential);
}

static bool is_same_upload(const struct upload_stored *a, const struct upload_stored *b)
{
    return id_eq(a->tenant, b->tenant) &&
           memcmp(a->digest.bytes, b->digest.bytes, sizeof(a->digest.bytes)) == 0;
}

/* Uploads are content-addressed: the same bytes again only rename what is there. */
void evolve_upload_stored(struct state *state, const struct event *event, enum history from)
{
    struct upload_stored r = event->upload_stored;
    struct upload **at = &state->first_upload;
    (void)from;
    str_keep(&state->pool, &r.name);
    while (*at != NULL && !is_same_upload(&(*at)->r, &r))
        at = &(*at)->next;
    if (*at == NULL)
        *at = pool_new(&state->pool, sizeof(**at));
    else
        str_drop(&state->pool, &(*at)->r.name);
    (*at)->r = r;
}

static void uploads_drop(struct state *state, struct id tenant)
{
    struct upload **at = &state->first_upload;
    while (*at != NULL) {
        struct upload *upload = *at;
        if (!id_eq(upload->r.tenant, tenant)) {
            at = &upload->next;
            continue;
        }
        *at = upload->next;
        str_drop(&state->pool, &upload->r.name);
        pool_free(&state->pool, upload, sizeof(*upload));
    }
}

#define DROP_OF_TENANT(state, kind, id_of_tenant)                                                  \
    do {                                                                                           \
        struct kind *after_ = NULL;                                                                \
        for (struct kind *each_ = (state)->first_##kind; each_ != NULL; each_ = after_) {          \
            after_ = each_->next;                                                                  \
            if (id_eq(each_->r.tenant, id_of_tenant))                                              \
                kind##_remove(state, each_);                                                       \
        }                                                                                          \
    } while (0)

void belongings_drop(struct state *state, struct id tenant)
{
    DROP_OF_TENANT(state, token, tenant);
    DROP_OF_TENANT(state, volume, tenant);
    DROP_OF_TENANT(state, image, tenant);
    DROP_OF_TENANT(state, credential, tenant);
    uploads_drop(state, tenant);
}
