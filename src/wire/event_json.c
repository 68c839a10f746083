#include "wire/event_json.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "wire/records.h"

/* What a type's payload looks like, and where in it stands the id of what it is about. */
struct event_form {
    const struct schema *schema; /* NULL: no such type */
    enum id_kind id_kind;
    bool has_object;
    size_t id_offset; /* in struct event */
};

#define FORM(table, kind, member)                                                                  \
    {                                                                                              \
        .schema = &(table), .id_kind = (kind), .has_object = true,                                 \
        .id_offset = offsetof(struct event, member)                                                \
    }

/* clang-format off */
static const struct event_form forms[EV_TYPE_COUNT] = {
    [EV_CONTROLLER_STARTED] = { .schema = &controller_started_schema },
    [EV_SETTINGS_CHANGED] = { .schema = &settings_record_schema },
    [EV_CLASS_SET] = FORM(class_record_schema, ID_CLASS, class_set.id),
    [EV_CLASS_REMOVED] = FORM(removed_class_schema, ID_CLASS, removed.id),
    [EV_POOL_SET] = FORM(pool_record_schema, ID_POOL, pool_set.id),
    [EV_POOL_REMOVED] = FORM(removed_pool_schema, ID_POOL, removed.id),
    [EV_PROFILE_SET] = FORM(profile_record_schema, ID_PROFILE, profile_set.id),
    [EV_PROFILE_REMOVED] = FORM(removed_profile_schema, ID_PROFILE, removed.id),
    [EV_PROJECT_SET] = FORM(project_record_schema, ID_PROJECT, project_set.id),
    [EV_PROJECT_REMOVED] = FORM(removed_project_schema, ID_PROJECT, removed.id),
    [EV_TOKEN_SET] = FORM(token_record_schema, ID_TOKEN, token_set.id),
    [EV_TOKEN_REMOVED] = FORM(removed_token_schema, ID_TOKEN, removed.id),
    [EV_NODE_SET] = FORM(node_record_schema, ID_NODE, node_set.id),
    [EV_NODE_CONTACT] = FORM(node_contact_schema, ID_NODE, node_contact.node),
    [EV_NODE_HOLDS] = FORM(node_holds_schema, ID_NODE, node_holds.node),
    [EV_NODE_REMOVED] = FORM(removed_node_schema, ID_NODE, removed.id),
    [EV_DEVICE_CHANGED] = FORM(device_changed_schema, ID_NODE, device_changed.node),
    [EV_WORKLOAD_SUBMITTED] = FORM(workload_record_schema, ID_WORKLOAD, workload_submitted.id),
    [EV_WORKLOAD_CHANGED] = FORM(workload_changed_schema, ID_WORKLOAD, workload_changed.workload),
    [EV_WORKLOAD_FORGOTTEN] = FORM(removed_workload_schema, ID_WORKLOAD, removed.id),
    [EV_WORKLOAD_UNTIED] = FORM(removed_untied_schema, ID_WORKLOAD, removed.id),
    [EV_GANG_CHANGED] = FORM(gang_record_schema, ID_WORKLOAD, gang_changed.workload),
    [EV_ALLOCATION_GRANTED] =
        FORM(allocation_record_schema, ID_ALLOCATION, allocation_granted.id),
    [EV_ALLOCATION_CHANGED] =
        FORM(allocation_changed_schema, ID_ALLOCATION, allocation_changed.allocation),
    [EV_ALLOCATION_NOTED] =
        FORM(allocation_noted_schema, ID_ALLOCATION, allocation_noted.allocation),
    [EV_VOLUME_SET] = FORM(volume_record_schema, ID_VOLUME, volume_set.id),
    [EV_VOLUME_REMOVED] = FORM(removed_volume_schema, ID_VOLUME, removed.id),
    [EV_IMAGE_SET] = FORM(image_record_schema, ID_IMAGE, image_set.id),
    [EV_IMAGE_REMOVED] = FORM(removed_image_schema, ID_IMAGE, removed.id),
    [EV_CREDENTIAL_SET] = FORM(credential_record_schema, ID_CREDENTIAL, credential_set.id),
    [EV_CREDENTIAL_REMOVED] = FORM(removed_credential_schema, ID_CREDENTIAL, removed.id),
    [EV_UPLOAD_STORED] = { .schema = &upload_stored_schema },
    [EV_RESERVATION_SET] = FORM(reservation_record_schema, ID_RESERVATION, reservation_set.id),
    [EV_RESERVATION_REMOVED] = FORM(removed_reservation_schema, ID_RESERVATION, removed.id),
    [EV_CHANGE_SET] = FORM(change_record_schema, ID_CHANGE, change_set.id),
    [EV_CHANGE_REMOVED] = FORM(removed_change_schema, ID_CHANGE, removed.id),
    [EV_HOOK_SET] = FORM(hook_record_schema, ID_HOOK, hook_set.id),
    [EV_HOOK_REMOVED] = FORM(removed_hook_schema, ID_HOOK, removed.id),
    [EV_HOOK_TESTED] = FORM(removed_tested_schema, ID_HOOK, removed.id),
};
/* clang-format on */

