/*
 * ipc.h - what the two halves of an agent say to each other, over one SOCK_SEQPACKET socket.
 *
 * berth-agentd (root) listens at SOCKET; berth-agent (an own uid, the only one let in: SO_PEERCRED)
 * connects and speaks TLS to the controller. A message is one datagram: one fixed-size struct that
 * starts with a tag. The size follows from the tag. An unknown tag, a wrong size, a field out
 * of its range, a descriptor that does not belong there: the connection is closed, and the
 * network half connects again. A new connection replaces the old one. Nothing said here is
 * believed because it was said: what may start is in the signed set, what may be run or
 * copied is in a signed ticket.
 *
 * After connecting
 *   up    HELLO          who the node is, which (epoch, generation) it has accepted last; again when its
 *                        run (wire/grant.h, tickets) is another
 *   up    OBSERVED       the full set, then changes as they happen and the full set every 5 s
 *   up    LOG_READY      for each spool that is not shipped whole yet, with its descriptor; none for
 *                        an attempt that has ended and wrote nothing
 *   up    NEED_IMAGE     for each image that something waits for
 *   up    CHALLENGE      once a second while there is fenced work
 *   down  the newest desired set the network half has, then CONTACTs
 *
 * Desired sets: DESIRED_BEGIN says how many bytes come, DESIRED_CHUNKs bring them in order,
 * DESIRED_END asks for a decision; DESIRED_RESULT is the answer. The bytes are the signed set
 * (wire/grant.h) followed by payloads, each as a u32 length (little-endian) and its bytes, in any
 * order. agentd finds a payload by its digest. A payload is needed until its allocation has been
 * observed in a state other than IPC_WAITING; sending it again is harmless. A grant whose
 * payload is missing is observed as IPC_WAITING with the reason "payload is missing". A set that
 * could not be accepted because of this node (ERR_IO, ERR_UNAVAILABLE), as when its disk is
 * full, is sent again in a while.
 *
 * Observed sets: IPC_WAITING entries are grants that cannot start yet, with the reason. An exited
 * attempt is reported until it leaves the desired set and its log is acknowledged (LOG_ACK with
 * is_final) or an hour has passed; then it is reported once as IPC_GONE and forgotten. Work that is
 * not in the newest set is stopped; when it has exited it is reported like any other.
 *
 * Logs: LOG_READY carries a read-only descriptor of the attempt's spool (agent/logspool.h). The
 * network half reads it by pread from where it left off, whenever its size grew: look every 250
 * ms while the attempt runs, or on the next LOG_READY, which comes without a descriptor when
 * the attempt has ended (is_complete: not a byte follows). What the controller has stored is
 * told by LOG_ACK, which frees the space in the spool; offsets are of the spool's file and stay
 * valid. A network half that has no descriptor left loses those that come with a message, and
 * knows it: it asks for the spool with LOG_AGAIN once a second, and ends a command or tree
 * whose descriptors it lost.
 *
 * Commands: EXEC_OPEN carries a signed ticket and its payload. EXEC_OPENED answers with
 * descriptors, which are the network half's: a terminal's master (is_tty: one), or stdin's
 * write end, stdout's and stderr's read ends (three). Closing stdin's is the end of the input.
 * EXEC_RESIZE is for terminals (agentd keeps a second descriptor of the master for it).
 * EXEC_EXITED comes when the command has ended; output may still be in the pipes. EXEC_CLOSE
 * kills a command that still runs; closing the descriptors alone does not. After EXEC_EXITED,
 * or EXEC_OPENED with another code than ERR_OK, the stream is over. A command ends with its
 * agentd, and with the connection.
 *
 * Trees: TREE_OPEN carries a ticket of one of the copy or volume kinds. TREE_OPENED has one
 * descriptor: the read end of a tar stream (GET) or its write end (PUT). TREE_DONE says how it
 * went, and comes after the last byte. EXEC_CLOSE ends it early.
 *
 * Leases: what is fenced ends unless the controller signs CHALLENGEs, which travel in heartbeats,
 * into CONTACTs (wire/grant.h).
 *
 * Flow: agentd never blocks on this socket. What is level-triggered (OBSERVED, LOG_READY,
 * NEED_IMAGE) is remembered as a mark and built when there is room; a peer that reads
 * nothing for 30 s is cut.
 */
#ifndef AGENT_IPC_H
#define AGENT_IPC_H

#include "base/id.h"
#include "os/fd.h"
#include "wire/grant.h"

/* How long an image may take to come, and then to be unpacked, where no operator says else. */
enum { IMAGE_TIMEOUT_DEFAULT_S = 3600 };

