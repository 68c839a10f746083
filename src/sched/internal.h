/*
 * internal.h - the indices of the scheduler. Only src/sched includes this.
 *
 * All of it is derived from the state and kept by sched_note(). Within one step, decisions must see
 * each other before their events exist; so a step works on the indices themselves and takes back
 * all it did at its end (shadow_*). What a step may change is plain data without owned memory, and
 * every change is announced by touch().
 */
#ifndef SCHED_INTERNAL_H
#define SCHED_INTERNAL_H

#include "sched/charge.h"
#include "sched/sched.h"
#include "sched/share.h"
#include "sched/skip.h"

/* ---- capacity ------------------------------------------------------------------------------ */

/* What the first workload without a place in a class was promised: promise.c. */
struct spromise {
    struct swork *work;  /* NULL: nobody is blocked there */
    struct mono at;      /* when it will fit; INT64_MAX: not known */
    int64_t spare_milli; /* of the class beside it then; UNBOUNDED: not known */
    bool is_starving;    /* not known, and it has waited too long */
    struct mono as_of;   /* when that was computed */
    bool is_fresh;       /* computed from the present use and capacity */
};

struct sclass {
    int64_t capacity_milli;                     /* of usable devices (or cores) on usable nodes */
    int64_t free_milli;                         /* of these, what nothing occupies */
    size_t nodes_by_free[NODE_DEVICES_MAX + 1]; /* usable nodes by wholly free devices */
    uint64_t gained;        /* sched.clock when something of it was last freed */
    uint64_t evictable;     /* sched.clock when something of it last became evictable */
    int64_t reserved_milli; /* of the capacity: what only the work of open windows may use */
    int64_t shut_milli;     /* of free_milli: likewise */
    bool is_fair;           /* fair shares are of the present use, demand and capacity */
    struct mono fair_at;    /* and of the past as of then, where that counts */
    size_t active_count;    /* charged preemptible workloads */
    struct spromise promise;
};

struct sdevice {
    int64_t index;
    int64_t class_number;
    int64_t usable_mib;
    int64_t milli; /* booked; more than there is only while a claim waits for it within a step */
    int64_t mib;
    size_t whole;                 /* allocations that have all of it */
    size_t sharers;               /* allocations that have a share */
    const struct project *tenant; /* of the sharers, unless slices are isolated */
    bool is_mixed;                /* sharers of several tenants: only while a claim waits */
    bool is_isolated;             /* slices are partitions of the hardware */
    bool is_partitioned;          /* by a table: what is free of it is told by its slices */
    bool is_usable;
    uint8_t slices[MIG_MEMORY_SLICES]; /* partitions on each slice; more than one only while a claim
                                          waits. A share that is none counts on all of them. */
};

/* What one node has of one class. */
struct spart {
    int64_t class_number;
    size_t free_devices; /* wholly free */
    int64_t open_milli;  /* the largest free share of one device */
};

enum { NODE_PARTS_MAX = 8 }; /* classes on one node; devices of further ones are never used */

/* Nodes that stand together: a rack or a block, by its label; nodes without one: by their pool. */
struct sdomain {
    struct id key;       /* hashed from what it is called: also its fixed order among equals */
    struct snode *first; /* its nodes, in no order that matters */
    bool is_labelled;
    uint8_t level;               /* how full the picture of its nodes says it is (place_index.c) */
    size_t counted;              /* scratch of place.c: members that fit it */
    struct sdomain *next, *prev; /* of its kind */
};

enum domain_kind { DOMAIN_RACK, DOMAIN_BLOCK, DOMAIN_KINDS };

struct snode {
    struct node *node;
    struct snode *next; /* in order of joining */
    struct snode *prev;
    struct sallocation *allocations; /* those held on it */
    bool is_usable;
    bool is_in_contact;
    int64_t cpu_class;
    int64_t cpu_milli;
    int64_t memory_mib;
    int64_t cpu_free;
    int64_t memory_free;
    int64_t slots_free; /* how many more members it can be told to run */
    struct sdevice *devices;
    size_t device_count;
    struct spart parts[NODE_PARTS_MAX];
    size_t part_count;
    struct sdomain *domains[DOMAIN_KINDS];
    struct snode *next_in[DOMAIN_KINDS], *prev_in[DOMAIN_KINDS];
    uint32_t slots[NODE_PARTS_MAX]; /* in the index of places: one a part, at least one */
    size_t slot_count;
    size_t live;         /* allocations that start or run: what a drain would evict */
    struct mono seen_at; /* back in contact; or the controller's start */
    bool has_due;
    struct skip_key due;
};

