/* belongings.c - what tenants have besides work: tokens, volumes, images, logins, uploads. */
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "identity/token.h"
#include "wire/spec_json.h"

/* Is an object of that tenant in a list for these filters? */
static bool is_listed(const struct call *c, const struct project *only, struct id tenant)
{
    return call_allows(c, tenant) && (only == NULL || id_eq(only->r.id, tenant));
}

/* ---- tokens -------------------------------------------------------------------------------- */

enum err list_tokens(struct call *c, struct error *e)
{
    struct project *tenant = NULL;
    struct list list;
    enum err rc = call_tenant_list_begin(c, &tenant, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct token *t = call_state(c)->first_token; t != NULL && !list.has_more;
         t = t->next) {
        char text[ID_TEXT_MAX];
        struct token_view view;
        if (!is_listed(c, tenant, t->r.tenant) ||
            !list_wants(&list, id_text(ID_TOKEN, t->r.id, text)))
            continue;
        token_view_fill(&view, call_state(c), t);
        list_add(&list, &token_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

static enum err find_token(const struct call *c, struct token **out, struct error *e)
{
    struct id id = { 0 };
    struct token *token =
        id_parse(ID_TOKEN, c->request->params[0], &id) ? state_token(call_state(c), id) : NULL;

    if (token == NULL || !call_allows(c, token->r.tenant))
        return call_not_found("token", c->request->params[0], e);
    *out = token;
    return ERR_OK;
}

enum err get_token(struct call *c, struct error *e)
{
    struct token *token = NULL;
    struct token_view view;
    enum err rc = find_token(c, &token, e);

    if (rc != ERR_OK)
        return rc;
    token_view_fill(&view, call_state(c), token);
    call_answer(c, &token_view_schema, &view, token->r.version);
    return ERR_OK;
}

/* The secret is made here and travels to the answer; the command carries its digest only. */
static enum err create(struct call *c, enum role role, struct error *e)
{
    struct command *command = &c->result->command;
    char *secret = arena_new(call_arena(c), 1, TOKEN_TEXT_MAX);
    enum err rc = call_command(c, CMD_TOKEN_CREATE, e);
    if (rc == ERR_OK)
        rc = call_body(c, &command->token_create, e);
    if (rc != ERR_OK)
        return rc;

    if (command->token_create.role == UNSET)
        command->token_create.role = role;
    command->new_id = c->context->ops->new_id(c->context->ops->arg);
    token_make(command->new_id, secret, &command->secret);
    c->result->secret = str_of(secret);
    return ERR_OK;
}

enum err create_token(struct call *c, struct error *e)
{
    return create(c, ROLE_MEMBER, e);
}

enum err create_join_token(struct call *c, struct error *e)
{
    enum err rc = create(c, ROLE_NODE_JOIN, e);

    if (rc == ERR_OK && c->result->command.token_create.role != ROLE_NODE_JOIN)
        rc = err_field(e, "role", "role: is node_join here; other tokens are made at /v1/tokens");
    return rc;
}

enum err finish_token(struct call *c, struct error *e)
{
    const struct token *token = state_token(call_state(c), c->before->command.new_id);
    char text[ID_TEXT_MAX];
    struct token_view view;

    if (token == NULL)
        return call_not_found("token", (struct str){ 0 }, e);
    token_view_fill(&view, call_state(c), token);
    view.secret = c->before->secret;
    call_answer(c, &token_view_schema, &view, token->r.version);
    call_location(c, "/v1/tokens/", id_text(ID_TOKEN, token->r.id, text));
    return ERR_OK;
}

enum err revoke_token(struct call *c, struct error *e)
{
    struct token *token = NULL;
    enum err rc = find_token(c, &token, e);

    return rc == ERR_OK ? call_target(c, CMD_TOKEN_REVOKE, token->r.id, e) : rc;
}

/* ---- volumes ------------------------------------------------------------------------------- */

enum err list_volumes(struct call *c, struct error *e)
{
    struct project *tenant = NULL;
    struct list list;
    enum err rc = call_tenant_list_begin(c, &tenant, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct volume *v = call_state(c)->first_volume; v != NULL && !list.has_more;
         v = v->next) {
        char text[ID_TEXT_MAX];
        struct volume_view view;
        if (!is_listed(c, tenant, v->r.tenant) ||
            !list_wants(&list, id_text(ID_VOLUME, v->r.id, text)))
            continue;
        volume_view_fill(&view, call_state(c), v);
        list_add(&list, &volume_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

/* Who belongs to no tenant may leave it out where the name is in use once. */
static enum err volume_by_name(const struct call *c, const struct project *tenant, struct str name,
                               struct volume **out, struct error *e)
{
    struct volume *found = NULL;

    for (struct volume *v = call_state(c)->first_volume; v != NULL; v = v->next) {
        bool is_meant = tenant == NULL || id_eq(v->r.tenant, tenant->r.id);
        if (!is_meant || !call_allows(c, v->r.tenant) || !str_eq(v->r.name, name))
            continue;
        if (found != NULL)
            return err_field(e, "tenant", "tenant: more than one has a volume %.*s; name one",
                             STR_ARG(v->r.name));
        found = v;
    }
    *out = found;
    return ERR_OK;
}

static enum err find_volume(const struct call *c, struct volume **out, struct error *e)
{
    struct str name = c->request->params[0];
    struct project *tenant = NULL;
    struct volume *volume = NULL;
    struct id id = { 0 };
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;

    if (id_parse(ID_VOLUME, name, &id))
        volume = state_volume(call_state(c), id);
    else
        rc = volume_by_name(c, tenant, name, &volume, e);
    if (rc != ERR_OK)
        return rc;
    if (volume == NULL || !call_allows(c, volume->r.tenant))
        return call_not_found("volume", name, e);
    *out = volume;
    return ERR_OK;
}

static void answer_volume(struct call *c, const struct volume *volume)
{
    struct volume_view view;

    volume_view_fill(&view, call_state(c), volume);
    call_answer(c, &volume_view_schema, &view, volume->r.version);
}

enum err get_volume(struct call *c, struct error *e)
{
    struct volume *volume = NULL;
    enum err rc = find_volume(c, &volume, e);

    if (rc == ERR_OK)
        answer_volume(c, volume);
    return rc;
}

enum err create_volume(struct call *c, struct error *e)
{
    enum err rc = call_command(c, CMD_VOLUME_CREATE, e);

    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.volume_create, e);
    if (rc == ERR_OK)
        c->result->command.new_id = c->context->ops->new_id(c->context->ops->arg);
    return rc;
}

enum err finish_volume(struct call *c, struct error *e)
{
    const struct volume *volume = state_volume(call_state(c), c->before->command.new_id);
    char text[ID_TEXT_MAX];

    if (volume == NULL)
        return call_not_found("volume", c->before->command.volume_create.name, e);
    answer_volume(c, volume);
    call_location(c, "/v1/volumes/", id_text(ID_VOLUME, volume->r.id, text));
    return ERR_OK;
}

enum err remove_volume(struct call *c, struct error *e)
{
    struct volume *volume = NULL;
    enum err rc = find_volume(c, &volume, e);

    return rc == ERR_OK ? call_target(c, CMD_VOLUME_REMOVE, volume->r.id, e) : rc;
}

/* ---- images -------------------------------------------------------------------------------- */

enum err list_images(struct call *c, struct error *e)
{
    struct project *tenant = NULL;
    struct list list;
    enum err rc = call_tenant_list_begin(c, &tenant, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct image *i = call_state(c)->first_image; i != NULL && !list.has_more;
         i = i->next) {
        char text[ID_TEXT_MAX];
        struct image_view view;
        bool is_wanted = id_is_none(i->r.tenant) ? call_allows(c, i->r.tenant)
                                                 : is_listed(c, tenant, i->r.tenant);
        if (!is_wanted || !list_wants(&list, id_text(ID_IMAGE, i->r.id, text)))
            continue;
        image_view_fill(&view, call_state(c), i);
        list_add(&list, &image_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

/* What everybody is offered goes first; of a tenant's, the only one of that name will do. */
static enum err image_by_name(const struct call *c, const struct project *tenant, struct str name,
                              struct image **out, struct error *e)
{
    const struct id owner = tenant != NULL ? tenant->r.id : (struct id){ 0 };
    struct image *found = state_image_by_name(call_state(c), owner, name);

    *out = found;
    if (found != NULL || tenant != NULL)
        return ERR_OK;
    for (struct image *i = call_state(c)->first_image; i != NULL; i = i->next) {
        if (!call_allows(c, i->r.tenant) || !str_eq(i->r.name, name))
            continue;
        if (found != NULL)
            return err_field(e, "tenant", "tenant: more than one has an image %.*s; name one",
                             STR_ARG(i->r.name));
        found = i;
    }
    *out = found;
    return ERR_OK;
}

static enum err find_image(const struct call *c, struct image **out, struct error *e)
{
    struct str name = c->request->params[0];
    struct project *tenant = NULL;
    struct image *image = NULL;
    struct id id = { 0 };
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;

    if (id_parse(ID_IMAGE, name, &id))
        image = id_map_get(&call_state(c)->images, id);
    else
        rc = image_by_name(c, tenant, name, &image, e);
    if (rc != ERR_OK)
        return rc;
    if (image == NULL || !call_allows(c, image->r.tenant))
        return call_not_found("image", name, e);
    *out = image;
    return ERR_OK;
}

static void answer_image(struct call *c, const struct image *image)
{
    const struct api_ops *ops = c->context->ops;
    struct image_view view;

    image_view_fill(&view, call_state(c), image);
    if (ops->image_command != NULL)
        (void)ops->image_command(ops->arg, &image->r.manifest, call_arena(c), &view.command);
    call_answer(c, &image_view_schema, &view, image->r.version);
}

enum err get_image(struct call *c, struct error *e)
{
    struct image *image = NULL;
    enum err rc = find_image(c, &image, e);

    if (rc == ERR_OK)
        answer_image(c, image);
    return rc;
}

/* The registry has to be asked what a reference means; with the login of who may set the image. */
static enum err image_to_resolve(struct call *c, const struct image_spec *spec, struct error *e)
{
    struct api_resolve *resolve = &c->result->resolve;
    struct project *tenant = NULL;
    enum err rc = ERR_OK;

    if (spec->source.size == 0)
        return err_field(e, "source", "source is missing; give REGISTRY/NAME:TAG");
    resolve->tenant = c->context->actor.tenant;
    if (spec->tenant.size > 0)
        rc = call_tenant(c, spec->tenant, &tenant, e);
    if (rc != ERR_OK)
        return rc;
    if (tenant != NULL)
        resolve->tenant = tenant->r.id;
    if (!call_allows(c, resolve->tenant))
        return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED,
                         "only operators offer images to every tenant");
    resolve->reference = spec->source;
    c->result->outcome = API_RESOLVE;
    return ERR_OK;
}

enum err set_image(struct call *c, struct error *e)
{
    static const struct digest none;
    const struct image_spec *spec = &c->result->command.image_set;
    enum err rc = call_command(c, CMD_IMAGE_SET, e);

    if (rc == ERR_OK)
        rc = call_body(c, &c->result->command.image_set, e);
    /* Naming a blob of the store is the store's own: whoever could would read what others sent. */
    if (rc == ERR_OK && str_starts(spec->source, STR(IMAGE_BLOB_PREFIX)))
        rc = err_field(e, "source", "source: a reference in a registry is wanted");
    if (rc == ERR_OK && memcmp(&spec->manifest, &none, sizeof(none)) == 0)
        rc = image_to_resolve(c, spec, e);
    return rc;
}

void api_resolved(const struct api_resolved *resolved, struct api_result *result)
{
    result->outcome = API_COMMAND;
    result->command.image_set.manifest = resolved->manifest;
    result->command.image_set.size_bytes = resolved->size_bytes;
}

/* Whose the image in the body of this request becomes; `*out` none: everybody's. */
static enum err owner_of_image(const struct call *c, struct id *out, struct error *e)
{
    struct project *tenant = NULL;
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;

    *out = tenant != NULL ? tenant->r.id : (struct id){ 0 };
    if (!call_allows(c, *out))
        return err_cause(e, ERR_DENIED, CAUSE_NOT_PERMITTED,
                         "only operators offer images to every tenant");
    return ERR_OK;
}

enum err put_image(struct call *c, struct error *e)
{
    struct id owner = { 0 };
    enum err rc = owner_of_image(c, &owner, e);
    if (rc != ERR_OK)
        return rc;

    c->result->outcome = API_STORE_BODY;
    c->result->store_body = (struct api_store_body){ .kind = API_BODY_IMAGE,
                                                     .tenant = owner,
                                                     .name = c->request->params[0],
                                                     .bytes_max = c->request->route->body_max };
    return ERR_OK;
}

/* Asked again: between head and end of a long body the tenant may have gone. */
enum err image_stored(struct call *c, const struct api_stored *stored, struct error *e)
{
    struct project *tenant = NULL;
    char hex[2 * DIGEST_BYTES + 1];
    enum err rc = call_command(c, CMD_IMAGE_SET, e);
    if (rc == ERR_OK)
        rc = call_tenant_param(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;

    hex_encode(stored->digest.bytes, DIGEST_BYTES, hex);
    c->result->command.image_set = (struct image_spec){
        .name = c->request->params[0],
        .tenant = tenant != NULL ? tenant->r.path : (struct str){ 0 },
        .source = str_of(arena_format(c->context->arena, "%s%s", IMAGE_BLOB_PREFIX, hex)),
        .manifest = stored->manifest,
        .size_bytes = stored->size_bytes,
    };
    return ERR_OK;
}

enum err finish_image(struct call *c, struct error *e)
{
    const struct image_spec *spec = &c->before->command.image_set;
    struct id owner = c->context->actor.tenant;
    struct project *tenant = NULL;
    char text[ID_TEXT_MAX];

    if (spec->tenant.size > 0 && call_tenant(c, spec->tenant, &tenant, NULL) == ERR_OK)
        owner = tenant->r.id;
    const struct image *image = state_image_by_name(call_state(c), owner, spec->name);
    if (image == NULL)
        return call_not_found("image", spec->name, e);
    answer_image(c, image);
    call_location(c, "/v1/images/", id_text(ID_IMAGE, image->r.id, text));
    return ERR_OK;
}

enum err remove_image(struct call *c, struct error *e)
{
    struct image *image = NULL;
    enum err rc = find_image(c, &image, e);

    return rc == ERR_OK ? call_target(c, CMD_IMAGE_REMOVE, image->r.id, e) : rc;
}

/* ---- logins at registries ------------------------------------------------------------------ */

enum err list_credentials(struct call *c, struct error *e)
{
    struct project *tenant = NULL;
    struct list list;
    enum err rc = call_tenant_list_begin(c, &tenant, &list, e);
    if (rc != ERR_OK)
        return rc;

    for (const struct credential *o = call_state(c)->first_credential; o != NULL && !list.has_more;
         o = o->next) {
        char text[ID_TEXT_MAX];
        struct credential_view view;
        if (!is_listed(c, tenant, o->r.tenant) ||
            !list_wants(&list, id_text(ID_CREDENTIAL, o->r.id, text)))
            continue;
        credential_view_fill(&view, call_state(c), o);
        list_add(&list, &credential_view_schema, &view);
    }
    return call_list_end(c, &list, e);
}

/* The password is sealed before anything else sees it; its plain text goes with the request. */
enum err set_credential(struct call *c, struct error *e)
{
    struct credential_spec *spec = &c->result->command.credential_set;
    enum err rc = call_command(c, CMD_CREDENTIAL_SET, e);

    if (rc == ERR_OK)
        rc = call_body(c, spec, e);
    if (rc == ERR_OK && spec->sealed.size > 0)
        spec->sealed = c->context->ops->seal(c->context->ops->arg, call_arena(c), spec->sealed);
    return rc;
}

enum err finish_credential(struct call *c, struct error *e)
{
    const struct credential_spec *spec = &c->before->command.credential_set;
    struct id owner = c->context->actor.tenant;
    struct project *tenant = NULL;
    struct credential_view view;

    if (spec->tenant.size > 0 && call_tenant(c, spec->tenant, &tenant, NULL) == ERR_OK)
        owner = tenant->r.id;
    const struct credential *credential = state_credential_at(call_state(c), owner, spec->registry);
    if (credential == NULL)
        return call_not_found("credential", spec->registry, e);
    credential_view_fill(&view, call_state(c), credential);
    call_answer(c, &credential_view_schema, &view, credential->r.version);
    return ERR_OK;
}

static enum err find_credential(const struct call *c, const struct credential **out,
                                struct error *e)
{
    struct id id = { 0 };
    const struct credential *credential = id_parse(ID_CREDENTIAL, c->request->params[0], &id)
                                              ? state_credential(call_state(c), id)
                                              : NULL;
    if (credential == NULL || !call_allows(c, credential->r.tenant))
        return call_not_found("credential", c->request->params[0], e);
    *out = credential;
    return ERR_OK;
}

enum err get_credential(struct call *c, struct error *e)
{
    const struct credential *credential = NULL;
    struct credential_view view;
    enum err rc = find_credential(c, &credential, e);

    if (rc != ERR_OK)
        return rc;
    credential_view_fill(&view, call_state(c), credential);
    call_answer(c, &credential_view_schema, &view, credential->r.version);
    return ERR_OK;
}

enum err remove_credential(struct call *c, struct error *e)
{
    const struct credential *credential = NULL;
    enum err rc = find_credential(c, &credential, e);

    if (rc != ERR_OK)
        return rc;
    return call_target(c, CMD_CREDENTIAL_REMOVE, credential->r.id, e);
}

/* ---- uploads ------------------------------------------------------------------------------- */

static enum err digest_of_path(const struct call *c, struct digest *out, struct error *e)
{
    struct str text = c->request->params[0];

    if (str_starts(text, STR("sha256:")))
        (void)str_cut(&text, ':');
    if (hex_decode(text, out->bytes, sizeof(out->bytes)))
        return ERR_OK;
    return err_field(e, "digest", "digest: must be 64 hexadecimal digits, a SHA-256");
}

/* Uploads are always a tenant's; operators have to say of which. */
static enum err tenant_of_upload(const struct call *c, struct id *out, struct error *e)
{
    struct project *tenant = NULL;
    enum err rc = call_tenant_param(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;
    if (tenant == NULL)
        return err_field(e, "tenant", "tenant: name the tenant whose upload it is");
    *out = tenant->r.id;
    return ERR_OK;
}

enum err put_upload(struct call *c, struct error *e)
{
    struct api_store_body body = { .kind = API_BODY_UPLOAD,
                                   .name = call_param(c, "name"),
                                   .bytes_max = c->request->route->body_max };
    enum err rc = digest_of_path(c, &body.expected, e);
    if (rc == ERR_OK)
        rc = tenant_of_upload(c, &body.tenant, e);
    if (rc != ERR_OK)
        return rc;
    c->result->outcome = API_STORE_BODY;
    c->result->store_body = body;
    return ERR_OK;
}

enum err upload_stored_now(struct call *c, const struct api_stored *stored, struct error *e)
{
    struct id tenant = { 0 };
    enum err rc = call_command(c, CMD_UPLOAD_STORED, e);
    if (rc == ERR_OK)
        rc = tenant_of_upload(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;

    c->result->command.upload_stored = (struct upload_stored){ .tenant = tenant,
                                                               .digest = stored->digest,
                                                               .size_bytes = stored->size_bytes,
                                                               .name = call_param(c, "name") };
    return ERR_OK;
}

static void answer_upload(struct call *c, const struct digest *digest, int64_t size_bytes,
                          struct str name)
{
    const struct upload_view view = { *digest, size_bytes, name };

    call_answer(c, &upload_view_schema, &view, 0);
}

enum err finish_upload(struct call *c, struct error *e)
{
    const struct upload_stored *stored = &c->before->command.upload_stored;

    (void)e;
    answer_upload(c, &stored->digest, stored->size_bytes, stored->name);
    return ERR_OK;
}

/* A tenant learns of its own uploads only: that others have the same bytes is not told. */
static enum err find_upload(const struct call *c, const struct upload **out, struct error *e)
{
    struct digest digest;
    struct id tenant = { 0 };
    enum err rc = digest_of_path(c, &digest, e);
    if (rc == ERR_OK)
        rc = tenant_of_upload(c, &tenant, e);
    if (rc != ERR_OK)
        return rc;

    const struct upload *upload = call_state(c)->first_upload;
    while (upload != NULL && !(id_eq(upload->r.tenant, tenant) &&
                               memcmp(&upload->r.digest, &digest, sizeof(digest)) == 0))
        upload = upload->next;
    if (upload == NULL ||
        c->context->ops->blob_size(c->context->ops->arg, tenant, &upload->r.digest) < 0)
        return call_not_found("upload", c->request->params[0], e);
    *out = upload;
    return ERR_OK;
}

enum err get_upload(struct call *c, struct error *e)
{
    const struct upload *upload = NULL;
    enum err rc = find_upload(c, &upload, e);

    if (rc == ERR_OK)
        answer_upload(c, &upload->r.digest, upload->r.size_bytes, upload->r.name);
    return rc;
}

enum err get_upload_content(struct call *c, struct error *e)
{
    const struct upload *upload = NULL;
    enum err rc = find_upload(c, &upload, e);
    if (rc != ERR_OK)
        return rc;

    c->result->outcome = API_BLOB;
    c->result->blob = (struct api_blob){ upload->r.tenant, upload->r.digest };
    return ERR_OK;
}
