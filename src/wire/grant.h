/*
 * grant.h - what a controller wants of one node, signed, and how the node reads it.
 *
 * A desired set is the whole truth about one node: every allocation that may have processes there.
 * It is fixed-size grants behind a header and under one Ed25519 signature, little-endian, with no
 * optional part and no padding that could differ, so that one meaning has exactly one encoding.
 * Bytes of varying length (argv, environment, ...) travel beside the set as payloads; the grant
 * carries their SHA-256. A node accepts a set only if it is newer than the last one it accepted
 * (grant_order), never by its age: wall clocks play no part.
 *
 * A ticket is the same for one request outside of the set: a command in a running workload, or a
 * tree copied in or out.
 *
 * Pure: the digest and the signature are passed in. See docs for the layout: the encoders below
 * are its one definition, `GRANT_SIZE` bytes a grant.
 */
#ifndef WIRE_GRANT_H
#define WIRE_GRANT_H

#include "base/id.h"
#include "base/str.h"

enum {
    GRANT_VERSION = 1,
    GRANT_DIGEST_SIZE = 32,
    GRANT_SIGNATURE_SIZE = 64,
    GRANT_DEVICES_MAX = 16,
    GRANT_VOLUMES_MAX = 8,
    GRANT_SET_MAX = 4096, /* grants of one node */
    GRANT_CPU_MILLI_MIN = 10,
    GRANT_CPU_MILLI_MAX = 4096 * 1000,
    GRANT_MEMORY_MIB_MAX = 64 * 1024 * 1024,
    GRANT_MEMBERS_MAX = 65536,
    GRANT_UID_MIN = 65536, /* no tenant range reaches the ids of the host */
    GRANT_UID_COUNT_MAX = 65536,
    GRANT_GRACE_MAX_S = 24 * 3600,
    GRANT_DEVICE_SIZE = 16,
    GRANT_VOLUME_SIZE = 16 + 4 + GRANT_DIGEST_SIZE,
    GRANT_SIZE = 3 * 16 + 16 * 4 + GRANT_DEVICES_MAX * GRANT_DEVICE_SIZE +
                 GRANT_VOLUMES_MAX * GRANT_VOLUME_SIZE + 3 * GRANT_DIGEST_SIZE,
    GRANT_HEADER_SIZE = 8 + 16 + 3 * 8 + 8,
    GRANT_SET_BYTES_MAX = GRANT_HEADER_SIZE + GRANT_SET_MAX * GRANT_SIZE + GRANT_SIGNATURE_SIZE,
};

struct grant_digest {
    uint8_t bytes[GRANT_DIGEST_SIZE];
};

static inline bool grant_digest_is_none(const struct grant_digest *digest)
{
    for (size_t i = 0; i < GRANT_DIGEST_SIZE; i++)
        if (digest->bytes[i] != 0)
            return false;
    return true;
}

bool grant_digest_eq(const struct grant_digest *a, const struct grant_digest *b);

/* The cryptography, passed in so that this file stays pure. `sign` may be NULL on nodes. */
struct grant_crypto {
    void *self; /* borrowed */
    void (*sha256)(void *self, struct str bytes, struct grant_digest *out);
    void (*sign)(void *self, struct str bytes, uint8_t out[GRANT_SIGNATURE_SIZE]);
    bool (*verify)(void *self, struct str bytes, const uint8_t signature[GRANT_SIGNATURE_SIZE]);
};

/* What the node does with running work when it has lost the controller. */
enum grant_contact_loss { GRANT_RESTART, GRANT_FENCE, GRANT_KEEP, GRANT_CONTACT_LOSS_COUNT };

struct grant_device {
    uint16_t index; /* of the node's inventory */
    uint16_t milli; /* 1..1000: share of the device */
    uint32_t minor; /* as the node reported it, for the record; the node's own table decides */
    uint32_t memory_mib;
    uint32_t flags; /* 0, or which partition of it: grant_slice_flags() */
};

/* A partition of a device (MIG): its first memory slice, how many, and its compute slices. Nodes
 * that do not know of these take them for unknown flags, and refuse that grant. */
struct grant_slice {
    uint32_t start, size, compute; /* size 0: none */
};
uint32_t grant_slice_flags(struct grant_slice slice);
struct grant_slice grant_slice_of(const struct grant_device *device);