struct sallocation {
    struct id id;
    struct allocation *allocation; /* gone once it has ended */
    struct snode *node;
    struct swork *work;
    struct sproject *project;
    struct sallocation *next_on_node, *prev_on_node;
    struct sallocation *next_of_work, *prev_of_work;
    enum allocation_state state;
    int64_t class_number;
    int64_t charge_milli;
    int64_t cpu_milli;
    int64_t memory_mib;
    struct share_list shares; /* owned */
    bool is_fixed;            /* of work that is never preempted */
    bool is_reserved;         /* of work tied to a reservation: outside of all quotas */
    bool is_out;              /* within a step: its workload is to go on without it */
    struct id evictor;
    uint64_t order; /* sequence of the grant */
    bool has_due;
    struct skip_key due;
};

/* ---- projects ------------------------------------------------------------------------------ */

struct suse {
    int64_t charged;  /* of the whole subtree */
    int64_t leaving;  /* of that, being stopped */
    int64_t claimed;  /* within a step: by work that waits for victims */
    int64_t fixed;    /* charged to work that is never preempted */
    int64_t pending;  /* asked for by queued work */
    int64_t reserved; /* held by work tied to reservations: not among `charged` */
    /* Of this project itself, without children. */
    int64_t own_charged, own_leaving, own_claimed, own_pending;
    int64_t fair;      /* share of the subtree, as of the last pass (fair.c) */
    bool is_stale;     /* since then, something changed that divides it among the children */
    int64_t own_fair;  /* of that, of its own work */
    int64_t quota;     /* effective: its own, or the sum of its children's */
    int64_t own_quota; /* of the project itself: what its children's quotas leave */
    int64_t limit;
    int64_t never_lent; /* of quota */
    int64_t weight;
    int64_t unmet_below; /* sum over children of what they never lend and do not use */
};

/* Section 4 of the rules: share, quota, priority, how much of its share is used, age. */
struct rank {
    bool is_in_share; /* with the next workload counted */
    bool is_in_quota;
    int64_t priority;
    int64_t total; /* what it would have then */
    int64_t fair;
    uint64_t order;
};

/* What else has a project's groups looked at again, though nothing was freed for them. */
struct rouse {
    struct mono retry_at; /* the earliest of its groups; 0: none */
    bool is_unsettled;    /* some group is */
};

/* What a project waits for of one class. */
struct swait {
    size_t groups;        /* that ask for it */
    int64_t least_charge; /* none of them asks for less */
    uint64_t blocked;     /* the last pass in which work of it had no place */
    uint64_t refused_in;  /* the pass that `refused` is of */
    int64_t refused;      /* so much or more is not admitted, and reclaims nothing */
    uint64_t judged;      /* sched->moves when may_evict was found; 0: not yet */
    bool may_evict;       /* some of it, even the least */
};

/* Whoever has queued work in a project, where its users take turns by what they used lately. */
struct suser {
    struct str name;    /* owned */
    uint64_t serial;    /* tells its groups from those of others; never 0 */
    size_t groups;      /* of it */
    uint64_t ranks[2];  /* how many of the others used less, of cores and of devices; see user.c */
    struct suser *next; /* in order of appearance */
};

struct sproject {
    struct project *project; /* NULL: the root above all tenants */
    struct sproject *parent;
    struct sproject *first_child, *last_child, *next_sibling, *prev_sibling;
    struct sproject *next, *prev; /* all projects, parents before children */
    uint64_t order;
    struct suse *uses; /* by class number */
    struct skip_list
        *active; /* likewise: its charged preemptible work, by priority, youngest first */
    struct skip_list groups; /* by the key of each group's first workload */
    struct str_map shapes;   /* shape bytes -> group */
    struct swait *waits;     /* by class number */
    struct suser *users;     /* who has queued work, where users take turns; else none */
    uint64_t user_serial;    /* of the last of them */
    uint64_t touched;        /* sched.clock when its queue last changed */
    uint64_t swept;          /* sched.clock when all its groups were last looked at */
    struct rouse rouse;      /* as of then */
    struct sgroup *front;    /* then: the first that had no place; NULL: none, or touched since */
    size_t depth;
    int64_t taken, own_taken; /* scratch of reclaim(): by victims of one plan; 0 outside */

