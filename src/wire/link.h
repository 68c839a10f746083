/*
 * link.h - what a controller and an agent say to each other over one link (net/link.h).
 *
 * Messages are JSON in STORED form under a u16 type; desired sets and payloads are binary. Fields a
 * side does not know are ignored, so that versions N-1, N and N+1 understand each other. Streams
 * carry bytes (logs, images, terminals, trees); what one is for stands in the header of its OPEN.
 *
 *     agent                                     controller
 *     JOIN (token, name, request)        ->     JOINED (node, certificate, keys) or REFUSE
 *     HELLO (versions, node, boot, time) ->     WELCOME (version, epoch, settings) or REFUSE
 *     INVENTORY                          ->
 *     OBSERVED (always the full set)     ->
 *                                        <-     DESIRED (signed set, new payloads)
 *     PAYLOADS_WANTED (digests)          ->     PAYLOADS
 *     HEARTBEAT (boot-time clock)        ->     HEARTBEAT_ACK (the same number back)
 *     IMAGE_WANTED (manifest)            ->     IMAGE_SOURCE; then streams STREAM_BLOB
 *     IMAGE_PROGRESS                     ->
 *     LOG_OFFER (what is there)          ->     LOG_WANTED (from where); then STREAM_LOG
 *     RENEW (request)                    ->     RENEWED (certificate)
 */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include "model/command.h"
#include "wire/schema.h"

/* A program speaks its own version and the one before; a peer may be one version newer. */
enum { PROTOCOL_MIN = 1, PROTOCOL_MAX = 1 };

struct protocol_range {
    int64_t min, max;
};

/* The highest version both speak. ERR_CONFLICT with both ranges and which side is to be
 * upgraded. */
enum err protocol_choose(struct protocol_range own, struct protocol_range peer, int64_t *chosen,
                         struct error *e) MUST_CHECK;

enum message_type {
    MESSAGE_NONE,
    /* to the controller */
    MESSAGE_HELLO = 1,
    MESSAGE_INVENTORY = 2,
    MESSAGE_OBSERVED = 3,
    MESSAGE_HEARTBEAT = 4,
    MESSAGE_PAYLOADS_WANTED = 5,
    MESSAGE_IMAGE_WANTED = 6,
    MESSAGE_IMAGE_PROGRESS = 7,
    MESSAGE_LOG_OFFER = 8,
    MESSAGE_JOIN = 9,
    MESSAGE_RENEW = 10,
    /* to the agent */
    MESSAGE_WELCOME = 101,
    MESSAGE_REFUSE = 102,
    MESSAGE_DESIRED = 103,  /* binary: desired_encode */
    MESSAGE_PAYLOADS = 104, /* binary: desired_encode with an empty set */
    MESSAGE_HEARTBEAT_ACK = 105,
    MESSAGE_IMAGE_SOURCE = 106,
    MESSAGE_LOG_WANTED = 107,
    MESSAGE_JOINED = 108,
    MESSAGE_RENEWED = 109
};

struct hello_message {
    int64_t protocol_min, protocol_max;
    struct id node;
    struct str boot_id, agent_version;
    int64_t wall_ns;
    uint64_t epoch, generation; /* of the desired set it holds; 0: none yet */
};

struct welcome_message {
    int64_t protocol;
    uint64_t epoch;
    int64_t wall_ns; /* the controller's, to measure the skew */
    struct str version;
    int64_t heartbeat_s;     /* how often */
    int64_t unknown_after_s; /* silence after which the node is UNKNOWN */
    int64_t kill_confirm_s;
};

enum refuse_reason {
    REFUSE_VERSION,    /* no common protocol: upgrade the older side */
    REFUSE_DENIED,     /* certificate or token not accepted */
    REFUSE_REMOVED,    /* the node was removed: join again */
    REFUSE_RENEW_ONLY, /* the certificate expired: send RENEW first */
    REFUSE_BUSY,       /* too many at once, or the store is not ready: try again later */
    REFUSE_REASON_COUNT
};
extern const struct enum_names refuse_reason_names;

struct refuse_message {
    enum refuse_reason reason;
    struct str detail;
    int64_t retry_after_s;
};

