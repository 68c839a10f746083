#include "wire/link.h"

#include <assert.h>
#include <inttypes.h>

/* Bounds on what a peer sends: the other side of a link is never trusted with memory. */
enum {
    TEXT_MAX = 1024,
    PEM_MAX = 16 * 1024,
    OBSERVED_MAX = 4096, /* allocations of one node */
    DIGESTS_MAX = 4096,
    LOGS_MAX = 2 * OBSERVED_MAX,
    PATH_MAX_BYTES = 4095,
    ARGUMENT_MAX = 4096,
    ARGUMENTS_MAX = 256,
    DESIRED_PAYLOADS_MAX = 4096
};

enum err protocol_choose(struct protocol_range own, struct protocol_range peer, int64_t *chosen,
                         struct error *e)
{
    int64_t highest = MIN_OF(own.max, peer.max);

    if (peer.min > peer.max || peer.min < 1)
        return err_set(e, ERR_INVALID, "protocol versions %" PRId64 "..%" PRId64 " are no range",
                       peer.min, peer.max);
    if (highest < MAX_OF(own.min, peer.min))
        return err_set(e, ERR_CONFLICT,
                       "no common protocol: this side speaks %" PRId64 "..%" PRId64
                       ", the other %" PRId64 "..%" PRId64 "; upgrade %s",
                       own.min, own.max, peer.min, peer.max,
                       own.max < peer.min ? "this side" : "the other side");
    *chosen = highest;
    return ERR_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

#define NAMES(variable, meaning, list)                                                             \
    const struct enum_names variable = { meaning, list, COUNT_OF(list) }

static const char *const refuse_reasons[REFUSE_REASON_COUNT] = {
    [REFUSE_VERSION] = "version",       [REFUSE_DENIED] = "denied", [REFUSE_REMOVED] = "removed",
    [REFUSE_RENEW_ONLY] = "renew_only", [REFUSE_BUSY] = "busy",
};
NAMES(refuse_reason_names, "reason of a refusal", refuse_reasons);

static const char *const observed_states[OBSERVED_STATE_COUNT] = {
    [OBSERVED_PREPARING] = "preparing", [OBSERVED_RUNNING] = "running",
    [OBSERVED_STOPPING] = "stopping",   [OBSERVED_EXITED] = "exited",
    [OBSERVED_FAILED] = "failed",       [OBSERVED_STUCK] = "stuck",
};
NAMES(observed_state_names, "observed state", observed_states);

static const char *const image_source_kinds[IMAGE_SOURCE_KIND_COUNT] = {
    [IMAGE_SOURCE_NONE] = "none",
    [IMAGE_SOURCE_BLOB] = "blob",
    [IMAGE_SOURCE_REGISTRY] = "registry",
};
NAMES(image_source_kind_names, "source of an image", image_source_kinds);

static const char *const image_phases[IMAGE_PHASE_COUNT] = {
    [IMAGE_PULLING] = "pulling",
    [IMAGE_UNPACKING] = "unpacking",
    [IMAGE_READY] = "ready",
    [IMAGE_FAILED] = "failed",
};
NAMES(image_phase_names, "phase of an image", image_phases);

static const char *const log_streams[LOG_STREAM_COUNT] = {
    [LOG_STDOUT] = "stdout",
    [LOG_STDERR] = "stderr",
};
NAMES(log_stream_names, "stream of a log", log_streams);

static const char *const stream_kinds[STREAM_KIND_COUNT] = {
    [STREAM_LOG] = "log",           [STREAM_BLOB] = "blob",         [STREAM_EXEC] = "exec",
    [STREAM_TREE_GET] = "tree_get", [STREAM_TREE_PUT] = "tree_put", [STREAM_FOLLOW] = "follow",
};
NAMES(stream_kind_names, "kind of a stream", stream_kinds);

/* ---- tables -------------------------------------------------------------------------------- */

#define OF struct hello_message
static const struct field hello_fields[] = {
    { F(I64, protocol_min), .flags = FIELD_REQUIRED },
    { F(I64, protocol_max), .flags = FIELD_REQUIRED },
    { F(ID, node), .id_kind = ID_NODE, .flags = FIELD_REQUIRED },
    { F(STR, boot_id), .max = NAME_MAX_BYTES },
    { F(STR, agent_version), .max = NAME_MAX_BYTES },
    { F(I64, wall_ns) },
    { F(U64, epoch) },
    { F(U64, generation) },
};
const struct schema hello_schema = SCHEMA("Hello", hello_fields, "an agent introduces itself");
#undef OF

#define OF struct welcome_message
static const struct field welcome_fields[] = {
    { F(I64, protocol), .flags = FIELD_REQUIRED },
    { F(U64, epoch) },
    { F(I64, wall_ns) },
    { F(STR, version), .max = NAME_MAX_BYTES },
    { F(I64, heartbeat_s), .min = 0, .max = 3600 },
    { F(I64, unknown_after_s) },
    { F(I64, kill_confirm_s) },
};
const struct schema welcome_schema = SCHEMA("Welcome", welcome_fields, "the agent is accepted");
#undef OF

#define OF struct refuse_message
static const struct field refuse_fields[] = {
    { F(ENUM, reason), .names = &refuse_reason_names, .flags = FIELD_REQUIRED },
    { F(STR, detail), .max = TEXT_MAX },
    { F(I64, retry_after_s), .min = 0, .max = 86400 },
};
const struct schema refuse_schema = SCHEMA("Refuse", refuse_fields, "the agent is not accepted");
#undef OF

#define OF struct found_device
static const struct field found_device_fields[] = {
    { F(I64, index), .min = 0, .max = 65535 },
    { F_AS("class", STR, class_name), .max = NAME_MAX_BYTES },
    { F(STR, vendor), .max = NAME_MAX_BYTES },
    { F(STR, uuid), .max = 96 },
    { F(STR, model), .max = 96 },
    { F(I64, memory_mib), .min = 0, .max = INT64_C(1) << 40 },
    { F(I64, numa_node), .min = -1, .max = 4096 },
    { F(ENUM, health), .names = &device_health_names },
    { F(STR, health_reason), .max = DEVICE_REASON_MAX },
    { F(BOOL, is_simulated) },
};
static const struct schema found_device_schema =
    SCHEMA("FoundDevice", found_device_fields, "a device as discovery found it");
#undef OF

#define OF struct node_inventory
static const struct field node_inventory_fields[] = {
    { F(STR, boot_id), .max = NAME_MAX_BYTES },
    { F(STR, agent_version), .max = NAME_MAX_BYTES },
    { F(STR, kernel), .max = NAME_MAX_BYTES },
    { F(STR, driver), .max = NAME_MAX_BYTES },
    { F(STR, runtime), .max = NAME_MAX_BYTES },
    { F(STR, problems), .max = 1024 },
    { F(STR, rack), .max = NAME_MAX_BYTES },
    { F(STR, block), .max = NAME_MAX_BYTES },
    { F_AS("cpu_class", STR, cpu_class_name), .max = NAME_MAX_BYTES },
    { F(I64, cpu_milli), .min = 0, .max = INT64_C(1) << 40 },
    { F(I64, memory_mib), .min = 0, .max = INT64_C(1) << 40 },
    { F(STRUCT_LIST, devices), .schema = &found_device_schema, .max = NODE_DEVICES_MAX },
};
static const struct schema node_inventory_schema =
    SCHEMA("NodeInventory", node_inventory_fields, "what a node has");
#undef OF

#define OF struct inventory_message
static const struct field inventory_fields[] = {
    { F(STRUCT, inventory), .schema = &node_inventory_schema, .flags = FIELD_REQUIRED },
    { F(ID, run), .id_kind = ID_RUN },
};
const struct schema inventory_schema =
    SCHEMA("Inventory", inventory_fields, "what a node has and can");
#undef OF

#define OF struct exit_status
static const struct field exit_fields[] = {
    { F(BOOL, is_known) },
    { F(I64, code), .min = 0, .max = 255 },
    { F(I64, signal), .min = 0, .max = 64 },
    { F(BOOL, is_oom) },
};
static const struct schema exit_schema = SCHEMA("Exit", exit_fields, "how a process ended");
#undef OF

#define OF struct observed
static const struct field one_observed_fields[] = {
    { F(ID, allocation), .id_kind = ID_ALLOCATION, .flags = FIELD_REQUIRED },
    { F(I64, attempt), .min = 0, .max = INT32_MAX },
    { F(ENUM, state), .names = &observed_state_names, .flags = FIELD_REQUIRED },
    { F(STRUCT, exit), .schema = &exit_schema },
    { F(ENUM, cause), .names = &cause_names },
    { F(STR, detail), .max = TEXT_MAX },
    { F(I64, checkpoints), .min = 0, .max = INT64_MAX },
    { F(I64, checkpoint_age_ms), .min = 0, .max = INT64_MAX },
    { F(I64, extended_s), .min = 0, .max = INT32_MAX },
};
static const struct schema one_observed_schema =
    SCHEMA("ObservedAllocation", one_observed_fields, "an allocation as its node sees it");
#undef OF

#define OF struct node_observed
static const struct field observed_fields[] = {
    { F(U64, generation) },
    { F(U64, epoch) },
    { F(STRUCT_LIST, observed), .schema = &one_observed_schema, .max = OBSERVED_MAX },
};
const struct schema observed_schema = SCHEMA("Observed", observed_fields, "all that is on a node");
#undef OF

#define OF struct heartbeat_message
static const struct field heartbeat_fields[] = {
    { F(U64, number) }, { F(I64, boottime_ns) }, { F(I64, wall_ns) },
    { F(U64, epoch) },  { F(U64, generation) },  { F(ID, challenge), .id_kind = ID_REQUEST },
};
const struct schema heartbeat_schema = SCHEMA("Heartbeat", heartbeat_fields, "a sign of life");
#undef OF

#define OF struct heartbeat_ack_message
static const struct field heartbeat_ack_fields[] = {
    { F(U64, number) },
    { F(I64, wall_ns) },
    { F(STR, contact), .max = TEXT_MAX },
};
const struct schema heartbeat_ack_schema =
    SCHEMA("HeartbeatAck", heartbeat_ack_fields, "it was heard");
#undef OF

#define OF struct payloads_wanted_message
static const struct field payloads_wanted_fields[] = {
    { F(STR_LIST, digests), .max = DIGESTS_MAX, .item_max = 2 * DIGEST_BYTES },
};
const struct schema payloads_wanted_schema =
    SCHEMA("PayloadsWanted", payloads_wanted_fields, "payloads that the agent does not have");
#undef OF

#define OF struct image_wanted_message
static const struct field image_wanted_fields[] = {
    { F(DIGEST, manifest), .flags = FIELD_REQUIRED },
    { F(ID, tenant), .id_kind = ID_TENANT },
};
const struct schema image_wanted_schema =
    SCHEMA("ImageWanted", image_wanted_fields, "an image that the agent does not have");
#undef OF

#define OF struct image_source_message
static const struct field image_source_fields[] = {
    { F(DIGEST, manifest), .flags = FIELD_REQUIRED },
    { F(ENUM, kind), .names = &image_source_kind_names, .flags = FIELD_REQUIRED },
    { F(DIGEST, blob) },
    { F(I64, size_bytes), .min = 0, .max = INT64_MAX },
    { F(STR, reference), .max = TEXT_MAX },
    { F(BOOL, is_named) },
    { F(STR, username), .max = TEXT_MAX },
    { F(STR, password), .max = 4096, .flags = FIELD_SECRET },
    { F(STR, detail), .max = TEXT_MAX },
};
const struct schema image_source_schema =
    SCHEMA("ImageSource", image_source_fields, "where to get an image");
#undef OF

#define OF struct image_progress_message
static const struct field image_progress_fields[] = {
    { F(DIGEST, manifest), .flags = FIELD_REQUIRED },
    { F(ENUM, phase), .names = &image_phase_names, .flags = FIELD_REQUIRED },
    { F(I64, done_bytes), .min = 0, .max = INT64_MAX },
    { F(I64, total_bytes), .min = 0, .max = INT64_MAX },
    { F(STR, detail), .max = TEXT_MAX },
};
const struct schema image_progress_schema =
    SCHEMA("ImageProgress", image_progress_fields, "how far an image is");
#undef OF

#define OF struct log_position
static const struct field log_position_fields[] = {
    { F(ID, allocation), .id_kind = ID_ALLOCATION, .flags = FIELD_REQUIRED },
    { F(I64, attempt), .min = 0, .max = INT32_MAX },
    { F(ENUM, stream), .names = &log_stream_names },
    { F(U64, offset) },
    { F(BOOL, is_final) },
};
static const struct schema log_position_schema =
    SCHEMA("LogPosition", log_position_fields, "a place in a log");
#undef OF

#define OF struct log_message
static const struct field log_fields[] = {
    { F(STRUCT_LIST, logs), .schema = &log_position_schema, .max = LOGS_MAX },
};
const struct schema log_schema = SCHEMA("Logs", log_fields, "logs offered or wanted");
#undef OF

#define OF struct join_message
static const struct field join_fields[] = {
    { F(I64, protocol_min), .flags = FIELD_REQUIRED },
    { F(I64, protocol_max), .flags = FIELD_REQUIRED },
    { F(STR, token), .max = 256, .flags = FIELD_REQUIRED | FIELD_SECRET },
    { F(STR, name), .max = NAME_MAX_BYTES, .flags = FIELD_REQUIRED },
    { F(STR, request), .max = PEM_MAX, .flags = FIELD_REQUIRED },
    { F(STR, agent_version), .max = NAME_MAX_BYTES },
    { F(I64, wall_ns) },
};
const struct schema join_schema = SCHEMA("Join", join_fields, "a machine wants to become a node");
#undef OF

#define OF struct joined_message
static const struct field joined_fields[] = {
    { F(I64, protocol), .flags = FIELD_REQUIRED },
    { F(ID, node), .id_kind = ID_NODE, .flags = FIELD_REQUIRED },
    { F(STR, certificate), .max = PEM_MAX, .flags = FIELD_REQUIRED },
    { F(STR, authority), .max = PEM_MAX, .flags = FIELD_REQUIRED },
    { F(STR, grant_key), .max = 64, .flags = FIELD_REQUIRED },
    { F(U64, epoch) },
};
const struct schema joined_schema = SCHEMA("Joined", joined_fields, "it is one now");
#undef OF

#define OF struct renew_message
static const struct field renew_fields[] = {
    { F(STR, request), .max = PEM_MAX, .flags = FIELD_REQUIRED },
};
const struct schema renew_schema = SCHEMA("Renew", renew_fields, "a new certificate is wanted");
#undef OF

#define OF struct renewed_message
static const struct field renewed_fields[] = {
    { F(STR, certificate), .max = PEM_MAX, .flags = FIELD_REQUIRED },
    { F(STR, authority), .max = PEM_MAX },
};
const struct schema renewed_schema = SCHEMA("Renewed", renewed_fields, "here it is");
#undef OF

#define OF struct stream_header
static const struct field stream_header_fields[] = {
    { F(ENUM, kind), .names = &stream_kind_names, .flags = FIELD_REQUIRED },
    { F(ID, workload), .id_kind = ID_WORKLOAD },
    { F(I64, member), .min = 0, .max = MEMBERS_MAX },
    { F(ID, allocation), .id_kind = ID_ALLOCATION },
    { F(I64, attempt), .min = 0, .max = INT32_MAX },
    { F(ID, volume), .id_kind = ID_VOLUME },
    { F(ENUM, log), .names = &log_stream_names },
    { F(DIGEST, digest) },
    { F(U64, offset) },
    { F(STR, path), .max = PATH_MAX_BYTES },
    { F(STR_LIST, argv), .max = ARGUMENTS_MAX, .item_max = ARGUMENT_MAX },
    { F(BOOL, is_tty) },
    { F(I64, rows), .min = 0, .max = 65535 },
    { F(I64, columns), .min = 0, .max = 65535 },
    { F(STR, term), .max = NAME_MAX_BYTES },
    { F(STR, ticket), .max = 1024 },
    { F(STR, token), .max = 256, .flags = FIELD_SECRET },
};
const struct schema stream_header_schema =
    SCHEMA("StreamHeader", stream_header_fields, "what a stream is for");
#undef OF

/* ---- messages ------------------------------------------------------------------------------ */

static const struct message_row {
    enum message_type type;
    const char *name;
    const struct schema *schema; /* NULL: binary */
} message_rows[] = {
    { MESSAGE_HELLO, "hello", &hello_schema },
    { MESSAGE_INVENTORY, "inventory", &inventory_schema },
    { MESSAGE_OBSERVED, "observed", &observed_schema },
    { MESSAGE_HEARTBEAT, "heartbeat", &heartbeat_schema },
    { MESSAGE_PAYLOADS_WANTED, "payloads_wanted", &payloads_wanted_schema },
    { MESSAGE_IMAGE_WANTED, "image_wanted", &image_wanted_schema },
    { MESSAGE_IMAGE_PROGRESS, "image_progress", &image_progress_schema },
    { MESSAGE_LOG_OFFER, "log_offer", &log_schema },
    { MESSAGE_JOIN, "join", &join_schema },
    { MESSAGE_RENEW, "renew", &renew_schema },
    { MESSAGE_WELCOME, "welcome", &welcome_schema },
    { MESSAGE_REFUSE, "refuse", &refuse_schema },
    { MESSAGE_DESIRED, "desired", NULL },
    { MESSAGE_PAYLOADS, "payloads", NULL },
    { MESSAGE_HEARTBEAT_ACK, "heartbeat_ack", &heartbeat_ack_schema },
    { MESSAGE_IMAGE_SOURCE, "image_source", &image_source_schema },
    { MESSAGE_LOG_WANTED, "log_wanted", &log_schema },
    { MESSAGE_JOINED, "joined", &joined_schema },
    { MESSAGE_RENEWED, "renewed", &renewed_schema },
};

static const struct message_row *message_row(enum message_type type)
{
    for (size_t i = 0; i < COUNT_OF(message_rows); i++)
        if (message_rows[i].type == type)
            return &message_rows[i];
    return NULL;
}

const struct schema *message_schema(enum message_type type)
{
    const struct message_row *row = message_row(type);

    return row != NULL ? row->schema : NULL;
}

const char *message_name(enum message_type type)
{
    const struct message_row *row = message_row(type);

    return row != NULL ? row->name : NULL;
}

void message_encode(enum message_type type, const void *message, struct buf *out)
{
    const struct schema *schema = message_schema(type);
    struct json_writer w = json_writer_of(out);

    assert(schema != NULL);
    schema_encode(&w, schema, message, WIRE_STORED, NULL);
}

enum err message_decode(enum message_type type, struct str bytes, struct arena *arena,
                        void *message, struct error *e)
{
    const struct schema *schema = message_schema(type);
    if (schema == NULL)
        return err_set(e, ERR_INVALID, "message of type %u is not known, or not JSON",
                       (unsigned)type);

    enum err rc = schema_decode_text(schema, bytes, UNKNOWN_IGNORED, arena, message, e);
    return rc == ERR_OK ? rc : err_wrap(e, rc, "message %s", message_name(type));
}

/* ---- binary parts -------------------------------------------------------------------------- */

static void put_u32(struct buf *out, size_t value)
{
    assert(value <= UINT32_MAX);
    uint8_t bytes[] = { (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                        (uint8_t)value };
    buf_add(out, bytes, sizeof(bytes));
}

static uint32_t get_u32(const char *at)
{
    const uint8_t *bytes = (const uint8_t *)at;

    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Cuts a u32 length and so many bytes off `*rest`. */
static bool take_sized(struct str *rest, struct str *out)
{
    if (rest->size < 4)
        return false;
    size_t size = get_u32(rest->data);
    if (size > rest->size - 4)
        return false;
    *out = (struct str){ rest->data + 4, size };
    *rest = (struct str){ rest->data + 4 + size, rest->size - 4 - size };
    return true;
}

void desired_encode(const struct desired_message *message, struct buf *out)
{
    put_u32(out, message->set.size);
    buf_add_str(out, message->set);
    for (size_t i = 0; i < message->payloads.count; i++) {
        put_u32(out, message->payloads.items[i].size);
        buf_add_str(out, message->payloads.items[i]);
    }
}

enum err desired_decode(struct str bytes, struct arena *arena, struct desired_message *out,
                        struct error *e)
{
    struct desired_message message = { 0 };
    struct str counted, payload;
    if (!take_sized(&bytes, &message.set))
        return err_set(e, ERR_INVALID, "desired set is cut short");

    for (counted = bytes; take_sized(&counted, &payload);)
        message.payloads.count++;
    if (counted.size > 0)
        return err_set(e, ERR_INVALID, "a payload of a desired set is cut short");
    if (message.payloads.count > DESIRED_PAYLOADS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d payloads", (int)DESIRED_PAYLOADS_MAX);
    message.payloads.items = arena_new(arena, message.payloads.count, sizeof(payload));
    for (size_t i = 0; take_sized(&bytes, &payload); i++)
        message.payloads.items[i] = payload;
    *out = message;
    return ERR_OK;
}

/* ---- streams ------------------------------------------------------------------------------- */

enum err stream_header_encode(const struct stream_header *header, struct buf *out, struct error *e)
{
    size_t start = out->size;
    struct json_writer w = json_writer_of(out);

    schema_encode(&w, &stream_header_schema, header, WIRE_STORED, NULL);
    if (out->size - start <= STREAM_HEADER_BYTES_MAX)
        return ERR_OK;
    size_t size = out->size - start;
    out->size = start;
    out->data[start] = '\0';
    return err_set(e, ERR_LIMIT,
                   "a stream's header of %zu bytes is larger than the %d allowed: "
                   "shorten the command or the path",
                   size, (int)STREAM_HEADER_BYTES_MAX);
}

enum err stream_header_decode(struct str bytes, struct arena *arena, struct stream_header *out,
                              struct error *e)
{
    if (bytes.size > STREAM_HEADER_BYTES_MAX)
        return err_set(e, ERR_LIMIT, "a stream's header is larger than the %d bytes allowed",
                       (int)STREAM_HEADER_BYTES_MAX);
    enum err rc = schema_decode_text(&stream_header_schema, bytes, UNKNOWN_IGNORED, arena, out, e);
    return rc == ERR_OK ? rc : err_wrap(e, rc, "header of a stream");
}

void channel_encode(enum stream_channel channel, struct str bytes, struct buf *out)
{
    const uint8_t head[4] = { (uint8_t)channel };

    assert(bytes.size <= CHANNEL_FRAME_MAX);
    buf_add(out, head, sizeof(head));
    put_u32(out, bytes.size);
    buf_add_str(out, bytes);
}

enum err channel_decode(struct str *rest, struct channel_frame *out, bool *is_complete,
                        struct error *e)
{
    *is_complete = false;
    if (rest->size < CHANNEL_HEAD)
        return ERR_OK;
    const uint8_t *head = (const uint8_t *)rest->data;
    uint32_t size = get_u32(rest->data + 4);
    if (head[0] >= CHANNEL_COUNT || head[1] != 0 || head[2] != 0 || head[3] != 0)
        return err_set(e, ERR_INVALID, "a frame of an unknown channel %u", (unsigned)head[0]);
    if (size > CHANNEL_FRAME_MAX)
        return err_set(e, ERR_LIMIT, "a frame of %u bytes is larger than the %d allowed",
                       (unsigned)size, (int)CHANNEL_FRAME_MAX);
    if (rest->size - CHANNEL_HEAD < size)
        return ERR_OK;
    *out =
        (struct channel_frame){ (enum stream_channel)head[0], { rest->data + CHANNEL_HEAD, size } };
    *rest = (struct str){ rest->data + CHANNEL_HEAD + size, rest->size - CHANNEL_HEAD - size };
    *is_complete = true;
    return ERR_OK;
}