    /* Within a pass. */
    uint64_t pass;
    struct skip_node *walk;   /* the next group not looked at */
    struct sgroup *advanced;  /* groups with a start in this pass, by their next workload */
    struct sgroup *own;       /* its next candidate */
    struct sgroup *candidate; /* of the whole subtree */
    struct rouse next_rouse;  /* of the groups that this pass has seen */
    struct rank rank;         /* of the candidate, among the siblings */
};

/* ---- reservations -------------------------------------------------------------------------- */

struct sreservation {
    struct reservation *reservation;
    struct sreservation *next, *prev;
    size_t works;            /* tied to it that have not ended */
    struct skip_list queue;  /* of them, those that wait for a place, in order */
    struct skip_list live;   /* of them, those that hold anything, by submission */
    int64_t used_milli;      /* by them */
    int64_t available_milli; /* of the open or next window, as of the last refresh */
};

/* A device that a window takes. */
struct pick {
    struct sreservation *window;
    struct snode *node;
    int64_t device; /* index on the node */
    bool is_used;   /* by the window's own work */
    bool is_shut;   /* within a step: booked, so that nobody else gets it */
};

/* ---- the queue ----------------------------------------------------------------------------- */

/* Work of one project that asks for the same: when one of it cannot start, none of it can. */
struct shape {
    int64_t numbers[15 + REQUEST_CLASSES_MAX];
    struct id volumes[MOUNTS_MAX];
};

enum verdict {
    VERDICT_NONE,
    VERDICT_STARTED,
    VERDICT_CLAIMED, /* victims are being evicted for it */
    VERDICT_QUOTA,   /* limits, quota or what is never lent */
    VERDICT_KEPT,    /* there is room, kept for a promised start that it would delay */
    VERDICT_PLACE,   /* admitted, but no place, in at least one class */
};

struct sgroup {
    struct shape shape;
    struct sproject *project;
    struct request request;
    int64_t members; /* the least with which it may start */
    bool is_fixed;
    struct suser *user;     /* NULL: users do not take turns */
    struct skip_list queue; /* its workloads, in order */
    struct skip_key key;    /* the turn of the first of them: where it is in project->groups */
    uint64_t checked;       /* sched.clock when it was last found blocked; 0: not yet */
    enum verdict verdict;   /* then */
    bool is_kept;           /* then: a promised start stood in the way, in some class */
    bool wants_victims;     /* more evictable work may help it */
    bool holds;             /* blocked, but would fit if the usable nodes were empty */
    bool is_unsettled;      /* some claim lacked progress: it may have some once shares are new */
    struct mono retry_at;   /* when the protection of a victim ends; 0: no such */

    /* Within a pass. */
    uint64_t pass;
    struct skip_node *cursor;
    struct sgroup *next_advanced;
};

/* It is charged, and nothing takes it away. */
static inline bool allocation_stays(const struct sallocation *a)
{
    return (a->state == AL_STARTING || a->state == AL_RUNNING) && !a->is_out;
}

enum whereabouts {
    WORK_OUT,       /* held, starting, running, stopping */
    WORK_QUEUED,    /* in a group */
    WORK_BACKS_OFF, /* until not_before */
    WORK_DEPENDS,   /* on other work */
    WORK_TIED,      /* to a reservation: waits for its window, or in it */
    WORK_DOOMED,    /* on other work that ended otherwise: it never starts */
    WORK_ENDED,
};

struct swork {
    struct workload *workload;
    struct sproject *project;
    struct sgroup *group;
    struct sreservation *tied; /* NULL: to none */
    struct skip_key key;       /* its place in the queue */
    struct sallocation *first;
    size_t charged; /* allocations of it that count */
    size_t victims; /* allocations that are being stopped for it */
    struct skip_key claim_key;
    struct plan_member
        *claim; /* where it will run, one a member; NULL: not known after a restart */
    int64_t active_class;
    int64_t active_priority; /* what it is in the list of its project and class by */
    int64_t pending_class;
    int64_t pending_milli;
    struct skip_key due;
    struct mono end; /* by when it declared to be gone */
    enum whereabouts where;
    /* Together, because there are millions of these. */
    bool is_dependent; /* registered with what it depends on */
    bool is_claimant;  /* evictions were made for it */
    bool is_moved;     /* its claim is where it goes on after it was moved */
    bool is_booked;    /* within a step: its claim holds */
    bool is_leaving;   /* is being stopped, or within a step: will be */
    bool is_active;    /* in the list of its project and class */
    bool has_due;
    bool has_end;
    bool has_joined; /* its members were not all granted at once */
};