enum {
    IPC_VERSION = 3,
    IPC_CHUNK_MAX = 32 * 1024,
    IPC_TEXT_MAX = 160,
    IPC_PATH_MAX = 256,
    IPC_OBSERVED_MAX = 32, /* entries of one message */
    IPC_DEVICES_MAX = 128,
    IPC_STREAMS_MAX = 64, /* commands and trees at once */
    IPC_DESIRED_BYTES_MAX = GRANT_SET_BYTES_MAX + PAYLOAD_SETS_MAX,
};

enum ipc_tag {
    /* down: network half to privileged half */
    IPC_DESIRED_BEGIN = 1,
    IPC_DESIRED_CHUNK,
    IPC_DESIRED_END,
    IPC_CONTACT,
    IPC_LOG_ACK,
    IPC_IMAGE_READY,
    IPC_INVENTORY_GET,
    IPC_EXEC_OPEN,
    IPC_EXEC_RESIZE,
    IPC_EXEC_CLOSE,
    IPC_TREE_OPEN,
    /* up */
    IPC_HELLO,
    IPC_DESIRED_RESULT,
    IPC_OBSERVED,
    IPC_NEED_IMAGE,
    IPC_LOG_READY,
    IPC_INVENTORY,
    IPC_EXEC_OPENED,
    IPC_EXEC_EXITED,
    IPC_TREE_OPENED,
    IPC_TREE_DONE,
    IPC_CHALLENGE,
    /* down, and later than the others */
    IPC_LOG_AGAIN,
    IPC_TAG_END
};

enum ipc_direction { IPC_DOWN, IPC_UP };

struct ipc_header {
    uint32_t tag; /* enum ipc_tag */
    uint32_t version;
};

/* down */

struct ipc_desired_begin {
    struct ipc_header header;
    uint32_t set_bytes; /* the signed set */
    uint32_t all_bytes; /* with the payloads */
};

struct ipc_desired_chunk {
    struct ipc_header header;
    uint32_t offset; /* where the last one ended */
    uint32_t size;   /* 1..IPC_CHUNK_MAX */
    uint8_t bytes[IPC_CHUNK_MAX];
};

struct ipc_desired_end {
    struct ipc_header header;
};

struct ipc_contact {
    struct ipc_header header;
    uint8_t bytes[CONTACT_SIZE]; /* the controller's answer to a challenge */
};

struct ipc_log_ack {
    struct ipc_header header;
    struct id allocation;
    uint32_t attempt;
    uint32_t is_final; /* 1: the controller has everything, the spool may go */
    uint64_t offset;   /* of the spool: everything before it is stored */
};

/* The spool's descriptor did not arrive: LOG_READY is wanted again, with it. */
struct ipc_log_again {
    struct ipc_header header;
    struct id allocation;
    uint32_t attempt;
    uint32_t unused;
};

enum ipc_image_kind { IPC_IMAGE, IPC_UPLOAD, IPC_IMAGE_KIND_COUNT };

/*
 * The network half has fetched it (an OCI layout, or an upload's tarball) to `path`, which it owns;
 * agentd imports it in a child, reading every byte once and checking the digest. The path may go
 * when OBSERVED shows the allocation past IPC_WAITING, or NEED_IMAGE asks again.
 */
enum ipc_image_state {
    IPC_IMAGE_READY_NOW,
    IPC_IMAGE_FAILED,  /* it cannot be had: the grants that wait for it fail */
    IPC_IMAGE_NOT_NOW, /* this node is short of something: they wait, and it is asked for again */
    IPC_IMAGE_STATE_COUNT
};

struct ipc_image_ready {
    struct ipc_header header;
    struct grant_digest digest;
    uint32_t kind;  /* enum ipc_image_kind */
    uint32_t state; /* enum ipc_image_state */
    struct id tenant;
    char path[IPC_PATH_MAX]; /* absolute; empty unless READY_NOW */
    char text[IPC_TEXT_MAX]; /* why it is not here */
};

struct ipc_inventory_get {
    struct ipc_header header;
};

struct ipc_exec_open {
    struct ipc_header header;
    uint64_t stream; /* chosen by the network half; unused so far on this connection */
    uint16_t rows;   /* with a terminal */
    uint16_t columns;
    uint32_t payload_size;
    uint8_t ticket[TICKET_SIZE];
    uint8_t payload[IPC_CHUNK_MAX]; /* a grant_payload */
};

struct ipc_exec_resize {
    struct ipc_header header;
    uint64_t stream;
    uint16_t rows;
    uint16_t columns;
    uint32_t unused; /* 0 */
};