/* All payloads are members of one anonymous union, so they begin at the same place. */
static void *payload_of(struct event *event)
{
    return &event->controller_started;
}

static const void *payload_in(const struct event *event)
{
    return &event->controller_started;
}

const struct schema *event_schema(enum event_type type, unsigned version)
{
    if ((unsigned)type >= EV_TYPE_COUNT || version != 1)
        return NULL;
    return forms[type].schema;
}

void event_body_encode(const struct event *event, struct buf *out)
{
    const struct schema *schema = event_schema(event->type, event->version);
    struct json_writer w = json_writer_of(out);

    assert(schema != NULL);
    schema_encode(&w, schema, payload_in(event), WIRE_STORED, NULL);
}

static enum err unknown_event(const struct event *event, struct error *e)
{
    return err_set(e, ERR_CORRUPT,
                   "event type %u version %u is not known to this program; it was written by a "
                   "newer one: upgrade first",
                   (unsigned)event->type, event->version);
}

/* What is wrong with stored bytes is corruption, however it shows. */
static enum err corrupt(struct error *e, const struct event *event)
{
    if (e != NULL)
        e->code = ERR_CORRUPT;
    const char *name = event_name(event->type);
    return err_wrap(e, ERR_CORRUPT, "stored %s event", name != NULL ? name : "unknown");
}

enum err event_body_decode(struct str body, struct arena *arena, struct event *out, struct error *e)
{
    const struct schema *schema = event_schema(out->type, out->version);
    if (schema == NULL)
        return unknown_event(out, e);
    memset(payload_of(out), 0, schema->size);
    if (schema_decode_text(schema, body, UNKNOWN_IGNORED, arena, payload_of(out), e) != ERR_OK)
        return corrupt(e, out);
    return ERR_OK;
}

static bool is_tenant_event(const struct event *event)
{
    if (event->type == EV_PROJECT_SET)
        return id_is_none(event->project_set.parent);
    return event->type == EV_PROJECT_REMOVED && id_eq(event->removed.id, event->tenant);
}

struct str event_object(const struct event *event, char text[ID_TEXT_MAX])
{
    text[0] = '\0';
    if ((unsigned)event->type >= EV_TYPE_COUNT || !forms[event->type].has_object)
        return (struct str){ text, 0 };

    const void *at = (const char *)event + forms[event->type].id_offset;
    enum id_kind kind = is_tenant_event(event) ? ID_TENANT : forms[event->type].id_kind;
    return str_of(id_text(kind, *(const struct id *)at, text));
}

/* ---- whole events -------------------------------------------------------------------------- */

#define OF struct actor
static const struct field actor_fields[] = {
    { F(ENUM, role), .names = &role_names },
    { F(ID, tenant), .id_kind = ID_TENANT },
    { F(ID, token), .id_kind = ID_TOKEN },
    { F(ID, node), .id_kind = ID_NODE },
    { F(STR, name) },
};
static const struct schema actor_schema = SCHEMA("Actor", actor_fields, "who did it");
#undef OF

#define OF struct event
static const struct field head_fields[] = {
    { F(U64, sequence) },
    { F(MONO, at) },
    { F(WALL, wall) },
    { F(STRUCT, actor), .schema = &actor_schema },
    { F(ID, request), .id_kind = ID_REQUEST },
    { F(ID, tenant), .id_kind = ID_TENANT },
};
static const struct schema head_schema = SCHEMA("EventHead", head_fields, "about an event");
#undef OF