/* An attempt that goes on without some of its members: gang.c. */
struct sgang {
    struct swork *work;
    const struct gang *gang;
    uint64_t checked; /* sched.clock when it was last found that none can join; 0: not yet */
};

/* Who waits for a workload or an array. */
struct sawaited {
    struct id target;
    struct skip_list waiters; /* by submission */
};

/* ---- all of it ----------------------------------------------------------------------------- */

/* A volume that a step puts on a node before its event exists. */
struct volume_pin {
    struct id volume;
    struct id node;
};

struct undo {
    void *at;
    size_t size;
    size_t offset; /* of the old bytes in undo_bytes */
};

struct sched {
    const struct state *state;
    struct pool pool;
    uint64_t clock;      /* counts changes that may unblock something */
    uint64_t all_gained; /* clock when something changed that concerns every class */
    uint64_t moves;      /* counts changes of what projects use, within steps as well */
    struct mono now;     /* of the last step */
    struct id looked_at; /* the workload whose turn it is; none outside of a step */

    struct sclass *classes;
    size_t class_count;
    struct snode *first_node, *last_node;
    struct sproject root;
    struct sproject *first_project, *last_project; /* the root is not among them */
    struct id_map nodes, projects, works, allocations, awaited;

    struct skip_list backing_off; /* by not_before */
    struct skip_list doomed;
    struct skip_list claimants; /* in the order in which they came */
    uint64_t claim_serial;
    struct skip_list stopping; /* allocations told to stop or being cleaned up after */
    struct skip_list due;
    struct skip_list ends;        /* what runs and declared an end, by it */
    struct skip_list forgettable; /* ended work by the end of its time in memory */
    struct skip_list moving;      /* work that stops to go on elsewhere, by submission */
    struct skip_list gangs;       /* that are not whole, by priority and submission */
    struct mono grow_at;          /* when time alone lets one of them grow; 0: never */
    struct mono grown;            /* when they last might */

    struct id_map reservations;
    struct sreservation *first_reservation, *last_reservation; /* in order of creation */
    VEC(struct pick) picks; /* of windows, as of the last refresh: by start, then node */
    int64_t wall_ahead_ns;  /* wall clock minus ledger time */
    /* The next change that begins or ends, and the next one that is forgotten; NULL: none. */
    const struct change *next_change, *old_change;
    struct mono window_at; /* when a window is to be cleared, or a protection ends; 0: never */

    uint64_t pass;
    struct mono retry_at;  /* the earliest of all projects; 0: none */
    bool is_unsettled;     /* some group is */
    uint64_t settled;      /* sched.clock when shares last became new while one was */
    bool is_promise_moved; /* in this step, in a way that lets others start */
    size_t takeovers;      /* of promises, since the last event */

    struct sdomain *domains[DOMAIN_KINDS]; /* all racks, all blocks */
    struct id_map domain_of[DOMAIN_KINDS]; /* by key */
    struct place_index *index;             /* owned */
    bool is_shadow;
    VEC(struct undo) undo;
    struct buf undo_bytes;
    VEC(struct volume_pin) pins; /* volumes that this step places */
    VEC(struct sproject *) visited;
    VEC(struct share_party) parties;  /* of the project whose share is being divided */
    VEC(struct sproject *) undivided; /* projects whose share is to be divided anew */
};

/* shadow.c: within a step, what is announced here is restored at its end. */
void shadow_begin(struct sched *sched);
void touch(struct sched *sched, void *at, size_t size);
size_t shadow_mark(const struct sched *sched);
void shadow_rollback(struct sched *sched, size_t mark);
void shadow_end(struct sched *sched);

/* capacity.c */
struct snode *snode_of(const struct sched *sched, const struct node *node);
struct spart *snode_part(struct snode *node, int64_t class_number);
struct sdevice *snode_device(struct snode *node, int64_t index);
void capacity_add_node(struct sched *sched, struct node *node);
void capacity_change_node(struct sched *sched, struct snode *node);
void capacity_remove_node(struct sched *sched, struct snode *node);
struct booking {
    struct snode *node;
    const struct share_list *shares;
    int64_t cpu_milli;
    int64_t memory_mib;
    const struct project *tenant;
};
void capacity_book(struct sched *sched, const struct booking *booking);
void capacity_unbook(struct sched *sched, const struct booking *booking);
void capacity_gained(struct sched *sched, const struct snode *node);

