/* image.c - images by name, registry credentials, and uploaded code. */
#include <string.h>

#include "core/decide.h"

enum { IMAGES_OF_TENANT_MAX = 10000, CREDENTIALS_OF_TENANT_MAX = 100 };

static const struct id no_tenant;

/* The image of exactly that owner. */
static const struct image *image_of(const struct state *state, struct id tenant, struct str name)
{
    const struct image *image = state->first_image;
    while (image != NULL && !(id_eq(image->r.tenant, tenant) && str_eq(image->r.name, name)))
        image = image->next;
    return image;
}

/* Whose image a command is about: a tenant's, or - operators naming none - everybody's. */
static enum err image_owner(const struct decision *d, struct id *out, struct error *e)
{
    struct str name = d->command->image_set.tenant;
    struct project *tenant = NULL;
    if (name.size == 0 && id_is_none(d->actor.tenant)) {
        *out = no_tenant;
        if (decide_permits(d, no_tenant))
            return ERR_OK;
        return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED,
                         "only operators offer images to every tenant");
    }
    enum err rc = find_tenant(d, name, &tenant, e);
    if (rc == ERR_OK)
        *out = tenant->r.id;
    return rc;
}

enum err decide_image_set(struct decision *d, struct error *e)
{
    const struct image_spec *spec = &d->command->image_set;
    const struct range size = { "size_bytes", spec->size_bytes, 0, INT64_C(1) << 50 };
    struct id tenant = no_tenant;
    enum err rc = image_owner(d, &tenant, e);
    if (rc == ERR_OK)
        rc = check_name(spec->name, "name", e);
    if (rc == ERR_OK)
        rc = check_text(spec->source, 1024, "source", e);
    if (rc == ERR_OK)
        rc = check_ranges(&size, 1, e);
    if (rc != ERR_OK)
        return rc;
    if (digest_is_none(&spec->manifest))
        return err_field(e, "manifest", "manifest is missing; give the digest of the manifest");
    const struct project *owner = state_project(d->state, tenant);
    if (owner != NULL && owner->image_count >= IMAGES_OF_TENANT_MAX)
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                         "the tenant has %d images already; remove some", IMAGES_OF_TENANT_MAX);

    const struct image *old = image_of(d->state, tenant, spec->name);
    struct image_record next = { .id = d->command->new_id, .tenant = tenant, .name = spec->name };
    if (old != NULL) {
        next.id = old->r.id;
        rc = decide_match(d, old->r.version, e);
        if (rc != ERR_OK)
            return rc;
        if (memcmp(&old->r.manifest, &spec->manifest, sizeof(spec->manifest)) == 0)
            return ERR_OK;
    }
    next.manifest = spec->manifest;
    next.source = spec->source;
    next.size_bytes = given_or(spec->size_bytes, 0);
    next.created = d->wall;
    decide_add(d, EV_IMAGE_SET, tenant)->image_set = next;
    return ERR_OK;
}

/* Running work keeps the digest it was resolved to; the name is all that goes. */
enum err decide_image_remove(struct decision *d, struct error *e)
{
    const struct target *target = &d->command->target;
    const struct image *image = id_map_get(&d->state->images, target->id);
    if (image == NULL && target->name.size > 0)
        image = image_of(d->state, d->actor.tenant, target->name);
    char text[ID_TEXT_MAX];
    struct str name = target->name;
    if (name.size == 0)
        name = str_of(id_text(ID_IMAGE, target->id, text));
    if (image == NULL || !decide_permits(d, image->r.tenant))
        return not_found(e, "image", name);
    enum err rc = decide_match(d, image->r.version, e);
    if (rc == ERR_OK)
        decide_add(d, EV_IMAGE_REMOVED, image->r.tenant)->removed.id = image->r.id;
    return rc;
}

/* ---- credentials --------------------------------------------------------------------------- */

enum err decide_credential_set(struct decision *d, struct error *e)
{
    const struct credential_spec *spec = &d->command->credential_set;
    struct project *tenant = NULL;
    enum err rc = find_tenant(d, spec->tenant, &tenant, e);
    if (rc == ERR_OK && spec->registry.size == 0)
        rc = err_field(e, "registry", "registry is missing; give its host, such as ghcr.io");
    if (rc == ERR_OK)
        rc = check_text(spec->registry, 255, "registry", e);
    if (rc == ERR_OK)
        rc = check_text(spec->username, 255, "username", e);
    if (rc == ERR_OK)
        rc = check_text(spec->sealed, 8192, "password", e);
    if (rc == ERR_OK && spec->sealed.size == 0)
        rc = err_field(e, "password", "password is missing");
    if (rc != ERR_OK)
        return rc;

    const struct credential *old = NULL;
    size_t count = 0;
    for (const struct credential *c = d->state->first_credential; c != NULL; c = c->next) {
        if (!id_eq(c->r.tenant, tenant->r.id))
            continue;
        count++;
        if (str_eq(c->r.registry, spec->registry))
            old = c;
    }
    if (old == NULL && count >= CREDENTIALS_OF_TENANT_MAX)
        return err_cause(e, ERR_LIMIT, CAUSE_EXCEEDS_LIMIT,
                         "the tenant has %d registry credentials already; remove some",
                         CREDENTIALS_OF_TENANT_MAX);
    if (old != NULL) {
        rc = decide_match(d, old->r.version, e);
        if (rc != ERR_OK)
            return rc;
    }
    decide_add(d, EV_CREDENTIAL_SET, tenant->r.id)->credential_set =
        (struct credential_record){ .id = old != NULL ? old->r.id : d->command->new_id,
                                    .tenant = tenant->r.id,
                                    .registry = spec->registry,
                                    .username = spec->username,
                                    .sealed = spec->sealed };
    return ERR_OK;
}

enum err decide_credential_remove(struct decision *d, struct error *e)
{
    const struct credential *credential = state_credential(d->state, d->command->target.id);
    char text[ID_TEXT_MAX];
    if (credential == NULL || !decide_permits(d, credential->r.tenant))
        return not_found(e, "credential",
                         str_of(id_text(ID_CREDENTIAL, d->command->target.id, text)));
    enum err rc = decide_match(d, credential->r.version, e);
    if (rc == ERR_OK)
        decide_add(d, EV_CREDENTIAL_REMOVED, credential->r.tenant)->removed.id = credential->r.id;
    return rc;
}

/* ---- uploads ------------------------------------------------------------------------------- */

enum err decide_upload_stored(struct decision *d, struct error *e)
{
    const struct upload_stored *stored = &d->command->upload_stored;
    const struct project *tenant = state_project(d->state, stored->tenant);
    char text[ID_TEXT_MAX];
    if (tenant == NULL || tenant->parent != NULL || !decide_permits(d, stored->tenant))
        return not_found(e, "tenant", str_of(id_text(ID_TENANT, stored->tenant, text)));
    if (digest_is_none(&stored->digest))
        return err_field(e, "digest", "digest is missing");
    enum err rc = check_text(stored->name, 1024, "name", e);
    if (rc != ERR_OK)
        return rc;
    for (const struct upload *u = d->state->first_upload; u != NULL; u = u->next) {
        if (id_eq(u->r.tenant, stored->tenant) &&
            memcmp(&u->r.digest, &stored->digest, sizeof(stored->digest)) == 0)
            return ERR_OK;
    }
    decide_add(d, EV_UPLOAD_STORED, stored->tenant)->upload_stored = *stored;
    return ERR_OK;
}
