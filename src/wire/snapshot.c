/*
 * snapshot.c - lines of JSON, so that a person can read one in an emergency:
 *
 *     {"snapshot":1,"sequence":..,"now":..,...}      header
 *     {"type":"class_set","version":1,"body":{..}}   one object a line, see state_walk()
 *     {"lines":N,"check":"<16 hexadecimal digits>"}  trailer: SipHash of everything before it
 *
 * The check is against torn and rotten bytes, not against an enemy: who can write the
 * store is root.
 */
#include "wire/snapshot.h"

#include <inttypes.h>
#include <string.h>

#include "wire/event_json.h"
#include "wire/records.h"

enum { SNAPSHOT_FORMAT = 1 };

#define OF struct mix_kind
static const struct field mix_fields[] = {
    { F(STRUCT, request), .schema = &request_schema, .flags = FIELD_REQUIRED },
    { F(U64, times), .min = 1, .max = INT64_MAX, .flags = FIELD_REQUIRED },
};
static const struct schema mix_schema =
    SCHEMA("MixKind", mix_fields, "how often that was asked for");
#undef OF

struct header {
    int64_t format;
    struct state_header state;
};

#define OF struct header
static const struct field header_fields[] = {
    { F_AS("snapshot", I64, format), .min = 1, .max = SNAPSHOT_FORMAT, .flags = FIELD_REQUIRED },
    { F_AS("sequence", U64, state.sequence) },
    { F_AS("now", MONO, state.now) },
    { F_AS("wall", WALL, state.wall) },
    { F_AS("epoch", U64, state.epoch) },
    { F_AS("id_key", BYTES, state.id_key) },
    { F_AS("next_tenant_number", I64, state.next_tenant_number) },
    { F_AS("mix_seen", STRUCT_LIST, state.mix_seen), .schema = &mix_schema, .max = MIX_KINDS_MAX },
    { F_AS("mix_dealt", STRUCT_LIST, state.mix_dealt), .schema = &mix_schema,
      .max = MIX_KINDS_MAX },
    { F_AS("mix_arrivals", U64, state.mix_arrivals) },
    { F_AS("mix_dealt_at", U64, state.mix_dealt_at) },
};
static const struct schema header_schema = SCHEMA("SnapshotHeader", header_fields, "a snapshot");
#undef OF

struct trailer {
    int64_t lines;
    uint8_t check[8];
};

#define OF struct trailer
static const struct field trailer_fields[] = {
    { F(I64, lines), .flags = FIELD_REQUIRED },
    { F(BYTES, check), .flags = FIELD_REQUIRED },
};
static const struct schema trailer_schema = SCHEMA("SnapshotTrailer", trailer_fields, "its end");
#undef OF

static void check_of(struct str bytes, uint8_t out[8])
{
    static const uint8_t key[16] = "berth snapshot 1";
    uint64_t sum = siphash(key, bytes.data, bytes.size);

    memcpy(out, &sum, sizeof(sum));
}

struct writer {
    struct buf *out;
    int64_t lines;
};

static void write_event(void *arg, const struct event *event)
{
    struct writer *writer = arg;

    event_line_encode(event, writer->out);
    buf_add_char(writer->out, '\n');
    writer->lines++;
}

static void write_bare_event(void *arg, const struct event *event)
{
    struct event copy = *event;

    if (event->type == EV_TOKEN_SET || event->type == EV_CREDENTIAL_SET ||
        event->type == EV_HOOK_SET || event->type == EV_UPLOAD_STORED)
        return;
    if (event->type == EV_WORKLOAD_SUBMITTED)
        copy.workload_submitted.spec_json = (struct str){ 0 };
    write_event(arg, &copy);
}

static void write_all(const struct state *state, bool is_bare, struct buf *out)
{
    const struct header none = { .format = SNAPSHOT_FORMAT };
    const size_t start = out->size;
    struct header header = { SNAPSHOT_FORMAT, state_header(state) };
    struct json_writer w = json_writer_of(out);
    struct writer writer = { .out = out };
    struct trailer trailer = { 0 };

    if (is_bare) /* ids are made with it */
        memcpy(header.state.id_key, none.state.id_key, sizeof(none.state.id_key));
    schema_encode(&w, &header_schema, &header, WIRE_STORED, NULL);
    buf_add_char(out, '\n');
    state_walk(state, is_bare ? write_bare_event : write_event, &writer);

    trailer.lines = writer.lines;
    check_of((struct str){ out->data + start, out->size - start }, trailer.check);
    w = json_writer_of(out);
    schema_encode(&w, &trailer_schema, &trailer, WIRE_STORED, NULL);
    buf_add_char(out, '\n');
}

void snapshot_write(const struct state *state, struct buf *out)
{
    write_all(state, false, out);
}

void snapshot_write_bare(const struct state *state, struct buf *out)
{
    write_all(state, true, out);
}

/* Cuts the last line off `*bytes` and holds it against the rest. */
static enum err read_trailer(struct str *bytes, struct trailer *trailer, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    uint8_t check[8];

    if (bytes->size == 0 || bytes->data[bytes->size - 1] != '\n')
        return err_set(e, ERR_CORRUPT, "snapshot is cut short: its last line has no end");
    const char *before = memrchr(bytes->data, '\n', bytes->size - 1);
    size_t start = before != NULL ? (size_t)(before + 1 - bytes->data) : 0;
    struct str line = { bytes->data + start, bytes->size - 1 - start };

    if (schema_decode_text(&trailer_schema, line, UNKNOWN_IGNORED, &arena, trailer, e) != ERR_OK)
        return err_wrap(e, ERR_CORRUPT, "snapshot is cut short: its trailer is missing");
    bytes->size = start;
    check_of(*bytes, check);
    if (memcmp(check, trailer->check, sizeof(check)) != 0)
        return err_set(e, ERR_CORRUPT, "snapshot is damaged: its check does not match");
    return ERR_OK;
}

static enum err read_header(struct str line, struct state *state, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    struct header header = { 0 };

    if (schema_decode_text(&header_schema, line, UNKNOWN_IGNORED, &arena, &header, e) != ERR_OK)
        return err_wrap(e, ERR_CORRUPT, "header of the snapshot");
    state_restore_header(state, &header.state);
    return ERR_OK;
}

enum err snapshot_read(struct str bytes, struct state *state, struct error *e)
{
    AUTO(arena) struct arena arena = { 0 };
    struct trailer trailer = { 0 };
    int64_t lines = 0;
    enum err rc = read_trailer(&bytes, &trailer, e);
    if (rc == ERR_OK)
        rc = read_header(str_cut(&bytes, '\n'), state, e);
    if (rc != ERR_OK)
        return rc;

    while (bytes.size > 0) {
        struct event event;
        lines++;
        arena_reset(&arena);
        rc = event_line_decode(str_cut(&bytes, '\n'), &arena, &event, e);
        if (rc != ERR_OK)
            return err_wrap(e, ERR_CORRUPT, "snapshot, line %" PRId64, lines + 1);
        evolve_restored(state, &event);
    }
    if (lines != trailer.lines)
        return err_set(e, ERR_CORRUPT, "snapshot has %" PRId64 " objects, but should have %" PRId64,
                       lines, trailer.lines);
    return ERR_OK;
}
