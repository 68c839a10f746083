/*
 * sched.h - the scheduler: facts in, plan out.
 *
 * Pure: no clock, I/O, globals, randomness or hash order; the same history gives byte-equal plans.
 * Indices belong to struct sched: derived data, rebuildable from the state at any moment.
 * Here: by priority and submission inside a project; projects within their fair share first, then
 * within their quota, then by priority and by how much of their share they use; nodes by the
 * setting `placement`. Work is evicted whole, elastic gangs down to members_min first: borrowed
 * work for work inside a quota (or a share, `reclaim_to`), and less urgent work of the same project
 * for more urgent one.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "model/state.h"

struct sched; /* opaque */

/* Builds every index from the state, which it borrows for its whole life. */
struct sched *sched_new(const struct state *state);
void sched_free(struct sched *sched); /* NULL is a no-op */
DEFINE_CLEANUP(sched, struct sched *, sched_free)

/* Called after every evolve() with the event just applied. */
void sched_note(struct sched *sched, const struct event *event);

enum plan_action {
    PLAN_START,  /* grant these members to these nodes */
    PLAN_EVICT,  /* stop this workload for another; it goes back to the queue */
    PLAN_GROW,   /* grant these further members to its running attempt */
    PLAN_SHRINK, /* stop these members of it for another workload; it goes on without them */
    PLAN_END,    /* what it was to run after ended otherwise: it never starts */
};

struct plan_member {
    struct node *node;
    int64_t class_number;
    int64_t charge_milli;
    int64_t cpu_milli;
    int64_t memory_mib;
    struct share_list shares;
};

struct plan_entry {
    enum plan_action action;
    struct workload *workload;
    struct plan_member *members; /* PLAN_START: at least members_min, by rank; PLAN_GROW */
    size_t member_count;
    struct gap_list ranks;     /* PLAN_GROW: one a member; PLAN_SHRINK: which it loses */
    bool is_borrowed;          /* PLAN_START: takes the project above its quota */
    enum cause cause;          /* PLAN_EVICT, PLAN_SHRINK, PLAN_END */
    struct workload *for_whom; /* who needs the room; NULL: a reservation does */
};

/* All-zero is an empty plan; entries live in the arena given to sched_step. */
struct plan {
    struct plan_entry *entries;
    size_t count;
    size_t capacity;
};

/*
 * Decides what is left to decide, at most `budget` workloads looked at; appends to `plan`. Every
 * entry takes the earlier ones into account. Returns whether more is left: then the caller turns
 * the plan into events, applies and notes them, and calls again. Nothing left: an empty plan until
 * the next note or until `sched_wake_at`.
 */
bool sched_step(struct sched *sched, struct mono now, size_t budget, struct arena *arena,
                struct plan *plan);

/* Whose turn it is in the step under way; none outside of one. For whoever finds out what a step
 * failed at, also out of a handler of signals. */
struct id sched_looked_at(const struct sched *sched);

/* When time alone will let something start (back-off ends, a protection ends); INT64_MAX: never. */
struct mono sched_wake_at(const struct sched *sched);

/* When a waiting workload will start as far as is known: the promise to the first of its class;
 * INT64_MAX: none was given. */
struct mono sched_promised(const struct sched *sched, const struct workload *workload);

/* Why a workload waits, with numbers; valid for any workload in memory. */
struct explanation {
    enum cause cause;
    struct str text;  /* "needs 4 h100-80g on one node; 4 free, largest block 2" */
    int64_t position; /* in its queue, from 1; 0: not waiting */
    struct mono not_before;
    bool is_kept; /* there is room, but the promised start of work before it needs it */
};
void sched_explain(const struct sched *sched, const struct workload *workload, struct mono now,
                   struct arena *arena, struct explanation *out);

/* What a person can do about it, or wait for. Work of other tenants is never named. */
struct advice {
    struct str_list blockers; /* what it lacks, class by class */
    struct str_list ahead;    /* work of the same tenant that comes before it: ids, the first few */
    int64_t ahead_count;      /* in its own project */
    struct str turn;          /* whose turn it is among the users of its project; empty: its own */
    bool others_come_first;   /* some work of another tenant, or all of it, may */
    struct str_list changes;  /* each of them would let it start now */
    struct mono by;           /* it starts from now on, and by then; INT64_MAX: not known */
};
/* Of work that waits; of all other work nothing is said. */
void sched_advise(const struct sched *sched, const struct workload *workload, struct mono now,
                  struct arena *arena, struct advice *out);

