/*
 * fleet.h - simulated agents for load. Nothing here starts a process or touches a device:
 * each agent is an honest peer of the real protocol (TLS with its own certificate, hello,
 * inventory, heartbeats, verified desired sets, observed sets) whose work exists only in
 * this program's memory.
 */
#ifndef TESTS_LOAD_FLEET_H
#define TESTS_LOAD_FLEET_H

#include "base/id.h"
#include "net/link.h"
#include "wire/grant.h"
#include "wire/link.h"

struct fleet_options {
    const char *host;
    uint16_t port;
    const char *dir;        /* identities of those who joined, used again the next time */
    const char *token_file; /* one join token a line, for those who have not */
    size_t count;
    size_t concurrency; /* dials under way at the start; reconnecting is not bounded */
    int64_t gpus;       /* of each node */
    int64_t work_ms;    /* how long granted work runs; 0: until it is told to stop */
};

struct work {
    struct id allocation;
    uint32_t attempt;
    enum observed_state state;
    bool is_stopped;
    int64_t ends_ns; /* monotonic; 0: by itself never */
};

struct agent {
    struct fleet *fleet; /* borrowed */
    size_t index;
    bool has_identity;
    struct id node;
    uint8_t grant_key[32];
    struct buf key, certificate; /* PEM, owned */
    struct tls_context *tls;     /* counted; keeps the session that the next dial resumes */
    struct link *link;           /* NULL: none */
    bool is_starting;            /* counts among the fleet's first dials */
    bool is_welcome;
    unsigned failures;
    uint64_t beat_number, epoch, generation;
    struct loop_timer dial, beat, work_end;
    VEC(struct work) works;
};

struct fleet_counts {
    size_t joined, connected, running;
    uint64_t dials, resumed, refused, sent, received, beats_acked, sets, bad_sets;
    uint64_t started, finished, stopped, vanished;
};

struct fleet {
    struct fleet_options options;
    struct loop *loop;    /* owned */
    struct agent *agents; /* owned */
    struct buf authority; /* PEM */
    char boot_id[64];
    struct str_list tokens; /* in `arena` */
    size_t tokens_used;
    struct arena arena;
    size_t next, starting; /* the first dials: whose turn, and how many are under way */
    struct mono all_since; /* all are connected since; ns 0: they are not */
    struct mono all_lost;  /* when they last ceased to be */
    struct fleet_counts counts;
    struct error fatal;
};

enum err fleet_open(const struct fleet_options *options, struct str authority, struct fleet **out,
                    struct error *e) MUST_CHECK;
void fleet_free(struct fleet *fleet); /* NULL is a no-op */
/* Starts the first dials. */
void fleet_start(struct fleet *fleet);

#endif
