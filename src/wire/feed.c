#include "wire/feed.h"

#include "wire/event_json.h"

bool feed_shows(const struct event *event, enum feed_view view)
{
    if (view == FEED_OPERATOR)
        return true;
    /* What leaves memory is of no interest outside, and what holds secrets is not talked about. */
    static const enum event_type untold[] = { EV_WORKLOAD_FORGOTTEN, EV_CREDENTIAL_SET,
                                              EV_CREDENTIAL_REMOVED, EV_HOOK_SET,
                                              EV_HOOK_REMOVED,       EV_HOOK_TESTED };
    for (size_t i = 0; i < COUNT_OF(untold); i++) {
        if (event->type == untold[i])
            return false;
    }
    return !id_is_none(event->tenant);
}

/* Tenants see who of their own acted; whoever else it was is "operator" or "system" to them. */
static void encode_actor(struct json_writer *w, const struct actor *actor, enum feed_view view)
{
    bool is_own = actor->role == ROLE_MEMBER;
    bool is_known = view == FEED_OPERATOR || is_own;

    json_key(w, "actor");
    json_begin_object(w);
    json_put_text(w, "role", enum_name(&role_names, actor->role));
    if (is_known && actor->name.size > 0)
        json_put_str(w, "name", actor->name);
    json_end_object(w);
}

uint64_t feed_sequence(const struct event *event, enum feed_view view)
{
    return view == FEED_TENANT ? event->tenant_sequence : event->sequence;
}

void feed_encode(const struct event *event, enum feed_view view, const struct wire_names *names,
                 struct buf *out)
{
    const struct schema *schema = event_schema(event->type, event->version);
    char text[ID_TEXT_MAX];
    char at[WALL_TEXT_MAX];
    struct json_writer w = json_writer_of(out);

    json_begin_object(&w);
    json_put_u64(&w, "sequence", feed_sequence(event, view));
    json_put_text(&w, "type", event_name(event->type));
    json_put_text(&w, "at", wall_text(event->wall, at));
    struct str object = event_object(event, text);
    if (object.size > 0)
        json_put_str(&w, "object", object);
    if (!id_is_none(event->request))
        json_put_text(&w, "request", id_text(ID_REQUEST, event->request, text));
    encode_actor(&w, &event->actor, view);
    json_key(&w, "data");
    schema_encode(&w, schema, &event->controller_started, WIRE_PUBLIC, names);
    json_end_object(&w);
}