struct inventory_message {
    struct node_inventory inventory; /* `node` is the connection's, not the message's */
    struct id run;                   /* of berth-agentd: tickets name it (grant.h) */
};

extern const struct enum_names observed_state_names;
/* OBSERVED carries struct node_observed; `node` is the connection's. */

struct heartbeat_message {
    uint64_t number;
    int64_t boottime_ns; /* of the agent's clock, when it was sent */
    int64_t wall_ns;
    uint64_t epoch, generation; /* obeyed, and applied */
    struct id challenge;        /* of berth-agentd, to be answered by a contact; none: no need */
};

struct heartbeat_ack_message {
    uint64_t number;
    int64_t wall_ns;
    struct str contact; /* hexadecimal, as grant.h encodes it; empty without a challenge */
};

struct digest_list {
    struct digest *items;
    size_t count;
};

struct payloads_wanted_message {
    struct str_list digests; /* hexadecimal SHA-256 */
};

struct image_wanted_message {
    struct digest manifest;
    struct id tenant;
};

enum image_source_kind {
    IMAGE_SOURCE_NONE,     /* not known here any more */
    IMAGE_SOURCE_BLOB,     /* an OCI archive of the controller's: open STREAM_BLOB */
    IMAGE_SOURCE_REGISTRY, /* `reference`, with credentials if there are any */
    IMAGE_SOURCE_KIND_COUNT
};
extern const struct enum_names image_source_kind_names;

struct image_source_message {
    struct digest manifest;
    enum image_source_kind kind;
    struct digest blob; /* what to open */
    int64_t size_bytes;
    struct str reference;
    bool is_named;                 /* by an operator: it may be on a network of the site */
    struct str username, password; /* for this fetch only; never stored */
    struct str detail;             /* IMAGE_SOURCE_NONE: why */
};

enum image_phase { IMAGE_PULLING, IMAGE_UNPACKING, IMAGE_READY, IMAGE_FAILED, IMAGE_PHASE_COUNT };
extern const struct enum_names image_phase_names;

struct image_progress_message {
    struct digest manifest;
    enum image_phase phase;
    int64_t done_bytes, total_bytes; /* 0: not known */
    struct str detail;
};

enum log_stream { LOG_STDOUT, LOG_STDERR, LOG_STREAM_COUNT };
extern const struct enum_names log_stream_names;

struct log_position {
    struct id allocation;
    int64_t attempt;
    enum log_stream stream;
    uint64_t offset; /* OFFER: bytes there are; WANTED: first byte wanted */
    bool is_final;   /* OFFER: there will be no more */
};

struct log_position_list {
    struct log_position *items;
    size_t count;
};

struct log_message { /* MESSAGE_LOG_OFFER and MESSAGE_LOG_WANTED */
    struct log_position_list logs;
};

struct join_message {
    int64_t protocol_min, protocol_max;
    struct str token;
    struct str name;
    struct str request; /* certificate signing request, PEM */
    struct str agent_version;
    int64_t wall_ns;
};

struct joined_message {
    int64_t protocol;
    struct id node;
    struct str certificate; /* PEM */
    struct str authority;   /* PEM of the controller's CA */
    struct str grant_key;   /* Ed25519 public key, hexadecimal: desired sets must be signed by it */
    uint64_t epoch;
};

struct renew_message {
    struct str request; /* PEM */
};

struct renewed_message {
    struct str certificate;
    struct str authority;
};

extern const struct schema hello_schema, welcome_schema, refuse_schema, inventory_schema,
    observed_schema, heartbeat_schema, heartbeat_ack_schema, payloads_wanted_schema,
    image_wanted_schema, image_source_schema, image_progress_schema, log_schema, join_schema,
    joined_schema, renew_schema, renewed_schema;

/* The table of a type; NULL: unknown, or binary. */
const struct schema *message_schema(enum message_type type);
const char *message_name(enum message_type type); /* "hello"; NULL: unknown */

/* `message` is the struct of that type. */
void message_encode(enum message_type type, const void *message, struct buf *out);
enum err message_decode(enum message_type type, struct str bytes, struct arena *arena,
                        void *message, struct error *e) MUST_CHECK;

