/*
 * reconcile.h - (what is wanted, what is there, now) -> what to do. Pure.
 *
 * Level-triggered: it never asks what has happened, only what differs. Carrying out the actions and
 * asking again leads to nothing left to do but waiting; carrying out only some of them, or being
 * killed in between, changes nothing about that. Rules, in the order of their weight:
 *
 *   1. What is there and not wanted, or given up while the node was lost, is stopped. Nothing new
 *      starts on the node before it is gone; once its stop is overdue, nothing on its devices
 *      (ADR 0037).
 *   2. What is wanted to stop is stopped; a shorter grace asked later shortens the wait.
 *   3. What is wanted and not there starts, unless something named in `reason` is still missing.
 *   4. What has ended stays as it ended until it is not wanted any more and its log is stored
 *      elsewhere, or for LOG_KEEP_S. An attempt that was here never starts a second time.
 */
#ifndef AGENT_RECONCILE_H
#define AGENT_RECONCILE_H

#include "base/timepoint.h"
#include "wire/grant.h"

enum {
    RECONCILE_LOG_KEEP_S = 3600,
    RECONCILE_DEVICES = 1024,
    RECONCILE_OLD_WORK_WAIT_S = 120, /* well within the time that the controller gives a start */
};

/* What must be at hand before a grant can start; kept by the caller beside each grant. */
struct rec_ready {
    bool has_payload;
    bool has_image;
    bool has_upload;
    bool is_hopeless;     /* it was tried and cannot be: reported as failed, `why` says it */
    struct mono again_at; /* it was tried, something was short, `why` says what: not before */
    const char *why;      /* borrowed */
};

enum rec_state { REC_PREPARING, REC_RUNNING, REC_STOPPING, REC_EXITED };

/* One attempt whose directory exists on this node. */
struct rec_observed {
    const struct grant *grant; /* as it was started; borrowed */
    enum rec_state state;
    uint32_t stop_grace_s; /* of the stop it has been told of, in REC_STOPPING */
    bool is_stop_overdue;  /* in REC_STOPPING for OLD_WORK_WAIT_S */
    bool is_log_stored;    /* elsewhere, and its end was told */
    bool is_busy;          /* somebody still works in its directory: it cannot be removed yet */
    struct mono ended_at;
};

struct rec_input {
    bool has_set; /* false: no set was accepted since the start, so nothing may be concluded */
    const struct grant *desired;
    const struct rec_ready *ready; /* one a grant */
    size_t desired_count;
    const struct rec_observed *observed;
    size_t observed_count;
    struct mono now;       /* boot clock */
    struct mono lease;     /* when the newest acknowledged heartbeat was sent; 0: never */
    uint32_t starting_max; /* attempts in REC_PREPARING at once */
};

enum rec_kind {
    REC_STOP_NOT_GRANTED, /* observed: it is not in the set */
    REC_STOP,             /* observed: its grant asks for it */
    REC_REMOVE,           /* observed: nobody needs it any more */
    REC_START,            /* desired */
    REC_WAIT,             /* desired: `reason` */
    REC_REFUSE,           /* desired: will never start, `reason` */
    REC_NEVER_STARTED,    /* desired: asked to stop before it was here */
    REC_KIND_COUNT
};

struct rec_action {
    enum rec_kind kind;
    uint32_t index; /* into observed or desired, as the kind says */
    uint32_t grace_s;
    const char *reason; /* static, or rec_ready.why */
};

struct rec_plan {
    struct rec_action *actions; /* in the arena */
    size_t count;
};

/* Stops come first, then removals, then starts and waits in the order of the set. */
void reconcile(const struct rec_input *input, struct arena *arena, struct rec_plan *plan);

#endif