/* quota.c */
enum use_kind { USE_CHARGED, USE_LEAVING, USE_CLAIMED, USE_FIXED, USE_PENDING, USE_RESERVED };
void quota_add_project(struct sched *sched, struct project *project);
void quota_remove_project(struct sched *sched, struct id id);
void quota_refresh(struct sched *sched); /* effective quotas, after a change of any */
void use_add(struct sched *sched, struct sproject *project, int64_t class_number,
             enum use_kind kind, int64_t milli);
struct sproject *sproject_of(const struct sched *sched, const struct project *project);

/* fair.c */
void fair_age(struct sched *sched); /* time has gone by, and what was used lately is older */
void fair_refresh(struct sched *sched);

struct ask {
    struct sproject *project;
    int64_t class_number;
    int64_t charge; /* of all members */
    bool is_fixed;
};
enum admit_view {
    ADMIT_NOW,    /* what is being stopped still counts */
    ADMIT_FUTURE, /* it does not */
};
enum admission {
    ADMIT_OK,
    ADMIT_LIMIT,
    ADMIT_FIXED_QUOTA, /* work that is never preempted would pass the quota */
    ADMIT_NOT_LENT,    /* what is left is never lent */
};
struct refusal {
    enum admission why;
    const struct sproject *level;
    int64_t used;
    int64_t bound;
};
enum admission quota_admits(const struct sched *sched, const struct ask *ask, enum admit_view view,
                            struct refusal *out);
/* Only limits, at every level: for work of an open window. */
bool quota_is_within_limits(const struct ask *ask);
/* Within the project's own guarantee, with it counted. */
bool quota_is_inside(const struct ask *ask);

/* Why work that is doomed by what it depends on never starts. */
enum cause queue_doom(const struct sched *sched, const struct swork *work);
/* queue.c */
void queue_add_work(struct sched *sched, struct workload *workload);
void queue_change_work(struct sched *sched, struct swork *work);
void queue_forget_work(struct sched *sched, struct id id);
void queue_promote(struct sched *sched, struct mono now); /* whose back-off is over */
struct swork *swork_of(const struct sched *sched, struct id workload);
/* Puts it among the claimants, in the order in which they came. */
void queue_claim(struct sched *sched, struct swork *work, struct mono since);
/* Remembers where it will run. Copied. */
void queue_claim_place(struct sched *sched, struct swork *work, const struct plan_member *members);
void queue_claim_end(struct sched *sched, struct swork *work);
void queue_claim_forget(struct sched *sched, struct swork *work); /* where it would have run */
/* Nodes and devices of its claim may be used. */
bool queue_claim_is_usable(const struct sched *sched, const struct swork *work);
/* One of the allocations of work that has started: what it was promised elsewhere is free. */
void queue_claim_met(struct sched *sched, struct swork *work, const struct allocation_record *r);
void queue_claims_leave_node(struct sched *sched, const struct node *node); /* it is gone */
int64_t swork_charge(const struct sched *sched, const struct swork *work, int64_t class_number);

/* user.c: whose turn it is among the users of a project. */
/* Who that work counts for; NULL where users do not take turns. */
struct suser *user_of(struct sched *sched, struct sproject *project, const struct workload *work);
void user_leave(struct sched *sched, struct sproject *project, struct suser *user);
/* As of now; true: some group comes earlier or later than it did. */
bool user_rank(struct sched *sched, struct sproject *project, struct mono now, struct arena *arena);
/* Which user comes before that of queued work, and why; empty: nobody. */
struct str user_explain(const struct sched *sched, const struct swork *work, struct mono now,
                        struct arena *arena);
/* Where queued work comes among all of its project, and the same in the queue of a group: before
 * that bound is what comes before the work. */
struct skip_key user_turn(const struct swork *work);
struct skip_key user_bound(const struct sgroup *group, const struct swork *work);

/* allocation.c */
void allocation_add(struct sched *sched, struct allocation *allocation);
/* Its workload has saved its work, or has more time to end. */
void allocation_note(struct sched *sched, struct id id);
void allocation_change(struct sched *sched, const struct allocation_changed *change);
/* What it holds counts as anybody's from now on. */
void allocation_untie(struct sched *sched, struct swork *work);
void work_refresh(struct sched *sched, struct swork *work); /* its place among the evictable */