/* The binary envelope: a signed set of wire/grant.h (may be empty) and payloads, as
 * opaque bytes. */
struct desired_message {
    struct str set;
    struct str_list payloads;
};

void desired_encode(const struct desired_message *message, struct buf *out);
/* Slices borrow from `bytes`. ERR_INVALID when lengths do not add up. */
enum err desired_decode(struct str bytes, struct arena *arena, struct desired_message *out,
                        struct error *e) MUST_CHECK;

/* ---- streams ------------------------------------------------------------------------------- */

enum stream_kind {
    STREAM_LOG,      /* agent opens: bytes of a log from `offset` on */
    STREAM_BLOB,     /* agent opens: bytes of `digest` from `offset` on (images, uploads) */
    STREAM_EXEC,     /* CLI opens at the controller, which opens at the agent with a ticket */
    STREAM_TREE_GET, /* a tar out of a workload or a volume */
    STREAM_TREE_PUT, /* a tar into one */
    STREAM_FOLLOW,   /* CLI opens: a workload's log as it grows */
    STREAM_KIND_COUNT
};
extern const struct enum_names stream_kind_names;

/* Why a person's stream was closed before it did anything; net's own codes are below 100. */
enum stream_refusal {
    STREAM_REFUSED_NOT_FOUND = 100,
    STREAM_REFUSED_CONFLICT,
    STREAM_REFUSED_DENIED,
    STREAM_REFUSED_UNAVAILABLE,
    STREAM_REFUSED_INVALID
};

/* The header of OPEN; fields that a kind does not use stay empty. */
struct stream_header {
    enum stream_kind kind;
    struct id workload;   /* from the CLI */
    int64_t member;       /* rank, from the CLI */
    struct id allocation; /* to and from agents */
    int64_t attempt;
    struct id volume;
    enum log_stream log;
    struct digest digest;
    uint64_t offset;
    struct str path;      /* TREE: inside the workload or volume */
    struct str_list argv; /* EXEC from the CLI; agents read it out of the ticket's payload */
    bool is_tty;
    int64_t rows, columns;
    struct str term;   /* "xterm-256color" */
    struct str ticket; /* hexadecimal, signed: wire/grant.h */
    struct str token;  /* from the CLI: its bearer token */
};
extern const struct schema stream_header_schema;

enum { STREAM_HEADER_BYTES_MAX = 4096 }; /* LINK_HEADER_MAX of net */

/* ERR_LIMIT when it would not fit into an OPEN (the payload of an exec goes first on the
 * stream). */
enum err stream_header_encode(const struct stream_header *header, struct buf *out, struct error *e)
    MUST_CHECK;
enum err stream_header_decode(struct str bytes, struct arena *arena, struct stream_header *out,
                              struct error *e) MUST_CHECK;

/*
 * Inside of EXEC streams, both ways: frames of u8 channel | u8 0 | u16 0 | u32 length, big-endian.
 */
enum stream_channel {
    CHANNEL_STDIN, /* length 0: end of input */
    CHANNEL_STDOUT,
    CHANNEL_STDERR,
    CHANNEL_RESIZE,  /* u16 rows, u16 columns */
    CHANNEL_EXIT,    /* u8 0 exited or 1 signalled, u8 number: the last frame */
    CHANNEL_PAYLOAD, /* first of all, controller to agent: the grant payload the ticket names */
    CHANNEL_ERROR,   /* text: could not be started; the last frame */
    CHANNEL_COUNT
};
enum { CHANNEL_FRAME_MAX = 256 * 1024, CHANNEL_HEAD = 8 };

struct channel_frame {
    enum stream_channel channel;
    struct str bytes; /* borrowed */
};

void channel_encode(enum stream_channel channel, struct str bytes, struct buf *out);
/* Takes the first complete frame off `*rest`. ERR_OK with `*is_complete` false: more is needed. */
enum err channel_decode(struct str *rest, struct channel_frame *out, bool *is_complete,
                        struct error *e) MUST_CHECK;

#endif