struct grant_volume {
    struct id volume;
    bool is_read_only;
    struct grant_digest target; /* SHA-256 of the path in the payload */
};

struct grant {
    struct id allocation;
    struct id workload;
    struct id tenant;
    uint32_t attempt; /* 1.. */
    uint32_t member_rank;
    uint32_t member_count;
    uint32_t uid_base; /* first host id of the tenant's range */
    uint32_t uid_count;
    uint32_t cpu_milli; /* 1000 = one core */
    uint32_t memory_mib;
    uint32_t pids_max;
    uint32_t shm_mib;      /* size of /dev/shm, within memory_mib; 0: 64 */
    uint32_t time_limit_s; /* of this attempt; 0: none */
    uint32_t grace_s;      /* between TERM and KILL */
    bool is_stop;          /* the work is to end: TERM, grace, KILL */
    uint16_t stop_cause;   /* enum cause of model/cause.h; 0 unless is_stop */
    enum grant_contact_loss on_contact_loss;
    uint32_t fence_after_s; /* with GRANT_FENCE */
    uint32_t device_count;
    uint32_t volume_count;
    struct grant_device devices[GRANT_DEVICES_MAX];
    struct grant_volume volumes[GRANT_VOLUMES_MAX];
    struct grant_digest image;
    struct grant_digest payload;
    struct grant_digest upload; /* none: nothing uploaded */
};

/* A grant of a signed set that a node cannot take, and why. */
struct grant_fault {
    uint32_t index;
    char text[160];
};

struct grant_set {
    struct id node;
    uint64_t epoch;      /* of the controller's leadership */
    uint64_t generation; /* of the set, within the epoch */
    int64_t issued_ns;   /* wall time, for people; never decides anything */
    uint32_t count;
    struct grant *grants;       /* owned */
    uint32_t fault_count;       /* of a decoded set */
    struct grant_fault *faults; /* owned; by index */
};

void grant_set_done(struct grant_set *set);
DEFINE_CLEANUP_AT(grant_set, struct grant_set, grant_set_done)

/* What no signature can make right: ranges, duplicate devices, overlapping fields. */
MUST_CHECK enum err grant_check(const struct grant *grant, struct error *e);

/* Every grant, no allocation twice, and no uid shared by two tenants. */
MUST_CHECK enum err grant_set_check(const struct grant_set *set, struct error *e); /* for tests */

/* Appends the signed bytes. ERR_INVALID: grant_set_check refuses the set. */
MUST_CHECK enum err grant_set_encode(const struct grant_set *set, const struct grant_crypto *crypto,
                                     struct buf *out, struct error *e);

/*
 * Signature first, then everything else. ERR_DENIED: not signed by this key. ERR_INVALID:
 * a version or a node that must not be, or grants that cannot be told apart. `out` is
 * yours, untouched on failure.
 *
 * A grant that grant_check refuses, or that shares uids with another tenant's before it, spoils no
 * other: it is a fault of the set, and what is left of it is whose it is and whether it is to stop.
 */
MUST_CHECK enum err grant_set_decode(struct str bytes, struct id node,
                                     const struct grant_crypto *crypto, struct grant_set *out,
                                     struct error *e);

/* One grant alone, unsigned: what a node keeps of it on its own disk. Exactly GRANT_SIZE bytes. */
void grant_encode(const struct grant *grant, uint8_t out[GRANT_SIZE]);
MUST_CHECK enum err grant_decode(const uint8_t bytes[GRANT_SIZE], struct grant *out,
                                 struct error *e);

/* Where an offered (epoch, generation) stands to the stored one. Epoch first. */
enum grant_order { GRANT_OLDER, GRANT_SAME, GRANT_NEWER };

struct grant_stamp {
    uint64_t epoch;
    uint64_t generation;
};

enum grant_order grant_order(struct grant_stamp stored, struct grant_stamp offered);

/* Payloads. */
enum {
    PAYLOAD_MAX = 256 * 1024, /* bytes of one */
    PAYLOAD_ARGS_MAX = 4096,
    PAYLOAD_ENV_MAX = 4096,
    PAYLOAD_HOSTS_MAX = 4096,
    PAYLOAD_PATH_MAX = 4095,
    PAYLOAD_HOSTNAME_MAX = 63,
    PAYLOAD_SETS_MAX = 64 * 1024 * 1024 /* bytes of all that travel with one set */
};