/* due.c */
void due_allocation(struct sched *sched, struct sallocation *allocation);
void due_node(struct sched *sched, struct snode *node);
void due_work(struct sched *sched, struct swork *work);
void due_drop(struct sched *sched, bool *has_due, struct skip_key key);
void due_restart(struct sched *sched);
void due_changes(struct sched *sched);
/* after any of them changed */ /* the controller started: all nodes have time to report */

/* domain.c: racks and blocks. */
void domain_enter(struct sched *sched, struct snode *node); /* by its labels */
void domain_leave(struct sched *sched, struct snode *node);
/* The domain of the node that a topology speaks of; NULL: the node itself, or none. */
struct sdomain *domain_at(const struct snode *node, enum topology topology);
/* All of that kind; NULL: none, or nodes themselves. */
struct sdomain *domains_of(const struct sched *sched, enum topology topology);
struct snode *domain_next(const struct snode *node, enum topology topology);

/* place_index.c: the nodes as the placement policies see them. */
void index_open(struct sched *sched);
void index_close(struct sched *sched);
void index_add_node(struct sched *sched, struct snode *node); /* or its devices are others now */
void index_remove_node(struct sched *sched, struct snode *node);
void index_note(struct sched *sched, struct snode *node); /* what is free on it has changed */
void index_roll_back(struct sched *sched, size_t mark);   /* shadow_rollback() does the same */
void index_learn(struct sched *sched);                    /* what is asked for may have changed */
/* Chooses the same as one that was made afresh. */
bool index_check(const struct sched *kept, const struct sched *built, struct error *e);

/* explain.c: what it waits for in one class, as far as out's cause and text say. */
enum admission explain_class(const struct sched *sched, const struct swork *work,
                             int64_t class_number, struct arena *arena, struct explanation *out);
/* projection.c: by when it starts there, if everything runs as long as declared; INT64_MAX: not
 * known. */
struct mono project_start(const struct sched *sched, const struct swork *work, int64_t class_number,
                          struct mono now, struct arena *arena);
/* promise.c: until when it runs if it is granted then; INT64_MAX: it never ends. */
struct mono promise_end_of(const struct sched *sched, const struct workload *workload,
                           struct mono from);

/* place.c */
struct fitting {
    struct request request;
    int64_t class_number;
    struct slicing_need need;
    size_t members;
    const struct project *tenant;
    struct id node; /* the only one allowed; none: any */
    bool is_single_node;
    enum topology required; /* rack or block: all members within one */
    enum topology preferred;
    const struct sdomain *within; /* the only one of `required` allowed; NULL: any */
    bool is_impossible;           /* its volumes are on different nodes */
};
void fitting_init(const struct sched *sched, const struct workload *workload, int64_t class_number,
                  struct fitting *out);
/* How many members fit now, counted up to `members`. */
size_t place_count(const struct sched *sched, const struct fitting *fitting);
/* True at once when too little is free, wherever it is. */
bool place_lacks_room(const struct sched *sched, const struct request *request,
                      int64_t class_number, size_t members);
/* Likewise, or its volumes are on different nodes. */
bool place_is_hopeless(const struct sched *sched, const struct fitting *fitting);
bool place_fits(const struct sched *sched, const struct fitting *fitting);
/* Places all members, by rank, in the arena; NULL when not all of them fit. Within a step. */
struct plan_member *place_all(struct sched *sched, const struct fitting *fitting,
                              struct arena *arena);
/* Would all members fit if the usable nodes were empty? And how many of them would? */
bool place_if_empty(const struct sched *sched, const struct fitting *fitting);
size_t place_count_if_empty(const struct sched *sched, const struct fitting *fitting);

/* What is free for one member, on the usable nodes that it may use. */
struct place_room {
    bool is_there;      /* its devices are on one of them, whatever cores and memory there are */
    int64_t cpu_milli;  /* the most free on one where they are */
    int64_t memory_mib; /* likewise */
    int64_t open_milli; /* the largest free part of one device, or of one node's cores */
};
void place_room(const struct sched *sched, const struct fitting *fitting, struct place_room *out);

/* What of a device, in thousandths, nothing is booked on; two bookings of one part, while a claim
 * waits, take it once where parts have a place. */
