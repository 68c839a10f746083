/*
 * engine.h - the controller's loop without its I/O: decide, evolve, batch, wait, then let go.
 *
 * Every command is decided and evolved at once, so that decisions see each other. Its events join
 * the open batch; one batch at a time is with the store. Whatever leaves the engine - answers,
 * refusals, reads, desired sets of nodes, feed events - waits until what it reflects is durable.
 * When a commit fails nothing of it has left: after ERR_UNAVAILABLE (disk full) the state is loaded
 * again and commands are refused until the store takes a batch; after any other error the outcome
 * is unknown and the process ends (exit 75) without telling anybody anything.
 *
 * The five seams (clock, entropy, store, transport, executor) are function pointers; berthd and
 * berth-sim pass their own. One thread; no call of a seam calls back into the engine, except where
 * said.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "core/core.h"
#include "engine/tally.h"
#include "store/store.h"

struct engine;

/*
 * One thing that waits for durability; embedded in the caller's own object. `settled` is called
 * exactly once, from engine_committed() or engine_submit() itself, with ERR_OK when everything up
 * to the moment of submission is durable, or ERR_UNAVAILABLE when it was lost and the answer must
 * be replaced by that refusal. The caller may free the waiter in the call.
 */
struct engine_waiter {
    void (*settled)(struct engine_waiter *waiter, enum err rc, const struct error *why);
    struct engine_waiter *next; /* the engine's, until settled */
};

struct engine_seams {
    void *arg; /* passed to every call */

    /* Clock: ledger time goes on over restarts and never back. */
    struct mono (*mono_now)(void *arg);
    struct wall (*wall_now)(void *arg);
    /* Position of the machine's own clocks, stored with each batch. `boot_id` stays the
     * caller's. */
    void (*machine_clock)(void *arg, struct store_clock *out);

    /* Entropy: ids of what is created. */
    void (*entropy)(void *arg, void *bytes, size_t size);

    /* Store: starts to append; the outcome comes by engine_committed(), from within the call or
     * later. The batch stays valid until then. At most one is under way. */
    void (*commit)(void *arg, const struct store_batch *batch);
    /* Just before: the state is exactly what this batch will make durable. May be NULL. */
    void (*handing_over)(void *arg, const struct state *state);
    /* Loads the last durable state after a lost batch; blocking is fine. */
    enum err (*reload)(void *arg, struct state **out, struct error *e);

    /* Transport. desired_build makes the bytes of a node's whole desired set out of the state at
     * the end of a batch; desired_send passes them on once the batch is durable. */
    void (*desired_build)(void *arg, const struct state *state, const struct node *node,
                          struct buf *out);
    void (*desired_send)(void *arg, struct id node, struct str bytes);
    /* A durable event with its journal body, in order: change feeds. */
    void (*publish)(void *arg, const struct event *event, struct str body);

    /* Executor: does the self-check of these elsewhere and answers by engine_checked(). False or
     * NULL: the engine does it itself, at once. */
    bool (*check)(void *arg, const struct state *state, const struct sched *sched);
    /* Executor: a periodic problem worth telling an operator (self-check drift, refused plan). */
    void (*report)(void *arg, const char *what, const struct error *e);
};

/* Takes ownership of `state`. The engine decides nothing before engine_start(). */
struct engine *engine_new(const struct engine_seams *seams, struct state *state);
void engine_free(struct engine *engine); /* NULL is a no-op; waiters are dropped without a call */
DEFINE_CLEANUP(engine, struct engine *, engine_free)

/* The first command: a new epoch, as claimed from the store. */
void engine_start(struct engine *engine, uint64_t epoch, struct str version);
/* A higher one, as claimed since: every node gets its desired set anew. */
void engine_raise_epoch(struct engine *engine, uint64_t epoch, struct str version);

const struct state *engine_state(const struct engine *engine);
const struct sched *engine_sched(const struct engine *engine);

/*
 * Memory of the open batch: what a command points to is decoded into it, since its events borrow
 * from the command until they are durable. Valid until the next engine_turn() or
 * engine_committed().
 */
struct arena *engine_arena(struct engine *engine);

/*
 * Decides and evolves. Fills command->now, wall, request (when none) and new_id. Returns the
 * decision: ERR_OK, or a refusal with `e`. Either way nobody may hear of it before the
 * durability it reflects: pass a waiter to engine_wait() right after, having rendered the
 * answer from engine_state().
 */
enum err engine_command(struct engine *engine, struct command *command, struct error *e) MUST_CHECK;

/* Keeps an answer under its Idempotency-Key, in the batch of the command just made.
 * Copied; numbered. */
void engine_remember(struct engine *engine, const struct store_answer *answer);
/* An answer remembered but not yet durable, or NULL. */
const struct store_answer *engine_pending_answer(const struct engine *engine,
                                                 const struct digest *key);
/* Where the store may have an answer of this key; 0: it has none. */
uint64_t engine_answer_number(const struct engine *engine, const struct digest *key);
/* Before the start: an answer that the store has, in the order of their numbers. */
void engine_recall(struct engine *engine, const struct store_answer *answer);

/* Calls waiter->settled once everything decided so far is durable: at once when it already is. */
void engine_wait(struct engine *engine, struct engine_waiter *waiter);

/* Nodes: contact is kept here and becomes events only when it changes. */
void engine_node_seen(struct engine *engine, struct id node, struct str boot_id);
/* The node just connected: its desired set is sent although nothing changed. */
void engine_node_resend(struct engine *engine, struct id node);

/* One turn: deadlines, node contact, scheduling within `budget` workloads, then a commit if none is
 * under way. Call when commands came in, after engine_committed(), and at engine_wake_at(). Returns
 * whether there is more to schedule now. */
bool engine_turn(struct engine *engine, size_t budget);
struct mono engine_wake_at(const struct engine *engine);

/* The outcome of the commit under way: ERR_OK, or ERR_UNAVAILABLE when nothing of it was stored.
 * Any other outcome is unknown, and the caller ends the process instead of calling. */
void engine_committed(struct engine *engine, enum err rc, const struct error *why);

/* Recomputes all that is derived and reports what differs; repairs by rebuilding from the facts. */
void engine_self_check(struct engine *engine); /* for tests */
/* The look alone, for seams.check: which of the two drifted, and how (of the last one that did). */
enum engine_drift { ENGINE_DRIFT_STATE = 1, ENGINE_DRIFT_SCHED = 2 };
unsigned engine_check(const struct state *state, const struct sched *sched, struct error *e);
/* What such a check found: engine_drift bits and a text. */
void engine_checked(struct engine *engine, unsigned found, const struct error *e);

/* Refusing commands because the store cannot take them; NULL: no. */
const char *engine_refusal(const struct engine *engine);
/* Events decided since the start, and batches handed over: for metrics. */
struct engine_counters {
    uint64_t commands, refusals, events, batches, lost_batches, drifts;
};
struct engine_counters engine_counters(const struct engine *engine);
/* What the scheduler did: for metrics. Borrowed. */
const struct sched_tally *engine_tally(const struct engine *engine);

#endif
