/* kinds.h - the closed enumerations of the model and their names, each from one table. */
#ifndef MODEL_KINDS_H
#define MODEL_KINDS_H

#include "base/calendar.h"

enum workload_state {
    WL_NONE, /* "no such state": the answer of a refused transition */
    WL_HELD,
    WL_QUEUED,
    WL_PROVISIONING, /* capacity for it is being made (cloud) */
    WL_STARTING,     /* granted; not all members run yet */
    WL_RUNNING,
    WL_STOPPING, /* at least one member told to stop; ends or goes back to the queue */
    WL_SUCCEEDED,
    WL_FAILED,
    WL_CANCELLED,
    WL_TIMED_OUT,
    WL_STATE_COUNT
};

enum allocation_state {
    AL_NONE,
    AL_STARTING,    /* granted; the node has not reported it running */
    AL_RUNNING,     /* billed from here */
    AL_STOPPING,    /* told to stop; still billed */
    AL_CLEANING,    /* process gone (bill and quota end here); devices not yet handed back */
    AL_QUARANTINED, /* the process would not die: devices held until a person decides */
    AL_LOST,        /* its node was declared lost: devices held until the node confirms it gone */
    AL_ENDED,
    AL_STATE_COUNT
};

enum reservation_state {
    RSV_NONE,
    RSV_REQUESTED, /* asked for: nothing is kept free for it */
    RSV_CONFIRMED, /* its windows are kept; none is open */
    RSV_ACTIVE,    /* a window is open, and all of it is there */
    RSV_DEGRADED,  /* its window is open or to come, and some of it is missing */
    RSV_COMPLETED, /* all of its windows are over */
    RSV_RELEASED,  /* its holder gave it back */
    RSV_CANCELLED,
    RSV_STATE_COUNT
};

/* Of a change of quotas, priorities or settings. */
enum change_state {
    CHG_NONE,
    CHG_SCHEDULED, /* its time is to come, or to come again */
    CHG_ACTIVE,    /* it holds now */
    CHG_EXPIRED,   /* its time is over: what was before holds again */
    CHG_REVERTED,  /* a person took it back */
    CHG_SETTLED,   /* one for good that holds, and cannot be taken back any more */
    CHG_FAILED,    /* its time came, and it could not be done */
    CHG_STATE_COUNT
};

enum workload_kind { KIND_JOB, KIND_SESSION, KIND_SERVICE, KIND_CLUSTER, WORKLOAD_KIND_COUNT };
enum class_kind { CLASS_GPU, CLASS_CPU, CLASS_KIND_COUNT };
enum slicing { SLICING_POLICED, SLICING_MIG, SLICING_COOPERATIVE, SLICING_COUNT };
/* Which partitions the devices of a class have: mig.h. */
enum mig_table_name {
    MIG_TABLE_NONE, /* the one that goes with the class's name, if any */
    MIG_TABLE_A100_40G,
    MIG_TABLE_A100_80G,
    MIG_TABLE_H100_80G,
    MIG_TABLE_H100_94G,
    MIG_TABLE_H100_96G,
    MIG_TABLE_H200_141G,
    MIG_TABLE_COUNT
};
/* A profile by its name: several tables may have it. */
enum mig_name {
    MIG_ANY, /* none is named */
    MIG_1G_5GB,
    MIG_1G_10GB,
    MIG_2G_10GB,
    MIG_3G_20GB,
    MIG_4G_20GB,
    MIG_7G_40GB,
    MIG_1G_20GB,
    MIG_2G_20GB,
    MIG_3G_40GB,
    MIG_4G_40GB,
    MIG_7G_80GB,
    MIG_1G_12GB,
    MIG_1G_24GB,
    MIG_2G_24GB,
    MIG_3G_47GB,
    MIG_4G_47GB,
    MIG_7G_94GB,
    MIG_3G_48GB,
    MIG_4G_48GB,
    MIG_7G_96GB,
    MIG_1G_18GB,
    MIG_1G_35GB,
    MIG_2G_35GB,
    MIG_3G_71GB,
    MIG_4G_71GB,
    MIG_7G_141GB,
    MIG_NAME_COUNT
};
enum site_kind {
    SITE_NATIVE,
    SITE_SLURM,
    SITE_PBS,
    SITE_KUBERNETES,
    SITE_CLOUD,
    SITE_SIM,
    SITE_KIND_COUNT
};
enum on_contact_loss { LOSS_RESTART, LOSS_FENCE, LOSS_KEEP, ON_CONTACT_LOSS_COUNT };
enum restart_policy { RESTART_ON_FAILURE, RESTART_NEVER, RESTART_POLICY_COUNT };
enum preemptible { PREEMPTIBLE_ALWAYS, PREEMPTIBLE_NEVER, PREEMPTIBLE_COUNT };
enum dependency_when { AFTER_OK, AFTER_ANY, AFTER_FAILED, DEPENDENCY_WHEN_COUNT };
enum role {
    ROLE_NONE,
    ROLE_ADMIN,
    ROLE_MEMBER,
    ROLE_NODE_JOIN,
    ROLE_NODE,
    ROLE_SYSTEM,
    ROLE_COUNT
};
enum node_contact {
    CONTACT_NEVER, /* joined, no inventory yet */
    CONTACT_OK,
    CONTACT_UNKNOWN, /* no contact for a while: no new work, nothing declared lost */
    CONTACT_LOST,    /* declared lost: its work follows on_contact_loss */
    NODE_CONTACT_COUNT
};
enum hold_kind { HOLD_PERSON, HOLD_CHECK, HOLD_DRAIN, HOLD_KIND_COUNT };
enum device_health { DEVICE_OK, DEVICE_FAILED, DEVICE_GONE, DEVICE_HEALTH_COUNT };
enum end_policy { END_REQUEUE, END_ON_DEMAND, END_STOP, END_POLICY_COUNT };
enum reclaim_to { RECLAIM_TO_QUOTA, RECLAIM_TO_FAIR_SHARE, RECLAIM_TO_COUNT };
enum user_fairness { USER_FAIRNESS_OFF, USER_FAIRNESS_USAGE, USER_FAIRNESS_COUNT };
enum consolidate { CONSOLIDATE_OFF, CONSOLIDATE_ON, CONSOLIDATE_COUNT };
enum placement {
    PLACE_FIRST_FIT,
    PLACE_BEST_FIT,
    PLACE_PACK,
    PLACE_SPREAD,
    PLACE_FGD,
    PLACE_ADAPTIVE,
    PLACEMENT_COUNT
};