int64_t device_open_milli(const struct sdevice *device);
/* The slices of a device that are in use, a bit each. */
uint8_t slices_used(const struct sdevice *device);
/* A partition (sign 1) is booked there, or no longer (-1). */
void slices_book(struct sdevice *device, const struct device_share *share, int sign);
/* It takes a partition of a device, and not all of it. */
bool fitting_is_slice(const struct fitting *fitting);

/* How many members fit that node, at most `max`; and which share of a device one of them takes. */
size_t place_members_on(const struct fitting *fitting, const struct snode *node, size_t max);
struct device_share place_share(const struct fitting *fitting, const struct sdevice *device);
bool place_device_takes(const struct fitting *fitting, const struct sdevice *device,
                        const struct device_share *share);
/* The node that the policy gives one member, however many there are; NULL: it fits nowhere. */
struct snode *index_best(const struct sched *sched, const struct fitting *fitting);
/* The better of two nodes that one member fits, by the policy. */
bool index_is_better(const struct sched *sched, const struct fitting *fitting,
                     const struct snode *node, const struct snode *than);
/* The device of the node for a part of one; NULL: any that takes it. */
struct sdevice *index_device(const struct sched *sched, const struct fitting *fitting,
                             struct snode *node);

/* Whose work is evicted: that of others beyond their share, or less urgent work of its
 * own project. */
enum evict_way { EVICT_BORROWED, EVICT_LESS_URGENT };

/* Where a claimant will run, to be remembered beyond the step. */
struct held_claim {
    struct swork *work;
    const struct plan_member *members;
    struct held_claim *next;
};

/* attempt.c: one workload in one class, within a step. */
struct attempt {
    struct sched *sched;
    struct swork *work;
    struct ask ask;
    struct fitting fitting;
    struct mono now;
    struct arena *arena;
    struct plan *plan;
    struct held_claim **claims; /* found in this step, newest first */
    struct held_claim **moves;  /* likewise: where moved work goes on */
    enum evict_way way;
    bool is_reserved;      /* in the window of its reservation: only limits hold it */
    bool takes_straddlers; /* also whose project then ends below its quota: see reclaim.c */
    struct mono retry_at;  /* when the protection of a victim ends; 0: none stood in the way */
    bool lacks_progress;   /* victims were found, but nobody would be better off */
    bool is_kept;          /* it could have evicted, but a promised start stood in the way */
    struct plan_member *members; /* where it was held to run, by reclaim() and reclaim_hold() */
};
void attempt_init(struct attempt *attempt, struct swork *work, int64_t class_number);
bool attempt_start(struct attempt *attempt); /* on what is free now */
/* The same on a place that was found before. */
void attempt_start_at(struct attempt *attempt, struct plan_member *members);
/* Holds room for it, some of which is not free yet; and gives it back. */
void attempt_hold(struct attempt *attempt, const struct plan_member *members);
/* The two halves of holding: the room alone, and what it counts as. */
void attempt_book(struct attempt *attempt, const struct plan_member *members);
void attempt_claim(struct attempt *attempt);
void attempt_release(struct attempt *attempt, const struct plan_member *members);
/* What lacked progress is looked at again when shares are new. */
void attempt_note_progress(const struct attempt *attempt);
struct plan_entry *plan_add(struct plan *plan, struct arena *arena);

/* order.c */
enum rank_of { SUBTREE, OWN_QUEUE };
/* Of a project, or of its own queue against its children, when it offers that group. */
struct rank order_rank(const struct sched *sched, const struct sproject *project,
                       const struct sgroup *group, enum rank_of side);
bool order_before(const struct rank *a, const struct rank *b);
struct ask order_ask(const struct sched *sched, const struct sgroup *group, int64_t class_number);
/* In this pass, something of the project or of one below it has no place in the class. */
void order_note_blocked(struct sched *sched, struct sproject *project, int64_t class_number);
/* Comes before work that has a promise in the class, for a reason that backfilled work does not
 * change: its place in the queue of the project, or share, quota and priority of the projects. */
bool order_is_ahead(const struct sched *sched, const struct swork *work, const struct swork *of,
                    int64_t class_number);
const struct sproject *common_ancestor(const struct sproject *a, const struct sproject *b);
/* The ancestor right below `common`. */
struct sproject *side_below(struct sproject *project, const struct sproject *common);

