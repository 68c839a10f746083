/*
 * berthd.h - the controller process: the engine over the real clock, entropy, store and network.
 */
#ifndef CONTROLLER_BERTHD_H
#define CONTROLLER_BERTHD_H

#include "controller/blobs.h"
#include "controller/config.h"
#include "controller/desired.h"
#include "controller/epoch.h"
#include "controller/herald.h"
#include "controller/images.h"
#include "controller/keys.h"
#include "controller/ledger_clock.h"
#include "controller/logstore.h"
#include "controller/nodes.h"
#include "controller/pulse.h"
#include "engine/engine.h"
#include "net/http.h"
#include "store/query.h"

struct server;
struct snapshotter;
struct checker;
struct judge;

struct berthd {
    struct config config;
    struct arena arena; /* of the configuration and paths */
    struct loop *loop;
    struct keys *keys;
    const char *store_path;
    struct store *store;
    struct query *query; /* of the loop: answers under Idempotency-Keys */
    struct query *lists; /* of one worker at a time: long lists */
    struct ledger_clock clock;
    struct engine *engine;
    struct images *images;
    struct desired *desired;
    struct blobs *blobs;
    struct logstore *logs;
    struct nodes *nodes;
    struct herald *herald;
    struct server *server;
    struct snapshotter *snapshotter;
    struct checker *checker;
    struct pulse pulse;
    struct judge *judge;                  /* owned; sees from outside whether the loop turns */
    struct loop_timer wake;               /* the engine's next turn */
    struct loop_task turn;                /* one is due in this round */
    struct loop_timer housework;          /* expiry, blobs, store maintenance */
    const struct store_batch *committing; /* borrowed from the engine; NULL: none */
    struct epoch_claims claims;
    uint64_t claim_due; /* the epoch to be claimed when no worker has the store; 0: none */
    uint64_t claimed;   /* the worker's answer */
    enum err claim_rc;
    bool is_upkeep;    /* a worker has the store for something else than a commit */
    bool is_trim_due;  /* retention has something to remove, perhaps */
    bool is_trim_step; /* this commit takes a step of it along */
    bool trim_more;    /* the worker's answer */
    bool is_stopping;
    unsigned commits_since_trim;
    bool is_copying;    /* a worker copies the log back beside the commits */
    bool is_log_copied; /* but for what came meanwhile */
    bool is_copy_rest;  /* this commit copies that */
    enum err copy_rc;
    unsigned commits_since_copy;
    enum err commit_rc;
    struct error commit_error;
    int exit_code;
};

/* The engine decided something, or may have something to decide: a turn at the end of the round. */
void berthd_wake(struct berthd *berthd);

/* "STATE/name", in the process's arena. */
const char *berthd_path(struct berthd *berthd, const char *name);

/* Serves until SIGTERM or SIGINT. Returns the exit status: 0, 1, or 75 when the outcome of a commit
 * is unknown. */
int berthd_run(const struct config *config, struct arena arena);

#endif