struct grant_payload {
    struct str working_dir; /* absolute; empty: "/" */
    struct str hostname;    /* letters, digits, '-' and '.' */
    struct str upload_path; /* where the upload is mounted; empty without one */
    uint16_t master_port;   /* 0: none */
    uint32_t arg_count;     /* at least 1 */
    const struct str *args;
    uint32_t env_count; /* NAME=value */
    const struct str *env;
    uint32_t host_count; /* names of the members by rank; [0] is the master; may be 0 */
    const struct str *hosts;
    uint32_t volume_count;
    const struct str *volume_targets; /* absolute, in the order of grant.volumes */
};

/* Appends. ERR_INVALID or ERR_LIMIT: the payload is not one a node would take. */
MUST_CHECK enum err grant_payload_encode(const struct grant_payload *payload, struct buf *out,
                                         struct error *e);

/* Slices borrow from `bytes`, arrays come from the arena. */
MUST_CHECK enum err grant_payload_decode(struct str bytes, struct arena *arena,
                                         struct grant_payload *out, struct error *e);

/* Decodes a payload and holds it against its grant: digest, volume count, target digests,
 * upload. */
MUST_CHECK enum err grant_payload_open(struct str bytes, const struct grant *grant,
                                       const struct grant_crypto *crypto, struct arena *arena,
                                       struct grant_payload *out, struct error *e);

/*
 * Tickets: one request of a person, signed by the controller for one node, and for one run of its
 * berth-agentd. That remembers which it has used and starts a new run when it forgets any: at its
 * own start, and when they are too many.
 */
enum { TICKET_SIZE = 8 + 16 + 8 + 4 * 16 + 4 * 4 + GRANT_DIGEST_SIZE + GRANT_SIGNATURE_SIZE };

enum ticket_kind {
    TICKET_EXEC,       /* args run inside the allocation, with its limits */
    TICKET_COPY_GET,   /* args[0]: a path inside the allocation, sent as a tree */
    TICKET_COPY_PUT,   /* args[0]: a directory inside the allocation that receives a tree */
    TICKET_VOLUME_GET, /* args[0]: a path inside the volume, "/" for all of it */
    TICKET_VOLUME_PUT,
    TICKET_KIND_COUNT
};

struct ticket {
    struct id node;
    uint64_t epoch;   /* must be the node's current one */
    struct id run;    /* as the node's berth-agentd has told it last */
    struct id id;     /* used once */
    struct id object; /* allocation, or volume */
    struct id tenant;
    enum ticket_kind kind;
    bool is_tty;       /* TICKET_EXEC only */
    uint32_t attempt;  /* of the allocation; 0 for volumes */
    uint32_t uid_base; /* of the tenant */
    uint32_t uid_count;
    struct grant_digest payload; /* of a grant_payload */
};

MUST_CHECK enum err ticket_encode(const struct ticket *ticket, const struct grant_crypto *crypto,
                                  uint8_t out[TICKET_SIZE], struct error *e);
MUST_CHECK enum err ticket_decode(const uint8_t bytes[TICKET_SIZE], struct id node,
                                  const struct grant_crypto *crypto, struct ticket *out,
                                  struct error *e);

/*
 * A contact: the controller's word that it has heard of this node now, which extends the lease of
 * work that is fenced. It answers a challenge of berth-agentd, so that it can neither be kept for
 * later nor be had without the controller; and it names the newest set, so that nobody who keeps
 * that from the node has a lease extended by it.
 */
enum { CONTACT_SIZE = 8 + 16 + 2 * 8 + 16 + GRANT_SIGNATURE_SIZE };

struct contact {
    struct id node;
    struct grant_stamp newest; /* of the node's sets */
    struct id challenge;
};

MUST_CHECK enum err contact_encode(const struct contact *contact, const struct grant_crypto *crypto,
                                   uint8_t out[CONTACT_SIZE], struct error *e);
MUST_CHECK enum err contact_decode(const uint8_t bytes[CONTACT_SIZE], struct id node,
                                   const struct grant_crypto *crypto, struct contact *out,
                                   struct error *e);

#endif