/* promise.c */
void promise_note_end(struct sched *sched, struct swork *work);   /* what runs, ends or is new */
void promise_drop(struct sched *sched, const struct swork *work); /* it waits no more */
/* There is none in the class, or one of work that comes later. */
bool promise_may_take_over(const struct sched *sched, const struct swork *work,
                           int64_t class_number);
/* In a class of which it is the first without a place. */
void promise_give(struct attempt *attempt);
/* May it run there? False: a start that was promised would be later. */
bool promise_allows(struct attempt *attempt, const struct plan_member *members);
/* A place that keeps all promises, or NULL. `is_room`: there is one that does not. */
struct plan_member *promise_place(struct attempt *attempt, bool *is_room);
void promise_spoil(struct sched *sched); /* what is booked or claimed has changed */
void promise_spoil_on(struct sched *sched, const struct snode *node); /* what it holds has */
void promise_refresh_all(struct attempt *attempt); /* `attempt` gives only the step */
/* Whether the kept promises equal those computed anew. */
bool promise_check(const struct sched *kept, struct sched *built, struct error *e);

/* reclaim.c */
bool reclaim_would_fit(const struct attempt *attempt); /* once what is being stopped is gone */
/* Whether evictions could make it fit; nothing is done. */
bool reclaim_could(struct attempt *attempt);
/* Since when it counts as running: of a gang the last member, of an elastic one the first. */
struct mono work_began(const struct swork *work);
/* What evicting it loses: of each member the time since it began or, if that was later, since the
 * workload last saved its work, in thousandths of a device times milliseconds. `member`: of that
 * one alone; NULL: of all. */
int64_t work_lost(const struct swork *work, const struct sallocation *member, struct mono now);
/* Is it inside a guarantee, at any level? */
bool reclaim_is_entitled(const struct attempt *attempt);
/* Whether it may evict anything at all, whoever that is: costs little, and false is certain. */
bool reclaim_is_thinkable(struct attempt attempt);
/* The next project in preorder, another than the claimant's, some of whose work is borrowed; from
 * the root on; NULL: that was the last. */
struct sproject *reclaim_next_borrower(const struct attempt *attempt, struct sproject *project,
                                       int64_t class_number);
/* Is there anybody to evict that way? */
bool reclaim_may_help(const struct attempt *attempt);
/* Evicts what it takes, if that suffices, and holds the room; false: nothing was done. */
bool reclaim(struct attempt *attempt);
/* Finds and holds room that earlier evictions free for it; false: it would not fit even then. */
bool reclaim_hold(struct attempt *attempt);
/* Its quota admits it once all is gone that is being stopped, for it or for nobody. */
bool reclaim_admits_later(struct attempt *attempt);
/* Something on the nodes of its claim is being stopped for nobody, and may be what it waits for. */
bool reclaim_is_pending(const struct sched *sched, const struct swork *work);

/* Within a step: all of it goes; and its devices are its own until it is gone. */
void reclaim_take_out(struct sched *sched, struct swork *work);
void reclaim_stays_booked(struct sched *sched, struct swork *work);
/* What is being stopped for it or for nobody is all that is in its way. */
bool reclaim_needs_only_time(struct attempt *attempt);

/* consolidate.c */
/* Moves other work out of the way, if that suffices and all of it has a place, and holds the room;
 * false: nothing was done. */
bool consolidate(struct attempt *attempt);
/* Remembers the new places that a step found; and holds those of work that is not gone yet. */
void consolidate_keep(struct sched *sched, const struct held_claim *moves);
void consolidate_hold(const struct attempt *step);
/* Work that was moved is back in the queue, or does not come back. */
void consolidate_note(struct sched *sched, struct swork *work);

/* gang.c: gangs that are not whole, or that may start so. */
/* Its record of what is missing is new, other, or gone. */
void gang_note(struct sched *sched, struct swork *work);
/* When it will have been short of members for too long; INT64_MAX: it is not. */
struct mono gang_stale_at(const struct sched *sched, const struct swork *work);
/* A place for as many of its members as may start now, at least for the least that it needs;
 * NULL: `is_room` says whether there is one that a promise keeps free. */
struct plan_member *gang_place(struct attempt *attempt, bool *is_room);
/* Gives gangs that are short what they lack, before anybody else. */
void gang_repair(const struct attempt *step);
/* Lets gangs grow on what nobody else may use now. */
void gang_grow(const struct attempt *step);

#include "sched/window.h"

#endif
