/*
 * lifecycle.h - the steps that workloads and allocations take, in one place: whoever stops, loses
 * or ends something comes through here. Only src/core includes this.
 *
 * Steps of one decision build on each other: an image is the record as the events so far leave it.
 * lifecycle_settle() at the end draws the conclusions for every workload that was touched: all
 * members run, all are gone, what comes after the stop.
 */
#ifndef CORE_LIFECYCLE_H
#define CORE_LIFECYCLE_H

#include "core/decide.h"

struct allocation_image {
    struct allocation *allocation;
    enum allocation_state state;
    enum cause stop_cause;
    struct id evictor;
    struct exit_status exit;
};

struct workload_image {
    struct workload *workload;
    struct workload_changed next; /* what the next event about it starts from */
    struct gang_record gang;      /* what is missing of it, as of the events so far */
    struct workload_image *next_unsettled;
};

struct allocation_image *allocation_image(struct decision *d, struct allocation *allocation);
/* Also puts the workload among those to settle. */
struct workload_image *workload_image(struct decision *d, struct workload *workload);

/* Takes the step and appends its event, with the usage segment when its use ends with it. Causes
 * and exit status are those of the image. */
void allocation_step(struct decision *d, struct allocation *allocation, enum allocation_state to);
/* Appends the event that makes the image true, in that state. `detail` may be empty. */
void workload_step(struct decision *d, struct workload_image *image, enum workload_state to,
                   enum cause cause, struct str detail);

struct stop {
    enum workload_state after; /* WL_QUEUED or a final state */
    enum cause cause;
    struct str detail;
    struct id evictor; /* the workload it makes room for, if any */
};
/* Tells every live member to stop; where none is live, goes on to what comes after at once. */
void workload_stop(struct decision *d, struct workload_image *image, const struct stop *stop);

/* Eviction: back to the queue, counted apart from the user's retries. */
void workload_evict(struct decision *d, struct workload *workload, enum cause cause,
                    struct id evictor);

/* After its node was lost: when a workload that is fenced has certainly ended itself there. */
int64_t workload_fence_s(const struct decision *d, const struct workload *workload);

/* How a member ended that nobody asked to stop. */
struct member_end {
    struct exit_status exit;
    enum cause cause;  /* the node's reason, or CAUSE_NONE: the exit status tells */
    bool never_ran;    /* preparing it failed */
    struct str detail; /* "" : made from the exit status */
};
void member_ended(struct decision *d, struct allocation *allocation, const struct member_end *end);

/* A member whose node is gone or was rebooted: nobody's fault, and nobody's retry. */
void member_lost(struct decision *d, struct allocation *allocation, enum allocation_state to);

void lifecycle_settle(struct decision *d);

/*
 * gang.c - attempts that go on without some of their members. `image->gang` follows: each of these
 * that says true has appended its event.
 */
void gang_load(struct decision *d, struct workload_image *image);
/* Fewer members are left than it needs: others are to join it, or it is requeued. */
bool gang_is_short(const struct workload_image *image);
/* It was taken out of an attempt that goes on: how it ends is of no consequence. */
bool gang_has_dropped(struct decision *d, struct allocation *allocation);
/* Its node or device is lost. False: the attempt cannot go on, nor wait for another member. */
bool gang_loses(struct decision *d, struct workload_image *image, struct allocation *allocation,
                struct str detail);
/* A member that joined later never ran. False: it is needed. */
bool gang_gives_up(struct decision *d, struct workload_image *image, struct allocation *allocation,
                   struct str detail);
/* Its attempt begins with the first `count` of its members. */
void gang_starts_with(struct decision *d, struct workload_image *image, size_t count);
/* Members of those ranks were granted to a running attempt. */
void gang_grows(struct decision *d, struct workload_image *image, const struct gap_list *ranks);
/* Stops those of its members for another workload. */
void gang_shrinks(struct decision *d, struct workload *workload, const struct gap_list *ranks,
                  const struct stop *stop);
/* It has been short for too long. */
void gang_is_stale(struct decision *d, struct workload *workload);

/* contact.c: all processes of the node are gone for certain (rebooted; removed by force). */
void node_rebooted(struct decision *d, struct node *node);
void node_gone(struct decision *d, struct node *node);

/* reservation.c: a window opens or is over, some of it is missing or back, nothing is left. */
void reservation_tick(struct decision *d, struct reservation *reservation);

/* change.c: a change begins, ends, or is forgotten. At most one of them in one decision: the next
 * has to see what this one did. */
void change_tick(struct decision *d, const struct change *change);
/* The rule of the zone of this command's `reservation` is another now. */
void changes_rezone(struct decision *d);

/* node.c */
enum err find_node(const struct decision *d, struct node **out, struct error *e) MUST_CHECK;
/* The node, if it is the one that asks (or the controller itself asks). */
enum err find_own_node(const struct decision *d, struct id id, struct node **out, struct error *e)
    MUST_CHECK;

#endif