struct ipc_exec_close {
    struct ipc_header header;
    uint64_t stream;
};

struct ipc_tree_open {
    struct ipc_header header;
    uint64_t stream;
    uint32_t unused; /* 0 */
    uint32_t payload_size;
    uint8_t ticket[TICKET_SIZE];
    uint8_t payload[IPC_CHUNK_MAX];
};

/* up */

struct ipc_hello {
    struct ipc_header header;
    struct id node;
    uint64_t epoch; /* of the last accepted set; 0 with generation 0: none yet */
    uint64_t generation;
    struct id run; /* that tickets have to name */
    char boot_id[40];
    char build[40]; /* version of agentd */
};

struct ipc_desired_result {
    struct ipc_header header;
    uint64_t epoch; /* of the set that was judged; 0 when it could not be read */
    uint64_t generation;
    uint32_t code; /* enum err: ERR_OK accepted (or the same again), ERR_CONFLICT older, ... */
    uint32_t unused;
    char text[IPC_TEXT_MAX];
};

enum ipc_state {
    IPC_WAITING, /* granted, but cannot start yet: see the reason */
    IPC_PREPARING,
    IPC_RUNNING,
    IPC_STOPPING,
    IPC_EXITED,
    IPC_GONE,
    IPC_STATE_COUNT
};

/* Why an attempt ended, as the node knows it. */
enum ipc_end {
    IPC_END_NONE,
    IPC_END_EXIT,        /* by itself: exit_code or signal */
    IPC_END_OOM,         /* the kernel killed in its memory cgroup */
    IPC_END_STOPPED,     /* as the grant asked, see stop_cause there */
    IPC_END_NOT_GRANTED, /* stopped because it was not in the newest set */
    IPC_END_TIME_LIMIT,
    IPC_END_FENCED,       /* contact was lost for fence_after_s */
    IPC_END_START_FAILED, /* `reason` says what the runtime said */
    IPC_END_LOST,         /* the node went down or the shim was killed; the exit is not known */
    IPC_END_NO_PROGRAM, /* the image has no such program, or it cannot be executed: see `reason` */
    IPC_END_COUNT
};

struct ipc_observed_entry {
    struct id allocation;
    struct id workload;
    uint32_t attempt;
    uint32_t state;    /* enum ipc_state */
    uint32_t end;      /* enum ipc_end, once exited */
    int32_t exit_code; /* -1: none */
    int32_t signal;    /* 0: none */
    uint32_t is_oom;
    int64_t started_ns; /* CLOCK_BOOTTIME of this boot; 0: never */
    int64_t ended_ns;
    uint64_t log_bytes; /* of the spool so far */
    /* What the workload has said (attempt_said); 0: nothing. */
    int64_t checkpointed_ns;
    uint32_t checkpoints;
    uint32_t extended_s;
    char reason[IPC_TEXT_MAX];
};

struct ipc_observed {
    struct ipc_header header;
    uint32_t is_full; /* 1: part of a full set of `total`; 0: only what changed */
    uint32_t total;   /* of the full set */
    uint32_t first;   /* index of entries[0] in the full set; 0 starts a new one */
    uint32_t count;
    uint64_t epoch; /* of the set this was held against */
    uint64_t generation;
    int64_t now_ns; /* CLOCK_BOOTTIME */
    struct ipc_observed_entry entries[IPC_OBSERVED_MAX];
};

struct ipc_need_image {
    struct ipc_header header;
    struct grant_digest digest;
    uint32_t kind; /* enum ipc_image_kind */
    uint32_t unused;
    struct id tenant;
};

struct ipc_log_ready {
    struct ipc_header header;
    struct id allocation;
    uint32_t attempt;
    uint32_t is_complete; /* 1: the attempt has ended and not a byte follows */
    uint64_t size;        /* of the spool now */
    uint64_t acked;       /* where shipping goes on after a restart of the network half */
};

enum ipc_health { IPC_HEALTH_OK, IPC_HEALTH_FAILED, IPC_HEALTH_COUNT };

enum { IPC_REASON_MAX = 64 };
struct ipc_device {
    uint32_t index;
    uint32_t vendor; /* enum gpu_vendor */
    int32_t minor;
    int32_t parent_minor;
    int32_t numa_node;
    uint32_t is_simulated;
    uint32_t health; /* enum ipc_health */
    uint32_t unused; /* 0 */
    int64_t memory_mib;
    char uuid[64];
    char model[96];
    char class_name[48];
    char pci[24];
    char health_reason[IPC_REASON_MAX]; /* "" when it is well */
};

