/*
 * event_json.h - bodies of events: what the journal keeps, for every type and version, for ever.
 */
#ifndef WIRE_EVENT_JSON_H
#define WIRE_EVENT_JSON_H

#include "model/event.h"
#include "wire/schema.h"

/* The table of a type's payload; NULL: no such type or version. */
const struct schema *event_schema(enum event_type type, unsigned version);

/* Appends the payload as one line of JSON in STORED form. */
void event_body_encode(const struct event *event, struct buf *out);

/*
 * Fills the payload of `out`, whose type and version are set already. Fields that this program does
 * not know are ignored, so that an older program can read a newer journal. ERR_CORRUPT otherwise.
 */
enum err event_body_decode(struct str body, struct arena *arena, struct event *out, struct error *e)
    MUST_CHECK;

/* The text id of what the event is about ("wl_..."), for the audit; "" for settings and
 * the like. */
struct str event_object(const struct event *event, char text[ID_TEXT_MAX]);

/* A whole event, head and payload, as one JSON object: lines of snapshots and of archives. */
void event_line_encode(const struct event *event, struct buf *out);
enum err event_line_decode(struct str line, struct arena *arena, struct event *out, struct error *e)
    MUST_CHECK;

#endif