/* A line: {"type":..,"version":..,"head":{..},"body":{..}}, in this order. */
void event_line_encode(const struct event *event, struct buf *out)
{
    const struct schema *schema = event_schema(event->type, event->version);
    struct json_writer w = json_writer_of(out);

    assert(schema != NULL);
    json_begin_object(&w);
    json_put_text(&w, "type", event_name(event->type));
    json_put_i64(&w, "version", event->version);
    json_key(&w, "head");
    schema_encode(&w, &head_schema, event, WIRE_STORED, NULL);
    json_key(&w, "body");
    schema_encode(&w, schema, payload_in(event), WIRE_STORED, NULL);
    json_end_object(&w);
}

struct line {
    struct json_cursor c;
    bool is_first;
    struct arena *arena;
};

/* To the value of the next member, which must be that one. */
static enum err next_member(struct line *line, const char *name, enum json_kind kind,
                            struct error *e)
{
    struct str key;

    if (!json_cursor_next_key(&line->c, &line->is_first, line->arena, &key)) {
        if (line->c.problem != NULL)
            return json_cursor_error(&line->c, e);
    } else if (str_is(key, name) && json_cursor_peek(&line->c) == kind) {
        return ERR_OK;
    }
    return err_set(e, ERR_CORRUPT, "event without \"%s\" where it belongs", name);
}

static enum err read_type(struct line *line, struct event *out, struct error *e)
{
    struct str name;
    enum err rc = next_member(line, "type", JSON_KIND_STRING, e);

    if (rc != ERR_OK)
        return rc;
    if (!json_cursor_string(&line->c, line->arena, &name))
        return json_cursor_error(&line->c, e);
    if (!event_parse_name(name, &out->type))
        return err_set(e, ERR_CORRUPT, "event of the unknown type \"%.*s\"", STR_ARG(name));
    return ERR_OK;
}

static enum err read_version(struct line *line, struct event *out, struct error *e)
{
    bool is_integer = false;
    int64_t version = 0;
    enum err rc = next_member(line, "version", JSON_KIND_NUMBER, e);

    if (rc != ERR_OK)
        return rc;
    if (!json_cursor_number(&line->c, &is_integer, &version))
        return json_cursor_error(&line->c, e);
    out->version = version > 0 && version < INT32_MAX ? (unsigned)version : 0;
    return event_schema(out->type, out->version) != NULL ? ERR_OK : unknown_event(out, e);
}

static enum err read_part(struct line *line, const char *name, const struct schema *schema,
                          void *out, struct error *e)
{
    enum err rc = next_member(line, name, JSON_KIND_OBJECT, e);

    if (rc != ERR_OK)
        return rc;
    return schema_decode_at(schema, &line->c, UNKNOWN_IGNORED, line->arena, out, e);
}

static enum err read_line(struct line *line, struct event *out, struct error *e)
{
    struct str key;
    enum err rc = read_type(line, out, e);

    if (rc == ERR_OK)
        rc = read_version(line, out, e);
    if (rc == ERR_OK)
        rc = read_part(line, "head", &head_schema, out, e);
    if (rc == ERR_OK)
        rc = read_part(line, "body", event_schema(out->type, out->version), payload_of(out), e);
    if (rc != ERR_OK)
        return rc;
    if (json_cursor_next_key(&line->c, &line->is_first, line->arena, &key))
        return err_set(e, ERR_CORRUPT, "event with more than its body");
    if (line->c.problem != NULL || !json_cursor_end(&line->c))
        return json_cursor_error(&line->c, e);
    return ERR_OK;
}

enum err event_line_decode(struct str line, struct arena *arena, struct event *out, struct error *e)
{
    struct line reader = { json_cursor_of(line), true, arena };
    struct event event = { 0 };

    if (json_cursor_peek(&reader.c) != JSON_KIND_OBJECT || !json_cursor_enter(&reader.c))
        return err_set(e, ERR_CORRUPT, "an event expected, but the line holds something else");
    if (read_line(&reader, &event, e) != ERR_OK)
        return corrupt(e, &event);
    *out = event;
    return ERR_OK;
}