struct ipc_inventory {
    struct ipc_header header;
    uint32_t device_count;
    uint32_t cgroup_mode; /* enum cgroup_mode of agent/node_facts.h */
    char driver[16];      /* "nvml", "sim", ... */
    char driver_version[64];
    char runtime[64];    /* "crun 1.8.1" */
    char problems[1024]; /* what keeps this node from running work; "": nothing */
    struct ipc_device devices[IPC_DEVICES_MAX];
};

/* 1 descriptor (terminal) or 3 with code ERR_OK, none otherwise. */
struct ipc_exec_opened {
    struct ipc_header header;
    uint64_t stream;
    uint32_t code; /* enum err */
    uint32_t is_tty;
    char text[IPC_TEXT_MAX];
};

struct ipc_exec_exited {
    struct ipc_header header;
    uint64_t stream;
    int32_t exit_code; /* -1: by signal, or it could not be started */
    int32_t signal;
    char text[IPC_TEXT_MAX];
};

/* 1 descriptor with code ERR_OK. */
struct ipc_tree_opened {
    struct ipc_header header;
    uint64_t stream;
    uint32_t code;
    uint32_t unused;
    char text[IPC_TEXT_MAX];
};

struct ipc_tree_done {
    struct ipc_header header;
    uint64_t stream;
    uint32_t code;
    uint32_t unused;
    char text[IPC_TEXT_MAX];
};

/* For the next heartbeat; the last one is the best. */
struct ipc_challenge {
    struct ipc_header header;
    struct id number;
};

/* Fills a text of a message: cut at a character, never inside of one, zero behind its end. */
void ipc_text_set(char out[IPC_TEXT_MAX], const char *text);

/* Any message; receive into one of these. */
union ipc_message {
    struct ipc_header header;
    struct ipc_desired_begin desired_begin;
    struct ipc_desired_chunk desired_chunk;
    struct ipc_desired_end desired_end;
    struct ipc_contact contact;
    struct ipc_log_ack log_ack;
    struct ipc_image_ready image_ready;
    struct ipc_inventory_get inventory_get;
    struct ipc_exec_open exec_open;
    struct ipc_exec_resize exec_resize;
    struct ipc_exec_close exec_close;
    struct ipc_tree_open tree_open;
    struct ipc_hello hello;
    struct ipc_desired_result desired_result;
    struct ipc_observed observed;
    struct ipc_need_image need_image;
    struct ipc_log_ready log_ready;
    struct ipc_inventory inventory;
    struct ipc_exec_opened exec_opened;
    struct ipc_exec_exited exec_exited;
    struct ipc_tree_opened tree_opened;
    struct ipc_tree_done tree_done;
    struct ipc_challenge challenge;
    struct ipc_log_again log_again;
};

/* Bytes of a message of this tag; 0: no such tag. */
size_t ipc_size(uint32_t tag);
const char *ipc_name(uint32_t tag); /* "desired_begin", for logs; for tests */

/*
 * Holds a received datagram against what the other side may say: tag, version, size, every field,
 * the number of descriptors, texts that end. `direction` is the way it came.
 */
MUST_CHECK enum err ipc_check(const union ipc_message *message, size_t size, size_t fd_count,
                              enum ipc_direction direction, struct error *e); /* for tests */

/* privileged half: a listening socket at `path`, mode 0600, owned by `uid`. Replaces a
 * stale one. */
MUST_CHECK enum err ipc_listen(const char *path, unsigned uid, int *out, struct error *e);
/* The next connection. ERR_DENIED: another uid, closed. ERR_UNAVAILABLE: none is waiting. */
MUST_CHECK enum err ipc_accept(int listener, unsigned uid, int *out, struct error *e);
/* network half: connects (the result does not block) and checks that the other side is `uid`. */
MUST_CHECK enum err ipc_connect(const char *path, unsigned uid, int *out, struct error *e);

/*
 * Sends one message, whose header is filled in here. Descriptors stay the caller's. Never blocks:
 * ERR_UNAVAILABLE when there is no room now. ERR_IO: the connection is over.
 */
MUST_CHECK enum err ipc_send(int fd, enum ipc_tag tag, void *message, const int *fds,
                             size_t fd_count, struct error *e);

/*
 * Receives and checks one message that comes in `direction`. ERR_UNAVAILABLE: none there now.
 * ERR_NOT_FOUND: the other side has closed. Anything else: close the connection. Descriptors are
 * yours when ERR_OK, and are close-on-exec.
 */
MUST_CHECK enum err ipc_receive(int fd, enum ipc_direction direction, union ipc_message *out,
                                struct fd_pass *fds, struct error *e);

#endif