/* How close together members are: from the closest on. */
enum topology { TOPOLOGY_NONE, TOPOLOGY_NODE, TOPOLOGY_RACK, TOPOLOGY_BLOCK, TOPOLOGY_COUNT };

/* A named enumeration: names[i] belongs to value i; NULL entries have no name and never parse. */
struct enum_names {
    const char *what; /* "workload state": for messages */
    const char *const *names;
    size_t count;
};

extern const struct enum_names workload_state_names;
extern const struct enum_names allocation_state_names;
extern const struct enum_names reservation_state_names;
extern const struct enum_names change_state_names;
extern const struct enum_names repeat_names; /* of base/calendar.h; once has no name */
extern const struct enum_names end_policy_names;
extern const struct enum_names workload_kind_names;
extern const struct enum_names class_kind_names;
extern const struct enum_names slicing_names;
extern const struct enum_names mig_table_names;
extern const struct enum_names mig_names; /* "1g.10gb" */
extern const struct enum_names site_kind_names;
extern const struct enum_names on_contact_loss_names;
extern const struct enum_names restart_policy_names;
extern const struct enum_names preemptible_names;
extern const struct enum_names dependency_when_names; /* "ok", "any", "failed" */
extern const struct enum_names role_names;
extern const struct enum_names node_contact_names;
extern const struct enum_names hold_kind_names;
extern const struct enum_names device_health_names;
extern const struct enum_names reclaim_to_names;
extern const struct enum_names consolidate_names;
extern const struct enum_names user_fairness_names;
extern const struct enum_names placement_names;
extern const struct enum_names topology_names;
extern const struct enum_names cause_names; /* cause.h */

const char *enum_name(const struct enum_names *names, unsigned value); /* "" when unnamed */
bool enum_parse(const struct enum_names *names, struct str text, unsigned *out);

static inline bool workload_state_is_final(enum workload_state s)
{
    return s >= WL_SUCCEEDED;
}

static inline bool reservation_state_is_final(enum reservation_state s)
{
    return s >= RSV_COMPLETED;
}

static inline bool change_state_is_final(enum change_state s)
{
    return s >= CHG_EXPIRED;
}

/* Something is kept free for it. */
static inline bool reservation_is_kept(enum reservation_state s)
{
    return s == RSV_CONFIRMED || s == RSV_ACTIVE || s == RSV_DEGRADED;
}

/* Counts against quota and bill: the process may exist. */
static inline bool allocation_is_charged(enum allocation_state s)
{
    return s == AL_STARTING || s == AL_RUNNING || s == AL_STOPPING;
}

/* Occupies its devices, cores and memory on the node. */
static inline bool allocation_is_held(enum allocation_state s)
{
    return s != AL_NONE && s != AL_ENDED;
}

#endif