/* What a subtree holds of a class now, in thousandths (charged allocations). */
struct class_use {
    int64_t allocated_milli;
    int64_t borrowed_milli; /* above its quota */
    int64_t pending_milli;  /* asked for by queued work, in its first class */
    int64_t quota_milli;    /* its own, or the sum of its children's where it has none */
    int64_t limit_milli;    /* UNBOUNDED: none */
    int64_t fair_milli;     /* its fair share, as of the last pass */
};
struct class_use sched_use(const struct sched *sched, const struct project *project,
                           int64_t class_number);
/* Capacity of a class: usable devices; and how much of it nothing occupies. */
struct class_capacity {
    int64_t capacity_milli;
    int64_t free_milli;
};
struct class_capacity sched_capacity(const struct sched *sched, int64_t class_number);

/* Could any healthy empty node (drained and failed ones count) hold one member? For submissions. */
bool sched_could_ever_fit(const struct sched *sched, const struct request *request);

/* The most that one node has of each, among those with a class that the request may use. */
struct node_most {
    int64_t devices;
    int64_t device_mib; /* of one device, of what work can have */
    int64_t cpu_milli;
    int64_t memory_mib;
};
struct node_most sched_most(const struct sched *sched, const struct request *request);

/* The guarantee of a project for a class: its own, or the sum of its children's where it
 * has none. */
int64_t sched_quota(const struct sched *sched, const struct project *project, int64_t class_number);

/* What tenants never lend of a class, together. */
int64_t sched_never_lent(const struct sched *sched, int64_t class_number);

/* Calendars need the wall's clock: the caller says it before each step. It may be set back. */
void sched_clock(struct sched *sched, struct mono now, struct wall wall);

/* Of a reservation: what its work holds, and how much of the open or next window is there, as of
 * the last step. */
struct reservation_use {
    int64_t used_milli;
    int64_t available_milli;
    size_t waiting; /* workloads tied to it */
    size_t running;
};
struct reservation_use sched_reservation(const struct sched *sched,
                                         const struct reservation *reservation);
/* The i-th workload of a reservation that holds anything, in order of submission; NULL: no more. */
struct workload *sched_tied(const struct sched *sched, const struct reservation *reservation,
                            size_t i);

/* Does work that has not ended depend on this workload, or on its array? */
bool sched_is_awaited(const struct sched *sched, const struct workload *workload);

/*
 * What time alone makes due, besides starts. Nothing of a node that is out of contact is due, and
 * after a start of the controller, or the return of a node, work there has time to be reported.
 */
enum due_kind {
    DUE_START,       /* granted, and not running for too long */
    DUE_STOP,        /* not gone after grace and kill, or its devices not clean */
    DUE_GANG,        /* short of members for too long */
    DUE_TIME_LIMIT,  /* ran as long as it may */
    DUE_DRAIN,       /* the node should be empty by now */
    DUE_PROVISION,   /* the site has made no capacity for it */
    DUE_RESERVATION, /* a window begins or ends, or what it has is not as its state says */
    DUE_CHANGE,      /* of quotas or settings: it begins or ends; only one at a time */
    DUE_FORGET,      /* ended long ago, or too many have: out of memory with it */
};
struct due {
    enum due_kind kind;
    struct allocation *allocation;   /* DUE_START, DUE_STOP */
    struct workload *workload;       /* of all others */
    struct node *node;               /* DUE_DRAIN */
    struct reservation *reservation; /* DUE_RESERVATION */
    const struct change *change;     /* DUE_CHANGE */
};
/* Fills `out` with what is due by now, at most `max`, earliest first; returns how many. */
size_t sched_due(const struct sched *sched, struct mono now, struct due *out, size_t max);
struct mono sched_next_due(const struct sched *sched); /* INT64_MAX: never */

/* Compares all indices with freshly built ones; false with text on the first difference. */
bool sched_check(const struct sched *sched, struct error *e);

#endif
